#pragma once

#include "parallel/transformer-private.h"

/* What an optimizer keeps and does besides the gradients' reduction. */

/* What an update waits for besides @after: clipping's norm of all gradients (each rank reads its @local_grads, and the sums of squares are
 * added up over every axis that shards them). Returns the op, @after where gradients are not clipped. */
uint32_t pod_optimizer_clip (PodEmitter *emitter, double local_grads, uint32_t after);
/* What a rank updates. */
typedef struct
{
  double params;   /* but for experts */
  double matrices; /* of these, in matrices (which Muon makes orthogonal) */
  double experts;  /* all matrices */
} PodUpdate;

/* Returns the update's op. */
uint32_t pod_optimizer_update (PodEmitter *emitter, const PodUpdate *what, uint32_t after);
