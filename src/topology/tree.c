#include <math.h>

#include "base/error.h"
#include "topology/topology-private.h"

/* NICs, the two dies of a chip, and the levels of switches over the nodes. A node is a scale-up
 * domain, or a slice of a torus. Ids in order: NIC up and down of each chip, both directions of
 * each die pair, up and down of each group. */

static bool
has_nics (const PodTopology *topology)
{
  return topology->n_levels > 0;
}

static bool
has_dies (const PodTopology *topology)
{
  return topology->chip->devices_per_chip == 2;
}

unsigned
pod_tree_level_rails (const PodTopology *topology, unsigned level)
{
  return level == 0 || topology->has_separate_rails ? topology->n_rails : 1;
}

/* The group of @level above @chip. */
static unsigned
group_above (const PodTopology *topology, unsigned level, unsigned node, unsigned place)
{
  unsigned rails = pod_tree_level_rails (topology, level);

  return node / topology->level[level].span_nodes * rails + (rails > 1 ? place % rails : 0);
}

static unsigned
group_of (const PodTopology *topology, unsigned level, uint32_t chip)
{
  unsigned node = chip / topology->chips_per_node;

  return group_above (topology, level, node, chip - node * topology->chips_per_node);
}

PodRated
pod_tree_nic_rate (const PodTopology *topology)
{
  const PodChip *chip = topology->chip;
  double asked = topology->spec->nic_bytes_per_s;
  PodRated nic = asked > 0 ? (PodRated){ asked, asked } : chip->nic_bytes_per_s;

  if (!chip->is_nic_behind_host)
    return nic;
  /* All bytes cross the PCIe of the chip too, so the slower of the two is the link. */
  return (PodRated){ .nominal = fmin (nic.nominal, chip->host_bytes_per_s.nominal),
                     .book = fmin (nic.book, chip->host_bytes_per_s.book) };
}

static unsigned
ceil_div (unsigned a, unsigned b)
{
  return a / b + (a % b != 0);
}

/* Ports of one switch towards below: all of them at the top, else half. */
static unsigned
ports_down (const PodTopology *topology, unsigned level)
{
  unsigned radix = topology->spec->radix > 0 ? topology->spec->radix : topology->chip->switch_radix;

  return level + 1 == topology->n_levels ? radix : MAX (radix / 2, 1);
}

/* Real switches of a level above the leaves: cables from below, at the NIC's rate, over the ports.
 */
static unsigned
count_switches (const PodTopology *topology, unsigned level)
{
  double nic = topology->spec->nic_bytes_per_s > 0 ? topology->spec->nic_bytes_per_s
                                                   : topology->chip->nic_bytes_per_s.nominal;
  double cables = topology->level[level - 1].up_bytes_per_s.nominal
                  * topology->level[level - 1].n_groups / nic;
  unsigned ports = ports_down (topology, level);

  if (topology->fabric == POD_FABRIC_TORUS || ports == 0)
    return topology->level[level].n_groups; /* the switches of a DCN are not described */
  return (unsigned) ceil (cables / ports - 1e-9);
}

bool
pod_tree_check_ratios (const PodTopology *topology, GError **error)
{
  const PodTopologySpec *spec = topology->spec;
  unsigned n_uplinks = topology->n_levels > 0 ? topology->n_levels - 1 : 0;

  for (unsigned level = n_uplinks; level < spec->n_oversubscriptions; level++)
    if (spec->oversubscription[level] < 1 || spec->oversubscription[level] > 1)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                     "oversub= thins the uplinks of level %u, but this machine has %u with uplinks",
                     level + 1, n_uplinks);
        return false;
      }
  return true;
}

void
pod_tree_fill_levels (PodTopology *topology, const unsigned *spans)
{
  const PodTopologySpec *spec = topology->spec;
  PodRated chip_rate = pod_tree_nic_rate (topology); /* what reaches the level from one chip */

  for (unsigned level = 0; level < topology->n_levels; level++)
    {
      unsigned rails = pod_tree_level_rails (topology, level);
      unsigned span = MIN (spans[level], topology->n_nodes);
      unsigned chips_below = span * topology->chips_per_node / rails;
      bool is_top = level + 1 == topology->n_levels;
      double ratio = 1;

      /* A ratio that is given for one level holds for no other. */
      if (level < spec->n_oversubscriptions && !is_top)
        ratio = spec->oversubscription[level];
      topology->level[level].span_nodes = span;
      topology->level[level].n_groups = ceil_div (topology->n_nodes, span) * rails;
      topology->level[level].devices_below = chips_below * topology->chip->devices_per_chip;
      topology->level[level].oversubscription = ratio;
      topology->level[level].hop_ps = topology->chip->tree_hop_ps;
      topology->level[level].up_bytes_per_s
          = is_top ? (PodRated){ 0, 0 }
                   : (PodRated){ chips_below * chip_rate.nominal / ratio,
                                 chips_below * chip_rate.book / ratio };
      /* More uplinks than downlinks do not make the chips below send more. */
      chip_rate.nominal /= fmax (ratio, 1);
      chip_rate.book /= fmax (ratio, 1);
      topology->level[level].n_switches
          = level == 0 ? topology->level[level].n_groups : count_switches (topology, level);
    }
}

bool
pod_tree_number (PodTopology *topology, uint64_t first_link, uint64_t first_vertex, GError **error)
{
  uint64_t link = first_link;
  uint64_t vertex = first_vertex;

  topology->first_nic_link = (uint32_t) link;
  link += has_nics (topology) ? 2 * (uint64_t) topology->n_chips : 0;
  topology->first_die_link = (uint32_t) link;
  link += has_dies (topology) ? 2 * (uint64_t) topology->n_chips : 0;
  for (unsigned level = 0; level < topology->n_levels; level++)
    {
      topology->first_tree_link[level] = (uint32_t) link;
      topology->first_tree_vertex[level] = (uint32_t) vertex;
      vertex += topology->level[level].n_groups;
      if (level + 1 < topology->n_levels)
        link += 2 * (uint64_t) topology->level[level].n_groups;
    }
  if (link > INT32_MAX || vertex > INT32_MAX)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                   "%s: %" G_GUINT64_FORMAT " links are more than the %d that have a number",
                   topology->name, link, INT32_MAX);
      return false;
    }
  topology->n_links = (unsigned) link;
  topology->n_vertices = (unsigned) vertex;
  return true;
}

static uint32_t
chip_vertex (const PodTopology *topology, uint32_t chip)
{
  return chip * topology->chip->devices_per_chip;
}

static void
describe_nic (const PodTopology *topology, uint32_t index, PodLink *out)
{
  uint32_t chip = index / 2;
  bool is_up = index % 2 == 0;
  uint32_t device = chip_vertex (topology, chip);
  uint32_t leaf = topology->first_tree_vertex[0] + group_of (topology, 0, chip);

  *out = (PodLink){ .kind = POD_LINK_NIC,
                    .bytes_per_s = pod_tree_nic_rate (topology),
                    .latency_ps = topology->chip->nic_hop_ps,
                    .from = is_up ? device : leaf,
                    .to = is_up ? leaf : device,
                    .sign = is_up ? 1 : -1 };
}

static void
describe_die (const PodTopology *topology, uint32_t device, PodLink *out)
{
  *out = (PodLink){ .kind = POD_LINK_DIE,
                    .bytes_per_s = topology->chip->die_bytes_per_s,
                    .latency_ps = topology->chip->die_hop_ps,
                    .from = device,
                    .to = device ^ 1,
                    .sign = device % 2 == 0 ? 1 : -1 };
}

/* The group of @level + 1 above a group of @level. */
static uint32_t
parent_of (const PodTopology *topology, unsigned level, uint32_t group)
{
  unsigned rails = pod_tree_level_rails (topology, level);
  unsigned node = group / rails * topology->level[level].span_nodes;
  unsigned above = pod_tree_level_rails (topology, level + 1);

  return node / topology->level[level + 1].span_nodes * above + group % rails % above;
}

static void
describe_uplink (const PodTopology *topology, uint32_t id, PodLink *out)
{
  unsigned level = 0;

  while (level + 2 < topology->n_levels && id >= topology->first_tree_link[level + 1])
    level++;
  uint32_t index = id - topology->first_tree_link[level];
  bool is_up = index % 2 == 0;
  uint32_t below = topology->first_tree_vertex[level] + index / 2;
  uint32_t above = topology->first_tree_vertex[level + 1] + parent_of (topology, level, index / 2);
  *out = (PodLink){ .kind = POD_LINK_TREE,
                    .bytes_per_s = topology->level[level].up_bytes_per_s,
                    .latency_ps = topology->level[level].hop_ps,
                    .from = is_up ? below : above,
                    .to = is_up ? above : below,
                    .dim = (uint8_t) level,
                    .sign = is_up ? 1 : -1 };
}

void
pod_tree_link (const PodTopology *topology, uint32_t id, PodLink *out)
{
  g_assert (id >= topology->first_nic_link && id < topology->n_links);

  if (id < topology->first_die_link)
    describe_nic (topology, id - topology->first_nic_link, out);
  else if (has_dies (topology) && id - topology->first_die_link < topology->n_devices)
    describe_die (topology, id - topology->first_die_link, out);
  else
    describe_uplink (topology, id, out);
}

bool
pod_tree_route (const PodTopology *topology, uint32_t from_chip, uint32_t to_chip, GArray *links)
{
  unsigned per_node = topology->chips_per_node, top = 0;
  unsigned from_node = from_chip / per_node, to_node = to_chip / per_node;
  unsigned from_place = from_chip - from_node * per_node, to_place = to_chip - to_node * per_node;
  unsigned ups[G_N_ELEMENTS (topology->level)], downs[G_N_ELEMENTS (topology->level)];

  for (; top < topology->n_levels; top++)
    {
      ups[top] = group_above (topology, top, from_node, from_place);
      downs[top] = group_above (topology, top, to_node, to_place);
      if (ups[top] == downs[top])
        break;
    }
  if (top == topology->n_levels)
    return false;
  pod_links_append (links, topology->first_nic_link + 2 * from_chip);
  for (unsigned level = 0; level < top; level++)
    pod_links_append (links, topology->first_tree_link[level] + 2 * ups[level]);
  for (unsigned level = top; level-- > 0;)
    pod_links_append (links, topology->first_tree_link[level] + 2 * downs[level] + 1);
  pod_links_append (links, topology->first_nic_link + 2 * to_chip + 1);
  return true;
}

double
pod_tree_bisection (const PodTopology *topology, bool is_book)
{
  PodRated nic = pod_tree_nic_rate (topology);
  double least = pod_rated (&nic, is_book) * topology->n_chips / 2;

  /* A level's uplinks are a cut only where there are at least two groups to part. */
  for (unsigned level = 0; level + 1 < topology->n_levels; level++)
    if (topology->level[level].n_groups > 1)
      least = fmin (least, pod_rated (&topology->level[level].up_bytes_per_s, is_book)
                               * topology->level[level].n_groups / 2);
  return least;
}

unsigned
pod_tree_count_links (const PodTopology *topology, PodLinkKind kind)
{
  if (kind == POD_LINK_NIC)
    return topology->first_die_link - topology->first_nic_link;
  if (kind == POD_LINK_DIE)
    return has_dies (topology) ? topology->n_devices : 0;
  return kind == POD_LINK_TREE ? topology->n_links - topology->first_die_link
                                     - (has_dies (topology) ? topology->n_devices : 0)
                               : 0;
}
