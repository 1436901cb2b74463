#include "search/cache-pool.h"

struct PodCachePool
{
  GAsyncQueue *idle; /* PodRunCache */
};

PodCachePool *
pod_cache_pool_new (void)
{
  PodCachePool *pool = g_new0 (PodCachePool, 1);

  pool->idle = g_async_queue_new_full ((GDestroyNotify) pod_run_cache_unref);
  return pool;
}

void
pod_cache_pool_free (PodCachePool *pool)
{
  if (pool == NULL)
    return;
  g_async_queue_unref (pool->idle);
  g_free (pool);
}

PodRunCache *
pod_cache_pool_take (PodCachePool *pool)
{
  PodRunCache *cache = g_async_queue_try_pop (pool->idle);

  return cache != NULL ? cache : pod_run_cache_new ();
}

/* To the front: a warm cache is taken before a cold one. */
void
pod_cache_pool_give (PodCachePool *pool, PodRunCache *cache)
{
  g_async_queue_push_front (pool->idle, cache);
}
