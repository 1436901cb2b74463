#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/table.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "report/plot.h"
#include "report/report.h"
#include "search/auto-layout.h"
#include "search/shapes.h"

/* The same job on several machines. */

typedef struct
{
  char *json;
  char *plot;
  char *report;
  char *jobs;
  char **topologies;
  char **shapes;
} Options;

static void
options_clear (Options *options)
{
  g_free (options->json);
  g_free (options->plot);
  g_free (options->report);
  g_free (options->jobs);
  g_strfreev (options->topologies);
  g_strfreev (options->shapes);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Options, options_clear)

/* A machine and how the job runs on it. */
typedef struct
{
  char *topology;
  char *wraps;
  char *options; /* (nullable) what --layout auto chose */
  PodRow row;
  JsonObject *result; /* (nullable) the whole run */
} Entry;

static void
entry_clear (void *data)
{
  Entry *entry = data;

  g_free (entry->topology);
  g_free (entry->wraps);
  g_free (entry->options);
  if (entry->result != NULL)
    json_object_unref (entry->result);
}

/* The machines, in the order in which they are said. Returns: (transfer full) (nullable) */
static GPtrArray *
list_machines (const PodScenario *scenario, const Options *options, GError **error)
{
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func (g_free);

  for (unsigned i = 0; options->topologies != NULL && options->topologies[i] != NULL; i++)
    g_ptr_array_add (list, g_strdup (options->topologies[i]));
  for (unsigned i = 0; options->shapes != NULL && options->shapes[i] != NULL; i++)
    {
      g_autoptr (GPtrArray) shapes = pod_shapes_of (options->shapes[i], error);

      if (shapes == NULL)
        return NULL;
      for (guint s = 0; s < shapes->len; s++)
        g_ptr_array_add (list, g_strdup (g_ptr_array_index (shapes, s)));
    }
  if (list->len == 0 && scenario->topology != NULL) /* of the workload file */
    g_ptr_array_add (list, g_strdup (scenario->topology));
  if (list->len > 0)
    return g_steal_pointer (&list);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "which machines? --topology T, once for each, or --shapes CHIP:N, such as --shapes tpu-v5p:512");
  return NULL;
}

/* What does not fit or divide on one machine is its row. Returns false on other errors, and when interrupted (without an error). */
static bool
run_entry (const PodScenario *scenario, const PodSearchRequest *search, Entry *entry, GError **error)
{
  const PodRunRequest request = { .is_recording_none = true, .needs_no_advice = true, .is_interrupted = search->is_interrupted };
  g_autoptr (PodScenario) chosen = NULL;
  g_autoptr (PodRun) run = NULL;
  g_autoptr (GError) refusal = NULL;

  if (pod_layout_is_auto (scenario))
    {
      chosen = pod_layout_choose (scenario, search, &refusal);
      if (chosen == NULL && g_error_matches (refusal, POD_ERROR, POD_ERROR_INFEASIBLE))
        {
          entry->row.status = POD_ROW_REFUSED;
          g_strlcpy (entry->row.refusal, refusal->message, sizeof entry->row.refusal);
          return true;
        }
      if (chosen == NULL)
        {
          if (refusal != NULL)
            g_propagate_error (error, g_steal_pointer (&refusal));
          return false;
        }
      entry->options = g_strdup (chosen->framework_note);
    }
  if (!pod_row_run (chosen != NULL ? chosen : scenario, &request, &entry->row, &run, error))
    return false;
  if (run != NULL)
    entry->result = json_object_ref (run->result);
  return true;
}

static bool
run_machines (const PodScenario *scenario, GPtrArray *machines, PodSearchRequest *search, GArray *entries, GError **error)
{
  for (guint m = 0; m < machines->len; m++)
    {
      g_autoptr (PodScenario) one = pod_scenario_copy (scenario);
      g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
      g_autoptr (PodTopology) topology = NULL;
      Entry entry = { .topology = g_strdup (g_ptr_array_index (machines, m)) };
      bool is_good;

      g_free (one->topology);
      one->topology = g_strdup (entry.topology);
      topology = pod_scenario_topology (one, notes, error);
      entry.wraps = topology != NULL ? pod_shape_wraps (topology) : g_strdup ("-");
      is_good = topology != NULL && run_entry (one, search, &entry, error);
      if (topology != NULL && entry.row.chips == 0)
        entry.row.chips = topology->n_chips;
      g_array_append_val (entries, entry);
      if (!is_good)
        return false;
    }
  return true;
}

/* The entry with the shortest step that fits, UINT_MAX when none does. */
static guint
find_best (const GArray *entries)
{
  guint best = UINT_MAX;

  for (guint i = 0; i < entries->len; i++)
    {
      const PodRow *row = &g_array_index (entries, Entry, i).row;

      if (row->status == POD_ROW_FITS && (best == UINT_MAX || row->time_ps < g_array_index (entries, Entry, best).row.time_ps))
        best = i;
    }
  return best;
}

/* "tp 12.3 ms, fsdp 4.1 ms": the longest first is not sought, axes have an order. */
static char *
exposed_text (const PodRow *row)
{
  GString *text = g_string_new (NULL);

  for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
    if (row->exposed_ps[a] > 0)
      {
        g_autofree char *time = pod_format_seconds ((double) row->exposed_ps[a] / 1e12);

        g_string_append_printf (text, "%s%s %s", text->len > 0 ? ", " : "", pod_axis_name (a), time);
      }
  return g_string_free (text, FALSE);
}

static char *
money (double usd)
{
  return usd >= 0 ? g_strdup_printf (usd < 10 ? "%.3f" : "%.2f", usd) : g_strdup ("-");
}

static void
add_row (PodTable *table, const Entry *entry, bool is_best)
{
  const PodRow *row = &entry->row;
  g_autofree char *name = g_strdup_printf ("%s%s", entry->topology, is_best ? " *" : "");
  g_autofree char *chips = g_strdup_printf ("%u", row->chips);
  g_autofree char *time = pod_format_seconds ((double) row->time_ps / 1e12);
  g_autofree char *mfu = g_strdup_printf ("%.1f %%", 100 * row->mfu);
  g_autofree char *memory = pod_format_bytes (pod_row_bytes (row), false);
  g_autofree char *exposed = exposed_text (row);
  g_autofree char *step = money (row->usd_per_step);
  g_autofree char *training = money (row->train_usd);

  if (row->time_ps == 0)
    pod_table_add_row (table, (const char *const[]){ name, chips, entry->wraps, "-", "-", "-", "-", "-", "-", row->refusal });
  else
    pod_table_add_row (table, (const char *const[]){ name, chips, entry->wraps, time, mfu, memory, step, training, exposed,
                                                     row->status == POD_ROW_TOO_LARGE ? "does not fit in memory" : row->layout });
}

static void
print_entries (const GArray *entries, guint best)
{
  g_autoptr (PodTable) table
      = pod_table_new ((const char *const[]){ "machine", ">chips", "wraps", ">time", ">MFU", ">memory", ">$/step", ">$/run", "exposed", "layout", NULL });
  g_autofree char *text = NULL;

  for (guint i = 0; i < entries->len; i++)
    add_row (table, &g_array_index (entries, Entry, i), i == best);
  text = pod_table_to_text (table);
  fputs (text, stdout);
}

/* CLI keys: rows[] with topology, layout, step, memory, as the run has them. */
static JsonObject *
to_json (const GArray *entries, guint best)
{
  static const char *const members[] = { "layout", "map", "options", "step", "memory", "train", "assumptions", "warnings", NULL };
  JsonObject *object = json_object_new ();
  JsonArray *rows;

  pod_result_set_int (object, "schema_version", 1);
  if (best != UINT_MAX)
    pod_result_set_string (object, "best", g_array_index (entries, Entry, best).topology);
  rows = pod_result_get_array (object, "rows");
  for (guint i = 0; i < entries->len; i++)
    {
      const Entry *entry = &g_array_index (entries, Entry, i);
      JsonObject *row = json_object_new ();

      pod_result_set_string (row, "topology", entry->topology);
      pod_result_set_int (row, "chips", entry->row.chips);
      pod_result_set_string (row, "wraps", entry->wraps);
      pod_result_set_string (row, "status", pod_row_status_names[entry->row.status]);
      if (entry->row.time_ps == 0)
        pod_result_set_string (row, "reason", entry->row.refusal);
      for (unsigned m = 0; entry->result != NULL && members[m] != NULL; m++)
        if (json_object_has_member (entry->result, members[m]))
          json_object_set_member (row, members[m], json_node_copy (json_object_get_member (entry->result, members[m])));
      if (entry->row.usd_per_step >= 0 && entry->row.time_ps > 0)
        pod_result_set_double (row, "cost.usd_per_step", entry->row.usd_per_step);
      json_array_add_object_element (rows, row);
    }
  return object;
}

/* Their title: "llama3-70b on 12 machines". */
static bool
write_outputs (const PodScenario *scenario, const GArray *entries, guint best, const Options *options, GError **error)
{
  g_autoptr (JsonObject) object = to_json (entries, best);
  g_autofree char *title = g_strdup_printf ("%s on %u machines", scenario->model != NULL ? scenario->model : "one job", entries->len);

  if (options->plot != NULL && !pod_report_has_gnuplot ())
    fprintf (stderr, "podsim: gnuplot is not installed: %s gets data and script, no picture\n", options->plot);
  return (options->plot == NULL || pod_report_compare_plot (object, title, options->plot, error))
         && (options->report == NULL || pod_report_html_compare (object, title, options->report, error))
         && (options->json == NULL || pod_cli_write_json (object, options->json, error));
}

static int
compare (const PodScenario *scenario, GPtrArray *machines, PodSearchRequest *search, const Options *options)
{
  g_autoptr (GArray) entries = g_array_new (FALSE, FALSE, sizeof (Entry));
  g_autoptr (GError) error = NULL;
  guint best;

  g_array_set_clear_func (entries, entry_clear);
  search->is_interrupted = pod_cli_catch_interrupt ();
  if (!run_machines (scenario, machines, search, entries, &error))
    {
      if (error == NULL)
        g_set_error (&error, POD_ERROR, POD_ERROR_IO, "interrupted");
      return pod_cli_fail (error);
    }
  pod_cli_release_interrupt ();
  best = find_best (entries);
  if (g_strcmp0 (options->json, "-") != 0)
    print_entries (entries, best);
  if (!write_outputs (scenario, entries, best, options, &error))
    return pod_cli_fail (error);
  return best != UINT_MAX ? 0 : 3;
}

/* All options of the job but the machine, which is said more than once. */
static GPtrArray *
option_names (void)
{
  GPtrArray *names = g_ptr_array_new ();

  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    if (strcmp (option->name, "topology") != 0)
      g_ptr_array_add (names, (char *) option->name);
  g_ptr_array_add (names, NULL);
  return names;
}

int
pod_cmd_compare (int argc, char **argv)
{
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GPtrArray) names = option_names ();
  g_autoptr (GPtrArray) machines = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (Options) options = { 0 };
  const GOptionEntry entries[] = {
    { "topology", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.topologies, "a machine: a file, a name in topologies/, or CHIP:SHAPE; once for each", "T" },
    { "shapes", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.shapes, "every machine of N chips: slices, twisted too, or nodes (tpu-v5p:512); may be repeated", "CHIP:N" },
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &options.json, "rows[] as JSON (- is stdout)", "FILE" },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME, &options.plot, "picture of the steps, a bar for each machine, with data and gnuplot script", "DIR" },
    { "report", 0, 0, G_OPTION_ARG_FILENAME, &options.report, "all of it as one HTML page", "FILE" },
    { "jobs", 0, 0, G_OPTION_ARG_FILENAME, &options.jobs, "threads of --layout auto (as many as processors)", "N" },
    { .long_name = NULL },
  };
  g_autoptr (GOptionContext) context = g_option_context_new ("- the same job on several machines");
  PodSearchRequest search = { .n_top = 1 };
  int status;

  g_option_context_add_group (context, pod_cli_scenario_group (scenario, (const char *const *) names->pdata));
  if (!pod_cli_parse (context, entries, &argc, &argv, 0, &status))
    return status;
  if (!pod_cli_parse_jobs (options.jobs, g_get_num_processors (), &search.n_jobs, &error) || !pod_scenario_load_workload (scenario, &error) || !pod_scenario_apply_framework (scenario, &error))
    return pod_cli_fail (error);
  machines = list_machines (scenario, &options, &error);
  if (machines == NULL)
    return pod_cli_fail (error);
  if (scenario->layout == NULL && scenario->mesh->len == 0)
    scenario->layout = g_strdup ("auto");
  return compare (scenario, machines, &search, &options);
}
