#pragma once

#include "topology/topology.h"

/* Asks a machine what everything else asks it. */
static inline void
fuzz_ask_machine (const PodTopology *topology)
{
  enum
  {
    MAX_WALKED = 1024, /* devices of a graph whose diameter is searched for; ends of routes */
  };
  const uint32_t last = topology->n_devices - 1;
  const uint32_t far = MIN (last, MAX_WALKED);
  g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  const uint32_t ends[] = { 0, last, last / 2, far };
  PodLink link;

  g_assert (topology->n_devices > 0);
  for (size_t i = 0; i < G_N_ELEMENTS (ends); i++)
    for (size_t k = 0; k < G_N_ELEMENTS (ends); k++)
      {
        g_array_set_size (links, 0);
        if (!pod_topology_route (topology, ends[i], ends[k], links))
          continue;
        for (guint l = 0; l < links->len; l++)
          {
            g_assert (g_array_index (links, uint32_t, l) < topology->n_links);
            pod_topology_link (topology, g_array_index (links, uint32_t, l), &link);
            g_assert (link.bytes_per_s.nominal > 0 && link.latency_ps >= 0);
          }
      }
  for (size_t i = 0; i < G_N_ELEMENTS (ends); i++)
    {
      uint32_t a = 0;
      uint32_t b = 0;

      if (pod_topology_nic_links (topology, ends[i], &a, &b))
        g_assert (a < topology->n_links && b < topology->n_links);
      if (pod_topology_die_link (topology, ends[i], &a, &b))
        g_assert (a < topology->n_links && b < topology->n_devices);
      g_assert (pod_topology_host_of (topology, ends[i]) < topology->n_hosts);
      (void) pod_topology_node_of (topology, ends[i]);
    }
  if (topology->fabric != POD_FABRIC_GRAPH || topology->n_devices <= MAX_WALKED)
    {
      (void) pod_topology_diameter (topology);
      g_assert (pod_topology_bisection (topology, false) >= 0);
      g_assert (pod_topology_bisection (topology, true) >= 0);
    }
}
