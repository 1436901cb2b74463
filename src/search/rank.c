#include "search/rank.h"

#include <math.h>

double
pod_rank_value (PodObjective objective, const PodRow *row)
{
  switch (objective)
    {
    case POD_OBJECTIVE_COST:
      return row->usd_per_step;
    case POD_OBJECTIVE_COMM:
      return (double) row->forward_comm_ps;
    case POD_OBJECTIVE_MEMORY:
      return pod_row_bytes (row);
    default:
      return (double) row->time_ps;
    }
}

static gint
compare_numbers (double a, double b)
{
  return a < b ? -1 : a > b;
}

gint
pod_rank_compare (PodObjective objective, const PodRow *a, const PodRow *b)
{
  gint order = compare_numbers (pod_rank_value (objective, a), pod_rank_value (objective, b));

  if (order == 0)
    order = a->time_ps < b->time_ps ? -1 : a->time_ps > b->time_ps;
  if (order == 0)
    order = compare_numbers (pod_row_bytes (a), pod_row_bytes (b));
  if (order == 0)
    order = a->candidate < b->candidate ? -1 : a->candidate > b->candidate;
  return order;
}

void
pod_rank_insert (PodObjective objective, GArray *best, guint most, const PodRow *row)
{
  guint at = best->len;

  while (at > 0 && pod_rank_compare (objective, row, &g_array_index (best, PodRow, at - 1)) < 0)
    at--;
  if (at >= most)
    return;
  g_array_insert_vals (best, at, row, 1);
  if (best->len > most)
    g_array_set_size (best, most);
}

static gint
compare_time (gconstpointer a, gconstpointer b)
{
  return pod_rank_compare (POD_OBJECTIVE_TIME, *(const PodRow *const *) a, *(const PodRow *const *) b);
}

/* Of rows of one time @other decides, then the candidate. */
static gint
compare_pair (gconstpointer a, gconstpointer b, void *measure)
{
  const PodRow *x = *(const PodRow *const *) a;
  const PodRow *y = *(const PodRow *const *) b;
  PodRankMeasure other = *(PodRankMeasure *) measure;

  if (x->time_ps == y->time_ps && other (x) != other (y))
    return other (x) < other (y) ? -1 : 1;
  if (x->time_ps == y->time_ps)
    return x->candidate < y->candidate ? -1 : x->candidate > y->candidate;
  return compare_time (a, b);
}

GArray *
pod_rank_front (const GArray *rows, PodRankMeasure other)
{
  g_autoptr (GPtrArray) order = g_ptr_array_sized_new (rows->len);
  GArray *front = g_array_new (FALSE, FALSE, sizeof (PodRow));
  double least = INFINITY;

  for (guint i = 0; i < rows->len; i++)
    g_ptr_array_add (order, &g_array_index (rows, PodRow, i));
  g_ptr_array_sort_with_data (order, compare_pair, &other);
  for (guint i = 0; i < order->len; i++)
    {
      const PodRow *row = g_ptr_array_index (order, i);

      if (!(other (row) < least))
        continue;
      least = other (row);
      g_array_append_vals (front, row, 1);
    }
  return front;
}
