#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/output.h"
#include "base/table.h"
#include "cli/cli.h"
#include "cli/validate-plot.h"
#include "cli/validate-private.h"
#include "validate/untuned-experts.h"

/* podsim validate kernels: matmuls, attention and experts against measured ones. */

enum
{
  N_WORST = 10,
};

/* The tables of the tree, in workloads/measured. */
static const PodKernelValidationInput shipped[] = {
  { "gemm-a100.tsv.gz", "a100" },
  { "gemm-h100.tsv.gz", "h100" },
  { "gemm-h200.tsv.gz", "h200" },
  { "gemm-b200.tsv.gz", "b200" },
  { "gemm-gb200.tsv.gz", "gb200" },
  { "attention-a100.tsv.gz", "a100" },
  { "attention-h100.tsv.gz", "h100" },
  { "attention-b200.tsv.gz", "b200" },
  { "attention-decode-h100.tsv.gz", "h100" },
  { "moe-h100.tsv.gz", "h100" },
};

/* The inputs with their files found. Returns: (transfer full) (nullable) (element-type utf8) the
 * names of the files, in order. */
static GPtrArray *
list_inputs (const PodValidateOptions *options, PodKernelValidationInput *inputs, GError **error)
{
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func (g_free);

  if ((options->table == NULL) != (options->chip == NULL))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--table and --chip belong together");
      return NULL;
    }
  if (options->table != NULL)
    {
      inputs[0] = (PodKernelValidationInput){ options->table, options->chip };
      g_ptr_array_add (files, g_strdup (options->table));
      return g_steal_pointer (&files);
    }
  for (size_t i = 0; i < G_N_ELEMENTS (shipped); i++)
    {
      char *file = pod_data_find ("workloads/measured", shipped[i].file, ".tsv.gz");

      if (file == NULL)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "the table workloads/measured/%s is missing: set PODSIM_PATH",
                       shipped[i].file);
          return NULL;
        }
      inputs[i] = (PodKernelValidationInput){ file, shipped[i].chip };
      g_ptr_array_add (files, file);
    }
  return g_steal_pointer (&files);
}

static char *
percent (double ratio)
{
  return g_strdup_printf ("%.1f", ratio * 100);
}

static void
add_group (PodTable *table, const PodKernelValidation *validation, const PodKernelFilter *filter)
{
  PodErrorSummary summary = pod_kernel_summary (validation, filter);
  g_autofree char *rows = g_strdup_printf ("%u", summary.n_rows);
  g_autofree char *mean = percent (summary.mape);
  g_autofree char *median = percent (summary.median_error);
  g_autofree char *p90 = percent (summary.p90_error);
  g_autofree char *bias = percent (summary.bias);

  if (summary.n_rows > 0)
    pod_table_add_row (table, (const char *const[]){
                                  g_ptr_array_index (validation->sources, (guint) filter->input),
                                  pod_sample_kind_name ((PodSampleKind) filter->kind),
                                  pod_dtype_name ((PodDtype) filter->dtype), rows, mean, median,
                                  p90, bias });
}

/* Returns: (transfer full) */
static PodTable *
make_table (const PodKernelValidation *validation)
{
  PodTable *table = pod_table_new ((const char *const[]){
      "source", "kind", "dtype", ">rows", ">mean %", ">median %", ">p90 %", ">bias %", NULL });

  for (guint i = 0; i < validation->sources->len; i++)
    for (int kind = 0; kind < POD_N_SAMPLE_KINDS; kind++)
      for (int dtype = 0; dtype < POD_N_DTYPES; dtype++)
        add_group (table, validation, &(PodKernelFilter){ .input = (int) i, .kind = kind, .dtype = dtype });
  return table;
}

/* Returns: (transfer full) */
static PodTable *
list_verdicts (const PodKernelValidation *validation, const GArray *verdicts, guint n_most)
{
  PodTable *table = pod_table_new (
      (const char *const[]){ "source", ">line", "kind", "dtype", "numbers", ">measured_us",
                             ">predicted_us", ">ideal_us", ">error", NULL });

  for (guint i = 0; i < verdicts->len && i < n_most; i++)
    {
      const PodKernelVerdict *v = &g_array_index (verdicts, PodKernelVerdict, i);
      g_autofree char *line = g_strdup_printf ("%u", v->sample.line);
      g_autofree char *numbers = pod_kernel_sample_to_text (&v->sample);
      g_autofree char *measured = g_strdup_printf ("%.3f", v->sample.time_s * 1e6);
      g_autofree char *predicted = g_strdup_printf ("%.3f", v->predicted_s * 1e6);
      g_autofree char *ideal = g_strdup_printf ("%.3f", v->ideal_s * 1e6);
      g_autofree char *error = g_strdup_printf ("%.5f", pod_kernel_error (v));

      pod_table_add_row (table,
                         (const char *const[]){ g_ptr_array_index (validation->sources, v->input),
                                                line, pod_sample_kind_name (v->sample.kind),
                                                pod_dtype_name (v->sample.dtype), numbers, measured,
                                                predicted, ideal, error });
    }
  return table;
}

/* By size of the logarithm, so that half and double are as bad; ties by place. */
static int
compare_worst (gconstpointer a, gconstpointer b)
{
  const PodKernelVerdict *x = a, *y = b;
  double left = fabs (log1p (pod_kernel_error (x))), right = fabs (log1p (pod_kernel_error (y)));

  if (left != right)
    return left > right ? -1 : 1;
  if (x->input != y->input)
    return x->input < y->input ? -1 : 1;
  return (x->sample.line > y->sample.line) - (x->sample.line < y->sample.line);
}

/* Experts without the cases that ran by another kernel than the same shape did. */
static void
print_untuned (const PodKernelValidation *validation)
{
  static const PodSampleKind kinds[] = { POD_SAMPLE_MOE, POD_SAMPLE_MOE_SKEWED };

  if (validation->n_untuned == 0)
    return;
  printf ("%u of %u cases of experts ran %g times as long as the same shape under another split of tokens, or longer. Without them:\n",
          validation->n_untuned, validation->n_cases, POD_UNTUNED_RATIO);
  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      const PodErrorSummary summary
          = pod_kernel_summary (validation, &(PodKernelFilter){ .input = -1, .kind = (int) kinds[i], .dtype = -1, .has_no_untuned = true });

      printf ("  %-10s  %u rows: mean error %.1f %%, median %.1f %%, 90th percentile %.1f %%\n", pod_sample_kind_name (kinds[i]), summary.n_rows,
              summary.mape * 100, summary.median_error * 100, summary.p90_error * 100);
    }
}

static void
print_text (PodKernelValidation *validation)
{
  PodErrorSummary summary = pod_kernel_summary (validation, &(PodKernelFilter){ .input = -1, .kind = -1, .dtype = -1 });
  g_autoptr (PodTable) table = make_table (validation);
  g_autofree char *text = pod_table_to_text (table);
  g_autoptr (PodTable) worst = NULL;
  g_autofree char *worst_text = NULL;

  printf ("%s\n%u rows: mean error %.1f %%, median %.1f %%, 90th percentile %.1f %%, bias %.1f %%; "
          "%u rows skipped; %u rows ran faster than fidelity ideal\n",
          text, summary.n_rows, summary.mape * 100, summary.median_error * 100,
          summary.p90_error * 100, summary.bias * 100, validation->skipped->len,
          pod_kernel_n_beyond_ideal (validation, -1));
  print_untuned (validation);
  g_array_sort (validation->verdicts, compare_worst);
  worst = list_verdicts (validation, validation->verdicts, N_WORST);
  worst_text = pod_table_to_text (worst);
  printf ("\nWorst rows\n\n%s", worst_text);
}

/* A picture for each table, a colour for each kind and dtype. */
static bool
draw (const PodKernelValidation *validation, const char *folder, GError **error)
{
  for (guint i = 0; i < validation->sources->len; i++)
    {
      const char *source = g_ptr_array_index (validation->sources, i);
      g_autofree char *title = g_strdup_printf ("kernels, %s", source);
      g_autofree char *name = g_strdup_printf ("kernels-%.*s", (int) strcspn (source, "."), source);
      g_autoptr (PodScatter) scatter = pod_cli_scatter_new (name, title, "time, us");

      for (guint v = 0; v < validation->verdicts->len; v++)
        {
          const PodKernelVerdict *verdict = &g_array_index (validation->verdicts, PodKernelVerdict, v);
          g_autofree char *series = g_strdup_printf ("%s %s", pod_sample_kind_name (verdict->sample.kind), pod_dtype_name (verdict->sample.dtype));

          if (verdict->input == i)
            pod_cli_scatter_add (scatter, series, verdict->sample.time_s * 1e6, verdict->predicted_s * 1e6);
        }
      if (!pod_cli_scatter_draw (scatter, folder, error))
        return false;
    }
  return true;
}

static bool
write_files (const PodKernelValidation *validation, const PodValidateOptions *options,
             GError **error)
{
  if (options->per_row != NULL)
    {
      g_autoptr (PodTable) table = list_verdicts (validation, validation->verdicts, G_MAXUINT);
      g_autofree char *text = pod_table_to_separated (table, '\t');

      if (!pod_output_save (options->per_row, text, error))
        return false;
    }
  if (options->plot != NULL && !draw (validation, options->plot, error))
    return false;
  if (options->json != NULL)
    {
      g_autoptr (JsonObject) result = pod_kernel_validation_to_json (validation);

      return pod_cli_write_json (result, options->json, error);
    }
  return true;
}

bool
pod_cli_validate_kernels (const PodValidateOptions *options, GError **error)
{
  PodKernelValidationInput inputs[G_N_ELEMENTS (shipped)];
  g_autoptr (GPtrArray) files = list_inputs (options, inputs, error);
  g_autoptr (PodKernelValidation) validation
      = files != NULL ? pod_validate_kernels (inputs, files->len, error) : NULL;

  if (validation == NULL || !write_files (validation, options, error))
    return false;
  if (g_strcmp0 (options->json, "-") != 0)
    print_text (validation);
  return true;
}
