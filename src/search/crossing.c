#include "search/crossing.h"

#include <math.h>

#include "base/units.h"

static bool
number_at (const PodGrid *grid, guint dim, guint index, double *out)
{
  const PodGridDim *d = g_ptr_array_index (grid->dims, dim);

  return pod_parse_quantity (g_ptr_array_index (d->values, index), POD_UNIT_COUNT, out, NULL) && *out > 0;
}

bool
pod_grid_is_numeric (const PodGrid *grid, guint dim)
{
  const PodGridDim *d = g_ptr_array_index (grid->dims, dim);
  double value;

  for (guint i = 0; i < d->values->len; i++)
    if (!number_at (grid, dim, i, &value))
      return false;
  return true;
}

/* The lines @a and @b from value @i to the next. */
static void
find (const PodGrid *grid, const GArray *rows, PodCrossingMeasure measure, guint n_lines, guint i, guint a, guint b, GArray *out)
{
  const PodRow *row[2][2]; /* by line and value */
  PodCrossing crossing;
  double x[2], before, after, share;

  for (guint v = 0; v < 2; v++)
    {
      row[0][v] = &g_array_index (rows, PodRow, (i + v) * n_lines + a);
      row[1][v] = &g_array_index (rows, PodRow, (i + v) * n_lines + b);
      if (row[0][v]->status != POD_ROW_FITS || row[1][v]->status != POD_ROW_FITS || !number_at (grid, 0, i + v, &x[v]))
        return;
    }
  before = log (measure (row[0][0]) / measure (row[1][0]));
  after = log (measure (row[0][1]) / measure (row[1][1]));
  if (!(before * after < 0))
    return;
  share = before / (before - after);
  crossing = (PodCrossing){ .lines = { before < 0 ? a : b, before < 0 ? b : a },
                            .at = x[0] * pow (x[1] / x[0], share),
                            .value = measure (row[0][0]) * pow (measure (row[0][1]) / measure (row[0][0]), share) };
  g_array_append_val (out, crossing);
}

GArray *
pod_crossings (const PodGrid *grid, const GArray *rows, PodCrossingMeasure measure)
{
  GArray *out = g_array_new (FALSE, FALSE, sizeof (PodCrossing));
  const guint n_values = grid->dims->len > 0 ? ((PodGridDim *) g_ptr_array_index (grid->dims, 0))->values->len : 0;
  const guint n_lines = n_values > 0 ? rows->len / n_values : 0;

  if (n_values == 0 || !pod_grid_is_numeric (grid, 0))
    return out;
  for (guint a = 0; a < n_lines; a++)
    for (guint b = a + 1; b < n_lines; b++)
      for (guint i = 0; i + 1 < n_values; i++)
        find (grid, rows, measure, n_lines, i, a, b, out);
  return out;
}
