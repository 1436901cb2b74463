#pragma once

#include "topology/topology.h"

/* The machines that collectives of one chip were measured on: its scale-up domain, and clusters of
 * domains with the chip's default network. */
typedef struct PodCollectiveMachines PodCollectiveMachines;

/* Errors UNSUPPORTED for a chip without a scale-up domain. Returns: (transfer full) */
PodCollectiveMachines *pod_collective_machines_new (const char *chip, GError **error);
void pod_collective_machines_free (PodCollectiveMachines *machines);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodCollectiveMachines, pod_collective_machines_free)

/* The domain: "h100:8", "gb200:72". */
const PodTopology *pod_collective_machines_domain (const PodCollectiveMachines *machines);

/* The domain where it has @n_ranks, else as many whole domains as they fill ("h100:8x4" for 32);
 * NULL when they fill none. Made once for each number of domains. */
bool pod_collective_machines_find (PodCollectiveMachines *machines, uint32_t n_ranks,
                                   const PodTopology **out, GError **error);
