#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/large-pages.h"
#include "scenario/run-cache.h"

/* Layouts a second: every legal layout of LLaMA-3-70B on 512 H100, global batch 512, micro-batches of 1, 2 and 4, run one after the other
 * with what they share in a cache, as a search runs them; nothing is recorded.
 *
 *   bench-layouts [N]    only about N of them, evenly spread
 *
 * And how many bounds a second, of the job alone and of its program, and how near they are to what was run. Aims: 1,000 runs and 10,000
 * bounds a second on one core. */

static double
cpu_s (void)
{
  struct timespec now;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

/* All that divide up 512 devices; which are legal the run says. Returns: (transfer full) (element-type utf8) layout, or NULL between sizes */
static GPtrArray *
list_layouts (void)
{
  GPtrArray *layouts = g_ptr_array_new_with_free_func (g_free);
  enum
  {
    N_DEVICES = 512
  };

  for (unsigned tp = 1; tp <= 64; tp *= 2)
    for (unsigned pp = 1; pp <= 64 && tp * pp <= N_DEVICES; pp *= 2)
      for (unsigned cp = 1; cp <= 8 && tp * pp * cp <= N_DEVICES; cp *= 2)
        for (unsigned fsdp = 1; tp * pp * cp * fsdp <= N_DEVICES; fsdp *= 2)
          g_ptr_array_add (layouts, g_strdup_printf ("tp=%u pp=%u cp=%u fsdp=%u dp=%u", tp, pp, cp, fsdp, N_DEVICES / (tp * pp * cp * fsdp)));
  return layouts;
}

typedef struct
{
  uint64_t n_run;
  uint64_t n_refused;
  uint64_t n_events;
  uint64_t n_bounds;
  double bounds_s;
  double sum_ratio; /* of bounds to times */
  double floors_s;
  double sum_floor_ratio;
  double slowest_s;
  char slowest[96];
} Count;

/* Returns: (transfer full) */
static PodScenario *
make_scenario (const char *layout, const char *micro_batch)
{
  PodScenario *scenario = pod_scenario_new ();
  const char *const options[][2] = { { "topology", "h100:8x64" }, { "model", "llama3-70b" },       { "layout", layout },          { "seq-len", "8192" },
                                     { "global-batch", "512" },   { "micro-batch", micro_batch } };

  for (unsigned i = 0; i < G_N_ELEMENTS (options); i++)
    pod_scenario_set (scenario, options[i][0], options[i][1], NULL);
  return scenario;
}

static void
run_layout (const char *layout, const char *micro_batch, PodRunCache *cache, Count *count)
{
  const double begin_s = cpu_s ();
  g_autoptr (PodScenario) scenario = make_scenario (layout, micro_batch);
  const PodRunRequest request = { .is_recording_none = true, .is_brief = true, .needs_no_advice = true, .cache = cache };
  g_autoptr (PodRun) run = pod_scenario_run (scenario, &request, NULL);
  PodRunBound bound;
  double floor_s;

  if (run == NULL)
    {
      count->n_refused++;
      return;
    }
  if (getenv ("DBG")) { guint h = 0; const unsigned char *b = (const unsigned char *) run->exec->breakdowns; for (size_t i = 0; i < run->exec->n_represented * sizeof (PodBreakdown); i++) h = h * 31 + b[i];
    double lab = 0; for (guint i = 0; i < run->exec->by_label->len; i++) lab += (i + 1) * g_array_index (run->exec->by_label, double, i);
    double st = 0; for (guint i = 0; i < run->exec->stage_peaks->len; i++) st += (i + 1) * g_array_index (run->exec->stage_peaks, double, i);
    printf ("R %s mb=%s %ld %.0f at %ld wr %u cr %u h %u lab %.0f st %.0f\n", layout, micro_batch, (long) run->exec->time_ps, run->exec->peak_bytes, (long) run->exec->peak_at_ps, run->exec->worst_rank, run->exec->critical_rank, h, lab, st);
    fprintf (stderr, "T %s mb=%s total_ms=%.3f events=%lu ranks=%u\n", layout, micro_batch, (cpu_s()-begin_s)*1e3, (unsigned long) run->exec->n_events, run->exec->n_represented); }
  count->n_run++;
  count->n_events += run->exec->n_events;
  if (pod_scenario_bound (scenario, cache, &bound, NULL))
    count->sum_ratio += (double) bound.time_ps / (double) run->exec->time_ps;
  floor_s = cpu_s ();
  if (pod_scenario_floor (scenario, cache, &bound, NULL))
    count->sum_floor_ratio += (double) bound.time_ps / (double) run->exec->time_ps;
  floor_s = cpu_s () - floor_s;
  count->floors_s += floor_s;
  if (cpu_s () - begin_s - floor_s <= count->slowest_s)
    return;
  count->slowest_s = cpu_s () - begin_s - floor_s;
  g_snprintf (count->slowest, sizeof count->slowest, "%s, micro-batch %s", layout, micro_batch);
}

/* What a search does with candidates before it runs any. */
static void
bound_layout (const char *layout, const char *micro_batch, PodRunCache *cache, Count *count)
{
  const double begin_s = cpu_s ();
  g_autoptr (PodScenario) scenario = make_scenario (layout, micro_batch);
  PodRunBound bound;

  pod_scenario_bound (scenario, cache, &bound, NULL);
  count->n_bounds++;
  count->bounds_s += cpu_s () - begin_s;
}

static int
run_all (int argc, char **argv)
{
  static const char *const micro_batches[] = { "1", "2", "4" };
  g_autoptr (GPtrArray) layouts = list_layouts ();
  g_autoptr (PodRunCache) cache = pod_run_cache_new ();
  const guint n_wanted = argc > 1 ? (guint) MAX (g_ascii_strtoull (argv[1], NULL, 10), 1) : UINT32_MAX;
  const guint n_all = layouts->len * (guint) G_N_ELEMENTS (micro_batches);
  const guint step = MAX (n_all / n_wanted, 1);
  const double begin_s = cpu_s ();
  Count count = { 0 };
  double took_s;

  for (guint i = 0; i < n_all; i += step)
    run_layout (g_ptr_array_index (layouts, i / G_N_ELEMENTS (micro_batches)), micro_batches[i % G_N_ELEMENTS (micro_batches)], cache, &count);
  took_s = cpu_s () - begin_s - count.floors_s;
  for (guint i = 0; i < n_all; i++)
    bound_layout (g_ptr_array_index (layouts, i / G_N_ELEMENTS (micro_batches)), micro_batches[i % G_N_ELEMENTS (micro_batches)], cache, &count);
  printf ("%" G_GUINT64_FORMAT " layouts, %" G_GUINT64_FORMAT " refused, %.0f events a layout: %.1f a second (aim 1000)\n", count.n_run, count.n_refused,
          (double) count.n_events / (double) MAX (count.n_run, 1), (double) count.n_run / took_s);
  printf ("bounds: %.0f a second (aim 10000), on the mean %.2f of the time\n", (double) count.n_bounds / count.bounds_s, count.sum_ratio / (double) MAX (count.n_run, 1));
  printf ("bounds of programs: %.0f a second, on the mean %.3f of the time\n", (double) count.n_run / count.floors_s, count.sum_floor_ratio / (double) MAX (count.n_run, 1));
  printf ("slowest: %s, %.0f ms\n", count.slowest, count.slowest_s * 1e3);
  return count.n_run > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main (int argc, char **argv)
{
  pod_large_pages_begin ();
  return run_all (argc, argv);
}
