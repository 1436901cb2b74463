#include "base/table.h"

#include <stdlib.h>

#include <check.h>

#define ROW(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Returns: (transfer full) */
static PodTable *
make_table (void)
{
  PodTable *table = pod_table_new (ROW ("name", ">time", "note"));

  pod_table_add_row (table, ROW ("forward", "1.5", "a,b"));
  pod_table_add_row (table, ROW ("\u00e9tape", "120", "say \"hi\""));
  pod_table_add_row (table, ROW ("c", "3", ""));
  return table;
}

START_TEST (text_is_aligned)
{
  g_autoptr (PodTable) table = make_table ();
  g_autofree char *text = pod_table_to_text (table);

  ck_assert_str_eq (text, "name     time  note\n"
                          "forward   1.5  a,b\n"
                          "\u00e9tape     120  say \"hi\"\n"
                          "c           3\n");
}
END_TEST

static const struct
{
  char separator;
  const char *expected;
} separated[] = {
  { '\t', "name\ttime\tnote\nforward\t1.5\ta,b\n\u00e9tape\t120\tsay \"hi\"\nc\t3\t\n" },
  { ',', "name,time,note\nforward,1.5,\"a,b\"\n\u00e9tape,120,\"say \"\"hi\"\"\"\nc,3,\n" },
  { ' ', "# name time note\nforward 1.5 a,b\n\u00e9tape 120 \"say 'hi'\"\nc 3 \"\"\n" },
};

START_TEST (cells_are_separated)
{
  g_autoptr (PodTable) table = make_table ();
  g_autofree char *text = pod_table_to_separated (table, separated[_i].separator);

  ck_assert_str_eq (text, separated[_i].expected);
}
END_TEST

START_TEST (empty_table_has_its_heading)
{
  g_autoptr (PodTable) table = pod_table_new (ROW ("a", ">b"));
  g_autofree char *text = pod_table_to_text (table);
  g_autofree char *csv = pod_table_to_separated (table, ',');

  ck_assert_str_eq (text, "a  b\n");
  ck_assert_str_eq (csv, "a,b\n");
}
END_TEST

START_TEST (odd_cells_tear_no_row)
{
  g_autoptr (PodTable) table = pod_table_new (ROW ("a", "b"));

  pod_table_add_row (table, ROW ("x\ty\nz", "\xff"));
  g_autofree char *text = pod_table_to_text (table);
  g_autofree char *tsv = pod_table_to_separated (table, '\t');
  g_autofree char *csv = pod_table_to_separated (table, ',');
  ck_assert_str_eq (text, "a      b\nx y z  \xef\xbf\xbd\n");
  ck_assert_str_eq (tsv, "a\tb\nx y z\t\xef\xbf\xbd\n");
  ck_assert_str_eq (csv, "a,b\n\"x\ty\nz\",\xef\xbf\xbd\n");
}
END_TEST

START_TEST (column_is_added)
{
  g_autoptr (PodTable) table = make_table ();
  g_autoptr (GPtrArray) cells = g_ptr_array_new ();
  g_autofree char *text = NULL;

  g_ptr_array_add (cells, (char *) "7");
  g_ptr_array_add (cells, (char *) "\xff");
  g_ptr_array_add (cells, (char *) "10");
  pod_table_add_column (table, ">more", cells);
  text = pod_table_to_separated (table, '\t');
  ck_assert_str_eq (text, "name\ttime\tnote\tmore\nforward\t1.5\ta,b\t7\n"
                          "\u00e9tape\t120\tsay \"hi\"\t\ufffd\nc\t3\t\t10\n");
  ck_assert_uint_eq (pod_table_n_columns (table), 4);
  ck_assert_uint_eq (pod_table_n_rows (table), 3);
  ck_assert (pod_table_is_right (table, 3));
  ck_assert_str_eq (pod_table_cell (table, -1, 3), "more");
  ck_assert_str_eq (pod_table_cell (table, 2, 3), "10");
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("table");
  TCase *tcase = tcase_create ("table");

  tcase_add_test (tcase, text_is_aligned);
  tcase_add_loop_test (tcase, cells_are_separated, 0, G_N_ELEMENTS (separated));
  tcase_add_test (tcase, empty_table_has_its_heading);
  tcase_add_test (tcase, odd_cells_tear_no_row);
  tcase_add_test (tcase, column_is_added);
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
