#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* Values of some options, and all their combinations: what a sweep runs and what a search tries for each layout. A
 * combination is a number; the last dimension moves fastest. */

typedef struct
{
  char *key;         /* of an option, or the path of a number: "chip.hbm_bandwidth" */
  GPtrArray *values; /* (element-type utf8) at least one */
} PodGridDim;

typedef struct
{
  GPtrArray *dims; /* (element-type PodGridDim) */
} PodGrid;

PodGrid *pod_grid_new (void);
void pod_grid_free (PodGrid *grid);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodGrid, pod_grid_free)

/* Adds "KEY=LIST". LIST holds values separated by commas (by semicolons where it has one, and for keys whose own values have commas); one of
 * them may be a range LO:HI:*K or LO:HI:+K of whole numbers, both ends included as far as steps reach. A key that stands twice is an
 * error, as is a range that never ends or has over 10,000 values. */
bool pod_grid_add (PodGrid *grid, const char *text, GError **error);
/* Adds one value to a dimension, which is made when it is not there. */
void pod_grid_add_value (PodGrid *grid, const char *key, const char *value);
/* (transfer none) (nullable) */
PodGridDim *pod_grid_find (const PodGrid *grid, const char *key);
/* Makes the dimension @key, which is there, the first one. */
void pod_grid_put_first (PodGrid *grid, const char *key);
void pod_grid_remove (PodGrid *grid, const char *key);
/* Combinations; 1 without dimensions. UINT64_MAX when it is more than that. */
uint64_t pod_grid_size (const PodGrid *grid);
/* Value of dimension @dim in combination @index. (transfer none). O(dimensions) */
const char *pod_grid_value (const PodGrid *grid, uint64_t index, guint dim);
