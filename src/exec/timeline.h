#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* What a run did, for the ranks that were recorded: spans on lanes (one lane per rank and stream), flows and counters.
 * Plain data; trace and report read it, exec writes it. Times are the clock's picoseconds from the start of the step. */

typedef enum
{
  POD_CATEGORY_FORWARD,
  POD_CATEGORY_BACKWARD,
  POD_CATEGORY_RECOMPUTE,
  POD_CATEGORY_OPTIMIZER,
  POD_CATEGORY_COMM,     /* collectives */
  POD_CATEGORY_P2P,      /* pipeline sends and receives */
  POD_N_CATEGORIES
} PodCategory;

/* "forward", …: in traces and reports. */
const char *pod_category_name (PodCategory category);

/* One operation of the program; many spans refer to it. */
typedef struct
{
  const char *name;      /* "L12 attention" (owned by the timeline's string chunk) */
  const char *detail;    /* shapes: "matmul [8192, 8192] x [8192, 2560] bf16"; (nullable) */
  const char *axis;      /* "tp", "fsdp", …; NULL for compute */
  PodCategory category;
  uint16_t stream;
  uint8_t slot;          /* of the pipeline's schedule: forward, backward, gradients of input, of weights */
  uint8_t chunk;         /* which of its rank's parts of the model */
  int32_t layer;         /* -1 none */
  double flops;
  double bytes;          /* payload of a collective, HBM bytes of a kernel */
} PodTimelineOp;

#define POD_NO_SPAN UINT32_MAX

typedef struct
{
  int64_t arrive_ps;     /* when this rank reached it (collectives wait for peers until start_ps) */
  int64_t start_ps;
  int64_t end_ps;
  uint32_t op;
  uint32_t lane;         /* rank_index * n_streams + stream */
  uint32_t released_by;  /* span whose end let it start, POD_NO_SPAN none: the critical path */
  int32_t microbatch;    /* -1 none */
} PodSpan;

typedef struct
{
  uint32_t from_span;    /* send */
  uint32_t to_span;      /* receive */
} PodFlow;

typedef struct
{
  int64_t at_ps;
  uint32_t rank_index;
  uint32_t series;       /* index into series_names: "memory", "ici x busy", … */
  double value;
} PodCounterSample;

typedef struct
{
  uint32_t rank;         /* real rank number */
  uint32_t n_like_it;    /* ranks of its class, itself included */
  char *name;            /* "rank 0 (stage 0, 1024 ranks alike)" */
} PodTimelineRank;

typedef struct
{
  GStringChunk *strings;
  GArray *ops;           /* PodTimelineOp */
  GArray *spans;         /* PodSpan: per lane in start order, lanes interleaved as they ended */
  GArray *flows;         /* PodFlow */
  GArray *counters;      /* PodCounterSample, in time order per series */
  GArray *ranks;         /* PodTimelineRank */
  GPtrArray *series_names; /* (element-type utf8) with unit: "memory bytes" */
  unsigned n_streams;
  const char *const *stream_names;  /* n_streams, borrowed const table: "compute", "tp", "fsdp gather", … */
  int64_t end_ps;
  uint64_t n_left_out;   /* spans of ranks that were not recorded */
} PodTimeline;

PodTimeline *pod_timeline_new (unsigned n_streams, const char *const *stream_names);
void pod_timeline_free (PodTimeline *timeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodTimeline, pod_timeline_free)
/* Lanes disjoint, arrive <= start <= end, indices in range, flows forward in time. */
bool pod_timeline_check (const PodTimeline *timeline, GError **error);
