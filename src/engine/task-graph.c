#include "engine/task-graph.h"

#include <string.h>

PodTaskGraph *
pod_task_graph_new (unsigned n_streams)
{
  PodTaskGraph *graph = g_new0 (PodTaskGraph, 1);

  g_assert (n_streams <= POD_MAX_STREAMS);
  graph->n_streams = n_streams;
  graph->tasks = g_array_new (FALSE, FALSE, sizeof (PodTask));
  graph->deps = g_array_new (FALSE, FALSE, sizeof (PodTaskDep));
  graph->blocks = g_array_new (FALSE, FALSE, sizeof (PodBlock));
  graph->classes = g_array_new (FALSE, FALSE, sizeof (PodClassProgram));
  graph->steps = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  return graph;
}

void
pod_task_graph_free (PodTaskGraph *graph)
{
  if (graph == NULL)
    return;
  for (guint i = 0; i < graph->classes->len; i++)
    {
      g_free (g_array_index (graph->classes, PodClassProgram, i).base);
      g_free (g_array_index (graph->classes, PodClassProgram, i).like);
    }
  g_array_unref (graph->tasks);
  g_array_unref (graph->deps);
  g_clear_pointer (&graph->outward, g_array_unref);
  g_array_unref (graph->blocks);
  g_array_unref (graph->classes);
  g_ptr_array_unref (graph->steps);
  g_free (graph);
}

static void
find_lanes (PodTaskGraph *graph)
{
  const PodTaskDep *deps = (const PodTaskDep *) (const void *) graph->deps->data;
  bool is_used[POD_MAX_STREAMS] = { true }; /* the first always: steps are told by it */

  for (guint b = 0; b < graph->blocks->len; b++)
    for (unsigned s = 0; s < graph->n_streams; s++)
      is_used[s] |= g_array_index (graph->blocks, PodBlock, b).n_tasks[s] > 0;
  for (guint i = 0; i < graph->deps->len; i++)
    is_used[deps[i].stream] = true;
  for (unsigned s = 0; s < graph->n_streams; s++)
    {
      graph->lane_of_stream[s] = is_used[s] ? (uint8_t) graph->n_lanes : POD_NO_LANE;
      if (is_used[s])
        graph->stream_of_lane[graph->n_lanes++] = (uint8_t) s;
    }
}

/* Lanes are in the order of streams, so nothing is overwritten that is yet to be moved. */
static void
use_lanes (PodTaskGraph *graph)
{
  PodTaskDep *deps = (PodTaskDep *) (void *) graph->deps->data;

  for (guint b = 0; b < graph->blocks->len; b++)
    {
      PodBlock *block = &g_array_index (graph->blocks, PodBlock, b);

      for (unsigned l = 0; l < graph->n_lanes; l++)
        {
          block->first_task[l] = block->first_task[graph->stream_of_lane[l]];
          block->n_tasks[l] = block->n_tasks[graph->stream_of_lane[l]];
        }
    }
  for (guint i = 0; i < graph->deps->len; i++)
    deps[i].stream = graph->lane_of_stream[deps[i].stream];
}

static void
count_tasks (const PodTaskGraph *graph, PodClassProgram *program)
{
  const unsigned n = graph->n_lanes;

  uint32_t *base;

  program->base = base = g_new (uint32_t, ((size_t) program->n_steps + 1) * n);
  program->like = g_new (uint32_t, (size_t) program->n_steps + 1);
  memset (base, 0, n * sizeof *base);
  for (uint32_t i = 0; i < program->n_steps; i++, base += n)
    {
      const PodBlock *block = &g_array_index (graph->blocks, PodBlock, program->steps[i].block);

      program->like[i] = block->like;
      for (unsigned l = 0; l < n; l++)
        base[n + l] = base[l] + block->n_tasks[l];
    }
}

void
pod_task_graph_seal (PodTaskGraph *graph)
{
  g_assert (graph->n_lanes == 0);
  find_lanes (graph);
  use_lanes (graph);
  for (guint c = 0; c < graph->classes->len; c++)
    count_tasks (graph, &g_array_index (graph->classes, PodClassProgram, c));
}

static const PodTask *
task_of (const PodTaskGraph *graph, const PodBlock *block, unsigned lane, uint32_t i)
{
  return &g_array_index (graph->tasks, PodTask, block->first_task[lane] + i);
}

/* Lanes that have an outward task in any block. */
static uint32_t
find_outward_lanes (const PodTaskGraph *graph)
{
  uint32_t lanes = 0;

  for (guint b = 0; b < graph->blocks->len; b++)
    for (unsigned l = 0; l < graph->n_lanes; l++)
      {
        const PodBlock *block = &g_array_index (graph->blocks, PodBlock, b);

        for (uint32_t i = 0; i < block->n_tasks[l]; i++)
          lanes |= (uint32_t) task_of (graph, block, l, i)->is_outward << l;
      }
  return lanes;
}

/* Of earlier steps any task may be one. */
static bool
is_on_outward (const PodTaskGraph *graph, const PodBlock *block, const PodTaskDep *dep)
{
  bool is_outward = dep->count <= 0;

  for (uint32_t i = 0; (int64_t) i < dep->count && i < block->n_tasks[dep->stream]; i++)
    is_outward |= task_of (graph, block, dep->stream, i)->is_outward;
  return is_outward;
}

static void
add_outward (PodTaskGraph *graph, PodBlock *block, unsigned lane, const PodTaskDep *dep)
{
  PodOutwardDep outward = { (uint8_t) lane, dep->stream, dep->count };

  for (uint32_t i = block->first_outward; i < graph->outward->len; i++)
    {
      PodOutwardDep *other = &g_array_index (graph->outward, PodOutwardDep, i);

      if (other->lane != lane || other->on != dep->stream)
        continue;
      other->count = MAX (other->count, dep->count);
      return;
    }
  g_array_append_val (graph->outward, outward);
}

void
pod_task_graph_list_outward (PodTaskGraph *graph)
{
  const uint32_t lanes = find_outward_lanes (graph);

  g_assert (graph->outward == NULL);
  graph->outward = g_array_new (FALSE, FALSE, sizeof (PodOutwardDep));
  for (guint b = 0; b < graph->blocks->len; b++)
    {
      PodBlock *block = &g_array_index (graph->blocks, PodBlock, b);

      block->first_outward = graph->outward->len;
      for (unsigned l = 0; l < graph->n_lanes; l++)
        for (uint32_t i = 0; i < block->n_tasks[l]; i++)
          {
            const PodTask *task = task_of (graph, block, l, i);

            for (uint32_t d = task->first_dep; d < task->first_dep + task->n_deps && !task->is_outward; d++)
              {
                const PodTaskDep *dep = &g_array_index (graph->deps, PodTaskDep, d);

                if (dep->stream != l && (lanes >> dep->stream & 1) != 0 && is_on_outward (graph, block, dep))
                  add_outward (graph, block, l, dep);
              }
          }
      block->n_outward = graph->outward->len - block->first_outward;
    }
}
