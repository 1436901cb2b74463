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
};

typedef struct PodSteady PodSteady;

/* One channel of one group (colour) of a communicator: who has come for its next collective. */
typedef struct
{
  uint32_t comm;
  uint32_t group;
  uint32_t n_expected;
  uint32_t n_arrived;
  int64_t start_ps;
  PodTaskEvent *events; /* n_expected */
  int64_t *arrive_ps;
} PodMeeting;

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
  PodShare *share_of_use;
  PodPathEntry *book_paths;  /* (nullable) fidelity book: a link for each group */
  PodMeeting *meetings;
  uint32_t *first_meeting;  /* by communicator */
  PodSteady *steady;         /* (nullable) */
  int64_t end_ps;
  bool is_partial;
} PodExec;

/* ---- steady.c ---- */
PodSteady *pod_steady_new (void);
void pod_steady_free (PodSteady *steady);
/* After each event. Where the run stands as it stood before, and its programs go on alike, it is carried to where they end to. */
void pod_steady_look (PodSteady *steady, PodExec *exec);
