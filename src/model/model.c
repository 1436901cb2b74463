#include "model/model.h"

#include <stdarg.h>
#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "model/model-private.h"

static const char models_folder[] = "workloads/models";

PodModel *
pod_model_new (const char *name, const char *file)
{
  PodModel *model = g_new0 (PodModel, 1);

  model->name = g_strdup (name);
  model->file = g_strdup (file);
  model->attention = POD_ATTENTION_GQA;
  model->norm = POD_NORM_RMS;
  model->norms_per_layer = 2;
  model->has_final_norm = true;
  model->notes = g_ptr_array_new_with_free_func (g_free);
  return model;
}

/* NULL is fine. O(notes) */
void
pod_model_free (PodModel *model)
{
  if (model == NULL)
    return;
  g_free (model->name);
  g_free (model->file);
  g_free (model->architecture);
  g_free (model->kinds);
  g_free (model->layer_kind);
  g_ptr_array_unref (model->notes);
  g_free (model);
}

static gpointer
copy_text (gconstpointer text, G_GNUC_UNUSED gpointer user_data)
{
  return g_strdup (text);
}

PodModel *
pod_model_copy (const PodModel *model)
{
  PodModel *copy;

  g_return_val_if_fail (model != NULL, NULL);

  copy = g_memdup2 (model, sizeof *model);
  copy->name = g_strdup (model->name);
  copy->file = g_strdup (model->file);
  copy->architecture = g_strdup (model->architecture);
  copy->kinds = g_memdup2 (model->kinds, model->n_kinds * sizeof *model->kinds);
  copy->layer_kind = g_memdup2 (model->layer_kind, model->n_layers * sizeof *model->layer_kind);
  copy->notes = g_ptr_array_copy (model->notes, copy_text, NULL);
  g_ptr_array_set_free_func (copy->notes, g_free);
  return copy;
}

void
pod_model_note (PodModel *model, const char *format, ...)
{
  g_autofree char *note = NULL;
  va_list arguments;

  va_start (arguments, format);
  note = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  if (!g_ptr_array_find_with_equal_func (model->notes, note, g_str_equal, NULL))
    g_ptr_array_add (model->notes, g_steal_pointer (&note));
}

static bool
kinds_equal (const PodLayerKind *a, const PodLayerKind *b)
{
  return a->is_moe == b->is_moe && a->ffn == b->ffn && a->window == b->window
         && a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim
         && a->v_head_dim == b->v_head_dim && a->is_chunked == b->is_chunked
         && a->is_sparse == b->is_sparse && a->is_v_from_k == b->is_v_from_k;
}

bool
pod_model_take_layers (PodModel *model, const PodLayerKind *layers, uint64_t n_layers,
                       GError **error)
{
  g_autofree PodLayerKind *kinds = g_new0 (PodLayerKind, POD_MODEL_MAX_KINDS);
  g_autofree uint8_t *layer_kind = g_new0 (uint8_t, n_layers);
  unsigned n_kinds = 0;

  for (uint64_t i = 0; i < n_layers; i++)
    {
      unsigned kind = 0;

      while (kind < n_kinds && !kinds_equal (&kinds[kind], &layers[i]))
        kind++;
      if (kind == POD_MODEL_MAX_KINDS)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "%s: more than %d kinds of layer",
                       model->file, POD_MODEL_MAX_KINDS);
          return false;
        }
      if (kind == n_kinds)
        kinds[n_kinds++] = layers[i];
      layer_kind[i] = (uint8_t) kind;
    }

  g_free (model->kinds);
  g_free (model->layer_kind);
  model->kinds = g_memdup2 (kinds, n_kinds * sizeof *kinds);
  model->n_kinds = n_kinds;
  model->layer_kind = g_steal_pointer (&layer_kind);
  model->n_layers = n_layers;
  return true;
}

GPtrArray *
pod_model_list (void)
{
  g_autoptr (GPtrArray) json = pod_data_list (models_folder, ".json");
  g_autoptr (GPtrArray) xml = pod_data_list (models_folder, ".xml");
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  guint j = 0;
  guint x = 0;

  while (j < json->len || x < xml->len)
    {
      int order = j == json->len ? 1 : x == xml->len ? -1 : strcmp (json->pdata[j], xml->pdata[x]);

      g_ptr_array_add (names, g_strdup (order <= 0 ? json->pdata[j] : xml->pdata[x]));
      j += order <= 0;
      x += order >= 0;
    }
  return names;
}

/* The file that @name stands for: a model of the library before a file of that very name, so that a
 * folder "gpt2" here does not hide gpt2.json; a folder with a config.json, as Hugging Face
 * checkpoints are kept, is that file. Returns: (transfer full) (nullable) */
static char *
find_file (const char *name)
{
  static const char *const suffixes[] = { ".json", ".xml" };
  g_autofree char *file = NULL;

  if (strchr (name, '/') == NULL)
    for (size_t i = 0; i < G_N_ELEMENTS (suffixes) && file == NULL; i++)
      {
        g_autofree char *base = g_strconcat (name, suffixes[i], NULL);

        file = pod_data_find (models_folder, base, suffixes[i]);
      }
  if (file == NULL)
    file = pod_data_find (models_folder, name, ".xml");
  if (file == NULL && g_file_test (name, G_FILE_TEST_IS_DIR))
    {
      file = g_build_filename (name, "config.json", NULL);
      if (!g_file_test (file, G_FILE_TEST_EXISTS))
        g_clear_pointer (&file, g_free);
    }
  return g_steal_pointer (&file);
}

/* What a model is called that was given as a file: "gpt2" for ".../gpt2.json". Returns: (transfer
 * full) */
static char *
name_of_file (const char *file)
{
  char *base = g_path_get_basename (file);

  if (g_str_has_suffix (base, ".json"))
    base[strlen (base) - strlen (".json")] = '\0';
  else if (g_str_has_suffix (base, ".xml"))
    base[strlen (base) - strlen (".xml")] = '\0';
  return base;
}

PodModel *
pod_model_load (const char *name_or_file, GError **error)
{
  g_autofree char *file = NULL;
  g_autofree char *name = NULL;
  g_autoptr (PodModel) model = NULL;

  g_return_val_if_fail (name_or_file != NULL, NULL);

  file = find_file (name_or_file);
  if (file == NULL)
    {
      g_autoptr (GPtrArray) names = pod_model_list ();
      const char *nearest = pod_data_nearest (names, name_or_file);

      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "%s: no such model, neither a file nor a name in %s%s%s%s", name_or_file,
                   models_folder, nearest != NULL ? "; did you mean " : "",
                   nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
      return NULL;
    }
  name = name_of_file (file);
  model = g_str_has_suffix (file, ".xml") ? pod_model_xml_load (name, file, error)
                                          : pod_hf_config_load (name, file, error);
  if (model == NULL || !pod_model_check (model, error))
    return NULL;
  return g_steal_pointer (&model);
}

static bool G_GNUC_PRINTF (3, 4)
    refuse (const PodModel *model, GError **error, const char *format, ...)
{
  g_autofree char *message = NULL;
  va_list arguments;

  va_start (arguments, format);
  message = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: %s", model->file, message);
  return false;
}

static bool
check_heads (const PodModel *model, const PodLayerKind *kind, GError **error)
{
  if (kind->heads == 0)
    return refuse (model, error, "heads must be at least 1, got 0");
  if (kind->kv_heads == 0)
    return refuse (model, error,
                   "kv_heads must be at least 1, got 0 (heads %% kv_heads must be 0)");
  if (kind->heads % kind->kv_heads != 0)
    return refuse (model, error,
                   "heads %% kv_heads must be 0: %" G_GUINT64_FORMAT
                   " heads do not divide into %" G_GUINT64_FORMAT
                   " KV heads (remainder %" G_GUINT64_FORMAT ")",
                   kind->heads, kind->kv_heads, kind->heads % kind->kv_heads);
  if (kind->head_dim == 0 || kind->v_head_dim == 0)
    return refuse (model, error, "head_dim must be at least 1, got 0");
  if (model->attention == POD_ATTENTION_MLA
      && (model->kv_lora == 0 || kind->head_dim != model->qk_nope + model->qk_rope
          || kind->v_head_dim != model->v_head))
    return refuse (
        model, error,
        "MLA needs kv_lora, qk_nope + qk_rope and v_head of at least 1, got %" G_GUINT64_FORMAT
        ", %" G_GUINT64_FORMAT " + %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT,
        model->kv_lora, model->qk_nope, model->qk_rope, model->v_head);
  return true;
}

static bool
check_ffn (const PodModel *model, const PodLayerKind *kind, GError **error)
{
  if (!kind->is_moe)
    return kind->ffn != 0 || refuse (model, error, "ffn must be at least 1, got 0");
  if (model->n_experts == 0)
    return refuse (model, error, "experts must be at least 1 where layers are MoE, got 0");
  if (model->top_k == 0 || model->top_k > model->n_experts)
    return refuse (model, error,
                   "top_k must be 1 to experts (%" G_GUINT64_FORMAT "), got %" G_GUINT64_FORMAT,
                   model->n_experts, model->top_k);
  if (model->moe_ffn == 0)
    return refuse (model, error, "moe_ffn must be at least 1, got 0");
  return true;
}

bool
pod_model_check (const PodModel *model, GError **error)
{
  double n_params;

  g_return_val_if_fail (model != NULL, false);

  if (model->n_layers == 0 || model->n_layers > POD_MODEL_MAX_LAYERS)
    return refuse (model, error, "layers must be 1 to %d, got %" G_GUINT64_FORMAT,
                   POD_MODEL_MAX_LAYERS, model->n_layers);
  if (model->hidden == 0)
    return refuse (model, error, "hidden must be at least 1, got 0");
  for (unsigned i = 0; i < model->n_kinds; i++)
    {
      if (model->attention != POD_ATTENTION_NONE && !check_heads (model, &model->kinds[i], error))
        return false;
      if (!check_ffn (model, &model->kinds[i], error))
        return false;
    }
  if (model->n_mtp > 0
      && (model->vocab == 0 || model->norm == POD_NORM_NONE || model->n_mtp > model->n_layers))
    return refuse (model, error,
                   "multi-token prediction needs a vocabulary, norms and at most as many modules as"
                   " there are layers, got %" G_GUINT64_FORMAT,
                   model->n_mtp);
  if (model->has_learned_positions && model->max_positions == 0)
    return refuse (model, error,
                   "max_positions must be at least 1 where positions are learned, got 0");
  if ((model->index_heads == 0) != (model->index_head_dim == 0))
    return refuse (model, error,
                   "an indexer needs heads and a head size, got %" G_GUINT64_FORMAT
                   " and %" G_GUINT64_FORMAT,
                   model->index_heads, model->index_head_dim);

  /* 1e18 is a thousand times what 10^6 chips of 192 GB hold; below it no 64-bit count overflows. */
  n_params = pod_model_params_estimate (model);
  if (!(n_params < 1e18))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                   "%s: about %.1e parameters, the limit is 1e18", model->file, n_params);
      return false;
    }
  return true;
}
