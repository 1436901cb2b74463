#include "search/sweep.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "search/auto-layout.h"
#include "search/crew.h"
#include "search/shapes.h"

#define MAX_RUNS UINT64_C (1000000)

static const char *const degree_keys[] = { "dp", "fsdp", "tp", "cp", "pp", "vpp", "ep", "etp", NULL };

static bool
is_path (const char *key)
{
  return g_str_has_prefix (key, "chip.") || g_str_has_prefix (key, "topology.") || g_str_has_prefix (key, "model.");
}

static bool
is_option (const char *key)
{
  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    if (strcmp (option->name, key) == 0)
      return true;
  return false;
}

/* Puts @key=@value into the layout's text in the place of what it says of that axis. */
static void
set_degree (PodScenario *scenario, const char *key, const char *value)
{
  g_auto (GStrv) words = g_strsplit_set (scenario->layout != NULL ? scenario->layout : "", " \t\n", -1);
  g_autofree char *prefix = g_strconcat (key, "=", NULL);
  GString *text = g_string_new (NULL);

  for (unsigned i = 0; words[i] != NULL; i++)
    if (*words[i] != '\0' && !g_str_has_prefix (words[i], prefix))
      g_string_append_printf (text, "%s ", words[i]);
  g_string_append_printf (text, "%s=%s", key, value);
  g_free (scenario->layout);
  scenario->layout = g_string_free (text, FALSE);
}

/* The batch of @value tokens for each chip of the scenario's machine. */
static bool
set_tokens_per_chip (PodScenario *scenario, const char *value, GError **error)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (PodTopology) topology = pod_scenario_topology (scenario, notes, error);
  uint64_t tokens;

  if (topology == NULL || !pod_parse_whole (value, POD_UNIT_COUNT, &tokens, error))
    return false;
  if (!g_uint64_checked_mul (&tokens, tokens, topology->n_chips))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "tokens-per-chip=%s: %u chips have over 2^64 tokens", value, topology->n_chips);
      return false;
    }
  g_free (scenario->global_batch);
  scenario->global_batch = g_strdup_printf ("%" G_GUINT64_FORMAT "tok", tokens);
  return true;
}

/* The most compact machine of @value chips of the scenario's kind. */
static bool
set_chips (PodScenario *scenario, const char *value, GError **error)
{
  g_autofree char *chip = g_strndup (scenario->topology != NULL ? scenario->topology : "", scenario->topology != NULL ? strcspn (scenario->topology, ":") : 0);
  const char *options = scenario->topology != NULL ? strchr (scenario->topology, ',') : NULL;
  g_autofree char *text = g_strdup_printf ("%s:%s%s", chip, value, options != NULL ? options : "");
  g_autoptr (GPtrArray) shapes = pod_shapes_of (text, error);

  if (shapes == NULL)
    {
      g_prefix_error (error, "chips=%s: ", value);
      return false;
    }
  g_free (scenario->topology);
  scenario->topology = g_strdup (g_ptr_array_index (shapes, 0));
  return true;
}

static bool
apply (PodScenario *scenario, const char *key, const char *value, GError **error)
{
  if (strcmp (key, "chips") == 0)
    return set_chips (scenario, value, error);
  if (strcmp (key, "tokens-per-chip") == 0)
    return set_tokens_per_chip (scenario, value, error);
  if (g_strv_contains (degree_keys, key))
    {
      set_degree (scenario, key, value);
      return true;
    }
  if (is_path (key))
    {
      g_autofree char *text = g_strdup_printf ("%s=%s", key, value);

      return pod_scenario_set (scenario, "set", text, error);
    }
  return pod_scenario_set (scenario, key, value, error);
}

/* Keys that say an option by way of the machine. */
static bool
is_of_machine (const char *key)
{
  return strcmp (key, "chips") == 0 || strcmp (key, "tokens-per-chip") == 0;
}

static bool
check_value (const PodScenario *base, const char *key, const char *value, GError **error)
{
  g_autoptr (PodScenario) probe = pod_scenario_copy (base);
  uint64_t whole;

  if (!is_of_machine (key) ? apply (probe, key, value, error) : pod_parse_whole (value, POD_UNIT_COUNT, &whole, error))
    return true;
  g_prefix_error (error, "--vary: %s%s", is_of_machine (key) ? key : "", is_of_machine (key) ? ": " : "");
  return false;
}

bool
pod_sweep_check (const PodScenario *base, const PodGrid *grid, GError **error)
{
  for (guint d = 0; d < grid->dims->len; d++)
    {
      const PodGridDim *dim = g_ptr_array_index (grid->dims, d);

      if (strcmp (dim->key, "workload") == 0 || strcmp (dim->key, "strict") == 0
          || (!is_of_machine (dim->key) && !g_strv_contains (degree_keys, dim->key) && !is_path (dim->key) && !is_option (dim->key)))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "--vary: unknown key '%s'; known are options of the job, dp, fsdp, tp, cp, pp, vpp, ep, etp, chips, tokens-per-chip, and paths such as chip.hbm_bandwidth", dim->key);
          return false;
        }
      for (guint v = 0; v < dim->values->len; v++)
        if (!check_value (base, dim->key, g_ptr_array_index (dim->values, v), error))
          return false;
    }
  if (pod_grid_size (grid) <= MAX_RUNS)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "--vary: %" G_GUINT64_FORMAT " combinations are over %" G_GUINT64_FORMAT, pod_grid_size (grid), MAX_RUNS);
  return false;
}

bool
pod_sweep_add_chips (const PodScenario *base, PodGrid *grid, GError **error)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (PodTopology) topology = NULL;

  if (pod_grid_find (grid, "chips") != NULL)
    return true;
  topology = pod_scenario_topology (base, notes, error);
  if (topology == NULL)
    return false;
  for (unsigned factor = 1; factor <= 8; factor *= 2)
    {
      g_autofree char *value = g_strdup_printf ("%u", topology->n_chips * factor);

      pod_grid_add_value (grid, "chips", value);
    }
  pod_grid_put_first (grid, "chips");
  return true;
}

/* Ten values by twos, from a sequence for each chip on. */
static bool
add_tokens (const PodScenario *base, PodGrid *grid, GError **error)
{
  uint64_t tokens;

  if (base->seq_len == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--seq-len: how many tokens has a sequence? The sweep of fsdp-tp begins at one for each chip");
      return false;
    }
  if (!pod_parse_whole (base->seq_len, POD_UNIT_COUNT, &tokens, error))
    {
      g_prefix_error (error, "--seq-len: ");
      return false;
    }
  for (unsigned i = 0; i < 10 && (double) tokens <= POD_MAX_STEP_TOKENS; i++, tokens *= 2)
    {
      g_autofree char *value = g_strdup_printf ("%" G_GUINT64_FORMAT, tokens);

      pod_grid_add_value (grid, "tokens-per-chip", value);
    }
  return true;
}

bool
pod_sweep_add_fsdp_tp (const PodScenario *base, PodGrid *grid, GError **error)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (PodTopology) topology = NULL;
  g_autofree char *fsdp = NULL;
  g_autofree char *tp = NULL;

  if (grid->dims->len == 0 && !add_tokens (base, grid, error))
    return false;
  if (pod_grid_find (grid, "layout") != NULL)
    return true;
  topology = pod_scenario_topology (base, notes, error);
  if (topology == NULL)
    return false;
  fsdp = g_strdup_printf ("fsdp=%u", topology->n_devices);
  tp = g_strdup_printf ("tp=%u", topology->n_devices);
  pod_grid_add_value (grid, "layout", fsdp);
  pod_grid_add_value (grid, "layout", tp);
  pod_grid_add_value (grid, "layout", "fsdp=auto tp=auto");
  return true;
}

/* Weak scaling: the batch times the chips of this combination over those of the first. */
static bool
scale_batch (const PodSweepRequest *request, PodScenario *scenario, const char *chips, GError **error)
{
  const PodGridDim *dim = pod_grid_find (request->grid, "chips");
  const bool is_tokens = scenario->global_batch != NULL && g_str_has_suffix (scenario->global_batch, "tok");
  g_autofree char *text = scenario->global_batch != NULL ? g_strndup (scenario->global_batch, strlen (scenario->global_batch) - (is_tokens ? 3 : 0)) : NULL;
  uint64_t batch;
  uint64_t n;
  uint64_t first;

  if (text == NULL) /* the run says what is missing */
    return true;
  if (!pod_parse_whole (text, POD_UNIT_COUNT, &batch, error) || !pod_parse_whole (chips, POD_UNIT_COUNT, &n, error)
      || !pod_parse_whole (g_ptr_array_index (dim->values, 0), POD_UNIT_COUNT, &first, error))
    return false;
  if (first == 0 || !g_uint64_checked_mul (&batch, batch, n) || batch % first != 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--global-batch: %s at %" G_GUINT64_FORMAT " chips is no whole batch at %" G_GUINT64_FORMAT, scenario->global_batch, first, n);
      return false;
    }
  g_free (scenario->global_batch);
  scenario->global_batch = g_strdup_printf ("%" G_GUINT64_FORMAT "%s", batch / first, is_tokens ? "tok" : "");
  return true;
}

/* What is asked: --layout auto is not yet resolved. */
static PodScenario *
asked_scenario (const PodSweepRequest *request, uint64_t index, GError **error)
{
  g_autoptr (PodScenario) scenario = pod_scenario_copy (request->base);

  for (guint pass = 0; pass < 2; pass++) /* degrees go into the layout, tokens are of the machine: both are set before */
    for (guint d = 0; d < request->grid->dims->len; d++)
      {
        const char *key = ((PodGridDim *) g_ptr_array_index (request->grid->dims, d))->key;
        const char *value = pod_grid_value (request->grid, index, d);

        if ((g_strv_contains (degree_keys, key) || strcmp (key, "tokens-per-chip") == 0) != (pass == 1))
          continue;
        if (!apply (scenario, key, value, error) || (request->scaling == POD_SCALING_WEAK && strcmp (key, "chips") == 0 && !scale_batch (request, scenario, value, error)))
          return NULL;
      }
  return g_steal_pointer (&scenario);
}

static PodScenario *
run_scenario (const void *data, uint64_t candidate, GError **error)
{
  const PodSweepRequest *request = data;
  const PodSearchRequest search = { .objective = request->objective, .n_jobs = 1, .is_interrupted = request->is_interrupted };
  g_autoptr (PodScenario) scenario = asked_scenario (request, candidate, error);

  if (scenario == NULL || !pod_layout_is_auto (scenario))
    return g_steal_pointer (&scenario);
  return pod_layout_choose (scenario, &search, error);
}

typedef struct
{
  const PodSweepRequest *request;
  PodCrew *crew;
  GArray *rows;
  char *inputs; /* (nullable) */
  uint64_t next;
  uint64_t n_done;
} Sweep;

/* Which layout is taken for one that is auto hangs on the objective too. Returns: (transfer full) (nullable) */
static char *
key_of (const Sweep *sweep, uint64_t index, PodScenario **out)
{
  g_autofree char *inputs = NULL;

  *out = sweep->request->database != NULL ? asked_scenario (sweep->request, index, NULL) : NULL;
  if (*out == NULL)
    return NULL;
  inputs = g_strconcat (sweep->inputs, pod_layout_is_auto (*out) ? pod_objective_names[sweep->request->objective] : "", NULL);
  return pod_database_key (inputs, *out);
}

/* A row of a search may lack its times: what did not fit was given up there. */
static bool
take_kept (Sweep *sweep, uint64_t index)
{
  g_autoptr (PodScenario) scenario = NULL;
  g_autofree char *key = key_of (sweep, index, &scenario);
  PodRow row = { .candidate = index };

  if (key == NULL || !pod_database_find (sweep->request->database, key, &row) || (row.status == POD_ROW_TOO_LARGE && row.time_ps == 0))
    return false;
  g_array_index (sweep->rows, PodRow, index) = row;
  sweep->n_done++;
  return true;
}

static bool
take_chunk (Sweep *sweep, PodCrewChunk *chunk, GError **error)
{
  bool is_good = true;

  for (unsigned i = 0; i < chunk->n; i++)
    {
      const PodRow *row = &chunk->rows[i];
      g_autoptr (PodScenario) scenario = NULL;
      g_autofree char *key = NULL;

      g_array_index (sweep->rows, PodRow, row->candidate) = *row;
      sweep->n_done += row->status != POD_ROW_NONE;
      key = is_good ? key_of (sweep, row->candidate, &scenario) : NULL;
      if (key != NULL)
        is_good = pod_database_add (sweep->request->database, &key, &scenario, row, 1, error);
    }
  if (chunk->error == NULL)
    return is_good;
  if (is_good)
    g_propagate_error (error, g_steal_pointer (&chunk->error));
  return false;
}

static bool
is_interrupted (const Sweep *sweep)
{
  return sweep->request->is_interrupted != NULL && *sweep->request->is_interrupted;
}

/* One at a time: runs of a sweep may be long and few. */
static void
give (Sweep *sweep)
{
  while (pod_crew_n_wanted (sweep->crew) > 0 && sweep->next < sweep->rows->len && !is_interrupted (sweep))
    {
      const uint64_t index = sweep->next++;

      if (!take_kept (sweep, index))
        pod_crew_give (sweep->crew, POD_CREW_RUN, &index, 1);
    }
}

GArray *
pod_sweep_run (const PodSweepRequest *request, GError **error)
{
  g_autoptr (PodCachePool) caches = pod_cache_pool_new ();
  g_autofree char *inputs = request->database != NULL ? pod_database_inputs () : NULL;
  g_autoptr (GArray) rows = g_array_new (FALSE, TRUE, sizeof (PodRow));
  const PodCrewRequest crew_request = { .scenario = run_scenario, .data = request, .n_jobs = request->n_jobs, .caches = caches, .is_interrupted = request->is_interrupted };
  g_autoptr (PodCrew) crew = pod_crew_new (&crew_request);
  Sweep sweep = { .request = request, .crew = crew, .rows = rows, .inputs = inputs };
  bool is_good = true;

  g_array_set_size (rows, (guint) pod_grid_size (request->grid));
  for (guint i = 0; i < rows->len; i++)
    g_array_index (rows, PodRow, i).candidate = i;
  give (&sweep);
  while (pod_crew_n_given (crew) > 0)
    {
      g_autoptr (PodCrewChunk) chunk = pod_crew_take (crew, 100000);

      if (chunk != NULL)
        is_good = take_chunk (&sweep, chunk, is_good ? error : NULL) && is_good;
      if (is_good)
        give (&sweep);
      if (request->progress != NULL)
        request->progress (sweep.n_done, rows->len, request->progress_data);
    }
  return is_good ? g_steal_pointer (&rows) : NULL;
}
