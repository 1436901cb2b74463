#include <string.h>

#include "base/error.h"
#include "parallel/schedule.h"

/* Whether a schedule ends: ranks are walked as far as their slots' inputs allow; where none can go on, they wait in a circle. */

typedef struct
{
  const PodSchedule *schedule;
  uint32_t *at;       /* rank: slots done */
  uint32_t *place;    /* (rank, chunk, kind of 3, microbatch) -> 1 + position, 0 = nowhere */
} Walk;

enum
{
  DONE_FORWARD,
  DONE_INPUT,
  DONE_WEIGHT,
  N_DONE
};

typedef struct
{
  uint32_t rank;
  uint32_t chunk;
  uint32_t done;
} Need;

static const char letters[POD_N_SLOTS] = { [POD_SLOT_FORWARD] = 'F', [POD_SLOT_BACKWARD] = 'B', [POD_SLOT_INPUT] = 'I', [POD_SLOT_WEIGHT] = 'W' };

static const PodSlot *
slot_at (const PodSchedule *schedule, uint32_t rank, uint32_t position)
{
  return &g_array_index ((GArray *) g_ptr_array_index (schedule->slots, rank), PodSlot, position);
}

static uint32_t
n_slots (const PodSchedule *schedule, uint32_t rank)
{
  return ((GArray *) g_ptr_array_index (schedule->slots, rank))->len;
}

static uint32_t *
place_of (const Walk *walk, uint32_t rank, uint32_t chunk, uint32_t done, uint32_t microbatch)
{
  const PodSchedule *schedule = walk->schedule;

  return &walk->place[(((size_t) rank * schedule->n_chunks + chunk) * N_DONE + done) * schedule->n_microbatches + microbatch];
}

static char *
slot_text (const PodSchedule *schedule, uint32_t rank, const PodSlot *slot)
{
  return g_strdup_printf ("%u%c%u", pod_schedule_part (schedule, rank, slot->chunk), letters[slot->kind], slot->microbatch);
}

static bool
mark (Walk *walk, uint32_t rank, uint32_t position, uint32_t done, GError **error)
{
  const PodSlot *slot = slot_at (walk->schedule, rank, position);
  uint32_t *place = place_of (walk, rank, slot->chunk, done, slot->microbatch);

  if (*place != 0)
    {
      g_autofree char *text = slot_text (walk->schedule, rank, slot);

      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "schedule: %s does again what an earlier slot of rank %u does", text, rank);
      return false;
    }
  *place = position + 1;
  return true;
}

static bool
mark_all (Walk *walk, GError **error)
{
  static const char *const what[N_DONE] = { "forward (F)", "input gradient (B or I)", "weight gradient (B or W)" };
  const PodSchedule *schedule = walk->schedule;

  for (uint32_t rank = 0; rank < schedule->n_ranks; rank++)
    for (uint32_t i = 0; i < n_slots (schedule, rank); i++)
      {
        const PodSlot *slot = slot_at (schedule, rank, i);

        if (slot->kind == POD_SLOT_FORWARD && !mark (walk, rank, i, DONE_FORWARD, error))
          return false;
        if ((slot->kind == POD_SLOT_BACKWARD || slot->kind == POD_SLOT_INPUT) && !mark (walk, rank, i, DONE_INPUT, error))
          return false;
        if ((slot->kind == POD_SLOT_BACKWARD || slot->kind == POD_SLOT_WEIGHT) && !mark (walk, rank, i, DONE_WEIGHT, error))
          return false;
      }
  for (uint32_t rank = 0; rank < schedule->n_ranks; rank++)
    for (uint32_t c = 0; c < schedule->n_chunks; c++)
      for (uint32_t i = 0; i < schedule->n_microbatches; i++)
        for (unsigned done = 0; done < N_DONE; done++)
          if (pod_schedule_has (schedule, c, i) && *place_of (walk, rank, c, done, i) == 0)
            {
              g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "schedule: rank %u has no %s of microbatch %u for part %u", rank, what[done], i,
                           pod_schedule_part (schedule, rank, c));
              return false;
            }
  return true;
}

/* The rank and chunk that hand @chunk of @rank its activations. */
static bool
previous (const PodSchedule *schedule, uint32_t rank, uint32_t chunk, uint32_t *out_rank, uint32_t *out_chunk)
{
  if (pod_schedule_part (schedule, rank, chunk) == 0)
    return false;
  *out_chunk = chunk;
  if (pod_schedule_is_back (schedule, chunk))
    {
      *out_rank = rank + 1;
      if (rank == schedule->n_ranks - 1)
        {
          *out_rank = rank;
          *out_chunk = 0;
        }
    }
  else if (rank > 0)
    *out_rank = rank - 1;
  else
    {
      *out_rank = schedule->n_ranks - 1;
      *out_chunk = chunk - 1;
    }
  return true;
}

/* What a slot waits for: of another rank (or chunk), and of its own. Returns how many. */
static unsigned
needs_of (const PodSchedule *schedule, uint32_t rank, const PodSlot *slot, Need out[2])
{
  unsigned n = 0;
  Need need;

  switch (slot->kind)
    {
    case POD_SLOT_FORWARD:
      need.done = DONE_FORWARD;
      if (previous (schedule, rank, slot->chunk, &need.rank, &need.chunk))
        out[n++] = need;
      break;
    case POD_SLOT_BACKWARD:
    case POD_SLOT_INPUT:
      out[n++] = (Need){ rank, slot->chunk, DONE_FORWARD };
      need.done = DONE_INPUT;
      if (pod_schedule_next (schedule, rank, slot->chunk, &need.rank, &need.chunk))
        out[n++] = need;
      break;
    case POD_SLOT_WEIGHT:
      out[n++] = (Need){ rank, slot->chunk, DONE_INPUT };
      break;
    }
  return n;
}

/* What keeps the next slot of @rank from running; false: nothing. */
static bool
blocker (const Walk *walk, uint32_t rank, Need *out)
{
  const PodSlot *slot = slot_at (walk->schedule, rank, walk->at[rank]);
  Need needs[2];
  unsigned n = needs_of (walk->schedule, rank, slot, needs);

  for (unsigned i = 0; i < n; i++)
    if (*place_of (walk, needs[i].rank, needs[i].chunk, needs[i].done, slot->microbatch) > walk->at[needs[i].rank])
      {
        *out = needs[i];
        return true;
      }
  return false;
}

/* Follows who waits for whom from @rank until a rank comes again. */
static void
tell_cycle (const Walk *walk, uint32_t rank, GError **error)
{
  g_autoptr (GString) text = g_string_new ("schedule: deadlock: ");
  g_autofree bool *is_seen = g_new0 (bool, walk->schedule->n_ranks);
  Need need;

  for (uint32_t r = rank; !is_seen[r] && blocker (walk, r, &need); r = need.rank) /* into the cycle */
    {
      is_seen[r] = true;
      rank = need.rank;
    }
  memset (is_seen, 0, walk->schedule->n_ranks * sizeof *is_seen);
  for (uint32_t r = rank; !is_seen[r] && blocker (walk, r, &need); r = need.rank)
    {
      const PodSlot *slot = slot_at (walk->schedule, r, walk->at[r]);
      const PodSlot *other = slot_at (walk->schedule, need.rank, *place_of (walk, need.rank, need.chunk, need.done, slot->microbatch) - 1);
      g_autofree char *mine = slot_text (walk->schedule, r, slot);
      g_autofree char *theirs = slot_text (walk->schedule, need.rank, other);

      g_string_append_printf (text, "%srank %u waits at %s for %s of rank %u", is_seen[rank] ? ", " : "", r, mine, theirs, need.rank);
      is_seen[r] = true;
    }
  g_set_error_literal (error, POD_ERROR, POD_ERROR_INFEASIBLE, text->str);
}

/* Transfers between two ranks arrive in the order in which they were sent: the receiver must want them so. */
static bool
check_transfer_order (const Walk *walk, GError **error)
{
  const PodSchedule *schedule = walk->schedule;
  g_autofree uint32_t *last = g_new0 (uint32_t, (size_t) schedule->n_ranks * 4);

  for (uint32_t rank = 0; rank < schedule->n_ranks; rank++)
    for (uint32_t i = 0; i < n_slots (schedule, rank); i++)
      {
        const PodSlot *slot = slot_at (schedule, rank, i);
        const bool is_forward = slot->kind == POD_SLOT_FORWARD;
        uint32_t from = rank;
        uint32_t chunk = slot->chunk;
        uint32_t *before;
        uint32_t sent;

        if (slot->kind == POD_SLOT_WEIGHT)
          continue;
        if (!(is_forward ? previous (schedule, rank, slot->chunk, &from, &chunk) : pod_schedule_next (schedule, rank, slot->chunk, &from, &chunk)) || from == rank)
          continue;
        sent = *place_of (walk, from, chunk, is_forward ? DONE_FORWARD : DONE_INPUT, slot->microbatch);
        before = &last[rank * 4 + (is_forward ? 0 : 1) + (pod_schedule_is_back (schedule, slot->chunk) ? 2 : 0)];
        if (sent < *before)
          {
            g_autofree char *mine = slot_text (schedule, rank, slot);

            g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                         "schedule: deadlock: rank %u wants the input of %s after one that rank %u sends later; transfers between two ranks keep their order", rank, mine, from);
            return false;
          }
        *before = sent;
      }
  return true;
}

bool
pod_schedule_check (const PodSchedule *schedule, GError **error)
{
  const size_t n = (size_t) schedule->n_ranks * schedule->n_chunks * N_DONE * schedule->n_microbatches;
  g_autofree uint32_t *at = g_new0 (uint32_t, schedule->n_ranks);
  g_autofree uint32_t *place = g_new0 (uint32_t, n);
  Walk walk = { .schedule = schedule, .at = at, .place = place };
  uint32_t stuck = 0;
  bool is_moving = true;
  Need need;

  if (!mark_all (&walk, error))
    return false;
  while (is_moving)
    {
      is_moving = false;
      stuck = UINT32_MAX;
      for (uint32_t rank = 0; rank < schedule->n_ranks; rank++)
        {
          while (at[rank] < n_slots (schedule, rank) && !blocker (&walk, rank, &need))
            {
              at[rank]++;
              is_moving = true;
            }
          if (at[rank] < n_slots (schedule, rank))
            stuck = rank;
        }
    }
  if (stuck != UINT32_MAX)
    {
      tell_cycle (&walk, stuck, error);
      return false;
    }
  return check_transfer_order (&walk, error);
}
