#include <string.h>

#include "exec/islands-private.h"

/* A state is a row of numbers: how many meetings, transfers and events there are, each rank's place in its program, then what its
 * contention and account hang on, who has come to which meeting, what moves, and what is due. */

enum
{
  N_OF_KEPT = sizeof (PodKeptTransfer) / sizeof (int64_t),
  MOST_TRANSFERS = 64,
  MOST_EVENTS = 512,
};

/* Something that is due: the end of a rank's task, or of a transfer. */
typedef struct
{
  int64_t at_ps;
  uint64_t order;
  int64_t what; /* which rank << 8 | lane, or TRANSFER + place among the transfers */
} Due;

#define TRANSFER (INT64_C (1) << 48)

typedef struct
{
  PodKeptTransfer kept;
  PodTransferOrder order;
} Moving;

typedef struct
{
  Due dues[MOST_EVENTS];
  guint n_dues;
  Moving moving[MOST_TRANSFERS];
  guint n_moving;
} Scratch;

static bool
list_tasks (const PodExec *exec, const PodIsland *island, guint index, Scratch *scratch)
{
  for (unsigned lane = 0; lane < exec->graph->n_lanes; lane++)
    {
      Due due = { .what = (int64_t) index << 8 | lane };

      if (!pod_runner_due (exec->runner, pod_island_rank (island, index), lane, &due.at_ps, &due.order))
        continue;
      if (scratch->n_dues == MOST_EVENTS)
        return false;
      scratch->dues[scratch->n_dues++] = due;
    }
  return true;
}

static bool
is_before (const Due *a, const Due *b)
{
  return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->order < b->order;
}

/* There are few, and they are put in as they come. */
static void
sort_dues (Scratch *scratch)
{
  for (guint i = 1; i < scratch->n_dues; i++)
    {
      const Due due = scratch->dues[i];
      guint k = i;

      for (; k > 0 && is_before (&due, &scratch->dues[k - 1]); k--)
        scratch->dues[k] = scratch->dues[k - 1];
      scratch->dues[k] = due;
    }
}

/* By their start. */
static void
sort_moving (Scratch *scratch)
{
  for (guint i = 1; i < scratch->n_moving; i++)
    {
      const Moving moving = scratch->moving[i];
      guint k = i;

      for (; k > 0 && moving.order.number < scratch->moving[k - 1].order.number; k--)
        scratch->moving[k] = scratch->moving[k - 1];
      scratch->moving[k] = moving;
    }
}

static bool
list_transfers (const PodExec *exec, const PodIsland *island, int64_t now_ps, Scratch *scratch)
{
  for (guint i = 0; i < island->meetings->len; i++)
    {
      const PodMeeting *meeting = exec->meetings[g_array_index (island->meetings, uint32_t, i)];

      if (meeting == NULL || meeting->n_arrived < meeting->n_expected)
        continue;
      if (scratch->n_moving == MOST_TRANSFERS
          || !pod_network_keep (exec->network, meeting->transfer, &scratch->moving[scratch->n_moving].kept, &scratch->moving[scratch->n_moving].order))
        return false;
      scratch->moving[scratch->n_moving].kept.tag = i;
      scratch->moving[scratch->n_moving++].kept.path = NULL; /* each island's own */
    }
  sort_moving (scratch);
  for (guint i = 0; i < scratch->n_moving; i++)
    {
      Moving *moving = &scratch->moving[i];

      for (guint k = 0; k < scratch->n_moving; k++)
        moving->kept.n_before += scratch->moving[k].order.serial < moving->order.serial;
      if (scratch->n_dues == MOST_EVENTS)
        return false;
      scratch->dues[scratch->n_dues++] = (Due){ now_ps + moving->kept.due_ps, moving->order.due_order, TRANSFER + i };
    }
  return true;
}

static void
save_meetings (const PodExec *exec, const PodIsland *island, int64_t now_ps, GArray *out)
{
  for (guint i = 0; i < island->meetings->len; i++)
    {
      const uint32_t m = g_array_index (island->meetings, uint32_t, i);
      const PodMeeting *meeting = exec->meetings[m];
      int64_t head[3];

      if (meeting == NULL)
        continue;
      head[0] = i;
      head[1] = meeting->n_arrived;
      head[2] = meeting->n_arrived == meeting->n_expected ? now_ps - meeting->start_ps : 0;
      g_array_append_vals (out, head, G_N_ELEMENTS (head));
      g_array_index (out, int64_t, 0)++;
      for (uint32_t a = 0; a < meeting->n_arrived; a++)
        {
          const PodTaskEvent *event = &meeting->arrivals[a].event;
          const int64_t arrived[] = { pod_island_index (island, event->rank), event->stream, event->released_by, now_ps - meeting->arrivals[a].at_ps };

          g_array_append_vals (out, arrived, G_N_ELEMENTS (arrived));
        }
    }
}

static bool
save_places (const PodExec *exec, const PodIsland *island, GArray *out)
{
  const guint n_place = pod_runner_n_place (exec->runner);
  const guint n_before = out->len;

  g_array_set_size (out, n_before + n_place * island->ranks->len);
  for (guint i = 0; i < island->ranks->len; i++)
    if (!pod_runner_keep (exec->runner, pod_island_rank (island, i), &g_array_index (out, int64_t, n_before + i * n_place)))
      return false;
  return true;
}

static void
save_rank (const PodExec *exec, const PodIsland *island, uint32_t rank, int64_t now_ps, GArray *out)
{
  const uint32_t first = pod_island_rank (island, 0);
  /* Ranks of one program do not change places */
  const int64_t ahead = exec->fold->class_of[rank] != exec->fold->class_of[first]
                            ? 0
                            : (int64_t) pod_runner_step (exec->runner, rank) - pod_runner_step (exec->runner, first);

  g_array_append_val (out, ahead);
  if (exec->contention != NULL)
    pod_contention_save (exec->contention, rank, now_ps, out);
  pod_account_save (exec->account, rank, now_ps, out);
}

static void
save_dues (const Scratch *scratch, int64_t now_ps, GArray *out)
{
  const guint n_before = out->len;

  g_array_set_size (out, n_before + 2 * scratch->n_dues);
  for (guint i = 0; i < scratch->n_dues; i++)
    {
      g_array_index (out, int64_t, n_before + 2 * i) = scratch->dues[i].at_ps - now_ps;
      g_array_index (out, int64_t, n_before + 2 * i + 1) = scratch->dues[i].what;
    }
}

bool
pod_island_save (const PodExec *exec, const PodIsland *island, GArray *out)
{
  const int64_t now_ps = pod_event_queue_now (exec->queue);
  Scratch scratch;

  scratch.n_dues = 0;
  scratch.n_moving = 0;
  g_array_set_size (out, POD_ISLAND_HEAD);
  if (!save_places (exec, island, out) || !list_transfers (exec, island, now_ps, &scratch))
    return false;
  for (guint i = 0; i < island->ranks->len; i++)
    {
      save_rank (exec, island, pod_island_rank (island, i), now_ps, out);
      if (!list_tasks (exec, island, i, &scratch))
        return false;
    }
  g_array_index (out, int64_t, 0) = 0;
  g_array_index (out, int64_t, 1) = scratch.n_moving;
  g_array_index (out, int64_t, 2) = scratch.n_dues;
  save_meetings (exec, island, now_ps, out);
  for (guint i = 0; i < scratch.n_moving; i++)
    g_array_append_vals (out, &scratch.moving[i].kept, N_OF_KEPT);
  sort_dues (&scratch);
  save_dues (&scratch, now_ps, out);
  return true;
}

void
pod_island_pause (PodExec *exec, const PodIsland *island)
{
  for (guint i = 0; i < island->ranks->len; i++)
    pod_runner_pause (exec->runner, pod_island_rank (island, i));
  for (guint i = 0; i < island->meetings->len; i++)
    {
      const uint32_t m = g_array_index (island->meetings, uint32_t, i);
      const PodMeeting *meeting = exec->meetings[m];

      if (meeting != NULL && meeting->n_arrived == meeting->n_expected)
        pod_network_withdraw (exec->network, meeting->transfer);
      pod_exec_close_meeting (exec, m);
    }
}

static PodMeeting *
meeting_at (const PodExec *exec, const PodIsland *island, int64_t i)
{
  return exec->meetings[g_array_index (island->meetings, uint32_t, i)];
}

static const int64_t *
load_meeting (PodExec *exec, const PodIsland *island, const int64_t *words, int64_t now_ps)
{
  PodMeeting *meeting = pod_exec_open_meeting (exec, g_array_index (island->meetings, uint32_t, words[0]));
  const uint32_t n = (uint32_t) words[1];

  meeting->n_arrived = n;
  meeting->start_ps = now_ps - words[2];
  words += 3;
  for (uint32_t i = 0; i < n; i++, words += 4)
    {
      int waits_for;

      if (!pod_runner_head (exec->runner, pod_island_rank (island, (guint) words[0]), (uint8_t) words[1], &meeting->arrivals[i].event, &waits_for))
        g_assert_not_reached ();
      meeting->arrivals[i].event.released_by = (uint8_t) words[2];
      meeting->arrivals[i].at_ps = now_ps - words[3];
    }
  return words;
}

/* Along the links of the island, its meetings being there. */
static const int64_t *
load_transfers (PodExec *exec, const PodIsland *island, const int64_t *words, guint n, uint32_t *index)
{
  PodKeptTransfer kept[MOST_TRANSFERS];

  memcpy (kept, words, n * sizeof *kept);
  for (guint i = 0; i < n; i++)
    {
      const PodMeeting *meeting = meeting_at (exec, island, kept[i].tag);

      kept[i].path = pod_island_path (exec, exec->uses[exec->ops[meeting->arrivals[0].event.op].use].route, meeting->group)->entries;
      kept[i].tag = meeting->index;
    }
  pod_network_put (exec->network, kept, n, index);
  for (guint i = 0; i < n; i++)
    exec->meetings[kept[i].tag]->transfer = index[i];
  return words + n * N_OF_KEPT;
}

void
pod_island_load (PodExec *exec, const PodIsland *island, const PodIslandState *state, const uint32_t *step)
{
  const int64_t now_ps = pod_event_queue_now (exec->queue);
  const int64_t *words = state->words + POD_ISLAND_HEAD + (size_t) island->ranks->len * pod_runner_n_place (exec->runner);
  uint32_t index[MOST_TRANSFERS];

  G_STATIC_ASSERT (sizeof (PodKeptTransfer) % sizeof (int64_t) == 0);
  for (guint i = 0; i < island->ranks->len; i++)
    pod_runner_put (exec->runner, pod_island_rank (island, i), step[i], pod_island_place (exec, state, i));
  for (guint i = 0; i < island->ranks->len; i++)
    {
      words++;
      if (exec->contention != NULL)
        {
          pod_contention_load (exec->contention, pod_island_rank (island, i), words, now_ps);
          words += POD_CONTENTION_WORDS;
        }
      words = pod_account_load (exec->account, pod_island_rank (island, i), words, now_ps);
    }
  for (int64_t i = 0; i < state->words[0]; i++)
    words = load_meeting (exec, island, words, now_ps);
  words = load_transfers (exec, island, words, (guint) state->words[1], index);
  for (int64_t i = 0; i < state->words[2]; i++, words += 2)
    if (words[1] >= TRANSFER)
      pod_network_resume (exec->network, index[words[1] - TRANSFER]);
    else
      pod_runner_resume (exec->runner, pod_island_rank (island, (guint) (words[1] >> 8)), (unsigned) (words[1] & 0xff), now_ps + words[0]);
}
