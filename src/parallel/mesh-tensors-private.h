#pragma once

#include "parallel/mesh-shardings.h"

/* The tensors of a Transformer that --shard names, and what may cut them. */

typedef struct
{
  const char *name;
  const char *dims;     /* letters, in the order in which they are printed */
  const char *optional; /* those that may be left out */
  char tp;              /* the dimension that tp cuts; 0: In, whose tokens it cuts */
  bool is_weight;
} PodMeshRole;

extern const PodMeshRole pod_mesh_roles[POD_N_MESH_TENSORS];

/* Reads "W_in=[D_X, F_Y]; …" into @out. Errors begin with "--shard: ". */
bool pod_mesh_tensors_parse (const char *text, const PodModel *model, PodMeshShardings *out,
                             GError **error);
/* The dimension of the tensor that @axis cuts, 0: none. */
char pod_array_cut_by (const PodArray *array, unsigned axis);
/* Mask of the axes that cut a dimension of the tensor; 0 where it has no such dimension. */
unsigned pod_array_axes_of (const PodArray *array, char dim);
/* Every dimension of a tensor that was said must divide over its axes. INFEASIBLE otherwise. */
bool pod_mesh_tensors_check_sizes (const PodMeshShardings *shardings, const PodModel *model,
                                   GError **error);
/* How the layout cuts a tensor. */
PodArray pod_mesh_tensor (const PodMeshShardings *shardings, const PodModel *model,
                          PodMeshTensor tensor);
/* An array of these dimensions, not cut. */
PodArray pod_array_of (const char *name, const char *dims);
/* Cuts dimension @dim by the axes of @mask, the outermost first. */
void pod_mesh_cut (const PodMeshShardings *shardings, PodArray *array, char dim, unsigned mask);
/* "W_in=[D_X, F_Y]". Returns: (transfer full) */
char *pod_mesh_array_to_text (const PodMeshShardings *shardings, const PodArray *array);
/* Ranks over which the KV heads of a layer are cut where tp has more of them. */
uint32_t pod_mesh_kv_parts (const PodMeshShardings *shardings, const PodModel *model);
/* The axes of tp that cut KV heads: where there are fewer heads than ranks the outermost, and all
 * (each head repeated) where no outermost ones have as many ranks as there are heads. */
unsigned pod_mesh_kv_axes (const PodMeshShardings *shardings, const PodModel *model);
/* The place of an axis in "X=x:2 Y=x,y" or "Y,X", -1: it is not there. */
int pod_mesh_said_place (const char *placing, char name);
