#pragma once

#include "report/html-page.h"
#include "report/report-private.h"

/* Sections of the page of a step. */

/* @path: of pod_report_critical_path; @rank_index: where it ends. */
void pod_step_page_timeline (PodReportHtml *page, const PodTimeline *timeline, guint rank_index,
                             const GArray *path);
void pod_step_page_path (PodReportHtml *page, const PodTimeline *timeline, const GArray *path);
void pod_step_page_memory (PodReportHtml *page, JsonObject *result, const PodTimeline *timeline);
