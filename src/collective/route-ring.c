#include "collective/plan-private.h"

/* Rings over a list of devices in its order, each step along the machine's route: for graphs and
 * arbitrary lists. Shard s passes every edge but one, so an edge carries V(n-1)/n (all-reduce twice
 * that) in one direction; the bidirectional ring sends half of it each way and needs half as many
 * steps. Broadcast is the chain 0 > 1 > ... > n-1. */

bool
pod_fits_list (const PodPlanRequest *request)
{
  return request->group->n_factors == 0 && request->topology->fabric != POD_FABRIC_SWITCHED;
}

/* By name on a torus axis: one direction only, as the book's exercises have it. */
bool
pod_fits_factor_route_ring (const PodPlanRequest *request)
{
  return request->n_axes == 1 && request->n_slice_axes == 0;
}

static double
edge_bytes (PodCollectiveKind kind, double n)
{
  switch (kind)
    {
    case POD_ALL_REDUCE:
      return 2 * (n - 1) / n;
    case POD_BROADCAST:
    case POD_REDUCE:
      return 1;
    case POD_ALL_TO_ALL:
      /* Part d of n goes d edges far: (1 + ... + n-1)/n */
      return (n - 1) / 2;
    default:
      return (n - 1) / n;
    }
}

/* Adds @bytes to each edge (a chain has none back to its root); the plan's latency becomes that of
 * its steps over the slowest edge. */
static bool
add_edges (PodPlanRequest *request, PodPlan *plan, double bytes, bool is_reverse, GError **error)
{
  const PodGroup *group = request->group;
  bool is_chain = request->kind == POD_BROADCAST || request->kind == POD_REDUCE;

  for (uint32_t i = 0; i < group->n_devices - (is_chain ? 1 : 0); i++)
    {
      uint32_t from = group->devices[i], to = group->devices[(i + 1) % group->n_devices];

      if (!pod_route_add (request, is_reverse ? to : from, is_reverse ? from : to, bytes, error))
        return false;
      plan->latency_ps
          = MAX (plan->latency_ps, (int64_t) plan->n_steps * pod_route_latency_ps (request));
    }
  return true;
}

bool
pod_build_route_ring (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  uint32_t n = request->group->n_devices;
  double bytes = edge_bytes (request->kind, n);

  plan->n_steps = (request->kind == POD_ALL_REDUCE ? 2 : 1) * (n - 1);
  if (!add_edges (request, plan, bytes, request->kind == POD_REDUCE, error))
    return false;
  plan->explain = g_strdup_printf (
      "ring of %u in one direction: %.4g x bytes on each edge, %u steps", n, bytes, plan->n_steps);
  return true;
}

bool
pod_build_route_bidir_ring (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  uint32_t n = request->group->n_devices;
  double bytes = edge_bytes (request->kind, n) / 2;

  plan->n_steps = (request->kind == POD_ALL_REDUCE ? 2 : 1) * (n / 2);
  if (!add_edges (request, plan, bytes, false, error)
      || !add_edges (request, plan, bytes, true, error))
    return false;
  plan->explain = g_strdup_printf (
      "ring of %u in both directions: %.4g x bytes on each edge and direction, %u steps", n, bytes,
      plan->n_steps);
  return true;
}
