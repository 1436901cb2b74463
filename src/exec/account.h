#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "parallel/program.h"

/* Where each rank's time and memory go. Every instant of the step is given away exactly once, in integer picoseconds. */

typedef struct
{
  int64_t compute_ps;
  int64_t optimizer_ps;  /* parts of compute */
  int64_t recompute_ps;
  int64_t bubble_ps;
  int64_t idle_ps;
  int64_t exposed_ps[POD_N_COMM_AXES];
  int64_t comm_ps[POD_N_COMM_AXES]; /* hidden or not */
} PodBreakdown;

/* An operation on a stream: it is remembered for the ops that it releases. */
typedef struct
{
  int64_t arrive_ps;
  int64_t start_ps;
  int64_t end_ps;
  uint8_t stream;
  uint8_t released_by;
  uint8_t axis;
  bool is_pipeline;
} PodAccountSpan;

typedef struct PodAccount PodAccount;

/* @class_of: (transfer none) of each rank. */
PodAccount *pod_account_new (const PodProgram *program, uint32_t n_ranks, const uint32_t *class_of);
void pod_account_free (PodAccount *account);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodAccount, pod_account_free)

/* A compute op begins now; what stood between it and the last one is attributed by who released it. */
void pod_account_compute (PodAccount *account, uint32_t rank, uint8_t released_by, int64_t now_ps);
/* It has ended. */
void pod_account_compute_ended (PodAccount *account, uint32_t rank, PodPhase phase, int64_t now_ps);
/* A collective or transfer has ended on this rank. */
void pod_account_comm (PodAccount *account, uint32_t rank, const PodAccountSpan *span);
/* Buffers of an op appear (at its start) or vanish (at its end). Returns true when the rank's memory changed. */
bool pod_account_effects (PodAccount *account, uint32_t rank, uint32_t op, bool is_at_end, int64_t now_ps);
/* Everything ended at @end_ps. Returns the step's time: that, or where steps overlap the most that one rank takes from its first compute
 * to its end (a rank can begin its next step when it ends this one, so that steps follow each other at this distance). */
int64_t pod_account_finish (PodAccount *account, int64_t end_ps);

/* Puts a rank's account where that of another one of its class stands. */
void pod_account_copy (PodAccount *account, uint32_t from, uint32_t to);
/* Appends (element-type int64_t) what decides how a rank's account goes on, counted from @now_ps: not what it holds, which nothing hangs on. */
void pod_account_save (const PodAccount *account, uint32_t rank, int64_t now_ps, GArray *out);
/* Puts the account where that says. Returns: behind what was read of @state. */
const int64_t *pod_account_load (PodAccount *account, uint32_t rank, const int64_t *state, int64_t now_ps);
/* Appends what has been added up so far. */
void pod_account_sums (const PodAccount *account, uint32_t rank, GArray *out);

/* Of a stretch of time of a rank: the most that it held, and its peak by the end. */
typedef struct
{
  int64_t most_bytes;
  int64_t peak_bytes;
} PodAccountMark;

/* Since the last one: begins the next. */
PodAccountMark pod_account_mark (PodAccount *account, uint32_t rank);

/* What came since @sums, and what memory did in it. */
typedef struct
{
  const int64_t *sums;
  int64_t most_bytes;
  bool has_peaked;
} PodAccountStretch;

/* How much more the rank holds than then. */
int64_t pod_account_growth (const PodAccount *account, uint32_t rank, const PodAccountStretch *stretch);
/* How often, @n times at most, the stretch may come again without a peak that takes the place of the highest of all ranks: by label nobody has
 * seen that one. @highest_growth: of the rank with the highest in a stretch in which it has peaked, else 0. */
uint32_t pod_account_n_skips (const PodAccount *account, uint32_t rank, const PodAccountStretch *stretch, int64_t highest_growth, uint32_t n);
/* The account goes on as if the stretch had come @n times more and taken @ps. */
void pod_account_skip (PodAccount *account, uint32_t rank, const PodAccountStretch *stretch, uint32_t n, int64_t ps);

/* From now on of stretches of time it is asked what they came to: pod_account_begin_stretch, then pod_account_end_stretch. */
void pod_account_watch (PodAccount *account);
/* Puts what has been added up so far into @sums (element-type int64_t). */
void pod_account_begin_stretch (PodAccount *account, uint32_t rank, int64_t now_ps, GArray *sums);
/* How many numbers a stretch's outcome has. */
guint pod_account_n_outcome (const PodAccount *account);
/* Writes what came since @sums, of a stretch that began at @begin_ps, to @out. */
void pod_account_end_stretch (const PodAccount *account, uint32_t rank, const int64_t *sums, int64_t begin_ps, int64_t *out);
/* What @n stretches of @ps, the first from @begin_ps on, came to that were like that one: their sums, and their memory. */
void pod_account_add_stretches (PodAccount *account, uint32_t rank, const int64_t *outcome, int64_t begin_ps, int64_t ps, uint32_t n);

/* What a stretch and @next, behind it, come to together. @begin_ps: when that begins, counted from the first one's beginning */
void pod_account_join_stretch (const PodAccount *account, int64_t *outcome, const int64_t *next, int64_t begin_ps);

/* Returns: (transfer full) by rank, at the end */
PodBreakdown *pod_account_breakdowns (const PodAccount *account);
/* From the rank's begin of the step to the end of its last op, less what it waited in collectives for ranks that came later: the rank
 * with the most is the one that the others wait for. */
int64_t pod_account_rank_own_time (const PodAccount *account, uint32_t rank);
/* Bytes now, and at the peak so far. */
double pod_account_memory (const PodAccount *account, uint32_t rank);
double pod_account_peak (const PodAccount *account, uint32_t rank);
/* Returns: the first of the ranks with the highest peak so far; @out_at_ps: (optional) when it was, @out_by_label: (optional) (transfer none)
 * what it was, by label */
uint32_t pod_account_highest (const PodAccount *account, double *out_bytes, int64_t *out_at_ps, const int64_t **out_by_label);
