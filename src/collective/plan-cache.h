#pragma once

#include "collective/collective.h"

/* Plans that were asked for before. Key: all that a query says, machine and library by their
 * addresses, the group by its devices and factors; what has no plan is not kept. */
typedef struct PodPlanCache PodPlanCache;

/* Returns: (transfer full) */
PodPlanCache *pod_plan_cache_new (void);
/* With its plans. NULL is fine. */
void pod_plan_cache_free (PodPlanCache *cache);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodPlanCache, pod_plan_cache_free)

/* As pod_collective_plan_query, of queries with neither traffic, steps nor borrowed axes. Returns:
 * (transfer none) */
const PodPlan *pod_plan_cache_query (PodPlanCache *cache, const PodPlanQuery *query,
                                     GError **error);
/* Of plans and keys. */
size_t pod_plan_cache_bytes (const PodPlanCache *cache);
