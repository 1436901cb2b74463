#include "report/step-page-private.h"
#include "report/timeline-private.h"

#include <string.h>

#include "base/units.h"

/* `--report`: all that is known of one step on a page. */

enum
{
  MAX_ROWS = 40, /* of tables that may be long */
};

#define ROW(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* -- summary ----------------------------------------------------------------------------------- */

/* Takes @value and @note. */
static void
add_fact (PodTable *table, const char *name, char *value, char *note)
{
  pod_table_add_row (table, ROW (name, value, note != NULL ? note : ""));
  g_free (value);
  g_free (note);
}

static void
add_speed (PodTable *facts, JsonObject *result)
{
  const double time_s = pod_report_number (result, "step.time_s");
  const double bound_s = pod_report_number (result, "step.lower_bound_s");
  g_autofree char *bound = pod_format_seconds (bound_s);
  g_autofree char *share = pod_report_percent (time_s > 0 ? bound_s / time_s : 0);
  g_autofree char *hfu = pod_report_percent (pod_report_number (result, "step.hfu"));
  g_autofree char *each
      = pod_report_grouped (pod_report_number (result, "step.tokens_per_s_per_chip"));

  add_fact (facts, "step time", pod_format_seconds (time_s),
            g_strdup_printf ("lower bound %s, %s of it", bound, share));
  add_fact (facts, "MFU", pod_report_percent (pod_report_number (result, "step.mfu")),
            g_strdup_printf ("by %s FLOPs; with recomputation (HFU) %s",
                             pod_report_string_or (result, "step.flops_convention", "model"), hfu));
  add_fact (facts, "tokens/s", pod_report_grouped (pod_report_number (result, "step.tokens_per_s")),
            g_strdup_printf ("%s per chip", each));
  add_fact (facts, "bound by", g_strdup (pod_report_string_or (result, "step.bound", "?")),
            g_strdup ("would take longest if all overlapped"));
}

static void
add_memory (PodTable *facts, JsonObject *result)
{
  const double capacity = pod_report_number (result, "memory.capacity_bytes");
  const double left = capacity - pod_report_number (result, "memory.reserved_bytes")
                      - pod_report_number (result, "memory.peak_bytes");
  g_autofree char *size = pod_format_bytes (left < 0 ? -left : left, false);
  g_autofree char *all = pod_format_bytes (capacity, false);

  add_fact (facts, "peak memory",
            pod_format_bytes (pod_report_number (result, "memory.peak_bytes"), false),
            g_strdup_printf (left < 0 ? "DOES NOT FIT: %s more than the %s allow"
                                      : "of a device; %s of %s free",
                             size, all));
}

static void
add_training (PodTable *facts, JsonObject *result)
{
  const double cost_usd = pod_report_number (result, "train.cost_usd");
  g_autofree char *tokens = pod_format_count (pod_report_number (result, "train.tokens"));
  g_autofree char *percent
      = pod_format_double (100 * pod_report_number (result, "train.availability"));
  g_autofree char *days = pod_report_fixed (pod_report_number (result, "train.days"), 1);
  g_autofree char *cost = pod_report_grouped (cost_usd);

  if (pod_report_object (result, "train") == NULL)
    return;
  add_fact (facts, "training", g_strdup_printf ("%s days", days),
            g_strdup_printf ("%s tokens, at %s %% availability%s%s%s", tokens, percent,
                             cost_usd > 0 ? ", " : "", cost_usd > 0 ? cost : "",
                             cost_usd > 0 ? " USD" : ""));
}

static void
add_job (PodTable *table, JsonObject *result)
{
  g_autofree char *params = pod_format_count (pod_report_number (result, "model.params"));
  g_autofree char *chips = pod_report_grouped (pod_report_number (result, "topology.chips"));
  g_autofree char *devices = pod_report_grouped (pod_report_number (result, "topology.devices"));
  g_autofree char *batch = pod_report_grouped (pod_report_number (result, "batch.global_batch"));
  g_autofree char *seq_len = pod_report_grouped (pod_report_number (result, "batch.seq_len"));
  g_autofree char *n_micro = pod_report_grouped (pod_report_number (result, "batch.microbatches"));
  g_autofree char *micro = pod_report_grouped (pod_report_number (result, "batch.micro_batch"));
  g_autofree char *model = g_strdup_printf (
      "%s, %s parameters", pod_report_string_or (result, "model.name", "?"), params);
  g_autofree char *machine
      = g_strdup_printf ("%s: %s chips, %s devices",
                         pod_report_string_or (result, "topology.name", "?"), chips, devices);
  g_autofree char *sequences
      = g_strdup_printf ("%s sequences of %s tokens; %s microbatches of %s per data rank", batch,
                         seq_len, n_micro, micro);

  pod_table_add_row (table, ROW ("model", model));
  pod_table_add_row (table, ROW ("machine", machine));
  pod_table_add_row (table, ROW ("layout", pod_report_string_or (result, "layout", "?")));
  pod_table_add_row (table, ROW ("placed", pod_report_string_or (result, "map", "?")));
  pod_table_add_row (table, ROW ("batch", sequences));
  pod_table_add_row (table, ROW ("fidelity", pod_report_string_or (result, "fidelity", "?")));
}

/* The choices that decide a step, as run. */
static void
add_options (PodTable *table, JsonObject *result)
{
  static const char *const names[]
      = { "schedule", "recompute", "optimizer", "dtype", "grad_dtype", "reduce_dtype", "network" };

  for (unsigned i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *path = g_strconcat ("options.", names[i], NULL);
      const char *value = pod_report_string (result, path);

      if (value != NULL)
        pod_table_add_row (table, ROW (names[i], value));
    }
}

static void
append_strings (PodReportHtml *page, JsonObject *result, const char *path)
{
  JsonArray *lines = pod_report_array (result, path);
  g_autoptr (GPtrArray) texts = g_ptr_array_new ();

  for (guint i = 0; lines != NULL && i < json_array_get_length (lines); i++)
    g_ptr_array_add (texts, (char *) json_array_get_string_element (lines, i));
  if (texts->len > 0)
    pod_report_html_items (page, (const char *const *) texts->pdata, texts->len);
  else
    pod_report_html_paragraph (page, "None.");
}

static void
append_summary (PodReportHtml *page, JsonObject *result)
{
  g_autoptr (PodTable) facts = pod_table_new (ROW ("", "", ""));
  g_autoptr (PodTable) job = pod_table_new (ROW ("", ""));

  pod_report_html_section (page, "summary", "Summary", NULL);
  add_speed (facts, result);
  add_memory (facts, result);
  add_training (facts, result);
  pod_report_html_facts (page, facts);
  add_job (job, result);
  add_options (job, result);
  pod_report_html_table (page, "What was run", job);
  pod_report_html_section (page, "warnings", "Warnings", NULL);
  append_strings (page, result, "warnings");
}

/* -- where the time goes ----------------------------------------------------------------------- */

/* The terms of the bar: compute in its parts, then what is exposed, by axis. */
typedef struct
{
  GPtrArray *names; /* (element-type utf8) */
  GArray *series;   /* PodHtmlSeries */
  GArray *seconds;  /* double */
  PodTable *table;
  PodReportUnit unit;
  double step_s;
} Terms;

static void
add_term (Terms *terms, const char *name, const char *colour_of, double seconds, const char *note)
{
  PodHtmlSeries series = { .colour = pod_report_term_colour (colour_of) };
  g_autofree char *time = pod_report_in_unit (seconds, terms->unit, 2);
  g_autofree char *share = pod_report_percent (terms->step_s > 0 ? seconds / terms->step_s : 0);

  g_ptr_array_add (terms->names, g_strdup (name));
  series.name = g_ptr_array_index (terms->names, terms->names->len - 1);
  g_array_append_val (terms->series, series);
  g_array_append_val (terms->seconds, seconds);
  pod_table_add_row (terms->table, ROW (name, time, share, note));
}

static void
add_terms (Terms *terms, JsonObject *result)
{
  g_autoptr (GArray) list = pod_report_terms (result);
  const double optimizer_s = pod_report_number (result, "step.optimizer_s");
  const double recompute_s = pod_report_number (result, "step.recompute_s");

  for (guint i = 0; i < list->len; i++)
    {
      const PodReportTerm *term = &g_array_index (list, PodReportTerm, i);
      const double seconds = (double) term->time_ps / 1e12;
      g_autofree char *total = pod_report_in_unit ((double) term->total_ps / 1e12, terms->unit, 2);
      g_autofree char *note
          = term->axis != NULL ? g_strdup_printf ("of %s in all", total) : g_strdup ("");

      if (i > 0)
        {
          add_term (terms, term->name, term->axis != NULL ? term->axis : term->name, seconds, note);
          continue;
        }
      add_term (terms, "forward and backward", "forward and backward",
                seconds - optimizer_s - recompute_s, "kernels of the slowest rank");
      if (recompute_s > 0)
        add_term (terms, "recompute", "recompute", recompute_s, "");
      if (optimizer_s > 0)
        add_term (terms, "optimizer", "optimizer", optimizer_s, "");
    }
}

static void
append_breakdown (PodReportHtml *page, JsonObject *result)
{
  const double step_s = (double) pod_report_time_ps (result) / 1e12;
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GArray) series = g_array_new (FALSE, FALSE, sizeof (PodHtmlSeries));
  g_autoptr (GArray) seconds = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (PodTable) table = pod_table_new (ROW ("term", ">time", ">share", ""));
  Terms terms = { .names = names,
                  .series = series,
                  .seconds = seconds,
                  .table = table,
                  .unit = pod_report_time_unit (step_s),
                  .step_s = step_s };
  g_autofree char *time = pod_format_seconds (step_s);
  g_autofree char *caption = NULL;
  PodHtmlBar bar = { .label = "one step", .value = time };
  PodHtmlBars bars = { .bars = &bar, .n_bars = 1, .whole = step_s };

  add_terms (&terms, result);
  pod_report_html_section (page, "breakdown", "Where the time goes",
                           "Every instant of the slowest rank is given to one term; they add up to "
                           "the step. Communication counts where no kernel runs beside it.");
  caption = g_strdup_printf ("Rank %.0f, the slowest",
                             pod_report_number (result, "step.critical_rank"));
  bars.caption = caption;
  bars.series = (const PodHtmlSeries *) series->data;
  bars.n_series = series->len;
  bar.parts = (const double *) seconds->data;
  pod_report_html_bars (page, &bars);
  pod_report_html_table (page, "Terms of the step", table);
}

/* -- what gains most --------------------------------------------------------------------------- */

static bool
has_loss (JsonArray *changes)
{
  for (guint i = 0; i < json_array_get_length (changes); i++)
    if (pod_report_number (json_array_get_object_element (changes, i), "gain_ratio") < 0)
      return true;
  return false;
}

static void
append_what_if (PodReportHtml *page, JsonObject *result)
{
  JsonArray *changes = pod_report_array (result, "what_if");
  const char *note = pod_report_string (result, "what_if_note");
  g_autoptr (PodTable) table = NULL;

  if (changes == NULL)
    return;
  pod_report_html_section (
      page, "what-if", "What gains most",
      "The step simulated again with one thing of the machine better and all else "
      "as it was, the largest gain first.");
  table = pod_report_what_if (changes, true);
  if (pod_table_n_rows (table) > 0)
    pod_report_html_table (page, "Steps with one change", table);
  if (has_loss (changes))
    pod_report_html_paragraph (page, "Below zero: operations that start earlier can meet others on "
                                     "links that they used to miss.");
  if (note != NULL)
    pod_report_html_paragraph (page, note);
}

/* -- kernels and collectives ------------------------------------------------------------------- */

/* Are rows @a and @b the same but for their first cell? */
static bool
is_alike (const PodTable *table, int a, int b)
{
  for (unsigned i = 1; i < pod_table_n_columns (table); i++)
    if (strcmp (pod_table_cell (table, a, i), pod_table_cell (table, b, i)) != 0)
      return false;
  return true;
}

/* Row @row under a name of its own. */
static void
copy_row (PodTable *to, const PodTable *from, int row, const char *name)
{
  g_autoptr (GPtrArray) cells = g_ptr_array_new ();

  g_ptr_array_add (cells, (char *) name);
  for (unsigned i = 1; i < pod_table_n_columns (from); i++)
    g_ptr_array_add (cells, (char *) pod_table_cell (from, row, i));
  pod_table_add_row (to, (const char *const *) cells->pdata);
}

/* The first MAX_ROWS rows, neighbours that differ in their name alone as one: "pp 0>1 and 29 like
 * it". Returns: (transfer full) */
static PodTable *
shortened (const PodTable *table)
{
  const int n_rows = (int) pod_table_n_rows (table);
  g_autoptr (GPtrArray) titles = g_ptr_array_new_with_free_func (g_free);
  PodTable *out;
  int next;

  for (unsigned i = 0; i < pod_table_n_columns (table); i++)
    g_ptr_array_add (titles, g_strconcat (pod_table_is_right (table, i) ? ">" : "",
                                          pod_table_cell (table, -1, i), NULL));
  g_ptr_array_add (titles, NULL);
  out = pod_table_new ((const char *const *) titles->pdata);
  for (int row = 0; row < n_rows && pod_table_n_rows (out) < MAX_ROWS; row = next)
    {
      g_autofree char *name = NULL;

      for (next = row + 1; next < n_rows && is_alike (table, row, next); next++)
        ;
      name = next - row > 1 ? g_strdup_printf ("%s and %d like it", pod_table_cell (table, row, 0),
                                               next - row - 1)
                            : g_strdup (pod_table_cell (table, row, 0));
      copy_row (out, table, row, name);
    }
  return out;
}

/* @table is taken. */
static void
append_uses (PodReportHtml *page, const char *caption, PodTable *table, const GPtrArray *words)
{
  g_autoptr (PodTable) whole = table;
  g_autoptr (PodTable) shown = NULL;

  pod_table_add_column (whole, "what decided it", words);
  shown = shortened (whole);
  if (pod_table_n_rows (shown) > 0)
    pod_report_html_table (page, caption, shown);
  else
    pod_report_html_paragraph (page, "None.");
  if (pod_table_n_rows (shown) == MAX_ROWS)
    pod_report_html_paragraph (page, "Those that take most; podsim run --explain prints all.");
}

static void
append_costs (PodReportHtml *page, const PodExecResult *exec)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);

  pod_report_html_section (
      page, "collectives", "Collectives",
      "Each alone on an empty network; total is calls times alone, hidden or not.");
  append_uses (page, "Collectives by total time", pod_report_collectives (exec, words), words);
  g_ptr_array_set_size (words, 0);
  pod_report_html_section (page, "kernels", "Kernels", "A step of the rank that runs each most.");
  append_uses (page, "Kernels by total time", pod_report_kernels (exec, words), words);
}

bool
pod_report_html_step (JsonObject *result, const PodExecResult *exec, const char *file,
                      GError **error)
{
  g_return_val_if_fail (result != NULL && exec != NULL && file != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  const PodTimeline *timeline = exec->timeline;
  const guint rank_index = pod_report_rank_index (timeline, exec->critical_rank);
  g_autoptr (GArray) path = pod_report_critical_path (timeline, rank_index);
  g_autofree char *title = pod_report_title (result);
  g_autoptr (PodReportHtml) page = pod_report_html_new (title, "One training step, simulated");

  append_summary (page, result);
  append_breakdown (page, result);
  append_what_if (page, result);
  pod_step_page_timeline (page, timeline, rank_index, path);
  pod_step_page_path (page, timeline, path);
  pod_step_page_memory (page, result, timeline);
  append_costs (page, exec);
  pod_report_html_section (page, "assumptions", "Assumptions",
                           "What was not said and therefore assumed.");
  append_strings (page, result, "assumptions");
  return pod_report_html_save (page, file, error);
}
