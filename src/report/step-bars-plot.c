#include "report/compare-private.h"

#include <string.h>

#include "base/units.h"
#include "report/plot.h"

/* A bar for each step, its terms end to end. */

enum
{
  BARS_WIDTH = 600, /* px, with what is written at their ends */
  KEY_WIDTH = 200,
  LETTER_WIDTH = 8,
};

typedef struct
{
  GString *data;
  GString *ticks;
  GString *ends; /* "set label" for each bar */
  unsigned n_bars;
  unsigned n_used; /* terms */
  double longest_s;
  size_t longest_label; /* letters */
  size_t longest_value;
  bool is_used[POD_N_COMPARE_TERMS];
} Bars;

static void
add_bar (Bars *bars, JsonObject *row, const char *label)
{
  double seconds[POD_N_COMPARE_TERMS];
  double start_s = 0;
  g_autofree char *name = pod_report_quoted (label);

  pod_compare_terms (row, seconds);
  g_string_append_printf (bars->ticks, "%s%s %u", bars->n_bars > 0 ? ", " : "", name, bars->n_bars);
  for (unsigned t = 0; t < POD_N_COMPARE_TERMS; t++)
    {
      g_autofree char *start = pod_format_double (start_s);
      g_autofree char *time = pod_format_double (seconds[t]);

      if (seconds[t] <= 0)
        continue;
      g_string_append_printf (bars->data, "%u\t%s\t%s\t%s\t%s\t0x%s\n", bars->n_bars, label,
                              pod_compare_term_name (t), start, time,
                              pod_compare_term_colour (t) + 1);
      bars->n_used += !bars->is_used[t];
      bars->is_used[t] = true;
      start_s += seconds[t];
    }
  bars->longest_s = MAX (bars->longest_s, start_s);
  bars->longest_label = MAX (bars->longest_label, strlen (label));
  bars->n_bars++;
}

/* What is written at the ends of the bars, once their unit is known. */
static void
add_ends (Bars *bars, const PodStepBars *plot, PodReportUnit unit)
{
  unsigned bar = 0;

  for (unsigned i = 0; i < plot->n_rows; i++)
    {
      JsonObject *row = json_array_get_object_element (plot->rows, i);
      g_autofree char *value = pod_report_quoted (plot->values[i]);
      g_autofree char *end = NULL;

      if (!pod_compare_has_step (row))
        continue;
      end = pod_format_double (pod_report_number (row, "step.time_s") / unit.size);
      g_string_append_printf (bars->ends, "set label %s at %s,%u left offset 0.7,0\n", value, end,
                              bar++);
      bars->longest_value = MAX (bars->longest_value, strlen (value));
    }
}

/* Returns: (transfer full) */
static char *
make_script (const Bars *bars, const PodStepBars *plot, PodReportUnit unit)
{
  g_autofree char *scale = pod_format_double (1 / unit.size);
  /* of the width, what the longest bar leaves to the words at its end */
  const double words_ratio = MIN (0.6, (double) (bars->longest_value + 1) * LETTER_WIDTH / BARS_WIDTH);
  g_autofree char *right = pod_format_double (bars->longest_s / unit.size / (1 - words_ratio));
  GString *script = g_string_new ("set style fill solid 1.0 noborder\nset border 1\n"
                                  "set ytics nomirror scale 0\n"
                                  "set grid xtics back lt 1 lc rgb '#e6e6e6'\n"
                                  "set key outside right top vertical Left reverse samplen 1.5\n");

  pod_report_append_title (script, plot->title, plot->words, "");
  g_string_append_printf (script, "set ytics (%s)\nset xlabel 'time (%s)'\nset xrange [0:%s]\n",
                          bars->ticks->str, unit.name, right);
  g_string_append_printf (script, "set yrange [%u.6:-0.6]\n%s", bars->n_bars - 1,
                          bars->ends->str);
  g_string_append_printf (
      script,
      "plot '%s.tsv' skip 1 using ($4*%s):1:($4*%s):(($4+$5)*%s):($1-0.36):($1+0.36):6 "
      "with boxxyerror lc rgb variable notitle",
      plot->name, scale, scale, scale);
  for (unsigned t = 0; t < POD_N_COMPARE_TERMS; t++)
    if (bars->is_used[t])
      g_string_append_printf (script, ", \\\n     NaN with boxes lc rgb '%s' title '%s'",
                              pod_compare_term_colour (t), pod_compare_term_name (t));
  g_string_append_c (script, '\n');
  return g_string_free (script, FALSE);
}

bool
pod_report_step_bars_plot (const PodStepBars *plot, const char *folder, GError **error)
{
  g_autoptr (GString) data = g_string_new (NULL);
  g_autoptr (GString) ticks = g_string_new (NULL);
  g_autoptr (GString) ends = g_string_new (NULL);
  g_autofree char *script = NULL;
  Bars bars = { .data = data, .ticks = ticks, .ends = ends };
  PodReportUnit unit;

  g_string_printf (data, "row\t%s\tterm\tstart_s\ttime_s\tcolour\n", plot->column);
  for (unsigned i = 0; i < plot->n_rows; i++)
    if (pod_compare_has_step (json_array_get_object_element (plot->rows, i)))
      add_bar (&bars, json_array_get_object_element (plot->rows, i), plot->labels[i]);
  if (bars.n_bars == 0)
    return true; /* the job ran nowhere: nothing to draw */
  unit = pod_report_time_unit (bars.longest_s);
  add_ends (&bars, plot, unit);
  script = make_script (&bars, plot, unit);
  return pod_report_plot (
      &(PodPlot){ plot->name,
                  (unsigned) (BARS_WIDTH + KEY_WIDTH + LETTER_WIDTH * bars.longest_label),
                  130 + MAX (40 * bars.n_bars, 20 * bars.n_used), data->str, script },
      folder, error);
}
