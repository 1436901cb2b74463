#include <math.h>

#include "exec/layer-path.h"
#include "exec/uncontended.h"
#include "scenario/result-private.h"
#include "scenario/run-cache.h"

/* What a step takes at the least, without its program. Time: the matmuls of the model's parameters at the chip's highest peak, shared evenly,
 * and the filling of the pipeline. Memory: weights, gradients and optimizer state, shared evenly. Everything else, attention, vector
 * kernels, communication, activations, padding, copies, is left out: it only adds. */

/* Of all types that matmuls of the step may have. */
static double
highest_peak (const PodRun *run)
{
  const PodDtype dtypes[] = { run->job.dtype, pod_job_activation_dtype (&run->job), POD_DTYPE_BF16, POD_DTYPE_FP32 };
  double peak = 0;

  for (unsigned i = 0; i < G_N_ELEMENTS (dtypes); i++)
    peak = MAX (peak, pod_chip_peak (run->topology->chip, dtypes[i], run->fidelity == POD_FIDELITY_BOOK, NULL));
  return peak;
}

/* FLOPs of all ranks. Frozen weights need no gradient, and the first of them no gradient of its input: forward alone is counted. Tokens that
 * experts drop are not computed. */
static double
least_flops (const PodJob *job)
{
  PodTokenFlops flops;

  pod_model_token_flops (job->model, job->batch.seq_len, &flops);
  return flops.linear * (double) job->batch.global_batch * (double) job->batch.seq_len * (job->lora_rank > 0 ? 1.0 / 3 : 1)
         * (job->model->n_experts > 0 ? MIN (job->expert_load, 1) : 1);
}

/* With f_s the time of a forward pass of stage s, m microbatches and w passes' work for each, the step takes at least w m f_s and the
 * forward passes of the stages before s. Whatever the f_s are, the largest of these is not below f / (1 - (1 - 1/wm)^p), f being their sum. Where
 * a rank has several parts, or its step begins when its own first op does, only the even share is sure. */
static double
filled_s (const PodRun *run, double work_s, double passes)
{
  const double p = run->job.layout.degree[POD_AXIS_PP];
  const bool is_filled = run->schedule->n_chunks == 1 && !run->schedule->is_two_way && !pod_schedule_steps_overlap (run->schedule);

  return is_filled && passes > 1 ? work_s / passes / -expm1 (p * log1p (-1 / passes)) : work_s / p;
}

static double
least_s (const PodRun *run)
{
  const PodJob *job = &run->job;
  const double passes = (double) pod_job_n_microbatches (job) * (job->lora_rank > 0 ? 1 : 3);
  const double work_s = least_flops (job) / ((double) pod_layout_n_ranks (&job->layout) / job->layout.degree[POD_AXIS_PP]) / highest_peak (run);

  return filled_s (run, work_s, passes);
}

static double
least_bytes (const PodJob *job)
{
  const PodLayout *layout = &job->layout;
  const double held = (double) layout->degree[POD_AXIS_TP] * layout->degree[POD_AXIS_PP] * pod_layout_n_shards (layout);
  const double dp = pod_layout_n_replicas (layout);
  const bool is_trained = job->lora_rank == 0;
  const double state = is_trained && !job->offloads_optimizer ? MIN (pod_job_state_bytes (job, true), pod_job_state_bytes (job, false)) + (job->has_master ? 4 : 0) : 0;
  PodBytesPerParam bytes;
  PodParams params;

  pod_job_bytes_per_param (job, &bytes);
  pod_model_params (job->model, &params);
  if (!is_trained)
    bytes.grads = 0;
  return (double) (params.total - params.experts) / held * (bytes.params + bytes.grads / (layout->zero_stage >= 2 ? dp : 1) + state / (layout->zero_stage >= 1 ? dp : 1))
         + (double) params.experts / pod_layout_n_ranks (layout) * (bytes.params + bytes.grads + state);
}

bool
pod_scenario_bound (const PodScenario *scenario, PodRunCache *cache, PodRunBound *out, GError **error)
{
  g_autoptr (PodRun) run = pod_run_new (cache);

  run->needs_no_slots = true;
  if (!pod_run_prepare_job (scenario, run, error))
    return false;
  /* The factors cover the rounding of products and of kernels' times */
  *out = (PodRunBound){ .time_ps = (int64_t) (least_s (run) * (1 - 1e-6) * 1e12), .bytes = least_bytes (&run->job) * (1 - 1e-6) };
  return true;
}

/* What the device holds beside the peak, with what is not known before a run left out. */
static double
held_bytes (const PodMemoryOverhead *overhead, double peak_bytes)
{
  return peak_bytes * (1 + overhead->fragmentation_ratio) + overhead->context_bytes + MAX (overhead->comm_buffer_bytes, 0);
}

bool
pod_scenario_floor (const PodScenario *scenario, PodRunCache *cache, PodRunBound *out, GError **error)
{
  g_autoptr (PodRun) run = pod_run_new (cache);
  g_autoptr (GArray) dead_links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  PodUncontended least = { 0 };
  PodExecRequest exec;

  if (!pod_run_prepare (scenario, run, error))
    return false;
  run->program = pod_job_outline (&run->job, run->mesh, error);
  if (run->program == NULL || !pod_run_exec_request (scenario, run, dead_links, &exec, error))
    return false;
  /* Packets have delays and losses of their own, and no proof */
  if (exec.network != POD_NETWORK_PACKET && !pod_exec_uncontended (&exec, &least, error))
    return false;
  *out = (PodRunBound){ .time_ps = MAX (least.time_ps, (int64_t) (least_s (run) * (1 - 1e-6) * 1e12)),
                        .bytes = MAX (held_bytes (&run->overhead, least.peak_bytes), least_bytes (&run->job)) * (1 - 1e-6) };
  return true;
}

/* -- by a layer ---- */

enum
{
  LAYERS_OF_PART = 3, /* pod_exec_layer_path's */
};

/* Whether every layer adds the same to a step wherever it is. */
static bool
has_like_layers (const PodScenario *scenario, const PodRun *run)
{
  static const char *const kinds[] = { "none", "selective", "full", NULL };

  return run->model->n_kinds == 1 && run->job.lora_rank == 0 && !run->schedule->is_two_way && (scenario->recompute == NULL || g_strv_contains (kinds, scenario->recompute))
         && g_strcmp0 (scenario->network, "packet") != 0;
}

/* The job with three layers a part. Returns: (transfer full) */
static PodScenario *
thin_scenario (const PodScenario *scenario, const PodRun *run)
{
  PodScenario *thin = pod_scenario_copy (scenario);

  thin->layers = (uint64_t) LAYERS_OF_PART * run->schedule->n_parts;
  thin->embed_head_as_layers = 0;
  g_clear_pointer (&thin->stage_layers, g_free);
  return thin;
}

static bool
find_path (const PodScenario *thin, PodRunCache *cache, PodLayerPath *out)
{
  g_autoptr (PodRun) run = pod_run_new (cache);
  g_autoptr (GArray) dead_links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  PodExecRequest exec;

  if (!pod_run_prepare (thin, run, NULL))
    return false;
  run->program = pod_job_outline (&run->job, run->mesh, NULL);
  return run->program != NULL && pod_run_exec_request (thin, run, dead_links, &exec, NULL) && pod_exec_layer_path (&exec, run->schedule->n_chunks, out, NULL);
}

/* Some rank has at least an even share of the layers, rounded up; stages are filled as in least_s, a layer's share of which is its path's. */
bool
pod_scenario_layers_bound (const PodScenario *scenario, PodRunCache *cache, PodRunBound *out, GError **error)
{
  g_autoptr (PodRun) run = pod_run_new (cache);
  g_autoptr (PodScenario) thin = NULL;
  PodLayerPath path;
  double time_s;

  run->needs_no_slots = true;
  if (!pod_run_prepare_job (scenario, run, error))
    return false;
  time_s = least_s (run);
  thin = has_like_layers (scenario, run) ? thin_scenario (scenario, run) : NULL;
  if (thin != NULL && find_path (thin, cache, &path))
    {
      const double n_layers = (double) run->model->n_layers;
      const double share = ceil (n_layers / run->job.layout.degree[POD_AXIS_PP]);

      time_s = MAX (time_s, share * MAX (path.path_s, path.stream_s));
      time_s = MAX (time_s, filled_s (run, n_layers * path.path_s, path.path_s / path.forward_s));
    }
  *out = (PodRunBound){ .time_ps = (int64_t) (time_s * (1 - 1e-6) * 1e12), .bytes = least_bytes (&run->job) * (1 - 1e-6) };
  return true;
}
