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

typedef struct
{
  double x_max;
  double y_max;
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

static Scale
scale_of (const PodHtmlChart *chart)
{
  Scale scale = { 0, 0 };

  for (unsigned l = 0; l < chart->n_lines; l++)
    for (unsigned i = 0; i < chart->lines[l].n_points; i++)
      {
        scale.x_max = MAX (scale.x_max, chart->lines[l].x[i]);
        scale.y_max = MAX (scale.y_max, chart->lines[l].y[i]);
      }
  if (!(scale.x_max > 0))
    scale.x_max = 1;
  scale.y_max = scale.y_max > 0 ? scale.y_max * 1.04 : 1;
  return scale;
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
append_ticks (GString *out, const char *class, const char *side, double max)
{
  const double step = tick_of (max);

  g_string_append_printf (out, "<div class=\"%s\" aria-hidden=\"true\">", class);
  for (unsigned i = 0; i * step <= max; i++)
    append_tick (out, side, i * step / max, i * step);
  g_string_append (out, "</div>\n");
}

static void
append_grid (GString *out, double max)
{
  const double step = tick_of (max);

  g_string_append (out, "<path class=\"grid\" d=\"");
  for (unsigned i = 0; i * step <= max; i++)
    {
      g_autofree char *y = pod_report_fixed (HEIGHT * (1 - i * step / max), 1);

      g_string_append_printf (out, "M0 %sH%d", y, WIDTH);
    }
  g_string_append (out, "\"/>\n");
}

static void
append_line (GString *out, const PodHtmlLine *line, const Scale *scale, const char *colour)
{
  g_string_append (out, "<path d=\"");
  for (unsigned i = 0; i < line->n_points; i++)
    {
      g_autofree char *x = pod_report_fixed (WIDTH * line->x[i] / scale->x_max, 2);
      g_autofree char *y = pod_report_fixed (HEIGHT * (1 - line->y[i] / scale->y_max), 2);

      if (i == 0)
        g_string_append_printf (out, "M%s %s", x, y);
      else if (line->is_stepped)
        g_string_append_printf (out, "H%sV%s", x, y);
      else
        g_string_append_printf (out, "L%s %s", x, y);
    }
  g_string_append_printf (out, "\" style=\"stroke:%s\"%s><title>", colour,
                          line->is_limit ? " class=\"limit\"" : "");
  pod_html_append_element (out, "", line->name, "</title></path>\n");
}

void
pod_report_html_chart (PodReportHtml *page, const PodHtmlChart *chart)
{
  g_return_if_fail (page != NULL && chart != NULL);

  static const char limit_colour[] = "var(--ink)";
  GString *out = pod_html_body (page);
  const Scale scale = scale_of (chart);
  unsigned n_curves = 0;

  pod_html_append_element (out, "<figure class=\"chart\"><figcaption>", chart->caption,
                           "</figcaption>\n");
  pod_html_append_element (out, "<p class=\"axis\">", chart->y_name,
                           "</p>\n<div class=\"plot\">\n");
  append_ticks (out, "y-ticks", "bottom", scale.y_max);
  g_string_append_printf (
      out, "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\"", WIDTH, HEIGHT);
  pod_html_append_element (out, " aria-label=\"", chart->caption, "\">\n");
  append_grid (out, scale.y_max);
  for (unsigned l = 0; l < chart->n_lines; l++)
    append_line (out, &chart->lines[l], &scale,
                 chart->lines[l].is_limit ? limit_colour : pod_report_colour (n_curves++));
  g_string_append (out, "</svg>\n");
  append_ticks (out, "x-ticks", "left", scale.x_max);
  pod_html_append_element (out, "</div>\n<p class=\"axis x\">", chart->x_name,
                           "</p>\n<ul class=\"legend\">\n");
  n_curves = 0;
  for (unsigned l = 0; l < chart->n_lines; l++)
    append_swatch (out, chart->lines[l].name,
                   chart->lines[l].is_limit ? limit_colour : pod_report_colour (n_curves++));
  g_string_append (out, "</ul></figure>\n");
}
