#include "search/database.h"

#ifdef POD_HAS_SQLITE

#include <string.h>

#include <sqlite3.h>

#include "base/error.h"
#include "base/units.h"

#define SCHEMA_VERSION 3
#define BUSY_MS 60000 /* how long another writer is waited for */

struct PodDatabase
{
  sqlite3 *handle;
  char *file;
  sqlite3_stmt *find;
  sqlite3_stmt *add;
};

/* -- columns: one table of them makes the schema, writes and reads ---- */

typedef enum
{
  COLUMN_TIME,   /* int64_t picoseconds */
  COLUMN_NUMBER, /* double */
  COLUMN_MAYBE,  /* double, NULL when below 0 */
  COLUMN_COUNT,  /* uint32_t */
  COLUMN_STATUS, /* PodRowStatus, by name */
  COLUMN_CODE,   /* int */
  COLUMN_TEXT,   /* char[] */
} ColumnKind;

typedef struct
{
  const char *name;
  ColumnKind kind;
  size_t offset;
  size_t size; /* of text */
} Column;

#define TIME(name, field) { name, COLUMN_TIME, offsetof (PodRow, field), 0 }
#define NUMBER(name, field) { name, COLUMN_NUMBER, offsetof (PodRow, field), 0 }
#define MAYBE(name, field) { name, COLUMN_MAYBE, offsetof (PodRow, field), 0 }
#define TEXT(name, field) { name, COLUMN_TEXT, offsetof (PodRow, field), sizeof ((PodRow *) NULL)->field }

static const Column columns[] = {
  { "status", COLUMN_STATUS, offsetof (PodRow, status), 0 },
  TEXT ("layout_run", layout),
  TEXT ("map_run", map),
  TIME ("time_ps", time_ps),
  TIME ("lower_bound_ps", lower_bound_ps),
  TIME ("compute_ps", compute_ps),
  TIME ("optimizer_ps", optimizer_ps),
  TIME ("recompute_ps", recompute_ps),
  TIME ("bubble_ps", bubble_ps),
  TIME ("idle_ps", idle_ps),
  TIME ("forward_comm_ps", forward_comm_ps),
  TIME ("forward_compute_ps", forward_compute_ps),
  TIME ("exposed_dp_ps", exposed_ps[POD_AXIS_DP]),
  TIME ("exposed_fsdp_ps", exposed_ps[POD_AXIS_FSDP]),
  TIME ("exposed_tp_ps", exposed_ps[POD_AXIS_TP]),
  TIME ("exposed_cp_ps", exposed_ps[POD_AXIS_CP]),
  TIME ("exposed_pp_ps", exposed_ps[POD_AXIS_PP]),
  TIME ("exposed_ep_ps", exposed_ps[POD_AXIS_EP]),
  TIME ("exposed_host_ps", exposed_ps[POD_AXIS_HOST]),
  TIME ("comm_dp_ps", comm_ps[POD_AXIS_DP]),
  TIME ("comm_fsdp_ps", comm_ps[POD_AXIS_FSDP]),
  TIME ("comm_tp_ps", comm_ps[POD_AXIS_TP]),
  TIME ("comm_cp_ps", comm_ps[POD_AXIS_CP]),
  TIME ("comm_pp_ps", comm_ps[POD_AXIS_PP]),
  TIME ("comm_ep_ps", comm_ps[POD_AXIS_EP]),
  TIME ("comm_host_ps", comm_ps[POD_AXIS_HOST]),
  NUMBER ("mfu", mfu),
  NUMBER ("hfu", hfu),
  NUMBER ("tokens_per_s", tokens_per_s),
  NUMBER ("tokens_per_s_per_chip", tokens_per_s_per_chip),
  TEXT ("bound", bound),
  NUMBER ("capacity_bytes", capacity_bytes),
  NUMBER ("reserved_bytes", reserved_bytes),
  NUMBER ("peak_bytes", peak_bytes),
  NUMBER ("params_bytes", by_use[POD_USE_PARAMS]),
  NUMBER ("grads_bytes", by_use[POD_USE_GRADS]),
  NUMBER ("optimizer_bytes", by_use[POD_USE_OPTIMIZER]),
  NUMBER ("activations_bytes", by_use[POD_USE_ACTIVATIONS]),
  NUMBER ("workspace_bytes", by_use[POD_USE_WORKSPACE]),
  { "chips", COLUMN_COUNT, offsetof (PodRow, chips), 0 },
  { "chips_used", COLUMN_COUNT, offsetof (PodRow, chips_used), 0 },
  MAYBE ("usd_per_step", usd_per_step),
  MAYBE ("train_days", train_days),
  MAYBE ("train_usd", train_usd),
  { "error_code", COLUMN_CODE, offsetof (PodRow, error_code), 0 },
  TEXT ("refusal", refusal),
};

/* Columns before these: key, then a column for each option of the job, "seq_len" for --seq-len. Returns: (transfer full) */
static char *
option_column (const PodOption *option)
{
  return g_strdelimit (g_strdup_printf ("\"%s\"", option->name), "-", '_');
}

static const char *
type_of (ColumnKind kind)
{
  return kind == COLUMN_TEXT || kind == COLUMN_STATUS ? "TEXT" : kind == COLUMN_NUMBER || kind == COLUMN_MAYBE ? "REAL" : "INTEGER";
}

static bool
fail (PodDatabase *database, PodErrorCode code, const char *doing, GError **error)
{
  g_set_error (error, POD_ERROR, (int) code, "%s: %s: %s", database->file, doing, sqlite3_errmsg (database->handle));
  return false;
}

static bool
run_sql (PodDatabase *database, const char *sql, const char *doing, GError **error)
{
  return sqlite3_exec (database->handle, sql, NULL, NULL, NULL) == SQLITE_OK || fail (database, POD_ERROR_IO, doing, error);
}

static bool
make_schema (PodDatabase *database, GError **error)
{
  g_autoptr (GString) sql = g_string_new ("BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS run (key TEXT PRIMARY KEY");

  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    {
      g_autofree char *name = option_column (option);

      g_string_append_printf (sql, ", %s TEXT", name);
    }
  for (unsigned i = 0; i < G_N_ELEMENTS (columns); i++)
    g_string_append_printf (sql, ", %s %s", columns[i].name, type_of (columns[i].kind));
  g_string_append_printf (sql, "); PRAGMA user_version = %d; COMMIT", SCHEMA_VERSION);
  return run_sql (database, sql->str, "cannot make the table", error);
}

/* Its user_version, -1 on an error. */
static int
read_version (PodDatabase *database)
{
  sqlite3_stmt *statement = NULL;
  int version = -1;

  if (sqlite3_prepare_v2 (database->handle, "PRAGMA user_version", -1, &statement, NULL) == SQLITE_OK && sqlite3_step (statement) == SQLITE_ROW)
    version = sqlite3_column_int (statement, 0);
  sqlite3_finalize (statement);
  return version;
}

/* Whether a table is there: a file of version 0 with tables is somebody else's. */
static bool
has_tables (PodDatabase *database)
{
  sqlite3_stmt *statement = NULL;
  bool has = false;

  if (sqlite3_prepare_v2 (database->handle, "SELECT 1 FROM sqlite_master", -1, &statement, NULL) == SQLITE_OK)
    has = sqlite3_step (statement) == SQLITE_ROW;
  sqlite3_finalize (statement);
  return has;
}

static bool
check_version (PodDatabase *database, GError **error)
{
  const bool has_any = has_tables (database); /* read before the version: another search may be making both, at once, now */
  const int version = read_version (database);

  if (version < 0)
    return fail (database, POD_ERROR_PARSE, "is no database of results", error);
  if (version == SCHEMA_VERSION)
    return true;
  if (version == 0 && !has_any)
    return make_schema (database, error);
  g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s: is no database of results of this version of podsim (version %d, not %d): take another file", database->file, version, SCHEMA_VERSION);
  return false;
}

static bool
prepare (PodDatabase *database, GError **error)
{
  g_autoptr (GString) names = g_string_new ("key");
  g_autoptr (GString) marks = g_string_new ("?");
  g_autoptr (GString) results = g_string_new (NULL);
  g_autofree char *add = NULL;
  g_autofree char *find = NULL;

  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    {
      g_autofree char *name = option_column (option);

      g_string_append_printf (names, ", %s", name);
      g_string_append (marks, ", ?");
    }
  for (unsigned i = 0; i < G_N_ELEMENTS (columns); i++)
    {
      g_string_append_printf (names, ", %s", columns[i].name);
      g_string_append (marks, ", ?");
      g_string_append_printf (results, "%s%s", i > 0 ? ", " : "", columns[i].name);
    }
  add = g_strdup_printf ("INSERT OR REPLACE INTO run (%s) VALUES (%s)", names->str, marks->str);
  find = g_strdup_printf ("SELECT %s FROM run WHERE key = ?", results->str);
  if (sqlite3_prepare_v2 (database->handle, add, -1, &database->add, NULL) != SQLITE_OK
      || sqlite3_prepare_v2 (database->handle, find, -1, &database->find, NULL) != SQLITE_OK)
    return fail (database, POD_ERROR_PARSE, "is no database of results of this version of podsim", error);
  return true;
}

bool
pod_database_is_built (void)
{
  return true;
}

PodDatabase *
pod_database_open (const char *file, GError **error)
{
  g_autoptr (PodDatabase) database = g_new0 (PodDatabase, 1);

  database->file = g_strdup (file);
  if (sqlite3_open_v2 (file, &database->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
    {
      fail (database, POD_ERROR_IO, "cannot open", error);
      return NULL;
    }
  sqlite3_busy_timeout (database->handle, BUSY_MS);
  if (!check_version (database, error) || !run_sql (database, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL", "cannot write", error) || !prepare (database, error))
    return NULL;
  return g_steal_pointer (&database);
}

void
pod_database_close (PodDatabase *database)
{
  if (database == NULL)
    return;
  sqlite3_finalize (database->find);
  sqlite3_finalize (database->add);
  sqlite3_close (database->handle);
  g_free (database->file);
  g_free (database);
}

/* -- rows ---- */

static PodRowStatus
status_named (const char *name)
{
  for (unsigned i = 0; i < POD_N_ROW_STATUSES; i++)
    if (g_strcmp0 (pod_row_status_names[i], name) == 0)
      return i;
  return POD_ROW_NONE;
}

static void
read_cell (sqlite3_stmt *statement, int at, const Column *column, PodRow *row)
{
  void *field = (char *) row + column->offset;
  const char *text;

  switch (column->kind)
    {
    case COLUMN_TIME:
      *(int64_t *) field = sqlite3_column_int64 (statement, at);
      break;
    case COLUMN_NUMBER:
      *(double *) field = sqlite3_column_double (statement, at);
      break;
    case COLUMN_MAYBE:
      *(double *) field = sqlite3_column_type (statement, at) == SQLITE_NULL ? -1 : sqlite3_column_double (statement, at);
      break;
    case COLUMN_COUNT:
      *(uint32_t *) field = (uint32_t) sqlite3_column_int64 (statement, at);
      break;
    case COLUMN_CODE:
      *(int *) field = sqlite3_column_int (statement, at);
      break;
    case COLUMN_STATUS:
      *(PodRowStatus *) field = status_named ((const char *) sqlite3_column_text (statement, at));
      break;
    case COLUMN_TEXT:
      text = (const char *) sqlite3_column_text (statement, at);
      g_strlcpy (field, text != NULL ? text : "", column->size);
      break;
    }
}

bool
pod_database_find (PodDatabase *database, const char *key, PodRow *row)
{
  sqlite3_stmt *statement = database->find;
  const uint64_t candidate = row->candidate;
  bool is_there;

  sqlite3_bind_text (statement, 1, key, -1, SQLITE_STATIC);
  is_there = sqlite3_step (statement) == SQLITE_ROW;
  if (is_there)
    {
      memset (row, 0, sizeof *row);
      row->candidate = candidate;
      for (unsigned i = 0; i < G_N_ELEMENTS (columns); i++)
        read_cell (statement, (int) i, &columns[i], row);
    }
  sqlite3_reset (statement);
  return is_there && row->status != POD_ROW_NONE;
}

static void
bind_cell (sqlite3_stmt *statement, int at, const Column *column, const PodRow *row)
{
  const void *field = (const char *) row + column->offset;

  switch (column->kind)
    {
    case COLUMN_TIME:
      sqlite3_bind_int64 (statement, at, *(const int64_t *) field);
      break;
    case COLUMN_NUMBER:
      sqlite3_bind_double (statement, at, *(const double *) field);
      break;
    case COLUMN_MAYBE:
      if (*(const double *) field < 0)
        sqlite3_bind_null (statement, at);
      else
        sqlite3_bind_double (statement, at, *(const double *) field);
      break;
    case COLUMN_COUNT:
      sqlite3_bind_int64 (statement, at, *(const uint32_t *) field);
      break;
    case COLUMN_CODE:
      sqlite3_bind_int (statement, at, *(const int *) field);
      break;
    case COLUMN_STATUS:
      sqlite3_bind_text (statement, at, pod_row_status_names[*(const PodRowStatus *) field], -1, SQLITE_STATIC);
      break;
    case COLUMN_TEXT:
      sqlite3_bind_text (statement, at, field, -1, SQLITE_STATIC);
      break;
    }
}

/* The options as they are said: numbers and flags as text, what is not said as NULL. */
static void
bind_options (sqlite3_stmt *statement, const PodScenario *scenario)
{
  int at = 2;

  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++, at++)
    {
      g_autofree char *text = pod_scenario_is_set (scenario, option) ? pod_scenario_get (scenario, option) : NULL;

      if (text != NULL)
        sqlite3_bind_text (statement, at, text, -1, SQLITE_TRANSIENT);
      else
        sqlite3_bind_null (statement, at);
    }
}

static bool
add_row (PodDatabase *database, const char *key, const PodScenario *scenario, const PodRow *row, GError **error)
{
  sqlite3_stmt *statement = database->add;
  int at = 2;
  bool is_added;

  sqlite3_bind_text (statement, 1, key, -1, SQLITE_STATIC);
  bind_options (statement, scenario);
  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    at++;
  for (unsigned i = 0; i < G_N_ELEMENTS (columns); i++)
    bind_cell (statement, at + (int) i, &columns[i], row);
  is_added = sqlite3_step (statement) == SQLITE_DONE || fail (database, POD_ERROR_IO, "cannot write", error);
  sqlite3_reset (statement);
  return is_added;
}

bool
pod_database_add (PodDatabase *database, char *const *keys, PodScenario *const *scenarios, const PodRow *rows, unsigned n, GError **error)
{
  if (!run_sql (database, "BEGIN IMMEDIATE", "cannot write", error))
    return false;
  for (unsigned i = 0; i < n; i++)
    if (rows[i].status != POD_ROW_NONE && !add_row (database, keys[i], scenarios[i], &rows[i], error))
      {
        sqlite3_exec (database->handle, "ROLLBACK", NULL, NULL, NULL);
        return false;
      }
  return run_sql (database, "COMMIT", "cannot write", error);
}

/* -- questions ---- */

/* What a condition may do: read the runs. */
static int
allow_reading (void *data, int action, const char *a, const char *b, const char *c, const char *d)
{
  (void) data, (void) a, (void) b, (void) c, (void) d;
  return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION ? SQLITE_OK : SQLITE_DENY;
}

static void
free_cells (void *cells)
{
  g_strfreev (cells);
}

static char **
heading_of (sqlite3_stmt *statement)
{
  const int n = sqlite3_column_count (statement);
  char **cells = g_new0 (char *, (gsize) n + 1);

  for (int i = 0; i < n; i++)
    cells[i] = g_strdup (sqlite3_column_name (statement, i));
  return cells;
}

static char **
cells_of (sqlite3_stmt *statement)
{
  const int n = sqlite3_column_count (statement);
  char **cells = g_new0 (char *, (gsize) n + 1);

  for (int i = 0; i < n; i++)
    {
      const char *text = (const char *) sqlite3_column_text (statement, i);

      cells[i] = sqlite3_column_type (statement, i) == SQLITE_FLOAT ? pod_format_double (sqlite3_column_double (statement, i)) : g_strdup (text != NULL ? text : "");
    }
  return cells;
}

/* Numbers by their size, before words. */
static int
compare_cells (const char *a, const char *b)
{
  double x, y;
  const bool has_x = pod_parse_quantity (a, POD_UNIT_COUNT, &x, NULL);
  const bool has_y = pod_parse_quantity (b, POD_UNIT_COUNT, &y, NULL);

  if (has_x && has_y && x != y)
    return x < y ? -1 : 1;
  return has_x != has_y ? (int) has_y - (int) has_x : strcmp (a, b);
}

/* By the options in @data (element-type int), columns that are not empty everywhere. */
static gint
compare_runs (gconstpointer a, gconstpointer b, gpointer data)
{
  const GArray *options = data;
  char *const *x = *(char *const *const *) a;
  char *const *y = *(char *const *const *) b;

  for (guint i = 0; i < options->len; i++)
    {
      const int column = g_array_index (options, int, i);
      const int order = strcmp (x[column], y[column]) == 0 ? 0 : compare_cells (x[column], y[column]);

      if (order != 0)
        return order;
    }
  return strcmp (x[0], y[0]); /* keys */
}

/* Runs come as they end, in another order with another number of threads: the heading apart, they are listed by what they are runs of.
 * O(n log n) */
static void
sort_runs (GPtrArray *rows)
{
  g_autoptr (GPtrArray) runs = g_ptr_array_new ();
  g_autoptr (GArray) options = g_array_new (FALSE, FALSE, sizeof (int));
  int column = 1;

  for (guint i = 1; i < rows->len; i++)
    g_ptr_array_add (runs, g_ptr_array_index (rows, i));
  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++, column++)
    for (guint i = 0; i < runs->len; i++)
      if (*((char **) g_ptr_array_index (runs, i))[column] != '\0')
        {
          g_array_append_val (options, column);
          break;
        }
  g_ptr_array_sort_with_data (runs, compare_runs, options);
  for (guint i = 0; i < runs->len; i++)
    rows->pdata[i + 1] = g_ptr_array_index (runs, i);
}

/* @why: NULL for SQLite's words. */
static void
refuse_where (PodDatabase *database, const char *where, const char *why, GError **error)
{
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--where: '%s': %s; columns are those of docs/guide/database.md, such as time_ps < 1e12 AND layout LIKE '%%tp=8%%'",
               where != NULL ? where : "", why != NULL ? why : sqlite3_errmsg (database->handle));
}

GPtrArray *
pod_database_select (PodDatabase *database, const char *where, GError **error)
{
  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func (free_cells);
  g_autofree char *sql = g_strdup_printf ("SELECT * FROM run WHERE (%s\n)", where != NULL ? where : "1");
  sqlite3_stmt *statement = NULL;
  const char *rest = NULL;
  int status;

  sqlite3_set_authorizer (database->handle, allow_reading, NULL);
  status = sqlite3_prepare_v2 (database->handle, sql, -1, &statement, &rest);
  sqlite3_set_authorizer (database->handle, NULL, NULL);
  if (status != SQLITE_OK || *rest != '\0')
    {
      refuse_where (database, where, status != SQLITE_OK ? NULL : "is more than one condition", error);
      sqlite3_finalize (statement);
      return NULL;
    }
  g_ptr_array_add (rows, heading_of (statement));
  while ((status = sqlite3_step (statement)) == SQLITE_ROW)
    g_ptr_array_add (rows, cells_of (statement));
  sqlite3_finalize (statement);
  if (status == SQLITE_DONE)
    {
      sort_runs (rows);
      return g_steal_pointer (&rows);
    }
  refuse_where (database, where, NULL, error);
  return NULL;
}

#endif
