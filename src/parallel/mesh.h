#pragma once

#include "collective/collective.h"
#include "parallel/layout.h"
#include "topology/topology.h"

/* The device mesh: which rank stands on which device. Ranks are numbered by layout, tp fastest, then cp, fsdp, dp, pp. */

typedef struct
{
  unsigned n_factors;
  PodGroupFactor factors[POD_MAX_FACTORS]; /* innermost first; tori only */
} PodAxisPlacement;

typedef struct
{
  const PodTopology *topology;
  PodLayout layout;
  uint32_t n_ranks;
  uint32_t stride[POD_N_AXES]; /* rank = sum of coordinate x stride */
  uint32_t *device_of_rank;    /* n_ranks */
  PodAxisPlacement placement[POD_N_AXES];
  uint32_t expert_degree[POD_N_EXPERT_AXES];
  uint32_t expert_stride[POD_N_EXPERT_AXES]; /* the grid of the experts, over the same ranks of a stage: etp fastest */
  char *text;                  /* as --map or --order would say it */
} PodMesh;

/* Bytes that each axis moves in a step, per rank, and the compute that can hide them: to rank placements. */
typedef struct
{
  double axis_bytes[POD_N_AXES];
  double ep_bytes; /* sent by all-to-all over ep */
  double compute_s;
} PodTraffic;

/* Where ep stands among the axes of --order: inside fsdp and dp unless it is named behind one of them. */
typedef enum
{
  POD_EP_INSIDE,
  POD_EP_BETWEEN, /* fsdp,ep,dp */
  POD_EP_OUTSIDE,
} PodEpPlace;

/* Places a layout. @map ("tp=x:4 fsdp=x:4,y,z"; tori) or @order ("tp,cp,ep,fsdp,dp,pp"; switched machines), both (nullable):
 * then the placement with the least predicted communication is taken. Errors name the axis, the degree and what the
 * machine has. Returns: (transfer full) */
PodMesh *pod_mesh_new (const PodTopology *topology, const PodLayout *layout, const char *map, const char *order,
                       const PodTraffic *traffic, GError **error);
void pod_mesh_free (PodMesh *mesh);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodMesh, pod_mesh_free)

uint32_t pod_mesh_coordinate (const PodMesh *mesh, uint32_t rank, PodAxis axis);

/* Ranks that talk to each other: groups of equal size. */
typedef struct
{
  char *name;              /* "tp", "fsdp", "pp 0>1" */
  PodAxis axis;            /* whose time it is */
  uint32_t n_groups;
  uint32_t group_size;
  uint32_t *members;       /* n_groups x group_size ranks, in ring order */
  uint32_t *devices;       /* the same as devices; members itself where each rank has the device of its number */
  uint32_t first_rank;     /* no member is below it, or n_spanned above */
  uint32_t n_spanned;
  uint32_t *group_of_rank; /* of these, UINT32_MAX = not in it; NULL: the first n_groups of them are in a group each, and the last */
  unsigned n_factors;
  PodGroupFactor factors[POD_MAX_FACTORS];
} PodCommunicator;

/* All ranks that differ only in the axes of @mask. Returns: (transfer full). O(ranks). */
PodCommunicator *pod_mesh_communicator (const PodMesh *mesh, unsigned mask, PodAxis axis, const char *name);
/* All ranks that differ only in @expert_axis of the experts' grid. Returns: (transfer full). O(ranks). */
PodCommunicator *pod_mesh_expert_communicator (const PodMesh *mesh, PodExpertAxis expert_axis, PodAxis axis, const char *name);
/* Cuts each group of @whole by node: into the members of one node, and into those at the same place of all its nodes. Returns
 * false when its nodes do not have as many members each. O(ranks). */
bool pod_mesh_split_by_node (const PodMesh *mesh, const PodCommunicator *whole, PodCommunicator **out_inside, PodCommunicator **out_across);
/* Blocks of @block ranks that follow one another on @axis, whose degree is a multiple of it. Returns: (transfer full). O(ranks). */
PodCommunicator *pod_mesh_blocks (const PodMesh *mesh, PodAxis axis, uint32_t block, const char *name);
/* Pairs (rank of stage @from, its peer of stage @to). Returns: (transfer full). O(ranks). */
PodCommunicator *pod_mesh_edge (const PodMesh *mesh, uint32_t from_stage, uint32_t to_stage);
void pod_communicator_free (PodCommunicator *communicator);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodCommunicator, pod_communicator_free)
/* The group that a rank is in, UINT32_MAX none. O(1) */
static inline uint32_t
pod_communicator_group_of (const PodCommunicator *communicator, uint32_t rank)
{
  const uint32_t i = rank - communicator->first_rank; /* wraps below it */
  const uint32_t last = communicator->n_spanned - communicator->n_groups;

  if (i >= communicator->n_spanned)
    return UINT32_MAX;
  if (communicator->group_of_rank != NULL)
    return communicator->group_of_rank[i];
  return i < communicator->n_groups ? i : i >= last ? i - last : UINT32_MAX;
}

/* Group @index as the collectives take it (borrowed pointers). */
void pod_communicator_group (const PodCommunicator *communicator, uint32_t index, PodGroup *out);
