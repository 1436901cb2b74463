#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "network/packet.h"

/* Messages and packets per second of packet mode, processor time of the whole event loop.
 *
 *   bench-packet [RANKS]    ranks of the ring, default 512; 4096 is 33.5 million messages
 *
 * ring         all-reduce of one ring in step: a message a packet, all at the same instants
 * uneven ring  the same with latencies all different: no two events at one instant
 * crossing     64 x 64 ranks through a fat tree of two layers: 4 hops, queues everywhere */

enum
{
  DEFAULT_RANKS = 512,
  PACKET_KIND = 0,
  N_LEAVES = 8,
  N_BELOW = 8,
};

static void
ignore_done (void *context, uint32_t tag)
{
  (void) context;
  (void) tag;
}

static void
run (const char *name, const PodPacketLink *links, uint32_t n_links, const PodMessageSet *set,
     uint32_t n_packets)
{
  PodPacketOptions options = { .n_packets = n_packets };
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  g_autoptr (PodPacketNetwork) network = pod_packet_network_new (
      &options, links, n_links, queue, PACKET_KIND, ignore_done, NULL, NULL);
  g_autoptr (PodPacketJob) job = pod_packet_job_new (network, set, NULL);
  clock_t start;
  struct rusage usage;
  PodPacketCounts counts;
  PodEvent event;
  double seconds;

  start = clock ();
  pod_packet_network_start (network, job, 0);
  while (pod_event_queue_pop (queue, &event))
    pod_packet_network_handle (network, &event);
  seconds = (double) (clock () - start) / CLOCKS_PER_SEC;
  pod_packet_network_counts (network, &counts);
  getrusage (RUSAGE_SELF, &usage);
  printf ("%-12s %10.0f messages %10.0f packets %11.0f hops %8.3f s %8.2f M messages/s %8.2f M "
          "hops/s, peak %ld MB\n",
          name, (double) counts.n_messages, (double) counts.n_packets, (double) counts.n_hops,
          seconds, (double) counts.n_messages / seconds * 1e-6,
          (double) counts.n_hops / seconds * 1e-6, usage.ru_maxrss / 1024);
}

static void
bench_ring (uint32_t n, bool is_uneven)
{
  g_autofree PodPacketLink *links = g_new0 (PodPacketLink, n);
  g_autoptr (PodMessageSet) set = pod_message_set_new ();

  for (uint32_t i = 0; i < n; i++)
    {
      links[i] = (PodPacketLink){ .from = i,
                                  .to = (i + 1) % n,
                                  .bytes_per_s = 45e9,
                                  .latency_ps = 1000000 + (is_uneven ? 997 * i : 0),
                                  .n_lanes = 1,
                                  .flow = POD_FLOW_ORDERED };
      pod_message_set_stream (set, pod_message_set_route (set, &i, 1),
                              (uint64_t) 65536 * 2 * (n - 1), 2 * (n - 1), 1);
      pod_message_set_after (set, (PodMessageDep){ .stream = (i + n - 1) % n, .lag = 1 });
    }
  run (is_uneven ? "uneven ring" : "ring", links, n, set, 1);
}

/* Links: up of each rank, down of each rank, then up and down of each leaf, 8 lanes. */
static void
bench_crossing (void)
{
  enum
  {
    N = N_LEAVES * N_BELOW,
    N_LINKS = 2 * N + 2 * N_LEAVES,
  };
  g_autofree PodPacketLink *links = g_new0 (PodPacketLink, N_LINKS);
  g_autoptr (PodMessageSet) set = pod_message_set_new ();

  for (uint32_t i = 0; i < N_LINKS; i++)
    {
      bool is_rank = i < 2 * N, is_up = is_rank ? i < N : i < 2 * N + N_LEAVES;
      uint32_t below = is_rank ? i % N : N + (i - 2 * N) % N_LEAVES;
      uint32_t above = is_rank ? N + i % N / N_BELOW : N + N_LEAVES;

      links[i] = (PodPacketLink){ .from = is_up ? below : above,
                                  .to = is_up ? above : below,
                                  .bytes_per_s = is_rank ? 50e9 : 400e9,
                                  .latency_ps = 500000,
                                  .n_lanes = is_rank ? 1 : N_BELOW,
                                  .flow = POD_FLOW_ORDERED };
    }
  for (uint32_t shift = 1; shift < N; shift++)
    for (uint32_t i = 0; i < N; i++)
      {
        uint32_t to = (i + shift) % N, leaf = i / N_BELOW, far = to / N_BELOW;
        uint32_t route[] = { i, 2 * N + leaf, 2 * N + N_LEAVES + far, N + to };
        uint32_t near[] = { i, N + to };

        pod_message_set_stream (set,
                                leaf == far ? pod_message_set_route (set, near, 2)
                                            : pod_message_set_route (set, route, 4),
                                1 << 20, 1, 1);
      }
  run ("crossing", links, N_LINKS, set, 256);
}

int
main (int argc, char **argv)
{
  uint32_t n = argc > 1 ? (uint32_t) strtoul (argv[1], NULL, 10) : DEFAULT_RANKS;

  if (n < 2 || n > 1U << 20)
    {
      fprintf (stderr, "bench-packet [RANKS], 2 to 1048576\n");
      return EXIT_FAILURE;
    }
  bench_ring (n, false);
  bench_ring (n, true);
  bench_crossing ();
  return EXIT_SUCCESS;
}
