#include "report/html-page.h"
#include "report/plot.h"
#include "report/report-private.h"

#include "base/table.h"
#include "base/units.h"

/* A bar for each term of the step, the terms below each other from where the last one ended. */

typedef struct
{
  PodTable *table;
  int64_t start_ps;
  double step_s;
  unsigned n_rows;
} Bars;

static void
add_bar (Bars *bars, const char *name, int64_t time_ps, const char *colour_of)
{
  g_autofree char *colour = g_strconcat ("0x", pod_report_term_colour (colour_of) + 1, NULL);
  const double time_s = (double) time_ps / 1e12;
  g_autofree char *start = pod_format_double ((double) bars->start_ps / 1e12);
  g_autofree char *time = pod_format_double (time_s);
  g_autofree char *share = pod_format_double (bars->step_s > 0 ? time_s / bars->step_s : 0);
  g_autofree char *seconds = pod_format_seconds (time_s);
  g_autofree char *percent = pod_report_percent (bars->step_s > 0 ? time_s / bars->step_s : 0);
  g_autofree char *label
      = time_ps != 0 ? g_strdup_printf ("%s, %s", seconds, percent) : g_strdup ("0");

  pod_table_add_row (bars->table, (const char *const[]){ name, start, time, share, colour, label });
  bars->start_ps += time_ps;
  bars->n_rows++;
}

/* Compute without its named parts, then these. */
static void
add_compute (Bars *bars, JsonObject *result, int64_t compute_ps)
{
  int64_t optimizer_ps = 0;
  int64_t recompute_ps = 0;

  if (!pod_seconds_to_ps (pod_report_number (result, "step.optimizer_s"), &optimizer_ps)
      || !pod_seconds_to_ps (pod_report_number (result, "step.recompute_s"), &recompute_ps))
    optimizer_ps = recompute_ps = 0;
  add_bar (bars, "forward and backward", compute_ps - optimizer_ps - recompute_ps, "forward and backward");
  if (recompute_ps > 0)
    add_bar (bars, "recompute", recompute_ps, "recompute");
  if (optimizer_ps > 0)
    add_bar (bars, "optimizer", optimizer_ps, "optimizer");
}

static const char script_text[] = "set style fill solid 1.0 noborder\n"
                                  "set border 1\n"
                                                                    "set ytics nomirror scale 0\n"
                                  "set grid xtics back lt 1 lc rgb '#e6e6e6'\n"
                                  "unset key\n";

bool
pod_report_breakdown_plot (JsonObject *result, const char *folder, GError **error)
{
  const double step_s = (double) pod_report_time_ps (result) / 1e12;
  const PodReportUnit unit = pod_report_time_unit (step_s);
  g_autoptr (GArray) terms = pod_report_terms (result);
  g_autoptr (PodTable) table = pod_table_new (
      (const char *const[]){ "term", "start_s", "time_s", "share_ratio", "colour", "label", NULL });
  Bars bars = { .table = table, .step_s = step_s };
  g_autofree char *title = pod_report_title (result);
  g_autofree char *time = pod_format_seconds (step_s);
  g_autofree char *scale = pod_format_double (1 / unit.size);
  g_autofree char *right = pod_format_double (step_s > 0 ? step_s / unit.size * 1.25 : 1);
  g_autoptr (GString) script = g_string_new (NULL);
  g_autofree char *data = NULL;

  for (guint i = 0; i < terms->len; i++)
    {
      const PodReportTerm *term = &g_array_index (terms, PodReportTerm, i);

      if (i == 0)
        add_compute (&bars, result, term->time_ps);
      else
        add_bar (&bars, term->name, term->time_ps, term->axis != NULL ? term->axis : term->name);
    }
  data = pod_table_to_separated (table, '\t');
  g_string_append (script, script_text);
  pod_report_append_title (script, title, "one step: ", time);
  g_string_append_printf (script, "set xlabel 'time (%s)'\nset xrange [0:%s]\nset yrange [%u.5:-0.5]\n",
                          unit.name, right, bars.n_rows - 1);
  g_string_append_printf (script,
                          "plot 'breakdown.tsv' skip 1 using "
                          "($2*%s):0:($2*%s):(($2+$3)*%s):($0-0.36):($0+0.36):5:ytic(1) with "
                          "boxxyerror lc rgb variable, \\\n"
                          "     '' skip 1 using (($2+$3)*%s):0:6 with labels left offset 0.7,0\n",
                          scale, scale, scale, scale);
  return pod_report_plot (&(PodPlot){ "breakdown", 1000, 160 + 40 * bars.n_rows, data, script->str },
                          folder, error);
}
