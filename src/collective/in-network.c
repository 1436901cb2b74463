#include "collective/plan-private.h"

#include <math.h>

/* SHARP: the scale-out switches add on the way up and copy on the way down, and the nodes gather
 * inside. Of k ranks on each of N nodes, one stream of V/k per rank of a node:
 *
 *   all-reduce      V/k up and V/k down on a NIC instead of 2V/k (N-1)/N each way
 *   reduce-scatter  V/k up, V/kN down: the bytes up are what a ring sends too, those down are saved
 *   all-gather      V/kN up, V/k (N-1)/N down: the other way round
 *
 * A link that several nodes share carries a stream once. Taken by name only: whether a machine's
 * switches reduce is a matter of its configuration. */

bool
pod_fits_sharp (const PodPlanRequest *request)
{
  const PodMemberNodes *nodes = &request->nodes;

  for (unsigned node = 0; node < nodes->n_nodes; node++)
    if (pod_member_nodes_count (nodes, node) != nodes->n_least)
      return false;
  return nodes->n_nodes > 1;
}

void
pod_sharp_shares (const PodPlanRequest *request, double *out_up, double *out_down)
{
  double n = request->nodes.n_nodes, k = request->nodes.n_least;

  *out_up = request->kind == POD_ALL_GATHER ? 1 / (k * n) : 1 / k;
  switch (request->kind)
    {
    case POD_REDUCE_SCATTER:
      *out_down = 1 / (k * n);
      break;
    case POD_ALL_GATHER:
      *out_down = (n - 1) / (k * n);
      break;
    default:
      *out_down = 1 / k;
    }
}

/* The links of the @at-th members of all nodes to the top that they share and back. */
bool
pod_sharp_count (PodPlanRequest *request, uint32_t at, PodLinkLoads *below, GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;

  for (unsigned node = 0; node < nodes->n_nodes; node++)
    {
      uint32_t from = nodes->devices[nodes->first[node] + at];
      uint32_t to = nodes->devices[nodes->first[(node + 1) % nodes->n_nodes] + at];
      uint32_t far
          = nodes->devices[nodes->first[(node + nodes->n_nodes / 2) % nodes->n_nodes] + at];

      for (unsigned way = 0; way < 2; way++)
        {
          if (!pod_route_find (request, from, way == 0 ? to : far, error))
            return false;
          for (guint i = 0; i < request->route->len; i++)
            pod_link_loads_add (below, g_array_index (request->route, uint32_t, i), 0.5);
        }
    }
  return true;
}

/* A gather's uplinks and a scatter's downlinks of the tree carry one shard per node below them. */
double
pod_sharp_share (const PodPlanRequest *request, const PodLink *link, double n_below)
{
  double up, down, share, shard = 1.0 / ((double) request->nodes.n_least * request->nodes.n_nodes);

  pod_sharp_shares (request, &up, &down);
  share = link->sign >= 0 ? up : down;
  return link->kind == POD_LINK_TREE && share <= shard ? share * ceil (n_below) : share;
}

static bool
add_stream (PodPlanRequest *request, uint32_t at, GError **error)
{
  g_auto (PodLinkLoads) below = { 0 };

  pod_link_loads_init (&below, 8 * request->nodes.n_nodes);
  if (!pod_sharp_count (request, at, &below, error))
    return false;
  for (uint32_t i = 0; i < below.n; i++)
    {
      PodLink link;

      pod_topology_link (request->topology, below.links[i], &link);
      pod_link_loads_add (&request->loads, below.links[i],
                          pod_sharp_share (request, &link, below.bytes[i]));
    }
  return true;
}

bool
pod_build_sharp (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;
  double k = nodes->n_least, up, down;
  unsigned twice = request->kind == POD_ALL_REDUCE ? 2 : 1;
  int64_t inside_ps, across_ps;

  if (!pod_node_latencies (request, &inside_ps, &across_ps, error))
    return false;
  for (uint32_t at = 0; at < nodes->n_least; at++)
    if (!add_stream (request, at, error))
      return false;
  for (unsigned node = 0; node < nodes->n_nodes; node++)
    if (!pod_node_add (request, node, twice * (k - 1) / k, error))
      return false;
  plan->n_steps = 1 + (k > 1 ? twice : 0);
  plan->n_net_steps = 1;
  plan->net_latency_ps = across_ps;
  plan->latency_ps = across_ps + (k > 1 ? twice * inside_ps : 0);
  plan->book_s_per_byte
      = MAX (pod_node_book_across (request) / k, twice * pod_node_book_inside (request));
  pod_sharp_shares (request, &up, &down);
  plan->explain = g_strdup_printf (
      "the scale-out switches reduce and copy (assumed, as asked for): %.4g x bytes up and %.4g x "
      "down a NIC",
      up, down);
  return true;
}
