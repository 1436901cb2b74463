#include "parallel/optimizer-private.h"

#include <math.h>

const char *const pod_optimizer_names[POD_N_OPTIMIZERS + 1] = {
  [POD_OPTIMIZER_ADAM] = "adam",           [POD_OPTIMIZER_ADAM_BF16] = "adam-bf16", [POD_OPTIMIZER_ADAM_8BIT] = "adam-8bit",
  [POD_OPTIMIZER_ADAFACTOR] = "adafactor", [POD_OPTIMIZER_MUON] = "muon",           [POD_OPTIMIZER_SGD] = "sgd",
};

/* State beside the master copy, bytes a parameter, and operations of an element's update (they are never what bounds it). */
static const struct
{
  double state_bytes;
  double flops;
} optimizers[POD_N_OPTIMIZERS] = {
  [POD_OPTIMIZER_ADAM] = { 8, 12 },                /* two moments, fp32 */
  [POD_OPTIMIZER_ADAM_BF16] = { 4, 12 },           /* two moments, bf16 */
  [POD_OPTIMIZER_ADAM_8BIT] = { 2 + 8. / 2048, 20 }, /* two moments of 1 byte, a scale of 4 bytes for each in blocks of 2048 (arXiv 2110.02861) */
  [POD_OPTIMIZER_ADAFACTOR] = { 0, 20 },           /* a row and a column of second moments for each matrix (arXiv 1804.04235): see below */
  [POD_OPTIMIZER_MUON] = { 4, 6 },                 /* one momentum, fp32 (Keller Jordan et al., 2024); Adam for what is no matrix */
  [POD_OPTIMIZER_SGD] = { 0, 2 },
};

/* Newton-Schulz steps that make a momentum matrix orthogonal (Muon's reference: 5). */
#define N_ORTHOGONALISATIONS 5

double
pod_job_state_bytes (const PodJob *job, bool is_matrix)
{
  if (job->optimizer == POD_OPTIMIZER_ADAFACTOR) /* fp32 row and column sums of a matrix with sides of about hidden */
    return is_matrix ? 8 / (double) job->model->hidden : 4;
  if (job->optimizer == POD_OPTIMIZER_MUON && !is_matrix)
    return optimizers[POD_OPTIMIZER_ADAM].state_bytes;
  return optimizers[job->optimizer].state_bytes;
}

/* Adds a number up over an axis, on the stream of the gradients. */
static uint32_t
sum_over (PodEmitter *emitter, uint32_t comm, uint32_t after)
{
  uint32_t op;

  if (comm == POD_NO_COMM)
    return after;
  op = pod_builder_collective (&emitter->builder, POD_PHASE_OPTIMIZER, -1, "gradient norm all-reduce", POD_STREAM_REDUCE, comm, POD_ALL_REDUCE, 4);
  pod_builder_set_dtype (&emitter->builder, op, POD_DTYPE_FP32);
  pod_builder_depend (&emitter->builder, op, after);
  return op;
}

uint32_t
pod_optimizer_clip (PodEmitter *emitter, double local_grads, uint32_t after)
{
  const PodJob *job = emitter->job;
  const double bytes = local_grads * pod_dtype_bytes (job->grad_dtype);
  PodKernel kernel = pod_kernel_optimizer (bytes, 0, 2 * local_grads);
  uint32_t norm;

  if (!job->clips_gradients)
    return after;
  norm = pod_builder_compute (&emitter->builder, POD_PHASE_OPTIMIZER, -1, "gradient norm", false, &kernel);
  pod_builder_depend (&emitter->builder, norm, after);
  pod_builder_depend_before (&emitter->builder, norm, POD_STREAM_REDUCE, 0);
  norm = sum_over (emitter, emitter->tp_comm, norm);
  norm = sum_over (emitter, emitter->fsdp_comm, norm);
  if (job->layout.zero_stage >= 1 || job->layout.ep * job->layout.etp > 1) /* dp ranks hold different gradients */
    norm = sum_over (emitter, emitter->dp_comm, norm);
  return sum_over (emitter, emitter->norm_comm, norm);
}

/* Muon: each matrix's momentum is made orthogonal by Newton-Schulz steps, X' = aX + (bA + cA^2)X with A = XX^T, on matrices that are whole;
 * the ranks that share the weights deal the matrices among them and gather them over tp. */
static uint32_t
orthogonalise (PodEmitter *emitter, double matrix_params, uint32_t after)
{
  const PodJob *job = emitter->job;
  const uint64_t side = job->model->hidden;
  const double tp = job->layout.degree[POD_AXIS_TP];
  const double n = ceil (matrix_params / ((double) side * (double) side)); /* squares of X X^T, A A and B X a step: 2 side^3 each */
  const uint64_t batch = (uint64_t) MAX (n, 1) * N_ORTHOGONALISATIONS;
  PodKernel square = pod_kernel_matmul (3 * batch, side, side, side, POD_DTYPE_BF16, 2, 2, 2);

  if (matrix_params <= 0 || side == 0)
    return after;
  if (emitter->tp_comm != POD_NO_COMM)
    {
      uint32_t gather = pod_builder_collective (&emitter->builder, POD_PHASE_OPTIMIZER, -1, "momentum all-gather", POD_STREAM_TP, emitter->tp_comm, POD_ALL_GATHER,
                                                (uint64_t) (matrix_params * tp * 2));

      pod_builder_depend (&emitter->builder, gather, after);
      pod_builder_depend_before (&emitter->builder, gather, POD_STREAM_REDUCE, 0);
      after = gather;
    }
  after = pod_builder_compute (&emitter->builder, POD_PHASE_OPTIMIZER, -1, "Newton-Schulz", false, &square);
  pod_builder_depend_before (&emitter->builder, after, POD_STREAM_REDUCE, 0);
  return after;
}

/* The same of experts, which are whole but for etp: products along the short side of hidden x width. */
static uint32_t
orthogonalise_experts (PodEmitter *emitter, double params, uint32_t after)
{
  const PodModel *model = emitter->job->model;
  const uint64_t small = MIN (model->hidden, model->moe_ffn);
  const uint64_t large = MAX (model->hidden, model->moe_ffn);
  const uint64_t batch = (uint64_t) ceil (params / ((double) small * (double) large)) * N_ORTHOGONALISATIONS;
  const PodKernel kernels[] = {
    pod_kernel_matmul (batch, small, small, large, POD_DTYPE_BF16, 2, 2, 2),
    pod_kernel_matmul (batch, small, small, small, POD_DTYPE_BF16, 2, 2, 2),
    pod_kernel_matmul (batch, small, large, small, POD_DTYPE_BF16, 2, 2, 2),
  };

  for (unsigned i = 0; params > 0 && i < G_N_ELEMENTS (kernels); i++)
    {
      uint32_t op = pod_builder_compute (&emitter->builder, POD_PHASE_OPTIMIZER, -1, "Newton-Schulz of experts", false, &kernels[i]);

      pod_builder_depend (&emitter->builder, op, after);
      pod_builder_depend_before (&emitter->builder, op, POD_STREAM_REDUCE, 0);
      after = op;
    }
  return after;
}

static double
state_bytes (const PodJob *job, double params, double matrix_params)
{
  const double others = MAX (params - matrix_params, 0);

  return matrix_params * pod_job_state_bytes (job, true) + others * pod_job_state_bytes (job, false) + params * (job->has_master ? 4 : 0);
}

/* Every state is read and written once, gradients read, weights written; quantised weights are cast anew. */
static PodKernel
update_kernel (const PodJob *job, double params, double matrix_params)
{
  const double state = state_bytes (job, params, matrix_params);
  const double weights = params * pod_dtype_bytes (job->param_dtype);
  const double cast = job->is_quantised ? 2 * params * pod_dtype_bytes (job->dtype) : 0; /* by rows and by columns */

  return pod_kernel_optimizer (state + params * pod_dtype_bytes (job->grad_dtype) + (job->has_master ? 0 : weights), state + weights + cast,
                               params * optimizers[job->optimizer].flops);
}

/* The state lives in the host's memory and comes through the device a piece at a time, two of them there at once: while one is updated the
 * next comes in and the last goes back (as MaxText's optimizer_memory_host_offload). */
static uint32_t
update_in_pieces (PodEmitter *emitter, const PodKernel *kernel, double bytes, uint32_t after)
{
  enum { N_PIECES = 16 };
  PodBuilder *builder = &emitter->builder;
  const PodKernel piece = pod_kernel_optimizer (kernel->read_bytes / N_PIECES, kernel->write_bytes / N_PIECES, kernel->flops / N_PIECES);
  uint32_t back[N_PIECES];
  uint32_t update = after;

  for (unsigned i = 0; i < N_PIECES; i++)
    {
      uint32_t in = pod_builder_copy (builder, POD_PHASE_OPTIMIZER, -1, "optimizer state from the host", false, bytes / N_PIECES);

      if (i < 2)
        pod_builder_depend_before (builder, in, POD_STREAM_COMPUTE, 0);
      else
        pod_builder_depend (builder, in, back[i - 2]);
      update = pod_builder_compute (builder, POD_PHASE_OPTIMIZER, -1, "optimizer", false, &piece);
      pod_builder_depend (builder, update, after);
      pod_builder_depend (builder, update, in);
      pod_builder_depend_before (builder, update, POD_STREAM_REDUCE, 0);
      back[i] = pod_builder_copy (builder, POD_PHASE_OPTIMIZER, -1, "optimizer state to the host", true, bytes / N_PIECES);
      pod_builder_depend (builder, back[i], update);
      pod_builder_alloc (builder, in, emitter->label_optimizer, bytes / N_PIECES);
      pod_builder_free_buffer (builder, back[i], emitter->label_optimizer, bytes / N_PIECES);
    }
  return update;
}

uint32_t
pod_optimizer_update (PodEmitter *emitter, const PodUpdate *what, uint32_t after)
{
  const PodJob *job = emitter->job;
  PodKernel kernel = update_kernel (job, what->params + what->experts, what->matrices + what->experts);
  uint32_t op;

  if (job->optimizer == POD_OPTIMIZER_MUON)
    after = orthogonalise_experts (emitter, what->experts, orthogonalise (emitter, what->matrices, after));
  if (job->offloads_optimizer)
    return update_in_pieces (emitter, &kernel, state_bytes (job, what->params + what->experts, what->matrices + what->experts), after);
  op = pod_builder_compute (&emitter->builder, POD_PHASE_OPTIMIZER, -1, "optimizer", false, &kernel);
  pod_builder_depend (&emitter->builder, op, after);
  pod_builder_depend_before (&emitter->builder, op, POD_STREAM_REDUCE, 0);
  if (job->copies_grads)
    {
      const double copy = (what->params + what->experts) * 4;

      pod_builder_alloc (&emitter->builder, op, emitter->label_unsharded_grads, copy);
      pod_builder_free_buffer (&emitter->builder, op, emitter->label_unsharded_grads, copy);
    }
  return op;
}
