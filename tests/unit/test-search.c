#include "search/search.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "search/auto-layout.h"
#include "search/crossing.h"
#include "search/families.h"
#include "search/frontier.h"
#include "search/grid.h"
#include "search/rank.h"
#include "search/shapes.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* -- grids ---- */

static const struct
{
  const char *text;
  const char *values; /* joined by |; NULL: refused */
} lists[] = {
  { "tp=1,2,4", "1|2|4" },
  { "global-batch=256:4096:*2", "256|512|1024|2048|4096" },
  { "micro-batch=1:7:+3,16", "1|4|7|16" },
  { "micro-batch=3:100:*3", "3|9|27|81" },
  { "layout=dp=2 tp=4,fsdp=8", "dp=2 tp=4|fsdp=8" },
  { "order=tp,cp,ep,fsdp,dp,pp", "tp,cp,ep,fsdp,dp,pp" },
  { "order=tp,pp,dp;dp,pp,tp", "tp,pp,dp|dp,pp,tp" },
  { "map=tp=x:4 fsdp=x:4,y;fsdp=x,y", "tp=x:4 fsdp=x:4,y|fsdp=x,y" },
  { "topology=h100:8,nic=200Gb/s", "h100:8,nic=200Gb/s" },
  { "tp", NULL },
  { "=1,2", NULL },
  { "tp=", NULL },
  { "tp=1,,2", NULL },
  { "tp=8:1:*2", NULL },
  { "tp=1:8:*1", NULL },
  { "tp=0:8:*2", NULL },
  { "tp=1:8:+0", NULL },
  { "tp=1:8:2", NULL },
  { "tp=1:1000000:+1", NULL },
  { "tp=1:18446744073709551615:*3", "1|3|9|27|81|243|729|2187|6561|19683|59049|177147|531441|1594323|4782969|14348907|43046721|129140163|387420489|1162261467|3486784401|"
                                   "10460353203|31381059609|94143178827|282429536481|847288609443|2541865828329|7625597484987|22876792454961|68630377364883|205891132094649|"
                                   "617673396283947|1853020188851841|5559060566555523|16677181699666569|50031545098999707|150094635296999121|450283905890997363|"
                                   "1350851717672992089|4052555153018976267|12157665459056928801" },
};

START_TEST (lists_are_read)
{
  g_autoptr (PodGrid) grid = pod_grid_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) got = g_string_new (NULL);
  const bool is_good = pod_grid_add (grid, lists[_i].text, &error);

  ck_assert_msg (is_good == (lists[_i].values != NULL), "%s: %s", lists[_i].text, error != NULL ? error->message : "taken");
  if (!is_good)
    return;
  for (uint64_t i = 0; i < pod_grid_size (grid); i++)
    g_string_append_printf (got, "%s%s", i > 0 ? "|" : "", pod_grid_value (grid, i, 0));
  ck_assert_str_eq (got->str, lists[_i].values);
}
END_TEST

START_TEST (last_dimension_moves_fastest)
{
  g_autoptr (PodGrid) grid = pod_grid_new ();

  ck_assert_uint_eq (pod_grid_size (grid), 1);
  ck_assert (pod_grid_add (grid, "a=1,2", NULL));
  ck_assert (pod_grid_add (grid, "b=x,y,z", NULL));
  ck_assert (!pod_grid_add (grid, "a=3", NULL));
  ck_assert_uint_eq (pod_grid_size (grid), 6);
  ck_assert_str_eq (pod_grid_value (grid, 4, 0), "2");
  ck_assert_str_eq (pod_grid_value (grid, 4, 1), "y");
}
END_TEST

/* -- spaces ---- */

/* A small GPT on @topology. Returns: (transfer full) */
static PodScenario *
make_job (const char *topology)
{
  PodScenario *scenario = pod_scenario_new ();

  ck_assert (pod_scenario_set (scenario, "topology", topology, NULL));
  ck_assert (pod_scenario_set (scenario, "model", "gpt2", NULL));
  ck_assert (pod_scenario_set (scenario, "layers", "4", NULL));
  ck_assert (pod_scenario_set (scenario, "heads", "16", NULL));
  ck_assert (pod_scenario_set (scenario, "kv-heads", "16", NULL));
  ck_assert (pod_scenario_set (scenario, "hidden", "1024", NULL));
  ck_assert (pod_scenario_set (scenario, "head-dim", "64", NULL));
  ck_assert (pod_scenario_set (scenario, "seq-len", "1024", NULL));
  ck_assert (pod_scenario_set (scenario, "global-batch", "32", NULL));
  return scenario;
}

/* Returns: (transfer full) */
static PodSpace *
make_space (const PodScenario *base, const char *const *limits)
{
  g_autoptr (GPtrArray) list = g_ptr_array_new ();
  g_autoptr (GError) error = NULL;
  PodSpace *space;

  for (; limits != NULL && *limits != NULL; limits++)
    g_ptr_array_add (list, (char *) *limits);
  space = pod_space_new (base, list, &error);
  ck_assert_msg (space != NULL, "%s", error != NULL ? error->message : "");
  return space;
}

/* 8 = 2^3 devices in dp, fsdp, tp, cp: C(3+3,3) = 20 ways; with pp = 1, 2, 4 of 4 layers: 20 + 10 + 4. vpp divides 4 layers, or 6 with the
 * embedding and the head: of pp=2 1, 2 and 3 (6 parts), of pp=4 1. */
START_TEST (every_degree_that_divides)
{
  g_autoptr (PodScenario) base = make_job ("h100:8");
  g_autoptr (PodSpace) space = make_space (base, WORDS ("micro-batch=1", "recompute=none", "zero=0"));

  ck_assert_uint_eq (space->layouts->len, 20 + 3 * 10 + 4);
  ck_assert_uint_eq (space->n_candidates, 54);
}
END_TEST

/* Products up to 8 of degrees 1, 2, 4, 8: exponents that sum to at most 3, with three axes C(3+3,3) = 20. */
START_TEST (idle_devices_where_allowed)
{
  g_autoptr (PodScenario) base = make_job ("h100:8");
  g_autoptr (PodSpace) space = NULL;

  ck_assert (pod_scenario_set (base, "allow-idle", NULL, NULL));
  space = make_space (base, WORDS ("micro-batch=1", "recompute=none", "zero=0", "pp=1", "cp=1"));
  ck_assert_uint_eq (space->layouts->len, 20);
}
END_TEST

/* Without replicas ZeRO does nothing, without tp sequence parallelism does nothing. */
START_TEST (options_without_effect_stand_once)
{
  g_autoptr (PodScenario) base = make_job ("h100:8");
  g_autoptr (PodSpace) space = make_space (base, WORDS ("micro-batch=1", "recompute=none", "zero=0,1", "sequence-parallel=true,false", "pp=1", "cp=1", "fsdp=1"));
  uint64_t n_different = 0;

  ck_assert_uint_eq (space->layouts->len, 4); /* tp=8; tp=4 dp=2; tp=2 dp=4; dp=8 */
  for (uint64_t c = 0; c < space->n_candidates; c++)
    n_different += !pod_space_is_repeated (space, c);
  ck_assert_uint_eq (n_different, 2 + 4 + 4 + 2);
}
END_TEST

START_TEST (said_options_do_not_vary)
{
  g_autoptr (PodScenario) base = make_job ("h100:8");
  g_autoptr (PodSpace) space = NULL;

  ck_assert (pod_scenario_set (base, "recompute", "full", NULL));
  space = make_space (base, NULL);
  ck_assert_ptr_null (pod_grid_find (space->options, "recompute"));
  ck_assert_ptr_nonnull (pod_grid_find (space->options, "micro-batch"));
}
END_TEST

static const struct
{
  const char *limit;
  const char *message;
} refused_limits[] = {
  { "model=gpt2", "part of the question" },
  { "seq-len=1,2", "part of the question" },
  { "colour=red", "unknown key 'colour'" },
  { "tp=two", "--space: tp" },
  { "tp=0", "must be at least 1" },
  { "micro-batch=none", "--micro-batch" },
  { "tp", "is not KEY=LIST" },
  { "topology=h100:0", "h100:0" },
};

START_TEST (wrong_limits_are_refused)
{
  g_autoptr (PodScenario) base = make_job ("h100:8");
  g_autoptr (GPtrArray) list = g_ptr_array_new ();
  g_autoptr (GError) error = NULL;

  g_ptr_array_add (list, (char *) refused_limits[_i].limit);
  ck_assert_ptr_null (pod_space_new (base, list, &error));
  ck_assert_msg (strstr (error->message, refused_limits[_i].message) != NULL, "%s", error->message);
}
END_TEST

/* -- searches ---- */

/* Returns: (transfer full) the answer as text */
static char *
answer (const PodSpace *space, const PodSearchRequest *request)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodSearchResult) result = pod_search_run (space, request, &error);
  g_autoptr (JsonNode) root = json_node_alloc ();
  JsonObject *object;

  ck_assert_msg (result != NULL, "%s", error != NULL ? error->message : "");
  object = pod_search_to_json (space, request, result);
  json_node_init_object (root, object);
  json_object_unref (object);
  return pod_json_to_text (root);
}

/* The machines and limits that searches are tried on. */
static const struct
{
  const char *topology;
  const char *limits[4];
  PodObjective objective;
  bool has_fronts;
} searches[] = {
  { "h100:8", { "zero=1", "recompute=none,full", "micro-batch=1,2" }, POD_OBJECTIVE_TIME, false },
  { "h100:8", { "zero=0,1", "recompute=none", "micro-batch=1" }, POD_OBJECTIVE_MEMORY, true },
  { "h100:8x2", { "zero=1", "recompute=none", "cp=1" }, POD_OBJECTIVE_COST, false },
  { "tpu-v5e:2x4", { "recompute=full", "micro-batch=1,4", "zero=0" }, POD_OBJECTIVE_TIME, true },
};

static double
time_of (const PodRow *row)
{
  return (double) row->time_ps;
}

/* Batches 2, 4, 8, 16; one line takes as long as its batch, one always 6, one does not fit at 4: the first two cross at 6, the third crosses the
 * second, x^2, between 8 and 16 alone, where it is above it already. */
START_TEST (lines_cross)
{
  g_autoptr (PodGrid) grid = pod_grid_new ();
  g_autoptr (GArray) rows = g_array_new (FALSE, TRUE, sizeof (PodRow));
  g_autoptr (GArray) crossings = NULL;
  const PodCrossing *crossing;

  ck_assert (pod_grid_add (grid, "global-batch=2,4,8,16", NULL) && pod_grid_add (grid, "layout=dp=8;tp=8;fsdp=8", NULL));
  for (int64_t x = 2; x <= 16; x *= 2)
    for (unsigned line = 0; line < 3; line++)
      {
        const PodRow row = { .status = line == 2 && x == 4 ? POD_ROW_TOO_LARGE : POD_ROW_FITS, .time_ps = line == 0 ? x : line == 1 ? 6 : x * x };

        g_array_append_val (rows, row);
      }
  crossings = pod_crossings (grid, rows, time_of);
  ck_assert_uint_eq (crossings->len, 1);
  crossing = &g_array_index (crossings, PodCrossing, 0);
  ck_assert_uint_eq (crossing->lines[0], 0);
  ck_assert_uint_eq (crossing->lines[1], 1);
  ck_assert_double_eq_tol (crossing->at, 6, 1e-12);
  ck_assert_double_eq_tol (crossing->value, 6, 1e-12);
}
END_TEST

static double
compute_of (const PodRow *row)
{
  return (double) row->forward_compute_ps;
}

/* Tokens 2, 4, 8, 16; one line always takes 4, one as long as its tokens: they meet at the run of 4 itself. Compute takes half the tokens: the
 * first line's at 8, the second's never. */
START_TEST (lines_meet_at_a_run)
{
  g_autoptr (PodGrid) grid = pod_grid_new ();
  g_autoptr (GArray) rows = g_array_new (FALSE, TRUE, sizeof (PodRow));
  g_autoptr (GArray) crossings = NULL;
  g_autoptr (GArray) balances = NULL;

  ck_assert (pod_grid_add (grid, "tokens-per-chip=2,4,8,16", NULL) && pod_grid_add (grid, "layout=fsdp=8;tp=8", NULL));
  for (int64_t x = 2; x <= 16; x *= 2)
    for (unsigned line = 0; line < 2; line++)
      {
        const PodRow row = { .status = POD_ROW_FITS, .time_ps = line == 0 ? 4 : x, .forward_compute_ps = x / 2 };

        g_array_append_val (rows, row);
      }
  crossings = pod_crossings (grid, rows, time_of);
  ck_assert_uint_eq (crossings->len, 1);
  ck_assert_double_eq_tol (g_array_index (crossings, PodCrossing, 0).at, 4, 1e-12);
  ck_assert_uint_eq (g_array_index (crossings, PodCrossing, 0).lines[0], 1);
  balances = pod_balances (grid, rows, time_of, compute_of);
  ck_assert_uint_eq (balances->len, 1);
  ck_assert_double_eq_tol (g_array_index (balances, PodCrossing, 0).at, 8, 1e-12);
  ck_assert_uint_eq (g_array_index (balances, PodCrossing, 0).lines[0], 0);
  ck_assert (!g_array_index (balances, PodCrossing, 0).is_first_lower);
}
END_TEST

/* Bounds 0 to 9 in a mixed order, every third of which turns out 5 more: those come out in the order of the sums, of equals the lowest
 * candidate. */
START_TEST (frontier_is_in_order)
{
  g_autoptr (PodFrontier) frontier = pod_frontier_new (_i == 1);
  int64_t last = -1;
  unsigned n = 0;

  for (uint64_t i = 0; i < 10; i++)
    pod_frontier_add (frontier, i, 1, &(PodRunBound){ .time_ps = _i == 1 ? 0 : (int64_t) (i * 7 % 10), .bytes = (double) (i * 7 % 10) });
  while (pod_frontier_n_left (frontier) > 0)
    {
      const PodFrontierEntry *first = pod_frontier_first (frontier);
      const guint index = pod_frontier_take (frontier);
      const PodRunBound *bound = pod_frontier_bound (frontier, pod_frontier_at (frontier, index));
      const int64_t value = _i == 1 ? (int64_t) bound->bytes : bound->time_ps;

      ck_assert_ptr_eq (first, pod_frontier_at (frontier, index));
      if (first->n_nearer == 0 && first->candidate % 3 == 0)
        {
          pod_frontier_put_back (frontier, index, &(PodRunBound){ .time_ps = _i == 1 ? 0 : value + 5, .bytes = (double) value + 5 });
          continue;
        }
      ck_assert_int_ge (value, last);
      last = value;
      n++;
    }
  ck_assert_uint_eq (n, 10);
  ck_assert_uint_eq (pod_frontier_n (frontier), 10);
  ck_assert_int_eq (last, 9); /* candidate 7's: 0, 3, 6 and 9 come to 5, 6, 7 and 8 */
}
END_TEST

START_TEST (threads_change_nothing)
{
  g_autoptr (PodScenario) base = make_job (searches[_i].topology);
  g_autoptr (PodSpace) space = make_space (base, searches[_i].limits);
  PodSearchRequest request = { .n_top = 5, .objective = searches[_i].objective, .has_fronts = searches[_i].has_fronts, .n_jobs = 1 };
  g_autofree char *one = answer (space, &request);

  for (unsigned jobs = 2; jobs <= 5; jobs += 3)
    {
      g_autofree char *many = NULL;

      request.n_jobs = jobs;
      many = answer (space, &request);
      ck_assert_str_eq (one, many);
    }
}
END_TEST

/* Bounds rule out none of the best: rows, order and fronts are those of running everything. */
START_TEST (bounds_change_no_answer)
{
  g_autoptr (PodScenario) base = make_job (searches[_i].topology);
  g_autoptr (PodSpace) space = make_space (base, searches[_i].limits);
  PodSearchRequest request = { .n_top = 5, .objective = searches[_i].objective, .has_fronts = searches[_i].has_fronts, .n_jobs = 2 };
  g_autoptr (PodSearchResult) pruned = pod_search_run (space, &request, NULL);
  g_autoptr (PodSearchResult) all = NULL;

  request.is_exhaustive = true;
  all = pod_search_run (space, &request, NULL);
  ck_assert_uint_eq (pruned->best->len, all->best->len);
  ck_assert_mem_eq (pruned->best->data, all->best->data, all->best->len * sizeof (PodRow));
  ck_assert_uint_le (pruned->n_run, all->n_run);
  if (!searches[_i].has_fronts)
    return;
  ck_assert_uint_eq (pruned->time_memory->len, all->time_memory->len);
  ck_assert_mem_eq (pruned->time_memory->data, all->time_memory->data, all->time_memory->len * sizeof (PodRow));
  ck_assert_uint_eq (pruned->time_chips->len, all->time_chips->len);
}
END_TEST

/* The best is what podsim run says of it, and no other candidate is better. */
START_TEST (best_is_the_least_of_all_runs)
{
  g_autoptr (PodScenario) base = make_job ("h100:8");
  g_autoptr (PodSpace) space = make_space (base, WORDS ("zero=1", "recompute=none", "micro-batch=1"));
  const PodSearchRequest request = { .n_top = 1, .n_jobs = 2 };
  const PodRunRequest run = { .is_recording_none = true, .needs_no_advice = true };
  g_autoptr (PodSearchResult) result = pod_search_run (space, &request, NULL);
  int64_t least_ps = INT64_MAX;

  for (uint64_t c = 0; c < space->n_candidates; c++)
    {
      g_autoptr (PodScenario) scenario = pod_space_scenario (space, c);
      PodRow row;

      ck_assert (pod_row_run (scenario, &run, &row, NULL, NULL));
      if (row.status == POD_ROW_FITS)
        least_ps = MIN (least_ps, row.time_ps);
    }
  ck_assert_int_eq (g_array_index (result->best, PodRow, 0).time_ps, least_ps);
}
END_TEST

START_TEST (memory_limit_is_kept)
{
  g_autoptr (PodScenario) base = make_job ("h100:8");
  g_autoptr (PodSpace) space = make_space (base, WORDS ("zero=0", "recompute=none", "micro-batch=1,8"));
  const PodSearchRequest free = { .n_top = 1, .n_jobs = 2 };
  PodSearchRequest tight = free;
  g_autoptr (PodSearchResult) fastest = pod_search_run (space, &free, NULL);
  g_autoptr (PodSearchResult) limited = NULL;

  tight.most_bytes = pod_row_bytes (&g_array_index (fastest->best, PodRow, 0)) * 0.99;
  limited = pod_search_run (space, &tight, NULL);
  ck_assert_uint_eq (limited->best->len, 1);
  ck_assert (pod_row_bytes (&g_array_index (limited->best, PodRow, 0)) <= tight.most_bytes);
  ck_assert_int_ge (g_array_index (limited->best, PodRow, 0).time_ps, g_array_index (fastest->best, PodRow, 0).time_ps);
}
END_TEST

/* A space where nothing fits has no best, and says why. */
START_TEST (nothing_fits)
{
  g_autoptr (PodScenario) job = pod_scenario_new ();
  g_autoptr (PodScenario) chosen = NULL;
  g_autoptr (GError) error = NULL;
  const PodSearchRequest request = { .n_jobs = 1, .n_top = 1 };

  ck_assert (pod_scenario_set (job, "topology", "tpu-v5e:1x2", NULL) && pod_scenario_set (job, "model", "llama3-70b", NULL)
             && pod_scenario_set (job, "global-batch", "2", NULL) && pod_scenario_set (job, "layout", "auto", NULL));
  ck_assert (pod_layout_is_auto (job));
  chosen = pod_layout_choose (job, &request, &error);
  ck_assert_ptr_null (chosen);
  ck_assert_msg (strstr (error->message, "too large for the memory") != NULL, "%s", error->message);
}
END_TEST

/* -- parts ---- */

START_TEST (families_count_by_reason)
{
  g_autoptr (PodFamilies) families = pod_families_new ();
  g_autoptr (GPtrArray) list = NULL;
  const PodSearchFamily *first;

  pod_families_add (families, 7, 1, "--layout: query head count (128) is not a multiple of tp (256): 128 % 256 = 128; nearest: 256");
  pod_families_add (families, 3, 1, "--layout: query head count (128) is not a multiple of tp (1024): 128 % 1024 = 128; nearest: 1024");
  pod_families_add (families, 9, 1, "--layout: query head count (128) is not a multiple of tp (256): 128 % 256 = 128; nearest: 256");
  pod_families_add (families, 1, 1, "deadlock: rank 0 waits");
  list = pod_families_list (families);
  ck_assert_uint_eq (list->len, 2);
  first = g_ptr_array_index (list, 0);
  ck_assert_str_eq (first->reason, "query head count (128) is not a multiple of tp");
  ck_assert_uint_eq (first->n, 3);
  ck_assert_uint_eq (first->first, 3);
  ck_assert_uint_eq (first->values->len, 2);
  ck_assert_str_eq (g_ptr_array_index (first->values, 0), "256");
  ck_assert_str_eq (((const PodSearchFamily *) g_ptr_array_index (list, 1))->reason, "deadlock: rank 0 waits");
}
END_TEST

/* (time, memory): 3,9 is beaten by 2,9; 5,1 and 4,4 and 2,9 are not; the second 4,4 says the same. */
START_TEST (fronts_hold_what_none_beats)
{
  static const struct
  {
    int64_t time_ps;
    double bytes;
  } points[] = { { 5, 1 }, { 3, 9 }, { 4, 4 }, { 2, 9 }, { 4, 4 }, { 4, 5 }, { 6, 1 } };
  static const uint64_t expected[] = { 3, 2, 0 };
  g_autoptr (GArray) rows = g_array_new (FALSE, TRUE, sizeof (PodRow));
  g_autoptr (GArray) front = NULL;

  for (unsigned i = 0; i < G_N_ELEMENTS (points); i++)
    {
      const PodRow row = { .candidate = i, .time_ps = points[i].time_ps, .peak_bytes = points[i].bytes };

      g_array_append_val (rows, row);
    }
  front = pod_rank_front (rows, pod_row_bytes);
  ck_assert_uint_eq (front->len, G_N_ELEMENTS (expected));
  for (guint i = 0; i < front->len; i++)
    ck_assert_uint_eq (g_array_index (front, PodRow, i).candidate, expected[i]);
}
END_TEST

/* Slices of v5p are made of cubes of 4x4x4 or lie inside one; v5e has two axes. */
static const struct
{
  const char *text;
  const char *shapes; /* joined by blanks; NULL: refused */
} machines[] = {
  { "tpu-v5p:8", "tpu-v5p:2x2x2 tpu-v5p:1x2x4" },
  { "tpu-v5p:64", "tpu-v5p:4x4x4" },
  { "tpu-v5p:128", "tpu-v5p:4x4x8 tpu-v5p:4x4x8t" },
  { "tpu-v5p:256", "tpu-v5p:4x8x8 tpu-v5p:4x8x8t tpu-v5p:4x4x16" },
  { "tpu-v5e:16", "tpu-v5e:4x4 tpu-v5e:2x8 tpu-v5e:1x16" },
  { "h100:4", "h100:4x1" },
  { "h100:1024", "h100:8x128" },
  { "gb200:144", "gb200:72x2 gb200:48x3 gb200:36x4" },
  { "tpu-v5p:100", NULL },
  { "h100:12", NULL },
  { "h100", NULL },
  { "h100:0", NULL },
  { "nothing:8", NULL },
};

START_TEST (shapes_are_those_there_are)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) shapes = pod_shapes_of (machines[_i].text, &error);
  g_autofree char *joined = NULL;

  ck_assert_msg ((shapes != NULL) == (machines[_i].shapes != NULL), "%s", machines[_i].text);
  if (shapes == NULL)
    return;
  g_ptr_array_add (shapes, NULL);
  joined = g_strjoinv (" ", (char **) shapes->pdata);
  ck_assert_str_eq (joined, machines[_i].shapes);
}
END_TEST

START_TEST (wraps_are_told)
{
  static const char *const cases[][2]
      = { { "tpu-v5p:4x4x8t", "xyz twisted" }, { "tpu-v5p:4x4x4", "xyz" }, { "tpu-v5p:2x2x2", "none" }, { "tpu-v5e:16x16", "xy" }, { "tpu-v5e:8x16", "y" }, { "h100:8", "-" } };

  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (PodTopology) topology = pod_topology_load (cases[i][0], NULL);
      g_autofree char *wraps = pod_shape_wraps (topology);

      ck_assert_str_eq (wraps, cases[i][1]);
    }
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("search");
  TCase *tcase = tcase_create ("all");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  tcase_set_timeout (tcase, 600);
  tcase_add_loop_test (tcase, lists_are_read, 0, G_N_ELEMENTS (lists));
  tcase_add_test (tcase, last_dimension_moves_fastest);
  tcase_add_test (tcase, every_degree_that_divides);
  tcase_add_test (tcase, idle_devices_where_allowed);
  tcase_add_test (tcase, options_without_effect_stand_once);
  tcase_add_test (tcase, said_options_do_not_vary);
  tcase_add_loop_test (tcase, wrong_limits_are_refused, 0, G_N_ELEMENTS (refused_limits));
  tcase_add_test (tcase, lines_cross);
  tcase_add_test (tcase, lines_meet_at_a_run);
  tcase_add_loop_test (tcase, frontier_is_in_order, 0, 2);
  tcase_add_loop_test (tcase, threads_change_nothing, 0, G_N_ELEMENTS (searches));
  tcase_add_loop_test (tcase, bounds_change_no_answer, 0, G_N_ELEMENTS (searches));
  tcase_add_test (tcase, best_is_the_least_of_all_runs);
  tcase_add_test (tcase, memory_limit_is_kept);
  tcase_add_test (tcase, nothing_fits);
  tcase_add_test (tcase, families_count_by_reason);
  tcase_add_test (tcase, fronts_hold_what_none_beats);
  tcase_add_loop_test (tcase, shapes_are_those_there_are, 0, G_N_ELEMENTS (machines));
  tcase_add_test (tcase, wraps_are_told);
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
