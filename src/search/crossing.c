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

enum
{
  N_CURVES = 2,
};

/* Two curves over the first dimension: a measure of the rows of a line each. */
typedef struct
{
  const PodGrid *grid;
  const GArray *rows;
  guint n_lines;
  guint lines[N_CURVES];
  PodCrossingMeasure measures[N_CURVES];
} Pair;

/* A value of the first dimension and the logarithms of both curves there. */
typedef struct
{
  double x;
  double y[N_CURVES];
} Place;

/* What is this near is equal: times are whole picoseconds, and powers of two of a batch often meet exactly. */
#define EQUAL 1e-9

static bool
place_at (const Pair *pair, guint index, Place *out)
{
  if (!number_at (pair->grid, 0, index, &out->x))
    return false;
  for (guint c = 0; c < N_CURVES; c++)
    {
      const PodRow *row = &g_array_index (pair->rows, PodRow, index * pair->n_lines + pair->lines[c]);
      const double value = row->status == POD_ROW_FITS ? pair->measures[c] (row) : 0;

      if (!(value > 0))
        return false;
      out->y[c] = log (value);
    }
  return true;
}

/* -1, 0, 1: the first curve is below, with, above the other. */
static int
side_of (const Place *place)
{
  const double difference = place->y[0] - place->y[1];

  return difference > EQUAL ? 1 : difference < -EQUAL ? -1 : 0;
}

/* @before is on one side and @after on the other, or on none: then it is the crossing itself. */
static void
add_crossing (const Pair *pair, const Place *before, const Place *after, GArray *out)
{
  const bool is_first_lower = side_of (before) < 0;
  const double gap = before->y[0] - before->y[1];
  const double share = side_of (after) == 0 ? 1 : gap / (gap - (after->y[0] - after->y[1]));
  const PodCrossing crossing = { .lines = { pair->lines[is_first_lower ? 0 : 1], pair->lines[is_first_lower ? 1 : 0] },
                                 .is_first_lower = is_first_lower,
                                 .at = before->x * pow (after->x / before->x, share),
                                 .value = exp (before->y[0] + share * (after->y[0] - before->y[0])) };

  g_array_append_val (out, crossing);
}

/* Follows both curves from value to value; where they go together for a while, they cross where that begins. What is no number or does not fit
 * ends them, and they begin anew behind it. */
static void
follow (const Pair *pair, guint n_values, GArray *out)
{
  Place last = { 0 }, meeting = { 0 };
  int side = 0;
  bool has_met = false;

  for (guint i = 0; i < n_values; i++)
    {
      Place place;
      int now;

      if (!place_at (pair, i, &place))
        {
          side = 0;
          continue;
        }
      now = side_of (&place);
      if (now == 0 && side != 0 && !has_met)
        {
          meeting = place;
          has_met = true;
        }
      if (now == 0)
        continue;
      if (side != 0 && now != side)
        add_crossing (pair, &last, has_met ? &meeting : &place, out);
      last = place;
      side = now;
      has_met = false;
    }
}

static guint
n_values_of (const PodGrid *grid)
{
  return grid->dims->len > 0 && pod_grid_is_numeric (grid, 0) ? ((PodGridDim *) g_ptr_array_index (grid->dims, 0))->values->len : 0;
}

GArray *
pod_crossings (const PodGrid *grid, const GArray *rows, PodCrossingMeasure measure)
{
  GArray *out = g_array_new (FALSE, FALSE, sizeof (PodCrossing));
  const guint n_values = n_values_of (grid);
  Pair pair = { .grid = grid, .rows = rows, .n_lines = n_values > 0 ? rows->len / n_values : 0, .measures = { measure, measure } };

  for (pair.lines[0] = 0; pair.lines[0] < pair.n_lines; pair.lines[0]++)
    for (pair.lines[1] = pair.lines[0] + 1; pair.lines[1] < pair.n_lines; pair.lines[1]++)
      follow (&pair, n_values, out);
  return out;
}

GArray *
pod_balances (const PodGrid *grid, const GArray *rows, PodCrossingMeasure measure, PodCrossingMeasure other)
{
  GArray *out = g_array_new (FALSE, FALSE, sizeof (PodCrossing));
  const guint n_values = n_values_of (grid);
  Pair pair = { .grid = grid, .rows = rows, .n_lines = n_values > 0 ? rows->len / n_values : 0, .measures = { measure, other } };

  for (guint l = 0; l < pair.n_lines; l++)
    {
      pair.lines[0] = pair.lines[1] = l;
      follow (&pair, n_values, out);
    }
  return out;
}
