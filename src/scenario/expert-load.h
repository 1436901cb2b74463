#pragma once

#include "parallel/job.h"

/* How evenly the router spreads tokens over experts. */

/* Reads --capacity-factor and --expert-imbalance (both nullable): job->expert_load, and in @notes what it stands for.
 * @imbalance is a ratio ("1.2": the busiest rank's load over the mean), "zipf:S" (the i-th most popular expert gets 1/i^S), or
 * a file with the load of each expert, whitespace-separated, '#' to the end of a line. No expert can get more than every token
 * once. Errors name the option and the numbers. O(experts x ranks). */
bool pod_expert_load_read (PodJob *job, const char *capacity, const char *imbalance, GPtrArray *notes, GError **error);
