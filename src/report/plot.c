#include "report/plot.h"

#include <errno.h>
#include <string.h>

#include <glib/gstdio.h>

#include "base/error.h"
#include "report/report-private.h"

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

/* The same commands for either picture. Without cairo a PNG is drawn by an older library. Text is
 * taken as it is (noenhanced): names have underscores and carets. Returns: (transfer full) */
static char *
script_text (const PodPlot *plot)
{
  return g_strdup_printf (
      "# gnuplot %s.gp draws %s.png and %s.svg of %s.tsv\n"
      "set encoding utf8\n"
      "set terminal png\n"
      "has_cairo = strstrt(GPVAL_TERMINALS, 'pngcairo') > 0\n"
      "do for [kind in 'png svg'] {\n"
      "reset\n"
      "if (kind eq 'svg') {\n"
      "set terminal svg noenhanced size %u,%u font 'sans,13' background '#ffffff'\n"
      "} else { if (has_cairo) {\n"
      "set terminal pngcairo noenhanced size %u,%u font 'sans,11'\n"
      "} else {\n"
      "set terminal png noenhanced size %u,%u\n"
      "} }\n"
      "set output '%s.'.kind\n"
      "set datafile separator \"\\t\"\n"
      "set tics nomirror out\n"
      "%s"
      "unset output\n"
      "}\n",
      plot->name, plot->name, plot->name, plot->name, plot->width, plot->height, plot->width,
      plot->height, plot->width, plot->height, plot->name, plot->script);
}

static bool
save (const char *folder, const char *name, const char *suffix, const char *text, GError **error)
{
  g_autofree char *file = g_strconcat (name, suffix, NULL);

  return pod_report_save (folder, file, text, error);
}

/* Runs FOLDER/NAME.gp there, as a person would but without the person's settings. */
static bool
run_gnuplot (const char *folder, const char *name, GError **error)
{
  g_autofree char *script = g_strconcat (name, ".gp", NULL);
  char *arguments[] = { (char *) "gnuplot", (char *) "-d", script, NULL };
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

static void
remove_pictures (const char *folder, const char *name)
{
  static const char *const suffixes[] = { ".png", ".svg" };

  for (unsigned i = 0; i < G_N_ELEMENTS (suffixes); i++)
    {
      g_autofree char *file = g_strconcat (name, suffixes[i], NULL);
      g_autofree char *picture = g_build_filename (folder, file, NULL);

      g_unlink (picture);
    }
}

bool
pod_report_make_folder (const char *folder, GError **error)
{
  if (g_mkdir_with_parents (folder, 0777) == 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_IO, "%s: cannot make the folder: %s", folder,
               g_strerror (errno));
  return false;
}

bool
pod_report_plot (const PodPlot *plot, const char *folder, GError **error)
{
  g_return_val_if_fail (plot != NULL && folder != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  g_autofree char *script = script_text (plot);

  if (!pod_report_make_folder (folder, error)
      || !save (folder, plot->name, ".tsv", plot->data, error)
      || !save (folder, plot->name, ".gp", script, error))
    return false;
  /* The picture of an earlier run must not stand beside the data of this one, nor half a picture.
   */
  remove_pictures (folder, plot->name);
  if (!pod_report_has_gnuplot () || run_gnuplot (folder, plot->name, error))
    return true;
  remove_pictures (folder, plot->name);
  return false;
}
