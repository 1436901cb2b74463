#include "parallel/chunk-private.h"

/* Blocks: one forward or backward of one chunk for one microbatch. */

static const char *const slot_names[POD_N_SLOTS] = {
  [POD_SLOT_FORWARD] = "forward",
  [POD_SLOT_BACKWARD] = "backward",
  [POD_SLOT_INPUT] = "input gradients",
  [POD_SLOT_WEIGHT] = "weight gradients",
};

static const char *const edge_names[POD_N_EDGES] = {
  [0] = "",
  [POD_EDGE_FIRST] = "first ",
  [POD_EDGE_LAST] = "last ",
  [POD_EDGE_FIRST | POD_EDGE_LAST] = "only ",
};

/* Gathers of a unit's weights, POD_NO_OP none. */
typedef struct
{
  uint32_t dense;
  uint32_t experts;
} Weights;

static const Weights no_weights = { POD_NO_OP, POD_NO_OP };

static PodPass
pass_new (PodChunk *chunk, guint unit, PodPhase phase, uint32_t value, Weights weights)
{
  return (PodPass){ .emitter = chunk->emitter,
                    .unit = pod_chunk_unit (chunk, unit),
                    .phase = phase,
                    .weights = weights.dense,
                    .expert_weights = weights.experts,
                    .value = value,
                    .gathered = POD_NO_OP,
                    .first_compute = POD_NO_OP,
                    .last_compute = POD_NO_OP };
}

/* A gather of weights over fsdp. It may start when the unit `prefetch` before the one ahead of it has ended: with prefetch 1,
 * while the unit before this one computes. @last_of: last compute op of each unit so far; @position: of this unit. */
static uint32_t
gather_over (PodChunk *chunk, const char *name, uint32_t comm, double bytes, const PodPass *pass, const GArray *last_of, guint position)
{
  PodEmitter *emitter = chunk->emitter;
  const int64_t wait_for = (int64_t) position - 1 - emitter->job->prefetch;
  uint32_t op;

  if (comm == POD_NO_COMM || bytes == 0)
    return POD_NO_OP;
  op = pod_builder_collective (&emitter->builder, pass->phase, pass->unit->layer, name, POD_STREAM_GATHER, comm, POD_ALL_GATHER, (uint64_t) bytes);
  if (wait_for >= 0)
    pod_builder_depend (&emitter->builder, op, g_array_index (last_of, uint32_t, wait_for));
  else
    pod_builder_depend_before (&emitter->builder, op, POD_STREAM_COMPUTE, wait_for == -1 ? 0 : chunk->n_tail_ops);
  pod_builder_alloc (&emitter->builder, op, emitter->label_gathered, bytes);
  return op;
}

/* (nullable) what stands before what its ops do, for those that are no layer */
static const char *
unit_name (const PodUnitPlan *unit)
{
  return unit->layer >= 0 ? NULL : unit->kind == POD_UNIT_HEAD ? "head" : "embedding";
}

static double
gathered_bytes (const PodEmitter *emitter, double params)
{
  return params * pod_dtype_bytes (emitter->job->gather_dtype);
}

/* The weights of a unit, those of its experts over the copies that share them, unless they stand there. */
static Weights
gather_weights (PodChunk *chunk, const PodUnitPlan *unit, PodPhase phase, unsigned edge, const GArray *last_of, guint position)
{
  PodEmitter *emitter = chunk->emitter;
  const PodPass pass = { .unit = unit, .phase = phase };
  const char *name = pod_builder_join (&emitter->builder, unit_name (unit), "weights all-gather");
  Weights weights;

  if (emitter->is_synced_once && (phase != POD_PHASE_FORWARD || !(edge & POD_EDGE_FIRST)))
    return no_weights;
  weights.dense = gather_over (chunk, name, emitter->fsdp_comm, gathered_bytes (emitter, unit->gathered_params), &pass, last_of, position);
  weights.experts = gather_over (chunk, "expert weights all-gather", emitter->experts.fsdp_comm, gathered_bytes (emitter, unit->expert_params), &pass, last_of, position);
  return weights;
}

static void
free_gathered (PodChunk *chunk, const PodUnitPlan *unit, const PodPass *pass)
{
  PodEmitter *emitter = chunk->emitter;

  if (emitter->is_synced_once)
    return;
  if (pass->weights != POD_NO_OP)
    pod_builder_free_buffer (&emitter->builder, pass->last_compute, emitter->label_gathered, gathered_bytes (emitter, unit->gathered_params));
  if (pass->expert_weights != POD_NO_OP)
    pod_builder_free_buffer (&emitter->builder, pass->last_compute, emitter->label_gathered, gathered_bytes (emitter, unit->expert_params));
}

/* What the first forward gathered, once the op that comes last has ended. */
static void
free_all_gathered (PodChunk *chunk, uint32_t last)
{
  PodEmitter *emitter = chunk->emitter;

  for (guint i = 0; emitter->is_synced_once && i < chunk->units->len; i++)
    {
      const PodUnitPlan *unit = pod_chunk_unit (chunk, i);

      if (emitter->fsdp_comm != POD_NO_COMM)
        pod_builder_free_buffer (&emitter->builder, last, emitter->label_gathered, gathered_bytes (emitter, unit->gathered_params));
      if (emitter->experts.fsdp_comm != POD_NO_COMM)
        pod_builder_free_buffer (&emitter->builder, last, emitter->label_gathered, gathered_bytes (emitter, unit->expert_params));
    }
}

/* What flows between layers. */
static double
residual_bytes (const PodEmitter *emitter)
{
  return emitter->residual_tokens * (double) emitter->job->model->hidden * emitter->element_bytes;
}

/* Do tensor ranks that all hold what flows between layers send a part each (Megatron-LM's scatter/gather of 2021, arXiv 2104.04473
 * section 4.1; DeepSpeed's pipe_partitioned)? With sequence parallelism a rank has no more than its part. */
static bool
is_scattered (const PodEmitter *emitter)
{
  return emitter->job->scatters_sends && emitter->tp_comm != POD_NO_COMM && !emitter->job->layout.is_sequence_parallel;
}

/* One of the two ends of what a stage sends to its neighbour. */
static uint32_t
hand_over (PodChunk *chunk, uint32_t comm, PodStream stream, PodPhase phase, const char *name)
{
  PodEmitter *emitter = chunk->emitter;
  const double n_parts = is_scattered (emitter) ? emitter->job->layout.degree[POD_AXIS_TP] : 1;

  if (comm == POD_NO_COMM)
    return POD_NO_OP;
  return pod_builder_collective (&emitter->builder, phase, -1, name, stream, comm, POD_SEND, (uint64_t) (residual_bytes (emitter) / n_parts));
}

/* Receives what the neighbour stage sends. */
static uint32_t
receive (PodChunk *chunk, uint32_t comm, PodStream stream, PodPhase phase, const char *name)
{
  PodEmitter *emitter = chunk->emitter;
  const uint32_t part = hand_over (chunk, comm, stream, phase, name);
  uint32_t whole;

  if (part == POD_NO_OP || !is_scattered (emitter))
    return part;
  whole = pod_builder_collective (&emitter->builder, phase, -1, "gather what arrived", POD_STREAM_TP, emitter->tp_comm, POD_ALL_GATHER, (uint64_t) residual_bytes (emitter));
  pod_builder_depend (&emitter->builder, whole, part);
  return whole;
}

/* Sends @value once the pass is through: frameworks return from a backward (its last weight gradient included) before they
 * post the send. */
static void
send (PodChunk *chunk, uint32_t comm, PodStream stream, PodPhase phase, const char *name, uint32_t value, uint32_t last_compute)
{
  uint32_t op = hand_over (chunk, comm, stream, phase, name);

  if (op == POD_NO_OP)
    return;
  pod_builder_depend (&chunk->emitter->builder, op, value);
  pod_builder_depend (&chunk->emitter->builder, op, last_compute);
}

static uint32_t
last_of_all (const GArray *last_of)
{
  return last_of->len > 0 ? g_array_index (last_of, uint32_t, last_of->len - 1) : POD_NO_OP;
}

/* What flows into a block was made by an earlier block of this rank: all of it is there once tp's last sum is. */
static void
wait_for_near (PodChunk *chunk, const PodPass *pass)
{
  pod_builder_depend_before (&chunk->emitter->builder, pass->first_compute, POD_STREAM_TP, 0);
}

/* Where sends are not overlapped, a block begins when all that the rank has sent is through. */
static void
wait_for_sends (PodChunk *chunk, const PodPass *pass)
{
  static const PodStream sends[] = { POD_STREAM_SEND_ACT, POD_STREAM_SEND_GRAD, POD_STREAM_SEND_ACT_BACK, POD_STREAM_SEND_GRAD_BACK };

  for (unsigned i = 0; !chunk->emitter->job->is_p2p_overlapped && pass->first_compute != POD_NO_OP && i < G_N_ELEMENTS (sends); i++)
    pod_builder_depend_before (&chunk->emitter->builder, pass->first_compute, sends[i], 0);
}

/* Activations that wait for backward in the host's memory leave when the unit has made them. */
static void
send_to_host (PodChunk *chunk, const PodUnitPlan *unit, const PodPass *pass)
{
  PodBuilder *builder = &chunk->emitter->builder;
  uint32_t op;

  if (unit->offload_bytes == 0)
    return;
  op = pod_builder_copy (builder, POD_PHASE_FORWARD, unit->layer, "activations to the host", true, unit->offload_bytes);
  pod_builder_depend (builder, op, pass->last_compute);
  pod_builder_alloc (builder, pass->first_compute, chunk->emitter->label_offloaded, unit->offload_bytes);
  pod_builder_free_buffer (builder, op, chunk->emitter->label_offloaded, unit->offload_bytes);
}

/* They come back while the unit before in backward order computes. Returns: the copy, POD_NO_OP none */
static uint32_t
fetch_from_host (PodChunk *chunk, const PodUnitPlan *unit, const GArray *last_of, guint position)
{
  PodBuilder *builder = &chunk->emitter->builder;
  uint32_t op;

  if (unit->offload_bytes == 0)
    return POD_NO_OP;
  op = pod_builder_copy (builder, POD_PHASE_BACKWARD, unit->layer, "activations from the host", false, unit->offload_bytes);
  pod_builder_depend_before (builder, op, POD_STREAM_TO_HOST, 0); /* all of it is there */
  if (position >= 2)
    pod_builder_depend (builder, op, g_array_index (last_of, uint32_t, position - 2));
  else
    pod_builder_depend_before (builder, op, POD_STREAM_COMPUTE, position == 1 ? 0 : chunk->n_tail_ops);
  pod_builder_alloc (builder, op, chunk->emitter->label_offloaded, unit->offload_bytes);
  return op;
}

/* ---- forward ---- */

static void
forward_unit (PodChunk *chunk, guint index, unsigned edge, uint32_t value, const GArray *last_of, PodPass *out)
{
  const PodUnitPlan *unit = pod_chunk_unit (chunk, index);
  Weights weights = gather_weights (chunk, unit, POD_PHASE_FORWARD, edge, last_of, index);

  *out = pass_new (chunk, index, POD_PHASE_FORWARD, value, weights);
  pod_pass_forward (out);
  if (index == 0 && chunk->has_near_input)
    wait_for_near (chunk, out);
  if (index == 0)
    wait_for_sends (chunk, out);
  pod_builder_alloc (&chunk->emitter->builder, out->first_compute, unit->saved_label, unit->saved_bytes - unit->again_bytes - unit->offload_bytes);
  send_to_host (chunk, unit, out);
  free_gathered (chunk, unit, out);
}

static void
forward_ops (PodChunk *chunk, unsigned edge)
{
  PodEmitter *emitter = chunk->emitter;
  PodBuilder *builder = &emitter->builder;
  g_autoptr (GArray) last_of = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  uint32_t value = receive (chunk, chunk->recv_act, chunk->is_back ? POD_STREAM_RECV_ACT_BACK : POD_STREAM_RECV_ACT, POD_PHASE_FORWARD, "receive activations");
  PodStanding before = { 0 };
  PodPass pass = { 0 };

  for (guint i = 0; i < chunk->units->len; i++)
    {
      const PodStanding now = pod_chunk_stand (chunk, value);

      if (pod_chunk_is_repeated (chunk, i, 1, &before, &now, last_of))
        pod_chunk_repeat (chunk, i, &before, &pass);
      else
        forward_unit (chunk, i, edge, value, last_of, &pass);
      before = now;
      value = pass.value;
      g_array_append_val (last_of, pass.last_compute);
    }
  if (emitter->job->keeps_stage_outputs && chunk->send_act != POD_NO_COMM)
    pod_builder_alloc (builder, last_of_all (last_of), emitter->label_stage_outputs, residual_bytes (emitter));
  send (chunk, chunk->send_act, chunk->is_back ? POD_STREAM_SEND_ACT_BACK : POD_STREAM_SEND_ACT, POD_PHASE_FORWARD, "send activations", value, last_of_all (last_of));
}

/* Weight gradients that are reduced together: a unit's, or those of its experts, each over its own ranks. */
typedef struct
{
  const char *name;   /* (nullable) but for the layer */
  PodBucket *bucket;
  double params;
  uint32_t fsdp_comm; /* POD_NO_COMM where they are not scattered */
  uint32_t dp_comm;
  bool is_scattered;  /* over dp */
  double fsdp;        /* degree */
} Gradients;

/* Over dp, once the bucket is full, or @is_end: no unit of this block follows. Without fsdp; with it each unit's is a bucket. */
static void
reduce_over_dp (PodChunk *chunk, const Gradients *gradients, const PodPass *pass, double bytes, uint32_t after, bool is_end)
{
  PodEmitter *emitter = chunk->emitter;
  PodBuilder *builder = &emitter->builder;
  PodBucket *bucket = gradients->bucket;
  const bool is_sharded = gradients->fsdp_comm != POD_NO_COMM;
  const bool is_kept_sharded = emitter->job->layout.zero_stage >= 2 && !is_sharded; /* whole only until they are scattered */
  const char *name = pod_builder_join (builder, gradients->name, gradients->is_scattered ? "gradients reduce-scatter over dp" : "gradients all-reduce");
  uint32_t op;

  if (bytes > 0 && is_kept_sharded)
    pod_builder_alloc (builder, pass->first_compute, emitter->label_unsharded_grads, bytes);
  if (bytes > 0)
    *bucket = (PodBucket){ bucket->bytes + bytes, after };
  if (bucket->bytes == 0 || (bucket->bytes < (double) emitter->job->bucket_bytes && !is_end && !is_sharded))
    return;
  op = pod_builder_collective (builder, POD_PHASE_BACKWARD, pass->unit->layer, name, POD_STREAM_REDUCE, gradients->dp_comm,
                               gradients->is_scattered ? POD_REDUCE_SCATTER : POD_ALL_REDUCE, (uint64_t) (bucket->bytes / gradients->fsdp));
  pod_builder_depend (builder, op, bucket->after);
  if (is_kept_sharded)
    pod_builder_free_buffer (builder, op, emitter->label_unsharded_grads, bucket->bytes);
  *bucket = (PodBucket){ 0, POD_NO_OP };
}

/* Their reduction over the data axes, as the shardings of the matmuls ask. */
static void
reduce_over (PodChunk *chunk, const Gradients *gradients, const PodPass *pass, unsigned edge, bool is_end)
{
  PodEmitter *emitter = chunk->emitter;
  PodBuilder *builder = &emitter->builder;
  const PodJob *job = emitter->job;
  const bool every_microbatch = job->layout.zero_stage >= 2; /* gradients are kept sharded over dp */
  const bool is_last = (edge & POD_EDGE_LAST) != 0;
  uint32_t after = pass->last_compute;
  const double bytes = after != POD_NO_OP ? gradients->params * pod_dtype_bytes (job->reduce_dtype) : 0;

  if (bytes > 0 && gradients->fsdp_comm != POD_NO_COMM)
    {
      const double whole = emitter->is_synced_once ? gradients->params * pod_dtype_bytes (job->grad_dtype) : bytes;
      uint32_t op;

      if (!emitter->is_synced_once || edge & POD_EDGE_FIRST)
        pod_builder_alloc (builder, pass->first_compute, emitter->label_unsharded_grads, whole);
      if (emitter->is_synced_once && !is_last)
        return;
      op = pod_builder_collective (builder, POD_PHASE_BACKWARD, pass->unit->layer, pod_builder_join (builder, gradients->name, "gradients reduce-scatter"), POD_STREAM_REDUCE,
                                   gradients->fsdp_comm, POD_REDUCE_SCATTER, (uint64_t) bytes);
      pod_builder_depend (builder, op, after);
      pod_builder_free_buffer (builder, op, emitter->label_unsharded_grads, whole);
      after = op;
    }
  if (gradients->dp_comm != POD_NO_COMM && (is_last || every_microbatch))
    reduce_over_dp (chunk, gradients, pass, bytes, after, is_end);
}

static void
reduce_gradients (PodChunk *chunk, const PodUnitPlan *unit, const PodPass *pass, unsigned edge, bool is_end)
{
  const PodEmitter *emitter = chunk->emitter;
  const PodTrained trained = pod_unit_trained (emitter, unit);
  const Gradients dense = { .name = unit_name (unit),
                            .bucket = &chunk->buckets[0],
                            .params = trained.padded,
                            .fsdp_comm = pass->grad_scatter & emitter->fsdp_axes ? emitter->fsdp_comm : POD_NO_COMM,
                            .dp_comm = emitter->dp_comm,
                            .is_scattered = (pass->grad_scatter & emitter->grad_axes) != 0,
                            .fsdp = pod_layout_n_shards (&emitter->job->layout) };
  const Gradients experts = { .name = "expert",
                              .bucket = &chunk->buckets[1],
                              .params = trained.experts,
                              .fsdp_comm = emitter->experts.fsdp_comm,
                              .dp_comm = emitter->experts.dp_comm,
                              .is_scattered = emitter->job->layout.zero_stage >= 1,
                              .fsdp = emitter->experts.fsdp };

  reduce_over (chunk, &dense, pass, edge, is_end);
  reduce_over (chunk, &experts, pass, edge, is_end);
}

/* Two-way schedules hold each part twice: the copies add up their gradients, after those of their own data ranks. */
static void
reduce_copies (PodChunk *chunk, const GArray *passes)
{
  PodEmitter *emitter = chunk->emitter;
  const PodLayout *layout = &emitter->job->layout;
  const double shards = pod_layout_n_shards (layout) * (layout->zero_stage >= 1 ? (double) pod_layout_n_replicas (layout) : 1);
  const double expert_shards = emitter->experts.fsdp * (layout->zero_stage >= 1 ? emitter->experts.dp : 1);

  for (guint i = 0; chunk->copy_comm != POD_NO_COMM && i < passes->len; i++)
    {
      const PodPass *pass = &g_array_index (passes, PodPass, i);
      const PodTrained trained = pod_unit_trained (emitter, pass->unit);
      const double bytes = (trained.padded / shards + trained.experts / expert_shards) * pod_dtype_bytes (emitter->job->reduce_dtype);
      uint32_t op;

      if (bytes == 0 || pass->last_compute == POD_NO_OP)
        continue;
      op = pod_builder_collective (&emitter->builder, POD_PHASE_BACKWARD, pass->unit->layer, "gradients all-reduce over the two copies", POD_STREAM_REDUCE, chunk->copy_comm,
                                   POD_ALL_REDUCE, (uint64_t) bytes);
      pod_builder_depend (&emitter->builder, op, pass->last_compute);
    }
}

/* No gradient of this chunk comes after @last. */
static void
end_gradients (PodChunk *chunk, const GArray *passes, uint32_t last)
{
  reduce_copies (chunk, passes);
  free_all_gathered (chunk, last);
}

/* Of what is kept on the device, bytes that gradients of weights need later (@pass: part INPUT or WEIGHT). */
static double
kept_for_weights (const PodUnitPlan *unit, const PodPass *pass)
{
  return MIN (pass->kept_input_bytes, unit->saved_bytes - unit->offload_bytes);
}

/* Backward of one unit. Of what was kept, the gradients of weights may need some later (@part INPUT). */
static void
backward_unit (PodChunk *chunk, guint index, PodPart part, uint32_t value, Weights weights, uint32_t fetched, PodPass *out)
{
  PodBuilder *builder = &chunk->emitter->builder;
  const PodUnitPlan *unit = pod_chunk_unit (chunk, index);

  *out = pass_new (chunk, index, POD_PHASE_BACKWARD, value, weights);
  out->part = part;
  pod_pass_backward (out);
  pod_builder_depend (builder, out->first_compute, fetched);
  if (part != POD_PART_WEIGHT && chunk->emitter->job->has_flowing_gradients)
    {
      pod_builder_alloc (builder, out->first_compute, chunk->emitter->label_flowing, unit->flowing_bytes);
      pod_builder_free_buffer (builder, out->last_compute, chunk->emitter->label_flowing, unit->flowing_bytes);
    }
  pod_builder_free_buffer (builder, out->last_compute, chunk->emitter->label_offloaded, unit->offload_bytes);
  pod_builder_free_buffer (builder, out->last_compute, unit->saved_label, unit->saved_bytes - unit->offload_bytes - kept_for_weights (unit, out));
  free_gathered (chunk, unit, out);
}

/* Units that are run again together, up to the one at @index, which comes last in the model and first in backward; it has @weights and what
 * was @fetched for it. Returns: the op that backward waits for. */
static uint32_t
run_again (PodChunk *chunk, guint index, uint32_t value, Weights weights, uint32_t fetched, const GArray *last_of, guint position)
{
  PodBuilder *builder = &chunk->emitter->builder;

  for (guint i = pod_chunk_unit (chunk, index)->group_first; i <= index; i++)
    {
      const PodUnitPlan *unit = pod_chunk_unit (chunk, i);
      Weights own = i == index ? weights : gather_weights (chunk, unit, POD_PHASE_RECOMPUTE, 0, last_of, position);
      PodPass again = pass_new (chunk, i, POD_PHASE_RECOMPUTE, value, own);

      pod_pass_forward (&again);
      if (i == index)
        pod_builder_depend (builder, again.first_compute, fetched);
      else
        free_gathered (chunk, unit, &again);
      pod_builder_alloc (builder, again.first_compute, unit->saved_label, unit->again_bytes);
      value = again.value;
    }
  return value;
}

static void
reduce_all (PodChunk *chunk, const GArray *passes, uint32_t after, unsigned edge)
{
  for (guint i = 0; i < passes->len; i++)
    {
      PodPass pass = g_array_index (passes, PodPass, i);

      pass.last_compute = after;
      reduce_gradients (chunk, pass.unit, &pass, edge, i + 1 == passes->len);
    }
}

/* Where a framework's matmuls do not add to the gradients that are kept (DeepSpeed's), a microbatch's stand whole, in the activations' dtype,
 * until a pass of their own adds them. Returns: that pass, @after where there is none. */
static uint32_t
accumulate_apart (PodChunk *chunk, const GArray *passes, uint32_t after)
{
  PodEmitter *emitter = chunk->emitter;
  PodBuilder *builder = &emitter->builder;
  const double own = emitter->element_bytes;
  const double kept = pod_dtype_bytes (emitter->job->grad_dtype);
  double params = 0;
  PodKernel kernel;
  uint32_t op;

  if (!emitter->job->accumulates_apart || !emitter->keeps_grads_whole || after == POD_NO_OP)
    return after;
  for (guint i = 0; i < passes->len; i++)
    {
      const PodPass *pass = &g_array_index (passes, PodPass, i);
      const PodTrained trained = pod_unit_trained (emitter, pass->unit);

      if (pass->first_compute == POD_NO_OP)
        continue;
      params += trained.padded + trained.experts;
      pod_builder_alloc (builder, pass->first_compute, emitter->label_unsharded_grads, (trained.padded + trained.experts) * own);
    }
  kernel = pod_kernel_vector (params, params * (own + kept), params * kept);
  op = pod_builder_compute (builder, POD_PHASE_BACKWARD, -1, "gradients added", false, &kernel);
  pod_builder_depend (builder, op, after);
  for (guint i = 0; i < passes->len; i++)
    {
      const PodPass *pass = &g_array_index (passes, PodPass, i);
      const PodTrained trained = pod_unit_trained (emitter, pass->unit);

      if (pass->first_compute != POD_NO_OP)
        pod_builder_free_buffer (builder, kept == own ? pass->last_compute : op, emitter->label_unsharded_grads, (trained.padded + trained.experts) * own);
    }
  return op;
}

/* One unit of a backward block, and what is run again for it. */
static void
backward_of (PodChunk *chunk, guint index, PodPart part, unsigned edge, uint32_t value, const GArray *last_of, PodPass *out)
{
  PodEmitter *emitter = chunk->emitter;
  const guint position = last_of->len;
  const PodUnitPlan *unit = pod_chunk_unit (chunk, index);
  const Weights weights = unit->kind == POD_UNIT_EMBEDDING ? no_weights : gather_weights (chunk, unit, POD_PHASE_BACKWARD, edge, last_of, position);
  const uint32_t fetched = fetch_from_host (chunk, unit, last_of, position);

  if (pod_chunk_is_run_again (chunk, index))
    value = run_again (chunk, index, value, weights, fetched, last_of, position);
  backward_unit (chunk, index, part, value, weights, fetched, out);
  if (position == 0 && chunk->recv_grad == POD_NO_COMM) /* of the loss (whole once its all-reduce is), or of a part on this rank */
    wait_for_near (chunk, out);
  if (position == 0)
    wait_for_sends (chunk, out);
  if (position == 0 && emitter->job->keeps_stage_outputs && chunk->send_act != POD_NO_COMM)
    pod_builder_free_buffer (&emitter->builder, out->last_compute, emitter->label_stage_outputs, residual_bytes (emitter));
  if (part == POD_PART_INPUT && unit->kind == POD_UNIT_EMBEDDING && position > 0) /* what the table's gradient is made of */
    pod_builder_alloc (&emitter->builder, last_of_all (last_of), emitter->label_kept_grads, residual_bytes (emitter));
  if (part == POD_PART_BOTH && emitter->job->is_dp_overlapped)
    reduce_gradients (chunk, unit, out, edge, index == 0);
}

static void
backward_ops (PodChunk *chunk, PodPart part, unsigned edge)
{
  PodEmitter *emitter = chunk->emitter;
  g_autoptr (GArray) last_of = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autoptr (GArray) passes = g_array_new (FALSE, FALSE, sizeof (PodPass));
  const bool is_reducing = part == POD_PART_BOTH;
  uint32_t after;
  uint32_t value = receive (chunk, chunk->recv_grad, chunk->is_back ? POD_STREAM_RECV_GRAD_BACK : POD_STREAM_RECV_GRAD, POD_PHASE_BACKWARD, "receive gradients");
  PodStanding before = { 0 };
  PodPass pass = { 0 };

  for (guint index = chunk->units->len; index-- > 0;)
    {
      const PodStanding now = pod_chunk_stand (chunk, value);

      if (pod_chunk_is_repeated (chunk, index, -1, &before, &now, last_of))
        pod_chunk_repeat (chunk, index, &before, &pass);
      else
        backward_of (chunk, index, part, edge, value, last_of, &pass);
      before = now;
      value = pass.value;
      g_array_append_val (passes, pass);
      g_array_append_val (last_of, pass.last_compute);
    }
  send (chunk, chunk->send_grad, chunk->is_back ? POD_STREAM_SEND_GRAD_BACK : POD_STREAM_SEND_GRAD, POD_PHASE_BACKWARD, "send gradients", value, last_of_all (last_of));
  if (is_reducing)
    after = accumulate_apart (chunk, passes, last_of_all (last_of));
  if (is_reducing && !emitter->job->is_dp_overlapped)
    reduce_all (chunk, passes, after, edge);
  if (is_reducing && edge & POD_EDGE_LAST)
    end_gradients (chunk, passes, last_of_all (last_of));
}

/* The weight gradients that an earlier block left: what they need was kept. */
static void
weight_ops (PodChunk *chunk, unsigned edge)
{
  PodEmitter *emitter = chunk->emitter;
  g_autoptr (GArray) passes = g_array_new (FALSE, FALSE, sizeof (PodPass));
  uint32_t last = POD_NO_OP;

  for (guint index = chunk->units->len; index-- > 0;)
    {
      const PodUnitPlan *unit = pod_chunk_unit (chunk, index);
      PodPass pass = pass_new (chunk, index, POD_PHASE_BACKWARD, POD_NO_OP, no_weights);

      pass.part = POD_PART_WEIGHT;
      pod_pass_backward (&pass);
      pod_builder_free_buffer (&emitter->builder, pass.last_compute, unit->saved_label, kept_for_weights (unit, &pass));
      if (unit->kind == POD_UNIT_EMBEDDING && chunk->units->len > 1)
        pod_builder_free_buffer (&emitter->builder, pass.last_compute, emitter->label_kept_grads, residual_bytes (emitter));
      if (emitter->job->is_dp_overlapped)
        reduce_gradients (chunk, unit, &pass, edge, index == 0);
      last = pass.last_compute != POD_NO_OP ? pass.last_compute : last;
      g_array_append_val (passes, pass);
    }
  last = accumulate_apart (chunk, passes, last);
  if (!emitter->job->is_dp_overlapped)
    reduce_all (chunk, passes, last, edge);
  if (edge & POD_EDGE_LAST)
    end_gradients (chunk, passes, last);
}

/* Compute ops of the unit that ends a forward block: a gather that prefetches into the next block may start when that unit
 * does. Emitted into a block that is never closed. */
static int32_t
count_tail_ops (PodChunk *chunk)
{
  PodBuilder *builder = &chunk->emitter->builder;
  PodPass pass = pass_new (chunk, chunk->units->len - 1, POD_PHASE_FORWARD, POD_NO_OP, no_weights);
  int32_t n = 0;

  pod_builder_open (builder, "tail");
  pod_pass_forward (&pass);
  for (guint i = 0; i < builder->ops->len; i++)
    n += g_array_index (builder->ops, PodOp, i).kind == POD_OP_COMPUTE;
  return n;
}

void
pod_chunk_init (PodChunk *chunk, const PodChunk *alike)
{
  for (unsigned k = 0; k < POD_N_SLOTS; k++)
    for (unsigned edge = 0; edge < POD_N_EDGES; edge++)
      chunk->blocks[k][edge] = POD_NO_BLOCK;
  if (chunk->units->len > 0)
    chunk->n_tail_ops = alike != NULL ? alike->n_tail_ops : count_tail_ops (chunk);
}

static char *
block_name (const PodChunk *chunk, PodSlotKind slot, unsigned edge)
{
  return g_strconcat (chunk->name, " ", edge_names[edge], slot_names[slot], NULL);
}

uint32_t
pod_chunk_block_like (const PodChunk *chunk, const PodChunk *like, uint32_t block, PodSlotKind slot, unsigned edge)
{
  const PodOpTurn turn = { .n_layers = chunk->units->len > 0 ? pod_chunk_unit (chunk, 0)->layer - pod_chunk_unit (like, 0)->layer : 0,
                           .chunk = chunk->index,
                           .comms = { { like->recv_act, chunk->recv_act },
                                      { like->send_act, chunk->send_act },
                                      { like->recv_grad, chunk->recv_grad },
                                      { like->send_grad, chunk->send_grad } } };
  g_autofree char *name = block_name (chunk, slot, edge);

  return pod_builder_copy_block (&chunk->emitter->builder, block, name, &turn);
}

uint32_t
pod_chunk_block (PodChunk *chunk, PodSlotKind slot, unsigned edge)
{
  uint32_t *block = &chunk->blocks[slot][edge];
  PodBuilder *builder = &chunk->emitter->builder;
  g_autofree char *name = NULL;

  if (*block != POD_NO_BLOCK)
    return *block;
  name = block_name (chunk, slot, edge);
  pod_builder_open (builder, name);
  pod_builder_part (builder, chunk->index, (uint8_t) slot);
  switch (slot)
    {
    case POD_SLOT_FORWARD:
      forward_ops (chunk, edge);
      break;
    case POD_SLOT_BACKWARD:
      backward_ops (chunk, POD_PART_BOTH, edge);
      break;
    case POD_SLOT_INPUT:
      backward_ops (chunk, POD_PART_INPUT, edge);
      break;
    default:
      weight_ops (chunk, edge);
    }
  *block = pod_builder_close (builder);
  return *block;
}

uint32_t
pod_chunk_pair (PodChunk *forward, unsigned forward_edge, PodChunk *backward, unsigned backward_edge)
{
  PodBuilder *builder = &forward->emitter->builder;
  g_autofree char *name = g_strdup_printf ("%s %sforward, %s %sbackward", forward->name, edge_names[forward_edge], backward->name, edge_names[backward_edge]);
  uint32_t second;

  pod_builder_open (builder, name);
  pod_builder_part (builder, forward->index, POD_SLOT_FORWARD);
  forward_ops (forward, forward_edge);
  second = builder->ops->len;
  pod_builder_part (builder, backward->index, POD_SLOT_BACKWARD);
  backward_ops (backward, POD_PART_BOTH, backward_edge);
  pod_builder_weave (builder, second);
  return pod_builder_close (builder);
}
