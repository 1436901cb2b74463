#pragma once

#include "topology/topology.h"

/* ASTRA-sim's analytical network file: topology, npus_count, bandwidth and latency, a list each
 * with one entry for every dimension. Rings of one rate (three dimensions at most) become a torus,
 * a lone Switch or FullyConnected a switched machine, all else a graph with NPUs numbered as
 * ASTRA-sim does, first dimension fastest. GB/s there is 2^30 bytes a second. Errors name file and
 * line. Returns: (transfer full) (nullable). O(links). */
PodTopology *pod_astra_yaml_read (const char *file, GError **error);
