#include "parallel/transformer-private.h"

#include <math.h>

#include "parallel/moe-private.h"

/* What one unit is made of, on one rank of tp. */

/* Sizes of one layer on this rank. */
typedef struct
{
  double tp;
  uint64_t heads;       /* local */
  uint64_t kv_heads;    /* local, at least 1: replicated when tp is larger */
  uint64_t qkv_width;
  uint64_t attention_width;
  uint64_t ffn;         /* local */
  uint64_t ffn_matrices_in;
} LayerSizes;

static LayerSizes
layer_sizes (const PodEmitter *emitter, const PodLayerKind *shape)
{
  const PodModel *model = emitter->job->model;
  const uint64_t tp = emitter->job->layout.degree[POD_AXIS_TP];
  LayerSizes sizes = { .tp = (double) tp, .ffn = pod_layout_dense_ffn (model, shape) / tp, .ffn_matrices_in = model->is_ffn_gated ? 2 : 1 };

  if (model->attention != POD_ATTENTION_NONE)
    {
      sizes.heads = shape->heads / tp;
      sizes.kv_heads = MAX (shape->kv_heads / tp, 1);
      sizes.qkv_width = (sizes.heads + sizes.kv_heads) * shape->head_dim + sizes.kv_heads * shape->v_head_dim;
      sizes.attention_width = sizes.heads * shape->v_head_dim;
    }
  return sizes;
}

static double
norm_params (const PodModel *model)
{
  return model->norm == POD_NORM_NONE ? 0 : (double) model->hidden * (model->norm == POD_NORM_LAYER ? 2 : 1);
}

/* Parameters of a [rows, columns] weight once its rows are padded to shard evenly over fsdp. */
static double
pad_rows (const PodEmitter *emitter, double rows, double columns)
{
  const double fsdp = emitter->job->layout.degree[POD_AXIS_FSDP];

  return emitter->job->is_fsdp_padded ? ceil (rows / fsdp) * fsdp * columns : rows * columns;
}

/* The matrices of a layer on this rank, as fsdp pads them. */
static double
padded_matrices (const PodEmitter *emitter, const PodLayerKind *shape, const LayerSizes *sizes)
{
  const double hidden = (double) emitter->job->model->hidden;
  const double outputs[] = { (double) (sizes->heads * shape->head_dim), (double) (sizes->kv_heads * shape->head_dim), (double) (sizes->kv_heads * shape->v_head_dim),
                             (double) sizes->ffn, sizes->ffn_matrices_in > 1 ? (double) sizes->ffn : 0 };
  double sum = pad_rows (emitter, hidden, (double) (sizes->attention_width + sizes->ffn)); /* attention out, ffn out */

  for (unsigned i = 0; i < G_N_ELEMENTS (outputs); i++)
    sum += emitter->shards_outputs ? pad_rows (emitter, outputs[i], hidden) : pad_rows (emitter, hidden, outputs[i]);
  return sum;
}

static void
plan_layer (const PodEmitter *emitter, PodUnitPlan *plan)
{
  const PodJob *job = emitter->job;
  const PodModel *model = job->model;
  const unsigned kind = model->layer_kind[plan->layer];
  const double hidden = (double) model->hidden;
  LayerSizes sizes;
  double weights;
  double global_weights;
  double norms;
  unsigned n_norms = model->norm == POD_NORM_NONE ? 0 : model->norms_per_layer;

  plan->shape = &model->kinds[kind];
  sizes = layer_sizes (emitter, plan->shape);
  weights = hidden * (double) (sizes.qkv_width + sizes.attention_width + sizes.ffn * (sizes.ffn_matrices_in + 1));
  global_weights = hidden * (double) pod_layout_dense_ffn (model, plan->shape) * (double) (sizes.ffn_matrices_in + 1);
  if (model->attention != POD_ATTENTION_NONE)
    global_weights += hidden * (double) (plan->shape->heads * (plan->shape->head_dim + plan->shape->v_head_dim)
                                         + plan->shape->kv_heads * (plan->shape->head_dim + plan->shape->v_head_dim));
  norms = n_norms * norm_params (model);
  plan->replicated_params = norms;
  if (plan->shape->is_moe)
    {
      PodMoeParams moe;

      pod_moe_params (emitter, &moe);
      plan->replicated_params += moe.router;
      plan->expert_params = moe.experts;
      global_weights += pod_moe_model_params (model);
    }
  /* biases and the like: what the exact count has beyond matrices and norms */
  plan->sharded_params = weights + MAX (0, (double) pod_model_layer_params (model, kind, NULL) - global_weights - norms) / sizes.tp;
  plan->padded_params = padded_matrices (emitter, plan->shape, &sizes) + plan->sharded_params - weights + plan->replicated_params;
  plan->input_bytes = emitter->residual_tokens * hidden * emitter->element_bytes;

  /* Kept for backward (arXiv 2205.05198 without its dropout masks, flash attention instead of scores): the residual before
   * each norm, each norm's output, q k v, the attention output with its log-sum-exp (4 bytes a head), FFN inputs and product. */
  plan->saved_bytes = plan->input_bytes * MAX (1, 2 * n_norms)
                      + emitter->tokens * emitter->element_bytes * (double) (sizes.qkv_width + sizes.attention_width + sizes.ffn * (sizes.ffn_matrices_in + 1))
                      + emitter->tokens * 4 * (double) sizes.heads;
  if (job->recompute == POD_RECOMPUTE_SELECTIVE)
    plan->saved_bytes -= emitter->tokens * (emitter->element_bytes * (double) sizes.attention_width + 4 * (double) sizes.heads);
  if (plan->shape->is_moe)
    plan->saved_bytes += pod_moe_saved_bytes (emitter);
  if (!model->is_ffn_gated && n_norms == 0) /* the book's block: no activation function between its matrices */
    plan->saved_bytes -= emitter->tokens * emitter->element_bytes * (double) sizes.ffn;
}

void
pod_unit_plan (const PodEmitter *emitter, PodUnitKind kind, int32_t layer, PodUnitPlan *out)
{
  const PodJob *job = emitter->job;
  const PodModel *model = job->model;
  const double tp = job->layout.degree[POD_AXIS_TP];
  const double table = (double) pod_job_padded_vocab (job) * (double) model->hidden / tp;

  const double hidden = (double) model->hidden;
  const double padded_table = emitter->shards_outputs ? pad_rows (emitter, table / MAX (hidden, 1), hidden) : pad_rows (emitter, hidden, table / MAX (hidden, 1));

  *out = (PodUnitPlan){ .kind = kind, .layer = kind == POD_UNIT_LAYER ? layer : -1, .saved_label = emitter->label_saved };
  switch (kind)
    {
    case POD_UNIT_EMBEDDING:
      out->sharded_params = table;
      if (model->has_learned_positions)
        out->replicated_params = (double) model->max_positions * (double) model->hidden;
      if (model->has_embedding_norm)
        out->replicated_params += norm_params (model);
      break;
    case POD_UNIT_LAYER:
      plan_layer (emitter, out);
      break;
    case POD_UNIT_HEAD:
      out->sharded_params = model->is_tied && emitter->shares_table ? 0 : table;
      out->replicated_params = model->has_final_norm ? norm_params (model) : 0;
      out->input_bytes = emitter->residual_tokens * (double) model->hidden * emitter->element_bytes;
      out->saved_bytes = 2 * out->input_bytes; /* the final norm's input and output */
      break;
    }
  if (kind != POD_UNIT_LAYER)
    out->padded_params = (out->sharded_params > 0 ? padded_table : 0) + out->replicated_params;
  out->gathered_params = kind == POD_UNIT_HEAD ? padded_table + out->replicated_params : out->padded_params;
}

GArray *
pod_part_units (const PodEmitter *emitter, uint32_t part)
{
  const PodJob *job = emitter->job;
  const bool has_vocab = job->model->vocab > 0;
  GArray *units = g_array_new (FALSE, FALSE, sizeof (PodUnitPlan));
  PodUnitPlan unit;
  int32_t first = 0;

  for (uint32_t s = 0; s < part; s++)
    first += (int32_t) job->part_layers[s];
  if (part == 0 && has_vocab)
    {
      pod_unit_plan (emitter, POD_UNIT_EMBEDDING, -1, &unit);
      g_array_append_val (units, unit);
    }
  for (uint32_t i = 0; i < job->part_layers[part]; i++)
    {
      pod_unit_plan (emitter, POD_UNIT_LAYER, first + (int32_t) i, &unit);
      g_array_append_val (units, unit);
    }
  if (part == job->schedule->n_parts - 1 && has_vocab)
    {
      pod_unit_plan (emitter, POD_UNIT_HEAD, -1, &unit);
      g_array_append_val (units, unit);
    }
  return units;
}

/* Norm, with the residual addition before it fused in. */
static void
norm_forward (PodPass *pass, const char *name)
{
  double elements = pass->emitter->residual_tokens * (double) pass->emitter->job->model->hidden;
  double bytes = elements * pass->emitter->element_bytes;

  if (pass->emitter->job->model->norm != POD_NORM_NONE)
    pod_pass_vector (pass, name, 6 * elements, 2 * bytes, 2 * bytes);
}

static void
norm_backward (PodPass *pass, const char *name)
{
  double elements = pass->emitter->residual_tokens * (double) pass->emitter->job->model->hidden;
  double bytes = elements * pass->emitter->element_bytes;

  if (pass->emitter->job->model->norm != POD_NORM_NONE)
    pod_pass_vector (pass, name, 12 * elements, 3 * bytes, bytes);
}

static PodKernel
attention_kernel (const PodPass *pass, const LayerSizes *sizes, bool is_backward)
{
  const PodJob *job = pass->emitter->job;
  const PodLayerKind *shape = pass->unit->shape;
  double span = job->is_causal ? pod_model_mean_span (shape, job->batch.seq_len) : (double) job->batch.seq_len;

  return pod_kernel_attention (is_backward, job->batch.micro_batch, job->batch.seq_len, job->batch.seq_len, span, sizes->heads, sizes->kv_heads,
                               shape->head_dim, shape->v_head_dim, job->is_causal, job->is_quantised || job->dtype == POD_DTYPE_FP8 ? POD_DTYPE_BF16 : job->dtype);
}

static void
attention (PodPass *pass, const LayerSizes *sizes, bool is_backward)
{
  const PodLayerKind *shape = pass->unit->shape;
  const double rope_bytes = pass->emitter->tokens * pass->emitter->element_bytes * (double) ((sizes->heads + sizes->kv_heads) * shape->head_dim);
  PodKernel kernel = attention_kernel (pass, sizes, is_backward);
  g_autofree char *detail = g_strdup_printf ("%" G_GUINT64_FORMAT " sequences of %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT " heads, %" G_GUINT64_FORMAT " KV heads, head_dim %" G_GUINT64_FORMAT,
                                             kernel.batch, kernel.m, sizes->heads, sizes->kv_heads, shape->head_dim);

  if (!is_backward)
    pod_pass_vector (pass, "rope", rope_bytes, rope_bytes, rope_bytes);
  pass->value = pod_pass_compute (pass, is_backward ? "attention backward" : "attention", detail, &kernel);
  pass->gathered = POD_NO_OP;
  if (is_backward)
    pod_pass_vector (pass, "rope backward", rope_bytes, rope_bytes, rope_bytes);
}

/* Core attention once more, from the kept q, k and v: what flows waits for nothing of it. */
static void
attention_again (PodPass *pass, const LayerSizes *sizes)
{
  PodKernel kernel = attention_kernel (pass, sizes, false);
  PodPhase phase = pass->phase;

  pass->phase = POD_PHASE_RECOMPUTE;
  pod_pass_compute (pass, "attention again", NULL, &kernel);
  pass->phase = phase;
}

void
pod_pass_activation (PodPass *pass, double tokens, uint64_t width, bool is_backward)
{
  const double bytes = tokens * pass->emitter->element_bytes * (double) width;
  const double in = pass->emitter->job->model->is_ffn_gated ? 2 : 1;

  if (pass->emitter->job->model->norm == POD_NORM_NONE)
    return;
  if (!is_backward)
    pod_pass_vector (pass, "activation", 5 * bytes, in * bytes, bytes);
  else
    pod_pass_vector (pass, "activation backward", 10 * bytes, (in + 1) * bytes, in * bytes);
}

static void
layer_linears (const PodPass *pass, const LayerSizes *sizes, PodLinear out[4])
{
  const uint64_t hidden = pass->emitter->job->model->hidden;

  out[0] = (PodLinear){ "qkv", hidden, sizes->qkv_width, POD_TP_COLUMN };
  out[1] = (PodLinear){ "attention out", sizes->attention_width, hidden, POD_TP_ROW };
  out[2] = (PodLinear){ "ffn in", hidden, sizes->ffn * sizes->ffn_matrices_in, POD_TP_COLUMN };
  out[3] = (PodLinear){ "ffn out", sizes->ffn, hidden, POD_TP_ROW };
}

static void
layer_forward (PodPass *pass)
{
  const PodModel *model = pass->emitter->job->model;
  const bool is_parallel = model->is_parallel_block;
  LayerSizes sizes = layer_sizes (pass->emitter, pass->unit->shape);
  PodLinear linears[4];

  layer_linears (pass, &sizes, linears);
  if (model->attention != POD_ATTENTION_NONE)
    {
      uint32_t gathered;

      norm_forward (pass, "norm");
      pod_linear_forward (pass, &linears[0], true);
      gathered = pass->value;
      attention (pass, &sizes, false);
      pod_linear_forward (pass, &linears[1], !is_parallel);
      if (is_parallel) /* the FFN reads the same gathered input; both outputs are summed before the one reduction */
        pass->gathered = gathered;
    }
  if (!is_parallel)
    norm_forward (pass, "ffn norm");
  if (pass->unit->shape->is_moe)
    {
      pod_moe_forward (pass);
      return;
    }
  pod_linear_forward (pass, &linears[2], true);
  pod_pass_activation (pass, pass->emitter->tokens, sizes.ffn, false);
  pod_linear_forward (pass, &linears[3], true);
}

static void
layer_backward (PodPass *pass)
{
  const PodModel *model = pass->emitter->job->model;
  const bool is_parallel = model->is_parallel_block;
  LayerSizes sizes = layer_sizes (pass->emitter, pass->unit->shape);
  PodLinear linears[4];

  layer_linears (pass, &sizes, linears);
  if (pass->unit->shape->is_moe)
    pod_moe_backward (pass);
  else
    {
      pod_linear_backward (pass, &linears[3], true);
      pod_pass_activation (pass, pass->emitter->tokens, sizes.ffn, true);
      pod_linear_backward (pass, &linears[2], !is_parallel);
    }
  if (!is_parallel)
    norm_backward (pass, "ffn norm backward");
  if (model->attention == POD_ATTENTION_NONE)
    return;
  if (is_parallel)
    pass->gathered = pass->value; /* the output gradient is already whole */
  if (pass->emitter->job->recompute == POD_RECOMPUTE_SELECTIVE)
    attention_again (pass, &sizes);
  pod_linear_backward (pass, &linears[1], true);
  attention (pass, &sizes, true);
  pod_linear_backward (pass, &linears[0], true);
  norm_backward (pass, "norm backward");
}

static void
head_linear (const PodPass *pass, PodLinear *out)
{
  const PodJob *job = pass->emitter->job;

  *out = (PodLinear){ "logits", job->model->hidden, pod_job_padded_vocab (job) / job->layout.degree[POD_AXIS_TP], POD_TP_COLUMN };
}

/* Logits are kept in fp32 for the loss; tp ranks exchange the row maxima and sums (two fp32 a token). */
static void
head_forward (PodPass *pass)
{
  PodEmitter *emitter = pass->emitter;
  PodLinear linear;
  double logits;
  uint32_t op;

  head_linear (pass, &linear);
  logits = emitter->tokens * (double) linear.out * 4;
  norm_forward (pass, "final norm");
  pod_linear_forward (pass, &linear, true);
  pod_builder_alloc (&emitter->builder, pass->value, emitter->label_logits, logits);
  pod_pass_vector (pass, "cross-entropy", 3 * logits, logits, 0);
  if (emitter->tp_comm == POD_NO_COMM)
    return;
  op = pod_builder_collective (&emitter->builder, pass->phase, -1, "cross-entropy all-reduce", POD_STREAM_TP, emitter->tp_comm, POD_ALL_REDUCE,
                               (uint64_t) (emitter->tokens * 8));
  pod_builder_set_dtype (&emitter->builder, op, POD_DTYPE_FP32);
  pod_builder_depend (&emitter->builder, op, pass->value);
  pass->value = op;
}

static void
head_backward (PodPass *pass)
{
  PodEmitter *emitter = pass->emitter;
  PodLinear linear;
  double logits;

  head_linear (pass, &linear);
  logits = emitter->tokens * (double) linear.out * 4;
  pod_pass_vector (pass, "cross-entropy backward", logits, logits, logits / 4 * emitter->element_bytes);
  pod_linear_backward (pass, &linear, true);
  if (pass->part != POD_PART_WEIGHT)
    pod_builder_free_buffer (&emitter->builder, pass->last_compute, emitter->label_logits, logits);
  norm_backward (pass, "final norm backward");
}

/* The lookup, vocabulary-parallel: each tp rank fills the rows it holds, partial sums over tp become the residual stream. The
 * shardings are those of a matmul with a one-hot [T, V]. */
static void
embedding_forward (PodPass *pass)
{
  PodEmitter *emitter = pass->emitter;
  const double bytes = emitter->tokens * (double) emitter->job->model->hidden * emitter->element_bytes;
  PodSharding one_hot = pod_sharding ("TI", emitter->data_axes, emitter->tp_axes);
  PodSharding table = pod_sharding ("IO", emitter->tp_axes, emitter->fsdp_axes);
  PodSharding out = pod_sharding ("TO", emitter->token_axes, 0);
  PodShardedMatmul comm;
  uint32_t op;

  pod_pass_vector (pass, "embedding", 0, bytes, bytes);
  pod_builder_depend (&emitter->builder, pass->value, pass->weights);
  if (!pod_sharded_matmul (&one_hot, &table, &out, &comm, NULL) || !((comm.reduce_scatter | comm.all_reduce) & emitter->tp_axes))
    return;
  op = pod_builder_collective (&emitter->builder, pass->phase, -1, comm.reduce_scatter & emitter->tp_axes ? "embedding reduce-scatter" : "embedding all-reduce", POD_STREAM_TP,
                               emitter->tp_comm, comm.reduce_scatter & emitter->tp_axes ? POD_REDUCE_SCATTER : POD_ALL_REDUCE, (uint64_t) bytes);
  pod_builder_depend (&emitter->builder, op, pass->value);
  pass->value = op;
}

static void
embedding_backward (PodPass *pass)
{
  PodEmitter *emitter = pass->emitter;
  const double bytes = emitter->tokens * (double) emitter->job->model->hidden * emitter->element_bytes;
  PodSharding one_hot_t = pod_sharding ("IT", emitter->tp_axes, emitter->data_axes);
  PodSharding grad_out = pod_sharding ("TO", emitter->token_axes, 0);
  PodSharding grad = pod_sharding ("IO", emitter->tp_axes, emitter->fsdp_axes | emitter->grad_axes);
  PodShardedMatmul comm;

  if (!pod_sharded_matmul (&one_hot_t, &grad_out, &grad, &comm, NULL))
    g_error ("shardings of the embedding");
  pass->grad_scatter |= comm.reduce_scatter & ~emitter->tp_axes;
  pass->grad_all_reduce |= comm.all_reduce & ~emitter->tp_axes;
  if (comm.gather_rhs & emitter->tp_axes)
    {
      uint32_t op = pod_builder_collective (&emitter->builder, pass->phase, -1, "embedding gradient all-gather", POD_STREAM_TP, emitter->tp_comm, POD_ALL_GATHER, (uint64_t) bytes);

      pod_builder_depend (&emitter->builder, op, pass->value);
      if (pass->value == POD_NO_OP) /* an earlier block made what flows */
        pod_builder_depend_before (&emitter->builder, op, POD_STREAM_COMPUTE, 0);
      pass->value = op;
    }
  pod_pass_vector (pass, "embedding backward", 0, 2 * bytes, bytes);
}

void
pod_pass_forward (PodPass *pass)
{
  switch (pass->unit->kind)
    {
    case POD_UNIT_EMBEDDING:
      embedding_forward (pass);
      break;
    case POD_UNIT_LAYER:
      layer_forward (pass);
      break;
    case POD_UNIT_HEAD:
      head_forward (pass);
      break;
    }
}

void
pod_pass_backward (PodPass *pass)
{
  switch (pass->unit->kind)
    {
    case POD_UNIT_EMBEDDING: /* all of it is the table's gradient */
      if (pass->part == POD_PART_INPUT)
        break;
      pass->part = POD_PART_BOTH;
      embedding_backward (pass);
      break;
    case POD_UNIT_LAYER:
      layer_backward (pass);
      break;
    case POD_UNIT_HEAD:
      head_backward (pass);
      break;
    }
}
