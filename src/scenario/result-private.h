#pragma once

#include "scenario/scenario.h"

/* Fills run->result and run->fits from what was executed. Errors: an unknown FLOPs convention. */
bool pod_run_summarise (const PodScenario *scenario, PodRun *run, GError **error);
