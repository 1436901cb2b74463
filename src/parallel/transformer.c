#include "parallel/transformer-private.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "parallel/moe-private.h"

/* What one unit is made of, on one rank of tp. */

/* Sizes of one layer on this rank. */
typedef struct
{
  double tp;
  uint64_t ffn;         /* local */
  uint64_t ffn_matrices_in;
} LayerSizes;

static LayerSizes
layer_sizes (const PodEmitter *emitter, const PodLayerKind *shape)
{
  const PodModel *model = emitter->job->model;
  const uint64_t tp = emitter->job->layout.degree[POD_AXIS_TP];
  LayerSizes sizes = { .tp = (double) tp, .ffn = pod_layout_dense_ffn (model, shape) / tp, .ffn_matrices_in = model->is_ffn_gated ? 2 : 1 };

  return sizes;
}

static double
norm_params (const PodModel *model)
{
  return model->norm == POD_NORM_NONE ? 0 : (double) model->hidden * (model->norm == POD_NORM_LAYER ? 2 : 1);
}

double
pod_pad_rows (const PodEmitter *emitter, double rows, double columns)
{
  const double fsdp = pod_layout_n_shards (&emitter->job->layout);

  return emitter->job->is_fsdp_padded ? ceil (rows / fsdp) * fsdp * columns : rows * columns;
}

/* The matrices of a layer's FFN on this rank, as fsdp pads them. */
static double
padded_ffn (const PodEmitter *emitter, const LayerSizes *sizes)
{
  const double hidden = (double) emitter->job->model->hidden;
  const double ffn = (double) sizes->ffn;
  const double in = emitter->shards_outputs ? pod_pad_rows (emitter, ffn, hidden) : pod_pad_rows (emitter, hidden, ffn);

  return (double) sizes->ffn_matrices_in * in + pod_pad_rows (emitter, hidden, ffn);
}

/* Kept for backward (arXiv 2205.05198): the residual before each norm, each norm's output, what attention keeps, FFN inputs and
 * product, and a byte a value where attention's and the FFN's outputs are dropped out. Quantised matmuls keep their inputs as they
 * multiplied them, attention its output as well. */
static void
keep_layer (const PodEmitter *emitter, const PodAttentionPlan *attention, const LayerSizes *sizes, unsigned n_norms, double out[POD_N_TENSORS], double input_bytes)
{
  const PodJob *job = emitter->job;
  const double operand = job->is_quantised ? pod_dtype_bytes (job->dtype) / emitter->element_bytes : 1;
  const double ffn = emitter->tokens * emitter->element_bytes * (double) sizes->ffn;
  const double mask = job->has_dropout ? emitter->residual_tokens * (double) job->model->hidden : 0;
  const bool is_plain = !job->model->is_ffn_gated && n_norms == 0; /* the book's block: no activation function between its matrices */

  out[POD_TENSOR_NORM] = n_norms > 0 ? input_bytes * operand : 0;
  out[POD_TENSOR_QUERY] = attention->query_bytes;
  out[POD_TENSOR_KEY] = attention->key_bytes;
  out[POD_TENSOR_VALUE] = attention->value_bytes;
  out[POD_TENSOR_SCORES] = attention->scores_bytes;
  out[POD_TENSOR_ATTENTION] = attention->attention_bytes * (job->is_quantised ? 1 + operand : 1);
  out[POD_TENSOR_FFN_NORM] = n_norms > 1 ? n_norms / 2 * input_bytes * operand : 0;
  out[POD_TENSOR_RESIDUAL] = input_bytes * (double) (n_norms > 0 ? 2 * n_norms - 2 - (n_norms > 1 ? n_norms / 2 : 0) : 0) + mask;
  out[POD_TENSOR_GATE] = ffn;
  out[POD_TENSOR_UP] = ffn * (double) (sizes->ffn_matrices_in - 1);
  out[POD_TENSOR_ACTIVATION] = (is_plain ? 0 : ffn * operand) + mask;
  out[POD_TENSOR_FFN_OUT] = job->recompute.kept & POD_TENSOR_BIT (POD_TENSOR_FFN_OUT) ? input_bytes : 0;
}

/* What of a layer's tensors stays, goes to the host, and comes back by computing, under the job's recomputation. @index: of the layer
 * in its part. */
static void
apply_recompute (const PodEmitter *emitter, unsigned index, PodUnitPlan *plan)
{
  const PodRecompute *recompute = &emitter->job->recompute;
  const bool makes_scores_late
      = (pod_recompute_again (recompute, index) & (POD_TENSOR_BIT (POD_TENSOR_SCORES) | POD_TENSOR_BIT (POD_TENSOR_ATTENTION))) == POD_TENSOR_BIT (POD_TENSOR_SCORES);

  plan->again = pod_recompute_again (recompute, index);
  if (emitter->job->model->norm == POD_NORM_NONE) /* nothing between the matrices to compute again */
    plan->again &= ~(POD_TENSOR_BIT (POD_TENSOR_NORM) | POD_TENSOR_BIT (POD_TENSOR_FFN_NORM) | POD_TENSOR_BIT (POD_TENSOR_ACTIVATION));
  if (makes_scores_late) /* attention's backward makes them, for itself alone */
    {
      plan->saved_bytes -= plan->tensor_bytes[POD_TENSOR_SCORES];
      plan->tensor_bytes[POD_TENSOR_SCORES] = 0;
    }
  for (unsigned t = 0; t < POD_N_TENSORS; t++)
    {
      plan->again_bytes += plan->again & POD_TENSOR_BIT (t) ? plan->tensor_bytes[t] : 0;
      plan->offload_bytes += recompute->offloaded & POD_TENSOR_BIT (t) ? plan->tensor_bytes[t] : 0;
    }
  if (makes_scores_late && plan->again == POD_TENSOR_BIT (POD_TENSOR_SCORES))
    return;
  plan->makes = plan->again | (recompute->is_whole ? POD_TENSOR_BIT (POD_TENSOR_OUTPUT) : 0);
  if (plan->again != 0 && !pod_recompute_keeps_input (recompute, index))
    plan->again_bytes += plan->input_bytes;
}

static void
plan_layer (const PodEmitter *emitter, PodUnitPlan *plan)
{
  const PodJob *job = emitter->job;
  const PodModel *model = job->model;
  const unsigned kind = model->layer_kind[MIN ((uint64_t) plan->layer, model->n_layers - 1)];
  const double hidden = (double) model->hidden;
  const unsigned n_norms = model->norm == POD_NORM_NONE ? 0 : model->norms_per_layer;
  PodAttentionPlan attention;
  LayerSizes sizes;
  double weights;
  double global_weights;
  double whole; /* on every tensor rank, experts' router left out */

  plan->shape = &model->kinds[kind];
  sizes = layer_sizes (emitter, plan->shape);
  pod_attention_plan (emitter, plan->shape, &attention);
  weights = attention.weights + hidden * (double) (sizes.ffn * (sizes.ffn_matrices_in + 1));
  global_weights = attention.global_weights + hidden * (double) pod_layout_dense_ffn (model, plan->shape) * (double) (sizes.ffn_matrices_in + 1);
  whole = n_norms * norm_params (model) + attention.replicated;
  plan->replicated_params = whole;
  if (plan->shape->is_moe)
    {
      PodMoeParams moe;

      pod_moe_params (emitter, &moe);
      plan->replicated_params += moe.router;
      plan->expert_params = moe.experts;
      global_weights += pod_moe_model_params (model);
    }
  /* biases and the like: what the exact count has beyond matrices and norms */
  plan->sharded_params = weights + MAX (0, (double) pod_model_layer_params (model, kind, NULL) - global_weights - whole) / sizes.tp;
  plan->padded_params = attention.padded + padded_ffn (emitter, &sizes) + plan->sharded_params - weights + plan->replicated_params - attention.replicated;
  plan->input_bytes = emitter->residual_tokens * hidden * emitter->element_bytes;

  if (job->lora_rank > 0)
    {
      const bool has_ffn = sizes.ffn > 0 && !plan->shape->is_moe; /* experts have no adapters */

      plan->adapter_params = (double) job->lora_rank
                             * (attention.adapter_sides + (has_ffn ? 2 * hidden + (double) (sizes.ffn * (sizes.ffn_matrices_in + 1)) : 0));
      plan->adapter_replicated = (double) job->lora_rank * (attention.adapter_whole + (has_ffn ? 2 * hidden : 0));
    }
  keep_layer (emitter, &attention, &sizes, n_norms, plan->tensor_bytes, plan->input_bytes);
  if (plan->shape->is_moe)
    plan->tensor_bytes[POD_TENSOR_UP] += pod_moe_saved_bytes (emitter);
  plan->flowing_bytes = plan->input_bytes + emitter->tokens * emitter->element_bytes * hidden
                        + MAX (attention.flowing_bytes, plan->tensor_bytes[POD_TENSOR_GATE] + plan->tensor_bytes[POD_TENSOR_UP] + plan->tensor_bytes[POD_TENSOR_ACTIVATION]);
  plan->saved_bytes = plan->input_bytes;
  for (unsigned t = 0; t < POD_N_TENSORS; t++)
    plan->saved_bytes += plan->tensor_bytes[t];
}

/* What a multi-token prediction module has around its layer (pod_model_mtp_params), and keeps: both inputs of its norms and their
 * outputs, and as the head does the final norm's. It looks tokens up and makes logits with tables that are elsewhere, but for the
 * embedding's, of which the last of several stages has a copy. */
static void
plan_mtp (const PodEmitter *emitter, double table, double padded_table, PodUnitPlan *plan)
{
  const PodJob *job = emitter->job;
  const PodModel *model = job->model;
  const double hidden = (double) model->hidden;
  const double tp = job->layout.degree[POD_AXIS_TP];
  const double norms = (double) pod_model_mtp_params (model) - 2 * hidden * hidden;
  const bool has_copy = !emitter->shares_table && !model->is_tied && (uint64_t) plan->layer == model->n_layers;

  plan_layer (emitter, plan);
  plan->replicated_params += norms;
  plan->sharded_params += 2 * hidden * hidden / tp + (has_copy ? table : 0);
  plan->padded_params += norms + (emitter->shards_outputs ? pod_pad_rows (emitter, hidden / tp, 2 * hidden) : pod_pad_rows (emitter, 2 * hidden, hidden / tp))
                         + (has_copy ? padded_table : 0);
  plan->copied_table = has_copy ? padded_table : 0;
  plan->gathered_params = plan->padded_params + (has_copy || model->is_tied ? 1 : 2) * padded_table;
  plan->saved_bytes += 6 * plan->input_bytes;
}

PodTrained
pod_unit_trained (const PodEmitter *emitter, const PodUnitPlan *unit)
{
  if (emitter->job->lora_rank > 0)
    return (PodTrained){ .params = unit->adapter_params, .padded = unit->adapter_params, .matrices = unit->adapter_params, .replicated = unit->adapter_replicated };
  return (PodTrained){ .params = unit->sharded_params + unit->replicated_params,
                       .padded = unit->padded_params,
                       .matrices = unit->shape != NULL ? unit->sharded_params - unit->copied_table : 0,
                       .replicated = unit->replicated_params,
                       .copied_table = unit->copied_table,
                       .experts = unit->expert_params };
}

void
pod_unit_plan (const PodEmitter *emitter, PodUnitKind kind, int32_t layer, PodUnitPlan *out)
{
  const PodJob *job = emitter->job;
  const PodModel *model = job->model;
  const double tp = job->layout.degree[POD_AXIS_TP];
  const double table = (double) pod_job_padded_vocab (job) * (double) model->hidden / tp;

  const double hidden = (double) model->hidden;
  const double padded_table = emitter->shards_outputs ? pod_pad_rows (emitter, table / MAX (hidden, 1), hidden) : pod_pad_rows (emitter, hidden, table / MAX (hidden, 1));

  *out = (PodUnitPlan){ .kind = kind, .layer = kind == POD_UNIT_LAYER || kind == POD_UNIT_MTP ? layer : -1, .saved_label = emitter->label_saved };
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
    case POD_UNIT_MTP:
      plan_mtp (emitter, table, padded_table, out);
      return;
    }
  if (kind != POD_UNIT_LAYER)
    out->padded_params = (out->sharded_params > 0 ? padded_table : 0) + out->replicated_params;
  out->gathered_params = kind == POD_UNIT_HEAD ? padded_table + out->replicated_params : out->padded_params;
}

/* Two stretches of the struct, which have no padding inside. */
bool
pod_units_are_alike (const PodUnitPlan *a, const PodUnitPlan *b)
{
  return a->kind == b->kind && memcmp (&a->shape, &b->shape, offsetof (PodUnitPlan, saved_label) - offsetof (PodUnitPlan, shape)) == 0 && a->saved_label == b->saved_label
         && memcmp (&a->saved_bytes, &b->saved_bytes, offsetof (PodUnitPlan, group_first) - offsetof (PodUnitPlan, saved_bytes)) == 0;
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
      apply_recompute (emitter, i, &unit);
      unit.group_first = units->len - (unit.makes != 0 ? i % job->recompute.group : 0);
      g_array_append_val (units, unit);
    }
  if (part == job->schedule->n_parts - 1 && has_vocab)
    {
      pod_unit_plan (emitter, POD_UNIT_HEAD, -1, &unit);
      g_array_append_val (units, unit);
      for (uint64_t i = 0; i < job->model->n_mtp; i++)
        {
          pod_unit_plan (emitter, POD_UNIT_MTP, (int32_t) (job->model->n_layers + i), &unit);
          g_array_append_val (units, unit);
        }
    }
  return units;
}

unsigned
pod_pass_makes (const PodPass *pass, unsigned tensors)
{
  return pass->phase != POD_PHASE_RECOMPUTE ? tensors : pass->unit->makes & tensors;
}

/* Norm, with the residual addition before it fused in, and the dropout of what is added: a mask of a byte a value. */
static void
norm_forward (PodPass *pass, const char *name)
{
  double elements = pass->emitter->residual_tokens * (double) pass->emitter->job->model->hidden;
  double bytes = elements * pass->emitter->element_bytes;

  if (pass->emitter->job->model->norm != POD_NORM_NONE)
    pod_pass_vector (pass, name, 6 * elements, 2 * bytes, 2 * bytes + (pass->emitter->job->has_dropout ? elements : 0));
}

static void
norm_backward (PodPass *pass, const char *name)
{
  double elements = pass->emitter->residual_tokens * (double) pass->emitter->job->model->hidden;
  double bytes = elements * pass->emitter->element_bytes;

  if (pass->emitter->job->model->norm != POD_NORM_NONE)
    pod_pass_vector (pass, name, 12 * elements, 3 * bytes + (pass->emitter->job->has_dropout ? elements : 0), bytes);
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
ffn_linears (const PodPass *pass, const LayerSizes *sizes, PodLinear out[2])
{
  const uint64_t hidden = pass->emitter->job->model->hidden;

  out[0] = (PodLinear){ "ffn in", hidden, sizes->ffn * sizes->ffn_matrices_in, POD_TP_COLUMN };
  out[1] = (PodLinear){ "ffn out", sizes->ffn, hidden, POD_TP_ROW };
}

/* How many of the FFN's first matrices this pass multiplies by. */
static uint64_t
first_matrices (const PodPass *pass)
{
  const uint64_t gate = pod_pass_makes (pass, POD_TENSOR_BIT (POD_TENSOR_GATE)) != 0;

  return gate + (pass->emitter->job->model->is_ffn_gated && pod_pass_makes (pass, POD_TENSOR_BIT (POD_TENSOR_UP)) != 0);
}

static void
layer_forward (PodPass *pass)
{
  const PodModel *model = pass->emitter->job->model;
  const bool is_parallel = model->is_parallel_block;
  LayerSizes sizes = layer_sizes (pass->emitter, pass->unit->shape);
  PodLinear linears[2];

  ffn_linears (pass, &sizes, linears);
  if (model->attention != POD_ATTENTION_NONE)
    {
      if (pod_pass_makes (pass, POD_TENSOR_BIT (POD_TENSOR_NORM)))
        norm_forward (pass, "norm");
      pod_attention_forward (pass, !is_parallel);
    }
  if (!is_parallel && pod_pass_makes (pass, POD_TENSOR_BIT (POD_TENSOR_FFN_NORM)))
    norm_forward (pass, "ffn norm");
  if (pass->unit->shape->is_moe)
    {
      if (pod_pass_makes (pass, POD_TENSOR_BIT (POD_TENSOR_UP)))
        pod_moe_forward (pass);
      else if (pod_pass_makes (pass, POD_TENSOR_BIT (POD_TENSOR_ACTIVATION)) && sizes.ffn > 0) /* of shared experts; what the others keep is all in UP */
        pod_pass_activation (pass, pass->emitter->tokens, sizes.ffn, false);
      return;
    }
  linears[0].out = sizes.ffn * first_matrices (pass);
  if (linears[0].out > 0)
    pod_linear_forward (pass, &linears[0], true);
  if (pod_pass_makes (pass, POD_TENSOR_BIT (POD_TENSOR_ACTIVATION)))
    pod_pass_activation (pass, pass->emitter->tokens, sizes.ffn, false);
  if (pod_pass_makes (pass, POD_TENSOR_BIT (POD_TENSOR_OUTPUT)))
    pod_linear_forward (pass, &linears[1], true);
}

static void
layer_backward (PodPass *pass)
{
  const PodModel *model = pass->emitter->job->model;
  const bool is_parallel = model->is_parallel_block;
  LayerSizes sizes = layer_sizes (pass->emitter, pass->unit->shape);
  PodLinear linears[2];

  ffn_linears (pass, &sizes, linears);
  if (pass->unit->shape->is_moe)
    pod_moe_backward (pass);
  else
    {
      pod_linear_backward (pass, &linears[1], true);
      pod_pass_activation (pass, pass->emitter->tokens, sizes.ffn, true);
      pod_linear_backward (pass, &linears[0], !is_parallel);
    }
  if (!is_parallel)
    norm_backward (pass, "ffn norm backward");
  if (model->attention == POD_ATTENTION_NONE)
    return;
  if (is_parallel)
    pass->gathered = pass->value; /* the output gradient is already whole */
  pod_attention_backward (pass);
  norm_backward (pass, "norm backward");
}

static void
head_linear (const PodPass *pass, PodLinear *out)
{
  const PodJob *job = pass->emitter->job;

  *out = (PodLinear){ "logits", job->model->hidden, pod_job_padded_vocab (job) / job->layout.degree[POD_AXIS_TP], POD_TP_COLUMN };
}

/* The loss keeps logits in fp32, exponentials in their place, from forward to backward. PyTorch op by op (F.cross_entropy of float()
 * logits) keeps the log-softmax; beside it there are for a while, forward, the matmul's output in 2 bytes and its fp32 copy, and
 * backward the gradients of the log-softmax and of the fp32 copy. */
static double
passing_logits (const PodEmitter *emitter, double logits, bool is_backward)
{
  return !emitter->job->has_eager_loss ? 0 : is_backward ? 2 * logits : logits / 2 + logits;
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
  pod_builder_alloc (&emitter->builder, pass->value, emitter->label_logits, logits + passing_logits (emitter, logits, false));
  if (emitter->job->has_eager_loss)
    pod_pass_vector (pass, "logits to fp32", logits / 4, logits / 2, logits);
  pod_pass_vector (pass, "cross-entropy", 3 * logits, logits, emitter->job->has_eager_loss ? logits : 0);
  if (emitter->job->has_eager_loss)
    pod_builder_free_buffer (&emitter->builder, pass->value, emitter->label_logits, passing_logits (emitter, logits, false));
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
  if (emitter->job->has_eager_loss && pass->part != POD_PART_WEIGHT)
    {
      pod_pass_vector (pass, "log-softmax backward", logits, logits, logits);
      pod_builder_alloc (&emitter->builder, pass->last_compute, emitter->label_logits, passing_logits (emitter, logits, true));
    }
  pod_pass_vector (pass, "cross-entropy backward", logits, logits, logits / 4 * emitter->element_bytes);
  pod_linear_backward (pass, &linear, true);
  if (pass->part != POD_PART_WEIGHT)
    pod_builder_free_buffer (&emitter->builder, pass->last_compute, emitter->label_logits, logits + passing_logits (emitter, logits, true));
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

static PodLinear
mtp_projection (const PodPass *pass)
{
  const PodJob *job = pass->emitter->job;

  return (PodLinear){ "mtp projection", 2 * job->model->hidden, job->model->hidden / job->layout.degree[POD_AXIS_TP], POD_TP_COLUMN };
}

/* The projection's output is whole where tp made a slice of it each (Megatron-Core gathers it, then takes its own tokens); so is
 * its gradient, of which each rank takes its slice. */
static void
gather_projected (PodPass *pass, const char *name)
{
  const PodEmitter *emitter = pass->emitter;

  if (emitter->tp_comm == POD_NO_COMM)
    return;
  pass->value = pod_pass_tp_collective (pass, name, POD_ALL_GATHER, emitter->tokens * (double) emitter->job->model->hidden * emitter->element_bytes, pass->value);
  pass->gathered = POD_NO_OP;
}

/* Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, 2.2), from the last layer's output, or that of the module before. */
static void
mtp_forward (PodPass *pass)
{
  PodEmitter *emitter = pass->emitter;
  const double elements = emitter->residual_tokens * (double) emitter->job->model->hidden;
  const double bytes = elements * emitter->element_bytes;
  const PodLinear projection = mtp_projection (pass);
  const uint32_t source = pass->value;
  uint32_t out;

  embedding_forward (pass);
  pod_pass_vector (pass, "mtp norms", 8 * elements, 2 * bytes, 2 * bytes);
  pod_builder_depend (&emitter->builder, pass->value, source);
  pod_linear_forward (pass, &projection, true);
  gather_projected (pass, "mtp projection output all-gather");
  layer_forward (pass);
  out = pass->value;
  head_forward (pass);
  pass->value = out;
}

static void
mtp_backward (PodPass *pass)
{
  PodEmitter *emitter = pass->emitter;
  const double elements = emitter->residual_tokens * (double) emitter->job->model->hidden;
  const double bytes = elements * emitter->element_bytes;
  const PodLinear projection = mtp_projection (pass);

  head_backward (pass);
  layer_backward (pass);
  if (emitter->job->layout.is_sequence_parallel)
    gather_projected (pass, "mtp projection gradient all-gather");
  pod_linear_backward (pass, &projection, true);
  pod_pass_vector (pass, "mtp norms backward", 16 * elements, 4 * bytes, 2 * bytes);
  if (pass->part != POD_PART_WEIGHT) /* the table's gradient needs no matmul that could wait */
    embedding_backward (pass);
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
      {
        const uint32_t source = pass->value;

        head_forward (pass);
        if (pass->emitter->job->model->n_mtp > 0) /* which starts from what the head was given */
          pass->value = source;
        break;
      }
    case POD_UNIT_MTP:
      mtp_forward (pass);
      break;
    }
}

void
pod_pass_backward (PodPass *pass)
{
  switch (pass->unit->kind)
    {
    case POD_UNIT_EMBEDDING: /* all of it is the table's gradient */
      if (pass->part == POD_PART_INPUT || pass->emitter->job->lora_rank > 0)
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
    case POD_UNIT_MTP:
      mtp_backward (pass);
      break;
    }
}
