#include <string.h>

#include "base/mix.h"
#include "base/units.h"
#include "exec/run-private.h"

/* The program as the engine's task graph: one task per op, in the op's place, and a block for each of the program's. A block may be divided into
 * one for each of its layers, each a step of its own: then those that are like each other can be told, and a run of many need not be simulated
 * one by one (steady.c). */

/* Each kernel of the block is as much longer as its launches are waited for. */
static void
add_waits (const PodProgram *program, const PodOpBlock *block, const PodStepSoftware *software, const GArray *kernels, double wait_s, PodTaskGraph *graph)
{
  for (uint32_t i = block->first_op; i < block->first_op + block->n_ops; i++)
    {
      const PodOp *op = &g_array_index (program->ops, PodOp, i);
      const PodKernelUse *use;

      if (op->kind != POD_OP_COMPUTE)
        continue;
      use = &g_array_index (kernels, PodKernelUse, op->kernel);
      pod_seconds_to_ps (use->time.time_s + pod_kernel_host_s (software, &use->kernel, wait_s), &g_array_index (graph->tasks, PodTask, i).duration_ps);
    }
}

/* Of each kernel alone. Returns: (transfer full) by kernel */
static int64_t *
kernel_durations (const GArray *kernels)
{
  int64_t *ps = g_new (int64_t, kernels->len + 1);

  for (guint k = 0; k < kernels->len; k++)
    pod_seconds_to_ps (g_array_index (kernels, PodKernelUse, k).time.time_s, &ps[k]);
  return ps;
}

/* Of @n, with room for as many again: those of the layers. */
static void
make_room (GArray *array, guint n)
{
  g_array_set_size (array, 2 * n);
  g_array_set_size (array, n);
}

static void
add_tasks (const PodExec *exec, const GArray *kernels, PodTaskGraph *graph, bool by_layer)
{
  const PodProgram *program = exec->program;
  const PodOp *ops = (const PodOp *) (const void *) program->ops->data;
  const PodOpDep *deps = (const PodOpDep *) (const void *) program->deps->data;
  g_autofree int64_t *kernel_ps = kernel_durations (kernels);
  PodTask *tasks;

  if (by_layer)
    make_room (graph->tasks, program->ops->len);
  if (by_layer)
    make_room (graph->deps, program->deps->len);
  g_array_set_size (graph->tasks, program->ops->len);
  tasks = (PodTask *) (void *) graph->tasks->data;
  for (guint i = 0; i < program->ops->len; i++)
    {
      const PodOp *op = &ops[i];
      PodTask *task = &tasks[i];

      *task = (PodTask){ .duration_ps = op->kind == POD_OP_COMPUTE ? kernel_ps[op->kernel] : POD_JOINT, .op = i, .like = i, .first_dep = op->first_dep, .n_deps = (uint16_t) op->n_deps };
      g_assert (op->n_deps <= UINT16_MAX);
      if (op->kind == POD_OP_COPY)
        pod_seconds_to_ps (pod_exec_copy_s (exec->request->topology->chip, op), &task->duration_ps);
    }
  g_array_set_size (graph->deps, program->deps->len);
  for (guint i = 0; i < program->deps->len; i++)
    g_array_index (graph->deps, PodTaskDep, i) = (PodTaskDep){ .stream = deps[i].stream, .count = deps[i].count };
  for (guint i = 0; i < program->blocks->len && exec->software.launch_s > 0; i++)
    add_waits (program, &g_array_index (program->blocks, PodOpBlock, i), &exec->software, kernels, exec->wait_s[i], graph);
}

static void
add_block (PodTaskGraph *graph, const PodBlock *block)
{
  PodBlock added = *block;

  added.like = added.kin = graph->blocks->len;
  g_array_append_val (graph->blocks, added);
}

/* ---- layers ---- */

static const PodOp *
op_at (const PodProgram *program, uint32_t index)
{
  return &g_array_index (program->ops, PodOp, index);
}

/* The layers in the order in which compute goes through them. Returns: (transfer full) (nullable) (element-type int32_t) NULL when it comes
 * back to one */
static GArray *
list_layers (const PodProgram *program, const PodOpBlock *block)
{
  g_autoptr (GArray) layers = g_array_new (FALSE, FALSE, sizeof (int32_t));
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);

  for (uint32_t i = 0; i < block->n_of_stream[POD_STREAM_COMPUTE]; i++)
    {
      const int32_t layer = op_at (program, block->first_of_stream[POD_STREAM_COMPUTE] + i)->layer;

      if (layer < 0 || (layers->len > 0 && g_array_index (layers, int32_t, layers->len - 1) == layer))
        continue;
      if (!g_hash_table_add (seen, GINT_TO_POINTER (layer + 1)))
        return NULL;
      g_array_append_val (layers, layer);
    }
  return g_steal_pointer (&layers);
}

/* Divides the ops of a stream: what is of no layer goes with what is before it. @units: blocks of the layers. Returns whether the stream goes
 * through the layers in their order. */
static bool
divide_stream (const PodProgram *program, const PodOpBlock *block, unsigned s, const GArray *layers, GArray *units)
{
  guint u = 0;

  for (uint32_t i = 0; i < block->n_of_stream[s]; i++)
    {
      const int32_t layer = op_at (program, block->first_of_stream[s] + i)->layer;

      while (layer >= 0 && u < layers->len && g_array_index (layers, int32_t, u) != layer)
        u++;
      if (u == layers->len)
        return false;
      g_array_index (units, PodBlock, u).n_tasks[s]++;
    }
  for (guint v = 0, first = block->first_of_stream[s]; v < layers->len; first += g_array_index (units, PodBlock, v++).n_tasks[s])
    g_array_index (units, PodBlock, v).first_task[s] = first;
  return true;
}

/* A copy of task @of at @to, with its dependencies from @first_dep on, which count from the layer's start, @begin of the block's tasks. */
static void
copy_task (PodTaskGraph *graph, uint32_t of, uint32_t to, uint32_t first_dep, const uint32_t *begin)
{
  PodTask *task = &g_array_index (graph->tasks, PodTask, to);

  *task = g_array_index (graph->tasks, PodTask, of);
  for (uint32_t d = 0; d < task->n_deps; d++)
    {
      PodTaskDep *dep = &g_array_index (graph->deps, PodTaskDep, first_dep + d);

      *dep = g_array_index (graph->deps, PodTaskDep, task->first_dep + d);
      dep->count -= (int32_t) begin[dep->stream];
    }
  task->first_dep = first_dep;
}

/* A layer's tasks are its own: their dependencies count from the layer's start, not from the block's. */
static void
add_tasks_of_unit (const PodOpBlock *block, PodBlock *unit, PodTaskGraph *graph)
{
  const PodBlock of_block = *unit;
  uint32_t begin[POD_MAX_STREAMS];
  uint32_t at = graph->tasks->len;
  uint32_t dep = graph->deps->len;
  uint32_t n_tasks = 0;
  uint32_t n_deps = 0;

  for (unsigned s = 0; s < graph->n_streams; s++)
    {
      begin[s] = of_block.first_task[s] - block->first_of_stream[s];
      unit->first_task[s] = at + n_tasks;
      n_tasks += unit->n_tasks[s];
      for (uint32_t i = 0; i < unit->n_tasks[s]; i++)
        n_deps += g_array_index (graph->tasks, PodTask, of_block.first_task[s] + i).n_deps;
    }
  g_array_set_size (graph->tasks, at + n_tasks);
  g_array_set_size (graph->deps, dep + n_deps);
  for (unsigned s = 0; s < graph->n_streams; s++)
    for (uint32_t i = 0; i < unit->n_tasks[s]; i++)
      {
        copy_task (graph, of_block.first_task[s] + i, at, dep, begin);
        dep += g_array_index (graph->tasks, PodTask, at++).n_deps;
      }
}

static bool
are_like_effects (const PodProgram *program, const PodOp *a, const PodOp *b)
{
  if (a->n_effects != b->n_effects)
    return false;
  for (uint32_t i = 0; i < a->n_effects; i++)
    {
      const PodEffect *x = &g_array_index (program->effects, PodEffect, a->first_effect + i);
      const PodEffect *y = &g_array_index (program->effects, PodEffect, b->first_effect + i);

      if (x->label != y->label || x->is_at_end != y->is_at_end || x->bytes != y->bytes)
        return false;
    }
  return true;
}

/* All that a run asks of an op, its layer and its name apart. @are_kin: and whom it sends to or receives from. */
static bool
are_like_tasks (const PodProgram *program, const PodTaskGraph *graph, uint32_t a, uint32_t b, bool are_kin)
{
  const PodTask *x = &g_array_index (graph->tasks, PodTask, a);
  const PodTask *y = &g_array_index (graph->tasks, PodTask, b);
  const PodOp *p = op_at (program, x->op);
  const PodOp *q = op_at (program, y->op);

  if (x->duration_ps != y->duration_ps || x->n_deps != y->n_deps || p->kind != q->kind || p->phase != q->phase || p->stream != q->stream || p->bytes != q->bytes)
    return false;
  if (p->kind == POD_OP_COMPUTE ? p->kernel != q->kernel : p->kind == POD_OP_COLLECTIVE && ((p->comm != q->comm && !(are_kin && p->collective == POD_SEND)) || p->collective != q->collective || p->dtype != q->dtype))
    return false;
  for (uint32_t d = 0; d < x->n_deps; d++)
    {
      const PodTaskDep *u = &g_array_index (graph->deps, PodTaskDep, x->first_dep + d);
      const PodTaskDep *v = &g_array_index (graph->deps, PodTaskDep, y->first_dep + d);

      if (u->stream != v->stream || u->count != v->count)
        return false;
    }
  return are_like_effects (program, p, q);
}

static bool
are_like_blocks (const PodProgram *program, const PodTaskGraph *graph, const PodBlock *a, const PodBlock *b, bool are_kin)
{
  if (memcmp (a->n_tasks, b->n_tasks, sizeof a->n_tasks) != 0)
    return false;
  for (unsigned s = 0; s < graph->n_streams; s++)
    for (uint32_t i = 0; i < a->n_tasks[s]; i++)
      if (!are_like_tasks (program, graph, a->first_task[s] + i, b->first_task[s] + i, are_kin))
        return false;
  return true;
}

/* Of the task, and of that which stands in its op's place. */
static void
set_like (PodTaskGraph *graph, uint32_t index, uint32_t other)
{
  PodTask *task = &g_array_index (graph->tasks, PodTask, index);

  task->like = g_array_index (graph->tasks, PodTask, other).like;
  g_array_index (graph->tasks, PodTask, task->op).like = task->like;
}

/* Returns: (nullable) that of @firsts (element-type uint32_t) which the last of the graph's blocks is like. It comes to their front, for the next
 * layer is mostly like it, too; none of them is like another, so that their order decides nothing. */
static const PodBlock *
find_first (const PodProgram *program, const PodTaskGraph *graph, GArray *firsts, bool are_kin)
{
  const PodBlock *last = &g_array_index (graph->blocks, PodBlock, graph->blocks->len - 1);

  for (guint f = 0; f < firsts->len; f++)
    {
      const uint32_t index = g_array_index (firsts, uint32_t, f);
      const PodBlock *first = &g_array_index (graph->blocks, PodBlock, index);

      if (!are_like_blocks (program, graph, last, first, are_kin))
        continue;
      g_array_index (firsts, uint32_t, f) = g_array_index (firsts, uint32_t, 0);
      g_array_index (firsts, uint32_t, 0) = index;
      return first;
    }
  return NULL;
}

/* The last of the graph's blocks is compared with @firsts of their kind: edges, and layers of each kind, of all stages. */
static void
find_like (const PodProgram *program, PodTaskGraph *graph, GArray *firsts)
{
  PodBlock *last = &g_array_index (graph->blocks, PodBlock, graph->blocks->len - 1);
  const PodBlock *first = find_first (program, graph, firsts, false);

  if (first == NULL)
    {
      const PodBlock *kin = find_first (program, graph, firsts, true);

      last->kin = kin != NULL ? kin->kin : last->like;
      g_array_append_val (firsts, last->like);
      return;
    }
  last->like = first->like;
  last->kin = first->kin;
  for (unsigned s = 0; s < graph->n_streams; s++)
    for (uint32_t i = 0; i < last->n_tasks[s]; i++)
      set_like (graph, last->first_task[s] + i, first->first_task[s] + i);
}

/* The block's layers as blocks of their own. Returns how many there are, 0 when it cannot be divided. */
static uint32_t
divide_block (const PodProgram *program, const PodOpBlock *block, PodTaskGraph *graph, GArray *firsts)
{
  g_autoptr (GArray) layers = list_layers (program, block);
  g_autoptr (GArray) units = g_array_new (FALSE, TRUE, sizeof (PodBlock));

  if (layers == NULL || layers->len < 2)
    return 0;
  g_array_set_size (units, layers->len);
  for (unsigned s = 0; s < graph->n_streams; s++)
    if (!divide_stream (program, block, s, layers, units))
      return 0;
  for (guint u = 0; u < units->len; u++)
    {
      g_array_index (units, PodBlock, u).place = u;
      add_tasks_of_unit (block, &g_array_index (units, PodBlock, u), graph);
      add_block (graph, &g_array_index (units, PodBlock, u));
      find_like (program, graph, firsts);
    }
  return units->len;
}

/* ---- the graph ---- */

enum
{
  MOST_DIVIDED = 8192, /* steps of layers: of a step with many microbatches the first ones, for these are soon alike */
};

/* The blocks of a block's layers. */
typedef struct
{
  uint32_t first;
  uint32_t n; /* 0: it is not divided */
} Division;

static void
add_class (const PodProgramClass *class, const Division *divisions, PodTaskGraph *graph)
{
  GArray *steps = g_array_sized_new (FALSE, FALSE, sizeof (PodStep), class->steps->len);
  PodClassProgram out = { 0 };

  for (guint i = 0; i < class->steps->len; i++)
    {
      const PodStep step = g_array_index (class->steps, PodStep, i);
      const Division *division = &divisions[step.block];
      const guint begin = steps->len;
      const uint32_t n = begin < MOST_DIVIDED ? division->n : 0;

      g_array_set_size (steps, begin + MAX (n, 1));
      g_array_index (steps, PodStep, begin) = step;
      for (uint32_t b = 0; b < n; b++)
        g_array_index (steps, PodStep, begin + b) = (PodStep){ .block = division->first + b, .microbatch = step.microbatch };
    }
  g_ptr_array_add (graph->steps, steps);
  out.n_steps = steps->len;
  out.steps = (const PodStep *) steps->data;
  g_array_append_val (graph->classes, out);
}

PodTaskGraph *
pod_exec_compile (const PodExec *exec, const GArray *kernels, bool by_layer)
{
  const PodProgram *program = exec->program;
  PodTaskGraph *graph = pod_task_graph_new (POD_N_STREAMS);
  g_autoptr (GArray) firsts = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autofree Division *divisions = g_new0 (Division, program->blocks->len + 1);

  G_STATIC_ASSERT (sizeof (PodOpStep) == sizeof (PodStep));
  add_tasks (exec, kernels, graph, by_layer);
  for (guint i = 0; i < program->blocks->len; i++)
    {
      const PodOpBlock *block = &g_array_index (program->blocks, PodOpBlock, i);
      PodBlock whole = { .n_tasks = { 0 } };

      memcpy (whole.first_task, block->first_of_stream, sizeof block->first_of_stream);
      memcpy (whole.n_tasks, block->n_of_stream, sizeof block->n_of_stream);
      add_block (graph, &whole);
    }
  for (guint i = 0; i < program->blocks->len && by_layer; i++)
    {
      divisions[i].first = graph->blocks->len;
      divisions[i].n = divide_block (program, &g_array_index (program->blocks, PodOpBlock, i), graph, firsts);
    }
  for (guint i = 0; i < program->classes->len; i++)
    add_class (g_ptr_array_index (program->classes, i), divisions, graph);
  pod_task_graph_seal (graph);
  return graph;
}
