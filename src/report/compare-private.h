#pragma once

#include "report/report-private.h"

/* What pages and pictures of comparisons and searches share. */

#define POD_N_COMPARE_TERMS 12

const char *pod_compare_term_name (unsigned term);
const char *pod_compare_term_colour (unsigned term);
/* Whether the job ran on the machine of this row. */
bool pod_compare_has_step (JsonObject *row);
/* The seconds of each term of a row's step; they add up to the step. */
void pod_compare_terms (JsonObject *row, double *out);

/* Steps as bars of their terms, one below the other, those that have none left out. */
typedef struct
{
  const char *name; /* of the picture */
  const char *title;
  const char *words;  /* under it */
  const char *column; /* of the data: what a bar stands for */
  JsonArray *rows;
  unsigned n_rows;           /* the first of them */
  const char *const *labels; /* one for each row */
  const char *const *values; /* likewise: written at its end */
} PodStepBars;

/* Errors: IO. */
bool pod_report_step_bars_plot (const PodStepBars *plot, const char *folder, GError **error);
