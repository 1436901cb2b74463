#pragma once

#include "base/xml.h"
#include "scenario/scenario.h"

/* What runs of one thread share: whatever a run finds here it would have made anew, the same to the byte. But for plans nothing leaves before the
 * cache does, so it is for a bounded set of machines and models (a search, a sweep). Files are read once.
 *
 * Keys: a machine by its text, format, loader and the --set lines; a model by its text, the shape options, --document-len and the --set lines; a library by
 * its name, a document (a framework, what uncertainty is known) by its name and its reader; a plan of a collective by its query
 * (collective/plan-cache.h): plans are made anew when they come to 64 MiB. */

/* Returns: (transfer full). Used by one thread at a time; references may be dropped by any. */
PodRunCache *pod_run_cache_new (void);
PodRunCache *pod_run_cache_ref (PodRunCache *cache);
/* NULL is fine. Runs that were made with it keep it alive. */
void pod_run_cache_unref (PodRunCache *cache);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodRunCache, pod_run_cache_unref)

/* The document that @load reads for @name. Returns: (transfer none) with a cache, else (transfer full);
 * (nullable) */
PodXml *pod_run_cache_document (PodRunCache *cache, const char *name, PodXml *(*load) (const char *name, GError **error), GError **error);

/* Plans of collectives for a run that begins. Returns: (transfer none) (nullable) without a cache */
PodPlanCache *pod_run_cache_plans (PodRunCache *cache);

/* As pod_scenario_topology, pod_scenario_model and pod_library_load; what loading assumed is said each time. With @cache NULL they are made
 * anew and (transfer full), else (transfer none). */
PodTopology *pod_run_cache_topology (PodRunCache *cache, const PodScenario *scenario, GPtrArray *assumptions, GError **error);
PodModel *pod_run_cache_model (PodRunCache *cache, const PodScenario *scenario, GPtrArray *assumptions, GError **error);
PodLibrary *pod_run_cache_library (PodRunCache *cache, const char *name, GError **error);
