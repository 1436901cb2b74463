#include "collective/messages-private.h"

/* Rings and chains over a list of members: block-ring.c and route-ring.c as messages. */

void
pod_message_ring (PodMessageBuilder *builder, const uint32_t *routes, uint32_t n, uint64_t bytes,
                  uint32_t n_messages)
{
  uint32_t first = builder->set->streams->len;

  for (uint32_t i = 0; i < n; i++)
    {
      pod_message_set_stream (builder->set, routes[i], bytes, n_messages, 1);
      pod_message_after (builder, first + (i + n - 1) % n, 1);
    }
}

/* The routes from each member to the next, or (@is_reverse) from each to the one before, in the
 * order of travel. */
static bool
list_routes (PodMessageBuilder *builder, bool is_reverse, uint32_t *out, GError **error)
{
  const PodGroup *group = builder->request->group;
  uint32_t n = group->n_devices;

  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t from = is_reverse ? (n - i) % n : i;
      uint32_t to = is_reverse ? (2 * n - i - 1) % n : (i + 1) % n;

      if (!pod_message_route (builder, group->devices[from], group->devices[to], &out[i], error))
        return false;
    }
  return true;
}

static unsigned
twice (const PodMessageBuilder *builder)
{
  return builder->request->kind == POD_ALL_REDUCE ? 2 : 1;
}

/* Broadcast 0 > 1 > ... > n-1; reduce n-1 > ... > 1 > 0. */
static bool
add_chain (PodMessageBuilder *builder, GError **error)
{
  const PodGroup *group = builder->request->group;
  uint32_t n = group->n_devices, n_chunks = pod_message_chain_chunks (builder, n - 1, n - 1);
  bool is_reverse = builder->request->kind == POD_REDUCE;

  for (uint32_t i = 0; i + 1 < n; i++)
    {
      uint32_t from = is_reverse ? n - 1 - i : i, to = is_reverse ? n - 2 - i : i + 1, route;
      uint32_t stream;

      if (!pod_message_route (builder, group->devices[from], group->devices[to], &route, error))
        return false;
      stream = pod_message_set_stream (builder->set, route, builder->payload_bytes, 1, n_chunks);
      if (i > 0)
        pod_message_after (builder, stream - 1, 0);
    }
  return true;
}

bool
pod_message_ring_list (PodMessageBuilder *builder, GError **error)
{
  PodCollectiveKind kind = builder->request->kind;
  uint32_t n = builder->request->group->n_devices;
  g_autofree uint32_t *routes = g_new (uint32_t, n);

  if (kind == POD_BROADCAST || kind == POD_REDUCE)
    return add_chain (builder, error);
  if (!list_routes (builder, false, routes, error))
    return false;
  pod_message_ring (builder, routes, n,
                    pod_message_bytes (builder, twice (builder) * (n - 1.0) / n),
                    twice (builder) * (n - 1));
  return true;
}

bool
pod_message_bidir_list (PodMessageBuilder *builder, GError **error)
{
  uint32_t n = builder->request->group->n_devices;
  g_autofree uint32_t *routes = g_new (uint32_t, n);

  for (unsigned reverse = 0; reverse < 2; reverse++)
    {
      if (!list_routes (builder, reverse == 1, routes, error))
        return false;
      pod_message_ring (builder, routes, n,
                        pod_message_bytes (builder, twice (builder) * (n - 1.0) / (2.0 * n)),
                        twice (builder) * (n / 2));
    }
  return true;
}

/* The route of a step of the block's ring, there and back. */
static bool
block_step (PodMessageBuilder *builder, const PodAxis *const *sides, uint32_t step, uint32_t *out,
            uint32_t *back, GError **error)
{
  const PodAxis *rows = sides[0], *columns = sides[1], *axis;
  uint32_t n = rows->size * columns->size, row, column, next_row, next_column;
  int sign;

  pod_block_ring_position (rows->size, columns->size, step, &row, &column);
  pod_block_ring_position (rows->size, columns->size, (step + 1) % n, &next_row, &next_column);
  axis = row != next_row ? rows : columns;
  sign = next_row > row || next_column > column ? +1 : -1;
  return pod_message_hop_route (
             builder, &(PodAxisHop){ axis, row * rows->span + column * columns->span, sign }, out,
             error)
         && pod_message_hop_route (
             builder,
             &(PodAxisHop){ axis, next_row * rows->span + next_column * columns->span, -sign },
             back, error);
}

bool
pod_message_block_ring (PodMessageBuilder *builder, GError **error)
{
  const PodAxis *axes = builder->request->axes;
  const PodAxis *rows = axes[0].size % 2 == 0 ? &axes[0] : &axes[1];
  const PodAxis *columns = rows == &axes[0] ? &axes[1] : &axes[0];
  uint32_t n = rows->size * columns->size;
  g_autofree uint32_t *out = g_new (uint32_t, n);
  g_autofree uint32_t *back = g_new (uint32_t, n);
  uint64_t bytes = pod_message_bytes (builder, twice (builder) * (n - 1.0) / (2.0 * n));

  for (uint32_t step = 0; step < n; step++)
    if (!block_step (builder, (const PodAxis *const[]){ rows, columns }, step, &out[step],
                     &back[n - 1 - step], error))
      return false;
  pod_message_ring (builder, out, n, bytes, twice (builder) * (n / 2));
  pod_message_ring (builder, back, n, bytes, twice (builder) * (n / 2));
  return true;
}
