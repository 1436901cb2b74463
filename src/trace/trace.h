#pragma once

#include "base/json.h"
#include "exec/timeline.h"

/* Writes a timeline as a Chrome Trace Event file (FILE.json) or as a Perfetto one (FILE.pftrace),
 * each with .gz behind it compressed. */
typedef struct
{
  const char *file;
  /* What does not fit is left out and counted. 0: under 1,000,000 events. Up to that many, the file
   * keeps under 100 MB as well, uncompressed. */
  uint64_t max_events;
  JsonObject *metadata; /* (nullable) what the run was: "otherData", or arguments of an instant */
} PodTraceRequest;

/* Can a file of that name be written? To be asked before a long run. Errors: POD_ERROR_UNSUPPORTED
 * for another suffix. */
bool pod_trace_check_name (const char *file, GError **error);

/* Whole ranks are kept, from the first one on, as many as fit; when not even one fits, what ends
 * first of it. @out_n_left_out: events left out, with the spans of ranks that were not recorded
 * (nullable); it is stored in the file, too. Errors: POD_ERROR_IO; UNSUPPORTED for another suffix;
 * LIMIT for times that viewers cannot hold (2^43 us, 101 days) and for a max_events below the names
 * of one rank; INVALID when pod_timeline_check fails. Memory does not grow with the number of
 * events. O(events), 60 times that when one rank is too big. */
bool pod_trace_write (const PodTimeline *timeline, const PodTraceRequest *request,
                      uint64_t *out_n_left_out, GError **error);
