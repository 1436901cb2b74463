#pragma once

#include "validate/fit-kernels.h"

/* Fits the surfaces of a chip file to tables of measured kernels. */

typedef struct
{
  const char *chip;
  const char *const *tables; /* files */
  unsigned n_tables;
  const char *like;  /* (nullable) a chip whose surfaces are taken where the tables give none */
  const char *write; /* the chip's file with the new surfaces in place of the old */
} PodKernelCalibration;

/* What was fitted to which rows. */
typedef struct
{
  const char *name; /* "matmuls" */
  PodDtype dtype;
  PodKernelFit fit;
} PodKernelStage;

/* Surfaces that no row of the tables is about stay as they are. @out_stages: (element-type
 * PodKernelStage) appended to. */
bool pod_calibrate_kernels (const PodKernelCalibration *request, GArray *out_stages,
                            GError **error);
