#include "collective/plan-private.h"

#include <math.h>

#include "base/error.h"

/* One ring in one direction, message by message: what simulators that know no chunks and no second
 * direction count (docs/model/astra.md). Axis after axis in the order of the group; a gather begins
 * with the first axis and its messages grow, a reduction too and they shrink, an all-reduce gathers
 * back in the reverse order. With N ranks on an axis and messages of c bytes:
 *
 *   message   s(c) = latency + c / rate of the hop (each link in turn when stored and forwarded)
 *   gather    (N-1) (s(c) + endpoint) + endpoint
 *   reduce    (N-1) (s(c) + endpoint + 3 c / local) + endpoint
 *
 * The endpoint delay between an all-reduce's last reduction and its first gather counts once. */

typedef struct
{
  PodPlanRequest *request;
  PodPlan *plan;
  double time_ns;
  double wire_s_per_byte; /* of the payload: all messages one after another */
} Walk;

bool
pod_fits_step_ring (const PodPlanRequest *request)
{
  for (unsigned a = 0; a < request->n_axes + request->n_slice_axes; a++)
    if (!request->axes[a].is_ring && request->axes[a].size > 2
        && request->axes[a].dim < POD_DIM_DCN)
      return false;
  return request->group->n_devices > 1;
}

static double
whole (const PodStepLaw *law, double ns)
{
  return law->is_in_whole_ns ? floor (ns) : ns;
}

/* Of a message of @bytes over request->route. */
static double
message_ns (const PodPlanRequest *request, double bytes)
{
  const PodStepLaw *law = &request->steps;
  double latency_ns = 0, slowest_ns = 0, stored_ns = 0;

  for (guint i = 0; i < request->route->len; i++)
    {
      uint32_t id = g_array_index (request->route, uint32_t, i);
      double wire_ns
          = bytes * 1e9 / pod_collective_link_rate (request->topology, request->fidelity, id);
      PodLink link;

      pod_topology_link (request->topology, id, &link);
      latency_ns += (double) link.latency_ps / 1e3;
      slowest_ns = MAX (slowest_ns, wire_ns);
      stored_ns += whole (law, (double) link.latency_ps / 1e3 + wire_ns);
    }
  return law->is_stored_and_forwarded ? stored_ns : whole (law, latency_ns + slowest_ns);
}

static double
slowest_s_per_byte (const PodPlanRequest *request)
{
  double slowest_s = 0;

  for (guint i = 0; i < request->route->len; i++)
    {
      double s = 1
                 / pod_collective_link_rate (request->topology, request->fidelity,
                                             g_array_index (request->route, uint32_t, i));

      slowest_s = request->steps.is_stored_and_forwarded ? slowest_s + s : MAX (slowest_s, s);
    }
  return slowest_s;
}

/* n - 1 messages of @share of the payload over the route in request->route. */
static void
walk_messages (Walk *walk, uint32_t n, double share, bool is_reducing)
{
  const PodStepLaw *law = &walk->request->steps;
  double bytes = share * (double) walk->request->payload_bytes;
  double step_ns = message_ns (walk->request, bytes) + law->endpoint_s * 1e9;

  if (is_reducing && law->local_bytes_per_s > 0)
    step_ns += 3 * whole (law, bytes * 1e9 / law->local_bytes_per_s);
  walk->time_ns += (n - 1) * step_ns + law->endpoint_s * 1e9;
  walk->wire_s_per_byte += (n - 1) * share * slowest_s_per_byte (walk->request);
  walk->plan->n_steps += n - 1;
  walk->plan->latency_ps += (int64_t) (n - 1) * pod_route_latency_ps (walk->request);
}

/* Leaves the links from the member at @index to its successor on @axis in request->route. */
static bool
find_hop (PodPlanRequest *request, const PodAxis *axis, uint32_t index, GError **error)
{
  uint32_t position = index / axis->span % axis->size, next = (position + 1) % axis->size;
  uint32_t at = request->group->devices[index], link;
  int sign = next == 0 && !axis->is_ring ? -1 : +1;

  if (axis->dim >= POD_DIM_DCN)
    return pod_route_find (
        request, at, request->group->devices[index + next * axis->span - position * axis->span],
        error);
  g_array_set_size (request->route, 0);
  for (uint32_t i = 0; i < axis->stride; i++)
    {
      if (!pod_topology_torus_link (request->topology, at, axis->dim, sign, &link, &at))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "%s: no link from device %u",
                       request->topology->name, at);
          return false;
        }
      g_array_append_val (request->route, link);
    }
  return true;
}

static void
load_route (PodPlanRequest *request, double bytes)
{
  for (guint i = 0; i < request->route->len; i++)
    pod_link_loads_add (&request->loads, g_array_index (request->route, uint32_t, i), bytes);
}

/* One axis' phase: @share is the message's part of the payload. */
static bool
walk_axis (Walk *walk, const PodAxis *axis, double share, bool is_reducing, GError **error)
{
  PodPlanRequest *request = walk->request;

  if (!find_hop (request, axis, 0, error))
    return false;
  walk_messages (walk, axis->size, share, is_reducing);
  for (uint32_t i = 0; i < request->group->n_devices; i++)
    {
      if (!find_hop (request, axis, i, error))
        return false;
      load_route (request, (axis->size - 1) * share);
    }
  return true;
}

/* A list is one ring in its order: its slowest message sets the pace. */
static bool
walk_list (Walk *walk, double share, bool is_reducing, GError **error)
{
  PodPlanRequest *request = walk->request;
  const PodGroup *group = request->group;
  uint32_t n = group->n_devices, slowest = 0;
  double slowest_ns = -1;

  for (uint32_t i = 0; i < n; i++)
    {
      if (!pod_route_find (request, group->devices[i], group->devices[(i + 1) % n], error))
        return false;
      load_route (request, (n - 1) * share);
      if (message_ns (request, share * (double) request->payload_bytes) > slowest_ns)
        {
          slowest_ns = message_ns (request, share * (double) request->payload_bytes);
          slowest = i;
        }
    }
  if (!pod_route_find (request, group->devices[slowest], group->devices[(slowest + 1) % n], error))
    return false;
  walk_messages (walk, n, share, is_reducing);
  return true;
}

/* Phase @at of the gather (or, from the other end, of the reduction). */
static bool
walk_phase (Walk *walk, unsigned at, double share, bool is_reducing, GError **error)
{
  if (walk->request->n_axes + walk->request->n_slice_axes == 0)
    return walk_list (walk, share, is_reducing, error);
  return walk_axis (walk, &walk->request->axes[at], share, is_reducing, error);
}

static bool
walk_all (Walk *walk, GError **error)
{
  const PodPlanRequest *request = walk->request;
  unsigned n = request->n_axes + request->n_slice_axes;
  unsigned n_phases = MAX (n, 1);
  double part = request->kind == POD_ALL_GATHER ? 1.0 / request->group->n_devices : 1;

  for (unsigned a = 0; a < n_phases; a++)
    {
      double size = n == 0 ? request->group->n_devices : request->axes[a].size;

      if (request->kind == POD_ALL_GATHER)
        {
          if (!walk_phase (walk, a, part, false, error))
            return false;
          part *= size;
        }
      else
        {
          part /= size;
          if (!walk_phase (walk, a, part, true, error))
            return false;
        }
    }
  for (unsigned a = n_phases; request->kind == POD_ALL_REDUCE && a-- > 0;)
    {
      if (!walk_phase (walk, a, part, false, error))
        return false;
      part *= n == 0 ? request->group->n_devices : request->axes[a].size;
    }
  return true;
}

bool
pod_build_step_ring (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  Walk walk = { .request = request, .plan = plan };
  double endpoint_ns = request->steps.endpoint_s * 1e9, wire_ns;

  if (!walk_all (&walk, error))
    return false;
  if (request->kind == POD_ALL_REDUCE)
    walk.time_ns -= endpoint_ns;
  plan->sequential_s_per_byte = walk.wire_s_per_byte;
  if (request->has_steps)
    {
      /* The law's total: the bytes hold the links, the rest comes before them */
      wire_ns = walk.wire_s_per_byte * 1e9 * (double) request->payload_bytes;
      plan->phases = POD_PHASES_SEQUENTIAL;
      if (walk.time_ns >= 9e15)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                       "step-ring: %.3g s are longer than the clock's 106 days",
                       walk.time_ns * 1e-9);
          return false;
        }
      plan->latency_ps = (int64_t) llround ((walk.time_ns - wire_ns) * 1e3);
    }
  plan->explain
      = g_strdup_printf ("one ring in one direction%s, message by message, %u steps%s",
                         request->n_axes + request->n_slice_axes > 1 ? ", axis after axis" : "",
                         plan->n_steps, request->steps.is_in_whole_ns ? ", each in whole ns" : "");
  return true;
}
