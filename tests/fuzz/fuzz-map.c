#include "fuzz/fuzz-input.h"

#include <string.h>

#include "parallel/mesh.h"

/* --map and --order: a layout, a line end, and the map. The first byte picks the machine. What is
 * taken must put each rank on a device of its own. */

static const char *const machines[]
    = { "tpu-v5p:4x4x4", "tpu-v5p:4x4x4*2", "tpu-v2:4x4", "tpu-v5e:8x4", "tpu-v4:4x4x8t", "h100:8x4", "gb200:72" };

static const PodTopology *
machine (unsigned index)
{
  static PodTopology *topologies[G_N_ELEMENTS (machines)]; /* loaded once, kept to the end */

  if (topologies[index] == NULL)
    topologies[index] = pod_topology_load (machines[index], NULL);
  g_assert (topologies[index] != NULL);
  return topologies[index];
}

static void
check_mesh (const PodMesh *mesh)
{
  g_autofree bool *is_taken = g_new0 (bool, mesh->topology->n_devices);

  for (uint32_t rank = 0; rank < mesh->n_ranks; rank++)
    {
      uint32_t device = mesh->device_of_rank[rank];

      g_assert (device < mesh->topology->n_devices);
      g_assert (!is_taken[device]);
      is_taken[device] = true;
    }
  g_assert (mesh->text != NULL);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GError) error = NULL;
  PodLayout layout;
  const PodTraffic traffic = { .axis_bytes = { 1e9, 2e9, 3e9, 4e9, 5e9 }, .compute_s = 1 };

  fuzz_begin ();
  if (size == 0)
    return 0;

  g_autofree char *text = fuzz_text (data + 1, size - 1);
  const PodTopology *topology = machine (data[0] % G_N_ELEMENTS (machines));
  char *map = strchr (text, '\n');

  if (map != NULL)
    *map++ = '\0';
  if (!pod_layout_parse (text, topology->n_devices, &layout, NULL)
      || pod_layout_n_ranks (&layout) > topology->n_devices)
    return 0;

  bool is_torus = topology->fabric == POD_FABRIC_TORUS;
  g_autoptr (PodMesh) mesh = pod_mesh_new (topology, &layout, is_torus ? map : NULL, is_torus ? NULL : map, &traffic, &error);

  fuzz_judge (mesh != NULL, &error);
  if (mesh != NULL)
    check_mesh (mesh);
  return 0;
}
