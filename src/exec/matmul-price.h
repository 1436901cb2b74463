#pragma once

#include "chip/kernel.h"
#include "collective/library.h"
#include "parallel/matmul-strategy.h"

/* What the strategies of a sharded matmul cost on a machine. */

typedef struct
{
  const PodShardStep *step;
  PodCollectiveKind kind;
  uint32_t n_ranks;     /* of one group */
  uint32_t n_groups;    /* that do it at once */
  double payload_bytes; /* of a group, as podsim collective counts it */
  double device_bytes;  /* that one device sends at least: (N-1)/N of the payload, twice that for an
                           all-reduce; all of it in a permutation */
  double time_s;
  double rate_s;           /* of it, by rates alone: grows with the payload */
  double contention_ratio; /* by what the other groups slow this one: 1 unless they share links */
  unsigned n_steps;
  char *algorithm; /* (owned) */
  char *explain;   /* (owned) */
} PodPricedStep;

typedef struct
{
  const PodMatmulStrategy *strategy;
  unsigned index; /* of the strategy */
  GPtrArray
      *steps; /* (owned) (element-type PodPricedStep) without the slices, which cost nothing */
  PodKernel kernel;
  PodKernelTime compute;
  double comm_s;
  double serial_s;     /* one after the other */
  double overlapped_s; /* collective matmul */
  unsigned n_pieces;   /* in which the overlap goes, 1: nothing to overlap */
  /* For each loop the size from which compute takes longer than communication, all other sizes and
   * all cuts as they are, by rates alone; INFINITY: no size is enough; 0: there is no
   * communication. */
  double critical[POD_MAX_LOOPS];
} PodPricedMatmul;

/* By what the collectives and the product are priced. */
typedef struct
{
  PodFidelity fidelity;
  PodDtype operand_dtype;    /* of the multiplication */
  const PodLibrary *library; /* (nullable) whose cost tables apply at fidelity calibrated */
  const char *algorithm;     /* (nullable) of every collective that it can do: "ring/ll128" */
} PodMatmulPricing;

void pod_priced_matmul_free (PodPricedMatmul *priced);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodPricedMatmul, pod_priced_matmul_free)

/* Prices all strategies on the machine that their mesh is placed on (and that they borrow from). A
 * group's collective takes the time of the group alone, stretched by the load that the other groups
 * put on its busiest links. Overlap: book max(compute, communication); else the collectives go in N
 * pieces (N the smallest group), each on the wires while another is multiplied: max(compute,
 * communication + compute/N), as all but one piece hides.
 * Errors: an unknown algorithm, or protocol. Returns: (transfer full) (element-type PodPricedMatmul) by
 * serial_s, ties as the strategies have them. O(strategies + distinct collectives x devices x
 * axes). */
GPtrArray *pod_matmul_price (const PodMatmulStrategies *strategies,
                             const PodMatmulPricing *pricing, GError **error);
