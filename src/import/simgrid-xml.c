#include "import/simgrid-xml.h"

#include <string.h>

#include "base/error.h"
#include "import/simgrid-private.h"

/* -- the platform's parts ------------------------------------------------------------------------
 */

static void
zone_free (void *data)
{
  PodSgZone *zone = data;

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
  g_free (((PodSgPoint *) data)->id);
  g_free (data);
}

static void
link_free (void *data)
{
  g_free (((PodSgLink *) data)->id);
  g_free (data);
}

static void
path_free (void *data)
{
  PodSgPath *path = data;

  g_array_unref (path->steps);
  g_array_unref (path->wires);
  g_array_unref (path->wires_back);
  g_free (path);
}

static void
platform_init (PodSgPlatform *platform, const PodXml *xml, const char *name)
{
  *platform = (PodSgPlatform){
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
platform_clear (PodSgPlatform *platform)
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

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodSgPlatform, platform_clear)

bool
pod_sg_at (const PodXml *xml, PodXmlNode *node, GError **error)
{
  if (error != NULL && *error != NULL && !g_str_has_prefix ((*error)->message, xml->file))
    g_prefix_error (error, "%s:%u: ", xml->file, node->line);
  return false;
}

bool
pod_sg_wire (PodSgPlatform *platform, const char *name, PodDraftVertex from, PodDraftVertex to,
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
char *
pod_sg_need_attr (const PodSgPlatform *platform, PodXmlNode *node, const char *name, GError **error)
{
  g_autofree char *text = pod_xml_attr (node, name);

  if (text != NULL && *text != '\0')
    return g_steal_pointer (&text);
  pod_xml_error (platform->xml, node, error, "<%s> lacks the attribute %s",
                 node->name, name);
  return NULL;
}

bool
pod_sg_is (PodXmlNode *node, const char *name)
{
  return strcmp (node->name, name) == 0;
}

static bool
is_zone (PodXmlNode *node)
{
  return pod_sg_is (node, "zone") || pod_sg_is (node, "AS");
}

/* Names of a zone's members are unique in it, ids of zones and of points in the platform. */
static bool
add_member (PodSgPlatform *platform, PodSgZone *zone, PodXmlNode *node, char *id, GError **error)
{
  if (g_hash_table_contains (zone->positions, id))
    return pod_xml_error (platform->xml, node, error, "the id '%s' stands twice in zone '%s'", id,
                          zone->id);
  g_ptr_array_add (zone->members, id);
  g_hash_table_insert (zone->positions, id, GUINT_TO_POINTER (zone->members->len));
  return true;
}

static PodSgZone *
add_zone (PodSgPlatform *platform, PodSgZone *parent, PodXmlNode *node, PodSgRouting routing,
          GError **error)
{
  g_autofree char *id = pod_sg_need_attr (platform, node, "id", error);

  if (id == NULL)
    return NULL;
  if (g_hash_table_contains (platform->zone_by_id, id))
    return pod_xml_error (platform->xml, node, error, "the zone id '%s' stands twice", id), NULL;
  PodSgZone *zone = g_new0 (PodSgZone, 1);
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

static PodSgPoint *
add_point (PodSgPlatform *platform, PodSgZone *zone, PodXmlNode *node, const char *id, bool is_host,
           GError **error)
{
  if (g_hash_table_contains (platform->point_by_id, id))
    return pod_xml_error (platform->xml, node, error, "the id '%s' stands twice", id), NULL;
  PodSgPoint *point = g_new0 (PodSgPoint, 1);
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

/* -- elements, first pass: all but routes ---------------------------------------------------------
 */

/* A network that changes as time goes by is not modelled. */
static bool
check_profiles (const PodSgPlatform *platform, PodXmlNode *node, GError **error)
{
  static const char *const names[] = { "bandwidth_file", "latency_file", "state_file" };

  for (size_t i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *file = pod_xml_attr (node, names[i]);
      if (file != NULL && *file != '\0')
        return pod_xml_error (platform->xml, node, error,
                              "<link> %s: links that change in time are "
                              "not modelled",
                              names[i]);
    }
  return true;
}

static bool
read_link (PodSgPlatform *platform, PodXmlNode *node, GError **error)
{
  g_autofree char *id = pod_sg_need_attr (platform, node, "id", error);

  if (id == NULL || !check_profiles (platform, node, error))
    return false;
  if (g_hash_table_contains (platform->link_by_id, id))
    return pod_xml_error (platform->xml, node, error, "the link id '%s' stands twice", id);
  PodSgLink *link = g_new0 (PodSgLink, 1);
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
fill_cluster (PodSgPlatform *platform, PodSgZone *zone, const PodSgCluster *cluster, GError **error)
{
  g_autofree char *router_id = pod_xml_attr (cluster->node, "router_id");
  g_autofree char *name
      = router_id != NULL && *router_id != '\0'
            ? g_strdup (router_id)
            : g_strdup_printf ("%s%s_router%s", cluster->prefix, cluster->id, cluster->suffix);
  g_autofree char *backbone_name = g_strconcat (cluster->id, "_backbone", NULL);
  PodSgWire backbone
      = { backbone_name, cluster->backbone_bytes_per_s, cluster->backbone_latency_s };

  zone->router = add_point (platform, zone, cluster->node, name, false, error);
  if (zone->router == NULL
      || !pod_sg_cluster_open (platform, zone, backbone.bytes_per_s > 0 ? &backbone : NULL, error))
    return false;
  for (unsigned i = 0; i < cluster->radical->len; i++)
    {
      g_autofree char *id = pod_sg_cluster_host (cluster, i);
      g_autofree char *up_name = g_strdup_printf ("%s_link_%u%s", cluster->id,
                                                  g_array_index (cluster->radical, unsigned, i),
                                                  cluster->policy == POD_SG_SHARED ? "" : "_UP");
      g_autofree char *down_name = g_strdup_printf ("%s_link_%u_DOWN", cluster->id,
                                                    g_array_index (cluster->radical, unsigned, i));
      g_autofree char *limit_name = g_strconcat (id, "_limiter", NULL);
      PodSgWire up = { up_name, cluster->bytes_per_s, cluster->latency_s };
      PodSgWire down = { down_name, cluster->bytes_per_s, cluster->latency_s };
      PodSgWire limiter = { limit_name, cluster->limiter_bytes_per_s, 0 };
      PodSgPoint *host = add_point (platform, zone, cluster->node, id, true, error);
      if (host == NULL
          || !pod_sg_cluster_add (platform, zone, host, &up, &down,
                                  cluster->policy == POD_SG_SHARED,
                                  limiter.bytes_per_s > 0 ? &limiter : NULL, error))
        return false;
    }
  return true;
}

static bool
read_cluster (PodSgPlatform *platform, PodSgZone *parent, PodXmlNode *node, GError **error)
{
  g_auto (PodSgCluster) cluster = { 0 };

  if (!pod_sg_cluster_read (platform->xml, node, &cluster, error))
    return false;
  if (strcmp (cluster.shape, "FLAT") != 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                   "%s:%u: a %s cluster is read when it is alone in its platform only",
                   platform->xml->file, node->line, cluster.shape);
      return false;
    }
  PodSgZone *zone = add_zone (platform, parent, node, POD_SG_ROUTING_CLUSTER, error);
  return zone != NULL && fill_cluster (platform, zone, &cluster, error);
}

static bool
read_routing (const PodSgPlatform *platform, PodXmlNode *node, PodSgRouting *out, GError **error)
{
  static const struct
  {
    const char *name;
    PodSgRouting routing;
  } routings[] = {
    { "Full", POD_SG_ROUTING_FULL },         { "Floyd", POD_SG_ROUTING_SHORTEST },
    { "Dijkstra", POD_SG_ROUTING_SHORTEST }, { "DijkstraCache", POD_SG_ROUTING_SHORTEST },
    { "Cluster", POD_SG_ROUTING_CLUSTER },   { "None", POD_SG_ROUTING_NONE },
    { "Vivaldi", POD_SG_ROUTING_NONE },
  };
  g_autofree char *text = pod_sg_need_attr (platform, node, "routing", error);

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
                        node->name, text);
}

/* What is no part of the network, and what is read in the second pass. */
static bool
is_left_to_later (PodXmlNode *node)
{
  static const char *const names[]
      = { "prop", "route", "zoneRoute", "ASroute", "host_link", "backbone", "config", "disk" };

  for (size_t i = 0; i < G_N_ELEMENTS (names); i++)
    if (pod_sg_is (node, names[i]))
      return true;
  return false;
}

static bool read_zone (PodSgPlatform *platform, PodSgZone *parent, PodXmlNode *node, GError **error);

static bool
read_member (PodSgPlatform *platform, PodSgZone *zone, PodXmlNode *node, GError **error)
{
  if (is_zone (node))
    return read_zone (platform, zone, node, error);
  if (pod_sg_is (node, "cluster"))
    return read_cluster (platform, zone, node, error);
  if (pod_sg_is (node, "link"))
    return read_link (platform, node, error);
  if (pod_sg_is (node, "host") || pod_sg_is (node, "router"))
    {
      g_autofree char *id = pod_sg_need_attr (platform, node, "id", error);
      return id != NULL
             && add_point (platform, zone, node, id, pod_sg_is (node, "host"), error) != NULL;
    }
  if (is_left_to_later (node))
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "%s:%u: <%s> is not read",
               platform->xml->file, node->line, node->name);
  return false;
}

/* The gateway of a zone with cluster routing: its router, else a switch that nobody named. */
static bool
open_cluster_zone (PodSgPlatform *platform, PodSgZone *zone, GError **error)
{
  PodXmlNode *backbone = pod_xml_child (zone->node, "backbone");
  g_autofree char *id = NULL;
  PodSgWire wire = { 0 };

  for (unsigned i = 0; i < platform->points->len; i++)
    {
      PodSgPoint *point = g_ptr_array_index (platform->points, i);
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
      id = pod_sg_need_attr (platform, backbone, "id", error);
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
read_zone (PodSgPlatform *platform, PodSgZone *parent, PodXmlNode *node, GError **error)
{
  PodSgRouting routing = POD_SG_ROUTING_FULL;
  g_autofree char *text = pod_xml_attr (node, "routing");

  if (!read_routing (platform, node, &routing, error))
    return false;
  PodSgZone *zone = add_zone (platform, parent, node, routing, error);
  if (zone == NULL)
    return false;
  for (PodXmlNode *child = pod_xml_child (node, NULL); child != NULL;
       child = pod_xml_next (child, NULL))
    if (!read_member (platform, zone, child, error))
      return false;
  if (g_ascii_strcasecmp (text, "Vivaldi") == 0 && zone->members->len > 1)
    return pod_xml_error (platform->xml, node, error,
                          "Vivaldi zones make latencies of coordinates: not modelled");
  return routing != POD_SG_ROUTING_CLUSTER || open_cluster_zone (platform, zone, error);
}

/* -- the whole ------------------------------------------------------------------------------------
 */

/* The element that is the only one in its platform; NULL when there are others. */
static PodXmlNode *
only_element (PodXmlNode *parent)
{
  PodXmlNode *only = NULL;

  for (PodXmlNode *node = pod_xml_child (parent, NULL); node != NULL;
       node = pod_xml_next (node, NULL))
    {
      if (pod_sg_is (node, "config") || pod_sg_is (node, "prop"))
        continue;
      if (only != NULL)
        return NULL;
      only = node;
    }
  return only != NULL && is_zone (only) ? only_element (only) : only;
}

/* Clusters that make a machine of their own: all but those with a backbone. */
static bool
is_machine (const PodSgCluster *cluster)
{
  return strcmp (cluster->shape, "FLAT") != 0
         || (!(cluster->backbone_bytes_per_s > 0) && !(cluster->limiter_bytes_per_s > 0)
             && cluster->policy == POD_SG_SPLITDUPLEX);
}

static bool
read_platform (PodSgPlatform *platform, GError **error)
{
  PodXmlNode *root = pod_xml_root (platform->xml);

  for (PodXmlNode *node = pod_xml_child (root, NULL); node != NULL; node = pod_xml_next (node, NULL))
    {
      if (pod_sg_is (node, "config"))
        continue;
      if (platform->zones->len > 0)
        return pod_xml_error (platform->xml, node, error, "a platform has one outermost zone");
      if (pod_sg_is (node, "cluster") ? !read_cluster (platform, NULL, node, error)
          : is_zone (node)            ? !read_zone (platform, NULL, node, error)
                                      : !read_member (platform, NULL, node, error))
        return false;
    }
  if (platform->n_hosts == 0)
    return pod_xml_error (platform->xml, root, error, "a platform without hosts");
  for (unsigned i = 0; i < platform->zones->len; i++)
    if (!pod_sg_read_routes (platform, g_ptr_array_index (platform->zones, i), error))
      return false;
  for (unsigned i = 0; i < platform->points->len; i++)
    {
      const PodSgPoint *point = g_ptr_array_index (platform->points, i);
      if (point->is_host && point->zone->routing == POD_SG_ROUTING_CLUSTER && point->n_up == 0)
        return pod_xml_error (platform->xml, point->zone->node, error,
                              "host '%s' has no <host_link>", point->id);
    }
  return true;
}

static bool
check_root (const PodXml *xml, GError **error)
{
  PodXmlNode *root = pod_xml_root (xml);
  g_autofree char *version = pod_xml_attr (root, "version");

  if (!pod_sg_is (root, "platform"))
    return pod_xml_error (xml, root, error, "expected <platform>, got <%s>",
                          root->name);
  return (version != NULL && g_ascii_strtod (version, NULL) >= 4)
         || pod_xml_error (xml, root, error,
                           "<platform> version: expected 4 or 4.1, got '%s' (SimGrid's "
                           "simgrid_update_xml brings older files up to date)",
                           version != NULL ? version : "");
}

static PodTopology *
make_machine (const PodXml *xml, const char *name, GError **error)
{
  g_auto (PodSgPlatform) platform = { 0 };

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
  g_auto (PodSgCluster) cluster = { 0 };

  if (xml == NULL || !check_root (xml, error))
    return NULL;
  g_autofree char *name
      = g_str_has_suffix (base, ".xml") ? g_strndup (base, strlen (base) - 4) : g_strdup (base);
  const char *title = *name != '\0' ? name : "simgrid";
  PodXmlNode *only = only_element (pod_xml_root (xml));
  bool is_cluster = only != NULL && pod_sg_is (only, "cluster");
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
