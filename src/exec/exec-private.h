#pragma once

#include "engine/runner.h"
#include "exec/exec.h"
#include "exec/fold.h"

/* The parts of a run. */

/* How the framework runs the program: losses are calibrated's alone. */
void pod_exec_software (const PodExecRequest *request, PodStepSoftware *out);
/* What it lets a collective reach of its rate. */
double pod_exec_rate_ratio (const PodStepSoftware *software, PodAxis axis);
/* Kernel times on this chip, in the kernels' order. Returns: (transfer full) (element-type PodKernelUse) */
GArray *pod_exec_price_kernels (const PodExecRequest *request, const PodStepSoftware *software, GError **error);
/* What the device waits for the host in each block, seconds a launch. A host that runs ahead is waited for only where the
 * launches of a whole block take longer than its kernels; those that it cannot run ahead of are none of these. Returns: (transfer full) */
double *pod_exec_price_launches (const PodProgram *program, const PodStepSoftware *software, const GArray *kernels);

/* Which route an op's collective takes; one per op, UINT32_MAX for compute. */
typedef struct
{
  GArray *routes;           /* PodRoute: per (communicator, kind, way): algorithm, protocol, latency and rate */
  GPtrArray *planned;       /* PodPlanned (owned) by communicator */
  GArray *uses;             /* PodCollectiveUse: per (communicator, kind, bytes, element type) */
  GArray *use_routes;       /* uint32_t: route of each use */
  GArray *use_book_ps;      /* int64_t: duration of each use at fidelity book */
  uint32_t *use_of_op;      /* n_ops */
  PodSymmetry *symmetry;    /* (owned) */
} PodRoutes;

/* The plan of a program's collective over @group: by the request's algorithm where that fits, by @name (nullable) where the first group has
 * chosen. Returns: (transfer none) where the request has a cache of plans, else (transfer full): pod_routes_release */
PodPlan *pod_routes_plan (const PodExecRequest *request, const PodOp *op, const PodGroup *group, const char *name, GError **error);
void pod_routes_release (const PodExecRequest *request, PodPlan *plan);
/* @is_identity: every group has a plan of its own. */
PodRoutes *pod_routes_new (const PodExecRequest *request, bool is_identity, GError **error);
void pod_routes_free (PodRoutes *routes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodRoutes, pod_routes_free)

/* Records spans of some ranks. */
typedef struct PodRecorder PodRecorder;

PodRecorder *pod_recorder_new (const PodExecRequest *request, const PodFold *fold);
void pod_recorder_free (PodRecorder *recorder);
bool pod_recorder_has (const PodRecorder *recorder, uint32_t rank);
/* Ranks stand for @n_like real ones for now (borrowed); NULL: as many as the fold says. */
void pod_recorder_twins (PodRecorder *recorder, const uint32_t *n_like);
/* A task begins to be there (arrive), released by the newest span of a stream. */
void pod_recorder_arrive (PodRecorder *recorder, const PodTaskEvent *event, int64_t now_ps);
/* When the task that is there arrived (0 when the rank is not recorded). */
int64_t pod_recorder_arrived (const PodRecorder *recorder, const PodTaskEvent *event);
/* It ended; @start_ps is when it (or its bytes) began to move. Returns the span, POD_NO_SPAN when not recorded. */
uint32_t pod_recorder_end (PodRecorder *recorder, const PodTaskEvent *event, int64_t start_ps, int64_t end_ps);
void pod_recorder_flow (PodRecorder *recorder, uint32_t from_span, uint32_t to_span);
void pod_recorder_memory (PodRecorder *recorder, uint32_t rank, int64_t now_ps, double bytes);
/* Bytes per second on the busiest link while a collective of this rank moved. */
void pod_recorder_rate (PodRecorder *recorder, const PodTaskEvent *event, int64_t start_ps, int64_t end_ps, double bytes_per_s);
PodTimeline *pod_recorder_steal (PodRecorder *recorder, int64_t end_ps);

/* "deadlock at …: rank 0 tp waits for …": for an empty queue with work left. Sets INFEASIBLE. */
void pod_exec_report_deadlock (const PodExecRequest *request, const PodFold *fold, const PodRunner *runner, int64_t now_ps, GError **error);

int64_t pod_exec_lower_bound (const PodExecRequest *request, const PodRoutes *routes);

/* Seconds of a copy between a device and its host: bytes over the chip's host link, one direction of it (no latency: copies are large). */
double pod_exec_copy_s (const PodChip *chip, const PodOp *op);
