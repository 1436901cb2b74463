#pragma once

#include "scenario/scenario.h"

/* Candidates that may still be among the best, least bound first. A bound is replaced by a nearer one when its candidate comes first: most
 * never do, and nearer bounds cost more. */

enum
{
  POD_FRONTIER_NEARER = 2, /* by a layer, by the program */
};

typedef struct
{
  uint64_t candidate;
  PodRunBound bound; /* of the job alone */
  guint near_index[POD_FRONTIER_NEARER]; /* of nearer bounds, each nearer than the one before */
  uint8_t n_nearer;
  uint32_t n_members; /* more than 1: the candidate is the head of so many, none of which takes less time; 0: they are there themselves */
} PodFrontierEntry;

typedef struct PodFrontier PodFrontier;

/* @is_by_memory: the least bound is that of bytes, else of time; of equals that of the shorter time, then the lowest candidate. */
PodFrontier *pod_frontier_new (bool is_by_memory);
void pod_frontier_free (PodFrontier *frontier);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodFrontier, pod_frontier_free)

/* O(log n) */
void pod_frontier_add (PodFrontier *frontier, uint64_t candidate, uint64_t n_members, const PodRunBound *bound);
/* All that were ever added, taken or not. */
guint pod_frontier_n (const PodFrontier *frontier);
const PodFrontierEntry *pod_frontier_at (const PodFrontier *frontier, guint index);
/* The nearest bound that is known of it. */
const PodRunBound *pod_frontier_bound (const PodFrontier *frontier, const PodFrontierEntry *entry);
/* The @n-th that is known of it, 0 the loosest. */
const PodRunBound *pod_frontier_nth_bound (const PodFrontier *frontier, const PodFrontierEntry *entry, guint n);
/* Those not taken. */
guint pod_frontier_n_left (const PodFrontier *frontier);
/* The one that would be taken next, NULL none. */
const PodFrontierEntry *pod_frontier_first (const PodFrontier *frontier);
/* Takes it: its index. O(log n) */
guint pod_frontier_take (PodFrontier *frontier);
/* @members (element-type uint64_t) take the place of their head, which was taken and has a nearer bound: its time is theirs. */
void pod_frontier_expand (PodFrontier *frontier, guint index, const GArray *members);
/* Puts back one that was taken, with a nearer bound; what is looser in it is not believed. O(log n) */
void pod_frontier_put_back (PodFrontier *frontier, guint index, const PodRunBound *nearer);
