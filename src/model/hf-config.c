#include "model/hf-config-private.h"

#include <stdarg.h>
#include <string.h>

#include "base/error.h"

enum
{
  MAX_NAMES = 6,
};

static const char *const key_names[HF_N_KEYS][MAX_NAMES] = {
  [HF_LAYERS] = { "num_hidden_layers", "n_layer", "num_layers", "n_layers" },
  [HF_HIDDEN] = { "hidden_size", "n_embd", "n_embed", "dim" },
  [HF_HEADS] = { "num_attention_heads", "n_head", "n_heads" },
  [HF_KV_HEADS] = { "num_key_value_heads", "num_kv_heads", "n_head_kv" },
  [HF_HEAD_DIM] = { "head_dim" },
  [HF_FFN] = { "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "inter_dim" },
  [HF_VOCAB] = { "vocab_size" },
  [HF_POSITIONS] = { "max_position_embeddings", "n_positions", "seq_length" },
  [HF_EXPERTS] = { "n_routed_experts", "num_experts", "num_local_experts" },
  [HF_TOP_K]
  = { "num_experts_per_tok", "experts_per_token", "top_k_experts", "n_activated_experts" },
  [HF_MOE_FFN] = { "moe_intermediate_size", "moe_inter_dim" },
  [HF_SHARED_EXPERTS] = { "n_shared_experts", "num_shared_experts" },
  [HF_DENSE_LAYERS] = { "first_k_dense_replace", "n_dense_layers" },
  [HF_MTP_LAYERS] = { "num_nextn_predict_layers" },
  [HF_EXPERT_GROUPS] = { "n_group", "n_expert_groups" },
  [HF_TOP_GROUPS] = { "topk_group", "n_limited_groups" },
};

/* Keys about experts that are read elsewhere, or that only steer the routing. */
static const char *const other_expert_keys[] = {
  "shared_expert_intermediate_size",
  "interleave_moe_layer_step",
  "moe_layers",
  "moe_layer_freq",
  "enable_moe_block",
};

const char *
pod_hf_find (const HfReader *reader, HfKey key)
{
  for (size_t i = 0; i < MAX_NAMES && key_names[key][i] != NULL; i++)
    if (pod_json_has (reader->text, key_names[key][i]))
      return key_names[key][i];
  return NULL;
}

static bool
is_known_expert_key (const char *name)
{
  for (size_t key = 0; key < HF_N_KEYS; key++)
    for (size_t i = 0; i < MAX_NAMES && key_names[key][i] != NULL; i++)
      if (strcmp (key_names[key][i], name) == 0)
        return true;
  for (size_t i = 0; i < G_N_ELEMENTS (other_expert_keys); i++)
    if (strcmp (other_expert_keys[i], name) == 0)
      return true;
  return false;
}

bool
pod_hf_refuse (const HfReader *reader, const char *key, GError **error, const char *format, ...)
{
  g_autofree char *message = NULL;
  va_list arguments;

  va_start (arguments, format);
  message = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s:%u: %s: %s", reader->json->file,
               pod_json_line_of (reader->json, key), key, message);
  return false;
}

bool
pod_hf_refuse_missing (const HfReader *reader, HfKey key, GError **error)
{
  g_autoptr (GString) others = g_string_new (NULL);
  bool is_nested = reader->text != reader->outer;

  for (size_t i = 1; i < MAX_NAMES && key_names[key][i] != NULL; i++)
    g_string_append_printf (others, "%s%s", i == 1 ? ", nor as " : ", ", key_names[key][i]);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s:%u: %s: missing%s%s (%s needs it)",
               reader->json->file, is_nested ? pod_json_line_of (reader->json, "text_config") : 1,
               key_names[key][0], is_nested ? " in text_config" : "", others->str,
               reader->class->model_type);
  return false;
}

bool
pod_hf_get_uint (const HfReader *reader, const char *key, uint64_t *out, GError **error)
{
  return !pod_json_has (reader->text, key)
         || pod_json_get_uint (reader->json, reader->text, key, out, error);
}

bool
pod_hf_get_bool (const HfReader *reader, const char *key, bool *out, GError **error)
{
  return !pod_json_has (reader->text, key)
         || pod_json_get_bool (reader->json, reader->text, key, out, error);
}

bool
pod_hf_require (const HfReader *reader, HfKey key, uint64_t *out, GError **error)
{
  const char *name = pod_hf_find (reader, key);

  if (name == NULL)
    return pod_hf_refuse_missing (reader, key, error);
  if (!pod_json_get_uint (reader->json, reader->text, name, out, error))
    return false;
  return *out != 0 || pod_hf_refuse (reader, name, error, "must be at least 1, got 0");
}

/* @out of a key that may be absent: then @fallback, with a note unless that is 0. */
static bool
get_or_default (const HfReader *reader, HfKey key, uint64_t fallback, uint64_t *out, GError **error)
{
  const char *name = pod_hf_find (reader, key);

  if (name != NULL)
    return pod_json_get_uint (reader->json, reader->text, name, out, error);
  *out = fallback;
  if (fallback != 0)
    pod_model_note (reader->model, "%s absent: %" G_GUINT64_FORMAT ", the default of %s",
                    key_names[key][0], fallback, reader->class->model_type);
  return true;
}

static bool
read_switch (const HfReader *reader, const HfSwitch *which, bool *out, GError **error)
{
  *out = which->by_default;
  if (which->key == NULL)
    return true;
  if (pod_json_has (reader->text, which->key))
    return pod_json_get_bool (reader->json, reader->text, which->key, out, error);
  if (which->by_default)
    pod_model_note (reader->model, "%s absent: true, the default of %s", which->key,
                    reader->class->model_type);
  return true;
}

/* Multimodal files may say beside text_config whether it is tied. */
static bool
read_tied (const HfReader *reader, GError **error)
{
  HfReader outer = *reader;

  if (!pod_json_has (reader->text, "tie_word_embeddings"))
    outer.text = reader->outer;
  return read_switch (&outer, &reader->class->is_tied, &reader->model->is_tied, error);
}

/* The code of the class, then its switches. */
static bool
read_class (HfReader *reader, GError **error)
{
  const HfClass *class = reader->class;
  PodModel *model = reader->model;

  g_assert (class != NULL);
  model->architecture = g_strdup (class->model_type);
  model->attention = class->attention;
  model->norm = class->norm;
  model->norms_per_layer = class->norms_per_layer;
  model->is_ffn_gated = class->is_ffn_gated;
  model->is_parallel_block = class->is_parallel_block;
  model->has_learned_positions = class->has_learned_positions;
  model->extra_positions = class->extra_positions;
  model->has_embedding_norm = class->has_embedding_norm;
  return read_tied (reader, error)
         && read_switch (reader, &class->has_attention_bias, &model->has_attention_bias, error)
         && read_switch (reader, &class->has_output_bias, &model->has_output_bias, error)
         && read_switch (reader, &class->has_ffn_bias, &model->has_ffn_bias, error)
         && read_switch (reader, &class->has_qk_norm, &model->has_qk_norm, error);
}

static bool
read_heads (HfReader *reader, GError **error)
{
  const char *name = pod_hf_find (reader, HF_HEAD_DIM);
  PodModel *model = reader->model;
  PodLayerKind *plain = &reader->plain;

  plain->kv_heads = plain->heads;
  if ((pod_hf_find (reader, HF_KV_HEADS) != NULL || !reader->class->is_mha_by_default)
      && !pod_hf_require (reader, HF_KV_HEADS, &plain->kv_heads, error))
    return false;
  if (plain->heads % plain->kv_heads != 0)
    return pod_hf_refuse (reader, pod_hf_find (reader, HF_KV_HEADS), error,
                          "heads %% kv_heads must be 0: %" G_GUINT64_FORMAT
                          " heads and %" G_GUINT64_FORMAT " KV heads",
                          plain->heads, plain->kv_heads);
  model->has_own_head_dim = name != NULL || reader->class->head_dim != 0;
  if (name != NULL)
    {
      if (!pod_hf_require (reader, HF_HEAD_DIM, &plain->head_dim, error))
        return false;
    }
  else if (reader->class->head_dim != 0)
    {
      if (!get_or_default (reader, HF_HEAD_DIM, reader->class->head_dim, &plain->head_dim, error))
        return false;
    }
  else
    {
      if (model->hidden % plain->heads != 0)
        return pod_hf_refuse (reader, key_names[HF_HEADS][0], error,
                              "no head_dim, and hidden %% heads must be 0: %" G_GUINT64_FORMAT
                              " over %" G_GUINT64_FORMAT " heads",
                              model->hidden, plain->heads);
      plain->head_dim = model->hidden / plain->heads;
    }
  plain->v_head_dim = plain->head_dim;
  return true;
}

/* A key that MLA needs, at least @least. */
static bool
require_named (const HfReader *reader, const char *key, uint64_t *out, GError **error)
{
  if (!pod_json_get_uint (reader->json, reader->text, key, out, error))
    return false;
  return *out != 0 || pod_hf_refuse (reader, key, error, "must be at least 1, got 0");
}

/* q_lora_rank: null says that q is direct; absent says it only in DeepSeek's own format. */
static bool
read_mla (HfReader *reader, GError **error)
{
  PodModel *model = reader->model;
  PodLayerKind *plain = &reader->plain;

  if (reader->class != pod_hf_class_deepseek_native ()
      && !json_object_has_member (reader->text, "q_lora_rank"))
    return pod_hf_refuse (reader, "q_lora_rank", error, "missing (null where q is not compressed)");
  if (!pod_hf_get_uint (reader, "q_lora_rank", &model->q_lora, error)
      || !require_named (reader, "kv_lora_rank", &model->kv_lora, error)
      || !require_named (reader, "qk_nope_head_dim", &model->qk_nope, error)
      || !require_named (reader, "qk_rope_head_dim", &model->qk_rope, error)
      || !require_named (reader, "v_head_dim", &model->v_head, error))
    return false;
  model->has_own_head_dim = true;
  plain->kv_heads = plain->heads;
  plain->head_dim = model->qk_nope + model->qk_rope;
  plain->v_head_dim = model->v_head;
  return true;
}

/* The widths of dense layers and experts; a class without dense layers has no dense width. */
static bool
read_widths (HfReader *reader, GError **error)
{
  const HfClass *class = reader->class;
  PodModel *model = reader->model;
  uint64_t ffn = 0;

  model->has_own_ffn = pod_hf_find (reader, HF_FFN) != NULL;
  if (model->has_own_ffn || class->ffn_per_hidden == 0)
    {
      if (!pod_hf_require (reader, HF_FFN, &ffn, error))
        return false;
    }
  else if (!g_uint64_checked_mul (&ffn, class->ffn_per_hidden, model->hidden))
    return pod_hf_refuse (reader, key_names[HF_HIDDEN][0], error, "too large");
  reader->dense_ffn = ffn;
  if (model->n_experts == 0)
    return true;

  model->moe_ffn = ffn;
  if (!class->is_ffn_expert_width
      && (pod_hf_find (reader, HF_MOE_FFN) != NULL || !class->is_moe_optional)
      && !pod_hf_require (reader, HF_MOE_FFN, &model->moe_ffn, error))
    return false;
  if (class->is_ffn_expert_width)
    reader->dense_ffn = 0;
  return class->dense_width_key == NULL
         || pod_hf_get_uint (reader, class->dense_width_key, &reader->dense_ffn, error);
}

/* A dense class with a number of experts is not what the file means. */
static bool
check_dense (const HfReader *reader, GError **error)
{
  const char *name = pod_hf_find (reader, HF_EXPERTS);
  uint64_t n_experts = 0;

  if (name != NULL && !pod_json_get_uint (reader->json, reader->text, name, &n_experts, error))
    return false;
  return n_experts <= 1
         || pod_hf_refuse (reader, name, error,
                           "%" G_GUINT64_FORMAT " experts, but model_type %s is dense", n_experts,
                           reader->class->model_type);
}

static bool
read_shared_experts (HfReader *reader, GError **error)
{
  const HfClass *class = reader->class;
  PodModel *model = reader->model;

  /* null says none, absent says nothing */
  if (class->needs_shared_experts && pod_hf_find (reader, HF_SHARED_EXPERTS) == NULL
      && !json_object_has_member (reader->text, key_names[HF_SHARED_EXPERTS][0]))
    return pod_hf_refuse_missing (reader, HF_SHARED_EXPERTS, error);
  model->n_shared_experts = class->shared_experts;
  if (pod_hf_find (reader, HF_SHARED_EXPERTS) != NULL
      && !get_or_default (reader, HF_SHARED_EXPERTS, 0, &model->n_shared_experts, error))
    return false;
  return g_uint64_checked_mul (&model->shared_ffn, model->n_shared_experts, model->moe_ffn)
         || pod_hf_refuse (reader, key_names[HF_SHARED_EXPERTS][0], error, "too many");
}

static bool
read_experts (HfReader *reader, GError **error)
{
  const HfClass *class = reader->class;
  PodModel *model = reader->model;
  bool is_enabled = true;

  if (class->moe == HF_MOE_BESIDE)
    {
      is_enabled = false;
      if (!pod_hf_get_bool (reader, "enable_moe_block", &is_enabled, error))
        return false;
    }
  if (class->moe == HF_MOE_NONE)
    return check_dense (reader, error) && read_widths (reader, error);
  if (is_enabled && (pod_hf_find (reader, HF_EXPERTS) != NULL || !class->is_moe_optional))
    {
      if (!pod_hf_require (reader, HF_EXPERTS, &model->n_experts, error)
          || !pod_hf_require (reader, HF_TOP_K, &model->top_k, error))
        return false;
      if (model->top_k > model->n_experts)
        return pod_hf_refuse (reader, pod_hf_find (reader, HF_TOP_K), error,
                              "must be 1 to the number of experts, %" G_GUINT64_FORMAT
                              ", got %" G_GUINT64_FORMAT,
                              model->n_experts, model->top_k);
    }
  if (!read_widths (reader, error))
    return false;
  if (model->n_experts == 0)
    return true;
  model->has_router_bias = class->has_router_bias;
  model->has_expert_bias = class->has_expert_bias;
  return get_or_default (reader, HF_MTP_LAYERS, 0, &model->n_mtp_layers, error)
         && get_or_default (reader, HF_EXPERT_GROUPS, 0, &model->n_expert_groups, error)
         && get_or_default (reader, HF_TOP_GROUPS, 0, &model->top_groups, error)
         && read_shared_experts (reader, error);
}

static bool
contains_ignoring_case (const char *text, const char *word)
{
  g_autofree char *lower = g_ascii_strdown (text, -1);

  return strstr (lower, word) != NULL;
}

/* A key about experts that nothing here reads, unless it says null, false or 0. */
static void
note_unknown_keys (const HfReader *reader)
{
  g_autoptr (GList) keys = json_object_get_members (reader->text);

  for (const GList *l = keys; l != NULL; l = l->next)
    {
      const char *key = l->data;
      JsonNode *node = json_object_get_member (reader->text, key);

      if ((!contains_ignoring_case (key, "expert") && !contains_ignoring_case (key, "moe"))
          || is_known_expert_key (key) || JSON_NODE_HOLDS_NULL (node))
        continue;
      if (JSON_NODE_HOLDS_VALUE (node)
          && ((json_node_get_value_type (node) == JSON_VALUE_BOOLEAN && !json_node_get_boolean (node))
              || (json_node_get_value_type (node) == JSON_VALUE_INT
                  && json_node_get_int (node) == 0)))
        continue;
      pod_model_note (reader->model, "%s:%u: unknown key %s is not used", reader->json->file,
                      pod_json_line_of (reader->json, key), key);
    }
}

/* Which object is the language model, and which class reads it. */
static bool
choose_class (HfReader *reader, GError **error)
{
  const char *model_type = NULL;

  if (pod_json_has (reader->outer, "text_config"))
    {
      JsonNode *node = json_object_get_member (reader->outer, "text_config");

      if (!JSON_NODE_HOLDS_OBJECT (node))
        return pod_hf_refuse (reader, "text_config", error, "expected an object");
      reader->text = json_node_get_object (node);
      pod_model_note (reader->model,
                      "read from text_config, other parts of the model are left out");
    }
  if (pod_json_has (reader->text, "model_type"))
    {
      if (!pod_json_get_string (reader->json, reader->text, "model_type", &model_type, error))
        return false;
      reader->class = pod_hf_class_find (model_type);
      if (reader->class == NULL)
        {
          g_autofree char *names = pod_hf_class_names ();

          g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                       "%s:%u: model_type: unknown architecture \"%s\", known are %s",
                       reader->json->file, pod_json_line_of (reader->json, "model_type"),
                       model_type, names);
          return false;
        }
      return true;
    }
  /* text_config without a type: the outer one counts when it is one of ours (llama4 → llama4_text)
   */
  if (reader->text != reader->outer && pod_json_has (reader->outer, "model_type"))
    {
      if (!pod_json_get_string (reader->json, reader->outer, "model_type", &model_type, error))
        return false;
      reader->class = pod_hf_class_find (model_type);
      if (reader->class != NULL)
        return true;
    }
  if (pod_json_has (reader->text, "dim") && pod_json_has (reader->text, "inter_dim"))
    {
      reader->class = pod_hf_class_deepseek_native ();
      pod_model_note (reader->model, "read as DeepSeek's own format (dim, inter_dim)");
      return true;
    }
  reader->class = pod_hf_class_generic ();
  pod_model_note (reader->model,
                  "no model_type: read with the defaults of llama (gated FFN, RMS norms)");
  return true;
}

static bool
read_model (HfReader *reader, GError **error)
{
  PodModel *model = reader->model;

  if (!choose_class (reader, error) || !read_class (reader, error)
      || !pod_hf_require (reader, HF_LAYERS, &model->n_layers, error)
      || !pod_hf_require (reader, HF_HIDDEN, &model->hidden, error)
      || !pod_hf_require (reader, HF_HEADS, &reader->plain.heads, error))
    return false;
  if (reader->class->vocab != 0
          ? !get_or_default (reader, HF_VOCAB, reader->class->vocab, &model->vocab, error)
          : !pod_hf_require (reader, HF_VOCAB, &model->vocab, error))
    return false;
  if (model->has_learned_positions
          ? !pod_hf_require (reader, HF_POSITIONS, &model->max_positions, error)
          : !get_or_default (reader, HF_POSITIONS, 0, &model->max_positions, error))
    return false;
  if (reader->class->attention == POD_ATTENTION_MLA ? !read_mla (reader, error)
                                                    : !read_heads (reader, error))
    return false;
  reader->full = reader->plain;
  if (!read_experts (reader, error))
    return false;
  if (reader->class->finish != NULL && !reader->class->finish (reader, error))
    return false;
  note_unknown_keys (reader);
  return pod_hf_read_layers (reader, error);
}

/* Reads a config.json as Hugging Face publishes it. O(file + layers) */
PodModel *
pod_hf_config_load (const char *name, const char *file, GError **error)
{
  g_autoptr (PodJson) json = pod_json_load (file, error);
  g_autoptr (PodModel) model = NULL;
  HfReader reader = { 0 };

  if (json == NULL)
    return NULL;
  if (json->root == NULL || !JSON_NODE_HOLDS_OBJECT (json->root))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "%s:1: expected a JSON object, as in a Hugging Face config.json", file);
      return NULL;
    }
  model = pod_model_new (name, file);
  reader.json = json;
  reader.outer = json_node_get_object (json->root);
  reader.text = reader.outer;
  reader.model = model;
  return read_model (&reader, error) ? g_steal_pointer (&model) : NULL;
}
