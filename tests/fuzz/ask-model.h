#pragma once

#include <math.h>

#include "model/model.h"

/* What is counted of a model that was read and checked. */
static inline void
fuzz_ask_model (const PodModel *model)
{
  PodParams params;
  PodTokenFlops flops;

  g_assert (model->n_layers > 0 && model->n_kinds > 0);
  pod_model_params (model, &params);
  g_assert (params.total < G_MAXINT64 && params.active <= params.total);
  for (unsigned kind = 0; kind < model->n_kinds; kind++)
    {
      uint64_t active = 0;

      g_assert (pod_model_layer_params (model, kind, &active) <= params.total);
    }
  for (uint64_t seq_len = 1; seq_len < (UINT64_C (1) << 40); seq_len *= 1024)
    {
      pod_model_token_flops (model, seq_len, &flops);
      g_assert (isfinite (flops.linear) && flops.linear >= 0);
      g_assert (isfinite (flops.causal) && flops.causal >= 0 && flops.causal <= flops.megatron);
    }
  g_assert (pod_model_kv_bytes_per_token (model, 2) >= 0);
}
