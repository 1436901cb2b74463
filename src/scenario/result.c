#include "scenario/result-private.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"

#define SCHEMA_VERSION 1

static const char *const convention_names[] = { "causal", "megatron", "palm", "6nd", NULL };

static double
seconds (int64_t ps)
{
  return (double) ps / 1e12;
}

static double
convention_flops (const PodTokenFlops *flops, unsigned index)
{
  switch (index)
    {
    case 0:
      return flops->causal;
    case 1:
      return flops->megatron;
    case 2:
      return flops->palm;
    default:
      return flops->sixnd;
    }
}

static void
set_axes (JsonObject *result, const char *path, const int64_t ps[POD_N_COMM_AXES], const PodLayout *layout)
{
  for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
    if (pod_layout_degree (layout, a) > 1 || ps[a] > 0)
      {
        g_autofree char *key = g_strdup_printf ("%s.%s", path, pod_axis_name (a));

        pod_result_set_double (result, key, seconds (ps[a]));
      }
}

/* What the step would have to be quicker at: the critical rank's compute (by what bounds its kernels), the collectives
 * of an axis, hidden or not, or the bubble, whichever is longest. */
static char *
bound_of (const PodExecResult *exec)
{
  double best = seconds (exec->breakdown.compute_ps);
  g_autofree char *name = g_strdup (exec->hbm_bound_s > exec->compute_bound_s ? "hbm" : "compute");

  if (exec->overhead_bound_s > MAX (exec->compute_bound_s, exec->hbm_bound_s))
    {
      g_free (name);
      name = g_strdup ("host");
    }
  for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
    if (exec->axis_comm_s[a] > best)
      {
        best = exec->axis_comm_s[a];
        g_free (name);
        name = g_strdup_printf ("network:%s", pod_axis_name (a));
      }
  if (seconds (exec->breakdown.bubble_ps) > best)
    {
      g_free (name);
      name = g_strdup ("bubble");
    }
  return g_steal_pointer (&name);
}

/* FLOPs of one op that computes again what was computed, 0 of all others. */
static double
recomputed_by (const PodProgram *program, const PodOp *op, bool is_causal_halved)
{
  const PodKernel *kernel = &g_array_index (program->kernels, PodKernel, op->kernel);

  if (op->phase != POD_PHASE_RECOMPUTE || kernel->kind == POD_KERNEL_VECTOR || kernel->kind == POD_KERNEL_OPTIMIZER)
    return 0;
  return kernel->flops * (kernel->kind == POD_KERNEL_ATTENTION && kernel->is_causal && !is_causal_halved ? 2 : 1);
}

/* The terms of a block in the order of its ops; most have none. Returns: (transfer full) (element-type double) */
static GArray *
list_recomputed (const PodProgram *program, const PodOpBlock *block, bool is_causal_halved)
{
  const uint32_t begin = block->first_of_stream[POD_STREAM_COMPUTE];
  GArray *terms = g_array_new (FALSE, FALSE, sizeof (double));

  for (uint32_t i = begin; i < begin + block->n_of_stream[POD_STREAM_COMPUTE]; i++)
    {
      const double flops = recomputed_by (program, &g_array_index (program->ops, PodOp, i), is_causal_halved);

      if (flops > 0)
        g_array_append_val (terms, flops);
    }
  return terms;
}

/* FLOPs of matmuls and attention that all ranks compute again in a step; attention in full unless the convention halves it. */
static double
recomputed_flops (const PodRun *run, bool is_causal_halved)
{
  const PodProgram *program = run->program;
  const double n_ranks = (double) program->n_ranks / program->classes->len;
  g_autoptr (GPtrArray) terms = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref); /* by block */
  double sum = 0;

  if (!program->recomputes)
    return 0;
  for (guint b = 0; b < program->blocks->len; b++)
    g_ptr_array_add (terms, list_recomputed (program, &g_array_index (program->blocks, PodOpBlock, b), is_causal_halved));
  for (guint c = 0; c < program->classes->len; c++)
    {
      const PodProgramClass *class = g_ptr_array_index (program->classes, c);

      for (guint i = 0; i < class->steps->len; i++)
        {
          const GArray *of_block = g_ptr_array_index (terms, g_array_index (class->steps, PodOpStep, i).block);

          for (guint k = 0; k < of_block->len; k++)
            sum += n_ranks * g_array_index (of_block, double, k);
        }
    }
  return sum;
}

/* The critical rank's kernels by kind, and how many it launches. */
static void
set_kernels (JsonObject *result, const PodExecResult *exec)
{
  const double attention_s = exec->kernel_s[POD_KERNEL_ATTENTION] + exec->kernel_s[POD_KERNEL_ATTENTION_BACKWARD];

  pod_result_set_double (result, "step.kernels_s.matmul", exec->kernel_s[POD_KERNEL_MATMUL]);
  pod_result_set_double (result, "step.kernels_s.attention", attention_s);
  pod_result_set_double (result, "step.kernels_s.elementwise", exec->kernel_s[POD_KERNEL_VECTOR]);
  pod_result_set_double (result, "step.kernels_s.optimizer", exec->kernel_s[POD_KERNEL_OPTIMIZER]);
  pod_result_set_int (result, "step.kernels", (int64_t) exec->n_kernels);
  for (unsigned loss = 0; loss < POD_N_LOSSES; loss++)
    {
      g_autofree char *key = g_strdup_printf ("step.losses_s.%s", pod_loss_names[loss]);

      pod_result_set_double (result, key, exec->losses_s[loss]);
    }
}

static void
set_step (PodRun *run, const PodTokenFlops *flops, unsigned convention)
{
  const PodExecResult *exec = run->exec;
  const PodBreakdown *b = &exec->breakdown;
  const PodJob *job = &run->job;
  const double time_s = seconds (exec->time_ps);
  const double tokens = (double) job->batch.global_batch * (double) job->batch.seq_len;
  const double n_devices = run->topology->n_devices;
  PodDtype used;
  const double peak = pod_chip_peak (run->topology->chip, job->dtype, run->fidelity == POD_FIDELITY_BOOK, &used);
  g_autofree char *bound = bound_of (exec);
  double recomputed = 0;
  JsonObject *r = run->result;

  pod_result_set_double (r, "step.time_s", time_s);
  pod_result_set_double (r, "step.lower_bound_s", seconds (MIN (exec->lower_bound_ps, exec->time_ps)));
  pod_result_set_double (r, "step.compute_s", seconds (b->compute_ps));
  pod_result_set_double (r, "step.optimizer_s", seconds (b->optimizer_ps));
  pod_result_set_double (r, "step.recompute_s", seconds (b->recompute_ps));
  set_kernels (r, exec);
  pod_result_set_double (r, "step.bubble_s", seconds (b->bubble_ps));
  pod_result_set_double (r, "step.idle_s", seconds (b->idle_ps));
  set_axes (r, "step.exposed_comm_s", b->exposed_ps, &job->layout);
  set_axes (r, "step.comm_s", b->comm_ps, &job->layout);
  pod_result_set_double (r, "step.tokens", tokens);
  pod_result_set_double (r, "step.model_flops", tokens * convention_flops (flops, convention));
  pod_result_set_double (r, "step.tokens_per_s", tokens / time_s);
  pod_result_set_double (r, "step.tokens_per_s_per_chip", tokens / time_s / run->topology->n_chips);
  pod_result_set_double (r, "step.flops_per_s_per_chip", tokens * convention_flops (flops, convention) / time_s / run->topology->n_chips);
  pod_result_set_double (r, "step.mfu", tokens * convention_flops (flops, convention) / (time_s * n_devices * peak));
  recomputed = recomputed_flops (run, convention == 0) / tokens;
  pod_result_set_double (r, "step.hfu", tokens * (convention_flops (flops, convention) + recomputed) / (time_s * n_devices * peak));
  for (unsigned i = 0; convention_names[i] != NULL; i++)
    {
      g_autofree char *key = g_strdup_printf ("step.mfu_by_convention.%s", convention_names[i]);

      pod_result_set_double (r, key, tokens * convention_flops (flops, i) / (time_s * n_devices * peak));
    }
  pod_result_set_string (r, "step.flops_convention", convention_names[convention]);
  pod_result_set_double (r, "step.mfu_peak_flops_per_s", peak);
  pod_result_set_string (r, "step.bound", bound);
  pod_result_set_int (r, "step.critical_rank", exec->critical_rank);
  pod_result_set_int (r, "step.time_ps", exec->time_ps);
  if (used != job->dtype)
    g_ptr_array_add (run->warnings, g_strdup_printf ("%s has no %s matmul: its %s rate is used", run->topology->chip->title, pod_dtype_name (job->dtype), pod_dtype_name (used)));
}

/* The compute and communication of one rank in each phase, each collective as if alone on the network. */
static void
set_phases (PodRun *run)
{
  const PodExecResult *exec = run->exec;
  JsonObject *r = run->result;

  for (unsigned p = 0; p < POD_N_PHASES; p++)
    {
      g_autofree char *compute_key = g_strdup_printf ("phases.%s.compute_s", pod_phase_names[p]);

      pod_result_set_double (r, compute_key, exec->phase_compute_s[p]);
      for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
        if (pod_layout_degree (&run->job.layout, a) > 1 || exec->phase_comm_s[p][a] > 0)
          {
            g_autofree char *key = g_strdup_printf ("phases.%s.comm_s.%s", pod_phase_names[p], pod_axis_name (a));

            pod_result_set_double (r, key, exec->phase_comm_s[p][a]);
          }
    }
}

static void
set_limit (JsonObject *result, PodAxis axis, const char *name, double value)
{
  g_autofree char *key = g_strdup_printf ("limits.%s.%s", pod_axis_name (axis), name);

  pod_result_set_double (result, key, value);
}

/* Gradients and gathered weights do not grow with the batch: as long as compute at tokens x comm / compute. */
static void
set_token_limits (PodRun *run, PodAxis axis, double compute_s, double comm_s)
{
  const double n_ranks = pod_layout_n_ranks (&run->job.layout);
  const double step_tokens = (double) run->job.batch.global_batch * (double) run->job.batch.seq_len;
  const double limit = step_tokens / n_ranks * comm_s / compute_s;

  if (!(comm_s > 0) || !(compute_s > 0))
    return;
  set_limit (run->result, axis, "compute_to_comm_ratio", compute_s / comm_s);
  set_limit (run->result, axis, "tokens_per_device", limit);
  set_limit (run->result, axis, "tokens_per_replica", limit * n_ranks / run->job.layout.degree[axis]);
  set_limit (run->result, axis, "global_tokens", limit * n_ranks);
  set_limit (run->result, axis, "devices", step_tokens / limit);
}

/* From how few tokens a device, or how many ranks of tp, on the job is communication-bound rather than compute-bound (How to
 * Scale Your Model, chapter 5), out of the forward pass that ran, for dp the backward pass. With C its compute: tp's
 * collectives grow with the batch as compute does, so T_tp = C at degree x C / T_tp; of fsdp and tp together T_fsdp grows and
 * T_tp falls with the fsdp degree, equal at degree x sqrt(T_tp / T_fsdp), where they hide behind compute from
 * tokens x T_fsdp T_tp / C^2 on (4 x when the two cannot overlap). As powers of 2: the nearest, and what is left of the
 * devices for tp. */
static void
set_limits (PodRun *run)
{
  const PodExecResult *exec = run->exec;
  const PodLayout *layout = &run->job.layout;
  const double compute_s = exec->phase_compute_s[POD_PHASE_FORWARD];
  const double fsdp_s = exec->phase_comm_s[POD_PHASE_FORWARD][POD_AXIS_FSDP];
  const double tp_s = exec->phase_comm_s[POD_PHASE_FORWARD][POD_AXIS_TP];
  const double n_ranks = pod_layout_n_ranks (layout);
  const double tokens = (double) run->job.batch.global_batch * (double) run->job.batch.seq_len / n_ranks;
  JsonObject *r = run->result;

  pod_result_set_double (r, "limits.tokens_per_device", tokens);
  set_token_limits (run, POD_AXIS_DP, exec->phase_compute_s[POD_PHASE_BACKWARD], exec->phase_comm_s[POD_PHASE_BACKWARD][POD_AXIS_DP]);
  set_token_limits (run, POD_AXIS_FSDP, compute_s, fsdp_s);
  if (!(compute_s > 0) || !(tp_s > 0))
    return;
  set_limit (r, POD_AXIS_TP, "compute_to_comm_ratio", compute_s / tp_s);
  set_limit (r, POD_AXIS_TP, "degree", layout->degree[POD_AXIS_TP] * compute_s / tp_s);
  if (fsdp_s > 0)
    {
      const double mixed = tokens * fsdp_s * tp_s / (compute_s * compute_s);
      const double degree = layout->degree[POD_AXIS_FSDP] * sqrt (tp_s / fsdp_s);
      const double rounded = exp2 (round (log2 (degree)));

      pod_result_set_double (r, "limits.mixed.compute_to_comm_ratio", compute_s / sqrt (fsdp_s * tp_s));
      pod_result_set_double (r, "limits.mixed.fsdp_degree", degree);
      pod_result_set_double (r, "limits.mixed.fsdp_power_of_2", rounded);
      pod_result_set_double (r, "limits.mixed.tp_power_of_2", exp2 (floor (log2 (MAX (n_ranks / rounded, 1)))));
      pod_result_set_double (r, "limits.mixed.tokens_per_device", mixed);
      pod_result_set_double (r, "limits.mixed.tokens_per_device_without_overlap", 4 * mixed);
      pod_result_set_double (r, "limits.mixed.devices", tokens * n_ranks / mixed);
    }
}

/* What a rank keeps all step long: weights, gradients and optimizer state as its layout shards them. */
static double
model_states_bytes (const PodRun *run)
{
  const PodProgram *program = run->program;
  const PodProgramClass *class = g_ptr_array_index (program->classes, program->class_of_rank[run->exec->worst_rank]);
  double bytes = 0;

  for (guint l = 0; l < program->labels->len; l++)
    bytes += class->static_bytes[l];
  return bytes;
}

/* Parameters that one device holds with their optimizer state, gradients and activations excluded, and devices that hold all. */
static void
set_memory_limits (PodRun *run, double available_bytes)
{
  PodBytesPerParam bytes;
  PodParams params;
  double held;

  pod_job_bytes_per_param (&run->job, &bytes);
  pod_model_params (run->model, &params);
  held = available_bytes / (bytes.params + bytes.optimizer);
  pod_result_set_double (run->result, "limits.memory.params", held);
  pod_result_set_double (run->result, "limits.memory.devices", ceil ((double) params.total / held));
}

static void
set_memory (PodRun *run)
{
  const PodExecResult *exec = run->exec;
  const bool is_book = run->fidelity == POD_FIDELITY_BOOK;
  const double capacity = pod_chip_hbm_capacity (run->topology->chip, is_book);
  const PodMemoryOverhead *overhead = &run->overhead;
  JsonObject *r = run->result;
  JsonArray *stages;
  JsonArray *labels;
  double reserved;

  pod_run_set_overhead (run);
  reserved = overhead->context_bytes + overhead->comm_buffer_bytes + overhead->fragmentation_bytes;
  run->fits = exec->peak_bytes + reserved <= capacity;
  pod_result_set_double (r, "memory.capacity_bytes", capacity);
  pod_result_set_double (r, "memory.reserved_bytes", reserved);
  pod_result_set_double (r, "memory.context_bytes", overhead->context_bytes);
  pod_result_set_double (r, "memory.comm_buffers_bytes", overhead->comm_buffer_bytes);
  pod_result_set_double (r, "memory.fragmentation_bytes", overhead->fragmentation_bytes);
  pod_result_set_double (r, "memory.peak_bytes", exec->peak_bytes);
  pod_result_set_bool (r, "memory.fits", run->fits);
  pod_result_set_double (r, "memory.free_bytes", capacity - reserved - exec->peak_bytes);
  pod_result_set_double (r, "memory.model_states_bytes", model_states_bytes (run));
  set_memory_limits (run, capacity - overhead->context_bytes);
  for (unsigned u = 0; u < POD_N_USES; u++)
    {
      g_autofree char *key = g_strdup_printf ("memory.%s_bytes", pod_memory_use_names[u]);

      pod_result_set_double (r, key, exec->by_use[u]);
    }
  pod_result_set_int (r, "memory.worst_rank", exec->worst_rank);
  pod_result_set_double (r, "memory.peak_at_s", seconds (exec->peak_at_ps));
  stages = pod_result_get_array (r, "memory.stage_peak_bytes");
  for (guint i = 0; i < exec->stage_peaks->len; i++)
    json_array_add_double_element (stages, g_array_index (exec->stage_peaks, double, i));
  labels = pod_result_get_array (r, "memory.at_peak");
  for (guint l = 0; l < exec->by_label->len; l++)
    {
      const PodBufferLabel *label = &g_array_index (run->program->labels, PodBufferLabel, l);
      JsonObject *entry;

      if (g_array_index (exec->by_label, double, l) == 0)
        continue;
      entry = json_object_new ();
      pod_result_set_string (entry, "buffers", label->name);
      pod_result_set_string (entry, "use", pod_memory_use_names[label->use]);
      pod_result_set_double (entry, "bytes", g_array_index (exec->by_label, double, l));
      json_array_add_object_element (labels, entry);
    }
}

static uint64_t
padded_params (const PodRun *run, const PodParams *params)
{
  const PodModel *model = run->model;
  const uint64_t tables = model->vocab == 0 ? 0 : model->is_tied ? 1 : 2;

  return params->total + tables * (pod_job_padded_vocab (&run->job) - model->vocab) * model->hidden;
}

static void
set_model (PodRun *run, const PodTokenFlops *flops, unsigned convention)
{
  JsonObject *r = run->result;
  PodBytesPerParam bytes;
  PodParams params;
  uint64_t padded;

  pod_model_params (run->model, &params);
  padded = padded_params (run, &params);
  pod_result_set_string (r, "model.name", run->model->name);
  pod_result_set_int (r, "model.params", (int64_t) params.total);
  pod_result_set_int (r, "model.active_params", (int64_t) params.active);
  pod_result_set_int (r, "model.params_padded", (int64_t) padded);
  pod_result_set_int (r, "model.layers", (int64_t) run->model->n_layers);
  pod_result_set_int (r, "model.vocab_padded", (int64_t) pod_job_padded_vocab (&run->job));
  pod_result_set_double (r, "model.flops_per_token", convention_flops (flops, convention));
  pod_job_bytes_per_param (&run->job, &bytes);
  pod_result_set_double (r, "model.bytes_per_param.params", bytes.params);
  pod_result_set_double (r, "model.bytes_per_param.grads", bytes.grads);
  pod_result_set_double (r, "model.bytes_per_param.optimizer", bytes.optimizer);
  g_ptr_array_add (run->assumptions, g_strdup_printf ("bytes per parameter: weights %g, gradients %g, optimizer %g (%s)", bytes.params, bytes.grads, bytes.optimizer,
                                                      run->job.has_master ? "fp32 master and moments" : "fp32 moments, no master copy"));
  if (run->model->vocab > 0 && pod_job_padded_vocab (&run->job) != run->model->vocab)
    g_ptr_array_add (run->assumptions, g_strdup_printf ("vocabulary %" G_GUINT64_FORMAT " padded to %" G_GUINT64_FORMAT " (a multiple of 128 x tp)", run->model->vocab, pod_job_padded_vocab (&run->job)));
}

/* *out_tokens is 0 when the option was not given. */
static bool
parse_tokens (const PodScenario *scenario, double *out_tokens, GError **error)
{
  *out_tokens = 0;
  if (scenario->tokens == NULL)
    return true;
  if (!pod_parse_quantity (scenario->tokens, POD_UNIT_COUNT, out_tokens, error))
    {
      g_prefix_error (error, "--tokens: ");
      return false;
    }
  if (*out_tokens > 0 && *out_tokens <= 1e20)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--tokens: must be above 0 and at most 1e20, got '%s'", scenario->tokens);
  return false;
}

static bool
parse_convention (const PodScenario *scenario, unsigned *out, GError **error)
{
  *out = 0;
  if (scenario->flops_convention == NULL)
    return true;
  for (unsigned i = 0; convention_names[i] != NULL; i++)
    if (strcmp (convention_names[i], scenario->flops_convention) == 0)
      {
        *out = i;
        return true;
      }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--flops-convention: unknown '%s'; known are causal, megatron, palm, 6nd", scenario->flops_convention);
  return false;
}

bool
pod_run_check_summary (const PodScenario *scenario, GError **error)
{
  double tokens;
  unsigned convention;

  return parse_tokens (scenario, &tokens, error) && parse_convention (scenario, &convention, error);
}

/* Days, cost and energy of a whole training. */
static bool
set_training (const PodScenario *scenario, PodRun *run, double flops_per_token, GError **error)
{
  const PodChip *chip = run->topology->chip;
  const double availability = scenario->availability > 0 ? scenario->availability : 1;
  const double price = scenario->price >= 0 ? scenario->price : chip->price_usd_per_h;
  double tokens;
  double hours;
  double flops;
  JsonObject *r = run->result;

  if (!parse_tokens (scenario, &tokens, error))
    return false;
  if (!(tokens > 0))
    return true;
  hours = tokens / ((double) run->job.batch.global_batch * (double) run->job.batch.seq_len) * seconds (run->exec->time_ps) / availability / 3600;
  flops = tokens * flops_per_token;
  pod_result_set_double (r, "train.tokens", tokens);
  pod_result_set_double (r, "train.availability", availability);
  pod_result_set_double (r, "train.model_flops", flops);
  pod_result_set_double (r, "train.time_s", hours * 3600);
  pod_result_set_double (r, "train.days", hours / 24);
  pod_result_set_double (r, "train.chip_hours", hours * run->topology->n_chips);
  if (price > 0)
    {
      pod_result_set_double (r, "train.cost_usd", hours * run->topology->n_chips * price);
      pod_result_set_double (r, "train.usd_per_chip_hour", price);
      pod_result_set_double (r, "train.flops_per_usd", flops / (hours * run->topology->n_chips * price));
    }
  else
    g_ptr_array_add (run->warnings, g_strdup_printf ("no price for %s: give --price for the cost", chip->title));
  if (chip->tdp_w > 0)
    pod_result_set_double (r, "train.energy_kwh", hours * run->topology->n_chips * chip->tdp_w / 1000);
  else
    g_ptr_array_add (run->warnings, g_strdup_printf ("no power figure is published for %s: no energy", chip->title));
  return true;
}

static void
set_strings (JsonObject *result, const char *path, const GPtrArray *strings)
{
  JsonArray *array = pod_result_get_array (result, path);

  for (guint i = 0; i < strings->len; i++)
    json_array_add_string_element (array, g_ptr_array_index ((GPtrArray *) strings, i));
}

static void
set_experts (PodRun *run)
{
  JsonObject *r = run->result;
  PodMoeFacts facts;

  if (run->model->n_experts == 0)
    return;
  pod_job_moe_facts (&run->job, &facts);
  pod_result_set_int (r, "moe.experts", (int64_t) run->model->n_experts);
  pod_result_set_int (r, "moe.top_k", (int64_t) run->model->top_k);
  pod_result_set_int (r, "moe.experts_per_rank", (int64_t) facts.n_local);
  pod_result_set_int (r, "moe.expert_data_parallel", (int64_t) facts.n_copies);
  pod_result_set_int (r, "moe.expert_shards", (int64_t) facts.n_shards);
  pod_result_set_double (r, "moe.expert_params_per_layer", facts.expert_params);
  pod_result_set_double (r, "moe.load_ratio", run->job.expert_load);
  pod_result_set_double (r, "moe.tokens_per_expert", facts.tokens_per_expert);
  pod_result_set_double (r, "moe.dispatch_bytes", facts.dispatch_bytes);
  pod_result_set_double (r, "moe.combine_bytes", facts.combine_bytes);
  pod_result_set_string (r, "moe.dispatch_dtype", pod_dtype_name (run->job.dispatch_dtype));
  pod_result_set_int (r, "moe.route_nodes", run->job.route_nodes);
}

static void
set_collectives (PodRun *run)
{
  JsonArray *array = pod_result_get_array (run->result, "collectives");

  for (guint i = 0; i < run->exec->collectives->len; i++)
    {
      const PodCollectiveUse *use = &g_array_index (run->exec->collectives, PodCollectiveUse, i);
      JsonObject *entry = json_object_new ();

      pod_result_set_string (entry, "axis", pod_axis_name (use->axis));
      pod_result_set_string (entry, "group", use->comm);
      pod_result_set_string (entry, "kind", pod_collective_name (use->kind));
      pod_result_set_string (entry, "algorithm", use->algorithm);
      pod_result_set_int (entry, "bytes", (int64_t) use->bytes);
      pod_result_set_int (entry, "ranks", use->group_size);
      pod_result_set_int (entry, "calls", (int64_t) use->n_per_rank);
      pod_result_set_double (entry, "alone_s", use->alone_s);
      json_array_add_object_element (array, entry);
    }
}

/* The choices that decide a step beside layout and batch. */
static void
set_options (const PodScenario *scenario, PodRun *run)
{
  const PodJob *job = &run->job;
  JsonObject *r = run->result;

  pod_result_set_string (r, "options.schedule", run->schedule->kind == POD_SCHEDULE_FILE ? scenario->schedule : pod_schedule_names[run->schedule->kind]);
  pod_result_set_string (r, "options.recompute", scenario->recompute != NULL ? scenario->recompute : "none");
  pod_result_set_string (r, "options.attention_kind", pod_core_attention_names[job->core]);
  pod_result_set_bool (r, "options.dropout", job->has_dropout);
  if (job->layout.degree[POD_AXIS_CP] > 1)
    pod_result_set_string (r, "options.cp_kind", pod_cp_kind_names[job->layout.cp_kind]);
  pod_result_set_int (r, "options.document_len", (int64_t) scenario->document_len);
  pod_result_set_bool (r, "options.overlap_p2p", job->is_p2p_overlapped);
  pod_result_set_bool (r, "options.scatter_p2p", job->scatters_sends);
  pod_result_set_bool (r, "options.overlap_ep", scenario->overlap_ep == 1);
  pod_result_set_string (r, "options.fsdp_sync", job->is_synced_once ? "step" : "microbatch");
  pod_result_set_int (r, "options.lora", (int64_t) job->lora_rank);
  pod_result_set_string (r, "options.optimizer", pod_optimizer_names[job->optimizer]);
  pod_result_set_string (r, "options.dtype", pod_dtype_name (job->dtype));
  pod_result_set_string (r, "options.param_dtype", pod_dtype_name (job->param_dtype));
  pod_result_set_string (r, "options.gather_dtype", pod_dtype_name (job->gather_dtype));
  pod_result_set_string (r, "options.grad_dtype", pod_dtype_name (job->grad_dtype));
  pod_result_set_string (r, "options.reduce_dtype", pod_dtype_name (job->reduce_dtype));
  pod_result_set_string (r, "options.master_dtype", job->has_master ? "fp32" : "none");
  pod_result_set_int (r, "options.zero", job->layout.zero_stage);
  pod_result_set_bool (r, "options.sequence_parallel", job->layout.is_sequence_parallel);
  pod_result_set_bool (r, "options.overlap_tp", job->is_tp_overlapped);
  pod_result_set_bool (r, "options.overlap_dp", job->is_dp_overlapped);
  pod_result_set_int (r, "options.prefetch", job->prefetch);
  pod_result_set_bool (r, "options.causal", job->is_causal);
  pod_result_set_string (r, "options.network", scenario->network != NULL ? scenario->network : "flow");
  if (scenario->packet != NULL)
    pod_result_set_string (r, "options.packet", scenario->packet);
}

/* Frozen weights have no gradients of their own: 4 FLOPs a parameter and token instead of 6. */
static void
freeze (PodTokenFlops *flops)
{
  const double unused = flops->linear / 3;

  flops->linear -= unused;
  flops->megatron -= unused;
  flops->causal -= unused;
  flops->palm -= unused;
  flops->sixnd -= flops->sixnd / 3;
}

/* What ran, on what. */
static void
set_job (const PodScenario *scenario, PodRun *run)
{
  g_autofree char *layout = pod_layout_to_text (&run->job.layout);
  JsonObject *r = run->result;

  pod_result_set_int (r, "schema_version", SCHEMA_VERSION);
  pod_result_set_string (r, "topology.name", run->topology->name);
  pod_result_set_string (r, "topology.chip", run->topology->chip->name);
  pod_result_set_int (r, "topology.chips", run->topology->n_chips);
  pod_result_set_int (r, "topology.devices", run->topology->n_devices);
  pod_result_set_string (r, "fidelity", pod_fidelity_name (run->fidelity));
  pod_result_set_string (r, "layout", layout);
  pod_result_set_string (r, "map", run->mesh->text);
  pod_result_set_int (r, "batch.seq_len", (int64_t) run->job.batch.seq_len);
  pod_result_set_int (r, "batch.global_batch", (int64_t) run->job.batch.global_batch);
  pod_result_set_int (r, "batch.micro_batch", (int64_t) run->job.batch.micro_batch);
  pod_result_set_int (r, "batch.microbatches", (int64_t) pod_job_n_microbatches (&run->job));
  set_options (scenario, run);
}

/* Numbers of the step in the order of the result: job, step, phases, limits, memory, model, collectives. */
static void
set_numbers (const PodScenario *scenario, PodRun *run, const PodTokenFlops *flops, unsigned convention, bool is_brief)
{
  if (!is_brief)
    set_job (scenario, run);
  set_step (run, flops, convention);
  if (!is_brief)
    {
      set_phases (run);
      set_limits (run);
    }
  set_memory (run);
  if (is_brief)
    return;
  set_model (run, flops, convention);
  set_experts (run);
  set_collectives (run);
}

bool
pod_run_summarise (const PodScenario *scenario, PodRun *run, bool is_brief, GError **error)
{
  PodTokenFlops flops;
  unsigned convention;

  run->result = json_object_new ();
  if (!parse_convention (scenario, &convention, error))
    return false;
  pod_model_token_flops (run->model, run->job.batch.seq_len, &flops);
  if (run->job.lora_rank > 0)
    freeze (&flops);
  set_numbers (scenario, run, &flops, convention, is_brief);
  if (!set_training (scenario, run, convention_flops (&flops, convention), error) || !pod_run_set_uncertainty (scenario, run, error))
    return false;
  if (is_brief)
    return true;
  set_strings (run->result, "extrapolated", run->extrapolated);
  set_strings (run->result, "assumptions", run->assumptions);
  set_strings (run->result, "warnings", run->warnings);
  return true;
}
