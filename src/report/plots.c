#include "report/report-private.h"

#include <errno.h>
#include <string.h>

#include <glib/gstdio.h>

#include "base/error.h"
#include "base/output.h"

/* `--plot`: pictures for which gnuplot is run, with data and scripts to draw them anew. */

bool
pod_report_save (const char *folder, const char *name, const char *text, GError **error)
{
  g_autofree char *file = g_build_filename (folder, name, NULL);

  return pod_output_save (file, text, error);
}

char *
pod_report_quoted (const char *text)
{
  GString *quoted = g_string_new ("'");

  for (; *text != '\0'; text++)
    if (*text == '\'')
      g_string_append (quoted, "''");
    else
      g_string_append_c (quoted, g_ascii_iscntrl (*text) ? ' ' : *text);
  g_string_append_c (quoted, '\'');
  return g_string_free (quoted, FALSE);
}

void
pod_report_append_terminal (GString *script, unsigned width, unsigned height)
{
  g_string_append (script, "set encoding utf8\nset terminal png size 640,480\n");
  g_string_append_printf (
      script,
      "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) set terminal pngcairo noenhanced size %u,%u "
      "font 'sans,11'; else set terminal png noenhanced size %u,%u\n",
      width, height, width, height);
}

void
pod_report_append_title (GString *script, const char *title, const char *words, const char *value)
{
  g_autofree char *first = pod_report_quoted (title);

  g_string_append_printf (script, "set title %s.\"\\n%s%s\"\n", first, words, value);
}

bool
pod_report_has_gnuplot (void)
{
  g_autofree char *program = g_find_program_in_path ("gnuplot");

  return program != NULL;
}

/* Runs FOLDER/NAME.gnuplot there, as a person would but without the person's settings. */
static bool
run_gnuplot (const char *folder, const char *script, GError **error)
{
  char *arguments[] = { (char *) "gnuplot", (char *) "-d", (char *) script, NULL };
  g_autofree char *words = NULL;
  g_autoptr (GError) reason = NULL;
  int status;

  if (g_spawn_sync (folder, arguments, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, NULL,
                    NULL, NULL, &words, &status, &reason)
      && g_spawn_check_wait_status (status, &reason))
    return true;
  if (words != NULL)
    g_strstrip (g_strdelimit (words, "\r\n", ' '));
  g_set_error (error, POD_ERROR, POD_ERROR_IO, "%s/%s: gnuplot failed: %s", folder, script,
               words != NULL && *words != '\0' ? words : reason->message);
  return false;
}

/* The picture of an earlier run must not stand beside the data of this one, nor half a picture. */
static bool
draw (const char *folder, const char *name, GError **error)
{
  g_autofree char *script = g_strconcat (name, ".gnuplot", NULL);
  g_autofree char *file = g_strconcat (name, ".png", NULL);
  g_autofree char *picture = g_build_filename (folder, file, NULL);

  g_unlink (picture);
  if (!pod_report_has_gnuplot () || run_gnuplot (folder, script, error))
    return true;
  g_unlink (picture);
  return false;
}

static bool
make_folder (const char *folder, GError **error)
{
  if (g_mkdir_with_parents (folder, 0777) == 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_IO, "%s: cannot make the folder: %s", folder,
               g_strerror (errno));
  return false;
}

bool
pod_report_collective_plots (JsonObject *result, const char *folder, GError **error)
{
  g_return_val_if_fail (result != NULL && folder != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  return make_folder (folder, error) && pod_report_collective_plot (result, folder, error)
         && draw (folder, "collective", error);
}

bool
pod_report_plots (JsonObject *result, const PodTimeline *timeline, const char *folder,
                  GError **error)
{
  g_return_val_if_fail (result != NULL && timeline != NULL && folder != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  g_autofree char *title = pod_report_title (result);
  const char *layout = pod_report_string (result, "layout");
  const bool has_pipeline = timeline->ranks->len > 1 && layout != NULL && strstr (layout, "pp=") != NULL;

  if (!make_folder (folder, error) || !pod_report_breakdown_plot (result, folder, error)
      || !pod_report_memory_plot (result, timeline, folder, error)
      || !pod_report_timeline_svg (timeline, title, folder, error))
    return false;
  if (has_pipeline
      && (!pod_report_schedule_plot (result, timeline, folder, error)
          || !draw (folder, "schedule", error)))
    return false;
  return draw (folder, "breakdown", error) && draw (folder, "memory", error);
}
