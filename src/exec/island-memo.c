#include <string.h>

#include "exec/islands-private.h"

/* What is known of islands: the states that they were seen in, and what came between. */

enum
{
  SLAB_BYTES = 1 << 16,
  MOST_SLABS = 512,
};

static guint
hash_of (gconstpointer data)
{
  return ((const PodIslandState *) data)->hash;
}

static gboolean
are_equal (gconstpointer a, gconstpointer b)
{
  const PodIslandState *x = a;
  const PodIslandState *y = b;

  return x->n_words == y->n_words && memcmp (x->words, y->words, x->n_words * sizeof *x->words) == 0;
}

GHashTable *
pod_island_states_new (void)
{
  return g_hash_table_new (hash_of, are_equal);
}

/* Room that is there until the end. */
static void *
take_room (PodIslands *islands, size_t n_bytes)
{
  n_bytes = (n_bytes + 7) & ~(size_t) 7;
  if (islands->n_left < n_bytes)
    {
      islands->n_left = MAX (SLAB_BYTES, n_bytes);
      g_ptr_array_add (islands->slabs, g_malloc (islands->n_left));
    }
  islands->n_left -= n_bytes;
  return (char *) g_ptr_array_index (islands->slabs, islands->slabs->len - 1) + islands->n_left;
}

static guint
hash_words (const int64_t *words, guint n)
{
  uint64_t hash = n;

  for (guint i = 0; i < n; i++)
    hash = (hash ^ (uint64_t) words[i]) * UINT64_C (0x9e3779b97f4a7c15) + (hash >> 29);
  return (guint) (hash ^ hash >> 32);
}

PodIslandState *
pod_islands_intern (PodIslands *islands, PodIsland *island)
{
  PodIslandState key = { .n_words = islands->words->len, .words = (int64_t *) islands->words->data };
  PodIslandState *state;

  key.hash = hash_words (key.words, key.n_words);
  state = g_hash_table_lookup (island->states, &key);
  if (state != NULL || islands->slabs->len > MOST_SLABS)
    return state;
  state = take_room (islands, sizeof *state);
  *state = key;
  state->words = take_room (islands, key.n_words * sizeof *key.words);
  memcpy (state->words, key.words, key.n_words * sizeof *key.words);
  g_hash_table_add (island->states, state);
  return state;
}

bool
pod_island_fits (const PodExec *exec, const PodIsland *island, const PodIslandState *state, const uint32_t *step)
{
  for (guint i = 0; i < island->ranks->len; i++)
    if (!pod_runner_fits (exec->runner, pod_island_rank (island, i), step[i], pod_island_place (exec, state, i)))
      return false;
  return true;
}

void
pod_island_add_steps (const PodIsland *island, const PodIslandEdge *edge, uint32_t n, uint32_t *step)
{
  for (guint i = 0; edge->has_moved && i < island->ranks->len; i++)
    step[i] += n * edge->n_steps[i];
}

/* Returns: (transfer none) one without outcome */
static PodIslandEdge *
new_edge (PodIslands *islands, const PodExec *exec, const PodIsland *island, PodIslandState *to, int64_t ps)
{
  const size_t n_outcome = island->ranks->len * pod_account_n_outcome (exec->account);
  PodIslandEdge *edge = take_room (islands, sizeof *edge);

  *edge = (PodIslandEdge){ .to = to, .ps = ps };
  edge->n_steps = take_room (islands, island->ranks->len * sizeof *edge->n_steps);
  edge->outcome = take_room (islands, n_outcome * sizeof *edge->outcome);
  memset (edge->n_steps, 0, island->ranks->len * sizeof *edge->n_steps);
  return edge;
}

static PodIslandEdge *
add_edge (PodIslands *islands, const PodExec *exec, const PodIsland *island, PodIslandState *state, int64_t now_ps)
{
  const guint n_sums = island->last_sums->len / island->ranks->len;
  const guint n_outcome = pod_account_n_outcome (exec->account);
  PodIslandEdge *edge = new_edge (islands, exec, island, state, now_ps - island->last_ps);

  for (guint i = 0; i < island->ranks->len; i++)
    {
      edge->n_steps[i] = pod_runner_step (exec->runner, pod_island_rank (island, i)) - island->last_step[i];
      edge->has_moved |= edge->n_steps[i] > 0;
      pod_account_end_stretch (exec->account, pod_island_rank (island, i), &g_array_index (island->last_sums, int64_t, (size_t) i * n_sums), island->last_ps, edge->outcome + (size_t) i * n_outcome);
    }
  edge->other = island->last->edges;
  return edge;
}

/* Legs of a path from @from on are joined, to be taken at once from then on: where they do not end a step, if no other joined edge can be. */
static void
join_edges (PodIslands *islands, const PodExec *exec, const PodIsland *island, PodIslandState *from, guint first, guint end)
{
  const guint n_outcome = pod_account_n_outcome (exec->account);
  PodIslandEdge *stride = new_edge (islands, exec, island, g_array_index (island->path, PodIslandLeg, end - 1).edge->to, 0);
  PodIslandEdge **link = &from->strides;
  PodIslandEdge **parts;

  stride->n_parts = end - first;
  stride->parts = parts = take_room (islands, stride->n_parts * sizeof *stride->parts);
  for (guint k = 0; k < stride->n_parts; k++)
    parts[k] = g_array_index (island->path, PodIslandLeg, first + k).edge;
  memcpy (stride->outcome, parts[0]->outcome, island->ranks->len * n_outcome * sizeof *stride->outcome);
  for (guint k = 0; k < stride->n_parts; k++)
    {
      for (guint i = 0; i < island->ranks->len; i++)
        {
          if (k > 0)
            pod_account_join_stretch (exec->account, stride->outcome + (size_t) i * n_outcome, parts[k]->outcome + (size_t) i * n_outcome, stride->ps);
          stride->n_steps[i] += parts[k]->n_steps[i];
        }
      stride->ps += parts[k]->ps;
      stride->has_moved |= parts[k]->has_moved;
    }
  if (!stride->has_moved)
    while (*link != NULL)
      link = &(*link)->other;
  stride->other = *link;
  *link = stride;
}

static bool
has_stride (const PodIslandState *state, const PodIslandState *to)
{
  for (const PodIslandEdge *stride = state->strides; stride != NULL; stride = stride->other)
    if (stride->to == to)
      return true;
  return false;
}

void
pod_islands_join_path (PodIslands *islands, const PodExec *exec, const PodIsland *island, PodIslandWalk *walk, bool is_end)
{
  const guint end = island->path->len;
  PodIslandEdge *edge = g_array_index (island->path, PodIslandLeg, end - 1).edge;

  if (!edge->has_moved && !is_end)
    return;
  if (edge->n_parts == 0 && end > walk->first + 1 && !has_stride (walk->from, edge->to))
    join_edges (islands, exec, island, walk->from, walk->first, end);
  *walk = (PodIslandWalk){ edge->to, end };
}

/* Whether the ranks could be behind an edge from the state seen last: what was seen to come otherwise than that is wrong. */
static bool
fits_behind (const PodExec *exec, const PodIsland *island, const PodIslandEdge *edge)
{
  uint32_t then[POD_MOST_ISLAND_RANKS];

  memcpy (then, island->last_step, island->ranks->len * sizeof *then);
  pod_island_add_steps (island, edge, 1, then);
  return pod_island_fits (exec, island, edge->to, then);
}

void
pod_islands_learn (PodIslands *islands, const PodExec *exec, PodIsland *island, PodIslandState *state, int64_t now_ps)
{
  for (guint i = 0; i < island->ranks->len; i++)
    if (pod_runner_turns_outward (exec->runner, pod_island_place (exec, island->last, i), pod_island_place (exec, state, i)))
      return;
  for (const PodIslandEdge *edge = island->last->edges; edge != NULL; edge = edge->other)
    {
      if (edge->to == state && edge->ps == now_ps - island->last_ps)
        return;
      g_assert (!islands->is_checked || !fits_behind (exec, island, edge));
    }
  island->last->edges = add_edge (islands, exec, island, state, now_ps);
}
