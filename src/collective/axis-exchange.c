#include "collective/plan-private.h"

/* All-gather, reduce-scatter, all-reduce and all-to-all over the axes of a torus, all axes at work
 * at once.
 *
 * The buffer is cut into one part per axis; part r is gathered along the axes r+1, r+2, ... r
 * (cyclic), so that its last, largest stage is on axis r. Along axis a, part r moves the volume p_r
 * V B_ra with B_ra = (sizes of the axes that r gathers before a, and of a) / N, and the p_r are
 * those that make the slowest axis fastest (axis-split.c). For rings of one rate the optimum is V
 * (N-1) / 2MN on every link and direction of M axes. The devices of one chip gather last.
 * All-to-all is routed axis by axis; each axis carries the whole send buffer, so the longest axis
 * bounds. Slices come first in a gather (last in a reduction): each member moves 1/(members per
 * slice) of the buffer through its own NIC, then the slice gathers inside. */

bool
pod_fits_one_ring (const PodPlanRequest *request)
{
  return request->n_axes == 1 && request->n_slice_axes == 0 && request->axes[0].is_ring;
}

bool
pod_fits_one_line (const PodPlanRequest *request)
{
  return request->n_axes == 1 && request->n_slice_axes == 0 && !request->axes[0].is_ring;
}

bool
pod_fits_torus (const PodPlanRequest *request)
{
  return request->n_axes > 1 && request->n_slice_axes == 0;
}

bool
pod_fits_slices (const PodPlanRequest *request)
{
  return request->n_axes > 0 && request->n_slice_axes > 0;
}

bool
pod_fits_slices_only (const PodPlanRequest *request)
{
  return request->n_axes == 0 && request->n_slice_axes > 0;
}

/* Factors of one dim share its links: they are one row of the split. Returns the number of rows. */
static unsigned
dim_rows (const PodAxis *const *torus, unsigned n, unsigned *row_of)
{
  unsigned n_rows = 0;

  for (unsigned a = 0; a < n; a++)
    {
      row_of[a] = n_rows;
      for (unsigned b = 0; b < a; b++)
        if (torus[b]->dim == torus[a]->dim)
          row_of[a] = row_of[b];
      if (row_of[a] == n_rows)
        n_rows++;
    }
  return n_rows;
}

/* Members on one chip: they share its ICI and NIC links. */
static unsigned
members_per_chip (const PodPlanRequest *request)
{
  unsigned n = 1;

  for (unsigned a = 0; a < request->n_axes; a++)
    if (request->axes[a].dim == POD_DIM_CORE)
      n *= request->axes[a].size;
  return n;
}

void
pod_axis_split (const PodPlanRequest *request, PodAxisShape *shapes, double *weights)
{
  const PodAxis *torus[POD_MAX_FACTORS];
  unsigned n = 0, at[POD_MAX_FACTORS], row_of[POD_MAX_FACTORS];
  double parts[POD_MAX_FACTORS][POD_MAX_FACTORS]; /* B_ra as [a][r] */
  double cost[POD_MAX_FACTORS][POD_MAX_FACTORS] = { 0 };
  unsigned n_rows;

  for (unsigned a = 0; a < request->n_axes; a++)
    if (request->axes[a].dim < POD_DIM_DCN)
      {
        at[n] = a;
        torus[n++] = &request->axes[a];
      }
  if (n == 0)
    return;
  n_rows = dim_rows (torus, n, row_of);
  for (unsigned r = 0; r < n; r++)
    {
      double gathered = 1;

      for (unsigned step = 1; step <= n; step++)
        {
          unsigned a = (r + step) % n;

          gathered *= torus[a]->size;
          parts[a][r] = gathered / request->n_in_slice;
          cost[row_of[a]][r] += parts[a][r] * shapes[at[a]].peak / torus[a]->bytes_per_s;
        }
    }
  pod_split_minimax (n_rows, n, cost, weights);
  for (unsigned a = 0; a < n; a++)
    {
      shapes[at[a]].volume = 0;
      for (unsigned r = 0; r < n; r++)
        shapes[at[a]].volume += weights[r] * parts[a][r];
    }
}

static void
slice_volumes (const PodPlanRequest *request, PodAxisShape *shapes)
{
  double gathered = 1;

  for (unsigned a = request->n_axes; a < request->n_axes + request->n_slice_axes; a++)
    {
      gathered *= request->axes[a].size;
      shapes[a].volume = gathered / ((double) request->n_slices * request->n_in_slice);
    }
}

/* The book's V/W: W sums both directions of the distinct dims (half of it where an axis does not
 * wrap); a line moves exactly (N-1)/N, which is how the book computes it. All-reduce twice.
 * All-to-all: payload S is a rank's send buffer, so the book's V = N S and V X/(4 N W) = S X/(4 W)
 * for the longest axis X. Cores and slices bound beside it. */
void
pod_axis_exchange_book (const PodPlanRequest *request, PodPlan *plan)
{
  double sum_w = 0, n_torus = 1, longest_s = 0, others_s = 0, latency_s = 0;
  double twice = request->kind == POD_ALL_REDUCE ? 2 : 1, per_chip = members_per_chip (request);
  bool has_line = false, is_counted[POD_DIM_DCN] = { false };

  for (unsigned a = 0; a < request->n_axes + request->n_slice_axes; a++)
    {
      const PodAxis *axis = &request->axes[a];
      bool is_ring = axis->is_ring || request->is_twisted_whole;
      double w = axis->book_bytes_per_s * (is_ring ? 2 : 1), n = axis->size;

      latency_s += twice * pod_axis_book_latency_s (request, axis);
      if (axis->dim < POD_DIM_DCN)
        {
          n_torus *= n;
          has_line |= !is_ring;
          longest_s = MAX (longest_s, per_chip * n / (4 * w));
          if (!is_counted[axis->dim])
            sum_w += w;
          is_counted[axis->dim] = true;
        }
      else if (request->kind == POD_ALL_TO_ALL)
        others_s = MAX (others_s, (axis->dim == POD_DIM_CORE ? 1 : per_chip) * (n - 1) / n
                                      / axis->book_bytes_per_s);
      else if (axis->dim == POD_DIM_CORE)
        others_s = MAX (others_s, twice * (n - 1) / n / axis->book_bytes_per_s);
      else
        others_s
            = MAX (others_s, twice * per_chip / (request->n_in_slice * axis->book_bytes_per_s));
    }
  if (request->kind != POD_ALL_TO_ALL && sum_w > 0)
    longest_s = twice * (has_line ? (n_torus - 1) / n_torus : 1) / sum_w;
  plan->book_s_per_byte = MAX (longest_s, others_s);
  plan->book_latency_s = latency_s;
}

static bool
is_on_twist (const PodPlanRequest *request, const PodAxis *axis)
{
  return request->is_twisted_whole && axis->dim < POD_DIM_DCN;
}

/* The phases one after another. In stage s of a gather part r is on axis r+s, all parts at once;
 * the devices of a chip and the slices have a phase each. All-to-all goes axis by axis. */
static double
sequential_s (const PodPlanRequest *request, const PodAxisShape *shapes, const double *weights)
{
  const PodAxis *torus[POD_MAX_FACTORS];
  double total_s = 0, done[POD_MAX_FACTORS], per_chip = members_per_chip (request),
         peaks[POD_MAX_FACTORS];
  unsigned n = 0;

  for (unsigned a = 0; a < request->n_axes + request->n_slice_axes; a++)
    {
      const PodAxis *axis = &request->axes[a];

      if (request->kind == POD_ALL_TO_ALL || axis->dim >= POD_DIM_DCN)
        total_s += (axis->dim == POD_DIM_CORE ? 1 : per_chip) * shapes[a].volume * shapes[a].peak
                   / axis->bytes_per_s;
      else
        {
          peaks[n] = shapes[a].peak;
          done[n] = 1.0 / request->n_in_slice;
          torus[n++] = axis;
        }
    }
  for (unsigned stage = 1; stage <= n; stage++)
    {
      double slowest_s = 0;

      for (unsigned r = 0; r < n; r++)
        {
          unsigned a = (r + stage) % n;

          done[r] *= torus[a]->size;
          slowest_s
              = MAX (slowest_s, per_chip * weights[r] * done[r] * peaks[a] / torus[a]->bytes_per_s);
        }
      total_s += slowest_s;
    }
  return total_s;
}

/* @twisted_share: of the busiest link where the slice is twisted. */
static char *
explain (const PodPlanRequest *request, const PodAxisShape *shapes, double twisted_share)
{
  static const char *const names[] = { "x", "y", "z", "dcn", "core" };
  GString *text = g_string_new (NULL);

  if (request->is_twisted_whole)
    g_string_append_printf (text, "twisted torus: busiest link %.4g x bytes in each direction",
                            twisted_share);

  for (unsigned a = 0; a < request->n_axes + request->n_slice_axes; a++)
    {
      const PodAxis *axis = &request->axes[a];

      if (is_on_twist (request, axis))
        continue;
      g_string_append_printf (text, "%s%s: %s of %u", text->len == 0 ? "" : "; ", names[axis->dim],
                              axis->dim == POD_DIM_DCN ? "slices"
                              : axis->is_ring          ? "ring"
                                                       : "line",
                              axis->size);
      if (axis->stride > 1)
        g_string_append_printf (text, " at stride %u", axis->stride);
      g_string_append_printf (text, ", busiest link %.4g x bytes in each direction",
                              shapes[a].volume * shapes[a].peak
                                  * (axis->dim == POD_DIM_CORE ? 1 : members_per_chip (request)));
    }
  return g_string_free (text, FALSE);
}

/* By symmetry: every member's links carry the same where all axes are whole rings of one slice. */
static uint32_t
n_shown (const PodPlanRequest *request)
{
  bool is_alike = request->is_folded && request->n_slice_axes == 0;

  for (unsigned a = 0; a < request->n_axes; a++)
    is_alike = is_alike && request->axes[a].is_ring && request->axes[a].stride == 1;
  return is_alike ? 1 : request->group->n_devices;
}

/* The axes' own links, and steps; those of a twisted slice stand in the plan already. */
static bool
add_axes (PodPlanRequest *request, PodPlan *plan, const PodAxisShape *shapes, GError **error)
{
  for (unsigned a = 0; a < request->n_axes + request->n_slice_axes; a++)
    {
      const PodAxis *axis = &request->axes[a];

      if (is_on_twist (request, axis))
        continue;
      plan->latency_ps += pod_axis_latency_ps (axis);
      plan->n_steps += pod_axis_steps (axis);
      if (!pod_axis_add (request, &shapes[a], n_shown (request), error))
        return false;
    }
  return true;
}

static bool
add_twist (PodPlanRequest *request, PodPlan *plan, double *out_share, GError **error)
{
  unsigned n_steps;

  *out_share = 0;
  if (!request->is_twisted_whole)
    return true;
  if (!pod_twisted_add (request, out_share, &n_steps, error))
    return false;
  plan->n_steps = n_steps;
  plan->latency_ps = (int64_t) n_steps * request->topology->chip->ici_hop_ps;
  return true;
}

bool
pod_build_axis_exchange (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  PodAxisShape shapes[POD_MAX_FACTORS] = { 0 };
  double twisted_share, weights[POD_MAX_FACTORS] = { 0 };
  unsigned n = request->n_axes + request->n_slice_axes,
           twice = request->kind == POD_ALL_REDUCE ? 2 : 1;
  bool is_good;

  for (unsigned a = 0; a < n; a++)
    pod_axis_shape_init (&shapes[a], &request->axes[a], request->kind);
  if (request->kind != POD_ALL_TO_ALL)
    {
      /* On a twist the devices of a chip come last, with all of the buffer */
      if (request->n_axes > 0 && !request->is_twisted_whole)
        pod_axis_split (request, shapes, weights);
      slice_volumes (request, shapes);
    }
  is_good
      = add_twist (request, plan, &twisted_share, error) && add_axes (request, plan, shapes, error);
  plan->n_steps *= twice;
  plan->latency_ps *= twice;
  if (n > 1 && !request->is_twisted_whole)
    plan->sequential_s_per_byte = sequential_s (request, shapes, weights);
  pod_axis_exchange_book (request, plan);
  plan->explain = explain (request, shapes, twisted_share);
  for (unsigned a = 0; a < n; a++)
    pod_axis_shape_clear (&shapes[a]);
  return is_good;
}
