#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

/* No input of ours comes near this: the largest model configuration is a few KiB. */
#define POD_FILE_LIMIT_BYTES ((size_t) 64 << 20)

/* Reads a regular file whole. A NUL byte follows the text and is not counted. Missing files,
 * directories, FIFOs and devices are refused, and a file over @limit_bytes is refused by its size,
 * before it is read. Error: POD_ERROR_PARSE "file: ...". Returns: (transfer full) (nullable).
 * O(size). */
char *pod_file_read (const char *file, size_t limit_bytes, size_t *out_n_bytes, GError **error);

/* True for gzip's magic number. */
bool pod_gzip_is_magic (const char *data, size_t n_bytes);

/* Inflates all members of a gzip stream. @name stands for the file in messages. Refuses damaged and
 * truncated streams ("gzip stream ends early at byte N") and more than @limit_bytes of text: a bomb
 * costs no more than that. A NUL byte follows. Error: POD_ERROR_PARSE. Returns: (transfer full)
 * (nullable). O(size of both). */
char *pod_gzip_inflate (const char *name, const char *data, size_t n_bytes, size_t limit_bytes,
                        size_t *out_n_bytes, GError **error);

/* The line, from 1, in which byte @offset of @text stands. O(offset). */
unsigned pod_line_at (const char *text, size_t offset);
