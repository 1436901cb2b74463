#include "fuzz/fuzz-input.h"

#include <string.h>

#include "topology/chip.h"

/* A chip file. Each number is printed and set to what was printed. */

static void
check_fields (PodChip *chip)
{
  PodChipFieldInfo field;

  for (size_t i = 0; pod_chip_field (i, &field); i++)
    {
      g_autofree char *before = pod_chip_get (chip, field.name);

      if (before == NULL)
        continue;
      /* Its default can be one that may not be given, such as a rate of 0 for "there is none" */
      if (!pod_chip_set (chip, field.name, before, NULL))
        continue;

      g_autofree char *after = pod_chip_get (chip, field.name);

      g_assert_cmpstr (before, ==, after);
    }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GPtrArray) assumptions = g_ptr_array_new_with_free_func (g_free);
  g_auto (FuzzFile) file = { 0 };
  g_autoptr (GError) error = NULL;

  fuzz_begin ();
  fuzz_file_init (&file, data, size);

  g_autoptr (PodChip) chip = pod_chip_load (file.path, assumptions, &error);

  fuzz_judge_file (chip != NULL, &error, file.path);
  if (chip != NULL)
    check_fields (chip);
  return 0;
}
