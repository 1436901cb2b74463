#include "collective/simulate.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "collective/messages.h"

enum
{
  NETWORK_KIND = 0, /* and 1 */
  PACKET_KIND = 2,
};

static const char *const mode_names[] = {
  [POD_NETWORK_ANALYTIC] = "analytic",
  [POD_NETWORK_FLOW] = "flow",
  [POD_NETWORK_PACKET] = "packet",
};

const char *
pod_network_mode_name (PodNetworkMode mode)
{
  g_return_val_if_fail ((unsigned) mode < G_N_ELEMENTS (mode_names), "?");
  return mode_names[mode];
}

bool
pod_network_mode_parse (const char *text, PodNetworkMode *out, GError **error)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (mode_names); i++)
    if (strcmp (mode_names[i], text) == 0)
      {
        *out = (PodNetworkMode) i;
        return true;
      }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "expected analytic, flow or packet, got '%s'",
               text);
  return false;
}

static void
count_done (void *context, uint32_t tag)
{
  (void) tag;
  ++*(uint32_t *) context;
}

static double *
link_rates (const PodPlanQuery *query)
{
  uint32_t n = query->topology->n_links;
  double *capacity = g_new (double, (size_t) n + 1);

  for (uint32_t i = 0; i < n; i++)
    /* A machine may have links without a rate, which no route takes */
    capacity[i] = MAX (pod_collective_link_rate (query->topology, query->fidelity, i), 1);
  return capacity;
}

static double
seconds (const PodEventQueue *queue)
{
  return (double) pod_event_queue_now (queue) * 1e-12;
}

static bool
run_flow (const PodPlanQuery *query, const PodPlan *plan, PodCollectiveRun *out, GError **error)
{
  g_autofree double *capacity = link_rates (query);
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  uint32_t n_done = 0;
  g_autoptr (PodNetwork) network = NULL;
  double ratio = plan->busiest_ratio * (plan->wire_ratio > 0 ? plan->wire_ratio : 1);
  PodEvent event;

  if (!pod_network_check_rates (query->topology->n_links, capacity, error))
    return false;
  network = pod_network_new (POD_NETWORK_FLOW, queue, NETWORK_KIND, query->topology->n_links,
                             capacity, count_done, &n_done);
  pod_network_start (network, plan->entries, plan->n_entries,
                     (uint64_t) llround ((double) query->payload_bytes * ratio), plan->latency_ps,
                     0, 0);
  while (pod_event_queue_pop (queue, &event))
    pod_network_handle (network, &event);
  out->time_s = seconds (queue);
  return true;
}

/* Packets are of the algorithm's own messages: they know no other delays than those of links, and
 * wait for what they need, not for the end of a phase elsewhere. */
static bool
check_packets (const PodPlanQuery *query, GError **error)
{
  if (query->steps == NULL && query->phases == POD_PHASES_PIPELINED)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
               "%s has no messages for packet mode: take analytic or flow",
               query->steps != NULL ? "a law of steps" : "a plan of phases one after another");
  return false;
}

static bool
run_packets (const PodPlanQuery *query, const PodPlan *plan, const PodPacketOptions *options,
             PodCollectiveRun *out, GError **error)
{
  g_autofree double *capacity = link_rates (query);
  g_autofree PodPacketLink *links
      = pod_packet_links (query->topology, capacity, options->drop_kinds);
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  g_autoptr (PodMessageSet) set = pod_collective_messages_query (query, plan, error);
  uint32_t n_done = 0;
  g_autoptr (PodPacketNetwork) network = NULL;
  g_autoptr (PodPacketJob) job = NULL;
  g_autofree char *why = NULL;
  PodEvent event;

  if (set == NULL)
    return false;
  network = pod_packet_network_new (options, links, query->topology->n_links, queue, PACKET_KIND,
                                    count_done, &n_done, error);
  if (network == NULL)
    return false;
  job = pod_packet_job_new (network, set, error);
  if (job == NULL)
    {
      g_prefix_error (error, "%s: ", query->topology->name);
      return false;
    }
  pod_packet_network_start (network, job, 0);
  while (n_done == 0 && pod_event_queue_pop (queue, &event))
    pod_packet_network_handle (network, &event);
  out->time_s = seconds (queue);
  pod_packet_network_counts (network, &out->packets);
  if (n_done > 0)
    return true;
  why = pod_packet_network_describe_waiting (network);
  g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "deadlock at %g s: %s", out->time_s, why);
  return false;
}

bool
pod_collective_simulate (const PodPlanQuery *query, const PodPlan *plan, PodNetworkMode mode,
                         const PodPacketOptions *options, PodCollectiveRun *out, GError **error)
{
  static const PodPacketOptions defaults = { 0 };

  *out = (PodCollectiveRun){ 0 };
  if (mode == POD_NETWORK_PACKET && query->fidelity != POD_FIDELITY_BOOK)
    return check_packets (query, error)
           && run_packets (query, plan, options != NULL ? options : &defaults, out, error);
  if (mode == POD_NETWORK_FLOW && query->fidelity != POD_FIDELITY_BOOK)
    return run_flow (query, plan, out, error);
  out->time_s = pod_plan_time (query->topology, query->fidelity, plan, query->payload_bytes);
  return true;
}
