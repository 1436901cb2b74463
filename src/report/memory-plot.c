#include "report/report-private.h"

#include "base/units.h"

/* Memory over the step, a curve for each recorded rank, under the line of the capacity. */

enum
{
  MAX_POINTS = 20000, /* of a curve */
  MAX_CURVES = 16,
};

/* Samples of one rank thinned to a time grid: of each cell the lowest and the highest stay, in order. */
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

static bool
find_series (const PodTimeline *timeline, uint32_t *out)
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
  g_string_append_printf (data, "%s# %s\n# at_s\tbytes\n", rank_index > 0 ? "\n\n" : "", rank->name);
  for (guint i = 0; i < timeline->counters->len; i++)
    {
      const PodCounterSample *sample = &g_array_index (timeline->counters, PodCounterSample, i);

      if (sample->series == series && sample->rank_index == rank_index)
        take_sample (&thinner, sample);
    }
  if (thinner.low == NULL)
    return;
  const PodCounterSample end = { .at_ps = timeline->end_ps, .value = thinner.last->value };
  flush_cell (&thinner);
  append_sample (data, &end);
}

static void
append_script (GString *script, JsonObject *result, const PodTimeline *timeline, unsigned n_curves)
{
  const double end_s = (double) timeline->end_ps / 1e12;
  const PodReportUnit unit = pod_report_time_unit (end_s);
  const double capacity = pod_report_number (result, "memory.capacity_bytes");
  g_autofree char *scale = pod_format_double (1 / unit.size);
  g_autofree char *right = pod_format_double (end_s / unit.size);
  g_autofree char *line = pod_format_double (capacity / 1e9);
  g_autofree char *usable = pod_format_double ((capacity - pod_report_number (result, "memory.reserved_bytes")) / 1e9);

  g_string_append_printf (script, "set xlabel '%s'\nset ylabel 'GB'\nset xrange [0:%s]\nset yrange [0:*]\n", unit.name, right);
  g_string_append (script, "plot ");
  for (unsigned i = 0; i < n_curves; i++)
    {
      const PodTimelineRank *rank = &g_array_index (timeline->ranks, PodTimelineRank, i);
      g_autofree char *name = pod_report_quoted (rank->name);

      g_string_append_printf (script, "'memory.tsv' index %u using ($1*%s):($2/1e9) with steps lw 2 title %s, \\\n     ", i, scale, name);
    }
  g_string_append_printf (script, "%s with lines lw 2 lc rgb '#d62728' title 'capacity', \\\n     %s with lines lw 1 dt 2 lc rgb '#d62728' title 'without the reserve'\n", line, usable);
}

bool
pod_report_memory_plot (JsonObject *result, const PodTimeline *timeline, const char *folder,
                        GError **error)
{
  const unsigned n_curves = MIN (timeline->ranks->len, MAX_CURVES);
  g_autoptr (GString) data = g_string_new (NULL);
  g_autoptr (GString) script = g_string_new (NULL);
  g_autofree char *title = pod_report_title (result);
  uint32_t series;

  if (find_series (timeline, &series))
    for (guint r = 0; r < n_curves; r++)
      append_curve (data, timeline, series, r);
  pod_report_append_terminal (script, 1000, 500);
  g_string_append (script, "set output 'memory.png'\nset datafile separator \"\\t\"\nset border 3\nset tics nomirror out\nset grid lc rgb '#dddddd'\nset key outside bottom center horizontal\n");
  pod_report_append_title (script, title, "memory over the step", "");
  append_script (script, result, timeline, n_curves);
  return pod_report_save (folder, "memory.tsv", data->str, error)
         && pod_report_save (folder, "memory.gnuplot", script->str, error);
}
