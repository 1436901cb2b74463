#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* The pending events of the packet network: a heap of instants, each with a list of what happens
 * then, first in first out. Collectives run in step, so many packets arrive at one instant: they
 * cost a list append instead of a heap operation. The order is total: (time, order of push). */
typedef struct PodPacketQueue PodPacketQueue;

PodPacketQueue *pod_packet_queue_new (void);
void pod_packet_queue_free (PodPacketQueue *queue);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodPacketQueue, pod_packet_queue_free)

/* O(1) for an instant that is there, else O(log instants). No allocation once grown. */
void pod_packet_queue_push (PodPacketQueue *queue, int64_t at_ps, uint32_t kind, uint32_t index);
/* The earliest instant, or INT64_MAX. O(1). */
int64_t pod_packet_queue_next (const PodPacketQueue *queue);
/* Takes the first event, which must be there. */
void pod_packet_queue_pop (PodPacketQueue *queue, uint32_t *out_kind, uint32_t *out_index);
/* Heap order, lists and table agree (POD_CHECK, tests). O(events). */
bool pod_packet_queue_check (const PodPacketQueue *queue);
