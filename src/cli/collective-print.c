#include "cli/collective-private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "base/units.h"

enum
{
  N_BUSIEST = 4, /* links that a row lists */
};

/* A switch that reduces moves less than an end-to-end algorithm: bus bandwidth may pass the link
 * rate. */
static bool
is_in_network (const PodPlan *plan)
{
  return g_str_has_prefix (plan->algorithm, "nvls") || strcmp (plan->algorithm, "sharp") == 0;
}

static const char *const link_kinds[] = {
  [POD_LINK_ICI] = "ici", [POD_LINK_DIE] = "die",   [POD_LINK_SCALE_UP] = "scale_up",
  [POD_LINK_NIC] = "nic", [POD_LINK_TREE] = "tree", [POD_LINK_EXPLICIT] = "explicit",
};

typedef struct
{
  uint32_t link;
  double bytes;
  double rate_bytes_per_s;
} BusyLink;

static int
compare_busy (const void *a, const void *b)
{
  const BusyLink *left = a, *right = b;
  double left_s = left->bytes / left->rate_bytes_per_s,
         right_s = right->bytes / right->rate_bytes_per_s;

  if (left_s != right_s)
    return left_s > right_s ? -1 : 1;
  return (left->link > right->link) - (left->link < right->link);
}

/* The busiest first; all links of the plan. Returns: (transfer full) */
static BusyLink *
sort_links (const PodCollectiveJob *job, const PodCollectiveRow *row)
{
  const PodPlan *plan = row->plan;
  BusyLink *busy = g_new (BusyLink, MAX (plan->n_entries, 1));

  for (uint32_t i = 0; i < plan->n_entries; i++)
    busy[i] = (BusyLink){
      .link = plan->entries[i].link,
      .bytes = (double) plan->entries[i].share_q32 / 4294967296.0 * plan->busiest_ratio
               * (double) row->payload_bytes,
      .rate_bytes_per_s
      = pod_collective_link_rate (job->topology, job->fidelity, plan->entries[i].link),
    };
  qsort (busy, plan->n_entries, sizeof *busy, compare_busy);
  return busy;
}

/* Of the whole collective's time, what the bytes alone would take. */
static double
utilisation (const PodCollectiveRow *row, const BusyLink *busy)
{
  return row->time_s > 0 ? busy->bytes / busy->rate_bytes_per_s / row->time_s : 0;
}

static JsonArray *
busiest_to_json (const PodCollectiveJob *job, const PodCollectiveRow *row)
{
  g_autofree BusyLink *busy = sort_links (job, row);
  JsonArray *array = json_array_new ();

  for (uint32_t i = 0; i < MIN (row->plan->n_entries, N_BUSIEST); i++)
    {
      JsonObject *object = json_object_new ();
      PodLink link;

      pod_topology_link (job->topology, busy[i].link, &link);
      pod_result_set_int (object, "link", busy[i].link);
      pod_result_set_string (object, "kind", link_kinds[link.kind]);
      pod_result_set_int (object, "from", link.from);
      pod_result_set_int (object, "to", link.to);
      pod_result_set_double (object, "bytes", busy[i].bytes);
      pod_result_set_double (object, "rate_bytes_per_s", busy[i].rate_bytes_per_s);
      pod_result_set_double (object, "time_s", busy[i].bytes / busy[i].rate_bytes_per_s);
      pod_result_set_double (object, "utilisation_ratio", utilisation (row, &busy[i]));
      json_array_add_object_element (array, object);
    }
  return array;
}

/* Devices by number, switches behind them. */
static char *
vertex_name (const PodTopology *topology, uint32_t vertex)
{
  if (vertex < topology->n_devices)
    return g_strdup_printf ("%u", vertex);
  return g_strdup_printf ("switch %u", vertex - topology->n_devices);
}

static void
print_busiest (const PodCollectiveJob *job, const PodCollectiveRow *row)
{
  static const char *const columns[]
      = { "  busiest links", "from", "to", ">bytes", ">rate", ">time", ">busy", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree BusyLink *busy = sort_links (job, row);
  g_autofree char *text = NULL;

  for (uint32_t i = 0; i < MIN (row->plan->n_entries, N_BUSIEST); i++)
    {
      PodLink link;
      g_autofree char *bytes = pod_format_bytes (busy[i].bytes, false);
      g_autofree char *rate = pod_format_bytes_per_s (busy[i].rate_bytes_per_s);
      g_autofree char *time = pod_format_seconds (busy[i].bytes / busy[i].rate_bytes_per_s);
      g_autofree char *share = g_strdup_printf ("%.1f %%", 100 * utilisation (row, &busy[i]));
      g_autofree char *from = NULL;
      g_autofree char *to = NULL;
      g_autofree char *name = NULL;

      pod_topology_link (job->topology, busy[i].link, &link);
      from = vertex_name (job->topology, link.from);
      to = vertex_name (job->topology, link.to);
      name = g_strdup_printf ("  %s %u", link_kinds[link.kind], busy[i].link);
      pod_table_add_row (table,
                         (const char *const[]){ name, from, to, bytes, rate, time, share, NULL });
    }
  text = pod_table_to_text (table);
  printf ("%s", text);
  if (row->plan->n_entries > N_BUSIEST)
    printf ("  and %u more\n", row->plan->n_entries - N_BUSIEST);
}

/* nccl-tests' columns. count is that of one rank's part for gathers, scatters and all-to-all. */
static uint64_t
count_of (const PodCollectiveJob *job, const PodCollectiveRow *row)
{
  bool is_parted = job->kind == POD_ALL_GATHER || job->kind == POD_REDUCE_SCATTER
                   || job->kind == POD_ALL_TO_ALL;

  return (uint64_t) ((double) row->payload_bytes / pod_dtype_bytes (job->dtype)
                     / (is_parted ? job->group.n_devices : 1));
}

static const char *
redop_of (const PodCollectiveJob *job)
{
  return job->kind == POD_ALL_REDUCE || job->kind == POD_REDUCE_SCATTER || job->kind == POD_REDUCE
             ? "sum"
             : "none";
}

static const char *
root_of (const PodCollectiveJob *job)
{
  return job->kind == POD_BROADCAST || job->kind == POD_REDUCE ? "0" : "-1";
}

static const char *
phases_of (const PodPlan *plan)
{
  return plan->phases == POD_PHASES_SEQUENTIAL ? "sequential" : "pipelined";
}

static JsonObject *
row_to_json (const PodCollectiveJob *job, const PodCollectiveRow *row)
{
  JsonObject *object = json_object_new ();

  pod_result_set_string (object, "kind", pod_collective_name (job->kind));
  pod_result_set_int (object, "bytes", (int64_t) row->bytes);
  pod_result_set_int (object, "payload_bytes", (int64_t) row->payload_bytes);
  pod_result_set_int (object, "count", (int64_t) count_of (job, row));
  pod_result_set_string (object, "redop", redop_of (job));
  pod_result_set_string (object, "root", root_of (job));
  pod_result_set_int (object, "ranks", job->group.n_devices);
  pod_result_set_string (object, "algorithm", row->plan->algorithm);
  if (row->plan->protocol != NULL)
    pod_result_set_string (object, "protocol", row->plan->protocol);
  if (job->library != NULL)
    pod_result_set_string (object, "library", job->library->name);
  pod_result_set_string (object, "phases", phases_of (row->plan));
  pod_result_set_string (object, "network", pod_network_mode_name (job->network));
  pod_result_set_double (object, "time_s", row->time_s);
  pod_result_set_double (object, "latency_s",
                         job->fidelity == POD_FIDELITY_BOOK
                             ? row->plan->book_latency_s
                             : (double) row->plan->latency_ps * 1e-12);
  pod_result_set_int (object, "steps", row->plan->n_steps);
  pod_result_set_double (object, "algbw_bytes_per_s", row->algbw_bytes_per_s);
  pod_result_set_double (object, "busbw_bytes_per_s", row->busbw_bytes_per_s);
  pod_result_set_bool (object, "is_in_network", is_in_network (row->plan));
  pod_result_set_string (object, "bound", row->is_latency_bound ? "latency" : "bandwidth");
  pod_result_set_string (object, "explain", row->plan->explain);
  json_object_set_array_member (object, "links", busiest_to_json (job, row));
  if (job->network == POD_NETWORK_PACKET)
    {
      pod_result_set_int (object, "messages", (int64_t) row->packets.n_messages);
      pod_result_set_int (object, "packets", (int64_t) row->packets.n_packets);
      pod_result_set_int (object, "dropped_packets", (int64_t) row->packets.n_dropped);
      pod_result_set_int (object, "rerouted_routes", (int64_t) row->packets.n_rerouted);
    }
  return object;
}

JsonObject *
pod_collective_to_json (const PodCollectiveJob *job, const PodCollectiveOptions *options,
                        const GPtrArray *rows)
{
  JsonObject *object = json_object_new ();
  JsonArray *array;

  pod_result_set_int (object, "schema_version", 1);
  pod_result_set_string (object, "command", "collective");
  pod_result_set_string (object, "topology", job->topology->name);
  pod_result_set_string (object, "fidelity", pod_fidelity_name (job->fidelity));
  pod_result_set_string (object, "bytes_are", job->is_global ? "global" : "nccl");
  pod_result_set_string (object, "dtype", pod_dtype_name (job->dtype));
  array = pod_result_get_array (object, "overrides");
  for (char **set = options->sets; set != NULL && *set != NULL; set++)
    json_array_add_string_element (array, *set);
  if (options->background != NULL)
    pod_result_set_string (object, "background", options->background);
  array = pod_result_get_array (object, "assumptions");
  for (guint i = 0; i < job->topology->assumptions->len; i++)
    json_array_add_string_element (array, g_ptr_array_index (job->topology->assumptions, i));
  if (job->library != NULL && job->topology->chip != NULL)
    {
      g_autofree char *text = pod_library_describe (job->library, job->topology->chip);

      json_array_add_string_element (array, text);
    }
  array = pod_result_get_array (object, "rows");
  for (guint i = 0; i < rows->len; i++)
    json_array_add_object_element (array, row_to_json (job, g_ptr_array_index (rows, i)));
  return object;
}

/* What was asked beyond the table's columns. */
static void
print_modes (const PodCollectiveJob *job, const PodCollectiveOptions *options,
             const GPtrArray *rows)
{
  bool is_sequential = false;

  for (guint i = 0; i < rows->len; i++)
    is_sequential |= ((const PodCollectiveRow *) g_ptr_array_index (rows, i))->plan->phases
                     == POD_PHASES_SEQUENTIAL;
  if (is_sequential)
    printf ("phases one after another (sequential)\n");
  else if (options->phases != NULL)
    printf ("phases overlap (pipelined)\n");
  if (options->steps != NULL)
    printf ("message by message: %s\n", options->steps);
  if (options->replicated != NULL)
    printf ("idle, with copies: %s\n", options->replicated);
  if (options->ragged != NULL || options->traffic != NULL)
    printf ("bytes of pairs: %s\n", options->ragged != NULL ? options->ragged : options->traffic);
  if (job->topology->background_bytes_per_s != NULL)
    printf ("beside the traffic of %s\n", options->background);
}

void
pod_collective_print_table (const PodCollectiveJob *job, const PodCollectiveOptions *options,
                            const GPtrArray *rows)
{
  static const char *const columns[]
      = { ">size (B)",     ">count",        "type",      "redop", ">root", ">time (us)",
          ">algbw (GB/s)", ">busbw (GB/s)", "algorithm", "bound", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;
  bool has_mark = false;

  for (guint i = 0; i < rows->len; i++)
    {
      const PodCollectiveRow *row = g_ptr_array_index (rows, i);
      bool is_marked = is_in_network (row->plan);
      g_autofree char *size = g_strdup_printf ("%" G_GUINT64_FORMAT, row->bytes);
      g_autofree char *count = g_strdup_printf ("%" G_GUINT64_FORMAT, count_of (job, row));
      g_autofree char *time = g_strdup_printf ("%.2f", row->time_s * 1e6);
      g_autofree char *algbw = g_strdup_printf ("%.2f", row->algbw_bytes_per_s * 1e-9);
      g_autofree char *algorithm
          = row->plan->protocol == NULL
                ? g_strdup (row->plan->algorithm)
                : g_strconcat (row->plan->algorithm, "/", row->plan->protocol, NULL);
      g_autofree char *busbw
          = g_strdup_printf ("%.2f%s", row->busbw_bytes_per_s * 1e-9, is_marked ? "*" : "");
      const char *cells[] = { size,
                              count,
                              pod_dtype_name (job->dtype),
                              redop_of (job),
                              root_of (job),
                              time,
                              algbw,
                              busbw,
                              algorithm,
                              row->is_latency_bound ? "latency" : "bandwidth" };

      has_mark |= is_marked;
      pod_table_add_row (table, cells);
    }
  text = pod_table_to_text (table);
  printf ("%s over %u ranks of %s, %s\n", pod_collective_name (job->kind), job->group.n_devices,
          job->topology->name, pod_fidelity_name (job->fidelity));
  if (job->network != POD_NETWORK_ANALYTIC)
    printf ("network %s\n", pod_network_mode_name (job->network));
  if (job->library != NULL && job->topology->chip != NULL)
    {
      g_autofree char *how = pod_library_describe (job->library, job->topology->chip);

      printf ("%s\n", how);
    }
  for (char **set = options->sets; set != NULL && *set != NULL; set++)
    printf ("set %s\n", *set);
  print_modes (job, options, rows);
  printf ("\n%s", text);
  if (has_mark)
    printf ("\n* in-network: the switch reduces, so this is not a link's rate\n");
}

static void
free_plan (gpointer data)
{
  pod_plan_free (data);
}

/* Without a library: what each algorithm would cost, those that are taken only by name, too. */
static GPtrArray *
list_by_name (const PodPlanQuery *query)
{
  g_autoptr (GPtrArray) names = pod_collective_algorithms ();
  GPtrArray *plans = g_ptr_array_new_with_free_func (free_plan);
  PodPlanQuery named = *query;

  for (guint i = 0; i < names->len; i++)
    {
      PodPlan *plan;

      named.algorithm = g_ptr_array_index (names, i);
      plan = pod_collective_plan_query (&named, NULL);
      if (plan != NULL)
        g_ptr_array_add (plans, plan);
    }
  return plans;
}

static void
print_plan (const PodCollectiveJob *job, const PodCollectiveRow *row, const PodPlan *plan)
{
  bool is_chosen = strcmp (plan->algorithm, row->plan->algorithm) == 0
                   && g_strcmp0 (plan->protocol, row->plan->protocol) == 0;
  g_autofree char *name = plan->protocol == NULL
                              ? g_strdup (plan->algorithm)
                              : g_strconcat (plan->algorithm, "/", plan->protocol, NULL);
  g_autofree char *time
      = pod_format_seconds (pod_plan_time (job->topology, job->fidelity, plan, row->payload_bytes));
  g_autofree char *cost
      = isfinite (plan->cost_s) ? pod_format_seconds (plan->cost_s) : g_strdup ("outside its sizes");

  if (plan->protocol == NULL)
    printf ("%c %-18s %10s  %s\n", is_chosen ? '>' : ' ', name, time, plan->explain);
  else
    printf ("%c %-18s %10s  cost to the chooser %s; %s\n", is_chosen ? '>' : ' ', name, time, cost,
            plan->explain);
}

void
pod_collective_print_explanation (const PodCollectiveJob *job, const GPtrArray *rows)
{
  for (guint i = 0; i < rows->len; i++)
    {
      const PodCollectiveRow *row = g_ptr_array_index (rows, i);
      g_autoptr (GPtrArray) plans = NULL;
      PodPlanQuery query;

      printf ("\n%" G_GUINT64_FORMAT " B\n", row->bytes);
      if (row->plan->n_entries == 0)
        {
          printf ("> %s: %s\n", row->plan->algorithm, row->plan->explain);
          continue;
        }
      pod_collective_query (job, row->payload_bytes, &query);
      query.algorithm = NULL;
      plans = row->plan->protocol != NULL ? pod_collective_plan_table (&query, NULL)
                                          : list_by_name (&query);
      for (guint k = 0; plans != NULL && k < plans->len; k++)
        print_plan (job, row, g_ptr_array_index (plans, k));
      print_busiest (job, row);
    }
}
