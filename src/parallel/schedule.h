#pragma once

#include <stdint.h>

#include <glib.h>

/* Pipeline schedules: in which order a stage runs the forward and backward of its microbatches. */

typedef enum
{
  POD_SLOT_FORWARD,
  POD_SLOT_BACKWARD,
} PodSlotKind;

typedef struct
{
  PodSlotKind kind;
  uint32_t microbatch;
} PodSlot;

/* 1F1B (PipeDream-flush, arXiv 2104.04473): stage i of p runs min(m, p - 1 - i) forwards, then pairs, then the backwards left.
 * One stage is plain gradient accumulation. Returns: (transfer full) (element-type PodSlot). O(microbatches). */
GArray *pod_schedule_1f1b (uint32_t stage, uint32_t n_stages, uint32_t n_microbatches);
