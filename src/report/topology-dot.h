#pragma once

#include "topology/topology.h"

/* The machine in Graphviz's language: every device and switch is a node, every pair of opposite
 * links an edge with its rate. LIMIT when it has more devices than Graphviz could lay out. Returns:
 * (transfer full) (nullable) */
char *pod_report_topology_dot (const PodTopology *topology, GError **error);
