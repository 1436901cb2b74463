#include "model/hf-config-private.h"

#include <string.h>

#include "base/error.h"

/* What stands in each layer of a config.json: the window and the experts. */

/* An optional array of that key; absent or null: *out = NULL. */
static bool
get_array (const HfReader *reader, const char *key, JsonArray **out, GError **error)
{
  JsonNode *node = json_object_get_member (reader->text, key);

  *out = NULL;
  if (node == NULL || JSON_NODE_HOLDS_NULL (node))
    return true;
  if (!JSON_NODE_HOLDS_ARRAY (node))
    return pod_hf_refuse (reader, key, error, "expected a list");
  *out = json_node_get_array (node);
  return true;
}

/* The element as a whole number below @limit. */
static bool
get_element (const HfReader *reader, const char *key, JsonArray *array, guint index, uint64_t limit,
             uint64_t *out, GError **error)
{
  JsonNode *node = json_array_get_element (array, index);

  if (!JSON_NODE_HOLDS_VALUE (node) || json_node_get_value_type (node) != JSON_VALUE_INT
      || json_node_get_int (node) < 0 || (uint64_t) json_node_get_int (node) >= limit)
    return pod_hf_refuse (reader, key, error,
                          "element %u: expected a whole number below %" G_GUINT64_FORMAT, index,
                          limit);
  *out = (uint64_t) json_node_get_int (node);
  return true;
}

/* Marks the layers that the list of @key names. */
static bool
mark_listed (const HfReader *reader, const char *key, JsonArray *array, bool *marks, GError **error)
{
  for (guint i = 0; i < json_array_get_length (array); i++)
    {
      uint64_t layer = 0;

      if (!get_element (reader, key, array, i, reader->model->n_layers, &layer, error))
        return false;
      marks[layer] = true;
    }
  return true;
}

/* A step of at least 1; absent: 1, the default of all classes that have one. */
static bool
get_step (const HfReader *reader, const char *key, uint64_t *out, GError **error)
{
  *out = 1;
  if (!pod_hf_get_uint (reader, key, out, error))
    return false;
  return *out != 0 || pod_hf_refuse (reader, key, error, "must be at least 1, got 0");
}

static bool
mark_after_dense (const HfReader *reader, bool *is_moe, GError **error)
{
  uint64_t n_dense = reader->class->dense_layers;
  uint64_t step = 1;

  if (pod_hf_find (reader, HF_DENSE_LAYERS) == NULL && n_dense == UINT64_MAX)
    return pod_hf_refuse_missing (reader, HF_DENSE_LAYERS, error);
  if (pod_hf_find (reader, HF_DENSE_LAYERS) != NULL
      && !pod_hf_get_uint (reader, pod_hf_find (reader, HF_DENSE_LAYERS), &n_dense, error))
    return false;
  if (!get_step (reader, "moe_layer_freq", &step, error))
    return false;
  for (uint64_t i = n_dense; i < reader->model->n_layers; i++)
    is_moe[i] = i % step == 0;
  return true;
}

static bool
mark_sparse_step (const HfReader *reader, bool *is_moe, GError **error)
{
  uint64_t n_layers = reader->model->n_layers;
  g_autofree bool *is_dense = g_new0 (bool, n_layers);
  JsonArray *listed = NULL;
  uint64_t step = 1;

  if (!get_step (reader, "decoder_sparse_step", &step, error)
      || !get_array (reader, "mlp_only_layers", &listed, error))
    return false;
  if (listed != NULL && !mark_listed (reader, "mlp_only_layers", listed, is_dense, error))
    return false;
  for (uint64_t i = 0; i < n_layers; i++)
    is_moe[i] = (i + 1) % step == 0 && !is_dense[i];
  return true;
}

static bool
mark_interleaved (const HfReader *reader, bool *is_moe, GError **error)
{
  JsonArray *listed = NULL;
  uint64_t step = 1;

  if (!get_array (reader, "moe_layers", &listed, error))
    return false;
  if (listed != NULL)
    return mark_listed (reader, "moe_layers", listed, is_moe, error);
  if (!get_step (reader, "interleave_moe_layer_step", &step, error))
    return false;
  for (uint64_t i = 0; i < reader->model->n_layers; i++)
    is_moe[i] = (i + 1) % step == 0;
  return true;
}

static bool
mark_moe (const HfReader *reader, bool *is_moe, GError **error)
{
  if (reader->model->n_experts == 0)
    return true;
  switch (reader->class->moe)
    {
    case HF_MOE_NONE:
      return true;
    case HF_MOE_ALL:
    case HF_MOE_BESIDE:
      for (uint64_t i = 0; i < reader->model->n_layers; i++)
        is_moe[i] = true;
      return true;
    case HF_MOE_AFTER_DENSE:
      return mark_after_dense (reader, is_moe, error);
    case HF_MOE_SPARSE_STEP:
      return mark_sparse_step (reader, is_moe, error);
    case HF_MOE_INTERLEAVED:
      return mark_interleaved (reader, is_moe, error);
    }
  g_assert_not_reached ();
}

/* layer_types: one of three words per layer. */
static bool
mark_listed_types (HfReader *reader, JsonArray *types, bool *has_window, GError **error)
{
  uint64_t n_layers = reader->model->n_layers;

  if (json_array_get_length (types) != n_layers)
    return pod_hf_refuse (reader, "layer_types", error,
                          "%u entries for %" G_GUINT64_FORMAT " layers",
                          json_array_get_length (types), n_layers);
  for (guint i = 0; i < json_array_get_length (types); i++)
    {
      JsonNode *node = json_array_get_element (types, i);
      const char *type = JSON_NODE_HOLDS_VALUE (node) ? json_node_get_string (node) : NULL;

      if (g_strcmp0 (type, "sliding_attention") == 0 || g_strcmp0 (type, "chunked_attention") == 0)
        has_window[i] = true;
      else if (g_strcmp0 (type, "full_attention") != 0)
        return pod_hf_refuse (reader, "layer_types", error,
                              "element %u: expected full_attention, sliding_attention or "
                              "chunked_attention, got %s",
                              i, type != NULL ? type : "something else");
    }
  return true;
}

/* Llama-4's no_rope_layers: 0 = no rotary position, which sees everything; an empty list says the
 * default. */
static bool
mark_rope_layers (HfReader *reader, JsonArray *list, bool *has_window, GError **error)
{
  uint64_t n_layers = reader->model->n_layers;

  if (json_array_get_length (list) != n_layers)
    return pod_hf_refuse (reader, "no_rope_layers", error,
                          "%u entries for %" G_GUINT64_FORMAT " layers",
                          json_array_get_length (list), n_layers);
  for (guint i = 0; i < json_array_get_length (list); i++)
    {
      uint64_t value = 0;

      if (!get_element (reader, "no_rope_layers", list, i, 2, &value, error))
        return false;
      has_window[i] = value != 0;
    }
  return true;
}

static bool
mark_pattern (HfReader *reader, bool *has_window, GError **error)
{
  JsonArray *rope = NULL;
  uint64_t full_every = reader->class->full_every;

  if (reader->class->is_chunked && !get_array (reader, "no_rope_layers", &rope, error))
    return false;
  if (rope != NULL && json_array_get_length (rope) != 0)
    return mark_rope_layers (reader, rope, has_window, error);
  if (!pod_hf_get_uint (reader, "sliding_window_pattern", &full_every, error)
      || !pod_hf_get_uint (reader, "_sliding_window_pattern", &full_every, error))
    return false;
  if (full_every == 0)
    return pod_hf_refuse (reader, "sliding_window_pattern", error, "must be at least 1, got 0");
  for (uint64_t i = 0; i < reader->model->n_layers; i++)
    has_window[i] = (i + 1) % full_every != 0;
  return true;
}

/* Qwen: off unless use_sliding_window, and then from layer max_window_layers on. */
static bool
mark_switched (HfReader *reader, bool *has_window, GError **error)
{
  bool is_on = false;
  uint64_t first = 0;

  if (!pod_hf_get_bool (reader, "use_sliding_window", &is_on, error))
    return false;
  if (!is_on)
    return true;
  if (!pod_json_has (reader->text, "max_window_layers"))
    return pod_hf_refuse (reader, "max_window_layers", error,
                          "missing, use_sliding_window needs it");
  if (!pod_hf_get_uint (reader, "max_window_layers", &first, error))
    return false;
  for (uint64_t i = first; i < reader->model->n_layers; i++)
    has_window[i] = true;
  return true;
}

/* The window's size: the key, or the class's default where it is absent; null says no window. */
static bool
read_window (HfReader *reader, GError **error)
{
  const HfClass *class = reader->class;

  reader->window = 0;
  if (class->window_rule == HF_WINDOW_NONE)
    return true;
  if (!json_object_has_member (reader->text, class->window_key))
    {
      reader->window = class->window;
      if (reader->window != 0 && class->window_rule != HF_WINDOW_SWITCHED)
        pod_model_note (reader->model, "%s absent: %" G_GUINT64_FORMAT ", the default of %s",
                        class->window_key, reader->window, class->model_type);
      return true;
    }
  return pod_hf_get_uint (reader, class->window_key, &reader->window, error);
}

static bool
mark_windows (HfReader *reader, bool *has_window, GError **error)
{
  JsonArray *types = NULL;

  if (!read_window (reader, error) || !get_array (reader, "layer_types", &types, error))
    return false;
  if (reader->class->window_rule == HF_WINDOW_SWITCHED)
    {
      bool is_on = false;

      if (!pod_hf_get_bool (reader, "use_sliding_window", &is_on, error))
        return false;
      if (!is_on)
        reader->window = 0;
    }
  if (types != NULL)
    return mark_listed_types (reader, types, has_window, error);
  switch (reader->class->window_rule)
    {
    case HF_WINDOW_NONE:
      return true;
    case HF_WINDOW_ALL:
      for (uint64_t i = 0; i < reader->model->n_layers; i++)
        has_window[i] = true;
      return true;
    case HF_WINDOW_PATTERN:
      return mark_pattern (reader, has_window, error);
    case HF_WINDOW_SWITCHED:
      return mark_switched (reader, has_window, error);
    }
  g_assert_not_reached ();
}

bool
pod_hf_read_layers (HfReader *reader, GError **error)
{
  PodModel *model = reader->model;
  g_autofree bool *is_moe = NULL;
  g_autofree bool *has_window = NULL;
  g_autofree PodLayerKind *layers = NULL;

  if (model->n_layers > POD_MODEL_MAX_LAYERS)
    return pod_hf_refuse (reader, pod_hf_find (reader, HF_LAYERS), error,
                          "must be 1 to %d, got %" G_GUINT64_FORMAT, POD_MODEL_MAX_LAYERS,
                          model->n_layers);
  is_moe = g_new0 (bool, model->n_layers);
  has_window = g_new0 (bool, model->n_layers);
  if (!mark_moe (reader, is_moe, error) || !mark_windows (reader, has_window, error))
    return false;

  layers = g_new0 (PodLayerKind, model->n_layers);
  for (uint64_t i = 0; i < model->n_layers; i++)
    {
      bool is_windowed = has_window[i] && reader->window != 0;

      layers[i] = reader->class->window_rule == HF_WINDOW_PATTERN && !has_window[i] ? reader->full
                                                                                    : reader->plain;
      if (is_windowed)
        {
          layers[i].window = reader->window;
          layers[i].is_chunked = reader->class->is_chunked;
        }
      layers[i].is_moe = is_moe[i];
      if (!is_moe[i] || reader->class->moe == HF_MOE_BESIDE)
        {
          if (reader->dense_ffn == 0)
            return pod_hf_refuse (reader, reader->class->dense_width_key, error,
                                  "missing or 0, and layer %" G_GUINT64_FORMAT " is dense", i);
          layers[i].ffn = reader->dense_ffn;
        }
    }
  return pod_model_take_layers (model, layers, model->n_layers, error);
}
