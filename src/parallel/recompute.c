#include "parallel/recompute.h"

#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"

/* SCORES goes with ATTENTION: nobody names it. */
static const struct
{
  const char *name;
  unsigned tensors;
} names[] = {
  { "norm", POD_TENSOR_BIT (POD_TENSOR_NORM) },
  { "qkv", POD_QKV_TENSORS },
  { "query", POD_TENSOR_BIT (POD_TENSOR_QUERY) },
  { "key", POD_TENSOR_BIT (POD_TENSOR_KEY) },
  { "value", POD_TENSOR_BIT (POD_TENSOR_VALUE) },
  { "attention", POD_TENSOR_BIT (POD_TENSOR_ATTENTION) | POD_TENSOR_BIT (POD_TENSOR_SCORES) },
  { "residual", POD_TENSOR_BIT (POD_TENSOR_RESIDUAL) },
  { "ffn-norm", POD_TENSOR_BIT (POD_TENSOR_FFN_NORM) },
  { "ffn-in", POD_FFN_IN_TENSORS },
  { "gate", POD_TENSOR_BIT (POD_TENSOR_GATE) },
  { "up", POD_TENSOR_BIT (POD_TENSOR_UP) },
  { "activation", POD_TENSOR_BIT (POD_TENSOR_ACTIVATION) },
  { "ffn-out", POD_TENSOR_BIT (POD_TENSOR_FFN_OUT) },
};

/* torchtitan, parallelize_llama.py (_save_list, _get_custom_policy; 2024): attention and the first, third, ... matmul of a layer, in the
 * order wq, wk, wv, wo, w1, w3, w2. */
static const unsigned per_op = POD_TENSOR_BIT (POD_TENSOR_QUERY) | POD_TENSOR_BIT (POD_TENSOR_VALUE) | POD_TENSOR_BIT (POD_TENSOR_SCORES) | POD_TENSOR_BIT (POD_TENSOR_ATTENTION)
                               | POD_TENSOR_BIT (POD_TENSOR_GATE) | POD_TENSOR_BIT (POD_TENSOR_FFN_OUT);

static bool
refuse (const char *text, GError **error)
{
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "--recompute: '%s' is not known; known are none, selective, full, full:N, block:N, every:N, op, save:LIST, offload, offload:LIST, save:LIST+offload:LIST", text);
  return false;
}

static bool
parse_list (const char *text, unsigned *out, GError **error)
{
  g_auto (GStrv) words = g_strsplit (text, ",", -1);

  *out = 0;
  for (unsigned i = 0; words[i] != NULL; i++)
    {
      unsigned t = 0;

      while (t < G_N_ELEMENTS (names) && strcmp (names[t].name, words[i]) != 0)
        t++;
      if (t == G_N_ELEMENTS (names))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "--recompute: no tensor '%s'; known are norm, qkv (or query, key, value), attention, residual, ffn-norm, ffn-in (or gate, up), activation, ffn-out", words[i]);
          return false;
        }
      *out |= names[t].tensors;
    }
  return true;
}

static bool
parse_number (const char *text, unsigned *out, GError **error)
{
  uint64_t n;

  if (!pod_parse_whole (text, POD_UNIT_COUNT, &n, error))
    {
      g_prefix_error (error, "--recompute: ");
      return false;
    }
  if (n < 1 || n > UINT_MAX)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--recompute: '%s' layers: at least 1", text);
      return false;
    }
  *out = (unsigned) n;
  return true;
}

/* save:LIST, offload:LIST, or both. */
static bool
parse_lists (const char *text, PodRecompute *out, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, "+", -1);

  out->kept = 0;
  for (unsigned i = 0; parts[i] != NULL; i++)
    {
      const bool is_save = g_str_has_prefix (parts[i], "save:");

      if (!is_save && !g_str_has_prefix (parts[i], "offload:"))
        return refuse (parts[i], error);
      if (!parse_list (strchr (parts[i], ':') + 1, is_save ? &out->kept : &out->offloaded, error))
        return false;
    }
  if ((out->kept & out->offloaded) != 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--recompute: '%s' names a tensor twice", text);
      return false;
    }
  return true;
}

bool
pod_recompute_parse (const char *text, PodRecompute *out, GError **error)
{
  const char *colon = strchr (text, ':');
  const char *number = colon != NULL ? colon + 1 : NULL;

  *out = (PodRecompute){ .kept = POD_ALL_TENSORS, .group = 1, .first = UINT_MAX, .every = 1 };
  if (strcmp (text, "none") == 0)
    return true;
  if (strcmp (text, "selective") == 0)
    {
      out->kept &= ~POD_TENSOR_BIT (POD_TENSOR_SCORES);
      return true;
    }
  if (strcmp (text, "offload") == 0)
    {
      out->kept = 0;
      out->offloaded = POD_ALL_TENSORS;
      return true;
    }
  if (g_str_has_prefix (text, "save:") || g_str_has_prefix (text, "offload:"))
    return parse_lists (text, out, error);
  if (strcmp (text, "op") == 0)
    {
      out->kept = per_op;
      return true;
    }
  out->kept = 0;
  out->is_whole = true;
  if (strcmp (text, "full") == 0)
    return true;
  if (g_str_has_prefix (text, "full:"))
    return parse_number (number, &out->group, error);
  if (g_str_has_prefix (text, "block:"))
    return parse_number (number, &out->first, error);
  if (g_str_has_prefix (text, "every:"))
    return parse_number (number, &out->every, error);
  return refuse (text, error);
}

unsigned
pod_recompute_again (const PodRecompute *recompute, unsigned index)
{
  if (index >= recompute->first || index % recompute->every != 0)
    return 0;
  return POD_ALL_TENSORS & ~(recompute->kept | recompute->offloaded);
}

bool
pod_recompute_keeps_input (const PodRecompute *recompute, unsigned index)
{
  return index % recompute->group == 0;
}
