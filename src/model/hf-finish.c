#include "model/hf-config-private.h"

#include <string.h>

#include "base/error.h"

/* What some architectures need beyond their row in hf-architectures.c: each is called when all but
 * the layers is read. */

static bool
refuse_unsupported (const HfReader *reader, const char *key, GError **error)
{
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
               "%s:%u: %s: not modelled for %s with this value", reader->json->file,
               pod_json_line_of (reader->json, key), key, reader->class->model_type);
  return false;
}

/* Heads share keys by num_kv_heads in the new decoder (40B, 180B), else by multi_query; two norms
 * side by side in the new decoder, one in the old parallel block. */
bool
pod_hf_finish_falcon (HfReader *reader, GError **error)
{
  PodModel *model = reader->model;
  bool is_new = false;
  bool is_multi_query = true;
  bool is_parallel = true;
  uint64_t n_norms;

  if (!pod_hf_get_bool (reader, "new_decoder_architecture", &is_new, error)
      || !pod_hf_get_bool (reader, "multi_query", &is_multi_query, error)
      || !pod_hf_get_bool (reader, "parallel_attn", &is_parallel, error))
    return false;
  if (!is_new)
    reader->plain.kv_heads = is_multi_query ? 1 : reader->plain.heads;
  model->is_parallel_block = is_new || is_parallel;
  n_norms = is_parallel && !is_new ? 1 : 2;
  if (!pod_hf_get_uint (reader, "num_ln_in_parallel_attn", &n_norms, error))
    return false;
  if (n_norms != 1 && n_norms != 2)
    return pod_hf_refuse (reader, "num_ln_in_parallel_attn", error,
                          "expected 1 or 2, got %" G_GUINT64_FORMAT, n_norms);
  model->norms_per_layer = (unsigned) n_norms;
  return true;
}

/* Only opt-350m projects its embeddings and norms behind the block. */
bool
pod_hf_finish_opt (HfReader *reader, GError **error)
{
  uint64_t width = reader->model->hidden;
  bool has_norm_before = true;
  bool is_final_norm_removed = false;
  bool is_affine = true;

  if (!pod_hf_get_uint (reader, "word_embed_proj_dim", &width, error)
      || !pod_hf_get_bool (reader, "do_layer_norm_before", &has_norm_before, error)
      || !pod_hf_get_bool (reader, "_remove_final_layer_norm", &is_final_norm_removed, error)
      || !pod_hf_get_bool (reader, "layer_norm_elementwise_affine", &is_affine, error))
    return false;
  if (width != reader->model->hidden)
    return refuse_unsupported (reader, "word_embed_proj_dim", error);
  reader->model->has_final_norm = has_norm_before && !is_final_norm_removed;
  if (!is_affine)
    reader->model->norm = POD_NORM_NONE;
  return true;
}

/* Full layers have heads of their own size, and v is k's there; the router has a scale per input
 * and per expert, each layer one more scalar. */
bool
pod_hf_finish_gemma4 (HfReader *reader, GError **error)
{
  static const char *const unsupported[]
      = { "hidden_size_per_layer_input", "num_kv_shared_layers" };
  PodModel *model = reader->model;
  bool is_v_from_k = false;
  bool is_double_wide = false;

  for (size_t i = 0; i < G_N_ELEMENTS (unsupported); i++)
    {
      uint64_t value = 0;

      if (!pod_hf_get_uint (reader, unsupported[i], &value, error))
        return false;
      if (value != 0)
        return refuse_unsupported (reader, unsupported[i], error);
    }
  if (!pod_hf_get_bool (reader, "use_double_wide_mlp", &is_double_wide, error)
      || !pod_hf_get_bool (reader, "attention_k_eq_v", &is_v_from_k, error)
      || !pod_hf_get_uint (reader, "global_head_dim", &reader->full.head_dim, error))
    return false;
  if (is_double_wide)
    return refuse_unsupported (reader, "use_double_wide_mlp", error);

  reader->full.v_head_dim = reader->full.head_dim;
  reader->full.is_v_from_k = is_v_from_k;
  if (is_v_from_k
      && !pod_hf_get_uint (reader, "num_global_key_value_heads", &reader->full.kv_heads, error))
    return false;
  model->extra_params_per_layer = 1;
  if (model->n_experts != 0)
    {
      model->norms_per_layer = 7;
      model->has_router_scales = true;
    }
  return true;
}

/* A learned attention sink per head. */
bool
pod_hf_finish_gpt_oss (HfReader *reader, G_GNUC_UNUSED GError **error)
{
  reader->model->has_attention_sinks = true;
  reader->model->has_clamped_activation = true; /* at 7: openai/gpt-oss model.py */
  return true;
}

/* DeepSeek sparse attention: an indexer picks index_topk keys for each query. */
bool
pod_hf_finish_sparse (HfReader *reader, GError **error)
{
  PodModel *model = reader->model;
  uint64_t top_k = 0;

  if (!pod_hf_get_uint (reader, "index_n_heads", &model->index_heads, error)
      || !pod_hf_get_uint (reader, "index_head_dim", &model->index_head_dim, error)
      || !pod_hf_get_uint (reader, "index_topk", &top_k, error))
    return false;
  if (model->index_heads == 0 || model->index_head_dim == 0 || top_k == 0)
    return pod_hf_refuse (
        reader, "index_topk", error,
        "sparse attention needs index_n_heads, index_head_dim and index_topk of at least 1");
  reader->plain.window = top_k;
  reader->plain.is_sparse = true;
  pod_model_note (
      model, "each query attends to the %" G_GUINT64_FORMAT " keys that the indexer picks", top_k);
  return true;
}

/* The norms of q and k run over all heads at once; its multi-token-prediction modules have layers
 * of their own. */
bool
pod_hf_finish_minimax (HfReader *reader, GError **error)
{
  PodModel *model = reader->model;
  uint64_t n_modules = 0;
  uint64_t n_layers = 1;
  bool has_mtp = false;

  model->has_router_bias = false;
  if (!pod_hf_get_bool (reader, "use_routing_bias", &model->has_router_bias, error)
      || !pod_hf_get_uint (reader, "shared_intermediate_size", &model->shared_ffn, error)
      || !pod_hf_get_bool (reader, "use_mtp", &has_mtp, error)
      || !pod_hf_get_uint (reader, "num_mtp_modules", &n_modules, error)
      || !pod_hf_get_uint (reader, "mtp_transformer_layers", &n_layers, error))
    return false;
  model->is_qk_norm_wide = true;
  model->n_shared_experts = model->shared_ffn != 0;
  if (has_mtp && !g_uint64_checked_mul (&model->n_mtp_layers, n_modules, n_layers))
    return pod_hf_refuse (reader, "num_mtp_modules", error, "too many");
  return true;
}

/* One shared expert of its own width, behind a gate. */
bool
pod_hf_finish_qwen2_moe (HfReader *reader, GError **error)
{
  if (!pod_hf_get_uint (reader, "shared_expert_intermediate_size", &reader->model->shared_ffn,
                        error))
    return false;
  if (reader->model->shared_ffn == 0)
    return pod_hf_refuse (reader, "shared_expert_intermediate_size", error,
                          "expected a whole number of at least 1");
  reader->model->n_shared_experts = 1;
  reader->model->has_shared_gate = true;
  return true;
}

/* inference/model.py of DeepSeek-V3: the correction bias comes with the 671B model, which scores by
 * sigmoid. */
bool
pod_hf_finish_deepseek_native (HfReader *reader, GError **error)
{
  const char *score = "softmax";

  if (pod_json_has (reader->text, "score_func")
      && !pod_json_get_string (reader->json, reader->text, "score_func", &score, error))
    return false;
  reader->model->has_router_bias = strcmp (score, "sigmoid") == 0;
  return true;
}
