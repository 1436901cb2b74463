#pragma once

#include "validate/error-summary.h"

/* Options of podsim validate, whatever it validates. */
typedef struct
{
  char *table;
  char *chip;
  char *library;
  char *json;
  char *per_row;
  char *plot;
  char *leave_one_out;
  char *fidelity;
  int all_rows;
  int jobs; /* -1: not given */
} PodValidateOptions;

/* Print, and write what the options ask for. */
bool pod_cli_validate_training (const PodValidateOptions *options, GError **error);
bool pod_cli_validate_memory (const PodValidateOptions *options, GError **error);
bool pod_cli_validate_kernels (const PodValidateOptions *options, GError **error);
