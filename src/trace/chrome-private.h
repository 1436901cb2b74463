#pragma once

#include "trace/trace-private.h"

/* Makes the text of single events of the Chrome Trace Event format in text, one at a time. What
 * repeats is made once per op and per series; nothing here grows with the number of events. */
typedef struct
{
  const PodTracePlan *plan;
  GString *text;     /* the event last made, without comma and line end */
  GPtrArray *ops;    /* (element-type utf8) the middle of a slice, by op; its args are left open */
  GPtrArray *waits;  /* (element-type utf8) the same of its wait */
  GPtrArray *series; /* (element-type utf8) the middle of a sample, by series */
  uint64_t first_tid;
  uint64_t tids_per_rank;
} PodChromeText;

/* O(ops + series). */
void pod_chrome_text_init (PodChromeText *chrome, const PodTracePlan *plan);
void pod_chrome_text_clear (PodChromeText *chrome);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodChromeText, pod_chrome_text_clear)

/* The wait before the work of @slice, or the work itself. */
void pod_chrome_text_slice (PodChromeText *chrome, const PodTraceSlice *slice, bool is_wait);
void pod_chrome_text_flow (PodChromeText *chrome, const PodTraceSlice *slice, bool is_end,
                           int64_t at_ns, uint64_t id);
void pod_chrome_text_sample (PodChromeText *chrome, uint32_t rank_index, uint32_t series,
                             int64_t at_ns, double value);
void pod_chrome_text_rank_name (PodChromeText *chrome, uint32_t rank_index);
void pod_chrome_text_stream_name (PodChromeText *chrome, uint32_t rank_index, uint32_t stream);
/* @what: "process" or "thread". Viewers sort names as text, rank 10 before rank 2, unless they are
 * given a number. */
void pod_chrome_text_sort_index (PodChromeText *chrome, const char *what, uint32_t rank_index,
                                 uint32_t stream, uint32_t sort_index);
