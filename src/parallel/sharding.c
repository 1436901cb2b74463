#include "parallel/sharding.h"

#include <string.h>

#include "base/error.h"

PodSharding
pod_sharding (const char *dims, unsigned first, unsigned second)
{
  PodSharding tensor = { .n_dims = (unsigned) strlen (dims) };

  g_assert (tensor.n_dims <= POD_MAX_TENSOR_DIMS);
  memcpy (tensor.dim, dims, tensor.n_dims);
  tensor.axes[0] = first;
  if (tensor.n_dims > 1)
    tensor.axes[1] = second;
  return tensor;
}

PodSharding
pod_sharding_transpose (const PodSharding *tensor)
{
  PodSharding out = *tensor;

  g_assert (tensor->n_dims == 2);
  out.dim[0] = tensor->dim[1];
  out.dim[1] = tensor->dim[0];
  out.axes[0] = tensor->axes[1];
  out.axes[1] = tensor->axes[0];
  return out;
}

static int
find_dim (const PodSharding *tensor, char dim)
{
  for (unsigned i = 0; i < tensor->n_dims; i++)
    if (tensor->dim[i] == dim)
      return (int) i;
  return -1;
}

/* The dimension that @axis shards, or -1; error when there are two. */
static bool
find_axis (const PodSharding *tensor, unsigned axis, int *out, GError **error)
{
  *out = -1;
  for (unsigned i = 0; i < tensor->n_dims; i++)
    if (tensor->axes[i] & axis)
      {
        if (*out >= 0)
          {
            g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "a mesh axis shards both %c and %c of one tensor", tensor->dim[*out], tensor->dim[i]);
            return false;
          }
        *out = (int) i;
      }
  return true;
}

static bool
derive_axis (const PodSharding *lhs, const PodSharding *rhs, const PodSharding *out, unsigned axis, PodShardedMatmul *result, GError **error)
{
  int l, r, o;
  bool l_contracted, r_contracted;

  if (!find_axis (lhs, axis, &l, error) || !find_axis (rhs, axis, &r, error) || !find_axis (out, axis, &o, error))
    return false;
  l_contracted = l >= 0 && find_dim (out, lhs->dim[l]) < 0;
  r_contracted = r >= 0 && find_dim (out, rhs->dim[r]) < 0;

  if (l_contracted && r_contracted && lhs->dim[l] == rhs->dim[r]) /* case 3 */
    {
      if (o >= 0)
        result->reduce_scatter |= axis;
      else
        result->all_reduce |= axis;
      return true;
    }
  if (l_contracted) /* case 2, and a contraction against an uncontracted dimension */
    {
      result->gather_lhs |= axis;
      l = -1;
    }
  if (r_contracted)
    {
      result->gather_rhs |= axis;
      r = -1;
    }
  if (l >= 0 && r >= 0 && lhs->dim[l] != rhs->dim[r]) /* case 4 */
    {
      if (o >= 0 && out->dim[o] == lhs->dim[l])
        {
          result->gather_rhs |= axis;
          r = -1;
        }
      else
        {
          result->gather_lhs |= axis;
          l = -1;
        }
    }
  if (o < 0)
    {
      if (l >= 0 || r >= 0)
        result->gather_out |= axis;
      return true;
    }
  if ((l >= 0 && lhs->dim[l] == out->dim[o]) || (r >= 0 && rhs->dim[r] == out->dim[o]))
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "the output shards %c on an axis on which no operand shards it and no sum is scattered", out->dim[o]);
  return false;
}

bool
pod_sharded_matmul (const PodSharding *lhs, const PodSharding *rhs, const PodSharding *out, PodShardedMatmul *result, GError **error)
{
  unsigned all = 0;

  memset (result, 0, sizeof *result);
  for (unsigned i = 0; i < POD_MAX_TENSOR_DIMS; i++)
    all |= (i < lhs->n_dims ? lhs->axes[i] : 0) | (i < rhs->n_dims ? rhs->axes[i] : 0) | (i < out->n_dims ? out->axes[i] : 0);
  for (unsigned i = 0; i < out->n_dims; i++)
    if (find_dim (lhs, out->dim[i]) < 0 && find_dim (rhs, out->dim[i]) < 0)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "output dimension %c is in neither operand", out->dim[i]);
        return false;
      }
  for (unsigned bit = 0; bit < 32; bit++)
    if (all & (1U << bit))
      if (!derive_axis (lhs, rhs, out, 1U << bit, result, error))
        return false;
  return true;
}
