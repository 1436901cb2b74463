#include "fuzz/fuzz-input.h"

#include <string.h>

#include "import/simgrid-xml.h"

/* SimGrid platform XML; what is read is written as our XML and read again. */

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_auto (FuzzFile) file = { 0 };
  g_auto (FuzzFile) converted = { .fd = -1 };
  g_autoptr (GError) error = NULL;

  fuzz_begin ();
  fuzz_file_init (&file, data, size);

  g_autoptr (PodTopology) topology = pod_simgrid_xml_read (file.path, &error);

  fuzz_judge_file (topology != NULL, &error, file.path);
  if (topology == NULL || topology->n_links > 10000)
    return 0;

  g_autofree char *xml = pod_topology_to_xml (topology);
  fuzz_file_init (&converted, (const uint8_t *) xml, strlen (xml));
  g_autoptr (PodTopology) again = pod_topology_load (converted.path, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (again->n_links, ==, topology->n_links);
  return 0;
}
