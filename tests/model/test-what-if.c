#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "scenario/scenario.h"

/* pod_run_what_if: every change is the step that --set makes, and gains no more than it can. */

static PodScenario *
make_scenario (const char *const *options)
{
  PodScenario *scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;

  for (; *options != NULL; options += 2)
    ck_assert_msg (pod_scenario_set (scenario, options[0], options[1], &error), "%s",
                   error != NULL ? error->message : "");
  return scenario;
}

static PodRun *
run_recorded (const PodScenario *scenario, bool is_recording_none)
{
  const PodRunRequest request = { .is_recording_none = is_recording_none };
  g_autoptr (GError) error = NULL;
  PodRun *made = pod_scenario_run (scenario, &request, &error);

  ck_assert_msg (made != NULL, "%s", error != NULL ? error->message : "");
  return made;
}

static PodRun *
run (const PodScenario *scenario)
{
  return run_recorded (scenario, true);
}

static JsonArray *
what_if (const PodScenario *scenario, PodRun *of, bool is_forced)
{
  const PodRunRequest request = { .is_recording_none = true };

  pod_run_what_if (scenario, &request, of, is_forced);
  return pod_result_get_array (of->result, "what_if");
}

/* The change of that name; NULL when there is none. */
static JsonObject *
find (JsonArray *changes, const char *name)
{
  for (guint i = 0; i < json_array_get_length (changes); i++)
    {
      JsonObject *change = json_array_get_object_element (changes, i);

      if (strcmp (json_object_get_string_member (change, "change"), name) == 0)
        return change;
    }
  return NULL;
}

static const char *const cases[][18] = {
  { "topology", "h100:8x2", "model", "llama3-8b", "layers", "4", "global-batch", "16", "layout",
    "fsdp=2 tp=8", "seq-len", "2048", NULL },
  { "topology", "tpu-v5p:4x4x4", "model", "llama3-8b", "layers", "4", "global-batch", "64",
    "layout", "fsdp=16 tp=4", "seq-len", "2048", NULL },
  { "topology", "tpu-v5p:2x2x1*2", "model", "llama3-8b", "layers", "4", "global-batch", "16",
    "layout", "dp=2 fsdp=4", "seq-len", "2048", "fidelity", "book", NULL },
  { "topology", "mi300x:8", "model", "llama3-8b", "layers", "4", "global-batch", "8", "layout",
    "tp=4 pp=2", "seq-len", "2048", "fidelity", "ideal", NULL },
};

/* What --set gives is what the change says, to the picosecond. */
START_TEST (changes_are_runs)
{
  g_autoptr (PodScenario) scenario = make_scenario (cases[_i]);
  g_autoptr (PodRun) base = run (scenario);
  JsonArray *changes = what_if (scenario, base, false);

  ck_assert_uint_ge (json_array_get_length (changes), 4);
  ck_assert (!json_object_has_member (base->result, "what_if_note"));
  for (guint i = 0; i < json_array_get_length (changes); i++)
    {
      JsonObject *change = json_array_get_object_element (changes, i);
      JsonArray *set = json_object_get_array_member (change, "set");
      g_autoptr (PodScenario) same = pod_scenario_copy (scenario);
      g_autoptr (PodRun) again = NULL;
      double gain;

      for (guint s = 0; s < json_array_get_length (set); s++)
        ck_assert (pod_scenario_set (same, "set", json_array_get_string_element (set, s), NULL));
      again = run (same);
      ck_assert_double_eq (json_object_get_double_member (change, "time_s"),
                           (double) again->exec->time_ps / 1e12);
      gain = 1 - (double) again->exec->time_ps / (double) base->exec->time_ps;
      ck_assert_double_eq (json_object_get_double_member (change, "gain_ratio"), gain);
    }
}
END_TEST

/* One device, ideal: each kernel takes the longer of its FLOPs and its bytes, so that 10 % more of
 * one gains at most 1 - 1/1.1, and the two gains together do not exceed that either; what bounds
 * all gains all of it. */
START_TEST (gains_of_one_device_are_bounded)
{
  static const char *const options[]
      = { "topology", "h100:1",  "model", "llama3-8b", "layers", "2", "global-batch",
          "1",        "seq-len", "4096",  "fidelity",  "ideal",  NULL };
  const double most = 1 - 1 / 1.1;
  g_autoptr (PodScenario) scenario = make_scenario (options);
  g_autoptr (PodRun) base = run (scenario);
  JsonArray *changes = what_if (scenario, base, false);
  const double flops = json_object_get_double_member (find (changes, "+10 % FLOP/s"), "gain_ratio");
  const double hbm
      = json_object_get_double_member (find (changes, "+10 % HBM bandwidth"), "gain_ratio");

  ck_assert_double_gt (flops, 0);
  ck_assert_double_gt (hbm, 0);
  ck_assert_double_le (flops + hbm, most + 1e-9);
  ck_assert_double_gt (flops + hbm, 0.9 * most);
  /* It sends nothing: no links to better */
  ck_assert_ptr_null (find (changes, "+10 % NIC and tree bandwidth"));
  ck_assert_ptr_null (find (changes, "+10 % ICI bandwidth"));
}
END_TEST

/* All its runs together would take over 20 million events. */
START_TEST (long_runs_are_not_repeated)
{
  static const char *const options[]
      = { "topology",  "h100:8x2", "model", "llama3-8b", "global-batch", "4096", "layout",
          "tp=8 pp=2", "seq-len",  "512",   NULL };
  g_autoptr (PodScenario) scenario = make_scenario (options);
  g_autoptr (PodRun) base = run_recorded (scenario, false);
  JsonArray *changes = what_if (scenario, base, false);

  ck_assert_uint_gt (base->exec->n_events, 20000000 / 7);
  ck_assert_uint_eq (json_array_get_length (changes), 0);
  ck_assert_ptr_nonnull (
      strstr (json_object_get_string_member (base->result, "what_if_note"), "not computed"));
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("what-if");
  TCase *tcase = tcase_create ("what-if");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (tcase, 300);
  tcase_add_loop_test (tcase, changes_are_runs, 0, G_N_ELEMENTS (cases));
  tcase_add_test (tcase, gains_of_one_device_are_bounded);
  tcase_add_test (tcase, long_runs_are_not_repeated);
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
