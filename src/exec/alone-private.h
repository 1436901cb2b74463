#pragma once

#include "exec/exec-private.h"

/* What collectives of a program take alone on the machine. Groups that a shift of the machine carries into one another take the same: each is
 * priced once. */
typedef struct PodAlone PodAlone;

/* Where a group is: of all groups that do the same there and elsewhere, the first that was asked for. */
typedef struct
{
  uint32_t comm;
  uint32_t group;
} PodPlace;

/* @software: of the request, borrowed as it is. */
PodAlone *pod_alone_new (const PodExecRequest *request, const PodStepSoftware *software);
void pod_alone_free (PodAlone *alone);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodAlone, pod_alone_free)

/* The place of the group of communicator @comm that @rank is in. O(places x members) the first time */
PodPlace pod_alone_place (PodAlone *alone, uint32_t comm, uint32_t rank);
/* Picoseconds of the op's collective over the ranks of communicator @comm that @rank is among. Errors as those of its plan. */
bool pod_alone_time (PodAlone *alone, const PodOp *op, uint32_t comm, uint32_t rank, double *out_ps, GError **error);
