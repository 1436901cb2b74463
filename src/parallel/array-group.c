#include "parallel/array-mesh.h"

#include <stdlib.h>
#include <string.h>

/* Groups of devices along the axes of a mesh. */

/* Coordinates of all axes out of @mask, from the number of the group. */
static void
base_of (const PodArrayMesh *mesh, unsigned mask, uint32_t index,
         uint32_t coordinate[POD_MAX_MESH_AXES])
{
  for (unsigned a = 0; a < mesh->n_axes; a++)
    {
      coordinate[a] = mask >> a & 1 ? 0 : index % mesh->size[a];
      if (!(mask >> a & 1))
        index /= mesh->size[a];
    }
}

enum
{
  MAX_JOINED = POD_MAX_MESH_AXES * POD_MAX_FACTORS,
};

/* The factors of the axes in @mask by dim and stride, neighbours joined: x:2 and the x:2 around it
 * are a ring x:4. */
static unsigned
join_factors (const PodArrayMesh *mesh, unsigned mask, PodGroupFactor factors[MAX_JOINED])
{
  PodGroupFactor all[MAX_JOINED];
  unsigned n = 0, n_out = 0;

  for (unsigned a = 0; a < mesh->n_axes; a++)
    for (unsigned f = 0; mask >> a & 1 && f < mesh->placement[a].n_factors; f++)
      {
        PodGroupFactor factor = mesh->placement[a].factors[f];
        unsigned at = n++;

        for (; at > 0
               && (all[at - 1].dim > factor.dim
                   || (all[at - 1].dim == factor.dim && all[at - 1].stride > factor.stride));
             at--)
          all[at] = all[at - 1];
        all[at] = factor;
      }
  for (unsigned f = 0; f < n; f++)
    {
      PodGroupFactor *last = n_out > 0 ? &factors[n_out - 1] : NULL;

      if (last != NULL && last->dim == all[f].dim && last->stride * last->size == all[f].stride)
        last->size *= all[f].size;
      else
        factors[n_out++] = all[f];
    }
  return n_out;
}

static void
list_torus (const PodArrayMesh *mesh, unsigned mask, const uint32_t *coordinate, PodArrayGroup *out)
{
  PodGroupFactor joined[MAX_JOINED];
  unsigned base[POD_DIM_CORE + 1] = { 0 };
  unsigned n_joined = join_factors (mesh, mask, joined);

  for (unsigned a = 0; a < mesh->n_axes; a++)
    {
      uint32_t left = coordinate[a];

      for (unsigned f = 0; f < mesh->placement[a].n_factors; f++)
        {
          const PodGroupFactor *factor = &mesh->placement[a].factors[f];

          base[factor->dim] += left % factor->size * factor->stride;
          left /= factor->size;
        }
    }
  for (uint32_t i = 0; i < out->group.n_devices; i++)
    {
      unsigned at[POD_DIM_CORE + 1];
      uint32_t left = i;

      memcpy (at, base, sizeof at);
      for (unsigned f = 0; f < n_joined; f++)
        {
          at[joined[f].dim] += left % joined[f].size * joined[f].stride;
          left /= joined[f].size;
        }
      out->devices[i] = pod_topology_device (mesh->topology, at, at[POD_DIM_CORE]);
    }
  if (n_joined > POD_MAX_FACTORS) /* an arbitrary list then */
    return;
  out->group.n_factors = n_joined;
  memcpy (out->group.factors, joined, n_joined * sizeof *joined);
}

static int
compare_devices (const void *a, const void *b)
{
  uint32_t left = *(const uint32_t *) a, right = *(const uint32_t *) b;

  return (left > right) - (left < right);
}

static void
list_ranks (const PodArrayMesh *mesh, unsigned mask, const uint32_t *coordinate, PodArrayGroup *out)
{
  for (uint32_t i = 0; i < out->group.n_devices; i++)
    {
      uint32_t left = i;

      out->devices[i] = 0;
      for (unsigned a = 0; a < mesh->n_axes; a++)
        {
          uint32_t at = mask >> a & 1 ? left % mesh->size[a] : coordinate[a];

          if (mask >> a & 1)
            left /= mesh->size[a];
          out->devices[i] += at * mesh->stride[a];
        }
    }
  qsort (out->devices, out->group.n_devices, sizeof *out->devices, compare_devices);
}

void
pod_array_mesh_group (const PodArrayMesh *mesh, unsigned mask, uint32_t index, PodArrayGroup *out)
{
  uint32_t coordinate[POD_MAX_MESH_AXES];

  *out = (PodArrayGroup){ .group = { .n_devices = pod_array_mesh_size (mesh, mask) } };
  out->devices = g_new (uint32_t, out->group.n_devices);
  out->group.devices = out->devices;
  base_of (mesh, mask, index, coordinate);
  if (mesh->topology->fabric == POD_FABRIC_TORUS)
    list_torus (mesh, mask, coordinate, out);
  else
    list_ranks (mesh, mask, coordinate, out);
}

void
pod_array_group_clear (PodArrayGroup *group)
{
  g_clear_pointer (&group->devices, g_free);
}
