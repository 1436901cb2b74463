#include "collective/plan-private.h"

/* Recursive doubling and halving: in step s, ranks that differ in bit s exchange what they hold. Of
 * n = 2^p + r ranks the first 2r form pairs; the second of a pair hands over to the first before
 * and is told the result after, and 2^p ranks remain.
 *
 *   recursive doubling  all-reduce: p steps of V; all-gather: shards that double, V(n-1)/n in all
 *   halving-doubling    all-reduce: V/2, V/4, ... and back, 2V(1-1/2^p) in 2p steps (Rabenseifner);
 *                       reduce-scatter is its first half, all-gather its second
 *
 * No step can begin before the one in front of it has ended, so their times add up. */

typedef struct
{
  PodPlanRequest *request;
  const PodStepSink *sink;
  void *context;
  uint32_t n_core; /* 2^p */
  uint32_t n_rest; /* r */
} Steps;

static bool
send (Steps *steps, uint32_t from, uint32_t to, double share, GError **error)
{
  return steps->sink->send (steps->context, from, to, share, error);
}

static uint32_t
rank_of (const Steps *steps, uint32_t core)
{
  return core < steps->n_rest ? 2 * core : core + steps->n_rest;
}

/* Shards that cores 0 ... @core - 1 stand for. */
static double
weight_below (const Steps *steps, uint32_t core)
{
  return (double) core + MIN (core, steps->n_rest);
}

/* Every second of a pair to its first, or back. */
static bool
fold (Steps *steps, bool is_back, double share, GError **error)
{
  if (steps->n_rest == 0)
    return true;
  steps->sink->begin (steps->context);
  for (uint32_t i = 0; i < steps->n_rest; i++)
    if (!send (steps, is_back ? 2 * i : 2 * i + 1, is_back ? 2 * i + 1 : 2 * i, share, error))
      return false;
  steps->sink->end (steps->context);
  return true;
}

/* How much of the payload a core sends to its partner across @bit. */
typedef double (*ShareOf) (const Steps *steps, uint32_t core, uint32_t bit);

static double
whole_share (const Steps *steps, uint32_t core, uint32_t bit)
{
  (void) steps, (void) core, (void) bit;
  return 1;
}

/* Of vectors without shards: the block of 2^s of 2^p. */
static double
even_share (const Steps *steps, uint32_t core, uint32_t bit)
{
  (void) core;
  return (double) bit / steps->n_core;
}

/* A gather sends the shards of its own aligned block of cores. */
static double
own_share (const Steps *steps, uint32_t core, uint32_t bit)
{
  uint32_t first = core & ~(bit - 1);

  return (weight_below (steps, first + bit) - weight_below (steps, first))
         / steps->request->group->n_devices;
}

/* A reduction sends its partial sums for the partner's block. */
static double
other_share (const Steps *steps, uint32_t core, uint32_t bit)
{
  return own_share (steps, core ^ bit, bit);
}

static bool
exchange (Steps *steps, uint32_t bit, ShareOf share_of, GError **error)
{
  steps->sink->begin (steps->context);
  for (uint32_t core = 0; core < steps->n_core; core++)
    if (!send (steps, rank_of (steps, core), rank_of (steps, core ^ bit),
               share_of (steps, core, bit), error))
      return false;
  steps->sink->end (steps->context);
  return true;
}

static bool
double_up (Steps *steps, ShareOf share_of, GError **error)
{
  for (uint32_t bit = 1; bit < steps->n_core; bit *= 2)
    if (!exchange (steps, bit, share_of, error))
      return false;
  return true;
}

static bool
halve_down (Steps *steps, ShareOf share_of, GError **error)
{
  for (uint32_t bit = steps->n_core / 2; bit >= 1; bit /= 2)
    if (!exchange (steps, bit, share_of, error))
      return false;
  return true;
}

static bool
walk (Steps *steps, bool is_halving, GError **error)
{
  double n = steps->request->group->n_devices;

  switch (steps->request->kind)
    {
    case POD_ALL_GATHER:
      return fold (steps, false, 1 / n, error) && double_up (steps, own_share, error)
             && fold (steps, true, (n - 1) / n, error);
    case POD_REDUCE_SCATTER:
      return fold (steps, false, (n - 1) / n, error) && halve_down (steps, other_share, error)
             && fold (steps, true, 1 / n, error);
    default:
      return fold (steps, false, 1, error)
             && (is_halving
                     ? halve_down (steps, even_share, error) && double_up (steps, even_share, error)
                     : double_up (steps, whole_share, error))
             && fold (steps, true, 1, error);
    }
}

static Steps
make_steps (PodPlanRequest *request)
{
  Steps steps = { .request = request, .n_core = 1 };

  while (steps.n_core <= request->group->n_devices / 2)
    steps.n_core *= 2;
  steps.n_rest = request->group->n_devices - steps.n_core;
  return steps;
}

bool
pod_recursive_walk (PodPlanRequest *request, bool is_halving, const PodStepSink *sink,
                    void *context, GError **error)
{
  Steps steps = make_steps (request);

  steps.sink = sink;
  steps.context = context;
  return walk (&steps, is_halving, error);
}

/* ---- the plan ---- */

typedef struct
{
  PodPlanRequest *request;
  PodPlan *plan;
  PodLinkLoads total;
  double sequential_s; /* per payload byte */
  int64_t step_ps;     /* the step's longest route */
  double member_bytes; /* what rank 0 sends in all */
} Sum;

static void
begin_step (void *context)
{
  Sum *sum = context;

  pod_link_loads_reset (&sum->request->loads, 2 * sum->request->group->n_devices,
                        sum->request->topology->n_links);
  sum->step_ps = 0;
}

static bool
add_message (void *context, uint32_t from, uint32_t to, double share, GError **error)
{
  Sum *sum = context;
  const uint32_t *devices = sum->request->group->devices;

  if (!pod_route_add (sum->request, devices[from], devices[to], share, error))
    return false;
  sum->step_ps = MAX (sum->step_ps, pod_route_latency_ps (sum->request));
  if (from == 0)
    sum->member_bytes += share;
  return true;
}

static void
end_step (void *context)
{
  Sum *sum = context;
  const PodLinkLoads *loads = &sum->request->loads;

  sum->sequential_s += pod_link_loads_time (sum->request, sum->request->fidelity);
  sum->plan->latency_ps += sum->step_ps;
  sum->plan->n_steps++;
  for (uint32_t i = 0; i < loads->n; i++)
    pod_link_loads_add (&sum->total, loads->links[i], loads->bytes[i]);
}

static bool
build (PodPlanRequest *request, PodPlan *plan, bool is_halving, GError **error)
{
  static const PodStepSink sink = { begin_step, add_message, end_step };
  Sum sum = { .request = request, .plan = plan };
  Steps steps = make_steps (request);
  bool is_good;

  pod_link_loads_init (&sum.total, 4 * request->group->n_devices);
  is_good = pod_recursive_walk (request, is_halving, &sink, &sum, error);
  pod_link_loads_clear (&request->loads);
  request->loads = sum.total;
  plan->phases = POD_PHASES_SEQUENTIAL;
  plan->sequential_s_per_byte = sum.sequential_s;
  if (steps.n_rest == 0)
    plan->explain = g_strdup_printf ("%u steps one after another, rank 0 sends %.4g x bytes",
                                     plan->n_steps, sum.member_bytes);
  else
    plan->explain = g_strdup_printf (
        "%u ranks hand over to neighbours and are told the result, %u exchange: %u steps one after "
        "another, rank 0 sends %.4g x bytes",
        steps.n_rest, steps.n_core, plan->n_steps, sum.member_bytes);
  return is_good;
}

bool
pod_build_recursive_doubling (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  return build (request, plan, false, error);
}

bool
pod_build_halving_doubling (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  return build (request, plan, true, error);
}
