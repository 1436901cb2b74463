#include "collective/plan-private.h"

/* Within one scale-up domain. A switch port carries V(n-1)/n up and down whether the shards go
 * round a ring or straight to their readers; only the number of steps differs. In a full mesh both
 * use all pair links, V/n on each: "ring" is then n-1 rings at once, one for each peer that may
 * come next. Broadcast through a switch is a chain: the buffer once through each port; in a mesh
 * the root scatters and all gather. */

bool
pod_fits_switched (const PodPlanRequest *request)
{
  return request->nodes.n_nodes > 0;
}

bool
pod_fits_one_node (const PodPlanRequest *request)
{
  return request->nodes.n_nodes == 1;
}

bool
pod_fits_one_switch (const PodPlanRequest *request)
{
  return request->nodes.n_nodes == 1 && !request->topology->is_full_mesh;
}

bool
pod_fits_nvls (const PodPlanRequest *request)
{
  return pod_fits_one_switch (request) && request->topology->chip->has_in_switch_reduction;
}

/* Bytes that a member sends, and receives, per payload byte. */
static double
member_bytes (const PodPlanRequest *request)
{
  double n = request->group->n_devices;

  switch (request->kind)
    {
    case POD_ALL_REDUCE:
      return 2 * (n - 1) / n;
    case POD_BROADCAST:
    case POD_REDUCE:
      return request->topology->is_full_mesh ? 2 * (n - 1) / n : 1;
    default:
      return (n - 1) / n;
    }
}

/* The book's V/W of a GPU's egress, 2V/W for all-reduce, S(n-1)/(nW) for all-to-all (its
 * V(N-1)/(N^2 W) with V = N S). */
static double
book (const PodPlanRequest *request)
{
  double n = request->group->n_devices, inside_s = pod_node_book_inside (request);

  switch (request->kind)
    {
    case POD_ALL_REDUCE:
      return 2 * inside_s;
    case POD_ALL_TO_ALL:
      return (n - 1) / n * inside_s;
    default:
      return inside_s;
    }
}

static bool
build (PodPlanRequest *request, PodPlan *plan, double bytes, const char *how, GError **error)
{
  int64_t inside_ps, across_ps;

  if (!pod_node_latencies (request, &inside_ps, &across_ps, error)
      || !pod_node_add (request, 0, bytes, error))
    return false;
  plan->latency_ps = (int64_t) plan->n_steps * inside_ps;
  plan->book_s_per_byte = book (request);
  plan->explain = g_strdup_printf (
      "%s within one node of %u: %.4g x bytes out of and into each device, %u steps", how,
      request->group->n_devices, bytes, plan->n_steps);
  return true;
}

bool
pod_build_node_ring (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  plan->n_steps = (request->kind == POD_ALL_REDUCE ? 2 : 1) * (request->group->n_devices - 1);
  return build (request, plan, member_bytes (request), "ring", error);
}

bool
pod_build_node_direct (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  bool is_twice = request->kind == POD_ALL_REDUCE || request->kind == POD_BROADCAST
                  || request->kind == POD_REDUCE;

  plan->n_steps = is_twice ? 2 : 1;
  return build (request, plan, member_bytes (request), "direct", error);
}

/* NVLink SHARP: the switch adds on the way up and multicasts on the way down. Each device owns 1/n
 * of the buffer: its port carries V up (its operands for all owners) and V/n more (the result that
 * it stores), down V/n (the sum that it loads) and V (all results): V(n+1)/n each way. A gather is
 * the second half, V/n up and V down; a reduction the first, V up and V/n down: one direction of
 * the port is free, the other carries what a ring puts on it and its own shard: no gain alone. */
void
pod_nvls_shares (const PodPlanRequest *request, double *out_up, double *out_down)
{
  double n = request->group->n_devices;

  *out_up = (request->kind == POD_ALL_GATHER ? 0 : 1)
            + (request->kind == POD_REDUCE_SCATTER ? 0 : 1 / n);
  *out_down = (request->kind == POD_ALL_GATHER ? 0 : 1 / n)
              + (request->kind == POD_REDUCE_SCATTER ? 0 : 1);
}

bool
pod_build_nvls (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  double share_up, share_down, inside_s = pod_node_book_inside (request);
  int64_t inside_ps, across_ps;

  pod_nvls_shares (request, &share_up, &share_down);
  plan->n_steps = request->kind == POD_ALL_REDUCE ? 2 : 1;
  if (!pod_node_latencies (request, &inside_ps, &across_ps, error))
    return false;
  for (uint32_t i = 0; i < request->group->n_devices; i++)
    {
      uint32_t up, down;

      if (!pod_topology_port_links (request->topology, request->nodes.devices[i], &up, &down))
        return false;
      pod_link_loads_add (&request->loads, up, share_up);
      pod_link_loads_add (&request->loads, down, share_down);
    }
  plan->latency_ps = (int64_t) plan->n_steps * inside_ps;
  /* The book's rule for SHARP: half of 2V/W */
  plan->book_s_per_byte = inside_s;
  plan->hbm_bytes_ratio = request->kind == POD_ALL_REDUCE ? 2 : 1;
  plan->explain = g_strdup_printf (
      "in-switch reduction within one node of %u: %.4g x bytes out of each device, %.4g x into it, "
      "%u step%s",
      request->group->n_devices, share_up, share_down, plan->n_steps,
      plan->n_steps == 1 ? "" : "s");
  return true;
}
