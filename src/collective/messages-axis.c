#include "collective/messages-private.h"

/* axis-exchange.c and axis-tree.c as messages.
 *
 * A stage is a gather or a scatter along one axis, on all its rings or lines at once. The shards of
 * a gather run both ways; step k of a direction passes on what came in step k - 1. In a scatter
 * partial sums run, those for the farthest member first; on a line step k adds to what comes in
 * step k. A stage begins with chunk c when all that the stage before brings of it is there. */

typedef struct
{
  const PodAxis *axis;
  bool is_scatter;
  double volume; /* of the payload, in one ring */
  uint32_t n_chunks;
} Stage;

/* What leaves position @i towards @sign: messages of a chunk, and bytes by volume; 0: nothing. */
static uint32_t
leaving (const Stage *stage, uint32_t i, int sign, double *out_share)
{
  uint32_t n = stage->axis->size, at = sign > 0 ? i : n - 1 - i, n_messages;

  if (stage->axis->dim == POD_DIM_DCN)
    {
      *out_share = sign > 0 ? (n - 1.0) / n : 0;
      return sign > 0 ? n - 1 : 0;
    }
  if (stage->axis->is_ring)
    {
      *out_share = (n - 1.0) / (2.0 * n);
      return n / 2;
    }
  n_messages = at + 1 == n ? 0 : stage->is_scatter ? n - 1 - at : at + 1;
  *out_share = (double) n_messages / n;
  return n_messages;
}

static uint32_t
position_of (const PodAxis *axis, uint32_t index)
{
  return index / axis->span % axis->size;
}

/* Numbers the streams of a stage before they are made: they wait for each other. */
static uint32_t *
number_streams (const PodMessageBuilder *builder, const Stage *stage)
{
  uint32_t n = builder->request->group->n_devices, next = builder->set->streams->len;
  uint32_t *streams = g_new (uint32_t, 2 * (size_t) n);

  for (uint32_t index = 0; index < n; index++)
    for (unsigned minus = 0; minus < 2; minus++)
      {
        double share;

        streams[2 * (size_t) index + minus]
            = leaving (stage, position_of (stage->axis, index), minus ? -1 : +1, &share) > 0
                  ? next++
                  : UINT32_MAX;
      }
  return streams;
}

/* Adds a stage. @before: what its first steps wait for; @out: what it brings. */
static bool
add_stage (PodMessageBuilder *builder, const Stage *stage, const PodArrivals *before,
           PodArrivals *out, GError **error)
{
  uint32_t n = builder->request->group->n_devices;
  g_autofree uint32_t *streams = number_streams (builder, stage);

  for (uint32_t index = 0; index < n; index++)
    for (unsigned minus = 0; minus < 2; minus++)
      {
        PodAxisHop hop = { stage->axis, index, minus ? -1 : +1 };
        PodAxisHop back = { stage->axis, index, minus ? +1 : -1 };
        uint32_t stream = streams[2 * (size_t) index + minus], route, behind;
        uint32_t n_messages, parts = pod_message_parts (stage->n_chunks);
        double share;

        if (stream == UINT32_MAX)
          continue;
        n_messages = leaving (stage, position_of (stage->axis, index), hop.sign, &share);
        if (!pod_message_hop_route (builder, &hop, &route, error))
          return false;
        pod_message_set_stream (builder->set, route,
                                pod_message_bytes (builder, share * stage->volume),
                                n_messages * parts, stage->n_chunks);
        behind = streams[2 * (size_t) pod_message_neighbour (&back) + minus];
        if (behind != UINT32_MAX)
          pod_message_after (builder, behind,
                             stage->is_scatter && !stage->axis->is_ring ? 0 : parts);
        pod_message_after_arrivals (builder, before, index);
        pod_arrivals_add (out, pod_message_neighbour (&hop), stream);
      }
  return true;
}

/* The stages in the order of a gather: slices, then each part over the axes of the torus, then the
 * devices of the chips. */
typedef struct
{
  unsigned n_torus;
  const PodAxis *torus[POD_MAX_FACTORS];
  unsigned n_cores;
  const PodAxis *cores[POD_MAX_FACTORS];
  double weights[POD_MAX_FACTORS];
  uint32_t n_chunks;
  bool is_scatter;
} Exchange;

/* One part along all axes of the torus; a scatter goes backwards. */
static bool
add_part (PodMessageBuilder *builder, const Exchange *exchange, unsigned r,
          const PodArrivals *before, PodArrivals *out, GError **error)
{
  unsigned n = exchange->n_torus;
  g_auto (PodArrivals) here = { 0 };
  double gathered[POD_MAX_FACTORS], product = exchange->weights[r];

  pod_arrivals_init (&here, builder->request->group->n_devices);
  for (unsigned k = 0; k < n; k++)
    {
      product *= exchange->torus[(r + 1 + k) % n]->size;
      gathered[k] = product / builder->request->n_in_slice;
    }
  for (unsigned k = 0; k < n; k++)
    {
      unsigned step = exchange->is_scatter ? n - 1 - k : k;
      Stage stage = { .axis = exchange->torus[(r + 1 + step) % n],
                      .is_scatter = exchange->is_scatter,
                      .volume = gathered[step],
                      .n_chunks = exchange->n_chunks };
      g_auto (PodArrivals) next = { 0 };

      pod_arrivals_init (&next, builder->request->group->n_devices);
      if (!add_stage (builder, &stage, k == 0 ? before : &here, &next, error))
        return false;
      /* A line brings its ends nothing from one side, and nothing at all is not waited for */
      pod_arrivals_clear (&here);
      pod_arrivals_init (&here, builder->request->group->n_devices);
      pod_arrivals_take (&here, &next);
    }
  pod_arrivals_take (out, &here);
  return true;
}

static bool
add_torus (PodMessageBuilder *builder, const Exchange *exchange, PodArrivals *arrivals,
           GError **error)
{
  g_auto (PodArrivals) out = { 0 };

  if (exchange->n_torus == 0)
    return true;
  pod_arrivals_init (&out, builder->request->group->n_devices);
  for (unsigned r = 0; r < exchange->n_torus; r++)
    if (exchange->weights[r] > 0 && !add_part (builder, exchange, r, arrivals, &out, error))
      return false;
  pod_arrivals_clear (arrivals);
  pod_arrivals_init (arrivals, builder->request->group->n_devices);
  pod_arrivals_take (arrivals, &out);
  return true;
}

static bool
add_alone (PodMessageBuilder *builder, const Stage *stage, PodArrivals *arrivals, GError **error)
{
  g_auto (PodArrivals) out = { 0 };

  pod_arrivals_init (&out, builder->request->group->n_devices);
  if (!add_stage (builder, stage, arrivals, &out, error))
    return false;
  pod_arrivals_clear (arrivals);
  pod_arrivals_init (arrivals, builder->request->group->n_devices);
  pod_arrivals_take (arrivals, &out);
  return true;
}

static bool
add_slices (PodMessageBuilder *builder, const Exchange *exchange, PodArrivals *arrivals,
            GError **error)
{
  const PodPlanRequest *request = builder->request;
  double volumes[POD_MAX_FACTORS], gathered = 1;

  for (unsigned a = 0; a < request->n_slice_axes; a++)
    {
      gathered *= request->axes[request->n_axes + a].size;
      volumes[a] = gathered / ((double) request->n_slices * request->n_in_slice);
    }
  for (unsigned k = 0; k < request->n_slice_axes; k++)
    {
      unsigned a = exchange->is_scatter ? request->n_slice_axes - 1 - k : k;
      Stage stage = { .axis = &request->axes[request->n_axes + a],
                      .is_scatter = exchange->is_scatter,
                      .volume = volumes[a],
                      .n_chunks = exchange->n_chunks };

      if (!add_alone (builder, &stage, arrivals, error))
        return false;
    }
  return true;
}

static bool
add_cores (PodMessageBuilder *builder, const Exchange *exchange, PodArrivals *arrivals,
           GError **error)
{
  for (unsigned c = 0; c < exchange->n_cores; c++)
    {
      Stage stage = { .axis = exchange->cores[c],
                      .is_scatter = exchange->is_scatter,
                      .volume = 1,
                      .n_chunks = exchange->n_chunks };

      if (!add_alone (builder, &stage, arrivals, error))
        return false;
    }
  return true;
}

/* That a member sends, on the way of one chunk: both ways, each in two parts, on each axis of the
 * torus once for each of @n_parts. */
static uint64_t
messages_of_chunk (const PodPlanRequest *request, unsigned n_parts)
{
  uint64_t n = 0;

  for (unsigned a = 0; a < request->n_axes + request->n_slice_axes; a++)
    n += 2 * 2 * (uint64_t) pod_axis_steps (&request->axes[a])
         * (request->axes[a].dim < POD_DIM_DCN ? n_parts : 1);
  return request->kind == POD_ALL_REDUCE ? 2 * n : n;
}

static void
find_exchange (PodMessageBuilder *builder, PodPlanRequest *request, Exchange *out)
{
  PodAxisShape shapes[POD_MAX_FACTORS] = { 0 };
  unsigned n_stages = request->n_slice_axes, n_parts = 1;

  *out = (Exchange){ 0 };
  for (unsigned a = 0; a < request->n_axes; a++)
    {
      if (request->axes[a].dim < POD_DIM_DCN)
        out->torus[out->n_torus++] = &request->axes[a];
      else
        out->cores[out->n_cores++] = &request->axes[a];
      pod_axis_shape_init (&shapes[a], &request->axes[a], request->kind);
    }
  if (request->n_axes > 0)
    pod_axis_split (request, shapes, out->weights);
  for (unsigned a = 0; a < request->n_axes; a++)
    pod_axis_shape_clear (&shapes[a]);
  n_parts = MAX (out->n_torus, 1);
  n_stages += n_parts * out->n_torus + out->n_cores;
  /* One stage has nothing to overlap with; both halves of an all-reduce on a line have */
  out->n_chunks = 1;
  if (n_stages > 1 || (request->kind == POD_ALL_REDUCE && !request->axes[0].is_ring))
    out->n_chunks = pod_message_stage_chunks (builder, (uint64_t) request->group->n_devices
                                                           * messages_of_chunk (request, n_parts));
  if (builder->n_chunks > 0)
    out->n_chunks = builder->n_chunks;
}

/* *arrivals: what it waits for, then what it brings. */
static bool
add_exchange (PodMessageBuilder *builder, PodArrivals *arrivals, GError **error)
{
  PodPlanRequest *request = builder->request;
  PodCollectiveKind kind = request->kind;
  Exchange exchange;

  /* On a twist the steps go round as on rings, whichever way they close */
  for (unsigned a = 0; a < request->n_axes && request->is_twisted_whole; a++)
    if (request->axes[a].dim < POD_DIM_DCN)
      request->axes[a].is_ring = true;
  find_exchange (builder, request, &exchange);
  exchange.is_scatter = true;
  if (kind != POD_ALL_GATHER
      && (!add_cores (builder, &exchange, arrivals, error)
          || !add_torus (builder, &exchange, arrivals, error)
          || !add_slices (builder, &exchange, arrivals, error)))
    return false;
  exchange.is_scatter = false;
  return kind == POD_REDUCE_SCATTER
         || (add_slices (builder, &exchange, arrivals, error)
             && add_torus (builder, &exchange, arrivals, error)
             && add_cores (builder, &exchange, arrivals, error));
}

bool
pod_message_axis_exchange (PodMessageBuilder *builder, GError **error)
{
  g_auto (PodArrivals) arrivals = { 0 };

  pod_arrivals_init (&arrivals, builder->request->group->n_devices);
  return add_exchange (builder, &arrivals, error);
}

/* ---- idle axes ---- */

/* An exchange of @kind over @n axes from @first on, of @share of the payload. */
static bool
add_part_of_axes (PodMessageBuilder *whole, unsigned first, unsigned n, PodCollectiveKind kind,
                  double share, PodArrivals *arrivals, GError **error)
{
  PodPlanRequest request = *whole->request;
  PodMessageBuilder builder = *whole;
  bool is_good;

  request.kind = kind;
  request.n_axes = n;
  request.n_in_slice = 1;
  for (unsigned a = 0; a < n; a++)
    {
      request.axes[a] = whole->request->axes[first + a];
      request.n_in_slice *= request.axes[a].size;
    }
  builder.request = &request;
  builder.payload_bytes = pod_message_bytes (whole, share);
  is_good = add_exchange (&builder, arrivals, error);
  whole->request->route = request.route;
  return is_good;
}

/* borrow.c as messages: a gather over all axes; of a reduction one part over the own axes alone, and
 * one that each copy does 1/Z of and the copies then gather. */
bool
pod_message_borrow (PodMessageBuilder *builder, GError **error)
{
  const PodPlanRequest *request = builder->request;
  unsigned n_own = request->n_axes - request->n_idle;
  PodAxisShape shapes[POD_MAX_FACTORS] = { 0 };
  g_auto (PodArrivals) alone = { 0 };
  g_auto (PodArrivals) shared = { 0 };
  double part, copies = 1, left = 1;

  if (request->kind == POD_ALL_GATHER)
    return pod_message_axis_exchange (builder, error);
  for (unsigned a = 0; a < request->n_axes; a++)
    {
      pod_axis_shape_init (&shapes[a], &request->axes[a],
                           a < n_own ? request->kind : POD_ALL_GATHER);
      *(a < n_own ? &left : &copies) *= request->axes[a].size;
    }
  left = request->kind == POD_REDUCE_SCATTER ? 1 / left : 1;
  part = pod_borrow_mix (request, shapes);
  for (unsigned a = 0; a < request->n_axes; a++)
    pod_axis_shape_clear (&shapes[a]);
  pod_arrivals_init (&alone, request->group->n_devices);
  pod_arrivals_init (&shared, request->group->n_devices);
  builder->n_chunks
      = pod_message_stage_chunks (builder, (uint64_t) request->group->n_devices
                                               * messages_of_chunk (request, n_own));
  return add_part_of_axes (builder, 0, n_own, request->kind, 1 - part, &alone, error)
         && add_part_of_axes (builder, 0, n_own, request->kind, part / copies, &shared, error)
         && add_part_of_axes (builder, n_own, request->n_idle, POD_ALL_GATHER, part * left, &shared,
                              error);
}

/* ---- broadcast and reduce ---- */

/* The chain of one direction from position 0 of the line of @index 0 on: positions 1, 2, ... away
 * from it. */
typedef struct
{
  const PodAxis *axis;
  bool is_minus;
  uint64_t bytes;
  uint32_t n_chunks;
} Chain;

static bool
add_chain (PodMessageBuilder *builder, const Chain *chain, uint32_t root, const PodArrivals *before,
           PodArrivals *out, GError **error)
{
  bool is_reverse = builder->request->kind == POD_REDUCE;
  uint32_t n = chain->axis->size, at = root;
  g_autofree uint32_t *members = g_new (uint32_t, n);

  for (uint32_t i = 0; i < n; i++)
    {
      members[i] = at;
      at = pod_message_neighbour (&(PodAxisHop){ chain->axis, at, chain->is_minus ? -1 : +1 });
    }
  for (uint32_t i = 0; i + 1 < n; i++)
    {
      uint32_t from = members[is_reverse ? n - 1 - i : i];
      uint32_t to = members[is_reverse ? n - 2 - i : i + 1], route, stream;
      PodAxisHop hop = { chain->axis, from, chain->is_minus == is_reverse ? +1 : -1 };

      if (!pod_message_hop_route (builder, &hop, &route, error))
        return false;
      stream = pod_message_set_stream (builder->set, route, chain->bytes, 1, chain->n_chunks);
      if (i > 0)
        pod_message_after (builder, stream - 1, 0);
      /* Down: the head of the chain waits for its axis before. Up: each member for its own */
      if (i == 0 || is_reverse)
        pod_message_after_arrivals (builder, before, from);
      pod_arrivals_add (out, to, stream);
    }
  return true;
}

static bool
is_root_of (const PodPlanRequest *request, unsigned a, uint32_t index)
{
  for (unsigned b = a; b < request->n_axes + request->n_slice_axes; b++)
    if (position_of (&request->axes[b], index) != 0)
      return false;
  return true;
}

/* All chains along axis @a: from each member that has positions 0 there and on the axes after. */
static bool
add_chains (PodMessageBuilder *builder, unsigned a, uint32_t n_chunks, PodArrivals *arrivals,
            GError **error)
{
  const PodPlanRequest *request = builder->request;
  const PodAxis *axis = &request->axes[a];
  bool is_halved = axis->is_ring && axis->dim != POD_DIM_DCN;
  g_auto (PodArrivals) out = { 0 };

  pod_arrivals_init (&out, request->group->n_devices);
  for (uint32_t index = 0; index < request->group->n_devices; index++)
    for (unsigned minus = 0; minus < (is_halved ? 2 : 1) && is_root_of (request, a, index); minus++)
      {
        uint64_t half = builder->payload_bytes / 2;
        Chain chain = { axis, minus == 1, builder->payload_bytes, n_chunks };

        if (is_halved)
          chain.bytes = minus == 1 ? half : builder->payload_bytes - half;
        if (!add_chain (builder, &chain, index, arrivals, &out, error))
          return false;
      }
  pod_arrivals_take (arrivals, &out);
  return true;
}

bool
pod_message_axis_tree (PodMessageBuilder *builder, GError **error)
{
  const PodPlanRequest *request = builder->request;
  unsigned n = request->n_axes + request->n_slice_axes;
  bool is_reverse = request->kind == POD_REDUCE;
  g_auto (PodArrivals) arrivals = { 0 };
  uint32_t n_hops = 0, n_chunks;

  for (unsigned a = 0; a < n; a++)
    n_hops += request->axes[a].size - 1;
  n_chunks = pod_message_chain_chunks (builder, n_hops, 2 * (uint64_t) request->group->n_devices);
  pod_arrivals_init (&arrivals, request->group->n_devices);
  for (unsigned k = 0; k < n; k++)
    if (!add_chains (builder, is_reverse ? n - 1 - k : k, n_chunks, &arrivals, error))
      return false;
  return true;
}
