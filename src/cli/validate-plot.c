#include "cli/validate-plot.h"

#include <math.h>

#include "base/units.h"
#include "report/html-page.h"
#include "report/plot.h"

enum
{
  MOST_DRAWN = 2000, /* of a series: more are a blot, and megabytes of SVG */
};

typedef struct
{
  double measured;
  double predicted;
} Point;

typedef struct
{
  char *name;
  GArray *points; /* Point */
} Series;

struct PodScatter
{
  char *name;
  char *title;
  char *quantity;
  GPtrArray *series; /* Series */
};

static void
series_free (void *data)
{
  Series *series = data;

  g_free (series->name);
  g_array_unref (series->points);
  g_free (series);
}

PodScatter *
pod_cli_scatter_new (const char *name, const char *title, const char *quantity)
{
  PodScatter *scatter = g_new0 (PodScatter, 1);

  scatter->name = g_strcanon (g_ascii_strdown (name, -1), G_CSET_a_2_z G_CSET_DIGITS "-", '-');
  scatter->title = g_strdup (title);
  scatter->quantity = g_strdup (quantity);
  scatter->series = g_ptr_array_new_with_free_func (series_free);
  return scatter;
}

void
pod_cli_scatter_free (PodScatter *scatter)
{
  if (scatter == NULL)
    return;
  g_free (scatter->name);
  g_free (scatter->title);
  g_free (scatter->quantity);
  g_ptr_array_unref (scatter->series);
  g_free (scatter);
}

static Series *
find_series (PodScatter *scatter, const char *name)
{
  Series *series;

  for (guint i = 0; i < scatter->series->len; i++)
    if (g_str_equal (((Series *) g_ptr_array_index (scatter->series, i))->name, name))
      return g_ptr_array_index (scatter->series, i);
  series = g_new0 (Series, 1);
  series->name = g_strdup (name);
  series->points = g_array_new (FALSE, FALSE, sizeof (Point));
  g_ptr_array_add (scatter->series, series);
  return series;
}

void
pod_cli_scatter_add (PodScatter *scatter, const char *series, double measured, double predicted)
{
  const Point point = { measured, predicted };

  if (measured > 0 && predicted > 0 && isfinite (measured) && isfinite (predicted))
    g_array_append_val (find_series (scatter, series)->points, point);
}

static const Series *
series_at (const PodScatter *scatter, guint index)
{
  return g_ptr_array_index (scatter->series, index);
}

/* A block of lines for each series, as gnuplot's "index" counts them. Returns: (transfer full) */
static char *
data_text (const PodScatter *scatter)
{
  GString *data = g_string_new (NULL);

  for (guint s = 0; s < scatter->series->len; s++)
    {
      const Series *series = series_at (scatter, s);

      g_string_append_printf (data, "%s# %s: measured, predicted\n", s > 0 ? "\n\n" : "", series->name);
      for (guint i = 0; i < series->points->len; i++)
        {
          const Point *point = &g_array_index (series->points, Point, i);
          g_autofree char *measured = pod_format_double (point->measured);
          g_autofree char *predicted = pod_format_double (point->predicted);

          g_string_append_printf (data, "%s\t%s\n", measured, predicted);
        }
    }
  return g_string_free (data, FALSE);
}

/* Both axes alike, with some room. Returns how many points there are. */
static guint
find_range (const PodScatter *scatter, double *out_least, double *out_most)
{
  guint n = 0;

  *out_least = INFINITY;
  *out_most = 0;
  for (guint s = 0; s < scatter->series->len; s++)
    for (guint i = 0; i < series_at (scatter, s)->points->len; i++, n++)
      {
        const Point *point = &g_array_index (series_at (scatter, s)->points, Point, i);

        *out_least = MIN (*out_least, MIN (point->measured, point->predicted));
        *out_most = MAX (*out_most, MAX (point->measured, point->predicted));
      }
  *out_least /= 1.5;
  *out_most *= 1.5;
  return n;
}

static char *
script_text (const PodScatter *scatter, double least, double most)
{
  static const unsigned marks[] = { 7, 5, 9, 13 };
  g_autofree char *title = pod_report_quoted (scatter->title);
  g_autofree char *measured = g_strconcat ("measured: ", scatter->quantity, NULL);
  g_autofree char *x_label = pod_report_quoted (measured);
  g_autofree char *predicted = g_strconcat ("predicted: ", scatter->quantity, NULL);
  g_autofree char *y_label = pod_report_quoted (predicted);
  g_autofree char *from = pod_format_double (least);
  g_autofree char *to = pod_format_double (most);
  GString *script = g_string_new (NULL);

  g_string_append_printf (script,
                          "set title %s\nset xlabel %s\nset ylabel %s\nset logscale xy\nset format xy '%%g'\nset xrange [%s:%s]\nset yrange [%s:%s]\n"
                          "set size square\nset border 3\nset grid back lt 1 lc rgb '#e6e6e6'\nset key outside right top Left reverse\n",
                          title, x_label, y_label, from, to, from, to);
  g_string_append (script, "plot x with lines lw 1.5 lc rgb '#000000' title 'as measured', \\\n"
                           "  1.2 * x with lines dt 2 lc rgb '#888888' title '20 % more, less', x / 1.2 with lines dt 2 lc rgb '#888888' notitle");
  for (guint s = 0; s < scatter->series->len; s++)
    {
      const Series *series = series_at (scatter, s);
      g_autofree char *label = g_strdup_printf ("%s (%u)", series->name, series->points->len);
      g_autofree char *quoted = pod_report_quoted (label);

      g_string_append_printf (script, ", \\\n  '%s.tsv' index %u every %u using 1:2 with points pt %u ps 0.6 lc rgb '%s' title %s", scatter->name, s,
                              (series->points->len + MOST_DRAWN - 1) / MOST_DRAWN, marks[s / POD_N_COLOURS % G_N_ELEMENTS (marks)], pod_report_colour (s), quoted);
    }
  return g_string_free (g_string_append_c (script, '\n'), FALSE);
}

bool
pod_cli_scatter_draw (const PodScatter *scatter, const char *folder, GError **error)
{
  double least, most;

  if (find_range (scatter, &least, &most) == 0)
    return true;
  g_autofree char *data = data_text (scatter);
  g_autofree char *script = script_text (scatter, least, most);
  const PodPlot plot = { .name = scatter->name, .width = 900, .height = 560, .data = data, .script = script };

  return pod_report_plot (&plot, folder, error);
}
