#include "network/message-set.h"

#include <string.h>

/* Key of a route: its links, length first. */
static guint
route_hash (const void *key)
{
  const uint32_t *words = key;
  uint32_t hash = 2166136261U; /* FNV-1a, by words */

  for (uint32_t i = 0; i <= words[0]; i++)
    hash = (hash ^ words[i]) * 16777619U;
  return hash;
}

static gboolean
route_equal (const void *a, const void *b)
{
  const uint32_t *left = a, *right = b;

  return left[0] == right[0] && memcmp (left, right, (left[0] + 1) * sizeof *left) == 0;
}

PodMessageSet *
pod_message_set_new (void)
{
  PodMessageSet *set = g_new0 (PodMessageSet, 1);

  set->links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  set->routes = g_array_new (FALSE, FALSE, sizeof (PodMessageRoute));
  set->streams = g_array_new (FALSE, FALSE, sizeof (PodMessageStream));
  set->deps = g_array_new (FALSE, FALSE, sizeof (PodMessageDep));
  set->by_links = g_hash_table_new_full (route_hash, route_equal, g_free, NULL);
  return set;
}

void
pod_message_set_free (PodMessageSet *set)
{
  if (set == NULL)
    return;
  g_array_unref (set->links);
  g_array_unref (set->routes);
  g_array_unref (set->streams);
  g_array_unref (set->deps);
  g_hash_table_unref (set->by_links);
  g_free (set);
}

uint32_t
pod_message_set_route (PodMessageSet *set, const uint32_t *links, uint32_t n)
{
  g_autofree uint32_t *key = g_new (uint32_t, (size_t) n + 1);
  PodMessageRoute route = { set->links->len, n };
  void *known;

  key[0] = n;
  if (n > 0)
    memcpy (key + 1, links, n * sizeof *links);
  if (g_hash_table_lookup_extended (set->by_links, key, NULL, &known))
    return GPOINTER_TO_UINT (known);
  g_array_append_vals (set->links, key + 1, n);
  g_array_append_val (set->routes, route);
  g_hash_table_insert (set->by_links, g_steal_pointer (&key),
                       GUINT_TO_POINTER (set->routes->len - 1));
  return set->routes->len - 1;
}

uint32_t
pod_message_set_stream (PodMessageSet *set, uint32_t route, uint64_t bytes, uint32_t n_messages,
                        uint32_t n_chunks)
{
  PodMessageStream stream = {
    .bytes = bytes,
    .route = route,
    .n_messages = n_messages * n_chunks,
    .period = n_messages,
    .first_dep = set->deps->len,
  };

  g_return_val_if_fail (route < set->routes->len && n_messages > 0 && n_chunks > 0, 0);
  g_return_val_if_fail ((uint64_t) n_messages * n_chunks < UINT32_MAX, 0);
  g_array_append_val (set->streams, stream);
  set->n_messages += stream.n_messages;
  return set->streams->len - 1;
}

void
pod_message_set_after (PodMessageSet *set, PodMessageDep dep)
{
  g_return_if_fail (set->streams->len > 0);
  g_array_append_val (set->deps, dep);
  g_array_index (set->streams, PodMessageStream, set->streams->len - 1).n_deps++;
}

void
pod_message_set_link_bytes (const PodMessageSet *set, uint32_t n_links, uint64_t *out)
{
  memset (out, 0, n_links * sizeof *out);
  for (guint s = 0; s < set->streams->len; s++)
    {
      const PodMessageStream *stream = &g_array_index (set->streams, PodMessageStream, s);
      const PodMessageRoute *route = &g_array_index (set->routes, PodMessageRoute, stream->route);

      for (uint32_t i = 0; i < route->n; i++)
        {
          uint32_t link = g_array_index (set->links, uint32_t, route->first + i);

          g_assert (link < n_links);
          out[link] += stream->bytes;
        }
    }
}

bool
pod_message_set_check (const PodMessageSet *set)
{
  for (guint s = 0; s < set->streams->len; s++)
    {
      const PodMessageStream *stream = &g_array_index (set->streams, PodMessageStream, s);

      if (stream->route >= set->routes->len || stream->n_messages == 0
          || stream->n_messages % stream->period != 0
          || stream->first_dep + stream->n_deps > set->deps->len)
        return false;
      for (uint32_t i = 0; i < stream->n_deps; i++)
        {
          const PodMessageDep *dep
              = &g_array_index (set->deps, PodMessageDep, stream->first_dep + i);
          const PodMessageStream *other;

          if (dep->stream >= set->streams->len)
            return false;
          other = &g_array_index (set->streams, PodMessageStream, dep->stream);
          if (other->n_messages / other->period != stream->n_messages / stream->period)
            return false;
          /* Step k waits for step k - lag, which must exist there */
          if (dep->after == POD_AFTER_STEP && stream->period > dep->lag
              && stream->period - dep->lag > other->period)
            return false;
        }
    }
  return true;
}
