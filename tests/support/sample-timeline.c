#include "support/sample-timeline.h"

static const char *const stream_names[SAMPLE_N_STREAMS] = {
  [SAMPLE_COMPUTE] = "compute",
  [SAMPLE_TP] = "tp",
  [SAMPLE_PP] = "pp",
};

PodTimeline *
sample_timeline_new (unsigned n_ranks)
{
  PodTimeline *timeline = pod_timeline_new (SAMPLE_N_STREAMS, stream_names);

  for (unsigned i = 0; i < n_ranks; i++)
    {
      PodTimelineRank rank = {
        .rank = 2 * i,
        .n_like_it = 2,
        .name = g_strdup_printf ("rank %u (2 ranks alike)", 2 * i),
      };

      g_array_append_val (timeline->ranks, rank);
    }
  return timeline;
}

uint32_t
sample_add_op (PodTimeline *timeline, const char *name, PodCategory category, uint16_t stream)
{
  PodTimelineOp op = {
    .name = g_string_chunk_insert (timeline->strings, name),
    .axis = stream == SAMPLE_COMPUTE ? NULL : stream_names[stream],
    .category = category,
    .stream = stream,
    .layer = -1,
  };

  g_array_append_val (timeline->ops, op);
  return timeline->ops->len - 1;
}

uint32_t
sample_add_span (PodTimeline *timeline, uint32_t op, uint32_t rank_index, int64_t arrive_ps,
                 int64_t start_ps, int64_t end_ps)
{
  PodSpan span = {
    .arrive_ps = arrive_ps,
    .start_ps = start_ps,
    .end_ps = end_ps,
    .op = op,
    .lane
    = rank_index * timeline->n_streams + g_array_index (timeline->ops, PodTimelineOp, op).stream,
    .released_by = POD_NO_SPAN,
    .microbatch = -1,
  };

  g_array_append_val (timeline->spans, span);
  timeline->end_ps = MAX (timeline->end_ps, end_ps);
  return timeline->spans->len - 1;
}

uint32_t
sample_add_flow (PodTimeline *timeline, uint32_t from_span, uint32_t to_span)
{
  PodFlow flow = { .from_span = from_span, .to_span = to_span };

  g_array_append_val (timeline->flows, flow);
  return timeline->flows->len - 1;
}

uint32_t
sample_add_series (PodTimeline *timeline, const char *name)
{
  g_ptr_array_add (timeline->series_names, g_strdup (name));
  return timeline->series_names->len - 1;
}

void
sample_add_value (PodTimeline *timeline, uint32_t series, uint32_t rank_index, int64_t at_ps,
                  double value)
{
  PodCounterSample sample
      = { .at_ps = at_ps, .rank_index = rank_index, .series = series, .value = value };

  g_array_append_val (timeline->counters, sample);
}

PodTimeline *
sample_pipeline_new (unsigned n_ranks, unsigned n_microbatches)
{
  const int64_t step_ps = 10 * INT64_C (1000003);
  PodTimeline *timeline = sample_timeline_new (n_ranks);
  uint32_t receive = sample_add_op (timeline, "receive", POD_CATEGORY_P2P, SAMPLE_PP);
  uint32_t matmul = sample_add_op (timeline, "L0 matmul", POD_CATEGORY_FORWARD, SAMPLE_COMPUTE);
  uint32_t reduce = sample_add_op (timeline, "L0 reduce_scatter", POD_CATEGORY_COMM, SAMPLE_TP);
  uint32_t send = sample_add_op (timeline, "send", POD_CATEGORY_P2P, SAMPLE_PP);
  uint32_t memory = sample_add_series (timeline, "memory bytes");
  g_autofree uint32_t *sends = g_new0 (uint32_t, n_microbatches); /* of the rank before */
  PodTimelineOp *op = &g_array_index (timeline->ops, PodTimelineOp, matmul);

  op->layer = 0;
  op->flops = 8.8e12;
  op->bytes = 1234567;
  op->detail = "matmul [8192, 8192] x [8192, 2560] bf16";
  for (unsigned rank = 0; rank < n_ranks; rank++)
    for (unsigned i = 0; i < n_microbatches; i++)
      {
        /* It computes in this step; messages travel in the last tenth of the step before */
        int64_t at_ps = (int64_t) (rank + 2 * i + 1) * step_ps;
        int64_t reduce_ps = at_ps + step_ps / 2;
        uint32_t first = timeline->spans->len;

        if (rank > 0)
          {
            sample_add_span (timeline, receive, rank, at_ps - step_ps / 5, at_ps - step_ps / 10,
                             at_ps);
            sample_add_flow (timeline, sends[i], first);
          }
        sample_add_span (timeline, matmul, rank, at_ps, at_ps, reduce_ps);
        sample_add_span (timeline, reduce, rank, reduce_ps, reduce_ps + (rank % 2) * 123456,
                         at_ps + step_ps * 4 / 5);
        if (rank + 1 < n_ranks)
          sends[i] = sample_add_span (timeline, send, rank, at_ps + step_ps * 4 / 5,
                                      at_ps + step_ps * 9 / 10, at_ps + step_ps);
        for (uint32_t span = first; span < timeline->spans->len; span++)
          g_array_index (timeline->spans, PodSpan, span).microbatch = (int32_t) i;
        sample_add_value (timeline, memory, rank, at_ps, 1e9 + i);
      }
  return timeline;
}
