#pragma once

#include "parallel/matmul-strategy.h"

/* From one way for an array to lie to another, by slices and collectives (reshard.c). */

/* How an array lies. */
typedef struct
{
  PodAxisList cut[POD_MAX_TENSOR_DIMS];
  unsigned partial; /* axes over which it is a sum of parts */
} PodLie;

/* A change; its steps are added to those of the strategy. */
typedef struct
{
  const PodArrayMesh *mesh;
  const PodArray *array;
  PodOperand operand;
  PodLie now;
  PodLie wanted;
  PodMatmulStrategy *strategy; /* whose steps grow */
} PodReshard;

/* Axes at the outer end that both have. */
unsigned pod_axis_list_common (const PodAxisList *a, const PodAxisList *b);
void pod_axis_list_push (PodAxisList *list, unsigned axis);
/* An axis of one device cuts nothing. */
PodAxisList pod_axis_list_without_single (const PodAxisList *list, const PodArrayMesh *mesh);

PodLie pod_lie_of (const PodArray *array, const PodArrayMesh *mesh);
/* On one device. */
double pod_lie_bytes (const PodArray *array, const PodLie *lie, const PodArrayMesh *mesh);

/* Brings now to wanted. Slices first, then what makes the array smaller, then what it keeps in
 * order, gathers last. O(axes^2 x
 * dimensions). */
void pod_reshard (PodReshard *reshard);
