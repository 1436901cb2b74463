#pragma once

#include "base/error.h"
#include "search/crossing.h"
#include "search/search.h"

/* What lines of a sweep show. */
typedef struct
{
  const char *picture;        /* "sweep-time" */
  const char *key;            /* in JSON, with its unit: "time_s" */
  const char *label;          /* of an axis, with its unit */
  PodCrossingMeasure measure; /* in the unit of both */
  PodCrossingMeasure other;   /* (nullable) dashed beside it: what it is weighed against */
  const char *other_label;
  bool is_logarithmic;        /* both axes: powers are straight lines */
} PodSweepMeasure;

/* By what an objective ranks. */
const PodSweepMeasure *pod_cli_sweep_measure (PodObjective objective);

/* Pictures of a sweep in @folder: sweep-time, sweep-mfu and that of the objective, lines over the first dimension, one for each combination of the
 * others; heat-mfu over the first two. What does not fit is left out of them, and where nothing fits there are none. Lines that cross have a ring
 * there with its place on the axis, as a line and what it is weighed against have. */
bool pod_cli_plot_sweep (const PodGrid *grid, const GArray *rows, PodObjective objective, const char *folder, GError **error);
/* The name of a line: the values of all dimensions but the first, in combination @index. Returns: (transfer full) */
char *pod_cli_line_name (const PodGrid *grid, uint64_t index);
