#pragma once

#include <stdbool.h>

#include <glib.h>

/* A neutral table: titled columns and rows of text, for report to print as aligned text or TSV/CSV.
 */
typedef struct PodTable PodTable;

/* @columns: NULL-terminated titles; a leading '>' right-aligns the column. */
PodTable *pod_table_new (const char *const *columns);
void pod_table_free (PodTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodTable, pod_table_free)
/* Cells, as many as columns (copied). */
void pod_table_add_row (PodTable *table, const char *const *cells);
/* One more column behind the last, a cell for each row. */
void pod_table_add_column (PodTable *table, const char *title, const GPtrArray *cells);
/* Aligned text, two blanks between columns, no trailing blanks. Returns: (transfer full) */
char *pod_table_to_text (const PodTable *table);
/* Separator-joined with a heading row. Separators: '\t'; ',' with CSV quoting; ' ' for gnuplot,
 * with "# " before the heading and quotes around cells with blanks. Returns: (transfer full) */
char *pod_table_to_separated (const PodTable *table, char separator);
/* What it holds, for other ways to print it. Row -1 are the titles. O(1). */
unsigned pod_table_n_rows (const PodTable *table);
unsigned pod_table_n_columns (const PodTable *table);
bool pod_table_is_right (const PodTable *table, unsigned column);
/* (transfer none) */
const char *pod_table_cell (const PodTable *table, int row, unsigned column);
