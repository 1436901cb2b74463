#include "base/error.h"
#include "import/simgrid-private.h"

/* SimGrid's links have no ends: routes are lists of them. Here they get some. Each link has two
 * sides; a route says that its first point is at a side of its first link, that the other side of
 * that is a side of the next, and so on, and a union-find gathers what is one place. A link for
 * which this does not come out (three hosts on it, say) is a bus: a switch to enter, one to leave,
 * and the link between them, so that all its traffic shares it whichever way it goes. */

#define NOWHERE UINT_MAX

typedef struct
{
  PodSgPlatform *platform;
  unsigned *parent;
  unsigned *size;
  PodSgPoint **point; /* (nullable) of each root: the point that is there */
  unsigned n_places;
  PodDraftVertex *vertex; /* of each root */
  bool *has_vertex;
} Layout;

static void
layout_clear (Layout *layout)
{
  g_free (layout->parent);
  g_free (layout->size);
  g_free (layout->point);
  g_free (layout->vertex);
  g_free (layout->has_vertex);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Layout, layout_clear)

static unsigned
find (Layout *layout, unsigned place)
{
  while (layout->parent[place] != place)
    {
      layout->parent[place] = layout->parent[layout->parent[place]];
      place = layout->parent[place];
    }
  return place;
}

static bool
can_join (Layout *layout, unsigned a, unsigned b)
{
  unsigned left = find (layout, a);
  unsigned right = find (layout, b);

  return left == right || layout->point[left] == NULL || layout->point[right] == NULL;
}

static void
unite (Layout *layout, unsigned a, unsigned b)
{
  unsigned left = find (layout, a);
  unsigned right = find (layout, b);

  if (left == right)
    return;
  layout->parent[right] = left;
  layout->size[left] += layout->size[right];
  if (layout->point[left] == NULL)
    layout->point[left] = layout->point[right];
}

static void
reset (Layout *layout)
{
  const GPtrArray *points = layout->platform->points;

  for (unsigned i = 0; i < layout->n_places; i++)
    {
      layout->parent[i] = i;
      layout->size[i] = 1;
      layout->point[i] = i < points->len ? g_ptr_array_index (points, i) : NULL;
    }
}

/* The side at which a route that is at @at enters the link: 0, 1, or 2 for none. @to: where the
 * route ends, when this is its last link. */
static unsigned
choose_side (Layout *layout, const PodSgStep *step, unsigned at, const PodSgPoint *to)
{
  const PodSgLink *link = step->link;
  bool is_free = link->policy != POD_SG_SPLITDUPLEX;
  unsigned best = 2;

  for (unsigned side = 0; side < 2; side++)
    {
      unsigned entry = link->side[side];
      unsigned exit = link->side[1 - side];
      if (!is_free && side != (step->is_down ? 1U : 0U))
        continue;
      if (at != NOWHERE && !can_join (layout, entry, at))
        continue;
      if (at != NOWHERE ? find (layout, entry) == find (layout, at)
                        : to != NULL && find (layout, exit) == find (layout, to->place))
        return side;
      if (best == 2
          || layout->size[find (layout, entry)] < layout->size[find (layout, link->side[best])])
        best = side;
    }
  return best;
}

/* Follows a route. Returns: the link that must become a bus, NULL when all fits */
static PodSgLink *
walk (Layout *layout, PodSgPath *path)
{
  unsigned at = path->from->place;
  PodSgLink *last = NULL;

  for (unsigned i = 0; i < path->steps->len; i++)
    {
      PodSgStep *step = &g_array_index (path->steps, PodSgStep, i);
      last = step->link;
      if (step->link->is_bus)
        {
          at = NOWHERE;
          continue;
        }
      unsigned side = choose_side (layout, step, at, i + 1 == path->steps->len ? path->to : NULL);
      if (side == 2)
        return step->link;
      if (at != NOWHERE)
        unite (layout, at, step->link->side[side]);
      step->is_reverse = side == 1;
      at = step->link->side[1 - side];
    }
  if (at == NOWHERE)
    return NULL;
  if (!can_join (layout, at, path->to->place))
    return last;
  unite (layout, at, path->to->place);
  return NULL;
}

/* One attempt. Returns: false when a link became a bus, so that all begins anew */
static bool
attempt (Layout *layout)
{
  const PodSgPlatform *platform = layout->platform;

  reset (layout);
  for (unsigned i = 0; i < platform->paths->len; i++)
    {
      PodSgLink *link = walk (layout, g_ptr_array_index (platform->paths, i));
      if (link == NULL)
        continue;
      link->is_bus = true;
      return false;
    }
  for (unsigned i = 0; i < platform->links->len; i++)
    {
      PodSgLink *link = g_ptr_array_index (platform->links, i);
      if (!link->is_used || link->is_bus
          || find (layout, link->side[0]) != find (layout, link->side[1]))
        continue;
      link->is_bus = true;
      return false;
    }
  return true;
}

/* -- wires ---------------------------------------------------------------------------------------
 */

/* The switch or host at a place. */
static bool
vertex_at (Layout *layout, unsigned place, const PodSgLink *link, PodDraftVertex *out,
           GError **error)
{
  unsigned root = find (layout, place);

  if (!layout->has_vertex[root])
    {
      g_autofree char *name = g_strdup_printf ("junction%u of %s", root, link->id);
      layout->has_vertex[root] = true;
      if (layout->point[root] != NULL)
        layout->vertex[root] = layout->point[root]->vertex;
      else if (!pod_draft_add_switch (layout->platform->draft, name, &layout->vertex[root], error))
        return pod_sg_at (layout->platform->xml, link->node, error);
    }
  *out = layout->vertex[root];
  return true;
}

static bool
make_wire (Layout *layout, PodSgLink *link, GError **error)
{
  PodDraftVertex from = 0;
  PodDraftVertex to = 0;

  if (!vertex_at (layout, link->side[0], link, &from, error)
      || !vertex_at (layout, link->side[1], link, &to, error))
    return false;
  return pod_sg_wire (layout->platform, link->id, from, to, link->bytes_per_s, link->latency_s,
                      link->policy == POD_SG_SHARED ? POD_DRAFT_HALF : POD_DRAFT_FULL, false,
                      &link->wire, error)
         || pod_sg_at (layout->platform->xml, link->node, error);
}

/* SHARED: one bus for both directions; SPLITDUPLEX: one for each. */
static unsigned
bus_of (const PodSgStep *step, bool is_back)
{
  return step->link->policy == POD_SG_SPLITDUPLEX && step->is_down != is_back ? 1 : 0;
}

static bool
make_bus (Layout *layout, PodSgLink *link, unsigned which, GError **error)
{
  const char *direction = link->policy == POD_SG_SHARED ? "" : which == 0 ? "_UP" : "_DOWN";
  g_autofree char *name = g_strconcat (link->id, direction, NULL);
  g_autofree char *in = g_strconcat (name, " in", NULL);
  g_autofree char *out = g_strconcat (name, " out", NULL);
  PodTopologyDraft *draft = layout->platform->draft;

  if (link->has_bus[which])
    return true;
  link->has_bus[which] = true;
  return (pod_draft_add_switch (draft, in, &link->in[which], error)
          && pod_draft_add_switch (draft, out, &link->out[which], error)
          && pod_sg_wire (layout->platform, name, link->in[which], link->out[which],
                          link->bytes_per_s, link->latency_s, POD_DRAFT_SIMPLEX, false,
                          &link->bus[which], error))
         || pod_sg_at (layout->platform->xml, link->node, error);
}

/* From a bus or to one, at the bus's rate, so that it never is the bottleneck. */
static bool
feed (Layout *layout, PodDraftVertex from, PodDraftVertex to, const PodSgLink *bus,
      GHashTable *feeders, GArray *wires, GError **error)
{
  g_autofree char *name = g_strdup_printf ("feeder %u-%u", from, to);
  void *known = g_hash_table_lookup (feeders, name);
  uint32_t wire = GPOINTER_TO_UINT (known) - 1;

  if (from == to)
    return true;
  if (known == NULL)
    {
      if (!pod_sg_wire (layout->platform, name, from, to, bus->bytes_per_s, 0, POD_DRAFT_SIMPLEX,
                        true, &wire, error))
        return pod_sg_at (layout->platform->xml, bus->node, error);
      g_hash_table_insert (feeders, g_steal_pointer (&name), GUINT_TO_POINTER (wire + 1));
    }
  g_array_append_val (wires, wire);
  return true;
}

/* The draft's links of a path, forwards or backwards. */
static bool
list_wires (Layout *layout, const PodSgPath *path, bool is_back, GHashTable *feeders,
            GError **error)
{
  GArray *wires = is_back ? path->wires_back : path->wires;
  PodDraftVertex at = (is_back ? path->to : path->from)->vertex;
  const PodSgLink *bus = NULL; /* that it comes from */

  for (unsigned i = 0; i < path->steps->len; i++)
    {
      const PodSgStep *step
          = &g_array_index (path->steps, PodSgStep, is_back ? path->steps->len - 1 - i : i);
      PodSgLink *link = step->link;
      unsigned entry_side = step->is_reverse != is_back ? 1 : 0;
      unsigned which = bus_of (step, is_back);
      PodDraftVertex entry = 0;
      PodDraftVertex exit = 0;
      if (link->is_bus)
        {
          if (!make_bus (layout, link, which, error))
            return false;
          entry = link->in[which];
          exit = link->out[which];
        }
      else if (!vertex_at (layout, link->side[entry_side], link, &entry, error)
               || !vertex_at (layout, link->side[1 - entry_side], link, &exit, error))
        return false;
      const PodSgLink *rate = link->is_bus ? link : bus;
      if (at != entry && !feed (layout, at, entry, rate, feeders, wires, error))
        return false;
      g_array_append_val (wires, *(link->is_bus ? &link->bus[which] : &link->wire));
      at = exit;
      bus = link->is_bus ? link : NULL;
    }
  PodDraftVertex end = (is_back ? path->from : path->to)->vertex;
  return at == end || feed (layout, at, end, bus, feeders, wires, error);
}

static bool
make_wires (Layout *layout, GError **error)
{
  const PodSgPlatform *platform = layout->platform;
  g_autoptr (GHashTable) feeders = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (unsigned i = 0; i < platform->links->len; i++)
    {
      PodSgLink *link = g_ptr_array_index (platform->links, i);
      if (link->is_used && !link->is_bus && !make_wire (layout, link, error))
        return false;
    }
  for (unsigned i = 0; i < platform->paths->len; i++)
    {
      const PodSgPath *path = g_ptr_array_index (platform->paths, i);
      if (!list_wires (layout, path, false, feeders, error)
          || (path->is_symmetrical && !list_wires (layout, path, true, feeders, error)))
        return false;
    }
  return true;
}

static bool
check_policies (const PodSgPlatform *platform, GError **error)
{
  for (unsigned i = 0; i < platform->links->len; i++)
    {
      const PodSgLink *link = g_ptr_array_index (platform->links, i);
      if (link->is_used && link->policy == POD_SG_FATPIPE)
        return pod_xml_error (
            platform->xml, link->node, error,
            "a FATPIPE link gives each flow its whole rate: there is no such wire");
    }
  return true;
}

bool
pod_sg_layout (PodSgPlatform *platform, GError **error)
{
  g_auto (Layout) layout = { .platform = platform };

  if (!check_policies (platform, error))
    return false;
  layout.n_places = platform->points->len + 2 * platform->links->len;
  layout.parent = g_new0 (unsigned, layout.n_places);
  layout.size = g_new0 (unsigned, layout.n_places);
  layout.point = g_new0 (PodSgPoint *, layout.n_places);
  layout.vertex = g_new0 (PodDraftVertex, layout.n_places);
  layout.has_vertex = g_new0 (bool, layout.n_places);
  for (unsigned i = 0; i < platform->links->len; i++)
    {
      PodSgLink *link = g_ptr_array_index (platform->links, i);
      link->side[0] = platform->points->len + 2 * i;
      link->side[1] = link->side[0] + 1;
    }
  while (!attempt (&layout)) /* each makes one more link a bus */
    ;
  return make_wires (&layout, error);
}
