#include "cli/machine-facts.h"

/* The links of a machine by kind and rate. */

const char *
pod_link_kind_name (PodLinkKind kind)
{
  static const char *const names[] = {
    [POD_LINK_ICI] = "ici", [POD_LINK_DIE] = "die",   [POD_LINK_SCALE_UP] = "scale_up",
    [POD_LINK_NIC] = "nic", [POD_LINK_TREE] = "tree", [POD_LINK_EXPLICIT] = "explicit",
  };

  return names[kind];
}

static void
add_class (GArray *classes, PodLinkKind kind, unsigned n_links, const PodLink *link)
{
  PodLinkClass added = { .kind = kind,
                         .level = -1,
                         .n_links = n_links,
                         .bytes_per_s = link->bytes_per_s,
                         .latency_ps = link->latency_ps };

  if (n_links > 0)
    g_array_append_val (classes, added);
}

/* Links of one kind are alike; @first is the id of one that exists. */
static void
add_kind (const PodTopology *topology, GArray *classes, PodLinkKind kind, uint32_t first)
{
  unsigned n_links = pod_topology_count_links (topology, kind);
  PodLink link;

  if (n_links == 0)
    return;
  pod_topology_link (topology, first, &link);
  add_class (classes, kind, n_links, &link);
}

/* A line of chips has ids for links beyond its ends, so the first id may be none. */
static void
add_ici (const PodTopology *topology, GArray *classes)
{
  PodLink link = { .bytes_per_s = topology->chip->ici_bytes_per_s,
                   .latency_ps = topology->chip->ici_hop_ps };

  add_class (classes, POD_LINK_ICI, pod_topology_count_links (topology, POD_LINK_ICI), &link);
}

static void
add_tree_levels (const PodTopology *topology, GArray *classes)
{
  for (unsigned level = 0; level < topology->n_levels; level++)
    {
      PodLinkClass added = { .kind = POD_LINK_TREE,
                             .level = (int) level,
                             .n_links = 2 * topology->level[level].n_groups,
                             .bytes_per_s = topology->level[level].up_bytes_per_s,
                             .latency_ps = topology->level[level].hop_ps };

      if (added.bytes_per_s.nominal > 0)
        g_array_append_val (classes, added);
    }
}

static bool
is_same_class (const PodLinkClass *of, const PodLink *link)
{
  const PodRated *a = &of->bytes_per_s, *b = &link->bytes_per_s;

  return !(a->nominal < b->nominal) && !(a->nominal > b->nominal) && !(a->book < b->book)
         && !(a->book > b->book) && of->latency_ps == link->latency_ps;
}

static void
add_explicit (const PodTopology *topology, GArray *classes)
{
  for (unsigned i = 0; i < topology->n_links; i++)
    {
      const PodLink *link = &topology->links[i];
      guint found = 0;

      while (found < classes->len
             && !is_same_class (&g_array_index (classes, PodLinkClass, found), link))
        found++;
      if (found < classes->len)
        g_array_index (classes, PodLinkClass, found).n_links++;
      else
        add_class (classes, POD_LINK_EXPLICIT, 1, link);
    }
}

GArray *
pod_machine_links (const PodTopology *topology)
{
  GArray *classes = g_array_new (FALSE, FALSE, sizeof (PodLinkClass));

  if (topology->fabric == POD_FABRIC_GRAPH)
    {
      add_explicit (topology, classes);
      return classes;
    }
  add_ici (topology, classes);
  add_kind (topology, classes, POD_LINK_DIE, topology->first_die_link);
  add_kind (topology, classes, POD_LINK_SCALE_UP, 0);
  add_kind (topology, classes, POD_LINK_NIC, topology->first_nic_link);
  add_tree_levels (topology, classes);
  return classes;
}
