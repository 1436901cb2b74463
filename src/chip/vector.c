#include "chip/kernel-private.h"

/* Element-wise work streams its bytes: memory time at the HBM rate that a copy reaches, or
 * arithmetic where the vector unit is known and slower, after the launch floor. The floor is what
 * makes small sizes slow: the published TPU7x copies of 2 ... 8192 MiB (tpu-recipes,
 * accelerator-microbenchmarks, 2025) take 1.6 us + bytes / 0.87 W within 13 %, 1 % from 16 MiB on.
 */
void
pod_kernel_time_vector (const PodKernelDevice *device, const PodKernel *kernel, PodKernelTime *out)
{
  const PodChip *chip = device->chip;

  (void) kernel;
  out->memory_s /= pod_kernel_efficiency (chip->hbm_efficiency);
  out->overhead_s = chip->launch_s;
}
