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

/* Of the payload, up and down a NIC. */
static void
nic_shares (const PodPlanRequest *request, double *out_up, double *out_down)
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

/* The links of the @at-th members of all nodes to the top that they share and back. A gather's
 * uplinks and a scatter's downlinks of the tree carry one shard per node below them. */
static bool
add_stream (PodPlanRequest *request, uint32_t at, GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;
  g_auto (PodLinkLoads) below = { 0 }; /* nodes below a link */
  double up, down;

  nic_shares (request, &up, &down);
  pod_link_loads_init (&below, 8 * nodes->n_nodes);
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
            pod_link_loads_add (&below, g_array_index (request->route, uint32_t, i), 0.5);
        }
    }
  for (uint32_t i = 0; i < below.n; i++)
    {
      PodLink link;
      double share, shard = 1.0 / ((double) nodes->n_least * nodes->n_nodes);

      pod_topology_link (request->topology, below.links[i], &link);
      share = link.sign >= 0 ? up : down;
      if (link.kind == POD_LINK_TREE && share <= shard)
        share *= ceil (below.bytes[i]);
      pod_link_loads_add (&request->loads, below.links[i], share);
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
  nic_shares (request, &up, &down);
  plan->explain = g_strdup_printf (
      "the scale-out switches reduce and copy (assumed, as asked for): %.4g x bytes up and %.4g x "
      "down a NIC",
      up, down);
  return true;
}
