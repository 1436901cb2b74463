#pragma once

#include "scenario/scenario.h"
#include "validate/training-table.h"

/* A measured row as a scenario: machine, model, layout, batch, schedule, precision, with the framework's defaults.
 * Errors INVALID where the row lacks a field or its product does not fit, UNSUPPORTED where a word is not mapped; what the
 * scenario itself refuses shows when it runs. Returns: (transfer full) */
PodScenario *pod_training_scenario (const PodTrainingRow *row, GError **error);

/* Megatron's pipeline layout, "Et*4|(t*4|)*14tmL", as layers of each part in order: t is a layer, E the embedding, m a
 * layer of multi-token prediction, L the loss, | a cut, *N repeats the letter or the bracket before it.
 * Returns: (transfer full) "4,4,...,1"; NULL when @text is no such layout of @n_parts parts and @n_layers layers. */
char *pod_training_pipeline_layout (const char *text, uint64_t n_parts, uint64_t n_layers);
