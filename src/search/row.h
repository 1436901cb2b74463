#pragma once

#include "scenario/scenario.h"

/* The result of one run in a form of fixed size: what searches rank, databases keep and ranks send each other. */

typedef enum
{
  POD_ROW_NONE,      /* not run */
  POD_ROW_FITS,
  POD_ROW_TOO_LARGE, /* does not fit in memory; its times are known only if it ran to its end */
  POD_ROW_REFUSED,   /* cannot be: see refusal */
  POD_N_ROW_STATUSES
} PodRowStatus;

extern const char *const pod_row_status_names[POD_N_ROW_STATUSES];

enum
{
  POD_ROW_TEXT = 256,
};

typedef struct
{
  uint64_t candidate;  /* its number, given by the caller */
  PodRowStatus status;
  int error_code;      /* PodErrorCode of a refusal */
  int64_t time_ps;     /* 0: not known */
  int64_t lower_bound_ps;
  int64_t compute_ps;
  int64_t optimizer_ps;
  int64_t recompute_ps;
  int64_t bubble_ps;
  int64_t idle_ps;
  int64_t forward_comm_ps; /* forward passes' collectives of the axis that has the most of them: axes at once, each alone on the network */
  int64_t forward_compute_ps; /* their kernels */
  int64_t exposed_ps[POD_N_COMM_AXES];
  int64_t comm_ps[POD_N_COMM_AXES];
  double capacity_bytes;
  double reserved_bytes;
  double peak_bytes;
  double by_use[POD_N_USES];
  double mfu;
  double hfu;
  double tokens_per_s;
  double tokens_per_s_per_chip;
  double usd_per_step;  /* below 0: no price known */
  double train_days;    /* below 0: --tokens not given */
  double train_usd;     /* below 0: --tokens not given, or no price */
  uint32_t chips;       /* of the machine, idle ones too */
  uint32_t chips_used;  /* of these, by the layout */
  char layout[POD_ROW_TEXT];
  char map[POD_ROW_TEXT];
  char bound[32];
  char refusal[POD_ROW_TEXT];
} PodRow;

/* Runs @scenario and fills @row but for its candidate; what cannot be run is a row too. @run (out) (optional) (nullable): the run, where
 * it went to its end. Returns false when the run was interrupted, or when its error is none of a layout (IO). */
bool pod_row_run (const PodScenario *scenario, const PodRunRequest *request, PodRow *row, PodRun **out_run, GError **error);

/* Makes @row that of what cannot be run; an error that is none of the layout (INVALID, PARSE, IO) goes on to @error, and false is returned. */
bool pod_row_refuse (PodRow *row, GError **refusal, GError **error);

/* Whether one of @rows (element-type PodRow) fits. */
bool pod_rows_any_fits (const GArray *rows);

/* What a row's step holds of memory in all. */
double pod_row_bytes (const PodRow *row);

/* The row as an object with CLI.md's keys: layout, map, step, memory, and cost where it is known. Returns: (transfer full) */
JsonObject *pod_row_to_json (const PodRow *row);
