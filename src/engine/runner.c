#include "engine/runner.h"

/* One stream of one rank: 28 bytes, for a rank's streams are all in as few cache lines as may be. */
typedef struct
{
  uint32_t head;       /* index of the task; NO_TASK when done */
  uint32_t n_ended;    /* tasks that have ended on it */
  uint32_t end;        /* n_ended when those of its step have */
  uint32_t step;       /* step of its head task; n_steps when done */
  uint32_t generation; /* of the end event that counts: older ones are stale */
  uint32_t flags;      /* IS_RUNNING, and a bit for each stream whose head waits for a task of this one */
  uint32_t wake_at;    /* with any of these: the least n_ended that one of them waits for */
} Stream;

#define NO_TASK UINT32_MAX

#define IS_RUNNING (UINT32_C (1) << 31)
#define MAX_STREAMS 31

/* In here streams are told by their lanes (task-graph.h): @s is one. An end event's tag: the lane, and the generation it was made for. */
static uint64_t
tag_of (const Stream *stream, unsigned s)
{
  return ((uint64_t) stream->generation << 8) | s;
}

struct PodRunner
{
  PodEventQueue *queue;
  uint32_t event_kind;
  const PodTaskGraph *graph;
  unsigned n_streams;
  uint32_t n_ranks;
  const uint32_t *class_of_rank;
  PodObserver observer;
  Stream *streams; /* n_ranks x n_streams */
  uint64_t n_unfinished;
};

static const PodClassProgram *
program_of (const PodRunner *runner, uint32_t rank)
{
  return &g_array_index (runner->graph->classes, PodClassProgram, runner->class_of_rank[rank]);
}

/* Puts the head of a stream where its count of ended tasks says, at its step or a later one. */
static G_GNUC_NO_INLINE void
find_head (const PodRunner *runner, const PodClassProgram *program, Stream *stream, unsigned s)
{
  const unsigned n = runner->n_streams;
  const PodBlock *block;

  while (stream->step < program->n_steps && stream->n_ended >= program->base[((size_t) stream->step + 1) * n + s])
    stream->step++;
  stream->head = NO_TASK;
  if (stream->step >= program->n_steps)
    return;
  block = &g_array_index (runner->graph->blocks, PodBlock, program->steps[stream->step].block);
  stream->end = program->base[((size_t) stream->step + 1) * n + s];
  stream->head = block->first_task[s] + stream->n_ended - program->base[(size_t) stream->step * n + s];
}

static inline const PodTask *
task_at (const PodRunner *runner, uint32_t index)
{
  return &g_array_index (runner->graph->tasks, PodTask, index);
}

/* The stream that the head task still waits for, or -1. @out_needs: how many of its tasks must have ended */
static inline int
waits_for (const PodRunner *runner, const PodClassProgram *program, const Stream *streams, uint32_t step, const PodTask *task, uint32_t *out_needs)
{
  const PodTaskDep *deps = &g_array_index (runner->graph->deps, PodTaskDep, task->first_dep);
  const uint32_t *base = program->base + (size_t) step * runner->n_streams;

  for (uint32_t i = 0; i < task->n_deps; i++)
    if ((int64_t) streams[deps[i].stream].n_ended < (int64_t) base[deps[i].stream] + deps[i].count)
      {
        *out_needs = (uint32_t) ((int64_t) base[deps[i].stream] + deps[i].count);
        return deps[i].stream;
      }
  return -1;
}

static inline void
describe (const PodRunner *runner, const PodClassProgram *program, const Stream *stream, uint32_t rank, unsigned s, unsigned released_by, PodTaskEvent *out)
{
  *out = (PodTaskEvent){ .rank = rank,
                         .stream = runner->graph->stream_of_lane[s],
                         .released_by = runner->graph->stream_of_lane[released_by],
                         .step = stream->step,
                         .op = task_at (runner, stream->head)->op,
                         .microbatch = program->steps[stream->step].microbatch };
}

/* Stream @s is to be tried when @needs tasks of @stream have ended. */
static inline void
wait_on (Stream *stream, unsigned s, uint32_t needs)
{
  if ((stream->flags & ~IS_RUNNING) == 0 || needs < stream->wake_at)
    stream->wake_at = needs;
  stream->flags |= UINT32_C (1) << s;
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
  pod_event_queue_push (runner->queue, now_ps + task->duration_ps, 1, runner->event_kind, rank, tag_of (stream, s));
  runner->observer.started (runner->observer.context, &event, now_ps, now_ps + task->duration_ps);
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
  for (uint32_t rank = 0; rank < n_ranks; rank++)
    for (unsigned s = 0; s < runner->n_streams; s++)
      {
        Stream *stream = &runner->streams[(size_t) rank * runner->n_streams + s];

        find_head (runner, program_of (runner, rank), stream, s);
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
    }
}

static void
complete (PodRunner *runner, uint32_t rank, unsigned s)
{
  const PodClassProgram *program = program_of (runner, rank);
  Stream *stream = runner->streams + (size_t) rank * runner->n_streams + s;
  uint32_t waiting = stream->flags & ~IS_RUNNING;
  uint32_t woken = UINT32_C (1) << s;
  PodTaskEvent event;

  g_assert ((stream->flags & IS_RUNNING) != 0);
  describe (runner, program, stream, rank, s, s, &event);
  stream->generation++;
  stream->head++;
  if (++stream->n_ended == stream->end)
    {
      find_head (runner, program, stream, s);
      runner->n_unfinished -= stream->head == NO_TASK;
    }
  if (waiting != 0 && stream->n_ended >= stream->wake_at)
    {
      woken |= waiting;
      waiting = 0;
    }
  stream->flags = waiting;
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

  if (tag_of (runner->streams + (size_t) event->index * runner->n_streams + s, s) == event->tag)
    complete (runner, event->index, s);
}

void
pod_runner_retime (PodRunner *runner, uint32_t rank, uint8_t stream_index, int64_t end_ps)
{
  const unsigned s = runner->graph->lane_of_stream[stream_index];
  Stream *stream = runner->streams + (size_t) rank * runner->n_streams + s;

  g_assert ((stream->flags & IS_RUNNING) != 0);
  stream->generation++;
  pod_event_queue_push (runner->queue, end_ps, 1, runner->event_kind, rank, tag_of (stream, s));
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

/* -- skipping ---------------------------------------------------------------------------------------------------------------------- */

uint32_t
pod_runner_step (const PodRunner *runner, uint32_t rank)
{
  return runner->streams[(size_t) rank * runner->n_streams].step;
}

bool
pod_runner_is_live (const PodRunner *runner, const PodEvent *event)
{
  const uint8_t s = (uint8_t) event->tag;

  return tag_of (runner->streams + (size_t) event->index * runner->n_streams + s, s) == event->tag;
}

/* A stream stands by how many of its tasks have ended; at which step its head is follows from that, and may be far ahead. */
void
pod_runner_save (const PodRunner *runner, uint32_t rank, uint32_t from, GArray *out)
{
  const uint32_t *base = program_of (runner, rank)->base + (size_t) from * runner->n_streams;
  int64_t state[2 * MAX_STREAMS];

  for (unsigned s = 0; s < runner->n_streams; s++)
    {
      const Stream *stream = &runner->streams[(size_t) rank * runner->n_streams + s];

      state[2 * s] = (int64_t) stream->n_ended - base[s];
      state[2 * s + 1] = stream->flags;
    }
  g_array_append_vals (out, state, 2 * runner->n_streams);
}

static uint32_t
tasks_between (const PodRunner *runner, const PodClassProgram *program, unsigned s, uint32_t from, uint32_t to)
{
  return program->base[(size_t) to * runner->n_streams + s] - program->base[(size_t) from * runner->n_streams + s];
}

/* The step whose task the stream's head would be with @n_ended ended: not after @from. */
static uint32_t
step_back (const PodRunner *runner, const PodClassProgram *program, unsigned s, uint32_t from, uint32_t n_ended)
{
  while (from > 0 && program->base[(size_t) from * runner->n_streams + s] > n_ended)
    from--;
  return from;
}

/* The steps that streams met on the stretch. Those without a task in it wait for a step far ahead, or are done. */
static bool
find_window (const PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to, uint32_t *out_first, uint32_t *out_last)
{
  const PodClassProgram *program = program_of (runner, rank);

  *out_first = from;
  *out_last = to;
  for (unsigned s = 0; s < runner->n_streams; s++)
    {
      const Stream *stream = &runner->streams[(size_t) rank * runner->n_streams + s];
      const uint32_t n_tasks = tasks_between (runner, program, s, from, to);

      if (n_tasks == 0)
        continue;
      if (stream->n_ended < n_tasks)
        return false;
      *out_first = MIN (*out_first, step_back (runner, program, s, MIN (stream->step, program->n_steps), stream->n_ended - n_tasks));
      *out_last = MAX (*out_last, stream->step);
    }
  return *out_last < program->n_steps;
}

static uint32_t
like_of (const PodRunner *runner, const PodClassProgram *program, uint32_t step)
{
  return g_array_index (runner->graph->blocks, PodBlock, program->steps[step].block).like;
}

uint32_t
pod_runner_n_repeats (const PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to)
{
  const PodClassProgram *program = program_of (runner, rank);
  uint32_t first, last, same;

  if (to <= from || !find_window (runner, rank, from, to, &first, &last))
    return 0;
  for (same = first; same + (to - from) < program->n_steps && like_of (runner, program, same) == like_of (runner, program, same + (to - from)); same++)
    ;
  return same > last ? (same - 1 - last) / (to - from) : 0;
}

/* The stream that stands where @stream does, @n stretches later. */
static Stream
moved_stream (const PodRunner *runner, const PodClassProgram *program, const Stream *stream, unsigned s, uint32_t from, uint32_t to, uint32_t n)
{
  const uint32_t n_tasks = tasks_between (runner, program, s, from, to);
  Stream moved = *stream;

  if (n_tasks == 0)
    return moved;
  moved.n_ended += n * n_tasks;
  moved.step = step_back (runner, program, s, MIN (stream->step + n * (to - from), program->n_steps), moved.n_ended);
  find_head (runner, program, &moved, s);
  return moved;
}

bool
pod_runner_can_skip (const PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to, uint32_t n)
{
  const PodClassProgram *program = program_of (runner, rank);
  const Stream *streams = runner->streams + (size_t) rank * runner->n_streams;
  Stream moved[MAX_STREAMS];
  uint32_t needs;

  for (unsigned s = 0; s < runner->n_streams; s++)
    moved[s] = moved_stream (runner, program, &streams[s], s, from, to, n);
  for (unsigned s = 0; s < runner->n_streams; s++)
    {
      if (streams[s].head == NO_TASK || moved[s].head == NO_TASK)
        {
          if (streams[s].head != moved[s].head)
            return false;
          continue;
        }
      if ((streams[s].flags & IS_RUNNING) != 0
              ? task_at (runner, streams[s].head)->like != task_at (runner, moved[s].head)->like
              : waits_for (runner, program, streams, streams[s].step, task_at (runner, streams[s].head), &needs)
                    != waits_for (runner, program, moved, moved[s].step, task_at (runner, moved[s].head), &needs))
        return false;
    }
  return true;
}

void
pod_runner_skip (PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to, uint32_t n)
{
  const PodClassProgram *program = program_of (runner, rank);
  Stream *streams = runner->streams + (size_t) rank * runner->n_streams;
  uint32_t needs;

  for (unsigned s = 0; s < runner->n_streams; s++)
    streams[s] = moved_stream (runner, program, &streams[s], s, from, to, n);
  for (unsigned s = 0; s < runner->n_streams; s++)
    streams[s].flags &= IS_RUNNING;
  for (unsigned s = 0; s < runner->n_streams; s++)
    if (streams[s].head != NO_TASK && (streams[s].flags & IS_RUNNING) == 0)
      {
        const int waits = waits_for (runner, program, streams, streams[s].step, task_at (runner, streams[s].head), &needs);

        if (waits >= 0)
          wait_on (&streams[waits], s, needs);
      }
}
