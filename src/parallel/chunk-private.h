#pragma once

#include "parallel/schedule.h"
#include "parallel/transformer-private.h"

/* One part of the model on one rank of the pipeline, and the blocks that slots of the schedule run. */

#define POD_NO_BLOCK UINT32_MAX

/* Where a slot stands among those of its chunk that are of its kind, forward or weight gradients: bits. */
enum
{
  POD_EDGE_FIRST = 1, /* weights are gathered ahead of the first forward where FSDP does that once a step */
  POD_EDGE_LAST = 2,  /* no gradient of this chunk comes after it: they are reduced behind it */
  POD_N_EDGES = 4
};

/* Gradients that wait until there are enough of them to reduce. */
typedef struct
{
  double bytes;
  uint32_t after; /* op that made the last of them */
} PodBucket;

typedef struct
{
  PodEmitter *emitter;
  char *name;              /* "stage 0", "stage 0 chunk 1" */
  uint8_t index;           /* of the rank's chunks */
  GArray *units;           /* PodUnitPlan */
  uint32_t recv_act, send_act, recv_grad, send_grad; /* communicators; POD_NO_COMM at the model's ends and where the neighbour is near */
  uint32_t copy_comm;      /* with the rank that holds the other copy of this part (two-way schedules) */
  bool is_back;            /* activations go down the ranks: streams of their own, for the order of those that go up is another */
  bool has_near_input;     /* the part before is on this rank */
  int32_t n_tail_ops;      /* compute ops of the unit that ends a forward block */
  PodBucket buckets[2]; /* while a block is made: of dense weights, of experts */
  uint32_t blocks[POD_N_SLOTS][POD_N_EDGES]; /* made when first asked for */
} PodChunk;

static inline const PodUnitPlan *
pod_chunk_unit (const PodChunk *chunk, guint index)
{
  return &g_array_index (chunk->units, PodUnitPlan, index);
}

/* The block of a slot at @edge. */
uint32_t pod_chunk_block (PodChunk *chunk, PodSlotKind kind, unsigned edge);
/* The same as a copy of @block, that slot's of @like, whose units and neighbours are of the same kind. */
uint32_t pod_chunk_block_like (const PodChunk *chunk, const PodChunk *like, uint32_t block, PodSlotKind kind, unsigned edge);
/* A forward of @forward and a backward of @backward in one block, in turns, so that each computes while the other communicates. */
uint32_t pod_chunk_pair (PodChunk *forward, unsigned forward_edge, PodChunk *backward, unsigned backward_edge);
/* Sets n_tail_ops, once units and communicators are there; @alike: (nullable) one that has been set, with equal units. */
void pod_chunk_init (PodChunk *chunk, const PodChunk *alike);

/* ---- chunk-repeat.c ---- */
/* Where a pass over the units of a chunk stands before one of them: all that decides, with the unit's plan, which ops it gets. */
typedef struct
{
  PodBuilderMark mark;
  uint32_t value;
  PodBucket buckets[2];
} PodStanding;

PodStanding pod_chunk_stand (const PodChunk *chunk, uint32_t value);
/* Whether backward comes to the unit at @index first of those that are run again together with it. */
bool pod_chunk_is_run_again (const PodChunk *chunk, guint index);
/* Whether the unit at @index gets the ops of the one before it once more: layers of equal plans, all that they can wait for one unit's ops apart,
 * and neither at an end of the chunk. @last_of: last op of each unit so far; @step: 1 forward, -1 backward. */
bool pod_chunk_is_repeated (const PodChunk *chunk, guint index, int step, const PodStanding *before, const PodStanding *now, const GArray *last_of);
/* Ops of the unit before, for the one at @index. @last: that one's pass; becomes this one's. */
void pod_chunk_repeat (PodChunk *chunk, guint index, const PodStanding *before, PodPass *last);
