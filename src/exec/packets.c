#include "exec/packets.h"

#include "collective/messages.h"
#include "network/packet.h"

struct PodExecPackets
{
  PodPacketNetwork *network;
  GPtrArray *sets;     /* PodMessageSet (owned) */
  GPtrArray *jobs;     /* PodPacketJob (owned), use by use, each its groups */
  uint32_t *first_job; /* by use */
};

static PodPacketNetwork *
make_network (const PodExecRequest *request, PodEventQueue *queue, uint32_t event_kind,
              PodTransferDone done, void *context, GError **error)
{
  const PodTopology *topology = request->topology;
  g_autofree double *capacity = g_new (double, (size_t) topology->n_links + 1);
  g_autofree PodPacketLink *links = NULL;

  for (uint32_t i = 0; i < topology->n_links; i++)
    /* A machine may have links without a rate, which no route takes */
    capacity[i] = MAX (pod_collective_link_rate (topology, request->fidelity, i), 1);
  links = pod_packet_links (topology, capacity, request->packet.drop_kinds);
  return pod_packet_network_new (&request->packet, links, topology->n_links, queue, event_kind, done,
                                 context, error);
}

/* The messages of one use on all groups of its communicator. */
static bool
add_use (PodExecPackets *packets, const PodExecRequest *request, const PodRoutes *routes,
         uint32_t use, GError **error)
{
  const PodCollectiveUse *what = &g_array_index (routes->uses, PodCollectiveUse, use);
  const PodRoute *route = &g_array_index (routes->routes, PodRoute,
                                          g_array_index (routes->use_routes, uint32_t, use));
  const PodCommunicator *comm = g_ptr_array_index (request->program->communicators, route->comm);

  packets->first_job[use] = packets->jobs->len;
  for (uint32_t g = 0; g < comm->n_groups; g++)
    {
      PodGroup group;
      PodMessageSet *set;
      PodPacketJob *job;

      pod_communicator_group (comm, g, &group);
      set = pod_collective_messages (request->topology, request->fidelity, &group, route->kind,
                                     what->bytes, pod_route_plan (route, g), error);
      if (set == NULL)
        return false;
      g_ptr_array_add (packets->sets, set);
      job = pod_packet_job_new (packets->network, set, error);
      if (job == NULL)
        return false;
      g_ptr_array_add (packets->jobs, job);
    }
  return true;
}

PodExecPackets *
pod_exec_packets_new (const PodExecRequest *request, const PodRoutes *routes, PodEventQueue *queue,
                      uint32_t event_kind, PodTransferDone done, void *context, GError **error)
{
  g_autoptr (PodExecPackets) packets = g_new0 (PodExecPackets, 1);

  packets->sets = g_ptr_array_new_with_free_func ((GDestroyNotify) pod_message_set_free);
  packets->jobs = g_ptr_array_new_with_free_func ((GDestroyNotify) pod_packet_job_free);
  packets->first_job = g_new0 (uint32_t, (size_t) routes->uses->len + 1);
  packets->network = make_network (request, queue, event_kind, done, context, error);
  if (packets->network == NULL)
    return NULL;
  for (guint u = 0; u < routes->uses->len; u++)
    if (!add_use (packets, request, routes, u, error))
      {
        g_prefix_error (error, "%s: ", g_array_index (routes->uses, PodCollectiveUse, u).comm);
        return NULL;
      }
  return g_steal_pointer (&packets);
}

void
pod_exec_packets_free (PodExecPackets *packets)
{
  if (packets == NULL)
    return;
  pod_packet_network_free (packets->network);
  g_ptr_array_unref (packets->jobs);
  g_ptr_array_unref (packets->sets);
  g_free (packets->first_job);
  g_free (packets);
}

void
pod_exec_packets_start (PodExecPackets *packets, uint32_t use, uint32_t group, uint32_t tag)
{
  pod_packet_network_start (
      packets->network, g_ptr_array_index (packets->jobs, packets->first_job[use] + group), tag);
}

void
pod_exec_packets_handle (PodExecPackets *packets, const PodEvent *event)
{
  pod_packet_network_handle (packets->network, event);
}
