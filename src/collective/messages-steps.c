#include "collective/messages-private.h"

/* Step by step: recursive.c and step-ring.c as messages. */

/* ---- recursive doubling and halving ---- */

/* A step of a rank ends when what it sends and what it gets has arrived. It sends when its receiver
 * is in the same step, too (a rendezvous). */
typedef struct
{
  PodMessageBuilder *builder;
  PodArrivals now;
  PodArrivals next;
} Exchanges;

static void
exchanges_clear (Exchanges *exchanges)
{
  pod_arrivals_clear (&exchanges->now);
  pod_arrivals_clear (&exchanges->next);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Exchanges, exchanges_clear)

static void
begin_step (void *context)
{
  (void) context;
}

static bool
send (void *context, uint32_t from, uint32_t to, double share, GError **error)
{
  Exchanges *exchanges = context;
  PodMessageBuilder *builder = exchanges->builder;
  const uint32_t *devices = builder->request->group->devices;
  uint32_t route, stream;

  if (!pod_message_route (builder, devices[from], devices[to], &route, error))
    return false;
  stream
      = pod_message_set_stream (builder->set, route, pod_message_bytes (builder, share), 1, 1);
  pod_message_after_arrivals (builder, &exchanges->now, from);
  pod_message_after_arrivals (builder, &exchanges->now, to);
  pod_arrivals_add (&exchanges->next, to, stream);
  pod_arrivals_add (&exchanges->next, from, stream);
  return true;
}

/* Who took part waits for that from now on; it came after what was there before. */
static void
end_step (void *context)
{
  Exchanges *exchanges = context;

  for (uint32_t i = 0; i < exchanges->now.n_members; i++)
    if (exchanges->next.of[i] != NULL)
      g_clear_pointer (&exchanges->now.of[i], g_array_unref);
  pod_arrivals_take (&exchanges->now, &exchanges->next);
}

static bool
add_recursive (PodMessageBuilder *builder, bool is_halving, GError **error)
{
  static const PodStepSink sink = { begin_step, send, end_step };
  g_auto (Exchanges) exchanges = { .builder = builder };

  pod_arrivals_init (&exchanges.now, builder->request->group->n_devices);
  pod_arrivals_init (&exchanges.next, builder->request->group->n_devices);
  return pod_recursive_walk (builder->request, is_halving, &sink, &exchanges, error);
}

bool
pod_message_recursive_doubling (PodMessageBuilder *builder, GError **error)
{
  return add_recursive (builder, false, error);
}

bool
pod_message_halving_doubling (PodMessageBuilder *builder, GError **error)
{
  return add_recursive (builder, true, error);
}

/* ---- one ring in one direction, axis after axis ---- */

typedef struct
{
  const PodAxis *axis; /* NULL: the list */
  double share;        /* of the payload in a message */
  uint32_t n_chunks;
} Phase;

static uint32_t
next_of (const PodMessageBuilder *builder, const Phase *phase, uint32_t index, int sign)
{
  uint32_t n = builder->request->group->n_devices;

  if (phase->axis == NULL)
    return sign > 0 ? (index + 1) % n : (index + n - 1) % n;
  return pod_message_neighbour (&(PodAxisHop){ phase->axis, index, sign });
}

static bool
find_route (PodMessageBuilder *builder, const Phase *phase, uint32_t index, uint32_t *out,
            GError **error)
{
  const PodAxis *axis = phase->axis;
  const uint32_t *devices = builder->request->group->devices;
  PodAxisHop hop = { axis, index, +1 };

  if (axis == NULL)
    return pod_message_route (builder, devices[index], devices[next_of (builder, phase, index, +1)],
                              out, error);
  /* Of two that no wrap joins the second goes back */
  if (!axis->is_ring && index / axis->span % axis->size + 1 == axis->size)
    hop.sign = -1;
  return pod_message_hop_route (builder, &hop, out, error);
}

/* Adds a phase; *arrivals: what it waits for, then what it brings. */
static bool
add_phase (PodMessageBuilder *builder, const Phase *phase, PodArrivals *arrivals, GError **error)
{
  uint32_t n = builder->request->group->n_devices, first = builder->set->streams->len;
  uint32_t size = phase->axis == NULL ? n : phase->axis->size;
  uint32_t parts = pod_message_parts (phase->n_chunks), route;
  g_auto (PodArrivals) out = { 0 };

  pod_arrivals_init (&out, n);
  for (uint32_t index = 0; index < n; index++)
    {
      if (!find_route (builder, phase, index, &route, error))
        return false;
      pod_message_set_stream (builder->set, route,
                              pod_message_bytes (builder, (size - 1) * phase->share),
                              (size - 1) * parts, phase->n_chunks);
      pod_message_after (builder, first + next_of (builder, phase, index, -1), parts);
      pod_message_after_arrivals (builder, arrivals, index);
      pod_arrivals_add (&out, next_of (builder, phase, index, +1), first + index);
    }
  pod_arrivals_clear (arrivals);
  pod_arrivals_init (arrivals, n);
  pod_arrivals_take (arrivals, &out);
  return true;
}

bool
pod_message_step_ring (PodMessageBuilder *builder, GError **error)
{
  const PodPlanRequest *request = builder->request;
  unsigned n_axes = request->n_axes + request->n_slice_axes, n_phases = MAX (n_axes, 1);
  bool is_gather = request->kind == POD_ALL_GATHER;
  g_auto (PodArrivals) arrivals = { 0 };
  Phase phase = { .share = is_gather ? 1.0 / request->group->n_devices : 1 };

  phase.n_chunks = n_phases == 1 ? 1
                                 : pod_message_stage_chunks (builder, 4 * builder->plan->n_steps
                                                                          * request->group->n_devices);
  pod_arrivals_init (&arrivals, request->group->n_devices);
  for (unsigned a = 0; a < n_phases; a++)
    {
      double size = n_axes == 0 ? request->group->n_devices : request->axes[a].size;

      phase.axis = n_axes == 0 ? NULL : &request->axes[a];
      if (!is_gather)
        phase.share /= size;
      if (!add_phase (builder, &phase, &arrivals, error))
        return false;
      if (is_gather)
        phase.share *= size;
    }
  for (unsigned a = n_phases; request->kind == POD_ALL_REDUCE && a-- > 0;)
    {
      phase.axis = n_axes == 0 ? NULL : &request->axes[a];
      if (!add_phase (builder, &phase, &arrivals, error))
        return false;
      phase.share *= n_axes == 0 ? request->group->n_devices : request->axes[a].size;
    }
  return true;
}
