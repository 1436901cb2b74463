#include "trace/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>
#include <glib/gstdio.h>

#include "base/error.h"
#include "base/file-read.h"
#include "support/sample-timeline.h"
#include "support/trace-facts.h"
#include "support/trace-rules.h"

#define US INT64_C (1000000) /* picoseconds */

static char *folder;

static void
make_folder (void)
{
  folder = g_dir_make_tmp ("podsim-trace-XXXXXX", NULL);
  ck_assert_ptr_nonnull (folder);
}

static void
remove_folder (void)
{
  /* Fails when a test left more than its file behind, such as a temporary one */
  ck_assert_int_eq (g_rmdir (folder), 0);
  g_clear_pointer (&folder, g_free);
}

/* Writes the timeline to folder/name, removes the file. Returns: (transfer full) its text,
 * inflated; NULL with @error set. */
static char *
write_text (const PodTimeline *timeline, PodTraceRequest request, uint64_t *out_n_left_out,
            GError **error)
{
  g_autofree char *file = g_build_filename (folder, request.file, NULL);
  g_autofree char *data = NULL;
  size_t n_bytes;

  request.file = file;
  if (!pod_trace_write (timeline, &request, out_n_left_out, error))
    return NULL;
  data = pod_file_read (file, (size_t) 1 << 30, &n_bytes, error);
  ck_assert_ptr_nonnull (data);
  ck_assert_int_eq (g_remove (file), 0);
  if (!g_str_has_suffix (file, ".gz"))
    return g_steal_pointer (&data);
  ck_assert (pod_gzip_is_magic (data, n_bytes));
  return pod_gzip_inflate (file, data, n_bytes, (size_t) 1 << 30, &n_bytes, error);
}

static void
assert_keeps_rules (const char *text)
{
  g_autoptr (GPtrArray) rules = trace_rules_check (text, strlen (text));

  ck_assert_uint_gt (rules->len, 20);
  for (guint i = 0; i < rules->len; i++)
    {
      const TraceRule *rule = g_ptr_array_index (rules, i);

      ck_assert_msg (rule->why == NULL, "%s: %s", rule->name, rule->why);
    }
}

/* What a default request writes, all rules kept. Returns: (transfer full) */
static char *
write_well (const PodTimeline *timeline)
{
  g_autoptr (GError) error = NULL;
  char *text = write_text (timeline, (PodTraceRequest){ .file = "t.json" }, NULL, &error);

  ck_assert_msg (text != NULL, "%s", error != NULL ? error->message : "");
  assert_keeps_rules (text);
  return text;
}

static void
assert_has (const char *text, const char *part)
{
  ck_assert_msg (strstr (text, part) != NULL, "no %s in %s", part, text);
}

/* Not by strstr, which under a sanitizer measures the rest of the text at each call. */
static unsigned
count (const char *text, const char *part)
{
  size_t length = strlen (part);
  unsigned n = 0;

  for (; *text != '\0'; text++)
    if (*text == *part && strncmp (text, part, length) == 0)
      n++;
  return n;
}

/* The object behind a trace. (transfer full) */
static PodJson *
parse (const char *text)
{
  g_autoptr (GError) error = NULL;
  PodJson *json = pod_json_parse ("t.json", text, -1, &error);

  ck_assert_msg (json != NULL, "%s", error != NULL ? error->message : "");
  return json;
}

static gint64
other_data (const char *text, const char *key)
{
  g_autoptr (PodJson) json = parse (text);
  JsonObject *top = json_node_get_object (json->root);

  return json_object_get_int_member (json_object_get_object_member (top, "otherData"), key);
}

/* ---- every rule, on pipelines ---- */

static const struct
{
  unsigned n_ranks;
  unsigned n_microbatches;
} pipelines[] = {
  { 1, 1 },
  { 2, 1 },
  { 4, 7 },
  { 12, 3 },
  /* More ranks than thread ids per rank: no thread may have the id of a process */
  { 200, 2 },
};

START_TEST (pipeline_keeps_every_rule)
{
  unsigned n_ranks = pipelines[_i].n_ranks;
  unsigned n_microbatches = pipelines[_i].n_microbatches;
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (n_ranks, n_microbatches);
  g_autofree char *text = write_well (timeline);
  g_autofree char *again = write_well (timeline);
  g_autofree char *inflated
      = write_text (timeline, (PodTraceRequest){ .file = "t.json.gz" }, NULL, NULL);
  unsigned n_messages = (n_ranks - 1) * n_microbatches;

  ck_assert_str_eq (again, text);
  ck_assert_str_eq (inflated, text);
  ck_assert_uint_eq (count (text, "\"name\":\"L0 matmul\""), n_ranks * n_microbatches);
  ck_assert_uint_eq (count (text, "\"ph\":\"s\""), n_messages);
  ck_assert_uint_eq (count (text, "\"ph\":\"f\",\"pid\""), n_messages);
  ck_assert_uint_eq (count (text, "\"name\":\"wait receive\""), n_messages);
  ck_assert_uint_eq (count (text, "\"ph\":\"C\""), n_ranks * n_microbatches);
  ck_assert_int_eq (other_data (text, "n_left_out"), 0);
  ck_assert_int_eq (other_data (text, "n_flows_unbound"), 0);
}
END_TEST

START_TEST (empty_timeline_is_a_valid_file)
{
  g_autoptr (PodTimeline) timeline = pod_timeline_new (0, NULL);
  g_autofree char *text = write_text (timeline, (PodTraceRequest){ .file = "t.json" }, NULL, NULL);
  g_autoptr (PodJson) json = parse (text);
  JsonObject *top = json_node_get_object (json->root);

  ck_assert_uint_eq (json_array_get_length (json_object_get_array_member (top, "traceEvents")), 0);
}
END_TEST

START_TEST (args_say_what_an_op_is)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (2, 2);
  g_autofree char *text = write_well (timeline);

  assert_has (text, "{\"ph\":\"X\",\"pid\":1,\"tid\":65,\"ts\":30.000,\"dur\":5.000,"
                    "\"cat\":\"forward\",\"name\":\"L0 matmul\",\"args\":{\"layer\":0,"
                    "\"flops\":8.8e+12,\"bytes\":1234567,"
                    "\"detail\":\"matmul [8192, 8192] x [8192, 2560] bf16\",\"microbatch\":1}}");
  assert_has (text, "\"cat\":\"comm\",\"name\":\"L0 reduce_scatter\",\"args\":{\"axis\":\"tp\","
                    "\"microbatch\":0}}");
  assert_has (text, "{\"ph\":\"C\",\"pid\":2,\"tid\":129,\"ts\":20.000,\"cat\":\"counter\","
                    "\"name\":\"memory\",\"args\":{\"bytes\":1000000000}}");
}
END_TEST

START_TEST (metadata_is_kept)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (2, 1);
  g_autoptr (JsonObject) metadata = json_object_new ();
  PodTraceRequest request = { .file = "t.json", .metadata = metadata };

  json_object_set_string_member (metadata, "layout", "dp=2 \"tp\"=8");
  json_object_set_int_member (metadata, "n_left_out", -7);
  json_object_set_double_member (metadata, "mfu", NAN);

  g_autofree char *text = write_text (timeline, request, NULL, NULL);

  assert_keeps_rules (text);
  assert_has (text, "\"otherData\":{\"layout\":\"dp=2 \\\"tp\\\"=8\",");
  assert_has (text, "\"mfu\":null");
  assert_has (text, "\"schema\":\"podsim-trace-1\"");
  assert_has (text, "\"displayTimeUnit\":\"ns\"");
  ck_assert_int_eq (other_data (text, "n_left_out"), 0);
  /* The caller's object is as it was */
  ck_assert_int_eq (json_object_get_int_member (metadata, "n_left_out"), -7);
}
END_TEST

/* ---- one known failure of other writers each: times in picoseconds, what the file must hold ----
 */

typedef struct
{
  const char *id;
  int64_t spans[3][2];  /* start and end on one lane of compute; end 0: none */
  const char *parts[3]; /* what stands in the file */
} SliceCase;

static const SliceCase slice_cases[] = {
  { "T02 touching slices still touch after rounding",
    { { 600, 1000400 }, { 1000400, 2000400 } },
    { "\"ts\":0.001,\"dur\":0.999,", "\"ts\":1.000,\"dur\":1.000," } },
  { "T03 microseconds, whatever displayTimeUnit says",
    { { 2000 * US, 2001 * US + US / 2 } },
    { "\"ts\":2000.000,\"dur\":1.500," } },
  { "T20 short kernels keep their nanoseconds",
    { { 100700000, 100900000 }, { 101700000, 101900000 }, { 102700000, 102900000 } },
    { "\"ts\":100.700,\"dur\":0.200,", "\"ts\":101.700,\"dur\":0.200,",
      "\"ts\":102.700,\"dur\":0.200," } },
  { "slices below a nanosecond have no length and stay in order",
    { { 1000, 1400 }, { 1400, 1500 }, { 1500, 1600 } },
    { "\"ts\":0.001,\"dur\":0.000,", "\"ts\":0.001,\"dur\":0.001,",
      "\"ts\":0.002,\"dur\":0.000," } },
  { "T11 time before 0 moves the origin",
    { { -5 * US, -2 * US }, { 1 * US, 3 * US } },
    { "\"ts\":0.000,\"dur\":3.000,", "\"ts\":6.000,\"dur\":2.000,", "\"origin_ps\":-5000000" } },
  { "T04 nanoseconds survive up to 101 days",
    { { INT64_C (8796093022207990000), INT64_C (8796093022207991000) } },
    { "\"ts\":8796093022207.990,\"dur\":0.001," } },
};

START_TEST (slice_is_written_in_whole_nanoseconds)
{
  const SliceCase *row = &slice_cases[_i];
  g_autoptr (PodTimeline) timeline = sample_timeline_new (1);
  uint32_t op = sample_add_op (timeline, "k", POD_CATEGORY_FORWARD, SAMPLE_COMPUTE);

  for (size_t i = 0; i < G_N_ELEMENTS (row->spans) && row->spans[i][1] != 0; i++)
    sample_add_span (timeline, op, 0, row->spans[i][0], row->spans[i][0], row->spans[i][1]);

  g_autofree char *text = write_well (timeline);

  for (size_t i = 0; i < G_N_ELEMENTS (row->parts) && row->parts[i] != NULL; i++)
    ck_assert_msg (strstr (text, row->parts[i]) != NULL, "%s: no %s in %s", row->id, row->parts[i],
                   text);
}
END_TEST

/* The same against speedscope, which adds ts and dur as doubles: 10.002 + 0.124 is more than 10.126
 */
START_TEST (sums_of_doubles_keep_the_order)
{
  g_autoptr (PodTimeline) timeline = sample_timeline_new (1);
  g_autoptr (GRand) random = g_rand_new_with_seed (7);
  uint32_t kernel = sample_add_op (timeline, "kernel", POD_CATEGORY_FORWARD, SAMPLE_COMPUTE);
  uint32_t gather = sample_add_op (timeline, "gather", POD_CATEGORY_COMM, SAMPLE_TP);
  int64_t at_ps = 10002000;

  sample_add_span (timeline, kernel, 0, at_ps, at_ps, at_ps + 124000);
  at_ps += 124000;
  for (int i = 0; i < 2000; i++)
    {
      int64_t middle_ps = at_ps + g_rand_int_range (random, 0, 30000000);
      int64_t end_ps = middle_ps + g_rand_int_range (random, 0, 30000000);

      sample_add_span (timeline, kernel, 0, at_ps, at_ps, end_ps);
      sample_add_span (timeline, gather, 0, at_ps, middle_ps, end_ps);
      at_ps = end_ps;
    }

  g_autofree char *text = write_well (timeline);

  assert_has (text, "\"ts\":10.002,\"dur\":0.123,");
}
END_TEST

typedef struct
{
  const char *id;
  int64_t send[2];
  int64_t receive[2];
  const char *start; /* NULL: no arrow */
  const char *end;
} FlowCase;

static const FlowCase flow_cases[] = {
  { "T15 the end of a slice is not in it",
    { 100 * US, 150 * US },
    { 160 * US, 200 * US },
    "\"ts\":149.998,",
    "\"ts\":160.000," },
  { "both at once",
    { 100 * US, 150 * US },
    { 100 * US, 150 * US },
    "\"ts\":100.000,",
    "\"ts\":100.000," },
  { "receive posted first",
    { 100 * US, 150 * US },
    { 50 * US, 150 * US },
    "\"ts\":100.000,",
    "\"ts\":100.000," },
  { "receive during the send",
    { 100 * US, 150 * US },
    { 120 * US, 160 * US },
    "\"ts\":120.000,",
    "\"ts\":120.000," },
  { "send of no length", { 100 * US, 100 * US + 400 }, { 160 * US, 200 * US }, NULL, NULL },
  { "receive of no length", { 100 * US, 150 * US }, { 160 * US, 160 * US }, NULL, NULL },
  { "receive ends as the send starts", { 100 * US, 150 * US }, { 50 * US, 100 * US }, NULL, NULL },
};

START_TEST (flow_stands_on_its_slices)
{
  const FlowCase *row = &flow_cases[_i];
  g_autoptr (PodTimeline) timeline = sample_timeline_new (2);
  uint32_t send = sample_add_op (timeline, "send", POD_CATEGORY_P2P, SAMPLE_PP);
  uint32_t receive = sample_add_op (timeline, "receive", POD_CATEGORY_P2P, SAMPLE_PP);
  uint32_t from = sample_add_span (timeline, send, 0, row->send[0], row->send[0], row->send[1]);
  uint32_t to
      = sample_add_span (timeline, receive, 1, row->receive[0], row->receive[0], row->receive[1]);

  sample_add_flow (timeline, from, to);

  g_autofree char *text = write_well (timeline);

  ck_assert_int_eq (other_data (text, "n_flows_unbound"), row->start == NULL);
  ck_assert_int_eq (other_data (text, "n_left_out"), 0);
  if (row->start == NULL)
    {
      ck_assert_ptr_null (strstr (text, "\"ph\":\"s\""));
      ck_assert_ptr_null (strstr (text, "\"ph\":\"f\""));
      return;
    }

  g_autofree char *start_event
      = g_strdup_printf ("{\"ph\":\"s\",\"pid\":1,\"tid\":67,%s\"cat\":\"flow\","
                         "\"name\":\"message\",\"id\":1}",
                         row->start);
  g_autofree char *end_event
      = g_strdup_printf ("{\"ph\":\"f\",\"pid\":2,\"tid\":131,%s\"cat\":\"flow\","
                         "\"name\":\"message\",\"id\":1,\"bp\":\"e\"}",
                         row->end);

  assert_has (text, start_event);
  assert_has (text, end_event);
}
END_TEST

/* T24: rank 0 reaches the all-reduce at 10 us, rank 1 at 40; bytes move until 50. */
START_TEST (wait_and_transfer_are_slices_of_their_own)
{
  g_autoptr (PodTimeline) timeline = sample_timeline_new (2);
  uint32_t op = sample_add_op (timeline, "all_reduce", POD_CATEGORY_COMM, SAMPLE_TP);

  sample_add_span (timeline, op, 0, 10 * US, 40 * US, 50 * US);
  sample_add_span (timeline, op, 1, 40 * US, 40 * US, 50 * US);

  g_autofree char *text = write_well (timeline);

  assert_has (text, "{\"ph\":\"X\",\"pid\":1,\"tid\":66,\"ts\":10.000,\"dur\":30.000,"
                    "\"cat\":\"wait\",\"name\":\"wait all_reduce\",");
  assert_has (text, "{\"ph\":\"X\",\"pid\":1,\"tid\":66,\"ts\":40.000,\"dur\":10.000,"
                    "\"cat\":\"comm\",\"name\":\"all_reduce\",");
  assert_has (text, "{\"ph\":\"X\",\"pid\":2,\"tid\":130,\"ts\":40.000,\"dur\":10.000,");
  ck_assert_uint_eq (count (text, "\"ph\":\"X\""), 3);
}
END_TEST

/* A collective that is ready while its lane is busy waits for its peers from when the lane is free;
 * a kernel never waits for peers. */
START_TEST (wait_starts_when_the_lane_is_free)
{
  g_autoptr (PodTimeline) timeline = sample_timeline_new (1);
  uint32_t gather = sample_add_op (timeline, "gather", POD_CATEGORY_COMM, SAMPLE_TP);
  uint32_t kernel = sample_add_op (timeline, "kernel", POD_CATEGORY_BACKWARD, SAMPLE_COMPUTE);

  sample_add_span (timeline, gather, 0, 0, 0, 20 * US);
  sample_add_span (timeline, gather, 0, 5 * US, 30 * US, 40 * US);
  sample_add_span (timeline, kernel, 0, 0, 10 * US, 11 * US);

  g_autofree char *text = write_well (timeline);

  assert_has (text, "\"ts\":20.000,\"dur\":10.000,\"cat\":\"wait\",\"name\":\"wait gather\"");
  ck_assert_uint_eq (count (text, "\"cat\":\"wait\""), 1);
}
END_TEST

/* T08 */
START_TEST (names_are_escaped)
{
  g_autoptr (PodTimeline) timeline = sample_timeline_new (1);
  uint32_t op = sample_add_op (timeline, "mlp\x01\"\\g\xff", POD_CATEGORY_FORWARD, 0);
  PodTimelineRank *rank = &g_array_index (timeline->ranks, PodTimelineRank, 0);

  sample_add_span (timeline, op, 0, 0, 0, US);
  g_free (rank->name);
  rank->name = g_strdup ("rank 0 \t\"\xc3\xa9\"");

  g_autofree char *text = write_well (timeline);

  assert_has (text, "\"name\":\"mlp\\u0001\\\"\\\\g\xef\xbf\xbd\"");
  assert_has (text, "\"name\":\"rank 0 \\u0009\\\"\xc3\xa9\\\"\"");
}
END_TEST

/* T09 */
START_TEST (not_a_number_is_left_out)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (1, 1);
  uint32_t mfu = sample_add_series (timeline, "mfu");
  uint64_t n_left_out = 0;

  g_array_index (timeline->ops, PodTimelineOp, 1).flops = NAN;
  g_array_index (timeline->ops, PodTimelineOp, 1).bytes = INFINITY;
  sample_add_value (timeline, mfu, 0, 0, NAN);
  sample_add_value (timeline, mfu, 0, US, -INFINITY);
  sample_add_value (timeline, mfu, 0, 2 * US, 0.5);

  g_autofree char *text
      = write_text (timeline, (PodTraceRequest){ .file = "t.json" }, &n_left_out, NULL);

  assert_keeps_rules (text);
  ck_assert_ptr_null (strstr (text, "flops"));
  assert_has (text, "\"ts\":2.000,\"cat\":\"counter\",\"name\":\"mfu\",\"args\":{\"value\":0.5}}");
  ck_assert_uint_eq (count (text, "\"name\":\"mfu\""), 1);
  ck_assert_uint_eq (n_left_out, 2);
  ck_assert_int_eq (other_data (text, "n_left_out"), 2);
}
END_TEST

/* T12, T26, and rank 2 before rank 10 in a viewer that sorts names as text */
START_TEST (lanes_have_names_and_places)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (6, 1);
  g_autofree char *text = write_well (timeline);

  assert_has (text, "{\"ph\":\"M\",\"pid\":2,\"tid\":129,\"name\":\"process_name\",\"args\":"
                    "{\"name\":\"rank 2 (2 ranks alike)\",\"rank\":2,\"n_like_it\":2}}");
  assert_has (text, "{\"ph\":\"M\",\"pid\":2,\"tid\":129,\"name\":\"process_sort_index\","
                    "\"args\":{\"sort_index\":2}}");
  assert_has (text, "{\"ph\":\"M\",\"pid\":6,\"tid\":385,\"name\":\"process_sort_index\","
                    "\"args\":{\"sort_index\":10}}");
  assert_has (text, "{\"ph\":\"M\",\"pid\":6,\"tid\":387,\"name\":\"thread_name\","
                    "\"args\":{\"name\":\"pp\"}}");
  assert_has (text, "{\"ph\":\"M\",\"pid\":6,\"tid\":387,\"name\":\"thread_sort_index\","
                    "\"args\":{\"sort_index\":2}}");
}
END_TEST

START_TEST (unnamed_rank_gets_its_number)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (2, 1);
  PodTimelineRank *rank = &g_array_index (timeline->ranks, PodTimelineRank, 1);

  g_clear_pointer (&rank->name, g_free);

  g_autofree char *text = write_well (timeline);

  assert_has (text, "\"process_name\",\"args\":{\"name\":\"rank 2\",");
}
END_TEST

/* ---- too much for a file (T05) ---- */

/* Of 4 ranks and 5 microbatches. Names: 2 + 2 per lane. Rank 0: 8 names and 5 x (matmul, reduce,
 * send, its wait, memory) = 33 events. Ranks 1 and 2 also 5 x (receive, its wait, 2 flow ends) and
 * on odd ranks 5 waits for the reduce: rank 1 8 + 50 = 58, rank 2 8 + 45 = 53; rank 3 has no sends:
 * 8 + 40 = 48. */
static const struct
{
  uint64_t max_events;
  unsigned n_events;
  uint64_t n_left_out; /* names never count */
} limits[] = {
  { 192, 192, 0 },
  { 191, 144, 40 },
  { 144, 144, 40 },
  { 143, 91, 40 + 45 },
  { 91, 91, 85 },
  { 33, 33, 135 },
  { 32, 31, 137 },
  /* By time: the last send goes with its wait; at 10 the first matmul and its memory stay */
  { 10, 10, 158 },
  { 8, 8, 160 },
};

START_TEST (whole_ranks_are_kept)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (4, 5);
  PodTraceRequest request = { .file = "t.json", .max_events = limits[_i].max_events };
  uint64_t n_left_out = 0;
  unsigned n_events;

  timeline->n_left_out = 1000;

  g_autofree char *text = write_text (timeline, request, &n_left_out, NULL);

  n_events = count (text, "{\"ph\":");
  ck_assert_uint_eq (n_events, limits[_i].n_events);
  ck_assert_uint_eq (n_left_out, limits[_i].n_left_out + 1000);
  ck_assert_int_eq (other_data (text, "n_left_out"), (gint64) n_left_out);
  if (limits[_i].max_events > 8)
    assert_keeps_rules (text);
}
END_TEST

START_TEST (names_alone_need_room)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (4, 5);
  g_autoptr (GError) error = NULL;
  PodTraceRequest request = { .file = "t.json", .max_events = 7 };

  ck_assert_ptr_null (write_text (timeline, request, NULL, &error));
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_LIMIT));
  ck_assert_str_eq (error->message,
                    "trace: the names of one rank alone take 8 events, 7 are allowed");
}
END_TEST

START_TEST (file_keeps_under_100_mb)
{
  g_autoptr (PodTimeline) timeline = sample_timeline_new (1);
  uint32_t op = sample_add_op (timeline, "k", POD_CATEGORY_FORWARD, SAMPLE_COMPUTE);
  g_autofree char *detail = g_strnfill (100000, 'x');
  uint64_t n_left_out = 0;

  g_array_index (timeline->ops, PodTimelineOp, op).detail = detail;
  for (int64_t i = 0; i < 1200; i++)
    sample_add_span (timeline, op, 0, i * US, i * US, (i + 1) * US);

  g_autofree char *text
      = write_text (timeline, (PodTraceRequest){ .file = "t.json" }, &n_left_out, NULL);

  ck_assert_uint_lt (strlen (text), 100000000);
  ck_assert_uint_gt (strlen (text), 99000000);
  ck_assert_uint_gt (n_left_out, 200);
  ck_assert_uint_lt (n_left_out, 210);

  /* Who asks for more than a million events gets them all */
  PodTraceRequest request = { .file = "t.json.gz", .max_events = 2000000 };
  g_autofree char *all = write_text (timeline, request, &n_left_out, NULL);

  ck_assert_uint_eq (n_left_out, 0);
  ck_assert_uint_gt (strlen (all), 120000000);
}
END_TEST

/* A default file has fewer than a million events. */
START_TEST (default_is_under_a_million_events)
{
  g_autoptr (PodTimeline) timeline = sample_timeline_new (2);
  uint32_t op = sample_add_op (timeline, "k", POD_CATEGORY_FORWARD, SAMPLE_COMPUTE);
  uint64_t n_left_out = 0;

  for (uint32_t rank = 0; rank < 2; rank++)
    for (int64_t i = 0; i < 499996; i++)
      sample_add_span (timeline, op, rank, i * US, i * US, (i + 1) * US);

  g_autofree char *text
      = write_text (timeline, (PodTraceRequest){ .file = "t.json" }, &n_left_out, NULL);

  ck_assert_uint_eq (count (text, "\"ph\":\"X\""), 499996);
  ck_assert_uint_eq (n_left_out, 499996);
}
END_TEST

/* ---- refusals ---- */

typedef struct
{
  const char *file;
  int64_t end_ps;
  PodErrorCode code;
  const char *message; /* a part of it */
} Refusal;

static const Refusal refusals[] = {
  { "t.txt", US, POD_ERROR_UNSUPPORTED,
    "t.txt: a trace is written as .json, .json.gz, .pftrace or .pftrace.gz" },
  { "t.gz", US, POD_ERROR_UNSUPPORTED, "t.gz: a trace" },
  { "none/t.json", US, POD_ERROR_IO, "none" },
  { "t.json", -1, POD_ERROR_INVALID, "span 0" },
  { "t.json", INT64_C (8796093022208000000), POD_ERROR_LIMIT, "2^43 us" },
  { "t.json", INT64_MAX, POD_ERROR_LIMIT, "2^43 us" },
};

START_TEST (bad_request_is_refused)
{
  const Refusal *row = &refusals[_i];
  g_autoptr (PodTimeline) timeline = sample_timeline_new (1);
  g_autoptr (GError) error = NULL;
  uint32_t op = sample_add_op (timeline, "k", POD_CATEGORY_FORWARD, SAMPLE_COMPUTE);

  sample_add_span (timeline, op, 0, 0, 0, row->end_ps);
  ck_assert_ptr_null (write_text (timeline, (PodTraceRequest){ .file = row->file }, NULL, &error));
  ck_assert_msg (g_error_matches (error, POD_ERROR, (gint) row->code), "%s", error->message);
  ck_assert_msg (strstr (error->message, row->message) != NULL, "%s", error->message);
}
END_TEST

START_TEST (full_disk_is_reported)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (1, 1);
  g_autoptr (GError) error = NULL;
  g_autofree char *link = g_build_filename (folder, "full.json", NULL);
  PodTraceRequest request = { .file = link };

  ck_assert (symlink ("/dev/full", link) == 0);
  ck_assert (!pod_trace_write (timeline, &request, NULL, &error));
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_IO));
  g_remove (link);
}
END_TEST

/* ---- the judge itself: each text breaks the rule named, which proves that the rule is looked at
 * ---- */

#define NAMES                                                                                      \
  "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"process_name\",\"args\":{\"name\":\"rank 0\"}},"   \
  "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":0}}" \
  ","                                                                                              \
  "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_name\",\"args\":{\"name\":\"compute\"}},"   \
  "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":0}},"
#define SLICE(ts, dur)                                                                             \
  "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"name\":\"a\",\"ts\":" ts ",\"dur\":" dur "}"
#define FLOW(ph, ts, id)                                                                           \
  "{\"ph\":\"" ph "\",\"bp\":\"e\",\"pid\":1,\"tid\":2,\"name\":\"m\",\"ts\":" ts ",\"id\":" id "}"
#define COUNTER(ts, value)                                                                         \
  "{\"ph\":\"C\",\"pid\":1,\"tid\":2,\"name\":\"c\",\"ts\":" ts ",\"args\":{\"v\":" value "}}"

static const struct
{
  const char *rule; /* NULL: none is broken */
  const char *events;
} broken_traces[] = {
  { NULL, NAMES SLICE ("0.001", "0.999") "," SLICE ("1.000", "1.000") },
  { NULL,
    NAMES SLICE ("1.000", "9.000") "," SLICE ("2.000", "0.000") "," SLICE ("2.000", "8.000") },
  { NULL,
    NAMES SLICE ("1.000", "9.000") "," FLOW ("s", "1.000", "7") "," FLOW ("f", "9.999", "7") },
  { "strict-json", NAMES SLICE ("1.000", "1.000") "," },
  { "strict-json", NAMES SLICE ("1.000", "1.000") "," SLICE ("01.000", "1.000") },
  { "strict-json", NAMES "{\"ph\":\"X\",\"name\":\"\x01\"}" },
  { "strict-json", NAMES "{\"ph\":\"X\",\"name\":\"\xff\"}" },
  { "strict-json", NAMES "{\"ph\":\"X\",\"name\":\"\\x\"}" },
  { "strict-json", NAMES "{'ph':\"X\"}" },
  { "strict-json", NAMES "/* */ " SLICE ("1.000", "1.000") },
  { "strict-json", NAMES "[" },
  { "no-nan-or-infinity", NAMES SLICE ("1.000", "nan") },
  { "no-nan-or-infinity", NAMES SLICE ("1.000", "-Infinity") },
  { "three-decimals", NAMES SLICE ("1.0000", "1.000") },
  { "three-decimals", NAMES SLICE ("1", "1.000") },
  { "three-decimals", NAMES SLICE ("1.000", "1e3") },
  { "three-decimals", NAMES SLICE ("\"1.000\"", "1.000") },
  { "no-negative-times", NAMES SLICE ("-1.000", "1.000") },
  { "no-negative-times", NAMES SLICE ("1.000", "-0.001") },
  { "no-negative-times", NAMES "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"name\":\"a\"}" },
  { "nanoseconds-survive", NAMES SLICE ("8796093022208.000", "1.000") },
  /* T02 as it goes wrong */
  { "lanes-nested", NAMES SLICE ("0.001", "1.000") "," SLICE ("1.000", "1.000") },
  { "lanes-nested", NAMES SLICE ("1.000", "9.000") "," SLICE ("5.000", "6.000") },
  { "sums-keep-order", NAMES SLICE ("10.002", "0.124") "," SLICE ("10.126", "1.000") },
  { "slices-there", NAMES COUNTER ("1.000", "1") },
  { "flows-inside-slices",
    NAMES SLICE ("1.000", "1.000") "," FLOW ("s", "2.000", "7") "," FLOW ("f", "2.000", "7") },
  { "flows-inside-slices",
    NAMES SLICE ("1.000", "0.000") "," FLOW ("s", "1.000", "7") "," FLOW ("f", "1.000", "7") },
  { "flows-paired", NAMES SLICE ("1.000", "9.000") "," FLOW ("s", "2.000", "7") },
  { "flows-paired", NAMES SLICE ("1.000", "9.000") "," FLOW ("f", "2.000", "7") },
  { "flows-paired",
    NAMES SLICE ("1.000", "9.000") "," FLOW ("s", "3.000", "7") "," FLOW ("f", "2.000", "7") },
  { "flow-ids-unique",
    NAMES SLICE ("1.000", "9.000") "," FLOW ("s", "2.000", "7") "," FLOW (
        "f", "2.000", "7") "," FLOW ("s", "2.000", "7") "," FLOW ("f", "2.000", "7") },
  { "ids-whole-and-not-0",
    NAMES "{\"ph\":\"X\",\"pid\":1,\"tid\":\"stream 7\",\"name\":\"a\",\"ts\":1.000}" },
  { "ids-whole-and-not-0", NAMES "{\"ph\":\"X\",\"pid\":0,\"tid\":2,\"name\":\"a\",\"ts\":1.000}" },
  { "tids-of-one-pid", NAMES "{\"ph\":\"X\",\"pid\":3,\"tid\":2,\"name\":\"a\",\"ts\":1.000}" },
  { "metadata-first", NAMES SLICE ("1.000", "1.000") "," NAMES SLICE ("2.000", "1.000") },
  { "metadata-without-time",
    "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"process_name\",\"ts\":0.000,"
    "\"args\":{\"name\":\"a\"}}," SLICE ("1.000", "1.000") },
  { "phases-known", NAMES "{\"ph\":\"i\",\"pid\":1,\"tid\":2,\"name\":\"a\",\"ts\":1.000}" },
  { "names-given", SLICE ("1.000", "1.000") },
  { "names-given", NAMES "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":1.000}" },
  { "sort-indices", SLICE ("1.000", "1.000") },
  { "sort-indices", NAMES
    "{\"ph\":\"M\",\"pid\":3,\"tid\":4,\"name\":\"process_name\",\"args\":{\"name\":\"rank 10\"}},"
    "{\"ph\":\"M\",\"pid\":3,\"tid\":4,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":0}}"
    "," SLICE ("1.000",
               "1.000") ",{\"ph\":\"X\",\"pid\":3,\"tid\":4,\"name\":\"a\",\"ts\":1.000}" },
  { "counters", NAMES COUNTER ("2.000", "1") "," COUNTER ("1.000", "1") },
  { "counters", NAMES COUNTER ("2.000", "null") },
  { "counters", NAMES "{\"ph\":\"C\",\"pid\":1,\"tid\":2,\"name\":\"c\",\"ts\":1.000}" },
};

START_TEST (broken_trace_is_noticed)
{
  g_autofree char *text = g_strdup_printf (
      "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"n_left_out\":0},\"traceEvents\":[%s]}",
      broken_traces[_i].events);
  g_autoptr (GPtrArray) rules = trace_rules_check (text, strlen (text));

  if (broken_traces[_i].rule == NULL)
    assert_keeps_rules (text);
  else
    ck_assert_msg (trace_rules_why (rules, broken_traces[_i].rule) != NULL, "%s is kept by %s",
                   broken_traces[_i].rule, text);
}
END_TEST

START_TEST (broken_head_is_noticed)
{
  static const char microseconds[]
      = "{\"displayTimeUnit\":\"us\",\"traceEvents\":[" NAMES SLICE ("1.000", "1.000") "]}";
  static const char array[] = "[" NAMES SLICE ("1.000", "1.000") "]";
  g_autoptr (GPtrArray) rules = trace_rules_check (microseconds, strlen (microseconds));
  g_autoptr (GPtrArray) array_rules = trace_rules_check (array, strlen (array));

  ck_assert_ptr_nonnull (trace_rules_why (rules, "display-unit"));
  ck_assert_ptr_nonnull (trace_rules_why (rules, "left-out-stored"));
  /* An array is a trace, too, but has no place for the number left out */
  ck_assert_ptr_null (trace_rules_why (array_rules, "strict-json"));
  ck_assert_ptr_null (trace_rules_why (array_rules, "lanes-nested"));
  ck_assert_ptr_nonnull (trace_rules_why (array_rules, "left-out-stored"));
}
END_TEST

/* -- Perfetto ---------------------------------------------------------------------------------- */

/* The bytes of a Perfetto trace. (transfer full) */
static GBytes *
write_perfetto (const PodTimeline *timeline, PodTraceRequest request, uint64_t *out_n_left_out)
{
  g_autofree char *file = g_build_filename (folder, request.file, NULL);
  g_autoptr (GError) error = NULL;
  size_t n_bytes;
  g_autofree char *data = NULL;

  request.file = file;
  ck_assert_msg (pod_trace_write (timeline, &request, out_n_left_out, &error), "%s",
                 error != NULL ? error->message : "");
  data = pod_file_read (file, (size_t) 1 << 30, &n_bytes, NULL);
  ck_assert_int_eq (g_remove (file), 0);
  if (g_str_has_suffix (file, ".gz"))
    {
      char *inflated = pod_gzip_inflate (file, data, n_bytes, (size_t) 1 << 30, &n_bytes, NULL);

      return g_bytes_new_take (inflated, n_bytes);
    }
  return g_bytes_new_take (g_steal_pointer (&data), n_bytes);
}

/* Both formats say the same of @timeline. */
static void
assert_same (const PodTimeline *timeline, PodTraceRequest request, const char *perfetto_file)
{
  g_autofree char *text = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autofree char *why = NULL;
  uint64_t n_chrome_left_out = 0;
  uint64_t n_perfetto_left_out = 0;
  g_autoptr (GPtrArray) a = NULL;
  g_autoptr (GPtrArray) b = NULL;

  request.file = "t.json";
  text = write_text (timeline, request, &n_chrome_left_out, NULL);
  request.file = perfetto_file;
  bytes = write_perfetto (timeline, request, &n_perfetto_left_out);
  a = trace_facts_of_chrome (text, &why);
  ck_assert_msg (a != NULL, "%s", why);
  b = trace_facts_of_perfetto (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), &why);
  ck_assert_msg (b != NULL, "%s", why);
  why = trace_facts_compare (a, b);
  ck_assert_msg (why == NULL, "%s", why);
  ck_assert_uint_eq (n_chrome_left_out, n_perfetto_left_out);
}

START_TEST (perfetto_says_what_chrome_says)
{
  g_autoptr (PodTimeline) timeline
      = sample_pipeline_new (pipelines[_i].n_ranks, pipelines[_i].n_microbatches);
  PodTraceRequest request = { .metadata = json_object_new () };

  json_object_set_string_member (request.metadata, "layout", "dp=2 pp=4");
  assert_same (timeline, request, "t.pftrace");
  assert_same (timeline, request, "t.pftrace.gz");
  request.max_events = 200; /* and leaves out the same */
  assert_same (timeline, request, "t.pftrace");
  json_object_unref (request.metadata);
}
END_TEST

START_TEST (perfetto_names_may_be_anything)
{
  g_autoptr (PodTimeline) timeline = sample_timeline_new (1);
  const uint32_t op
      = sample_add_op (timeline, "quote \" \xff \u00e9 \\", POD_CATEGORY_COMM, SAMPLE_TP);
  const uint32_t series = sample_add_series (timeline, "busy");

  g_array_index (timeline->ops, PodTimelineOp, op).detail = "a \"b\"";
  g_array_index (timeline->ops, PodTimelineOp, op).flops = NAN;
  g_array_index (timeline->ops, PodTimelineOp, op).bytes = 1.5e300;
  sample_add_span (timeline, op, 0, -5 * US, US, 3 * US);
  sample_add_span (timeline, op, 0, 3 * US, 3 * US, 3 * US);
  sample_add_value (timeline, series, 0, 0, NAN);
  sample_add_value (timeline, series, 0, US, -0.25);
  assert_same (timeline, (PodTraceRequest){ 0 }, "t.pftrace");
}
END_TEST

START_TEST (perfetto_keeps_its_bound)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (4, 300);
  const uint32_t n_ops = timeline->ops->len;
  g_autofree char *detail = g_strnfill (2000, 'x');
  g_autoptr (GBytes) bytes = NULL;

  /* A string is written once, however many slices have it */
  for (guint i = 0; i < n_ops; i++)
    g_array_index (timeline->ops, PodTimelineOp, i).detail = detail;
  bytes = write_perfetto (timeline, (PodTraceRequest){ .file = "t.pftrace" }, NULL);
  ck_assert_uint_lt (g_bytes_get_size (bytes), (gsize) timeline->spans->len * 150
                                                   + (gsize) timeline->counters->len * 50 + 4000);
}
END_TEST

/* What a reader must notice: a byte more, a byte less, a string that is not there. */
START_TEST (broken_perfetto_is_noticed)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (2, 2);
  g_autoptr (GBytes) bytes
      = write_perfetto (timeline, (PodTraceRequest){ .file = "t.pftrace" }, NULL);
  const size_t n_bytes = g_bytes_get_size (bytes);
  const uint8_t *data = g_bytes_get_data (bytes, NULL);
  g_autofree uint8_t *copy = g_malloc0 (n_bytes + 1);
  g_autofree char *why = NULL;

  memcpy (copy, data, n_bytes);
  ck_assert_ptr_null (trace_facts_of_perfetto (copy, n_bytes + 1, &why));
  g_clear_pointer (&why, g_free);
  ck_assert_ptr_null (trace_facts_of_perfetto (copy, n_bytes - 1, &why));
  g_clear_pointer (&why, g_free);
  /* Without the first packet, which has the strings */
  ck_assert_uint_lt (copy[1] & 0x7f, n_bytes);
  const size_t first = 3 + ((size_t) (copy[1] & 0x7f) | (size_t) copy[2] << 7);
  ck_assert_ptr_null (trace_facts_of_perfetto (copy + first, n_bytes - first, &why));
  ck_assert_ptr_nonnull (why);
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("trace");
  TCase *tcase = tcase_create ("trace");

  tcase_add_checked_fixture (tcase, make_folder, remove_folder);
  tcase_set_timeout (tcase, 300);
  tcase_add_loop_test (tcase, pipeline_keeps_every_rule, 0, G_N_ELEMENTS (pipelines));
  tcase_add_test (tcase, empty_timeline_is_a_valid_file);
  tcase_add_test (tcase, args_say_what_an_op_is);
  tcase_add_test (tcase, metadata_is_kept);
  tcase_add_loop_test (tcase, slice_is_written_in_whole_nanoseconds, 0, G_N_ELEMENTS (slice_cases));
  tcase_add_test (tcase, sums_of_doubles_keep_the_order);
  tcase_add_loop_test (tcase, flow_stands_on_its_slices, 0, G_N_ELEMENTS (flow_cases));
  tcase_add_test (tcase, wait_and_transfer_are_slices_of_their_own);
  tcase_add_test (tcase, wait_starts_when_the_lane_is_free);
  tcase_add_test (tcase, names_are_escaped);
  tcase_add_test (tcase, not_a_number_is_left_out);
  tcase_add_test (tcase, lanes_have_names_and_places);
  tcase_add_test (tcase, unnamed_rank_gets_its_number);
  tcase_add_loop_test (tcase, whole_ranks_are_kept, 0, G_N_ELEMENTS (limits));
  tcase_add_test (tcase, names_alone_need_room);
  tcase_add_test (tcase, file_keeps_under_100_mb);
  tcase_add_test (tcase, default_is_under_a_million_events);
  tcase_add_loop_test (tcase, bad_request_is_refused, 0, G_N_ELEMENTS (refusals));
  tcase_add_test (tcase, full_disk_is_reported);
  tcase_add_loop_test (tcase, broken_trace_is_noticed, 0, G_N_ELEMENTS (broken_traces));
  tcase_add_test (tcase, broken_head_is_noticed);
  tcase_add_loop_test (tcase, perfetto_says_what_chrome_says, 0, G_N_ELEMENTS (pipelines));
  tcase_add_test (tcase, perfetto_names_may_be_anything);
  tcase_add_test (tcase, perfetto_keeps_its_bound);
  tcase_add_test (tcase, broken_perfetto_is_noticed);
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
