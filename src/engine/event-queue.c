#include "engine/event-queue.h"

#include <stdlib.h>
#include <string.h>

/* A ladder (Tang, Goh, Thng 2005) over a small heap. What comes soon is in a sorted run, whose end
 * is popped, and in a 4-ary heap by value, which takes the events pushed ahead of the run. What
 * comes later lies unsorted in the buckets of rungs, each rung a finer division of one bucket of
 * the rung before, and behind the last bucket of the first rung on top. A bucket is sorted when its
 * time has come, and divided before that when it is full: each event is moved a few times from one
 * short array to another, and a million of them need no more cache than a thousand. With few events
 * pending all are in the heap. Numbers: docs/performance.md. */
enum
{
  ARITY = 4,
  PRIORITY_SHIFT = 56,
  MAX_HEAP = 64,     /* events pushed ahead of the run before it is divided with them */
  MAX_RUN = 40,      /* events of a bucket that are sorted, not divided */
  N_PER_BUCKET = 12, /* when a bucket is divided */
  MAX_BUCKETS = 512,
  MAX_RUNGS = 10,
  MAX_INSERTED = 48, /* events that are sorted by insertion */
  N_IN_CHUNK = 15,   /* 512 bytes */
  N_IN_SLAB = 128,   /* chunks that are allocated at once */
  CACHE_LINE_BYTES = 64,
  N_AHEAD = 5, /* of pod_event_queue_soon */
};

__extension__ typedef unsigned __int128 Key;

/* In a row. */
typedef struct
{
  PodEvent *events; /* (owned) (nullable) */
  uint32_t n;
  uint32_t capacity;
} Events;

/* Unsorted, in chunks that all buckets share: nothing is moved or returned to the system as buckets
 * grow and shrink. */
typedef struct Chunk
{
  struct Chunk *older; /* (nullable) all of it is in use */
  uint64_t unused[3];  /* so that no event lies in two cache lines */
  PodEvent events[N_IN_CHUNK];
} Chunk;

typedef struct
{
  Chunk *newest; /* (owned) (nullable) */
  uint32_t n;
  uint32_t n_free; /* places left in the newest chunk */
} Bucket;

/* Bucket i holds what is at @begin_ps + (i << shift) or later, and earlier than bucket i + 1
 * begins; the last one all up to @end_ps. */
typedef struct
{
  uint64_t begin_ps;
  uint64_t end_ps; /* the first time behind it */
  unsigned shift;
  uint32_t n_buckets;
  uint32_t next; /* the first that was not taken yet */
  Bucket buckets[MAX_BUCKETS];
} Rung;

struct PodEventQueue
{
  uint64_t limit_ps; /* heap and run are earlier, all else is not */
  Events heap;
  Events run; /* latest first */
  unsigned n_rungs;
  Rung *rungs[MAX_RUNGS]; /* (owned) (nullable) from the coarsest */
  Bucket top;
  Chunk *spare;     /* (nullable) chunks that no bucket uses */
  GPtrArray *slabs; /* (owned) */
  int64_t now_ps;
  uint64_t n_pushed; /* the next sequence number */
  uint64_t n_popped;
  uint64_t n_put_back; /* of these */
};

/* The order as one number: the clock never goes below 0, so its sign bit is free. */
static inline Key
key (const PodEvent *event)
{
  return (Key) (uint64_t) event->at_ps << 64 | event->order;
}

PodEventQueue *
pod_event_queue_new (void)
{
  PodEventQueue *queue = g_new0 (PodEventQueue, 1);

  queue->limit_ps = UINT64_MAX;
  queue->slabs = g_ptr_array_new_with_free_func (g_aligned_free);
  return queue;
}

void
pod_event_queue_free (PodEventQueue *queue)
{
  if (queue == NULL)
    return;
  for (unsigned r = 0; r < MAX_RUNGS; r++)
    g_free (queue->rungs[r]);
  g_free (queue->heap.events);
  g_free (queue->run.events);
  g_ptr_array_unref (queue->slabs);
  g_free (queue);
}

static G_GNUC_NO_INLINE void
grow (Events *events, uint32_t n)
{
  uint32_t capacity = MAX (events->capacity, 8);

  while (capacity < n)
    capacity *= 2;
  events->events = g_renew (PodEvent, events->events, capacity);
  events->capacity = capacity;
}

static inline void
append (Events *events, const PodEvent *event)
{
  if (G_UNLIKELY (events->n == events->capacity))
    grow (events, events->n + 1);
  events->events[events->n++] = *event;
}

/* -- buckets ----------------------------------------------------------------------------------- */

static G_GNUC_NO_INLINE void
add_slab (PodEventQueue *queue)
{
  Chunk *chunks = g_aligned_alloc (N_IN_SLAB, sizeof (Chunk), CACHE_LINE_BYTES);

  for (uint32_t i = 0; i < N_IN_SLAB; i++)
    {
      chunks[i].older = queue->spare;
      queue->spare = &chunks[i];
    }
  g_ptr_array_add (queue->slabs, chunks);
}

static void
add_chunk (PodEventQueue *queue, Bucket *bucket)
{
  Chunk *chunk;

  if (G_UNLIKELY (queue->spare == NULL))
    add_slab (queue);
  chunk = queue->spare;
  queue->spare = chunk->older;
  chunk->older = bucket->newest;
  bucket->newest = chunk;
  bucket->n_free = N_IN_CHUNK;
}

static inline void
bucket_push (PodEventQueue *queue, Bucket *bucket, const PodEvent *event)
{
  if (bucket->n_free == 0)
    add_chunk (queue, bucket);
  bucket->newest->events[N_IN_CHUNK - bucket->n_free--] = *event;
  bucket->n++;
}

/* Empties it chunk by chunk, the newest first: @out_n events of the chunk that is returned, which
 * may be used until the next call to bucket_push. NULL at the end. */
static const Chunk *
bucket_take (PodEventQueue *queue, Bucket *bucket, uint32_t *out_n)
{
  Chunk *chunk = bucket->newest;

  if (chunk == NULL)
    return NULL;
  for (unsigned line = 0; chunk->older != NULL && line < sizeof (Chunk); line += CACHE_LINE_BYTES)
    __builtin_prefetch ((const char *) chunk->older + line);
  *out_n = N_IN_CHUNK - bucket->n_free;
  bucket->newest = chunk->older;
  bucket->n -= *out_n;
  bucket->n_free = 0;
  chunk->older = queue->spare;
  queue->spare = chunk;
  return chunk;
}

static void
widen_span (const PodEvent *events, uint32_t n, uint64_t *first_ps, uint64_t *last_ps)
{
  for (uint32_t i = 0; i < n; i++)
    {
      const uint64_t at_ps = (uint64_t) events[i].at_ps;

      *first_ps = MIN (*first_ps, at_ps);
      *last_ps = MAX (*last_ps, at_ps);
    }
}

static void
find_span (const Bucket *bucket, uint64_t *out_first_ps, uint64_t *out_last_ps)
{
  *out_first_ps = UINT64_MAX;
  *out_last_ps = 0;
  for (const Chunk *chunk = bucket->newest; chunk != NULL; chunk = chunk->older)
    widen_span (chunk->events, chunk == bucket->newest ? N_IN_CHUNK - bucket->n_free : N_IN_CHUNK,
                out_first_ps, out_last_ps);
}

/* -- heap -------------------------------------------------------------------------------------- */

static void
heap_push (Events *heap, const PodEvent *event)
{
  const Key event_key = key (event);
  size_t hole;

  append (heap, event);
  for (hole = heap->n - 1; hole > 0; hole = (hole - 1) / ARITY)
    {
      const size_t up = (hole - 1) / ARITY;

      if (key (&heap->events[up]) < event_key)
        break;
      heap->events[hole] = heap->events[up];
    }
  heap->events[hole] = *event;
}

/* Moves the hole at the root down to a leaf, then what stood last up from there: it mostly belongs
 * down there. */
static void
heap_pop (Events *heap)
{
  PodEvent *events = heap->events;
  const size_t n = --heap->n;
  size_t hole = 0;

  for (size_t child = 1; child < n; child = ARITY * hole + 1)
    {
      const size_t end = MIN (child + ARITY, n);
      size_t least = child;
      Key least_key = key (&events[child]);

      for (size_t i = child + 1; i < end; i++)
        {
          const Key other = key (&events[i]);
          const bool is_less = other < least_key;

          least = is_less ? i : least;
          least_key = is_less ? other : least_key;
        }
      events[hole] = events[least];
      hole = least;
    }
  if (n > 0)
    {
      const PodEvent last = events[n];
      const Key last_key = key (&last);

      for (; hole > 0 && key (&events[(hole - 1) / ARITY]) > last_key; hole = (hole - 1) / ARITY)
        events[hole] = events[(hole - 1) / ARITY];
      events[hole] = last;
    }
}

/* -- run --------------------------------------------------------------------------------------- */

static int
compare_latest_first (const void *a, const void *b)
{
  const Key x = key (a);
  const Key y = key (b);

  return x < y ? 1 : x > y ? -1 : 0;
}

static void
insert_all (PodEvent *events, uint32_t n)
{
  for (uint32_t i = 1; i < n; i++)
    {
      const PodEvent event = events[i];
      const Key event_key = key (&event);
      uint32_t at = i;

      for (; at > 0 && key (&events[at - 1]) < event_key; at--)
        events[at] = events[at - 1];
      events[at] = event;
    }
}

/* Merges halves that are sorted. qsort, which calls for each comparison, takes three times as many
 * instructions. @scratch: room for half of them */
static void
sort_part (PodEvent *events, uint32_t n, PodEvent *scratch)
{
  const uint32_t half = n / 2;
  uint32_t i = 0, j = half, to = 0;

  if (n <= MAX_INSERTED / 3)
    {
      insert_all (events, n);
      return;
    }
  sort_part (events, half, scratch);
  sort_part (events + half, n - half, scratch);
  if (key (&events[half - 1]) > key (&events[half]))
    return;
  memcpy (scratch, events, half * sizeof *events);
  while (i < half && j < n)
    events[to++] = key (&scratch[i]) > key (&events[j]) ? scratch[i++] : events[j++];
  memcpy (events + to, scratch + i, (half - i) * sizeof *events);
}

/* Many events have one time mostly, and then they stand in order. */
static void
sort_run (Events *run)
{
  if (run->n <= MAX_INSERTED)
    {
      insert_all (run->events, run->n);
      return;
    }
  for (uint32_t i = 1; i < run->n; i++)
    if (key (&run->events[i - 1]) < key (&run->events[i]))
      {
        g_autofree PodEvent *scratch = g_new (PodEvent, run->n / 2);

        sort_part (run->events, run->n, scratch);
        return;
      }
}

/* Makes a bucket the run, which is empty. */
static void
take_run (PodEventQueue *queue, Bucket *bucket)
{
  Events *run = &queue->run;
  const Chunk *chunk;
  uint32_t n;

  if (bucket->n > run->capacity)
    grow (run, bucket->n);
  while ((chunk = bucket_take (queue, bucket, &n)) != NULL)
    while (n-- > 0)
      run->events[run->n++] = chunk->events[n];
  sort_run (run);
}

/* -- rungs ------------------------------------------------------------------------------------- */

static inline void
rung_push (PodEventQueue *queue, Rung *rung, const PodEvent *event)
{
  const uint64_t i = ((uint64_t) event->at_ps - rung->begin_ps) >> rung->shift;

  bucket_push (queue, &rung->buckets[MIN (i, rung->n_buckets - 1)], event);
}

/* An empty rung for @n events from @first_ps to @last_ps, and what may yet come before @end_ps.
 * Returns: (transfer none) (nullable) NULL when these have one time, or there are too many rungs.
 */
static Rung *
add_rung (PodEventQueue *queue, uint32_t n, uint64_t first_ps, uint64_t last_ps, uint64_t end_ps)
{
  uint32_t n_buckets = 2;
  Rung *rung;

  if (first_ps == last_ps || queue->n_rungs == MAX_RUNGS)
    return NULL;
  if (queue->rungs[queue->n_rungs] == NULL)
    queue->rungs[queue->n_rungs] = g_new0 (Rung, 1);
  rung = queue->rungs[queue->n_rungs++];
  while (n_buckets < MAX_BUCKETS && n_buckets < n / N_PER_BUCKET)
    n_buckets *= 2;
  rung->begin_ps = first_ps;
  rung->end_ps = end_ps;
  rung->n_buckets = n_buckets;
  rung->next = 0;
  rung->shift = 0;
  while ((last_ps - first_ps) >> rung->shift >= n_buckets)
    rung->shift++;
  queue->limit_ps = first_ps;
  return rung;
}

/* Divides a bucket, all that is pending before @end_ps, over a new rung. False as add_rung. */
static bool
divide (PodEventQueue *queue, Bucket *bucket, uint64_t end_ps)
{
  uint64_t first_ps, last_ps;
  const Chunk *chunk;
  uint32_t n;
  Rung *rung;

  find_span (bucket, &first_ps, &last_ps);
  rung = add_rung (queue, bucket->n, first_ps, last_ps, end_ps);
  if (rung == NULL)
    return false;
  while ((chunk = bucket_take (queue, bucket, &n)) != NULL)
    {
      PodEvent events[N_IN_CHUNK]; /* the chunk may be taken while they are handed out */

      memcpy (events, chunk->events, n * sizeof (PodEvent));
      for (uint32_t i = 0; i < n; i++)
        rung_push (queue, rung, &events[i]);
    }
  return true;
}

static uint64_t
end_of_taken (const Rung *rung)
{
  const uint64_t end_ps = rung->begin_ps + ((uint64_t) rung->next << rung->shift);

  return rung->next == rung->n_buckets
             ? rung->end_ps
             : MIN (end_ps, rung->end_ps); /* the last buckets may have no time */
}

/* Divides the first bucket that is left, or makes it the run. */
static void
take_bucket (PodEventQueue *queue)
{
  Rung *rung = queue->rungs[queue->n_rungs - 1];
  Bucket *bucket;

  while (rung->next < rung->n_buckets && rung->buckets[rung->next].n == 0)
    rung->next++;
  if (rung->next == rung->n_buckets)
    {
      queue->limit_ps = rung->end_ps;
      queue->n_rungs--;
      return;
    }
  bucket = &rung->buckets[rung->next++];
  if (bucket->n > MAX_RUN && divide (queue, bucket, end_of_taken (rung)))
    return;
  queue->limit_ps = end_of_taken (rung);
  take_run (queue, bucket);
}

/* Takes what lies on top: few events go to the heap, many to a first rung. */
static void
take_top (PodEventQueue *queue)
{
  uint64_t first_ps, last_ps;

  find_span (&queue->top, &first_ps, &last_ps);
  if (queue->top.n > MAX_HEAP && divide (queue, &queue->top, last_ps + 1))
    return;
  queue->limit_ps = last_ps + 1;
  take_run (queue, &queue->top);
}

/* Fills the run. False when nothing is pending; then all that comes goes to the heap. */
static G_GNUC_NO_INLINE bool
refill (PodEventQueue *queue)
{
  while (queue->run.n == 0)
    {
      if (queue->n_rungs > 0)
        take_bucket (queue);
      else if (queue->top.n > 0)
        take_top (queue);
      else
        {
          queue->limit_ps = UINT64_MAX;
          return false;
        }
    }
  return true;
}

/* Lets what comes soon wait as what comes later: on a rung of its own, or on top. */
static void
put_back (PodEventQueue *queue, Rung *rung, Events *events)
{
  for (uint32_t i = 0; i < events->n; i++)
    if (rung != NULL)
      rung_push (queue, rung, &events->events[i]);
    else
      bucket_push (queue, &queue->top, &events->events[i]);
  events->n = 0;
}

/* The heap is full: it and the run are divided, or all are the run where they cannot be. */
static G_GNUC_NO_INLINE void
spill (PodEventQueue *queue)
{
  Events *run = &queue->run;
  uint64_t first_ps = UINT64_MAX;
  uint64_t last_ps = 0;
  Rung *rung = NULL;

  if (run->n + queue->heap.n > run->capacity)
    grow (run, run->n + queue->heap.n);
  memcpy (run->events + run->n, queue->heap.events, queue->heap.n * sizeof (PodEvent));
  run->n += queue->heap.n;
  queue->heap.n = 0;
  widen_span (run->events, run->n, &first_ps, &last_ps);
  if (queue->n_rungs > 0)
    rung = add_rung (queue, run->n, first_ps, last_ps, queue->limit_ps);
  else if (first_ps < last_ps)
    queue->limit_ps = first_ps;
  if (rung != NULL || (queue->n_rungs == 0 && first_ps < last_ps))
    put_back (queue, rung, run);
  else
    sort_run (run);
}

uint64_t
pod_event_queue_push (PodEventQueue *queue, int64_t at_ps, uint8_t priority, uint32_t kind,
                      uint32_t index, uint64_t tag)
{
  const PodEvent event = {
    .at_ps = at_ps,
    .order = (uint64_t) priority << PRIORITY_SHIFT | queue->n_pushed,
    .kind = kind,
    .index = index,
    .tag = tag,
  };

  g_assert (at_ps >= queue->now_ps);
  queue->n_pushed++;
  if ((uint64_t) at_ps < queue->limit_ps)
    {
      heap_push (&queue->heap, &event);
      if (G_UNLIKELY (queue->heap.n > MAX_HEAP && queue->heap.n > queue->run.n))
        spill (queue);
      return event.order;
    }
  for (unsigned r = queue->n_rungs; r-- > 0;)
    if ((uint64_t) at_ps < queue->rungs[r]->end_ps)
      {
        rung_push (queue, queue->rungs[r], &event);
        return event.order;
      }
  bucket_push (queue, &queue->top, &event);
  return event.order;
}

bool
pod_event_queue_pop (PodEventQueue *queue, PodEvent *out)
{
  if (queue->run.n == 0 && queue->heap.n == 0 && !refill (queue))
    return false;
  if (queue->heap.n == 0
      || (queue->run.n > 0
          && key (&queue->run.events[queue->run.n - 1]) < key (&queue->heap.events[0])))
    *out = queue->run.events[--queue->run.n];
  else
    {
      *out = queue->heap.events[0];
      heap_pop (&queue->heap);
    }
  queue->now_ps = out->at_ps;
  queue->n_popped++;
  return true;
}

/* Of the run and the heap. */
static inline const PodEvent *
peek (const PodEventQueue *queue)
{
  const PodEvent *next = queue->heap.n > 0 ? &queue->heap.events[0] : NULL;
  const PodEvent *of_run = queue->run.n > 0 ? &queue->run.events[queue->run.n - 1] : NULL;

  return next == NULL || (of_run != NULL && key (of_run) < key (next)) ? of_run : next;
}

bool
pod_event_queue_pop_before (PodEventQueue *queue, int64_t before_ps, PodEvent *out)
{
  if (queue->run.n == 0 && queue->heap.n == 0 && !refill (queue))
    return false;
  return peek (queue)->at_ps < before_ps && pod_event_queue_pop (queue, out);
}

void
pod_event_queue_set_now (PodEventQueue *queue, int64_t now_ps)
{
  queue->now_ps = now_ps;
}

/* What is at the clock's time is earlier than the limit, so it is in the run or the heap. */
const PodEvent *
pod_event_queue_next_now (const PodEventQueue *queue)
{
  const PodEvent *next = peek (queue);

  return next != NULL && next->at_ps == queue->now_ps ? next : NULL;
}

void
pod_event_queue_put_back (PodEventQueue *queue, const PodEvent *event)
{
  g_assert (event->at_ps == queue->now_ps);
  pod_event_queue_push (queue, event->at_ps, (uint8_t) (event->order >> PRIORITY_SHIFT), event->kind,
                        event->index, event->tag);
  queue->n_put_back++;
}

const PodEvent *
pod_event_queue_soon (const PodEventQueue *queue)
{
  return queue->run.n > N_AHEAD ? &queue->run.events[queue->run.n - 1 - N_AHEAD] : NULL;
}

int64_t
pod_event_queue_now (const PodEventQueue *queue)
{
  return queue->now_ps;
}

size_t
pod_event_queue_n_pending (const PodEventQueue *queue)
{
  return queue->n_pushed - queue->n_popped;
}

uint64_t
pod_event_queue_n_popped (const PodEventQueue *queue)
{
  return queue->n_popped - queue->n_put_back;
}

/* -- skipping ------------------------------------------------------------------------------------
 */

static gint
compare_events (gconstpointer a, gconstpointer b)
{
  return compare_latest_first (b, a);
}

static void
list_bucket (const Bucket *bucket, GArray *out)
{
  for (const Chunk *chunk = bucket->newest; chunk != NULL; chunk = chunk->older)
    g_array_append_vals (out, chunk->events,
                         chunk == bucket->newest ? N_IN_CHUNK - bucket->n_free : N_IN_CHUNK);
}

void
pod_event_queue_list (const PodEventQueue *queue, GArray *out)
{
  if (queue->heap.n > 0)
    g_array_append_vals (out, queue->heap.events, queue->heap.n);
  if (queue->run.n > 0)
    g_array_append_vals (out, queue->run.events, queue->run.n);
  for (unsigned r = 0; r < queue->n_rungs; r++)
    for (uint32_t i = queue->rungs[r]->next; i < queue->rungs[r]->n_buckets; i++)
      list_bucket (&queue->rungs[r]->buckets[i], out);
  list_bucket (&queue->top, out);
  g_array_sort (out, compare_events);
}

static void
move_bucket (Bucket *bucket, int64_t ps)
{
  for (Chunk *chunk = bucket->newest; chunk != NULL; chunk = chunk->older)
    {
      const uint32_t n = chunk == bucket->newest ? N_IN_CHUNK - bucket->n_free : N_IN_CHUNK;

      for (uint32_t i = 0; i < n; i++)
        chunk->events[i].at_ps += ps;
    }
}

void
pod_event_queue_skip (PodEventQueue *queue, int64_t ps)
{
  for (uint32_t i = 0; i < queue->heap.n; i++)
    queue->heap.events[i].at_ps += ps;
  for (uint32_t i = 0; i < queue->run.n; i++)
    queue->run.events[i].at_ps += ps;
  for (unsigned r = 0; r < queue->n_rungs; r++)
    {
      queue->rungs[r]->begin_ps += (uint64_t) ps;
      queue->rungs[r]->end_ps += (uint64_t) ps;
      for (uint32_t i = queue->rungs[r]->next; i < queue->rungs[r]->n_buckets; i++)
        move_bucket (&queue->rungs[r]->buckets[i], ps);
    }
  move_bucket (&queue->top, ps);
  if (queue->limit_ps != UINT64_MAX)
    queue->limit_ps += (uint64_t) ps;
  queue->now_ps += ps;
}

/* -- check ------------------------------------------------------------------------------------- */

static bool
is_within (const Bucket *bucket, uint64_t begin_ps, uint64_t end_ps)
{
  uint64_t first_ps, last_ps;

  find_span (bucket, &first_ps, &last_ps);
  return bucket->n == 0 || (first_ps >= begin_ps && last_ps < end_ps);
}

/* Heap and run come between now and the limit. */
static bool
are_soon (const PodEventQueue *queue, const Events *events)
{
  uint64_t first_ps = UINT64_MAX;
  uint64_t last_ps = 0;

  widen_span (events->events, events->n, &first_ps, &last_ps);
  return events->n == 0 || (first_ps >= (uint64_t) queue->now_ps && last_ps < queue->limit_ps);
}

static bool
check_order (const PodEventQueue *queue)
{
  for (uint32_t i = 1; i < queue->heap.n; i++)
    if (key (&queue->heap.events[(i - 1) / ARITY]) >= key (&queue->heap.events[i]))
      return false;
  for (uint32_t i = 1; i < queue->run.n; i++)
    if (key (&queue->run.events[i - 1]) <= key (&queue->run.events[i]))
      return false;
  return true;
}

bool
pod_event_queue_check (const PodEventQueue *queue)
{
  const uint64_t top_ps = queue->n_rungs > 0 ? queue->rungs[0]->end_ps : queue->limit_ps;
  size_t n = (size_t) queue->heap.n + queue->run.n + queue->top.n;

  if (queue->n_rungs > 0 && queue->limit_ps > queue->rungs[queue->n_rungs - 1]->end_ps)
    return false;
  if (!check_order (queue) || !are_soon (queue, &queue->heap) || !are_soon (queue, &queue->run)
      || !is_within (&queue->top, top_ps, UINT64_MAX))
    return false;
  for (unsigned r = 0; r < queue->n_rungs; r++)
    {
      const Rung *rung = queue->rungs[r];

      for (uint32_t i = 0; i < rung->n_buckets; i++)
        {
          const uint64_t begin_ps = rung->begin_ps + ((uint64_t) i << rung->shift);

          n += rung->buckets[i].n;
          if (i < rung->next ? rung->buckets[i].n > 0
                             : !is_within (&rung->buckets[i], begin_ps,
                                           i + 1 == rung->n_buckets
                                               ? rung->end_ps
                                               : begin_ps + (UINT64_C (1) << rung->shift)))
            return false;
        }
    }
  return n == pod_event_queue_n_pending (queue);
}
