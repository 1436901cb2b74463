#include "report/html-page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <glib/gstdio.h>

#include "base/json.h"
#include "report/timeline-private.h"
#include "support/sample-timeline.h"

#define ROW(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void
assert_has (const char *text, const char *part)
{
  if (strstr (text, part) == NULL)
    ck_abort_msg ("no \"%s\" in:\n%s", part, text);
}

static void
assert_has_not (const char *text, const char *part)
{
  if (strstr (text, part) != NULL)
    ck_abort_msg ("\"%s\" in:\n%s", part, text);
}

/* What stands between <main> and </main> of the saved page. Returns: (transfer full) */
static char *
saved (PodReportHtml *page)
{
  g_autofree char *folder = g_dir_make_tmp ("podsim-XXXXXX", NULL);
  g_autofree char *file = g_build_filename (folder, "page.html", NULL);
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;

  ck_assert_msg (pod_report_html_save (page, file, &error), "%s",
                 error != NULL ? error->message : "");
  ck_assert (g_file_get_contents (file, &text, NULL, NULL));
  g_unlink (file);
  g_rmdir (folder);
  assert_has (text, "default-src 'none'");
  return g_strndup (strstr (text, "<main"),
                    (gsize) (strstr (text, "</main>") - strstr (text, "<main")));
}

START_TEST (text_is_escaped)
{
  g_autoptr (PodReportHtml) page = pod_report_html_new ("a <b> & \"c\"", NULL);
  g_autoptr (PodTable) table = pod_table_new (ROW ("<x>", ">y"));
  g_autofree char *text = NULL;

  pod_table_add_row (table, ROW ("<script>alert(1)</script>", "1 & 2"));
  pod_report_html_section (page, "s", "Heading <1>", "note \"<2>\"");
  pod_report_html_table (page, "caption \"<3>\"", table);
  pod_report_html_paragraph (page, "broken \xff byte, bell \x07");
  text = saved (page);
  assert_has (text, "<h2 id=\"s\">Heading &lt;1&gt;</h2>");
  assert_has (text, "note &quot;&lt;2&gt;&quot;");
  assert_has (text, "aria-label=\"caption &quot;&lt;3&gt;&quot;\"");
  assert_has (text, "<th scope=\"row\">&lt;script&gt;alert(1)&lt;/script&gt;</th><td "
                    "class=\"right\">1 &amp; 2</td>");
  assert_has (text, "broken \xef\xbf\xbd byte, bell  </p>");
  assert_has_not (text, "<script>");
}
END_TEST

START_TEST (data_cannot_end_its_script)
{
  g_autoptr (PodReportHtml) page = pod_report_html_new ("t", "s");
  g_autofree char *text = NULL;

  pod_report_html_data (page, "d", "{\"a\":\"</script><!--<script>\"}");
  text = saved (page);
  assert_has (text, "id=\"d\">{\"a\":\"\\u003c/script>\\u003c!--\\u003cscript>\"}</script>");
}
END_TEST

/* 30 + 10 of 80: 37.5 % and 12.5 % of the track; a negative part is none. */
START_TEST (bars_share_one_scale)
{
  g_autoptr (PodReportHtml) page = pod_report_html_new ("t", NULL);
  const PodHtmlSeries series[]
      = { { "first", "#0072b2" }, { "second", "#e69f00" }, { "none", "#009e73" } };
  const double a[] = { 30, 10, 0 };
  const double b[] = { 80, 0, -1 };
  const PodHtmlBar bars[] = { { "a", "40 s", a }, { "b", "80 s", b } };
  g_autofree char *text = NULL;

  pod_report_html_bars (page, &(PodHtmlBars){ "c", series, 3, bars, 2, 0 });
  text = saved (page);
  assert_has (text, "<i title=\"first\" style=\"width:37.500%;background:#0072b2\"></i>");
  assert_has (text, "<i title=\"second\" style=\"width:12.500%;background:#e69f00\"></i>");
  assert_has (text, "<i title=\"first\" style=\"width:100.000%;background:#0072b2\"></i>");
  assert_has_not (text, "none"); /* nobody has it: not in the legend */
}
END_TEST

/* To 10 of the x axis; the y axis ends 4 % above the highest point: 50 of 52 is at 300 (1 - 50/52).
 */
START_TEST (curves_are_scaled)
{
  g_autoptr (PodReportHtml) page = pod_report_html_new ("t", NULL);
  const double x[] = { 0, 5, 10 };
  const double y[] = { 0, 50, 26 };
  const PodHtmlLine lines[]
      = { { .name = "a", .x = x, .y = y, .n_points = 3 },
          { .name = "b", .x = x, .y = y, .n_points = 3, .is_stepped = true } };
  g_autofree char *text = NULL;

  pod_report_html_chart (page, &(PodHtmlChart){ .caption = "c", .x_name = "time, s", .y_name = "size, GB", .lines = lines, .n_lines = 2 });
  text = saved (page);
  assert_has (text, "d=\"M0.00 300.00L500.00 11.54L1000.00 150.00\"");
  assert_has (text, "d=\"M0.00 300.00H500.00V11.54H1000.00V150.00\"");
  assert_has (text, "<span style=\"left:60.00%\">6</span>");
  assert_has (text, "size, GB");
}
END_TEST

/* 1 to 100 by powers is half way at 10; y from 0.1 of a decade below to as much above: 10 is at half its height. A NaN breaks the line. */
START_TEST (curves_are_logarithmic)
{
  g_autoptr (PodReportHtml) page = pod_report_html_new ("t", NULL);
  const double x[] = { 1, 10, 100, 100 };
  const double y[] = { 1, 10, NAN, 100 };
  const PodHtmlLine line = { .name = "a", .x = x, .y = y, .n_points = 4 };
  const PodHtmlMark mark = { .name = "10: <both>", .x = 10, .y = 10 };
  g_autofree char *text = NULL;

  pod_report_html_chart (page, &(PodHtmlChart){ .caption = "c", .x_name = "batch", .y_name = "time, s", .lines = &line, .n_lines = 1, .marks = &mark, .n_marks = 1, .is_logarithmic_x = true, .is_logarithmic_y = true });
  text = saved (page);
  assert_has (text, "d=\"M0.00 286.36L500.00 150.00M1000.00 13.64\"");
  assert_has (text, "<span style=\"left:50.00%\">10</span>");
  assert_has (text, "<path class=\"mark\" d=\"M500.00 150.00h0\"><title>10: &lt;both&gt;</title>");
}
END_TEST

/* -- critical path ----------------------------------------------------------------------------- */

/* Rank 0: matmul 0-10, send 10-14. Rank 1: receive from 0, waits until 10, 10-14; matmul 15-20, for
 * 1 it was launched late. Back from 20: matmul 5, a wait of 1, the receive 4, then its send, which
 * began with it and adds nothing, then rank 0's matmul 10. */
START_TEST (path_crosses_ranks)
{
  g_autoptr (PodTimeline) timeline = sample_timeline_new (2);
  const uint32_t matmul = sample_add_op (timeline, "matmul", POD_CATEGORY_FORWARD, SAMPLE_COMPUTE);
  const uint32_t message = sample_add_op (timeline, "message", POD_CATEGORY_P2P, SAMPLE_PP);
  const uint32_t first = sample_add_span (timeline, matmul, 0, 0, 0, 10);
  const uint32_t send = sample_add_span (timeline, message, 0, 10, 10, 14);
  const uint32_t receive = sample_add_span (timeline, message, 1, 0, 10, 14);
  const uint32_t last = sample_add_span (timeline, matmul, 1, 15, 15, 20);
  const struct
  {
    uint32_t span;
    int64_t wait_ps;
    int64_t work_ps;
  } expected[] = { { first, 0, 10 }, { send, 0, 0 }, { receive, 0, 4 }, { last, 1, 5 } };
  g_autoptr (GArray) path = NULL;

  sample_add_flow (timeline, send, receive);
  g_array_index (timeline->spans, PodSpan, send).released_by = first;
  g_array_index (timeline->spans, PodSpan, last).released_by = receive;
  timeline->end_ps = 20;
  path = pod_report_critical_path (timeline, 1);
  ck_assert_uint_eq (path->len, G_N_ELEMENTS (expected));
  for (guint i = 0; i < path->len; i++)
    {
      const PodPathStep *step = &g_array_index (path, PodPathStep, i);

      ck_assert_uint_eq (step->span, expected[i].span);
      ck_assert_int_eq (step->wait_ps, expected[i].wait_ps);
      ck_assert_int_eq (step->work_ps, expected[i].work_ps);
    }
}
END_TEST

/* Whatever the timeline, the parts of the path fill the step. */
START_TEST (path_fills_the_step)
{
  for (unsigned n_ranks = 1; n_ranks <= 4; n_ranks++)
    {
      g_autoptr (PodTimeline) timeline = sample_pipeline_new (n_ranks, 5);
      int64_t sum_ps = 0;
      g_autoptr (GArray) path = NULL;

      for (guint i = 0; i < timeline->spans->len; i++)
        timeline->end_ps
            = MAX (timeline->end_ps, g_array_index (timeline->spans, PodSpan, i).end_ps + 7);
      path = pod_report_critical_path (timeline, n_ranks - 1);
      for (guint i = 0; i < path->len; i++)
        {
          const PodPathStep *step = &g_array_index (path, PodPathStep, i);

          ck_assert_int_ge (step->wait_ps, 0);
          ck_assert_int_ge (step->work_ps, 0);
          ck_assert_int_ge (step->after_ps, 0);
          sum_ps += step->wait_ps + step->work_ps + step->after_ps;
        }
      ck_assert_int_eq (sum_ps, timeline->end_ps);
    }
}
END_TEST

/* -- timeline ---------------------------------------------------------------------------------- */

/* Slices of a page's lane @index: five numbers each. */
static guint
n_slices_of (JsonObject *data, guint index)
{
  JsonArray *lanes = json_object_get_array_member (data, "lanes");
  JsonObject *lane = json_array_get_object_element (lanes, index);

  return json_array_get_length (json_object_get_array_member (lane, "slices")) / 5;
}

static PodJson *
timeline_json (const PodTimeline *timeline, guint rank_index, PodTimelineShown *out_shown,
               size_t *out_n_bytes)
{
  g_autoptr (GArray) path = pod_report_critical_path (timeline, rank_index);
  g_autofree char *text = pod_report_timeline_json (timeline, rank_index, path, out_shown);
  g_autoptr (GError) error = NULL;
  PodJson *json = pod_json_parse ("timeline", text, -1, &error);

  ck_assert_msg (json != NULL, "%s", error != NULL ? error->message : "");
  *out_n_bytes = strlen (text);
  return json;
}

/* In picoseconds, the step being short: start 5, 10 long after a wait of 2, then a gap of 3. */
START_TEST (slices_are_five_numbers)
{
  g_autoptr (PodTimeline) timeline = sample_timeline_new (1);
  const uint32_t gather = sample_add_op (timeline, "a <b>", POD_CATEGORY_COMM, SAMPLE_TP);
  PodTimelineShown shown;
  size_t n_bytes;
  const int expected[] = { 0, 5, 10, 2, -1, 0, 3, 7, 0, 4 };
  g_autoptr (PodJson) json = NULL;
  JsonObject *data;
  JsonArray *slices;

  sample_add_span (timeline, gather, 0, 3, 5, 15);
  sample_add_span (timeline, gather, 0, 18, 18, 25);
  g_array_index (timeline->spans, PodSpan, 1).microbatch = 4;
  json = timeline_json (timeline, 0, &shown, &n_bytes);
  data = json_node_get_object (json->root);
  slices = json_object_get_array_member (
      json_array_get_object_element (json_object_get_array_member (data, "lanes"), 0), "slices");
  ck_assert_uint_eq (json_array_get_length (slices), G_N_ELEMENTS (expected));
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
    ck_assert_int_eq (json_array_get_int_element (slices, i), expected[i]);
  ck_assert_double_eq (json_object_get_double_member (data, "unit_s"), 1e-12);
}
END_TEST

/* 40 ranks with 4 slices a microbatch: ranks that fit whole, the asked one first, and the page says
 * so. */
START_TEST (large_timelines_are_cut)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (40, 1200);
  const guint rank_index = 39;
  PodTimelineShown shown;
  size_t n_bytes;
  g_autoptr (PodJson) json = timeline_json (timeline, rank_index, &shown, &n_bytes);
  JsonObject *data = json_node_get_object (json->root);
  JsonArray *lanes = json_object_get_array_member (data, "lanes");
  guint n_slices = 0;
  bool has_rank = false;

  for (guint i = 0; i < json_array_get_length (lanes); i++)
    {
      JsonObject *lane = json_array_get_object_element (lanes, i);

      has_rank |= json_object_get_int_member (lane, "rank") == rank_index;
      n_slices += n_slices_of (data, i);
    }
  ck_assert (has_rank);
  ck_assert_uint_eq (n_slices, shown.n_slices_shown);
  ck_assert_uint_le (n_slices, 120000);
  ck_assert_uint_gt (n_slices, 100000);
  ck_assert_uint_eq (shown.n_slices, timeline->spans->len);
  ck_assert_uint_le (shown.n_ranks_shown, 32);
  ck_assert_uint_lt (n_bytes, 6000000);
}
END_TEST

/* One rank alone has too many: what comes first stays. */
START_TEST (long_ranks_are_cut)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (1, 70000);
  PodTimelineShown shown;
  size_t n_bytes;
  g_autoptr (PodJson) json = timeline_json (timeline, 0, &shown, &n_bytes);

  ck_assert_uint_gt (n_slices_of (json_node_get_object (json->root), 0), 50000);
  ck_assert_uint_eq (shown.n_slices, 140000);
  ck_assert_uint_eq (shown.n_slices_shown, 120000);
  ck_assert_uint_eq (shown.n_ranks_shown, 1);
  ck_assert_uint_lt (n_bytes, 6000000);
}
END_TEST

/* -- a step ------------------------------------------------------------------------------------ */

START_TEST (page_of_a_step)
{
  g_autofree char *file
      = g_build_filename (POD_SOURCE_DIR, "tests/data/results/pipeline.json", NULL);
  g_autofree char *folder = g_dir_make_tmp ("podsim-XXXXXX", NULL);
  g_autofree char *name = g_build_filename (folder, "step.html", NULL);
  g_autoptr (PodJson) json = pod_json_load (file, NULL);
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (2, 3);
  g_autoptr (GArray) nothing = g_array_new (FALSE, FALSE, 1);
  const PodExecResult exec = { .time_ps = timeline->end_ps,
                               .critical_rank = 2,
                               .collectives = nothing,
                               .kernels = nothing,
                               .timeline = timeline };
  g_autofree char *text = NULL;

  timeline->n_left_out = 1234;
  ck_assert (pod_report_html_step (json_node_get_object (json->root), &exec, name, NULL));
  ck_assert (g_file_get_contents (name, &text, NULL, NULL));
  g_unlink (name);
  g_rmdir (folder);
  assert_has (
      text,
      "<dt>step time</dt><dd>100 ms</dd><dd class=\"note\">lower bound 60.0 ms, 60.0 % of it</dd>");
  assert_has (text, "<th scope=\"row\">exposed fsdp</th><td class=\"right\">10.00 ms</td><td "
                    "class=\"right\">10.0 %</td>");
  assert_has (text, "background:#d55e00\"></i>"); /* fsdp */
  assert_has (text, "id=\"timeline-data\">{\"unit_s\":1e-09,");
  assert_has (text, "Not recorded: 1,234 slices of other ranks");
  assert_has (text, "rank 2 (2 ranks alike)");
  assert_has_not (text, "What gains most"); /* the result has none */
  assert_has_not (text, "http:");
  assert_has_not (text, "https:");
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("html");
  TCase *page = tcase_create ("page");
  TCase *path = tcase_create ("critical path");
  TCase *timeline = tcase_create ("timeline");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_add_test (page, text_is_escaped);
  tcase_add_test (page, data_cannot_end_its_script);
  tcase_add_test (page, bars_share_one_scale);
  tcase_add_test (page, curves_are_scaled);
  tcase_add_test (page, curves_are_logarithmic);
  tcase_add_test (path, path_crosses_ranks);
  tcase_add_test (path, path_fills_the_step);
  tcase_add_test (page, page_of_a_step);
  tcase_add_test (timeline, slices_are_five_numbers);
  tcase_add_test (timeline, large_timelines_are_cut);
  tcase_add_test (timeline, long_ranks_are_cut);
  tcase_set_timeout (timeline, 300);
  suite_add_tcase (suite, page);
  suite_add_tcase (suite, timeline);
  suite_add_tcase (suite, path);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
