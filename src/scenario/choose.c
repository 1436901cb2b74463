#include <limits.h>
#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/units.h"
#include "scenario/expert-load.h"
#include "scenario/result-private.h"
#include "scenario/run-cache.h"

/* From the words of a scenario to a job: each option parsed, its default chosen and said, what contradicts refused. */

void
pod_run_assume (GPtrArray *list, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  g_ptr_array_add (list, g_strdup_vprintf (format, args));
  va_end (args);
}

/* Packed sequences: attention reaches no further than a document, as if each were a chunk. */
static bool
pack_documents (const PodScenario *scenario, PodRun *run, GError **error)
{
  const uint64_t length = scenario->document_len;

  if (length == 0)
    return true;
  if (run->job.batch.seq_len % length != 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--document-len: sequences of %" G_GUINT64_FORMAT " are not whole documents of %" G_GUINT64_FORMAT ": remainder %" G_GUINT64_FORMAT,
                   run->job.batch.seq_len, length, run->job.batch.seq_len % length);
      return false;
    }
  for (unsigned i = 0; i < run->model->n_kinds; i++)
    {
      PodLayerKind *kind = &run->model->kinds[i];

      if (kind->window > 0 && kind->window <= length)
        continue;
      kind->window = length;
      kind->is_chunked = true;
    }
  pod_run_assume (run->assumptions, "sequences are packed: %" G_GUINT64_FORMAT " documents of %" G_GUINT64_FORMAT " tokens, which attend to themselves alone", run->job.batch.seq_len / length, length);
  return true;
}

/* Picks a word out of a list, or the default when the option was not given. */
bool
pod_run_choose (const char *option, const char *text, const char *const *words, int fallback, int *out, GError **error)
{
  g_autofree char *all = NULL;

  *out = fallback;
  if (text == NULL)
    return true;
  for (int i = 0; words[i] != NULL; i++)
    if (strcmp (text, words[i]) == 0)
      {
        *out = i;
        return true;
      }
  all = g_strjoinv (", ", (char **) words);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--%s: unknown or not modelled: '%s'; known are %s", option, text, all);
  return false;
}

static bool
choose_dtype (const char *option, const char *text, PodDtype fallback, PodDtype *out, GError **error)
{
  *out = fallback;
  if (text == NULL || pod_dtype_parse (text, out, error))
    return true;
  g_prefix_error (error, "--%s: ", option);
  return false;
}

static bool
parse_seq_len (const PodScenario *scenario, PodRun *run, GError **error)
{
  const char *text = scenario->seq_len;

  if (text == NULL)
    {
      uint64_t limit = run->model->max_positions > 0 ? run->model->max_positions : 4096;

      run->job.batch.seq_len = MIN (limit, 4096);
      pod_run_assume (run->assumptions, "sequence length %" G_GUINT64_FORMAT " (--seq-len not given)", run->job.batch.seq_len);
      return true;
    }
  if (g_str_has_suffix (text, "k"))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--seq-len: '%s' may mean 1000s or 1024s: write %.*sK (1000s) or %.*sKi (1024s)", text, (int) strlen (text) - 1, text,
                   (int) strlen (text) - 1, text);
      return false;
    }
  if (!pod_parse_whole (text, POD_UNIT_COUNT, &run->job.batch.seq_len, error))
    {
      g_prefix_error (error, "--seq-len: ");
      return false;
    }
  if (run->job.batch.seq_len == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--seq-len: must be at least 1");
      return false;
    }
  if (run->model->max_positions > 0 && run->job.batch.seq_len > run->model->max_positions)
    {
      if (run->model->has_learned_positions)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--seq-len: %" G_GUINT64_FORMAT " is longer than %s's table of %" G_GUINT64_FORMAT " learned positions",
                       run->job.batch.seq_len, run->model->name, run->model->max_positions);
          return false;
        }
      pod_run_assume (run->warnings, "sequences of %" G_GUINT64_FORMAT " are longer than the %" G_GUINT64_FORMAT " positions that %s is made for", run->job.batch.seq_len,
              run->model->max_positions, run->model->name);
    }
  return true;
}

static bool
parse_global_batch (const PodScenario *scenario, PodRun *run, GError **error)
{
  PodBatch *batch = &run->job.batch;
  g_autofree char *text = NULL;
  uint64_t n;

  if (scenario->global_batch == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--global-batch: how many sequences are in a step? for instance --global-batch 1024, or 4Mitok");
      return false;
    }
  text = g_strdup (scenario->global_batch);
  if (g_str_has_suffix (text, "tok"))
    {
      text[strlen (text) - 3] = '\0';
      if (!pod_parse_whole (text, POD_UNIT_COUNT, &n, error))
        {
          g_prefix_error (error, "--global-batch: ");
          return false;
        }
      if (n % batch->seq_len != 0)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                       "--global-batch: %" G_GUINT64_FORMAT " tokens are not whole sequences of %" G_GUINT64_FORMAT ": remainder %" G_GUINT64_FORMAT "; nearest: %" G_GUINT64_FORMAT "tok or %" G_GUINT64_FORMAT "tok",
                       n, batch->seq_len, n % batch->seq_len, n / batch->seq_len * batch->seq_len, (n / batch->seq_len + 1) * batch->seq_len);
          return false;
        }
      batch->global_batch = n / batch->seq_len;
    }
  else if (!pod_parse_whole (text, POD_UNIT_COUNT, &batch->global_batch, error))
    {
      g_prefix_error (error, "--global-batch: ");
      return false;
    }
  if ((double) batch->global_batch * (double) batch->seq_len > 1e9)
    pod_run_assume (run->warnings, "%.3g tokens in a step: more than 1e9, check --global-batch and --seq-len", (double) batch->global_batch * (double) batch->seq_len);
  return true;
}

static bool
parse_stage_layers (const PodScenario *scenario, PodRun *run, GError **error)
{
  g_auto (GStrv) words = NULL;
  unsigned n;

  if (scenario->stage_layers == NULL)
    return true;
  run->job.batch.is_balanced = strcmp (scenario->stage_layers, "balanced") == 0;
  if (run->job.batch.is_balanced)
    return true;
  words = g_strsplit (scenario->stage_layers, ",", -1);
  n = g_strv_length (words);
  run->given_stage_layers = g_new0 (uint32_t, n + 1);
  for (unsigned i = 0; i < n; i++)
    {
      uint64_t count;

      if (!pod_parse_whole (g_strstrip (words[i]), POD_UNIT_COUNT, &count, error))
        {
          g_prefix_error (error, "--stage-layers: ");
          return false;
        }
      run->given_stage_layers[i] = (uint32_t) MIN (count, UINT32_MAX);
    }
  run->job.batch.stage_layers = run->given_stage_layers;
  run->job.batch.n_stage_layers = n;
  return true;
}

static bool
choose_precision (const PodScenario *scenario, PodRun *run, GError **error)
{
  static const char *const masters[] = { "none", "fp32", NULL };
  static const char *const losses[] = { "fused", "eager", NULL };
  static const char *const accumulations[] = { "fused", "apart", NULL };
  static const char *const outputs[] = { "freed", "kept", NULL };
  static const char *const scalings[] = { "delayed", "current", "block", NULL };
  const bool is_book = run->fidelity == POD_FIDELITY_BOOK;
  const bool is_adam_fp32 = scenario->optimizer != NULL && strcmp (scenario->optimizer, "adamw-fp32") == 0; /* CLI: Adam with a master copy */
  PodJob *job = &run->job;
  int word;

  if (!pod_recompute_parse (scenario->recompute != NULL ? scenario->recompute : "none", &job->recompute, error))
    return false;
  /* XLA computes nothing that nobody needs; the book counts a whole forward more: 8 FLOPs a parameter and token */
  job->recompute.is_whole = job->recompute.is_whole && (is_book || run->topology->chip->family != POD_FAMILY_TPU);
  if (job->recompute.offloaded != 0 && !(run->topology->chip->host_bytes_per_s.nominal > 0))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "--recompute: the file of %s has no bandwidth between chip and host to offload over", run->topology->chip->name);
      return false;
    }
  if (!is_adam_fp32 && !pod_run_choose ("optimizer", scenario->optimizer, pod_optimizer_names, POD_OPTIMIZER_ADAM, &word, error))
    return false;
  job->optimizer = is_adam_fp32 ? POD_OPTIMIZER_ADAM : (PodOptimizer) word;
  job->lora_rank = scenario->lora;
  if (job->lora_rank > run->model->hidden)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--lora: rank %" G_GUINT64_FORMAT " is above the model's hidden size %" G_GUINT64_FORMAT, job->lora_rank, run->model->hidden);
      return false;
    }
  if (!pod_run_choose ("cross-entropy", scenario->cross_entropy, losses, 0, &word, error))
    return false;
  job->has_eager_loss = word == 1;
  if (!pod_run_choose ("grad-accumulation", scenario->grad_accumulation, accumulations, 0, &word, error))
    return false;
  job->accumulates_apart = word == 1;
  job->offloads_optimizer = scenario->offload_optimizer == 1;
  if (job->offloads_optimizer && !(run->topology->chip->host_bytes_per_s.nominal > 0))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "--offload-optimizer: the file of %s has no bandwidth between chip and host", run->topology->chip->name);
      return false;
    }
  job->clips_gradients = scenario->clip_grad == -1 ? !is_book : scenario->clip_grad == 1;
  if (!pod_run_choose ("master-dtype", scenario->master_dtype, masters, is_book && !is_adam_fp32 ? 0 : 1, &word, error))
    return false;
  job->has_master = word == 1;
  if (!choose_dtype ("dtype", scenario->dtype, POD_DTYPE_BF16, &job->dtype, error)
      || !choose_dtype ("param-dtype", scenario->param_dtype, pod_dtype_bytes (job->dtype) < 2 ? POD_DTYPE_BF16 : job->dtype, &job->param_dtype, error)
      || !choose_dtype ("gather-dtype", scenario->gather_dtype, pod_dtype_bytes (job->dtype) < 2 ? POD_DTYPE_BF16 : job->dtype, &job->gather_dtype, error)
      || !choose_dtype ("grad-dtype", scenario->grad_dtype, POD_DTYPE_BF16, &job->grad_dtype, error)
      || !choose_dtype ("reduce-dtype", scenario->reduce_dtype, job->grad_dtype, &job->reduce_dtype, error))
    return false;
  if (!pod_run_choose ("stage-outputs", scenario->stage_outputs, outputs, 0, &word, error))
    return false;
  job->keeps_stage_outputs = word == 1;
  job->has_flowing_gradients = !is_book;
  /* DeepSpeed's ZeRO copies its part of 16-bit gradients for its fp32 master weights (stage_1_and_2.py: single_grad_partition.float) */
  job->copies_grads = job->accumulates_apart && job->has_master && pod_dtype_bytes (job->grad_dtype) < 4;
  if (!pod_run_choose ("scaling", scenario->scaling, scalings, 1, &word, error))
    return false;
  job->is_quantised = pod_dtype_bytes (job->dtype) < 2 && !is_book;
  job->has_amax_pass = word == 1;
  if (job->is_quantised)
    pod_run_assume (run->assumptions, "%s: operands of the layers' matmuls, cast with %s scaling; activations, attention, gradients and logits stay bf16", pod_dtype_name (job->dtype),
            scalings[word]);
  return true;
}

/* Megatron-Core's cp_comm_type is p2p by default, a ring; MaxText's context_parallel_strategy is all_gather. */
static bool
choose_attention (const PodScenario *scenario, PodRun *run, GError **error)
{
  const bool is_tpu = run->topology->chip->family == POD_FAMILY_TPU;
  PodJob *job = &run->job;
  int word;

  if (!pod_run_choose ("attention-kind", scenario->attention_kind, pod_core_attention_names, POD_CORE_FLASH, &word, error))
    return false;
  job->core = (PodCoreAttention) word;
  if (!pod_run_choose ("cp-kind", scenario->cp_kind, pod_cp_kind_names, is_tpu ? POD_CP_ALLGATHER : POD_CP_RING, &word, error))
    return false;
  job->layout.cp_kind = (PodCpKind) word;
  job->is_causal = scenario->causal != 0;
  job->layout.is_zigzag = job->is_causal && job->layout.cp_kind != POD_CP_ULYSSES;
  job->has_dropout = scenario->dropout == 1;
  if (job->layout.degree[POD_AXIS_CP] == 1)
    return true;
  if (job->core == POD_CORE_UNFUSED && job->layout.cp_kind == POD_CP_RING)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "--attention-kind: unfused kernels give no log-sum-exp to add up a ring's blocks by: say flash, or --cp-kind allgather or ulysses");
      return false;
    }
  pod_run_assume (run->assumptions, "context parallelism by %s%s%s", pod_cp_kind_names[word], scenario->cp_kind != NULL ? "" : is_tpu ? " (as MaxText does)" : " (as Megatron-Core does)",
          job->layout.is_zigzag ? ", causal work balanced by two chunks a rank" : "");
  return true;
}

static bool
choose_layout (const PodScenario *scenario, PodRun *run, GError **error)
{
  static const char *const syncs[] = { "microbatch", "step", "pipeline", NULL };
  PodJob *job = &run->job;
  int word;

  if (scenario->layout == NULL)
    pod_run_assume (run->assumptions, "layout fsdp=%u: all devices (--layout not given)", run->topology->n_devices);
  if (!pod_layout_parse (scenario->layout != NULL ? scenario->layout : "fsdp=auto", run->topology->n_devices, &job->layout, error))
    return false;
  if (scenario->zero != UINT64_MAX)
    {
      if (scenario->zero > 3)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--zero: %" G_GUINT64_FORMAT " is not 0, 1, 2 or 3", scenario->zero);
          return false;
        }
      job->layout.zero_stage = (unsigned) scenario->zero;
      job->layout.is_zero_3 = scenario->zero == 3;
      if (scenario->zero == 3)
        job->layout.zero_stage = 0;
      /* What does not fit into 32 bits is more than any machine has, as pod_layout_check will say */
      if (scenario->zero == 3 && pod_layout_n_ranks (&job->layout) < UINT32_MAX)
        {
          job->layout.degree[POD_AXIS_FSDP] *= job->layout.degree[POD_AXIS_DP];
          job->layout.degree[POD_AXIS_DP] = 1;
        }
    }
  job->layout.is_sequence_parallel = scenario->sequence_parallel != 0;
  job->is_p2p_overlapped = scenario->overlap_p2p != 0;
  job->scatters_sends = scenario->scatter_p2p == 1;
  job->is_dp_overlapped = scenario->overlap_dp != 0;
  if (scenario->grad_bucket != NULL && !pod_parse_whole (scenario->grad_bucket, POD_UNIT_BYTES, &job->bucket_bytes, error))
    {
      g_prefix_error (error, "--grad-bucket: ");
      return false;
    }
  job->prefetch = scenario->overlap_fsdp == 0 ? 0 : scenario->prefetch == UINT64_MAX ? 1 : (unsigned) MIN (scenario->prefetch, 1000);
  if (!pod_run_choose ("fsdp-sync", scenario->fsdp_sync, syncs, 0, &word, error))
    return false;
  job->is_synced_once = word == 1 || (word == 2 && job->layout.degree[POD_AXIS_PP] > 1);
  job->is_fsdp_padded = run->fidelity != POD_FIDELITY_BOOK;
  job->is_tp_overlapped = scenario->overlap_tp == 1;
  if (job->layout.zero_stage > 0 && pod_layout_n_replicas (&job->layout) == 1 && run->model->n_experts == 0) /* copies of experts may be more */
    pod_run_assume (run->assumptions, "--zero %u has no effect: dp=1 leaves nothing to shard", job->layout.zero_stage);
  if (job->is_tp_overlapped && (job->layout.degree[POD_AXIS_TP] == 1 || !job->layout.is_sequence_parallel))
    pod_run_assume (run->assumptions, "--overlap-tp has no effect without tp and sequence parallelism");
  return true;
}

/* What interleaving wants of microbatches, said as a batch: the least that is not smaller than this one. */
static void
name_batch (const PodRun *run, uint32_t m, GError *error)
{
  const uint32_t pp = run->job.layout.degree[POD_AXIS_PP];
  const uint64_t sequences = run->job.batch.global_batch / m;
  g_autofree char *text = error->message;

  error->message = g_strdup_printf ("%s (a microbatch is %" G_GUINT64_FORMAT " sequences of all data ranks: --global-batch=%" G_GUINT64_FORMAT ")", text, sequences,
                                    (m / pp + 1) * (uint64_t) pp * sequences);
}

/* A forward and a backward at once take as long as both: stages of plain 1F1B, which have no more forwards in hand than there are stages behind
 * them, would wait for each other in turns. Megatron-Core refuses it likewise (transformer_config.py). */
static bool
pair_slots (PodRun *run, GError **error)
{
  if (run->job.layout.degree[POD_AXIS_PP] > 1 && run->schedule->kind == POD_SCHEDULE_1F1B)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "--overlap-ep: with pp=%u it needs virtual stages (vpp=2 or more), or --schedule dualpipe, which has it",
                   run->job.layout.degree[POD_AXIS_PP]);
      return false;
    }
  if (pod_schedule_pair (run->schedule) == 0)
    pod_run_assume (run->assumptions, "--overlap-ep has no effect: no stage has a backward with a forward of another microbatch behind it");
  return true;
}

/* A schedule by name or from a file; without one, 1F1B, interleaved where the layout has virtual stages. */
static bool
choose_schedule (const PodScenario *scenario, PodRun *run, GError **error)
{
  const PodLayout *layout = &run->job.layout;
  const uint32_t pp = layout->degree[POD_AXIS_PP];
  const uint32_t m = (uint32_t) pod_job_n_microbatches (&run->job);
  const char *text = scenario->schedule;
  g_autofree char *file = text != NULL ? pod_data_find ("workloads/schedules", text, ".csv") : NULL;
  int kind;

  if (file != NULL || (text != NULL && strchr (text, '/') != NULL))
    {
      run->schedule = pod_schedule_load (file != NULL ? file : text, pp, m, error);
      if (run->schedule != NULL && layout->vpp > 1 && run->schedule->n_chunks != layout->vpp)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--schedule: %s has %u parts on a rank, but vpp=%u", text, run->schedule->n_chunks, layout->vpp);
          return false;
        }
    }
  else if (pod_run_choose ("schedule", text, pod_schedule_names, layout->vpp > 1 ? POD_SCHEDULE_INTERLEAVED : POD_SCHEDULE_1F1B, &kind, error))
    {
      run->schedule = (run->needs_no_slots ? pod_schedule_new_empty : pod_schedule_new) ((PodScheduleKind) kind, pp, layout->vpp, m, error);
      if (run->schedule == NULL && kind == POD_SCHEDULE_INTERLEAVED && layout->vpp > 1 && m % pp != 0 && error != NULL && *error != NULL)
        name_batch (run, m, *error);
    }
  if (run->schedule == NULL)
    return false;
  run->job.schedule = run->schedule;
  if (scenario->overlap_ep == 1 && !pair_slots (run, error))
    return false;
  run->job.weaves_experts = scenario->overlap_ep == 1 || run->schedule->kind == POD_SCHEDULE_DUALPIPE || run->schedule->kind == POD_SCHEDULE_DUALPIPE_V;
  if (run->job.lora_rank > 0 && run->schedule->kind >= POD_SCHEDULE_ZB_H1)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "--lora: with frozen weights no weight gradients can be put off: take --schedule 1f1b, gpipe, interleaved or breadth-first");
      return false;
    }
  if (run->job.lora_rank > 0)
    pod_run_assume (run->assumptions, "LoRA: weights frozen, adapters of rank %" G_GUINT64_FORMAT " beside each linear layer of the Transformer layers (fused q, k, v and fused FFN inputs have one); experts, embedding and head have none; FLOPs counted are 4 a frozen parameter and token", run->job.lora_rank);
  if (pod_schedule_steps_overlap (run->schedule) && pp > 1)
    pod_run_assume (run->assumptions, "steps overlap: the step's time is the most that one stage takes from its first forward to its end (the optimizer waits for no other stage)");
  if (run->schedule->kind == POD_SCHEDULE_DUALPIPE || run->schedule->kind == POD_SCHEDULE_DUALPIPE_V)
    pod_run_assume (run->assumptions, "%s: a forward and a backward run together take the compute time of both (FB = F + B); their ops alternate, and only communication is hidden",
            pod_schedule_names[run->schedule->kind]);
  if (run->schedule->is_two_way)
    pod_run_assume (run->assumptions, "%s keeps two copies of the model: each stage holds a part from either end", pod_schedule_names[run->schedule->kind]);
  return true;
}

/* How tokens get to their experts; only layers of experts know these options. */
static bool
choose_routing (const PodScenario *scenario, PodRun *run, GError **error)
{
  static const char *const ops[] = { "fused", "eager", NULL };
  PodJob *job = &run->job;
  int word = 0;
  const bool is_told = scenario->capacity_factor != NULL || scenario->expert_imbalance != NULL || scenario->dispatch_dtype != NULL || scenario->route_nodes > 0;

  job->expert_load = 1;
  if (run->model->n_experts == 0)
    {
      if (is_told)
        pod_run_assume (run->assumptions, "%s has no experts: how tokens are routed has no effect", run->model->name);
      return true;
    }
  if (!pod_run_choose ("expert-ops", scenario->expert_ops, ops, 0, &word, error))
    return false;
  job->runs_experts_by_op = word == 1;
  job->draws_experts = run->fidelity != POD_FIDELITY_BOOK;
  job->route_nodes = (unsigned) MIN (scenario->route_nodes, UINT_MAX);
  if (!choose_dtype ("dispatch-dtype", scenario->dispatch_dtype, pod_dtype_bytes (job->dtype) < 2 ? POD_DTYPE_BF16 : job->dtype, &job->dispatch_dtype, error))
    return false;
  if (pod_dtype_bytes (job->dispatch_dtype) < 1)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "--dispatch-dtype: %s is not modelled; known are fp8, bf16, fp16, fp32", pod_dtype_name (job->dispatch_dtype));
      return false;
    }
  if (job->route_nodes > 0)
    pod_run_assume (run->assumptions, "experts: each token is sent once to each of at most %u nodes, and handed on inside them (--route-nodes)", job->route_nodes);
  return pod_expert_load_read (job, scenario->capacity_factor, scenario->expert_imbalance, run->assumptions, error);
}

/* The library of the scenario, or of the chip's vendor. */
static bool
choose_library (const PodScenario *scenario, PodRun *run, GError **error)
{
  const PodChip *chip = run->topology->chip;
  const char *name = scenario->library != NULL ? scenario->library : pod_library_default (chip);

  if (name == NULL)
    return true;
  run->library = pod_run_cache_library (run->cache, name, error);
  if (run->library == NULL)
    {
      if (scenario->library != NULL)
        g_prefix_error (error, "--library: ");
      return false;
    }
  if (run->fidelity == POD_FIDELITY_CALIBRATED)
    g_ptr_array_add (run->assumptions, pod_library_describe (run->library, chip));
  return true;
}

/* --micro-batch all: what a data rank has of the batch, where that divides; pod_layout_check says what does not. */
static void
choose_micro_batch (const PodScenario *scenario, PodRun *run)
{
  PodBatch *batch = &run->job.batch;
  const uint64_t data = (uint64_t) run->job.layout.degree[POD_AXIS_DP] * run->job.layout.degree[POD_AXIS_FSDP];

  batch->micro_batch = MAX (scenario->micro_batch, 1);
  if (scenario->micro_batch == POD_ALL)
    batch->micro_batch = MAX (batch->global_batch / data, 1);
}

bool
pod_run_prepare_job (const PodScenario *scenario, PodRun *run, GError **error)
{
  if (!pod_run_check_summary (scenario, error))
    return false;
  if (scenario->fidelity == NULL)
    run->fidelity = POD_FIDELITY_CALIBRATED;
  else if (!pod_fidelity_parse (scenario->fidelity, &run->fidelity, error))
    {
      g_prefix_error (error, "--fidelity: ");
      return false;
    }
  run->topology = pod_run_cache_topology (run->cache, scenario, run->assumptions, error);
  if (run->topology == NULL || !choose_library (scenario, run, error))
    return false;
  run->model = pod_run_cache_model (run->cache, scenario, run->assumptions, error);
  if (run->model == NULL)
    return false;
  run->job.model = run->model;
  run->job.batch.is_embed_head_as_layers = scenario->embed_head_as_layers == 1;
  if (!parse_seq_len (scenario, run, error) || !pack_documents (scenario, run, error) || !parse_global_batch (scenario, run, error) || !parse_stage_layers (scenario, run, error)
      || !pod_run_parse_overhead (scenario, run, error) || !choose_precision (scenario, run, error) || !choose_layout (scenario, run, error) || !choose_attention (scenario, run, error))
    return false;
  choose_micro_batch (scenario, run);
  if (!pod_layout_check (&run->job.layout, run->model, &run->job.batch, run->topology->n_devices, scenario->allow_idle == 1, run->assumptions, error)
      || !choose_routing (scenario, run, error) || !pod_run_choose_software (scenario, run, error) || !choose_schedule (scenario, run, error))
    return false;
  run->part_layers = pod_layout_place (&run->job.layout, run->model, &run->job.batch, run->schedule->n_parts, error);
  if (run->part_layers == NULL)
    return false;
  run->job.part_layers = run->part_layers;
  return true;
}

bool
pod_run_prepare (const PodScenario *scenario, PodRun *run, GError **error)
{
  PodTraffic traffic;

  if (!pod_run_prepare_job (scenario, run, error))
    return false;
  pod_job_traffic (&run->job, pod_chip_peak (run->topology->chip, run->job.dtype, run->fidelity == POD_FIDELITY_BOOK, NULL), &traffic);
  run->mesh = pod_mesh_new (run->topology, &run->job.layout, scenario->map, scenario->order, &traffic, error);
  return run->mesh != NULL;
}
