#pragma once

#include "chip/kernel.h"

/* What a step loses against kernels that were measured alone, each loss with a cause of its own: the chip's clock under
 * load, and how a framework runs what the model asks for. Fidelity calibrated only. */

typedef enum
{
  POD_LOSS_CLOCK,       /* matrix units slowed down by the power limit */
  POD_LOSS_SPREAD,      /* the slowest of the chips that wait for each other */
  POD_LOSS_ATTENTION,   /* the framework's attention kernels, not those that the chip file was fitted to; below 0 where they are faster */
  POD_LOSS_ELEMENTWISE, /* passes over activations that are not fused */
  POD_LOSS_HOST,        /* the device waits for the host to launch */
  POD_N_LOSSES
} PodLoss;

extern const char *const pod_loss_names[POD_N_LOSSES + 1]; /* ends with NULL */

/* What of a step is one CUDA graph, which the device runs without the host. */
typedef enum
{
  POD_GRAPHS_NONE,
  POD_GRAPHS_LAYERS, /* all but what is sized by how tokens were routed */
  POD_GRAPHS_STEP,
  POD_N_GRAPHS
} PodGraphs;

extern const char *const pod_graphs_names[POD_N_GRAPHS + 1]; /* ends with NULL */

/* How a framework runs a step, as its file in workloads/frameworks/ says. */
typedef struct
{
  double n_chips;               /* that wait for each other */
  double elementwise_passes;    /* bytes of element-wise kernels over those of fused ones, >= 1 */
  PodAttentionKernel attention; /* which kernels */
  double launch_s;              /* of the host for one kernel; 0 = never waited for */
  double overlap_launches;      /* of the host besides, for each pass that is woven with another */
  PodGraphs graphs;             /* which kernels the host does not launch */
  double fsdp_rate_ratio;       /* what fsdp's collectives reach of what they reach alone, at most 1 */
} PodStepSoftware;

/* A framework that loses nothing. */
void pod_step_software_init (PodStepSoftware *software);

/* As pod_kernel_time(), in a step; adds each loss to @losses_s. Pure; O(1). */
void pod_kernel_time_in_step (const PodChip *chip, PodFidelity fidelity, const PodKernel *kernel, const PodStepSoftware *software, PodKernelTime *out,
                              double losses_s[POD_N_LOSSES]);

/* Launches of the host for @kernel; 0 in a CUDA graph. */
double pod_kernel_launches (const PodStepSoftware *software, const PodKernel *kernel);

/* Seconds that the device waits for the host to launch @kernel, where it waits @wait_s for each launch of kernels that the host runs ahead
 * of. */
double pod_kernel_host_s (const PodStepSoftware *software, const PodKernel *kernel, double wait_s);

/* The part of its clock at which the chip's matrix units run back to back, at most 1. */
double pod_chip_clock_ratio (const PodChip *chip);
