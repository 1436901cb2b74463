#pragma once

#include "exec/exec-private.h"

/* The collectives of a run, message by message (packet mode): the message set of each use and
 * group. */
typedef struct PodExecPackets PodExecPackets;

/* Events of @event_kind on @queue are for pod_exec_packets_handle. Makes the messages of all uses
 * on all groups. Errors: UNSUPPORTED, LIMIT, INFEASIBLE, with the communicator in front. */
PodExecPackets *pod_exec_packets_new (const PodExecRequest *request, const PodRoutes *routes,
                                      PodEventQueue *queue, uint32_t event_kind,
                                      PodTransferDone done, void *context, GError **error);
void pod_exec_packets_free (PodExecPackets *packets);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodExecPackets, pod_exec_packets_free)

/* The collective of @use on @group begins: done (context, tag) at its end. */
void pod_exec_packets_start (PodExecPackets *packets, uint32_t use, uint32_t group, uint32_t tag);
void pod_exec_packets_handle (PodExecPackets *packets, const PodEvent *event);
