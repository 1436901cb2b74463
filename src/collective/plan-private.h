#pragma once

#include "collective/collective.h"
#include "collective/library.h"

/* What the algorithms share: a request with its group analysed once, and an accumulator of bytes
 * per link. */

/* Bytes per link and payload byte, one entry per link, in the order of the first addition. */
typedef struct
{
  uint32_t n;
  uint32_t capacity;
  uint32_t *links;
  double *bytes;
  uint32_t n_slots; /* a power of two */
  uint32_t *slots;  /* open addressing: position + 1, 0 = free */
  bool is_direct;   /* a slot for each link */
} PodLinkLoads;

void pod_link_loads_init (PodLinkLoads *loads, uint32_t n_expected);
void pod_link_loads_clear (PodLinkLoads *loads);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodLinkLoads, pod_link_loads_clear)
/* O(1) amortised. */
void pod_link_loads_add (PodLinkLoads *loads, uint32_t link, double bytes);

/* One factor of a torus group, as the algorithms walk it. */
typedef struct
{
  uint8_t dim;
  uint32_t stride; /* links of one hop */
  uint32_t size;
  uint32_t span; /* neighbours along it are that far apart in PodGroup.devices */
  bool is_ring;
  double bytes_per_s;      /* of one link, at the request's fidelity */
  double book_bytes_per_s; /* of one link */
  int64_t hop_ps;          /* from one member to the next */
} PodAxis;

/* The members of a group by node (scale-up domain) of a switched machine; nodes in the order of
 * their first member. */
typedef struct
{
  unsigned n_nodes;
  uint32_t *first;   /* (owned) n_nodes + 1 positions in @devices */
  uint32_t *devices; /* (owned) group order within a node */
  unsigned n_least;  /* members of the node that has fewest */
} PodMemberNodes;

typedef struct
{
  const PodTopology *topology;
  PodFidelity fidelity;
  const PodGroup *group;
  PodCollectiveKind kind;
  /* Factor groups: axes within the slice first (ICI, cores), then those over slices (DCN). Factors
   * of size 1 left out. */
  unsigned n_axes;
  unsigned n_slice_axes;
  PodAxis axes[POD_MAX_FACTORS];
  uint32_t n_in_slice;   /* product of the first n_axes sizes */
  uint32_t n_slices;     /* product of the others */
  bool is_twisted_whole; /* the ICI factors are all of a twisted slice */
  PodMemberNodes nodes;  /* n_nodes = 0 unless the group is a list on a switched machine */
  bool has_latencies;    /* of the nodes, the next two */
  int64_t inside_ps;
  int64_t across_ps;
  GArray *route;         /* (owned) (element-type uint32_t) the last route that was found */
  PodLinkLoads loads;    /* of the plan that is being built */
  PodDtype dtype;
  uint64_t payload_bytes; /* what depends on it (step-ring) is a plan for this size only */
  PodPhases phases;
  bool has_steps;
  PodStepLaw steps;
  const PodTrafficMatrix *traffic; /* (nullable) */
  bool is_folded;
  unsigned n_idle;                /* axes at the end that only hold copies */
  const PodLibraryDevice *device; /* (nullable) the library's entry of this chip */
} PodPlanRequest;

/* Empty again, with room for @n_expected of @n_links links; keeps its memory. O(slots). */
void pod_link_loads_reset (PodLinkLoads *loads, uint32_t n_expected, uint32_t n_links);

/* The fullest link of each class, for the slowest of all: rates are looked up once a class. */
typedef struct
{
  const PodTopology *topology;
  PodFidelity fidelity;
  double most[POD_N_LINK_CLASSES];
  uint32_t link[POD_N_LINK_CLASSES];
  double slowest_s; /* of links that no class stands for */
} PodSlowest;

static inline void
pod_slowest_add (PodSlowest *slowest, uint32_t link, double bytes)
{
  unsigned class = pod_topology_link_class (slowest->topology, link);

  if (class == POD_NO_LINK_CLASS || slowest->topology->background_bytes_per_s != NULL)
    {
      if (bytes > 0)
        slowest->slowest_s
            = MAX (slowest->slowest_s, bytes / pod_collective_link_rate (slowest->topology, slowest->fidelity, link));
    }
  else if (bytes > slowest->most[class])
    {
      slowest->most[class] = bytes;
      slowest->link[class] = link;
    }
}

/* Between nodes: NICs and the switches above them. Of a machine that has classes. */
static inline bool
pod_link_is_across (const PodTopology *topology, uint32_t link)
{
  unsigned class = pod_topology_link_class (topology, link);

  return class == POD_LINK_CLASS_NIC || class >= POD_LINK_CLASS_TREE;
}

/* Seconds that the slowest of all takes. */
double pod_slowest_s (const PodSlowest *slowest);

/* Seconds per payload byte of the slowest link at @fidelity. O(entries). */
double pod_link_loads_time (const PodPlanRequest *request, PodFidelity fidelity);

/* Fills request->loads and the plan's latency, steps, book values and explanation. book_s_per_byte
 * left at 0 becomes the loads at book rates. */
typedef bool (*PodPlanBuild) (PodPlanRequest *request, PodPlan *plan, GError **error);

typedef struct
{
  const char *name;
  bool (*fits) (const PodPlanRequest *request);
  bool (*may_win) (const PodPlanRequest *request); /* (nullable) may it be the cheapest? By name it
                                                      is taken all the same */
  PodPlanBuild build;
  unsigned kinds;          /* bit 1 << kind */
  bool is_by_name;         /* never chosen by cost */
  bool is_by_name_in_book; /* the book counts it only where it says so */
  bool takes_traffic;      /* of a given matrix */
  bool takes_idle;         /* uses the links of axes that only hold copies */
} PodAlgorithm;

/* ---- algorithm-table.c ---- */
extern const PodAlgorithm pod_algorithms[];
extern const size_t pod_n_algorithms;

/* ---- library-plan.c ---- */
/* Has the library a path by which this algorithm does the request? */
bool pod_library_has (const PodPlanRequest *request, const char *algorithm);
/* What the library's equations need of a plan. */
void pod_library_shape (const PodPlanRequest *request, const PodPlan *plan, PodLibraryShape *out);
/* Prices @plan by @path: protocol, latency, wire ratio, cost. */
void pod_library_apply (const PodPlanRequest *request, const PodLibraryPath *path,
                        const PodLibraryShape *shape, uint64_t payload_bytes, PodPlan *plan);
PodPlan *pod_plan_copy (const PodPlan *plan);

/* ---- axis.c ---- */
bool pod_axes_init (PodPlanRequest *request, GError **error);
/* Loads of one axis per byte of the volume that it moves: [i] is what leaves position i towards +
 * and -. */
typedef struct
{
  const PodAxis *axis;
  double volume; /* bytes moved per payload byte; 1 after init */
  double *plus;  /* (owned) size entries */
  double *minus; /* (owned) */
  double peak;
} PodAxisShape;
void pod_axis_shape_init (PodAxisShape *shape, const PodAxis *axis, PodCollectiveKind kind);
void pod_axis_shape_clear (PodAxisShape *shape);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodAxisShape, pod_axis_shape_clear)
/* From the member at @index (in PodGroup.devices) to its neighbour towards @sign. */
typedef struct
{
  const PodAxis *axis;
  uint32_t index;
  int sign;
} PodAxisHop;
/* Adds @bytes to the links of a hop. O(stride). */
bool pod_axis_add_hop (PodPlanRequest *request, const PodAxisHop *hop, double bytes,
                       GError **error);
/* Adds volume x shape for the first @n_members members. O(members x stride). */
bool pod_axis_add (PodPlanRequest *request, const PodAxisShape *shape, uint32_t n_members,
                   GError **error);
/* Hops along the axis until all have what they need, in links. */
uint32_t pod_axis_steps (const PodAxis *axis);
int64_t pod_axis_latency_ps (const PodAxis *axis);
double pod_axis_book_latency_s (const PodPlanRequest *request, const PodAxis *axis);

/* ---- axis-exchange.c ---- */
/* The part of the buffer that moves along each axis within the slice, in @shapes, and the weights
 * p_r, one for each axis of the torus in their order. The devices of one chip come last: their link
 * is the fastest, and what they share of the ICI links is then each shard once. */
void pod_axis_split (const PodPlanRequest *request, PodAxisShape *shapes, double *weights);

/* ---- twisted-torus.c ---- */
/* Adds the loads on the ICI links of a whole twisted slice. *out_share: on the busiest; *out_steps:
 * the longest route. */
bool pod_twisted_add (PodPlanRequest *request, double *out_share, unsigned *out_steps,
                      GError **error);

/* ---- axis-split.c ---- */
#define POD_MAX_SPLIT 5
/* Weights >= 0 with sum 1 that make the largest of the sums cost[row][column] x weight[column]
 * smallest, and that value. Vertex enumeration: O(4^n n^3), n <= POD_MAX_SPLIT. */
double pod_split_minimax (unsigned n_rows, unsigned n_columns,
                          double cost[POD_MAX_FACTORS][POD_MAX_FACTORS], double *weights);

/* ---- member-nodes.c ---- */
void pod_member_nodes_init (PodMemberNodes *nodes, const PodTopology *topology,
                            const PodGroup *group);
void pod_member_nodes_clear (PodMemberNodes *nodes);
uint32_t pod_member_nodes_count (const PodMemberNodes *nodes, unsigned node);
/* Each member of @node sends and receives @bytes within the node, spread over its peers.
 * O(members), squared on a mesh. */
bool pod_node_add (PodPlanRequest *request, unsigned node, double bytes, GError **error);
/* @bytes from one node to another, spread evenly over the members (and so the NICs) of both.
 * O(routes). */
bool pod_node_add_flow (PodPlanRequest *request, unsigned from, unsigned to, double bytes,
                        GError **error);
/* Such a flow is cut into lcm(from, to) equal strands, so that both sides share it evenly and equal
 * sides stay on their rails. Strange sizes would make many: then the larger side is even and the
 * other nearly so. */
uint32_t pod_node_n_strands (uint32_t a, uint32_t b);
/* Latency of the route between neighbours in a node, and between neighbouring nodes: the largest.
 */
bool pod_node_latencies (PodPlanRequest *request, int64_t *out_inside_ps, int64_t *out_across_ps,
                         GError **error);
/* Book: V/(scale-up egress within the group) and V/(NIC), seconds per byte of the slowest member.
 */
double pod_node_book_inside (const PodPlanRequest *request);
double pod_node_book_across (const PodPlanRequest *request);

/* ---- route-add.c ---- */
/* Leaves the links from one device to another in request->route. POD_ERROR_INFEASIBLE when there
 * are none. O(hops). */
bool pod_route_find (PodPlanRequest *request, uint32_t from, uint32_t to, GError **error);
/* The same, and adds @bytes to each. */
bool pod_route_add (PodPlanRequest *request, uint32_t from, uint32_t to, double bytes,
                    GError **error);
/* Of the route that was found last. */
int64_t pod_route_latency_ps (const PodPlanRequest *request);

/* ---- the families: fits and build ---- */
bool pod_fits_one_ring (const PodPlanRequest *request);
bool pod_fits_one_line (const PodPlanRequest *request);
bool pod_fits_torus (const PodPlanRequest *request);
bool pod_fits_slices (const PodPlanRequest *request);
bool pod_fits_slices_only (const PodPlanRequest *request);
/* The book's seconds per byte and latency of all axes together. */
void pod_axis_exchange_book (const PodPlanRequest *request, PodPlan *plan);
bool pod_build_axis_exchange (PodPlanRequest *request, PodPlan *plan, GError **error);

/* Where the ring stands at @step: row and column. */
void pod_block_ring_position (uint32_t n_rows, uint32_t n_columns, uint32_t step, uint32_t *out_row,
                              uint32_t *out_column);
bool pod_fits_block_ring (const PodPlanRequest *request);
bool pod_build_block_ring (PodPlanRequest *request, PodPlan *plan, GError **error);

bool pod_fits_factors (const PodPlanRequest *request);
bool pod_build_axis_tree (PodPlanRequest *request, PodPlan *plan, GError **error);

bool pod_fits_factor_route_ring (const PodPlanRequest *request);
bool pod_fits_list (const PodPlanRequest *request);
bool pod_build_route_ring (PodPlanRequest *request, PodPlan *plan, GError **error);
bool pod_build_route_bidir_ring (PodPlanRequest *request, PodPlan *plan, GError **error);

bool pod_fits_step_ring (const PodPlanRequest *request);
bool pod_build_step_ring (PodPlanRequest *request, PodPlan *plan, GError **error);

/* What a walk through the steps of recursive doubling or halving calls: ranks are positions in the
 * group. */
typedef struct
{
  void (*begin) (void *context);
  bool (*send) (void *context, uint32_t from, uint32_t to, double share, GError **error);
  void (*end) (void *context);
} PodStepSink;

bool pod_recursive_walk (PodPlanRequest *request, bool is_halving, const PodStepSink *sink,
                         void *context, GError **error);
bool pod_build_recursive_doubling (PodPlanRequest *request, PodPlan *plan, GError **error);
bool pod_build_halving_doubling (PodPlanRequest *request, PodPlan *plan, GError **error);

/* Axes of @query->borrowed beyond those of its group. */
unsigned pod_n_idle_axes (const PodPlanQuery *query);
/* The part of a reduction that the idle axes take; leaves the volumes of all axes in @shapes, which
 * were made for them. */
double pod_borrow_mix (const PodPlanRequest *request, PodAxisShape *shapes);
bool pod_fits_borrow (const PodPlanRequest *request);
bool pod_build_borrow (PodPlanRequest *request, PodPlan *plan, GError **error);

/* What rank @from sends to rank @to of an all-to-all, per payload byte. */
double pod_traffic_share (const PodPlanRequest *request, uint32_t from, uint32_t to);
unsigned pod_rail_of (const PodTopology *topology, uint32_t device);
/* Where nodes.devices[i] stands in the group. Returns: (transfer full) */
uint32_t *pod_node_positions (const PodPlanRequest *request);
bool pod_build_traffic (PodPlanRequest *request, PodPlan *plan, GError **error);
bool pod_fits_pxn (const PodPlanRequest *request);
bool pod_pxn_may_win (const PodPlanRequest *request);
bool pod_build_pxn (PodPlanRequest *request, PodPlan *plan, GError **error);
/* Do the machine's own routes change rails inside the sender's node? */
bool pod_has_pxn_routes (const PodTopology *topology);

/* The members of a list by island. */
typedef struct
{
  uint32_t n;
  uint32_t *order; /* (owned) devices, island by island, each in group order */
  uint32_t *first; /* (owned) n + 1 positions in @order */
} PodIslands;

void pod_islands_init (PodIslands *islands, const PodPlanRequest *request);
void pod_islands_clear (PodIslands *islands);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodIslands, pod_islands_clear)
bool pod_fits_islands (const PodPlanRequest *request);
bool pod_build_islands (PodPlanRequest *request, PodPlan *plan, GError **error);

bool pod_fits_sharp (const PodPlanRequest *request);
/* Counts in @below the nodes under each link of the stream of the @at-th members. */
bool pod_sharp_count (PodPlanRequest *request, uint32_t at, PodLinkLoads *below, GError **error);
/* Of the payload, on a link with so many nodes below. */
double pod_sharp_share (const PodPlanRequest *request, const PodLink *link, double n_below);
/* Of the payload, up and down a NIC. */
void pod_sharp_shares (const PodPlanRequest *request, double *out_up, double *out_down);
bool pod_build_sharp (PodPlanRequest *request, PodPlan *plan, GError **error);

bool pod_fits_any (const PodPlanRequest *request);
bool pod_build_route_send (PodPlanRequest *request, PodPlan *plan, GError **error);
bool pod_build_route_tree (PodPlanRequest *request, PodPlan *plan, GError **error);
bool pod_build_route_all_to_all (PodPlanRequest *request, PodPlan *plan, GError **error);

bool pod_fits_one_node (const PodPlanRequest *request);
bool pod_fits_one_switch (const PodPlanRequest *request);
bool pod_build_node_ring (PodPlanRequest *request, PodPlan *plan, GError **error);
bool pod_build_node_direct (PodPlanRequest *request, PodPlan *plan, GError **error);
bool pod_fits_nvls (const PodPlanRequest *request);
/* Of the payload, up and down a port. */
void pod_nvls_shares (const PodPlanRequest *request, double *out_up, double *out_down);
bool pod_build_nvls (PodPlanRequest *request, PodPlan *plan, GError **error);

bool pod_fits_nodes (const PodPlanRequest *request);
bool pod_build_hierarchical (PodPlanRequest *request, PodPlan *plan, GError **error);
bool pod_build_rail_ring (PodPlanRequest *request, PodPlan *plan, GError **error);
bool pod_build_rail_chain (PodPlanRequest *request, PodPlan *plan, GError **error);

/* Parent of @rank in the tree whose leaves are the odd ranks and whose root is 0. Returns false for
 * the root. */
bool pod_double_tree_parent (unsigned n, unsigned rank, unsigned *out);
/* Both trees: the second mirrors the ranks when there is an even number of them, else shifts them
 * by one, so that odd ranks (leaves) become even ones. */
unsigned pod_double_tree_place (unsigned n, unsigned tree, unsigned rank);
bool pod_build_double_tree (PodPlanRequest *request, PodPlan *plan, GError **error);
bool pod_fits_nvls_tree (const PodPlanRequest *request);
bool pod_build_nvls_tree (PodPlanRequest *request, PodPlan *plan, GError **error);

bool pod_fits_switched (const PodPlanRequest *request);
bool pod_build_node_all_to_all (PodPlanRequest *request, PodPlan *plan, GError **error);
