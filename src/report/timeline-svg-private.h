#pragma once

#include "report/report.h"

/* Parts of timeline.svg. Lengths are pixels. */

enum
{
  POD_SVG_WIDTH = 1200,
  POD_SVG_LEFT = 170, /* of the lanes; their names stand before it */
  POD_SVG_PLOT = 1010,
};

typedef struct
{
  uint32_t lane;
  int y;
  int height;
} PodSvgRow;

typedef struct
{
  double x;
  double y;
  double width;
  double height;
} PodSvgBox;

/* A stretch of time of some lanes. */
typedef struct
{
  int64_t from_ps;
  int64_t to_ps;
  int top;
  int bottom;
  bool is_close; /* slices with names, of one rank; else columns */
  unsigned n_ranks;
  GArray *rows; /* PodSvgRow */
} PodSvgPanel;

double pod_svg_x_of (const PodSvgPanel *panel, int64_t at_ps);
/* (transfer none) (nullable) */
PodSvgRow *pod_svg_row_of (const PodSvgPanel *panel, uint32_t lane);

void pod_svg_append_px (GString *out, double px);
void pod_svg_append_text (GString *out, const char *class, double x, double y, const char *text);
void pod_svg_append_rect (GString *out, const char *class, PodSvgBox box);

/* What happened: a slice each, with its name; or a colour for each column of pixels, so that
 * millions of slices cost no more than the picture's width. O(spans). */
void pod_svg_append_slices (GString *out, const PodSvgPanel *panel, const PodTimeline *timeline);
void pod_svg_append_columns (GString *out, const PodSvgPanel *panel, const PodTimeline *timeline);
