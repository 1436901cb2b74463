#pragma once

#include <stdbool.h>

#include <glib.h>

/* Which activations of a layer are kept from its forward to its backward, where, and which are computed again. */

/* Tensors of a layer beside its input, in the order in which its forward makes them. */
typedef enum
{
  POD_TENSOR_NORM,       /* output of the norm before attention */
  POD_TENSOR_QUERY,
  POD_TENSOR_KEY,
  POD_TENSOR_VALUE,
  POD_TENSOR_SCORES,     /* inside of core attention: log-sum-exps (flash), or scores */
  POD_TENSOR_ATTENTION,  /* output of core attention */
  POD_TENSOR_RESIDUAL,   /* residual stream between attention and FFN */
  POD_TENSOR_FFN_NORM,   /* output of the norm before the FFN */
  POD_TENSOR_GATE,       /* output of the FFN's first matrix */
  POD_TENSOR_UP,         /* of the one beside it, where gated; all that experts keep */
  POD_TENSOR_ACTIVATION, /* input of the FFN's last matrix */
  POD_TENSOR_FFN_OUT,    /* before the residual is added: nobody needs it, but some frameworks keep it */
  POD_TENSOR_OUTPUT,     /* of the layer: the next one's input; computed again only where a framework runs a whole layer again */
  POD_N_TENSORS
} PodTensor;

#define POD_TENSOR_BIT(tensor) (1U << (tensor))
#define POD_ALL_TENSORS (POD_TENSOR_BIT (POD_TENSOR_FFN_OUT) - 1) /* that backward needs */
#define POD_QKV_TENSORS (POD_TENSOR_BIT (POD_TENSOR_QUERY) | POD_TENSOR_BIT (POD_TENSOR_KEY) | POD_TENSOR_BIT (POD_TENSOR_VALUE))
#define POD_FFN_IN_TENSORS (POD_TENSOR_BIT (POD_TENSOR_GATE) | POD_TENSOR_BIT (POD_TENSOR_UP))

typedef struct
{
  unsigned kept;      /* on the device */
  unsigned offloaded; /* in the host's memory; what is in neither set is computed again */
  bool is_whole;      /* a layer is run again as a whole, its last matmul too (torch's checkpoint; XLA leaves out what nobody needs) */
  unsigned group;     /* layers of which one input is kept: all of them are run again before the last one's backward */
  unsigned first;     /* only so many layers of each part, UINT_MAX all; the others keep everything */
  unsigned every;     /* only each n-th layer */
} PodRecompute;

/* Reads none | selective | full[:N] (Megatron's uniform method: groups of N layers) | block:N (the first N layers of each part) |
 * every:N (each N-th layer) | op (torchtitan's selective checkpointing per operation: attention and every second matmul of a layer are
 * kept) | save:LIST | offload[:LIST] | save:LIST+offload:LIST, where LIST names tensors: norm, qkv or query, key, value, attention,
 * residual, ffn-norm, ffn-in or gate, up, activation, ffn-out. Error INVALID names the word. */
bool pod_recompute_parse (const char *text, PodRecompute *out, GError **error);

/* Of layer @index of its part: what is computed again, none where the layer keeps everything. */
unsigned pod_recompute_again (const PodRecompute *recompute, unsigned index);
/* Whether it keeps its input: all do but those inside a group. */
bool pod_recompute_keeps_input (const PodRecompute *recompute, unsigned index);
