#pragma once

#include <stdbool.h>

#include <glib.h>

/* Predicted over measured on logarithmic axes, a colour for each series: the nearer to the diagonal, the better. */
typedef struct PodScatter PodScatter;

/* @name of the files, made of any text; @quantity with its unit, "time of a step, s". */
PodScatter *pod_cli_scatter_new (const char *name, const char *title, const char *quantity);
void pod_cli_scatter_free (PodScatter *scatter);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodScatter, pod_cli_scatter_free)
/* A point; what has no logarithm is left out. O(series) */
void pod_cli_scatter_add (PodScatter *scatter, const char *series, double measured, double predicted);
/* Draws it into @folder; nothing where it has no points. All points stand in the data; of a series with more than 2,000 every k-th is drawn. */
bool pod_cli_scatter_draw (const PodScatter *scatter, const char *folder, GError **error);
