#pragma once

#include "exec/exec.h"

/* What a layer adds to a step at the least, from a program of few layers that all take the same. Streams are in order: from when the compute
 * stream is free before a layer's kernels to when it is behind them, the longest path through the layer's ops passes, whatever goes on beside
 * it; and a stream of collectives is busy with the layer's for as long as they take alone. */
typedef struct
{
  double path_s;    /* of all microbatches, on the rank where it is the least */
  double forward_s; /* of one forward pass */
  double stream_s;  /* of all microbatches: the busiest stream of collectives */
} PodLayerPath;

/* Of the layer in the middle of each part of @request's program, which has three a part. Returns false without an error where a layer's kernels do
 * not stand together. Errors as those of the run's plans and kernels. O(ops x dependencies) */
bool pod_exec_layer_path (const PodExecRequest *request, uint32_t n_parts_of_rank, PodLayerPath *out, GError **error);
