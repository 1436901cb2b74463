#include "collective/plan-private.h"

#include "base/error.h"

/* Numbers the nodes in the order of their first member: place_of[i] is that of member i. */
static unsigned
place_members (const PodTopology *topology, const PodGroup *group, uint32_t *place_of)
{
  g_autofree uint32_t *places = g_new0 (uint32_t, topology->n_nodes); /* number + 1 */
  unsigned n_nodes = 0;

  for (uint32_t i = 0; i < group->n_devices; i++)
    {
      uint32_t *place = &places[pod_topology_node_of (topology, group->devices[i])];

      if (*place == 0)
        *place = ++n_nodes;
      place_of[i] = *place - 1;
    }
  return n_nodes;
}

void
pod_member_nodes_init (PodMemberNodes *nodes, const PodTopology *topology, const PodGroup *group)
{
  g_autofree uint32_t *place_of = g_new (uint32_t, group->n_devices);
  g_autofree uint32_t *next = NULL;

  *nodes = (PodMemberNodes){
    .n_nodes = place_members (topology, group, place_of),
    .devices = g_new (uint32_t, group->n_devices),
    .n_least = UINT32_MAX,
  };
  nodes->first = g_new0 (uint32_t, (size_t) nodes->n_nodes + 1);
  for (uint32_t i = 0; i < group->n_devices; i++)
    nodes->first[place_of[i] + 1]++;
  for (unsigned node = 0; node < nodes->n_nodes; node++)
    {
      nodes->n_least = MIN (nodes->n_least, nodes->first[node + 1]);
      nodes->first[node + 1] += nodes->first[node];
    }
  next = g_memdup2 (nodes->first, sizeof *next * ((size_t) nodes->n_nodes + 1));
  for (uint32_t i = 0; i < group->n_devices; i++)
    nodes->devices[next[place_of[i]]++] = group->devices[i];
}

void
pod_member_nodes_clear (PodMemberNodes *nodes)
{
  g_free (nodes->first);
  g_free (nodes->devices);
  *nodes = (PodMemberNodes){ 0 };
}

uint32_t
pod_member_nodes_count (const PodMemberNodes *nodes, unsigned node)
{
  return nodes->first[node + 1] - nodes->first[node];
}

static bool
add_pairs (PodPlanRequest *request, const uint32_t *members, uint32_t n, double bytes,
           GError **error)
{
  /* By routes, not pair links: the two devices of one chip meet on their die link */
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++)
      if (i != k && !pod_route_add (request, members[i], members[k], bytes / (n - 1), error))
        return false;
  return true;
}

bool
pod_node_add (PodPlanRequest *request, unsigned node, double bytes, GError **error)
{
  const uint32_t *members = &request->nodes.devices[request->nodes.first[node]];
  uint32_t n = pod_member_nodes_count (&request->nodes, node);

  if (n < 2 || !(bytes > 0))
    return true;
  if (request->topology->is_full_mesh)
    return add_pairs (request, members, n, bytes, error);
  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t up, down;

      if (!pod_topology_port_links (request->topology, members[i], &up, &down))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "%s: device %u has no scale-up link",
                       request->topology->name, members[i]);
          return false;
        }
      pod_link_loads_add (&request->loads, up, bytes);
      pod_link_loads_add (&request->loads, down, bytes);
    }
  return true;
}

uint32_t
pod_node_n_strands (uint32_t a, uint32_t b)
{
  enum
  {
    MANY = 256
  };
  uint32_t x = a, y = b;

  while (y != 0)
    {
      uint32_t rest = x % y;

      x = y;
      y = rest;
    }
  return (uint64_t) a / x * b <= MAX (MANY, MAX (a, b)) ? a / x * b : MAX (a, b);
}

bool
pod_node_add_flow (PodPlanRequest *request, unsigned from, unsigned to, double bytes,
                   GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;
  uint32_t n_from = pod_member_nodes_count (nodes, from), n_to = pod_member_nodes_count (nodes, to);
  uint32_t n = pod_node_n_strands (n_from, n_to);

  for (uint32_t s = 0; s < n; s++)
    if (!pod_route_add (request, nodes->devices[nodes->first[from] + (uint64_t) s * n_from / n],
                        nodes->devices[nodes->first[to] + (uint64_t) s * n_to / n], bytes / n,
                        error))
      return false;
  return true;
}

static bool
find_latencies (PodPlanRequest *request, GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;

  request->inside_ps = request->across_ps = 0;
  for (unsigned node = 0; node < nodes->n_nodes; node++)
    {
      const uint32_t *members = &nodes->devices[nodes->first[node]];
      uint32_t next = nodes->devices[nodes->first[(node + 1) % nodes->n_nodes]];

      if (pod_member_nodes_count (nodes, node) > 1)
        {
          if (!pod_route_find (request, members[0], members[1], error))
            return false;
          request->inside_ps = MAX (request->inside_ps, pod_route_latency_ps (request));
        }
      if (nodes->n_nodes > 1)
        {
          if (!pod_route_find (request, members[0], next, error))
            return false;
          request->across_ps = MAX (request->across_ps, pod_route_latency_ps (request));
        }
    }
  request->has_latencies = true;
  return true;
}

bool
pod_node_latencies (PodPlanRequest *request, int64_t *out_inside_ps, int64_t *out_across_ps,
                    GError **error)
{
  if (!request->has_latencies && !find_latencies (request, error))
    return false;
  *out_inside_ps = request->inside_ps;
  *out_across_ps = request->across_ps;
  return true;
}

double
pod_node_book_inside (const PodPlanRequest *request)
{
  const PodMemberNodes *nodes = &request->nodes;
  double slowest_s = 0;

  for (unsigned node = 0; node < nodes->n_nodes; node++)
    {
      const uint32_t *members = &nodes->devices[nodes->first[node]];
      uint32_t n = pod_member_nodes_count (nodes, node), up, down;
      double peers = 1;

      if (n < 2)
        continue;
      if (request->topology->is_full_mesh)
        {
          peers = n - 1;
          if (!pod_topology_pair_link (request->topology, members[0], members[1], &up))
            continue;
        }
      else if (!pod_topology_port_links (request->topology, members[0], &up, &down))
        continue;
      slowest_s
          = MAX (slowest_s,
                 1 / (peers * pod_collective_link_rate (request->topology, POD_FIDELITY_BOOK, up)));
    }
  return slowest_s;
}

double
pod_node_book_across (const PodPlanRequest *request)
{
  const PodMemberNodes *nodes = &request->nodes;
  double slowest_s = 0;

  for (unsigned node = 0; node < nodes->n_nodes && nodes->n_nodes > 1; node++)
    {
      uint32_t up, down;

      if (pod_topology_nic_links (request->topology, nodes->devices[nodes->first[node]], &up,
                                  &down))
        slowest_s = MAX (slowest_s,
                         1 / pod_collective_link_rate (request->topology, POD_FIDELITY_BOOK, up));
    }
  return slowest_s;
}
