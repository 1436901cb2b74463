#include "fuzz/fuzz-input.h"

#include <string.h>

#include "parallel/mesh-shardings.h"

/* --mesh and --shard: a mesh, and the tensors behind a line end. The first byte picks the model.
 * What is taken must be a layout of as many devices, which --layout reads back, and whose products
 * have their collectives. */

static const char *const models[]
    = { "llama3-8b", "mixtral-8x7b", "mlp-block", "deepseek-v2", "gemma3-27b" };

static const PodModel *
model_of (unsigned index)
{
  static PodModel *loaded[G_N_ELEMENTS (models)]; /* once, kept to the end */

  if (loaded[index] == NULL)
    loaded[index] = pod_model_load (models[index], NULL);
  g_assert (loaded[index] != NULL);
  return loaded[index];
}

static void
check_shardings (const PodMeshShardings *shardings, const PodModel *model)
{
  g_autofree char *text = pod_mesh_shardings_layout (shardings);
  g_autofree char *said = pod_mesh_shardings_describe (shardings);
  g_autofree char *products = pod_mesh_shardings_explain (shardings, model);
  PodLayout layout;

  g_assert (pod_layout_n_ranks (&shardings->layout) == pod_array_mesh_n_devices (&shardings->mesh));
  g_assert (pod_layout_parse (text, 1, &layout, NULL));
  for (unsigned a = 0; a < POD_N_AXES; a++)
    g_assert (layout.degree[a] == shardings->layout.degree[a]);
  g_assert (layout.ep == shardings->layout.ep && layout.etp == shardings->layout.etp);
  g_assert (*said != '\0' && *products != '\0');
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GPtrArray) mesh = g_ptr_array_new ();
  g_autoptr (GPtrArray) shards = g_ptr_array_new ();
  g_autoptr (GError) error = NULL;
  PodMeshRequest request = { .mesh = mesh, .shards = shards, .is_sequence_parallel = -1 };
  PodMeshShardings shardings;

  fuzz_begin ();
  if (size == 0)
    return 0;

  g_autofree char *text = fuzz_text (data + 1, size - 1);
  char *tensors = strchr (text, '\n');

  if (tensors != NULL)
    *tensors++ = '\0';
  request.model = model_of (data[0] % G_N_ELEMENTS (models));
  request.zero_stage = data[0] / G_N_ELEMENTS (models) % 4;
  g_ptr_array_add (mesh, text);
  if (tensors != NULL)
    g_ptr_array_add (shards, tensors);

  bool is_good = pod_mesh_shardings_parse (&request, &shardings, &error);

  fuzz_judge (is_good, &error);
  if (is_good)
    check_shardings (&shardings, request.model);
  return 0;
}
