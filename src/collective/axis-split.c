#include "collective/plan-private.h"

#include <math.h>
#include <string.h>

/* minimise T, subject to  sum_c cost[r][c] w[c] <= T for each row r,  sum_c w[c] = 1,  w >= 0.
 *
 * The optimum is at a vertex: k columns are in use and k rows are tight, so
 *   sum_c cost[r][c] w[c] - T = 0 (k rows),  sum_c w[c] = 1
 * is a square system. All choices of k columns and k rows are tried; k = 1 is "one order only",
 * which always is feasible. */

enum
{
  SIDE = POD_MAX_SPLIT + 1,
};

/* Gauss with partial pivoting; false when singular. */
static bool
solve (unsigned n, double matrix[SIDE][SIDE + 1], double *out)
{
  for (unsigned column = 0; column < n; column++)
    {
      unsigned pivot = column;

      for (unsigned row = column + 1; row < n; row++)
        if (fabs (matrix[row][column]) > fabs (matrix[pivot][column]))
          pivot = row;
      if (!(fabs (matrix[pivot][column]) > 1e-12))
        return false;
      for (unsigned k = column; k <= n; k++)
        {
          double kept = matrix[pivot][k];

          matrix[pivot][k] = matrix[column][k];
          matrix[column][k] = kept;
        }
      for (unsigned row = 0; row < n; row++)
        if (row != column)
          {
            double factor = matrix[row][column] / matrix[column][column];

            for (unsigned k = column; k <= n; k++)
              matrix[row][k] -= factor * matrix[column][k];
          }
    }
  for (unsigned row = 0; row < n; row++)
    out[row] = matrix[row][n] / matrix[row][row];
  return true;
}

/* The system, scaled. */
typedef struct
{
  unsigned n_rows;
  unsigned n_columns;
  double cost[POD_MAX_FACTORS][POD_MAX_FACTORS];
} Split;

/* The weights of one choice of tight rows and columns in use (bit masks with equally many bits). */
static bool
vertex (const Split *split, unsigned rows, unsigned columns, double *weights)
{
  double matrix[SIDE][SIDE + 1] = { 0 };
  double solution[SIDE];
  unsigned n = 0;

  for (unsigned r = 0; r < split->n_rows; r++)
    if ((rows >> r & 1) != 0)
      {
        unsigned k = 0;

        for (unsigned c = 0; c < split->n_columns; c++)
          if ((columns >> c & 1) != 0)
            matrix[n][k++] = split->cost[r][c];
        matrix[n++][k] = -1;
      }
  for (unsigned k = 0; k < n; k++)
    matrix[n][k] = 1;
  matrix[n][n + 1] = 1;
  if (!solve (n + 1, matrix, solution))
    return false;
  n = 0;
  for (unsigned c = 0; c < split->n_columns; c++)
    {
      weights[c] = (columns >> c & 1) != 0 ? solution[n++] : 0;
      if (weights[c] < -1e-9)
        return false;
      weights[c] = MAX (weights[c], 0);
    }
  return true;
}

static double
largest_row (const Split *split, const double *weights)
{
  double largest = 0;

  for (unsigned r = 0; r < split->n_rows; r++)
    {
      double sum = 0;

      for (unsigned c = 0; c < split->n_columns; c++)
        sum += split->cost[r][c] * weights[c];
      largest = MAX (largest, sum);
    }
  return largest;
}

static unsigned
count_bits (unsigned mask)
{
  unsigned n = 0;

  for (; mask != 0; mask &= mask - 1)
    n++;
  return n;
}

double
pod_split_minimax (unsigned n_rows, unsigned n_columns,
                   double cost[POD_MAX_FACTORS][POD_MAX_FACTORS], double *weights)
{
  Split split = { .n_rows = n_rows, .n_columns = n_columns };
  double best = INFINITY, largest = 0;
  bool is_small = n_columns <= POD_MAX_SPLIT && n_rows <= POD_MAX_SPLIT;

  g_assert (n_rows >= 1 && n_rows <= POD_MAX_FACTORS && n_columns >= 1
            && n_columns <= POD_MAX_FACTORS);
  /* Costs are seconds per byte, around 1e-11: scaled to 1, so that one threshold of singularity
   * fits all */
  for (unsigned r = 0; r < n_rows; r++)
    for (unsigned c = 0; c < n_columns; c++)
      largest = MAX (largest, cost[r][c]);
  for (unsigned r = 0; r < n_rows; r++)
    for (unsigned c = 0; c < n_columns; c++)
      split.cost[r][c] = largest > 0 ? cost[r][c] / largest : 0;

  for (unsigned columns = 1; columns < 1U << n_columns; columns++)
    for (unsigned rows = 1; rows < 1U << n_rows; rows++)
      {
        double trial[POD_MAX_FACTORS] = { 0 }, value;
        unsigned n = count_bits (columns);

        if (count_bits (rows) != n || (n > 1 && !is_small)
            || !vertex (&split, rows, columns, trial))
          continue;
        value = largest_row (&split, trial);
        if (value < best * (1 - 1e-12))
          {
            best = value;
            memcpy (weights, trial, n_columns * sizeof *weights);
          }
      }
  return best * largest;
}
