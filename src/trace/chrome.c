#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "trace/chrome-private.h"

/* The Chrome Trace Event format, as Perfetto, chrome://tracing and speedscope read it
 * (docs/format/trace.md). Only X slices, s/f flows, C counters and M names: what all three agree
 * on. */

enum
{
  /* Up to this many events a file keeps under 100 MB as well; who asks for more gets them all */
  LIMITED_MAX_EVENTS = 1000000,
  LIMITED_BYTES = 99999999,
};

typedef struct
{
  PodOutput *output;     /* (transfer none) */
  PodChromeText *chrome; /* (transfer none) */
  bool has_events;
} EventWriter;

/* Writes the event just made, on a line of its own, the comma before it. */
static void
write_event (EventWriter *writer)
{
  const GString *text = writer->chrome->text;

  if (writer->has_events)
    pod_output_write (writer->output, ",\n", 2);
  writer->has_events = true;
  pod_output_write (writer->output, text->str, text->len);
}

static void
write_names (EventWriter *writer)
{
  PodChromeText *chrome = writer->chrome;
  const PodTimeline *timeline = chrome->plan->timeline;

  for (uint32_t rank = 0; rank < chrome->plan->n_ranks; rank++)
    {
      pod_chrome_text_rank_name (chrome, rank);
      write_event (writer);
      pod_chrome_text_sort_index (chrome, "process", rank, 0,
                                  g_array_index (timeline->ranks, PodTimelineRank, rank).rank);
      write_event (writer);
      for (uint32_t stream = 0; stream < timeline->n_streams; stream++)
        if (chrome->plan->is_lane_used[(size_t) rank * timeline->n_streams + stream])
          {
            pod_chrome_text_stream_name (chrome, rank, stream);
            write_event (writer);
            pod_chrome_text_sort_index (chrome, "thread", rank, stream, stream);
            write_event (writer);
          }
    }
}

/* A lane while slices are written: the last slice is held until the next one is known. */
typedef struct
{
  bool has_held;
  int64_t first_ns; /* start of its first slice */
  PodTraceSlice held;
} Lane;

/* Does ts + dur pass @end_ns, where the next slice starts, when a viewer adds them as doubles, with
 * times counted from
 * @base_ns? */
static bool
sum_passes_end (int64_t start_ns, int64_t end_ns, int64_t base_ns)
{
  double base_us = (double) base_ns / 1000;
  double start_us = (double) start_ns / 1000 - base_us;
  double end_us = (double) end_ns / 1000 - base_us;

  return start_us + (double) (end_ns - start_ns) / 1000 > end_us;
}

/* Where to end a slice that touches the next one. speedscope adds ts and dur as doubles, counted
 * from the first slice of the lane, and takes a sum that is too big in its last bit for an overlap:
 * it nests the next slice inside and never closes this one (jlfwong/speedscope#487; the same
 * happens with times as they are). Such a slice ends 1 ns early. */
static int64_t
end_before_next (const Lane *lane, int64_t start_ns, int64_t end_ns)
{
  if (start_ns < end_ns
      && (sum_passes_end (start_ns, end_ns, 0)
          || sum_passes_end (start_ns, end_ns, lane->first_ns)))
    return end_ns - 1;
  return end_ns;
}

static void
write_held (EventWriter *writer, Lane *lane)
{
  PodTraceSlice *held = &lane->held;

  if (!lane->has_held)
    return;
  if (held->wait_ns < held->start_ns)
    {
      PodTraceSlice wait = *held;

      wait.start_ns = end_before_next (lane, held->wait_ns, held->start_ns);
      pod_chrome_text_slice (writer->chrome, &wait, true);
      write_event (writer);
    }
  pod_chrome_text_slice (writer->chrome, held, false);
  write_event (writer);
  lane->has_held = false;
}

static void
write_slices (EventWriter *writer)
{
  const PodTracePlan *plan = writer->chrome->plan;
  const PodTimeline *timeline = plan->timeline;
  size_t n_lanes = (size_t) timeline->ranks->len * timeline->n_streams;
  g_autofree Lane *lanes = g_new0 (Lane, n_lanes);
  g_autofree int64_t *lane_end_ns = pod_trace_slices_begin (plan);

  for (size_t i = 0; i < n_lanes; i++)
    lanes[i].first_ns = -1;
  for (guint i = 0; i < timeline->spans->len; i++)
    {
      PodTraceSlice slice = pod_trace_slices_next (plan, i, lane_end_ns);
      Lane *lane = &lanes[slice.span->lane];

      if (!pod_trace_keeps_slice (plan, &slice))
        continue;
      if (lane->first_ns < 0)
        lane->first_ns = slice.wait_ns;
      if (lane->has_held && lane->held.end_ns == slice.wait_ns)
        lane->held.end_ns = end_before_next (lane, lane->held.start_ns, lane->held.end_ns);
      write_held (writer, lane);
      lane->held = slice;
      lane->has_held = true;
    }
  for (size_t i = 0; i < n_lanes; i++)
    write_held (writer, &lanes[i]);
}

/* After all slices: of events at one instant a reader takes the first in the file first, and the
 * slice must be open. */
static void
write_flows (EventWriter *writer)
{
  const PodTracePlan *plan = writer->chrome->plan;

  for (guint i = 0; i < plan->timeline->flows->len; i++)
    {
      const PodFlow *flow = &g_array_index (plan->timeline->flows, PodFlow, i);
      int64_t from_ns;
      int64_t to_ns;

      if (!pod_trace_keeps_flow (plan, flow) || !pod_trace_flow_ns (plan, flow, &from_ns, &to_ns))
        continue;

      PodTraceSlice from = pod_trace_slice (plan, flow->from_span);
      PodTraceSlice to = pod_trace_slice (plan, flow->to_span);

      pod_chrome_text_flow (writer->chrome, &from, false, from_ns, (uint64_t) i + 1);
      write_event (writer);
      pod_chrome_text_flow (writer->chrome, &to, true, to_ns, (uint64_t) i + 1);
      write_event (writer);
    }
}

static void
write_samples (EventWriter *writer)
{
  const PodTracePlan *plan = writer->chrome->plan;

  for (guint i = 0; i < plan->timeline->counters->len; i++)
    {
      const PodCounterSample *sample
          = &g_array_index (plan->timeline->counters, PodCounterSample, i);

      if (!pod_trace_keeps_sample (plan, sample))
        continue;
      pod_chrome_text_sample (writer->chrome, sample->rank_index, sample->series,
                              pod_trace_ns (plan, sample->at_ps), sample->value);
      write_event (writer);
    }
}

/* Everything before the first event. @metadata comes first; the writer's own keys win. */
static char *
head_text (const PodTracePlan *plan, JsonObject *metadata)
{
  JsonObject *other = pod_trace_metadata (plan, metadata);
  g_autoptr (JsonNode) node = json_node_init_object (json_node_alloc (), other);
  g_autofree char *line = pod_json_to_line (node);

  json_object_unref (other);
  return g_strdup_printf ("{\"displayTimeUnit\":\"ns\",\n\"otherData\":%s,\n\"traceEvents\":[\n",
                          g_strchomp (line));
}

/* The length of the event just made, with the comma and the line end before it. */
static uint32_t
length_of_event (const PodChromeText *chrome)
{
  return (uint32_t) chrome->text->len + 2;
}

/* Adds the most that each kind of event can take: made with the greatest numbers that the timeline
 * has. */
static void
measure_slices (PodChromeText *chrome, uint32_t *op_bytes, uint32_t *wait_bytes)
{
  const PodTracePlan *plan = chrome->plan;
  int64_t last_ns = (int64_t) plan->last_ns;
  PodSpan span = { .microbatch = INT32_MAX };
  PodTraceSlice slice = { .span = &span, .rank_index = plan->timeline->ranks->len };

  for (guint i = 0; i < plan->timeline->ops->len; i++)
    {
      /* Starting at the end and lasting as long as all: ts and dur are both at their longest */
      span.op = i;
      slice.wait_ns = slice.start_ns = last_ns;
      slice.end_ns = 2 * last_ns;
      pod_chrome_text_slice (chrome, &slice, false);
      op_bytes[i] = length_of_event (chrome);
      slice.start_ns = 2 * last_ns;
      pod_chrome_text_slice (chrome, &slice, true);
      wait_bytes[i] = length_of_event (chrome);
    }
}

static uint32_t
measure_flow (PodChromeText *chrome)
{
  const PodTimeline *timeline = chrome->plan->timeline;
  PodTraceSlice slice = { .rank_index = timeline->ranks->len };
  int64_t last_ns = (int64_t) chrome->plan->last_ns;
  uint32_t n_bytes;

  pod_chrome_text_flow (chrome, &slice, false, last_ns, timeline->flows->len);
  n_bytes = length_of_event (chrome);
  pod_chrome_text_flow (chrome, &slice, true, last_ns, timeline->flows->len);
  return n_bytes + length_of_event (chrome);
}

static void
measure_samples (PodChromeText *chrome, uint32_t *series_bytes)
{
  const PodTimeline *timeline = chrome->plan->timeline;

  for (guint i = 0; i < timeline->series_names->len; i++)
    {
      /* No double is longer than this one */
      pod_chrome_text_sample (chrome, timeline->ranks->len, i, (int64_t) chrome->plan->last_ns,
                              -2.2250738585072014e-308);
      series_bytes[i] = length_of_event (chrome);
    }
}

static void
measure_names (PodChromeText *chrome, uint32_t *rank_bytes, uint32_t *stream_bytes)
{
  const PodTimeline *timeline = chrome->plan->timeline;
  uint32_t last_rank = timeline->ranks->len;

  for (uint32_t rank = 0; rank < timeline->ranks->len; rank++)
    {
      pod_chrome_text_rank_name (chrome, rank);
      rank_bytes[rank] = length_of_event (chrome);
      pod_chrome_text_sort_index (chrome, "process", rank, 0,
                                  g_array_index (timeline->ranks, PodTimelineRank, rank).rank);
      rank_bytes[rank] += length_of_event (chrome);
    }
  for (uint32_t stream = 0; stream < timeline->n_streams; stream++)
    {
      pod_chrome_text_stream_name (chrome, last_rank, stream);
      stream_bytes[stream] = length_of_event (chrome);
      pod_chrome_text_sort_index (chrome, "thread", last_rank, stream, stream);
      stream_bytes[stream] += length_of_event (chrome);
    }
}

static bool
choose_events (PodChromeText *chrome, PodTracePlan *plan, const PodTraceRequest *request,
               GError **error)
{
  const PodTimeline *timeline = plan->timeline;
  g_autofree uint32_t *op_bytes = g_new (uint32_t, timeline->ops->len);
  g_autofree uint32_t *wait_bytes = g_new (uint32_t, timeline->ops->len);
  g_autofree uint32_t *series_bytes = g_new (uint32_t, timeline->series_names->len);
  g_autofree uint32_t *stream_bytes = g_new (uint32_t, timeline->n_streams);
  g_autofree uint32_t *rank_bytes = g_new (uint32_t, timeline->ranks->len);
  g_autofree char *head = head_text (plan, request->metadata);
  PodTraceCosts costs = {
    .max_bytes = request->max_events <= LIMITED_MAX_EVENTS ? LIMITED_BYTES : UINT64_MAX,
    .n_file_bytes = strlen (head) + 64, /* the counts in the head grow, and the tail */
    .op_bytes = op_bytes,
    .wait_bytes = wait_bytes,
    .series_bytes = series_bytes,
    .stream_bytes = stream_bytes,
    .rank_bytes = rank_bytes,
  };

  measure_slices (chrome, op_bytes, wait_bytes);
  costs.flow_bytes = measure_flow (chrome);
  measure_samples (chrome, series_bytes);
  measure_names (chrome, rank_bytes, stream_bytes);
  return pod_trace_plan_fit (plan, &costs, request->max_events, error);
}

static bool
check_ids (const PodChromeText *chrome, GError **error)
{
  uint64_t n_ranks = chrome->plan->timeline->ranks->len;

  /* Viewers keep ids in 32 bits */
  if (chrome->first_tid + n_ranks * chrome->tids_per_rank <= INT32_MAX)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
               "trace: %" G_GUINT64_FORMAT " ranks of %" G_GUINT64_FORMAT
               " lanes are more than 32-bit thread ids can tell apart",
               n_ranks, chrome->tids_per_rank);
  return false;
}

bool
pod_chrome_write (PodTracePlan *plan, const PodTraceRequest *request, bool is_gzip, GError **error)
{
  g_auto (PodChromeText) chrome = { 0 };

  pod_chrome_text_init (&chrome, plan);
  if (!check_ids (&chrome, error) || !choose_events (&chrome, plan, request, error))
    return false;

  g_autofree char *head = head_text (plan, request->metadata);
  g_autoptr (PodOutput) output = pod_output_open (request->file, is_gzip, error);
  EventWriter writer = { .output = output, .chrome = &chrome };

  if (output == NULL)
    return false;
  pod_output_write (output, head, strlen (head));
  write_names (&writer);
  write_slices (&writer);
  write_flows (&writer);
  write_samples (&writer);
  pod_output_write (output, "\n]}\n", 4);
  return pod_output_close (g_steal_pointer (&output), error);
}
