#pragma once

#include "trace/trace.h"

/* What every trace writer shares: which events are written, and where in time. Times here are whole
 * nanoseconds, both ends of a span rounded alike, so that spans which touch in picoseconds touch in
 * the file: rounding keeps order. */

/* One span as it is drawn: first the wait for its peers, when there is one, then the work. */
typedef struct
{
  guint index;
  const PodSpan *span;
  const PodTimelineOp *op;
  uint32_t rank_index;
  uint32_t stream;
  int64_t wait_ns; /* start of the wait; equal to start_ns when there is none */
  int64_t start_ns;
  int64_t end_ns;
} PodTraceSlice;

/* What the text of an event costs at most, so that a file keeps under a size without being written
 * twice. */
typedef struct
{
  uint64_t max_bytes;           /* of the file before compression */
  uint64_t n_file_bytes;        /* head and tail */
  const uint32_t *op_bytes;     /* the slice of a span, by op */
  const uint32_t *wait_bytes;   /* its wait, by op */
  const uint32_t *series_bytes; /* a sample, by series */
  const uint32_t *stream_bytes; /* the names of a lane, by stream */
  const uint32_t *rank_bytes;   /* the names of a rank, by rank index */
  uint32_t flow_bytes;          /* both ends */
} PodTraceCosts;

/* Kept are the first @n_ranks ranks and, of them, what has ended by @until_ns. */
typedef struct
{
  const PodTimeline *timeline;
  int64_t origin_ps; /* <= 0: subtracted from every time, so that none is negative */
  uint64_t last_ns;  /* no event is later */
  uint32_t n_ranks;
  int64_t until_ns;
  bool *is_lane_used;       /* by lane: has a span */
  uint64_t n_events;        /* kept, names included */
  uint64_t n_left_out;      /* events, names not counted, and the spans that were not recorded */
  uint64_t n_flows_unbound; /* arrows without a slice to stand on, see pod_trace_flow_ns */
} PodTracePlan;

/* Refuses times that a viewer's double cannot hold to the nanosecond (POD_ERROR_LIMIT). O(spans +
 * samples). */
bool pod_trace_plan_init (PodTracePlan *plan, const PodTimeline *timeline, GError **error);
void pod_trace_plan_clear (PodTracePlan *plan);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodTracePlan, pod_trace_plan_clear)

/* Chooses what is kept: whole ranks, the first ones, as many as fit; when not even the first fits,
 * what ends first of it. Error: POD_ERROR_LIMIT when the names of one rank are too many. O(events),
 * times 63 when one rank is too big. */
bool pod_trace_plan_fit (PodTracePlan *plan, const PodTraceCosts *costs, uint64_t max_events,
                         GError **error);

int64_t pod_trace_ns (const PodTracePlan *plan, int64_t at_ps);
/* Slice of the span @index but for wait_ns, which hangs on the spans before it. O(1). */
PodTraceSlice pod_trace_slice (const PodTracePlan *plan, guint index);

/* Walks the spans in order: @lane_end_ns holds the end of the last slice of each lane, made by
 * _slices_begin. Returns: (transfer full) */
int64_t *pod_trace_slices_begin (const PodTracePlan *plan);
PodTraceSlice pod_trace_slices_next (const PodTracePlan *plan, guint index, int64_t *lane_end_ns);

/* Both ends of an arrow, inside their slices and in order, the last nanosecond of a slice apart.
 * False when there are no such points: a slice without length is never open, and a viewer drops
 * what is bound to it. */
bool pod_trace_flow_ns (const PodTracePlan *plan, const PodFlow *flow, int64_t *out_from_ns,
                        int64_t *out_to_ns);
bool pod_trace_keeps_slice (const PodTracePlan *plan, const PodTraceSlice *slice);
bool pod_trace_keeps_flow (const PodTracePlan *plan, const PodFlow *flow);
bool pod_trace_keeps_sample (const PodTracePlan *plan, const PodCounterSample *sample);

/* "rank 0 (…)". Returns: (transfer full) */
char *pod_trace_rank_name (const PodTimeline *timeline, uint32_t rank_index);
/* "memory bytes" is the counter memory, measured in bytes. @out_unit: (transfer none) "value" where
 * the series has no unit. Returns: (transfer full) its name */
char *pod_trace_series_name (const char *name_and_unit, const char **out_unit);
/* What the file says of itself: the caller's @given (nullable) first, then the writers' own keys,
 * which win. Returns: (transfer full) */
JsonObject *pod_trace_metadata (const PodTracePlan *plan, JsonObject *given);

bool pod_chrome_write (PodTracePlan *plan, const PodTraceRequest *request, bool is_gzip,
                       GError **error);
bool pod_perfetto_write (PodTracePlan *plan, const PodTraceRequest *request, bool is_gzip,
                         GError **error);
