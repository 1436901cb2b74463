#include <string.h>

#include "scenario/result-private.h"
#include "scenario/run-cache.h"

/* What would make a step that does not fit in memory fit: one change at a time is run, and those that fit are told, fastest first. As many
 * changes are tried as come to about this many operations of all stages (a second), the likeliest first. */
#define MAX_OPS 1000000

typedef struct
{
  char *change;    /* "--recompute full" */
  double time_s;
  double peak_bytes;
} Advice;

static void
advice_clear (void *data)
{
  g_free (((Advice *) data)->change);
}

static gint
compare_advice (gconstpointer a, gconstpointer b)
{
  const Advice *x = a;
  const Advice *y = b;

  if (x->time_s != y->time_s)
    return x->time_s < y->time_s ? -1 : 1;
  return strcmp (x->change, y->change);
}

/* The changes that make it fit, and how many more may be tried. */
typedef struct
{
  GArray *found; /* Advice */
  PodRunCache *cache;
  uint64_t n_left;
} Trial;

/* Runs @scenario with options set anew; keeps it when it fits. What cannot be run is no advice. */
static void
try_change (const PodScenario *scenario, Trial *trial, const char *option, const char *value)
{
  g_autoptr (PodScenario) changed = pod_scenario_copy (scenario);
  const PodRunRequest request = { .is_recording_none = true, .is_brief = true, .needs_no_advice = true, .must_fit = true, .cache = trial->cache };
  g_autoptr (PodRun) run = NULL;
  Advice advice;

  if (trial->n_left == 0 || !pod_scenario_set (changed, option, value, NULL) || !pod_scenario_set (changed, "fold", "auto", NULL))
    return;
  trial->n_left--;
  run = pod_scenario_run (changed, &request, NULL);
  if (run == NULL || !run->fits)
    return;
  advice = (Advice){ .change = strchr (value, ' ') != NULL ? g_strdup_printf ("--%s \"%s\"", option, value) : g_strdup_printf ("--%s %s", option, value),
                     .time_s = (double) run->exec->time_ps / 1e12,
                     .peak_bytes = run->exec->peak_bytes };
  g_array_append_val (trial->found, advice);
}

/* The same devices with twice the degree of @more and half of @less. */
static void
try_layout (const PodScenario *scenario, const PodRun *run, Trial *trial, PodAxis more, PodAxis less)
{
  PodLayout layout = run->job.layout;
  g_autofree char *text = NULL;

  if (layout.degree[less] % 2 != 0)
    return;
  layout.degree[more] *= 2;
  layout.degree[less] /= 2;
  text = pod_layout_to_text (&layout);
  try_change (scenario, trial, "layout", text);
}

static void
try_all (const PodScenario *scenario, const PodRun *run, Trial *trial)
{
  const PodJob *job = &run->job;

  if (job->layout.degree[POD_AXIS_DP] > 1)
    {
      if (job->layout.zero_stage < 1)
        try_change (scenario, trial, "zero", "1");
      if (job->layout.zero_stage < 2)
        try_change (scenario, trial, "zero", "2");
      try_change (scenario, trial, "zero", "3");
    }
  if (job->recompute.kept == POD_ALL_TENSORS)
    try_change (scenario, trial, "recompute", "selective");
  if (job->recompute.kept != 0)
    try_change (scenario, trial, "recompute", "full");
  if (job->recompute.offloaded == 0)
    try_change (scenario, trial, "recompute", "offload");
  if (job->batch.micro_batch % 2 == 0)
    {
      g_autofree char *half = g_strdup_printf ("%" G_GUINT64_FORMAT, job->batch.micro_batch / 2);

      try_change (scenario, trial, "micro-batch", half);
    }
  try_layout (scenario, run, trial, POD_AXIS_FSDP, POD_AXIS_DP);
  try_layout (scenario, run, trial, POD_AXIS_TP, POD_AXIS_DP);
  try_layout (scenario, run, trial, POD_AXIS_TP, POD_AXIS_FSDP);
  try_layout (scenario, run, trial, POD_AXIS_PP, POD_AXIS_DP);
  try_layout (scenario, run, trial, POD_AXIS_PP, POD_AXIS_FSDP);
  if (job->optimizer == POD_OPTIMIZER_ADAM)
    try_change (scenario, trial, "optimizer", "adam-8bit");
}

/* Operations that one rank of each stage runs in a step. */
static uint64_t
n_ops (const PodProgram *program)
{
  uint64_t n = 0;

  for (guint c = 0; c < program->classes->len; c++)
    {
      const PodProgramClass *class = g_ptr_array_index (program->classes, c);

      for (guint i = 0; i < class->steps->len; i++)
        n += g_array_index (program->blocks, PodOpBlock, g_array_index (class->steps, PodOpStep, i).block).n_ops;
    }
  return n;
}

void
pod_run_advise (const PodScenario *scenario, PodRun *run)
{
  g_autoptr (GArray) advices = g_array_new (FALSE, FALSE, sizeof (Advice));
  JsonArray *out = pod_result_get_array (run->result, "memory.would_fit");
  g_autoptr (PodRunCache) cache = run->cache != NULL ? pod_run_cache_ref (run->cache) : pod_run_cache_new ();
  Trial trial = { .found = advices, .cache = cache, .n_left = MAX_OPS / MAX (n_ops (run->program), 1) };

  g_array_set_clear_func (advices, advice_clear);
  if (!run->fits)
    try_all (scenario, run, &trial);
  g_array_sort (advices, compare_advice);
  for (guint i = 0; i < advices->len; i++)
    {
      const Advice *advice = &g_array_index (advices, Advice, i);
      JsonObject *entry = json_object_new ();

      pod_result_set_string (entry, "change", advice->change);
      pod_result_set_double (entry, "time_s", advice->time_s);
      pod_result_set_double (entry, "peak_bytes", advice->peak_bytes);
      json_array_add_object_element (out, entry);
    }
}
