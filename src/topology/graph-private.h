#pragma once

#include "topology/topology-private.h"

/* A machine as an explicit list, as the file has it. Vertices: nodes (devices) first, then
 * switches. */

typedef struct
{
  char *name;
  unsigned island; /* nodes only */
} PodGraphVertex;

typedef struct
{
  uint32_t from;
  uint32_t to;
  PodRated bytes_per_s;
  int64_t latency_ps;
  bool is_simplex;
} PodGraphLink;

struct PodGraphSpec
{
  unsigned n_references;
  GArray *vertices; /* (element-type PodGraphVertex) */
  unsigned n_devices;
  GPtrArray *islands; /* (element-type utf8) in order of appearance */
  GArray *links;      /* (element-type PodGraphLink) */
};

static inline const PodGraphVertex *
pod_graph_vertex (const PodGraphSpec *graph, uint32_t index)
{
  return &g_array_index (graph->vertices, PodGraphVertex, index);
}

static inline const PodGraphLink *
pod_graph_link (const PodGraphSpec *graph, uint32_t index)
{
  return &g_array_index (graph->links, PodGraphLink, index);
}
