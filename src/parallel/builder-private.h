#pragma once

#include "parallel/program.h"

/* Builds blocks: ops are added in issue order, whatever their stream; closing the block sorts them by stream and turns
 * dependencies between ops into counts. */

/* Element types of what travels: a collective's follows from its stream and phase. */
typedef struct
{
  PodDtype values;  /* activations and their gradients */
  PodDtype weights; /* as kept and gathered */
  PodDtype grads;   /* of weights, as kept and reduced */
} PodWireDtypes;

typedef struct
{
  PodProgram *program;
  PodWireDtypes dtypes; /* bf16 unless set */
  GArray *ops;     /* PodOp of the open block */
  GArray *edges;   /* what waits for what */
  GArray *effects; /* buffers that come and go */
  GHashTable *joined; /* names of two parts by these, in the program's strings */
  const char *name;
  uint8_t chunk;   /* of ops to come */
  uint8_t slot;
} PodBuilder;

#define POD_NO_OP UINT32_MAX

void pod_builder_init (PodBuilder *builder, PodProgram *program);
void pod_builder_clear (PodBuilder *builder);

void pod_builder_open (PodBuilder *builder, const char *name);
/* Ops to come belong to this chunk of the stage and kind of slot. */
void pod_builder_part (PodBuilder *builder, uint8_t chunk, uint8_t slot);
/* Puts the ops from @second on between those before it, in turns that end with a collective which computing waits for; each half keeps
 * its order. */
void pod_builder_weave (PodBuilder *builder, uint32_t second);
/* "first second", or "second" where @first is NULL. Both are literals or names made here: the parts are known by their addresses. Returns:
 * (transfer none), the program's */
const char *pod_builder_join (PodBuilder *builder, const char *first, const char *second);
/* Adds an op; returns its handle in the open block. @name: a literal, or made by pod_builder_join; @layer, where not -1, is said before
 * it. has_detail: whether the kernel's shape is told. */
uint32_t pod_builder_compute (PodBuilder *builder, PodPhase phase, int32_t layer, const char *name, bool has_detail, const PodKernel *kernel);
uint32_t pod_builder_collective (PodBuilder *builder, PodPhase phase, int32_t layer, const char *name, PodStream stream, uint32_t comm,
                                 PodCollectiveKind kind, uint64_t bytes);
/* A copy of @bytes to the host's memory, or from it. */
uint32_t pod_builder_copy (PodBuilder *builder, PodPhase phase, int32_t layer, const char *name, bool is_to_host, double bytes);
/* Where an op's elements are of another type than its stream's. */
void pod_builder_set_dtype (PodBuilder *builder, uint32_t op, PodDtype dtype);
/* @op waits for @on (both of the open block; POD_NO_OP is fine). */
void pod_builder_depend (PodBuilder *builder, uint32_t op, uint32_t on);
/* @op waits for all tasks of @stream before this block but the last @but. */
void pod_builder_depend_before (PodBuilder *builder, uint32_t op, PodStream stream, int32_t but);
/* A buffer of @bytes appears when @op starts / vanishes when it ends. */
void pod_builder_alloc (PodBuilder *builder, uint32_t op, uint32_t label, double bytes);
void pod_builder_free_buffer (PodBuilder *builder, uint32_t op, uint32_t label, double bytes);
/* The open block's index. */
uint32_t pod_builder_close (PodBuilder *builder);

/* How much was said of the open block. */
typedef struct
{
  uint32_t n_ops;
  uint32_t n_edges;
  uint32_t n_effects;
} PodBuilderMark;

PodBuilderMark pod_builder_mark (const PodBuilder *builder);
/* Says again what was said since the mark @from, of ops that follow and of layers @n_layers further on; what it waited for before the mark,
 * it waits for as many ops later. Returns: how many ops. */
uint32_t pod_builder_repeat (PodBuilder *builder, PodBuilderMark from, int32_t n_layers);

/* What the ops of a block are in that of another stage. */
typedef struct
{
  int32_t n_layers;      /* further on in the model */
  uint8_t chunk;
  uint32_t comms[4][2];  /* the one's communicator, the other's; UINT32_MAX where there is none */
} PodOpTurn;

/* The block @of as one of another stage. Returns its index. */
uint32_t pod_builder_copy_block (PodBuilder *builder, uint32_t of, const char *name, const PodOpTurn *turn);
/* Index of a label, made when new. */
uint32_t pod_builder_label (PodBuilder *builder, const char *name, PodMemoryUse use);
uint32_t pod_builder_add_communicator (PodBuilder *builder, PodCommunicator *communicator);
