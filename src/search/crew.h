#pragma once

#include "search/cache-pool.h"
#include "search/row.h"
#include "search/transport.h"

/* Who runs candidates, or finds what they take at the least: threads of this process, and under mpirun the other ranks. Chunks of candidates
 * are given out one at a time and come back as rows or bounds, in any order. */

typedef struct PodCrew PodCrew;

/* The scenario of a candidate; NULL with an error, which its row then tells, or without one when interrupted. Returns: (transfer full) (nullable) */
typedef PodScenario *(*PodCrewScenario) (const void *data, uint64_t candidate, GError **error);

typedef struct
{
  PodCrewScenario scenario;
  const void *data;
  unsigned n_jobs;     /* threads */
  bool must_fit;       /* runs that do not fit are given up, their times unknown */
  PodCachePool *caches; /* (borrowed) */
  const volatile sig_atomic_t *is_interrupted; /* (nullable) */
  const PodTransport *transport; /* (nullable) then this is rank 0, and the others run pod_crew_serve */
} PodCrewRequest;

enum
{
  POD_CREW_CHUNK = 8,
};

typedef enum
{
  POD_CREW_RUN,
  POD_CREW_LAYERS, /* pod_scenario_layers_bound; 0 where that fails, as the run then will */
  POD_CREW_BOUND,  /* pod_scenario_floor; likewise */
} PodCrewTask;

typedef struct
{
  PodCrewTask task;
  unsigned n;
  PodRow rows[POD_CREW_CHUNK]; /* with status NONE where the run was interrupted, or where only a bound was asked for */
  PodRunBound bounds[POD_CREW_CHUNK];
  GError *error;               /* (owned) (nullable) what no candidate can help */
} PodCrewChunk;

void pod_crew_chunk_free (PodCrewChunk *chunk);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodCrewChunk, pod_crew_chunk_free)

PodCrew *pod_crew_new (const PodCrewRequest *request);
/* Waits for what is under way. */
void pod_crew_free (PodCrew *crew);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodCrew, pod_crew_free)

/* What ranks other than 0 do: run the chunks that they are sent until rank 0 says that it was the last (pod_crew_dismiss). */
void pod_crew_serve (const PodCrewRequest *request);
/* Tells the other ranks to end; also where no crew was made. */
void pod_crew_dismiss (const PodTransport *transport);

/* Chunks that may be given before someone has two. */
unsigned pod_crew_n_wanted (const PodCrew *crew);
/* Chunks given and not yet taken back. */
unsigned pod_crew_n_given (const PodCrew *crew);
void pod_crew_give (PodCrew *crew, PodCrewTask task, const uint64_t *candidates, unsigned n);
/* The next chunk that is done, NULL after @wait_us. Returns: (transfer full) (nullable) */
PodCrewChunk *pod_crew_take (PodCrew *crew, uint64_t wait_us);
