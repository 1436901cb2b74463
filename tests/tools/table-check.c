/* Runs the rows of tests/tables/NAME.tsv through the program and prints one line per row:
 *
 *   ok NAME/ID
 *   not ok NAME/ID: what was got, what was expected
 *
 * Usage: table-check PROGRAM SOURCE_DIR SCRATCH_DIR TABLE.tsv
 *
 * Columns, separated by tabs: id, command, key, expected, tolerance, source.
 * - command: arguments by the shell's quoting rules; "$SRC" in them stands for SOURCE_DIR. "--json
 * -" is appended. Each distinct command runs once, in an empty folder of its own, several at a
 * time.
 * - key: a dotted path into the JSON on stdout ("rows.0.time_s"; "rows.length" is the size of an
 *   array); or "exit:N", the exit status; or "stderr:" / "stdout:", which must contain expected.
 * - expected: a number, true, false, null, or text. "<=X" and ">=X" are bounds.
 * - tolerance: relative, "0" or nothing for exact (1e-12 relative, whole numbers to the last
 * digit); "abs X" for an absolute one. A row that reads JSON wants exit status 0, unless an
 * "exit:N" row of the same command says other. Lines that start with '#', empty lines, and a first
 * line that starts with "id\t" are skipped.
 *
 * Exit status: 0 when every row was judged (whatever the verdicts), 2 on a table that cannot be
 * read. */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <glib.h>
#include <glib/gstdio.h>

#include "base/json.h"

#define N_COLUMNS 6

/* A sum of a few doubles differs in the last digits by its order; a wrong formula by far more */
static const double exact_ratio = 1e-12;

/* One distinct command and what became of it */
typedef struct
{
  const char *text; /* (transfer none) the cell of the first row that has it */
  char *folder;     /* (transfer full) where it runs */
  int exit_expected;
  char *failure; /* (transfer full) (nullable) why it could not be run or ended by a signal */
  int exit_status;
  char *out; /* (transfer full) (nullable) */
  char *err; /* (transfer full) (nullable) */
  PodJson *json;    /* (owned) (nullable) NULL when stdout was no JSON */
  JsonNode *root;   /* (nullable) its root */
  char *json_error; /* (transfer full) (nullable) */
} Command;

typedef struct
{
  unsigned line;
  char **cells;     /* (transfer full) */
  char *problem;    /* (transfer full) (nullable) why the row itself is wrong */
  Command *command; /* (transfer none) (nullable) */
} Row;

enum
{
  COLUMN_ID,
  COLUMN_COMMAND,
  COLUMN_KEY,
  COLUMN_EXPECTED,
  COLUMN_TOLERANCE,
  COLUMN_SOURCE,
};

/* What all commands share */
typedef struct
{
  const char *program;
  const char *source_dir;
  const char *timeout_s;
} Setting;

static void
command_free (void *data)
{
  Command *command = data;

  g_free (command->folder);
  g_free (command->failure);
  g_free (command->out);
  g_free (command->err);
  g_free (command->json_error);
  pod_json_free (command->json);
  g_free (command);
}

static void
row_free (void *data)
{
  Row *row = data;

  g_strfreev (row->cells);
  g_free (row->problem);
  g_free (row);
}

/* argv of @command: `timeout` first, so that a hang is a failure and not the end of all tests.
 * Returns: (transfer full) (nullable) */
static char **
command_argv (const Setting *setting, const char *command, GError **error)
{
  g_auto (GStrv) words = NULL;
  g_autoptr (GStrvBuilder) argv = g_strv_builder_new ();

  if (!g_shell_parse_argv (command, NULL, &words, error))
    return NULL;
  g_strv_builder_add_many (argv, "timeout", "-k", "10", setting->timeout_s, setting->program, NULL);
  for (char **word = words; *word != NULL; word++)
    {
      g_autoptr (GString) expanded = g_string_new (*word);

      g_string_replace (expanded, "$SRC", setting->source_dir, 0);
      g_strv_builder_add (argv, expanded->str);
    }
  g_strv_builder_add_many (argv, "--json", "-", NULL);
  return g_strv_builder_end (argv);
}

static void
command_run (void *data, void *user_data)
{
  Command *command = data;
  const Setting *setting = user_data;
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) argv = command_argv (setting, command->text, &error);
  int wait_status = 0;

  if (argv == NULL
      || !g_spawn_sync (command->folder, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &command->out,
                        &command->err, &wait_status, &error))
    {
      command->failure = g_strdup_printf ("cannot run: %s", error->message);
      return;
    }
  if (!WIFEXITED (wait_status))
    {
      command->failure = g_strdup_printf ("ended by signal %d", WTERMSIG (wait_status));
      return;
    }
  command->exit_status = WEXITSTATUS (wait_status);
  if (command->exit_status == 124 || command->exit_status >= 128)
    {
      command->failure = command->exit_status == 124
                             ? g_strdup_printf ("did not end within %s s", setting->timeout_s)
                             : g_strdup_printf ("ended by signal %d: %s",
                                                command->exit_status - 128, command->err);
      return;
    }
  command->json = pod_json_parse ("stdout", command->out, -1, &error);
  if (command->json != NULL)
    command->root = command->json->root;
  else
    command->json_error = g_strdup (error->message);
}

/* Reads "exit:N". Returns: false when @key is no such key */
static bool
parse_exit_key (const char *key, int *out_status)
{
  guint64 status = 0;

  if (!g_str_has_prefix (key, "exit:")
      || !g_ascii_string_to_unsigned (key + strlen ("exit:"), 10, 0, 255, &status, NULL))
    return false;
  *out_status = (int) status;
  return true;
}

/* What is wrong with the cells of a row, before anything is run.
 * Returns: (transfer full) (nullable) */
static char *
row_problem (char **cells, GHashTable *ids)
{
  guint n_cells = g_strv_length (cells);
  int status;

  if (n_cells != N_COLUMNS)
    return g_strdup_printf ("%u columns instead of %d", n_cells, N_COLUMNS);
  if (*cells[COLUMN_ID] == '\0' || !g_hash_table_add (ids, cells[COLUMN_ID]))
    return g_strdup ("the id is empty or stands twice");
  if (*cells[COLUMN_KEY] == '\0')
    return g_strdup ("no key");
  if (g_str_has_prefix (cells[COLUMN_KEY], "exit:") && !parse_exit_key (cells[COLUMN_KEY], &status))
    return g_strdup_printf ("%s is no exit status", cells[COLUMN_KEY]);
  if (*cells[COLUMN_SOURCE] == '\0')
    return g_strdup ("no source: say where the expected value comes from");
  return NULL;
}

/* The one Command of that text, made at its first row.
 * Returns: (transfer none) */
static Command *
command_of (GPtrArray *commands, GHashTable *by_text, const char *text, const char *scratch)
{
  Command *command = g_hash_table_lookup (by_text, text);

  if (command == NULL)
    {
      command = g_new0 (Command, 1);
      command->text = text;
      command->folder = g_strdup_printf ("%s/%u", scratch, commands->len);
      g_ptr_array_add (commands, command);
      g_hash_table_insert (by_text, (char *) text, command);
    }
  return command;
}

/* Returns: (transfer full) (element-type Row) (nullable); the distinct commands go to @commands */
static GPtrArray *
table_load (const char *file, const char *scratch, GPtrArray *commands, GError **error)
{
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;
  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func (row_free);
  g_autoptr (GHashTable) ids = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) by_text = g_hash_table_new (g_str_hash, g_str_equal);

  if (!g_file_get_contents (file, &text, NULL, error))
    return NULL;
  lines = g_strsplit (text, "\n", -1);
  for (unsigned i = 0; lines[i] != NULL; i++)
    {
      Row *row;

      g_strchomp (lines[i]);
      if (*lines[i] == '\0' || *lines[i] == '#' || g_str_has_prefix (lines[i], "id\t"))
        continue;
      row = g_new0 (Row, 1);
      row->line = i + 1;
      row->cells = g_strsplit (lines[i], "\t", -1);
      row->problem = row_problem (row->cells, ids);
      g_ptr_array_add (rows, row);
      if (row->problem == NULL)
        {
          row->command = command_of (commands, by_text, row->cells[COLUMN_COMMAND], scratch);
          (void) parse_exit_key (row->cells[COLUMN_KEY], &row->command->exit_expected);
        }
    }
  return g_steal_pointer (&rows);
}

/* The node at a dotted path. @out_length is set, and NULL returned, for "ARRAY.length".
 * Returns: (transfer none) (nullable) */
static JsonNode *
json_at (JsonNode *root, const char *path, int64_t *out_length)
{
  g_auto (GStrv) steps = g_strsplit (path, ".", -1);
  JsonNode *node = root;

  *out_length = -1;
  for (char **step = steps; *step != NULL && node != NULL; step++)
    {
      guint64 position = 0;

      if (JSON_NODE_HOLDS_OBJECT (node))
        node = json_object_get_member (json_node_get_object (node), *step);
      else if (JSON_NODE_HOLDS_ARRAY (node))
        {
          JsonArray *array = json_node_get_array (node);

          if (strcmp (*step, "length") == 0 && step[1] == NULL)
            {
              *out_length = json_array_get_length (array);
              return NULL;
            }
          node = g_ascii_string_to_unsigned (*step, 10, 0, G_MAXUINT, &position, NULL)
                         && position < json_array_get_length (array)
                     ? json_array_get_element (array, (guint) position)
                     : NULL;
        }
      else
        node = NULL;
    }
  return node;
}

/* A whole cell as a finite number. */
static bool
parse_number (const char *text, double *out)
{
  char *end = NULL;

  *out = g_ascii_strtod (text, &end);
  return end != text && *end == '\0' && isfinite (*out);
}

/* Judges @value against a cell that is a number or a bound.
 * Returns: (transfer full) (nullable) NULL when it holds */
static char *
judge_number (double value, const char *expected, const char *tolerance)
{
  bool is_upper = g_str_has_prefix (expected, "<=");
  bool is_lower = g_str_has_prefix (expected, ">=");
  bool is_absolute = g_str_has_prefix (tolerance, "abs ");
  double want = 0;
  double allowed = 0;

  if (!parse_number (expected + (is_upper || is_lower ? 2 : 0), &want))
    return g_strdup_printf ("got the number %.17g, expected %s", value, expected);
  if (*tolerance != '\0'
      && (!parse_number (tolerance + (is_absolute ? 4 : 0), &allowed) || allowed < 0))
    return g_strdup_printf ("%s is no tolerance", tolerance);
  if (!is_absolute)
    allowed = fabs (want) * (allowed > 0 ? allowed : exact_ratio);
  if (is_upper   ? value <= want + allowed
      : is_lower ? value >= want - allowed
                 : fabs (value - want) <= allowed)
    return NULL;
  return g_strdup_printf ("got %.17g, expected %s (off by %.3g %%)", value, expected,
                          want != 0 ? (value / want - 1) * 100 : (double) INFINITY);
}

/* Whole numbers beyond 2^53 compare to the last digit when no tolerance is given. */
static bool
judge_integer (int64_t value, const char *expected, const char *tolerance, char **out_failure)
{
  gint64 want = 0;

  if ((*tolerance != '\0' && strcmp (tolerance, "0") != 0)
      || !g_ascii_string_to_signed (expected, 10, G_MININT64, G_MAXINT64, &want, NULL))
    return false;
  *out_failure = value == want ? NULL
                               : g_strdup_printf ("got %" G_GINT64_FORMAT ", expected %s",
                                                  (gint64) value, expected);
  return true;
}

/* Returns: (transfer full) (nullable) NULL when the node is as expected */
static char *
judge_node (JsonNode *node, const char *expected, const char *tolerance)
{
  JsonValueType type = JSON_NODE_HOLDS_VALUE (node) ? json_node_get_value_type (node) : JSON_VALUE_NONE;
  const char *text = NULL;
  char *failure = NULL;

  if (type == JSON_VALUE_INT)
    return judge_integer (json_node_get_int (node), expected, tolerance, &failure)
               ? failure
               : judge_number ((double) json_node_get_int (node), expected, tolerance);
  if (type == JSON_VALUE_DOUBLE)
    return judge_number (json_node_get_double (node), expected, tolerance);
  if (type == JSON_VALUE_BOOLEAN)
    text = json_node_get_boolean (node) ? "true" : "false";
  else if (type == JSON_VALUE_STRING)
    text = json_node_get_string (node);
  else if (JSON_NODE_HOLDS_NULL (node))
    text = "null";
  else
    return g_strdup ("is an object or an array, which cannot be compared");
  return strcmp (text, expected) == 0 ? NULL
                                      : g_strdup_printf ("got %s, expected %s", text, expected);
}

/* Returns: (transfer full) (nullable) NULL when @text contains @expected */
static char *
judge_text (const char *name, const char *text, const char *expected)
{
  if (strstr (text, expected) != NULL)
    return NULL;
  return g_strdup_printf ("%s does not contain \"%s\" but is: %.400s", name, expected, text);
}

/* Returns: (transfer full) (nullable) NULL when the row holds */
static char *
judge_json (const Command *command, const char *key, const char *expected, const char *tolerance)
{
  int64_t length = -1;
  JsonNode *node;

  if (command->exit_status != command->exit_expected)
    return g_strdup_printf ("exit status %d instead of %d: %s", command->exit_status,
                            command->exit_expected, command->err);
  if (command->root == NULL)
    return g_strdup_printf ("stdout is no JSON: %s",
                            command->json_error != NULL ? command->json_error : "it is empty");
  node = json_at (command->root, key, &length);
  if (node == NULL && length < 0)
    return g_strdup ("no such key in the output");
  return node != NULL ? judge_node (node, expected, tolerance)
                      : judge_number ((double) length, expected, tolerance);
}

/* Returns: (transfer full) (nullable) NULL when the row holds */
static char *
row_judge (const Row *row)
{
  const Command *command = row->command;
  const char *key;
  const char *expected;
  int status;

  if (row->problem != NULL)
    return g_strdup_printf ("line %u: %s", row->line, row->problem);
  if (command->failure != NULL)
    return g_strdup (command->failure);
  key = row->cells[COLUMN_KEY];
  expected = row->cells[COLUMN_EXPECTED];
  if (parse_exit_key (key, &status))
    return command->exit_status == status
               ? NULL
               : g_strdup_printf ("exit status %d: %s", command->exit_status, command->err);
  if (strcmp (key, "stderr:") == 0)
    return judge_text ("stderr", command->err, expected);
  if (strcmp (key, "stdout:") == 0)
    return judge_text ("stdout", command->out, expected);
  return judge_json (command, key, expected, row->cells[COLUMN_TOLERANCE]);
}

/* Returns: true when the row holds */
static void
row_report (const Row *row, const char *table)
{
  g_autofree char *failure = row_judge (row);
  g_autofree char *line_id = g_strdup_printf ("line-%u", row->line);
  const char *id = row->cells[COLUMN_ID] != NULL && *row->cells[COLUMN_ID] != '\0'
                       ? row->cells[COLUMN_ID]
                       : line_id;

  if (failure == NULL)
    {
      printf ("ok %s/%s\n", table, id);
      return;
    }
  /* One line per verdict; what follows is indented */
  g_strchomp (failure);
  g_strdelimit (failure, "\n", ' ');
  if (row->command == NULL)
    {
      printf ("not ok %s/%s: %s\n", table, id, failure);
      return;
    }
  printf ("not ok %s/%s: %s: %s\n", table, id, row->cells[COLUMN_KEY], failure);
  printf ("    podsim %s --json -\n    source: %s\n", row->cells[COLUMN_COMMAND],
          row->cells[COLUMN_SOURCE]);
}

int
main (int argc, char **argv)
{
  g_autoptr (GPtrArray) commands = g_ptr_array_new_with_free_func (command_free);
  g_autoptr (GPtrArray) rows = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *table = NULL;
  Setting setting = { 0 };
  GThreadPool *pool;

  if (argc != 5)
    {
      fprintf (stderr, "usage: table-check PROGRAM SOURCE_DIR SCRATCH_DIR TABLE.tsv\n");
      return 2;
    }
  setting.program = argv[1];
  setting.source_dir = argv[2];
  setting.timeout_s = g_getenv ("TEST_TIMEOUT_S") != NULL ? g_getenv ("TEST_TIMEOUT_S") : "600";
  table = g_path_get_basename (argv[4]);
  if (g_str_has_suffix (table, ".tsv"))
    table[strlen (table) - strlen (".tsv")] = '\0';
  rows = table_load (argv[4], argv[3], commands, &error);
  if (rows == NULL)
    {
      fprintf (stderr, "table-check: %s\n", error->message);
      return 2;
    }
  pool = g_thread_pool_new (command_run, &setting, (int) g_get_num_processors (), FALSE, NULL);
  for (guint i = 0; i < commands->len; i++)
    {
      Command *command = g_ptr_array_index (commands, i);

      if (g_mkdir_with_parents (command->folder, 0777) != 0)
        command->failure = g_strdup_printf ("cannot make %s", command->folder);
      else
        g_thread_pool_push (pool, command, NULL);
    }
  g_thread_pool_free (pool, FALSE, TRUE);
  for (guint i = 0; i < rows->len; i++)
    row_report (g_ptr_array_index (rows, i), table);
  return 0;
}
