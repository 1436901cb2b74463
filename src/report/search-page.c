#include "report/search-plot-private.h"

#include "base/units.h"
#include "report/compare-private.h"
#include "report/html-page.h"

/* `podsim search --report`: the best layouts, what they trade, and what cannot be. */

#define ROW(...) ((const char *const[]){ __VA_ARGS__, NULL })

static JsonObject *
row_at (JsonArray *rows, guint i)
{
  return json_array_get_object_element (rows, i);
}

/* Returns: (transfer full) */
static char *
money (JsonObject *row)
{
  return pod_report_node (row, "cost.usd_per_step") != NULL
             ? g_strdup_printf ("%.4g USD", pod_report_number (row, "cost.usd_per_step"))
             : g_strdup ("-");
}

/* Nothing fits: how far it is from that. */
static void
append_smallest (PodReportHtml *page, JsonObject *result)
{
  const char *words = pod_report_string (result, "smallest.command");
  g_autofree char *least
      = pod_format_bytes (pod_report_number (result, "smallest.least_bytes"), false);
  g_autofree char *most
      = pod_format_bytes (pod_report_number (result, "smallest.capacity_bytes"), false);
  g_autofree char *text
      = words != NULL ? g_strdup_printf ("No layout fits. The smallest needs %s or more of %s: %s",
                                         least, most, words)
                      : g_strdup ("No layout fits.");

  pod_report_html_paragraph (page, text);
}

static void
append_summary (PodReportHtml *page, JsonObject *result, JsonObject *best)
{
  g_autoptr (PodTable) facts = pod_table_new (ROW ("", "", ""));
  g_autofree char *all = pod_report_grouped (pod_report_number (result, "candidates.all"));
  g_autofree char *refused = pod_report_grouped (pod_report_number (result, "candidates.refused"));
  g_autofree char *large = pod_report_grouped (pod_report_number (result, "candidates.too_large"));
  g_autofree char *beyond = pod_report_grouped (pod_report_number (result, "candidates.beyond"));
  g_autofree char *fit = pod_report_grouped (pod_report_number (result, "candidates.fitting"));
  g_autofree char *counts = g_strdup_printf (
      "Of %s candidates %s were refused, %s were too large, %s cannot be among the best by their "
      "bounds, and %s fit.",
      all, refused, large, beyond, fit);
  JsonNode *partial = pod_report_node (result, "is_partial");

  pod_report_html_section (page, "summary", "Summary", NULL);
  if (partial != NULL && json_node_get_boolean (partial))
    pod_report_html_paragraph (page, "The search was interrupted: these are the best so far.");
  if (best != NULL)
    {
      g_autofree char *time = pod_format_seconds (pod_report_number (best, "step.time_s"));
      g_autofree char *mfu = pod_report_percent (pod_report_number (best, "step.mfu"));
      g_autofree char *memory = pod_format_bytes (pod_search_bytes (best), false);
      g_autofree char *cost = money (best);
      g_autofree char *note
          = g_strdup_printf ("best by %s", pod_report_string_or (result, "objective", "time"));

      pod_table_add_row (facts,
                         ROW ("best layout", pod_report_string_or (best, "layout", "?"), note));
      pod_table_add_row (facts,
                         ROW ("step time", time, pod_report_string_or (best, "topology", "")));
      pod_table_add_row (facts, ROW ("MFU", mfu, ""));
      pod_table_add_row (facts, ROW ("memory", memory, "peak and reserve of a device"));
      pod_table_add_row (facts, ROW ("cost of a step", cost, ""));
      pod_report_html_facts (page, facts);
    }
  else
    append_smallest (page, result);
  pod_report_html_paragraph (page, counts);
}

static void
append_bars (PodReportHtml *page, JsonObject *result)
{
  const unsigned n = pod_search_n_bars (result);
  const bool has_machines = pod_search_has_machines (result);
  JsonArray *rows = pod_report_array (result, "best");
  g_autofree double *parts = g_new0 (double, n *POD_N_COMPARE_TERMS + 1);
  g_autofree PodHtmlBar *bars = g_new0 (PodHtmlBar, n + 1);
  g_autofree char *caption = pod_search_heading (result);
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  PodHtmlSeries series[POD_N_COMPARE_TERMS];

  for (unsigned t = 0; t < POD_N_COMPARE_TERMS; t++)
    series[t] = (PodHtmlSeries){ pod_compare_term_name (t), pod_compare_term_colour (t) };
  for (unsigned i = 0; i < n; i++)
    {
      double *own = parts + i * POD_N_COMPARE_TERMS;
      char *label = pod_search_label (row_at (rows, i), has_machines);
      char *value = pod_search_value (result, row_at (rows, i));

      g_ptr_array_add (words, label);
      g_ptr_array_add (words, value);
      pod_compare_terms (row_at (rows, i), own);
      bars[i] = (PodHtmlBar){ .label = label, .value = value, .parts = own };
    }
  pod_report_html_bars (page, &(PodHtmlBars){ .caption = caption,
                                              .series = series,
                                              .n_series = POD_N_COMPARE_TERMS,
                                              .bars = bars,
                                              .n_bars = n });
}

static void
append_table (PodReportHtml *page, const char *caption, JsonArray *rows)
{
  g_autoptr (PodTable) table = pod_table_new (
      ROW (">", ">step time", ">MFU", ">memory", ">chips", ">cost of a step", "bound", "options"));

  for (guint i = 0; i < pod_report_length (rows); i++)
    {
      JsonObject *row = row_at (rows, i);
      g_autofree char *number = g_strdup_printf ("%u", i + 1);
      g_autofree char *time = pod_format_seconds (pod_report_number (row, "step.time_s"));
      g_autofree char *mfu = pod_report_percent (pod_report_number (row, "step.mfu"));
      g_autofree char *memory = pod_format_bytes (pod_search_bytes (row), false);
      g_autofree char *chips = pod_report_grouped (pod_report_number (row, "chips_used"));
      g_autofree char *cost = money (row);

      pod_table_add_row (table, ROW (number, time, mfu, memory, chips, cost,
                                     pod_report_string_or (row, "step.bound", ""),
                                     pod_report_string_or (row, "command", "")));
    }
  pod_report_html_table (page, caption, table);
}

/* A front from the least memory, or the fewest chips, on: its rows stand the other way round. */
static void
append_front (PodReportHtml *page, const char *caption, const char *x_name, JsonArray *rows,
              bool is_memory)
{
  const guint n = pod_report_length (rows);
  g_autofree double *x = g_new0 (double, n + 1);
  g_autofree double *y = g_new0 (double, n + 1);
  PodReportUnit unit;
  PodHtmlLine line = { .name = "no other layout is better in both", .is_stepped = true };
  g_autofree char *y_name = NULL;

  if (n > 1)
    {
      unit = pod_report_time_unit (pod_report_number (row_at (rows, n - 1), "step.time_s"));
      y_name = g_strdup_printf ("time of a step, %s", unit.name);
      for (guint i = 0; i < n; i++)
        {
          JsonObject *row = row_at (rows, n - 1 - i);

          x[i] = is_memory ? pod_search_bytes (row) / 1e9 : pod_report_number (row, "chips_used");
          y[i] = pod_report_number (row, "step.time_s") / unit.size;
        }
      line.x = x;
      line.y = y;
      line.n_points = n;
      pod_report_html_chart (page, &(PodHtmlChart){ .caption = caption,
                                                    .x_name = x_name,
                                                    .y_name = y_name,
                                                    .lines = &line,
                                                    .n_lines = 1 });
    }
  append_table (page,
                is_memory ? "The layouts of the front, the fastest first"
                          : "The layouts of the front, the most chips first",
                rows);
}

static void
append_refused (PodReportHtml *page, JsonArray *families)
{
  g_autoptr (PodTable) table = pod_table_new (ROW (">candidates", "reason", "an example"));

  if (pod_report_length (families) == 0)
    return;
  for (guint i = 0; i < pod_report_length (families); i++)
    {
      JsonObject *family = row_at (families, i);
      g_autofree char *n = pod_report_grouped (pod_report_number (family, "candidates"));

      pod_table_add_row (table, ROW (n, pod_report_string_or (family, "reason", ""),
                                     pod_report_string_or (family, "example", "")));
    }
  pod_report_html_section (page, "refused", "Refused", "What cannot be, before anything runs.");
  pod_report_html_table (page, "Candidates that were refused, by reason", table);
}

bool
pod_report_html_search (JsonObject *result, const char *title, const char *file, GError **error)
{
  g_return_val_if_fail (result != NULL && title != NULL && file != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  JsonArray *best = pod_report_array (result, "best");
  g_autoptr (PodReportHtml) page
      = pod_report_html_new (title, "The best layouts of a training step, simulated");

  append_summary (page, result, pod_report_length (best) > 0 ? row_at (best, 0) : NULL);
  if (pod_report_length (best) > 0)
    {
      pod_report_html_section (page, "best", "Best layouts",
                               "All bars on one scale; the options make each with podsim run.");
      append_bars (page, result);
      append_table (page, "The best, first to last", best);
      pod_report_html_section (page, "memory", "Time against memory",
                               "Layouts that no other beats in both.");
      append_front (page, "Time against memory", "memory of a device, peak and reserve, GB",
                    pod_report_array (result, "pareto.time_memory"), true);
    }
  if (pod_search_has_chips (result))
    {
      pod_report_html_section (page, "chips", "Time against chips",
                               "Layouts that no other beats in both.");
      append_front (page, "Time against chips", "chips used",
                    pod_report_array (result, "pareto.time_chips"), false);
    }
  append_refused (page, pod_report_array (result, "rejected"));
  return pod_report_html_save (page, file, error);
}
