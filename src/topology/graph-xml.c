#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "topology/graph-private.h"

enum
{
  MAX_VERTICES = 1 << 16,
};

static void
clear_vertex (void *vertex)
{
  g_free (((PodGraphVertex *) vertex)->name);
}

static PodGraphSpec *
graph_spec_new (void)
{
  PodGraphSpec *graph = g_new0 (PodGraphSpec, 1);

  graph->n_references = 1;
  graph->vertices = g_array_new (FALSE, TRUE, sizeof (PodGraphVertex));
  g_array_set_clear_func (graph->vertices, clear_vertex);
  graph->islands = g_ptr_array_new_with_free_func (g_free);
  graph->links = g_array_new (FALSE, TRUE, sizeof (PodGraphLink));
  return graph;
}

PodGraphSpec *
pod_graph_spec_ref (PodGraphSpec *graph)
{
  g_atomic_int_inc ((int *) &graph->n_references);
  return graph;
}

void
pod_graph_spec_unref (PodGraphSpec *graph)
{
  if (graph == NULL || !g_atomic_int_dec_and_test ((int *) &graph->n_references))
    return;
  g_array_unref (graph->vertices);
  g_ptr_array_unref (graph->islands);
  g_array_unref (graph->links);
  g_free (graph);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodGraphSpec, pod_graph_spec_unref)

/* -- reading ----------------------------------------------------------------------------------- */

static unsigned
find_island (PodGraphSpec *graph, const char *name)
{
  for (unsigned i = 0; i < graph->islands->len; i++)
    if (strcmp (g_ptr_array_index (graph->islands, i), name) == 0)
      return i;
  g_ptr_array_add (graph->islands, g_strdup (name));
  return graph->islands->len - 1;
}

/* All <node> or <switch> elements. @indices maps names to vertex + 1. */
static bool
read_vertices (PodGraphSpec *graph, const PodXml *xml, xmlNodePtr parent, const char *element,
               GHashTable *indices, GError **error)
{
  for (xmlNodePtr node = pod_xml_child (parent, element); node != NULL;
       node = pod_xml_next (node, element))
    {
      g_autofree char *name = pod_xml_attr (node, "name");
      g_autofree char *island = pod_xml_attr (node, "island");

      if (name == NULL || g_hash_table_contains (indices, name))
        return pod_xml_error (xml, node, error, "the name '%s' stands twice",
                              name != NULL ? name : "");
      if (graph->vertices->len == MAX_VERTICES)
        return pod_xml_error (xml, node, error, "more than %d nodes and switches", MAX_VERTICES);
      PodGraphVertex vertex = { .name = g_strdup (name),
                                .island = find_island (graph, island != NULL ? island : "") };
      g_array_append_val (graph->vertices, vertex);
      g_hash_table_insert (indices, g_strdup (name), GUINT_TO_POINTER (graph->vertices->len));
    }
  return true;
}

static bool
find_end (const PodGraphSpec *graph, const PodXml *xml, xmlNodePtr node, const char *attribute,
          GHashTable *indices, uint32_t *out, GError **error)
{
  g_autofree char *name = pod_xml_attr (node, attribute);
  unsigned index = name != NULL ? GPOINTER_TO_UINT (g_hash_table_lookup (indices, name)) : 0;
  g_autoptr (GPtrArray) names = g_ptr_array_new ();

  if (index != 0)
    {
      *out = index - 1;
      return true;
    }
  for (unsigned i = 0; i < graph->vertices->len; i++)
    g_ptr_array_add (names, pod_graph_vertex (graph, i)->name);
  const char *nearest = pod_data_nearest (names, name != NULL ? name : "");
  return pod_xml_error (xml, node, error, "%s: no node or switch '%s'%s%s%s", attribute,
                        name != NULL ? name : "", nearest != NULL ? ", did you mean '" : "",
                        nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}

static bool
read_link (PodGraphSpec *graph, const PodXml *xml, xmlNodePtr node, GHashTable *indices,
           GError **error)
{
  PodGraphLink link = { 0 };
  double latency_s = 0;
  g_autofree char *duplex = pod_xml_attr (node, "duplex");

  if (!find_end (graph, xml, node, "from", indices, &link.from, error)
      || !find_end (graph, xml, node, "to", indices, &link.to, error)
      || !pod_xml_get_quantity (xml, node, "rate", POD_UNIT_BYTES_PER_S, true,
                                &link.bytes_per_s.nominal, error))
    return false;
  link.bytes_per_s.book = link.bytes_per_s.nominal;
  if (!pod_xml_get_quantity (xml, node, "book", POD_UNIT_BYTES_PER_S, false, &link.bytes_per_s.book,
                             error)
      || !pod_xml_get_quantity (xml, node, "latency", POD_UNIT_SECONDS, false, &latency_s, error))
    return false;
  if (link.from == link.to)
    return pod_xml_error (xml, node, error, "a link from '%s' to itself",
                          pod_graph_vertex (graph, link.from)->name);
  if (!(link.bytes_per_s.nominal > 0) || !(link.bytes_per_s.book > 0))
    return pod_xml_error (xml, node, error, "a link needs a rate above 0");
  if (!pod_seconds_to_ps (latency_s, &link.latency_ps))
    return pod_xml_error (xml, node, error, "the latency is longer than the clock");
  link.is_simplex = g_strcmp0 (duplex, "simplex") == 0;
  g_array_append_val (graph->links, link);
  return true;
}

PodGraphSpec *
pod_graph_spec_read (const PodXml *xml, xmlNodePtr node, GError **error)
{
  g_autoptr (PodGraphSpec) graph = graph_spec_new ();
  g_autoptr (GHashTable) indices = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  if (!read_vertices (graph, xml, node, "node", indices, error))
    return NULL;
  graph->n_devices = graph->vertices->len;
  if (graph->n_devices == 0)
    {
      pod_xml_error (xml, node, error, "a graph needs a node");
      return NULL;
    }
  if (!read_vertices (graph, xml, node, "switch", indices, error))
    return NULL;
  for (xmlNodePtr link = pod_xml_child (node, "link"); link != NULL;
       link = pod_xml_next (link, "link"))
    if (!read_link (graph, xml, link, indices, error))
      return NULL;
  return g_steal_pointer (&graph);
}

/* -- writing ----------------------------------------------------------------------------------- */

static void
append_rate (GString *out, const char *attribute, double rate)
{
  g_autofree char *number = pod_format_double (rate);

  g_string_append_printf (out, " %s=\"%s B/s\"", attribute, number);
}

static void
append_link (const PodGraphSpec *graph, const PodGraphLink *link, GString *out)
{
  g_autofree char *from = g_markup_escape_text (pod_graph_vertex (graph, link->from)->name, -1);
  g_autofree char *to = g_markup_escape_text (pod_graph_vertex (graph, link->to)->name, -1);

  g_string_append_printf (out, "    <link from=\"%s\" to=\"%s\"", from, to);
  append_rate (out, "rate", link->bytes_per_s.nominal);
  if (link->bytes_per_s.book != link->bytes_per_s.nominal)
    append_rate (out, "book", link->bytes_per_s.book);
  g_string_append_printf (out, " latency=\"%" G_GINT64_FORMAT " ps\"%s/>\n", link->latency_ps,
                          link->is_simplex ? " duplex=\"simplex\"" : "");
}

void
pod_graph_spec_append_xml (const PodGraphSpec *graph, GString *out)
{
  g_string_append (out, "  <graph>\n");
  for (unsigned i = 0; i < graph->vertices->len; i++)
    {
      const PodGraphVertex *vertex = pod_graph_vertex (graph, i);
      g_autofree char *name = g_markup_escape_text (vertex->name, -1);
      const char *island = g_ptr_array_index (graph->islands, vertex->island);

      if (i >= graph->n_devices)
        g_string_append_printf (out, "    <switch name=\"%s\"/>\n", name);
      else if (*island == '\0')
        g_string_append_printf (out, "    <node name=\"%s\"/>\n", name);
      else
        {
          g_autofree char *escaped = g_markup_escape_text (island, -1);
          g_string_append_printf (out, "    <node name=\"%s\" island=\"%s\"/>\n", name, escaped);
        }
    }
  for (unsigned i = 0; i < graph->links->len; i++)
    append_link (graph, pod_graph_link (graph, i), out);
  g_string_append (out, "  </graph>\n");
}
