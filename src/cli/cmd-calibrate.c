#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "validate/calibrate-collectives.h"
#include "validate/calibrate-kernels.h"

/* podsim calibrate collectives: fits a library's cost table to measured collectives.
 * podsim calibrate kernels: fits the surfaces of a chip file to measured kernels. */

typedef struct
{
  char **tables;
  char **chips;
  char *library;
  char *like;
  char *write;
  gboolean is_common;
} Options;

static void
options_clear (Options *options)
{
  g_strfreev (options->tables);
  g_strfreev (options->chips);
  g_free (options->library);
  g_free (options->like);
  g_free (options->write);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Options, options_clear)

static guint
length (char *const *list)
{
  return list == NULL ? 0 : g_strv_length ((char **) list);
}

/* -- kernels ----------------------------------------------------------------------------------- */

static bool
check_kernel_options (const Options *options, GError **error)
{
  bool is_empty = length (options->tables) == 0 && options->like == NULL;

  if (is_empty || options->write == NULL)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--%s is missing",
                 is_empty ? "table" : "write");
  else if (length (options->chips) != 1)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                 "--chip: one, whose file gets the surfaces, got %u", length (options->chips));
  else if (options->library != NULL || options->is_common)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--%s: not for 'calibrate kernels'",
                 options->library != NULL ? "library" : "common");
  else
    return true;
  return false;
}

static bool
calibrate_kernels (const Options *options, GError **error)
{
  g_autoptr (GArray) stages = g_array_new (FALSE, FALSE, sizeof (PodKernelStage));
  const PodKernelCalibration request = {
    .chip = options->chips != NULL ? options->chips[0] : NULL,
    .tables = (const char *const *) options->tables,
    .n_tables = length (options->tables),
    .like = options->like,
    .write = options->write,
  };

  if (!check_kernel_options (options, error) || !pod_calibrate_kernels (&request, stages, error))
    return false;
  for (guint i = 0; i < stages->len; i++)
    {
      const PodKernelStage *stage = &g_array_index (stages, PodKernelStage, i);
      const PodErrorSummary *held_out = &stage->fit.held_out;

      printf ("%s: %s %s: %u numbers, %u rows; mean error %.1f %%; held out: mean %.1f %%, median "
              "%.1f %%, 90th percentile %.1f %%\n",
              options->write, stage->name, pod_dtype_name (stage->dtype),
              stage->fit.n_numbers, stage->fit.n_rows, stage->fit.fitted.mape * 100,
              held_out->mape * 100, held_out->median_error * 100, held_out->p90_error * 100);
    }
  return true;
}

/* -- collectives ------------------------------------------------------------------------------- */

static bool
check_options (const Options *options, GError **error)
{
  guint n_tables = length (options->tables), n_chips = length (options->chips);

  if (n_tables == 0 || options->library == NULL || options->write == NULL)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--%s is missing",
                 n_tables == 0              ? "table"
                 : options->library == NULL ? "library"
                                            : "write");
  else if (options->like != NULL)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--like: not for 'calibrate collectives'");
  else if (n_chips != n_tables)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                 "--chip: one for each --table, got %u for %u tables", n_chips, n_tables);
  else
    return true;
  return false;
}

static bool
calibrate_collectives (const Options *options, GError **error)
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

  if (!check_options (options, error))
    return false;
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

static const struct
{
  const char *name;
  bool (*run) (const Options *options, GError **error);
} kinds[] = {
  { "collectives", calibrate_collectives },
  { "kernels", calibrate_kernels },
};

int
pod_cmd_calibrate (int argc, char **argv)
{
  g_auto (Options) options = { 0 };
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
    { "table", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.tables,
      "Measured collectives or kernels; may be repeated, for one fit of all", "FILE" },
    { "chip", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.chips,
      "The chip of each table, in their order; kernels: the one of all", "C" },
    { "library", 0, 0, G_OPTION_ARG_FILENAME, &options.library,
      "collectives: library file whose numbers marked \"fitted\" are where the fit starts", "L" },
    { "like", 0, 0, G_OPTION_ARG_FILENAME, &options.like,
      "kernels: a chip of the same make, for what no table measures", "C" },
    { "write", 0, 0, G_OPTION_ARG_FILENAME, &options.write,
      "File that gets what was fitted: collectives: a library, made when absent; kernels: the chip", "FILE" },
    { "common", 0, 0, G_OPTION_ARG_NONE, &options.is_common,
      "collectives: fit the entry \"*\", for chips that have no table", NULL },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };
  g_autoptr (GOptionContext) context
      = g_option_context_new ("collectives|kernels - fit cost tables to measurements");
  int status;

  if (!pod_cli_parse (context, entries, &argc, &argv, 1, &status))
    return status;
  for (size_t i = 0; argc > 1 && i < G_N_ELEMENTS (kinds); i++)
    if (strcmp (kinds[i].name, argv[1]) == 0)
      return kinds[i].run (&options, &error) ? 0 : pod_cli_fail (error);
  return pod_cli_refuse ("calibrate what? 'collectives' and 'kernels' are known, got '%s'",
                         argc < 2 ? "" : argv[1]);
}
