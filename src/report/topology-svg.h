#pragma once

#include "topology/topology.h"

/* The machine as an SVG picture: tori as grids (3-D ones as stacked planes) with wrap links as arcs
 * and hosts outlined, switched nodes with their switches and NICs under the levels of the tree,
 * graphs as islands and switches. What is large is abbreviated with an ellipsis and its count.
 * Returns: (transfer full) */
char *pod_report_topology_svg (const PodTopology *topology);
