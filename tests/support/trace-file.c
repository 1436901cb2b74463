#include "support/trace-file.h"

#include <math.h>
#include <string.h>

void
trace_violate (TraceFile *trace, const char *name, const char *format, ...)
{
  va_list arguments;

  for (guint i = 0; i < trace->rules->len; i++)
    {
      TraceRule *broken = g_ptr_array_index (trace->rules, i);

      if (strcmp (broken->name, name) == 0 && broken->why == NULL)
        {
          va_start (arguments, format);
          broken->why = g_strdup_vprintf (format, arguments);
          va_end (arguments);
        }
    }
}

static const char *
intern (TraceFile *trace, const StrictValue *value)
{
  g_autofree char *text = strict_value_text (value);

  return text != NULL ? g_string_chunk_insert_const (trace->strings, text) : NULL;
}

bool
trace_read_whole (const StrictValue *value, int64_t *out)
{
  g_autofree char *text = g_strndup (value->text, value->n_bytes);

  return g_ascii_string_to_signed (text, 10, -(INT64_C (1) << 53), INT64_C (1) << 53, out, NULL);
}

static bool
has_three_decimals (const StrictValue *value)
{
  const char *point = memchr (value->text, '.', value->n_bytes);

  if (point == NULL || (size_t) (point - value->text) + 4 != value->n_bytes)
    return false;
  for (size_t i = 0; i < value->n_bytes; i++)
    if (value->text + i != point && !g_ascii_isdigit (value->text[i]))
      return false;
  return true;
}

/* As a viewer reads it: a double in microseconds, rounded to nanoseconds. */
static int64_t
read_time (TraceFile *trace, guint index, const char *key, const StrictValue *value)
{
  g_autofree char *text = g_strndup (value->text, value->n_bytes);
  char *end;
  double us = g_ascii_strtod (text, &end);

  if (value->text[0] == '"' || *end != '\0' || !isfinite (us))
    {
      trace_violate (trace, "three-decimals", "event %u: %s is no number: %.40s", index, key, text);
      return 0;
    }
  if (!has_three_decimals (value))
    trace_violate (trace, "three-decimals", "event %u: %s is written %.40s", index, key, text);
  if (us < 0)
    trace_violate (trace, "no-negative-times", "event %u: %s = %.40s", index, key, text);
  if (fabs (us) >= 0x1p43)
    {
      trace_violate (trace, "nanoseconds-survive", "event %u: %s = %.40s, past 2^43 us", index, key,
                     text);
      return 0;
    }
  return llround (us * 1000);
}

static void
read_id (TraceFile *trace, guint index, const char *key, const StrictValue *value, int64_t *out)
{
  if (!trace_read_whole (value, out))
    trace_violate (trace, "ids-whole-and-not-0", "event %u: %s = %.*s", index, key,
                   (int) MIN (value->n_bytes, 40), value->text);
}

static void
read_member (TraceFile *trace, guint index, TraceEvent *event, const StrictValue *key,
             const StrictValue *value)
{
  if (strict_value_is (key, "ph") && value->n_bytes == 3)
    event->phase = value->text[1];
  else if (strict_value_is (key, "pid"))
    read_id (trace, index, "pid", value, &event->pid);
  else if (strict_value_is (key, "tid"))
    read_id (trace, index, "tid", value, &event->tid);
  else if (strict_value_is (key, "id"))
    read_id (trace, index, "id", value, &event->id);
  else if (strict_value_is (key, "ts"))
    {
      event->has_ts = true;
      event->ts_ns = read_time (trace, index, "ts", value);
    }
  else if (strict_value_is (key, "dur"))
    event->dur_ns = read_time (trace, index, "dur", value);
  else if (strict_value_is (key, "name"))
    event->name = intern (trace, value);
  else if (strict_value_is (key, "cat"))
    event->category = intern (trace, value);
  else if (strict_value_is (key, "bp"))
    event->is_bound = strict_value_is (value, "e");
  else if (strict_value_is (key, "args"))
    event->args = *value;
}

static bool
read_event (TraceFile *trace)
{
  TraceEvent event = { 0 };
  StrictValue key;
  StrictValue value;
  bool is_first = true;

  if (!strict_json_enter (&trace->json, '{'))
    return false;
  while (strict_json_next (&trace->json, '{', &is_first, &key))
    {
      if (!strict_json_value (&trace->json, &value))
        return false;
      read_member (trace, trace->events->len, &event, &key, &value);
    }
  g_array_append_val (trace->events, event);
  return trace->json.why == NULL;
}

static bool
read_events (TraceFile *trace)
{
  StrictValue key;
  bool is_first = true;

  if (!strict_json_enter (&trace->json, '['))
    return false;
  while (strict_json_next (&trace->json, '[', &is_first, &key))
    if (!read_event (trace))
      return false;
  return trace->json.why == NULL;
}

bool
trace_get_member (const StrictValue *object, const char *name, StrictValue *out)
{
  StrictJson json;
  StrictValue key;
  StrictValue value;
  bool is_first = true;
  bool is_found = false;

  if (object->text == NULL || object->text[0] != '{')
    return false;
  strict_json_init (&json, object->text, object->n_bytes);
  strict_json_enter (&json, '{');
  while (!is_found && strict_json_next (&json, '{', &is_first, &key)
         && strict_json_value (&json, &value))
    if (strict_value_is (&key, name))
      {
        *out = value;
        is_found = true;
      }
  strict_json_clear (&json);
  return is_found;
}

static void
read_top_member (TraceFile *trace, const StrictValue *key, const StrictValue *value)
{
  StrictValue left_out;
  int64_t n_left_out;

  if (strict_value_is (key, "displayTimeUnit") && !strict_value_is (value, "ms")
      && !strict_value_is (value, "ns"))
    trace_violate (trace, "display-unit", "displayTimeUnit is %.*s, neither \"ms\" nor \"ns\"",
                   (int) MIN (value->n_bytes, 40), value->text);
  if (strict_value_is (key, "otherData") && trace_get_member (value, "n_left_out", &left_out))
    trace->has_left_out = trace_read_whole (&left_out, &n_left_out) && n_left_out >= 0;
}

bool
trace_file_read (TraceFile *trace)
{
  StrictValue key;
  StrictValue value;
  bool is_first = true;

  if (strict_json_peek (&trace->json) == '[')
    return read_events (trace) && strict_json_end (&trace->json);
  if (!strict_json_enter (&trace->json, '{'))
    return false;
  while (strict_json_next (&trace->json, '{', &is_first, &key))
    if (strict_value_is (&key, "traceEvents"))
      {
        if (!read_events (trace))
          return false;
      }
    else
      {
        if (!strict_json_value (&trace->json, &value))
          return false;
        read_top_member (trace, &key, &value);
      }
  return trace->json.why == NULL && strict_json_end (&trace->json);
}
