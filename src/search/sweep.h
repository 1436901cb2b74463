#pragma once

#include "search/database.h"
#include "search/grid.h"
#include "search/search.h"

/* A grid of runs: one for each combination of values. Keys are options of the job, degrees of its layout (tp, pp, ...), paths of --set
 * ("chip.hbm_bandwidth"), "chips": the machine with that many chips of the scenario's, and "tokens-per-chip": the batch with so many tokens for
 * each chip of the machine. */

typedef enum
{
  POD_SCALING_NONE,
  POD_SCALING_STRONG, /* the same job on more chips */
  POD_SCALING_WEAK,   /* the batch grows with the chips */
} PodScaling;

typedef struct
{
  const PodScenario *base;
  const PodGrid *grid;
  PodScaling scaling;
  PodObjective objective; /* what layouts that are auto are the best by */
  unsigned n_jobs;
  PodDatabase *database; /* (nullable) (borrowed) */
  const volatile sig_atomic_t *is_interrupted;
  void (*progress) (uint64_t n_done, uint64_t n_all, void *data); /* (nullable) */
  void *progress_data;
} PodSweepRequest;

/* Checks keys and values that hang on no machine. Errors: INVALID */
bool pod_sweep_check (const PodScenario *base, const PodGrid *grid, GError **error);
/* The values of "chips" when a preset needs them and nobody says: those of the scenario's machine, and 2, 4 and 8 times as many, as
 * the first axis. */
bool pod_sweep_add_chips (const PodScenario *base, PodGrid *grid, GError **error);
/* What the preset fsdp-tp adds to @grid where it does not vary it: tokens-per-chip from the sequence length on, by twos, and the layout: FSDP on
 * all devices, TP on all, and the best split between both. */
bool pod_sweep_add_fsdp_tp (const PodScenario *base, PodGrid *grid, GError **error);
/* The rows of all combinations, in order, with status NONE where the sweep was interrupted. Returns: (transfer full) (element-type PodRow) */
GArray *pod_sweep_run (const PodSweepRequest *request, GError **error);
