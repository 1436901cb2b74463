#include "report/compare-private.h"

#include "base/units.h"

/* A bar for each machine, its step's terms end to end. */

bool
pod_report_compare_plot (JsonObject *result, const char *title, const char *folder, GError **error)
{
  g_return_val_if_fail (result != NULL && title != NULL && folder != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  JsonArray *rows = pod_report_array (result, "rows");
  const guint n_rows = pod_report_length (rows);
  g_autoptr (GPtrArray) labels = g_ptr_array_new ();
  g_autoptr (GPtrArray) values = g_ptr_array_new_with_free_func (g_free);
  PodStepBars plot = { .name = "compare", .title = title, .words = "step time by machine" };

  for (guint i = 0; i < n_rows; i++)
    {
      JsonObject *row = json_array_get_object_element (rows, i);

      g_ptr_array_add (labels, (char *) pod_report_string_or (row, "topology", "?"));
      g_ptr_array_add (values, pod_format_seconds (pod_report_number (row, "step.time_s")));
    }
  plot.column = "machine";
  plot.rows = rows;
  plot.n_rows = n_rows;
  plot.labels = (const char *const *) labels->pdata;
  plot.values = (const char *const *) values->pdata;
  return pod_report_step_bars_plot (&plot, folder, error);
}
