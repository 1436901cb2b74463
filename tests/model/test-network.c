#include "network/network.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#define ONE (UINT64_C (1) << 32) /* a share of 1 */
#define NS  INT64_C (1000)
#define US  INT64_C (1000000)
#define S   INT64_C (1000000000000)

enum
{
  NETWORK_KIND = 4, /* and 5 */
  ARRIVAL_KIND = 9,
  ARRIVAL_PRIORITY = 3,
  N_CHECKED_STEPS = 100,
  N_STEPS_PER_CHECK = 7,
};

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t
next_random (uint64_t *state)
{
  uint64_t z = *state += UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
  return z ^ z >> 31;
}

static uint32_t
random_below (uint64_t *state, uint32_t n)
{
  return (uint32_t) (next_random (state) % n);
}

typedef struct
{
  int64_t at_ps;
  const PodPathEntry *path;
  uint32_t n_entries;
  uint64_t bytes;
  int64_t latency_ps;
  double s_per_byte;
  uint32_t next_plus_1; /* the arrival that this one's end starts; its own at_ps is not used */
  bool is_started_by_another;
} Arrival;

typedef struct
{
  uint32_t tag;
  int64_t at_ps;
} End;

/* A transfer under way. */
typedef struct
{
  uint32_t tag;
  uint32_t index;
  PodKeptTransfer kept;
  PodTransferOrder order;
} Active;

typedef struct
{
  PodEventQueue *queue;
  PodNetwork *network;
  GArray *active;   /* (element-type Active) */
  GArray *arrivals; /* (element-type Arrival) indexed by tag */
  GArray *ends;     /* (element-type End) in the order of the calls */
  bool is_starting;
  bool is_checked;
  uint64_t n_steps;
} Run;

static void
start (Run *run, uint32_t tag)
{
  const Arrival *arrival = &g_array_index (run->arrivals, Arrival, tag);
  Active active = { .tag = tag };

  run->is_starting = true;
  active.index = pod_network_start (run->network, arrival->path, arrival->n_entries, arrival->bytes,
                                    arrival->latency_ps, arrival->s_per_byte, tag);
  run->is_starting = false;
  g_array_append_val (run->active, active);
}

static void
note_end (void *context, uint32_t tag)
{
  Run *run = context;
  End end = { tag, pod_event_queue_now (run->queue) };
  uint32_t next_plus_1 = g_array_index (run->arrivals, Arrival, tag).next_plus_1;

  ck_assert (!run->is_starting);
  g_array_append_val (run->ends, end);
  for (guint i = run->active->len; i-- > 0;)
    if (g_array_index (run->active, Active, i).tag == tag)
      g_array_remove_index_fast (run->active, i);
  if (next_plus_1 > 0)
    start (run, next_plus_1 - 1);
}

static Run *
run_new_unmeasured (PodNetworkMode mode, uint32_t n_links, const double *capacity_bytes_per_s)
{
  Run *run = g_new0 (Run, 1);

  run->queue = pod_event_queue_new ();
  run->network = pod_network_new (mode, run->queue, NETWORK_KIND, n_links, capacity_bytes_per_s,
                                  note_end, run);
  run->active = g_array_new (FALSE, TRUE, sizeof (Active));
  run->arrivals = g_array_new (FALSE, TRUE, sizeof (Arrival));
  run->ends = g_array_new (FALSE, TRUE, sizeof (End));
  run->is_checked = true;
  return run;
}

static Run *
run_new (PodNetworkMode mode, uint32_t n_links, const double *capacity_bytes_per_s)
{
  Run *run = run_new_unmeasured (mode, n_links, capacity_bytes_per_s);

  pod_network_measure (run->network);
  return run;
}

static void
run_free (Run *run)
{
  pod_network_free (run->network);
  pod_event_queue_free (run->queue);
  g_array_free (run->arrivals, TRUE);
  g_array_free (run->active, TRUE);
  g_array_free (run->ends, TRUE);
  g_free (run);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Run, run_free)

static void
add (Run *run, Arrival arrival)
{
  g_array_append_val (run->arrivals, arrival);
}

/* One event; false when none is left. */
static bool
step (Run *run)
{
  PodEvent event;

  if (!pod_event_queue_pop (run->queue, &event))
    return false;
  if (event.kind == ARRIVAL_KIND)
    start (run, event.index);
  else
    pod_network_handle (run->network, &event);
  /* After each event at first, then now and then: a check solves everything anew */
  if (run->is_checked
      && (run->n_steps++ < N_CHECKED_STEPS || run->n_steps % N_STEPS_PER_CHECK == 0))
    ck_assert (pod_network_check (run->network));
  return true;
}

static void
schedule_arrivals (Run *run)
{
  for (uint32_t tag = 0; tag < run->arrivals->len; tag++)
    {
      const Arrival *arrival = &g_array_index (run->arrivals, Arrival, tag);
      if (!arrival->is_started_by_another)
        pod_event_queue_push (run->queue, arrival->at_ps, ARRIVAL_PRIORITY, ARRIVAL_KIND, tag, 0);
    }
}

static void
run_all (Run *run)
{
  schedule_arrivals (run);
  while (step (run))
    ;
  ck_assert_uint_eq (run->ends->len, run->arrivals->len);
  ck_assert_uint_eq (pod_network_n_active (run->network), 0);
}

static int64_t
end_of (const Run *run, uint32_t tag)
{
  for (guint i = 0; i < run->ends->len; i++)
    if (g_array_index (run->ends, End, i).tag == tag)
      return g_array_index (run->ends, End, i).at_ps;
  ck_abort_msg ("transfer %u has not ended", tag);
}

/* The end of one transfer alone. */
static int64_t
time_alone (PodNetworkMode mode, double bytes_per_s, uint64_t share_q32, uint64_t bytes,
            int64_t latency_ps)
{
  PodPathEntry path[] = { { 0, share_q32 } };
  g_autoptr (Run) run = run_new (mode, 1, &bytes_per_s);
  double s_per_byte = (double) share_q32 / (double) ONE / bytes_per_s;

  add (run, (Arrival){ .path = path,
                       .n_entries = 1,
                       .bytes = bytes,
                       .latency_ps = latency_ps,
                       .s_per_byte = s_per_byte });
  run_all (run);
  return end_of (run, 0);
}

/* 1000 bytes at 1 GB/s take 1 us; with a share of 1/2, half of that; each after its latency. */
START_TEST (test_alone)
{
  PodNetworkMode mode = _i == 0 ? POD_NETWORK_ANALYTIC : POD_NETWORK_FLOW;

  ck_assert_int_eq (time_alone (mode, 1e9, ONE, 1000, 0), US);
  ck_assert_int_eq (time_alone (mode, 1e9, ONE, 1000, 7), US + 7);
  ck_assert_int_eq (time_alone (mode, 1e9, ONE / 2, 1000, 0), US / 2);
  ck_assert_int_eq (time_alone (mode, 1e9, 4 * ONE, 1000, 10 * S), 10 * S + 4 * US);
}
END_TEST

/* No bytes: the latency, however slow the link. 1 byte at 900 GB/s: 10/9 ps, rounded up to 2 by
 * flow (at its end nothing is left) and to 1 by analytic; at 1e15 B/s (1e-3 ps) 1 ps: never
 * nothing. 1 PB at 100 GB/s: 10^4 s = 10^16 ps. */
START_TEST (test_sizes)
{
  for (PodNetworkMode mode = POD_NETWORK_ANALYTIC; mode <= POD_NETWORK_FLOW; mode++)
    {
      ck_assert_int_eq (time_alone (mode, 1e-2, ONE, 0, 0), 0);
      ck_assert_int_eq (time_alone (mode, 1e-2, ONE, 0, 10 * S), 10 * S);
      ck_assert_int_eq (time_alone (mode, 9e11, ONE, 1, 0), mode == POD_NETWORK_FLOW ? 2 : 1);
      ck_assert_int_eq (time_alone (mode, 1e15, ONE, 1, 0), 1);
      ck_assert_int_eq (time_alone (mode, 1e15, ONE, 1, 10 * S), 10 * S + 1);
      ck_assert_int_eq (time_alone (mode, 1e11, ONE, UINT64_C (1000000000000000), 0), 10000 * S);
    }
}
END_TEST

/* No path: bytes x s/byte + latency, in both modes. */
START_TEST (test_empty_path)
{
  PodNetworkMode mode = _i == 0 ? POD_NETWORK_ANALYTIC : POD_NETWORK_FLOW;
  g_autoptr (Run) run = run_new (mode, 0, NULL);

  add (run, (Arrival){ .bytes = 1000, .latency_ps = 5 * US, .s_per_byte = 2e-9 });
  add (run, (Arrival){ .bytes = 1000, .latency_ps = 5 * US });
  add (run, (Arrival){ .bytes = 0, .latency_ps = 0, .s_per_byte = 1 });
  add (run, (Arrival){ .bytes = 1, .s_per_byte = 1e-20 });
  run_all (run);
  ck_assert_int_eq (end_of (run, 0), 7 * US);
  ck_assert_int_eq (end_of (run, 1), 5 * US);
  ck_assert_int_eq (end_of (run, 2), 0);
  ck_assert_int_eq (end_of (run, 3), 1);
}
END_TEST

/* Two equal flows on a link: each has half, both take twice as long; analytic knows no sharing.
 * They end in the order in which they started, whatever their tags. */
START_TEST (test_two_equal)
{
  static const PodPathEntry path[] = { { 0, ONE } };
  static const double capacity = 1e9;

  for (PodNetworkMode mode = POD_NETWORK_ANALYTIC; mode <= POD_NETWORK_FLOW; mode++)
    {
      g_autoptr (Run) run = run_new (mode, 1, &capacity);
      for (unsigned i = 0; i < 2; i++)
        add (run, (Arrival){ .path = path, .n_entries = 1, .bytes = 1000, .s_per_byte = 1e-9 });
      start (run, 1);
      start (run, 0);
      while (step (run))
        ;
      int64_t expected_ps = mode == POD_NETWORK_FLOW ? 2 * US : US;
      for (guint i = 0; i < 2; i++)
        {
          ck_assert_int_eq (g_array_index (run->ends, End, i).at_ps, expected_ps);
          ck_assert_uint_eq (g_array_index (run->ends, End, i).tag, 1 - i);
        }
      ck_assert_double_eq_tol (pod_network_link_bytes (run->network, 0), 2000, 1e-9);
    }
}
END_TEST

/* 1 GB/s. A: 1000 B at 0. B: 1000 B at 0.5 us.
 *   0 to 0.5 us: A alone, 500 B. Then 500 MB/s each: A's other 500 B take 1 us, it ends at 1.5 us;
 * B has had 500 B. B alone: 500 B in 0.5 us, ends at 2 us. That B waits 0.5 us in its latency must
 * be the same. */
START_TEST (test_staggered)
{
  static const PodPathEntry path[] = { { 0, ONE } };
  static const double capacity = 1e9;
  bool is_latency = _i == 1;
  g_autoptr (Run) run = run_new (POD_NETWORK_FLOW, 1, &capacity);

  add (run, (Arrival){ .path = path, .n_entries = 1, .bytes = 1000 });
  add (run, (Arrival){ .at_ps = is_latency ? 0 : 500 * NS,
                       .path = path,
                       .n_entries = 1,
                       .bytes = 1000,
                       .latency_ps = is_latency ? 500 * NS : 0 });
  run_all (run);
  ck_assert_int_eq (end_of (run, 0), 1500 * NS);
  ck_assert_int_eq (end_of (run, 1), 2000 * NS);
  ck_assert_double_eq_tol (pod_network_link_bytes (run->network, 0), 2000, 1e-9);
}
END_TEST

/* Links P (1 GB/s) and Q (3 GB/s); A on both, B on P, C on Q; 1000, 1000, 4500 B at 0.
 *   0: A = B = 0.5 GB/s (P), C = 3 - 0.5 = 2.5 GB/s.
 *   1.8 us: C's 4500 B are through. A and B stay at 0.5 GB/s: Q was not what held A. 2 us: both
 * end. */
START_TEST (test_two_links)
{
  static const PodPathEntry both[] = { { 0, ONE }, { 1, ONE } };
  static const double capacity[] = { 1e9, 3e9 };
  g_autoptr (Run) run = run_new (POD_NETWORK_FLOW, 2, capacity);

  add (run, (Arrival){ .path = both, .n_entries = 2, .bytes = 1000 });
  add (run, (Arrival){ .path = both, .n_entries = 1, .bytes = 1000 });
  add (run, (Arrival){ .path = both + 1, .n_entries = 1, .bytes = 4500 });
  schedule_arrivals (run);
  while (run->ends->len == 0)
    {
      ck_assert (step (run));
      if (pod_event_queue_now (run->queue) > 0 && run->ends->len == 0)
        ck_assert_double_eq (pod_network_link_rate (run->network, 1), 3e9);
    }
  ck_assert_int_eq (end_of (run, 2), 1800 * NS);
  ck_assert_double_eq (pod_network_link_rate (run->network, 0), 1e9);
  ck_assert_double_eq (pod_network_link_rate (run->network, 1), 0.5e9);
  ck_assert_double_eq_tol (pod_network_link_bytes (run->network, 0), 1800, 1e-9);
  ck_assert_double_eq_tol (pod_network_link_bytes (run->network, 1), 5400, 1e-9);
  while (step (run))
    ;
  ck_assert_int_eq (end_of (run, 0), 2000 * NS);
  ck_assert_int_eq (end_of (run, 1), 2000 * NS);
  ck_assert_double_eq (pod_network_link_rate (run->network, 0), 0);
}
END_TEST

/* Larger takes longer, a faster link does not. */
START_TEST (test_monotone)
{
  for (PodNetworkMode mode = POD_NETWORK_ANALYTIC; mode <= POD_NETWORK_FLOW; mode++)
    {
      uint64_t random = 1;
      int64_t before_ps = 0;
      for (uint64_t bytes = 1; bytes < UINT64_C (1) << 50; bytes += 1 + bytes / 7)
        {
          int64_t ps = time_alone (mode, 4.5e11, ONE, bytes, US);
          ck_assert_int_ge (ps, before_ps);
          before_ps = ps;
        }
      before_ps = INT64_MAX;
      for (double rate = 1; rate < 1e13; rate *= 1 + 1e-6 * random_below (&random, 1000000))
        {
          int64_t ps = time_alone (mode, rate, ONE, 12345, US);
          ck_assert_int_le (ps, before_ps);
          before_ps = ps;
        }
    }
}
END_TEST

enum
{
  N_LINKS = 24,
  N_TRANSFERS = 120,
  MAX_PATH = 6,
};

/* Random paths, sizes from 0 bytes to a few MB, arrivals of which many fall on the same instant,
 * chains. */
typedef struct
{
  double capacity[N_LINKS];
  PodPathEntry paths[N_TRANSFERS][MAX_PATH];
  Arrival arrivals[N_TRANSFERS];
} Scenario;

static uint32_t
make_path (uint64_t *random, PodPathEntry *path, bool is_even)
{
  uint32_t n = 1 + random_below (random, MAX_PATH);
  /* Distinct links: steps that add up to less than a turn */
  uint32_t link = random_below (random, N_LINKS);

  for (uint32_t i = 0; i < n; i++)
    {
      path[i].link = link;
      path[i].share_q32
          = is_even ? ONE >> random_below (random, 3) : 1 + next_random (random) % (2 * ONE);
      link = (link + 1 + random_below (random, N_LINKS / MAX_PATH)) % N_LINKS;
    }
  return n;
}

static void
make_scenario (uint64_t *random, Scenario *scenario)
{
  bool is_even = random_below (random, 2) == 0;

  for (uint32_t l = 0; l < N_LINKS; l++)
    scenario->capacity[l] = is_even ? 1e9 : 1e8 * (1 + random_below (random, 100)) / 3;
  for (uint32_t t = 0; t < N_TRANSFERS; t++)
    {
      Arrival *arrival = &scenario->arrivals[t];
      uint64_t scale = UINT64_C (1) << random_below (random, 22);
      *arrival = (Arrival){
        .at_ps = is_even ? 10 * US * random_below (random, 20)
                         : (int64_t) random_below (random, 200000000),
        .path = scenario->paths[t],
        .n_entries = make_path (random, scenario->paths[t], is_even),
        .bytes = is_even ? scale : next_random (random) % scale,
        .latency_ps = random_below (random, 2) == 0 ? 0 : US * random_below (random, 4),
      };
      if (t >= N_TRANSFERS / 2 && random_below (random, 2) == 0)
        {
          Arrival *first = &scenario->arrivals[t - N_TRANSFERS / 2];
          first->next_plus_1 = t + 1;
          arrival->is_started_by_another = true;
        }
    }
}

static Run *
run_scenario (const Scenario *scenario, PodNetworkMode mode, bool is_full)
{
  Run *run = run_new (mode, N_LINKS, scenario->capacity);

  pod_network_set_full_solve (run->network, is_full);
  for (uint32_t t = 0; t < N_TRANSFERS; t++)
    add (run, scenario->arrivals[t]);
  run_all (run);
  return run;
}

/* To the picosecond, the order of the calls and the last bit of the counters. */
START_TEST (test_incremental_is_full)
{
  uint64_t random = 1;
  g_autofree Scenario *scenario = g_new (Scenario, 1);

  for (unsigned i = 0; i < 20; i++)
    {
      make_scenario (&random, scenario);
      g_autoptr (Run) incremental = run_scenario (scenario, POD_NETWORK_FLOW, false);
      g_autoptr (Run) full = run_scenario (scenario, POD_NETWORK_FLOW, true);
      for (guint j = 0; j < N_TRANSFERS; j++)
        {
          const End *a = &g_array_index (incremental->ends, End, j);
          const End *b = &g_array_index (full->ends, End, j);
          ck_assert_uint_eq (a->tag, b->tag);
          ck_assert_int_eq (a->at_ps, b->at_ps);
        }
      for (uint32_t l = 0; l < N_LINKS; l++)
        ck_assert_double_eq (pod_network_link_bytes (incremental->network, l),
                             pod_network_link_bytes (full->network, l));
    }
}
END_TEST

static int
compare_numbers (const void *a, const void *b)
{
  const uint64_t x = ((const Active *) a)->order.number;
  const uint64_t y = ((const Active *) b)->order.number;

  return (x > y) - (x < y);
}

static int
compare_dues (const void *a, const void *b)
{
  const uint64_t x = ((const Active *) a)->order.due_order;
  const uint64_t y = ((const Active *) b)->order.due_order;

  return (x > y) - (x < y);
}

/* Takes all transfers off and puts them back. False, and nothing is done, where a rate is yet to be solved for. */
static bool
put_back (Run *run)
{
  const guint n = run->active->len;
  Active *active = (Active *) run->active->data;
  PodKeptTransfer kept[N_TRANSFERS];
  uint32_t index[N_TRANSFERS];

  for (guint i = 0; i < n; i++)
    if (!pod_network_keep (run->network, active[i].index, &active[i].kept, &active[i].order))
      return false;
  qsort (active, n, sizeof *active, compare_numbers);
  for (guint i = 0; i < n; i++)
    {
      for (guint k = 0; k < n; k++)
        active[i].kept.n_before += active[k].order.serial < active[i].order.serial;
      pod_network_withdraw (run->network, active[i].index);
      kept[i] = active[i].kept;
    }
  ck_assert_uint_eq (pod_network_n_active (run->network), 0);
  pod_network_put (run->network, kept, n, index);
  for (guint i = 0; i < n; i++)
    active[i].index = index[i];
  qsort (active, n, sizeof *active, compare_dues);
  for (guint i = 0; i < n; i++)
    pod_network_resume (run->network, active[i].index);
  return true;
}

/* Transfers that are taken off the network and put back go on as if nothing had been. */
START_TEST (test_put_back_goes_on)
{
  uint64_t random = 77;
  unsigned n_put_back = 0;
  g_autofree Scenario *scenario = g_new (Scenario, 1);

  for (unsigned i = 0; i < 30; i++)
    {
      make_scenario (&random, scenario);
      g_autoptr (Run) whole = run_scenario (scenario, POD_NETWORK_FLOW, false);
      g_autoptr (Run) run = run_new_unmeasured (POD_NETWORK_FLOW, N_LINKS, scenario->capacity);

      for (uint32_t t = 0; t < N_TRANSFERS; t++)
        add (run, scenario->arrivals[t]);
      schedule_arrivals (run);
      while (step (run))
        n_put_back += random_below (&random, 4) == 0 && run->active->len > 0 && put_back (run);
      ck_assert_uint_eq (run->ends->len, whole->ends->len);
      for (uint32_t t = 0; t < N_TRANSFERS; t++)
        ck_assert_int_eq (end_of (run, t), end_of (whole, t));
    }
  ck_assert_uint_gt (n_put_back, 500);
}
END_TEST

/* @before: the bytes at the last call. A picosecond's worth is taken back at the end of each
 * transfer. */
static bool
counters_are_sound (const Run *run, PodNetworkMode mode, const double *capacity, double *before)
{
  bool is_good = true;

  for (uint32_t l = 0; l < N_LINKS; l++)
    {
      double bytes = pod_network_link_bytes (run->network, l);
      double rate = pod_network_link_rate (run->network, l);
      is_good = is_good && bytes >= before[l] - 0.1
                && (mode == POD_NETWORK_ANALYTIC || rate <= capacity[l] * (1 + 1e-12));
      before[l] = bytes;
    }
  return is_good;
}

/* What was sent is what crossed the links, and at the end nothing moves. On the way, counters only
 * rise and no link is faster than it can be. */
START_TEST (test_bytes_are_conserved)
{
  uint64_t random = 2;
  g_autofree Scenario *scenario = g_new (Scenario, 1);

  for (unsigned i = 0; i < 10; i++)
    {
      make_scenario (&random, scenario);
      for (uint32_t t = 0; t < N_TRANSFERS; t++)
        scenario->arrivals[t].s_per_byte = 1e-10 * random_below (&random, 100);
      for (PodNetworkMode mode = POD_NETWORK_ANALYTIC; mode <= POD_NETWORK_FLOW; mode++)
        {
          g_autoptr (Run) run = run_new (mode, N_LINKS, scenario->capacity);
          double before[N_LINKS] = { 0 }, sent[N_LINKS] = { 0 };
          for (uint32_t t = 0; t < N_TRANSFERS; t++)
            {
              const Arrival *arrival = &scenario->arrivals[t];
              add (run, *arrival);
              for (uint32_t j = 0; j < arrival->n_entries; j++)
                sent[arrival->path[j].link]
                    += (double) arrival->bytes * (double) arrival->path[j].share_q32 / (double) ONE;
            }
          schedule_arrivals (run);
          while (step (run))
            ck_assert (counters_are_sound (run, mode, scenario->capacity, before));
          ck_assert_uint_eq (run->ends->len, N_TRANSFERS);
          for (uint32_t l = 0; l < N_LINKS; l++)
            {
              ck_assert_double_eq_tol (pod_network_link_bytes (run->network, l), sent[l],
                                       1e-12 * (1 + sent[l]));
              ck_assert_double_eq (pod_network_link_rate (run->network, l), 0);
            }
        }
    }
}
END_TEST

/* Alone, a transfer takes in flow mode what analytic mode says: the largest share / capacity. */
START_TEST (test_analytic_is_flow_without_contention)
{
  uint64_t random = 3;
  g_autofree Scenario *scenario = g_new (Scenario, 1);

  for (unsigned i = 0; i < 10; i++)
    {
      make_scenario (&random, scenario);
      for (uint32_t t = 0; t < N_TRANSFERS; t++)
        {
          Arrival arrival = scenario->arrivals[t];
          int64_t end_ps[2];
          arrival.next_plus_1 = 0;
          arrival.is_started_by_another = false;
          arrival.bytes += UINT64_C (1) << 30;
          arrival.s_per_byte = 0;
          for (uint32_t j = 0; j < arrival.n_entries; j++)
            arrival.s_per_byte
                = fmax (arrival.s_per_byte, (double) arrival.path[j].share_q32 / (double) ONE
                                                / scenario->capacity[arrival.path[j].link]);
          for (PodNetworkMode mode = POD_NETWORK_ANALYTIC; mode <= POD_NETWORK_FLOW; mode++)
            {
              g_autoptr (Run) run = run_new (mode, N_LINKS, scenario->capacity);
              add (run, arrival);
              run_all (run);
              end_ps[mode] = end_of (run, 0) - arrival.at_ps;
            }
          ck_assert_double_le (fabs ((double) (end_ps[0] - end_ps[1])), 1e-9 * (double) end_ps[0]);
        }
    }
}
END_TEST

/* Transfers on other links, however many their events, move nothing by a picosecond. */
START_TEST (test_unrelated_transfers_do_not_matter)
{
  uint64_t random = 4;
  g_autofree Scenario *mine = g_new (Scenario, 1);
  g_autofree Scenario *others = g_new (Scenario, 1);
  double capacity[2 * N_LINKS];

  for (unsigned i = 0; i < 10; i++)
    {
      make_scenario (&random, mine);
      make_scenario (&random, others);
      g_autoptr (Run) alone = run_scenario (mine, POD_NETWORK_FLOW, false);
      for (uint32_t l = 0; l < 2 * N_LINKS; l++)
        capacity[l] = l < N_LINKS ? mine->capacity[l] : others->capacity[l - N_LINKS];
      g_autoptr (Run) together = run_new (POD_NETWORK_FLOW, 2 * N_LINKS, capacity);
      for (uint32_t t = 0; t < N_TRANSFERS; t++)
        add (together, mine->arrivals[t]);
      for (uint32_t t = 0; t < N_TRANSFERS; t++)
        {
          Arrival arrival = others->arrivals[t];
          for (uint32_t j = 0; j < arrival.n_entries; j++)
            others->paths[t][j].link += N_LINKS;
          if (arrival.next_plus_1 > 0)
            arrival.next_plus_1 += N_TRANSFERS;
          add (together, arrival);
        }
      run_all (together);
      for (uint32_t t = 0; t < N_TRANSFERS; t++)
        ck_assert_int_eq (end_of (alone, t), end_of (together, t));
    }
}
END_TEST

/* A class of links and of transfers for all that are equal, or each for itself: the same
 * picoseconds. Copy i of a transfer is on copy (i + its position in the path) mod K of a link, or,
 * on every third link, all copies share one. */
START_TEST (test_folded_is_unfolded)
{
  enum
  {
    K = 5,
  };
  uint64_t random = 5;
  g_autofree Scenario *folded = g_new (Scenario, 1);
  PodPathEntry paths[N_TRANSFERS][K][MAX_PATH];
  double capacity[N_LINKS * K];

  for (unsigned round = 0; round < 10; round++)
    {
      make_scenario (&random, folded);
      for (uint32_t l = 0; l < N_LINKS * K; l++)
        capacity[l] = folded->capacity[l / K];
      g_autoptr (Run) unfolded_run = run_new (POD_NETWORK_FLOW, N_LINKS * K, capacity);
      unfolded_run->is_checked = round == 0;
      for (uint32_t t = 0; t < N_TRANSFERS; t++)
        for (uint32_t i = 0; i < K; i++)
          {
            Arrival arrival = folded->arrivals[t];
            for (uint32_t j = 0; j < arrival.n_entries; j++)
              {
                bool is_common = arrival.path[j].link % 3 == 0;
                paths[t][i][j]
                    = (PodPathEntry){ arrival.path[j].link * K + (is_common ? 0 : (i + j) % K),
                                      arrival.path[j].share_q32 };
              }
            arrival.path = paths[t][i];
            if (arrival.next_plus_1 > 0)
              arrival.next_plus_1 = (arrival.next_plus_1 - 1) * K + i + 1;
            add (unfolded_run, arrival);
          }
      for (uint32_t t = 0; t < N_TRANSFERS; t++)
        for (uint32_t j = 0; j < folded->arrivals[t].n_entries; j++)
          if (folded->paths[t][j].link % 3 == 0)
            folded->paths[t][j].share_q32 *= K;
      g_autoptr (Run) folded_run = run_scenario (folded, POD_NETWORK_FLOW, false);
      run_all (unfolded_run);
      for (uint32_t t = 0; t < N_TRANSFERS * K; t++)
        ck_assert_int_eq (end_of (unfolded_run, t), end_of (folded_run, t / K));
    }
}
END_TEST

/* A thousand transfers of one instant are solved once: 1000 arrivals, 1 solve, 1000 ends and the
 * solves between. */
START_TEST (test_one_solve_per_instant)
{
  static const PodPathEntry path[] = { { 0, ONE } };
  static const double capacity = 1e9;
  g_autoptr (Run) run = run_new (POD_NETWORK_FLOW, 1, &capacity);

  run->is_checked = false;
  for (unsigned i = 0; i < 1000; i++)
    add (run, (Arrival){ .path = path, .n_entries = 1, .bytes = 1000 });
  run_all (run);
  ck_assert_int_eq (end_of (run, 999), 1000 * US);
  /* The last solve has nobody left, and is not even asked for */
  ck_assert_uint_le (pod_event_queue_n_popped (run->queue), 2002);
  for (guint i = 0; i < 1000; i++)
    ck_assert_uint_eq (g_array_index (run->ends, End, i).tag, i);
}
END_TEST

/* Whether @call aborts. In a process of its own by hand: Check's fork mode may be off. */
static bool
aborts (void (*call) (void))
{
  int status = 0;
  pid_t child = fork ();

  ck_assert_int_ge (child, 0);
  if (child == 0)
    {
      int null = open ("/dev/null", O_WRONLY);
      dup2 (null, STDERR_FILENO);
      dup2 (null, STDOUT_FILENO);
      call ();
      _exit (EXIT_SUCCESS);
    }
  ck_assert_int_eq (waitpid (child, &status, 0), child);
  return WIFSIGNALED (status) && WTERMSIG (status) == SIGABRT;
}

static void
end_after_the_clock (void)
{
  time_alone (POD_NETWORK_FLOW, 1, ONE, 9200001, 0);
}

static void
end_after_the_clock_analytic (void)
{
  time_alone (POD_NETWORK_ANALYTIC, 1, ONE, 9200001, 0);
}

static void
end_just_before (void)
{
  time_alone (POD_NETWORK_FLOW, 1, ONE, 9199998, 0);
}

static void
start_on_no_link (void)
{
  static const PodPathEntry path[] = { { 1, ONE } };
  static const double capacity = 1e9;
  g_autoptr (Run) run = run_new (POD_NETWORK_FLOW, 1, &capacity);

  add (run, (Arrival){ .path = path, .n_entries = 1, .bytes = 1 });
  run_all (run);
}

/* 9.2e18 ps are 9.2e6 s. */
START_TEST (test_programmer_errors)
{
  ck_assert (aborts (end_after_the_clock));
  ck_assert (aborts (end_after_the_clock_analytic));
  ck_assert (!aborts (end_just_before));
  ck_assert (aborts (start_on_no_link));
}
END_TEST

static Suite *
network_suite (void)
{
  Suite *suite = suite_create ("network");
  TCase *tests = tcase_create ("network");

  tcase_set_timeout (tests, 60);
  tcase_add_loop_test (tests, test_alone, 0, 2);
  tcase_add_test (tests, test_sizes);
  tcase_add_loop_test (tests, test_empty_path, 0, 2);
  tcase_add_test (tests, test_two_equal);
  tcase_add_loop_test (tests, test_staggered, 0, 2);
  tcase_add_test (tests, test_two_links);
  tcase_add_test (tests, test_monotone);
  tcase_add_test (tests, test_incremental_is_full);
  tcase_add_test (tests, test_put_back_goes_on);
  tcase_add_test (tests, test_bytes_are_conserved);
  tcase_add_test (tests, test_analytic_is_flow_without_contention);
  tcase_add_test (tests, test_unrelated_transfers_do_not_matter);
  tcase_add_test (tests, test_folded_is_unfolded);
  tcase_add_test (tests, test_one_solve_per_instant);
  tcase_add_test (tests, test_programmer_errors);
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (network_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
