#include <math.h>
#include <stdlib.h>

#include "network/network-private.h"

/* Machines are symmetric, and so are the paths of collectives: of 24,576 links of a torus under
 * 1,024 rings and 4 transfers over everything, some thousand bundles are all that a solver need
 * see. Bundles are split when a transfer tells their links apart, and never merged: programs use
 * the same paths again and again, so that soon nothing is split any more, and entering is one pass
 * over the path. All links of a bundle have the same past, so they also share a meter, and a split
 * copies it. */

typedef struct
{
  uint64_t capacity;
  uint32_t link;
} LinkCapacity;

static uint64_t
capacity_units (double bytes_per_s)
{
  double units = floor (bytes_per_s * POD_RATE_UNITS_PER_BYTE);

  g_assert (bytes_per_s > 0 && bytes_per_s < POD_RATE_LIMIT_BYTES_PER_S);
  return units < 1 ? 1 : (uint64_t) units;
}

static int
compare_capacities (const void *a, const void *b)
{
  const LinkCapacity *x = a;
  const LinkCapacity *y = b;

  if (x->capacity != y->capacity)
    return x->capacity < y->capacity ? -1 : 1;
  return x->link < y->link ? -1 : x->link > y->link;
}

static uint32_t
add_bundle (PodBundles *bundles, PodBundle bundle)
{
  g_assert (bundles->n_bundles < bundles->n_links);
  if (bundles->n_bundles == bundles->n_bundles_allocated)
    {
      bundles->n_bundles_allocated
          = MIN (bundles->n_links, MAX (64, bundles->n_bundles + bundles->n_bundles / 4));
      bundles->bundles = g_renew (PodBundle, bundles->bundles, bundles->n_bundles_allocated);
    }
  bundles->bundles[bundles->n_bundles] = bundle;
  return bundles->n_bundles++;
}

/* Links of one capacity are a bundle at first: as many as there are kinds. */
static void
count_kinds (PodBundles *bundles, const LinkCapacity *sorted)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < bundles->n_links; i++)
    n += i == 0 || sorted[i].capacity != sorted[i - 1].capacity;
  bundles->capacity = g_new (uint64_t, n + 1);
}

void
pod_bundles_init (PodBundles *bundles, uint32_t n_links, const double *capacity_bytes_per_s)
{
  g_autofree LinkCapacity *sorted = g_new (LinkCapacity, n_links + 1);

  bundles->n_links = n_links;
  bundles->bundle_of_link = g_new0 (uint32_t, n_links);
  bundles->first_free_node = POD_NO_INDEX;
  for (uint32_t l = 0; l < n_links; l++)
    sorted[l] = (LinkCapacity){ capacity_units (capacity_bytes_per_s[l]), l };
  qsort (sorted, n_links, sizeof *sorted, compare_capacities);
  count_kinds (bundles, sorted);
  for (uint32_t i = 0; i < n_links; i++)
    {
      if (i == 0 || sorted[i].capacity != sorted[i - 1].capacity)
        {
          bundles->capacity[bundles->n_bundles] = sorted[i].capacity;
          add_bundle (bundles,
                      (PodBundle){ .first_node = POD_NO_INDEX, .kind = bundles->n_bundles });
        }
      bundles->bundle_of_link[sorted[i].link] = bundles->n_bundles - 1;
      bundles->bundles[bundles->n_bundles - 1].n_links++;
    }
}

void
pod_bundles_clear (PodBundles *bundles)
{
  g_free (bundles->bundle_of_link);
  g_free (bundles->bundles);
  g_free (bundles->capacity);
  g_free (bundles->meters);
  g_free (bundles->nodes);
  g_free (bundles->pieces);
  g_free (bundles->entry_piece);
}

static uint32_t
take_node (PodBundles *bundles)
{
  uint32_t node = bundles->first_free_node;

  if (node != POD_NO_INDEX)
    {
      bundles->first_free_node = bundles->nodes[node].next;
      return node;
    }
  if (bundles->n_nodes == bundles->n_nodes_allocated)
    {
      g_assert (bundles->n_nodes < POD_NO_INDEX / 2);
      bundles->n_nodes_allocated = MAX (64, bundles->n_nodes + bundles->n_nodes / 2);
      bundles->nodes = g_renew (PodNode, bundles->nodes, bundles->n_nodes_allocated);
    }
  return bundles->n_nodes++;
}

static void
add_node (PodNetwork *network, uint32_t bundle_index, uint32_t transfer_index, uint64_t share_q32)
{
  PodBundles *bundles = &network->bundles;
  PodBundle *bundle = &bundles->bundles[bundle_index];
  PodTransfer *transfer = &network->transfers[transfer_index];
  uint32_t node = take_node (bundles);

  bundles->nodes[node] = (PodNode){
    .share_q32 = share_q32,
    .transfer = transfer_index,
    .bundle = bundle_index,
    .next = bundle->first_node,
    .previous = POD_NO_INDEX,
    .next_of_transfer = transfer->first_node,
  };
  if (bundle->first_node != POD_NO_INDEX)
    bundles->nodes[bundle->first_node].previous = node;
  bundle->first_node = node;
  transfer->first_node = node;
}

/* A bundle of @n_links of the links of @whole, with its transfers and its past. */
static uint32_t
split_off (PodNetwork *network, uint32_t whole, uint32_t n_links)
{
  PodBundles *bundles = &network->bundles;
  PodBundle part = bundles->bundles[whole];

  part.n_links = n_links;
  part.first_node = POD_NO_INDEX;
  bundles->bundles[whole].n_links -= n_links;
  uint32_t index = add_bundle (bundles, part);
  if (bundles->meters != NULL)
    bundles->meters[index] = bundles->meters[whole];
  for (uint32_t node = bundles->bundles[whole].first_node; node != POD_NO_INDEX;
       node = bundles->nodes[node].next)
    add_node (network, index, bundles->nodes[node].transfer, bundles->nodes[node].share_q32);
  return index;
}

static void
reserve_entries (PodBundles *bundles, uint32_t n_entries)
{
  if (n_entries <= bundles->n_entries_allocated)
    return;
  bundles->n_entries_allocated = MAX (n_entries, 2 * bundles->n_entries_allocated);
  bundles->pieces = g_renew (PodPiece, bundles->pieces, bundles->n_entries_allocated);
  bundles->entry_piece = g_renew (uint32_t, bundles->entry_piece, bundles->n_entries_allocated);
}

static uint32_t
find_piece (PodBundles *bundles, uint32_t bundle_index, uint64_t share_q32)
{
  PodBundle *bundle = &bundles->bundles[bundle_index];
  const bool is_met
      = bundle->place < bundles->n_pieces && bundles->pieces[bundle->place].bundle == bundle_index;
  const uint32_t first = is_met ? bundle->place : POD_NO_INDEX;

  for (uint32_t p = first; p != POD_NO_INDEX; p = bundles->pieces[p].next)
    if (bundles->pieces[p].share_q32 == share_q32)
      return p;
  bundles->pieces[bundles->n_pieces] = (PodPiece){
    .share_q32 = share_q32,
    .bundle = bundle_index,
    .next = first,
  };
  bundle->place = bundles->n_pieces;
  return bundles->n_pieces++;
}

static void
find_pieces (PodBundles *bundles, const PodTransfer *transfer)
{
  reserve_entries (bundles, transfer->n_entries);
  bundles->n_pieces = 0;
  for (uint32_t i = 0; i < transfer->n_entries; i++)
    {
      const PodPathEntry *entry = &transfer->path[i];
      g_assert (entry->link < bundles->n_links && entry->share_q32 > 0);
      uint32_t piece = find_piece (bundles, bundles->bundle_of_link[entry->link], entry->share_q32);
      bundles->pieces[piece].n_links++;
      bundles->entry_piece[i] = piece;
    }
}

/* Those that were alone on the links of the pieces are so no more. */
static void
settle_others (PodNetwork *network)
{
  const PodBundles *bundles = &network->bundles;

  for (uint32_t p = 0; p < bundles->n_pieces; p++)
    {
      const PodNode *node
          = pod_bundle_only_node (bundles, &bundles->bundles[bundles->pieces[p].bundle]);

      if (node != NULL)
        pod_network_settle (network, node->transfer);
    }
}

/* Splits the bundles that the pieces tell apart, and puts the transfer on them. */
static void
put_on_pieces (PodNetwork *network, uint32_t index)
{
  PodBundles *bundles = &network->bundles;
  PodTransfer *transfer = &network->transfers[index];
  uint32_t n_before = bundles->n_bundles;

  for (uint32_t p = 0; p < bundles->n_pieces; p++)
    {
      PodPiece *piece = &bundles->pieces[p];
      piece->target = piece->n_links == bundles->bundles[piece->bundle].n_links
                          ? piece->bundle
                          : split_off (network, piece->bundle, piece->n_links);
    }
  if (bundles->n_bundles > n_before)
    for (uint32_t i = 0; i < transfer->n_entries; i++)
      bundles->bundle_of_link[transfer->path[i].link]
          = bundles->pieces[bundles->entry_piece[i]].target;
  transfer->first_node = POD_NO_INDEX;
  for (uint32_t p = 0; p < bundles->n_pieces; p++)
    add_node (network, bundles->pieces[p].target, index, bundles->pieces[p].share_q32);
}

void
pod_bundles_enter (PodNetwork *network, uint32_t index)
{
  PodBundles *bundles = &network->bundles;

  find_pieces (bundles, &network->transfers[index]);
  settle_others (network);
  put_on_pieces (network, index);
  /* The others are reached from it */
  if (network->mode == POD_NETWORK_FLOW)
    pod_flow_mark (&network->flow, bundles->pieces[0].target);
}

bool
pod_bundles_enter_alone (PodNetwork *network, uint32_t index)
{
  PodBundles *bundles = &network->bundles;
  bool is_alone = true;

  find_pieces (bundles, &network->transfers[index]);
  for (uint32_t p = 0; p < bundles->n_pieces; p++)
    is_alone = is_alone && bundles->bundles[bundles->pieces[p].bundle].first_node == POD_NO_INDEX;
  if (is_alone)
    put_on_pieces (network, index);
  return is_alone;
}

void
pod_bundles_leave (PodNetwork *network, uint32_t index)
{
  PodBundles *bundles = &network->bundles;
  uint32_t next = 0;

  for (uint32_t i = network->transfers[index].first_node; i != POD_NO_INDEX; i = next)
    {
      PodNode *node = &bundles->nodes[i];
      PodBundle *bundle = &bundles->bundles[node->bundle];
      next = node->next_of_transfer;
      if (node->next != POD_NO_INDEX)
        bundles->nodes[node->next].previous = node->previous;
      if (node->previous != POD_NO_INDEX)
        bundles->nodes[node->previous].next = node->next;
      else
        bundle->first_node = node->next;
      if (bundle->first_node != POD_NO_INDEX && network->mode == POD_NETWORK_FLOW)
        pod_flow_mark (&network->flow, node->bundle);
      node->next = bundles->first_free_node;
      bundles->first_free_node = i;
    }
}

static bool
check_bundle (const PodNetwork *network, uint32_t index)
{
  const PodBundles *bundles = &network->bundles;
  const PodBundle *bundle = &bundles->bundles[index];
  uint32_t previous = POD_NO_INDEX;
  uint32_t n_nodes = 0;
  const bool is_shared
      = bundle->first_node != POD_NO_INDEX && pod_bundle_only_node (bundles, bundle) == NULL;
  PodU128 load = 0;

  for (uint32_t i = bundle->first_node; i != POD_NO_INDEX; i = bundles->nodes[i].next)
    {
      const PodNode *node = &bundles->nodes[i];
      const PodTransfer *transfer = &network->transfers[node->transfer];
      if (++n_nodes > bundles->n_nodes || node->previous != previous || node->bundle != index
          || (transfer->phase != POD_PHASE_BYTES
              && !(transfer->phase == POD_PHASE_ALONE && !is_shared)))
        return false;
      if (transfer->phase == POD_PHASE_BYTES)
        load += (PodU128) node->share_q32 * transfer->rate;
      previous = i;
    }
  return bundle->n_links > 0 && (bundles->meters == NULL || load == bundles->meters[index].load);
}

/* Its nodes stand for as many links as its path has, and every entry is in a bundle that it is on
 * with that share. */
static bool
check_transfer (const PodNetwork *network, uint32_t index, uint64_t *share_q32)
{
  const PodBundles *bundles = &network->bundles;
  const PodTransfer *transfer = &network->transfers[index];
  uint64_t n_links = 0;
  bool is_good = true;

  for (uint32_t i = transfer->first_node; i != POD_NO_INDEX; i = bundles->nodes[i].next_of_transfer)
    {
      const PodNode *node = &bundles->nodes[i];
      is_good = is_good && node->transfer == index && share_q32[node->bundle] == 0;
      share_q32[node->bundle] = node->share_q32;
      n_links += bundles->bundles[node->bundle].n_links;
    }
  for (uint32_t i = 0; i < transfer->n_entries; i++)
    is_good = is_good
              && share_q32[bundles->bundle_of_link[transfer->path[i].link]]
                     == transfer->path[i].share_q32;
  for (uint32_t i = transfer->first_node; i != POD_NO_INDEX; i = bundles->nodes[i].next_of_transfer)
    share_q32[bundles->nodes[i].bundle] = 0;
  return is_good && n_links == transfer->n_entries;
}

bool
pod_bundles_check (const PodNetwork *network)
{
  const PodBundles *bundles = &network->bundles;
  g_autofree uint32_t *n_links = g_new0 (uint32_t, bundles->n_bundles + 1);
  g_autofree uint64_t *share_q32 = g_new0 (uint64_t, bundles->n_bundles + 1);

  for (uint32_t l = 0; l < bundles->n_links; l++)
    n_links[bundles->bundle_of_link[l]]++;
  for (uint32_t b = 0; b < bundles->n_bundles; b++)
    if (n_links[b] != bundles->bundles[b].n_links || !check_bundle (network, b))
      return false;
  for (uint32_t t = 0; t < network->n_transfers; t++)
    if ((network->transfers[t].phase == POD_PHASE_BYTES
         || network->transfers[t].phase == POD_PHASE_ALONE)
        && !check_transfer (network, t, share_q32))
      return false;
  return true;
}
