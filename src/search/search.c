#include "search/search.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "search/crew.h"
#include "search/families.h"
#include "search/frontier.h"
#include "search/rank.h"

const char *const pod_objective_names[POD_N_OBJECTIVES + 1] = {
  [POD_OBJECTIVE_TIME] = "time",
  [POD_OBJECTIVE_COST] = "cost",
  [POD_OBJECTIVE_MEMORY] = "memory",
  [POD_OBJECTIVE_COMM] = "comm",
};

typedef struct
{
  const PodSpace *space;
  const PodSearchRequest *request;
  PodFamilies *families;
  PodCachePool *caches;
  GMutex lock;
  PodFrontier *frontier; /* those not refused */
  GHashTable *bounded;  /* candidates whose nearer bound is being found: index in the frontier */
  uint64_t n_refused;
  uint64_t n_repeated;
  uint64_t n_seen;
  GError *error;        /* (nullable) no candidate can help it */
  GArray *best;         /* PodRow */
  GArray *fitting;      /* PodRow: all that were run and fit, with fronts */
  uint64_t n_too_large;
  uint64_t n_fitting;
  uint64_t n_run;
  uint64_t n_found;
  uint64_t n_bounded;
  char *inputs;         /* (nullable) of the database's keys */
  int64_t begin_us;
} Search;

static const PodSpaceLayout *
layout_of (const Search *search, uint64_t candidate)
{
  return &g_array_index (search->space->layouts, PodSpaceLayout, candidate / search->space->n_combinations);
}

static const PodTopology *
machine_of (const Search *search, uint64_t candidate)
{
  return g_ptr_array_index (search->space->machines, layout_of (search, candidate)->machine);
}

static bool
is_interrupted (const Search *search)
{
  return search->request->is_interrupted != NULL && *search->request->is_interrupted;
}

static void
tell (Search *search, uint64_t n_done, uint64_t n_left, bool is_screening)
{
  const PodSearchProgress progress = { .n_done = n_done,
                                       .n_left = n_left,
                                       .elapsed_s = (double) (g_get_monotonic_time () - search->begin_us) / 1e6,
                                       .best = search->best->len > 0 ? &g_array_index (search->best, PodRow, 0) : NULL,
                                       .is_screening = is_screening };

  if (search->request->progress != NULL)
    search->request->progress (&progress, search->request->progress_data);
}

/* -- screening: refusals and bounds, all threads over ranges of candidates ---- */

enum
{
  SCREEN_RANGE = 64,
};

static bool
is_refusal (const GError *error)
{
  return error->domain == POD_ERROR && (error->code == POD_ERROR_UNSUPPORTED || error->code == POD_ERROR_INFEASIBLE || error->code == POD_ERROR_LIMIT);
}

/* A candidate that is not refused. */
typedef struct
{
  uint64_t candidate;
  uint64_t n_members;
  PodRunBound bound;
} Screened;

/* Returns false on an error that is none of the candidate. */
static bool
screen_one (Search *search, PodRunCache *cache, uint64_t candidate, GArray *kept, uint64_t *n_refused, GError **error)
{
  g_autoptr (PodScenario) scenario = pod_space_scenario (search->space, candidate);
  g_autoptr (GError) refusal = NULL;
  Screened entry = { .candidate = candidate, .n_members = search->request->is_exhaustive ? 1 : pod_space_n_members (search->space, candidate) };

  if (pod_scenario_bound (scenario, cache, &entry.bound, &refusal))
    g_array_append_val (kept, entry);
  else if (is_refusal (refusal))
    {
      pod_families_add (search->families, candidate, entry.n_members, refusal->message);
      *n_refused += entry.n_members;
    }
  else
    {
      g_propagate_error (error, g_steal_pointer (&refusal));
      return false;
    }
  return true;
}

static void
screen_range (void *task, void *data)
{
  Search *search = data;
  const uint64_t first = (uint64_t) (GPOINTER_TO_SIZE (task) - 1) * SCREEN_RANGE;
  const uint64_t end = MIN (first + SCREEN_RANGE, search->space->n_candidates);
  g_autoptr (GArray) kept = g_array_new (FALSE, FALSE, sizeof (Screened));
  PodRunCache *cache = pod_cache_pool_take (search->caches);
  g_autoptr (GError) error = NULL;
  uint64_t n_refused = 0;
  uint64_t n_repeated = 0;

  for (uint64_t c = first; c < end && error == NULL && !is_interrupted (search); c++)
    if (pod_space_is_repeated (search->space, c))
      n_repeated++;
    else if (search->request->is_exhaustive || pod_space_is_head (search->space, c))
      screen_one (search, cache, c, kept, &n_refused, &error);
  pod_cache_pool_give (search->caches, cache);
  g_mutex_lock (&search->lock);
  for (guint i = 0; i < kept->len; i++)
    {
      const Screened *entry = &g_array_index (kept, Screened, i);

      pod_frontier_add (search->frontier, entry->candidate, entry->n_members, &entry->bound);
    }
  search->n_refused += n_refused;
  search->n_repeated += n_repeated;
  search->n_seen += end - first;
  if (search->error == NULL)
    search->error = g_steal_pointer (&error);
  g_mutex_unlock (&search->lock);
}

/* The memory that the candidate may take: what is asked for, and what its device has. */
static double
most_bytes (const Search *search, uint64_t candidate)
{
  const bool is_book = g_strcmp0 (search->space->base->fidelity, "book") == 0;
  const double capacity = pod_chip_hbm_capacity (machine_of (search, candidate)->chip, is_book);

  return search->request->most_bytes > 0 ? MIN (search->request->most_bytes, capacity) : capacity;
}

static bool
screen (Search *search, GError **error)
{
  GThreadPool *pool = g_thread_pool_new (screen_range, search, (gint) MAX (search->request->n_jobs, 1), TRUE, NULL);
  const uint64_t n_ranges = (search->space->n_candidates + SCREEN_RANGE - 1) / SCREEN_RANGE;

  for (uint64_t r = 0; r < n_ranges; r++)
    g_thread_pool_push (pool, GSIZE_TO_POINTER (r + 1), NULL);
  while (g_thread_pool_unprocessed (pool) > 0)
    {
      uint64_t n_seen;

      g_usleep (20000);
      g_mutex_lock (&search->lock);
      n_seen = search->n_seen;
      g_mutex_unlock (&search->lock);
      tell (search, n_seen, search->space->n_candidates - n_seen, true);
    }
  g_thread_pool_free (pool, FALSE, TRUE);
  if (search->error != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&search->error));
      return false;
    }
  return true;
}

/* -- running, best bound first ---- */

/* USD of a step per second of it; 0 where no price is known. */
static double
usd_per_s (const Search *search, uint64_t candidate)
{
  const PodTopology *topology = machine_of (search, candidate);
  const double price = search->space->base->price >= 0 ? search->space->base->price : topology->chip->price_usd_per_h;

  return MAX (price, 0) * topology->n_chips / 3600;
}

/* The least that the objective can come to. The last factor covers the rounding of the product. */
static double
least_of (const Search *search, uint64_t candidate, const PodRunBound *bound)
{
  switch (search->request->objective)
    {
    case POD_OBJECTIVE_COST:
      return (double) bound->time_ps / 1e12 * usd_per_s (search, candidate) * (1 - 1e-12);
    case POD_OBJECTIVE_MEMORY:
      return bound->bytes;
    case POD_OBJECTIVE_COMM: /* nothing is known of it */
      return 0;
    default:
      return (double) bound->time_ps;
    }
}

/* Beyond this nothing is among the best. */
static double
limit_of (const Search *search)
{
  if (search->best->len < search->request->n_top || search->request->is_exhaustive)
    return INFINITY;
  return pod_rank_value (search->request->objective, &g_array_index (search->best, PodRow, search->best->len - 1));
}

static uint32_t
chips_of (const Search *search, uint64_t candidate)
{
  const PodTopology *topology = machine_of (search, candidate);

  return (uint32_t) ((uint64_t) pod_layout_n_ranks (&layout_of (search, candidate)->layout) * topology->n_chips / topology->n_devices);
}

/* Whether a row that was run beats the bound in all that the fronts ask: then its candidate is on none of them. */
static bool
is_dominated (const Search *search, uint64_t candidate, const PodRunBound *bound)
{
  const uint32_t chips = chips_of (search, candidate);

  for (guint i = 0; i < search->fitting->len; i++)
    {
      const PodRow *row = &g_array_index (search->fitting, PodRow, i);

      if (row->time_ps < bound->time_ps && pod_row_bytes (row) <= bound->bytes && row->chips_used <= chips)
        return true;
    }
  return false;
}

typedef enum
{
  MAY_BE_BEST,
  TOO_LARGE,
  BEYOND,
} Verdict;

static Verdict
judge (const Search *search, uint64_t candidate, const PodRunBound *bound)
{
  if (search->request->is_exhaustive)
    return MAY_BE_BEST;
  if (bound->bytes > most_bytes (search, candidate))
    return TOO_LARGE;
  return least_of (search, candidate, bound) > limit_of (search) && (!search->request->has_fronts || is_dominated (search, candidate, bound)) ? BEYOND : MAY_BE_BEST;
}

/* By the loosest bound that rules it out: the nearer one is not known of all, nor of the same in every search. */
static Verdict
judge_entry (const Search *search, const PodFrontierEntry *entry)
{
  Verdict verdict = MAY_BE_BEST;

  for (guint n = 0; n <= entry->n_nearer && verdict == MAY_BE_BEST; n++)
    verdict = judge (search, entry->candidate, pod_frontier_nth_bound (search->frontier, entry, n));
  return verdict;
}

static void
take_row (Search *search, const PodRow *row)
{
  if (row->status == POD_ROW_NONE)
    return;
  if (row->status == POD_ROW_REFUSED)
    {
      search->n_refused++;
      pod_families_add (search->families, row->candidate, 1, row->refusal);
      return;
    }
  if (row->status == POD_ROW_TOO_LARGE || pod_row_bytes (row) > most_bytes (search, row->candidate))
    return;
  pod_rank_insert (search->request->objective, search->best, search->request->n_top, row);
  g_array_append_vals (search->fitting, row, 1);
}

/* Whether the database has the candidate's row; then it is taken. */
static bool
take_kept (Search *search, uint64_t candidate)
{
  g_autoptr (PodScenario) scenario = NULL;
  g_autofree char *key = NULL;
  PodRow row = { .candidate = candidate };

  if (search->request->database == NULL)
    return false;
  scenario = pod_space_scenario (search->space, candidate);
  key = pod_database_key (search->inputs, scenario);
  if (!pod_database_find (search->request->database, key, &row))
    return false;
  search->n_found++;
  take_row (search, &row);
  return true;
}

static bool
keep_chunk (Search *search, const PodCrewChunk *chunk, GError **error)
{
  PodScenario *scenarios[POD_CREW_CHUNK];
  char *keys[POD_CREW_CHUNK];
  bool is_kept;

  if (search->request->database == NULL)
    return true;
  for (unsigned i = 0; i < chunk->n; i++)
    {
      scenarios[i] = pod_space_scenario (search->space, chunk->rows[i].candidate);
      keys[i] = pod_database_key (search->inputs, scenarios[i]);
    }
  is_kept = pod_database_add (search->request->database, keys, scenarios, chunk->rows, chunk->n, error);
  for (unsigned i = 0; i < chunk->n; i++)
    {
      pod_scenario_free (scenarios[i]);
      g_free (keys[i]);
    }
  return is_kept;
}

static void
take_bounds (Search *search, const PodCrewChunk *chunk)
{
  for (unsigned i = 0; i < chunk->n; i++)
    {
      const uint64_t candidate = chunk->rows[i].candidate;

      pod_frontier_put_back (search->frontier, GPOINTER_TO_UINT (g_hash_table_lookup (search->bounded, &candidate)), &chunk->bounds[i]);
      g_hash_table_remove (search->bounded, &candidate);
      search->n_bounded += chunk->task == POD_CREW_BOUND;
    }
}

static bool
take_chunk (Search *search, PodCrewChunk *chunk, GError **error)
{
  if (chunk->task != POD_CREW_RUN)
    {
      take_bounds (search, chunk);
      return true;
    }
  for (unsigned i = 0; i < chunk->n; i++)
    {
      search->n_run += chunk->rows[i].status != POD_ROW_NONE;
      take_row (search, &chunk->rows[i]);
    }
  if (!keep_chunk (search, chunk, error))
    return false;
  if (chunk->error == NULL)
    return true;
  g_propagate_error (error, g_steal_pointer (&chunk->error));
  return false;
}

/* Runs are given out a few at a time: what comes back may rule out the next. */
enum
{
  RUN_CHUNK = 2,
};

/* Whether a candidate's program has so many layers a part that one of few tells much for little. */
static bool
has_many_layers (const Search *search, uint64_t candidate)
{
  enum
  {
    MANY = 12,
  };
  const PodLayout *layout = &layout_of (search, candidate)->layout;

  return search->space->model->n_kinds == 1 && search->space->model->n_layers >= (uint64_t) MANY * layout->degree[POD_AXIS_PP] * layout->vpp;
}

/* What an entry asks for, once it is the first. */
static PodCrewTask
task_of (const Search *search, const PodFrontierEntry *entry)
{
  if (search->request->is_exhaustive)
    return POD_CREW_RUN;
  if (has_many_layers (search, entry->candidate))
    return entry->n_nearer == 0 ? POD_CREW_LAYERS : entry->n_nearer == 1 ? POD_CREW_BOUND : POD_CREW_RUN;
  return entry->n_nearer == 0 ? POD_CREW_BOUND : POD_CREW_RUN;
}

/* Takes the first, unless it is of no use or its members stand in its place now. Returns whether @out is to be given out. */
static bool
take_first (Search *search, PodCrewTask task, uint64_t *out)
{
  const guint index = pod_frontier_take (search->frontier);
  const PodFrontierEntry *entry = pod_frontier_at (search->frontier, index);

  *out = entry->candidate;
  if (judge_entry (search, entry) != MAY_BE_BEST)
    return false;
  if (task != POD_CREW_RUN)
    {
      g_hash_table_insert (search->bounded, g_memdup2 (out, sizeof *out), GUINT_TO_POINTER (index));
      return true;
    }
  if (entry->n_members > 1)
    {
      g_autoptr (GArray) members = g_array_new (FALSE, FALSE, sizeof (uint64_t));

      pod_space_add_members (search->space, *out, members);
      pod_frontier_expand (search->frontier, index, members);
      return false;
    }
  return !take_kept (search, *out);
}

/* Gives out the first of the frontier, but those that are ruled out by now: those of which a looser bound is known to be bounded, the others
 * to be run, whichever the first asks for. */
static void
give_chunk (Search *search, PodCrew *crew)
{
  uint64_t chunk[POD_CREW_CHUNK];
  PodCrewTask task = POD_CREW_RUN;
  unsigned n = 0;

  for (const PodFrontierEntry *entry = pod_frontier_first (search->frontier); entry != NULL; entry = pod_frontier_first (search->frontier))
    {
      const PodCrewTask wanted = task_of (search, entry);

      if (n > 0 && (wanted != task || n == (task == POD_CREW_RUN ? RUN_CHUNK : POD_CREW_CHUNK)))
        break;
      if (n == 0)
        task = wanted;
      if (take_first (search, task, &chunk[n]))
        n++;
    }
  if (n > 0)
    pod_crew_give (crew, task, chunk, n);
}

static PodScenario *
crew_scenario (const void *space, uint64_t candidate, GError **error)
{
  (void) error;
  return pod_space_scenario (space, candidate);
}

void
pod_search_help (const PodSpace *space, const PodTransport *transport)
{
  g_autoptr (PodCachePool) caches = pod_cache_pool_new ();
  const PodCrewRequest request = { .scenario = crew_scenario, .data = space, .n_jobs = 1, .must_fit = true, .caches = caches, .transport = transport };

  pod_crew_serve (&request);
}

static bool
run_all (Search *search, GError **error)
{
  const PodCrewRequest request = { .scenario = crew_scenario, .data = search->space, .n_jobs = search->request->n_jobs, .must_fit = true, .caches = search->caches, .transport = search->request->transport, .is_interrupted = search->request->is_interrupted };
  g_autoptr (PodCrew) crew = pod_crew_new (&request);
  bool is_good = true;

  while (is_good && !is_interrupted (search))
    {
      g_autoptr (PodCrewChunk) chunk = NULL;

      while (pod_crew_n_wanted (crew) > 0 && pod_frontier_n_left (search->frontier) > 0)
        give_chunk (search, crew);
      if (pod_crew_n_given (crew) == 0)
        break;
      chunk = pod_crew_take (crew, 100000);
      if (chunk != NULL)
        is_good = take_chunk (search, chunk, error);
      tell (search, search->n_run + search->n_bounded, pod_frontier_n_left (search->frontier), false);
    }
  while (pod_crew_n_given (crew) > 0)
    {
      g_autoptr (PodCrewChunk) chunk = pod_crew_take (crew, 100000);

      if (chunk != NULL)
        is_good = take_chunk (search, chunk, is_good ? error : NULL) && is_good;
    }
  return is_good;
}

/* -- the answer ---- */

static double
measure_chips (const PodRow *row)
{
  return row->chips_used;
}

void
pod_search_result_free (PodSearchResult *result)
{
  if (result == NULL)
    return;
  g_clear_pointer (&result->best, g_array_unref);
  g_clear_pointer (&result->time_memory, g_array_unref);
  g_clear_pointer (&result->time_chips, g_array_unref);
  g_clear_pointer (&result->families, g_ptr_array_unref);
  g_free (result);
}

/* Candidates within the final limit were all run: counting those alone says the same however many others were. */
static void
count (Search *search, PodSearchResult *result)
{
  g_autoptr (GHashTable) fitting = g_hash_table_new (g_int64_hash, g_int64_equal);

  for (guint i = 0; i < search->fitting->len; i++)
    g_hash_table_add (fitting, &g_array_index (search->fitting, PodRow, i).candidate);
  for (guint i = 0; i < pod_frontier_n (search->frontier); i++)
    {
      const PodFrontierEntry *entry = pod_frontier_at (search->frontier, i);
      const Verdict verdict = judge_entry (search, entry);

      if (verdict == TOO_LARGE)
        result->n_too_large += entry->n_members;
      else if (verdict == BEYOND)
        result->n_beyond += entry->n_members;
      else if (entry->n_members > 0 && g_hash_table_contains (fitting, &entry->candidate))
        result->n_fitting++;
    }
  result->n_candidates = search->space->n_candidates - search->n_repeated;
  result->n_refused = search->n_refused;
  if (!result->is_partial)
    result->n_too_large = result->n_candidates - search->n_refused - result->n_beyond - result->n_fitting;
  result->n_run = search->n_run;
  result->n_bounded = search->n_bounded;
  result->n_found = search->n_found;
}

/* Where nothing fits: what comes nearest to it. */
static void
find_smallest (Search *search, PodSearchResult *result)
{
  double least = INFINITY;

  for (guint i = 0; i < pod_frontier_n (search->frontier); i++)
    {
      const PodFrontierEntry *entry = pod_frontier_at (search->frontier, i);
      const double bytes = MAX (entry->bound.bytes, pod_frontier_bound (search->frontier, entry)->bytes);
      const double most = most_bytes (search, entry->candidate);

      if (entry->n_members == 0 || !(bytes / most < least))
        continue;
      least = bytes / most;
      result->smallest = entry->candidate;
      result->least_bytes = bytes;
      result->most_bytes = most;
    }
}

static PodSearchResult *
conclude (Search *search)
{
  PodSearchResult *result = g_new0 (PodSearchResult, 1);

  result->is_partial = is_interrupted (search);
  count (search, result);
  if (!result->is_partial && search->best->len == 0)
    find_smallest (search, result);
  result->best = g_array_ref (search->best);
  if (search->request->has_fronts)
    {
      result->time_memory = pod_rank_front (search->fitting, pod_row_bytes);
      result->time_chips = pod_rank_front (search->fitting, measure_chips);
    }
  result->families = pod_families_list (search->families);
  return result;
}

static bool
check_request (const PodSpace *space, const PodSearchRequest *request, GError **error)
{
  for (guint m = 0; request->objective == POD_OBJECTIVE_COST && space->base->price < 0 && m < space->machines->len; m++)
    {
      const PodTopology *topology = g_ptr_array_index (space->machines, m);

      if (topology->chip->price_usd_per_h > 0)
        continue;
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--objective: cost: no price is known for %s: say --price", topology->chip->title);
      return false;
    }
  return true;
}

PodSearchResult *
pod_search_run (const PodSpace *space, const PodSearchRequest *request, GError **error)
{
  Search search = { .space = space, .request = request, .begin_us = g_get_monotonic_time () };
  PodSearchResult *result = NULL;

  if (!check_request (space, request, error))
    return NULL;
  g_mutex_init (&search.lock);
  search.families = pod_families_new ();
  search.caches = pod_cache_pool_new ();
  search.frontier = pod_frontier_new (request->objective == POD_OBJECTIVE_MEMORY);
  search.bounded = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  search.best = g_array_new (FALSE, FALSE, sizeof (PodRow));
  search.fitting = g_array_new (FALSE, FALSE, sizeof (PodRow));
  if (request->database != NULL)
    search.inputs = pod_database_inputs ();
  if (screen (&search, error) && run_all (&search, error))
    result = conclude (&search);
  g_mutex_clear (&search.lock);
  pod_families_free (search.families);
  pod_cache_pool_free (search.caches);
  g_free (search.inputs);
  pod_frontier_free (search.frontier);
  g_hash_table_unref (search.bounded);
  g_array_unref (search.best);
  g_array_unref (search.fitting);
  return result;
}
