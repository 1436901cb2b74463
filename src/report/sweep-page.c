#include "report/report-private.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/html-page.h"

/* `podsim sweep --report`: a grid of runs. */

#define ROW(...) ((const char *const[]){ __VA_ARGS__, NULL })

enum
{
  MOST_LINES = 16,  /* more cannot be told apart */
  MOST_ROWS = 2000, /* more than anybody reads; --csv has all */
};

/* What a chart shows of the rows. */
typedef struct
{
  const char *heading;
  const char *path; /* of a row; more are added to it */
  const char *more; /* (nullable) */
  double size;      /* of the unit */
  const char *name; /* of the axis, with the unit */
  const char *mark; /* (nullable) its value in crossings[] and balances[] */
} Measure;

static const struct
{
  const char *objective;
  Measure measure;
} measures[] = {
  { "time", { "Step time", "step.time_s", NULL, 1, "time of a step, s", "time_s" } },
  { "cost", { "Cost", "cost.usd_per_step", NULL, 1, "cost of a step, USD", "usd_per_step" } },
  { "memory",
    { "Memory", "memory.peak_bytes", "memory.reserved_bytes", 1e9, "memory of a device, GB",
      "bytes" } },
  { "comm",
    { "Forward communication", "step.forward_comm_s", NULL, 1e-3,
      "forward communication (dashed: compute), ms", "forward_comm_s" } },
};

static const Measure mfu_measure = { "MFU", "step.mfu", NULL, 0.01, "MFU, %", NULL };
static const Measure efficiency_measure = { "Efficiency",
                                            "scaling.efficiency_ratio",
                                            NULL,
                                            0.01,
                                            "throughput of a chip, % of that of the fewest chips",
                                            NULL };
static const Measure compute_measure
    = { "Compute", "step.forward_compute_s", NULL, 1e-3, "forward compute", NULL };

/* What the page is made of. */
typedef struct
{
  JsonObject *result;
  JsonArray *axes;
  JsonArray *rows;
  const Measure *measure; /* of the objective */
  guint n_values;         /* of the first axis */
  guint n_lines;
  double *x; /* (nullable) (owned) the values of the first axis where all are numbers above 0 */
} Sweep;

static JsonObject *
at (JsonArray *array, guint i)
{
  return json_array_get_object_element (array, i);
}

static const char *
key_of (const Sweep *sweep, guint axis)
{
  return pod_report_string_or (at (sweep->axes, axis), "key", "?");
}

/* What the row at @index has for @axis. Keys may have dots in them. */
static const char *
varied (const Sweep *sweep, guint index, guint axis)
{
  JsonObject *values = json_object_get_object_member (at (sweep->rows, index), "varied");

  return json_object_get_string_member (values, key_of (sweep, axis));
}

/* The values of all axes but the first, in line @line. Returns: (transfer full) */
static char *
line_name (const Sweep *sweep, guint line)
{
  GString *name = g_string_new (NULL);

  for (guint a = 1; a < pod_report_length (sweep->axes); a++)
    {
      const char *value = varied (sweep, line, a);
      const bool says_itself = strchr (value, '=') != NULL; /* "fsdp=64" */

      g_string_append_printf (name, "%s%s%s%s", a > 1 ? ", " : "",
                              says_itself ? "" : key_of (sweep, a), says_itself ? "" : " ", value);
    }
  return g_string_free (name, FALSE);
}

static bool
fits (JsonObject *row)
{
  return strcmp (pod_report_string_or (row, "status", ""), "fits") == 0;
}

static double
value_of (JsonObject *row, const Measure *measure)
{
  if (!fits (row) || pod_report_node (row, measure->path) == NULL)
    return NAN;
  return (pod_report_number (row, measure->path)
          + (measure->more != NULL ? pod_report_number (row, measure->more) : 0))
         / measure->size;
}

static void
read_numbers (Sweep *sweep)
{
  JsonArray *values = pod_report_array (at (sweep->axes, 0), "values");

  sweep->n_values = pod_report_length (values);
  sweep->n_lines = pod_report_length (sweep->rows) / MAX (sweep->n_values, 1);
  sweep->x = g_new0 (double, sweep->n_values + 1);
  for (guint i = 0; i < sweep->n_values; i++)
    if (!pod_parse_quantity (json_array_get_string_element (values, i), POD_UNIT_COUNT,
                             &sweep->x[i], NULL)
        || !(sweep->x[i] > 0))
      {
        g_clear_pointer (&sweep->x, g_free);
        return;
      }
}

/* -- summary ----------------------------------------------------------------------------------- */

static void
append_summary (PodReportHtml *page, const Sweep *sweep)
{
  g_autoptr (PodTable) facts = pod_table_new (ROW ("", "", ""));
  JsonNode *partial = pod_report_node (sweep->result, "is_partial");
  g_autofree char *n_rows = pod_report_grouped (pod_report_length (sweep->rows));
  g_autofree char *fitting = NULL;
  guint n_fitting = 0;

  for (guint i = 0; i < pod_report_length (sweep->rows); i++)
    n_fitting += fits (at (sweep->rows, i));
  fitting = pod_report_grouped (n_fitting);
  pod_report_html_section (page, "summary", "Summary", NULL);
  if (partial != NULL && json_node_get_boolean (partial))
    pod_report_html_paragraph (page, "The sweep was interrupted: not all combinations were run.");
  pod_table_add_row (facts, ROW ("combinations", n_rows, "each a simulated step"));
  pod_table_add_row (facts, ROW ("fit", fitting, "in memory, and divide"));
  for (guint a = 0; a < pod_report_length (sweep->axes); a++)
    {
      JsonArray *values = pod_report_array (at (sweep->axes, a), "values");
      g_autofree char *n = g_strdup_printf ("%u values", pod_report_length (values));
      g_autofree char *ends
          = g_strdup_printf ("%s to %s", json_array_get_string_element (values, 0),
                             json_array_get_string_element (values, pod_report_length (values) - 1));

      pod_table_add_row (facts, ROW (key_of (sweep, a), n, ends));
    }
  pod_report_html_facts (page, facts);
}

/* -- charts ------------------------------------------------------------------------------------ */

/* Whether all lines have the same of @measure, to a thousandth. */
static bool
is_shared (const Sweep *sweep, const Measure *measure)
{
  for (guint v = 0; v < sweep->n_values; v++)
    {
      double least = INFINITY;
      double most = 0;

      for (guint l = 0; l < sweep->n_lines; l++)
        {
          const double value = value_of (at (sweep->rows, v * sweep->n_lines + l), measure);

          if (isnan (value))
            continue;
          least = MIN (least, value);
          most = MAX (most, value);
        }
      if (most > least * 1.001)
        return false;
    }
  return true;
}

static void
fill (const Sweep *sweep, const Measure *measure, guint line, bool may_borrow, double *out)
{
  for (guint v = 0; v < sweep->n_values; v++)
    {
      out[v] = value_of (at (sweep->rows, v * sweep->n_lines + line), measure);
      for (guint l = 0; may_borrow && isnan (out[v]) && l < sweep->n_lines; l++)
        out[v] = value_of (at (sweep->rows, v * sweep->n_lines + l), measure);
    }
}

/* Rings where lines cross each other, or what they are weighed against. */
static void
add_marks (const Sweep *sweep, JsonArray *entries, bool is_balance, GArray *marks, GPtrArray *names)
{
  for (guint i = 0; i < pod_report_length (entries); i++)
    {
      JsonObject *entry = at (entries, i);
      PodHtmlMark mark
          = { .x = pod_report_number (entry, "at"),
              .y = pod_report_number (entry, sweep->measure->mark) / sweep->measure->size };
      char *name = is_balance ? g_strdup_printf ("%.4g: %s as long as its compute", mark.x,
                                                 pod_report_string_or (entry, "line", ""))
                              : g_strdup_printf ("%.4g: %s crosses %s", mark.x,
                                                 pod_report_string_or (entry, "less_before", ""),
                                                 pod_report_string_or (entry, "less_after", ""));

      g_ptr_array_add (names, name);
      mark.name = name;
      g_array_append_val (marks, mark);
    }
}

/* @other: (nullable) dashed beside @measure. */
static void
append_chart (PodReportHtml *page, const Sweep *sweep, const Measure *measure, const Measure *other)
{
  const bool is_objective = measure == sweep->measure;
  const guint n_lines = MIN (sweep->n_lines, MOST_LINES);
  const guint n_others = other == NULL ? 0 : is_shared (sweep, other) ? 1 : n_lines;
  g_autofree double *values = g_new0 (double, (gsize) (n_lines + n_others) * sweep->n_values + 1);
  g_autoptr (GArray) lines = g_array_new (FALSE, FALSE, sizeof (PodHtmlLine));
  g_autoptr (GArray) marks = g_array_new (FALSE, FALSE, sizeof (PodHtmlMark));
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *caption
      = g_strdup_printf ("%s over %s%s", measure->heading, key_of (sweep, 0),
                         sweep->n_lines > n_lines ? ", the first 16 lines" : "");

  for (guint l = 0; l < n_lines + n_others; l++)
    {
      const bool is_other = l >= n_lines;
      const guint line = is_other ? l - n_lines : l;
      g_autofree char *own = line_name (sweep, line);
      char *name = !is_other ? g_strdup (*own != '\0' ? own : measure->heading)
                             : g_strdup_printf ("%s%s%s", other->name, n_others > 1 ? ", " : "",
                                                n_others > 1 ? own : "");
      const PodHtmlLine entry = { .name = name,
                                  .x = sweep->x,
                                  .y = values + (gsize) l * sweep->n_values,
                                  .n_points = sweep->n_values,
                                  .is_limit = is_other };

      g_ptr_array_add (names, name);
      fill (sweep, is_other ? other : measure, line, is_other && n_others == 1,
            values + (gsize) l * sweep->n_values);
      g_array_append_val (lines, entry);
    }
  if (is_objective)
    {
      add_marks (sweep, pod_report_array (sweep->result, "crossings"), false, marks, names);
      add_marks (sweep, pod_report_array (sweep->result, "balances"), true, marks, names);
    }
  pod_report_html_chart (page, &(PodHtmlChart){ .caption = caption,
                                                .x_name = key_of (sweep, 0),
                                                .y_name = measure->name,
                                                .lines = (const PodHtmlLine *) lines->data,
                                                .n_lines = lines->len,
                                                .marks = (const PodHtmlMark *) marks->data,
                                                .n_marks = marks->len,
                                                .is_logarithmic_x = true,
                                                .is_logarithmic_y = other != NULL });
}

/* Where lines cross, in words and numbers. */
static void
append_crossings (PodReportHtml *page, const Sweep *sweep)
{
  JsonArray *crossings = pod_report_array (sweep->result, "crossings");
  JsonArray *balances = pod_report_array (sweep->result, "balances");
  g_autofree char *heading = g_strconcat (">", key_of (sweep, 0), NULL);
  g_autoptr (PodTable) table = pod_table_new (ROW (heading, "below it", "above it"));

  for (guint i = 0; i < pod_report_length (crossings); i++)
    {
      JsonObject *entry = at (crossings, i);
      g_autofree char *place = g_strdup_printf ("%.4g", pod_report_number (entry, "at"));
      g_autofree char *before
          = g_strdup_printf ("%s is less", pod_report_string_or (entry, "less_before", ""));
      g_autofree char *after
          = g_strdup_printf ("%s is less", pod_report_string_or (entry, "less_after", ""));

      pod_table_add_row (table, ROW (place, before, after));
    }
  for (guint i = 0; i < pod_report_length (balances); i++)
    {
      JsonObject *entry = at (balances, i);
      g_autofree char *place = g_strdup_printf ("%.4g", pod_report_number (entry, "at"));
      g_autofree char *before
          = g_strdup_printf ("%s: %s-bound", pod_report_string_or (entry, "line", ""),
                             pod_report_string_or (entry, "bound_before", ""));
      g_autofree char *after
          = g_strdup_printf ("%s: %s-bound", pod_report_string_or (entry, "line", ""),
                             pod_report_string_or (entry, "bound_after", ""));

      pod_table_add_row (table, ROW (place, before, after));
    }
  if (pod_table_n_rows (table) == 0)
    return;
  pod_report_html_section (page, "crossings", "Crossings",
                           "Found between the runs on either side, along powers of the axis.");
  pod_report_html_table (page, "Where lines cross", table);
}

/* -- rows -------------------------------------------------------------------------------------- */

static void
add_run (PodTable *table, const Sweep *sweep, guint index)
{
  JsonObject *row = at (sweep->rows, index);
  const bool has_step = pod_report_node (row, "step.time_s") != NULL;
  g_autoptr (GPtrArray) cells = g_ptr_array_new_with_free_func (g_free);

  for (guint a = 0; a < pod_report_length (sweep->axes); a++)
    g_ptr_array_add (cells, g_strdup (varied (sweep, index, a)));
  g_ptr_array_add (cells, has_step ? pod_format_seconds (pod_report_number (row, "step.time_s"))
                                   : g_strdup ("-"));
  g_ptr_array_add (cells, has_step ? pod_report_percent (pod_report_number (row, "step.mfu"))
                                   : g_strdup ("-"));
  g_ptr_array_add (
      cells, has_step ? pod_report_grouped (pod_report_number (row, "step.tokens_per_s_per_chip"))
                      : g_strdup ("-"));
  g_ptr_array_add (
      cells, has_step ? pod_format_bytes (pod_report_number (row, "memory.peak_bytes")
                                              + pod_report_number (row, "memory.reserved_bytes"),
                                          false)
                      : g_strdup ("-"));
  g_ptr_array_add (cells, pod_report_node (row, "cost.usd_per_step") != NULL ? g_strdup_printf (
                              "%.4g USD", pod_report_number (row, "cost.usd_per_step"))
                                                                             : g_strdup ("-"));
  g_ptr_array_add (cells, g_strdup (pod_report_string_or (row, "status", "")));
  g_ptr_array_add (cells, g_strdup (pod_report_string_or (
                              row, "layout", pod_report_string_or (row, "reason", ""))));
  g_ptr_array_add (cells, NULL);
  pod_table_add_row (table, (const char *const *) cells->pdata);
}

static void
append_rows (PodReportHtml *page, const Sweep *sweep)
{
  g_autoptr (GPtrArray) titles = g_ptr_array_new ();
  g_autoptr (PodTable) table = NULL;
  const guint n = pod_report_length (sweep->rows);
  g_autofree char *caption = n > MOST_ROWS
                                 ? g_strdup_printf ("The first %d of %u combinations", MOST_ROWS, n)
                                 : g_strdup ("All combinations, in order");

  for (guint a = 0; a < pod_report_length (sweep->axes); a++)
    g_ptr_array_add (titles, (char *) key_of (sweep, a));
  for (const char *const *t = ROW (">step time", ">MFU", ">tokens/s/chip", ">memory",
                                   ">cost of a step", "status", "layout, or why not");
       *t != NULL; t++)
    g_ptr_array_add (titles, (char *) *t);
  g_ptr_array_add (titles, NULL);
  table = pod_table_new ((const char *const *) titles->pdata);
  for (guint i = 0; i < MIN (n, MOST_ROWS); i++)
    add_run (table, sweep, i);
  pod_report_html_section (page, "runs", "Runs", NULL);
  pod_report_html_table (page, caption, table);
}

static bool
any_fits (const Sweep *sweep)
{
  for (guint i = 0; i < pod_report_length (sweep->rows); i++)
    if (fits (at (sweep->rows, i)))
      return true;
  return false;
}

static bool
scales (const Sweep *sweep)
{
  for (guint i = 0; i < pod_report_length (sweep->rows); i++)
    if (pod_report_node (at (sweep->rows, i), efficiency_measure.path) != NULL)
      return true;
  return false;
}

bool
pod_report_html_sweep (JsonObject *result, const char *title, const char *file, GError **error)
{
  g_return_val_if_fail (result != NULL && title != NULL && file != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  const char *objective = pod_report_string_or (result, "objective", "time");
  g_autoptr (PodReportHtml) page
      = pod_report_html_new (title, "A grid of training steps, simulated");
  Sweep sweep = { .result = result,
                  .axes = pod_report_array (result, "axes"),
                  .rows = pod_report_array (result, "rows"),
                  .measure = &measures[0].measure };

  g_return_val_if_fail (pod_report_length (sweep.axes) > 0 && sweep.rows != NULL, false);
  for (unsigned i = 0; i < G_N_ELEMENTS (measures); i++)
    if (strcmp (measures[i].objective, objective) == 0)
      sweep.measure = &measures[i].measure;
  read_numbers (&sweep);
  append_summary (page, &sweep);
  if (sweep.x != NULL && sweep.n_values > 1 && any_fits (&sweep))
    {
      pod_report_html_section (page, "lines", sweep.measure->heading,
                               "A line for each combination of what varies beside the axis; rings "
                               "are where lines cross.");
      append_chart (page, &sweep, sweep.measure,
                    strcmp (objective, "comm") == 0 ? &compute_measure : NULL);
      append_crossings (page, &sweep);
      pod_report_html_section (page, "mfu", mfu_measure.heading, NULL);
      append_chart (page, &sweep, &mfu_measure, NULL);
      if (scales (&sweep))
        {
          pod_report_html_section (page, "efficiency", efficiency_measure.heading, NULL);
          append_chart (page, &sweep, &efficiency_measure, NULL);
        }
    }
  append_rows (page, &sweep);
  g_free (sweep.x);
  return pod_report_html_save (page, file, error);
}
