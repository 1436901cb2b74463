#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* Published training steps: a row is one job on one machine, as its source tells it. Text columns keep the source's words;
 * training-scenario.c turns them into a scenario. */

typedef struct
{
  unsigned line;
  bool is_judged;      /* every field that a scenario needs is stated by the source */
  const char *id;      /* all text: (nullable) where the table says NA; owned by @cells */
  const char *why_not; /* what an unjudged row lacks */
  const char *source;
  const char *hardware;
  const char *topology;
  const char *framework;
  const char *model;
  const char *gated;
  const char *vocab;
  const char *head_dim;
  const char *vpp;
  const char *fsdp;       /* free text: "FSDP=256 per slice, DP over slices" */
  const char *zero_stage;
  const char *recompute;  /* free text */
  const char *recompute_kind;
  const char *dtype;      /* free text */
  const char *dtype_kind;
  const char *flop_convention;
  const char *note;
  uint64_t year;          /* whole numbers: 0 where the table says NA or words */
  uint64_t n_chips;
  uint64_t layers, hidden, heads, kv_heads, ffn, n_experts;
  uint64_t seq_len;
  uint64_t global_batch;  /* sequences */
  uint64_t micro_batch;   /* sequences per data rank and microbatch */
  uint64_t tp, pp, dp, cp, ep; /* dp: FSDP ranks included */
  double step_time_s;     /* numbers: 0 where the table says NA */
  double spread_ratio;    /* by how much releases of the same layout differ */
  double tflops_per_chip;
  double mfu_ratio, hfu_ratio;
  double peak_tflops;     /* what the source's MFU divides by */
  double memory_gib;      /* peak of a device */
  char **cells;
} PodTrainingRow;

typedef struct
{
  char *file;
  GPtrArray *rows; /* (element-type PodTrainingRow), in the file's order */
} PodTrainingTable;

/* Reads tab-separated rows under a heading with the columns of docs/format/measured.md; lines that start with # are comments.
 * Errors PARSE "file:line: ...". Returns: (transfer full). O(size). */
PodTrainingTable *pod_training_table_load (const char *file, GError **error);
void pod_training_table_free (PodTrainingTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodTrainingTable, pod_training_table_free)
