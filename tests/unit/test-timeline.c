#include "exec/timeline.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/error.h"
#include "support/sample-timeline.h"

static PodSpan *
span_at (PodTimeline *timeline, uint32_t index)
{
  return &g_array_index (timeline->spans, PodSpan, index);
}

START_TEST (new_timeline_is_empty_and_right)
{
  g_autoptr (PodTimeline) timeline = pod_timeline_new (0, NULL);
  g_autoptr (GError) error = NULL;

  ck_assert_uint_eq (timeline->spans->len, 0);
  ck_assert_uint_eq (timeline->ranks->len, 0);
  ck_assert (pod_timeline_check (timeline, &error));
  ck_assert_ptr_null (error);
  pod_timeline_free (NULL);
}
END_TEST

START_TEST (pipeline_is_right)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (4, 3);
  g_autoptr (GError) error = NULL;

  ck_assert (pod_timeline_check (timeline, &error));
  ck_assert_ptr_null (error);
  ck_assert_uint_eq (timeline->flows->len, 9);
  ck_assert_int_gt (timeline->end_ps, 0);
}
END_TEST

/* Spans that touch, last no time, wait from before their lane is free, or lie before 0 are all
 * right. */
START_TEST (edges_are_right)
{
  g_autoptr (PodTimeline) timeline = sample_timeline_new (1);
  g_autoptr (GError) error = NULL;
  uint32_t reduce = sample_add_op (timeline, "reduce", POD_CATEGORY_COMM, SAMPLE_TP);

  sample_add_span (timeline, reduce, 0, -20, -10, 10);
  sample_add_span (timeline, reduce, 0, 10, 10, 10);
  sample_add_span (timeline, reduce, 0, 5, 10, 20);
  ck_assert (pod_timeline_check (timeline, &error));
  ck_assert_ptr_null (error);
}
END_TEST

/* Each takes a pipeline of two ranks and one microbatch: spans 0 matmul, 1 reduce, 2 send on rank
 * 0; 3 receive, 4 matmul, 5 reduce on rank 1; flow 0 from 2 to 3. */
static void
break_op (PodTimeline *timeline)
{
  span_at (timeline, 1)->op = 4;
}

static void
break_lane (PodTimeline *timeline)
{
  span_at (timeline, 1)->lane = 6;
}

static void
break_stream (PodTimeline *timeline)
{
  span_at (timeline, 1)->lane = SAMPLE_PP;
}

static void
break_released_by (PodTimeline *timeline)
{
  span_at (timeline, 4)->released_by = 6;
}

static void
break_arrival (PodTimeline *timeline)
{
  span_at (timeline, 1)->arrive_ps = span_at (timeline, 1)->start_ps + 1;
}

static void
break_end (PodTimeline *timeline)
{
  span_at (timeline, 1)->end_ps = span_at (timeline, 1)->start_ps - 1;
}

static void
break_order (PodTimeline *timeline)
{
  PodSpan again = *span_at (timeline, 4);

  again.start_ps++;
  again.end_ps++;
  g_array_append_val (timeline->spans, again);
}

static void
break_flow_index (PodTimeline *timeline)
{
  g_array_index (timeline->flows, PodFlow, 0).to_span = 6;
}

static void
break_flow_time (PodTimeline *timeline)
{
  PodSpan *receive = span_at (timeline, 3);

  receive->arrive_ps = receive->start_ps = receive->end_ps = span_at (timeline, 2)->start_ps - 1;
}

static void
break_category (PodTimeline *timeline)
{
  g_array_index (timeline->ops, PodTimelineOp, 0).category = POD_N_CATEGORIES;
}

static void
break_op_stream (PodTimeline *timeline)
{
  g_array_index (timeline->ops, PodTimelineOp, 0).stream = SAMPLE_N_STREAMS;
}

static void
break_name (PodTimeline *timeline)
{
  g_array_index (timeline->ops, PodTimelineOp, 0).name = NULL;
}

static void
break_counter_rank (PodTimeline *timeline)
{
  sample_add_value (timeline, 0, 2, INT64_MAX, 1);
}

static void
break_counter_series (PodTimeline *timeline)
{
  sample_add_value (timeline, 1, 0, INT64_MAX, 1);
}

static void
break_counter_order (PodTimeline *timeline)
{
  sample_add_value (timeline, 0, 0, 0, 1);
}

static const struct
{
  void (*change) (PodTimeline *timeline);
  const char *message; /* a part of it */
} breakages[] = {
  { break_op, "span 1: op 4 of 4" },
  { break_lane, "lane 6 of 6" },
  { break_stream, "lane 2 is stream 2, its op's stream is 1" },
  { break_released_by, "released by span 6 of 6" },
  { break_arrival, "span 1 (L0 reduce_scatter): arrives at 15000046 ps, starts at 15000045" },
  { break_end, "ends at 15000044" },
  { break_order, "span 6 (L0 matmul): starts at 20000061 ps, its lane 3 is busy until 25000075" },
  { break_flow_index, "flow 0: from span 2 to span 6 of 6" },
  { break_flow_time, "flow 0: span 3 receives until 19000056 ps what span 2 sends from 19000057" },
  { break_category, "op 0 (receive): category 6 of 6" },
  { break_op_stream, "stream 3 of 3" },
  { break_name, "op 0 has no name" },
  { break_counter_rank, "counter sample 2: rank 2 of 2, series 0 of 1" },
  { break_counter_series, "rank 0 of 2, series 1 of 1" },
  { break_counter_order, "counter sample 2 (memory bytes) at 0 ps follows one at 10000030" },
};

START_TEST (broken_timeline_is_refused)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (2, 1);
  g_autoptr (GError) error = NULL;

  breakages[_i].change (timeline);
  ck_assert (!pod_timeline_check (timeline, &error));
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_INVALID));
  ck_assert_msg (strstr (error->message, breakages[_i].message) != NULL, "%s", error->message);
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("timeline");
  TCase *tcase = tcase_create ("timeline");

  tcase_add_test (tcase, new_timeline_is_empty_and_right);
  tcase_add_test (tcase, pipeline_is_right);
  tcase_add_test (tcase, edges_are_right);
  tcase_add_loop_test (tcase, broken_timeline_is_refused, 0, G_N_ELEMENTS (breakages));
  suite_add_tcase (suite, tcase);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (make_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
