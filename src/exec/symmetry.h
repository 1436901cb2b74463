#pragma once

#include "exec/exec.h"
#include "topology/turn.h"

/* The part of a job's symmetry that its layout and the machine show without a look at what every rank does: turns of the machine (turn.h)
 * that carry ranks to ranks of the same program, groups to groups, and the plan of each group to that of the group it becomes. What turns
 * carry into one another is an orbit; all of it does the same at the same time, so that plans and colours (fold.h) are made for the first
 * of each orbit alone.
 *
 * A tree over dp is carried to itself by no turn. But most of its nodes play one of few parts in it: where every group lies in one block of
 * the turn or goes through all of them, blocks on whose links the latter put the same may change places in any way. */

enum
{
  POD_MAX_TURNS = 16,
};

typedef struct
{
  const PodTopology *topology;
  const PodProgram *program;
  unsigned n_turns;
  PodTurn turns[POD_MAX_TURNS];
  uint32_t n_orbits;        /* of ranks */
  uint32_t *orbit_of_rank;
  uint32_t *rank_of_orbit;  /* the first, in order */
  uint32_t n_comms;
  uint32_t *n_group_orbits; /* by communicator */
  uint32_t **orbit_of_group;
  uint32_t **group_of_orbit; /* the first, in order */
  uint32_t **group_orbit_size;
} PodSymmetry;

/* What the plans of a group put on the links of each block of a turn, added to a key of each place: blocks with equal keys have the same.
 * Asked for groups that a turn carries to themselves. False where there is no such plan. */
typedef bool (*PodPlanKeys) (void *context, const PodTurn *turn, uint32_t comm, uint32_t group, uint64_t *keys);

/* @is_identity: none is looked for, each is an orbit of its own. Returns: (transfer full). O(ranks x communicators). */
PodSymmetry *pod_symmetry_new (const PodTopology *topology, const PodProgram *program, bool is_identity, PodPlanKeys plan_keys, void *context);
void pod_symmetry_free (PodSymmetry *symmetry);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodSymmetry, pod_symmetry_free)
