#pragma once

#include "parallel/transformer-private.h"

/* Attention of one layer: the projections around it (attention-pass.c) and its core, over context ranks (context.c). */

/* What one rank of tp has of a layer's heads. */
typedef struct
{
  uint64_t heads;
  uint64_t kv_heads;   /* at least 1: replicated when tp is larger */
  uint64_t head_dim;   /* of q and k */
  uint64_t v_head_dim;
  uint64_t q_width;
  uint64_t k_width;
  uint64_t v_width;
  uint64_t out_width;  /* heads x v_head_dim */
} PodHeads;

PodHeads pod_heads (const PodEmitter *emitter, const PodLayerKind *shape);

/* Bytes that core attention keeps from forward to backward beside q, k, v and its output: each query's log-sum-exp (flash), or
 * the scores with their dropped copy and mask (unfused). */
double pod_core_attention_kept_bytes (const PodEmitter *emitter, const PodHeads *heads);
/* Elements a token of q, k, v and the output, as backward needs them: Ulysses keeps q, k and v by heads, and the output both by
 * heads for attention's backward and by tokens for the projection's. */
uint64_t pod_core_attention_kept_width (const PodEmitter *emitter, const PodHeads *heads);

/* Ops of core attention from pass->value (q, k and v of this rank's tokens; backward: the gradient of its output) on. */
void pod_core_attention_forward (PodPass *pass, const PodHeads *heads);
void pod_core_attention_backward (PodPass *pass, const PodHeads *heads);

/* Causal (query, key) pairs of queries [q0, q1) and keys [k0, k1) in @shape's window, a continuum as pod_model_mean_span counts
 * them; the two ranges are the same or apart. O(1) */
double pod_attention_pairs (const PodLayerKind *shape, double q0, double q1, double k0, double k1);
/* Mean over ring ranks of the pairs of one sequence that step @step of @cp computes on a rank: its own block first. O(1) without a window,
 * O(window / chunk) with one that slides, O(cp) with chunks. */
double pod_ring_step_pairs (const PodLayerKind *shape, uint64_t seq_len, bool is_causal, uint32_t cp, uint32_t step);
