#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "network/network.h"

/* The cost of sharing: microseconds per solve and per transfer in flow mode, wall clock of the
 * whole event loop.
 *
 *   bench-network [SOLVES]    solves per case, default 200; small cases take 1000 times as many
 *
 * The machine is a torus of 16 x 16 x 16 chips: 3 axes x 2 directions x 4096 = 24,576 links of 45
 * GB/s. "Rings" are the rows of an axis in pieces of 4 chips: 1,024 rings of 8 links. "Big rings"
 * cover a quarter of the chips and all their links: 4 of 6,144; the same over everything: 4 of
 * 24,576. */

enum
{
  N_CHIPS = 4096,
  N_LINKS = 6 * N_CHIPS,
  RING_CHIPS = 4,
  N_RINGS = N_CHIPS / RING_CHIPS,
  N_BIG = 4,
  NETWORK_KIND = 0,
};

#define ONE (UINT64_C (1) << 32)

typedef struct
{
  PodPathEntry *entries;
  uint32_t n_entries;
} Path;

typedef struct
{
  PodEventQueue *queue;
  PodNetwork *network;
  Path *paths;     /* by tag */
  uint64_t *bytes; /* by tag */
  uint64_t n_left; /* ends that start their transfer again */
  uint64_t n_instants;
} Bench;

/* All links of @axis (3: of every axis) at chips [first, first + n). */
static Path
make_path (uint32_t axis, uint32_t first, uint32_t n)
{
  Path path = { g_new (PodPathEntry, 6 * n), 0 };

  for (uint32_t chip = first; chip < first + n; chip++)
    for (uint32_t a = axis == 3 ? 0 : axis; a <= (axis == 3 ? 2 : axis); a++)
      for (uint32_t direction = 0; direction < 2; direction++)
        path.entries[path.n_entries++]
            = (PodPathEntry){ (a * 2 + direction) * N_CHIPS + chip, ONE };
  return path;
}

/* No two alike: nothing is symmetric, every link is a bundle of its own, and there are many levels.
 */
static Path
make_random_path (uint32_t seed)
{
  enum
  {
    N_HOPS = 12,
    STEP = 2003, /* prime; N_HOPS of them are less than all links */
  };
  Path path = { g_new (PodPathEntry, N_HOPS), N_HOPS };
  /* Knuth's multiplicative hash */
  uint32_t link = seed * UINT32_C (2654435761) % N_LINKS;

  for (uint32_t i = 0; i < N_HOPS; i++)
    {
      path.entries[i] = (PodPathEntry){ link, ONE - seed * 977 };
      link = (link + 1 + (seed * 40503 + i * 9973) % STEP) % N_LINKS;
    }
  return path;
}

/* Of this process: a busy machine then disturbs less. */
static double
cpu_us (void)
{
  struct timespec now;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

static void
start (Bench *bench, uint32_t tag)
{
  pod_network_start (bench->network, bench->paths[tag].entries, bench->paths[tag].n_entries,
                     bench->bytes[tag], 0, 0, tag);
}

/* Every end starts the transfer anew: the load stays. */
static void
on_end (void *context, uint32_t tag)
{
  Bench *bench = context;

  if (bench->n_left == 0)
    return;
  bench->n_left--;
  start (bench, tag);
}

/* Runs @n_transfers of @paths, each again and again, until @n_solves instants have passed. */
static void
run (const char *name, Path *paths, uint64_t *bytes, uint32_t n_transfers, uint64_t n_solves)
{
  g_autofree double *capacity = g_new (double, N_LINKS);
  Bench bench
      = { .queue = pod_event_queue_new (), .paths = paths, .bytes = bytes, .n_left = UINT64_MAX };
  PodEvent event;
  uint64_t n_seen = 0, n_ends = 0;

  for (uint32_t l = 0; l < N_LINKS; l++)
    capacity[l] = 45e9;
  bench.network = pod_network_new (POD_NETWORK_FLOW, bench.queue, NETWORK_KIND, N_LINKS, capacity,
                                   on_end, &bench);
  double start_us = cpu_us ();
  for (uint32_t t = 0; t < n_transfers; t++)
    start (&bench, t);
  while (n_seen < n_solves && pod_event_queue_pop (bench.queue, &event))
    {
      n_seen += event.kind == NETWORK_KIND + 1;
      pod_network_handle (bench.network, &event);
    }
  double us = (cpu_us () - start_us);
  n_ends = UINT64_MAX - bench.n_left + n_transfers;
  printf ("%-44s %8" G_GUINT64_FORMAT " %12.2f %14.3f\n", name, n_seen, us / (double) n_seen,
          us / (double) n_ends);
  pod_network_free (bench.network);
  pod_event_queue_free (bench.queue);
}

/* @bytes: all equal, or each its own so that every end has an instant of its own. */
static void
set_bytes (uint64_t *bytes, uint32_t n, bool is_equal)
{
  for (uint32_t t = 0; t < n; t++)
    bytes[t] = is_equal ? 1000000 : 1000000 + 12345 * (uint64_t) (t * 7919 % n);
}

int
main (int argc, char **argv)
{
  uint64_t n_solves = argc > 1 ? (uint64_t) g_ascii_strtod (argv[1], NULL) : 200;
  Path rings[N_RINGS + N_BIG], row[N_RINGS + N_BIG], over_all[N_RINGS + N_BIG];
  Path random_path[N_RINGS];
  uint64_t bytes[N_RINGS + N_BIG];

  if (n_solves == 0)
    {
      fprintf (stderr, "bench-network: SOLVES is a number from 1 up, got \"%s\"\n", argv[1]);
      return EXIT_FAILURE;
    }
  for (uint32_t t = 0; t < N_RINGS; t++)
    over_all[t] = rings[t] = row[t] = make_path (0, t * RING_CHIPS, RING_CHIPS);
  for (uint32_t t = 0; t < N_BIG; t++)
    {
      rings[N_RINGS + t] = make_path (3, t * (N_CHIPS / N_BIG), N_CHIPS / N_BIG);
      over_all[N_RINGS + t] = make_path (3, 0, N_CHIPS);
      row[N_RINGS + t] = make_path (1, t * (N_CHIPS / N_BIG), N_CHIPS / N_BIG);
    }

  printf ("%-44s %8s %12s %14s\n", "case", "solves", "us/solve", "us/transfer");
  set_bytes (bytes, N_RINGS + N_BIG, true);
  run ("one all-reduce over 8 links", rings, bytes, 1, 1000 * n_solves);
  run ("1,024 rings at once", rings, bytes, N_RINGS, n_solves);
  run ("1,024 rings + 4 big ones on other axes", row, bytes, N_RINGS + N_BIG, n_solves);
  run ("1,024 rings + 4 big ones that share links", rings, bytes, N_RINGS + N_BIG, n_solves);
  run ("1,024 rings + 4 over all links", over_all, bytes, N_RINGS + N_BIG, n_solves);
  set_bytes (bytes, N_RINGS + N_BIG, false);
  run ("the same, ends scattered: rings alone", rings, bytes, N_RINGS, 100 * n_solves);
  run ("  + 4 big ones on other axes", row, bytes, N_RINGS + N_BIG, 100 * n_solves);
  run ("  + 4 big ones that share links", rings, bytes, N_RINGS + N_BIG, n_solves);
  run ("  + 4 over all links", over_all, bytes, N_RINGS + N_BIG, n_solves);
  for (uint32_t t = 0; t < N_RINGS; t++)
    random_path[t] = make_random_path (t);
  run ("1,024 of 12 random links, ends scattered", random_path, bytes, N_RINGS, n_solves);
  for (uint32_t t = 0; t < N_RINGS; t++)
    g_free (random_path[t].entries);
  for (uint32_t t = 0; t < N_RINGS + N_BIG; t++)
    {
      g_free (rings[t].entries);
      if (t >= N_RINGS)
        {
          g_free (over_all[t].entries);
          g_free (row[t].entries);
        }
    }
  return EXIT_SUCCESS;
}
