#pragma once

#include "collective/collective.h"
#include "network/packet.h"

/* One collective alone on a machine, at any of the network's fidelities. */

typedef struct
{
  double time_s;
  PodPacketCounts packets; /* packet mode */
} PodCollectiveRun;

/* @plan was made for @query. At fidelity book the time is V/W whatever @mode. @options: of packet
 * mode, NULL for the defaults. Errors: those of pod_collective_messages and pod_packet_job_new;
 * INFEASIBLE for a deadlock, with who waits. Flow: O(entries); packet: O(packets x hops). */
bool pod_collective_simulate (const PodPlanQuery *query, const PodPlan *plan, PodNetworkMode mode,
                              const PodPacketOptions *options, PodCollectiveRun *out,
                              GError **error);

/* "analytic", "flow", "packet" */
const char *pod_network_mode_name (PodNetworkMode mode);
bool pod_network_mode_parse (const char *text, PodNetworkMode *out, GError **error);
