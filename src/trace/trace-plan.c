#include "trace/trace-private.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

/* A viewer holds a time in microseconds as a double; from 2^43 us (101.8 days) on its spacing
 * passes 1/1024 us and single nanoseconds get lost. */
#define TIME_LIMIT_NS ((INT64_C (1) << 43) * 1000)

static void
widen (int64_t at_ps, int64_t *min_ps, int64_t *max_ps)
{
  *min_ps = MIN (*min_ps, at_ps);
  *max_ps = MAX (*max_ps, at_ps);
}

bool
pod_trace_plan_init (PodTracePlan *plan, const PodTimeline *timeline, GError **error)
{
  size_t n_lanes = (size_t) timeline->ranks->len * timeline->n_streams;
  int64_t min_ps = 0;
  int64_t max_ps = 0;
  int64_t length_ps;

  *plan = (PodTracePlan){ .timeline = timeline };
  plan->is_lane_used = g_new0 (bool, n_lanes);
  for (guint i = 0; i < timeline->spans->len; i++)
    {
      const PodSpan *span = &g_array_index (timeline->spans, PodSpan, i);

      widen (span->arrive_ps, &min_ps, &max_ps);
      widen (span->end_ps, &min_ps, &max_ps);
      plan->is_lane_used[span->lane] = true;
    }
  for (guint i = 0; i < timeline->counters->len; i++)
    widen (g_array_index (timeline->counters, PodCounterSample, i).at_ps, &min_ps, &max_ps);

  plan->origin_ps = min_ps;
  if (__builtin_sub_overflow (max_ps, min_ps, &length_ps) || length_ps / 1000 >= TIME_LIMIT_NS - 1)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                   "trace: the timeline lasts from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
                   " ps; viewers tell nanoseconds apart only below 2^43 us (101.8 days)",
                   min_ps, max_ps);
      return false;
    }
  plan->last_ns = (uint64_t) pod_trace_ns (plan, max_ps);
  plan->n_ranks = timeline->ranks->len;
  plan->until_ns = INT64_MAX;
  return true;
}

void
pod_trace_plan_clear (PodTracePlan *plan)
{
  g_clear_pointer (&plan->is_lane_used, g_free);
}

int64_t
pod_trace_ns (const PodTracePlan *plan, int64_t at_ps)
{
  return (at_ps - plan->origin_ps + 500) / 1000;
}

PodTraceSlice
pod_trace_slice (const PodTracePlan *plan, guint index)
{
  const PodTimeline *timeline = plan->timeline;
  const PodSpan *span = &g_array_index (timeline->spans, PodSpan, index);
  int64_t start_ns = pod_trace_ns (plan, span->start_ps);

  return (PodTraceSlice){
    .index = index,
    .span = span,
    .op = &g_array_index (timeline->ops, PodTimelineOp, span->op),
    .rank_index = span->lane / timeline->n_streams,
    .stream = span->lane % timeline->n_streams,
    .wait_ns = start_ns,
    .start_ns = start_ns,
    .end_ns = pod_trace_ns (plan, span->end_ps),
  };
}

int64_t *
pod_trace_slices_begin (const PodTracePlan *plan)
{
  size_t n_lanes = (size_t) plan->timeline->ranks->len * plan->timeline->n_streams;

  return g_new0 (int64_t, n_lanes);
}

PodTraceSlice
pod_trace_slices_next (const PodTracePlan *plan, guint index, int64_t *lane_end_ns)
{
  PodTraceSlice slice = pod_trace_slice (plan, index);
  const PodSpan *span = slice.span;
  PodCategory category = slice.op->category;

  /* An op may be ready while its lane is still busy: it waits for its peers from the later of the
   * two */
  if (category == POD_CATEGORY_COMM || category == POD_CATEGORY_P2P)
    slice.wait_ns
        = MIN (slice.start_ns, MAX (pod_trace_ns (plan, span->arrive_ps), lane_end_ns[span->lane]));
  lane_end_ns[span->lane] = slice.end_ns;
  return slice;
}

bool
pod_trace_flow_ns (const PodTracePlan *plan, const PodFlow *flow, int64_t *out_from_ns,
                   int64_t *out_to_ns)
{
  PodTraceSlice from = pod_trace_slice (plan, flow->from_span);
  PodTraceSlice to = pod_trace_slice (plan, flow->to_span);

  /* The last nanosecond is left alone: a writer may have to end a slice that much earlier */
  from.end_ns--;
  to.end_ns--;
  if (from.start_ns >= from.end_ns || to.start_ns >= to.end_ns)
    return false;
  /* From the last moment of the send that is not after the arrival, to the first of the receive
   * that is not before the send */
  *out_to_ns = MAX (to.start_ns, from.start_ns);
  *out_from_ns = MIN (from.end_ns - 1, *out_to_ns);
  return *out_to_ns < to.end_ns;
}

bool
pod_trace_keeps_slice (const PodTracePlan *plan, const PodTraceSlice *slice)
{
  return slice->rank_index < plan->n_ranks && slice->end_ns <= plan->until_ns;
}

bool
pod_trace_keeps_flow (const PodTracePlan *plan, const PodFlow *flow)
{
  PodTraceSlice from = pod_trace_slice (plan, flow->from_span);
  PodTraceSlice to = pod_trace_slice (plan, flow->to_span);

  return pod_trace_keeps_slice (plan, &from) && pod_trace_keeps_slice (plan, &to);
}

/* JSON has no word for NaN or infinity, and a sample without a value is none. */
bool
pod_trace_keeps_sample (const PodTracePlan *plan, const PodCounterSample *sample)
{
  return sample->rank_index < plan->n_ranks && isfinite (sample->value)
         && pod_trace_ns (plan, sample->at_ps) <= plan->until_ns;
}

/* Events and bytes of something; names apart, since they are never counted as left out. */
typedef struct
{
  uint64_t n_events;
  uint64_t n_names;
  uint64_t n_bytes;
} Amount;

static void
add_names (const PodTracePlan *plan, const PodTraceCosts *costs, Amount *amounts)
{
  const PodTimeline *timeline = plan->timeline;

  for (guint rank = 0; rank < timeline->ranks->len; rank++)
    {
      amounts[rank].n_names += 2;
      amounts[rank].n_bytes += costs->rank_bytes[rank];
      for (unsigned stream = 0; stream < timeline->n_streams; stream++)
        if (plan->is_lane_used[(size_t) rank * timeline->n_streams + stream])
          {
            amounts[rank].n_names += 2;
            amounts[rank].n_bytes += costs->stream_bytes[stream];
          }
    }
}

/* Adds what @plan keeps to the amount of each rank; an arrow belongs to the later of its two ranks.
 */
static void
add_events (const PodTracePlan *plan, const PodTraceCosts *costs, Amount *amounts)
{
  const PodTimeline *timeline = plan->timeline;
  g_autofree int64_t *lane_end_ns = pod_trace_slices_begin (plan);

  for (guint i = 0; i < timeline->spans->len; i++)
    {
      PodTraceSlice slice = pod_trace_slices_next (plan, i, lane_end_ns);

      if (!pod_trace_keeps_slice (plan, &slice))
        continue;

      Amount *amount = &amounts[slice.rank_index];

      amount->n_events++;
      amount->n_bytes += costs->op_bytes[slice.span->op];
      if (slice.wait_ns < slice.start_ns)
        {
          amount->n_events++;
          amount->n_bytes += costs->wait_bytes[slice.span->op];
        }
    }
  for (guint i = 0; i < timeline->flows->len; i++)
    {
      const PodFlow *flow = &g_array_index (timeline->flows, PodFlow, i);
      int64_t from_ns;
      int64_t to_ns;

      if (!pod_trace_keeps_flow (plan, flow) || !pod_trace_flow_ns (plan, flow, &from_ns, &to_ns))
        continue;

      uint32_t from_lane = g_array_index (timeline->spans, PodSpan, flow->from_span).lane;
      uint32_t to_lane = g_array_index (timeline->spans, PodSpan, flow->to_span).lane;
      Amount *amount = &amounts[MAX (from_lane, to_lane) / timeline->n_streams];

      amount->n_events += 2;
      amount->n_bytes += costs->flow_bytes;
    }
  for (guint i = 0; i < timeline->counters->len; i++)
    {
      const PodCounterSample *sample = &g_array_index (timeline->counters, PodCounterSample, i);

      if (!pod_trace_keeps_sample (plan, sample))
        continue;
      amounts[sample->rank_index].n_events++;
      amounts[sample->rank_index].n_bytes += costs->series_bytes[sample->series];
    }
}

static bool
fits (const Amount *amount, const PodTraceCosts *costs, uint64_t max_events)
{
  return amount->n_events + amount->n_names <= max_events
         && amount->n_bytes + costs->n_file_bytes <= costs->max_bytes;
}

static void
add (Amount *sum, const Amount *amount)
{
  sum->n_events += amount->n_events;
  sum->n_names += amount->n_names;
  sum->n_bytes += amount->n_bytes;
}

/* The latest moment until which everything of the first rank fits: more time keeps more events, so
 * halving finds it. Returns: what is kept then. */
static Amount
cut_first_rank (PodTracePlan *plan, const PodTraceCosts *costs, const Amount *names,
                uint64_t max_events, Amount *scratch)
{
  int64_t low_ns = -1;
  int64_t high_ns = (int64_t) plan->last_ns;
  Amount kept = *names;

  plan->n_ranks = 1;
  while (low_ns < high_ns)
    {
      int64_t middle_ns = low_ns + (high_ns - low_ns + 1) / 2;

      plan->until_ns = middle_ns;
      scratch[0] = *names;
      add_events (plan, costs, scratch);
      if (fits (&scratch[0], costs, max_events))
        {
          kept = scratch[0];
          low_ns = middle_ns;
        }
      else
        high_ns = middle_ns - 1;
    }
  plan->until_ns = low_ns;
  return kept;
}

static uint64_t
count_flows_unbound (const PodTracePlan *plan)
{
  uint64_t n_unbound = 0;

  for (guint i = 0; i < plan->timeline->flows->len; i++)
    {
      const PodFlow *flow = &g_array_index (plan->timeline->flows, PodFlow, i);
      int64_t from_ns;
      int64_t to_ns;

      if (!pod_trace_flow_ns (plan, flow, &from_ns, &to_ns))
        n_unbound++;
    }
  return n_unbound;
}

static uint64_t
count_samples_without_value (const PodTimeline *timeline)
{
  uint64_t n_samples = 0;

  for (guint i = 0; i < timeline->counters->len; i++)
    if (!isfinite (g_array_index (timeline->counters, PodCounterSample, i).value))
      n_samples++;
  return n_samples;
}

bool
pod_trace_plan_fit (PodTracePlan *plan, const PodTraceCosts *costs, uint64_t max_events,
                    GError **error)
{
  const PodTimeline *timeline = plan->timeline;
  guint n_ranks = timeline->ranks->len;
  g_autofree Amount *amounts = g_new0 (Amount, n_ranks);
  Amount all = { 0 };
  Amount kept = { 0 };
  Amount names = { 0 };

  add_names (plan, costs, amounts);
  if (n_ranks > 0)
    names = amounts[0];
  add_events (plan, costs, amounts);
  plan->n_ranks = 0;
  for (guint rank = 0; rank < n_ranks; rank++)
    {
      add (&all, &amounts[rank]);
      if (plan->n_ranks == rank && fits (&all, costs, max_events))
        {
          plan->n_ranks = rank + 1;
          kept = all;
        }
    }
  if (n_ranks > 0 && !fits (&names, costs, max_events))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                   "trace: the names of one rank alone take %" G_GUINT64_FORMAT
                   " events, %" G_GUINT64_FORMAT " are allowed",
                   names.n_names, max_events);
      return false;
    }
  if (n_ranks > 0 && plan->n_ranks == 0)
    kept = cut_first_rank (plan, costs, &names, max_events, amounts);

  plan->n_events = kept.n_events + kept.n_names;
  plan->n_left_out = all.n_events - kept.n_events + timeline->n_left_out
                     + count_samples_without_value (timeline);
  plan->n_flows_unbound = count_flows_unbound (plan);
  return true;
}

/* -- what all writers say ---------------------------------------------------------------------- */

char *
pod_trace_rank_name (const PodTimeline *timeline, uint32_t rank_index)
{
  const PodTimelineRank *rank = &g_array_index (timeline->ranks, PodTimelineRank, rank_index);

  return rank->name != NULL ? g_utf8_make_valid (rank->name, -1)
                            : g_strdup_printf ("rank %u", rank->rank);
}

char *
pod_trace_series_name (const char *name_and_unit, const char **out_unit)
{
  const char *blank = strrchr (name_and_unit, ' ');
  const bool has_unit = blank != NULL && blank > name_and_unit && blank[1] != '\0';

  *out_unit = has_unit ? blank + 1 : "value";
  return has_unit ? g_strndup (name_and_unit, (gsize) (blank - name_and_unit))
                  : g_strdup (name_and_unit);
}

JsonObject *
pod_trace_metadata (const PodTracePlan *plan, JsonObject *given)
{
  JsonObject *all = json_object_new ();

  if (given != NULL)
    {
      JsonObjectIter iter;
      const char *key;
      JsonNode *value;

      json_object_iter_init_ordered (&iter, given);
      while (json_object_iter_next_ordered (&iter, &key, &value))
        json_object_set_member (all, key, json_node_copy (value));
    }
  json_object_set_string_member (all, "schema", "podsim-trace-1");
  json_object_set_int_member (all, "n_left_out", (gint64) plan->n_left_out);
  json_object_set_int_member (all, "n_flows_unbound", (gint64) plan->n_flows_unbound);
  json_object_set_int_member (all, "origin_ps", plan->origin_ps);
  return all;
}
