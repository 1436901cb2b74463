#include "validate/validate-training.h"

#include <string.h>

#include "base/error.h"
#include "search/cache-pool.h"
#include "validate/training-scenario.h"
#include "validate/training-sources.h"

/* Releases of one layout that differ by more than this say nothing about a model. */
#define MOST_SPREAD_RATIO 0.2

#define BYTES_PER_GIB 1073741824.0

static void
verdict_free (gpointer data)
{
  PodTrainingVerdict *verdict = data;

  g_free (verdict->reason);
  pod_scenario_free (verdict->scenario);
  if (verdict->result != NULL)
    json_object_unref (verdict->result);
  g_free (verdict);
}

static void
table_free (gpointer data)
{
  pod_training_table_free (data);
}

void
pod_training_validation_free (PodTrainingValidation *validation)
{
  if (validation == NULL)
    return;
  g_ptr_array_unref (validation->sources);
  g_ptr_array_unref (validation->verdicts);
  g_ptr_array_unref (validation->tables);
  g_free (validation);
}

/* ---- what was measured ---- */

/* MFU, or HFU where the source counts recomputation: stated, or from its TFLOP/s and its peak. */
static double
measured_mfu (const PodTrainingRow *row, const PodTrainingConvention *convention)
{
  const double stated = convention->has_recompute ? row->hfu_ratio : row->mfu_ratio;

  if (stated > 0)
    return stated;
  return row->peak_tflops > 0 ? row->tflops_per_chip / row->peak_tflops : 0;
}

static PodTrainingVerdict *
verdict_new (const PodTrainingRow *row)
{
  const PodTrainingConvention *convention = pod_training_convention (row);
  const PodTrainingSource *source = pod_training_source (row);
  PodTrainingVerdict *verdict = g_new0 (PodTrainingVerdict, 1);

  verdict->row = row;
  verdict->is_noisy = row->spread_ratio > MOST_SPREAD_RATIO;
  verdict->is_memory_counted = source == NULL || source->is_memory_measured;
  verdict->measured[POD_TRAINING_TIME] = row->step_time_s;
  verdict->measured[POD_TRAINING_MFU] = convention != NULL ? measured_mfu (row, convention) : 0;
  verdict->measured[POD_TRAINING_MEMORY] = row->memory_gib * BYTES_PER_GIB;
  return verdict;
}

/* ---- running ---- */

static double
number (JsonObject *result, const char *path)
{
  double value = 0;

  return pod_result_get_double (result, path, &value) ? value : 0;
}

/* MFU or HFU, over the peak that the source divides by where it tells that. */
static double
predicted_mfu (const PodTrainingRow *row, JsonObject *result)
{
  const PodTrainingConvention *convention = pod_training_convention (row);
  const bool is_hfu = convention != NULL && convention->has_recompute;
  const double ratio = number (result, is_hfu ? "step.hfu" : "step.mfu");
  const double ours = number (result, "step.mfu_peak_flops_per_s");

  return row->peak_tflops > 0 ? ratio * ours / (row->peak_tflops * 1e12) : ratio;
}

static void
take_result (PodTrainingVerdict *verdict, const PodRun *run)
{
  verdict->result = json_object_ref (run->result);
  verdict->fits = run->fits;
  verdict->lower_bound_s = number (run->result, "step.lower_bound_s");
  verdict->predicted[POD_TRAINING_TIME] = number (run->result, "step.time_s");
  verdict->predicted[POD_TRAINING_MFU] = predicted_mfu (verdict->row, run->result);
  verdict->predicted[POD_TRAINING_MEMORY] = number (run->result, "memory.peak_bytes") + number (run->result, "memory.reserved_bytes");
}

typedef struct
{
  const PodTrainingRequest *request;
  PodCachePool *caches; /* rows share machines, models and libraries */
} Running;

static void
run_row (gpointer data, gpointer user_data)
{
  PodTrainingVerdict *verdict = data;
  const Running *running = user_data;
  const PodTrainingRequest *request = running->request;
  g_autoptr (PodRunCache) cache = pod_cache_pool_take (running->caches);
  const PodRunRequest plain = { .is_recording_none = true, .cache = cache };
  g_autoptr (GError) error = NULL;
  g_autoptr (PodRun) run = NULL;

  verdict->scenario = pod_training_scenario (verdict->row, &error);
  if (verdict->scenario != NULL && pod_scenario_apply_framework (verdict->scenario, &error)
      && (request->fidelity == NULL
          || pod_scenario_set (verdict->scenario, "fidelity", request->fidelity, &error)))
    run = pod_scenario_run (verdict->scenario, &plain, &error);
  if (run != NULL)
    take_result (verdict, run);
  else
    verdict->reason = g_strdup (error->message);
  pod_cache_pool_give (running->caches, g_steal_pointer (&cache));
}

/* Each verdict is written by one thread only, so that the order of the threads shows nowhere. */
static bool
run_rows (const PodTrainingValidation *validation, const PodTrainingRequest *request,
          GError **error)
{
  g_autoptr (PodCachePool) caches = pod_cache_pool_new ();
  Running running = { request, caches };
  GThreadPool *pool;

  pool = g_thread_pool_new (run_row, &running, (int) request->n_threads, TRUE, error);
  if (pool == NULL)
    return false;
  for (guint i = 0; i < validation->verdicts->len; i++)
    g_thread_pool_push (pool, g_ptr_array_index (validation->verdicts, i), NULL);
  g_thread_pool_free (pool, FALSE, TRUE);
  return true;
}

static bool
is_wanted (const PodTrainingRow *row, const PodTrainingRequest *request)
{
  const PodTrainingMachine *machine = pod_training_machine (row);

  if ((!row->is_judged && !request->has_all_rows)
      || (request->is_memory_only && !(row->memory_gib > 0)))
    return false;
  return request->chip == NULL || (machine != NULL && g_strcmp0 (machine->chip, request->chip) == 0);
}

static void
add_source (GPtrArray *sources, const char *key)
{
  if (!g_ptr_array_find_with_equal_func (sources, key, g_str_equal, NULL))
    g_ptr_array_add (sources, (gpointer) key);
}

static bool
add_table (PodTrainingValidation *validation, const char *file, const PodTrainingRequest *request,
           GError **error)
{
  PodTrainingTable *table = pod_training_table_load (file, error);

  if (table == NULL)
    return false;
  for (guint i = 0; i < table->rows->len; i++)
    {
      PodTrainingRow *row = g_ptr_array_index (table->rows, i);

      if (!is_wanted (row, request))
        continue;
      if (row->source == NULL)
        row->source = "source not stated";
      g_ptr_array_add (validation->verdicts, verdict_new (row));
      add_source (validation->sources, row->source);
    }
  g_ptr_array_add (validation->tables, table);
  return true;
}

PodTrainingValidation *
pod_validate_training (const PodTrainingRequest *request, GError **error)
{
  g_autoptr (PodTrainingValidation) validation = g_new0 (PodTrainingValidation, 1);

  validation->tables = g_ptr_array_new_with_free_func (table_free);
  validation->verdicts = g_ptr_array_new_with_free_func (verdict_free);
  validation->sources = g_ptr_array_new ();
  for (unsigned i = 0; i < request->n_files; i++)
    if (!add_table (validation, request->files[i], request, error))
      return NULL;
  if (validation->verdicts->len == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s has no row to judge%s%s",
                   request->files[0], request->chip != NULL ? " of " : "",
                   request->chip != NULL ? request->chip : "");
      return NULL;
    }
  return run_rows (validation, request, error) ? g_steal_pointer (&validation) : NULL;
}

/* ---- summing up ---- */

bool
pod_training_is_counted (const PodTrainingVerdict *verdict, PodTrainingKind kind)
{
  if (verdict->reason != NULL || !(verdict->measured[kind] > 0))
    return false;
  return kind == POD_TRAINING_MEMORY ? verdict->is_memory_counted : !verdict->is_noisy;
}

double
pod_training_error (const PodTrainingVerdict *verdict, PodTrainingKind kind)
{
  return verdict->predicted[kind] / verdict->measured[kind] - 1;
}

bool
pod_training_is_fitted (const PodTrainingRow *row)
{
  uint32_t hash = 2166136261;

  for (const char *at = row->id != NULL ? row->id : ""; *at != '\0'; at++)
    hash = (hash ^ (uint8_t) *at) * 16777619;
  return hash % 2 == 0;
}

static bool
is_selected (const PodTrainingVerdict *verdict, const PodTrainingSelection *selection)
{
  const PodTrainingSource *source = pod_training_source (verdict->row);

  return (selection->source == NULL || strcmp (verdict->row->source, selection->source) == 0)
         && (selection->group == NULL || (source != NULL && g_strcmp0 (source->group, selection->group) == 0))
         && (selection->half < 0 || pod_training_is_fitted (verdict->row) == (selection->half == 1));
}

PodErrorSummary
pod_training_summary_of (const PodTrainingValidation *validation, PodTrainingKind kind, const PodTrainingSelection *selection)
{
  g_autofree double *errors = g_new (double, validation->verdicts->len + 1);
  unsigned n = 0;

  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodTrainingVerdict *verdict = g_ptr_array_index (validation->verdicts, i);

      if (pod_training_is_counted (verdict, kind) && is_selected (verdict, selection))
        errors[n++] = pod_training_error (verdict, kind);
    }
  return pod_error_summary (errors, n);
}

double
pod_training_coverage (const PodTrainingValidation *validation, const PodTrainingSelection *selection)
{
  unsigned n = 0;
  unsigned n_within = 0;

  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodTrainingVerdict *verdict = g_ptr_array_index (validation->verdicts, i);
      const double measured_s = verdict->measured[POD_TRAINING_TIME];

      if (!pod_training_is_counted (verdict, POD_TRAINING_TIME) || !is_selected (verdict, selection))
        continue;
      n++;
      n_within += measured_s >= number (verdict->result, "step.time_low_s") && measured_s <= number (verdict->result, "step.time_high_s");
    }
  return n > 0 ? (double) n_within / n : 0;
}

PodErrorSummary
pod_training_summary (const PodTrainingValidation *validation, PodTrainingKind kind,
                      const char *source)
{
  return pod_training_summary_of (validation, kind, &(PodTrainingSelection){ .source = source, .half = -1 });
}

unsigned
pod_training_n_skipped (const PodTrainingValidation *validation, const char *source)
{
  unsigned n = 0;

  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodTrainingVerdict *verdict = g_ptr_array_index (validation->verdicts, i);

      n += verdict->reason != NULL
           && (source == NULL || strcmp (verdict->row->source, source) == 0);
    }
  return n;
}

/* ---- a line for each row ---- */

/* Where the time goes, as podsim run splits it: keys of its result. */
static const char *const parts[] = {
  "step.compute_s",          "step.recompute_s",        "step.optimizer_s",
  "step.kernels_s.matmul",   "step.kernels_s.attention", "step.kernels_s.elementwise",
  "step.kernels_s.optimizer", "step.kernels",
  "step.exposed_comm_s.dp",  "step.exposed_comm_s.fsdp", "step.exposed_comm_s.tp",
  "step.exposed_comm_s.cp",  "step.exposed_comm_s.ep",   "step.exposed_comm_s.pp",
  "step.bubble_s",           "step.idle_s",             "step.lower_bound_s",
  "step.comm_s.dp",          "step.comm_s.fsdp",        "step.comm_s.tp",
  "step.losses_s.clock",     "step.losses_s.spread",    "step.losses_s.attention",
  "step.losses_s.elementwise", "step.losses_s.host",
  "memory.params_bytes",     "memory.grads_bytes",      "memory.optimizer_bytes",
  "memory.activations_bytes", "memory.workspace_bytes",
};

enum
{
  N_FIXED = 15,
  N_COLUMNS = N_FIXED + G_N_ELEMENTS (parts) + 1, /* the last: options */
};

static const char *const fixed[N_FIXED] = {
  "id", "source", ">line", "counted", "half", "topology", "model", "layout", "measured_s", "predicted_s",
  "error", "measured_mfu", "predicted_mfu", "measured_bytes", "predicted_bytes",
};

static char *
cell (bool is_there, double value)
{
  return is_there ? pod_format_double (value) : g_strdup ("NA");
}

static char *
word (const char *value)
{
  return g_strdup (value != NULL ? value : "NA");
}

/* The options that are set, as podsim run takes them. */
static char *
list_options (const PodScenario *scenario)
{
  GString *out = g_string_new (NULL);

  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    {
      const void *at = (const char *) scenario + option->offset;

      if (!pod_scenario_is_set (scenario, option))
        continue;
      if (option->kind == POD_OPTION_FLAG)
        g_string_append_printf (out, " --%s%s", *(const int *) at == 1 ? "" : "no-", option->name);
      else if (option->kind == POD_OPTION_TEXT)
        g_string_append_printf (out, " --%s '%s'", option->name, *(char *const *) at);
      else if (option->kind == POD_OPTION_COUNT || option->kind == POD_OPTION_COUNT_OR_ALL || option->kind == POD_OPTION_WHOLE)
        g_string_append_printf (out, " --%s %" G_GUINT64_FORMAT, option->name,
                                *(const uint64_t *) at);
      else if (option->kind == POD_OPTION_LIST)
        for (guint i = 0; i < (*(GPtrArray *const *) at)->len; i++)
          g_string_append_printf (out, " --%s %s", option->name,
                                  (char *) g_ptr_array_index (*(GPtrArray *const *) at, i));
    }
  if (out->len > 0)
    g_string_erase (out, 0, 1);
  return g_string_free (out, FALSE);
}

static void
add_line (PodTable *table, const PodTrainingVerdict *v)
{
  const bool is_run = v->reason == NULL;
  g_autofree char *reason = is_run ? NULL : g_strconcat ("no: ", v->reason, NULL);
  char *cells[N_COLUMNS + 1] = { NULL };
  unsigned n = 0;

  cells[n++] = word (v->row->id);
  cells[n++] = g_strdup (v->row->source);
  cells[n++] = g_strdup_printf ("%u", v->row->line);
  cells[n++] = g_strdup (!is_run ? reason : v->is_noisy ? "no: spread over 20 %" : "yes");
  cells[n++] = g_strdup (pod_training_is_fitted (v->row) ? "fitted" : "other");
  cells[n++] = word (v->scenario != NULL ? v->scenario->topology : NULL);
  cells[n++] = word (v->row->model);
  cells[n++] = word (v->scenario != NULL ? v->scenario->layout : NULL);
  for (int kind = 0; kind < POD_N_TRAINING_KINDS; kind++)
    {
      cells[n++] = cell (v->measured[kind] > 0, v->measured[kind]);
      cells[n++] = cell (is_run, v->predicted[kind]);
      if (kind == POD_TRAINING_TIME)
        cells[n++] = is_run ? g_strdup_printf ("%.4f", pod_training_error (v, (PodTrainingKind) kind))
                            : g_strdup ("NA");
    }
  for (size_t i = 0; i < G_N_ELEMENTS (parts); i++)
    cells[n++] = cell (is_run, is_run ? number (v->result, parts[i]) : 0);
  cells[n++] = v->scenario != NULL ? list_options (v->scenario) : word (NULL);
  g_assert (n == N_COLUMNS);
  pod_table_add_row (table, (const char *const *) cells);
  for (unsigned i = 0; i < n; i++)
    g_free (cells[i]);
}

/* "step.exposed_comm_s.dp" is the column exposed_dp_s, "step.losses_s.clock" lost_clock_s. */
static char *
part_title (const char *path)
{
  static const struct
  {
    const char *within;
    const char *prefix;
  } kinds[] = { { "exposed_comm_s.", "exposed_" }, { ".comm_s.", "comm_" }, { "kernels_s.", "kernels_" }, { "losses_s.", "lost_" } };
  const char *name = strrchr (path, '.') + 1;

  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (strstr (path, kinds[i].within) != NULL)
      return g_strdup_printf ("%s%s_s", kinds[i].prefix, name);
  return g_strdup (name);
}

PodTable *
pod_training_per_row (const PodTrainingValidation *validation)
{
  char *titles[N_COLUMNS + 1] = { NULL };
  PodTable *table;

  for (unsigned i = 0; i < N_COLUMNS; i++)
    titles[i] = i < N_FIXED         ? g_strdup (fixed[i])
                : i < N_COLUMNS - 1 ? part_title (parts[i - N_FIXED])
                                    : g_strdup ("options");
  table = pod_table_new ((const char *const *) titles);
  for (unsigned i = 0; i < N_COLUMNS; i++)
    g_free (titles[i]);
  for (guint i = 0; i < validation->verdicts->len; i++)
    add_line (table, g_ptr_array_index (validation->verdicts, i));
  return table;
}

/* ---- JSON ---- */

static void
set_summary (JsonObject *object, const PodErrorSummary *summary)
{
  pod_result_set_int (object, "rows", summary->n_rows);
  pod_error_summary_to_json (object, summary);
}

static JsonObject *
by_source (const PodTrainingValidation *validation, PodTrainingKind kind)
{
  JsonObject *sources = json_object_new ();

  for (guint i = 0; i < validation->sources->len; i++)
    {
      const char *key = g_ptr_array_index (validation->sources, i);
      PodErrorSummary summary = pod_training_summary (validation, kind, key);
      JsonObject *source = json_object_new ();

      set_summary (source, &summary);
      pod_result_set_int (source, "rows_skipped", pod_training_n_skipped (validation, key));
      json_object_set_object_member (sources, key, source);
    }
  return sources;
}

/* Rows that are judged together, by halves, and how many lie in their range. */
static JsonObject *
by_group (const PodTrainingValidation *validation)
{
  static const char *const halves[] = { "others", "fitted" };
  JsonObject *groups = json_object_new ();

  for (const PodTrainingSource *source = pod_training_sources; source->key != NULL; source++)
    {
      const PodTrainingSelection all = { .group = source->group, .half = -1 };
      PodErrorSummary summary = pod_training_summary_of (validation, POD_TRAINING_TIME, &all);
      JsonObject *group;

      if (source->group == NULL || summary.n_rows == 0 || json_object_has_member (groups, source->group))
        continue;
      group = json_object_new ();
      set_summary (group, &summary);
      pod_result_set_double (group, "in_range", pod_training_coverage (validation, &all));
      for (int half = 0; half < 2; half++)
        {
          JsonObject *part = json_object_new ();

          summary = pod_training_summary_of (validation, POD_TRAINING_TIME, &(PodTrainingSelection){ .group = source->group, .half = half });
          set_summary (part, &summary);
          json_object_set_object_member (group, halves[half], part);
        }
      json_object_set_object_member (groups, source->group, group);
    }
  return groups;
}

static const char *const kind_keys[POD_N_TRAINING_KINDS] = {
  [POD_TRAINING_TIME] = "step_time",
  [POD_TRAINING_MFU] = "mfu",
  [POD_TRAINING_MEMORY] = "memory",
};

static void
add_kind (JsonObject *object, const PodTrainingValidation *validation, PodTrainingKind kind)
{
  PodErrorSummary summary = pod_training_summary (validation, kind, NULL);
  JsonObject *part = json_object_new ();

  set_summary (part, &summary);
  json_object_set_object_member (part, "by_source", by_source (validation, kind));
  json_object_set_object_member (object, kind_keys[kind], part);
}

JsonObject *
pod_training_to_json (const PodTrainingValidation *validation, PodTrainingKind main)
{
  JsonObject *object = json_object_new ();
  PodErrorSummary summary = pod_training_summary (validation, main, NULL);
  JsonArray *skipped;
  JsonArray *noisy;

  pod_result_set_int (object, "schema_version", 1);
  pod_result_set_string (object, "command",
                         main == POD_TRAINING_TIME ? "validate training" : "validate memory");
  pod_result_set_int (object, "rows", validation->verdicts->len);
  pod_result_set_int (object, "rows_judged", summary.n_rows);
  skipped = pod_result_get_array (object, "rows_skipped");
  noisy = pod_result_get_array (object, "rows_reported");
  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodTrainingVerdict *v = g_ptr_array_index (validation->verdicts, i);
      const char *id = v->row->id != NULL ? v->row->id : "NA";
      g_autofree char *line = v->reason != NULL ? g_strdup_printf ("%s: %s", id, v->reason) : NULL;

      if (line != NULL)
        json_array_add_string_element (skipped, line);
      else if (v->is_noisy)
        json_array_add_string_element (noisy, id);
    }
  pod_error_summary_to_json (object, &summary);
  json_object_set_object_member (object, "by_source", by_source (validation, main));
  if (main == POD_TRAINING_TIME)
    json_object_set_object_member (object, "by_group", by_group (validation));
  for (int kind = 0; kind < POD_N_TRAINING_KINDS; kind++)
    add_kind (object, validation, (PodTrainingKind) kind);
  return object;
}
