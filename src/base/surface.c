#include "base/surface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"

enum
{
  MAX_THOUSANDTHS = 10000,
  MAX_VALUES = 1 << 16,
};

static bool
parse_axis (PodSurfaceAxis *axis, const char *text, GError **error)
{
  g_auto (GStrv) words = g_strsplit_set (text, " \t\n\r", -1);

  for (unsigned i = 0; words[i] != NULL; i++)
    {
      double node = 0;

      if (words[i][0] == '\0')
        continue;
      if (!pod_parse_quantity (words[i], POD_UNIT_COUNT, &node, error))
        return false;
      if (axis->n_nodes == POD_SURFACE_MAX_NODES || !(node > 0)
          || (axis->n_nodes > 0 && !(node > axis->nodes[axis->n_nodes - 1])))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "an axis has at most %d ascending nodes above 0, got '%s'",
                       POD_SURFACE_MAX_NODES, text);
          return false;
        }
      axis->nodes[axis->n_nodes] = node;
      axis->log2s[axis->n_nodes++] = log2 (node);
    }
  if (axis->n_nodes >= 2)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "an axis needs two nodes or more, got '%s'",
               text);
  return false;
}

PodSurface *
pod_surface_new (unsigned n_axes, const char *const *nodes, GError **error)
{
  g_return_val_if_fail (n_axes >= 1 && n_axes <= POD_SURFACE_MAX_AXES, NULL);

  g_autoptr (PodSurface) surface = g_new0 (PodSurface, 1);
  uint64_t n_values = 1;

  surface->n_axes = n_axes;
  for (unsigned i = 0; i < n_axes; i++)
    {
      if (!parse_axis (&surface->axes[i], nodes[i], error))
        return NULL;
      n_values *= surface->axes[i].n_nodes;
    }
  if (n_values > MAX_VALUES)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "a surface has at most %d nodes, got %u",
                   MAX_VALUES, (unsigned) n_values);
      return NULL;
    }
  surface->n_values = (unsigned) n_values;
  surface->values = g_new0 (double, surface->n_values);
  return g_steal_pointer (&surface);
}

PodSurface *
pod_surface_copy (const PodSurface *surface)
{
  PodSurface *copy;

  if (surface == NULL)
    return NULL;
  copy = g_memdup2 (surface, sizeof *surface);
  copy->values = g_memdup2 (surface->values, surface->n_values * sizeof *surface->values);
  return copy;
}

void
pod_surface_free (PodSurface *surface)
{
  if (surface == NULL)
    return;
  g_free (surface->values);
  g_free (surface);
}

/* The node at or below @at, and how far @at is on the way to the next, 0 ... 1. */
static unsigned
locate (const PodSurfaceAxis *axis, double at, double *out_part)
{
  double x = at > axis->nodes[0] ? log2 (at) : axis->log2s[0];
  unsigned i = 0;

  while (i + 2 < axis->n_nodes && x > axis->log2s[i + 1])
    i++;
  *out_part = MIN (1.0, (x - axis->log2s[i]) / (axis->log2s[i + 1] - axis->log2s[i]));
  return i;
}

void
pod_surface_corners (const PodSurface *surface, const double *at, PodSurfaceCorners *out)
{
  out->n = 1;
  out->indices[0] = 0;
  out->weights[0] = 1.0;
  for (unsigned a = 0; a < surface->n_axes; a++)
    {
      const PodSurfaceAxis *axis = &surface->axes[a];
      double part;
      unsigned node = locate (axis, at[a], &part);

      for (unsigned c = 0; c < out->n; c++)
        {
          unsigned lower = out->indices[c] * axis->n_nodes + node;

          out->indices[c + out->n] = lower + 1;
          out->weights[c + out->n] = out->weights[c] * part;
          out->indices[c] = lower;
          out->weights[c] *= 1.0 - part;
        }
      out->n *= 2;
    }
}

double
pod_surface_at (const PodSurface *surface, const double *at)
{
  PodSurfaceCorners corners;
  double sum = 0.0;

  pod_surface_corners (surface, at, &corners);
  for (unsigned c = 0; c < corners.n; c++)
    sum += corners.weights[c] * surface->values[corners.indices[c]];
  return sum;
}

/* -- text -------------------------------------------------------------------------------------- */

bool
pod_surface_parse_values (PodSurface *surface, const char *text, GError **error)
{
  unsigned n = 0;

  for (const char *at = text; *(at += strspn (at, " \t\r\n")) != '\0';)
    {
      char *end = NULL;
      gint64 value = g_ascii_strtoll (at, &end, 10);

      if (end == at || strchr (" \t\r\n", *end) == NULL || value > MAX_THOUSANDTHS
          || value < -MAX_THOUSANDTHS)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "value %u of a surface must be a whole number of thousandths, -10000 to "
                       "10000, got '%.16s'",
                       n + 1, at);
          return false;
        }
      if (n < surface->n_values)
        surface->values[n] = (double) value / 1000.0;
      n++;
      at = end;
    }
  if (n == surface->n_values)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "a surface of %u nodes has %u values",
               surface->n_values, n);
  return false;
}

static long long
thousandths (double value)
{
  return llround (CLAMP (value * 1000.0, -MAX_THOUSANDTHS, MAX_THOUSANDTHS));
}

char *
pod_surface_format_values (const PodSurface *surface, const char *indent)
{
  GString *text = g_string_new (NULL);
  unsigned n_last = surface->axes[surface->n_axes - 1].n_nodes;

  for (unsigned i = 0; i < surface->n_values; i++)
    {
      g_string_append (text, i % n_last == 0 ? indent : " ");
      g_string_append_printf (text, "%lld", thousandths (surface->values[i]));
      if (i % n_last == n_last - 1)
        g_string_append_c (text, '\n');
    }
  return g_string_free (text, FALSE);
}

char *
pod_surface_format_axis (const PodSurfaceAxis *axis)
{
  GString *text = g_string_new (NULL);

  for (unsigned i = 0; i < axis->n_nodes; i++)
    {
      g_autofree char *node = pod_format_double (axis->nodes[i]);

      g_string_append_printf (text, "%s%s", i > 0 ? " " : "", node);
    }
  return g_string_free (text, FALSE);
}

void
pod_surface_round (PodSurface *surface)
{
  for (unsigned i = 0; i < surface->n_values; i++)
    surface->values[i] = (double) thousandths (surface->values[i]) / 1000.0;
}
