#include "cli/model-facts.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "base/units.h"

/* Bytes of a parameter in a checkpoint: bf16 weights; with Adam also the fp32 master and both fp32
 * moments. */
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
  { "mtp", "multi-token prediction", offsetof (PodParams, mtp) },
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
  { "attention_causal", "attention, causal and within windows",
    offsetof (PodTokenFlops, attention_causal) },
};

static const FlopTerm flop_conventions[] = {
  { "6nd", "6 x parameters in use, input embedding too", offsetof (PodTokenFlops, sixnd) },
  { "palm", "6 x those without it + attention in full", offsetof (PodTokenFlops, palm) },
  { "megatron", "matmuls + attention in full", offsetof (PodTokenFlops, megatron) },
  { "causal", "matmuls + half of that attention", offsetof (PodTokenFlops, causal) },
};

static uint64_t
part_of (const PodModelFacts *facts, const Part *part)
{
  const void *at = (const char *) &facts->params + part->offset;

  return *(const uint64_t *) at;
}

static double
flops_of (const PodModelFacts *facts, const FlopTerm *term)
{
  const void *at = (const char *) &facts->flops + term->offset;

  return *(const double *) at;
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

void
pod_model_facts_fill (PodModelFacts *facts)
{
  pod_model_params (facts->model, &facts->params);
  pod_model_token_flops (facts->model, facts->seq_len, &facts->flops);
  facts->kv_bytes_per_token = pod_model_kv_bytes_per_token (facts->model, weight_bytes);
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
add_params_row (PodTable *table, const PodModelFacts *facts, const char *title, uint64_t value)
{
  g_autofree char *digits = format_whole (value);
  g_autofree char *rounded = pod_format_count ((double) value);
  g_autofree char *share
      = g_strdup_printf ("%.1f %%", (double) value / (double) MAX (facts->params.total, 1) * 100);
  const char *const cells[] = { title, digits, rounded, share };

  pod_table_add_row (table, cells);
}

static void
print_params (const PodModelFacts *facts)
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
      return g_strdup_printf ("%" G_GUINT64_FORMAT " heads of %" G_GUINT64_FORMAT
                              ", %" G_GUINT64_FORMAT " KV",
                              kind->heads, kind->head_dim, kind->kv_heads);
    case POD_ATTENTION_MLA:
      return g_strdup_printf ("%" G_GUINT64_FORMAT " heads, MLA %" G_GUINT64_FORMAT
                              " + %" G_GUINT64_FORMAT,
                              kind->heads, model->kv_lora, model->qk_rope);
    }
  g_assert_not_reached ();
}

/* Returns: (transfer full) */
static char *
describe_window (const PodLayerKind *kind)
{
  if (kind->window == 0)
    return g_strdup ("full");
  return g_strdup_printf ("%s %" G_GUINT64_FORMAT,
                          kind->is_chunked  ? "chunk"
                          : kind->is_sparse ? "picks"
                                            : "window",
                          kind->window);
}

/* Returns: (transfer full) */
static char *
describe_ffn (const PodModel *model, const PodLayerKind *kind)
{
  GString *out = g_string_new (NULL);

  if (kind->ffn > 0)
    g_string_append_printf (out, "%" G_GUINT64_FORMAT, kind->ffn);
  if (kind->is_moe)
    g_string_append_printf (
        out, "%s%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " experts of %" G_GUINT64_FORMAT,
        kind->ffn > 0 ? " + " : "", model->top_k, model->n_experts, model->moe_ffn);
  if (kind->is_moe && model->shared_ffn > 0)
    g_string_append_printf (out, " + shared %" G_GUINT64_FORMAT, model->shared_ffn);
  return g_string_free (out, FALSE);
}

static void
print_kinds (const PodModelFacts *facts)
{
  static const char *const columns[]
      = { ">layers", "attention", "span", "FFN", ">parameters of one", ">active", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;

  for (unsigned kind = 0; kind < facts->model->n_kinds; kind++)
    {
      const PodLayerKind *layer = &facts->model->kinds[kind];
      uint64_t active = 0;
      uint64_t all = pod_model_layer_params (facts->model, kind, &active);
      g_autofree char *count
          = g_strdup_printf ("%" G_GUINT64_FORMAT, count_layers (facts->model, kind));
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
add_flop_rows (PodTable *table, const PodModelFacts *facts, const FlopTerm *terms, size_t n_terms)
{
  for (size_t i = 0; i < n_terms; i++)
    {
      g_autofree char *value = pod_format_flops (flops_of (facts, &terms[i]));
      const char *const cells[] = { terms[i].key, value, terms[i].title };

      pod_table_add_row (table, cells);
    }
}

static void
print_flops (const PodModelFacts *facts)
{
  g_autofree char *title
      = g_strdup_printf ("FLOPs of a token at sequence length %" G_GUINT64_FORMAT, facts->seq_len);
  const char *const columns[] = { title, ">forward and backward", "what", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;

  add_flop_rows (table, facts, flop_terms, G_N_ELEMENTS (flop_terms));
  add_flop_rows (table, facts, flop_conventions, G_N_ELEMENTS (flop_conventions));
  text = pod_table_to_text (table);
  fputs (text, stdout);
}

static void
print_training (const PodModelFacts *facts)
{
  g_autofree char *tokens = pod_format_count (facts->tokens);

  if (!(facts->tokens > 0))
    return;
  printf ("training on %s tokens:", tokens);
  for (size_t i = 0; i < G_N_ELEMENTS (flop_conventions); i++)
    printf ("%s %.3g FLOPs (%s)", i > 0 ? "," : "",
            facts->tokens * flops_of (facts, &flop_conventions[i]), flop_conventions[i].key);
  putchar ('\n');
}

static void
print_bytes (const PodModelFacts *facts)
{
  double n_params = (double) facts->params.total;
  g_autofree char *kv = pod_format_bytes (facts->kv_bytes_per_token, false);
  g_autofree char *kv_sequence
      = pod_format_bytes (facts->kv_bytes_per_token * (double) facts->seq_len, false);
  g_autofree char *weights = pod_format_bytes (n_params * weight_bytes, false);
  g_autofree char *with_optimizer
      = pod_format_bytes (n_params * (weight_bytes + optimizer_bytes), false);

  printf ("KV cache    %s a token, %s a sequence (bf16, windows not counted)\n", kv, kv_sequence);
  printf ("checkpoint  %s of bf16 weights; %s with Adam (fp32 master and both moments)\n", weights,
          with_optimizer);
}

static void
print_head (const PodModelFacts *facts)
{
  const PodModel *model = facts->model;

  printf ("%s (%s): %" G_GUINT64_FORMAT " layer%s, hidden %" G_GUINT64_FORMAT
          ", vocabulary %" G_GUINT64_FORMAT "%s, %s FFN",
          model->name, model->architecture, model->n_layers, model->n_layers == 1 ? "" : "s",
          model->hidden, model->vocab, model->is_tied && model->vocab > 0 ? " (tied)" : "",
          model->is_ffn_gated ? "gated" : "plain");
  if (model->max_positions > 0)
    printf (", %" G_GUINT64_FORMAT " positions", model->max_positions);
  printf ("%s\nfrom %s\n\n", model->is_parallel_block ? ", attention beside FFN" : "", model->file);
}

void
pod_model_facts_print (const PodModelFacts *facts)
{
  print_head (facts);
  print_params (facts);
  putchar ('\n');
  print_kinds (facts);
  putchar ('\n');
  print_flops (facts);
  print_training (facts);
  putchar ('\n');
  print_bytes (facts);
  if (facts->model->n_mtp_layers > 0 && facts->model->n_mtp == 0)
    printf ("%" G_GUINT64_FORMAT " multi-token-prediction layer%s not counted\n",
            facts->model->n_mtp_layers, facts->model->n_mtp_layers == 1 ? " is" : "s are");
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
set_kinds (const PodModelFacts *facts, JsonObject *root)
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

/* Of layers that differ, the first kind stands for heads and head sizes; layer_kinds has them all.
 */
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
set_flops (const PodModelFacts *facts, JsonObject *root)
{
  for (size_t i = 0; i < G_N_ELEMENTS (flop_terms); i++)
    {
      g_autofree char *path = g_strconcat ("flops_per_token.", flop_terms[i].key, NULL);

      g_autofree char *forward = g_strconcat ("flops_per_token.forward.", flop_terms[i].key, NULL);

      pod_result_set_double (root, path, flops_of (facts, &flop_terms[i]));
      pod_result_set_double (root, forward, flops_of (facts, &flop_terms[i]) / 3);
    }
  if (facts->flops.linear > 0)
    pod_result_set_double (root, "flops_per_token.attention_to_linear_ratio",
                           facts->flops.attention_full / facts->flops.linear);
  for (size_t i = 0; i < G_N_ELEMENTS (flop_conventions); i++)
    {
      g_autofree char *path
          = g_strconcat ("flops_per_token.by_convention.", flop_conventions[i].key, NULL);

      g_autofree char *total
          = g_strconcat ("train.flops_by_convention.", flop_conventions[i].key, NULL);

      pod_result_set_double (root, path, flops_of (facts, &flop_conventions[i]));
      if (facts->tokens > 0)
        pod_result_set_double (root, total, facts->tokens * flops_of (facts, &flop_conventions[i]));
    }
  if (facts->tokens > 0)
    pod_result_set_double (root, "train.tokens", facts->tokens);
}

JsonObject *
pod_model_facts_to_json (const PodModelFacts *facts)
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
  pod_result_set_double (root, "checkpoint_with_optimizer_bytes",
                         n_params * (weight_bytes + optimizer_bytes));
  set_shape (facts->model, root);
  set_kinds (facts, root);
  notes = pod_result_get_array (root, "notes");
  for (guint i = 0; i < facts->assumptions->len; i++)
    json_array_add_string_element (notes, g_ptr_array_index (facts->assumptions, i));
  return root;
}
