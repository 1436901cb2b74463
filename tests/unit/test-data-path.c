#include "base/data-path.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <glib/gstdio.h>

static char *folder;

static char *
path_of (const char *name)
{
  return g_build_filename (folder, name, NULL);
}

static void
write_file (const char *name)
{
  g_autofree char *path = path_of (name);
  g_autofree char *parent = g_path_get_dirname (path);

  ck_assert_int_eq (g_mkdir_with_parents (parent, 0700), 0);
  ck_assert (g_file_set_contents (path, name, -1, NULL));
}

/* In the order in which the folder is emptied: files first. */
static const char *const files[]
    = { "a/things/one.xml", "a/things/two.xml", "a/things/note.txt", "a/things/.hidden.xml",
        "a/direct.xml",     "b/things/two.xml", "b/things/zero.xml" };
static const char *const folders[] = { "a/things/three.xml", "a/things", "a", "b/things", "b", "" };

static void
make_folder (void)
{
  folder = g_dir_make_tmp ("podsim-data-XXXXXX", NULL);
  ck_assert_ptr_nonnull (folder);
  for (size_t i = 0; i < G_N_ELEMENTS (files); i++)
    write_file (files[i]);
  g_autofree char *misleading = path_of ("a/things/three.xml"); /* a folder, named as a file */
  ck_assert_int_eq (g_mkdir (misleading, 0700), 0);
  g_autofree char *path = g_strdup_printf (":%s/a:/nonexistent:%s/b:", folder, folder);
  g_setenv ("PODSIM_PATH", path, TRUE);
}

static void
remove_folder (void)
{
  for (size_t i = 0; i < G_N_ELEMENTS (files); i++)
    {
      g_autofree char *path = path_of (files[i]);
      g_unlink (path);
    }
  for (size_t i = 0; i < G_N_ELEMENTS (folders); i++)
    {
      g_autofree char *path = path_of (folders[i]);
      g_rmdir (path);
    }
  g_unsetenv ("PODSIM_PATH");
  g_clear_pointer (&folder, g_free);
}

static const struct
{
  const char *name;
  const char *expected; /* below the folder; NULL: nowhere */
} names[] = {
  { "one", "a/things/one.xml" },
  { "one.xml", "a/things/one.xml" },
  { "two", "a/things/two.xml" }, /* the earlier folder wins */
  { "zero", "b/things/zero.xml" },
  { "direct", "a/direct.xml" },
  { "note.txt", "a/things/note.txt" },
  { "note", NULL },
  { "three", NULL },
  { "things", NULL },
  { "four", NULL },
  { "things/one", NULL }, /* with a '/' it is a path */
  { "..", NULL },
  { "", NULL },
};

START_TEST (name_is_found)
{
  g_autofree char *expected = names[_i].expected != NULL ? path_of (names[_i].expected) : NULL;
  g_autofree char *found = pod_data_find ("things", names[_i].name, ".xml");

  ck_assert_pstr_eq (found, expected);
}
END_TEST

START_TEST (path_is_taken_as_it_is)
{
  g_autofree char *path = path_of ("b/things/two.xml");
  g_autofree char *short_path = path_of ("b/things/two");
  g_autofree char *missing_path = path_of ("b/things/six.xml");
  g_autofree char *found = pod_data_find ("things", path, ".xml");
  g_autofree char *short_found = pod_data_find ("things", short_path, ".xml");

  ck_assert_pstr_eq (found, path);
  ck_assert_pstr_eq (short_found, path);
  ck_assert_ptr_null (pod_data_find ("things", missing_path, ".xml"));
  ck_assert_ptr_null (pod_data_find ("things", folder, ".xml"));
}
END_TEST

START_TEST (source_tree_is_searched)
{
  g_autofree char *expected = g_build_filename (POD_SOURCE_DIR, "src/base/units.h", NULL);

  g_unsetenv ("PODSIM_PATH");
  g_autofree char *found = pod_data_find ("src/base", "units", ".h");
  ck_assert_pstr_eq (found, expected);
  g_autoptr (GPtrArray) list = pod_data_list ("src/base", ".h");
  ck_assert (g_ptr_array_find_with_equal_func (list, "units", g_str_equal, NULL));
}
END_TEST

START_TEST (list_is_sorted_and_unique)
{
  static const char *const expected[] = { "one", "two", "zero" };
  g_autoptr (GPtrArray) list = pod_data_list ("things", ".xml");
  g_autoptr (GPtrArray) empty = pod_data_list ("nonexistent", ".xml");

  ck_assert_uint_eq (list->len, G_N_ELEMENTS (expected));
  for (guint i = 0; i < list->len; i++)
    ck_assert_str_eq (g_ptr_array_index (list, i), expected[i]);
  ck_assert_uint_eq (empty->len, 0);
}
END_TEST

static const struct
{
  const char *wrong;
  const char *expected; /* NULL: nothing near */
} nearest[] = {
  { "h100", "h100" },
  { "H100", "h100" },
  { "h10", "h100" },
  { "h010", "h100" },
  { "tpu-v5", "tpu-v5e" },
  { "tpuv5p", "tpu-v5p" },
  { "TPU-V5P", "tpu-v5p" },
  { "gb2000", "gb200" },
  { "xyz", NULL },
  { "", NULL },
  { "something-else", NULL },
  { "tpu", NULL },
};

START_TEST (nearest_name_is_found)
{
  static const char *const known[] = { "a100", "gb200", "h100", "tpu-v5e", "tpu-v5p" };
  g_autoptr (GPtrArray) list = g_ptr_array_new ();

  for (size_t i = 0; i < G_N_ELEMENTS (known); i++)
    g_ptr_array_add (list, (char *) known[i]);
  ck_assert_pstr_eq (pod_data_nearest (list, nearest[_i].wrong), nearest[_i].expected);
}
END_TEST

START_TEST (endless_name_is_nothing)
{
  g_autoptr (GPtrArray) list = g_ptr_array_new ();
  g_autofree char *wrong = g_strnfill (1000000, 'h');

  g_ptr_array_add (list, wrong);
  ck_assert_ptr_null (pod_data_nearest (list, wrong));
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("data-path");
  TCase *tcase = tcase_create ("data-path");

  tcase_add_checked_fixture (tcase, make_folder, remove_folder);
  tcase_add_loop_test (tcase, name_is_found, 0, G_N_ELEMENTS (names));
  tcase_add_test (tcase, path_is_taken_as_it_is);
  tcase_add_test (tcase, source_tree_is_searched);
  tcase_add_test (tcase, list_is_sorted_and_unique);
  tcase_add_loop_test (tcase, nearest_name_is_found, 0, G_N_ELEMENTS (nearest));
  tcase_add_test (tcase, endless_name_is_nothing);
  suite_add_tcase (suite, tcase);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (make_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
