#pragma once

#include "validate/validate-kernels.h"

/* Cases of experts that ran by another kernel than the same shape did.
 *
 * A case is a shape under one split of tokens over experts, from 1 to 16,384 of them: its kernel is tuned once, for all. Some cases of
 * TensorRT-LLM's tables ran 2 to 5 times as long as the very same shape under another split, at every number of tokens, and their times bend
 * at 128 rows an expert, where a tile of 128 rows is full: its tuner gave up and took a kernel that fits all. Which cases, shapes do not tell. */

/* How many times as long as the best case of its shape, in the median over its rows and measured by what is predicted for each. */
#define POD_UNTUNED_RATIO 1.5

/* Marks the verdicts of such cases. Returns how many cases there are; @out_n_cases: of all. O(n log n) */
unsigned pod_mark_untuned_experts (GArray *verdicts, unsigned *out_n_cases);
