#include <string.h>

#include "base/error.h"
#include "scenario/result-private.h"

/* A layout said by --mesh and --shard becomes one said by --layout. */

static void
take_text (char **target, char *text)
{
  g_free (*target);
  *target = text;
}

/* --map or --order that names the mesh's axes, in the layout's. */
static bool
name_kinds (PodScenario *scenario, const PodMeshShardings *shardings, GError **error)
{
  const bool is_map
      = scenario->map != NULL && pod_mesh_shardings_is_placing (shardings, scenario->map);
  const bool is_order
      = scenario->order != NULL && pod_mesh_shardings_is_placing (shardings, scenario->order);
  g_autoptr (PodTopology) topology = NULL;
  g_autoptr (GPtrArray) told = g_ptr_array_new_with_free_func (g_free); /* by the run itself */
  char *text;

  if (!is_map && !is_order)
    return true;
  topology = pod_scenario_topology (scenario, told, error);
  if (topology == NULL)
    return false;
  text = pod_mesh_shardings_place (shardings, topology, is_map ? scenario->map : NULL,
                                   is_order ? scenario->order : NULL, error);
  if (text == NULL)
    {
      if (error != NULL && *error != NULL && !g_str_has_prefix ((*error)->message, "--"))
        g_prefix_error (error, "--mesh: ");
      return false;
    }
  take_text (is_map ? &scenario->map : &scenario->order, text);
  return true;
}

PodScenario *
pod_scenario_from_mesh (const PodScenario *scenario, PodMeshShardings *shardings,
                        GPtrArray *assumptions, GError **error)
{
  g_autoptr (PodScenario) out = pod_scenario_copy (scenario);
  g_autoptr (PodModel) model = NULL;
  g_autoptr (GPtrArray) told = g_ptr_array_new_with_free_func (g_free); /* by the run itself */
  PodMeshRequest request = { .mesh = scenario->mesh,
                             .shards = scenario->shard,
                             .placing = scenario->map != NULL ? scenario->map : scenario->order,
                             .is_sequence_parallel = scenario->sequence_parallel,
                             .zero_stage = scenario->zero <= 3 ? (unsigned) scenario->zero : 0 };

  if (scenario->layout != NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--%s: --layout says a layout too; right: one of both",
                   scenario->mesh->len > 0 ? "mesh" : "shard");
      return NULL;
    }
  model = pod_scenario_model (scenario, told, error);
  if (model == NULL)
    return NULL;
  request.model = model;
  if (!pod_mesh_shardings_parse (&request, shardings, error) || !name_kinds (out, shardings, error))
    return NULL;
  g_ptr_array_add (assumptions, pod_mesh_shardings_describe (shardings));
  take_text (&out->layout, pod_mesh_shardings_layout (shardings));
  if (shardings->says_sequence)
    out->sequence_parallel = shardings->layout.is_sequence_parallel;
  g_ptr_array_set_size (out->mesh, 0);
  g_ptr_array_set_size (out->shard, 0);
  return g_steal_pointer (&out);
}

void
pod_scenario_tell_mesh (const PodScenario *scenario, const PodMeshShardings *shardings,
                        GError **error)
{
  static const char layout[] = "--layout: ";
  static const char sequence[] = "--no-sequence-parallel: ";
  g_autofree char *tp
      = pod_array_mesh_mask_text (&shardings->mesh, shardings->of_kind[POD_AXIS_TP]);
  char *said;

  if (error == NULL || *error == NULL)
    return;
  if (g_str_has_prefix ((*error)->message, layout))
    said = g_strdup_printf ("--mesh: as layout \"%s\": %s", scenario->layout,
                            (*error)->message + strlen (layout));
  else if (g_str_has_prefix ((*error)->message, sequence) && shardings->says_sequence)
    said = g_strdup_printf ("--shard: In: its dimension S is not cut by %s: %s; right: S_%s", tp,
                            (*error)->message + strlen (sequence), tp);
  else
    return;
  g_free ((*error)->message);
  (*error)->message = said;
}
