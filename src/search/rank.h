#pragma once

#include "search/search.h"

/* The order of rows, the best of them, and the front of those that no other beats in two ways at once. */

/* What the objective asks of a row: picoseconds, USD or bytes. */
double pod_rank_value (PodObjective objective, const PodRow *row);
/* Total: by value, time, memory, candidate. */
gint pod_rank_compare (PodObjective objective, const PodRow *a, const PodRow *b);
/* Inserts @row among the @most best, in order. O(most) */
void pod_rank_insert (PodObjective objective, GArray *best, guint most, const PodRow *row);

typedef double (*PodRankMeasure) (const PodRow *row);

/* Of @rows (PodRow) those that no other is as good as in time and in @other and better in one; of equals the lowest candidate. By time. Returns:
 * (transfer full). O(rows log rows) */
GArray *pod_rank_front (const GArray *rows, PodRankMeasure other);
