#pragma once

#include <stdbool.h>

#include <glib.h>

#include "base/table.h"

/* One self-contained HTML page: text, tables, bars, curves and data, with its style and script
 * inside, so that it opens from a file and asks no network. Neutral: it knows no step and no
 * search; who has results makes tables of them. Text is escaped here; numbers come as text, with
 * their units. */
typedef struct PodReportHtml PodReportHtml;

/* @subtitle: (nullable) under the title. Returns: (transfer full) */
PodReportHtml *pod_report_html_new (const char *title, const char *subtitle);
void pod_report_html_free (PodReportHtml *page);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodReportHtml, pod_report_html_free)

/* Begins a section; the next one ends it. @id: a word, unique on the page, for links. @note:
 * (nullable) what the section shows, in a sentence. */
void pod_report_html_section (PodReportHtml *page, const char *id, const char *heading,
                              const char *note);
void pod_report_html_paragraph (PodReportHtml *page, const char *text);
void pod_report_html_items (PodReportHtml *page, const char *const *items, unsigned n_items);
/* Key facts, big: column 0 names, 1 the value, 2 (when there is one) a note under it. */
void pod_report_html_facts (PodReportHtml *page, const PodTable *table);
/* @caption names it, for readers who do not see it as well. Wide tables scroll inside themselves.
 */
void pod_report_html_table (PodReportHtml *page, const char *caption, const PodTable *table);

/* Bars of parts laid end to end, one below the other, all in one unit. */
typedef struct
{
  const char *name;
  const char *colour; /* of the palette below */
} PodHtmlSeries;

typedef struct
{
  const char *label;
  const char *value;   /* written at its end: "1.23 s" */
  const double *parts; /* one for each series; a negative one counts as 0 */
} PodHtmlBar;

typedef struct
{
  const char *caption;
  const PodHtmlSeries *series;
  unsigned n_series;
  const PodHtmlBar *bars;
  unsigned n_bars;
  double whole; /* a bar as wide as all; 0: the longest */
} PodHtmlBars;

void pod_report_html_bars (PodReportHtml *page, const PodHtmlBars *bars);

/* Curves over one axis. */
typedef struct
{
  const char *name;
  const double *x;
  const double *y; /* NaN: there is none, and the line is broken */
  unsigned n_points;
  bool is_stepped; /* a value holds until the next one */
  bool is_limit;   /* drawn as a bound: dashed, in the colour of text */
} PodHtmlLine;

typedef struct
{
  const char *name;
  double x;
  double y;
} PodHtmlMark;

typedef struct
{
  const char *caption;
  const char *x_name; /* "time, ms" */
  const char *y_name;
  const PodHtmlLine *lines;
  unsigned n_lines;
  const PodHtmlMark *marks; /* rings */
  unsigned n_marks;
  bool is_logarithmic_x; /* instead of from 0 on; all values are above it */
  bool is_logarithmic_y;
} PodHtmlChart;

void pod_report_html_chart (PodReportHtml *page, const PodHtmlChart *chart);

/* A picture made elsewhere. @svg is markup and not escaped. */
void pod_report_html_svg (PodReportHtml *page, const char *caption, const char *svg);
/* JSON text for the page's script, under @id; nothing in it can end the script. */
void pod_report_html_data (PodReportHtml *page, const char *id, const char *json);

/* Errors: IO. */
bool pod_report_html_save (PodReportHtml *page, const char *file, GError **error);

#define POD_N_COLOURS 8
/* Colours that people with any colour vision tell apart (Okabe and Ito 2008), used alike in pages
 * and plots: "#0072b2". @index: any; they repeat after 8. */
const char *pod_report_colour (unsigned index);
/* Of a term of a step: "forward and backward", "recompute", "optimizer", an axis' name, "bubble",
 * "idle"; grey for others. */
const char *pod_report_term_colour (const char *term);
