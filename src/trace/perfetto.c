#include <string.h>

#include "base/output.h"
#include "trace/perfetto-private.h"

/* A Perfetto trace, binary: the same events as the Chrome one, in about a third of the bytes
 * (docs/format/trace.md). */

enum
{
  LIMITED_MAX_EVENTS = 1000000, /* as in a Chrome trace */
  LIMITED_BYTES = 99999999,
};

/* An arrow at one of its ends. */
typedef struct
{
  uint32_t span;
  uint64_t id;
} FlowEnd;

typedef struct
{
  PodOutput *output;           /* (transfer none) */
  PodPerfettoPacket *perfetto; /* (transfer none) */
  GArray *departures;          /* FlowEnd, by span */
  GArray *arrivals;
  GArray *ids; /* uint64_t, of the slice being written */
} PacketWriter;

static void
write_packet (const PacketWriter *writer)
{
  pod_output_write (writer->output, writer->perfetto->packet->data, writer->perfetto->packet->len);
}

/* -- tracks ------------------------------------------------------------------------------------ */

static void
write_rank (const PacketWriter *writer, const bool *has_series, uint32_t rank)
{
  const PodTracePlan *plan = writer->perfetto->plan;
  const PodTimeline *timeline = plan->timeline;

  pod_perfetto_packet_rank (writer->perfetto, rank);
  write_packet (writer);
  for (uint32_t stream = 0; stream < timeline->n_streams; stream++)
    if (plan->is_lane_used[(size_t) rank * timeline->n_streams + stream])
      {
        pod_perfetto_packet_stream (writer->perfetto, rank, stream);
        write_packet (writer);
      }
  for (uint32_t series = 0; series < timeline->series_names->len; series++)
    if (has_series[(size_t) rank * timeline->series_names->len + series])
      {
        pod_perfetto_packet_series (writer->perfetto, rank, series);
        write_packet (writer);
      }
}

static void
write_tracks (const PacketWriter *writer)
{
  const PodTracePlan *plan = writer->perfetto->plan;
  const PodTimeline *timeline = plan->timeline;
  const size_t n_series = timeline->series_names->len;
  g_autofree bool *has_series = g_new0 (bool, timeline->ranks->len *n_series + 1);

  for (guint i = 0; i < timeline->counters->len; i++)
    {
      const PodCounterSample *sample = &g_array_index (timeline->counters, PodCounterSample, i);

      if (pod_trace_keeps_sample (plan, sample))
        has_series[sample->rank_index * n_series + sample->series] = true;
    }
  pod_perfetto_packet_root (writer->perfetto);
  write_packet (writer);
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    write_rank (writer, has_series, rank);
}

static void
write_run (const PacketWriter *writer, JsonObject *metadata)
{
  pod_perfetto_packet_run_track (writer->perfetto);
  write_packet (writer);
  pod_perfetto_packet_run (writer->perfetto, metadata);
  write_packet (writer);
}

/* -- slices ------------------------------------------------------------------------------------ */

static gint
compare_ends (gconstpointer a, gconstpointer b)
{
  const FlowEnd *x = a;
  const FlowEnd *y = b;

  if (x->span != y->span)
    return x->span < y->span ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

static void
find_flows (PacketWriter *writer)
{
  const PodTracePlan *plan = writer->perfetto->plan;

  for (guint i = 0; i < plan->timeline->flows->len; i++)
    {
      const PodFlow *flow = &g_array_index (plan->timeline->flows, PodFlow, i);
      const FlowEnd from = { .span = flow->from_span, .id = (uint64_t) i + 1 };
      const FlowEnd to = { .span = flow->to_span, .id = (uint64_t) i + 1 };
      int64_t from_ns;
      int64_t to_ns;

      if (!pod_trace_keeps_flow (plan, flow) || !pod_trace_flow_ns (plan, flow, &from_ns, &to_ns))
        continue;
      g_array_append_val (writer->departures, from);
      g_array_append_val (writer->arrivals, to);
    }
  g_array_sort (writer->departures, compare_ends);
  g_array_sort (writer->arrivals, compare_ends);
}

/* The arrows of @span; @next is behind those of earlier spans and moves behind these. */
static void
take_flows (PacketWriter *writer, const GArray *ends, guint *next, guint span)
{
  g_array_set_size (writer->ids, 0);
  for (; *next < ends->len && g_array_index (ends, FlowEnd, *next).span == span; (*next)++)
    g_array_append_val (writer->ids, g_array_index (ends, FlowEnd, *next).id);
}

/* Of one lane the end of a slice stands before the start of the next one, also where both are at
 * one instant: readers sort by time and leave the rest in order. */
static void
write_slice (PacketWriter *writer, const PodTraceSlice *slice, guint *departure, guint *arrival)
{
  PodPerfettoPacket *perfetto = writer->perfetto;

  if (slice->wait_ns < slice->start_ns)
    {
      pod_perfetto_packet_begin (perfetto, slice, true, NULL, 0);
      write_packet (writer);
      pod_perfetto_packet_end (perfetto, slice, slice->start_ns, NULL, 0);
      write_packet (writer);
    }
  take_flows (writer, writer->departures, departure, slice->index);
  pod_perfetto_packet_begin (perfetto, slice, false, (const uint64_t *) writer->ids->data,
                             writer->ids->len);
  write_packet (writer);
  take_flows (writer, writer->arrivals, arrival, slice->index);
  pod_perfetto_packet_end (perfetto, slice, slice->end_ns, (const uint64_t *) writer->ids->data,
                           writer->ids->len);
  write_packet (writer);
}

static void
write_slices (PacketWriter *writer)
{
  const PodTracePlan *plan = writer->perfetto->plan;
  g_autofree int64_t *lane_end_ns = pod_trace_slices_begin (plan);
  guint departure = 0;
  guint arrival = 0;

  find_flows (writer);
  for (guint i = 0; i < plan->timeline->spans->len; i++)
    {
      const PodTraceSlice slice = pod_trace_slices_next (plan, i, lane_end_ns);

      if (pod_trace_keeps_slice (plan, &slice))
        write_slice (writer, &slice, &departure, &arrival);
    }
}

static void
write_samples (const PacketWriter *writer)
{
  const PodTracePlan *plan = writer->perfetto->plan;

  for (guint i = 0; i < plan->timeline->counters->len; i++)
    {
      const PodCounterSample *sample
          = &g_array_index (plan->timeline->counters, PodCounterSample, i);

      if (!pod_trace_keeps_sample (plan, sample))
        continue;
      pod_perfetto_packet_sample (writer->perfetto, sample->rank_index, sample->series,
                                  pod_trace_ns (plan, sample->at_ps), sample->value);
      write_packet (writer);
    }
}

/* -- sizes ------------------------------------------------------------------------------------- */

/* The most that each kind of event can take: made with the greatest numbers that the timeline has.
 */
static void
measure_slices (PodPerfettoPacket *perfetto, uint32_t *op_bytes, uint32_t *wait_bytes)
{
  const PodTracePlan *plan = perfetto->plan;
  const int64_t last_ns = (int64_t) plan->last_ns;
  PodSpan span = { .microbatch = INT32_MAX };
  const PodTraceSlice slice = {
    .span = &span, .rank_index = plan->timeline->ranks->len, .wait_ns = last_ns, .start_ns = last_ns
  };

  for (guint i = 0; i < plan->timeline->ops->len; i++)
    {
      span.op = i;
      pod_perfetto_packet_end (perfetto, &slice, last_ns, NULL, 0);
      op_bytes[i] = wait_bytes[i] = perfetto->packet->len;
      pod_perfetto_packet_begin (perfetto, &slice, false, NULL, 0);
      op_bytes[i] += perfetto->packet->len;
      pod_perfetto_packet_begin (perfetto, &slice, true, NULL, 0);
      wait_bytes[i] += perfetto->packet->len;
    }
}

static void
measure_tracks (PodPerfettoPacket *perfetto, uint32_t *rank_bytes, uint32_t *stream_bytes,
                uint32_t *series_bytes)
{
  const PodTimeline *timeline = perfetto->plan->timeline;
  const uint32_t n_ranks = timeline->ranks->len;
  uint32_t all_series_bytes = 0;

  for (uint32_t series = 0; series < timeline->series_names->len; series++)
    {
      pod_perfetto_packet_series (perfetto, n_ranks, series);
      all_series_bytes += perfetto->packet->len;
      pod_perfetto_packet_sample (perfetto, n_ranks, series, (int64_t) perfetto->plan->last_ns, 0);
      series_bytes[series] = perfetto->packet->len;
    }
  for (uint32_t rank = 0; rank < n_ranks; rank++)
    {
      pod_perfetto_packet_rank (perfetto, rank);
      rank_bytes[rank] = perfetto->packet->len + all_series_bytes;
    }
  for (uint32_t stream = 0; stream < timeline->n_streams; stream++)
    {
      pod_perfetto_packet_stream (perfetto, n_ranks, stream);
      stream_bytes[stream] = perfetto->packet->len;
    }
}

static bool
choose_events (PodPerfettoPacket *perfetto, PodTracePlan *plan, const PodTraceRequest *request,
               JsonObject *metadata, GError **error)
{
  const PodTimeline *timeline = plan->timeline;
  g_autofree uint32_t *op_bytes = g_new (uint32_t, timeline->ops->len);
  g_autofree uint32_t *wait_bytes = g_new (uint32_t, timeline->ops->len);
  g_autofree uint32_t *series_bytes = g_new (uint32_t, timeline->series_names->len);
  g_autofree uint32_t *stream_bytes = g_new (uint32_t, timeline->n_streams);
  g_autofree uint32_t *rank_bytes = g_new (uint32_t, timeline->ranks->len);
  PodTraceCosts costs = {
    .max_bytes = request->max_events <= LIMITED_MAX_EVENTS ? LIMITED_BYTES : UINT64_MAX,
    .op_bytes = op_bytes,
    .wait_bytes = wait_bytes,
    .series_bytes = series_bytes,
    .stream_bytes = stream_bytes,
    .rank_bytes = rank_bytes,
    .flow_bytes = 2 * (10 + 4), /* key and number at both ends; lengths may take a byte more */
  };

  measure_slices (perfetto, op_bytes, wait_bytes);
  measure_tracks (perfetto, rank_bytes, stream_bytes, series_bytes);
  pod_perfetto_packet_run (perfetto, metadata);
  costs.n_file_bytes
      = perfetto->head->len + perfetto->packet->len + 128; /* counts grow; two tracks */
  return pod_trace_plan_fit (plan, &costs, request->max_events, error);
}

static void
write_all (PacketWriter *writer, JsonObject *metadata)
{
  pod_output_write (writer->output, writer->perfetto->head->data, writer->perfetto->head->len);
  write_run (writer, metadata);
  write_tracks (writer);
  write_slices (writer);
  write_samples (writer);
}

bool
pod_perfetto_write (PodTracePlan *plan, const PodTraceRequest *request, bool is_gzip,
                    GError **error)
{
  g_auto (PodPerfettoPacket) perfetto = { 0 };
  g_autoptr (JsonObject) before = pod_trace_metadata (plan, request->metadata);
  g_autoptr (JsonObject) metadata = NULL;
  g_autoptr (GArray) departures = g_array_new (FALSE, FALSE, sizeof (FlowEnd));
  g_autoptr (GArray) arrivals = g_array_new (FALSE, FALSE, sizeof (FlowEnd));
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  g_autoptr (PodOutput) output = NULL;
  PacketWriter writer
      = { .perfetto = &perfetto, .departures = departures, .arrivals = arrivals, .ids = ids };

  pod_perfetto_packet_init (&perfetto, plan);
  if (!choose_events (&perfetto, plan, request, before, error))
    return false;
  metadata = pod_trace_metadata (plan, request->metadata);
  output = pod_output_open (request->file, is_gzip, error);
  if (output == NULL)
    return false;
  writer.output = output;
  write_all (&writer, metadata);
  return pod_output_close (g_steal_pointer (&output), error);
}
