#pragma once

#include "parallel/einsum.h"
#include "parallel/layout.h"

/* A layout said the way of JAX: a mesh with named axes, and which of them cut which dimension of
 * which tensor ("W_in=[D_X, F_Y]"). What an axis cuts decides which parallelism it is:
 *
 *   the batch alone                                     dp
 *   the batch and weights                               fsdp
 *   heads, the FFN's width or the vocabulary of weights   tp; and tokens between them, which then
 *                                                         are sequence parallel
 *   the sequence                                        cp
 *   layers                                              pp
 *
 * The experts' tensor is cut by the same axes: those on E are ep, those of tp (or of dp) on F etp.
 * Tensors that are not said are cut by the same rule; what is said must agree with it. */

typedef enum
{
  POD_MESH_IN, /* the residual stream between blocks */
  POD_MESH_W_IN,
  POD_MESH_W_GATE,
  POD_MESH_W_UP,
  POD_MESH_W_OUT,
  POD_MESH_WQ,
  POD_MESH_WK,
  POD_MESH_WV,
  POD_MESH_WO,
  POD_MESH_EMBEDDING,
  POD_MESH_UNEMBEDDING,
  POD_MESH_W_EXPERT,
  POD_N_MESH_TENSORS
} PodMeshTensor;

/* What is said beside the tensors. */
typedef struct
{
  const PodModel *model;
  const GPtrArray *mesh;    /* (element-type utf8) "X=4,Y=8"; more than one follow one another */
  const GPtrArray *shards;  /* (element-type utf8) "W_in=[D_X, F_Y]", several separated by ';' */
  const char *placing;      /* (nullable) --map or --order, for the nesting of axes of one kind */
  int is_sequence_parallel; /* -1: not said */
  unsigned zero_stage;      /* 3: what cuts the batch cuts weights; 1, 2: dp cuts gradients */
} PodMeshRequest;

typedef struct
{
  PodArrayMesh mesh;
  bool is_said[POD_N_MESH_TENSORS];
  PodArray said[POD_N_MESH_TENSORS];
  PodAxis kind[POD_MAX_MESH_AXES]; /* of axes of more than one device */
  unsigned of_kind[POD_N_AXES];    /* masks of these */
  unsigned used;                   /* mask of all of these */
  unsigned ep_axes;
  unsigned etp_axes;
  unsigned expert_fsdp_axes;       /* over which the copies of an expert are sharded */
  uint8_t nest[POD_MAX_MESH_AXES]; /* axes as ranks are numbered, innermost first */
  bool says_sequence;              /* layout.is_sequence_parallel follows from In */
  PodLayout layout; /* degrees, ep, etp, is_sequence_parallel; the rest as pod_layout_parse does */
} PodMeshShardings;

/* Reads a mesh and its tensors, and finds their layout. Errors begin with the option and name the
 * tensor, its dimension and the axis. INVALID: what cannot be read, contradicts itself, or is no
 * tensor of the model; UNSUPPORTED: shardings that no layout has, with what would be right;
 * INFEASIBLE: a dimension that its axes do not divide. O(tensors x axes). */
bool pod_mesh_shardings_parse (const PodMeshRequest *request, PodMeshShardings *out,
                               GError **error);
/* "fsdp=4 tp=8", as pod_layout_parse reads it. Returns: (transfer full) */
char *pod_mesh_shardings_layout (const PodMeshShardings *shardings);
/* "mesh X=4,Y=8: X is fsdp, Y is tp; tokens …". Returns: (transfer full) */
char *pod_mesh_shardings_describe (const PodMeshShardings *shardings);

/* --map or --order in names of the mesh? Others name kinds of parallelism. */
bool pod_mesh_shardings_is_placing (const PodMeshShardings *shardings, const char *text);
/* The same in kinds: "X=x:4 Y=x:4,y" becomes "tp=x:4 fsdp=x:4,y", "Y,X" becomes "tp,fsdp". One of
 * both is NULL. Errors as pod_array_mesh_place; UNSUPPORTED: axes of one kind with another between.
 * Returns: (transfer full) */
char *pod_mesh_shardings_place (const PodMeshShardings *shardings, const PodTopology *topology,
                                const char *map, const char *order, GError **error);

/* One product of a layer's step, and what its shardings ask for. */
typedef struct
{
  char *name; /* "W_in", "W_in dX", "W_in dW" */
  PodArray lhs;
  PodArray rhs;
  PodArray out;
  PodShardedMatmul comm;
} PodMeshMatmul;

/* The products of a layer with each of the model's weights, forward and backward, and of the head:
 * their collectives by the four cases (sharding.h). Returns: (transfer full) (element-type
 * PodMeshMatmul). O(weights x axes). */
GArray *pod_mesh_shardings_matmuls (const PodMeshShardings *shardings, const PodModel *model);
/* Which of the four cases an axis is in. */
unsigned pod_mesh_matmul_case (const PodMeshMatmul *matmul, unsigned axis);
/* They as text, a row each. Returns: (transfer full) */
char *pod_mesh_shardings_explain (const PodMeshShardings *shardings, const PodModel *model);
