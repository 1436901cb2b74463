#include "exec/exec.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "exec/run-private.h"

/* Collectives of one group that may be in flight at once: weight gathers and gradient reductions have channels of their own,
 * as NCCL gives each its communicator. Ops of a channel meet in issue order. */
#define N_CHANNELS 2

void
pod_exec_software (const PodExecRequest *request, PodStepSoftware *out)
{
  pod_step_software_init (out);
  if (request->software != NULL && request->fidelity == POD_FIDELITY_CALIBRATED)
    *out = *request->software;
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

          if (op->kind == POD_OP_COLLECTIVE)
            n_launches++;
          if (op->kind != POD_OP_COMPUTE)
            continue;
          n_launches += pod_kernel_launches (software, &g_array_index (kernels, PodKernelUse, op->kernel).kernel);
          device_s += g_array_index (kernels, PodKernelUse, op->kernel).time.time_s;
        }
      if (n_launches > 0)
        wait_s[b] = MAX (0, software->launch_s - device_s / n_launches);
    }
  return wait_s;
}

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
      pod_seconds_to_ps (use->time.time_s + wait_s * pod_kernel_launches (software, &use->kernel), &g_array_index (graph->tasks, PodTask, i).duration_ps);
    }
}

/* The program as the engine's task graph: one task per op, in the op's place. @wait_s: by block, for each launch */
static PodTaskGraph *
compile (const PodProgram *program, const PodChip *chip, const PodStepSoftware *software, const GArray *kernels, const double *wait_s)
{
  PodTaskGraph *graph = pod_task_graph_new (POD_N_STREAMS);

  for (guint i = 0; i < program->ops->len; i++)
    {
      const PodOp *op = &g_array_index (program->ops, PodOp, i);
      PodTask task = { .duration_ps = POD_JOINT, .op = i, .first_dep = op->first_dep, .n_deps = op->n_deps };

      if (op->kind == POD_OP_COMPUTE)
        pod_seconds_to_ps (g_array_index (kernels, PodKernelUse, op->kernel).time.time_s, &task.duration_ps);
      else if (op->kind == POD_OP_COPY)
        pod_seconds_to_ps (pod_exec_copy_s (chip, op), &task.duration_ps);
      g_array_append_val (graph->tasks, task);
    }
  for (guint i = 0; i < program->deps->len; i++)
    {
      const PodOpDep *dep = &g_array_index (program->deps, PodOpDep, i);
      PodTaskDep out = { .stream = dep->stream, .count = dep->count };

      g_array_append_val (graph->deps, out);
    }
  for (guint i = 0; i < program->blocks->len; i++)
    {
      const PodOpBlock *block = &g_array_index (program->blocks, PodOpBlock, i);
      PodBlock out = { .n_tasks = { 0 } };

      memcpy (out.first_task, block->first_of_stream, sizeof block->first_of_stream);
      memcpy (out.n_tasks, block->n_of_stream, sizeof block->n_of_stream);
      g_array_append_val (graph->blocks, out);
      if (wait_s[i] > 0)
        add_waits (program, block, software, kernels, wait_s[i], graph);
    }
  G_STATIC_ASSERT (sizeof (PodOpStep) == sizeof (PodStep));
  for (guint i = 0; i < program->classes->len; i++)
    {
      const PodProgramClass *class = g_ptr_array_index (program->classes, i);
      PodClassProgram out = { .n_steps = class->steps->len, .steps = (const PodStep *) class->steps->data };

      g_array_append_val (graph->classes, out);
    }
  pod_task_graph_seal (graph);
  return graph;
}

static void
make_meetings (PodExec *exec)
{
  const PodFold *fold = exec->fold;
  uint32_t n = 0;

  exec->first_meeting = g_new0 (uint32_t, fold->n_comms + 1);
  for (uint32_t k = 0; k < fold->n_comms; k++)
    {
      exec->first_meeting[k] = n;
      n += N_CHANNELS * fold->n_groups[k];
    }
  exec->first_meeting[fold->n_comms] = n;
  exec->meetings = g_new0 (PodMeeting, n + 1);
  for (uint32_t k = 0; k < fold->n_comms; k++)
    for (uint32_t i = 0; i < N_CHANNELS * fold->n_groups[k]; i++)
      {
        PodMeeting *meeting = &exec->meetings[exec->first_meeting[k] + i];

        meeting->comm = k;
        meeting->group = i / N_CHANNELS;
        meeting->n_expected = fold->n_expected[k][meeting->group];
        meeting->events = g_new (PodTaskEvent, meeting->n_expected);
        meeting->arrive_ps = g_new (int64_t, meeting->n_expected);
      }
}

static const PodOp *
op_of (const PodExec *exec, const PodTaskEvent *event)
{
  return &g_array_index (exec->program->ops, PodOp, event->op);
}

static void
apply_effects (PodExec *exec, const PodTaskEvent *event, bool is_at_end, int64_t now_ps)
{
  if (pod_account_effects (exec->account, event->rank, op_of (exec, event), is_at_end, now_ps))
    pod_recorder_memory (exec->recorder, event->rank, now_ps, pod_account_memory (exec->account, event->rank));
}

double
pod_exec_rate_ratio (const PodStepSoftware *software, PodAxis axis)
{
  return axis == POD_AXIS_FSDP ? software->fsdp_rate_ratio : 1;
}

/* Everyone is there: the bytes move. */
static void
start_meeting (PodExec *exec, PodMeeting *meeting, int64_t now_ps)
{
  const uint32_t u = exec->routes->use_of_op[meeting->events[0].op];
  const PodCollectiveUse *use = &g_array_index (exec->routes->uses, PodCollectiveUse, u);
  const uint32_t r = g_array_index (exec->routes->use_routes, uint32_t, u);
  const PodRoute *route = &g_array_index (exec->routes->routes, PodRoute, r);
  const PodFoldedPath *path = &exec->fold->paths[r][meeting->group];
  const PodPlan *plan = route->plans[path->group];
  const uint32_t tag = (uint32_t) (meeting - exec->meetings);

  meeting->start_ps = now_ps;
  for (uint32_t i = 0; i < meeting->n_arrived; i++)
    {
      apply_effects (exec, &meeting->events[i], false, now_ps);
      if (exec->contention != NULL)
        pod_contention_take (exec->contention, meeting->events[i].rank, exec->share_of_use[u], now_ps);
    }
  if (exec->request->fidelity == POD_FIDELITY_BOOK)
    pod_network_start (exec->network, &exec->book_paths[tag / N_CHANNELS], 1, (uint64_t) g_array_index (exec->routes->use_book_ps, int64_t, u), 0, 1e-12, tag);
  else if (exec->packets != NULL)
    pod_exec_packets_start (exec->packets, u, path->group, tag);
  else
    pod_network_start (exec->network, path->entries, path->n_entries, (uint64_t) llround ((double) use->bytes * plan->busiest_ratio * (plan->wire_ratio > 0 ? plan->wire_ratio : 1) / pod_exec_rate_ratio (&exec->software, use->axis)), plan->latency_ps,
                       path->analytic_s_per_byte, tag);
}

static void
on_joined (void *context, const PodTaskEvent *event, int64_t now_ps)
{
  PodExec *exec = context;
  const PodOp *op = op_of (exec, event);
  const uint32_t channel = op->stream == POD_STREAM_REDUCE;
  PodMeeting *meeting = &exec->meetings[exec->first_meeting[op->comm] + N_CHANNELS * exec->fold->group_of[op->comm][event->rank] + channel];

  g_assert (meeting->n_arrived < meeting->n_expected);
  g_assert (meeting->n_arrived == 0 || exec->routes->use_of_op[meeting->events[0].op] == exec->routes->use_of_op[event->op]);
  meeting->events[meeting->n_arrived] = *event;
  meeting->arrive_ps[meeting->n_arrived] = now_ps;
  meeting->n_arrived++;
  pod_recorder_arrive (exec->recorder, event, now_ps);
  if (meeting->n_arrived == meeting->n_expected)
    start_meeting (exec, meeting, now_ps);
}

/* Spans of both ends of a send are joined by an arrow. */
static void
record_meeting (PodExec *exec, const PodMeeting *meeting, const PodTaskEvent *events, uint32_t n, int64_t now_ps)
{
  const PodOp *op = op_of (exec, &events[0]);
  const PodCollectiveUse *use = &g_array_index (exec->routes->uses, PodCollectiveUse, exec->routes->use_of_op[events[0].op]);
  uint32_t from = POD_NO_SPAN;
  uint32_t to = POD_NO_SPAN;

  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t span = pod_recorder_end (exec->recorder, &events[i], meeting->start_ps, now_ps);
      bool is_sender = pod_stream_is_send (events[i].stream);

      if (now_ps > meeting->start_ps)
        pod_recorder_rate (exec->recorder, &events[i], meeting->start_ps, now_ps, use->busiest_bytes / ((double) (now_ps - meeting->start_ps) / 1e12));
      if (is_sender)
        from = span;
      else
        to = span;
    }
  if (op->collective == POD_SEND)
    pod_recorder_flow (exec->recorder, from, to);
}

static void
on_transfer_done (void *context, uint32_t tag)
{
  PodExec *exec = context;
  PodMeeting *meeting = &exec->meetings[tag];
  const PodCommunicator *comm = g_ptr_array_index (exec->program->communicators, meeting->comm);
  const uint32_t n = meeting->n_arrived;
  const int64_t now_ps = pod_event_queue_now (exec->queue);
  PodTaskEvent few[8];
  g_autofree PodTaskEvent *many = n > G_N_ELEMENTS (few) ? g_new (PodTaskEvent, n) : NULL;
  PodTaskEvent *events = many != NULL ? many : few;

  memcpy (events, meeting->events, n * sizeof *events);
  record_meeting (exec, meeting, events, n, now_ps);
  for (uint32_t i = 0; i < n; i++)
    {
      PodAccountSpan span = { .arrive_ps = meeting->arrive_ps[i],
                              .start_ps = meeting->start_ps,
                              .end_ps = now_ps,
                              .stream = events[i].stream,
                              .released_by = events[i].released_by,
                              .axis = (uint8_t) comm->axis,
                              .is_pipeline = op_of (exec, &events[i])->collective == POD_SEND };

      pod_account_comm (exec->account, events[i].rank, &span);
      if (exec->contention != NULL)
        pod_contention_give_back (exec->contention, events[i].rank, exec->share_of_use[exec->routes->use_of_op[events[i].op]], now_ps);
    }
  meeting->n_arrived = 0; /* its members may come for the next one from within complete */
  for (uint32_t i = 0; i < n; i++)
    pod_runner_complete (exec->runner, events[i].rank, events[i].stream);
}

static void
on_started (void *context, const PodTaskEvent *event, int64_t now_ps, int64_t end_ps)
{
  PodExec *exec = context;

  if (op_of (exec, event)->kind == POD_OP_COPY)
    {
      const PodAccountSpan span = {
        .arrive_ps = now_ps, .start_ps = now_ps, .end_ps = end_ps, .stream = event->stream, .released_by = event->released_by, .axis = POD_AXIS_HOST };

      pod_recorder_arrive (exec->recorder, event, now_ps);
      pod_account_comm (exec->account, event->rank, &span);
      apply_effects (exec, event, false, now_ps);
      return;
    }
  pod_account_compute (exec->account, event->rank, event->released_by, now_ps);
  pod_recorder_arrive (exec->recorder, event, now_ps);
  apply_effects (exec, event, false, now_ps);
  if (exec->contention != NULL)
    pod_contention_compute (exec->contention, event->rank, event->stream, op_of (exec, event)->kernel, now_ps, end_ps);
}

static void
on_ended (void *context, const PodTaskEvent *event, int64_t now_ps)
{
  PodExec *exec = context;
  const PodOp *op = op_of (exec, event);

  if (op->kind == POD_OP_COMPUTE)
    {
      pod_recorder_end (exec->recorder, event, pod_recorder_arrived (exec->recorder, event), now_ps);
      pod_account_compute_ended (exec->account, event->rank, op->phase, now_ps);
      if (exec->contention != NULL)
        pod_contention_compute_ended (exec->contention, event->rank);
    }
  else if (op->kind == POD_OP_COPY)
    pod_recorder_end (exec->recorder, event, pod_recorder_arrived (exec->recorder, event), now_ps);
  apply_effects (exec, event, true, now_ps);
  exec->end_ps = MAX (exec->end_ps, now_ps);
}

/* The book prices a collective by V/W and knows no links; but weights gathered and gradients reduced over one axis share that
 * axis. So each group is one link of its own, a byte of which is a picosecond of the book's time. */
static PodNetwork *
book_network (PodExec *exec)
{
  const uint32_t n_groups = exec->first_meeting[exec->fold->n_comms] / N_CHANNELS;
  g_autofree double *capacity = g_new (double, n_groups + 1);

  exec->book_paths = g_new (PodPathEntry, n_groups + 1);
  for (uint32_t g = 0; g < n_groups; g++)
    {
      exec->book_paths[g] = (PodPathEntry){ .link = g, .share_q32 = UINT64_C (1) << 32 };
      capacity[g] = 1e12;
    }
  return pod_network_new (POD_NETWORK_FLOW, exec->queue, POD_EXEC_NETWORK, n_groups, capacity, on_transfer_done, exec);
}

/* Whether a rank holds more than the run may: then it is of no use any more. */
static bool
is_too_much (const PodExec *exec, GError **error)
{
  const double most = exec->request->most_bytes;

  if (!(most > 0 && pod_account_highest (exec->account) > most))
    return false;
  g_set_error (error, POD_ERROR, POD_ERROR_MEMORY, "a rank holds %.0f bytes at %g s, more than %.0f", pod_account_highest (exec->account),
               (double) pod_event_queue_now (exec->queue) / 1e12, most);
  return true;
}

static bool
run_events (PodExec *exec, GError **error)
{
  PodEvent event;

  pod_runner_begin (exec->runner);
  while (pod_event_queue_pop (exec->queue, &event))
    {
      if (event.kind == POD_EXEC_TASK)
        pod_runner_handle (exec->runner, &event);
      else if (event.kind == POD_EXEC_PACKETS)
        pod_exec_packets_handle (exec->packets, &event);
      else
        pod_network_handle (exec->network, &event);
      if (is_too_much (exec, error))
        return false;
      if (exec->steady != NULL)
        pod_steady_look (exec->steady, exec);
      if (exec->request->is_interrupted != NULL && *exec->request->is_interrupted)
        {
          exec->end_ps = pod_event_queue_now (exec->queue);
          exec->is_partial = true;
          return true;
        }
    }
  if (pod_runner_n_unfinished (exec->runner) == 0)
    return true;
  pod_exec_report_deadlock (exec->request, exec->fold, exec->runner, pod_event_queue_now (exec->queue), error);
  return false;
}

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
          result->losses_s[POD_LOSS_HOST] += n_runs[b] * exec->wait_s[b] * pod_kernel_launches (&exec->software, &kernel->kernel);
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
  uint32_t worst = 0;
  const int64_t *by_label;

  result->stage_peaks = g_array_sized_new (FALSE, TRUE, sizeof (double), program->classes->len);
  g_array_set_size (result->stage_peaks, program->classes->len);
  for (uint32_t i = 0; i < exec->fold->n_ranks; i++)
    {
      double peak = pod_account_peak (exec->account, i, NULL, NULL);
      double *stage = &g_array_index (result->stage_peaks, double, exec->fold->class_of[i]);

      *stage = MAX (*stage, peak);
      if (peak > pod_account_peak (exec->account, worst, NULL, NULL))
        worst = i;
    }
  result->worst_rank = exec->fold->rank[worst];
  result->peak_bytes = pod_account_peak (exec->account, worst, &result->peak_at_ps, &by_label);
  result->by_label = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint l = 0; l < program->labels->len; l++)
    {
      double bytes = (double) by_label[l];

      g_array_append_val (result->by_label, bytes);
      result->by_use[g_array_index (program->labels, PodBufferLabel, l).use] += bytes;
    }
}

static PodExecResult *
collect (PodExec *exec, GArray *kernels)
{
  PodExecResult *result = g_new0 (PodExecResult, 1);
  uint32_t critical = 0;

  result->time_ps = pod_account_finish (exec->account, exec->end_ps);
  result->is_partial = exec->is_partial;
  result->breakdowns = g_array_new (FALSE, FALSE, sizeof (PodBreakdown));
  for (uint32_t i = 0; i < exec->fold->n_ranks; i++)
    {
      PodBreakdown breakdown;

      pod_account_breakdown (exec->account, i, &breakdown);
      g_array_append_val (result->breakdowns, breakdown);
      if (pod_account_rank_own_time (exec->account, i) > pod_account_rank_own_time (exec->account, critical))
        critical = i;
    }
  result->critical_rank = exec->fold->rank[critical];
  result->breakdown = g_array_index (result->breakdowns, PodBreakdown, critical);
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

/* What each collective takes of the devices that run it: cores as its library does, HBM bandwidth by the bytes it reads and
 * writes over the time it takes alone. Nothing at fidelity book. */
static void
make_contention (PodExec *exec, const GArray *kernels)
{
  const PodExecRequest *request = exec->request;
  const PodChip *chip = request->topology->chip;
  const PodLibraryDevice *device = request->library != NULL && request->fidelity == POD_FIDELITY_CALIBRATED ? pod_library_device (request->library, chip) : NULL;
  const double cores = device != NULL && chip->cores_per_chip > 0 ? MIN (device->n_sms * (double) chip->devices_per_chip / chip->cores_per_chip, 1) : 0;

  if (request->fidelity == POD_FIDELITY_BOOK)
    return;
  exec->share_of_use = g_new0 (PodShare, exec->routes->uses->len + 1);
  for (guint u = 0; u < exec->routes->uses->len; u++)
    {
      const PodCollectiveUse *use = &g_array_index (exec->routes->uses, PodCollectiveUse, u);
      const PodPlan *plan = g_array_index (exec->routes->routes, PodRoute, g_array_index (exec->routes->use_routes, uint32_t, u)).plans[0];
      const double hbm = use->alone_s > 0 ? (double) use->bytes * plan->hbm_bytes_ratio / use->alone_s / pod_chip_hbm_rate (chip, false) : 0;

      exec->share_of_use[u] = (PodShare){ .cores = (uint32_t) (cores * POD_SHARE_ONE), .hbm = (uint32_t) (MIN (hbm, 1) * POD_SHARE_ONE) };
    }
  exec->contention = pod_contention_new (exec->runner, exec->fold->n_ranks, kernels);
}

static void
exec_clear (PodExec *exec)
{
  pod_steady_free (exec->steady);
  pod_contention_free (exec->contention);
  g_free (exec->share_of_use);
  g_free (exec->wait_s);
  g_free (exec->book_paths);
  if (exec->meetings != NULL)
    for (uint32_t i = 0; i < exec->first_meeting[exec->fold->n_comms]; i++)
      {
        g_free (exec->meetings[i].events);
        g_free (exec->meetings[i].arrive_ps);
      }
  g_free (exec->meetings);
  g_free (exec->first_meeting);
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
  PodObserver observer = { .context = &exec, .started = on_started, .joined = on_joined, .ended = on_ended };
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
  if (request->fidelity != POD_FIDELITY_BOOK && !pod_network_check_rates (exec.fold->n_links, exec.fold->capacity, error))
    return NULL;
  exec.graph = compile (request->program, request->topology->chip, &exec.software, kernels, exec.wait_s);
  exec.queue = pod_event_queue_new ();
  make_meetings (&exec);
  exec.network = request->fidelity == POD_FIDELITY_BOOK ? book_network (&exec)
                                                        : pod_network_new (request->network == POD_NETWORK_PACKET ? POD_NETWORK_ANALYTIC : request->network, exec.queue,
                                                                           POD_EXEC_NETWORK, exec.fold->n_links, exec.fold->capacity, on_transfer_done, &exec);
  if (is_packet)
    exec.packets = pod_exec_packets_new (request, exec.routes, exec.queue, POD_EXEC_PACKETS, on_transfer_done, &exec, error);
  if (is_packet && exec.packets == NULL)
    return NULL;
  exec.account = pod_account_new (request->program, exec.fold->n_ranks, exec.fold->class_of);
  exec.recorder = pod_recorder_new (request, exec.fold);
  exec.runner = pod_runner_new (exec.queue, POD_EXEC_TASK, exec.graph, exec.fold->n_ranks, exec.fold->class_of, &observer);
  make_contention (&exec, kernels);
  if (request->is_recording_none && !is_packet)
    exec.steady = pod_steady_new ();
  if (!run_events (&exec, error))
    return NULL;
  return collect (&exec, kernels);
}

void
pod_exec_result_free (PodExecResult *result)
{
  if (result == NULL)
    return;
  g_array_unref (result->breakdowns);
  g_array_unref (result->stage_peaks);
  g_array_unref (result->by_label);
  g_array_unref (result->collectives);
  g_array_unref (result->kernels);
  pod_timeline_free (result->timeline);
  g_free (result);
}
