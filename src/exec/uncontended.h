#pragma once

#include "exec/exec.h"

/* What a program takes at the least: the longest path through it with every kernel and collective at the time that it has alone on the
 * machine. One rank stands for each class; it waits for its neighbours in the pipeline and for nobody else. Whatever ranks, links and
 * memories contend for comes on top, and nothing of a run is ever earlier: streams are in order and who waits for whom is fixed, so ends
 * grow with durations. */
typedef struct
{
  int64_t time_ps;   /* no run of the program is shorter */
  double peak_bytes; /* some rank holds no less, by what kernels allocate and free in their order */
} PodUncontended;

/* At the request's fidelity, software, library and algorithm; for networks analytic and flow. Errors as those of the run's plans and kernels.
 * O(ops x streams + steps x streams^2) */
bool pod_exec_uncontended (const PodExecRequest *request, PodUncontended *out, GError **error);
