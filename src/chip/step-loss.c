#include "chip/step-loss.h"

#include <math.h>

const char *const pod_loss_names[POD_N_LOSSES + 1] = {
  [POD_LOSS_CLOCK] = "clock",
  [POD_LOSS_SPREAD] = "spread",
  [POD_LOSS_ATTENTION] = "attention",
  [POD_LOSS_ELEMENTWISE] = "elementwise",
  [POD_LOSS_HOST] = "host",
};

const char *const pod_graphs_names[POD_N_GRAPHS + 1] = {
  [POD_GRAPHS_NONE] = "none",
  [POD_GRAPHS_LAYERS] = "layers",
  [POD_GRAPHS_STEP] = "step",
};

void
pod_step_software_init (PodStepSoftware *software)
{
  *software = (PodStepSoftware){ .n_chips = 1, .elementwise_passes = 1, .fsdp_rate_ratio = 1 };
}

/* Power at full clock is more than the limit: the clock falls until it is not. */
double
pod_chip_clock_ratio (const PodChip *chip)
{
  return chip->tdp_w > 0 && chip->matmul_power_w > chip->tdp_w ? chip->tdp_w / chip->matmul_power_w : 1;
}

/* The expected largest of @n standard normal draws, by Blom's plotting position and the normal quantile of Abramowitz and
 * Stegun 26.2.23 (to 4.5e-4): 0 of one, 1.42 of 8, 3.24 of 1,024. */
static double
largest_of (double n)
{
  const double beyond = (0.625) / (n + 0.25);
  const double t = beyond < 0.5 ? sqrt (-2 * log (beyond)) : 0;

  if (n < 2)
    return 0;
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

static bool
is_attention (const PodKernel *kernel)
{
  return kernel->kind == POD_KERNEL_ATTENTION || kernel->kind == POD_KERNEL_ATTENTION_BACKWARD;
}

/* What the arithmetic of a kernel takes by one cause, as a factor. */
static double
flop_ratio (const PodChip *chip, const PodKernel *kernel, const PodStepSoftware *software, PodLoss loss)
{
  const double own = chip->attention_kernel_efficiency[software->attention];

  if (loss == POD_LOSS_ATTENTION)
    return is_attention (kernel) && own > 0 ? chip->attention_efficiency / own : 1;
  if (kernel->kind != POD_KERNEL_MATMUL && !is_attention (kernel))
    return 1;
  if (loss == POD_LOSS_CLOCK)
    return 1 / pod_chip_clock_ratio (chip);
  return loss == POD_LOSS_SPREAD ? 1 + chip->clock_spread * largest_of (software->n_chips) : 1;
}

static double
memory_ratio (const PodKernel *kernel, const PodStepSoftware *software, PodLoss loss)
{
  return loss == POD_LOSS_ELEMENTWISE && kernel->kind == POD_KERNEL_VECTOR && !kernel->is_op_by_op ? software->elementwise_passes : 1;
}

void
pod_kernel_time_in_step (const PodChip *chip, PodFidelity fidelity, const PodKernel *kernel, const PodStepSoftware *software, PodKernelTime *out,
                         double losses_s[POD_N_LOSSES])
{
  PodKernelTime ideal;

  pod_kernel_time (chip, fidelity, kernel, out);
  if (fidelity != POD_FIDELITY_CALIBRATED || !(out->time_s > 0))
    return;
  pod_kernel_time (chip, POD_FIDELITY_IDEAL, kernel, &ideal);
  for (unsigned loss = 0; loss < POD_N_LOSSES; loss++)
    {
      const double before_s = out->time_s;

      out->flop_s = MAX (out->flop_s * flop_ratio (chip, kernel, software, (PodLoss) loss), ideal.flop_s);
      out->memory_s *= memory_ratio (kernel, software, (PodLoss) loss);
      out->time_s = MAX (out->flop_s, out->memory_s) + out->overhead_s;
      losses_s[loss] += out->time_s - before_s;
    }
  out->bound = out->overhead_s > MAX (out->flop_s, out->memory_s) ? POD_BOUND_OVERHEAD : out->flop_s >= out->memory_s ? POD_BOUND_COMPUTE : POD_BOUND_HBM;
}

/* A pass that is not fused is a kernel of its own. */
double
pod_kernel_launches (const PodStepSoftware *software, const PodKernel *kernel)
{
  const double n = (double) MAX (kernel->n_launches, 1);
  const double more = kernel->begins_woven ? software->overlap_launches : 0;

  if (software->graphs == POD_GRAPHS_STEP || (software->graphs == POD_GRAPHS_LAYERS && !kernel->is_sized_late))
    return 0;
  return kernel->kind == POD_KERNEL_VECTOR && !kernel->is_op_by_op ? n * software->elementwise_passes + more : n + more;
}

double
pod_kernel_host_s (const PodStepSoftware *software, const PodKernel *kernel, double wait_s)
{
  return pod_kernel_launches (software, kernel) * (kernel->is_awaited ? software->launch_s : wait_s);
}
