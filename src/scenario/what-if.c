#include <stddef.h>

#include "scenario/result-private.h"

/* What would gain most: the step is run again with one thing of the machine better, everything else
 * as it was. Nothing is scaled from the breakdown, so overlap, waiting and the choice of algorithms
 * answer as they do in a run. */

#define BETTER 1.1

/* All runs together may take about this many events: some ten seconds at most. What it decides is the same
 * on every machine. */
#define MAX_EVENTS UINT64_C (20000000)

/* "+10 % FLOP/s" and the --set of it. */
typedef struct
{
  const char *name;
  GPtrArray *set; /* (element-type utf8) */
} Change;

static void
change_clear (void *data)
{
  g_ptr_array_unref (((Change *) data)->set);
}

static Change *
add_change (GArray *changes, const char *name)
{
  const Change change = { .name = name, .set = g_ptr_array_new_with_free_func (g_free) };

  g_array_append_val (changes, change);
  return &g_array_index (changes, Change, changes->len - 1);
}

static double
rated (const PodRun *run, PodRated value)
{
  return run->fidelity == POD_FIDELITY_BOOK ? value.book : value.nominal;
}

static void
set_value (Change *change, const char *path, double value, const char *unit)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE]; /* 1.1 times a round number has a tail of digits as a double
                                         */

  g_ascii_formatd (number, sizeof number, "%.9g", value);
  g_ptr_array_add (change->set, g_strdup_printf ("%s=%s%s", path, number, unit));
}

static void
add_flops (GArray *changes, const PodRun *run)
{
  static const char *const paths[POD_N_DTYPES] = {
    [POD_DTYPE_FP32] = "chip.peak_fp32", [POD_DTYPE_BF16] = "chip.peak_bf16",
    [POD_DTYPE_FP16] = "chip.peak_fp16", [POD_DTYPE_FP8] = "chip.peak_fp8",
    [POD_DTYPE_INT8] = "chip.peak_int8", [POD_DTYPE_FP4] = "chip.peak_fp4",
    [POD_DTYPE_INT4] = "chip.peak_int4",
  };
  const PodChip *chip = run->topology->chip;
  Change *change = add_change (changes, "+10 % FLOP/s");

  for (unsigned d = 0; d < POD_N_DTYPES; d++)
    if (paths[d] != NULL && chip->peak_flops_per_s[d].nominal > 0)
      set_value (change, paths[d], BETTER * rated (run, chip->peak_flops_per_s[d]), "");
  if (chip->vector_flops_per_s.nominal > 0)
    set_value (change, "chip.peak_vector", BETTER * rated (run, chip->vector_flops_per_s), "");
}

static void
add_rate (GArray *changes, const char *name, const char *path, double bytes_per_s)
{
  if (bytes_per_s > 0)
    set_value (add_change (changes, name), path, BETTER * bytes_per_s, "B/s");
}

/* Uplinks of the tree follow the NICs: their rate is a ratio of what comes from below. */
static void
add_nics (GArray *changes, const PodRun *run)
{
  uint32_t up;
  uint32_t down;
  PodLink link;

  if (run->topology->n_nodes < 2 || !pod_topology_nic_links (run->topology, 0, &up, &down))
    return;
  pod_topology_link (run->topology, up, &link);
  add_rate (changes,
            run->topology->fabric == POD_FABRIC_TORUS ? "+10 % DCN bandwidth"
                                                      : "+10 % NIC and tree bandwidth",
            "topology.nic", rated (run, link.bytes_per_s));
}

static void
add_links (GArray *changes, const PodRun *run)
{
  const PodTopology *topology = run->topology;
  const PodChip *chip = topology->chip;

  if (topology->fabric == POD_FABRIC_TORUS && topology->n_chips > topology->n_slices)
    add_rate (changes, "+10 % ICI bandwidth", "chip.ici_bandwidth",
              rated (run, chip->ici_bytes_per_s));
  if (topology->fabric == POD_FABRIC_SWITCHED && topology->chips_per_node > 1)
    add_rate (changes, "+10 % scale-up bandwidth", "chip.scale_up_bandwidth",
              rated (run, chip->scale_up_bytes_per_s));
  if (chip->devices_per_chip > 1)
    add_rate (changes, "+10 % bandwidth between dies", "chip.die_bandwidth",
              rated (run, chip->die_bytes_per_s));
  if (topology->fabric != POD_FABRIC_GRAPH)
    add_nics (changes, run);
  if (run->job.recompute.offloaded != 0 || run->job.offloads_optimizer
      || (chip->is_nic_behind_host && topology->n_nodes > 1))
    add_rate (changes, "+10 % host link bandwidth", "chip.host_bandwidth",
              rated (run, chip->host_bytes_per_s));
}

static void
add_latencies (GArray *changes, const PodRun *run)
{
  static const char *const links[]
      = { "chip.ici_latency", "chip.scale_up_latency", "chip.die_latency", "chip.nic_latency",
          "chip.tree_latency" };
  static const char *const launches[]
      = { "chip.launch", "chip.collective_launch", "chip.attention_launch" };
  Change *change;

  if (run->topology->fabric != POD_FABRIC_GRAPH)
    {
      change = add_change (changes, "no latency of links");
      for (unsigned i = 0; i < G_N_ELEMENTS (links); i++)
        set_value (change, links[i], 0, "s");
    }
  if (run->fidelity != POD_FIDELITY_CALIBRATED)
    return; /* the others count no launches */
  change = add_change (changes, "no launch overhead");
  for (unsigned i = 0; i < G_N_ELEMENTS (launches); i++)
    set_value (change, launches[i], 0, "s");
}

/* False when it was interrupted. A change that this machine cannot have (a file that fixes the
 * number) is left out. */
static bool
try_change (const PodScenario *scenario, const PodRunRequest *base, const PodRun *run,
            const Change *change, JsonArray *out)
{
  g_autoptr (PodScenario) changed = pod_scenario_copy (scenario);
  const PodRunRequest request = { .is_recording_none = true,
                                  .needs_no_advice = true,
                                  .is_interrupted = base->is_interrupted };
  g_autoptr (PodRun) better = NULL;
  JsonObject *entry;
  JsonArray *set;

  for (guint i = 0; i < change->set->len; i++)
    if (!pod_scenario_set (changed, "set", g_ptr_array_index (change->set, i), NULL))
      return true;
  better = pod_scenario_run (changed, &request, NULL);
  if (better == NULL)
    return true;
  if (better->exec->is_partial)
    return false;
  entry = json_object_new ();
  pod_result_set_string (entry, "change", change->name);
  pod_result_set_double (entry, "time_s", (double) better->exec->time_ps / 1e12);
  pod_result_set_double (entry, "gain_ratio",
                         1 - (double) better->exec->time_ps / (double) MAX (run->exec->time_ps, 1));
  set = pod_result_get_array (entry, "set");
  for (guint i = 0; i < change->set->len; i++)
    json_array_add_string_element (set, g_ptr_array_index (change->set, i));
  json_array_add_object_element (out, entry);
  return true;
}

void
pod_run_what_if (const PodScenario *scenario, const PodRunRequest *request, PodRun *run,
                 bool is_forced)
{
  g_autoptr (GArray) changes = g_array_new (FALSE, FALSE, sizeof (Change));
  JsonArray *out = pod_result_get_array (run->result, "what_if");

  g_array_set_clear_func (changes, change_clear);
  add_flops (changes, run);
  add_rate (changes, "+10 % HBM bandwidth", "chip.hbm_bandwidth",
            rated (run, run->topology->chip->hbm_bytes_per_s));
  add_links (changes, run);
  add_latencies (changes, run);
  if (!is_forced && run->exec->n_events * changes->len > MAX_EVENTS)
    {
      g_autofree char *note
          = g_strdup_printf ("not computed: %u more runs of %" G_GUINT64_FORMAT
                             " events each; --what-if computes them however long they take",
                             changes->len, run->exec->n_events);

      pod_result_set_string (run->result, "what_if_note", note);
      return;
    }
  for (guint i = 0; i < changes->len; i++)
    if (!try_change (scenario, request, run, &g_array_index (changes, Change, i), out))
      {
        pod_result_set_string (run->result, "what_if_note", "interrupted: not all were computed");
        return;
      }
}
