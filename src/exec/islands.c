#include <string.h>

#include "exec/islands-private.h"

/* The ranks of a pipeline stage meet those of others in few of their events: one in a hundred and fifty. Ranks that meet only each other
 * otherwise are an *island*. What an island comes to depends on nothing but its state until somebody from outside touches it: a meeting of both
 * starts, or a transfer of others along links that its own take. So whenever the first of its ranks has ended a kernel, its state is written
 * down (island-state.c), all times counted from now and its program's steps from where each rank stands; states that it was in before are
 * known, and so is which state came next, when, and what that added to its accounts. An island in such a state is put to sleep: nothing of it
 * is on the queue or on the network. It is woken when what is known ends, or before a stream would begin something that reaches outside, or when
 * it is touched: then it is put where it last was known to be by that time, and the clock goes back to there for the few events that lie between.
 * All is as it would have been, to the picosecond. Timelines would not see it: such runs are simulated whole. */

/* From here on it is seen what comes. */
static void
set_last (const PodExec *exec, PodIsland *island, PodIslandState *state, int64_t now_ps)
{
  island->last = state;
  island->last_ps = now_ps;
  g_array_set_size (island->last_sums, 0);
  for (guint i = 0; state != NULL && i < island->ranks->len; i++)
    {
      island->last_step[i] = pod_runner_step (exec->runner, pod_island_rank (island, i));
      pod_account_begin_stretch (exec->account, pod_island_rank (island, i), now_ps, island->last_sums);
    }
}

/* ---- sleep ---- */

/* Whether no stream of another program would begin something that far. */
static bool
is_within (const PodExec *exec, const PodIsland *island, const PodIslandState *state, const uint32_t *step)
{
  for (guint l = 0; l < island->limits->len; l++)
    {
      const PodLaneLimit *limit = &g_array_index (island->limits, PodLaneLimit, l);
      const uint32_t i = pod_island_index (island, limit->rank);

      if (!pod_runner_is_within (exec->runner, limit, step[i], pod_island_place (exec, state, i)))
        return false;
    }
  return true;
}

/* Whether nothing that ranks have come to in @state waits for somebody from outside: nor has anything on the way there, which was of its steps. */
static bool
is_fed (const PodExec *exec, const PodIsland *island, const PodIslandState *state, const uint32_t *step)
{
  for (guint i = 0; i < island->ranks->len; i++)
    if (!pod_runner_is_fed (exec->runner, pod_island_rank (island, i), step[i], pod_island_place (exec, state, i)))
      return false;
  return true;
}

/* Streams that get far ahead must not begin what they come to there: it is no part of what is known. */
static bool
add_limits (const PodExec *exec, const PodIsland *island, const PodIslandState *state, const PodIslandState *to, const uint32_t *then)
{
  for (guint i = 0; i < island->ranks->len; i++)
    if (!pod_runner_list_new_limits (exec->runner, pod_island_rank (island, i), pod_island_place (exec, state, i), then[i], pod_island_place (exec, to, i), island->limits))
      return false;
  return true;
}

/* Whether an edge from @state can be gone along; @then: (out) the steps behind it */
static bool
can_go (const PodExec *exec, const PodIsland *island, const PodIslandState *state, const PodIslandEdge *edge, const uint32_t *step, uint32_t *then)
{
  const guint n_limits = island->limits->len;

  memcpy (then, step, island->ranks->len * sizeof *step);
  pod_island_add_steps (island, edge, 1, then);
  if ((!edge->has_moved || pod_island_fits (exec, island, edge->to, then)) && is_within (exec, island, edge->to, then)
      && is_fed (exec, island, edge->to, then) && add_limits (exec, island, state, edge->to, then))
    return true;
  g_array_set_size (island->limits, n_limits);
  return false;
}

/* Returns: (nullable) what comes behind @state; @step goes with it */
static PodIslandEdge *
find_next (const PodExec *exec, const PodIsland *island, const PodIslandState *state, uint32_t *step)
{
  uint32_t then[POD_MOST_ISLAND_RANKS];

  for (PodIslandEdge *stride = state->strides; stride != NULL; stride = stride->other)
    if (can_go (exec, island, state, stride, step, then))
      {
        memcpy (step, then, island->ranks->len * sizeof *step);
        return stride;
      }
  for (PodIslandEdge *edge = state->edges; edge != NULL; edge = edge->other)
    if (can_go (exec, island, state, edge, step, then))
      {
        memcpy (step, then, island->ranks->len * sizeof *step);
        return edge;
      }
  return NULL;
}

/* How often more a stride that leads back to its state can be taken, the ranks being at @step. */
static uint32_t
n_more (const PodExec *exec, const PodIsland *island, const PodIslandState *state, const PodIslandEdge *edge, const uint32_t *step)
{
  uint32_t n = UINT32_MAX;
  uint32_t then[POD_MOST_ISLAND_RANKS];

  if (edge->n_parts == 0 || edge->to != state)
    return 0;
  for (guint i = 0; i < island->ranks->len && n > 0; i++)
    n = edge->n_steps[i] == 1 ? pod_runner_n_alike (exec->runner, pod_island_rank (island, i), step[i], pod_island_place (exec, state, i), n) : 0;
  for (; n > 0; n /= 2)
    {
      memcpy (then, step, island->ranks->len * sizeof *step);
      pod_island_add_steps (island, edge, n, then);
      if (is_within (exec, island, state, then))
        break;
    }
  return n;
}

/* Puts the island to sleep in @state, where it is now, when it is known what comes. */
static void
try_sleep (PodIslands *islands, PodIsland *island, PodExec *exec, guint index, PodIslandState *state, int64_t now_ps)
{
  uint32_t step[POD_MOST_ISLAND_RANKS];
  PodIslandState *until = state;
  PodIslandWalk walk = { .from = state };
  int64_t ps = 0;

  if (state->edges == NULL)
    return;
  g_array_set_size (island->limits, 0);
  for (guint i = 0; i < island->ranks->len; i++)
    {
      island->step[i] = pod_runner_step (exec->runner, pod_island_rank (island, i));
      pod_runner_list_limits (exec->runner, pod_island_rank (island, i), island->limits);
    }
  memcpy (step, island->step, island->ranks->len * sizeof *step);
  g_array_set_size (island->path, 0);
  for (PodIslandEdge *edge = find_next (exec, island, state, step); edge != NULL; edge = find_next (exec, island, until, step))
    {
      const PodIslandLeg leg = { edge, 1 + n_more (exec, island, until, edge, step) };

      pod_island_add_steps (island, edge, leg.n - 1, step);
      g_array_append_val (island->path, leg);
      pod_islands_join_path (islands, exec, island, &walk, false);
      ps += leg.n * edge->ps;
      until = edge->to;
    }
  if (until == state)
    return;
  if (walk.first < island->path->len)
    pod_islands_join_path (islands, exec, island, &walk, true);
  island->from = state;
  island->from_ps = now_ps;
  pod_island_pause (exec, island);
  pod_event_queue_push (exec->queue, now_ps + ps, 1, POD_EXEC_WAKE, index, ++island->n_sleeps);
}

void
pod_islands_look (PodIslands *islands, PodExec *exec, const PodEvent *event)
{
  const uint32_t index = islands->of_rank[event->index];
  PodIsland *island = &islands->islands[index];
  const int64_t now_ps = pod_event_queue_now (exec->queue);
  PodIslandState *state;

  if (pod_island_rank (island, 0) != event->index || (event->tag & 0xff) != 0 || island->n_touching > 0 || island->from != NULL
      || island->ranks->len > POD_MOST_ISLAND_RANKS || pod_runner_n_ended (exec->runner, event->index) == island->n_seen)
    return;
  island->n_seen = pod_runner_n_ended (exec->runner, event->index);
  state = pod_island_save (exec, island, islands->words) ? pod_islands_intern (islands, island) : NULL;
  if (island->last != NULL && state != NULL)
    pod_islands_learn (islands, exec, island, state, now_ps);
  set_last (exec, island, state, now_ps);
  if (state != NULL)
    try_sleep (islands, island, exec, index, state, now_ps);
}

/* What lies between now, where the island was put, and then. */
static void
replay (PodExec *exec, int64_t then_ps)
{
  PodEvent event;

  while (pod_event_queue_pop_before (exec->queue, then_ps, &event))
    pod_exec_handle (exec, &event);
}

/* An edge as often as it ends by @now_ps, @n times at most. Returns how often */
static uint32_t
go_along (const PodExec *exec, PodIsland *island, const PodIslandEdge *edge, uint32_t n, int64_t now_ps, PodIslandState **state, int64_t *at_ps)
{
  const guint n_outcome = pod_account_n_outcome (exec->account);

  if (edge->ps > 0)
    n = (uint32_t) MIN (n, (now_ps - *at_ps) / edge->ps);
  if (n == 0)
    return 0;
  for (guint i = 0; i < island->ranks->len; i++)
    pod_account_add_stretches (exec->account, pod_island_rank (island, i), edge->outcome + (size_t) i * n_outcome, *at_ps, edge->ps, n);
  pod_island_add_steps (island, edge, n, island->step);
  *at_ps += n * edge->ps;
  *state = edge->to;
  return n;
}

static void
wake (PodIsland *island, PodExec *exec, int64_t now_ps)
{
  PodIslandState *state = island->from;
  int64_t at_ps = island->from_ps;

  for (guint i = 0; i < island->path->len; i++)
    {
      const PodIslandLeg *leg = &g_array_index (island->path, PodIslandLeg, i);

      if (go_along (exec, island, leg->edge, leg->n, now_ps, &state, &at_ps) == leg->n)
        continue;
      for (guint k = 0; k < leg->edge->n_parts && go_along (exec, island, leg->edge->parts[k], 1, now_ps, &state, &at_ps) > 0;)
        k++;
      break;
    }
  island->from = NULL;
  island->n_sleeps++;
  pod_event_queue_set_now (exec->queue, at_ps);
  pod_network_begin_replay (exec->network);
  pod_island_load (exec, island, state, island->step);
  replay (exec, now_ps);
  pod_event_queue_set_now (exec->queue, now_ps);
  pod_network_end_replay (exec->network);
  island->n_seen = pod_runner_n_ended (exec->runner, pod_island_rank (island, 0));
  set_last (exec, island, at_ps == now_ps ? state : NULL, now_ps);
}

void
pod_islands_wake (PodIslands *islands, PodExec *exec, const PodEvent *event)
{
  PodIsland *island = islands != NULL ? &islands->islands[event->index] : NULL;

  if (island != NULL && island->from != NULL && island->n_sleeps == event->tag)
    wake (island, exec, event->at_ps);
}

void
pod_islands_wake_all (PodIslands *islands, PodExec *exec)
{
  for (guint i = 0; i < islands->n; i++)
    if (islands->islands[i].from != NULL)
      wake (&islands->islands[i], exec, pod_event_queue_now (exec->queue));
}

/* ---- touch ---- */

void
pod_islands_touch (PodIslands *islands, PodExec *exec, uint32_t meeting, uint32_t route)
{
  if (islands->touched[route] == NULL)
    return;
  for (uint64_t left = islands->touched[route][exec->meetings[meeting]->group]; left != 0; left &= left - 1)
    {
      PodIsland *island = &islands->islands[__builtin_ctzll (left)];

      if (island->from != NULL)
        wake (island, exec, pod_event_queue_now (exec->queue));
      island->last = NULL;
      island->n_touching++;
    }
}

void
pod_islands_let_go (PodIslands *islands, const PodExec *exec, uint32_t meeting, uint32_t route)
{
  if (islands->touched[route] == NULL)
    return;
  for (uint64_t left = islands->touched[route][exec->meetings[meeting]->group]; left != 0; left &= left - 1)
    islands->islands[__builtin_ctzll (left)].n_touching--;
}

/* ---- the steady state ---- */

bool
pod_islands_is_asleep (const PodIslands *islands, uint32_t rank)
{
  return islands->islands[islands->of_rank[rank]].from != NULL;
}

void
pod_islands_save (const PodIslands *islands, int64_t now_ps, GArray *out)
{
  for (guint i = 0; i < islands->n; i++)
    {
      const PodIsland *island = &islands->islands[i];
      const int64_t state[] = { island->n_touching, (int64_t) (intptr_t) island->from, island->from != NULL ? island->path->len : 0, island->from != NULL ? now_ps - island->from_ps : 0 };

      g_array_append_vals (out, state, G_N_ELEMENTS (state));
    }
}

uint32_t
pod_islands_reach (const PodIslands *islands, uint32_t rank)
{
  const PodIsland *island = &islands->islands[islands->of_rank[rank]];
  const uint32_t i = pod_island_index (island, rank);
  uint32_t step = island->step[i];

  if (island->from == NULL)
    return 0;
  for (guint e = 0; e < island->path->len; e++)
    {
      const PodIslandLeg *leg = &g_array_index (island->path, PodIslandLeg, e);

      step += leg->n * leg->edge->n_steps[i];
    }
  return step + POD_PLACE_AHEAD;
}

void
pod_islands_skip (PodIslands *islands, const PodExec *exec, int64_t ps)
{
  for (guint i = 0; i < islands->n; i++)
    {
      PodIsland *island = &islands->islands[i];

      island->from_ps += ps;
      island->last = NULL;
      for (guint k = 0; k < island->ranks->len; k++)
        island->step[k] = pod_runner_step (exec->runner, pod_island_rank (island, k));
    }
}
