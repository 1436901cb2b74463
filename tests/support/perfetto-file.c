#include <string.h>

#include "base/units.h"
#include "support/trace-facts-private.h"

/* A reader of Perfetto traces, for those that podsim writes: what it does not know is an error. */

/* -- the wire ---------------------------------------------------------------------------------- */

typedef struct
{
  const uint8_t *at;
  const uint8_t *end;
} Message;

typedef struct
{
  unsigned number;
  unsigned wire; /* 0 varint, 1 eight bytes, 2 bytes */
  uint64_t value;
  Message bytes;
} Field;

static bool
read_varint (Message *message, uint64_t *out)
{
  *out = 0;
  for (unsigned shift = 0; shift < 64 && message->at < message->end; shift += 7)
    {
      const uint8_t byte = *message->at++;

      *out |= (uint64_t) (byte & 0x7f) << shift;
      if (byte < 0x80)
        return true;
    }
  return false;
}

/* False at the end, and where the bytes are no field: then at is not end. */
static bool
read_field (Message *message, Field *out)
{
  Message rest = *message;
  uint64_t key;

  *out = (Field){ 0 };
  if (rest.at == rest.end || !read_varint (&rest, &key))
    return false;
  out->number = (unsigned) (key >> 3);
  out->wire = key & 7;
  if (out->wire == 0 && read_varint (&rest, &out->value))
    message->at = rest.at;
  else if (out->wire == 1 && rest.end - rest.at >= 8)
    {
      memcpy (&out->value, rest.at, 8);
      out->value = GUINT64_FROM_LE (out->value);
      message->at = rest.at + 8;
    }
  else if (out->wire == 2 && read_varint (&rest, &out->value)
           && out->value <= (uint64_t) (rest.end - rest.at))
    {
      out->bytes = (Message){ rest.at, rest.at + out->value };
      message->at = out->bytes.end;
    }
  else
    return false;
  return true;
}

static char *
text_of (const Field *field)
{
  return g_strndup ((const char *) field->bytes.at, (gsize) (field->bytes.end - field->bytes.at));
}

static double
double_of (const Field *field)
{
  double value;

  memcpy (&value, &field->value, sizeof value);
  return value;
}

/* -- what a packet holds ----------------------------------------------------------------------- */

typedef struct
{
  char *name;
  char *unit; /* of a counter, else NULL */
  uint64_t parent;
  GArray *open; /* Begun, slices that have not ended */
} Track;

typedef struct
{
  int64_t at_ns;
  guint index; /* in the file */
  unsigned type;
  uint64_t track;
  char *name;
  char *category;
  char *arguments;
  double value;
  GArray *departures; /* uint64_t */
  GArray *arrivals;
} Event;

typedef struct
{
  int64_t at_ns;
  char *what;
  char *place; /* "rank 0 | pp | message" */
} Begun;

typedef struct
{
  GHashTable *tracks;     /* uuid to Track */
  GHashTable *strings[4]; /* number to text: categories, names, arguments, values */
  GPtrArray *events;      /* Event */
  GHashTable *departures; /* arrow to its place */
  GPtrArray *facts;
  char *why;
} Reader;

static void G_GNUC_PRINTF (2, 3) fail (Reader *reader, const char *format, ...)
{
  va_list arguments;

  if (reader->why != NULL)
    return;
  va_start (arguments, format);
  reader->why = g_strdup_vprintf (format, arguments);
  va_end (arguments);
}

/* After a walk over the fields of a message. */
static void
check_end (Reader *reader, const Message *message, const char *what)
{
  if (message->at != message->end)
    fail (reader, "%s: bytes that are no field", what);
}

static void
clear_begun (void *data)
{
  g_free (((Begun *) data)->what);
  g_free (((Begun *) data)->place);
}

static void
free_track (void *data)
{
  Track *track = data;

  g_free (track->name);
  g_free (track->unit);
  g_array_unref (track->open);
  g_free (track);
}

static void
free_event (void *data)
{
  Event *event = data;

  g_free (event->name);
  g_free (event->category);
  g_free (event->arguments);
  g_array_unref (event->departures);
  g_array_unref (event->arrivals);
  g_free (event);
}

/* -- strings ----------------------------------------------------------------------------------- */

static void
read_string (Reader *reader, GHashTable *strings, Message message)
{
  Field field;
  uint64_t number = 0;
  g_autofree char *text = NULL;

  while (read_field (&message, &field))
    if (field.number == 1 && field.wire == 0)
      number = field.value;
    else if (field.number == 2 && field.wire == 2 && text == NULL)
      text = text_of (&field);
    else
      fail (reader, "string: field %u", field.number);
  check_end (reader, &message, "string");
  if (number == 0 || text == NULL || !g_utf8_validate (text, -1, NULL))
    fail (reader, "string %" G_GUINT64_FORMAT " is none", number);
  else if (!g_hash_table_insert (strings, GUINT_TO_POINTER ((guint) number),
                                 g_steal_pointer (&text)))
    fail (reader, "string %" G_GUINT64_FORMAT " comes twice", number);
}

static void
read_strings (Reader *reader, Message message)
{
  static const unsigned fields[] = { 1, 2, 3, 29 };
  Field field;

  while (read_field (&message, &field))
    {
      unsigned kind = 0;

      while (kind < G_N_ELEMENTS (fields) && fields[kind] != field.number)
        kind++;
      if (kind == G_N_ELEMENTS (fields) || field.wire != 2)
        fail (reader, "strings: field %u", field.number);
      else
        read_string (reader, reader->strings[kind], field.bytes);
    }
  check_end (reader, &message, "strings");
}

static const char *
string_at (Reader *reader, unsigned kind, uint64_t number)
{
  const char *text = g_hash_table_lookup (reader->strings[kind], GUINT_TO_POINTER ((guint) number));

  if (text == NULL)
    fail (reader, "string %" G_GUINT64_FORMAT " of kind %u is not known", number, kind);
  return text != NULL ? text : "?";
}

/* -- tracks ------------------------------------------------------------------------------------ */

/* A message with fields that only say how a track is shown. */
static void
read_counter (Reader *reader, Track *track, Message message)
{
  Field field;

  track->unit = g_strdup ("value");
  while (read_field (&message, &field))
    {
      g_free (track->unit);
      track->unit = field.number == 3 && field.value == 3 ? g_strdup ("bytes")
                    : field.number == 6                   ? text_of (&field)
                                                          : g_strdup ("?");
    }
  check_end (reader, &message, "counter");
}

static void
read_track (Reader *reader, Message message)
{
  Track *track = g_new0 (Track, 1);
  Field field;
  uint64_t uuid = UINT64_MAX;

  track->open = g_array_new (FALSE, FALSE, sizeof (Begun));
  g_array_set_clear_func (track->open, clear_begun);
  while (read_field (&message, &field))
    switch (field.number)
      {
      case 1:
        uuid = field.value;
        break;
      case 2:
        g_free (track->name);
        track->name = text_of (&field);
        break;
      case 5:
        track->parent = field.value;
        break;
      case 8:
        read_counter (reader, track, field.bytes);
        break;
      case 3:  /* process */
      case 11: /* how children are ordered */
      case 12: /* place among siblings */
      case 19: /* how processes are ordered */
        break;
      default:
        fail (reader, "track: field %u", field.number);
      }
  check_end (reader, &message, "track");
  if (uuid == UINT64_MAX || (uuid > 0 && track->name == NULL))
    fail (reader, "track %" G_GUINT64_FORMAT " without uuid or name", uuid);
  if (track->parent > 0
      && !g_hash_table_contains (reader->tracks, GUINT_TO_POINTER ((guint) track->parent)))
    fail (reader, "track %" G_GUINT64_FORMAT " before its parent", uuid);
  if (!g_hash_table_insert (reader->tracks, GUINT_TO_POINTER ((guint) uuid), track))
    fail (reader, "track %" G_GUINT64_FORMAT " comes twice", uuid);
}

static Track *
track_at (Reader *reader, uint64_t uuid)
{
  return g_hash_table_lookup (reader->tracks, GUINT_TO_POINTER ((guint) uuid));
}

/* -- events ------------------------------------------------------------------------------------ */

static char *
read_argument (Reader *reader, Message message)
{
  g_autofree char *name = NULL;
  g_autofree char *value = NULL;
  Field field;

  while (read_field (&message, &field))
    if (field.number == 1)
      name = g_strdup (string_at (reader, 2, field.value));
    else if (field.number == 10)
      name = text_of (&field);
    else if (field.number == 3 || field.number == 4)
      value = g_strdup_printf ("%" G_GINT64_FORMAT, (int64_t) field.value);
    else if (field.number == 5)
      value = pod_format_double (double_of (&field));
    else if (field.number == 6)
      value = text_of (&field);
    else if (field.number == 17)
      value = g_strdup (string_at (reader, 3, field.value));
    else
      fail (reader, "argument: field %u", field.number);
  check_end (reader, &message, "argument");
  return g_strdup_printf ("%s=%s", name != NULL ? name : "?", value != NULL ? value : "?");
}

static void
read_event (Reader *reader, Message message, int64_t at_ns)
{
  Event *event = g_new0 (Event, 1);
  g_autoptr (GPtrArray) arguments = g_ptr_array_new_with_free_func (g_free);
  Field field;

  event->at_ns = at_ns;
  event->index = reader->events->len;
  event->departures = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  event->arrivals = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  while (read_field (&message, &field))
    switch (field.number)
      {
      case 3:
        event->category = g_strdup (string_at (reader, 0, field.value));
        break;
      case 4:
        g_ptr_array_add (arguments, read_argument (reader, field.bytes));
        break;
      case 9:
        event->type = (unsigned) field.value;
        break;
      case 10:
        event->name = g_strdup (string_at (reader, 1, field.value));
        break;
      case 11:
        event->track = field.value;
        break;
      case 23:
        event->name = text_of (&field);
        break;
      case 44:
        event->value = double_of (&field);
        break;
      case 47:
        g_array_append_val (event->departures, field.value);
        break;
      case 48:
        g_array_append_val (event->arrivals, field.value);
        break;
      default:
        fail (reader, "event: field %u", field.number);
      }
  check_end (reader, &message, "event");
  event->arguments = trace_facts_join (arguments);
  if (track_at (reader, event->track) == NULL)
    fail (reader, "event on track %" G_GUINT64_FORMAT ", which is not known", event->track);
  g_ptr_array_add (reader->events, event);
}

static void
read_packet (Reader *reader, Message message, bool is_first)
{
  Message again = message;
  Field field;
  uint64_t at_ns = 0;
  uint64_t flags = 0;
  uint64_t sequence = 0;

  while (read_field (&message, &field))
    if (field.number == 8)
      at_ns = field.value;
    else if (field.number == 10)
      sequence = field.value;
    else if (field.number == 13)
      flags = field.value;
  check_end (reader, &message, "packet");
  if (sequence != 1 || flags > 2 || (flags == 1) != is_first)
    fail (reader, "packet of sequence %" G_GUINT64_FORMAT " with flags %" G_GUINT64_FORMAT,
          sequence, flags);
  while (read_field (&again, &field))
    if (field.number == 11)
      read_event (reader, field.bytes, (int64_t) at_ns);
    else if (field.number == 12)
      read_strings (reader, field.bytes);
    else if (field.number == 60)
      read_track (reader, field.bytes);
    else if (field.number != 8 && field.number != 10 && field.number != 13)
      fail (reader, "packet: field %u", field.number);
}

/* -- in the order of time ---------------------------------------------------------------------- */

static gint
compare_events (gconstpointer a, gconstpointer b)
{
  const Event *x = *(const Event *const *) a;
  const Event *y = *(const Event *const *) b;

  if (x->at_ns != y->at_ns)
    return x->at_ns < y->at_ns ? -1 : 1;
  return x->index < y->index ? -1 : 1;
}

static void
begin_slice (Reader *reader, const Event *event, Track *track)
{
  const Track *rank = track_at (reader, track->parent);
  const Begun begun = {
    .at_ns = event->at_ns,
    .what
    = g_strdup_printf ("slice %s | %s | %s | %s | %" G_GINT64_FORMAT " | {%s}", rank->name,
                       track->name, event->category, event->name, event->at_ns, event->arguments),
    .place = g_strdup_printf ("%s | %s | %s", rank->name, track->name, event->name),
  };

  if (track->open->len > 0)
    fail (reader, "%s begins inside of %s", begun.what, g_array_index (track->open, Begun, 0).what);
  for (guint i = 0; i < event->departures->len; i++)
    g_hash_table_insert (reader->departures,
                         GUINT_TO_POINTER ((guint) g_array_index (event->departures, uint64_t, i)),
                         g_strdup (begun.place));
  g_array_append_val (track->open, begun);
}

static void
end_slice (Reader *reader, const Event *event, Track *track)
{
  const Begun *begun = NULL;

  if (track->open->len == 0)
    {
      fail (reader, "%s: nothing is open at %" G_GINT64_FORMAT " ns", track->name, event->at_ns);
      return;
    }
  begun = &g_array_index (track->open, Begun, track->open->len - 1);
  for (guint i = 0; i < event->arrivals->len; i++)
    {
      const guint id = (guint) g_array_index (event->arrivals, uint64_t, i);
      const char *from = g_hash_table_lookup (reader->departures, GUINT_TO_POINTER (id));

      if (from == NULL)
        fail (reader, "arrow %u arrives before it leaves", id);
      trace_fact_add (reader->facts, g_strdup_printf ("arrow %u: %s > %s", id, from, begun->place),
                      0);
    }
  trace_fact_add (reader->facts, g_strdup (begun->what), event->at_ns - begun->at_ns);
  g_array_set_size (track->open, track->open->len - 1);
}

static void
take_sample (Reader *reader, const Event *event, const Track *track)
{
  g_autofree char *value = pod_format_double (event->value);

  trace_fact_add (reader->facts,
                  g_strdup_printf ("sample %s | %s | %" G_GINT64_FORMAT " | %s=%s",
                                   track_at (reader, track->parent)->name, track->name,
                                   event->at_ns, track->unit, value),
                  0);
}

static void
take_run (Reader *reader, const Event *event)
{
  g_auto (GStrv) arguments = g_strsplit (event->arguments, ", ", -1);

  for (unsigned i = 0; arguments[i] != NULL; i++)
    trace_fact_add (reader->facts, g_strdup_printf ("run %s", arguments[i]), 0);
}

static void
take_event (Reader *reader, const Event *event)
{
  Track *track = track_at (reader, event->track);

  if (event->type == 3)
    take_run (reader, event);
  else if (track->parent == 0 || (track->unit != NULL) != (event->type == 4))
    fail (reader, "event of type %u on %s", event->type, track->name);
  else if (event->type == 1)
    begin_slice (reader, event, track);
  else if (event->type == 2)
    end_slice (reader, event, track);
  else if (event->type == 4)
    take_sample (reader, event, track);
  else
    fail (reader, "event of type %u", event->type);
}

static void
check_closed (Reader *reader)
{
  GHashTableIter iter;
  void *track;

  g_hash_table_iter_init (&iter, reader->tracks);
  while (g_hash_table_iter_next (&iter, NULL, &track))
    if (((Track *) track)->open->len > 0)
      fail (reader, "%s never ends", g_array_index (((Track *) track)->open, Begun, 0).what);
}

static void
read_all (Reader *reader, Message file)
{
  bool is_first = true;
  Field field;

  for (; reader->why == NULL && read_field (&file, &field); is_first = false)
    if (field.number == 1 && field.wire == 2)
      read_packet (reader, field.bytes, is_first);
    else
      fail (reader, "file: field %u", field.number);
  if (reader->why == NULL)
    check_end (reader, &file, "file");
  g_ptr_array_sort (reader->events, compare_events);
  for (guint i = 0; reader->why == NULL && i < reader->events->len; i++)
    take_event (reader, g_ptr_array_index (reader->events, i));
  if (reader->why == NULL)
    check_closed (reader);
}

GPtrArray *
trace_facts_of_perfetto (const void *data, size_t n_bytes, char **why)
{
  Reader reader = { .tracks = g_hash_table_new_full (NULL, NULL, NULL, free_track),
                    .events = g_ptr_array_new_with_free_func (free_event),
                    .departures = g_hash_table_new_full (NULL, NULL, NULL, g_free),
                    .facts = g_ptr_array_new_with_free_func (trace_fact_free) };

  for (unsigned i = 0; i < G_N_ELEMENTS (reader.strings); i++)
    reader.strings[i] = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  read_all (&reader, (Message){ data, (const uint8_t *) data + n_bytes });
  g_hash_table_unref (reader.tracks);
  g_hash_table_unref (reader.departures);
  g_ptr_array_unref (reader.events);
  for (unsigned i = 0; i < G_N_ELEMENTS (reader.strings); i++)
    g_hash_table_unref (reader.strings[i]);
  trace_facts_sort (reader.facts);
  if (reader.why == NULL)
    return reader.facts;
  *why = reader.why;
  g_ptr_array_unref (reader.facts);
  return NULL;
}
