#include "report/report-private.h"

#include <string.h>

#include "base/output.h"

/* `--plot`: the pictures of a result. */

bool
pod_report_save (const char *folder, const char *name, const char *text, GError **error)
{
  g_autofree char *file = g_build_filename (folder, name, NULL);

  return pod_output_save (file, text, error);
}

bool
pod_report_plots (JsonObject *result, const PodTimeline *timeline, const char *folder,
                  GError **error)
{
  g_return_val_if_fail (result != NULL && timeline != NULL && folder != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  g_autofree char *title = pod_report_title (result);
  const char *layout = pod_report_string (result, "layout");
  const bool has_pipeline
      = timeline->ranks->len > 1 && layout != NULL && strstr (layout, "pp=") != NULL;

  if (!pod_report_make_folder (folder, error)
      || !pod_report_timeline_svg (timeline, title, folder, error))
    return false;
  if (has_pipeline && !pod_report_schedule_plot (result, timeline, folder, error))
    return false;
  return pod_report_breakdown_plot (result, folder, error)
         && pod_report_memory_plot (result, timeline, folder, error);
}
