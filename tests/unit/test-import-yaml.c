#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/error.h"

static PodYaml *
parse (const char *text)
{
  g_autoptr (GError) error = NULL;
  PodYaml *yaml = pod_yaml_parse ("f.yml", text, strlen (text), &error);

  ck_assert_msg (yaml != NULL, "%s", error != NULL ? error->message : "");
  return yaml;
}

START_TEST (test_tree)
{
  g_autoptr (PodYaml) yaml = parse ("# a comment\n"
                                    "name: ring  # another\n"
                                    "list: [ 1, 2.5, x ]\n"
                                    "deep:\n"
                                    "  - a: true\n"
                                    "    b: \"12\"\n"
                                    "  - ~\n"
                                    "text: |\n"
                                    "  two\n"
                                    "  lines\n");
  const PodYamlNode *root = yaml->root;
  const PodYamlNode *list = pod_yaml_get (root, "list");
  const PodYamlNode *deep = pod_yaml_get (root, "deep");
  double number = 0;
  uint64_t whole = 0;
  bool flag = false;

  ck_assert_int_eq (root->kind, POD_YAML_MAPPING);
  ck_assert_uint_eq (pod_yaml_length (root), 4);
  ck_assert_str_eq (pod_yaml_text (yaml, pod_yaml_get (root, "name"), NULL), "ring");
  ck_assert_uint_eq (pod_yaml_length (list), 3);
  ck_assert_uint_eq (list->line, 3);
  ck_assert (pod_yaml_uint (yaml, pod_yaml_item (list, 0), &whole, NULL) && whole == 1);
  ck_assert (pod_yaml_double (yaml, pod_yaml_item (list, 1), &number, NULL));
  ck_assert_double_eq (number, 2.5);
  ck_assert_int_eq (deep->kind, POD_YAML_SEQUENCE);
  ck_assert_uint_eq (pod_yaml_item (deep, 0)->line, 5);
  ck_assert (pod_yaml_bool (yaml, pod_yaml_get (pod_yaml_item (deep, 0), "a"), &flag, NULL)
             && flag);
  ck_assert (pod_yaml_is_null (pod_yaml_item (deep, 1)));
  ck_assert (!pod_yaml_is_null (pod_yaml_item (deep, 0)));
  ck_assert_str_eq (pod_yaml_get (root, "text")->text, "two\nlines\n");
  ck_assert_ptr_null (pod_yaml_get (root, "none"));
  ck_assert_ptr_null (pod_yaml_get (list, "name"));
  ck_assert (pod_yaml_is_null (pod_yaml_get (root, "none")));
}
END_TEST

START_TEST (test_empty)
{
  g_autoptr (PodYaml) nothing = parse ("");
  g_autoptr (PodYaml) comment = parse ("# nothing\n");
  g_autoptr (PodYaml) marked = parse ("---\n...\n");

  ck_assert_ptr_null (nothing->root);
  ck_assert_ptr_null (comment->root);
  ck_assert (pod_yaml_is_null (marked->root));
}
END_TEST

static const struct
{
  const char *text;
  const char *message;
} refusals[] = {
  { "a: [ 1, 2\n", "f.yml:2: " },
  { "a: 1\nb: 2\na: 3\n", "f.yml:3: the key 'a' stands twice" },
  { "a: &x 1\n", "f.yml:1: anchors and aliases are not read" },
  { "a: 1\nb: *x\n", "f.yml:2: anchors and aliases are not read" },
  { "a: !!binary x\n", "f.yml:1: tags are not read" },
  { "a: 1\n---\nb: 2\n", "f.yml:2: a second document: only one is read" },
  { "? [a]\n: 1\n", "f.yml:1: a key must be plain text" },
  { "a: \"x\\0y\"\n", "f.yml:1: a text with a zero byte" },
  { "a:\n\t- 1\n", "f.yml:2: " },
};

START_TEST (test_refusals)
{
  g_autoptr (GError) error = NULL;
  const char *text = refusals[_i].text;

  ck_assert_ptr_null (pod_yaml_parse ("f.yml", text, strlen (text), &error));
  ck_assert_msg (g_str_has_prefix (error->message, refusals[_i].message), "%s", error->message);
  ck_assert_int_eq (error->code, POD_ERROR_PARSE);
}
END_TEST

START_TEST (test_depth)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GError) error = NULL;

  for (int i = 0; i < 100000; i++)
    g_string_append_c (text, '[');
  ck_assert_ptr_null (pod_yaml_parse ("f.yml", text->str, text->len, &error));
  ck_assert_str_eq (error->message, "f.yml:1: more than 64 levels deep");
}
END_TEST

static const struct
{
  const char *text;
  bool is_double;
  bool is_uint;
} numbers[] = {
  { "1", true, true },      { "0", true, true },
  { "1e3", true, false },   { "-1", true, false },
  { "1.5", true, false },   { ".5", true, false },
  { "0x10", false, false }, { "inf", false, false },
  { ".inf", false, false }, { "nan", false, false },
  { "1 2", false, false },  { "'1'", false, false },
  { "", false, false },     { "99999999999999999999", true, false },
};

START_TEST (test_numbers)
{
  g_autofree char *text = g_strconcat ("a: ", numbers[_i].text, "\n", NULL);
  g_autoptr (PodYaml) yaml = parse (text);
  const PodYamlNode *node = pod_yaml_get (yaml->root, "a");
  g_autoptr (GError) error = NULL;
  double number = 0;
  uint64_t whole = 0;

  ck_assert_int_eq (pod_yaml_double (yaml, node, &number, NULL), numbers[_i].is_double);
  ck_assert_int_eq (pod_yaml_uint (yaml, node, &whole, &error), numbers[_i].is_uint);
  ck_assert (numbers[_i].is_uint || g_str_has_prefix (error->message, "f.yml:1: expected a whole"));
}
END_TEST

static Suite *
yaml_suite (void)
{
  Suite *suite = suite_create ("yaml");
  TCase *tests = tcase_create ("yaml");

  tcase_add_test (tests, test_tree);
  tcase_add_test (tests, test_empty);
  tcase_add_loop_test (tests, test_refusals, 0, G_N_ELEMENTS (refusals));
  tcase_add_test (tests, test_depth);
  tcase_add_loop_test (tests, test_numbers, 0, G_N_ELEMENTS (numbers));
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (yaml_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
