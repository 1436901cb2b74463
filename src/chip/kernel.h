#pragma once

#include "model/operation.h"
#include "topology/chip.h"

/* How long an operation takes on one device. */

typedef enum
{
  POD_BOUND_COMPUTE,
  POD_BOUND_HBM,
  POD_BOUND_OVERHEAD,
} PodBound;

/* A time taken apart, for --explain. All seconds; time_s = max(flop_s, memory_s) + overhead_s. */
typedef struct
{
  double time_s;
  double flop_s;
  double memory_s;
  double overhead_s;
  PodBound bound;
  double peak_flops_per_s; /* of the device at that dtype */
  double padding_ratio;    /* padded over real work, >= 1 */
  double wave_ratio;       /* quantised over real waves, >= 1; 1 on TPUs */
  double efficiency;       /* of peak in the steady state */
  /* how a GPU runs it, 0 elsewhere */
  double waves;      /* rounds of blocks over all cores */
  unsigned tile_m;   /* output tile of a block; attention: queries of a block */
  unsigned tile_n;   /* matmul only */
  unsigned n_splits; /* blocks that share one tile's k; decode: one query's keys */
} PodKernelTime;

/* book: matmuls and attention max(FLOPs/C, bytes/W) with book numbers, vector and optimizer kernels
 * 0 (the book leaves them out). ideal: nominal peaks, cold HBM, no overhead: nothing measured beats
 * it. calibrated: padding, waves, efficiencies, launch floor of the chip file. Always ideal <=
 * calibrated. Pure; O(1). */
void pod_kernel_time (const PodChip *chip, PodFidelity fidelity, const PodKernel *kernel,
                      PodKernelTime *out);

/* Where a kernel stands on one of the chip's surfaces, whether the chip has it or not. */
typedef struct
{
  PodChipSurface kind;
  double at[POD_SURFACE_MAX_AXES];
} PodKernelPoint;

enum
{
  POD_KERNEL_MAX_POINTS = 2,
};

/* The surfaces that correct the calibrated time of @kernel, which is that of the closed form x exp
 * (sum of the surfaces there), never below ideal. Returns: how many. Pure; O(1). */
unsigned pod_kernel_points (const PodKernel *kernel, PodKernelPoint out[POD_KERNEL_MAX_POINTS]);

/* Seconds in which a device quantises [@m,@k] from bf16 to fp8 with scales that it first looks for,
 * as inference engines do before each matmul; calibrated. Training casts once per use and fuses:
 * its casts are vector kernels. Pure; O(1). */
double pod_kernel_cast_s (const PodChip *chip, uint64_t m, uint64_t k);
