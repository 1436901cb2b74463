#pragma once

#include "engine/runner.h"

/* What runner.c (tasks that start and end), runner-skip.c (stretches that are not run) and runner-place.c (where a rank stands, to be put there
 * again) share. In here streams are told by their lanes (task-graph.h). */

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
static inline uint64_t
tag_of (const Stream *stream, unsigned s)
{
  return ((uint64_t) stream->generation << 8) | s;
}

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
  PodDue *due;     /* (nullable) by the same: when the timed task that runs ends */
  uint64_t n_unfinished;
};

static inline const PodClassProgram *
program_of (const PodRunner *runner, uint32_t rank)
{
  return &g_array_index (runner->graph->classes, PodClassProgram, runner->class_of_rank[rank]);
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
  if ((stream->flags & ~IS_RUNNING) == 0 || needs < stream->wake_at)
    stream->wake_at = needs;
  stream->flags |= UINT32_C (1) << s;
}

