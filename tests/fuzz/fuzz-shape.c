#include "fuzz/fuzz-input.h"

#include <string.h>

#include "fuzz/ask-machine.h"

/* What stands behind the colon of CHIP:SHAPE; the first byte picks the chip. */

static const char *const chips[] = { "tpu-v5p", "h100", "tpu-v2", "tpu-v5e", "gb200", "mi250x", "tpu-v7x" };

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GError) error = NULL;

  fuzz_begin ();
  if (size == 0)
    return 0;

  g_autofree char *shape = fuzz_text (data + 1, size - 1);
  g_autofree char *text = g_strconcat (chips[data[0] % G_N_ELEMENTS (chips)], ":", shape, NULL);

  /* Such a text may be the name of a file */
  if (strchr (shape, '/') != NULL || strchr (shape, ':') != NULL)
    return 0;

  g_autoptr (PodTopology) topology = pod_topology_load (text, &error);

  fuzz_judge (topology != NULL, &error);
  if (topology == NULL)
    return 0;
  fuzz_ask_machine (topology);

  g_autofree char *xml = pod_topology_to_xml (topology);

  g_assert (xml != NULL);
  return 0;
}
