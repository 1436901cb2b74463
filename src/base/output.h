#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

/* Output files that are whole or absent: written beside the target without a name, or where that cannot be
 * under a temporary one, and renamed on close; an error or _abandon deletes it, and so does the end of the
 * program, however it comes, while it has no name; "-" is stdout. Gzip when is_gzip. Errors: POD_ERROR_IO. */
typedef struct PodOutput PodOutput;

PodOutput *pod_output_open (const char *file, bool is_gzip, GError **error);
/* Buffered; the first failed write is remembered and reported by close. O(n). */
void pod_output_write (PodOutput *output, const void *data, size_t n_bytes);
void pod_output_printf (PodOutput *output, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* Flushes, renames into place, frees. */
bool pod_output_close (PodOutput *output, GError **error);
/* Deletes what was written, frees. NULL is fine. */
void pod_output_abandon (PodOutput *output);
/* Renames what was written to "NAME.partial" (before a last extension: trace.partial.json), frees: for SIGINT. */
bool pod_output_keep_partial (PodOutput *output, GError **error);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodOutput, pod_output_abandon)

/* The name for output of an interrupted run: "d/trace.json" to "d/trace.partial.json", "trace.json.gz" to
 * "trace.partial.json.gz", "trace" to "trace.partial". Returns: (transfer full) */
char *pod_output_partial_name (const char *target);

/* A small whole file at once. */
bool pod_output_save (const char *file, const char *text, GError **error);
