#pragma once

#include "exec/exec.h"
#include "topology/turn.h"

/* The part of a job's symmetry that its layout and the machine show without a look at what every rank does: turns of the machine (turn.h)
 * that carry ranks to ranks of the same program, groups to groups, and the plan of each group to that of the group it becomes. What turns
 * carry into one another is an orbit; all of it does the same at the same time, so that plans and colours (fold.h) are made for the first
 * of each orbit alone. */

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
  uint32_t orbit_size;      /* ranks of each orbit of ranks */
  uint32_t n_orbits;        /* of ranks */
  uint32_t *orbit_of_rank;
  uint32_t *rank_of_orbit;  /* the first, in order */
  uint32_t n_comms;
  uint32_t *n_group_orbits; /* by communicator */
  uint32_t **orbit_of_group;
  uint32_t **group_of_orbit; /* the first, in order */
  uint32_t **group_orbit_size;
} PodSymmetry;

/* Whether a plan is carried to itself; asked for groups that a turn carries to themselves. */
typedef bool (*PodPlanTurns) (void *context, const PodTurn *turn, uint32_t comm, uint32_t group);

/* @is_identity: none is looked for, each is an orbit of its own. Returns: (transfer full). O(ranks x communicators). */
PodSymmetry *pod_symmetry_new (const PodTopology *topology, const PodProgram *program, bool is_identity, PodPlanTurns plan_turns, void *context);
void pod_symmetry_free (PodSymmetry *symmetry);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodSymmetry, pod_symmetry_free)
