#include "exec/run-private.h"

#include <string.h>

/* What a run has come to. */

/* How often one rank of a class runs each block in a step. Returns: (transfer full) */
static uint64_t *
count_runs (const PodProgram *program, const PodProgramClass *class)
{
  uint64_t *n_runs = g_new0 (uint64_t, program->blocks->len + 1);

  for (guint i = 0; i < class->steps->len; i++)
    n_runs[g_array_index (class->steps, PodOpStep, i).block]++;
  return n_runs;
}

static void
count_block (const PodProgram *program, const PodRoutes *routes, const PodOpBlock *block, uint64_t n_runs, GArray *kernels, uint64_t *kernel_calls, uint64_t *use_calls)
{
  const PodOp *ops = &g_array_index (program->ops, PodOp, 0);

  for (uint32_t i = block->first_op; i < block->first_op + block->n_ops; i++)
    if (ops[i].kind == POD_OP_COLLECTIVE)
      use_calls[routes->use_of_op[i]] += n_runs;
    else if (ops[i].kind == POD_OP_COMPUTE)
      {
        PodKernelUse *kernel = &g_array_index (kernels, PodKernelUse, ops[i].kernel);

        kernel_calls[ops[i].kernel] += n_runs;
        if (kernel->op == NULL)
          kernel->op = &ops[i];
      }
}

static void
count_calls (const PodExecRequest *request, const PodRoutes *routes, GArray *kernels)
{
  const PodProgram *program = request->program;

  for (guint c = 0; c < program->classes->len; c++)
    {
      g_autofree uint64_t *n_runs = count_runs (program, g_ptr_array_index (program->classes, c));
      g_autofree uint64_t *kernel_calls = g_new0 (uint64_t, program->kernels->len + 1);
      g_autofree uint64_t *use_calls = g_new0 (uint64_t, routes->uses->len + 1);

      for (guint b = 0; b < program->blocks->len; b++)
        if (n_runs[b] > 0)
          count_block (program, routes, &g_array_index (program->blocks, PodOpBlock, b), n_runs[b], kernels, kernel_calls, use_calls);
      for (guint k = 0; k < program->kernels->len; k++)
        g_array_index (kernels, PodKernelUse, k).n_calls = MAX (g_array_index (kernels, PodKernelUse, k).n_calls, kernel_calls[k]);
      for (guint u = 0; u < routes->uses->len; u++)
        g_array_index (routes->uses, PodCollectiveUse, u).n_per_rank = MAX (g_array_index (routes->uses, PodCollectiveUse, u).n_per_rank, use_calls[u]);
    }
}

/* What a kernel adds to the sums of a class each time that a block runs it, times how often that is. */
typedef struct
{
  double losses_s[POD_N_LOSSES];
  double host_s;
  double time_s;
  double *bound_s; /* of the result's: by what it is bounded; NULL: not known yet */
} KernelTerm;

static void
find_term (const PodExec *exec, const PodKernelUse *kernel, double n_runs, double wait_s, PodExecResult *result, KernelTerm *out)
{
  for (unsigned loss = 0; loss < POD_N_LOSSES; loss++)
    out->losses_s[loss] = n_runs * kernel->losses_s[loss];
  out->host_s = n_runs * pod_kernel_host_s (&exec->software, &kernel->kernel, wait_s);
  out->time_s = n_runs * kernel->time.time_s;
  out->bound_s = kernel->time.bound == POD_BOUND_COMPUTE ? &result->compute_bound_s : kernel->time.bound == POD_BOUND_HBM ? &result->hbm_bound_s : &result->overhead_bound_s;
}

/* @terms: by kernel, forgotten from block to block; @stream_s: of collectives and copies by axis. */
static void
sum_block (const PodExec *exec, const PodOpBlock *block, double n_runs, double wait_s, const GArray *kernels, KernelTerm *terms, double stream_s[][POD_N_STREAMS], PodExecResult *result)
{
  const PodOp *ops = &g_array_index (exec->program->ops, PodOp, 0);

  memset (terms, 0, kernels->len * sizeof *terms);
  for (uint32_t k = block->first_op; k < block->first_op + block->n_ops; k++)
    {
      const PodOp *op = &ops[k];
      const PodKernelUse *kernel;
      KernelTerm *term;

      if (op->kind == POD_OP_COPY)
        {
          stream_s[POD_AXIS_HOST][op->stream] += n_runs * pod_exec_copy_s (exec->request->topology->chip, op);
          continue;
        }
      if (op->kind == POD_OP_COLLECTIVE)
        {
          const PodCollectiveUse *use = &g_array_index (exec->routes->uses, PodCollectiveUse, exec->routes->use_of_op[k]);

          result->phase_comm_s[op->phase][use->axis] += n_runs * use->alone_s;
          stream_s[use->axis][op->stream] += n_runs * use->alone_s;
          continue;
        }
      kernel = &g_array_index (kernels, PodKernelUse, op->kernel);
      term = &terms[op->kernel];
      if (term->bound_s == NULL)
        find_term (exec, kernel, n_runs, wait_s, result, term);
      for (unsigned loss = 0; loss < POD_N_LOSSES; loss++)
        result->losses_s[loss] += term->losses_s[loss];
      result->losses_s[POD_LOSS_HOST] += term->host_s;
      result->phase_compute_s[op->phase] += term->time_s;
      result->kernel_s[kernel->kernel.kind] += term->time_s;
      result->n_kernels += (uint64_t) n_runs;
      *term->bound_s += term->time_s;
    }
}

/* Adds up what one rank of a class does: kernels by what bounds them, and both kernels and collectives by phase. */
static void
sum_class (const PodExec *exec, uint32_t class_index, const GArray *kernels, PodExecResult *result)
{
  const PodProgram *program = exec->program;
  g_autofree uint64_t *n_runs = count_runs (program, g_ptr_array_index (program->classes, class_index));
  g_autofree KernelTerm *terms = g_new (KernelTerm, kernels->len + 1);
  double stream_s[POD_N_COMM_AXES][POD_N_STREAMS] = { { 0 } };

  for (guint b = 0; b < program->blocks->len; b++)
    if (n_runs[b] > 0)
      sum_block (exec, &g_array_index (program->blocks, PodOpBlock, b), (double) n_runs[b], exec->wait_s[b], kernels, terms, stream_s, result);
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
  result->worst_rank = pod_fold_rank (exec->fold, pod_account_highest (exec->account, &result->peak_bytes, &result->peak_at_ps, &by_label));
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
  result->breakdowns = pod_account_breakdowns (exec->account);
  result->critical_rank = pod_fold_rank (exec->fold, critical);
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
