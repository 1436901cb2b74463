#pragma once

#include "parallel/builder-private.h"
#include "parallel/job.h"
#include "parallel/sharding.h"

/* Expands units (embedding, layers, head) into ops. One place writes down what a Transformer's training step does; the
 * communication of every matmul comes out of its shardings (sharding.h). */

typedef enum
{
  POD_UNIT_EMBEDDING,
  POD_UNIT_LAYER,
  POD_UNIT_HEAD,
} PodUnitKind;

typedef struct
{
  PodUnitKind kind;
  int32_t layer;              /* -1 */
  const PodLayerKind *shape;  /* layers */
  double sharded_params;      /* on this rank after tp, before fsdp */
  double replicated_params;   /* norms: the same on every tp rank */
  double gathered_params;     /* what its matmuls need whole over fsdp, with padding (a tied head needs the embedding's table) */
  double padded_params;       /* its own parameters with the rows that fsdp adds to shard them evenly */
  double expert_params;       /* of its experts: their copies are sharded and reduced apart */
  uint32_t saved_label;
  double saved_bytes;         /* activations kept from forward to backward, per microbatch */
  double input_bytes;         /* the residual that enters (kept under full recomputation) */
} PodUnitPlan;

/* Communicators of the experts' grid, POD_NO_COMM where its degree is 1. */
typedef struct
{
  uint32_t ep_comm;
  uint32_t etp_comm;
  uint32_t fsdp_comm; /* copies that share their weights */
  uint32_t dp_comm;   /* copies that are replicas */
  uint32_t inside_comm, across_comm; /* ep cut by node, with node-limited routing */
  uint32_t n_nodes;   /* that an ep group stands on, with node-limited routing */
  double fsdp;        /* degrees */
  double dp;
} PodExperts;

/* What all units of a program share. */
typedef struct
{
  const PodJob *job;
  PodBuilder builder;
  uint32_t tp_comm;    /* POD_NO_COMM when the axis has degree 1 */
  uint32_t fsdp_comm;
  uint32_t dp_comm;
  uint32_t norm_comm;  /* stages, where clipping adds up the gradients' norm */
  PodExperts experts;
  unsigned data_axes;  /* mask that shards the batch */
  unsigned token_axes; /* mask that shards tokens of the residual stream */
  unsigned fsdp_axes;
  unsigned tp_axes;
  unsigned grad_axes;  /* mask that shards gradients beyond fsdp: dp with ZeRO-1/2 */
  double tokens;       /* of a microbatch on this rank, whole over tp */
  double residual_tokens; /* after sequence parallelism */
  double element_bytes;   /* of activations */
  bool shards_outputs; /* fsdp shards a weight's output rows (FSDP2's dimension 0), else the residual dimension (XLA's rule) */
  bool keeps_grads_whole; /* a rank has the gradients of all its weights, in the dtype in which they are kept */
  bool accumulates;    /* and adds those of each microbatch to them */
  bool shares_table;   /* first and last part are on one rank: a tied table is there once */
  uint32_t label_params, label_gathered, label_grads, label_unsharded_grads, label_optimizer, label_saved, label_logits, label_gathered_tokens, label_kept_grads, label_routed;
} PodEmitter;

#define POD_NO_COMM UINT32_MAX

/* Which gradients a backward pass makes: zero-bubble schedules part those of the weights from those of the input. */
typedef enum
{
  POD_PART_BOTH,
  POD_PART_INPUT,  /* keeps what the gradients of weights need */
  POD_PART_WEIGHT, /* only these, from what was kept */
} PodPart;

/* Ops of one pass over one unit. */
typedef struct
{
  PodEmitter *emitter;
  const PodUnitPlan *unit;
  PodPhase phase;
  PodPart part;             /* backward */
  uint32_t weights;      /* gather that the unit's weights wait for, POD_NO_OP none */
  uint32_t expert_weights; /* the same of its experts */
  uint32_t value;        /* op that made the tensor which flows: activations forward, gradients backward */
  uint32_t gathered;     /* op that all-gathered it over tp, POD_NO_OP not gathered */
  uint32_t first_compute;
  uint32_t last_compute;
  unsigned grad_scatter;    /* axes over which weight gradients are reduce-scattered, from the shardings */
  unsigned grad_all_reduce;
  double kept_input_bytes;  /* part INPUT, WEIGHT: of the saved activations, what gradients of weights need */
} PodPass;

/* A weight: [in, out] of the whole model, and which side tp shards. */
typedef enum
{
  POD_TP_COLUMN, /* out is sharded: the input must be whole */
  POD_TP_ROW,    /* in is sharded: the output is a partial sum */
} PodTpSide;

typedef struct
{
  const char *name;
  uint64_t in;     /* local to this rank */
  uint64_t out;
  PodTpSide side;
} PodLinear;

/* Ops of a unit's forward (phase FORWARD or RECOMPUTE) and backward, from pass->value on; pass->value is the result. */
void pod_pass_forward (PodPass *pass);
void pod_pass_backward (PodPass *pass);
void pod_unit_plan (const PodEmitter *emitter, PodUnitKind kind, int32_t layer, PodUnitPlan *out);

/* What part @part of the model is made of, in model order. Returns: (transfer full) (element-type PodUnitPlan) */
GArray *pod_part_units (const PodEmitter *emitter, uint32_t part);

/* One linear layer (linear.c). is_reduced: whether partial sums are reduced here (false: the caller adds another first). */
void pod_linear_forward (PodPass *pass, const PodLinear *linear, bool is_reduced);
/* Gradients of input and weight, or of one of them as pass->part says. */
void pod_linear_backward (PodPass *pass, const PodLinear *linear, bool is_reduced);
/* A collective over tp that waits for @after; POD_NO_OP in a pass of weight gradients. */
uint32_t pod_pass_tp_collective (PodPass *pass, const char *name, PodCollectiveKind kind, double bytes, uint32_t after);
/* Ops below change nothing in a pass of weight gradients (pass->part), and return what flows. */
/* An element-wise kernel over HBM bytes. */
uint32_t pod_pass_vector (PodPass *pass, const char *name, double flops, double read_bytes, double write_bytes);
/* The activation between an FFN's matrices over @tokens x @width, gate x up where gated. */
void pod_pass_activation (PodPass *pass, double tokens, uint64_t width, bool is_backward);
uint32_t pod_pass_compute (PodPass *pass, const char *name, const char *detail, const PodKernel *kernel);
/* A kernel of a weight's gradient: in every pass. */
uint32_t pod_pass_weight_compute (PodPass *pass, const char *name, const char *detail, const PodKernel *kernel);
