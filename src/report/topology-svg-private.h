#pragma once

#include "topology/topology.h"

/* A drawing in whole pixels: elements are appended, and the picture grows to hold them. How a class
 * looks stands in the style sheet of topology-svg.c. */

typedef struct
{
  int x;
  int y;
} PodPoint;

typedef struct
{
  int x;
  int y;
  int width;
  int height;
} PodBox;

typedef struct
{
  GString *body;
  PodBox bounds; /* of all that was drawn */
  bool is_empty;
} PodCanvas;

void pod_canvas_line (PodCanvas *canvas, const char *class, PodPoint from, PodPoint to);
/* A cubic curve; @bend_from and @bend_to are its inner points. */
void pod_canvas_curve (PodCanvas *canvas, const char *class, const PodPoint points[4]);
void pod_canvas_box (PodCanvas *canvas, const char *class, PodBox box);
void pod_canvas_circle (PodCanvas *canvas, const char *class, PodPoint centre, int radius);
void pod_canvas_polygon (PodCanvas *canvas, const char *class, const PodPoint *points,
                         unsigned n_points);
/* One line of text, escaped. Classes "start" and "end" align it there, else it is centred. */
void pod_canvas_text (PodCanvas *canvas, const char *class, PodPoint at, const char *format, ...)
    G_GNUC_PRINTF (4, 5);

static inline PodPoint
pod_point (int x, int y)
{
  return (PodPoint){ x, y };
}

/* Which of @extent things in a row are drawn: all, or the first ones, an ellipsis, and the last. */
enum
{
  POD_MAX_SHOWN = 32,
};

typedef struct
{
  unsigned n;
  unsigned index[POD_MAX_SHOWN]; /* of the thing */
  int slot[POD_MAX_SHOWN];       /* its place: the ellipsis takes one */
  int n_slots;
  int gap_slot; /* -1: none is left out */
} PodShown;

/* All of up to @limit; else @n_first of them, an ellipsis and the last @n_last. */
void pod_shown_init (PodShown *shown, unsigned extent, unsigned limit, unsigned n_first,
                     unsigned n_last);
/* Place of thing @index; false when it is left out. */
bool pod_shown_slot (const PodShown *shown, unsigned index, int *out_slot);

/* Each draws into @canvas from (0, 0) down and to the right, more or less. */
void pod_draw_torus (PodCanvas *canvas, const PodTopology *topology);
void pod_draw_switched (PodCanvas *canvas, const PodTopology *topology);
void pod_draw_graph (PodCanvas *canvas, const PodTopology *topology);
