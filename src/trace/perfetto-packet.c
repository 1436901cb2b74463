#include "trace/perfetto-private.h"

#include <math.h>
#include <string.h>

#include "trace/protobuf.h"

/* Field numbers of Perfetto's schema, protos/perfetto/trace of github.com/google/perfetto. */

enum
{
  TRACE_PACKET = 1,

  PACKET_TIMESTAMP = 8,
  PACKET_SEQUENCE_ID = 10,
  PACKET_TRACK_EVENT = 11,
  PACKET_INTERNED_DATA = 12,
  PACKET_SEQUENCE_FLAGS = 13,
  PACKET_TRACK_DESCRIPTOR = 60,

  TRACK_UUID = 1,
  TRACK_NAME = 2,
  TRACK_PROCESS = 3,
  TRACK_PARENT_UUID = 5,
  TRACK_COUNTER = 8,
  TRACK_CHILD_ORDERING = 11,
  TRACK_SIBLING_ORDER_RANK = 12,
  TRACK_PROCESS_ORDERING = 19,

  PROCESS_PID = 1,
  PROCESS_NAME = 6,

  COUNTER_UNIT = 3,
  COUNTER_UNIT_NAME = 6,

  EVENT_CATEGORY_IIDS = 3,
  EVENT_DEBUG_ANNOTATIONS = 4,
  EVENT_TYPE = 9,
  EVENT_NAME_IID = 10,
  EVENT_TRACK_UUID = 11,
  EVENT_NAME = 23,
  EVENT_DOUBLE_COUNTER_VALUE = 44,
  EVENT_FLOW_IDS = 47,
  EVENT_TERMINATING_FLOW_IDS = 48,

  ANNOTATION_NAME_IID = 1,
  ANNOTATION_UINT = 3,
  ANNOTATION_INT = 4,
  ANNOTATION_DOUBLE = 5,
  ANNOTATION_STRING = 6,
  ANNOTATION_NAME = 10,
  ANNOTATION_STRING_IID = 17,

  INTERNED_IID = 1,
  INTERNED_TEXT = 2,
};

/* Values of those fields. */
enum
{
  OUR_SEQUENCE = 1, /* the packets of one writer, which share their strings */

  FLAG_STATE_CLEARED = 1, /* strings are counted anew from here */
  FLAG_NEEDS_STATE = 2,

  ORDERING_EXPLICIT = 3,
  PROCESS_ORDERING_EXPLICIT = 1,
  UNIT_BYTES = 3,

  TYPE_SLICE_BEGIN = 1,
  TYPE_SLICE_END = 2,
  TYPE_INSTANT = 3,
  TYPE_COUNTER = 4,

  RUN_TRACK = 1, /* what the file is */
  FIRST_TRACK = 2,
  MAX_STRINGS_BYTES = 1 << 16, /* of one packet; the next one takes what is more */
};

/* Kinds of strings: each is counted for itself. */
typedef enum
{
  STRING_CATEGORY,
  STRING_NAME,
  STRING_ARGUMENT,
  STRING_VALUE,
  N_STRINGS
} StringKind;

static const unsigned interned_fields[N_STRINGS] = {
  [STRING_CATEGORY] = 1, [STRING_NAME] = 2, [STRING_ARGUMENT] = 3, [STRING_VALUE] = 29, /* InternedData.debug_annotation_string_values
                                                                                         */
};

G_STATIC_ASSERT (N_STRINGS == G_N_ELEMENTS (((PodPerfettoPacket *) NULL)->strings));

/* -- packets ----------------------------------------------------------------------------------- */

static GByteArray *
emptied (GByteArray *message)
{
  return g_byte_array_set_size (message, 0);
}

/* Body to packet, as the file has it. */
static void
finish (PodPerfettoPacket *perfetto, unsigned flags)
{
  pod_proto_uint (perfetto->body, PACKET_SEQUENCE_ID, OUR_SEQUENCE);
  if (flags != 0)
    pod_proto_uint (perfetto->body, PACKET_SEQUENCE_FLAGS, flags);
  pod_proto_message (emptied (perfetto->packet), TRACE_PACKET, perfetto->body);
}

/* @flags: FLAG_NEEDS_STATE where the event refers to strings. */
static void
finish_event (PodPerfettoPacket *perfetto, int64_t at_ns, unsigned flags)
{
  pod_proto_uint (emptied (perfetto->body), PACKET_TIMESTAMP, (uint64_t) at_ns);
  pod_proto_message (perfetto->body, PACKET_TRACK_EVENT, perfetto->event);
  finish (perfetto, flags);
}

/* The track's description stands in event. */
static void
finish_track (PodPerfettoPacket *perfetto)
{
  pod_proto_message (emptied (perfetto->body), PACKET_TRACK_DESCRIPTOR, perfetto->event);
  finish (perfetto, 0);
}

/* -- strings ----------------------------------------------------------------------------------- */

static void
flush_strings (PodPerfettoPacket *perfetto)
{
  const bool is_first = perfetto->head->len == 0;

  pod_proto_message (emptied (perfetto->body), PACKET_INTERNED_DATA, perfetto->new_strings);
  finish (perfetto, is_first ? FLAG_STATE_CLEARED : FLAG_NEEDS_STATE);
  g_byte_array_append (perfetto->head, perfetto->packet->data, perfetto->packet->len);
  emptied (perfetto->new_strings);
}

/* The number of a string, from 1 on. */
static uint64_t
intern (PodPerfettoPacket *perfetto, StringKind kind, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  GHashTable *table = perfetto->strings[kind];
  guint number = GPOINTER_TO_UINT (g_hash_table_lookup (table, valid));

  if (number > 0)
    return number;
  number = g_hash_table_size (table) + 1;
  pod_proto_uint (emptied (perfetto->item), INTERNED_IID, number);
  pod_proto_string (perfetto->item, INTERNED_TEXT, valid);
  pod_proto_message (perfetto->new_strings, interned_fields[kind], perfetto->item);
  g_hash_table_insert (table, g_steal_pointer (&valid), GUINT_TO_POINTER (number));
  if (perfetto->new_strings->len > MAX_STRINGS_BYTES)
    flush_strings (perfetto);
  return number;
}

/* -- operations -------------------------------------------------------------------------------- */

static void
append_uint_argument (PodPerfettoPacket *perfetto, GByteArray *event, uint64_t name, uint64_t value)
{
  pod_proto_uint (emptied (perfetto->item), ANNOTATION_NAME_IID, name);
  pod_proto_uint (perfetto->item, ANNOTATION_UINT, value);
  pod_proto_message (event, EVENT_DEBUG_ANNOTATIONS, perfetto->item);
}

static void
append_string_argument (PodPerfettoPacket *perfetto, GByteArray *event, const char *name,
                        const char *value)
{
  uint64_t name_iid;
  uint64_t value_iid;

  if (value == NULL)
    return;
  name_iid = intern (perfetto, STRING_ARGUMENT, name);
  value_iid = intern (perfetto, STRING_VALUE, value);
  pod_proto_uint (emptied (perfetto->item), ANNOTATION_NAME_IID, name_iid);
  pod_proto_uint (perfetto->item, ANNOTATION_STRING_IID, value_iid);
  pod_proto_message (event, EVENT_DEBUG_ANNOTATIONS, perfetto->item);
}

/* 0 stands for what an op has not. */
static void
append_double_argument (PodPerfettoPacket *perfetto, GByteArray *event, const char *name,
                        double value)
{
  uint64_t name_iid;

  if (value == 0 || !isfinite (value))
    return;
  name_iid = intern (perfetto, STRING_ARGUMENT, name);
  pod_proto_uint (emptied (perfetto->item), ANNOTATION_NAME_IID, name_iid);
  pod_proto_double (perfetto->item, ANNOTATION_DOUBLE, value);
  pod_proto_message (event, EVENT_DEBUG_ANNOTATIONS, perfetto->item);
}

/* All of an event that its op decides. Returns: (transfer full) */
static GByteArray *
make_op (PodPerfettoPacket *perfetto, const PodTimelineOp *op, bool is_wait)
{
  g_autofree char *name = is_wait ? g_strconcat ("wait ", op->name, NULL) : g_strdup (op->name);
  GByteArray *event = g_byte_array_new ();

  pod_proto_uint (event, EVENT_TYPE, TYPE_SLICE_BEGIN);
  pod_proto_uint (event, EVENT_NAME_IID, intern (perfetto, STRING_NAME, name));
  pod_proto_uint (
      event, EVENT_CATEGORY_IIDS,
      intern (perfetto, STRING_CATEGORY, is_wait ? "wait" : pod_category_name (op->category)));
  if (op->layer >= 0)
    append_uint_argument (perfetto, event, intern (perfetto, STRING_ARGUMENT, "layer"),
                          (uint64_t) op->layer);
  append_string_argument (perfetto, event, "axis", op->axis);
  if (is_wait)
    return event;
  append_double_argument (perfetto, event, "flops", op->flops);
  append_double_argument (perfetto, event, "bytes", op->bytes);
  append_string_argument (perfetto, event, "detail", op->detail);
  return event;
}

static void
unref_bytes (void *data)
{
  g_byte_array_unref (data);
}

void
pod_perfetto_packet_init (PodPerfettoPacket *perfetto, const PodTracePlan *plan)
{
  const PodTimeline *timeline = plan->timeline;

  *perfetto = (PodPerfettoPacket){
    .plan = plan,
    .head = g_byte_array_new (),
    .packet = g_byte_array_new (),
    .body = g_byte_array_new (),
    .event = g_byte_array_new (),
    .item = g_byte_array_new (),
    .new_strings = g_byte_array_new (),
    .ops = g_ptr_array_new_with_free_func (unref_bytes),
    .waits = g_ptr_array_new_with_free_func (unref_bytes),
    .tracks_per_rank = 1 + (uint64_t) timeline->n_streams + timeline->series_names->len,
  };
  for (unsigned i = 0; i < N_STRINGS; i++)
    perfetto->strings[i] = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  perfetto->microbatch_name = intern (perfetto, STRING_ARGUMENT, "microbatch");
  for (guint i = 0; i < timeline->ops->len; i++)
    {
      const PodTimelineOp *op = &g_array_index (timeline->ops, PodTimelineOp, i);

      g_ptr_array_add (perfetto->ops, make_op (perfetto, op, false));
      g_ptr_array_add (perfetto->waits, make_op (perfetto, op, true));
    }
  flush_strings (perfetto);
}

void
pod_perfetto_packet_clear (PodPerfettoPacket *perfetto)
{
  g_byte_array_unref (perfetto->head);
  g_byte_array_unref (perfetto->packet);
  g_byte_array_unref (perfetto->body);
  g_byte_array_unref (perfetto->event);
  g_byte_array_unref (perfetto->item);
  g_byte_array_unref (perfetto->new_strings);
  g_ptr_array_unref (perfetto->ops);
  g_ptr_array_unref (perfetto->waits);
  for (unsigned i = 0; i < N_STRINGS; i++)
    g_hash_table_unref (perfetto->strings[i]);
}

/* -- tracks ------------------------------------------------------------------------------------ */

static uint64_t
rank_track (const PodPerfettoPacket *perfetto, uint32_t rank_index)
{
  return FIRST_TRACK + rank_index * perfetto->tracks_per_rank;
}

static uint64_t
stream_track (const PodPerfettoPacket *perfetto, uint32_t rank_index, uint32_t stream)
{
  return rank_track (perfetto, rank_index) + 1 + stream;
}

static uint64_t
series_track (const PodPerfettoPacket *perfetto, uint32_t rank_index, uint32_t series)
{
  return stream_track (perfetto, rank_index, perfetto->plan->timeline->n_streams) + series;
}

void
pod_perfetto_packet_root (PodPerfettoPacket *perfetto)
{
  pod_proto_uint (emptied (perfetto->event), TRACK_UUID, 0);
  pod_proto_uint (perfetto->event, TRACK_PROCESS_ORDERING, PROCESS_ORDERING_EXPLICIT);
  finish_track (perfetto);
}

void
pod_perfetto_packet_rank (PodPerfettoPacket *perfetto, uint32_t rank_index)
{
  const PodTimeline *timeline = perfetto->plan->timeline;
  g_autofree char *name = pod_trace_rank_name (timeline, rank_index);

  pod_proto_uint (emptied (perfetto->item), PROCESS_PID, (uint64_t) rank_index + 1);
  pod_proto_string (perfetto->item, PROCESS_NAME, name);
  pod_proto_uint (emptied (perfetto->event), TRACK_UUID, rank_track (perfetto, rank_index));
  pod_proto_string (perfetto->event, TRACK_NAME, name);
  pod_proto_message (perfetto->event, TRACK_PROCESS, perfetto->item);
  pod_proto_uint (perfetto->event, TRACK_CHILD_ORDERING, ORDERING_EXPLICIT);
  pod_proto_uint (perfetto->event, TRACK_SIBLING_ORDER_RANK,
                  g_array_index (timeline->ranks, PodTimelineRank, rank_index).rank);
  finish_track (perfetto);
}

static void
begin_child (PodPerfettoPacket *perfetto, uint32_t rank_index, uint64_t uuid, const char *name)
{
  pod_proto_uint (emptied (perfetto->event), TRACK_UUID, uuid);
  pod_proto_string (perfetto->event, TRACK_NAME, name);
  pod_proto_uint (perfetto->event, TRACK_PARENT_UUID, rank_track (perfetto, rank_index));
  pod_proto_uint (perfetto->event, TRACK_SIBLING_ORDER_RANK,
                  uuid - rank_track (perfetto, rank_index));
}

void
pod_perfetto_packet_stream (PodPerfettoPacket *perfetto, uint32_t rank_index, uint32_t stream)
{
  begin_child (perfetto, rank_index, stream_track (perfetto, rank_index, stream),
               perfetto->plan->timeline->stream_names[stream]);
  finish_track (perfetto);
}

void
pod_perfetto_packet_series (PodPerfettoPacket *perfetto, uint32_t rank_index, uint32_t series)
{
  const char *unit;
  g_autofree char *name = pod_trace_series_name (
      g_ptr_array_index (perfetto->plan->timeline->series_names, series), &unit);

  begin_child (perfetto, rank_index, series_track (perfetto, rank_index, series), name);
  emptied (perfetto->item);
  if (strcmp (unit, "bytes") == 0)
    pod_proto_uint (perfetto->item, COUNTER_UNIT, UNIT_BYTES);
  else
    pod_proto_string (perfetto->item, COUNTER_UNIT_NAME, unit);
  pod_proto_message (perfetto->event, TRACK_COUNTER, perfetto->item);
  finish_track (perfetto);
}

/* -- events ------------------------------------------------------------------------------------ */

void
pod_perfetto_packet_begin (PodPerfettoPacket *perfetto, const PodTraceSlice *slice, bool is_wait,
                           const uint64_t *flows, unsigned n_flows)
{
  GByteArray *event = emptied (perfetto->event);
  const GByteArray *op
      = g_ptr_array_index (is_wait ? perfetto->waits : perfetto->ops, slice->span->op);

  g_byte_array_append (event, op->data, op->len);
  pod_proto_uint (event, EVENT_TRACK_UUID,
                  stream_track (perfetto, slice->rank_index, slice->stream));
  if (slice->span->microbatch >= 0)
    append_uint_argument (perfetto, event, perfetto->microbatch_name,
                          (uint64_t) slice->span->microbatch);
  for (unsigned i = 0; i < n_flows; i++)
    pod_proto_fixed64 (event, EVENT_FLOW_IDS, flows[i]);
  finish_event (perfetto, is_wait ? slice->wait_ns : slice->start_ns, FLAG_NEEDS_STATE);
}

/* Arrows arrive at the end of their slice: of events with one number a reader takes the earliest as
 * the start of the arrow, and send and receive may well begin together. */
void
pod_perfetto_packet_end (PodPerfettoPacket *perfetto, const PodTraceSlice *slice, int64_t at_ns,
                         const uint64_t *flows, unsigned n_flows)
{
  GByteArray *event = emptied (perfetto->event);

  pod_proto_uint (event, EVENT_TYPE, TYPE_SLICE_END);
  pod_proto_uint (event, EVENT_TRACK_UUID,
                  stream_track (perfetto, slice->rank_index, slice->stream));
  for (unsigned i = 0; i < n_flows; i++)
    pod_proto_fixed64 (event, EVENT_TERMINATING_FLOW_IDS, flows[i]);
  finish_event (perfetto, at_ns, 0);
}

void
pod_perfetto_packet_sample (PodPerfettoPacket *perfetto, uint32_t rank_index, uint32_t series,
                            int64_t at_ns, double value)
{
  pod_proto_uint (emptied (perfetto->event), EVENT_TYPE, TYPE_COUNTER);
  pod_proto_uint (perfetto->event, EVENT_TRACK_UUID, series_track (perfetto, rank_index, series));
  pod_proto_double (perfetto->event, EVENT_DOUBLE_COUNTER_VALUE, value);
  finish_event (perfetto, at_ns, 0);
}

/* -- what the file is -------------------------------------------------------------------------- */

/* Names and values stand in the event itself: they come once. */
static void
append_metadata (PodPerfettoPacket *perfetto, const char *name, JsonNode *value)
{
  pod_proto_string (emptied (perfetto->item), ANNOTATION_NAME, name);
  if (json_node_get_value_type (value) == JSON_VALUE_STRING)
    pod_proto_string (perfetto->item, ANNOTATION_STRING, json_node_get_string (value));
  else
    pod_proto_uint (perfetto->item, ANNOTATION_INT, (uint64_t) json_node_get_int (value));
  pod_proto_message (perfetto->event, EVENT_DEBUG_ANNOTATIONS, perfetto->item);
}

void
pod_perfetto_packet_run_track (PodPerfettoPacket *perfetto)
{
  pod_proto_uint (emptied (perfetto->event), TRACK_UUID, RUN_TRACK);
  pod_proto_string (perfetto->event, TRACK_NAME, "podsim");
  finish_track (perfetto);
}

void
pod_perfetto_packet_run (PodPerfettoPacket *perfetto, JsonObject *metadata)
{
  JsonObjectIter iter;
  const char *key;
  JsonNode *value;

  pod_proto_uint (emptied (perfetto->event), EVENT_TYPE, TYPE_INSTANT);
  pod_proto_string (perfetto->event, EVENT_NAME, "run");
  pod_proto_uint (perfetto->event, EVENT_TRACK_UUID, RUN_TRACK);
  json_object_iter_init_ordered (&iter, metadata);
  while (json_object_iter_next_ordered (&iter, &key, &value))
    if (JSON_NODE_HOLDS_VALUE (value))
      append_metadata (perfetto, key, value);
  finish_event (perfetto, 0, 0);
}
