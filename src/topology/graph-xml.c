#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "topology/graph-private.h"

enum
{
  MAX_VERTICES = 1 << 16,
};

static const char *const duplex_names[] = {
  [POD_GRAPH_FULL] = "full",
  [POD_GRAPH_HALF] = "half",
  [POD_GRAPH_SIMPLEX] = "simplex",
};

static void
clear_vertex (void *vertex)
{
  g_free (((PodGraphVertex *) vertex)->name);
}

static void
clear_link (void *link)
{
  g_free (((PodGraphLink *) link)->name);
}

PodGraphSpec *
pod_graph_spec_new (void)
{
  PodGraphSpec *graph = g_new0 (PodGraphSpec, 1);

  graph->n_references = 1;
  graph->vertices = g_array_new (FALSE, TRUE, sizeof (PodGraphVertex));
  g_array_set_clear_func (graph->vertices, clear_vertex);
  graph->islands = g_ptr_array_new_with_free_func (g_free);
  graph->links = g_array_new (FALSE, TRUE, sizeof (PodGraphLink));
  g_array_set_clear_func (graph->links, clear_link);
  graph->routes = g_array_new (FALSE, TRUE, sizeof (PodGraphRoute));
  graph->route_links = g_array_new (FALSE, TRUE, sizeof (uint32_t));
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
  g_array_unref (graph->routes);
  g_array_unref (graph->route_links);
  g_free (graph);
}

/* -- reading ----------------------------------------------------------------------------------- */

unsigned
pod_graph_spec_island (PodGraphSpec *graph, const char *name)
{
  for (unsigned i = 0; i < graph->islands->len; i++)
    if (strcmp (g_ptr_array_index (graph->islands, i), name) == 0)
      return i;
  g_ptr_array_add (graph->islands, g_strdup (name));
  return graph->islands->len - 1;
}

/* All <node> or <switch> elements. @indices maps names to vertex + 1. */
static bool
read_vertices (PodGraphSpec *graph, const PodXml *xml, PodXmlNode *parent, const char *element,
               GHashTable *indices, GError **error)
{
  for (PodXmlNode *node = pod_xml_child (parent, element); node != NULL;
       node = pod_xml_next (node, element))
    {
      g_autofree char *name = pod_xml_attr (node, "name");
      g_autofree char *island = pod_xml_attr (node, "island");

      if (name == NULL || g_hash_table_contains (indices, name))
        return pod_xml_error (xml, node, error, "the name '%s' stands twice",
                              name != NULL ? name : "");
      if (graph->vertices->len == MAX_VERTICES)
        return pod_xml_error (xml, node, error, "more than %d nodes and switches", MAX_VERTICES);
      PodGraphVertex vertex
          = { .name = g_strdup (name),
              .island = pod_graph_spec_island (graph, island != NULL ? island : "") };
      g_array_append_val (graph->vertices, vertex);
      g_hash_table_insert (indices, g_strdup (name), GUINT_TO_POINTER (graph->vertices->len));
    }
  return true;
}

static bool
find_end (const PodGraphSpec *graph, const PodXml *xml, PodXmlNode *node, const char *attribute,
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
read_link (PodGraphSpec *graph, const PodXml *xml, PodXmlNode *node, GHashTable *indices,
           GError **error)
{
  PodGraphLink link = { .duplex = POD_GRAPH_FULL };
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
  for (unsigned i = 0; i < G_N_ELEMENTS (duplex_names); i++)
    if (g_strcmp0 (duplex, duplex_names[i]) == 0)
      link.duplex = (PodGraphDuplex) i;
  link.name = pod_xml_attr (node, "name");
  g_array_append_val (graph->links, link);
  return true;
}

/* The links of a <route>, by their names. @links maps names to link + 1. */
static bool
read_route (PodGraphSpec *graph, const PodXml *xml, PodXmlNode *node, GHashTable *indices,
            GHashTable *links, GError **error)
{
  PodGraphRoute route = { .begin = graph->route_links->len };

  if (!find_end (graph, xml, node, "from", indices, &route.from, error)
      || !find_end (graph, xml, node, "to", indices, &route.to, error))
    return false;
  for (PodXmlNode *over = pod_xml_child (node, "over"); over != NULL;
       over = pod_xml_next (over, "over"))
    {
      g_autofree char *name = pod_xml_attr (over, "link");
      unsigned index = name != NULL ? GPOINTER_TO_UINT (g_hash_table_lookup (links, name)) : 0;
      uint32_t link = index - 1;

      if (index == 0)
        return pod_xml_error (xml, over, error, "no link has the name '%s'",
                              name != NULL ? name : "");
      g_array_append_val (graph->route_links, link);
    }
  route.n_links = graph->route_links->len - route.begin;
  if (!pod_graph_check_route (graph, &route, error))
    {
      g_prefix_error (error, "%s:%u: ", xml->file, node->line);
      return false;
    }
  g_array_append_val (graph->routes, route);
  return true;
}

static bool
read_routes (PodGraphSpec *graph, const PodXml *xml, PodXmlNode *parent, GHashTable *indices,
             GError **error)
{
  g_autoptr (GHashTable) links = g_hash_table_new (g_str_hash, g_str_equal);
  uint32_t index = 0;

  for (PodXmlNode *node = pod_xml_child (parent, "link"); node != NULL;
       node = pod_xml_next (node, "link"))
    {
      char *name = pod_graph_link (graph, index++)->name;
      if (name != NULL && !g_hash_table_insert (links, name, GUINT_TO_POINTER (index)))
        return pod_xml_error (xml, node, error, "the link name '%s' stands twice", name);
    }
  for (PodXmlNode *node = pod_xml_child (parent, "route"); node != NULL;
       node = pod_xml_next (node, "route"))
    if (!read_route (graph, xml, node, indices, links, error))
      return false;
  if (pod_graph_spec_sort_routes (graph, error))
    return true;
  g_prefix_error (error, "%s:%u: ", xml->file, parent->line);
  return false;
}

PodGraphSpec *
pod_graph_spec_read (const PodXml *xml, PodXmlNode *node, GError **error)
{
  g_autoptr (PodGraphSpec) graph = pod_graph_spec_new ();
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
  for (PodXmlNode *link = pod_xml_child (node, "link"); link != NULL;
       link = pod_xml_next (link, "link"))
    if (!read_link (graph, xml, link, indices, error))
      return NULL;
  if (!read_routes (graph, xml, node, indices, error))
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

  g_string_append (out, "    <link");
  if (link->name != NULL)
    {
      g_autofree char *name = g_markup_escape_text (link->name, -1);
      g_string_append_printf (out, " name=\"%s\"", name);
    }
  g_string_append_printf (out, " from=\"%s\" to=\"%s\"", from, to);
  append_rate (out, "rate", link->bytes_per_s.nominal);
  if (link->bytes_per_s.book != link->bytes_per_s.nominal)
    append_rate (out, "book", link->bytes_per_s.book);
  g_string_append_printf (out, " latency=\"%" G_GINT64_FORMAT " ps\"", link->latency_ps);
  if (link->duplex != POD_GRAPH_FULL)
    g_string_append_printf (out, " duplex=\"%s\"", duplex_names[link->duplex]);
  g_string_append (out, "/>\n");
}

static void
append_route (const PodGraphSpec *graph, const PodGraphRoute *route, GString *out)
{
  g_autofree char *from = g_markup_escape_text (pod_graph_vertex (graph, route->from)->name, -1);
  g_autofree char *to = g_markup_escape_text (pod_graph_vertex (graph, route->to)->name, -1);

  g_string_append_printf (out, "    <route from=\"%s\" to=\"%s\">\n", from, to);
  for (uint32_t i = 0; i < route->n_links; i++)
    {
      uint32_t link = g_array_index (graph->route_links, uint32_t, route->begin + i);
      g_autofree char *name = g_markup_escape_text (pod_graph_link (graph, link)->name, -1);
      g_string_append_printf (out, "      <over link=\"%s\"/>\n", name);
    }
  g_string_append (out, "    </route>\n");
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
  for (unsigned i = 0; i < graph->routes->len; i++)
    append_route (graph, &g_array_index (graph->routes, PodGraphRoute, i), out);
  g_string_append (out, "  </graph>\n");
}
