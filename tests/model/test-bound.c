/* Bounds are proven: no run is shorter and none holds less, over machines, models, schedules, layouts and choices of the job, drawn by a
 * generator with a fixed seed (POD_CASES: how many). And they are worth something: what the nearer one is of the time on the mean. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "exec/uncontended.h"
#include "scenario/run-cache.h"

typedef struct
{
  const char *name;
  unsigned n_values;
  const char *values[12];
} Choice;

static const struct
{
  const char *topology;
  unsigned log_devices;
} machines[] = { { "h100:8x4", 5 }, { "h100:8x16", 7 }, { "a100:8x8", 6 }, { "gb200:16x4", 6 }, { "b200:8x4", 5 }, { "tpu-v5p:4x4x4", 6 }, { "tpu-v5e:8x8", 6 }, { "h100:8x8,rails=1", 6 } };

static const struct
{
  const char *model;
  unsigned log_experts;
} models[] = { { "llama3-8b", 0 }, { "llama2-13b", 0 }, { "mixtral-8x7b", 3 }, { "llama3-70b", 0 }, { "gemma2-27b", 0 }, { "deepseek-v3", 5 }, { "gpt-oss-20b", 3 } };

/* A first value that stands several times is drawn so much more often. */
static const Choice choices[] = {
  { "fidelity", 6, { "calibrated", "calibrated", "calibrated", "calibrated", "ideal", "book" } },
  { "recompute", 4, { "none", "selective", "full", "offload" } },
  { "micro-batch", 4, { "1", "1", "2", "4" } },
  { "zero", 4, { "0", "1", "2", "3" } },
  { "layers", 3, { "8", "16", "12" } },
  { "global-batch", 4, { "64", "128", "256", "512" } },
  { "seq-len", 3, { "1024", "2048", "4096" } },
  { "schedule", 12, { "", "", "", "", "gpipe", "breadth-first", "zb-h1", "zb-h2", "zb-v", "dualpipe", "dualpipe-v", "interleaved" } },
  { "overlap-tp", 3, { "false", "false", "true" } },
  { "overlap-dp", 3, { "true", "true", "false" } },
  { "overlap-p2p", 3, { "true", "true", "false" } },
  { "overlap-fsdp", 3, { "true", "true", "false" } },
  { "sequence-parallel", 3, { "true", "true", "false" } },
  { "prefetch", 4, { "1", "1", "0", "3" } },
  { "cp-kind", 4, { "", "ring", "allgather", "ulysses" } },
  { "attention-kind", 3, { "flash", "flash", "unfused" } },
  { "network", 3, { "flow", "flow", "analytic" } },
  { "fold", 4, { "auto", "auto", "auto", "off" } },
  { "framework", 4, { "", "", "", "megatron" } },
  { "grad-bucket", 3, { "", "", "40MB" } },
  { "optimizer", 4, { "adam", "adam", "muon", "adafactor" } },
  { "offload-optimizer", 6, { "false", "false", "false", "false", "false", "true" } },
  { "expert-imbalance", 2, { "", "1.3" } },
  { "lora", 6, { "", "", "", "", "", "16" } },
};

/* A run of a random length of the bits that are left. */
static unsigned
draw_degree (GRand *rand, unsigned *left)
{
  const unsigned taken = (unsigned) g_rand_int_range (rand, 0, (gint32) MIN (*left, 3) + 1);

  *left -= taken;
  return 1U << taken;
}

/* Returns: (transfer full) */
static PodScenario *
draw (GRand *rand, GString *text)
{
  PodScenario *scenario = pod_scenario_new ();
  const unsigned machine = (unsigned) g_rand_int_range (rand, 0, G_N_ELEMENTS (machines));
  const unsigned model = (unsigned) g_rand_int_range (rand, 0, G_N_ELEMENTS (models));
  unsigned left = machines[machine].log_devices;
  const unsigned tp = draw_degree (rand, &left);
  const unsigned pp = draw_degree (rand, &left);
  const unsigned cp = g_rand_int_range (rand, 0, 3) == 0 ? draw_degree (rand, &left) : 1;
  const unsigned fsdp = g_rand_int_range (rand, 0, 2) == 0 ? draw_degree (rand, &left) : 1;
  const unsigned vpp = pp > 1 && g_rand_int_range (rand, 0, 3) == 0 ? 2 : 1;
  const unsigned ep = 1U << g_rand_int_range (rand, 0, (gint32) models[model].log_experts + 1);
  g_autofree char *layout = g_strdup_printf ("tp=%u pp=%u cp=%u fsdp=%u dp=%u vpp=%u ep=%u", tp, pp, cp, fsdp, 1U << left, vpp, ep);

  g_string_printf (text, "--topology %s --model %s --layout \"%s\"", machines[machine].topology, models[model].model, layout);
  pod_scenario_set (scenario, "topology", machines[machine].topology, NULL);
  pod_scenario_set (scenario, "model", models[model].model, NULL);
  pod_scenario_set (scenario, "layout", layout, NULL);
  for (unsigned i = 0; i < G_N_ELEMENTS (choices); i++)
    {
      const char *value = choices[i].values[g_rand_int_range (rand, 0, (gint32) choices[i].n_values)];
      g_autoptr (GError) error = NULL;

      if (value[0] == '\0')
        continue;
      ck_assert_msg (pod_scenario_set (scenario, choices[i].name, value, &error), "%s", error != NULL ? error->message : "");
      g_string_append_printf (text, " --%s=%s", choices[i].name, value);
    }
  return scenario;
}

typedef struct
{
  unsigned n;
  double sum_ratio; /* of the nearer bound's time */
  double sum_bytes_ratio;
  double sum_layers_ratio;
  double sum_bound_ratio;
  double least_ratio;
  char *least;
} Tally;

/* The bound is found from the outline of the program, in which stages that are alike have their ops in common: it is that of the whole one. */
static void
check_outline (const PodRun *run, const PodRunBound *bound, const PodRunBound *nearer, const char *text)
{
  const PodExecRequest request = { .topology = run->topology, .program = run->program, .fidelity = run->fidelity, .software = &run->software, .library = run->library };
  PodUncontended whole;

  ck_assert (pod_exec_uncontended (&request, &whole, NULL));
  ck_assert_msg (nearer->time_ps == MAX (whole.time_ps, bound->time_ps), "%s: %ld ps by the outline, %ld by the program", text, (long) nearer->time_ps, (long) whole.time_ps);
}

/* Recomputation and less overlap only add to a program: what a search takes for the bound of all that differ in those (search/space.h) is below
 * each. */
static void
check_head (const PodScenario *scenario, PodRunCache *cache, const PodRunBound *nearer, const char *text)
{
  static const char *const least[][2] = { { "recompute", "none" }, { "overlap-dp", "true" }, { "overlap-p2p", "true" }, { "overlap-fsdp", "true" } };
  g_autoptr (PodScenario) head = pod_scenario_copy (scenario);
  PodRunBound bound;

  for (unsigned i = 0; i < G_N_ELEMENTS (least); i++)
    if (!(i == 0 && scenario->framework != NULL) && !(i == 1 && (scenario->grad_bucket != NULL || scenario->lora > 0)))
      ck_assert (pod_scenario_set (head, least[i][0], least[i][1], NULL));
  ck_assert_msg (pod_scenario_floor (head, cache, &bound, NULL), "%s", text);
  ck_assert_msg (bound.time_ps <= nearer->time_ps, "%s: %.9g s for all, but %.9g", text, (double) bound.time_ps / 1e12, (double) nearer->time_ps / 1e12);
}

static void
check_one (GRand *rand, PodRunCache *cache, Tally *tally)
{
  const PodRunRequest request = { .is_recording_none = true, .needs_no_advice = true, .cache = cache };
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (PodScenario) scenario = draw (rand, text);
  g_autoptr (PodRun) run = pod_scenario_apply_framework (scenario, NULL) ? pod_scenario_run (scenario, &request, NULL) : NULL;
  PodRunBound bound, layers, nearer;
  double held, ratio;

  if (run == NULL)
    return;
  held = run->exec->peak_bytes + run->overhead.context_bytes + run->overhead.comm_buffer_bytes + run->overhead.fragmentation_bytes;
  ck_assert (pod_scenario_bound (scenario, cache, &bound, NULL) && pod_scenario_floor (scenario, cache, &nearer, NULL));
  ck_assert_msg (bound.time_ps <= nearer.time_ps && nearer.time_ps <= run->exec->time_ps, "%s: %.9g and %.9g, but %.9g s", text->str, (double) bound.time_ps / 1e12,
                 (double) nearer.time_ps / 1e12, (double) run->exec->time_ps / 1e12);
  ck_assert_msg (bound.bytes <= nearer.bytes && nearer.bytes <= held, "%s: %.9g and %.9g, but %.9g bytes", text->str, bound.bytes, nearer.bytes, held);
  ck_assert (pod_scenario_layers_bound (scenario, cache, &layers, NULL));
  ck_assert_msg (bound.time_ps <= layers.time_ps && layers.time_ps <= run->exec->time_ps, "%s: %.9g and by a layer %.9g, but %.9g s", text->str, (double) bound.time_ps / 1e12,
                 (double) layers.time_ps / 1e12, (double) run->exec->time_ps / 1e12);
  tally->sum_layers_ratio += (double) layers.time_ps / (double) run->exec->time_ps;
  tally->sum_bound_ratio += (double) bound.time_ps / (double) run->exec->time_ps;
  check_outline (run, &bound, &nearer, text->str);
  check_head (scenario, cache, &nearer, text->str);
  ratio = (double) nearer.time_ps / (double) run->exec->time_ps;
  tally->n++;
  tally->sum_ratio += ratio;
  tally->sum_bytes_ratio += nearer.bytes / held;
  if (tally->least != NULL && ratio >= tally->least_ratio)
    return;
  g_free (tally->least);
  tally->least = g_strdup (text->str);
  tally->least_ratio = ratio;
}

START_TEST (test_no_run_is_below)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed ((guint32) _i);
  g_autoptr (PodRunCache) cache = pod_run_cache_new ();
  const char *cases = g_getenv ("POD_CASES");
  const uint64_t n = cases != NULL ? g_ascii_strtoull (cases, NULL, 10) : 150;
  Tally tally = { 0 };

  for (uint64_t i = 0; i < n; i++)
    check_one (rand, cache, &tally);
  printf ("%u runs: the nearer bound is %.3f of the time (by a layer %.3f, by FLOPs %.3f) and %.3f of the memory on the mean; least %.3f: %s\n", tally.n,
          tally.sum_ratio / tally.n, tally.sum_layers_ratio / tally.n, tally.sum_bound_ratio / tally.n,
          tally.sum_bytes_ratio / tally.n, tally.least_ratio, tally.least != NULL ? tally.least : "none");
  ck_assert_uint_ge (tally.n, n / 8);
  ck_assert_double_ge (tally.sum_ratio / tally.n, 0.9);
  g_free (tally.least);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("bound");
  TCase *tcase = tcase_create ("bound");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (tcase, 600);
  tcase_add_loop_test (tcase, test_no_run_is_below, 1, 4);
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
