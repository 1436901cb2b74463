#include "collective/plan-private.h"

/* All-to-all on a switched machine, every pair by its own route: S/n from each rank to each other
 * one. Within a node of k members: S(k-1)/n through each port. Beyond it, n^2 routes are too many
 * to walk; but the switches form a tree, so an uplink carries every pair with one end below it and
 * one end elsewhere, less the pairs of one node, which stay inside. With c members below, c_j of
 * them in node j: sum_j c_j ((n - c) - (k_j - c_j)) = sum_j c_j (n - k_j + c_j) - c^2   messages of
 * S/n. */

enum
{
  N_FAR = 5,
};

/* Members whose routes from anywhere reach the top that the group needs: both ends of the first and
 * of the last node, and the one with the longest route from the first. */
static bool
find_far (PodPlanRequest *request, uint32_t *far, GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;
  guint longest = 0;

  far[0] = nodes->devices[0];
  far[1] = nodes->devices[nodes->first[1] - 1];
  far[2] = nodes->devices[nodes->first[nodes->n_nodes - 1]];
  far[3] = nodes->devices[request->group->n_devices - 1];
  far[4] = far[2];
  for (uint32_t i = nodes->first[1]; i < request->group->n_devices; i++)
    {
      if (!pod_route_find (request, far[0], nodes->devices[i], error))
        return false;
      if (request->route->len > longest)
        {
          longest = request->route->len;
          far[4] = nodes->devices[i];
        }
    }
  return true;
}

/* What the chains of a node are counted in. */
typedef struct
{
  uint32_t far[N_FAR];
  PodLinkLoads counts;
} Chains;

/* Adds 1 to each link between @device and the top, of the direction @sign (+1 up). */
static bool
count_chain (PodPlanRequest *request, Chains *chains, uint32_t device, int sign, GError **error)
{
  g_autofree uint32_t *chain = NULL;
  unsigned node = pod_topology_node_of (request->topology, device);
  guint n_chain = 0;

  for (unsigned i = 0; i < N_FAR; i++)
    {
      uint32_t far = chains->far[i];

      if (pod_topology_node_of (request->topology, far) == node)
        continue;
      if (!pod_route_find (request, sign > 0 ? device : far, sign > 0 ? far : device, error))
        return false;
      if (request->route->len > n_chain)
        {
          n_chain = request->route->len;
          g_free (chain);
          chain = g_memdup2 (request->route->data, sizeof *chain * n_chain);
        }
    }
  for (guint i = 0; i < n_chain; i++)
    {
      PodLink link;

      pod_topology_link (request->topology, chain[i], &link);
      if (link.sign == sign && (link.kind == POD_LINK_NIC || link.kind == POD_LINK_TREE))
        pod_link_loads_add (&chains->counts, chain[i], 1);
    }
  return true;
}

/* Counts the chains of all members of @node, both ways. */
static bool
count_node (PodPlanRequest *request, Chains *chains, unsigned node, GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;

  pod_link_loads_clear (&chains->counts);
  pod_link_loads_init (&chains->counts, 64);
  for (uint32_t i = nodes->first[node]; i < nodes->first[node + 1]; i++)
    if (!count_chain (request, chains, nodes->devices[i], +1, error)
        || !count_chain (request, chains, nodes->devices[i], -1, error))
      return false;
  return true;
}

static void
chains_clear (Chains *chains)
{
  pod_link_loads_clear (&chains->counts);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Chains, chains_clear)

static bool
add_across (PodPlanRequest *request, GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;
  double n = request->group->n_devices;
  g_auto (PodLinkLoads) totals = { 0 };
  g_auto (PodLinkLoads) messages = { 0 };
  g_auto (Chains) chains = { 0 };

  if (!find_far (request, chains.far, error))
    return false;
  pod_link_loads_init (&totals, 4 * request->group->n_devices);
  pod_link_loads_init (&messages, 4 * request->group->n_devices);
  for (unsigned j = 0; j < nodes->n_nodes; j++)
    {
      double k = pod_member_nodes_count (nodes, j);

      if (!count_node (request, &chains, j, error))
        return false;
      for (uint32_t i = 0; i < chains.counts.n; i++)
        {
          double c = chains.counts.bytes[i];

          pod_link_loads_add (&totals, chains.counts.links[i], c);
          pod_link_loads_add (&messages, chains.counts.links[i], c * (n - k + c));
        }
    }
  /* Both were filled by the same additions, so they hold the same links in the same order */
  for (uint32_t i = 0; i < totals.n; i++)
    {
      double crossing = messages.bytes[i] - totals.bytes[i] * totals.bytes[i];

      if (crossing > 0.5)
        pod_link_loads_add (&request->loads, totals.links[i], crossing / n);
    }
  return true;
}

static unsigned
rail_of (const PodTopology *topology, uint32_t device)
{
  return device / topology->chip->devices_per_chip % topology->chips_per_node % topology->n_rails;
}

/* Members on each rail of @node. */
static void
count_rails (const PodPlanRequest *request, unsigned node, uint32_t *counts)
{
  const PodMemberNodes *nodes = &request->nodes;

  memset (counts, 0, request->topology->n_rails * sizeof *counts);
  for (uint32_t i = nodes->first[node]; i < nodes->first[node + 1]; i++)
    counts[rail_of (request->topology, nodes->devices[i])]++;
}

/* One layer of leaves, a rail each: what a member sends to a rail beyond its node takes one path,
 * through the device of its node on that rail, up to the receiver's own link, into which n - k
 * messages come. */
static bool
add_across_rails (PodPlanRequest *request, GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;
  unsigned n_rails = request->topology->n_rails;
  double n = request->group->n_devices;
  g_autofree uint32_t *totals = g_new0 (uint32_t, n_rails);
  g_autofree uint32_t *counts = g_new0 (uint32_t, n_rails);
  g_autofree uint32_t *targets
      = g_new (uint32_t, 2 * (size_t) n_rails); /* two members a rail, of different nodes */

  for (unsigned j = 0; j < nodes->n_nodes; j++)
    {
      count_rails (request, j, counts);
      for (uint32_t i = nodes->first[j]; i < nodes->first[j + 1]; i++)
        {
          unsigned rail = rail_of (request->topology, nodes->devices[i]);

          targets[2 * (size_t) rail + (totals[rail] > 0)] = nodes->devices[i];
        }
      for (unsigned rail = 0; rail < n_rails; rail++)
        totals[rail] += counts[rail];
    }
  for (unsigned j = 0; j < nodes->n_nodes; j++)
    {
      count_rails (request, j, counts);
      for (uint32_t i = nodes->first[j]; i < nodes->first[j + 1]; i++)
        {
          uint32_t up, down;

          for (unsigned rail = 0; rail < n_rails; rail++)
            {
              uint32_t target = targets[2 * (size_t) rail];
              uint32_t n_messages = totals[rail] - counts[rail];

              if (n_messages == 0)
                continue;
              if (pod_topology_node_of (request->topology, target)
                  == pod_topology_node_of (request->topology, nodes->devices[i]))
                target = targets[2 * (size_t) rail + 1];
              if (!pod_route_find (request, nodes->devices[i], target, error))
                return false;
              for (guint hop = 0; hop + 1 < request->route->len; hop++)
                pod_link_loads_add (&request->loads, g_array_index (request->route, uint32_t, hop),
                                    n_messages / n);
            }
          if (pod_topology_nic_links (request->topology, nodes->devices[i], &up, &down))
            pod_link_loads_add (&request->loads, down, (n - pod_member_nodes_count (nodes, j)) / n);
        }
    }
  return true;
}

/* Where no switch joins the rails routes change rails inside the sender's node, and those to a
 * chip's other device end on its die link: walked one by one. */
static bool
add_across_by_routes (PodPlanRequest *request, GError **error)
{
  const PodGroup *group = request->group;

  for (uint32_t i = 0; i < group->n_devices; i++)
    for (uint32_t k = 0; k < group->n_devices; k++)
      if (pod_topology_node_of (request->topology, group->devices[i])
              != pod_topology_node_of (request->topology, group->devices[k])
          && !pod_route_add (request, group->devices[i], group->devices[k], 1.0 / group->n_devices,
                             error))
        return false;
  return true;
}

static bool
add_routes (PodPlanRequest *request, GError **error)
{
  const PodTopology *topology = request->topology;
  bool has_rails = topology->n_rails > 1;

  if (topology->chip->devices_per_chip > 1
      || (topology->has_separate_rails && topology->n_levels > 1))
    return add_across_by_routes (request, error);
  if (has_rails && topology->n_levels == 1)
    return add_across_rails (request, error);
  return add_across (request, error);
}

bool
pod_build_node_all_to_all (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;
  double n = request->group->n_devices, across = 0;
  int64_t inside_ps, across_ps;

  if (!pod_node_latencies (request, &inside_ps, &across_ps, error))
    return false;
  for (unsigned j = 0; j < nodes->n_nodes; j++)
    if (!pod_node_add (request, j, (pod_member_nodes_count (nodes, j) - 1.0) / n, error))
      return false;
  if (nodes->n_nodes > 1)
    {
      across = (n - nodes->n_least) / n;
      if (!add_routes (request, error))
        return false;
    }
  plan->n_steps = 1;
  plan->n_net_steps = nodes->n_nodes > 1 ? 1 : 0;
  plan->net_latency_ps = plan->n_net_steps * across_ps;
  plan->latency_ps = MAX (inside_ps, across_ps);
  plan->explain = g_strdup_printf (
      "direct: of each send buffer %.4g x bytes stay in the node, %.4g x leave by the NIC%s",
      (nodes->n_least - 1.0) / n, across,
      nodes->n_nodes > 1 && pod_has_pxn_routes (request->topology)
          ? ", on the receiver's rail (PXN: no switch joins two rails)"
          : "");
  return true;
}
