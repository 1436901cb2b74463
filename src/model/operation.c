#include "model/operation.h"

PodKernel
pod_kernel_matmul (uint64_t batch, uint64_t m, uint64_t n, uint64_t k, PodDtype dtype,
                   double in_bytes, double weight_bytes, double out_bytes)
{
  double count = (double) batch;
  double rows = (double) m, columns = (double) n, depth = (double) k;

  return (PodKernel){
    .kind = POD_KERNEL_MATMUL,
    .dtype = dtype,
    .flops = 2.0 * count * rows * columns * depth,
    .read_bytes = count * (rows * depth * in_bytes + depth * columns * weight_bytes),
    .write_bytes = count * rows * columns * out_bytes,
    .batch = batch,
    .m = m,
    .n = n,
    .k = k,
  };
}

/* Forward: S = QK^T and O = PV. Backward computes S again, then dV = P^T dO, dP = dO V^T, dQ = dS K
 * and dK = dS^T Q: three matmuls over qk_dim and two over v_dim. Reads Q, K, V (backward also O,
 * dO), writes O (backward dQ, dK, dV), each once; the row sums of the softmax are left out, they
 * are 1/dim of Q. */
PodKernel
pod_kernel_attention (bool is_backward, uint64_t sequences, uint64_t q_len, uint64_t k_len,
                      double span, uint64_t heads, uint64_t kv_heads, uint64_t qk_dim,
                      uint64_t v_dim, bool is_causal, PodDtype dtype)
{
  double element = pod_dtype_bytes (dtype);
  double queries = (double) sequences * (double) q_len * (double) heads;
  double keys = (double) sequences * (double) k_len * (double) kv_heads;
  double qk = (double) qk_dim, v = (double) v_dim;
  double q_bytes = queries * qk * element, o_bytes = queries * v * element;
  double kv_bytes = keys * (qk + v) * element;

  return (PodKernel){
    .kind = is_backward ? POD_KERNEL_ATTENTION_BACKWARD : POD_KERNEL_ATTENTION,
    .dtype = dtype,
    .flops = 2.0 * queries * span * (is_backward ? 3.0 * qk + 2.0 * v : qk + v),
    .read_bytes = q_bytes + kv_bytes + (is_backward ? 2.0 * o_bytes : 0.0),
    .write_bytes = is_backward ? q_bytes + kv_bytes : o_bytes,
    .batch = sequences,
    .m = q_len,
    .n = k_len,
    .k = qk_dim,
    .heads = heads,
    .kv_heads = kv_heads,
    .v_dim = v_dim,
    .is_causal = is_causal,
  };
}

PodKernel
pod_kernel_vector (double flops, double read_bytes, double write_bytes)
{
  return (PodKernel){
    .kind = POD_KERNEL_VECTOR,
    .dtype = POD_DTYPE_FP32,
    .flops = flops,
    .read_bytes = read_bytes,
    .write_bytes = write_bytes,
  };
}

PodKernel
pod_kernel_optimizer (double read_bytes, double write_bytes, double flops)
{
  PodKernel kernel = pod_kernel_vector (flops, read_bytes, write_bytes);

  kernel.kind = POD_KERNEL_OPTIMIZER;
  return kernel;
}
