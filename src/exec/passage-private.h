#pragma once

#include "exec/alone-private.h"

/* A block carries the times at which its rank's streams are free to those after it: each is the latest of some times before, plus the path
 * between. That is a matrix of the max-plus algebra, made once by a walk through the block's ops; a step then costs a product. */

enum
{
  POD_MAX_TAILS = 3, /* numbers of a block's last kernels that ops of the next one do not wait for */
  POD_MAX_VARIABLES = POD_N_STREAMS + POD_MAX_TAILS,
  POD_NO_VARIABLE = -1,
};

/* The times of a rank: when each stream is free, and when all but its last kernels have ended. */
typedef struct
{
  uint32_t n;
  int of_stream[POD_N_STREAMS]; /* POD_NO_VARIABLE: it has no ops */
  uint32_t n_tails;
  uint32_t first_tail;
  int32_t tails[POD_MAX_TAILS]; /* kernels left out, by variable from first_tail on */
} PodVariables;

void pod_variables_init (PodVariables *variables, const PodProgram *program);

/* A transfer between stages in a block: when its sender has it ready is a row of the block's own, when it ends another's. */
typedef struct
{
  const PodOp *op;
  double ready_ps[POD_MAX_VARIABLES]; /* of a send: path from each variable */
} PodTransfer;

typedef struct
{
  uint32_t rank;      /* for which its collectives were priced */
  GArray *comms;      /* uint32_t: of these */
  double *matrix;     /* n x n: path to row from column, -INFINITY none */
  GArray *receives;   /* PodTransfer */
  GArray *sends;
  int64_t peak_bytes; /* above what the rank held before, of what kernels alone allocate and free */
  int64_t end_bytes;  /* of that, left behind */
} PodPassage;

/* What all passages of a program share; borrowed. */
typedef struct
{
  const PodExecRequest *request;
  const PodStepSoftware *software;
  const GArray *kernels;  /* PodKernelUse */
  const double *wait_s;   /* by block */
  const PodVariables *variables;
  const bool *is_counted; /* by label: kernels alone allocate and free it */
  PodAlone *alone;
} PodPassageInput;

/* The block at @block_index as the rank goes through it. Returns: (transfer full). O(ops x (streams + dependencies)) */
PodPassage *pod_passage_new (const PodPassageInput *input, uint32_t block_index, uint32_t rank, GError **error);
void pod_passage_free (PodPassage *passage);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodPassage, pod_passage_free)
/* Whether all takes another rank as long: its collectives are at the same places. */
bool pod_passage_is_of (const PodPassage *passage, PodAlone *alone, uint32_t rank);
