#include "collective/plan-private.h"

/* All-reduce over nodes by two binary trees, each with half of the buffer: up to the root and back
 * down. A node that is inside one tree is a leaf of the other (Sanders, Speck, Traeff 2009;
 * NCCL 2.4). On two nodes each is the root of one tree: a direction between them carries V, where a
 * ring needs 2V(n-1)/n. Inside a node: reduce-scatter and all-gather, or the switch's reduction
 * ("nvls-tree"). */

bool
pod_double_tree_parent (unsigned n, unsigned rank, unsigned *out)
{
  unsigned bit = rank & (~rank + 1);

  if (rank == 0)
    return false;
  *out = (rank ^ bit) | bit << 1;
  if (*out >= n)
    *out = rank ^ bit;
  return true;
}

unsigned
pod_double_tree_place (unsigned n, unsigned tree, unsigned rank)
{
  if (tree == 0)
    return rank;
  return n % 2 == 0 ? n - 1 - rank : (rank + 1) % n;
}

static unsigned
tree_depth (unsigned n)
{
  unsigned deepest = 0;

  for (unsigned rank = 1; rank < n; rank++)
    {
      unsigned at = rank, depth = 0;

      for (; pod_double_tree_parent (n, at, &at); depth++)
        ;
      deepest = MAX (deepest, depth);
    }
  return deepest;
}

static bool
build (PodPlanRequest *request, PodPlan *plan, bool is_switch_reduced, GError **error)
{
  const PodMemberNodes *nodes = &request->nodes;
  unsigned n_nodes = nodes->n_nodes, depth = tree_depth (n_nodes), has_inside = 0;
  double inside_s = pod_node_book_inside (request);
  int64_t inside_ps, across_ps;

  if (!pod_node_latencies (request, &inside_ps, &across_ps, error))
    return false;
  for (unsigned tree = 0; tree < 2; tree++)
    for (unsigned rank = 1; rank < n_nodes; rank++)
      {
        unsigned parent, from = pod_double_tree_place (n_nodes, tree, rank), to;

        if (!pod_double_tree_parent (n_nodes, rank, &parent))
          continue;
        to = pod_double_tree_place (n_nodes, tree, parent);
        if (!pod_node_add_flow (request, from, to, 0.5, error)
            || !pod_node_add_flow (request, to, from, 0.5, error))
          return false;
      }
  for (unsigned j = 0; j < n_nodes; j++)
    {
      double k = pod_member_nodes_count (nodes, j);

      if (k > 1)
        has_inside = 1;
      if (!pod_node_add (request, j,
                         k < 2               ? 0
                         : is_switch_reduced ? (k + 1) / k
                                             : 2 * (k - 1) / k,
                         error))
        return false;
    }
  plan->n_steps = 2 * (depth + has_inside);
  plan->n_net_steps = 2 * depth;
  plan->net_latency_ps = plan->n_net_steps * across_ps;
  plan->latency_ps = 2 * ((int64_t) depth * across_ps + (int64_t) has_inside * inside_ps);
  plan->book_s_per_byte = MAX (MAX (2 * pod_node_book_across (request) / nodes->n_least,
                                    (is_switch_reduced ? 1 : 2) * inside_s),
                               pod_link_loads_time (request, POD_FIDELITY_BOOK));
  plan->explain = g_strdup_printf (
      "two binary trees over %u nodes, half of the bytes each, depth %u, %s inside", n_nodes, depth,
      is_switch_reduced ? "in-switch reduction" : "reduce-scatter and all-gather");
  return true;
}

bool
pod_build_double_tree (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  return build (request, plan, false, error);
}

bool
pod_fits_nvls_tree (const PodPlanRequest *request)
{
  return request->nodes.n_nodes > 1 && request->group->n_devices > request->nodes.n_nodes
         && request->topology->chip->has_in_switch_reduction && !request->topology->is_full_mesh;
}

bool
pod_build_nvls_tree (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  return build (request, plan, true, error);
}
