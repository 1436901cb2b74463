#include "collective/messages-private.h"

/* PXN (traffic.c) as messages: within the node to the member on the receiver's rail, and from there
 * across, chunk by chunk. */

typedef struct
{
  uint32_t *position_of; /* (owned) in the group, of nodes->devices[i] */
  uint32_t *rail_member; /* (owned) of the node at hand, by rail; UINT32_MAX: none */
  uint32_t *hops;        /* (owned) k x k streams of the node at hand; UINT32_MAX: none */
  uint32_t n_chunks;
} Pxn;

static void
pxn_clear (Pxn *pxn)
{
  g_free (pxn->position_of);
  g_free (pxn->rail_member);
  g_free (pxn->hops);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Pxn, pxn_clear)

static double
share_of (const PodMessageBuilder *builder, const Pxn *pxn, uint32_t from, uint32_t to)
{
  return pod_traffic_share (builder->request, pxn->position_of[from], pxn->position_of[to]);
}

static bool
is_inside (const PodMemberNodes *nodes, unsigned node, uint32_t member)
{
  return member >= nodes->first[node] && member < nodes->first[node + 1];
}

static uint32_t
gateway_to (const PodMessageBuilder *builder, const Pxn *pxn, uint32_t to)
{
  const PodPlanRequest *request = builder->request;

  return pxn->rail_member[pod_rail_of (request->topology, request->nodes.devices[to])];
}

/* What member @i of @node passes to member @g: its own part, and what @g sends across for it. */
static double
hop_share (const PodMessageBuilder *builder, const Pxn *pxn, unsigned node, uint32_t i, uint32_t g)
{
  const PodMemberNodes *nodes = &builder->request->nodes;
  double share = share_of (builder, pxn, i, g);

  for (uint32_t to = 0; to < builder->request->group->n_devices; to++)
    if (!is_inside (nodes, node, to) && gateway_to (builder, pxn, to) == g)
      share += share_of (builder, pxn, i, to);
  return share;
}

static bool
add_stream (PodMessageBuilder *builder, const Pxn *pxn, uint32_t from, uint32_t to, double share,
            uint32_t *out, GError **error)
{
  const uint32_t *devices = builder->request->nodes.devices;
  uint32_t route;

  if (!pod_message_route (builder, devices[from], devices[to], &route, error))
    return false;
  *out = pod_message_set_stream (builder->set, route, pod_message_bytes (builder, share), 1,
                                 pxn->n_chunks);
  return true;
}

static bool
add_hops (PodMessageBuilder *builder, Pxn *pxn, unsigned node, GError **error)
{
  const PodMemberNodes *nodes = &builder->request->nodes;
  uint32_t first = nodes->first[node], k = pod_member_nodes_count (nodes, node);

  g_free (pxn->hops);
  pxn->hops = g_new (uint32_t, (size_t) k *k);
  for (uint32_t shift = 0; shift < k; shift++)
    for (uint32_t i = 0; i < k; i++)
      {
        uint32_t g = (i + shift) % k;
        double share = shift == 0 ? 0 : hop_share (builder, pxn, node, first + i, first + g);

        pxn->hops[(size_t) i * k + g] = UINT32_MAX;
        if (share > 0
            && !add_stream (builder, pxn, first + i, first + g, share,
                            &pxn->hops[(size_t) i * k + g], error))
          return false;
      }
  return true;
}

/* What @node sends to @to elsewhere: by its gateway, or each member for itself. */
static bool
send_to (PodMessageBuilder *builder, const Pxn *pxn, unsigned node, uint32_t to, GError **error)
{
  const PodMemberNodes *nodes = &builder->request->nodes;
  uint32_t first = nodes->first[node], k = pod_member_nodes_count (nodes, node), stream;
  uint32_t gateway = gateway_to (builder, pxn, to);
  double through = 0;

  for (uint32_t i = 0; i < k; i++)
    {
      double share = share_of (builder, pxn, first + i, to);

      through += share;
      if (share > 0 && gateway == UINT32_MAX
          && !add_stream (builder, pxn, first + i, to, share, &stream, error))
        return false;
    }
  if (gateway == UINT32_MAX || !(through > 0))
    return true;
  if (!add_stream (builder, pxn, gateway, to, through, &stream, error))
    return false;
  for (uint32_t i = 0; i < k; i++)
    if (pxn->hops[(size_t) i * k + gateway - first] != UINT32_MAX
        && share_of (builder, pxn, first + i, to) > 0)
      pod_message_after (builder, pxn->hops[(size_t) i * k + gateway - first], 0);
  return true;
}

static bool
add_node (PodMessageBuilder *builder, Pxn *pxn, unsigned node, GError **error)
{
  const PodPlanRequest *request = builder->request;
  const PodMemberNodes *nodes = &request->nodes;
  uint32_t n = request->group->n_devices;

  for (unsigned rail = 0; rail < request->topology->n_rails; rail++)
    pxn->rail_member[rail] = UINT32_MAX;
  for (uint32_t i = nodes->first[node]; i < nodes->first[node + 1]; i++)
    pxn->rail_member[pod_rail_of (request->topology, nodes->devices[i])] = i;
  if (!add_hops (builder, pxn, node, error))
    return false;
  for (uint32_t shift = 0; shift < n; shift++)
    {
      uint32_t to = (nodes->first[node + 1] + shift) % n; /* the next node first */

      if (!is_inside (nodes, node, to) && !send_to (builder, pxn, node, to, error))
        return false;
    }
  return true;
}

bool
pod_message_pxn (PodMessageBuilder *builder, GError **error)
{
  const PodPlanRequest *request = builder->request;
  uint32_t n = request->group->n_devices;
  g_auto (Pxn) pxn = { .rail_member = g_new (uint32_t, request->topology->n_rails) };

  pxn.position_of = pod_node_positions (request);
  pxn.n_chunks = pod_message_stage_chunks (builder, (uint64_t) n * (request->nodes.n_nodes + 8));
  for (unsigned node = 0; node < request->nodes.n_nodes; node++)
    if (!add_node (builder, &pxn, node, error))
      return false;
  return true;
}
