#include "report/html-private.h"
#include "report/timeline-private.h"

#include <string.h>

#include "base/units.h"

/* `--report`: all that is known of one step on a page. */

enum
{
  MAX_ROWS = 40, /* of tables that may be long */
  MAX_PATH_ROWS = 20,
  MAX_CURVES = 8, /* of memory */
  MAX_CURVE_POINTS = 1500,
};

#define ROW(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const char *
string_or (JsonObject *result, const char *path, const char *otherwise)
{
  const char *text = pod_report_string (result, path);

  return text != NULL ? text : otherwise;
}

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
                             string_or (result, "step.flops_convention", "model"), hfu));
  add_fact (facts, "tokens/s", pod_report_grouped (pod_report_number (result, "step.tokens_per_s")),
            g_strdup_printf ("%s per chip", each));
  add_fact (facts, "bound by", g_strdup (string_or (result, "step.bound", "?")),
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
  g_autofree char *model
      = g_strdup_printf ("%s, %s parameters", string_or (result, "model.name", "?"), params);
  g_autofree char *machine = g_strdup_printf (
      "%s: %s chips, %s devices", string_or (result, "topology.name", "?"), chips, devices);
  g_autofree char *sequences
      = g_strdup_printf ("%s sequences of %s tokens; %s microbatches of %s per data rank", batch,
                         seq_len, n_micro, micro);

  pod_table_add_row (table, ROW ("model", model));
  pod_table_add_row (table, ROW ("machine", machine));
  pod_table_add_row (table, ROW ("layout", string_or (result, "layout", "?")));
  pod_table_add_row (table, ROW ("placed", string_or (result, "map", "?")));
  pod_table_add_row (table, ROW ("batch", sequences));
  pod_table_add_row (table, ROW ("fidelity", string_or (result, "fidelity", "?")));
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
  if (note != NULL)
    pod_report_html_paragraph (page, note);
}

/* -- timeline ---------------------------------------------------------------------------------- */

/* What the script of the page fills (page.js). */
static const char viewer[]
    = "<noscript><p>The timeline is drawn by a script; the browser runs none.</p></noscript>\n"
      "<div id=\"timeline-controls\" class=\"controls\" role=\"group\" aria-label=\"timeline\" "
      "hidden>\n"
      "<button type=\"button\" data-action=\"zoom-in\">zoom in</button>\n"
      "<button type=\"button\" data-action=\"zoom-out\">zoom out</button>\n"
      "<button type=\"button\" data-action=\"left\" aria-label=\"earlier\">&#8592;</button>\n"
      "<button type=\"button\" data-action=\"right\" aria-label=\"later\">&#8594;</button>\n"
      "<button type=\"button\" data-action=\"whole\">whole step</button>\n"
      "<button type=\"button\" data-action=\"previous\">previous slice</button>\n"
      "<button type=\"button\" data-action=\"next\">next slice</button>\n"
      "<button type=\"button\" data-action=\"to-slice\">zoom to slice</button>\n"
      "<label><input type=\"checkbox\" id=\"timeline-critical\" checked> critical path</label>\n"
      "<label>find <input type=\"search\" id=\"timeline-find\" autocomplete=\"off\"></label>\n"
      "<button type=\"button\" data-action=\"find\">next match</button>\n"
      "</div>\n"
      "<div id=\"timeline-view\" tabindex=\"0\" role=\"application\" aria-label=\"timeline of the "
      "step\" "
      "aria-describedby=\"timeline-keys\">\n"
      "<canvas id=\"timeline-axis\"></canvas>\n"
      "<div id=\"timeline-lanes\"><canvas id=\"timeline-canvas\"></canvas></div>\n"
      "</div>\n"
      "<p id=\"timeline-hover\"></p>\n"
      "<div id=\"slice\" role=\"status\"><p>A click on a slice, or the key n, shows its arguments "
      "here.</p></div>\n"
      "<p class=\"note\" id=\"timeline-keys\">Drag to move, Ctrl and the wheel or two fingers to "
      "zoom. "
      "Keys: arrows left and right move, + and - zoom, 0 shows the whole step, n and p select the "
      "next "
      "and the previous slice, arrows up and down change the lane, Enter zooms to the slice.</p>\n";

static void
append_legend (GString *out)
{
  static const struct
  {
    const char *name;
    const char *colour; /* as in page.js */
  } kinds[] = { { "forward", "#0072b2" },
                { "backward", "#009e73" },
                { "recompute", "#56b4e9" },
                { "optimizer", "#f0e442" },
                { "collective", "#d55e00" },
                { "send or receive", "#e69f00" },
                { "waits for peers", "var(--wait)" } };

  g_string_append (out, "<ul class=\"legend\">\n");
  for (unsigned i = 0; i < G_N_ELEMENTS (kinds); i++)
    g_string_append_printf (out,
                            "<li><span class=\"swatch\" style=\"background:%s\"></span>%s</li>\n",
                            kinds[i].colour, kinds[i].name);
  g_string_append (out, "<li>line under a slice: critical path</li></ul>\n");
}

/* What is not on the page is told. */
static void
append_left_out (PodReportHtml *page, const PodTimeline *timeline, const PodTimelineShown *shown)
{
  g_autofree char *n_shown = pod_report_grouped ((double) shown->n_slices_shown);
  g_autofree char *n_all = pod_report_grouped ((double) shown->n_slices);
  g_autofree char *n_other = pod_report_grouped ((double) timeline->n_left_out);
  g_autoptr (GString) text = g_string_new (NULL);

  g_string_append_printf (text, "%s slices of %u %s.", n_shown, shown->n_ranks_shown,
                          shown->n_ranks_shown == 1 ? "rank" : "ranks");
  if (shown->n_slices_shown < shown->n_slices)
    g_string_append_printf (
        text,
        " Left out to keep the page small: all but these of the %s slices of %u ranks "
        "that were recorded; --trace writes more of them.",
        n_all, shown->n_ranks);
  if (timeline->n_left_out > 0)
    g_string_append_printf (text,
                            " Not recorded: %s slices of other ranks, most of them like these; "
                            "--trace-ranks records other ranks.",
                            n_other);
  pod_report_html_paragraph (page, text->str);
}

static void
append_timeline (PodReportHtml *page, const PodTimeline *timeline, guint rank_index,
                 const GArray *path)
{
  PodTimelineShown shown;
  g_autofree char *json = pod_report_timeline_json (timeline, rank_index, path, &shown);

  pod_report_html_section (
      page, "timeline", "Timeline",
      "A lane for each stream of the recorded ranks: what ran when, and what waited.");
  g_string_append (pod_html_body (page), viewer);
  append_legend (pod_html_body (page));
  append_left_out (page, timeline, &shown);
  pod_report_html_data (page, "timeline-data", json);
}

/* -- critical path ----------------------------------------------------------------------------- */

/* All of the path that has one name. */
typedef struct
{
  char *name;
  const char *kind;
  uint64_t n_times;
  int64_t time_ps;
} Share;

static void
share_clear (void *data)
{
  g_free (((Share *) data)->name);
}

static gint
compare_shares (gconstpointer a, gconstpointer b)
{
  const Share *x = a;
  const Share *y = b;

  if (x->time_ps != y->time_ps)
    return x->time_ps > y->time_ps ? -1 : 1;
  return strcmp (x->name, y->name);
}

/* @index: of names in @shares, by "kind name". */
static void
add_share (GArray *shares, GHashTable *index, const char *name, const char *kind, int64_t time_ps)
{
  char *key;
  void *at;

  if (time_ps <= 0)
    return;
  key = g_strdup_printf ("%s %s", kind, name);
  if (!g_hash_table_lookup_extended (index, key, NULL, &at))
    {
      const Share share = { .name = g_strdup (name), .kind = kind };

      at = GUINT_TO_POINTER (shares->len);
      g_array_append_val (shares, share);
      g_hash_table_insert (index, g_steal_pointer (&key), at);
    }
  g_free (key);
  g_array_index (shares, Share, GPOINTER_TO_UINT (at)).n_times++;
  g_array_index (shares, Share, GPOINTER_TO_UINT (at)).time_ps += time_ps;
}

/* Layers are alike: their operations are counted together. */
static void
add_shares (GArray *shares, const PodTimeline *timeline, const GArray *path)
{
  g_autoptr (GHashTable) index = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = 0; i < path->len; i++)
    {
      const PodPathStep *step = &g_array_index (path, PodPathStep, i);
      const PodTimelineOp *op = &g_array_index (
          timeline->ops, PodTimelineOp, g_array_index (timeline->spans, PodSpan, step->span).op);
      const char *name = pod_report_without_layer (op->name);

      add_share (shares, index, name, "waited for", step->wait_ps);
      add_share (shares, index, name,
                 op->axis != NULL ? op->axis : pod_category_name (op->category), step->work_ps);
      add_share (shares, index, "after the last operation", "idle", step->after_ps);
    }
}

static void
add_path_row (PodTable *table, const Share *share, PodReportUnit unit, int64_t step_ps)
{
  g_autofree char *n_times = pod_report_grouped ((double) share->n_times);
  g_autofree char *time = pod_report_in_unit ((double) share->time_ps / 1e12, unit, 2);
  g_autofree char *percent = pod_report_percent ((double) share->time_ps / (double) step_ps);

  pod_table_add_row (table, ROW (share->name, share->kind, n_times, time, percent));
}

static void
append_path (PodReportHtml *page, const PodTimeline *timeline, const GArray *path)
{
  g_autoptr (GArray) shares = g_array_new (FALSE, FALSE, sizeof (Share));
  g_autoptr (PodTable) table
      = pod_table_new (ROW ("operation", "kind", ">times", ">time on the path", ">share"));
  const PodReportUnit unit = pod_report_time_unit ((double) timeline->end_ps / 1e12);
  Share rest = { .name = (char *) "all others", .kind = "" };

  g_array_set_clear_func (shares, share_clear);
  add_shares (shares, timeline, path);
  g_array_sort (shares, compare_shares);
  for (guint i = 0; i < shares->len; i++)
    {
      const Share *share = &g_array_index (shares, Share, i);

      if (i < MAX_PATH_ROWS)
        add_path_row (table, share, unit, timeline->end_ps);
      rest.n_times += i < MAX_PATH_ROWS ? 0 : share->n_times;
      rest.time_ps += i < MAX_PATH_ROWS ? 0 : share->time_ps;
    }
  if (rest.n_times > 0)
    add_path_row (table, &rest, unit, timeline->end_ps);
  pod_report_html_section (
      page, "critical-path", "Critical path",
      "From the end of the step back: what ended last, what released that, and so on to "
      "the start. What shortens an operation here can shorten the step; what is not here "
      "is hidden. The times add up to the step.");
  pod_report_html_table (page, "Operations of the path, layers together", table);
}

/* -- memory ------------------------------------------------------------------------------------ */

/* A curve being thinned: of each cell of time the highest sample stays. */
typedef struct
{
  GArray *x; /* double, in @x_size */
  GArray *y;
  double peak;
} Curve;

static void
curve_clear (void *data)
{
  g_array_unref (((Curve *) data)->x);
  g_array_unref (((Curve *) data)->y);
}

static void
curve_add (Curve *curve, double x, double y, double cell)
{
  double *last_x = curve->x->len > 1 ? &g_array_index (curve->x, double, curve->x->len - 1) : NULL;
  double *last_y = curve->x->len > 1 ? &g_array_index (curve->y, double, curve->y->len - 1) : NULL;

  curve->peak = MAX (curve->peak, y);
  if (last_x != NULL && (int64_t) (*last_x / cell) == (int64_t) (x / cell))
    {
      *last_y = MAX (*last_y, y);
      return;
    }
  g_array_append_val (curve->x, x);
  g_array_append_val (curve->y, y);
}

static GArray *
memory_curves (const PodTimeline *timeline, uint32_t series, double x_size, double y_size)
{
  const unsigned n_curves = MIN (timeline->ranks->len, MAX_CURVES);
  const double end = (double) timeline->end_ps / 1e12 / x_size;
  GArray *curves = g_array_new (FALSE, FALSE, sizeof (Curve));

  g_array_set_clear_func (curves, curve_clear);
  for (unsigned i = 0; i < n_curves; i++)
    {
      const Curve curve = { .x = g_array_new (FALSE, FALSE, sizeof (double)),
                            .y = g_array_new (FALSE, FALSE, sizeof (double)) };

      g_array_append_val (curves, curve);
    }
  for (guint i = 0; i < timeline->counters->len; i++)
    {
      const PodCounterSample *sample = &g_array_index (timeline->counters, PodCounterSample, i);

      if (sample->series == series && sample->rank_index < n_curves)
        curve_add (&g_array_index (curves, Curve, sample->rank_index),
                   (double) sample->at_ps / 1e12 / x_size, sample->value / y_size,
                   MAX (end, 1e-30) / MAX_CURVE_POINTS);
    }
  return curves;
}

/* It begins with what is held before the first operation, and its last point holds to the end of
 * the step. */
static void
add_curve (GArray *lines, GPtrArray *names, Curve *curve, const char *rank, double end,
           const char *unit)
{
  g_autofree char *peak = pod_report_fixed (curve->peak, 2);
  PodHtmlLine line = { .is_stepped = true };

  if (curve->x->len == 0)
    return;
  g_array_index (curve->x, double, 0) = 0;
  g_array_append_val (curve->x, end);
  g_array_append_val (curve->y, g_array_index (curve->y, double, curve->y->len - 1));
  g_ptr_array_add (names, g_strdup_printf ("%s, peak %s %s", rank, peak, unit));
  line.name = g_ptr_array_index (names, names->len - 1);
  line.x = (const double *) curve->x->data;
  line.y = (const double *) curve->y->data;
  line.n_points = curve->x->len;
  g_array_append_val (lines, line);
}

static void
add_limit (GArray *lines, const char *name, const double *x, const double *y)
{
  const PodHtmlLine line = { .name = name, .x = x, .y = y, .n_points = 2, .is_limit = true };

  g_array_append_val (lines, line);
}

static void
append_curves (PodReportHtml *page, JsonObject *result, const PodTimeline *timeline,
               uint32_t series)
{
  const double end_s = (double) timeline->end_ps / 1e12;
  const double usable = pod_report_number (result, "memory.capacity_bytes")
                        - pod_report_number (result, "memory.reserved_bytes");
  const PodReportUnit time = pod_report_time_unit (end_s);
  const PodReportUnit size = pod_report_bytes_unit (usable);
  const double x[] = { 0, end_s / time.size };
  const double y[] = { usable / size.size, usable / size.size };
  g_autoptr (GArray) curves = memory_curves (timeline, series, time.size, size.size);
  g_autoptr (GArray) lines = g_array_new (FALSE, FALSE, sizeof (PodHtmlLine));
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *x_name = g_strdup_printf ("time, %s", time.name);
  g_autofree char *y_name = g_strdup_printf ("memory of a device, %s", size.name);
  g_autofree char *digits = pod_report_in_unit (usable, size, 2);
  g_autofree char *limit = g_strdup_printf ("what tensors may take, %s", digits);

  for (guint i = 0; i < curves->len; i++)
    add_curve (lines, names, &g_array_index (curves, Curve, i),
               g_array_index (timeline->ranks, PodTimelineRank, i).name, x[1], size.name);
  if (lines->len == 0)
    return;
  add_limit (lines, limit, x, y);
  pod_report_html_chart (page, &(PodHtmlChart){ .caption = "Memory over the step",
                                                .x_name = x_name,
                                                .y_name = y_name,
                                                .lines = (const PodHtmlLine *) lines->data,
                                                .n_lines = lines->len });
}

static void
append_buffers (PodReportHtml *page, JsonObject *result)
{
  JsonArray *buffers = pod_report_array (result, "memory.at_peak");
  const double peak = pod_report_number (result, "memory.peak_bytes");
  const PodReportUnit unit = pod_report_bytes_unit (peak);
  g_autoptr (PodTable) table = pod_table_new (ROW ("buffers", "kind", ">size", ">share"));
  g_autofree char *at = pod_format_seconds (pod_report_number (result, "memory.peak_at_s"));
  g_autofree char *caption
      = g_strdup_printf ("What is held at the peak: rank %.0f, the fullest, %s into the step",
                         pod_report_number (result, "memory.worst_rank"), at);

  for (guint i = 0; buffers != NULL && i < json_array_get_length (buffers); i++)
    {
      JsonObject *buffer = json_array_get_object_element (buffers, i);
      const double bytes = pod_report_number (buffer, "bytes");
      g_autofree char *size = pod_report_in_unit (bytes, unit, 2);
      g_autofree char *share = pod_report_percent (peak > 0 ? bytes / peak : 0);

      pod_table_add_row (table, ROW (string_or (buffer, "buffers", "?"),
                                     string_or (buffer, "use", ""), size, share));
    }
  pod_report_html_table (page, caption, table);
}

static void
append_memory (PodReportHtml *page, JsonObject *result, const PodTimeline *timeline)
{
  uint32_t series;

  pod_report_html_section (page, "memory", "Memory", NULL);
  if (pod_report_memory_series (timeline, &series))
    append_curves (page, result, timeline, series);
  append_buffers (page, result);
}

/* -- kernels and collectives ------------------------------------------------------------------- */

/* @table is taken. */
static void
append_uses (PodReportHtml *page, const char *caption, PodTable *table, const GPtrArray *words,
             guint n_all)
{
  g_autofree char *text = g_strdup_printf (
      "The %d that take most, of %u; podsim run --explain prints all.", MAX_ROWS, n_all);

  pod_table_add_column (table, "what decided it", words);
  if (pod_table_n_rows (table) > 0)
    pod_report_html_table (page, caption, table);
  else
    pod_report_html_paragraph (page, "None.");
  if (n_all > MAX_ROWS)
    pod_report_html_paragraph (page, text);
  pod_table_free (table);
}

static void
append_costs (PodReportHtml *page, const PodExecResult *exec)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);

  pod_report_html_section (
      page, "collectives", "Collectives",
      "Each alone on an empty network; total is calls times alone, hidden or not.");
  append_uses (page, "Collectives by total time", pod_report_collectives (exec, MAX_ROWS, words),
               words, exec->collectives->len);
  g_ptr_array_set_size (words, 0);
  pod_report_html_section (page, "kernels", "Kernels", "A step of the rank that runs each most.");
  append_uses (page, "Kernels by total time", pod_report_kernels (exec, MAX_ROWS, words), words,
               exec->kernels->len);
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
  append_timeline (page, timeline, rank_index, path);
  append_path (page, timeline, path);
  append_memory (page, result, timeline);
  append_costs (page, exec);
  pod_report_html_section (page, "assumptions", "Assumptions",
                           "What was not said and therefore assumed.");
  append_strings (page, result, "assumptions");
  return pod_report_html_save (page, file, error);
}
