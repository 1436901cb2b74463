#include "model/model.h"

#include <math.h>
#include <stdlib.h>

#include <check.h>

/* Shapes as published: the file behind each row. exact: counted to the last parameter from those
 * shapes, norms and biases included, where they are all known. computed_b, active_b: weights of
 * matmuls and embeddings in billions, norms and biases left out, the input embedding in; rounded as
 * printed. */
static const struct
{
  const char *name;
  uint64_t exact;
  double computed_b;
  double active_b;
  uint64_t n_layers;
} models[] = {
  /* cli99/llm-analysis@d841e40 model_configs/gpt2.json */
  { "gpt2", UINT64_C (124439808), 0.12432, 0.12432, 12 },
  /* cli99/llm-analysis@d841e40 model_configs/gpt2-xl.json */
  { "gpt2-xl", UINT64_C (1557611200), 1.56, 1.56, 48 },
  /* calculon-ai/calculon@caa4b11 models/gpt3-175B.json */
  { "gpt3-175b", UINT64_C (174604259328), 174.59, 174.59, 96 },
  /* cli99/llm-analysis@d841e40 model_configs/facebook_opt-175b.json */
  { "opt-175b", 0, 174.59, 174.59, 96 },
  /* bigscience-workshop/bigscience@9e64ede train/tr11-176B-ml/tr11-176B-ml.slurm */
  { "bloom-176b", UINT64_C (176247271424), 176.23, 176.23, 70 },
  /* young-geng/EasyLM@fe5b2c3 EasyLM/models/llama/llama_model.py */
  { "llama1-7b", UINT64_C (6738415616), 6.74, 6.74, 32 },
  /* young-geng/EasyLM@fe5b2c3 EasyLM/models/llama/llama_model.py */
  { "llama1-13b", UINT64_C (13015864320), 13.02, 13.02, 40 },
  /* young-geng/EasyLM@fe5b2c3 EasyLM/models/llama/llama_model.py */
  { "llama1-30b", UINT64_C (32528943616), 32.53, 32.53, 60 },
  /* young-geng/EasyLM@fe5b2c3 EasyLM/models/llama/llama_model.py */
  { "llama1-65b", UINT64_C (65285660672), 65.28, 65.28, 80 },
  /* mlc-ai/mlc-llm@79d603f python/mlc_llm/model/model_preset.py (HF config.json dicts) */
  { "llama2-7b", UINT64_C (6738415616), 6.74, 6.74, 32 },
  /* mlc-ai/mlc-llm@79d603f python/mlc_llm/model/model_preset.py (HF config.json dicts) */
  { "llama2-13b", UINT64_C (13015864320), 13.02, 13.02, 40 },
  /* mlc-ai/mlc-llm@79d603f python/mlc_llm/model/model_preset.py (HF config.json dicts) */
  { "llama2-70b", UINT64_C (68976648192), 68.98, 68.98, 80 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/meta-llama--Meta-Llama-3.1-8B_config.json (HF
     config.json) */
  { "llama3-8b", UINT64_C (8030261248), 8.03, 8.03, 32 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/meta-llama--Meta-Llama-3.1-70B_config.json (HF
     config.json) */
  { "llama3-70b", UINT64_C (70553706496), 70.55, 70.55, 80 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/meta-llama--Meta-Llama-3.1-405B_config.json (HF
     config.json) */
  { "llama3-405b", UINT64_C (405853388800), 405.85, 405.85, 126 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/meta-llama--Llama-4-Scout-17B-16E-Instruct_config.json
     (HF config.json) */
  { "llama4-scout", UINT64_C (107769861120), 107.77, 17.17, 48 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/meta-llama--Llama-4-Maverick-17B-128E-Instruct_config.json
     (HF config.json) */
  { "llama4-maverick", UINT64_C (400711848960), 400.71, 17.18, 48 },
  /* mlc-ai/mlc-llm@79d603f python/mlc_llm/model/model_preset.py (HF config.json dicts) */
  { "mistral-7b", UINT64_C (7241732096), 7.24, 7.24, 32 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/mistralai--Mixtral-8x7B-v0.1_config.json (HF
     config.json) */
  { "mixtral-8x7b", UINT64_C (46702792704), 46.7, 12.88, 32 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/mistralai--Mixtral-8x22B-v0.1_config.json (HF
     config.json) */
  { "mixtral-8x22b", UINT64_C (140620634112), 140.62, 39.15, 56 },
  /* deepseek-ai/DeepSeek-V3@9b4e978 inference/configs/config_236B.json */
  { "deepseek-v2", UINT64_C (235741434880), 235.74, 21.38, 60 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/deepseek-ai--DeepSeek-V3_config.json (HF
     config.json) */
  { "deepseek-v3", UINT64_C (671026419200), 671.03, 37.55, 61 },
  /* AI-Hypercomputer/maxtext@e591f30 src/maxtext/configs/models/qwen2.5-7b.yml */
  { "qwen2.5-7b", UINT64_C (7615616512), 7.62, 7.62, 28 },
  /* Lightning-AI/litgpt@26857050 litgpt/config.py (transcribes HF config.json) */
  { "qwen2.5-72b", UINT64_C (72706203648), 72.7, 72.7, 80 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/Qwen--Qwen3-32B_config.json (HF config.json) */
  { "qwen3-32b", UINT64_C (32762123264), 32.76, 32.76, 64 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/Qwen--Qwen3-235B-A22B_config.json (HF
     config.json) */
  { "qwen3-235b", UINT64_C (235093634560), 235.09, 22.19, 94 },
  /* mlc-ai/mlc-llm@79d603f python/mlc_llm/model/model_preset.py (HF config.json dicts) */
  { "gemma2-27b", UINT64_C (27227128320), 27.23, 27.23, 46 },
  /* Lightning-AI/litgpt@26857050 litgpt/config.py (transcribes HF config.json) */
  { "gemma3-27b", UINT64_C (27009002240), 27.01, 27.01, 62 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/openai--gpt-oss-20b_config.json (HF config.json)
   */
  { "gpt-oss-20b", UINT64_C (20914757184), 20.91, 4.19, 24 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/openai--gpt-oss-120b_config.json (HF
     config.json) */
  { "gpt-oss-120b", UINT64_C (116829156672), 116.79, 5.71, 36 },
  /* ai-dynamo/aiconfigurator@095f58a
     …/model_configs/moonshotai--Kimi-K2-Instruct_config.json (HF
     config.json) */
  { "kimi-k2", UINT64_C (1026408232448), 1026.41, 32.86, 61 },
  /* NVIDIA-NeMo/Megatron-Bridge@067f987 docs/models/glm/glm45.md */
  { "glm4.5", UINT64_C (352797829024), 352.8, 33.63, 92 },
  /* HF config printed in a public training log (find_string id 48221590695) */
  { "glm4.5-air", UINT64_C (106852251264), 106.85, 13.42, 46 },
  /* calculon-ai/calculon@caa4b11 models/palm-540B.json */
  { "palm-540b", 0, 540.35, 540.35, 118 },
  /* calculon-ai/calculon@caa4b11 models/gopher-280B.json */
  { "gopher-280b", 0, 258.22, 258.22, 80 },
  /* calculon-ai/calculon@caa4b11 models/chinchilla.json */
  { "chinchilla-70b", 0, 64.69, 64.69, 80 },
  /* calculon-ai/calculon@caa4b11 models/turing-530B.json */
  { "mt-nlg-530b", 0, 529.55, 529.55, 105 },
  /* calculon-ai/calculon@caa4b11 models/megatron-1T.json */
  { "megatron-1t", 0, 1008.0, 1008.0, 128 },
  /* Lightning-AI/litgpt@26857050 litgpt/config.py (transcribes HF config.json) */
  { "phi3-mini", UINT64_C (3821079552), 3.82, 3.82, 32 },
  /* Lightning-AI/litgpt@26857050 litgpt/config.py (transcribes HF config.json) */
  { "falcon-180b", UINT64_C (178557088768), 178.55, 178.55, 80 },
  /* xai-org/grok-1@7050ed2 run.py, model.py */
  { "grok-1", 0, 315.68, 83.76, 64 },
  /* mosaicml/llm-foundry scripts/train/benchmarking: params of the tables, 2,048 tokens */
  { "mpt-125m", 0, 0.125311, 0.125311, 12 },
  { "mpt-350m", 0, 0.355985, 0.355985, 24 },
  { "mpt-760m", 0, 0.760471, 0.760471, 24 },
  { "mpt-1b", 0, 1.31595, 1.31595, 24 },
  { "mpt-3b", 0, 2.65184, 2.65184, 32 },
  { "mpt-7b", 0, 6.65886, 6.65886, 32 },
  { "mpt-13b", 0, 12.854, 12.854, 40 },
  { "mpt-30b", 0, 29.9752, 29.9752, 48 },
  { "mpt-70b", 0, 64.8624, 64.8624, 80 },
  /* arXiv 2104.04473 Table 1 */
  { "megatron-39b", 0, 39.1, 39.1, 48 },
  { "megatron-76b", 0, 76.1, 76.1, 60 },
  { "megatron-145b", 0, 145.6, 145.6, 80 },
  { "megatron-310b", 0, 310.1, 310.1, 96 },
  { "megatron-530b", 0, 529.6, 529.6, 105 },
};

static PodModel *
load (const char *name)
{
  g_autoptr (GError) error = NULL;
  PodModel *model = pod_model_load (name, &error);

  ck_assert_msg (model != NULL, "%s", error != NULL ? error->message : name);
  return model;
}

static void
set (PodModel *model, const char *field, uint64_t value)
{
  g_autoptr (GError) error = NULL;
  bool is_set = pod_model_set (model, field, value, &error);

  ck_assert_msg (is_set, "%s", error != NULL ? error->message : field);
}

static bool
is_near (double value, double expected, double tolerance)
{
  return fabs (value - expected) <= tolerance * fabs (expected);
}

START_TEST (published_model_has_its_parameters)
{
  g_autoptr (PodModel) model = load (models[_i].name);
  PodParams params;

  ck_assert_uint_eq (model->n_layers, models[_i].n_layers);
  pod_model_params (model, &params);
  if (models[_i].exact != 0)
    ck_assert_msg (params.total == models[_i].exact,
                   "%s: %" G_GUINT64_FORMAT " parameters, not %" G_GUINT64_FORMAT, models[_i].name,
                   params.total, models[_i].exact);
  ck_assert_msg (is_near ((double) params.total, models[_i].computed_b * 1e9, 0.002),
                 "%s: %" G_GUINT64_FORMAT " parameters", models[_i].name, params.total);
  ck_assert_msg (is_near ((double) params.active_with_embedding, models[_i].active_b * 1e9, 0.002),
                 "%s: %" G_GUINT64_FORMAT " active", models[_i].name, params.active_with_embedding);
}
END_TEST

/* Whatever the model: parts sum to the total, layers sum to what is not outside of them, and the
 * conventions of FLOPs hang together. */
START_TEST (parts_add_up)
{
  g_autoptr (PodModel) model = load (models[_i].name);
  uint64_t layers = 0;
  uint64_t active_layers = 0;
  uint64_t outside;
  PodParams params;
  PodTokenFlops flops;

  pod_model_params (model, &params);
  ck_assert_uint_eq (params.total, params.embedding + params.positions + params.head
                                       + params.attention + params.ffn + params.experts
                                       + params.shared_experts + params.router + params.norms);
  for (uint64_t i = 0; i < model->n_layers; i++)
    {
      uint64_t active = 0;

      layers += pod_model_layer_params (model, model->layer_kind[i], &active);
      active_layers += active;
    }
  outside = params.total - layers;
  ck_assert_uint_eq (params.active_with_embedding, active_layers + outside);
  ck_assert_uint_eq (params.active_with_embedding - params.active,
                     model->is_tied ? 0 : params.embedding);
  ck_assert_uint_le (outside - params.embedding - params.head - params.positions,
                     4 * model->hidden);

  pod_model_token_flops (model, 4096, &flops);
  ck_assert (flops.megatron == flops.linear + flops.attention_full);
  ck_assert (flops.causal == flops.linear + flops.attention_full / 2.0);
  ck_assert (flops.attention_causal <= flops.attention_full / 2.0);
  ck_assert (flops.sixnd == 6.0 * (double) params.active_with_embedding);
  /* what is in no matmul beside the position table (norms, biases) is small */
  ck_assert_msg (is_near (flops.linear, 6.0 * (double) (params.active - params.positions), 0.005),
                 "%s: %g", models[_i].name, flops.linear);
}
END_TEST

/* How to Scale Your Model, per token and layer with D = 4096, F = 4D, N·H = D, gated:
 * MLP 3DF weights and 18DF FLOPs, QKVO 2D(N+K)H weights and 12D(N+K)H FLOPs, attention 12TNH,
 * logits 6DV, norms 2D. */
START_TEST (book_counts_of_a_dense_layer)
{
  const double D = 4096;
  const double F = 4 * D;
  const double V = 32000;
  const double L = 64;
  g_autoptr (PodModel) model = load ("book-4k");
  PodParams params;
  PodTokenFlops flops;

  pod_model_params (model, &params);
  ck_assert ((double) params.ffn == L * 3 * D * F);
  ck_assert ((double) params.attention == L * 4 * D * D);
  ck_assert ((double) params.norms == L * 2 * D + D);
  ck_assert ((double) params.embedding == D * V && (double) params.head == D * V);
  ck_assert ((double) params.total
             == L * (3 * D * F + 4 * D * D + 2 * D) + 2 * D * V + D); /* F022: 17.4e9 */
  ck_assert ((double) params.attention / (double) (params.attention + params.ffn)
             == 0.25); /* F023 */

  pod_model_token_flops (model, 1000, &flops);
  ck_assert (flops.linear == L * (18 * D * F + 24 * D * D) + 6 * D * V);
  ck_assert (flops.attention_full == L * 12 * 1000 * D);
  ck_assert (flops.attention_causal == L * 6 * 1000 * D);
  pod_model_token_flops (model, (uint64_t) (8 * D), &flops); /* F010: equal at T = 8D */
  ck_assert (flops.attention_full == flops.linear - 6 * D * V);
  pod_model_token_flops (model, 8192, &flops); /* F012: attention = QKVO at T = 2D */
  ck_assert (flops.attention_full == L * 24 * D * D);
}
END_TEST

/* Parameters in billions, by part, as the book works them out. NAN = not asked. */
static const struct
{
  const char *name;
  double ffn;
  double attention;
  double embedding; /* input and output */
  double total;
} book_models[] = {
  { "llama2-13b", 8.5e9, 4.2e9, 0.328e9, 13.0e9 },        /* TR044, I023 */
  { "llama3-70b", 56.37e9, 12.08e9, 2.1e9, 70.55e9 },     /* AT001-AT004 */
  { "llama3-405b", NAN, NAN, NAN, 405.85e9 },             /* AT021 */
  { "llama3-8b", NAN, NAN, NAN, 8.03e9 },                 /* AI046 */
  { "book-model-m", NAN, NAN, 32128 * 4096.0, 18.385e9 }, /* I053 */
  { "mlp-block", 2.0 * 8192 * 32768, 0, 0, 536870912 },
};

START_TEST (book_model_has_its_parameters)
{
  g_autoptr (PodModel) model = load (book_models[_i].name);
  PodParams params;

  pod_model_params (model, &params);
  ck_assert (is_near ((double) params.total, book_models[_i].total, 0.005));
  ck_assert (isnan (book_models[_i].ffn)
             || is_near ((double) params.ffn, book_models[_i].ffn, 0.01));
  ck_assert (isnan (book_models[_i].attention)
             || is_near ((double) params.attention, book_models[_i].attention, 0.01));
  ck_assert (
      isnan (book_models[_i].embedding)
      || is_near ((double) (params.embedding + params.head), book_models[_i].embedding, 0.01));
}
END_TEST

/* I059: model M with 16 experts of which 2 are active: 211.7e9 and 31.3e9. M04: 64 experts of 2048
 * x 1024, gated. */
START_TEST (experts_multiply_the_ffn)
{
  const PodModelOverride moe[] = { { "experts", 16 }, { "top_k", 2 } };
  g_autoptr (PodModel) model = load ("book-model-m");
  g_autoptr (PodModel) small = load (POD_SOURCE_DIR "/tests/data/models/generic-moe.json");
  PodParams params;

  ck_assert (pod_model_set_all (model, moe, G_N_ELEMENTS (moe), NULL));
  pod_model_params (model, &params);
  ck_assert (is_near ((double) params.total, 211.7e9, 0.001));
  ck_assert (is_near ((double) params.active, 31.3e9, 0.002));

  pod_model_params (small, &params);
  ck_assert_uint_eq (params.experts, 50331648); /* P04 */
  ck_assert_uint_eq (params.ffn, 0);
  ck_assert_uint_eq (params.total - params.active_with_embedding, 50331648 - 12582912);
  set (small, "experts", 64);
  pod_model_params (small, &params);
  ck_assert_uint_eq (params.experts, 402653184);
}
END_TEST

/* DeepSeek-V3: a layer's MLA weights by hand,
 *   7168·1536 + 1536·128·192 + 7168·(512+64) + 512·128·(128+128) + 128·128·7168 = 187,105,280,
 * so 61 of them, 3 dense FFNs, 58 MoE layers with 8 + 1 experts and a router, and the logits.
 * Attention reads 192 wide keys and 128 wide values: 6·128·(192+128) a layer and key. */
START_TEST (mla_flops)
{
  const double weights = 61 * 187105280.0 + 3 * 3 * 7168.0 * 18432
                         + 58 * (9 * 3 * 7168.0 * 2048 + 7168.0 * 256) + 7168.0 * 129280;
  g_autoptr (PodModel) model = load ("deepseek-v3");
  PodTokenFlops flops;

  pod_model_token_flops (model, 4096, &flops);
  ck_assert (flops.linear == 6 * weights);
  ck_assert (flops.attention_full == 61 * 6.0 * 128 * (192 + 128) * 4096);
  ck_assert (flops.attention_causal == flops.attention_full / 2);
}
END_TEST

/* GLM-5 attends to 2048 keys; its indexer scores them all: 6·32·128 a layer and key. */
START_TEST (sparse_flops)
{
  const double T = 8192;
  const double span = 2048 - 2048.0 * 2048 / (2 * T);
  g_autoptr (PodModel) model = load ("glm-5");
  PodTokenFlops flops;

  pod_model_token_flops (model, (uint64_t) T, &flops);
  ck_assert (flops.attention_full == 78 * 6.0 * T * (64 * (256.0 + 256) + 32 * 128));
  ck_assert (is_near (flops.attention_causal,
                      78 * 6.0 * (span * 64 * (256.0 + 256) + T / 2 * 32 * 128), 1e-12));
}
END_TEST

/* Gemma-3: of 62 layers every sixth is global (10), the others see 1024. */
START_TEST (window_flops)
{
  const double T = 4096;
  const double local = 1024 - 1024.0 * 1024 / (2 * T);
  g_autoptr (PodModel) model = load ("gemma3-27b");
  PodTokenFlops flops;

  pod_model_token_flops (model, (uint64_t) T, &flops);
  ck_assert (is_near (flops.attention_causal, 12.0 * 32 * 128 * (10 * T / 2 + 52 * local), 1e-12));
  ck_assert (flops.attention_full == 12.0 * 32 * 128 * 62 * T);
}
END_TEST

/* PaLM's convention: 6N + 12 L H Q T, N without the input embedding where it is only looked up
 * (arXiv 2204.02311, B). */
START_TEST (palm_flops)
{
  g_autoptr (PodModel) palm = load ("palm-540b");
  g_autoptr (PodModel) llama = load ("llama3-70b");
  PodParams params;
  PodTokenFlops flops;

  pod_model_params (palm, &params);
  pod_model_token_flops (palm, 2048, &flops);
  ck_assert (flops.palm == 6.0 * (double) params.total + 12.0 * 118 * 48 * 256 * 2048);
  pod_model_params (llama, &params);
  pod_model_token_flops (llama, 8192, &flops);
  ck_assert (flops.palm
             == 6.0 * (double) (params.total - params.embedding) + 12.0 * 80 * 8192 * 8192);
  ck_assert (is_near (flops.sixnd, 4.2e11, 0.01)); /* AT007 */
  ck_assert (is_near (flops.linear, 6 * 69.5e9, 0.001));
}
END_TEST

static const struct
{
  const char *name;
  double bytes_per_element;
  uint64_t tokens;
  double bytes;
} caches[] = {
  { "book-4k", 1, 1, 524288 },                     /* F024 */
  { "llama2-13b", 2, 8192, 6710886400 },           /* I027 */
  { "book-model-m", 1, 1, 262144 },                /* I054 */
  { "llama3-70b", 1, 1, 163840 },                  /* AI004 */
  { "llama3-70b", 1, 32768 * 240, 1288490188800 }, /* AI005 */
  { "llama3-8b", 2, 1, 2 * 2 * 8 * 128 * 32 },     /* I041: a quarter of 32 heads */
  { "deepseek-v3", 1, 1, 61 * (512 + 64) },
  { "glm-5", 1, 1, 78 * (512 + 64 + 128) }, /* the indexer's key too */
  { "gemma4-26b-a4b", 1, 1, 25 * 2 * 8 * 256 + 5 * 2 * 2 * 512 },
  { "mlp-block", 2, 1, 0 },
};

START_TEST (cache_of_a_token)
{
  g_autoptr (PodModel) model = load (caches[_i].name);
  double bytes = pod_model_kv_bytes_per_token (model, caches[_i].bytes_per_element)
                 * (double) caches[_i].tokens;

  ck_assert_msg (bytes == caches[_i].bytes, "%s: %.17g", caches[_i].name, bytes);
}
END_TEST

/* F021: S = 8192, L = 64, K·H = 8192 in int8: 8 GiB */
START_TEST (cache_after_overrides)
{
  g_autoptr (PodModel) model = load ("book-4k");

  set (model, "head_dim", 256);
  ck_assert (pod_model_kv_bytes_per_token (model, 1) * 8192 == 0x1p33);
}
END_TEST

static const struct
{
  uint64_t window;
  bool is_chunked;
  uint64_t seq_len;
} spans[] = {
  { 0, false, 1 },       { 0, false, 4096 },     { 1, false, 7 },       { 128, false, 4096 },
  { 4096, false, 4096 }, { 5000, false, 4096 },  { 4095, false, 4096 }, { 1000, true, 4096 },
  { 1024, true, 4096 },  { 8192, true, 4096 },   { 3, true, 10 },       { 1, true, 5 },
  { 7, true, 7 },        { 100, false, 100000 },
};

/* The sum of what each query sees, half a key less for the diagonal: sum of min(i + 1/2, w), or (i
 * mod c) + 1/2. */
START_TEST (span_is_the_mean_over_queries)
{
  PodLayerKind kind = { .window = spans[_i].window, .is_chunked = spans[_i].is_chunked };
  double sum = 0;

  for (uint64_t i = 0; i < spans[_i].seq_len; i++)
    {
      uint64_t window = kind.window == 0 ? UINT64_MAX : kind.window;

      sum += kind.is_chunked ? (double) (i % window) + 0.5
                             : fmin ((double) i + 0.5, (double) window);
    }
  ck_assert_msg (is_near (pod_model_mean_span (&kind, spans[_i].seq_len),
                          sum / (double) spans[_i].seq_len, 1e-12),
                 "window %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT " tokens: %g", kind.window,
                 spans[_i].seq_len, pod_model_mean_span (&kind, spans[_i].seq_len));
}
END_TEST

static const struct
{
  const char *name;
  double total_b;
  double active_b; /* as the publisher rounds it: without or with the embedding */
} others[] = {
  { "glm-5", 744, 40 },            /* zai-org/GLM-5 model card */
  { "minimax-m2.5", 229, 10 },     /* MiniMaxAI/MiniMax-M2.5: 229B on the hub, 10B active */
  { "gemma4-26b-a4b", 25.2, 3.8 }, /* Gemma 4 model card */
  { "qwen3-30b", 30.5, 3.3 },      /* Qwen3-30B-A3B model card */
  { "deepseek-r1", 671, 37 },
};

START_TEST (other_model_has_about_its_parameters)
{
  g_autoptr (PodModel) model = load (others[_i].name);
  PodParams params;

  pod_model_params (model, &params);
  ck_assert (is_near ((double) params.total, others[_i].total_b * 1e9, 0.003));
  ck_assert (is_near ((double) params.active_with_embedding, others[_i].active_b * 1e9, 0.11));
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("params");
  TCase *counts = tcase_create ("counts");
  TCase *flops = tcase_create ("flops");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_add_loop_test (counts, published_model_has_its_parameters, 0, G_N_ELEMENTS (models));
  tcase_add_loop_test (counts, parts_add_up, 0, G_N_ELEMENTS (models));
  tcase_add_loop_test (counts, other_model_has_about_its_parameters, 0, G_N_ELEMENTS (others));
  tcase_add_loop_test (counts, book_model_has_its_parameters, 0, G_N_ELEMENTS (book_models));
  tcase_add_test (counts, book_counts_of_a_dense_layer);
  tcase_add_test (counts, experts_multiply_the_ffn);
  tcase_add_loop_test (counts, cache_of_a_token, 0, G_N_ELEMENTS (caches));
  tcase_add_test (counts, cache_after_overrides);
  suite_add_tcase (suite, counts);

  tcase_add_test (flops, mla_flops);
  tcase_add_test (flops, sparse_flops);
  tcase_add_test (flops, window_flops);
  tcase_add_test (flops, palm_flops);
  tcase_add_loop_test (flops, span_is_the_mean_over_queries, 0, G_N_ELEMENTS (spans));
  suite_add_tcase (suite, flops);

  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
