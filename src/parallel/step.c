#include "base/error.h"
#include "parallel/schedule.h"
#include "parallel/transformer-private.h"

/* Builds the blocks of each pipeline stage (forward, backward, last backward, optimizer) and their order. */

const char *const pod_recompute_names[POD_N_RECOMPUTES + 1] = {
  [POD_RECOMPUTE_NONE] = "none",
  [POD_RECOMPUTE_SELECTIVE] = "selective",
  [POD_RECOMPUTE_FULL] = "full",
};

/* A stage under construction. */
typedef struct
{
  PodEmitter *emitter;
  const PodMesh *mesh;
  uint32_t stage;
  uint32_t n_stages;
  GArray *units;           /* PodUnitPlan */
  uint32_t recv_act, send_act, recv_grad, send_grad; /* communicators, POD_NO_COMM at the ends */
  uint32_t tied_comm;      /* pair of first and last stage that share a tied table */
  int32_t n_tail_ops;      /* compute ops of the unit that ends a forward block */
} Stage;

static const PodUnitPlan *
unit_at (const Stage *stage, guint index)
{
  return &g_array_index (stage->units, PodUnitPlan, index);
}

uint64_t
pod_job_padded_vocab (const PodJob *job)
{
  const uint64_t multiple = 128 * (uint64_t) job->layout.degree[POD_AXIS_TP];

  return (job->model->vocab + multiple - 1) / multiple * multiple;
}

uint64_t
pod_job_n_microbatches (const PodJob *job)
{
  return job->batch.global_batch / ((uint64_t) job->layout.degree[POD_AXIS_DP] * job->layout.degree[POD_AXIS_FSDP] * job->batch.micro_batch);
}

void
pod_job_bytes_per_param (const PodJob *job, PodBytesPerParam *out)
{
  out->params = pod_dtype_bytes (job->param_dtype);
  out->grads = pod_dtype_bytes (job->grad_dtype);
  out->optimizer = (job->optimizer == POD_OPTIMIZER_ADAM ? 8 : 0) + (job->has_master ? 4 : 0);
}

void
pod_job_traffic (const PodJob *job, double peak_flops_per_s, PodTraffic *out)
{
  const PodModel *model = job->model;
  const uint32_t *degree = job->layout.degree;
  PodParams params;
  double tokens = (double) job->batch.global_batch * (double) job->batch.seq_len / (degree[POD_AXIS_DP] * (double) degree[POD_AXIS_FSDP]);
  double activations = tokens * (double) model->hidden * pod_dtype_bytes (job->dtype);
  double weights;

  pod_model_params (model, &params);
  weights = (double) params.total / degree[POD_AXIS_TP] / degree[POD_AXIS_PP];
  *out = (PodTraffic){ .compute_s = 6 * tokens * weights / peak_flops_per_s };
  if (degree[POD_AXIS_TP] > 1)
    out->axis_bytes[POD_AXIS_TP] = 9 * activations * (double) model->n_layers / degree[POD_AXIS_PP];
  if (degree[POD_AXIS_FSDP] > 1)
    out->axis_bytes[POD_AXIS_FSDP] = 3 * weights * pod_dtype_bytes (job->param_dtype) * (double) pod_job_n_microbatches (job);
  if (degree[POD_AXIS_DP] > 1)
    out->axis_bytes[POD_AXIS_DP] = 2 * weights / degree[POD_AXIS_FSDP] * pod_dtype_bytes (job->grad_dtype);
  if (degree[POD_AXIS_PP] > 1)
    out->axis_bytes[POD_AXIS_PP] = 2 * activations / (job->layout.is_sequence_parallel ? degree[POD_AXIS_TP] : 1);
}

static uint32_t
add_axis (PodEmitter *emitter, const PodMesh *mesh, PodAxis axis)
{
  if (mesh->layout.degree[axis] == 1)
    return POD_NO_COMM;
  return pod_builder_add_communicator (&emitter->builder, pod_mesh_communicator (mesh, POD_MASK (axis), axis, pod_axis_name (axis)));
}

static unsigned
mask_of (const PodLayout *layout, PodAxis axis)
{
  return layout->degree[axis] > 1 ? POD_MASK (axis) : 0;
}

static void
emitter_init (PodEmitter *emitter, const PodJob *job, const PodMesh *mesh, PodProgram *program)
{
  const PodLayout *layout = &job->layout;
  PodBuilder *builder = &emitter->builder;

  *emitter = (PodEmitter){ .job = job };
  pod_builder_init (builder, program);
  emitter->tp_comm = add_axis (emitter, mesh, POD_AXIS_TP);
  emitter->fsdp_comm = add_axis (emitter, mesh, POD_AXIS_FSDP);
  emitter->dp_comm = add_axis (emitter, mesh, POD_AXIS_DP);
  emitter->tp_axes = mask_of (layout, POD_AXIS_TP);
  emitter->fsdp_axes = mask_of (layout, POD_AXIS_FSDP);
  emitter->data_axes = emitter->fsdp_axes | mask_of (layout, POD_AXIS_DP);
  emitter->token_axes = emitter->data_axes | (layout->is_sequence_parallel ? emitter->tp_axes : 0);
  emitter->grad_axes = layout->zero_stage >= 1 ? mask_of (layout, POD_AXIS_DP) : 0;
  emitter->tokens = (double) job->batch.micro_batch * (double) job->batch.seq_len;
  emitter->residual_tokens = emitter->tokens / (layout->is_sequence_parallel ? layout->degree[POD_AXIS_TP] : 1);
  emitter->shards_outputs = mesh->topology->chip->family != POD_FAMILY_TPU;
  emitter->element_bytes = pod_dtype_bytes (job->dtype);
  emitter->label_params = pod_builder_label (builder, "weights", POD_USE_PARAMS);
  emitter->label_grads = pod_builder_label (builder, "gradients", POD_USE_GRADS);
  emitter->label_optimizer = pod_builder_label (builder, "optimizer state", POD_USE_OPTIMIZER);
  emitter->label_saved = pod_builder_label (builder, "saved activations", POD_USE_ACTIVATIONS);
  emitter->label_logits = pod_builder_label (builder, "logits", POD_USE_ACTIVATIONS);
  emitter->label_gathered = pod_builder_label (builder, "gathered weights", POD_USE_WORKSPACE);
  emitter->label_gathered_tokens = pod_builder_label (builder, "activations gathered over tp", POD_USE_WORKSPACE);
  emitter->label_unsharded_grads = pod_builder_label (builder, "gradients before reduction", POD_USE_GRADS);
}

static double
local_params (const PodUnitPlan *unit)
{
  return unit->sharded_params + unit->replicated_params;
}

/* What is there all the time: weights, gradients where they are kept from microbatch to microbatch, optimizer state. */
static void
set_static_bytes (const Stage *stage, PodProgramClass *class)
{
  const PodEmitter *emitter = stage->emitter;
  const PodLayout *layout = &emitter->job->layout;
  const double fsdp = layout->degree[POD_AXIS_FSDP];
  const double dp = layout->degree[POD_AXIS_DP];
  PodBytesPerParam bytes;
  double params = 0;

  pod_job_bytes_per_param (emitter->job, &bytes);
  for (guint i = 0; i < stage->units->len; i++)
    params += unit_at (stage, i)->padded_params;
  class->static_bytes[emitter->label_params] = params / fsdp * bytes.params;
  class->static_bytes[emitter->label_grads] = params / fsdp / (layout->zero_stage >= 2 ? dp : 1) * bytes.grads;
  class->static_bytes[emitter->label_optimizer] = params / fsdp / (layout->zero_stage >= 1 ? dp : 1) * bytes.optimizer;
}

static PodPass
pass_new (Stage *stage, guint unit, PodPhase phase, uint32_t value, uint32_t weights)
{
  return (PodPass){ .emitter = stage->emitter,
                    .unit = unit_at (stage, unit),
                    .phase = phase,
                    .weights = weights,
                    .value = value,
                    .gathered = POD_NO_OP,
                    .first_compute = POD_NO_OP,
                    .last_compute = POD_NO_OP };
}

/* The gather of a unit's weights over fsdp. It may start when the unit `prefetch` before the one ahead of it has ended: with
 * prefetch 1, while the unit before this one computes. @last_of: last compute op of each unit so far; @position: of this unit. */
static uint32_t
gather_weights (Stage *stage, const PodUnitPlan *unit, PodPhase phase, const GArray *last_of, guint position)
{
  PodEmitter *emitter = stage->emitter;
  const PodJob *job = emitter->job;
  const double bytes = unit->gathered_params * pod_dtype_bytes (job->param_dtype);
  g_autofree char *name = NULL;
  uint32_t op;
  int64_t wait_for;

  if (emitter->fsdp_comm == POD_NO_COMM || bytes == 0)
    return POD_NO_OP;
  name = unit->layer >= 0 ? g_strdup_printf ("L%d weights all-gather", unit->layer)
                          : g_strdup_printf ("%s weights all-gather", unit->kind == POD_UNIT_HEAD ? "head" : "embedding");
  op = pod_builder_collective (&emitter->builder, phase, unit->layer, name, POD_STREAM_GATHER, emitter->fsdp_comm, POD_ALL_GATHER, (uint64_t) bytes);
  wait_for = (int64_t) position - 1 - job->prefetch;
  if (wait_for >= 0)
    pod_builder_depend (&emitter->builder, op, g_array_index (last_of, uint32_t, wait_for));
  else
    pod_builder_depend_before (&emitter->builder, op, POD_STREAM_COMPUTE, wait_for == -1 ? 0 : stage->n_tail_ops);
  pod_builder_alloc (&emitter->builder, op, emitter->label_gathered, bytes);
  return op;
}

static void
free_gathered (Stage *stage, const PodUnitPlan *unit, const PodPass *pass)
{
  PodEmitter *emitter = stage->emitter;

  if (pass->weights != POD_NO_OP)
    pod_builder_free_buffer (&emitter->builder, pass->last_compute, emitter->label_gathered, unit->gathered_params * pod_dtype_bytes (emitter->job->param_dtype));
}

/* Receives what the neighbour stage sends. */
static uint32_t
receive (Stage *stage, uint32_t comm, PodStream stream, PodPhase phase, const char *name)
{
  PodEmitter *emitter = stage->emitter;
  const double bytes = emitter->residual_tokens * (double) emitter->job->model->hidden * emitter->element_bytes;

  if (comm == POD_NO_COMM)
    return POD_NO_OP;
  return pod_builder_collective (&emitter->builder, phase, -1, name, stream, comm, POD_SEND, (uint64_t) bytes);
}

/* Sends @value once the pass is through: frameworks return from a backward (its last weight gradient included) before they
 * post the send. */
static void
send (Stage *stage, uint32_t comm, PodStream stream, PodPhase phase, const char *name, uint32_t value, uint32_t last_compute)
{
  uint32_t op = receive (stage, comm, stream, phase, name);

  if (op == POD_NO_OP)
    return;
  pod_builder_depend (&stage->emitter->builder, op, value);
  pod_builder_depend (&stage->emitter->builder, op, last_compute);
}

static uint32_t
last_of_all (const GArray *last_of)
{
  return last_of->len > 0 ? g_array_index (last_of, uint32_t, last_of->len - 1) : POD_NO_OP;
}

static uint32_t
forward_block (Stage *stage)
{
  PodEmitter *emitter = stage->emitter;
  PodBuilder *builder = &emitter->builder;
  g_autofree char *name = g_strdup_printf ("stage %u forward", stage->stage);
  g_autoptr (GArray) last_of = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  uint32_t value;

  pod_builder_open (builder, name);
  value = receive (stage, stage->recv_act, POD_STREAM_RECV_ACT, POD_PHASE_FORWARD, "receive activations");
  for (guint i = 0; i < stage->units->len; i++)
    {
      const PodUnitPlan *unit = unit_at (stage, i);
      uint32_t weights = gather_weights (stage, unit, POD_PHASE_FORWARD, last_of, i);
      PodPass pass = pass_new (stage, i, POD_PHASE_FORWARD, value, weights);
      bool is_kept_whole = emitter->job->recompute != POD_RECOMPUTE_FULL || unit->kind != POD_UNIT_LAYER;

      pod_pass_forward (&pass);
      pod_builder_alloc (builder, pass.first_compute, unit->saved_label, is_kept_whole ? unit->saved_bytes : unit->input_bytes);
      free_gathered (stage, unit, &pass);
      value = pass.value;
      g_array_append_val (last_of, pass.last_compute);
    }
  send (stage, stage->send_act, POD_STREAM_SEND_ACT, POD_PHASE_FORWARD, "send activations", value, last_of_all (last_of));
  return pod_builder_close (builder);
}

/* The reduction of a unit's weight gradients over the data axes, as the shardings of its matmuls ask. */
static void
reduce_gradients (Stage *stage, const PodUnitPlan *unit, const PodPass *pass, bool is_last)
{
  PodEmitter *emitter = stage->emitter;
  PodBuilder *builder = &emitter->builder;
  const PodJob *job = emitter->job;
  const double fsdp = job->layout.degree[POD_AXIS_FSDP];
  const double bytes = unit->padded_params * pod_dtype_bytes (job->grad_dtype);
  const bool every_microbatch = job->layout.zero_stage >= 2; /* gradients are kept sharded over dp */
  g_autofree char *unit_name = unit->layer >= 0 ? g_strdup_printf ("L%d", unit->layer) : g_strdup (unit->kind == POD_UNIT_HEAD ? "head" : "embedding");
  uint32_t after = pass->last_compute;

  if (bytes == 0)
    return;
  if (pass->grad_scatter & emitter->fsdp_axes)
    {
      g_autofree char *name = g_strdup_printf ("%s gradients reduce-scatter", unit_name);
      uint32_t op = pod_builder_collective (builder, POD_PHASE_BACKWARD, unit->layer, name, POD_STREAM_REDUCE, emitter->fsdp_comm, POD_REDUCE_SCATTER, (uint64_t) bytes);

      pod_builder_depend (builder, op, after);
      pod_builder_alloc (builder, pass->first_compute, emitter->label_unsharded_grads, bytes);
      pod_builder_free_buffer (builder, op, emitter->label_unsharded_grads, bytes);
      after = op;
    }
  if (emitter->dp_comm != POD_NO_COMM && (is_last || every_microbatch))
    {
      const bool is_scatter = pass->grad_scatter & POD_MASK (POD_AXIS_DP);
      const bool is_kept_sharded = every_microbatch && !(pass->grad_scatter & emitter->fsdp_axes);
      g_autofree char *name = g_strdup_printf ("%s gradients %s", unit_name, is_scatter ? "reduce-scatter over dp" : "all-reduce");
      uint32_t op = pod_builder_collective (builder, POD_PHASE_BACKWARD, unit->layer, name, POD_STREAM_REDUCE, emitter->dp_comm,
                                            is_scatter ? POD_REDUCE_SCATTER : POD_ALL_REDUCE, (uint64_t) (bytes / fsdp));

      pod_builder_depend (builder, op, after);
      if (is_kept_sharded) /* ZeRO-2: whole only until they are scattered */
        {
          pod_builder_alloc (builder, pass->first_compute, emitter->label_unsharded_grads, bytes);
          pod_builder_free_buffer (builder, op, emitter->label_unsharded_grads, bytes);
        }
    }
}

/* Backward of one unit, after its forward once more where its activations were not kept. */
static uint32_t
backward_unit (Stage *stage, guint index, uint32_t value, uint32_t weights, PodPass *out)
{
  PodEmitter *emitter = stage->emitter;
  PodBuilder *builder = &emitter->builder;
  const PodUnitPlan *unit = unit_at (stage, index);
  const bool is_again = emitter->job->recompute == POD_RECOMPUTE_FULL && unit->kind == POD_UNIT_LAYER;
  double saved = unit->saved_bytes;

  if (is_again)
    {
      PodPass again = pass_new (stage, index, POD_PHASE_RECOMPUTE, value, weights);

      pod_pass_forward (&again);
      pod_builder_alloc (builder, again.first_compute, unit->saved_label, saved - unit->input_bytes);
      value = again.value;
    }
  *out = pass_new (stage, index, POD_PHASE_BACKWARD, value, weights);
  pod_pass_backward (out);
  pod_builder_free_buffer (builder, out->last_compute, unit->saved_label, saved);
  free_gathered (stage, unit, out);
  return out->value;
}

static uint32_t
backward_block (Stage *stage, bool is_last)
{
  PodEmitter *emitter = stage->emitter;
  PodBuilder *builder = &emitter->builder;
  g_autofree char *name = g_strdup_printf ("stage %u %s", stage->stage, is_last ? "last backward" : "backward");
  g_autoptr (GArray) last_of = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autoptr (GArray) passes = g_array_new (FALSE, FALSE, sizeof (PodPass));
  uint32_t value;

  pod_builder_open (builder, name);
  value = receive (stage, stage->recv_grad, POD_STREAM_RECV_GRAD, POD_PHASE_BACKWARD, "receive gradients");
  for (guint position = 0; position < stage->units->len; position++)
    {
      guint index = stage->units->len - 1 - position;
      const PodUnitPlan *unit = unit_at (stage, index);
      uint32_t weights = unit->kind == POD_UNIT_EMBEDDING ? POD_NO_OP : gather_weights (stage, unit, POD_PHASE_BACKWARD, last_of, position);
      PodPass pass;

      value = backward_unit (stage, index, value, weights, &pass);
      if (position == 0 && stage->recv_grad == POD_NO_COMM) /* the loss is whole once its all-reduce is */
        pod_builder_depend_before (builder, pass.first_compute, POD_STREAM_TP, 0);
      if (emitter->job->is_dp_overlapped)
        reduce_gradients (stage, unit, &pass, is_last);
      g_array_append_val (passes, pass);
      g_array_append_val (last_of, pass.last_compute);
    }
  send (stage, stage->send_grad, POD_STREAM_SEND_GRAD, POD_PHASE_BACKWARD, "send gradients", value, last_of_all (last_of));
  if (!emitter->job->is_dp_overlapped)
    for (guint i = 0; i < passes->len; i++)
      {
        PodPass pass = g_array_index (passes, PodPass, i);

        pass.last_compute = g_array_index (last_of, uint32_t, last_of->len - 1);
        reduce_gradients (stage, pass.unit, &pass, is_last);
      }
  return pod_builder_close (builder);
}

/* What remains when all gradients are there: sums that tensor parallelism and tied tables leave, the update, ZeRO's gather. */
static uint32_t
optimizer_block (Stage *stage)
{
  PodEmitter *emitter = stage->emitter;
  PodBuilder *builder = &emitter->builder;
  const PodJob *job = emitter->job;
  const PodLayout *layout = &job->layout;
  const double fsdp = layout->degree[POD_AXIS_FSDP];
  const double dp = layout->zero_stage >= 1 ? layout->degree[POD_AXIS_DP] : 1;
  g_autofree char *name = g_strdup_printf ("stage %u optimizer", stage->stage);
  double params = 0;
  double replicated = 0;
  double grad_bytes = pod_dtype_bytes (job->grad_dtype);
  PodBytesPerParam bytes;
  PodKernel kernel;
  uint32_t op;
  uint32_t update;

  pod_job_bytes_per_param (job, &bytes);
  for (guint i = 0; i < stage->units->len; i++)
    {
      params += local_params (unit_at (stage, i));
      replicated += unit_at (stage, i)->replicated_params;
    }
  pod_builder_open (builder, name);
  kernel = pod_kernel_optimizer (params / fsdp / dp * (bytes.optimizer + grad_bytes + (job->has_master ? 0 : bytes.params)),
                                 params / fsdp / dp * (bytes.optimizer + bytes.params), 12 * params / fsdp / dp);
  op = POD_NO_OP;
  if (layout->is_sequence_parallel && emitter->tp_comm != POD_NO_COMM && replicated > 0)
    {
      op = pod_builder_collective (builder, POD_PHASE_OPTIMIZER, -1, "norm gradients all-reduce", POD_STREAM_TP, emitter->tp_comm, POD_ALL_REDUCE,
                                   (uint64_t) (replicated * grad_bytes / fsdp));
      pod_builder_depend_before (builder, op, POD_STREAM_COMPUTE, 0);
    }
  if (stage->tied_comm != POD_NO_COMM)
    {
      uint32_t tied = pod_builder_collective (builder, POD_PHASE_OPTIMIZER, -1, "tied embedding gradients all-reduce", POD_STREAM_REDUCE, stage->tied_comm, POD_ALL_REDUCE,
                                              (uint64_t) ((double) pod_job_padded_vocab (job) * (double) job->model->hidden / layout->degree[POD_AXIS_TP] * grad_bytes / fsdp));

      pod_builder_depend_before (builder, tied, POD_STREAM_COMPUTE, 0);
      update = pod_builder_compute (builder, POD_PHASE_OPTIMIZER, -1, "optimizer", NULL, &kernel);
      pod_builder_depend (builder, update, tied);
    }
  else
    update = pod_builder_compute (builder, POD_PHASE_OPTIMIZER, -1, "optimizer", NULL, &kernel);
  pod_builder_depend (builder, update, op);
  pod_builder_depend_before (builder, update, POD_STREAM_REDUCE, 0);
  if (layout->zero_stage >= 1 && emitter->dp_comm != POD_NO_COMM)
    {
      op = pod_builder_collective (builder, POD_PHASE_OPTIMIZER, -1, "updated weights all-gather", POD_STREAM_REDUCE, emitter->dp_comm, POD_ALL_GATHER,
                                   (uint64_t) (params / fsdp * bytes.params));
      pod_builder_depend (builder, op, update);
    }
  return pod_builder_close (builder);
}

/* Compute ops of the unit that ends a forward block: a gather that prefetches into the next block may start when that unit
 * does. Emitted into a block that is never closed. */
static int32_t
count_tail_ops (Stage *stage)
{
  PodBuilder *builder = &stage->emitter->builder;
  PodPass pass = pass_new (stage, stage->units->len - 1, POD_PHASE_FORWARD, POD_NO_OP, POD_NO_OP);
  int32_t n = 0;

  pod_builder_open (builder, "tail");
  pod_pass_forward (&pass);
  for (guint i = 0; i < builder->ops->len; i++)
    n += g_array_index (builder->ops, PodOp, i).kind == POD_OP_COMPUTE;
  return n;
}

static void
add_steps (Stage *stage, PodProgramClass *class, uint32_t forward, uint32_t backward, uint32_t last, uint32_t optimizer)
{
  const uint32_t m = (uint32_t) pod_job_n_microbatches (stage->emitter->job);
  g_autoptr (GArray) slots = pod_schedule_1f1b (stage->stage, stage->n_stages, m);
  PodOpStep step;

  for (guint i = 0; i < slots->len; i++)
    {
      PodSlot slot = g_array_index (slots, PodSlot, i);

      step.block = slot.kind == POD_SLOT_FORWARD ? forward : slot.microbatch == m - 1 ? last : backward;
      step.microbatch = (int32_t) slot.microbatch;
      g_array_append_val (class->steps, step);
    }
  step = (PodOpStep){ .block = optimizer, .microbatch = -1 };
  g_array_append_val (class->steps, step);
}

static void
build_stage (Stage *stage, PodProgram *program)
{
  PodProgramClass *class = g_new0 (PodProgramClass, 1);
  uint32_t forward;
  uint32_t backward;
  uint32_t last;

  class->name = g_strdup_printf ("stage %u", stage->stage);
  class->steps = g_array_new (FALSE, FALSE, sizeof (PodOpStep));
  stage->units = pod_stage_units (stage->emitter, stage->stage);
  set_static_bytes (stage, class);
  if (stage->units->len > 0)
    stage->n_tail_ops = count_tail_ops (stage);
  forward = forward_block (stage);
  backward = pod_job_n_microbatches (stage->emitter->job) > 1 ? backward_block (stage, false) : forward;
  last = backward_block (stage, true);
  add_steps (stage, class, forward, backward, last, optimizer_block (stage));
  g_ptr_array_add (program->classes, class);
  g_array_unref (stage->units);
}

PodProgram *
pod_job_program (const PodJob *job, const PodMesh *mesh, GError **error)
{
  g_autoptr (PodProgram) program = pod_program_new (mesh->n_ranks);
  const uint32_t pp = job->layout.degree[POD_AXIS_PP];
  g_autofree uint32_t *forward_edges = g_new (uint32_t, pp + 1);
  g_autofree uint32_t *backward_edges = g_new (uint32_t, pp + 1);
  uint32_t tied_comm = POD_NO_COMM;
  PodEmitter emitter;

  if (job->model->attention == POD_ATTENTION_MLA)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "%s uses multi-head latent attention, whose training step is not modelled", job->model->name);
      return NULL;
    }
  emitter_init (&emitter, job, mesh, program);
  forward_edges[0] = backward_edges[0] = forward_edges[pp] = backward_edges[pp] = POD_NO_COMM;
  for (uint32_t i = 1; i < pp; i++) /* edge i joins stages i-1 and i */
    {
      forward_edges[i] = pod_builder_add_communicator (&emitter.builder, pod_mesh_edge (mesh, i - 1, i));
      backward_edges[i] = pod_builder_add_communicator (&emitter.builder, pod_mesh_edge (mesh, i, i - 1));
    }
  if (pp > 1 && job->model->is_tied && job->model->vocab > 0)
    tied_comm = pod_builder_add_communicator (&emitter.builder, pod_mesh_edge (mesh, 0, pp - 1));
  for (uint32_t i = 0; i < pp; i++)
    {
      Stage stage = { .emitter = &emitter,
                      .mesh = mesh,
                      .stage = i,
                      .n_stages = pp,
                      .recv_act = forward_edges[i],
                      .send_act = forward_edges[i + 1],
                      .recv_grad = backward_edges[i + 1],
                      .send_grad = backward_edges[i],
                      .tied_comm = i == 0 || i == pp - 1 ? tied_comm : POD_NO_COMM };

      build_stage (&stage, program);
    }
  for (uint32_t rank = 0; rank < mesh->n_ranks; rank++)
    program->class_of_rank[rank] = pod_mesh_coordinate (mesh, rank, POD_AXIS_PP);
  pod_builder_clear (&emitter.builder);
  return g_steal_pointer (&program);
}
