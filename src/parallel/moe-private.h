#pragma once

#include "parallel/transformer-private.h"

/* Mixture of experts: what stands in for the FFN's matrices of a layer. Each token picks top_k of the experts; a copy for each
 * goes to the rank that holds it (dispatch), and its result comes back (combine). Shared experts and a dense part are ordinary
 * linears over tp, computed while tokens travel. */

/* Parameters of one layer on this rank, before the copies are sharded. */
typedef struct
{
  double experts; /* of its share of the experts */
  double router;  /* whole on every rank */
} PodMoeParams;

void pod_moe_params (const PodEmitter *emitter, PodMoeParams *out);
/* Kept from forward to backward: the copies that arrived, what the experts' matrices put out, the router's probabilities. */
double pod_moe_saved_bytes (const PodEmitter *emitter);
/* Of one layer, whole: what pod_model_layer_params has for experts and router. */
double pod_moe_model_params (const PodModel *model);

/* Sent by a rank over ep in a step: there and back, forward and backward. */
double pod_moe_step_bytes (const PodJob *job);

/* Makes the communicators of the experts' grid, those of degree 1 left out. Error INFEASIBLE: nodes that do not share a group
 * evenly under --route-nodes. */
bool pod_moe_init (PodEmitter *emitter, const PodMesh *mesh, GError **error);

/* From the norm's output on (forward), to its gradient (backward). */
void pod_moe_forward (PodPass *pass);
void pod_moe_backward (PodPass *pass);
