#include "cli/collective-private.h"
#include "import/topology-import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "report/plot.h"
#include "report/report.h"

/* podsim collective: one collective over a range of sizes, as nccl-tests prints it. */

enum
{
  MAX_ROWS = 4096, /* sizes of one sweep */
};

static void
options_clear (PodCollectiveOptions *options)
{
  g_free (options->topology);
  g_free (options->kind);
  g_free (options->axes);
  g_free (options->ranks);
  g_free (options->stride);
  g_free (options->devices);
  g_free (options->bytes);
  g_free (options->bytes_are);
  g_free (options->algorithm);
  g_free (options->library);
  g_free (options->fidelity);
  g_free (options->dtype);
  g_free (options->network);
  g_free (options->packet);
  g_free (options->json);
  g_free (options->phases);
  g_free (options->steps);
  g_free (options->traffic);
  g_free (options->ragged);
  g_free (options->replicated);
  g_free (options->background);
  g_free (options->plot);
  g_strfreev (options->sets);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodCollectiveOptions, options_clear)

static void
job_clear (PodCollectiveJob *job)
{
  pod_topology_free (job->topology);
  pod_library_free (job->library);
  g_free (job->devices);
  g_free (job->borrowed_devices);
  g_free (job->traffic.shares);
  g_clear_pointer (&job->sizes, g_array_unref);
  g_clear_pointer (&job->dead_links, g_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodCollectiveJob, job_clear)

static void
row_free (gpointer data)
{
  PodCollectiveRow *row = data;

  pod_plan_free (row->plan);
  g_free (row);
}

/* ---- reading the options ---- */

static bool
parse_options (int *argc, char ***argv, PodCollectiveOptions *options, int *out_status)
{
  const GOptionEntry entries[] = {
    { "topology", 0, 0, G_OPTION_ARG_FILENAME, &options->topology,
      "Machine: file, name or shape expression", "T" },
    { "kind", 0, 0, G_OPTION_ARG_FILENAME, &options->kind,
      "all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, reduce, p2p, "
      "collective_permute",
      "K" },
    { "axes", 0, 0, G_OPTION_ARG_FILENAME, &options->axes,
      "Torus group: x, x:4, x:4@2 (every second), y,z (also dcn, core)", "LIST" },
    { "replicated", 0, 0, G_OPTION_ARG_FILENAME, &options->replicated,
      "Idle axes that hold copies of the array: their links may help", "LIST" },
    { "ranks", 0, 0, G_OPTION_ARG_FILENAME, &options->ranks, "Group of the first N devices", "N" },
    { "stride", 0, 0, G_OPTION_ARG_FILENAME, &options->stride, "With --ranks: every S-th device",
      "S" },
    { "devices", 0, 0, G_OPTION_ARG_FILENAME, &options->devices,
      "Group of these devices, in ring order", "LIST" },
    { "bytes", 0, 0, G_OPTION_ARG_FILENAME, &options->bytes,
      "Sizes, or MIN:MAX:FACTOR, with commas between (default 8:8GiB:2)", "LIST" },
    { "bytes-are", 0, 0, G_OPTION_ARG_FILENAME, &options->bytes_are,
      "nccl (default), or global: the array over the whole group", "WHAT" },
    { "algorithm", 0, 0, G_OPTION_ARG_FILENAME, &options->algorithm,
      "An algorithm's name, ring/ll128 with its protocol, or auto (default)", "A" },
    { "library", 0, 0, G_OPTION_ARG_FILENAME, &options->library,
      "Whose cost tables: nccl-2.27, rccl, xla, a file; none (default: the vendor's)", "L" },
    { "phases", 0, 0, G_OPTION_ARG_FILENAME, &options->phases,
      "pipelined (default): the phases of an algorithm overlap; sequential: one after another",
      "MODE" },
    { "steps", 0, 0, G_OPTION_ARG_FILENAME, &options->steps,
      "step-ring's law: none, or endpoint-delay=TIME, local-memory=RATE, floor, store-and-forward",
      "LAW" },
    { "traffic", 0, 0, G_OPTION_ARG_FILENAME, &options->traffic,
      "All-to-all: bytes from each rank (row) to each rank (column), with tabs between", "FILE" },
    { "ragged", 0, 0, G_OPTION_ARG_FILENAME, &options->ragged,
      "All-to-all: FILLED/DESTINATIONS that are not empty, or zipf:POWER", "WHAT" },
    { "background", 0, 0, G_OPTION_ARG_FILENAME, &options->background,
      "Traffic of others: lines of device from, device to, rate, with tabs between", "FILE" },
    { "fidelity", 0, 0, G_OPTION_ARG_FILENAME, &options->fidelity,
      "book, ideal or calibrated (default)", "F" },
    { "dtype", 0, 0, G_OPTION_ARG_FILENAME, &options->dtype,
      "Element type, for the count column (default bf16)", "D" },
    { "network", 0, 0, G_OPTION_ARG_FILENAME, &options->network,
      "analytic (default), flow, or packet: message by message", "N" },
    { "packet", 0, 0, G_OPTION_ARG_FILENAME, &options->packet,
      "With --network packet: " POD_PACKET_WORDS,
      "LIST" },
    { "set", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->sets, "Override a number of the machine",
      "PATH=VALUE" },
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &options->json,
      "Write every number as JSON (- for stdout)", "FILE" },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME, &options->plot,
      "Picture of time and bandwidth against size, with data and gnuplot script", "DIR" },
    { "explain", 0, 0, G_OPTION_ARG_NONE, &options->is_explained,
      "Say what each algorithm costs, and why", NULL },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };
  g_autoptr (GOptionContext) context
      = g_option_context_new ("- one collective, as nccl-tests prints it");

  return pod_cli_parse (context, entries, argc, argv, 0, out_status);
}

static bool
require (const char *value, const char *option, GError **error)
{
  if (value != NULL)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--%s is missing", option);
  return false;
}

/* Appends MIN, MIN * FACTOR, ... MAX. */
static bool
append_series (const char *text, uint64_t first, uint64_t last, double factor, GArray *sizes,
               GError **error)
{
  for (uint64_t size = first;;)
    {
      double next = (double) size * factor;

      if (sizes->len == MAX_ROWS)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "--bytes: '%s' makes more than %d sizes",
                       text, MAX_ROWS);
          return false;
        }
      g_array_append_val (sizes, size);
      /* 2^53: beyond it a factor close to 1 might not move the size */
      if (size == last || next > (double) last || next > 9007199254740992.0)
        return true;
      size = MAX (size + 1, (uint64_t) next);
    }
}

/* "4MiB", "8:8GiB" or "8:8GiB:2" */
static bool
append_sizes (const char *text, GArray *sizes, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", -1);
  guint n = g_strv_length (parts);
  uint64_t first = 0, last;
  double factor = 2;

  if (n < 1 || n > 3)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--bytes: expected SIZE or MIN:MAX:FACTOR, got '%s'", text);
      return false;
    }
  if (!pod_parse_whole (parts[0], POD_UNIT_BYTES, &first, error)
      || (n > 1 && !pod_parse_whole (parts[1], POD_UNIT_BYTES, &last, error))
      || (n > 2 && !pod_parse_quantity (parts[2], POD_UNIT_COUNT, &factor, error)))
    {
      g_prefix_error (error, "--bytes: ");
      return false;
    }
  if (n == 1)
    return append_series (text, first, first, 2, sizes, error);
  if (first >= 1 && last >= first && factor > 1)
    return append_series (text, first, last, factor, sizes, error);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "--bytes: MIN:MAX:FACTOR needs 1 <= MIN <= MAX and FACTOR > 1, got '%s'", text);
  return false;
}

/* Several of them with commas between. */
static bool
parse_sizes (const char *text, GArray *sizes, GError **error)
{
  g_auto (GStrv) items = g_strsplit (*text == '\0' ? " " : text, ",", -1);

  for (char **item = items; *item != NULL; item++)
    if (!append_sizes (*item, sizes, error))
      return false;
  return true;
}

static bool
apply_sets (PodTopology *topology, char *const *sets, GError **error)
{
  for (; sets != NULL && *sets != NULL; sets++)
    {
      const char *equals = strchr (*sets, '=');
      g_autofree char *path = NULL;

      if (equals == NULL)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--set: expected PATH=VALUE, got '%s'",
                       *sets);
          return false;
        }
      path = g_strndup (*sets, (gsize) (equals - *sets));
      if (!pod_topology_set (topology, path, equals + 1, error))
        {
          g_prefix_error (error, "--set: ");
          return false;
        }
    }
  return true;
}

static bool
check_bytes_are (PodCollectiveJob *job, const char *text, GError **error)
{
  job->is_global = g_strcmp0 (text, "global") == 0;
  if (text == NULL || job->is_global || strcmp (text, "nccl") == 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "--bytes-are: expected nccl or global, got '%s'", text);
  return false;
}

static bool
make_job (PodCollectiveJob *job, const PodCollectiveOptions *options, GError **error)
{
  job->fidelity = POD_FIDELITY_CALIBRATED;
  job->dtype = POD_DTYPE_BF16;
  job->algorithm = options->algorithm;
  job->sizes = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  if (!require (options->topology, "topology", error) || !require (options->kind, "kind", error))
    return false;
  if (!pod_collective_parse (options->kind, &job->kind, error))
    {
      g_prefix_error (error, "--kind: ");
      return false;
    }
  if (options->fidelity != NULL && !pod_fidelity_parse (options->fidelity, &job->fidelity, error))
    {
      g_prefix_error (error, "--fidelity: ");
      return false;
    }
  if (options->dtype != NULL && !pod_dtype_parse (options->dtype, &job->dtype, error))
    {
      g_prefix_error (error, "--dtype: ");
      return false;
    }
  if (!check_bytes_are (job, options->bytes_are, error)
      || !parse_sizes (options->bytes == NULL ? "8:8GiB:2" : options->bytes, job->sizes, error))
    return false;
  job->topology = pod_import_topology (options->topology, NULL, error);
  if (job->topology == NULL)
    pod_error_prefix_option (error, "--topology");
  return job->topology != NULL && apply_sets (job->topology, options->sets, error)
         && pod_cli_choose_library (job->topology, job->fidelity, options->library, &job->library, error)
         && pod_collective_make_group (job, options, error)
         && pod_collective_read_extras (job, options, error);
}

/* --network and --packet */
static bool
choose_network (PodCollectiveJob *job, const PodCollectiveOptions *options, GError **error)
{
  if (options->network != NULL && !pod_network_mode_parse (options->network, &job->network, error))
    {
      g_prefix_error (error, "--network: ");
      return false;
    }
  if (options->packet != NULL && job->network != POD_NETWORK_PACKET)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--packet needs --network packet");
      return false;
    }
  job->dead_links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  if (pod_packet_options_parse (options->packet, &job->packet, job->dead_links, error))
    return true;
  g_prefix_error (error, "--packet: ");
  return false;
}

/* ---- running ---- */

void
pod_collective_query (const PodCollectiveJob *job, uint64_t payload_bytes, PodPlanQuery *out)
{
  *out = (PodPlanQuery){
    .topology = job->topology,
    .fidelity = job->fidelity,
    .group = &job->group,
    .kind = job->kind,
    .dtype = job->dtype,
    .payload_bytes = payload_bytes,
    .algorithm = job->algorithm,
    .library = job->library,
    .phases = job->phases,
    .steps = job->has_steps ? &job->steps : NULL,
    .traffic = job->traffic.shares != NULL ? &job->traffic : NULL,
    .borrowed = job->borrowed.n_devices > 0 ? &job->borrowed : NULL,
  };
}

/* The book's all-to-all counts the array over the whole group, nccl-tests one rank's part of it. */
static uint64_t
payload_of (const PodCollectiveJob *job, uint64_t bytes)
{
  return job->is_global && job->kind == POD_ALL_TO_ALL ? bytes / job->group.n_devices : bytes;
}

static bool
is_latency_bound (const PodCollectiveJob *job, const PodPlan *plan, uint64_t bytes, double time_s)
{
  if (job->fidelity == POD_FIDELITY_BOOK)
    return (double) bytes * plan->book_s_per_byte < plan->book_latency_s;
  return (double) plan->latency_ps * 1e-12 > time_s / 2;
}

static PodCollectiveRow *
run_size (const PodCollectiveJob *job, uint64_t bytes, GError **error)
{
  uint64_t payload = payload_of (job, bytes);
  PodPlanQuery query;
  PodPlan *plan;
  PodCollectiveRun result;
  PodCollectiveRow *row;

  pod_collective_query (job, payload, &query);
  plan = pod_collective_plan_query (&query, error);

  if (plan == NULL)
    return NULL;
  row = g_new0 (PodCollectiveRow, 1);
  row->bytes = bytes;
  row->payload_bytes = payload;
  row->plan = plan;
  if (!pod_collective_simulate (&query, plan, job->network, &job->packet, &result, error))
    {
      row_free (row);
      return NULL;
    }
  row->time_s = result.time_s;
  row->packets = result.packets;
  if (row->time_s > 0)
    row->algbw_bytes_per_s = (double) payload / row->time_s;
  row->busbw_bytes_per_s
      = row->algbw_bytes_per_s * pod_collective_bus_factor (job->kind, job->group.n_devices);
  row->is_latency_bound = is_latency_bound (job, plan, payload, row->time_s);
  return row;
}

static bool
write_files (const PodCollectiveJob *job, const PodCollectiveOptions *options,
             const GPtrArray *rows, GError **error)
{
  g_autoptr (JsonObject) result = pod_collective_to_json (job, options, rows);

  if (options->json != NULL && !pod_cli_write_json (result, options->json, error))
    return false;
  if (options->plot == NULL)
    return true;
  if (!pod_report_has_gnuplot ())
    fprintf (stderr, "podsim: gnuplot is not installed: %s gets data and script, no picture\n",
             options->plot);
  return pod_report_collective_plot (result, options->plot, error);
}

static bool
run (const PodCollectiveOptions *options, GError **error)
{
  g_auto (PodCollectiveJob) job = { 0 };
  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func (row_free);
  bool is_quiet = g_strcmp0 (options->json, "-") == 0;

  if (!make_job (&job, options, error) || !choose_network (&job, options, error))
    return false;
  for (guint i = 0; i < job.sizes->len; i++)
    {
      PodCollectiveRow *row = run_size (&job, g_array_index (job.sizes, uint64_t, i), error);

      if (row == NULL)
        return false;
      g_ptr_array_add (rows, row);
    }
  if (!write_files (&job, options, rows, error))
    return false;
  if (!is_quiet)
    pod_collective_print_table (&job, options, rows);
  if (!is_quiet && options->is_explained)
    pod_collective_print_explanation (&job, rows);
  return true;
}

int
pod_cmd_collective (int argc, char **argv)
{
  g_auto (PodCollectiveOptions) options = { 0 };
  g_autoptr (GError) error = NULL;
  int status;

  if (!parse_options (&argc, &argv, &options, &status))
    return status;
  return run (&options, &error) ? EXIT_SUCCESS : pod_cli_fail (error);
}
