#pragma once

#include "parallel/einsum.h"

/* Every way to do one sharded matmul.
 *
 * Its loop nest has a loop for each letter. While the local products run, each mesh axis cuts one
 * loop, or none (then all along it do the same work). That choice decides everything else: each
 * operand must lie cut as the loops are, and the product comes out so cut; what the operands lie
 * like before, and what the result should lie like after, differ from it by slice           an
 * operand (or the product) is whole along the axis: each device takes its part, for nothing
 *   all-gather      it is cut where it should be whole
 *   permute         axes cut it in the wrong order: each part goes to one device
 *   all-to-all      the axis cuts one of its dimensions and should cut another
 *   reduce-scatter  the axis cut a summed loop: the parts of the product are sums over an axis'
 * share, which are added up, and all-reduce      the result is cut by that axis, or whole along it
 * The four cases (sharding.h) are one of these choices; the others are their rivals. */

#define POD_NO_LOOP        UINT8_MAX
#define POD_MAX_LOOPS      (2 * POD_MAX_TENSOR_DIMS)
#define POD_MAX_STEPS      32
#define POD_MAX_STRATEGIES 4096
#define POD_MAX_PERMUTED   2048 /* devices of one permutation, whose pairs are listed */

typedef enum
{
  POD_OPERAND_LHS,
  POD_OPERAND_RHS,
  POD_OPERAND_OUT,
  POD_N_OPERANDS
} PodOperand;

typedef enum
{
  POD_STEP_SLICE,
  POD_STEP_ALL_GATHER,
  POD_STEP_ALL_TO_ALL,
  POD_STEP_REDUCE_SCATTER,
  POD_STEP_ALL_REDUCE,
  POD_STEP_PERMUTE,
} PodStepKind;

/* One axis' part in a step: it stops cutting dimension @from of the array and begins to cut @to
 * (-1: none). Both are the same in a permutation, whose moves name its axes as they cut afterwards,
 * the outermost first. */
typedef struct
{
  uint8_t axis;
  int8_t from;
  int8_t to;
} PodAxisMove;

/* What all devices do at once, along one or several axes. */
typedef struct
{
  PodStepKind kind;
  PodOperand operand;
  unsigned axes; /* mask */
  unsigned n_moves;
  PodAxisMove moves[POD_MAX_MESH_AXES]; /* in order */
  uint8_t before[POD_MAX_MESH_AXES];    /* permutation: the axes as they cut before */
  /* all-gather: the gathered buffer; the others: the buffer that each device begins with */
  double payload_bytes;
} PodShardStep;

typedef struct
{
  uint8_t
      loop_of_axis[POD_MAX_MESH_AXES]; /* what each axis cuts: a position in loops, POD_NO_LOOP */
  unsigned n_steps;
  unsigned n_before; /* steps before the product; the others follow it */
  PodShardStep steps[POD_MAX_STEPS];
  PodAxisList cut[POD_MAX_LOOPS]; /* of each loop */
  uint64_t local[POD_MAX_LOOPS];  /* extent of each loop on one device */
  uint64_t batch, m, n, k;        /* the local product, [m,k].[k,n] batch times */
  double flops;                   /* of one device */
  double argument_bytes;          /* of one device: the operands as they lie */
  double output_bytes;            /* the result as it should lie */
  double workspace_bytes; /* gathered operands, and the product where it is not the result yet */
} PodMatmulStrategy;

typedef struct
{
  const PodArrayMesh *mesh;
  const PodEinsum *einsum; /* with sizes and dtypes */
  unsigned n_loops;
  char loop[POD_MAX_LOOPS]; /* letters, as lhs and then rhs have them */
  uint64_t extent[POD_MAX_LOOPS];
  GArray *strategies; /* (owned) (element-type PodMatmulStrategy) */
  int by_cases;       /* what the four cases derive: a position in strategies, -1: they cannot */
  unsigned n_indivisible; /* choices left out because a loop does not divide */
  char *indivisible;      /* (owned) (nullable) one of them, with its numbers */
} PodMatmulStrategies;

/* What the user pins: "X=J,Y=none"; the axes that are not named stay free. Fills loop_of_axis-like
 * choices: -1 free, POD_NO_LOOP none. Errors INVALID. */
bool pod_matmul_parse_split (const PodEinsum *einsum, const PodArrayMesh *mesh, const char *text,
                             int pinned[POD_MAX_MESH_AXES], GError **error);

/* All strategies, in the order of a counter over the axes (the last runs fastest; none, then the
 * letters). Both arguments must outlive the result. @pinned (nullable). Errors: INFEASIBLE when
 * none is legal, LIMIT beyond POD_MAX_STRATEGIES. Returns: (transfer full). O(strategies x axes x
 * dimensions). */
PodMatmulStrategies *pod_matmul_strategies_new (const PodEinsum *einsum, const PodArrayMesh *mesh,
                                                const int *pinned, GError **error);
void pod_matmul_strategies_free (PodMatmulStrategies *strategies);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodMatmulStrategies, pod_matmul_strategies_free)

const PodArray *pod_matmul_operand (const PodMatmulStrategies *strategies, PodOperand operand);
/* Which of the four cases an axis is (see sharding.h), 1 when it cuts nothing; @out_why (transfer
 * full) says it in words. */
unsigned pod_matmul_case (const PodMatmulStrategies *strategies, unsigned axis, char **out_why);
/* "I_X J_Y" (loops that are cut), "replicated". Returns: (transfer full) */
char *pod_matmul_strategy_name (const PodMatmulStrategies *strategies,
                                const PodMatmulStrategy *strategy);
const char *pod_step_name (PodStepKind kind); /* "all_gather" */
