#include <string.h>

#include "base/union-find.h"
#include "exec/islands-private.h"

/* Who is on which island: ranks of one program that meet, and those whose transfers take the same links. */

/* The first running rank of each group of a communicator. Returns: (transfer full) UINT32_MAX where there is none. */
static uint32_t *
first_of_groups (const PodExec *exec, uint32_t comm)
{
  uint32_t *first = g_new (uint32_t, exec->fold->n_groups[comm] + 1);

  memset (first, 0xff, (exec->fold->n_groups[comm] + 1) * sizeof *first);
  for (uint32_t i = pod_exec_n_running (exec); i-- > 0;)
    {
      const uint32_t group = pod_fold_group_of (exec->fold, comm, pod_exec_running (exec, i));

      if (group != UINT32_MAX)
        first[group] = pod_exec_running (exec, i);
    }
  return first;
}

/* Whether ranks of different programs are in one group. */
static bool
is_between_classes (const PodExec *exec, uint32_t comm, const uint32_t *first)
{
  for (uint32_t i = 0; i < pod_exec_n_running (exec); i++)
    {
      const uint32_t rank = pod_exec_running (exec, i);
      const uint32_t group = pod_fold_group_of (exec->fold, comm, rank);

      if (group != UINT32_MAX && exec->fold->class_of[rank] != exec->fold->class_of[first[group]])
        return true;
    }
  return false;
}

static void
unite_groups (const PodExec *exec, uint32_t comm, const uint32_t *first, uint32_t *parent)
{
  for (uint32_t i = 0; i < pod_exec_n_running (exec); i++)
    {
      const uint32_t rank = pod_exec_running (exec, i);
      const uint32_t group = pod_fold_group_of (exec->fold, comm, rank);

      if (group != UINT32_MAX)
        pod_set_join (parent, rank, first[group]);
    }
}

/* Ranks whose transfers take the same links are on one island. @owner: a rank by link, UINT32_MAX none */
static void
unite_links (const PodExec *exec, uint32_t route, uint32_t *parent, uint32_t *owner)
{
  const uint32_t comm = exec->fold->comm_of_route[route];
  g_autofree uint32_t *first = first_of_groups (exec, comm);

  for (uint32_t g = 0; g < exec->fold->n_groups[comm]; g++)
    {
      const PodFoldedPath *path = pod_island_path (exec, route, g);

      for (uint32_t e = 0; first[g] != UINT32_MAX && e < path->n_entries; e++)
        {
          uint32_t *of_link = &owner[path->entries[e].link];

          if (*of_link == UINT32_MAX)
            *of_link = first[g];
          pod_set_join (parent, first[g], *of_link);
        }
    }
}

static void
drop_links (PodFoldedPath *const *by_route, const PodFold *fold, const bool *is_slack)
{
  for (uint32_t r = 0; r < fold->n_routes; r++)
    for (uint32_t g = 0; g < fold->n_groups[fold->comm_of_route[r]]; g++)
      {
        PodFoldedPath *path = &by_route[r][g];
        uint32_t n = 0;

        for (uint32_t e = 0; e < path->n_entries; e++)
          if (!is_slack[path->entries[e].link])
            path->entries[n++] = path->entries[e];
        path->n_entries = n;
      }
}

/* Links that are full only when others before or behind them are leave all paths: rates are what they were, and islands that have nothing else in
 * common are apart. */
static void
drop_slack (const PodExec *exec)
{
  const PodFold *fold = exec->fold;
  g_autofree bool *is_slack = g_new0 (bool, fold->n_links + 1);

  for (uint32_t l = 0; l < fold->n_links; l++)
    is_slack[l] = pod_topology_link_is_slack (exec->request->topology, fold->link[l]);
  drop_links (fold->paths, fold, is_slack);
  if (exec->twins != NULL)
    drop_links (pod_twins_paths (exec->twins), fold, is_slack);
}

/* Numbers the islands by their first ranks. */
static void
make_islands (PodIslands *islands, const PodExec *exec, uint32_t *parent)
{
  const uint32_t n_running = pod_exec_n_running (exec);

  islands->of_rank = g_new (uint32_t, exec->fold->n_ranks);
  memset (islands->of_rank, 0xff, exec->fold->n_ranks * sizeof *islands->of_rank);
  islands->islands = g_new0 (PodIsland, n_running);
  for (uint32_t i = 0; i < n_running; i++)
    {
      const uint32_t rank = pod_exec_running (exec, i);
      const uint32_t root = pod_set_root (parent, rank);
      PodIsland *island;

      if (root == rank)
        {
          islands->of_rank[rank] = islands->n;
          islands->islands[islands->n++].ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
        }
      islands->of_rank[rank] = islands->of_rank[root];
      island = &islands->islands[islands->of_rank[rank]];
      g_array_append_val (island->ranks, rank);
    }
}

static bool
is_worth_it (const PodIslands *islands)
{
  if (islands->n < 2 || islands->n > POD_MOST_ISLANDS)
    return false;
  for (guint i = 0; i < islands->n; i++)
    if (islands->islands[i].ranks->len <= POD_MOST_ISLAND_RANKS)
      return true;
  return false;
}

/* Blocks are kin whomever they send to: so nothing may be sent inside. */
static bool
are_sends_outward (const PodIslands *islands, const PodExec *exec)
{
  for (guint i = 0; i < exec->program->ops->len; i++)
    if (exec->ops[i].kind == POD_OP_COLLECTIVE && exec->ops[i].is_send && !islands->is_outward[exec->ops[i].comm])
      return false;
  return true;
}

/* Which islands a route's groups reach. */
static uint64_t *
find_touched (const PodIslands *islands, const PodExec *exec, uint32_t route, const uint32_t *owner)
{
  const uint32_t comm = exec->fold->comm_of_route[route];
  uint64_t *touched = g_new0 (uint64_t, exec->fold->n_groups[comm] + 1);

  for (uint32_t i = 0; i < pod_exec_n_running (exec); i++)
    {
      const uint32_t rank = pod_exec_running (exec, i);
      const uint32_t group = pod_fold_group_of (exec->fold, comm, rank);

      if (group != UINT32_MAX)
        touched[group] |= UINT64_C (1) << islands->of_rank[rank];
    }
  for (uint32_t g = 0; g < exec->fold->n_groups[comm]; g++)
    {
      const PodFoldedPath *path = pod_island_path (exec, route, g);

      for (uint32_t e = 0; touched[g] != 0 && e < path->n_entries; e++)
        if (owner[path->entries[e].link] != UINT32_MAX)
          touched[g] |= UINT64_C (1) << islands->of_rank[owner[path->entries[e].link]];
    }
  return touched;
}

static void
add_meetings (PodIslands *islands, const PodExec *exec, uint32_t comm)
{
  g_autofree uint32_t *first = first_of_groups (exec, comm);

  for (uint32_t i = 0; i < exec->n_channels[comm] * exec->fold->n_groups[comm]; i++)
    {
      const uint32_t m = exec->first_meeting[comm] + i;
      const uint32_t rank = first[i / exec->n_channels[comm]];

      if (rank != UINT32_MAX)
        g_array_append_val (islands->islands[islands->of_rank[rank]].meetings, m);
    }
}

static void
mark_outward_tasks (const PodIslands *islands, const PodExec *exec)
{
  for (guint i = 0; i < exec->graph->tasks->len; i++)
    {
      PodTask *task = &g_array_index (exec->graph->tasks, PodTask, i);

      task->is_outward = exec->ops[task->op].kind == POD_OP_COLLECTIVE && islands->is_outward[exec->ops[task->op].comm];
    }
  pod_task_graph_list_outward (exec->graph);
}

static void
prepare (PodIslands *islands, PodExec *exec, const uint32_t *owner)
{
  for (guint i = 0; i < islands->n; i++)
    {
      PodIsland *island = &islands->islands[i];

      island->meetings = g_array_new (FALSE, FALSE, sizeof (uint32_t));
      island->last_step = g_new0 (uint32_t, island->ranks->len);
      island->last_sums = g_array_new (FALSE, FALSE, sizeof (int64_t));
      island->step = g_new0 (uint32_t, island->ranks->len);
      island->path = g_array_new (FALSE, FALSE, sizeof (PodIslandLeg));
      island->limits = g_array_new (FALSE, FALSE, sizeof (PodLaneLimit));
    }
  for (uint32_t k = 0; k < exec->fold->n_comms; k++)
    if (!islands->is_outward[k])
      add_meetings (islands, exec, k);
  islands->n_routes = exec->fold->n_routes;
  islands->touched = g_new0 (uint64_t *, islands->n_routes + 1);
  for (uint32_t r = 0; r < exec->fold->n_routes; r++)
    if (islands->is_outward[exec->fold->comm_of_route[r]])
      islands->touched[r] = find_touched (islands, exec, r, owner);
  pod_islands_find_kinds (islands, exec);
  mark_outward_tasks (islands, exec);
  pod_runner_keep_due (exec->runner);
  pod_account_watch (exec->account);
}

PodIslands *
pod_islands_new (PodExec *exec)
{
  const PodFold *fold = exec->fold;
  g_autofree uint32_t *parent = g_new (uint32_t, fold->n_ranks);
  g_autofree uint32_t *owner = g_new (uint32_t, fold->n_links + 1);
  PodIslands *islands = g_new0 (PodIslands, 1);

  memset (owner, 0xff, (fold->n_links + 1) * sizeof *owner);
  for (uint32_t i = 0; i < fold->n_ranks; i++)
    parent[i] = i;
  islands->is_checked = g_getenv ("POD_CHECK") != NULL;
  islands->words = g_array_new (FALSE, FALSE, sizeof (int64_t));
  islands->slabs = g_ptr_array_new_with_free_func (g_free);
  islands->is_outward = g_new0 (bool, fold->n_comms + 1);
  for (uint32_t k = 0; k < fold->n_comms; k++)
    {
      g_autofree uint32_t *first = first_of_groups (exec, k);

      islands->is_outward[k] = is_between_classes (exec, k, first);
      if (!islands->is_outward[k])
        unite_groups (exec, k, first, parent);
    }
  drop_slack (exec);
  for (uint32_t r = 0; r < fold->n_routes; r++)
    if (!islands->is_outward[fold->comm_of_route[r]])
      unite_links (exec, r, parent, owner);
  make_islands (islands, exec, parent);
  if (is_worth_it (islands) && are_sends_outward (islands, exec))
    {
      prepare (islands, exec, owner);
      return islands;
    }
  pod_islands_free (islands);
  return NULL;
}

void
pod_islands_free (PodIslands *islands)
{
  if (islands == NULL)
    return;
  for (guint i = 0; i < islands->n; i++)
    {
      PodIsland *island = &islands->islands[i];

      g_array_unref (island->ranks);
      g_clear_pointer (&island->meetings, g_array_unref);
      g_clear_pointer (&island->last_sums, g_array_unref);
      g_clear_pointer (&island->limits, g_array_unref);
      g_clear_pointer (&island->path, g_array_unref);
      g_free (island->last_step);
      g_free (island->step);
    }
  g_free (islands->islands);
  g_free (islands->of_rank);
  g_free (islands->is_outward);
  for (uint32_t r = 0; islands->touched != NULL && r < islands->n_routes; r++)
    g_free (islands->touched[r]);
  g_free (islands->touched);
  g_array_unref (islands->words);
  g_clear_pointer (&islands->kinds, g_ptr_array_unref);
  g_ptr_array_unref (islands->slabs);
  g_free (islands);
}
