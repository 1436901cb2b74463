#pragma once

#include "collective/collective.h"
#include "model/operation.h"
#include "parallel/mesh.h"

/* What a layout makes of a model: a program of operations per class of equal ranks (a pipeline stage). */

typedef enum
{
  POD_STREAM_COMPUTE,
  POD_STREAM_TP,       /* tensor-parallel collectives */
  POD_STREAM_CP,       /* keys and values between context ranks */
  POD_STREAM_GATHER,   /* FSDP weight gathers */
  POD_STREAM_REDUCE,   /* gradient reduce-scatters and all-reduces, parameter gathers of ZeRO-1/2 */
  POD_STREAM_EP,       /* tokens to experts and back */
  POD_STREAM_EP_NODE,  /* their part inside a node, where it goes on from the part between nodes */
  POD_STREAM_SEND_ACT, /* pipeline: activations to the next stage */
  POD_STREAM_RECV_ACT,
  POD_STREAM_SEND_GRAD,
  POD_STREAM_RECV_GRAD,
  POD_STREAM_SEND_ACT_BACK, /* the same for parts whose activations go from higher to lower ranks */
  POD_STREAM_RECV_ACT_BACK,
  POD_STREAM_SEND_GRAD_BACK,
  POD_STREAM_RECV_GRAD_BACK,
  POD_STREAM_TO_HOST,  /* offloading: over PCIe, both ways at once */
  POD_STREAM_FROM_HOST,
  POD_N_STREAMS
} PodStream;

extern const char *const pod_stream_names[POD_N_STREAMS];
/* Whether ops of the stream send to another stage (its peer receives on another stream). */
bool pod_stream_is_send (PodStream stream);

typedef enum
{
  POD_PHASE_FORWARD,
  POD_PHASE_BACKWARD,
  POD_PHASE_RECOMPUTE,
  POD_PHASE_OPTIMIZER,
  POD_N_PHASES
} PodPhase;

extern const char *const pod_phase_names[POD_N_PHASES];

typedef enum
{
  POD_OP_COMPUTE,
  POD_OP_COLLECTIVE,
  POD_OP_COPY, /* between the device and its host */
} PodOpKind;

/* Memory by use, as the result reports it. */
typedef enum
{
  POD_USE_PARAMS,
  POD_USE_GRADS,
  POD_USE_OPTIMIZER,
  POD_USE_ACTIVATIONS,
  POD_USE_WORKSPACE,
  POD_N_USES
} PodMemoryUse;

extern const char *const pod_memory_use_names[POD_N_USES];

typedef struct
{
  const char *name; /* "saved by attention", "gathered weights", … */
  PodMemoryUse use;
} PodBufferLabel;

/* A buffer appears (bytes > 0) when its op starts or vanishes (bytes < 0) when it ends. */
typedef struct
{
  uint32_t label;
  bool is_at_end;
  int64_t bytes;
} PodEffect;

typedef struct
{
  PodOpKind kind;
  uint8_t stream;
  uint8_t phase;
  int32_t layer;       /* -1 none */
  const char *name;    /* without its layer's number, for as long as the program is there: pod_op_name */
  bool has_detail;     /* its kernel's shape: pod_op_detail */
  uint32_t kernel;     /* compute: index into kernels */
  uint32_t comm;       /* collective: index into communicators */
  PodCollectiveKind collective;
  uint64_t bytes;      /* payload; of a copy too */
  PodDtype dtype;      /* of its elements */
  uint32_t first_effect;
  uint32_t n_effects;
  uint8_t chunk;       /* of the stage: which part of the model */
  uint8_t slot;        /* PodSlotKind of the schedule's slot that it belongs to */
  uint32_t first_dep;  /* as PodTaskDep counts: ended tasks of a stream since the block's start */
  uint32_t n_deps;
} PodOp;

typedef struct
{
  uint8_t stream;
  int32_t count;
} PodOpDep;

/* A template that steps repeat: ops [first_op, first_op + n_ops) sorted by stream, in issue order within one. */
typedef struct
{
  const char *name;
  uint32_t first_op;
  uint32_t n_ops;
  uint32_t first_of_stream[POD_N_STREAMS];
  uint32_t n_of_stream[POD_N_STREAMS];
} PodOpBlock;

/* Whom a block's transfers between stages reach, as communicators: of an outline, where blocks of stages that are alike have their ops in common. */
typedef struct
{
  uint32_t recv_act, send_act, recv_grad, send_grad;
} PodOpLinks;

typedef struct
{
  uint32_t block;
  int32_t microbatch;
} PodOpStep;

typedef struct
{
  char *name;                   /* "stage 0" */
  GArray *steps;                /* PodOpStep */
  double static_bytes[64];      /* by label: held all the time (weights, optimizer state) */
} PodProgramClass;

typedef struct
{
  GStringChunk *strings;
  GArray *ops;      /* PodOp */
  GArray *deps;     /* PodOpDep */
  GArray *effects;  /* PodEffect */
  GArray *kernels;  /* PodKernel, unique */
  GArray *labels;   /* PodBufferLabel, fewer than 64 */
  GArray *blocks;   /* PodOpBlock */
  GArray *links;    /* (nullable) PodOpLinks by block: of an outline */
  GPtrArray *communicators; /* PodCommunicator (owned) */
  GPtrArray *classes;       /* PodProgramClass (owned) */
  uint32_t *class_of_rank;  /* n_ranks */
  uint32_t n_ranks;
  bool recomputes;          /* some ops compute again what was computed */
  bool steps_overlap;       /* a stage begins its next step while later stages end this one */
  GHashTable *kernel_index; /* while building: kernel bytes -> index */
} PodProgram;

/* "L7 ffn in dX", made when asked for: most runs name no op. Returns: (transfer full) */
char *pod_op_name (const PodOp *op);
/* "matmul [8192, 8192] x [8192, 2560] bf16", of its kernel (not looked at without has_detail). Returns: (transfer full) (nullable) */
char *pod_op_detail (const PodOp *op, const PodKernel *kernel);

PodProgram *pod_program_new (uint32_t n_ranks);
void pod_program_free (PodProgram *program);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodProgram, pod_program_free)
