#include "collective/messages-private.h"

/* island-reduce.c as messages: chunk by chunk up the chain of each island, round the ring of their
 * first members, and down the chains again. */

/* A chain of an island, towards its first member or away from it. */
static bool
add_chain (PodMessageBuilder *builder, const PodIslands *islands, uint32_t island, bool is_up,
           PodArrivals *at_first, uint32_t n_chunks, GError **error)
{
  uint32_t first = islands->first[island], n = islands->first[island + 1] - first;

  for (uint32_t i = 0; i + 1 < n; i++)
    {
      uint32_t near = first + (is_up ? n - 2 - i : i), route, stream;

      if (!pod_message_route (builder, islands->order[is_up ? near + 1 : near],
                              islands->order[is_up ? near : near + 1], &route, error))
        return false;
      stream = pod_message_set_stream (builder->set, route, builder->payload_bytes, 1, n_chunks);
      if (i > 0)
        pod_message_after (builder, stream - 1, 0);
      else if (!is_up)
        pod_message_after_arrivals (builder, at_first, island);
      if (is_up && near == first)
        pod_arrivals_add (at_first, island, stream);
    }
  return true;
}

/* The first members' ring: 2 (N - 1) steps; *at_first: what they wait for, then what they get. */
static bool
add_ring (PodMessageBuilder *builder, const PodIslands *islands, PodArrivals *at_first,
          uint32_t n_chunks, GError **error)
{
  uint32_t n = islands->n, base = builder->set->streams->len, parts = pod_message_parts (n_chunks);
  uint64_t bytes = pod_message_bytes (builder, 2 * (n - 1.0) / n);
  g_auto (PodArrivals) out = { 0 };

  pod_arrivals_init (&out, n);
  for (uint32_t j = 0; j < n; j++)
    {
      uint32_t route;

      if (!pod_message_route (builder, islands->order[islands->first[j]],
                              islands->order[islands->first[(j + 1) % n]], &route, error))
        return false;
      pod_message_set_stream (builder->set, route, bytes, 2 * (n - 1) * parts, n_chunks);
      pod_message_after (builder, base + (j + n - 1) % n, parts);
      pod_message_after_arrivals (builder, at_first, j);
      pod_arrivals_add (&out, (j + 1) % n, base + j);
    }
  pod_arrivals_clear (at_first);
  pod_arrivals_init (at_first, n);
  pod_arrivals_take (at_first, &out);
  return true;
}

bool
pod_message_islands (PodMessageBuilder *builder, GError **error)
{
  g_auto (PodIslands) islands = { 0 };
  g_auto (PodArrivals) at_first = { 0 };
  uint32_t n_chunks;

  pod_islands_init (&islands, builder->request);
  n_chunks = pod_message_chain_chunks (builder, builder->plan->n_steps,
                                       4 * (uint64_t) builder->request->group->n_devices);
  pod_arrivals_init (&at_first, islands.n);
  for (uint32_t j = 0; j < islands.n; j++)
    if (!add_chain (builder, &islands, j, true, &at_first, n_chunks, error))
      return false;
  if (!add_ring (builder, &islands, &at_first, n_chunks, error))
    return false;
  for (uint32_t j = 0; j < islands.n; j++)
    if (!add_chain (builder, &islands, j, false, &at_first, n_chunks, error))
      return false;
  return true;
}
