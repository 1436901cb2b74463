#pragma once

#include "search/grid.h"
#include "search/row.h"

/* Where two lines of a sweep cross: between two neighbouring values of its first dimension one is the better on either side. */
typedef struct
{
  guint lines[2];  /* combinations of the other dimensions, the first the lower before the crossing */
  bool is_first_lower; /* of two measures of one line: the first is the lower before */
  double at;       /* of the first dimension */
  double value;
} PodCrossing;

typedef double (*PodCrossingMeasure) (const PodRow *row);

/* Whether every value of a dimension is a plain number, and above 0. */
bool pod_grid_is_numeric (const PodGrid *grid, guint dim);
/* Straight lines in the logarithms of both, from row to row that fits: powers of the value, as shares of a batch or of chips are. In the
 * order of lines and values; none where the first dimension is no number. Returns: (transfer full) (element-type PodCrossing). O(lines^2 x
 * values) */
GArray *pod_crossings (const PodGrid *grid, const GArray *rows, PodCrossingMeasure measure);
/* Likewise where one measure of a line crosses @other of it: its communication its compute. */
GArray *pod_balances (const PodGrid *grid, const GArray *rows, PodCrossingMeasure measure, PodCrossingMeasure other);
