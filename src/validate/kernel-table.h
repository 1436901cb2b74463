#pragma once

#include "chip/kernel.h"

/* Tables of measured kernels, in the column formats of docs/format/measured.md. A line is one
 * operation of a library, which may be several of our kernels. */

typedef enum
{
  POD_KERNEL_TABLE_GEMM,      /* [m,k].[k,n]; fp8 with the quantisation of [m,k] */
  POD_KERNEL_TABLE_ATTENTION, /* q_len 1 with cached keys: decode; else causal prefill */
  POD_KERNEL_TABLE_MOE,       /* one rank's expert matmuls */
} PodKernelTableKind;

typedef enum
{
  POD_SAMPLE_GEMM,
  POD_SAMPLE_PREFILL,
  POD_SAMPLE_DECODE,
  POD_SAMPLE_MOE,
  POD_SAMPLE_MOE_SKEWED,
  POD_N_SAMPLE_KINDS
} PodSampleKind;

/* Positions in PodKernelSample.numbers. */
enum
{
  POD_GEMM_M = 0,
  POD_GEMM_N,
  POD_GEMM_K,
  POD_ATTENTION_BATCH = 0,
  POD_ATTENTION_Q_LEN,
  POD_ATTENTION_PAST_LEN,
  POD_ATTENTION_HEADS,
  POD_ATTENTION_KV_HEADS,
  POD_ATTENTION_HEAD_DIM,
  POD_MOE_TOKENS = 0,
  POD_MOE_HIDDEN,
  POD_MOE_FFN,
  POD_MOE_TOP_K,
  POD_MOE_EXPERTS,
  POD_MOE_TP,
  POD_MOE_EP,
  POD_SAMPLE_MAX_NUMBERS = 7,
  POD_SAMPLE_N_FOLDS = 10,
};

typedef struct
{
  PodSampleKind kind;
  PodDtype dtype;
  unsigned line;
  unsigned
      fold; /* 0 ... 9, by a hash of the shape without its size: all sizes of a shape are in one */
  double power; /* experts: of the law that tokens are drawn from, 1: equal shares; else 0 */
  double time_s;
  uint64_t numbers[POD_SAMPLE_MAX_NUMBERS];
} PodKernelSample;

typedef struct
{
  char *file;
  char *source; /* (nullable) from "# source: " */
  PodKernelTableKind kind;
  GArray *samples;    /* PodKernelSample */
  GPtrArray *skipped; /* (element-type utf8) */
} PodKernelTable;

/* Reads TSV, gzip or not. Returns: (transfer full) (nullable). O(lines). */
PodKernelTable *pod_kernel_table_load (const char *file, GError **error);
void pod_kernel_table_free (PodKernelTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodKernelTable, pod_kernel_table_free)

const char *pod_sample_kind_name (PodSampleKind kind); /* "gemm" */
/* The numbers with their names, "m=1 n=32 k=64". Returns: (transfer full) */
char *pod_kernel_sample_to_text (const PodKernelSample *sample);
