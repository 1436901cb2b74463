#include "collective/messages-private.h"

#include <string.h>

#include "base/error.h"
#include "network/packet.h"

/* Messages straight to their readers: send, permute, all-to-all, and the tree of routes. */

enum
{
  MOST_ROUTE_LINKS = 1 << 27, /* of all pairs of an all-to-all: 512 MB */
};

bool
pod_message_send (PodMessageBuilder *builder, GError **error)
{
  const PodGroup *group = builder->request->group;
  uint32_t n = builder->request->kind == POD_SEND ? 1 : group->n_devices, route;

  for (uint32_t i = 0; i < n; i++)
    {
      if (!pod_message_route (builder, group->devices[i],
                              group->devices[(i + 1) % group->n_devices], &route, error))
        return false;
      pod_message_set_stream (builder->set, route, builder->payload_bytes, 1, 1);
    }
  return true;
}

/* One stream for each link of the union of the routes; each waits for the link before it on the
 * first route that has it, and in a reduction for those before it on all of them. */
bool
pod_message_route_tree (PodMessageBuilder *builder, GError **error)
{
  PodPlanRequest *request = builder->request;
  const PodGroup *group = request->group;
  bool is_reverse = request->kind == POD_REDUCE;
  g_autofree uint32_t *stream_of = g_new (uint32_t, request->topology->n_links);
  g_autoptr (GArray) used = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autoptr (GArray) pairs
      = g_array_new (FALSE, FALSE, sizeof (uint32_t)); /* link, one before it */
  uint32_t longest = 1, n_chunks;

  for (uint32_t i = 0; i < request->topology->n_links; i++)
    stream_of[i] = UINT32_MAX;
  for (uint32_t i = 1; i < group->n_devices; i++)
    {
      if (!pod_route_find (request, group->devices[is_reverse ? i : 0],
                           group->devices[is_reverse ? 0 : i], error))
        return false;
      longest = MAX (longest, request->route->len);
      for (guint k = 0; k < request->route->len; k++)
        {
          uint32_t link = g_array_index (request->route, uint32_t, k);
          bool is_new = stream_of[link] == UINT32_MAX;

          if (is_new)
            {
              stream_of[link] = used->len;
              g_array_append_val (used, link);
            }
          if (k > 0 && (is_new || is_reverse))
            {
              g_array_append_val (pairs, link);
              link = g_array_index (request->route, uint32_t, k - 1);
              g_array_append_val (pairs, link);
            }
        }
    }
  n_chunks = pod_message_chain_chunks (builder, longest, used->len);
  for (guint u = 0; u < used->len; u++)
    {
      uint32_t link = g_array_index (used, uint32_t, u);

      pod_message_set_stream (builder->set, pod_message_set_route (builder->set, &link, 1),
                              builder->payload_bytes, 1, n_chunks);
      for (guint k = 0; k < pairs->len; k += 2)
        if (g_array_index (pairs, uint32_t, k) == link)
          pod_message_after (builder, stream_of[g_array_index (pairs, uint32_t, k + 1)], 0);
    }
  return true;
}

/* ---- all-to-all ---- */

/* The position of @index on the axis, moved by that of @shift. */
static uint32_t
shifted (const PodPlanRequest *request, uint32_t index, uint32_t shift)
{
  uint32_t out = 0;

  if (request->n_axes + request->n_slice_axes == 0)
    return (index + shift) % request->group->n_devices;
  for (unsigned a = 0; a < request->n_axes + request->n_slice_axes; a++)
    {
      const PodAxis *axis = &request->axes[a];

      out += (index / axis->span + shift / axis->span) % axis->size * axis->span;
    }
  return out;
}

/* The machine's route from one member to another, appended to builder->links. */
static bool
append_route (PodMessageBuilder *builder, uint32_t from, uint32_t to, GError **error)
{
  const uint32_t *devices = builder->request->group->devices;
  const GArray *route = builder->request->route;

  if (!pod_route_find (builder->request, devices[from], devices[to], error))
    return false;
  g_array_append_vals (builder->links, route->data, route->len);
  return true;
}

/* One hop ahead on a ring in one direction, which a line closes by the machine's route. */
static bool
append_ahead (PodMessageBuilder *builder, const PodAxis *axis, uint32_t *index, GError **error)
{
  PodAxisHop hop = { axis, *index, +1 };
  uint32_t from = *index;
  bool is_end = from / axis->span % axis->size + 1 == axis->size;

  *index = pod_message_neighbour (&hop);
  return is_end && !axis->is_ring ? append_route (builder, from, *index, error)
                                  : pod_message_append_hop (builder, &hop, error);
}

/* Along one axis of a product of rings and lines, from @index by @shift; where both ways round are
 * equally long, @tie says which. Leaves the links in builder->links. */
static bool
append_axis (PodMessageBuilder *builder, const PodAxis *axis, uint32_t *index, uint32_t to, int tie,
             GError **error)
{
  uint32_t position = *index / axis->span % axis->size, target = to / axis->span % axis->size;
  uint32_t ahead = (target + axis->size - position) % axis->size;
  uint32_t next = *index + target * axis->span - position * axis->span;
  bool is_one_way = strcmp (builder->plan->algorithm, "ring") == 0;
  bool is_plus = axis->is_ring ? 2 * ahead < axis->size || (2 * ahead == axis->size && tie > 0)
                               : target > position;

  if (axis->dim >= POD_DIM_DCN && ahead > 0)
    {
      if (!append_route (builder, *index, next, error))
        return false;
      *index = next;
    }
  while (*index != next)
    {
      PodAxisHop hop = { axis, *index, is_plus ? +1 : -1 };

      if (is_one_way)
        {
          if (!append_ahead (builder, axis, index, error))
            return false;
          continue;
        }
      if (!pod_message_append_hop (builder, &hop, error))
        return false;
      *index = pod_message_neighbour (&hop);
    }
  return true;
}

static bool
append_product (PodMessageBuilder *builder, uint32_t from, uint32_t to, int tie, GError **error)
{
  const PodPlanRequest *request = builder->request;
  unsigned n = request->n_axes + request->n_slice_axes;
  uint32_t index = from;
  uint8_t ranks[3];

  /* Slices first: what comes by a NIC goes on inside. Then the axes of the torus in the order of
   * its routes, and the devices of a chip */
  pod_packet_axis_ranks (request->topology, ranks);
  for (unsigned pass = 0; pass < 5; pass++)
    for (unsigned a = 0; a < n; a++)
      {
        unsigned dim = request->axes[a].dim;
        unsigned turn = dim == POD_DIM_DCN ? 0 : dim == POD_DIM_CORE ? 4 : 1U + ranks[dim];

        if (turn == pass && !append_axis (builder, &request->axes[a], &index, to, tie, error))
          return false;
      }
  return true;
}

/* The route turned round its beginning: the way to @to, if @links lead to its mirror image. */
static bool
append_mirrored (PodMessageBuilder *builder, uint32_t from, const GArray *route)
{
  uint32_t at = from;

  for (guint i = 0; i < route->len; i++)
    {
      PodLink link;
      uint32_t id;

      pod_topology_link (builder->request->topology, g_array_index (route, uint32_t, i), &link);
      if (link.kind != POD_LINK_ICI
          || !pod_topology_torus_link (builder->request->topology, at, link.dim, -link.sign, &id,
                                       &at))
        return false;
      g_array_append_val (builder->links, id);
    }
  return true;
}

/* On a twisted torus, which is the same seen from everywhere: the machine's route, or (@tie < 0)
 * the mirror image of its route to the mirror image. */
static bool
append_twisted (PodMessageBuilder *builder, uint32_t from, uint32_t to, int tie, GError **error)
{
  PodPlanRequest *request = builder->request;
  const uint32_t *devices = request->group->devices;
  uint32_t mirror = devices[from];
  g_autoptr (GArray) there = NULL;

  if (!pod_route_find (request, devices[from], devices[to], error))
    return false;
  if (tie > 0)
    {
      g_array_append_vals (builder->links, request->route->data, request->route->len);
      return true;
    }
  there = g_array_copy (request->route);
  for (guint i = 0; i < there->len; i++)
    {
      PodLink link;
      uint32_t id;

      pod_topology_link (request->topology, g_array_index (there, uint32_t, i), &link);
      if (link.kind == POD_LINK_ICI)
        pod_topology_torus_link (request->topology, mirror, link.dim, -link.sign, &id, &mirror);
    }
  if (pod_route_find (request, devices[from], mirror, error)
      && append_mirrored (builder, devices[from], request->route))
    return true;
  g_array_set_size (builder->links, 0);
  g_array_append_vals (builder->links, there->data, there->len);
  return true;
}

static bool
append_pair (PodMessageBuilder *builder, uint32_t from, uint32_t to, int tie, GError **error)
{
  const PodPlanRequest *request = builder->request;

  g_array_set_size (builder->links, 0);
  if (request->traffic != NULL) /* as its plan: the ways of uneven pairs are not spread */
    return append_route (builder, from, to, error);
  if (request->is_twisted_whole && request->n_slice_axes == 0)
    return append_twisted (builder, from, to, tie, error);
  if (request->n_axes + request->n_slice_axes > 0)
    return append_product (builder, from, to, tie, error);
  return append_route (builder, from, to, error);
}

/* One message, or two halves where two ways are equally short. */
static bool
add_pair (PodMessageBuilder *builder, uint32_t from, uint32_t to, GError **error)
{
  PodMessageSet *set = builder->set;
  uint32_t n = builder->request->group->n_devices, routes[2];
  uint64_t bytes, half;

  if (builder->request->traffic != NULL
      && !(pod_traffic_share (builder->request, from, to) > 0))
    return true;
  for (unsigned k = 0; k < 2; k++)
    {
      if (!append_pair (builder, from, to, k == 0 ? +1 : -1, error))
        return false;
      routes[k] = pod_message_set_route (set, (const uint32_t *) builder->links->data,
                                         builder->links->len);
    }
  /* Cut by receiver, so that the parts add up to the send buffer */
  bytes = builder->payload_bytes / n + (to < builder->payload_bytes % n);
  if (builder->request->traffic != NULL)
    bytes = pod_message_bytes (builder, pod_traffic_share (builder->request, from, to));
  half = routes[0] == routes[1] ? 0 : bytes / 2;
  pod_message_set_stream (set, routes[0], bytes - half, 1, 1);
  if (routes[0] != routes[1])
    pod_message_set_stream (set, routes[1], half, 1, 1);
  return true;
}

/* Coprime to n and near 0.618 n: its multiples are spread evenly. */
static uint32_t
golden_stride (uint32_t n)
{
  uint32_t stride = (uint32_t) (0.6180339887 * n);

  for (stride = MAX (stride, 1);; stride++)
    {
      uint32_t a = n, b = stride;

      while (b != 0)
        {
          uint32_t rest = a % b;

          a = b;
          b = rest;
        }
      if (a == 1)
        return stride;
    }
}

static bool
refuse_pairs (uint64_t n, GError **error)
{
  g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
               "all-to-all over %" G_GUINT64_FORMAT " ranks has %" G_GUINT64_FORMAT
               " pairs: too many for packet mode; --network flow takes them all",
               n, n * (n - 1));
  return false;
}

bool
pod_message_all_to_all (PodMessageBuilder *builder, GError **error)
{
  const PodPlanRequest *request = builder->request;
  uint32_t n = request->group->n_devices, stride = golden_stride (n);

  if ((uint64_t) n * (n - 1) > MOST_ROUTE_LINKS / 2) /* a route has two links at least, but in a chip */
    return refuse_pairs (n, error);
  /* All members send to equally far ones at a time; near and far, ahead and behind in turns */
  for (uint32_t k = 1; k < n; k++)
    for (uint32_t i = 0; i < n; i++)
      {
        uint32_t shift = (uint32_t) ((uint64_t) k * stride % n);

        if (!add_pair (builder, i, shifted (request, i, shift), error))
          return false;
        if (builder->set->links->len > MOST_ROUTE_LINKS)
          return refuse_pairs (n, error);
      }
  return true;
}
