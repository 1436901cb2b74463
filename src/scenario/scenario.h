#pragma once

#include "base/json.h"

#include "exec/exec.h"
#include "parallel/job.h"
#include "parallel/mesh-shardings.h"

/* One run: a topology, a model, a layout and options become a result. Everything that asks questions (run, compare, search)
 * fills a scenario and reads its run. */

typedef enum
{
  POD_OPTION_TEXT,
  POD_OPTION_COUNT,  /* whole number of at least 1, with K/Ki…; 0 = not given */
  POD_OPTION_COUNT_OR_ALL, /* likewise, or all: POD_ALL */
  POD_OPTION_WHOLE,  /* whole number; UINT64_MAX = not given */
  POD_OPTION_PRICE,  /* USD per hour; below 0 = not given */
  POD_OPTION_SHARE,  /* above 0, at most 1; below 0 = not given */
  POD_OPTION_FLAG,   /* --x and --no-x */
  POD_OPTION_LIST,   /* may be repeated */
} PodOptionKind;

#define POD_ALL UINT64_MAX

/* An option, wherever it is said: command line, workload file, sweep. The table is the one place that lists them. */
typedef struct
{
  const char *name;    /* "seq-len" */
  PodOptionKind kind;
  size_t offset;       /* in PodScenario */
  const char *placeholder;
  const char *help;
} PodOption;

typedef struct
{
  char *topology;
  char *model;
  char *workload;
  char *layout;
  char *map;
  char *order;
  char *schedule;
  char *recompute;
  char *cp_kind;
  char *attention_kind;
  char *optimizer;
  char *dtype;
  char *scaling;
  char *param_dtype;
  char *master_dtype;
  char *grad_dtype;
  char *gather_dtype;
  char *reduce_dtype;
  char *framework;
  char *cross_entropy;
  char *expert_ops;
  char *grad_accumulation;
  char *stage_outputs;
  char *grad_bucket;
  char *memory_context;
  char *memory_comm_buffers;
  char *memory_fragmentation;
  char *fidelity;
  char *network;
  char *packet;
  char *fold;
  char *algorithm;
  char *library;
  char *global_batch;
  char *seq_len;
  char *stage_layers;
  char *capacity_factor;
  char *expert_imbalance;
  char *dispatch_dtype;
  char *tokens;
  char *flops_convention;
  GPtrArray *set;      /* "PATH=VALUE" */
  GPtrArray *mesh;     /* "X=4,Y=8" */
  GPtrArray *shard;    /* "W_in=[D_X, F_Y]" */
  uint64_t micro_batch;
  uint64_t zero;
  uint64_t prefetch;
  char *fsdp_sync;
  uint64_t lora;
  uint64_t document_len;
  uint64_t route_nodes;
  uint64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, mtp; /* 0 = as the model says */
  double price;        /* USD per chip-hour, < 0 = the chip's list price */
  double availability;
  int sequence_parallel; /* -1 default, 0, 1 */
  int overlap_fsdp;
  int overlap_dp;
  int overlap_tp;
  int overlap_p2p;
  int scatter_p2p;
  int overlap_ep;
  int embed_head_as_layers;
  int allow_idle;
  int causal;
  int clip_grad;
  int offload_optimizer;
  int dropout;
  int strict;
  char *framework_note;  /* (nullable) what the framework added */
  /* Set by the caller; not options. How machines are loaded, NULL: pod_topology_load, which knows our
   * formats only. @format: topology_format. */
  PodTopology *(*load_topology) (const char *text, const char *format, GError **error);
  const char *topology_format; /* (nullable) of the topology's file; NULL: by its content */
} PodScenario;

extern const PodOption pod_scenario_options[]; /* ends with name NULL */

PodScenario *pod_scenario_new (void);
/* Returns: (transfer full) */
PodScenario *pod_scenario_copy (const PodScenario *scenario);
void pod_scenario_free (PodScenario *scenario);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodScenario, pod_scenario_free)

/* Sets an option by name ("seq-len", "no-overlap-dp"). Error INVALID "--name: what is wrong". Later calls win. */
bool pod_scenario_set (PodScenario *scenario, const char *name, const char *value, GError **error);
bool pod_scenario_is_set (const PodScenario *scenario, const PodOption *option);
/* An option that is set, as text that sets it again; a list's texts stand on a line each. Returns: (transfer full) */
char *pod_scenario_get (const PodScenario *scenario, const PodOption *option);
/* Sets what scenario->framework does by default where nobody has said otherwise; to be called when all is said, the workload read. The run's
 * assumptions say what it added. */
bool pod_scenario_apply_framework (PodScenario *scenario, GError **error);
/* Reads scenario->workload (XML) under what is already set: options said elsewhere win. A conflict is an error when strict. */
bool pod_scenario_load_workload (PodScenario *scenario, GError **error);

/* What a device's memory holds beside the step's tensors. */
typedef struct
{
  double context_bytes;       /* driver and libraries */
  double comm_buffer_bytes;   /* of communicators; < 0 = to be counted */
  double fragmentation_ratio; /* of the peak */
  double fragmentation_bytes;
} PodMemoryOverhead;

/* What runs share: run-cache.h. */
typedef struct PodRunCache PodRunCache;

/* A run and all that it made. */
typedef struct
{
  PodTopology *topology;
  PodModel *model;
  PodJob job;
  PodSchedule *schedule;
  uint32_t *part_layers;
  uint32_t *given_stage_layers;
  PodMesh *mesh;
  PodLibrary *library;    /* (nullable) */
  PodProgram *program;
  PodExecResult *exec;
  PodFidelity fidelity;
  PodStepSoftware software;
  GPtrArray *assumptions; /* (element-type utf8) */
  GPtrArray *warnings;
  GPtrArray *extrapolated; /* (nullable) (element-type utf8) what lies outside all that was measured */
  PodMeshShardings *shardings; /* (nullable) where the layout was said by them */
  JsonObject *result;     /* CLI.md's keys */
  PodMemoryOverhead overhead;
  bool fits;
  bool needs_no_slots;     /* of its schedule: it will not be run */
  PodRunCache *cache;     /* (nullable) then topology, model and library are its own */
} PodRun;

/* What a caller of a run may ask for beyond its scenario. */
typedef struct
{
  const uint32_t *record;  /* (nullable) ranks for the timeline */
  uint32_t n_record;
  bool is_recording_all;
  bool is_recording_none;  /* nobody looks at the timeline: it stays empty */
  const volatile sig_atomic_t *is_interrupted;
  bool must_fit;           /* a run that does not fit in memory is given up as soon as that is clear */
  bool is_brief;           /* of the result only step, memory and train are made: what a search ranks by */
  bool needs_no_advice;    /* a run that does not fit is not run again with what would make it fit */
  PodRunCache *cache;      /* (nullable) borrowed, used by this thread alone: what earlier runs loaded and priced is taken from it */
} PodRunRequest;

/* Loads, lays out, runs, sums up. Errors as the parts give them. Returns: (transfer full) */
PodRun *pod_scenario_run (const PodScenario *scenario, const PodRunRequest *request, GError **error);
void pod_run_free (PodRun *run);
/* Whether the scenario divides and is known, without placing or running it; errors as those of a run. @cache: (nullable) as of a request. */
bool pod_scenario_check (const PodScenario *scenario, PodRunCache *cache, GError **error);

/* What the step takes at the least, and one of its ranks holds: whatever runs, is run to no less. */
typedef struct
{
  int64_t time_ps;
  double bytes;
} PodRunBound;

/* As pod_scenario_check, and the bounds of what passes: tens of thousands a second, of the model's FLOPs and parameters alone. */
bool pod_scenario_bound (const PodScenario *scenario, PodRunCache *cache, PodRunBound *out, GError **error);
/* Nearer, by the longest path through one layer (exec/layer-path.h) of a program that has three a part, where all layers are alike: its cost does not
 * grow with theirs. Of others it is pod_scenario_bound. */
bool pod_scenario_layers_bound (const PodScenario *scenario, PodRunCache *cache, PodRunBound *out, GError **error);
/* The same, much nearer to what the run will find: by the run's own program, whose kernels and collectives each take what they take alone
 * (exec/uncontended.h). The errors are those of a run before its first event. */
bool pod_scenario_floor (const PodScenario *scenario, PodRunCache *cache, PodRunBound *out, GError **error);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodRun, pod_run_free)

/* Fills the result's what_if[]: the step run again with one thing of the machine better (10 % more of a rate, no latency), all else as
 * in @scenario, which @run came from. Where that would take long, only what_if_note, unless @is_forced. @request: of the run. */
void pod_run_what_if (const PodScenario *scenario, const PodRunRequest *request, PodRun *run, bool is_forced);

/* The scenario's topology and model alone, with their overrides: for podsim topology, model, roofline. */
PodTopology *pod_scenario_topology (const PodScenario *scenario, GPtrArray *assumptions, GError **error);
PodModel *pod_scenario_model (const PodScenario *scenario, GPtrArray *assumptions, GError **error);
