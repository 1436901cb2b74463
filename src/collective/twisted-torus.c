#include "collective/plan-private.h"

/* A whole twisted slice. Its short axes do not close after one turn, so it is no product of rings;
 * but it is symmetric: every chip looks the same, and the links of one axis are alike. So the load
 * of a link follows from what one chip sends.
 *
 *   all-gather   a chip must receive V(N-1)/N over its 6 links, evenly: V(N-1)/6N on each
 * (all-reduce twice) all-to-all   the hops along an axis of the routes from one chip to all, half
 * each way: S/N x hops/2 on each link
 *
 * On the slice sizes that twist (kxkx2k, kx2kx2k) the second is what twisting is for: shorter
 * routes, even axes. */

/* Hops along each axis of the routes from the first member to every chip, and the longest route. */
static bool
count_hops (PodPlanRequest *request, uint64_t *hops, unsigned *out_longest, GError **error)
{
  const PodTopology *topology = request->topology;
  uint32_t first = request->group->devices[0];
  unsigned core = first % topology->chip->devices_per_chip, longest = 0;
  unsigned coords[POD_MAX_DIMS];

  pod_topology_coords (topology, first, coords);
  for (coords[2] = 0; coords[2] < topology->extent[2]; coords[2]++)
    for (coords[1] = 0; coords[1] < topology->extent[1]; coords[1]++)
      for (coords[0] = 0; coords[0] < topology->extent[0]; coords[0]++)
        {
          if (!pod_route_find (request, first, pod_topology_device (topology, coords, core), error))
            return false;
          longest = MAX (longest, request->route->len);
          for (guint i = 0; i < request->route->len; i++)
            {
              PodLink link;

              pod_topology_link (topology, g_array_index (request->route, uint32_t, i), &link);
              hops[link.dim]++;
            }
        }
  *out_longest = longest;
  return true;
}

bool
pod_twisted_add (PodPlanRequest *request, double *out_share, unsigned *out_steps, GError **error)
{
  const PodTopology *topology = request->topology;
  double n = (double) topology->extent[0] * topology->extent[1] * topology->extent[2];
  double per_chip = request->n_in_slice / n;
  uint64_t hops[3] = { 0 };

  if (!count_hops (request, hops, out_steps, error))
    return false;
  *out_share = 0;
  for (unsigned dim = 0; dim < 3; dim++)
    {
      /* One member's part: the devices of a chip share its links */
      double share = request->kind == POD_ALL_TO_ALL
                         ? (double) hops[dim] / (2 * n)
                         : (request->kind == POD_ALL_REDUCE ? 2 : 1) * (n - 1) / (6 * n * per_chip);

      *out_share = MAX (*out_share, share * per_chip);
      for (uint32_t i = 0; i < request->group->n_devices; i++)
        for (int sign = -1; sign <= 1; sign += 2)
          {
            uint32_t link, to;

            if (pod_topology_torus_link (topology, request->group->devices[i], dim, sign, &link,
                                         &to))
              pod_link_loads_add (&request->loads, link, share);
          }
    }
  return true;
}
