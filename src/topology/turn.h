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
} PodTurn;

/* Whether it carries every switch, rail and link among devices 0 to @n_devices - 1 to one like it.
 * False on other fabrics, and with background traffic. O(levels). */
bool pod_turn_fits (const PodTurn *turn, const PodTopology *topology, uint32_t n_devices);

/* Where @n_times of it carry a device, a link. O(1). */
uint32_t pod_turn_device (const PodTurn *turn, uint32_t n_times, uint32_t device);
uint32_t pod_turn_link (const PodTurn *turn, uint32_t n_times, const PodTopology *topology,
                        uint32_t link);

/* The link that stands for all to which the turns carry @link; @out_n: how many these are. Turns
 * share no place. O(turns). */
uint32_t pod_turns_first_link (const PodTurn *turns, unsigned n_turns, const PodTopology *topology,
                               uint32_t link, uint64_t *out_n);
