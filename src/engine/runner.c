#include "engine/runner-private.h"

void
pod_runner_find_head (const PodRunner *runner, const PodClassProgram *program, Stream *stream, unsigned s)
{
  const unsigned n = runner->n_streams;
  const PodBlock *block;

  while (stream->step < program->n_steps && stream->n_ended >= program->base[((size_t) stream->step + 1) * n + s])
    stream->step++;
  stream->head = NO_TASK;
  if (stream->step >= program->n_steps)
    return;
  block = &g_array_index (runner->graph->blocks, PodBlock, program->steps[stream->step].block);
  stream->head = block->first_task[s] + stream->n_ended - program->base[(size_t) stream->step * n + s];
}

static void
push_end (PodRunner *runner, uint32_t rank, unsigned s, int64_t end_ps)
{
  const uint64_t order = pod_event_queue_push (runner->queue, end_ps, 1, runner->event_kind, rank, tag_of (runner, rank, s));

  if (runner->due != NULL)
    runner->due[(size_t) rank * runner->n_streams + s] = (PodDue){ end_ps, order };
}

/* Starts the head of a stream when it is free and its dependencies have ended; else what it waits for will wake it. */
static void
try_stream (PodRunner *runner, const PodClassProgram *program, uint32_t rank, unsigned s, unsigned released_by)
{
  Stream *streams = runner->streams + (size_t) rank * runner->n_streams;
  Stream *stream = streams + s;
  const PodTask *task;
  PodTaskEvent event;
  uint32_t needs;
  int64_t now_ps;
  int waits;

  if ((stream->flags & IS_RUNNING) != 0 || stream->head == NO_TASK)
    return;
  task = task_at (runner, stream->head);
  waits = waits_for (runner, program, streams, stream->step, task, &needs);
  if (waits >= 0)
    {
      wait_on (&streams[waits], s, needs);
      return;
    }

  stream->flags |= IS_RUNNING;
  now_ps = pod_event_queue_now (runner->queue);
  describe (runner, program, stream, rank, s, released_by, &event);
  if (task->duration_ps == POD_JOINT)
    {
      runner->observer.joined (runner->observer.context, &event, now_ps);
      return;
    }
  push_end (runner, rank, s, now_ps + task->duration_ps);
  runner->observer.started (runner->observer.context, &event, now_ps, now_ps + task->duration_ps);
}

static bool
is_timed (const PodTaskGraph *graph, unsigned s)
{
  for (guint b = 0; b < graph->blocks->len; b++)
    {
      const PodBlock *block = &g_array_index (graph->blocks, PodBlock, b);

      for (uint32_t i = block->first_task[s]; i < block->first_task[s] + block->n_tasks[s]; i++)
        if (g_array_index (graph->tasks, PodTask, i).duration_ps != POD_JOINT)
          return true;
    }
  return false;
}

/* Most streams have joint tasks alone, of which no end is pending. */
static void
find_timed (PodRunner *runner)
{
  for (unsigned s = 0; s < runner->n_streams; s++)
    runner->timed_of_lane[s] = is_timed (runner->graph, s) ? (uint8_t) runner->n_timed++ : POD_NO_LANE;
  runner->generations = g_new0 (uint32_t, (size_t) runner->n_ranks * runner->n_timed + 1);
}

PodRunner *
pod_runner_new (PodEventQueue *queue, uint32_t event_kind, const PodTaskGraph *graph, uint32_t n_ranks,
                const uint32_t *class_of_rank, const PodObserver *observer)
{
  PodRunner *runner = g_new0 (PodRunner, 1);

  g_assert (graph->n_lanes > 0 && graph->n_lanes <= MAX_STREAMS);
  runner->queue = queue;
  runner->event_kind = event_kind;
  runner->graph = graph;
  runner->n_streams = graph->n_lanes;
  runner->n_ranks = n_ranks;
  runner->class_of_rank = class_of_rank;
  runner->observer = *observer;
  runner->streams = g_new0 (Stream, (size_t) n_ranks * graph->n_lanes);
  find_timed (runner);
  for (uint32_t rank = 0; rank < n_ranks; rank++)
    for (unsigned s = 0; s < runner->n_streams; s++)
      {
        Stream *stream = &runner->streams[(size_t) rank * runner->n_streams + s];

        pod_runner_find_head (runner, program_of (runner, rank), stream, s);
        runner->n_unfinished += stream->head != NO_TASK;
      }
  return runner;
}

void
pod_runner_free (PodRunner *runner)
{
  if (runner == NULL)
    return;
  g_free (runner->streams);
  g_free (runner->generations);
  g_free (runner->due);
  g_free (runner);
}

void
pod_runner_begin (PodRunner *runner, uint32_t rank)
{
  for (unsigned s = 0; s < runner->n_streams; s++)
    try_stream (runner, program_of (runner, rank), rank, s, s);
}

void
pod_runner_copy (PodRunner *runner, uint32_t from, uint32_t to)
{
  const Stream *source = runner->streams + (size_t) from * runner->n_streams;
  Stream *target = runner->streams + (size_t) to * runner->n_streams;

  g_assert (runner->class_of_rank[from] == runner->class_of_rank[to]);
  for (unsigned s = 0; s < runner->n_streams; s++)
    {
      runner->n_unfinished -= target[s].head != NO_TASK && source[s].head == NO_TASK;
      target[s] = source[s];
      if (runner->timed_of_lane[s] != POD_NO_LANE)
        *generation_of (runner, to, s) = *generation_of (runner, from, s);
    }
}

static void
complete (PodRunner *runner, uint32_t rank, unsigned s)
{
  const PodClassProgram *program = program_of (runner, rank);
  Stream *stream = runner->streams + (size_t) rank * runner->n_streams + s;
  uint32_t flags = stream->flags & ~IS_RUNNING;
  uint32_t woken = UINT32_C (1) << s;
  PodTaskEvent event;

  g_assert ((stream->flags & IS_RUNNING) != 0);
  describe (runner, program, stream, rank, s, s, &event);
  make_stale (runner, rank, s);
  stream->head++;
  if (++stream->n_ended == program->base[((size_t) stream->step + 1) * runner->n_streams + s])
    {
      pod_runner_find_head (runner, program, stream, s);
      runner->n_unfinished -= stream->head == NO_TASK;
    }
  if (flags != 0 && (flags -= WAKE_IN) < WAKE_IN)
    {
      woken |= flags;
      flags = 0;
    }
  stream->flags = flags;
  runner->observer.ended (runner->observer.context, &event, pod_event_queue_now (runner->queue));
  /* In the order of streams, as if all were tried: the others wait for something else, or run */
  for (uint32_t left = woken; left != 0; left &= left - 1)
    try_stream (runner, program, rank, (unsigned) __builtin_ctz (left), s);
}

void
pod_runner_complete (PodRunner *runner, uint32_t rank, uint8_t stream)
{
  complete (runner, rank, runner->graph->lane_of_stream[stream]);
}

void
pod_runner_handle (PodRunner *runner, const PodEvent *event)
{
  const uint8_t s = (uint8_t) event->tag;

  if (tag_of (runner, event->index, s) == event->tag)
    complete (runner, event->index, s);
}

void
pod_runner_retime (PodRunner *runner, uint32_t rank, uint8_t stream_index, int64_t end_ps)
{
  const unsigned s = runner->graph->lane_of_stream[stream_index];

  g_assert ((runner->streams[(size_t) rank * runner->n_streams + s].flags & IS_RUNNING) != 0);
  ++*generation_of (runner, rank, s);
  push_end (runner, rank, s, end_ps);
}

uint64_t
pod_runner_n_unfinished (const PodRunner *runner)
{
  return runner->n_unfinished;
}

bool
pod_runner_head (const PodRunner *runner, uint32_t rank, uint8_t stream, PodTaskEvent *out, int *out_waits_for)
{
  const PodClassProgram *program = program_of (runner, rank);
  const Stream *streams = runner->streams + (size_t) rank * runner->n_streams;
  const unsigned s = runner->graph->lane_of_stream[stream];
  uint32_t needs;

  if (s == POD_NO_LANE || streams[s].head == NO_TASK)
    return false;
  describe (runner, program, &streams[s], rank, s, s, out);
  *out_waits_for = (streams[s].flags & IS_RUNNING) != 0 ? -1 : waits_for (runner, program, streams, streams[s].step, task_at (runner, streams[s].head), &needs);
  if (*out_waits_for >= 0)
    *out_waits_for = runner->graph->stream_of_lane[*out_waits_for];
  return true;
}
