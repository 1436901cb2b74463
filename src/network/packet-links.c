#include "network/packet.h"

/* The links of a machine as the packet network takes them. */

/* Parallel switches at the upper end of a tree link: each is a cable of its own. */
static uint32_t
n_tree_lanes (const PodTopology *topology, const PodLink *link)
{
  unsigned above = link->dim + 1U;

  if (above >= topology->n_levels || topology->level[above].n_groups == 0)
    return 1;
  return MAX (1, topology->level[above].n_switches / topology->level[above].n_groups);
}

void
pod_packet_axis_ranks (const PodTopology *topology, uint8_t out[3])
{
  for (unsigned a = 0; a < 3; a++)
    {
      out[a] = topology->is_twisted ? (uint8_t) a : 0;
      for (unsigned b = 0; b < 3 && !topology->is_twisted; b++)
        if (topology->extent[b] > topology->extent[a]
            || (topology->extent[b] == topology->extent[a] && b < a))
          out[a]++;
    }
}

static void
describe_torus (const PodTopology *topology, const PodLink *link, PodPacketLink *out)
{
  unsigned coords[POD_MAX_DIMS];
  uint8_t ranks[3];

  pod_packet_axis_ranks (topology, ranks);
  out->rank = ranks[link->dim];
  pod_topology_coords (topology, link->from, coords);
  out->flow = POD_FLOW_TORUS;
  out->axis = link->dim;
  out->sign = link->sign;
  out->position = coords[link->dim];
  out->extent = topology->wraps[link->dim] ? topology->extent[link->dim] : 0;
}

PodPacketLink *
pod_packet_links (const PodTopology *topology, const double *capacity, unsigned drop_kinds)
{
  PodPacketLink *links = g_new0 (PodPacketLink, (size_t) topology->n_links + 1);

  for (uint32_t i = 0; i < topology->n_links; i++)
    {
      PodPacketLink *out = &links[i];
      PodLink link;

      pod_topology_link (topology, i, &link);
      *out = (PodPacketLink){ .from = link.from,
                              .to = link.to,
                              .bytes_per_s = capacity[i],
                              .latency_ps = link.latency_ps,
                              .n_lanes = 1 };
      switch (link.kind)
        {
        case POD_LINK_ICI:
          describe_torus (topology, &link, out);
          break;
        case POD_LINK_DIE: /* both the first and the last hop of routes, so in no order */
          out->flow = POD_FLOW_UNBOUNDED;
          break;
        case POD_LINK_TREE:
          out->flow = POD_FLOW_ORDERED;
          out->n_lanes = n_tree_lanes (topology, &link);
          break;
        case POD_LINK_EXPLICIT:
          out->flow = POD_FLOW_BY_HOP;
          break;
        default:
          /* A device that passes traffic on to its NIC keeps it in its memory, not in the switch */
          out->flow = link.to < topology->n_devices ? POD_FLOW_UNBOUNDED : POD_FLOW_ORDERED;
        }
      if ((drop_kinds >> link.kind & 1) != 0)
        out->flow = POD_FLOW_LOSSY;
    }
  return links;
}
