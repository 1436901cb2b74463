#include "topology/draft.h"

#include "base/error.h"
#include "topology/graph-private.h"

/* A switch is counted from here until the draft is built, when all nodes are known. */
#define FIRST_SWITCH (UINT32_C (1) << 31)

enum
{
  MAX_VERTICES = 1 << 16,
};

struct PodTopologyDraft
{
  PodTopologySpec *spec;
  GHashTable *names;   /* (element-type utf8) borrowed of the vertices; NULL value */
  GPtrArray *nodes;    /* (element-type utf8) */
  GPtrArray *islands;  /* (element-type utf8) of each node */
  GPtrArray *switches; /* (element-type utf8) */
  GArray *links;       /* (element-type PodGraphLink) ends as PodDraftVertex */
  GArray *routes;      /* (element-type PodGraphRoute) */
  GArray *route_links; /* (element-type uint32_t) */
};

static void
clear_link (void *link)
{
  g_free (((PodGraphLink *) link)->name);
}

PodTopologyDraft *
pod_draft_new (const char *name, const char *chip, PodFabric fabric)
{
  g_return_val_if_fail (name != NULL && chip != NULL, NULL);

  PodTopologyDraft *draft = g_new0 (PodTopologyDraft, 1);
  draft->spec = pod_topology_spec_new ();
  draft->spec->name = g_strdup (name);
  draft->spec->chip = g_strdup (chip);
  draft->spec->fabric = fabric;
  draft->names = g_hash_table_new (g_str_hash, g_str_equal);
  draft->nodes = g_ptr_array_new_with_free_func (g_free);
  draft->islands = g_ptr_array_new_with_free_func (g_free);
  draft->switches = g_ptr_array_new_with_free_func (g_free);
  draft->links = g_array_new (FALSE, TRUE, sizeof (PodGraphLink));
  g_array_set_clear_func (draft->links, clear_link);
  draft->routes = g_array_new (FALSE, TRUE, sizeof (PodGraphRoute));
  draft->route_links = g_array_new (FALSE, TRUE, sizeof (uint32_t));
  return draft;
}

void
pod_draft_free (PodTopologyDraft *draft)
{
  if (draft == NULL)
    return;
  pod_topology_spec_free (draft->spec);
  g_hash_table_unref (draft->names);
  g_ptr_array_unref (draft->nodes);
  g_ptr_array_unref (draft->islands);
  g_ptr_array_unref (draft->switches);
  g_array_unref (draft->links);
  g_array_unref (draft->routes);
  g_array_unref (draft->route_links);
  g_free (draft);
}

void
pod_draft_note (PodTopologyDraft *draft, const char *format, ...)
{
  va_list arguments;

  va_start (arguments, format);
  g_ptr_array_add (draft->spec->notes, g_strdup_vprintf (format, arguments));
  va_end (arguments);
}

void
pod_draft_set_chip (PodTopologyDraft *draft, const char *field, const char *value)
{
  g_ptr_array_add (draft->spec->chip_sets, g_strconcat (field, "=", value, NULL));
}

bool
pod_draft_set_option (PodTopologyDraft *draft, const char *name, const char *value, GError **error)
{
  return pod_topology_option_set (draft->spec, name, value, error);
}

static bool
add_name (PodTopologyDraft *draft, const char *name, GPtrArray *to, GError **error)
{
  if (*name == '\0')
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "a node or switch needs a name");
  else if (g_hash_table_contains (draft->names, name))
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "the name '%s' stands twice", name);
  else if (g_hash_table_size (draft->names) == MAX_VERTICES)
    g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "more than %d nodes and switches",
                 MAX_VERTICES);
  else
    {
      char *copy = g_strdup (name);
      g_ptr_array_add (to, copy);
      g_hash_table_add (draft->names, copy);
      return true;
    }
  return false;
}

bool
pod_draft_add_node (PodTopologyDraft *draft, const char *name, const char *island,
                    PodDraftVertex *out, GError **error)
{
  if (!add_name (draft, name, draft->nodes, error))
    return false;
  g_ptr_array_add (draft->islands, g_strdup (island));
  *out = draft->nodes->len - 1;
  return true;
}

bool
pod_draft_add_switch (PodTopologyDraft *draft, const char *name, PodDraftVertex *out,
                      GError **error)
{
  if (!add_name (draft, name, draft->switches, error))
    return false;
  *out = FIRST_SWITCH + draft->switches->len - 1;
  return true;
}

static const char *
name_of (const PodTopologyDraft *draft, PodDraftVertex vertex)
{
  return vertex >= FIRST_SWITCH ? g_ptr_array_index (draft->switches, vertex - FIRST_SWITCH)
                                : g_ptr_array_index (draft->nodes, vertex);
}

bool
pod_draft_add_link (PodTopologyDraft *draft, const PodDraftLink *link, uint32_t *out_index,
                    GError **error)
{
  static const PodGraphDuplex duplex[] = {
    [POD_DRAFT_FULL] = POD_GRAPH_FULL,
    [POD_DRAFT_HALF] = POD_GRAPH_HALF,
    [POD_DRAFT_SIMPLEX] = POD_GRAPH_SIMPLEX,
  };
  PodGraphLink added = { .from = link->from,
                         .to = link->to,
                         .bytes_per_s = { link->bytes_per_s, link->bytes_per_s },
                         .duplex = duplex[link->duplex] };

  if (link->from == link->to)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "a link from '%s' to itself",
                 name_of (draft, link->from));
  else if (!(link->bytes_per_s > 0) || link->bytes_per_s > 1e18)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                 "a link needs a rate above 0, and at most 1e18 B/s");
  else if (!(link->latency_s >= 0) || !pod_seconds_to_ps (link->latency_s, &added.latency_ps))
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "the latency is longer than the clock");
  else
    {
      added.name = g_strdup (link->name);
      g_array_append_val (draft->links, added);
      if (out_index != NULL)
        *out_index = draft->links->len - 1;
      return true;
    }
  return false;
}

static PodDraftVertex
far_end (const PodGraphLink *link, PodDraftVertex vertex)
{
  return vertex == link->from ? link->to : link->from;
}

bool
pod_draft_add_route (PodTopologyDraft *draft, PodDraftVertex from, PodDraftVertex to,
                     const uint32_t *links, unsigned n_links, GError **error)
{
  PodGraphRoute route
      = { .from = from, .to = to, .begin = draft->route_links->len, .n_links = n_links };
  PodDraftVertex vertex = from;

  for (unsigned i = 0; i < n_links; i++)
    {
      const PodGraphLink *link = &g_array_index (draft->links, PodGraphLink, links[i]);
      g_return_val_if_fail (link->name != NULL, false);
      vertex = far_end (link, vertex);
    }
  if (vertex != to)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "the route from '%s' to '%s' ends at '%s'",
                   name_of (draft, from), name_of (draft, to), name_of (draft, vertex));
      return false;
    }
  g_array_append_vals (draft->route_links, links, n_links);
  g_array_append_val (draft->routes, route);
  return true;
}

/* -- building ---------------------------------------------------------------------------------- */

static uint32_t
vertex_index (const PodTopologyDraft *draft, PodDraftVertex vertex)
{
  return vertex >= FIRST_SWITCH ? draft->nodes->len + (vertex - FIRST_SWITCH) : vertex;
}

static PodGraphSpec *
make_graph (const PodTopologyDraft *draft, GError **error)
{
  g_autoptr (PodGraphSpec) graph = pod_graph_spec_new ();

  graph->n_devices = draft->nodes->len;
  for (unsigned i = 0; i < draft->nodes->len + draft->switches->len; i++)
    {
      bool is_node = i < draft->nodes->len;
      const char *name = is_node ? g_ptr_array_index (draft->nodes, i)
                                 : g_ptr_array_index (draft->switches, i - draft->nodes->len);
      const char *island = is_node ? g_ptr_array_index (draft->islands, i) : "";
      PodGraphVertex vertex
          = { .name = g_strdup (name),
              .island = pod_graph_spec_island (graph, island != NULL ? island : "") };
      g_array_append_val (graph->vertices, vertex);
    }
  for (unsigned i = 0; i < draft->links->len; i++)
    {
      PodGraphLink link = g_array_index (draft->links, PodGraphLink, i);
      link.from = vertex_index (draft, link.from);
      link.to = vertex_index (draft, link.to);
      link.name = g_strdup (link.name);
      g_array_append_val (graph->links, link);
    }
  g_array_append_vals (graph->route_links, draft->route_links->data, draft->route_links->len);
  for (unsigned i = 0; i < draft->routes->len; i++)
    {
      const PodGraphRoute *route = &g_array_index (draft->routes, PodGraphRoute, i);
      g_array_append_val (graph->routes, *route);
      if (!pod_graph_check_route (graph, route, error))
        return NULL;
    }
  return pod_graph_spec_sort_routes (graph, error) ? g_steal_pointer (&graph) : NULL;
}

PodTopology *
pod_draft_build (const PodTopologyDraft *draft, GError **error)
{
  g_autoptr (GPtrArray) assumptions = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (PodTopologySpec) spec = pod_topology_spec_copy (draft->spec);
  g_autoptr (PodChip) chip = pod_chip_load (spec->chip, assumptions, error);

  if (chip == NULL || !pod_topology_spec_set_chip (chip, spec, error))
    return NULL;
  if (spec->fabric == POD_FABRIC_GRAPH)
    {
      if (draft->nodes->len == 0)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: a machine needs a device",
                       spec->name);
          return NULL;
        }
      spec->graph = make_graph (draft, error);
      if (spec->graph == NULL)
        return NULL;
    }
  return pod_topology_build (g_steal_pointer (&spec), g_steal_pointer (&chip), assumptions, error);
}
