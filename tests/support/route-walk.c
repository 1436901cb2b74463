#include "support/route-walk.h"

#include <check.h>

/* The first device of a device's chip; a switch as it is. */
static uint32_t
place_of (const PodTopology *topology, uint32_t vertex)
{
  uint32_t per_chip = topology->fabric == POD_FABRIC_GRAPH ? 1 : topology->chip->devices_per_chip;

  return vertex < topology->n_devices ? vertex / per_chip * per_chip : vertex;
}

int
route_walk (const PodTopology *topology, uint32_t from, uint32_t to)
{
  g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  uint32_t at = place_of (topology, from);

  if (!pod_topology_route (topology, from, to, links))
    return -1;
  for (unsigned i = 0; i < links->len; i++)
    {
      PodLink link;
      pod_topology_link (topology, g_array_index (links, uint32_t, i), &link);
      ck_assert_uint_eq (place_of (topology, link.from), at);
      ck_assert (link.bytes_per_s.nominal > 0 && link.bytes_per_s.book > 0);
      at = place_of (topology, link.to);
    }
  ck_assert_uint_eq (at, place_of (topology, to));
  return (int) links->len;
}

int *
route_distances (const PodTopology *topology, uint32_t from, int without)
{
  int *distances = g_new (int, topology->n_vertices);
  bool is_changed = true;

  for (uint32_t vertex = 0; vertex < topology->n_vertices; vertex++)
    distances[vertex] = -1;
  distances[place_of (topology, from)] = 0;
  for (int hops = 1; is_changed; hops++)
    {
      is_changed = false;
      for (uint32_t id = 0; id < topology->n_links; id++)
        {
          PodLink link;
          pod_topology_link (topology, id, &link);
          uint32_t to = place_of (topology, link.to);
          if (!(link.bytes_per_s.nominal > 0) || (int) link.kind == without || distances[to] >= 0
              || distances[place_of (topology, link.from)] != hops - 1)
            continue;
          distances[to] = hops;
          is_changed = true;
        }
    }
  return distances;
}
