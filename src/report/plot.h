#pragma once

#include <stdbool.h>

#include <glib.h>

/* A picture that gnuplot draws: NAME.tsv has its data, NAME.gp its script, which anyone can run
 * anew, and NAME.png and NAME.svg are what it draws. Neutral: it knows no step and no search.
 * Colours are those of html-page.h. */
typedef struct
{
  const char *name;
  unsigned width; /* px */
  unsigned height;
  const char *data;
  /* Commands from the title to the plot, but for terminal and output; run once for each picture,
   * from gnuplot's own defaults. Data are separated by tabs. Axes are labelled with their units. */
  const char *script;
} PodPlot;

/* Writes all four into @folder, which is made when absent. Where there is no gnuplot the pictures
 * are missing, and those of an earlier run are removed. Errors: IO, with gnuplot's own words where
 * it fails. */
bool pod_report_plot (const PodPlot *plot, const char *folder, GError **error);
/* Whether gnuplot can be run. */
bool pod_report_has_gnuplot (void);

/* For scripts: "set title" in two lines, the second of @words and @value; @text as a string. */
void pod_report_append_title (GString *script, const char *title, const char *words,
                              const char *value);
/* Returns: (transfer full) */
char *pod_report_quoted (const char *text);
