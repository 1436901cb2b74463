#pragma once

#include "validate/error-summary.h"
#include "validate/kernel-terms.h"

/* Fits surfaces of a chip to measured kernels. */

/* One surface to fit. */
typedef struct
{
  PodChipSurface kind;
  const char *nodes[POD_SURFACE_MAX_AXES]; /* of each axis, "1 4 16" */
} PodSurfaceGrid;

typedef struct
{
  unsigned n_rows;
  unsigned n_numbers;       /* values of the fitted surfaces */
  PodErrorSummary fitted;   /* over the rows that were fitted */
  PodErrorSummary held_out; /* each row by surfaces that saw no row of its fold */
} PodKernelFit;

/* Sets chip->surfaces of the grids' kinds to what fits @samples (PodKernelSample) best, rounded as
 * files hold them; the other surfaces stay. @grids: the first may be large, its rows in order of
 * its first axis; all others together should be small. Deterministic. Errors: INVALID. O(samples x
 * corners^2 + nodes x width^2) for each of a few iterations and folds. */
bool pod_fit_kernels (PodChip *chip, const GArray *samples, const PodSurfaceGrid *grids,
                      unsigned n_grids, PodKernelFit *out, GError **error);
