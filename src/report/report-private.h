#pragma once

#include "base/table.h"
#include "report/report.h"

/* Reading results by dotted path, and numbers as text whatever the locale. */

/* NULL where the result has no such thing. (transfer none) (nullable) */
JsonNode *pod_report_node (JsonObject *result, const char *path);
const char *pod_report_string (JsonObject *result, const char *path);
const char *pod_report_string_or (JsonObject *result, const char *path, const char *otherwise);
JsonObject *pod_report_object (JsonObject *result, const char *path);
JsonArray *pod_report_array (JsonObject *result, const char *path);
/* Of an array that may be absent (NULL: 0). */
guint pod_report_length (JsonArray *array);
/* 0 when absent. */
double pod_report_number (JsonObject *result, const char *path);
/* A JSON node that is a number, as one; 0 for any other. */
double pod_report_node_number (JsonNode *node);

/* Results hold seconds as doubles: up to 2.5 hours these keep the picosecond. 0 out of range. */
int64_t pod_report_ps (double seconds);

/* "12.50"; (transfer full), as all below. */
char *pod_report_fixed (double value, unsigned n_decimals);
/* "41.2 %" */
char *pod_report_percent (double ratio);
/* "8,388,608"; 4 significant digits and a suffix from 10^9 on. */
char *pod_report_grouped (double count);

/* A unit in which all times (or sizes) of one table are written, so that columns align and add up.
 */
typedef struct
{
  const char *name; /* "ms" */
  double size;      /* in s or bytes */
} PodReportUnit;

PodReportUnit pod_report_time_unit (double seconds);
PodReportUnit pod_report_bytes_unit (double bytes);
/* "12.345 ms" */
char *pod_report_in_unit (double value, PodReportUnit unit, unsigned n_decimals);

/* Kernels, and collectives, by total time; what decided each is appended to @words. Returns: (transfer full) */
PodTable *pod_report_kernels (const PodExecResult *exec, GPtrArray *words);
PodTable *pod_report_collectives (const PodExecResult *exec, GPtrArray *words);

/* The steps with one change, the largest gain first. @has_set: with a column of what was set.
 * Returns: (transfer full) */
PodTable *pod_report_what_if (JsonArray *changes, bool has_set);

/* The pictures of a result, each into @folder. */
bool pod_report_breakdown_plot (JsonObject *result, const char *folder, GError **error);
bool pod_report_memory_plot (JsonObject *result, const PodTimeline *timeline, const char *folder,
                             GError **error);
bool pod_report_schedule_plot (JsonObject *result, const PodTimeline *timeline, const char *folder,
                               GError **error);
bool pod_report_timeline_svg (const PodTimeline *timeline, const char *title, const char *folder,
                              GError **error);
/* The counter of memory in use; false: the timeline has none. */
bool pod_report_memory_series (const PodTimeline *timeline, uint32_t *out);
/* "L31 ffn in" without its layer: what a kernel or slice is called where the layer is known or one
 * of many. (transfer none) */
const char *pod_report_without_layer (const char *name);
/* "llama3-70b on h100:8x16, fsdp=16 tp=8". */
char *pod_report_title (JsonObject *result);
/* Makes it, with the folders above, when absent. */
bool pod_report_make_folder (const char *folder, GError **error);
/* Writes @text as FOLDER/NAME. */
bool pod_report_save (const char *folder, const char *name, const char *text, GError **error);
