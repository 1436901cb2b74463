#include "validate/fit-collectives.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* A pattern search in the logarithms of the numbers: each is moved up and down by its own step,
 * kept where the loss falls, the step halved where it does not; then again from disturbed copies of
 * the best. It needs no gradient, which a chooser that jumps between protocols does not have. */

enum
{
  SEED = 20261129,
  N_STARTS = 192,
  MAX_SWEEPS = 160,
};

/* Errors below this are left to their average, those above count more: the bar is on the 90th
 * percentile too. */
static const double wide_error = 0.10;
static const double wide_weight = 2.0;
/* Small rows pull this much where they are noise: where a doubled size runs over 10 % faster in
 * more than a tenth of the steps. Elsewhere they count as the others do. */
static const double noisy_weight = 0.25;
static const double noisy_most = 1.2;
static const double noisy_part = 0.1;
static const double noisy_step = 0.9;
/* Pulls what the rows do not decide to where the template starts: the square of its logarithm. */
static const double start_weight = 1e-3;

/* A path by which a case may go. */
typedef struct
{
  const PodLibraryPath *path;
  const PodLibraryShape *shape;
} Way;

typedef struct
{
  const GArray *cases; /* (element-type PodLibraryCase) */
  const GArray *ways;  /* (element-type Way) of the cases */
  uint64_t bytes;
  double time_s;
  PodCollectiveKind kind;
  bool is_small;
  bool is_noisy;
  bool is_fitted;
} Row;

typedef struct
{
  PodLibraryDevice *device;
  GArray *rows;     /* Row */
  GPtrArray *cases; /* (owned) GArray */
  GPtrArray *ways;  /* (owned) GArray, as the cases */
  GArray *numbers;  /* double *: what moves */
  GArray *least;    /* double */
  GArray *most;     /* double */
  GArray *start;    /* double: logarithm */
  GArray *beliefs;  /* guint: which of them are tuner numbers */
  double weight[POD_N_COLLECTIVES];
} Fit;

static void
unref_cases (gpointer data)
{
  g_array_unref (data);
}

static void
fit_clear (Fit *fit)
{
  g_array_unref (fit->rows);
  g_ptr_array_unref (fit->cases);
  g_ptr_array_unref (fit->ways);
  g_array_unref (fit->numbers);
  g_array_unref (fit->least);
  g_array_unref (fit->most);
  g_array_unref (fit->start);
  g_array_unref (fit->beliefs);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fit, fit_clear)

uint32_t *
pod_collective_first_group (uint32_t n_ranks, PodGroup *out)
{
  uint32_t *devices = g_new (uint32_t, n_ranks);

  for (uint32_t i = 0; i < n_ranks; i++)
    devices[i] = i;
  *out = (PodGroup){ .n_devices = n_ranks, .devices = devices };
  return devices;
}

/* ---- the rows ---- */

static GArray *
find_ways (const PodLibraryDevice *device, const GArray *cases)
{
  GArray *ways = g_array_new (FALSE, TRUE, sizeof (Way));

  for (guint c = 0; c < cases->len; c++)
    for (guint i = 0; i < device->paths->len; i++)
      {
        const PodLibraryCase *one = &g_array_index (cases, PodLibraryCase, c);
        const Way way = { .path = g_ptr_array_index (device->paths, i), .shape = &one->shape };

        if (pod_library_path_fits (device, way.path, way.shape, one->algorithm))
          g_array_append_val (ways, way);
      }
  return ways;
}

/* The cases of the sample, shared between sizes. */
static GArray *
find_cases (Fit *fit, const PodLibrary *library, const PodTopology *topology, guint first_case,
            const PodCollectiveSample *sample, GError **error)
{
  PodGroup group;
  g_autofree uint32_t *devices = NULL;
  GArray *cases;

  for (guint i = first_case; i < fit->cases->len; i++)
    {
      const GArray *known = g_ptr_array_index (fit->cases, i);
      const PodLibraryShape *shape = &g_array_index (known, PodLibraryCase, 0).shape;

      if (shape->kind == sample->kind && shape->dtype == sample->dtype
          && shape->n_ranks == sample->n_ranks)
        return g_ptr_array_index (fit->cases, i);
    }
  devices = pod_collective_first_group (sample->n_ranks, &group);
  cases = pod_library_cases (
      &(PodPlanQuery){
          .topology = topology,
          .fidelity = POD_FIDELITY_CALIBRATED,
          .group = &group,
          .kind = sample->kind,
          .dtype = sample->dtype,
          .library = library,
      },
      error);
  if (cases == NULL)
    return NULL;
  if (cases->len == 0)
    {
      g_array_unref (cases);
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "the template has no path for %s over %u ranks",
                   pod_collective_name (sample->kind), sample->n_ranks);
      return NULL;
    }
  g_ptr_array_add (fit->cases, cases);
  g_ptr_array_add (fit->ways, find_ways (fit->device, cases));
  return cases;
}

/* The time of the same collective at twice the size; 0 = not measured. O(rows). */
static double
doubled_s (const Fit *fit, guint first_row, const Row *row)
{
  for (guint i = first_row; i < fit->rows->len; i++)
    {
      const Row *other = &g_array_index (fit->rows, Row, i);

      if (other->cases == row->cases && other->bytes == 2 * row->bytes)
        return other->time_s;
    }
  return 0;
}

/* Says of the small rows from @first_row on whether they are noise. */
static void
mark_noise (Fit *fit, guint first_row)
{
  unsigned n_steps = 0, n_faster = 0;

  for (guint i = first_row; i < fit->rows->len; i++)
    {
      const Row *row = &g_array_index (fit->rows, Row, i);
      double after_s = row->is_small ? doubled_s (fit, first_row, row) : 0;

      n_steps += after_s > 0;
      n_faster += after_s > 0 && after_s < noisy_step * row->time_s;
    }
  for (guint i = first_row; i < fit->rows->len; i++)
    {
      Row *row = &g_array_index (fit->rows, Row, i);

      row->is_noisy = row->is_small && n_faster > noisy_part * n_steps;
    }
}

static bool
add_rows (Fit *fit, const PodLibrary *library, const PodCollectiveFitInput *input, GError **error)
{
  guint first_case = fit->cases->len, first_row = fit->rows->len;

  for (guint i = 0; i < input->table->samples->len; i++)
    {
      const PodCollectiveSample *sample
          = &g_array_index (input->table->samples, PodCollectiveSample, i);
      const PodTopology *topology;
      Row row = {
        .bytes = sample->bytes,
        .time_s = sample->time_s,
        .kind = sample->kind,
        .is_small = sample->is_small,
        .is_fitted = sample->is_fitted,
      };

      if (!pod_collective_machines_find (input->machines, sample->n_ranks, &topology, error))
        return false;
      if (topology == NULL)
        continue;
      row.cases = find_cases (fit, library, topology, first_case, sample, error);
      if (row.cases == NULL)
        {
          g_prefix_error (error, "%s:%u: ", input->table->file, sample->line);
          return false;
        }
      for (guint c = first_case; c < fit->cases->len; c++)
        if (g_ptr_array_index (fit->cases, c) == row.cases)
          row.ways = g_ptr_array_index (fit->ways, c);
      g_array_append_val (fit->rows, row);
    }
  mark_noise (fit, first_row);
  return true;
}

static void
add_numbers (Fit *fit)
{
  for (guint i = 0; i < fit->device->paths->len; i++)
    {
      PodLibraryPath *path = g_ptr_array_index (fit->device->paths, i);

      for (size_t k = 0; k < pod_n_library_numbers; k++)
        {
          double *number = pod_library_number (path, k);
          double start = log (*number);

          if (g_strcmp0 (path->sources[k], POD_LIBRARY_FITTED) != 0)
            continue;
          if (g_str_has_prefix (pod_library_numbers[k].name, "tuner_"))
            g_array_append_val (fit->beliefs, fit->numbers->len);
          g_array_append_val (fit->numbers, number);
          g_array_append_val (fit->least, pod_library_numbers[k].least);
          g_array_append_val (fit->most, pod_library_numbers[k].most);
          g_array_append_val (fit->start, start);
        }
    }
}

/* ---- the loss ---- */

/* As pod_library_choose, over the ways that were found once. */
static double
error_of (const Row *row)
{
  const Way *best = NULL;
  double best_s = 0;
  PodLibraryPrice price;

  for (guint i = 0; i < row->ways->len; i++)
    {
      const Way *way = &g_array_index (row->ways, Way, i);
      double cost_s = pod_library_cost (way->path, way->shape, row->bytes);

      if (best == NULL || cost_s < best_s * (1 - 1e-9))
        {
          best = way;
          best_s = cost_s;
        }
    }
  g_assert (best != NULL);
  pod_library_price (best->path, best->shape, row->bytes, &price);
  return price.time_s / row->time_s - 1;
}

/* Sum over the operations of the mean loss of their rows. */
static double
loss (const Fit *fit)
{
  double sum = 0;

  for (guint i = 0; i < fit->numbers->len; i++)
    {
      double away = log (*g_array_index (fit->numbers, double *, i))
                    - g_array_index (fit->start, double, i);

      sum += start_weight * away * away;
    }
  for (guint i = 0; i < fit->rows->len; i++)
    {
      const Row *row = &g_array_index (fit->rows, Row, i);
      double e;

      if (!row->is_fitted)
        continue;
      e = fabs (log1p (error_of (row)));
      if (row->is_noisy)
        sum += fit->weight[row->kind] * noisy_weight * MIN (e, noisy_most);
      else
        sum += fit->weight[row->kind] * (e + wide_weight * MAX (0, e - wide_error));
    }
  return sum;
}

static void
weigh (Fit *fit)
{
  double n[POD_N_COLLECTIVES] = { 0 };

  for (guint i = 0; i < fit->rows->len; i++)
    {
      const Row *row = &g_array_index (fit->rows, Row, i);

      if (row->is_fitted)
        n[row->kind] += row->is_noisy ? noisy_weight : 1;
    }
  for (unsigned k = 0; k < POD_N_COLLECTIVES; k++)
    fit->weight[k] = n[k] > 0 ? 1 / n[k] : 0;
}

/* ---- the search ---- */

static double *
number_at (const Fit *fit, guint index)
{
  return g_array_index (fit->numbers, double *, index);
}

static void
move (const Fit *fit, guint index, double value)
{
  *number_at (fit, index) = CLAMP (value, g_array_index (fit->least, double, index),
                                   g_array_index (fit->most, double, index));
}

static double
search (const Fit *fit)
{
  const guint n = fit->numbers->len;
  g_autofree double *step = g_new (double, n);
  double best = loss (fit);

  for (guint i = 0; i < n; i++)
    step[i] = 0.3;
  for (unsigned sweep = 0; sweep < MAX_SWEEPS; sweep++)
    {
      double before = best, widest = 0;

      for (guint i = 0; i < n; i++)
        {
          double was = *number_at (fit, i);
          bool is_better = false;

          for (int sign = 1; sign >= -1 && !is_better; sign -= 2)
            {
              double now;

              move (fit, i, was * exp (sign * step[i]));
              now = loss (fit);
              is_better = now < best;
              if (is_better)
                best = now;
            }
          if (!is_better)
            *number_at (fit, i) = was;
          step[i] *= is_better ? 1.5 : 0.5;
          if (step[i] < 1e-3)
            step[i] = before > best ? 0.02 : 1e-3;
          widest = MAX (widest, step[i]);
        }
      if (widest <= 2e-3 && before - best < 1e-6 * best)
        break;
    }
  return best;
}

/* As the file will have it: four digits. */
static void
round_numbers (const Fit *fit)
{
  for (guint i = 0; i < fit->numbers->len; i++)
    {
      char text[G_ASCII_DTOSTR_BUF_SIZE];

      g_ascii_formatd (text, sizeof text, "%.4g", *number_at (fit, i));
      *number_at (fit, i) = g_ascii_strtod (text, NULL);
    }
}

static void
keep (const Fit *fit, double *values)
{
  for (guint i = 0; i < fit->numbers->len; i++)
    values[i] = *number_at (fit, i);
}

static void
put_back (const Fit *fit, const double *values)
{
  for (guint i = 0; i < fit->numbers->len; i++)
    *number_at (fit, i) = values[i];
}

/* How far one number goes, in its logarithm, before the loss rises. */
static double
slack (const Fit *fit, guint index, int sign)
{
  const double step = 0.01, most = 0.5, rise = 1e-3;
  double was = *number_at (fit, index), limit = loss (fit) * (1 + rise), away = 0;

  while (away < most)
    {
      move (fit, index, was * exp (sign * (away + step)));
      if (loss (fit) > limit)
        break;
      away += step;
    }
  *number_at (fit, index) = was;
  return away;
}

/* What the library believes only decides between which two measured sizes it changes its path:
 * any value that does so fits as well, and the search ends at the first. Takes the middle. */
static void
center_beliefs (const Fit *fit)
{
  for (guint i = 0; i < fit->beliefs->len; i++)
    {
      guint index = g_array_index (fit->beliefs, guint, i);
      double up = slack (fit, index, 1), down = slack (fit, index, -1);

      move (fit, index, *number_at (fit, index) * exp ((up - down) / 2));
    }
}

/* Every second time all numbers are disturbed, else about a third of them, further. */
static void
disturb (const Fit *fit, const double *from, bool is_all, GRand *random)
{
  put_back (fit, from);
  for (guint i = 0; i < fit->numbers->len; i++)
    if (is_all)
      move (fit, i, from[i] * exp (g_rand_double_range (random, -0.7, 0.7)));
    else if (g_rand_double (random) < 1.0 / 3)
      move (fit, i, from[i] * exp (g_rand_double_range (random, -1.2, 1.2)));
}

static void
search_from_many (const Fit *fit)
{
  g_autofree double *best = g_new (double, fit->numbers->len + 1);
  g_autoptr (GRand) random = g_rand_new_with_seed (SEED);
  double least = search (fit);

  keep (fit, best);
  for (unsigned start = 1; start < N_STARTS; start++)
    {
      double now;

      disturb (fit, best, start % 2 == 1, random);
      now = search (fit);
      if (now < least)
        {
          least = now;
          keep (fit, best);
        }
    }
  put_back (fit, best);
  center_beliefs (fit);
  round_numbers (fit);
}

/* ---- what came of it ---- */

static int
compare_doubles (const void *a, const void *b)
{
  double left = *(const double *) a, right = *(const double *) b;

  return (left > right) - (left < right);
}

static double
median_error (const Fit *fit, bool is_fitted)
{
  g_autoptr (GArray) errors = g_array_new (FALSE, FALSE, sizeof (double));

  for (guint i = 0; i < fit->rows->len; i++)
    {
      const Row *row = &g_array_index (fit->rows, Row, i);
      double e;

      if (row->is_fitted != is_fitted)
        continue;
      e = fabs (error_of (row));
      g_array_append_val (errors, e);
    }
  if (errors->len == 0)
    return 0;
  qsort (errors->data, errors->len, sizeof (double), compare_doubles);
  return g_array_index (errors, double, errors->len / 2);
}

/* Adds the cases of 8 and of 64 nodes of this chip, which no table has: they tell which paths
 * between nodes are ever taken. */
static bool
add_net_cases (Fit *fit, const PodLibrary *library, const PodChip *chip, GError **error)
{
  for (unsigned n_nodes = 8; n_nodes <= 64; n_nodes *= 8)
    {
      g_autofree char *shape
          = g_strdup_printf ("%s:%ux%u", chip->name, chip->scale_up_chips, n_nodes);
      g_autoptr (PodTopology) topology = pod_topology_load (shape, error);
      PodCollectiveSample sample = { .kind = POD_ALL_GATHER };
      guint first_case = fit->cases->len;

      if (topology == NULL)
        return false;
      sample.n_ranks = topology->n_devices;
      for (; sample.kind <= POD_ALL_REDUCE; sample.kind++)
        for (sample.dtype = POD_DTYPE_FP32; sample.dtype <= POD_DTYPE_BF16; sample.dtype++)
          if (find_cases (fit, library, topology, first_case, &sample, error) == NULL)
            return false;
    }
  return true;
}

/* Paths that win for no collective of the tables, and of several nodes, from 1 B to 1 TiB, would
 * only be read, never used. */
static void
drop_unreached (const Fit *fit)
{
  g_autoptr (GPtrArray) reached = g_ptr_array_new ();

  for (guint c = 0; c < fit->cases->len; c++)
    for (unsigned log2 = 0; log2 <= 40; log2++)
      {
        PodLibraryPrice price;

        g_ptr_array_add (reached, (gpointer) pod_library_choose (fit->device,
                                                                 g_ptr_array_index (fit->cases, c),
                                                                 UINT64_C (1) << log2, &price));
      }
  for (guint i = fit->device->paths->len; i-- > 0;)
    if (!g_ptr_array_find (reached, g_ptr_array_index (fit->device->paths, i), NULL))
      g_ptr_array_remove_index (fit->device->paths, i);
}

static unsigned
count_fitted (const PodLibraryDevice *device)
{
  unsigned n = 0;

  for (guint i = 0; i < device->paths->len; i++)
    for (size_t k = 0; k < pod_n_library_numbers; k++)
      n += g_strcmp0 (((const PodLibraryPath *) g_ptr_array_index (device->paths, i))->sources[k],
                      POD_LIBRARY_FITTED)
           == 0;
  return n;
}

bool
pod_fit_collectives (const PodCollectiveFitInput *inputs, unsigned n_inputs,
                     PodLibraryDevice *device, PodCollectiveFit *out, GError **error)
{
  g_autoptr (GPtrArray) devices = g_ptr_array_new ();
  const PodLibrary library
      = { .devices = devices }; /* this entry alone, so that it is the one found */
  g_auto (Fit) fit = {
    .device = device,
    .rows = g_array_new (FALSE, TRUE, sizeof (Row)),
    .cases = g_ptr_array_new_with_free_func (unref_cases),
    .ways = g_ptr_array_new_with_free_func (unref_cases),
    .numbers = g_array_new (FALSE, TRUE, sizeof (double *)),
    .least = g_array_new (FALSE, TRUE, sizeof (double)),
    .most = g_array_new (FALSE, TRUE, sizeof (double)),
    .start = g_array_new (FALSE, TRUE, sizeof (double)),
    .beliefs = g_array_new (FALSE, TRUE, sizeof (guint)),
  };

  g_ptr_array_add (devices, device);
  for (unsigned i = 0; i < n_inputs; i++)
    if (!add_rows (&fit, &library, &inputs[i], error))
      return false;
  if (fit.rows->len == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "no row to fit");
      return false;
    }
  add_numbers (&fit);
  weigh (&fit);
  search_from_many (&fit);
  *out = (PodCollectiveFit){
    .n_rows = fit.rows->len,
    .fitted_half = median_error (&fit, true),
    .held_out = median_error (&fit, false),
  };
  for (unsigned i = 0; i < n_inputs; i++)
    if (!add_net_cases (&fit, &library, pod_collective_machines_domain (inputs[i].machines)->chip,
                        error))
      return false;
  drop_unreached (&fit); /* the ways of the rows name paths that are gone: no price after this */
  out->n_numbers = count_fitted (device);
  return true;
}
