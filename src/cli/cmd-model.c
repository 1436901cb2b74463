#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/table.h"
#include "base/units.h"
#include "cli/cli.h"

/* podsim model: what a model's config says in parameters, FLOPs and bytes; no hardware. */

enum
{
  DEFAULT_SEQ_LEN = 4096, /* as podsim run takes when none is given */
};

/* Bytes of a parameter in a checkpoint: bf16 weights; with Adam also the fp32 master and both fp32 moments. */
static const double weight_bytes = 2;
static const double optimizer_bytes = 4 + 4 + 4;

/* A part of the parameters. */
typedef struct
{
  const char *key;
  const char *title;
  size_t offset; /* in PodParams */
} Part;

static const Part parts[] = {
  { "embedding", "embedding", offsetof (PodParams, embedding) },
  { "positions", "positions", offsetof (PodParams, positions) },
  { "head", "output head", offsetof (PodParams, head) },
  { "attention", "attention", offsetof (PodParams, attention) },
  { "ffn", "FFN", offsetof (PodParams, ffn) },
  { "experts", "routed experts", offsetof (PodParams, experts) },
  { "shared_experts", "shared experts", offsetof (PodParams, shared_experts) },
  { "router", "router", offsetof (PodParams, router) },
  { "norms", "norms", offsetof (PodParams, norms) },
};

/* FLOPs of a token, forward and backward. */
typedef struct
{
  const char *key;
  const char *title;
  size_t offset; /* in PodTokenFlops */
} FlopTerm;

static const FlopTerm flop_terms[] = {
  { "linear", "matmuls with weights, logits included", offsetof (PodTokenFlops, linear) },
  { "attention", "attention, every pair of tokens", offsetof (PodTokenFlops, attention_full) },
  { "attention_causal", "attention, causal and within windows", offsetof (PodTokenFlops, attention_causal) },
};

static const FlopTerm flop_conventions[] = {
  { "6nd", "6 x parameters in use, input embedding too", offsetof (PodTokenFlops, sixnd) },
  { "palm", "6 x those without it + attention in full", offsetof (PodTokenFlops, palm) },
  { "megatron", "matmuls + attention in full", offsetof (PodTokenFlops, megatron) },
  { "causal", "matmuls + half of that attention", offsetof (PodTokenFlops, causal) },
};

/* What is told of one model. */
typedef struct
{
  PodModel *model;
  GPtrArray *assumptions; /* (element-type utf8) */
  uint64_t seq_len;
  PodParams params;
  PodTokenFlops flops;
  double kv_bytes_per_token; /* bf16 */
} Facts;

static void
facts_clear (Facts *facts)
{
  pod_model_free (facts->model);
  g_ptr_array_unref (facts->assumptions);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Facts, facts_clear)

static uint64_t
part_of (const Facts *facts, const Part *part)
{
  return *(const uint64_t *) ((const char *) &facts->params + part->offset);
}

static double
flops_of (const Facts *facts, const FlopTerm *term)
{
  return *(const double *) ((const char *) &facts->flops + term->offset);
}

static const char *
attention_name (const PodModel *model)
{
  switch (model->attention)
    {
    case POD_ATTENTION_NONE:
      return "none";
    case POD_ATTENTION_GQA:
      return "gqa";
    case POD_ATTENTION_MLA:
      return "mla";
    }
  g_assert_not_reached ();
}

static uint64_t
count_layers (const PodModel *model, unsigned kind)
{
  uint64_t n = 0;

  for (uint64_t i = 0; i < model->n_layers; i++)
    n += model->layer_kind[i] == kind;
  return n;
}

/* ---- text ---- */

/* "70,553,706,496". Returns: (transfer full) */
static char *
format_whole (uint64_t value)
{
  g_autofree char *digits = g_strdup_printf ("%" G_GUINT64_FORMAT, value);
  size_t length = strlen (digits);
  GString *out = g_string_new (NULL);

  for (size_t i = 0; i < length; i++)
    {
      if (i > 0 && (length - i) % 3 == 0)
        g_string_append_c (out, ',');
      g_string_append_c (out, digits[i]);
    }
  return g_string_free (out, FALSE);
}

static void
add_params_row (PodTable *table, const Facts *facts, const char *title, uint64_t value)
{
  g_autofree char *digits = format_whole (value);
  g_autofree char *rounded = pod_format_count ((double) value);
  g_autofree char *share = g_strdup_printf ("%.1f %%", (double) value / (double) MAX (facts->params.total, 1) * 100);
  const char *const cells[] = { title, digits, rounded, share };

  pod_table_add_row (table, cells);
}

static void
print_params (const Facts *facts)
{
  static const char *const columns[] = { "parameters", ">number", ">", ">share", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;

  for (size_t i = 0; i < G_N_ELEMENTS (parts); i++)
    if (part_of (facts, &parts[i]) > 0)
      add_params_row (table, facts, parts[i].title, part_of (facts, &parts[i]));
  add_params_row (table, facts, "total", facts->params.total);
  add_params_row (table, facts, "active", facts->params.active);
  add_params_row (table, facts, "active with embedding", facts->params.active_with_embedding);
  text = pod_table_to_text (table);
  fputs (text, stdout);
}

/* "32 heads of 128, 8 KV heads". Returns: (transfer full) */
static char *
describe_attention (const PodModel *model, const PodLayerKind *kind)
{
  switch (model->attention)
    {
    case POD_ATTENTION_NONE:
      return g_strdup ("none");
    case POD_ATTENTION_GQA:
      return g_strdup_printf ("%" G_GUINT64_FORMAT " heads of %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT " KV", kind->heads, kind->head_dim, kind->kv_heads);
    case POD_ATTENTION_MLA:
      return g_strdup_printf ("%" G_GUINT64_FORMAT " heads, MLA %" G_GUINT64_FORMAT " + %" G_GUINT64_FORMAT, kind->heads, model->kv_lora, model->qk_rope);
    }
  g_assert_not_reached ();
}

/* Returns: (transfer full) */
static char *
describe_window (const PodLayerKind *kind)
{
  if (kind->window == 0)
    return g_strdup ("full");
  return g_strdup_printf ("%s %" G_GUINT64_FORMAT, kind->is_chunked ? "chunk" : kind->is_sparse ? "picks" : "window", kind->window);
}

/* Returns: (transfer full) */
static char *
describe_ffn (const PodModel *model, const PodLayerKind *kind)
{
  GString *out = g_string_new (NULL);

  if (kind->ffn > 0)
    g_string_append_printf (out, "%" G_GUINT64_FORMAT, kind->ffn);
  if (kind->is_moe)
    g_string_append_printf (out, "%s%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " experts of %" G_GUINT64_FORMAT, kind->ffn > 0 ? " + " : "", model->top_k,
                            model->n_experts, model->moe_ffn);
  if (kind->is_moe && model->shared_ffn > 0)
    g_string_append_printf (out, " + shared %" G_GUINT64_FORMAT, model->shared_ffn);
  return g_string_free (out, FALSE);
}

static void
print_kinds (const Facts *facts)
{
  static const char *const columns[] = { ">layers", "attention", "span", "FFN", ">parameters of one", ">active", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;

  for (unsigned kind = 0; kind < facts->model->n_kinds; kind++)
    {
      const PodLayerKind *layer = &facts->model->kinds[kind];
      uint64_t active = 0;
      uint64_t all = pod_model_layer_params (facts->model, kind, &active);
      g_autofree char *count = g_strdup_printf ("%" G_GUINT64_FORMAT, count_layers (facts->model, kind));
      g_autofree char *attention = describe_attention (facts->model, layer);
      g_autofree char *window = describe_window (layer);
      g_autofree char *ffn = describe_ffn (facts->model, layer);
      g_autofree char *all_text = format_whole (all);
      g_autofree char *active_text = format_whole (active);
      const char *const cells[] = { count, attention, window, ffn, all_text, active_text };

      pod_table_add_row (table, cells);
    }
  text = pod_table_to_text (table);
  fputs (text, stdout);
}

static void
add_flop_rows (PodTable *table, const Facts *facts, const FlopTerm *terms, size_t n_terms)
{
  for (size_t i = 0; i < n_terms; i++)
    {
      g_autofree char *value = pod_format_flops (flops_of (facts, &terms[i]));
      const char *const cells[] = { terms[i].key, value, terms[i].title };

      pod_table_add_row (table, cells);
    }
}

static void
print_flops (const Facts *facts)
{
  g_autofree char *title = g_strdup_printf ("FLOPs of a token at sequence length %" G_GUINT64_FORMAT, facts->seq_len);
  const char *const columns[] = { title, ">forward and backward", "what", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;

  add_flop_rows (table, facts, flop_terms, G_N_ELEMENTS (flop_terms));
  add_flop_rows (table, facts, flop_conventions, G_N_ELEMENTS (flop_conventions));
  text = pod_table_to_text (table);
  fputs (text, stdout);
}

static void
print_bytes (const Facts *facts)
{
  double n_params = (double) facts->params.total;
  g_autofree char *kv = pod_format_bytes (facts->kv_bytes_per_token, false);
  g_autofree char *kv_sequence = pod_format_bytes (facts->kv_bytes_per_token * (double) facts->seq_len, false);
  g_autofree char *weights = pod_format_bytes (n_params * weight_bytes, false);
  g_autofree char *with_optimizer = pod_format_bytes (n_params * (weight_bytes + optimizer_bytes), false);

  printf ("KV cache    %s a token, %s a sequence (bf16, windows not counted)\n", kv, kv_sequence);
  printf ("checkpoint  %s of bf16 weights; %s with Adam (fp32 master and both moments)\n", weights, with_optimizer);
}

static void
print_head (const Facts *facts)
{
  const PodModel *model = facts->model;

  printf ("%s (%s): %" G_GUINT64_FORMAT " layers, hidden %" G_GUINT64_FORMAT ", vocabulary %" G_GUINT64_FORMAT "%s, %s FFN", model->name, model->architecture,
          model->n_layers, model->hidden, model->vocab, model->is_tied && model->vocab > 0 ? " (tied)" : "", model->is_ffn_gated ? "gated" : "plain");
  if (model->max_positions > 0)
    printf (", %" G_GUINT64_FORMAT " positions", model->max_positions);
  printf ("%s\nfrom %s\n\n", model->is_parallel_block ? ", attention beside FFN" : "", model->file);
}

static void
print_facts (const Facts *facts)
{
  print_head (facts);
  print_params (facts);
  putchar ('\n');
  print_kinds (facts);
  putchar ('\n');
  print_flops (facts);
  putchar ('\n');
  print_bytes (facts);
  if (facts->model->n_mtp_layers > 0)
    printf ("%" G_GUINT64_FORMAT " multi-token-prediction layers are not counted\n", facts->model->n_mtp_layers);
  for (guint i = 0; i < facts->assumptions->len; i++)
    printf ("note: %s\n", (const char *) g_ptr_array_index (facts->assumptions, i));
}

/* ---- JSON ---- */

static void
set_whole (JsonObject *root, const char *path, uint64_t value)
{
  pod_result_set_int (root, path, (int64_t) value);
}

static void
set_kinds (const Facts *facts, JsonObject *root)
{
  JsonArray *array = pod_result_get_array (root, "layer_kinds");

  for (unsigned i = 0; i < facts->model->n_kinds; i++)
    {
      const PodLayerKind *kind = &facts->model->kinds[i];
      JsonObject *object = json_object_new ();
      uint64_t active = 0;
      uint64_t all = pod_model_layer_params (facts->model, i, &active);

      set_whole (object, "layers", count_layers (facts->model, i));
      pod_result_set_bool (object, "moe", kind->is_moe);
      set_whole (object, "heads", kind->heads);
      set_whole (object, "kv_heads", kind->kv_heads);
      set_whole (object, "head_dim", kind->head_dim);
      set_whole (object, "v_head_dim", kind->v_head_dim);
      set_whole (object, "window", kind->window);
      pod_result_set_bool (object, "chunked", kind->is_chunked);
      set_whole (object, "ffn", kind->ffn);
      set_whole (object, "params", all);
      set_whole (object, "active_params", active);
      json_array_add_object_element (array, object);
    }
}

/* Of layers that differ, the first kind stands for heads and head sizes; layer_kinds has them all. */
static void
set_shape (const PodModel *model, JsonObject *root)
{
  const struct
  {
    const char *path;
    uint64_t value;
  } counts[] = {
    { "shape.layers", model->n_layers },
    { "shape.hidden", model->hidden },
    { "shape.vocab", model->vocab },
    { "shape.max_positions", model->max_positions },
    { "shape.heads", model->kinds[0].heads },
    { "shape.kv_heads", model->kinds[0].kv_heads },
    { "shape.head_dim", model->kinds[0].head_dim },
    { "shape.v_head_dim", model->kinds[0].v_head_dim },
    { "shape.ffn", model->kinds[0].ffn },
    { "shape.experts", model->n_experts },
    { "shape.top_k", model->top_k },
    { "shape.moe_ffn", model->moe_ffn },
    { "shape.shared_experts", model->n_shared_experts },
    { "shape.shared_ffn", model->shared_ffn },
    { "shape.q_lora", model->q_lora },
    { "shape.kv_lora", model->kv_lora },
    { "shape.qk_nope", model->qk_nope },
    { "shape.qk_rope", model->qk_rope },
    { "shape.mtp_layers", model->n_mtp_layers },
  };

  for (size_t i = 0; i < G_N_ELEMENTS (counts); i++)
    set_whole (root, counts[i].path, counts[i].value);
  pod_result_set_string (root, "shape.attention", attention_name (model));
  pod_result_set_bool (root, "shape.ffn_gated", model->is_ffn_gated);
  pod_result_set_bool (root, "shape.tied", model->is_tied);
  pod_result_set_bool (root, "shape.parallel_block", model->is_parallel_block);
}

static void
set_flops (const Facts *facts, JsonObject *root)
{
  for (size_t i = 0; i < G_N_ELEMENTS (flop_terms); i++)
    {
      g_autofree char *path = g_strconcat ("flops_per_token.", flop_terms[i].key, NULL);

      pod_result_set_double (root, path, flops_of (facts, &flop_terms[i]));
    }
  for (size_t i = 0; i < G_N_ELEMENTS (flop_conventions); i++)
    {
      g_autofree char *path = g_strconcat ("flops_per_token.by_convention.", flop_conventions[i].key, NULL);

      pod_result_set_double (root, path, flops_of (facts, &flop_conventions[i]));
    }
}

/* Returns: (transfer full) */
static JsonObject *
facts_to_json (const Facts *facts)
{
  JsonObject *root = json_object_new ();
  JsonArray *notes;
  double n_params = (double) facts->params.total;

  pod_result_set_int (root, "schema_version", 1);
  pod_result_set_string (root, "name", facts->model->name);
  pod_result_set_string (root, "architecture", facts->model->architecture);
  set_whole (root, "params", facts->params.total);
  set_whole (root, "active_params", facts->params.active);
  set_whole (root, "active_params_with_embedding", facts->params.active_with_embedding);
  for (size_t i = 0; i < G_N_ELEMENTS (parts); i++)
    {
      g_autofree char *path = g_strconcat ("params_by_part.", parts[i].key, NULL);

      set_whole (root, path, part_of (facts, &parts[i]));
    }
  set_whole (root, "seq_len", facts->seq_len);
  set_flops (facts, root);
  pod_result_set_double (root, "kv_bytes_per_token", facts->kv_bytes_per_token);
  pod_result_set_double (root, "checkpoint_bytes", n_params * weight_bytes);
  pod_result_set_double (root, "checkpoint_with_optimizer_bytes", n_params * (weight_bytes + optimizer_bytes));
  set_shape (facts->model, root);
  set_kinds (facts, root);
  notes = pod_result_get_array (root, "notes");
  for (guint i = 0; i < facts->assumptions->len; i++)
    json_array_add_string_element (notes, g_ptr_array_index (facts->assumptions, i));
  return root;
}

/* ---- the command ---- */

/* The names that can be given: one a line, for people and for completion. */
static bool
list_models (const char *json, GError **error)
{
  g_autoptr (GPtrArray) names = pod_model_list ();
  g_autoptr (JsonObject) root = NULL;
  JsonArray *array;

  if (json == NULL || strcmp (json, "-") != 0)
    for (guint i = 0; i < names->len; i++)
      puts (g_ptr_array_index (names, i));
  if (json == NULL)
    return true;
  root = json_object_new ();
  pod_result_set_int (root, "schema_version", 1);
  array = pod_result_get_array (root, "models");
  for (guint i = 0; i < names->len; i++)
    json_array_add_string_element (array, g_ptr_array_index (names, i));
  return pod_cli_write_json (root, json, error);
}

static bool
choose_seq_len (const char *text, const PodModel *model, uint64_t *out, GError **error)
{
  *out = model->max_positions > 0 ? MIN (model->max_positions, DEFAULT_SEQ_LEN) : DEFAULT_SEQ_LEN;
  if (text == NULL)
    return true;
  if (g_str_has_suffix (text, "k"))
    {
      int length = (int) strlen (text) - 1;

      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--seq-len: '%s' may mean 1000s or 1024s: write %.*sK (1000s) or %.*sKi (1024s)", text, length, text,
                   length, text);
      return false;
    }
  if (!pod_parse_whole (text, POD_UNIT_COUNT, out, error))
    {
      g_prefix_error (error, "--seq-len: ");
      return false;
    }
  if (*out > 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--seq-len: must be at least 1, got '%s'", text);
  return false;
}

/* An override of a machine has no meaning here and would pass unseen. */
static bool
check_sets (const PodScenario *scenario, GError **error)
{
  for (guint i = 0; i < scenario->set->len; i++)
    {
      const char *text = g_ptr_array_index (scenario->set, i);

      if (!g_str_has_prefix (text, "model."))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--set %s: a model has model.FIELD=VALUE only", text);
          return false;
        }
    }
  return true;
}

static bool
describe_model (const PodScenario *scenario, const char *json, GError **error)
{
  g_auto (Facts) facts = { .assumptions = g_ptr_array_new_with_free_func (g_free) };
  g_autoptr (JsonObject) root = NULL;

  if (!check_sets (scenario, error))
    return false;
  facts.model = pod_scenario_model (scenario, facts.assumptions, error);
  if (facts.model == NULL || !choose_seq_len (scenario->seq_len, facts.model, &facts.seq_len, error))
    return false;
  pod_model_params (facts.model, &facts.params);
  pod_model_token_flops (facts.model, facts.seq_len, &facts.flops);
  facts.kv_bytes_per_token = pod_model_kv_bytes_per_token (facts.model, weight_bytes);
  if (g_strcmp0 (json, "-") != 0)
    print_facts (&facts);
  if (json == NULL)
    return true;
  root = facts_to_json (&facts);
  return pod_cli_write_json (root, json, error);
}

int
pod_cmd_model (int argc, char **argv)
{
  static const char *const names[]
      = { "model", "seq-len", "layers", "hidden", "heads", "kv-heads", "head-dim", "ffn", "vocab", "set", NULL };
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;
  g_autofree char *json = NULL;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &json, "every number as JSON (- is stdout)", "FILE" },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };
  g_autoptr (GOptionContext) context = g_option_context_new ("[M] - a model's parameters, FLOPs and bytes");
  int status;

  g_option_context_set_summary (context, "M is a Hugging Face config.json or a name; without one, the names are listed.");
  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_add_group (context, pod_cli_scenario_group (scenario, names));
  if (!pod_cli_parse (context, &argc, &argv, 1, &status))
    return status;
  if (argc > 1 && scenario->model != NULL)
    g_set_error (&error, POD_ERROR, POD_ERROR_INVALID, "--model: '%s' and '%s' are two models", scenario->model, argv[1]);
  else if (argc > 1)
    pod_scenario_set (scenario, "model", argv[1], &error);
  if (error != NULL)
    return pod_cli_fail (error);
  if (scenario->model == NULL ? !list_models (json, &error) : !describe_model (scenario, json, &error))
    return pod_cli_fail (error);
  return 0;
}
