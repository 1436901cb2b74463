#include "network/packet.h"

#include "base/error.h"
#include "network/packet-private.h"

enum
{
  DEFAULT_MTU_BYTES = 4096, /* InfiniBand's largest */
  DEFAULT_PACKETS = 16,
  DEFAULT_BUFFER_PACKETS = 64, /* 256 KiB: what a port of a switch has for a class of traffic */
  NETWORK_PRIORITY = 128,
};

#define LARGEST_BUFFER_BYTES (UINT64_C (1) << 62)

/* ---- pools ---- */

uint32_t
pod_packet_take (PodPacketNetwork *network, uint32_t run)
{
  uint32_t index = network->first_free_packet;

  pod_packet_run (network, run)->n_holds++;
  if (index != POD_NO_PACKET)
    {
      network->first_free_packet = network->packets[index].next;
      return index;
    }
  if (network->n_packets == network->n_packets_allocated)
    {
      network->n_packets_allocated = MAX (64, 2 * network->n_packets_allocated);
      network->packets = g_renew (PodPacket, network->packets, network->n_packets_allocated);
    }
  return network->n_packets++;
}

void
pod_packet_drop (PodPacketNetwork *network, uint32_t index)
{
  PodPacket *packet = &network->packets[index];
  uint32_t run = packet->stream->run;

  packet->stream = NULL;
  packet->next = network->first_free_packet;
  network->first_free_packet = index;
  pod_packet_run_release (network, run);
}

static void
clear_early (PodPacketRun *run)
{
  for (uint32_t s = 0; s < run->n_streams; s++)
    g_clear_pointer (&run->streams[s].early, g_array_unref);
  run->n_streams = 0;
}

void
pod_packet_run_release (PodPacketNetwork *network, uint32_t index)
{
  PodPacketRun *run = pod_packet_run (network, index);

  g_assert (run->n_holds > 0);
  if (--run->n_holds > 0)
    return;
  clear_early (run);
  run->job = NULL;
  g_array_append_val (network->free_runs, index);
}

/* ---- the machine ---- */

static unsigned
count_buffers (const PodPacketLink *link, const PodPacketOptions *options)
{
  switch (link->flow)
    {
    case POD_FLOW_ORDERED:
      return 1;
    case POD_FLOW_TORUS:
      return options->is_adaptive ? POD_TORUS_ADAPTIVE + 1 : POD_TORUS_ADAPTIVE;
    case POD_FLOW_BY_HOP:
      return POD_BUFFERS_BY_HOP;
    default:
      return 0;
    }
}

uint64_t
pod_packet_buffer_bytes (const PodPacketOptions *options)
{
  uint64_t asked = options->buffer_bytes;

  return MAX (asked > 0 ? asked : DEFAULT_BUFFER_PACKETS * options->mtu_bytes, options->mtu_bytes);
}

/* Room for what is under way, there and as credits back, besides. */
static uint64_t
buffer_size (const PodPacketNetwork *network, const PodPacketPort *port)
{
  double bytes = 2 * (double) port->link.latency_ps / port->ps_per_byte;
  uint64_t least = pod_packet_buffer_bytes (&network->options);

  if (network->options.buffer_bytes > 0)
    return least;
  return bytes < (double) (LARGEST_BUFFER_BYTES - least) ? (uint64_t) bytes + least
                                                         : LARGEST_BUFFER_BYTES;
}

static void
count_machine (PodPacketNetwork *network, const PodPacketLink *links, uint32_t n_links)
{
  for (uint32_t i = 0; i < n_links; i++)
    {
      PodPacketPort *port = &network->ports[i];

      port->link = links[i];
      port->ps_per_byte = 1e12 * links[i].n_lanes / links[i].bytes_per_s;
      port->first_channel = network->n_channels;
      port->n_buffers = count_buffers (&links[i], &network->options);
      network->n_channels += links[i].n_lanes;
      network->n_buffers += links[i].n_lanes * port->n_buffers;
      network->n_vertices = MAX (network->n_vertices, MAX (links[i].from, links[i].to) + 1);
    }
}

static void
make_channels (PodPacketNetwork *network)
{
  uint32_t n_buffers = 0;

  network->channels = g_new0 (PodChannel, network->n_channels);
  network->buffers = g_new0 (PodBuffer, network->n_buffers);
  for (uint32_t i = 0; i < network->n_links; i++)
    {
      const PodPacketPort *port = &network->ports[i];
      uint64_t capacity = buffer_size (network, port);

      for (uint32_t lane = 0; lane < port->link.n_lanes; lane++)
        {
          network->channels[port->first_channel + lane].first_buffer = n_buffers;
          for (uint32_t b = 0; b < port->n_buffers; b++)
            network->buffers[n_buffers++] = (PodBuffer){ .capacity_bytes = capacity,
                                                         .free_bytes = capacity,
                                                         .first_waiting = POD_NO_PACKET,
                                                         .last_waiting = POD_NO_PACKET };
        }
    }
}

static void
index_torus (PodPacketNetwork *network)
{
  size_t n = (size_t) network->n_vertices * 6;

  network->torus_link = g_new (uint32_t, n);
  for (size_t i = 0; i < n; i++)
    network->torus_link[i] = UINT32_MAX;
  for (uint32_t i = 0; i < network->n_links; i++)
    {
      const PodPacketLink *link = &network->ports[i].link;

      if (link->flow == POD_FLOW_TORUS)
        network->torus_link[((size_t) link->from * 3 + link->axis) * 2 + (link->sign > 0)] = i;
    }
}

static bool
mark_dead (PodPacketNetwork *network, GError **error)
{
  for (uint32_t i = 0; i < network->options.n_dead_links; i++)
    {
      uint32_t link = network->options.dead_links[i];

      if (link >= network->n_links)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "dead link %u: the machine has links 0 to %u", link, network->n_links - 1);
          return false;
        }
      network->ports[link].is_dead = true;
    }
  /* Borrowed by the caller's options: not looked at again */
  network->options.dead_links = NULL;
  return true;
}

PodPacketNetwork *
pod_packet_network_new (const PodPacketOptions *options, const PodPacketLink *links,
                        uint32_t n_links, PodEventQueue *queue, uint32_t event_kind,
                        PodTransferDone done, void *context, GError **error)
{
  g_return_val_if_fail (queue != NULL && done != NULL && (links != NULL || n_links == 0), NULL);

  g_autoptr (PodPacketNetwork) network = g_new0 (PodPacketNetwork, 1);
  network->options = *options;
  if (network->options.mtu_bytes == 0)
    network->options.mtu_bytes = DEFAULT_MTU_BYTES;
  if (network->options.n_packets == 0)
    network->options.n_packets = DEFAULT_PACKETS;
  network->queue = queue;
  network->event_kind = event_kind;
  network->done = done;
  network->context = context;
  network->wake_ps = INT64_MAX;
  network->events = pod_packet_queue_new ();
  network->n_links = n_links;
  network->ports = g_new0 (PodPacketPort, n_links + 1);
  network->first_free_packet = POD_NO_PACKET;
  network->first_free_timer = UINT32_MAX;
  network->runs = g_array_new (FALSE, FALSE, sizeof (PodPacketRun));
  network->free_runs = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  network->woken = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  network->timers = g_array_new (FALSE, FALSE, sizeof (PodTimer));
  count_machine (network, links, n_links);
  make_channels (network);
  if (network->options.is_adaptive)
    index_torus (network);
  return mark_dead (network, error) ? g_steal_pointer (&network) : NULL;
}

void
pod_packet_network_free (PodPacketNetwork *network)
{
  if (network == NULL)
    return;
  for (guint i = 0; i < network->runs->len; i++)
    {
      clear_early (pod_packet_run (network, i));
      g_free (pod_packet_run (network, i)->streams);
    }
  for (uint32_t i = 0; i < network->n_buffers && network->buffers != NULL; i++)
    g_free (network->buffers[i].credits);
  g_array_unref (network->runs);
  g_array_unref (network->free_runs);
  g_array_unref (network->woken);
  g_array_unref (network->timers);
  pod_packet_queue_free (network->events);
  g_free (network->ports);
  g_free (network->channels);
  g_free (network->buffers);
  g_free (network->torus_link);
  g_free (network->out_first);
  g_free (network->out_links);
  g_free (network->packets);
  g_free (network);
}

/* ---- jobs under way ---- */

/* One event on the common queue, at the earliest of ours. */
static void
wake (PodPacketNetwork *network)
{
  int64_t next_ps = pod_packet_queue_next (network->events);

  if (next_ps >= network->wake_ps)
    return;
  network->wake_ps = next_ps;
  pod_event_queue_push (network->queue, next_ps, NETWORK_PRIORITY, network->event_kind, 0,
                        (uint64_t) next_ps);
}

static uint32_t
take_run (PodPacketNetwork *network, PodPacketJob *job)
{
  guint n_streams = job->set->streams->len;
  PodPacketRun *run;
  uint32_t index;

  if (network->free_runs->len > 0)
    {
      index = g_array_index (network->free_runs, uint32_t, network->free_runs->len - 1);
      g_array_set_size (network->free_runs, network->free_runs->len - 1);
    }
  else
    {
      PodPacketRun fresh = { 0 };

      index = network->runs->len;
      g_array_append_val (network->runs, fresh);
    }
  run = pod_packet_run (network, index);
  run->job = job;
  run->n_streams = n_streams;
  if (run->n_allocated < n_streams)
    {
      g_free (run->streams);
      run->streams = g_new (PodPacketStream, n_streams);
      run->n_allocated = n_streams;
    }
  return index;
}

void
pod_packet_network_start (PodPacketNetwork *network, PodPacketJob *job, uint32_t tag)
{
  g_return_if_fail (job->network == network);

  uint32_t index = take_run (network, job);
  PodPacketRun *run = pod_packet_run (network, index);
  int64_t now_ps = pod_event_queue_now (network->queue);

  run->tag = tag;
  run->n_left = job->set->n_messages;
  run->n_holds = 1; /* its end */
  for (guint s = 0; s < job->set->streams->len; s++)
    {
      PodPacketStream *stream = &run->streams[s];

      *stream = (PodPacketStream){ .def = &g_array_index (job->set->streams, PodMessageStream, s),
                                   .run = index };
      stream->route = &job->routes[stream->def->route];
      stream->turn = stream->route->n_lanes > 1
                         ? (uint32_t) (((uint64_t) (s + 1) * UINT64_C (0x9E3779B97F4A7C15)) >> 33)
                               % stream->route->n_lanes
                         : 0;
      stream->n_packets_left = pod_stream_n_packets (network, stream, 0);
      pod_go_back_init (stream);
    }
  network->n_active++;
  pod_packet_queue_push (network->events, now_ps + job->set->launch_ps, POD_PACKET_LAUNCH, index);
  wake (network);
}

static void
launch (PodPacketNetwork *network, uint32_t index)
{
  PodPacketRun *run = pod_packet_run (network, index);
  guint n_streams = run->job->set->streams->len;

  if (n_streams == 0)
    pod_packet_queue_push (network->events, network->now_ps, POD_PACKET_DONE, index);
  for (guint s = 0; s < n_streams; s++)
    pod_stream_update (network, &run->streams[s]);
}

static void
end_run (PodPacketNetwork *network, uint32_t index)
{
  uint32_t tag = pod_packet_run (network, index)->tag;

  network->n_active--;
  pod_packet_run_release (network, index);
  /* Last: it may start other jobs */
  network->done (network->context, tag);
}

/* ---- arrivals ---- */

/* A packet of a later message than the one that is awaited: lanes differ. */
static void
keep_early (PodPacketStream *stream, uint32_t message)
{
  PodEarly fresh = { message, 1 };

  if (stream->early == NULL)
    stream->early = g_array_new (FALSE, FALSE, sizeof (PodEarly));
  for (guint i = 0; i < stream->early->len; i++)
    if (g_array_index (stream->early, PodEarly, i).message == message)
      {
        g_array_index (stream->early, PodEarly, i).n_packets++;
        return;
      }
  g_array_append_val (stream->early, fresh);
}

static uint32_t
take_early (PodPacketStream *stream, uint32_t message)
{
  uint32_t n_packets = 0;

  for (guint i = 0; stream->early != NULL && i < stream->early->len; i++)
    if (g_array_index (stream->early, PodEarly, i).message == message)
      {
        n_packets = g_array_index (stream->early, PodEarly, i).n_packets;
        g_array_remove_index_fast (stream->early, i);
        break;
      }
  return n_packets;
}

static void
message_arrived (PodPacketNetwork *network, PodPacketStream *stream)
{
  PodPacketRun *run = pod_packet_run (network, stream->run);
  const PodPacketJob *job = run->job;
  uint32_t s = (uint32_t) (stream - run->streams);

  stream->n_arrived++;
  network->counts.n_messages++;
  if (--run->n_left == 0)
    pod_packet_queue_push (network->events, network->now_ps, POD_PACKET_DONE, stream->run);
  if (stream->n_arrived < stream->def->n_messages)
    stream->n_packets_left = pod_stream_n_packets (network, stream, stream->n_arrived)
                             - take_early (stream, stream->n_arrived);
  for (uint32_t i = job->first_dependent[s]; i < job->first_dependent[s + 1]; i++)
    pod_stream_update (network, &run->streams[job->dependents[i]]);
}

static void
deliver (PodPacketNetwork *network, uint32_t index)
{
  const PodPacket packet = network->packets[index];
  PodPacketStream *stream = packet.stream;
  uint32_t run = stream->run;

  pod_packet_run (network, run)->n_holds++;
  pod_packet_drop (network, index);
  if (!stream->route->is_lossy || pod_go_back_arrived (network, &packet))
    {
      network->counts.n_bytes += packet.bytes;
      if (packet.message != stream->n_arrived)
        keep_early (stream, packet.message);
      else
        stream->n_packets_left--;
      while (stream->n_arrived < stream->def->n_messages && stream->n_packets_left == 0)
        message_arrived (network, stream);
      if (stream->route->is_lossy)
        pod_go_back_catch_up (network, stream);
    }
  pod_packet_run_release (network, run);
}

static void
arrive (PodPacketNetwork *network, uint32_t index)
{
  const PodPacket *packet = &network->packets[index];

  if (packet->n_done == packet->stream->route->n)
    deliver (network, index);
  else
    pod_packet_forward (network, index);
}

void
pod_packet_network_handle (PodPacketNetwork *network, const PodEvent *event)
{
  g_assert (event->kind == network->event_kind);
  if ((uint64_t) network->wake_ps != event->tag)
    return; /* an earlier one has come in between */
  network->now_ps = event->at_ps;
  while (pod_packet_queue_next (network->events) == network->now_ps)
    {
      uint32_t kind, index;

      pod_packet_queue_pop (network->events, &kind, &index);
      switch (kind)
        {
        case POD_PACKET_ARRIVES:
          arrive (network, index);
          break;
        case POD_PACKET_INJECTS:
          pod_port_inject (network, index);
          break;
        case POD_PACKET_LAUNCH:
          launch (network, index);
          break;
        case POD_PACKET_TIMER:
          pod_go_back_timer (network, index);
          break;
        case POD_PACKET_ROOM:
          pod_buffer_ask (network, index);
          break;
        default:
          end_run (network, index);
        }
      pod_buffers_wake (network);
    }
  network->wake_ps = INT64_MAX;
  wake (network);
}

/* ---- looking ---- */

uint32_t
pod_packet_network_n_active (const PodPacketNetwork *network)
{
  return network->n_active;
}

char *
pod_packet_network_describe_waiting (const PodPacketNetwork *network)
{
  for (uint32_t i = 0; i < network->n_buffers; i++)
    if (network->buffers[i].first_waiting != POD_NO_PACKET)
      {
        const PodPacket *packet = &network->packets[network->buffers[i].first_waiting];
        const PodPacketLink *link = &network->ports[packet->link].link;

        return g_strdup_printf ("%u packets wait for room, the first for link %u (%u > %u)",
                                network->n_waiting, packet->link, link->from, link->to);
      }
  return g_strdup ("messages wait for each other");
}

uint64_t
pod_packet_network_link_bytes (const PodPacketNetwork *network, uint32_t link)
{
  uint64_t bytes = 0;

  g_return_val_if_fail (link < network->n_links, 0);
  for (uint32_t lane = 0; lane < network->ports[link].link.n_lanes; lane++)
    bytes += network->channels[network->ports[link].first_channel + lane].bytes;
  return bytes;
}

void
pod_packet_network_counts (const PodPacketNetwork *network, PodPacketCounts *out)
{
  *out = network->counts;
}

static bool
check_buffer (const PodBuffer *buffer)
{
  uint64_t credit_bytes = 0;
  int64_t last_ps = 0;

  for (uint32_t i = 0; i < buffer->n_credits; i++)
    {
      const PodCredit *credit
          = &buffer->credits[(buffer->first_credit + i) & (buffer->n_allocated - 1)];

      if (credit->at_ps < last_ps)
        return false;
      last_ps = credit->at_ps;
      credit_bytes += credit->bytes;
    }
  return credit_bytes == buffer->credit_bytes
         && buffer->free_bytes + buffer->credit_bytes <= buffer->capacity_bytes;
}

bool
pod_packet_network_check (const PodPacketNetwork *network)
{
  g_autofree uint64_t *held = g_new0 (uint64_t, network->n_buffers + 1);
  uint32_t n_free = 0;

  for (uint32_t i = network->first_free_packet; i != POD_NO_PACKET; i = network->packets[i].next)
    if (++n_free > network->n_packets || network->packets[i].stream != NULL)
      return false;
  for (uint32_t i = 0; i < network->n_packets; i++)
    if (network->packets[i].stream != NULL && network->packets[i].held != POD_NO_BUFFER)
      held[network->packets[i].held] += network->packets[i].held_bytes;
  for (uint32_t i = 0; i < network->n_buffers; i++)
    {
      const PodBuffer *buffer = &network->buffers[i];

      if (!check_buffer (buffer)
          || held[i] + buffer->free_bytes + buffer->credit_bytes != buffer->capacity_bytes)
        return false;
    }
  return pod_packet_queue_check (network->events);
}
