#pragma once

#include "base/json.h"
#include "base/table.h"
#include "scenario/scenario.h"
#include "validate/error-summary.h"
#include "validate/training-table.h"

/* Predicted against published training steps: time, MFU and memory. Each row is a run of its own, as podsim run makes it. */

typedef struct
{
  const char *const *files; /* tables */
  unsigned n_files;
  const char *chip;         /* (nullable) only rows of machines with this chip */
  const char *fidelity;     /* (nullable) calibrated */
  bool has_all_rows;        /* those too that their table does not judge */
  bool is_memory_only;      /* only rows with a memory figure */
  unsigned n_threads;       /* >= 1; the result is the same for any */
} PodTrainingRequest;

typedef enum
{
  POD_TRAINING_TIME,   /* step time */
  POD_TRAINING_MFU,    /* by the row's own convention, where it is one of ours */
  POD_TRAINING_MEMORY, /* peak of the fullest device, the reserve apart */
  POD_N_TRAINING_KINDS
} PodTrainingKind;

/* What a run of a row said; numbers only where @reason is NULL. */
typedef struct
{
  const PodTrainingRow *row;
  PodScenario *scenario; /* (nullable) what the row became; NULL where it could not */
  char *reason;          /* (nullable) why it was not run */
  bool is_noisy;         /* releases of its layout differ too much: reported, not counted */
  bool is_memory_counted; /* its memory was measured, not computed */
  bool fits;             /* in the memory of the chip */
  double measured[POD_N_TRAINING_KINDS];  /* seconds, ratio, bytes; 0 = not measured */
  double predicted[POD_N_TRAINING_KINDS];
  double lower_bound_s;
  JsonObject *result;    /* podsim run's */
} PodTrainingVerdict;

typedef struct
{
  GPtrArray *tables;   /* (element-type PodTrainingTable) */
  GPtrArray *verdicts; /* (element-type PodTrainingVerdict), in the order of the tables */
  GPtrArray *sources;  /* (element-type utf8) keys in order of appearance (borrowed from the rows) */
} PodTrainingValidation;

/* Runs every row. A row that cannot be run is a verdict with its reason, not an error. Errors: a table that cannot be read,
 * or has no row to judge. Returns: (transfer full) */
PodTrainingValidation *pod_validate_training (const PodTrainingRequest *request, GError **error);
void pod_training_validation_free (PodTrainingValidation *validation);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodTrainingValidation, pod_training_validation_free)

/* Some rows; all (nullable). */
typedef struct
{
  const char *source; /* a key */
  const char *group;
  int half;           /* 1: the rows that parameters may be fitted to, 0: the others, -1: both */
} PodTrainingSelection;

/* The halves: whether the FNV-1a hash (32 bits) of the row's id is even. */
bool pod_training_is_fitted (const PodTrainingRow *row);

PodErrorSummary pod_training_summary_of (const PodTrainingValidation *validation, PodTrainingKind kind, const PodTrainingSelection *selection);
/* Part of the counted rows whose measured time lies in the predicted range. */
double pod_training_coverage (const PodTrainingValidation *validation, const PodTrainingSelection *selection);

/* Rows that were run, were measured and are counted; of one source (nullable: all). O(rows log rows). */
PodErrorSummary pod_training_summary (const PodTrainingValidation *validation, PodTrainingKind kind,
                                      const char *source);
bool pod_training_is_counted (const PodTrainingVerdict *verdict, PodTrainingKind kind);
/* predicted/measured - 1 */
double pod_training_error (const PodTrainingVerdict *verdict, PodTrainingKind kind);
unsigned pod_training_n_skipped (const PodTrainingValidation *validation, const char *source);

/* Where the time of each row goes, what was measured, and the options by which podsim run repeats it, a line each. Returns: (transfer full) */
PodTable *pod_training_per_row (const PodTrainingValidation *validation);
/* CLI.md's keys, about @main: POD_TRAINING_TIME or POD_TRAINING_MEMORY. Returns: (transfer full) */
JsonObject *pod_training_to_json (const PodTrainingValidation *validation, PodTrainingKind main);
