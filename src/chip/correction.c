#include "chip/kernel-private.h"

#include <math.h>

enum
{
  LARGEST_HEAD_DIM = 256, /* of the measured kernels; latent attention has kernels of its own */
};

/* A matmul of a batch is like one with all columns side by side: the same rows, weights, tiles. */
static unsigned
matmul_points (const PodKernel *kernel, PodKernelPoint *out)
{
  double bytes = pod_dtype_bytes (kernel->dtype);
  double columns = (double) kernel->n, depth = (double) kernel->k;

  if (kernel->batch == 0 || kernel->m == 0 || kernel->n == 0 || kernel->k == 0
      || (bytes != 1.0 && bytes != 2.0))
    return 0;
  out[0] = (PodKernelPoint){
    .kind = bytes == 1.0 ? POD_SURFACE_MATMUL_FP8 : POD_SURFACE_MATMUL_BF16,
    .at = { (double) kernel->m, columns * (double) kernel->batch, depth },
  };
  if (kernel->batch == 1)
    return 1;
  out[1] = (PodKernelPoint){
    .kind = POD_SURFACE_GROUPED,
    .at = { (double) kernel->m, (double) kernel->batch, MIN (columns, depth) },
  };
  return 2;
}

static unsigned
attention_points (const PodKernel *kernel, PodKernelPoint *out)
{
  double sequences = (double) kernel->batch, dim = (double) kernel->k;
  double heads = (double) kernel->heads, kv_heads = (double) kernel->kv_heads;

  if (kernel->m == 0 || kernel->n == 0 || kernel->batch == 0 || kernel->kv_heads == 0
      || kernel->heads == 0 || kernel->k > LARGEST_HEAD_DIM)
    return 0;
  if (pod_kernel_is_decode (kernel))
    *out = (PodKernelPoint){
      .kind = POD_SURFACE_DECODE,
      .at = { (double) kernel->n, sequences * kv_heads, heads / kv_heads, dim },
    };
  else
    *out = (PodKernelPoint){
      .kind = POD_SURFACE_PREFILL,
      .at = { (double) kernel->m, sequences * heads, heads / kv_heads, dim },
    };
  return 1;
}

unsigned
pod_kernel_points (const PodKernel *kernel, PodKernelPoint out[POD_KERNEL_MAX_POINTS])
{
  if (kernel->kind == POD_KERNEL_MATMUL)
    return matmul_points (kernel, out);
  if (kernel->kind == POD_KERNEL_ATTENTION)
    return attention_points (kernel, out);
  return 0;
}

void
pod_kernel_correct (const PodKernelDevice *device, const PodKernel *kernel,
                    const PodKernelTime *ideal, PodKernelTime *out)
{
  PodKernelPoint points[POD_KERNEL_MAX_POINTS];
  unsigned n_points = pod_kernel_points (kernel, points);
  double time_s = MAX (out->flop_s, out->memory_s) + out->overhead_s;
  double sum = 0.0, factor;
  bool has_surface = false;

  for (unsigned i = 0; i < n_points; i++)
    {
      const PodSurface *surface = device->chip->surfaces[points[i].kind];

      if (surface == NULL)
        continue;
      has_surface = true;
      sum += pod_surface_at (surface, points[i].at);
    }
  if (!has_surface || !(time_s > 0.0))
    return;
  factor = exp (sum);
  out->flop_s = MAX (out->flop_s * factor, ideal->flop_s);
  out->memory_s = MAX (out->memory_s * factor, ideal->memory_s);
  out->overhead_s = MAX (0.0, time_s * factor - MAX (out->flop_s, out->memory_s));
}

/* Absolute maxima of rows, scales, quantisation: three small kernels and the copy of the scales, which take 9.5 to 10.7 us whatever a kernel's
 * launch is (2.1 to 2.7 us on H100, H200, B200, GB200); the values are read twice and written once in one byte. The surface of the chip tells
 * what that really takes. */
double
pod_kernel_cast_s (const PodChip *chip, uint64_t m, uint64_t k)
{
  const double n_launches = 4.0, bytes_per_value = 2.0 + 2.0 + 1.0;
  const PodSurface *surface = chip->surfaces[POD_SURFACE_CAST_FP8];
  const double at[POD_SURFACE_MAX_AXES] = { (double) m, (double) k };
  double rate = pod_chip_hbm_rate (chip, false) * pod_kernel_efficiency (chip->hbm_efficiency);
  double floor_s = chip->cast_launch_s > 0.0 ? chip->cast_launch_s : n_launches * chip->launch_s;
  double time_s = floor_s + bytes_per_value * (double) m * (double) k / rate;

  return surface != NULL ? time_s * exp (pod_surface_at (surface, at)) : time_s;
}
