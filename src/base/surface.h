#pragma once

#include <stdbool.h>

#include <glib.h>

/* A coarse grid of numbers over a few quantities, read between its nodes: multilinear in the
 * logarithms of the quantities, constant past the ends of an axis. */

enum
{
  POD_SURFACE_MAX_AXES = 4,
  POD_SURFACE_MAX_NODES = 32, /* of one axis */
  POD_SURFACE_MAX_CORNERS = 1 << POD_SURFACE_MAX_AXES,
};

typedef struct
{
  unsigned n_nodes;
  double nodes[POD_SURFACE_MAX_NODES]; /* ascending, above 0 */
  double log2s[POD_SURFACE_MAX_NODES]; /* of the nodes */
} PodSurfaceAxis;

typedef struct
{
  unsigned n_axes;
  PodSurfaceAxis axes[POD_SURFACE_MAX_AXES];
  unsigned n_values; /* product of the nodes */
  double *values;    /* the last axis runs fastest; owned */
} PodSurface;

/* The nodes around a point: the surface there is sum (weights x values[indices]). */
typedef struct
{
  unsigned n;
  unsigned indices[POD_SURFACE_MAX_CORNERS];
  double weights[POD_SURFACE_MAX_CORNERS];
} PodSurfaceCorners;

/* All values 0. @nodes: text of each axis, "1 4 16", 2 to 32 ascending numbers above 0. Errors:
 * INVALID. Returns: (transfer full) (nullable) */
PodSurface *pod_surface_new (unsigned n_axes, const char *const *nodes, GError **error);
/* Returns: (transfer full) (nullable) NULL for NULL */
PodSurface *pod_surface_copy (const PodSurface *surface);
void pod_surface_free (PodSurface *surface);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodSurface, pod_surface_free)

/* @at: a quantity above 0 for each axis; smaller ones count as the first node. O(nodes of an axis +
 * corners), no allocation. */
void pod_surface_corners (const PodSurface *surface, const double *at, PodSurfaceCorners *out);
double pod_surface_at (const PodSurface *surface, const double *at);

/* Values as whole thousandths, so that text and number agree: "12 -3 0". Reading wants as many as
 * there are nodes, each within +-10,000. */
bool pod_surface_parse_values (PodSurface *surface, const char *text, GError **error);
/* A line for each run of the last axis, each after @indent. Returns: (transfer full) */
char *pod_surface_format_values (const PodSurface *surface, const char *indent);
/* "1 4 16". Returns: (transfer full) */
char *pod_surface_format_axis (const PodSurfaceAxis *axis);
/* Rounds the values to what the text says. */
void pod_surface_round (PodSurface *surface);
