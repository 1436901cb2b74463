#pragma once

#include "base/json.h"

#include "exec/exec.h"

/* Results and timelines as text and pictures. Takes neutral results (the JSON of a run) and
 * timelines, runs no simulation. */

/* A term of a step's time. The terms of a result add up to the step to the picosecond. */
typedef struct
{
  char *name;       /* "compute", "exposed fsdp", "bubble", "idle" */
  const char *axis; /* (nullable) of an exposed term, points into name */
  int64_t time_ps;
  int64_t total_ps; /* of an axis: all its communication, hidden or not; else time_ps */
} PodReportTerm;

/* The terms in the order of the result. Returns: (transfer full) (element-type PodReportTerm) */
GArray *pod_report_terms (JsonObject *result);
/* What the terms should add up to. */
int64_t pod_report_time_ps (JsonObject *result);

/* The summary of a step: time and its lower bound, MFU, breakdown, memory, bound, training,
 * assumptions, warnings. Returns: (transfer full) */
char *pod_report_step (JsonObject *result);
/* Kernels and collectives by time, each with what decided it. Returns: (transfer full) */
char *pod_report_explain (const PodExecResult *exec);
/* A page of all this (html-page.h) with the timeline, the critical path, memory over time and, where
 * the result has them, the steps with one change (what_if). It keeps under some 8 MB and says what it
 * leaves out. The timeline of @exec should hold its slowest rank. Errors: IO. O(spans + samples). */
bool pod_report_html_step (JsonObject *result, const PodExecResult *exec, const char *file,
                           GError **error);
/* JSON lines: the program, its classes with their steps, its blocks, and a line for each op (shape,
 * bytes, group, dependencies, buffers); docs/format/program.md. Errors: IO. O(ops + steps). */
bool pod_report_program (const PodProgram *program, const char *file, GError **error);
/* Pictures of a step in @folder (plot.h): breakdown and memory, with a pipeline schedule as well, and
 * timeline.svg. Errors: IO. O(spans + samples). */
bool pod_report_plots (JsonObject *result, const PodTimeline *timeline, const char *folder,
                       GError **error);
/* The picture collective: time and bandwidth of the rows of a collective's result against their
 * size. */
bool pod_report_collective_plot (JsonObject *result, const char *folder, GError **error);

/* A comparison (rows[] of podsim compare) as a page, and as the picture compare: a bar for each
 * machine. @title: the job. Errors: IO. */
bool pod_report_html_compare (JsonObject *result, const char *title, const char *file,
                              GError **error);
bool pod_report_compare_plot (JsonObject *result, const char *title, const char *folder,
                              GError **error);

/* A search (pod_search_to_json, with its fronts) as the pictures search-best, a bar for each of the
 * best, search-memory and, where layouts use different numbers of chips, search-chips: the layouts
 * that no other beats in time and in these. None where nothing fits. Errors: IO. */
bool pod_report_search_plots (JsonObject *result, const char *title, const char *folder,
                              GError **error);
/* The same as a page, with what was refused. */
bool pod_report_html_search (JsonObject *result, const char *title, const char *file,
                             GError **error);

/* A sweep (axes[], rows[], crossings[] and balances[] of podsim sweep) as a page: what its objective
 * ranks by and MFU over the first axis, with a ring where lines cross, and all rows. Errors: IO. */
bool pod_report_html_sweep (JsonObject *result, const char *title, const char *file, GError **error);

/* What changed between two results: inputs that differ, and the terms of time and memory, whose
 * differences (B - A) add up to the whole one in picoseconds and bytes. Returns: (transfer full) */
JsonObject *pod_report_diff (JsonObject *a, JsonObject *b);
/* The same as tables. Returns: (transfer full) */
char *pod_report_diff_to_text (JsonObject *diff);
