#include "validate/validate-collectives.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "validate/fit-collectives.h"

static void
free_table (gpointer data)
{
  pod_collective_table_free (data);
}

static void
free_machines (gpointer data)
{
  pod_collective_machines_free (data);
}

static void
free_library (gpointer data)
{
  pod_library_free (data);
}

void
pod_collective_validation_free (PodCollectiveValidation *validation)
{
  if (validation == NULL)
    return;
  g_ptr_array_unref (validation->tables);
  g_ptr_array_unref (validation->machines);
  g_ptr_array_unref (validation->libraries);
  g_array_unref (validation->verdicts);
  g_ptr_array_unref (validation->skipped);
  g_free (validation);
}

static PodCollectiveValidation *
validation_new (void)
{
  PodCollectiveValidation *validation = g_new0 (PodCollectiveValidation, 1);

  validation->tables = g_ptr_array_new_with_free_func (free_table);
  validation->machines = g_ptr_array_new_with_free_func (free_machines);
  validation->libraries = g_ptr_array_new_with_free_func (free_library);
  validation->verdicts = g_array_new (FALSE, TRUE, sizeof (PodCollectiveVerdict));
  validation->skipped = g_ptr_array_new_with_free_func (g_free);
  return validation;
}

/* ---- predicting ---- */

static bool
predict (const PodTopology *topology, const PodLibrary *library, PodFidelity fidelity,
         PodCollectiveVerdict *verdict, double *out_s, GError **error)
{
  PodGroup group;
  G_GNUC_UNUSED g_autofree uint32_t *devices
      = pod_collective_first_group (verdict->sample.n_ranks, &group); /* what group points to */
  const PodPlanQuery query = {
    .topology = topology,
    .fidelity = fidelity,
    .group = &group,
    .kind = verdict->sample.kind,
    .dtype = verdict->sample.dtype,
    .payload_bytes = verdict->sample.bytes,
    .library = library,
  };
  g_autoptr (PodPlan) plan = pod_collective_plan_query (&query, error);

  if (plan == NULL)
    return false;
  *out_s = pod_plan_time (topology, fidelity, plan, verdict->sample.bytes);
  if (fidelity == POD_FIDELITY_CALIBRATED)
    {
      verdict->algorithm = plan->algorithm;
      verdict->protocol = plan->protocol;
    }
  return true;
}

static bool
judge_table (PodCollectiveValidation *validation, unsigned input, GError **error)
{
  const PodCollectiveTable *table = g_ptr_array_index (validation->tables, input);
  PodCollectiveMachines *machines = g_ptr_array_index (validation->machines, input);
  const PodLibrary *library = g_ptr_array_index (validation->libraries, input);

  for (guint i = 0; i < table->skipped->len; i++)
    g_ptr_array_add (
        validation->skipped,
        g_strdup_printf ("%s: %s", table->file, (char *) g_ptr_array_index (table->skipped, i)));
  for (guint i = 0; i < table->samples->len; i++)
    {
      PodCollectiveVerdict verdict = { .input = input };
      const PodTopology *topology;

      verdict.sample = g_array_index (table->samples, PodCollectiveSample, i);
      if (!pod_collective_machines_find (machines, verdict.sample.n_ranks, &topology, error))
        return false;
      if (topology == NULL)
        {
          topology = pod_collective_machines_domain (machines);
          g_ptr_array_add (validation->skipped,
                           g_strdup_printf ("%s: line %u: %u ranks, domains of %s have %u",
                                            table->file, verdict.sample.line,
                                            verdict.sample.n_ranks, topology->chip->name,
                                            topology->n_devices));
          continue;
        }
      if (!predict (topology, library, POD_FIDELITY_CALIBRATED, &verdict, &verdict.predicted_s,
                    error)
          || !predict (topology, NULL, POD_FIDELITY_IDEAL, &verdict, &verdict.ideal_s, error))
        {
          g_prefix_error (error, "%s:%u: ", table->file, verdict.sample.line);
          return false;
        }
      g_array_append_val (validation->verdicts, verdict);
    }
  return true;
}

static bool
add_input (PodCollectiveValidation *validation, const PodCollectiveValidationInput *input,
           bool has_library, GError **error)
{
  PodCollectiveMachines *machines = pod_collective_machines_new (input->chip, error);
  const PodChip *chip;
  PodCollectiveTable *table;
  const char *name;

  if (machines == NULL)
    return false;
  g_ptr_array_add (validation->machines, machines);
  chip = pod_collective_machines_domain (machines)->chip;
  name = input->library != NULL ? input->library : pod_library_default (chip);
  if (!has_library)
    name = NULL;
  g_ptr_array_add (validation->libraries, name != NULL ? pod_library_load (name, error) : NULL);
  if (name != NULL
      && g_ptr_array_index (validation->libraries, validation->libraries->len - 1) == NULL)
    return false;
  table = pod_collective_table_load (input->file, chip->name, error);
  if (table == NULL)
    return false;
  g_ptr_array_add (validation->tables, table);
  if (table->samples->len > 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s has no row of %s", input->file,
               input->chip);
  return false;
}

PodCollectiveValidation *
pod_validate_collectives (const PodCollectiveValidationInput *inputs, unsigned n_inputs,
                          GError **error)
{
  g_autoptr (PodCollectiveValidation) validation = validation_new ();

  for (unsigned i = 0; i < n_inputs; i++)
    if (!add_input (validation, &inputs[i], true, error) || !judge_table (validation, i, error))
      return NULL;
  return g_steal_pointer (&validation);
}

PodCollectiveValidation *
pod_predict_without_library (const PodCollectiveValidationInput *inputs, unsigned n_inputs,
                             GError **error)
{
  g_autoptr (PodCollectiveValidation) validation = validation_new ();

  for (unsigned i = 0; i < n_inputs; i++)
    if (!add_input (validation, &inputs[i], false, error) || !judge_table (validation, i, error))
      return NULL;
  return g_steal_pointer (&validation);
}

/* ---- summing up ---- */

double
pod_collective_error (const PodCollectiveVerdict *verdict)
{
  return verdict->predicted_s / verdict->sample.time_s - 1;
}

static bool
is_counted (const PodVerdictFilter *filter, const PodCollectiveVerdict *verdict)
{
  const PodCollectiveSample *sample = &verdict->sample;

  return (filter->input < 0 || (unsigned) filter->input == verdict->input)
         && (filter->kind < 0 || (unsigned) filter->kind == sample->kind)
         && (filter->half < 0 || (filter->half == 1) == sample->is_fitted)
         && (filter->steady < 0 || (filter->steady == 1) == !sample->is_small)
         && sample->bytes >= filter->least_bytes && (sample->is_judged || filter->has_unjudged);
}

PodErrorSummary
pod_collective_summary (const PodCollectiveValidation *validation, const PodVerdictFilter *filter)
{
  g_autofree double *errors = g_new (double, validation->verdicts->len + 1);
  unsigned n = 0;

  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodCollectiveVerdict *verdict
          = &g_array_index (validation->verdicts, PodCollectiveVerdict, i);

      if (is_counted (filter, verdict))
        errors[n++] = pod_collective_error (verdict);
    }
  return pod_error_summary (errors, n);
}

GPtrArray *
pod_collective_ideal_exceptions (const PodCollectiveValidation *validation)
{
  GPtrArray *out = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodCollectiveVerdict *verdict
          = &g_array_index (validation->verdicts, PodCollectiveVerdict, i);
      const PodCollectiveTable *table = g_ptr_array_index (validation->tables, verdict->input);

      if (verdict->ideal_s <= verdict->sample.time_s)
        continue;
      g_ptr_array_add (
          out, g_strdup_printf ("%s:%u: %s over %u, %" G_GUINT64_FORMAT
                                " B: measured %.2f us, ideal %.2f us: %s",
                                table->file, verdict->sample.line,
                                pod_collective_name (verdict->sample.kind), verdict->sample.n_ranks,
                                verdict->sample.bytes, verdict->sample.time_s * 1e6,
                                verdict->ideal_s * 1e6,
                                verdict->sample.kind == POD_PERMUTE
                                    ? "the table gives the number of pairs, not who sends to whom"
                                    : "beyond the nominal rate of the links"));
    }
  return out;
}

/* ---- JSON ---- */

static void
set_summary (JsonObject *object, const PodErrorSummary *summary)
{
  pod_result_set_int (object, "rows", summary->n_rows);
  pod_error_summary_to_json (object, summary);
}

static void
add_group (JsonArray *groups, const PodCollectiveValidation *validation,
           const PodCollectiveValidationInput *inputs, const PodVerdictFilter *filter)
{
  PodErrorSummary summary = pod_collective_summary (validation, filter);
  const PodLibrary *library = g_ptr_array_index (validation->libraries, (guint) filter->input);
  g_autofree char *source = g_path_get_basename (inputs[filter->input].file);
  JsonObject *object;

  if (summary.n_rows == 0)
    return;
  object = json_object_new ();
  pod_result_set_string (object, "source", source);
  pod_result_set_string (object, "chip", inputs[filter->input].chip);
  pod_result_set_string (object, "library", library != NULL ? library->name : "none");
  pod_result_set_string (object, "kind", pod_collective_name ((PodCollectiveKind) filter->kind));
  pod_result_set_string (object, "half", filter->half == 1 ? "fitted" : "held_out");
  pod_result_set_string (object, "sizes", filter->steady == 1 ? "steady" : "small");
  set_summary (object, &summary);
  json_array_add_object_element (groups, object);
}

static void
add_groups (JsonArray *groups, const PodCollectiveValidation *validation,
            const PodCollectiveValidationInput *inputs, unsigned input)
{
  for (int kind = 0; kind < POD_N_COLLECTIVES; kind++)
    for (int half = 1; half >= 0; half--)
      for (int steady = 1; steady >= 0; steady--)
        add_group (groups, validation, inputs,
                   &(PodVerdictFilter){ .input = (int) input,
                                        .kind = kind,
                                        .half = half,
                                        .steady = steady,
                                        .has_unjudged = true });
}

JsonObject *
pod_collective_validation_to_json (const PodCollectiveValidation *validation,
                                   const PodCollectiveValidationInput *inputs, unsigned n_inputs)
{
  const PodVerdictFilter all = POD_ALL_VERDICTS;
  JsonObject *object = json_object_new ();
  JsonObject *sources = json_object_new ();
  PodErrorSummary summary = pod_collective_summary (validation, &all);
  g_autoptr (GPtrArray) exceptions = pod_collective_ideal_exceptions (validation);
  JsonArray *array;

  pod_result_set_int (object, "schema_version", 1);
  pod_result_set_string (object, "command", "validate collectives");
  pod_result_set_int (object, "rows_judged", summary.n_rows);
  array = pod_result_get_array (object, "rows_skipped");
  for (guint i = 0; i < validation->skipped->len; i++)
    json_array_add_string_element (array, g_ptr_array_index (validation->skipped, i));
  pod_error_summary_to_json (object, &summary);
  json_object_set_object_member (object, "by_source", sources);
  array = pod_result_get_array (object, "groups");
  for (unsigned i = 0; i < n_inputs; i++)
    {
      const PodVerdictFilter filter = { .input = (int) i, .kind = -1, .half = -1, .steady = -1 };
      g_autofree char *name = g_path_get_basename (inputs[i].file);
      g_autofree char *key = g_strconcat (name, " ", inputs[i].chip, NULL);
      JsonObject *source = json_object_new ();

      summary = pod_collective_summary (validation, &filter);
      set_summary (source, &summary);
      json_object_set_object_member (sources, key, source);
      add_groups (array, validation, inputs, i);
    }
  array = pod_result_get_array (object, "ideal_exceptions");
  for (guint i = 0; i < exceptions->len; i++)
    json_array_add_string_element (array, g_ptr_array_index (exceptions, i));
  return object;
}

/* ---- a device that nobody fitted ---- */

bool
pod_collective_leave_one_out (const PodCollectiveValidationInput *inputs, unsigned n_inputs,
                              unsigned left_out, const char *template_name, uint64_t least_bytes,
                              PodErrorSummary *out, GError **error)
{
  g_autoptr (PodCollectiveValidation) validation = validation_new ();
  g_autoptr (PodLibrary) library = pod_library_load_alone (template_name, error);
  g_autofree PodCollectiveFitInput *fits = g_new0 (PodCollectiveFitInput, n_inputs);
  const PodVerdictFilter filter = {
    .input = (int) left_out, .kind = -1, .half = -1, .steady = 1, .least_bytes = least_bytes
  };
  PodCollectiveFit fit;
  unsigned n_fits = 0;

  if (library == NULL)
    return false;
  for (guint i = library->devices->len; i-- > 0;)
    if (pod_library_device_is_fitted (g_ptr_array_index (library->devices, i)))
      g_ptr_array_remove_index (library->devices, i);
  for (unsigned i = 0; i < n_inputs; i++)
    {
      if (!add_input (validation, &inputs[i], false, error))
        return false;
      if (i != left_out && strcmp (inputs[i].chip, inputs[left_out].chip) != 0)
        fits[n_fits++] = (PodCollectiveFitInput){
          .machines = g_ptr_array_index (validation->machines, i),
          .table = g_ptr_array_index (validation->tables, i),
        };
    }
  if (library->devices->len != 1 || n_fits == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "%s needs one device \"*\", and the tables two chips or more", template_name);
      return false;
    }
  if (!pod_fit_collectives (fits, n_fits, g_ptr_array_index (library->devices, 0), &fit, error))
    return false;
  g_ptr_array_index (validation->libraries, left_out) = g_steal_pointer (&library);
  if (!judge_table (validation, left_out, error))
    return false;
  *out = pod_collective_summary (validation, &filter);
  return true;
}
