#include "collective/plan-private.h"

/* All-reduce of a list whose members stand on islands of any size and speed: a chain in each island
 * sums up towards its first member, the first members reduce over a ring, and the chains tell the
 * result back. An edge of a chain carries V each way, an edge between N islands 2V (N-1)/N: between
 * two islands V, where a ring of all n members would send 2V (n-1)/n. */

void
pod_islands_clear (PodIslands *islands)
{
  g_free (islands->order);
  g_free (islands->first);
}

static uint32_t
island_of (const PodPlanRequest *request, uint32_t i)
{
  return pod_topology_node_of (request->topology, request->group->devices[i]);
}

void
pod_islands_init (PodIslands *islands, const PodPlanRequest *request)
{
  uint32_t n = request->group->n_devices, n_nodes = request->topology->n_nodes, at = 0;
  g_autofree uint32_t *counts = g_new0 (uint32_t, MAX (n_nodes, 1));
  g_autofree uint32_t *places = g_new (uint32_t, MAX (n_nodes, 1)); /* where the next one goes */

  *islands = (PodIslands){ .order = g_new (uint32_t, n), .first = g_new (uint32_t, n + 1) };
  for (uint32_t i = 0; i < n; i++)
    counts[island_of (request, i)]++;
  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t island = island_of (request, i);

      if (counts[island] > 0)
        {
          places[island] = at;
          islands->first[islands->n++] = at;
          at += counts[island];
          counts[island] = 0;
        }
      islands->order[places[island]++] = request->group->devices[i];
    }
  islands->first[islands->n] = n;
}

bool
pod_fits_islands (const PodPlanRequest *request)
{
  g_auto (PodIslands) islands = { 0 };

  if (!pod_fits_list (request))
    return false;
  pod_islands_init (&islands, request);
  return islands.n > 1 && islands.n < request->group->n_devices;
}

/* An edge both ways; *longest_ps becomes the longest latency of its edges. */
static bool
add_edge (PodPlanRequest *request, const uint32_t ends[2], double bytes, int64_t *longest_ps,
          GError **error)
{
  if (!pod_route_add (request, ends[1], ends[0], bytes, error))
    return false;
  *longest_ps = MAX (*longest_ps, pod_route_latency_ps (request));
  return pod_route_add (request, ends[0], ends[1], bytes, error);
}

bool
pod_build_islands (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  g_auto (PodIslands) islands = { 0 };
  int64_t inside_ps = 0, across_ps = 0;
  uint32_t longest = 0;
  double share;

  pod_islands_init (&islands, request);
  share = 2 * (islands.n - 1.0) / islands.n;
  for (uint32_t j = 0; j < islands.n; j++)
    {
      uint32_t next = islands.first[(j + 1) % islands.n];

      for (uint32_t i = islands.first[j]; i + 1 < islands.first[j + 1]; i++)
        if (!add_edge (request, &islands.order[i], 1, &inside_ps, error))
          return false;
      longest = MAX (longest, islands.first[j + 1] - islands.first[j] - 1);
      if (!pod_route_add (request, islands.order[islands.first[j]], islands.order[next], share,
                          error))
        return false;
      across_ps = MAX (across_ps, pod_route_latency_ps (request));
    }
  plan->n_net_steps = 2 * (islands.n - 1);
  plan->n_steps = plan->n_net_steps + 2 * longest;
  plan->net_latency_ps = plan->n_net_steps * across_ps;
  plan->latency_ps = plan->net_latency_ps + 2 * (int64_t) longest * inside_ps;
  plan->explain = g_strdup_printf (
      "%u ranks on %u islands: sums inside, %.4g x bytes between islands, results inside, %u steps",
      request->group->n_devices, islands.n, share, plan->n_steps);
  return true;
}
