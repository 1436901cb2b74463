#include "model/model.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <glib/gstdio.h>

#include "base/error.h"

/* A config.json of its own for each text. */
typedef struct
{
  char *folder;
  char *file;
} TempFile;

static void
temp_file_clear (TempFile *temp)
{
  if (temp->file != NULL)
    g_unlink (temp->file);
  if (temp->folder != NULL)
    g_rmdir (temp->folder);
  g_free (temp->file);
  g_free (temp->folder);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TempFile, temp_file_clear)

static PodModel *
load_text (const char *text, char **out_message, GError **error)
{
  g_auto (TempFile) temp = { 0 };
  PodModel *model;

  temp.folder = g_dir_make_tmp ("podsim-XXXXXX", NULL);
  ck_assert (temp.folder != NULL);
  temp.file = g_build_filename (temp.folder, "config.json", NULL);
  ck_assert (g_file_set_contents (temp.file, text, -1, NULL));
  model = pod_model_load (temp.file, error);
  if (out_message != NULL && *error != NULL)
    {
      ck_assert_msg (g_str_has_prefix ((*error)->message, temp.file), "%s", (*error)->message);
      *out_message = g_strdup ((*error)->message + strlen (temp.file));
    }
  return model;
}

static PodModel *
load_good (const char *text)
{
  g_autoptr (GError) error = NULL;
  PodModel *model = load_text (text, NULL, &error);

  ck_assert_msg (model != NULL, "%s", error != NULL ? error->message : text);
  return model;
}

static PodModel *
load (const char *name)
{
  g_autoptr (GError) error = NULL;
  PodModel *model = pod_model_load (name, &error);

  ck_assert_msg (model != NULL, "%s", error != NULL ? error->message : name);
  return model;
}

static bool
has_note (const PodModel *model, const char *part)
{
  for (guint i = 0; i < model->notes->len; i++)
    if (strstr (g_ptr_array_index (model->notes, i), part) != NULL)
      return true;
  return false;
}

static const PodLayerKind *
layer (const PodModel *model, uint64_t index)
{
  return &model->kinds[model->layer_kind[index]];
}

static uint64_t
total (const PodModel *model)
{
  PodParams params;

  pod_model_params (model, &params);
  return params.total;
}

#define DATA POD_SOURCE_DIR "/tests/data/models/"

/* P01: no num_key_value_heads: as many as heads */
START_TEST (absent_kv_heads_are_heads)
{
  g_autoptr (PodModel) model = load (DATA "generic-llama.json");

  ck_assert_uint_eq (layer (model, 0)->kv_heads, 32);
  ck_assert_uint_eq (layer (model, 0)->head_dim, 128);
  ck_assert_uint_eq (total (model), 6738415616);
  ck_assert (has_note (model, "no model_type: read with the defaults of llama"));
  ck_assert_uint_eq (model->max_positions, 0);
}
END_TEST

#define SMALL(more) "{\"num_hidden_layers\":2,\"intermediate_size\":64,\"vocab_size\":10," more "}"

/* P02: null is absent; a size of its own makes q rectangular */
START_TEST (head_dim_is_null_or_its_own)
{
  g_autoptr (PodModel) null
      = load_good (SMALL ("\"hidden_size\":4096,\"num_attention_heads\":32,\"head_dim\":null"));
  g_autoptr (PodModel) own
      = load_good (SMALL ("\"hidden_size\":1024,\"num_attention_heads\":16,\"head_dim\":128"));
  PodParams params;

  ck_assert_uint_eq (layer (null, 0)->head_dim, 128);
  ck_assert (!null->has_own_head_dim);
  ck_assert_uint_eq (layer (own, 0)->head_dim, 128);
  ck_assert (own->has_own_head_dim);
  pod_model_params (own, &params);
  ck_assert_uint_eq (params.attention, 2 * 4 * 1024 * 2048); /* each matrix 2,097,152 */
}
END_TEST

/* P03 */
START_TEST (nested_text_config_is_read)
{
  g_autoptr (PodModel) model = load (DATA "nested.json");

  ck_assert_uint_eq (model->n_layers, 4);
  ck_assert_uint_eq (model->hidden, 2048);
  ck_assert_uint_eq (model->vocab, 1000);
  ck_assert (has_note (model, "read from text_config"));
}
END_TEST

/* P04 */
START_TEST (unknown_expert_key_is_said)
{
  g_autoptr (PodModel) model = load (DATA "generic-moe.json");

  ck_assert_uint_eq (model->n_experts, 8);
  ck_assert_uint_eq (model->top_k, 2);
  ck_assert_uint_eq (model->moe_ffn, 1024);
  ck_assert (
      has_note (model, "generic-moe.json:5: unknown key moe_router_temperature is not used"));
}
END_TEST

START_TEST (deepseek_native_is_the_same_model)
{
  g_autoptr (PodModel) native = load (DATA "deepseek-v3-native.json");
  g_autoptr (PodModel) published = load ("deepseek-v3");
  PodTokenFlops a;
  PodTokenFlops b;

  ck_assert_uint_eq (total (native), total (published));
  pod_model_token_flops (native, 4096, &a);
  pod_model_token_flops (published, 4096, &b);
  ck_assert (memcmp (&a, &b, sizeof a) == 0);
  ck_assert_uint_eq (published->n_mtp_layers, 1);
}
END_TEST

/* Which layers have what; the string repeats: d dense, m MoE, b both, upper case with a window. */
static const struct
{
  const char *name;
  const char *start;
  const char *period;
  uint64_t window;
} layouts[] = {
  { "llama3-70b", "", "d", 0 },
  { "mistral-7b", "", "D", 4096 },
  { "mixtral-8x7b", "", "m", 0 },
  { "phi3-mini", "", "D", 2047 },
  { "gemma2-27b", "", "Dd", 4096 },
  { "gemma3-27b", "", "DDDDDd", 1024 },
  { "qwen2.5-7b", "", "d", 0 },
  { "qwen3-235b", "", "m", 0 },
  { "gpt-oss-20b", "", "Mm", 128 },
  { "llama4-scout", "", "MMMm", 8192 },
  { "llama4-maverick", "", "DMDm", 8192 },
  { "deepseek-v3", "ddd", "m", 0 },
  { "deepseek-v2", "d", "m", 0 },
  { "kimi-k2", "d", "m", 0 },
  { "glm4.5", "ddd", "m", 0 },
  { "glm4.5-air", "d", "m", 0 },
  { "minimax-m2.5", "", "m", 0 },
  { "glm-5", "DDD", "M", 2048 },
  { "grok-1", "", "m", 0 },
  { "gemma4-26b-a4b", "", "BBBBBb", 1024 },
};

START_TEST (layers_are_of_their_kind)
{
  g_autoptr (PodModel) model = load (layouts[_i].name);
  size_t n_start = strlen (layouts[_i].start);

  for (uint64_t i = 0; i < model->n_layers; i++)
    {
      const PodLayerKind *kind = layer (model, i);
      char expected = i < n_start ? layouts[_i].start[i]
                                  : layouts[_i].period[(i - n_start) % strlen (layouts[_i].period)];
      char is = kind->is_moe ? (kind->ffn != 0 ? 'b' : 'm') : 'd';

      ck_assert_int_eq (kind->window != 0 ? g_ascii_toupper (is) : is, expected);
      ck_assert (kind->window == 0 || kind->window == layouts[_i].window);
    }
}
END_TEST

START_TEST (gemma4_global_layers_have_their_heads)
{
  g_autoptr (PodModel) model = load ("gemma4-26b-a4b");

  ck_assert_uint_eq (layer (model, 4)->kv_heads, 8);
  ck_assert_uint_eq (layer (model, 4)->head_dim, 256);
  ck_assert_uint_eq (layer (model, 5)->kv_heads, 2);
  ck_assert_uint_eq (layer (model, 5)->head_dim, 512);
  ck_assert (layer (model, 5)->is_v_from_k && !layer (model, 4)->is_v_from_k);
}
END_TEST

#define LLAMA(more)                                                                                \
  "{\"model_type\":\"llama\",\"hidden_size\":8,\"num_hidden_layers\":2,\"num_attention_heads\":2," \
  "\n"                                                                                             \
  "\"intermediate_size\":16,\"vocab_size\":10" more "}"
#define MISTRAL(more)                                                                              \
  "{\"model_type\":\"mistral\",\"hidden_size\":8,\"num_hidden_layers\":3,\"num_attention_heads\":" \
  "2,\n"                                                                                           \
  "\"num_key_value_heads\":1,\"intermediate_size\":16,\"vocab_size\":10" more "}"
#define QWEN2(more)                                                                                \
  "{\"model_type\":\"qwen2\",\"hidden_size\":8,\"num_hidden_layers\":3,\"num_attention_heads\":2," \
  "\n"                                                                                             \
  "\"num_key_value_heads\":1,\"intermediate_size\":16,\"vocab_size\":10" more "}"
#define QWEN3_MOE(more)                                                                            \
  "{\"model_type\":\"qwen3_moe\",\"hidden_size\":8,\"num_hidden_layers\":4,\"num_attention_"       \
  "heads\":2,\n"                                                                                   \
  "\"num_key_value_heads\":1,\"intermediate_size\":16,\"vocab_size\":10,\"num_experts\":4,\n"      \
  "\"num_experts_per_tok\":2,\"moe_intermediate_size\":6" more "}"
#define DEEPSEEK(more)                                                                             \
  "{\"model_type\":\"deepseek_v2\",\"hidden_size\":8,\"num_hidden_layers\":5,\"num_attention_"     \
  "heads\":2,\n"                                                                                   \
  "\"num_key_value_heads\":2,\"intermediate_size\":16,\"vocab_size\":10,\"n_routed_experts\":4,\n" \
  "\"num_experts_per_tok\":2,\"moe_intermediate_size\":6,\"n_shared_experts\":1,\"kv_lora_rank\":" \
  "3,\n"                                                                                           \
  "\"qk_nope_head_dim\":4,\"qk_rope_head_dim\":2,\"v_head_dim\":5" more "}"
#define FALCON(more)                                                                               \
  "{\"model_type\":\"falcon\",\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":"  \
  "4,\n"                                                                                           \
  "\"vocab_size\":10" more "}"

/* Counts by hand. llama: table 80, head 80, a layer 4·64 + 3·128 + 16, last norm 8. */
static const struct
{
  const char *text;
  uint64_t total;
  const char *note; /* (nullable) */
} variants[] = {
  { LLAMA (""), 160 + 2 * (256 + 384 + 16) + 8, NULL },
  { LLAMA (",\"tie_word_embeddings\":true"), 80 + 2 * (256 + 384 + 16) + 8, NULL },
  { LLAMA (",\"attention_bias\":true"), 160 + 2 * (256 + 384 + 16 + 32) + 8, NULL },
  { LLAMA (",\"mlp_bias\":true"), 160 + 2 * (256 + 384 + 16 + 40) + 8, NULL },
  { LLAMA (",\"num_key_value_heads\":1"), 160 + 2 * (192 + 384 + 16) + 8, NULL },
  { LLAMA (",\"num_local_experts\":1,\"moe\":0,\"expert_x\":null"), 160 + 2 * (256 + 384 + 16) + 8,
    NULL },
  { MISTRAL (""), 160 + 3 * (192 + 384 + 16) + 8,
    "sliding_window absent: 4096, the default of mistral" },
  { MISTRAL (",\"sliding_window\":null"), 160 + 3 * (192 + 384 + 16) + 8, NULL },
  { QWEN2 (""), 160 + 3 * (192 + 384 + 16 + 16) + 8, NULL },
  /* layers 0 and 2 dense: two FFNs of 384, two times 4 experts of 144 and a router of 32; norms of
     q and k 2·64 */
  { QWEN3_MOE (",\"decoder_sparse_step\":2,\"head_dim\":64"),
    160 + 4 * (8 * 64 * 6 + 16 + 128) + 2 * 384 + 2 * (4 * 144 + 32) + 8, NULL },
  { QWEN3_MOE (",\"mlp_only_layers\":[0,1,3],\"head_dim\":64"),
    160 + 4 * (8 * 64 * 6 + 16 + 128) + 3 * 384 + (4 * 144 + 32) + 8, NULL },
  { QWEN3_MOE (",\"head_dim\":4"), 160 + 4 * (8 * 4 * 6 + 16 + 8) + 4 * (4 * 144 + 32) + 8, NULL },
  /* MLA with direct q: 8·12 + 8·5 + 3·2·9 + 10·8 + norm 3 = 273; shared expert 144; two MoE layers:
     2 and 4 */
  { DEEPSEEK (",\"q_lora_rank\":null,\"first_k_dense_replace\":1,\"moe_layer_freq\":2"),
    160 + 5 * (273 + 16) + 3 * 384 + 2 * (5 * 144 + 32) + 8, NULL },
  /* q through 7: 8·7 + 7·12 for 8·12, norm 7 */
  { DEEPSEEK (",\"q_lora_rank\":7,\"first_k_dense_replace\":5"),
    160 + 5 * (273 + 44 + 7 + 16) + 5 * 384 + 8, NULL },
  /* tied, multi-query: 8·8·2 + 2·8·2, FFN 2·8·32; one norm of 16 in the parallel block, last norm
     16 */
  { FALCON (""), 80 + 160 + 512 + 16 + 16, "tie_word_embeddings absent: true" },
  { FALCON (",\"multi_query\":false"), 80 + 256 + 512 + 16 + 16, NULL },
  { FALCON (",\"parallel_attn\":false"), 80 + 160 + 512 + 32 + 16, NULL },
  { FALCON (",\"new_decoder_architecture\":true,\"num_kv_heads\":2"), 80 + 192 + 512 + 32 + 16,
    NULL },
  { FALCON (",\"ffn_hidden_size\":5,\"bias\":true"), 80 + 160 + 80 + 16 + 16 + 8 + 4 + 8 + 5 + 8,
    NULL },
  /* opt: tied, 2 more positions, all biases */
  { "{\"model_type\":\"opt\",\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
    "\"ffn_dim\":16,"
    "\"vocab_size\":10,\"max_position_embeddings\":6}",
    80 + 64 + 256 + 32 + 256 + 24 + 32 + 16, "enable_bias absent: true" },
  { "{\"model_type\":\"opt\",\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
    "\"ffn_dim\":16,"
    "\"vocab_size\":10,\"max_position_embeddings\":6,\"enable_bias\":false,\"do_layer_norm_"
    "before\":false}",
    80 + 64 + 256 + 256 + 32, NULL },
  /* text_config without a type of its own */
  { "{\"model_type\":\"qwen2\",\"tie_word_embeddings\":true,\"text_config\":{\"hidden_size\":8,"
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"intermediate_"
    "size\":16,"
    "\"vocab_size\":10}}",
    80 + 192 + 384 + 16 + 16 + 8, "read from text_config" },
  /* Qwen2-MoE: a shared expert of 5 behind a gate of 8, biases of q, k, v */
  { "{\"model_type\":\"qwen2_moe\",\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_"
    "heads\":2,"
    "\"num_key_value_heads\":2,\"intermediate_size\":16,\"vocab_size\":10,\"num_experts\":4,"
    "\"num_experts_per_tok\":2,\"moe_intermediate_size\":6,\"shared_expert_intermediate_size\":5}",
    160 + 256 + 24 + 16 + 4 * 144 + 32 + 120 + 8 + 8, NULL },
};

START_TEST (variant_is_counted)
{
  g_autoptr (PodModel) model = load_good (variants[_i].text);

  ck_assert_msg (total (model) == variants[_i].total,
                 "%s: %" G_GUINT64_FORMAT " not %" G_GUINT64_FORMAT, variants[_i].text,
                 total (model), variants[_i].total);
  ck_assert_msg (variants[_i].note == NULL || has_note (model, variants[_i].note), "%s",
                 variants[_i].text);
}
END_TEST

START_TEST (windows_follow_their_keys)
{
  g_autoptr (PodModel) off = load_good (QWEN2 (",\"sliding_window\":5,\"max_window_layers\":1"));
  g_autoptr (PodModel) on = load_good (
      QWEN2 (",\"sliding_window\":5,\"max_window_layers\":1,\"use_sliding_window\":true"));
  g_autoptr (PodModel) listed
      = load_good (MISTRAL (",\"sliding_window\":7,\"layer_types\":[\"full_attention\",\"sliding_"
                            "attention\",\"full_attention\"]"));

  ck_assert_uint_eq (layer (off, 2)->window, 0);
  ck_assert_uint_eq (layer (on, 0)->window, 0);
  ck_assert_uint_eq (layer (on, 1)->window, 5);
  ck_assert_uint_eq (layer (listed, 0)->window, 0);
  ck_assert_uint_eq (layer (listed, 1)->window, 7);
}
END_TEST

/* The message behind the file's name. */
static const struct
{
  const char *text;
  const char *message;
  PodErrorCode code;
} refusals[] = {
  { "[1]", ":1: expected a JSON object, as in a Hugging Face config.json", POD_ERROR_INVALID },
  { "{}", ":1: num_hidden_layers: missing, nor as n_layer, num_layers, n_layers (generic needs it)",
    POD_ERROR_INVALID },
  { "{\n\"model_type\": \"mamba\"}", ":2: model_type: unknown architecture \"mamba\", known are ",
    POD_ERROR_UNSUPPORTED },
  { "{\n\"model_type\": 3}", ":2: model_type: ", POD_ERROR_INVALID },
  { "{\"model_type\": \"llama4\"}",
    ":1: num_hidden_layers: missing, nor as n_layer, num_layers, n_layers (llama4 needs it)",
    POD_ERROR_INVALID },
  { "{\"model_type\": \"llama4\",\n\"text_config\": {}}",
    ":2: num_hidden_layers: missing in text_config, nor as n_layer, num_layers, n_layers (llama4 "
    "needs it)",
    POD_ERROR_INVALID },
  { "{\n\"text_config\": 7}", ":2: text_config: expected an object", POD_ERROR_INVALID },
  { "{\n\"text_config\": {\"model_type\": \"siglip\"}}",
    ":2: model_type: unknown architecture \"siglip\"", POD_ERROR_UNSUPPORTED },
  { SMALL ("\n\"hidden_size\":0,\"num_attention_heads\":2"),
    ":2: hidden_size: must be at least 1, got 0", POD_ERROR_INVALID },
  { SMALL ("\n\"hidden_size\":-8,\"num_attention_heads\":2"),
    ":2: hidden_size: expected a whole number >= 0, got -8", POD_ERROR_INVALID },
  { SMALL ("\n\"hidden_size\":8.5,\"num_attention_heads\":2"),
    ":2: hidden_size: expected a whole number >= 0, got 8.5", POD_ERROR_INVALID },
  { SMALL ("\n\"hidden_size\":\"8\",\"num_attention_heads\":2"),
    ":2: hidden_size: expected a whole number >= 0, got \"8\"", POD_ERROR_INVALID },
  { SMALL ("\n\"hidden_size\":NaN,\"num_attention_heads\":2"), ":2: ", POD_ERROR_PARSE },
  { SMALL ("\n\"hidden_size\":1e400,\"num_attention_heads\":2"), ":2: ", POD_ERROR_PARSE },
  { SMALL ("\"hidden_size\":8,\n\"num_attention_heads\":3"),
    ":2: num_attention_heads: no head_dim, and hidden % heads must be 0: 8 over 3 heads",
    POD_ERROR_INVALID },
  { SMALL ("\"hidden_size\":8,\"num_attention_heads\":2,\n\"head_dim\":0"),
    ":2: head_dim: must be at least 1, got 0", POD_ERROR_INVALID }, /* P02 */
  { SMALL ("\"hidden_size\":64,\"num_attention_heads\":32,\n\"num_key_value_heads\":5"),
    ":2: num_key_value_heads: heads % kv_heads must be 0: 32 heads and 5 KV heads",
    POD_ERROR_INVALID }, /* L07 */
  { SMALL ("\"hidden_size\":64,\"num_attention_heads\":32,\n\"num_key_value_heads\":0"),
    ":2: num_key_value_heads: must be at least 1, got 0", POD_ERROR_INVALID }, /* L07 */
  { SMALL ("\"hidden_size\":8,\"num_attention_heads\":2,\"num_experts\":4"),
    ":1: num_experts_per_tok: missing, nor as experts_per_token, top_k_experts, "
    "n_activated_experts (generic needs it)",
    POD_ERROR_INVALID },
  { SMALL (
        "\"hidden_size\":8,\"num_attention_heads\":2,\"num_experts\":4,\"num_experts_per_tok\":5"),
    ":1: num_experts_per_tok: must be 1 to the number of experts, 4, got 5", POD_ERROR_INVALID },
  { SMALL ("\"hidden_size\":8,\"num_attention_heads\":2,\"num_experts\":4,\n\"num_experts_per_"
           "tok\":0"),
    ":2: num_experts_per_tok: must be at least 1, got 0", POD_ERROR_INVALID },
  { LLAMA (",\n\"num_local_experts\":8"),
    ":3: num_local_experts: 8 experts, but model_type llama is dense", POD_ERROR_INVALID },
  { LLAMA (",\n\"tie_word_embeddings\":1"), ":3: tie_word_embeddings: ", POD_ERROR_INVALID },
  { "{\"model_type\":\"mistral\",\"hidden_size\":8,\"num_hidden_layers\":3,\"num_attention_heads\":"
    "2,"
    "\"intermediate_size\":16,\"vocab_size\":10}",
    ":1: num_key_value_heads: missing, nor as num_kv_heads, n_head_kv (mistral needs it)",
    POD_ERROR_INVALID },
  { MISTRAL (",\n\"layer_types\":[\"full_attention\"]"), ":3: layer_types: 1 entries for 3 layers",
    POD_ERROR_INVALID },
  { MISTRAL (",\n\"layer_types\":[\"full_attention\",\"linear_attention\",\"full_attention\"]"),
    ":3: layer_types: element 1: expected full_attention, sliding_attention or chunked_attention, "
    "got "
    "linear_attention",
    POD_ERROR_INVALID },
  { MISTRAL (",\n\"layer_types\":[1,2,3]"), ":3: layer_types: element 0: expected ",
    POD_ERROR_INVALID },
  { MISTRAL (",\n\"layer_types\":3"), ":3: layer_types: expected a list", POD_ERROR_INVALID },
  { QWEN2 (",\n\"use_sliding_window\":true"),
    ":1: max_window_layers: missing, use_sliding_window needs it", POD_ERROR_INVALID },
  { QWEN3_MOE (",\n\"mlp_only_layers\":[4]"),
    ":4: mlp_only_layers: element 0: expected a whole number below 4", POD_ERROR_INVALID },
  { QWEN3_MOE (",\n\"decoder_sparse_step\":0"),
    ":4: decoder_sparse_step: must be at least 1, got 0", POD_ERROR_INVALID },
  { DEEPSEEK (",\"first_k_dense_replace\":1"),
    ":1: q_lora_rank: missing (null where q is not compressed)", POD_ERROR_INVALID },
  { DEEPSEEK (",\"q_lora_rank\":null"),
    ":1: first_k_dense_replace: missing, nor as n_dense_layers (deepseek_v2 needs it)",
    POD_ERROR_INVALID },
  { DEEPSEEK (",\"q_lora_rank\":null,\"first_k_dense_replace\":1,\n\"moe_layer_freq\":0"),
    ":5: moe_layer_freq: must be at least 1, got 0", POD_ERROR_INVALID },
  { "{\"model_type\":\"deepseek_v3\",\"hidden_size\":8,\"num_hidden_layers\":5,\"num_attention_"
    "heads\":2,"
    "\"vocab_size\":10,\"q_lora_rank\":null}",
    ":1: kv_lora_rank: missing, expected a whole number >= 0", POD_ERROR_INVALID },
  { "{\"model_type\":\"gpt2\",\"n_embd\":8,\"n_layer\":1,\"n_head\":2,\"vocab_size\":10}",
    ":1: max_position_embeddings: missing, nor as n_positions, seq_length (gpt2 needs it)",
    POD_ERROR_INVALID },
  { "{\"model_type\":\"opt\",\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
    "\"ffn_dim\":16,"
    "\"vocab_size\":10,\"max_position_embeddings\":6,\n\"word_embed_proj_dim\":4}",
    ":2: word_embed_proj_dim: not modelled for opt with this value", POD_ERROR_UNSUPPORTED },
  { FALCON (",\n\"num_ln_in_parallel_attn\":3"),
    ":3: num_ln_in_parallel_attn: expected 1 or 2, got 3", POD_ERROR_INVALID },
  { "{\"model_type\":\"gemma4_text\",\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_"
    "heads\":2,"
    "\"num_key_value_heads\":2,\"intermediate_size\":16,\"vocab_size\":10,\n\"num_kv_shared_"
    "layers\":3}",
    ":2: num_kv_shared_layers: not modelled for gemma4 with this value", POD_ERROR_UNSUPPORTED },
  { "{\"num_hidden_layers\":10001,\"hidden_size\":8,\"num_attention_heads\":2,\"intermediate_"
    "size\":8,\"vocab_size\":1}",
    ":1: num_hidden_layers: must be 1 to 10000, got 10001", POD_ERROR_INVALID },
  { "{\"num_hidden_layers\":1,\"hidden_size\":4611686018427387904,\"num_attention_heads\":2,"
    "\"intermediate_size\":"
    "4611686018427387904,\"vocab_size\":4611686018427387904}",
    ": about 1.9e+38 parameters, the limit is 1e18", POD_ERROR_LIMIT },
};

START_TEST (bad_config_is_refused)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *message = NULL;
  g_autoptr (PodModel) model = load_text (refusals[_i].text, &message, &error);

  ck_assert_msg (model == NULL, "read: %s", refusals[_i].text);
  ck_assert_msg (g_str_has_prefix (message, refusals[_i].message), "\"%s\"\nnot \"%s\"", message,
                 refusals[_i].message);
  ck_assert_int_eq (error->code, (int) refusals[_i].code);
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("hf-config");
  TCase *tcase = tcase_create ("hf-config");

  tcase_add_test (tcase, absent_kv_heads_are_heads);
  tcase_add_test (tcase, head_dim_is_null_or_its_own);
  tcase_add_test (tcase, nested_text_config_is_read);
  tcase_add_test (tcase, unknown_expert_key_is_said);
  tcase_add_test (tcase, deepseek_native_is_the_same_model);
  tcase_add_loop_test (tcase, layers_are_of_their_kind, 0, G_N_ELEMENTS (layouts));
  tcase_add_test (tcase, gemma4_global_layers_have_their_heads);
  tcase_add_loop_test (tcase, variant_is_counted, 0, G_N_ELEMENTS (variants));
  tcase_add_test (tcase, windows_follow_their_keys);
  tcase_add_loop_test (tcase, bad_config_is_refused, 0, G_N_ELEMENTS (refusals));
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
