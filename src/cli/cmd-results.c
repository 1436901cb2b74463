#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "base/table.h"
#include "cli/cli.h"
#include "search/database.h"

/* What a database of results holds. */

/* Of what came out, the columns of the text table; --csv has them all. */
static bool
is_brief (char *const *heading, guint column)
{
  static const char *const results[] = { "time_ps", "mfu", "peak_bytes", "usd_per_step", "bound", "refusal", NULL };
  guint first = 0;

  while (strcmp (heading[first], "status") != 0)
    first++;
  return column <= first ? strcmp (heading[column], "key") != 0 : g_strv_contains (results, heading[column]);
}

/* Columns with nothing in any row say nothing. Returns: (transfer full) */
static PodTable *
make_table (const GPtrArray *rows, bool has_all)
{
  char **heading = g_ptr_array_index ((GPtrArray *) rows, 0);
  const guint n = g_strv_length (heading);
  g_autofree bool *is_shown = g_new0 (bool, n);
  g_autoptr (GPtrArray) titles = g_ptr_array_new ();
  PodTable *table;

  for (guint c = 0; c < n; c++)
    {
      is_shown[c] = has_all;
      for (guint r = 1; r < rows->len && !is_shown[c]; r++)
        is_shown[c] = *((char **) g_ptr_array_index ((GPtrArray *) rows, r))[c] != '\0' && is_brief (heading, c);
      if (is_shown[c])
        g_ptr_array_add (titles, heading[c]);
    }
  if (titles->len == 0)
    g_ptr_array_add (titles, heading[0]);
  g_ptr_array_add (titles, NULL);
  table = pod_table_new ((const char *const *) titles->pdata);
  for (guint r = 1; r < rows->len; r++)
    {
      char **cells = g_ptr_array_index ((GPtrArray *) rows, r);
      g_autoptr (GPtrArray) shown = g_ptr_array_new ();

      for (guint c = 0; c < n; c++)
        if (is_shown[c])
          g_ptr_array_add (shown, cells[c]);
      g_ptr_array_add (shown, NULL);
      pod_table_add_row (table, (const char *const *) shown->pdata);
    }
  return table;
}

int
pod_cmd_results (int argc, char **argv)
{
  g_autofree char *where = NULL;
  g_autofree char *file = NULL;
  int is_csv = 0;
  g_autoptr (GError) error = NULL;
  g_autoptr (PodDatabase) database = NULL;
  g_autoptr (GPtrArray) rows = NULL;
  g_autoptr (PodTable) table = NULL;
  g_autofree char *text = NULL;
  const GOptionEntry entries[] = {
    { "where", 0, 0, G_OPTION_ARG_FILENAME, &where, "only the runs for which this SQL condition holds: status = 'fits' AND time_ps < 2e12", "SQL" },
    { "csv", 0, 0, G_OPTION_ARG_NONE, &is_csv, "every column, separated by commas", NULL },
    { .long_name = NULL },
  };
  g_autoptr (GOptionContext) context = g_option_context_new ("DB - the runs that a database of a search or sweep holds");
  int status;

  if (!pod_cli_parse (context, entries, &argc, &argv, 1, &status))
    return status;
  if (argc < 2)
    return pod_cli_refuse ("which database? podsim results FILE.sqlite");
  file = g_strdup (argv[1]);
  if (!g_file_test (file, G_FILE_TEST_EXISTS))
    return pod_cli_refuse ("%s: there is no such file", file);
  database = pod_database_open (file, &error);
  rows = database != NULL ? pod_database_select (database, where, &error) : NULL;
  if (rows == NULL)
    return pod_cli_fail (error);
  table = make_table (rows, is_csv != 0);
  text = is_csv != 0 ? pod_table_to_separated (table, ',') : pod_table_to_text (table);
  fputs (text, stdout);
  return 0;
}
