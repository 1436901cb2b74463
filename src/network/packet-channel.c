#include "network/packet-private.h"

/* Links and the buffers behind them.
 *
 * A packet leaves over a lane at
 *   start = max (now, end of the packet before it)    if its room at the far end is free by then
 *   end   = start + bytes / rate
 * and frees the room that it was in at end + the latency of the link it came by (the credit flies
 * back). It is ready for the next hop at
 *   store-and-forward   end + latency
 *   cut-through         max (start + latency, end + latency - bytes / next rate): as early as it
 * can go on without a gap A packet takes no more room than the MTU: a long one stands for a train
 * of short ones, and a buffer holds as many of those as it would of these. */

#define MAX_PS INT64_C (9200000000000000000)

static uint64_t
room_of (const PodPacketNetwork *network, const PodPacket *packet)
{
  return MIN (packet->bytes, network->options.mtu_bytes);
}

bool
pod_buffer_has_room (const PodPacketNetwork *network, uint32_t buffer, const PodPacket *packet)
{
  return network->buffers[buffer].first_waiting == POD_NO_PACKET
         && network->buffers[buffer].free_bytes + network->buffers[buffer].credit_bytes
                >= room_of (network, packet);
}

/* When @bytes of room are free: 0 already, INT64_MAX not known. */
static int64_t
room_at (const PodBuffer *buffer, uint64_t bytes)
{
  uint64_t sum = buffer->free_bytes;

  if (sum + buffer->credit_bytes < bytes)
    return INT64_MAX;
  for (uint32_t i = 0; sum < bytes; i++)
    {
      const PodCredit *credit
          = &buffer->credits[(buffer->first_credit + i) & (buffer->n_allocated - 1)];

      sum += credit->bytes;
      if (sum >= bytes)
        return credit->at_ps;
    }
  return 0;
}

/* Takes room that room_at knows of, the earliest first. */
static void
take_room (PodBuffer *buffer, int64_t now_ps, uint64_t bytes)
{
  while (buffer->n_credits > 0
         && (buffer->free_bytes < bytes || buffer->credits[buffer->first_credit].at_ps <= now_ps))
    {
      PodCredit credit = buffer->credits[buffer->first_credit];

      buffer->first_credit = (buffer->first_credit + 1) & (buffer->n_allocated - 1);
      buffer->n_credits--;
      buffer->credit_bytes -= credit.bytes;
      buffer->free_bytes += credit.bytes;
    }
  buffer->free_bytes -= bytes;
}

static void
grow_credits (PodBuffer *buffer)
{
  uint32_t n = MAX (4, 2 * buffer->n_allocated);
  PodCredit *credits = g_new (PodCredit, n);

  for (uint32_t i = 0; i < buffer->n_credits; i++)
    credits[i] = buffer->credits[(buffer->first_credit + i) & (buffer->n_allocated - 1)];
  g_free (buffer->credits);
  buffer->credits = credits;
  buffer->first_credit = 0;
  buffer->n_allocated = n;
}

void
pod_buffer_give (PodPacketNetwork *network, uint32_t index, uint64_t bytes, int64_t at_ps)
{
  PodBuffer *buffer = &network->buffers[index];
  uint32_t i;

  if (buffer->n_credits == buffer->n_allocated)
    grow_credits (buffer);
  /* Nearly in order: packets leave to different links */
  for (i = buffer->n_credits; i > 0; i--)
    {
      uint32_t mask = buffer->n_allocated - 1;
      const PodCredit *before = &buffer->credits[(buffer->first_credit + i - 1) & mask];

      if (before->at_ps <= at_ps)
        break;
      buffer->credits[(buffer->first_credit + i) & mask] = *before;
    }
  buffer->credits[(buffer->first_credit + i) & (buffer->n_allocated - 1)]
      = (PodCredit){ at_ps, bytes };
  buffer->n_credits++;
  buffer->credit_bytes += bytes;
  if (buffer->first_waiting != POD_NO_PACKET)
    g_array_append_val (network->woken, index);
}

static int64_t
crossing_ps (const PodPacketPort *port, uint64_t bytes)
{
  double ps = (double) bytes * port->ps_per_byte;

  g_assert (ps < (double) MAX_PS);
  return (int64_t) (ps + 0.5);
}

/* When the packet is at the far end, and may go on. */
static int64_t
ready_ps (const PodPacketNetwork *network, const PodPacket *packet, int64_t start_ps,
          int64_t tail_ps)
{
  const PodPacketRoute *route = packet->stream->route;
  const PodPacketPort *port = &network->ports[packet->link];
  const PodPacketPort *next = port;

  if (network->options.is_store_and_forward || packet->n_done + 1 == route->n)
    return tail_ps;
  if (!route->is_adaptive)
    {
      const PodPacketJob *job = pod_packet_run (network, packet->stream->run)->job;

      next
          = &network
                 ->ports[g_array_index (job->hops, PodHop, route->first + packet->n_done + 1).link];
    }
  return MAX (start_ps + port->link.latency_ps, tail_ps - crossing_ps (next, packet->bytes));
}

static void
step_along (const PodPacketNetwork *network, PodPacket *packet)
{
  const PodPacketLink *link = &network->ports[packet->link].link;

  packet->vertex = link->to;
  if (packet->stream->route->is_adaptive)
    packet->along[link->axis] -= link->sign;
}

/* The lane would stand idle until there is room: others may go in the meantime. */
static void
ask_again (PodPacketNetwork *network, uint32_t index, int64_t room_ps)
{
  PodBuffer *buffer = &network->buffers[index];

  if (room_ps == INT64_MAX || (buffer->ask_ps > network->now_ps && buffer->ask_ps <= room_ps))
    return;
  buffer->ask_ps = room_ps;
  pod_packet_queue_push (network->events, room_ps, POD_PACKET_ROOM, index);
}

/* Reserves the lane and the room behind it; false when the packet must wait for room. */
static bool
try_send (PodPacketNetwork *network, uint32_t index)
{
  PodPacket *packet = &network->packets[index];
  const PodPacketPort *port = &network->ports[packet->link];
  PodChannel *channel = &network->channels[pod_packet_channel (network, packet)];
  int64_t start_ps = MAX (network->now_ps, channel->free_ps), end_ps;
  uint64_t room = 0;

  if (packet->buffer != POD_NO_BUFFER)
    {
      PodBuffer *buffer = &network->buffers[packet->buffer];
      int64_t room_ps;

      room = room_of (network, packet);
      room_ps = room_at (buffer, room);
      if (room_ps > start_ps)
        {
          ask_again (network, packet->buffer, room_ps);
          return false;
        }
      take_room (buffer, network->now_ps, room);
    }
  end_ps = start_ps + crossing_ps (port, packet->bytes);
  g_assert (end_ps < MAX_PS - port->link.latency_ps);
  channel->free_ps = end_ps;
  channel->bytes += packet->bytes;
  network->counts.n_hops++;
  if (packet->held != POD_NO_BUFFER)
    pod_buffer_give (network, packet->held, packet->held_bytes, end_ps + packet->came_ps);
  pod_packet_queue_push (network->events,
                         ready_ps (network, packet, start_ps, end_ps + port->link.latency_ps),
                         POD_PACKET_ARRIVES, index);
  packet->held = packet->buffer;
  packet->held_bytes = room;
  packet->came_ps = port->link.latency_ps;
  step_along (network, packet);
  if (packet->n_done++ == 0)
    pod_port_injected (network, packet->injector, end_ps);
  return true;
}

static void
wait_for_room (PodPacketNetwork *network, uint32_t index)
{
  PodBuffer *buffer = &network->buffers[network->packets[index].buffer];

  network->packets[index].next = POD_NO_PACKET;
  if (buffer->first_waiting == POD_NO_PACKET)
    buffer->first_waiting = index;
  else
    network->packets[buffer->last_waiting].next = index;
  buffer->last_waiting = index;
  network->n_waiting++;
}

/* As many packets in line as the buffer has room for. */
static bool
is_queue_full (const PodPacketNetwork *network, const PodPacket *packet)
{
  const PodPacketPort *port = &network->ports[packet->link];
  const PodChannel *channel = &network->channels[pod_packet_channel (network, packet)];
  double n_packets = (double) pod_packet_buffer_bytes (&network->options)
                     / (double) MAX (room_of (network, packet), 1);

  return (double) (channel->free_ps - network->now_ps)
         > (n_packets - 1) * (double) packet->bytes * port->ps_per_byte;
}

void
pod_packet_forward (PodPacketNetwork *network, uint32_t index)
{
  PodPacket *packet = &network->packets[index];

  pod_packet_route_next (network, packet);
  if (packet->n_done > 0 && network->ports[packet->link].link.flow == POD_FLOW_LOSSY
      && is_queue_full (network, packet))
    {
      if (packet->held != POD_NO_BUFFER)
        pod_buffer_give (network, packet->held, packet->held_bytes,
                         network->now_ps + packet->came_ps);
      pod_go_back_dropped (network, packet);
      pod_packet_drop (network, index);
      return;
    }
  if ((packet->buffer != POD_NO_BUFFER
       && network->buffers[packet->buffer].first_waiting != POD_NO_PACKET)
      || !try_send (network, index))
    wait_for_room (network, index);
}

void
pod_buffer_ask (PodPacketNetwork *network, uint32_t buffer)
{
  g_array_append_val (network->woken, buffer);
}

void
pod_buffers_wake (PodPacketNetwork *network)
{
  while (network->woken->len > 0)
    {
      uint32_t index = g_array_index (network->woken, uint32_t, network->woken->len - 1);

      g_array_set_size (network->woken, network->woken->len - 1);
      for (;;)
        {
          PodBuffer *buffer = &network->buffers[index];
          uint32_t first = buffer->first_waiting;
          uint32_t second;

          if (first == POD_NO_PACKET)
            break;
          second = network->packets[first].next;
          if (!try_send (network, first))
            break;
          buffer->first_waiting = second;
          network->n_waiting--;
        }
    }
}
