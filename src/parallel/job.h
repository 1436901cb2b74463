#pragma once

#include "parallel/program.h"
#include "parallel/recompute.h"
#include "parallel/schedule.h"

/* A training job: what a layout is applied to, and the choices that frameworks leave open. */

typedef enum
{
  POD_OPTIMIZER_ADAM,      /* two moments, fp32; a master copy where master_dtype says so */
  POD_OPTIMIZER_ADAM_BF16, /* two moments, bf16 */
  POD_OPTIMIZER_ADAM_8BIT, /* two moments, 1 byte and a scale for each block */
  POD_OPTIMIZER_ADAFACTOR, /* row and column sums of second moments */
  POD_OPTIMIZER_MUON,      /* one momentum; matrices made orthogonal; Adam for the rest */
  POD_OPTIMIZER_SGD,       /* no state but the master copy */
  POD_N_OPTIMIZERS
} PodOptimizer;

extern const char *const pod_optimizer_names[POD_N_OPTIMIZERS + 1]; /* ends with NULL */

/* The kernels of core attention. */
typedef enum
{
  POD_CORE_FLASH,   /* one kernel, no scores in memory (arXiv 2205.14135) */
  POD_CORE_UNFUSED, /* two matmuls and a softmax over all scores, masked or not: 2 bytes a score kept, 5 with dropout */
  POD_N_CORES
} PodCoreAttention;

extern const char *const pod_core_attention_names[POD_N_CORES + 1]; /* ends with NULL */

typedef struct
{
  const PodModel *model;
  PodLayout layout;
  PodBatch batch;
  const PodSchedule *schedule;  /* order of microbatches on each rank of the pipeline (borrowed) */
  const uint32_t *part_layers;  /* layers of each of the schedule's parts, from pod_layout_place */
  PodDtype dtype;               /* of matmuls and activations */
  PodDtype param_dtype;         /* weights as kept */
  PodDtype gather_dtype;        /* weights as gathered and multiplied */
  PodDtype grad_dtype;          /* gradients as kept from microbatch to microbatch */
  PodDtype reduce_dtype;        /* gradients as reduced */
  bool has_master;              /* fp32 master weights */
  PodOptimizer optimizer;
  PodRecompute recompute;
  PodCoreAttention core;
  bool has_dropout;             /* after attention and FFN, a mask byte each; unfused cores drop scores too */
  unsigned prefetch;            /* FSDP gathers this many units ahead; 0 = not overlapped */
  bool is_synced_once;          /* FSDP gathers weights and scatters gradients once a step: both stand whole between its microbatches */
  bool is_tp_overlapped;        /* collective matmul: tp's gathers and reductions in pieces behind their matmuls */
  bool is_p2p_overlapped;       /* a stage computes on while it sends */
  bool scatters_sends;          /* tensor ranks that all hold a stage's output send a part each and gather what arrives */
  bool is_dp_overlapped;        /* gradient reductions behind backward compute */
  double expert_load;           /* copies of tokens that the busiest rank's experts compute, over the mean; with a capacity factor
                                   that factor, for all experts are filled up to it */
  PodDtype dispatch_dtype;      /* of tokens on their way to the experts; they come back in dtype, in bf16 where that is narrower */
  unsigned route_nodes;         /* a token's experts stand on at most so many nodes, each of which gets it once; 0: sent to each
                                   expert by itself */
  bool draws_experts;           /* a token's experts fall where they fall; else on as many ranks and nodes as can be */
  bool counts_copies;           /* how many an expert gets is told to the host, which waits for it: no capacity makes it known before */
  bool weaves_experts;          /* forward and backward of two microbatches in turns: the host runs ahead of one while the other waits */
  bool runs_experts_by_op;      /* biases of experts and clamped activations op by op */
  bool is_causal;
  bool is_quantised;            /* dtype is that of matmuls' operands alone: activations stay bf16 and are cast */
  bool has_amax_pass;           /* quantised: a pass finds each tensor's scale before its cast */
  uint64_t lora_rank;           /* > 0: weights are frozen, each linear layer of a Transformer layer has an adapter of this rank */
  bool has_eager_loss;          /* PyTorch's cross-entropy op by op: see transformer.c */
  bool accumulates_apart;       /* a microbatch's gradients stand whole beside those that they are added to */
  bool keeps_stage_outputs;     /* what a stage sent stays until its backward (DeepSpeed's pipe_buffers) */
  bool has_flowing_gradients;   /* gradients of activations take memory while they flow back: a framework does not free them before their last reader */
  uint64_t bucket_bytes;        /* dp reduces at least so many bytes of gradients at once, but for the last; 0: each unit's */
  bool copies_grads;            /* the optimizer makes fp32 copies of the gradients that it uses */
  bool offloads_optimizer;      /* its state lives in the host's memory */
  bool clips_gradients;         /* the norm of all gradients is found before the update */
  bool is_fsdp_padded;          /* rows are added so that weights shard evenly (false: fractions of a row, as the book counts) */
} PodJob;

/* Bytes a parameter costs before sharding, by use. */
typedef struct
{
  double params;
  double grads;
  double optimizer;
} PodBytesPerParam;

void pod_job_bytes_per_param (const PodJob *job, PodBytesPerParam *out); /* of a matrix */
/* State of the optimizer beside the master copy, bytes a parameter, of matrices or of other tensors. */
double pod_job_state_bytes (const PodJob *job, bool is_matrix);
/* Of activations between matmuls. */
PodDtype pod_job_activation_dtype (const PodJob *job);
/* The vocabulary as it is computed with: padded to a multiple of 128 x tp (Megatron's rule), 0 for a model without one. */
uint64_t pod_job_padded_vocab (const PodJob *job);
uint64_t pod_job_n_microbatches (const PodJob *job);

/* The experts of one layer as a rank sees them, for a model that has some. */
typedef struct
{
  uint64_t n_local;          /* experts of a rank */
  uint64_t n_copies;         /* of each expert: the expert-data-parallel degree */
  uint64_t n_shards;         /* ranks of these over which weights are sharded */
  double tokens_per_expert;  /* of a microbatch, on the busiest rank */
  double dispatch_bytes;     /* sent by a rank for one microbatch, to its own experts included; without node-limited routing */
  double combine_bytes;
  double expert_params;      /* on a rank, before they are sharded */
} PodMoeFacts;

void pod_job_moe_facts (const PodJob *job, PodMoeFacts *out);

/* Per rank and step: what each axis moves, for ranking placements. */
void pod_job_traffic (const PodJob *job, double peak_flops_per_s, PodTraffic *out);

/* The program of one training step: forward and backward of every microbatch in the schedule's order, gradient reduction,
 * optimizer. Returns: (transfer full). O(parts x layers + slots + ranks). */
PodProgram *pod_job_program (const PodJob *job, const PodMesh *mesh, GError **error);
/* The same for those who ask how long things take and not what they are: chunks that are alike but for their place in the model have the ops
 * of the first of them, with its layers' names, and program->links says whom their transfers reach. Not to be executed. O(different chunks x
 * layers + slots + ranks). */
PodProgram *pod_job_outline (const PodJob *job, const PodMesh *mesh, GError **error);
