#include "topology/topology.h"

#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "topology/topology-private.h"

/* -- building ---------------------------------------------------------------------------------- */

void
pod_topology_free (PodTopology *topology)
{
  if (topology == NULL)
    return;
  g_free (topology->name);
  pod_chip_free (topology->chip);
  g_clear_pointer (&topology->assumptions, g_ptr_array_unref);
  g_free (topology->links);
  g_free (topology->background_bytes_per_s);
  pod_graph_routes_free (topology->routes);
  pod_topology_spec_free (topology->spec);
  g_free (topology);
}

static bool
fill (PodTopology *topology, GError **error)
{
  switch (topology->fabric)
    {
    case POD_FABRIC_TORUS:
      return pod_torus_build (topology, error);
    case POD_FABRIC_SWITCHED:
      return pod_switched_build (topology, error);
    case POD_FABRIC_GRAPH:
      return pod_graph_build (topology, error);
    default:
      g_assert_not_reached ();
    }
}

/* The fabric must be one that the chip can have. */
static bool
check_fabric (const PodTopology *topology, GError **error)
{
  bool is_tpu = topology->chip->family == POD_FAMILY_TPU;

  if (topology->fabric == POD_FABRIC_GRAPH || (topology->fabric == POD_FABRIC_TORUS) == is_tpu)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "%s chips make a %s", topology->chip->name,
               is_tpu ? "torus: describe it with <torus>"
                      : "switched machine: describe it with <switched>");
  return false;
}

PodTopology *
pod_topology_build (PodTopologySpec *spec, PodChip *chip, GPtrArray *assumptions, GError **error)
{
  g_autoptr (PodTopology) topology = g_new0 (PodTopology, 1);

  topology->spec = spec;
  topology->chip = chip;
  topology->name = g_strdup (spec->name);
  topology->fabric = spec->fabric;
  topology->assumptions = g_ptr_array_new_with_free_func (g_free);
  for (unsigned i = 0; i < assumptions->len; i++)
    g_ptr_array_add (topology->assumptions, g_strdup (g_ptr_array_index (assumptions, i)));
  for (unsigned i = 0; i < spec->notes->len; i++)
    g_ptr_array_add (topology->assumptions, g_strdup (g_ptr_array_index (spec->notes, i)));
  for (unsigned axis = 0; axis < 3; axis++)
    topology->extent[axis] = 1;
  if (!check_fabric (topology, error) || !fill (topology, error))
    {
      g_prefix_error (error, "%s: ", spec->location != NULL ? spec->location : spec->name);
      return NULL;
    }
  return g_steal_pointer (&topology);
}

/* -- loading ----------------------------------------------------------------------------------- */

/* The chip of a machine file, first looked for beside it. Returns: (transfer full) (nullable) */
static PodChip *
load_chip_beside (const char *chip, const char *file, GPtrArray *assumptions, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (file);
  g_autofree char *beside = g_build_filename (folder, chip, NULL);
  bool is_relative_file = g_str_has_suffix (chip, ".xml") && !g_path_is_absolute (chip);

  return pod_chip_load (is_relative_file && g_file_test (beside, G_FILE_TEST_IS_REGULAR) ? beside
                                                                                         : chip,
                        assumptions, error);
}

bool
pod_topology_spec_set_chip (PodChip *chip, const PodTopologySpec *spec, GError **error)
{
  for (unsigned i = 0; i < spec->chip_sets->len; i++)
    {
      g_auto (GStrv) pair = g_strsplit (g_ptr_array_index (spec->chip_sets, i), "=", 2);
      if (!pod_chip_set (chip, pair[0], pair[1], error))
        return false;
    }
  return true;
}

static PodTopology *
load_file (const char *file, GError **error)
{
  g_autoptr (GPtrArray) assumptions = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (PodTopologySpec) spec = pod_topology_xml_read (file, error);

  if (spec == NULL)
    return NULL;
  g_autoptr (PodChip) chip = load_chip_beside (spec->chip, file, assumptions, error);
  if (chip == NULL || !pod_topology_spec_set_chip (chip, spec, error))
    {
      g_prefix_error (error, "%s: ", file);
      return NULL;
    }
  return pod_topology_build (g_steal_pointer (&spec), g_steal_pointer (&chip), assumptions, error);
}

static PodTopology *
load_shape (const char *text, const char *colon, GError **error)
{
  g_autoptr (GPtrArray) assumptions = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *name = g_strstrip (g_strndup (text, (size_t) (colon - text)));

  if (*name == '\0')
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "'%s': a chip stands before the colon, such as tpu-v5p:4x4x8 or h100:8x4", text);
      return NULL;
    }
  g_autoptr (PodChip) chip = pod_chip_load (name, assumptions, error);
  if (chip == NULL)
    return NULL;
  g_autoptr (PodTopologySpec) spec = pod_shape_parse (colon + 1, text, chip, error);
  if (spec == NULL)
    {
      g_prefix_error (error, "%s: ", text);
      return NULL;
    }
  spec->chip = g_strdup (name);
  return pod_topology_build (g_steal_pointer (&spec), g_steal_pointer (&chip), assumptions, error);
}

static void
set_unknown (const char *text, GError **error)
{
  g_autoptr (GPtrArray) machines = pod_data_list ("topologies", ".xml");
  g_autoptr (GPtrArray) chips = pod_chip_names ();
  g_autofree char *lower = g_ascii_strdown (text, -1);
  const char *machine = pod_data_nearest (machines, lower);
  bool is_chip = false;

  for (unsigned i = 0; i < chips->len; i++)
    is_chip = is_chip || strcmp (g_ptr_array_index (chips, i), lower) == 0;
  if (is_chip)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                 "'%s' is a chip, not a machine: write %s:SHAPE, such as %s:%s", text, lower, lower,
                 g_str_has_prefix (lower, "tpu") ? "4x4" : "8x4");
  else if (machine != NULL)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "unknown topology '%s', did you mean '%s'?",
                 text, machine);
  else
    g_set_error (
        error, POD_ERROR, POD_ERROR_INVALID,
        "unknown topology '%s': it is a file, the name of one in topologies/, or CHIP:SHAPE such "
        "as tpu-v5p:4x4x8 or h100:8x4",
        text);
}

PodTopology *
pod_topology_load (const char *text, GError **error)
{
  g_return_val_if_fail (text != NULL, NULL);

  g_autofree char *file = pod_data_find ("topologies", text, ".xml");
  if (file != NULL)
    return load_file (file, error);
  /* The chip may be a path with a colon; a shape has none but in a ratio (oversub=7:1), behind a
   * comma. */
  g_autofree char *head = g_strndup (text, strcspn (text, ","));
  const char *colon = strrchr (head, ':');
  if (colon != NULL)
    return load_shape (text, text + (colon - head), error);
  set_unknown (text, error);
  return NULL;
}

/* -- changing ---------------------------------------------------------------------------------- */

/* Moves what was built anew into @topology, which keeps its address. */
static void
replace (PodTopology *topology, PodTopology *built)
{
  PodTopology old = *topology;

  *topology = *built;
  *built = old;
  pod_topology_free (built);
}

static bool
rebuild (PodTopology *topology, PodTopologySpec *changed, GError **error)
{
  g_autoptr (PodTopologySpec) spec = changed;
  g_autoptr (GPtrArray) assumptions = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (PodChip) chip = pod_chip_load (topology->chip->file, assumptions, error);

  if (chip == NULL || !pod_topology_spec_set_chip (chip, spec, error))
    return false;
  PodTopology *built
      = pod_topology_build (g_steal_pointer (&spec), g_steal_pointer (&chip), assumptions, error);
  if (built == NULL)
    return false;
  replace (topology, built);
  return true;
}

bool
pod_topology_set (PodTopology *topology, const char *path, const char *value, GError **error)
{
  g_return_val_if_fail (topology != NULL && path != NULL && value != NULL, false);

  g_autoptr (PodTopologySpec) spec = pod_topology_spec_copy (topology->spec);
  if (g_str_has_prefix (path, "chip."))
    {
      const char *field = path + strlen ("chip.");
      g_autofree char *before = pod_chip_get (topology->chip, field);
      if (before == NULL)
        return pod_chip_set (topology->chip, field, value, error); /* sets the error */
      g_ptr_array_add (spec->chip_sets, g_strdup_printf ("%s=%s", field, value));
    }
  else if (g_str_has_prefix (path, "topology."))
    {
      if (!pod_topology_option_set (spec, path + strlen ("topology."), value, error))
        return false;
    }
  else
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "no path '%s': a machine's begin with chip. or topology.", path);
      return false;
    }
  return rebuild (topology, g_steal_pointer (&spec), error);
}

/* -- links and routes -------------------------------------------------------------------------- */

void
pod_topology_link (const PodTopology *topology, uint32_t id, PodLink *out)
{
  g_return_if_fail (topology != NULL && id < topology->n_links);

  switch (topology->fabric)
    {
    case POD_FABRIC_TORUS:
      pod_torus_link (topology, id, out);
      break;
    case POD_FABRIC_SWITCHED:
      pod_switched_link (topology, id, out);
      break;
    case POD_FABRIC_GRAPH:
      *out = topology->links[id];
      break;
    default:
      g_assert_not_reached ();
    }
}

bool
pod_topology_link_is_slack (const PodTopology *topology, uint32_t id)
{
  const unsigned class = pod_topology_link_class (topology, id);

  return topology->fabric == POD_FABRIC_SWITCHED && topology->background_bytes_per_s == NULL && class != POD_NO_LINK_CLASS
         && class >= POD_LINK_CLASS_TREE && topology->level[class - POD_LINK_CLASS_TREE].oversubscription <= 1;
}

unsigned
pod_topology_link_class (const PodTopology *topology, uint32_t id)
{
  unsigned level = 0;

  if (topology->fabric == POD_FABRIC_GRAPH)
    return POD_NO_LINK_CLASS;
  if (id < topology->first_nic_link)
    return POD_LINK_CLASS_SHORT;
  if (id < topology->first_die_link)
    return POD_LINK_CLASS_NIC;
  if (topology->n_levels < 2 || id < topology->first_tree_link[0])
    return POD_LINK_CLASS_DIE;
  while (level + 2 < topology->n_levels && id >= topology->first_tree_link[level + 1])
    level++;
  return POD_LINK_CLASS_TREE + level;
}

bool
pod_topology_die_link (const PodTopology *topology, uint32_t device, uint32_t *out_link,
                       uint32_t *out_to)
{
  g_return_val_if_fail (device < topology->n_devices, false);

  if (topology->fabric == POD_FABRIC_GRAPH || topology->chip->devices_per_chip != 2)
    return false;
  if (out_link != NULL)
    *out_link = topology->first_die_link + device;
  if (out_to != NULL)
    *out_to = device ^ 1;
  return true;
}

bool
pod_topology_route (const PodTopology *topology, uint32_t from, uint32_t to, GArray *links)
{
  g_return_val_if_fail (from < topology->n_devices && to < topology->n_devices, false);

  if (from == to)
    return true;
  if (topology->fabric == POD_FABRIC_GRAPH)
    return pod_graph_route (topology, from, to, links);
  unsigned per_chip = topology->chip->devices_per_chip;
  uint32_t from_chip = from / per_chip;
  uint32_t to_chip = to / per_chip;
  bool is_routed = from_chip == to_chip
                   || (topology->fabric == POD_FABRIC_TORUS
                           ? pod_torus_route (topology, from_chip, to_chip, links)
                           : pod_switched_route (topology, from_chip, to_chip, links));
  if (is_routed && from % per_chip != to % per_chip)
    pod_links_append (links, topology->first_die_link + (to ^ 1));
  return is_routed;
}

bool
pod_topology_nic_links (const PodTopology *topology, uint32_t device, uint32_t *out_up,
                        uint32_t *out_down)
{
  g_return_val_if_fail (device < topology->n_devices, false);

  if (topology->fabric == POD_FABRIC_GRAPH || topology->n_levels == 0)
    return false;
  uint32_t chip = device / topology->chip->devices_per_chip;
  if (out_up != NULL)
    *out_up = topology->first_nic_link + 2 * chip;
  if (out_down != NULL)
    *out_down = topology->first_nic_link + 2 * chip + 1;
  return true;
}

unsigned
pod_topology_node_of (const PodTopology *topology, uint32_t device)
{
  g_return_val_if_fail (device < topology->n_devices, 0);

  if (topology->fabric == POD_FABRIC_GRAPH)
    return pod_graph_island_of (topology, device);
  return device / topology->chip->devices_per_chip / topology->chips_per_node;
}

/* Hosts of a slice are numbered like chips, x fastest. */
static unsigned
torus_host_of (const PodTopology *topology, uint32_t device)
{
  unsigned coords[POD_MAX_DIMS];
  unsigned host = 0;

  pod_topology_coords (topology, device, coords);
  for (unsigned axis = 3; axis-- > 0;)
    {
      unsigned block = topology->host_extent[axis];
      unsigned n_blocks = (topology->extent[axis] + block - 1) / block;
      host = host * n_blocks + coords[axis] / block;
    }
  return host + coords[3] * (topology->n_hosts / topology->n_slices);
}

unsigned
pod_topology_host_of (const PodTopology *topology, uint32_t device)
{
  g_return_val_if_fail (device < topology->n_devices, 0);

  if (topology->fabric == POD_FABRIC_TORUS)
    return torus_host_of (topology, device);
  if (topology->fabric == POD_FABRIC_GRAPH)
    return pod_graph_island_of (topology, device);
  uint32_t chip = device / topology->chip->devices_per_chip;
  return chip / topology->chips_per_node * (topology->n_hosts / topology->n_nodes)
         + chip % topology->chips_per_node / topology->chip->chips_per_host;
}

/* -- facts ------------------------------------------------------------------------------------- */

unsigned
pod_topology_count_links (const PodTopology *topology, PodLinkKind kind)
{
  g_return_val_if_fail (topology != NULL, 0);

  if (topology->fabric == POD_FABRIC_GRAPH)
    return kind == POD_LINK_EXPLICIT ? topology->n_links : 0;
  if (kind == POD_LINK_ICI)
    return topology->fabric == POD_FABRIC_TORUS ? pod_torus_count_links (topology) : 0;
  if (kind == POD_LINK_SCALE_UP)
    return topology->fabric == POD_FABRIC_SWITCHED ? topology->first_nic_link : 0;
  return pod_tree_count_links (topology, kind);
}

double
pod_topology_bisection (const PodTopology *topology, bool is_book)
{
  g_return_val_if_fail (topology != NULL, 0);

  switch (topology->fabric)
    {
    case POD_FABRIC_TORUS:
      return pod_torus_bisection (topology, is_book);
    case POD_FABRIC_SWITCHED:
      return pod_switched_bisection (topology, is_book);
    case POD_FABRIC_GRAPH:
      return pod_graph_bisection (topology, is_book);
    default:
      g_assert_not_reached ();
    }
}

unsigned
pod_topology_diameter (const PodTopology *topology)
{
  g_return_val_if_fail (topology != NULL, 0);

  unsigned die = topology->chip->devices_per_chip
                 - 1; /* a route may end with the link to the other device */
  switch (topology->fabric)
    {
    case POD_FABRIC_TORUS:
      return pod_torus_diameter (topology) + die;
    case POD_FABRIC_SWITCHED:
      return pod_switched_diameter (topology) + die;
    case POD_FABRIC_GRAPH:
      return pod_graph_diameter (topology);
    default:
      g_assert_not_reached ();
    }
}
