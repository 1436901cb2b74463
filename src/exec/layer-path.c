#include "exec/layer-path.h"

#include <math.h>

#include "exec/alone-private.h"

enum
{
  LAYERS = 3, /* of a part: the middle one has neighbours on both sides */
};

typedef struct
{
  const PodExecRequest *request;
  const PodProgram *program;
  const GArray *kernels; /* PodKernelUse */
  PodAlone *alone;
} Walk;

/* What a block has of the layer. */
typedef struct
{
  double path_ps;
  double stream_ps[POD_N_STREAMS];
  bool is_forward;
  bool is_known;
} Part;

static const PodOp *
op_at (const Walk *walk, const PodOpBlock *block, uint32_t index)
{
  return &g_array_index (walk->program->ops, PodOp, block->first_op + index);
}

/* The layer in the middle of a block that has three; -1: it has none. @out_is_good: false where it has another number of them. */
static int32_t
middle_layer (const Walk *walk, const PodOpBlock *block, bool *out_is_good)
{
  int32_t first = INT32_MAX;
  int32_t last = -1;

  for (uint32_t i = 0; i < block->n_ops; i++)
    {
      const PodOp *op = op_at (walk, block, i);

      if (op->kind != POD_OP_COMPUTE || op->layer < 0)
        continue;
      first = MIN (first, op->layer);
      last = MAX (last, op->layer);
    }
  *out_is_good = last < 0 || last - first == LAYERS - 1;
  return last < 0 ? -1 : first + 1;
}

/* The layer's kernels, which stand together: positions [*first, *end) of the compute stream. */
static bool
find_kernels (const Walk *walk, const PodOpBlock *block, int32_t layer, uint32_t *first, uint32_t *end)
{
  const uint32_t begin = block->first_of_stream[POD_STREAM_COMPUTE] - block->first_op;
  uint32_t n = 0;

  *first = *end = begin;
  for (uint32_t i = begin; i < begin + block->n_of_stream[POD_STREAM_COMPUTE]; i++)
    if (op_at (walk, block, i)->layer == layer)
      {
        *first = n == 0 ? i : *first;
        *end = i + 1;
        n++;
      }
  return n > 0 && *end - *first == n && *first > begin;
}

static bool
duration (const Walk *walk, const PodOp *op, uint32_t rank, double *out_ps, GError **error)
{
  if (op->kind == POD_OP_COLLECTIVE)
    return pod_alone_time (walk->alone, op, op->comm, rank, out_ps, error);
  *out_ps = op->kind == POD_OP_COPY ? pod_exec_copy_s (walk->request->topology->chip, op) * 1e12
                                    : g_array_index (walk->kernels, PodKernelUse, op->kernel).time.time_s * 1e12;
  return true;
}

/* The path to the start of op @index: -INFINITY where none comes from the compute stream's freedom. Returns false while what it waits for has no
 * end yet. */
static bool
find_start (const Walk *walk, const PodOpBlock *block, const uint32_t *n_ended, uint32_t index, const double *ends, double *out)
{
  const PodOp *op = op_at (walk, block, index);

  *out = index > block->first_of_stream[op->stream] - block->first_op ? ends[index - 1] : -INFINITY;
  for (uint32_t i = 0; i < op->n_deps; i++)
    {
      const PodOpDep *dep = &g_array_index (walk->program->deps, PodOpDep, op->first_dep + i);

      if (dep->count > 0 && n_ended[dep->stream] < (uint32_t) dep->count)
        return false;
      if (dep->count > 0)
        *out = MAX (*out, ends[block->first_of_stream[dep->stream] - block->first_op + (uint32_t) dep->count - 1]);
    }
  return true;
}

/* Through the block, ops of the layer alone taking time: a path begins at the kernel before the layer's first. */
static bool
walk_block (const Walk *walk, const PodOpBlock *block, int32_t layer, uint32_t first, uint32_t end, uint32_t rank, Part *part, GError **error)
{
  g_autofree double *ends = g_new (double, block->n_ops + 1);
  uint32_t n_ended[POD_N_STREAMS] = { 0 };

  for (uint32_t i = 0; i < block->n_ops; i++)
    ends[i] = -INFINITY;
  for (bool has_moved = true; has_moved;)
    {
      has_moved = false;
      for (unsigned s = 0; s < POD_N_STREAMS; s++)
        for (; n_ended[s] < block->n_of_stream[s]; n_ended[s]++)
          {
            const uint32_t index = block->first_of_stream[s] - block->first_op + n_ended[s];
            const PodOp *op = op_at (walk, block, index);
            double time_ps = 0;

            if (!find_start (walk, block, n_ended, index, ends, &ends[index]))
              break;
            has_moved = true;
            if (op->layer != layer)
              {
                ends[index] = index == first - 1 ? 0 : -INFINITY;
                continue;
              }
            if (!duration (walk, op, rank, &time_ps, error))
              return false;
            ends[index] += time_ps;
            part->stream_ps[s] += time_ps;
          }
    }
  part->path_ps = MAX (ends[end - 1], 0);
  return true;
}

/* Collectives of dp may stand for several layers in a bucket, and transfers are none of a layer. */
static double
busiest (const double stream_ps[POD_N_STREAMS])
{
  static const PodStream streams[] = { POD_STREAM_TP, POD_STREAM_CP, POD_STREAM_GATHER, POD_STREAM_EP };
  double most = 0;

  for (unsigned i = 0; i < G_N_ELEMENTS (streams); i++)
    most = MAX (most, stream_ps[streams[i]]);
  return most;
}

/* @out_is_good: false where the layer cannot be told apart. */
static bool
make_part (const Walk *walk, uint32_t block_index, uint32_t rank, Part *part, bool *out_is_good, GError **error)
{
  const PodOpBlock *block = &g_array_index (walk->program->blocks, PodOpBlock, block_index);
  const int32_t layer = middle_layer (walk, block, out_is_good);
  uint32_t first, end;

  part->is_known = true;
  if (!*out_is_good || layer < 0)
    return true;
  *out_is_good = find_kernels (walk, block, layer, &first, &end);
  if (!*out_is_good)
    return true;
  part->is_forward = op_at (walk, block, first)->phase == POD_PHASE_FORWARD;
  return walk_block (walk, block, layer, first, end, rank, part, error);
}

/* All steps of one class. */
static bool
add_class (const Walk *walk, guint class_index, uint32_t rank, PodLayerPath *out, bool *out_is_good, GError **error)
{
  const PodProgramClass *class = g_ptr_array_index (walk->program->classes, class_index);
  g_autofree Part *parts = g_new0 (Part, walk->program->blocks->len + 1);
  double stream_ps[POD_N_STREAMS] = { 0 };

  *out = (PodLayerPath){ .forward_s = INFINITY };
  for (guint i = 0; i < class->steps->len; i++)
    {
      const uint32_t block = g_array_index (class->steps, PodOpStep, i).block;
      Part *part = &parts[block];

      if (!part->is_known && !make_part (walk, block, rank, part, out_is_good, error))
        return false;
      if (!*out_is_good)
        return true;
      out->path_s += part->path_ps / 1e12;
      if (part->is_forward)
        out->forward_s = MIN (out->forward_s, part->path_ps / 1e12);
      for (unsigned s = 0; s < POD_N_STREAMS; s++)
        stream_ps[s] += part->stream_ps[s];
    }
  out->stream_s = busiest (stream_ps) / 1e12;
  return true;
}

static uint32_t
first_rank (const PodProgram *program, guint class_index)
{
  uint32_t rank = 0;

  while (program->class_of_rank[rank] != class_index)
    rank++;
  return rank;
}

bool
pod_exec_layer_path (const PodExecRequest *request, uint32_t n_parts_of_rank, PodLayerPath *out, GError **error)
{
  const PodProgram *program = request->program;
  g_autoptr (GArray) kernels = NULL;
  g_autoptr (PodAlone) alone = NULL;
  PodStepSoftware software;
  Walk walk = { .request = request, .program = program };
  bool is_good = true;

  *out = (PodLayerPath){ INFINITY, INFINITY, INFINITY };
  pod_exec_software (request, &software);
  walk.kernels = kernels = pod_exec_price_kernels (request, &software, error);
  if (kernels == NULL)
    return false;
  walk.alone = alone = pod_alone_new (request, &software);
  for (guint c = 0; c < program->classes->len; c++)
    {
      PodLayerPath own;

      if (!add_class (&walk, c, first_rank (program, c), &own, &is_good, error) || !is_good)
        return false;
      out->path_s = MIN (out->path_s, own.path_s / n_parts_of_rank);
      out->forward_s = MIN (out->forward_s, own.forward_s);
      out->stream_s = MIN (out->stream_s, own.stream_s / n_parts_of_rank);
    }
  return out->path_s > 0 && isfinite (out->forward_s);
}
