#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/output.h"
#include "cli/cli.h"
#include "cli/validate-plot.h"
#include "cli/validate-private.h"
#include "validate/training-sources.h"
#include "validate/validate-training.h"

/* podsim validate training, podsim validate memory. */

enum
{
  N_WORST = 10,
};

/* The tables of the tree, in workloads/measured. */
static const char *const shipped[] = { "training.tsv", "training-vtrain.tsv" };

/* ---- text ---- */

static char *
percent (double ratio)
{
  return g_strdup_printf ("%.1f", ratio * 100);
}

static void
add_summary (PodTable *table, const char *name, const PodErrorSummary *summary, unsigned n_skipped)
{
  g_autofree char *rows = g_strdup_printf ("%u", summary->n_rows);
  g_autofree char *skipped = g_strdup_printf ("%u", n_skipped);
  g_autofree char *median = percent (summary->median_error);
  g_autofree char *p90 = percent (summary->p90_error);
  g_autofree char *mape = percent (summary->mape);
  g_autofree char *log = percent (summary->mean_log_error);
  g_autofree char *bias = percent (summary->bias);
  const bool is_empty = summary->n_rows == 0;

  pod_table_add_row (table, (const char *const[]){ name, rows, skipped, is_empty ? "-" : median,
                                                   is_empty ? "-" : p90, is_empty ? "-" : mape,
                                                   is_empty ? "-" : log, is_empty ? "-" : bias });
}

static void
print_sources (const PodTrainingValidation *validation, PodTrainingKind kind)
{
  g_autoptr (PodTable) table = pod_table_new ((const char *const[]){
      "source", ">rows", ">skipped", ">median %", ">p90 %", ">mean %", ">|ln| %", ">bias %", NULL });
  PodErrorSummary all = pod_training_summary (validation, kind, NULL);
  g_autofree char *text = NULL;

  for (guint i = 0; i < validation->sources->len; i++)
    {
      const char *key = g_ptr_array_index (validation->sources, i);
      PodErrorSummary summary = pod_training_summary (validation, kind, key);

      if (kind == POD_TRAINING_TIME || summary.n_rows > 0)
        add_summary (table, key, &summary, pod_training_n_skipped (validation, key));
    }
  add_summary (table, "all", &all, pod_training_n_skipped (validation, NULL));
  text = pod_table_to_text (table);
  fputs (text, stdout);
}

static char *
mean_of (const PodTrainingValidation *validation, const PodTrainingSelection *selection)
{
  const PodErrorSummary summary = pod_training_summary_of (validation, POD_TRAINING_TIME, selection);

  return summary.n_rows > 0 ? percent (summary.mape) : g_strdup ("-");
}

/* @group (nullable): all groups. */
static void
add_group (PodTable *table, const PodTrainingValidation *validation, const char *group)
{
  const PodTrainingSelection all = { .group = group, .half = -1 };
  const PodErrorSummary summary = pod_training_summary_of (validation, POD_TRAINING_TIME, &all);
  g_autofree char *rows = g_strdup_printf ("%u", summary.n_rows);
  g_autofree char *mean = percent (summary.mape);
  g_autofree char *log = percent (summary.mean_log_error);
  g_autofree char *fitted = mean_of (validation, &(PodTrainingSelection){ .group = group, .half = 1 });
  g_autofree char *others = mean_of (validation, &(PodTrainingSelection){ .group = group, .half = 0 });
  g_autofree char *within = percent (pod_training_coverage (validation, &all));

  if (summary.n_rows > 0)
    pod_table_add_row (table, (const char *const[]){ group != NULL ? group : "all", rows, mean, log, fitted, others, within });
}

/* Groups of sources, each once. vtrain-multi has no part in any fit. */
static void
print_groups (const PodTrainingValidation *validation)
{
  g_autoptr (GPtrArray) seen = g_ptr_array_new ();
  g_autoptr (PodTable) table = pod_table_new ((const char *const[]){
      "group", ">rows", ">mean %", ">|ln| %", ">fitted half %", ">other half %", ">in range %", NULL });
  g_autofree char *text = NULL;

  for (const PodTrainingSource *source = pod_training_sources; source->key != NULL; source++)
    if (source->group != NULL && !g_ptr_array_find_with_equal_func (seen, source->group, g_str_equal, NULL))
      {
        g_ptr_array_add (seen, (gpointer) source->group);
        add_group (table, validation, source->group);
      }
  add_group (table, validation, NULL);
  text = pod_table_to_text (table);
  printf ("\nGroups\n\n%s", text);
}

/* Reasons with their numbers left out, each with how often it occurs. */
static void
print_reasons (const PodTrainingValidation *validation)
{
  g_autoptr (GHashTable) index_of = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, NULL);
  g_autoptr (GPtrArray) reasons = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GArray) counts = g_array_new (FALSE, TRUE, sizeof (unsigned));

  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodTrainingVerdict *v = g_ptr_array_index (validation->verdicts, i);
      g_autofree char *reason = v->reason != NULL ? g_strdup (v->reason) : NULL;
      gpointer at;

      if (reason == NULL)
        continue;
      for (char *c = reason; *c != '\0'; c++)
        if (g_ascii_isdigit (*c))
          *c = '#';
      if (!g_hash_table_lookup_extended (index_of, reason, NULL, &at))
        {
          const unsigned none = 0;

          at = GUINT_TO_POINTER (reasons->len);
          g_hash_table_insert (index_of, reason, at);
          g_ptr_array_add (reasons, g_steal_pointer (&reason));
          g_array_append_val (counts, none);
        }
      g_array_index (counts, unsigned, GPOINTER_TO_UINT (at))++;
    }
  if (reasons->len > 0)
    printf ("\nSkipped\n\n");
  for (guint i = 0; i < reasons->len; i++)
    printf ("%5u  %s\n", g_array_index (counts, unsigned, i),
            (char *) g_ptr_array_index (reasons, i));
}

static PodTrainingKind
sorted_kind (gconstpointer data)
{
  return (PodTrainingKind) GPOINTER_TO_INT (data);
}

static int
compare_worst (gconstpointer a, gconstpointer b, gpointer data)
{
  const PodTrainingVerdict *first = *(PodTrainingVerdict *const *) a;
  const PodTrainingVerdict *second = *(PodTrainingVerdict *const *) b;
  const double left = fabs (log1p (pod_training_error (first, sorted_kind (data))));
  const double right = fabs (log1p (pod_training_error (second, sorted_kind (data))));

  return left != right ? (left > right ? -1 : 1) : (int) first->row->line - (int) second->row->line;
}

static char *
quantity (PodTrainingKind kind, double value)
{
  return kind == POD_TRAINING_MEMORY ? g_strdup_printf ("%.1f GB", value / 1e9)
                                     : g_strdup_printf ("%.4g s", value);
}

/* The worst rows of memory; of time all that are off by more than a fifth, each with its cause. */
static void
print_worst (const PodTrainingValidation *validation, PodTrainingKind kind)
{
  const bool has_causes = kind == POD_TRAINING_TIME;
  g_autoptr (GPtrArray) worst = g_ptr_array_new ();
  g_autoptr (PodTable) table = pod_table_new ((const char *const[]){
      "row", "source", "machine", "model", "layout", ">measured", ">predicted", ">error %", has_causes ? "cause" : NULL, NULL });
  g_autofree char *text = NULL;

  for (guint i = 0; i < validation->verdicts->len; i++)
    if (pod_training_is_counted (g_ptr_array_index (validation->verdicts, i), kind))
      g_ptr_array_add (worst, g_ptr_array_index (validation->verdicts, i));
  g_ptr_array_sort_with_data (worst, compare_worst, GINT_TO_POINTER (kind));
  for (guint i = 0; i < worst->len; i++)
    {
      const PodTrainingVerdict *v = g_ptr_array_index (worst, i);
      const double ratio = pod_training_error (v, kind);
      g_autofree char *measured = quantity (kind, v->measured[kind]);
      g_autofree char *predicted = quantity (kind, v->predicted[kind]);
      g_autofree char *error = percent (ratio);

      if (has_causes ? fabs (ratio) <= 0.2 : i >= N_WORST)
        continue;
      pod_table_add_row (table, (const char *const[]){
                                    v->row->id, v->row->source, v->scenario->topology,
                                    v->row->model != NULL ? v->row->model : "-",
                                    v->scenario->layout, measured, predicted, error,
                                    has_causes ? pod_training_cause (v->row) : NULL });
    }
  text = pod_table_to_text (table);
  printf ("\n%s\n\n%s", has_causes ? "Rows over 20 %" : "Worst rows", text);
}

/* Ideal is physics at nominal rates: nothing measured is faster. */
static void
print_faster_than_ideal (const PodTrainingValidation *validation)
{
  unsigned n = 0;

  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodTrainingVerdict *v = g_ptr_array_index (validation->verdicts, i);

      if (v->reason == NULL && v->predicted[POD_TRAINING_TIME] > v->measured[POD_TRAINING_TIME])
        {
          if (n++ == 0)
            printf ("\nRows that fidelity ideal is slower than\n\n");
          printf ("%s: measured %.4g s, ideal %.4g s\n", v->row->id,
                  v->measured[POD_TRAINING_TIME], v->predicted[POD_TRAINING_TIME]);
        }
    }
  printf ("\n%u rows are faster than fidelity ideal\n", n);
}

static void
print_text (const PodTrainingValidation *validation, PodTrainingKind kind,
            const PodValidateOptions *options)
{
  PodErrorSummary mfu = pod_training_summary (validation, POD_TRAINING_MFU, NULL);
  unsigned n_noisy = 0;
  unsigned n_over = 0;

  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodTrainingVerdict *v = g_ptr_array_index (validation->verdicts, i);

      n_noisy += v->reason == NULL && v->is_noisy;
      n_over += v->reason == NULL && !v->fits;
    }
  print_sources (validation, kind);
  printf ("\n%u rows run, %u of them not counted since releases differ by more than 20 %%; %u do not "
          "fit in memory as predicted\n",
          validation->verdicts->len - pod_training_n_skipped (validation, NULL), n_noisy, n_over);
  if (kind == POD_TRAINING_TIME && mfu.n_rows > 0)
    printf ("MFU by the rows' own conventions: %u rows, median error %.1f %%, bias %.1f %%\n",
            mfu.n_rows, mfu.median_error * 100, mfu.bias * 100);
  if (kind == POD_TRAINING_TIME)
    print_groups (validation);
  print_reasons (validation);
  print_worst (validation, kind);
  if (kind == POD_TRAINING_TIME && g_strcmp0 (options->fidelity, "ideal") == 0)
    print_faster_than_ideal (validation);
}

/* ---- the command ---- */

/* The given table, or those of the tree. (element-type utf8) */
static GPtrArray *
list_files (const PodValidateOptions *options, GError **error)
{
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func (g_free);

  if (options->table != NULL)
    {
      g_ptr_array_add (files, g_strdup (options->table));
      return g_steal_pointer (&files);
    }
  for (size_t i = 0; i < G_N_ELEMENTS (shipped); i++)
    {
      char *file = pod_data_find ("workloads/measured", shipped[i], ".tsv");

      if (file == NULL)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "the table workloads/measured/%s is missing: set PODSIM_PATH", shipped[i]);
          return NULL;
        }
      g_ptr_array_add (files, file);
    }
  return g_steal_pointer (&files);
}

/* Counted rows of a group (nullable: of those that are in none), a colour for each source; with @has_groups all, a colour for each group. */
static bool
draw_group (const PodTrainingValidation *validation, PodTrainingKind kind, const char *group, bool has_groups, const char *folder, GError **error)
{
  const char *what = kind == POD_TRAINING_MEMORY ? "memory" : "training";
  const char *rows = has_groups ? "all rows" : group != NULL ? group : "sources in no group";
  const double unit = kind == POD_TRAINING_MEMORY ? 1e9 : 1;
  g_autofree char *name = has_groups ? g_strdup (what) : g_strdup_printf ("%s-%s", what, group != NULL ? group : "others");
  g_autofree char *title = g_strdup_printf ("%s: %s", what, rows);
  g_autoptr (PodScatter) scatter = pod_cli_scatter_new (name, title, kind == POD_TRAINING_MEMORY ? "peak of a device, GB" : "time of a step, s");

  for (guint i = 0; i < validation->verdicts->len; i++)
    {
      const PodTrainingVerdict *v = g_ptr_array_index (validation->verdicts, i);
      const PodTrainingSource *source = pod_training_source (v->row);
      const char *of_group = source != NULL ? source->group : NULL;
      const char *series = has_groups ? (of_group != NULL ? of_group : "others") : v->row->source;

      if (pod_training_is_counted (v, kind) && (has_groups || g_strcmp0 (of_group, group) == 0))
        pod_cli_scatter_add (scatter, series, v->measured[kind] / unit, v->predicted[kind] / unit);
    }
  return pod_cli_scatter_draw (scatter, folder, error);
}

static bool
draw (const PodTrainingValidation *validation, PodTrainingKind kind, const char *folder, GError **error)
{
  g_autoptr (GPtrArray) seen = g_ptr_array_new ();

  for (const PodTrainingSource *source = pod_training_sources; source->key != NULL; source++)
    if (source->group != NULL && !g_ptr_array_find_with_equal_func (seen, source->group, g_str_equal, NULL))
      {
        g_ptr_array_add (seen, (gpointer) source->group);
        if (!draw_group (validation, kind, source->group, false, folder, error))
          return false;
      }
  return draw_group (validation, kind, NULL, false, folder, error) && draw_group (validation, kind, NULL, true, folder, error);
}

static bool
write_outputs (const PodTrainingValidation *validation, PodTrainingKind kind,
               const PodValidateOptions *options, GError **error)
{
  if (options->per_row != NULL)
    {
      g_autoptr (PodTable) table = pod_training_per_row (validation);
      g_autofree char *text = pod_table_to_separated (table, '\t');

      if (!pod_output_save (options->per_row, text, error))
        return false;
    }
  if (options->plot != NULL && !draw (validation, kind, options->plot, error))
    return false;
  if (options->json != NULL)
    {
      g_autoptr (JsonObject) result = pod_training_to_json (validation, kind);

      return pod_cli_write_json (result, options->json, error);
    }
  return true;
}

static bool
validate (const PodValidateOptions *options, PodTrainingKind kind, GError **error)
{
  g_autoptr (GPtrArray) files = list_files (options, error);
  g_autoptr (PodTrainingValidation) validation = NULL;
  PodTrainingRequest request = {
    .chip = options->chip,
    .fidelity = options->fidelity,
    .has_all_rows = options->all_rows,
    .n_threads = options->jobs > 0 ? (unsigned) options->jobs : g_get_num_processors (),
    .is_memory_only = kind == POD_TRAINING_MEMORY,
  };

  if (files == NULL)
    return false;
  request.files = (const char *const *) files->pdata;
  request.n_files = files->len;
  validation = pod_validate_training (&request, error);
  if (validation == NULL || !write_outputs (validation, kind, options, error))
    return false;
  if (g_strcmp0 (options->json, "-") != 0)
    print_text (validation, kind, options);
  return true;
}

bool
pod_cli_validate_training (const PodValidateOptions *options, GError **error)
{
  return validate (options, POD_TRAINING_TIME, error);
}

bool
pod_cli_validate_memory (const PodValidateOptions *options, GError **error)
{
  return validate (options, POD_TRAINING_MEMORY, error);
}
