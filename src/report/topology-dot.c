#include "report/topology-dot.h"

#include "base/error.h"
#include "base/units.h"

/* Graphviz output of a machine. Only the interface of topology.h is used, so that all fabrics come
 * out alike. */

enum
{
  MAX_VERTICES = 20000, /* what dot and sfdp still lay out in minutes */
};

/* "d12" for a device, "s3" for a switch */
static void
append_vertex (const PodTopology *topology, uint32_t vertex, GString *out)
{
  if (vertex < topology->n_devices)
    g_string_append_printf (out, "d%u", vertex);
  else
    g_string_append_printf (out, "s%u", vertex - topology->n_devices);
}

/* "x,y,z" on tori, "node.local" elsewhere */
static void
append_label (const PodTopology *topology, uint32_t device, GString *out)
{
  unsigned coords[POD_MAX_DIMS];
  unsigned per_chip = topology->fabric == POD_FABRIC_GRAPH ? 1 : topology->chip->devices_per_chip;

  if (topology->fabric == POD_FABRIC_TORUS)
    {
      pod_topology_coords (topology, device, coords);
      for (unsigned axis = 0; axis < topology->n_dims; axis++)
        g_string_append_printf (out, "%s%u", axis > 0 ? "," : "", coords[axis]);
    }
  else if (topology->fabric == POD_FABRIC_SWITCHED)
    g_string_append_printf (out, "%u", device / per_chip % topology->chips_per_node);
  else
    g_string_append_printf (out, "%u", device);
  if (per_chip > 1)
    g_string_append_c (out, "ab"[device % per_chip]);
}

/* Devices stand in a box for each node, slice or island. */
static void
append_devices (const PodTopology *topology, GString *out)
{
  GPtrArray *boxes = g_ptr_array_new ();

  for (uint32_t device = 0; device < topology->n_devices; device++)
    {
      unsigned node = pod_topology_node_of (topology, device);

      while (boxes->len <= node)
        g_ptr_array_add (boxes, g_string_new (NULL));

      GString *box = g_ptr_array_index (boxes, node);
      g_string_append (box, "    ");
      append_vertex (topology, device, box);
      g_string_append (box, " [label=\"");
      append_label (topology, device, box);
      g_string_append (box, "\"];\n");
    }
  for (guint node = 0; node < boxes->len; node++)
    {
      GString *box = g_ptr_array_index (boxes, node);

      g_string_append_printf (out, "  subgraph cluster_%u {\n    label=\"%s %u\";\n%s  }\n", node,
                              topology->fabric == POD_FABRIC_TORUS   ? "slice"
                              : topology->fabric == POD_FABRIC_GRAPH ? "island"
                                                                     : "node",
                              node, box->str);
      g_string_free (box, TRUE);
    }
  g_ptr_array_unref (boxes);
}

static void
append_switches (const PodTopology *topology, GString *out)
{
  for (uint32_t vertex = topology->n_devices; vertex < topology->n_vertices; vertex++)
    {
      g_string_append (out, "  ");
      append_vertex (topology, vertex, out);
      g_string_append (out, " [shape=box, style=filled, fillcolor=lightgrey, label=\"switch\"];\n");
    }
}

/* Ends of @link in order, so that the two directions of a pair meet in one key. */
static uint64_t
pair_key (const PodLink *link)
{
  uint32_t low = MIN (link->from, link->to);
  uint32_t high = MAX (link->from, link->to);

  return (uint64_t) low << 32 | high;
}

/* An edge for each pair of ends: dir=both unless there is only one direction. */
static void
append_links (const PodTopology *topology, GString *out)
{
  g_autoptr (GHashTable) forward
      = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  g_autoptr (GHashTable) backward
      = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);

  for (uint32_t id = 0; id < topology->n_links; id++)
    {
      PodLink link;
      uint64_t key;

      pod_topology_link (topology, id, &link);
      key = pair_key (&link);
      if (link.bytes_per_s.nominal > 0)
        g_hash_table_add (link.from < link.to ? forward : backward, g_memdup2 (&key, sizeof key));
    }
  for (uint32_t id = 0; id < topology->n_links; id++)
    {
      PodLink link;
      uint64_t key;
      bool is_both;
      g_autofree char *rate = NULL;

      pod_topology_link (topology, id, &link);
      key = pair_key (&link);
      is_both = g_hash_table_contains (forward, &key) && g_hash_table_contains (backward, &key);
      if (!(link.bytes_per_s.nominal > 0) || (is_both && link.from > link.to))
        continue;
      rate = pod_format_bytes_per_s (link.bytes_per_s.nominal);
      g_string_append (out, "  ");
      append_vertex (topology, link.from, out);
      g_string_append (out, " -> ");
      append_vertex (topology, link.to, out);
      g_string_append_printf (out, " [label=\"%s\"%s];\n", rate, is_both ? ", dir=both" : "");
    }
}

char *
pod_report_topology_dot (const PodTopology *topology, GError **error)
{
  GString *out;
  g_autofree char *name = NULL;

  g_return_val_if_fail (topology != NULL, NULL);

  if (topology->n_vertices > MAX_VERTICES)
    {
      g_set_error (
          error, POD_ERROR, POD_ERROR_LIMIT,
          "a drawing of %u devices and switches is more than Graphviz lays out: at most %d",
          topology->n_vertices, MAX_VERTICES);
      return NULL;
    }
  name = g_strescape (topology->name, NULL);
  out = g_string_new (NULL);
  g_string_append_printf (out,
                          "digraph \"%s\" {\n  node [shape=circle, fixedsize=true, width=0.5, "
                          "fontsize=10];\n  edge [fontsize=8];\n",
                          name);
  append_devices (topology, out);
  append_switches (topology, out);
  append_links (topology, out);
  g_string_append (out, "}\n");
  return g_string_free (out, FALSE);
}
