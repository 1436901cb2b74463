#include "collective/plan-private.h"

#include "base/error.h"

bool
pod_route_find (PodPlanRequest *request, uint32_t from, uint32_t to, GError **error)
{
  g_array_set_size (request->route, 0);
  if (pod_topology_route (request->topology, from, to, request->route))
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "%s: no route from device %u to device %u",
               request->topology->name, from, to);
  return false;
}

bool
pod_route_add (PodPlanRequest *request, uint32_t from, uint32_t to, double bytes, GError **error)
{
  if (!pod_route_find (request, from, to, error))
    return false;
  for (guint i = 0; i < request->route->len; i++)
    pod_link_loads_add (&request->loads, g_array_index (request->route, uint32_t, i), bytes);
  return true;
}

int64_t
pod_route_latency_ps (const PodPlanRequest *request)
{
  int64_t latency_ps = 0;

  for (guint i = 0; i < request->route->len; i++)
    {
      PodLink link;

      pod_topology_link (request->topology, g_array_index (request->route, uint32_t, i), &link);
      latency_ps += link.latency_ps;
    }
  return latency_ps;
}
