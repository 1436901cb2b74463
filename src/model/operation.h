#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* What one operation on one device is: shapes, FLOPs and bytes. How long it takes is chip's
 * business. */

typedef enum
{
  POD_KERNEL_MATMUL,    /* batch x [m,k].[k,n] */
  POD_KERNEL_ATTENTION, /* flash attention forward */
  POD_KERNEL_ATTENTION_BACKWARD,
  POD_KERNEL_VECTOR,    /* element-wise, norm, rope, residual, softmax-xent, embedding lookup: bytes
                           and flops */
  POD_KERNEL_OPTIMIZER, /* memory-bound update */
} PodKernelKind;

enum
{
  POD_N_KERNEL_KINDS = POD_KERNEL_OPTIMIZER + 1,
};

typedef struct
{
  PodKernelKind kind;
  PodDtype dtype;    /* of the multiplication */
  double flops;      /* useful ones, as hardware executes them (causal halved) */
  double read_bytes; /* HBM, cold */
  double write_bytes;
  /* shape, for padding, tiles and waves; 0 where it has no meaning */
  uint64_t batch; /* matmul: independent matmuls; attention: sequences */
  uint64_t m;     /* attention: query length */
  uint64_t n;     /* attention: key length */
  uint64_t k;     /* attention: head_dim of q, k */
  uint64_t heads; /* attention, local */
  uint64_t kv_heads;
  uint64_t v_dim;
  bool is_causal;
  bool is_transposed;  /* matmul: rows of both operands run along m and n, as in a weight's gradient; else along k and n */
  uint64_t n_launches; /* by the host; 0: one */
  bool is_awaited;     /* the host launches it after it has waited for the device: nothing runs meanwhile */
  bool is_sized_late;  /* its sizes are known only once tokens are routed: no CUDA graph of a layer holds it */
  bool begins_woven;   /* of a pass over a layer of experts that is woven with another microbatch's: the first that is routed */
  bool is_op_by_op;    /* bytes and launches are those of each op of an eager framework: nothing is to be added for what is not fused */
} PodKernel;

/* Fillers: set flops, bytes, shape. Bytes: elements x dtype bytes, each operand once. */
PodKernel pod_kernel_matmul (uint64_t batch, uint64_t m, uint64_t n, uint64_t k, PodDtype dtype,
                             double in_bytes, double weight_bytes, double out_bytes);
/* span: mean keys per query (causal and window counted). Backward: 5 matmuls instead of 2
 * (recomputes S): 2.5x the forward FLOPs. */
PodKernel pod_kernel_attention (bool is_backward, uint64_t sequences, uint64_t q_len,
                                uint64_t k_len, double span, uint64_t heads, uint64_t kv_heads,
                                uint64_t qk_dim, uint64_t v_dim, bool is_causal, PodDtype dtype);
PodKernel pod_kernel_vector (double flops, double read_bytes, double write_bytes);
PodKernel pod_kernel_optimizer (double read_bytes, double write_bytes, double flops);
