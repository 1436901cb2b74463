#pragma once

#include "model/model.h"

/* More layers than any model has; bounds the work on a wrong file. */
enum
{
  POD_MODEL_MAX_LAYERS = 10000,
  POD_MODEL_MAX_KINDS = 255, /* layer_kind[] is of bytes */
};

/* An empty model of @file: RMS norms, two a layer, a final one, no notes. Returns: (transfer full)
 */
PodModel *pod_model_new (const char *name, const char *file);

/* Sets kinds[] and layer_kind[] from one entry per layer, equal ones merged, in order of first use.
 * Returns: false when there are more kinds than a byte counts. O(layers x kinds) */
bool pod_model_take_layers (PodModel *model, const PodLayerKind *layers, uint64_t n_layers,
                            GError **error);

/* Once, however often it is said. */
void pod_model_note (PodModel *model, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* All parameters in floating point, to see an overflow before counting in integers. */
double pod_model_params_estimate (const PodModel *model);

/* The readers behind pod_model_load; neither checks. Returns: (transfer full) (nullable) */
PodModel *pod_hf_config_load (const char *name, const char *file, GError **error);
PodModel *pod_model_xml_load (const char *name, const char *file, GError **error);
