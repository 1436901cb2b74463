#include "parallel/attention-pass-private.h"

#include <math.h>

/* Core attention, softmax(q k^T) v, where cp ranks hold the tokens of a sequence.
 *
 * Ring (arXiv 2310.01889): in step j rank i attends to the block that rank i-j made, while that block goes on to the next rank.
 * Causal work is balanced by zigzag (Megatron-Core's and torchtitan's head-and-tail order): of 2cp chunks rank i holds i and
 * 2cp-1-i. In step 0 it sees half of its own block; in any other one either all its queries see the first chunk of the block, or
 * its second chunk of queries sees all of it: half a block's pairs each time, s^2 / (2 cp^2). The last rank has the first kind in
 * every step, which moves more bytes where KV heads are fewer; the others wait for it, so it is the one emitted.
 * Backward: the block and its gradient go round together; the first hop carries the block alone and the last one its gradient.
 *
 * All-gather: K and V of all ranks come first; in backward again, then dK and dV are reduce-scattered.
 *
 * Ulysses (arXiv 2309.14509): all-to-all from tokens to heads, attention over the whole sequence, all-to-all back. */

const char *const pod_core_attention_names[POD_N_CORES + 1] = {
  [POD_CORE_FLASH] = "flash",
  [POD_CORE_UNFUSED] = "unfused",
};

static uint32_t
n_context (const PodEmitter *emitter)
{
  return emitter->job->layout.degree[POD_AXIS_CP];
}

static bool
is_kind (const PodEmitter *emitter, PodCpKind kind)
{
  return n_context (emitter) > 1 && emitter->job->layout.cp_kind == kind;
}

/* ---- which pairs ---- */

static double
half_square (double x)
{
  return x > 0 ? x * x / 2 : 0;
}

/* Pairs of the rectangle with query - key > @distance. */
static double
pairs_beyond (double q0, double q1, double k0, double k1, double distance)
{
  return half_square (q1 - k0 - distance) - half_square (q0 - k0 - distance) - half_square (q1 - k1 - distance) + half_square (q0 - k1 - distance);
}

/* Causal pairs within chunks of @chunk tokens: whole ones of @from to @to are triangles, those at the edges trapezoids. */
static double
pairs_in_chunks (double chunk, double q0, double q1, double k0, double k1)
{
  double first_end;
  double n_whole;

  if (q0 != k0) /* keys before the queries: only the chunk that the first query is in has both */
    {
      const double start = floor (q0 / chunk) * chunk;

      return k1 <= start ? 0 : (MIN (q1, start + chunk) - q0) * (k1 - MAX (k0, start));
    }
  first_end = MIN (q1, ceil (q0 / chunk) * chunk);
  n_whole = floor ((q1 - first_end) / chunk);
  return half_square (first_end - q0) + n_whole * half_square (chunk) + half_square (q1 - first_end - n_whole * chunk);
}

double
pod_attention_pairs (const PodLayerKind *shape, double q0, double q1, double k0, double k1)
{
  const double window = (double) shape->window;

  if (k0 >= q1 || (window > 0 && q0 - k1 >= window))
    return 0;
  if (window > 0 && shape->is_chunked)
    return pairs_in_chunks (window, q0, q1, k0, k1);
  return pairs_beyond (q0, q1, k0, k1, 0) - (window > 0 ? pairs_beyond (q0, q1, k0, k1, window) : 0);
}

/* Pairs of the queries of a chunk with keys @distance chunks before it, where only the distance counts. */
static double
pairs_at (const PodLayerKind *shape, double chunk, double distance)
{
  return pod_attention_pairs (shape, distance * chunk, (distance + 1) * chunk, 0, chunk);
}

/* Sliding windows: of rank i's chunks, i and 2cp-1-i, and those of the block, j and 2cp-1-j, the distances are i - j, which is @step or @step - cp,
 * 2cp-1-i-j, and j - i. Windows end the sum over the second of these. */
static double
ring_window_pairs (const PodLayerKind *shape, double chunk, uint32_t cp, uint32_t step)
{
  const double reach = (double) shape->window / chunk + 1; /* chunks this far see nothing */
  const double last = 2.0 * cp - 1;
  double sum = (cp - step) * pairs_at (shape, chunk, step) + (step == 0 ? cp * pairs_at (shape, chunk, 0) : step * pairs_at (shape, chunk, cp - step));

  for (uint32_t i = cp; i-- > step && last - (2.0 * i - step) < reach;)
    sum += pairs_at (shape, chunk, last - (2.0 * i - step));
  for (uint32_t i = step; i-- > 0 && last - (2.0 * i + cp - step) < reach;)
    sum += pairs_at (shape, chunk, last - (2.0 * i + cp - step));
  return sum / cp;
}

double
pod_ring_step_pairs (const PodLayerKind *shape, uint64_t seq_len, bool is_causal, uint32_t cp, uint32_t step)
{
  const double chunk = (double) seq_len / (2.0 * cp);
  double sum = 0;

  if (!is_causal)
    return 4 * chunk * chunk;
  if (shape->is_sparse) /* keys picked from everywhere: each block has its share */
    return (double) seq_len * pod_model_mean_span (shape, seq_len) / ((double) cp * cp);
  if (shape->window == 0) /* two half chunks and a whole one of its own block, half a block of any other */
    return 2 * chunk * chunk;
  if (!shape->is_chunked)
    return ring_window_pairs (shape, chunk, cp, step);
  for (uint32_t i = 0; i < cp; i++)
    {
      const uint32_t from = (i + cp - step) % cp;
      const uint32_t queries[] = { i, 2 * cp - 1 - i };
      const uint32_t keys[] = { from, 2 * cp - 1 - from };

      for (unsigned k = 0; k < 4; k++)
        sum += pod_attention_pairs (shape, queries[k / 2] * chunk, (queries[k / 2] + 1) * chunk, keys[k % 2] * chunk, (keys[k % 2] + 1) * chunk);
    }
  return sum / cp;
}

/* ---- kernels ---- */

/* What one kernel of core attention computes. */
typedef struct
{
  uint64_t q_len;
  uint64_t k_len;
  double span; /* mean keys per query */
  uint64_t heads;
  uint64_t kv_heads;
  bool is_causal;
} Block;

/* The mean keys of a query of the whole sequence. */
static double
whole_span (const PodPass *pass)
{
  const PodJob *job = pass->emitter->job;

  return job->is_causal ? pod_model_mean_span (pass->unit->shape, job->batch.seq_len) : (double) job->batch.seq_len;
}

/* Attention multiplies in the type of activations, of 16 bits at least. */
static PodDtype
core_dtype (const PodJob *job)
{
  return pod_job_activation_dtype (job) == POD_DTYPE_FP8 ? POD_DTYPE_BF16 : pod_job_activation_dtype (job);
}

static uint32_t
flash (PodPass *pass, const PodHeads *heads, const Block *block, bool is_backward)
{
  const PodJob *job = pass->emitter->job;
  PodKernel kernel = pod_kernel_attention (is_backward, job->batch.micro_batch, block->q_len, block->k_len, block->span, block->heads, block->kv_heads, heads->head_dim,
                                           heads->v_head_dim, block->is_causal, core_dtype (job));

  return pod_pass_compute (pass, is_backward ? "attention backward" : pass->phase == POD_PHASE_RECOMPUTE ? "attention again" : "attention", true, &kernel);
}

static double
n_scores (const PodEmitter *emitter, const Block *block)
{
  return (double) emitter->job->batch.micro_batch * (double) block->heads * (double) block->q_len * (double) block->k_len;
}

static void
scores_matmul (PodPass *pass, const char *name, const Block *block, uint64_t m, uint64_t n, uint64_t k)
{
  const PodEmitter *emitter = pass->emitter;
  const PodJob *job = emitter->job;
  const PodDtype dtype = core_dtype (job);
  const double bytes = pod_dtype_bytes (dtype);
  PodKernel kernel = pod_kernel_matmul (job->batch.micro_batch * block->heads, m, n, k, dtype, bytes, bytes, bytes);

  pass->value = pod_pass_compute (pass, name, false, &kernel);
}

/* Every score is computed, masked or not: about 10 operations each for scale, mask and softmax, and half of that for dropout,
 * which multiplies by a mask of a byte a score. */
static void
unfused_forward (PodPass *pass, const PodHeads *heads, const Block *block)
{
  const PodEmitter *emitter = pass->emitter;
  const double scores = n_scores (emitter, block);
  const double bytes = scores * emitter->element_bytes;

  scores_matmul (pass, "attention scores", block, block->q_len, block->k_len, heads->head_dim);
  pod_pass_vector (pass, "softmax", 10 * scores, bytes, bytes);
  if (emitter->job->has_dropout)
    pod_pass_vector (pass, "attention dropout", 5 * scores, bytes, bytes + scores);
  scores_matmul (pass, "attention over values", block, block->q_len, heads->v_head_dim, block->k_len);
}

static void
unfused_backward (PodPass *pass, const PodHeads *heads, const Block *block)
{
  const PodEmitter *emitter = pass->emitter;
  const double scores = n_scores (emitter, block);
  const double bytes = scores * emitter->element_bytes;

  scores_matmul (pass, "attention dV", block, block->k_len, heads->v_head_dim, block->q_len);
  scores_matmul (pass, "attention dP", block, block->q_len, block->k_len, heads->v_head_dim);
  if (emitter->job->has_dropout)
    pod_pass_vector (pass, "attention dropout backward", scores, bytes + scores, bytes);
  pod_pass_vector (pass, "softmax backward", 5 * scores, 2 * bytes, bytes);
  scores_matmul (pass, "attention dQ", block, block->q_len, heads->head_dim, block->k_len);
  scores_matmul (pass, "attention dK", block, block->k_len, heads->head_dim, block->q_len);
}

static void
attend (PodPass *pass, const PodHeads *heads, const Block *block, bool is_backward)
{
  if (pass->emitter->job->core == POD_CORE_FLASH)
    pass->value = flash (pass, heads, block, is_backward);
  else if (is_backward)
    unfused_backward (pass, heads, block);
  else
    unfused_forward (pass, heads, block);
}

/* What a kernel of core attention sees when it needs no steps: this rank's queries and all keys that it has or was sent. */
static Block
whole_block (const PodPass *pass, const PodHeads *heads)
{
  const PodEmitter *emitter = pass->emitter;
  const PodJob *job = emitter->job;
  const uint32_t cp = n_context (emitter);
  Block block = { .q_len = job->batch.seq_len,
                  .k_len = job->batch.seq_len,
                  .span = whole_span (pass),
                  .heads = heads->heads,
                  .kv_heads = heads->kv_heads,
                  .is_causal = job->is_causal };

  if (is_kind (emitter, POD_CP_ALLGATHER))
    block.q_len /= cp;
  if (is_kind (emitter, POD_CP_ULYSSES))
    {
      block.heads /= cp;
      block.kv_heads = MAX (block.kv_heads / cp, 1);
    }
  return block;
}

double
pod_core_attention_kept_bytes (const PodEmitter *emitter, const PodHeads *heads)
{
  const PodJob *job = emitter->job;
  const double queries = emitter->tokens * (double) heads->heads;
  const double keys = (double) job->batch.seq_len;

  if (job->core == POD_CORE_FLASH)
    return 4 * queries;
  return queries * keys * (job->has_dropout ? 2 * emitter->element_bytes + 1 : emitter->element_bytes);
}

/* ---- what context ranks send ---- */

static uint32_t
cp_collective (PodPass *pass, const char *name, PodCollectiveKind kind, double bytes, uint32_t after)
{
  PodEmitter *emitter = pass->emitter;
  uint32_t op = pod_builder_collective (&emitter->builder, pass->phase, pass->unit->layer, name, POD_STREAM_CP, emitter->cp_comm, kind, (uint64_t) bytes);

  pod_builder_depend (&emitter->builder, op, after);
  return op;
}

/* K and V, or dK and dV, of this rank's tokens. */
static double
kv_bytes (const PodEmitter *emitter, const PodHeads *heads)
{
  return emitter->tokens * (double) (heads->k_width + heads->v_width) * emitter->element_bytes;
}

/* ---- ring ---- */

/* What a step computes; false when its block is out of the window for all ranks. */
static bool
ring_block (const PodPass *pass, const PodHeads *heads, uint32_t step, Block *out)
{
  const PodJob *job = pass->emitter->job;
  const PodLayerKind *shape = pass->unit->shape;
  const uint32_t cp = n_context (pass->emitter);
  const uint64_t tokens = job->batch.seq_len / cp;
  const bool has_window = shape->window > 0 && shape->window < job->batch.seq_len;
  const double pairs = pod_ring_step_pairs (shape, job->batch.seq_len, job->is_causal, cp, step);

  *out = (Block){ .q_len = tokens,
                  .k_len = job->is_causal && step > 0 && !has_window ? tokens / 2 : tokens,
                  .span = pairs / (double) tokens,
                  .heads = heads->heads,
                  .kv_heads = heads->kv_heads,
                  .is_causal = job->is_causal && (step == 0 || has_window) };
  return pairs > 0;
}

/* The partial output of a step is scaled by log-sum-exps and added: two tensors read, one written. */
static void
merge_partial (PodPass *pass, const PodHeads *heads)
{
  const double elements = pass->emitter->tokens * (double) heads->out_width;

  pod_pass_vector (pass, "attention partial sums", 4 * elements, 2 * elements * pass->emitter->element_bytes, elements * pass->emitter->element_bytes);
}

/* Received blocks: one to compute on and one that arrives. */
static double
ring_buffer_bytes (const PodEmitter *emitter, double block_bytes)
{
  return MIN (n_context (emitter) - 1, 2) * block_bytes;
}

static void
ring_forward (PodPass *pass, const PodHeads *heads)
{
  PodEmitter *emitter = pass->emitter;
  PodBuilder *builder = &emitter->builder;
  const uint32_t cp = n_context (emitter);
  const double bytes = kv_bytes (emitter, heads);
  const double buffer_bytes = ring_buffer_bytes (emitter, bytes);
  const uint32_t source = pass->value;
  uint32_t arrived = POD_NO_OP;
  uint32_t first_send = POD_NO_OP;
  uint32_t before = POD_NO_OP; /* last op of the step before: only then may its buffer be written over */

  for (uint32_t step = 0; step < cp; step++)
    {
      uint32_t send = POD_NO_OP;
      Block block;

      if (step < cp - 1)
        {
          send = cp_collective (pass, "KV to the next", POD_PERMUTE, bytes, step == 0 ? source : POD_NO_OP);
          if (step > 1)
            pod_builder_depend (builder, send, before);
          if (step == 0)
            first_send = send;
        }
      if (ring_block (pass, heads, step, &block))
        {
          attend (pass, heads, &block, false);
          pod_builder_depend (builder, pass->value, arrived);
          if (step > 0)
            merge_partial (pass, heads);
        }
      before = pass->value;
      arrived = send;
    }
  pod_builder_alloc (builder, first_send, emitter->label_context, buffer_bytes);
  pod_builder_free_buffer (builder, pass->value, emitter->label_context, buffer_bytes);
}

/* Starts with the block that forward ended with, and ends with its own (TransformerEngine's order). */
static void
ring_backward (PodPass *pass, const PodHeads *heads)
{
  PodEmitter *emitter = pass->emitter;
  PodBuilder *builder = &emitter->builder;
  const uint32_t cp = n_context (emitter);
  const double bytes = kv_bytes (emitter, heads);
  const double buffer_bytes = ring_buffer_bytes (emitter, 2 * bytes);
  const double gradients = emitter->tokens * (double) (heads->k_width + heads->v_width);
  uint32_t arrived = POD_NO_OP;
  uint32_t first_send = POD_NO_OP;
  uint32_t before = pass->value;

  for (uint32_t i = 0; i < cp; i++)
    {
      uint32_t send = cp_collective (pass, i == 0 ? "KV to the next" : i == cp - 1 ? "dKV to the next" : "KV and dKV to the next", POD_PERMUTE,
                                     i == 0 || i == cp - 1 ? bytes : 2 * bytes, before);
      Block block;

      if (i == 0)
        first_send = send;
      if (ring_block (pass, heads, cp - 1 - i, &block))
        {
          attend (pass, heads, &block, true);
          pod_builder_depend (builder, pass->value, arrived);
        }
      before = pass->value;
      arrived = send;
      if (i > 0) /* to the sum that came with the block */
        {
          pod_pass_vector (pass, "dKV partial sums", gradients, 2 * gradients * emitter->element_bytes, gradients * emitter->element_bytes);
          pod_builder_depend (builder, pass->value, arrived);
          before = pass->value;
        }
    }
  pod_builder_alloc (builder, first_send, emitter->label_context, buffer_bytes);
  pod_builder_free_buffer (builder, pass->value, emitter->label_context, buffer_bytes);
}

/* ---- all-gather ---- */

static void
gathered_forward (PodPass *pass, const PodHeads *heads)
{
  PodEmitter *emitter = pass->emitter;
  const double bytes = n_context (emitter) * kv_bytes (emitter, heads);
  Block block = whole_block (pass, heads);

  pass->value = cp_collective (pass, "KV all-gather", POD_ALL_GATHER, bytes, pass->value);
  pod_builder_alloc (&emitter->builder, pass->value, emitter->label_context, bytes);
  attend (pass, heads, &block, false);
  pod_builder_free_buffer (&emitter->builder, pass->value, emitter->label_context, bytes);
}

static void
gathered_backward (PodPass *pass, const PodHeads *heads)
{
  PodEmitter *emitter = pass->emitter;
  const double bytes = n_context (emitter) * kv_bytes (emitter, heads);
  const uint32_t gather = cp_collective (pass, "KV all-gather", POD_ALL_GATHER, bytes, pass->value);
  Block block = whole_block (pass, heads);

  pod_builder_alloc (&emitter->builder, gather, emitter->label_context, 2 * bytes); /* K, V and their gradients */
  pass->value = gather;
  attend (pass, heads, &block, true);
  pass->value = cp_collective (pass, "dKV reduce-scatter", POD_REDUCE_SCATTER, bytes, pass->value);
  pod_builder_free_buffer (&emitter->builder, pass->value, emitter->label_context, 2 * bytes);
}

/* ---- Ulysses ---- */

/* To or from heads: the send buffer of a rank, which holds both copies until it is done. */
static void
exchange (PodPass *pass, const char *name, uint64_t width)
{
  PodEmitter *emitter = pass->emitter;
  const double bytes = emitter->tokens * (double) width * emitter->element_bytes;

  pass->value = cp_collective (pass, name, POD_ALL_TO_ALL, bytes, pass->value);
  pod_builder_alloc (&emitter->builder, pass->value, emitter->label_context, bytes);
  pod_builder_free_buffer (&emitter->builder, pass->value, emitter->label_context, bytes);
}

/* q, k and v together; a KV head goes to each rank that has query heads of its group. */
static uint64_t
exchanged_width (const PodEmitter *emitter, const PodHeads *heads)
{
  const uint64_t cp = n_context (emitter);

  return heads->q_width + MAX (heads->kv_heads, cp) * (heads->head_dim + heads->v_head_dim);
}

uint64_t
pod_core_attention_kept_width (const PodEmitter *emitter, const PodHeads *heads)
{
  if (is_kind (emitter, POD_CP_ULYSSES))
    return exchanged_width (emitter, heads) + 2 * heads->out_width;
  return heads->q_width + heads->k_width + heads->v_width + heads->out_width;
}

static void
ulysses (PodPass *pass, const PodHeads *heads, bool is_backward)
{
  const uint64_t width = exchanged_width (pass->emitter, heads);
  Block block = whole_block (pass, heads);

  if (is_backward)
    exchange (pass, "output gradient all-to-all", heads->out_width);
  else
    exchange (pass, "q, k, v all-to-all", width);
  attend (pass, heads, &block, is_backward);
  if (is_backward)
    exchange (pass, "q, k, v gradients all-to-all", width);
  else
    exchange (pass, "attention output all-to-all", heads->out_width);
}

static void
core_attention (PodPass *pass, const PodHeads *heads, bool is_backward)
{
  const PodEmitter *emitter = pass->emitter;
  Block block = whole_block (pass, heads);

  if (is_kind (emitter, POD_CP_RING))
    (is_backward ? ring_backward : ring_forward) (pass, heads);
  else if (is_kind (emitter, POD_CP_ALLGATHER))
    (is_backward ? gathered_backward : gathered_forward) (pass, heads);
  else if (is_kind (emitter, POD_CP_ULYSSES))
    ulysses (pass, heads, is_backward);
  else
    attend (pass, heads, &block, is_backward);
  pass->gathered = POD_NO_OP;
}

void
pod_core_attention_forward (PodPass *pass, const PodHeads *heads)
{
  core_attention (pass, heads, false);
}

/* Where attention's inside alone is computed again, it is so here, and is there until the gradients are. */
void
pod_core_attention_backward (PodPass *pass, const PodHeads *heads)
{
  PodEmitter *emitter = pass->emitter;
  const bool is_again = (pass->unit->again & (POD_TENSOR_BIT (POD_TENSOR_SCORES) | POD_TENSOR_BIT (POD_TENSOR_ATTENTION))) == POD_TENSOR_BIT (POD_TENSOR_SCORES);
  const double kept = pod_core_attention_kept_bytes (emitter, heads);

  if (pass->part == POD_PART_WEIGHT) /* it has none */
    return;
  if (is_again)
    {
      const PodPhase phase = pass->phase;

      pass->phase = POD_PHASE_RECOMPUTE;
      core_attention (pass, heads, false);
      pass->phase = phase;
      pod_builder_alloc (&emitter->builder, pass->last_compute, emitter->label_saved, kept);
    }
  core_attention (pass, heads, true);
  if (is_again)
    pod_builder_free_buffer (&emitter->builder, pass->last_compute, emitter->label_saved, kept);
}
