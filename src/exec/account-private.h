#pragma once

#include "exec/account.h"

/* What account.c (where time and memory go) and account-skip.c (stretches that are not simulated) share. */

/* A stretch of a stream, in a list by rank, newest first. */
typedef struct
{
  int64_t arrive_ps;
  int64_t start_ps;
  int64_t end_ps;
  uint32_t next; /* in the pool, 0 none */
  uint8_t stream;
  uint8_t released_by;
  uint8_t axis;
  bool is_pipeline;
} PodAccountEntry;

/* What is added up of a rank: a row of sums. First these; then a breakdown's other parts that the program's ops have; then what it holds, by the
 * labels that they change. */
enum
{
  SUM_WAITED,  /* ps, in collectives, for ranks that came later */
  SUM_BYTES,   /* held now */
  SUM_COMPUTE, /* ps, as all of a breakdown's */
  SUM_BUBBLE,
  SUM_IDLE,
  N_FIRST_SUMS,
};

#define NO_SUM UINT8_MAX

typedef struct
{
  int64_t begin_ps;        /* where the rank's step begins: 0, or its first compute when steps overlap */
  int64_t compute_end_ps;  /* up to here compute is accounted for: the end of the last op, or the start of the present one */
  int64_t end_ps;          /* of the last op of any kind */
  int64_t peak_bytes;
  int64_t most_bytes;      /* since the last mark */
  uint32_t first_span;     /* in the pool, 0 none */
  uint8_t last_stream;     /* which stream ended last */
  bool has_begun;
} PodAccountRank;

typedef struct
{
  int64_t bytes;
  uint32_t moving;
} PodAccountEffect;

/* Of an op: at its start, then at its end. */
typedef struct
{
  uint32_t first;
  uint16_t n_at_start;
  uint16_t n_at_end;
} PodAccountEffects;

struct PodAccount
{
  const PodProgram *program;
  uint32_t n_ranks;
  const uint32_t *class_of; /* (transfer none) */
  PodAccountEffects *effects_of_op;
  PodAccountEffect *effects;
  PodAccountRank *ranks;
  int64_t *sums;          /* by rank: rows of n_sums */
  uint8_t n_sums;
  uint8_t of_phase[POD_N_PHASES];       /* where compute of a phase is told apart, as all of these NO_SUM where it is not */
  uint8_t of_exposed[POD_N_COMM_AXES];
  uint8_t of_comm[POD_N_COMM_AXES];
  uint8_t of_moving;      /* the first */
  PodAccountEntry *spans; /* the pool; that at 0 is of no use */
  uint32_t n_spans;
  uint32_t n_spans_allocated;
  uint32_t first_free;    /* chained by next */
  uint32_t n_moving;      /* labels that ops change; what ranks hold by the others is their class's for the whole step */
  uint32_t *moving_label;
  int64_t *watched;       /* (nullable) [rank][2 + moving] the most since the watch began, when that was, and by label */
  uint32_t highest_rank;  /* the first of those with the highest peak so far */
  int64_t highest_at_ps;  /* when that was */
  int64_t *highest_by_label;
};

/* Takes all of a rank's spans out, and puts one into its list. */
void pod_account_drop_spans (PodAccount *account, uint32_t rank);
void pod_account_add_span (PodAccount *account, uint32_t rank, const PodAccountEntry *span);
/* The rank has reached a peak: it may be the highest of all. @by_moving: what it holds then */
void pod_account_see_peak (PodAccount *account, uint32_t rank, const int64_t *by_moving, int64_t at_ps);

static inline int64_t *
pod_account_row (const PodAccount *account, uint32_t rank)
{
  return account->sums + (size_t) rank * account->n_sums;
}

/* The newest of a stream from @index on; NULL when there is none. */
static inline const PodAccountEntry *
pod_account_newest (const PodAccount *account, uint32_t index, uint8_t stream)
{
  while (index != 0 && account->spans[index].stream != stream)
    index = account->spans[index].next;
  return index == 0 ? NULL : &account->spans[index];
}
