#include "collective/plan-private.h"

/* All-to-all with a given matrix, and PXN.
 *
 * Every pair's bytes go along the machine's route. PXN (NCCL 2.12 and later, "PCI x NVLink"): bytes
 * for another node first hop to the member of the sender's node on the receiver's rail, so that
 * they cross no rail in the switches: uplinks stay empty, the scale-up ports carry them once more.
 */

enum
{
  MOST_RANKS = 8192, /* whose pairs are walked */
};

bool
pod_has_pxn_routes (const PodTopology *topology)
{
  return topology->fabric == POD_FABRIC_SWITCHED && topology->n_rails > 1 && topology->n_nodes > 1
         && (topology->has_separate_rails || topology->n_levels == 1);
}

double
pod_traffic_share (const PodPlanRequest *request, uint32_t from, uint32_t to)
{
  if (request->traffic != NULL)
    return request->traffic->shares[(size_t) from * request->traffic->n + to];
  return 1.0 / request->group->n_devices;
}

/* The largest that a rank sends to, or receives from, others. */
static void
largest (const PodPlanRequest *request, double *out_sent, double *out_received)
{
  uint32_t n = request->group->n_devices;
  g_autofree double *received = g_new0 (double, n);

  *out_sent = *out_received = 0;
  for (uint32_t i = 0; i < n; i++)
    {
      double sent = 0;

      for (uint32_t k = 0; k < n; k++)
        if (k != i)
          {
            sent += pod_traffic_share (request, i, k);
            received[k] += pod_traffic_share (request, i, k);
          }
      *out_sent = MAX (*out_sent, sent);
    }
  for (uint32_t k = 0; k < n; k++)
    *out_received = MAX (*out_received, received[k]);
}

bool
pod_build_traffic (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  const PodGroup *group = request->group;
  double sent, received;
  uint64_t n_messages = 0;

  for (uint32_t i = 0; i < group->n_devices; i++)
    for (uint32_t k = 0; k < group->n_devices; k++)
      {
        double share = pod_traffic_share (request, i, k);

        if (i == k || !(share > 0))
          continue;
        if (!pod_route_add (request, group->devices[i], group->devices[k], share, error))
          return false;
        plan->latency_ps = MAX (plan->latency_ps, pod_route_latency_ps (request));
        n_messages++;
      }
  plan->n_steps = 1;
  largest (request, &sent, &received);
  plan->explain = g_strdup_printf (
      "%" G_GUINT64_FORMAT " messages along the routes%s: at most %.4g x bytes sent by a rank, "
      "%.4g x received",
      n_messages,
      pod_has_pxn_routes (request->topology) ? ", changing rails in the node (PXN)" : "", sent,
      received);
  return true;
}

/* ---- PXN ---- */

bool
pod_fits_pxn (const PodPlanRequest *request)
{
  const PodTopology *topology = request->topology;

  return request->nodes.n_nodes > 1 && topology->n_rails > 1 && !pod_has_pxn_routes (topology)
         && request->nodes.n_nodes < request->group->n_devices
         && request->group->n_devices <= MOST_RANKS;
}

/* It takes bytes off the uplinks only: where those carry all that the devices below can send, they
 * hold nothing up. */
bool
pod_pxn_may_win (const PodPlanRequest *request)
{
  const PodTopology *topology = request->topology;

  if (request->traffic != NULL || topology->background_bytes_per_s != NULL)
    return true;
  for (unsigned level = 0; level + 1 < topology->n_levels; level++)
    if (topology->level[level].oversubscription > 1)
      return true;
  return false;
}

/* By node and receiver: who of the node sends across, as a position in nodes->devices. */
typedef struct
{
  PodPlanRequest *request;
  uint32_t *position_of; /* (owned) in the group, of nodes->devices[i] */
  uint32_t *rail_member; /* (owned) of the node at hand, by rail; UINT32_MAX: none */
  double *hops;          /* (owned) k x k of the node at hand: shares from member to member */
  double sent_inside;    /* the most that a member passes to gateways */
} Pxn;

static void
pxn_clear (Pxn *pxn)
{
  g_free (pxn->position_of);
  g_free (pxn->rail_member);
  g_free (pxn->hops);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Pxn, pxn_clear)

unsigned
pod_rail_of (const PodTopology *topology, uint32_t device)
{
  return device / topology->chip->devices_per_chip % topology->chips_per_node % topology->n_rails;
}

uint32_t *
pod_node_positions (const PodPlanRequest *request)
{
  const PodGroup *group = request->group;
  g_autofree uint32_t *position = g_new0 (uint32_t, request->topology->n_devices);
  uint32_t *out = g_new (uint32_t, group->n_devices);

  for (uint32_t i = 0; i < group->n_devices; i++)
    position[group->devices[i]] = i;
  for (uint32_t i = 0; i < group->n_devices; i++)
    out[i] = position[request->nodes.devices[i]];
  return out;
}

/* What the members of @node send to @to, who is elsewhere: to the gateway of the receiver's rail,
 * and from it along the route. A node without a member there sends itself. */
static bool
send_to (Pxn *pxn, unsigned node, uint32_t to, GError **error)
{
  const PodMemberNodes *nodes = &pxn->request->nodes;
  uint32_t first = nodes->first[node], k = nodes->first[node + 1] - first;
  uint32_t gateway = pxn->rail_member[pod_rail_of (pxn->request->topology, nodes->devices[to])];
  double through = 0;

  for (uint32_t i = 0; i < k; i++)
    {
      double share = pod_traffic_share (pxn->request, pxn->position_of[first + i], pxn->position_of[to]);

      if (!(share > 0))
        continue;
      if (gateway == UINT32_MAX)
        {
          if (!pod_route_add (pxn->request, nodes->devices[first + i], nodes->devices[to], share,
                              error))
            return false;
          continue;
        }
      if (gateway != first + i)
        pxn->hops[(size_t) i * k + (gateway - first)] += share;
      through += share;
    }
  return !(through > 0)
         || pod_route_add (pxn->request, nodes->devices[gateway], nodes->devices[to], through,
                           error);
}

static bool
add_hops (Pxn *pxn, unsigned node, GError **error)
{
  const PodMemberNodes *nodes = &pxn->request->nodes;
  uint32_t first = nodes->first[node], k = nodes->first[node + 1] - first;

  for (uint32_t i = 0; i < k; i++)
    {
      double sent = 0;

      for (uint32_t g = 0; g < k; g++)
        {
          double share = pxn->hops[(size_t) i * k + g];

          sent += share;
          if (share > 0
              && !pod_route_add (pxn->request, nodes->devices[first + i], nodes->devices[first + g],
                                 share, error))
            return false;
        }
      pxn->sent_inside = MAX (pxn->sent_inside, sent);
    }
  return true;
}

static bool
add_node (Pxn *pxn, unsigned node, GError **error)
{
  const PodMemberNodes *nodes = &pxn->request->nodes;
  uint32_t first = nodes->first[node], k = nodes->first[node + 1] - first;
  uint32_t n = pxn->request->group->n_devices;

  for (unsigned rail = 0; rail < pxn->request->topology->n_rails; rail++)
    pxn->rail_member[rail] = UINT32_MAX;
  for (uint32_t i = first; i < first + k; i++)
    pxn->rail_member[pod_rail_of (pxn->request->topology, nodes->devices[i])] = i;
  g_free (pxn->hops);
  pxn->hops = g_new0 (double, (size_t) k *k);
  for (uint32_t to = 0; to < n; to++)
    if (to < first || to >= first + k)
      {
        if (!send_to (pxn, node, to, error))
          return false;
      }
    else
      for (uint32_t i = 0; i < k; i++)
        if (first + i != to)
          pxn->hops[(size_t) i * k + (to - first)]
              += pod_traffic_share (pxn->request, pxn->position_of[first + i], pxn->position_of[to]);
  return add_hops (pxn, node, error);
}

bool
pod_build_pxn (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  g_auto (Pxn) pxn = { .request = request };
  int64_t inside_ps, across_ps;

  pxn.rail_member = g_new (uint32_t, request->topology->n_rails);
  pxn.position_of = pod_node_positions (request);
  if (!pod_node_latencies (request, &inside_ps, &across_ps, error))
    return false;
  for (unsigned node = 0; node < request->nodes.n_nodes; node++)
    if (!add_node (&pxn, node, error))
      return false;
  plan->n_steps = 2;
  plan->n_net_steps = 1;
  plan->net_latency_ps = across_ps;
  plan->latency_ps = inside_ps + across_ps;
  plan->explain = g_strdup_printf (
      "PXN: what another node gets goes to the member on its rail first, %.4g x bytes through a "
      "scale-up port, and crosses no rail in the switches",
      pxn.sent_inside);
  return true;
}
