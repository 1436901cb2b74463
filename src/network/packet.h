#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/event-queue.h"
#include "network/message-set.h"
#include "network/network.h"
#include "topology/topology.h"

/* Messages cut into packets that go hop by hop: links are first in, first out; what cannot go on
 * waits in the buffer of the switch or device that it has reached. docs/model/packet.md has the
 * equations.
 *
 * A packet reserves a link as soon as it is known that there will be room at the far end when the
 * packet before it ends. So a hop costs one event, its arrival. Else it waits (back-pressure), and
 * those of other virtual channels may go first. */

/* What happens at the far end of a link when packets come faster than they leave. */
typedef enum
{
  POD_FLOW_ORDERED,   /* back-pressure; routes climb an order of links (trees): one buffer */
  POD_FLOW_TORUS,     /* back-pressure; two buffers a link, the dateline between them */
  POD_FLOW_BY_HOP,    /* back-pressure; a buffer per hop of the route: any graph */
  POD_FLOW_UNBOUNDED, /* room for all */
  POD_FLOW_LOSSY,     /* a packet that finds the queue full is dropped; go-back-N */
} PodPacketFlow;

typedef struct
{
  uint32_t from; /* vertices */
  uint32_t to;
  double bytes_per_s; /* of all lanes */
  int64_t latency_ps;
  uint32_t n_lanes; /* parallel cables, each with its part of the rate; at least 1 */
  PodPacketFlow flow;
  /* POD_FLOW_TORUS */
  uint8_t axis;
  int8_t sign;
  uint32_t position; /* of from, along the axis */
  uint32_t extent;   /* 0: the axis does not wrap */
  uint8_t rank;      /* of the axis, in the order in which routes take them */
} PodPacketLink;

typedef struct
{
  uint64_t mtu_bytes;        /* smallest packet of a longer message; 0: 4 KiB */
  uint32_t n_packets;        /* most packets of a message; 0: 16, fewer when it would be too many */
  uint64_t buffer_bytes;     /* of one input buffer; 0: 64 packets + 2 x latency x rate */
  bool is_store_and_forward; /* else cut-through */
  bool is_hashed;            /* a flow keeps to one lane (ECMP); else its packets take turns */
  bool is_adaptive;          /* on tori: the least busy of the shortest ways */
  unsigned drop_kinds;       /* bit 1 << PodLinkKind: Ethernet */
  const uint32_t *dead_links; /* (transfer none) */
  uint32_t n_dead_links;
} PodPacketOptions;

typedef struct
{
  uint64_t n_messages; /* arrived */
  uint64_t n_packets;  /* sent, again ones included */
  uint64_t n_bytes;    /* arrived in order: each byte once */
  uint64_t n_hops;
  uint64_t n_dropped;
  uint64_t n_rewinds;  /* senders that went back */
  uint64_t n_rerouted; /* routes led around dead links */
} PodPacketCounts;

typedef struct PodPacketNetwork PodPacketNetwork;
typedef struct PodPacketJob PodPacketJob;

/* The words, for helps of options. */
#define POD_PACKET_WORDS                                                                           \
  "mtu=, packets=, buffer=, drop=, dead=, store-and-forward, ecmp, adaptive"

/* "mtu=4KiB,packets=16,buffer=64KiB,store-and-forward,ecmp,adaptive,drop=nic+tree,dead=3+17", or
 * NULL. @dead_links: (element-type uint32_t) filled, and borrowed by @out. INVALID names the word
 * and lists those that there are. */
bool pod_packet_options_parse (const char *text, PodPacketOptions *out, GArray *dead_links,
                               GError **error);

/* In which order routes take the axes of a torus: the longest first, as it is the busiest, and what
 * a full link holds back then has not yet taken others; twisted ones as their routes do. */
void pod_packet_axis_ranks (const PodTopology *topology, uint8_t out[3]);
/* The links of a machine: tree uplinks have a lane for each parallel switch above. @capacity:
 * bytes/s by link. Returns: (transfer full) n_links entries. O(links). */
PodPacketLink *pod_packet_links (const PodTopology *topology, const double *capacity,
                                 unsigned drop_kinds);

/* @links are copied. Events of kind @event_kind on @queue belong to the network: the owner of the
 * loop hands them to _handle. INVALID: a dead link that does not exist. */
PodPacketNetwork *pod_packet_network_new (const PodPacketOptions *options,
                                          const PodPacketLink *links, uint32_t n_links,
                                          PodEventQueue *queue, uint32_t event_kind,
                                          PodTransferDone done, void *context, GError **error);
void pod_packet_network_free (PodPacketNetwork *network);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodPacketNetwork, pod_packet_network_free)

/* Makes @set (borrowed) ready to start any number of times on this network, which must outlive it:
 * virtual channels, lanes, ways around dead links (INFEASIBLE when there is none).
 * O(hops + dependencies), and O(links) for each route around a dead one. */
PodPacketJob *pod_packet_job_new (PodPacketNetwork *network, const PodMessageSet *set,
                                  GError **error);
void pod_packet_job_free (PodPacketJob *job);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodPacketJob, pod_packet_job_free)

/* Starts the messages of @job, which must outlive them. done(context, tag) comes when all have
 * arrived, never from within start. O(streams). */
void pod_packet_network_start (PodPacketNetwork *network, PodPacketJob *job, uint32_t tag);
void pod_packet_network_handle (PodPacketNetwork *network, const PodEvent *event);

/* Jobs under way. When the queue is empty they wait for each other: a deadlock. */
uint32_t pod_packet_network_n_active (const PodPacketNetwork *network);
/* "3 packets wait, the first for link 7 (2 > 3)": for reports of deadlocks. (transfer full) */
char *pod_packet_network_describe_waiting (const PodPacketNetwork *network);
uint64_t pod_packet_network_link_bytes (const PodPacketNetwork *network, uint32_t link);
void pod_packet_network_counts (const PodPacketNetwork *network, PodPacketCounts *out);
bool pod_packet_network_check (const PodPacketNetwork *network);
