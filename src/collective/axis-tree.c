#include "collective/plan-private.h"

/* Broadcast from the group's first member (reduce: to it, the same links backwards), axis by axis:
 * first along axis 0 from the root, then along axis 1 from all members of that row, and so on. On a
 * ring half of the buffer runs each way round, so a link carries V/2; on a line it carries V. */

bool
pod_fits_factors (const PodPlanRequest *request)
{
  return request->n_axes + request->n_slice_axes > 0;
}

static void
chain_shape (PodAxisShape *shape, const PodAxis *axis, bool is_reverse)
{
  uint32_t n = axis->size;
  bool is_halved = axis->is_ring && axis->dim != POD_DIM_DCN;

  shape->axis = axis;
  shape->volume = 1;
  shape->plus = g_new0 (double, n);
  shape->minus = g_new0 (double, n);
  shape->peak = is_halved ? 0.5 : 1;
  for (uint32_t i = 0; i + 1 < n; i++)
    {
      /* 0 > 1 > ... > n-1, and 0 > n-1 > ... > 1 the other way round */
      *(is_reverse ? &shape->minus[i + 1] : &shape->plus[i]) = shape->peak;
      if (is_halved)
        *(is_reverse ? &shape->plus[n - 1 - i] : &shape->minus[(n - i) % n]) = shape->peak;
    }
}

bool
pod_build_axis_tree (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  bool is_reverse = request->kind == POD_REDUCE, is_good = true;
  double peak = 0;

  for (unsigned a = 0; a < request->n_axes + request->n_slice_axes && is_good; a++)
    {
      const PodAxis *axis = &request->axes[a];
      PodAxis line = *axis;
      PodAxisShape shape = { 0 };

      line.is_ring = false; /* a chain, for latency */
      chain_shape (&shape, axis, is_reverse);
      peak = MAX (peak, shape.peak);
      plan->n_steps += axis->size - 1;
      plan->latency_ps += (int64_t) (axis->size - 1) * axis->hop_ps;
      plan->book_latency_s += pod_axis_book_latency_s (request, &line);
      is_good = pod_axis_add (request, &shape, axis->span * axis->size, error);
      pod_axis_shape_clear (&shape);
    }
  plan->explain
      = g_strdup_printf ("tree of chains axis by axis: %.4g x bytes on the busiest link, %u hops",
                         peak, plan->n_steps);
  return is_good;
}
