#include "report/compare-private.h"

#include "base/units.h"
#include "report/plot.h"

/* A bar for each machine, its step's terms end to end. */

typedef struct
{
  GString *data;
  GString *ticks;
  unsigned n_bars;
  double longest_s;
  bool is_used[POD_N_COMPARE_TERMS];
} Bars;

static void
add_bar (Bars *bars, JsonObject *row)
{
  double seconds[POD_N_COMPARE_TERMS];
  double start_s = 0;
  g_autofree char *name = pod_report_quoted (pod_report_string_or (row, "topology", "?"));

  pod_compare_terms (row, seconds);
  g_string_append_printf (bars->ticks, "%s%s %u", bars->n_bars > 0 ? ", " : "", name, bars->n_bars);
  for (unsigned t = 0; t < POD_N_COMPARE_TERMS; t++)
    {
      g_autofree char *start = pod_format_double (start_s);
      g_autofree char *time = pod_format_double (seconds[t]);

      if (seconds[t] <= 0)
        continue;
      g_string_append_printf (bars->data, "%u\t%s\t%s\t%s\t%s\t0x%s\n", bars->n_bars,
                              pod_report_string_or (row, "topology", "?"),
                              pod_compare_term_name (t), start, time,
                              pod_compare_term_colour (t) + 1);
      bars->is_used[t] = true;
      start_s += seconds[t];
    }
  bars->longest_s = MAX (bars->longest_s, start_s);
  bars->n_bars++;
}

/* Returns: (transfer full) */
static char *
make_script (const Bars *bars, const char *title)
{
  const PodReportUnit unit = pod_report_time_unit (bars->longest_s);
  g_autofree char *scale = pod_format_double (1 / unit.size);
  GString *script = g_string_new ("set style fill solid 1.0 noborder\nset border 1\n"
                                  "set ytics nomirror scale 0\n"
                                  "set grid xtics back lt 1 lc rgb '#e6e6e6'\n"
                                  "set key above horizontal samplen 1.5\n");

  pod_report_append_title (script, title, "step time by machine", "");
  g_string_append_printf (script, "set ytics (%s)\nset xlabel 'time (%s)'\nset xrange [0:*]\n",
                          bars->ticks->str, unit.name);
  g_string_append_printf (script, "set yrange [%u.6:-0.6]\n", bars->n_bars - 1);
  g_string_append_printf (
      script,
      "plot 'compare.tsv' skip 1 using ($4*%s):1:($4*%s):(($4+$5)*%s):($1-0.36):($1+0.36):6 "
      "with boxxyerror lc rgb variable notitle",
      scale, scale, scale);
  for (unsigned t = 0; t < POD_N_COMPARE_TERMS; t++)
    if (bars->is_used[t])
      g_string_append_printf (script, ", \\\n     NaN with boxes lc rgb '%s' title '%s'",
                              pod_compare_term_colour (t), pod_compare_term_name (t));
  g_string_append_c (script, '\n');
  return g_string_free (script, FALSE);
}

bool
pod_report_compare_plot (JsonObject *result, const char *title, const char *folder, GError **error)
{
  g_return_val_if_fail (result != NULL && title != NULL && folder != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  g_autoptr (GString) data = g_string_new ("row\tmachine\tterm\tstart_s\ttime_s\tcolour\n");
  g_autoptr (GString) ticks = g_string_new (NULL);
  g_autofree char *script = NULL;
  Bars bars = { .data = data, .ticks = ticks };
  JsonArray *rows = pod_report_array (result, "rows");

  for (guint i = 0; rows != NULL && i < json_array_get_length (rows); i++)
    if (pod_compare_has_step (json_array_get_object_element (rows, i)))
      add_bar (&bars, json_array_get_object_element (rows, i));
  if (bars.n_bars == 0)
    return true; /* the job ran nowhere: nothing to draw */
  script = make_script (&bars, title);
  return pod_report_plot (&(PodPlot){ "compare", 1000, 190 + 40 * bars.n_bars, data->str, script },
                          folder, error);
}
