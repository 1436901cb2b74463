#pragma once

#include "scenario/run-cache.h"

/* Caches of runs for threads that come and go: each takes one for as long as it works. */
typedef struct PodCachePool PodCachePool;

PodCachePool *pod_cache_pool_new (void);
void pod_cache_pool_free (PodCachePool *pool);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodCachePool, pod_cache_pool_free)

/* One that nobody has, made when there is none. Returns: (transfer full) to be given back. */
PodRunCache *pod_cache_pool_take (PodCachePool *pool);
void pod_cache_pool_give (PodCachePool *pool, PodRunCache *cache);
