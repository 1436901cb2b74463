#pragma once

#include <stddef.h>

#include <glib.h>

/* What a Chrome trace must be so that Perfetto, chrome://tracing and speedscope show it as it was
 * meant; judged from the text alone, by a JSON parser of its own that allows nothing extra. */
typedef struct
{
  const char *name; /* "lanes-nested" */
  char *why;        /* (nullable) the first violation; NULL: kept */
} TraceRule;

/* Returns: (transfer full) (element-type TraceRule) a verdict for every rule, in a fixed order.
 * O(n log n). */
GPtrArray *trace_rules_check (const char *text, size_t n_bytes);

/* The verdict on one rule. (transfer none) (nullable) NULL when it is kept */
const char *trace_rules_why (GPtrArray *rules, const char *name);
