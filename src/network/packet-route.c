#include "network/packet-private.h"

/* The next hop of a packet: the link, and the buffer (virtual channel) behind it.
 *
 * Torus links have two buffers. A packet that has the wrap link of the axis still before it (or is
 * on it) uses the first, else the second: no packet goes from the second to the first, positions
 * only grow within each, and axes come in order, so that buffers cannot wait in a circle (Dally and
 * Seitz 1987). Adaptive packets have a third, on any of the shortest ways; where it has no room
 * they take the first two in order of axes, from which every packet gets away (Duato 1993). The
 * last hop needs no room: devices take what comes. */

/* Whether @n hops from here cross the wrap link. */
static bool
crosses_wrap (const PodPacketLink *link, uint32_t n)
{
  if (link->extent == 0)
    return false;
  return link->sign > 0 ? link->position + n >= link->extent : link->position < n;
}

static bool
is_same_way (const PodPacketLink *a, const PodPacketLink *b)
{
  return b->flow == POD_FLOW_TORUS && a->axis == b->axis && a->sign == b->sign;
}

static uint8_t
buffer_of_hop (const PodPacketNetwork *network, const PodHop *hops, uint32_t n, uint32_t hop)
{
  const PodPacketLink *link = &network->ports[hops[hop].link].link;
  uint32_t n_same = 1;

  switch (link->flow)
    {
    case POD_FLOW_ORDERED:
      return 0;
    case POD_FLOW_BY_HOP:
      return hop < POD_BUFFERS_BY_HOP ? (uint8_t) hop : UINT8_MAX;
    case POD_FLOW_TORUS:
      while (hop + n_same < n && is_same_way (link, &network->ports[hops[hop + n_same].link].link))
        n_same++;
      return crosses_wrap (link, n_same) ? 0 : 1;
    default:
      return UINT8_MAX;
    }
}

/* Shortest ways by axis, when all hops are on torus links and an axis is gone in one direction. */
static void
find_along (const PodPacketNetwork *network, PodPacketRoute *route, const PodHop *hops)
{
  for (uint32_t i = 0; i < route->n; i++)
    {
      const PodPacketLink *link = &network->ports[hops[i].link].link;

      if (link->flow != POD_FLOW_TORUS || route->along[link->axis] * link->sign < 0)
        return;
      route->along[link->axis] += link->sign;
    }
  route->is_adaptive = (route->along[0] != 0) + (route->along[1] != 0) + (route->along[2] != 0) > 1;
}

/* Whether the route takes the axes in their order; one that does not might close a circle of
 * buffers with others. */
static bool
is_in_order (const PodPacketNetwork *network, const PodPacketRoute *route, const PodHop *hops)
{
  uint8_t last = 0;

  for (uint32_t i = 0; i < route->n; i++)
    {
      const PodPacketLink *link = &network->ports[hops[i].link].link;

      if (link->flow != POD_FLOW_TORUS)
        continue;
      if (link->rank < last)
        return false;
      last = link->rank;
    }
  return true;
}

void
pod_packet_route_prepare (const PodPacketNetwork *network, PodPacketRoute *route, PodHop *hops,
                          bool is_detour)
{
  bool is_free = is_detour || !is_in_order (network, route, hops);

  route->n_lanes = 1;
  for (uint32_t i = 0; i < route->n; i++)
    {
      const PodPacketLink *link = &network->ports[hops[i].link].link;
      bool is_last = i + 1 == route->n;

      /* A way around a dead link, say, may turn as it likes: it is given room for all */
      hops[i].buffer = is_last || is_free ? UINT8_MAX : buffer_of_hop (network, hops, route->n, i);
      route->n_lanes = MAX (route->n_lanes, link->n_lanes);
      route->is_lossy |= link->flow == POD_FLOW_LOSSY;
      route->latency_ps += link->latency_ps;
    }
  if (network->options.is_adaptive && network->torus_link != NULL && !is_detour)
    find_along (network, route, hops);
}

static uint32_t
torus_link (const PodPacketNetwork *network, uint32_t vertex, unsigned axis, int32_t along)
{
  return network->torus_link[((size_t) vertex * 3 + axis) * 2 + (along > 0)];
}

static uint32_t
buffer_index (const PodPacketNetwork *network, uint32_t link, uint32_t lane, uint8_t which)
{
  const PodPacketPort *port = &network->ports[link];

  if (which == UINT8_MAX || which >= port->n_buffers)
    return POD_NO_BUFFER;
  return network->channels[port->first_channel + lane].first_buffer + which;
}

/* The least busy link towards the goal with room in its third buffer, else the first axis. */
static void
route_adaptively (const PodPacketNetwork *network, PodPacket *packet)
{
  bool is_last = packet->n_done + 1 == packet->stream->route->n;
  uint32_t best = UINT32_MAX, first = UINT32_MAX;
  int64_t best_ps = INT64_MAX;
  unsigned first_axis = 0, first_rank = UINT32_MAX;

  for (unsigned axis = 0; axis < 3; axis++)
    {
      uint32_t link;
      int64_t free_ps;

      if (packet->along[axis] == 0)
        continue;
      link = torus_link (network, packet->vertex, axis, packet->along[axis]);
      if (network->ports[link].link.rank < first_rank)
        {
          first = link;
          first_axis = axis;
          first_rank = network->ports[link].link.rank;
        }
      free_ps = network->channels[network->ports[link].first_channel].free_ps;
      if (free_ps < best_ps
          && (is_last
              || pod_buffer_has_room (network, buffer_index (network, link, 0, POD_TORUS_ADAPTIVE),
                                      packet)))
        {
          best = link;
          best_ps = free_ps;
        }
    }
  packet->link = best == UINT32_MAX ? first : best;
  if (is_last)
    packet->buffer = POD_NO_BUFFER;
  else if (best != UINT32_MAX)
    packet->buffer = buffer_index (network, best, 0, POD_TORUS_ADAPTIVE);
  else
    packet->buffer = buffer_index (
        network, first, 0,
        crosses_wrap (&network->ports[first].link, (uint32_t) ABS (packet->along[first_axis])) ? 0
                                                                                               : 1);
}

/* A packet of turn t over lanes of which the top of its route has n takes lane t mod n there, and
 * the lane that leads to it below: up and down are one switch. */
static uint32_t
lane_of (const PodPacketNetwork *network, const PodPacket *packet)
{
  uint32_t n_lanes = network->ports[packet->link].link.n_lanes;

  if (n_lanes == 1)
    return 0;
  return (uint32_t) ((uint64_t) packet->turn * n_lanes / packet->stream->route->n_lanes);
}

uint32_t
pod_packet_channel (const PodPacketNetwork *network, const PodPacket *packet)
{
  return network->ports[packet->link].first_channel + lane_of (network, packet);
}

void
pod_packet_route_next (const PodPacketNetwork *network, PodPacket *packet)
{
  const PodPacketRoute *route = packet->stream->route;
  const PodHop *hop;

  if (route->is_adaptive)
    {
      route_adaptively (network, packet);
      return;
    }
  hop = &g_array_index (pod_packet_run (network, packet->stream->run)->job->hops, PodHop,
                        route->first + packet->n_done);
  packet->link = hop->link;
  packet->buffer = buffer_index (network, hop->link, lane_of (network, packet), hop->buffer);
}
