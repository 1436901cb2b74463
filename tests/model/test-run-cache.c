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

/* ---- every option, one by one ---- */

/* Another value of each option than the bases have; what a base refuses is refused with the same words. */
static const char *const flips[][2] = {
  { "framework", "megatron" },     { "topology", "h100:4x4" },       { "model", "mistral-7b" },         { "workload", "none" },
  { "layout", "tp=8 dp=2" },       { "mesh", "X=4,Y=4" },            { "shard", "W_in=[D, F]" },        { "map", "tp=x:4" },
  { "order", "dp,tp,pp,cp,ep,fsdp" }, { "seq-len", "1024" },         { "global-batch", "32" },          { "micro-batch", "2" },
  { "schedule", "gpipe" },         { "recompute", "full" },          { "cp-kind", "ulysses" },          { "attention-kind", "unfused" },
  { "zero", "1" },                 { "optimizer", "adafactor" },     { "dtype", "fp8" },                { "scaling", "delayed" },
  { "cross-entropy", "eager" },    { "grad-bucket", "100MB" },       { "stage-outputs", "kept" },       { "grad-accumulation", "apart" },
  { "lora", "16" },                { "offload-optimizer", NULL },    { "no-clip-grad", NULL },          { "param-dtype", "fp32" },
  { "gather-dtype", "fp32" },      { "master-dtype", "none" },       { "grad-dtype", "fp32" },          { "reduce-dtype", "fp32" },
  { "no-sequence-parallel", NULL }, { "no-overlap-fsdp", NULL },     { "no-overlap-dp", NULL },         { "overlap-tp", NULL },
  { "no-overlap-p2p", NULL },      { "scatter-p2p", NULL },          { "overlap-ep", NULL },           { "prefetch", "2" },               { "fsdp-sync", "step" },
  { "stage-layers", "1,3" },       { "embed-head-as-layers", NULL }, { "capacity-factor", "1.25" },     { "expert-imbalance", "1.5" },
  { "dispatch-dtype", "fp8" },     { "route-nodes", "1" },           { "memory-context", "1GB" },       { "memory-comm-buffers", "1GB" },
  { "memory-fragmentation", "0.1" }, { "allow-idle", NULL },         { "document-len", "512" },         { "no-causal", NULL },
  { "dropout", NULL },             { "layers", "2" },                { "hidden", "2048" },              { "heads", "16" },
  { "kv-heads", "4" },             { "head-dim", "64" },             { "ffn", "4096" },                 { "vocab", "64000" },
  { "mtp", "1" },                  { "fidelity", "ideal" },          { "network", "analytic" },         { "packet", "mtu=4096" },
  { "fold", "off" },               { "algorithm", "ring" },          { "library", "rccl" },             { "flops-convention", "palm" },
  { "tokens", "1e12" },            { "price", "3" },                 { "availability", "0.9" },         { "set", "chip.hbm_bandwidth=1.23TB/s" },
  { "strict", NULL },              { "expert-ops", "eager" },
};

static const char *const bases[][2] = { { "llama3-8b", "tp=4 pp=2 dp=2" }, { "llama3-8b", "tp=2 cp=2 fsdp=4" }, { "mixtral-8x7b", "dp=8 tp=2 ep=8" } };

/* The result of a base with one option changed (@flip NULL: none), or why there is none. Returns: (transfer full) */
static char *
flipped_text (unsigned base, const char *const *flip, PodRunCache *cache)
{
  const char *const options[][2] = { { "topology", "h100:8x2" }, { "model", bases[base][0] }, { "layout", bases[base][1] }, { "layers", "4" },
                                     { "seq-len", "2048" },      { "global-batch", "16" } };
  const PodRunRequest request = { .is_recording_none = true, .needs_no_advice = true, .cache = cache };
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (PodRun) run = NULL;

  for (unsigned i = 0; i < G_N_ELEMENTS (options); i++)
    if (flip == NULL || strcmp (flip[0], options[i][0]) != 0)
      ck_assert (pod_scenario_set (scenario, options[i][0], options[i][1], NULL));
  if (flip != NULL)
    ck_assert_msg (pod_scenario_set (scenario, flip[0], flip[1], &error), "%s: %s", flip[0], error != NULL ? error->message : "");
  run = pod_scenario_run (scenario, &request, &error);
  return run != NULL ? result_text (run) : g_strdup (error->message);
}

static bool
has_flip (const char *option)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (flips); i++)
    if (strcmp (flips[i][0] + (g_str_has_prefix (flips[i][0], "no-") ? 3 : 0), option) == 0)
      return true;
  return false;
}

/* A key of the cache that lacks an option gives one run what another left. */
START_TEST (test_every_option_is_in_its_key)
{
  g_autoptr (PodRunCache) cache = pod_run_cache_new ();
  g_autofree char *plain = flipped_text ((unsigned) _i, NULL, NULL);

  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    ck_assert_msg (has_flip (option->name), "no other value of --%s is tried", option->name);
  for (unsigned i = 0; i < G_N_ELEMENTS (flips); i++)
    {
      g_autofree char *fresh = flipped_text ((unsigned) _i, flips[i], NULL);
      g_autofree char *cached = flipped_text ((unsigned) _i, flips[i], cache);
      g_autofree char *back = flipped_text ((unsigned) _i, NULL, cache);

      ck_assert_msg (strcmp (fresh, cached) == 0, "--%s: the cache changes the result", flips[i][0]);
      ck_assert_msg (strcmp (plain, back) == 0, "--%s: the cache keeps it for the run after", flips[i][0]);
    }
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
  tcase_add_loop_test (tcase, test_every_option_is_in_its_key, 0, (int) G_N_ELEMENTS (bases));
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
