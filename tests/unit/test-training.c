#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/error.h"
#include "base/output.h"
#include "validate/error-summary.h"
#include "validate/training-scenario.h"
#include "validate/training-sources.h"

/* Rows of the measured tables: what becomes of their words. */

/* Four errors by hand: |e| sorted 0.1 0.2 0.3 0.6; median 0.25, p90 at 2.7: 0.3 + 0.7 x 0.3. */
START_TEST (figures_by_hand)
{
  double errors[] = { 0.2, -0.1, 0.6, -0.3 };
  PodErrorSummary summary = pod_error_summary (errors, 4);

  ck_assert_uint_eq (summary.n_rows, 4);
  ck_assert_double_eq_tol (summary.mape, 0.3, 1e-12);
  ck_assert_double_eq_tol (summary.bias, 0.1, 1e-12);
  ck_assert_double_eq_tol (summary.median_error, 0.25, 1e-12);
  ck_assert_double_eq_tol (summary.p90_error, 0.51, 1e-12);
  /* (ln 1.2 - ln 0.9 + ln 1.6 - ln 0.7) / 4 */
  ck_assert_double_eq_tol (summary.mean_log_error, 0.2785901614, 1e-9);
}
END_TEST

START_TEST (no_errors_no_figures)
{
  double none = 0;

  ck_assert_uint_eq (pod_error_summary (&none, 0).n_rows, 0);
}
END_TEST

static const struct
{
  const char *text;
  uint64_t n_parts;
  uint64_t n_layers;
  const char *expected; /* NULL: refused */
} layouts[] = {
  /* Megatron-Bridge, DeepSeek-V3: E tttt | 14 x (tttt |) t m L is 4 + 14 x 4 + 1 = 61 layers on 16 parts */
  { "Et*4|(t*4|)*14tmL", 16, 61, "4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,1" },
  { "Ett|tt|tL", 3, 5, "2,2,1" },
  { "E|(t|)*2L", 4, 2, "0,1,1,0" },
  { "((t|)*2t|)*2L", 7, 6, "1,1,1,1,1,1,0" },
  { "Et|tL", 2, 3, NULL },    /* layers do not add up */
  { "Et|tL", 3, 2, NULL },    /* parts neither */
  { "Et|xL", 2, 1, NULL },    /* no such letter */
  { "E(t|", 2, 1, NULL },     /* open bracket */
  { "Et)|L", 2, 1, NULL },
  { "", 2, 1, NULL },
};

START_TEST (pipeline_layouts)
{
  g_autofree char *out
      = pod_training_pipeline_layout (layouts[_i].text, layouts[_i].n_parts, layouts[_i].n_layers);

  if (layouts[_i].expected == NULL)
    ck_assert_ptr_null (out);
  else
    ck_assert_pstr_eq (out, layouts[_i].expected);
}
END_TEST

/* A row with everything; each test changes what it is about. */
static PodTrainingRow
full_row (void)
{
  return (PodTrainingRow){
    .id = "X1", .source = "megatron-sc21-t1", .hardware = "A100-SXM-80GB (Selene)",
    .framework = "Megatron-LM (PTD-P)", .model = "GPT-7.5B", .gated = "N", .vocab = "51200",
    .head_dim = "128", .zero_stage = "0", .recompute_kind = "full", .dtype = "fp16",
    .dtype_kind = "fp16", .n_chips = 128, .layers = 36, .hidden = 4096, .heads = 32,
    .kv_heads = 32, .ffn = 16384, .seq_len = 2048, .global_batch = 512, .micro_batch = 4,
    .tp = 4, .pp = 1, .dp = 32, .cp = 1, .ep = 1, .step_time_s = 3.7,
  };
}

static PodScenario *
scenario_of (const PodTrainingRow *row)
{
  g_autoptr (GError) error = NULL;
  PodScenario *scenario = pod_training_scenario (row, &error);

  ck_assert_msg (scenario != NULL, "%s", error == NULL ? "?" : error->message);
  return scenario;
}

START_TEST (a_plain_row)
{
  PodTrainingRow row = full_row ();
  g_autoptr (PodScenario) s = scenario_of (&row);

  ck_assert_str_eq (s->topology, "a100:8x16,nic=200Gb/s,tree=3");
  ck_assert_str_eq (s->layout, "dp=32 tp=4");
  ck_assert_str_eq (s->model, "gpt3-175b");
  ck_assert_uint_eq (s->layers, 36);
  ck_assert_uint_eq (s->vocab, 51200);
  ck_assert_uint_eq (s->zero, 0);
  ck_assert_str_eq (s->grad_dtype, "fp16");
  ck_assert_int_eq (s->sequence_parallel, 0);
  ck_assert_int_eq (s->overlap_dp, 0);
  ck_assert_ptr_null (s->stage_layers);
}
END_TEST

static const struct
{
  uint64_t layers;
  uint64_t pp;
  const char *vpp;
  const char *note;
  const char *stage_layers; /* (nullable) */
  int embed_head;           /* -1: not said */
} stages[] = {
  { 36, 4, "1", NULL, NULL, -1 },
  { 126, 8, "2", NULL, NULL, 1 },        /* (126 + 2) / 16 = 8 */
  { 106, 12, "1", NULL, NULL, 1 },       /* (106 + 2) / 12 = 9 */
  { 61, 4, "4", NULL, "balanced", -1 },
  { 61, 8, "2", "x; pp_layout=Et*4|(t*4|)*14tmL", "4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,1", -1 },
  { 61, 8, "4", "x; pp_layout=Et*4|(t*4|)*14tmL", "balanced", -1 }, /* of other parts: not this row's */
  { 126, 8, "interleaved 1F1B (stages/rank not stated)", NULL, NULL, 1 },
};

START_TEST (stages_of_a_row)
{
  PodTrainingRow row = full_row ();
  g_autoptr (PodScenario) s = NULL;

  row.layers = stages[_i].layers;
  row.pp = stages[_i].pp;
  row.vpp = stages[_i].vpp;
  row.note = stages[_i].note;
  s = scenario_of (&row);
  ck_assert_pstr_eq (s->stage_layers, stages[_i].stage_layers);
  ck_assert_int_eq (s->embed_head_as_layers, stages[_i].embed_head);
}
END_TEST

static const struct
{
  const char *hardware;
  const char *topology;
  uint64_t n_chips;
  const char *expected;
} machines[] = {
  { "A100-SXM-80GB", "8-GPU NVLink nodes; 4x100 Gb/s RoCE per node", 256, "a100:8x32,nic=50Gb/s,nics=4" },
  { "A100-SXM-80GB (Jean Zay)", "4x Omni-Path 100 Gb/s per node", 360, "a100:8x45,nic=50Gb/s,nics=4" },
  { "DGX-GB200", "NVL72 domain", 256, "gb200:64x4" },
  { "DGX-GB300", "NVL72 domain", 72, "gb300:72x1" },
  { "DGX-B300", "8-GPU NVLink nodes", 64, "b300:8x8" },
  { "TPU v5e", "16x v5e-256 (16x16 2D torus), slices over DCN", 4096, "tpu-v5e:16x16*16" },
  { "TPU v5p", "1x v5p-2048 (1024 chips each, 3D torus)", 1024, "tpu-v5p:8x8x16" },
  { "TPU v6e (Trillium)", "1x v6e-256 (16x16)", 256, "tpu-v6e:16x16" },
};

START_TEST (machines_of_rows)
{
  PodTrainingRow row = full_row ();
  g_autoptr (PodScenario) s = NULL;

  row.hardware = machines[_i].hardware;
  row.topology = machines[_i].topology;
  row.n_chips = machines[_i].n_chips;
  s = scenario_of (&row);
  ck_assert_str_eq (s->topology, machines[_i].expected);
}
END_TEST

START_TEST (shards_and_replicas)
{
  PodTrainingRow row = full_row ();
  g_autoptr (PodScenario) slices = NULL;
  g_autoptr (PodScenario) all = NULL;
  g_autoptr (PodScenario) replicas = NULL;

  row.zero_stage = "3";
  row.tp = 1;
  row.dp = 128;
  row.fsdp = "FSDP=64 per slice, DP over slices";
  slices = scenario_of (&row);
  ck_assert_str_eq (slices->layout, "dp=2 fsdp=64");
  row.fsdp = "FSDP 8 nodes x 8, DP 2";
  replicas = scenario_of (&row);
  ck_assert_str_eq (replicas->layout, "dp=2 fsdp=64");
  row.fsdp = "ZeRO-3";
  all = scenario_of (&row);
  ck_assert_str_eq (all->layout, "fsdp=128");
}
END_TEST

/* What a row says goes before what its framework does. */
START_TEST (words_before_defaults)
{
  PodTrainingRow row = full_row ();
  g_autoptr (PodScenario) said = NULL;
  g_autoptr (PodScenario) refused = NULL;

  row.recompute = "selective + sequence parallel";
  row.dtype = "bf16 (fp32 grad accumulation)";
  row.dtype_kind = "bf16";
  said = scenario_of (&row);
  ck_assert_int_eq (said->sequence_parallel, 1);
  ck_assert_str_eq (said->grad_dtype, "fp32");
  row.framework = "NeMo";
  row.recompute = "full (no sequence parallel)";
  refused = scenario_of (&row);
  ck_assert_int_eq (refused->sequence_parallel, 0);
  ck_assert_int_eq (refused->overlap_dp, 1);
}
END_TEST

/* torchtitan's pipelines cut a rank's batch into as many microbatches as stages. */
START_TEST (local_batches)
{
  PodTrainingRow row = full_row ();
  g_autoptr (PodScenario) s = NULL;

  row.framework = "torchtitan (PyTorch)";
  row.pp = 4;
  row.micro_batch = 32;
  s = scenario_of (&row);
  ck_assert_uint_eq (s->micro_batch, 8);
}
END_TEST

/* Experts over 32 ranks stand on four nodes of eight; DeepEP sends a token to each once. Others send a copy for each expert. */
START_TEST (tokens_once_to_a_node)
{
  PodTrainingRow row = full_row ();
  g_autoptr (PodScenario) plain = NULL;
  g_autoptr (PodScenario) once = NULL;

  row.ep = 32;
  row.n_experts = 32;
  plain = scenario_of (&row);
  ck_assert_str_eq (plain->layout, "dp=32 tp=4 ep=32");
  ck_assert_uint_eq (plain->route_nodes, 0);
  row.note = "moe_flex_dispatcher_backend=deepep, moe_a2a_overlap=True";
  once = scenario_of (&row);
  ck_assert_uint_eq (once->route_nodes, 4);
}
END_TEST

START_TEST (what_lacks_is_refused)
{
  static const char *const parts[] = { "machine not mapped: Habana", "not stated: tp", "not stated: vocab",
                                       "model not mapped: X", "shape of the slice", "not stated: dtype" };
  PodTrainingRow row = full_row ();
  g_autoptr (GError) error = NULL;

  switch (_i)
    {
    case 0: row.hardware = "Habana"; break;
    case 1: row.tp = 0; break;
    case 2: row.vocab = NULL; break;
    case 3: row.model = "X"; row.n_experts = 8; break;
    case 4: row.hardware = "TPU v5p"; row.n_chips = 96; break;
    case 5: row.dtype_kind = NULL; break;
    }
  ck_assert_ptr_null (pod_training_scenario (&row, &error));
  ck_assert_msg (strstr (error->message, parts[_i]) != NULL, "%s", error->message);
}
END_TEST

START_TEST (a_table_is_read)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *file = g_build_filename (g_getenv ("SRC") != NULL ? g_getenv ("SRC") : ".",
                                            "workloads/measured/training.tsv", NULL);
  g_autoptr (PodTrainingTable) table = pod_training_table_load (file, &error);
  unsigned n_judged = 0;

  ck_assert_msg (table != NULL, "%s", error == NULL ? "?" : error->message);
  for (guint i = 0; i < table->rows->len; i++)
    {
      const PodTrainingRow *row = g_ptr_array_index (table->rows, i);

      n_judged += row->is_judged;
      ck_assert (!row->is_judged || (pod_training_source (row) != NULL && row->step_time_s > 0));
    }
  ck_assert_uint_eq (n_judged, 462);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("training");
  TCase *cases = tcase_create ("training");
  SRunner *runner;
  int n_failed;

  tcase_add_test (cases, figures_by_hand);
  tcase_add_test (cases, no_errors_no_figures);
  tcase_add_loop_test (cases, pipeline_layouts, 0, G_N_ELEMENTS (layouts));
  tcase_add_test (cases, a_plain_row);
  tcase_add_loop_test (cases, stages_of_a_row, 0, G_N_ELEMENTS (stages));
  tcase_add_loop_test (cases, machines_of_rows, 0, G_N_ELEMENTS (machines));
  tcase_add_test (cases, shards_and_replicas);
  tcase_add_test (cases, words_before_defaults);
  tcase_add_test (cases, local_batches);
  tcase_add_test (cases, tokens_once_to_a_node);
  tcase_add_loop_test (cases, what_lacks_is_refused, 0, 6);
  tcase_add_test (cases, a_table_is_read);
  suite_add_tcase (suite, cases);
  runner = srunner_create (suite);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
