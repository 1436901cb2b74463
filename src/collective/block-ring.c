#include "collective/plan-private.h"

/* A block of a x b chips without wraparound, one side even, walked as one closed ring of a*b
 * neighbours:
 *
 *   0  > > >      row 0 runs out from the first column; rows 1 .. R-1 snake over the columns 1 ..
 * C-1; ^  v < <      the last row ends in column 0, which leads back. R is the even side. ^  > > v
 *   ^  < < <
 *
 * Every step is one hop, so the block gathers like a wrapped ring: V (n-1)/2n per link and
 * direction. */

bool
pod_fits_block_ring (const PodPlanRequest *request)
{
  const PodAxis *axes = request->axes;

  return request->n_axes == 2 && request->n_slice_axes == 0 && axes[0].dim < POD_DIM_DCN
         && axes[1].dim < POD_DIM_DCN && axes[0].dim != axes[1].dim && !axes[0].is_ring
         && !axes[1].is_ring && (axes[0].size % 2 == 0 || axes[1].size % 2 == 0);
}

void
pod_block_ring_position (uint32_t n_rows, uint32_t n_columns, uint32_t step, uint32_t *out_row,
                         uint32_t *out_column)
{
  uint32_t width = n_columns - 1, snake = n_rows * width;

  if (step == 0 || step > snake)
    {
      *out_row = step == 0 ? 0 : n_rows - (step - snake);
      *out_column = 0;
      return;
    }
  *out_row = (step - 1) / width;
  *out_column = *out_row % 2 == 0 ? 1 + (step - 1) % width : width - (step - 1) % width;
}

/* Both directions between @step and the next: along the row axis when the row changes. */
static bool
add_step (PodPlanRequest *request, const PodAxis *const *sides, uint32_t step, double bytes,
          GError **error)
{
  const PodAxis *rows = sides[0], *columns = sides[1], *axis;
  uint32_t n = rows->size * columns->size, row, column, next_row, next_column;
  PodAxisHop out, back;
  int sign;

  pod_block_ring_position (rows->size, columns->size, step, &row, &column);
  pod_block_ring_position (rows->size, columns->size, (step + 1) % n, &next_row, &next_column);
  axis = row != next_row ? rows : columns;
  sign = next_row > row || next_column > column ? +1 : -1;
  out = (PodAxisHop){ axis, row * rows->span + column * columns->span, sign };
  back = (PodAxisHop){ axis, next_row * rows->span + next_column * columns->span, -sign };
  return pod_axis_add_hop (request, &out, bytes, error)
         && pod_axis_add_hop (request, &back, bytes, error);
}

bool
pod_build_block_ring (PodPlanRequest *request, PodPlan *plan, GError **error)
{
  const PodAxis *rows = request->axes[0].size % 2 == 0 ? &request->axes[0] : &request->axes[1];
  const PodAxis *columns = rows == &request->axes[0] ? &request->axes[1] : &request->axes[0];
  uint32_t n = rows->size * columns->size;
  unsigned twice = request->kind == POD_ALL_REDUCE ? 2 : 1;
  double share = twice * (n - 1.0) / (2.0 * n);
  PodAxis ring = *rows; /* as one axis, for latency */

  for (uint32_t step = 0; step < n; step++)
    if (!add_step (request, (const PodAxis *const[]){ rows, columns }, step, share, error))
      return false;
  ring.size = n;
  ring.is_ring = true;
  ring.stride = MAX (rows->stride, columns->stride);
  ring.hop_ps = MAX (rows->hop_ps, columns->hop_ps);
  plan->n_steps = twice * (n / 2);
  plan->latency_ps = (int64_t) plan->n_steps * ring.hop_ps;
  /* As the book counts a line: exactly (n-1)/n, over both directions of one ring */
  plan->book_s_per_byte
      = twice * (n - 1.0) / n / (2 * MIN (rows->book_bytes_per_s, columns->book_bytes_per_s));
  plan->book_latency_s = twice * pod_axis_book_latency_s (request, &ring);
  plan->explain = g_strdup_printf (
      "block of %u x %u as a closed ring of %u: %.4g x bytes on each link and direction, "
      "%u hops",
      request->axes[0].size, request->axes[1].size, n, share, plan->n_steps);
  return true;
}
