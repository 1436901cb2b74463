#include "parallel/mesh-shardings.h"

#include "base/error.h"
#include "parallel/mesh-tensors-private.h"
#include "parallel/placement-private.h"

/* ---- which parallelism an axis is ---- */

/* What axes cut in the tensors that are said; a mask each. */
typedef struct
{
  unsigned batch; /* of In */
  unsigned sequence;
  unsigned stream; /* In's D */
  unsigned layers;
  unsigned width; /* of dense weights: the FFN's, heads, vocabulary */
  unsigned depth; /* their D */
  unsigned experts;
  unsigned expert_width;
  unsigned expert_depth;
} Uses;

static Uses
collect_uses (const PodMeshShardings *s)
{
  const PodArray *in = &s->said[POD_MESH_IN];
  const PodArray *expert = &s->said[POD_MESH_W_EXPERT];
  Uses uses = { .batch = pod_array_axes_of (in, 'B'),
                .sequence = pod_array_axes_of (in, 'S'),
                .stream = pod_array_axes_of (in, 'D'),
                .experts = pod_array_axes_of (expert, 'E'),
                .expert_width = pod_array_axes_of (expert, 'F'),
                .expert_depth = pod_array_axes_of (expert, 'D') };

  for (unsigned t = 0; t < POD_N_MESH_TENSORS; t++)
    {
      uses.layers |= pod_array_axes_of (&s->said[t], 'L');
      if (!pod_mesh_roles[t].is_weight || t == POD_MESH_W_EXPERT)
        continue;
      uses.depth |= pod_array_axes_of (&s->said[t], 'D');
      uses.width |= pod_array_axes_of (&s->said[t], pod_mesh_roles[t].tp);
    }
  return uses;
}

/* "B of In, D of W_in": what an axis cuts, @except (POD_N_MESH_TENSORS: none) left out. Returns:
 * (transfer full) */
static char *
cuts_text (const PodMeshShardings *s, unsigned axis, PodMeshTensor except)
{
  GString *text = g_string_new (NULL);

  for (unsigned t = 0; t < POD_N_MESH_TENSORS; t++)
    {
      const char dim = t == except ? 0 : pod_array_cut_by (&s->said[t], axis);

      if (dim != 0)
        g_string_append_printf (text, "%s%c of %s", text->len > 0 ? ", " : "", dim,
                                pod_mesh_roles[t].name);
    }
  return g_string_free (text, FALSE);
}

static bool
refuse_axis (const PodMeshShardings *s, unsigned axis, const char *right, GError **error)
{
  g_autofree char *cuts = cuts_text (s, axis, POD_N_MESH_TENSORS);
  const char name = s->mesh.name[axis];
  GString *text = g_string_new (right);

  g_string_replace (text, "%", (const char[]){ name, '\0' }, 0);
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
               "--shard: axis %c cuts %s, which no layout does; right: %s", name,
               *cuts != '\0' ? cuts : "no tensor", text->str);
  g_string_free (text, TRUE);
  return false;
}

/* The axis' name stands for '%' in what would be right. */
static bool
classify_axis (const PodMeshRequest *request, PodMeshShardings *s, const Uses *uses, unsigned axis,
               GError **error)
{
  const unsigned bit = 1U << axis;
  const unsigned width = uses->width | uses->expert_width;
  const unsigned depth = uses->depth | uses->expert_depth;
  const bool is_in_said = s->is_said[POD_MESH_IN];

  if (bit & uses->layers)
    {
      if (bit & (uses->batch | uses->sequence | uses->stream | width | depth | uses->experts))
        return refuse_axis (s, axis, "L alone by % (pp), the others by other axes", error);
      s->kind[axis] = POD_AXIS_PP;
    }
  else if (bit & uses->batch)
    s->kind[axis]
        = bit & (depth | uses->width) || request->zero_stage == 3 ? POD_AXIS_FSDP : POD_AXIS_DP;
  else if (bit & width && !(bit & uses->depth))
    s->kind[axis] = POD_AXIS_TP;
  else if (bit & uses->sequence)
    s->kind[axis] = POD_AXIS_CP;
  else if (bit & depth && !(bit & width) && !is_in_said)
    s->kind[axis] = POD_AXIS_FSDP;
  else if (bit & depth)
    return refuse_axis (s, axis,
                        "In=[B_%, S, D] beside it (fsdp), or the FFN's width and heads of weights "
                        "by %, such as W_in=[D, F_%] (tp)",
                        error);
  else if (bit & uses->experts && !is_in_said)
    s->kind[axis] = request->zero_stage == 3 ? POD_AXIS_FSDP : POD_AXIS_DP;
  else if (bit & uses->experts)
    return refuse_axis (s, axis, "In=[B_%, S, D] beside it: experts get tokens of all their ranks",
                        error);
  else
    return refuse_axis (
        s, axis,
        "In=[B_%, S, D] (dp), with W_in=[D_%, F] (fsdp), W_in=[D, F_%] (tp), In=[B, S_%, D] (cp) "
        "or W_in=[L_%, D, F] (pp); an axis that cuts nothing repeats the work",
        error);
  return true;
}

static bool
classify (const PodMeshRequest *request, PodMeshShardings *s, GError **error)
{
  const Uses uses = collect_uses (s);

  for (unsigned axis = 0; axis < s->mesh.n_axes; axis++)
    {
      if (s->mesh.size[axis] == 1)
        continue;
      if (!classify_axis (request, s, &uses, axis, error))
        return false;
      s->used |= 1U << axis;
      s->of_kind[s->kind[axis]] |= 1U << axis;
    }
  for (unsigned a = 0; a < POD_N_AXES; a++)
    s->layout.degree[a] = pod_array_mesh_size (&s->mesh, s->of_kind[a]);
  return true;
}

/* ---- tokens between blocks ---- */

static bool
find_sequence (const PodMeshRequest *request, PodMeshShardings *s, GError **error)
{
  const PodArray *in = &s->said[POD_MESH_IN];
  const unsigned tp = s->of_kind[POD_AXIS_TP];
  const unsigned cut = (pod_array_axes_of (in, 'S') | pod_array_axes_of (in, 'D')) & tp;
  g_autofree char *axes = pod_array_mesh_mask_text (&s->mesh, tp);

  s->layout.is_sequence_parallel = request->is_sequence_parallel != 0;
  s->says_sequence = tp != 0 && s->is_said[POD_MESH_IN];
  if (!s->says_sequence)
    return true;
  if (cut != 0 && cut != tp)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                   "--shard: In: its dimension S is cut by a part of the axes that are tp (%s); "
                   "right: S_%s (sequence parallelism), or by none of them",
                   axes, axes);
      return false;
    }
  s->layout.is_sequence_parallel = cut != 0;
  if (request->is_sequence_parallel >= 0 && (request->is_sequence_parallel == 1) != (cut != 0))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--shard: In: its dimension S is %scut by %s, which is tp, but "
                   "--%ssequence-parallel is said; right: S%s%s",
                   cut != 0 ? "" : "not ", axes, request->is_sequence_parallel == 1 ? "" : "no-",
                   cut != 0 ? " without " : "_", axes);
      return false;
    }
  return true;
}

/* ---- how ranks are numbered ---- */

/* Of axes of one kind the innermost first: those that leave KV heads whole, then those that are
 * experts' width, then experts, as the executor numbers them; then as JAX does, the last one. */
static int
role_of (const PodMeshShardings *s, unsigned axis)
{
  for (unsigned t = POD_MESH_WK; t <= POD_MESH_WV; t++)
    if (s->is_said[t] && s->kind[axis] == POD_AXIS_TP
        && pod_array_cut_by (&s->said[t], axis) != pod_mesh_roles[t].tp)
      return 0;
  return s->etp_axes >> axis & 1 ? 1 : s->ep_axes >> axis & 1 ? 2 : 3;
}

static bool
is_inside (const PodMeshShardings *s, const char *placing, unsigned a, unsigned b)
{
  unsigned rank[2] = { 0, 0 };
  const int place[2] = { pod_mesh_said_place (placing, s->mesh.name[a]),
                         pod_mesh_said_place (placing, s->mesh.name[b]) };

  for (unsigned i = 0; i < POD_N_AXES; i++)
    {
      rank[0] = pod_rank_numbering[i] == s->kind[a] ? i : rank[0];
      rank[1] = pod_rank_numbering[i] == s->kind[b] ? i : rank[1];
    }
  if (rank[0] != rank[1])
    return rank[0] < rank[1];
  if (place[0] != place[1]) /* those that are not there lie outside */
    return place[1] < 0 || (place[0] >= 0 && place[0] < place[1]);
  if (role_of (s, a) != role_of (s, b))
    return role_of (s, a) < role_of (s, b);
  return a > b;
}

static void
nest_axes (const PodMeshRequest *request, PodMeshShardings *s)
{
  for (unsigned a = 0; a < s->mesh.n_axes; a++)
    {
      unsigned i = a;

      for (; i > 0 && is_inside (s, request->placing, a, s->nest[i - 1]); i--)
        s->nest[i] = s->nest[i - 1];
      s->nest[i] = (uint8_t) a;
    }
}

/* ---- experts ---- */

/* Which axes cut the experts' tensor as the experts' grid does: tp, and dp where it is on its F. */
static void
take_expert_axes (PodMeshShardings *s)
{
  const PodArray *expert = &s->said[POD_MESH_W_EXPERT];
  const unsigned shards = s->of_kind[POD_AXIS_FSDP]
                          | (s->of_kind[POD_AXIS_FSDP] != 0 ? s->of_kind[POD_AXIS_CP] : 0)
                          | s->of_kind[POD_AXIS_PP];

  s->ep_axes = pod_array_axes_of (expert, 'E') & s->used;
  s->etp_axes = pod_array_axes_of (expert, 'F') & s->used & ~shards;
  s->layout.ep = pod_array_mesh_size (&s->mesh, s->ep_axes);
  s->layout.etp = pod_array_mesh_size (&s->mesh, s->etp_axes);
}

/* Over what fsdp shards the copies of an expert. */
static void
take_expert_shards (PodMeshShardings *s)
{
  const unsigned inner
      = s->of_kind[POD_AXIS_TP] | s->of_kind[POD_AXIS_CP] | s->of_kind[POD_AXIS_FSDP];

  s->expert_fsdp_axes = s->of_kind[POD_AXIS_FSDP] != 0 ? inner & ~s->ep_axes & ~s->etp_axes : 0;
}

static bool
refuse_tensor (const PodMeshShardings *s, const PodModel *model, PodMeshTensor tensor,
               unsigned axis, GError **error)
{
  const PodArray right = pod_mesh_tensor (s, model, tensor);
  const char dim = pod_array_cut_by (&s->said[tensor], axis);
  const char *name = pod_mesh_roles[tensor].name;
  g_autofree char *text = pod_mesh_array_to_text (s, &right);
  g_autofree char *cuts = cuts_text (s, axis, tensor);
  g_autofree char *what
      = dim != 0 ? g_strdup_printf ("its dimension %c is cut by %c", dim, s->mesh.name[axis])
                 : g_strdup_printf ("its dimension %c is not cut by %c",
                                    pod_array_cut_by (&right, axis), s->mesh.name[axis]);

  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
               "--shard: %s: %s, which is %s%s%s%s; right: %s", name, what,
               pod_axis_name (s->kind[axis]), *cuts != '\0' ? " (it cuts " : "", cuts,
               *cuts != '\0' ? ")" : "", text);
  return false;
}

/* Experts' ranks are the innermost of a stage: etp, then ep, whole axes of both. */
static bool
check_expert_grid (const PodMeshShardings *s, GError **error)
{
  unsigned state = 0; /* 0 etp, 1 ep, 2 copies */

  for (unsigned i = 0; i < s->mesh.n_axes; i++)
    {
      const unsigned axis = s->nest[i];
      const unsigned role = !(s->used >> axis & 1) || s->kind[axis] == POD_AXIS_PP ? state
                            : s->etp_axes >> axis & 1                              ? 0
                            : s->ep_axes >> axis & 1                               ? 1
                                                                                   : 2;
      unsigned first = s->nest[0];

      if (role >= state)
        {
          state = role;
          continue;
        }
      for (unsigned k = 0; k < i; k++) /* the axis further in that is none of the experts' */
        if (s->used >> s->nest[k] & 1
            && !((s->ep_axes | (role == 0 ? 0 : s->etp_axes)) >> s->nest[k] & 1))
          first = s->nest[k];
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                   "--shard: W_expert: its dimension %c is cut by %c, but not by %c, whose ranks "
                   "are numbered further in (%s): experts are dealt over the innermost ranks, F "
                   "first; right: %c cuts E or F too",
                   role == 0 ? 'F' : 'E', s->mesh.name[axis], s->mesh.name[first],
                   pod_axis_name (s->kind[first]), s->mesh.name[first]);
      return false;
    }
  return true;
}

static bool
check_experts (const PodMeshShardings *s, const PodModel *model, GError **error)
{
  const PodArray *expert = &s->said[POD_MESH_W_EXPERT];
  const unsigned cut = (pod_array_axes_of (expert, 'D') | pod_array_axes_of (expert, 'F')) & s->used
                       & ~s->etp_axes;

  if (!s->is_said[POD_MESH_W_EXPERT])
    return true;
  if (!check_expert_grid (s, error))
    return false;
  for (unsigned axis = 0; axis < s->mesh.n_axes; axis++)
    if ((cut ^ s->expert_fsdp_axes) >> axis & 1)
      return refuse_tensor (s, model, POD_MESH_W_EXPERT, axis, error);
  return true;
}

/* ---- what is said against what follows ---- */

/* Whether a tensor is cut by an axis as its kind does; fsdp may take either side of a matrix. */
static bool
agrees (const PodMeshShardings *s, const PodModel *model, PodMeshTensor tensor, unsigned axis)
{
  const PodMeshRole *role = &pod_mesh_roles[tensor];
  const char dim = pod_array_cut_by (&s->said[tensor], axis);
  const bool is_fsdp = s->of_kind[POD_AXIS_FSDP] != 0;

  switch (s->kind[axis])
    {
    case POD_AXIS_DP:
      return role->is_weight ? dim == 0 : dim == 'B';
    case POD_AXIS_CP:
      if (!role->is_weight)
        return dim == 'S';
      return is_fsdp ? dim == 'D' || dim == role->tp : dim == 0;
    case POD_AXIS_FSDP:
      return role->is_weight ? dim == 'D' || dim == role->tp : dim == 'B';
    case POD_AXIS_TP:
      if (!role->is_weight)
        return true; /* find_sequence has seen to it */
      if (role->tp == 'K')
        return dim == (pod_mesh_kv_axes (s, model) >> axis & 1 ? 'K' : 0);
      return dim == role->tp;
    default: /* pp */
      return dim == (pod_array_find (&s->said[tensor], 'L') >= 0 ? 'L' : 0);
    }
}

static bool
check_kv_heads (const PodMeshShardings *s, const PodModel *model, PodMeshTensor tensor,
                GError **error)
{
  const uint32_t tp = s->layout.degree[POD_AXIS_TP];
  const uint32_t parts = pod_mesh_kv_parts (s, model);
  g_autofree char *axes = NULL;

  if (pod_mesh_roles[tensor].tp != 'K'
      || pod_array_mesh_size (&s->mesh, pod_mesh_kv_axes (s, model)) == parts)
    return true;
  axes = pod_array_mesh_mask_text (&s->mesh, s->of_kind[POD_AXIS_TP]);
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
               "--shard: %s: its dimension K has %u heads for the %u ranks of %s, which is tp, and "
               "each is on %u of them; right: two axes in place of %s, %u and %u, of which the "
               "first cuts K and both cut N, or no word about %s",
               pod_mesh_roles[tensor].name, parts, tp, axes, tp / parts, axes, parts, tp / parts,
               pod_mesh_roles[tensor].name);
  return false;
}

static bool
check_tensors (const PodMeshShardings *s, const PodModel *model, GError **error)
{
  for (unsigned t = 0; t < POD_N_MESH_TENSORS; t++)
    {
      if (!s->is_said[t] || t == POD_MESH_W_EXPERT)
        continue;
      if (!check_kv_heads (s, model, t, error))
        return false;
      for (unsigned axis = 0; axis < s->mesh.n_axes; axis++)
        if (s->used >> axis & 1 && !agrees (s, model, t, axis))
          return refuse_tensor (s, model, t, axis, error);
    }
  return true;
}

static bool
parse_mesh (const PodMeshRequest *request, PodMeshShardings *out, GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (guint i = 0; i < request->mesh->len; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? "," : "",
                            (const char *) g_ptr_array_index ((GPtrArray *) request->mesh, i));
  if (request->mesh->len == 0)
    {
      g_set_error_literal (error, POD_ERROR, POD_ERROR_INVALID,
                           "--shard: its axes need a mesh: --mesh X=4,Y=8");
      return false;
    }
  if (pod_array_mesh_parse (text->str, &out->mesh, error))
    return true;
  g_prefix_error (error, "--mesh: ");
  return false;
}

bool
pod_mesh_shardings_parse (const PodMeshRequest *request, PodMeshShardings *out, GError **error)
{
  *out = (PodMeshShardings){ .layout = { .vpp = 1, .ep = 1, .etp = 1 } };
  out->layout.zero_stage = request->zero_stage == 3 ? 0 : request->zero_stage;
  if (!parse_mesh (request, out, error))
    return false;
  for (guint i = 0; i < request->shards->len; i++)
    if (!pod_mesh_tensors_parse (g_ptr_array_index ((GPtrArray *) request->shards, i),
                                 request->model, out, error))
      return false;
  if (!pod_mesh_tensors_check_sizes (out, request->model, error) || !classify (request, out, error)
      || !find_sequence (request, out, error))
    return false;
  take_expert_axes (out);
  take_expert_shards (out);
  nest_axes (request, out);
  return check_tensors (out, request->model, error) && check_experts (out, request->model, error);
}

/* ---- as a layout ---- */

char *
pod_mesh_shardings_layout (const PodMeshShardings *shardings)
{
  return pod_layout_to_text (&shardings->layout);
}

char *
pod_mesh_shardings_describe (const PodMeshShardings *s)
{
  g_autofree char *mesh = pod_array_mesh_to_text (&s->mesh);
  g_autofree char *ep = pod_array_mesh_mask_text (&s->mesh, s->ep_axes);
  g_autofree char *etp = pod_array_mesh_mask_text (&s->mesh, s->etp_axes);
  g_autofree char *tp = pod_array_mesh_mask_text (&s->mesh, s->of_kind[POD_AXIS_TP]);
  GString *text = g_string_new (NULL);

  g_string_printf (text, "mesh %s:%s", mesh, s->used == 0 ? " one device" : "");
  for (unsigned a = 0; a < POD_N_AXES; a++)
    if (s->of_kind[a] != 0)
      {
        g_autofree char *axes = pod_array_mesh_mask_text (&s->mesh, s->of_kind[a]);

        g_string_append_printf (text, " %s=%s", pod_axis_name (a), axes);
      }
  if (*ep != '\0')
    g_string_append_printf (text, " ep=%s", ep);
  if (*etp != '\0')
    g_string_append_printf (text, " etp=%s", etp);
  if (s->says_sequence && !s->layout.is_sequence_parallel)
    g_string_append_printf (text,
                            "; tokens between blocks are whole over %s, as In says (S_%s "
                            "would be sequence parallelism)",
                            tp, tp);
  else if (s->says_sequence && pod_array_axes_of (&s->said[POD_MESH_IN], 'D') != 0)
    g_string_append_printf (text,
                            "; In's D_%s runs as S_%s: matmuls gather and scatter the same "
                            "bytes",
                            tp, tp);
  return g_string_free (text, FALSE);
}
