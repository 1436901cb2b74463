#pragma once

#include "base/units.h"
#include "network/max-min.h"
#include "network/network.h"

/* What network.c (transfers and their events), bundle.c (who is on which links), flow.c (who gets
 * how much) and meter.c (bytes on links) share. */

__extension__ typedef unsigned __int128 PodU128;
__extension__ typedef __int128 PodI128;

#define POD_NO_INDEX UINT32_MAX

/* Rates are in 1/256 byte/s, so work, a rate times picoseconds, is in bytes / (256 * 1e12): whole
 * numbers, and what is left of a transfer does not depend on how often it was looked at. 2^64 bytes
 * are 2^112. */
#define POD_RATE_UNITS_PER_BYTE    256
#define POD_RATE_LIMIT_BYTES_PER_S (0x1p63 / POD_RATE_UNITS_PER_BYTE) /* units fit 63 bits */
#define POD_WORK_PER_BYTE          ((PodU128) POD_RATE_UNITS_PER_BYTE * (uint64_t) POD_PS_PER_S)

typedef enum
{
  POD_PHASE_FREE,    /* the slot is in the free list */
  POD_PHASE_LATENCY, /* bytes follow */
  POD_PHASE_BYTES,   /* on its links */
  POD_PHASE_FIXED,   /* on no link: its end is known from the start */
  POD_PHASE_ALONE,   /* nobody else on its links so far: its end is known until somebody comes */
} PodTransferPhase;

typedef struct
{
  PodU128 work_left; /* at since_ps */
  int64_t since_ps; /* alone: begin_ps, perhaps later than now */
  uint64_t rate;            /* 0 until the first solve */
  const PodPathEntry *path; /* (transfer none) */
  uint32_t n_entries;
  uint32_t tag;
  uint64_t bytes;
  int64_t start_ps;
  int64_t due_ps;      /* its next event, where it has one */
  uint64_t due_order;  /* of that, on the queue */
  int64_t begin_ps;    /* when its bytes begin */
  uint64_t number;     /* in the order of starting */
  uint64_t serial;     /* in the order of entering links, from 1 */
  uint64_t generation; /* events of another one are stale */
  uint64_t visit;      /* the solve that found it last */
  double analytic_s_per_byte;
  uint32_t first_node; /* chained by next_of_transfer */
  uint32_t next_free;
  PodTransferPhase phase;
} PodTransfer;

/* The busy integral of a link. load is the sum of share * rate, in 2^-40 bytes/s. */
typedef struct
{
  PodU128 load;
  double bytes; /* until since_ps */
  int64_t since_ps;
} PodLinkMeter;

/* A transfer on a bundle: in the list of the bundle, doubly linked, and in the chain of the
 * transfer. */
typedef struct
{
  uint64_t share_q32;
  uint32_t transfer;
  uint32_t bundle;
  uint32_t next;
  uint32_t previous;
  uint32_t next_of_transfer;
} PodNode;

/* Links of one capacity that no transfer so far has told apart: each was on all of them, with one
 * share, or on none. Their constraints are one and the same, and so are their counters. 16 bytes:
 * where every rank is run there is one for almost every link. */
typedef struct
{
  uint32_t n_links;
  uint32_t first_node;
  uint32_t kind;  /* of capacity */
  uint32_t place; /* among what is looked at now, bundles of a component or pieces of a path: it is
                   * there if that one is of this bundle, so that nothing need be put back */
} PodBundle;

/* The links of a path that lie in one bundle and have one share. */
typedef struct
{
  uint64_t share_q32;
  uint32_t bundle;
  uint32_t n_links;
  uint32_t target; /* the bundle that they are from now on */
  uint32_t next;   /* of the same bundle */
} PodPiece;

typedef struct
{
  uint32_t *bundle_of_link;
  uint32_t n_links;
  PodBundle *bundles;
  uint64_t *capacity;   /* by kind, 1/256 bytes/s */
  PodLinkMeter *meters; /* (nullable) by bundle: NULL when nobody asks for bytes on links */
  uint32_t n_bundles;
  uint32_t n_bundles_allocated;
  PodNode *nodes;
  uint32_t n_nodes;
  uint32_t n_nodes_allocated;
  uint32_t first_free_node; /* chained by next */
  /* Scratch of entering */
  PodPiece *pieces;
  uint32_t n_pieces;
  uint32_t *entry_piece;
  uint32_t n_entries_allocated;
} PodBundles;

/* What has changed since the last solve, and scratch. */
typedef struct
{
  bool is_full;
  bool is_solve_pending;
  uint64_t n_solves;
  bool *is_dirty; /* by bundle */
  uint32_t *dirty;
  uint32_t n_dirty;
  uint32_t n_dirty_allocated;
  PodMaxMin *solver;
  GArray *component; /* (element-type uint32_t) bundles, in the order in which they are met */
  GArray *capacity;  /* (element-type uint64_t) of each */
  GArray *members;   /* (element-type uint32_t) transfers */
  GArray *entries;   /* (element-type PodPathEntry) of all members, links are places in component */
  GArray *n_entries; /* (element-type uint32_t) by member */
  GArray *paths;     /* (element-type PodPathEntry *) by member, into entries */
  GArray *rates;     /* (element-type uint64_t) by member */
  GArray *changes;   /* of rates, by the solve that goes on */
} PodFlow;

static inline uint64_t
pod_bundle_capacity (const PodBundles *bundles, uint32_t bundle)
{
  return bundles->capacity[bundles->bundles[bundle].kind];
}

/* Whether another transfer is on the bundle of @node too. */
static inline bool
pod_node_is_shared (const PodNode *node)
{
  return node->next != POD_NO_INDEX || node->previous != POD_NO_INDEX;
}

/* The node of the one transfer that is on it; NULL when there is none, or more of them. */
static inline const PodNode *
pod_bundle_only_node (const PodBundles *bundles, const PodBundle *bundle)
{
  const PodNode *node
      = bundle->first_node == POD_NO_INDEX ? NULL : &bundles->nodes[bundle->first_node];

  return node == NULL || node->next != POD_NO_INDEX ? NULL : node;
}

struct PodNetwork
{
  PodNetworkMode mode;
  PodEventQueue *queue; /* (transfer none) */
  uint32_t event_kind;
  PodTransferDone done;
  void *context;
  PodTransfer *transfers;
  uint32_t n_transfers; /* slots in use or in the free list */
  uint32_t n_transfers_allocated;
  uint32_t first_free;
  uint32_t n_active;
  uint64_t n_started;
  uint64_t n_entered;
  GArray *tied;      /* (element-type PodEvent) scratch */
  uint32_t n_sorted; /* of the events that are next: they stand in order */
  GArray *waiting;   /* (element-type uint32_t) bundles to be solved for behind a replay */
  bool was_solve_pending;
  PodBundles bundles;
  PodFlow flow;
};

/* meter.c: the load of a link changes by @share_q32 * (@new_rate - @old_rate) now. O(1). */
void pod_link_meter_change (PodLinkMeter *meter, int64_t now_ps, uint64_t share_q32,
                            uint64_t old_rate, uint64_t new_rate);
/* @work was counted that did not cross (or did, when negative, and was not counted). */
void pod_link_meter_correct (PodLinkMeter *meter, uint64_t share_q32, PodI128 work);
/* Bytes until now, and bytes/s now. */
double pod_link_meter_bytes (const PodLinkMeter *meter, int64_t now_ps);
double pod_link_meter_rate (const PodLinkMeter *meter);

/* network.c: the transfer goes on at @rate from now on: settles what is left, the meters, and its
 * end. O(bundles of it). */
void pod_network_set_rate (PodNetwork *network, uint32_t index, uint64_t rate);
/* Rates are to be solved for at the end of this instant, where something has changed. */
void pod_network_schedule_solve (PodNetwork *network);
/* A slot, whose generation alone says something. */
uint32_t pod_network_take_slot (PodNetwork *network);
/* Its transfer is over, or nowhere: what is pending for it is stale. */
void pod_network_free_slot (PodNetwork *network, uint32_t index);
/* Its next event comes in @delay_ps. */
void pod_network_schedule (PodNetwork *network, uint32_t index, int64_t delay_ps);
/* Somebody comes to the links of a transfer that was alone: it goes on as others do. */
void pod_network_settle (PodNetwork *network, uint32_t index);

/* bundle.c */
void pod_bundles_init (PodBundles *bundles, uint32_t n_links, const double *capacity_bytes_per_s);
void pod_bundles_clear (PodBundles *bundles);
/* Puts the transfer on its links, splitting bundles that it tells apart. O(entries); one with k
 * distinct shares in a bundle is taken apart in O(entries x k), once. */
void pod_bundles_enter (PodNetwork *network, uint32_t index);
/* The same, if nobody is on any of them. */
bool pod_bundles_enter_alone (PodNetwork *network, uint32_t index);
/* Takes it off. O(bundles of it). */
void pod_bundles_leave (PodNetwork *network, uint32_t index);
bool pod_bundles_check (const PodNetwork *network);

/* flow.c */
void pod_flow_init (PodFlow *flow, uint32_t n_links);
void pod_flow_clear (PodFlow *flow);
/* Who is on @bundle has changed: to be solved for at the end of this instant. O(1). */
void pod_flow_mark (PodFlow *flow, uint32_t bundle);
/* The rate of a transfer on its links, with nobody else on them. O(bundles of it). */
uint64_t pod_flow_rate_alone (const PodNetwork *network, const PodTransfer *transfer);
/* Solves the components that have changed. O(entries x log bundles) of them. */
void pod_flow_solve (PodNetwork *network);
bool pod_flow_check (const PodNetwork *network);
