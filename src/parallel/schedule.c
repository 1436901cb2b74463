#include "parallel/schedule.h"

static void
append (GArray *slots, PodSlotKind kind, uint32_t microbatch)
{
  PodSlot slot = { .kind = kind, .microbatch = microbatch };

  g_array_append_val (slots, slot);
}

GArray *
pod_schedule_1f1b (uint32_t stage, uint32_t n_stages, uint32_t n_microbatches)
{
  GArray *slots = g_array_sized_new (FALSE, FALSE, sizeof (PodSlot), 2 * n_microbatches);
  const uint32_t warm_up = MIN (n_microbatches, n_stages - 1 - stage);

  for (uint32_t i = 0; i < warm_up; i++)
    append (slots, POD_SLOT_FORWARD, i);
  for (uint32_t i = warm_up; i < n_microbatches; i++)
    {
      append (slots, POD_SLOT_FORWARD, i);
      append (slots, POD_SLOT_BACKWARD, i - warm_up);
    }
  for (uint32_t i = n_microbatches - warm_up; i < n_microbatches; i++)
    append (slots, POD_SLOT_BACKWARD, i);
  return slots;
}
