#include <string.h>

#include "base/error.h"
#include "topology/chip-private.h"
#include "topology/topology-private.h"

/* The part of CHIP:SHAPE[,option[=value]]... behind the colon: SHAPE is AxBxC[t][*SLICES] on tori
 * and CHIPS[xNODES] on switched machines. */

static bool
parse_slices (PodTopologySpec *spec, const char *text, GError **error)
{
  unsigned slices[3];
  unsigned n_axes = 0;

  if (!pod_extent_parse (text, slices, &n_axes, error))
    return false;
  if (n_axes != 1)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "'*%s': behind the * stands the number of slices", text);
      return false;
    }
  spec->n_slices = slices[0];
  return true;
}

static bool
parse_torus (PodTopologySpec *spec, const PodChip *chip, const char *shape, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (shape, "*", 2);
  g_autofree char *axes = g_strdup (parts[0]);

  spec->fabric = POD_FABRIC_TORUS;
  spec->is_twisted = g_str_has_suffix (axes, "t");
  if (spec->is_twisted)
    axes[strlen (axes) - 1] = '\0';
  if (!pod_extent_parse (axes, spec->extent, &spec->n_axes, error)
      || (parts[1] != NULL && !parse_slices (spec, parts[1], error)))
    return false;
  /* 4x4x1 on a chip of two axes is 4x4: an axis of 1 chip has no link. */
  while (spec->n_axes > chip->torus_dims && spec->extent[spec->n_axes - 1] == 1)
    spec->n_axes--;
  return true;
}

static bool
parse_switched (PodTopologySpec *spec, const PodChip *chip, const char *shape, GError **error)
{
  unsigned counts[3];
  unsigned n_axes = 0;

  spec->fabric = POD_FABRIC_SWITCHED;
  if (strpbrk (shape, "*t") != NULL)
    {
      g_set_error (
          error, POD_ERROR, POD_ERROR_INVALID,
          "'%s': slices and twists are of TPUs; a %s machine is CHIPS_PER_NODExNODES, such as "
          "%s:%ux4",
          shape, chip->name, chip->name, chip->scale_up_chips);
      return false;
    }
  if (!pod_extent_parse (shape, counts, &n_axes, error))
    return false;
  if (n_axes == 3)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "'%s': a %s machine has two numbers, CHIPS_PER_NODExNODES, such as %s:%ux4",
                   shape, chip->name, chip->name, chip->scale_up_chips);
      return false;
    }
  spec->chips_per_node = counts[0];
  spec->n_nodes = counts[1];
  return true;
}

static bool
parse_extents (PodTopologySpec *spec, const PodChip *chip, const char *shape, GError **error)
{
  return chip->family == POD_FAMILY_TPU ? parse_torus (spec, chip, shape, error)
                                        : parse_switched (spec, chip, shape, error);
}

static bool
is_extent (const char *name)
{
  for (size_t i = 0; i < pod_topology_n_options; i++)
    if (strcmp (pod_topology_options[i].name, name) == 0)
      return pod_topology_options[i].is_extent;
  return false;
}

static bool
parse_options (PodTopologySpec *spec, char **options, GError **error)
{
  for (; *options != NULL; options++)
    {
      g_auto (GStrv) pair = g_strsplit (*options, "=", 2);
      const char *name = pair[0] != NULL ? g_strstrip (pair[0]) : "";
      const char *value = *name != '\0' && pair[1] != NULL ? g_strstrip (pair[1]) : NULL;

      if (is_extent (name))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: stands in the shape itself", name);
          return false;
        }
      if (!pod_topology_option_set (spec, name, value, error))
        return false;
    }
  return true;
}

PodTopologySpec *
pod_shape_parse (const char *text, const char *name, const PodChip *chip, GError **error)
{
  g_autoptr (PodTopologySpec) spec = pod_topology_spec_new ();
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);

  spec->name = g_strdup (name);
  if (parts[0] == NULL || *g_strstrip (parts[0]) == '\0')
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "the shape is empty: write %s",
                   chip->family == POD_FAMILY_TPU ? "axes, such as 4x4x8"
                                                  : "CHIPS_PER_NODExNODES, such as 8x4");
      return NULL;
    }
  if (!parse_extents (spec, chip, parts[0], error) || !parse_options (spec, parts + 1, error))
    return NULL;
  return g_steal_pointer (&spec);
}
