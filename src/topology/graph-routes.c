#include "base/error.h"
#include "topology/graph-private.h"

/* Routes that a graph's file gives instead of the cheapest ways. */

static const char *
name_of (const PodGraphSpec *graph, uint32_t vertex)
{
  return pod_graph_vertex (graph, vertex)->name;
}

bool
pod_graph_check_route (const PodGraphSpec *graph, const PodGraphRoute *route, GError **error)
{
  uint32_t vertex = route->from;

  if (route->from >= graph->n_devices || route->to >= graph->n_devices || route->from == route->to)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "a route is between two nodes, got '%s' and '%s'", name_of (graph, route->from),
                   name_of (graph, route->to));
      return false;
    }
  for (uint32_t i = 0; i < route->n_links; i++)
    {
      uint32_t index = g_array_index (graph->route_links, uint32_t, route->begin + i);
      const PodGraphLink *link = pod_graph_link (graph, index);
      if (pod_graph_cross (link, vertex, &vertex))
        continue;
      g_set_error (
          error, POD_ERROR, POD_ERROR_INVALID,
          "the route from '%s' to '%s' is at '%s', which link '%s' (%s - %s) does not leave",
          name_of (graph, route->from), name_of (graph, route->to), name_of (graph, vertex),
          link->name, name_of (graph, link->from), name_of (graph, link->to));
      return false;
    }
  if (vertex == route->to)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "the route from '%s' to '%s' ends at '%s'",
               name_of (graph, route->from), name_of (graph, route->to), name_of (graph, vertex));
  return false;
}

static int
compare_routes (const void *a, const void *b)
{
  const PodGraphRoute *left = a;
  const PodGraphRoute *right = b;

  if (left->from != right->from)
    return left->from < right->from ? -1 : 1;
  return left->to < right->to ? -1 : left->to > right->to;
}

bool
pod_graph_spec_sort_routes (PodGraphSpec *graph, GError **error)
{
  g_array_sort (graph->routes, compare_routes);
  for (unsigned i = 1; i < graph->routes->len; i++)
    {
      const PodGraphRoute *route = &g_array_index (graph->routes, PodGraphRoute, i);
      if (compare_routes (route - 1, route) != 0)
        continue;
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "the route from '%s' to '%s' stands twice",
                   name_of (graph, route->from), name_of (graph, route->to));
      return false;
    }
  return true;
}

const PodGraphRoute *
pod_graph_find_route (const PodGraphSpec *graph, uint32_t from, uint32_t to)
{
  PodGraphRoute key = { .from = from, .to = to };
  unsigned index = 0;

  if (graph->routes->len == 0
      || !g_array_binary_search (graph->routes, &key, compare_routes, &index))
    return NULL;
  return &g_array_index (graph->routes, PodGraphRoute, index);
}
