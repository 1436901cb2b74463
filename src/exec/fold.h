#pragma once

#include "collective/collective.h"
#include "exec/symmetry.h"

/* Which ranks, groups and links behave alike. The coarsest stable colouring of (ranks, groups, links): two ranks of a colour
 * run the same class and belong to groups of the same colours; two groups of a colour load links of the same colours with
 * the same shares; two links of a colour have one capacity and carry the same groups. By induction over events, members of
 * a colour do the same at the same time, so one of each is run, and rates are the same whether solved on links or on
 * colours with summed shares (network.h). Unfolded is the identity colouring: the same code runs both. */

/* Which plan the groups of one communicator have: most do elsewhere what the first one does, so that a shift of the machine stands for a
 * plan of their own. */
typedef struct
{
  const PodTopology *topology;
  const PodCommunicator *comm;
  uint32_t *plan_of_group; /* [group] (owned) 0: the first group's, UINT32_MAX: not known, as the symmetry stands for it; NULL: 0 for all */
  bool is_shifted;         /* and where that is NULL, whether all are shifted from the first one's */
  uint32_t n_plans;        /* of each route: the first group's, and those of groups that no shift carries it to */
} PodPlanned;

/* How the groups of one communicator do one kind of collective. */
typedef struct
{
  uint32_t comm;
  PodCollectiveKind kind;
  uint64_t bytes;         /* of the use that it was planned for */
  PodDtype dtype;
  const char *algorithm;
  const PodPlanned *planned;
  GPtrArray *plans;       /* (element-type PodPlan) (owned, or the request's cache's) by number of plan, (nullable elements) where it was not asked for */
} PodRoute;

/* The plan of a group, for its ratios and latency; its links are shifted where pod_route_shift says so. (transfer none) */
static inline const PodPlan *
pod_route_plan (const PodRoute *route, uint32_t group)
{
  const uint32_t *of_group = route->planned->plan_of_group;

  return g_ptr_array_index (route->plans, of_group == NULL ? 0 : of_group[group]);
}

/* Whether the links of the group are those of its plan shifted. O(levels) */
bool pod_route_shift (const PodRoute *route, uint32_t group, PodTopologyShift *out);
/* The links of the group, in the order of its plan's entries. O(entries) */
void pod_route_links (const PodRoute *route, uint32_t group, uint32_t *out);

typedef struct
{
  PodPathEntry *entries;  /* (owned) links are link colours; NULL: to be made by pod_fold_path */
  double analytic_s_per_byte;
  uint32_t n_entries;
  uint32_t group;         /* a group of the colour, whose plan gives ratio and latency */
} PodFoldedPath;

/* Represented ranks of a communicator lie from the first one on. */
typedef struct
{
  const PodCommunicator *comm; /* (nullable) groups are this one's, as its ranks are: unfolded */
  uint32_t first;
  uint32_t n;
  uint32_t *group; /* (owned) (nullable) else: colour of each one's group, UINT32_MAX none */
} PodFoldedRanks;

typedef struct
{
  uint32_t n_ranks;        /* represented */
  uint32_t *rank;          /* the real rank that stands for each; this and the next two are NULL when each stands for itself */
  uint32_t *n_like;        /* how many it stands for */
  uint32_t *index_of_rank; /* real rank -> represented index */
  const uint32_t *class_of; /* of each represented rank */
  uint32_t *own_class_of;  /* (nullable) where these are not the program's */
  uint32_t n_links;        /* link colours in use */
  double *capacity;        /* bytes/s of each; NULL once the network has them */
  uint32_t *link;          /* (nullable) a real link of each; NULL unfolded, where nobody asks */
  uint32_t n_comms;
  uint32_t *n_groups;      /* group colours of each communicator */
  PodFoldedRanks *ranks;   /* by communicator: who is in which group */
  uint32_t **n_expected;   /* [comm][group colour] -> represented members; (nullable) NULL: all */
  uint32_t n_routes;
  uint32_t *comm_of_route;
  uint32_t *like;          /* by route: the first one that loads the same links as much */
  PodFoldedPath **paths;   /* [route][group colour] (owned), those of routes that are alike once */
  uint32_t **path_of_group; /* (nullable) [route][group]: unfolded, where most are alike but for the group, which of paths */
  uint32_t *n_paths;       /* by route */
  uint32_t *color_of_link; /* (nullable) by real link, where paths are made when they are asked for: unfolded */
} PodFold;

/* The group colour of a represented rank, UINT32_MAX none. O(1) */
static inline uint32_t
pod_fold_group_of (const PodFold *fold, uint32_t comm, uint32_t rank)
{
  const PodFoldedRanks *ranks = &fold->ranks[comm];
  const uint32_t i = rank - ranks->first; /* wraps below it */

  if (ranks->comm != NULL)
    return pod_communicator_group_of (ranks->comm, rank);
  return i < ranks->n ? ranks->group[i] : UINT32_MAX;
}

/* How many ranks of a group colour run. */
static inline uint32_t
pod_fold_n_expected (const PodFold *fold, uint32_t comm, uint32_t group)
{
  return fold->n_expected[comm] == NULL ? fold->ranks[comm].comm->group_size : fold->n_expected[comm][group];
}

static inline uint32_t
pod_fold_rank (const PodFold *fold, uint32_t index)
{
  return fold->rank == NULL ? index : fold->rank[index];
}

static inline uint32_t
pod_fold_n_like (const PodFold *fold, uint32_t index)
{
  return fold->n_like == NULL ? 1 : fold->n_like[index];
}

static inline PodFoldedPath
pod_fold_path_of (const PodFold *fold, uint32_t route, uint32_t group)
{
  PodFoldedPath path;

  if (fold->path_of_group == NULL)
    return fold->paths[route][group];
  path = fold->paths[route][fold->path_of_group[route][group]];
  path.group = group;
  return path;
}

/* @routes: all that the program uses. @symmetry: of both. @is_identity: no folding; the symmetry is an identity too. O(ranks + (orbits of
 * ranks + path entries of orbits of groups) x rounds). */
PodFold *pod_fold_new (const PodTopology *topology, PodFidelity fidelity, const PodProgram *program, const GArray *routes, const PodSymmetry *symmetry, bool is_identity);
void pod_fold_free (PodFold *fold);
/* The path of a group that has none of its own: the first group's, shifted. @route: the @r-th; @out: room for its entries. O(entries) */
void pod_fold_path (const PodFold *fold, const PodRoute *route, uint32_t r, uint32_t group, PodPathEntry *out);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodFold, pod_fold_free)
