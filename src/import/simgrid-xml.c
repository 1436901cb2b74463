#include "import/simgrid-xml.h"

#include <string.h>

#include "base/error.h"
#include "import/simgrid-private.h"

/* -- the platform's parts ------------------------------------------------------------------------ */

static void
zone_free (void *data)
{
  SgZone *zone = data;

  g_free (zone->id);
  g_ptr_array_unref (zone->members);
  g_hash_table_unref (zone->positions);
  g_hash_table_unref (zone->paths);
  g_free (zone->costs);
  g_free (zone->before);
  g_free (zone);
}

static void
point_free (void *data)
{
  g_free (((SgPoint *) data)->id);
  g_free (data);
}

static void
link_free (void *data)
{
  g_free (((SgLink *) data)->id);
  g_free (data);
}

static void
path_free (void *data)
{
  SgPath *path = data;

  g_array_unref (path->steps);
  g_array_unref (path->wires);
  g_array_unref (path->wires_back);
  g_free (path);
}

static void
platform_init (SgPlatform *platform, const PodXml *xml, const char *name)
{
  *platform = (SgPlatform){
    .xml = xml,
    .draft = pod_draft_new (name, "h100", POD_FABRIC_GRAPH),
    .name = g_strdup (name),
    .zones = g_ptr_array_new_with_free_func (zone_free),
    .points = g_ptr_array_new_with_free_func (point_free),
    .links = g_ptr_array_new_with_free_func (link_free),
    .paths = g_ptr_array_new_with_free_func (path_free),
    .zone_by_id = g_hash_table_new (g_str_hash, g_str_equal),
    .point_by_id = g_hash_table_new (g_str_hash, g_str_equal),
    .link_by_id = g_hash_table_new (g_str_hash, g_str_equal),
    .wire_names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
    .is_feeder = g_array_new (FALSE, FALSE, sizeof (bool)),
    .is_full = g_array_new (FALSE, FALSE, sizeof (bool)),
  };
}

static void
platform_clear (SgPlatform *platform)
{
  pod_draft_free (platform->draft);
  g_free (platform->name);
  g_ptr_array_unref (platform->zones);
  g_ptr_array_unref (platform->points);
  g_ptr_array_unref (platform->links);
  g_ptr_array_unref (platform->paths);
  g_hash_table_unref (platform->zone_by_id);
  g_hash_table_unref (platform->point_by_id);
  g_hash_table_unref (platform->link_by_id);
  g_hash_table_unref (platform->wire_names);
  g_array_unref (platform->is_feeder);
  g_array_unref (platform->is_full);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (SgPlatform, platform_clear)

bool
pod_sg_at (const PodXml *xml, xmlNodePtr node, GError **error)
{
  if (error != NULL && *error != NULL && !g_str_has_prefix ((*error)->message, xml->file))
    g_prefix_error (error, "%s:%ld: ", xml->file, xmlGetLineNo (node));
  return false;
}

bool
pod_sg_wire (SgPlatform *platform, const char *name, PodDraftVertex from, PodDraftVertex to,
             double bytes_per_s, double latency_s, PodDraftDuplex duplex, bool is_feeder,
             uint32_t *out, GError **error)
{
  PodDraftLink link = { .from = from,
                        .to = to,
                        .bytes_per_s = bytes_per_s,
                        .latency_s = latency_s,
                        .duplex = duplex,
                        .name = name };
  bool is_full = duplex == POD_DRAFT_FULL;

  if (g_hash_table_contains (platform->wire_names, name))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "the link name '%s' stands twice", name);
      return false;
    }
  if (!pod_draft_add_link (platform->draft, &link, out, error))
    return false;
  g_hash_table_add (platform->wire_names, g_strdup (name));
  g_array_append_val (platform->is_feeder, is_feeder);
  g_array_append_val (platform->is_full, is_full);
  return true;
}

/* Returns: (transfer full) (nullable) NULL with an error when it is absent or empty */
static char *
need_attr (const SgPlatform *platform, xmlNodePtr node, const char *name, GError **error)
{
  g_autofree char *text = pod_xml_attr (node, name);

  if (text != NULL && *text != '\0')
    return g_steal_pointer (&text);
  pod_xml_error (platform->xml, node, error, "<%s> lacks the attribute %s",
                 (const char *) node->name, name);
  return NULL;
}

static bool
is_element (xmlNodePtr node, const char *name)
{
  return strcmp ((const char *) node->name, name) == 0;
}

static bool
is_zone (xmlNodePtr node)
{
  return is_element (node, "zone") || is_element (node, "AS");
}

/* Names of a zone's members are unique in it, ids of zones and of points in the platform. */
static bool
add_member (SgPlatform *platform, SgZone *zone, xmlNodePtr node, char *id, GError **error)
{
  if (g_hash_table_contains (zone->positions, id))
    return pod_xml_error (platform->xml, node, error, "the id '%s' stands twice in zone '%s'", id,
                          zone->id);
  g_ptr_array_add (zone->members, id);
  g_hash_table_insert (zone->positions, id, GUINT_TO_POINTER (zone->members->len));
  return true;
}

static SgZone *
add_zone (SgPlatform *platform, SgZone *parent, xmlNodePtr node, SgRouting routing, GError **error)
{
  g_autofree char *id = need_attr (platform, node, "id", error);

  if (id == NULL)
    return NULL;
  if (g_hash_table_contains (platform->zone_by_id, id))
    return pod_xml_error (platform->xml, node, error, "the zone id '%s' stands twice", id), NULL;
  SgZone *zone = g_new0 (SgZone, 1);
  g_ptr_array_add (platform->zones, zone);
  zone->id = g_steal_pointer (&id);
  zone->node = node;
  zone->parent = parent;
  zone->depth = parent != NULL ? parent->depth + 1 : 0;
  zone->routing = routing;
  zone->members = g_ptr_array_new ();
  zone->positions = g_hash_table_new (g_str_hash, g_str_equal);
  zone->paths = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  g_hash_table_insert (platform->zone_by_id, zone->id, zone);
  return parent == NULL || add_member (platform, parent, node, zone->id, error) ? zone : NULL;
}

static SgPoint *
add_point (SgPlatform *platform, SgZone *zone, xmlNodePtr node, const char *id, bool is_host,
           GError **error)
{
  if (g_hash_table_contains (platform->point_by_id, id))
    return pod_xml_error (platform->xml, node, error, "the id '%s' stands twice", id), NULL;
  SgPoint *point = g_new0 (SgPoint, 1);
  point->id = g_strdup (id);
  point->zone = zone;
  point->is_host = is_host;
  point->place = platform->points->len;
  g_ptr_array_add (platform->points, point);
  g_hash_table_insert (platform->point_by_id, point->id, point);
  if (is_host)
    point->device = platform->n_hosts++;
  if (!(is_host ? pod_draft_add_node (platform->draft, id, NULL, &point->vertex, error)
                : pod_draft_add_switch (platform->draft, id, &point->vertex, error)))
    return pod_sg_at (platform->xml, node, error), NULL;
  return add_member (platform, zone, node, point->id, error) ? point : NULL;
}

/* -- elements, first pass: all but routes --------------------------------------------------------- */

static bool
read_link (SgPlatform *platform, xmlNodePtr node, GError **error)
{
  g_autofree char *id = need_attr (platform, node, "id", error);

  if (id == NULL)
    return false;
  if (g_hash_table_contains (platform->link_by_id, id))
    return pod_xml_error (platform->xml, node, error, "the link id '%s' stands twice", id);
  SgLink *link = g_new0 (SgLink, 1);
  g_ptr_array_add (platform->links, link);
  link->id = g_steal_pointer (&id);
  link->node = node;
  g_hash_table_insert (platform->link_by_id, link->id, link);
  return pod_sg_bandwidth (platform->xml, node, "bandwidth", true, &link->bytes_per_s, error)
         && pod_sg_time (platform->xml, node, "latency", &link->latency_s, error)
         && pod_sg_policy (platform->xml, node, "sharing_policy", &link->policy, error);
}

/* A <cluster> among other zones: hosts with a link each, a router, a backbone. */
static bool
fill_cluster (SgPlatform *platform, SgZone *zone, const SgCluster *cluster, GError **error)
{
  g_autofree char *router_id = pod_xml_attr (cluster->node, "router_id");
  g_autofree char *name = router_id != NULL && *router_id != '\0'
                              ? g_strdup (router_id)
                              : g_strdup_printf ("%s%s_router%s", cluster->prefix, cluster->id,
                                                 cluster->suffix);
  g_autofree char *backbone_name = g_strconcat (cluster->id, "_backbone", NULL);
  SgWire backbone
      = { backbone_name, cluster->backbone_bytes_per_s, cluster->backbone_latency_s };

  zone->router = add_point (platform, zone, cluster->node, name, false, error);
  if (zone->router == NULL
      || !pod_sg_cluster_open (platform, zone, backbone.bytes_per_s > 0 ? &backbone : NULL, error))
    return false;
  for (unsigned i = 0; i < cluster->radical->len; i++)
    {
      g_autofree char *id = pod_sg_cluster_host (cluster, i);
      g_autofree char *up_name = g_strdup_printf (
          "%s_link_%u%s", cluster->id, g_array_index (cluster->radical, unsigned, i),
          cluster->policy == SG_SHARED ? "" : "_UP");
      g_autofree char *down_name = g_strdup_printf (
          "%s_link_%u_DOWN", cluster->id, g_array_index (cluster->radical, unsigned, i));
      g_autofree char *limit_name = g_strconcat (id, "_limiter", NULL);
      SgWire up = { up_name, cluster->bytes_per_s, cluster->latency_s };
      SgWire down = { down_name, cluster->bytes_per_s, cluster->latency_s };
      SgWire limiter = { limit_name, cluster->limiter_bytes_per_s, 0 };
      SgPoint *host = add_point (platform, zone, cluster->node, id, true, error);
      if (host == NULL
          || !pod_sg_cluster_add (platform, zone, host, &up, &down, cluster->policy == SG_SHARED,
                                  limiter.bytes_per_s > 0 ? &limiter : NULL, error))
        return false;
    }
  return true;
}

static bool
read_cluster (SgPlatform *platform, SgZone *parent, xmlNodePtr node, GError **error)
{
  g_auto (SgCluster) cluster = { 0 };

  if (!pod_sg_cluster_read (platform->xml, node, &cluster, error))
    return false;
  if (strcmp (cluster.shape, "FLAT") != 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                   "%s:%ld: a %s cluster is read when it is alone in its platform only",
                   platform->xml->file, xmlGetLineNo (node), cluster.shape);
      return false;
    }
  SgZone *zone = add_zone (platform, parent, node, SG_ROUTING_CLUSTER, error);
  return zone != NULL && fill_cluster (platform, zone, &cluster, error);
}

static bool
read_routing (const SgPlatform *platform, xmlNodePtr node, SgRouting *out, GError **error)
{
  static const struct
  {
    const char *name;
    SgRouting routing;
  } routings[] = {
    { "Full", SG_ROUTING_FULL },         { "Floyd", SG_ROUTING_SHORTEST },
    { "Dijkstra", SG_ROUTING_SHORTEST }, { "DijkstraCache", SG_ROUTING_SHORTEST },
    { "Cluster", SG_ROUTING_CLUSTER },   { "None", SG_ROUTING_NONE },
    { "Vivaldi", SG_ROUTING_NONE },
  };
  g_autofree char *text = need_attr (platform, node, "routing", error);

  if (text == NULL)
    return false;
  for (size_t i = 0; i < G_N_ELEMENTS (routings); i++)
    if (g_ascii_strcasecmp (text, routings[i].name) == 0)
      {
        *out = routings[i].routing;
        return true;
      }
  return pod_xml_error (platform->xml, node, error,
                        "<%s> routing: expected Full, Floyd, Dijkstra, DijkstraCache, Cluster, "
                        "Vivaldi or None, got '%s'",
                        (const char *) node->name, text);
}

/* What is no part of the network, and what is read in the second pass. */
static bool
is_left_to_later (xmlNodePtr node)
{
  static const char *const names[] = { "prop",     "route",     "zoneRoute", "ASroute",
                                       "host_link", "backbone", "config",    "disk" };

  for (size_t i = 0; i < G_N_ELEMENTS (names); i++)
    if (is_element (node, names[i]))
      return true;
  return false;
}

static bool read_zone (SgPlatform *platform, SgZone *parent, xmlNodePtr node, GError **error);

static bool
read_member (SgPlatform *platform, SgZone *zone, xmlNodePtr node, GError **error)
{
  if (is_zone (node))
    return read_zone (platform, zone, node, error);
  if (is_element (node, "cluster"))
    return read_cluster (platform, zone, node, error);
  if (is_element (node, "link"))
    return read_link (platform, node, error);
  if (is_element (node, "host") || is_element (node, "router"))
    {
      g_autofree char *id = need_attr (platform, node, "id", error);
      return id != NULL
             && add_point (platform, zone, node, id, is_element (node, "host"), error) != NULL;
    }
  if (is_left_to_later (node))
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "%s:%ld: <%s> is not read",
               platform->xml->file, xmlGetLineNo (node), (const char *) node->name);
  return false;
}

/* The gateway of a zone with cluster routing: its router, else a switch that nobody named. */
static bool
open_cluster_zone (SgPlatform *platform, SgZone *zone, GError **error)
{
  xmlNodePtr backbone = pod_xml_child (zone->node, "backbone");
  g_autofree char *id = NULL;
  SgWire wire = { 0 };

  for (unsigned i = 0; i < platform->points->len; i++)
    {
      SgPoint *point = g_ptr_array_index (platform->points, i);
      if (point->zone == zone && !point->is_host)
        zone->router = point;
    }
  if (zone->router == NULL)
    {
      g_autofree char *name = g_strdup_printf ("switch of %s", zone->id);
      zone->router = add_point (platform, zone, zone->node, name, false, error);
    }
  if (zone->router == NULL)
    return false;
  if (backbone != NULL)
    {
      id = need_attr (platform, backbone, "id", error);
      wire.name = id;
      if (id == NULL
          || !pod_sg_bandwidth (platform->xml, backbone, "bandwidth", true, &wire.bytes_per_s,
                                error)
          || !pod_sg_time (platform->xml, backbone, "latency", &wire.latency_s, error))
        return false;
    }
  return pod_sg_cluster_open (platform, zone, backbone != NULL ? &wire : NULL, error);
}

static bool
read_zone (SgPlatform *platform, SgZone *parent, xmlNodePtr node, GError **error)
{
  SgRouting routing = SG_ROUTING_FULL;
  g_autofree char *text = pod_xml_attr (node, "routing");

  if (!read_routing (platform, node, &routing, error))
    return false;
  SgZone *zone = add_zone (platform, parent, node, routing, error);
  if (zone == NULL)
    return false;
  for (xmlNodePtr child = pod_xml_child (node, NULL); child != NULL;
       child = pod_xml_next (child, NULL))
    if (!read_member (platform, zone, child, error))
      return false;
  if (g_ascii_strcasecmp (text, "Vivaldi") == 0 && zone->members->len > 1)
    return pod_xml_error (platform->xml, node, error,
                          "Vivaldi zones make latencies of coordinates: not modelled");
  return routing != SG_ROUTING_CLUSTER || open_cluster_zone (platform, zone, error);
}

/* -- second pass: routes -------------------------------------------------------------------------- */

/* A link's id, or that of one direction of a SPLITDUPLEX link: L_UP, L_DOWN. */
static bool
find_step (const SgPlatform *platform, xmlNodePtr node, const char *id, SgStep *out, GError **error)
{
  g_autofree char *stem = g_strdup (id);

  out->link = g_hash_table_lookup (platform->link_by_id, id);
  if (out->link == NULL && (g_str_has_suffix (id, "_UP") || g_str_has_suffix (id, "_DOWN")))
    {
      *strrchr (stem, '_') = '\0';
      out->link = g_hash_table_lookup (platform->link_by_id, stem);
      out->is_down = g_str_has_suffix (id, "_DOWN");
      if (out->link != NULL && out->link->policy != SG_SPLITDUPLEX)
        out->link = NULL;
    }
  return out->link != NULL
         || pod_xml_error (platform->xml, node, error, "<%s>: no link has the id '%s'",
                           (const char *) node->name, id);
}

static bool
read_step (const SgPlatform *platform, xmlNodePtr node, SgStep *out, GError **error)
{
  g_autofree char *id = need_attr (platform, node, "id", error);
  g_autofree char *direction = pod_xml_attr (node, "direction");
  bool is_named = false;

  if (id == NULL || !find_step (platform, node, id, out, error))
    return false;
  is_named = strcmp (out->link->id, id) != 0;
  if (direction == NULL || strcmp (direction, "NONE") == 0)
    return out->link->policy != SG_SPLITDUPLEX || is_named
           || pod_xml_error (platform->xml, node, error,
                             "link '%s' is SPLITDUPLEX: a direction (UP or DOWN) is needed", id);
  if (strcmp (direction, "UP") != 0 && strcmp (direction, "DOWN") != 0)
    return pod_xml_error (platform->xml, node, error,
                          "<link_ctn> direction: expected UP, DOWN or NONE, got '%s'", direction);
  if (out->link->policy == SG_SPLITDUPLEX && !is_named)
    out->is_down = strcmp (direction, "DOWN") == 0;
  return true;
}

static SgPoint *
find_point (const SgPlatform *platform, xmlNodePtr node, const char *attribute, GError **error)
{
  g_autofree char *id = need_attr (platform, node, attribute, error);
  SgPoint *point = id != NULL ? g_hash_table_lookup (platform->point_by_id, id) : NULL;

  if (id != NULL && point == NULL)
    pod_xml_error (platform->xml, node, error, "<%s> %s: no host or router '%s'",
                   (const char *) node->name, attribute, id);
  return point;
}

static bool
is_within (const SgPoint *point, const SgZone *zone, const char *member)
{
  const char *id = point->id;
  const SgZone *at = point->zone;

  for (; at != NULL && at != zone; at = at->parent)
    id = at->id;
  return at == zone && strcmp (id, member) == 0;
}

/* The position in @zone of what src or dst names, and the point where the links begin or end. */
static bool
find_end (const SgPlatform *platform, const SgZone *zone, xmlNodePtr node, const char *attribute,
          const char *gateway, unsigned *out_member, SgPoint **out_point, GError **error)
{
  g_autofree char *id = need_attr (platform, node, attribute, error);

  if (id == NULL)
    return false;
  *out_member = GPOINTER_TO_UINT (g_hash_table_lookup (zone->positions, id)) - 1;
  if (*out_member == UINT_MAX)
    return pod_xml_error (platform->xml, node, error, "<%s> %s: '%s' is not in zone '%s'",
                          (const char *) node->name, attribute, id, zone->id);
  *out_point = find_point (platform, node, gateway, error);
  if (*out_point == NULL)
    return false;
  return is_within (*out_point, zone, id)
         || pod_xml_error (platform->xml, node, error, "<%s> %s: '%s' is not in '%s'",
                           (const char *) node->name, gateway, (*out_point)->id, id);
}

static bool
read_steps (const SgPlatform *platform, SgPath *path, GError **error)
{
  for (xmlNodePtr node = pod_xml_child (path->node, NULL); node != NULL;
       node = pod_xml_next (node, NULL))
    {
      SgStep step = { 0 };
      if (!is_element (node, "link_ctn"))
        return pod_xml_error (platform->xml, node, error, "<%s> is not expected in a route",
                              (const char *) node->name);
      if (!read_step (platform, node, &step, error))
        return false;
      step.link->is_used = true;
      g_array_append_val (path->steps, step);
    }
  return path->steps->len > 0
         || pod_xml_error (platform->xml, path->node, error, "a route without links");
}

static bool
add_path (SgZone *zone, unsigned from, unsigned to, SgPath *path)
{
  uint64_t *key = g_new (uint64_t, 1);

  *key = (uint64_t) from << 32 | to;
  return g_hash_table_insert (zone->paths, key, path);
}

static bool
read_route (SgPlatform *platform, SgZone *zone, xmlNodePtr node, GError **error)
{
  bool is_plain = is_element (node, "route");
  g_autofree char *symmetrical = pod_xml_attr (node, "symmetrical");
  unsigned from = 0;
  unsigned to = 0;
  SgPoint *first = NULL;
  SgPoint *last = NULL;

  if (!find_end (platform, zone, node, "src", is_plain ? "src" : "gw_src", &from, &first, error)
      || !find_end (platform, zone, node, "dst", is_plain ? "dst" : "gw_dst", &to, &last, error))
    return false;
  if (from == to) /* to itself: nothing crosses it here */
    return true;
  SgPath *path = g_new0 (SgPath, 1);
  g_ptr_array_add (platform->paths, path);
  path->node = node;
  path->from = first;
  path->to = last;
  path->steps = g_array_new (FALSE, TRUE, sizeof (SgStep));
  path->wires = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  path->wires_back = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  path->is_symmetrical = symmetrical == NULL || g_ascii_strcasecmp (symmetrical, "no") != 0;
  if (!read_steps (platform, path, error))
    return false;
  return add_path (zone, from, to, path)
         || pod_xml_error (platform->xml, node, error, "this route stands twice");
}

/* One of a host's links in a zone with cluster routing. */
static bool
find_wire (const SgPlatform *platform, xmlNodePtr node, const char *attribute, SgWire *out,
           GError **error)
{
  g_autofree char *id = need_attr (platform, node, attribute, error);
  SgStep step = { 0 };

  if (id == NULL || !find_step (platform, node, id, &step, error))
    return false;
  step.link->is_used = false; /* no route lays it out */
  if (step.link->policy == SG_FATPIPE)
    return pod_xml_error (platform->xml, step.link->node, error,
                          "a FATPIPE link gives each flow its whole rate: there is no such wire");
  *out = (SgWire){ NULL, step.link->bytes_per_s, step.link->latency_s };
  return true;
}

static bool
read_host_link (SgPlatform *platform, SgZone *zone, xmlNodePtr node, GError **error)
{
  g_autofree char *up_id = pod_xml_attr (node, "up");
  g_autofree char *down_id = pod_xml_attr (node, "down");
  SgPoint *host = find_point (platform, node, "id", error);
  SgWire up = { 0 };
  SgWire down = { 0 };

  if (host == NULL || !find_wire (platform, node, "up", &up, error)
      || !find_wire (platform, node, "down", &down, error))
    return false;
  if (host->zone != zone || !host->is_host || zone->routing != SG_ROUTING_CLUSTER)
    return pod_xml_error (platform->xml, node, error,
                          "<host_link> is for a host of its own zone, which has Cluster routing");
  if (host->n_up > 0)
    return pod_xml_error (platform->xml, node, error, "a second <host_link> of '%s'", host->id);
  up.name = up_id;
  down.name = down_id;
  return pod_sg_cluster_add (platform, zone, host, &up, &down, strcmp (up_id, down_id) == 0, NULL,
                             error)
         || pod_sg_at (platform->xml, node, error);
}

static bool
read_zone_routes (SgPlatform *platform, SgZone *zone, GError **error)
{
  for (xmlNodePtr node = pod_xml_child (zone->node, NULL); node != NULL;
       node = pod_xml_next (node, NULL))
    {
      bool is_route = is_element (node, "route") || is_element (node, "zoneRoute")
                      || is_element (node, "ASroute");
      if (is_route ? !read_route (platform, zone, node, error)
                   : is_element (node, "host_link")
                         && !read_host_link (platform, zone, node, error))
        return false;
    }
  return true;
}

/* -- the whole ------------------------------------------------------------------------------------ */

/* The element that is the only one in its platform; NULL when there are others. */
static xmlNodePtr
only_element (xmlNodePtr parent)
{
  xmlNodePtr only = NULL;

  for (xmlNodePtr node = pod_xml_child (parent, NULL); node != NULL; node = pod_xml_next (node, NULL))
    {
      if (is_element (node, "config") || is_element (node, "prop"))
        continue;
      if (only != NULL)
        return NULL;
      only = node;
    }
  return only != NULL && is_zone (only) ? only_element (only) : only;
}

/* Clusters that make a machine of their own: all but those with a backbone. */
static bool
is_machine (const SgCluster *cluster)
{
  return strcmp (cluster->shape, "FLAT") != 0
         || (!(cluster->backbone_bytes_per_s > 0) && !(cluster->limiter_bytes_per_s > 0)
             && cluster->policy == SG_SPLITDUPLEX);
}

static bool
read_platform (SgPlatform *platform, GError **error)
{
  xmlNodePtr root = pod_xml_root (platform->xml);

  for (xmlNodePtr node = pod_xml_child (root, NULL); node != NULL; node = pod_xml_next (node, NULL))
    {
      if (is_element (node, "config"))
        continue;
      if (platform->zones->len > 0)
        return pod_xml_error (platform->xml, node, error, "a platform has one outermost zone");
      if (is_element (node, "cluster") ? !read_cluster (platform, NULL, node, error)
          : is_zone (node)             ? !read_zone (platform, NULL, node, error)
                                       : !read_member (platform, NULL, node, error))
        return false;
    }
  if (platform->n_hosts == 0)
    return pod_xml_error (platform->xml, root, error, "a platform without hosts");
  for (unsigned i = 0; i < platform->zones->len; i++)
    if (!read_zone_routes (platform, g_ptr_array_index (platform->zones, i), error))
      return false;
  for (unsigned i = 0; i < platform->points->len; i++)
    {
      const SgPoint *point = g_ptr_array_index (platform->points, i);
      if (point->is_host && point->zone->routing == SG_ROUTING_CLUSTER && point->n_up == 0)
        return pod_xml_error (platform->xml, point->zone->node, error, "host '%s' has no <host_link>",
                              point->id);
    }
  return true;
}

static bool
check_root (const PodXml *xml, GError **error)
{
  xmlNodePtr root = pod_xml_root (xml);
  g_autofree char *version = pod_xml_attr (root, "version");

  if (!is_element (root, "platform"))
    return pod_xml_error (xml, root, error, "expected <platform>, got <%s>",
                          (const char *) root->name);
  return (version != NULL && g_ascii_strtod (version, NULL) >= 4)
         || pod_xml_error (xml, root, error,
                           "<platform> version: expected 4 or 4.1, got '%s' (SimGrid's "
                           "simgrid_update_xml brings older files up to date)",
                           version != NULL ? version : "");
}

static PodTopology *
make_machine (const PodXml *xml, const char *name, GError **error)
{
  g_auto (SgPlatform) platform = { 0 };

  platform_init (&platform, xml, name);
  pod_draft_note (platform.draft, "the file describes hosts, not chips: they are taken for h100");
  if (!read_platform (&platform, error) || !pod_sg_layout (&platform, error))
    return NULL;
  return pod_sg_build (&platform, error);
}

PodTopology *
pod_simgrid_xml_read (const char *file, GError **error)
{
  g_autoptr (PodXml) xml = pod_xml_load_foreign (file, error);
  g_autofree char *base = g_path_get_basename (file);
  g_auto (SgCluster) cluster = { 0 };

  if (xml == NULL || !check_root (xml, error))
    return NULL;
  g_autofree char *name
      = g_str_has_suffix (base, ".xml") ? g_strndup (base, strlen (base) - 4) : g_strdup (base);
  const char *title = *name != '\0' ? name : "simgrid";
  xmlNodePtr only = only_element (pod_xml_root (xml));
  bool is_cluster = only != NULL && is_element (only, "cluster");
  if (is_cluster && !pod_sg_cluster_read (xml, only, &cluster, error))
    return NULL;
  PodTopology *topology = is_cluster && is_machine (&cluster)
                              ? pod_sg_cluster_machine (xml, &cluster, title, error)
                              : make_machine (xml, title, error);
  if (topology == NULL && error != NULL && *error != NULL
      && !g_str_has_prefix ((*error)->message, file))
    g_prefix_error (error, "%s: ", file);
  return topology;
}
