#include "topology/graph-private.h"

#include <math.h>

#include "base/error.h"

enum
{
  MAX_TABLE = 1 << 26, /* next hops kept: devices x vertices, 4 bytes each */
};

#define NO_LINK UINT32_MAX

/* Next hops towards every device, and the adjacency that they were made from. */
struct PodGraphRoutes
{
  uint32_t *next;      /* [to device][vertex]: link, or NO_LINK */
  uint32_t *out_begin; /* links that leave vertex v: out_links[out_begin[v] ... out_begin[v + 1]) */
  uint32_t *out_links;
  uint32_t *in_begin; /* links that enter it */
  uint32_t *in_links;
  uint32_t *first_link; /* id of the first direction of the file's link i */
  unsigned diameter;
};

void
pod_graph_routes_free (PodGraphRoutes *routes)
{
  if (routes == NULL)
    return;
  g_free (routes->next);
  g_free (routes->out_begin);
  g_free (routes->out_links);
  g_free (routes->in_begin);
  g_free (routes->in_links);
  g_free (routes->first_link);
  g_free (routes);
}

/* -- adjacency --------------------------------------------------------------------------------- */

/* The other end of a link that is crossed from @vertex. */
static uint32_t
far_end (const PodLink *link, uint32_t vertex)
{
  return vertex == link->from ? link->to : link->from;
}

/* Sorts link ids by the vertex they leave, or enter: a counting sort, so that ids stay in order. A
 * half-duplex link leaves and enters both its ends. */
static void
sort_links (const PodTopology *topology, bool is_out, uint32_t **out_begin, uint32_t **out_links)
{
  uint32_t *begin = g_new0 (uint32_t, topology->n_vertices + 2);
  uint32_t *links = g_new0 (uint32_t, 2 * (size_t) MAX (topology->n_links, 1));

  for (uint32_t id = 0; id < topology->n_links; id++)
    {
      const PodLink *link = &topology->links[id];
      begin[(is_out ? link->from : link->to) + 2]++;
      if (link->is_half_duplex)
        begin[(is_out ? link->to : link->from) + 2]++;
    }
  for (uint32_t vertex = 2; vertex < topology->n_vertices + 2; vertex++)
    begin[vertex] += begin[vertex - 1];
  for (uint32_t id = 0; id < topology->n_links; id++)
    {
      const PodLink *link = &topology->links[id];
      links[begin[(is_out ? link->from : link->to) + 1]++] = id;
      if (link->is_half_duplex)
        links[begin[(is_out ? link->to : link->from) + 1]++] = id;
    }
  *out_begin = begin;
  *out_links = links;
}

/* -- cheapest ways: Dijkstra from the destination, against the links -----------------------------
 */

typedef struct
{
  uint64_t cost;
  uint32_t hops;
  uint32_t vertex;
} Way;

static bool
is_less (const Way *a, const Way *b)
{
  if (a->cost != b->cost)
    return a->cost < b->cost;
  if (a->hops != b->hops)
    return a->hops < b->hops;
  return a->vertex < b->vertex;
}

static void
heap_push (GArray *heap, Way way)
{
  g_array_append_val (heap, way);
  Way *ways = (Way *) (void *) heap->data;
  unsigned at = heap->len - 1;

  while (at > 0 && is_less (&way, &ways[(at - 1) / 2]))
    {
      ways[at] = ways[(at - 1) / 2];
      at = (at - 1) / 2;
    }
  ways[at] = way;
}

static Way
heap_pop (GArray *heap)
{
  Way *ways = (Way *) (void *) heap->data;
  Way top = ways[0];
  Way last = ways[heap->len - 1];
  unsigned n_ways = heap->len - 1;
  unsigned at = 0;

  for (;;)
    {
      unsigned child = 2 * at + 1;
      if (child >= n_ways)
        break;
      if (child + 1 < n_ways && is_less (&ways[child + 1], &ways[child]))
        child++;
      if (!is_less (&ways[child], &last))
        break;
      ways[at] = ways[child];
      at = child;
    }
  ways[at] = last;
  g_array_set_size (heap, n_ways);
  return top;
}

/* 1/rate in whole attoseconds per byte, so that equal ways are equal whatever the order of the sum;
 * the cap keeps sums of 65536 links below 2^64. */
static uint64_t
link_cost (const PodLink *link)
{
  return (uint64_t) CLAMP (1e18 / link->bytes_per_s.nominal, 1.0, 1e14);
}

/* Cheapest way of every vertex to @to; cost UINT64_MAX where there is none. */
static void
find_ways (const PodTopology *topology, uint32_t to, GArray *heap, Way *ways)
{
  const PodGraphRoutes *routes = topology->routes;

  for (uint32_t vertex = 0; vertex < topology->n_vertices; vertex++)
    ways[vertex] = (Way){ UINT64_MAX, UINT32_MAX, vertex };
  ways[to] = (Way){ 0, 0, to };
  heap_push (heap, ways[to]);
  while (heap->len > 0)
    {
      Way way = heap_pop (heap);
      if (is_less (&ways[way.vertex], &way))
        continue; /* a better one was found after this was pushed */
      for (uint32_t i = routes->in_begin[way.vertex]; i < routes->in_begin[way.vertex + 1]; i++)
        {
          const PodLink *link = &topology->links[routes->in_links[i]];
          uint32_t from = far_end (link, way.vertex);
          Way longer = { way.cost + link_cost (link), way.hops + 1, from };
          if (!is_less (&longer, &ways[from]))
            continue;
          ways[from] = longer;
          heap_push (heap, longer);
        }
    }
}

/* The links that are first on a cheapest way from @vertex; the destination picks one, so that the
 * ways to different devices spread over equal switches (D-mod-k). */
static uint32_t
pick_next (const PodTopology *topology, uint32_t to, uint32_t vertex, const Way *ways)
{
  const PodGraphRoutes *routes = topology->routes;
  uint32_t n_equal = 0;

  for (int pass = 0; pass < 2; pass++)
    {
      uint32_t picked = n_equal > 0 ? to % n_equal : 0;
      uint32_t at = 0;
      for (uint32_t i = routes->out_begin[vertex]; i < routes->out_begin[vertex + 1]; i++)
        {
          const PodLink *link = &topology->links[routes->out_links[i]];
          const Way *rest = &ways[far_end (link, vertex)];
          if (rest->cost == UINT64_MAX || rest->cost + link_cost (link) != ways[vertex].cost
              || rest->hops + 1 != ways[vertex].hops)
            continue;
          if (pass == 1 && at == picked)
            return routes->out_links[i];
          at++;
        }
      n_equal = at;
    }
  return NO_LINK;
}

static void
fill_routes (PodTopology *topology)
{
  PodGraphRoutes *routes = topology->routes;
  g_autoptr (GArray) heap = g_array_new (FALSE, FALSE, sizeof (Way));
  g_autofree Way *ways = g_new0 (Way, topology->n_vertices);

  routes->next = g_new (uint32_t, (size_t) topology->n_devices * topology->n_vertices);
  for (uint32_t to = 0; to < topology->n_devices; to++)
    {
      uint32_t *next = routes->next + (size_t) to * topology->n_vertices;
      find_ways (topology, to, heap, ways);
      for (uint32_t vertex = 0; vertex < topology->n_vertices; vertex++)
        {
          bool has_way = vertex != to && ways[vertex].cost != UINT64_MAX;
          next[vertex] = has_way ? pick_next (topology, to, vertex, ways) : NO_LINK;
          if (has_way && vertex < topology->n_devices
              && pod_graph_find_route (topology->spec->graph, vertex, to) == NULL)
            routes->diameter = MAX (routes->diameter, ways[vertex].hops);
        }
    }
}

/* -- building ---------------------------------------------------------------------------------- */

static void
fill_links (PodTopology *topology)
{
  const PodGraphSpec *graph = topology->spec->graph;
  uint32_t id = 0;

  for (unsigned i = 0; i < graph->links->len; i++)
    topology->n_links += pod_graph_link (graph, i)->duplex == POD_GRAPH_FULL ? 2 : 1;
  topology->links = g_new0 (PodLink, MAX (topology->n_links, 1));
  for (unsigned i = 0; i < graph->links->len; i++)
    {
      const PodGraphLink *link = pod_graph_link (graph, i);
      topology->routes->first_link[i] = id;
      PodLink there = { .kind = POD_LINK_EXPLICIT,
                        .bytes_per_s = link->bytes_per_s,
                        .latency_ps = link->latency_ps,
                        .from = link->from,
                        .to = link->to,
                        .sign = 1,
                        .is_half_duplex = link->duplex == POD_GRAPH_HALF };
      PodLink back = there;
      topology->links[id++] = there;
      if (link->duplex != POD_GRAPH_FULL)
        continue;
      back.from = link->to;
      back.to = link->from;
      back.sign = -1;
      topology->links[id++] = back;
    }
}

static unsigned
largest_island (const PodGraphSpec *graph)
{
  g_autofree unsigned *sizes = g_new0 (unsigned, graph->islands->len);
  unsigned largest = 0;

  for (unsigned i = 0; i < graph->n_devices; i++)
    {
      unsigned size = ++sizes[pod_graph_vertex (graph, i)->island];
      largest = MAX (largest, size);
    }
  return largest;
}

bool
pod_graph_build (PodTopology *topology, GError **error)
{
  const PodGraphSpec *graph = topology->spec->graph;
  unsigned per_chip = topology->chip->devices_per_chip;

  g_assert (graph != NULL);
  topology->n_devices = graph->n_devices;
  topology->n_vertices = graph->vertices->len;
  topology->n_chips = (topology->n_devices + per_chip - 1) / per_chip;
  topology->n_nodes = 0;
  for (unsigned i = 0; i < graph->n_devices;
       i++) /* switches may name islands that no device is in */
    topology->n_nodes = MAX (topology->n_nodes, pod_graph_vertex (graph, i)->island + 1);
  topology->n_hosts = topology->n_nodes;
  topology->chips_per_node = largest_island (graph);
  topology->n_slices = 1;
  topology->n_rails = 1;
  if ((uint64_t) topology->n_devices * topology->n_vertices > MAX_TABLE)
    {
      g_set_error (
          error, POD_ERROR, POD_ERROR_LIMIT,
          "a graph of %u nodes and %u switches is too large for its table of %d next hops: "
          "describe it as <switched>",
          topology->n_devices, topology->n_vertices - topology->n_devices, MAX_TABLE);
      return false;
    }
  topology->routes = g_new0 (PodGraphRoutes, 1);
  topology->routes->first_link = g_new0 (uint32_t, MAX (graph->links->len, 1));
  fill_links (topology);
  sort_links (topology, true, &topology->routes->out_begin, &topology->routes->out_links);
  sort_links (topology, false, &topology->routes->in_begin, &topology->routes->in_links);
  fill_routes (topology);
  for (unsigned i = 0; i < graph->routes->len; i++)
    topology->routes->diameter = MAX (topology->routes->diameter,
                                      g_array_index (graph->routes, PodGraphRoute, i).n_links);
  return true;
}

/* -- use --------------------------------------------------------------------------------------- */

/* The directed links of a route that the file gives. */
static void
append_given (const PodTopology *topology, const PodGraphRoute *route, GArray *links)
{
  const PodGraphSpec *graph = topology->spec->graph;
  uint32_t vertex = route->from;

  for (uint32_t i = 0; i < route->n_links; i++)
    {
      uint32_t index = g_array_index (graph->route_links, uint32_t, route->begin + i);
      const PodGraphLink *link = pod_graph_link (graph, index);
      bool is_back = link->duplex == POD_GRAPH_FULL && vertex == link->to;
      pod_links_append (links, topology->routes->first_link[index] + (is_back ? 1 : 0));
      vertex = vertex == link->from ? link->to : link->from;
    }
}

bool
pod_graph_route (const PodTopology *topology, uint32_t from, uint32_t to, GArray *links)
{
  const uint32_t *next = topology->routes->next + (size_t) to * topology->n_vertices;
  const PodGraphRoute *given = pod_graph_find_route (topology->spec->graph, from, to);
  uint32_t vertex = from;

  if (given != NULL)
    {
      append_given (topology, given, links);
      return true;
    }
  if (next[from] == NO_LINK)
    return false;
  while (vertex != to)
    {
      pod_links_append (links, next[vertex]);
      vertex = far_end (&topology->links[next[vertex]], vertex);
    }
  return true;
}

unsigned
pod_graph_island_of (const PodTopology *topology, uint32_t device)
{
  return pod_graph_vertex (topology->spec->graph, device)->island;
}

unsigned
pod_graph_diameter (const PodTopology *topology)
{
  return topology->routes->diameter;
}

/* -- bisection: the least cut between the first and the second half of the devices ---------------
 */

typedef struct
{
  const PodTopology *topology;
  double *residual;       /* of link i forwards at 2i, backwards at 2i + 1 */
  uint32_t *reached_over; /* residual arc into a vertex; NO_LINK: not reached */
  uint32_t *queue;
} Flow;

#define ROOT (UINT32_MAX - 1) /* reached_over of the devices where the search begins */

/* Goes over residual arc @arc when it has something left and leads to somewhere new. */
static void
flow_visit (Flow *flow, uint32_t arc, uint32_t to, uint32_t *n_queued)
{
  if (flow->residual[arc] <= 0 || flow->reached_over[to] != NO_LINK)
    return;
  flow->reached_over[to] = arc;
  flow->queue[(*n_queued)++] = to;
}

/* The residual arc of link @id that leaves @vertex. */
static uint32_t
arc_from (const PodTopology *topology, uint32_t id, uint32_t vertex)
{
  return 2 * id + (topology->links[id].from == vertex ? 0 : 1);
}

/* A way with residual capacity from the first half to a device of the second, by breadth:
 * Edmonds-Karp. */
static bool
flow_search (Flow *flow, uint32_t *out_end)
{
  const PodTopology *topology = flow->topology;
  const PodGraphRoutes *routes = topology->routes;
  uint32_t half = topology->n_devices / 2;
  uint32_t n_queued = 0;

  for (uint32_t vertex = 0; vertex < topology->n_vertices; vertex++)
    flow->reached_over[vertex] = vertex < half ? ROOT : NO_LINK;
  for (uint32_t device = 0; device < half; device++)
    flow->queue[n_queued++] = device;
  for (uint32_t at = 0; at < n_queued; at++)
    {
      uint32_t vertex = flow->queue[at];
      if (vertex >= half && vertex < topology->n_devices)
        {
          *out_end = vertex;
          return true;
        }
      for (uint32_t i = routes->out_begin[vertex]; i < routes->out_begin[vertex + 1]; i++)
        flow_visit (flow, arc_from (topology, routes->out_links[i], vertex),
                    far_end (&topology->links[routes->out_links[i]], vertex), &n_queued);
      for (uint32_t i = routes->in_begin[vertex]; i < routes->in_begin[vertex + 1]; i++)
        flow_visit (flow, arc_from (topology, routes->in_links[i], vertex),
                    far_end (&topology->links[routes->in_links[i]], vertex), &n_queued);
    }
  return false;
}

static uint32_t
arc_tail (const PodTopology *topology, uint32_t arc)
{
  const PodLink *link = &topology->links[arc / 2];

  return arc % 2 == 0 ? link->from : link->to;
}

/* Fills the way that ends at @end. Returns: what it took */
static double
flow_push (Flow *flow, uint32_t end)
{
  double least = INFINITY;

  for (uint32_t vertex = end; flow->reached_over[vertex] != ROOT;
       vertex = arc_tail (flow->topology, flow->reached_over[vertex]))
    least = fmin (least, flow->residual[flow->reached_over[vertex]]);
  for (uint32_t vertex = end; flow->reached_over[vertex] != ROOT;
       vertex = arc_tail (flow->topology, flow->reached_over[vertex]))
    {
      uint32_t arc = flow->reached_over[vertex];
      flow->residual[arc] -= least;
      flow->residual[arc ^ 1] += least;
    }
  return least;
}

double
pod_graph_bisection (const PodTopology *topology, bool is_book)
{
  g_autofree double *residual = g_new0 (double, 2 * (size_t) MAX (topology->n_links, 1));
  g_autofree uint32_t *reached_over = g_new0 (uint32_t, topology->n_vertices);
  g_autofree uint32_t *queue = g_new0 (uint32_t, topology->n_vertices);
  Flow flow = { topology, residual, reached_over, queue };
  double total = 0;
  uint32_t end = 0;

  for (uint32_t id = 0; id < topology->n_links; id++)
    {
      residual[2 * id] = pod_rated (&topology->links[id].bytes_per_s, is_book);
      if (topology->links[id].is_half_duplex) /* the whole rate may go either way */
        residual[2 * id + 1] = residual[2 * id];
    }
  while (flow_search (&flow, &end))
    total += flow_push (&flow, end);
  return total;
}
