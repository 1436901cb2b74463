#include <math.h>

#include "base/error.h"
#include "topology/topology-private.h"

/* Nodes with a scale-up domain inside, joined by a fat tree. Link ids: scale-up first (switch: port
 * up and down of each chip; mesh: each chip to each other of its node), then tree.c's. */

/* -- defaults ---------------------------------------------------------------------------------- */

static bool
has_switch (const PodTopology *topology)
{
  return !topology->is_full_mesh && topology->chips_per_node > 1;
}

static unsigned
radix_of (const PodTopology *topology)
{
  return topology->spec->radix > 0 ? topology->spec->radix : topology->chip->switch_radix;
}

static unsigned
ceil_div (unsigned a, unsigned b)
{
  return a / b + (a % b != 0);
}

/* Rails: one per chip of a host, as NIC i of every host goes to the same leaf; fewer when the node
 * is smaller. */
static bool
set_rails (PodTopology *topology, GError **error)
{
  const PodTopologySpec *spec = topology->spec;
  unsigned per_host = topology->chip->chips_per_host;
  unsigned rails = spec->n_rails;

  if (rails == 0)
    rails = topology->chips_per_node % per_host == 0 ? per_host : topology->chips_per_node;
  if (topology->chips_per_node % rails != 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                   "%u chips of a node do not divide over %u rails: take a divisor of %u",
                   topology->chips_per_node, rails, topology->chips_per_node);
      return false;
    }
  topology->n_rails = rails;
  topology->is_rail_optimised = rails > 1;
  topology->has_separate_rails = spec->has_separate_rails && rails > 1;
  return true;
}

/* Levels that the nodes need: one while a unit's leaves take them all, two while a spine has a port
 * for every leaf. */
static unsigned
needed_levels (const PodTopology *topology, unsigned unit_nodes)
{
  unsigned n_units = ceil_div (topology->n_nodes, unit_nodes);
  unsigned n_leaves = n_units * (topology->has_separate_rails ? 1 : topology->n_rails);

  if (n_units == 1)
    return 1;
  return MAX (n_leaves <= radix_of (topology) ? 2U : 3U,
              MIN (topology->chip->tree_levels, (unsigned) POD_MAX_LEVELS));
}

/* What a three-level tree of that radix can take is half the ports at each of two levels and all at
 * the third. */
static void
note_capacity (const PodTopology *topology, unsigned unit_nodes, unsigned pod_nodes)
{
  unsigned radix = radix_of (topology);
  unsigned n_pods = ceil_div (topology->n_nodes, pod_nodes);

  if (topology->n_levels == POD_MAX_LEVELS && n_pods > radix)
    g_ptr_array_add (
        topology->assumptions,
        g_strdup_printf ("%u pods of %u nodes (units of %u) are more than a core switch "
                         "of %u ports joins: a larger core is assumed",
                         n_pods, pod_nodes, unit_nodes, radix));
}

static bool
set_levels (PodTopology *topology, GError **error)
{
  const PodTopologySpec *spec = topology->spec;
  unsigned half = MAX (radix_of (topology) / 2, 1);
  unsigned chips_per_leaf = topology->chips_per_node / topology->n_rails;
  unsigned unit = spec->unit_nodes > 0 ? spec->unit_nodes : MAX (half / chips_per_leaf, 1);
  unsigned leaves = topology->has_separate_rails ? 1 : topology->n_rails;
  unsigned pod = spec->pod_nodes > 0 ? spec->pod_nodes : unit * MAX (half / leaves, 1);
  unsigned needed = needed_levels (topology, unit);

  if (topology->n_nodes == 1)
    return pod_tree_check_ratios (topology, error);
  /* A ratio is of uplinks, so there is a level above the last one that is thinned. */
  for (unsigned level = 0; level < spec->n_oversubscriptions && level + 1 < POD_MAX_LEVELS; level++)
    if (spec->oversubscription[level] < 1 || spec->oversubscription[level] > 1)
      needed = MAX (needed, level + 2);
  topology->n_levels = spec->n_levels > 0                               ? spec->n_levels
                       : spec->pod_nodes > 0 && pod < topology->n_nodes ? POD_MAX_LEVELS
                                                                        : needed;
  if (topology->n_levels == 1 && unit < topology->n_nodes && !spec->is_unchecked)
    {
      g_set_error (
          error, POD_ERROR, POD_ERROR_INFEASIBLE,
          "one level of leaf switches takes %u nodes, got %u: take tree=%u, a larger radix= or "
          "unit=, or add ,unchecked",
          unit, topology->n_nodes, needed);
      return false;
    }
  if (pod % unit != 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                   "a pod of %u nodes is not made of whole units of %u nodes", pod, unit);
      return false;
    }
  if (!pod_tree_check_ratios (topology, error))
    return false;
  unsigned spans[POD_MAX_LEVELS] = { unit, pod, topology->n_nodes };
  spans[topology->n_levels - 1] = topology->n_nodes;
  pod_tree_fill_levels (topology, spans);
  note_capacity (topology, unit, pod);
  return true;
}

static bool
check_node (const PodTopology *topology, GError **error)
{
  unsigned domain = topology->chip->scale_up_chips;

  if (topology->chips_per_node <= domain)
    return true;
  g_set_error (
      error, POD_ERROR, POD_ERROR_INFEASIBLE,
      "a scale-up domain of %s has at most %u chips, got %u: write %s:%ux%u, or add ,unchecked",
      topology->chip->name, domain, topology->chips_per_node, topology->chip->name, domain,
      ceil_div (topology->chips_per_node, domain) * topology->n_nodes);
  return false;
}

bool
pod_switched_build (PodTopology *topology, GError **error)
{
  const PodTopologySpec *spec = topology->spec;
  const PodChip *chip = topology->chip;
  uint64_t n_chips = (uint64_t) spec->n_nodes * spec->chips_per_node;

  if (n_chips * chip->devices_per_chip > POD_MAX_DEVICES)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                   "%" G_GUINT64_FORMAT " devices are more than the %d that fit",
                   n_chips * chip->devices_per_chip, POD_MAX_DEVICES);
      return false;
    }
  topology->n_nodes = spec->n_nodes;
  topology->chips_per_node = spec->chips_per_node;
  topology->n_nics = spec->n_nics > 0 ? spec->n_nics : spec->chips_per_node;
  topology->n_chips = (unsigned) n_chips;
  topology->n_devices = topology->n_chips * chip->devices_per_chip;
  topology->n_hosts = topology->n_nodes * ceil_div (topology->chips_per_node, chip->chips_per_host);
  topology->is_full_mesh = chip->family == POD_FAMILY_MESH;
  if ((!spec->is_unchecked && !check_node (topology, error)) || !set_rails (topology, error)
      || !set_levels (topology, error))
    return false;
  uint64_t per_chip = topology->is_full_mesh  ? topology->chips_per_node - 1
                      : has_switch (topology) ? 2
                                              : 0;
  uint64_t n_crossbars = has_switch (topology) ? topology->n_nodes : 0;
  return pod_tree_number (topology, n_chips * per_chip, topology->n_devices + n_crossbars, error);
}

/* -- links ------------------------------------------------------------------------------------- */

static uint32_t
pair_link (const PodTopology *topology, uint32_t from_chip, uint32_t to_chip)
{
  uint32_t per_node = topology->chips_per_node;
  uint32_t from = from_chip % per_node;
  uint32_t to = to_chip % per_node;

  return from_chip * (per_node - 1) + to - (to > from);
}

/* Half of the latency from chip to chip is before the switch and half behind it. */
static void
describe_port (const PodTopology *topology, uint32_t id, PodLink *out)
{
  uint32_t chip = id / 2;
  bool is_up = id % 2 == 0;
  uint32_t device = chip * topology->chip->devices_per_chip;
  uint32_t crossbar = topology->n_devices + chip / topology->chips_per_node;

  *out = (PodLink){ .kind = POD_LINK_SCALE_UP,
                    .bytes_per_s = topology->chip->scale_up_bytes_per_s,
                    .latency_ps = topology->chip->scale_up_hop_ps / 2,
                    .from = is_up ? device : crossbar,
                    .to = is_up ? crossbar : device,
                    .sign = is_up ? 1 : -1 };
}

static void
describe_pair (const PodTopology *topology, uint32_t id, PodLink *out)
{
  uint32_t per_node = topology->chips_per_node;
  uint32_t from_chip = id / (per_node - 1);
  uint32_t from = from_chip % per_node;
  uint32_t to = id % (per_node - 1);
  uint32_t to_chip = from_chip - from + to + (to >= from);
  /* The chip's links are shared out evenly over its peers in a full domain; a smaller node leaves
   * some unused. */
  double peers = MAX (MAX (topology->chip->scale_up_chips, per_node) - 1, 1);
  const PodRated *whole = &topology->chip->scale_up_bytes_per_s;

  *out = (PodLink){ .kind = POD_LINK_SCALE_UP,
                    .bytes_per_s = { whole->nominal / peers, whole->book / peers },
                    .latency_ps = topology->chip->scale_up_hop_ps,
                    .from = from_chip * topology->chip->devices_per_chip,
                    .to = to_chip * topology->chip->devices_per_chip,
                    .sign = 1 };
}

void
pod_switched_link (const PodTopology *topology, uint32_t id, PodLink *out)
{
  if (id >= topology->first_nic_link)
    pod_tree_link (topology, id, out);
  else if (topology->is_full_mesh)
    describe_pair (topology, id, out);
  else
    describe_port (topology, id, out);
}

bool
pod_topology_port_links (const PodTopology *topology, uint32_t device, uint32_t *out_up,
                         uint32_t *out_down)
{
  g_return_val_if_fail (device < topology->n_devices, false);

  if (topology->fabric != POD_FABRIC_SWITCHED || !has_switch (topology))
    return false;
  uint32_t chip = device / topology->chip->devices_per_chip;
  if (out_up != NULL)
    *out_up = 2 * chip;
  if (out_down != NULL)
    *out_down = 2 * chip + 1;
  return true;
}

bool
pod_topology_pair_link (const PodTopology *topology, uint32_t from, uint32_t to, uint32_t *out_link)
{
  g_return_val_if_fail (from < topology->n_devices && to < topology->n_devices, false);

  uint32_t from_chip = from / topology->chip->devices_per_chip;
  uint32_t to_chip = to / topology->chip->devices_per_chip;

  if (topology->fabric != POD_FABRIC_SWITCHED || !topology->is_full_mesh || from_chip == to_chip
      || from_chip / topology->chips_per_node != to_chip / topology->chips_per_node)
    return false;
  if (out_link != NULL)
    *out_link = pair_link (topology, from_chip, to_chip);
  return true;
}

/* -- routes ------------------------------------------------------------------------------------ */

static void
append_scale_up (const PodTopology *topology, uint32_t from_chip, uint32_t to_chip, GArray *links)
{
  if (from_chip == to_chip)
    return;
  if (topology->is_full_mesh)
    {
      pod_links_append (links, pair_link (topology, from_chip, to_chip));
      return;
    }
  pod_links_append (links, 2 * from_chip);
  pod_links_append (links, 2 * to_chip + 1);
}

/* Where no switch joins the rails of the two chips, the sender first crosses to the chip of its
 * host that is on the receiver's rail, as NCCL's PXN does. */
bool
pod_switched_route (const PodTopology *topology, uint32_t from_chip, uint32_t to_chip,
                    GArray *links)
{
  uint32_t per_node = topology->chips_per_node;

  if (from_chip / per_node == to_chip / per_node)
    {
      append_scale_up (topology, from_chip, to_chip, links);
      return true;
    }
  if (pod_tree_route (topology, from_chip, to_chip, links))
    return true;
  uint32_t local = from_chip % per_node;
  uint32_t rail = to_chip % per_node % topology->n_rails;
  uint32_t relay = from_chip - local + local / topology->n_rails * topology->n_rails + rail;
  append_scale_up (topology, from_chip, relay, links);
  return pod_tree_route (topology, relay, to_chip, links);
}

/* -- facts ------------------------------------------------------------------------------------- */

double
pod_switched_bisection (const PodTopology *topology, bool is_book)
{
  unsigned n_chips = topology->chips_per_node;
  double egress = pod_rated (&topology->chip->scale_up_bytes_per_s, is_book);
  PodLink pair;

  if (topology->n_levels > 0)
    return pod_tree_bisection (topology, is_book);
  if (!topology->is_full_mesh)
    return n_chips / 2 * egress;
  if (n_chips == 1)
    return 0;
  describe_pair (topology, 0, &pair);
  return (double) (n_chips / 2) * (n_chips - n_chips / 2) * pod_rated (&pair.bytes_per_s, is_book);
}

unsigned
pod_switched_diameter (const PodTopology *topology)
{
  bool has_scale_up = topology->chips_per_node > 1;
  unsigned inside = has_scale_up ? (topology->is_full_mesh ? 1 : 2) : 0;
  bool relays = topology->n_rails > 1 && (topology->has_separate_rails || topology->n_levels == 1);

  return MAX (inside, 2 * topology->n_levels + (relays ? inside : 0));
}
