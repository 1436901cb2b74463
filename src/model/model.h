#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* A Transformer as its config says: shapes and counts, no hardware. */

typedef enum
{
  POD_ATTENTION_NONE, /* an MLP stack (the book's two-matrix block) */
  POD_ATTENTION_GQA,  /* MHA when kv_heads == heads, MQA when 1 */
  POD_ATTENTION_MLA,
} PodAttention;

typedef enum
{
  POD_NORM_NONE,
  POD_NORM_RMS,   /* one vector */
  POD_NORM_LAYER, /* weight and bias */
} PodNorm;

/* What differs between layers; a model has few kinds, layer_kind[] says which layer has which. */
typedef struct
{
  bool is_moe;
  uint64_t ffn;    /* dense FFN width of one matrix (0 when is_moe and no dense part) */
  uint64_t window; /* sliding window in tokens, 0 = full attention */
  uint64_t heads;  /* local/global layers may differ */
  uint64_t kv_heads;
  uint64_t head_dim;   /* of q and k */
  uint64_t v_head_dim; /* of v (differs with MLA) */
  bool is_chunked;     /* window is a chunk (Llama-4), not sliding */
  bool is_sparse;   /* the window is picked from all tokens (DSA): bounds the span, not the cache */
  bool is_v_from_k; /* no v projection, v is k's (Gemma-4's global layers); the cache holds both */
} PodLayerKind;

typedef struct
{
  char *name;
  char *file;
  char *architecture; /* model_type */
  PodAttention attention;
  uint64_t n_layers;
  uint64_t hidden;
  uint64_t vocab;
  uint64_t max_positions;   /* 0 = the file does not say (only where no table is learned) */
  uint64_t extra_positions; /* rows of the learned table beyond max_positions (OPT: 2) */
  bool has_learned_positions;
  bool is_ffn_gated;       /* three matrices, else two */
  bool is_tied;            /* head shares the embedding */
  bool is_parallel_block;  /* attention and FFN side by side (Falcon, PaLM) */
  bool has_attention_bias; /* q, k, v */
  bool has_output_bias;    /* o */
  bool has_ffn_bias;
  bool has_qk_norm;     /* one vector of head_dim for q, one for k */
  bool is_qk_norm_wide; /* over all heads at once instead (MiniMax-M2) */
  PodNorm norm;
  unsigned norms_per_layer; /* 2; Gemma 4; parallel blocks 1 */
  bool has_embedding_norm;  /* BLOOM */
  bool has_final_norm;
  bool has_own_head_dim; /* stated, so an override of hidden keeps it; else hidden / heads again */
  bool has_own_ffn;      /* stated; else 4 x hidden again (GPT-2, BLOOM, Falcon) */

  PodLayerKind *kinds; /* n_kinds */
  unsigned n_kinds;
  uint8_t *layer_kind; /* n_layers */

  uint64_t n_experts;
  uint64_t top_k;
  uint64_t n_expert_groups; /* a token's experts are all of @top_groups of them (DeepSeek); 0 and 1 = no limit */
  uint64_t top_groups;
  uint64_t n_shared_experts;
  uint64_t shared_ffn; /* total width of the shared experts */
  uint64_t moe_ffn;
  bool has_shared_gate; /* one hidden-to-1 matrix before the shared experts (Qwen2-MoE) */
  bool has_router_bias;
  bool has_expert_bias; /* gpt-oss */
  bool has_clamped_activation; /* of experts (gpt-oss, swiglu_limit) */

  uint64_t q_lora; /* 0 = direct q projection */
  uint64_t kv_lora;
  uint64_t qk_nope;
  uint64_t qk_rope;
  uint64_t v_head;
  uint64_t index_heads; /* DSA's indexer (GLM-5, DeepSeek-V3.2), 0 = none */
  uint64_t index_head_dim;
  uint64_t n_mtp_layers;           /* listed, not counted in params */
  uint64_t n_mtp;                  /* multi-token prediction modules that train, each around a layer like
                                      the last: counted (--mtp) */
  bool has_attention_sinks;        /* one number per head (gpt-oss) */
  bool has_router_scales;          /* one number per input and one per expert (Gemma-4) */
  uint64_t extra_params_per_layer; /* scalars and the like, counted with attention */

  GPtrArray *notes; /* (element-type utf8) what was assumed, e.g. "read from text_config" */
} PodModel;

/* By name (workloads/models/NAME.json or .xml) or file (HF config.json as it is, or our XML).
 * Unknown architecture or missing key: POD_ERROR_INVALID that names the key. Keys matching
 * *expert*, *moe* that are not understood: a note, or an error when they would change the counts.
 * Returns: (transfer full) */
PodModel *pod_model_load (const char *name_or_file, GError **error);
void pod_model_free (PodModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodModel, pod_model_free)

/* Returns: (transfer full) a model that shares nothing with @model. O(layers) */
PodModel *pod_model_copy (const PodModel *model);
/* The names that load from workloads/models over the whole search path, sorted.
 * Returns: (transfer full) (element-type utf8) */
GPtrArray *pod_model_list (void);

/* One override: "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "experts",
 * "top_k", "moe_ffn", … ('-' counts as '_'). */
typedef struct
{
  const char *field;
  uint64_t value;
} PodModelOverride;

/* A field that can be overridden, for options and help. */
typedef struct
{
  const char *name;
  const char *summary;
} PodModelField;
/* In the order of help, NULL behind the last. (transfer none) (nullable) */
const PodModelField *pod_model_field (unsigned index);

/* Overrides one field and rechecks (heads % kv_heads == 0, …); on error the model is as it was.
 * layers: cuts the pattern of kinds or goes on with it: DeepSeek-V3's first three stay dense,
 *   Gemma-3 stays 5 local : 1 global.
 * hidden, heads: a head_dim that the file states stays (Llama-4, Qwen3, gpt-oss, …; an earlier
 *   override counts as stated); where it does not (Llama-3, GPT, …) it is hidden / heads again,
 *   which must divide. An FFN width that the file leaves at 4 x hidden follows too.
 * heads: where kv_heads == heads it follows (MHA stays MHA), else it stays.
 * heads, kv_heads and head_dim go to all kinds of layer, ffn to those with a dense part, window to
 *   those with a window.
 * experts: on a dense model makes every layer MoE, its experts as wide as the FFN was, top_k 1
 *   until overridden. */
bool pod_model_set (PodModel *model, const char *field, uint64_t value, GError **error);
/* All together, in this order, checked once at the end, so that heads and kv_heads can move
 * together. */
bool pod_model_set_all (PodModel *model, const PodModelOverride *overrides, unsigned n_overrides,
                        GError **error);
/* heads >= 1, heads % kv_heads == 0, non-zero dims, …: the rule and the numbers in the message. */
bool pod_model_check (const PodModel *model, GError **error);

/* Exact parameter counts. */
typedef struct
{
  uint64_t embedding; /* input table */
  uint64_t positions;
  uint64_t head;      /* 0 when tied */
  uint64_t attention; /* all layers: projections and biases, q/k norms */
  uint64_t ffn;       /* dense FFNs */
  uint64_t experts;   /* routed */
  uint64_t shared_experts;
  uint64_t router;
  uint64_t norms;
  uint64_t mtp; /* modules that train; they share embedding and head */
  uint64_t total;
  uint64_t active; /* what one token uses: as total with top_k of the experts; without the input
                      embedding where it is only looked up (counted when tied: the head matmul uses
                      it) */
  uint64_t active_with_embedding;
} PodParams;

void pod_model_params (const PodModel *model, PodParams *out);
/* What a multi-token prediction module has beside its layer: [2D, D] and three norms. */
uint64_t pod_model_mtp_params (const PodModel *model);
/* Parameters of one layer of this kind (all, and those one token uses). */
uint64_t pod_model_layer_params (const PodModel *model, unsigned kind, uint64_t *out_active);

/* KV cache of one token over all layers, bytes at @bytes_per_element (MLA: kv_lora + qk_rope,
 * and the indexer's key where there is one). Window ignored. */
double pod_model_kv_bytes_per_token (const PodModel *model, double bytes_per_element);

/* FLOPs of one training token (forward + backward) by convention; attention terms depend on
 * seq_len. */
typedef struct
{
  double linear;           /* 6 x parameters of matmuls that a token uses, with the logits */
  double attention_full;   /* QK^T and AV, forward + backward, neither causal nor windows counted */
  double attention_causal; /* as the kernel does it: causal halves; windows limit the span */
  double sixnd;            /* 6 x active params, input embedding included */
  double palm;             /* 6 x active + 12 L heads head_dim T (MLA: 6 L heads (qk + v) T) */
  double megatron;         /* linear + attention_full */
  double causal;           /* linear + attention_full / 2 */
} PodTokenFlops;

void pod_model_token_flops (const PodModel *model, uint64_t seq_len, PodTokenFlops *out);

/* Mean keys per query over a sequence: (T+1)/2 counted as T/2 for full causal layers as kernels'
 * FLOP counts do, less with a window. */
double pod_model_mean_span (const PodLayerKind *kind, uint64_t seq_len);
