#pragma once

#include "report/report-private.h"

/* What reports say of a timeline. */

/* A span of the critical path. All of them, one after the other, fill the time from 0 to the end of
 * the step: first the wait, then the work, then what is after it (of the last one). */
typedef struct
{
  uint32_t span;
  int64_t wait_ps; /* for what was recorded nowhere: peers, or the start of the step */
  int64_t work_ps; /* its own time on the path: until the next one of the path began */
  int64_t after_ps;
} PodPathStep;

/* The path that ends with what rank @rank_index did last, from the start on. A receive that waited
 * goes on with its send, where the sender was recorded; a collective that waited for peers, which
 * are not told apart, has that as its wait. Returns: (transfer full) (element-type PodPathStep)
 * O(spans x ranks recorded). */
GArray *pod_report_critical_path (const PodTimeline *timeline, guint rank_index);

/* The recorded rank of that number, or the one that ends last. */
guint pod_report_rank_index (const PodTimeline *timeline, uint32_t rank);

/* What of a timeline a page shows. */
typedef struct
{
  guint n_ranks; /* recorded */
  guint n_ranks_shown;
  uint64_t n_slices; /* recorded */
  uint64_t n_slices_shown;
} PodTimelineShown;

/* The timeline as the page's script reads it (page.js says how): whole ranks, @rank_index first, as
 * many as fit a page; when not even that one fits, what ends first of it. Returns: (transfer full)
 */
char *pod_report_timeline_json (const PodTimeline *timeline, guint rank_index, const GArray *path,
                                PodTimelineShown *out_shown);
