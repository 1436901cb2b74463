#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <glib/gstdio.h>

#include "base/json.h"
#include "parallel/builder-private.h"
#include "report/plot.h"
#include "support/sample-timeline.h"

#define MS (INT64_C (1000000000))

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

/* One of tests/data/results. */
static PodJson *
load (const char *name)
{
  g_autofree char *file = g_build_filename (POD_SOURCE_DIR, "tests/data/results", name, NULL);
  g_autoptr (GError) error = NULL;
  PodJson *json = pod_json_load (file, &error);

  ck_assert_msg (json != NULL, "%s", error != NULL ? error->message : "");
  return json;
}

static JsonObject *
object_of (const PodJson *json)
{
  return json_node_get_object (json->root);
}

/* -- a step ------------------------------------------------------------------------------------ */

START_TEST (terms_add_up)
{
  g_autoptr (PodJson) json = load ("pipeline.json");
  g_autoptr (GArray) terms = pod_report_terms (object_of (json));
  int64_t sum_ps = 0;

  ck_assert_uint_eq (terms->len, 6);
  for (guint i = 0; i < terms->len; i++)
    sum_ps += g_array_index (terms, PodReportTerm, i).time_ps;
  ck_assert_int_eq (sum_ps, pod_report_time_ps (object_of (json)));
  /* fsdp: 45 ms of communication, 9.999999999 ms of it exposed */
  ck_assert_str_eq (g_array_index (terms, PodReportTerm, 1).axis, "fsdp");
  ck_assert_int_eq (g_array_index (terms, PodReportTerm, 1).time_ps, 9999999999);
  ck_assert_int_eq (g_array_index (terms, PodReportTerm, 1).total_ps, 45 * MS);
}
END_TEST

START_TEST (summary_says_what_a_run_was)
{
  g_autoptr (PodJson) json = load ("pipeline.json");
  g_autofree char *text = pod_report_step (object_of (json));
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);

  assert_has (text, "llama3-8b, 8.03 B parameters");
  assert_has (text, "h100:8x2, 16 chips\n");
  assert_has (text, "32 x 4,096 tokens = 131 K, in 8 microbatches of 1 per data rank");
  assert_has (text, "100 ms, lower bound 60.0 ms (60.0 % of it), bound by compute");
  assert_has (text, "1,310,720, 81,920 per chip");
  assert_has (text, "40.4 % of 989 TFLOP/s a device, by causal FLOPs (megatron 42.0 %, palm");
  assert_has (text, "52.0 %, with recomputation");
  assert_has (text, "compute               70.00 ms   70.0 %\n");
  assert_has (text, "  recompute           15.00 ms   15.0 %  in compute\n");
  assert_has (text, "exposed fsdp          10.00 ms   10.0 %  of 45.00 ms in all\n");
  assert_has (text, "step                 100.00 ms  100.0 %\n");
  assert_has (text, "peak                      30.00 GB   37.5 %  fits, 48.0 GB free\n");
  assert_has (text, "peak by stage: 30.00, 25.00 GB\n");
  assert_has (text, "training on 1.00 T tokens, at 100 % availability\n");
  assert_has (text, "8,476 USD at 2.50 USD a chip-hour");
  assert_has (text, "assumptions\n- vocabulary 128256 padded");
  assert_has_not (text, "warnings");
  ck_assert_uint_le (g_strv_length (lines), 45);
  for (unsigned i = 0; lines[i] != NULL; i++)
    {
      ck_assert_uint_le (strlen (lines[i]), 110);
      ck_assert (!g_str_has_suffix (lines[i], " "));
    }
}
END_TEST

START_TEST (summary_says_by_how_much_it_does_not_fit)
{
  g_autoptr (PodJson) json = load ("no-pipeline.json");
  g_autofree char *text = pod_report_step (object_of (json));

  assert_has (text, "DOES NOT FIT: 5.00 GB too much\n");
  assert_has (text, "warnings\n- activations of all layers are kept\n");
  assert_has_not (text, "peak by stage");
  assert_has_not (text, "training");
}
END_TEST

/* A result of which little is known must not crash. */
START_TEST (summary_of_nothing)
{
  g_autoptr (JsonObject) empty = json_object_new ();
  g_autofree char *text = pod_report_step (empty);

  assert_has (text, "where the step goes");
}
END_TEST

/* -- explain ----------------------------------------------------------------------------------- */

static void
add_kernel (GArray *kernels, const char *name, PodBound bound, double time_s, uint64_t n_calls)
{
  static PodOp ops[8]; /* which uses point to */
  static unsigned n_ops;
  PodOp *op = &ops[n_ops++ % G_N_ELEMENTS (ops)];
  PodKernelUse use = {
    .op = op,
    .n_calls = n_calls,
    .kernel = { .kind = POD_KERNEL_MATMUL, .dtype = POD_DTYPE_BF16, .m = 8, .n = 8, .k = 8, .flops = 5e10, .read_bytes = 2e6, .write_bytes = 1e6 },
    .time = { .time_s = time_s,
              .flop_s = time_s * 0.9,
              .memory_s = time_s / 2,
              .overhead_s = time_s * 0.1,
              .bound = bound,
              .peak_flops_per_s = 1e15,
              .padding_ratio = 1.25,
              .wave_ratio = 1,
              .efficiency = 0.8,
              .waves = 7.5,
              .tile_m = 256,
              .tile_n = 128 },
  };

  *op = (PodOp){ .kind = POD_OP_COMPUTE, .layer = 3, .name = name, .has_detail = true };
  g_array_append_val (kernels, use);
}

START_TEST (explain_sorts_by_total)
{
  g_autoptr (GArray) kernels = g_array_new (FALSE, FALSE, sizeof (PodKernelUse));
  g_autoptr (GArray) collectives = g_array_new (FALSE, FALSE, sizeof (PodCollectiveUse));
  char words[] = "0.875 x bytes on the busiest link";
  const PodCollectiveUse use = { .comm = "tp",
                                 .axis = POD_AXIS_TP,
                                 .kind = POD_ALL_GATHER,
                                 .algorithm = "ring",
                                 .bytes = 4000000,
                                 .group_size = 8,
                                 .n_per_rank = 2000,
                                 .alone_s = 1e-5,
                                 .explain = words };
  const PodExecResult exec
      = { .time_ps = 100 * MS, .kernels = kernels, .collectives = collectives };
  g_autofree char *text = NULL;

  add_kernel (kernels, "small", POD_BOUND_HBM, 1e-3, 2);
  add_kernel (kernels, "large", POD_BOUND_COMPUTE, 1e-4, 500);
  add_kernel (kernels, "never", POD_BOUND_COMPUTE, 1, 0);
  g_array_append_val (collectives, use);
  text = pod_report_explain (&exec);
  assert_has (text, "large   50.0 ms  50.0 %    500   100 us  compute  matmul");
  /* 5e10 FLOPs in 100 us are half of 1e15 a second */
  assert_has (text,
              "    50.0 GFLOP at 50.0 % of 1.00 PFLOP/s: steady 80.0 %, padding x1.250, 7.5 waves "
              "of 256x128 tiles; FLOPs 90.0 us, HBM 50.0 us; overhead 10.0 us\n");
  assert_has (text, "    3.00 MB of HBM traffic at 3.00 GB/s; FLOPs 900 us, HBM 500 us; overhead");
  ck_assert (strstr (text, "large") < strstr (text, "small"));
  assert_has_not (text, "never");
  assert_has_not (text, "L12");
  assert_has (text,
              "tp     tp    all_gather  ring           8  4.00 MB  2,000  10.0 us  20.0 ms\n");
  assert_has (text, "    0.875 x bytes on the busiest link\n");
}
END_TEST

/* -- program ----------------------------------------------------------------------------------- */

/* Two ranks that gather weights, multiply and send nothing; one block, two microbatches. */
static PodProgram *
make_program (void)
{
  PodProgram *program = pod_program_new (2);
  const PodKernel kernel = pod_kernel_matmul (1, 16, 32, 64, POD_DTYPE_BF16, 2, 2, 2);
  PodCommunicator *comm = g_new0 (PodCommunicator, 1);
  PodProgramClass *class = g_new0 (PodProgramClass, 1);
  PodBuilder builder;
  PodOpStep step = { 0 };
  uint32_t gather;
  uint32_t matmul;

  comm->name = g_strdup ("fsdp");
  comm->axis = POD_AXIS_FSDP;
  comm->n_groups = 1;
  comm->group_size = 2;
  class->name = g_strdup ("stage 0");
  class->steps = g_array_new (FALSE, FALSE, sizeof (PodOpStep));
  pod_builder_init (&builder, program);
  class->static_bytes[pod_builder_label (&builder, "weights", POD_USE_PARAMS)] = 2048;
  pod_builder_open (&builder, "forward");
  gather = pod_builder_collective (&builder, POD_PHASE_FORWARD, 3, "gather", POD_STREAM_GATHER,
                                   pod_builder_add_communicator (&builder, comm), POD_ALL_GATHER,
                                   4096);
  matmul = pod_builder_compute (&builder, POD_PHASE_FORWARD, 3, "ffn \"in\"", true, &kernel);
  pod_builder_depend (&builder, matmul, gather);
  pod_builder_alloc (&builder, gather, pod_builder_label (&builder, "gathered", POD_USE_WORKSPACE),
                     4096);
  pod_builder_free_buffer (&builder, matmul, 1, 4096);
  step.block = pod_builder_close (&builder);
  for (step.microbatch = 0; step.microbatch < 2; step.microbatch++)
    g_array_append_val (class->steps, step);
  pod_builder_clear (&builder);
  g_ptr_array_add (program->classes, class);
  return program;
}

START_TEST (program_is_json_lines)
{
  static const char *const expected[] = {
    "{\"record\":\"program\",\"format\":1,\"ranks\":2,\"classes\":1,\"blocks\":1,\"ops\":2,"
    "\"streams\":[",
    "{\"record\":\"class\",\"class\":0,\"name\":\"stage 0\",\"ranks\":2,\"first_rank\":0,"
    "\"static_bytes\":{\"weights\":2048},\"steps\":[[0,0],[0,1]]}",
    "{\"record\":\"block\",\"block\":0,\"name\":\"forward\",\"ops\":2,\"streams\":{\"compute\":1,"
    "\"fsdp gather\":1}}",
    "{\"record\":\"op\",\"block\":0,\"op\":0,\"stream\":\"compute\",\"phase\":\"forward\",\"name\":"
    "\"L3 ffn "
    "\\\"in\\\"\",\"layer\":3,\"detail\":\"matmul [16, 64] x [64, 32] bf16\",\"kernel\":{\"kind\":\"matmul\",\"dtype\":"
    "\"bf16\",\"batch\":1,\"m\":16,\"n\":32,\"k\":64,\"flops\":65536,\"read_bytes\":6144,"
    "\"write_bytes\":1024},\"after\":[[\"fsdp "
    "gather\",1]],\"buffers\":[[\"gathered\",-4096,\"end\"]]}",
    "{\"record\":\"op\",\"block\":0,\"op\":1,\"stream\":\"fsdp "
    "gather\",\"phase\":\"forward\",\"name\":"
    "\"L3 gather\",\"layer\":3,\"collective\":{\"kind\":\"all_gather\",\"group\":\"fsdp\",\"axis\":"
    "\"fsdp\",\"ranks\":2,\"groups\":1,\"bytes\":4096,\"dtype\":\"bf16\"},\"after\":[],\"buffers\":[[\"gathered\","
    "4096,"
    "\"start\"]]}",
  };
  g_autoptr (PodProgram) program = make_program ();
  g_autoptr (GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp ("podsim-XXXXXX", NULL);
  g_autofree char *file = g_build_filename (folder, "program.jsonl", NULL);
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;

  ck_assert (pod_report_program (program, file, &error));
  ck_assert (g_file_get_contents (file, &text, NULL, NULL));
  lines = g_strsplit (text, "\n", -1);
  ck_assert_uint_eq (g_strv_length (lines), G_N_ELEMENTS (expected) + 1); /* ends with a newline */
  for (unsigned i = 0; i < G_N_ELEMENTS (expected); i++)
    {
      g_autoptr (PodJson) json = pod_json_parse ("line", lines[i], -1, NULL);

      ck_assert_ptr_nonnull (json);
      if (i == 0)
        ck_assert (g_str_has_prefix (lines[i], expected[i]));
      else
        ck_assert_str_eq (lines[i], expected[i]);
    }
  g_remove (file);
  g_rmdir (folder);
}
END_TEST

START_TEST (program_refuses_a_missing_folder)
{
  g_autoptr (PodProgram) program = make_program ();
  g_autoptr (GError) error = NULL;

  ck_assert (!pod_report_program (program, "/nowhere/program.jsonl", &error));
  assert_has (error->message, "/nowhere/program.jsonl: cannot write");
}
END_TEST

/* -- plots ------------------------------------------------------------------------------------- */

/* Files of a folder that is deleted with what was written there. */
typedef struct
{
  char *path;
} Folder;

static void
folder_clear (Folder *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder->path, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *file = g_build_filename (folder->path, name, NULL);

      g_remove (file);
    }
  g_rmdir (folder->path);
  g_free (folder->path);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Folder, folder_clear)

/* Returns: (transfer full) (nullable) */
static char *
read_file (const Folder *folder, const char *name)
{
  g_autofree char *file = g_build_filename (folder->path, name, NULL);
  char *text = NULL;

  g_file_get_contents (file, &text, NULL, NULL);
  return text;
}

static void
plot (const PodTimeline *timeline, const Folder *folder)
{
  g_autoptr (PodJson) json = load ("pipeline.json");
  g_autoptr (GError) error = NULL;

  if (!pod_report_plots (object_of (json), timeline, folder->path, &error))
    ck_abort_msg ("%s", error->message);
}

/* GLib's parser takes what is well-formed. */
static void
assert_is_xml (const char *text)
{
  static const GMarkupParser nothing = { NULL, NULL, NULL, NULL, NULL };
  g_autoptr (GMarkupParseContext) context = g_markup_parse_context_new (&nothing, 0, NULL, NULL);
  g_autoptr (GError) error = NULL;

  if (!g_markup_parse_context_parse (context, text, -1, &error)
      || !g_markup_parse_context_end_parse (context, &error))
    ck_abort_msg ("%s", error->message);
}

/* A rank whose memory rises and falls for each of @n samples, with one peak; a layer's ops in
 * between. */
static PodTimeline *
make_busy_timeline (unsigned n_samples)
{
  PodTimeline *timeline = sample_timeline_new (1);
  const uint32_t op
      = sample_add_op (timeline, "L0 attention <&>", POD_CATEGORY_FORWARD, SAMPLE_COMPUTE);
  const uint32_t comm = sample_add_op (timeline, "L0 gather", POD_CATEGORY_COMM, SAMPLE_TP);
  const uint32_t series = sample_add_series (timeline, "memory bytes");

  g_array_index (timeline->ops, PodTimelineOp, op).layer = 0;
  for (unsigned i = 0; i < n_samples; i++)
    {
      const int64_t at_ps = (int64_t) i * 1000;

      sample_add_span (timeline, op, 0, at_ps, at_ps, at_ps + 700);
      sample_add_span (timeline, comm, 0, at_ps, at_ps + 300, at_ps + 900);
      sample_add_value (timeline, series, 0, at_ps,
                        i == n_samples / 3 ? 9e9
                        : i % 2 == 0       ? 1e9
                                           : 2e9);
    }
  return timeline;
}

START_TEST (plots_are_written_with_data_and_scripts)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (2, 3);
  g_auto (Folder) folder = { g_dir_make_tmp ("podsim-XXXXXX", NULL) };
  g_auto (Folder) inner = { g_build_filename (folder.path, "it's", NULL) };
  g_autofree char *svg = NULL;
  g_autofree char *data = NULL;
  g_autofree char *script = NULL;
  g_autofree char *picture = NULL;
  g_autofree char *memory = NULL;

  plot (timeline, &inner);
  svg = read_file (&inner, "timeline.svg");
  assert_is_xml (svg);
  assert_has (svg, "rank 2 (2 ranks alike)");
  data = read_file (&inner, "breakdown.tsv");
  ck_assert (g_str_has_prefix (data, "term\tstart_s\ttime_s\tshare_ratio\tcolour\tlabel\n"
                                     "forward and backward\t0\t0.054499999901\t"));
  assert_has (data, "\nbubble\t0.085\t0.015\t0.15\t");
  script = read_file (&inner, "breakdown.gp");
  assert_has (script, "plot 'breakdown.tsv'");
  memory = read_file (&inner, "memory.tsv");
  assert_has (memory, "# rank 0 (2 ranks alike)\n# at_s\tbytes\n");
  picture = read_file (&inner, "memory.png");
  if (pod_report_has_gnuplot ())
    ck_assert (g_str_has_prefix (picture, "\x89PNG"));
  else
    ck_assert_ptr_null (picture);
}
END_TEST

START_TEST (plots_without_gnuplot)
{
  g_autoptr (PodTimeline) timeline = sample_pipeline_new (1, 1);
  g_auto (Folder) folder = { g_dir_make_tmp ("podsim-XXXXXX", NULL) };
  g_autofree char *path = g_strdup (g_getenv ("PATH"));
  g_autofree char *script = NULL;
  g_autofree char *picture = NULL;

  g_setenv ("PATH", "/nowhere", TRUE);
  ck_assert (!pod_report_has_gnuplot ());
  plot (timeline, &folder);
  g_setenv ("PATH", path != NULL ? path : "", TRUE);
  script = read_file (&folder, "memory.gp");
  ck_assert_ptr_nonnull (script);
  picture = read_file (&folder, "memory.png");
  ck_assert_ptr_null (picture);
}
END_TEST

START_TEST (curves_are_thinned_but_keep_the_peak)
{
  g_autoptr (PodTimeline) timeline = make_busy_timeline (200000);
  g_auto (Folder) folder = { g_dir_make_tmp ("podsim-XXXXXX", NULL) };
  g_autofree char *data = NULL;
  g_autofree char *svg = NULL;
  g_auto (GStrv) lines = NULL;

  plot (timeline, &folder);
  data = read_file (&folder, "memory.tsv");
  lines = g_strsplit (data, "\n", -1);
  ck_assert_uint_gt (g_strv_length (lines), 5000);
  ck_assert_uint_le (g_strv_length (lines), 20003);
  assert_has (data, "\t9000000000\n");
  /* Slices below a pixel are merged: 400,000 of them cost no more than the columns that they fill
   */
  svg = read_file (&folder, "timeline.svg");
  assert_is_xml (svg);
  ck_assert_uint_lt (strlen (svg), 200000);
  assert_has (svg, ">layer 0, forward</text>");
}
END_TEST

START_TEST (few_slices_have_names)
{
  g_autoptr (PodTimeline) timeline = make_busy_timeline (3);
  g_auto (Folder) folder = { g_dir_make_tmp ("podsim-XXXXXX", NULL) };
  g_autofree char *svg = NULL;

  plot (timeline, &folder);
  svg = read_file (&folder, "timeline.svg");
  assert_is_xml (svg);
  assert_has (svg, "<title>L0 attention &lt;&amp;&gt;, 700 ps</title>");
  assert_has (svg, ">attention &lt;&amp;&gt;</text>");
  assert_has (svg, "class=\"wait\"");
}
END_TEST

START_TEST (an_empty_timeline_is_drawn)
{
  g_autoptr (PodTimeline) timeline = sample_timeline_new (1);
  g_auto (Folder) folder = { g_dir_make_tmp ("podsim-XXXXXX", NULL) };
  g_autofree char *svg = NULL;

  plot (timeline, &folder);
  svg = read_file (&folder, "timeline.svg");
  assert_is_xml (svg);
  assert_has_not (svg, "nan");
}
END_TEST

START_TEST (plots_refuse_what_is_no_folder)
{
  g_autoptr (PodTimeline) timeline = sample_timeline_new (1);
  g_autoptr (PodJson) json = load ("pipeline.json");
  g_autoptr (GError) error = NULL;

  ck_assert (!pod_report_plots (object_of (json), timeline, "/dev/null/plots", &error));
  assert_has (error->message, "/dev/null/plots: cannot make the folder: ");
}
END_TEST

/* -- differences ------------------------------------------------------------------------------- */

START_TEST (differences_add_up)
{
  g_autoptr (PodJson) a = load ("pipeline.json");
  g_autoptr (PodJson) b = load ("no-pipeline.json");
  g_autoptr (JsonObject) diff = pod_report_diff (object_of (a), object_of (b));
  JsonObject *time = json_object_get_object_member (diff, "time");
  JsonObject *memory = json_object_get_object_member (diff, "memory");
  JsonArray *terms = json_object_get_array_member (time, "terms");
  JsonArray *uses = json_object_get_array_member (memory, "terms");
  int64_t sum_ps = 0;
  double sum_bytes = 0;

  for (guint i = 0; i < json_array_get_length (terms); i++)
    sum_ps
        += json_object_get_int_member (json_array_get_object_element (terms, i), "difference_ps");
  ck_assert_int_eq (sum_ps, INT64_C (80000000003) - 100 * MS);
  ck_assert_int_eq (sum_ps, json_object_get_int_member (time, "difference_ps"));
  for (guint i = 0; i < json_array_get_length (uses); i++)
    sum_bytes += json_object_get_double_member (json_array_get_object_element (uses, i),
                                                "difference_bytes");
  ck_assert (sum_bytes == 53000000006);
}
END_TEST

/* Terms that this version does not know are not lost. */
START_TEST (unknown_terms_are_other)
{
  g_autoptr (PodJson) a = load ("pipeline.json");
  g_autoptr (PodJson) b = load ("pipeline.json");
  g_autoptr (JsonObject) diff = NULL;
  g_autofree char *text = NULL;

  pod_result_set_int (object_of (b), "step.time_ps", 150 * MS);
  pod_result_set_string (object_of (b), "options.schedule", "zb-h1");
  diff = pod_report_diff (object_of (a), object_of (b));
  text = pod_report_diff_to_text (diff);
  assert_has (text, "step    100 ms -> 150 ms, +50.0 %: other +50.0 ms\n");
  assert_has (text, "options.schedule  -  zb-h1\n");
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("report");
  TCase *tcase = tcase_create ("report");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  suite_add_tcase (suite, tcase);
  tcase_set_timeout (tcase, 0);
  tcase_add_test (tcase, terms_add_up);
  tcase_add_test (tcase, summary_says_what_a_run_was);
  tcase_add_test (tcase, summary_says_by_how_much_it_does_not_fit);
  tcase_add_test (tcase, summary_of_nothing);
  tcase_add_test (tcase, explain_sorts_by_total);
  tcase_add_test (tcase, program_is_json_lines);
  tcase_add_test (tcase, program_refuses_a_missing_folder);
  tcase_add_test (tcase, plots_are_written_with_data_and_scripts);
  tcase_add_test (tcase, plots_without_gnuplot);
  tcase_add_test (tcase, curves_are_thinned_but_keep_the_peak);
  tcase_add_test (tcase, few_slices_have_names);
  tcase_add_test (tcase, an_empty_timeline_is_drawn);
  tcase_add_test (tcase, plots_refuse_what_is_no_folder);
  tcase_add_test (tcase, differences_add_up);
  tcase_add_test (tcase, unknown_terms_are_other);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
