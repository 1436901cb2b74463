#pragma once

#include "base/json.h"
#include "collective/library.h"
#include "validate/collective-machine.h"
#include "validate/collective-table.h"
#include "validate/error-summary.h"

/* Predicted against measured collectives. */

typedef struct
{
  const char *file; /* the table */
  const char *chip;
  const char *library; /* (nullable) the chip's own */
} PodCollectiveValidationInput;

typedef struct
{
  PodCollectiveSample sample;
  unsigned input; /* which table */
  double predicted_s;
  double ideal_s;
  const char *algorithm;
  const char *protocol; /* (nullable) */
} PodCollectiveVerdict;

typedef struct
{
  GPtrArray *tables;    /* (element-type PodCollectiveTable), as the inputs */
  GPtrArray *machines;  /* (element-type PodCollectiveMachines) */
  GPtrArray *libraries; /* (element-type PodLibrary) (nullable elements) */
  GArray *verdicts;     /* PodCollectiveVerdict */
  GPtrArray *skipped;   /* (element-type utf8) */
} PodCollectiveValidation;

/* Predicts every row of the tables. Returns: (transfer full) */
PodCollectiveValidation *pod_validate_collectives (const PodCollectiveValidationInput *inputs,
                                                   unsigned n_inputs, GError **error);
/* The same by the chip's launch floor and network efficiency alone. Returns: (transfer full) */
PodCollectiveValidation *pod_predict_without_library (const PodCollectiveValidationInput *inputs,
                                                      unsigned n_inputs, GError **error);
void pod_collective_validation_free (PodCollectiveValidation *validation);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodCollectiveValidation, pod_collective_validation_free)

/* Which verdicts a summary counts. */
typedef struct
{
  int input;  /* -1: all */
  int kind;   /* -1: all */
  int half;   /* 1 fitted, 0 held out, -1 both */
  int steady; /* 1 only rows at steady sizes, 0 only the others, -1 both */
  uint64_t least_bytes;
  bool has_unjudged;
} PodVerdictFilter;

#define POD_ALL_VERDICTS                                                                           \
  {                                                                                                \
    .input = -1, .kind = -1, .half = -1, .steady = -1                                              \
  }

PodErrorSummary pod_collective_summary (const PodCollectiveValidation *validation,
                                        const PodVerdictFilter *filter);
/* Predicted/measured - 1 of a verdict. */
double pod_collective_error (const PodCollectiveVerdict *verdict);
/* Rows that fidelity ideal is slower than, each with its reason. Returns: (transfer full)
 * (element-type utf8) */
GPtrArray *pod_collective_ideal_exceptions (const PodCollectiveValidation *validation);

/* CLI.md's keys. Returns: (transfer full) */
JsonObject *pod_collective_validation_to_json (const PodCollectiveValidation *validation,
                                               const PodCollectiveValidationInput *inputs,
                                               unsigned n_inputs);

/* One device that no fit saw: the common entry "*" of @template_name fitted to the other inputs,
 * judged on the rows of inputs[@left_out] from @least_bytes up. */
bool pod_collective_leave_one_out (const PodCollectiveValidationInput *inputs, unsigned n_inputs,
                                   unsigned left_out, const char *template_name,
                                   uint64_t least_bytes, PodErrorSummary *out, GError **error);
