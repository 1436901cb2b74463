#include "network/max-min.h"

#include <string.h>

#include "network/network-private.h"

/* Links get a number of their own in each call, in the order met, so that the work is in dense
 * arrays however many links there are. Levels never fall: fixing transfers at level L takes share *
 * L from a link whose level is at least L. So a level that was computed earlier is a lower bound,
 * and is computed anew only when its link comes up as the lowest.
 *
 * All links of the lowest level are filled in one round. Were they filled one after the other, what
 * rounding down leaves on a link would go to some of its transfers, and which would depend on how
 * links are numbered: folded and unfolded runs would differ. This way the rates depend on nothing
 * but capacities and shares. */

typedef struct
{
  PodU128 left;       /* capacity << 32 less what the fixed transfers take */
  PodU128 sum_shares; /* of the transfers that are not fixed */
  uint32_t n_unfixed;
  uint32_t first_user;
  bool is_stale; /* the heap's level is only a lower bound */
} Link;

typedef struct
{
  uint64_t level;
  uint32_t link; /* the number of this call */
} HeapEntry;

struct PodMaxMin
{
  uint32_t *number_plus_1; /* by link: its number in this call; 0 outside of calls */
  size_t n_numbers_allocated;

  Link *links;
  uint32_t n_links;
  size_t n_links_allocated; /* of links, heap, tied */
  HeapEntry *heap;
  uint32_t n_heap;
  uint32_t *tied; /* the links of the lowest level */
  uint32_t n_tied;

  uint32_t *entry_link; /* by entry, path after path */
  uint32_t *users;      /* by link: the transfers on it */
  size_t n_entries_allocated;

  size_t *first_entry; /* by transfer */
  size_t n_transfers_allocated;

  /* Arguments of the call */
  const PodPathEntry *const *paths;
  const uint32_t *n_entries;
  uint32_t n_transfers;
  uint64_t *rate; /* 0: not fixed yet */
};

PodMaxMin *
pod_max_min_new (void)
{
  return g_new0 (PodMaxMin, 1);
}

void
pod_max_min_free (PodMaxMin *solver)
{
  if (solver == NULL)
    return;
  g_free (solver->number_plus_1);
  g_free (solver->links);
  g_free (solver->heap);
  g_free (solver->tied);
  g_free (solver->entry_link);
  g_free (solver->users);
  g_free (solver->first_entry);
  g_free (solver);
}

/* At least 1, so that every transfer ends: a link may then be overdrawn by 1/256 byte/s per
 * transfer and share. */
static inline uint64_t
level_of (PodU128 left, PodU128 sum_shares)
{
  PodU128 level = left / sum_shares;

  return level == 0 ? 1 : level > UINT64_MAX ? UINT64_MAX : (uint64_t) level;
}

static void
reserve_for_numbers (PodMaxMin *solver, uint32_t link)
{
  size_t n_before = solver->n_numbers_allocated;

  if (link < n_before)
    return;
  solver->n_numbers_allocated = MAX ((size_t) link + 1, 2 * n_before);
  solver->number_plus_1 = g_renew (uint32_t, solver->number_plus_1, solver->n_numbers_allocated);
  memset (solver->number_plus_1 + n_before, 0,
          (solver->n_numbers_allocated - n_before) * sizeof (uint32_t));
}

/* There are at most as many links as entries. */
static void
reserve (PodMaxMin *solver, size_t n_entries, uint32_t n_transfers)
{
  if (n_entries > solver->n_entries_allocated)
    {
      solver->n_entries_allocated = MAX (n_entries, 2 * solver->n_entries_allocated);
      solver->entry_link = g_renew (uint32_t, solver->entry_link, solver->n_entries_allocated);
      solver->users = g_renew (uint32_t, solver->users, solver->n_entries_allocated);
    }
  if (n_transfers > solver->n_transfers_allocated)
    {
      solver->n_transfers_allocated = MAX (n_transfers, 2 * solver->n_transfers_allocated);
      solver->first_entry = g_renew (size_t, solver->first_entry, solver->n_transfers_allocated);
    }
}

static void
reserve_for_links (PodMaxMin *solver)
{
  solver->n_links_allocated = MAX (64, solver->n_links_allocated + solver->n_links_allocated / 2);
  solver->links = g_renew (Link, solver->links, solver->n_links_allocated);
  solver->heap = g_renew (HeapEntry, solver->heap, solver->n_links_allocated);
  solver->tied = g_renew (uint32_t, solver->tied, solver->n_links_allocated);
}

static void
number_links (PodMaxMin *solver, const uint64_t *capacity)
{
  size_t position = 0;

  solver->n_links = 0;
  for (uint32_t t = 0; t < solver->n_transfers; t++)
    {
      solver->first_entry[t] = position;
      for (uint32_t i = 0; i < solver->n_entries[t]; i++)
        {
          const PodPathEntry *entry = &solver->paths[t][i];
          reserve_for_numbers (solver, entry->link);
          uint32_t *number_plus_1 = &solver->number_plus_1[entry->link];
          if (*number_plus_1 == 0)
            {
              if (solver->n_links == solver->n_links_allocated)
                reserve_for_links (solver);
              solver->links[solver->n_links++]
                  = (Link){ .left = (PodU128) capacity[entry->link] << 32 };
              *number_plus_1 = solver->n_links;
            }
          Link *link = &solver->links[*number_plus_1 - 1];
          link->sum_shares += entry->share_q32;
          link->n_unfixed++;
          solver->entry_link[position++] = *number_plus_1 - 1;
        }
    }
  for (uint32_t t = 0; t < solver->n_transfers; t++)
    for (uint32_t i = 0; i < solver->n_entries[t]; i++)
      solver->number_plus_1[solver->paths[t][i].link] = 0;
}

static void
list_users (PodMaxMin *solver)
{
  uint32_t position = 0;

  for (uint32_t l = 0; l < solver->n_links; l++)
    {
      position += solver->links[l].n_unfixed;
      solver->links[l].first_user = position;
    }
  for (uint32_t t = solver->n_transfers; t-- > 0;)
    for (uint32_t i = 0; i < solver->n_entries[t]; i++)
      solver->users[--solver->links[solver->entry_link[solver->first_entry[t] + i]].first_user] = t;
}

/* The lowest level of the heap's entries [0, n_heap), which need not be in heap order: finds it in
 * one pass, throws out links without work, and gathers the links of that level. */
static uint64_t
scan_for_lowest (PodMaxMin *solver)
{
  uint64_t lowest = UINT64_MAX;
  uint32_t n_kept = 0;

  solver->n_tied = 0;
  for (uint32_t i = 0; i < solver->n_heap; i++)
    {
      HeapEntry entry = solver->heap[i];
      Link *link = &solver->links[entry.link];
      if (link->n_unfixed == 0)
        continue;
      if (link->is_stale && entry.level <= lowest)
        {
          entry.level = level_of (link->left, link->sum_shares);
          link->is_stale = false;
        }
      solver->heap[n_kept++] = entry;
      if (entry.level > lowest)
        continue;
      if (entry.level < lowest)
        solver->n_tied = 0;
      lowest = entry.level;
      solver->tied[solver->n_tied++] = entry.link;
    }
  solver->n_heap = n_kept;
  return lowest;
}

static void
sift_down (HeapEntry *heap, uint32_t n_heap, size_t hole, HeapEntry entry)
{
  for (size_t child = 2 * hole + 1; child < n_heap; child = 2 * hole + 1)
    {
      if (child + 1 < n_heap && heap[child + 1].level < heap[child].level)
        child++;
      if (heap[child].level >= entry.level)
        break;
      heap[hole] = heap[child];
      hole = child;
    }
  heap[hole] = entry;
}

/* The same from a heap. Links of one level come in any order: they are filled together. */
static uint64_t
pop_lowest (PodMaxMin *solver)
{
  uint64_t lowest = UINT64_MAX;
  HeapEntry *heap = solver->heap;

  solver->n_tied = 0;
  while (solver->n_heap > 0 && (solver->n_tied == 0 || heap[0].level == lowest))
    {
      Link *link = &solver->links[heap[0].link];
      if (link->n_unfixed > 0 && link->is_stale)
        {
          link->is_stale = false;
          sift_down (heap, solver->n_heap, 0,
                     (HeapEntry){ level_of (link->left, link->sum_shares), heap[0].link });
          continue;
        }
      if (link->n_unfixed > 0)
        {
          lowest = heap[0].level;
          solver->tied[solver->n_tied++] = heap[0].link;
        }
      solver->n_heap--;
      sift_down (heap, solver->n_heap, 0, heap[solver->n_heap]);
    }
  return lowest;
}

static void
fix (PodMaxMin *solver, uint32_t transfer, uint64_t level)
{
  const PodPathEntry *path = solver->paths[transfer];
  const uint32_t *entry_link = solver->entry_link + solver->first_entry[transfer];

  solver->rate[transfer] = level;
  for (uint32_t i = 0; i < solver->n_entries[transfer]; i++)
    {
      Link *link = &solver->links[entry_link[i]];
      PodU128 taken = (PodU128) path[i].share_q32 * level;
      link->left -= MIN (taken, link->left);
      link->sum_shares -= path[i].share_q32;
      link->n_unfixed--;
      link->is_stale = true;
    }
}

static void
fill_tied (PodMaxMin *solver, uint64_t level)
{
  for (uint32_t i = 0; i < solver->n_tied; i++)
    {
      const Link *link = &solver->links[solver->tied[i]];
      const uint32_t *users = solver->users + link->first_user;
      for (uint32_t j = 0; link->n_unfixed > 0; j++)
        if (solver->rate[users[j]] == 0)
          fix (solver, users[j], level);
    }
}

/* Symmetric machines have few levels, and then passes over all links are faster than a heap; they
 * may cost so many visits per link, and then the heap takes over. */
static void
fill (PodMaxMin *solver)
{
  enum
  {
    MAX_VISITS_PER_LINK = 4,
  };
  uint64_t n_visits_left = MAX_VISITS_PER_LINK * (uint64_t) solver->n_links;
  PodU128 last_left = 0, last_sum = 0;
  uint64_t last_level = 0;

  solver->n_heap = solver->n_links;
  for (uint32_t l = 0; l < solver->n_links; l++)
    {
      const Link *link = &solver->links[l];
      if (link->left != last_left || link->sum_shares != last_sum)
        {
          last_left = link->left;
          last_sum = link->sum_shares;
          last_level = level_of (last_left, last_sum);
        }
      solver->heap[l] = (HeapEntry){ last_level, l };
    }
  while (solver->n_heap > 0 && n_visits_left >= solver->n_heap)
    {
      n_visits_left -= solver->n_heap;
      uint64_t level = scan_for_lowest (solver);
      fill_tied (solver, level);
    }
  for (size_t i = solver->n_heap / 2; i-- > 0;)
    sift_down (solver->heap, solver->n_heap, i, solver->heap[i]);
  while (solver->n_heap > 0)
    {
      uint64_t level = pop_lowest (solver);
      fill_tied (solver, level);
    }
}

uint64_t
pod_max_min_rate_alone (uint64_t capacity, uint64_t share_q32)
{
  return level_of ((PodU128) capacity << 32, share_q32);
}

/* Alone, a transfer is as fast as its tightest link allows. capacity / share < that of the tightest
 * so far is compared by cross products: a division per link would take most of the time. */
static uint64_t
rate_alone (const uint64_t *capacity, const PodPathEntry *path, uint32_t n_entries)
{
  const PodPathEntry *tightest = &path[0];

  for (uint32_t i = 1; i < n_entries; i++)
    if ((PodU128) capacity[path[i].link] * tightest->share_q32
        < (PodU128) capacity[tightest->link] * path[i].share_q32)
      tightest = &path[i];
  return level_of ((PodU128) capacity[tightest->link] << 32, tightest->share_q32);
}

void
pod_max_min_solve (PodMaxMin *solver, const uint64_t *capacity, const PodPathEntry *const *paths,
                   const uint32_t *n_entries, uint32_t n_transfers, uint64_t *out_rate)
{
  size_t n_entries_total = 0;

  for (uint32_t t = 0; t < n_transfers; t++)
    {
      g_assert (n_entries[t] > 0);
      n_entries_total += n_entries[t];
    }
  g_assert (n_entries_total < UINT32_MAX);
  if (n_transfers == 1)
    {
      out_rate[0] = rate_alone (capacity, paths[0], n_entries[0]);
      return;
    }
  solver->paths = paths;
  solver->n_entries = n_entries;
  solver->n_transfers = n_transfers;
  solver->rate = out_rate;
  memset (out_rate, 0, n_transfers * sizeof *out_rate);
  reserve (solver, n_entries_total, n_transfers);
  number_links (solver, capacity);
  list_users (solver);
  fill (solver);
}
