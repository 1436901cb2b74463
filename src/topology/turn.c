#include "topology/turn.h"

#include "topology/topology-private.h"

/* Parts of the machine of @part devices stay whole: the turn moves things within them, or moves
 * them. */
static bool
keeps_whole (const PodTurn *turn, uint32_t part, uint32_t n_devices)
{
  return part >= n_devices || part % ((uint64_t) turn->lo * turn->size) == 0
         || turn->lo % part == 0;
}

bool
pod_turn_fits (const PodTurn *turn, const PodTopology *topology, uint32_t n_devices)
{
  const uint32_t chip = topology->chip != NULL ? topology->chip->devices_per_chip : 1;
  const uint32_t node = topology->chips_per_node * chip;

  if (topology->fabric != POD_FABRIC_SWITCHED || topology->background_bytes_per_s != NULL)
    return false;
  if (turn->size < 2 || n_devices % ((uint64_t) turn->lo * turn->size) != 0)
    return false;
  /* A rail is every n_rails-th chip of a node */
  if (!keeps_whole (turn, chip, n_devices)
      || !keeps_whole (turn, topology->n_rails * chip, n_devices)
      || !keeps_whole (turn, node, n_devices))
    return false;
  for (unsigned level = 0; level < topology->n_levels; level++)
    if (!keeps_whole (turn, topology->level[level].span_nodes * node, n_devices))
      return false;
  return true;
}

/* Where @n_times of it carry a device. */
static uint32_t
turn_device (const PodTurn *turn, uint32_t n_times, uint32_t device)
{
  const uint32_t place = device / turn->lo % turn->size;

  return device - place * turn->lo + (place + n_times) % turn->size * turn->lo;
}

/* The device by which a link is turned: the first of its chip, or under its switch. */
static uint32_t
device_of (const PodTopology *topology, uint32_t link)
{
  const uint32_t per_chip = topology->chip->devices_per_chip;
  unsigned level = 0, n_rails;
  uint32_t group;

  if (link < topology->first_nic_link)
    return (topology->is_full_mesh ? link / (topology->chips_per_node - 1) : link / 2) * per_chip;
  if (link < topology->first_die_link)
    return (link - topology->first_nic_link) / 2 * per_chip;
  if (topology->n_levels == 0 || link < topology->first_tree_link[0])
    return link - topology->first_die_link;
  while (level + 2 < topology->n_levels && link >= topology->first_tree_link[level + 1])
    level++;
  n_rails = pod_tree_level_rails (topology, level);
  group = (link - topology->first_tree_link[level]) / 2;
  return (group / n_rails * topology->level[level].span_nodes * topology->chips_per_node
          + group % n_rails)
         * per_chip;
}

static uint32_t
turn_pair (const PodTurn *turn, uint32_t n_times, const PodTopology *topology, uint32_t link)
{
  const uint32_t per_chip = topology->chip->devices_per_chip;
  const uint32_t per_node = topology->chips_per_node;
  const uint32_t from = link / (per_node - 1);
  const uint32_t place = link % (per_node - 1);
  const uint32_t to = from - from % per_node + place + (place >= from % per_node);
  const uint32_t moved_from = turn_device (turn, n_times, from * per_chip) / per_chip;
  const uint32_t moved_to = turn_device (turn, n_times, to * per_chip) / per_chip;

  return moved_from * (per_node - 1) + moved_to % per_node - (moved_to > moved_from);
}

static uint32_t
turn_uplink (const PodTurn *turn, uint32_t n_times, const PodTopology *topology, uint32_t link,
             uint32_t device)
{
  const uint32_t chip = turn_device (turn, n_times, device) / topology->chip->devices_per_chip;
  unsigned level = 0, n_rails;
  uint32_t unit;

  while (level + 2 < topology->n_levels && link >= topology->first_tree_link[level + 1])
    level++;
  n_rails = pod_tree_level_rails (topology, level);
  unit = chip / topology->chips_per_node / topology->level[level].span_nodes;
  return topology->first_tree_link[level]
         + 2 * (unit * n_rails + (n_rails > 1 ? chip % topology->chips_per_node % n_rails : 0))
         + (link - topology->first_tree_link[level]) % 2;
}

static bool
is_pair (const PodTopology *topology, uint32_t link)
{
  return link < topology->first_nic_link && topology->is_full_mesh;
}

static bool
is_uplink (const PodTopology *topology, uint32_t link)
{
  return topology->n_levels > 0 && link >= topology->first_tree_link[0];
}

/* @device: the one by which it is turned. */
static uint32_t
turn_link_of (const PodTurn *turn, uint32_t n_times, const PodTopology *topology, uint32_t link,
              uint32_t device)
{
  uint32_t moved, chip;

  if (is_pair (topology, link))
    return turn_pair (turn, n_times, topology, link);
  if (is_uplink (topology, link))
    return turn_uplink (turn, n_times, topology, link, device);
  moved = turn_device (turn, n_times, device);
  if (link >= topology->first_die_link)
    return topology->first_die_link + moved;
  chip = moved / topology->chip->devices_per_chip;
  if (link < topology->first_nic_link)
    return chip * 2 + link % 2;
  return topology->first_nic_link + chip * 2 + (link - topology->first_nic_link) % 2;
}

/* A link of one chip moves with it, and a turn of whole chips moves each. */
static bool
is_moved (const PodTurn *turn, const PodTopology *topology, uint32_t link, uint32_t device)
{
  if (!is_pair (topology, link) && !is_uplink (topology, link)
      && turn->lo >= topology->chip->devices_per_chip)
    return true;
  return turn_link_of (turn, 1, topology, link, device) != link;
}

bool
pod_turn_home_of_link (const PodTurn *turn, const PodTopology *topology, uint32_t link,
                       uint32_t *out_place, uint32_t *out_home)
{
  const uint32_t device = device_of (topology, link);

  *out_place = device / turn->lo % turn->size;
  if (!is_moved (turn, topology, link, device))
    return false;
  *out_home = turn_link_of (turn, turn->size - *out_place, topology, link, device);
  return true;
}

uint32_t
pod_turns_first_link (const PodTurn *turns, unsigned n_turns, const PodTopology *topology,
                      uint32_t link, uint64_t *out_n)
{
  *out_n = 1;
  for (unsigned t = 0; t < n_turns; t++)
    {
      const PodTurn *turn = &turns[t];
      const uint32_t device = device_of (topology, link);
      const uint32_t place = device / turn->lo % turn->size;
      const uint32_t first = turn->first != NULL ? turn->first[place] : 0;

      if (!is_moved (turn, topology, link, device))
        continue;
      *out_n *= turn->first != NULL ? turn->n_alike[place] : turn->size;
      if (first != place)
        link = turn_link_of (turn, turn->size - place + first, topology, link, device);
    }
  return link;
}
