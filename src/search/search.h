#pragma once

#include "search/database.h"
#include "search/row.h"
#include "search/space.h"
#include "search/transport.h"

/* The best layouts of a space, found by the simulator itself. Candidates that do not divide are refused before anything runs. The others wait
 * in the order of proven bounds, of the job alone at first, then of its program; those whose bound is beyond the last of the best found so
 * far are never run, which changes no answer: best first, ties by time, memory and number, the same whatever the threads or ranks. */

typedef enum
{
  POD_OBJECTIVE_TIME,
  POD_OBJECTIVE_COST,   /* USD of a step */
  POD_OBJECTIVE_MEMORY, /* peak and reserve */
  POD_OBJECTIVE_COMM,   /* of a forward pass, on the axis that has the most of it */
  POD_N_OBJECTIVES
} PodObjective;

extern const char *const pod_objective_names[POD_N_OBJECTIVES + 1]; /* ends with NULL */

typedef struct
{
  uint64_t n_done;     /* run */
  uint64_t n_left;     /* not yet ruled out */
  double elapsed_s;
  const PodRow *best;  /* (nullable) so far */
  bool is_screening;   /* refusals and bounds: n_done of n_done + n_left */
} PodSearchProgress;

typedef struct
{
  PodObjective objective;
  unsigned n_top;           /* at least 1 */
  double most_bytes;        /* of memory, reserve included; 0: what the device has */
  bool has_fronts;          /* Pareto fronts too, which rules out less */
  bool is_exhaustive;       /* every candidate is run: to check that bounds rule out right */
  unsigned n_jobs;
  const PodTransport *transport; /* (nullable) ranks that help; rank 0 searches, the others call pod_search_help */
  PodDatabase *database;    /* (nullable) (borrowed) runs that it has are not run again; others are kept in it as they come */
  const volatile sig_atomic_t *is_interrupted; /* (nullable) */
  void (*progress) (const PodSearchProgress *progress, void *data); /* (nullable) */
  void *progress_data;
} PodSearchRequest;

/* Candidates that are refused for one reason. */
typedef struct
{
  char *reason;
  GPtrArray *values;    /* (element-type utf8) the numbers that do not divide, ascending; may be empty */
  uint64_t n;
  uint64_t first;       /* candidate */
  char *message;        /* its own */
} PodSearchFamily;

typedef struct
{
  GArray *best;          /* PodRow, at most n_top */
  GArray *time_memory;   /* PodRow: with has_fronts, no other is at least as good in both */
  GArray *time_chips;
  GPtrArray *families;   /* (element-type PodSearchFamily) by number of candidates */
  uint64_t n_candidates; /* different ones */
  uint64_t n_refused;
  uint64_t n_too_large;  /* of those within the bound */
  uint64_t n_fitting;    /* likewise */
  uint64_t n_beyond;     /* ruled out: cannot be among the best */
  uint64_t n_run;        /* differs from run to run: more than one thread finds out later what it need not have run */
  uint64_t n_bounded;    /* of which the program's bound was found; differs likewise */
  uint64_t n_found;      /* taken from the database instead */
  uint64_t smallest;     /* where none fits: the candidate that needs the least memory, by its bound */
  double least_bytes;    /* what it needs at the least; 0 where something fits, or nothing was too large */
  double most_bytes;     /* what it may take */
  bool is_partial;       /* interrupted */
} PodSearchResult;

PodSearchResult *pod_search_run (const PodSpace *space, const PodSearchRequest *request, GError **error);
/* What ranks other than 0 do, over the same space, until rank 0 dismisses them. */
void pod_search_help (const PodSpace *space, const PodTransport *transport);
void pod_search_result_free (PodSearchResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodSearchResult, pod_search_result_free)

/* The answer as CLI.md's best[], pareto.time_memory[], pareto.time_chips[], rejected[] and counts. Returns: (transfer full) */
JsonObject *pod_search_to_json (const PodSpace *space, const PodSearchRequest *request, const PodSearchResult *result);
