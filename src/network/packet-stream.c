#include "network/packet-private.h"

/* What may start, and leaves. The streams that have something to send over a link stand in a line
 * at its near end and take turns, packet by packet; one packet of the line at a time stands in the
 * queue of the link, so that passing traffic and own messages share it. */

uint64_t
pod_stream_message_bytes (const PodMessageStream *def, uint32_t message)
{
  return def->bytes / def->n_messages + (message < def->bytes % def->n_messages);
}

uint32_t
pod_stream_n_packets (const PodPacketNetwork *network, const PodPacketStream *stream,
                      uint32_t message)
{
  uint64_t bytes = pod_stream_message_bytes (stream->def, message);
  uint64_t mtu = network->options.mtu_bytes;
  uint32_t most = pod_packet_run (network, stream->run)->job->n_packets;

  if (bytes <= mtu)
    return 1;
  return (uint32_t) MIN (bytes / mtu + (bytes % mtu != 0), most);
}

static bool
is_there (const PodPacketStream *stream, const PodPacketStream *other, const PodMessageDep *dep)
{
  uint64_t period = other->def->period, chunk = stream->ready_chunk;

  if (dep->after == POD_AFTER_WINDOW)
    return stream->ready_step > 0 || chunk < dep->lag
           || other->n_arrived >= (chunk - dep->lag + 1) * period;
  if (dep->after == POD_AFTER_ALL)
    return stream->ready_step > 0 || other->n_arrived >= (chunk + 1) * period;
  return stream->ready_step < dep->lag
         || other->n_arrived >= chunk * period + stream->ready_step - dep->lag + 1;
}

static bool
is_next_ready (const PodPacketRun *run, const PodPacketStream *stream)
{
  const PodMessageStream *def = stream->def;

  for (uint32_t i = 0; i < def->n_deps; i++)
    {
      const PodMessageDep *dep
          = &g_array_index (run->job->set->deps, PodMessageDep, def->first_dep + i);

      if (!is_there (stream, &run->streams[dep->stream], dep))
        return false;
    }
  return true;
}

void
pod_stream_update (PodPacketNetwork *network, PodPacketStream *stream)
{
  const PodPacketRun *run = pod_packet_run (network, stream->run);
  const PodMessageStream *def = stream->def;

  while (stream->n_ready < def->n_messages && is_next_ready (run, stream))
    {
      stream->n_ready++;
      if (++stream->ready_step == def->period)
        {
          stream->ready_step = 0;
          stream->ready_chunk++;
        }
    }
  pod_stream_queue (network, stream);
}

static bool
has_something (const PodPacketStream *stream)
{
  return stream->n_sent < stream->n_ready
         && (!stream->route->is_lossy || pod_go_back_may_send (stream));
}

/* The next packet of a stream, at its sender. */
static uint32_t
make_packet (PodPacketNetwork *network, PodPacketStream *stream)
{
  uint32_t index = pod_packet_take (network, stream->run);
  PodPacket *packet = &network->packets[index];
  uint32_t n = pod_stream_n_packets (network, stream, stream->n_sent);
  uint64_t bytes = pod_stream_message_bytes (stream->def, stream->n_sent);

  *packet = (PodPacket){
    .stream = stream,
    .bytes = bytes / n + (stream->n_packets_sent < bytes % n),
    .number = stream->go_back.next++,
    .held = POD_NO_BUFFER,
    .message = stream->n_sent,
    .turn = stream->turn,
  };
  if (stream->route->is_adaptive)
    {
      const PodPacketJob *job = pod_packet_run (network, stream->run)->job;

      packet->vertex
          = network->ports[g_array_index (job->hops, PodHop, stream->route->first).link].link.from;
      for (unsigned axis = 0; axis < 3; axis++)
        packet->along[axis] = stream->route->along[axis];
    }
  /* One flow in order cannot spray: go-back-N would take overtaking for loss */
  if (!network->options.is_hashed && !stream->route->is_lossy && stream->route->n_lanes > 1)
    stream->turn = (stream->turn + 1) % stream->route->n_lanes;
  if (++stream->n_packets_sent == n)
    {
      stream->n_packets_sent = 0;
      stream->n_sent++;
    }
  network->counts.n_packets++;
  return index;
}

static void
join_line (PodPacketNetwork *network, PodPacketPort *port, PodPacketStream *stream)
{
  stream->is_queued = true;
  stream->next = NULL;
  if (port->first == NULL)
    port->first = stream;
  else
    port->last->next = stream;
  port->last = stream;
  pod_packet_run (network, stream->run)->n_holds++;
}

static PodPacketStream *
leave_line (PodPacketPort *port)
{
  PodPacketStream *stream = port->first;

  port->first = stream->next;
  stream->is_queued = false;
  return stream;
}

void
pod_port_inject (PodPacketNetwork *network, uint32_t link)
{
  PodPacketPort *port = &network->ports[link];
  PodPacketStream *stream = NULL;
  uint32_t index, run;

  /* Those that closed their window stand in line for nothing */
  while (port->first != NULL && !has_something (port->first))
    pod_packet_run_release (network, leave_line (port)->run);
  port->is_busy = port->first != NULL;
  if (!port->is_busy)
    return;
  stream = leave_line (port);
  run = stream->run;
  index = make_packet (network, stream);
  network->packets[index].injector = link;
  if (has_something (stream))
    join_line (network, port, stream);
  pod_packet_run_release (network, run);
  pod_packet_forward (network, index);
}

void
pod_port_injected (PodPacketNetwork *network, uint32_t link, int64_t end_ps)
{
  PodPacketPort *port = &network->ports[link];

  port->inject_ps = end_ps;
  port->is_busy = port->first != NULL;
  if (port->is_busy)
    pod_packet_queue_push (network->events, end_ps, POD_PACKET_INJECTS, link);
}

/* Sender and receiver are one: the messages arrive in this instant. */
static void
send_to_self (PodPacketNetwork *network, PodPacketStream *stream)
{
  while (stream->n_sent < stream->n_ready)
    pod_packet_queue_push (network->events, network->now_ps, POD_PACKET_ARRIVES,
                           make_packet (network, stream));
}

void
pod_stream_queue (PodPacketNetwork *network, PodPacketStream *stream)
{
  PodPacketPort *port;
  uint32_t link;

  if (stream->is_queued || !has_something (stream))
    return;
  if (stream->route->n == 0)
    {
      send_to_self (network, stream);
      return;
    }
  link = g_array_index (pod_packet_run (network, stream->run)->job->hops, PodHop,
                        stream->route->first)
             .link;
  port = &network->ports[link];
  join_line (network, port, stream);
  if (port->is_busy)
    return;
  if (port->inject_ps <= network->now_ps)
    pod_port_inject (network, link);
  else
    {
      port->is_busy = true;
      pod_packet_queue_push (network->events, port->inject_ps, POD_PACKET_INJECTS, link);
    }
}
