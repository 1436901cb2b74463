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
 * be those that it met on this stretch, and on as far as @reach; @most times is enough. O(steps). */
uint32_t pod_runner_n_repeats (const PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to, uint32_t reach, uint32_t most);
/* Carries the rank over @n such stretches; what cannot be: a stream would wait for something else there than here. */
bool pod_runner_can_skip (const PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to, uint32_t n);
void pod_runner_skip (PodRunner *runner, uint32_t rank, uint32_t from, uint32_t to, uint32_t n);
/* -- places --
 * Where a rank stands, counted from its step: pod_runner_n_place numbers that are the same wherever it stands alike and goes on alike. Streams
 * whose head is outward, or far ahead, are told apart only by that. */

#define POD_PLACE_AHEAD 2 /* steps ahead of the rank's that a place knows of */

/* What a stream that is far ahead, or outward, waits for: tasks of another one. */
typedef struct
{
  uint32_t rank;
  uint32_t needs; /* so many must have ended */
  uint8_t lane;   /* on this one */
  uint8_t waiting; /* the stream's lane */
} PodLaneLimit;

/* From here on it is known when timed tasks end, which pod_runner_due says. */
void pod_runner_keep_due (PodRunner *runner);
guint pod_runner_n_place (const PodRunner *runner);
/* False when there is no such place: its program is done, a stream lags behind or runs far ahead, or something waits for an outward task. */
bool pod_runner_keep (const PodRunner *runner, uint32_t rank, int64_t *out);
/* Whether the rank's program goes on alike from @step as where @place was kept. */
bool pod_runner_fits (const PodRunner *runner, uint32_t rank, uint32_t step, const int64_t *place);
/* Whether all outward tasks have ended that what its streams have come to in @place waits for. */
bool pod_runner_is_fed (const PodRunner *runner, uint32_t rank, uint32_t step, const int64_t *place);
/* How many steps more, @most or fewer, the rank can go on in @place from @step on: all around are kin, and wait for nothing outward. */
uint32_t pod_runner_n_alike (const PodRunner *runner, uint32_t rank, uint32_t step, const int64_t *place, uint32_t most);
/* Whether a stream's head is outward in @place, but not in @before. */
bool pod_runner_turns_outward (const PodRunner *runner, const int64_t *before, const int64_t *place);
/* Appends (element-type PodLaneLimit) what must not be reached, for another stream would begin. */
void pod_runner_list_limits (const PodRunner *runner, uint32_t rank, GArray *out);
/* The same of streams that get far ahead on the way from @before to @place, at @step. False when one would begin there what it comes to. */
bool pod_runner_list_new_limits (const PodRunner *runner, uint32_t rank, const int64_t *before, uint32_t step, const int64_t *place, GArray *out);
/* Whether it has not been reached, as long as the stream is still far ahead or outward. */
bool pod_runner_is_within (const PodRunner *runner, const PodLaneLimit *limit, uint32_t step, const int64_t *place);
/* Puts the rank there. Ends of timed tasks are for pod_runner_resume. */
void pod_runner_put (PodRunner *runner, uint32_t rank, uint32_t step, const int64_t *place);
/* What of it runs does so no more: its ends are stale. */
void pod_runner_pause (PodRunner *runner, uint32_t rank);
/* The timed task that runs on @lane ends at @end_ps. */
void pod_runner_resume (PodRunner *runner, uint32_t rank, unsigned lane, int64_t end_ps);
/* Whether a timed task runs on @lane: when it ends, and its order on the queue. */
bool pod_runner_due (const PodRunner *runner, uint32_t rank, unsigned lane, int64_t *out_ps, uint64_t *out_order);
/* How many tasks of the first stream have ended. */
uint32_t pod_runner_n_ended (const PodRunner *runner, uint32_t rank);

/* What the head task of a stream is (false: the stream is done) and the dependency it waits for (stream, or -1 when it
 * runs or waits for peers): for deadlock reports. */
bool pod_runner_head (const PodRunner *runner, uint32_t rank, uint8_t stream, PodTaskEvent *out, int *out_waits_for);
