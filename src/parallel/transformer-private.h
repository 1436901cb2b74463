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
  POD_UNIT_MTP, /* multi-token prediction: a layer between a projection and the shared head */
} PodUnitKind;

typedef struct
{
  PodUnitKind kind;
  int32_t layer;              /* -1; of mtp from the model's layers on */
  const PodLayerKind *shape;  /* layers, mtp */
  double sharded_params;      /* on this rank after tp, before fsdp */
  double replicated_params;   /* norms: the same on every tp rank */
  double gathered_params;     /* what its matmuls need whole over fsdp, with padding (a tied head needs the embedding's table) */
  double padded_params;       /* its own parameters with the rows that fsdp adds to shard them evenly */
  double copied_table;        /* of those, a copy of the embedding's table, which optimizers of matrices leave alone */
  double expert_params;       /* of its experts: their copies are sharded and reduced apart */
  double adapter_params;      /* LoRA: what is trained instead, on this rank after tp */
  double adapter_replicated;  /* of these, the same on every tp rank */
  uint32_t saved_label;
  double saved_bytes;         /* activations that backward needs, per microbatch: kept on the device, but for */
  double offload_bytes;       /* those that wait in the host's memory, and */
  double again_bytes;         /* those computed again */
  double flowing_bytes;       /* gradients of activations that are there at once in its backward */
  double input_bytes;         /* the residual that enters */
  double tensor_bytes[POD_N_TENSORS]; /* layers: the others by tensor */
  unsigned again;             /* set of tensors computed again */
  unsigned makes;             /* set that a pass of phase RECOMPUTE makes, 0 where there is none */
  uint32_t group_first;       /* first of the units that are run again together, by the one that comes last in the model */
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
  uint32_t dp_comm;    /* copies of the weights: dp, and cp where fsdp does not shard over it */
  uint32_t cp_comm;
  uint32_t norm_comm;  /* stages, where clipping adds up the gradients' norm */
  PodExperts experts;
  unsigned data_axes;  /* mask that shards tokens everywhere: dp, fsdp, cp */
  unsigned token_axes; /* mask that shards tokens of the residual stream */
  unsigned fsdp_axes;  /* mask that shards weights under ZeRO-3: fsdp and cp */
  unsigned tp_axes;
  unsigned grad_axes;  /* mask that shards gradients beyond fsdp: that of dp_comm with ZeRO-1/2 */
  double tokens;       /* of a microbatch on this rank, whole over tp */
  double residual_tokens; /* after sequence parallelism */
  double element_bytes;   /* of activations */
  bool shards_outputs; /* fsdp shards a weight's output rows (FSDP2's dimension 0), else the residual dimension (XLA's rule) */
  bool is_synced_once;    /* job's, where there is something to gather */
  bool keeps_grads_whole; /* a rank has the gradients of all its weights, in the dtype in which they are kept */
  bool accumulates;    /* and adds those of each microbatch to them */
  bool shares_table;   /* first and last part are on one rank: a tied table is there once */
  uint32_t label_params, label_gathered, label_grads, label_unsharded_grads, label_optimizer, label_saved, label_logits, label_gathered_tokens, label_kept_grads, label_offloaded, label_routed, label_context, label_flowing,
      label_stage_outputs;
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
  bool is_routed;           /* ops work on as many copies of tokens as the experts got */
  bool has_routed;          /* some of its ops did */
  double kept_input_bytes;  /* part INPUT, WEIGHT: of the saved activations, what gradients of weights need */
} PodPass;

/* A weight: [in, out] of the whole model, and which side tp shards. */
typedef enum
{
  POD_TP_COLUMN, /* out is sharded: the input must be whole */
  POD_TP_ROW,    /* in is sharded: the output is a partial sum */
  POD_TP_NONE,   /* whole on every tp rank, which works on the residual stream's tokens that it has */
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
/* Parameters of a unit that are trained, on this rank after tp, before fsdp: all, or LoRA's adapters alone. */
typedef struct
{
  double params;       /* experts left out */
  double padded;       /* with the rows that fsdp adds */
  double matrices;     /* of params */
  double replicated;   /* of params: on every tp rank */
  double copied_table; /* of params: an embedding's copy */
  double experts;
} PodTrained;

PodTrained pod_unit_trained (const PodEmitter *emitter, const PodUnitPlan *unit);
void pod_unit_plan (const PodEmitter *emitter, PodUnitKind kind, int32_t layer, PodUnitPlan *out);

/* But for the layers that they are of, and what each is run again with (group_first). */
bool pod_units_are_alike (const PodUnitPlan *a, const PodUnitPlan *b);

/* What part @part of the model is made of, in model order. Returns: (transfer full) (element-type PodUnitPlan) */
GArray *pod_part_units (const PodEmitter *emitter, uint32_t part);

/* Parameters of a [rows, columns] weight once its rows are padded to shard evenly over fsdp. */
double pod_pad_rows (const PodEmitter *emitter, double rows, double columns);

/* Attention of a layer (attention-pass.c). */
typedef struct
{
  double weights;        /* of matrices that tp shards, on this rank */
  double global_weights; /* the same of the whole model */
  double replicated;     /* parameters that every tensor rank has */
  double adapter_sides;  /* of its matrices: sums of inputs and outputs, which an adapter's rank multiplies */
  double adapter_whole;  /* of these, on every tp rank */
  double padded;         /* of both, with the rows that fsdp adds */
  double query_bytes;    /* what backward needs of queries, and of what they are made of */
  double key_bytes;
  double value_bytes;
  double scores_bytes;   /* core attention's inside */
  double attention_bytes; /* its output */
  double flowing_bytes;   /* gradients of all of these at once, and of the scores where they are in memory */
} PodAttentionPlan;

void pod_attention_plan (const PodEmitter *emitter, const PodLayerKind *shape, PodAttentionPlan *out);
/* Communicators and buffers of attention, once per program. */
void pod_attention_init (PodEmitter *emitter, const PodMesh *mesh);
/* From the norm's output to the residual's addend. is_reduced: false where the FFN beside it is added before the sum over tp. */
void pod_attention_forward (PodPass *pass, bool is_reduced);
void pod_attention_backward (PodPass *pass);
/* The gradients of KV heads that several tensor ranks hold are summed over them. Returns: the last op, POD_NO_OP none */
uint32_t pod_attention_reduce_copies (PodEmitter *emitter, const GArray *units, double bytes_per_param);

/* One linear layer (linear.c). is_reduced: whether partial sums are reduced here (false: the caller adds another first). */
void pod_linear_forward (PodPass *pass, const PodLinear *linear, bool is_reduced);
/* Gradients of input and weight, or of one of them as pass->part says. */
void pod_linear_backward (PodPass *pass, const PodLinear *linear, bool is_reduced);
/* Which of the @tensors (bits) this pass makes: a forward makes all. */
unsigned pod_pass_makes (const PodPass *pass, unsigned tensors);
/* A collective over tp that waits for @after; POD_NO_OP in a pass of weight gradients. */
uint32_t pod_pass_tp_collective (PodPass *pass, const char *name, PodCollectiveKind kind, double bytes, uint32_t after);
/* Ops below change nothing in a pass of weight gradients (pass->part), and return what flows. */
/* An element-wise kernel over HBM bytes. */
uint32_t pod_pass_vector (PodPass *pass, const char *name, double flops, double read_bytes, double write_bytes);
/* The activation between an FFN's matrices over @tokens x @width, gate x up where gated. */
void pod_pass_activation (PodPass *pass, double tokens, uint64_t width, bool is_backward);
uint32_t pod_pass_compute (PodPass *pass, const char *name, bool has_detail, const PodKernel *kernel);
/* A kernel of a weight's gradient: in every pass. */
uint32_t pod_pass_weight_compute (PodPass *pass, const char *name, bool has_detail, const PodKernel *kernel);
