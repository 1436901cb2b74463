#include "validate/validate-kernels.h"

#include <math.h>

#include "base/error.h"
#include "topology/chip.h"
#include "validate/untuned-experts.h"

static PodKernelValidation *
validation_new (void)
{
  PodKernelValidation *validation = g_new0 (PodKernelValidation, 1);

  validation->sources = g_ptr_array_new_with_free_func (g_free);
  validation->verdicts = g_array_new (FALSE, FALSE, sizeof (PodKernelVerdict));
  validation->skipped = g_ptr_array_new_with_free_func (g_free);
  return validation;
}

void
pod_kernel_validation_free (PodKernelValidation *validation)
{
  if (validation == NULL)
    return;
  g_ptr_array_unref (validation->sources);
  g_array_unref (validation->verdicts);
  g_ptr_array_unref (validation->skipped);
  g_free (validation);
}

static bool
judge_table (PodKernelValidation *validation, const PodKernelValidationInput *input, GError **error)
{
  g_autoptr (PodChip) chip = pod_chip_load (input->chip, NULL, error);
  g_autoptr (PodKernelTable) table
      = chip != NULL ? pod_kernel_table_load (input->file, error) : NULL;
  g_autofree char *name = g_path_get_basename (input->file);

  if (table == NULL)
    return false;
  for (guint i = 0; i < table->skipped->len; i++)
    g_ptr_array_add (
        validation->skipped,
        g_strdup_printf ("%s: %s", table->file, (char *) g_ptr_array_index (table->skipped, i)));
  for (guint i = 0; i < table->samples->len; i++)
    {
      PodKernelVerdict verdict = { .input = validation->sources->len };

      verdict.sample = g_array_index (table->samples, PodKernelSample, i);
      verdict.predicted_s = pod_kernel_sample_predict (chip, &verdict.sample, &verdict.ideal_s);
      g_array_append_val (validation->verdicts, verdict);
    }
  g_ptr_array_add (validation->sources, g_strdup_printf ("%s %s", name, chip->name));
  if (table->samples->len > 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s has no row to judge", input->file);
  return false;
}

PodKernelValidation *
pod_validate_kernels (const PodKernelValidationInput *inputs, unsigned n_inputs, GError **error)
{
  g_autoptr (PodKernelValidation) validation = validation_new ();

  for (unsigned i = 0; i < n_inputs; i++)
    if (!judge_table (validation, &inputs[i], error))
      return NULL;
  validation->n_untuned = pod_mark_untuned_experts (validation->verdicts, &validation->n_cases);
  return g_steal_pointer (&validation);
}

/* -- summing up -------------------------------------------------------------------------------- */

double
pod_kernel_error (const PodKernelVerdict *verdict)
{
  return verdict->predicted_s / verdict->sample.time_s - 1.0;
}

static bool
is_counted (const PodKernelFilter *filter, const PodKernelVerdict *verdict)
{
  return (filter->input < 0 || (unsigned) filter->input == verdict->input)
         && (filter->kind < 0 || (unsigned) filter->kind == verdict->sample.kind)
         && (filter->dtype < 0 || (unsigned) filter->dtype == verdict->sample.dtype) && !(filter->has_no_untuned && verdict->is_untuned);
}

PodErrorSummary
pod_kernel_summary (const PodKernelValidation *validation, const PodKernelFilter *filter)
{
  g_autofree double *errors = g_new (double, validation->verdicts->len + 1);
  unsigned n = 0;

  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodKernelVerdict *verdict = &g_array_index (validation->verdicts, PodKernelVerdict, i);

      if (is_counted (filter, verdict))
        errors[n++] = pod_kernel_error (verdict);
    }
  return pod_error_summary (errors, n);
}

unsigned
pod_kernel_n_beyond_ideal (const PodKernelValidation *validation, int input)
{
  unsigned n = 0;

  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodKernelVerdict *verdict = &g_array_index (validation->verdicts, PodKernelVerdict, i);

      if ((input < 0 || (unsigned) input == verdict->input)
          && verdict->sample.time_s < verdict->ideal_s)
        n++;
    }
  return n;
}

/* -- JSON -------------------------------------------------------------------------------------- */

static void
set_summary (JsonObject *object, const PodErrorSummary *summary)
{
  pod_result_set_int (object, "rows", summary->n_rows);
  pod_error_summary_to_json (object, summary);
}

static void
add_group (JsonArray *groups, const PodKernelValidation *validation, const PodKernelFilter *filter)
{
  PodErrorSummary summary = pod_kernel_summary (validation, filter);
  PodKernelFilter tuned = *filter;
  JsonObject *object;

  if (summary.n_rows == 0)
    return;
  object = json_object_new ();
  pod_result_set_string (object, "source",
                         g_ptr_array_index (validation->sources, (guint) filter->input));
  pod_result_set_string (object, "kind", pod_sample_kind_name ((PodSampleKind) filter->kind));
  pod_result_set_string (object, "dtype", pod_dtype_name ((PodDtype) filter->dtype));
  set_summary (object, &summary);
  tuned.has_no_untuned = true;
  summary = pod_kernel_summary (validation, &tuned);
  pod_result_set_int (object, "rows_tuned", summary.n_rows);
  pod_result_set_double (object, "mape_tuned", summary.mape);
  json_array_add_object_element (groups, object);
}

static void
add_source (JsonObject *sources, JsonArray *groups, const PodKernelValidation *validation,
            int input)
{
  PodErrorSummary summary = pod_kernel_summary (validation, &(PodKernelFilter){ .input = input, .kind = -1, .dtype = -1 });
  JsonObject *source = json_object_new ();

  set_summary (source, &summary);
  pod_result_set_int (source, "rows_beyond_ideal", pod_kernel_n_beyond_ideal (validation, input));
  json_object_set_object_member (sources, g_ptr_array_index (validation->sources, (guint) input),
                                 source);
  for (int kind = 0; kind < POD_N_SAMPLE_KINDS; kind++)
    for (int dtype = 0; dtype < POD_N_DTYPES; dtype++)
      add_group (groups, validation, &(PodKernelFilter){ .input = input, .kind = kind, .dtype = dtype });
}

JsonObject *
pod_kernel_validation_to_json (const PodKernelValidation *validation)
{
  JsonObject *object = json_object_new (), *sources = json_object_new ();
  PodErrorSummary summary = pod_kernel_summary (validation, &(PodKernelFilter){ .input = -1, .kind = -1, .dtype = -1 });
  JsonArray *array;

  pod_result_set_int (object, "schema_version", 1);
  pod_result_set_string (object, "command", "validate kernels");
  pod_result_set_int (object, "rows_judged", summary.n_rows);
  array = pod_result_get_array (object, "rows_skipped");
  for (guint i = 0; i < validation->skipped->len; i++)
    json_array_add_string_element (array, g_ptr_array_index (validation->skipped, i));
  pod_error_summary_to_json (object, &summary);
  json_object_set_object_member (object, "by_source", sources);
  array = pod_result_get_array (object, "groups");
  for (guint i = 0; i < validation->sources->len; i++)
    add_source (sources, array, validation, (int) i);
  return object;
}
