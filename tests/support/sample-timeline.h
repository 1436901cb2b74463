#pragma once

#include "exec/timeline.h"

enum
{
  SAMPLE_COMPUTE,
  SAMPLE_TP,
  SAMPLE_PP,
  SAMPLE_N_STREAMS,
};

/* An empty timeline with those streams and @n_ranks ranks, of which each stands for two. */
PodTimeline *sample_timeline_new (unsigned n_ranks);

/* Each adds one thing and returns its index. */
uint32_t sample_add_op (PodTimeline *timeline, const char *name, PodCategory category,
                        uint16_t stream);
uint32_t sample_add_span (PodTimeline *timeline, uint32_t op, uint32_t rank_index,
                          int64_t arrive_ps, int64_t start_ps, int64_t end_ps);
uint32_t sample_add_flow (PodTimeline *timeline, uint32_t from_span, uint32_t to_span);
uint32_t sample_add_series (PodTimeline *timeline, const char *name);
void sample_add_value (PodTimeline *timeline, uint32_t series, uint32_t rank_index, int64_t at_ps,
                       double value);

/* A pipeline, rank after rank: per microbatch a receive, a matmul, a collective that every other
 * rank waits for, a send with an arrow to the next rank, and memory in use. Picoseconds are odd, so
 * that rounding has work to do. */
PodTimeline *sample_pipeline_new (unsigned n_ranks, unsigned n_microbatches);
