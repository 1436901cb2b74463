#include "exec/timeline.h"

#include "base/error.h"

const char *
pod_category_name (PodCategory category)
{
  static const char *const names[POD_N_CATEGORIES] = {
    [POD_CATEGORY_FORWARD] = "forward",     [POD_CATEGORY_BACKWARD] = "backward",
    [POD_CATEGORY_RECOMPUTE] = "recompute", [POD_CATEGORY_OPTIMIZER] = "optimizer",
    [POD_CATEGORY_COMM] = "comm",           [POD_CATEGORY_P2P] = "p2p",
  };

  return names[category];
}

static void
clear_rank (gpointer data)
{
  PodTimelineRank *rank = data;

  g_free (rank->name);
}

PodTimeline *
pod_timeline_new (unsigned n_streams, const char *const *stream_names)
{
  g_return_val_if_fail (n_streams == 0 || stream_names != NULL, NULL);

  PodTimeline *timeline = g_new0 (PodTimeline, 1);

  timeline->strings = g_string_chunk_new (4096);
  timeline->ops = g_array_new (FALSE, FALSE, sizeof (PodTimelineOp));
  timeline->spans = g_array_new (FALSE, FALSE, sizeof (PodSpan));
  timeline->flows = g_array_new (FALSE, FALSE, sizeof (PodFlow));
  timeline->counters = g_array_new (FALSE, FALSE, sizeof (PodCounterSample));
  timeline->ranks = g_array_new (FALSE, FALSE, sizeof (PodTimelineRank));
  g_array_set_clear_func (timeline->ranks, clear_rank);
  timeline->series_names = g_ptr_array_new_with_free_func (g_free);
  timeline->n_streams = n_streams;
  timeline->stream_names = stream_names;
  return timeline;
}

void
pod_timeline_free (PodTimeline *timeline)
{
  if (timeline == NULL)
    return;
  g_string_chunk_free (timeline->strings);
  g_array_unref (timeline->ops);
  g_array_unref (timeline->spans);
  g_array_unref (timeline->flows);
  g_array_unref (timeline->counters);
  g_array_unref (timeline->ranks);
  g_ptr_array_unref (timeline->series_names);
  g_free (timeline);
}

static bool
check_ops (const PodTimeline *timeline, GError **error)
{
  for (guint i = 0; i < timeline->ops->len; i++)
    {
      const PodTimelineOp *op = &g_array_index (timeline->ops, PodTimelineOp, i);

      if (op->name == NULL)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "timeline: op %u has no name", i);
          return false;
        }
      if ((unsigned) op->category >= POD_N_CATEGORIES || op->stream >= timeline->n_streams)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "timeline: op %u (%s): category %u of %d, stream %u of %u", i, op->name,
                       (unsigned) op->category, POD_N_CATEGORIES, op->stream, timeline->n_streams);
          return false;
        }
    }
  return true;
}

static bool
check_span_indices (const PodTimeline *timeline, guint i, const PodSpan *span, GError **error)
{
  uint64_t n_lanes = (uint64_t) timeline->ranks->len * timeline->n_streams;

  if (span->op >= timeline->ops->len || span->lane >= n_lanes)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "timeline: span %u: op %u of %u, lane %u of %" G_GUINT64_FORMAT, i, span->op,
                   timeline->ops->len, span->lane, n_lanes);
      return false;
    }

  const PodTimelineOp *op = &g_array_index (timeline->ops, PodTimelineOp, span->op);

  if (op->stream != span->lane % timeline->n_streams)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "timeline: span %u (%s): lane %u is stream %u, its op's stream is %u", i,
                   op->name, span->lane, span->lane % timeline->n_streams, op->stream);
      return false;
    }
  if (span->released_by != POD_NO_SPAN
      && (span->released_by >= timeline->spans->len || span->released_by == i))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "timeline: span %u (%s): released by span %u of %u", i, op->name,
                   span->released_by, timeline->spans->len);
      return false;
    }
  return true;
}

static bool
check_spans (const PodTimeline *timeline, GError **error)
{
  size_t n_lanes = (size_t) timeline->ranks->len * timeline->n_streams;
  g_autofree int64_t *lane_end_ps = g_new (int64_t, n_lanes);

  for (size_t lane = 0; lane < n_lanes; lane++)
    lane_end_ps[lane] = INT64_MIN;
  for (guint i = 0; i < timeline->spans->len; i++)
    {
      const PodSpan *span = &g_array_index (timeline->spans, PodSpan, i);

      if (!check_span_indices (timeline, i, span, error))
        return false;

      const char *name = g_array_index (timeline->ops, PodTimelineOp, span->op).name;

      if (span->arrive_ps > span->start_ps || span->start_ps > span->end_ps)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "timeline: span %u (%s): arrives at %" G_GINT64_FORMAT
                       " ps, starts at %" G_GINT64_FORMAT ", ends at %" G_GINT64_FORMAT,
                       i, name, span->arrive_ps, span->start_ps, span->end_ps);
          return false;
        }
      if (span->start_ps < lane_end_ps[span->lane])
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "timeline: span %u (%s): starts at %" G_GINT64_FORMAT
                       " ps, its lane %u is busy until %" G_GINT64_FORMAT,
                       i, name, span->start_ps, span->lane, lane_end_ps[span->lane]);
          return false;
        }
      lane_end_ps[span->lane] = span->end_ps;
    }
  return true;
}

/* A receive may be posted before the send, and both may end together, but nothing is received
 * before it is sent. */
static bool
check_flows (const PodTimeline *timeline, GError **error)
{
  for (guint i = 0; i < timeline->flows->len; i++)
    {
      const PodFlow *flow = &g_array_index (timeline->flows, PodFlow, i);

      if (flow->from_span >= timeline->spans->len || flow->to_span >= timeline->spans->len)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "timeline: flow %u: from span %u to span %u of %u", i, flow->from_span,
                       flow->to_span, timeline->spans->len);
          return false;
        }

      int64_t sent_ps = g_array_index (timeline->spans, PodSpan, flow->from_span).start_ps;
      int64_t received_ps = g_array_index (timeline->spans, PodSpan, flow->to_span).end_ps;

      if (received_ps < sent_ps)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "timeline: flow %u: span %u receives until %" G_GINT64_FORMAT
                       " ps what span %u sends from %" G_GINT64_FORMAT,
                       i, flow->to_span, received_ps, flow->from_span, sent_ps);
          return false;
        }
    }
  return true;
}

static bool
check_counters (const PodTimeline *timeline, GError **error)
{
  size_t n_series = (size_t) timeline->ranks->len * timeline->series_names->len;
  g_autofree int64_t *last_ps = g_new (int64_t, n_series);

  for (size_t i = 0; i < n_series; i++)
    last_ps[i] = INT64_MIN;
  for (guint i = 0; i < timeline->counters->len; i++)
    {
      const PodCounterSample *sample = &g_array_index (timeline->counters, PodCounterSample, i);

      if (sample->rank_index >= timeline->ranks->len
          || sample->series >= timeline->series_names->len)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "timeline: counter sample %u: rank %u of %u, series %u of %u", i,
                       sample->rank_index, timeline->ranks->len, sample->series,
                       timeline->series_names->len);
          return false;
        }

      size_t series = (size_t) sample->rank_index * timeline->series_names->len + sample->series;

      if (sample->at_ps < last_ps[series])
        {
          const char *name = g_ptr_array_index (timeline->series_names, sample->series);

          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "timeline: counter sample %u (%s) at %" G_GINT64_FORMAT
                       " ps follows one at %" G_GINT64_FORMAT,
                       i, name, sample->at_ps, last_ps[series]);
          return false;
        }
      last_ps[series] = sample->at_ps;
    }
  return true;
}

bool
pod_timeline_check (const PodTimeline *timeline, GError **error)
{
  g_return_val_if_fail (timeline != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  return check_ops (timeline, error) && check_spans (timeline, error)
         && check_flows (timeline, error) && check_counters (timeline, error);
}
