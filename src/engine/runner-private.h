#pragma once

#include "engine/runner.h"

/* What runner.c (tasks that start and end), runner-skip.c (stretches that are not run) and runner-place.c (where a rank stands, to be put there
 * again) share. In here streams are told by their lanes (task-graph.h). */

/* One stream of one rank: 16 bytes, for a rank's streams are all in as few cache lines as may be. */
typedef struct
{
  uint32_t head;    /* index of the task; NO_TASK when done */
  uint32_t n_ended; /* tasks that have ended on it */
  uint32_t step;    /* step of its head task; n_steps when done */
  uint32_t flags;   /* IS_RUNNING, and a bit of WAITING for each stream whose head waits for a task of this one; with any of these, in units of
                     * WAKE_IN, how many tasks are to end before one of them is tried: MOST_WAKE_IN where there are more */
} Stream;

#define NO_TASK UINT32_MAX

#define IS_RUNNING   (UINT32_C (1) << 31)
#define MAX_STREAMS  POD_MAX_STREAMS
#define WAKE_IN      (UINT32_C (1) << MAX_STREAMS)
#define WAITING      (WAKE_IN - 1)
#define MOST_WAKE_IN (IS_RUNNING / WAKE_IN - 1)

typedef struct
{
  int64_t at_ps;
  uint64_t order; /* on the queue */
} PodDue;

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
  uint8_t timed_of_lane[MAX_STREAMS]; /* POD_NO_LANE where all tasks are joint */
  unsigned n_timed;
  uint32_t *generations; /* n_ranks x n_timed: of the end event that counts: older ones are stale */
  PodDue *due;     /* (nullable) by the same: when the timed task that runs ends */
  uint64_t n_unfinished;
};

static inline const PodClassProgram *
program_of (const PodRunner *runner, uint32_t rank)
{
  return &g_array_index (runner->graph->classes, PodClassProgram, runner->class_of_rank[rank]);
}

/* In here streams are told by their lanes (task-graph.h): @s is one, with tasks that are timed. */
static inline uint32_t *
generation_of (const PodRunner *runner, uint32_t rank, unsigned s)
{
  return &runner->generations[(size_t) rank * runner->n_timed + runner->timed_of_lane[s]];
}

/* An end event's tag: the lane, and the generation it was made for. */
static inline uint64_t
tag_of (const PodRunner *runner, uint32_t rank, unsigned s)
{
  return ((uint64_t) *generation_of (runner, rank, s) << 8) | s;
}

/* The end of what runs on the stream, if that is timed, is stale from now on. */
static inline void
make_stale (const PodRunner *runner, uint32_t rank, unsigned s)
{
  if (runner->timed_of_lane[s] != POD_NO_LANE)
    ++*generation_of (runner, rank, s);
}

/* Puts the head of a stream where its count of ended tasks says, at its step or a later one. */
void pod_runner_find_head (const PodRunner *runner, const PodClassProgram *program, Stream *stream, unsigned s);
/* What streams that do not run wait for is found anew. */
void pod_runner_wait_anew (const PodRunner *runner, uint32_t rank);

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
  const uint32_t wake_in = MIN (needs - stream->n_ended, MOST_WAKE_IN) * WAKE_IN;

  if ((stream->flags & WAITING) == 0 || wake_in < (stream->flags & ~(IS_RUNNING | WAITING)))
    stream->flags = (stream->flags & (IS_RUNNING | WAITING)) | wake_in;
  stream->flags |= UINT32_C (1) << s;
}

