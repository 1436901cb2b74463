#pragma once

#include "base/xml.h"
#include "topology/topology.h"

enum
{
  POD_MAX_DEVICES = 1 << 24,
  POD_MAX_LEVELS = 3,
  POD_WRAP_BY_RULE = -1, /* PodTopologySpec.wrap_mask: as the chip's file says */
};

/* What was asked for, before the chip's rules and defaults: a shape expression and an XML file both
 * become one. 0 means "the default" where no other value is named. */
typedef struct PodTopologySpec
{
  char *name;
  char *location; /* (nullable) "file:line" of the element, for messages about what does not fit
                     together */
  char *chip;     /* as the user wrote it: a name or a file */
  PodFabric fabric;
  bool is_unchecked;
  double nic_bytes_per_s;
  double oversubscription[POD_MAX_LEVELS];
  unsigned n_oversubscriptions;
  GPtrArray *chip_sets; /* (element-type utf8) "field=value" */
  GPtrArray *notes;     /* (element-type utf8) what a reader of a foreign format assumed */

  unsigned n_axes;
  unsigned extent[3];
  unsigned n_slices;
  bool is_twisted;
  int wrap_mask; /* POD_WRAP_BY_RULE, or bit per axis */

  unsigned n_nodes;
  unsigned chips_per_node;
  unsigned n_nics;
  unsigned n_rails;
  unsigned n_levels;
  unsigned radix;
  unsigned unit_nodes;
  unsigned pod_nodes;
  bool has_separate_rails;

  struct PodGraphSpec *graph; /* (nullable) */
} PodTopologySpec;

PodTopologySpec *pod_topology_spec_new (void);
void pod_topology_spec_free (PodTopologySpec *spec);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodTopologySpec, pod_topology_spec_free)
PodTopologySpec *pod_topology_spec_copy (const PodTopologySpec *spec);
/* Applies the spec's chip_sets. */
bool pod_topology_spec_set_chip (PodChip *chip, const PodTopologySpec *spec, GError **error);

/* -- options: one table for shape expressions, XML attributes and pod_topology_set ---------------
 */

typedef enum
{
  POD_OPTION_TORUS = 1 << POD_FABRIC_TORUS,
  POD_OPTION_SWITCHED = 1 << POD_FABRIC_SWITCHED,
} PodOptionFabrics;

typedef struct
{
  const char *name; /* in shape expressions and --set */
  const char *attribute;
  unsigned fabrics;
  bool is_flag;   /* stands without a value in shape expressions */
  bool is_extent; /* part of the shape itself, so no option behind it */
  bool (*set) (PodTopologySpec *spec, const char *value, GError **error);
  /* Returns: (transfer full) (nullable) NULL when it is the default */
  char *(*get) (const PodTopologySpec *spec);
  const char *summary;
} PodTopologyOption;

extern const PodTopologyOption pod_topology_options[];
extern const size_t pod_topology_n_options;

/* By name or attribute. Errors name the option; an unknown one lists those of the fabric. */
bool pod_topology_option_set (PodTopologySpec *spec, const char *name, const char *value,
                              GError **error);

/* -- shape expressions ----------------------------------------------------------------------------
 */

/* Reads what stands behind "CHIP:", which is named @name in messages and results. Returns:
 * (transfer full) */
PodTopologySpec *pod_shape_parse (const char *text, const char *name, const PodChip *chip,
                                  GError **error);

/* -- building; each fills the topology from topology->spec and topology->chip
 * ---------------------- */

/* Returns: (transfer full) @spec and @chip are taken, also on error. */
PodTopology *pod_topology_build (PodTopologySpec *spec, PodChip *chip, GPtrArray *assumptions,
                                 GError **error);

bool pod_torus_build (PodTopology *topology, GError **error);
void pod_torus_link (const PodTopology *topology, uint32_t id, PodLink *out);
bool pod_torus_route (const PodTopology *topology, uint32_t from_chip, uint32_t to_chip,
                      GArray *links);
double pod_torus_bisection (const PodTopology *topology, bool is_book);
unsigned pod_torus_diameter (const PodTopology *topology);
unsigned pod_torus_count_links (const PodTopology *topology);

bool pod_switched_build (PodTopology *topology, GError **error);
void pod_switched_link (const PodTopology *topology, uint32_t id, PodLink *out);
bool pod_switched_route (const PodTopology *topology, uint32_t from_chip, uint32_t to_chip,
                         GArray *links);
double pod_switched_bisection (const PodTopology *topology, bool is_book);
unsigned pod_switched_diameter (const PodTopology *topology);

/* -- tree: NICs, dies and switch levels, the same for DCN and fat trees
 * ---------------------------- */

/* Numbers NIC, die and tree links from @first_link on and the switches from @first_vertex on; sets
 * n_links and n_vertices. The level spans and rates stand already. POD_ERROR_LIMIT when ids do not
 * fit. */
bool pod_tree_number (PodTopology *topology, uint64_t first_link, uint64_t first_vertex,
                      GError **error);
/* Refuses a ratio other than 1 for a level without uplinks; n_levels stands already. */
bool pod_tree_check_ratios (const PodTopology *topology, GError **error);
/* Fills level[]: @spans nodes per group, up rates by the spec's oversubscription. */
void pod_tree_fill_levels (PodTopology *topology, const unsigned *spans);
void pod_tree_link (const PodTopology *topology, uint32_t id, PodLink *out);
/* Rails that the groups of @level keep apart. */
unsigned pod_tree_level_rails (const PodTopology *topology, unsigned level);
/* From chip to chip over NICs and switches; false when no level joins them. */
bool pod_tree_route (const PodTopology *topology, uint32_t from_chip, uint32_t to_chip,
                     GArray *links);
/* The least over the levels of half the rates into it. */
double pod_tree_bisection (const PodTopology *topology, bool is_book);
unsigned pod_tree_count_links (const PodTopology *topology, PodLinkKind kind);
/* The NIC's rate: the slower of NIC and PCIe behind it. */
PodRated pod_tree_nic_rate (const PodTopology *topology);

static inline void
pod_links_append (GArray *links, uint32_t id)
{
  g_array_append_val (links, id);
}

static inline double
pod_rated (const PodRated *rated, bool is_book)
{
  return is_book ? rated->book : rated->nominal;
}

/* -- graphs (graph-private.h)
 * ---------------------------------------------------------------------- */

typedef struct PodGraphSpec PodGraphSpec;
typedef struct PodGraphRoutes PodGraphRoutes;

/* Reads <graph>; errors carry file:line. Returns: (transfer full) (nullable) */
PodGraphSpec *pod_graph_spec_read (const PodXml *xml, PodXmlNode *node, GError **error);
PodGraphSpec *pod_graph_spec_ref (PodGraphSpec *graph);
/* NULL is fine. */
void pod_graph_spec_unref (PodGraphSpec *graph);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodGraphSpec, pod_graph_spec_unref)
void pod_graph_spec_append_xml (const PodGraphSpec *graph, GString *out);
bool pod_graph_build (PodTopology *topology, GError **error);
bool pod_graph_route (const PodTopology *topology, uint32_t from, uint32_t to, GArray *links);
unsigned pod_graph_island_of (const PodTopology *topology, uint32_t device);
double pod_graph_bisection (const PodTopology *topology, bool is_book);
unsigned pod_graph_diameter (const PodTopology *topology);
void pod_graph_routes_free (PodGraphRoutes *routes);

/* -- XML
 * ------------------------------------------------------------------------------------------- */

/* Reads a machine file. Returns: (transfer full) (nullable) */
PodTopologySpec *pod_topology_xml_read (const char *file, GError **error);
