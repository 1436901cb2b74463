#include "parallel/mesh-shardings.h"

#include <string.h>

#include "base/error.h"
#include "parallel/mesh-tensors-private.h"
#include "parallel/placement-private.h"

/* --map and --order in names of a mesh's axes become those in names of parallelisms. */

int
pod_mesh_said_place (const char *placing, char name)
{
  g_auto (GStrv) words = g_strsplit_set (placing != NULL ? placing : "", " \t\n,", -1);

  for (int i = 0; words[i] != NULL; i++)
    if (words[i][0] == name && (words[i][1] == '\0' || words[i][1] == '='))
      return i;
  return -1;
}

bool
pod_mesh_shardings_is_placing (const PodMeshShardings *shardings, const char *text)
{
  for (unsigned a = 0; a < shardings->mesh.n_axes; a++)
    if (pod_mesh_said_place (text, shardings->mesh.name[a]) >= 0)
      return true;
  return false;
}

/* Innermost first, one after the other: factors that go on where the last ends are one. */
static bool
join_factors (const PodMeshShardings *s, const PodArrayMesh *mesh, PodAxis kind,
              PodAxisPlacement *out)
{
  for (unsigned i = 0; i < mesh->n_axes; i++)
    for (unsigned f = 0;
         s->of_kind[kind] >> s->nest[i] & 1 && f < mesh->placement[s->nest[i]].n_factors; f++)
      {
        const PodGroupFactor *factor = &mesh->placement[s->nest[i]].factors[f];
        PodGroupFactor *last = out->n_factors > 0 ? &out->factors[out->n_factors - 1] : NULL;

        if (last != NULL && last->dim == factor->dim && last->stride * last->size == factor->stride)
          last->size *= factor->size;
        else if (out->n_factors == POD_MAX_FACTORS)
          return false;
        else
          out->factors[out->n_factors++] = *factor;
      }
  return true;
}

static bool
refuse_placing (const PodMeshShardings *s, const char *option, const char *text, GError **error)
{
  g_autofree char *layout = pod_mesh_shardings_layout (s);

  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
               "--%s: %s: axes of the mesh that are one of %s must follow one another, with no "
               "other between them",
               option, text, layout);
  return false;
}

/* The next kind whose factors begin where what is taken ends, POD_N_AXES: none. */
static PodAxis
next_placed (const PodAxisPlacement placement[POD_N_AXES], unsigned told,
             uint32_t taken[POD_DIM_CORE + 1])
{
  for (unsigned a = 0; a < POD_N_AXES; a++)
    {
      uint32_t after[POD_DIM_CORE + 1];
      unsigned f = 0;

      memcpy (after, taken, sizeof after);
      for (; f < placement[a].n_factors; f++)
        {
          const PodGroupFactor *factor = &placement[a].factors[f];

          if (factor->stride != after[factor->dim])
            break;
          after[factor->dim] *= factor->size;
        }
      if (told >> a & 1 || f < placement[a].n_factors)
        continue;
      memcpy (taken, after, sizeof after);
      return a;
    }
  return POD_N_AXES;
}

static char *
torus_text (const PodMeshShardings *s, const PodArrayMesh *mesh, const char *map, GError **error)
{
  PodAxisPlacement placement[POD_N_AXES] = { 0 };
  uint32_t taken[POD_DIM_CORE + 1];
  unsigned told = 0;

  for (unsigned a = 0; a < POD_N_AXES; a++)
    if (!join_factors (s, mesh, a, &placement[a]))
      {
        refuse_placing (s, "map", map, error);
        return NULL;
      }
  for (unsigned d = 0; d <= POD_DIM_CORE; d++)
    taken[d] = 1;
  for (unsigned n = 0; n < POD_N_AXES; n++)
    {
      const PodAxis axis = next_placed (placement, told, taken);

      if (axis == POD_N_AXES)
        {
          refuse_placing (s, "map", map, error);
          return NULL;
        }
      told |= 1U << axis;
    }
  return pod_placement_to_text (mesh->topology, placement);
}

/* By stride; axes of one kind are nested as they stand in the words. */
static char *
order_text (const PodMeshShardings *s, const PodArrayMesh *mesh, const char *order, GError **error)
{
  GString *text = g_string_new (NULL);
  unsigned told = 0;
  unsigned kinds = 0;
  int last = -1;

  while (told != s->used)
    {
      unsigned next = mesh->n_axes;

      for (unsigned a = 0; a < mesh->n_axes; a++)
        if (s->used >> a & 1 && !(told >> a & 1)
            && (next == mesh->n_axes || mesh->stride[a] < mesh->stride[next]))
          next = a;
      told |= 1U << next;
      if ((int) s->kind[next] == last)
        continue;
      last = (int) s->kind[next];
      if (kinds >> last & 1)
        {
          g_string_free (text, TRUE);
          refuse_placing (s, "order", order, error);
          return NULL;
        }
      kinds |= 1U << last;
      g_string_append_printf (text, "%s%s", text->len > 0 ? "," : "", pod_axis_name ((PodAxis) last));
    }
  if (text->len == 0) /* one device */
    g_string_append (text, pod_axis_name (POD_AXIS_DP));
  return g_string_free (text, FALSE);
}

char *
pod_mesh_shardings_place (const PodMeshShardings *shardings, const PodTopology *topology,
                          const char *map, const char *order, GError **error)
{
  PodArrayMesh mesh = shardings->mesh;

  if (!pod_array_mesh_place (&mesh, topology, map, order, error))
    return NULL;
  return map != NULL ? torus_text (shardings, &mesh, map, error)
                     : order_text (shardings, &mesh, order, error);
}
