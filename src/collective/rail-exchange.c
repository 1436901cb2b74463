#include "collective/plan-private.h"

/* Over several nodes of k ranks, N nodes, n = sum of k.
 *
 * hierarchical  gather: shards cross along the rails first, node to node in a ring, then each node
 * gathers inside. The edge from node j to the next carries all but the shard of the next: V(1 -
 * k/n), over k NICs, so a NIC moves V/k (N-1)/N; inside, each device still needs V(k-1)/k.
 * Reductions are the mirror image, all-reduce is both. Nodes may have unequal numbers of members.
 * ring          one ring through all ranks per NIC ("channel"), each with 1/k of the buffer and a
 * crossing at another rail: an edge carries V(n-1)/n, a NIC 1/k of it, and (k-1) of k rings leave a
 * device by its port. chain         broadcast and reduce: the same paths, opened: V over every port
 * and V/k over every NIC. */

bool
pod_fits_nodes (const PodPlanRequest *request)
{
  return request->nodes.n_nodes > 1;
}

static void
set_book (PodPlanRequest *request, PodPlan *plan)
{
  double twice = request->kind == POD_ALL_REDUCE ? 2 : 1;
  double across_s = pod_node_book_across (request) / request->nodes.n_least;

  /* max over the levels: V/(egress of a device), V/(NICs of a node), and thin uplinks by what they
   * carry */
  plan->book_s_per_byte = MAX (MAX (twice * across_s, twice * pod_node_book_inside (request)),
                               pod_link_loads_time (request, POD_FIDELITY_BOOK));
}

/* Inside after across, or before it: the slowest links of both. */
static double
sequential_s (const PodPlanRequest *request)
{
  const PodLinkLoads *loads = &request->loads;
  PodSlowest slowest[2] = { { .topology = request->topology, .fidelity = request->fidelity },
                            { .topology = request->topology, .fidelity = request->fidelity } };

  for (uint32_t i = 0; i < loads->n; i++)
    pod_slowest_add (&slowest[pod_link_is_across (request->topology, loads->links[i])],
                     loads->links[i], loads->bytes[i]);
  return pod_slowest_s (&slowest[0]) + pod_slowest_s (&slowest[1]);
}

bool
pod_build_hierarchical (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;
  unsigned n_nodes = nodes->n_nodes, twice = request->kind == POD_ALL_REDUCE ? 2 : 1,
           has_inside = 0;
  double n = request->group->n_devices, largest = 0;
  int64_t inside_ps, across_ps;

  if (!pod_node_latencies (request, &inside_ps, &across_ps, error))
    return false;
  for (unsigned j = 0; j < n_nodes; j++)
    {
      unsigned next = (j + 1) % n_nodes;
      double k = pod_member_nodes_count (nodes, j),
             gather = 1 - pod_member_nodes_count (nodes, next) / n;
      double edge = 0;

      if (request->kind != POD_REDUCE_SCATTER)
        edge += gather;
      if (request->kind != POD_ALL_GATHER)
        edge += 1 - k / n;
      if (!pod_node_add_flow (request, j, next, edge, error)
          || !pod_node_add (request, j, twice * (k - 1) / k, error))
        return false;
      largest = MAX (largest, edge / MIN (k, pod_member_nodes_count (nodes, next)));
      if (k > 1)
        has_inside = 1;
    }
  plan->n_steps = twice * (n_nodes - 1 + has_inside);
  plan->n_net_steps = twice * (n_nodes - 1);
  plan->net_latency_ps = plan->n_net_steps * across_ps;
  plan->latency_ps
      = twice * ((int64_t) (n_nodes - 1) * across_ps + (int64_t) has_inside * inside_ps);
  plan->sequential_s_per_byte = sequential_s (request);
  set_book (request, plan);
  plan->explain = g_strdup_printf (
      "%u ranks on %u nodes, rings over nodes on every rail, then inside: %.4g x bytes on "
      "the busiest NIC, %u steps",
      request->group->n_devices, n_nodes, largest, plan->n_steps);
  return true;
}

bool
pod_build_rail_ring (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;
  unsigned n_nodes = nodes->n_nodes, twice = request->kind == POD_ALL_REDUCE ? 2 : 1;
  double n = request->group->n_devices, edge = twice * (n - 1) / n;
  int64_t inside_ps, across_ps;

  if (!pod_node_latencies (request, &inside_ps, &across_ps, error))
    return false;
  for (unsigned j = 0; j < n_nodes; j++)
    {
      double k = pod_member_nodes_count (nodes, j);

      if (!pod_node_add_flow (request, j, (j + 1) % n_nodes, edge, error)
          || !pod_node_add (request, j, edge * (k - 1) / k, error))
        return false;
    }
  plan->n_steps = twice * (request->group->n_devices - 1);
  plan->n_net_steps = twice * (n_nodes - 1);
  plan->net_latency_ps = plan->n_net_steps * across_ps;
  plan->latency_ps = twice
                     * ((int64_t) (n_nodes - 1) * across_ps
                        + (int64_t) (request->group->n_devices - n_nodes) * inside_ps);
  set_book (request, plan);
  plan->explain = g_strdup_printf (
      "ring of %u ranks on %u nodes: %.4g x bytes between neighbouring nodes, NICs "
      "of a node: %u, %u steps",
      request->group->n_devices, n_nodes, edge, nodes->n_least, plan->n_steps);
  return true;
}

bool
pod_build_rail_chain (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  unsigned n_nodes = request->nodes.n_nodes;
  bool is_reverse = request->kind == POD_REDUCE;
  int64_t inside_ps, across_ps;

  if (!pod_node_latencies (request, &inside_ps, &across_ps, error))
    return false;
  for (unsigned j = 0; j < n_nodes; j++)
    {
      double k = pod_member_nodes_count (&request->nodes, j);

      if (!pod_node_add (request, j, request->topology->is_full_mesh ? 2 * (k - 1) / k : 1, error))
        return false;
      if (j + 1 < n_nodes
          && !pod_node_add_flow (request, is_reverse ? j + 1 : j, is_reverse ? j : j + 1, 1, error))
        return false;
    }
  plan->n_steps = request->group->n_devices - 1;
  plan->n_net_steps = n_nodes - 1;
  plan->net_latency_ps = plan->n_net_steps * across_ps;
  plan->latency_ps = (int64_t) (n_nodes - 1) * across_ps
                     + (int64_t) (request->group->n_devices - n_nodes) * inside_ps;
  set_book (request, plan);
  plan->explain = g_strdup_printf ("chain of %u ranks on %u nodes, %u steps",
                                   request->group->n_devices, n_nodes, plan->n_steps);
  return true;
}
