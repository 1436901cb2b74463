#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/units.h"
#include "scenario/expert-load.h"
#include "scenario/result-private.h"
#include "scenario/run-cache.h"

/* From a scenario to a run: load, prepare (choose.c), build, execute. */

/* Splits "chip.hbm_bandwidth=1.23TB/s" and checks whose it is. Returns: (transfer full) (nullable) path and value */
static char **
split_set (const char *text, GError **error)
{
  g_auto (GStrv) pair = g_strsplit (text, "=", 2);

  if (g_strv_length (pair) != 2 || (!g_str_has_prefix (pair[0], "chip.") && !g_str_has_prefix (pair[0], "topology.") && !g_str_has_prefix (pair[0], "model.") && !g_str_has_prefix (pair[0], "framework.")))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--set: '%s' is not chip.FIELD=VALUE, topology.FIELD=VALUE, model.FIELD=VALUE or framework.FIELD=VALUE", text);
      return NULL;
    }
  return g_steal_pointer (&pair);
}

/* The --set overrides of the machine. */
static bool
set_topology (const PodScenario *scenario, PodTopology *topology, GPtrArray *assumptions, GError **error)
{
  for (guint i = 0; i < scenario->set->len; i++)
    {
      const char *text = g_ptr_array_index (scenario->set, i);
      g_auto (GStrv) pair = split_set (text, error);

      if (pair == NULL)
        return false;
      if (g_str_has_prefix (pair[0], "model.") || g_str_has_prefix (pair[0], "framework."))
        continue;
      if (!pod_topology_set (topology, pair[0], pair[1], error))
        {
          g_prefix_error (error, "--set %s: ", text);
          return false;
        }
      pod_run_assume (assumptions, "set: %s", text);
    }
  return true;
}

static void
append_all (GPtrArray *to, const GPtrArray *from)
{
  for (guint i = 0; from != NULL && i < from->len; i++)
    g_ptr_array_add (to, g_strdup (g_ptr_array_index ((GPtrArray *) from, i)));
}

PodTopology *
pod_scenario_topology (const PodScenario *scenario, GPtrArray *assumptions, GError **error)
{
  g_autoptr (PodTopology) topology = NULL;

  if (scenario->topology == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--topology: which machine? for instance --topology tpu-v5p:4x4x4 or h100:8x16");
      return NULL;
    }
  topology = scenario->load_topology != NULL ? scenario->load_topology (scenario->topology, scenario->topology_format, error)
                                             : pod_topology_load (scenario->topology, error);
  if (topology == NULL)
    {
      pod_error_prefix_option (error, "--topology");
      return NULL;
    }
  append_all (assumptions, topology->assumptions);
  if (!set_topology (scenario, topology, assumptions, error))
    return NULL;
  return g_steal_pointer (&topology);
}

/* The shape options and --set model.FIELD=N, all checked together so that heads and KV heads can move at once. */
static bool
set_model (const PodScenario *scenario, PodModel *model, GPtrArray *assumptions, GError **error)
{
  g_autoptr (GString) said = g_string_new (NULL); /* "--heads --set model.ffn" */
  guint n_options;
  const PodModelOverride options[] = {
    { "layers", scenario->layers },     { "hidden", scenario->hidden }, { "heads", scenario->heads }, { "kv_heads", scenario->kv_heads },
    { "head_dim", scenario->head_dim }, { "ffn", scenario->ffn },       { "vocab", scenario->vocab },
    { "mtp", scenario->mtp },
  };
  g_autoptr (GArray) overrides = g_array_new (FALSE, FALSE, sizeof (PodModelOverride));
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);

  for (unsigned i = 0; i < G_N_ELEMENTS (options); i++)
    if (options[i].value > 0)
      g_array_append_val (overrides, options[i]);
  n_options = overrides->len;
  for (guint i = 0; i < scenario->set->len; i++)
    {
      g_auto (GStrv) pair = split_set (g_ptr_array_index (scenario->set, i), error);
      PodModelOverride override;

      if (pair == NULL)
        return false;
      if (!g_str_has_prefix (pair[0], "model."))
        continue;
      if (!pod_parse_whole (pair[1], POD_UNIT_COUNT, &override.value, error))
        {
          g_prefix_error (error, "--set %s: ", pair[0]);
          return false;
        }
      g_ptr_array_add (names, g_strdelimit (g_strdup (pair[0] + strlen ("model.")), "-", '_'));
      override.field = g_ptr_array_index (names, names->len - 1);
      g_array_append_val (overrides, override);
    }
  for (guint i = 0; i < overrides->len; i++)
    {
      const PodModelOverride *override = &g_array_index (overrides, PodModelOverride, i);

      pod_run_assume (assumptions, "model: %s set to %" G_GUINT64_FORMAT, override->field, override->value);
      g_string_append_printf (said, "%s%s%s", i > 0 ? " " : "", i < n_options ? "--" : "--set model.", override->field);
    }
  if (overrides->len == 0 || pod_model_set_all (model, (const PodModelOverride *) overrides->data, overrides->len, error))
    return true;
  g_strdelimit (said->str, "_", '-');
  g_prefix_error (error, "%s: ", said->str);
  return false;
}

PodModel *
pod_scenario_model (const PodScenario *scenario, GPtrArray *assumptions, GError **error)
{
  g_autoptr (PodModel) model = NULL;

  if (scenario->model == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--model: which model? a config.json, or a name such as llama3-70b");
      return NULL;
    }
  model = pod_model_load (scenario->model, error);
  if (model == NULL)
    {
      pod_error_prefix_option (error, "--model");
      return NULL;
    }
  append_all (assumptions, model->notes);
  if (!set_model (scenario, model, assumptions, error) || !pod_model_check (model, error))
    return NULL;
  return g_steal_pointer (&model);
}

/* NULL stands for the cheapest that fits. */
static bool
choose_algorithm (const PodScenario *scenario, const char **out, GError **error)
{
  g_autoptr (GPtrArray) names = pod_collective_algorithms ();
  g_autofree char *all = NULL;

  *out = NULL;
  if (scenario->algorithm == NULL || strcmp (scenario->algorithm, "auto") == 0)
    return true;
  *out = scenario->algorithm;
  if (g_ptr_array_find_with_equal_func (names, scenario->algorithm, g_str_equal, NULL))
    return true;
  if (strchr (scenario->algorithm, '/') != NULL) /* with a protocol: the plans say what is wrong with it */
    return true;
  g_ptr_array_add (names, NULL);
  all = g_strjoinv (", ", (char **) names->pdata);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--algorithm: unknown '%s'; known are auto, %s", scenario->algorithm, all);
  return false;
}

/* How packets travel; @dead_links keeps what @out borrows. */
static bool
choose_packets (const PodScenario *scenario, PodNetworkMode network, GArray *dead_links, PodPacketOptions *out, GError **error)
{
  if (scenario->packet != NULL && network != POD_NETWORK_PACKET)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--packet needs --network packet");
      return false;
    }
  if (pod_packet_options_parse (scenario->packet, out, dead_links, error))
    return true;
  g_prefix_error (error, "--packet: ");
  return false;
}

/* With POD_CHECK set: the timeline is sound and every rank's breakdown adds up to the step. */
static bool
check_run (const PodRun *run, GError **error)
{
  for (uint32_t r = 0; !run->exec->is_partial && r < run->exec->n_represented; r++)
    {
      const PodBreakdown *b = &run->exec->breakdowns[r];
      int64_t sum_ps = b->compute_ps + b->bubble_ps + b->idle_ps;

      for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
        sum_ps += b->exposed_ps[a];
      g_assert_cmpint (sum_ps, ==, run->exec->time_ps);
    }
  return run->exec->is_partial || pod_timeline_check (run->exec->timeline, error);
}

bool
pod_run_exec_request (const PodScenario *scenario, const PodRun *run, GArray *dead_links, PodExecRequest *out, GError **error)
{
  static const char *const networks[] = { "analytic", "flow", "packet", NULL };
  static const char *const folds[] = { "auto", "off", NULL };
  int network;
  int fold;

  *out = (PodExecRequest){
    .topology = run->topology, .program = run->program, .fidelity = run->fidelity, .software = &run->software, .library = run->library, .plans = pod_run_cache_plans (run->cache)
  };
  if (!choose_algorithm (scenario, &out->algorithm, error) || !pod_run_choose ("network", scenario->network, networks, 1, &network, error)
      || !pod_run_choose ("fold", scenario->fold, folds, 0, &fold, error))
    return false;
  out->network = (PodNetworkMode) network; /* in the order of their names */
  out->is_folded = fold == 0;
  return choose_packets (scenario, out->network, dead_links, &out->packet, error);
}

static bool
execute (const PodScenario *scenario, const PodRunRequest *request, PodRun *run, GError **error)
{
  g_autoptr (GArray) dead_links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  PodExecRequest exec;

  if (!pod_run_exec_request (scenario, run, dead_links, &exec, error))
    return false;
  for (uint32_t i = 0; i < request->n_record; i++)
    if (request->record[i] >= run->mesh->n_ranks)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--trace-ranks: rank %u, but the layout has ranks 0 to %u", request->record[i], run->mesh->n_ranks - 1);
        return false;
      }
  if (exec.network == POD_NETWORK_PACKET && run->software.fsdp_rate_ratio < 1)
    pod_run_assume (run->assumptions, "fsdp_rate %.3g of the framework slows no packets: fsdp's collectives have their full rate", run->software.fsdp_rate_ratio);
  run->program = pod_job_program (&run->job, run->mesh, error);
  if (run->program == NULL)
    return false;
  exec.program = run->program;
  exec.record = request->record;
  exec.n_record = request->n_record;
  exec.is_recording_all = request->is_recording_all;
  exec.is_recording_none = request->is_recording_none;
  exec.most_bytes = request->must_fit ? pod_chip_hbm_capacity (run->topology->chip, run->fidelity == POD_FIDELITY_BOOK) : 0;
  exec.is_interrupted = request->is_interrupted;
  run->exec = pod_exec_run (&exec, error);
  return run->exec != NULL && (g_getenv ("POD_CHECK") == NULL || check_run (run, error));
}

PodRun *
pod_run_new (PodRunCache *cache)
{
  PodRun *run = g_new0 (PodRun, 1);

  run->cache = cache != NULL ? pod_run_cache_ref (cache) : NULL;
  run->assumptions = g_ptr_array_new_with_free_func (g_free);
  run->warnings = g_ptr_array_new_with_free_func (g_free);
  run->extrapolated = g_ptr_array_new_with_free_func (g_free);
  return run;
}

PodRun *
pod_scenario_run (const PodScenario *scenario, const PodRunRequest *request, GError **error)
{
  g_autoptr (PodRun) run = pod_run_new (request->cache);
  g_autoptr (PodScenario) of_mesh = NULL;

  if (scenario->framework_note != NULL)
    pod_run_assume (run->assumptions, "%s", scenario->framework_note);
  if (scenario->mesh->len > 0 || scenario->shard->len > 0)
    {
      run->shardings = g_new0 (PodMeshShardings, 1);
      of_mesh = pod_scenario_from_mesh (scenario, run->shardings, run->assumptions, error);
      if (of_mesh == NULL)
        return NULL;
      scenario = of_mesh;
    }
  if (!pod_run_prepare (scenario, run, error))
    {
      if (of_mesh != NULL)
        pod_scenario_tell_mesh (scenario, run->shardings, error);
      return NULL;
    }
  if (!execute (scenario, request, run, error) || !pod_run_summarise (scenario, run, request->is_brief, error))
    return NULL;
  if (!request->needs_no_advice)
    pod_run_advise (scenario, run);
  return g_steal_pointer (&run);
}

bool
pod_scenario_check (const PodScenario *scenario, PodRunCache *cache, GError **error)
{
  g_autoptr (PodRun) run = pod_run_new (cache);

  run->needs_no_slots = true;
  return pod_run_prepare_job (scenario, run, error);
}

void
pod_run_free (PodRun *run)
{
  if (run == NULL)
    return;
  if (run->result != NULL)
    json_object_unref (run->result);
  pod_exec_result_free (run->exec);
  pod_program_free (run->program);
  pod_mesh_free (run->mesh);
  if (run->cache == NULL)
    {
      pod_library_free (run->library);
      pod_model_free (run->model);
      pod_topology_free (run->topology);
    }
  pod_schedule_free (run->schedule);
  g_free (run->shardings);
  g_free (run->part_layers);
  g_free (run->given_stage_layers);
  g_ptr_array_unref (run->assumptions);
  g_ptr_array_unref (run->warnings);
  g_ptr_array_unref (run->extrapolated);
  pod_run_cache_unref (run->cache); /* last: it holds what the others borrow */
  g_free (run);
}
