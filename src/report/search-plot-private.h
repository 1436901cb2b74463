#pragma once

#include "report/report-private.h"

/* What the page and the pictures of a search share. */

enum
{
  POD_SEARCH_MOST_BARS = 32, /* more are a wall */
};

/* "fsdp=8, micro-batch 2, recompute none"; the machine too where there are several. Returns:
 * (transfer full) */
char *pod_search_label (JsonObject *row, bool has_machines);
/* Whether the rows stand on several machines, or use different numbers of chips. */
bool pod_search_has_machines (JsonObject *result);
bool pod_search_has_chips (JsonObject *result);
/* Peak and reserve. */
double pod_search_bytes (JsonObject *row);
/* "best by cost: time of a step, the first 32 of 100". Returns: (transfer full) */
char *pod_search_heading (JsonObject *result);
/* "2.92 s", and what else is least. Returns: (transfer full) */
char *pod_search_value (JsonObject *result, JsonObject *row);
/* Its best rows, at most POD_SEARCH_MOST_BARS. */
unsigned pod_search_n_bars (JsonObject *result);
