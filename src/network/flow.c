#include "network/network-private.h"

/* A component is what bundles and transfers reach from a bundle that has changed: outside of it,
 * nothing can change. It is found and solved from scratch; only transfers whose rate is another one
 * then are touched. */

typedef struct
{
  uint64_t serial;
  uint64_t rate;
  uint32_t index;
} Change;

void
pod_flow_init (PodFlow *flow, uint32_t n_links)
{
  flow->is_dirty = g_new0 (bool, n_links);
  flow->solver = pod_max_min_new ();
  flow->component = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  flow->capacity = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  flow->members = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  flow->entries = g_array_new (FALSE, FALSE, sizeof (PodPathEntry));
  flow->n_entries = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  flow->paths = g_array_new (FALSE, FALSE, sizeof (const PodPathEntry *));
  flow->rates = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  flow->changes = g_array_new (FALSE, FALSE, sizeof (Change));
}

void
pod_flow_clear (PodFlow *flow)
{
  g_free (flow->is_dirty);
  g_free (flow->dirty);
  pod_max_min_free (flow->solver);
  g_array_free (flow->component, TRUE);
  g_array_free (flow->capacity, TRUE);
  g_array_free (flow->members, TRUE);
  g_array_free (flow->entries, TRUE);
  g_array_free (flow->n_entries, TRUE);
  g_array_free (flow->paths, TRUE);
  g_array_free (flow->rates, TRUE);
  g_array_free (flow->changes, TRUE);
}

void
pod_flow_mark (PodFlow *flow, uint32_t bundle)
{
  if (flow->is_dirty[bundle])
    return;
  if (flow->n_dirty == flow->n_dirty_allocated)
    {
      flow->n_dirty_allocated = MAX (64, 2 * flow->n_dirty_allocated);
      flow->dirty = g_renew (uint32_t, flow->dirty, flow->n_dirty_allocated);
    }
  flow->is_dirty[bundle] = true;
  flow->dirty[flow->n_dirty++] = bundle;
}

/* The place of a bundle in the component. */
static uint32_t
visit_bundle (PodNetwork *network, uint32_t index)
{
  PodFlow *flow = &network->flow;
  PodBundle *bundle = &network->bundles.bundles[index];

  if (bundle->place < flow->component->len
      && g_array_index (flow->component, uint32_t, bundle->place) == index)
    return bundle->place;
  bundle->place = flow->component->len;
  g_array_append_val (flow->component, index);
  g_array_append_val (flow->capacity, network->bundles.capacity[bundle->kind]);
  return bundle->place;
}

static void
visit_transfer (PodNetwork *network, uint32_t index)
{
  PodFlow *flow = &network->flow;
  PodTransfer *transfer = &network->transfers[index];
  guint n_before = flow->entries->len;

  if (transfer->visit == flow->n_solves)
    return;
  transfer->visit = flow->n_solves;
  for (uint32_t i = transfer->first_node; i != POD_NO_INDEX;)
    {
      const PodNode *node = &network->bundles.nodes[i];
      PodPathEntry entry = { visit_bundle (network, node->bundle), node->share_q32 };
      g_array_append_val (flow->entries, entry);
      i = node->next_of_transfer;
    }
  uint32_t n_entries = flow->entries->len - n_before;
  g_array_append_val (flow->members, index);
  g_array_append_val (flow->n_entries, n_entries);
}

/* The transfers that share links with those on @bundle, and so on. */
static void
find_component (PodNetwork *network, const PodBundle *bundle)
{
  PodFlow *flow = &network->flow;
  const PodBundles *bundles = &network->bundles;

  g_array_set_size (flow->component, 0);
  g_array_set_size (flow->capacity, 0);
  g_array_set_size (flow->members, 0);
  g_array_set_size (flow->entries, 0);
  g_array_set_size (flow->n_entries, 0);
  visit_transfer (network, bundles->nodes[bundle->first_node].transfer);
  for (guint i = 0; i < flow->component->len; i++)
    {
      uint32_t reached = g_array_index (flow->component, uint32_t, i);
      for (uint32_t node = bundles->bundles[reached].first_node; node != POD_NO_INDEX;
           node = bundles->nodes[node].next)
        visit_transfer (network, bundles->nodes[node].transfer);
    }
}

static void
add_change (PodFlow *flow, const PodTransfer *transfer, uint32_t index, uint64_t rate)
{
  const Change change = { transfer->serial, rate, index };

  if (rate != transfer->rate)
    g_array_append_val (flow->changes, change);
}

uint64_t
pod_flow_rate_alone (const PodNetwork *network, const PodTransfer *transfer)
{
  uint64_t rate = UINT64_MAX, last_share_q32 = 0;
  uint32_t last_kind = UINT32_MAX;

  for (uint32_t i = transfer->first_node; i != POD_NO_INDEX;)
    {
      const PodNode *node = &network->bundles.nodes[i];
      const uint32_t kind = network->bundles.bundles[node->bundle].kind;

      /* Bundles of one kind follow each other, and a division is what it costs */
      if (kind != last_kind || node->share_q32 != last_share_q32)
        rate
            = MIN (rate, pod_max_min_rate_alone (network->bundles.capacity[kind], node->share_q32));
      last_kind = kind;
      last_share_q32 = node->share_q32;
      i = node->next_of_transfer;
    }
  return rate;
}

/* Most transfers share no link with another: no component need be found. False when this one does.
 */
static bool
solve_alone (PodNetwork *network, uint32_t index)
{
  PodTransfer *transfer = &network->transfers[index];

  for (uint32_t i = transfer->first_node; i != POD_NO_INDEX;
       i = network->bundles.nodes[i].next_of_transfer)
    if (pod_node_is_shared (&network->bundles.nodes[i]))
      return false;
  transfer->visit = network->flow.n_solves;
  add_change (&network->flow, transfer, index, pod_flow_rate_alone (network, transfer));
  return true;
}

static void
solve_component (PodNetwork *network, const PodBundle *bundle)
{
  PodFlow *flow = &network->flow;

  if (solve_alone (network, network->bundles.nodes[bundle->first_node].transfer))
    return;
  find_component (network, bundle);
  guint n_members = flow->members->len;
  g_array_set_size (flow->paths, n_members);
  g_array_set_size (flow->rates, n_members);
  const PodPathEntry **paths = &g_array_index (flow->paths, const PodPathEntry *, 0);
  const PodPathEntry *entry = &g_array_index (flow->entries, PodPathEntry, 0);
  const uint32_t *n_entries = &g_array_index (flow->n_entries, uint32_t, 0);
  uint64_t *rates = &g_array_index (flow->rates, uint64_t, 0);
  for (guint i = 0; i < n_members; entry += n_entries[i], i++)
    paths[i] = entry;
  pod_max_min_solve (flow->solver, &g_array_index (flow->capacity, uint64_t, 0), paths, n_entries,
                     n_members, rates);
  for (guint i = 0; i < n_members; i++)
    {
      uint32_t index = g_array_index (flow->members, uint32_t, i);

      add_change (flow, &network->transfers[index], index, rates[i]);
    }
}

static int
compare_serials (const void *a, const void *b)
{
  uint64_t serial_a = ((const Change *) a)->serial;
  uint64_t serial_b = ((const Change *) b)->serial;

  return (serial_a > serial_b) - (serial_a < serial_b);
}

static bool
is_sorted (const GArray *changes)
{
  for (guint i = 1; i < changes->len; i++)
    if (g_array_index (changes, Change, i - 1).serial > g_array_index (changes, Change, i).serial)
      return false;
  return true;
}

/* Nobody is on it, or who is has been met in this solve, or is alone. */
static bool
is_solved (const PodNetwork *network, const PodBundle *bundle)
{
  const PodTransfer *first;

  if (bundle->first_node == POD_NO_INDEX)
    return true;
  first = &network->transfers[network->bundles.nodes[bundle->first_node].transfer];
  return first->visit == network->flow.n_solves || first->phase == POD_PHASE_ALONE;
}

/* Changes are made in the order in which transfers entered, not in that of the search: ends of one
 * instant then come in an order that says nothing about which bundles were dirty, so that full and
 * incremental solves agree on it. */
void
pod_flow_solve (PodNetwork *network)
{
  PodFlow *flow = &network->flow;

  flow->n_solves++;
  if (flow->is_full)
    for (uint32_t b = 0; b < network->bundles.n_bundles; b++)
      pod_flow_mark (flow, b);
  for (uint32_t i = 0; i < flow->n_dirty; i++)
    {
      const PodBundle *bundle = &network->bundles.bundles[flow->dirty[i]];
      flow->is_dirty[flow->dirty[i]] = false;
      if (!is_solved (network, bundle))
        solve_component (network, bundle);
    }
  flow->n_dirty = 0;
  if (!is_sorted (flow->changes))
    g_array_sort (flow->changes, compare_serials);
  for (guint i = 0; i < flow->changes->len; i++)
    {
      const Change *change = &g_array_index (flow->changes, Change, i);
      pod_network_set_rate (network, change->index, change->rate);
    }
  g_array_set_size (flow->changes, 0);
}

/* The rates are those that a solver finds which knows links but no bundles, and has seen no other
 * problem. */
bool
pod_flow_check (const PodNetwork *network)
{
  const PodBundles *bundles = &network->bundles;
  g_autofree uint64_t *capacity = g_new (uint64_t, bundles->n_links + 1);
  g_autofree const PodPathEntry **paths = g_new (const PodPathEntry *, network->n_transfers + 1);
  g_autofree uint32_t *n_entries = g_new (uint32_t, network->n_transfers + 1);
  g_autofree uint32_t *members = g_new (uint32_t, network->n_transfers + 1);
  g_autofree uint64_t *rates = g_new (uint64_t, network->n_transfers + 1);
  g_autoptr (PodMaxMin) solver = pod_max_min_new ();
  uint32_t n_members = 0;
  bool is_good = true;

  if (network->flow.n_dirty > 0)
    return true;
  for (uint32_t l = 0; l < bundles->n_links; l++)
    capacity[l] = pod_bundle_capacity (bundles, bundles->bundle_of_link[l]);
  for (uint32_t t = 0; t < network->n_transfers; t++)
    if (network->transfers[t].phase == POD_PHASE_BYTES)
      {
        paths[n_members] = network->transfers[t].path;
        n_entries[n_members] = network->transfers[t].n_entries;
        members[n_members++] = t;
      }
  pod_max_min_solve (solver, capacity, paths, n_entries, n_members, rates);
  for (uint32_t i = 0; i < n_members; i++)
    is_good = is_good && rates[i] == network->transfers[members[i]].rate;
  return is_good;
}
