#include "collective/plan-private.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

/* Plans priced by a library's cost table. */

PodPlan *
pod_plan_copy (const PodPlan *plan)
{
  PodPlan *copy = g_memdup2 (plan, sizeof *plan);

  copy->entries = g_memdup2 (plan->entries, sizeof *plan->entries * plan->n_entries);
  copy->explain = g_strdup (plan->explain);
  return copy;
}

bool
pod_library_has (const PodPlanRequest *request, const char *algorithm)
{
  const PodLibraryShape shape = {
    .kind = request->kind,
    .dtype = request->dtype,
    .n_ranks = request->group->n_devices,
  };

  for (guint i = 0; request->device != NULL && i < request->device->paths->len; i++)
    if (pod_library_path_fits (request->device, g_ptr_array_index (request->device->paths, i),
                               &shape, algorithm))
      return true;
  return false;
}

/* One rank's share of the buffer at the nominal rate of all its ports. */
static double
own_s_per_byte (const PodPlanRequest *request)
{
  const PodChip *chip = request->topology->chip;
  double rate = chip != NULL ? chip->scale_up_bytes_per_s.nominal / chip->devices_per_chip : 0;

  return rate > 0 ? 1 / rate / request->group->n_devices : 0;
}

/* The fullest links inside nodes and between them, at nominal rates; those of a class have one. */
static void
add_rates (const PodPlanRequest *request, const PodPlan *plan, PodLibraryShape *out)
{
  uint64_t most[POD_N_LINK_CLASSES] = { 0 };

  for (uint32_t i = 0; i < plan->n_entries; i++)
    {
      unsigned class = pod_topology_link_class (request->topology, plan->entries[i].link);
      double *slowest, s_per_byte;
      PodLink link;

      if (class != POD_NO_LINK_CLASS && plan->entries[i].share_q32 <= most[class])
        continue;
      if (class != POD_NO_LINK_CLASS)
        most[class] = plan->entries[i].share_q32;
      pod_topology_link (request->topology, plan->entries[i].link, &link);
      slowest = link.kind == POD_LINK_NIC || link.kind == POD_LINK_TREE ? &out->across_s_per_byte
                                                                        : &out->inside_s_per_byte;
      s_per_byte = plan->busiest_ratio * (double) plan->entries[i].share_q32 / 4294967296.0
                   / link.bytes_per_s.nominal;
      *slowest = MAX (*slowest, s_per_byte);
    }
}

/* NCCL opens a channel on each NIC that the members of a node reach, and a second one where the NIC
 * is fast: above 25 GB/s, with more than 4 above 50 (NVIDIA/nccl@5067397 (2.30.7),
 * src/graph/search.cc: ncclTopoDupChannels after a table of speeds in which NICs of 200 Gb/s count
 * 24 GB/s and of 400 Gb/s 48). */
static double
n_channels (const PodPlanRequest *request)
{
  const PodTopology *topology = request->topology;
  double per_chip = (double) topology->n_nics / topology->chips_per_node, n, nic_bytes_per_s;
  uint32_t up, down;
  PodLink link;

  if (topology->n_nics == 0
      || !pod_topology_nic_links (topology, request->group->devices[0], &up, &down))
    return 0;
  pod_topology_link (topology, up, &link);
  nic_bytes_per_s = link.bytes_per_s.nominal / per_chip;
  n = MAX (floor (request->nodes.n_least * per_chip / topology->chip->devices_per_chip), 1);
  return nic_bytes_per_s > (n > 4 ? 50e9 : 25e9) ? 2 * n : n;
}

/* Both of two trees send half of the bytes up and half down: NCCL halves its bus bandwidth. */
static double
channel_s_per_byte (const PodPlanRequest *request, const PodPlan *plan)
{
  const double *rates = request->device != NULL ? request->device->tree_channel_bytes_per_s : NULL;
  double n = rates != NULL && rates[0] > 0 && plan->n_net_steps > 0
                     && strcmp (plan->algorithm, "double-tree") == 0
                 ? n_channels (request)
                 : 0;

  return n > 0 ? 2 / (n * rates[request->nodes.n_nodes > 2]) : 0;
}

void
pod_library_shape (const PodPlanRequest *request, const PodPlan *plan, PodLibraryShape *out)
{
  *out = (PodLibraryShape){
    .kind = request->kind,
    .dtype = request->dtype,
    .n_ranks = request->group->n_devices,
    .n_steps = plan->n_steps - MIN (plan->n_net_steps, plan->n_steps),
    .n_net_steps = plan->n_net_steps,
    .net_latency_s = (double) plan->net_latency_ps * 1e-12,
    .own_s_per_byte = own_s_per_byte (request),
    .channel_s_per_byte = channel_s_per_byte (request, plan),
  };
  /* The links of a file say their latency, which no library's step was fitted with */
  if (request->topology->fabric == POD_FABRIC_GRAPH)
    out->net_latency_s = (double) plan->latency_ps * 1e-12;
  if (request->kind == POD_ALL_TO_ALL)
    out->n_steps = request->group->n_devices - 1;
  if (request->device != NULL && !pod_library_device_is_fitted (request->device)
      && request->topology->chip != NULL)
    out->floor_s = request->topology->chip->collective_launch_s;
  add_rates (request, plan, out);
}

/* How much longer than their plan @bandwidth_s of the links is. No rounding touches the plan's time
 * of this many bytes. */
static double
wire_ratio (const PodPlanRequest *request, const PodPlan *plan, double bandwidth_s, uint64_t bytes)
{
  const uint64_t many_bytes = G_GUINT64_CONSTANT (1) << 50;

  return bandwidth_s * ((double) many_bytes / (double) bytes)
         / pod_plan_time (request->topology, request->fidelity, plan, many_bytes);
}

void
pod_library_apply (const PodPlanRequest *request, const PodLibraryPath *path,
                   const PodLibraryShape *shape, uint64_t payload_bytes, PodPlan *plan)
{
  g_autofree char *how = g_steal_pointer (&plan->explain);
  PodLibraryPrice price, one;

  plan->latency_ps = 0;
  pod_library_price (path, shape, payload_bytes, &price);
  pod_library_price (path, shape, MAX (payload_bytes, 1), &one);
  plan->wire_ratio = wire_ratio (request, plan, one.bandwidth_s, MAX (payload_bytes, 1));
  plan->protocol = pod_protocol_name (path->protocol);
  plan->cost_s = price.cost_s;
  /* The bytes hold their links for bandwidth_s, the rest passes before them */
  if (!pod_seconds_to_ps (price.time_s - price.bandwidth_s, &plan->latency_ps))
    plan->latency_ps = INT64_MAX / 4;
  plan->explain
      = g_strdup_printf ("%s; %s: %.4g us before the bytes, on the links %.4g x their time", how,
                         plan->protocol, (double) plan->latency_ps * 1e-6, plan->wire_ratio);
}
