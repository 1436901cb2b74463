#include <string.h>

#include "base/error.h"
#include "network/packet-private.h"

/* A message set made ready for a network: the buffers and lanes of its routes, ways around dead
 * links, and who waits for whom. */

enum
{
  MOST_PACKET_HOPS = 1 << 23, /* that a job is cut into, where the cutting is free */
};

/* Links by the vertex that they leave, dead ones left out. */
static void
index_links (PodPacketNetwork *network)
{
  uint32_t *first;

  if (network->out_first != NULL)
    return;
  network->out_first = first = g_new0 (uint32_t, (size_t) network->n_vertices + 2);
  network->out_links = g_new (uint32_t, network->n_links + 1);
  for (uint32_t i = 0; i < network->n_links; i++)
    if (!network->ports[i].is_dead)
      first[network->ports[i].link.from + 2]++;
  for (uint32_t v = 0; v < network->n_vertices; v++)
    first[v + 2] += first[v + 1];
  for (uint32_t i = 0; i < network->n_links; i++)
    if (!network->ports[i].is_dead)
      network->out_links[first[network->ports[i].link.from + 1]++] = i;
}

/* Breadth first from @from: the link by which each vertex is reached, in @by. */
static bool
search_way (const PodPacketNetwork *network, uint32_t from, uint32_t to, uint32_t *by)
{
  g_autofree uint32_t *line = g_new (uint32_t, (size_t) network->n_vertices + 1);
  uint32_t first = 0, n = 0;

  memset (by, 0xff, network->n_vertices * sizeof *by);
  line[n++] = from;
  while (first < n && by[to] == UINT32_MAX)
    {
      uint32_t at = line[first++];

      for (uint32_t i = network->out_first[at]; i < network->out_first[at + 1]; i++)
        {
          uint32_t link = network->out_links[i], next = network->ports[link].link.to;

          if (next == from || by[next] != UINT32_MAX)
            continue;
          by[next] = link;
          line[n++] = next;
        }
    }
  return by[to] != UINT32_MAX;
}

static bool
add_detour (PodPacketNetwork *network, PodPacketJob *job, uint32_t from, uint32_t to,
            GError **error)
{
  g_autofree uint32_t *by = g_new (uint32_t, (size_t) network->n_vertices + 1);
  guint first = job->hops->len, n;

  index_links (network);
  if (!search_way (network, from, to, by))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                   "dead links leave no way from vertex %u to vertex %u", from, to);
      return false;
    }
  for (uint32_t at = to; at != from; at = network->ports[by[at]].link.from)
    {
      PodHop hop = { by[at], UINT8_MAX };

      g_array_append_val (job->hops, hop);
    }
  n = job->hops->len - first;
  for (guint i = 0; i < n / 2; i++) /* found from its end */
    {
      PodHop *a = &g_array_index (job->hops, PodHop, first + i);
      PodHop *b = &g_array_index (job->hops, PodHop, first + n - 1 - i);
      PodHop kept = *a;

      *a = *b;
      *b = kept;
    }
  network->counts.n_rerouted++;
  return true;
}

static bool
add_route (PodPacketNetwork *network, PodPacketJob *job, uint32_t index, GError **error)
{
  const PodMessageSet *set = job->set;
  const PodMessageRoute *stored = &g_array_index (set->routes, PodMessageRoute, index);
  const uint32_t *links = &g_array_index (set->links, uint32_t, stored->first);
  PodPacketRoute *route = &job->routes[index];
  bool is_dead = false;

  for (uint32_t i = 0; i < stored->n; i++)
    {
      g_return_val_if_fail (links[i] < network->n_links, false);
      is_dead |= network->ports[links[i]].is_dead;
    }
  route->first = job->hops->len;
  if (is_dead
      && !add_detour (network, job, network->ports[links[0]].link.from,
                      network->ports[links[stored->n - 1]].link.to, error))
    return false;
  for (uint32_t i = 0; i < stored->n && !is_dead; i++)
    {
      PodHop hop = { links[i], UINT8_MAX };

      g_array_append_val (job->hops, hop);
    }
  route->n = job->hops->len - route->first;
  pod_packet_route_prepare (network, route, &g_array_index (job->hops, PodHop, route->first),
                            is_dead);
  return true;
}

/* Streams by those that they wait for. */
static void
index_dependents (PodPacketJob *job)
{
  const PodMessageSet *set = job->set;
  guint n = set->streams->len;
  uint32_t *first = g_new0 (uint32_t, (size_t) n + 2);

  job->first_dependent = first;
  job->dependents = g_new (uint32_t, (size_t) set->deps->len + 1);
  for (guint i = 0; i < set->deps->len; i++)
    first[g_array_index (set->deps, PodMessageDep, i).stream + 2]++;
  for (guint s = 2; s <= n + 1; s++)
    first[s] += first[s - 1];
  for (guint s = 0; s < n; s++)
    {
      const PodMessageStream *stream = &g_array_index (set->streams, PodMessageStream, s);

      for (uint32_t i = 0; i < stream->n_deps; i++)
        {
          uint32_t other = g_array_index (set->deps, PodMessageDep, stream->first_dep + i).stream;

          job->dependents[first[other + 1]++] = s;
        }
    }
}

/* Long messages are cut into fewer packets where there are very many. */
static uint32_t
choose_packets (const PodPacketNetwork *network, const PodPacketJob *job)
{
  uint64_t n_hops = 0;

  for (guint s = 0; s < job->set->streams->len; s++)
    {
      const PodMessageStream *stream = &g_array_index (job->set->streams, PodMessageStream, s);

      n_hops += (uint64_t) stream->n_messages * job->routes[stream->route].n;
    }
  if (n_hops == 0)
    return network->options.n_packets;
  return (uint32_t) CLAMP (MOST_PACKET_HOPS / n_hops, 1, network->options.n_packets);
}

PodPacketJob *
pod_packet_job_new (PodPacketNetwork *network, const PodMessageSet *set, GError **error)
{
  g_autoptr (PodPacketJob) job = g_new0 (PodPacketJob, 1);

  job->network = network;
  job->set = set;
  job->hops = g_array_sized_new (FALSE, FALSE, sizeof (PodHop), set->links->len);
  job->routes = g_new0 (PodPacketRoute, set->routes->len + 1);
  for (guint r = 0; r < set->routes->len; r++)
    if (!add_route (network, job, r, error))
      return NULL;
  index_dependents (job);
  job->n_packets = choose_packets (network, job);
  return g_steal_pointer (&job);
}

void
pod_packet_job_free (PodPacketJob *job)
{
  if (job == NULL)
    return;
  g_clear_pointer (&job->hops, g_array_unref);
  g_free (job->routes);
  g_free (job->first_dependent);
  g_free (job->dependents);
  g_free (job);
}
