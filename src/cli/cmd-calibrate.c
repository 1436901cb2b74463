#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "validate/calibrate-collectives.h"

/* podsim calibrate collectives: fits a library's cost table to measured collectives. */

typedef struct
{
  char **tables;
  char **chips;
  char *library;
  char *write;
  gboolean is_common;
} Options;

static void
options_clear (Options *options)
{
  g_strfreev (options->tables);
  g_strfreev (options->chips);
  g_free (options->library);
  g_free (options->write);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Options, options_clear)

static guint
length (char *const *list)
{
  return list == NULL ? 0 : g_strv_length ((char **) list);
}

static bool
check_options (const Options *options, GError **error)
{
  guint n_tables = length (options->tables), n_chips = length (options->chips);

  if (n_tables == 0 || options->library == NULL || options->write == NULL)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--%s is missing",
                 n_tables == 0              ? "table"
                 : options->library == NULL ? "library"
                                            : "write");
  else if (n_chips != n_tables)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                 "--chip: one for each --table, got %u for %u tables", n_chips, n_tables);
  else
    return true;
  return false;
}

static bool
calibrate (const Options *options, GError **error)
{
  guint n = length (options->tables);
  g_autofree PodCollectiveValidationInput *inputs = g_new0 (PodCollectiveValidationInput, n);
  PodCollectiveFit fit = { 0 };
  g_autofree char *name = NULL;
  const PodCollectiveCalibration request = {
    .inputs = inputs,
    .n_inputs = n,
    .template_name = options->library,
    .write = options->write,
    .is_common = options->is_common,
  };

  for (guint i = 0; i < n; i++)
    inputs[i]
        = (PodCollectiveValidationInput){ .file = options->tables[i], .chip = options->chips[i] };
  if (!pod_calibrate_collectives (&request, &fit, &name, error))
    return false;
  printf ("%s: %s: %u numbers, %u rows; median error before %.1f %%, after %.1f %%, held out %.1f %%\n",
          options->write, name, fit.n_numbers, fit.n_rows, fit.before * 100,
          fit.fitted_half * 100, fit.held_out * 100);
  return true;
}

int
pod_cmd_calibrate (int argc, char **argv)
{
  g_auto (Options) options = { 0 };
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
    { "table", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.tables,
      "Measured collectives; may be repeated, for one fit of all", "FILE" },
    { "chip", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.chips,
      "The chip of each table, in their order", "C" },
    { "library", 0, 0, G_OPTION_ARG_FILENAME, &options.library,
      "Library file whose numbers marked \"fitted\" are where the fit starts", "L" },
    { "write", 0, 0, G_OPTION_ARG_FILENAME, &options.write,
      "Library file that gets the entry of the first chip; made when absent", "FILE" },
    { "common", 0, 0, G_OPTION_ARG_NONE, &options.is_common,
      "Fit the entry \"*\", for chips that have no table", NULL },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };
  g_autoptr (GOptionContext) context
      = g_option_context_new ("collectives - fit a library's cost table to measurements");
  int status;

  if (!pod_cli_parse (context, entries, &argc, &argv, 1, &status))
    return status;
  if (argc < 2 || strcmp (argv[1], "collectives") != 0)
    return pod_cli_refuse ("calibrate what? 'collectives' is known, got '%s'",
                           argc < 2 ? "" : argv[1]);
  if (!check_options (&options, &error) || !calibrate (&options, &error))
    return pod_cli_fail (error);
  return 0;
}
