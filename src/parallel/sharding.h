#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* Shardings in the book's notation A[I_X, J_Y], and the communication that a matmul of sharded operands needs. */

#define POD_MAX_TENSOR_DIMS 4

/* A tensor: a letter a dimension, and the set of mesh axes (a bit each) that shard it. */
typedef struct
{
  unsigned n_dims;
  char dim[POD_MAX_TENSOR_DIMS];
  unsigned axes[POD_MAX_TENSOR_DIMS];
} PodSharding;

/* What C[out] = A[lhs] . B[rhs] needs besides the local product. Sets of mesh axes, 0 = none. */
typedef struct
{
  unsigned gather_lhs;     /* all-gather A over these before (cases 2 and 4) */
  unsigned gather_rhs;     /* all-gather B */
  unsigned reduce_scatter; /* partial sums over these are reduce-scattered into C (case 3) */
  unsigned all_reduce;     /* partial sums are all-reduced (case 3) */
  unsigned gather_out;     /* C comes out sharded where it is asked whole */
} PodShardedMatmul;

/* Derives the collectives, axis by axis, by the four cases (How to Scale Your Model, chapter 3):
 *   1 no sharded contraction, no clash     local
 *   2 one operand's contraction sharded    all-gather that operand
 *   3 both contractions sharded alike      local product, then reduce-scatter (the output is sharded on the axis) or all-reduce
 *   4 one axis on uncontracted dimensions of both   all-gather the operand whose dimension the output does not shard on it
 * A dimension is contracted when it is in both operands and not in the output. Errors INVALID: an axis twice in one tensor, an
 * output dimension that is in neither operand, an output sharded where neither operand is and no sum is scattered.
 * O(axes x dimensions). */
bool pod_sharded_matmul (const PodSharding *lhs, const PodSharding *rhs, const PodSharding *out, PodShardedMatmul *result, GError **error);

/* "TD" with axis sets: pod_sharding ("TD", tokens_axes, 0). n_dims = strlen (dims). */
PodSharding pod_sharding (const char *dims, unsigned first, unsigned second);
/* The transpose of a two-dimensional tensor. */
PodSharding pod_sharding_transpose (const PodSharding *tensor);
