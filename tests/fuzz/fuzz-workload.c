#include "fuzz/fuzz-input.h"

#include "scenario/scenario.h"

/* A workload file; the first byte says which options are said elsewhere. */

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_auto (FuzzFile) file = { 0 };
  g_autoptr (GError) error = NULL;

  fuzz_begin ();
  if (size == 0)
    return 0;
  fuzz_file_init (&file, data + 1, size - 1);
  g_assert (pod_scenario_set (scenario, "workload", file.path, NULL));
  if (data[0] % 2 == 1)
    g_assert (pod_scenario_set (scenario, "seq-len", "4096", NULL));
  if (data[0] / 2 % 2 == 1)
    g_assert (pod_scenario_set (scenario, "strict", NULL, NULL));
  fuzz_judge_file (pod_scenario_load_workload (scenario, &error), &error, file.path);
  return 0;
}
