#include "parallel/einsum.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"

/* ---- reading ---- */

typedef struct
{
  const char *text;
  const char *at;
  const PodArrayMesh *mesh;
} Reader;

/* "at 8, 'J_Q': …" */
static bool G_GNUC_PRINTF (3, 4)
    refuse (const Reader *reader, GError **error, const char *format, ...)
{
  g_autofree char *what = NULL;
  g_autofree char *rest = NULL;
  long position = g_utf8_pointer_to_offset (reader->text, reader->at) + 1;
  va_list arguments;

  va_start (arguments, format);
  what = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  rest = g_utf8_strlen (reader->at, -1) > 12 ? g_utf8_substring (reader->at, 0, 12)
                                             : g_strdup (reader->at);
  if (*rest == '\0')
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "at %ld, the end: %s", position, what);
  else
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "at %ld, '%s': %s", position, rest, what);
  return false;
}

static void
skip_blanks (Reader *reader)
{
  while (g_ascii_isspace (*reader->at))
    reader->at++;
}

/* Takes @token, blanks before it skipped. */
static bool
take (Reader *reader, const char *token)
{
  skip_blanks (reader);
  if (!g_str_has_prefix (reader->at, token))
    return false;
  reader->at += strlen (token);
  return true;
}

/* "XY" or "{XY}", behind the underscore. */
static bool
read_axes (Reader *reader, unsigned *taken, PodAxisList *out, GError **error)
{
  bool has_braces = *reader->at == '{';

  out->n = 0;
  reader->at += has_braces;
  while (g_ascii_isalpha (*reader->at)
         || (has_braces && (*reader->at == ',' || *reader->at == ' ')))
    {
      int axis = pod_array_mesh_find (reader->mesh, *reader->at);

      if (*reader->at == ',' || *reader->at == ' ')
        {
          reader->at++;
          continue;
        }
      if (axis < 0 && reader->mesh->n_axes == 0)
        return refuse (reader, error, "axis %c needs a mesh: --mesh %c=4", *reader->at,
                       g_ascii_toupper (*reader->at));
      if (axis < 0)
        {
          g_autofree char *mesh = pod_array_mesh_to_text (reader->mesh);

          return refuse (reader, error, "the mesh %s has no axis %c", mesh, *reader->at);
        }
      if (*taken >> axis & 1)
        return refuse (reader, error,
                       "axis %c stands twice in this array: a mesh axis cuts one of its dimensions",
                       *reader->at);
      *taken |= 1U << axis;
      out->axis[out->n++] = (uint8_t) axis;
      reader->at++;
    }
  if (out->n == 0)
    return refuse (reader, error, "expected axes of the mesh behind '_', such as I_X or I_XY");
  if (has_braces && *reader->at != '}')
    return refuse (reader, error, "expected '}' behind the axes");
  reader->at += has_braces;
  return true;
}

/* "I", "I_XY", "1024_X" */
static bool
read_dim (Reader *reader, PodArray *array, unsigned *taken, GError **error)
{
  unsigned d = array->n_dims;

  skip_blanks (reader);
  if (d == POD_MAX_TENSOR_DIMS)
    return refuse (reader, error, "an array has at most %d dimensions", POD_MAX_TENSOR_DIMS);
  if (g_ascii_isdigit (*reader->at))
    {
      size_t length = strspn (reader->at, "0123456789");
      g_autofree char *digits = g_strndup (reader->at, length);

      if (!pod_parse_whole (digits, POD_UNIT_COUNT, &array->size[d], NULL) || array->size[d] == 0)
        return refuse (reader, error, "a size of 1 or more is needed");
      reader->at += length;
    }
  else if (!g_ascii_isalpha (*reader->at))
    return refuse (
        reader, error,
        "expected a dimension: a letter, and behind '_' the axes that cut it, such as I_X");
  else if (pod_array_find (array, *reader->at) >= 0)
    return refuse (reader, error, "dimension %c stands twice in this array", *reader->at);
  else
    array->dim[d] = *reader->at++;
  if (g_ascii_isalnum (*reader->at))
    return refuse (reader, error, "a dimension is one letter; axes follow behind '_', as in I_X");
  array->n_dims++;
  if (*reader->at != '_')
    return true;
  reader->at++;
  return read_axes (reader, taken, &array->axes[d], error);
}

/* "A", "bf16" or "A bf16" before the bracket. */
static bool
read_prefix (Reader *reader, PodArray *array, GError **error)
{
  for (;;)
    {
      size_t length = 0;
      g_autofree char *word = NULL;

      skip_blanks (reader);
      while (g_ascii_isalnum (reader->at[length]) || reader->at[length] == '_')
        length++;
      if (length == 0)
        return true;
      word = g_strndup (reader->at, length);
      if (!array->has_dtype && pod_dtype_parse (word, &array->dtype, NULL))
        array->has_dtype = true;
      else if (array->name[0] != '\0' || array->has_dtype)
        return refuse (reader, error,
                       "'%s' is no dtype; expected NAME, a dtype such as bf16, then '['", word);
      else if (length >= POD_MAX_ARRAY_NAME)
        return refuse (reader, error, "a name has at most %d letters", POD_MAX_ARRAY_NAME - 1);
      else
        memcpy (array->name, word, length);
      reader->at += length;
    }
}

static bool
read_array (Reader *reader, PodArray *array, GError **error)
{
  unsigned taken = 0;
  PodAxisList unreduced;

  if (!read_prefix (reader, array, error))
    return false;
  if (!take (reader, "["))
    return refuse (reader, error, "expected an array such as A[I_X, J]");
  do
    if (!read_dim (reader, array, &taken, error))
      return false;
  while (take (reader, ","));
  if (!take (reader, "]"))
    return refuse (reader, error, "expected ',' or ']'");
  if (!take (reader, "{"))
    return true;
  if (!take (reader, "U_"))
    return refuse (reader, error,
                   "expected U_ and axes, such as {U_X}: parts that are not summed yet");
  if (!read_axes (reader, &taken, &unreduced, error))
    return false;
  for (unsigned i = 0; i < unreduced.n; i++)
    array->unreduced |= 1U << unreduced.axis[i];
  return take (reader, "}") || refuse (reader, error, "expected '}' behind the axes");
}

/* ---- what fits together ---- */

static bool
check_operand (const PodArray *array, const PodArray *other, const PodArray *out, GError **error)
{
  for (unsigned d = 0; d < array->n_dims; d++)
    if (array->dim[d] == 0)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                     "%s: %" G_GUINT64_FORMAT
                     " stands in place of a letter, by which a matmul tells which dimensions "
                     "belong together: name it, and give --shape",
                     array->name, array->size[d]);
        return false;
      }
    else if (pod_array_find (other, array->dim[d]) < 0 && pod_array_find (out, array->dim[d]) < 0)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                     "dimension %c of %s is neither in %s nor in the result %s: it would be summed "
                     "without a partner",
                     array->dim[d], array->name, other->name, out->name);
        return false;
      }
  if (array->unreduced == 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: only the result can stay unreduced",
               array->name);
  return false;
}

static bool
check_matmul (const PodEinsum *einsum, GError **error)
{
  unsigned n_summed = 0;

  if (!check_operand (&einsum->lhs, &einsum->rhs, &einsum->out, error)
      || !check_operand (&einsum->rhs, &einsum->lhs, &einsum->out, error))
    return false;
  for (unsigned d = 0; d < einsum->out.n_dims; d++)
    if (einsum->out.dim[d] == 0
        || (pod_array_find (&einsum->lhs, einsum->out.dim[d]) < 0
            && pod_array_find (&einsum->rhs, einsum->out.dim[d]) < 0))
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                     "dimension %u of the result %s is in neither operand", d + 1,
                     einsum->out.name);
        return false;
      }
  for (unsigned d = 0; d < einsum->lhs.n_dims; d++)
    n_summed += pod_array_find (&einsum->out, einsum->lhs.dim[d]) < 0;
  if (n_summed > 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "no dimension is summed: one that both %s and %s have must be missing from %s",
               einsum->lhs.name, einsum->rhs.name, einsum->out.name);
  return false;
}

/* Names that were left out: A, B, C. */
static void
set_name (PodArray *array, const char *name)
{
  if (array->name[0] == '\0')
    g_strlcpy (array->name, name, sizeof array->name);
}

bool
pod_einsum_parse (const char *text, const PodArrayMesh *mesh, PodEinsum *out, GError **error)
{
  Reader reader = { .text = text, .at = text, .mesh = mesh };

  *out = (PodEinsum){ .is_matmul = false };
  if (!g_utf8_validate (text, -1, NULL))
    {
      g_set_error_literal (error, POD_ERROR, POD_ERROR_INVALID, "the expression is no UTF-8 text");
      return false;
    }
  if (!read_array (&reader, &out->lhs, error))
    return false;
  skip_blanks (&reader);
  if (*reader.at == '\0')
    return true;
  out->is_matmul = true;
  if (!take (&reader, "*") && !take (&reader, ".") && !take (&reader, "@")
      && !take (&reader, "\302\267"))
    return refuse (&reader, error, "expected '*' and the second array, or the end");
  if (!read_array (&reader, &out->rhs, error))
    return false;
  if (!take (&reader, "->"))
    return refuse (&reader, error, "expected '->' and the result, such as -> C[I_X, K]");
  if (!read_array (&reader, &out->out, error))
    return false;
  skip_blanks (&reader);
  if (*reader.at != '\0')
    return refuse (&reader, error, "nothing may follow the result");
  set_name (&out->lhs, "A");
  set_name (&out->rhs, "B");
  set_name (&out->out, "C");
  return check_matmul (out, error);
}

/* ---- sizes ---- */

/* "I=8192,J=4096" by letter. */
static bool
read_shape (const char *text, uint64_t sizes[256], GError **error)
{
  g_auto (GStrv) words = g_strsplit (text != NULL ? text : "", ",", -1);

  for (char **word = words; *word != NULL; word++)
    {
      const char *entry = g_strstrip (*word);
      unsigned char letter = (unsigned char) entry[0];

      if (!g_ascii_isalpha (entry[0]) || entry[1] != '=')
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                     "--shape: expected LETTER=SIZE,…, such as I=8192, got '%s'", entry);
      else if (sizes[letter] != 0)
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--shape: %c stands twice", letter);
      else if (!pod_parse_whole (entry + 2, POD_UNIT_COUNT, &sizes[letter], error))
        g_prefix_error (error, "--shape: %c: ", letter);
      else if (sizes[letter] == 0)
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--shape: %c must be 1 or more, got 0",
                     letter);
      else
        continue;
      return false;
    }
  return true;
}

static bool
set_sizes (PodArray *array, const PodArrayMesh *mesh, const uint64_t sizes[256],
           unsigned char *used, GError **error)
{
  for (unsigned d = 0; d < array->n_dims; d++)
    {
      unsigned char letter = (unsigned char) array->dim[d];
      uint64_t n_parts = 1;

      if (letter != 0)
        {
          array->size[d] = sizes[letter];
          used[letter] = 1;
        }
      if (array->size[d] == 0)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--shape: %c is missing, as in %c=4096",
                       letter, letter);
          return false;
        }
      for (unsigned i = 0; i < array->axes[d].n; i++)
        n_parts *= mesh->size[array->axes[d].axis[i]];
      if (array->size[d] % n_parts != 0)
        {
          g_autofree char *text = pod_array_to_text (array, mesh);
          uint64_t rest = array->size[d] % n_parts;

          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                       "--shape: dimension %u of %s: %" G_GUINT64_FORMAT
                       " does not divide over %" G_GUINT64_FORMAT " parts, %" G_GUINT64_FORMAT
                       " are left over; the next sizes that do are %" G_GUINT64_FORMAT
                       " and %" G_GUINT64_FORMAT,
                       d + 1, text, array->size[d], n_parts, rest,
                       MAX (array->size[d] - rest, n_parts), array->size[d] - rest + n_parts);
          return false;
        }
    }
  return true;
}

bool
pod_einsum_set_shape (PodEinsum *einsum, const PodArrayMesh *mesh, const char *shape,
                      GError **error)
{
  uint64_t sizes[256] = { 0 };
  unsigned char used[256] = { 0 };

  if (!read_shape (shape, sizes, error) || !set_sizes (&einsum->lhs, mesh, sizes, used, error)
      || (einsum->is_matmul
          && (!set_sizes (&einsum->rhs, mesh, sizes, used, error)
              || !set_sizes (&einsum->out, mesh, sizes, used, error))))
    return false;
  for (unsigned letter = 0; letter < G_N_ELEMENTS (sizes); letter++)
    if (sizes[letter] != 0 && !used[letter])
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--shape: no array has a dimension %c",
                     (char) letter);
        return false;
      }
  return true;
}

/* ---- facts ---- */

int
pod_array_find (const PodArray *array, char dim)
{
  for (unsigned d = 0; d < array->n_dims; d++)
    if (array->dim[d] == dim && dim != 0)
      return (int) d;
  return -1;
}

unsigned
pod_array_axes (const PodArray *array)
{
  unsigned mask = 0;

  for (unsigned d = 0; d < array->n_dims; d++)
    for (unsigned i = 0; i < array->axes[d].n; i++)
      mask |= 1U << array->axes[d].axis[i];
  return mask;
}

uint64_t
pod_array_local_size (const PodArray *array, const PodArrayMesh *mesh, unsigned dim)
{
  uint64_t size = array->size[dim];

  for (unsigned i = 0; i < array->axes[dim].n; i++)
    size /= mesh->size[array->axes[dim].axis[i]];
  return size;
}

double
pod_array_local_bytes (const PodArray *array, const PodArrayMesh *mesh)
{
  double bytes = pod_dtype_bytes (array->dtype);

  for (unsigned d = 0; d < array->n_dims; d++)
    bytes *= (double) pod_array_local_size (array, mesh, d);
  return bytes;
}

double
pod_array_bytes (const PodArray *array)
{
  double bytes = pod_dtype_bytes (array->dtype);

  for (unsigned d = 0; d < array->n_dims; d++)
    bytes *= (double) array->size[d];
  return bytes;
}

PodSharding
pod_array_sharding (const PodArray *array)
{
  PodSharding sharding = { .n_dims = array->n_dims };

  for (unsigned d = 0; d < array->n_dims; d++)
    {
      sharding.dim[d] = array->dim[d];
      for (unsigned i = 0; i < array->axes[d].n; i++)
        sharding.axes[d] |= 1U << array->axes[d].axis[i];
    }
  return sharding;
}

/* ---- text ---- */

char *
pod_array_to_text (const PodArray *array, const PodArrayMesh *mesh)
{
  GString *text = g_string_new (array->name);

  if (array->has_dtype)
    g_string_append_printf (text, "%s%s", text->len > 0 ? " " : "", pod_dtype_name (array->dtype));
  g_string_append_c (text, '[');
  for (unsigned d = 0; d < array->n_dims; d++)
    {
      if (d > 0)
        g_string_append (text, ", ");
      if (array->dim[d] != 0)
        g_string_append_c (text, array->dim[d]);
      else
        g_string_append_printf (text, "%" G_GUINT64_FORMAT, array->size[d]);
      for (unsigned i = 0; i < array->axes[d].n; i++)
        g_string_append_printf (text, "%s%c", i == 0 ? "_" : "",
                                mesh->name[array->axes[d].axis[i]]);
    }
  g_string_append_c (text, ']');
  if (array->unreduced != 0)
    {
      g_autofree char *axes = pod_array_mesh_mask_text (mesh, array->unreduced);

      g_string_append_printf (text, "{U_%s}", axes);
    }
  return g_string_free (text, FALSE);
}

char *
pod_einsum_to_text (const PodEinsum *einsum, const PodArrayMesh *mesh)
{
  g_autofree char *lhs = pod_array_to_text (&einsum->lhs, mesh);
  g_autofree char *rhs = NULL;
  g_autofree char *out = NULL;

  if (!einsum->is_matmul)
    return g_steal_pointer (&lhs);
  rhs = pod_array_to_text (&einsum->rhs, mesh);
  out = pod_array_to_text (&einsum->out, mesh);
  return g_strdup_printf ("%s * %s -> %s", lhs, rhs, out);
}
