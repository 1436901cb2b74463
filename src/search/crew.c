#include "search/crew.h"

struct PodCrew
{
  PodCrewRequest request;
  GThreadPool *pool;
  GAsyncQueue *done; /* PodCrewChunk */
  unsigned n_given;
};

void
pod_crew_chunk_free (PodCrewChunk *chunk)
{
  if (chunk == NULL)
    return;
  g_clear_error (&chunk->error);
  g_free (chunk);
}

static void
run_chunk (const PodCrew *crew, PodCrewChunk *chunk)
{
  PodRunCache *cache = pod_cache_pool_take (crew->request.caches);
  const PodRunRequest request
      = { .is_recording_none = true, .needs_no_advice = true, .must_fit = true, .is_interrupted = crew->request.is_interrupted, .cache = cache };

  for (unsigned i = 0; i < chunk->n && chunk->error == NULL; i++)
    {
      const uint64_t candidate = chunk->rows[i].candidate;
      g_autoptr (PodScenario) scenario = crew->request.scenario (crew->request.data, candidate);

      pod_row_run (scenario, &request, &chunk->rows[i], NULL, &chunk->error);
      chunk->rows[i].candidate = candidate;
    }
  pod_cache_pool_give (crew->request.caches, cache);
}

static void
work (void *chunk, void *data)
{
  PodCrew *crew = data;

  run_chunk (crew, chunk);
  g_async_queue_push (crew->done, chunk);
}

PodCrew *
pod_crew_new (const PodCrewRequest *request)
{
  PodCrew *crew = g_new0 (PodCrew, 1);

  crew->request = *request;
  crew->done = g_async_queue_new_full ((GDestroyNotify) pod_crew_chunk_free);
  crew->pool = g_thread_pool_new (work, crew, (gint) MAX (request->n_jobs, 1), TRUE, NULL); /* shared pools alone can fail */
  return crew;
}

void
pod_crew_free (PodCrew *crew)
{
  if (crew == NULL)
    return;
  g_thread_pool_free (crew->pool, FALSE, TRUE);
  g_async_queue_unref (crew->done);
  g_free (crew);
}

unsigned
pod_crew_n_wanted (const PodCrew *crew)
{
  const unsigned most = 2 * MAX (crew->request.n_jobs, 1);

  return crew->n_given < most ? most - crew->n_given : 0;
}

unsigned
pod_crew_n_given (const PodCrew *crew)
{
  return crew->n_given;
}

void
pod_crew_give (PodCrew *crew, const uint64_t *candidates, unsigned n)
{
  PodCrewChunk *chunk = g_new0 (PodCrewChunk, 1);

  g_assert (n > 0 && n <= POD_CREW_CHUNK);
  chunk->n = n;
  for (unsigned i = 0; i < n; i++)
    chunk->rows[i].candidate = candidates[i];
  crew->n_given++;
  g_thread_pool_push (crew->pool, chunk, NULL);
}

PodCrewChunk *
pod_crew_take (PodCrew *crew, uint64_t wait_us)
{
  PodCrewChunk *chunk = crew->n_given > 0 ? g_async_queue_timeout_pop (crew->done, wait_us) : NULL;

  if (chunk != NULL)
    crew->n_given--;
  return chunk;
}
