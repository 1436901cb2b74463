#include "parallel/mesh-tensors-private.h"

#include <string.h>

#include "base/error.h"

/* Names and letters as in How to Scale Your Model, "Transformer math": B batch, S sequence, D model
 * width, F FFN width, N query heads, K KV heads, H head size, V vocabulary, E experts, L layers. */
const PodMeshRole pod_mesh_roles[POD_N_MESH_TENSORS] = {
  [POD_MESH_IN] = { "In", "BSD", "S", 0, false },
  [POD_MESH_W_IN] = { "W_in", "LDF", "L", 'F', true },
  [POD_MESH_W_GATE] = { "W_gate", "LDF", "L", 'F', true },
  [POD_MESH_W_UP] = { "W_up", "LDF", "L", 'F', true },
  [POD_MESH_W_OUT] = { "W_out", "LFD", "L", 'F', true },
  [POD_MESH_WQ] = { "Wq", "LDNH", "LH", 'N', true },
  [POD_MESH_WK] = { "Wk", "LDKH", "LH", 'K', true },
  [POD_MESH_WV] = { "Wv", "LDKH", "LH", 'K', true },
  [POD_MESH_WO] = { "Wo", "LNHD", "LH", 'N', true },
  [POD_MESH_EMBEDDING] = { "embedding", "VD", "", 'V', true },
  [POD_MESH_UNEMBEDDING] = { "unembedding", "DV", "", 'V', true },
  [POD_MESH_W_EXPERT] = { "W_expert", "LEDF", "L", 'F', true },
};

/* ---- which tensor ---- */

/* "W_Q", "Wq" and "wq" are one. */
static bool
is_same_name (const char *a, const char *b)
{
  for (;; a++, b++)
    {
      while (*a == '_')
        a++;
      while (*b == '_')
        b++;
      if (g_ascii_tolower (*a) != g_ascii_tolower (*b))
        return false;
      if (*a == '\0')
        return true;
    }
}

static bool
has_dense_ffn (const PodModel *model)
{
  for (unsigned k = 0; k < model->n_kinds; k++)
    if (pod_layout_dense_ffn (model, &model->kinds[k]) > 0)
      return true;
  return false;
}

/* Why the model has no such tensor, NULL: it has. */
static const char *
absence (const PodModel *model, PodMeshTensor tensor)
{
  switch (tensor)
    {
    case POD_MESH_W_IN:
    case POD_MESH_W_UP:
    case POD_MESH_W_OUT:
      return has_dense_ffn (model) ? NULL : "its FFNs are experts: say W_expert";
    case POD_MESH_W_GATE:
      return !has_dense_ffn (model) ? "its FFNs are experts: say W_expert"
             : !model->is_ffn_gated ? "its FFN is not gated: say W_in and W_out"
                                    : NULL;
    case POD_MESH_WQ:
    case POD_MESH_WK:
    case POD_MESH_WV:
    case POD_MESH_WO:
      if (model->attention == POD_ATTENTION_NONE)
        return "it has no attention";
      return model->attention == POD_ATTENTION_MLA && tensor != POD_MESH_WO
                 ? "its attention is latent: say Wo"
                 : NULL;
    case POD_MESH_EMBEDDING:
    case POD_MESH_UNEMBEDDING:
      return model->vocab == 0 ? "it has no vocabulary" : NULL;
    case POD_MESH_W_EXPERT:
      return model->n_experts == 0 ? "it has no experts" : NULL;
    case POD_MESH_IN:
    case POD_N_MESH_TENSORS:
      break;
    }
  return NULL;
}

static bool
find_tensor (const char *name, const PodModel *model, PodMeshTensor *out, GError **error)
{
  g_autoptr (GString) known = g_string_new (NULL);
  const char *why;

  for (*out = 0; *out < POD_N_MESH_TENSORS; (*out)++)
    if (is_same_name (name, pod_mesh_roles[*out].name))
      break;
  if (*out < POD_N_MESH_TENSORS)
    {
      why = absence (model, *out);
      if (why != NULL)
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--shard: %s has no %s: %s", model->name,
                     pod_mesh_roles[*out].name, why);
      return why == NULL;
    }
  for (unsigned t = 0; t < POD_N_MESH_TENSORS; t++)
    if (absence (model, t) == NULL)
      g_string_append_printf (known, "%s%s", known->len > 0 ? ", " : "", pod_mesh_roles[t].name);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "--shard: '%.40s' is no tensor of %s; its tensors are %s", name, model->name,
               known->str);
  return false;
}

/* ---- its dimensions ---- */

/* "B, S, D" */
static char *
dims_text (const char *dims)
{
  GString *text = g_string_new (NULL);

  for (; *dims != '\0'; dims++)
    g_string_append_printf (text, "%s%c", text->len > 0 ? ", " : "", *dims);
  return g_string_free (text, FALSE);
}

static bool
check_dims (const PodMeshRole *role, const PodArray *array, GError **error)
{
  g_autofree char *all = dims_text (role->dims);

  for (unsigned d = 0; d < array->n_dims; d++)
    if (array->dim[d] == 0)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                     "--shard: %s: dimensions are letters, not sizes: %s", role->name, all);
        return false;
      }
    else if (strchr (role->dims, array->dim[d]) == NULL)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                     "--shard: %s has no dimension %c; its dimensions are %s", role->name,
                     array->dim[d], all);
        return false;
      }
  for (const char *dim = role->dims; *dim != '\0'; dim++)
    if (strchr (role->optional, *dim) == NULL && pod_array_find (array, *dim) < 0)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                     "--shard: %s: its dimension %c is missing; its dimensions are %s", role->name,
                     *dim, all);
        return false;
      }
  return true;
}

/* One "W_in=[D_X, F_Y]". */
static bool
parse_tensor (const char *text, const PodModel *model, PodMeshShardings *out, GError **error)
{
  g_autofree char *array = g_strdup (text);
  char *equals = strchr (array, '=');
  PodEinsum einsum;
  PodMeshTensor tensor;

  if (equals == NULL || memchr (array, '[', (size_t) (equals - array)) != NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--shard: '%.40s' is not TENSOR=[DIM_AXES, …], as in W_in=[D_X, F_Y]", text);
      return false;
    }
  *equals = '\0';
  if (!find_tensor (g_strstrip (array), model, &tensor, error))
    return false;
  if (out->is_said[tensor])
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--shard: %s stands twice",
                   pod_mesh_roles[tensor].name);
      return false;
    }
  if (!pod_einsum_parse (equals + 1, &out->mesh, &einsum, error))
    {
      g_prefix_error (error, "--shard: %s: ", pod_mesh_roles[tensor].name);
      return false;
    }
  if (einsum.is_matmul || einsum.lhs.unreduced != 0 || einsum.lhs.has_dtype
      || einsum.lhs.name[0] != '\0')
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--shard: %s: expected dimensions alone, as in [D_X, F_Y]",
                   pod_mesh_roles[tensor].name);
      return false;
    }
  if (!check_dims (&pod_mesh_roles[tensor], &einsum.lhs, error))
    return false;
  out->said[tensor] = einsum.lhs;
  g_strlcpy (out->said[tensor].name, pod_mesh_roles[tensor].name, POD_MAX_ARRAY_NAME);
  out->is_said[tensor] = true;
  return true;
}

bool
pod_mesh_tensors_parse (const char *text, const PodModel *model, PodMeshShardings *out,
                        GError **error)
{
  g_auto (GStrv) words = g_strsplit (text, ";", -1);

  if (!g_utf8_validate (text, -1, NULL))
    {
      g_set_error_literal (error, POD_ERROR, POD_ERROR_INVALID, "--shard: no UTF-8 text");
      return false;
    }
  if (words[0] == NULL)
    return parse_tensor ("", model, out, error);
  for (char **word = words; *word != NULL; word++)
    if (!parse_tensor (g_strstrip (*word), model, out, error))
      return false;
  return true;
}

/* ---- what divides ---- */

char
pod_array_cut_by (const PodArray *array, unsigned axis)
{
  for (unsigned d = 0; d < array->n_dims; d++)
    if (pod_array_axes_of (array, array->dim[d]) >> axis & 1)
      return array->dim[d];
  return 0;
}

unsigned
pod_array_axes_of (const PodArray *array, char dim)
{
  const int d = pod_array_find (array, dim);
  unsigned mask = 0;

  for (unsigned i = 0; d >= 0 && i < array->axes[d].n; i++)
    mask |= 1U << array->axes[d].axis[i];
  return mask;
}

/* The size of a dimension in layers of a kind, 0: not known here (batch and sequence are options of
 * the run, layers are dealt to stages, a vocabulary is padded). */
static uint64_t
size_of (const PodModel *model, const PodLayerKind *kind, PodMeshTensor tensor, char dim)
{
  switch (dim)
    {
    case 'D':
      return model->hidden;
    case 'F':
      return tensor == POD_MESH_W_EXPERT ? model->moe_ffn : pod_layout_dense_ffn (model, kind);
    case 'N':
      return kind->heads;
    case 'K':
      return kind->kv_heads;
    case 'H':
      return kind->head_dim;
    case 'E':
      return model->n_experts;
    default:
      return 0;
    }
}

static bool
check_size (const PodMeshShardings *shardings, PodMeshTensor tensor, unsigned d, uint64_t size,
            GError **error)
{
  const PodArray *array = &shardings->said[tensor];
  const unsigned mask = pod_array_axes_of (array, array->dim[d]);
  const uint64_t parts = pod_array_mesh_size (&shardings->mesh, mask);
  const uint64_t below = size - size % parts;
  g_autofree char *axes = NULL;

  if (size % parts == 0)
    return true;
  axes = pod_array_mesh_mask_text (&shardings->mesh, mask);
  g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
               "--shard: %s: dimension %c (%" G_GUINT64_FORMAT
               ") does not divide over %s (%" G_GUINT64_FORMAT "): %" G_GUINT64_FORMAT
               " are left over; the next sizes that do are %" G_GUINT64_FORMAT
               " and %" G_GUINT64_FORMAT,
               array->name, array->dim[d], size, axes, parts, size % parts, MAX (below, parts),
               MAX (below, parts) + parts);
  return false;
}

bool
pod_mesh_tensors_check_sizes (const PodMeshShardings *shardings, const PodModel *model,
                              GError **error)
{
  for (unsigned t = 0; t < POD_N_MESH_TENSORS; t++)
    for (unsigned d = 0; shardings->is_said[t] && d < shardings->said[t].n_dims; d++)
      for (unsigned k = 0; k < model->n_kinds; k++)
        if (!check_size (shardings, t, d,
                         size_of (model, &model->kinds[k], t, shardings->said[t].dim[d]), error))
          return false;
  return true;
}

/* ---- how the layout cuts them ---- */

PodArray
pod_array_of (const char *name, const char *dims)
{
  PodArray array = { .n_dims = (unsigned) strlen (dims) };

  g_assert (array.n_dims <= POD_MAX_TENSOR_DIMS);
  memcpy (array.dim, dims, array.n_dims);
  g_strlcpy (array.name, name, sizeof array.name);
  return array;
}

void
pod_mesh_cut (const PodMeshShardings *shardings, PodArray *array, char dim, unsigned mask)
{
  const int d = pod_array_find (array, dim);

  g_assert (d >= 0);
  for (unsigned i = shardings->mesh.n_axes; i-- > 0;)
    if (mask >> shardings->nest[i] & 1)
      array->axes[d].axis[array->axes[d].n++] = shardings->nest[i];
}

uint32_t
pod_mesh_kv_parts (const PodMeshShardings *shardings, const PodModel *model)
{
  const uint32_t tp = shardings->layout.degree[POD_AXIS_TP];
  uint64_t kv_heads = 0;

  for (unsigned k = 0; k < model->n_kinds; k++)
    kv_heads = MAX (kv_heads, model->kinds[k].kv_heads);
  return kv_heads > 0 && kv_heads < tp ? (uint32_t) kv_heads : tp;
}

unsigned
pod_mesh_kv_axes (const PodMeshShardings *shardings, const PodModel *model)
{
  uint32_t left = pod_mesh_kv_parts (shardings, model);
  unsigned mask = 0;

  for (unsigned i = shardings->mesh.n_axes; i-- > 0 && left > 1;)
    if (shardings->of_kind[POD_AXIS_TP] >> shardings->nest[i] & 1)
      {
        if (left % shardings->mesh.size[shardings->nest[i]] != 0)
          break;
        left /= shardings->mesh.size[shardings->nest[i]];
        mask |= 1U << shardings->nest[i];
      }
  return left == 1 ? mask : shardings->of_kind[POD_AXIS_TP];
}

/* Without the layers, which pp deals out, and of those that may be left out what the book prints.
 */
PodArray
pod_mesh_tensor (const PodMeshShardings *shardings, const PodModel *model, PodMeshTensor tensor)
{
  const PodMeshRole *role = &pod_mesh_roles[tensor];
  const unsigned *of_kind = shardings->of_kind;
  const bool has_layers = role->dims[0] == 'L';
  const bool is_cut = has_layers && of_kind[POD_AXIS_PP] != 0 && shardings->is_said[tensor]
                      && pod_array_find (&shardings->said[tensor], 'L') >= 0;
  PodArray array = pod_array_of (role->name, role->dims + (has_layers && !is_cut));
  const unsigned weights
      = of_kind[POD_AXIS_FSDP] == 0 ? 0 : of_kind[POD_AXIS_FSDP] | of_kind[POD_AXIS_CP];

  if (is_cut)
    pod_mesh_cut (shardings, &array, 'L', of_kind[POD_AXIS_PP]);
  if (tensor == POD_MESH_IN)
    {
      pod_mesh_cut (shardings, &array, 'B', of_kind[POD_AXIS_DP] | of_kind[POD_AXIS_FSDP]);
      pod_mesh_cut (shardings, &array, 'S',
                    of_kind[POD_AXIS_CP]
                        | (shardings->layout.is_sequence_parallel ? of_kind[POD_AXIS_TP] : 0));
    }
  else if (tensor == POD_MESH_W_EXPERT)
    {
      pod_mesh_cut (shardings, &array, 'E', shardings->ep_axes);
      pod_mesh_cut (shardings, &array, 'D', shardings->expert_fsdp_axes);
      pod_mesh_cut (shardings, &array, 'F', shardings->etp_axes);
    }
  else
    {
      pod_mesh_cut (shardings, &array, 'D', weights);
      pod_mesh_cut (shardings, &array, role->tp,
                    role->tp == 'K' ? pod_mesh_kv_axes (shardings, model) : of_kind[POD_AXIS_TP]);
    }
  return array;
}

char *
pod_mesh_array_to_text (const PodMeshShardings *shardings, const PodArray *array)
{
  PodArray nameless = *array;
  g_autofree char *text = NULL;

  nameless.name[0] = '\0';
  text = pod_array_to_text (&nameless, &shardings->mesh);
  return g_strdup_printf ("%s=%s", array->name, text);
}
