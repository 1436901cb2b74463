#include "parallel/mesh-shardings.h"

#include "base/table.h"
#include "parallel/mesh-tensors-private.h"

/* The products of a layer out of the shardings of its tensors, and their collectives: what
 * `podsim run --explain` shows of a mesh. */

/* A weight between two activations: what goes in and comes out, as it lies. */
typedef struct
{
  const char *weight; /* with the number of experts' second matrix */
  PodArray in;
  PodArray w;
  PodArray out;
  unsigned replicas; /* axes along which the weight is the same, and its tokens are not */
} Linear;

static unsigned
data_axes (const PodMeshShardings *s)
{
  return s->of_kind[POD_AXIS_DP] | s->of_kind[POD_AXIS_FSDP];
}

/* An activation between two matmuls: batch and sequence as they are cut everywhere, @inner cut by
 * @axes. */
static PodArray
activation (const PodMeshShardings *s, const char *name, const char *dims, char inner,
            unsigned axes)
{
  PodArray array = pod_array_of (name, dims);

  pod_mesh_cut (s, &array, 'B', data_axes (s));
  pod_mesh_cut (s, &array, 'S', s->of_kind[POD_AXIS_CP]);
  pod_mesh_cut (s, &array, inner, axes);
  return array;
}

/* The axes of a stage along which there are copies of an expert. */
static unsigned
expert_copies (const PodMeshShardings *s)
{
  return s->used & ~s->of_kind[POD_AXIS_PP] & ~s->ep_axes & ~s->etp_axes;
}

/* Tokens of experts: C of each, cut over etp before and after its matrices, and over the copies. */
static PodArray
expert_tokens (const PodMeshShardings *s, const char *name, char inner, bool is_inside)
{
  const char dims[] = { 'E', 'C', inner, '\0' };
  const unsigned copies = expert_copies (s);
  PodArray array = pod_array_of (name, dims);

  pod_mesh_cut (s, &array, 'E', s->ep_axes);
  pod_mesh_cut (s, &array, 'C', is_inside ? copies : copies | s->etp_axes);
  if (is_inside)
    pod_mesh_cut (s, &array, inner, s->etp_axes);
  return array;
}

/* A tensor as it was said, axes of one device and dimensions that were left out whole, or as the
 * layout cuts it. */
static PodArray
tensor_of (const PodMeshShardings *s, const PodModel *model, PodMeshTensor tensor)
{
  PodArray array = pod_mesh_tensor (s, model, tensor);

  for (unsigned d = 0; s->is_said[tensor] && d < array.n_dims; d++)
    {
      const int said = pod_array_find (&s->said[tensor], array.dim[d]);
      const PodAxisList *axes = &s->said[tensor].axes[MAX (said, 0)];

      array.axes[d].n = 0;
      for (unsigned i = 0; said >= 0 && i < axes->n; i++)
        if (s->used >> axes->axis[i] & 1)
          array.axes[d].axis[array.axes[d].n++] = axes->axis[i];
    }
  return array;
}

/* Cuts KV heads over all of tp: where it has more ranks they are repeated. */
static void
repeat_heads (const PodMeshShardings *s, PodArray *array)
{
  const unsigned d = (unsigned) pod_array_find (array, 'K');
  const unsigned others = pod_array_axes_of (array, 'K') & ~s->of_kind[POD_AXIS_TP];

  array->axes[d].n = 0;
  pod_mesh_cut (s, array, 'K', s->of_kind[POD_AXIS_TP] | others);
}

/* The same array without a dimension of layers. */
static PodArray
of_a_layer (const PodArray *array)
{
  PodArray out = *array;

  if (array->dim[0] != 'L')
    return out;
  out.n_dims--;
  for (unsigned d = 0; d < out.n_dims; d++)
    {
      out.dim[d] = array->dim[d + 1];
      out.axes[d] = array->axes[d + 1];
    }
  return out;
}

static void
add_product (GArray *list, const char *name, const PodArray *lhs, const PodArray *rhs,
             const PodArray *out)
{
  PodMeshMatmul matmul = { .name = g_strdup (name), .lhs = *lhs, .rhs = *rhs, .out = *out };
  const PodSharding l = pod_array_sharding (lhs);
  const PodSharding r = pod_array_sharding (rhs);
  const PodSharding o = pod_array_sharding (out);
  g_autoptr (GError) error = NULL;

  if (!pod_sharded_matmul (&l, &r, &o, &matmul.comm, &error))
    g_error ("shardings of %s: %s", name, error->message);
  g_array_append_val (list, matmul);
}

static PodArray
gradient_of (const PodArray *array)
{
  PodArray out = *array;

  g_snprintf (out.name, sizeof out.name, "d%.*s", POD_MAX_ARRAY_NAME - 2, array->name);
  return out;
}

/* Copies of a weight beside tp. */
static unsigned
replica_axes (const PodMeshShardings *s)
{
  return s->of_kind[POD_AXIS_DP] | (s->of_kind[POD_AXIS_FSDP] == 0 ? s->of_kind[POD_AXIS_CP] : 0);
}

/* Forward, the gradient of the input, and that of the weight, which ZeRO-1 and 2 cut over the
 * copies too. */
static void
add_linear (const PodMeshShardings *s, GArray *list, const Linear *linear)
{
  const PodArray w = of_a_layer (&linear->w);
  const PodArray d_in = gradient_of (&linear->in);
  PodArray d_w = gradient_of (&w);
  const PodArray d_out = gradient_of (&linear->out);
  g_autofree char *of_input = g_strdup_printf ("%s dX", linear->weight);
  g_autofree char *of_weight = g_strdup_printf ("%s dW", linear->weight);

  if (s->layout.zero_stage > 0)
    pod_mesh_cut (s, &d_w, 'D', linear->replicas);
  add_product (list, linear->weight, &linear->in, &w, &linear->out);
  add_product (list, of_input, &d_out, &w, &d_in);
  add_product (list, of_weight, &linear->in, &d_out, &d_w);
}

static void
add_attention (const PodMeshShardings *s, const PodModel *model, GArray *list)
{
  const unsigned tp = s->of_kind[POD_AXIS_TP];
  const PodArray in = tensor_of (s, model, POD_MESH_IN);
  Linear q = { "Wq", in, tensor_of (s, model, POD_MESH_WQ), activation (s, "Q", "BSNH", 'N', tp),
               replica_axes (s) };
  Linear o = { "Wo", activation (s, "Attn", "BSNH", 'N', tp), tensor_of (s, model, POD_MESH_WO), in,
               replica_axes (s) };

  if (model->attention == POD_ATTENTION_NONE)
    return;
  g_strlcpy (o.out.name, "Out", sizeof o.out.name);
  if (model->attention == POD_ATTENTION_GQA)
    add_linear (s, list, &q);
  for (unsigned t = POD_MESH_WK; t <= POD_MESH_WV && model->attention == POD_ATTENTION_GQA; t++)
    {
      Linear kv
          = { pod_mesh_roles[t].name, in, tensor_of (s, model, t),
              activation (s, t == POD_MESH_WK ? "K" : "V", "BSKH", 'K', tp), replica_axes (s) };

      kv.w = of_a_layer (&kv.w);
      repeat_heads (s, &kv.w);
      add_linear (s, list, &kv);
    }
  add_linear (s, list, &o);
}

static void
add_ffn (const PodMeshShardings *s, const PodModel *model, GArray *list)
{
  const PodArray in = tensor_of (s, model, POD_MESH_IN);
  const PodArray tmp = activation (s, "Tmp", "BSF", 'F', s->of_kind[POD_AXIS_TP]);
  const PodMeshTensor first
      = model->is_ffn_gated && !s->is_said[POD_MESH_W_IN] ? POD_MESH_W_GATE : POD_MESH_W_IN;
  const PodMeshTensor last = first == POD_MESH_W_GATE ? POD_MESH_W_UP : first;
  Linear out = { "W_out", tmp, tensor_of (s, model, POD_MESH_W_OUT), in, replica_axes (s) };
  bool is_dense = false;

  for (unsigned k = 0; k < model->n_kinds; k++)
    is_dense |= pod_layout_dense_ffn (model, &model->kinds[k]) > 0;
  if (!is_dense)
    return;
  for (unsigned t = first; t <= last; t++)
    {
      Linear linear
          = { pod_mesh_roles[t].name, in, tensor_of (s, model, t), tmp, replica_axes (s) };

      add_linear (s, list, &linear);
    }
  g_strlcpy (out.out.name, "Out", sizeof out.out.name);
  add_linear (s, list, &out);
}

static void
add_experts (const PodMeshShardings *s, const PodModel *model, GArray *list)
{
  const PodArray w = tensor_of (s, model, POD_MESH_W_EXPERT);
  const PodArray tmp = expert_tokens (s, "Tmp", 'F', true);
  const unsigned replicas = expert_copies (s) & ~s->expert_fsdp_axes;
  Linear in = { "W_expert in", expert_tokens (s, "Routed", 'D', false), w, tmp, replicas };
  Linear out = { "W_expert out", tmp, w, expert_tokens (s, "Back", 'D', false), replicas };

  if (model->n_experts == 0)
    return;
  add_linear (s, list, &in);
  add_linear (s, list, &out);
}

static void
add_head (const PodMeshShardings *s, const PodModel *model, GArray *list)
{
  Linear head = { "unembedding", tensor_of (s, model, POD_MESH_IN),
                  tensor_of (s, model, POD_MESH_UNEMBEDDING),
                  activation (s, "Logits", "BSV", 'V', s->of_kind[POD_AXIS_TP]), replica_axes (s) };

  if (model->vocab > 0)
    add_linear (s, list, &head);
}

static void
matmul_clear (gpointer data)
{
  g_free (((PodMeshMatmul *) data)->name);
}

GArray *
pod_mesh_shardings_matmuls (const PodMeshShardings *shardings, const PodModel *model)
{
  GArray *list = g_array_new (FALSE, FALSE, sizeof (PodMeshMatmul));

  g_array_set_clear_func (list, matmul_clear);
  add_attention (shardings, model, list);
  add_ffn (shardings, model, list);
  add_experts (shardings, model, list);
  add_head (shardings, model, list);
  return list;
}

/* ---- in words ---- */

/* Whether an operand is cut by the axis on a dimension that is summed. */
static bool
is_summed (const PodArray *operand, const PodArray *out, unsigned axis)
{
  const char dim = pod_array_cut_by (operand, axis);

  return dim != 0 && pod_array_find (out, dim) < 0;
}

unsigned
pod_mesh_matmul_case (const PodMeshMatmul *matmul, unsigned axis)
{
  const PodShardedMatmul *comm = &matmul->comm;

  if ((comm->reduce_scatter | comm->all_reduce) >> axis & 1)
    return 3;
  if ((comm->gather_lhs >> axis & 1 && is_summed (&matmul->lhs, &matmul->out, axis))
      || (comm->gather_rhs >> axis & 1 && is_summed (&matmul->rhs, &matmul->out, axis)))
    return 2;
  return (comm->gather_lhs | comm->gather_rhs) >> axis & 1 ? 4 : 1;
}

/* "X: case 2, all-gather W_in" for those of @mask that are in one case. */
static void
append_case (GString *text, const PodMeshShardings *s, const PodMeshMatmul *matmul, unsigned mask,
             const char *what, const char *array)
{
  for (unsigned number = 1; number <= 4; number++)
    {
      unsigned in_case = 0;
      g_autofree char *axes = NULL;

      for (unsigned a = 0; a < s->mesh.n_axes; a++)
        if (mask >> a & 1 && pod_mesh_matmul_case (matmul, a) == number)
          in_case |= 1U << a;
      axes = pod_array_mesh_mask_text (&s->mesh, in_case);
      if (in_case != 0)
        g_string_append_printf (text, "%s%s: case %u, %s %s", text->len > 0 ? "; " : "", axes,
                                number, what, array);
    }
}

static char *
comm_text (const PodMeshShardings *s, const PodMeshMatmul *matmul)
{
  const PodShardedMatmul *comm = &matmul->comm;
  GString *text = g_string_new (NULL);

  append_case (text, s, matmul, comm->gather_lhs, "all-gather", matmul->lhs.name);
  append_case (text, s, matmul, comm->gather_rhs, "all-gather", matmul->rhs.name);
  append_case (text, s, matmul, comm->reduce_scatter, "reduce-scatter", matmul->out.name);
  append_case (text, s, matmul, comm->all_reduce, "all-reduce", matmul->out.name);
  append_case (text, s, matmul, comm->gather_out, "all-gather", matmul->out.name);
  if (text->len == 0)
    g_string_append (text, "case 1, local");
  return g_string_free (text, FALSE);
}

/* What the products do not show of KV heads that several ranks hold. Returns: (transfer full) */
static char *
repeated_text (const PodMeshShardings *s, const PodModel *model)
{
  const uint32_t tp = s->layout.degree[POD_AXIS_TP];
  const uint32_t parts = pod_mesh_kv_parts (s, model);

  if (model->attention != POD_ATTENTION_GQA || parts == tp)
    return g_strdup ("");
  return g_strdup_printf (
      "KV heads: %u over %u ranks, each repeated on %u, which sum the gradients "
      "of Wk and Wv\n",
      parts, tp, tp / parts);
}

char *
pod_mesh_shardings_explain (const PodMeshShardings *shardings, const PodModel *model)
{
  g_autoptr (GArray) matmuls = pod_mesh_shardings_matmuls (shardings, model);
  g_autoptr (PodTable) table
      = pod_table_new ((const char *const[]){ "weight", "product", "axes", NULL });
  g_autofree char *rows = NULL;
  g_autofree char *copies = NULL;

  for (guint i = 0; i < matmuls->len; i++)
    {
      const PodMeshMatmul *matmul = &g_array_index (matmuls, PodMeshMatmul, i);
      g_autofree char *lhs = pod_array_to_text (&matmul->lhs, &shardings->mesh);
      g_autofree char *rhs = pod_array_to_text (&matmul->rhs, &shardings->mesh);
      g_autofree char *out = pod_array_to_text (&matmul->out, &shardings->mesh);
      g_autofree char *product = g_strdup_printf ("%s * %s -> %s", lhs, rhs, out);
      g_autofree char *comm = comm_text (shardings, matmul);

      pod_table_add_row (table, (const char *const[]){ matmul->name, product, comm, NULL });
    }
  rows = pod_table_to_text (table);
  copies = repeated_text (shardings, model);
  return g_strdup_printf (
      "\nshardings: the products of a layer, by the four cases of a sharded matmul\n%s%s", rows,
      copies);
}
