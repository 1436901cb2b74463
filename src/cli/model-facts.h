#pragma once

#include "base/json.h"
#include "model/model.h"

/* What podsim model tells of a model, as text and as JSON. */

typedef struct
{
  PodModel *model;
  GPtrArray *assumptions; /* (element-type utf8) */
  uint64_t seq_len;
  double tokens; /* of the training, 0: not asked */
  PodParams params;
  PodTokenFlops flops;
  double kv_bytes_per_token; /* bf16 */
} PodModelFacts;

/* Counts, once model, seq_len and tokens stand. O(layers) */
void pod_model_facts_fill (PodModelFacts *facts);
void pod_model_facts_print (const PodModelFacts *facts);
/* Returns: (transfer full) */
JsonObject *pod_model_facts_to_json (const PodModelFacts *facts);
