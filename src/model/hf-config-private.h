#pragma once

#include "base/json.h"
#include "model/model-private.h"

/* What a Hugging Face config.json says under one of several names; the first present name counts.
 */
typedef enum
{
  HF_LAYERS,
  HF_HIDDEN,
  HF_HEADS,
  HF_KV_HEADS,
  HF_HEAD_DIM,
  HF_FFN,
  HF_VOCAB,
  HF_POSITIONS,
  HF_EXPERTS,
  HF_TOP_K,
  HF_MOE_FFN,
  HF_SHARED_EXPERTS,
  HF_DENSE_LAYERS,
  HF_MTP_LAYERS,
  HF_EXPERT_GROUPS,
  HF_TOP_GROUPS,
  HF_N_KEYS,
} HfKey;

/* Which layers have experts. */
typedef enum
{
  HF_MOE_NONE,
  HF_MOE_ALL,
  HF_MOE_AFTER_DENSE, /* after first_k_dense_replace dense ones, every moe_layer_freq-th */
  HF_MOE_SPARSE_STEP, /* every decoder_sparse_step-th, not those of mlp_only_layers */
  HF_MOE_INTERLEAVED, /* every interleave_moe_layer_step-th */
  HF_MOE_BESIDE,      /* in every layer, beside a dense FFN */
} HfMoe;

/* Which layers have a window. */
typedef enum
{
  HF_WINDOW_NONE,
  HF_WINDOW_ALL,      /* sliding_window in every layer, null = none */
  HF_WINDOW_PATTERN,  /* all but every full_every-th layer */
  HF_WINDOW_SWITCHED, /* only with use_sliding_window, from layer max_window_layers on (Qwen) */
} HfWindow;

/* A switch that a key sets (NULL = no such key) and the class otherwise. */
typedef struct
{
  const char *key;
  bool by_default;
} HfSwitch;

typedef struct HfReader HfReader;

/* What the code of an architecture fixes and its config.json does not say. */
typedef struct
{
  const char *model_type;
  PodAttention attention;
  PodNorm norm;
  unsigned norms_per_layer;
  bool is_ffn_gated;
  bool is_parallel_block;
  bool has_learned_positions;
  bool has_embedding_norm;
  uint64_t extra_positions;
  HfSwitch is_tied;
  HfSwitch has_attention_bias; /* q, k, v */
  HfSwitch has_output_bias;
  HfSwitch has_ffn_bias;
  HfSwitch has_qk_norm;

  /* Defaults of the configuration class; 0 = the key is required (head_dim: hidden / heads). */
  uint64_t head_dim;
  uint64_t ffn_per_hidden;
  uint64_t vocab;

  HfWindow window_rule;
  HfMoe moe;
  const char *window_key;
  uint64_t window;             /* where the key is absent, not null */
  uint64_t full_every;         /* HF_WINDOW_PATTERN */
  const char *dense_width_key; /* of the dense layers, where intermediate_size is the experts' */
  uint64_t shared_experts;     /* there always are so many */
  uint64_t dense_layers;    /* HF_MOE_AFTER_DENSE, where the key is absent; UINT64_MAX = required */
  bool is_mha_by_default;   /* as many KV heads as heads */
  bool is_chunked;          /* the window is a chunk */
  bool is_moe_optional;     /* dense when no number of experts is given */
  bool is_ffn_expert_width; /* intermediate_size is the width of an expert */
  bool needs_shared_experts; /* their number must be stated */
  bool has_router_bias;
  bool has_expert_bias;

  /* What needs code: called when all but the layers is read. (nullable) */
  bool (*finish) (HfReader *reader, GError **error);
} HfClass;

struct HfReader
{
  const PodJson *json;
  JsonObject *outer; /* the whole file */
  JsonObject *text;  /* the language model's part of it */
  const HfClass *class;
  PodModel *model;

  uint64_t window;    /* tokens, of the layers that have one */
  uint64_t dense_ffn; /* 0 = no width was given */
  PodLayerKind plain; /* heads and sizes of a layer */
  PodLayerKind full;  /* the same of a layer without a window where patterns mix (Gemma-4) */
};

/* The class of that model_type, a "_text" at its end aside. Returns: (nullable) (transfer none) */
const HfClass *pod_hf_class_find (const char *model_type);
/* For files without a model_type: Llama, with experts where the keys are there. */
const HfClass *pod_hf_class_generic (void);
/* DeepSeek's own format (dim, inter_dim, …). */
const HfClass *pod_hf_class_deepseek_native (void);
/* Every model_type, for messages. Returns: (transfer full) */
char *pod_hf_class_names (void);

/* The first of the names of @key that is present and not null. Returns: (nullable) (transfer none)
 */
const char *pod_hf_find (const HfReader *reader, HfKey key);
/* Sets "file:line: key: message" with POD_ERROR_INVALID; returns false. */
bool pod_hf_refuse (const HfReader *reader, const char *key, GError **error, const char *format,
                    ...) G_GNUC_PRINTF (4, 5);
/* The same for a required key that is missing under all its names. */
bool pod_hf_refuse_missing (const HfReader *reader, HfKey key, GError **error);
/* A key that must be there and at least 1. */
bool pod_hf_require (const HfReader *reader, HfKey key, uint64_t *out, GError **error);
/* An optional whole number by literal key: absent leaves *out alone. */
bool pod_hf_get_uint (const HfReader *reader, const char *key, uint64_t *out, GError **error);
/* An optional boolean. */
bool pod_hf_get_bool (const HfReader *reader, const char *key, bool *out, GError **error);

/* Gives model its layers: heads, windows and experts of each. */
bool pod_hf_read_layers (HfReader *reader, GError **error);

/* hf-finish.c: HfClass.finish of the architectures that need code. */
bool pod_hf_finish_falcon (HfReader *reader, GError **error);
bool pod_hf_finish_opt (HfReader *reader, GError **error);
bool pod_hf_finish_gemma4 (HfReader *reader, GError **error);
bool pod_hf_finish_gpt_oss (HfReader *reader, GError **error);
bool pod_hf_finish_sparse (HfReader *reader, GError **error);
bool pod_hf_finish_minimax (HfReader *reader, GError **error);
bool pod_hf_finish_qwen2_moe (HfReader *reader, GError **error);
bool pod_hf_finish_deepseek_native (HfReader *reader, GError **error);
