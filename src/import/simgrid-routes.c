#include <string.h>

#include "base/error.h"
#include "import/simgrid-private.h"

enum
{
  MAX_DEPTH = 64,
  MAX_COMPARED = 1 << 11,    /* hosts, when routes must be given */
  MAX_MEMBERS = 1 << 11,     /* of a zone with shortest paths */
  MAX_ROUTE_LINKS = 1 << 20, /* of all routes that must be given */
};

/* -- the file's routes ---------------------------------------------------------------------------
 */

/* A path as a zone goes it. */
typedef struct
{
  const PodSgPath *path; /* NULL: none */
  bool is_back;
} Leg;

static uint64_t
pair_key (unsigned from, unsigned to)
{
  return (uint64_t) from << 32 | to;
}

static Leg
find_leg (const PodSgZone *zone, unsigned from, unsigned to)
{
  uint64_t key = pair_key (from, to);
  const PodSgPath *path = g_hash_table_lookup (zone->paths, &key);

  if (path != NULL)
    return (Leg){ path, false };
  key = pair_key (to, from);
  path = g_hash_table_lookup (zone->paths, &key);
  return (Leg){ path != NULL && path->is_symmetrical ? path : NULL, true };
}

/* Floyd and Warshall with the number of links as cost, in SimGrid's order, so that ties fall alike.
 */
static bool
find_shortest (const PodSgPlatform *platform, PodSgZone *zone, GError **error)
{
  unsigned n = zone->members->len;

  if (zone->routing != POD_SG_ROUTING_SHORTEST || n == 0)
    return true;
  if (n > MAX_MEMBERS)
    return pod_xml_error (platform->xml, zone->node, error,
                          "%u members of a zone with shortest paths, more than %d", n, MAX_MEMBERS);
  zone->costs = g_new (uint64_t, (size_t) n * n);
  zone->before = g_new0 (unsigned, (size_t) n *n);
  for (unsigned from = 0; from < n; from++)
    for (unsigned to = 0; to < n; to++)
      {
        Leg leg = find_leg (zone, from, to);
        zone->costs[(size_t) from * n + to] = from == to         ? 0
                                              : leg.path != NULL ? leg.path->steps->len
                                                                 : UINT32_MAX;
        zone->before[(size_t) from * n + to] = from;
      }
  for (unsigned over = 0; over < n; over++)
    for (unsigned from = 0; from < n; from++)
      for (unsigned to = 0; to < n; to++)
        {
          uint64_t cost
              = zone->costs[(size_t) from * n + over] + zone->costs[(size_t) over * n + to];
          if (cost >= zone->costs[(size_t) from * n + to])
            continue;
          zone->costs[(size_t) from * n + to] = cost;
          zone->before[(size_t) from * n + to] = zone->before[(size_t) over * n + to];
        }
  return true;
}

/* The legs from member to member of a zone, in order; false when there are none. */
static bool
list_legs (const PodSgZone *zone, unsigned from, unsigned to, GArray *legs)
{
  unsigned n = zone->members->len;

  if (zone->costs == NULL)
    {
      Leg leg = find_leg (zone, from, to);
      if (leg.path != NULL)
        g_array_append_val (legs, leg);
      return leg.path != NULL;
    }
  if (zone->costs[(size_t) from * n + to] >= UINT32_MAX)
    return false;
  for (unsigned at = to; at != from; at = zone->before[(size_t) from * n + at])
    {
      Leg leg = find_leg (zone, zone->before[(size_t) from * n + at], at);
      g_array_prepend_val (legs, leg);
    }
  return true;
}

/* Where @point is in @zone: itself, or the zone of it that is a member. */
static unsigned
member_of (const PodSgZone *zone, const PodSgPoint *point)
{
  const char *id = point->id;

  for (const PodSgZone *at = point->zone; at != zone; at = at->parent)
    id = at->id;
  return GPOINTER_TO_UINT (g_hash_table_lookup (zone->positions, id)) - 1;
}

static const PodSgZone *
common_zone (const PodSgPoint *a, const PodSgPoint *b)
{
  const PodSgZone *left = a->zone;
  const PodSgZone *right = b->zone;

  while (left != right)
    if (left->depth >= right->depth)
      left = left->parent;
    else
      right = right->parent;
  return left;
}

static void
append_cluster (const PodSgZone *zone, const PodSgPoint *from, const PodSgPoint *to, GArray *wires)
{
  if (from->n_up > 0)
    g_array_append_vals (wires, from->up, from->n_up);
  else if (zone->has_backbone)
    g_array_append_val (wires, zone->way_in);
  if (zone->has_backbone)
    g_array_append_val (wires, zone->backbone);
  if (to->n_down > 0)
    g_array_append_vals (wires, to->down, to->n_down);
  else if (zone->has_backbone)
    g_array_append_val (wires, zone->way_out);
}

/* Appends the draft's links of the file's route; false when it has none. */
static bool
append_route (const PodSgPoint *from, const PodSgPoint *to, unsigned depth, GArray *wires)
{
  g_autoptr (GArray) legs = g_array_new (FALSE, FALSE, sizeof (Leg));
  const PodSgPoint *at = from;

  if (from == to)
    return true;
  const PodSgZone *zone = common_zone (from, to);
  if (zone->routing == POD_SG_ROUTING_CLUSTER)
    {
      append_cluster (zone, from, to, wires);
      return true;
    }
  if (depth == MAX_DEPTH || !list_legs (zone, member_of (zone, from), member_of (zone, to), legs))
    return false;
  for (unsigned i = 0; i < legs->len; i++)
    {
      const Leg *leg = &g_array_index (legs, Leg, i);
      const PodSgPath *path = leg->path;
      const GArray *links = leg->is_back ? path->wires_back : path->wires;
      if (!append_route (at, leg->is_back ? path->to : path->from, depth + 1, wires))
        return false;
      g_array_append_vals (wires, links->data, links->len);
      at = leg->is_back ? path->from : path->to;
    }
  return append_route (at, to, depth + 1, wires);
}

/* -- comparing ------------------------------------------------------------------------------------
 */

typedef struct
{
  PodSgPlatform *platform;
  const PodTopology *topology;
  GArray *wire_of; /* (element-type uint32_t) draft link of each link of the machine */
  GArray *expected;
  GArray *taken;
  unsigned n_missing; /* pairs without a route in the file */
  unsigned n_given;
  unsigned n_route_links;
} Comparison;

/* The next link that is one of the file; len at the end. */
static unsigned
skip_feeders (const Comparison *c, const GArray *wires, unsigned at)
{
  while (at < wires->len
         && g_array_index (c->platform->is_feeder, bool, g_array_index (wires, uint32_t, at)))
    at++;
  return at;
}

static bool
are_alike (const Comparison *c)
{
  unsigned i = skip_feeders (c, c->expected, 0);
  unsigned j = skip_feeders (c, c->taken, 0);

  while (i < c->expected->len && j < c->taken->len)
    {
      if (g_array_index (c->expected, uint32_t, i) != g_array_index (c->taken, uint32_t, j))
        return false;
      i = skip_feeders (c, c->expected, i + 1);
      j = skip_feeders (c, c->taken, j + 1);
    }
  return i == c->expected->len && j == c->taken->len;
}

/* What the file and the machine say of a pair. */
static bool
is_pair_alike (Comparison *c, const PodSgPoint *from, const PodSgPoint *to, bool *out_is_missing)
{
  g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (uint32_t));

  g_array_set_size (c->expected, 0);
  g_array_set_size (c->taken, 0);
  *out_is_missing = !append_route (from, to, 0, c->expected);
  if (*out_is_missing)
    return false;
  if (pod_topology_route (c->topology, from->device, to->device, links))
    for (unsigned i = 0; i < links->len; i++)
      g_array_append_val (c->taken,
                          g_array_index (c->wire_of, uint32_t, g_array_index (links, uint32_t, i)));
  return are_alike (c);
}

/* Gives the draft the route where the machine takes another. */
static bool
compare_pair (Comparison *c, const PodSgPoint *from, const PodSgPoint *to, GError **error)
{
  bool is_missing = false;
  bool is_alike = is_pair_alike (c, from, to, &is_missing);

  c->n_missing += is_missing;
  if (is_alike || is_missing)
    return true;
  c->n_route_links += c->expected->len;
  if (c->n_route_links > MAX_ROUTE_LINKS)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                   "%s: the route from %s to %s is not the cheapest way, as are too many others to "
                   "list them all",
                   c->platform->xml->file, from->id, to->id);
      return false;
    }
  c->n_given++;
  return pod_draft_add_route (c->platform->draft, from->vertex, to->vertex,
                              (const uint32_t *) (const void *) c->expected->data, c->expected->len,
                              error);
}

/* Whether all pairs are alike. The hosts of a cluster leave it by one link each and go on alike, so
 * that two of them (for the ways among themselves) stand for it as senders. */
static bool
are_all_alike (Comparison *c, const GPtrArray *hosts)
{
  const PodSgZone *zone = NULL;
  unsigned n_alike = 0;

  for (unsigned i = 0; i < hosts->len; i++)
    {
      const PodSgPoint *from = g_ptr_array_index (hosts, i);
      n_alike = from->zone == zone ? n_alike + 1 : 0;
      zone = from->zone;
      if (zone->routing == POD_SG_ROUTING_CLUSTER && n_alike >= 2)
        continue;
      for (unsigned j = 0; j < hosts->len; j++)
        {
          bool is_missing = false;
          if (i != j && !is_pair_alike (c, from, g_ptr_array_index (hosts, j), &is_missing))
            return false;
        }
    }
  return true;
}

static bool
compare_all (Comparison *c, GError **error)
{
  g_autoptr (GPtrArray) hosts = g_ptr_array_new ();

  for (unsigned i = 0; i < c->platform->points->len; i++)
    {
      PodSgPoint *point = g_ptr_array_index (c->platform->points, i);
      if (point->is_host)
        g_ptr_array_add (hosts, point);
    }
  if (are_all_alike (c, hosts))
    return true;
  if (hosts->len > MAX_COMPARED)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                   "%s: routes that are not the cheapest ways, between %u hosts: more than %d",
                   c->platform->xml->file, hosts->len, MAX_COMPARED);
      return false;
    }
  for (unsigned i = 0; i < hosts->len; i++)
    for (unsigned j = 0; j < hosts->len; j++)
      if (i != j
          && !compare_pair (c, g_ptr_array_index (hosts, i), g_ptr_array_index (hosts, j), error))
        return false;
  return true;
}

PodTopology *
pod_sg_build (PodSgPlatform *platform, GError **error)
{
  g_autoptr (PodTopology) topology = NULL;
  g_autoptr (GArray) wire_of = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autoptr (GArray) expected = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autoptr (GArray) taken = g_array_new (FALSE, FALSE, sizeof (uint32_t));

  for (unsigned i = 0; i < platform->zones->len; i++)
    if (!find_shortest (platform, g_ptr_array_index (platform->zones, i), error))
      return NULL;
  topology = pod_draft_build (platform->draft, error);
  if (topology == NULL)
    return NULL;
  for (uint32_t wire = 0; wire < platform->is_full->len; wire++)
    {
      g_array_append_val (wire_of, wire);
      if (g_array_index (platform->is_full, bool, wire))
        g_array_append_val (wire_of, wire);
    }
  g_assert (wire_of->len == topology->n_links);
  Comparison c = { .platform = platform,
                   .topology = topology,
                   .wire_of = wire_of,
                   .expected = expected,
                   .taken = taken };
  if (!compare_all (&c, error))
    return NULL;
  if (c.n_missing > 0)
    pod_draft_note (
        platform->draft,
        "%u pairs of hosts have no route in the file: the cheapest way, if there is one, "
        "is taken",
        c.n_missing);
  if (c.n_given == 0 && c.n_missing == 0)
    return g_steal_pointer (&topology);
  return pod_draft_build (platform->draft, error);
}
