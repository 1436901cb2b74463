#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "model/model.h"

/* A layout: how many ways each kind of parallelism splits the job. */

typedef enum
{
  POD_AXIS_DP,   /* replicas of the (sharded) model: gradients are all-reduced, or sharded by ZeRO-1/2 */
  POD_AXIS_FSDP, /* ZeRO-3: batch and weights */
  POD_AXIS_TP,   /* heads, FFN width, vocabulary; tokens between blocks with sequence parallelism */
  POD_AXIS_CP,   /* sequence */
  POD_AXIS_PP,   /* layers */
  POD_N_AXES,    /* whose degrees multiply to the devices */
  POD_AXIS_EP = POD_N_AXES, /* experts, on a grid of their own over the devices of a stage: communication is told by it */
  POD_AXIS_HOST,  /* copies to and from the host's memory */
  POD_N_COMM_AXES
} PodAxis;

#define POD_MASK(axis) (1U << (axis))

/* How queries of one context rank meet the keys of another. */
typedef enum
{
  POD_CP_RING,      /* K and V go round, a block at a time, behind the attention of the block before (arXiv 2310.01889) */
  POD_CP_ALLGATHER, /* K and V of the whole sequence are gathered first (Llama 3, arXiv 2407.21783, 3.3.2) */
  POD_CP_ULYSSES,   /* all-to-all from sequence to heads and back (arXiv 2309.14509) */
  POD_N_CP_KINDS
} PodCpKind;

extern const char *const pod_cp_kind_names[POD_N_CP_KINDS + 1]; /* ends with NULL */

typedef struct
{
  uint32_t degree[POD_N_AXES]; /* >= 1 */
  uint32_t vpp;                /* virtual stages of a stage, >= 1 */
  uint32_t ep;                 /* >= 1: ways that the experts of a layer are dealt out; no factor of the devices */
  uint32_t etp;                /* >= 1: ways that each expert's width is cut */
  unsigned zero_stage;         /* what dp shards: 0, 1, 2 */
  bool is_zero_3;              /* weights are sharded even where fsdp is 1: over cp */
  bool is_sequence_parallel;   /* tp shards tokens outside the tp matmuls */
  PodCpKind cp_kind;
  bool is_zigzag; /* context rank i has chunks i and 2cp-1-i of 2cp, so that causal work is the same on all */
} PodLayout;

/* The grid of the experts over the devices of a stage: tp x cp x fsdp x dp = etp x ep x copies. The copies of an expert are
 * sharded as far as fsdp does it; those beyond are replicas, as over dp. */
typedef enum
{
  POD_EXPERT_ETP,
  POD_EXPERT_EP,
  POD_EXPERT_FSDP,
  POD_EXPERT_DP,
  POD_N_EXPERT_AXES
} PodExpertAxis;

/* Whether weights are sharded: fsdp above 1, or asked for (--zero 3). */
bool pod_layout_is_sharded (const PodLayout *layout);
/* Ranks that share one copy of a weight beside tp: fsdp x cp where weights are sharded, else 1, and the mask of their axes. */
uint32_t pod_layout_n_shards (const PodLayout *layout);
unsigned pod_layout_shard_axes (const PodLayout *layout);
/* Copies of a weight beside tp: dp, and cp where fsdp does not shard over it. */
uint32_t pod_layout_n_replicas (const PodLayout *layout);
unsigned pod_layout_replica_axes (const PodLayout *layout);

const char *pod_axis_name (PodAxis axis); /* "dp" */
bool pod_axis_parse (const char *text, PodAxis *out); /* not ep */

/* Reads "dp=2 fsdp=64 tp=8"; one degree may be "auto": what is left of @n_devices. Error INVALID names the word;
 * INFEASIBLE when auto does not divide. */
bool pod_layout_parse (const char *text, uint32_t n_devices, PodLayout *out, GError **error);
/* "fsdp=1024 tp=4": degrees other than 1 in the order of the enum; "single" when all are 1. Returns: (transfer full) */
char *pod_layout_to_text (const PodLayout *layout);
uint32_t pod_layout_n_ranks (const PodLayout *layout);
/* Of any axis; ep x etp for ep, 1 for the host. */
uint32_t pod_layout_degree (const PodLayout *layout, PodAxis axis);
/* Devices of a stage: tp x cp x fsdp x dp. */
uint32_t pod_layout_stage_size (const PodLayout *layout);
/* ep x etp must divide a stage. */
void pod_layout_expert_grid (const PodLayout *layout, uint32_t out[POD_N_EXPERT_AXES]);
/* Width of a layer's FFN that every token passes: dense ones and shared experts. */
uint64_t pod_layout_dense_ffn (const PodModel *model, const PodLayerKind *kind);

/* What a layout is applied to. */
typedef struct
{
  uint64_t seq_len;
  uint64_t global_batch;   /* sequences */
  uint64_t micro_batch;    /* sequences per data rank and microbatch */
  const uint32_t *stage_layers; /* (nullable) layers of each part (pp x vpp of them), in model order */
  unsigned n_stage_layers;
  bool is_embed_head_as_layers;
  bool is_balanced;             /* parts get layers so that the costliest is as cheap as can be */
} PodBatch;

#define POD_MAX_STEP_TOKENS 1e15  /* below 2^53, so that tokens are exact as doubles; a training of today has 1e13 */
#define POD_MAX_SLOTS       4000000U /* microbatches of all stages: so long a step takes hours to simulate */

/* Everything that must divide, each refusal with the three numbers and the nearest legal choice (POD_ERROR_INFEASIBLE):
 * devices, heads (over tp, with Ulysses over tp x cp), KV heads (replicated with a note when the ranks are a multiple of them),
 * FFN, experts, sequence (over cp, 2 chunks a rank with is_zigzag, and tp), batch. LIMIT beyond the two limits above.
 * @notes (element-type utf8): what was decided. */
bool pod_layout_check (const PodLayout *layout, const PodModel *model, const PodBatch *batch, uint32_t n_devices, bool allow_idle,
                       GPtrArray *notes, GError **error);

/* Deals the model's layers to @n_parts parts: as the batch gives them, equally, or balanced by the FLOPs of layers and head. INFEASIBLE
 * names the counts where they do not fit. Returns: (transfer full) @n_parts counts. */
uint32_t *pod_layout_place (const PodLayout *layout, const PodModel *model, const PodBatch *batch, uint32_t n_parts, GError **error);
