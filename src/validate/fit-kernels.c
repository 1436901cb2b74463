#include "validate/fit-kernels.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

/* The model of a sample is t = sum over its terms of base x exp (s), where s is the sum of surfaces
 * at the term's points, linear in their values v: s = sum (weight x v) + what other surfaces give.
 * The values minimise
 *
 *   sum of w r^2  +  sum over nodes and axes (roughness x bend)^2  +  sum (lean x v)^2,
 *   r = ln (measured / t)
 *
 * by Gauss-Newton steps; bend is how far a node is off the line through its neighbours. The weights
 *
 *   w = min (1, spread / |r|) / (1 + (r / spike)^2)^2,   r of the step before
 *
 * make residuals count as their amount, not its square (Huber), and spikes hardly at all: the
 * tables have kernels that ran 3 to 8 times as long as their neighbours. A matmul of the next node
 * that would take less time costs (rise x fall in ln t)^2 more: silicon does fall here and there,
 * but no plan for a machine should hang on it. Roughness, lean, spread and spike were chosen by the
 * held-out errors over A100, H100, B200 and GB200; a third or thrice of the roughness changes a
 * mean error by 0.3 % at most. */

static const double roughness_squared = 1.0;
static const double lean_squared = 0.05;
static const double spread = 0.25;
static const double spike = 0.5;
static const double rise_squared = 300.0;

enum
{
  N_STEPS = 8,
};

/* A sample in terms of the unknowns. */
typedef struct
{
  double base_s; /* with the surfaces that are not fitted */
  double ideal_s;
  unsigned first; /* of the links */
  unsigned n;
} Term;

typedef struct
{
  unsigned index;
  double weight;
} Link;

typedef struct
{
  double log_measured;
  unsigned fold;
  unsigned first_term;
  unsigned n_terms;
} Row;

typedef struct
{
  PodSurface *surfaces[POD_N_SURFACES]; /* (nullable elements) owned: those that are fitted */
  unsigned offsets[POD_N_SURFACES];
  double *node_logs[POD_N_SURFACES]; /* (nullable elements) ln of the closed form at the nodes, of
                                        surfaces along which times should rise */
  unsigned n;                        /* unknowns */
  double *values;
  double *matrix; /* lower triangle of the normal equations, rows of n */
  double *right;
  unsigned *starts; /* first column of each row that is not 0 */
  GArray *rows;
  GArray *terms;
  GArray *links;
} Fit;

static void
fit_clear (Fit *fit)
{
  for (unsigned i = 0; i < POD_N_SURFACES; i++)
    {
      pod_surface_free (fit->surfaces[i]);
      g_free (fit->node_logs[i]);
    }
  g_free (fit->values);
  g_free (fit->matrix);
  g_free (fit->right);
  g_free (fit->starts);
  g_clear_pointer (&fit->rows, g_array_unref);
  g_clear_pointer (&fit->terms, g_array_unref);
  g_clear_pointer (&fit->links, g_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fit, fit_clear)

/* -- setting up -------------------------------------------------------------------------------- */

static void
add_term (Fit *fit, const PodChip *chip, const PodKernelTerm *term)
{
  Term to = { .base_s = term->base_s, .ideal_s = term->ideal_s, .first = fit->links->len };

  for (unsigned p = 0; p < term->n_points; p++)
    {
      const PodKernelPoint *point = &term->points[p];
      const PodSurface *surface = fit->surfaces[point->kind];
      PodSurfaceCorners corners;

      if (surface == NULL)
        {
          if (chip->surfaces[point->kind] != NULL)
            to.base_s *= exp (pod_surface_at (chip->surfaces[point->kind], point->at));
          continue;
        }
      pod_surface_corners (surface, point->at, &corners);
      for (unsigned c = 0; c < corners.n; c++)
        {
          Link link = { fit->offsets[point->kind] + corners.indices[c], corners.weights[c] };

          if (link.weight > 0.0)
            g_array_append_val (fit->links, link);
        }
    }
  to.n = fit->links->len - to.first;
  g_array_append_val (fit->terms, to);
}

static void
add_sample (Fit *fit, const PodChip *chip, const PodKernelSample *sample)
{
  PodKernelTerm terms[POD_SAMPLE_MAX_TERMS];
  unsigned n_terms = pod_kernel_sample_terms (chip, sample, terms);
  Row row = {
    .log_measured = log (sample->time_s),
    .fold = sample->fold,
    .first_term = fit->terms->len,
    .n_terms = n_terms,
  };

  for (unsigned i = 0; i < n_terms; i++)
    add_term (fit, chip, &terms[i]);
  g_array_append_val (fit->rows, row);
}

/* ln of the closed form of one matmul at every node. */
static void
set_node_logs (Fit *fit, const PodChip *chip, PodChipSurface kind, PodDtype dtype)
{
  const PodSurface *surface = fit->surfaces[kind];
  double bytes = pod_dtype_bytes (dtype);
  PodChip bare = *chip; /* borrows all but the surfaces */

  if (surface == NULL)
    return;
  memset (bare.surfaces, 0, sizeof bare.surfaces);
  fit->node_logs[kind] = g_new (double, surface->n_values);
  for (unsigned i = 0; i < surface->n_values; i++)
    {
      uint64_t size[POD_SURFACE_MAX_AXES];
      unsigned rest = i;
      PodKernel kernel;
      PodKernelTime time;

      for (unsigned a = surface->n_axes; a-- > 0; rest /= surface->axes[a].n_nodes)
        size[a] = (uint64_t) surface->axes[a].nodes[rest % surface->axes[a].n_nodes];
      kernel = pod_kernel_matmul (1, size[0], size[1], size[2], dtype, bytes, bytes, 2.0);
      pod_kernel_time (&bare, POD_FIDELITY_CALIBRATED, &kernel, &time);
      fit->node_logs[kind][i] = log (time.time_s);
    }
}

static bool
fit_init (Fit *fit, const PodChip *chip, const GArray *samples, const PodSurfaceGrid *grids,
          unsigned n_grids, GError **error)
{
  for (unsigned i = 0; i < n_grids; i++)
    {
      PodChipSurface kind = grids[i].kind;
      unsigned n_axes = 0;

      while (pod_chip_surface_axis (kind, n_axes) != NULL)
        n_axes++;
      fit->surfaces[kind] = pod_surface_new (n_axes, grids[i].nodes, error);
      if (fit->surfaces[kind] == NULL)
        return false;
      fit->offsets[kind] = fit->n;
      fit->n += fit->surfaces[kind]->n_values;
    }
  set_node_logs (fit, chip, POD_SURFACE_MATMUL_BF16, POD_DTYPE_BF16);
  set_node_logs (fit, chip, POD_SURFACE_MATMUL_FP8, POD_DTYPE_FP8);
  fit->values = g_new0 (double, fit->n);
  fit->matrix = g_new (double, (size_t) fit->n * fit->n);
  fit->right = g_new (double, fit->n);
  fit->starts = g_new (unsigned, fit->n);
  fit->rows = g_array_new (FALSE, FALSE, sizeof (Row));
  fit->terms = g_array_new (FALSE, FALSE, sizeof (Term));
  fit->links = g_array_new (FALSE, FALSE, sizeof (Link));
  for (guint i = 0; i < samples->len; i++)
    add_sample (fit, chip, &g_array_index (samples, PodKernelSample, i));
  return true;
}

/* -- the normal equations ---------------------------------------------------------------------- */

static void
add_product (Fit *fit, unsigned row, unsigned column, double product)
{
  if (column > row)
    return;
  fit->matrix[(size_t) row * fit->n + column] += product;
  fit->starts[row] = MIN (fit->starts[row], column);
}

/* Bends of node @index of @surface along one axis, whose neighbours are @stride apart. */
static void
add_bend (Fit *fit, const PodSurfaceAxis *axis, unsigned node, unsigned index, unsigned stride)
{
  double before = axis->log2s[node] - axis->log2s[node - 1];
  double after = axis->log2s[node + 1] - axis->log2s[node];
  const double parts[] = { -after / (before + after), 1.0, -before / (before + after) };
  const unsigned at[] = { index - stride, index, index + stride };

  for (unsigned i = 0; i < 3; i++)
    for (unsigned j = 0; j < 3; j++)
      add_product (fit, at[i], at[j], roughness_squared * parts[i] * parts[j]);
}

static void
add_smoothness (Fit *fit, const PodSurface *surface, unsigned offset)
{
  unsigned stride = surface->n_values;

  for (unsigned a = 0; a < surface->n_axes; a++)
    {
      const PodSurfaceAxis *axis = &surface->axes[a];

      stride /= axis->n_nodes;
      for (unsigned i = 0; i < surface->n_values; i++)
        {
          unsigned node = i / stride % axis->n_nodes;

          add_product (fit, offset + i, offset + i, lean_squared);
          if (node > 0 && node + 1 < axis->n_nodes)
            add_bend (fit, axis, node, offset + i, stride);
        }
    }
}

/* Nodes @index and @next of the unknowns, whose closed forms differ by @log_step. */
static void
add_rise (Fit *fit, unsigned index, unsigned next, double log_step)
{
  if (log_step + fit->values[next] - fit->values[index] >= 0.0)
    return;
  add_product (fit, index, index, rise_squared);
  add_product (fit, next, next, rise_squared);
  add_product (fit, next, index, -rise_squared);
  fit->right[index] += rise_squared * log_step;
  fit->right[next] -= rise_squared * log_step;
}

static void
add_rises (Fit *fit, const PodSurface *surface, const double *node_logs, unsigned offset)
{
  unsigned stride = surface->n_values;

  for (unsigned a = 0; a < surface->n_axes; a++)
    {
      unsigned n_nodes = surface->axes[a].n_nodes;

      stride /= n_nodes;
      for (unsigned i = 0; i + stride < surface->n_values; i++)
        if (i / stride % n_nodes + 1 < n_nodes)
          add_rise (fit, offset + i, offset + i + stride, node_logs[i + stride] - node_logs[i]);
    }
}

static double
term_s (const Fit *fit, const Term *term, double *out_unclamped_s)
{
  double sum = 0.0;

  for (unsigned i = term->first; i < term->first + term->n; i++)
    {
      const Link *link = &g_array_index (fit->links, Link, i);

      sum += link->weight * fit->values[link->index];
    }
  *out_unclamped_s = term->base_s * exp (sum);
  return MAX (*out_unclamped_s, term->ideal_s);
}

static double
row_s (const Fit *fit, const Row *row)
{
  double sum_s = 0.0, unclamped_s;

  for (unsigned i = 0; i < row->n_terms; i++)
    sum_s += term_s (fit, &g_array_index (fit->terms, Term, row->first_term + i), &unclamped_s);
  return sum_s;
}

static double
residual_weight (double residual)
{
  double fall = 1.0 + residual * residual / (spike * spike);

  return MIN (1.0, spread / MAX (fabs (residual), spread)) / (fall * fall);
}

/* The row's gradient d ln t / d v is sum over terms of (part of t) x link weight. */
static void
add_row (Fit *fit, const Row *row, bool is_first_step)
{
  double part_s[POD_SAMPLE_MAX_TERMS], total_s = 0.0, residual, weight;
  Link links[POD_SAMPLE_MAX_TERMS * POD_TERM_MAX_POINTS * POD_SURFACE_MAX_CORNERS];
  unsigned n = 0;
  double known = 0.0; /* gradient x values, so that the step gives values rather than changes */

  for (unsigned i = 0; i < row->n_terms; i++)
    {
      term_s (fit, &g_array_index (fit->terms, Term, row->first_term + i), &part_s[i]);
      total_s += part_s[i];
    }
  for (unsigned i = 0; i < row->n_terms; i++)
    {
      const Term *term = &g_array_index (fit->terms, Term, row->first_term + i);

      for (unsigned l = term->first; l < term->first + term->n; l++)
        {
          links[n] = g_array_index (fit->links, Link, l);
          links[n].weight *= part_s[i] / total_s;
          known += links[n].weight * fit->values[links[n].index];
          n++;
        }
    }
  residual = row->log_measured - log (total_s);
  weight = is_first_step ? 1.0 : residual_weight (residual);
  for (unsigned i = 0; i < n; i++)
    {
      fit->right[links[i].index] += weight * links[i].weight * (residual + known);
      for (unsigned j = 0; j < n; j++)
        add_product (fit, links[i].index, links[j].index,
                     weight * links[i].weight * links[j].weight);
    }
}

/* Cholesky factor in place, within the envelope of each row: nothing before its first entry ever
 * fills. O(n x width^2). */
static void
factorise (Fit *fit)
{
  for (unsigned i = 0; i < fit->n; i++)
    {
      double *row = fit->matrix + (size_t) i * fit->n;

      for (unsigned j = fit->starts[i]; j <= i; j++)
        {
          const double *other = fit->matrix + (size_t) j * fit->n;
          double sum = row[j];

          for (unsigned k = MAX (fit->starts[i], fit->starts[j]); k < j; k++)
            sum -= row[k] * other[k];
          row[j] = j < i ? sum / other[j] : sqrt (sum);
        }
    }
}

static void
solve (Fit *fit)
{
  double *x = fit->values;

  factorise (fit);
  memcpy (x, fit->right, fit->n * sizeof *x);
  for (unsigned i = 0; i < fit->n; i++)
    {
      const double *row = fit->matrix + (size_t) i * fit->n;

      for (unsigned k = fit->starts[i]; k < i; k++)
        x[i] -= row[k] * x[k];
      x[i] /= row[i];
    }
  for (unsigned i = fit->n; i-- > 0;)
    {
      const double *row = fit->matrix + (size_t) i * fit->n;

      x[i] /= row[i];
      for (unsigned k = fit->starts[i]; k < i; k++)
        x[k] -= row[k] * x[i];
    }
}

/* Fits the values to all rows but those of fold @left_out; -1: to all. */
static void
fit_values (Fit *fit, int left_out)
{
  memset (fit->values, 0, fit->n * sizeof *fit->values);
  for (int step = 0; step < N_STEPS; step++)
    {
      memset (fit->matrix, 0, (size_t) fit->n * fit->n * sizeof *fit->matrix);
      memset (fit->right, 0, fit->n * sizeof *fit->right);
      for (unsigned i = 0; i < fit->n; i++)
        fit->starts[i] = i;
      for (unsigned i = 0; i < POD_N_SURFACES; i++)
        {
          if (fit->surfaces[i] != NULL)
            add_smoothness (fit, fit->surfaces[i], fit->offsets[i]);
          if (fit->node_logs[i] != NULL)
            add_rises (fit, fit->surfaces[i], fit->node_logs[i], fit->offsets[i]);
        }
      for (guint i = 0; i < fit->rows->len; i++)
        {
          const Row *row = &g_array_index (fit->rows, Row, i);

          if ((int) row->fold != left_out)
            add_row (fit, row, step == 0);
        }
      solve (fit);
    }
}

/* -- judging ----------------------------------------------------------------------------------- */

static unsigned
add_errors (const Fit *fit, int fold, double *errors)
{
  unsigned n = 0;

  for (guint i = 0; i < fit->rows->len; i++)
    {
      const Row *row = &g_array_index (fit->rows, Row, i);

      if (fold < 0 || (int) row->fold == fold)
        errors[n++] = row_s (fit, row) / exp (row->log_measured) - 1.0;
    }
  return n;
}

/* Each fold left out in turn. */
static PodErrorSummary
judge_held_out (Fit *fit)
{
  g_autofree double *errors = g_new (double, fit->rows->len + 1);
  unsigned n = 0;

  for (int fold = 0; fold < POD_SAMPLE_N_FOLDS; fold++)
    {
      fit_values (fit, fold);
      n += add_errors (fit, fold, errors + n);
    }
  return pod_error_summary (errors, n);
}

static void
keep_surfaces (Fit *fit, PodChip *chip)
{
  for (unsigned i = 0; i < POD_N_SURFACES; i++)
    {
      PodSurface *surface = fit->surfaces[i];

      if (surface == NULL)
        continue;
      memcpy (surface->values, fit->values + fit->offsets[i],
              surface->n_values * sizeof *surface->values);
      pod_surface_round (surface);
      memcpy (fit->values + fit->offsets[i], surface->values,
              surface->n_values * sizeof *surface->values);
      pod_surface_free (chip->surfaces[i]);
      chip->surfaces[i] = pod_surface_copy (surface);
    }
}

bool
pod_fit_kernels (PodChip *chip, const GArray *samples, const PodSurfaceGrid *grids,
                 unsigned n_grids, PodKernelFit *out, GError **error)
{
  g_auto (Fit) fit = { 0 };
  g_autofree double *errors = g_new (double, samples->len + 1);

  if (!fit_init (&fit, chip, samples, grids, n_grids, error))
    return false;
  *out = (PodKernelFit){ .n_rows = samples->len, .n_numbers = fit.n };
  out->held_out = judge_held_out (&fit);
  fit_values (&fit, -1);
  keep_surfaces (&fit, chip);
  out->fitted = pod_error_summary (errors, add_errors (&fit, -1, errors));
  return true;
}
