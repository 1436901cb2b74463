#pragma once

#include "base/dtype.h"
#include "collective/collective.h"

/* Measured collectives inside one scale-up domain: what calibration and validation read. */

typedef struct
{
  PodCollectiveKind kind;
  PodDtype dtype;
  uint32_t n_ranks;
  uint64_t bytes; /* nccl-tests' size */
  double time_s;
  unsigned line;
  bool is_small;  /* below the size from which its source is steady: median only */
  bool is_judged; /* no: reported only */
  bool is_fitted; /* a fit sees it: the binary logarithm of its size is even (the number of ranks
                     is, where a table has one or two sizes); the others are held out */
} PodCollectiveSample;

typedef struct
{
  char *file;
  char *source; /* (nullable) the line "# source: ..." */
  char *date;   /* (nullable) the line "# date: ..." */
  GArray *samples;
  GPtrArray *skipped; /* (element-type utf8) "line 12: why" */
} PodCollectiveTable;

/* Reads nccl tables (op dtype gpus bytes latency_us) and XLA's (device op dtype group_size ...), of
 * which it takes the rows of @chip. Errors PARSE with file:line. Returns: (transfer full) */
PodCollectiveTable *pod_collective_table_load (const char *file, const char *chip, GError **error);
void pod_collective_table_free (PodCollectiveTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodCollectiveTable, pod_collective_table_free)
