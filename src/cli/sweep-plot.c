#include "cli/sweep-plot.h"

#include <math.h>

#include "base/units.h"
#include "report/html-page.h"
#include "report/plot.h"
#include "search/crossing.h"

static const PodGridDim *
dim_at (const PodGrid *grid, guint index)
{
  return g_ptr_array_index (grid->dims, index);
}

char *
pod_cli_line_name (const PodGrid *grid, uint64_t index)
{
  GString *name = g_string_new (NULL);

  for (guint d = 1; d < grid->dims->len; d++)
    g_string_append_printf (name, "%s%s %s", d > 1 ? ", " : "", dim_at (grid, d)->key, pod_grid_value (grid, index, d));
  return g_string_free (name, FALSE);
}

static double
measure_time (const PodRow *row)
{
  return (double) row->time_ps / 1e12;
}

static double
measure_mfu (const PodRow *row)
{
  return 100 * row->mfu;
}

static char *
cell (const PodRow *row, PodCrossingMeasure measure)
{
  return row->status == POD_ROW_FITS ? pod_format_double (measure (row)) : g_strdup ("NaN");
}

/* A line for each value of the first dimension, a column for each combination of the others. Returns: (transfer full) */
static char *
lines_data (const PodGrid *grid, const GArray *rows, PodCrossingMeasure measure, guint n_lines)
{
  GString *data = g_string_new (dim_at (grid, 0)->key);

  for (guint l = 0; l < n_lines; l++)
    {
      g_autofree char *name = pod_cli_line_name (grid, l);

      g_string_append_printf (data, "\t%s", *name != '\0' ? name : "value");
    }
  for (guint i = 0; i < rows->len; i++)
    {
      g_autofree char *text = cell (&g_array_index (rows, PodRow, i), measure);
      double x;

      if (i % n_lines == 0 && pod_grid_is_numeric (grid, 0) && pod_parse_quantity (pod_grid_value (grid, i, 0), POD_UNIT_COUNT, &x, NULL))
        {
          g_autofree char *number = pod_format_double (x);

          g_string_append_printf (data, "\n%s", number);
        }
      else if (i % n_lines == 0)
        g_string_append_printf (data, "\n%s", pod_grid_value (grid, i, 0));
      g_string_append_printf (data, "\t%s", text);
    }
  return g_string_free (g_string_append_c (data, '\n'), FALSE);
}

enum
{
  MAX_LINES = 16, /* more cannot be told apart */
};

/* A ring around each crossing of two lines, with its place on the first axis. */
static void
mark_crossings (const PodGrid *grid, const GArray *rows, PodCrossingMeasure measure, GString *script)
{
  g_autoptr (GArray) crossings = pod_crossings (grid, rows, measure);

  for (guint i = 0; i < crossings->len; i++)
    {
      const PodCrossing *crossing = &g_array_index (crossings, PodCrossing, i);
      g_autofree char *x = pod_format_double (crossing->at);
      g_autofree char *y = pod_format_double (crossing->value);

      g_string_append_printf (script, "set label '%.4g' at %s,%s point pt 6 ps 2.2 lw 2 lc rgb '#000000' offset 1.2,-0.8 front\n", crossing->at, x, y);
    }
}

static bool
plot_lines (const PodGrid *grid, const GArray *rows, PodCrossingMeasure measure, const char *name, const char *y_label, const char *folder, GError **error)
{
  const guint n_lines = rows->len / dim_at (grid, 0)->values->len;
  const bool has_numbers = pod_grid_is_numeric (grid, 0);
  g_autofree char *data = lines_data (grid, rows, measure, n_lines);
  g_autofree char *x_label = pod_report_quoted (dim_at (grid, 0)->key);
  g_autoptr (GString) script = g_string_new ("set border 3\nset tics nomirror out\nset grid back lt 1 lc rgb '#e6e6e6'\n");
  PodPlot plot = { .name = name, .width = 900, .height = 520, .data = data };

  g_string_append_printf (script, "set xlabel %s\nset ylabel '%s'\nset yrange [0:*]\n%s", x_label, y_label, n_lines > 1 ? "set key outside right top\n" : "unset key\n");
  if (has_numbers)
    g_string_append (script, "set logscale x 2\nset xtics rotate by -30\n");
  else
    g_string_append (script, "set xtics rotate by -20\nset offsets 0.3, 0.3, 0, 0\n");
  mark_crossings (grid, rows, measure, script);
  g_string_append (script, "plot ");
  for (guint l = 0; l < MIN (n_lines, MAX_LINES); l++)
    {
      g_autofree char *title = pod_cli_line_name (grid, l);
      g_autofree char *quoted = pod_report_quoted (title);

      g_string_append_printf (script, "%s'%s.tsv' skip 1 using %s with linespoints lw 2 pt %u ps 1.2 lc rgb '%s' title %s", l > 0 ? ", \\\n  " : "", name,
                              has_numbers ? "1:%COLUMN%" : "0:%COLUMN%:xtic(1)", l % 2 == 0 ? 7 : 5, pod_report_colour (l), quoted);
      {
        g_autofree char *column = g_strdup_printf ("%u", l + 2);

        g_string_replace (script, "%COLUMN%", column, 0);
      }
    }
  g_string_append_c (script, '\n');
  plot.script = script->str;
  return pod_report_plot (&plot, folder, error);
}

/* MFU over the first two dimensions; of others their first value. */
static bool
plot_heat (const PodGrid *grid, const GArray *rows, const char *folder, GError **error)
{
  const PodGridDim *across = dim_at (grid, 1);
  const PodGridDim *down = dim_at (grid, 0);
  const guint n_rest = rows->len / across->values->len / down->values->len;
  g_autoptr (GString) data = g_string_new (down->key);
  g_autofree char *x_label = pod_report_quoted (across->key);
  g_autofree char *y_label = pod_report_quoted (down->key);
  g_autoptr (GString) script = g_string_new (NULL);
  PodPlot plot = { .name = "heat-mfu", .width = 160 + 90 * MAX (across->values->len, 6), .height = 160 + 44 * MAX (down->values->len, 4) };

  for (guint x = 0; x < across->values->len; x++)
    g_string_append_printf (data, "\t%s", (const char *) g_ptr_array_index (across->values, x));
  for (guint y = 0; y < down->values->len; y++)
    {
      g_string_append_printf (data, "\n%s", (const char *) g_ptr_array_index (down->values, y));
      for (guint x = 0; x < across->values->len; x++)
        {
          g_autofree char *text = cell (&g_array_index (rows, PodRow, (y * across->values->len + x) * n_rest), measure_mfu);

          g_string_append_printf (data, "\t%s", text);
        }
    }
  g_string_append_c (data, '\n');
  g_string_append_printf (script,
                          "set border 0\nset tics scale 0\nset xtics rotate by -30\nset xlabel %s\nset ylabel %s\nset cblabel 'MFU, %%'\nset cbrange [0:*]\nset yrange [*:*] reverse\nunset key\n"
                          "set palette defined (0 '#ffffff', 1 '#56b4e9')\n"
                          "plot 'heat-mfu.tsv' matrix rowheaders columnheaders using 1:2:3 with image, \\\n"
                          "  '' matrix rowheaders columnheaders using 1:2:($3 == $3 ? sprintf('%%.1f', $3) : 'none') with labels tc rgb '#000000'\n",
                          x_label, y_label);
  plot.data = data->str;
  plot.script = script->str;
  return pod_report_plot (&plot, folder, error);
}

bool
pod_cli_plot_sweep (const PodGrid *grid, const GArray *rows, const char *folder, GError **error)
{
  return plot_lines (grid, rows, measure_time, "sweep-time", "time of a step, s", folder, error)
         && plot_lines (grid, rows, measure_mfu, "sweep-mfu", "MFU, %", folder, error) && (grid->dims->len < 2 || plot_heat (grid, rows, folder, error));
}
