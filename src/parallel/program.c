#include "parallel/program.h"

#include <math.h>
#include <string.h>

#include "parallel/builder-private.h"

const char *const pod_stream_names[POD_N_STREAMS] = {
  [POD_STREAM_COMPUTE] = "compute",
  [POD_STREAM_TP] = "tp",
  [POD_STREAM_CP] = "cp",
  [POD_STREAM_GATHER] = "fsdp gather",
  [POD_STREAM_REDUCE] = "gradients",
  [POD_STREAM_EP] = "ep",
  [POD_STREAM_EP_NODE] = "ep in node",
  [POD_STREAM_SEND_ACT] = "pp send activations",
  [POD_STREAM_RECV_ACT] = "pp receive activations",
  [POD_STREAM_SEND_GRAD] = "pp send gradients",
  [POD_STREAM_RECV_GRAD] = "pp receive gradients",
  [POD_STREAM_SEND_ACT_BACK] = "pp send activations down",
  [POD_STREAM_RECV_ACT_BACK] = "pp receive activations down",
  [POD_STREAM_SEND_GRAD_BACK] = "pp send gradients up",
  [POD_STREAM_RECV_GRAD_BACK] = "pp receive gradients up",
  [POD_STREAM_TO_HOST] = "to host",
  [POD_STREAM_FROM_HOST] = "from host",
};

bool
pod_stream_is_send (PodStream stream)
{
  return stream == POD_STREAM_SEND_ACT || stream == POD_STREAM_SEND_GRAD || stream == POD_STREAM_SEND_ACT_BACK || stream == POD_STREAM_SEND_GRAD_BACK;
}

const char *const pod_phase_names[POD_N_PHASES] = {
  [POD_PHASE_FORWARD] = "forward",
  [POD_PHASE_BACKWARD] = "backward",
  [POD_PHASE_RECOMPUTE] = "recompute",
  [POD_PHASE_OPTIMIZER] = "optimizer",
};

const char *const pod_memory_use_names[POD_N_USES] = {
  [POD_USE_PARAMS] = "params",           [POD_USE_GRADS] = "grads",         [POD_USE_OPTIMIZER] = "optimizer",
  [POD_USE_ACTIVATIONS] = "activations", [POD_USE_WORKSPACE] = "workspace",
};

/* What is said of an op while its block is open: it waits for another one of the block, or with on == POD_NO_OP on a stream's past. */
typedef struct
{
  uint32_t op;
  uint32_t on;
  PodOpDep dep;
} Edge;

typedef struct
{
  uint32_t op;
  PodEffect effect;
} BufferEffect;

static void
class_free (void *data)
{
  PodProgramClass *class = data;

  g_free (class->name);
  g_array_unref (class->steps);
  g_free (class);
}

static guint
kernel_hash (gconstpointer key)
{
  const PodKernel *kernel = key;

  return (guint) (kernel->m * 31 + kernel->n * 17 + kernel->k * 7 + kernel->heads + (uint64_t) kernel->flops + (uint64_t) kernel->read_bytes * 3);
}

static gboolean
kernel_equal (gconstpointer a, gconstpointer b)
{
  const PodKernel *x = a;
  const PodKernel *y = b;

  return x->kind == y->kind && x->dtype == y->dtype && x->batch == y->batch && x->m == y->m && x->n == y->n && x->k == y->k
         && x->heads == y->heads && x->kv_heads == y->kv_heads && x->v_dim == y->v_dim && x->is_causal == y->is_causal
         && x->is_transposed == y->is_transposed && x->n_launches == y->n_launches && x->is_awaited == y->is_awaited
         && x->is_sized_late == y->is_sized_late && x->begins_woven == y->begins_woven && x->is_op_by_op == y->is_op_by_op
         && memcmp (&x->flops, &y->flops, sizeof x->flops) == 0 && memcmp (&x->read_bytes, &y->read_bytes, sizeof x->read_bytes) == 0
         && memcmp (&x->write_bytes, &y->write_bytes, sizeof x->write_bytes) == 0;
}

/* Room for a program of a hundred layers or so; memory that nothing is written to costs nothing. */
enum
{
  SOME_OPS = 8192,
};

PodProgram *
pod_program_new (uint32_t n_ranks)
{
  PodProgram *program = g_new0 (PodProgram, 1);

  program->strings = g_string_chunk_new (4096);
  program->ops = g_array_sized_new (FALSE, FALSE, sizeof (PodOp), SOME_OPS);
  program->deps = g_array_sized_new (FALSE, FALSE, sizeof (PodOpDep), SOME_OPS);
  program->effects = g_array_sized_new (FALSE, FALSE, sizeof (PodEffect), SOME_OPS);
  program->kernels = g_array_new (FALSE, FALSE, sizeof (PodKernel));
  program->labels = g_array_new (FALSE, FALSE, sizeof (PodBufferLabel));
  program->blocks = g_array_new (FALSE, FALSE, sizeof (PodOpBlock));
  program->communicators = g_ptr_array_new_with_free_func ((GDestroyNotify) pod_communicator_free);
  program->classes = g_ptr_array_new_with_free_func (class_free);
  program->class_of_rank = g_new0 (uint32_t, n_ranks);
  program->n_ranks = n_ranks;
  program->kernel_index = g_hash_table_new_full (kernel_hash, kernel_equal, g_free, NULL);
  return program;
}

void
pod_program_free (PodProgram *program)
{
  if (program == NULL)
    return;
  g_string_chunk_free (program->strings);
  g_array_unref (program->ops);
  g_array_unref (program->deps);
  g_array_unref (program->effects);
  g_array_unref (program->kernels);
  g_array_unref (program->labels);
  g_array_unref (program->blocks);
  g_clear_pointer (&program->links, g_array_unref);
  g_ptr_array_unref (program->communicators);
  g_ptr_array_unref (program->classes);
  g_hash_table_unref (program->kernel_index);
  g_free (program->class_of_rank);
  g_free (program);
}

/* ---- names ---- */

typedef struct
{
  const char *first;
  const char *second;
} Parts;

static guint
parts_hash (gconstpointer key)
{
  const Parts *parts = key;

  return g_direct_hash (parts->first) * 31 + g_direct_hash (parts->second);
}

static gboolean
parts_equal (gconstpointer a, gconstpointer b)
{
  const Parts *x = a;
  const Parts *y = b;

  return x->first == y->first && x->second == y->second;
}

const char *
pod_builder_join (PodBuilder *builder, const char *first, const char *second)
{
  const Parts parts = { first, second };
  g_autofree char *text = NULL;
  char *joined;

  if (first == NULL)
    return second;
  joined = g_hash_table_lookup (builder->joined, &parts);
  if (joined != NULL)
    return joined;
  text = g_strconcat (first, " ", second, NULL);
  joined = g_string_chunk_insert_const (builder->program->strings, text);
  g_hash_table_insert (builder->joined, g_memdup2 (&parts, sizeof parts), joined);
  return joined;
}

char *
pod_op_name (const PodOp *op)
{
  return op->layer >= 0 ? g_strdup_printf ("L%d %s", op->layer, op->name) : g_strdup (op->name);
}

static char *
describe_attention (const PodKernel *kernel)
{
  g_autofree char *keys = kernel->n == kernel->m ? g_strdup ("") : g_strdup_printf (" on %" G_GUINT64_FORMAT " keys", kernel->n);

  return g_strdup_printf ("%" G_GUINT64_FORMAT " sequences of %" G_GUINT64_FORMAT "%s, %" G_GUINT64_FORMAT " heads, %" G_GUINT64_FORMAT " KV heads, head_dim %" G_GUINT64_FORMAT, kernel->batch,
                          kernel->m, keys, kernel->heads, kernel->kv_heads, kernel->k);
}

char *
pod_op_detail (const PodOp *op, const PodKernel *kernel)
{
  g_autofree char *count = NULL;

  if (!op->has_detail)
    return NULL;
  if (kernel->kind != POD_KERNEL_MATMUL)
    return describe_attention (kernel);
  count = kernel->n_launches > 0 ? g_strdup_printf ("%" G_GUINT64_FORMAT " matmuls", kernel->batch) : g_strdup ("matmul");
  return g_strdup_printf ("%s [%" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT "] x [%" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT "] %s", count, kernel->m, kernel->k, kernel->k, kernel->n,
                          pod_dtype_name (kernel->dtype));
}

/* ---- blocks ---- */

void
pod_builder_init (PodBuilder *builder, PodProgram *program)
{
  *builder = (PodBuilder){ .program = program,
                           .dtypes = { POD_DTYPE_BF16, POD_DTYPE_BF16, POD_DTYPE_BF16 },
                           .ops = g_array_sized_new (FALSE, FALSE, sizeof (PodOp), SOME_OPS),
                           .joined = g_hash_table_new_full (parts_hash, parts_equal, g_free, NULL),
                           .edges = g_array_sized_new (FALSE, FALSE, sizeof (Edge), SOME_OPS),
                           .effects = g_array_sized_new (FALSE, FALSE, sizeof (BufferEffect), SOME_OPS) };
}

void
pod_builder_clear (PodBuilder *builder)
{
  g_array_unref (builder->ops);
  g_array_unref (builder->edges);
  g_array_unref (builder->effects);
  g_hash_table_unref (builder->joined);
}

void
pod_builder_open (PodBuilder *builder, const char *name)
{
  g_array_set_size (builder->ops, 0);
  g_array_set_size (builder->edges, 0);
  g_array_set_size (builder->effects, 0);
  builder->name = g_string_chunk_insert_const (builder->program->strings, name);
  pod_builder_part (builder, 0, 0);
}

void
pod_builder_part (PodBuilder *builder, uint8_t chunk, uint8_t slot)
{
  builder->chunk = chunk;
  builder->slot = slot;
}

static uint32_t
kernel_of (PodProgram *program, const PodKernel *kernel)
{
  gpointer found;

  if (g_hash_table_lookup_extended (program->kernel_index, kernel, NULL, &found))
    return GPOINTER_TO_UINT (found);
  g_array_append_val (program->kernels, *kernel);
  g_hash_table_insert (program->kernel_index, g_memdup2 (kernel, sizeof *kernel), GUINT_TO_POINTER (program->kernels->len - 1));
  return program->kernels->len - 1;
}

static uint32_t
add_op (PodBuilder *builder, PodOp op, const char *name)
{
  op.name = name;
  op.chunk = builder->chunk;
  op.slot = builder->slot;
  builder->program->recomputes |= op.phase == POD_PHASE_RECOMPUTE;
  g_array_append_val (builder->ops, op);
  return builder->ops->len - 1;
}

uint32_t
pod_builder_compute (PodBuilder *builder, PodPhase phase, int32_t layer, const char *name, bool has_detail, const PodKernel *kernel)
{
  return add_op (builder,
                 (PodOp){ .kind = POD_OP_COMPUTE, .stream = POD_STREAM_COMPUTE, .phase = (uint8_t) phase, .layer = layer, .has_detail = has_detail, .kernel = kernel_of (builder->program, kernel) },
                 name);
}

/* Gathers of weights carry weights, before a layer or after the optimizer; reductions beside the backward pass or with
 * the optimizer carry gradients; all else carries activations. */
static PodDtype
wire_dtype (const PodBuilder *builder, PodPhase phase, PodStream stream, PodCollectiveKind kind)
{
  if (stream == POD_STREAM_GATHER || (stream == POD_STREAM_REDUCE && kind == POD_ALL_GATHER))
    return builder->dtypes.weights;
  if (stream == POD_STREAM_REDUCE || phase == POD_PHASE_OPTIMIZER)
    return builder->dtypes.grads;
  return builder->dtypes.values;
}

void
pod_builder_set_dtype (PodBuilder *builder, uint32_t op, PodDtype dtype)
{
  g_array_index (builder->ops, PodOp, op).dtype = dtype;
}

uint32_t
pod_builder_collective (PodBuilder *builder, PodPhase phase, int32_t layer, const char *name, PodStream stream, uint32_t comm, PodCollectiveKind kind,
                        uint64_t bytes)
{
  return add_op (builder,
                 (PodOp){ .kind = POD_OP_COLLECTIVE,
                          .stream = (uint8_t) stream,
                          .phase = (uint8_t) phase,
                          .layer = layer,
                          .comm = comm,
                          .collective = kind,
                          .bytes = bytes,
                          .dtype = wire_dtype (builder, phase, stream, kind) },
                 name);
}

uint32_t
pod_builder_copy (PodBuilder *builder, PodPhase phase, int32_t layer, const char *name, bool is_to_host, double bytes)
{
  return add_op (builder,
                 (PodOp){ .kind = POD_OP_COPY,
                          .stream = is_to_host ? POD_STREAM_TO_HOST : POD_STREAM_FROM_HOST,
                          .phase = (uint8_t) phase,
                          .layer = layer,
                          .bytes = (uint64_t) bytes },
                 name);
}

void
pod_builder_depend (PodBuilder *builder, uint32_t op, uint32_t on)
{
  const Edge edge = { .op = op, .on = on };

  if (op == POD_NO_OP || on == POD_NO_OP)
    return;
  g_assert (on < op);
  g_array_append_val (builder->edges, edge);
}

void
pod_builder_depend_before (PodBuilder *builder, uint32_t op, PodStream stream, int32_t but)
{
  const Edge edge = { .op = op, .on = POD_NO_OP, .dep = { .stream = (uint8_t) stream, .count = -but } };

  if (op != POD_NO_OP)
    g_array_append_val (builder->edges, edge);
}

static void
add_effect (PodBuilder *builder, uint32_t op, uint32_t label, bool is_at_end, double bytes)
{
  const BufferEffect effect = { .op = op, .effect = { .label = label, .is_at_end = is_at_end, .bytes = llround (bytes) } };

  if (effect.effect.bytes != 0 && op != POD_NO_OP)
    g_array_append_val (builder->effects, effect);
}

void
pod_builder_alloc (PodBuilder *builder, uint32_t op, uint32_t label, double bytes)
{
  add_effect (builder, op, label, false, bytes);
}

void
pod_builder_free_buffer (PodBuilder *builder, uint32_t op, uint32_t label, double bytes)
{
  add_effect (builder, op, label, true, -bytes);
}

/* Whether an op leaves the compute stream with nothing to do until it ends, unless others' work comes between. */
static bool
is_yield (const PodOp *op)
{
  return op->kind == POD_OP_COLLECTIVE && (op->stream == POD_STREAM_TP || op->stream == POD_STREAM_EP || op->stream == POD_STREAM_EP_NODE);
}

/* Renumbers what was said of ops. */
static void
renumber (PodBuilder *builder, const uint32_t *number)
{
  for (guint i = 0; i < builder->edges->len; i++)
    {
      Edge *edge = &g_array_index (builder->edges, Edge, i);

      edge->op = number[edge->op];
      if (edge->on != POD_NO_OP)
        edge->on = number[edge->on];
    }
  for (guint i = 0; i < builder->effects->len; i++)
    g_array_index (builder->effects, BufferEffect, i).op = number[g_array_index (builder->effects, BufferEffect, i).op];
}

void
pod_builder_weave (PodBuilder *builder, uint32_t second)
{
  const uint32_t n = builder->ops->len;
  g_autoptr (GArray) woven = g_array_sized_new (FALSE, FALSE, sizeof (PodOp), n);
  g_autofree uint32_t *number = g_new (uint32_t, n + 1);
  uint32_t at[2] = { 0, second };
  const uint32_t end[2] = { second, n };
  unsigned turn = 0;

  while (woven->len < n)
    {
      bool is_over = at[turn] == end[turn];

      while (!is_over)
        {
          const PodOp *op = &g_array_index (builder->ops, PodOp, at[turn]);

          number[at[turn]++] = woven->len;
          g_array_append_val (woven, *op);
          is_over = is_yield (op) || at[turn] == end[turn];
        }
      turn = 1 - turn;
    }
  renumber (builder, number);
  g_array_set_size (builder->ops, 0);
  g_array_append_vals (builder->ops, woven->data, woven->len);
}

/* ---- layers and stages that are like each other ---- */

PodBuilderMark
pod_builder_mark (const PodBuilder *builder)
{
  return (PodBuilderMark){ builder->ops->len, builder->edges->len, builder->effects->len };
}

static void
repeat_ops (GArray *ops, uint32_t from, uint32_t n, int32_t n_layers)
{
  PodOp *out;

  g_array_set_size (ops, ops->len + n);
  out = &g_array_index (ops, PodOp, from);
  for (uint32_t i = 0; i < n; i++)
    {
      out[n + i] = out[i];
      out[n + i].layer += out[i].layer >= 0 ? n_layers : 0;
    }
}

static void
repeat_edges (GArray *edges, uint32_t from, uint32_t n_ops)
{
  const uint32_t n = edges->len - from;
  Edge *out;

  g_array_set_size (edges, edges->len + n);
  out = &g_array_index (edges, Edge, from);
  for (uint32_t i = 0; i < n; i++)
    out[n + i] = (Edge){ .op = out[i].op + n_ops, .on = out[i].on != POD_NO_OP ? out[i].on + n_ops : POD_NO_OP, .dep = out[i].dep };
}

static void
repeat_effects (GArray *effects, uint32_t from, uint32_t n_ops)
{
  const uint32_t n = effects->len - from;
  BufferEffect *out;

  g_array_set_size (effects, effects->len + n);
  out = &g_array_index (effects, BufferEffect, from);
  for (uint32_t i = 0; i < n; i++)
    out[n + i] = (BufferEffect){ .op = out[i].op + n_ops, .effect = out[i].effect };
}

uint32_t
pod_builder_repeat (PodBuilder *builder, PodBuilderMark from, int32_t n_layers)
{
  const uint32_t n = builder->ops->len - from.n_ops;

  repeat_ops (builder->ops, from.n_ops, n, n_layers);
  repeat_edges (builder->edges, from.n_edges, n);
  repeat_effects (builder->effects, from.n_effects, n);
  return n;
}

static uint32_t
add_block (PodProgram *program, const PodOpBlock *block)
{
  g_array_append_val (program->blocks, *block);
  return program->blocks->len - 1;
}

uint32_t
pod_builder_copy_block (PodBuilder *builder, uint32_t of, const char *name, const PodOpTurn *turn)
{
  PodProgram *program = builder->program;
  const PodOpBlock from = g_array_index (program->blocks, PodOpBlock, of);
  PodOpBlock block = from;

  block.name = g_string_chunk_insert_const (program->strings, name);
  block.first_op = program->ops->len;
  for (unsigned s = 0; s < POD_N_STREAMS; s++)
    block.first_of_stream[s] += block.first_op - from.first_op;
  g_array_set_size (program->ops, block.first_op + block.n_ops);
  for (uint32_t i = 0; i < block.n_ops; i++)
    {
      PodOp *op = &g_array_index (program->ops, PodOp, block.first_op + i);

      *op = g_array_index (program->ops, PodOp, from.first_op + i); /* what it waits for and its buffers stand there once */
      op->layer += op->layer >= 0 ? turn->n_layers : 0;
      op->chunk = turn->chunk;
      for (unsigned c = 0; c < G_N_ELEMENTS (turn->comms) && op->kind == POD_OP_COLLECTIVE; c++)
        if (op->comm == turn->comms[c][0])
          {
            op->comm = turn->comms[c][1];
            break;
          }
    }
  return add_block (program, &block);
}

/* ---- closing ---- */

/* Sorts what was said of ops by op, in the order in which it was said. @first: how many are of each op before it, n_ops + 1. Returns:
 * (transfer full) the order */
static uint32_t *
sort_by_op (const GArray *said, uint32_t n_ops, uint32_t *first)
{
  const size_t size = g_array_get_element_size ((GArray *) said) / sizeof (uint32_t);
  const uint32_t *op_of = (const uint32_t *) (const void *) said->data; /* where each thing said begins */
  uint32_t *order = g_new (uint32_t, said->len + 1);

  memset (first, 0, (n_ops + 1) * sizeof *first);
  for (guint i = 0; i < said->len; i++)
    first[op_of[i * size] + 1]++;
  for (uint32_t op = 0; op < n_ops; op++)
    first[op + 1] += first[op];
  for (guint i = 0; i < said->len; i++)
    order[first[op_of[i * size]]++] = i;
  memmove (first + 1, first, n_ops * sizeof *first);
  first[0] = 0;
  return order;
}

/* Where the ops of the open block go in the program: by stream, in issue order within one. Returns: (transfer full) by op */
static uint32_t *
place_ops (const PodBuilder *builder, PodOpBlock *block)
{
  const PodOp *ops = (const PodOp *) (const void *) builder->ops->data;
  uint32_t *place = g_new (uint32_t, builder->ops->len + 1);
  uint32_t next[POD_N_STREAMS];

  for (guint i = 0; i < builder->ops->len; i++)
    block->n_of_stream[ops[i].stream]++;
  for (unsigned s = 0, at = block->first_op; s < POD_N_STREAMS; s++)
    {
      block->first_of_stream[s] = next[s] = at;
      at += block->n_of_stream[s];
    }
  for (guint i = 0; i < builder->ops->len; i++)
    place[i] = next[ops[i].stream]++;
  return place;
}

/* Dependencies between ops of the block, as counts of their streams. */
static void
add_deps (PodBuilder *builder, const PodOpBlock *block, const uint32_t *place, const uint32_t *order)
{
  const PodOp *ops = (const PodOp *) (const void *) builder->ops->data;
  const Edge *edges = (const Edge *) (const void *) builder->edges->data;
  const guint begin = builder->program->deps->len;
  PodOpDep *deps;

  g_array_set_size (builder->program->deps, begin + builder->edges->len);
  deps = &g_array_index (builder->program->deps, PodOpDep, begin);
  for (uint32_t i = 0; i < builder->edges->len; i++)
    {
      const Edge *edge = &edges[order[i]];
      const uint8_t stream = edge->on != POD_NO_OP ? ops[edge->on].stream : edge->dep.stream;

      deps[i] = edge->on == POD_NO_OP ? edge->dep : (PodOpDep){ .stream = stream, .count = (int32_t) (place[edge->on] - block->first_of_stream[stream]) + 1 };
    }
}

static void
add_effects (PodBuilder *builder, const uint32_t *order)
{
  const BufferEffect *said = (const BufferEffect *) (const void *) builder->effects->data;
  const guint begin = builder->program->effects->len;
  PodEffect *effects;

  g_array_set_size (builder->program->effects, begin + builder->effects->len);
  effects = &g_array_index (builder->program->effects, PodEffect, begin);
  for (uint32_t i = 0; i < builder->effects->len; i++)
    effects[i] = said[order[i]].effect;
}

uint32_t
pod_builder_close (PodBuilder *builder)
{
  PodProgram *program = builder->program;
  const uint32_t n = builder->ops->len;
  PodOpBlock block = { .name = builder->name, .first_op = program->ops->len, .n_ops = n };
  const uint32_t first_dep = program->deps->len;
  const uint32_t first_effect = program->effects->len;
  g_autofree uint32_t *place = place_ops (builder, &block);
  g_autofree uint32_t *edge_of = g_new (uint32_t, n + 1); /* the first of each op */
  g_autofree uint32_t *effect_of = g_new (uint32_t, n + 1);
  g_autofree uint32_t *edges = sort_by_op (builder->edges, n, edge_of);
  g_autofree uint32_t *effects = sort_by_op (builder->effects, n, effect_of);
  const PodOp *said;
  PodOp *ops;

  g_array_set_size (program->ops, block.first_op + n);
  said = (const PodOp *) (const void *) builder->ops->data;
  ops = (PodOp *) (void *) program->ops->data;
  for (guint i = 0; i < n; i++)
    {
      PodOp *op = &ops[place[i]];

      *op = said[i];
      op->first_dep = first_dep + edge_of[i];
      op->n_deps = edge_of[i + 1] - edge_of[i];
      op->first_effect = first_effect + effect_of[i];
      op->n_effects = effect_of[i + 1] - effect_of[i];
    }
  add_deps (builder, &block, place, edges);
  add_effects (builder, effects);
  return add_block (program, &block);
}

uint32_t
pod_builder_label (PodBuilder *builder, const char *name, PodMemoryUse use)
{
  GArray *labels = builder->program->labels;
  PodBufferLabel label = { .name = g_string_chunk_insert_const (builder->program->strings, name), .use = use };

  for (guint i = 0; i < labels->len; i++)
    if (strcmp (g_array_index (labels, PodBufferLabel, i).name, name) == 0)
      return i;
  g_assert (labels->len < 64);
  g_array_append_val (labels, label);
  return labels->len - 1;
}

uint32_t
pod_builder_add_communicator (PodBuilder *builder, PodCommunicator *communicator)
{
  g_ptr_array_add (builder->program->communicators, communicator);
  return builder->program->communicators->len - 1;
}
