#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "engine/event-queue.h"

/* Transfers on links. A transfer is a sparse vector of (link, share) plus a latency; start it and
 * be told when it is done. Knows links (a capacity each), no algorithm and no topology: a link here
 * may stand for one link or a class of equal ones.
 *
 *   analytic  duration = latency + bytes x analytic_s_per_byte: no sharing between transfers
 *   flow      concurrent transfers share each link max-min fairly
 *   packet    message by message: packet.h
 *
 * Exactness (why folded and unfolded agree to the picosecond): shares are Q32 integers, rates
 * integers in 1/256 byte/s, sums are taken in 128 bits and never rounded, so a link loaded by k
 * equal transfers of share s and a link class loaded by one of share k*s get the same rates. The
 * state of a transfer (bytes left) is touched only when its own rate changes. */

typedef struct
{
  uint32_t link;
  uint64_t share_q32; /* bytes on it per byte of the transfer, times 2^32; > 0; may exceed 1 */
} PodPathEntry;

typedef enum
{
  POD_NETWORK_ANALYTIC,
  POD_NETWORK_FLOW,
  POD_NETWORK_PACKET, /* network/packet.h, not this interface */
} PodNetworkMode;

typedef struct PodNetwork PodNetwork;

/* Called when transfer @tag has ended, in the network's event handler. */
typedef void (*PodTransferDone) (void *context, uint32_t tag);

/* Whether each of these rates is one that the network can count in its units: above 0 and
 * below 3.6e16 bytes/s. LIMIT names the one that is not. O(links). */
bool pod_network_check_rates (uint32_t n_links, const double *capacity_bytes_per_s, GError **error);

/* @capacity: n_links bytes/s that pod_network_check_rates would take, copied. Events of kind
 * @event_kind and @event_kind + 1 on
 * @queue belong to the network: the owner of the loop hands them to pod_network_handle. @queue is
 * borrowed. */
PodNetwork *pod_network_new (PodNetworkMode mode, PodEventQueue *queue, uint32_t event_kind,
                             uint32_t n_links, const double *capacity_bytes_per_s,
                             PodTransferDone done, void *context);
void pod_network_free (PodNetwork *network);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodNetwork, pod_network_free)

/* Starts a transfer of @bytes (0 is fine: latency alone) now. @path is borrowed and must outlive
 * the transfer; entries of one link at most once. @analytic_s_per_byte: what analytic mode uses
 * (largest share/capacity with the standing contention of its own communicator). An empty path
 * (n_entries 0) takes bytes x analytic_s_per_byte + latency in both modes: fixed costs. Returns
 * nothing; done(context, tag) comes at the end, never from within start. Ends beyond
 * 9.2e18 ps are a programmer error (asserts). Its index, until it ends, is for pod_network_keep. O(entries). */
uint32_t pod_network_start (PodNetwork *network, const PodPathEntry *path, uint32_t n_entries,
                        uint64_t bytes, int64_t latency_ps, double analytic_s_per_byte,
                        uint32_t tag);
/* To be called for the network's events. Rates are solved once per instant, after its other events
 * (priority 255), for the connected components that changed. Ends of one instant come in the order
 * in which they were scheduled: that of the last change of rate, then that of entering links. */
void pod_network_handle (PodNetwork *network, const PodEvent *event);

/* Lets the network count what crosses its links, before it has started anything. Without it, they
 * show 0 bytes at rate 0. */
void pod_network_measure (PodNetwork *network);
/* Bytes that crossed each link so far (busy integral), for link counters and utilisation. O(1). */
double pod_network_link_bytes (const PodNetwork *network, uint32_t link);
/* Rate now on a link, bytes/s, for counters. O(1). */
double pod_network_link_rate (const PodNetwork *network, uint32_t link);
uint32_t pod_network_n_active (const PodNetwork *network);
/* Appends (element-type int64_t) what decides how all transfers go on, by their tags, which must
 * differ, and counted from now. Not their paths: what tag takes which is for the caller to save.
 * False when rates are yet to be solved for. O(n log n). */
bool pod_network_save (const PodNetwork *network, GArray *out);
/* The tag of the transfer for which @event, of the first of the network's kinds, was pushed. False
 * when it is stale. */
bool pod_network_event_tag (const PodNetwork *network, const PodEvent *event, uint32_t *out);
/* A transfer under way: those of the lower numbers started earlier. */
typedef struct
{
  uint64_t number;
  uint32_t tag;
} PodStartedTransfer;
/* Appends all (element-type PodStartedTransfer). O(transfers). */
void pod_network_list (const PodNetwork *network, GArray *out);

/* A transfer stood for several that go on alike: along these links from now on. */
typedef struct
{
  uint32_t tag;
  const PodPathEntry *path; /* (transfer none) must outlive the transfer */
  uint32_t n_entries;
} PodTransferPart;
/* @parts: the first is @tag's. The sum of their loads must be what it put on its links, and rates what they were. O(transfers + entries). */
void pod_network_part (PodNetwork *network, uint32_t tag, const PodTransferPart *parts,
                       uint32_t n_parts);
/* How a transfer under way goes on, its times counted from when it was looked at. */
typedef struct
{
  const PodPathEntry *path; /* (transfer none) */
  double analytic_s_per_byte;
  uint64_t bytes;
  uint64_t rate;
  uint64_t work_left_high, work_left_low;
  int64_t start_ps, begin_ps, since_ps, due_ps;
  uint32_t n_entries;
  uint32_t tag;
  uint32_t phase;
  uint32_t n_before; /* of those kept with it: how many came onto their links before it */
} PodKeptTransfer;

/* Its place among all: by their start, by when they came onto their links (0: not yet), and by their next event. */
typedef struct
{
  uint64_t number;
  uint64_t serial;
  uint64_t due_order;
} PodTransferOrder;

/* False when its rate is yet to be solved for. O(1). */
bool pod_network_keep (const PodNetwork *network, uint32_t index, PodKeptTransfer *out,
                       PodTransferOrder *out_order);
/* Takes it off; nobody is told. Of a network that measures nothing. O(bundles of it). */
void pod_network_withdraw (PodNetwork *network, uint32_t index);
/* Puts transfers on that stand as @kept, in the order of their start, do, from now on; their events are pushed by pod_network_resume.
 * @out: their indices. O(entries + n^2). */
void pod_network_put (PodNetwork *network, const PodKeptTransfer *kept, uint32_t n, uint32_t *out);
void pod_network_resume (PodNetwork *network, uint32_t index);
/* Between these the clock goes through an earlier time again: what is yet to be solved for now waits. They do not nest. */
void pod_network_begin_replay (PodNetwork *network);
void pod_network_end_replay (PodNetwork *network);
/* Carries all transfers over @ps of time that are known to be like some that were simulated; links
 * count only what was. O(transfers + links). */
void pod_network_skip (PodNetwork *network, int64_t ps);
/* Forces full re-solving on every change, of transfers that are alone too (tests compare it with the incremental one: identical
 * results). */
void pod_network_set_full_solve (PodNetwork *network, bool is_full);
bool pod_network_check (const PodNetwork *network);
