#include "exec/run-private.h"

/* What a run has come to. */

static void
count_calls (const PodExecRequest *request, const PodRoutes *routes, GArray *kernels)
{
  const PodProgram *program = request->program;

  for (guint c = 0; c < program->classes->len; c++)
    {
      const PodProgramClass *class = g_ptr_array_index (program->classes, c);
      g_autofree uint64_t *n_runs = g_new0 (uint64_t, program->blocks->len);
      g_autofree uint64_t *kernel_calls = g_new0 (uint64_t, program->kernels->len + 1);
      g_autofree uint64_t *use_calls = g_new0 (uint64_t, routes->uses->len + 1);

      for (guint i = 0; i < class->steps->len; i++)
        n_runs[g_array_index (class->steps, PodOpStep, i).block]++;
      for (guint b = 0; b < program->blocks->len; b++)
        {
          const PodOpBlock *block = &g_array_index (program->blocks, PodOpBlock, b);

          for (uint32_t i = block->first_op; n_runs[b] > 0 && i < block->first_op + block->n_ops; i++)
            {
              const PodOp *op = &g_array_index (program->ops, PodOp, i);
              PodKernelUse *kernel;

              if (op->kind == POD_OP_COPY)
                continue;
              if (op->kind == POD_OP_COLLECTIVE)
                {
                  use_calls[routes->use_of_op[i]] += n_runs[b];
                  continue;
                }
              kernel = &g_array_index (kernels, PodKernelUse, op->kernel);
              kernel_calls[op->kernel] += n_runs[b];
              if (kernel->op == NULL)
                kernel->op = op;
            }
        }
      for (guint k = 0; k < program->kernels->len; k++)
        g_array_index (kernels, PodKernelUse, k).n_calls = MAX (g_array_index (kernels, PodKernelUse, k).n_calls, kernel_calls[k]);
      for (guint u = 0; u < routes->uses->len; u++)
        g_array_index (routes->uses, PodCollectiveUse, u).n_per_rank = MAX (g_array_index (routes->uses, PodCollectiveUse, u).n_per_rank, use_calls[u]);
    }
}

/* Adds up what one rank of a class does: kernels by what bounds them, and both kernels and collectives by phase. */
static void
sum_class (const PodExec *exec, uint32_t class_index, const GArray *kernels, PodExecResult *result)
{
  const PodProgram *program = exec->program;
  const PodProgramClass *class = g_ptr_array_index (program->classes, class_index);
  g_autofree double *n_runs = g_new0 (double, program->blocks->len);
  double stream_s[POD_N_COMM_AXES][POD_N_STREAMS] = { { 0 } };

  for (guint i = 0; i < class->steps->len; i++)
    n_runs[g_array_index (class->steps, PodOpStep, i).block]++;
  for (guint b = 0; b < program->blocks->len; b++)
    {
      const PodOpBlock *block = &g_array_index (program->blocks, PodOpBlock, b);

      for (uint32_t k = block->first_op; n_runs[b] > 0 && k < block->first_op + block->n_ops; k++)
        {
          const PodOp *op = &g_array_index (program->ops, PodOp, k);
          const PodKernelUse *kernel;
          const PodKernelTime *time;

          if (op->kind == POD_OP_COPY)
            {
              stream_s[POD_AXIS_HOST][op->stream] += n_runs[b] * pod_exec_copy_s (exec->request->topology->chip, op);
              continue;
            }
          if (op->kind == POD_OP_COLLECTIVE)
            {
              const PodCollectiveUse *use = &g_array_index (exec->routes->uses, PodCollectiveUse, exec->routes->use_of_op[k]);

              result->phase_comm_s[op->phase][use->axis] += n_runs[b] * use->alone_s;
              stream_s[use->axis][op->stream] += n_runs[b] * use->alone_s;
              continue;
            }
          kernel = &g_array_index (kernels, PodKernelUse, op->kernel);
          time = &kernel->time;
          for (unsigned loss = 0; loss < POD_N_LOSSES; loss++)
            result->losses_s[loss] += n_runs[b] * kernel->losses_s[loss];
          result->losses_s[POD_LOSS_HOST] += n_runs[b] * pod_kernel_host_s (&exec->software, &kernel->kernel, exec->wait_s[b]);
          result->phase_compute_s[op->phase] += n_runs[b] * time->time_s;
          result->kernel_s[kernel->kernel.kind] += n_runs[b] * time->time_s;
          result->n_kernels += (uint64_t) n_runs[b];
          if (time->bound == POD_BOUND_COMPUTE)
            result->compute_bound_s += n_runs[b] * time->time_s;
          else if (time->bound == POD_BOUND_HBM)
            result->hbm_bound_s += n_runs[b] * time->time_s;
          else
            result->overhead_bound_s += n_runs[b] * time->time_s;
        }
    }
  for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
    for (unsigned s = 0; s < POD_N_STREAMS; s++)
      result->axis_comm_s[a] = a == POD_AXIS_PP || a == POD_AXIS_EP || a == POD_AXIS_HOST ? MAX (result->axis_comm_s[a], stream_s[a][s]) : result->axis_comm_s[a] + stream_s[a][s];
}

static void
collect_memory (const PodExec *exec, PodExecResult *result)
{
  const PodProgram *program = exec->program;
  const int64_t *by_label;

  result->stage_peaks = g_array_sized_new (FALSE, TRUE, sizeof (double), program->classes->len);
  g_array_set_size (result->stage_peaks, program->classes->len);
  for (uint32_t i = 0; i < exec->fold->n_ranks; i++)
    {
      double peak = pod_account_peak (exec->account, i);
      double *stage = &g_array_index (result->stage_peaks, double, exec->fold->class_of[i]);

      *stage = MAX (*stage, peak);
    }
  result->worst_rank = exec->fold->rank[pod_account_highest (exec->account, &result->peak_bytes, &result->peak_at_ps, &by_label)];
  result->by_label = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint l = 0; l < program->labels->len; l++)
    {
      double bytes = (double) by_label[l];

      g_array_append_val (result->by_label, bytes);
      result->by_use[g_array_index (program->labels, PodBufferLabel, l).use] += bytes;
    }
}

PodExecResult *
pod_exec_collect (PodExec *exec, GArray *kernels)
{
  PodExecResult *result = g_new0 (PodExecResult, 1);
  uint32_t critical = 0;

  result->time_ps = pod_account_finish (exec->account, exec->end_ps);
  result->is_partial = exec->is_partial;
  for (uint32_t i = 0; i < exec->fold->n_ranks; i++)
    if (pod_account_rank_own_time (exec->account, i) > pod_account_rank_own_time (exec->account, critical))
      critical = i;
  result->breakdowns = pod_account_steal_breakdowns (exec->account);
  result->critical_rank = exec->fold->rank[critical];
  result->breakdown = result->breakdowns[critical];
  result->lower_bound_ps = pod_exec_lower_bound (exec->request, exec->routes);
  count_calls (exec->request, exec->routes, kernels);
  sum_class (exec, exec->fold->class_of[critical], kernels, result);
  collect_memory (exec, result);
  result->collectives = g_steal_pointer (&exec->routes->uses);
  result->kernels = g_array_ref (kernels);
  result->n_represented = exec->fold->n_ranks;
  result->n_link_classes = exec->fold->n_links;
  result->n_events = pod_event_queue_n_popped (exec->queue);
  result->timeline = pod_recorder_steal (exec->recorder, exec->end_ps);
  return result;
}

void
pod_exec_result_free (PodExecResult *result)
{
  if (result == NULL)
    return;
  g_free (result->breakdowns);
  g_array_unref (result->stage_peaks);
  g_array_unref (result->by_label);
  g_array_unref (result->collectives);
  g_array_unref (result->kernels);
  pod_timeline_free (result->timeline);
  g_free (result);
}
