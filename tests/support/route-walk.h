#pragma once

#include "topology/topology.h"

/* Walks the route from device to device and fails the test unless each link begins where the last
 * ended, exists, and the last one ends at @to. Devices of one chip count as one place, as links
 * belong to chips. Returns: hops, or -1 for no route */
int route_walk (const PodTopology *topology, uint32_t from, uint32_t to);

/* Hops of the shortest way from @from to every vertex over links of any kind but @without (-1: over
 * all), by breadth; -1 where there is none. Returns: (transfer full) */
int *route_distances (const PodTopology *topology, uint32_t from, int without);
