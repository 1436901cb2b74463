#include "trace/trace.h"

#include "base/error.h"
#include "trace/trace-private.h"

enum
{
  /* Viewers open this many without trouble; a reader takes exactly a million for a file cut short,
   * since some profilers stop there (jax-ml/jax#21295) */
  DEFAULT_MAX_EVENTS = 999999,
};

typedef bool (*Writer) (PodTracePlan *plan, const PodTraceRequest *request, bool is_gzip,
                        GError **error);

static const struct
{
  const char *suffix;
  Writer write;
  bool is_gzip;
} formats[] = {
  { ".json", pod_chrome_write, false },
  { ".json.gz", pod_chrome_write, true },
  { ".pftrace", pod_perfetto_write, false },
  { ".pftrace.gz", pod_perfetto_write, true },
};

/* The format that @file's suffix names; G_N_ELEMENTS (formats), with the error set, when none. */
static size_t
find_format (const char *file, GError **error)
{
  size_t i = 0;

  while (i < G_N_ELEMENTS (formats) && !g_str_has_suffix (file, formats[i].suffix))
    i++;
  if (i == G_N_ELEMENTS (formats))
    g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                 "%s: a trace is written as .json, .json.gz, .pftrace or .pftrace.gz", file);
  return i;
}

bool
pod_trace_check_name (const char *file, GError **error)
{
  g_return_val_if_fail (file != NULL, false);

  return find_format (file, error) < G_N_ELEMENTS (formats);
}

bool
pod_trace_write (const PodTimeline *timeline, const PodTraceRequest *request,
                 uint64_t *out_n_left_out, GError **error)
{
  g_return_val_if_fail (timeline != NULL, false);
  g_return_val_if_fail (request != NULL && request->file != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  PodTraceRequest filled = *request;
  size_t format = find_format (request->file, error);
  g_auto (PodTracePlan) plan = { 0 };

  if (format == G_N_ELEMENTS (formats))
    return false;
  if (filled.max_events == 0)
    filled.max_events = DEFAULT_MAX_EVENTS;
  /* A viewer shows nonsense, not an error, for lanes that overlap */
  if (!pod_timeline_check (timeline, error) || !pod_trace_plan_init (&plan, timeline, error)
      || !formats[format].write (&plan, &filled, formats[format].is_gzip, error))
    return false;
  if (out_n_left_out != NULL)
    *out_n_left_out = plan.n_left_out;
  return true;
}
