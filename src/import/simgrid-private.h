#pragma once

#include "base/xml.h"
#include "topology/draft.h"

typedef enum
{
  POD_SG_SHARED,
  POD_SG_SPLITDUPLEX,
  POD_SG_FATPIPE,
} PodSgPolicy;

/* One <link>, or one that a cluster makes for itself. */
typedef struct
{
  char *id;
  PodXmlNode *node;
  double bytes_per_s;
  double latency_s;
  PodSgPolicy policy;
  bool is_used;
  bool is_bus;          /* shared by more than two places */
  unsigned side[2];     /* of the union-find of places: where UP begins and ends */
  uint32_t wire;        /* draft index when it is no bus */
  uint32_t bus[2];      /* draft index of each direction's wire (SHARED: only [0]) ... */
  PodDraftVertex in[2]; /* ... and its ends; valid when has_bus */
  PodDraftVertex out[2];
  bool has_bus[2];
} PodSgLink;

/* A link in a route, and which way. */
typedef struct
{
  PodSgLink *link;
  bool is_down;    /* SPLITDUPLEX: from side 1 to side 0 */
  bool is_reverse; /* as the route goes it: entered at side 1 (set by the layout) */
} PodSgStep;

/* A <route> or <zoneRoute>: between two points, gateways in the latter case. */
typedef struct
{
  PodXmlNode *node;
  struct PodSgPoint *from;
  struct PodSgPoint *to;
  GArray *steps; /* (element-type PodSgStep) */
  bool is_symmetrical;
  GArray *wires;      /* (element-type uint32_t) draft links from @from to @to, feeders included */
  GArray *wires_back; /* and from @to to @from; empty unless symmetrical */
} PodSgPath;

/* A host or router. */
typedef struct PodSgPoint
{
  char *id;
  struct PodSgZone *zone;
  bool is_host;
  PodDraftVertex vertex;
  unsigned place;  /* in the union-find */
  unsigned device; /* hosts: number */
  /* hosts of clusters: draft links to and from the cluster's own switches */
  uint32_t up[3];
  unsigned n_up;
  uint32_t down[3];
  unsigned n_down;
} PodSgPoint;

typedef enum
{
  POD_SG_ROUTING_FULL,
  POD_SG_ROUTING_SHORTEST, /* Floyd, Dijkstra, DijkstraCache */
  POD_SG_ROUTING_CLUSTER,
  POD_SG_ROUTING_NONE, /* None, Vivaldi: nothing to route between */
} PodSgRouting;

typedef struct PodSgZone
{
  char *id;
  PodXmlNode *node;
  struct PodSgZone *parent; /* (nullable) */
  unsigned depth;
  PodSgRouting routing;
  GPtrArray *members;    /* (element-type utf8) ids of points and zones, borrowed, in order */
  GHashTable *positions; /* id -> index of members + 1 */
  GHashTable *paths;     /* "a b" of positions as key -> PodSgPath + direction */
  uint64_t *costs;       /* (nullable) SHORTEST: [from][to] */
  unsigned *before;      /* (nullable) the member before @to on the way */
  /* CLUSTER */
  PodSgPoint *router;
  bool has_backbone;
  PodDraftVertex entry; /* where the hosts' ways out lead: before the backbone, else the router */
  PodDraftVertex exit;  /* where their ways in begin: behind the backbone, else the router */
  uint32_t backbone;    /* draft links: from entry to exit, */
  uint32_t way_in;      /* from the router to the entry, */
  uint32_t way_out;     /* from the exit to the router */
} PodSgZone;

typedef struct
{
  const PodXml *xml;
  PodTopologyDraft *draft;
  char *name;
  GPtrArray *zones;       /* (element-type PodSgZone) */
  GPtrArray *points;      /* (element-type PodSgPoint) */
  GPtrArray *links;       /* (element-type PodSgLink) */
  GPtrArray *paths;       /* (element-type PodSgPath) */
  GHashTable *zone_by_id; /* borrowed keys */
  GHashTable *point_by_id;
  GHashTable *link_by_id;
  GHashTable *wire_names; /* (element-type utf8) of the draft's links */
  GArray *is_feeder;      /* (element-type bool) of each draft link */
  GArray *is_full;        /* (element-type bool) whether it is two links of the machine */
  unsigned n_hosts;
} PodSgPlatform;

/* -- simgrid-units.c: quantities in attributes; absent leaves *out alone -------------------------
 */
bool pod_sg_bandwidth (const PodXml *xml, PodXmlNode *node, const char *name, bool is_required,
                       double *out, GError **error);
bool pod_sg_time (const PodXml *xml, PodXmlNode *node, const char *name, double *out,
                  GError **error);
bool pod_sg_policy (const PodXml *xml, PodXmlNode *node, const char *name, PodSgPolicy *out,
                    GError **error);
/* "0-99,105": the numbers, in order. Returns: (transfer full) (element-type unsigned) (nullable) */
GArray *pod_sg_radical (const PodXml *xml, PodXmlNode *node, GError **error);

/* -- simgrid-cluster.c ---------------------------------------------------------------------------
 */

/* What a <cluster> says, whatever its topology. */
typedef struct
{
  PodXmlNode *node;
  char *id;
  char *prefix;
  char *suffix;
  GArray *radical; /* (element-type unsigned) */
  double bytes_per_s;
  double latency_s;
  PodSgPolicy policy;
  double backbone_bytes_per_s; /* 0: none */
  double backbone_latency_s;
  double limiter_bytes_per_s; /* 0: none */
  char *shape;                /* FLAT, TORUS, FAT_TREE or DRAGONFLY */
  char *parameters;           /* (nullable) */
} PodSgCluster;

bool pod_sg_cluster_read (const PodXml *xml, PodXmlNode *node, PodSgCluster *out, GError **error);
void pod_sg_cluster_clear (PodSgCluster *cluster);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodSgCluster, pod_sg_cluster_clear)
/* Returns: (transfer full) */
char *pod_sg_cluster_host (const PodSgCluster *cluster, unsigned index);

/* The only thing in its platform. Returns: (transfer full) (nullable) */
PodTopology *pod_sg_cluster_machine (const PodXml *xml, const PodSgCluster *cluster,
                                     const char *name, GError **error);

/* A host with its links and the backbone, in a zone with cluster routing. A shared link has up and
 * down alike. */
typedef struct
{
  const char *name;
  double bytes_per_s;
  double latency_s;
} PodSgWire;

bool pod_sg_cluster_open (PodSgPlatform *platform, PodSgZone *zone, const PodSgWire *backbone,
                          GError **error);
/* @is_one: @up is the link both ways. @limiter: (nullable) between host and link. */
bool pod_sg_cluster_add (PodSgPlatform *platform, PodSgZone *zone, PodSgPoint *host,
                         const PodSgWire *up, const PodSgWire *down, bool is_one,
                         const PodSgWire *limiter, GError **error);

/* -- simgrid-xml.c -------------------------------------------------------------------------------
 */

/* A link of the draft under a name of its own; @is_feeder: it is no link of the file. */
bool pod_sg_wire (PodSgPlatform *platform, const char *name, PodDraftVertex from, PodDraftVertex to,
                  double bytes_per_s, double latency_s, PodDraftDuplex duplex, bool is_feeder,
                  uint32_t *out, GError **error);
/* Puts "file:line: " before what the draft complained of; returns false. */
bool pod_sg_at (const PodXml *xml, PodXmlNode *node, GError **error);

/* Whether an element has that name. */
bool pod_sg_is (PodXmlNode *node, const char *name);
/* Returns: (transfer full) (nullable) NULL with an error when it is absent or empty */
char *pod_sg_need_attr (const PodSgPlatform *platform, PodXmlNode *node, const char *name,
                        GError **error);

/* -- simgrid-paths.c: the routes of a zone --------------------------------------------------------
 */
bool pod_sg_read_routes (PodSgPlatform *platform, PodSgZone *zone, GError **error);

/* -- simgrid-layout.c: paths become places and wires ---------------------------------------------
 */
bool pod_sg_layout (PodSgPlatform *platform, GError **error);

/* -- simgrid-routes.c: the file's way between any two hosts --------------------------------------
 */

/* The machine, with a route for each pair whose cheapest way is not the file's. Returns: (transfer
 * full) (nullable) */
PodTopology *pod_sg_build (PodSgPlatform *platform, GError **error);
