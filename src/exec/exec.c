#include "exec/exec.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "exec/run-private.h"

void
pod_exec_software (const PodExecRequest *request, PodStepSoftware *out)
{
  pod_step_software_init (out);
  if (request->software != NULL && request->fidelity == POD_FIDELITY_CALIBRATED)
    *out = *request->software;
}

double
pod_exec_rate_ratio (const PodStepSoftware *software, PodAxis axis)
{
  return axis == POD_AXIS_FSDP ? software->fsdp_rate_ratio : 1;
}

GArray *
pod_exec_price_kernels (const PodExecRequest *request, const PodStepSoftware *software, GError **error)
{
  const PodProgram *program = request->program;
  g_autoptr (GArray) uses = g_array_sized_new (FALSE, TRUE, sizeof (PodKernelUse), program->kernels->len);

  for (guint k = 0; k < program->kernels->len; k++)
    {
      PodKernelUse use = { .kernel = g_array_index (program->kernels, PodKernel, k) };
      int64_t ps;

      pod_kernel_time_in_step (request->topology->chip, request->fidelity, &use.kernel, software, &use.time, use.losses_s);
      if (!pod_seconds_to_ps (use.time.time_s, &ps))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "one kernel takes %g s: beyond the clock's 106 days", use.time.time_s);
          return NULL;
        }
      g_array_append_val (uses, use);
    }
  return g_steal_pointer (&uses);
}

double *
pod_exec_price_launches (const PodProgram *program, const PodStepSoftware *software, const GArray *kernels)
{
  double *wait_s = g_new0 (double, program->blocks->len + 1);

  for (guint b = 0; software->launch_s > 0 && b < program->blocks->len; b++)
    {
      const PodOpBlock *block = &g_array_index (program->blocks, PodOpBlock, b);
      double n_launches = 0;
      double device_s = 0;

      for (uint32_t i = block->first_op; i < block->first_op + block->n_ops; i++)
        {
          const PodOp *op = &g_array_index (program->ops, PodOp, i);

          const PodKernelUse *use;

          if (op->kind == POD_OP_COLLECTIVE)
            n_launches += software->graphs == POD_GRAPHS_NONE ? 1 : 0;
          if (op->kind != POD_OP_COMPUTE)
            continue;
          use = &g_array_index (kernels, PodKernelUse, op->kernel);
          if (use->kernel.is_awaited)
            continue;
          n_launches += pod_kernel_launches (software, &use->kernel);
          device_s += use->time.time_s;
        }
      if (n_launches > 0)
        wait_s[b] = MAX (0, software->launch_s - device_s / n_launches);
    }
  return wait_s;
}

/* Whether a rank holds more than the run may: then it is of no use any more. */
static bool
is_too_much (const PodExec *exec, GError **error)
{
  const double most = exec->request->most_bytes;
  double highest;

  pod_account_highest (exec->account, &highest, NULL, NULL);
  if (highest <= most)
    return false;
  g_set_error (error, POD_ERROR, POD_ERROR_MEMORY, "a rank holds %.0f bytes at %g s, more than %.0f", highest,
               (double) pod_event_queue_now (exec->queue) / 1e12, most);
  return true;
}

void
pod_exec_handle (PodExec *exec, const PodEvent *event)
{
  if (event->kind == POD_EXEC_TASK)
    pod_runner_handle (exec->runner, event);
  else if (event->kind == POD_EXEC_PACKETS)
    pod_exec_packets_handle (exec->packets, event);
  else
    pod_network_handle (exec->network, event);
}

uint32_t
pod_exec_n_running (const PodExec *exec)
{
  return exec->twins != NULL ? pod_twins_leaders (exec->twins)->len : exec->fold->n_ranks;
}

uint32_t
pod_exec_running (const PodExec *exec, uint32_t i)
{
  return exec->twins != NULL ? g_array_index (pod_twins_leaders (exec->twins), uint32_t, i) : i;
}

static void
part (PodExec *exec)
{
  if (exec->islands != NULL)
    pod_islands_wake_all (exec->islands, exec);
  if (exec->twins == NULL)
    return;
  g_clear_pointer (&exec->islands, pod_islands_free); /* they are others now */
  pod_twins_part (exec);
  pod_recorder_twins (exec->recorder, NULL);
  if (exec->steady != NULL)
    pod_steady_forget (exec->steady);
}

static bool
run_events (PodExec *exec, GError **error)
{
  PodEvent event;
  bool is_to_look = true;

  for (uint32_t i = 0; i < pod_exec_n_running (exec); i++)
    pod_runner_begin (exec->runner, pod_exec_running (exec, i));
  while (pod_event_queue_pop (exec->queue, &event))
    {
      if (event.kind == POD_EXEC_WAKE)
        pod_islands_wake (exec->islands, exec, &event);
      else
        pod_exec_handle (exec, &event);
      if (exec->islands != NULL && event.kind == POD_EXEC_TASK)
        pod_islands_look (exec->islands, exec, &event);
      if (exec->twins != NULL && pod_twins_must_part (exec->twins))
        part (exec);
      if (exec->request->most_bytes > 0 && is_too_much (exec, error))
        return false;
      /* Only its own tasks carry the first rank to its next step */
      if (exec->steady != NULL && (is_to_look || (event.kind == POD_EXEC_TASK && event.index == 0)))
        is_to_look = pod_steady_look (exec->steady, exec);
      if (exec->request->is_interrupted != NULL && *exec->request->is_interrupted)
        {
          exec->end_ps = pod_event_queue_now (exec->queue);
          exec->is_partial = true;
          part (exec);
          return true;
        }
    }
  part (exec);
  if (pod_runner_n_unfinished (exec->runner) == 0)
    return true;
  pod_exec_report_deadlock (exec->request, exec->fold, exec->runner, pod_event_queue_now (exec->queue), error);
  return false;
}

/* What is not recorded of a leader's twins is counted too. */
static void
set_n_like (PodExec *exec)
{
  exec->n_like = g_new0 (uint32_t, exec->fold->n_ranks);
  for (uint32_t i = 0; i < pod_exec_n_running (exec); i++)
    exec->n_like[pod_exec_running (exec, i)] = pod_twins_n_like (exec->twins, exec->fold, pod_exec_running (exec, i));
  pod_recorder_twins (exec->recorder, exec->n_like);
}

static void
exec_clear (PodExec *exec)
{
  pod_islands_free (exec->islands);
  pod_steady_free (exec->steady);
  pod_twins_free (exec->twins);
  g_free (exec->n_like);
  pod_contention_free (exec->contention);
  g_free (exec->wait_s);
  pod_exec_clear_meetings (exec);
  pod_recorder_free (exec->recorder);
  pod_account_free (exec->account);
  pod_runner_free (exec->runner);
  pod_network_free (exec->network);
  pod_exec_packets_free (exec->packets);
  pod_event_queue_free (exec->queue);
  pod_task_graph_free (exec->graph);
  pod_fold_free (exec->fold);
  pod_routes_free (exec->routes);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodExec, exec_clear)

PodExecResult *
pod_exec_run (const PodExecRequest *request, GError **error)
{
  g_auto (PodExec) exec = { .request = request, .program = request->program };
  g_autoptr (GArray) kernels = NULL;
  PodObserver observer = { .context = &exec, .started = pod_exec_started, .joined = pod_exec_joined, .ended = pod_exec_ended };
  const bool is_packet = request->network == POD_NETWORK_PACKET && request->fidelity != POD_FIDELITY_BOOK;

  pod_exec_software (request, &exec.software);
  kernels = pod_exec_price_kernels (request, &exec.software, error);
  if (kernels == NULL)
    return NULL;
  exec.wait_s = pod_exec_price_launches (request->program, &exec.software, kernels);
  exec.routes = pod_routes_new (request, is_packet || !request->is_folded, error);
  if (exec.routes == NULL)
    return NULL;
  exec.fold = pod_fold_new (request->topology, request->fidelity, request->program, exec.routes->routes, exec.routes->symmetry,
                            is_packet || !request->is_folded);
  g_clear_pointer (&exec.routes->symmetry, pod_symmetry_free); /* the fold knows what is left of it */
  if (request->fidelity != POD_FIDELITY_BOOK && !pod_network_check_rates (exec.fold->n_links, exec.fold->capacity, error))
    return NULL;
  exec.graph = pod_exec_compile (&exec, kernels, request->is_recording_none && !is_packet && (request->is_folded || request->program->classes->len == 1));
  exec.queue = pod_event_queue_new ();
  pod_exec_make_meetings (&exec);
  if (is_packet)
    exec.packets = pod_exec_packets_new (request, exec.routes, exec.queue, POD_EXEC_PACKETS, pod_exec_transfer_done, &exec, error);
  if (is_packet && exec.packets == NULL)
    return NULL;
  exec.account = pod_account_new (request->program, exec.fold->n_ranks, exec.fold->class_of);
  exec.recorder = pod_recorder_new (request, exec.fold);
  exec.runner = pod_runner_new (exec.queue, POD_EXEC_TASK, exec.graph, exec.fold->n_ranks, exec.fold->class_of, &observer);
  exec.is_recording = !request->is_recording_none;
  if (request->fidelity != POD_FIDELITY_BOOK)
    exec.contention = pod_contention_new (exec.runner, exec.fold->n_ranks, kernels);
  if (request->is_recording_none && !is_packet)
    exec.steady = pod_steady_new ();
  if (request->is_folded && !is_packet && request->fidelity != POD_FIDELITY_BOOK)
    exec.twins = pod_twins_new (&exec);
  if (exec.twins != NULL)
    set_n_like (&exec);
  if (exec.steady != NULL && request->is_folded && request->fidelity != POD_FIDELITY_BOOK)
    exec.islands = pod_islands_new (&exec);
  g_clear_pointer (&exec.fold->capacity, g_free); /* the network has it by kind */
  if (!run_events (&exec, error))
    return NULL;
  g_clear_pointer (&exec.network, pod_network_free); /* makes room for the result */
  g_clear_pointer (&exec.runner, pod_runner_free);
  return pod_exec_collect (&exec, kernels);
}
