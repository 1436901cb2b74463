#include "search/frontier.h"

struct PodFrontier
{
  bool is_by_memory;
  GArray *entries; /* PodFrontierEntry */
  GArray *nearer;  /* PodRunBound */
  GArray *heap;    /* guint: entries that are not taken, each before the two at 2i + 1 and 2i + 2 */
};

PodFrontier *
pod_frontier_new (bool is_by_memory)
{
  PodFrontier *frontier = g_new (PodFrontier, 1);

  frontier->is_by_memory = is_by_memory;
  frontier->entries = g_array_new (FALSE, FALSE, sizeof (PodFrontierEntry));
  frontier->nearer = g_array_new (FALSE, FALSE, sizeof (PodRunBound));
  frontier->heap = g_array_new (FALSE, FALSE, sizeof (guint));
  return frontier;
}

void
pod_frontier_free (PodFrontier *frontier)
{
  if (frontier == NULL)
    return;
  g_array_unref (frontier->entries);
  g_array_unref (frontier->nearer);
  g_array_unref (frontier->heap);
  g_free (frontier);
}

const PodFrontierEntry *
pod_frontier_at (const PodFrontier *frontier, guint index)
{
  return &g_array_index (frontier->entries, PodFrontierEntry, index);
}

const PodRunBound *
pod_frontier_bound (const PodFrontier *frontier, const PodFrontierEntry *entry)
{
  return pod_frontier_nth_bound (frontier, entry, entry->n_nearer);
}

const PodRunBound *
pod_frontier_nth_bound (const PodFrontier *frontier, const PodFrontierEntry *entry, guint n)
{
  return n > 0 ? &g_array_index (frontier->nearer, PodRunBound, entry->near_index[n - 1]) : &entry->bound;
}

static bool
is_before (const PodFrontier *frontier, guint a, guint b)
{
  const PodFrontierEntry *x = pod_frontier_at (frontier, a);
  const PodFrontierEntry *y = pod_frontier_at (frontier, b);
  const PodRunBound *p = pod_frontier_bound (frontier, x);
  const PodRunBound *q = pod_frontier_bound (frontier, y);

  if (frontier->is_by_memory && p->bytes != q->bytes)
    return p->bytes < q->bytes;
  if (p->time_ps != q->time_ps)
    return p->time_ps < q->time_ps;
  return x->candidate < y->candidate;
}

static void
push (PodFrontier *frontier, guint index)
{
  guint at = frontier->heap->len;
  guint *heap;

  g_array_append_val (frontier->heap, index);
  heap = (guint *) frontier->heap->data;
  for (; at > 0 && is_before (frontier, index, heap[(at - 1) / 2]); at = (at - 1) / 2)
    heap[at] = heap[(at - 1) / 2];
  heap[at] = index;
}

guint
pod_frontier_take (PodFrontier *frontier)
{
  guint *heap = (guint *) frontier->heap->data;
  const guint first = heap[0];
  const guint n = frontier->heap->len - 1;
  const guint last = heap[n];
  guint at = 0;

  for (guint child = 1; child < n; child = 2 * at + 1)
    {
      child += child + 1 < n && is_before (frontier, heap[child + 1], heap[child]);
      if (!is_before (frontier, heap[child], last))
        break;
      heap[at] = heap[child];
      at = child;
    }
  heap[at] = last;
  g_array_set_size (frontier->heap, n);
  return first;
}

void
pod_frontier_add (PodFrontier *frontier, uint64_t candidate, uint64_t n_members, const PodRunBound *bound)
{
  const PodFrontierEntry entry = { .candidate = candidate, .bound = *bound, .n_members = (uint32_t) n_members };

  g_array_append_val (frontier->entries, entry);
  push (frontier, frontier->entries->len - 1);
}

void
pod_frontier_put_back (PodFrontier *frontier, guint index, const PodRunBound *nearer)
{
  PodFrontierEntry *entry = &g_array_index (frontier->entries, PodFrontierEntry, index);
  const PodRunBound known = *pod_frontier_bound (frontier, entry);
  const PodRunBound bound = { .time_ps = MAX (nearer->time_ps, known.time_ps),
                              .bytes = entry->n_members > 1 ? known.bytes : MAX (nearer->bytes, known.bytes) }; /* others may hold less */

  g_assert (entry->n_nearer < POD_FRONTIER_NEARER);
  entry->near_index[entry->n_nearer++] = frontier->nearer->len;
  g_array_append_val (frontier->nearer, bound);
  push (frontier, index);
}

void
pod_frontier_expand (PodFrontier *frontier, guint index, const GArray *members)
{
  PodFrontierEntry *entry = &g_array_index (frontier->entries, PodFrontierEntry, index);
  const PodRunBound bound = *pod_frontier_bound (frontier, entry);

  entry->n_members = 0;
  for (guint i = 0; i < members->len; i++)
    pod_frontier_add (frontier, g_array_index (members, uint64_t, i), 1, &bound);
}

guint
pod_frontier_n (const PodFrontier *frontier)
{
  return frontier->entries->len;
}

guint
pod_frontier_n_left (const PodFrontier *frontier)
{
  return frontier->heap->len;
}

const PodFrontierEntry *
pod_frontier_first (const PodFrontier *frontier)
{
  return frontier->heap->len > 0 ? pod_frontier_at (frontier, g_array_index (frontier->heap, guint, 0)) : NULL;
}
