#include "fuzz/fuzz-input.h"

#include <string.h>

#include "parallel/layout.h"

/* --layout, checked against a model, a batch and a machine. The first bytes say how many devices,
 * sequences and layers a stage there are. */

static const PodModel *
small_model (void)
{
  static PodModel *model; /* loaded once, kept to the end */

  if (model == NULL)
    model = pod_model_load ("llama3-8b", NULL);
  g_assert (model != NULL);
  return model;
}

static void
check_layout (const PodLayout *layout, const uint8_t head[4], uint32_t n_devices)
{
  const uint32_t given[] = { 8, 8, 8, 8 };
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autofree uint32_t *part_layers = NULL;
  g_autoptr (GError) error = NULL;
  PodBatch batch = { .seq_len = 4096,
                     .global_batch = (uint64_t) 1 << (head[1] % 64),
                     .micro_batch = (uint64_t) 1 << (head[2] % 64),
                     .is_embed_head_as_layers = head[3] % 4 == 1,
                     .is_balanced = head[3] % 4 == 3 };

  if (head[3] % 4 == 2)
    {
      batch.stage_layers = given;
      batch.n_stage_layers = G_N_ELEMENTS (given);
    }

  bool is_good = pod_layout_check (layout, small_model (), &batch, n_devices, head[3] % 8 < 4, notes, &error);
  const uint64_t n_parts = (uint64_t) layout->degree[POD_AXIS_PP] * layout->vpp;
  uint64_t n_layers = 0;

  if (is_good && n_parts <= 4096)
    {
      part_layers = pod_layout_place (layout, small_model (), &batch, (uint32_t) n_parts, &error);
      is_good = part_layers != NULL;
    }
  fuzz_judge (is_good, &error);
  if (part_layers == NULL)
    return;
  for (uint32_t i = 0; i < n_parts; i++)
    n_layers += part_layers[i];
  g_assert (n_layers == small_model ()->n_layers);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  enum
  {
    N_HEAD_BYTES = 4,
  };
  g_autoptr (GError) error = NULL;
  PodLayout layout;

  fuzz_begin ();
  if (size < N_HEAD_BYTES)
    return 0;

  g_autofree char *text = fuzz_text (data + N_HEAD_BYTES, size - N_HEAD_BYTES);
  uint32_t n_devices = (uint32_t) 1 << (data[0] % 25);
  bool is_good = pod_layout_parse (text, n_devices, &layout, &error);

  fuzz_judge (is_good, &error);
  if (!is_good)
    return 0;
  for (unsigned a = 0; a < POD_N_AXES; a++)
    g_assert (layout.degree[a] >= 1);

  g_autofree char *shown = pod_layout_to_text (&layout);

  g_assert (*shown != '\0');
  check_layout (&layout, data, n_devices);
  return 0;
}
