#include "base/data-path.h"

#include <stdbool.h>
#include <string.h>

static bool
is_file (const char *path)
{
  return g_file_test (path, G_FILE_TEST_EXISTS) && !g_file_test (path, G_FILE_TEST_IS_DIR);
}

/* @folder/@name, with or without @suffix; @folder is "" for the working directory or a whole path.
 * Returns: (transfer full) (nullable) */
static char *
try_name (const char *folder, const char *name, const char *suffix)
{
  g_autofree char *path = *folder != '\0' ? g_build_filename (folder, name, NULL) : g_strdup (name);
  g_autofree char *longer = g_strconcat (path, suffix, NULL);

  if (is_file (path))
    return g_steal_pointer (&path);
  return is_file (longer) ? g_steal_pointer (&longer) : NULL;
}

/* The user's folders, none when PODSIM_PATH is unset. Returns: (transfer full) */
static char **
user_folders (void)
{
  const char *path = g_getenv ("PODSIM_PATH");

  return g_strsplit (path != NULL ? path : "", ":", -1);
}

/* Returns: (transfer full) (nullable) */
static char *
try_user_folders (const char *subfolder, const char *name, const char *suffix)
{
  g_auto (GStrv) folders = user_folders ();
  char *found = NULL;

  for (size_t i = 0; folders[i] != NULL && found == NULL; i++)
    {
      if (*folders[i] == '\0')
        continue;
      g_autofree char *inner = g_build_filename (folders[i], subfolder, NULL);
      found = try_name (folders[i], name, suffix);
      if (found == NULL)
        found = try_name (inner, name, suffix);
    }
  return found;
}

char *
pod_data_find (const char *subfolder, const char *name, const char *suffix)
{
  static const char *const own_folders[] = { POD_SOURCE_DIR, POD_DATA_DIR };

  g_return_val_if_fail (subfolder != NULL && name != NULL && suffix != NULL, NULL);

  if (*name == '\0')
    return NULL;
  if (strchr (name, G_DIR_SEPARATOR) != NULL)
    return try_name ("", name, suffix);
  if (is_file (name))
    return g_strdup (name);
  char *found = try_user_folders (subfolder, name, suffix);
  for (size_t i = 0; i < G_N_ELEMENTS (own_folders) && found == NULL; i++)
    {
      g_autofree char *folder = g_build_filename (own_folders[i], subfolder, NULL);
      found = try_name (folder, name, suffix);
    }
  return found;
}

static void
add_folder (GPtrArray *names, const char *parent, const char *subfolder, const char *suffix)
{
  g_autofree char *folder = g_build_filename (parent, subfolder, NULL);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);

  if (dir == NULL)
    return;
  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir))
    {
      g_autofree char *path = g_build_filename (folder, name, NULL);
      if (*name != '.' && g_str_has_suffix (name, suffix) && is_file (path))
        g_ptr_array_add (names, g_strndup (name, strlen (name) - strlen (suffix)));
    }
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

GPtrArray *
pod_data_list (const char *subfolder, const char *suffix)
{
  g_return_val_if_fail (subfolder != NULL && suffix != NULL, NULL);

  g_autoptr (GPtrArray) all = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) folders = user_folders ();
  for (size_t i = 0; folders[i] != NULL; i++)
    if (*folders[i] != '\0')
      add_folder (all, folders[i], subfolder, suffix);
  add_folder (all, POD_SOURCE_DIR, subfolder, suffix);
  add_folder (all, POD_DATA_DIR, subfolder, suffix);
  g_ptr_array_sort (all, compare_names);

  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < all->len; i++)
    {
      const char *name = g_ptr_array_index (all, i);
      if (i == 0 || !g_str_equal (name, g_ptr_array_index (all, i - 1)))
        g_ptr_array_add (names, g_strdup (name));
    }
  return names;
}

/* Insertions, deletions, replacements and swaps of neighbours from @a to @b. O(length of a * of b).
 */
static size_t
edit_distance (const char *a, const char *b)
{
  size_t n_columns = strlen (b) + 1;
  size_t n_rows = strlen (a) + 1;
  g_autofree size_t *cells = g_new (size_t, n_rows * n_columns);

  for (size_t i = 0; i < n_rows; i++)
    for (size_t j = 0; j < n_columns; j++)
      {
        size_t *cell = &cells[i * n_columns + j];
        if (i == 0 || j == 0)
          {
            *cell = i + j;
            continue;
          }
        size_t replaced = cells[(i - 1) * n_columns + j - 1] + (a[i - 1] != b[j - 1]);
        size_t deleted = cells[(i - 1) * n_columns + j] + 1;
        size_t inserted = cells[i * n_columns + j - 1] + 1;
        *cell = MIN (replaced, MIN (deleted, inserted));
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
          *cell = MIN (*cell, cells[(i - 2) * n_columns + j - 2] + 1);
      }
  return cells[n_rows * n_columns - 1];
}

const char *
pod_data_nearest (GPtrArray *names, const char *wrong)
{
  enum
  {
    MAX_DISTANCE = 3,
    MAX_WRONG_BYTES = 256, /* what is longer is no misspelt name */
  };
  const char *nearest = NULL;
  size_t nearest_distance = MAX_DISTANCE + 1;

  g_return_val_if_fail (names != NULL && wrong != NULL, NULL);

  size_t n_wrong_bytes = strlen (wrong);
  if (n_wrong_bytes > MAX_WRONG_BYTES)
    return NULL;
  g_autofree char *folded_wrong = g_ascii_strdown (wrong, -1);
  for (guint i = 0; i < names->len; i++)
    {
      const char *name = g_ptr_array_index (names, i);
      size_t n_bytes = strlen (name);
      size_t n_longer = MAX (n_bytes, n_wrong_bytes);
      if (n_longer - MIN (n_bytes, n_wrong_bytes) > MAX_DISTANCE)
        continue;
      g_autofree char *folded_name = g_ascii_strdown (name, -1);
      size_t distance = edit_distance (folded_wrong, folded_name);
      /* With nothing kept, "abc" is no misspelt "xyz". */
      if (distance < nearest_distance && distance < n_longer)
        {
          nearest = name;
          nearest_distance = distance;
        }
    }
  return nearest;
}
