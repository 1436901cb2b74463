#include "cli/sweep-plot.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/html-page.h"
#include "report/plot.h"

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
    {
      const char *value = pod_grid_value (grid, index, d);
      const bool says_itself = strchr (value, '=') != NULL; /* "fsdp=64" */

      g_string_append_printf (name, "%s%s%s%s", d > 1 ? ", " : "", says_itself ? "" : dim_at (grid, d)->key, says_itself ? "" : " ", value);
    }
  return g_string_free (name, FALSE);
}

static double
measure_time (const PodRow *row)
{
  return (double) row->time_ps / 1e12;
}

static double
measure_comm (const PodRow *row)
{
  return (double) row->forward_comm_ps / 1e12;
}

static double
measure_compute (const PodRow *row)
{
  return (double) row->forward_compute_ps / 1e12;
}

static double
measure_cost (const PodRow *row)
{
  return row->usd_per_step;
}

static double
measure_memory (const PodRow *row)
{
  return pod_row_bytes (row);
}

static double
measure_mfu (const PodRow *row)
{
  return 100 * row->mfu;
}

static const PodSweepMeasure measures[POD_N_OBJECTIVES] = {
  [POD_OBJECTIVE_TIME] = { .picture = "sweep-time", .key = "time_s", .label = "time of a step, s", .measure = measure_time },
  [POD_OBJECTIVE_COST] = { .picture = "sweep-cost", .key = "usd_per_step", .label = "cost of a step, USD", .measure = measure_cost },
  [POD_OBJECTIVE_MEMORY] = { .picture = "sweep-memory", .key = "bytes", .label = "memory of a device, bytes", .measure = measure_memory },
  [POD_OBJECTIVE_COMM] = { .picture = "sweep-comm",
                           .key = "forward_comm_s",
                           .label = "forward communication (dashed: compute), s",
                           .measure = measure_comm,
                           .other = measure_compute,
                           .other_label = "forward compute",
                           .is_logarithmic = true },
};

static const PodSweepMeasure mfu_measure = { .picture = "sweep-mfu", .label = "MFU, %", .measure = measure_mfu };

const PodSweepMeasure *
pod_cli_sweep_measure (PodObjective objective)
{
  return &measures[objective];
}

static char *
cell (const PodRow *row, PodCrossingMeasure measure)
{
  return row->status == POD_ROW_FITS ? pod_format_double (measure (row)) : g_strdup ("NaN");
}

/* Whether what lines are weighed against is the same for all of them, to a thousandth: then it is drawn once. */
static bool
is_shared (const GArray *rows, guint n_lines, PodCrossingMeasure measure)
{
  for (guint i = 0; i < rows->len; i += n_lines)
    {
      double least = INFINITY;
      double most = 0;

      for (guint l = 0; l < n_lines; l++)
        if (g_array_index (rows, PodRow, i + l).status == POD_ROW_FITS)
          {
            least = MIN (least, measure (&g_array_index (rows, PodRow, i + l)));
            most = MAX (most, measure (&g_array_index (rows, PodRow, i + l)));
          }
      if (most > least * 1.001)
        return false;
    }
  return true;
}

/* The row that has the other measure of line @line at value @i: its own, or where all share it the first that fits. */
static const PodRow *
other_row (const GArray *rows, guint n_lines, guint i, guint line, bool is_shared)
{
  const PodRow *row = &g_array_index (rows, PodRow, i * n_lines + line);

  for (guint l = 0; is_shared && row->status != POD_ROW_FITS && l < n_lines; l++)
    row = &g_array_index (rows, PodRow, i * n_lines + l);
  return row;
}

/* How many lines the other measure has. */
static guint
n_others (const GArray *rows, guint n_lines, const PodSweepMeasure *measure)
{
  return measure->other == NULL ? 0 : is_shared (rows, n_lines, measure->other) ? 1 : n_lines;
}

static void
append_heading (GString *data, const PodGrid *grid, guint n_lines, guint n_other, const PodSweepMeasure *measure)
{
  g_string_append (data, dim_at (grid, 0)->key);
  for (guint l = 0; l < n_lines + n_other; l++)
    {
      g_autofree char *name = pod_cli_line_name (grid, l % n_lines);

      if (l < n_lines)
        g_string_append_printf (data, "\t%s", *name != '\0' ? name : "value");
      else
        g_string_append_printf (data, "\t%s%s%s", measure->other_label, n_other > 1 ? ", " : "", n_other > 1 ? name : "");
    }
}

static void
append_value (GString *data, const PodGrid *grid, guint index)
{
  double x;

  if (pod_grid_is_numeric (grid, 0) && pod_parse_quantity (pod_grid_value (grid, index, 0), POD_UNIT_COUNT, &x, NULL))
    {
      g_autofree char *number = pod_format_double (x);

      g_string_append_printf (data, "\n%s", number);
    }
  else
    g_string_append_printf (data, "\n%s", pod_grid_value (grid, index, 0));
}

/* A line for each value of the first dimension, a column for each combination of the others, then those of the other measure. Returns:
 * (transfer full) */
static char *
lines_data (const PodGrid *grid, const GArray *rows, const PodSweepMeasure *measure, guint n_lines)
{
  const guint n_other = n_others (rows, n_lines, measure);
  GString *data = g_string_new (NULL);

  append_heading (data, grid, n_lines, n_other, measure);
  for (guint i = 0; i < rows->len / n_lines; i++)
    {
      append_value (data, grid, i * n_lines);
      for (guint l = 0; l < n_lines + n_other; l++)
        {
          const PodRow *row = l < n_lines ? &g_array_index (rows, PodRow, i * n_lines + l) : other_row (rows, n_lines, i, l - n_lines, n_other == 1);
          g_autofree char *text = cell (row, l < n_lines ? measure->measure : measure->other);

          g_string_append_printf (data, "\t%s", text);
        }
    }
  return g_string_free (g_string_append_c (data, '\n'), FALSE);
}

enum
{
  MAX_LINES = 16, /* more cannot be told apart */
};

/* A ring around each crossing, with its place on the first axis. */
static void
mark_crossings (const GArray *crossings, GString *script)
{
  for (guint i = 0; i < crossings->len; i++)
    {
      const PodCrossing *crossing = &g_array_index (crossings, PodCrossing, i);
      g_autofree char *x = pod_format_double (crossing->at);
      g_autofree char *y = pod_format_double (crossing->value);

      g_string_append_printf (script, "set label '%.4g' at %s,%s point pt 6 ps 2.2 lw 2 lc rgb '#000000' offset 1.2,-0.8 front\n", crossing->at, x, y);
    }
}

static void
append_axes (GString *script, const PodGrid *grid, const PodSweepMeasure *measure, guint n_lines)
{
  const bool has_numbers = pod_grid_is_numeric (grid, 0);
  g_autofree char *x_label = pod_report_quoted (dim_at (grid, 0)->key);

  g_string_append_printf (script, "set border 3\nset rmargin 6\nset tics nomirror out\nset grid back lt 1 lc rgb '#e6e6e6'\nset xlabel %s\nset ylabel '%s'\n%s", x_label, measure->label,
                          n_lines > 1 ? "set key below left Left reverse\n" : "unset key\n");
  g_string_append (script, has_numbers ? "set logscale x 2\nset xtics rotate by -30\n" : "set xtics rotate by -20\nset offsets 0.3, 0.3, 0, 0\n");
  g_string_append (script, measure->is_logarithmic ? "set logscale y\nset format y '%g'\n" : "set yrange [0:*]\n");
}

/* Column @column of the data, drawn as @style says. */
static void
append_curve (GString *script, const char *name, bool has_numbers, guint column, const char *style, const char *title)
{
  g_autofree char *quoted = pod_report_quoted (title);

  g_string_append_printf (script, "%s'%s.tsv' skip 1 using %s:%u%s with %s title %s", column > 2 ? ", \\\n  " : "", name, has_numbers ? "1" : "0", column, has_numbers ? "" : ":xtic(1)", style,
                          quoted);
}

static void
append_curves (GString *script, const PodGrid *grid, const PodSweepMeasure *measure, guint n_lines, guint n_other)
{
  const bool has_numbers = pod_grid_is_numeric (grid, 0);

  for (guint l = 0; l < MIN (n_lines, MAX_LINES); l++)
    {
      g_autofree char *title = pod_cli_line_name (grid, l);
      g_autofree char *style = g_strdup_printf ("linespoints lw 2 pt %u ps 1.2 lc rgb '%s'", l % 2 == 0 ? 7 : 5, pod_report_colour (l));

      append_curve (script, measure->picture, has_numbers, l + 2, style, title);
    }
  for (guint l = 0; l < MIN (n_other, MAX_LINES); l++)
    {
      g_autofree char *line = n_other > 1 ? pod_cli_line_name (grid, l) : g_strdup ("");
      g_autofree char *title = g_strdup_printf ("%s%s%s", measure->other_label, n_other > 1 ? ", " : "", line);
      g_autofree char *style = g_strdup_printf ("lines lw 2 dt 2 lc rgb '%s'", n_other > 1 ? pod_report_colour (l) : "#000000");

      append_curve (script, measure->picture, has_numbers, n_lines + l + 2, style, title);
    }
  g_string_append_c (script, '\n');
}

static bool
plot_lines (const PodGrid *grid, const GArray *rows, const PodSweepMeasure *measure, const char *folder, GError **error)
{
  const guint n_lines = rows->len / dim_at (grid, 0)->values->len;
  g_autofree char *data = lines_data (grid, rows, measure, n_lines);
  g_autoptr (GArray) crossings = pod_crossings (grid, rows, measure->measure);
  g_autoptr (GArray) balances = measure->other != NULL ? pod_balances (grid, rows, measure->measure, measure->other) : NULL;
  g_autoptr (GString) script = g_string_new (NULL);
  PodPlot plot = { .name = measure->picture, .width = 900, .height = 520, .data = data };

  append_axes (script, grid, measure, n_lines);
  mark_crossings (crossings, script);
  if (balances != NULL)
    mark_crossings (balances, script);
  g_string_append (script, "plot ");
  append_curves (script, grid, measure, n_lines, n_others (rows, n_lines, measure));
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
pod_cli_plot_sweep (const PodGrid *grid, const GArray *rows, PodObjective objective, const char *folder, GError **error)
{
  if (!pod_rows_any_fits (rows))
    return true;
  return plot_lines (grid, rows, &measures[POD_OBJECTIVE_TIME], folder, error) && plot_lines (grid, rows, &mfu_measure, folder, error)
         && (objective == POD_OBJECTIVE_TIME || plot_lines (grid, rows, &measures[objective], folder, error))
         && (grid->dims->len < 2 || plot_heat (grid, rows, folder, error));
}
