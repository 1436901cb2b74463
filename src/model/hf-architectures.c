#include "model/hf-config-private.h"

#include <string.h>

/* What each class of Hugging Face transformers (v4.56, models/NAME/modeling_NAME.py and
 * configuration_NAME.py) builds, where its config.json does not say it: gate, norms, biases, tying,
 * defaults. DeepSeek-V3, Kimi-K2 and MiniMax-M2 as in the code that came with their weights. Counts
 * are checked against published totals in tests/unit/test-params.c. */

#define TIED(value) .is_tied = { "tie_word_embeddings", value }
#define ATTENTION_BIAS(value)                                                                      \
  .has_attention_bias = { "attention_bias", value }, .has_output_bias = { "attention_bias", value }

static const HfClass classes[] = {
  {
      .model_type = "llama",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      ATTENTION_BIAS (false),
      .has_ffn_bias = { "mlp_bias", false },
      .is_mha_by_default = true,
  },
  {
      .model_type = "llama4",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS, /* its q and k norms have no weights */
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      ATTENTION_BIAS (false),
      .window_rule
      = HF_WINDOW_PATTERN, /* every fourth layer has no rotary position and sees everything */
      .window_key = "attention_chunk_size",
      .window = 8192,
      .full_every = 4,
      .is_chunked = true,
      .moe = HF_MOE_INTERLEAVED,
      .is_ffn_expert_width = true,
      .dense_width_key = "intermediate_size_mlp",
      .shared_experts = 1,
  },
  {
      .model_type = "mistral",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      .window_rule = HF_WINDOW_ALL,
      .window_key = "sliding_window",
      .window = 4096,
  },
  {
      .model_type = "mixtral",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      .window_rule = HF_WINDOW_ALL,
      .window_key = "sliding_window",
      .moe = HF_MOE_ALL,
      .is_ffn_expert_width = true,
  },
  {
      .model_type = "deepseek_v2",
      .attention = POD_ATTENTION_MLA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      ATTENTION_BIAS (false),
      .moe = HF_MOE_AFTER_DENSE,
      .needs_shared_experts = true,
      .dense_layers = UINT64_MAX,
  },
  {
      .model_type = "deepseek_v3",
      .attention = POD_ATTENTION_MLA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      ATTENTION_BIAS (false),
      .moe = HF_MOE_AFTER_DENSE,
      .needs_shared_experts = true,
      .dense_layers = UINT64_MAX,
      .has_router_bias = true, /* e_score_correction_bias */
  },
  {
      .model_type = "kimi_k2", /* DeepSeek-V3's code */
      .attention = POD_ATTENTION_MLA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      ATTENTION_BIAS (false),
      .moe = HF_MOE_AFTER_DENSE,
      .needs_shared_experts = true,
      .dense_layers = UINT64_MAX,
      .has_router_bias = true,
  },
  {
      .model_type = "deepseek_v32", /* DeepSeek-V3 with sparse attention */
      .attention = POD_ATTENTION_MLA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      ATTENTION_BIAS (false),
      .moe = HF_MOE_AFTER_DENSE,
      .needs_shared_experts = true,
      .dense_layers = UINT64_MAX,
      .has_router_bias = true,
      .finish = pod_hf_finish_sparse,
  },
  {
      .model_type = "glm_moe_dsa",
      .attention = POD_ATTENTION_MLA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      ATTENTION_BIAS (false),
      .moe = HF_MOE_AFTER_DENSE,
      .needs_shared_experts = true,
      .dense_layers = UINT64_MAX,
      .has_router_bias = true,
      .finish = pod_hf_finish_sparse,
  },
  {
      .model_type = "glm4_moe",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      .has_attention_bias = { "attention_bias", false }, /* never on o */
      .has_qk_norm = { "use_qk_norm", false },
      .head_dim = 128,
      .moe = HF_MOE_AFTER_DENSE,
      .needs_shared_experts = true,
      .dense_layers = UINT64_MAX,
      .has_router_bias = true,
  },
  {
      .model_type = "qwen2",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      .has_attention_bias = { NULL, true },
      .window_rule = HF_WINDOW_SWITCHED,
      .window_key = "sliding_window",
      .window = 4096,
  },
  {
      .model_type = "qwen2_moe",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      .has_attention_bias = { "qkv_bias", true },
      .window_rule = HF_WINDOW_SWITCHED,
      .window_key = "sliding_window",
      .window = 4096,
      .moe = HF_MOE_SPARSE_STEP,
      .finish = pod_hf_finish_qwen2_moe,
  },
  {
      .model_type = "qwen3",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      ATTENTION_BIAS (false),
      .has_qk_norm = { NULL, true },
      .head_dim = 128,
      .window_rule = HF_WINDOW_SWITCHED,
      .window_key = "sliding_window",
      .window = 4096,
  },
  {
      .model_type = "qwen3_moe",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      ATTENTION_BIAS (false),
      .has_qk_norm = { NULL, true },
      .window_rule = HF_WINDOW_SWITCHED,
      .window_key = "sliding_window",
      .window = 4096,
      .moe = HF_MOE_SPARSE_STEP,
  },
  {
      .model_type = "gemma2",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 4,
      .is_ffn_gated = true,
      TIED (true),
      ATTENTION_BIAS (false),
      .head_dim = 256,
      .window_rule = HF_WINDOW_PATTERN,
      .window_key = "sliding_window",
      .window = 4096,
      .full_every = 2,
  },
  {
      .model_type = "gemma3",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 4,
      .is_ffn_gated = true,
      TIED (true),
      ATTENTION_BIAS (false),
      .has_qk_norm = { NULL, true },
      .head_dim = 256,
      .vocab = 262208,
      .window_rule = HF_WINDOW_PATTERN,
      .window_key = "sliding_window",
      .window = 4096,
      .full_every = 6,
  },
  {
      .model_type = "gemma4",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 4,
      .is_ffn_gated = true,
      TIED (true),
      ATTENTION_BIAS (false),
      .has_qk_norm = { NULL, true },
      .head_dim = 256,
      .window_rule = HF_WINDOW_PATTERN,
      .window_key = "sliding_window",
      .window = 512,
      .full_every = 6,
      .moe = HF_MOE_BESIDE,
      .finish = pod_hf_finish_gemma4,
  },
  {
      .model_type = "gpt_oss",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      ATTENTION_BIAS (true),
      .head_dim = 64,
      .window_rule = HF_WINDOW_PATTERN,
      .window_key = "sliding_window",
      .window = 128,
      .full_every = 2,
      .moe = HF_MOE_ALL,
      .is_ffn_expert_width = true,
      .has_router_bias = true,
      .has_expert_bias = true,
      .finish = pod_hf_finish_gpt_oss,
  },
  {
      .model_type = "minimax_m2",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      .has_qk_norm = { "use_qk_norm", true },
      .moe = HF_MOE_ALL,
      .is_ffn_expert_width = true,
      .finish = pod_hf_finish_minimax,
  },
  {
      .model_type
      = "grok-1", /* xai-org/grok-1 model.py: four norms, one table for input and output */
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 4,
      .is_ffn_gated = true,
      TIED (true),
      .moe = HF_MOE_ALL,
      .is_ffn_expert_width = true,
  },
  {
      .model_type = "phi3",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_RMS,
      .norms_per_layer = 2,
      .is_ffn_gated = true,
      TIED (false),
      .is_mha_by_default = true,
      .window_rule = HF_WINDOW_ALL,
      .window_key = "sliding_window",
  },
  {
      .model_type = "falcon",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_LAYER,
      .norms_per_layer = 2,
      TIED (true),
      .has_attention_bias = { "bias", false },
      .has_output_bias = { "bias", false },
      .has_ffn_bias = { "bias", false },
      .is_mha_by_default = true,
      .ffn_per_hidden = 4,
      .finish = pod_hf_finish_falcon,
  },
  {
      .model_type = "gpt2",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_LAYER,
      .norms_per_layer = 2,
      TIED (true),
      .has_learned_positions = true,
      .has_attention_bias = { NULL, true },
      .has_output_bias = { NULL, true },
      .has_ffn_bias = { NULL, true },
      .is_mha_by_default = true,
      .ffn_per_hidden = 4,
  },
  {
      .model_type = "opt",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_LAYER,
      .norms_per_layer = 2,
      TIED (true),
      .has_learned_positions = true,
      .extra_positions = 2, /* OPTLearnedPositionalEmbedding.offset */
      .has_attention_bias = { "enable_bias", true },
      .has_output_bias = { "enable_bias", true },
      .has_ffn_bias = { "enable_bias", true },
      .is_mha_by_default = true,
      .finish = pod_hf_finish_opt,
  },
  {
      .model_type = "bloom",
      .attention = POD_ATTENTION_GQA,
      .norm = POD_NORM_LAYER,
      .norms_per_layer = 2,
      TIED (true),
      .has_embedding_norm = true,
      .has_attention_bias = { NULL, true },
      .has_output_bias = { NULL, true },
      .has_ffn_bias = { NULL, true },
      .is_mha_by_default = true,
      .ffn_per_hidden = 4,
  },
};

static const HfClass generic = {
  .model_type = "generic",
  .attention = POD_ATTENTION_GQA,
  .norm = POD_NORM_RMS,
  .norms_per_layer = 2,
  .is_ffn_gated = true,
  TIED (false),
  ATTENTION_BIAS (false),
  .has_ffn_bias = { "mlp_bias", false },
  .is_mha_by_default = true,
  .moe = HF_MOE_AFTER_DENSE,
  .is_moe_optional = true,
};

static const HfClass deepseek_native = {
  .model_type = "deepseek",
  .attention = POD_ATTENTION_MLA,
  .norm = POD_NORM_RMS,
  .norms_per_layer = 2,
  .is_ffn_gated = true,
  .is_mha_by_default = true,
  .moe = HF_MOE_AFTER_DENSE,
  .needs_shared_experts = true,
  .dense_layers = UINT64_MAX,
  .finish = pod_hf_finish_deepseek_native,
};

const HfClass *
pod_hf_class_find (const char *model_type)
{
  size_t length = strlen (model_type);

  if (g_str_has_suffix (model_type, "_text"))
    length -= strlen ("_text");
  for (size_t i = 0; i < G_N_ELEMENTS (classes); i++)
    if (strlen (classes[i].model_type) == length
        && strncmp (classes[i].model_type, model_type, length) == 0)
      return &classes[i];
  return NULL;
}

const HfClass *
pod_hf_class_generic (void)
{
  return &generic;
}

const HfClass *
pod_hf_class_deepseek_native (void)
{
  return &deepseek_native;
}

char *
pod_hf_class_names (void)
{
  GString *names = g_string_new (NULL);

  for (size_t i = 0; i < G_N_ELEMENTS (classes); i++)
    g_string_append_printf (names, "%s%s", i == 0 ? "" : ", ", classes[i].model_type);
  return g_string_free (names, FALSE);
}
