#include "network/packet-private.h"

/* Drop and go-back-N. The receiver takes packets in order only; one that comes too early tells it
 * of a gap, and it tells the sender, once a gap, which goes back to the first packet that is
 * missing. A drop that no later packet shows is found by a timer. Each going back halves the window
 * of packets under way (at least one: then whatever gets through counts, so all ends); each window
 * that arrives in full widens it by one. The window opens when a packet arrives; only bad news
 * takes time. */

enum
{
  FIRST_WINDOW = 64,
  LARGEST_WINDOW = 1 << 16,
};

#define LEAST_TIMEOUT_PS INT64_C (10000000) /* 10 us */

void
pod_go_back_init (PodPacketStream *stream)
{
  stream->go_back = (PodGoBack){ .window = FIRST_WINDOW };
}

bool
pod_go_back_may_send (const PodPacketStream *stream)
{
  return stream->go_back.next < stream->go_back.expected + stream->go_back.window;
}

static void
set_timer (PodPacketNetwork *network, const PodPacketStream *stream, uint64_t number,
           int64_t delay_ps)
{
  const PodPacketRun *run = pod_packet_run (network, stream->run);
  uint32_t index = network->first_free_timer;
  PodTimer timer = { .run = stream->run,
                     .stream = (uint32_t) (stream - run->streams),
                     .generation = stream->go_back.generation,
                     .number = number };

  if (index != UINT32_MAX)
    {
      network->first_free_timer = g_array_index (network->timers, PodTimer, index).next_free;
      g_array_index (network->timers, PodTimer, index) = timer;
    }
  else
    {
      index = network->timers->len;
      g_array_append_val (network->timers, timer);
    }
  pod_packet_run (network, stream->run)->n_holds++;
  pod_packet_queue_push (network->events, network->now_ps + delay_ps, POD_PACKET_TIMER, index);
}

bool
pod_go_back_arrived (PodPacketNetwork *network, const PodPacket *packet)
{
  PodPacketStream *stream = packet->stream;
  PodGoBack *state = &stream->go_back;

  if (packet->number != state->expected)
    {
      if (packet->number > state->expected && !state->is_told)
        {
          state->is_told = true;
          set_timer (network, stream, state->expected, stream->route->latency_ps);
        }
      return false;
    }
  state->expected++;
  state->is_told = false;
  if (++state->n_good >= state->window)
    {
      state->n_good = 0;
      state->window = MIN (state->window + 1, LARGEST_WINDOW);
    }
  return true;
}

void
pod_go_back_dropped (PodPacketNetwork *network, const PodPacket *packet)
{
  int64_t round_ps = 2 * packet->stream->route->latency_ps;

  network->counts.n_dropped++;
  set_timer (network, packet->stream, packet->number, MAX (4 * round_ps, LEAST_TIMEOUT_PS));
}

/* The sender stands where the receiver does: at the first packet that is missing. */
static void
meet (PodPacketNetwork *network, PodPacketStream *stream)
{
  stream->go_back.next = stream->go_back.expected;
  stream->n_sent = stream->n_arrived;
  stream->n_packets_sent = 0;
  if (stream->n_arrived < stream->def->n_messages)
    stream->n_packets_sent
        = pod_stream_n_packets (network, stream, stream->n_arrived) - stream->n_packets_left;
}

void
pod_go_back_catch_up (PodPacketNetwork *network, PodPacketStream *stream)
{
  if (stream->go_back.next < stream->go_back.expected)
    meet (network, stream);
  pod_stream_queue (network, stream);
}

static void
rewind_stream (PodPacketNetwork *network, PodPacketStream *stream)
{
  PodGoBack *state = &stream->go_back;

  network->counts.n_rewinds++;
  state->generation++;
  state->is_told = false;
  state->n_good = 0;
  state->window = MAX (state->window / 2, 1);
  meet (network, stream);
  pod_stream_queue (network, stream);
}

void
pod_go_back_timer (PodPacketNetwork *network, uint32_t index)
{
  PodTimer *timer = &g_array_index (network->timers, PodTimer, index);
  uint32_t run = timer->run;
  PodPacketStream *stream = &pod_packet_run (network, run)->streams[timer->stream];
  bool is_due = timer->generation == stream->go_back.generation
                && stream->go_back.expected <= timer->number;

  timer->next_free = network->first_free_timer;
  network->first_free_timer = index;
  if (is_due)
    rewind_stream (network, stream);
  pod_packet_run_release (network, run);
}
