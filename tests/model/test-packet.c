#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "network/packet-queue.h"
#include "support/packet-case.h"
#include "support/plan-case.h"

/* Packet mode: hand-worked times of few packets, and what it must never do: lose a byte, stop, or
 * depend on anything but its input. Agreement with the other modes is in
 * test-packet-collectives.c. */

#define US       INT64_C (1000000)
#define GB_PER_S 1e9
#define KB       UINT64_C (1000)

enum
{
  PACKET_KIND = 3,
  MTU = 4096,
};

static const PodPacketOptions defaults = { 0 };

/* A line of links 0 > 1 > ... > n, 1 GB/s and 1 us each. */
static PodPacketLink *
make_line (uint32_t n)
{
  PodPacketLink *links = g_new0 (PodPacketLink, n);

  for (uint32_t i = 0; i < n; i++)
    links[i] = (PodPacketLink){ .from = i,
                                .to = i + 1,
                                .bytes_per_s = GB_PER_S,
                                .latency_ps = US,
                                .n_lanes = 1,
                                .flow = POD_FLOW_ORDERED };
  return links;
}

static uint32_t
add_message (PodMessageSet *set, uint32_t first, uint32_t n, uint64_t bytes)
{
  g_autofree uint32_t *links = g_new (uint32_t, n + 1);

  for (uint32_t i = 0; i < n; i++)
    links[i] = first + i;
  return pod_message_set_stream (set, pod_message_set_route (set, links, n), bytes, 1, 1);
}

static int64_t
run_line (const PodPacketLink *links, uint32_t n, const PodPacketOptions *options, uint64_t bytes)
{
  g_autoptr (PodMessageSet) set = pod_message_set_new ();
  g_auto (PacketRun) run = { 0 };

  add_message (set, 0, n, bytes);
  packet_run_links (&run, links, n, options, &set, 1);
  ck_assert_uint_eq (run.counts.n_bytes, bytes);
  return run.time_ps;
}

/* One packet of 4 KB over 3 links of 1 GB/s and 1 us: cut-through B/r + 3L, store-and-forward
 * 3(B/r + L). */
START_TEST (one_packet)
{
  g_autofree PodPacketLink *links = make_line (3);
  PodPacketOptions stored = { .is_store_and_forward = true };

  ck_assert_int_eq (run_line (links, 3, &defaults, 4 * KB), 4 * US + 3 * US);
  ck_assert_int_eq (run_line (links, 3, &stored, 4 * KB), 3 * (4 * US + US));
  ck_assert_int_eq (run_line (links, 3, &defaults, 0), 3 * US);
  ck_assert_int_eq (run_line (links, 3, &defaults, 1), 3 * US + 1000);
  ck_assert_int_eq (run_line (links, 0, &defaults, 4 * KB), 0);
}
END_TEST

/* Ten packets of 1 MB, stored at each of 3 links: the first takes 3 ms, nine follow at 1 ms. With a
 * link of a tenth of the rate in the middle: 1 + 10 x 10 + 1 ms. */
START_TEST (pipelined)
{
  g_autofree PodPacketLink *links = make_line (3);
  PodPacketOptions stored = { .is_store_and_forward = true, .n_packets = 10 };
  PodPacketOptions cut = { .n_packets = 10 };

  ck_assert_int_eq (run_line (links, 3, &stored, 10000 * KB), 12000 * US + 3 * US);
  ck_assert_int_eq (run_line (links, 3, &cut, 10000 * KB), 10000 * US + 3 * US);
  links[1].bytes_per_s = GB_PER_S / 10;
  ck_assert_int_eq (run_line (links, 3, &stored, 10000 * KB), 102000 * US + 3 * US);
  /* From slow to fast a packet goes on when it can without a gap: it ends with its last byte */
  ck_assert_int_eq (run_line (links, 3, &cut, 10000 * KB), 100000 * US + 3 * US);
}
END_TEST

/* Two messages of 8 MB from 0 and from 1 over link 1: 16 MB at 1 GB/s, whoever is first. */
START_TEST (shared_link)
{
  g_autofree PodPacketLink *links = make_line (2);
  g_autoptr (PodMessageSet) set = pod_message_set_new ();
  g_auto (PacketRun) run = { 0 };

  add_message (set, 0, 2, 8000 * KB);
  add_message (set, 1, 1, 8000 * KB);
  packet_run_links (&run, links, 2, &defaults, &set, 1);
  ck_assert_int_ge (run.time_ps, 16000 * US);
  ck_assert_int_le (run.time_ps, 16000 * US + 3 * US);
  ck_assert_uint_eq (run.link_bytes[1], 16000 * KB);
}
END_TEST

/* 8 lanes: a flow of 16 packets takes turns over all, or keeps to one. */
START_TEST (lanes)
{
  g_autofree PodPacketLink *links = make_line (1);
  PodPacketOptions hashed = { .is_hashed = true };

  links[0].n_lanes = 8;
  links[0].bytes_per_s = 8 * GB_PER_S;
  ck_assert_int_eq (run_line (links, 1, &hashed, 16000 * KB), 16000 * US + US);
  links[0].from = 0;
  {
    /* At the sender one packet at a time goes to the link; lanes are for links behind it */
    g_autofree PodPacketLink *two = make_line (2);

    two[0].bytes_per_s = 8 * GB_PER_S;
    two[1].bytes_per_s = 8 * GB_PER_S;
    two[1].n_lanes = 8;
    ck_assert_int_le (run_line (two, 2, &defaults, 16000 * KB), 3000 * US + 2 * US);
    ck_assert_int_ge (run_line (two, 2, &hashed, 16000 * KB), 16000 * US);
  }
}
END_TEST

/* A buffer of one packet, stored: the next one leaves when the first has left the second link and
 * its credit is back: 4.096 + 1 + 4.096 + 1 us apart. */
START_TEST (credits)
{
  g_autofree PodPacketLink *links = make_line (2);
  PodPacketOptions options = { .buffer_bytes = MTU, .n_packets = 10, .is_store_and_forward = true };

  ck_assert_int_eq (run_line (links, 2, &options, 10 * MTU), 10 * (2 * 4096000 + 2 * US));
}
END_TEST

/* One long packet stands in one of two lanes for a millisecond: messages on the other lane
 * overtake, and are kept until those before them are whole. */
START_TEST (overtaking)
{
  g_autofree PodPacketLink *links = make_line (3);
  g_autoptr (PodMessageSet) set = pod_message_set_new ();
  g_auto (PacketRun) run = { 0 };
  PodPacketOptions options = { .n_packets = 1 };
  uint32_t short_route[] = { 0, 1 }, long_route[] = { 2, 1 }, many;

  links[1].n_lanes = 2;
  links[2] = (PodPacketLink){ 3, 1, GB_PER_S, 0, 1, POD_FLOW_ORDERED, 0, 0, 0, 0, 0 };
  pod_message_set_stream (set, pod_message_set_route (set, long_route, 2), 500 * KB, 1, 1);
  many = pod_message_set_stream (set, pod_message_set_route (set, short_route, 2), 99 * KB, 99, 1);
  pod_message_set_stream (set, pod_message_set_route (set, NULL, 0), 0, 99, 1);
  pod_message_set_after (set, (PodMessageDep){ .stream = many });
  packet_run_links (&run, links, 3, &options, &set, 1);
  ck_assert_uint_eq (run.counts.n_messages, 199);
  ck_assert_uint_eq (run.counts.n_bytes, 599 * KB);
}
END_TEST

/* Step k of B waits for step k - 1 of A; C for all of B. 3 steps of 1 MB each: A 0-1-2-3 ms, B step
 * 0 at 0, then after A's steps 0 and 1 (1 ms + 1 us, 2 ms + 1 us); C begins when B ends. */
START_TEST (dependencies)
{
  g_autofree PodPacketLink *links = make_line (3);
  g_autoptr (PodMessageSet) set = pod_message_set_new ();
  g_auto (PacketRun) run = { 0 };
  uint32_t a, b;

  for (uint32_t i = 0; i < 3; i++)
    pod_message_set_route (set, &i, 1);
  a = pod_message_set_stream (set, 0, 3000 * KB, 3, 1);
  b = pod_message_set_stream (set, 1, 3000 * KB, 3, 1);
  pod_message_set_after (set, (PodMessageDep){ .stream = a, .lag = 1 });
  pod_message_set_stream (set, 2, 1000 * KB, 1, 1);
  pod_message_set_after (set, (PodMessageDep){ .stream = b, .after = POD_AFTER_ALL });
  packet_run_links (&run, links, 3, &defaults, &set, 1);
  ck_assert_int_eq (run.time_ps, (3000 + 1 + 1 + 1000 + 1) * US);
  ck_assert_uint_eq (run.counts.n_messages, 7);
}
END_TEST

/* Pieces of one route are stored once; a wrong dependency is found. */
START_TEST (sets)
{
  g_autoptr (PodMessageSet) set = pod_message_set_new ();
  uint32_t links[] = { 3, 4 };

  ck_assert_uint_eq (pod_message_set_route (set, links, 2), 0);
  ck_assert_uint_eq (pod_message_set_route (set, links, 1), 1);
  ck_assert_uint_eq (pod_message_set_route (set, links, 2), 0);
  pod_message_set_stream (set, 0, 10, 2, 3);
  ck_assert (pod_message_set_check (set));
  pod_message_set_after (set, (PodMessageDep){ .stream = 1 });
  ck_assert (!pod_message_set_check (set));
  pod_message_set_stream (set, 0, 10, 1, 3);
  ck_assert (!pod_message_set_check (set)); /* step 1 waits for a step that there is not */
}
END_TEST

/* ---- deadlock ---- */

/* A ring of 8 in one direction, latencies all different, each member sends halfway round in packets
 * that fill a buffer each. */
static PodPacketLink *
make_ring (PodPacketFlow flow)
{
  PodPacketLink *links = g_new0 (PodPacketLink, 8);

  for (uint32_t i = 0; i < 8; i++)
    links[i] = (PodPacketLink){ .from = i,
                                .to = (i + 1) % 8,
                                .bytes_per_s = GB_PER_S,
                                .latency_ps = (1 + 7 * i) * US,
                                .n_lanes = 1,
                                .flow = flow,
                                .sign = +1,
                                .position = i,
                                .extent = 8 };
  return links;
}

static PodMessageSet *
half_way_round (void)
{
  PodMessageSet *set = pod_message_set_new ();

  for (uint32_t i = 0; i < 8; i++)
    {
      uint32_t links[] = { i, (i + 1) % 8, (i + 2) % 8, (i + 3) % 8 };

      pod_message_set_stream (set, pod_message_set_route (set, links, 4), 100 * MTU, 1, 1);
    }
  return set;
}

static const PodPacketOptions tight = { .buffer_bytes = MTU, .n_packets = 100 };

START_TEST (ring_does_not_lock)
{
  g_autofree PodPacketLink *links = make_ring (POD_FLOW_TORUS);
  g_autoptr (PodMessageSet) set = half_way_round ();
  g_auto (PacketRun) run = { 0 };

  packet_run_links (&run, links, 8, &tight, &set, 1);
  ck_assert_uint_eq (run.counts.n_bytes, 800 * MTU);
  ck_assert_uint_eq (run.link_bytes[3], 400 * MTU);
}
END_TEST

static void
ignore_done (void *context, uint32_t tag)
{
  (void) context;
  (void) tag;
}

/* The same with one buffer a link waits in a circle: what the second one is for. */
START_TEST (ring_without_dateline_locks)
{
  g_autofree PodPacketLink *links = make_ring (POD_FLOW_ORDERED);
  g_autoptr (PodMessageSet) set = half_way_round ();
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  g_autoptr (PodPacketNetwork) network
      = pod_packet_network_new (&tight, links, 8, queue, PACKET_KIND, ignore_done, NULL, NULL);
  g_autoptr (PodPacketJob) job = pod_packet_job_new (network, set, NULL);
  g_autofree char *why = NULL;
  PodEvent event;

  pod_packet_network_start (network, job, 0);
  while (pod_event_queue_pop (queue, &event))
    pod_packet_network_handle (network, &event);
  ck_assert_uint_eq (pod_packet_network_n_active (network), 1);
  why = pod_packet_network_describe_waiting (network);
  ck_assert_ptr_nonnull (strstr (why, "wait for room"));
  ck_assert (pod_packet_network_check (network));
}
END_TEST

/* All pairs of a torus at once, in buffers of one packet, in order of axes and adaptively. */
START_TEST (torus_does_not_lock)
{
  static const char *const machines[] = { "tpu-v5p:4x4x8", "tpu-v5p:4x4x8t", "tpu-v5e:4x8" };
  g_auto (PlanCase) c = { 0 };
  g_autoptr (PodMessageSet) set = NULL;
  g_auto (PacketRun) run = { 0 };
  PodGroupFactor factors[] = { { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } };
  PodPacketOptions options = { .buffer_bytes = MTU, .n_packets = 4, .is_adaptive = _i % 2 == 1 };
  uint64_t sum = 0;

  plan_case_start (&c, machines[_i / 2]);
  factors[1].size = c.topology->n_dims == 2 ? 8 : 4;
  plan_case_take_factors (&c, c.topology->n_dims, factors);
  plan_case_plan (&c, POD_ALL_TO_ALL, NULL);
  set = pod_collective_messages (c.topology, POD_FIDELITY_IDEAL, &c.group, POD_ALL_TO_ALL,
                                 128 * 16384, c.plan, NULL);
  packet_run_machine (&run, c.topology, &options, &set, 1);
  for (guint s = 0; s < set->streams->len; s++)
    sum += g_array_index (set->streams, PodMessageStream, s).bytes;
  ck_assert_uint_eq (run.counts.n_bytes, sum);
}
END_TEST

/* Two ways of two hops from corner to corner: in order of axes all take one, adaptively both. */
START_TEST (adaptive)
{
  for (unsigned is_adaptive = 0; is_adaptive < 2; is_adaptive++)
    {
      g_autoptr (PodTopology) topology = pod_topology_load ("tpu-v5p:4x4x4", NULL);
      g_autoptr (PodMessageSet) set = pod_message_set_new ();
      g_autoptr (GArray) route = g_array_new (FALSE, FALSE, sizeof (uint32_t));
      g_auto (PacketRun) run = { 0 };
      PodPacketOptions options = { .is_adaptive = is_adaptive == 1 };
      uint32_t links[2], to;

      ck_assert (pod_topology_route (topology, 0, 5, route));
      ck_assert_uint_eq (route->len, 2);
      for (unsigned i = 0; i < 4; i++)
        pod_message_set_stream (
            set, pod_message_set_route (set, (const uint32_t *) route->data, route->len), 1000 * KB,
            1, 1);
      packet_run_machine (&run, topology, &options, &set, 1);
      for (unsigned dim = 0; dim < 2; dim++)
        ck_assert (pod_topology_torus_link (topology, 0, dim, +1, &links[dim], &to));
      ck_assert_uint_eq (run.link_bytes[links[0]] + run.link_bytes[links[1]], 4000 * KB);
      ck_assert_uint_eq (run.counts.n_hops, 2 * run.counts.n_packets);
      ck_assert (is_adaptive == 1 ? run.link_bytes[links[0]] > 0 && run.link_bytes[links[1]] > 0
                                  : run.link_bytes[links[1]] == 0);
    }
}
END_TEST

/* ---- drops ---- */

/* Eight senders, one link of the same rate behind them, a queue of four packets: most are dropped
 * at first, all bytes arrive, once each. */
START_TEST (incast_with_drops)
{
  PodPacketLink links[9];
  PodPacketOptions options = { .buffer_bytes = 4 * MTU, .n_packets = 1000 };
  g_autoptr (PodMessageSet) set = pod_message_set_new ();
  g_auto (PacketRun) run = { 0 };
  g_auto (PacketRun) again = { 0 };

  for (uint32_t i = 0; i < 9; i++)
    links[i] = (PodPacketLink){ .from = i,
                                .to = i == 8 ? 9 : 8,
                                .bytes_per_s = GB_PER_S,
                                .latency_ps = US,
                                .n_lanes = 1,
                                .flow = POD_FLOW_LOSSY };
  for (uint32_t i = 0; i < 8; i++)
    {
      uint32_t route[] = { i, 8 };

      /* Several messages of unequal packets, the last one short */
      pod_message_set_stream (set, pod_message_set_route (set, route, 2), 50 * MTU + 17, 5, 1);
    }
  packet_run_links (&run, links, 9, &options, &set, 1);
  ck_assert_uint_gt (run.counts.n_dropped, 8);
  ck_assert_uint_gt (run.counts.n_rewinds, 8);
  ck_assert_uint_eq (run.counts.n_bytes, 8 * (50 * MTU + 17));
  ck_assert_uint_eq (run.counts.n_messages, 40);
  ck_assert_int_ge (run.time_ps, (int64_t) (8 * 50 * MTU) * 1000);
  /* A quarter more than the bytes need: windows shrink, and gaps are told, not waited for */
  ck_assert_int_le (run.time_ps, (int64_t) (8 * 50 * MTU) * 1300);
  ck_assert_uint_le (run.counts.n_dropped, 1000);
  packet_run_links (&again, links, 9, &options, &set, 1);
  ck_assert_int_eq (again.time_ps, run.time_ps);
  ck_assert_uint_eq (again.counts.n_dropped, run.counts.n_dropped);
}
END_TEST

/* ---- dead links ---- */

START_TEST (dead_link)
{
  g_auto (PlanCase) c = { 0 };
  g_autoptr (PodMessageSet) set = NULL;
  g_auto (PacketRun) alive = { 0 };
  g_auto (PacketRun) led_round = { 0 };
  PodPacketOptions options = { .n_dead_links = 1 };
  uint32_t link, to;

  plan_case_start (&c, "tpu-v5p:4x4x8");
  plan_case_take_factors (&c, 1, &(PodGroupFactor){ 2, 1, 8 });
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  ck_assert (pod_topology_torus_link (c.topology, 0, 2, +1, &link, &to));
  options.dead_links = &link;
  set = pod_collective_messages (c.topology, POD_FIDELITY_IDEAL, &c.group, POD_ALL_GATHER,
                                 1000000 * KB, c.plan, NULL);
  packet_run_machine (&alive, c.topology, &defaults, &set, 1);
  packet_run_machine (&led_round, c.topology, &options, &set, 1);
  ck_assert_uint_eq (led_round.counts.n_rerouted, 1);
  ck_assert_uint_eq (led_round.link_bytes[link], 0);
  ck_assert_uint_eq (led_round.counts.n_bytes, alive.counts.n_bytes);
  ck_assert_int_gt (led_round.time_ps, alive.time_ps);
}
END_TEST

START_TEST (disconnected)
{
  g_autofree PodPacketLink *links = make_line (2);
  uint32_t dead = 1, missing = 2;
  PodPacketOptions options = { .dead_links = &dead, .n_dead_links = 1 };
  g_autoptr (PodMessageSet) set = pod_message_set_new ();
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (PodPacketNetwork) network
      = pod_packet_network_new (&options, links, 2, queue, PACKET_KIND, ignore_done, NULL, &error);

  add_message (set, 0, 2, 1);
  ck_assert_ptr_null (pod_packet_job_new (network, set, &error));
  ck_assert_str_eq (error->message, "dead links leave no way from vertex 0 to vertex 2");
  g_clear_error (&error);
  options.dead_links = &missing;
  ck_assert_ptr_null (
      pod_packet_network_new (&options, links, 2, queue, PACKET_KIND, ignore_done, NULL, &error));
  ck_assert_str_eq (error->message, "dead link 2: the machine has links 0 to 1");
}
END_TEST

/* ---- options, queue ---- */

START_TEST (options)
{
  static const struct
  {
    const char *text;
    const char *message;
  } wrong[] = {
    { "fast",
      "expected mtu=, packets=, buffer=, drop=, dead=, store-and-forward, ecmp or adaptive, "
      "got 'fast'" },
    { "ecmp=1", "expected mtu=, packets=, buffer=, drop=, dead=, store-and-forward, ecmp or "
                "adaptive, got 'ecmp=1'" },
    { "drop=wire", "drop: expected ici, scale-up, nic, tree or explicit, joined by +, got 'wire'" },
    { "packets=0", "packets: expected 1 to 1048576, got '0'" },
    { "mtu=0", "mtu: expected 1 B to 1 TiB, got '0'" },
  };
  PodPacketOptions out;
  g_autoptr (GArray) dead = g_array_new (FALSE, FALSE, sizeof (uint32_t));

  ck_assert (pod_packet_options_parse (
      "mtu=8KiB,packets=3,buffer=1MiB,store-and-forward,ecmp,adaptive,drop=nic+tree,dead=3+17",
      &out, dead, NULL));
  ck_assert_uint_eq (out.mtu_bytes, 8192);
  ck_assert_uint_eq (out.n_packets, 3);
  ck_assert_uint_eq (out.buffer_bytes, 1 << 20);
  ck_assert (out.is_store_and_forward && out.is_hashed && out.is_adaptive);
  ck_assert_uint_eq (out.drop_kinds, 1 << POD_LINK_NIC | 1 << POD_LINK_TREE);
  ck_assert_uint_eq (out.n_dead_links, 2);
  ck_assert_uint_eq (out.dead_links[1], 17);
  for (size_t i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autoptr (GError) error = NULL;

      ck_assert (!pod_packet_options_parse (wrong[i].text, &out, dead, &error));
      ck_assert_str_eq (error->message, wrong[i].message);
    }
}
END_TEST

/* Many instants in a mixed order: out by time, and first in first out within one. */
START_TEST (queue_order)
{
  g_autoptr (PodPacketQueue) queue = pod_packet_queue_new ();
  uint32_t last_index = 0, n = 0;
  int64_t last_ps = -1;

  for (uint32_t i = 0; i < 5000; i++)
    pod_packet_queue_push (queue, (int64_t) (i * UINT32_C (2654435761) % 977) * US, 7, i);
  ck_assert (pod_packet_queue_check (queue));
  for (; pod_packet_queue_next (queue) != INT64_MAX; n++)
    {
      int64_t at_ps = pod_packet_queue_next (queue);
      uint32_t kind, index;

      pod_packet_queue_pop (queue, &kind, &index);
      ck_assert_uint_eq (kind, 7);
      ck_assert_int_eq (at_ps, (int64_t) (index * UINT32_C (2654435761) % 977) * US);
      ck_assert (at_ps > last_ps || (at_ps == last_ps && index > last_index));
      last_ps = at_ps;
      last_index = index;
      if (n % 500 == 0)
        ck_assert (pod_packet_queue_check (queue));
    }
  ck_assert_uint_eq (n, 5000);
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("packet");
  TCase *tcase = tcase_create ("packet");

  tcase_set_timeout (tcase, 120);
  tcase_add_test (tcase, one_packet);
  tcase_add_test (tcase, pipelined);
  tcase_add_test (tcase, shared_link);
  tcase_add_test (tcase, lanes);
  tcase_add_test (tcase, credits);
  tcase_add_test (tcase, overtaking);
  tcase_add_test (tcase, dependencies);
  tcase_add_test (tcase, sets);
  tcase_add_test (tcase, ring_does_not_lock);
  tcase_add_test (tcase, ring_without_dateline_locks);
  tcase_add_loop_test (tcase, torus_does_not_lock, 0, 6);
  tcase_add_test (tcase, adaptive);
  tcase_add_test (tcase, incast_with_drops);
  tcase_add_test (tcase, dead_link);
  tcase_add_test (tcase, disconnected);
  tcase_add_test (tcase, options);
  tcase_add_test (tcase, queue_order);
  suite_add_tcase (suite, tcase);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (make_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
