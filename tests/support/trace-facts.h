#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

/* What a trace says, whatever its format: a line for each slice, arrow and sample, so that a
 * Perfetto trace can be held against a Chrome one of the same run. */
typedef struct
{
  char *what;     /* "slice rank 0 | compute | forward | matmul | 12000 | {layer=3}" */
  int64_t dur_ns; /* of a slice; apart, since a Chrome trace may end one a nanosecond early */
} TraceFact;

/* Each returns its facts, sorted; NULL with @why set (transfer full) when it is no such trace, or
 * one that a reader would show wrongly: (transfer full) (element-type TraceFact) (nullable) */
GPtrArray *trace_facts_of_chrome (const char *text, char **why);
/* Reads as Perfetto does: by time, packets of one instant in the order of the file; slices nest on
 * their track, strings are known before they are referred to, arrows leave before they arrive. */
GPtrArray *trace_facts_of_perfetto (const void *data, size_t n_bytes, char **why);

/* Where they differ, the first time: (transfer full) (nullable) NULL when they say the same. */
char *trace_facts_compare (const GPtrArray *a, const GPtrArray *b);
