#include <string.h>

#include "base/error.h"
#include "import/simgrid-private.h"

/* <cluster>: alone in its platform it may be any of SimGrid's kinds; among other zones it is flat.
 */

enum
{
  MAX_LEVELS = 8,
  MAX_GRAPH_LINKS = 1 << 20,
};

#define NO_CHIP "the file describes hosts, not chips: they are taken for %s"

/* -- reading ----------------------------------------------------------------------------------- */

static char *
attr_or (PodXmlNode *node, const char *name, const char *otherwise)
{
  char *text = pod_xml_attr (node, name);

  return text != NULL ? text : g_strdup (otherwise);
}

bool
pod_sg_cluster_read (const PodXml *xml, PodXmlNode *node, PodSgCluster *out, GError **error)
{
  PodSgPolicy backbone = POD_SG_SHARED;

  out->node = node;
  out->id = attr_or (node, "id", "");
  out->prefix = attr_or (node, "prefix", "");
  out->suffix = attr_or (node, "suffix", "");
  out->shape = attr_or (node, "topology", "FLAT");
  out->parameters = pod_xml_attr (node, "topo_parameters");
  out->policy = POD_SG_SPLITDUPLEX;
  out->radical = pod_sg_radical (xml, node, error);
  if (out->radical == NULL || !pod_sg_bandwidth (xml, node, "bw", true, &out->bytes_per_s, error)
      || !pod_sg_time (xml, node, "lat", &out->latency_s, error)
      || !pod_sg_policy (xml, node, "sharing_policy", &out->policy, error)
      || !pod_sg_bandwidth (xml, node, "bb_bw", false, &out->backbone_bytes_per_s, error)
      || !pod_sg_time (xml, node, "bb_lat", &out->backbone_latency_s, error)
      || !pod_sg_policy (xml, node, "bb_sharing_policy", &backbone, error)
      || !pod_sg_bandwidth (xml, node, "limiter_link", false, &out->limiter_bytes_per_s, error))
    return false;
  if (out->policy == POD_SG_FATPIPE
      || (out->backbone_bytes_per_s > 0 && backbone == POD_SG_FATPIPE))
    return pod_xml_error (xml, node, error,
                          "a FATPIPE link gives each flow its whole rate: there is no such wire");
  if (out->backbone_bytes_per_s > 0 && strcmp (out->shape, "FLAT") != 0)
    return pod_xml_error (xml, node, error, "a %s cluster has no backbone", out->shape);
  return true;
}

void
pod_sg_cluster_clear (PodSgCluster *cluster)
{
  g_free (cluster->id);
  g_free (cluster->prefix);
  g_free (cluster->suffix);
  g_free (cluster->shape);
  g_free (cluster->parameters);
  g_clear_pointer (&cluster->radical, g_array_unref);
}

char *
pod_sg_cluster_host (const PodSgCluster *cluster, unsigned index)
{
  return g_strdup_printf ("%s%u%s", cluster->prefix,
                          g_array_index (cluster->radical, unsigned, index), cluster->suffix);
}

/* -- numbers of topo_parameters -----------------------------------------------------------------
 */

/* @n numbers from 1 on between commas. */
static bool
read_numbers (const char *text, unsigned most, unsigned *out, unsigned *out_n)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);

  for (*out_n = 0; parts[*out_n] != NULL; (*out_n)++)
    {
      guint64 value = 0;
      if (*out_n == most
          || !g_ascii_string_to_unsigned (g_strstrip (parts[*out_n]), 10, 1, 1 << 20, &value, NULL))
        return false;
      out[*out_n] = (unsigned) value;
    }
  return *out_n > 0;
}

static bool
refuse_parameters (const PodXml *xml, const PodSgCluster *cluster, const char *expected,
                   GError **error)
{
  return pod_xml_error (xml, cluster->node, error,
                        "<cluster> topo_parameters: expected %s, got '%s'", expected,
                        cluster->parameters != NULL ? cluster->parameters : "");
}

/* The parameters must make as many hosts as the radical lists. */
static bool
check_hosts (const PodXml *xml, const PodSgCluster *cluster, uint64_t n_hosts, GError **error)
{
  return n_hosts == cluster->radical->len
         || pod_xml_error (xml, cluster->node, error,
                           "topo_parameters '%s' make %" G_GUINT64_FORMAT
                           " hosts, but radical lists %u",
                           cluster->parameters, n_hosts, cluster->radical->len);
}

/* -- crossbar and torus -------------------------------------------------------------------------
 */

static void
set_chip (PodTopologyDraft *draft, const char *field, double value, const char *unit)
{
  g_autofree char *number = pod_format_double (value);
  g_autofree char *text = g_strconcat (number, unit, NULL);

  pod_draft_set_chip (draft, field, text);
}

static PodTopology *
make_crossbar (const PodSgCluster *cluster, const char *name, GError **error)
{
  g_autoptr (PodTopologyDraft) draft = pod_draft_new (name, "h100", POD_FABRIC_SWITCHED);
  g_autofree char *count = g_strdup_printf ("%u", cluster->radical->len);

  pod_draft_note (draft, NO_CHIP, "h100");
  set_chip (draft, "scale_up_bandwidth", cluster->bytes_per_s, " B/s");
  set_chip (draft, "scale_up_latency", 2 * cluster->latency_s, " s"); /* of both links */
  pod_draft_set_chip (draft, "in_switch_reduction", "no");
  if (!pod_draft_set_option (draft, "nodes", "1", error)
      || !pod_draft_set_option (draft, "chips-per-node", count, error)
      || !pod_draft_set_option (draft, "unchecked", "yes", error))
    return NULL;
  return pod_draft_build (draft, error);
}

/* SimGrid numbers hosts with the first dimension fastest, as we do. In a dimension of two its wrap
 * link is never on a route. */
static PodTopology *
make_torus (const PodXml *xml, const PodSgCluster *cluster, const char *name, GError **error)
{
  g_autoptr (PodTopologyDraft) draft = pod_draft_new (name, "tpu-v5p", POD_FABRIC_TORUS);
  g_autoptr (GString) extent = g_string_new (NULL);
  g_autoptr (GString) wrap = g_string_new (NULL);
  unsigned dims[MAX_LEVELS];
  unsigned n_dims = 0;
  uint64_t n_hosts = 1;

  if (!read_numbers (cluster->parameters != NULL ? cluster->parameters : "", MAX_LEVELS, dims,
                     &n_dims))
    return refuse_parameters (xml, cluster, "dimensions such as 3,2,2", error), NULL;
  if (n_dims > 3 || cluster->policy != POD_SG_SPLITDUPLEX || cluster->limiter_bytes_per_s > 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                   "%s:%u: a torus has at most three dimensions, SPLITDUPLEX links and no limiter",
                   xml->file, cluster->node->line);
      return NULL;
    }
  for (unsigned i = 0; i < n_dims; i++)
    {
      n_hosts *= dims[i];
      g_string_append_printf (extent, "%s%u", i > 0 ? "x" : "", dims[i]);
      if (dims[i] > 2)
        g_string_append_c (wrap, "xyz"[i]);
    }
  if (!check_hosts (xml, cluster, n_hosts, error))
    return NULL;
  pod_draft_note (draft, NO_CHIP, "tpu-v5p");
  set_chip (draft, "ici_bandwidth", cluster->bytes_per_s, " B/s");
  set_chip (draft, "ici_latency", cluster->latency_s, " s");
  if (!pod_draft_set_option (draft, "extent", extent->str, error)
      || !pod_draft_set_option (draft, "wrap", wrap->len > 0 ? wrap->str : "none", error)
      || !pod_draft_set_option (draft, "unchecked", "yes", error))
    return NULL;
  return pod_draft_build (draft, error);
}

/* -- fat tree and dragonfly: graphs --------------------------------------------------------------
 */

typedef struct
{
  const PodXml *xml;
  const PodSgCluster *cluster;
  PodTopologyDraft *draft;
  unsigned n_links;
} Drawing;

static bool
join (Drawing *drawing, PodDraftVertex from, PodDraftVertex to, double bytes_per_s,
      double latency_s, bool is_half, GError **error)
{
  PodDraftLink link = { .from = from,
                        .to = to,
                        .bytes_per_s = bytes_per_s,
                        .latency_s = latency_s,
                        .duplex = is_half ? POD_DRAFT_HALF : POD_DRAFT_FULL };

  if (++drawing->n_links > MAX_GRAPH_LINKS)
    return pod_xml_error (drawing->xml, drawing->cluster->node, error, "more than %d links",
                          MAX_GRAPH_LINKS);
  return pod_draft_add_link (drawing->draft, &link, NULL, error)
         || pod_sg_at (drawing->xml, drawing->cluster->node, error);
}

/* A link of the cluster's rate times @n_cables, as its sharing policy has it. */
static bool
join_cables (Drawing *drawing, PodDraftVertex from, PodDraftVertex to, unsigned n_cables,
             GError **error)
{
  const PodSgCluster *cluster = drawing->cluster;

  return join (drawing, from, to, cluster->bytes_per_s * n_cables, cluster->latency_s,
               cluster->policy == POD_SG_SHARED, error);
}

static bool add_switch (Drawing *drawing, PodDraftVertex *out, GError **error, const char *format,
                        ...) G_GNUC_PRINTF (4, 5);

static bool
add_switch (Drawing *drawing, PodDraftVertex *out, GError **error, const char *format, ...)
{
  va_list arguments;

  va_start (arguments, format);
  g_autofree char *name = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  return pod_draft_add_switch (drawing->draft, name, out, error)
         || pod_sg_at (drawing->xml, drawing->cluster->node, error);
}

/* Hosts, with a limiter before each where there is one: a link that all its traffic, both ways,
 * shares. Returns where their cables begin. (transfer full) (nullable) */
static PodDraftVertex *
add_hosts (Drawing *drawing, GError **error)
{
  const PodSgCluster *cluster = drawing->cluster;
  unsigned n_hosts = cluster->radical->len;
  g_autofree PodDraftVertex *ports = g_new0 (PodDraftVertex, n_hosts);

  for (unsigned i = 0; i < n_hosts; i++)
    {
      g_autofree char *name = pod_sg_cluster_host (cluster, i);
      PodDraftVertex host = 0;
      if (!pod_draft_add_node (drawing->draft, name, NULL, &host, error))
        return pod_sg_at (drawing->xml, cluster->node, error), NULL;
      ports[i] = host;
      if (cluster->limiter_bytes_per_s > 0
          && (!add_switch (drawing, &ports[i], error, "limiter of %s", name)
              || !join (drawing, host, ports[i], cluster->limiter_bytes_per_s, 0, true, error)))
        return NULL;
    }
  return g_steal_pointer (&ports);
}

typedef struct
{
  unsigned n_levels;
  unsigned down[MAX_LEVELS];
  unsigned up[MAX_LEVELS];
  unsigned cables[MAX_LEVELS];
} FatTree;

static bool
read_fat_tree (const PodXml *xml, const PodSgCluster *cluster, FatTree *out, GError **error)
{
  g_auto (GStrv) parts
      = g_strsplit (cluster->parameters != NULL ? cluster->parameters : "", ";", -1);
  unsigned counts[4] = { 0 };
  unsigned *const lists[] = { &out->n_levels, out->down, out->up, out->cables };
  bool is_good = g_strv_length (parts) == 4;

  for (unsigned i = 0; i < 4 && is_good; i++)
    is_good = read_numbers (parts[i], i == 0 ? 1 : MAX_LEVELS, lists[i], &counts[i]);
  is_good = is_good && out->n_levels <= MAX_LEVELS;
  for (unsigned i = 1; i < 4 && is_good; i++)
    is_good = counts[i] == out->n_levels;
  return is_good
         || refuse_parameters (xml, cluster, "levels;down;up;cables such as 2;4,4;1,2;1,2", error);
}

/* Vertices of level @level: a digit for each level, up[] of those below it and down[] of the rest.
 */
static uint64_t
fat_tree_width (const FatTree *tree, unsigned level)
{
  uint64_t width = 1;

  for (unsigned i = 0; i < tree->n_levels; i++)
    width = MIN (width * (i < level ? tree->up[i] : tree->down[i]), UINT32_MAX);
  return width;
}

/* Vertex @at of @level has as parents those that differ from it in digit @level only. */
static bool
join_parents (Drawing *drawing, const FatTree *tree, unsigned level, uint32_t at,
              PodDraftVertex vertex, const PodDraftVertex *above, GError **error)
{
  uint32_t below_step = 1; /* of digit @level at this level, and at the one above */

  for (unsigned i = 0; i < level; i++)
    below_step *= tree->up[i];
  uint32_t low = at % below_step;
  uint32_t high = at / below_step / tree->down[level];
  for (unsigned digit = 0; digit < tree->up[level]; digit++)
    for (unsigned cable = 0; cable < tree->cables[level]; cable++)
      if (!join_cables (drawing, vertex, above[low + below_step * (digit + tree->up[level] * high)],
                        1, error))
        return false;
  return true;
}

static bool
draw_fat_tree (Drawing *drawing, GError **error)
{
  FatTree tree = { 0 };

  if (!read_fat_tree (drawing->xml, drawing->cluster, &tree, error)
      || !check_hosts (drawing->xml, drawing->cluster, fat_tree_width (&tree, 0), error))
    return false;
  g_autofree PodDraftVertex *level = add_hosts (drawing, error);
  if (level == NULL)
    return false;
  for (unsigned i = 0; i < tree.n_levels; i++)
    {
      uint64_t width = fat_tree_width (&tree, i + 1);
      if (width > MAX_GRAPH_LINKS)
        return pod_xml_error (drawing->xml, drawing->cluster->node, error, "more than %d switches",
                              MAX_GRAPH_LINKS);
      g_autofree PodDraftVertex *above = g_new0 (PodDraftVertex, width);
      for (unsigned at = 0; at < width; at++)
        if (!add_switch (drawing, &above[at], error, "level%u-%u", i + 1, at))
          return false;
      for (uint32_t at = 0; at < fat_tree_width (&tree, i); at++)
        if (!join_parents (drawing, &tree, i, at, level[at], above, error))
          return false;
      g_free (level);
      level = g_steal_pointer (&above);
    }
  return true;
}

typedef struct
{
  unsigned groups, blue;   /* cables between two groups */
  unsigned chassis, black; /* between like routers of two chassis of a group */
  unsigned routers, green; /* between two routers of a chassis */
  unsigned nodes;          /* of a router */
} Dragonfly;

static bool
read_dragonfly (const PodXml *xml, const PodSgCluster *cluster, Dragonfly *out, GError **error)
{
  g_auto (GStrv) parts
      = g_strsplit (cluster->parameters != NULL ? cluster->parameters : "", ";", -1);
  unsigned values[4][2] = { { 0 } };
  bool is_good = g_strv_length (parts) == 4;

  for (unsigned i = 0; i < 4 && is_good; i++)
    {
      unsigned n = 0;
      is_good = read_numbers (parts[i], 2, values[i], &n) && n == (i < 3 ? 2 : 1);
    }
  if (!is_good)
    return refuse_parameters (
        xml, cluster, "groups,links;chassis,links;routers,links;nodes such as 3,4;4,3;5,1;2",
        error);
  *out = (Dragonfly){ values[0][0], values[0][1], values[1][0], values[1][1],
                      values[2][0], values[2][1], values[3][0] };
  /* Router n of a group holds its cables to group n. */
  return out->groups <= (uint64_t) out->chassis * out->routers
         || pod_xml_error (xml, cluster->node, error,
                           "%u groups, but only %u x %u routers in each to join them", out->groups,
                           out->chassis, out->routers);
}

/* All cables within group @group, whose routers are @routers. */
static bool
join_group (Drawing *drawing, const Dragonfly *shape, const PodDraftVertex *routers, GError **error)
{
  for (unsigned chassis = 0; chassis < shape->chassis; chassis++)
    for (unsigned slot = 0; slot < shape->routers; slot++)
      {
        PodDraftVertex router = routers[chassis * shape->routers + slot];
        for (unsigned other = slot + 1; other < shape->routers; other++)
          if (!join_cables (drawing, router, routers[chassis * shape->routers + other],
                            shape->green, error))
            return false;
        for (unsigned other = chassis + 1; other < shape->chassis; other++)
          if (!join_cables (drawing, router, routers[other * shape->routers + slot], shape->black,
                            error))
            return false;
      }
  return true;
}

static bool
join_dragonfly (Drawing *drawing, const Dragonfly *shape, const PodDraftVertex *hosts,
                GError **error)
{
  uint32_t per_group = shape->chassis * shape->routers;
  uint32_t n_routers = per_group * shape->groups;
  g_autofree PodDraftVertex *routers = g_new0 (PodDraftVertex, n_routers);

  for (uint32_t i = 0; i < n_routers; i++)
    {
      if (!add_switch (drawing, &routers[i], error, "router%u-%u-%u", i / per_group,
                       i % per_group / shape->routers, i % shape->routers))
        return false;
      for (unsigned node = 0; node < shape->nodes; node++)
        if (!join_cables (drawing, hosts[i * shape->nodes + node], routers[i], 1, error))
          return false;
    }
  for (unsigned group = 0; group < shape->groups; group++)
    {
      if (!join_group (drawing, shape, routers + group * per_group, error))
        return false;
      for (unsigned other = group + 1; other < shape->groups; other++)
        if (!join_cables (drawing, routers[group * per_group + other],
                          routers[other * per_group + group], shape->blue, error))
          return false;
    }
  return true;
}

static bool
draw_dragonfly (Drawing *drawing, GError **error)
{
  Dragonfly shape = { 0 };

  if (!read_dragonfly (drawing->xml, drawing->cluster, &shape, error))
    return false;
  double n_hosts = (double) shape.groups * shape.chassis * shape.routers * shape.nodes;
  if (!check_hosts (drawing->xml, drawing->cluster, (uint64_t) MIN (n_hosts, 1e15), error))
    return false;
  g_autofree PodDraftVertex *hosts = add_hosts (drawing, error);
  return hosts != NULL && join_dragonfly (drawing, &shape, hosts, error);
}

static PodTopology *
make_graph (const PodXml *xml, const PodSgCluster *cluster, const char *name, GError **error)
{
  g_autoptr (PodTopologyDraft) draft = pod_draft_new (name, "h100", POD_FABRIC_GRAPH);
  Drawing drawing = { .xml = xml, .cluster = cluster, .draft = draft };
  bool is_tree = strcmp (cluster->shape, "FAT_TREE") == 0;

  pod_draft_note (draft, NO_CHIP, "h100");
  pod_draft_note (draft,
                  "the ways through the %s are the cheapest ones here, which may choose other "
                  "equal cables than SimGrid's routing does",
                  is_tree ? "fat tree" : "dragonfly");
  if (is_tree ? !draw_fat_tree (&drawing, error) : !draw_dragonfly (&drawing, error))
    return NULL;
  return pod_draft_build (draft, error);
}

PodTopology *
pod_sg_cluster_machine (const PodXml *xml, const PodSgCluster *cluster, const char *name,
                        GError **error)
{
  if (strcmp (cluster->shape, "FLAT") == 0)
    return make_crossbar (cluster, name, error);
  if (strcmp (cluster->shape, "TORUS") == 0)
    return make_torus (xml, cluster, name, error);
  if (strcmp (cluster->shape, "FAT_TREE") == 0 || strcmp (cluster->shape, "DRAGONFLY") == 0)
    return make_graph (xml, cluster, name, error);
  pod_xml_error (xml, cluster->node, error,
                 "<cluster> topology: expected FLAT, TORUS, FAT_TREE or DRAGONFLY, got '%s'",
                 cluster->shape);
  return NULL;
}

/* -- flat, among other zones ---------------------------------------------------------------------
 */

/* All traffic of a cluster crosses its backbone once, in one direction, from the entry to the exit:
 * from host to host, from a host to the router, and from the router to a host. What joins the
 * router to both has the backbone's rate, so that it never is the bottleneck. */
bool
pod_sg_cluster_open (PodSgPlatform *platform, PodSgZone *zone, const PodSgWire *backbone,
                     GError **error)
{
  zone->entry = zone->exit = zone->router->vertex;
  zone->has_backbone = backbone != NULL;
  if (backbone == NULL)
    return true;
  g_autofree char *entry = g_strdup_printf ("entry of %s", zone->id);
  g_autofree char *exit = g_strdup_printf ("exit of %s", zone->id);
  g_autofree char *way_in = g_strdup_printf ("into %s", zone->id);
  g_autofree char *way_out = g_strdup_printf ("out of %s", zone->id);
  if (!pod_draft_add_switch (platform->draft, entry, &zone->entry, error)
      || !pod_draft_add_switch (platform->draft, exit, &zone->exit, error))
    return pod_sg_at (platform->xml, zone->node, error);
  return (pod_sg_wire (platform, backbone->name, zone->entry, zone->exit, backbone->bytes_per_s,
                       backbone->latency_s, POD_DRAFT_SIMPLEX, false, &zone->backbone, error)
          && pod_sg_wire (platform, way_in, zone->router->vertex, zone->entry,
                          backbone->bytes_per_s, 0, POD_DRAFT_SIMPLEX, true, &zone->way_in, error)
          && pod_sg_wire (platform, way_out, zone->exit, zone->router->vertex,
                          backbone->bytes_per_s, 0, POD_DRAFT_SIMPLEX, true, &zone->way_out, error))
         || pod_sg_at (platform->xml, zone->node, error);
}

/* A link that both ways share, before a backbone: its traffic leaves for the entry and comes from
 * the exit, at its own rate. */
static bool
add_shared (PodSgPlatform *platform, PodSgZone *zone, PodSgPoint *host, PodDraftVertex port,
            const PodSgWire *wire, GError **error)
{
  g_autofree char *name = g_strdup_printf ("port of %s", host->id);
  g_autofree char *up_name = g_strdup_printf ("%s out", wire->name);
  g_autofree char *down_name = g_strdup_printf ("%s in", wire->name);
  PodDraftVertex far = zone->entry;
  uint32_t link = 0;
  uint32_t up = 0;
  uint32_t down = 0;

  if (zone->has_backbone && !pod_draft_add_switch (platform->draft, name, &far, error))
    return false;
  if (!pod_sg_wire (platform, wire->name, port, far, wire->bytes_per_s, wire->latency_s,
                    POD_DRAFT_HALF, false, &link, error))
    return false;
  host->up[host->n_up++] = link;
  if (zone->has_backbone)
    {
      if (!pod_sg_wire (platform, up_name, far, zone->entry, wire->bytes_per_s, 0,
                        POD_DRAFT_SIMPLEX, true, &up, error)
          || !pod_sg_wire (platform, down_name, zone->exit, far, wire->bytes_per_s, 0,
                           POD_DRAFT_SIMPLEX, true, &down, error))
        return false;
      host->up[host->n_up++] = up;
      host->down[host->n_down++] = down;
    }
  host->down[host->n_down++] = link;
  return true;
}

static bool
add_pair (PodSgPlatform *platform, PodSgZone *zone, PodSgPoint *host, PodDraftVertex port,
          const PodSgWire *up, const PodSgWire *down, GError **error)
{
  uint32_t link = 0;

  if (!pod_sg_wire (platform, up->name, port, zone->entry, up->bytes_per_s, up->latency_s,
                    POD_DRAFT_SIMPLEX, false, &link, error))
    return false;
  host->up[host->n_up++] = link;
  if (!pod_sg_wire (platform, down->name, zone->exit, port, down->bytes_per_s, down->latency_s,
                    POD_DRAFT_SIMPLEX, false, &link, error))
    return false;
  host->down[host->n_down++] = link;
  return true;
}

bool
pod_sg_cluster_add (PodSgPlatform *platform, PodSgZone *zone, PodSgPoint *host, const PodSgWire *up,
                    const PodSgWire *down, bool is_one, const PodSgWire *limiter, GError **error)
{
  PodDraftVertex port = host->vertex;
  uint32_t limit = 0;

  if (limiter != NULL)
    {
      g_autofree char *name = g_strdup_printf ("limiter of %s", host->id);
      if (!pod_draft_add_switch (platform->draft, name, &port, error)
          || !pod_sg_wire (platform, limiter->name, host->vertex, port, limiter->bytes_per_s,
                           limiter->latency_s, POD_DRAFT_HALF, false, &limit, error))
        return pod_sg_at (platform->xml, zone->node, error);
      host->up[host->n_up++] = limit;
    }
  if (!(is_one ? add_shared (platform, zone, host, port, up, error)
               : add_pair (platform, zone, host, port, up, down, error)))
    return pod_sg_at (platform->xml, zone->node, error);
  if (limiter != NULL)
    host->down[host->n_down++] = limit;
  return true;
}
