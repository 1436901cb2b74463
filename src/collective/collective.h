#pragma once

#include "base/dtype.h"
#include "network/network.h"
#include "topology/shift.h"

/* A collective over a group of devices becomes a plan: how many bytes it puts on which links, and
 * its latency. */

typedef enum
{
  POD_ALL_GATHER,     /* payload: the gathered buffer */
  POD_REDUCE_SCATTER, /* payload: the buffer before scattering */
  POD_ALL_REDUCE,     /* payload: the buffer */
  POD_ALL_TO_ALL,     /* payload: each rank's send buffer */
  POD_BROADCAST,      /* payload: the root's buffer; root = first of the group */
  POD_REDUCE,
  POD_SEND,    /* group of two: devices[0] sends the payload to devices[1] */
  POD_PERMUTE, /* each rank sends the payload to the next of the group, the last to the first */
  POD_N_COLLECTIVES
} PodCollectiveKind;

/* Torus groups: the group is a product of factors; dim 0..2 = x, y, z; 3 = dcn (slices); 4 = core
 * within the chip. Members stand at base + i*stride for i in 0..size-1 along dim (in chips of that
 * dim). */
#define POD_DIM_DCN     3
#define POD_DIM_CORE    4
#define POD_MAX_FACTORS 8

typedef struct
{
  uint8_t dim;
  uint32_t stride;
  uint32_t size;
} PodGroupFactor;

typedef struct
{
  uint32_t n_devices;
  const uint32_t *devices; /* in ring order, first factor fastest */
  unsigned n_factors;      /* 0 on switched machines and graphs, and for arbitrary lists */
  PodGroupFactor factors[POD_MAX_FACTORS];
} PodGroup;

/* How the phases of an algorithm follow one another. */
typedef enum
{
  POD_PHASES_PIPELINED,  /* chunk by chunk at the same time: the busiest link bounds */
  POD_PHASES_SEQUENTIAL, /* each with the whole buffer after the one before: their times add up */
} PodPhases;

/* What a message costs beside its bytes on the wire, for step-ring (step-ring.c). */
typedef struct
{
  double endpoint_s;            /* at each end of a message */
  double local_bytes_per_s;     /* of the three memory passes of a reduction; 0 = free */
  bool is_in_whole_ns;          /* each message and each pass rounds down */
  bool is_stored_and_forwarded; /* a switch takes in a message before it sends it on */
} PodStepLaw;

/* What each rank sends to each other one, per payload byte, by position in the group. */
typedef struct
{
  uint32_t n;
  double *shares; /* n x n: [from * n + to] */
} PodTrafficMatrix;

/* How a plan moves: merged (pipelined) phases, so one vector of link shares. */
typedef struct
{
  const char *algorithm; /* "bidir-ring", "torus", "line", "ring", "direct", "nvls", "hierarchical",
                            "double-tree", "none", ... */
  double busiest_ratio;  /* bytes on the busiest link (most bytes) per payload byte */
  uint32_t n_entries;
  PodPathEntry *entries; /* (owned) share relative to the busiest link: share_q32 = 2^32 there */
  int64_t latency_ps;    /* hops and steps; calibrated adds the launch floor */
  unsigned n_steps;
  unsigned n_net_steps;   /* those between nodes */
  int64_t net_latency_ps; /* of the links of those steps */
  const char *protocol;   /* (nullable) of a library's cost table: "ll", "ll128", "simple" */
  double wire_ratio;      /* time of the bytes on a link against bytes/capacity: protocol and
                             pipeline losses; 0 = 1 */
  PodPhases phases;
  double
      sequential_s_per_byte; /* of the phases one after another, per payload byte; 0 = one phase */
  double cost_s;             /* what the chooser compared */
  double book_s_per_byte;    /* the book's V/W (2V/W for all-reduce, V/(4W) for all-to-all, …) per
                                payload byte */
  double book_latency_s;     /* enters as a maximum */
  double hbm_bytes_ratio;    /* HBM traffic of the reduction per payload byte and device */
  char *explain;             /* one line: formula with its numbers */
} PodPlan;

void pod_plan_free (PodPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodPlan, pod_plan_free)

/* The plan of the group that @shift carries this plan's group to: the same on other links, without
 * its explanation. Returns: (transfer full) */
PodPlan *pod_plan_shift (const PodPlan *plan, const PodTopologyShift *shift);

/* The cheapest plan for @payload_bytes (or the named @algorithm, nullable). A group of one gives
 * algorithm "none", no entries, zero latency. Refusals: unknown algorithm, one that does not fit
 * the group (UNSUPPORTED), no route (INFEASIBLE). Deterministic. Returns: (transfer full).
 * O(devices x hops) for general groups, O(entries) for factors. */
PodPlan *pod_collective_plan (const PodTopology *topology, PodFidelity fidelity,
                              const PodGroup *group, PodCollectiveKind kind, uint64_t payload_bytes,
                              const char *algorithm, GError **error);

/* The same, by a library's cost tables (see collective/library.h) at fidelity calibrated. */
typedef struct
{
  const PodTopology *topology;
  PodFidelity fidelity;
  const PodGroup *group;
  PodCollectiveKind kind;
  PodDtype dtype;
  uint64_t payload_bytes;
  const char *algorithm; /* (nullable) "ring", "ring/ll128"; NULL or "auto": the cheapest */
  const struct PodLibrary *library; /* (nullable) the chip's launch floor and network efficiency */
  PodPhases phases;
  const PodStepLaw *steps; /* (nullable) only for step-ring, whose phases are then sequential */
  const PodTrafficMatrix *traffic; /* (nullable) only for all-to-all; else every pair the same */
  bool is_folded;           /* where all members see the same (whole wrapped axes), only the links
                               that leave the first one stand in the plan, for all */
  const PodGroup *borrowed; /* (nullable) the group with the factors of idle axes, which hold only
                               copies, appended: their links may be used (borrow.c) */
} PodPlanQuery;

PodPlan *pod_collective_plan_query (const PodPlanQuery *query, GError **error);
/* Every algorithm and protocol that can do it, each with its time and its cost, in the order of the
 * tables. Returns: (transfer full) (element-type PodPlan) */
GPtrArray *pod_collective_plan_table (const PodPlanQuery *query, GError **error);

/* Seconds of the plan alone on the machine (analytic): book: max(V/W, latency); else latency + the
 * slowest of bytes/capacity over its links, with capacities by pod_collective_link_rate. */
double pod_plan_time (const PodTopology *topology, PodFidelity fidelity, const PodPlan *plan,
                      uint64_t payload_bytes);

/* Capacity of a link at a fidelity: book value, nominal, or nominal x chip.network_efficiency. */
double pod_collective_link_rate (const PodTopology *topology, PodFidelity fidelity, uint32_t link);

/* All algorithms' names in the order of the table, each once. Returns: (transfer container)
 * (element-type utf8) */
GPtrArray *pod_collective_algorithms (void);

/* Is there such an algorithm, or algorithm/protocol? UNSUPPORTED lists those that there are. */
bool pod_collective_check_algorithm (const char *text, GError **error);

const char *pod_collective_name (PodCollectiveKind kind); /* "all_gather" */
bool pod_collective_parse (const char *text, PodCollectiveKind *out, GError **error);
/* nccl-tests: busbw = algbw x factor. */
double pod_collective_bus_factor (PodCollectiveKind kind, uint32_t n_ranks);
