#include "exec/passage-private.h"

#include <math.h>
#include <string.h>

void
pod_variables_init (PodVariables *variables, const PodProgram *program)
{
  *variables = (PodVariables){ 0 };
  for (unsigned s = 0; s < POD_N_STREAMS; s++)
    variables->of_stream[s] = POD_NO_VARIABLE;
  for (guint i = 0; i < program->ops->len; i++)
    {
      const uint8_t stream = g_array_index (program->ops, PodOp, i).stream;

      if (variables->of_stream[stream] == POD_NO_VARIABLE)
        variables->of_stream[stream] = (int) variables->n++;
    }
  for (guint i = 0; i < program->deps->len; i++)
    {
      const PodOpDep *dep = &g_array_index (program->deps, PodOpDep, i);
      bool is_known = dep->count >= 0 || dep->stream != POD_STREAM_COMPUTE || variables->n_tails == POD_MAX_TAILS;

      for (uint32_t t = 0; t < variables->n_tails; t++)
        is_known = is_known || variables->tails[t] == -dep->count;
      if (!is_known)
        variables->tails[variables->n_tails++] = -dep->count;
    }
  variables->first_tail = variables->n;
  variables->n += variables->n_tails;
}

static bool
duration (const PodPassageInput *input, const PodOp *op, uint32_t block, uint32_t rank, double *out_ps, GError **error)
{
  const PodKernelUse *use;

  if (op->kind == POD_OP_COLLECTIVE)
    return pod_alone_time (input->alone, op, op->comm, rank, out_ps, error);
  if (op->kind == POD_OP_COPY)
    {
      *out_ps = pod_exec_copy_s (input->request->topology->chip, op) * 1e12;
      return true;
    }
  use = &g_array_index (input->kernels, PodKernelUse, op->kernel);
  *out_ps = (use->time.time_s + pod_kernel_host_s (input->software, &use->kernel, input->wait_s[block])) * 1e12;
  return true;
}

static bool
is_receive (const PodOp *op)
{
  return op->kind == POD_OP_COLLECTIVE && op->collective == POD_SEND && !pod_stream_is_send (op->stream);
}

static bool
is_send (const PodOp *op)
{
  return op->kind == POD_OP_COLLECTIVE && op->collective == POD_SEND && pod_stream_is_send (op->stream);
}

static void
take_latest (double *to, const double *from, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] = MAX (to[i], from[i]);
}

/* The variable that a dependency on ops before the block stands for; POD_NO_VARIABLE: none is kept, which only waits less. */
static int
variable_before (const PodPassageInput *input, const PodOpDep *dep)
{
  if (dep->count == 0)
    return input->variables->of_stream[dep->stream];
  for (uint32_t t = 0; t < input->variables->n_tails && dep->stream == POD_STREAM_COMPUTE; t++)
    if (input->variables->tails[t] == -dep->count)
      return (int) (input->variables->first_tail + t);
  return POD_NO_VARIABLE;
}

/* When @op can start: after the op before it on its stream and all that it waits for. @ends: paths to the ends of the block's ops.
 * Returns false while one of them has no end yet. */
static bool
find_start (const PodPassageInput *input, const PodOpBlock *block, const uint32_t *n_ended, uint32_t index, const double *ends, double *start)
{
  const PodOp *op = &g_array_index (input->request->program->ops, PodOp, block->first_op + index);
  const uint32_t n = input->variables->n;
  const uint32_t first = block->first_of_stream[op->stream] - block->first_op;

  for (uint32_t i = 0; i < op->n_deps; i++)
    {
      const PodOpDep *dep = &g_array_index (input->request->program->deps, PodOpDep, op->first_dep + i);

      if (dep->count > 0 && n_ended[dep->stream] < (uint32_t) dep->count)
        return false;
    }
  for (uint32_t v = 0; v < n; v++)
    start[v] = -INFINITY;
  if (index > first)
    memcpy (start, ends + (size_t) (index - 1) * n, n * sizeof *start);
  else
    start[input->variables->of_stream[op->stream]] = 0;
  for (uint32_t i = 0; i < op->n_deps; i++)
    {
      const PodOpDep *dep = &g_array_index (input->request->program->deps, PodOpDep, op->first_dep + i);
      const int before = dep->count <= 0 ? variable_before (input, dep) : POD_NO_VARIABLE;

      if (dep->count > 0)
        take_latest (start, ends + (size_t) (block->first_of_stream[dep->stream] - block->first_op + (uint32_t) dep->count - 1) * n, n);
      else if (before != POD_NO_VARIABLE)
        start[before] = MAX (start[before], 0);
    }
  return true;
}

static void
add_comm (PodPassage *passage, uint32_t comm)
{
  for (guint i = 0; i < passage->comms->len; i++)
    if (g_array_index (passage->comms, uint32_t, i) == comm)
      return;
  g_array_append_val (passage->comms, comm);
}

/* One op, once what it waits for has an end. */
static bool
walk_op (const PodPassageInput *input, uint32_t block_index, uint32_t index, uint32_t rank, const double *start, double *ends, PodPassage *out, GError **error)
{
  const PodOpBlock *block = &g_array_index (input->request->program->blocks, PodOpBlock, block_index);
  const PodOp *op = &g_array_index (input->request->program->ops, PodOp, block->first_op + index);
  const uint32_t n = input->variables->n;
  double *end = ends + (size_t) index * n;
  PodTransfer transfer = { .op = op };
  double time_ps = 0;

  if (is_receive (op)) /* it ends as the sender's op does */
    {
      for (uint32_t v = 0; v < n; v++)
        end[v] = (int) v == input->variables->of_stream[op->stream] ? 0 : -INFINITY;
      g_array_append_val (out->receives, transfer);
      return true;
    }
  if (is_send (op)) /* how long it takes hangs on who sends it */
    {
      memcpy (transfer.ready_ps, start, n * sizeof *start);
      g_array_append_val (out->sends, transfer);
    }
  else if (!duration (input, op, block_index, rank, &time_ps, error))
    return false;
  else if (op->kind == POD_OP_COLLECTIVE)
    add_comm (out, op->comm);
  for (uint32_t v = 0; v < n; v++)
    end[v] = start[v] + time_ps;
  return true;
}

/* The rows of the matrix: a stream is free at the end of its last op. */
static void
set_rows (const PodPassageInput *input, const PodOpBlock *block, const double *ends, double *matrix)
{
  const uint32_t n = input->variables->n;

  for (uint32_t i = 0; i < n * n; i++)
    matrix[i] = i % (n + 1) == 0 ? 0 : -INFINITY;
  for (unsigned s = 0; s < POD_N_STREAMS; s++)
    if (block->n_of_stream[s] > 0 && !pod_stream_is_send ((PodStream) s))
      memcpy (matrix + (size_t) input->variables->of_stream[s] * n, ends + (size_t) (block->first_of_stream[s] - block->first_op + block->n_of_stream[s] - 1) * n, n * sizeof *matrix);
  for (uint32_t t = 0; t < input->variables->n_tails && block->n_of_stream[POD_STREAM_COMPUTE] > 0; t++)
    {
      const int64_t at = (int64_t) block->n_of_stream[POD_STREAM_COMPUTE] - 1 - input->variables->tails[t];
      double *row = matrix + (size_t) (input->variables->first_tail + t) * n;

      for (uint32_t v = 0; v < n; v++) /* -INFINITY: it is an op of an earlier block, which is not kept */
        row[v] = at >= 0 ? ends[(size_t) (block->first_of_stream[POD_STREAM_COMPUTE] - block->first_op + (uint32_t) at) * n + v] : -INFINITY;
    }
}

/* What kernels allocate as they start and free as they end, in their order: buffers that others allocate or free too are left out. */
static void
count_bytes (const PodPassageInput *input, const PodOpBlock *block, PodPassage *out)
{
  for (uint32_t i = 0; i < block->n_of_stream[POD_STREAM_COMPUTE]; i++)
    {
      const PodOp *op = &g_array_index (input->request->program->ops, PodOp, block->first_of_stream[POD_STREAM_COMPUTE] + i);

      for (unsigned is_at_end = 0; is_at_end < 2; is_at_end++)
        {
          for (uint32_t e = op->first_effect; e < op->first_effect + op->n_effects; e++)
            {
              const PodEffect *effect = &g_array_index (input->request->program->effects, PodEffect, e);

              if (effect->is_at_end == (is_at_end == 1) && input->is_counted[effect->label])
                out->end_bytes += effect->bytes;
            }
          out->peak_bytes = MAX (out->peak_bytes, out->end_bytes);
        }
    }
}

void
pod_passage_free (PodPassage *passage)
{
  if (passage == NULL)
    return;
  g_free (passage->matrix);
  g_array_unref (passage->comms);
  g_array_unref (passage->receives);
  g_array_unref (passage->sends);
  g_free (passage);
}

bool
pod_passage_is_of (const PodPassage *passage, PodAlone *alone, uint32_t rank)
{
  for (guint i = 0; i < passage->comms->len && rank != passage->rank; i++)
    {
      const uint32_t comm = g_array_index (passage->comms, uint32_t, i);
      const PodPlace own = pod_alone_place (alone, comm, passage->rank);
      const PodPlace other = pod_alone_place (alone, comm, rank);

      if (own.comm != other.comm || own.group != other.group)
        return false;
    }
  return true;
}

/* Through the block in an order in which all that an op waits for comes before it. */
PodPassage *
pod_passage_new (const PodPassageInput *input, uint32_t block_index, uint32_t rank, GError **error)
{
  const PodOpBlock *block = &g_array_index (input->request->program->blocks, PodOpBlock, block_index);
  const uint32_t n = input->variables->n;
  g_autoptr (PodPassage) passage = g_new0 (PodPassage, 1);
  g_autofree double *ends = g_new (double, (size_t) block->n_ops * n + 1);
  uint32_t n_ended[POD_N_STREAMS] = { 0 };
  double start[POD_MAX_VARIABLES];
  bool has_moved = true;

  passage->rank = rank;
  passage->comms = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  passage->matrix = g_new (double, (size_t) n * n);
  passage->receives = g_array_new (FALSE, FALSE, sizeof (PodTransfer));
  passage->sends = g_array_new (FALSE, FALSE, sizeof (PodTransfer));
  while (has_moved)
    {
      has_moved = false;
      for (unsigned s = 0; s < POD_N_STREAMS; s++)
        for (; n_ended[s] < block->n_of_stream[s]; n_ended[s]++)
          {
            const uint32_t index = block->first_of_stream[s] - block->first_op + n_ended[s];

            if (!find_start (input, block, n_ended, index, ends, start))
              break;
            if (!walk_op (input, block_index, index, rank, start, ends, passage, error))
              return NULL;
            has_moved = true;
          }
    }
  set_rows (input, block, ends, passage->matrix);
  count_bytes (input, block, passage);
  return g_steal_pointer (&passage);
}
