#pragma once

#include "chip/kernel.h"

/* What the files of this folder share: the measured behaviour of each kind of kernel. */

/* What one device offers to one kernel. */
typedef struct
{
  const PodChip *chip;
  double peak_flops_per_s;   /* of the matrix units at the kernel's dtype */
  double vector_flops_per_s; /* 0 = unknown */
  double hbm_bytes_per_s;
  double n_cores;          /* SMs, CUs or TensorCores of the device, >= 1 */
  bool has_systolic_array; /* TPUs and their like: one large array, no tiles handed to cores */
} PodKernelDevice;

/* max(FLOPs/C, bytes/W) without any loss: what book and ideal use, and what calibrated never beats.
 */
void pod_kernel_time_roofline (const PodKernelDevice *device, const PodKernel *kernel,
                               PodKernelTime *out);

/* Each takes *out as pod_kernel_time_roofline() left it, and replaces flop_s, memory_s, overhead_s,
 * padding_ratio, wave_ratio and efficiency by what a kernel of its kind measures. O(1). */
void pod_kernel_time_matmul (const PodKernelDevice *device, const PodKernel *kernel,
                             PodKernelTime *out);
void pod_kernel_time_attention (const PodKernelDevice *device, const PodKernel *kernel,
                                PodKernelTime *out);
void pod_kernel_time_vector (const PodKernelDevice *device, const PodKernel *kernel,
                             PodKernelTime *out);

/* A chip file's efficiency, 1 when it gives none; never above 1, or calibrated could beat ideal. */
double pod_kernel_efficiency (double efficiency);

/* @count rounded up to whole blocks of @block. */
double pod_kernel_round_up (double count, double block);

/* Seconds by which max(@flop_s, @memory_s) is missed because arithmetic and memory do not overlap
 * fully. */
double pod_kernel_overlap_loss_s (const PodKernelDevice *device, const PodKernel *kernel,
                                  double flop_s, double memory_s);

/* One new query for each sequence (or a few) against cached keys. */
bool pod_kernel_is_decode (const PodKernel *kernel);

/* Multiplies *out by the chip's surfaces; no part of it falls below @ideal's. O(1). */
void pod_kernel_correct (const PodKernelDevice *device, const PodKernel *kernel,
                         const PodKernelTime *ideal, PodKernelTime *out);
