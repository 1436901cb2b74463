#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/output.h"
#include "base/table.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/validate-plot.h"
#include "cli/validate-private.h"
#include "validate/validate-collectives.h"

/* podsim validate: predictions against the measured tables of the tree, or a given one. Here the options and collectives;
 * training steps are in validate-print.c, kernels in validate-kernels-print.c. */

enum
{
  N_WORST = 10,
};

#define ONE_MIB (UINT64_C (1) << 20)

/* The tables of the tree, in workloads/measured. */
static const PodCollectiveValidationInput shipped[] = {
  { "nccl-a100.tsv", "a100", "nccl-2.27" },
  { "nccl-h100.tsv", "h100", "nccl-2.27" },
  { "nccl-h100-nodes.tsv", "h100", "nccl-2.27" },
  { "nccl-h200-large.tsv", "h200", "nccl-2.27" },
  { "nccl-b200.tsv", "b200", "nccl-2.27" },
  { "nccl-b200-large.tsv", "b200", "nccl-2.27" },
  { "nccl-gb200.tsv", "gb200", "nccl-2.27" },
  { "nccl-gb200-large.tsv", "gb200", "nccl-2.27" },
  { "xla-collectives.tsv", "h100", "xla" },
  { "xla-collectives.tsv", "b200", "xla" },
  { "xla-collectives.tsv", "gb200", "xla" },
  { "xla-collectives.tsv", "gb300", "xla" },
  { "xla-collectives.tsv", "mi355x", "rccl" },
};

/* What is validated; the files' names are owned. */
typedef struct
{
  unsigned n;
  PodCollectiveValidationInput *inputs;
} Inputs;

static void
inputs_clear (Inputs *inputs)
{
  for (unsigned i = 0; i < inputs->n; i++)
    g_free ((char *) inputs->inputs[i].file);
  g_free (inputs->inputs);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Inputs, inputs_clear)

static bool
list_inputs (const PodValidateOptions *options, Inputs *out, GError **error)
{
  if (options->table == NULL && options->chip == NULL && options->library == NULL)
    {
      out->inputs = g_new0 (PodCollectiveValidationInput, G_N_ELEMENTS (shipped));
      for (size_t i = 0; i < G_N_ELEMENTS (shipped); i++)
        {
          char *file = pod_data_find ("workloads/measured", shipped[i].file, ".tsv");

          if (file == NULL)
            {
              g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                           "the table workloads/measured/%s is missing: set PODSIM_PATH",
                           shipped[i].file);
              return false;
            }
          out->inputs[out->n] = shipped[i];
          out->inputs[out->n++].file = file;
        }
      return true;
    }
  if (options->table == NULL || options->chip == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--table and --chip belong together");
      return false;
    }
  out->inputs = g_new0 (PodCollectiveValidationInput, 1);
  out->inputs[0] = (PodCollectiveValidationInput){
    .file = g_strdup (options->table),
    .chip = options->chip,
    .library = options->library,
  };
  out->n = 1;
  return true;
}

/* ---- output ---- */

static char *
percent (double ratio)
{
  return g_strdup_printf ("%.1f", ratio * 100);
}

static void
add_row (PodTable *table, const char *const *names, const PodErrorSummary *summary)
{
  g_autofree char *rows = g_strdup_printf ("%u", summary->n_rows);
  g_autofree char *median = percent (summary->median_error);
  g_autofree char *p90 = percent (summary->p90_error);
  g_autofree char *mape = percent (summary->mape);
  g_autofree char *bias = percent (summary->bias);

  if (summary->n_rows > 0)
    pod_table_add_row (table, (const char *const[]){ names[0], names[1], names[2], names[3],
                                                     names[4], rows, median, p90, mape, bias });
}

/* By table, chip, library, operation and half. Returns: (transfer full) */
static PodTable *
make_table (const PodCollectiveValidation *validation, const Inputs *inputs)
{
  PodTable *table = pod_table_new ((const char *const[]){
      "table", "chip", "library", "operation", "half", ">rows", ">median %", ">p90 %", ">mean %",
      ">bias %", NULL });

  for (unsigned i = 0; i < inputs->n; i++)
    for (int kind = 0; kind < POD_N_COLLECTIVES; kind++)
      for (int half = 1; half >= -2; half--)
        {
          /* The last two: rows in the noise of their source, both halves; none of them has a p90 */
          const PodVerdictFilter filter = { .input = (int) i,
                                            .kind = kind,
                                            .half = half >= 0 ? half : -1,
                                            .steady = half >= 0 ? 1 : 0,
                                            .has_unjudged = true };
          const PodLibrary *library = g_ptr_array_index (validation->libraries, i);
          PodErrorSummary summary = pod_collective_summary (validation, &filter);
          g_autofree char *name = g_path_get_basename (inputs->inputs[i].file);

          if (half == -2)
            continue;
          add_row (table,
                   (const char *const[]){ name, inputs->inputs[i].chip,
                                          library != NULL ? library->name : "none",
                                          pod_collective_name ((PodCollectiveKind) kind),
                                          half == 1   ? "fitted"
                                          : half == 0 ? "held out"
                                                      : "below 4 MiB" },
                   &summary);
        }
  return table;
}

static int
compare_worst (gconstpointer a, gconstpointer b)
{
  double left = fabs (pod_collective_error (a)), right = fabs (pod_collective_error (b));

  if (left != right)
    return left > right ? -1 : 1;
  return 0;
}

static PodTable *
list_verdicts (const PodCollectiveValidation *validation, const Inputs *inputs,
               const GArray *verdicts, guint n_most)
{
  PodTable *table = pod_table_new ((const char *const[]){
      "table", "chip", ">line", "operation", "dtype", ">ranks", ">bytes", ">measured_us",
      ">predicted_us", ">error", "algorithm", "half", "judged", NULL });

  for (guint i = 0; i < verdicts->len && i < n_most; i++)
    {
      const PodCollectiveVerdict *v = &g_array_index (verdicts, PodCollectiveVerdict, i);
      g_autofree char *name = g_path_get_basename (inputs->inputs[v->input].file);
      g_autofree char *line = g_strdup_printf ("%u", v->sample.line);
      g_autofree char *ranks = g_strdup_printf ("%u", v->sample.n_ranks);
      g_autofree char *bytes = g_strdup_printf ("%" G_GUINT64_FORMAT, v->sample.bytes);
      g_autofree char *measured = g_strdup_printf ("%.2f", v->sample.time_s * 1e6);
      g_autofree char *predicted = g_strdup_printf ("%.2f", v->predicted_s * 1e6);
      g_autofree char *error = g_strdup_printf ("%.4f", pod_collective_error (v));
      g_autofree char *algorithm = v->protocol == NULL
                                       ? g_strdup (v->algorithm)
                                       : g_strconcat (v->algorithm, "/", v->protocol, NULL);

      pod_table_add_row (
          table, (const char *const[]){ name, inputs->inputs[v->input].chip, line,
                                        pod_collective_name (v->sample.kind),
                                        pod_dtype_name (v->sample.dtype), ranks, bytes, measured,
                                        predicted, error, algorithm,
                                        v->sample.is_fitted ? "fitted" : "held_out",
                                        !v->sample.is_judged ? "no"
                                        : v->sample.is_small ? "median"
                                                             : "yes" });
    }
  (void) validation;
  return table;
}

static void
print_worst (const PodCollectiveValidation *validation, const Inputs *inputs)
{
  g_autoptr (GArray) worst = g_array_new (FALSE, FALSE, sizeof (PodCollectiveVerdict));
  g_autoptr (PodTable) table = NULL;
  g_autofree char *text = NULL;

  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodCollectiveVerdict *v = &g_array_index (validation->verdicts, PodCollectiveVerdict, i);

      if (v->sample.is_judged && !v->sample.is_small)
        g_array_append_val (worst, *v);
    }
  g_array_sort (worst, compare_worst);
  table = list_verdicts (validation, inputs, worst, N_WORST);
  text = pod_table_to_text (table);
  printf ("\nWorst rows\n\n%s", text);
}

static void
print_text (const PodCollectiveValidation *validation, const Inputs *inputs)
{
  const PodVerdictFilter steady = { .input = -1, .kind = -1, .half = -1, .steady = 1 };
  PodErrorSummary summary = pod_collective_summary (validation, &steady);
  g_autoptr (PodTable) table = make_table (validation, inputs);
  g_autofree char *text = pod_table_to_text (table);
  g_autoptr (GPtrArray) exceptions = pod_collective_ideal_exceptions (validation);

  printf ("%s\n%u rows at steady sizes: median error %.1f %%, 90th percentile %.1f %%, mean %.1f %%, "
          "bias %.1f %%; %u rows skipped\n",
          text, summary.n_rows, summary.median_error * 100, summary.p90_error * 100,
          summary.mape * 100, summary.bias * 100, validation->skipped->len);
  print_worst (validation, inputs);
  printf ("\nRows that fidelity ideal is slower than: %u\n", exceptions->len);
  for (guint i = 0; i < exceptions->len; i++)
    printf ("  %s\n", (char *) g_ptr_array_index (exceptions, i));
}

/* A device that no fit saw, each in turn. */
static bool
leave_one_out (const Inputs *inputs, const char *template_name, GError **error)
{
  g_autoptr (PodTable) table = pod_table_new ((const char *const[]){
      "chip that no fit saw", "table", ">rows from 1 MiB", ">median %", ">p90 %", ">bias %", NULL });
  g_autofree char *text = NULL;

  for (unsigned i = 0; i < inputs->n; i++)
    {
      PodErrorSummary summary;
      g_autofree char *name = g_path_get_basename (inputs->inputs[i].file);
      g_autofree char *rows = NULL;
      g_autofree char *median = NULL;
      g_autofree char *p90 = NULL;
      g_autofree char *bias = NULL;

      if (!pod_collective_leave_one_out (inputs->inputs, inputs->n, i, template_name, ONE_MIB,
                                         &summary, error))
        return false;
      rows = g_strdup_printf ("%u", summary.n_rows);
      median = percent (summary.median_error);
      p90 = percent (summary.p90_error);
      bias = percent (summary.bias);
      pod_table_add_row (table, (const char *const[]){ inputs->inputs[i].chip, name, rows, median,
                                                       p90, bias });
    }
  text = pod_table_to_text (table);
  printf ("%s", text);
  return true;
}

/* A picture for each table and chip, a colour for each operation. */
static bool
draw (const PodCollectiveValidation *validation, const Inputs *inputs, const char *folder, GError **error)
{
  for (unsigned i = 0; i < inputs->n; i++)
    {
      g_autofree char *table = g_path_get_basename (inputs->inputs[i].file);
      g_autofree char *title = g_strdup_printf ("collectives, %s on %s", table, inputs->inputs[i].chip);
      g_autofree char *name = g_strdup_printf ("collectives-%.*s-%s", (int) strcspn (table, "."), table, inputs->inputs[i].chip);
      g_autoptr (PodScatter) scatter = pod_cli_scatter_new (name, title, "time, us");

      for (guint v = 0; v < validation->verdicts->len; v++)
        {
          const PodCollectiveVerdict *verdict = &g_array_index (validation->verdicts, PodCollectiveVerdict, v);

          if (verdict->input == i && verdict->sample.is_judged)
            pod_cli_scatter_add (scatter, pod_collective_name (verdict->sample.kind), verdict->sample.time_s * 1e6, verdict->predicted_s * 1e6);
        }
      if (!pod_cli_scatter_draw (scatter, folder, error))
        return false;
    }
  return true;
}

static bool
validate_collectives (const PodValidateOptions *options, GError **error)
{
  g_auto (Inputs) inputs = { 0 };
  g_autoptr (PodCollectiveValidation) validation = NULL;

  if (!list_inputs (options, &inputs, error))
    return false;
  if (options->leave_one_out != NULL)
    {
      Inputs full = { .inputs = inputs.inputs }; /* the nccl-tests tables of whole chips */

      for (unsigned i = 0; i < inputs.n; i++)
        {
          if (strstr (inputs.inputs[i].file, "nccl-") != NULL
              && strstr (inputs.inputs[i].file, "-large") == NULL)
            {
              PodCollectiveValidationInput swap = inputs.inputs[full.n];

              inputs.inputs[full.n++] = inputs.inputs[i];
              inputs.inputs[i] = swap;
            }
        }
      return leave_one_out (&full, options->leave_one_out, error);
    }
  validation = pod_validate_collectives (inputs.inputs, inputs.n, error);
  if (validation == NULL)
    return false;
  if (options->per_row != NULL)
    {
      g_autoptr (PodTable) table
          = list_verdicts (validation, &inputs, validation->verdicts, G_MAXUINT);
      g_autofree char *text = pod_table_to_separated (table, '\t');

      if (!pod_output_save (options->per_row, text, error))
        return false;
    }
  if (options->plot != NULL && !draw (validation, &inputs, options->plot, error))
    return false;
  if (options->json != NULL)
    {
      g_autoptr (JsonObject) result
          = pod_collective_validation_to_json (validation, inputs.inputs, inputs.n);

      if (!pod_cli_write_json (result, options->json, error))
        return false;
    }
  if (g_strcmp0 (options->json, "-") != 0)
    print_text (validation, &inputs);
  return true;
}

static void
options_clear (PodValidateOptions *options)
{
  g_free (options->table);
  g_free (options->chip);
  g_free (options->library);
  g_free (options->json);
  g_free (options->per_row);
  g_free (options->plot);
  g_free (options->leave_one_out);
  g_free (options->fidelity);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodValidateOptions, options_clear)

/* What can be validated. An option that the kind does not know is refused rather than ignored. */
static const struct
{
  const char *name;
  bool (*run) (const PodValidateOptions *options, GError **error);
  bool is_training; /* of measured training steps */
  bool has_library;
} kinds[] = {
  { "collectives", validate_collectives, false, true },
  { "kernels", pod_cli_validate_kernels, false, false },
  { "training", pod_cli_validate_training, true, false },
  { "memory", pod_cli_validate_memory, true, false },
};

static bool
check_options (const PodValidateOptions *options, const char *name, bool is_training,
               bool has_library, GError **error)
{
  const char *wrong = NULL;

  if (!has_library)
    wrong = options->library != NULL         ? "library"
            : options->leave_one_out != NULL ? "leave-one-out"
                                             : NULL;
  if (wrong == NULL && !is_training)
    wrong = options->all_rows           ? "all-rows"
            : options->fidelity != NULL ? "fidelity"
            : options->jobs >= 0        ? "jobs"
                                        : NULL;
  if (wrong != NULL)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--%s: not for 'validate %s'", wrong, name);
  else if (options->jobs == 0 || options->jobs > 4096)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--jobs: must be 1 to 4096, got %d",
                 options->jobs);
  else
    return true;
  return false;
}

int
pod_cmd_validate (int argc, char **argv)
{
  g_auto (PodValidateOptions) options = { .jobs = -1 };
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
    { "table", 0, 0, G_OPTION_ARG_FILENAME, &options.table,
      "Judge this table (default: those of workloads/measured)", "FILE" },
    { "chip", 0, 0, G_OPTION_ARG_FILENAME, &options.chip,
      "The chip that it was measured on; training: only rows of this chip", "C" },
    { "library", 0, 0, G_OPTION_ARG_FILENAME, &options.library,
      "collectives: the library (default: that of the chip's vendor)", "L" },
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &options.json,
      "Write every number as JSON (- for stdout)", "FILE" },
    { "per-row", 0, 0, G_OPTION_ARG_FILENAME, &options.per_row,
      "Write measured and predicted figures of each row", "FILE" },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME, &options.plot,
      "Draw predicted over measured: PNG and SVG by gnuplot, with data and scripts", "DIR" },
    { "leave-one-out", 0, 0, G_OPTION_ARG_FILENAME, &options.leave_one_out,
      "collectives: fit the common entry of this template to all chips but one, judge that one",
      "L" },
    { "all-rows", 0, 0, G_OPTION_ARG_NONE, &options.all_rows,
      "training, memory: also rows that lack a field or repeat a layout", NULL },
    { "fidelity", 0, 0, G_OPTION_ARG_FILENAME, &options.fidelity,
      "training, memory: book, ideal, calibrated (default)", "F" },
    { "jobs", 0, 0, G_OPTION_ARG_INT, &options.jobs,
      "training, memory: rows run at once (default: as many as cores)", "N" },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };
  g_autoptr (GOptionContext) context
      = g_option_context_new ("collectives|kernels|training|memory - predictions against published measurements");
  int status;

  if (!pod_cli_parse (context, entries, &argc, &argv, 1, &status))
    return status;
  for (size_t i = 0; argc > 1 && i < G_N_ELEMENTS (kinds); i++)
    if (strcmp (kinds[i].name, argv[1]) == 0)
      return check_options (&options, argv[1], kinds[i].is_training,
                           kinds[i].has_library, &error)
                     && kinds[i].run (&options, &error)
                 ? 0
                 : pod_cli_fail (error);
  return pod_cli_refuse ("validate what? collectives, kernels, training and memory are known, got '%s'",
                         argc < 2 ? "" : argv[1]);
}
