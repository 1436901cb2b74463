#include "validate/error-summary.h"

#include <math.h>
#include <stdlib.h>

static int
compare_doubles (const void *a, const void *b)
{
  double left = *(const double *) a, right = *(const double *) b;

  return (left > right) - (left < right);
}

/* The value below which @part of the sorted values lie, interpolated. */
static double
quantile (const double *sorted, unsigned n, double part)
{
  double at = part * (n - 1);
  unsigned below = (unsigned) at;

  return below + 1 < n ? sorted[below] + (at - below) * (sorted[below + 1] - sorted[below])
                       : sorted[n - 1];
}

PodErrorSummary
pod_error_summary (double *errors, unsigned n_errors)
{
  PodErrorSummary summary = { .n_rows = n_errors };

  if (n_errors == 0)
    return summary;
  for (unsigned i = 0; i < n_errors; i++)
    {
      summary.bias += errors[i];
      summary.mean_log_error += fabs (log1p (errors[i]));
      errors[i] = fabs (errors[i]);
      summary.mape += errors[i];
    }
  qsort (errors, n_errors, sizeof *errors, compare_doubles);
  summary.mape /= n_errors;
  summary.bias /= n_errors;
  summary.mean_log_error /= n_errors;
  summary.median_error = quantile (errors, n_errors, 0.5);
  summary.p90_error = quantile (errors, n_errors, 0.9);
  return summary;
}

void
pod_error_summary_to_json (JsonObject *object, const PodErrorSummary *summary)
{
  if (summary->n_rows == 0)
    return;
  pod_result_set_double (object, "mape", summary->mape);
  pod_result_set_double (object, "median_error", summary->median_error);
  pod_result_set_double (object, "p90_error", summary->p90_error);
  pod_result_set_double (object, "bias", summary->bias);
  pod_result_set_double (object, "mean_log_error", summary->mean_log_error);
}
