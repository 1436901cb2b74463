#include <math.h>
#include <stdlib.h>

#include <check.h>

#include "collective/simulate.h"
#include "support/packet-case.h"
#include "support/plan-case.h"

/* Message sets against plans, and the three fidelities against each other. */

enum
{
  FLOW_KIND = 0, /* and 1 */
  ALL_KINDS = POD_N_COLLECTIVES,
};

#define NONE                                                                                       \
  {                                                                                                \
    0, 0, 0                                                                                        \
  }

typedef struct
{
  const char *machine;
  PodGroupFactor factors[4];
  uint32_t n; /* of a list, when there are no factors */
  int kind;
  const char *algorithm;
  double bytes;
  double tolerance; /* of packet against analytic time */
} Agreement;

/* Large messages, nothing else on the machine: within 1 %. Stages that overlap fill and drain, for
 * about twice the latency of all their steps and one chunk of 512: large is what takes much longer. */
static const Agreement agreements[] = {
  { "tpu-v5p:4x4x8", { { 2, 1, 8 } }, 0, ALL_KINDS, NULL, 1e9, 0.01 },
  { "tpu-v5e:16x16", { { 0, 1, 16 } }, 0, ALL_KINDS, NULL, 1e9, 0.01 },
  { "tpu-v5p:4x4x8", { { 2, 2, 4 } }, 0, ALL_KINDS, NULL, 1e9, 0.01 },
  { "tpu-v5e:4x8", { { 0, 1, 4 } }, 0, POD_ALL_GATHER, NULL, 1e9, 0.01 },
  { "tpu-v5e:4x8", { { 0, 1, 4 } }, 0, POD_REDUCE_SCATTER, NULL, 1e9, 0.01 },
  { "tpu-v5e:4x8", { { 0, 1, 4 } }, 0, POD_ALL_REDUCE, NULL, 1e9, 0.01 },
  { "tpu-v5e:4x8", { { 0, 1, 4 }, { 1, 1, 8 } }, 0, POD_ALL_TO_ALL, NULL, 1e9, 0.01 },
  { "tpu-v5e:4x8", { { 0, 1, 4 }, { 1, 1, 8 } }, 0, POD_BROADCAST, NULL, 1e9, 0.01 },
  { "tpu-v5e:4x8", { { 0, 1, 4 }, { 1, 1, 8 } }, 0, POD_ALL_GATHER, "block-ring", 1e9, 0.01 },
  { "tpu-v5e:4x8", { { 0, 1, 4 }, { 1, 1, 8 } }, 0, POD_ALL_REDUCE, "block-ring", 1e9, 0.01 },
  { "tpu-v5p:4x4x8",
    { { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } },
    0,
    POD_ALL_REDUCE,
    NULL,
    8e9,
    0.01 },
  { "tpu-v5p:4x4x8",
    { { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } },
    0,
    POD_ALL_GATHER,
    NULL,
    8e9,
    0.01 },
  { "tpu-v5p:4x4x8",
    { { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } },
    0,
    POD_ALL_TO_ALL,
    NULL,
    1e9,
    0.01 },
  { "tpu-v5p:4x4x8t",
    { { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } },
    0,
    POD_ALL_REDUCE,
    NULL,
    8e9,
    0.01 },
  { "tpu-v5p:4x4x8t",
    { { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } },
    0,
    POD_ALL_TO_ALL,
    NULL,
    1e9,
    0.01 },
  { "tpu-v7x:4x4x4", { { 0, 1, 4 }, { POD_DIM_CORE, 1, 2 } }, 0, ALL_KINDS, NULL, 1e9, 0.01 },
  { "tpu-v5p:4x4x4*4", { { POD_DIM_DCN, 1, 4 } }, 0, ALL_KINDS, NULL, 1e9, 0.01 },
  { "tpu-v5p:4x4x4*4",
    { { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 4 }, { POD_DIM_DCN, 1, 4 } },
    0,
    POD_REDUCE_SCATTER,
    NULL,
    64e9,
    0.01 },
  { "tpu-v5p:4x4x8", { NONE }, 8, ALL_KINDS, NULL, 1e9, 0.01 },
  { "h100:8", { NONE }, 8, ALL_KINDS, NULL, 1e9, 0.01 },
  { "h100:8", { NONE }, 8, POD_ALL_REDUCE, "ring", 1e9, 0.01 },
  { "h100:8", { NONE }, 8, POD_ALL_REDUCE, "direct", 1e9, 0.01 },
  { "mi300x:8", { NONE }, 8, ALL_KINDS, NULL, 1e9, 0.01 },
  { "mi300x:8", { NONE }, 8, POD_ALL_REDUCE, "ring", 1e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_ALL_GATHER, "hierarchical", 1e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_REDUCE_SCATTER, "hierarchical", 8e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_ALL_REDUCE, "hierarchical", 1e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_ALL_REDUCE, "ring", 1e9, 0.01 },
  { "h100:8x3", { NONE }, 24, POD_ALL_REDUCE, "ring", 1e9, 0.01 },
  { "h100:8x3", { NONE }, 24, POD_ALL_REDUCE, "double-tree", 1e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_ALL_REDUCE, "double-tree", 1e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_ALL_REDUCE, "nvls-tree", 1e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_ALL_TO_ALL, NULL, 1e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_BROADCAST, NULL, 1e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_REDUCE, NULL, 1e9, 0.01 },
  { "tpu-v5e:4x8", { { 0, 1, 4 }, { 1, 1, 8 } }, 0, POD_ALL_REDUCE, "torus", 1e9, 0.01 },
  { "tpu-v5e:4x4", { { 0, 1, 4 }, { 1, 1, 4 } }, 0, POD_ALL_REDUCE, "torus", 1e9, 0.01 },
  { "tpu-v5e:4x8", { { 0, 1, 4 } }, 0, POD_ALL_TO_ALL, "ring", 1e9, 0.01 },
  { "tpu-v5p:4x4x8", { { 2, 1, 8 } }, 0, POD_ALL_TO_ALL, "ring", 1e9, 0.01 },
  { "tpu-v5p:4x4x8", { { 0, 1, 4 }, { 2, 1, 8 } }, 0, POD_ALL_GATHER, "step-ring", 8e9, 0.01 },
  { "tpu-v5p:4x4x8", { { 0, 1, 4 }, { 2, 1, 8 } }, 0, POD_REDUCE_SCATTER, "step-ring", 8e9, 0.01 },
  { "tpu-v5p:4x4x8", { { 0, 1, 4 }, { 2, 1, 8 } }, 0, POD_ALL_REDUCE, "step-ring", 8e9, 0.01 },
  { "tpu-v5p:4x4x8", { { 0, 1, 4 }, { 2, 1, 8 } }, 0, POD_ALL_REDUCE, "halving-doubling", 1e9, 0.01 },
  { "h100:8", { NONE }, 8, POD_ALL_GATHER, "nvls", 1e9, 0.01 },
  { "h100:8", { NONE }, 8, POD_REDUCE_SCATTER, "nvls", 1e9, 0.01 },
  { "h100:8", { NONE }, 8, POD_ALL_REDUCE, "recursive-doubling", 1e9, 0.01 },
  { "h100:8", { NONE }, 7, POD_ALL_GATHER, "recursive-doubling", 1e9, 0.01 },
  { "h100:8", { NONE }, 6, POD_REDUCE_SCATTER, "halving-doubling", 1e9, 0.01 },
  { "h100:8x3", { NONE }, 24, POD_ALL_GATHER, "halving-doubling", 1e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_ALL_REDUCE, "step-ring", 1e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_ALL_GATHER, "sharp", 8e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_REDUCE_SCATTER, "sharp", 8e9, 0.01 },
  { "h100:8x4", { NONE }, 32, POD_ALL_REDUCE, "sharp", 8e9, 0.01 },
  { "h100:8x2", { NONE }, 16, POD_ALL_REDUCE, "double-tree", 8e9, 0.01 },
  { "h100:8x8", { NONE }, 64, POD_ALL_REDUCE, "double-tree", 8e9, 0.01 },
  { "h100:8x3", { NONE }, 24, POD_ALL_REDUCE, "nvls-tree", 8e9, 0.01 },
  { "h100:8x4", { NONE }, 12, POD_ALL_GATHER, "hierarchical", 4e9, 0.01 }, /* 8 and 4 */
  { "h100:8x4,unit=2,tree=2,oversub=4", { NONE }, 32, POD_ALL_TO_ALL, "direct", 1e9, 0.01 },
  { "h100:8x4,unit=2,tree=2,oversub=4", { NONE }, 32, POD_ALL_TO_ALL, "pxn", 1e9, 0.01 },
  { "h100:8x64", { NONE }, 512, POD_ALL_TO_ALL, NULL, 1e8, 0.01 },
  { "example-two-islands", { NONE }, 10, POD_ALL_GATHER, NULL, 1e8, 0.01 },
  { "example-two-islands", { NONE }, 10, POD_REDUCE_SCATTER, NULL, 1e8, 0.01 },
  { "example-two-islands", { NONE }, 10, POD_ALL_REDUCE, "bidir-ring", 1e8, 0.01 },
  { "example-two-islands", { NONE }, 10, POD_ALL_REDUCE, "hierarchical", 1e9, 0.01 },
  { "example-two-islands", { NONE }, 10, POD_ALL_TO_ALL, NULL, 1e8, 0.01 },
  { "example-two-islands", { NONE }, 10, POD_BROADCAST, NULL, 1e8, 0.01 },
  { "example-two-islands", { NONE }, 10, POD_REDUCE, NULL, 1e8, 0.01 },
  { "example-two-islands", { NONE }, 10, POD_SEND, NULL, 1e8, 0.01 },
  { "example-two-islands", { NONE }, 10, POD_PERMUTE, NULL, 1e8, 0.01 },
};

static void
take_group (PlanCase *c, const char *machine, const PodGroupFactor *factors, uint32_t n)
{
  unsigned n_factors = 0;

  plan_case_start (c, machine);
  while (n_factors < 4 && factors[n_factors].size > 0)
    n_factors++;
  if (n_factors > 0)
    plan_case_take_factors (c, n_factors, factors);
  else
    plan_case_take_list (c, n, NULL);
}

static PodPlan *
plan_for (const PlanCase *c, PodCollectiveKind kind, uint64_t bytes, const char *algorithm)
{
  g_autoptr (GError) error = NULL;
  PodPlan *plan = pod_collective_plan (c->topology, POD_FIDELITY_IDEAL, &c->group, kind, bytes,
                                       algorithm, &error);

  ck_assert_msg (plan != NULL, "%s", error == NULL ? "?" : error->message);
  return plan;
}

static PodMessageSet *
messages_for (const PlanCase *c, PodCollectiveKind kind, uint64_t bytes, const PodPlan *plan)
{
  g_autoptr (GError) error = NULL;
  PodMessageSet *set = pod_collective_messages (c->topology, POD_FIDELITY_IDEAL, &c->group, kind,
                                                bytes, plan, &error);

  ck_assert_msg (set != NULL, "%s", error == NULL ? "?" : error->message);
  ck_assert (pod_message_set_check (set));
  return set;
}

/* Every link carries what the plan says, to the rounding of shares (2^-32 of the busiest) and of
 * messages to bytes. The plan counts chains of broadcasts within nodes as if they were closed:
 * there no link carries more, and the busiest nearly as much. */
static void
assert_link_bytes (const PlanCase *c, const PodMessageSet *set, const PodPlan *plan,
                   PodCollectiveKind kind, double bytes)
{
  bool is_open
      = c->topology->fabric == POD_FABRIC_SWITCHED && (kind == POD_BROADCAST || kind == POD_REDUCE);
  g_autofree uint64_t *got = g_new (uint64_t, (size_t) c->topology->n_links + 1);
  g_autofree double *expected = g_new0 (double, (size_t) c->topology->n_links + 1);
  double tolerance = bytes * plan->busiest_ratio * 1e-8 + set->streams->len, most = 0;

  pod_message_set_link_bytes (set, c->topology->n_links, got);
  for (uint32_t i = 0; i < plan->n_entries; i++)
    expected[plan->entries[i].link]
        = (double) plan->entries[i].share_q32 / 4294967296.0 * plan->busiest_ratio * bytes;
  for (uint32_t i = 0; i < c->topology->n_links; i++)
    {
      if (!is_open)
        ck_assert_double_ge ((double) got[i], expected[i] - tolerance);
      ck_assert_double_le ((double) got[i], expected[i] + tolerance);
      most = MAX (most, (double) got[i]);
    }
  /* One of 8 members of a node hands over to the next node instead of its port */
  ck_assert_double_ge (most, bytes * plan->busiest_ratio * (is_open ? 0.875 : 1) - tolerance);
}

static void
assert_agrees (const Agreement *a, PodCollectiveKind kind)
{
  g_auto (PlanCase) c = { 0 };
  g_autoptr (PodPlan) plan = NULL;
  g_autoptr (PodMessageSet) set = NULL;
  g_auto (PacketRun) run = { 0 };
  uint64_t sum = 0;
  double time_s, got_s;

  /* A send is between two */
  if (kind == POD_SEND && a->factors[0].size > 0)
    return;
  take_group (&c, a->machine, a->factors, kind == POD_SEND ? 2 : a->n);
  plan = plan_for (&c, kind, (uint64_t) a->bytes, a->algorithm);
  set = messages_for (&c, kind, (uint64_t) a->bytes, plan);
  assert_link_bytes (&c, set, plan, kind, a->bytes);
  packet_run_machine (&run, c.topology, &(PodPacketOptions){ 0 }, &set, 1);
  time_s = pod_plan_time (c.topology, POD_FIDELITY_IDEAL, plan, (uint64_t) a->bytes);
  got_s = (double) run.time_ps * 1e-12;
  ck_assert_msg (fabs (got_s / time_s - 1) <= a->tolerance,
                 "%s %s %s: packet %.6g s, analytic %.6g s, %+.2f %%", a->machine,
                 pod_collective_name (kind), plan->algorithm, got_s, time_s,
                 100 * (got_s / time_s - 1));
  /* Each byte arrives once, and crosses each link of its route once */
  for (guint s = 0; s < set->streams->len; s++)
    sum += g_array_index (set->streams, PodMessageStream, s).bytes;
  ck_assert_uint_eq (run.counts.n_bytes, sum);
  ck_assert_uint_eq (run.counts.n_messages, set->n_messages);
  for (uint32_t i = 0; i < plan->n_entries; i++)
    ck_assert_double_le ((double) run.link_bytes[plan->entries[i].link],
                         a->bytes * plan->busiest_ratio * (1 + 1e-8) + set->streams->len);
}

START_TEST (agreement)
{
  const Agreement *a = &agreements[_i];

  for (int kind = 0; kind < POD_N_COLLECTIVES; kind++)
    if (a->kind == ALL_KINDS || a->kind == kind)
      assert_agrees (a, (PodCollectiveKind) kind);
}
END_TEST

/* Idle axes, and matrices: what a plain query does not have. */
START_TEST (wide_queries)
{
  static const PodNetworkMode modes[] = { POD_NETWORK_FLOW, POD_NETWORK_PACKET };
  static const PodCollectiveKind kinds[]
      = { POD_ALL_GATHER, POD_REDUCE_SCATTER, POD_ALL_REDUCE, POD_ALL_TO_ALL };
  g_auto (PlanCase) own = { 0 };
  g_auto (PlanCase) wide = { 0 };
  double shares[16 * 16] = { 0 };
  PodTrafficMatrix matrix = { 16, shares };
  PodPlanQuery query = { .fidelity = POD_FIDELITY_IDEAL, .kind = kinds[_i] };
  g_autoptr (PodPlan) plan = NULL;
  PodCollectiveRun analytic, run;

  for (unsigned i = 0; i < 16; i++)
    for (unsigned k = 0; k < 16; k++)
      shares[i * 16 + k] = (i * 7 + k * 3) % 5 / 64.0;
  take_group (&own, "tpu-v5p:4x4x8", (PodGroupFactor[4]){ { 0, 1, 4 }, { 1, 1, 4 } }, 0);
  take_group (&wide, "tpu-v5p:4x4x8", (PodGroupFactor[4]){ { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } },
              0);
  query.topology = own.topology;
  query.group = &own.group;
  query.payload_bytes = UINT64_C (64000000000);
  if (kinds[_i] == POD_ALL_TO_ALL)
    query.traffic = &matrix;
  else
    {
      query.borrowed = &wide.group;
      query.algorithm = "borrow";
    }
  plan = pod_collective_plan_query (&query, NULL);
  ck_assert (plan != NULL);
  ck_assert (pod_collective_simulate (&query, plan, POD_NETWORK_ANALYTIC, NULL, &analytic, NULL));
  for (size_t m = 0; m < G_N_ELEMENTS (modes); m++)
    {
      ck_assert (pod_collective_simulate (&query, plan, modes[m], NULL, &run, NULL));
      ck_assert_msg (fabs (run.time_s / analytic.time_s - 1) < 0.01, "%s %s: %.6g s, analytic %.6g s",
                     pod_collective_name (query.kind), pod_network_mode_name (modes[m]), run.time_s,
                     analytic.time_s);
    }
}
END_TEST

/* 0 and 1 byte, and a message of one packet: the steps' latency, and no more than a packet. */
START_TEST (small)
{
  static const uint64_t sizes[] = { 0, 1, 7, 4096 };
  const char *const machines[] = { "h100:8", "h100:8x2", "mi300x:8" };

  for (size_t m = 0; m < G_N_ELEMENTS (machines); m++)
    for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++)
      for (int kind = 0; kind < POD_N_COLLECTIVES; kind++)
        {
          g_auto (PlanCase) c = { 0 };
          g_autoptr (PodPlan) plan = NULL;
          g_autoptr (PodMessageSet) set = NULL;
          g_auto (PacketRun) run = { 0 };
          uint64_t sum = 0;

          take_group (&c, machines[m], (PodGroupFactor[4]){ NONE }, kind == POD_SEND ? 2 : 8);
          plan = plan_for (&c, (PodCollectiveKind) kind, sizes[i], NULL);
          set = messages_for (&c, (PodCollectiveKind) kind, sizes[i], plan);
          packet_run_machine (&run, c.topology, &(PodPacketOptions){ 0 }, &set, 1);
          for (guint s = 0; s < set->streams->len; s++)
            sum += g_array_index (set->streams, PodMessageStream, s).bytes;
          ck_assert_uint_eq (run.counts.n_bytes, sum);
          ck_assert_int_gt (run.time_ps, 0);
        }
}
END_TEST

/* Same input, same picosecond; and the same by any number of packets where nothing is shared. */
START_TEST (deterministic)
{
  g_auto (PlanCase) c = { 0 };
  g_autoptr (PodPlan) plan = NULL;
  g_autoptr (PodMessageSet) set = NULL;
  g_auto (PacketRun) run = { 0 };
  g_auto (PacketRun) again = { 0 };

  take_group (&c, "h100:8x16", (PodGroupFactor[4]){ NONE }, 128);
  plan = plan_for (&c, POD_ALL_TO_ALL, 100000000, NULL);
  set = messages_for (&c, POD_ALL_TO_ALL, 100000000, plan);
  packet_run_machine (&run, c.topology, &(PodPacketOptions){ 0 }, &set, 1);
  packet_run_machine (&again, c.topology, &(PodPacketOptions){ 0 }, &set, 1);
  ck_assert_int_eq (run.time_ps, again.time_ps);
  ck_assert_uint_eq (run.counts.n_hops, again.counts.n_hops);
  ck_assert_mem_eq (run.link_bytes, again.link_bytes, c.topology->n_links * sizeof (uint64_t));
}
END_TEST

/* The plan's launch floor passes first: calibrated packets take as long as calibrated plans. */
START_TEST (calibrated)
{
  static const PodNetworkMode modes[]
      = { POD_NETWORK_ANALYTIC, POD_NETWORK_FLOW, POD_NETWORK_PACKET };
  g_auto (PlanCase) c = { 0 };
  PodPlanQuery query
      = { .fidelity = POD_FIDELITY_CALIBRATED, .kind = POD_ALL_GATHER, .payload_bytes = 1 << 20 };
  g_autoptr (PodPlan) plan = NULL;
  PodCollectiveRun runs[3];

  take_group (&c, "tpu-v5p:4x4x8", (PodGroupFactor[4]){ { 2, 1, 8 } }, 0);
  query.topology = c.topology;
  query.group = &c.group;
  plan = pod_collective_plan_query (&query, NULL);
  for (size_t i = 0; i < 3; i++)
    ck_assert (pod_collective_simulate (&query, plan, modes[i], NULL, &runs[i], NULL));
  ck_assert_double_eq_tol (runs[1].time_s, runs[0].time_s, 2e-12);
  ck_assert_double_eq_tol (runs[2].time_s / runs[0].time_s, 1, 0.001);
}
END_TEST

/* ---- sharing: flow and packet within 5 % in makespan ---- */

typedef struct
{
  PodEventQueue *queue;
  int64_t end_ps;
} Watch;

static void
note_end (void *context, uint32_t tag)
{
  Watch *watch = context;

  (void) tag;
  watch->end_ps = pod_event_queue_now (watch->queue);
}

static int64_t
flow_time (const PodTopology *topology, PodPlan *const *plans, uint32_t n, uint64_t bytes)
{
  g_autofree double *capacity = g_new (double, (size_t) topology->n_links + 1);
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  Watch watch = { queue, 0 };
  g_autoptr (PodNetwork) network = NULL;
  PodEvent event;

  for (uint32_t i = 0; i < topology->n_links; i++)
    capacity[i] = MAX (pod_collective_link_rate (topology, POD_FIDELITY_IDEAL, i), 1);
  network = pod_network_new (POD_NETWORK_FLOW, queue, FLOW_KIND, topology->n_links, capacity,
                             note_end, &watch);
  for (uint32_t i = 0; i < n; i++)
    pod_network_start (network, plans[i]->entries, plans[i]->n_entries,
                       (uint64_t) llround ((double) bytes * plans[i]->busiest_ratio),
                       plans[i]->latency_ps, 0, i);
  while (pod_event_queue_pop (queue, &event))
    pod_network_handle (network, &event);
  return watch.end_ps;
}

static void
assert_shared (const PodTopology *topology, GPtrArray *plans, GPtrArray *sets, uint64_t bytes,
               const PodPacketOptions *options)
{
  g_auto (PacketRun) run = { 0 };
  int64_t flow_ps = flow_time (topology, (PodPlan *const *) plans->pdata, plans->len, bytes);

  packet_run_machine (&run, topology, options, (PodMessageSet *const *) sets->pdata, sets->len);
  ck_assert_msg (fabs ((double) run.time_ps / (double) flow_ps - 1) < 0.05,
                 "packet %" G_GINT64_FORMAT " ps, flow %" G_GINT64_FORMAT " ps, %+.2f %%",
                 run.time_ps, flow_ps, 100 * ((double) run.time_ps / (double) flow_ps - 1));
}

static void
add_collective (GPtrArray *plans, GPtrArray *sets, PlanCase *c, PodCollectiveKind kind,
                uint64_t bytes)
{
  g_ptr_array_add (plans, plan_for (c, kind, bytes, NULL));
  g_ptr_array_add (sets, messages_for (c, kind, bytes, g_ptr_array_index (plans, plans->len - 1)));
}

/* Loop: how packets are switched and buffered. The 5 % hold for all of them. */
static const PodPacketOptions ways[] = {
  { .buffer_bytes = 0 },
  { .buffer_bytes = 65536 },
  { .is_store_and_forward = true },
  { .n_packets = 64 },
};

/* All of a machine send to device 0. */
START_TEST (incast)
{
  static const char *const machines[] = { "h100:8", "h100:8x4", "tpu-v5p:4x4x8" };

  for (size_t m = 0; m < G_N_ELEMENTS (machines); m++)
    {
      g_autoptr (PodTopology) topology = pod_topology_load (machines[m], NULL);
      g_autoptr (GPtrArray) plans = g_ptr_array_new_with_free_func ((GDestroyNotify) pod_plan_free);
      g_autoptr (GPtrArray) sets
          = g_ptr_array_new_with_free_func ((GDestroyNotify) pod_message_set_free);

      for (uint32_t i = 1; i < MIN (topology->n_devices, 32); i++)
        {
          uint32_t devices[] = { i, 0 };
          PlanCase c = { .topology = topology, .group = { 2, devices, 0, { { 0 } } } };

          add_collective (plans, sets, &c, POD_SEND, 100000000);
        }
      assert_shared (topology, plans, sets, 100000000, &ways[_i]);
    }
}
END_TEST

START_TEST (torus_all_to_all)
{
  static const struct
  {
    const char *machine;
    PodGroupFactor factors[4];
  } tori[] = {
    { "tpu-v5e:16x16", { { 0, 1, 16 }, NONE } },
    { "tpu-v5e:4x8", { { 0, 1, 4 }, { 1, 1, 8 } } },
    { "tpu-v5p:4x4x8", { { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } } },
    { "tpu-v5p:4x4x4", { { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 4 } } },
  };

  for (size_t t = 0; t < G_N_ELEMENTS (tori); t++)
    {
      g_auto (PlanCase) c = { 0 };
      g_autoptr (GPtrArray) plans = g_ptr_array_new_with_free_func ((GDestroyNotify) pod_plan_free);
      g_autoptr (GPtrArray) sets
          = g_ptr_array_new_with_free_func ((GDestroyNotify) pod_message_set_free);

      take_group (&c, tori[t].machine, tori[t].factors, 0);
      add_collective (plans, sets, &c, POD_ALL_TO_ALL, 1000000000);
      assert_shared (c.topology, plans, sets, 1000000000, &ways[_i]);
    }
}
END_TEST

/* A gather, and a reduction of the same bytes, on one axis. */
START_TEST (two_on_one_axis)
{
  static const PodCollectiveKind others[] = { POD_ALL_GATHER, POD_ALL_REDUCE, POD_ALL_TO_ALL };

  for (size_t k = 0; k < G_N_ELEMENTS (others); k++)
    {
      g_auto (PlanCase) c = { 0 };
      g_autoptr (GPtrArray) plans = g_ptr_array_new_with_free_func ((GDestroyNotify) pod_plan_free);
      g_autoptr (GPtrArray) sets
          = g_ptr_array_new_with_free_func ((GDestroyNotify) pod_message_set_free);

      take_group (&c, "tpu-v5p:4x4x8", (PodGroupFactor[4]){ { 2, 1, 8 } }, 0);
      add_collective (plans, sets, &c, POD_ALL_GATHER, 1000000000);
      add_collective (plans, sets, &c, others[k], 1000000000);
      assert_shared (c.topology, plans, sets, 1000000000, &ways[_i]);
    }
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("packet-collectives");
  TCase *tcase = tcase_create ("packet-collectives");
  int n_ways = G_N_ELEMENTS (ways);

  tcase_set_timeout (tcase, 300);
  tcase_add_loop_test (tcase, agreement, 0, G_N_ELEMENTS (agreements));
  tcase_add_loop_test (tcase, wide_queries, 0, 4);
  tcase_add_test (tcase, small);
  tcase_add_test (tcase, deterministic);
  tcase_add_test (tcase, calibrated);
  tcase_add_loop_test (tcase, incast, 0, n_ways);
  tcase_add_loop_test (tcase, torus_all_to_all, 0, n_ways);
  tcase_add_loop_test (tcase, two_on_one_axis, 0, n_ways);
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
