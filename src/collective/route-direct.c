#include "collective/plan-private.h"

/* Messages straight along the machine's routes. */

bool
pod_fits_any (const PodPlanRequest *request)
{
  return request->group->n_devices > 1;
}

/* Send: the payload from devices[0] to devices[1]. Permute: from each to the next, from the last to
 * the first. */
bool
pod_build_route_send (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  const PodGroup *group = request->group;
  uint32_t n_messages = request->kind == POD_SEND ? 1 : group->n_devices;

  for (uint32_t i = 0; i < n_messages; i++)
    {
      if (!pod_route_add (request, group->devices[i], group->devices[(i + 1) % group->n_devices], 1,
                          error))
        return false;
      plan->latency_ps = MAX (plan->latency_ps, pod_route_latency_ps (request));
    }
  plan->n_steps = 1;
  /* The book counts a microsecond a hop on tori; elsewhere bandwidth alone */
  if (request->topology->fabric == POD_FABRIC_TORUS)
    plan->book_latency_s = (double) plan->latency_ps * 1e-12;
  plan->explain
      = g_strdup_printf ("%u message%s along the routes", n_messages, n_messages == 1 ? "" : "s");
  return true;
}

/* The union of the routes from the root to all others: a link that several routes share carries the
 * buffer once. */
bool
pod_build_route_tree (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  const PodGroup *group = request->group;
  bool is_reverse = request->kind == POD_REDUCE;

  for (uint32_t i = 1; i < group->n_devices; i++)
    {
      uint32_t from = group->devices[is_reverse ? i : 0], to = group->devices[is_reverse ? 0 : i];
      if (!pod_route_add (request, from, to, 1, error))
        return false;
      plan->latency_ps = MAX (plan->latency_ps, pod_route_latency_ps (request));
    }
  for (uint32_t i = 0; i < request->loads.n; i++)
    request->loads.bytes[i] = 1;
  plan->n_steps = 1;
  plan->explain
      = g_strdup_printf ("tree of the routes to %u devices: the bytes once on each of %u links",
                         group->n_devices - 1, request->loads.n);
  return true;
}

/* Every pair's 1/n of the send buffer along its own route. O(n^2 hops): lists on graphs and tori
 * are short. */
bool
pod_build_route_all_to_all (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  const PodGroup *group = request->group;

  for (uint32_t i = 0; i < group->n_devices; i++)
    for (uint32_t k = 0; k < group->n_devices; k++)
      {
        if (i == k)
          continue;
        if (!pod_route_add (request, group->devices[i], group->devices[k], 1.0 / group->n_devices,
                            error))
          return false;
        plan->latency_ps = MAX (plan->latency_ps, pod_route_latency_ps (request));
      }
  plan->n_steps = 1;
  plan->explain = g_strdup_printf ("%u x %u messages along the routes", group->n_devices,
                                   group->n_devices - 1);
  return true;
}
