#include "report/compare-private.h"

#include <string.h>

#include "base/units.h"
#include "report/html-page.h"

/* `podsim compare --report`: the same job on several machines. */

#define ROW(...) ((const char *const[]){ __VA_ARGS__, NULL })

static JsonObject *
row_at (JsonArray *rows, guint i)
{
  return json_array_get_object_element (rows, i);
}

/* The row of the fastest machine that the job fits on; NULL when there is none. */
static JsonObject *
best_row (JsonObject *result, JsonArray *rows)
{
  const char *best = pod_report_string (result, "best");

  for (guint i = 0; best != NULL && i < json_array_get_length (rows); i++)
    if (strcmp (pod_report_string_or (row_at (rows, i), "topology", ""), best) == 0)
      return row_at (rows, i);
  return NULL;
}

/* "12.30 USD", "423,696 USD"; "-" where the price is not known. Returns: (transfer full) */
static char *
money (JsonObject *row, const char *path)
{
  const double usd = pod_report_number (row, path);
  g_autofree char *digits
      = usd < 1000 ? pod_report_fixed (usd, usd < 10 ? 3 : 2) : pod_report_grouped (usd);

  return pod_report_node (row, path) != NULL ? g_strconcat (digits, " USD", NULL) : g_strdup ("-");
}

static void
append_summary (PodReportHtml *page, JsonObject *best, guint n_rows)
{
  g_autoptr (PodTable) facts = pod_table_new (ROW ("", "", ""));
  g_autofree char *note = g_strdup_printf ("of %u machines", n_rows);
  g_autofree char *time = NULL;
  g_autofree char *mfu = NULL;
  g_autofree char *cost = NULL;

  pod_report_html_section (page, "summary", "Summary", NULL);
  if (best == NULL)
    {
      pod_report_html_paragraph (page, "The job fits on none of the machines.");
      return;
    }
  time = pod_format_seconds (pod_report_number (best, "step.time_s"));
  mfu = pod_report_percent (pod_report_number (best, "step.mfu"));
  cost = money (best, "cost.usd_per_step");
  pod_table_add_row (facts, ROW ("fastest", pod_report_string_or (best, "topology", "?"), note));
  pod_table_add_row (facts, ROW ("step time", time, pod_report_string_or (best, "layout", "")));
  pod_table_add_row (facts, ROW ("MFU", mfu, ""));
  pod_table_add_row (facts, ROW ("cost of a step", cost, ""));
  pod_report_html_facts (page, facts);
}

static void
append_bars (PodReportHtml *page, JsonArray *rows)
{
  const guint n = json_array_get_length (rows);
  g_autofree double *parts = g_new0 (double, n *POD_N_COMPARE_TERMS + 1);
  g_autoptr (GPtrArray) times = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GArray) bars = g_array_new (FALSE, FALSE, sizeof (PodHtmlBar));
  PodHtmlSeries series[POD_N_COMPARE_TERMS];

  for (unsigned t = 0; t < POD_N_COMPARE_TERMS; t++)
    series[t] = (PodHtmlSeries){ pod_compare_term_name (t), pod_compare_term_colour (t) };
  for (guint i = 0; i < n; i++)
    {
      JsonObject *row = row_at (rows, i);
      PodHtmlBar bar = { .label = pod_report_string_or (row, "topology", "?"),
                         .parts = parts + i * POD_N_COMPARE_TERMS };

      if (!pod_compare_has_step (row))
        continue;
      pod_compare_terms (row, parts + i * POD_N_COMPARE_TERMS);
      g_ptr_array_add (times, pod_format_seconds (pod_report_number (row, "step.time_s")));
      bar.value = g_ptr_array_index (times, times->len - 1);
      g_array_append_val (bars, bar);
    }
  pod_report_html_section (page, "steps", "Step time by machine",
                           "All bars on one scale; each ends where its step does.");
  pod_report_html_bars (page, &(PodHtmlBars){ .caption = "Where the step of each machine goes",
                                              .series = series,
                                              .n_series = POD_N_COMPARE_TERMS,
                                              .bars = (const PodHtmlBar *) bars->data,
                                              .n_bars = bars->len });
}

/* All communication that nothing hides. */
static double
exposed_s (JsonObject *row)
{
  g_autoptr (GArray) terms = pod_report_terms (row);
  int64_t sum_ps = 0;

  for (guint i = 0; i < terms->len; i++)
    if (g_array_index (terms, PodReportTerm, i).axis != NULL)
      sum_ps += g_array_index (terms, PodReportTerm, i).time_ps;
  return (double) sum_ps / 1e12;
}

static void
add_machine (PodTable *table, JsonObject *row)
{
  const char *name = pod_report_string_or (row, "topology", "?");
  const char *layout
      = pod_report_string_or (row, "options", pod_report_string_or (row, "layout", ""));
  g_autofree char *chips = pod_report_grouped (pod_report_number (row, "chips"));
  g_autofree char *time = pod_format_seconds (pod_report_number (row, "step.time_s"));
  g_autofree char *mfu = pod_report_percent (pod_report_number (row, "step.mfu"));
  g_autofree char *exposed = pod_format_seconds (exposed_s (row));
  g_autofree char *peak = pod_format_bytes (pod_report_number (row, "memory.peak_bytes")
                                                + pod_report_number (row, "memory.reserved_bytes"),
                                            false);
  g_autofree char *cost = money (row, "cost.usd_per_step");
  g_autofree char *training = money (row, "train.cost_usd");
  JsonNode *fits = pod_report_node (row, "memory.fits");
  const bool is_too_large = fits != NULL && !json_node_get_boolean (fits);

  if (pod_compare_has_step (row))
    pod_table_add_row (table,
                       ROW (name, chips, pod_report_string_or (row, "wraps", "-"), time, mfu,
                            exposed, peak, is_too_large ? "no" : "yes", cost, training, layout));
  else
    pod_table_add_row (table,
                       ROW (name, chips, pod_report_string_or (row, "wraps", "-"), "-", "-", "-",
                            "-", "-", "-", "-", pod_report_string_or (row, "reason", "refused")));
}

bool
pod_report_html_compare (JsonObject *result, const char *title, const char *file, GError **error)
{
  g_return_val_if_fail (result != NULL && title != NULL && file != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  JsonArray *rows = pod_report_array (result, "rows");
  g_autoptr (PodReportHtml) page
      = pod_report_html_new (title, "The same training step on several machines, simulated");
  g_autoptr (PodTable) table = pod_table_new (
      ROW ("machine", ">chips", "wraps", ">step time", ">MFU", ">exposed", ">memory", "fits",
           ">cost of a step", ">cost of the training", "layout, or why not"));

  g_return_val_if_fail (rows != NULL, false);
  append_summary (page, best_row (result, rows), json_array_get_length (rows));
  append_bars (page, rows);
  for (guint i = 0; i < json_array_get_length (rows); i++)
    add_machine (table, row_at (rows, i));
  pod_report_html_section (page, "machines", "Machines", NULL);
  pod_report_html_table (page, "All machines, in the order in which they were named", table);
  return pod_report_html_save (page, file, error);
}
