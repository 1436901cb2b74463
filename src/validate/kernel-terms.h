#pragma once

#include "validate/kernel-table.h"

/* What a measured operation is made of: kernels of ours that run one after the other. */

enum
{
  POD_SAMPLE_MAX_TERMS = 4,
  POD_TERM_MAX_POINTS = POD_KERNEL_MAX_POINTS + 1,
};

/* One of them: base_s x exp (sum of the chip's surfaces at the points), at least ideal_s. */
typedef struct
{
  double base_s; /* by the chip's closed forms alone */
  double ideal_s;
  unsigned n_points;
  PodKernelPoint points[POD_TERM_MAX_POINTS];
} PodKernelTerm;

/* @chip: its surfaces are left aside. Returns: how many. O(1). */
unsigned pod_kernel_sample_terms (const PodChip *chip, const PodKernelSample *sample,
                                  PodKernelTerm terms[POD_SAMPLE_MAX_TERMS]);

/* Seconds of the operation, calibrated, by pod_kernel_time() and the chip's surfaces. *out_ideal_s
 * (nullable): at fidelity ideal. O(1). */
double pod_kernel_sample_predict (const PodChip *chip, const PodKernelSample *sample,
                                  double *out_ideal_s);
