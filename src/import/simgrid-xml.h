#pragma once

#include "topology/topology.h"

/* A SimGrid platform (DTD 4 and 4.1): zones with Full, Floyd, Dijkstra and Cluster routing, flat
 * clusters with or without backbone become a graph whose routes are the file's; a platform that is
 * one crossbar, torus (of three dimensions at most), fat tree or dragonfly becomes a switched
 * machine, a torus or a graph. A SHARED link is one link for both ways (half duplex); one that more
 * than two places share becomes a pair of switches with the link between them. Errors name file and
 * line. Returns: (transfer full) (nullable). O(hosts^2) to compare the routes. */
PodTopology *pod_simgrid_xml_read (const char *file, GError **error);
