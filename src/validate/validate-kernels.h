#pragma once

#include "base/json.h"
#include "validate/error-summary.h"
#include "validate/kernel-terms.h"

/* Predicted against measured kernels. */

typedef struct
{
  const char *file; /* the table */
  const char *chip;
} PodKernelValidationInput;

typedef struct
{
  PodKernelSample sample;
  unsigned input; /* which table */
  double predicted_s;
  double ideal_s;
  bool is_untuned; /* experts by another kernel than the same shape's (untuned-experts.h): counted, unless a filter leaves it out */
} PodKernelVerdict;

typedef struct
{
  GPtrArray *sources; /* (element-type utf8) "h100-gemm.tsv h100" of each input */
  GArray *verdicts;   /* PodKernelVerdict */
  GPtrArray *skipped; /* (element-type utf8) */
  unsigned n_cases;   /* of experts */
  unsigned n_untuned; /* of them */
} PodKernelValidation;

/* Which verdicts a summary counts. */
typedef struct
{
  int input; /* -1: all */
  int kind;  /* -1: all */
  int dtype; /* -1: all */
  bool has_no_untuned;
} PodKernelFilter;

/* Predicts every row of the tables. O(rows). Returns: (transfer full) (nullable) */
PodKernelValidation *pod_validate_kernels (const PodKernelValidationInput *inputs,
                                           unsigned n_inputs, GError **error);
void pod_kernel_validation_free (PodKernelValidation *validation);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodKernelValidation, pod_kernel_validation_free)

PodErrorSummary pod_kernel_summary (const PodKernelValidation *validation,
                                    const PodKernelFilter *filter);
/* Predicted/measured - 1 of a verdict. */
double pod_kernel_error (const PodKernelVerdict *verdict);
/* Rows that were measured faster than fidelity ideal: operands in L2, or spikes of the clock. */
unsigned pod_kernel_n_beyond_ideal (const PodKernelValidation *validation, int input);

/* The keys of all validations, and groups[] by source, kind and dtype. Returns: (transfer full) */
JsonObject *pod_kernel_validation_to_json (const PodKernelValidation *validation);
