#include "fuzz/fuzz-input.h"

#include <string.h>

#include "fuzz/ask-machine.h"

/* A machine file. The machine is asked, written as XML and read back. */

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_auto (FuzzFile) file = { 0 };
  g_autoptr (GError) error = NULL;

  fuzz_begin ();
  fuzz_file_init (&file, data, size);

  g_autoptr (PodTopology) topology = pod_topology_load (file.path, &error);

  fuzz_judge_file (topology != NULL, &error, file.path);
  if (topology == NULL)
    return 0;
  fuzz_ask_machine (topology);

  g_autofree char *text = pod_topology_to_xml (topology);
  g_auto (FuzzFile) written = { 0 };

  fuzz_file_init (&written, (const uint8_t *) text, strlen (text));

  g_autoptr (PodTopology) again = pod_topology_load (written.path, &error);

  g_assert_no_error (error);

  g_autofree char *second = pod_topology_to_xml (again);

  g_assert_cmpstr (text, ==, second);
  return 0;
}
