#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "topology/topology-private.h"

/* -- reading ----------------------------------------------------------------------------------- */

static bool
read_options (PodTopologySpec *spec, const PodXml *xml, PodXmlNode *node, GError **error)
{
  for (size_t i = 0; i < pod_topology_n_options; i++)
    {
      const PodTopologyOption *option = &pod_topology_options[i];
      g_autofree char *value = pod_xml_attr (node, option->attribute);

      if (value == NULL || pod_topology_option_set (spec, option->attribute, value, error))
        continue;
      g_prefix_error (error, "%s:%u: ", xml->file, node->line);
      return false;
    }
  return true;
}

/* <set field= value=/> changes a number of the chip in this machine. */
static bool
read_sets (PodTopologySpec *spec, const PodXml *xml, PodXmlNode *root, GError **error)
{
  for (PodXmlNode *node = pod_xml_child (root, "set"); node != NULL;
       node = pod_xml_next (node, "set"))
    {
      g_autofree char *field = pod_xml_attr (node, "field");
      g_autofree char *value = pod_xml_attr (node, "value");

      if (field == NULL || value == NULL)
        return pod_xml_error (xml, node, error, "<set> needs a field and a value");
      g_ptr_array_add (spec->chip_sets, g_strconcat (field, "=", value, NULL));
    }
  return true;
}

static bool
read_fabric (PodTopologySpec *spec, const PodXml *xml, PodXmlNode *root, GError **error)
{
  PodXmlNode *torus = pod_xml_child (root, "torus");
  PodXmlNode *switched = pod_xml_child (root, "switched");
  PodXmlNode *graph = pod_xml_child (root, "graph");

  spec->fabric = torus != NULL      ? POD_FABRIC_TORUS
                 : switched != NULL ? POD_FABRIC_SWITCHED
                                    : POD_FABRIC_GRAPH;
  PodXmlNode *fabric = torus != NULL ? torus : switched != NULL ? switched : graph;
  if (fabric == NULL)
    return pod_xml_error (xml, root, error, "a topology needs <torus>, <switched> or <graph>");
  spec->location = g_strdup_printf ("%s:%u", xml->file, fabric->line);
  if (fabric != graph)
    return read_options (spec, xml, fabric, error);
  spec->graph = pod_graph_spec_read (xml, graph, error);
  return spec->graph != NULL;
}

PodTopologySpec *
pod_topology_xml_read (const char *file, GError **error)
{
  g_autoptr (PodTopologySpec) spec = pod_topology_spec_new ();
  g_autofree char *schema = pod_data_find ("topologies", "topology.xsd", ".xsd");

  if (schema == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "the schema topologies/topology.xsd is missing: set PODSIM_PATH");
      return NULL;
    }
  g_autoptr (PodXml) xml = pod_xml_load (file, schema, error);
  if (xml == NULL)
    return NULL;
  PodXmlNode *root = pod_xml_root (xml);
  spec->name = pod_xml_attr (root, "name");
  spec->chip = pod_xml_attr (root, "chip");
  if (spec->name == NULL || spec->chip == NULL)
    {
      pod_xml_error (xml, root, error, "a topology needs a name and a chip");
      return NULL;
    }
  if (!read_sets (spec, xml, root, error) || !read_fabric (spec, xml, root, error))
    return NULL;
  return g_steal_pointer (&spec);
}

/* -- writing ----------------------------------------------------------------------------------- */

static void
append_attribute (GString *out, const char *name, const char *value)
{
  g_autofree char *escaped = g_markup_escape_text (value, -1);

  g_string_append_printf (out, " %s=\"%s\"", name, escaped);
}

/* The name where that finds the same file again, else the whole path. Returns: (transfer full) */
static char *
chip_reference (const PodChip *chip)
{
  g_autofree char *file_name = g_strconcat (chip->name, ".xml", NULL);
  g_autofree char *found = pod_data_find ("topologies/chips", file_name, ".xml");

  if (g_strcmp0 (found, chip->file) == 0)
    return g_strdup (chip->name);
  return g_canonicalize_filename (chip->file, NULL);
}

static void
append_options (const PodTopologySpec *spec, GString *out)
{
  for (size_t i = 0; i < pod_topology_n_options; i++)
    {
      const PodTopologyOption *option = &pod_topology_options[i];
      if ((option->fabrics & (1U << spec->fabric)) == 0)
        continue;
      g_autofree char *value = option->get (spec);
      if (value != NULL)
        append_attribute (out, option->attribute, value);
    }
}

static void
append_fabric (const PodTopologySpec *spec, GString *out)
{
  if (spec->fabric == POD_FABRIC_GRAPH)
    {
      pod_graph_spec_append_xml (spec->graph, out);
      return;
    }
  g_string_append (out, spec->fabric == POD_FABRIC_TORUS ? "  <torus" : "  <switched");
  append_options (spec, out);
  g_string_append (out, "/>\n");
}

/* As comments, in which "--" may not stand. */
static void
append_notes (const PodTopologySpec *spec, GString *out)
{
  for (unsigned i = 0; i < spec->notes->len; i++)
    {
      g_autofree char *note = g_strdup (g_ptr_array_index (spec->notes, i));
      for (char *at = strstr (note, "--"); at != NULL; at = strstr (at, "--"))
        *at = '~';
      g_string_append_printf (out, "<!-- assumed: %s -->\n", note);
    }
}

char *
pod_topology_to_xml (const PodTopology *topology)
{
  g_return_val_if_fail (topology != NULL, NULL);

  const PodTopologySpec *spec = topology->spec;
  GString *out = g_string_new ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  g_autofree char *chip = chip_reference (topology->chip);

  append_notes (spec, out);
  g_string_append (out, "<topology");
  append_attribute (out, "name", topology->name);
  append_attribute (out, "chip", chip);
  g_string_append (out, ">\n");
  for (unsigned i = 0; i < spec->chip_sets->len; i++)
    {
      g_auto (GStrv) pair = g_strsplit (g_ptr_array_index (spec->chip_sets, i), "=", 2);
      g_string_append (out, "  <set");
      append_attribute (out, "field", pair[0]);
      append_attribute (out, "value", pair[1]);
      g_string_append (out, "/>\n");
    }
  append_fabric (spec, out);
  g_string_append (out, "</topology>\n");
  return g_string_free (out, FALSE);
}
