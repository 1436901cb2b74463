#pragma once

#include "topology/chip.h"

/* A machine: devices, hosts, switches and directed links. Links are numbered densely and described
 * on demand, so that a slice of 100,000 chips costs no memory per link; only explicit graphs store
 * them.
 *
 * Links belong to chips: where a chip is two devices (TPU v2, v3, v7x, MI250X) both share the
 * chip's ICI, scale-up and NIC links, a pair of POD_LINK_DIE links joins them, and PodLink names
 * the chip's first device as the end of a shared link.
 *
 * Tree: level 0 are leaf switches. From level 1 on, a vertex is a *group*: all switches that the
 * leaves under it reach with equal cost, taken as one (ideal ECMP); n_switches counts the real
 * ones. A torus of several slices has a tree too: its DCN, with the slice as node, one non-blocking
 * core, and with oversub= an uplink per slice.
 *
 * Devices: device = chip * devices_per_chip + core. Torus chips are numbered x fastest, then y, z,
 * then slice: chip = x + X*(y + Y*(z + Z*slice)). Switched chips: node-major (chip = node *
 * chips_per_node + local). */

typedef enum
{
  POD_FABRIC_TORUS,    /* slices of ICI torus, joined by DCN */
  POD_FABRIC_SWITCHED, /* nodes (switch or full mesh inside) joined by a fat tree */
  POD_FABRIC_GRAPH,    /* explicit nodes and links */
} PodFabric;

typedef enum
{
  POD_LINK_ICI,      /* torus neighbour */
  POD_LINK_DIE,      /* between the two devices of one chip */
  POD_LINK_SCALE_UP, /* device <-> NVSwitch port, or one xGMI pair */
  POD_LINK_NIC,      /* device or host <-> leaf switch (PCIe and NIC: the slower of the two) */
  POD_LINK_TREE, /* leaf <-> spines <-> cores: the whole uplink of one group, all parallel cables
                    together */
  POD_LINK_EXPLICIT, /* from a graph file */
} PodLinkKind;

typedef struct
{
  PodLinkKind kind;
  PodRated bytes_per_s; /* this direction */
  int64_t latency_ps;
  uint32_t from; /* vertex: devices first, then switches */
  uint32_t to;
  uint8_t dim; /* torus axis, or tree level */
  int8_t sign; /* +1 / -1 along the axis, +1 up / -1 down */
  bool is_half_duplex; /* graphs: one link for both directions, which share its rate (a bus) */
} PodLink;

#define POD_MAX_DIMS 4 /* x, y, z, then dcn (slices) */

typedef struct
{
  char *name;    /* as the user wrote it */
  PodChip *chip; /* (owned) */
  PodFabric fabric;
  unsigned n_chips;
  unsigned n_devices;
  unsigned n_hosts;
  unsigned n_links;
  unsigned n_vertices;    /* devices + switches */
  GPtrArray *assumptions; /* (element-type utf8) defaults taken */

  /* TORUS. extent[] in chips; dims beyond n_dims have extent 1. */
  unsigned n_dims; /* 1..3 */
  unsigned extent[3];
  bool wraps[3];
  bool is_twisted;
  unsigned host_extent[3]; /* chips of one host, turned so that the fewest hosts cover the slice */
  unsigned n_slices;

  /* SWITCHED */
  unsigned chips_per_node; /* scale-up domain; on tori the chips of a slice */
  unsigned n_nodes;        /* on tori the slices */
  unsigned n_nics;         /* of a node, over which its chips' shares are dealt: a library opens its
                              channels on them; 0: not said, or no such machine */
  unsigned n_rails; /* chip c of a node is on rail c % n_rails; 1: a leaf takes whole nodes */
  bool has_separate_rails; /* no switch joins two rails: traffic crosses them on the sender's
                              scale-up links */
  bool is_full_mesh;       /* xGMI: pair links instead of switch ports */
  bool is_rail_optimised;  /* NIC i of every node on leaf i of its unit */
  unsigned n_levels;       /* of the tree: 0 (one node), 1 (one leaf layer), 2, 3 */
  struct
  {
    unsigned n_switches;     /* real switches, for the record; equals n_groups at level 0 */
    unsigned n_groups;       /* vertices of the model */
    unsigned span_nodes;     /* nodes under one group */
    unsigned devices_below;  /* devices under one group (a full one) */
    double oversubscription; /* rates below / uplink; 1 at the top */
    PodRated up_bytes_per_s; /* whole uplink of one group, one direction; 0 at the top */
    int64_t hop_ps;          /* of its uplink */
  } level[3];

  /* GRAPH: (nullable) n_links entries, and next-hop tables. A node of the file is one device,
   * n_nodes counts its islands and chips_per_node is the largest of them. */
  PodLink *links;
  struct PodGraphRoutes *routes;

  /* (owned) (nullable) n_links rates of traffic that is there already and does not give way:
   * collectives get what it leaves. Lost when the machine is built anew by pod_topology_set. */
  double *background_bytes_per_s;

  /* What the machine was built from, for pod_topology_set and _to_xml. */
  struct PodTopologySpec *spec;
  /* Where the kinds of links and vertices begin (src/topology). */
  uint32_t first_nic_link;
  uint32_t first_die_link;
  uint32_t first_tree_link[3];
  uint32_t first_tree_vertex[3];
} PodTopology;

/* Builds a machine from a shape expression ("tpu-v5p:4x4x8t*2,…",
 * "h100:8x128,nic=400Gb/s,rails=8,oversub=1,tree=3"), the name of a file in topologies/, or a file.
 * Errors name what is wrong and what would be right (INVALID, PARSE; INFEASIBLE for a shape that no
 * such pod has unless "unchecked" follows). Returns: (transfer full) */
PodTopology *pod_topology_load (const char *text, GError **error);
void pod_topology_free (PodTopology *topology);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodTopology, pod_topology_free)

/* "chip.FIELD", "topology.FIELD" of --set; recomputes what depends on it. */
bool pod_topology_set (PodTopology *topology, const char *path, const char *value, GError **error);

/* Describes link @id < n_links. O(1) (O(levels) on trees). */
void pod_topology_link (const PodTopology *topology, uint32_t id, PodLink *out);

/* Whether a link cannot be full unless all that traffic comes from, or all that it goes on to, is: the uplink of a group of a tree that is not
 * thinned there, with no traffic but that of its devices. O(levels). */
bool pod_topology_link_is_slack (const PodTopology *topology, uint32_t id);

/* Links of one class have one kind, rate and latency: rates need to be asked for once each. Graphs
 * have no classes. O(levels). */
#define POD_LINK_CLASS_SHORT 0 /* ICI, ports, pairs */
#define POD_LINK_CLASS_NIC   1
#define POD_LINK_CLASS_DIE   2
#define POD_LINK_CLASS_TREE  3 /* and the levels above */
#define POD_N_LINK_CLASSES   6
#define POD_NO_LINK_CLASS    UINT_MAX
unsigned pod_topology_link_class (const PodTopology *topology, uint32_t id);

/* Appends to @links (element-type uint32_t) the links of the route from device @from to device @to,
 * in order: dimension- ordered shortest on tori (ties go to +), up-down on trees, and on graphs the
 * cheapest, where a link costs 1/rate (as OSPF counts, so that a fast tier wins over a slow one
 * with as few hops), then the one with fewest hops; equal next hops are spread by destination; a
 * <route> of the file goes before all that. A half-duplex link may be crossed from either end.
 * Between the two devices of chips: the ICI or NIC way of the chips, then the die link of the last.
 * False when there is none. Returns true with nothing appended when from == to. O(hops). */
bool pod_topology_route (const PodTopology *topology, uint32_t from, uint32_t to, GArray *links);

/* Torus: the link that leaves @device along @dim towards @sign (0..n_dims-1 ICI; n_dims..: not
 * links). false: no link there (edge of a line). *out_to is the neighbour device (same core of the
 * next chip). */
bool pod_topology_torus_link (const PodTopology *topology, uint32_t device, unsigned dim, int sign,
                              uint32_t *out_link, uint32_t *out_to);
/* Torus coordinates of a device: x, y, z, slice (core is device % devices_per_chip). And back. */
void pod_topology_coords (const PodTopology *topology, uint32_t device, unsigned out[POD_MAX_DIMS]);
uint32_t pod_topology_device (const PodTopology *topology, const unsigned coords[POD_MAX_DIMS],
                              unsigned core);

/* Scale-out (NIC/DCN) links of a device, up and down; false when the machine has none. */
bool pod_topology_nic_links (const PodTopology *topology, uint32_t device, uint32_t *out_up,
                             uint32_t *out_down);
/* Scale-up port links of a device on a switched node (device->switch, switch->device). false on
 * tori, meshes. */
bool pod_topology_port_links (const PodTopology *topology, uint32_t device, uint32_t *out_up,
                              uint32_t *out_down);
/* Full mesh: the directed pair link. */
bool pod_topology_pair_link (const PodTopology *topology, uint32_t from, uint32_t to,
                             uint32_t *out_link);
/* The link to the other device of the same chip; false on chips of one device. */
bool pod_topology_die_link (const PodTopology *topology, uint32_t device, uint32_t *out_link,
                            uint32_t *out_to);
/* Node (scale-up domain) of a device; slice on tori; island on graphs. */
unsigned pod_topology_node_of (const PodTopology *topology, uint32_t device);
unsigned pod_topology_host_of (const PodTopology *topology, uint32_t device);

/* The links of @kind that exist (a line has no link beyond its ends, but keeps the id). O(1);
 * O(links) on graphs. */
unsigned pod_topology_count_links (const PodTopology *topology, PodLinkKind kind);

/* Facts for podsim topology.
 * Bisection, bytes/s in one direction:
 *   torus     the least over the axes of (chips / extent) links, twice when the axis wraps; on a
 * twisted torus the wrap links of the short axes, which move half a turn along the long ones, cross
 * a long axis's cut too; several slices: the least of that and of half the chips' (or slices') DCN
 * rate switched  one node: half the chips' scale-up rate, or (n/2)^2 pair links of a mesh; several:
 * the least over the levels of half the rates into it graph     the least cut between the first and
 * the second half of the devices in file order Diameter: hops of the longest route. O(1); O(chips)
 * on twisted tori, O(devices^2) on graphs. */
double pod_topology_bisection (const PodTopology *topology, bool is_book);
unsigned pod_topology_diameter (const PodTopology *topology);

/* The same machine as our XML (round-trips through pod_topology_load). Returns: (transfer full) */
char *pod_topology_to_xml (const PodTopology *topology);
