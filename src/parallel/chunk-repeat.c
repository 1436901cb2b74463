#include "parallel/chunk-private.h"

/* Layers that repeat: one that is like the one before gets its ops once more, counted on. */

bool
pod_chunk_is_run_again (const PodChunk *chunk, guint index)
{
  const PodUnitPlan *unit = pod_chunk_unit (chunk, index);

  return unit->makes != 0
         && (index + 1 == chunk->units->len || pod_chunk_unit (chunk, index + 1)->makes == 0 || pod_chunk_unit (chunk, index + 1)->group_first != unit->group_first);
}

PodStanding
pod_chunk_stand (const PodChunk *chunk, uint32_t value)
{
  return (PodStanding){ .mark = pod_builder_mark (&chunk->emitter->builder), .value = value, .buckets = { chunk->buckets[0], chunk->buckets[1] } };
}

/* Whether @now is @before, @n ops later. */
static bool
is_op_later (uint32_t before, uint32_t now, uint32_t n)
{
  return before == POD_NO_OP || now == POD_NO_OP ? before == now : now - before == n;
}

static bool
is_standing_later (const PodStanding *before, const PodStanding *now, uint32_t n)
{
  bool is_later = is_op_later (before->value, now->value, n);

  for (unsigned b = 0; b < G_N_ELEMENTS (now->buckets); b++)
    {
      const PodBucket *x = &before->buckets[b];
      const PodBucket *y = &now->buckets[b];

      is_later = is_later && x->bytes == y->bytes && (x->bytes == 0 || is_op_later (x->after, y->after, n));
    }
  return is_later;
}

/* How many units back gathers of weights and copies from the host wait for an op. */
static guint
reach (const PodChunk *chunk, const PodUnitPlan *unit)
{
  const PodEmitter *emitter = chunk->emitter;
  const bool has_gathers = emitter->fsdp_comm != POD_NO_COMM || emitter->experts.fsdp_comm != POD_NO_COMM;

  return MAX (has_gathers ? emitter->job->prefetch + 1 : 0, unit->offload_bytes != 0 ? 2 : 0);
}

bool
pod_chunk_is_repeated (const PodChunk *chunk, guint index, int step, const PodStanding *before, const PodStanding *now, const GArray *last_of)
{
  const PodUnitPlan *unit = pod_chunk_unit (chunk, index);
  const PodUnitPlan *last = pod_chunk_unit (chunk, index - (guint) step);
  const uint32_t n = now->mark.n_ops - before->mark.n_ops;
  const guint position = last_of->len;
  const guint most = reach (chunk, unit);

  if (position < MAX (most + 1, 2) || index == 0 || index + 1 == chunk->units->len || unit->kind != POD_UNIT_LAYER || !pod_units_are_alike (unit, last))
    return false;
  if (pod_chunk_is_run_again (chunk, index) != pod_chunk_is_run_again (chunk, index - (guint) step) || unit->group_first - index != last->group_first - (index - (guint) step))
    return false;
  for (guint p = position - most; p < position; p++)
    if (!is_op_later (g_array_index (last_of, uint32_t, p - 1), g_array_index (last_of, uint32_t, p), n))
      return false;
  return is_standing_later (before, now, n);
}

static uint32_t
later (uint32_t op, uint32_t n)
{
  return op == POD_NO_OP ? POD_NO_OP : op + n;
}

void
pod_chunk_repeat (PodChunk *chunk, guint index, const PodStanding *before, PodPass *last)
{
  const PodUnitPlan *unit = pod_chunk_unit (chunk, index);
  const uint32_t n = pod_builder_repeat (&chunk->emitter->builder, before->mark, unit->layer - last->unit->layer);

  last->unit = unit;
  last->weights = later (last->weights, n);
  last->expert_weights = later (last->expert_weights, n);
  last->value = later (last->value, n);
  last->gathered = later (last->gathered, n);
  last->first_compute = later (last->first_compute, n);
  last->last_compute = later (last->last_compute, n);
  for (unsigned b = 0; b < G_N_ELEMENTS (chunk->buckets); b++)
    chunk->buckets[b].after = later (chunk->buckets[b].after, n);
}
