#include "model/model-private.h"

#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/xml.h"

/* Reads workloads/models/NAME.xml, which model.xsd has checked: what is required is there, and
 * words are known. */

typedef struct
{
  const PodXml *xml;
  PodModel *model;
  PodLayerKind kind; /* what is common to all layers */
  char *pattern;     /* (transfer full) (nullable) */
  uint64_t window;
  uint64_t ffn;
  uint64_t dense_first;
  uint64_t every;
} XmlReader;

/* One attribute to read: a whole number or a boolean. */
typedef struct
{
  const char *name;
  uint64_t *count;
  bool *flag;
} XmlField;

static bool
read_fields (const XmlReader *reader, PodXmlNode *node, const XmlField *fields, size_t n_fields,
             GError **error)
{
  for (size_t i = 0; i < n_fields; i++)
    if (fields[i].count != NULL
            ? !pod_xml_get_whole (reader->xml, node, fields[i].name, POD_UNIT_COUNT, false,
                                  fields[i].count, error)
            : !pod_xml_get_bool (reader->xml, node, fields[i].name, fields[i].flag, error))
      return false;
  return true;
}

static bool
attribute_is (PodXmlNode *node, const char *name, const char *value)
{
  g_autofree char *text = pod_xml_attr (node, name);

  return g_strcmp0 (text, value) == 0;
}

static bool
read_model_element (XmlReader *reader, PodXmlNode *node, GError **error)
{
  PodModel *model = reader->model;
  const XmlField fields[] = {
    { "layers", &model->n_layers, NULL },
    { "hidden", &model->hidden, NULL },
    { "parallel-block", NULL, &model->is_parallel_block },
    { "extra-params-per-layer", &model->extra_params_per_layer, NULL },
  };

  model->architecture = pod_xml_attr (node, "architecture");
  if (!read_fields (reader, node, fields, G_N_ELEMENTS (fields), error))
    return false;
  return model->n_layers <= POD_MODEL_MAX_LAYERS
         || pod_xml_error (reader->xml, node, error,
                           "layers: must be 1 to %d, got %" G_GUINT64_FORMAT, POD_MODEL_MAX_LAYERS,
                           model->n_layers);
}

static bool
read_embedding (XmlReader *reader, PodXmlNode *node, GError **error)
{
  PodModel *model = reader->model;
  const XmlField fields[] = {
    { "vocab", &model->vocab, NULL },
    { "tied", NULL, &model->is_tied },
    { "max-positions", &model->max_positions, NULL },
    { "learned-positions", NULL, &model->has_learned_positions },
  };

  if (!read_fields (reader, node, fields, G_N_ELEMENTS (fields), error))
    return false;
  return !model->has_learned_positions || model->max_positions != 0
         || pod_xml_error (reader->xml, node, error, "max-positions: learned-positions needs it");
}

static bool
read_gqa (XmlReader *reader, PodXmlNode *node, GError **error)
{
  PodModel *model = reader->model;
  PodLayerKind *kind = &reader->kind;

  kind->kv_heads = kind->heads;
  if (!pod_xml_get_whole (reader->xml, node, "kv-heads", POD_UNIT_COUNT, false, &kind->kv_heads,
                          error)
      || !pod_xml_get_whole (reader->xml, node, "head-dim", POD_UNIT_COUNT, false, &kind->head_dim,
                             error))
    return false;
  if (kind->kv_heads == 0 || kind->heads % kind->kv_heads != 0)
    return pod_xml_error (
        reader->xml, node, error,
        "kv-heads: heads %% kv-heads must be 0 and kv-heads at least 1, got %" G_GUINT64_FORMAT
        " heads and %" G_GUINT64_FORMAT " KV heads",
        kind->heads, kind->kv_heads);
  model->has_own_head_dim = kind->head_dim != 0;
  if (!model->has_own_head_dim)
    {
      if (model->hidden % kind->heads != 0)
        return pod_xml_error (
            reader->xml, node, error,
            "head-dim: missing, and hidden %% heads must be 0 without it: %" G_GUINT64_FORMAT
            " over %" G_GUINT64_FORMAT " heads",
            model->hidden, kind->heads);
      kind->head_dim = model->hidden / kind->heads;
    }
  kind->v_head_dim = kind->head_dim;
  return true;
}

static bool
read_mla (XmlReader *reader, PodXmlNode *node, GError **error)
{
  PodModel *model = reader->model;
  const XmlField fields[] = {
    { "q-lora", &model->q_lora, NULL },   { "kv-lora", &model->kv_lora, NULL },
    { "qk-nope", &model->qk_nope, NULL }, { "qk-rope", &model->qk_rope, NULL },
    { "v-head", &model->v_head, NULL },
  };

  if (!read_fields (reader, node, fields, G_N_ELEMENTS (fields), error))
    return false;
  if (model->kv_lora == 0 || model->v_head == 0 || model->qk_nope + model->qk_rope == 0)
    return pod_xml_error (reader->xml, node, error,
                          "mla needs kv-lora, v-head, and qk-nope or qk-rope");
  model->has_own_head_dim = true;
  reader->kind.kv_heads = reader->kind.heads;
  reader->kind.head_dim = model->qk_nope + model->qk_rope;
  reader->kind.v_head_dim = model->v_head;
  return true;
}

static bool
read_attention (XmlReader *reader, PodXmlNode *node, GError **error)
{
  PodModel *model = reader->model;
  const XmlField fields[] = {
    { "heads", &reader->kind.heads, NULL },
    { "bias", NULL, &model->has_attention_bias },
    { "output-bias", NULL, &model->has_output_bias },
    { "qk-norm", NULL, &model->has_qk_norm },
    { "window", &reader->window, NULL },
  };

  if (attribute_is (node, "kind", "none"))
    {
      model->attention = POD_ATTENTION_NONE;
      return true;
    }
  if (!read_fields (reader, node, fields, G_N_ELEMENTS (fields), error))
    return false;
  if (reader->kind.heads == 0)
    return pod_xml_error (reader->xml, node, error, "heads: missing, attention needs it");
  reader->pattern = pod_xml_attr (node, "pattern");
  if (reader->pattern != NULL && reader->window == 0)
    return pod_xml_error (reader->xml, node, error, "window: missing, pattern needs it");
  if (!attribute_is (node, "kind", "mla"))
    return read_gqa (reader, node, error);
  model->attention = POD_ATTENTION_MLA;
  return read_mla (reader, node, error);
}

static bool
read_ffn (XmlReader *reader, PodXmlNode *node, GError **error)
{
  PodModel *model = reader->model;
  const XmlField fields[] = {
    { "width", &reader->ffn, NULL },
    { "gated", NULL, &model->is_ffn_gated },
    { "bias", NULL, &model->has_ffn_bias },
  };

  if (!read_fields (reader, node, fields, G_N_ELEMENTS (fields), error))
    return false;
  model->has_own_ffn = reader->ffn != 0;
  if (!model->has_own_ffn)
    reader->ffn = 4 * model->hidden;
  return true;
}

static bool
read_experts (XmlReader *reader, PodXmlNode *node, GError **error)
{
  PodModel *model = reader->model;
  const XmlField fields[] = {
    { "count", &model->n_experts, NULL },
    { "top-k", &model->top_k, NULL },
    { "width", &model->moe_ffn, NULL },
    { "shared", &model->n_shared_experts, NULL },
    { "shared-width", &model->shared_ffn, NULL },
    { "dense-first", &reader->dense_first, NULL },
    { "every", &reader->every, NULL },
    { "router-bias", NULL, &model->has_router_bias },
    { "bias", NULL, &model->has_expert_bias },
  };

  if (node == NULL)
    return true;
  if (!read_fields (reader, node, fields, G_N_ELEMENTS (fields), error))
    return false;
  if (model->shared_ffn == 0
      && !g_uint64_checked_mul (&model->shared_ffn, model->n_shared_experts, model->moe_ffn))
    return pod_xml_error (reader->xml, node, error, "shared: too many");
  return model->top_k <= model->n_experts
         || pod_xml_error (reader->xml, node, error,
                           "top-k: must be 1 to count (%" G_GUINT64_FORMAT
                           "), got %" G_GUINT64_FORMAT,
                           model->n_experts, model->top_k);
}

static bool
read_norms (XmlReader *reader, PodXmlNode *node, GError **error)
{
  PodModel *model = reader->model;
  uint64_t per_layer = 2;
  const XmlField fields[] = {
    { "per-layer", &per_layer, NULL },
    { "final", NULL, &model->has_final_norm },
    { "embedding", NULL, &model->has_embedding_norm },
  };

  if (attribute_is (node, "kind", "none"))
    model->norm = POD_NORM_NONE;
  else
    model->norm = attribute_is (node, "kind", "layer") ? POD_NORM_LAYER : POD_NORM_RMS;
  if (!read_fields (reader, node, fields, G_N_ELEMENTS (fields), error))
    return false;
  model->norms_per_layer = (unsigned) per_layer;
  return true;
}

/* Each layer from the pattern of windows and the rule of experts: dense-first dense ones, then
 * every every-th is MoE. */
static bool
make_layers (XmlReader *reader, GError **error)
{
  PodModel *model = reader->model;
  g_autofree PodLayerKind *layers = g_new0 (PodLayerKind, model->n_layers);
  g_auto (GStrv) words
      = g_strsplit_set (reader->pattern != NULL ? reader->pattern : "", " \t\r\n", -1);
  g_autoptr (GPtrArray) pattern = g_ptr_array_new ();

  for (size_t i = 0; words[i] != NULL; i++)
    if (words[i][0] != '\0')
      g_ptr_array_add (pattern, words[i]);
  for (uint64_t i = 0; i < model->n_layers; i++)
    {
      bool is_local = pattern->len == 0 || strcmp (pattern->pdata[i % pattern->len], "local") == 0;

      layers[i] = reader->kind;
      layers[i].window = is_local ? reader->window : 0;
      layers[i].is_moe = model->n_experts != 0 && i >= reader->dense_first
                         && (i - reader->dense_first + 1) % reader->every == 0;
      layers[i].ffn = layers[i].is_moe ? 0 : reader->ffn;
    }
  return pod_model_take_layers (model, layers, model->n_layers, error);
}

static bool
read_root (XmlReader *reader, GError **error)
{
  PodXmlNode *root = pod_xml_root (reader->xml);

  return read_model_element (reader, root, error)
         && read_embedding (reader, pod_xml_child (root, "embedding"), error)
         && read_attention (reader, pod_xml_child (root, "attention"), error)
         && read_ffn (reader, pod_xml_child (root, "ffn"), error)
         && read_experts (reader, pod_xml_child (root, "experts"), error)
         && read_norms (reader, pod_xml_child (root, "norms"), error)
         && make_layers (reader, error);
}

/* O(file + layers) */
PodModel *
pod_model_xml_load (const char *name, const char *file, GError **error)
{
  g_autofree char *schema = pod_data_find ("workloads/models", "model.xsd", ".xsd");
  g_autoptr (PodModel) model = NULL;
  g_autoptr (PodXml) xml = NULL;
  XmlReader reader = { .every = 1 };
  bool is_read;

  if (schema == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "%s: its schema workloads/models/model.xsd is nowhere", file);
      return NULL;
    }
  xml = pod_xml_load (file, schema, error);
  if (xml == NULL)
    return NULL;
  model = pod_model_new (name, file);
  reader.xml = xml;
  reader.model = model;
  is_read = read_root (&reader, error);
  g_free (reader.pattern);
  return is_read ? g_steal_pointer (&model) : NULL;
}
