/* A run that nobody records goes through the steady state of its pipeline once; its result is that of the whole run, to the byte, for every
 * schedule, and with all that can be under way from one microbatch to the next. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "scenario/scenario.h"

/* Options of a run, "name=value" words. */
static const char *const jobs[][7] = {
  { "topology=h100:8x8", "layout=tp=8 dp=8", "global-batch=512" },
  { "topology=h100:8x8", "layout=tp=8 fsdp=8", "global-batch=256" },
  { "topology=h100:8x8", "layout=fsdp=64", "global-batch=512" },
  { "topology=h100:8x8", "layout=fsdp=16 pp=4", "global-batch=256" },
  { "topology=h100:8x8", "layout=dp=8 pp=4 tp=2", "global-batch=256", "zero=1" },
  { "topology=h100:8x8", "layout=dp=8 pp=8", "global-batch=512" },
  { "topology=h100:8x8", "layout=dp=2 pp=4 tp=8", "global-batch=128" },
  { "topology=h100:8x8", "layout=dp=2 pp=4 tp=8", "global-batch=128", "schedule=gpipe" },
  { "topology=h100:8x8", "layout=dp=2 pp=4 tp=8 vpp=2", "global-batch=128" },
  { "topology=h100:8x8", "layout=dp=2 pp=4 tp=8 vpp=2", "global-batch=128", "schedule=breadth-first" },
  { "topology=h100:8x8", "layout=dp=2 pp=4 tp=8", "global-batch=128", "schedule=zb-h1" },
  { "topology=h100:8x8", "layout=dp=2 pp=4 tp=8", "global-batch=128", "schedule=dualpipe" },
  { "topology=h100:8x8", "layout=dp=2 pp=4 tp=8", "global-batch=128", "schedule=dualpipe-v" },
  { "topology=h100:8x8", "layout=dp=4 cp=2 pp=2 tp=4", "global-batch=256" },
  { "topology=h100:8x8", "layout=dp=2 pp=4 tp=8", "global-batch=128", "recompute=offload" },
  { "topology=h100:8x8", "layout=dp=2 pp=4 tp=8", "global-batch=128", "fidelity=book" },
  { "topology=h100:8x8", "layout=dp=2 pp=4 tp=8", "global-batch=128", "network=analytic" },
  { "topology=h100:8x8", "layout=dp=2 pp=4 tp=8", "global-batch=128", "fold=off" },
  { "topology=tpu-v5p:4x4x4", "layout=fsdp=16 tp=4", "global-batch=256" },
  { "topology=tpu-v5p:4x4x4", "layout=fsdp=4 pp=4 tp=4", "global-batch=128" },
  { "topology=tpu-v5e:8x8", "layout=dp=4 pp=4 tp=4", "global-batch=128" },
  { "topology=gb200:64x2", "layout=dp=4 pp=4 tp=8", "global-batch=128" },
  { "topology=h100:8x64", "layout=dp=32 pp=2 tp=8", "global-batch=512" }, /* alike until dp's tree */
  /* Layers that are alike, while memory grows and shrinks */
  { "topology=tpu-v5p:4x4x4", "layout=fsdp=64", "global-batch=64", "layers=80" },
  { "topology=tpu-v5e:8x8", "layout=fsdp=8 tp=8", "global-batch=32", "layers=40" },
  { "topology=h100:8x8", "layout=fsdp=64", "global-batch=64", "recompute=full", "layers=32" },
  { "topology=h100:8x8", "layout=fsdp=64", "global-batch=128", "recompute=selective", "layers=32" },
  { "topology=h100:8x8", "layout=fsdp=8 tp=8", "global-batch=8", "recompute=offload", "layers=32" },
  { "topology=h100:8x8", "layout=fsdp=64", "global-batch=64", "recompute=every:3", "layers=33" },
  { "topology=h100:8x8", "layout=fsdp=64", "global-batch=64", "recompute=block:7", "layers=32" },
  { "topology=h100:8x8", "layout=dp=64", "global-batch=128", "layers=32" },
  { "topology=h100:8x8", "layout=dp=8 tp=8", "global-batch=8", "zero=2", "layers=64" },
  { "topology=h100:8x8", "layout=cp=8 fsdp=8", "global-batch=8", "layers=32" },
  { "topology=h100:8x8", "layout=cp=2 tp=2 fsdp=4 dp=4", "global-batch=64", "layers=32" },
  { "topology=h100:8x8", "layout=fsdp=64", "global-batch=64", "fold=off", "layers=16" },
  { "topology=h100:8x8", "layout=fsdp=64", "global-batch=64", "fidelity=book", "layers=32" },
  { "topology=h100:8x8", "layout=fsdp=64", "global-batch=64", "network=analytic", "layers=32" },
  { "topology=h100:8x8", "layout=tp=32 dp=2", "global-batch=4", "layers=32" },
  { "topology=h100:8x8", "layout=fsdp=64 ep=8", "global-batch=128", "model=mixtral-8x7b", "layers=24" },
  /* Stages, which are not simulated where they are known to go on alike */
  { "topology=h100:8x8", "layout=tp=8 pp=4 dp=2", "global-batch=16", "layers=64" },
  { "topology=h100:8x8", "layout=tp=8 pp=4 dp=2", "global-batch=32", "layers=64" },
  { "topology=h100:8x8", "layout=tp=2 pp=4 cp=8", "global-batch=32", "layers=32" },
  { "topology=h100:8x16", "layout=tp=4 pp=4 cp=8", "global-batch=32", "layers=32" },
  { "topology=h100:8x16,oversub=4", "layout=tp=4 pp=4 cp=8", "global-batch=32", "layers=32" },
  { "topology=h100:8x64,oversub=2,tree=3", "layout=tp=2 pp=16 cp=4 fsdp=4", "global-batch=64", "layers=48" },
  { "topology=h100:8x8", "layout=tp=1 pp=8 fsdp=8", "global-batch=64", "layers=32" },
  { "topology=h100:8x8", "layout=tp=2 pp=8 fsdp=4", "global-batch=128", "layers=32", "zero=2" },
  { "topology=h100:8x8", "layout=tp=2 pp=4 fsdp=2 dp=4", "global-batch=64", "layers=32", "recompute=full" },
  { "topology=h100:8x8", "layout=tp=2 pp=4 vpp=2 dp=8", "global-batch=64", "layers=32" },
  { "topology=h100:8x8", "layout=tp=4 pp=4 vpp=4 dp=4", "global-batch=64", "layers=64" },
  { "topology=h100:8x8", "layout=tp=4 pp=4 dp=4", "global-batch=64", "layers=32", "schedule=gpipe" },
  { "topology=h100:8x8", "layout=tp=4 pp=4 dp=4", "global-batch=64", "layers=32", "schedule=zb-h1" },
  { "topology=h100:8x8", "layout=tp=4 pp=4 dp=4", "global-batch=64", "layers=32", "schedule=zb-v" },
  { "topology=h100:8x8", "layout=tp=4 pp=4 dp=4", "global-batch=64", "layers=32", "schedule=dualpipe-v" },
  { "topology=h100:8x8", "layout=tp=4 pp=4 vpp=2 dp=4", "global-batch=64", "layers=32", "schedule=breadth-first" },
  { "topology=h100:8x8", "layout=tp=4 pp=4 dp=4", "global-batch=64", "layers=32", "network=analytic" },
  { "topology=h100:8x8", "layout=tp=4 pp=4 dp=4", "global-batch=64", "layers=32", "recompute=offload" },
  { "topology=h100:8x8", "layout=pp=4 fsdp=16 ep=8", "global-batch=128", "model=mixtral-8x7b", "layers=24" },
  { "topology=h100:8x16", "layout=pp=4 fsdp=32 ep=32", "global-batch=256", "model=deepseek-v3", "layers=24" },
  { "topology=h100:8x8", "layout=pp=4 fsdp=16", "global-batch=64", "model=gemma3-27b", "layers=36" },
  { "topology=h100:8x8", "layout=pp=32 dp=2", "global-batch=64", "layers=32" },
  { "topology=h100:8x8", "layout=pp=16 dp=4", "global-batch=64", "layers=32", "fidelity=ideal" },
  { "topology=tpu-v5p:4x4x4", "layout=tp=4 pp=4 fsdp=4", "global-batch=64", "layers=32" },
  { "topology=tpu-v5e:4x4*4", "layout=tp=4 pp=4 dp=4", "global-batch=64", "layers=32" },
  { "topology=b200:8x8", "layout=tp=8 pp=4 dp=2", "global-batch=64", "layers=48", "framework=megatron" },
  { "topology=a100:8x16", "layout=tp=4 pp=8 dp=4", "global-batch=64", "layers=48" },
  { "topology=h100:8x16", "layout=fsdp=128 ep=32", "global-batch=256", "model=deepseek-v3", "layers=24" }, /* dense ones first */
  { "topology=h100:8x8", "layout=fsdp=64", "global-batch=64", "model=gemma3-27b", "layers=36" },           /* one of six is another */
  { "topology=h100:8x8", "layout=tp=8 fsdp=8", "global-batch=8192", "micro-batch=8", "layers=80" },          /* more steps than are divided */
};

static PodRun *
run_job (unsigned i, bool is_recording_none)
{
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;
  const PodRunRequest request = { .is_recording_none = is_recording_none };
  PodRunBound bound;
  PodRun *run;

  ck_assert (pod_scenario_set (scenario, "model", "llama3-8b", NULL) && pod_scenario_set (scenario, "layers", "16", NULL));
  ck_assert (pod_scenario_set (scenario, "seq-len", "2048", NULL));
  for (unsigned w = 0; w < G_N_ELEMENTS (jobs[i]) && jobs[i][w] != NULL; w++)
    {
      g_auto (GStrv) pair = g_strsplit (jobs[i][w], "=", 2);

      ck_assert_msg (pod_scenario_set (scenario, pair[0], pair[1], &error), "%s: %s", jobs[i][w], error != NULL ? error->message : "");
    }
  run = pod_scenario_run (scenario, &request, &error);
  ck_assert_msg (run != NULL, "job %u: %s", i, error != NULL ? error->message : "");
  ck_assert (pod_scenario_bound (scenario, NULL, &bound, NULL));
  ck_assert_msg (bound.time_ps > 0 && bound.time_ps <= run->exec->time_ps, "%s: at least %ld ps, but %ld", jobs[i][1], (long) bound.time_ps, (long) run->exec->time_ps);
  ck_assert_msg (bound.bytes > 0 && bound.bytes <= run->exec->peak_bytes, "%s: at least %g bytes, but %g", jobs[i][1], bound.bytes, run->exec->peak_bytes);
  return run;
}

static char *
result_text (PodRun *run)
{
  g_autoptr (JsonNode) root = json_node_alloc ();

  json_node_init_object (root, run->result);
  return pod_json_to_text (root);
}

START_TEST (test_steady_is_whole)
{
  g_autoptr (PodRun) whole = run_job ((unsigned) _i, false);
  g_autoptr (PodRun) steady = run_job ((unsigned) _i, true);
  g_autofree char *a = result_text (whole);
  g_autofree char *b = result_text (steady);

  ck_assert_msg (whole->exec->time_ps == steady->exec->time_ps, "%s: %ld ps instead of %ld", jobs[_i][1], (long) steady->exec->time_ps, (long) whole->exec->time_ps);
  ck_assert_uint_ge (whole->exec->n_events, steady->exec->n_events);
  ck_assert_msg (strcmp (a, b) == 0, "%s %s: results differ", jobs[_i][0], jobs[_i][1]);
  ck_assert_uint_eq (whole->exec->n_represented, steady->exec->n_represented);
  ck_assert_msg (memcmp (whole->exec->breakdowns, steady->exec->breakdowns, whole->exec->n_represented * sizeof (PodBreakdown)) == 0, "%s: breakdowns differ",
                 jobs[_i][1]);
}
END_TEST

/* Stages are not simulated where they are known to go on alike: of many events few are left. */
START_TEST (test_few_events)
{
  static const char *const layouts[] = { "layout=tp=8 pp=4 dp=2", "layout=tp=2 pp=4 cp=8", "layout=tp=4 pp=4 dp=4", "layout=fsdp=16 pp=4" };
  uint64_t n[2] = { 0, 0 };

  for (unsigned i = 0; i < G_N_ELEMENTS (jobs); i++)
    for (unsigned k = 0; k < G_N_ELEMENTS (layouts); k++)
      if (strcmp (jobs[i][0], "topology=h100:8x8") == 0 && strcmp (jobs[i][1], layouts[k]) == 0 && jobs[i][4] == NULL)
        {
          g_autoptr (PodRun) whole = run_job (i, false);
          g_autoptr (PodRun) steady = run_job (i, true);

          n[0] += whole->exec->n_events;
          n[1] += steady->exec->n_events;
        }
  ck_assert_msg (n[1] > 0 && n[0] > 8 * n[1], "%lu of %lu events", (unsigned long) n[1], (unsigned long) n[0]);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("steady");
  TCase *tcase = tcase_create ("steady");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (tcase, 120);
  tcase_add_loop_test (tcase, test_steady_is_whole, 0, G_N_ELEMENTS (jobs));
  tcase_add_test (tcase, test_few_events);
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
