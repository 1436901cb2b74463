#include "base/dtype.h"

#include <string.h>

#include "base/error.h"

static const struct
{
  const char *name;
  double bytes;
} dtypes[POD_N_DTYPES] = {
  [POD_DTYPE_FP32] = { "fp32", 4 }, [POD_DTYPE_BF16] = { "bf16", 2 }, [POD_DTYPE_FP16] = { "fp16", 2 }, [POD_DTYPE_FP8] = { "fp8", 1 },
  [POD_DTYPE_INT8] = { "int8", 1 }, [POD_DTYPE_FP4] = { "fp4", 0.5 }, [POD_DTYPE_INT4] = { "int4", 0.5 },
};

const char *
pod_dtype_name (PodDtype dtype)
{
  return dtypes[dtype].name;
}

double
pod_dtype_bytes (PodDtype dtype)
{
  return dtypes[dtype].bytes;
}

bool
pod_dtype_parse (const char *text, PodDtype *out, GError **error)
{
  for (unsigned i = 0; i < POD_N_DTYPES; i++)
    if (strcmp (text, dtypes[i].name) == 0)
      {
        *out = i;
        return true;
      }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "unknown element type '%s'; known are fp32, bf16, fp16, fp8, int8, fp4, int4", text);
  return false;
}
