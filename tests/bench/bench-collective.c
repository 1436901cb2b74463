#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "collective/collective.h"
#include "network/network.h"

/* One collective in process: planned (algorithm, bytes on each link), then run by the flow network.
 *
 *   bench-collective [SECONDS]    of each case, default 0.5
 *
 * Aims: 10 us for 8 ranks of a ring, 1 ms for a torus of 16 x 16 x 16 folded (the links of one chip
 * stand for all), 0.5 s unfolded (24,576 links). */

typedef struct
{
  const char *name;
  const char *machine;
  const char *algorithm; /* (nullable) */
  PodCollectiveKind kind;
  bool is_folded;
  double aim_us;
  uint32_t stride; /* every so-manieth device, on a torus along its last axis */
} Case;

static double
now_us (void)
{
  struct timespec time;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double) time.tv_sec * 1e6 + (double) time.tv_nsec * 1e-3;
}

static void
ignore (void *context, uint32_t tag)
{
  (void) context, (void) tag;
}

/* The plan's links renumbered from 0, so that the network holds no others. */
static int64_t
run_flow (const PodPlanQuery *query, const PodPlan *plan)
{
  g_autofree double *capacity = g_new (double, plan->n_entries);
  g_autofree PodPathEntry *path = g_new (PodPathEntry, plan->n_entries);
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  g_autoptr (PodNetwork) network = NULL;
  PodEvent event;

  for (uint32_t i = 0; i < plan->n_entries; i++)
    {
      capacity[i]
          = pod_collective_link_rate (query->topology, query->fidelity, plan->entries[i].link);
      path[i] = (PodPathEntry){ i, plan->entries[i].share_q32 };
    }
  network = pod_network_new (POD_NETWORK_FLOW, queue, 0, plan->n_entries, capacity, ignore, NULL);
  pod_network_start (network, path, plan->n_entries,
                     (uint64_t) ((double) query->payload_bytes * plan->busiest_ratio),
                     plan->latency_ps, 0, 0);
  while (pod_event_queue_pop (queue, &event))
    pod_network_handle (network, &event);
  return pod_event_queue_now (queue);
}

/* The whole machine as a group, or every @stride-th plane of it: a torus by its axes, others in
 * order. */
static uint32_t *
make_group (const PodTopology *topology, uint32_t stride, PodGroup *group)
{
  uint32_t *devices = g_new (uint32_t, topology->n_devices);
  bool is_torus = topology->fabric == POD_FABRIC_TORUS;
  uint32_t plane = 1;

  *group = (PodGroup){ .devices = devices };
  for (unsigned dim = 0; is_torus && dim < topology->n_dims; dim++)
    {
      bool is_last = dim + 1 == topology->n_dims;

      group->factors[group->n_factors++]
          = (PodGroupFactor){ .dim = (uint8_t) dim,
                              .stride = is_last ? stride : 1,
                              .size = topology->extent[dim] / (is_last ? stride : 1) };
      plane *= is_last ? 1 : topology->extent[dim];
    }
  for (uint32_t i = 0; i < topology->n_devices; i++)
    if (i / plane % stride == 0)
      devices[group->n_devices++] = i;
  return devices;
}

static bool
run_case (const Case *c, double least_us)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodTopology) topology = pod_topology_load (c->machine, &error);
  g_autofree uint32_t *devices = NULL;
  PodGroup group;
  uint64_t n = 0;
  double plan_us = 0, flow_us = 0;
  uint32_t n_links = 0;
  int64_t end_ps = 0;

  if (topology == NULL)
    {
      fprintf (stderr, "bench-collective: %s\n", error->message);
      return false;
    }
  devices = make_group (topology, c->stride, &group);
  while (n == 0 || plan_us + flow_us < least_us)
    {
      const PodPlanQuery query = {
        .topology = topology,
        .fidelity = POD_FIDELITY_IDEAL,
        .group = &group,
        .kind = c->kind,
        .payload_bytes = 1 << 30,
        .algorithm = c->algorithm,
        .is_folded = c->is_folded,
      };
      double start_us = now_us (), planned_us;
      g_autoptr (PodPlan) plan = pod_collective_plan_query (&query, &error);

      if (plan == NULL)
        {
          fprintf (stderr, "bench-collective: %s\n", error->message);
          return false;
        }
      planned_us = now_us ();
      end_ps = run_flow (&query, plan);
      flow_us += now_us () - planned_us;
      plan_us += planned_us - start_us;
      n_links = plan->n_entries;
      n++;
    }
  printf ("%-44s %8u %12.2f %12.2f %12.2f %10.0f %12.3f\n", c->name, n_links, plan_us / (double) n,
          flow_us / (double) n, (plan_us + flow_us) / (double) n, c->aim_us,
          (double) end_ps * 1e-6);
  return true;
}

int
main (int argc, char **argv)
{
  static const Case cases[] = {
    { "all-reduce, ring of 8", "tpu-v5p:8,unchecked,wrap=x", NULL, POD_ALL_REDUCE, false, 10, 1 },
    { "the same, folded", "tpu-v5p:8,unchecked,wrap=x", NULL, POD_ALL_REDUCE, true, 10, 1 },
    { "all-reduce, ring of 4,096", "tpu-v5p:4096,unchecked,wrap=x", NULL, POD_ALL_REDUCE, false, 1e3, 1 },
    { "all-reduce, 8 ranks of a switch, ring", "h100:8", "ring", POD_ALL_REDUCE, false, 10, 1 },
    { "all-reduce, 16 x 16 x 16, folded", "tpu-v5p:16x16x16", NULL, POD_ALL_REDUCE, true, 1e3, 1 },
    { "all-reduce, 16 x 16 x 16, every link", "tpu-v5p:16x16x16", NULL, POD_ALL_REDUCE, false,
      5e5, 1 },
    { "all-to-all, 16 x 16 x 16, every link", "tpu-v5p:16x16x16", NULL, POD_ALL_TO_ALL, false,
      5e5, 1 },
    { "all-reduce, 1,024 GPUs", "h100:8x128", NULL, POD_ALL_REDUCE, false, 300, 1 },
    { "all-gather, 1,024 GPUs", "h100:8x128", NULL, POD_ALL_GATHER, false, 300, 1 },
    { "all-to-all, 1,024 GPUs", "h100:8x128", NULL, POD_ALL_TO_ALL, false, 300, 1 },
    { "all-reduce, every 4th of 4,096 GPUs", "h100:8x512", NULL, POD_ALL_REDUCE, false, 300, 4 },
    { "all-gather, every 4th of 4,096 GPUs", "h100:8x512", NULL, POD_ALL_GATHER, false, 300, 4 },
    { "all-gather, every 4th plane of 16 x 16 x 16", "tpu-v5p:16x16x16", NULL, POD_ALL_GATHER,
      false, 300, 4 },
    { "all-reduce, every 4th plane of 16 x 16 x 16", "tpu-v5p:16x16x16", NULL, POD_ALL_REDUCE,
      false, 300, 4 },
  };
  double seconds;

  mallopt (M_TRIM_THRESHOLD, 64 << 20); /* as podsim does */
  mallopt (M_MMAP_THRESHOLD, 64 << 20);
  seconds = argc > 1 ? g_ascii_strtod (argv[1], NULL) : 0.5;

  if (!(seconds > 0))
    {
      fprintf (stderr, "bench-collective: SECONDS is a number above 0, got \"%s\"\n", argv[1]);
      return EXIT_FAILURE;
    }
  printf ("%-44s %8s %12s %12s %12s %10s %12s\n", "case", "links", "plan us", "flow us", "both us",
          "aim us", "result us");
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++)
    if (!run_case (&cases[i], seconds * 1e6))
      return EXIT_FAILURE;
  return EXIT_SUCCESS;
}
