#pragma once

#include "topology/topology.h"

/* A switched machine looks the same when equal parts of it change places everywhere at once: the
 * chips of every node, the nodes of every leaf, whole leaves. A turn moves each block of @lo
 * devices to the next place among the @size blocks of its larger block, and the last to the first;
 * larger blocks begin at multiples of @lo x @size. Turns of different places commute. */
typedef struct
{
  uint32_t lo;
  uint32_t size;
  /* Where blocks are not all alike but those of a set are, which then change places in any way: by
   * place, the first of its set, and how many these are. (owned) (nullable) NULL: all are. */
  uint32_t *first;
  uint32_t *n_alike;
} PodTurn;

/* Whether it carries every switch, rail and link among devices 0 to @n_devices - 1 to one like it.
 * False on other fabrics, and with background traffic. O(levels). */
bool pod_turn_fits (const PodTurn *turn, const PodTopology *topology, uint32_t n_devices);

/* The place of a link among the blocks, and what it is in the first one. False where the turn
 * carries it to itself. O(levels). */
bool pod_turn_home_of_link (const PodTurn *turn, const PodTopology *topology, uint32_t link,
                            uint32_t *out_place, uint32_t *out_home);

/* The link that stands for all to which the turns carry @link, or to which blocks that are alike
 * do; @out_n: how many these are. Turns share no place. O(turns). */
uint32_t pod_turns_first_link (const PodTurn *turns, unsigned n_turns, const PodTopology *topology,
                               uint32_t link, uint64_t *out_n);
