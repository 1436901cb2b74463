#pragma once

#include "exec/contention.h"
#include "exec/exec-private.h"
#include "exec/packets.h"

/* A run while it goes on: for exec.c and steady.c. */

/* Kinds of events on the queue. */
enum
{
  POD_EXEC_TASK,
  POD_EXEC_NETWORK, /* and POD_EXEC_NETWORK + 1 */
  POD_EXEC_NETWORK_2,
  POD_EXEC_PACKETS,
  POD_EXEC_WAKE, /* of an island */
};

typedef struct PodIslands PodIslands;
typedef struct PodSteady PodSteady;
typedef struct PodTwins PodTwins;

/* Who has come to a meeting, and when. */
typedef struct
{
  PodTaskEvent event;
  int64_t at_ps;
} PodArrival;

/* One channel of one group (colour) of a communicator: who has come for its next collective. It is there while somebody has. */
typedef struct
{
  uint32_t index;         /* among all */
  uint32_t group;
  uint32_t n_expected;
  uint32_t n_arrived;
  uint32_t transfer;      /* its index on the network, while its bytes move */
  int64_t start_ps;
  PodPathEntry *path;     /* (owned) (nullable) of its bytes, where the fold has none */
  PodArrival arrivals[];  /* n_expected */
} PodMeeting;

/* What a run needs of an op. */
typedef struct
{
  uint8_t kind;    /* PodOpKind */
  uint8_t phase;
  uint8_t axis;    /* of a collective, as all of these */
  uint8_t channel;
  bool is_send;
  uint32_t comm;
  uint32_t use;
  uint32_t kernel; /* of compute */
} PodExecOp;

/* And of a kind of collective. */
typedef struct
{
  uint32_t route;
  PodShare share;
} PodExecUse;

typedef struct
{
  const PodExecRequest *request;
  const PodProgram *program;
  PodStepSoftware software;
  double *wait_s;           /* by block: for each launch of the host */
  PodRoutes *routes;
  PodFold *fold;
  PodTaskGraph *graph;
  PodEventQueue *queue;
  PodRunner *runner;
  PodNetwork *network;
  PodExecPackets *packets;  /* (nullable) packet mode */
  PodAccount *account;
  PodRecorder *recorder;
  PodContention *contention; /* (nullable) */
  PodExecOp *ops;
  PodExecUse *uses;
  PodPathEntry *book_paths;  /* (nullable) fidelity book: by meeting, the link of its group */
  PodMeeting **meetings;     /* (nullable elements) NULL while nobody has come */
  uint32_t *first_meeting;  /* by communicator */
  uint32_t *n_channels;     /* by communicator: collectives of one group that may be in flight at once. Weight gathers and gradient reductions
                             * have channels of their own, as NCCL gives each its communicator; ops of a channel meet in issue order. */
  PodSteady *steady;         /* (nullable) */
  PodTwins *twins;           /* (nullable) while some ranks stand for others */
  PodIslands *islands;       /* (nullable) */
  int64_t end_ps;
  uint32_t *n_like;          /* (nullable) by rank: real ranks that it stands for with its twins */
  bool is_recording;
  bool is_partial;
} PodExec;

/* ---- compile.c ---- */
/* @by_layer: a step for each layer of a block, where its streams go through them in one order. Returns: (transfer full). O(ops x kinds of layers) */
PodTaskGraph *pod_exec_compile (const PodExec *exec, const GArray *kernels, bool by_layer);

/* ---- observe.c ---- */
/* What collectives need: once routes, fold and queue are there. Makes the network too. */
void pod_exec_make_meetings (PodExec *exec);
void pod_exec_clear_meetings (PodExec *exec);
/* The group of a communicator that the meeting at @index is of. */
static inline uint32_t
pod_exec_meeting_group (const PodExec *exec, uint32_t comm, uint32_t index)
{
  return (index - exec->first_meeting[comm]) / exec->n_channels[comm];
}

/* The meeting at @index, to which nobody had come. O(log communicators) */
PodMeeting *pod_exec_open_meeting (PodExec *exec, uint32_t index);
/* Nobody has come any more. */
void pod_exec_close_meeting (PodExec *exec, uint32_t index);
void pod_exec_started (void *context, const PodTaskEvent *event, int64_t now_ps, int64_t end_ps);
void pod_exec_joined (void *context, const PodTaskEvent *event, int64_t now_ps);
void pod_exec_ended (void *context, const PodTaskEvent *event, int64_t now_ps);
void pod_exec_transfer_done (void *context, uint32_t tag);

/* The ranks that run: @n is how many, the @i-th of them. */
uint32_t pod_exec_n_running (const PodExec *exec);
uint32_t pod_exec_running (const PodExec *exec, uint32_t i);

/* ---- collect.c ---- */
/* Returns: (transfer full) what the run has come to, at its end */
PodExecResult *pod_exec_collect (PodExec *exec, GArray *kernels);

/* ---- exec.c ---- */
/* Of the network, packets or the runner. */
void pod_exec_handle (PodExec *exec, const PodEvent *event);

/* ---- islands.c ---- */
/* Ranks that meet only each other for long, as those of a pipeline stage, are an island: what it comes to from a place where it stood before is
 * known, and not simulated until somebody from outside meets it. Returns: (transfer full) (nullable) NULL where there is one alone, or too
 * many. O(path entries + members of groups) */
PodIslands *pod_islands_new (PodExec *exec);
void pod_islands_free (PodIslands *islands);
/* After an event of a rank's tasks. */
void pod_islands_look (PodIslands *islands, PodExec *exec, const PodEvent *event);
void pod_islands_wake (PodIslands *islands, PodExec *exec, const PodEvent *event);
/* All, as far as they are by now. */
void pod_islands_wake_all (PodIslands *islands, PodExec *exec);
/* Before the bytes of a meeting begin to move on a route, and after they did. */
void pod_islands_touch (PodIslands *islands, PodExec *exec, uint32_t meeting, uint32_t route);
void pod_islands_let_go (PodIslands *islands, const PodExec *exec, uint32_t meeting, uint32_t route);
/* For steady.c: whether a rank's island is not simulated now; appends (element-type int64_t) how it goes on then, all of it; the furthest step
 * that the rank gets to before it is woken; carries all over @ps. */
bool pod_islands_is_asleep (const PodIslands *islands, uint32_t rank);
void pod_islands_save (const PodIslands *islands, int64_t now_ps, GArray *out);
uint32_t pod_islands_reach (const PodIslands *islands, uint32_t rank);
void pod_islands_skip (PodIslands *islands, const PodExec *exec, int64_t ps);

/* ---- steady.c ---- */
PodSteady *pod_steady_new (void);
void pod_steady_free (PodSteady *steady);
/* After each event. Where the run stands as it stood before, and its programs go on alike, it is carried to where they end to.
 * Returns: whether it could not be seen yet, and is to be looked at again after the next event. Else it is enough to look after events
 * of the first rank's tasks. */
bool pod_steady_look (PodSteady *steady, PodExec *exec);
/* Records of another set of ranks are of no use. */
void pod_steady_forget (PodSteady *steady);

/* ---- twins.c ---- */
/* Ranks that do the same until the step's last collectives. Returns: (nullable) (transfer full) NULL when there are none, or one that would
 * not run is recorded. O(path entries + represented ranks x communicators), and pairs of components. */
PodTwins *pod_twins_new (const PodExec *exec);
void pod_twins_free (PodTwins *twins);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodTwins, pod_twins_free)
/* (element-type uint32_t) The ranks that run, ascending. */
const GArray *pod_twins_leaders (const PodTwins *twins);
/* The links of a group of leaders, with the loads of all its twins. */
const PodFoldedPath *pod_twins_path (const PodTwins *twins, uint32_t route, uint32_t group);
/* All of them, by route and group: (transfer none) */
PodFoldedPath *const *pod_twins_paths (const PodTwins *twins);
/* How many real ranks a leader and its twins stand for. */
uint32_t pod_twins_n_like (const PodTwins *twins, const PodFold *fold, uint32_t rank);
/* Whether @event, a leader's that has come for a collective of @route, is kept until all ranks have parted, which is then due. */
bool pod_twins_hold (PodTwins *twins, const PodTaskEvent *event, uint32_t route);
bool pod_twins_must_part (const PodTwins *twins);
/* From here on every rank runs; the run has no twins any more. */
void pod_twins_part (PodExec *exec);
