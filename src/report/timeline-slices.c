#include "report/timeline-svg-private.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/report-private.h"

/* What the lanes of timeline.svg hold. */

enum
{
  N_SHADES = 2 * POD_N_CATEGORIES, /* even and odd microbatches */
  N_LEVELS = 4,                    /* of opacity: how much of a column is busy */
};

static unsigned
shade_of (const PodSpan *span, const PodTimelineOp *op)
{
  return 2 * (unsigned) op->category + (span->microbatch > 0 && span->microbatch % 2 == 1 ? 1 : 0);
}

/* -- close: a slice each ----------------------------------------------------------------------- */

const char *
pod_report_without_layer (const char *name)
{
  const char *at = name + 1;

  if (*name != 'L' || !g_ascii_isdigit (*at))
    return name;
  while (g_ascii_isdigit (*at))
    at++;
  return *at == ' ' ? at + 1 : name;
}

/* White where the slice is dark enough for it. */
static const char *
ink_of (PodCategory category)
{
  return category == POD_CATEGORY_RECOMPUTE || category == POD_CATEGORY_P2P ? "in dark" : "in";
}

/* @name if it fits into @width, its start if that says something, else nothing. */
static void
append_label (GString *out, const char *class, const char *name, double x, double y, double width)
{
  const double letter = 6.4; /* at 10 px, with room at the ends */
  const int n_letters = (int) g_utf8_strlen (name, -1);
  const int n_fit = (int) (width / letter);
  g_autofree char *start = NULL;
  g_autofree char *cut = NULL;

  if (n_letters <= n_fit)
    {
      pod_svg_append_text (out, class, x, y, name);
      return;
    }
  if (n_fit < 5)
    return;
  start = g_utf8_substring (name, 0, n_fit - 1);
  cut = g_strconcat (g_strchomp (start), "\u2026", NULL);
  pod_svg_append_text (out, class, x, y, cut);
}

static void
append_slice (GString *out, const PodSvgPanel *panel, const PodSvgRow *row, const PodSpan *span,
              const PodTimelineOp *op)
{
  const double from = MAX (pod_svg_x_of (panel, span->start_ps), POD_SVG_LEFT);
  const double to = MIN (pod_svg_x_of (panel, span->end_ps), POD_SVG_LEFT + POD_SVG_PLOT);
  const double arrive = MAX (pod_svg_x_of (panel, span->arrive_ps), POD_SVG_LEFT);
  const double waited = MIN (from, POD_SVG_LEFT + POD_SVG_PLOT) - arrive;
  const double gap = to - from > 3 ? 0.7 : 0;
  g_autofree char *class = g_strdup_printf ("c%u", 2 * (unsigned) op->category);
  g_autofree char *time = pod_format_seconds ((double) (span->end_ps - span->start_ps) / 1e12);
  g_autofree char *words = g_markup_printf_escaped ("%s, %s", op->name, time);

  if (waited > 0.5)
    pod_svg_append_rect (
        out, "wait", (PodSvgBox){ arrive, row->y + row->height / 4.0, waited, row->height / 2.0 });
  if (to < from)
    return;
  g_string_append_printf (out, "<g><title>%s</title>", words);
  pod_svg_append_rect (out, class, (PodSvgBox){ from, row->y, to - from - gap, row->height });
  append_label (out, ink_of (op->category), pod_report_without_layer (op->name), (from + to) / 2,
                row->y + row->height / 2.0 + 3.5, to - from);
  g_string_append (out, "</g>\n");
}

void
pod_svg_append_slices (GString *out, const PodSvgPanel *panel, const PodTimeline *timeline)
{
  for (guint i = 0; i < timeline->spans->len; i++)
    {
      const PodSpan *span = &g_array_index (timeline->spans, PodSpan, i);
      const PodSvgRow *row = span->end_ps >= panel->from_ps && span->arrive_ps <= panel->to_ps
                                 ? pod_svg_row_of (panel, span->lane)
                                 : NULL;

      if (row != NULL)
        append_slice (out, panel, row, span,
                      &g_array_index (timeline->ops, PodTimelineOp, span->op));
    }
}

/* -- far: a colour for each column of pixels --------------------------------------------------- */

/* How much of a column of pixels each shade fills, 0 to 1. */
typedef struct
{
  double busy[N_SHADES];
} Column;

static void
fill_columns (Column *columns, const PodSvgPanel *panel, const PodSpan *span, unsigned shade)
{
  const double from = pod_svg_x_of (panel, span->start_ps) - POD_SVG_LEFT;
  const double to = MIN (pod_svg_x_of (panel, span->end_ps) - POD_SVG_LEFT, POD_SVG_PLOT);

  for (int x = (int) from; x < to; x++)
    columns[x].busy[shade] += MIN (to, x + 1) - MAX (from, x);
}

/* The shade that fills most of a column, and how busy all make it; level 0: nothing. */
static void
judge_column (const Column *column, unsigned *out_shade, unsigned *out_level)
{
  double total = 0;

  *out_shade = 0;
  for (unsigned s = 0; s < N_SHADES; s++)
    {
      total += column->busy[s];
      if (column->busy[s] > column->busy[*out_shade])
        *out_shade = s;
    }
  *out_level = total <= 0 ? 0 : (unsigned) CLAMP (ceil (total * N_LEVELS - 0.05), 1, N_LEVELS);
}

static void
append_row_columns (GString *out, const PodSvgRow *row, const Column *columns)
{
  GString *paths[N_SHADES][N_LEVELS + 1] = { { NULL } };
  int n_run;

  for (int x = 0; x < POD_SVG_PLOT; x += n_run)
    {
      unsigned shade;
      unsigned level;
      unsigned next_shade;
      unsigned next_level;

      judge_column (&columns[x], &shade, &level);
      for (n_run = 1; x + n_run < POD_SVG_PLOT; n_run++)
        {
          judge_column (&columns[x + n_run], &next_shade, &next_level);
          if (next_level != level || (level > 0 && next_shade != shade))
            break;
        }
      if (level == 0)
        continue;
      if (paths[shade][level] == NULL)
        paths[shade][level] = g_string_new (NULL);
      g_string_append_printf (paths[shade][level], "M%d %dh%dv%dh-%dz", POD_SVG_LEFT + x, row->y,
                              n_run, row->height, n_run);
    }
  for (unsigned s = 0; s < N_SHADES; s++)
    for (unsigned l = 1; l <= N_LEVELS; l++)
      if (paths[s][l] != NULL)
        {
          g_autofree char *opacity = pod_report_fixed (0.25 + 0.75 * l / N_LEVELS, 2);

          g_string_append_printf (out, "<path class=\"c%u\" fill-opacity=\"%s\" d=\"%s\"/>\n", s,
                                  opacity, paths[s][l]->str);
          g_string_free (paths[s][l], TRUE);
        }
}

/* A microbatch's forward or backward on a compute lane: its number where there is room. */
typedef struct
{
  int32_t microbatch;
  bool is_forward;
  double from;
  double to;
} Region;

static void
append_region (GString *out, const PodSvgRow *row, const Region *region)
{
  g_autofree char *number = g_strdup_printf ("%d", region->microbatch);

  if (region->to - region->from >= 4 + 6.5 * (double) strlen (number) && region->microbatch >= 0)
    pod_svg_append_text (out, "in", (region->from + region->to) / 2,
                         row->y + row->height / 2.0 + 3.5, number);
}

static void
append_numbers (GString *out, const PodSvgPanel *panel, const PodTimeline *timeline)
{
  g_autofree Region *regions = g_new0 (Region, panel->n_ranks);

  for (unsigned r = 0; r < panel->n_ranks; r++)
    regions[r].microbatch = -1;
  for (guint i = 0; i < timeline->spans->len; i++)
    {
      const PodSpan *span = &g_array_index (timeline->spans, PodSpan, i);
      const bool is_forward
          = g_array_index (timeline->ops, PodTimelineOp, span->op).category == POD_CATEGORY_FORWARD;
      const uint32_t rank = span->lane / timeline->n_streams;
      Region *region;

      if (span->lane % timeline->n_streams != 0 || rank >= panel->n_ranks)
        continue;
      region = &regions[rank];
      if (span->microbatch != region->microbatch || is_forward != region->is_forward)
        {
          append_region (out, pod_svg_row_of (panel, span->lane), region);
          *region = (Region){ .microbatch = span->microbatch,
                              .is_forward = is_forward,
                              .from = pod_svg_x_of (panel, span->start_ps) };
        }
      region->to = pod_svg_x_of (panel, span->end_ps);
    }
  for (unsigned r = 0; r < panel->n_ranks; r++)
    {
      const PodSvgRow *row = pod_svg_row_of (panel, r * timeline->n_streams);

      if (row != NULL)
        append_region (out, row, &regions[r]);
    }
}

void
pod_svg_append_columns (GString *out, const PodSvgPanel *panel, const PodTimeline *timeline)
{
  g_autofree Column *columns = g_new0 (Column, (size_t) panel->rows->len * POD_SVG_PLOT + 1);

  for (guint i = 0; i < timeline->spans->len; i++)
    {
      const PodSpan *span = &g_array_index (timeline->spans, PodSpan, i);
      const PodSvgRow *row = pod_svg_row_of (panel, span->lane);

      if (row != NULL)
        fill_columns (columns + (row - &g_array_index (panel->rows, PodSvgRow, 0)) * POD_SVG_PLOT,
                      panel, span,
                      shade_of (span, &g_array_index (timeline->ops, PodTimelineOp, span->op)));
    }
  for (guint i = 0; i < panel->rows->len; i++)
    append_row_columns (out, &g_array_index (panel->rows, PodSvgRow, i),
                        columns + (size_t) i * POD_SVG_PLOT);
  append_numbers (out, panel, timeline);
}
