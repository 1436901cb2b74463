#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "base/table.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "report/plot.h"
#include "report/report.h"
#include "search/crew.h"
#include "search/search.h"

/* What the command line says beside the job. */
typedef struct
{
  char *json;
  char *plot;
  char *report;
  char *top;
  char *objective;
  char *max_memory;
  char *jobs;
  char *db;
  char **space;
  int pareto;
  int exhaustive;
  int timings;
} Options;

static void
options_clear (Options *options)
{
  g_free (options->json);
  g_free (options->plot);
  g_free (options->report);
  g_free (options->top);
  g_free (options->objective);
  g_free (options->max_memory);
  g_free (options->jobs);
  g_free (options->db);
  g_strfreev (options->space);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Options, options_clear)

bool
pod_cli_parse_jobs (const char *text, unsigned fallback, unsigned *out, GError **error)
{
  uint64_t jobs;

  *out = fallback;
  if (text == NULL)
    return true;
  if (pod_parse_whole (text, POD_UNIT_COUNT, &jobs, error))
    {
      if (jobs >= 1 && jobs <= 4096)
        {
          *out = (unsigned) jobs;
          return true;
        }
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "must be between 1 and 4096, got '%s'", text);
    }
  g_prefix_error (error, "--jobs: ");
  return false;
}

bool
pod_cli_parse_objective (const char *text, PodObjective fallback, PodObjective *out, GError **error)
{
  *out = fallback;
  for (unsigned i = 0; text != NULL && pod_objective_names[i] != NULL; i++)
    if (strcmp (text, pod_objective_names[i]) == 0)
      {
        *out = i;
        return true;
      }
  if (text == NULL)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--objective: unknown '%s'; known are time, cost, memory, comm", text);
  return false;
}

static bool
parse_top (const char *text, unsigned *out, GError **error)
{
  uint64_t top = 10;

  if (text != NULL && !pod_parse_whole (text, POD_UNIT_COUNT, &top, error))
    {
      g_prefix_error (error, "--top: ");
      return false;
    }
  if (top < 1 || top > 100000)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--top: must be between 1 and 100000, got '%s'", text);
      return false;
    }
  *out = (unsigned) top;
  return true;
}

static bool
parse_max_memory (const char *text, double *out, GError **error)
{
  if (text == NULL)
    return true;
  if (pod_parse_quantity (text, POD_UNIT_BYTES, out, error) && *out > 0)
    return true;
  if (error != NULL && *error == NULL)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "must be above 0");
  g_prefix_error (error, "--max-memory: ");
  return false;
}

static bool
parse_request (const Options *options, PodSearchRequest *request, GError **error)
{
  request->has_fronts = options->pareto != 0 || options->plot != NULL || options->report != NULL;
  request->is_exhaustive = options->exhaustive != 0;
  return pod_cli_parse_objective (options->objective, POD_OBJECTIVE_TIME, &request->objective, error) && parse_top (options->top, &request->n_top, error)
         && parse_max_memory (options->max_memory, &request->most_bytes, error) && pod_cli_parse_jobs (options->jobs, request->transport != NULL ? 1 : g_get_num_processors (), &request->n_jobs, error);
}

static void
show_progress (const PodSearchProgress *progress, void *data)
{
  g_autofree char *best = progress->best != NULL ? pod_format_seconds ((double) progress->best->time_ps / 1e12) : NULL;

  pod_progress_show (data, progress->is_screening ? "looked at" : "ran", progress->n_done, progress->n_done + progress->n_left, best);
}

/* -- the table ---- */

static void
add_row (PodTable *table, unsigned rank, const PodSpace *space, const PodRow *row)
{
  g_autofree char *number = g_strdup_printf ("%u", rank);
  g_autofree char *time = pod_format_seconds ((double) row->time_ps / 1e12);
  g_autofree char *mfu = g_strdup_printf ("%.1f %%", 100 * row->mfu);
  g_autofree char *memory = pod_format_bytes (pod_row_bytes (row), false);
  g_autofree char *cost = row->usd_per_step >= 0 ? g_strdup_printf ("%.4g", row->usd_per_step) : g_strdup ("-");
  g_autofree char *words = pod_space_words (space, row->candidate);

  pod_table_add_row (table, (const char *const[]){ number, time, mfu, memory, cost, row->bound, words });
}

static void
print_rows (const char *title, const PodSpace *space, const GArray *rows)
{
  g_autoptr (PodTable) table = pod_table_new ((const char *const[]){ ">", ">time", ">MFU", ">memory", ">$/step", "bound", "options", NULL });
  g_autofree char *text = NULL;

  for (guint i = 0; i < rows->len; i++)
    add_row (table, i + 1, space, &g_array_index (rows, PodRow, i));
  text = pod_table_to_text (table);
  printf ("\n%s\n%s", title, text);
}

static void
print_families (const PodSearchResult *result)
{
  enum
  {
    MOST = 12,
  };

  if (result->families->len > 0)
    printf ("\nrefused\n");
  for (guint i = 0; i < MIN (result->families->len, MOST); i++)
    {
      const PodSearchFamily *family = g_ptr_array_index (result->families, i);
      g_autoptr (GString) values = g_string_new (NULL);

      for (guint v = 0; v < family->values->len; v++)
        g_string_append_printf (values, "%s%s", v == 0 ? ": " : ", ", (const char *) g_ptr_array_index (family->values, v));
      printf ("%9" G_GUINT64_FORMAT "  %s%s\n", family->n, family->reason, values->str);
    }
  if (result->families->len > MOST)
    printf ("           and %u more reasons (--json)\n", result->families->len - MOST);
}

static void
print_none (const PodSpace *space, const PodSearchResult *result)
{
  printf ("\nnone fits%s\n", result->is_partial ? " so far" : "");
  if (result->least_bytes > 0)
    {
      g_autofree char *least = pod_format_bytes (result->least_bytes, false);
      g_autofree char *most = pod_format_bytes (result->most_bytes, false);
      g_autofree char *words = pod_space_words (space, result->smallest);

      printf ("the smallest needs %s or more of %s: %s\n", least, most, words);
    }
}

static void
print_result (const PodSpace *space, const PodSearchRequest *request, const PodSearchResult *result)
{
  const PodTopology *topology = g_ptr_array_index (space->machines, 0);

  printf ("model      %s\nmachine    %s%s\n", space->model->name, topology->name, space->machines->len > 1 ? " and others" : "");
  printf ("space      %" G_GUINT64_FORMAT " candidates: %" G_GUINT64_FORMAT " refused, %" G_GUINT64_FORMAT " too large, %" G_GUINT64_FORMAT " beyond the best by their bounds, %" G_GUINT64_FORMAT
          " fit\n",
          result->n_candidates, result->n_refused, result->n_too_large, result->n_beyond, result->n_fitting);
  if (result->best->len > 0)
    {
      g_autofree char *title = g_strdup_printf ("best by %s%s", pod_objective_names[request->objective], result->is_partial ? ", so far" : "");

      print_rows (title, space, result->best);
    }
  else
    print_none (space, result);
  if (request->has_fronts && result->best->len > 0)
    {
      print_rows ("time against memory", space, result->time_memory);
      print_rows ("time against chips used", space, result->time_chips);
    }
  print_families (result);
}

/* An interrupted search writes under a name that says so. Returns: (transfer full) */
static char *
name_of (const char *name, const PodSearchResult *result)
{
  return result->is_partial && strcmp (name, "-") != 0 ? pod_output_partial_name (name) : g_strdup (name);
}

static bool
write_json (JsonObject *object, const PodSearchResult *result, const Options *options, double wall_s, GError **error)
{
  g_autofree char *name = name_of (options->json, result);

  if (options->timings)
    {
      pod_result_set_double (object, "sim.wall_s", wall_s);
      pod_result_set_int (object, "sim.runs", (int64_t) result->n_run);
      pod_result_set_int (object, "sim.found", (int64_t) result->n_found);
    }
  return pod_cli_write_json (object, name, error);
}

static bool
write_pictures (JsonObject *object, const char *title, const PodSearchResult *result, const Options *options, GError **error)
{
  g_autofree char *folder = name_of (options->plot, result);

  if (!pod_report_has_gnuplot ())
    fprintf (stderr, "podsim: gnuplot is not installed: %s gets data and script, no picture\n", folder);
  return pod_report_search_plots (object, title, folder, error);
}

static bool
write_page (JsonObject *object, const char *title, const PodSearchResult *result, const Options *options, GError **error)
{
  g_autofree char *file = name_of (options->report, result);

  return pod_report_html_search (object, title, file, error);
}

static bool
write_outputs (const PodSpace *space, const PodSearchRequest *request, const PodSearchResult *result, const Options *options, double wall_s, GError **error)
{
  const PodTopology *topology = g_ptr_array_index (space->machines, 0);
  g_autofree char *title = g_strdup_printf ("%s on %s%s", space->model->name, topology->name, space->machines->len > 1 ? " and others" : "");
  g_autoptr (JsonObject) object = NULL;

  if (options->json == NULL && options->plot == NULL && options->report == NULL)
    return true;
  object = pod_search_to_json (space, request, result);
  return (options->plot == NULL || write_pictures (object, title, result, options, error))
         && (options->report == NULL || write_page (object, title, result, options, error))
         && (options->json == NULL || write_json (object, result, options, wall_s, error));
}

static int
search (const PodScenario *scenario, PodSearchRequest *request, const Options *options)
{
  g_autoptr (GPtrArray) limits = g_ptr_array_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (PodSpace) space = NULL;
  g_autoptr (PodSearchResult) result = NULL;
  g_autoptr (PodDatabase) database = NULL;
  const int64_t begin_us = g_get_monotonic_time ();
  PodProgress progress;
  double wall_s;

  for (unsigned i = 0; options->space != NULL && options->space[i] != NULL; i++)
    g_ptr_array_add (limits, options->space[i]);
  space = pod_space_new (scenario, limits, &error);
  if (space == NULL)
    return pod_cli_fail (error);
  if (request->transport != NULL && request->transport->rank > 0)
    {
      pod_search_help (space, request->transport);
      return 0;
    }
  if (options->db != NULL)
    {
      database = pod_database_open (options->db, &error);
      if (database == NULL)
        {
          g_prefix_error (&error, "--db: ");
          return pod_cli_fail (error);
        }
    }
  request->database = database;
  pod_progress_init (&progress);
  request->progress = show_progress;
  request->progress_data = &progress;
  request->is_interrupted = pod_cli_catch_interrupt ();
  result = pod_search_run (space, request, &error);
  pod_cli_release_interrupt ();
  pod_progress_end (&progress);
  if (result == NULL)
    return pod_cli_fail (error);
  wall_s = (double) (g_get_monotonic_time () - begin_us) / 1e6;
  if (g_strcmp0 (options->json, "-") != 0)
    print_result (space, request, result);
  if (options->timings)
    fprintf (stderr, "podsim: %.3f s, %" G_GUINT64_FORMAT " candidates, %" G_GUINT64_FORMAT " of them run, %" G_GUINT64_FORMAT " found in the database, %" G_GUINT64_FORMAT " bounded by their programs\n",
             wall_s, result->n_candidates, result->n_run, result->n_found, result->n_bounded);
  if (!write_outputs (space, request, result, options, wall_s, &error))
    return pod_cli_fail (error);
  if (result->is_partial)
    {
      fprintf (stderr, "podsim: interrupted: the best so far of %" G_GUINT64_FORMAT " runs\n", result->n_run);
      return 1;
    }
  return result->best->len > 0 ? 0 : 3;
}

/* Ranks but 0 print nothing: what they would say, rank 0 says. */
static void
be_quiet (void)
{
  if (freopen ("/dev/null", "w", stdout) == NULL || freopen ("/dev/null", "w", stderr) == NULL)
    return;
}

static int
search_command (int argc, char **argv, const PodTransport *transport)
{
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;
  g_auto (Options) options = { 0 };
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &options.json, "best[], rejected[] and counts as JSON (- is stdout)", "FILE" },
    { "top", 0, 0, G_OPTION_ARG_FILENAME, &options.top, "how many of the best (10)", "K" },
    { "objective", 0, 0, G_OPTION_ARG_FILENAME, &options.objective, "what is least: time (default), cost, memory, comm", "O" },
    { "max-memory", 0, 0, G_OPTION_ARG_FILENAME, &options.max_memory, "the most memory of a device, peak and reserve (all of it)", "SIZE" },
    { "space", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.space, "limits a degree or varies an option: tp=1,2,4,8, pp=1:16:*2, recompute=none,full; may be repeated", "KEY=LIST" },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME, &options.plot, "pictures: the best as bars, and the fronts of --pareto, with data and gnuplot scripts", "DIR" },
    { "report", 0, 0, G_OPTION_ARG_FILENAME, &options.report, "all of it as one HTML page, with the fronts of --pareto", "FILE" },
    { "pareto", 0, 0, G_OPTION_ARG_NONE, &options.pareto, "also the fronts of time against memory and of time against chips", NULL },
    { "exhaustive", 0, 0, G_OPTION_ARG_NONE, &options.exhaustive, "run every candidate, whatever its bounds", NULL },
    { "jobs", 0, 0, G_OPTION_ARG_FILENAME, &options.jobs, "threads (as many as processors)", "N" },
    { "db", 0, 0, G_OPTION_ARG_FILENAME, &options.db, "a database that keeps every run; a search that was stopped goes on from it", "FILE" },
    { "timings", 0, 0, G_OPTION_ARG_NONE, &options.timings, "also how long the program itself took (sim.* in JSON)", NULL },
    { .long_name = NULL },
  };
  g_autoptr (GOptionContext) context = g_option_context_new ("- the best layouts of a model on a machine");
  PodSearchRequest request = { 0 };
  bool has_layout;
  int status;

  g_option_context_add_group (context, pod_cli_scenario_group (scenario, NULL));
  if (!pod_cli_parse (context, entries, &argc, &argv, 0, &status))
    return status;
  has_layout = scenario->layout != NULL && strcmp (scenario->layout, "auto") != 0;
  if (has_layout)
    return pod_cli_refuse ("--layout: is what the search finds; limit degrees by --space, such as --space tp=8");
  request.transport = transport;
  if (!parse_request (&options, &request, &error) || !pod_scenario_load_workload (scenario, &error) || !pod_scenario_apply_framework (scenario, &error))
    return pod_cli_fail (error);
  return search (scenario, &request, &options);
}

int
pod_cmd_search (int argc, char **argv)
{
  const PodTransport *transport;
  g_autoptr (GError) error = NULL;
  int status;

  if (!pod_transport_join (&transport, &error))
    return pod_cli_fail (error);
  if (transport == NULL)
    return search_command (argc, argv, NULL);
  if (transport->rank > 0)
    be_quiet ();
  status = search_command (argc, argv, transport);
  if (transport->rank == 0)
    pod_crew_dismiss (transport);
  transport->leave ();
  return transport->rank == 0 ? status : 0;
}
