#include "report/html-private.h"

#include <math.h>

#include "report/report-private.h"

/* Bars and curves of a page. Both are as wide as the page is, whatever that is: bars are boxes of
 * the page itself, curves an SVG that is stretched, with its words beside it and not in it. */

/* -- bars -------------------------------------------------------------------------------------- */

static void
append_swatch (GString *out, const char *name, const char *colour)
{
  g_string_append_printf (out, "<li><span class=\"swatch\" style=\"background:%s\"></span>",
                          colour);
  pod_html_append_element (out, "", name, "</li>\n");
}

static double
length_of (const PodHtmlBars *bars, const PodHtmlBar *bar)
{
  double length = 0;

  for (unsigned s = 0; s < bars->n_series; s++)
    length += MAX (bar->parts[s], 0);
  return length;
}

static bool
is_used (const PodHtmlBars *bars, unsigned series)
{
  for (unsigned i = 0; i < bars->n_bars; i++)
    if (bars->bars[i].parts[series] > 0)
      return true;
  return false;
}

static void
append_bar (GString *out, const PodHtmlBars *bars, const PodHtmlBar *bar, double whole)
{
  pod_html_append_element (out, "<div class=\"bar\"><span class=\"label\">", bar->label,
                           "</span><span class=\"track\">");
  for (unsigned s = 0; s < bars->n_series; s++)
    {
      g_autofree char *width = pod_report_fixed (100 * bar->parts[s] / whole, 3);

      if (bar->parts[s] > 0)
        {
          pod_html_append_element (out, "<i title=\"", bars->series[s].name, "\"");
          g_string_append_printf (out, " style=\"width:%s%%;background:%s\"></i>", width,
                                  bars->series[s].colour);
        }
    }
  pod_html_append_element (out, "</span><span class=\"value\">", bar->value, "</span></div>\n");
}

void
pod_report_html_bars (PodReportHtml *page, const PodHtmlBars *bars)
{
  g_return_if_fail (page != NULL && bars != NULL);

  GString *out = pod_html_body (page);
  double whole = bars->whole;

  for (unsigned i = 0; i < bars->n_bars; i++)
    whole = MAX (whole, length_of (bars, &bars->bars[i]));
  pod_html_append_element (out, "<figure class=\"bars\"><figcaption>", bars->caption,
                           "</figcaption>\n<div class=\"rows\">\n");
  for (unsigned i = 0; i < bars->n_bars; i++)
    append_bar (out, bars, &bars->bars[i], whole > 0 ? whole : 1);
  g_string_append (out, "</div>\n<ul class=\"legend\">\n");
  for (unsigned s = 0; s < bars->n_series; s++)
    if (is_used (bars, s))
      append_swatch (out, bars->series[s].name, bars->series[s].colour);
  g_string_append (out, "</ul></figure>\n");
}

/* -- curves ------------------------------------------------------------------------------------ */

enum
{
  WIDTH = 1000, /* of the drawing, stretched to what there is */
  HEIGHT = 300,
  MAX_TICKS = 6,
};

/* One axis of a chart: what is at its ends, in what it is drawn by. */
typedef struct
{
  double from;
  double to;
  bool is_logarithmic; /* ends are logarithms to the base of 10 */
} Scale;

/* The step of 1, 2 or 5 times a power of ten that makes at most MAX_TICKS of @max. */
static double
tick_of (double max)
{
  const double least = max / MAX_TICKS;
  const double power = pow (10, floor (log10 (least)));
  static const double steps[] = { 1, 2, 5, 10 };

  for (unsigned i = 0; i < G_N_ELEMENTS (steps); i++)
    if (steps[i] * power >= least)
      return steps[i] * power;
  return 10 * power;
}

/* From 0 or, in logarithms, from the least value to the largest. */
static Scale
scale_of (const PodHtmlChart *chart, bool is_y)
{
  Scale scale = { .is_logarithmic = is_y ? chart->is_logarithmic_y : chart->is_logarithmic_x };
  double least = INFINITY;
  double most = 0;

  for (unsigned l = 0; l < chart->n_lines; l++)
    for (unsigned i = 0; i < chart->lines[l].n_points; i++)
      {
        const double value = is_y ? chart->lines[l].y[i] : chart->lines[l].x[i];

        if (isnan (value))
          continue;
        least = MIN (least, value);
        most = MAX (most, value);
      }
  if (!scale.is_logarithmic || !(least > 0) || !isfinite (least))
    {
      scale.is_logarithmic = false;
      scale.to = most > 0 ? most * (is_y ? 1.04 : 1) : 1;
      return scale;
    }
  scale.from = log10 (least) - (is_y ? 0.1 : 0);
  scale.to = log10 (most) + (is_y ? 0.1 : 0);
  if (!(scale.to > scale.from))
    scale.to = scale.from + 1;
  return scale;
}

/* 0 at the beginning of the axis, 1 at its end. */
static double
place_on (const Scale *scale, double value)
{
  return ((scale->is_logarithmic ? log10 (value) : value) - scale->from)
         / (scale->to - scale->from);
}

/* Round values within the axis, at most MAX_TICKS or so; in logarithms powers of ten, thinned out
 * where there are many, or with 2 and 5 between them where there are few. Returns: (transfer full)
 * (element-type double) */
static GArray *
ticks_of (const Scale *scale)
{
  static const double within[] = { 1, 2, 5 };
  GArray *ticks = g_array_new (FALSE, FALSE, sizeof (double));
  const double decades = scale->to - scale->from;
  const int every = (int) ceil (decades / MAX_TICKS);

  if (!scale->is_logarithmic)
    for (unsigned i = 0; i * tick_of (scale->to) <= scale->to; i++)
      {
        const double value = i * tick_of (scale->to);

        g_array_append_val (ticks, value);
      }
  for (int power = (int) floor (scale->from); scale->is_logarithmic && power <= scale->to;
       power += MAX (every, 1))
    for (unsigned w = 0; w < (decades < 1.5 ? G_N_ELEMENTS (within) : 1); w++)
      {
        const double value = within[w] * pow (10, power);

        if (place_on (scale, value) > -1e-9 && place_on (scale, value) < 1 + 1e-9)
          g_array_append_val (ticks, value);
      }
  return ticks;
}

static void
append_tick (GString *out, const char *side, double at, double value)
{
  g_autofree char *place = pod_report_fixed (100 * at, 2);
  char number[G_ASCII_DTOSTR_BUF_SIZE]; /* the steps' sums in doubles have a tail of digits */

  g_ascii_formatd (number, sizeof number, "%.6g", value);
  g_string_append_printf (out, "<span style=\"%s:%s%%\">%s</span>", side, place, number);
}

static void
append_ticks (GString *out, const char *class, const char *side, const Scale *scale)
{
  g_autoptr (GArray) ticks = ticks_of (scale);

  g_string_append_printf (out, "<div class=\"%s\" aria-hidden=\"true\">", class);
  for (guint i = 0; i < ticks->len; i++)
    append_tick (out, side, place_on (scale, g_array_index (ticks, double, i)),
                 g_array_index (ticks, double, i));
  g_string_append (out, "</div>\n");
}

static void
append_grid (GString *out, const Scale *scale)
{
  g_autoptr (GArray) ticks = ticks_of (scale);

  g_string_append (out, "<path class=\"grid\" d=\"");
  for (guint i = 0; i < ticks->len; i++)
    {
      g_autofree char *y
          = pod_report_fixed (HEIGHT * (1 - place_on (scale, g_array_index (ticks, double, i))), 1);

      g_string_append_printf (out, "M0 %sH%d", y, WIDTH);
    }
  g_string_append (out, "\"/>\n");
}

static void
append_line (GString *out, const PodHtmlLine *line, const Scale *x_scale, const Scale *y_scale,
             const char *colour)
{
  bool is_drawing = false;

  g_string_append (out, "<path d=\"");
  for (unsigned i = 0; i < line->n_points; i++)
    {
      g_autofree char *x = pod_report_fixed (WIDTH * place_on (x_scale, line->x[i]), 2);
      g_autofree char *y = pod_report_fixed (HEIGHT * (1 - place_on (y_scale, line->y[i])), 2);

      if (isnan (line->y[i]))
        is_drawing = false;
      else if (!is_drawing)
        g_string_append_printf (out, "M%s %s", x, y);
      else if (line->is_stepped)
        g_string_append_printf (out, "H%sV%s", x, y);
      else
        g_string_append_printf (out, "L%s %s", x, y);
      is_drawing = !isnan (line->y[i]);
    }
  g_string_append_printf (out, "\" style=\"stroke:%s\"%s><title>", colour,
                          line->is_limit ? " class=\"limit\"" : "");
  pod_html_append_element (out, "", line->name, "</title></path>\n");
}

/* The drawing is stretched, so that a ring is two round ends of a line without length, one within
 * the other. */
static void
append_mark (GString *out, const PodHtmlMark *mark, const Scale *x_scale, const Scale *y_scale)
{
  static const char *const parts[] = { "mark", "mark inner" };
  g_autofree char *x = pod_report_fixed (WIDTH * place_on (x_scale, mark->x), 2);
  g_autofree char *y = pod_report_fixed (HEIGHT * (1 - place_on (y_scale, mark->y)), 2);

  for (unsigned p = 0; p < G_N_ELEMENTS (parts); p++)
    {
      g_string_append_printf (out, "<path class=\"%s\" d=\"M%s %sh0\"><title>", parts[p], x, y);
      pod_html_append_element (out, "", mark->name, "</title></path>\n");
    }
}

void
pod_report_html_chart (PodReportHtml *page, const PodHtmlChart *chart)
{
  g_return_if_fail (page != NULL && chart != NULL);

  static const char limit_colour[] = "var(--ink)";
  GString *out = pod_html_body (page);
  const Scale x_scale = scale_of (chart, false);
  const Scale y_scale = scale_of (chart, true);
  unsigned n_curves = 0;

  pod_html_append_element (out, "<figure class=\"chart\"><figcaption>", chart->caption,
                           "</figcaption>\n");
  pod_html_append_element (out, "<p class=\"axis\">", chart->y_name,
                           "</p>\n<div class=\"plot\">\n");
  append_ticks (out, "y-ticks", "bottom", &y_scale);
  g_string_append_printf (
      out, "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\"", WIDTH, HEIGHT);
  pod_html_append_element (out, " aria-label=\"", chart->caption, "\">\n");
  append_grid (out, &y_scale);
  for (unsigned l = 0; l < chart->n_lines; l++)
    append_line (out, &chart->lines[l], &x_scale, &y_scale,
                 chart->lines[l].is_limit ? limit_colour : pod_report_colour (n_curves++));
  for (unsigned m = 0; m < chart->n_marks; m++)
    append_mark (out, &chart->marks[m], &x_scale, &y_scale);
  g_string_append (out, "</svg>\n");
  append_ticks (out, "x-ticks", "left", &x_scale);
  pod_html_append_element (out, "</div>\n<p class=\"axis x\">", chart->x_name,
                           "</p>\n<ul class=\"legend\">\n");
  n_curves = 0;
  for (unsigned l = 0; l < chart->n_lines; l++)
    append_swatch (out, chart->lines[l].name,
                   chart->lines[l].is_limit ? limit_colour : pod_report_colour (n_curves++));
  g_string_append (out, "</ul></figure>\n");
}
