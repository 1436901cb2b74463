#include <math.h>
#include <string.h>

#include "exec/run-private.h"

/* What happens when tasks begin, meet and end: memory, account, contention, and bytes on the network. */

static const PodOp *
op_of (const PodExec *exec, const PodTaskEvent *event)
{
  return &g_array_index (exec->program->ops, PodOp, event->op);
}

static uint32_t
channel_of (const PodOp *op)
{
  return op->stream == POD_STREAM_REDUCE;
}

static void
make_ops (PodExec *exec)
{
  const GArray *ops = exec->program->ops;

  exec->ops = g_new0 (PodExecOp, ops->len + 1);
  for (guint i = 0; i < ops->len; i++)
    {
      const PodOp *op = &g_array_index (ops, PodOp, i);

      exec->ops[i] = (PodExecOp){ .kind = (uint8_t) op->kind, .phase = op->phase, .kernel = op->kernel };
      if (op->kind != POD_OP_COLLECTIVE)
        continue;
      exec->ops[i].comm = op->comm;
      exec->ops[i].use = exec->routes->use_of_op[i];
      exec->ops[i].channel = (uint8_t) channel_of (op);
      exec->ops[i].axis = (uint8_t) ((const PodCommunicator *) g_ptr_array_index (exec->program->communicators, op->comm))->axis;
      exec->ops[i].is_send = op->collective == POD_SEND;
    }
}

static void
count_channels (PodExec *exec)
{
  const GArray *ops = exec->program->ops;

  exec->n_channels = g_new (uint32_t, exec->fold->n_comms + 1);
  for (uint32_t k = 0; k < exec->fold->n_comms; k++)
    exec->n_channels[k] = 1;
  for (guint i = 0; i < ops->len; i++)
    if (exec->ops[i].kind == POD_OP_COLLECTIVE)
      exec->n_channels[exec->ops[i].comm] = MAX (exec->n_channels[exec->ops[i].comm], exec->ops[i].channel + 1U);
}

static void
make_meetings (PodExec *exec)
{
  const PodFold *fold = exec->fold;
  uint32_t n = 0;

  count_channels (exec);
  exec->first_meeting = g_new0 (uint32_t, fold->n_comms + 1);
  for (uint32_t k = 0; k < fold->n_comms; k++)
    {
      exec->first_meeting[k] = n;
      n += exec->n_channels[k] * fold->n_groups[k];
    }
  exec->first_meeting[fold->n_comms] = n;
  exec->meetings = g_new0 (PodMeeting *, n + 1);
}

static PodMeeting *
open_meeting (PodExec *exec, uint32_t comm, uint32_t index)
{
  const uint32_t group = pod_exec_meeting_group (exec, comm, index);
  const uint32_t n = pod_fold_n_expected (exec->fold, comm, group);
  PodMeeting *meeting = g_malloc (sizeof *meeting + n * sizeof (PodArrival));

  g_assert (exec->meetings[index] == NULL);
  *meeting = (PodMeeting){ .index = index, .group = group, .n_expected = n };
  return exec->meetings[index] = meeting;
}

PodMeeting *
pod_exec_open_meeting (PodExec *exec, uint32_t index)
{
  uint32_t comm = 0;

  for (uint32_t end = exec->fold->n_comms; comm + 1 < end;)
    {
      const uint32_t middle = comm + (end - comm) / 2;

      if (exec->first_meeting[middle] <= index)
        comm = middle;
      else
        end = middle;
    }
  return open_meeting (exec, comm, index);
}

static void
meeting_free (PodMeeting *meeting)
{
  if (meeting == NULL)
    return;
  g_free (meeting->path);
  g_free (meeting);
}

void
pod_exec_close_meeting (PodExec *exec, uint32_t index)
{
  g_clear_pointer (&exec->meetings[index], meeting_free);
}

/* What each collective takes of the devices that run it: cores as its library does, HBM bandwidth by the bytes it reads and
 * writes over the time it takes alone. Nothing at fidelity book. */
static void
make_shares (PodExec *exec)
{
  const PodExecRequest *request = exec->request;
  const PodChip *chip = request->topology->chip;
  const PodLibraryDevice *device = request->library != NULL && request->fidelity == POD_FIDELITY_CALIBRATED ? pod_library_device (request->library, chip) : NULL;
  const double cores = device != NULL && chip->cores_per_chip > 0 ? MIN (device->n_sms * (double) chip->devices_per_chip / chip->cores_per_chip, 1) : 0;

  for (guint u = 0; u < exec->routes->uses->len; u++)
    {
      const PodCollectiveUse *use = &g_array_index (exec->routes->uses, PodCollectiveUse, u);
      const PodPlan *plan = pod_route_plan (&g_array_index (exec->routes->routes, PodRoute, g_array_index (exec->routes->use_routes, uint32_t, u)), 0);
      const double hbm = use->alone_s > 0 ? (double) use->bytes * plan->hbm_bytes_ratio / use->alone_s / pod_chip_hbm_rate (chip, false) : 0;

      exec->uses[u].share = (PodShare){ .cores = (uint32_t) (cores * POD_SHARE_ONE), .hbm = (uint32_t) (MIN (hbm, 1) * POD_SHARE_ONE) };
    }
}

static void
make_uses (PodExec *exec)
{
  exec->uses = g_new0 (PodExecUse, exec->routes->uses->len + 1);
  for (guint u = 0; u < exec->routes->uses->len; u++)
    exec->uses[u].route = g_array_index (exec->routes->use_routes, uint32_t, u);
  if (exec->request->fidelity != POD_FIDELITY_BOOK)
    make_shares (exec);
}

/* The book prices a collective by V/W and knows no links; but weights gathered and gradients reduced over one axis share that
 * axis. So each group is one link of its own, a byte of which is a picosecond of the book's time. */
static PodNetwork *
book_network (PodExec *exec)
{
  const PodFold *fold = exec->fold;
  const uint32_t n_meetings = exec->first_meeting[fold->n_comms];
  g_autofree double *capacity = g_new (double, n_meetings + 1);
  uint32_t n_groups = 0;

  exec->book_paths = g_new (PodPathEntry, n_meetings + 1);
  for (uint32_t k = 0; k < fold->n_comms; k++)
    {
      for (uint32_t i = 0; i < exec->n_channels[k] * fold->n_groups[k]; i++)
        exec->book_paths[exec->first_meeting[k] + i] = (PodPathEntry){ .link = n_groups + i / exec->n_channels[k], .share_q32 = UINT64_C (1) << 32 };
      n_groups += fold->n_groups[k];
    }
  for (uint32_t g = 0; g < n_groups; g++)
    capacity[g] = 1e12;
  return pod_network_new (POD_NETWORK_FLOW, exec->queue, POD_EXEC_NETWORK, n_groups, capacity, pod_exec_transfer_done, exec);
}

void
pod_exec_make_meetings (PodExec *exec)
{
  const bool is_book = exec->request->fidelity == POD_FIDELITY_BOOK;
  const PodNetworkMode mode = exec->request->network == POD_NETWORK_PACKET ? POD_NETWORK_ANALYTIC : exec->request->network;

  make_ops (exec);
  make_meetings (exec);
  exec->network = is_book ? book_network (exec)
                          : pod_network_new (mode, exec->queue, POD_EXEC_NETWORK, exec->fold->n_links, exec->fold->capacity, pod_exec_transfer_done, exec);
  make_uses (exec);
}

void
pod_exec_clear_meetings (PodExec *exec)
{
  for (uint32_t m = 0; exec->first_meeting != NULL && m < exec->first_meeting[exec->fold->n_comms]; m++)
    meeting_free (exec->meetings[m]);
  g_free (exec->uses);
  g_free (exec->ops);
  g_free (exec->book_paths);
  g_free (exec->meetings);
  g_free (exec->n_channels);
  g_free (exec->first_meeting);
}

static inline void
apply_effects (PodExec *exec, const PodTaskEvent *event, bool is_at_end, int64_t now_ps)
{
  if (pod_account_effects (exec->account, event->rank, event->op, is_at_end, now_ps) && exec->is_recording)
    pod_recorder_memory (exec->recorder, event->rank, now_ps, pod_account_memory (exec->account, event->rank));
}

/* Returns: (transfer none) the path of a meeting's bytes while they move */
static const PodPathEntry *
make_path (PodExec *exec, PodMeeting *meeting, const PodRoute *route, uint32_t r, const PodFoldedPath *path)
{
  g_assert (meeting->path == NULL);
  meeting->path = g_new (PodPathEntry, path->n_entries);
  pod_fold_path (exec->fold, route, r, path->group, meeting->path);
  return meeting->path;
}

/* The bytes of a meeting begin to move. */
static uint32_t
start_bytes (PodExec *exec, PodMeeting *meeting, uint32_t u)
{
  const PodCollectiveUse *use = &g_array_index (exec->routes->uses, PodCollectiveUse, u);
  const uint32_t r = exec->uses[u].route;
  const PodFoldedPath path = exec->twins != NULL ? *pod_twins_path (exec->twins, r, meeting->group) : pod_fold_path_of (exec->fold, r, meeting->group);
  const PodRoute *route = &g_array_index (exec->routes->routes, PodRoute, r);
  const PodPlan *plan = pod_route_plan (route, path.group);
  const uint32_t tag = meeting->index;

  if (exec->request->fidelity == POD_FIDELITY_BOOK)
    return pod_network_start (exec->network, &exec->book_paths[tag], 1, (uint64_t) g_array_index (exec->routes->use_book_ps, int64_t, u), 0, 1e-12, tag);
  if (exec->packets == NULL)
    return pod_network_start (exec->network, path.entries != NULL ? path.entries : make_path (exec, meeting, route, r, &path), path.n_entries,
                       (uint64_t) llround ((double) use->bytes * plan->busiest_ratio * (plan->wire_ratio > 0 ? plan->wire_ratio : 1) / pod_exec_rate_ratio (&exec->software, use->axis)), plan->latency_ps,
                       path.analytic_s_per_byte, tag);
  pod_exec_packets_start (exec->packets, u, path.group, tag);
  return 0;
}

/* Everyone is there. */
static void
start_meeting (PodExec *exec, PodMeeting *meeting, int64_t now_ps)
{
  const PodArrival *arrivals = meeting->arrivals;
  const uint32_t u = exec->ops[arrivals[0].event.op].use;

  if (exec->islands != NULL)
    pod_islands_touch (exec->islands, exec, meeting->index, exec->uses[u].route);
  meeting->start_ps = now_ps;
  for (uint32_t i = 0; i < meeting->n_arrived; i++)
    {
      apply_effects (exec, &arrivals[i].event, false, now_ps);
      if (exec->contention != NULL)
        pod_contention_take (exec->contention, arrivals[i].event.rank, exec->uses[u].share, now_ps);
    }
  meeting->transfer = start_bytes (exec, meeting, u);
}

void
pod_exec_joined (void *context, const PodTaskEvent *event, int64_t now_ps)
{
  PodExec *exec = context;
  const PodExecOp *op = &exec->ops[event->op];
  const uint32_t index = exec->first_meeting[op->comm] + exec->n_channels[op->comm] * pod_fold_group_of (exec->fold, op->comm, event->rank) + op->channel;
  PodMeeting *meeting = exec->meetings[index];

  if (exec->twins != NULL && pod_twins_hold (exec->twins, event, exec->uses[op->use].route))
    return;
  if (meeting == NULL)
    meeting = open_meeting (exec, op->comm, index);
  g_assert (meeting->n_arrived < meeting->n_expected);
  g_assert (meeting->n_arrived == 0 || exec->ops[meeting->arrivals[0].event.op].use == op->use);
  meeting->arrivals[meeting->n_arrived++] = (PodArrival){ .event = *event, .at_ps = now_ps };
  if (exec->is_recording)
    pod_recorder_arrive (exec->recorder, event, now_ps);
  if (meeting->n_arrived == meeting->n_expected)
    start_meeting (exec, meeting, now_ps);
}

/* Spans of both ends of a send are joined by an arrow. */
static void
record_meeting (PodExec *exec, const PodMeeting *meeting, int64_t now_ps)
{
  const PodArrival *arrivals = meeting->arrivals;
  const PodOp *op = op_of (exec, &arrivals[0].event);
  const PodCollectiveUse *use = &g_array_index (exec->routes->uses, PodCollectiveUse, exec->ops[arrivals[0].event.op].use);
  uint32_t from = POD_NO_SPAN;
  uint32_t to = POD_NO_SPAN;

  for (uint32_t i = 0; i < meeting->n_arrived; i++)
    {
      const PodTaskEvent *event = &arrivals[i].event;
      const uint32_t span = pod_recorder_end (exec->recorder, event, meeting->start_ps, now_ps);

      if (now_ps > meeting->start_ps)
        pod_recorder_rate (exec->recorder, event, meeting->start_ps, now_ps, use->busiest_bytes / ((double) (now_ps - meeting->start_ps) / 1e12));
      if (pod_stream_is_send (event->stream))
        from = span;
      else
        to = span;
    }
  if (op->collective == POD_SEND)
    pod_recorder_flow (exec->recorder, from, to);
}

/* A member's part in a meeting that has ended. */
static void
leave_meeting (PodExec *exec, const PodMeeting *meeting, const PodArrival *arrival, int64_t now_ps)
{
  const PodTaskEvent *event = &arrival->event;
  const PodExecOp *op = &exec->ops[event->op];
  const PodAccountSpan span = { .arrive_ps = arrival->at_ps,
                                .start_ps = meeting->start_ps,
                                .end_ps = now_ps,
                                .stream = event->stream,
                                .released_by = event->released_by,
                                .axis = op->axis,
                                .is_pipeline = op->is_send };

  pod_account_comm (exec->account, event->rank, &span);
  if (exec->contention != NULL)
    pod_contention_give_back (exec->contention, event->rank, exec->uses[op->use].share, now_ps);
}

void
pod_exec_transfer_done (void *context, uint32_t tag)
{
  PodExec *exec = context;
  PodMeeting *meeting = exec->meetings[tag];
  const PodArrival *arrivals = meeting->arrivals;
  const int64_t now_ps = pod_event_queue_now (exec->queue);

  if (exec->islands != NULL)
    pod_islands_let_go (exec->islands, exec, tag, exec->uses[exec->ops[arrivals[0].event.op].use].route);
  exec->meetings[tag] = NULL; /* its members may come for the next one from within complete */
  if (exec->is_recording)
    record_meeting (exec, meeting, now_ps);
  for (uint32_t i = 0; i < meeting->n_arrived; i++)
    leave_meeting (exec, meeting, &arrivals[i], now_ps);
  for (uint32_t i = 0; i < meeting->n_arrived; i++)
    pod_runner_complete (exec->runner, arrivals[i].event.rank, arrivals[i].event.stream);
  meeting_free (meeting);
}

void
pod_exec_started (void *context, const PodTaskEvent *event, int64_t now_ps, int64_t end_ps)
{
  PodExec *exec = context;
  const PodExecOp *op = &exec->ops[event->op];

  if (exec->is_recording)
    pod_recorder_arrive (exec->recorder, event, now_ps);
  if (op->kind == POD_OP_COPY)
    {
      const PodAccountSpan span = {
        .arrive_ps = now_ps, .start_ps = now_ps, .end_ps = end_ps, .stream = event->stream, .released_by = event->released_by, .axis = POD_AXIS_HOST };

      pod_account_comm (exec->account, event->rank, &span);
      apply_effects (exec, event, false, now_ps);
      return;
    }
  pod_account_compute (exec->account, event->rank, event->released_by, now_ps);
  apply_effects (exec, event, false, now_ps);
  if (exec->contention != NULL)
    pod_contention_compute (exec->contention, event->rank, event->stream, op->kernel, now_ps, end_ps);
}

void
pod_exec_ended (void *context, const PodTaskEvent *event, int64_t now_ps)
{
  PodExec *exec = context;
  const PodExecOp *op = &exec->ops[event->op];

  if (exec->is_recording && op->kind != POD_OP_COLLECTIVE)
    pod_recorder_end (exec->recorder, event, pod_recorder_arrived (exec->recorder, event), now_ps);
  if (op->kind == POD_OP_COMPUTE)
    {
      pod_account_compute_ended (exec->account, event->rank, op->phase, now_ps);
      if (exec->contention != NULL)
        pod_contention_compute_ended (exec->contention, event->rank);
    }
  apply_effects (exec, event, true, now_ps);
  exec->end_ps = MAX (exec->end_ps, now_ps);
}
