/* Runs that share a cache give what runs without one give, to the byte, in whatever order they come. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "scenario/run-cache.h"

/* Options of a run, "name=value" words. */
static const char *const jobs[][6] = {
  { "topology=h100:8x8", "model=llama3-8b", "layout=tp=8 dp=8", "global-batch=64" },
  { "topology=h100:8x8", "model=llama3-8b", "layout=tp=4 pp=4 dp=4", "global-batch=64" },
  { "topology=h100:8x8", "model=llama3-8b", "layout=tp=4 pp=4 dp=4", "global-batch=64", "micro-batch=2" },
  { "topology=h100:8x8", "model=llama3-8b", "layout=fsdp=16 tp=4", "global-batch=64" },
  { "topology=h100:8x8", "model=llama3-8b", "layout=fsdp=16 tp=4", "global-batch=64", "fidelity=ideal" },
  { "topology=h100:8x8", "model=llama3-8b", "layout=fsdp=16 tp=4", "global-batch=64", "fidelity=book" },
  { "topology=h100:8x8", "model=llama3-8b", "layout=fsdp=16 tp=4", "global-batch=64", "algorithm=ring" },
  { "topology=h100:8x8", "model=llama3-8b", "layout=fsdp=16 tp=4", "global-batch=64", "network=analytic" },
  { "topology=h100:8x8", "model=llama3-8b", "layout=fsdp=16 tp=4", "global-batch=64", "set=chip.hbm_bandwidth=1.23TB/s" },
  { "topology=h100:8x8", "model=llama3-8b", "layout=fsdp=16 tp=4", "global-batch=64", "set=model.ffn=7168" },
  { "topology=h100:8x8", "model=llama3-8b", "layout=fsdp=16 tp=4", "global-batch=64", "layers=8" },
  { "topology=h100:8x8", "model=mixtral-8x7b", "layout=dp=16 tp=4 ep=8", "global-batch=64" },
  { "topology=h100:8x8,rails=1", "model=llama3-8b", "layout=tp=8 dp=8", "global-batch=64" },
  { "topology=tpu-v5p:4x4x4", "model=llama3-8b", "layout=fsdp=16 tp=4", "global-batch=64" },
  { "topology=tpu-v5p:4x4x4", "model=llama3-8b", "layout=fsdp=8 tp=8", "global-batch=64" },
  { "topology=tpu-v5e:8x8", "model=llama3-8b", "layout=fsdp=16 tp=4", "global-batch=64" },
};

static PodRun *
run_job (unsigned i, PodRunCache *cache)
{
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;
  const PodRunRequest request = { .is_recording_none = true, .cache = cache };
  PodRun *run;

  for (unsigned w = 0; w < G_N_ELEMENTS (jobs[i]) && jobs[i][w] != NULL; w++)
    {
      g_auto (GStrv) pair = g_strsplit (jobs[i][w], "=", 2);

      ck_assert_msg (pod_scenario_set (scenario, pair[0], pair[1], &error), "%s: %s", jobs[i][w], error != NULL ? error->message : "");
    }
  ck_assert (pod_scenario_set (scenario, "seq-len", "2048", NULL));
  run = pod_scenario_run (scenario, &request, &error);
  ck_assert_msg (run != NULL, "job %u: %s", i, error != NULL ? error->message : "");
  return run;
}

static char *
result_text (PodRun *run)
{
  g_autoptr (JsonNode) root = json_node_alloc ();

  json_node_init_object (root, run->result);
  return pod_json_to_text (root);
}

static void
check_job (unsigned i, PodRunCache *cache)
{
  g_autoptr (PodRun) plain = run_job (i, NULL);
  g_autoptr (PodRun) cached = run_job (i, cache);
  g_autofree char *a = result_text (plain);
  g_autofree char *b = result_text (cached);

  ck_assert_msg (strcmp (a, b) == 0, "job %u: the cache changes the result", i);
}

/* Cold, then warm, then the other way round. */
START_TEST (test_cached_is_plain)
{
  g_autoptr (PodRunCache) cache = pod_run_cache_new ();

  for (unsigned i = 0; i < G_N_ELEMENTS (jobs); i++)
    check_job (i, cache);
  for (unsigned i = G_N_ELEMENTS (jobs); i-- > 0;)
    check_job (i, cache);
}
END_TEST

/* A run outlives the caller's reference. */
START_TEST (test_run_keeps_cache)
{
  PodRunCache *cache = pod_run_cache_new ();
  g_autoptr (PodRun) run = run_job (0, cache);

  pod_run_cache_unref (cache);
  ck_assert_uint_eq (run->topology->n_devices, 64);
}
END_TEST

/* What cannot be loaded is refused each time with the same words. */
START_TEST (test_errors_are_not_kept)
{
  g_autoptr (PodRunCache) cache = pod_run_cache_new ();
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  const PodRunRequest request = { .cache = cache };
  g_autoptr (GError) first = NULL;
  g_autoptr (GError) second = NULL;

  ck_assert (pod_scenario_set (scenario, "topology", "no-such-machine", NULL));
  ck_assert (pod_scenario_run (scenario, &request, &first) == NULL);
  ck_assert (pod_scenario_run (scenario, &request, &second) == NULL);
  ck_assert_str_eq (first->message, second->message);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("run-cache");
  TCase *tcase = tcase_create ("run-cache");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (tcase, 120);
  tcase_add_test (tcase, test_cached_is_plain);
  tcase_add_test (tcase, test_run_keeps_cache);
  tcase_add_test (tcase, test_errors_are_not_kept);
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
