#pragma once

#include "parallel/mesh.h"

/* A mesh with named axes, over which arrays are sharded: "X=4,Y=2". Other than a PodMesh its axes
 * mean nothing; they stand on the axes of a torus, or on ranks that are numbered. */

#define POD_MAX_MESH_AXES 6
#define POD_MAX_MESH_SIZE (UINT32_C (1) << 22)

typedef struct
{
  unsigned n_axes;
  char name[POD_MAX_MESH_AXES]; /* a capital letter */
  uint32_t size[POD_MAX_MESH_AXES];
  /* once placed: */
  const PodTopology *topology;                   /* (nullable) */
  PodAxisPlacement placement[POD_MAX_MESH_AXES]; /* tori */
  uint32_t stride[POD_MAX_MESH_AXES]; /* other machines: device = sum of coordinate x stride */
} PodArrayMesh;

/* Reads "X=4,Y=2". Errors INVALID: a name that is no capital letter or stands twice, a size of 0,
 * more axes than there may be; LIMIT: too many devices. */
bool pod_array_mesh_parse (const char *text, PodArrayMesh *out, GError **error);
/* Position of the axis, -1: none. */
int pod_array_mesh_find (const PodArrayMesh *mesh, char name);
/* Product of the sizes of the axes in @mask. */
uint32_t pod_array_mesh_size (const PodArrayMesh *mesh, unsigned mask);
/* The whole mesh. */
uint32_t pod_array_mesh_n_devices (const PodArrayMesh *mesh);
/* "X=4,Y=2". Returns: (transfer full) */
char *pod_array_mesh_to_text (const PodArrayMesh *mesh);
/* "XY". Returns: (transfer full) */
char *pod_array_mesh_mask_text (const PodArrayMesh *mesh, unsigned mask);

/* Puts the axes on the machine, which must outlive the mesh.
 * Tori: by @map ("X=x:2 Y=x,y,z": physical axes, innermost first), or else axis by axis onto x, y,
 * z, dcn, core where the sizes agree, in their order or another; or else filling the physical axes
 * one after the other. Other machines: by @order ("Y,X", innermost first), or else the last axis
 * innermost, as JAX numbers a mesh. Errors INVALID, INFEASIBLE: more devices than the machine has,
 * sizes that do not divide. O(axes!) for few axes. */
bool pod_array_mesh_place (PodArrayMesh *mesh, const PodTopology *topology, const char *map,
                           const char *order, GError **error);
/* How it is placed, as --map or --order would say it. Returns: (transfer full) */
char *pod_array_mesh_placement_text (const PodArrayMesh *mesh);

/* The devices that differ only in the axes of @mask: group @index of n_devices / size. Ring order:
 * innermost first. */
typedef struct
{
  PodGroup group;
  uint32_t *devices; /* (owned) what group.devices points to */
} PodArrayGroup;

void pod_array_mesh_group (const PodArrayMesh *mesh, unsigned mask, uint32_t index,
                           PodArrayGroup *out);
void pod_array_group_clear (PodArrayGroup *group);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodArrayGroup, pod_array_group_clear)
