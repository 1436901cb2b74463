#include "chip/kernel.h"

#include "chip/kernel-private.h"

#include <math.h>

double
pod_kernel_efficiency (double efficiency)
{
  return efficiency > 0.0 && efficiency < 1.0 ? efficiency : 1.0;
}

double
pod_kernel_round_up (double count, double block)
{
  return ceil (count / block) * block;
}

/* A systolic array works through blocks that fit its scratchpad, loading the next while it
 * multiplies the present one: of n blocks, the first load and the last multiplication overlap with
 * nothing, which costs min(flop, memory)/n. XLA's blocks hold at most 32 MiB; this reproduces the
 * published TPU7x matmuls of 128^3 ... 32768^3 and the one of TPU v6e (tpu-recipes,
 * accelerator-microbenchmarks, 2025) within 8.4 %, 1.2 % from 4096^3 on.
 *
 * On a GPU many tiles are in flight, and the two limits blend: a p-norm of 4, chosen over the bf16
 * matmul tables of A100, H100 and B200 (ai-dynamo/aiconfigurator@095f58a), where 3 ... 5 fit
 * equally well. */
double
pod_kernel_overlap_loss_s (const PodKernelDevice *device, const PodKernel *kernel, double flop_s,
                           double memory_s)
{
  const double block_bytes = 32.0 * 1024 * 1024;
  double larger_s = MAX (flop_s, memory_s), smaller_s = MIN (flop_s, memory_s);
  double ratio;

  if (!(smaller_s > 0.0))
    return 0.0;
  if (device->has_systolic_array)
    return smaller_s / MAX (1.0, (kernel->read_bytes + kernel->write_bytes) / block_bytes);
  ratio = smaller_s / larger_s;
  return larger_s * (sqrt (sqrt (1.0 + ratio * ratio * ratio * ratio)) - 1.0);
}

static bool
is_matrix_kernel (const PodKernel *kernel)
{
  return kernel->kind == POD_KERNEL_MATMUL || kernel->kind == POD_KERNEL_ATTENTION
         || kernel->kind == POD_KERNEL_ATTENTION_BACKWARD;
}

void
pod_kernel_time_roofline (const PodKernelDevice *device, const PodKernel *kernel,
                          PodKernelTime *out)
{
  double rate = is_matrix_kernel (kernel) ? device->peak_flops_per_s : device->vector_flops_per_s;

  *out = (PodKernelTime){
    .flop_s = kernel->flops > 0.0 && rate > 0.0 ? kernel->flops / rate : 0.0,
    .memory_s = (kernel->read_bytes + kernel->write_bytes) / device->hbm_bytes_per_s,
    .padding_ratio = 1.0,
    .wave_ratio = 1.0,
    .efficiency = 1.0,
  };
}

static void
device_init (PodKernelDevice *device, const PodChip *chip, PodDtype dtype, bool is_book)
{
  unsigned n_devices = MAX (1u, chip->devices_per_chip);
  const PodRated *vector = &chip->vector_flops_per_s;

  *device = (PodKernelDevice){
    .chip = chip,
    .peak_flops_per_s = pod_chip_peak (chip, dtype, is_book, NULL),
    .vector_flops_per_s = (is_book ? vector->book : vector->nominal) / n_devices,
    .hbm_bytes_per_s = pod_chip_hbm_rate (chip, is_book),
    .n_cores = MAX (1.0, (double) (chip->cores_per_chip / n_devices)),
    .has_systolic_array = chip->family == POD_FAMILY_TPU || chip->mxu_dim > 0,
  };
}

static void
time_calibrated (const PodKernelDevice *device, const PodKernel *kernel, PodKernelTime *out)
{
  const PodKernelTime ideal = *out;

  switch (kernel->kind)
    {
    case POD_KERNEL_MATMUL:
      pod_kernel_time_matmul (device, kernel, out);
      break;
    case POD_KERNEL_ATTENTION:
    case POD_KERNEL_ATTENTION_BACKWARD:
      pod_kernel_time_attention (device, kernel, out);
      break;
    case POD_KERNEL_VECTOR:
    case POD_KERNEL_OPTIMIZER:
      pod_kernel_time_vector (device, kernel, out);
      break;
    }
  pod_kernel_correct (device, kernel, &ideal, out);
}

void
pod_kernel_time (const PodChip *chip, PodFidelity fidelity, const PodKernel *kernel,
                 PodKernelTime *out)
{
  PodKernelDevice device;
  bool is_empty = !(kernel->flops > 0.0 || kernel->read_bytes + kernel->write_bytes > 0.0);

  device_init (&device, chip, kernel->dtype, fidelity == POD_FIDELITY_BOOK);
  pod_kernel_time_roofline (&device, kernel, out);
  if (fidelity == POD_FIDELITY_BOOK && !is_matrix_kernel (kernel))
    out->flop_s = out->memory_s = 0.0;
  else if (fidelity == POD_FIDELITY_CALIBRATED && !is_empty)
    time_calibrated (&device, kernel, out);

  out->peak_flops_per_s
      = is_matrix_kernel (kernel) ? device.peak_flops_per_s : device.vector_flops_per_s;
  out->time_s = MAX (out->flop_s, out->memory_s) + out->overhead_s;
  if (out->overhead_s > MAX (out->flop_s, out->memory_s))
    out->bound = POD_BOUND_OVERHEAD;
  else
    out->bound = out->flop_s >= out->memory_s ? POD_BOUND_COMPUTE : POD_BOUND_HBM;
}
