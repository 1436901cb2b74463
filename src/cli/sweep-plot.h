#pragma once

#include "search/grid.h"
#include "search/row.h"

/* Pictures of a sweep in @folder: sweep-time and sweep-mfu, lines over the first dimension, one for each combination of the others; heat-mfu
 * over the first two. What does not fit is left out of them. */
/* Lines that cross have a ring there with its place on the axis. */
bool pod_cli_plot_sweep (const PodGrid *grid, const GArray *rows, const char *folder, GError **error);
/* The name of a line: the values of all dimensions but the first, in combination @index. Returns: (transfer full) */
char *pod_cli_line_name (const PodGrid *grid, uint64_t index);
