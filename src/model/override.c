#include "model/model.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "model/model-private.h"

/* One field that the command line may override. */
typedef struct
{
  PodModelField field;
  bool (*apply) (PodModel *model, uint64_t value, size_t offset, GError **error);
  size_t offset; /* of the uint64_t in PodModel, or in PodLayerKind, that apply sets */
} Row;

static bool G_GNUC_PRINTF (2, 3) refuse (GError **error, const char *format, ...)
{
  g_autofree char *message = NULL;
  va_list arguments;

  va_start (arguments, format);
  message = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_set_error_literal (error, POD_ERROR, POD_ERROR_INVALID, message);
  return false;
}

static uint64_t *
model_field (PodModel *model, size_t offset)
{
  return G_STRUCT_MEMBER_P (model, offset);
}

static bool
apply_plain (PodModel *model, uint64_t value, size_t offset, G_GNUC_UNUSED GError **error)
{
  *model_field (model, offset) = value;
  return true;
}

/* The pattern of kinds is a prefix that occurs once and a period that repeats from there: 3 + 1 for
 * DeepSeek-V3 (dense dense dense MoE MoE …), 0 + 6 for Gemma-3. Of all pairs the one with the
 * smallest sum, so that an irregular tail makes the whole list the period. Returns: the period.
 * O(layers^2) at worst, O(layers) for regular patterns. */
static uint64_t
find_period (const uint8_t *layer_kind, uint64_t n_layers)
{
  uint64_t best_period = n_layers;
  uint64_t best_sum = n_layers;

  for (uint64_t period = 1; period < best_sum; period++)
    {
      uint64_t sum = n_layers;

      while (sum > period && layer_kind[sum - 1] == layer_kind[sum - 1 - period])
        sum--;
      if (sum < best_sum)
        {
          best_sum = sum;
          best_period = period;
        }
    }
  return best_period;
}

static bool
apply_layers (PodModel *model, uint64_t value, G_GNUC_UNUSED size_t offset, GError **error)
{
  g_autofree uint8_t *layer_kind = NULL;
  uint64_t period;

  if (value == 0 || value > POD_MODEL_MAX_LAYERS)
    return refuse (error, "layers must be 1 to %d, got %" G_GUINT64_FORMAT, POD_MODEL_MAX_LAYERS,
                   value);

  period = find_period (model->layer_kind, model->n_layers);
  layer_kind = g_new0 (uint8_t, value);
  for (uint64_t i = 0; i < value; i++)
    layer_kind[i] = i < model->n_layers ? model->layer_kind[i] : layer_kind[i - period];
  g_free (model->layer_kind);
  model->layer_kind = g_steal_pointer (&layer_kind);
  model->n_layers = value;
  return true;
}

static bool
apply_heads (PodModel *model, uint64_t value, G_GNUC_UNUSED size_t offset, GError **error)
{
  if (model->attention == POD_ATTENTION_NONE)
    return refuse (error, "this model has no attention");
  for (unsigned i = 0; i < model->n_kinds; i++)
    {
      PodLayerKind *kind = &model->kinds[i];

      if (kind->kv_heads == kind->heads || model->attention == POD_ATTENTION_MLA)
        kind->kv_heads = value;
      kind->heads = value;
    }
  return true;
}

static bool
apply_kv_heads (PodModel *model, uint64_t value, G_GNUC_UNUSED size_t offset, GError **error)
{
  if (model->attention != POD_ATTENTION_GQA)
    return refuse (error, "this model has no KV heads%s",
                   model->attention == POD_ATTENTION_MLA ? ": MLA's cache is kv_lora + qk_rope wide"
                                                         : "");
  for (unsigned i = 0; i < model->n_kinds; i++)
    model->kinds[i].kv_heads = value;
  return true;
}

static bool
apply_head_dim (PodModel *model, uint64_t value, G_GNUC_UNUSED size_t offset, GError **error)
{
  if (model->attention != POD_ATTENTION_GQA)
    return refuse (error, "this model has no head_dim%s",
                   model->attention == POD_ATTENTION_MLA ? ": MLA has qk_nope, qk_rope and v_head"
                                                         : "");
  for (unsigned i = 0; i < model->n_kinds; i++)
    model->kinds[i].head_dim = model->kinds[i].v_head_dim = value;
  model->has_own_head_dim = true;
  return true;
}

static bool
apply_ffn (PodModel *model, uint64_t value, G_GNUC_UNUSED size_t offset, GError **error)
{
  bool is_used = false;

  for (unsigned i = 0; i < model->n_kinds; i++)
    if (model->kinds[i].ffn != 0)
      {
        model->kinds[i].ffn = value;
        is_used = true;
      }
  model->has_own_ffn = true;
  return is_used
         || refuse (error, "no layer of this model is dense; moe_ffn is the width of its experts");
}

static bool
apply_window (PodModel *model, uint64_t value, G_GNUC_UNUSED size_t offset, GError **error)
{
  bool is_used = false;

  if (value == 0)
    return refuse (error, "a window must be at least 1, got 0");
  for (unsigned i = 0; i < model->n_kinds; i++)
    if (model->kinds[i].window != 0)
      {
        model->kinds[i].window = value;
        is_used = true;
      }
  return is_used || refuse (error, "no layer of this model has a window");
}

static bool
apply_experts (PodModel *model, uint64_t value, G_GNUC_UNUSED size_t offset,
               G_GNUC_UNUSED GError **error)
{
  if (model->n_experts == 0 && value != 0)
    {
      model->top_k = 1;
      for (unsigned i = 0; i < model->n_kinds; i++)
        {
          model->moe_ffn = MAX (model->moe_ffn, model->kinds[i].ffn);
          model->kinds[i].ffn = 0;
          model->kinds[i].is_moe = true;
        }
    }
  model->n_experts = value;
  return true;
}

static bool
apply_expert_field (PodModel *model, uint64_t value, size_t offset, GError **error)
{
  if (model->n_experts == 0)
    return refuse (error, "this model has no experts; override experts first");
  return apply_plain (model, value, offset, error);
}

/* Each as wide as those that there are, else as the routed ones. */
static bool
apply_shared_experts (PodModel *model, uint64_t value, G_GNUC_UNUSED size_t offset, GError **error)
{
  uint64_t width
      = model->n_shared_experts != 0 ? model->shared_ffn / model->n_shared_experts : model->moe_ffn;

  if (model->n_experts == 0)
    return refuse (error, "this model has no experts; override experts first");
  if (!g_uint64_checked_mul (&model->shared_ffn, value, width))
    return refuse (
        error, "%" G_GUINT64_FORMAT " shared experts of width %" G_GUINT64_FORMAT " are too many",
        value, width);
  model->n_shared_experts = value;
  return true;
}

static bool
apply_mla (PodModel *model, uint64_t value, size_t offset, GError **error)
{
  if (model->attention != POD_ATTENTION_MLA)
    return refuse (error, "this model has no MLA");
  *model_field (model, offset) = value;
  for (unsigned i = 0; i < model->n_kinds; i++)
    {
      model->kinds[i].head_dim = model->qk_nope + model->qk_rope;
      model->kinds[i].v_head_dim = model->v_head;
    }
  return true;
}

#define FIELD(member) offsetof (PodModel, member)

static const Row rows[] = {
  { { "layers", "number of layers; the pattern of their kinds is cut or goes on" },
    apply_layers,
    0 },
  { { "hidden", "width of the residual stream" }, apply_plain, FIELD (hidden) },
  { { "heads", "query heads" }, apply_heads, 0 },
  { { "kv_heads", "key and value heads" }, apply_kv_heads, 0 },
  { { "head_dim", "size of a head (q, k and v)" }, apply_head_dim, 0 },
  { { "ffn", "width of one matrix of the dense FFN" }, apply_ffn, 0 },
  { { "vocab", "entries of the vocabulary" }, apply_plain, FIELD (vocab) },
  { { "mtp", "multi-token prediction modules that train, each a layer like the last" },
    apply_plain,
    FIELD (n_mtp) },
  { { "max_positions", "longest sequence, rows of a learned position table" },
    apply_plain,
    FIELD (max_positions) },
  { { "window", "tokens of the layers that have a window" }, apply_window, 0 },
  { { "experts", "routed experts of a layer" }, apply_experts, 0 },
  { { "top_k", "experts that a token visits" }, apply_expert_field, FIELD (top_k) },
  { { "moe_ffn", "width of one matrix of an expert" }, apply_expert_field, FIELD (moe_ffn) },
  { { "shared_experts", "experts that every token visits" }, apply_shared_experts, 0 },
  { { "shared_ffn", "total width of the shared experts" }, apply_expert_field, FIELD (shared_ffn) },
  { { "q_lora", "MLA: rank of q, 0 = direct" }, apply_mla, FIELD (q_lora) },
  { { "kv_lora", "MLA: rank of k and v" }, apply_mla, FIELD (kv_lora) },
  { { "qk_nope", "MLA: size of a head of q and k without rotary position" },
    apply_mla,
    FIELD (qk_nope) },
  { { "qk_rope", "MLA: size of a head of q and k with rotary position" },
    apply_mla,
    FIELD (qk_rope) },
  { { "v_head", "MLA: size of a head of v" }, apply_mla, FIELD (v_head) },
};

#undef FIELD

const PodModelField *
pod_model_field (unsigned index)
{
  return index < G_N_ELEMENTS (rows) ? &rows[index].field : NULL;
}

static const Row *
find_row (const char *field)
{
  g_autofree char *name = g_strdelimit (g_strdup (field), "-", '_');

  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++)
    if (strcmp (rows[i].field.name, name) == 0)
      return &rows[i];
  return NULL;
}

/* What the file left to be derived is derived again. */
static bool
derive (PodModel *model, GError **error)
{
  for (unsigned i = 0; i < model->n_kinds; i++)
    {
      PodLayerKind *kind = &model->kinds[i];

      if (model->attention == POD_ATTENTION_GQA && !model->has_own_head_dim)
        {
          if (kind->heads == 0 || model->hidden % kind->heads != 0)
            return refuse (
                error,
                "hidden %% heads must be 0 where no head_dim is given: %" G_GUINT64_FORMAT
                " over %" G_GUINT64_FORMAT " heads",
                model->hidden, kind->heads);
          kind->head_dim = kind->v_head_dim = model->hidden / kind->heads;
        }
      if (!model->has_own_ffn && kind->ffn != 0
          && !g_uint64_checked_mul (&kind->ffn, 4, model->hidden))
        return refuse (error, "hidden %" G_GUINT64_FORMAT " is too large", model->hidden);
    }
  return true;
}

bool
pod_model_set_all (PodModel *model, const PodModelOverride *overrides, unsigned n_overrides,
                   GError **error)
{
  g_autoptr (PodModel) changed = NULL;
  PodModel swapped;

  g_return_val_if_fail (model != NULL && (overrides != NULL || n_overrides == 0), false);

  changed = pod_model_copy (model);
  for (unsigned i = 0; i < n_overrides; i++)
    {
      const Row *row = find_row (overrides[i].field);

      if (row == NULL)
        return refuse (error, "model.%s: no such field", overrides[i].field);
      if (!row->apply (changed, overrides[i].value, row->offset, error))
        {
          g_prefix_error (error, "model.%s=%" G_GUINT64_FORMAT ": ", row->field.name,
                          overrides[i].value);
          return false;
        }
    }
  if (!derive (changed, error) || !pod_model_check (changed, error))
    return false;

  swapped = *model;
  *model = *changed;
  *changed = swapped;
  return true;
}

bool
pod_model_set (PodModel *model, const char *field, uint64_t value, GError **error)
{
  PodModelOverride override = { .field = field, .value = value };

  return pod_model_set_all (model, &override, 1, error);
}
