#include "trace/chrome-private.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"

enum
{
  MIN_TIDS_PER_RANK = 64, /* round, so that a person can tell the rank from the thread id */
};

static void
append_uint (GString *text, uint64_t value)
{
  char digits[20];
  size_t n_digits = 0;

  do
    {
      digits[sizeof digits - ++n_digits] = (char) ('0' + value % 10);
      value /= 10;
    }
  while (value > 0);
  g_string_append_len (text, digits + sizeof digits - n_digits, (gssize) n_digits);
}

/* Microseconds with three decimals, which a reader's rounding to nanoseconds gives back exactly. */
static void
append_us (GString *text, int64_t ns)
{
  uint64_t fraction = (uint64_t) (ns % 1000);
  char digits[] = { '.', (char) ('0' + fraction / 100), (char) ('0' + fraction / 10 % 10),
                    (char) ('0' + fraction % 10) };

  append_uint (text, (uint64_t) (ns / 1000));
  g_string_append_len (text, digits, sizeof digits);
}

static void
append_double (GString *text, double value)
{
  g_autofree char *number = pod_format_double (value);

  g_string_append (text, number);
}

static void
append_key (GString *text, const char *key)
{
  if (text->str[text->len - 1] != '{')
    g_string_append_c (text, ',');
  g_string_append_printf (text, "\"%s\":", key);
}

static void
append_string_arg (GString *text, const char *key, const char *value)
{
  if (value == NULL)
    return;
  append_key (text, key);
  pod_json_append_string (text, value);
}

/* 0 stands for what an op has not; JSON knows no NaN and no infinity. */
static void
append_quantity_arg (GString *text, const char *key, double value)
{
  if (value == 0 || !isfinite (value))
    return;
  append_key (text, key);
  append_double (text, value);
}

static char *
op_text (const PodTimelineOp *op, bool is_wait)
{
  GString *text = g_string_new (NULL);
  g_autofree char *name = is_wait ? g_strconcat ("wait ", op->name, NULL) : g_strdup (op->name);

  g_string_append_printf (
      text, "\"cat\":\"%s\",\"name\":", is_wait ? "wait" : pod_category_name (op->category));
  pod_json_append_string (text, name);
  g_string_append (text, is_wait ? ",\"cname\":\"grey\",\"args\":{" : ",\"args\":{");
  if (op->layer >= 0)
    {
      append_key (text, "layer");
      append_uint (text, (uint64_t) op->layer);
    }
  append_string_arg (text, "axis", op->axis);
  if (!is_wait)
    {
      append_quantity_arg (text, "flops", op->flops);
      append_quantity_arg (text, "bytes", op->bytes);
      append_string_arg (text, "detail", op->detail);
    }
  return g_string_free (text, FALSE);
}

/* Viewers show name and key, which is the unit, side by side. */
static char *
series_text (const char *name_and_unit)
{
  GString *text = g_string_new ("\"cat\":\"counter\",\"name\":");
  const char *unit;
  g_autofree char *name = pod_trace_series_name (name_and_unit, &unit);

  pod_json_append_string (text, name);
  g_string_append (text, ",\"args\":{");
  pod_json_append_string (text, unit);
  g_string_append_c (text, ':');
  return g_string_free (text, FALSE);
}

void
pod_chrome_text_clear (PodChromeText *chrome)
{
  g_string_free (chrome->text, TRUE);
  g_ptr_array_unref (chrome->ops);
  g_ptr_array_unref (chrome->waits);
  g_ptr_array_unref (chrome->series);
}

void
pod_chrome_text_init (PodChromeText *chrome, const PodTracePlan *plan)
{
  const PodTimeline *timeline = plan->timeline;

  *chrome = (PodChromeText){
    .plan = plan,
    .text = g_string_new (NULL),
    .ops = g_ptr_array_new_with_free_func (g_free),
    .waits = g_ptr_array_new_with_free_func (g_free),
    .series = g_ptr_array_new_with_free_func (g_free),
    .tids_per_rank = MAX ((uint64_t) MIN_TIDS_PER_RANK, timeline->n_streams),
  };
  /* Behind all process ids: a viewer takes the thread whose id is a process id for the main thread
   * of that process */
  chrome->first_tid
      = (timeline->ranks->len / chrome->tids_per_rank + 1) * chrome->tids_per_rank + 1;
  for (guint i = 0; i < timeline->ops->len; i++)
    {
      const PodTimelineOp *op = &g_array_index (timeline->ops, PodTimelineOp, i);

      g_ptr_array_add (chrome->ops, op_text (op, false));
      g_ptr_array_add (chrome->waits, op_text (op, true));
    }
  for (guint i = 0; i < timeline->series_names->len; i++)
    g_ptr_array_add (chrome->series, series_text (g_ptr_array_index (timeline->series_names, i)));
}

/* Opens an event up to and with its thread. Neither id is ever 0, which viewers take for the idle
 * process. */
static void
begin_event (PodChromeText *chrome, const char *phase, uint32_t rank_index, uint32_t stream)
{
  g_string_assign (chrome->text, "{\"ph\":\"");
  g_string_append (chrome->text, phase);
  g_string_append (chrome->text, "\",\"pid\":");
  append_uint (chrome->text, (uint64_t) rank_index + 1);
  g_string_append (chrome->text, ",\"tid\":");
  append_uint (chrome->text, chrome->first_tid + rank_index * chrome->tids_per_rank + stream);
  g_string_append_c (chrome->text, ',');
}

static void
append_time (PodChromeText *chrome, const char *key, int64_t ns)
{
  g_string_append_printf (chrome->text, "\"%s\":", key);
  append_us (chrome->text, ns);
  g_string_append_c (chrome->text, ',');
}

void
pod_chrome_text_slice (PodChromeText *chrome, const PodTraceSlice *slice, bool is_wait)
{
  GString *text = chrome->text;
  int64_t start_ns = is_wait ? slice->wait_ns : slice->start_ns;
  int64_t end_ns = is_wait ? slice->start_ns : slice->end_ns;

  begin_event (chrome, "X", slice->rank_index, slice->stream);
  append_time (chrome, "ts", start_ns);
  append_time (chrome, "dur", end_ns - start_ns);
  g_string_append (text,
                   g_ptr_array_index (is_wait ? chrome->waits : chrome->ops, slice->span->op));
  if (slice->span->microbatch >= 0)
    {
      append_key (text, "microbatch");
      append_uint (text, (uint64_t) slice->span->microbatch);
    }
  g_string_append (text, "}}");
}

void
pod_chrome_text_flow (PodChromeText *chrome, const PodTraceSlice *slice, bool is_end, int64_t at_ns,
                      uint64_t id)
{
  begin_event (chrome, is_end ? "f" : "s", slice->rank_index, slice->stream);
  append_time (chrome, "ts", at_ns);
  g_string_append (chrome->text, "\"cat\":\"flow\",\"name\":\"message\",\"id\":");
  append_uint (chrome->text, id);
  /* Bound to the slice around it; without this, to the next one that starts on the lane */
  g_string_append (chrome->text, is_end ? ",\"bp\":\"e\"}" : "}");
}

void
pod_chrome_text_sample (PodChromeText *chrome, uint32_t rank_index, uint32_t series, int64_t at_ns,
                        double value)
{
  begin_event (chrome, "C", rank_index, 0);
  append_time (chrome, "ts", at_ns);
  g_string_append (chrome->text, g_ptr_array_index (chrome->series, series));
  append_double (chrome->text, value);
  g_string_append (chrome->text, "}}");
}

void
pod_chrome_text_rank_name (PodChromeText *chrome, uint32_t rank_index)
{
  const PodTimelineRank *rank
      = &g_array_index (chrome->plan->timeline->ranks, PodTimelineRank, rank_index);
  g_autofree char *name = pod_trace_rank_name (chrome->plan->timeline, rank_index);

  begin_event (chrome, "M", rank_index, 0);
  g_string_append (chrome->text, "\"name\":\"process_name\",\"args\":{\"name\":");
  pod_json_append_string (chrome->text, name);
  g_string_append_printf (chrome->text, ",\"rank\":%u,\"n_like_it\":%u}}", rank->rank,
                          rank->n_like_it);
}

void
pod_chrome_text_stream_name (PodChromeText *chrome, uint32_t rank_index, uint32_t stream)
{
  const char *name = chrome->plan->timeline->stream_names[stream];

  begin_event (chrome, "M", rank_index, stream);
  g_string_append (chrome->text, "\"name\":\"thread_name\",\"args\":{\"name\":");
  pod_json_append_string (chrome->text, name);
  g_string_append (chrome->text, "}}");
}

void
pod_chrome_text_sort_index (PodChromeText *chrome, const char *what, uint32_t rank_index,
                            uint32_t stream, uint32_t sort_index)
{
  begin_event (chrome, "M", rank_index, stream);
  g_string_append_printf (chrome->text, "\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%u}}",
                          what, sort_index);
}
