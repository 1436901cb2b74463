#include "parallel/transformer-private.h"

/* The shardings of a linear layer X[T, I] . W[I, O] -> Y[T, O]: the residual side is sharded over token_axes, the inner side
 * over the batch alone and tp on its width; weights over fsdp on the residual dimension. A
 * weight that tp does not shard works on the residual stream's tokens, and tp is left to the optimizer's sum of its gradient. */
typedef struct
{
  PodSharding x;
  PodSharding w;
  PodSharding y;
  PodSharding grad; /* of w, as the optimizer wants it */
} Shardings;

static Shardings
shardings_of (const PodEmitter *emitter, const PodLinear *linear)
{
  Shardings s;

  if (linear->side == POD_TP_COLUMN)
    {
      s.x = pod_sharding ("TI", emitter->token_axes, 0);
      s.w = pod_sharding ("IO", emitter->fsdp_axes, emitter->tp_axes);
      s.y = pod_sharding ("TO", emitter->data_axes, emitter->tp_axes);
      s.grad = pod_sharding ("IO", emitter->fsdp_axes | emitter->grad_axes, emitter->tp_axes);
    }
  else if (linear->side == POD_TP_NONE)
    {
      s.x = pod_sharding ("TI", emitter->token_axes, 0);
      s.w = pod_sharding ("IO", emitter->fsdp_axes, 0);
      s.y = pod_sharding ("TO", emitter->token_axes, 0);
      s.grad = pod_sharding ("IO", emitter->fsdp_axes | emitter->grad_axes, 0);
    }
  else
    {
      s.x = pod_sharding ("TI", emitter->data_axes, emitter->tp_axes);
      s.w = pod_sharding ("IO", emitter->tp_axes, emitter->fsdp_axes);
      s.y = pod_sharding ("TO", emitter->token_axes, 0);
      s.grad = pod_sharding ("IO", emitter->tp_axes, emitter->fsdp_axes | emitter->grad_axes);
    }
  return s;
}

/* Tokens that one rank multiplies with a weight. */
static double
tokens_of (const PodEmitter *emitter, const PodLinear *linear)
{
  return linear->side == POD_TP_NONE ? emitter->residual_tokens : emitter->tokens;
}

static PodShardedMatmul
derive (const PodSharding *lhs, const PodSharding *rhs, const PodSharding *out)
{
  PodShardedMatmul result;
  g_autoptr (GError) error = NULL;

  if (!pod_sharded_matmul (lhs, rhs, out, &result, &error))
    g_error ("shardings of a linear layer: %s", error->message);
  return result;
}

uint32_t
pod_pass_weight_compute (PodPass *pass, const char *name, bool has_detail, const PodKernel *kernel)
{
  PodBuilder *builder = &pass->emitter->builder;
  PodKernel own = *kernel;
  uint32_t op;

  own.is_sized_late = pass->is_routed;
  own.is_awaited = pass->phase == POD_PHASE_FORWARD && pass->unit->shape != NULL && pass->unit->shape->is_moe && pass->emitter->job->counts_copies
                   && !pass->emitter->job->weaves_experts;
  own.begins_woven = pass->is_routed && !pass->has_routed && pass->emitter->job->weaves_experts;
  pass->has_routed |= pass->is_routed;
  op = pod_builder_compute (builder, pass->phase, pass->unit->layer, name, has_detail, &own);
  pod_builder_depend (builder, op, pass->value);
  if (pass->first_compute == POD_NO_OP)
    pass->first_compute = op;
  pass->last_compute = op;
  return op;
}

uint32_t
pod_pass_compute (PodPass *pass, const char *name, bool has_detail, const PodKernel *kernel)
{
  return pass->part == POD_PART_WEIGHT ? pass->value : pod_pass_weight_compute (pass, name, has_detail, kernel);
}

uint32_t
pod_pass_vector (PodPass *pass, const char *name, double flops, double read_bytes, double write_bytes)
{
  PodKernel kernel = pod_kernel_vector (flops, read_bytes, write_bytes);

  pass->value = pod_pass_compute (pass, name, false, &kernel);
  pass->gathered = POD_NO_OP;
  return pass->value;
}

/* Logits are never quantised. */
static bool
is_quantised (const PodPass *pass)
{
  return pass->emitter->job->is_quantised && pass->unit->kind != POD_UNIT_HEAD;
}

static PodDtype
dtype_of (const PodPass *pass)
{
  return is_quantised (pass) ? pass->emitter->job->dtype : pod_job_activation_dtype (pass->emitter->job);
}

static uint32_t
matmul (PodPass *pass, const char *name, double m, uint64_t n, uint64_t k, PodDtype dtype, double out_bytes, bool is_gradient)
{
  const double operand = pod_dtype_bytes (dtype);
  PodKernel kernel = pod_kernel_matmul (1, (uint64_t) m, n, k, dtype, operand, operand, out_bytes);

  kernel.is_transposed = is_gradient;
  return pod_pass_weight_compute (pass, name, true, &kernel);
}

static uint32_t
tp_collective (PodPass *pass, const char *name, PodCollectiveKind kind, double bytes, uint32_t after)
{
  PodEmitter *emitter = pass->emitter;
  uint32_t op = pod_builder_collective (&emitter->builder, pass->phase, pass->unit->layer, name, POD_STREAM_TP, emitter->tp_comm, kind, (uint64_t) bytes);

  pod_builder_depend (&emitter->builder, op, after);
  return op;
}

uint32_t
pod_pass_tp_collective (PodPass *pass, const char *name, PodCollectiveKind kind, double bytes, uint32_t after)
{
  return pass->part == POD_PART_WEIGHT ? POD_NO_OP : tp_collective (pass, name, kind, bytes, after);
}

/* The buffer of a gather over tp, from its start to the end of @last_user. */
static void
hold_gathered (PodPass *pass, uint32_t gather, uint32_t last_user, uint64_t width)
{
  PodEmitter *emitter = pass->emitter;
  const double bytes = emitter->tokens * (double) width * emitter->element_bytes;

  if (gather == POD_NO_OP)
    return;
  pod_builder_alloc (&emitter->builder, gather, emitter->label_gathered_tokens, bytes);
  pod_builder_free_buffer (&emitter->builder, last_user, emitter->label_gathered_tokens, bytes);
}

/* What flows, whole over tp: gathered at most once. */
static void
gather_value (PodPass *pass, const char *name, uint64_t width)
{
  if (pass->gathered != POD_NO_OP)
    return;
  pass->gathered = tp_collective (pass, pod_builder_join (&pass->emitter->builder, name, "all-gather"), POD_ALL_GATHER, pass->emitter->tokens * (double) width * pass->emitter->element_bytes, pass->value);
}

/* A partial sum over tp becomes the residual stream's. */
static void
reduce_value (PodPass *pass, const PodShardedMatmul *comm, const char *name, uint64_t width)
{
  PodEmitter *emitter = pass->emitter;
  double bytes = emitter->tokens * (double) width * emitter->element_bytes;

  if (comm->reduce_scatter & emitter->tp_axes)
    pass->value = tp_collective (pass, pod_builder_join (&emitter->builder, name, "reduce-scatter"), POD_REDUCE_SCATTER, bytes, pass->value);
  else if (comm->all_reduce & emitter->tp_axes)
    pass->value = tp_collective (pass, pod_builder_join (&emitter->builder, name, "all-reduce"), POD_ALL_REDUCE, bytes, pass->value);
}

/* A quantised matmul's operand of @elements: read once (twice where a first pass finds its scale) and written by rows and by columns, for
 * the products that it takes part in. A norm writes its output so at once; weights are cast when they are updated. */
static void
cast (PodPass *pass, const PodLinear *linear, const char *what, double elements)
{
  PodEmitter *emitter = pass->emitter;
  const PodJob *job = emitter->job;
  const double read = elements * emitter->element_bytes;

  if (!is_quantised (pass))
    return;
  pod_pass_vector (pass, pod_builder_join (&emitter->builder, linear->name, what), 2 * elements, job->has_amax_pass ? 2 * read : read, 2 * elements * pod_dtype_bytes (job->dtype));
}

/* A local product [tokens, k] x [k, n] of what flows with a weight. */
typedef struct
{
  const char *name;
  double tokens;
  uint64_t n;
  uint64_t k;
  PodDtype dtype;
  PodShardedMatmul comm;
  bool is_reduced;
  uint32_t gather; /* out: the (first) gather that it needed, POD_NO_OP none */
} Product;

/* Collective matmul (Wang et al., ASPLOS 2023): the gather comes in pieces, each multiplied while the next is on its way; partial
 * sums leave in pieces while the next is computed. As many pieces as tensor ranks, at most this. */
#define MAX_PIECES 8

static double
n_pieces (const PodPass *pass, const Product *product)
{
  const PodEmitter *emitter = pass->emitter;
  const bool is_split = (product->comm.gather_lhs & emitter->tp_axes && pass->gathered == POD_NO_OP)
                        || (product->is_reduced && product->comm.reduce_scatter & emitter->tp_axes);

  return is_split && emitter->job->is_tp_overlapped ? MIN (emitter->job->layout.degree[POD_AXIS_TP], MAX_PIECES) : 1;
}

static uint32_t
multiply (PodPass *pass, Product *product)
{
  PodEmitter *emitter = pass->emitter;
  const double pieces = n_pieces (pass, product);
  const bool gathers = product->comm.gather_lhs & emitter->tp_axes && pass->gathered == POD_NO_OP;
  const bool scatters = product->is_reduced && product->comm.reduce_scatter & emitter->tp_axes;
  const double in_bytes = emitter->tokens * (double) product->k * emitter->element_bytes;
  const double out_bytes = emitter->tokens * (double) product->n * emitter->element_bytes;
  const uint32_t source = pass->value;
  uint32_t reduced = POD_NO_OP;
  uint32_t op = POD_NO_OP;

  product->gather = POD_NO_OP;
  if (gathers && pieces == 1)
    {
      gather_value (pass, product->name, product->k);
      product->gather = pass->gathered;
    }
  for (unsigned i = 0; i < pieces; i++)
    {
      uint32_t arrived = pieces == 1 || !gathers ? pass->gathered : POD_NO_OP;

      if (gathers && pieces > 1 && i > 0) /* the first piece is this rank's own */
        arrived = pass->gathered = tp_collective (pass, pod_builder_join (&emitter->builder, product->name, "all-gather"), POD_ALL_GATHER, in_bytes / (pieces - 1), source);
      if (product->gather == POD_NO_OP)
        product->gather = gathers ? pass->gathered : POD_NO_OP;
      pass->value = source;
      op = matmul (pass, product->name, product->tokens / pieces, product->n, product->k, product->dtype, emitter->element_bytes, false);
      pod_builder_depend (&emitter->builder, op, arrived);
      if (product->comm.gather_rhs & emitter->fsdp_axes)
        pod_builder_depend (&emitter->builder, op, pass->weights);
      pass->value = op;
      if (scatters && pieces > 1 && i < pieces - 1) /* the last piece is this rank's own */
        reduced = tp_collective (pass, pod_builder_join (&emitter->builder, product->name, "reduce-scatter"), POD_REDUCE_SCATTER, out_bytes / (pieces - 1), op);
    }
  if (pieces > 1 && scatters)
    pass->value = reduced;
  else if (product->is_reduced)
    reduce_value (pass, &product->comm, product->name, product->n);
  return op;
}

/* LoRA (arXiv 2106.09685): beside a frozen W an adapter A [in, r] . B [r, out]. tp shards it as W: a column's A is whole and works on the
 * residual stream's own tokens, whose products are gathered; a row's B is whole and its output part of the same sum. */
static uint64_t
adapter_rank (const PodPass *pass)
{
  return pass->unit->kind == POD_UNIT_LAYER ? pass->emitter->job->lora_rank : 0;
}

static uint32_t
adapter_product (PodPass *pass, const PodLinear *linear, const char *what, double m, uint64_t n, uint64_t k, double out_bytes, uint32_t after)
{
  const char *name = pod_builder_join (&pass->emitter->builder, linear->name, what);
  const uint32_t value = pass->value;
  uint32_t op;

  pass->value = after;
  op = matmul (pass, name, m, n, k, pod_job_activation_dtype (pass->emitter->job), out_bytes, false);
  pass->value = value;
  return op;
}

static void
adapter_forward (PodPass *pass, const PodLinear *linear)
{
  PodEmitter *emitter = pass->emitter;
  const uint64_t rank = adapter_rank (pass);
  const bool is_by_tokens = linear->side == POD_TP_COLUMN && emitter->tp_comm != POD_NO_COMM && emitter->job->layout.is_sequence_parallel;
  const double tokens = is_by_tokens ? emitter->residual_tokens : tokens_of (emitter, linear);
  uint32_t down;

  if (rank == 0)
    return;
  down = adapter_product (pass, linear, "adapter down", tokens, rank, linear->in, emitter->element_bytes, pass->value);
  if (is_by_tokens)
    down = tp_collective (pass, pod_builder_join (&emitter->builder, linear->name, "adapter all-gather"), POD_ALL_GATHER,
                          emitter->tokens * (double) rank * emitter->element_bytes, down);
  adapter_product (pass, linear, "adapter up", tokens_of (emitter, linear), linear->out, rank, 2 * emitter->element_bytes, down); /* added to what is there */
}

/* Gradients of B, of what is between, of A, and what is added to the input's. */
static uint32_t
adapter_backward (PodPass *pass, const PodLinear *linear, uint32_t after)
{
  const PodEmitter *emitter = pass->emitter;
  const uint64_t rank = adapter_rank (pass);
  const uint64_t tokens = (uint64_t) tokens_of (emitter, linear);
  const double grad_bytes = pod_dtype_bytes (emitter->job->grad_dtype);

  after = adapter_product (pass, linear, "adapter dB", (double) rank, linear->out, tokens, grad_bytes, after);
  after = adapter_product (pass, linear, "adapter up dX", (double) tokens, rank, linear->out, emitter->element_bytes, after);
  after = adapter_product (pass, linear, "adapter dA", (double) linear->in, rank, tokens, grad_bytes, after);
  return adapter_product (pass, linear, "adapter down dX", (double) tokens, linear->in, rank, 2 * emitter->element_bytes, after);
}

void
pod_linear_forward (PodPass *pass, const PodLinear *linear, bool is_reduced)
{
  PodEmitter *emitter = pass->emitter;
  Shardings s = shardings_of (emitter, linear);
  Product product = { .name = linear->name, .tokens = tokens_of (emitter, linear), .n = linear->out, .k = linear->in, .dtype = dtype_of (pass), .comm = derive (&s.x, &s.w, &s.y), .is_reduced = is_reduced };
  uint32_t op;

  if (linear->side == POD_TP_ROW)
    cast (pass, linear, "input cast", emitter->tokens * (double) linear->in);
  adapter_forward (pass, linear);
  op = multiply (pass, &product);
  hold_gathered (pass, product.gather, op, linear->in);
  pass->gathered = POD_NO_OP;
}

/* What is kept from the gradient of the input to that of the weight: the saved input, and the output's gradient, whole. */
/* What a later weight gradient needs of the output's gradient, and of the input, as it multiplies them. */
static double
kept_grad_bytes (const PodPass *pass, const PodLinear *linear)
{
  return tokens_of (pass->emitter, linear) * (double) linear->out * pod_dtype_bytes (dtype_of (pass));
}

static double
kept_input_bytes (const PodPass *pass, const PodLinear *linear)
{
  return (linear->side == POD_TP_ROW ? pass->emitter->tokens : pass->emitter->residual_tokens) * (double) linear->in * pod_dtype_bytes (dtype_of (pass));
}

/* dW = X^T . dY; @dy waits are on @after (the op before it) and @gathered (dY whole over tp). */
static void
weight_gradient (PodPass *pass, const PodLinear *linear, const PodShardedMatmul *comm, uint32_t saved, uint32_t gathered, uint32_t *out)
{
  PodEmitter *emitter = pass->emitter;
  const double grad_bytes = pod_dtype_bytes (emitter->keeps_grads_whole ? emitter->job->grad_dtype : pod_job_activation_dtype (emitter->job));
  const char *name = pod_builder_join (&emitter->builder, linear->name, "dW");

  *out = matmul (pass, name, (double) linear->in, linear->out, (uint64_t) tokens_of (emitter, linear), dtype_of (pass), emitter->accumulates ? 2 * grad_bytes : grad_bytes, true);
  pod_builder_depend (&emitter->builder, *out, saved);
  pod_builder_depend (&emitter->builder, *out, gathered);
  if (comm->gather_lhs & emitter->tp_axes)
    hold_gathered (pass, saved, *out, linear->in);
}

/* The input of the layer once more whole over tp, for its weight's gradient. */
static uint32_t
gather_saved (PodPass *pass, const PodLinear *linear)
{
  PodEmitter *emitter = pass->emitter;
  const char *name = pod_builder_join (&emitter->builder, linear->name, "input all-gather");
  uint32_t op = tp_collective (pass, name, POD_ALL_GATHER, emitter->tokens * (double) linear->in * emitter->element_bytes, pass->value);

  if (pass->part == POD_PART_WEIGHT) /* as the matmul before it begins */
    pod_builder_depend_before (&emitter->builder, op, POD_STREAM_COMPUTE, 1);
  return op;
}

void
pod_linear_backward (PodPass *pass, const PodLinear *linear, bool is_reduced)
{
  PodEmitter *emitter = pass->emitter;
  Shardings s = shardings_of (emitter, linear);
  PodSharding wt = pod_sharding_transpose (&s.w);
  PodSharding xt = pod_sharding_transpose (&s.x);
  PodShardedMatmul weight = derive (&xt, &s.y, &s.grad); /* dW = X^T . dY */
  const char *dx_name = pod_builder_join (&emitter->builder, linear->name, "dX");
  Product product = { .name = dx_name, .tokens = tokens_of (emitter, linear), .n = linear->in, .k = linear->out, .dtype = dtype_of (pass), .comm = derive (&s.y, &wt, &s.x), .is_reduced = is_reduced, .gather = POD_NO_OP }; /* dX = dY . W^T */
  const bool is_frozen = emitter->job->lora_rank > 0;
  uint32_t saved = POD_NO_OP;
  uint32_t value;
  uint32_t last;

  pass->grad_scatter |= weight.reduce_scatter & ~emitter->tp_axes;
  pass->grad_all_reduce |= weight.all_reduce & ~emitter->tp_axes;
  pass->kept_input_bytes += pass->part == POD_PART_BOTH ? 0 : kept_input_bytes (pass, linear);
  if (weight.gather_lhs & emitter->tp_axes && pass->part != POD_PART_INPUT && !is_frozen)
    saved = gather_saved (pass, linear);
  if (pass->part == POD_PART_WEIGHT)
    {
      weight_gradient (pass, linear, &weight, saved, POD_NO_OP, &last);
      pod_builder_free_buffer (&emitter->builder, last, emitter->label_kept_grads, kept_grad_bytes (pass, linear));
      pass->value = POD_NO_OP;
      return;
    }
  if (pass->gathered == POD_NO_OP)
    cast (pass, linear, "dY cast", (linear->side == POD_TP_COLUMN ? emitter->tokens : emitter->residual_tokens) * (double) linear->out);
  last = multiply (pass, &product);
  value = pass->value;
  if (is_frozen)
    last = adapter_rank (pass) > 0 ? adapter_backward (pass, linear, last) : last;
  else if (pass->part == POD_PART_INPUT)
    pod_builder_alloc (&emitter->builder, last, emitter->label_kept_grads, kept_grad_bytes (pass, linear));
  else
    {
      pass->value = last; /* the weight's gradient waits for no reduction of the input's */
      weight_gradient (pass, linear, &weight, saved, pass->gathered, &last);
    }
  hold_gathered (pass, product.gather, last, linear->out);
  pass->value = value;
  pass->gathered = POD_NO_OP;
}
