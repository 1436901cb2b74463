#pragma once

#include <stdbool.h>

#include <glib.h>

/* Element types that arithmetic and tensors may have. */
typedef enum
{
  POD_DTYPE_FP32,
  POD_DTYPE_BF16,
  POD_DTYPE_FP16,
  POD_DTYPE_FP8,
  POD_DTYPE_INT8,
  POD_DTYPE_FP4,
  POD_DTYPE_INT4,
  POD_N_DTYPES
} PodDtype;

const char *pod_dtype_name (PodDtype dtype);                 /* "bf16" */
bool pod_dtype_parse (const char *text, PodDtype *out, GError **error);
double pod_dtype_bytes (PodDtype dtype);                     /* 0.5 for fp4, int4 */
