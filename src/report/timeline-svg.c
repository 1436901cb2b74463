#include "report/report-private.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/timeline-svg-private.h"

/* The timeline as a picture that needs no tool: the whole step of the first recorded ranks, then
 * one layer's forward and backward of the first, close enough to read the names. */

enum
{
  MAX_ROWS = 40,     /* of the whole step, so that the picture stays one page */
  MAX_SLICES = 2000, /* of a layer: more are too thin to be told apart */
};

static const struct
{
  const char *name;
  const char *colour;
  const char *other; /* of odd microbatches, so that neighbours can be told apart */
} categories[POD_N_CATEGORIES] = {
  [POD_CATEGORY_FORWARD] = { "forward", "#0072b2", "#3f97cc" },
  [POD_CATEGORY_BACKWARD] = { "backward", "#009e73", "#45b896" },
  [POD_CATEGORY_RECOMPUTE] = { "recompute", "#56b4e9", "#86caf0" },
  [POD_CATEGORY_OPTIMIZER] = { "optimizer", "#444444", "#444444" },
  [POD_CATEGORY_COMM] = { "collective", "#d55e00", "#d55e00" },
  [POD_CATEGORY_P2P] = { "send, receive", "#e69f00", "#e69f00" },
};

/* -- primitives -------------------------------------------------------------------------------- */

void
pod_svg_append_px (GString *out, double px)
{
  char buffer[64];
  char *end;

  g_ascii_formatd (buffer, sizeof buffer, "%.1f", px);
  end = buffer + strlen (buffer) - 2;
  if (strcmp (end, ".0") == 0)
    *end = '\0';
  g_string_append (out, buffer);
}

void
pod_svg_append_text (GString *out, const char *class, double x, double y, const char *text)
{
  g_autofree char *escaped = g_markup_escape_text (text, -1);

  g_string_append_printf (out, "<text class=\"%s\" x=\"", class);
  pod_svg_append_px (out, x);
  g_string_append (out, "\" y=\"");
  pod_svg_append_px (out, y);
  g_string_append_printf (out, "\">%s</text>\n", escaped);
}

void
pod_svg_append_rect (GString *out, const char *class, PodSvgBox box)
{
  g_string_append_printf (out, "<rect class=\"%s\" x=\"", class);
  pod_svg_append_px (out, box.x);
  g_string_append (out, "\" y=\"");
  pod_svg_append_px (out, box.y);
  g_string_append (out, "\" width=\"");
  pod_svg_append_px (out, MAX (box.width, 0.1));
  g_string_append (out, "\" height=\"");
  pod_svg_append_px (out, box.height);
  g_string_append (out, "\"/>\n");
}

double
pod_svg_x_of (const PodSvgPanel *panel, int64_t at_ps)
{
  return POD_SVG_LEFT
         + (double) (at_ps - panel->from_ps) / (double) MAX (panel->to_ps - panel->from_ps, 1)
               * POD_SVG_PLOT;
}

/* -- panels ------------------------------------------------------------------------------------ */

/* Lanes on which something happens meanwhile. Returns: (transfer full) a flag for each lane */
static bool *
used_lanes (const PodTimeline *timeline, int64_t from_ps, int64_t to_ps)
{
  bool *is_used = g_new0 (bool, (size_t) timeline->ranks->len * timeline->n_streams + 1);

  for (guint i = 0; i < timeline->spans->len; i++)
    {
      const PodSpan *span = &g_array_index (timeline->spans, PodSpan, i);

      if (span->end_ps >= from_ps && span->start_ps <= to_ps)
        is_used[span->lane] = true;
    }
  return is_used;
}

/* Rows for the lanes of the first ranks, as many as fit (one at least, @max_ranks at most). */
static void
add_rows (PodSvgPanel *panel, const PodTimeline *timeline, unsigned max_ranks)
{
  g_autofree bool *is_used = used_lanes (timeline, panel->from_ps, panel->to_ps);
  const int lane_height = panel->is_close ? 20 : 13;
  int y = panel->top;

  for (panel->n_ranks = 0; panel->n_ranks < MIN (max_ranks, timeline->ranks->len); panel->n_ranks++)
    {
      const guint n_before = panel->rows->len;

      y += 22; /* the rank's name */
      for (unsigned s = 0; s < timeline->n_streams; s++)
        {
          PodSvgRow row
              = { .lane = panel->n_ranks * timeline->n_streams + s, .y = y, .height = lane_height };

          if (!is_used[row.lane])
            continue;
          row.height += s == 0 ? 5 : 0;
          g_array_append_val (panel->rows, row);
          y += row.height + 3;
        }
      if (panel->n_ranks > 0 && panel->rows->len > MAX_ROWS)
        {
          g_array_set_size (panel->rows, n_before);
          break;
        }
      panel->bottom = y;
    }
}

PodSvgRow *
pod_svg_row_of (const PodSvgPanel *panel, uint32_t lane)
{
  for (guint i = 0; i < panel->rows->len; i++)
    if (g_array_index (panel->rows, PodSvgRow, i).lane == lane)
      return &g_array_index (panel->rows, PodSvgRow, i);
  return NULL;
}

static void
append_lanes (GString *out, const PodSvgPanel *panel, const PodTimeline *timeline)
{
  uint32_t named = UINT32_MAX;

  for (guint i = 0; i < panel->rows->len; i++)
    {
      const PodSvgRow *row = &g_array_index (panel->rows, PodSvgRow, i);
      const uint32_t rank = row->lane / timeline->n_streams;

      if (rank != named)
        pod_svg_append_text (out, "rank", POD_SVG_LEFT, row->y - 6,
                             g_array_index (timeline->ranks, PodTimelineRank, rank).name);
      named = rank;
      pod_svg_append_rect (out, "lane",
                           (PodSvgBox){ POD_SVG_LEFT, row->y, POD_SVG_PLOT, row->height });
      pod_svg_append_text (out, "name", POD_SVG_LEFT - 8, row->y + row->height / 2.0 + 4,
                           timeline->stream_names[row->lane % timeline->n_streams]);
    }
}

/* Steps of 1, 2 or 5 times a power of ten, about ten of them. */
static double
tick_step (double range)
{
  const double power = pow (10, floor (log10 (range / 10)));
  const double times = range / 10 / power;

  return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static void
append_axis (GString *out, PodSvgPanel *panel)
{
  const double from_ms = (double) panel->from_ps / 1e9;
  const double to_ms = (double) panel->to_ps / 1e9;
  const double range = MAX (to_ms - from_ms, 1e-9);
  const double step = tick_step (range);
  const int n_decimals = (int) CLAMP (-floor (log10 (step) + 1e-9), 0, 9);
  const int y = panel->bottom + 3;

  pod_svg_append_rect (out, "axis", (PodSvgBox){ POD_SVG_LEFT, y, POD_SVG_PLOT, 1 });
  for (double at = ceil (from_ms / step); at * step <= to_ms * (1 + 1e-12); at++)
    {
      const double x = POD_SVG_LEFT + (at * step - from_ms) / range * POD_SVG_PLOT;
      g_autofree char *digits = pod_report_fixed (at * step, (unsigned) n_decimals);

      pod_svg_append_rect (out, "axis", (PodSvgBox){ x - 0.5, y, 1, 5 });
      pod_svg_append_text (out, "tick", x, y + 18, digits);
    }
  pod_svg_append_text (out, "name", POD_SVG_LEFT - 32, y + 18, "ms");
  panel->bottom = y + 26;
}

static void
append_head (GString *out, const char *title, int height)
{
  g_autofree char *escaped = g_markup_escape_text (title, -1);

  g_string_append_printf (
      out,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
      "%d\">\n<title>%s</title>\n<style>\n"
      "text { font-family: 'DejaVu Sans', Verdana, sans-serif; fill: #222; font-size: 11px }\n"
      ".title { font-size: 15px; font-weight: bold }\n.panel { font-size: 13px; font-weight: bold "
      "}\n.rank { fill: #555 }\n"
      ".name { text-anchor: end }\n.tick { text-anchor: middle }\n.in { fill: #fff; font-size: "
      "10px; text-anchor: middle }\n.dark { fill: #000 }\n"
      ".page { fill: #fff }\n.lane { fill: #f3f3f3 }\n.axis { fill: #222 }\n.wait { fill: #f2c9a6 "
      "}\n.band { fill: #222; fill-opacity: 0.15 }\n",
      POD_SVG_WIDTH, height, POD_SVG_WIDTH, height, escaped);
  for (unsigned c = 0; c < POD_N_CATEGORIES; c++)
    g_string_append_printf (out, ".c%u { fill: %s }\n.c%u { fill: %s }\n", 2 * c,
                            categories[c].colour, 2 * c + 1, categories[c].other);
  g_string_append (out, "</style>\n");
  pod_svg_append_rect (out, "page", (PodSvgBox){ 0, 0, POD_SVG_WIDTH, height });
  pod_svg_append_text (out, "title", 16, 26, title);
}

static void
append_legend (GString *out, const PodTimeline *timeline, bool has_waits)
{
  bool is_used[POD_N_CATEGORIES] = { false };
  int x = POD_SVG_LEFT;

  for (guint i = 0; i < timeline->spans->len; i++)
    is_used[g_array_index (timeline->ops, PodTimelineOp,
                           g_array_index (timeline->spans, PodSpan, i).op)
                .category]
        = true;
  for (unsigned c = 0; c < POD_N_CATEGORIES; c++)
    if (is_used[c])
      {
        g_autofree char *class = g_strdup_printf ("c%u", 2 * c);

        pod_svg_append_rect (out, class, (PodSvgBox){ x, 40, 12, 12 });
        pod_svg_append_text (out, "key", x + 17, 50, categories[c].name);
        x += 40 + 7 * (int) strlen (categories[c].name);
      }
  if (!has_waits)
    return;
  pod_svg_append_rect (out, "wait", (PodSvgBox){ x, 40, 12, 12 });
  pod_svg_append_text (out, "key", x + 17, 50, "waiting for peers");
}

/* -- the picture ------------------------------------------------------------------------------- */

/* The layer in the middle of those that the first rank computes in @is_backward's direction, and
 * its last microbatch's time. Returns false when no op says its layer. */
static bool
find_layer (const PodTimeline *timeline, bool is_backward, int32_t *out_layer, int64_t *out_from_ps,
            int64_t *out_to_ps)
{
  int32_t lowest = INT32_MAX;
  int32_t highest = -1;
  int32_t last = INT32_MIN;
  int64_t from_ps = INT64_MAX;
  int64_t to_ps = 0;

  for (unsigned pass = 0; pass < 3; pass++)
    for (guint i = 0; i < timeline->spans->len; i++)
      {
        const PodSpan *span = &g_array_index (timeline->spans, PodSpan, i);
        const PodTimelineOp *op = &g_array_index (timeline->ops, PodTimelineOp, span->op);

        if (span->lane != 0 || op->layer < 0
            || (op->category == POD_CATEGORY_FORWARD) == is_backward
            || op->category > POD_CATEGORY_RECOMPUTE)
          continue;
        lowest = MIN (lowest, op->layer);
        highest = MAX (highest, op->layer);
        if (pass == 0 || op->layer != lowest + (highest - lowest) / 2)
          continue;
        last = MAX (last, span->microbatch);
        if (pass == 1 || span->microbatch != last)
          continue;
        from_ps = MIN (from_ps, span->start_ps);
        to_ps = MAX (to_ps, span->end_ps);
      }
  if (highest < 0)
    return false;
  *out_layer = lowest + (highest - lowest) / 2;
  *out_from_ps = MAX (from_ps - (to_ps - from_ps) / 25, 0);
  *out_to_ps = MIN (to_ps + (to_ps - from_ps) / 25, timeline->end_ps);
  return true;
}

static void
panel_begin (PodSvgPanel *panel, GString *out, const PodTimeline *timeline, const char *title)
{
  panel->rows = g_array_new (FALSE, TRUE, sizeof (PodSvgRow));
  pod_svg_append_text (out, "panel", 16, panel->top + 12, title);
  panel->top += 12;
  add_rows (panel, timeline, panel->is_close ? 1 : UINT32_MAX);
  append_lanes (out, panel, timeline);
}

static void
panel_end (PodSvgPanel *panel, GString *out, int *y)
{
  append_axis (out, panel);
  *y = panel->bottom + 22;
  g_array_unref (panel->rows);
}

static unsigned
count_slices (const PodSvgPanel *panel, const PodTimeline *timeline)
{
  unsigned n_slices = 0;

  for (guint i = 0; i < timeline->spans->len; i++)
    {
      const PodSpan *span = &g_array_index (timeline->spans, PodSpan, i);

      n_slices += span->lane < timeline->n_streams && span->end_ps >= panel->from_ps
                  && span->arrive_ps <= panel->to_ps;
    }
  return n_slices;
}

/* One layer close to: @y moves below it. The band in the first panel shows where it is. */
static void
append_layer (GString *out, const PodTimeline *timeline, bool is_backward, int *y)
{
  PodSvgPanel panel = { .is_close = true, .top = *y };
  g_autofree char *title = NULL;
  int32_t layer;

  if (!find_layer (timeline, is_backward, &layer, &panel.from_ps, &panel.to_ps))
    return;
  title = g_strdup_printf ("layer %d, %s", layer, is_backward ? "backward" : "forward");
  panel_begin (&panel, out, timeline, title);
  if (count_slices (&panel, timeline) <= MAX_SLICES)
    pod_svg_append_slices (out, &panel, timeline);
  else
    pod_svg_append_columns (out, &panel, timeline);
  panel_end (&panel, out, y);
}

static void
append_step (GString *out, const PodTimeline *timeline, int *y)
{
  PodSvgPanel panel = { .top = *y, .to_ps = timeline->end_ps };
  g_autofree char *time = pod_format_seconds ((double) timeline->end_ps / 1e12);
  g_autofree char *title = g_strdup_printf ("the whole step, %s", time);

  panel_begin (&panel, out, timeline, title);
  pod_svg_append_columns (out, &panel, timeline);
  for (unsigned is_backward = 0; is_backward < 2; is_backward++)
    {
      int32_t layer;
      int64_t from_ps;
      int64_t to_ps;

      if (find_layer (timeline, is_backward, &layer, &from_ps, &to_ps))
        pod_svg_append_rect (
            out, "band",
            (PodSvgBox){ pod_svg_x_of (&panel, from_ps), panel.top + 12,
                         MAX (pod_svg_x_of (&panel, to_ps) - pod_svg_x_of (&panel, from_ps), 2),
                         panel.bottom - panel.top - 12 });
    }
  panel_end (&panel, out, y);
}

bool
pod_report_timeline_svg (const PodTimeline *timeline, const char *title, const char *folder,
                         GError **error)
{
  g_autoptr (GString) body = g_string_new (NULL);
  g_autoptr (GString) out = g_string_new (NULL);
  int y = 68;

  append_step (body, timeline, &y);
  append_layer (body, timeline, false, &y);
  append_layer (body, timeline, true, &y);
  append_head (out, title, y);
  append_legend (out, timeline, strstr (body->str, "class=\"wait\"") != NULL);
  g_string_append (out, body->str);
  g_string_append (out, "</svg>\n");
  return pod_report_save (folder, "timeline.svg", out->str, error);
}
