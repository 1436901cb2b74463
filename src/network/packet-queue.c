#include "network/packet-queue.h"

#define NO_INDEX UINT32_MAX

enum
{
  ARITY = 4,
};

typedef struct
{
  uint32_t kind;
  uint32_t index;
  uint32_t next;
} Node;

typedef struct
{
  int64_t at_ps;
  uint32_t first;
  uint32_t last;
} Instant;

typedef struct
{
  int64_t at_ps;
  uint32_t instant;
} HeapEntry;

/* Pools grow by doubling and keep free records in a list through next, or first. */
struct PodPacketQueue
{
  Node *nodes;
  uint32_t n_nodes;
  uint32_t n_nodes_allocated;
  uint32_t first_free_node;
  Instant *instants;
  uint32_t n_instants;
  uint32_t n_instants_allocated;
  uint32_t first_free_instant;
  HeapEntry *heap;
  uint32_t n_heap;
  uint32_t n_heap_allocated;
  uint32_t *slots; /* open addressing: instant + 1, 0 = free */
  uint32_t n_slots;
  uint32_t last; /* the instant that was pushed to last, or NO_INDEX */
};

PodPacketQueue *
pod_packet_queue_new (void)
{
  PodPacketQueue *queue = g_new0 (PodPacketQueue, 1);

  queue->first_free_node = queue->first_free_instant = queue->last = NO_INDEX;
  queue->n_slots = 64;
  queue->slots = g_new0 (uint32_t, queue->n_slots);
  return queue;
}

void
pod_packet_queue_free (PodPacketQueue *queue)
{
  if (queue == NULL)
    return;
  g_free (queue->nodes);
  g_free (queue->instants);
  g_free (queue->heap);
  g_free (queue->slots);
  g_free (queue);
}

static uint32_t
home_slot (const PodPacketQueue *queue, int64_t at_ps)
{
  return (uint32_t) (((uint64_t) at_ps * UINT64_C (0x9E3779B97F4A7C15)) >> 32)
         & (queue->n_slots - 1);
}

static void
table_put (PodPacketQueue *queue, uint32_t instant)
{
  uint32_t slot = home_slot (queue, queue->instants[instant].at_ps);

  while (queue->slots[slot] != 0)
    slot = (slot + 1) & (queue->n_slots - 1);
  queue->slots[slot] = instant + 1;
}

static uint32_t
table_find (const PodPacketQueue *queue, int64_t at_ps)
{
  uint32_t slot = home_slot (queue, at_ps);

  for (; queue->slots[slot] != 0; slot = (slot + 1) & (queue->n_slots - 1))
    if (queue->instants[queue->slots[slot] - 1].at_ps == at_ps)
      return queue->slots[slot] - 1;
  return NO_INDEX;
}

/* Closes the gap, so that probing still finds what was pushed past it. */
static void
table_remove (PodPacketQueue *queue, int64_t at_ps)
{
  uint32_t mask = queue->n_slots - 1, slot = home_slot (queue, at_ps), next;

  while (queue->instants[queue->slots[slot] - 1].at_ps != at_ps)
    slot = (slot + 1) & mask;
  for (next = (slot + 1) & mask; queue->slots[next] != 0; next = (next + 1) & mask)
    {
      uint32_t home = home_slot (queue, queue->instants[queue->slots[next] - 1].at_ps);

      if (((next - home) & mask) >= ((next - slot) & mask))
        {
          queue->slots[slot] = queue->slots[next];
          slot = next;
        }
    }
  queue->slots[slot] = 0;
}

static void
table_grow (PodPacketQueue *queue)
{
  g_free (queue->slots);
  queue->n_slots *= 2;
  queue->slots = g_new0 (uint32_t, queue->n_slots);
  for (uint32_t i = 0; i < queue->n_heap; i++)
    table_put (queue, queue->heap[i].instant);
}

static void
heap_push (PodPacketQueue *queue, HeapEntry entry)
{
  uint32_t at = queue->n_heap++;

  if (queue->n_heap > queue->n_heap_allocated)
    {
      queue->n_heap_allocated = MAX (64, 2 * queue->n_heap_allocated);
      queue->heap = g_renew (HeapEntry, queue->heap, queue->n_heap_allocated);
    }
  for (; at > 0 && queue->heap[(at - 1) / ARITY].at_ps > entry.at_ps; at = (at - 1) / ARITY)
    queue->heap[at] = queue->heap[(at - 1) / ARITY];
  queue->heap[at] = entry;
}

static void
heap_pop (PodPacketQueue *queue)
{
  HeapEntry last = queue->heap[--queue->n_heap];
  uint32_t at = 0;

  for (;;)
    {
      uint32_t first = at * ARITY + 1, least = first;

      if (first >= queue->n_heap)
        break;
      for (uint32_t child = first + 1; child < MIN (first + ARITY, queue->n_heap); child++)
        if (queue->heap[child].at_ps < queue->heap[least].at_ps)
          least = child;
      if (queue->heap[least].at_ps >= last.at_ps)
        break;
      queue->heap[at] = queue->heap[least];
      at = least;
    }
  queue->heap[at] = last;
}

static uint32_t
take_node (PodPacketQueue *queue)
{
  uint32_t node = queue->first_free_node;

  if (node != NO_INDEX)
    {
      queue->first_free_node = queue->nodes[node].next;
      return node;
    }
  if (queue->n_nodes == queue->n_nodes_allocated)
    {
      queue->n_nodes_allocated = MAX (64, 2 * queue->n_nodes_allocated);
      queue->nodes = g_renew (Node, queue->nodes, queue->n_nodes_allocated);
    }
  return queue->n_nodes++;
}

static uint32_t
add_instant (PodPacketQueue *queue, int64_t at_ps)
{
  uint32_t instant = queue->first_free_instant;

  if (instant != NO_INDEX)
    queue->first_free_instant = queue->instants[instant].first;
  else
    {
      if (queue->n_instants == queue->n_instants_allocated)
        {
          queue->n_instants_allocated = MAX (64, 2 * queue->n_instants_allocated);
          queue->instants = g_renew (Instant, queue->instants, queue->n_instants_allocated);
        }
      instant = queue->n_instants++;
    }
  queue->instants[instant] = (Instant){ at_ps, NO_INDEX, NO_INDEX };
  heap_push (queue, (HeapEntry){ at_ps, instant });
  if (2 * (uint64_t) queue->n_heap > queue->n_slots)
    table_grow (queue);
  else
    table_put (queue, instant);
  return instant;
}

void
pod_packet_queue_push (PodPacketQueue *queue, int64_t at_ps, uint32_t kind, uint32_t index)
{
  uint32_t node = take_node (queue);
  uint32_t instant = queue->last;
  Instant *list;

  if (instant == NO_INDEX || queue->instants[instant].at_ps != at_ps)
    {
      instant = table_find (queue, at_ps);
      if (instant == NO_INDEX)
        instant = add_instant (queue, at_ps);
      queue->last = instant;
    }
  list = &queue->instants[instant];
  queue->nodes[node] = (Node){ kind, index, NO_INDEX };
  if (list->first == NO_INDEX)
    list->first = node;
  else
    queue->nodes[list->last].next = node;
  list->last = node;
}

int64_t
pod_packet_queue_next (const PodPacketQueue *queue)
{
  return queue->n_heap > 0 ? queue->heap[0].at_ps : INT64_MAX;
}

void
pod_packet_queue_pop (PodPacketQueue *queue, uint32_t *out_kind, uint32_t *out_index)
{
  g_assert (queue->n_heap > 0);

  uint32_t instant = queue->heap[0].instant;
  Instant *list = &queue->instants[instant];
  uint32_t node = list->first;

  *out_kind = queue->nodes[node].kind;
  *out_index = queue->nodes[node].index;
  list->first = queue->nodes[node].next;
  queue->nodes[node].next = queue->first_free_node;
  queue->first_free_node = node;
  if (list->first != NO_INDEX)
    return;
  table_remove (queue, list->at_ps);
  heap_pop (queue);
  list->first = queue->first_free_instant;
  queue->first_free_instant = instant;
  if (queue->last == instant)
    queue->last = NO_INDEX;
}

bool
pod_packet_queue_check (const PodPacketQueue *queue)
{
  for (uint32_t i = 0; i < queue->n_heap; i++)
    {
      const HeapEntry *entry = &queue->heap[i];

      if (i > 0 && queue->heap[(i - 1) / ARITY].at_ps >= entry->at_ps)
        return false;
      if (queue->instants[entry->instant].at_ps != entry->at_ps
          || queue->instants[entry->instant].first == NO_INDEX
          || table_find (queue, entry->at_ps) != entry->instant)
        return false;
    }
  return true;
}
