#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* The pending events, ordered by (time, priority, sequence): a total order, so a run is reproducible to the byte.
 * A ladder queue; no allocation per event once it has grown. Knows no hardware and no domain. */

typedef struct
{
  int64_t at_ps;
  uint64_t order;  /* priority << 56 | sequence: set by push */
  uint32_t kind;   /* which handler */
  uint32_t index;  /* what it is about: a stream, a transfer, ... */
  uint64_t tag;    /* the handler's own: a generation, to know stale events */
} PodEvent;

typedef struct PodEventQueue PodEventQueue;

PodEventQueue *pod_event_queue_new (void);
void pod_event_queue_free (PodEventQueue *queue);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodEventQueue, pod_event_queue_free)

/* Schedules. Refuses the past (programmer error: asserts at_ps >= now). Lower priority first at equal times. Returns: its order. Amortised O(1). */
uint64_t pod_event_queue_push (PodEventQueue *queue, int64_t at_ps, uint8_t priority, uint32_t kind, uint32_t index, uint64_t tag);
/* Takes the earliest and moves the clock there; false when empty. Amortised O(1). */
bool pod_event_queue_pop (PodEventQueue *queue, PodEvent *out);
/* The same, if it is earlier than @before_ps. */
bool pod_event_queue_pop_before (PodEventQueue *queue, int64_t before_ps, PodEvent *out);
/* Puts the clock where it was, or ahead again: for what is found to have happened while nobody looked. Nothing pending may be earlier. */
void pod_event_queue_set_now (PodEventQueue *queue, int64_t now_ps);
/* (nullable) The next event, if it is at the clock's time. O(1). */
const PodEvent *pod_event_queue_next_now (const PodEventQueue *queue);
/* Puts an event at the clock's time back that was popped, behind all others of its priority; it does not count as popped. */
void pod_event_queue_put_back (PodEventQueue *queue, const PodEvent *event);
/* (nullable) One of the events that are next, to fetch early what it is about: memory of a million entities is far away. */
const PodEvent *pod_event_queue_soon (const PodEventQueue *queue);
/* The time of the last event popped, 0 at first. */
int64_t pod_event_queue_now (const PodEventQueue *queue);
size_t pod_event_queue_n_pending (const PodEventQueue *queue);
uint64_t pod_event_queue_n_popped (const PodEventQueue *queue);
/* Appends all that is pending to @out (element-type PodEvent), in order. O(n log n). */
void pod_event_queue_list (const PodEventQueue *queue, GArray *out);
/* Moves the clock and all that is pending by @ps: for a stretch of time that is known to be like one that was simulated. O(pending). */
void pod_event_queue_skip (PodEventQueue *queue, int64_t ps);
/* Heap order and counts hold (POD_CHECK, tests). */
bool pod_event_queue_check (const PodEventQueue *queue);
