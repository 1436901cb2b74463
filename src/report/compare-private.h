#pragma once

#include "report/report-private.h"

/* What the page and the picture of a comparison share. */

#define POD_N_COMPARE_TERMS 12

const char *pod_compare_term_name (unsigned term);
const char *pod_compare_term_colour (unsigned term);
/* Whether the job ran on the machine of this row. */
bool pod_compare_has_step (JsonObject *row);
/* The seconds of each term of a row's step; they add up to the step. */
void pod_compare_terms (JsonObject *row, double *out);
