#include "base/output.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>
#include <glib/gstdio.h>
#include <zlib.h>

#include "base/error.h"

static char *folder;

static char *
path_of (const char *name)
{
  return g_build_filename (folder, name, NULL);
}

static void
make_folder (void)
{
  folder = g_dir_make_tmp ("podsim-output-XXXXXX", NULL);
  ck_assert_ptr_nonnull (folder);
}

/* The names in the folder, sorted and joined: "a b". Returns: (transfer full) */
static char *
list_folder (void)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  g_autoptr (GSequence) names = g_sequence_new (g_free);
  GString *list = g_string_new (NULL);

  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir))
    g_sequence_insert_sorted (names, g_strdup (name), (GCompareDataFunc) (void (*) (void)) strcmp,
                              NULL);
  for (GSequenceIter *i = g_sequence_get_begin_iter (names); !g_sequence_iter_is_end (i);
       i = g_sequence_iter_next (i))
    g_string_append_printf (list, "%s%s", list->len > 0 ? " " : "",
                            (const char *) g_sequence_get (i));
  return g_string_free (list, FALSE);
}

static void
remove_folder (void)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);

  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir))
    {
      g_autofree char *path = path_of (name);
      g_remove (path);
    }
  g_rmdir (folder);
  g_clear_pointer (&folder, g_free);
}

static void
assert_holds (const char *path, const char *expected)
{
  g_autofree char *text = NULL;

  ck_assert (g_file_get_contents (path, &text, NULL, NULL));
  ck_assert_str_eq (text, expected);
}

static void
assert_folder_holds (const char *expected)
{
  g_autofree char *list = list_folder ();

  ck_assert_str_eq (list, expected);
}

START_TEST (file_appears_on_close)
{
  g_autofree char *path = path_of ("a.json");
  g_autoptr (GError) error = NULL;
  struct stat status;

  umask (022);
  PodOutput *output = pod_output_open (path, false, &error);
  ck_assert_ptr_nonnull (output);
  pod_output_printf (output, "%d %s\n", 7, "seven");
  pod_output_write (output, "end", 3);
  ck_assert (!g_file_test (path, G_FILE_TEST_EXISTS));
  ck_assert (pod_output_close (output, &error));
  assert_holds (path, "7 seven\nend");
  assert_folder_holds ("a.json");
  ck_assert_int_eq (stat (path, &status), 0);
  ck_assert_uint_eq (status.st_mode & 0777, 0644);
}
END_TEST

START_TEST (large_output_is_whole)
{
  g_autofree char *path = path_of ("large");
  g_autofree char *text = g_strnfill (300001, 'x');
  PodOutput *output = pod_output_open (path, false, NULL);

  pod_output_write (output, text, 100000);
  pod_output_write (output, text, 200001);
  ck_assert (pod_output_close (output, NULL));
  assert_holds (path, text);
}
END_TEST

START_TEST (abandoned_file_leaves_the_old_one)
{
  g_autofree char *path = path_of ("a.json");

  ck_assert (pod_output_save (path, "old", NULL));
  PodOutput *output = pod_output_open (path, false, NULL);
  pod_output_write (output, "new", 3);
  pod_output_abandon (output);
  pod_output_abandon (NULL);
  assert_holds (path, "old");
  assert_folder_holds ("a.json");
}
END_TEST

START_TEST (link_and_permissions_are_kept)
{
  g_autofree char *path = path_of ("real");
  g_autofree char *link_path = path_of ("link");
  struct stat status;

  ck_assert (pod_output_save (path, "old", NULL));
  ck_assert_int_eq (chmod (path, 0600), 0);
  ck_assert_int_eq (symlink ("real", link_path), 0);
  ck_assert (pod_output_save (link_path, "new", NULL));
  assert_holds (path, "new");
  ck_assert_int_eq (lstat (link_path, &status), 0);
  ck_assert (S_ISLNK (status.st_mode));
  ck_assert_int_eq (stat (path, &status), 0);
  ck_assert_uint_eq (status.st_mode & 0777, 0600);
}
END_TEST

static const struct
{
  const char *name;
  const char *expected;
} partial_names[] = {
  { "trace.json", "trace.partial.json" }, { "trace.json.gz", "trace.partial.json.gz" },
  { "trace", "trace.partial" },           { "trace.gz", "trace.partial.gz" },
  { ".trace", ".trace.partial" },
};

START_TEST (partial_file_says_so)
{
  g_autofree char *path = path_of (partial_names[_i].name);
  g_autofree char *expected = path_of (partial_names[_i].expected);
  PodOutput *output = pod_output_open (path, false, NULL);

  pod_output_write (output, "half", 4);
  ck_assert (pod_output_keep_partial (output, NULL));
  assert_holds (expected, "half");
  assert_folder_holds (partial_names[_i].expected);
}
END_TEST

/* Returns: (transfer full) the bytes of @text gzipped into a file of that name */
static GBytes *
save_gzipped (const char *name, const char *text)
{
  g_autofree char *path = path_of (name);
  PodOutput *output = pod_output_open (path, true, NULL);
  char *bytes = NULL;
  size_t n_bytes = 0;

  pod_output_write (output, text, strlen (text));
  ck_assert (pod_output_close (output, NULL));
  ck_assert (g_file_get_contents (path, &bytes, &n_bytes, NULL));
  return g_bytes_new_take (bytes, n_bytes);
}

START_TEST (gzip_is_reproducible)
{
  g_autoptr (GString) text = g_string_new (NULL);
  for (int i = 0; i < 50000; i++)
    g_string_append_printf (text, "%d,", i * 7919 % 10007);
  g_autoptr (GBytes) first = save_gzipped ("first.gz", text->str);
  g_autoptr (GBytes) second = save_gzipped ("second.gz", text->str);
  const uint8_t *bytes = g_bytes_get_data (first, NULL);

  ck_assert (g_bytes_equal (first, second));
  ck_assert_uint_lt (g_bytes_get_size (first), text->len);
  ck_assert_uint_eq (bytes[3], 0);             /* no name, no comment */
  ck_assert_mem_eq (bytes + 4, "\0\0\0\0", 4); /* no time */

  g_autofree char *path = path_of ("first.gz");
  g_autofree char *back = g_malloc (text->len + 1);
  gzFile file = gzopen (path, "rb");
  ck_assert_int_eq (gzread (file, back, (unsigned) text->len + 1), (int) text->len);
  gzclose (file);
  ck_assert_mem_eq (back, text->str, text->len);
}
END_TEST

START_TEST (devices_are_written_directly)
{
  struct stat status;

  ck_assert (pod_output_save ("/dev/null", "text", NULL));
  ck_assert_int_eq (stat ("/dev/null", &status), 0);
  ck_assert (S_ISCHR (status.st_mode));
}
END_TEST

START_TEST (fifo_is_written_directly)
{
  g_autofree char *path = path_of ("fifo");
  char text[8] = "";

  ck_assert_int_eq (mkfifo (path, 0600), 0);
  int fd = open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ck_assert (pod_output_save (path, "text", NULL));
  ck_assert_int_eq (read (fd, text, sizeof text), 4);
  close (fd);
  ck_assert_str_eq (text, "text");
  assert_folder_holds ("fifo");
}
END_TEST

START_TEST (full_disk_is_reported_on_close)
{
  for (int i = 0; i < 4; i++)
    {
      size_t n_bytes = i < 2 ? 10 : 500000; /* within the buffer and far beyond it */
      g_autofree uint8_t *bytes = g_malloc (n_bytes);
      g_autoptr (GRand) random = g_rand_new_with_seed (1);
      g_autoptr (GError) error = NULL;
      PodOutput *output = pod_output_open ("/dev/full", i % 2 == 1, &error);
      for (size_t j = 0; j < n_bytes; j++)
        bytes[j] = (uint8_t) g_rand_int (random);
      ck_assert_ptr_nonnull (output);
      pod_output_write (output, bytes, n_bytes);
      pod_output_write (output, bytes, n_bytes);
      ck_assert (!pod_output_close (output, &error));
      ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_IO));
      ck_assert_str_eq (error->message, "/dev/full: cannot write: No space left on device");
    }
}
END_TEST

static const struct
{
  const char *name; /* below the folder; absolute as it is */
  const char *message;
} bad_targets[] = {
  { "no/where.json", "%s: cannot write: No such file or directory" },
  { "", "%s: cannot write: Is a directory" },
  { "file/below", "%s: cannot write: Not a directory" },
};

START_TEST (bad_target_is_refused)
{
  g_autofree char *file = path_of ("file");
  g_autofree char *path = g_strconcat (folder, "/", bad_targets[_i].name, NULL);
  g_auto (GStrv) parts = g_strsplit (bad_targets[_i].message, "%s", 2);
  g_autofree char *message = g_strconcat (parts[0], path, parts[1], NULL);
  g_autoptr (GError) error = NULL;

  ck_assert (pod_output_save (file, "", NULL));
  ck_assert_ptr_null (pod_output_open (path, false, &error));
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_IO));
  ck_assert_str_eq (error->message, message);
  assert_folder_holds ("file");
}
END_TEST

START_TEST (dash_is_stdout)
{
  g_autofree char *path = path_of ("stdout");
  int saved_fd = dup (STDOUT_FILENO);
  int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

  fflush (stdout);
  dup2 (fd, STDOUT_FILENO);
  close (fd);
  PodOutput *output = pod_output_open ("-", false, NULL);
  pod_output_write (output, "one ", 4);
  bool is_good = pod_output_close (output, NULL) && pod_output_save ("-", "two", NULL);
  dup2 (saved_fd, STDOUT_FILENO);
  close (saved_fd);
  ck_assert (is_good);
  assert_holds (path, "one two");
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("output");
  TCase *tcase = tcase_create ("output");

  tcase_add_checked_fixture (tcase, make_folder, remove_folder);
  tcase_add_test (tcase, file_appears_on_close);
  tcase_add_test (tcase, large_output_is_whole);
  tcase_add_test (tcase, abandoned_file_leaves_the_old_one);
  tcase_add_test (tcase, link_and_permissions_are_kept);
  tcase_add_loop_test (tcase, partial_file_says_so, 0, G_N_ELEMENTS (partial_names));
  tcase_add_test (tcase, gzip_is_reproducible);
  tcase_add_test (tcase, devices_are_written_directly);
  tcase_add_test (tcase, fifo_is_written_directly);
  tcase_add_test (tcase, full_disk_is_reported_on_close);
  tcase_add_loop_test (tcase, bad_target_is_refused, 0, G_N_ELEMENTS (bad_targets));
  tcase_add_test (tcase, dash_is_stdout);
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
