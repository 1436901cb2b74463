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
};

bool
pod_trace_write (const PodTimeline *timeline, const PodTraceRequest *request,
                 uint64_t *out_n_left_out, GError **error)
{
  g_return_val_if_fail (timeline != NULL, false);
  g_return_val_if_fail (request != NULL && request->file != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  PodTraceRequest filled = *request;

  if (filled.max_events == 0)
    filled.max_events = DEFAULT_MAX_EVENTS;
  for (size_t i = 0; i < G_N_ELEMENTS (formats); i++)
    {
      if (!g_str_has_suffix (request->file, formats[i].suffix))
        continue;

      g_auto (PodTracePlan) plan = { 0 };

      /* A viewer shows nonsense, not an error, for lanes that overlap */
      if (!pod_timeline_check (timeline, error) || !pod_trace_plan_init (&plan, timeline, error)
          || !formats[i].write (&plan, &filled, formats[i].is_gzip, error))
        return false;
      if (out_n_left_out != NULL)
        *out_n_left_out = plan.n_left_out;
      return true;
    }
  return pod_trace_check_name (request->file, error);
}

bool
pod_trace_check_name (const char *file, GError **error)
{
  for (size_t i = 0; i < G_N_ELEMENTS (formats); i++)
    if (g_str_has_suffix (file, formats[i].suffix))
      return true;
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
               "%s: a trace is written as .json or .json.gz", file);
  return false;
}
