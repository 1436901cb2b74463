#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>
#include <glib/gstdio.h>
#include <zlib.h>

#include "base/error.h"

static char *folder;

static void
make_folder (void)
{
  folder = g_dir_make_tmp ("podsim-json-XXXXXX", NULL);
  ck_assert_ptr_nonnull (folder);
}

static void
remove_folder (void)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);

  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir))
    {
      g_autofree char *path = g_build_filename (folder, name, NULL);
      g_remove (path);
    }
  g_rmdir (folder);
  g_clear_pointer (&folder, g_free);
}

static const struct
{
  const char *text;
  const char *line;
} good_texts[] = {
  { "{}", "{}" },
  { " [ ] \n", "[]" },
  { "\xef\xbb\xbf[1]", "[1]" },
  { "[1,-2,0,-0]", "[1,-2,0,-0]" },
  { "[9223372036854775807,-9223372036854775808]", "[9223372036854775807,-9223372036854775808]" },
  { "[18446744073709551615]", "[1.8446744073709552e+19]" },
  { "[0.1,1e3,1E-2,2.50]", "[0.1,1000,0.01,2.5]" },
  { "[true,false,null]", "[true,false,null]" },
  { "{\"b\":1,\"a\":{\"c\":[\"x\"]}}", "{\"b\":1,\"a\":{\"c\":[\"x\"]}}" },
  { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"",
    "\"\\\"\\\\/\\u0008\\u000c\\u000a\\u000d\\u0009\u00e9\U0001f600\"" },
};

START_TEST (text_is_read)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodJson) json = pod_json_parse ("t.json", good_texts[_i].text, -1, &error);

  ck_assert_msg (json != NULL, "%s", json == NULL ? error->message : "");
  g_autofree char *line = pod_json_to_line (json->root);
  ck_assert_str_eq (line, good_texts[_i].line);
}
END_TEST

static const struct
{
  const char *text;
  const char *message;
} bad_texts[] = {
  { "", "t.json:1: expected a value, got the end of the text" },
  { "{\n\"a\": 1,\n}", "t.json:3: expected a key in double quotes, got '}'" },
  { "[1,\n2,]", "t.json:2: expected a value, got ']'" },
  { "[1\n2]", "t.json:2: expected ',' or ']', got \"2\"" },
  { "{\"a\" 1}", "t.json:1: expected ':' behind the key, got \"1\"" },
  { "{\"a\":1\n", "t.json:2: expected ',' or '}', got the end of the text" },
  { "{a:1}", "t.json:1: expected a key in double quotes, got \"a\"" },
  { "{'a':1}", "t.json:1: expected a key in double quotes, got '''" },
  { "{\n\"a\":1,\n\"a\":2}", "t.json:3: key \"a\" stands twice in one object" },
  { "[1]\n\n[2]", "t.json:3: expected nothing behind the value, got '['" },
  { "{\"x\":\n NaN}", "t.json:2: NaN is no JSON number" },
  { "[Infinity]", "t.json:1: Infinity is no JSON number" },
  { "[\n-Infinity]", "t.json:2: -Infinity is no JSON number" },
  { "[1e400]", "t.json:1: number out of range: 1e400" },
  { "[0x10]", "t.json:1: expected a number, got \"0x10\"" },
  { "[010]", "t.json:1: expected a number, got \"010\"" },
  { "[.5]", "t.json:1: expected a value, got \".5\"" },
  { "[1.]", "t.json:1: expected a number, got \"1.\"" },
  { "[+1]", "t.json:1: expected a value, got \"+1\"" },
  { "[-]", "t.json:1: expected a number, got \"-\"" },
  { "[1e]", "t.json:1: expected a number, got \"1e\"" },
  { "[truth]", "t.json:1: expected a value, got \"truth\"" },
  { "/* c */ [1]", "t.json:1: expected a value, got '/'" },
  { "[\n\"ab\nc\"]", "t.json:2: string without an end" },
  { "[\"ab", "t.json:1: string without an end" },
  { "[\"a\tb\"]", "t.json:1: control byte 0x09 in a string" },
  { "[\"\\q\"]", "t.json:1: expected one of \"\\/bfnrtu behind a backslash, got \"q\"" },
  { "[\"\\u12g4\"]", "t.json:1: \\u needs four hexadecimal digits" },
  { "[\"\\ud83d\"]", "t.json:1: half of a surrogate pair: \\ud83d" },
  { "[\"\\ude00\"]", "t.json:1: half of a surrogate pair: \\ude00" },
  { "[\"\\u0000\"]", "t.json:1: \\u0000 in a string" },
  { "[\n\"\xff\"]", "t.json:2: byte 0xff is not UTF-8 text" },
};

START_TEST (bad_text_is_refused)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodJson) json = pod_json_parse ("t.json", bad_texts[_i].text, -1, &error);

  ck_assert_ptr_null (json);
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_PARSE));
  ck_assert_str_eq (error->message, bad_texts[_i].message);
}
END_TEST

START_TEST (nul_byte_is_refused)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodJson) json = pod_json_parse ("t.json", "[1,\n\0 2]", 8, &error);

  ck_assert_ptr_null (json);
  ck_assert_str_eq (error->message, "t.json:2: byte 0x00 is not UTF-8 text");
}
END_TEST

START_TEST (depth_is_bounded)
{
  g_autofree char *deep = g_strnfill (300000, '[');
  g_autofree char *open = g_strnfill (256, '[');
  g_autofree char *close = g_strnfill (256, ']');
  g_autofree char *legal = g_strconcat (open, close, NULL);
  g_autoptr (GError) error = NULL;

  ck_assert_ptr_null (pod_json_parse ("t.json", deep, -1, &error));
  ck_assert_str_eq (error->message, "t.json:1: nested deeper than 256");
  g_autoptr (PodJson) json = pod_json_parse ("t.json", legal, -1, NULL);
  ck_assert_ptr_nonnull (json);
}
END_TEST

/* Writes @n_bytes of @data into a file of the folder. Returns: (transfer full) its path */
static char *
write_file (const char *name, const void *data, gssize n_bytes)
{
  char *path = g_build_filename (folder, name, NULL);

  ck_assert (g_file_set_contents (path, data, n_bytes, NULL));
  return path;
}

/* Returns: (transfer full) the gzip stream of @text */
static unsigned char *
compress_text (const char *text, size_t n_text_bytes, size_t *out_n_bytes)
{
  size_t n_room = n_text_bytes + 200;
  unsigned char *bytes = g_malloc (n_room);
  z_stream stream = { .next_in = (z_const Bytef *) text,
                      .avail_in = (uInt) n_text_bytes,
                      .next_out = bytes,
                      .avail_out = (uInt) n_room };

  ck_assert_int_eq (deflateInit2 (&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
                    Z_OK);
  ck_assert_int_eq (deflate (&stream, Z_FINISH), Z_STREAM_END);
  *out_n_bytes = stream.total_out;
  deflateEnd (&stream);
  return bytes;
}

static void
assert_load_fails (const char *path, const char *message_after_path)
{
  g_autofree char *message = g_strconcat (path, message_after_path, NULL);
  g_autoptr (GError) error = NULL;

  ck_assert_ptr_null (pod_json_load (path, &error));
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_PARSE));
  ck_assert_str_eq (error->message, message);
}

START_TEST (files_are_read)
{
  size_t n_bytes = 0;
  g_autofree unsigned char *bytes = compress_text ("{\"a\":7}", 7, &n_bytes);
  g_autofree unsigned char *doubled = g_malloc (2 * n_bytes);
  g_autofree char *plain = write_file ("plain.json", "{\"a\":7}", -1);
  g_autofree char *packed = write_file ("packed.json", bytes, (gssize) n_bytes);
  g_autoptr (PodJson) json = pod_json_load (plain, NULL);
  g_autoptr (PodJson) packed_json = pod_json_load (packed, NULL);

  ck_assert_ptr_nonnull (json);
  ck_assert_str_eq (json->file, plain);
  ck_assert_ptr_nonnull (packed_json);
  ck_assert_str_eq (packed_json->text, "{\"a\":7}");

  /* Two members, as `cat a.gz b.gz` makes them */
  memcpy (doubled, bytes, n_bytes);
  memcpy (doubled + n_bytes, bytes, n_bytes);
  g_autofree char *twice = write_file ("twice.gz", doubled, (gssize) (2 * n_bytes));
  assert_load_fails (twice, ":1: expected nothing behind the value, got '{'");
}
END_TEST

START_TEST (bad_gzip_is_refused)
{
  size_t n_bytes = 0;
  g_autofree unsigned char *bytes = compress_text ("{\"a\":7}", 7, &n_bytes);
  g_autofree char *truncated = write_file ("truncated.gz", bytes, (gssize) n_bytes - 3);
  g_autofree char *expected = g_strdup_printf (": gzip stream ends early at byte %zu", n_bytes - 3);
  g_autofree char *tiny = write_file ("tiny.gz", bytes, 2);

  assert_load_fails (truncated, expected);
  assert_load_fails (tiny, ": gzip stream ends early at byte 2");
  bytes[n_bytes - 5] ^= 1; /* in the checksum */
  g_autofree char *damaged = write_file ("damaged.gz", bytes, (gssize) n_bytes);
  g_autoptr (GError) error = NULL;
  ck_assert_ptr_null (pod_json_load (damaged, &error));
  ck_assert_ptr_nonnull (strstr (error->message, "gzip stream is damaged at byte"));
  ck_assert_ptr_nonnull (strstr (error->message, "incorrect data check"));
}
END_TEST

START_TEST (gzip_bomb_is_refused)
{
  size_t n_blanks = (size_t) 65 << 20;
  size_t n_bytes = 0;
  g_autofree char *blanks = g_strnfill (n_blanks, ' ');
  g_autofree unsigned char *bytes = compress_text (blanks, n_blanks, &n_bytes);
  g_autofree char *path = write_file ("bomb.gz", bytes, (gssize) n_bytes);

  assert_load_fails (path, ": too big: the gzip stream holds over 67108864 bytes");
}
END_TEST

START_TEST (what_is_no_file_is_refused)
{
  g_autofree char *missing = g_build_filename (folder, "missing.json", NULL);
  g_autofree char *fifo = g_build_filename (folder, "fifo", NULL);
  g_autofree char *huge = write_file ("huge.json", "[", 1);

  ck_assert_int_eq (mkfifo (fifo, 0600), 0);
  ck_assert_int_eq (truncate (huge, (off_t) 200 << 20), 0); /* sparse: costs no disk */
  assert_load_fails (missing, ": cannot open: No such file or directory");
  assert_load_fails (folder, ": is a directory, expected a file");
  assert_load_fails (fifo, ": is not a regular file");
  assert_load_fails ("/dev/zero", ": is not a regular file");
  assert_load_fails (huge, ": too big: 209715200 bytes, at most 67108864 are read");
}
END_TEST

static const char document[] = "{\n"
                               "  \"name\": \"layers\",\n"
                               "  \"layers\": 80,\n"
                               "  \"ratio\": 0.5,\n"
                               "  \"whole\": 1e6,\n"
                               "  \"below\": -3,\n"
                               "  \"is_tied\" : true,\n"
                               "  \"nothing\": null,\n"
                               "  \"huge\": 18446744073709551615,\n"
                               "  \"list\": [\"a\\\"b\", 2]\n"
                               "}\n";

START_TEST (line_of_a_key)
{
  g_autoptr (PodJson) json = pod_json_parse ("d.json", document, -1, NULL);

  ck_assert_uint_eq (pod_json_line_of (json, "name"), 2);
  ck_assert_uint_eq (pod_json_line_of (json, "layers"), 3); /* not where it is a value */
  ck_assert_uint_eq (pod_json_line_of (json, "is_tied"), 7);
  ck_assert_uint_eq (pod_json_line_of (json, "list"), 10);
  ck_assert_uint_eq (pod_json_line_of (json, "lay"), 1);
  ck_assert_uint_eq (pod_json_line_of (json, "absent"), 1);
}
END_TEST

START_TEST (values_are_got)
{
  g_autoptr (PodJson) json = pod_json_parse ("d.json", document, -1, NULL);
  JsonObject *object = json_node_get_object (json->root);
  uint64_t whole = 0;
  double number = 0;
  bool is_true = false;
  const char *text = NULL;

  ck_assert (pod_json_has (object, "layers"));
  ck_assert (!pod_json_has (object, "nothing"));
  ck_assert (!pod_json_has (object, "absent"));
  ck_assert (pod_json_get_uint (json, object, "layers", &whole, NULL) && whole == 80);
  ck_assert (pod_json_get_uint (json, object, "whole", &whole, NULL) && whole == 1000000);
  ck_assert (pod_json_get_double (json, object, "layers", &number, NULL) && number == 80);
  ck_assert (pod_json_get_double (json, object, "ratio", &number, NULL) && number == 0.5);
  ck_assert (pod_json_get_bool (json, object, "is_tied", &is_true, NULL) && is_true);
  ck_assert (pod_json_get_string (json, object, "name", &text, NULL));
  ck_assert_str_eq (text, "layers");
}
END_TEST

static const struct
{
  char getter; /* u d b s */
  const char *key;
  const char *message;
} bad_values[] = {
  { 'u', "ratio", "d.json:4: ratio: expected a whole number >= 0, got 0.5" },
  { 'u', "below", "d.json:6: below: expected a whole number >= 0, got -3" },
  { 'u', "name", "d.json:2: name: expected a whole number >= 0, got \"layers\"" },
  { 'u', "huge", "d.json:9: huge: expected a whole number >= 0, got 1.8446744073709552e+19" },
  { 'u', "absent", "d.json:1: absent: missing, expected a whole number >= 0" },
  { 'd', "nothing", "d.json:8: nothing: expected a number, got null" },
  { 'd', "is_tied", "d.json:7: is_tied: expected a number, got true" },
  { 'b', "layers", "d.json:3: layers: expected true or false, got 80" },
  { 's', "list", "d.json:10: list: expected a string, got [\"a\\\"b\",2]" },
};

START_TEST (bad_value_is_refused)
{
  g_autoptr (PodJson) json = pod_json_parse ("d.json", document, -1, NULL);
  JsonObject *object = json_node_get_object (json->root);
  const char *key = bad_values[_i].key;
  g_autoptr (GError) error = NULL;
  uint64_t whole = 0;
  double number = 0;
  bool is_true = false;
  const char *text = NULL;
  bool is_good = true;

  switch (bad_values[_i].getter)
    {
    case 'u':
      is_good = pod_json_get_uint (json, object, key, &whole, &error);
      break;
    case 'd':
      is_good = pod_json_get_double (json, object, key, &number, &error);
      break;
    case 'b':
      is_good = pod_json_get_bool (json, object, key, &is_true, &error);
      break;
    default:
      is_good = pod_json_get_string (json, object, key, &text, &error);
      break;
    }
  ck_assert (!is_good);
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_INVALID));
  ck_assert_str_eq (error->message, bad_values[_i].message);
}
END_TEST

START_TEST (result_is_built_and_written)
{
  g_autoptr (JsonObject) root = json_object_new ();
  double value = 0;

  pod_result_set_int (root, "schema_version", 1);
  pod_result_set_double (root, "step.time_s", 0.25);
  pod_result_set_string (root, "step.name", "a\"b");
  pod_result_set_bool (root, "memory.does_fit", true);
  pod_result_set_double (root, "step.mfu_ratio", (double) NAN);
  pod_result_set_double (root, "step.time_s", 0.5); /* keeps its place */
  json_array_add_int_element (pod_result_get_array (root, "memory.peaks_bytes"), 3);
  json_array_add_int_element (pod_result_get_array (root, "memory.peaks_bytes"), 4);
  pod_result_get_array (root, "warnings");
  json_object_set_object_member (root, "empty", json_object_new ());

  g_autoptr (JsonNode) node = json_node_init_object (json_node_alloc (), root);
  g_autofree char *text = pod_json_to_text (node);
  ck_assert_str_eq (text, "{\n"
                          "  \"schema_version\": 1,\n"
                          "  \"step\": {\n"
                          "    \"time_s\": 0.5,\n"
                          "    \"name\": \"a\\\"b\",\n"
                          "    \"mfu_ratio\": null\n"
                          "  },\n"
                          "  \"memory\": {\n"
                          "    \"does_fit\": true,\n"
                          "    \"peaks_bytes\": [\n"
                          "      3,\n"
                          "      4\n"
                          "    ]\n"
                          "  },\n"
                          "  \"warnings\": [],\n"
                          "  \"empty\": {}\n"
                          "}\n");
  ck_assert (pod_result_get_double (root, "step.time_s", &value) && value == 0.5);
  ck_assert (pod_result_get_double (root, "schema_version", &value) && value == 1);
  ck_assert (!pod_result_get_double (root, "step.mfu_ratio", &value));
  ck_assert (!pod_result_get_double (root, "step.name", &value));
  ck_assert (!pod_result_get_double (root, "step", &value));
  ck_assert (!pod_result_get_double (root, "step.time_s.x", &value));
  ck_assert (!pod_result_get_double (root, "no.where", &value));
}
END_TEST

START_TEST (string_is_made_valid)
{
  g_autoptr (GString) out = g_string_new (NULL);

  pod_json_append_string (out, "a\xff\xc3z\xe2\x82\n\x7f\u00e9\\");
  ck_assert_str_eq (out->str, "\"a\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\\u000a\\u007f"
                              "\u00e9\\\\\"");
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("json");
  TCase *text_case = tcase_create ("text");
  TCase *file_case = tcase_create ("file");

  tcase_add_loop_test (text_case, text_is_read, 0, G_N_ELEMENTS (good_texts));
  tcase_add_loop_test (text_case, bad_text_is_refused, 0, G_N_ELEMENTS (bad_texts));
  tcase_add_test (text_case, nul_byte_is_refused);
  tcase_add_test (text_case, depth_is_bounded);
  tcase_add_test (text_case, line_of_a_key);
  tcase_add_test (text_case, values_are_got);
  tcase_add_loop_test (text_case, bad_value_is_refused, 0, G_N_ELEMENTS (bad_values));
  tcase_add_test (text_case, result_is_built_and_written);
  tcase_add_test (text_case, string_is_made_valid);
  suite_add_tcase (suite, text_case);
  tcase_add_checked_fixture (file_case, make_folder, remove_folder);
  tcase_set_timeout (file_case, 60); /* valgrind packs the bomb slowly */
  tcase_add_test (file_case, files_are_read);
  tcase_add_test (file_case, bad_gzip_is_refused);
  tcase_add_test (file_case, gzip_bomb_is_refused);
  tcase_add_test (file_case, what_is_no_file_is_refused);
  suite_add_tcase (suite, file_case);
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
