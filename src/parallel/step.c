#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "parallel/chunk-private.h"
#include "parallel/moe-private.h"
#include "parallel/optimizer-private.h"

/* A job as a program: what each rank of the pipeline holds and does in which order. */

/* A rank of the pipeline under construction. */
typedef struct
{
  PodEmitter *emitter;
  uint32_t rank;
  uint32_t n_chunks;
  PodChunk *chunks;
  PodChunk **first_alike; /* by chunk, the first that is like it, itself where there is none before it */
  uint32_t tied_comm; /* pair of first and last stage that both hold the embedding's table: tied, or for mtp */
} Stage;

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
  out->optimizer = pod_job_state_bytes (job, true) + (job->has_master ? 4 : 0);
}

PodDtype
pod_job_activation_dtype (const PodJob *job)
{
  return job->is_quantised ? POD_DTYPE_BF16 : job->dtype;
}

/* K and V of one token over all layers on one rank of tp, as attention multiplies them. */
static double
kv_bytes_per_token (const PodJob *job)
{
  const PodModel *model = job->model;
  double elements = 0;

  for (uint64_t i = 0; i < model->n_layers; i++)
    {
      const PodLayerKind *kind = &model->kinds[model->layer_kind[i]];

      elements += (double) MAX (kind->kv_heads / job->layout.degree[POD_AXIS_TP], 1) * (double) (kind->head_dim + kind->v_head_dim);
    }
  return elements * pod_dtype_bytes (pod_job_activation_dtype (job));
}

void
pod_job_traffic (const PodJob *job, double peak_flops_per_s, PodTraffic *out)
{
  const PodModel *model = job->model;
  const uint32_t *degree = job->layout.degree;
  const double experts_over = (double) job->layout.ep * job->layout.etp;
  PodParams params;
  double tokens = (double) job->batch.global_batch * (double) job->batch.seq_len / (degree[POD_AXIS_DP] * (double) degree[POD_AXIS_FSDP] * degree[POD_AXIS_CP]);
  double activations = tokens * (double) model->hidden * pod_dtype_bytes (pod_job_activation_dtype (job));
  double weights;

  pod_model_params (model, &params);
  weights = ((double) (params.total - params.experts) / degree[POD_AXIS_TP] + (double) params.experts / experts_over) / degree[POD_AXIS_PP];
  *out = (PodTraffic){ .compute_s = 6 * tokens * (double) params.active_with_embedding / degree[POD_AXIS_TP] / degree[POD_AXIS_PP] / peak_flops_per_s };
  if (degree[POD_AXIS_TP] > 1)
    out->axis_bytes[POD_AXIS_TP] = 9 * activations * (double) model->n_layers / degree[POD_AXIS_PP];
  if (degree[POD_AXIS_FSDP] > 1) /* over cp alone: few ranks, next to each other anyway */
    out->axis_bytes[POD_AXIS_FSDP] = 3 * weights * pod_dtype_bytes (job->gather_dtype) * (double) pod_job_n_microbatches (job);
  if (degree[POD_AXIS_DP] > 1)
    out->axis_bytes[POD_AXIS_DP] = 2 * weights / degree[POD_AXIS_FSDP] * pod_dtype_bytes (job->reduce_dtype);
  if (job->layout.ep > 1)
    out->ep_bytes = pod_moe_step_bytes (job);
  if (degree[POD_AXIS_CP] > 1) /* K and V forward, again with their gradients backward */
    out->axis_bytes[POD_AXIS_CP] = 3 * kv_bytes_per_token (job) * tokens * (double) (degree[POD_AXIS_CP] - 1) / degree[POD_AXIS_PP];
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

/* Ranks that differ in any of @axes: the time is @axis's, or that of the one axis there is. */
static uint32_t
add_axes (PodEmitter *emitter, const PodMesh *mesh, unsigned axes, PodAxis axis)
{
  GString *name;
  uint32_t comm;

  if (axes == 0)
    return POD_NO_COMM;
  name = g_string_new (NULL);
  for (unsigned a = 0; a < POD_N_AXES; a++)
    if (axes & POD_MASK (a))
      g_string_append_printf (name, "%s%s", name->len > 0 ? " x " : "", pod_axis_name (a));
  for (unsigned a = 0; a < POD_N_AXES && !(axes & POD_MASK (axis)); a++)
    if (axes & POD_MASK (a))
      axis = a;
  comm = pod_builder_add_communicator (&emitter->builder, pod_mesh_communicator (mesh, axes, axis, name->str));
  g_string_free (name, TRUE);
  return comm;
}

static unsigned
mask_of (const PodLayout *layout, PodAxis axis)
{
  return layout->degree[axis] > 1 ? POD_MASK (axis) : 0;
}

static bool
emitter_init (PodEmitter *emitter, const PodJob *job, const PodMesh *mesh, PodProgram *program, GError **error)
{
  const PodLayout *layout = &job->layout;
  PodBuilder *builder = &emitter->builder;

  *emitter = (PodEmitter){ .job = job };
  pod_builder_init (builder, program);
  builder->dtypes = (PodWireDtypes){ pod_job_activation_dtype (job), job->param_dtype, job->reduce_dtype };
  emitter->tp_comm = add_axis (emitter, mesh, POD_AXIS_TP);
  emitter->fsdp_comm = add_axes (emitter, mesh, pod_layout_shard_axes (layout), POD_AXIS_FSDP);
  emitter->dp_comm = add_axes (emitter, mesh, pod_layout_replica_axes (layout), POD_AXIS_DP);
  emitter->norm_comm = job->clips_gradients && !program->steps_overlap && layout->degree[POD_AXIS_PP] > 1
                           ? pod_builder_add_communicator (builder, pod_mesh_communicator (mesh, POD_MASK (POD_AXIS_PP), POD_AXIS_PP, "pp"))
                           : POD_NO_COMM;
  emitter->tp_axes = mask_of (layout, POD_AXIS_TP);
  emitter->fsdp_axes = pod_layout_shard_axes (layout);
  emitter->data_axes = emitter->fsdp_axes | pod_layout_replica_axes (layout);
  emitter->token_axes = emitter->data_axes | (layout->is_sequence_parallel ? emitter->tp_axes : 0);
  emitter->grad_axes = layout->zero_stage >= 1 ? pod_layout_replica_axes (layout) : 0;
  emitter->tokens = (double) job->batch.micro_batch * (double) job->batch.seq_len / layout->degree[POD_AXIS_CP];
  emitter->residual_tokens = emitter->tokens / (layout->is_sequence_parallel ? layout->degree[POD_AXIS_TP] : 1);
  emitter->is_synced_once = job->is_synced_once && pod_layout_is_sharded (layout);
  emitter->keeps_grads_whole = emitter->is_synced_once || (!pod_layout_is_sharded (layout) && layout->zero_stage < 2);
  emitter->accumulates = emitter->keeps_grads_whole && !job->accumulates_apart && pod_job_n_microbatches (job) > 1;
  emitter->shards_outputs = mesh->topology->chip->family != POD_FAMILY_TPU;
  emitter->element_bytes = pod_dtype_bytes (pod_job_activation_dtype (job));
  emitter->shares_table = layout->degree[POD_AXIS_PP] == 1 || job->schedule->is_v || job->schedule->is_two_way;
  emitter->label_params = pod_builder_label (builder, "weights", POD_USE_PARAMS);
  emitter->label_grads = pod_builder_label (builder, "gradients", POD_USE_GRADS);
  emitter->label_optimizer = pod_builder_label (builder, "optimizer state", POD_USE_OPTIMIZER);
  emitter->label_saved = pod_builder_label (builder, "saved activations", POD_USE_ACTIVATIONS);
  emitter->label_flowing = pod_builder_label (builder, "gradients of activations", POD_USE_WORKSPACE);
  emitter->label_stage_outputs = pod_builder_label (builder, "outputs of the stage", POD_USE_ACTIVATIONS);
  emitter->label_logits = pod_builder_label (builder, "logits", POD_USE_ACTIVATIONS);
  emitter->label_gathered = pod_builder_label (builder, "gathered weights", POD_USE_WORKSPACE);
  emitter->label_gathered_tokens = pod_builder_label (builder, "activations gathered over tp", POD_USE_WORKSPACE);
  emitter->label_offloaded = pod_builder_label (builder, "activations on their way to or from the host", POD_USE_ACTIVATIONS);
  emitter->label_kept_grads = pod_builder_label (builder, "gradients kept for weights", POD_USE_ACTIVATIONS);
  emitter->label_unsharded_grads = pod_builder_label (builder, "gradients before reduction", POD_USE_GRADS);
  emitter->label_routed = pod_builder_label (builder, "tokens on their way to experts and back", POD_USE_WORKSPACE);
  pod_attention_init (emitter, mesh);
  return pod_moe_init (emitter, mesh, error);
}

static const PodUnitPlan *
unit_at (const PodChunk *chunk, guint index)
{
  return &g_array_index (chunk->units, PodUnitPlan, index);
}

/* What is there all the time: weights, gradients where they are kept from microbatch to microbatch, optimizer state. */
static void
set_static_bytes (const Stage *stage, PodProgramClass *class)
{
  const PodEmitter *emitter = stage->emitter;
  const PodLayout *layout = &emitter->job->layout;
  const double fsdp = pod_layout_n_shards (layout);
  const double dp = pod_layout_n_replicas (layout);
  PodBytesPerParam bytes;
  double held = 0;    /* weights */
  double params = 0;  /* trained, as experts are */
  double state = 0;
  double experts = 0;

  pod_job_bytes_per_param (emitter->job, &bytes);
  for (uint32_t c = 0; c < stage->n_chunks; c++)
    for (guint i = 0; i < stage->chunks[c].units->len; i++)
      {
        const PodUnitPlan *unit = unit_at (&stage->chunks[c], i);
        const PodTrained trained = pod_unit_trained (emitter, unit);

        held += unit->padded_params / fsdp + unit->adapter_params / fsdp + unit->expert_params / emitter->experts.fsdp;
        params += trained.padded;
        state += (trained.padded - trained.copied_table) * (pod_job_state_bytes (emitter->job, unit->shape != NULL) + (emitter->job->has_master ? 4 : 0));
        state += trained.copied_table * (pod_job_state_bytes (emitter->job, false) + (emitter->job->has_master ? 4 : 0));
        experts += trained.experts / emitter->experts.fsdp;
      }
  class->static_bytes[emitter->label_params] = held * bytes.params;
  class->static_bytes[emitter->label_grads] = (params / fsdp / (layout->zero_stage >= 2 ? dp : 1) + experts / (layout->zero_stage >= 2 ? emitter->experts.dp : 1)) * bytes.grads;
  if (!emitter->job->offloads_optimizer)
    class->static_bytes[emitter->label_optimizer] = state / fsdp / (layout->zero_stage >= 1 ? dp : 1) + experts / (layout->zero_stage >= 1 ? emitter->experts.dp : 1) * bytes.optimizer;
}

/* ZeRO: each rank has updated its part of the weights. */
static void
gather_updated (PodEmitter *emitter, const char *name, uint32_t comm, double bytes, uint32_t update)
{
  uint32_t op;

  if (comm == POD_NO_COMM || bytes == 0)
    return;
  op = pod_builder_collective (&emitter->builder, POD_PHASE_OPTIMIZER, -1, name, POD_STREAM_REDUCE, comm, POD_ALL_GATHER, (uint64_t) bytes);
  pod_builder_depend (&emitter->builder, op, update);
}

/* What remains when all gradients are there: sums that tensor parallelism and tied tables leave, the update, ZeRO's gather. */
static uint32_t
optimizer_block (Stage *stage)
{
  PodEmitter *emitter = stage->emitter;
  PodBuilder *builder = &emitter->builder;
  const PodJob *job = emitter->job;
  const PodLayout *layout = &job->layout;
  const double fsdp = pod_layout_n_shards (layout);
  const double dp = layout->zero_stage >= 1 ? pod_layout_n_replicas (layout) : 1;
  g_autofree char *name = g_strdup_printf ("stage %u optimizer", stage->rank);
  g_autoptr (GArray) units = g_array_new (FALSE, FALSE, sizeof (PodUnitPlan)); /* of all chunks */
  double params = 0;
  double matrices = 0;
  double experts = 0;        /* after their own fsdp */
  double updated_experts;    /* by this rank */
  double replicated = 0;
  double grad_bytes = pod_dtype_bytes (job->reduce_dtype);
  uint32_t op;
  uint32_t copies;
  uint32_t update;

  for (uint32_t c = 0; c < stage->n_chunks; c++)
    for (guint i = 0; i < stage->chunks[c].units->len; i++)
      {
        const PodTrained trained = pod_unit_trained (emitter, unit_at (&stage->chunks[c], i));

        params += trained.params;
        experts += trained.experts / emitter->experts.fsdp;
        matrices += trained.matrices;
        replicated += trained.replicated;
        g_array_append_val (units, *unit_at (&stage->chunks[c], i));
      }
  pod_builder_open (builder, name);
  op = POD_NO_OP;
  if (layout->is_sequence_parallel && emitter->tp_comm != POD_NO_COMM && replicated > 0)
    {
      op = pod_builder_collective (builder, POD_PHASE_OPTIMIZER, -1, "norm gradients all-reduce", POD_STREAM_TP, emitter->tp_comm, POD_ALL_REDUCE,
                                   (uint64_t) (replicated * grad_bytes / fsdp));
      pod_builder_depend_before (builder, op, POD_STREAM_COMPUTE, 0);
    }
  copies = job->lora_rank > 0 ? POD_NO_OP : pod_attention_reduce_copies (emitter, units, grad_bytes / fsdp);
  if (copies != POD_NO_OP) /* on tp's stream: behind the norms' */
    op = copies;
  if (stage->tied_comm != POD_NO_COMM && job->lora_rank == 0)
    {
      uint32_t tied = pod_builder_collective (builder, POD_PHASE_OPTIMIZER, -1, "tied embedding gradients all-reduce", POD_STREAM_REDUCE, stage->tied_comm, POD_ALL_REDUCE,
                                              (uint64_t) ((double) pod_job_padded_vocab (job) * (double) job->model->hidden / layout->degree[POD_AXIS_TP] * grad_bytes / fsdp));

      pod_builder_depend_before (builder, tied, POD_STREAM_COMPUTE, 0);
      pod_builder_depend (builder, tied, op);
      op = tied;
    }
  updated_experts = experts / (layout->zero_stage >= 1 ? emitter->experts.dp : 1);
  op = pod_optimizer_clip (emitter, params / fsdp / dp + updated_experts, op);
  update = pod_optimizer_update (emitter, &(PodUpdate){ .params = params / fsdp / dp, .matrices = matrices / fsdp / dp, .experts = updated_experts }, op);
  if (layout->zero_stage >= 1)
    {
      gather_updated (emitter, "updated weights all-gather", emitter->dp_comm, params / fsdp * pod_dtype_bytes (job->gather_dtype), update);
      gather_updated (emitter, "updated expert weights all-gather", emitter->experts.dp_comm, experts * pod_dtype_bytes (job->gather_dtype), update);
    }
  return pod_builder_close (builder);
}

/* Where each slot stands among those of its chunk, bits of POD_EDGE. The first is nothing of its own unless weights are gathered once. */
static uint8_t *
find_edges (const GArray *slots, uint32_t n_chunks, bool is_synced_once)
{
  uint8_t *edges = g_new0 (uint8_t, slots->len);
  g_autofree bool *has_gone = g_new0 (bool, 2 * n_chunks); /* a forward, gradients of weights */
  g_autofree uint32_t *last = g_new (uint32_t, n_chunks);

  memset (last, 0xff, n_chunks * sizeof *last);
  for (guint i = 0; i < slots->len; i++)
    {
      const PodSlot *slot = &g_array_index (slots, PodSlot, i);
      const bool is_gradient = slot->kind != POD_SLOT_FORWARD;
      bool *gone = &has_gone[2 * slot->chunk + is_gradient];

      if (slot->kind == POD_SLOT_INPUT)
        continue;
      if (is_synced_once && !*gone)
        edges[i] |= POD_EDGE_FIRST;
      *gone = true;
      if (is_gradient)
        last[slot->chunk] = i;
    }
  for (uint32_t c = 0; c < n_chunks; c++)
    if (last[c] != UINT32_MAX)
      edges[last[c]] |= POD_EDGE_LAST;
  return edges;
}

/* The block of a chunk that is like an earlier one is that one's, at its own layers and for its own neighbours; in an outline it has the very ops. */
static uint32_t
block_of (Stage *stage, uint32_t c, PodSlotKind kind, unsigned edge)
{
  PodChunk *chunk = &stage->chunks[c];
  PodProgram *program = stage->emitter->builder.program;
  uint32_t *block = &chunk->blocks[kind][edge];
  const bool is_outline = program->links != NULL;
  uint32_t first;

  if (*block != POD_NO_BLOCK || stage->first_alike[c] == chunk || (!is_outline && stage->first_alike[c]->blocks[kind][edge] == POD_NO_BLOCK))
    return pod_chunk_block (chunk, kind, edge);
  first = pod_chunk_block (stage->first_alike[c], kind, edge);
  if (!is_outline)
    return *block = pod_chunk_block_like (chunk, stage->first_alike[c], first, kind, edge);
  *block = program->blocks->len;
  g_array_set_size (program->blocks, *block + 1);
  g_array_index (program->blocks, PodOpBlock, *block) = g_array_index (program->blocks, PodOpBlock, first);
  return *block;
}

/* Whom the transfers of a forward of @forward and a backward of @backward reach. */
static void
set_links (PodProgram *program, uint32_t block, const PodChunk *forward, const PodChunk *backward)
{
  if (program->links == NULL)
    return;
  g_array_set_size (program->links, MAX (program->links->len, block + 1));
  g_array_index (program->links, PodOpLinks, block) = (PodOpLinks){ forward->recv_act, forward->send_act, backward->recv_grad, backward->send_grad };
}

static void
add_steps (Stage *stage, const GArray *slots, GArray *steps)
{
  PodProgram *program = stage->emitter->builder.program;
  const uint32_t n = stage->n_chunks;
  g_autofree uint8_t *edges = find_edges (slots, n, stage->emitter->is_synced_once);
  g_autofree uint32_t *pairs = g_new (uint32_t, n * n * POD_N_EDGES * POD_N_EDGES); /* made when first needed */

  memset (pairs, 0xff, n * n * POD_N_EDGES * POD_N_EDGES * sizeof *pairs);
  for (guint i = 0; i < slots->len; i++)
    {
      const PodSlot *slot = &g_array_index (slots, PodSlot, i);
      PodChunk *chunk = &stage->chunks[slot->chunk];
      PodOpStep step = { .microbatch = (int32_t) slot->microbatch };

      if (slot->is_paired)
        {
          const PodSlot *partner = slot + 1;
          const unsigned edge = edges[i++];
          uint32_t *pair = &pairs[((uint32_t) slot->chunk * n + partner->chunk) * POD_N_EDGES * POD_N_EDGES + edge * POD_N_EDGES + edges[i]];

          if (*pair == POD_NO_BLOCK)
            *pair = pod_chunk_pair (chunk, edge, &stage->chunks[partner->chunk], edges[i]);
          step.block = *pair;
          set_links (program, step.block, chunk, &stage->chunks[partner->chunk]);
        }
      else
        {
          step.block = block_of (stage, slot->chunk, slot->kind, edges[i]);
          set_links (program, step.block, chunk, chunk);
        }
      g_array_append_val (steps, step);
    }
}

static void
build_stage (Stage *stage, const GArray *slots, PodProgram *program)
{
  PodProgramClass *class = g_new0 (PodProgramClass, 1);
  PodOpStep step = { .microbatch = -1 };

  class->name = g_strdup_printf ("stage %u", stage->rank);
  class->steps = g_array_new (FALSE, FALSE, sizeof (PodOpStep));
  set_static_bytes (stage, class);
  add_steps (stage, slots, class->steps);
  step.block = optimizer_block (stage);
  g_array_append_val (class->steps, step);
  g_ptr_array_add (program->classes, class);
}

/* The pipeline's transfers: a communicator for each pair of neighbours and direction of flow. */
typedef struct
{
  PodEmitter *emitter;
  const PodMesh *mesh;
  uint32_t *comm; /* ranks x ranks x (activations, gradients) x (up, back), POD_NO_COMM until needed */
} Edges;

static uint32_t
edge (Edges *edges, uint32_t from, uint32_t to, unsigned is_gradient, unsigned is_back)
{
  uint32_t *comm = &edges->comm[(((size_t) from * edges->mesh->layout.degree[POD_AXIS_PP] + to) * 2 + is_gradient) * 2 + is_back];

  if (from == to)
    return POD_NO_COMM;
  if (*comm == POD_NO_COMM)
    *comm = pod_builder_add_communicator (&edges->emitter->builder, pod_mesh_edge (edges->mesh, from, to));
  return *comm;
}

static char *
chunk_name (const Stage *stage, uint32_t c)
{
  return stage->n_chunks == 1 ? g_strdup_printf ("stage %u", stage->rank) : g_strdup_printf ("stage %u chunk %u", stage->rank, c);
}

static Stage *
stages_new (PodEmitter *emitter)
{
  const PodSchedule *schedule = emitter->job->schedule;
  Stage *stages = g_new0 (Stage, schedule->n_ranks);

  for (uint32_t rank = 0; rank < schedule->n_ranks; rank++)
    {
      stages[rank] = (Stage){ .emitter = emitter, .rank = rank, .n_chunks = schedule->n_chunks, .tied_comm = POD_NO_COMM };
      stages[rank].chunks = g_new0 (PodChunk, schedule->n_chunks);
      for (uint32_t c = 0; c < schedule->n_chunks; c++)
        stages[rank].chunks[c] = (PodChunk){ .emitter = emitter,
                                             .name = chunk_name (&stages[rank], c),
                                             .index = (uint8_t) c,
                                             .units = pod_part_units (emitter, pod_schedule_part (schedule, rank, c)),
                                             .recv_act = POD_NO_COMM,
                                             .send_act = POD_NO_COMM,
                                             .recv_grad = POD_NO_COMM,
                                             .send_grad = POD_NO_COMM,
                                             .copy_comm = POD_NO_COMM,
                                             .is_back = pod_schedule_is_back (schedule, c) };
    }
  return stages;
}

static void
stages_free (Stage *stages, uint32_t n)
{
  for (uint32_t rank = 0; rank < n; rank++)
    {
      for (uint32_t c = 0; c < stages[rank].n_chunks; c++)
        {
          g_free (stages[rank].chunks[c].name);
          g_array_unref (stages[rank].chunks[c].units);
        }
      g_free (stages[rank].chunks);
      g_free (stages[rank].first_alike);
    }
  g_free (stages);
}

/* Who hands activations to whom. */
static void
connect_stages (Stage *stages, const PodMesh *mesh)
{
  PodEmitter *emitter = stages->emitter;
  const PodSchedule *schedule = emitter->job->schedule;
  const uint32_t p = schedule->n_ranks;
  g_autofree uint32_t *comm = g_new (uint32_t, 4 * (size_t) p * p);
  Edges edges = { .emitter = emitter, .mesh = mesh, .comm = comm };

  memset (comm, 0xff, 4 * (size_t) p * p * sizeof *comm);
  for (uint32_t rank = 0; rank < p; rank++)
    for (uint32_t c = 0; c < schedule->n_chunks; c++)
      {
        PodChunk *chunk = &stages[rank].chunks[c];
        uint32_t next_rank;
        uint32_t next_chunk;

        if (schedule->is_two_way && rank < p - 1 - rank)
          {
            chunk->copy_comm = pod_builder_add_communicator (&emitter->builder, pod_mesh_edge (mesh, rank, p - 1 - rank));
            stages[p - 1 - rank].chunks[1 - c].copy_comm = chunk->copy_comm;
          }
        if (pod_schedule_next (schedule, rank, c, &next_rank, &next_chunk))
          {
            PodChunk *next = &stages[next_rank].chunks[next_chunk];

            chunk->send_act = next->recv_act = edge (&edges, rank, next_rank, 0, chunk->is_back);
            chunk->recv_grad = next->send_grad = edge (&edges, next_rank, rank, 1, chunk->is_back);
            next->has_near_input = rank == next_rank;
          }
      }
  if (p > 1 && (emitter->job->model->is_tied || emitter->job->model->n_mtp > 0) && emitter->job->model->vocab > 0 && !emitter->shares_table)
    stages[0].tied_comm = stages[p - 1].tied_comm = pod_builder_add_communicator (&emitter->builder, pod_mesh_edge (mesh, 0, p - 1));
}

static bool
chunks_are_alike (const PodChunk *a, const PodChunk *b)
{
  bool is_alike = a->units->len == b->units->len && a->is_back == b->is_back && a->has_near_input == b->has_near_input
                  && a->copy_comm == POD_NO_COMM && b->copy_comm == POD_NO_COMM && (a->recv_act == POD_NO_COMM) == (b->recv_act == POD_NO_COMM)
                  && (a->send_act == POD_NO_COMM) == (b->send_act == POD_NO_COMM) && (a->recv_grad == POD_NO_COMM) == (b->recv_grad == POD_NO_COMM)
                  && (a->send_grad == POD_NO_COMM) == (b->send_grad == POD_NO_COMM);

  for (guint i = 0; i < a->units->len && is_alike; i++)
    is_alike = pod_units_are_alike (unit_at (a, i), unit_at (b, i)) && unit_at (a, i)->group_first == unit_at (b, i)->group_first;
  return is_alike;
}

/* @different: (element-type PodChunk) those before it of which none is like another */
static PodChunk *
find_alike (PodChunk *chunk, GPtrArray *different)
{
  for (guint i = 0; i < different->len; i++)
    if (chunks_are_alike (g_ptr_array_index (different, i), chunk))
      return g_ptr_array_index (different, i);
  g_ptr_array_add (different, chunk);
  return chunk;
}

static void
init_chunks (Stage *stage, GPtrArray *different)
{
  stage->first_alike = g_new (PodChunk *, stage->n_chunks);
  for (uint32_t c = 0; c < stage->n_chunks; c++)
    {
      PodChunk *alike = find_alike (&stage->chunks[c], different);

      pod_chunk_init (&stage->chunks[c], alike != &stage->chunks[c] ? alike : NULL);
      stage->first_alike[c] = alike;
    }
}

static PodProgram *
build (const PodJob *job, const PodMesh *mesh, bool is_outline, GError **error)
{
  g_autoptr (PodProgram) program = pod_program_new (mesh->n_ranks);
  const uint32_t pp = job->layout.degree[POD_AXIS_PP];
  g_autoptr (GPtrArray) different = g_ptr_array_new ();
  PodEmitter emitter;
  Stage *stages;

  if (job->model->index_heads > 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "%s picks its keys with an indexer, whose training step is not modelled", job->model->name);
      return NULL;
    }
  program->steps_overlap = pod_schedule_steps_overlap (job->schedule);
  program->links = is_outline ? g_array_new (FALSE, TRUE, sizeof (PodOpLinks)) : NULL;
  if (!emitter_init (&emitter, job, mesh, program, error))
    {
      pod_builder_clear (&emitter.builder);
      return NULL;
    }
  stages = stages_new (&emitter);
  connect_stages (stages, mesh);
  for (uint32_t rank = 0; rank < pp; rank++)
    {
      init_chunks (&stages[rank], different);
      build_stage (&stages[rank], g_ptr_array_index (job->schedule->slots, rank), program);
    }
  stages_free (stages, pp);
  for (uint32_t rank = 0; rank < mesh->n_ranks; rank++)
    program->class_of_rank[rank] = pod_mesh_coordinate (mesh, rank, POD_AXIS_PP);
  pod_builder_clear (&emitter.builder);
  return g_steal_pointer (&program);
}

PodProgram *
pod_job_program (const PodJob *job, const PodMesh *mesh, GError **error)
{
  return build (job, mesh, false, error);
}

PodProgram *
pod_job_outline (const PodJob *job, const PodMesh *mesh, GError **error)
{
  return build (job, mesh, true, error);
}
