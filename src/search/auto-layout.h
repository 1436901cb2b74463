#pragma once

#include "search/search.h"

/* Whether the scenario asks for its best layout: --layout auto, or more than one degree that is auto, "fsdp=auto tp=auto". */
bool pod_layout_is_auto (const PodScenario *scenario);

/* The scenario with the layout that fits and is best by the request's objective, and with the options that a search varies beside it where it does not say them; its
 * note says what was chosen and out of how many. INFEASIBLE when none fits, with the commonest reason; NULL without an error when interrupted. Returns:
 * (transfer full) (nullable) */
PodScenario *pod_layout_choose (const PodScenario *scenario, const PodSearchRequest *request, GError **error);
