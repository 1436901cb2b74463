#pragma once

#include "topology/topology.h"

/* Machines look alike from many places. A shift carries devices to devices and links to links so
 * that what a route, or a plan made of routes, does at one place it does at the other: chips move
 * by so many places of a node, nodes of a tree, or steps of a torus. */
typedef struct
{
  const PodTopology *topology;
  int32_t coords[3]; /* torus, in chips */
  int32_t places;    /* switched: chips within their node */
  int32_t rails;
  int32_t nodes;
  int32_t units[3]; /* groups of nodes under a switch of each level, of one rail */
  /* Where all links of a kind move by as much: the kinds' ends, and how far */
  unsigned n_kinds; /* 0 where they do not */
  uint32_t end_of_kind[6];
  int64_t links_of_kind[6];
} PodTopologyShift;

/* The shift that carries @from[i] to @to[i] for all @n devices: false where there is none, and
 * always on graphs, twisted tori and machines with background traffic. It then holds for the routes
 * among these devices. O(n x levels). */
bool pod_topology_shift_init (PodTopologyShift *shift, const PodTopology *topology,
                              const uint32_t *from, const uint32_t *to, uint32_t n);

/* Where it carries a link of such a route. O(1). */
uint32_t pod_topology_shift_link (const PodTopologyShift *shift, uint32_t link);
