#include "report/step-page-private.h"

#include "base/units.h"

/* Memory over the step, and what is held at the peak. */

enum
{
  MAX_CURVES = 8,
  MAX_CURVE_POINTS = 1500,
};

#define ROW(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* A curve being thinned: of each cell of time the highest sample stays. */
typedef struct
{
  GArray *x; /* double, in @x_size */
  GArray *y;
  double peak;
} Curve;

static void
curve_clear (void *data)
{
  g_array_unref (((Curve *) data)->x);
  g_array_unref (((Curve *) data)->y);
}

static void
curve_add (Curve *curve, double x, double y, double cell)
{
  double *last_x = curve->x->len > 1 ? &g_array_index (curve->x, double, curve->x->len - 1) : NULL;
  double *last_y = curve->x->len > 1 ? &g_array_index (curve->y, double, curve->y->len - 1) : NULL;

  curve->peak = MAX (curve->peak, y);
  if (last_x != NULL && (int64_t) (*last_x / cell) == (int64_t) (x / cell))
    {
      *last_y = MAX (*last_y, y);
      return;
    }
  g_array_append_val (curve->x, x);
  g_array_append_val (curve->y, y);
}

static GArray *
memory_curves (const PodTimeline *timeline, uint32_t series, double x_size, double y_size)
{
  const unsigned n_curves = MIN (timeline->ranks->len, MAX_CURVES);
  const double end = (double) timeline->end_ps / 1e12 / x_size;
  GArray *curves = g_array_new (FALSE, FALSE, sizeof (Curve));

  g_array_set_clear_func (curves, curve_clear);
  for (unsigned i = 0; i < n_curves; i++)
    {
      const Curve curve = { .x = g_array_new (FALSE, FALSE, sizeof (double)),
                            .y = g_array_new (FALSE, FALSE, sizeof (double)) };

      g_array_append_val (curves, curve);
    }
  for (guint i = 0; i < timeline->counters->len; i++)
    {
      const PodCounterSample *sample = &g_array_index (timeline->counters, PodCounterSample, i);

      if (sample->series == series && sample->rank_index < n_curves)
        curve_add (&g_array_index (curves, Curve, sample->rank_index),
                   (double) sample->at_ps / 1e12 / x_size, sample->value / y_size,
                   MAX (end, 1e-30) / MAX_CURVE_POINTS);
    }
  return curves;
}

/* It begins with what is held before the first operation, and its last point holds to the end of
 * the step. */
static void
add_curve (GArray *lines, GPtrArray *names, Curve *curve, const char *rank, double end,
           const char *unit)
{
  g_autofree char *peak = pod_report_fixed (curve->peak, 2);
  PodHtmlLine line = { .is_stepped = true };

  if (curve->x->len == 0)
    return;
  g_array_index (curve->x, double, 0) = 0;
  g_array_append_val (curve->x, end);
  g_array_append_val (curve->y, g_array_index (curve->y, double, curve->y->len - 1));
  g_ptr_array_add (names, g_strdup_printf ("%s, peak %s %s", rank, peak, unit));
  line.name = g_ptr_array_index (names, names->len - 1);
  line.x = (const double *) curve->x->data;
  line.y = (const double *) curve->y->data;
  line.n_points = curve->x->len;
  g_array_append_val (lines, line);
}

static void
add_limit (GArray *lines, const char *name, const double *x, const double *y)
{
  const PodHtmlLine line = { .name = name, .x = x, .y = y, .n_points = 2, .is_limit = true };

  g_array_append_val (lines, line);
}

static void
append_curves (PodReportHtml *page, JsonObject *result, const PodTimeline *timeline,
               uint32_t series)
{
  const double end_s = (double) timeline->end_ps / 1e12;
  const double usable = pod_report_number (result, "memory.capacity_bytes")
                        - pod_report_number (result, "memory.reserved_bytes");
  const PodReportUnit time = pod_report_time_unit (end_s);
  const PodReportUnit size = pod_report_bytes_unit (usable);
  const double x[] = { 0, end_s / time.size };
  const double y[] = { usable / size.size, usable / size.size };
  g_autoptr (GArray) curves = memory_curves (timeline, series, time.size, size.size);
  g_autoptr (GArray) lines = g_array_new (FALSE, FALSE, sizeof (PodHtmlLine));
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *x_name = g_strdup_printf ("time, %s", time.name);
  g_autofree char *y_name = g_strdup_printf ("memory of a device, %s", size.name);
  g_autofree char *digits = pod_report_in_unit (usable, size, 2);
  g_autofree char *limit = g_strdup_printf ("what tensors may take, %s", digits);

  for (guint i = 0; i < curves->len; i++)
    add_curve (lines, names, &g_array_index (curves, Curve, i),
               g_array_index (timeline->ranks, PodTimelineRank, i).name, x[1], size.name);
  if (lines->len == 0)
    return;
  add_limit (lines, limit, x, y);
  pod_report_html_chart (page, &(PodHtmlChart){ .caption = "Memory over the step",
                                                .x_name = x_name,
                                                .y_name = y_name,
                                                .lines = (const PodHtmlLine *) lines->data,
                                                .n_lines = lines->len });
}

static void
append_buffers (PodReportHtml *page, JsonObject *result)
{
  JsonArray *buffers = pod_report_array (result, "memory.at_peak");
  const double peak = pod_report_number (result, "memory.peak_bytes");
  const PodReportUnit unit = pod_report_bytes_unit (peak);
  g_autoptr (PodTable) table = pod_table_new (ROW ("buffers", "kind", ">size", ">share"));
  g_autofree char *at = pod_format_seconds (pod_report_number (result, "memory.peak_at_s"));
  g_autofree char *caption
      = g_strdup_printf ("What is held at the peak: rank %.0f, the fullest, %s into the step",
                         pod_report_number (result, "memory.worst_rank"), at);

  for (guint i = 0; buffers != NULL && i < json_array_get_length (buffers); i++)
    {
      JsonObject *buffer = json_array_get_object_element (buffers, i);
      const double bytes = pod_report_number (buffer, "bytes");
      g_autofree char *size = pod_report_in_unit (bytes, unit, 2);
      g_autofree char *share = pod_report_percent (peak > 0 ? bytes / peak : 0);

      pod_table_add_row (table, ROW (pod_report_string_or (buffer, "buffers", "?"),
                                     pod_report_string_or (buffer, "use", ""), size, share));
    }
  pod_report_html_table (page, caption, table);
}

void
pod_step_page_memory (PodReportHtml *page, JsonObject *result, const PodTimeline *timeline)
{
  uint32_t series;

  pod_report_html_section (page, "memory", "Memory", NULL);
  if (pod_report_memory_series (timeline, &series))
    append_curves (page, result, timeline, series);
  append_buffers (page, result);
}
