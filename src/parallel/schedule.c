#include "parallel/schedule-private.h"

#include "base/error.h"

const char *const pod_schedule_names[POD_N_SCHEDULES] = {
  [POD_SCHEDULE_1F1B] = "1f1b",
  [POD_SCHEDULE_GPIPE] = "gpipe",
  [POD_SCHEDULE_INTERLEAVED] = "interleaved",
  [POD_SCHEDULE_BREADTH_FIRST] = "breadth-first",
  [POD_SCHEDULE_ZB_H1] = "zb-h1",
  [POD_SCHEDULE_ZB_H2] = "zb-h2",
  [POD_SCHEDULE_ZB_V] = "zb-v",
  [POD_SCHEDULE_DUALPIPE] = "dualpipe",
  [POD_SCHEDULE_DUALPIPE_V] = "dualpipe-v",
};

/* The slots of one rank as they are written down: each chunk counts its microbatches forward and backward by itself. */
typedef struct
{
  const PodSchedule *schedule;
  GArray *slots;
  uint32_t n_forward[POD_MAX_CHUNKS];
  uint32_t n_backward[POD_MAX_CHUNKS];
  GQueue owed;     /* inputs whose weight gradients are put off, oldest first: their positions in slots */
  bool is_flipped; /* chunk 0 of the pattern is this rank's chunk 1 */
} Writer;

/* A chunk's next forward or backward; nothing once it has had all its microbatches. */
static void
put (Writer *writer, PodSlotKind kind, uint32_t chunk)
{
  const PodSchedule *schedule = writer->schedule;
  const uint32_t own = writer->is_flipped ? 1 - chunk : chunk;
  const uint32_t limit = schedule->is_two_way ? schedule->n_microbatches / 2 : schedule->n_microbatches;
  uint32_t *n = kind == POD_SLOT_FORWARD ? &writer->n_forward[own] : &writer->n_backward[own];
  PodSlot slot = { .kind = (uint8_t) kind, .chunk = (uint8_t) own, .microbatch = *n + (schedule->is_two_way && own == 1 ? limit : 0) };

  if (*n >= limit)
    return;
  *n += 1;
  if (kind == POD_SLOT_INPUT)
    g_queue_push_tail (&writer->owed, GUINT_TO_POINTER (writer->slots->len));
  g_array_append_val (writer->slots, slot);
}

/* The weight gradients that have been put off longest, of any chunk or of @chunk. */
static void
put_weights (Writer *writer, int chunk)
{
  for (GList *item = writer->owed.head; item != NULL; item = item->next)
    {
      PodSlot slot = g_array_index (writer->slots, PodSlot, GPOINTER_TO_UINT (item->data));

      if (chunk >= 0 && slot.chunk != chunk)
        continue;
      slot.kind = POD_SLOT_WEIGHT;
      g_array_append_val (writer->slots, slot);
      g_queue_delete_link (&writer->owed, item);
      return;
    }
}

/* Every forward of a chunk, then the next chunk's; backwards likewise from the last chunk on. With one chunk: GPipe. */
static void
breadth_first (Writer *writer)
{
  for (uint32_t c = 0; c < writer->schedule->n_chunks; c++)
    for (uint32_t i = 0; i < writer->schedule->n_microbatches; i++)
      put (writer, POD_SLOT_FORWARD, c);
  for (uint32_t c = writer->schedule->n_chunks; c-- > 0;)
    for (uint32_t i = 0; i < writer->schedule->n_microbatches; i++)
      put (writer, POD_SLOT_BACKWARD, c);
}

/* Rank i of p runs @depth (p - 1 - i) forwards, then pairs of forward and backward, then the backwards left. Weight gradients are put off
 * by @depth i backwards: late ranks send theirs sooner and have work left for the end. 1F1B is depth 1 with both gradients at once. */
static void
one_forward_one_backward (Writer *writer, uint32_t rank, uint32_t depth, bool is_split)
{
  const uint32_t m = writer->schedule->n_microbatches;
  const uint32_t warm_up = MIN (m, depth * (writer->schedule->n_ranks - 1 - rank));

  for (uint32_t i = 0; i < warm_up; i++)
    put (writer, POD_SLOT_FORWARD, 0);
  for (uint32_t i = 0; i < m; i++)
    {
      put (writer, POD_SLOT_FORWARD, 0);
      if (!is_split)
        {
          put (writer, POD_SLOT_BACKWARD, 0);
          continue;
        }
      put (writer, POD_SLOT_INPUT, 0);
      if (i >= depth * rank)
        put_weights (writer, -1);
    }
  for (uint32_t i = 0; i < m; i++)
    put_weights (writer, -1);
}

/* Microbatches go through a chunk in bunches of p before the next chunk has them; chunks backwards in the backward pass. */
static void
interleaved (Writer *writer, uint32_t rank)
{
  const uint32_t p = writer->schedule->n_ranks;
  const uint32_t v = writer->schedule->n_chunks;
  const uint32_t total = writer->schedule->n_microbatches * v;
  const uint32_t warm_up = writer->schedule->n_microbatches == p ? total : MIN (total, 2 * (p - 1 - rank) + (v - 1) * p);

  for (uint32_t i = 0; i < total + warm_up; i++)
    {
      if (i < total)
        put (writer, POD_SLOT_FORWARD, i / p % v);
      if (i >= warm_up)
        put (writer, POD_SLOT_BACKWARD, v - 1 - (i - warm_up) / p % v);
    }
}

static void
zb_v (Writer *writer, uint32_t rank)
{
  const uint32_t p = writer->schedule->n_ranks;
  const uint32_t m = MAX (2 * p - 1, writer->schedule->n_microbatches); /* what fills the pipeline; put drops what is not there */
  uint32_t n_forward[2] = { 0, 0 };

  for (uint32_t i = 0; i < 2 * (p - rank) - 1; i++, n_forward[0]++)
    put (writer, POD_SLOT_FORWARD, 0);
  for (uint32_t i = 0; i < rank; i++, n_forward[0]++, n_forward[1]++)
    {
      put (writer, POD_SLOT_FORWARD, 1);
      put (writer, POD_SLOT_FORWARD, 0);
    }
  for (uint32_t i = 0; i < p - rank; i++, n_forward[1]++)
    {
      put (writer, POD_SLOT_FORWARD, 1);
      put (writer, POD_SLOT_INPUT, 1);
      put_weights (writer, 1);
    }
  for (; n_forward[1] < m; n_forward[1]++)
    {
      if (n_forward[0] < m)
        {
          put (writer, POD_SLOT_FORWARD, 0);
          n_forward[0]++;
        }
      put (writer, POD_SLOT_INPUT, 0);
      put_weights (writer, 0);
      put (writer, POD_SLOT_FORWARD, 1);
      put (writer, POD_SLOT_INPUT, 1);
      put_weights (writer, 1);
    }
  for (uint32_t i = 0; i < rank; i++)
    {
      put (writer, POD_SLOT_INPUT, 0);
      put (writer, POD_SLOT_INPUT, 1);
    }
  for (uint32_t i = 0; i < p - rank; i++)
    {
      put (writer, POD_SLOT_INPUT, 0);
      put_weights (writer, 0);
    }
  for (uint32_t i = 0; i < m; i++)
    put_weights (writer, 1);
  for (uint32_t i = 0; i < m; i++)
    put_weights (writer, 0);
}

static void
put_pair (Writer *writer, uint32_t forward, uint32_t backward, bool is_paired)
{
  put (writer, POD_SLOT_FORWARD, forward);
  g_array_index (writer->slots, PodSlot, writer->slots->len - 1).is_paired = is_paired;
  put (writer, POD_SLOT_BACKWARD, backward);
}

/* DualPipe on the @half ranks between an end and the middle, of which this is number @rank from the end, with @n microbatches of each
 * direction. */
static void
dual (Writer *writer, uint32_t rank, uint32_t half, uint32_t n)
{
  const uint32_t after = half - rank - 1; /* ranks between this one and the middle */

  for (uint32_t i = 0; i < 2 * after; i++)
    put (writer, POD_SLOT_FORWARD, 0);
  for (uint32_t i = 0; i < rank + 1; i++)
    {
      put (writer, POD_SLOT_FORWARD, 0);
      put (writer, POD_SLOT_FORWARD, 1);
    }
  for (uint32_t i = 0; i < after; i++)
    {
      put (writer, POD_SLOT_INPUT, 1);
      put_weights (writer, -1);
      put (writer, POD_SLOT_FORWARD, 1);
    }
  for (uint32_t i = 0; i < n - 2 * half + rank + 1; i++)
    {
      put_pair (writer, 0, 1, i > 0 || after > 0);
      put_pair (writer, 1, 0, true);
    }
  for (uint32_t i = 0; i < after; i++)
    {
      put (writer, POD_SLOT_BACKWARD, 1);
      put_pair (writer, 1, 0, true);
    }
  for (uint32_t i = 0; i < 2 * (rank + 1); i++) /* the second half of these puts its weights off */
    {
      const uint32_t chunk = 1 - i % 2;

      if (i > rank)
        put (writer, POD_SLOT_INPUT, chunk);
      else
        put (writer, POD_SLOT_BACKWARD, chunk);
    }
  for (uint32_t i = 0; i < after; i++)
    {
      put_weights (writer, -1);
      put (writer, POD_SLOT_INPUT, 0);
    }
  for (uint32_t i = 0; i < rank + 1; i++)
    put_weights (writer, -1);
}

static void
write_rank (PodSchedule *schedule, uint32_t rank)
{
  const uint32_t p = schedule->n_ranks;
  Writer writer = { .schedule = schedule, .slots = g_array_new (FALSE, FALSE, sizeof (PodSlot)), .owed = G_QUEUE_INIT };

  switch (schedule->kind)
    {
    case POD_SCHEDULE_1F1B:
      one_forward_one_backward (&writer, rank, 1, false);
      break;
    case POD_SCHEDULE_GPIPE:
    case POD_SCHEDULE_BREADTH_FIRST:
      breadth_first (&writer);
      break;
    case POD_SCHEDULE_INTERLEAVED:
      interleaved (&writer, rank);
      break;
    case POD_SCHEDULE_ZB_H1:
      one_forward_one_backward (&writer, rank, 1, true);
      break;
    case POD_SCHEDULE_ZB_H2:
      one_forward_one_backward (&writer, rank, 2, true);
      break;
    case POD_SCHEDULE_ZB_V:
      zb_v (&writer, rank);
      break;
    case POD_SCHEDULE_DUALPIPE:
      writer.is_flipped = rank >= p / 2;
      dual (&writer, MIN (rank, p - 1 - rank), p / 2, schedule->n_microbatches / 2);
      break;
    case POD_SCHEDULE_DUALPIPE_V:
      dual (&writer, rank, p, schedule->n_microbatches);
      break;
    case POD_SCHEDULE_FILE:
    case POD_N_SCHEDULES:
      break;
    }
  g_queue_clear (&writer.owed);
  g_ptr_array_add (schedule->slots, writer.slots);
}

PodSchedule *
pod_schedule_alloc (PodScheduleKind kind, uint32_t n_ranks, uint32_t n_chunks, uint32_t n_microbatches)
{
  PodSchedule *schedule = g_new0 (PodSchedule, 1);

  schedule->kind = kind;
  schedule->n_ranks = n_ranks;
  schedule->n_chunks = n_chunks;
  schedule->n_microbatches = n_microbatches;
  schedule->is_v = kind == POD_SCHEDULE_ZB_V || kind == POD_SCHEDULE_DUALPIPE_V;
  schedule->is_two_way = kind == POD_SCHEDULE_DUALPIPE;
  schedule->n_parts = schedule->is_two_way ? n_ranks : n_ranks * n_chunks;
  schedule->slots = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  return schedule;
}

static bool G_GNUC_PRINTF (2, 3) refuse (GError **error, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  g_propagate_error (error, g_error_new_valist (POD_ERROR, POD_ERROR_INFEASIBLE, format, args));
  va_end (args);
  return false;
}

static bool
check_numbers (const PodSchedule *schedule, uint32_t asked, GError **error)
{
  const char *name = pod_schedule_names[schedule->kind];
  const uint32_t p = schedule->n_ranks;
  const uint32_t v = schedule->n_chunks;
  const uint32_t m = schedule->n_microbatches;
  const bool is_looped = schedule->kind == POD_SCHEDULE_INTERLEAVED || schedule->kind == POD_SCHEDULE_BREADTH_FIRST;
  const bool is_dual = schedule->is_two_way || schedule->kind == POD_SCHEDULE_DUALPIPE_V;

  if (is_looped && v < 2)
    return refuse (error, "--schedule %s: vpp=%u leaves one part a stage: give the layout vpp=2 or more, or take %s", name, v,
                   schedule->kind == POD_SCHEDULE_INTERLEAVED ? "1f1b" : "gpipe");
  if (v > POD_MAX_CHUNKS)
    return refuse (error, "--layout: vpp=%u: a stage has at most %d virtual stages", v, POD_MAX_CHUNKS);
  if (!is_looped && asked > 1 && (schedule->is_two_way || asked != v))
    return refuse (error, "--schedule %s: vpp=%u, but it gives each stage %s", name, asked,
                   schedule->is_two_way ? "one part from either end: leave vpp out" : v == 2 ? "2 parts: leave vpp out" : "one part: take interleaved for vpp");
  if (schedule->kind == POD_SCHEDULE_INTERLEAVED && m % p != 0)
    return m < p ? refuse (error, "--schedule interleaved: %u microbatches are not a multiple of pp=%u: %u %% %u = %u; nearest: %u", m, p, m, p, m, p)
                 : refuse (error, "--schedule interleaved: %u microbatches are not a multiple of pp=%u: %u %% %u = %u; nearest: %u or %u", m, p, m, p, m % p,
                           m / p * p, (m / p + 1) * p);
  if (schedule->is_two_way && (p % 2 != 0 || m % 2 != 0))
    return refuse (error, "--schedule dualpipe: pp=%u and %u microbatches must both be even: half of them enter at either end", p, m);
  if (is_dual && m < 2 * p)
    return refuse (error, "--schedule %s: %u microbatches are fewer than 2 x pp = %u", name, m, 2 * p);
  return true;
}

PodSchedule *
pod_schedule_new_empty (PodScheduleKind kind, uint32_t n_ranks, uint32_t n_chunks, uint32_t n_microbatches, GError **error)
{
  const bool is_looped = kind == POD_SCHEDULE_INTERLEAVED || kind == POD_SCHEDULE_BREADTH_FIRST;
  const bool has_two = kind == POD_SCHEDULE_ZB_V || kind == POD_SCHEDULE_DUALPIPE || kind == POD_SCHEDULE_DUALPIPE_V;
  g_autoptr (PodSchedule) schedule = pod_schedule_alloc (kind, n_ranks, has_two ? 2 : is_looped ? MAX (n_chunks, 1) : 1, n_microbatches);

  return check_numbers (schedule, n_chunks, error) ? g_steal_pointer (&schedule) : NULL;
}

PodSchedule *
pod_schedule_new (PodScheduleKind kind, uint32_t n_ranks, uint32_t n_chunks, uint32_t n_microbatches, GError **error)
{
  PodSchedule *schedule = pod_schedule_new_empty (kind, n_ranks, n_chunks, n_microbatches, error);

  for (uint32_t rank = 0; schedule != NULL && rank < n_ranks; rank++)
    write_rank (schedule, rank);
  return schedule;
}

uint32_t
pod_schedule_pair (PodSchedule *schedule)
{
  uint32_t n = 0;

  for (guint rank = 0; rank < schedule->slots->len; rank++)
    {
      GArray *slots = g_ptr_array_index (schedule->slots, rank);

      for (guint i = 0; i + 1 < slots->len; i++)
        {
          const PodSlot backward = g_array_index (slots, PodSlot, i);
          PodSlot forward = g_array_index (slots, PodSlot, i + 1);

          if (backward.kind != POD_SLOT_BACKWARD || forward.kind != POD_SLOT_FORWARD || forward.is_paired)
            continue;
          forward.is_paired = true;
          g_array_index (slots, PodSlot, i++) = forward;
          g_array_index (slots, PodSlot, i) = backward;
          n++;
        }
    }
  return n;
}

void
pod_schedule_free (PodSchedule *schedule)
{
  if (schedule == NULL)
    return;
  g_ptr_array_unref (schedule->slots);
  g_free (schedule);
}

bool
pod_schedule_is_back (const PodSchedule *schedule, uint32_t chunk)
{
  return chunk == 1 && (schedule->is_v || schedule->is_two_way);
}

uint32_t
pod_schedule_part (const PodSchedule *schedule, uint32_t rank, uint32_t chunk)
{
  if (pod_schedule_is_back (schedule, chunk))
    return schedule->n_parts - 1 - rank;
  return chunk * schedule->n_ranks + rank;
}

bool
pod_schedule_next (const PodSchedule *schedule, uint32_t rank, uint32_t chunk, uint32_t *out_rank, uint32_t *out_chunk)
{
  const uint32_t part = pod_schedule_part (schedule, rank, chunk);
  const bool is_back = pod_schedule_is_back (schedule, chunk);
  const uint32_t last = schedule->n_ranks - 1;

  if (part == schedule->n_parts - 1)
    return false;
  *out_chunk = chunk;
  if (is_back)
    *out_rank = rank - 1;
  else if (rank < last)
    *out_rank = rank + 1;
  else
    {
      *out_chunk = chunk + 1;
      *out_rank = schedule->is_v ? rank : 0;
    }
  return true;
}

bool
pod_schedule_has (const PodSchedule *schedule, uint32_t chunk, uint32_t microbatch)
{
  return !schedule->is_two_way || (microbatch >= schedule->n_microbatches / 2) == (chunk == 1);
}

bool
pod_schedule_steps_overlap (const PodSchedule *schedule)
{
  return schedule->kind == POD_SCHEDULE_ZB_H2 || schedule->kind == POD_SCHEDULE_ZB_V;
}
