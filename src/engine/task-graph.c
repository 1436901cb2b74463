#include "engine/task-graph.h"

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
    g_free (g_array_index (graph->classes, PodClassProgram, i).base);
  g_array_unref (graph->tasks);
  g_array_unref (graph->deps);
  g_array_unref (graph->blocks);
  g_array_unref (graph->classes);
  g_ptr_array_unref (graph->steps);
  g_free (graph);
}

static void
find_lanes (PodTaskGraph *graph)
{
  bool is_used[POD_MAX_STREAMS] = { true }; /* the first always: steps are told by it */

  for (guint b = 0; b < graph->blocks->len; b++)
    for (unsigned s = 0; s < graph->n_streams; s++)
      is_used[s] |= g_array_index (graph->blocks, PodBlock, b).n_tasks[s] > 0;
  for (guint i = 0; i < graph->deps->len; i++)
    is_used[g_array_index (graph->deps, PodTaskDep, i).stream] = true;
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
    {
      PodTaskDep *dep = &g_array_index (graph->deps, PodTaskDep, i);

      dep->stream = graph->lane_of_stream[dep->stream];
    }
}

static void
count_tasks (const PodTaskGraph *graph, PodClassProgram *program)
{
  const unsigned n = graph->n_lanes;

  program->base = g_new0 (uint32_t, ((size_t) program->n_steps + 1) * n);
  for (uint32_t i = 0; i < program->n_steps; i++)
    {
      const PodBlock *block = &g_array_index (graph->blocks, PodBlock, program->steps[i].block);

      for (unsigned l = 0; l < n; l++)
        program->base[((size_t) i + 1) * n + l] = program->base[(size_t) i * n + l] + block->n_tasks[l];
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
