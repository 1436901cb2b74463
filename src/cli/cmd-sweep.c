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
#include "report/plot.h"
#include "report/report.h"
#include "search/sweep.h"

/* A grid of runs. */

typedef struct
{
  char *json;
  char *csv;
  char *plot;
  char *report;
  char *db;
  char *jobs;
  char *objective;
  char *preset;
  char **vary;
} Options;

static void
options_clear (Options *options)
{
  g_free (options->json);
  g_free (options->csv);
  g_free (options->plot);
  g_free (options->report);
  g_free (options->db);
  g_free (options->jobs);
  g_free (options->objective);
  g_free (options->preset);
  g_strfreev (options->vary);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Options, options_clear)

typedef struct
{
  const char *name;
  PodScaling scaling;
  bool is_fsdp_tp;
} Preset;

static const Preset presets[] = {
  { "strong-scaling", POD_SCALING_STRONG, false },
  { "weak-scaling", POD_SCALING_WEAK, false },
  { "fsdp-tp", POD_SCALING_NONE, true },
};

/* @out: NULL when none is asked for. */
static bool
parse_preset (const char *text, const Preset **out, GError **error)
{
  *out = NULL;
  for (unsigned i = 0; text != NULL && i < G_N_ELEMENTS (presets); i++)
    if (strcmp (text, presets[i].name) == 0)
      *out = &presets[i];
  if (text == NULL || *out != NULL)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--preset: unknown '%s'; known are strong-scaling, weak-scaling, fsdp-tp", text);
  return false;
}

/* What the book assumes of a batch-size sweep, where nobody says otherwise: one microbatch, nothing computed again. */
static bool
set_fsdp_tp (PodScenario *scenario, const PodGrid *grid, GError **error)
{
  return (scenario->micro_batch != 0 || pod_grid_find (grid, "micro-batch") != NULL || pod_scenario_set (scenario, "micro-batch", "all", error))
         && (scenario->recompute != NULL || pod_grid_find (grid, "recompute") != NULL || pod_scenario_set (scenario, "recompute", "none", error));
}

/* What varies, and what a preset adds to it and to the job. */
static bool
make_grid (PodScenario *scenario, const Options *options, const Preset *preset, PodGrid *grid, GError **error)
{
  for (unsigned i = 0; options->vary != NULL && options->vary[i] != NULL; i++)
    if (!pod_grid_add (grid, options->vary[i], error))
      {
        g_prefix_error (error, "--vary: ");
        return false;
      }
  if (preset != NULL && preset->scaling != POD_SCALING_NONE && !pod_sweep_add_chips (scenario, grid, error))
    return false;
  if (preset != NULL && preset->is_fsdp_tp && (!pod_sweep_add_fsdp_tp (scenario, grid, error) || !set_fsdp_tp (scenario, grid, error)))
    return false;
  if (grid->dims->len > 0)
    return pod_sweep_check (scenario, grid, error);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--vary: what varies? for instance --vary global-batch=256:4096:*2");
  return false;
}

/* The row of the fewest chips that fits, all else as in row @index; NULL when none does, or nothing scales. */
static const PodRow *
scaling_base (const PodGrid *grid, const GArray *rows, guint index)
{
  guint stride = 1;

  for (guint d = grid->dims->len; d-- > 0;)
    {
      const PodGridDim *dim = g_ptr_array_index (grid->dims, d);
      const guint own = index / stride % dim->values->len;

      if (strcmp (dim->key, "chips") != 0)
        {
          stride *= dim->values->len;
          continue;
        }
      for (guint v = 0; v < dim->values->len; v++)
        {
          const PodRow *row = &g_array_index (rows, PodRow, index - own * stride + v * stride);

          if (row->status == POD_ROW_FITS)
            return row;
        }
      return NULL;
    }
  return NULL;
}

/* Throughput of a chip over that of a chip of @base. */
static double
efficiency (const PodRow *row, const PodRow *base)
{
  return row->tokens_per_s_per_chip / base->tokens_per_s_per_chip;
}

/* -- tables ---- */

/* What the table says of a sweep beside what it says of all. */
typedef struct
{
  PodScaling scaling;
  PodObjective objective;
} Question;

static void
add_titles (const Question *question, GPtrArray *titles)
{
  for (const char *const *t = (const char *const[]){ ">time", ">MFU", ">tokens/s/chip", ">memory", ">$/step", "bound", NULL }; *t != NULL; t++)
    g_ptr_array_add (titles, (char *) *t);
  if (question->scaling != POD_SCALING_NONE)
    g_ptr_array_add (titles, (char *) ">efficiency");
  if (question->objective == POD_OBJECTIVE_COMM)
    {
      g_ptr_array_add (titles, (char *) ">forward comm");
      g_ptr_array_add (titles, (char *) ">forward compute");
    }
  g_ptr_array_add (titles, (char *) "layout");
}

static const char *
layout_or_why_not (const PodRow *row)
{
  if (row->time_ps > 0)
    return row->status == POD_ROW_TOO_LARGE ? "does not fit" : row->layout;
  return row->status == POD_ROW_NONE ? "not run" : row->refusal;
}

/* Cells of one row. Returns: (transfer full) (element-type utf8) */
static GPtrArray *
make_cells (const PodRow *row, const PodRow *base, const Question *question)
{
  GPtrArray *cells = g_ptr_array_new_with_free_func (g_free);
  const bool has_time = row->time_ps > 0;

  g_ptr_array_add (cells, has_time ? pod_format_seconds ((double) row->time_ps / 1e12) : g_strdup ("-"));
  g_ptr_array_add (cells, has_time ? g_strdup_printf ("%.1f %%", 100 * row->mfu) : g_strdup ("-"));
  g_ptr_array_add (cells, has_time ? g_strdup_printf ("%.0f", row->tokens_per_s_per_chip) : g_strdup ("-"));
  g_ptr_array_add (cells, has_time ? pod_format_bytes (pod_row_bytes (row), false) : g_strdup ("-"));
  g_ptr_array_add (cells, row->usd_per_step >= 0 ? g_strdup_printf ("%.4g", row->usd_per_step) : g_strdup ("-"));
  g_ptr_array_add (cells, g_strdup (row->bound));
  if (question->scaling != POD_SCALING_NONE)
    g_ptr_array_add (cells, row->status == POD_ROW_FITS ? g_strdup_printf ("%.1f %%", 100 * efficiency (row, base)) : g_strdup ("-"));
  if (question->objective == POD_OBJECTIVE_COMM)
    {
      g_ptr_array_add (cells, has_time ? pod_format_seconds ((double) row->forward_comm_ps / 1e12) : g_strdup ("-"));
      g_ptr_array_add (cells, has_time ? pod_format_seconds ((double) row->forward_compute_ps / 1e12) : g_strdup ("-"));
    }
  g_ptr_array_add (cells, g_strdup (layout_or_why_not (row)));
  return cells;
}

static PodTable *
make_table (const PodGrid *grid, const GArray *rows, const Question *question)
{
  g_autoptr (GPtrArray) titles = g_ptr_array_new ();
  PodTable *table;

  for (guint d = 0; d < grid->dims->len; d++)
    g_ptr_array_add (titles, ((PodGridDim *) g_ptr_array_index (grid->dims, d))->key);
  add_titles (question, titles);
  g_ptr_array_add (titles, NULL);
  table = pod_table_new ((const char *const *) titles->pdata);
  for (guint i = 0; i < rows->len; i++)
    {
      g_autoptr (GPtrArray) cells = make_cells (&g_array_index (rows, PodRow, i), scaling_base (grid, rows, i), question);

      for (guint d = 0; d < grid->dims->len; d++)
        g_ptr_array_insert (cells, (int) d, g_strdup (pod_grid_value (grid, i, d)));
      g_ptr_array_add (cells, NULL);
      pod_table_add_row (table, (const char *const *) cells->pdata);
    }
  return table;
}

/* Every number of a row in SI units, for other programs. */
static PodTable *
make_csv (const PodGrid *grid, const GArray *rows)
{
  static const char *const results[] = { "status", "layout_run", "time_s", "mfu", "tokens_per_s", "tokens_per_s_per_chip", "compute_s", "bubble_s", "idle_s", "exposed_comm_s", "forward_comm_s", "forward_compute_s",
                                         "peak_bytes", "reserved_bytes", "capacity_bytes", "chips", "usd_per_step", "train_days", "train_usd", "bound", "reason", NULL };
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
                                               (double) row->bubble_ps / 1e12, (double) row->idle_ps / 1e12, (double) exposed_ps / 1e12, (double) row->forward_comm_ps / 1e12, (double) row->forward_compute_ps / 1e12, row->peak_bytes, row->reserved_bytes,
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

/* axes[]: what varies, the first key first. */
static void
add_axes (JsonObject *object, const PodGrid *grid)
{
  JsonArray *axes = pod_result_get_array (object, "axes");

  for (guint d = 0; d < grid->dims->len; d++)
    {
      const PodGridDim *dim = g_ptr_array_index (grid->dims, d);
      JsonObject *entry = json_object_new ();
      JsonArray *values = NULL;

      pod_result_set_string (entry, "key", dim->key);
      values = pod_result_get_array (entry, "values");
      for (guint v = 0; v < dim->values->len; v++)
        json_array_add_string_element (values, g_ptr_array_index (dim->values, v));
      json_array_add_object_element (axes, entry);
    }
}

/* Where something crosses on the first axis. Returns: (transfer full) */
static JsonObject *
crossing_to_json (const PodGrid *grid, const PodSweepMeasure *measure, const PodCrossing *crossing)
{
  JsonObject *entry = json_object_new ();

  pod_result_set_string (entry, "key", ((PodGridDim *) g_ptr_array_index (grid->dims, 0))->key);
  pod_result_set_double (entry, "at", crossing->at);
  pod_result_set_double (entry, measure->key, crossing->value);
  return entry;
}

/* crossings[]: where lines of the picture cross each other. */
static void
add_crossings (JsonObject *object, const PodGrid *grid, const GArray *rows, const PodSweepMeasure *measure)
{
  g_autoptr (GArray) crossings = pod_crossings (grid, rows, measure->measure);
  JsonArray *array = crossings->len > 0 ? pod_result_get_array (object, "crossings") : NULL;

  for (guint i = 0; i < crossings->len; i++)
    {
      const PodCrossing *crossing = &g_array_index (crossings, PodCrossing, i);
      JsonObject *entry = crossing_to_json (grid, measure, crossing);
      g_autofree char *before = pod_cli_line_name (grid, crossing->lines[0]);
      g_autofree char *after = pod_cli_line_name (grid, crossing->lines[1]);

      pod_result_set_string (entry, "less_before", before);
      pod_result_set_string (entry, "less_after", after);
      json_array_add_object_element (array, entry);
    }
}

/* balances[]: where a line's communication takes as long as its compute. */
static void
add_balances (JsonObject *object, const PodGrid *grid, const GArray *rows, const PodSweepMeasure *measure)
{
  g_autoptr (GArray) balances = measure->other != NULL ? pod_balances (grid, rows, measure->measure, measure->other) : NULL;
  JsonArray *array = balances != NULL && balances->len > 0 ? pod_result_get_array (object, "balances") : NULL;

  for (guint i = 0; balances != NULL && i < balances->len; i++)
    {
      const PodCrossing *balance = &g_array_index (balances, PodCrossing, i);
      JsonObject *entry = crossing_to_json (grid, measure, balance);
      g_autofree char *line = pod_cli_line_name (grid, balance->lines[0]);

      pod_result_set_string (entry, "line", line);
      pod_result_set_string (entry, "bound_before", balance->is_first_lower ? "compute" : "communication");
      pod_result_set_string (entry, "bound_after", balance->is_first_lower ? "communication" : "compute");
      json_array_add_object_element (array, entry);
    }
}

static JsonObject *
to_json (const PodGrid *grid, const GArray *rows, const Question *question, bool is_partial)
{
  JsonObject *object = json_object_new ();
  JsonArray *array;

  pod_result_set_int (object, "schema_version", 1);
  pod_result_set_string (object, "objective", pod_objective_names[question->objective]);
  pod_result_set_bool (object, "is_partial", is_partial);
  add_axes (object, grid);
  array = pod_result_get_array (object, "rows");
  for (guint i = 0; i < rows->len; i++)
    {
      const PodRow *row = &g_array_index (rows, PodRow, i);
      const PodRow *base = scaling_base (grid, rows, i);
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
      if (question->scaling != POD_SCALING_NONE && row->time_ps > 0 && base != NULL)
        pod_result_set_double (entry, "scaling.efficiency_ratio", efficiency (row, base));
      json_array_add_object_element (array, entry);
    }
  add_crossings (object, grid, rows, pod_cli_sweep_measure (question->objective));
  add_balances (object, grid, rows, pod_cli_sweep_measure (question->objective));
  return object;
}

/* -- the command ---- */

static void
show_progress (uint64_t n_done, uint64_t n_all, void *data)
{
  pod_progress_show (data, "ran", n_done, n_all, NULL);
}

/* Returns: (transfer full) */
static char *
name_of (const char *file, bool is_partial)
{
  return is_partial && strcmp (file, "-") != 0 ? pod_output_partial_name (file) : g_strdup (file);
}

static bool
write_csv (const PodGrid *grid, const GArray *rows, const char *file, bool is_partial, GError **error)
{
  g_autoptr (PodTable) table = make_csv (grid, rows);
  g_autofree char *text = pod_table_to_separated (table, ',');
  g_autofree char *name = name_of (file, is_partial);

  return pod_output_save (name, text, error);
}

static bool
write_pictures (const PodGrid *grid, const GArray *rows, const Question *question, const char *folder, bool is_partial, GError **error)
{
  g_autofree char *name = name_of (folder, is_partial);

  if (!pod_report_has_gnuplot ())
    fprintf (stderr, "podsim: gnuplot is not installed: %s gets data and script, no picture\n", name);
  return pod_cli_plot_sweep (grid, rows, question->objective, name, error);
}

/* @title: "llama3-70b on h100:8x16" */
static bool
write_page (JsonObject *object, const char *title, const char *file, bool is_partial, GError **error)
{
  g_autofree char *name = name_of (file, is_partial);

  return pod_report_html_sweep (object, title, name, error);
}

static bool
write_outputs (const PodScenario *scenario, const PodGrid *grid, const GArray *rows, const Question *question, const Options *options, bool is_partial, GError **error)
{
  g_autoptr (JsonObject) object = options->json != NULL || options->report != NULL ? to_json (grid, rows, question, is_partial) : NULL;
  g_autofree char *title = g_strdup_printf ("%s%s%s", scenario->model != NULL ? scenario->model : "one job", scenario->topology != NULL ? " on " : "",
                                            scenario->topology != NULL ? scenario->topology : "");
  g_autofree char *json = options->json != NULL ? name_of (options->json, is_partial) : NULL;

  return (options->csv == NULL || write_csv (grid, rows, options->csv, is_partial, error))
         && (options->plot == NULL || write_pictures (grid, rows, question, options->plot, is_partial, error))
         && (options->report == NULL || write_page (object, title, options->report, is_partial, error))
         && (json == NULL || pod_cli_write_json (object, json, error));
}

static bool
make_request (PodScenario *scenario, const Options *options, PodGrid *grid, PodSweepRequest *request, GError **error)
{
  const Preset *preset;

  if (!parse_preset (options->preset, &preset, error) || !make_grid (scenario, options, preset, grid, error))
    return false;
  request->scaling = preset != NULL ? preset->scaling : POD_SCALING_NONE;
  return pod_cli_parse_objective (options->objective, preset != NULL && preset->is_fsdp_tp ? POD_OBJECTIVE_COMM : POD_OBJECTIVE_TIME, &request->objective, error)
         && pod_cli_parse_jobs (options->jobs, g_get_num_processors (), &request->n_jobs, error);
}

static int
sweep (PodScenario *scenario, const Options *options)
{
  g_autoptr (PodGrid) grid = pod_grid_new ();
  g_autoptr (PodDatabase) database = NULL;
  g_autoptr (GArray) rows = NULL;
  g_autoptr (GError) error = NULL;
  PodSweepRequest request = { .base = scenario, .grid = grid, .progress = show_progress };
  Question question;
  PodProgress progress;
  bool is_partial = false;

  if (!make_request (scenario, options, grid, &request, &error))
    return pod_cli_fail (error);
  question = (Question){ request.scaling, request.objective };
  if (options->db != NULL)
    {
      database = pod_database_open (options->db, &error);
      if (database == NULL)
        {
          g_prefix_error (&error, "--db: ");
          return pod_cli_fail (error);
        }
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
  if (g_strcmp0 (options->json, "-") != 0 && g_strcmp0 (options->csv, "-") != 0)
    {
      g_autoptr (PodTable) table = make_table (grid, rows, &question);
      g_autofree char *text = pod_table_to_text (table);

      fputs (text, stdout);
    }
  if (!write_outputs (scenario, grid, rows, &question, options, is_partial, &error))
    return pod_cli_fail (error);
  if (is_partial)
    {
      fprintf (stderr, "podsim: interrupted: not all combinations were run\n");
      return 1;
    }
  return pod_rows_any_fits (rows) ? 0 : 3;
}

int
pod_cmd_sweep (int argc, char **argv)
{
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;
  g_auto (Options) options = { 0 };
  const GOptionEntry entries[] = {
    { "vary", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.vary, "an option, degree, chips, tokens-per-chip or path and its values: global-batch=256:4096:*2; once for each axis of the grid", "KEY=LIST" },
    { "preset", 0, 0, G_OPTION_ARG_FILENAME, &options.preset, "strong-scaling, weak-scaling: over 1, 2, 4 and 8 times the chips (or --vary chips=LIST); fsdp-tp: FSDP, TP and both over tokens-per-chip", "NAME" },
    { "objective", 0, 0, G_OPTION_ARG_FILENAME, &options.objective, "what lines show and cross by, and auto layouts are the best by: time (default), cost, memory, comm", "O" },
    { "csv", 0, 0, G_OPTION_ARG_FILENAME, &options.csv, "a line for each run, in SI units (- is stdout)", "FILE" },
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &options.json, "rows[] as JSON (- is stdout)", "FILE" },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME, &options.plot, "pictures: lines over the first axis of the grid, a heat map of two", "DIR" },
    { "report", 0, 0, G_OPTION_ARG_FILENAME, &options.report, "all of it as one HTML page", "FILE" },
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
