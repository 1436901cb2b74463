#include <string.h>

#include "base/error.h"
#include "import/simgrid-private.h"

/* The second pass over a platform: <route>, <zoneRoute> and <host_link>, when all that they name is
 * known. */

/* A link's id, or that of one direction of a SPLITDUPLEX link: L_UP, L_DOWN. */
static bool
find_step (const PodSgPlatform *platform, PodXmlNode *node, const char *id, PodSgStep *out,
           GError **error)
{
  g_autofree char *stem = g_strdup (id);

  out->link = g_hash_table_lookup (platform->link_by_id, id);
  if (out->link == NULL && (g_str_has_suffix (id, "_UP") || g_str_has_suffix (id, "_DOWN")))
    {
      *strrchr (stem, '_') = '\0';
      out->link = g_hash_table_lookup (platform->link_by_id, stem);
      out->is_down = g_str_has_suffix (id, "_DOWN");
      if (out->link != NULL && out->link->policy != POD_SG_SPLITDUPLEX)
        out->link = NULL;
    }
  return out->link != NULL
         || pod_xml_error (platform->xml, node, error, "<%s>: no link has the id '%s'",
                           node->name, id);
}

static bool
read_step (const PodSgPlatform *platform, PodXmlNode *node, PodSgStep *out, GError **error)
{
  g_autofree char *id = pod_sg_need_attr (platform, node, "id", error);
  g_autofree char *direction = pod_xml_attr (node, "direction");
  bool is_named = false;

  if (id == NULL || !find_step (platform, node, id, out, error))
    return false;
  is_named = strcmp (out->link->id, id) != 0;
  if (direction == NULL || strcmp (direction, "NONE") == 0)
    return out->link->policy != POD_SG_SPLITDUPLEX || is_named
           || pod_xml_error (platform->xml, node, error,
                             "link '%s' is SPLITDUPLEX: a direction (UP or DOWN) is needed", id);
  if (strcmp (direction, "UP") != 0 && strcmp (direction, "DOWN") != 0)
    return pod_xml_error (platform->xml, node, error,
                          "<link_ctn> direction: expected UP, DOWN or NONE, got '%s'", direction);
  if (out->link->policy == POD_SG_SPLITDUPLEX && !is_named)
    out->is_down = strcmp (direction, "DOWN") == 0;
  return true;
}

static PodSgPoint *
find_point (const PodSgPlatform *platform, PodXmlNode *node, const char *attribute, GError **error)
{
  g_autofree char *id = pod_sg_need_attr (platform, node, attribute, error);
  PodSgPoint *point = id != NULL ? g_hash_table_lookup (platform->point_by_id, id) : NULL;

  if (id != NULL && point == NULL)
    pod_xml_error (platform->xml, node, error, "<%s> %s: no host or router '%s'",
                   node->name, attribute, id);
  return point;
}

static bool
is_within (const PodSgPoint *point, const PodSgZone *zone, const char *member)
{
  const char *id = point->id;
  const PodSgZone *at = point->zone;

  for (; at != NULL && at != zone; at = at->parent)
    id = at->id;
  return at == zone && strcmp (id, member) == 0;
}

/* The position in @zone of what src or dst names, and the point where the links begin or end. */
static bool
find_end (const PodSgPlatform *platform, const PodSgZone *zone, PodXmlNode *node,
          const char *attribute, const char *gateway, unsigned *out_member, PodSgPoint **out_point,
          GError **error)
{
  g_autofree char *id = pod_sg_need_attr (platform, node, attribute, error);

  if (id == NULL)
    return false;
  *out_member = GPOINTER_TO_UINT (g_hash_table_lookup (zone->positions, id)) - 1;
  if (*out_member == UINT_MAX)
    return pod_xml_error (platform->xml, node, error, "<%s> %s: '%s' is not in zone '%s'",
                          node->name, attribute, id, zone->id);
  *out_point = find_point (platform, node, gateway, error);
  if (*out_point == NULL)
    return false;
  return is_within (*out_point, zone, id)
         || pod_xml_error (platform->xml, node, error, "<%s> %s: '%s' is not in '%s'",
                           node->name, gateway, (*out_point)->id, id);
}

static bool
read_steps (const PodSgPlatform *platform, PodSgPath *path, GError **error)
{
  for (PodXmlNode *node = pod_xml_child (path->node, NULL); node != NULL;
       node = pod_xml_next (node, NULL))
    {
      PodSgStep step = { 0 };
      if (!pod_sg_is (node, "link_ctn"))
        return pod_xml_error (platform->xml, node, error, "<%s> is not expected in a route",
                              node->name);
      if (!read_step (platform, node, &step, error))
        return false;
      step.link->is_used = true;
      g_array_append_val (path->steps, step);
    }
  return path->steps->len > 0
         || pod_xml_error (platform->xml, path->node, error, "a route without links");
}

static bool
add_path (PodSgZone *zone, unsigned from, unsigned to, PodSgPath *path)
{
  uint64_t *key = g_new (uint64_t, 1);

  *key = (uint64_t) from << 32 | to;
  return g_hash_table_insert (zone->paths, key, path);
}

static bool
read_route (PodSgPlatform *platform, PodSgZone *zone, PodXmlNode *node, GError **error)
{
  bool is_plain = pod_sg_is (node, "route");
  g_autofree char *symmetrical = pod_xml_attr (node, "symmetrical");
  unsigned from = 0;
  unsigned to = 0;
  PodSgPoint *first = NULL;
  PodSgPoint *last = NULL;

  if (!find_end (platform, zone, node, "src", is_plain ? "src" : "gw_src", &from, &first, error)
      || !find_end (platform, zone, node, "dst", is_plain ? "dst" : "gw_dst", &to, &last, error))
    return false;
  if (from == to) /* to itself: nothing crosses it here */
    return true;
  PodSgPath *path = g_new0 (PodSgPath, 1);
  g_ptr_array_add (platform->paths, path);
  path->node = node;
  path->from = first;
  path->to = last;
  path->steps = g_array_new (FALSE, TRUE, sizeof (PodSgStep));
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
find_wire (const PodSgPlatform *platform, PodXmlNode *node, const char *attribute, PodSgWire *out,
           GError **error)
{
  g_autofree char *id = pod_sg_need_attr (platform, node, attribute, error);
  PodSgStep step = { 0 };

  if (id == NULL || !find_step (platform, node, id, &step, error))
    return false;
  step.link->is_used = false; /* no route lays it out */
  if (step.link->policy == POD_SG_FATPIPE)
    return pod_xml_error (platform->xml, step.link->node, error,
                          "a FATPIPE link gives each flow its whole rate: there is no such wire");
  *out = (PodSgWire){ NULL, step.link->bytes_per_s, step.link->latency_s };
  return true;
}

static bool
read_host_link (PodSgPlatform *platform, PodSgZone *zone, PodXmlNode *node, GError **error)
{
  g_autofree char *up_id = pod_xml_attr (node, "up");
  g_autofree char *down_id = pod_xml_attr (node, "down");
  PodSgPoint *host = find_point (platform, node, "id", error);
  PodSgWire up = { 0 };
  PodSgWire down = { 0 };

  if (host == NULL || !find_wire (platform, node, "up", &up, error)
      || !find_wire (platform, node, "down", &down, error))
    return false;
  if (host->zone != zone || !host->is_host || zone->routing != POD_SG_ROUTING_CLUSTER)
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

bool
pod_sg_read_routes (PodSgPlatform *platform, PodSgZone *zone, GError **error)
{
  for (PodXmlNode *node = pod_xml_child (zone->node, NULL); node != NULL;
       node = pod_xml_next (node, NULL))
    {
      bool is_route = pod_sg_is (node, "route") || pod_sg_is (node, "zoneRoute")
                      || pod_sg_is (node, "ASroute");
      if (is_route ? !read_route (platform, zone, node, error)
                   : pod_sg_is (node, "host_link") && !read_host_link (platform, zone, node, error))
        return false;
    }
  return true;
}
