#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "report/plot.h"
#include "report/report.h"
#include "search/auto-layout.h"
#include "trace/trace.h"

/* What the command is to write. */
typedef struct
{
  char *json;
  char *trace;
  char *trace_ranks;
  char *plot;
  char *report;
  char *dump_program;
  int what_if;
  int explain;
  int timings;
} Outputs;

static void
outputs_clear (Outputs *outputs)
{
  g_free (outputs->json);
  g_free (outputs->trace);
  g_free (outputs->trace_ranks);
  g_free (outputs->plot);
  g_free (outputs->report);
  g_free (outputs->dump_program);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Outputs, outputs_clear)

/* "classes" (default), "all", or a list of ranks. */
static bool
parse_trace_ranks (const char *text, PodRunRequest *request, GArray *ranks, GError **error)
{
  g_auto (GStrv) words = NULL;

  if (text == NULL || strcmp (text, "classes") == 0)
    return true;
  if (strcmp (text, "all") == 0)
    {
      request->is_recording_all = true;
      return true;
    }
  words = g_strsplit (text, ",", -1);
  if (words[0] == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--trace-ranks: all, classes, or a list of ranks: is empty");
      return false;
    }
  for (unsigned i = 0; words[i] != NULL; i++)
    {
      uint64_t rank;
      uint32_t narrow;

      if (!pod_parse_whole (words[i], POD_UNIT_COUNT, &rank, error))
        {
          g_prefix_error (error, "--trace-ranks: all, classes, or a list of ranks: ");
          return false;
        }
      narrow = (uint32_t) MIN (rank, UINT32_MAX);
      g_array_append_val (ranks, narrow);
    }
  request->record = (const uint32_t *) ranks->data;
  request->n_record = ranks->len;
  return true;
}

static bool
write_trace (const PodRun *run, const char *file, GError **error)
{
  PodTraceRequest request = { .file = file, .metadata = json_object_new () };
  uint64_t n_left_out = 0;
  bool is_written;

  pod_result_set_string (request.metadata, "topology", run->topology->name);
  pod_result_set_string (request.metadata, "model", run->model->name);
  pod_result_set_string (request.metadata, "layout", json_object_get_string_member (run->result, "layout"));
  pod_result_set_string (request.metadata, "fidelity", pod_fidelity_name (run->fidelity));
  is_written = pod_trace_write (run->exec->timeline, &request, &n_left_out, error);
  json_object_unref (request.metadata);
  if (is_written && n_left_out > 0)
    fprintf (stderr, "podsim: %s: %" G_GUINT64_FORMAT " events of other ranks left out (--trace-ranks)\n", file, n_left_out);
  return is_written;
}

/* What was done until SIGINT is written under a name that says so. */
static int
keep_partial (const PodRun *run, const Outputs *outputs)
{
  g_autofree char *name = outputs->trace != NULL ? pod_output_partial_name (outputs->trace) : NULL;
  g_autofree char *at = pod_format_seconds ((double) run->exec->time_ps / 1e12);
  g_autoptr (GError) error = NULL;

  if (name != NULL && !write_trace (run, name, &error))
    return pod_cli_fail (error);
  fprintf (stderr, "podsim: interrupted at %s of the step%s%s\n", at, name != NULL ? ": timeline so far in " : "", name != NULL ? name : "");
  return 1;
}

static bool
write_outputs (const PodRun *run, const Outputs *outputs, GError **error)
{
  if (outputs->dump_program != NULL && !pod_report_program (run->program, outputs->dump_program, error))
    return false;
  if (outputs->trace != NULL && !write_trace (run, outputs->trace, error))
    return false;
  if (outputs->plot != NULL && !pod_report_has_gnuplot ())
    fprintf (stderr, "podsim: gnuplot is not installed: %s gets data and scripts, no pictures but timeline.svg\n", outputs->plot);
  if (outputs->plot != NULL && !pod_report_plots (run->result, run->exec->timeline, outputs->plot, error))
    return false;
  if (outputs->report != NULL && !pod_report_html_step (run->result, run->exec, outputs->report, error))
    return false;
  return outputs->json == NULL || pod_cli_write_json (run->result, outputs->json, error);
}

static void
print_run (const PodRun *run, bool is_explained)
{
  g_autofree char *summary = pod_report_step (run->result);
  g_autofree char *explain = is_explained ? pod_report_explain (run->exec) : NULL;
  g_autofree char *shardings = is_explained && run->shardings != NULL ? pod_mesh_shardings_explain (run->shardings, run->model) : NULL;

  fputs (summary, stdout);
  if (shardings != NULL)
    fputs (shardings, stdout);
  if (explain != NULL)
    fputs (explain, stdout);
}

/* What the program itself took: apart, because it differs from run to run. */
static void
add_timings (const PodRun *run, double wall_s)
{
  pod_result_set_double (run->result, "sim.wall_s", wall_s);
  pod_result_set_int (run->result, "sim.events", (int64_t) run->exec->n_events);
  pod_result_set_double (run->result, "sim.events_per_s", (double) run->exec->n_events / wall_s);
  pod_result_set_int (run->result, "sim.classes", run->exec->n_represented);
  pod_result_set_int (run->result, "sim.link_classes", run->exec->n_link_classes);
  fprintf (stderr, "podsim: %.3f s, %" G_GUINT64_FORMAT " events, %u classes of ranks, %u of links\n", wall_s, run->exec->n_events, run->exec->n_represented,
           run->exec->n_link_classes);
}

/* --layout auto: the scenario becomes that of its best layout. */
static bool
choose_layout (PodScenario **scenario, const volatile sig_atomic_t *is_interrupted, GError **error)
{
  const PodSearchRequest search = { .n_jobs = g_get_num_processors (), .is_interrupted = is_interrupted };
  PodScenario *chosen = pod_layout_choose (*scenario, &search, error);

  if (chosen == NULL)
    {
      if (error != NULL && *error == NULL)
        g_set_error (error, POD_ERROR, POD_ERROR_IO, "interrupted before a layout was chosen");
      return false;
    }
  pod_scenario_free (*scenario);
  *scenario = chosen;
  return true;
}

int
pod_cmd_run (int argc, char **argv)
{
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GArray) ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autoptr (GError) error = NULL;
  g_autoptr (PodRun) run = NULL;
  g_auto (Outputs) outputs = { 0 };
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &outputs.json, "every number as JSON (- is stdout)", "FILE" },
    { "trace", 0, 0, G_OPTION_ARG_FILENAME, &outputs.trace, "timeline as Chrome trace (.json) or Perfetto trace (.pftrace), either with .gz behind it", "FILE" },
    { "trace-ranks", 0, 0, G_OPTION_ARG_FILENAME, &outputs.trace_ranks, "ranks in the timeline: classes (default), all, or 0,8,16", "R" },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME, &outputs.plot, "pictures of breakdown, memory, timeline and pipeline, with data and gnuplot script", "DIR" },
    { "report", 0, 0, G_OPTION_ARG_FILENAME, &outputs.report, "all of it as one HTML page, timeline included", "FILE" },
    { "what-if", 0, 0, G_OPTION_ARG_NONE, &outputs.what_if, "the step again with faster chips, links, no latency: what gains most", NULL },
    { "dump-program", 0, 0, G_OPTION_ARG_FILENAME, &outputs.dump_program, "the expanded program as JSON lines", "FILE" },
    { "explain", 0, 0, G_OPTION_ARG_NONE, &outputs.explain, "which kernels and collectives take the time, and why", NULL },
    { "timings", 0, 0, G_OPTION_ARG_NONE, &outputs.timings, "also how long the program itself took (sim.* in JSON)", NULL },
    { .long_name = NULL },
  };
  g_autoptr (GOptionContext) context = g_option_context_new ("- one training step");
  PodRunRequest request = { 0 };
  const int64_t begin_us = g_get_monotonic_time ();
  int status;

  g_option_context_add_group (context, pod_cli_scenario_group (scenario, NULL));
  if (!pod_cli_parse (context, entries, &argc, &argv, 0, &status))
    return status;
  if (outputs.trace != NULL && !pod_trace_check_name (outputs.trace, &error))
    {
      g_prefix_error (&error, "--trace: ");
      return pod_cli_fail (error);
    }
  if (!pod_scenario_load_workload (scenario, &error) || !pod_scenario_apply_framework (scenario, &error) || !parse_trace_ranks (outputs.trace_ranks, &request, ranks, &error))
    return pod_cli_fail (error);
  request.is_interrupted = pod_cli_catch_interrupt ();
  request.is_recording_none = outputs.trace == NULL && outputs.plot == NULL && outputs.report == NULL && g_getenv ("POD_CHECK") == NULL;
  if (pod_layout_is_auto (scenario) && !choose_layout (&scenario, request.is_interrupted, &error))
    return pod_cli_fail (error);
  run = pod_scenario_run (scenario, &request, &error);
  if (run != NULL && !run->exec->is_partial && (outputs.what_if || outputs.report != NULL))
    pod_run_what_if (scenario, &request, run, outputs.what_if);
  pod_cli_release_interrupt ();
  if (run == NULL)
    return pod_cli_fail (error);
  if (run->exec->is_partial)
    return keep_partial (run, &outputs);
  if (outputs.timings)
    add_timings (run, (double) (g_get_monotonic_time () - begin_us) / 1e6);
  if (g_strcmp0 (outputs.json, "-") != 0)
    print_run (run, outputs.explain);
  if (!write_outputs (run, &outputs, &error))
    return pod_cli_fail (error);
  return run->fits ? 0 : 3;
}
