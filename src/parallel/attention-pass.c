#include "parallel/attention-pass-private.h"

/* The projections around core attention. MLA as it is trained (DeepSeek-V2, arXiv 2405.04434, 2.1; Megatron-Core's
 * multi_latent_attention): latents come from down projections that every tensor rank holds whole, and that work on the residual
 * stream's own tokens; latents are gathered over tp, expanded to this rank's heads, and attention is that of heads with qk_nope +
 * qk_rope for q and k and v_head for v. */

PodHeads
pod_heads (const PodEmitter *emitter, const PodLayerKind *shape)
{
  const uint64_t tp = emitter->job->layout.degree[POD_AXIS_TP];
  PodHeads heads = { .heads = shape->heads / tp, .kv_heads = MAX (shape->kv_heads / tp, 1), .head_dim = shape->head_dim, .v_head_dim = shape->v_head_dim };

  heads.q_width = heads.heads * heads.head_dim;
  heads.k_width = heads.kv_heads * heads.head_dim;
  heads.v_width = heads.kv_heads * heads.v_head_dim;
  heads.out_width = heads.heads * heads.v_head_dim;
  return heads;
}

static bool
is_latent (const PodEmitter *emitter)
{
  return emitter->job->model->attention == POD_ATTENTION_MLA;
}

/* Where v is k's, no v is projected. */
static uint64_t
projected_width (const PodLayerKind *shape, const PodHeads *heads)
{
  return heads->q_width + heads->k_width + (shape->is_v_from_k ? 0 : heads->v_width);
}

/* ---- the matrices ---- */

typedef struct
{
  PodLinear q_down; /* out 0 = q is projected directly */
  PodLinear kv_down;
  PodLinear q_up;
  PodLinear kv_up;
} Latents;

static Latents
latents (const PodEmitter *emitter, const PodHeads *heads)
{
  const PodModel *model = emitter->job->model;

  return (Latents){ .q_down = { "q down", model->hidden, model->q_lora, POD_TP_NONE },
                    .kv_down = { "kv down", model->hidden, model->kv_lora + model->qk_rope, POD_TP_NONE },
                    .q_up = { model->q_lora > 0 ? "q up" : "q", model->q_lora > 0 ? model->q_lora : model->hidden, heads->q_width, POD_TP_COLUMN },
                    .kv_up = { "kv up", model->kv_lora, heads->heads * (model->qk_nope + model->v_head), POD_TP_COLUMN } };
}

static uint64_t
made_width (const PodPass *pass, PodTensor tensor, uint64_t width)
{
  return pod_pass_makes (pass, POD_TENSOR_BIT (tensor)) != 0 ? width : 0;
}

/* To those of q, k and v that this pass makes. */
static PodLinear
qkv_linear (const PodPass *pass, const PodHeads *heads)
{
  const uint64_t q = made_width (pass, POD_TENSOR_QUERY, heads->q_width);
  const uint64_t k = made_width (pass, POD_TENSOR_KEY, heads->k_width);
  const uint64_t v = pass->unit->shape->is_v_from_k ? 0 : made_width (pass, POD_TENSOR_VALUE, heads->v_width);

  return (PodLinear){ "qkv", pass->emitter->job->model->hidden, q + k + v, POD_TP_COLUMN };
}

static PodLinear
out_linear (const PodPass *pass, const PodHeads *heads)
{
  return (PodLinear){ "attention out", heads->out_width, pass->emitter->job->model->hidden, POD_TP_ROW };
}

static double
size_of (const PodLinear *linear)
{
  return (double) linear->in * (double) linear->out;
}

/* ---- what a layer holds and keeps ---- */

/* [in, out] as fsdp pads it: over its outputs, or over the residual side. */
static double
padded_in (const PodEmitter *emitter, double in, double out)
{
  return emitter->shards_outputs ? pod_pad_rows (emitter, out, in) : pod_pad_rows (emitter, in, out);
}

static void
plan_latent (const PodEmitter *emitter, const PodHeads *heads, PodAttentionPlan *out)
{
  const PodModel *model = emitter->job->model;
  const Latents l = latents (emitter, heads);
  const PodLinear *linears[] = { &l.q_down, &l.kv_down, &l.q_up, &l.kv_up };
  const double tp = emitter->job->layout.degree[POD_AXIS_TP];

  out->weights = size_of (&l.q_up) + size_of (&l.kv_up);
  out->replicated = size_of (&l.q_down) + size_of (&l.kv_down) + (double) (model->q_lora + model->kv_lora); /* with a norm on each latent */
  out->global_weights = out->weights * tp;
  out->padded = (double) (model->q_lora + model->kv_lora);
  out->adapter_sides = (double) (l.q_down.in + l.q_down.out + l.kv_down.in + l.kv_down.out + l.q_up.in + l.q_up.out + l.kv_up.in + l.kv_up.out);
  out->adapter_whole = (double) (l.q_down.in + l.q_down.out + l.kv_down.in + l.kv_down.out + l.q_up.in + l.kv_up.in);
  if (l.q_down.out == 0) /* no such layer */
    {
      out->adapter_sides -= (double) l.q_down.in;
      out->adapter_whole -= (double) l.q_down.in;
    }
  for (unsigned i = 0; i < G_N_ELEMENTS (linears); i++)
    out->padded += padded_in (emitter, (double) linears[i]->in, (double) linears[i]->out);
  /* each latent before and after its norm, and the key's rotary part */
  out->query_bytes = emitter->residual_tokens * emitter->element_bytes * (double) (2 * model->q_lora);
  out->key_bytes = emitter->residual_tokens * emitter->element_bytes * (double) (2 * model->kv_lora + model->qk_rope);
}

static void
plan_grouped (const PodEmitter *emitter, const PodLayerKind *shape, const PodHeads *heads, PodAttentionPlan *out)
{
  const double hidden = (double) emitter->job->model->hidden;
  const double v_width = shape->is_v_from_k ? 0 : (double) heads->v_width;

  out->weights = hidden * (double) projected_width (shape, heads);
  out->adapter_sides = hidden + (double) projected_width (shape, heads);
  out->adapter_whole = hidden;
  out->global_weights = hidden * (double) (shape->heads * shape->head_dim + shape->kv_heads * (shape->head_dim + (shape->is_v_from_k ? 0 : shape->v_head_dim)));
  out->padded = padded_in (emitter, hidden, (double) heads->q_width) + padded_in (emitter, hidden, (double) heads->k_width) + padded_in (emitter, hidden, v_width);
  if (emitter->job->model->has_qk_norm) /* before their norms */
    {
      out->query_bytes = emitter->tokens * emitter->element_bytes * (double) heads->q_width;
      out->key_bytes = emitter->tokens * emitter->element_bytes * (double) heads->k_width;
    }
}

void
pod_attention_plan (const PodEmitter *emitter, const PodLayerKind *shape, PodAttentionPlan *out)
{
  const PodJob *job = emitter->job;
  const double hidden = (double) job->model->hidden;
  const double token_bytes = emitter->tokens * emitter->element_bytes;
  PodHeads heads;

  *out = (PodAttentionPlan){ 0 };
  if (job->model->attention == POD_ATTENTION_NONE)
    return;
  heads = pod_heads (emitter, shape);
  if (is_latent (emitter))
    plan_latent (emitter, &heads, out);
  else
    plan_grouped (emitter, shape, &heads, out);
  out->weights += hidden * (double) heads.out_width;
  out->adapter_sides += (double) heads.out_width + hidden;
  out->adapter_whole += hidden;
  out->global_weights += hidden * (double) (shape->heads * shape->v_head_dim);
  out->padded += pod_pad_rows (emitter, hidden, (double) heads.out_width);
  out->attention_bytes = token_bytes * (double) heads.out_width;
  out->query_bytes += token_bytes * (double) heads.q_width;
  out->value_bytes += token_bytes * (double) heads.v_width;
  /* with what Ulysses keeps more */
  out->key_bytes += token_bytes * (double) (pod_core_attention_kept_width (emitter, &heads) - heads.out_width - heads.q_width - heads.v_width);
  out->scores_bytes = pod_core_attention_kept_bytes (emitter, &heads);
  out->flowing_bytes = token_bytes * (double) (heads.q_width + heads.k_width + heads.v_width + heads.out_width);
  if (job->core == POD_CORE_UNFUSED) /* of the probabilities, and through the softmax */
    out->flowing_bytes += 2 * token_bytes * (double) heads.heads * (double) job->batch.seq_len;
}

/* ---- KV heads that several tensor ranks hold ---- */

/* Tensor ranks that hold each KV head. */
static uint32_t
n_copies (const PodJob *job, const PodLayerKind *shape)
{
  const uint64_t tp = job->layout.degree[POD_AXIS_TP];

  return job->model->attention == POD_ATTENTION_GQA && tp > shape->kv_heads ? (uint32_t) (tp / shape->kv_heads) : 1;
}

static char *
copies_name (uint32_t copies)
{
  return g_strdup_printf ("tp KV copies %u", copies);
}

/* The communicator of that many copies, POD_NO_COMM: not made yet. */
static uint32_t
find_copies (const PodEmitter *emitter, uint32_t copies)
{
  const GPtrArray *comms = emitter->builder.program->communicators;
  g_autofree char *name = copies_name (copies);

  for (guint i = 0; i < comms->len; i++)
    if (g_str_equal (((const PodCommunicator *) g_ptr_array_index ((GPtrArray *) comms, i))->name, name))
      return i;
  return POD_NO_COMM;
}

void
pod_attention_init (PodEmitter *emitter, const PodMesh *mesh)
{
  const PodJob *job = emitter->job;

  emitter->label_context = pod_builder_label (&emitter->builder, "keys and values of other context ranks", POD_USE_WORKSPACE);
  emitter->cp_comm = POD_NO_COMM;
  if (job->layout.degree[POD_AXIS_CP] > 1)
    emitter->cp_comm = pod_builder_add_communicator (&emitter->builder, pod_mesh_communicator (mesh, POD_MASK (POD_AXIS_CP), POD_AXIS_CP, pod_axis_name (POD_AXIS_CP)));
  for (unsigned i = 0; i < job->model->n_kinds; i++)
    {
      const uint32_t copies = n_copies (job, &job->model->kinds[i]);
      g_autofree char *name = copies_name (copies);

      if (copies > 1 && find_copies (emitter, copies) == POD_NO_COMM)
        pod_builder_add_communicator (&emitter->builder, pod_mesh_blocks (mesh, POD_AXIS_TP, copies, name));
    }
}

uint32_t
pod_attention_reduce_copies (PodEmitter *emitter, const GArray *units, double bytes_per_param)
{
  const PodJob *job = emitter->job;
  const PodModel *model = job->model;
  g_autofree double *bytes = g_new0 (double, model->n_kinds); /* at the first kind with as many copies */
  uint32_t last = POD_NO_OP;

  for (guint i = 0; i < units->len; i++)
    {
      const PodUnitPlan *unit = &g_array_index (units, PodUnitPlan, i);
      const uint32_t copies = unit->shape != NULL ? n_copies (job, unit->shape) : 1;
      PodHeads heads;
      unsigned k = 0;

      if (copies == 1)
        continue;
      while (n_copies (job, &model->kinds[k]) != copies)
        k++;
      heads = pod_heads (emitter, unit->shape);
      bytes[k] += (double) (model->hidden + model->has_attention_bias) * (double) (projected_width (unit->shape, &heads) - heads.q_width) * bytes_per_param;
    }
  for (unsigned k = 0; k < model->n_kinds; k++)
    {
      if (bytes[k] == 0)
        continue;
      last = pod_builder_collective (&emitter->builder, POD_PHASE_OPTIMIZER, -1, "KV head copies' gradients all-reduce", POD_STREAM_TP,
                                     find_copies (emitter, n_copies (job, &model->kinds[k])), POD_ALL_REDUCE, (uint64_t) bytes[k]);
      pod_builder_depend_before (&emitter->builder, last, POD_STREAM_COMPUTE, 0);
      pod_builder_depend_before (&emitter->builder, last, POD_STREAM_REDUCE, 0);
    }
  return last;
}

/* ---- forward and backward ---- */

/* Of q and k, what this pass makes. */
static uint64_t
rotated_width (const PodPass *pass, const PodHeads *heads)
{
  return made_width (pass, POD_TENSOR_QUERY, heads->q_width) + made_width (pass, POD_TENSOR_KEY, heads->k_width);
}

/* Rotates q and k, what of them this pass makes, in place. With latents only a part of each head, and k and v are made of what the up projection and the shared
 * rotary key are (Megatron-Core's fused_mla_yarn_rope_apply reads and writes the same); backward takes the same the other way. */
static void
rope (PodPass *pass, const PodHeads *heads, const char *name)
{
  const PodModel *model = pass->emitter->job->model;
  const double token_bytes = pass->emitter->tokens * pass->emitter->element_bytes;
  double rotated = (double) rotated_width (pass, heads);
  double read = rotated;
  double written = rotated;

  if (is_latent (pass->emitter))
    {
      const double q_part = (double) (heads->heads * model->qk_rope);

      rotated = q_part + (double) model->qk_rope;
      read = rotated + (double) (heads->heads * (model->qk_nope + model->v_head));
      written = q_part + (double) (heads->k_width + heads->v_width);
    }
  if (rotated > 0)
    pod_pass_vector (pass, name, token_bytes * rotated, token_bytes * read, token_bytes * written);
}

/* Norms of q and of k, a head at a time (Qwen3, Gemma 3). */
static void
qk_norms (PodPass *pass, const PodHeads *heads, const char *name, double flops_per_element, double reads)
{
  const double elements = pass->emitter->tokens * (double) rotated_width (pass, heads);

  if (pass->emitter->job->model->has_qk_norm && elements > 0)
    pod_pass_vector (pass, name, flops_per_element * elements, reads * elements * pass->emitter->element_bytes, elements * pass->emitter->element_bytes);
}

static bool
is_sharded_by_tokens (const PodEmitter *emitter)
{
  return emitter->tp_comm != POD_NO_COMM && emitter->job->layout.is_sequence_parallel;
}

/* The key's rotary part, which all heads share: from the residual stream's tokens to all of them, and its gradient back. Waits
 * for @after. Returns: POD_NO_OP where nothing is sent. */
static uint32_t
share_rotary_key (PodPass *pass, uint32_t after)
{
  PodEmitter *emitter = pass->emitter;
  const bool is_backward = pass->phase == POD_PHASE_BACKWARD;
  const bool is_sharded = is_sharded_by_tokens (emitter);
  const PodCollectiveKind kind = !is_backward ? POD_ALL_GATHER : is_sharded ? POD_REDUCE_SCATTER : POD_ALL_REDUCE;
  const char *name = !is_backward ? "rotary key all-gather" : is_sharded ? "rotary key gradient reduce-scatter" : "rotary key gradient all-reduce";

  if (emitter->tp_comm == POD_NO_COMM || (!is_backward && !is_sharded))
    return POD_NO_OP;
  return pod_pass_tp_collective (pass, name, kind, emitter->tokens * (double) emitter->job->model->qk_rope * emitter->element_bytes, after);
}

static void
latent_norms (PodPass *pass, const char *name, double flops_per_element, double reads)
{
  const PodEmitter *emitter = pass->emitter;
  const double elements = emitter->residual_tokens * (double) (emitter->job->model->q_lora + emitter->job->model->kv_lora);

  pod_pass_vector (pass, name, flops_per_element * elements, reads * elements * emitter->element_bytes, elements * emitter->element_bytes);
}

/* From @value on, whole over tp only once gathered again. */
static void
go_back_to (PodPass *pass, uint32_t value)
{
  pass->value = value;
  pass->gathered = POD_NO_OP;
}

static void
latent_forward (PodPass *pass, const PodHeads *heads)
{
  PodBuilder *builder = &pass->emitter->builder;
  const Latents l = latents (pass->emitter, heads);
  const uint32_t source = pass->value;
  uint32_t rotary;
  uint32_t normed;

  if (l.q_down.out > 0)
    pod_linear_forward (pass, &l.q_down, true);
  else
    pod_linear_forward (pass, &l.q_up, true);
  go_back_to (pass, source);
  pod_linear_forward (pass, &l.kv_down, true);
  latent_norms (pass, "latent norms", 4, 1);
  normed = pass->value;
  rotary = share_rotary_key (pass, normed);
  if (l.q_down.out > 0)
    pod_linear_forward (pass, &l.q_up, true);
  go_back_to (pass, normed);
  pod_linear_forward (pass, &l.kv_up, true);
  rope (pass, heads, "rope");
  pod_builder_depend (builder, pass->value, rotary);
}

static void
latent_backward (PodPass *pass, const PodHeads *heads)
{
  PodEmitter *emitter = pass->emitter;
  PodBuilder *builder = &emitter->builder;
  const Latents l = latents (emitter, heads);
  const double bytes = emitter->residual_tokens * (double) emitter->job->model->hidden * emitter->element_bytes;
  uint32_t source;
  uint32_t q;
  uint32_t kv;
  uint32_t rotary;

  rope (pass, heads, "rope backward");
  source = pass->value;
  rotary = share_rotary_key (pass, source);
  pod_linear_backward (pass, &l.kv_up, true);
  kv = pass->value;
  go_back_to (pass, source);
  pod_linear_backward (pass, &l.q_up, true);
  q = pass->value;
  pass->value = l.q_down.out > 0 ? q : kv;
  latent_norms (pass, "latent norms backward", 8, 2);
  pod_builder_depend (builder, pass->value, kv);
  pod_builder_depend (builder, pass->value, rotary);
  source = pass->value;
  if (l.q_down.out > 0)
    {
      pod_linear_backward (pass, &l.q_down, true);
      q = pass->value;
      go_back_to (pass, source);
    }
  pod_linear_backward (pass, &l.kv_down, true);
  pod_pass_vector (pass, "q and kv gradients", bytes / emitter->element_bytes, 2 * bytes, bytes);
  pod_builder_depend (builder, pass->value, q);
}

void
pod_attention_forward (PodPass *pass, bool is_reduced)
{
  const PodHeads heads = pod_heads (pass->emitter, pass->unit->shape);
  const PodLinear out = out_linear (pass, &heads);
  uint32_t gathered;

  if (!pod_pass_makes (pass, POD_QKV_TENSORS))
    gathered = POD_NO_OP;
  else if (is_latent (pass->emitter)) /* all of it, whichever is wanted */
    {
      latent_forward (pass, &heads);
      gathered = POD_NO_OP;
    }
  else
    {
      const PodLinear qkv = qkv_linear (pass, &heads);

      if (qkv.out > 0)
        pod_linear_forward (pass, &qkv, true);
      gathered = pass->value;
      qk_norms (pass, &heads, "q and k norms", 4, 1);
      rope (pass, &heads, "rope");
    }
  if (pod_pass_makes (pass, POD_TENSOR_BIT (POD_TENSOR_ATTENTION)))
    pod_core_attention_forward (pass, &heads);
  if (!pod_pass_makes (pass, POD_TENSOR_BIT (POD_TENSOR_RESIDUAL)))
    return;
  pod_linear_forward (pass, &out, is_reduced);
  if (!is_reduced) /* the FFN reads the same gathered input; both outputs are summed before the one reduction */
    pass->gathered = gathered;
}

void
pod_attention_backward (PodPass *pass)
{
  const PodHeads heads = pod_heads (pass->emitter, pass->unit->shape);
  const PodLinear out = out_linear (pass, &heads);

  pod_linear_backward (pass, &out, true);
  pod_core_attention_backward (pass, &heads);
  if (is_latent (pass->emitter))
    latent_backward (pass, &heads);
  else
    {
      const PodLinear qkv = qkv_linear (pass, &heads);

      rope (pass, &heads, "rope backward");
      qk_norms (pass, &heads, "q and k norms backward", 8, 2);
      pod_linear_backward (pass, &qkv, true);
    }
}
