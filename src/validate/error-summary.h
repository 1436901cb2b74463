#pragma once

#include "base/json.h"

/* How far predictions are off: CLI.md's figures, the same for every kind of measurement. */

typedef struct
{
  unsigned n_rows;
  double mape;           /* mean of |predicted/measured - 1| */
  double median_error;   /* of the same */
  double p90_error;
  double bias;           /* mean of predicted/measured - 1 */
  double mean_log_error; /* mean of |ln(predicted/measured)| */
} PodErrorSummary;

/* @errors: predicted/measured - 1 of each row, above -1. Reorders them. All zero without rows.
 * O(n log n). */
PodErrorSummary pod_error_summary (double *errors, unsigned n_errors);

/* The five figures as keys of @object; none without rows. */
void pod_error_summary_to_json (JsonObject *object, const PodErrorSummary *summary);
