#include <string.h>

#include "base/error.h"
#include "topology/chip-private.h"

enum
{
  MAX_EXTENT = 1 << 24, /* devices of a machine; one axis cannot have more */
};

/* One axis at *at, which moves behind it. */
static bool
parse_axis (const char **at, const char *text, unsigned *out, GError **error)
{
  const char *digit = *at;
  unsigned value = 0;

  if (!g_ascii_isdigit (*digit))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "'%s': an axis must be a whole number above 0, as in 4x4x8", text);
      return false;
    }
  for (; g_ascii_isdigit (*digit); digit++)
    {
      value = value * 10 + (unsigned) (*digit - '0');
      if (value > MAX_EXTENT)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "'%s': an axis is longer than %d", text,
                       MAX_EXTENT);
          return false;
        }
    }
  if (value == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "'%s': an axis of 0 is empty", text);
      return false;
    }
  *at = digit;
  *out = value;
  return true;
}

bool
pod_extent_parse (const char *text, unsigned out[3], unsigned *out_n_axes, GError **error)
{
  const char *at = text;
  unsigned n_axes = 0;

  out[0] = out[1] = out[2] = 1;
  for (;;)
    {
      if (n_axes == 3)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "'%s': at most 3 axes are possible",
                       text);
          return false;
        }
      if (!parse_axis (&at, text, &out[n_axes++], error))
        return false;
      if (*at == '\0')
        break;
      if (*at != 'x')
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "'%s': '%s' does not belong into a shape such as 4x4x8", text, at);
          return false;
        }
      at++;
    }
  if (out_n_axes != NULL)
    *out_n_axes = n_axes;
  return true;
}

char *
pod_extent_format (const unsigned extent[3], unsigned n_axes)
{
  GString *text = g_string_new (NULL);

  for (unsigned axis = 0; axis < n_axes; axis++)
    g_string_append_printf (text, "%s%u", axis > 0 ? "x" : "", extent[axis]);
  return g_string_free (text, FALSE);
}
