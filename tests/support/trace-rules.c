#include "support/trace-rules.h"

#include <string.h>

#include "support/trace-file.h"

enum
{
  MAX_EVENTS = 1000000,
  MAX_BYTES = 100000000,
};

static void
rule_free (gpointer data)
{
  TraceRule *rule = data;

  g_free (rule->why);
  g_free (rule);
}

/* Adds the rule, kept until a violation is told; of those the first stays. */
static void
rule (TraceFile *trace, const char *name)
{
  TraceRule *added = g_new0 (TraceRule, 1);

  added->name = name;
  g_ptr_array_add (trace->rules, added);
}

static const TraceEvent *
event_at (const TraceFile *trace, guint i)
{
  return &g_array_index (trace->events, TraceEvent, i);
}

/* ---- rules on single events ---- */

static void
check_order (TraceFile *trace)
{
  bool has_other = false;

  for (guint i = 0; i < trace->events->len; i++)
    {
      const TraceEvent *event = event_at (trace, i);
      bool is_metadata = event->phase == 'M';

      if (event->phase == '\0')
        trace_violate (trace, "phases-known", "event %u has no phase", i);
      else if (strchr ("MXsfC", event->phase) == NULL)
        trace_violate (trace, "phases-known", "event %u: phase %c, which viewers treat differently",
                       i, event->phase);
      if (is_metadata && has_other)
        trace_violate (trace, "metadata-first", "event %u is metadata behind other events", i);
      if (is_metadata && event->has_ts)
        trace_violate (trace, "metadata-without-time", "event %u has a ts", i);
      if (!is_metadata && !event->has_ts)
        trace_violate (trace, "no-negative-times", "event %u has no ts", i);
      if (event->pid == 0 || event->tid == 0)
        trace_violate (trace, "ids-whole-and-not-0",
                       "event %u: pid %" G_GINT64_FORMAT ", tid %" G_GINT64_FORMAT, i, event->pid,
                       event->tid);
      if (event->name == NULL)
        trace_violate (trace, "names-given", "event %u has no name", i);
      has_other |= !is_metadata;
    }
}

static void
check_sizes (TraceFile *trace, size_t n_bytes)
{
  guint n_slices = 0;

  for (guint i = 0; i < trace->events->len; i++)
    if (event_at (trace, i)->phase == 'X')
      n_slices++;
  if (n_slices == 0)
    trace_violate (trace, "slices-there", "no slice among %u events", trace->events->len);
  if (trace->events->len >= MAX_EVENTS)
    trace_violate (trace, "under-1000000-events", "%u events", trace->events->len);
  if (n_bytes >= MAX_BYTES)
    trace_violate (trace, "under-100-MB", "%zu bytes", n_bytes);
  if (!trace->has_left_out)
    trace_violate (trace, "left-out-stored", "otherData has no whole number n_left_out");
}

static guint
hash_number (gconstpointer key)
{
  return g_int64_hash (key);
}

static void
check_threads (TraceFile *trace)
{
  /* tid to the first event that has it: both keys and values are borrowed from the events */
  g_autoptr (GHashTable) threads = g_hash_table_new (hash_number, g_int64_equal);

  for (guint i = 0; i < trace->events->len; i++)
    {
      const TraceEvent *event = event_at (trace, i);
      const TraceEvent *first = g_hash_table_lookup (threads, &event->tid);

      if (first == NULL)
        g_hash_table_insert (threads, (gpointer) &event->tid, (gpointer) event);
      else if (first->pid != event->pid)
        trace_violate (trace, "tids-of-one-pid",
                       "event %u: tid %" G_GINT64_FORMAT " is under pid %" G_GINT64_FORMAT
                       " and %" G_GINT64_FORMAT,
                       i, event->tid, first->pid, event->pid);
    }
}

/* ---- lanes, and flows on them ---- */

typedef struct
{
  int64_t pid;
  int64_t tid;
  int64_t ns;
  int64_t end_ns; /* of a slice */
  bool is_point;
  guint event;
} Mark;

static int
compare_numbers (int64_t a, int64_t b)
{
  return (a > b) - (a < b);
}

/* By lane, then time; at one instant slices before points, the longer slice first. */
static int
compare_marks (gconstpointer a_data, gconstpointer b_data)
{
  const Mark *a = a_data;
  const Mark *b = b_data;
  int order = compare_numbers (a->pid, b->pid);

  if (order == 0)
    order = compare_numbers (a->tid, b->tid);
  if (order == 0)
    order = compare_numbers (a->ns, b->ns);
  if (order == 0)
    order = a->is_point - b->is_point;
  if (order == 0)
    order = compare_numbers (b->end_ns, a->end_ns);
  return order != 0 ? order : compare_numbers (a->event, b->event);
}

static GArray *
sorted_marks (const TraceFile *trace)
{
  GArray *marks = g_array_new (FALSE, FALSE, sizeof (Mark));

  for (guint i = 0; i < trace->events->len; i++)
    {
      const TraceEvent *event = event_at (trace, i);
      Mark mark = { .pid = event->pid, .tid = event->tid, .ns = event->ts_ns, .event = i };

      if (event->phase != 'X' && event->phase != 's' && event->phase != 'f')
        continue;
      mark.is_point = event->phase != 'X';
      mark.end_ns = mark.ns + (mark.is_point ? 0 : event->dur_ns);
      g_array_append_val (marks, mark);
    }
  g_array_sort (marks, compare_marks);
  return marks;
}

/* The end of @slice when ts and dur are added as doubles, counted from @base_ns, against the start
 * of
 * @next, which is not before it: a sum that is too big in its last bit makes speedscope nest @next
 * inside @slice, which it then never closes. */
static bool
sum_passes (const Mark *slice, const Mark *next, int64_t base_ns)
{
  double base_us = (double) base_ns / 1000;
  double start_us = (double) slice->ns / 1000 - base_us;

  return start_us + (double) (slice->end_ns - slice->ns) / 1000
         > (double) next->ns / 1000 - base_us;
}

/* A slice [ns, end_ns) against those that are open, innermost last; @first is the first of its
 * lane. */
static void
check_slice (TraceFile *trace, const Mark *mark, const Mark *first, GPtrArray *open)
{
  for (; open->len > 0; g_ptr_array_set_size (open, (gint) open->len - 1))
    {
      const Mark *top = g_ptr_array_index (open, open->len - 1);

      if (top->end_ns > mark->ns)
        {
          if (mark->end_ns > top->end_ns)
            trace_violate (trace, "lanes-nested",
                           "event %u (%s): [%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
                           ") ns overlaps a slice of its lane that ends at %" G_GINT64_FORMAT,
                           mark->event, event_at (trace, mark->event)->name, mark->ns, mark->end_ns,
                           top->end_ns);
          break;
        }
      if (sum_passes (top, mark, 0) || sum_passes (top, mark, first->ns))
        trace_violate (trace, "sums-keep-order",
                       "event %u (%s): ts + dur is later, as a double, than the start of event %u",
                       top->event, event_at (trace, top->event)->name, mark->event);
    }
  g_ptr_array_add (open, (gpointer) mark);
}

static void
check_lanes (TraceFile *trace)
{
  g_autoptr (GArray) marks = sorted_marks (trace);
  g_autoptr (GPtrArray) open = g_ptr_array_new ();
  const Mark *first = NULL;
  int64_t last_end_ns = INT64_MIN;

  for (guint i = 0; i < marks->len; i++)
    {
      const Mark *mark = &g_array_index (marks, Mark, i);

      if (first == NULL || mark->pid != first->pid || mark->tid != first->tid)
        {
          first = mark;
          g_ptr_array_set_size (open, 0);
          last_end_ns = INT64_MIN;
        }
      if (!mark->is_point)
        {
          check_slice (trace, mark, first, open);
          last_end_ns = MAX (last_end_ns, mark->end_ns);
        }
      /* A slice that began before or here and is not over holds the point */
      else if (mark->ns >= last_end_ns)
        trace_violate (trace, "flows-inside-slices",
                       "event %u: no slice of pid %" G_GINT64_FORMAT ", tid %" G_GINT64_FORMAT
                       " is open at %" G_GINT64_FORMAT " ns",
                       mark->event, mark->pid, mark->tid, mark->ns);
    }
}

static void
check_flow_end (TraceFile *trace, guint index, const TraceEvent *start, const TraceEvent *end)
{
  if (start == NULL)
    trace_violate (trace, "flows-paired",
                   "event %u: no start of flow %" G_GINT64_FORMAT " before it", index, end->id);
  else if (g_strcmp0 (start->name, end->name) != 0
           || g_strcmp0 (start->category, end->category) != 0)
    trace_violate (trace, "flows-paired",
                   "event %u: flow %" G_GINT64_FORMAT " starts and ends with different names",
                   index, end->id);
  else if (start->ts_ns > end->ts_ns)
    trace_violate (trace, "flows-paired", "event %u: flow %" G_GINT64_FORMAT " goes back in time",
                   index, end->id);
  if (!end->is_bound)
    trace_violate (trace, "flows-paired", "event %u: the end of a flow is not bound to its slice",
                   index);
}

static void
check_flows (TraceFile *trace)
{
  /* id to the start that has not ended yet, and every id that was seen */
  g_autoptr (GHashTable) started = g_hash_table_new (hash_number, g_int64_equal);
  g_autoptr (GHashTable) seen = g_hash_table_new (hash_number, g_int64_equal);

  for (guint i = 0; i < trace->events->len; i++)
    {
      const TraceEvent *event = event_at (trace, i);

      if (event->phase != 's' && event->phase != 'f')
        continue;
      if (event->id == 0)
        trace_violate (trace, "flow-ids-unique", "event %u: a flow without id", i);
      if (event->phase == 'f')
        {
          check_flow_end (trace, i, g_hash_table_lookup (started, &event->id), event);
          g_hash_table_remove (started, &event->id);
          continue;
        }
      if (!g_hash_table_add (seen, (gpointer) &event->id))
        trace_violate (trace, "flow-ids-unique", "event %u: flow %" G_GINT64_FORMAT " starts again",
                       i, event->id);
      g_hash_table_insert (started, (gpointer) &event->id, (gpointer) event);
    }
  if (g_hash_table_size (started) > 0)
    trace_violate (trace, "flows-paired", "%u flows never end", g_hash_table_size (started));
}

/* ---- names, order and counters ---- */

typedef struct
{
  int64_t rank; /* the number behind "rank ", -1 none */
  int64_t sort_index;
  bool has_name;
  bool has_sort_index;
} Place;

/* "process_name" and its like for (pid, 0), "thread_name" for (pid, tid). */
static Place *
place_of (GHashTable *places, int64_t pid, int64_t tid)
{
  g_autofree char *key = g_strdup_printf ("%" G_GINT64_FORMAT " %" G_GINT64_FORMAT, pid, tid);
  Place *place = g_hash_table_lookup (places, key);

  if (place == NULL)
    {
      place = g_new0 (Place, 1);
      place->rank = -1;
      g_hash_table_insert (places, g_steal_pointer (&key), place);
    }
  return place;
}

static void
read_name (TraceFile *trace, guint index, const TraceEvent *event, Place *place)
{
  StrictValue value;
  g_autofree char *name = NULL;

  if (trace_get_member (&event->args, "name", &value))
    name = strict_value_text (&value);
  if (name == NULL)
    trace_violate (trace, "names-given", "event %u: %s without a name", index, event->name);
  place->has_name = name != NULL;
  if (name != NULL && g_str_has_prefix (name, "rank ") && g_ascii_isdigit (name[5]))
    place->rank = g_ascii_strtoll (name + 5, NULL, 10);
}

static void
read_sort_index (TraceFile *trace, guint index, const TraceEvent *event, Place *place)
{
  StrictValue value;

  place->has_sort_index = trace_get_member (&event->args, "sort_index", &value)
                          && trace_read_whole (&value, &place->sort_index);
  if (!place->has_sort_index)
    trace_violate (trace, "sort-indices", "event %u: %s without a whole number", index,
                   event->name);
}

static void
read_places (TraceFile *trace, GHashTable *places)
{
  for (guint i = 0; i < trace->events->len; i++)
    {
      const TraceEvent *event = event_at (trace, i);

      if (event->phase != 'M' || event->name == NULL)
        continue;

      bool is_process = g_str_has_prefix (event->name, "process_");
      Place *place = place_of (places, event->pid, is_process ? 0 : event->tid);

      if (g_str_has_suffix (event->name, "_name"))
        read_name (trace, i, event, place);
      else if (g_str_has_suffix (event->name, "_sort_index"))
        read_sort_index (trace, i, event, place);
    }
}

typedef struct
{
  const Place *place;
  int64_t pid;
  int64_t tid; /* 0: the process */
} Listed;

/* Processes first, by rank number; then the threads of each process. */
static int
compare_listed (gconstpointer a_data, gconstpointer b_data)
{
  const Listed *a = a_data;
  const Listed *b = b_data;
  int order = (a->tid != 0) - (b->tid != 0);

  if (order == 0 && a->tid == 0)
    order = compare_numbers (a->place->rank, b->place->rank);
  if (order == 0)
    order = compare_numbers (a->pid, b->pid);
  if (order == 0)
    order = compare_numbers (a->place->sort_index, b->place->sort_index);
  return order != 0 ? order : compare_numbers (a->tid, b->tid);
}

static void
list_place (GArray *list, GHashTable *listed, GHashTable *places, int64_t pid, int64_t tid)
{
  Listed entry = { .place = place_of (places, pid, tid), .pid = pid, .tid = tid };

  if (g_hash_table_add (listed, (gpointer) entry.place))
    g_array_append_val (list, entry);
}

/* Every process and thread with slices has a name and its own place, and ranks stand in the order
 * of their numbers. */
static void
check_places (TraceFile *trace)
{
  g_autoptr (GHashTable) places = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_autoptr (GHashTable) listed = g_hash_table_new (NULL, NULL);
  g_autoptr (GArray) list = g_array_new (FALSE, FALSE, sizeof (Listed));

  read_places (trace, places);
  for (guint i = 0; i < trace->events->len; i++)
    {
      const TraceEvent *event = event_at (trace, i);

      if (event->phase != 'X')
        continue;
      list_place (list, listed, places, event->pid, 0);
      list_place (list, listed, places, event->pid, event->tid);
    }
  g_array_sort (list, compare_listed);
  for (guint i = 0; i < list->len; i++)
    {
      const Listed *entry = &g_array_index (list, Listed, i);
      const Listed *before = i > 0 ? &g_array_index (list, Listed, i - 1) : NULL;
      bool has_before = before != NULL && (before->tid != 0) == (entry->tid != 0)
                        && (entry->tid == 0 || before->pid == entry->pid);

      if (!entry->place->has_name)
        trace_violate (trace, "names-given",
                       "pid %" G_GINT64_FORMAT ", tid %" G_GINT64_FORMAT " has slices but no name",
                       entry->pid, entry->tid);
      if (!entry->place->has_sort_index)
        trace_violate (trace, "sort-indices",
                       "pid %" G_GINT64_FORMAT ", tid %" G_GINT64_FORMAT
                       " has slices but no sort index",
                       entry->pid, entry->tid);
      else if (has_before && before->place->sort_index >= entry->place->sort_index)
        trace_violate (trace, "sort-indices",
                       "pid %" G_GINT64_FORMAT ", tid %" G_GINT64_FORMAT
                       " sorts at %" G_GINT64_FORMAT ", not behind the %" G_GINT64_FORMAT
                       " before it",
                       entry->pid, entry->tid, entry->place->sort_index, before->place->sort_index);
    }
}

static void
check_counter_values (TraceFile *trace, guint index, const TraceEvent *event)
{
  StrictJson json;
  StrictValue key;
  StrictValue value;
  bool is_first = true;

  if (event->args.text == NULL || event->args.text[0] != '{')
    {
      trace_violate (trace, "counters", "event %u (%s) has no args", index, event->name);
      return;
    }
  strict_json_init (&json, event->args.text, event->args.n_bytes);
  strict_json_enter (&json, '{');
  while (strict_json_next (&json, '{', &is_first, &key) && strict_json_value (&json, &value))
    if (value.text[0] != '-' && !g_ascii_isdigit (value.text[0]))
      trace_violate (trace, "counters", "event %u (%s): %.*s is no number", index, event->name,
                     (int) MIN (value.n_bytes, 40), value.text);
  if (is_first)
    trace_violate (trace, "counters", "event %u (%s) has no value", index, event->name);
  strict_json_clear (&json);
}

static void
check_counters (TraceFile *trace)
{
  g_autoptr (GHashTable) last = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = 0; i < trace->events->len; i++)
    {
      const TraceEvent *event = event_at (trace, i);

      if (event->phase != 'C')
        continue;
      check_counter_values (trace, i, event);

      g_autofree char *key = g_strdup_printf ("%" G_GINT64_FORMAT " %s", event->pid,
                                              event->name != NULL ? event->name : "");
      const TraceEvent *before = g_hash_table_lookup (last, key);

      if (before != NULL && before->ts_ns > event->ts_ns)
        trace_violate (trace, "counters", "event %u (%s) is earlier than the sample before it", i,
                       event->name);
      g_hash_table_replace (last, g_steal_pointer (&key), (gpointer) event);
    }
}

/* ---- all of it ---- */

static const char *const rule_names[] = {
  "strict-json",
  "no-nan-or-infinity",
  "under-1000000-events",
  "under-100-MB",
  "left-out-stored",
  "display-unit",
  "phases-known",
  "names-given",
  "metadata-first",
  "metadata-without-time",
  "no-negative-times",
  "three-decimals",
  "ids-whole-and-not-0",
  "nanoseconds-survive",
  "tids-of-one-pid",
  "slices-there",
  "lanes-nested",
  "sums-keep-order",
  "flows-inside-slices",
  "flows-paired",
  "flow-ids-unique",
  "sort-indices",
  "counters",
};

/* The parser stopped at a word such as NaN, nan, -Infinity or inf. */
static bool
stops_at_nan (const StrictJson *json)
{
  const char *at = json->at < json->end && *json->at == '-' ? json->at + 1 : json->at;
  size_t n_bytes = (size_t) (json->end - at);

  return n_bytes >= 3
         && (g_ascii_strncasecmp (at, "nan", 3) == 0 || g_ascii_strncasecmp (at, "inf", 3) == 0);
}

static void
violate_all (TraceFile *trace, const char *why)
{
  for (size_t i = 0; i < G_N_ELEMENTS (rule_names); i++)
    if (strcmp (rule_names[i], "no-nan-or-infinity") != 0)
      trace_violate (trace, rule_names[i], "not judged: %s", why);
}

GPtrArray *
trace_rules_check (const char *text, size_t n_bytes)
{
  TraceFile trace = {
    .strings = g_string_chunk_new (4096),
    .events = g_array_new (FALSE, FALSE, sizeof (TraceEvent)),
    .rules = g_ptr_array_new_with_free_func (rule_free),
  };

  for (size_t i = 0; i < G_N_ELEMENTS (rule_names); i++)
    rule (&trace, rule_names[i]);
  strict_json_init (&trace.json, text, n_bytes);
  if (!g_utf8_validate_len (text, n_bytes, NULL))
    trace_violate (&trace, "strict-json", "not UTF-8");
  if (!trace_file_read (&trace))
    {
      trace_violate (&trace, "strict-json", "%s", trace.json.why);
      if (stops_at_nan (&trace.json))
        trace_violate (&trace, "no-nan-or-infinity", "%s", trace.json.why);
      violate_all (&trace, "no JSON");
    }
  else
    {
      check_order (&trace);
      check_sizes (&trace, n_bytes);
      check_threads (&trace);
      check_lanes (&trace);
      check_flows (&trace);
      check_places (&trace);
      check_counters (&trace);
    }
  strict_json_clear (&trace.json);
  g_string_chunk_free (trace.strings);
  g_array_unref (trace.events);
  return trace.rules;
}

const char *
trace_rules_why (GPtrArray *rules, const char *name)
{
  for (guint i = 0; i < rules->len; i++)
    {
      const TraceRule *found = g_ptr_array_index (rules, i);

      if (strcmp (found->name, name) == 0)
        return found->why;
    }
  return "no such rule";
}
