#pragma once

#include "topology/topology-private.h"

/* A machine as an explicit list, as the file has it. Vertices: nodes (devices) first, then
 * switches. */

typedef struct
{
  char *name;
  unsigned island; /* nodes only */
} PodGraphVertex;

typedef enum
{
  POD_GRAPH_FULL,    /* each direction has the rate */
  POD_GRAPH_HALF,    /* both directions share it */
  POD_GRAPH_SIMPLEX, /* only from - to */
} PodGraphDuplex;

typedef struct
{
  uint32_t from;
  uint32_t to;
  PodRated bytes_per_s;
  int64_t latency_ps;
  PodGraphDuplex duplex;
  char *name; /* (nullable) what a route calls it */
} PodGraphLink;

/* A way that is given, not computed: the links from device @from to device @to, in order. */
typedef struct
{
  uint32_t from;
  uint32_t to;
  uint32_t begin; /* of its links in route_links */
  uint32_t n_links;
} PodGraphRoute;

struct PodGraphSpec
{
  unsigned n_references;
  GArray *vertices; /* (element-type PodGraphVertex) */
  unsigned n_devices;
  GPtrArray *islands; /* (element-type utf8) in order of appearance */
  GArray *links;       /* (element-type PodGraphLink) */
  GArray *routes;      /* (element-type PodGraphRoute) sorted by from, then to */
  GArray *route_links; /* (element-type uint32_t) indices of links */
};

PodGraphSpec *pod_graph_spec_new (void);
/* Whether @route is a way over the links from its device to its device. Error: INVALID, naming the
 * ends. O(links). */
bool pod_graph_check_route (const PodGraphSpec *graph, const PodGraphRoute *route, GError **error);
/* Puts the routes in order. Error: INVALID when a pair has two. O(routes log routes). */
bool pod_graph_spec_sort_routes (PodGraphSpec *graph, GError **error);
/* The given way between two devices. (transfer none) (nullable). O(log routes). */
const PodGraphRoute *pod_graph_find_route (const PodGraphSpec *graph, uint32_t from, uint32_t to);
unsigned pod_graph_spec_island (PodGraphSpec *graph, const char *name);

/* The end of a link that is not @vertex, where it may be crossed from there; false elsewhere. */
static inline bool
pod_graph_cross (const PodGraphLink *link, uint32_t vertex, uint32_t *out_to)
{
  if (vertex != link->from && (vertex != link->to || link->duplex == POD_GRAPH_SIMPLEX))
    return false;
  *out_to = vertex == link->from ? link->to : link->from;
  return true;
}

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
