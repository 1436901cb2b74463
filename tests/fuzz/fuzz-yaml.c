#include "fuzz/fuzz-input.h"

#include <math.h>

#include "base/yaml.h"

/* YAML; every value is asked for as everything. */

static void
check_node (const PodYaml *yaml, const PodYamlNode *node)
{
  GError *errors[4] = { NULL };
  double number;
  uint64_t whole;
  bool flag;

  fuzz_judge (pod_yaml_double (yaml, node, &number, &errors[0]), &errors[0]);
  g_assert (errors[0] != NULL || isfinite (number));
  fuzz_judge (pod_yaml_uint (yaml, node, &whole, &errors[1]), &errors[1]);
  fuzz_judge (pod_yaml_bool (yaml, node, &flag, &errors[2]), &errors[2]);
  fuzz_judge (pod_yaml_text (yaml, node, &errors[3]) != NULL, &errors[3]);
  for (size_t i = 0; i < G_N_ELEMENTS (errors); i++)
    g_clear_error (&errors[i]);
  for (unsigned i = 0; i < pod_yaml_length (node); i++)
    check_node (yaml, pod_yaml_item (node, i));
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GError) error = NULL;

  fuzz_begin ();

  g_autoptr (PodYaml) yaml = pod_yaml_parse ("input", (const char *) data, size, &error);

  fuzz_judge_file (yaml != NULL, &error, "input:");
  if (yaml != NULL && yaml->root != NULL)
    check_node (yaml, yaml->root);
  return 0;
}
