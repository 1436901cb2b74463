#include "report/html-private.h"
#include "report/step-page-private.h"
#include "report/timeline-private.h"

#include <string.h>

/* The timeline of a page, and the path through it that takes the step's time. */

enum
{
  MAX_PATH_ROWS = 20,
};

#define ROW(...) ((const char *const[]){ __VA_ARGS__, NULL })

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

void
pod_step_page_timeline (PodReportHtml *page, const PodTimeline *timeline, guint rank_index,
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

void
pod_step_page_path (PodReportHtml *page, const PodTimeline *timeline, const GArray *path)
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
