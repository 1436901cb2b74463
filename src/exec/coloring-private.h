#pragma once

#include "exec/fold.h"

/* The colouring of ranks, groups and links that fold.c makes a fold of. */

__extension__ typedef unsigned __int128 PodSum;

/* What an orbit of groups puts on an orbit of links: as much on each of so many of its links. */
typedef struct
{
  uint64_t share_q32;
  uint32_t link;
  uint32_t n;
} PodColoringEntry;

/* Colours while they are refined. Items are orbits of a symmetry, whose members are alike whatever the colours: ranks, the groups of each
 * communicator, the links in use. They are numbered by their first members, so that colours get the numbers that they would get if each
 * member were looked at. What the members of an orbit do to one link is what all do to all links of an orbit over how many these are. */
typedef struct
{
  const PodProgram *program;
  const PodSymmetry *symmetry;
  const GArray *routes; /* PodRoute */
  uint32_t *like;         /* by route: the first one that loads the same links as much, group by group; mostly they differ in latency */
  uint32_t n_comms;
  uint32_t *first_group;  /* [n_comms + 1] */
  uint32_t n_ranks;
  uint32_t n_groups;
  uint32_t n_links;
  uint32_t *link_index;   /* real link -> orbit in use, UINT32_MAX none */
  uint32_t *real_link;    /* the first of each orbit */
  uint64_t *n_of_link;    /* links of each orbit */
  bool is_identity;
  size_t **first_entry;   /* by route that is not like an earlier one: where the entries of each orbit of groups begin, [orbits + 1] */
  PodColoringEntry *entries; /* route by route, group by group; none for the identity, where nothing is refined */
  uint32_t *scratch;      /* links of the largest plan */
  PodSum *sum;            /* scratch, by link */
  uint32_t *orbit_of_member; /* of the groups in order, one after the other */
  uint32_t *first_place;  /* by orbit of ranks: its places in groups, [n_ranks + 1] */
  uint64_t *place_key;    /* a communicator, as a colour of its groups is told from those of others */
  uint32_t *place_group;  /* and a group */
  uint32_t *rank_color;
  uint32_t *group_color;
  uint32_t *link_color;
  uint64_t *signature;    /* scratch, as long as the longest */
} PodColoring;

static inline const PodCommunicator *
pod_coloring_comm (const PodProgram *program, uint32_t index)
{
  return g_ptr_array_index (program->communicators, index);
}

static inline const PodRoute *
pod_coloring_route (const GArray *routes, guint index)
{
  return &g_array_index (routes, PodRoute, index);
}

/* @symmetry of both, @routes all that the program uses; borrowed. Each member of an orbit has the colour of what is told of it alone. */
void pod_coloring_init (PodColoring *c, const PodTopology *topology, PodFidelity fidelity, const PodProgram *program, const GArray *routes, const PodSymmetry *symmetry,
                        bool is_identity);
void pod_coloring_clear (PodColoring *c);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodColoring, pod_coloring_clear)
/* Refines the colours until they are stable. O((orbits of ranks + path entries of orbits of groups) x rounds) */
void pod_coloring_refine (PodColoring *c);

/* Renumbers signatures to colours in order of first appearance; returns how many there are. O(n). */
uint32_t pod_coloring_number (const uint64_t *signature, uint32_t n, uint32_t *color);
