#pragma once

#include "parallel/schedule.h"

/* A schedule without slots. */
PodSchedule *pod_schedule_alloc (PodScheduleKind kind, uint32_t n_ranks, uint32_t n_chunks, uint32_t n_microbatches);
