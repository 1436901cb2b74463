#include <string.h>

#include "exec/run-private.h"

/* The steady state of a pipeline is simulated once, and so are layers that are alike. When the first rank begins a step (a layer's, where the
 * graph has these), all that decides how the run goes on is written down: heads and counters of streams, what waits and what moves, what is
 * left of it to the bit, pending events in order, with times counted from now and steps from where each rank stands. Nothing else does, and no
 * time or step but by its distance, so from two equal records the run goes on alike as long as the programs do. Then what lies between them is
 * counted as often as it comes, and the run goes on behind it: to the picosecond where it would have come. Memory may grow from one to the
 * other, as it does by the activations of each layer; peaks grow with it. What would be seen on a timeline is not there, so recorded runs
 * are simulated whole. */

enum
{
  N_KEPT = 96,         /* records; a period of a schedule has fewer steps */
  N_LEAST = 8,         /* with room for fewer, nothing would be found */
  N_FRUITLESS = 4096,  /* records in a row after which no more is found */
  MAX_BYTES = 1 << 23, /* of all records: those of a run that is not folded are large */
};

typedef struct
{
  guint hash;
  GArray *state;  /* int64_t */
  GArray *sums;   /* int64_t: of each rank's account */
  GArray *marks;  /* PodAccountMark: of each, since the record before */
  uint32_t *step; /* by rank */
  int64_t at_ps;
} Record;

struct PodSteady
{
  GPtrArray *records; /* (element-type Record) oldest first */
  GArray *events;     /* PodEvent, scratch */
  PodAccountStretch *stretches; /* scratch: of running ranks */
  uint32_t n_fruitless;
  uint32_t seen_step; /* of the first rank */
  bool is_done;
};

static void
record_free (void *data)
{
  Record *record = data;

  g_array_unref (record->state);
  g_array_unref (record->sums);
  g_array_unref (record->marks);
  g_free (record->step);
  g_free (record);
}

PodSteady *
pod_steady_new (void)
{
  PodSteady *steady = g_new0 (PodSteady, 1);

  steady->records = g_ptr_array_new_with_free_func (record_free);
  steady->events = g_array_new (FALSE, FALSE, sizeof (PodEvent));
  return steady;
}

void
pod_steady_free (PodSteady *steady)
{
  if (steady == NULL)
    return;
  g_ptr_array_unref (steady->records);
  g_array_unref (steady->events);
  g_free (steady->stretches);
  g_free (steady);
}

void
pod_steady_forget (PodSteady *steady)
{
  g_ptr_array_set_size (steady->records, 0);
}

static uint32_t
n_meetings (const PodExec *exec)
{
  return exec->first_meeting[exec->fold->n_comms];
}

static void
save_meetings (const PodExec *exec, int64_t now_ps, GArray *out)
{
  for (uint32_t m = 0; m < n_meetings (exec); m++)
    {
      const PodMeeting *meeting = exec->meetings[m];
      int64_t head[3];

      if (meeting == NULL)
        continue;
      head[0] = m;
      head[1] = meeting->n_arrived;
      head[2] = meeting->n_arrived == meeting->n_expected ? now_ps - meeting->start_ps : -1;
      g_array_append_vals (out, head, G_N_ELEMENTS (head));
      for (uint32_t i = 0; i < meeting->n_arrived; i++)
        {
          const PodArrival *arrival = &meeting->arrivals[i];
          const PodTaskEvent *event = &arrival->event;
          const int64_t arrived[] = { event->rank, event->stream, event->released_by, g_array_index (exec->graph->tasks, PodTask, event->op).like, now_ps - arrival->at_ps };

          g_array_append_vals (out, arrived, G_N_ELEMENTS (arrived));
        }
    }
}

/* Whose event it is; -1: it is stale, or an island's that is asleep, whose state says when it comes. */
static int64_t
owner_of (const PodExec *exec, const PodEvent *event)
{
  uint32_t tag;

  if (event->kind == POD_EXEC_TASK && pod_runner_is_live (exec->runner, event))
    return (int64_t) event->index << 8 | (uint8_t) event->tag;
  if (event->kind == POD_EXEC_NETWORK && pod_network_event_tag (exec->network, event, &tag))
    return tag;
  return -1;
}

static void
save_events (PodSteady *steady, const PodExec *exec, int64_t now_ps, GArray *out)
{
  g_array_set_size (steady->events, 0);
  pod_event_queue_list (exec->queue, steady->events);
  for (guint i = 0; i < steady->events->len; i++)
    {
      const PodEvent *event = &g_array_index (steady->events, PodEvent, i);
      const int64_t state[] = { event->at_ps - now_ps, (int64_t) (event->order >> 56 << 8 | event->kind), owner_of (exec, event) };

      if (state[2] >= 0)
        g_array_append_vals (out, state, G_N_ELEMENTS (state));
    }
}

static void
save_rank (const PodExec *exec, uint32_t rank, int64_t now_ps, GArray *out)
{
  pod_account_save (exec->account, rank, now_ps, out);
  if (exec->contention != NULL)
    pod_contention_save (exec->contention, rank, now_ps, out);
}

static size_t
record_bytes (const Record *record)
{
  return sizeof (int64_t) * (record->state->len + record->sums->len) + sizeof (PodAccountMark) * record->marks->len;
}

/* Returns: (transfer full) (nullable) NULL in the middle of an instant's changes of rates; and when it is too large to be worth it, which
 * then is all that the steady state comes to */
static Record *
take_record (PodSteady *steady, const PodExec *exec)
{
  const int64_t now_ps = pod_event_queue_now (exec->queue);
  Record *record = g_new0 (Record, 1);

  record->state = g_array_new (FALSE, FALSE, sizeof (int64_t));
  record->sums = g_array_new (FALSE, FALSE, sizeof (int64_t));
  record->marks = g_array_new (FALSE, FALSE, sizeof (PodAccountMark));
  record->step = g_new (uint32_t, exec->fold->n_ranks);
  record->at_ps = now_ps;
  if (!pod_network_save (exec->network, record->state))
    {
      record_free (record);
      return NULL;
    }
  for (uint32_t i = 0; i < pod_exec_n_running (exec); i++)
    {
      const uint32_t rank = pod_exec_running (exec, i);
      PodAccountMark mark;

      if (record_bytes (record) > MAX_BYTES / N_LEAST)
        {
          steady->is_done = true;
          record_free (record);
          return NULL;
        }
      record->step[rank] = pod_runner_step (exec->runner, rank);
      pod_runner_save (exec->runner, rank, record->step[rank], record->state);
      if (exec->islands == NULL || !pod_islands_is_asleep (exec->islands, rank))
        save_rank (exec, rank, now_ps, record->state);
      pod_account_sums (exec->account, rank, record->sums);
      mark = pod_account_mark (exec->account, rank);
      g_array_append_val (record->marks, mark);
    }
  if (exec->islands != NULL)
    pod_islands_save (exec->islands, now_ps, record->state);
  save_meetings (exec, now_ps, record->state);
  save_events (steady, exec, now_ps, record->state);
  for (guint i = 0; i < record->state->len; i++)
    record->hash = record->hash * 31 + (guint) g_array_index (record->state, int64_t, i);
  return record;
}

static bool
is_same (const Record *a, const Record *b)
{
  return a->hash == b->hash && a->state->len == b->state->len && memcmp (a->state->data, b->state->data, a->state->len * sizeof (int64_t)) == 0;
}

/* What each running rank's account came to from the record at @first of those kept to @to, which is to be kept next. */
static void
list_stretches (PodSteady *steady, const PodExec *exec, guint first, const Record *to)
{
  const Record *from = g_ptr_array_index (steady->records, first);
  const uint32_t n_running = pod_exec_n_running (exec);
  const guint n_sums = from->sums->len / n_running;

  steady->stretches = g_renew (PodAccountStretch, steady->stretches, n_running);
  for (uint32_t i = 0; i < n_running; i++)
    {
      const PodAccountMark *begin = &g_array_index (from->marks, PodAccountMark, i);
      const PodAccountMark *end = &g_array_index (to->marks, PodAccountMark, i);
      PodAccountStretch *stretch = &steady->stretches[i];

      *stretch = (PodAccountStretch){ &g_array_index (from->sums, int64_t, i * n_sums), end->most_bytes, end->peak_bytes != begin->peak_bytes };
      for (guint r = first + 1; r < steady->records->len; r++)
        stretch->most_bytes = MAX (stretch->most_bytes, g_array_index (((const Record *) g_ptr_array_index (steady->records, r))->marks, PodAccountMark, i).most_bytes);
    }
}

/* By how much the highest of all peaks grows from stretch to stretch. */
static int64_t
highest_growth (const PodSteady *steady, const PodExec *exec)
{
  double bytes;
  const uint32_t highest = pod_account_highest (exec->account, &bytes, NULL, NULL);

  for (uint32_t i = 0; i < pod_exec_n_running (exec); i++)
    if (pod_exec_running (exec, i) == highest && steady->stretches[i].has_peaked)
      return MAX (pod_account_growth (exec->account, highest, &steady->stretches[i]), 0);
  return 0;
}

/* How often all ranks may do again what they did between the records. */
static uint32_t
n_repeats (const PodSteady *steady, const PodExec *exec, const Record *from, const Record *to)
{
  const int64_t growth = highest_growth (steady, exec);
  uint32_t n = UINT32_MAX;

  for (uint32_t i = 0; i < pod_exec_n_running (exec) && n > 0; i++)
    n = pod_account_n_skips (exec->account, pod_exec_running (exec, i), &steady->stretches[i], growth, n);
  for (uint32_t i = 0; i < pod_exec_n_running (exec) && n > 0; i++)
    {
      const uint32_t rank = pod_exec_running (exec, i);
      const uint32_t reach = exec->islands != NULL ? pod_islands_reach (exec->islands, rank) : 0;

      n = MIN (n, pod_runner_n_repeats (exec->runner, rank, from->step[rank], to->step[rank], reach, n));
    }
  for (uint32_t i = 0; i < pod_exec_n_running (exec) && n > 0; i++)
    {
      const uint32_t rank = pod_exec_running (exec, i);

      if (!pod_runner_can_skip (exec->runner, rank, from->step[rank], to->step[rank], n))
        n = 0;
    }
  return n;
}

static void
skip (const PodSteady *steady, PodExec *exec, const Record *from, const Record *to, uint32_t n)
{
  const int64_t ps = n * (to->at_ps - from->at_ps);

  pod_event_queue_skip (exec->queue, ps);
  pod_network_skip (exec->network, ps);
  for (uint32_t i = 0; i < pod_exec_n_running (exec); i++)
    {
      const uint32_t rank = pod_exec_running (exec, i);

      pod_runner_skip (exec->runner, rank, from->step[rank], to->step[rank], n);
      pod_account_skip (exec->account, rank, &steady->stretches[i], n, ps);
      if (exec->contention != NULL)
        pod_contention_skip (exec->contention, rank, ps);
    }
  if (exec->islands != NULL)
    pod_islands_skip (exec->islands, exec, ps);
  for (uint32_t m = 0; m < n_meetings (exec); m++)
    {
      PodMeeting *meeting = exec->meetings[m];

      if (meeting == NULL)
        continue;
      meeting->start_ps += ps;
      for (uint32_t i = 0; i < meeting->n_arrived; i++)
        meeting->arrivals[i].at_ps += ps;
    }
}

/* Returns whether the run was carried on. */
static bool
try_records (PodSteady *steady, PodExec *exec, const Record *record)
{
  for (guint i = steady->records->len; i-- > 0;)
    {
      const Record *earlier = g_ptr_array_index (steady->records, i);
      uint32_t n;

      if (!is_same (earlier, record))
        continue;
      list_stretches (steady, exec, i, record);
      n = n_repeats (steady, exec, earlier, record);
      if (n == 0)
        continue;
      skip (steady, exec, earlier, record, n);
      return true;
    }
  return false;
}

/* Where there are stages, what a period of theirs begins with is the first layer of a block; else each layer may be as the last. */
static bool
is_at_block (const PodExec *exec, uint32_t step)
{
  const PodClassProgram *program = &g_array_index (exec->graph->classes, PodClassProgram, exec->fold->class_of[0]);

  return exec->graph->classes->len == 1 || step >= program->n_steps || g_array_index (exec->graph->blocks, PodBlock, program->steps[step].block).place == 0;
}

bool
pod_steady_look (PodSteady *steady, PodExec *exec)
{
  const uint32_t step = pod_runner_step (exec->runner, 0);
  size_t n_kept;
  Record *record;

  if (steady->is_done || step == steady->seen_step || !is_at_block (exec, step))
    return false;
  record = take_record (steady, exec);
  if (record == NULL)
    return !steady->is_done;
  steady->n_fruitless = try_records (steady, exec, record) ? 0 : steady->n_fruitless + 1;
  steady->seen_step = pod_runner_step (exec->runner, 0);
  n_kept = MIN (MAX_BYTES / record_bytes (record), N_KEPT);
  steady->is_done = n_kept < N_LEAST || steady->n_fruitless >= N_FRUITLESS;
  if (steady->is_done)
    n_kept = 0;
  while (steady->records->len > 0 && steady->records->len >= n_kept)
    g_ptr_array_remove_index (steady->records, 0);
  if (steady->is_done)
    record_free (record);
  else
    g_ptr_array_add (steady->records, record);
  return false;
}
