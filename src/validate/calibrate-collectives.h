#pragma once

#include "validate/fit-collectives.h"
#include "validate/validate-collectives.h"

typedef struct
{
  const PodCollectiveValidationInput *inputs; /* tables and their chips */
  unsigned n_inputs;
  const char *template_name; /* library file whose "fitted" numbers are where the fit starts */
  const char *write;         /* library file that gets the entry, made when absent */
  bool is_common;            /* the entry "*", of all the tables together */
} PodCollectiveCalibration;

/* Fits the template's entry of the first chip to the tables and writes it, with its source, the
 * data's date, rows, and the error before and after. *out_name: which chips (transfer full). */
bool pod_calibrate_collectives (const PodCollectiveCalibration *request, PodCollectiveFit *out,
                                char **out_name, GError **error);
