#include "collective/plan-private.h"

/* Axes that hold only copies lend their links. The group's last factors are those axes: Z copies of
 * each of its n members.
 *
 *   all-gather      each copy keeps 1/Z of its shard, for free, and all axes gather: V (nZ-1)/nZ
 *                   comes in over all links together
 *   reduce-scatter  each copy reduces 1/Z of the buffer, then the copies gather the 1/n that is
 * left all-reduce      each copy reduces 1/Z of the buffer, then the copies gather all of it
 *
 * The part f of a reduction goes this way and the rest 1-f by the own axes alone, so that both are
 * done at once: t (1 - f + f/Z) = f t_idle. */

bool
pod_fits_borrow (const PodPlanRequest *request)
{
  return request->n_idle > 0 && request->n_idle < request->n_axes && request->n_slice_axes == 0
         && !request->topology->is_twisted;
}

/* Those of @n axes from @first as a request of their own. */
static PodPlanRequest
part_of (const PodPlanRequest *request, unsigned first, unsigned n)
{
  PodPlanRequest part = *request;

  part.n_axes = n;
  part.n_in_slice = 1;
  for (unsigned a = 0; a < n; a++)
    {
      part.axes[a] = request->axes[first + a];
      part.n_in_slice *= part.axes[a].size;
    }
  return part;
}

static double
slowest_s (const PodPlanRequest *request, const PodAxisShape *shapes, unsigned first, unsigned n)
{
  double slowest_s = 0;

  for (unsigned a = first; a < first + n; a++)
    slowest_s = MAX (slowest_s, shapes[a].volume * shapes[a].peak / request->axes[a].bytes_per_s);
  return slowest_s;
}

double
pod_borrow_mix (const PodPlanRequest *request, PodAxisShape *shapes)
{
  unsigned n_own = request->n_axes - request->n_idle;
  PodPlanRequest own = part_of (request, 0, n_own),
                 idle = part_of (request, n_own, request->n_idle);
  double weights[POD_MAX_FACTORS], copies = idle.n_in_slice;
  double left = request->kind == POD_REDUCE_SCATTER ? 1.0 / own.n_in_slice : 1, own_s, idle_s, f;

  pod_axis_split (&own, shapes, weights);
  pod_axis_split (&idle, shapes + n_own, weights);
  own_s = slowest_s (request, shapes, 0, n_own);
  idle_s = left * slowest_s (request, shapes, n_own, request->n_idle);
  f = MIN (1, own_s / (idle_s + own_s * (1 - 1 / copies)));
  for (unsigned a = 0; a < request->n_axes; a++)
    shapes[a].volume *= a < n_own ? 1 - f + f / copies : f * left;
  return f;
}

static bool
add_axes (PodPlanRequest *request, PodPlan *plan, const PodAxisShape *shapes, GError **error)
{
  for (unsigned a = 0; a < request->n_axes; a++)
    {
      bool is_idle = a >= request->n_axes - request->n_idle;
      unsigned times = request->kind == POD_ALL_REDUCE && !is_idle ? 2 : 1;

      plan->n_steps += times * pod_axis_steps (&request->axes[a]);
      plan->latency_ps += times * pod_axis_latency_ps (&request->axes[a]);
      plan->book_latency_s += times * pod_axis_book_latency_s (request, &request->axes[a]);
      if (!pod_axis_add (request, &shapes[a], request->group->n_devices, error))
        return false;
    }
  return true;
}

static char *
explain (const PodPlanRequest *request, double part)
{
  static const char *const names[] = { "x", "y", "z", "dcn", "core" };
  GString *text = g_string_new ("links of ");

  for (unsigned a = request->n_axes - request->n_idle; a < request->n_axes; a++)
    g_string_append_printf (text, "%s%s", a > request->n_axes - request->n_idle ? ", " : "",
                            names[request->axes[a].dim]);
  g_string_append_printf (text, " borrowed, where only copies stand: %.3g of the bytes %s", part,
                          request->kind == POD_ALL_GATHER
                              ? "are re-sliced over the copies and gathered over all axes"
                              : "are reduced by one copy each and gathered by the others");
  return g_string_free (text, FALSE);
}

bool
pod_build_borrow (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  PodAxisShape shapes[POD_MAX_FACTORS] = { 0 };
  double weights[POD_MAX_FACTORS], part = 1;
  unsigned n = request->n_axes;
  bool is_good;

  for (unsigned a = 0; a < n; a++)
    pod_axis_shape_init (&shapes[a], &request->axes[a],
                         a < n - request->n_idle ? request->kind : POD_ALL_GATHER);
  if (request->kind == POD_ALL_GATHER)
    {
      pod_axis_split (request, shapes, weights);
      pod_axis_exchange_book (request, plan);
      plan->book_latency_s = 0;
    }
  else
    part = pod_borrow_mix (request, shapes);
  is_good = add_axes (request, plan, shapes, error);
  plan->explain = explain (request, part);
  for (unsigned a = 0; a < n; a++)
    pod_axis_shape_clear (&shapes[a]);
  return is_good;
}
