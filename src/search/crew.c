#include "search/crew.h"

#include <string.h>

#include "base/error.h"

struct PodCrew
{
  PodCrewRequest request;
  GThreadPool *pool;
  GAsyncQueue *done; /* PodCrewChunk */
  unsigned n_given;
  unsigned n_local;   /* of these, to threads */
  unsigned *n_remote; /* likewise, to each rank */
};

/* What ranks send each other. */
typedef struct
{
  PodCrewTask task;
  unsigned n; /* 0: the last */
  uint64_t candidates[POD_CREW_CHUNK];
} Order;

typedef struct
{
  PodCrewTask task;
  unsigned n;
  int error_code; /* -1: none */
  char error[POD_ROW_TEXT];
  PodRow rows[POD_CREW_CHUNK];
  PodRunBound bounds[POD_CREW_CHUNK];
} Report;

enum
{
  AHEAD = 2,          /* chunks that each has: one to run, one to go on with */
  POLL_US = 300,
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
bound_chunk (const PodCrew *crew, PodCrewChunk *chunk, PodRunCache *cache)
{
  const volatile sig_atomic_t *is_interrupted = crew->request.is_interrupted;
  bool (*find) (const PodScenario *, PodRunCache *, PodRunBound *, GError **) = chunk->task == POD_CREW_LAYERS ? pod_scenario_layers_bound : pod_scenario_floor;

  for (unsigned i = 0; i < chunk->n && !(is_interrupted != NULL && *is_interrupted); i++)
    {
      g_autoptr (PodScenario) scenario = crew->request.scenario (crew->request.data, chunk->rows[i].candidate, NULL);

      if (scenario == NULL || !find (scenario, cache, &chunk->bounds[i], NULL))
        chunk->bounds[i] = (PodRunBound){ 0 };
    }
}

static void
run_chunk (const PodCrew *crew, PodCrewChunk *chunk)
{
  PodRunCache *cache = pod_cache_pool_take (crew->request.caches);
  const PodRunRequest request
      = { .is_recording_none = true, .is_brief = true, .needs_no_advice = true, .must_fit = crew->request.must_fit, .is_interrupted = crew->request.is_interrupted, .cache = cache };

  if (chunk->task != POD_CREW_RUN)
    bound_chunk (crew, chunk, cache);
  for (unsigned i = 0; chunk->task == POD_CREW_RUN && i < chunk->n && chunk->error == NULL; i++)
    {
      const uint64_t candidate = chunk->rows[i].candidate;
      g_autoptr (GError) refusal = NULL;
      g_autoptr (PodScenario) scenario = crew->request.scenario (crew->request.data, candidate, &refusal);

      if (scenario != NULL)
        pod_row_run (scenario, &request, &chunk->rows[i], NULL, &chunk->error);
      else if (refusal != NULL)
        pod_row_refuse (&chunk->rows[i], &refusal, &chunk->error);
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
  crew->n_remote = g_new0 (unsigned, request->transport != NULL ? (gsize) request->transport->n_ranks : 1);
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
  g_free (crew->n_remote);
  g_free (crew);
}

static unsigned
n_others (const PodCrew *crew)
{
  return crew->request.transport != NULL ? (unsigned) crew->request.transport->n_ranks - 1 : 0;
}

unsigned
pod_crew_n_wanted (const PodCrew *crew)
{
  const unsigned most = AHEAD * (MAX (crew->request.n_jobs, 1) + n_others (crew));

  return crew->n_given < most ? most - crew->n_given : 0;
}

unsigned
pod_crew_n_given (const PodCrew *crew)
{
  return crew->n_given;
}

/* The rank with the fewest chunks, 0 where a thread has fewer still. */
static int
idlest (const PodCrew *crew)
{
  unsigned least = crew->n_local / MAX (crew->request.n_jobs, 1);
  int best = 0;

  for (unsigned r = 1; r <= n_others (crew); r++)
    if (crew->n_remote[r] < least || (best == 0 && crew->n_remote[r] == least && crew->n_local % MAX (crew->request.n_jobs, 1) > 0))
      {
        least = crew->n_remote[r];
        best = (int) r;
      }
  return best;
}

static void
give_local (PodCrew *crew, PodCrewTask task, const uint64_t *candidates, unsigned n)
{
  PodCrewChunk *chunk = g_new0 (PodCrewChunk, 1);

  chunk->task = task;
  chunk->n = n;
  for (unsigned i = 0; i < n; i++)
    chunk->rows[i].candidate = candidates[i];
  crew->n_local++;
  g_thread_pool_push (crew->pool, chunk, NULL);
}

static void
give_remote (PodCrew *crew, int rank, PodCrewTask task, const uint64_t *candidates, unsigned n)
{
  Order order = { .task = task, .n = n };

  memcpy (order.candidates, candidates, n * sizeof *candidates);
  crew->n_remote[rank]++;
  crew->request.transport->send (&order, sizeof order, rank);
}

void
pod_crew_give (PodCrew *crew, PodCrewTask task, const uint64_t *candidates, unsigned n)
{
  const int rank = idlest (crew);

  g_assert (n > 0 && n <= POD_CREW_CHUNK);
  crew->n_given++;
  if (rank == 0)
    give_local (crew, task, candidates, n);
  else
    give_remote (crew, rank, task, candidates, n);
}

static PodCrewChunk *
take_remote (PodCrew *crew)
{
  const PodTransport *transport = crew->request.transport;
  g_autofree Report *report = NULL;
  PodCrewChunk *chunk;
  size_t n_bytes;
  int from;

  if (transport == NULL || !transport->probe (&from, &n_bytes))
    return NULL;
  g_assert (n_bytes == sizeof *report);
  report = g_new (Report, 1);
  transport->receive (report, sizeof *report, from);
  crew->n_remote[from]--;
  chunk = g_new0 (PodCrewChunk, 1);
  chunk->task = report->task;
  chunk->n = report->n;
  memcpy (chunk->rows, report->rows, sizeof chunk->rows);
  memcpy (chunk->bounds, report->bounds, sizeof chunk->bounds);
  if (report->error_code >= 0)
    g_set_error_literal (&chunk->error, POD_ERROR, report->error_code, report->error);
  return chunk;
}

PodCrewChunk *
pod_crew_take (PodCrew *crew, uint64_t wait_us)
{
  const int64_t until_us = g_get_monotonic_time () + (int64_t) wait_us;
  PodCrewChunk *chunk = NULL;

  while (crew->n_given > 0 && chunk == NULL && g_get_monotonic_time () < until_us)
    {
      chunk = take_remote (crew);
      if (chunk != NULL)
        break;
      chunk = g_async_queue_timeout_pop (crew->done, n_others (crew) > 0 ? POLL_US : wait_us);
      if (chunk != NULL)
        crew->n_local--;
    }
  if (chunk != NULL)
    crew->n_given--;
  return chunk;
}

/* -- the other ranks ---- */

static void
serve_order (const PodCrew *crew, const Order *order)
{
  g_autoptr (PodCrewChunk) chunk = g_new0 (PodCrewChunk, 1);
  g_autofree Report *report = g_new0 (Report, 1);

  chunk->task = order->task;
  chunk->n = order->n;
  for (unsigned i = 0; i < order->n; i++)
    chunk->rows[i].candidate = order->candidates[i];
  run_chunk (crew, chunk);
  report->task = chunk->task;
  report->n = chunk->n;
  report->error_code = chunk->error != NULL ? chunk->error->code : -1;
  if (chunk->error != NULL)
    g_strlcpy (report->error, chunk->error->message, sizeof report->error);
  memcpy (report->rows, chunk->rows, sizeof report->rows);
  memcpy (report->bounds, chunk->bounds, sizeof report->bounds);
  crew->request.transport->send (report, sizeof *report, 0);
}

void
pod_crew_serve (const PodCrewRequest *request)
{
  const PodCrew crew = { .request = *request };
  Order order = { .n = 1 };

  while (order.n > 0)
    {
      size_t n_bytes;
      int from;

      /* A blocking receive would keep a core busy doing nothing */
      if (!request->transport->probe (&from, &n_bytes))
        {
          g_usleep (POLL_US);
          continue;
        }
      request->transport->receive (&order, sizeof order, from);
      if (order.n > 0)
        serve_order (&crew, &order);
    }
}

void
pod_crew_dismiss (const PodTransport *transport)
{
  const Order last = { .n = 0 };

  for (int r = 1; r < transport->n_ranks; r++)
    transport->send (&last, sizeof last, r);
}
