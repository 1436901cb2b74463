#pragma once

#include "engine/event-queue.h"
#include "engine/task-graph.h"

/* Runs a task graph on ranks. Everything else (network, memory, timeline) hangs on the observer. */

typedef struct
{
  uint32_t rank;   /* index of the represented rank */
  uint8_t stream;
  uint8_t released_by; /* stream whose end let it start; its own when it followed at once */
  uint32_t step;
  uint32_t op;
  int32_t microbatch;
} PodTaskEvent;

typedef struct
{
  void *context;
  /* A timed task begins; it ends by itself. */
  void (*started) (void *context, const PodTaskEvent *event, int64_t now_ps, int64_t end_ps);
  /* A joint task has been reached; the owner calls pod_runner_complete later (never from within). */
  void (*joined) (void *context, const PodTaskEvent *event, int64_t now_ps);
  /* A task (timed or joint) has ended. */
  void (*ended) (void *context, const PodTaskEvent *event, int64_t now_ps);
} PodObserver;

typedef struct PodRunner PodRunner;

/* Events of kind @event_kind belong to the runner. All borrowed; class_of_rank has n_ranks entries. */
PodRunner *pod_runner_new (PodEventQueue *queue, uint32_t event_kind, const PodTaskGraph *graph, uint32_t n_ranks,
                           const uint32_t *class_of_rank, const PodObserver *observer);
void pod_runner_free (PodRunner *runner);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodRunner, pod_runner_free)

/* Looks at every stream of a rank once, at the clock's time. */
void pod_runner_begin (PodRunner *runner, uint32_t rank);
void pod_runner_handle (PodRunner *runner, const PodEvent *event);
/* Ends the joint task that runs on this stream, now. O(streams x dependencies). */
void pod_runner_complete (PodRunner *runner, uint32_t rank, uint8_t stream);
/* Moves the end of the timed task that runs on this stream to @end_ps (>= now): its speed has changed. O(log pending). */
void pod_runner_retime (PodRunner *runner, uint32_t rank, uint8_t stream, int64_t end_ps);
/* Puts a rank that has not begun where another one of its class stands; events that are pending for that one are for the caller to push. */
void pod_runner_copy (PodRunner *runner, uint32_t from, uint32_t to);
/* Streams that still have tasks. 0 = all done; with an empty queue, more is a deadlock. */
uint64_t pod_runner_n_unfinished (const PodRunner *runner);
/* The step that the first stream of a rank is at. */
uint32_t pod_runner_step (const PodRunner *runner, uint32_t rank);
/* Does the task end that @event, of the runner's kind, was pushed for? */
bool pod_runner_is_live (const PodRunner *runner, const PodEvent *event);
/* Appends (element-type int64_t) what decides how a rank goes on, its program apart, counted from its step @from. */
void pod_runner_save (const PodRunner *runner, uint32_t rank, uint32_t from, GArray *out);
/* A rank has come from step @from to step @to, where it stands as it stood: how often the steps that it meets, and as many more, go on to
 * be those that it met on this stretch. O(steps). */
uint32_t pod_runner_n_repeats (const PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to);
/* Carries the rank over @n such stretches; what cannot be: a stream would wait for something else there than here. */
bool pod_runner_can_skip (const PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to, uint32_t n);
void pod_runner_skip (PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to, uint32_t n);
/* What the head task of a stream is (false: the stream is done) and the dependency it waits for (stream, or -1 when it
 * runs or waits for peers): for deadlock reports. */
bool pod_runner_head (const PodRunner *runner, uint32_t rank, uint8_t stream, PodTaskEvent *out, int *out_waits_for);
