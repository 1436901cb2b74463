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
  g_free (graph);
}

void
pod_task_graph_seal (PodTaskGraph *graph)
{
  const unsigned n = graph->n_streams;

  for (guint c = 0; c < graph->classes->len; c++)
    {
      PodClassProgram *program = &g_array_index (graph->classes, PodClassProgram, c);

      g_free (program->base);
      program->base = g_new0 (uint32_t, ((size_t) program->n_steps + 1) * n);
      for (uint32_t i = 0; i < program->n_steps; i++)
        {
          const PodBlock *block = &g_array_index (graph->blocks, PodBlock, program->steps[i].block);

          for (unsigned s = 0; s < n; s++)
            program->base[((size_t) i + 1) * n + s] = program->base[(size_t) i * n + s] + block->n_tasks[s];
        }
    }
}
