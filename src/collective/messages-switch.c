#include "base/error.h"
#include "collective/messages-private.h"

/* Reductions in switches: node-exchange.c (nvls) and in-network.c (sharp) as messages. */

/* ---- NVLink SHARP ---- */

/* What each member sends to the switch of a node comes down to all when all of it is there. */
bool
pod_message_switch (PodMessageBuilder *builder, unsigned node, double share_up, double share_down,
                    uint32_t n_chunks, GError **error)
{
  const PodMemberNodes *nodes = &builder->request->nodes;
  uint32_t n = pod_member_nodes_count (nodes, node), base = nodes->first[node];
  uint32_t first = builder->set->streams->len;

  for (unsigned is_down = 0; is_down < 2; is_down++)
    for (uint32_t i = 0; i < n; i++)
      {
        uint32_t links[2];

        if (!pod_topology_port_links (builder->request->topology, nodes->devices[base + i],
                                      &links[0], &links[1]))
          {
            g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                         "%s: device %u has no scale-up link", builder->request->topology->name,
                         nodes->devices[base + i]);
            return false;
          }
        pod_message_set_stream (builder->set,
                                pod_message_set_route (builder->set, &links[is_down], 1),
                                pod_message_bytes (builder, is_down ? share_down : share_up), 1,
                                n_chunks);
        for (uint32_t k = 0; k < n && is_down == 1; k++)
          pod_message_after (builder, first + k, 0);
      }
  return true;
}

bool
pod_message_nvls (PodMessageBuilder *builder, GError **error)
{
  uint32_t n = builder->request->group->n_devices;
  double up, down;

  pod_nvls_shares (builder->request, &up, &down);
  return pod_message_switch (builder, 0, up, down,
                             pod_message_chain_chunks (builder, 2, (uint64_t) n * n), error);
}

/* ---- SHARP ---- */

/* One stream of the scale-out switches: a message stream for each of its links. */
typedef struct
{
  PodLinkLoads below; /* nodes below each link */
  PodLink *links;     /* (owned) as in @below */
  uint32_t first;     /* number of the first one's messages */
} Climb;

static void
climb_clear (Climb *climb)
{
  pod_link_loads_clear (&climb->below);
  g_free (climb->links);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Climb, climb_clear)

/* A link up carries on what comes up to where it begins; one down what comes there from anywhere:
 * at the top that is the sum of all. */
static void
add_waits (PodMessageBuilder *builder, const Climb *climb, uint32_t i)
{
  const PodLink *link = &climb->links[i];

  for (uint32_t k = 0; k < climb->below.n; k++)
    if (climb->links[k].to == link->from && (link->sign < 0 || climb->links[k].sign >= 0) && k != i)
      pod_message_after (builder, climb->first + k, 0);
}

/* The stream of the @at-th members. Those that send wait for @scattered; @out: what they get. */
static bool
add_climb (PodMessageBuilder *builder, uint32_t at, uint32_t n_chunks, const PodArrivals *scattered,
           PodArrivals *out, GError **error)
{
  PodPlanRequest *request = builder->request;
  const PodMemberNodes *nodes = &request->nodes;
  g_auto (Climb) climb = { .first = builder->set->streams->len };

  pod_link_loads_init (&climb.below, 8 * nodes->n_nodes);
  if (!pod_sharp_count (request, at, &climb.below, error))
    return false;
  climb.links = g_new (PodLink, climb.below.n + 1);
  for (uint32_t i = 0; i < climb.below.n; i++)
    pod_topology_link (request->topology, climb.below.links[i], &climb.links[i]);
  for (uint32_t i = 0; i < climb.below.n; i++)
    {
      uint32_t route = pod_message_set_route (builder->set, &climb.below.links[i], 1);
      uint32_t member = UINT32_MAX;

      pod_message_set_stream (
          builder->set, route,
          pod_message_bytes (builder, pod_sharp_share (request, &climb.links[i],
                                                       climb.below.bytes[i])),
          1, n_chunks);
      add_waits (builder, &climb, i);
      for (unsigned node = 0; node < nodes->n_nodes; node++)
        {
          member = nodes->first[node] + at;
          if (climb.links[i].from == nodes->devices[member])
            pod_message_after_arrivals (builder, scattered, member);
          if (climb.links[i].to == nodes->devices[member])
            pod_arrivals_add (out, member, climb.first + i);
        }
    }
  return true;
}

bool
pod_message_sharp (PodMessageBuilder *builder, GError **error)
{
  const PodMemberNodes *nodes = &builder->request->nodes;
  uint32_t n = builder->request->group->n_devices, n_chunks;
  g_auto (PodArrivals) scattered = { 0 };
  g_auto (PodArrivals) reduced = { 0 };

  n_chunks = pod_message_chain_chunks (builder, 4, 4 * (uint64_t) n * nodes->n_least);
  pod_arrivals_init (&scattered, n);
  pod_arrivals_init (&reduced, n);
  if (builder->request->kind != POD_ALL_GATHER
      && !pod_message_all_inside (builder, n_chunks, NULL, &scattered, error))
    return false;
  for (uint32_t at = 0; at < nodes->n_least; at++)
    if (!add_climb (builder, at, n_chunks, &scattered, &reduced, error))
      return false;
  return builder->request->kind == POD_REDUCE_SCATTER
         || pod_message_all_inside (builder, n_chunks, &reduced, NULL, error);
}
