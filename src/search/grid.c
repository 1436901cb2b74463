#include "search/grid.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"

#define MAX_VALUES 10000

static void
dim_free (void *data)
{
  PodGridDim *dim = data;

  g_free (dim->key);
  g_ptr_array_unref (dim->values);
  g_free (dim);
}

PodGrid *
pod_grid_new (void)
{
  PodGrid *grid = g_new0 (PodGrid, 1);

  grid->dims = g_ptr_array_new_with_free_func (dim_free);
  return grid;
}

void
pod_grid_free (PodGrid *grid)
{
  if (grid == NULL)
    return;
  g_ptr_array_unref (grid->dims);
  g_free (grid);
}

PodGridDim *
pod_grid_find (const PodGrid *grid, const char *key)
{
  for (guint i = 0; i < grid->dims->len; i++)
    {
      PodGridDim *dim = g_ptr_array_index (grid->dims, i);

      if (strcmp (dim->key, key) == 0)
        return dim;
    }
  return NULL;
}

void
pod_grid_put_first (PodGrid *grid, const char *key)
{
  PodGridDim *dim = pod_grid_find (grid, key);
  guint index;

  if (g_ptr_array_find (grid->dims, dim, &index))
    g_ptr_array_insert (grid->dims, 0, g_ptr_array_steal_index (grid->dims, index));
}

void
pod_grid_remove (PodGrid *grid, const char *key)
{
  PodGridDim *dim = pod_grid_find (grid, key);

  if (dim != NULL)
    g_ptr_array_remove (grid->dims, dim);
}

void
pod_grid_add_value (PodGrid *grid, const char *key, const char *value)
{
  PodGridDim *dim = pod_grid_find (grid, key);

  if (dim == NULL)
    {
      dim = g_new0 (PodGridDim, 1);
      dim->key = g_strdup (key);
      dim->values = g_ptr_array_new_with_free_func (g_free);
      g_ptr_array_add (grid->dims, dim);
    }
  g_ptr_array_add (dim->values, g_strdup (value));
}

/* Options whose values hold commas themselves. */
static bool
has_commas (const char *key)
{
  static const char *const keys[] = { "map", "order", "stage-layers", "topology", "packet", "mesh", "shard" };

  for (unsigned i = 0; i < G_N_ELEMENTS (keys); i++)
    if (strcmp (keys[i], key) == 0)
      return true;
  return false;
}

static bool
refuse_range (const char *text, const char *why, GError **error)
{
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "'%s': %s; a range is LO:HI:*K or LO:HI:+K, such as 256:4096:*2", text, why);
  return false;
}

/* "256:4096:*2" */
static bool
add_range (PodGrid *grid, const char *key, const char *text, char **parts, GError **error)
{
  const char *by = parts[2];
  uint64_t low;
  uint64_t high;
  uint64_t step;
  uint64_t value;

  if (*by != '*' && *by != '+')
    return refuse_range (text, "no step behind the second colon", error);
  if (!pod_parse_whole (parts[0], POD_UNIT_COUNT, &low, error) || !pod_parse_whole (parts[1], POD_UNIT_COUNT, &high, error)
      || !pod_parse_whole (by + 1, POD_UNIT_COUNT, &step, error))
    return false;
  if (low > high)
    return refuse_range (text, "it ends below its start", error);
  if (*by == '*' ? step < 2 || low == 0 : step < 1)
    return refuse_range (text, "it never ends", error);
  value = low;
  for (unsigned n = 0; value <= high; n++)
    {
      g_autofree char *word = g_strdup_printf ("%" G_GUINT64_FORMAT, value);

      if (n == MAX_VALUES)
        return refuse_range (text, "it has over 10000 values", error);
      pod_grid_add_value (grid, key, word);
      if (*by == '*' ? !g_uint64_checked_mul (&value, value, step) : !g_uint64_checked_add (&value, value, step))
        break;
    }
  return true;
}

static bool
add_word (PodGrid *grid, const char *key, const char *word, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (word, ":", -1);

  if (has_commas (key) || g_strv_length (parts) != 3 || !g_ascii_isdigit (*parts[0]))
    {
      pod_grid_add_value (grid, key, word);
      return true;
    }
  return add_range (grid, key, word, parts, error);
}

bool
pod_grid_add (PodGrid *grid, const char *text, GError **error)
{
  const char *equals = strchr (text, '=');
  g_autofree char *key = equals != NULL ? g_strstrip (g_strndup (text, (gsize) (equals - text))) : NULL;
  g_auto (GStrv) words = NULL;

  if (key == NULL || *key == '\0')
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "'%s' is not KEY=LIST, such as global-batch=256:4096:*2 or recompute=none,full", text);
      return false;
    }
  if (pod_grid_find (grid, key) != NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "'%s' stands twice", key);
      return false;
    }
  words = g_strsplit (equals + 1, strchr (equals + 1, ';') != NULL || has_commas (key) ? ";" : ",", -1);
  for (unsigned i = 0; words[i] != NULL; i++)
    {
      if (*g_strstrip (words[i]) == '\0')
        {
          if (words[i + 1] == NULL && i > 0) /* "a;" */
            break;
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: a value of '%s' is empty", key, text);
          return false;
        }
      if (!add_word (grid, key, words[i], error))
        {
          g_prefix_error (error, "%s: ", key);
          return false;
        }
    }
  if (pod_grid_find (grid, key) != NULL)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: has no values", key);
  return false;
}

uint64_t
pod_grid_size (const PodGrid *grid)
{
  uint64_t size = 1;

  for (guint i = 0; i < grid->dims->len; i++)
    if (!g_uint64_checked_mul (&size, size, ((PodGridDim *) g_ptr_array_index (grid->dims, i))->values->len))
      return UINT64_MAX;
  return size;
}

const char *
pod_grid_value (const PodGrid *grid, uint64_t index, guint dim)
{
  for (guint i = grid->dims->len - 1; i > dim; i--)
    index /= ((PodGridDim *) g_ptr_array_index (grid->dims, i))->values->len;
  return g_ptr_array_index (((PodGridDim *) g_ptr_array_index (grid->dims, dim))->values, index % ((PodGridDim *) g_ptr_array_index (grid->dims, dim))->values->len);
}
