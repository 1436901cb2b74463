#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "support/strict-json.h"
#include "support/trace-rules.h"

/* A Chrome trace as trace-rules.c judges it. */

typedef struct
{
  char phase;
  bool has_ts;
  bool is_bound; /* "bp":"e" */
  int64_t pid;
  int64_t tid;
  int64_t ts_ns;
  int64_t dur_ns;
  int64_t id;
  const char *name;     /* (nullable) interned in the file's strings */
  const char *category; /* (nullable) likewise */
  StrictValue args;     /* text NULL: none */
} TraceEvent;

typedef struct
{
  StrictJson json;
  GStringChunk *strings;
  GArray *events;   /* TraceEvent, in the order of the file */
  GPtrArray *rules; /* (element-type TraceRule) (transfer none) */
  bool has_left_out;
} TraceFile;

/* Tells of a violation of the rule; the first one stays. */
void trace_violate (TraceFile *trace, const char *name, const char *format, ...)
    G_GNUC_PRINTF (3, 4);
/* Reads the document behind trace->json into the events. False: json.why says where it is no JSON.
 */
bool trace_file_read (TraceFile *trace);
/* The value of a member of an object that was read before. */
bool trace_get_member (const StrictValue *object, const char *name, StrictValue *out);
/* A whole number that a viewer can hold; false for strings, fractions and exponents. */
bool trace_read_whole (const StrictValue *value, int64_t *out);
