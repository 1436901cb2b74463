#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "topology/chip-private.h"
#include "topology/topology-private.h"

enum
{
  ALL_FABRICS = POD_OPTION_TORUS | POD_OPTION_SWITCHED,
};

PodTopologySpec *
pod_topology_spec_new (void)
{
  PodTopologySpec *spec = g_new0 (PodTopologySpec, 1);

  spec->chip_sets = g_ptr_array_new_with_free_func (g_free);
  spec->notes = g_ptr_array_new_with_free_func (g_free);
  spec->n_slices = 1;
  spec->wrap_mask = POD_WRAP_BY_RULE;
  return spec;
}

void
pod_topology_spec_free (PodTopologySpec *spec)
{
  if (spec == NULL)
    return;
  g_free (spec->name);
  g_free (spec->location);
  g_free (spec->chip);
  g_ptr_array_unref (spec->chip_sets);
  g_ptr_array_unref (spec->notes);
  pod_graph_spec_unref (spec->graph);
  g_free (spec);
}

PodTopologySpec *
pod_topology_spec_copy (const PodTopologySpec *spec)
{
  PodTopologySpec *copy = g_new0 (PodTopologySpec, 1);

  *copy = *spec;
  copy->name = g_strdup (spec->name);
  copy->location = g_strdup (spec->location);
  copy->chip = g_strdup (spec->chip);
  copy->chip_sets = g_ptr_array_new_with_free_func (g_free);
  for (unsigned i = 0; i < spec->chip_sets->len; i++)
    g_ptr_array_add (copy->chip_sets, g_strdup (g_ptr_array_index (spec->chip_sets, i)));
  copy->notes = g_ptr_array_new_with_free_func (g_free);
  for (unsigned i = 0; i < spec->notes->len; i++)
    g_ptr_array_add (copy->notes, g_strdup (g_ptr_array_index (spec->notes, i)));
  copy->graph = spec->graph != NULL ? pod_graph_spec_ref (spec->graph) : NULL;
  return copy;
}

/* -- values ------------------------------------------------------------------------------------ */

static bool
parse_positive (const char *text, unsigned most, unsigned *out, GError **error)
{
  uint64_t value = 0;

  if (!pod_parse_whole (text, POD_UNIT_COUNT, &value, error))
    return false;
  if (value == 0 || value > most)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "must be 1 to %u, got '%s'", most, text);
      return false;
    }
  *out = (unsigned) value;
  return true;
}

static bool
parse_flag (const char *text, bool *out, GError **error)
{
  *out = strcmp (text, "yes") == 0;
  if (*out || strcmp (text, "no") == 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "must be yes or no, got '%s'", text);
  return false;
}

static char *
format_count (unsigned value)
{
  return value > 0 ? g_strdup_printf ("%u", value) : NULL;
}

static char *
format_flag (bool value)
{
  return value ? g_strdup ("yes") : NULL;
}

static bool
set_nic (PodTopologySpec *spec, const char *value, GError **error)
{
  double rate = 0;

  if (!pod_parse_quantity (value, POD_UNIT_BYTES_PER_S, &rate, error))
    return false;
  if (!(rate > 0))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "must be above 0, got '%s'", value);
      return false;
    }
  spec->nic_bytes_per_s = rate;
  return true;
}

static char *
get_nic (const PodTopologySpec *spec)
{
  if (!(spec->nic_bytes_per_s > 0))
    return NULL;
  g_autofree char *rate = pod_format_double (spec->nic_bytes_per_s);
  return g_strconcat (rate, " B/s", NULL);
}

/* A ratio of one level: "7", "7:1" or "1:7", the bytes into the level over the bytes out of it. */
static bool
parse_ratio (const char *text, double *out, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", 3);
  unsigned n_parts = g_strv_length (parts);
  const char *number = n_parts == 2 && strcmp (parts[0], "1") == 0 ? parts[1] : text;

  if (n_parts == 2 && number == text && strcmp (parts[1], "1") == 0)
    number = parts[0];
  if (!pod_parse_quantity (number, POD_UNIT_COUNT, out, error))
    return false;
  if (!(*out >= 1e-6 && *out <= 1e6))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "a level's ratio must be between 1e-6 and 1e6, got '%s'", text);
      return false;
    }
  return true;
}

static bool
set_oversub (PodTopologySpec *spec, const char *value, GError **error)
{
  g_auto (GStrv) ratios = g_strsplit (value, "/", -1);
  unsigned n_ratios = g_strv_length (ratios);

  if (n_ratios == 0 || n_ratios > POD_MAX_LEVELS)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "needs one ratio for each level, leaves first, such as 1/7, got '%s'", value);
      return false;
    }
  for (unsigned level = 0; level < n_ratios; level++)
    if (!parse_ratio (ratios[level], &spec->oversubscription[level], error))
      return false;
  spec->n_oversubscriptions = n_ratios;
  return true;
}

static char *
get_oversub (const PodTopologySpec *spec)
{
  GString *text = g_string_new (NULL);

  for (unsigned level = 0; level < spec->n_oversubscriptions; level++)
    {
      g_autofree char *ratio = pod_format_double (spec->oversubscription[level]);
      g_string_append_printf (text, "%s%s", level > 0 ? "/" : "", ratio);
    }
  if (spec->n_oversubscriptions > 0)
    return g_string_free (text, FALSE);
  g_string_free (text, TRUE);
  return NULL;
}

static bool
set_wrap (PodTopologySpec *spec, const char *value, GError **error)
{
  int mask = 0;

  if (strcmp (value, "rule") == 0)
    mask = POD_WRAP_BY_RULE;
  else if (strcmp (value, "none") != 0)
    for (const char *axis = value; *axis != '\0'; axis++)
      {
        if (*axis < 'x' || *axis > 'z' || (unsigned) (*axis - 'x') >= MAX (spec->n_axes, 1))
          {
            g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                         "must be none or the axes that wrap, such as xy, got '%s'", value);
            return false;
          }
        mask |= 1 << (*axis - 'x');
      }
  spec->wrap_mask = mask;
  return true;
}

static char *
get_wrap (const PodTopologySpec *spec)
{
  GString *text = g_string_new (NULL);

  if (spec->wrap_mask == POD_WRAP_BY_RULE)
    {
      g_string_free (text, TRUE);
      return NULL;
    }
  for (int axis = 0; axis < 3; axis++)
    if ((spec->wrap_mask & (1 << axis)) != 0)
      g_string_append_c (text, "xyz"[axis]);
  if (text->len == 0)
    g_string_append (text, "none");
  return g_string_free (text, FALSE);
}

static bool
set_nodes (PodTopologySpec *spec, const char *value, GError **error)
{
  return parse_positive (value, POD_MAX_DEVICES, &spec->n_nodes, error);
}

static char *
get_nodes (const PodTopologySpec *spec)
{
  return format_count (spec->n_nodes);
}

static bool
set_chips (PodTopologySpec *spec, const char *value, GError **error)
{
  return parse_positive (value, POD_MAX_DEVICES, &spec->chips_per_node, error);
}

static char *
get_chips (const PodTopologySpec *spec)
{
  return format_count (spec->chips_per_node);
}

static bool
set_slices (PodTopologySpec *spec, const char *value, GError **error)
{
  return parse_positive (value, POD_MAX_DEVICES, &spec->n_slices, error);
}

static char *
get_slices (const PodTopologySpec *spec)
{
  return format_count (spec->n_slices);
}

static bool
set_extent (PodTopologySpec *spec, const char *value, GError **error)
{
  return pod_extent_parse (value, spec->extent, &spec->n_axes, error);
}

static char *
get_extent (const PodTopologySpec *spec)
{
  return pod_extent_format (spec->extent, spec->n_axes);
}

static bool
set_twisted (PodTopologySpec *spec, const char *value, GError **error)
{
  return parse_flag (value, &spec->is_twisted, error);
}

static char *
get_twisted (const PodTopologySpec *spec)
{
  return format_flag (spec->is_twisted);
}

static bool
set_nics (PodTopologySpec *spec, const char *value, GError **error)
{
  return parse_positive (value, POD_MAX_DEVICES, &spec->n_nics, error);
}

static char *
get_nics (const PodTopologySpec *spec)
{
  return format_count (spec->n_nics);
}

static bool
set_rails (PodTopologySpec *spec, const char *value, GError **error)
{
  return parse_positive (value, POD_MAX_DEVICES, &spec->n_rails, error);
}

static char *
get_rails (const PodTopologySpec *spec)
{
  return format_count (spec->n_rails);
}

static bool
set_tree (PodTopologySpec *spec, const char *value, GError **error)
{
  return parse_positive (value, POD_MAX_LEVELS, &spec->n_levels, error);
}

static char *
get_tree (const PodTopologySpec *spec)
{
  return format_count (spec->n_levels);
}

static bool
set_radix (PodTopologySpec *spec, const char *value, GError **error)
{
  return parse_positive (value, 1 << 16, &spec->radix, error);
}

static char *
get_radix (const PodTopologySpec *spec)
{
  return format_count (spec->radix);
}

static bool
set_unit (PodTopologySpec *spec, const char *value, GError **error)
{
  return parse_positive (value, POD_MAX_DEVICES, &spec->unit_nodes, error);
}

static char *
get_unit (const PodTopologySpec *spec)
{
  return format_count (spec->unit_nodes);
}

static bool
set_pod (PodTopologySpec *spec, const char *value, GError **error)
{
  return parse_positive (value, POD_MAX_DEVICES, &spec->pod_nodes, error);
}

static char *
get_pod (const PodTopologySpec *spec)
{
  return format_count (spec->pod_nodes);
}

static bool
set_separate (PodTopologySpec *spec, const char *value, GError **error)
{
  return parse_flag (value, &spec->has_separate_rails, error);
}

static char *
get_separate (const PodTopologySpec *spec)
{
  return format_flag (spec->has_separate_rails);
}

static bool
set_unchecked (PodTopologySpec *spec, const char *value, GError **error)
{
  return parse_flag (value, &spec->is_unchecked, error);
}

static char *
get_unchecked (const PodTopologySpec *spec)
{
  return format_flag (spec->is_unchecked);
}

/* -- the table --------------------------------------------------------------------------------- */

/* The extents stand first: what follows may be checked against them. */
const PodTopologyOption pod_topology_options[] = {
  { .name = "extent",
    .attribute = "extent",
    .fabrics = POD_OPTION_TORUS,
    .is_extent = true,
    .set = set_extent,
    .get = get_extent,
    .summary = "chips of a slice along each axis" },
  { .name = "slices",
    .attribute = "slices",
    .fabrics = POD_OPTION_TORUS,
    .is_extent = true,
    .set = set_slices,
    .get = get_slices,
    .summary = "slices joined by the data-centre network" },
  { .name = "twisted",
    .attribute = "twisted",
    .fabrics = POD_OPTION_TORUS,
    .is_extent = true,
    .set = set_twisted,
    .get = get_twisted,
    .summary = "whether the slice is twisted" },
  { .name = "nodes",
    .attribute = "nodes",
    .fabrics = POD_OPTION_SWITCHED,
    .is_extent = true,
    .set = set_nodes,
    .get = get_nodes,
    .summary = "scale-up domains" },
  { .name = "chips-per-node",
    .attribute = "chips-per-node",
    .fabrics = POD_OPTION_SWITCHED,
    .is_extent = true,
    .set = set_chips,
    .get = get_chips,
    .summary = "chips of a scale-up domain" },
  { .name = "nic",
    .attribute = "nic",
    .fabrics = ALL_FABRICS,
    .set = set_nic,
    .get = get_nic,
    .summary = "scale-out rate of one chip, one direction (400Gb/s)" },
  { .name = "nics",
    .attribute = "nics",
    .fabrics = POD_OPTION_SWITCHED,
    .set = set_nics,
    .get = get_nics,
    .summary = "NICs of a node, which its chips share (one a chip)" },
  { .name = "oversub",
    .attribute = "oversubscription",
    .fabrics = ALL_FABRICS,
    .set = set_oversub,
    .get = get_oversub,
    .summary
    = "rates into a level over its uplinks, leaves first (1, or 1/7 for the second level)" },
  { .name = "rails",
    .attribute = "rails",
    .fabrics = POD_OPTION_SWITCHED,
    .set = set_rails,
    .get = get_rails,
    .summary
    = "leaves of a unit, chip c of a node on rail c mod rails; 1: leaves take whole nodes" },
  { .name = "separate-rails",
    .attribute = "separate-rails",
    .fabrics = POD_OPTION_SWITCHED,
    .is_flag = true,
    .set = set_separate,
    .get = get_separate,
    .summary = "no switch joins two rails (one network plane for each)" },
  { .name = "tree",
    .attribute = "levels",
    .fabrics = POD_OPTION_SWITCHED,
    .set = set_tree,
    .get = get_tree,
    .summary = "levels of switches: 1 to 3" },
  { .name = "radix",
    .attribute = "radix",
    .fabrics = POD_OPTION_SWITCHED,
    .set = set_radix,
    .get = get_radix,
    .summary = "ports of a switch" },
  { .name = "unit",
    .attribute = "unit-nodes",
    .fabrics = POD_OPTION_SWITCHED,
    .set = set_unit,
    .get = get_unit,
    .summary = "nodes that share leaf switches" },
  { .name = "pod",
    .attribute = "pod-nodes",
    .fabrics = POD_OPTION_SWITCHED,
    .set = set_pod,
    .get = get_pod,
    .summary = "nodes under one group of second-level switches, of three levels" },
  { .name = "wrap",
    .attribute = "wrap",
    .fabrics = POD_OPTION_TORUS,
    .set = set_wrap,
    .get = get_wrap,
    .summary = "axes that wrap whatever the chip's rule says: none, x, xy, ..." },
  { .name = "unchecked",
    .attribute = "unchecked",
    .fabrics = ALL_FABRICS,
    .is_flag = true,
    .set = set_unchecked,
    .get = get_unchecked,
    .summary = "model a shape that no such machine has" },
};

const size_t pod_topology_n_options = G_N_ELEMENTS (pod_topology_options);

static bool
set_unknown_option (const PodTopologySpec *spec, const char *name, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_autoptr (GString) known = g_string_new (NULL);

  for (size_t i = 0; i < pod_topology_n_options; i++)
    if ((pod_topology_options[i].fabrics & (1U << spec->fabric)) != 0)
      {
        g_ptr_array_add (names, (char *) pod_topology_options[i].name);
        g_string_append_printf (known, "%s%s", known->len > 0 ? ", " : "",
                                pod_topology_options[i].name);
      }
  const char *nearest = pod_data_nearest (names, name);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "no option '%s' for this kind of machine%s%s%s: it is one of %s", name,
               nearest != NULL ? ", did you mean '" : "", nearest != NULL ? nearest : "",
               nearest != NULL ? "'" : "", known->len > 0 ? known->str : "none");
  return false;
}

bool
pod_topology_option_set (PodTopologySpec *spec, const char *name, const char *value, GError **error)
{
  for (size_t i = 0; i < pod_topology_n_options; i++)
    {
      const PodTopologyOption *option = &pod_topology_options[i];

      if ((strcmp (option->name, name) != 0 && strcmp (option->attribute, name) != 0)
          || (option->fabrics & (1U << spec->fabric)) == 0)
        continue;
      if (value == NULL && !option->is_flag)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: needs a value: %s", name,
                       option->summary);
          return false;
        }
      if (option->set (spec, value != NULL ? value : "yes", error))
        return true;
      g_prefix_error (error, "%s: ", name);
      return false;
    }
  return set_unknown_option (spec, name, error);
}
