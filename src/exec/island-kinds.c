#include <string.h>

#include "exec/islands-private.h"

/* Stages in the middle of a pipeline do the same on the same machine. Islands are of one kind where their ranks, one by one, are in the same
 * meetings, and what these move takes as long: links of the one can be put for those of the other, with their rates and loads. What differs in
 * their programs is said by places. What one was seen to come to then is known of the other. */

typedef struct
{
  const PodExec *exec;
  const PodIsland *a;
  const PodIsland *b;
  uint32_t *link_of; /* by link of a: that of b, UINT32_MAX none so far */
  uint32_t *from;    /* and back */
} Pair;

static uint32_t
comm_of_meeting (const PodExec *exec, uint32_t m)
{
  uint32_t comm = 0;

  while (exec->first_meeting[comm + 1] <= m)
    comm++;
  return comm;
}

static bool
are_like_meetings (const Pair *pair, guint i, uint32_t comm)
{
  const PodExec *exec = pair->exec;
  const uint32_t m = g_array_index (pair->a->meetings, uint32_t, i);
  const uint32_t n = g_array_index (pair->b->meetings, uint32_t, i);
  uint32_t g, h;

  if (n < exec->first_meeting[comm] || n >= exec->first_meeting[comm + 1] || (m - exec->first_meeting[comm]) % exec->n_channels[comm] != (n - exec->first_meeting[comm]) % exec->n_channels[comm])
    return false;
  g = pod_exec_meeting_group (exec, comm, m);
  h = pod_exec_meeting_group (exec, comm, n);
  if (pod_fold_n_expected (exec->fold, comm, g) != pod_fold_n_expected (exec->fold, comm, h))
    return false;
  for (guint r = 0; r < pair->a->ranks->len; r++)
    if ((pod_fold_group_of (exec->fold, comm, pod_island_rank (pair->a, r)) == g) != (pod_fold_group_of (exec->fold, comm, pod_island_rank (pair->b, r)) == h))
      return false;
  return true;
}

/* Puts @other for @link. Returns whether that is what was put for it before, if anything was */
static bool
pair_links (uint32_t *of, uint32_t link, uint32_t other)
{
  if (of[link] == UINT32_MAX)
    of[link] = other;
  return of[link] == other;
}

static bool
are_like_paths (const Pair *pair, uint32_t route, uint32_t g, uint32_t h)
{
  const PodExec *exec = pair->exec;
  const PodRoute *of = &g_array_index (exec->routes->routes, PodRoute, route);
  const PodFoldedPath *x = pod_island_path (exec, route, g);
  const PodFoldedPath *y = pod_island_path (exec, route, h);
  const PodPlan *p = pod_route_plan (of, x->group);
  const PodPlan *q = pod_route_plan (of, y->group);

  if (x->n_entries != y->n_entries || x->analytic_s_per_byte < y->analytic_s_per_byte || x->analytic_s_per_byte > y->analytic_s_per_byte)
    return false;
  if (p != q && (p->latency_ps != q->latency_ps || p->busiest_ratio < q->busiest_ratio || p->busiest_ratio > q->busiest_ratio || p->wire_ratio < q->wire_ratio || p->wire_ratio > q->wire_ratio))
    return false;
  for (uint32_t e = 0; e < x->n_entries; e++)
    {
      const PodPathEntry *u = &x->entries[e];
      const PodPathEntry *v = &y->entries[e];

      if (u->share_q32 != v->share_q32 || exec->fold->capacity[u->link] < exec->fold->capacity[v->link] || exec->fold->capacity[u->link] > exec->fold->capacity[v->link]
          || !pair_links (pair->link_of, u->link, v->link) || !pair_links (pair->from, v->link, u->link))
        return false;
    }
  return true;
}

static bool
are_alike (const Pair *pair)
{
  const PodExec *exec = pair->exec;

  if (pair->a->ranks->len != pair->b->ranks->len || pair->a->meetings->len != pair->b->meetings->len)
    return false;
  memset (pair->link_of, 0xff, (exec->fold->n_links + 1) * sizeof *pair->link_of);
  memset (pair->from, 0xff, (exec->fold->n_links + 1) * sizeof *pair->from);
  for (guint i = 0; i < pair->a->meetings->len; i++)
    {
      const uint32_t m = g_array_index (pair->a->meetings, uint32_t, i);
      const uint32_t comm = comm_of_meeting (exec, m);

      if (!are_like_meetings (pair, i, comm))
        return false;
      for (uint32_t r = 0; r < exec->fold->n_routes; r++)
        if (exec->fold->comm_of_route[r] == comm && !are_like_paths (pair, r, pod_exec_meeting_group (exec, comm, m), pod_exec_meeting_group (exec, comm, g_array_index (pair->b->meetings, uint32_t, i))))
          return false;
    }
  return true;
}

void
pod_islands_find_kinds (PodIslands *islands, const PodExec *exec)
{
  Pair pair = { .exec = exec, .link_of = g_new (uint32_t, exec->fold->n_links + 1), .from = g_new (uint32_t, exec->fold->n_links + 1) };

  islands->kinds = g_ptr_array_new_with_free_func ((GDestroyNotify) g_hash_table_unref);
  for (guint i = 0; i < islands->n; i++)
    {
      PodIsland *island = &islands->islands[i];

      pair.b = island;
      for (guint k = 0; k < i && island->states == NULL; k++)
        {
          pair.a = &islands->islands[k];
          if (are_alike (&pair))
            island->states = pair.a->states;
        }
      if (island->states != NULL)
        continue;
      island->states = pod_island_states_new ();
      g_ptr_array_add (islands->kinds, island->states);
    }
  g_free (pair.link_of);
  g_free (pair.from);
}
