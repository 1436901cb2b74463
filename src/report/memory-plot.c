#include "report/html-page.h"
#include "report/plot.h"
#include "report/report-private.h"

#include "base/units.h"

/* Memory over the step, a curve for each recorded rank, under the line of the capacity. */

enum
{
  MAX_POINTS = 20000, /* of a curve */
  MAX_CURVES = 16,
};

/* Samples of one rank thinned to a time grid: of each cell the lowest and the highest stay, in
 * order. */
typedef struct
{
  GString *data;
  double cell_ps;
  int64_t cell;
  const PodCounterSample *low;
  const PodCounterSample *high;
  const PodCounterSample *last;
} Thinner;

static void
append_sample (GString *data, const PodCounterSample *sample)
{
  g_autofree char *at = pod_format_double ((double) sample->at_ps / 1e12);
  g_autofree char *bytes = pod_format_double (sample->value);

  g_string_append_printf (data, "%s\t%s\n", at, bytes);
}

static void
flush_cell (Thinner *thinner)
{
  const PodCounterSample *kept[] = { thinner->low, thinner->high, thinner->last };

  if (thinner->low == NULL)
    return;
  if (kept[0] > kept[1])
    {
      kept[0] = thinner->high;
      kept[1] = thinner->low;
    }
  append_sample (thinner->data, kept[0]);
  if (kept[1] != kept[0])
    append_sample (thinner->data, kept[1]);
  if (kept[2] != kept[1])
    append_sample (thinner->data, kept[2]);
  thinner->low = NULL;
}

static void
take_sample (Thinner *thinner, const PodCounterSample *sample)
{
  const int64_t cell = (int64_t) ((double) sample->at_ps / thinner->cell_ps);

  if (thinner->low != NULL && cell != thinner->cell)
    flush_cell (thinner);
  thinner->cell = cell;
  if (thinner->low == NULL)
    thinner->low = thinner->high = sample;
  if (sample->value < thinner->low->value)
    thinner->low = sample;
  if (sample->value > thinner->high->value)
    thinner->high = sample;
  thinner->last = sample;
}

bool
pod_report_memory_series (const PodTimeline *timeline, uint32_t *out)
{
  for (guint i = 0; i < timeline->series_names->len; i++)
    if (g_str_has_prefix (g_ptr_array_index (timeline->series_names, i), "memory"))
      {
        *out = i;
        return true;
      }
  return false;
}

/* A block of the data file: gnuplot's `index`. */
static void
append_curve (GString *data, const PodTimeline *timeline, uint32_t series, guint rank_index)
{
  const PodTimelineRank *rank = &g_array_index (timeline->ranks, PodTimelineRank, rank_index);
  Thinner thinner = { .data = data };

  thinner.cell_ps = MAX (1, (double) timeline->end_ps / (MAX_POINTS / 3 - 1));
  g_string_append_printf (data, "%s# %s\n# at_s\tbytes\n", rank_index > 0 ? "\n\n" : "",
                          rank->name);
  for (guint i = 0; i < timeline->counters->len; i++)
    {
      const PodCounterSample *sample = &g_array_index (timeline->counters, PodCounterSample, i);

      if (sample->series == series && sample->rank_index == rank_index)
        take_sample (&thinner, sample);
    }
  /* A block without a line would not count as one */
  const PodCounterSample end
      = { .at_ps = timeline->end_ps, .value = thinner.last != NULL ? thinner.last->value : 0 };
  flush_cell (&thinner);
  append_sample (data, &end);
}

static double
peak_of (const PodTimeline *timeline, uint32_t series, guint rank_index)
{
  double peak = 0;

  for (guint i = 0; i < timeline->counters->len; i++)
    {
      const PodCounterSample *sample = &g_array_index (timeline->counters, PodCounterSample, i);

      if (sample->series == series && sample->rank_index == rank_index)
        peak = MAX (peak, sample->value);
    }
  return peak;
}

/* Stroke of curve @i: the colours solid, and then again dashed. */
static void
append_stroke (GString *script, unsigned i)
{
  g_string_append_printf (script, "lw 1.5 dt %u lc rgb '%s'", 1 + i / POD_N_COLOURS,
                          pod_report_colour (i));
}

static void
append_line (GString *script, double bytes, const char *stroke, const char *what)
{
  g_autofree char *height = pod_format_double (bytes / 1e9);
  g_autofree char *size = pod_format_bytes (bytes, false);

  g_string_append_printf (script, "%s with lines %s lc rgb '#000000' title '%s, %s'", height,
                          stroke, what, size);
}

static void
append_curves (GString *script, JsonObject *result, const PodTimeline *timeline, uint32_t series,
               unsigned n_curves)
{
  const double end_s = (double) timeline->end_ps / 1e12;
  const PodReportUnit unit = pod_report_time_unit (end_s);
  const double capacity = pod_report_number (result, "memory.capacity_bytes");
  const double reserved = pod_report_number (result, "memory.reserved_bytes");
  g_autofree char *scale = pod_format_double (1 / unit.size);
  g_autofree char *right = pod_format_double (end_s > 0 ? end_s / unit.size : 1);

  g_string_append_printf (script, "set xlabel 'time (%s)'\nset xrange [0:%s]\nplot ", unit.name, right);
  for (unsigned i = 0; i < n_curves; i++)
    {
      g_autofree char *peak = pod_format_bytes (peak_of (timeline, series, i), false);
      g_autofree char *name = g_strdup_printf (
          "%s, peak %s", g_array_index (timeline->ranks, PodTimelineRank, i).name, peak);
      g_autofree char *title = pod_report_quoted (name);

      g_string_append_printf (script, "'memory.tsv' index %u using ($1*%s):($2/1e9) with steps ", i,
                              scale);
      append_stroke (script, i);
      g_string_append_printf (script, " title %s, \\\n     ", title);
    }
  if (reserved > 0)
    {
      append_line (script, capacity - reserved, "lw 1 dt 2", "less what the driver reserves");
      g_string_append (script, ", \\\n     ");
    }
  append_line (script, capacity, "lw 2", "capacity");
  g_string_append_c (script, '\n');
}

static const char script_text[] = "set border 3\n"
                                  "set grid back lt 1 lc rgb '#e6e6e6'\n"
                                  "set key above horizontal Left reverse\n"
                                  "set ylabel 'memory of a device (GB)'\n"
                                  "set yrange [0:*]\n";

bool
pod_report_memory_plot (JsonObject *result, const PodTimeline *timeline, const char *folder,
                        GError **error)
{
  g_autoptr (GString) data = g_string_new (NULL);
  g_autoptr (GString) script = g_string_new (NULL);
  g_autofree char *title = pod_report_title (result);
  uint32_t series = 0;
  const unsigned n_curves
      = pod_report_memory_series (timeline, &series) ? MIN (timeline->ranks->len, MAX_CURVES) : 0;

  for (guint r = 0; r < n_curves; r++)
    append_curve (data, timeline, series, r);
  g_string_append (script, script_text);
  pod_report_append_title (script, title, "memory over the step", "");
  append_curves (script, result, timeline, series, n_curves);
  return pod_report_plot (
      &(PodPlot){ "memory", 1000, 440 + 20 * ((n_curves + 3) / 2), data->str, script->str }, folder,
      error);
}
