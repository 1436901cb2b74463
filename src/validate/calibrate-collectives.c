#include "validate/calibrate-collectives.h"

#include <string.h>

#include "base/error.h"
#include "base/output.h"

/* The template's entry that has @chip, or "*". Returns: (transfer full) (nullable) */
static PodLibraryDevice *
find_entry (const PodLibrary *library, const char *chip, GError **error)
{
  for (guint i = 0; i < library->devices->len; i++)
    {
      const PodLibraryDevice *device = g_ptr_array_index (library->devices, i);

      if (g_strv_contains ((const char *const *) device->chips, chip))
        return pod_library_device_copy (device);
    }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s has no entry for %s", library->file, chip);
  return NULL;
}

static void
describe (PodLibraryDevice *device, const PodCollectiveValidation *validation,
          const PodCollectiveFit *fit)
{
  g_autoptr (GString) source = g_string_new (NULL);
  const PodCollectiveTable *first = g_ptr_array_index (validation->tables, 0);

  for (guint i = 0; i < validation->tables->len; i++)
    {
      const PodCollectiveTable *table = g_ptr_array_index (validation->tables, i);
      const PodTopology *topology
          = pod_collective_machines_domain (g_ptr_array_index (validation->machines, i));
      g_autofree char *name = g_path_get_basename (table->file);

      g_string_append_printf (source, "%s%s (%s): %s", i > 0 ? "; " : "", name,
                              topology->chip->name,
                              table->source != NULL ? table->source : "source not stated");
    }
  g_free (device->source);
  g_free (device->date);
  device->source = g_string_free (g_steal_pointer (&source), FALSE);
  device->date = g_strdup (first->date != NULL ? first->date : "not stated");
  g_ptr_array_set_size (device->notes, 0);
  g_ptr_array_add (device->notes,
                   g_strdup_printf ("%u numbers fitted to every second size of %u rows; median "
                                    "error before %.1f %%, after %.1f %%, on the held-out half "
                                    "%.1f %%",
                                    fit->n_numbers, fit->n_rows, fit->before * 100,
                                    fit->fitted_half * 100, fit->held_out * 100));
}

/* Puts @device into the file, in place of the entry of the same chips. */
static bool
write_entry (const PodCollectiveCalibration *request, const PodLibrary *template,
             PodLibraryDevice *device, GError **error)
{
  g_autoptr (PodLibraryDevice) owned = device;
  g_autoptr (PodLibrary) library = NULL;
  g_autofree char *text = NULL;

  if (g_file_test (request->write, G_FILE_TEST_EXISTS))
    library = pod_library_load_alone (request->write, error);
  else
    {
      library = pod_library_load_alone (template->file, error);
      if (library != NULL)
        g_ptr_array_set_size (library->devices, 0);
    }
  if (library == NULL)
    return false;
  for (guint i = library->devices->len; i-- > 0;)
    if (strcmp (((const PodLibraryDevice *) g_ptr_array_index (library->devices, i))->chips[0],
                device->chips[0])
        == 0)
      g_ptr_array_remove_index (library->devices, i);
  g_ptr_array_add (library->devices, g_steal_pointer (&owned));
  text = pod_library_to_xml (library);
  return pod_output_save (request->write, text, error);
}

bool
pod_calibrate_collectives (const PodCollectiveCalibration *request, PodCollectiveFit *out,
                           char **out_name, GError **error)
{
  g_autoptr (PodLibrary) template = pod_library_load_alone (request->template_name, error);
  g_autoptr (PodLibraryDevice) device = NULL;
  g_autoptr (PodCollectiveValidation) before = NULL;
  g_autofree PodCollectiveFitInput *fits = g_new0 (PodCollectiveFitInput, request->n_inputs + 1);
  const PodVerdictFilter all = POD_ALL_VERDICTS;

  if (template == NULL)
    return false;
  device = find_entry (template, request->is_common ? "*" : request->inputs[0].chip, error);
  if (device == NULL)
    return false;
  before = pod_predict_without_library (request->inputs, request->n_inputs, error);
  if (before == NULL)
    return false;
  for (unsigned i = 0; i < request->n_inputs; i++)
    fits[i] = (PodCollectiveFitInput){
      .machines = g_ptr_array_index (before->machines, i),
      .table = g_ptr_array_index (before->tables, i),
    };
  if (!pod_fit_collectives (fits, request->n_inputs, device, out, error))
    return false;
  out->before = pod_collective_summary (before, &all).median_error;
  describe (device, before, out);
  *out_name = g_strjoinv (" ", device->chips);
  return write_entry (request, template, g_steal_pointer (&device), error);
}
