#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "network/network.h"

/* The max-min fair rates of a set of transfers, by water filling: all rates rise together until a
 * link is full; its transfers are fixed; the rest go on. Pure function over indices; no time, no
 * events.
 *
 *   for each link l:  sum over t of share(t,l) * x(t) <= capacity(l);  x max-min fair.
 *
 * Units: rates and capacities in 1/256 byte/s (integers), shares Q32. Sums in unsigned __int128,
 * exact. */
typedef struct PodMaxMin PodMaxMin; /* scratch, reused between calls */

PodMaxMin *pod_max_min_new (void);
void pod_max_min_free (PodMaxMin *solver);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodMaxMin, pod_max_min_free)

/* The rate on one link of a transfer that has it for itself, at least 1. Floors keep the order, so
 * that the least over its links is the transfer's rate. O(1). */
uint64_t pod_max_min_rate_alone (uint64_t capacity, uint64_t share_q32);

/* @paths: n_transfers paths of n_entries (> 0) entries each; @capacity is indexed by their links.
 * @out_rate: n_transfers rates, each at least 1. All links of the lowest level are filled in one
 * round, so the rates depend neither on the order of transfers nor on the numbers of links.
 * O(entries + links) for few distinct levels, else O(entries x log links); no allocation once
 * grown. */
void pod_max_min_solve (PodMaxMin *solver, const uint64_t *capacity,
                        const PodPathEntry *const *paths, const uint32_t *n_entries,
                        uint32_t n_transfers, uint64_t *out_rate);
