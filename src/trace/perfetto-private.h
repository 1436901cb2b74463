#pragma once

#include "trace/trace-private.h"

/* Makes single packets of a Perfetto trace, one at a time. Strings are written once, ahead of all
 * events, which refer to them by number; nothing here grows with the number of events. */
typedef struct
{
  const PodTracePlan *plan;
  GByteArray *head;   /* packets that come first: strings */
  GByteArray *packet; /* the packet last made, as it stands in the file */
  GByteArray *body;   /* of that packet */
  GByteArray *event;
  GByteArray *item;
  GHashTable *strings[4];   /* by kind, see perfetto-packet.c: text to number */
  GByteArray *new_strings;  /* not yet in a packet */
  GPtrArray *ops;           /* (element-type GByteArray) by op: name, category, arguments */
  GPtrArray *waits;         /* (element-type GByteArray) the same of its wait */
  uint64_t microbatch_name; /* number of the argument's name */
  uint64_t tracks_per_rank;
} PodPerfettoPacket;

/* O(ops + series). */
void pod_perfetto_packet_init (PodPerfettoPacket *perfetto, const PodTracePlan *plan);
void pod_perfetto_packet_clear (PodPerfettoPacket *perfetto);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodPerfettoPacket, pod_perfetto_packet_clear)

/* What the file is: arguments of an instant at time 0 on a track of its own. */
void pod_perfetto_packet_run_track (PodPerfettoPacket *perfetto);
void pod_perfetto_packet_run (PodPerfettoPacket *perfetto, JsonObject *metadata);
/* That the tracks of ranks have places of their own. */
void pod_perfetto_packet_root (PodPerfettoPacket *perfetto);
void pod_perfetto_packet_rank (PodPerfettoPacket *perfetto, uint32_t rank_index);
void pod_perfetto_packet_stream (PodPerfettoPacket *perfetto, uint32_t rank_index, uint32_t stream);
void pod_perfetto_packet_series (PodPerfettoPacket *perfetto, uint32_t rank_index, uint32_t series);

/* The start of the wait before @slice, or of its work; @flows: (nullable) numbers of arrows that
 * leave it. */
void pod_perfetto_packet_begin (PodPerfettoPacket *perfetto, const PodTraceSlice *slice,
                                bool is_wait, const uint64_t *flows, unsigned n_flows);
/* Its end; @flows: (nullable) numbers of arrows that arrive at it. */
void pod_perfetto_packet_end (PodPerfettoPacket *perfetto, const PodTraceSlice *slice,
                              int64_t at_ns, const uint64_t *flows, unsigned n_flows);
void pod_perfetto_packet_sample (PodPerfettoPacket *perfetto, uint32_t rank_index, uint32_t series,
                                 int64_t at_ns, double value);
