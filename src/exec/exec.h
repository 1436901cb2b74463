#pragma once

#include <signal.h>

#include "chip/step-loss.h"
#include "collective/library.h"
#include "collective/plan-cache.h"
#include "exec/account.h"
#include "exec/timeline.h"
#include "network/network.h"
#include "network/packet.h"
#include "parallel/program.h"

/* Runs a program on a machine: kernels take the chip's time, collectives the network's. */

typedef struct
{
  const PodTopology *topology;
  const PodProgram *program;
  PodFidelity fidelity;
  const PodStepSoftware *software; /* (nullable) how the framework runs it; NULL: without loss */
  PodNetworkMode network;   /* book always prices collectives by its V/W; packet runs every rank */
  PodPacketOptions packet;  /* of packet mode */
  bool is_folded;
  const char *algorithm;    /* (nullable) forced for all collectives that it fits */
  const PodLibrary *library; /* (nullable) whose cost tables price collectives at fidelity calibrated */
  PodPlanCache *plans;      /* (nullable) shared with other runs on this machine */
  const uint32_t *record;   /* (nullable) real ranks to record; NULL = one of each pipeline stage */
  uint32_t n_record;
  bool is_recording_all;    /* every represented rank */
  bool is_recording_none;   /* the timeline stays empty: for runs that nobody looks at, whose steady state is simulated once */
  double most_bytes;        /* above 0: a run in which a rank holds more than that is given up with MEMORY at that moment */
  const volatile sig_atomic_t *is_interrupted; /* (nullable) SIGINT: the run stops and what was done is kept */
} PodExecRequest;

/* How one kind of collective went: for tables and --explain. */
typedef struct
{
  const char *comm;         /* communicator name, borrowed from the program */
  PodAxis axis;
  PodCollectiveKind kind;
  const char *algorithm;
  const char *protocol;     /* (nullable) of the library's table */
  uint64_t bytes;           /* payload */
  PodDtype dtype;           /* of its elements */
  uint32_t group_size;
  uint64_t n_per_rank;      /* calls in a step by one rank of its classes (the most) */
  double alone_s;           /* time on an empty network */
  double busiest_bytes;     /* on the busiest link */
  char *explain;            /* (owned) */
} PodCollectiveUse;

typedef struct
{
  PodKernel kernel;
  PodKernelTime time;       /* in the step */
  double losses_s[POD_N_LOSSES]; /* of one call, parts of that; the host's wait stands beside it */
  const PodOp *op;          /* (nullable) the first that runs it, borrowed from the program */
  uint64_t n_calls;         /* in a step, by one rank of the class that runs it most */
} PodKernelUse;

typedef struct
{
  int64_t time_ps;
  int64_t lower_bound_ps;   /* compute at the ideal peak, or the busiest stream of collectives at nominal rates */
  uint32_t critical_rank;   /* real rank */
  PodBreakdown breakdown;   /* of the critical rank: sums to time_ps exactly */
  PodBreakdown *breakdowns; /* of every represented rank, n_represented */
  double phase_compute_s[POD_N_PHASES];           /* critical rank's kernels by phase */
  double phase_comm_s[POD_N_PHASES][POD_N_COMM_AXES];  /* its collectives, each as if alone on the network */
  double axis_comm_s[POD_N_COMM_AXES]; /* its collectives of each axis, one after the other: they share its links (sends and
                                     tokens to experts: the busiest stream, for each has links of its own) */
  double kernel_s[POD_N_KERNEL_KINDS]; /* critical rank's kernels by kind */
  uint64_t n_kernels;       /* that it runs */
  double losses_s[POD_N_LOSSES]; /* its kernels' */
  double compute_bound_s;   /* critical rank's compute by what bounds it */
  double hbm_bound_s;
  double overhead_bound_s;
  uint32_t worst_rank;      /* memory */
  double peak_bytes;
  int64_t peak_at_ps;
  double by_use[POD_N_USES];/* at the worst rank's peak */
  GArray *by_label;         /* double, by program label, at that peak */
  GArray *stage_peaks;      /* double by class: the worst of its ranks */
  GArray *collectives;      /* PodCollectiveUse */
  GArray *kernels;          /* PodKernelUse, as the program's kernels */
  bool is_partial;          /* stopped by is_interrupted before its end */
  uint32_t n_represented;   /* ranks run */
  uint32_t n_link_classes;
  uint64_t n_events;        /* handled: what was like something that was simulated is none */
  PodTimeline *timeline;
} PodExecResult;

/* Errors: INFEASIBLE "deadlock: …" with who waits for whom; MEMORY beyond most_bytes; UNSUPPORTED, INFEASIBLE from plans. Returns: (transfer full) */
PodExecResult *pod_exec_run (const PodExecRequest *request, GError **error);
void pod_exec_result_free (PodExecResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodExecResult, pod_exec_result_free)
