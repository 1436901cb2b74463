#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "base/table.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/sweep-plot.h"
#include "search/crossing.h"
#include "search/sweep.h"

/* A grid of runs. */

typedef struct
{
  char *json;
  char *csv;
  char *plot;
  char *db;
  char *jobs;
  char *preset;
  char **vary;
} Options;

static void
options_clear (Options *options)
{
  g_free (options->json);
  g_free (options->csv);
  g_free (options->plot);
  g_free (options->db);
  g_free (options->jobs);
  g_free (options->preset);
  g_strfreev (options->vary);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Options, options_clear)

static bool
parse_preset (const char *text, PodScaling *out, GError **error)
{
  *out = POD_SCALING_NONE;
  if (g_strcmp0 (text, "strong-scaling") == 0)
    *out = POD_SCALING_STRONG;
  else if (g_strcmp0 (text, "weak-scaling") == 0)
    *out = POD_SCALING_WEAK;
  else if (text != NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--preset: unknown '%s'; known are strong-scaling, weak-scaling", text);
      return false;
    }
  return true;
}

/* What varies, and what a preset adds to it. */
static bool
make_grid (const PodScenario *scenario, const Options *options, PodGrid *grid, PodScaling *out_scaling, GError **error)
{
  if (!parse_preset (options->preset, out_scaling, error))
    return false;
  for (unsigned i = 0; options->vary != NULL && options->vary[i] != NULL; i++)
    if (!pod_grid_add (grid, options->vary[i], error))
      {
        g_prefix_error (error, "--vary: ");
        return false;
      }
  if (*out_scaling != POD_SCALING_NONE && !pod_sweep_add_chips (scenario, grid, error))
    return false;
  if (grid->dims->len > 0)
    return pod_sweep_check (scenario, grid, error);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--vary: what varies? for instance --vary global-batch=256:4096:*2");
  return false;
}

/* The first row that fits, with which scaling compares; NULL when none does. */
static const PodRow *
first_fitting (const GArray *rows)
{
  for (guint i = 0; i < rows->len; i++)
    if (g_array_index (rows, PodRow, i).status == POD_ROW_FITS)
      return &g_array_index (rows, PodRow, i);
  return NULL;
}

/* Throughput of a chip over that of a chip of the first row. */
static double
efficiency (const PodRow *row, const PodRow *first)
{
  return row->tokens_per_s_per_chip / first->tokens_per_s_per_chip;
}

/* -- tables ---- */

static PodTable *
make_table (const PodGrid *grid, const GArray *rows, PodScaling scaling)
{
  g_autoptr (GPtrArray) titles = g_ptr_array_new ();
  const PodRow *first = first_fitting (rows);
  PodTable *table;

  for (guint d = 0; d < grid->dims->len; d++)
    g_ptr_array_add (titles, ((PodGridDim *) g_ptr_array_index (grid->dims, d))->key);
  for (const char *const *t = (const char *const[]){ ">time", ">MFU", ">tokens/s/chip", ">memory", ">$/step", "bound", scaling != POD_SCALING_NONE ? ">efficiency" : "layout", NULL };
       *t != NULL; t++)
    g_ptr_array_add (titles, (char *) *t);
  g_ptr_array_add (titles, NULL);
  table = pod_table_new ((const char *const *) titles->pdata);
  for (guint i = 0; i < rows->len; i++)
    {
      const PodRow *row = &g_array_index (rows, PodRow, i);
      const bool has_time = row->time_ps > 0;
      g_autofree char *time = has_time ? pod_format_seconds ((double) row->time_ps / 1e12) : g_strdup ("-");
      g_autofree char *mfu = has_time ? g_strdup_printf ("%.1f %%", 100 * row->mfu) : g_strdup ("-");
      g_autofree char *tokens = has_time ? g_strdup_printf ("%.0f", row->tokens_per_s_per_chip) : g_strdup ("-");
      g_autofree char *memory = has_time ? pod_format_bytes (pod_row_bytes (row), false) : g_strdup ("-");
      g_autofree char *cost = row->usd_per_step >= 0 ? g_strdup_printf ("%.4g", row->usd_per_step) : g_strdup ("-");
      g_autofree char *last = NULL;
      g_autoptr (GPtrArray) cells = g_ptr_array_new ();

      if (!has_time)
        last = g_strdup (row->status == POD_ROW_NONE ? "not run" : row->refusal);
      else if (row->status == POD_ROW_TOO_LARGE)
        last = g_strdup ("does not fit");
      else
        last = scaling != POD_SCALING_NONE ? g_strdup_printf ("%.1f %%", 100 * efficiency (row, first)) : g_strdup (row->layout);
      for (guint d = 0; d < grid->dims->len; d++)
        g_ptr_array_add (cells, (char *) pod_grid_value (grid, i, d));
      for (const char *const *c = (const char *const[]){ time, mfu, tokens, memory, cost, row->bound, last, NULL }; *c != NULL; c++)
        g_ptr_array_add (cells, (char *) *c);
      g_ptr_array_add (cells, NULL);
      pod_table_add_row (table, (const char *const *) cells->pdata);
    }
  return table;
}

/* Every number of a row in SI units, for other programs. */
static PodTable *
make_csv (const PodGrid *grid, const GArray *rows)
{
  static const char *const results[] = { "status", "layout_run", "time_s", "mfu", "tokens_per_s", "tokens_per_s_per_chip", "compute_s", "bubble_s", "idle_s", "exposed_comm_s", "peak_bytes",
                                         "reserved_bytes", "capacity_bytes", "chips", "usd_per_step", "train_days", "train_usd", "bound", "reason", NULL };
  g_autoptr (GPtrArray) titles = g_ptr_array_new ();
  PodTable *table;

  for (guint d = 0; d < grid->dims->len; d++)
    g_ptr_array_add (titles, ((PodGridDim *) g_ptr_array_index (grid->dims, d))->key);
  for (unsigned i = 0; results[i] != NULL; i++)
    g_ptr_array_add (titles, (char *) results[i]);
  g_ptr_array_add (titles, NULL);
  table = pod_table_new ((const char *const *) titles->pdata);
  for (guint i = 0; i < rows->len; i++)
    {
      const PodRow *row = &g_array_index (rows, PodRow, i);
      const bool has_time = row->time_ps > 0;
      g_autoptr (GPtrArray) cells = g_ptr_array_new_with_free_func (g_free);
      int64_t exposed_ps = 0;

      for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
        exposed_ps += row->exposed_ps[a];
      for (guint d = 0; d < grid->dims->len; d++)
        g_ptr_array_add (cells, g_strdup (pod_grid_value (grid, i, d)));
      g_ptr_array_add (cells, g_strdup (pod_row_status_names[row->status]));
      g_ptr_array_add (cells, g_strdup (row->layout));
      for (const double *v = (const double[]){ (double) row->time_ps / 1e12, row->mfu, row->tokens_per_s, row->tokens_per_s_per_chip, (double) row->compute_ps / 1e12,
                                               (double) row->bubble_ps / 1e12, (double) row->idle_ps / 1e12, (double) exposed_ps / 1e12, row->peak_bytes, row->reserved_bytes,
                                               row->capacity_bytes, row->chips, row->usd_per_step, row->train_days, row->train_usd, -2 };
           *v != -2; v++)
        g_ptr_array_add (cells, has_time && *v >= 0 ? pod_format_double (*v) : g_strdup (""));
      g_ptr_array_add (cells, g_strdup (row->bound));
      g_ptr_array_add (cells, g_strdup (row->refusal));
      g_ptr_array_add (cells, NULL);
      pod_table_add_row (table, (const char *const *) cells->pdata);
    }
  return table;
}

static double
measure_time (const PodRow *row)
{
  return (double) row->time_ps / 1e12;
}

/* crossings[]: where lines of the picture cross. */
static void
add_crossings (JsonObject *object, const PodGrid *grid, const GArray *rows)
{
  g_autoptr (GArray) crossings = pod_crossings (grid, rows, measure_time);
  JsonArray *array = crossings->len > 0 ? pod_result_get_array (object, "crossings") : NULL;

  for (guint i = 0; i < crossings->len; i++)
    {
      const PodCrossing *crossing = &g_array_index (crossings, PodCrossing, i);
      g_autofree char *before = pod_cli_line_name (grid, crossing->lines[0]);
      g_autofree char *after = pod_cli_line_name (grid, crossing->lines[1]);
      JsonObject *entry = json_object_new ();

      pod_result_set_string (entry, "key", ((PodGridDim *) g_ptr_array_index (grid->dims, 0))->key);
      pod_result_set_double (entry, "at", crossing->at);
      pod_result_set_double (entry, "time_s", crossing->value);
      pod_result_set_string (entry, "faster_before", before);
      pod_result_set_string (entry, "faster_after", after);
      json_array_add_object_element (array, entry);
    }
}

static JsonObject *
to_json (const PodGrid *grid, const GArray *rows, PodScaling scaling, bool is_partial)
{
  JsonObject *object = json_object_new ();
  const PodRow *first = first_fitting (rows);
  JsonArray *array;

  pod_result_set_int (object, "schema_version", 1);
  pod_result_set_bool (object, "is_partial", is_partial);
  array = pod_result_get_array (object, "rows");
  for (guint i = 0; i < rows->len; i++)
    {
      const PodRow *row = &g_array_index (rows, PodRow, i);
      JsonObject *entry = json_object_new ();
      JsonObject *varied = json_object_new ();
      JsonObject *result = pod_row_to_json (row);
      JsonObjectIter iter;
      const char *name;
      JsonNode *node;

      for (guint d = 0; d < grid->dims->len; d++)
        json_object_set_string_member (varied, ((PodGridDim *) g_ptr_array_index (grid->dims, d))->key, pod_grid_value (grid, i, d));
      json_object_set_object_member (entry, "varied", varied);
      json_object_iter_init_ordered (&iter, result);
      while (json_object_iter_next_ordered (&iter, &name, &node))
        json_object_set_member (entry, name, json_node_copy (node));
      json_object_unref (result);
      if (scaling != POD_SCALING_NONE && row->time_ps > 0 && first != NULL)
        pod_result_set_double (entry, "scaling.efficiency_ratio", efficiency (row, first));
      json_array_add_object_element (array, entry);
    }
  add_crossings (object, grid, rows);
  return object;
}

/* -- the command ---- */

static void
show_progress (uint64_t n_done, uint64_t n_all, void *data)
{
  pod_progress_show (data, "ran", n_done, n_all, NULL);
}

static bool
save (const char *file, const char *text, bool is_partial, GError **error)
{
  g_autofree char *name = is_partial && strcmp (file, "-") != 0 ? pod_output_partial_name (file) : g_strdup (file);

  return pod_output_save (name, text, error);
}

static bool
write_outputs (const PodGrid *grid, const GArray *rows, PodScaling scaling, const Options *options, bool is_partial, GError **error)
{
  if (options->csv != NULL)
    {
      g_autoptr (PodTable) table = make_csv (grid, rows);
      g_autofree char *text = pod_table_to_separated (table, ',');

      if (!save (options->csv, text, is_partial, error))
        return false;
    }
  if (options->json != NULL)
    {
      JsonObject *object = to_json (grid, rows, scaling, is_partial);
      g_autofree char *name = is_partial && strcmp (options->json, "-") != 0 ? pod_output_partial_name (options->json) : g_strdup (options->json);
      const bool is_written = pod_cli_write_json (object, name, error);

      json_object_unref (object);
      if (!is_written)
        return false;
    }
  return options->plot == NULL || pod_cli_plot_sweep (grid, rows, options->plot, error);
}

static int
sweep (const PodScenario *scenario, const Options *options)
{
  g_autoptr (PodGrid) grid = pod_grid_new ();
  g_autoptr (PodDatabase) database = NULL;
  g_autoptr (GArray) rows = NULL;
  g_autoptr (GError) error = NULL;
  PodSweepRequest request = { .base = scenario, .grid = grid, .progress = show_progress };
  PodProgress progress;
  bool is_partial = false;
  bool is_quiet = g_strcmp0 (options->json, "-") == 0 || g_strcmp0 (options->csv, "-") == 0;

  if (!make_grid (scenario, options, grid, &request.scaling, &error) || !pod_cli_parse_jobs (options->jobs, g_get_num_processors (), &request.n_jobs, &error))
    return pod_cli_fail (error);
  if (options->db != NULL)
    {
      database = pod_database_open (options->db, &error);
      if (database == NULL)
        return pod_cli_fail (error);
    }
  request.database = database;
  pod_progress_init (&progress);
  request.progress_data = &progress;
  request.is_interrupted = pod_cli_catch_interrupt ();
  rows = pod_sweep_run (&request, &error);
  is_partial = *request.is_interrupted != 0;
  pod_cli_release_interrupt ();
  pod_progress_end (&progress);
  if (rows == NULL)
    return pod_cli_fail (error);
  if (!is_quiet)
    {
      g_autoptr (PodTable) table = make_table (grid, rows, request.scaling);
      g_autofree char *text = pod_table_to_text (table);

      fputs (text, stdout);
    }
  if (!write_outputs (grid, rows, request.scaling, options, is_partial, &error))
    return pod_cli_fail (error);
  if (is_partial)
    {
      fprintf (stderr, "podsim: interrupted: not all combinations were run\n");
      return 1;
    }
  return first_fitting (rows) != NULL ? 0 : 3;
}

int
pod_cmd_sweep (int argc, char **argv)
{
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;
  g_auto (Options) options = { 0 };
  const GOptionEntry entries[] = {
    { "vary", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.vary, "an option, degree, chips or path and its values: global-batch=256:4096:*2; once for each axis of the grid", "KEY=LIST" },
    { "preset", 0, 0, G_OPTION_ARG_FILENAME, &options.preset, "over machines of 1, 2, 4 and 8 times the chips (or --vary chips=LIST): strong-scaling, weak-scaling", "NAME" },
    { "csv", 0, 0, G_OPTION_ARG_FILENAME, &options.csv, "a line for each run, in SI units (- is stdout)", "FILE" },
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &options.json, "rows[] as JSON (- is stdout)", "FILE" },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME, &options.plot, "pictures: lines over the first axis of the grid, a heat map of two", "DIR" },
    { "db", 0, 0, G_OPTION_ARG_FILENAME, &options.db, "a database that keeps every run; a sweep that was stopped goes on from it", "FILE" },
    { "jobs", 0, 0, G_OPTION_ARG_FILENAME, &options.jobs, "threads (as many as processors)", "N" },
    { .long_name = NULL },
  };
  g_autoptr (GOptionContext) context = g_option_context_new ("- a grid of runs");
  int status;

  g_option_context_add_group (context, pod_cli_scenario_group (scenario, NULL));
  if (!pod_cli_parse (context, entries, &argc, &argv, 0, &status))
    return status;
  if (!pod_scenario_load_workload (scenario, &error) || !pod_scenario_apply_framework (scenario, &error))
    return pod_cli_fail (error);
  return sweep (scenario, &options);
}
