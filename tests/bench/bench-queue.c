#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine/event-queue.h"

/* PHOLD (Fujimoto 1990): as many entities as pending events; each event schedules one for a random
 * entity after an exponential delay. What is measured is pop + handler + push. The delays and
 * targets come from a table that is drawn beforehand, so that the generator and the logarithm cost
 * next to nothing.
 *
 *   bench-queue [EVENTS]    events per size, default 2e6 */

/* xoshiro256** 1.0 (Blackman, Vigna 2018), seeded by splitmix64 */
static uint64_t
rotate (uint64_t x, int k)
{
  return x << k | x >> (64 - k);
}

static uint64_t
next_random (uint64_t state[4])
{
  uint64_t result = rotate (state[1] * 5, 7) * 9;
  uint64_t t = state[1] << 17;

  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= t;
  state[3] = rotate (state[3], 45);
  return result;
}

static void
seed_random (uint64_t state[4], uint64_t seed)
{
  for (unsigned i = 0; i < 4; i++)
    {
      uint64_t z = seed += UINT64_C (0x9e3779b97f4a7c15);
      z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
      z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
      state[i] = z ^ z >> 31;
    }
}

/* Of this process: a busy machine then disturbs less. */
static double
cpu_us (void)
{
  struct timespec now;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

enum
{
  N_DELAYS = 1 << 12,
  MEAN_DELAY_PS = 1000000,
};

static double
phold (uint32_t n_entities, uint64_t n_events, uint64_t *out_checksum)
{
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  g_autofree uint64_t *n_visits = g_new0 (uint64_t, n_entities);
  g_autofree int64_t *delays_ps = g_new (int64_t, N_DELAYS);
  uint64_t random[4];
  PodEvent event = { .kind = 0 };

  seed_random (random, n_entities);
  for (unsigned i = 0; i < N_DELAYS; i++)
    delays_ps[i] = 1
                   + llround (-log (((double) (next_random (random) >> 11) + 0.5) * 0x1p-53)
                              * MEAN_DELAY_PS);
  for (uint32_t i = 0; i < n_entities; i++)
    pod_event_queue_push (queue, delays_ps[next_random (random) % N_DELAYS], 0, 0, i, 0);

  /* Until the pending times have their steady shape */
  double start_us = 0;
  for (uint64_t i = 0; i < n_events + n_entities; i++)
    {
      if (i == n_entities)
        start_us = cpu_us ();
      pod_event_queue_pop (queue, &event);
      const PodEvent *soon = pod_event_queue_soon (queue);
      if (soon != NULL)
        __builtin_prefetch (&n_visits[soon->index], 1);
      n_visits[event.index]++;
      uint64_t bits = next_random (random);
      uint32_t target = (uint32_t) ((bits >> 32) * n_entities >> 32);
      pod_event_queue_push (queue, event.at_ps + delays_ps[bits % N_DELAYS], 0, 0, target, 0);
    }
  double ns = (cpu_us () - start_us) * 1000 / (double) n_events;
  *out_checksum = (uint64_t) event.at_ps ^ event.order << 20 ^ n_visits[0];
  return ns;
}

int
main (int argc, char **argv)
{
  uint64_t n_events = argc > 1 ? (uint64_t) g_ascii_strtod (argv[1], NULL) : 2000000;

  if (n_events == 0)
    {
      fprintf (stderr, "bench-queue: EVENTS is a number from 1 up, got \"%s\"\n", argv[1]);
      return EXIT_FAILURE;
    }
  printf ("%10s %12s %20s\n", "pending", "ns/event", "checksum");
  for (uint32_t n_entities = 100; n_entities <= 1000000; n_entities *= 10)
    {
      uint64_t checksum = 0;
      double ns = phold (n_entities, n_events, &checksum);
      printf ("%10u %12.1f     %016" G_GINT64_MODIFIER "x\n", n_entities, ns, checksum);
    }
  return EXIT_SUCCESS;
}
