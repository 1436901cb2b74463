#include "topology/shift.h"

#include "topology/topology-private.h"

/* A device by what a shift may move. Where places of a node count through rails, the rail and the
 * row of rails move apart: a route that changes rails inside the sender's node leaves it from a
 * chip of the same row. */
typedef struct
{
  unsigned core;
  unsigned coords[3];
  unsigned node;
  unsigned place;
  unsigned row;
  unsigned rail;
  unsigned units[3];
} Spot;

static void
find_spot (const PodTopology *topology, uint32_t device, Spot *out)
{
  const uint32_t chip = device / topology->chip->devices_per_chip;
  uint32_t rest = chip % topology->chips_per_node;

  *out = (Spot){ .core = device % topology->chip->devices_per_chip,
                 .node = chip / topology->chips_per_node };
  if (topology->fabric == POD_FABRIC_TORUS)
    for (unsigned axis = 0; axis < 3; axis++)
      {
        out->coords[axis] = rest % topology->extent[axis];
        rest /= topology->extent[axis];
      }
  else
    {
      out->place = rest;
      out->row = rest / topology->n_rails;
      out->rail = rest % topology->n_rails;
    }
  for (unsigned level = 0; level < topology->n_levels; level++)
    out->units[level] = out->node / topology->level[level].span_nodes;
}

static int32_t
difference (unsigned to, unsigned from)
{
  return (int32_t) to - (int32_t) from;
}

static void
spot_difference (const PodTopology *topology, const Spot *from, const Spot *to,
                 PodTopologyShift *out)
{
  *out = (PodTopologyShift){ .topology = topology,
                             .places = difference (to->place, from->place),
                             .rails = difference (to->rail, from->rail),
                             .nodes = difference (to->node, from->node) };
  for (unsigned axis = 0; axis < 3; axis++)
    out->coords[axis] = difference (to->coords[axis], from->coords[axis]);
  for (unsigned level = 0; level < topology->n_levels; level++)
    out->units[level] = difference (to->units[level], from->units[level]);
}

static bool
is_same (const PodTopologyShift *a, const PodTopologyShift *b)
{
  for (unsigned i = 0; i < 3; i++)
    if (a->coords[i] != b->coords[i] || a->units[i] != b->units[i])
      return false;
  return a->places == b->places && a->rails == b->rails && a->nodes == b->nodes;
}

static void
add_kind (PodTopologyShift *shift, uint32_t end, int64_t n_links)
{
  shift->end_of_kind[shift->n_kinds] = end;
  shift->links_of_kind[shift->n_kinds++] = n_links;
}

/* Links are numbered by chips, or by switches; only of pairs within a node do not all move alike. */
static void
list_kinds (PodTopologyShift *shift)
{
  const PodTopology *topology = shift->topology;
  const int64_t chips = shift->places + (int64_t) shift->nodes * topology->chips_per_node;

  if (topology->fabric != POD_FABRIC_SWITCHED || (topology->is_full_mesh && shift->places != 0))
    return;
  add_kind (shift, topology->first_nic_link,
            chips * (topology->is_full_mesh ? topology->chips_per_node - 1 : 2));
  add_kind (shift, topology->n_levels > 0 ? topology->first_tree_link[0] : UINT32_MAX, 2 * chips);
  for (unsigned level = 0; level == 0 ? topology->n_levels > 0 : level + 1 < topology->n_levels;
       level++)
    {
      const bool is_last = level + 2 >= topology->n_levels;
      const unsigned n_rails = pod_tree_level_rails (topology, level);

      add_kind (shift, is_last ? UINT32_MAX : topology->first_tree_link[level + 1],
                2
                    * ((int64_t) shift->units[level] * n_rails
                       + (n_rails > 1 ? shift->rails : 0)));
    }
}

/* Whole nodes of a switched machine change places, the @n devices all by as many: only whether
 * they keep to their switches is left to see, once for each node. */
static bool
init_by_nodes (PodTopologyShift *shift, const PodTopology *topology, const uint32_t *from,
               const uint32_t *to, uint32_t n)
{
  const uint32_t per_node = topology->chips_per_node * topology->chip->devices_per_chip;
  const uint32_t devices = to[0] - from[0]; /* modulo 2^32 */
  uint32_t last = UINT32_MAX;

  *shift = (PodTopologyShift){ .topology = topology,
                               .nodes = (int32_t) devices / (int32_t) per_node };
  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t node = from[i] / per_node;

      if (to[i] - from[i] != devices)
        return false;
      if (node == last)
        continue;
      for (unsigned level = 0; level < topology->n_levels; level++)
        {
          const uint32_t span = topology->level[level].span_nodes;
          const int32_t units
              = difference ((unsigned) ((int32_t) node + shift->nodes) / span, node / span);

          if (last != UINT32_MAX && units != shift->units[level])
            return false;
          shift->units[level] = units;
        }
      last = node;
    }
  return true;
}

static bool
init (PodTopologyShift *shift, const PodTopology *topology, const uint32_t *from,
      const uint32_t *to, uint32_t n)
{
  int32_t rows = 0;

  for (uint32_t i = 0; i < n; i++)
    {
      PodTopologyShift own;
      Spot a, b;

      find_spot (topology, from[i], &a);
      find_spot (topology, to[i], &b);
      spot_difference (topology, &a, &b, &own);
      if (a.core != b.core)
        return false;
      if (i == 0)
        {
          *shift = own;
          rows = difference (b.row, a.row);
        }
      else if (difference (b.row, a.row) != rows || !is_same (shift, &own))
        return false;
    }
  return true;
}

bool
pod_topology_shift_init (PodTopologyShift *shift, const PodTopology *topology, const uint32_t *from,
                         const uint32_t *to, uint32_t n)
{
  const bool is_switched = topology->fabric == POD_FABRIC_SWITCHED;

  if (n == 0 || topology->fabric == POD_FABRIC_GRAPH || topology->is_twisted
      || topology->background_bytes_per_s != NULL)
    return false;
  if (is_switched && difference (to[0], from[0]) % (int32_t) (topology->chips_per_node * topology->chip->devices_per_chip) == 0
          ? !init_by_nodes (shift, topology, from, to, n)
          : !init (shift, topology, from, to, n))
    return false;
  list_kinds (shift);
  return true;
}

static uint32_t
shift_chip (const PodTopologyShift *shift, uint32_t chip)
{
  const PodTopology *topology = shift->topology;
  uint32_t rest = chip % topology->chips_per_node;
  uint32_t stride = 1;
  uint32_t moved = 0;

  if (topology->fabric == POD_FABRIC_SWITCHED)
    return (uint32_t) ((int64_t) chip + shift->places
                       + (int64_t) shift->nodes * topology->chips_per_node);
  for (unsigned axis = 0; axis < 3; axis++)
    {
      const int32_t extent = (int32_t) topology->extent[axis];
      const int32_t at = (int32_t) (rest % topology->extent[axis]) + shift->coords[axis];

      /* A route over the wrap link leaves the range of its devices */
      moved += stride * (uint32_t) ((at + extent) % extent);
      rest /= topology->extent[axis];
      stride *= topology->extent[axis];
    }
  return moved
         + (uint32_t) ((int64_t) (chip / topology->chips_per_node) + shift->nodes)
               * topology->chips_per_node;
}

/* Links numbered @per_chip to a chip from @first on. */
static uint32_t
shift_link_of_chip (const PodTopologyShift *shift, uint32_t link, uint32_t first, uint32_t per_chip)
{
  const uint32_t index = link - first;

  return first + shift_chip (shift, index / per_chip) * per_chip + index % per_chip;
}

/* Pair links of a mesh leave out the chip itself. */
static uint32_t
shift_pair (const PodTopologyShift *shift, uint32_t link)
{
  const uint32_t n_peers = shift->topology->chips_per_node - 1;
  const uint32_t chip = link / n_peers;
  const uint32_t from = chip % shift->topology->chips_per_node;
  const uint32_t to = link % n_peers + (link % n_peers >= from);
  const uint32_t moved_from = (uint32_t) ((int32_t) from + shift->places);
  const uint32_t moved_to = (uint32_t) ((int32_t) to + shift->places);

  return shift_chip (shift, chip) * n_peers + moved_to - (moved_to > moved_from);
}

uint32_t
pod_topology_shift_link (const PodTopologyShift *shift, uint32_t link)
{
  const PodTopology *topology = shift->topology;
  unsigned level = 0;
  unsigned n_rails;

  if (shift->n_kinds > 0)
    {
      unsigned kind = 0;

      while (link >= shift->end_of_kind[kind])
        kind++;
      return (uint32_t) (link + shift->links_of_kind[kind]);
    }
  if (link < topology->first_nic_link)
    return topology->is_full_mesh && topology->fabric == POD_FABRIC_SWITCHED
               ? shift_pair (shift, link)
               : shift_link_of_chip (
                   shift, link, 0,
                   topology->fabric == POD_FABRIC_SWITCHED ? 2 : 2 * topology->n_dims);
  if (link < topology->first_die_link)
    return shift_link_of_chip (shift, link, topology->first_nic_link, 2);
  if (topology->n_levels == 0 || link < topology->first_tree_link[0])
    return shift_link_of_chip (shift, link, topology->first_die_link, 2);
  while (level + 2 < topology->n_levels && link >= topology->first_tree_link[level + 1])
    level++;
  n_rails = pod_tree_level_rails (topology, level);
  return (uint32_t) ((int64_t) link
                     + 2
                           * ((int64_t) shift->units[level] * n_rails
                              + (n_rails > 1 ? shift->rails : 0)));
}
