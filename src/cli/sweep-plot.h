#pragma once

#include "search/grid.h"
#include "search/row.h"

/* Pictures of a sweep in @folder: sweep-time and sweep-mfu, lines over the first dimension, one for each combination of the others; heat-mfu
 * over the first two. What does not fit is left out of them. */
bool pod_cli_plot_sweep (const PodGrid *grid, const GArray *rows, const char *folder, GError **error);
