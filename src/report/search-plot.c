#include "report/search-plot-private.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/compare-private.h"
#include "report/html-page.h"
#include "report/plot.h"

/* The best of a search as bars, and the layouts that no other beats in time and in memory or chips
 * as a staircase. */

static const char *const lists[] = { "best", "pareto.time_memory", "pareto.time_chips" };

/* Whether @differs of the first row of all lists and any other. */
static bool
any_row (JsonObject *result, bool (*differs) (JsonObject *a, JsonObject *b))
{
  JsonObject *first = NULL;

  for (unsigned l = 0; l < G_N_ELEMENTS (lists); l++)
    {
      JsonArray *rows = pod_report_array (result, lists[l]);

      for (guint i = 0; rows != NULL && i < json_array_get_length (rows); i++)
        {
          JsonObject *row = json_array_get_object_element (rows, i);

          first = first != NULL ? first : row;
          if (differs (first, row))
            return true;
        }
    }
  return false;
}

static bool
is_other_machine (JsonObject *a, JsonObject *b)
{
  return g_strcmp0 (pod_report_string (a, "topology"), pod_report_string (b, "topology")) != 0;
}

static bool
uses_other_chips (JsonObject *a, JsonObject *b)
{
  return pod_report_number (a, "chips_used") != pod_report_number (b, "chips_used");
}

bool
pod_search_has_machines (JsonObject *result)
{
  return any_row (result, is_other_machine);
}

bool
pod_search_has_chips (JsonObject *result)
{
  return any_row (result, uses_other_chips);
}

double
pod_search_bytes (JsonObject *row)
{
  return pod_report_number (row, "memory.peak_bytes")
         + pod_report_number (row, "memory.reserved_bytes");
}

char *
pod_search_label (JsonObject *row, bool has_machines)
{
  GString *label = g_string_new (NULL);
  JsonObject *options = pod_report_object (row, "options");
  g_autoptr (GList) names = options != NULL ? json_object_get_members (options) : NULL;

  if (has_machines)
    g_string_append_printf (label, "%s: ", pod_report_string_or (row, "topology", "?"));
  g_string_append (label, pod_report_string_or (row, "layout", "?"));
  for (GList *name = names; name != NULL; name = name->next)
    {
      g_autofree char *words = g_strdelimit (g_strdup (name->data), "_", '-');

      g_string_append_printf (label, ", %s %s", words,
                              json_object_get_string_member (options, name->data));
    }
  return g_string_free (label, FALSE);
}

unsigned
pod_search_n_bars (JsonObject *result)
{
  JsonArray *best = pod_report_array (result, "best");

  return best != NULL ? MIN (json_array_get_length (best), POD_SEARCH_MOST_BARS) : 0;
}

char *
pod_search_heading (JsonObject *result)
{
  JsonArray *best = pod_report_array (result, "best");
  const guint n = pod_report_length (best);
  GString *words = g_string_new (NULL);
  JsonNode *partial = pod_report_node (result, "is_partial");

  g_string_printf (words, "best by %s%s: where a step goes",
                   pod_report_string_or (result, "objective", "time"),
                   partial != NULL && json_node_get_boolean (partial) ? ", so far" : "");
  if (n > POD_SEARCH_MOST_BARS)
    g_string_append_printf (words, ", the first %d of %u", POD_SEARCH_MOST_BARS, n);
  return g_string_free (words, FALSE);
}

char *
pod_search_value (JsonObject *result, JsonObject *row)
{
  const char *objective = pod_report_string_or (result, "objective", "time");
  g_autofree char *time = pod_format_seconds (pod_report_number (row, "step.time_s"));
  g_autofree char *what = NULL;

  if (strcmp (objective, "memory") == 0)
    what = pod_format_bytes (pod_search_bytes (row), false);
  else if (strcmp (objective, "comm") == 0)
    what = pod_format_seconds (pod_report_number (row, "step.forward_comm_s"));
  else if (strcmp (objective, "cost") == 0)
    what = g_strdup_printf ("%.4g USD", pod_report_number (row, "cost.usd_per_step"));
  return what != NULL ? g_strdup_printf ("%s, %s", time, what) : g_steal_pointer (&time);
}

/* -- bars -------------------------------------------------------------------------------------- */

static bool
plot_best (JsonObject *result, const char *title, const char *folder, GError **error)
{
  const bool has_machines = pod_search_has_machines (result);
  g_autofree char *words = pod_search_heading (result);
  g_autoptr (GPtrArray) labels = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) values = g_ptr_array_new_with_free_func (g_free);
  PodStepBars plot = { .name = "search-best", .title = title, .words = words, .column = "layout" };

  plot.rows = pod_report_array (result, "best");
  plot.n_rows = pod_search_n_bars (result);
  for (unsigned i = 0; i < plot.n_rows; i++)
    {
      JsonObject *row = json_array_get_object_element (plot.rows, i);

      g_ptr_array_add (labels, pod_search_label (row, has_machines));
      g_ptr_array_add (values, pod_search_value (result, row));
    }
  plot.labels = (const char *const *) labels->pdata;
  plot.values = (const char *const *) values->pdata;
  return pod_report_step_bars_plot (&plot, folder, error);
}

/* -- fronts ------------------------------------------------------------------------------------ */

enum
{
  MOST_NAMES = 12,   /* listed under a front; all are in its data */
  PLOT_WIDTH = 660,  /* px of the front in its picture, roughly */
  PLOT_HEIGHT = 310,
};

typedef struct
{
  const char *name; /* of the picture */
  const char *path; /* of its rows */
  const char *words;
  const char *x_column;
  const char *x_name;
  double (*x) (JsonObject *row);
  double x_size; /* of the unit of the axis */
  bool is_logarithmic;
} Front;

static double
chips_of (JsonObject *row)
{
  return pod_report_number (row, "chips_used");
}

static void
add_points (GString *data, const Front *front, JsonArray *rows, bool is_front, bool has_machines)
{
  for (guint i = 0; rows != NULL && i < json_array_get_length (rows); i++)
    {
      JsonObject *row = json_array_get_object_element (rows, i);
      g_autofree char *label = pod_search_label (row, has_machines);
      g_autofree char *x = pod_format_double (front->x (row));
      g_autofree char *y = pod_format_double (pod_report_number (row, "step.time_s"));

      g_string_append_printf (data, "%s\t%u\t%s\t%s\t%s\n", is_front ? "front" : "best", i + 1, x, y,
                              label);
    }
}

/* Where the point of a row is, in px of the picture, roughly: names must not lie on each other. */
static void
place_of (const Front *front, JsonObject *row, double *x, double *y)
{
  *x = front->x (row);
  *x = front->is_logarithmic ? log2 (*x) : *x;
  *y = pod_report_number (row, "step.time_s");
}

/* Appends (element-type guint) the rows, in their order, that are @gap px from all before them. */
static void
choose (const Front *front, JsonArray *rows, double gap, GArray *chosen)
{
  double most[2], least[2];
  const guint n = json_array_get_length (rows);

  place_of (front, json_array_get_object_element (rows, 0), &most[0], &least[1]);
  place_of (front, json_array_get_object_element (rows, n - 1), &least[0], &most[1]);
  g_array_set_size (chosen, 0);
  for (guint i = 0; i < n; i++)
    {
      double x, y;
      bool is_free = true;

      place_of (front, json_array_get_object_element (rows, i), &x, &y);
      for (guint c = 0; c < chosen->len && is_free; c++)
        {
          double other_x, other_y;

          place_of (front, json_array_get_object_element (rows, g_array_index (chosen, guint, c)),
                    &other_x, &other_y);
          is_free = fabs (x - other_x) * PLOT_WIDTH > 2 * gap * fabs (most[0] - least[0])
                    || fabs (y - other_y) * PLOT_HEIGHT > gap * fabs (most[1] - least[1]);
        }
      if (is_free)
        g_array_append_val (chosen, i);
    }
}

/* The rows that are named: at most MOST_NAMES, spread over the front. Returns: (transfer full) */
static GArray *
named_rows (const Front *front, JsonArray *rows)
{
  GArray *chosen = g_array_new (FALSE, FALSE, sizeof (guint));

  for (double gap = 16; chosen->len == 0 || chosen->len > MOST_NAMES; gap *= 1.25)
    choose (front, rows, gap, chosen);
  return chosen;
}

/* Numbers at the points that are named. */
static void
add_numbers (GString *script, const Front *front, JsonArray *rows, const GArray *named,
             PodReportUnit unit)
{
  for (guint c = 0; c < named->len; c++)
    {
      const guint i = g_array_index (named, guint, c);
      JsonObject *row = json_array_get_object_element (rows, i);
      g_autofree char *x = pod_format_double (front->x (row) / front->x_size);
      g_autofree char *y = pod_format_double (pod_report_number (row, "step.time_s") / unit.size);

      g_string_append_printf (script, "set label '%u' at %s,%s left offset 0.8,0.7\n", i + 1, x, y);
    }
}

/* "2  fsdp=8, micro-batch 2": what the numbers stand for. */
static void
add_names (GString *script, JsonArray *rows, const GArray *named, bool has_machines)
{
  for (guint c = 0; c < named->len; c++)
    {
      const guint i = g_array_index (named, guint, c);
      g_autofree char *label
          = pod_search_label (json_array_get_object_element (rows, i), has_machines);
      g_autofree char *line = g_strdup_printf ("%u  %s", i + 1, label);
      g_autofree char *quoted = pod_report_quoted (line);

      g_string_append_printf (script, ", \\\n     NaN with points pt 7 ps 0 title %s", quoted);
    }
}

/* Tics at each number of chips that a point has. */
static void
add_tics (GString *script, JsonArray *rows)
{
  g_string_append (script, "set logscale x 2\nset xtics (");
  for (guint i = 0; i < json_array_get_length (rows); i++)
    {
      g_autofree char *x
          = pod_format_double (chips_of (json_array_get_object_element (rows, i)));

      g_string_append_printf (script, "%s'%s' %s", i > 0 ? ", " : "", x, x);
    }
  g_string_append (script, ")\n");
}

static bool
plot_front (JsonObject *result, const Front *front, const char *title, const char *folder,
            GError **error)
{
  const bool has_machines = pod_search_has_machines (result);
  JsonArray *rows = pod_report_array (result, front->path);
  const guint n = pod_report_length (rows);
  g_autofree char *x_scale = pod_format_double (1 / front->x_size);
  g_autofree char *y_scale = NULL;
  g_autoptr (GString) data = g_string_new (NULL);
  g_autoptr (GString) script
      = g_string_new ("set border 3\nset grid back lt 1 lc rgb '#e6e6e6'\nset offsets graph 0.08, "
                      "graph 0.08, graph 0.1, graph 0.1\nset key below Left reverse vertical "
                      "maxcols 1 samplen 1\n");
  g_autoptr (GArray) named = NULL;
  PodReportUnit unit;

  if (n == 0)
    return true;
  unit = pod_report_time_unit (
      pod_report_number (json_array_get_object_element (rows, n - 1), "step.time_s"));
  y_scale = pod_format_double (1 / unit.size);
  named = named_rows (front, rows);
  g_string_printf (data, "set\tnumber\t%s\ttime_s\tlayout\n", front->x_column);
  add_points (data, front, rows, true, has_machines);
  add_points (data, front, pod_report_array (result, "best"), false, has_machines);
  pod_report_append_title (script, title, front->words, "");
  g_string_append_printf (script, "set xlabel '%s'\nset ylabel 'time of a step (%s)'\n",
                          front->x_name, unit.name);
  if (front->is_logarithmic)
    add_tics (script, rows);
  add_numbers (script, front, rows, named, unit);
  g_string_append_printf (
      script,
      "plot NaN with points ps 0 title ' ', \\\n     '%s.tsv' skip 1 using ($3*%s):(strcol(1) eq 'best' ? $4*%s : NaN) with points pt 6 ps "
      "1.2 lc rgb '#8c8c8c' title 'the best by %s', \\\n"
      "     '' skip 1 every ::0::%u using ($3*%s):($4*%s) with fsteps lw 2 lc rgb '%s' notitle, "
      "\\\n"
      "     '' skip 1 every ::0::%u using ($3*%s):($4*%s) with points pt 7 ps 1.3 lc rgb '%s' "
      "title 'no other layout is better in both (%u)'",
      front->name, x_scale, y_scale, pod_report_string_or (result, "objective", "time"), n - 1,
      x_scale, y_scale, pod_report_colour (0), n - 1, x_scale, y_scale, pod_report_colour (0), n);
  add_names (script, rows, named, has_machines);
  g_string_append_c (script, '\n');
  return pod_report_plot (&(PodPlot){ front->name, 900, 560 + 18 * named->len,
                                      data->str, script->str },
                          folder, error);
}

bool
pod_report_search_plots (JsonObject *result, const char *title, const char *folder, GError **error)
{
  g_return_val_if_fail (result != NULL && title != NULL && folder != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  const Front memory = { .name = "search-memory",
                         .path = "pareto.time_memory",
                         .words = "time against memory",
                         .x_column = "memory_bytes",
                         .x_name = "memory of a device, peak and reserve (GB)",
                         .x = pod_search_bytes,
                         .x_size = 1e9 };
  const Front chips = { .name = "search-chips",
                        .path = "pareto.time_chips",
                        .words = "time against chips",
                        .x_column = "chips",
                        .x_name = "chips used",
                        .x = chips_of,
                        .x_size = 1,
                        .is_logarithmic = true };

  return plot_best (result, title, folder, error)
         && plot_front (result, &memory, title, folder, error)
         && (!pod_search_has_chips (result) || plot_front (result, &chips, title, folder, error));
}
