/* Attention in a training step: over context ranks, latent, in windows, flash or unfused.
 *   - a ring's steps have all pairs of the sequence, each step as many as the next where no window is;
 *   - the FLOPs of all ranks add up to the model's, whatever the layout;
 *   - a ring hides its transfers behind attention or is bound by them, as worked by hand;
 *   - activations are those of arXiv 2205.05198, sections 4 and 5;
 *   - ranks hold the model's parameters once, latent projections once per tensor rank;
 *   - every buffer that appears in a step vanishes in it;
 *   - folded and unfolded runs agree to the byte, every rank's breakdown adds up.
 * Nothing here is compared with a stored number. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "parallel/attention-pass-private.h"
#include "scenario/scenario.h"

static const PodRunRequest no_request = { 0 };

static PodScenario *
scenario_of (const char *first, va_list args)
{
  PodScenario *scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;

  for (const char *word = first; word != NULL; word = va_arg (args, const char *))
    {
      g_auto (GStrv) pair = g_strsplit (word[0] == '\0' ? "-=-" : word, "=", 2);
      const bool is_model = strcmp (pair[0], "model") == 0 && strchr (pair[1], '.') != NULL;
      g_autofree char *file = is_model ? g_build_filename (g_getenv ("SRC") != NULL ? g_getenv ("SRC") : ".", "tests/data/models", pair[1], NULL) : NULL;

      if (word[0] == '\0')
        continue;
      ck_assert_msg (pod_scenario_set (scenario, pair[0], is_model ? file : pair[1], &error), "%s: %s", word, error != NULL ? error->message : "");
    }
  return scenario;
}

/* Runs "name=value" words, NULL-terminated; empty ones are skipped. */
static PodRun *
run_job (const char *first, ...)
{
  g_autoptr (PodScenario) scenario = NULL;
  g_autoptr (GError) error = NULL;
  va_list args;
  PodRun *run;

  va_start (args, first);
  scenario = scenario_of (first, args);
  va_end (args);
  run = pod_scenario_run (scenario, &no_request, &error);
  ck_assert_msg (run != NULL, "%s: %s", first, error != NULL ? error->message : "");
  return run;
}

/* The error of what cannot be run. Returns: (transfer full) */
static GError *
refuse_job (const char *first, ...)
{
  g_autoptr (PodScenario) scenario = NULL;
  GError *error = NULL;
  va_list args;
  PodRun *run;

  va_start (args, first);
  scenario = scenario_of (first, args);
  va_end (args);
  run = pod_scenario_run (scenario, &no_request, &error);
  ck_assert_msg (run == NULL, "%s: was not refused", first);
  return error;
}

static char *
result_text (PodRun *run)
{
  g_autoptr (JsonNode) root = json_node_alloc ();

  json_node_init_object (root, run->result);
  return pod_json_to_text (root);
}

static bool
is_near (double a, double b, double ratio)
{
  return fabs (a - b) <= ratio * MAX (fabs (a), fabs (b));
}

/* Windows of 8192 tokens over 8 ranks: within a chunk, of chunks, of a fraction, all. */
static const struct
{
  uint64_t window;
  bool is_chunked;
  bool is_sparse;
} spans[] = {
  { 0, false, false },    { 100, false, false },  { 512, false, false },  { 1000, false, false }, { 5000, false, false }, { 9000, false, false },
  { 100, true, false },   { 512, true, false },   { 1000, true, false },  { 5000, true, false },  { 8192, true, false },  { 2048, false, true },
};

START_TEST (test_ring_has_all_pairs)
{
  const PodLayerKind shape = { .window = spans[_i].window, .is_chunked = spans[_i].is_chunked, .is_sparse = spans[_i].is_sparse };
  const double whole = 8192 * pod_model_mean_span (&shape, 8192);

  for (uint32_t cp = 2; cp <= 16; cp++)
    {
      double sum = 0;

      for (uint32_t step = 0; step < cp; step++)
        {
          const double pairs = pod_ring_step_pairs (&shape, 8192, true, cp, step);

          ck_assert_msg (pairs >= 0, "window %d cp %u step %u: %g pairs", (int) shape.window, cp, step, pairs);
          if (shape.window == 0 || shape.is_sparse)
            ck_assert_msg (is_near (pairs, whole / cp / cp, 1e-12), "cp %u step %u: %g pairs of %g", cp, step, pairs, whole);
          sum += pairs * cp;
        }
      ck_assert_msg (is_near (sum, whole, 1e-9), "window %d%s cp %u: %g pairs, %g in all", (int) shape.window, shape.is_chunked ? " chunked" : "", cp, sum, whole);
    }
}
END_TEST

/* What a step has is what its ranks' chunks have with those of the block, pair by pair. */
START_TEST (test_ring_step_is_its_chunks)
{
  const PodLayerKind shape = { .window = spans[_i].window, .is_chunked = spans[_i].is_chunked };

  for (uint32_t cp = 1; cp <= 16; cp++)
    for (uint32_t step = 0; step < cp; step++)
      {
        const double chunk = 8192 / (2.0 * cp);
        double sum = 0;

        for (uint32_t i = 0; i < cp; i++)
          {
            const uint32_t from = (i + cp - step) % cp;
            const uint32_t queries[] = { i, 2 * cp - 1 - i };
            const uint32_t keys[] = { from, 2 * cp - 1 - from };

            for (unsigned k = 0; k < 4; k++)
              sum += pod_attention_pairs (&shape, queries[k / 2] * chunk, (queries[k / 2] + 1) * chunk, keys[k % 2] * chunk, (keys[k % 2] + 1) * chunk);
          }
        ck_assert_msg (is_near (pod_ring_step_pairs (&shape, 8192, true, cp, step), sum / cp, 1e-9), "window %d cp %u step %u: %g pairs", (int) shape.window, cp, step, sum / cp);
      }
}
END_TEST

/* A window of 100 tokens in chunks of 8192 / 16 = 512: the chunk before the own one is on a neighbour, in the first step or the
 * last; with 8 ranks the steps between have nothing. */
START_TEST (test_ring_skips_blocks)
{
  const PodLayerKind shape = { .window = 100 };

  ck_assert (pod_ring_step_pairs (&shape, 8192, true, 8, 0) > 0);
  ck_assert (pod_ring_step_pairs (&shape, 8192, true, 8, 1) > 0);
  ck_assert (pod_ring_step_pairs (&shape, 8192, true, 8, 7) > 0);
  for (uint32_t step = 2; step < 7; step++)
    ck_assert_double_eq (pod_ring_step_pairs (&shape, 8192, true, 8, step), 0);
}
END_TEST

/* Layouts over which the same work is spread. */
static const struct
{
  const char *topology;
  const char *layout;
  const char *option;
} spreads[] = {
  { "topology=h100:1", "layout=dp=1", "" },
  { "topology=h100:8", "layout=tp=8", "" },
  { "topology=h100:8", "layout=cp=8", "cp-kind=ring" },
  { "topology=h100:8", "layout=cp=4 tp=2", "cp-kind=allgather" },
  { "topology=h100:8", "layout=cp=4 tp=2", "cp-kind=ulysses" },
  { "topology=h100:8", "layout=cp=2 fsdp=2 pp=2", "cp-kind=ring" },
  { "topology=h100:8", "layout=cp=2 dp=2 tp=2", "zero=1" },
  { "topology=tpu-v5p:2x2x4", "layout=cp=4 tp=2 fsdp=2", "" },
  { "topology=tpu-v5p:2x2x4", "layout=cp=4 tp=2 fsdp=2", "cp-kind=ring" },
};

static const char *const layer_models[] = { "model=gpt-layers.xml", "model=gemma-layers.xml", "model=mla-dense.xml", "model=mla-direct.xml" };

/* FLOPs of kernels of @kind that all ranks run. */
static double
sum_flops (const PodRun *run, PodKernelKind kind)
{
  const PodProgram *program = run->program;
  double sum = 0;

  for (uint32_t rank = 0; rank < program->n_ranks; rank++)
    {
      const PodProgramClass *class = g_ptr_array_index (program->classes, program->class_of_rank[rank]);

      for (guint i = 0; i < class->steps->len; i++)
        {
          const PodOpBlock *block = &g_array_index (program->blocks, PodOpBlock, g_array_index (class->steps, PodOpStep, i).block);

          for (uint32_t k = block->first_op; k < block->first_op + block->n_ops; k++)
            {
              const PodOp *op = &g_array_index (program->ops, PodOp, k);

              if (op->kind == POD_OP_COMPUTE && g_array_index (program->kernels, PodKernel, op->kernel).kind == kind)
                sum += g_array_index (program->kernels, PodKernel, op->kernel).flops;
            }
        }
    }
  return sum;
}

/* Without replicated KV heads every matmul is on one rank of the whole, the logits' padded (131072 is a multiple of 128 x 8): 6 FLOPs
 * a weight and token. */
START_TEST (test_matmuls_are_conserved)
{
  static const char *const models[] = { "model=gpt-layers.xml", "model=mla-dense.xml", "model=mla-direct.xml", "model=llama3-8b" };

  for (unsigned m = 0; m < G_N_ELEMENTS (models); m++)
    for (unsigned mtp = 0; mtp < (m == 3 ? 3 : 1); mtp++)
      {
        static const char *const modules[] = { "", "mtp=1", "mtp=2" };
        g_autoptr (PodRun) run = run_job (spreads[_i].topology, spreads[_i].layout, spreads[_i].option, models[m], "layers=2", m == 3 ? "vocab=131072" : "", modules[mtp], "seq-len=4096",
                                          "global-batch=16", NULL);
        PodTokenFlops flops;
        double sum = sum_flops (run, POD_KERNEL_MATMUL);

        pod_model_token_flops (run->model, 4096, &flops);
        ck_assert_msg (is_near (sum, 16 * 4096.0 * flops.linear, 1e-9), "%s %s %s %s: %g FLOPs, expected %g", spreads[_i].layout, spreads[_i].option, models[m], modules[mtp], sum,
                       16 * 4096.0 * flops.linear);
      }
}
END_TEST

/* Unfused kernels compute every score, masked or not: attention in full. */
START_TEST (test_unfused_computes_all)
{
  static const struct
  {
    const char *layout;
    const char *option;
  } cases[] = { { "layout=tp=8", "" }, { "layout=cp=4 tp=2", "cp-kind=allgather" }, { "layout=cp=2 tp=4", "cp-kind=ulysses" }, { "layout=pp=2 dp=2 tp=2", "dropout=true" } };
  static const char *const models[] = { "model=gpt-layers.xml", "model=mla-dense.xml" };

  for (unsigned m = 0; m < G_N_ELEMENTS (models); m++)
    {
      g_autoptr (PodRun) run = run_job ("topology=h100:8", cases[_i].layout, cases[_i].option, models[m], "attention-kind=unfused", "seq-len=4096", "global-batch=16", NULL);
      const double sum = sum_flops (run, POD_KERNEL_MATMUL);
      PodTokenFlops flops;

      pod_model_token_flops (run->model, 4096, &flops);
      ck_assert_msg (is_near (sum, 16 * 4096.0 * flops.megatron, 1e-9), "%s %s %s: %g FLOPs, expected %g", cases[_i].layout, cases[_i].option, models[m], sum, 16 * 4096.0 * flops.megatron);
    }
}
END_TEST

/* 2 (qk + v) FLOPs a pair and head forward, 2 (3 qk + 2 v) backward. */
static double
expected_flops (const PodModel *model, bool is_causal, bool is_backward)
{
  double sum = 0;

  for (uint64_t i = 0; i < model->n_layers; i++)
    {
      const PodLayerKind *kind = &model->kinds[model->layer_kind[i]];
      const double span = is_causal ? pod_model_mean_span (kind, 4096) : 4096;
      const double qk = (double) kind->head_dim;
      const double v = (double) kind->v_head_dim;

      sum += 16.0 * 4096 * span * (double) kind->heads * (is_backward ? 2 * (3 * qk + 2 * v) : 2 * (qk + v));
    }
  return sum;
}

START_TEST (test_flops_are_conserved)
{
  for (unsigned m = 0; m < G_N_ELEMENTS (layer_models); m++)
    for (unsigned causal = 0; causal < 2; causal++)
      {
        g_autoptr (PodRun) run = run_job (spreads[_i].topology, spreads[_i].layout, spreads[_i].option, layer_models[m], "seq-len=4096", "global-batch=16",
                                          causal ? "causal=true" : "causal=false", NULL);
        const double forward = sum_flops (run, POD_KERNEL_ATTENTION);
        const double backward = sum_flops (run, POD_KERNEL_ATTENTION_BACKWARD);

        ck_assert_msg (is_near (forward, expected_flops (run->model, causal, false), 1e-9), "%s %s %s causal %u: %g forward, expected %g", spreads[_i].layout, spreads[_i].option,
                       layer_models[m], causal, forward, expected_flops (run->model, causal, false));
        ck_assert_msg (is_near (backward, expected_flops (run->model, causal, true), 1e-9), "%s %s %s: %g backward", spreads[_i].layout, spreads[_i].option, layer_models[m], backward);
      }
}
END_TEST

/* Parameters that tp does not shard: norms, and MLA's down projections with the norms of their latents. */
static double
whole_params (const PodModel *model)
{
  const double hidden = (double) model->hidden;
  double each = model->norms_per_layer * hidden * (model->norm == POD_NORM_LAYER ? 2 : 1);

  if (model->attention == POD_ATTENTION_MLA)
    each += hidden * (double) (model->q_lora + model->kv_lora + model->qk_rope) + (double) (model->q_lora + model->kv_lora);
  return each * (double) model->n_layers;
}

START_TEST (test_params_are_held_once)
{
  for (unsigned m = 0; m < G_N_ELEMENTS (layer_models); m++)
    {
      g_autoptr (PodRun) run = run_job (spreads[_i].topology, spreads[_i].layout, spreads[_i].option, layer_models[m], "seq-len=4096", "global-batch=16", NULL);
      const PodLayout *layout = &run->job.layout;
      const double tp = layout->degree[POD_AXIS_TP];
      const double shards = layout->degree[POD_AXIS_FSDP] > 1 ? layout->degree[POD_AXIS_FSDP] * (double) layout->degree[POD_AXIS_CP] : 1;
      PodParams params;
      double held = 0;

      pod_model_params (run->model, &params);
      for (guint c = 0; c < run->program->classes->len; c++)
        held += ((const PodProgramClass *) g_ptr_array_index (run->program->classes, c))->static_bytes[0] / 2 * shards;
      if (tp <= (double) run->model->kinds[0].kv_heads)
        ck_assert_msg (is_near ((held - whole_params (run->model)) * tp + whole_params (run->model), (double) params.total, 1e-9), "%s %s: %g held of %g", spreads[_i].layout, layer_models[m],
                       held, (double) params.total);
      else
        ck_assert (held * tp > (double) params.total);
    }
}
END_TEST

/* Ring over cp = 4 of one layer, fidelity book, links that bound it. Forward: 3 hops of t, attention of the last block, k.
 * Backward: the first hop carries KV, the middle two KV and dKV, the last dKV: 6 t, behind which go dW of the projection before,
 * 2 T h^2 FLOPs, and 4 x 2.5 k. The gradients' all-reduce over cp comes after. */
START_TEST (test_ring_bound_by_links)
{
  static const double ratios[] = { 1, 2.5, 10 }; /* of the slower links */
  const double seq_len = 32768;
  g_autofree char *rate = g_strdup_printf ("set=chip.ici_bandwidth=%gGB/s", 10 / ratios[_i]);
  g_autoptr (PodRun) run = run_job ("topology=tpu-v5p:4x4x4", "allow-idle=true", "layout=cp=4", "map=cp=x", "cp-kind=ring", "model=gpt-layers.xml", "layers=1", "seq-len=32768", "global-batch=1",
                                    "fidelity=book", "overlap-dp=false", "set=chip.ici_latency=0s", rate, NULL);
  const double peak = pod_chip_peak (run->topology->chip, POD_DTYPE_BF16, true, NULL);
  const double attention_s = 4 * seq_len * seq_len / 32 * 4096 / peak;
  const double weight_s = 2 * seq_len / 4 * 4096 * 4096 / peak;
  double hop_s = 0;
  double reduce_s = 0;
  double expected;
  double got = (double) run->exec->breakdown.exposed_ps[POD_AXIS_CP] / 1e12;

  for (guint i = 0; i < run->exec->collectives->len; i++)
    {
      const PodCollectiveUse *use = &g_array_index (run->exec->collectives, PodCollectiveUse, i);

      if (use->kind == POD_PERMUTE && (double) use->bytes == seq_len / 4 * 2 * 4096 * 2)
        hop_s = use->alone_s;
      if (use->kind == POD_ALL_REDUCE)
        reduce_s = use->alone_s;
    }
  ck_assert (hop_s > 2.5 * attention_s);
  expected = 3 * (hop_s - attention_s) + 6 * hop_s - weight_s - 4 * 2.5 * attention_s + reduce_s;
  ck_assert_msg (is_near (got, expected, 1e-6), "%g s exposed, expected %g (hop %g, attention %g)", got, expected, hop_s, attention_s);
}
END_TEST

/* And with fast ones nothing shows. */
START_TEST (test_ring_hidden)
{
  g_autoptr (PodRun) run = run_job ("topology=tpu-v5p:4x4x4", "allow-idle=true", "layout=cp=4", "map=cp=x", "cp-kind=ring", "model=gpt-layers.xml", "layers=1", "seq-len=262144", "global-batch=1",
                                    "fidelity=book", "set=chip.ici_latency=0s", NULL);
  const PodCollectiveUse *last = &g_array_index (run->exec->collectives, PodCollectiveUse, run->exec->collectives->len - 1);

  ck_assert_int_eq (last->kind, POD_ALL_REDUCE);
  ck_assert (run->exec->breakdown.comm_ps[POD_AXIS_CP] > 0);
  ck_assert ((double) run->exec->breakdown.exposed_ps[POD_AXIS_CP] / 1e12 <= last->alone_s * (1 + 1e-9));
}
END_TEST

/* Activation bytes of one layer, arXiv 2205.05198, table 2, with s = 4096, b = 2, h = 4096, a = 32 and t tensor ranks:
 *   tensor parallel                   s b h (10 + 24/t + 5 a s / (h t))
 *   with sequence parallelism         s b h (34/t + 5 a s / (h t))
 *   and selective recomputation       s b h 34/t
 *   full                              s b h 2/t, the layer's input by tokens, or 2 without sequence parallelism
 * Per operation (op) the input, q, v, the attention's output, the first FFN matrix's and the second's stay: 2 + 2 + 2 + 2 + 8 + 2.
 * Flash attention keeps 4 bytes a query and head instead of the scores; without dropout its masks go: of one byte a value after
 * attention and after the FFN, of three bytes a score with the second copy of the scores. */
static const struct
{
  const char *recompute;
  const char *core;
  const char *dropout;
  const char *sequence;
  double whole;  /* bytes a value that every tensor rank has */
  double shared; /* over tp */
  double scores; /* bytes a score, over tp */
  double queries;
} kept[] = {
  { "none", "unfused", "true", "false", 10, 24, 5, 0 },     { "none", "unfused", "true", "true", 0, 34, 5, 0 },
  { "selective", "unfused", "true", "false", 10, 24, 0, 0 }, { "selective", "unfused", "true", "true", 0, 34, 0, 0 },
  { "full", "unfused", "true", "false", 2, 0, 0, 0 },       { "full", "unfused", "true", "true", 0, 2, 0, 0 },
  { "none", "flash", "true", "true", 0, 34, 0, 4 },         { "selective", "flash", "true", "true", 0, 34, 0, 0 },
  { "op", "flash", "false", "false", 4, 14, 0, 4 },         { "op", "flash", "false", "true", 0, 18, 0, 4 },
  { "none", "flash", "false", "false", 8, 24, 0, 4 },       { "none", "unfused", "false", "true", 0, 32, 2, 0 },
};

START_TEST (test_activations)
{
  static const char *const layouts[] = { "layout=tp=1", "layout=tp=2", "layout=tp=8" };
  g_autofree char *recompute = g_strdup_printf ("recompute=%s", kept[_i].recompute);
  g_autofree char *core = g_strdup_printf ("attention-kind=%s", kept[_i].core);
  g_autofree char *dropout = g_strdup_printf ("dropout=%s", kept[_i].dropout);
  g_autofree char *sequence = g_strdup_printf ("sequence-parallel=%s", kept[_i].sequence);
  const double values = 4096.0 * 2 * 4096;
  const double queries = 4096.0 * 2 * 32;

  for (unsigned i = 0; i < G_N_ELEMENTS (layouts); i++)
    {
      g_autoptr (PodRun) two = run_job ("topology=h100:8", "allow-idle=true", layouts[i], recompute, core, dropout, sequence, "model=gpt-layers.xml", "layers=2", "seq-len=4096",
                                        "global-batch=2", "micro-batch=2", NULL);
      g_autoptr (PodRun) three = run_job ("topology=h100:8", "allow-idle=true", layouts[i], recompute, core, dropout, sequence, "model=gpt-layers.xml", "layers=3", "seq-len=4096",
                                          "global-batch=2", "micro-batch=2", NULL);
      const double t = two->job.layout.degree[POD_AXIS_TP];
      const double expected = values * (kept[_i].whole + kept[_i].shared / t) + queries / t * (kept[_i].scores * 4096 + kept[_i].queries);
      const double got = three->exec->by_use[POD_USE_ACTIVATIONS] - two->exec->by_use[POD_USE_ACTIVATIONS];

      ck_assert_msg (is_near (got, expected, 1e-12), "%s %s %s dropout %s sequence parallel %s: %.0f bytes a layer, expected %.0f", layouts[i], kept[_i].recompute, kept[_i].core,
                     kept[_i].dropout, kept[_i].sequence, got, expected);
    }
}
END_TEST

/* A rank of cp = 4 keeps a quarter of the tokens, whichever way keys and values come; Ulysses keeps the output a second time. */
START_TEST (test_activations_over_cp)
{
  static const char *const kinds[] = { "cp-kind=ring", "cp-kind=allgather", "cp-kind=ulysses" };
  g_autoptr (PodRun) one = run_job ("topology=h100:1", "layout=dp=1", "model=gpt-layers.xml", "seq-len=8192", "global-batch=1", NULL);
  const double whole = one->exec->by_use[POD_USE_ACTIVATIONS];

  for (unsigned i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      g_autoptr (PodRun) run = run_job ("topology=h100:4", "layout=cp=4", kinds[i], "model=gpt-layers.xml", "seq-len=8192", "global-batch=1", NULL);
      const double twice = i == 2 ? 2 * 8192.0 / 4 * 4096 * 2 : 0;

      ck_assert_msg (is_near (run->exec->by_use[POD_USE_ACTIVATIONS], whole / 4 + twice, 1e-12), "%s: %g of %g", kinds[i], run->exec->by_use[POD_USE_ACTIVATIONS], whole);
    }
}
END_TEST

static const struct
{
  const char *topology;
  const char *layout;
  const char *model;
  const char *option;
} jobs[] = {
  { "topology=h100:8x4", "layout=cp=4 tp=4 pp=2", "model=mla-dense.xml", "" },
  { "topology=h100:8x4", "layout=cp=2 tp=8 fsdp=2", "model=gemma-layers.xml", "" }, /* KV heads on two tensor ranks each */
  { "topology=h100:8x4", "layout=cp=2 dp=2 tp=8", "model=gemma-layers.xml", "recompute=selective" },
  { "topology=h100:8x4", "layout=cp=4 dp=8", "model=mla-direct.xml", "zero=2" },
  { "topology=h100:8x4", "layout=dp=4 tp=2 pp=4", "model=llama3-8b", "grad-bucket=2GB" },
  { "topology=h100:8x4", "layout=cp=8 tp=4", "model=llama3-8b", "zero=3" },
  { "topology=h100:8x4", "layout=dp=2 fsdp=4 tp=2 pp=2", "model=llama3-8b", "fsdp-sync=step" },
  { "topology=h100:8x4", "layout=fsdp=4 tp=2 pp=4", "model=llama3-8b", "fsdp-sync=step schedule=zb-v" },
  { "topology=h100:8x4", "layout=fsdp=4 tp=4 pp=2", "model=llama3-8b", "fsdp-sync=pipeline schedule=dualpipe" },
  { "topology=h100:8x4", "layout=cp=4 fsdp=8", "model=llama3-8b", "recompute=op" },
  { "topology=h100:8x4", "layout=cp=2 dp=2 tp=2 pp=4", "model=llama3-8b", "mtp=2" },
  { "topology=tpu-v5p:4x4x2", "layout=cp=2 fsdp=8 tp=2", "model=llama3-8b", "mtp=1" },
  { "topology=gb200:16x2", "layout=cp=4 dp=4 tp=2", "model=gemma-layers.xml", "cp-kind=ulysses" },
  { "topology=tpu-v5p:4x4x2", "layout=cp=4 tp=8", "model=gemma-layers.xml", "" },
  { "topology=tpu-v5p:4x4x2", "layout=cp=8 fsdp=2 pp=2", "model=mla-dense.xml", "cp-kind=ring" },
  { "topology=tpu-v5e:4x8", "layout=cp=4 tp=4 dp=2", "model=gpt-layers.xml", "attention-kind=unfused" },
  { "topology=h100:8x4", "layout=cp=2 tp=4 pp=2 dp=2", "model=mla-dense.xml", "schedule=zb-h1" },
  { "topology=h100:8x4", "layout=cp=2 tp=2 pp=2 fsdp=4 vpp=3", "model=gemma-layers.xml", "recompute=selective" },
  { "topology=h100:8x4", "layout=cp=4 tp=4 pp=2", "model=mla-direct.xml", "schedule=dualpipe" },
  { "topology=h100:8x4", "layout=cp=2 tp=4 pp=4", "model=llama3-8b", "schedule=zb-v mtp=1" },
  { "topology=mi300x:8x4", "layout=cp=8 tp=2 fsdp=2", "model=mla-direct.xml", "recompute=full" },
};

static PodRun *
run_case (int i, const char *word)
{
  g_auto (GStrv) options = g_strsplit (jobs[i].option, " ", 2);
  const unsigned n = g_strv_length (options);

  return run_job (jobs[i].topology, jobs[i].layout, jobs[i].model, n > 0 ? options[0] : "", n > 1 ? options[1] : "", "seq-len=8192", "global-batch=16", word, NULL);
}

/* What appears during a step vanishes in it, whatever the order of its parts. Halves of a buffer are rounded apart. */
START_TEST (test_buffers_vanish)
{
  g_autoptr (PodRun) run = run_case (_i, "");
  const PodProgram *program = run->program;

  for (guint c = 0; c < program->classes->len; c++)
    {
      const PodProgramClass *class = g_ptr_array_index (program->classes, c);
      int64_t left[64] = { 0 };

      for (guint i = 0; i < class->steps->len; i++)
        {
          const PodOpBlock *block = &g_array_index (program->blocks, PodOpBlock, g_array_index (class->steps, PodOpStep, i).block);

          for (uint32_t k = block->first_op; k < block->first_op + block->n_ops; k++)
            {
              const PodOp *op = &g_array_index (program->ops, PodOp, k);

              for (uint32_t e = op->first_effect; e < op->first_effect + op->n_effects; e++)
                left[g_array_index (program->effects, PodEffect, e).label] += g_array_index (program->effects, PodEffect, e).bytes;
            }
        }
      for (guint l = 0; l < program->labels->len; l++)
        ck_assert_msg (llabs (left[l]) <= 16 * class->steps->len, "%s %s %s: %ld bytes of %s are left", jobs[_i].layout, jobs[_i].model, jobs[_i].option, (long) left[l],
                       g_array_index (program->labels, PodBufferLabel, l).name);
    }
}
END_TEST

START_TEST (test_folded_is_unfolded)
{
  g_autoptr (PodRun) folded = run_case (_i, "fold=auto");
  g_autoptr (PodRun) unfolded = run_case (_i, "fold=off");
  g_autofree char *a = result_text (folded);
  g_autofree char *b = result_text (unfolded);

  ck_assert_msg (strcmp (a, b) == 0, "%s %s %s: results differ, %ld and %ld ps", jobs[_i].topology, jobs[_i].layout, jobs[_i].model, (long) folded->exec->time_ps,
                 (long) unfolded->exec->time_ps);
  for (uint32_t r = 0; r < unfolded->exec->n_represented; r++)
    {
      const PodBreakdown *breakdown = &unfolded->exec->breakdowns[r];
      int64_t sum = breakdown->compute_ps + breakdown->bubble_ps + breakdown->idle_ps;

      for (unsigned x = 0; x < POD_N_COMM_AXES; x++)
        sum += breakdown->exposed_ps[x];
      ck_assert_msg (sum == unfolded->exec->time_ps, "%s rank %u: %ld of %ld ps", jobs[_i].topology, r, (long) sum, (long) unfolded->exec->time_ps);
    }
}
END_TEST

START_TEST (test_ideal_is_below)
{
  g_autoptr (PodRun) calibrated = run_case (_i, "");
  g_autoptr (PodRun) ideal = run_case (_i, "fidelity=ideal");

  ck_assert_msg (ideal->exec->time_ps <= calibrated->exec->time_ps, "%s: ideal %ld, calibrated %ld", jobs[_i].topology, (long) ideal->exec->time_ps, (long) calibrated->exec->time_ps);
  ck_assert (ideal->exec->lower_bound_ps <= ideal->exec->time_ps);
  ck_assert (calibrated->exec->lower_bound_ps <= calibrated->exec->time_ps);
}
END_TEST

/* What does not divide, and the numbers that the refusal has. */
static const struct
{
  const char *layout;
  const char *seq_len;
  const char *option;
  const char *says;
} refusals[] = {
  { "layout=cp=8", "seq-len=4104", "", "sequence length (4104) is not a multiple of 2 x cp (two chunks a rank balance causal work) (16): 4104 % 16 = 8" },
  { "layout=cp=4 tp=2", "seq-len=4104", "", "sequence length (4104) is not a multiple of 2 x cp x tp (two chunks a rank balance causal work) (16)" },
  { "layout=cp=8", "seq-len=4100", "causal=false", "sequence length (4100) is not a multiple of cp (8)" },
  { "layout=cp=4 tp=2", "seq-len=4100", "cp-kind=ulysses", "sequence length (4100) is not a multiple of cp x tp (8)" },
  { "layout=cp=8", "seq-len=4096", "cp-kind=ulysses heads=12 kv-heads=12 head-dim=128", "query head count (12) is not a multiple of tp x cp (8): 12 % 8 = 4" },
  { "layout=cp=4 tp=2", "seq-len=4096", "cp-kind=ulysses heads=24 kv-heads=6 head-dim=128", "KV head count (6) is not a multiple of tp x cp (8)" },
  { "layout=cp=8", "seq-len=4096", "attention-kind=unfused", "--attention-kind: unfused kernels give no log-sum-exp" },
  { "layout=tp=4", "seq-len=4096", "model=llama3-8b mtp=1 hidden=4098 head-dim=128 allow-idle=true", "hidden size, which multi-token prediction projects to, (4098) is not a multiple of tp (4)" },
  { "layout=cp=8", "seq-len=4096", "model=mlp-block", "cp=8 shards attention, and mlp-block has none" },
};

START_TEST (test_refusals)
{
  g_auto (GStrv) words = g_strsplit (refusals[_i].option, " ", -1);
  const unsigned n = g_strv_length (words);
  g_autoptr (GError) error = refuse_job ("topology=h100:8", "model=gpt-layers.xml", "global-batch=8", refusals[_i].layout, refusals[_i].seq_len, n > 0 ? words[0] : "", n > 1 ? words[1] : "",
                                         n > 2 ? words[2] : "", n > 3 ? words[3] : "", n > 4 ? words[4] : "", NULL);

  ck_assert_msg (strstr (error->message, refusals[_i].says) != NULL, "%s, expected %s", error->message, refusals[_i].says);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("context");
  TCase *pairs = tcase_create ("pairs");
  TCase *steps = tcase_create ("steps");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (pairs, 60);
  tcase_set_timeout (steps, 240);
  tcase_add_loop_test (pairs, test_ring_has_all_pairs, 0, G_N_ELEMENTS (spans));
  tcase_add_loop_test (pairs, test_ring_step_is_its_chunks, 0, G_N_ELEMENTS (spans) - 1); /* the last is of no chunks */
  tcase_add_test (pairs, test_ring_skips_blocks);
  tcase_add_loop_test (steps, test_flops_are_conserved, 0, G_N_ELEMENTS (spreads));
  tcase_add_loop_test (steps, test_matmuls_are_conserved, 0, G_N_ELEMENTS (spreads));
  tcase_add_loop_test (steps, test_unfused_computes_all, 0, 4);
  tcase_add_loop_test (steps, test_params_are_held_once, 0, G_N_ELEMENTS (spreads));
  tcase_add_loop_test (steps, test_ring_bound_by_links, 0, 3);
  tcase_add_test (steps, test_ring_hidden);
  tcase_add_loop_test (steps, test_activations, 0, G_N_ELEMENTS (kept));
  tcase_add_test (steps, test_activations_over_cp);
  tcase_add_loop_test (steps, test_buffers_vanish, 0, G_N_ELEMENTS (jobs));
  tcase_add_loop_test (steps, test_folded_is_unfolded, 0, G_N_ELEMENTS (jobs));
  tcase_add_loop_test (steps, test_ideal_is_below, 0, G_N_ELEMENTS (jobs));
  tcase_add_loop_test (steps, test_refusals, 0, G_N_ELEMENTS (refusals));
  suite_add_tcase (suite, pairs);
  suite_add_tcase (suite, steps);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
