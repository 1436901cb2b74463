#include "network/max-min.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

__extension__ typedef unsigned __int128 U128;

#define ONE (UINT64_C (1) << 32) /* a share of 1 */

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t
next_random (uint64_t *state)
{
  uint64_t z = *state += UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
  return z ^ z >> 31;
}

static uint32_t
random_below (uint64_t *state, uint32_t n)
{
  return (uint32_t) (next_random (state) % n);
}

enum
{
  MAX_TRANSFERS = 4096,
  MAX_LINKS = 4096,
  MAX_ENTRIES = 65536,
};

typedef struct
{
  uint32_t n_links;
  uint32_t n_transfers;
  uint32_t n_entries_total;
  uint64_t capacity[MAX_LINKS];
  const PodPathEntry *paths[MAX_TRANSFERS];
  uint32_t n_entries[MAX_TRANSFERS];
  PodPathEntry entries[MAX_ENTRIES];
  uint64_t rate[MAX_TRANSFERS]; /* the answer of the solver under test */
} Problem;

static Problem *
problem_new (uint32_t n_links)
{
  Problem *problem = g_new0 (Problem, 1);

  g_assert (n_links <= MAX_LINKS);
  problem->n_links = n_links;
  return problem;
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Problem, g_free)

static void
add_entry (Problem *problem, uint32_t link, uint64_t share_q32)
{
  g_assert (problem->n_transfers > 0 && problem->n_entries_total < MAX_ENTRIES);
  problem->entries[problem->n_entries_total++] = (PodPathEntry){ link, share_q32 };
  problem->n_entries[problem->n_transfers - 1]++;
}

static void
add_transfer (Problem *problem)
{
  g_assert (problem->n_transfers < MAX_TRANSFERS);
  problem->paths[problem->n_transfers++] = &problem->entries[problem->n_entries_total];
}

static void
solve (Problem *problem)
{
  g_autoptr (PodMaxMin) solver = pod_max_min_new ();

  pod_max_min_solve (solver, problem->capacity, problem->paths, problem->n_entries,
                     problem->n_transfers, problem->rate);
}

/* Two transfers on one link of C = 1000: x0 + x1 = 1000, x0 = x1 = 500. */
START_TEST (test_two_share_one_link)
{
  g_autoptr (Problem) problem = problem_new (1);

  problem->capacity[0] = 1000;
  for (unsigned t = 0; t < 2; t++)
    {
      add_transfer (problem);
      add_entry (problem, 0, ONE);
    }
  solve (problem);
  ck_assert_uint_eq (problem->rate[0], 500);
  ck_assert_uint_eq (problem->rate[1], 500);
}
END_TEST

/* Links A (10) and B (20); t0 on both, t1 on A, t2 on B.
 *   x0 + x1 <= 10, x0 + x2 <= 20. Level of A: 10/2 = 5, of B: 20/2 = 10, so x0 = x1 = 5; then B: x2
 * = 20 - 5 = 15. */
START_TEST (test_line)
{
  g_autoptr (Problem) problem = problem_new (2);

  problem->capacity[0] = 10;
  problem->capacity[1] = 20;
  add_transfer (problem);
  add_entry (problem, 0, ONE);
  add_entry (problem, 1, ONE);
  add_transfer (problem);
  add_entry (problem, 0, ONE);
  add_transfer (problem);
  add_entry (problem, 1, ONE);
  solve (problem);
  ck_assert_uint_eq (problem->rate[0], 5);
  ck_assert_uint_eq (problem->rate[1], 5);
  ck_assert_uint_eq (problem->rate[2], 15);
}
END_TEST

/* One link of 12, shares 1 and 2: x + 2x = 12, x = 4 for both: fair in the rate of the transfer,
 * not in that on the link. With t1 also on a link of 3 with share 1.5: there x1 = 3/1.5 = 2 < 4, so
 * x1 = 2, and x0 = 12 - 2*2 = 8. */
START_TEST (test_shares)
{
  g_autoptr (Problem) problem = problem_new (2);

  problem->capacity[0] = 12;
  problem->capacity[1] = 3;
  add_transfer (problem);
  add_entry (problem, 0, ONE);
  add_transfer (problem);
  add_entry (problem, 0, 2 * ONE);
  solve (problem);
  ck_assert_uint_eq (problem->rate[0], 4);
  ck_assert_uint_eq (problem->rate[1], 4);
  add_entry (problem, 1, ONE + ONE / 2);
  solve (problem);
  ck_assert_uint_eq (problem->rate[0], 8);
  ck_assert_uint_eq (problem->rate[1], 2);
}
END_TEST

/* Three rounds. A = 6: t0 t1 t2; B = 10: t2 t3; C = 30: t3 t4.
 *   levels 2, 5, 15: x0 = x1 = x2 = 2. B: (10 - 2)/1 = 8, C: 15: x3 = 8. C: 30 - 8 = 22 = x4. */
START_TEST (test_three_rounds)
{
  g_autoptr (Problem) problem = problem_new (3);
  static const uint64_t expected[] = { 2, 2, 2, 8, 22 };

  problem->capacity[0] = 6;
  problem->capacity[1] = 10;
  problem->capacity[2] = 30;
  for (uint32_t t = 0; t < 5; t++)
    {
      add_transfer (problem);
      if (t <= 2)
        add_entry (problem, 0, ONE);
      if (t == 2 || t == 3)
        add_entry (problem, 1, ONE);
      if (t >= 3)
        add_entry (problem, 2, ONE);
    }
  solve (problem);
  for (uint32_t t = 0; t < 5; t++)
    ck_assert_uint_eq (problem->rate[t], expected[t]);
}
END_TEST

/* Links A and B of 11 each: t0 on both, t1 t2 on A, t3 t4 on B. Both have level 11/3 = 3 and are
 * filled together: all 3. One after the other, the second would have (11 - 3)/2 = 4 left for its
 * own two: which, would hang on numbers. */
START_TEST (test_tied_links_are_filled_together)
{
  g_autoptr (Problem) problem = problem_new (2);

  problem->capacity[0] = problem->capacity[1] = 11;
  for (uint32_t t = 0; t < 5; t++)
    {
      add_transfer (problem);
      if (t <= 2)
        add_entry (problem, 0, ONE);
      if (t == 0 || t >= 3)
        add_entry (problem, 1, ONE);
    }
  solve (problem);
  for (uint32_t t = 0; t < 5; t++)
    ck_assert_uint_eq (problem->rate[t], 3);
}
END_TEST

/* Alone: the tightest of 100/1, 100/4 and 30/1 is 25. */
START_TEST (test_alone)
{
  g_autoptr (Problem) problem = problem_new (3);

  problem->capacity[0] = problem->capacity[1] = 100;
  problem->capacity[2] = 30;
  add_transfer (problem);
  add_entry (problem, 0, ONE);
  add_entry (problem, 1, 4 * ONE);
  add_entry (problem, 2, ONE);
  solve (problem);
  ck_assert_uint_eq (problem->rate[0], 25);
}
END_TEST

/* Nobody starves: 5 transfers on a link of 2 get 1 each. And nothing overflows: a capacity of 2^63
 * - 1 under a share of 2^-32 allows 2^95, which is cut to 2^64 - 1; shares of 2^64 - 1 are summed
 * in 128 bits. */
START_TEST (test_extremes)
{
  g_autoptr (Problem) problem = problem_new (3);

  problem->capacity[0] = 2;
  problem->capacity[1] = problem->capacity[2] = INT64_MAX;
  for (uint32_t t = 0; t < 5; t++)
    {
      add_transfer (problem);
      add_entry (problem, 0, ONE);
    }
  for (uint32_t t = 5; t < 7; t++)
    {
      add_transfer (problem);
      add_entry (problem, 1, 1);
    }
  for (uint32_t t = 7; t < 10; t++)
    {
      add_transfer (problem);
      add_entry (problem, 2, UINT64_MAX);
    }
  solve (problem);
  for (uint32_t t = 0; t < 5; t++)
    ck_assert_uint_eq (problem->rate[t], 1);
  for (uint32_t t = 5; t < 7; t++)
    ck_assert_uint_eq (problem->rate[t], UINT64_MAX);
  /* (2^63 - 1) 2^32 / (3 (2^64 - 1)) = 2^31 / 3, less a trifle */
  for (uint32_t t = 7; t < 10; t++)
    ck_assert_uint_eq (problem->rate[t], (UINT64_C (1) << 31) / 3);
}
END_TEST

/* The definition word by word, O(rounds x entries): every level anew in every round. @rate 0: not
 * fixed. */
static void
solve_naively (const Problem *problem, uint64_t *rate)
{
  g_autofree U128 *left = g_new (U128, problem->n_links);
  g_autofree U128 *sum = g_new (U128, problem->n_links);
  g_autofree uint64_t *level = g_new (uint64_t, problem->n_links);
  uint32_t n_fixed = 0;

  memset (rate, 0, problem->n_transfers * sizeof *rate);
  while (n_fixed < problem->n_transfers)
    {
      uint64_t lowest = UINT64_MAX;
      for (uint32_t l = 0; l < problem->n_links; l++)
        {
          left[l] = (U128) problem->capacity[l] << 32;
          sum[l] = 0;
        }
      for (uint32_t t = 0; t < problem->n_transfers; t++)
        for (uint32_t i = 0; i < problem->n_entries[t]; i++)
          {
            const PodPathEntry *entry = &problem->paths[t][i];
            left[entry->link] -= (U128) entry->share_q32 * rate[t];
            sum[entry->link] += rate[t] == 0 ? entry->share_q32 : 0;
          }
      for (uint32_t l = 0; l < problem->n_links; l++)
        if (sum[l] > 0)
          {
            level[l] = (uint64_t) (left[l] / sum[l]);
            lowest = MIN (lowest, level[l]);
          }
      for (uint32_t t = 0; t < problem->n_transfers; t++)
        for (uint32_t i = 0; rate[t] == 0 && i < problem->n_entries[t]; i++)
          if (level[problem->paths[t][i].link] == lowest)
            {
              rate[t] = lowest;
              n_fixed++;
            }
      /* sum is of the round's start, so a link of a higher level stays out */
    }
}

/* The same in floating point, without rounding down: what the integers approximate. Bottleneck
 * links one at a time. */
static void
solve_in_doubles (const Problem *problem, double *rate)
{
  g_autofree double *left = g_new (double, problem->n_links);
  g_autofree double *sum = g_new (double, problem->n_links);

  for (uint32_t t = 0; t < problem->n_transfers; t++)
    rate[t] = -1;
  for (;;)
    {
      double lowest = INFINITY;
      uint32_t tightest = 0;
      for (uint32_t l = 0; l < problem->n_links; l++)
        {
          left[l] = (double) problem->capacity[l];
          sum[l] = 0;
        }
      for (uint32_t t = 0; t < problem->n_transfers; t++)
        for (uint32_t i = 0; i < problem->n_entries[t]; i++)
          {
            const PodPathEntry *entry = &problem->paths[t][i];
            double share = (double) entry->share_q32 / (double) ONE;
            left[entry->link] -= rate[t] < 0 ? 0 : share * rate[t];
            sum[entry->link] += rate[t] < 0 ? share : 0;
          }
      for (uint32_t l = 0; l < problem->n_links; l++)
        if (sum[l] > 0 && left[l] / sum[l] < lowest)
          {
            lowest = left[l] / sum[l];
            tightest = l;
          }
      if (lowest == INFINITY)
        return;
      for (uint32_t t = 0; t < problem->n_transfers; t++)
        for (uint32_t i = 0; rate[t] < 0 && i < problem->n_entries[t]; i++)
          if (problem->paths[t][i].link == tightest)
            rate[t] = lowest;
    }
}

/* Up to @n_links links of a few or many capacities, transfers of 1 to 8 links, shares from 1/8
 * to 4. */
static Problem *
random_problem (uint64_t *random, uint32_t n_links, uint32_t n_transfers)
{
  Problem *problem = problem_new (n_links);
  bool is_symmetric = random_below (random, 2) == 0;
  g_autofree bool *is_used = g_new0 (bool, n_links);

  for (uint32_t l = 0; l < n_links; l++)
    problem->capacity[l]
        = is_symmetric ? UINT64_C (1000000000) << (8 + random_below (random, 2))
                       : UINT64_C (1000000000) + next_random (random) % (UINT64_C (1) << 40);
  for (uint32_t t = 0; t < n_transfers; t++)
    {
      uint32_t n = 1 + random_below (random, MIN (8, n_links));
      add_transfer (problem);
      memset (is_used, 0, n_links * sizeof *is_used);
      for (uint32_t i = 0; i < n; i++)
        {
          uint32_t link = random_below (random, n_links);
          if (is_used[link])
            continue;
          is_used[link] = true;
          add_entry (problem, link,
                     is_symmetric ? ONE >> random_below (random, 3)
                                  : ONE / 8 + next_random (random) % (4 * ONE));
        }
    }
  return problem;
}

/* Within capacity, exactly; and every transfer has a link that is full but for what rounding down
 * leaves (less than the sum of its shares), on which nobody is faster: that is what max-min fair
 * means. */
static void
assert_is_max_min (const Problem *problem)
{
  g_autofree U128 *used = g_new0 (U128, problem->n_links);
  g_autofree U128 *sum = g_new0 (U128, problem->n_links);
  g_autofree uint64_t *fastest = g_new0 (uint64_t, problem->n_links);

  for (uint32_t t = 0; t < problem->n_transfers; t++)
    for (uint32_t i = 0; i < problem->n_entries[t]; i++)
      {
        const PodPathEntry *entry = &problem->paths[t][i];
        used[entry->link] += (U128) entry->share_q32 * problem->rate[t];
        sum[entry->link] += entry->share_q32;
        fastest[entry->link] = MAX (fastest[entry->link], problem->rate[t]);
      }
  for (uint32_t l = 0; l < problem->n_links; l++)
    ck_assert (used[l] <= (U128) problem->capacity[l] << 32);
  for (uint32_t t = 0; t < problem->n_transfers; t++)
    {
      bool has_bottleneck = false;
      for (uint32_t i = 0; i < problem->n_entries[t]; i++)
        {
          uint32_t link = problem->paths[t][i].link;
          U128 left = ((U128) problem->capacity[link] << 32) - used[link];
          has_bottleneck
              = has_bottleneck || (left < sum[link] && fastest[link] == problem->rate[t]);
        }
      ck_assert (has_bottleneck);
    }
}

START_TEST (test_random_against_naive)
{
  uint64_t random = 1;
  g_autoptr (PodMaxMin) solver = pod_max_min_new ();
  uint64_t naive[MAX_TRANSFERS];
  double real[MAX_TRANSFERS];

  for (unsigned run = 0; run < 400; run++)
    {
      uint32_t n_links = 1 + random_below (&random, 40),
               n_transfers = 1 + random_below (&random, 60);
      g_autoptr (Problem) problem = random_problem (&random, n_links, n_transfers);
      /* One solver for all: what a call leaves behind must not show in the next */
      pod_max_min_solve (solver, problem->capacity, problem->paths, problem->n_entries, n_transfers,
                         problem->rate);
      assert_is_max_min (problem);
      solve_naively (problem, naive);
      solve_in_doubles (problem, real);
      ck_assert (memcmp (naive, problem->rate, n_transfers * sizeof *naive) == 0);
      for (uint32_t t = 0; t < n_transfers; t++)
        ck_assert_double_le (fabs ((double) naive[t] - real[t]), 1e-6 * real[t]);
    }
}
END_TEST

/* Many distinct levels: the passes give way to the heap. */
START_TEST (test_large_random)
{
  uint64_t random = 2;

  for (unsigned run = 0; run < 6; run++)
    {
      g_autoptr (Problem) problem = random_problem (&random, 1000, run < 3 ? 3000 : 600);
      g_autofree uint64_t *naive = g_new (uint64_t, problem->n_transfers);
      solve (problem);
      assert_is_max_min (problem);
      solve_naively (problem, naive);
      ck_assert (memcmp (naive, problem->rate, problem->n_transfers * sizeof *naive) == 0);
    }
}
END_TEST

/* Many levels, and capacities of some hundred units, so that levels tie and what rounding down
 * leaves is not small: the heap must fill ties together, as the passes do. */
START_TEST (test_large_with_ties)
{
  uint64_t random = 6;

  for (unsigned run = 0; run < 4; run++)
    {
      g_autoptr (Problem) problem = problem_new (1000);
      g_autofree uint64_t *naive = g_new (uint64_t, 1200);
      for (uint32_t l = 0; l < 1000; l++)
        problem->capacity[l] = 100 + random_below (&random, 200);
      for (uint32_t t = 0; t < 1200; t++)
        {
          uint32_t link = random_below (&random, 1000);
          add_transfer (problem);
          for (uint32_t i = 0; i < 1 + t % 3; i++)
            add_entry (problem, (link + i * 317) % 1000, ONE + ONE / 4 * random_below (&random, 4));
        }
      solve (problem);
      solve_naively (problem, naive);
      ck_assert (memcmp (naive, problem->rate, problem->n_transfers * sizeof *naive) == 0);
    }
}
END_TEST

/* k transfers of share s on a link take what one of share k*s takes, to the bit. Unfolded, each
 * transfer of the folded problem stands k times. Of its links, some exist once and carry all copies
 * (folded share k*s); the others exist k times, and copy i is on copy (i + shift) mod k, as rings
 * that are neighbours in a torus. */
START_TEST (test_folded_is_unfolded)
{
  uint64_t random = 3;

  for (unsigned run = 0; run < 200; run++)
    {
      uint32_t n_links = 1 + random_below (&random, 20), k = 1 + random_below (&random, 12);
      g_autoptr (Problem) base = random_problem (&random, n_links, 1 + random_below (&random, 20));
      g_autoptr (Problem) folded = problem_new (n_links);
      g_autoptr (Problem) unfolded = problem_new (n_links * k);
      bool is_common[20];

      for (uint32_t l = 0; l < n_links; l++)
        {
          is_common[l] = random_below (&random, 3) == 0;
          folded->capacity[l] = base->capacity[l];
          for (uint32_t i = 0; i < k; i++)
            unfolded->capacity[l * k + i] = base->capacity[l];
        }
      for (uint32_t t = 0; t < base->n_transfers; t++)
        {
          uint32_t shifts[8];
          add_transfer (folded);
          for (uint32_t j = 0; j < base->n_entries[t]; j++)
            {
              const PodPathEntry *entry = &base->paths[t][j];
              add_entry (folded, entry->link,
                         is_common[entry->link] ? k * entry->share_q32 : entry->share_q32);
              shifts[j] = random_below (&random, k);
            }
          for (uint32_t i = 0; i < k; i++)
            {
              add_transfer (unfolded);
              for (uint32_t j = 0; j < base->n_entries[t]; j++)
                {
                  const PodPathEntry *entry = &base->paths[t][j];
                  uint32_t copy = is_common[entry->link] ? 0 : (i + shifts[j]) % k;
                  add_entry (unfolded, entry->link * k + copy, entry->share_q32);
                }
            }
        }
      solve (folded);
      solve (unfolded);
      for (uint32_t t = 0; t < unfolded->n_transfers; t++)
        ck_assert_uint_eq (unfolded->rate[t], folded->rate[t / k]);
    }
}
END_TEST

static void
shuffle (uint64_t *random, uint32_t *items, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    items[i] = i;
  for (uint32_t i = n; i > 1; i--)
    {
      uint32_t j = random_below (random, i);
      uint32_t item = items[i - 1];
      items[i - 1] = items[j];
      items[j] = item;
    }
}

/* Other numbers for links, another order of transfers and of the entries of a path: the same rates.
 */
START_TEST (test_permutation)
{
  uint64_t random = 4;

  for (unsigned run = 0; run < 200; run++)
    {
      uint32_t n_links = 1 + random_below (&random, 60),
               n_transfers = 1 + random_below (&random, 60);
      g_autoptr (Problem) problem = random_problem (&random, n_links, n_transfers);
      g_autoptr (Problem) permuted = problem_new (n_links);
      uint32_t link_of[60], transfer_of[60];

      shuffle (&random, link_of, n_links);
      shuffle (&random, transfer_of, n_transfers);
      for (uint32_t l = 0; l < n_links; l++)
        permuted->capacity[link_of[l]] = problem->capacity[l];
      for (uint32_t i = 0; i < n_transfers; i++)
        {
          uint32_t entry_of[8], t = transfer_of[i];
          add_transfer (permuted);
          shuffle (&random, entry_of, problem->n_entries[t]);
          for (uint32_t j = 0; j < problem->n_entries[t]; j++)
            {
              const PodPathEntry *entry = &problem->paths[t][entry_of[j]];
              add_entry (permuted, link_of[entry->link], entry->share_q32);
            }
        }
      solve (problem);
      solve (permuted);
      for (uint32_t i = 0; i < n_transfers; i++)
        ck_assert_uint_eq (permuted->rate[i], problem->rate[transfer_of[i]]);
    }
}
END_TEST

/* More capacity everywhere by a whole factor: exactly that factor, but for what rounding down had
 * left. */
START_TEST (test_scales_with_capacity)
{
  uint64_t random = 5;

  for (unsigned run = 0; run < 100; run++)
    {
      g_autoptr (Problem) problem = random_problem (&random, 20, 30);
      g_autofree uint64_t *before = g_new (uint64_t, problem->n_transfers);
      solve (problem);
      memcpy (before, problem->rate, problem->n_transfers * sizeof *before);
      for (uint32_t l = 0; l < problem->n_links; l++)
        problem->capacity[l] *= 4;
      solve (problem);
      for (uint32_t t = 0; t < problem->n_transfers; t++)
        ck_assert_double_le (fabs ((double) problem->rate[t] / (double) before[t] - 4), 1e-6);
    }
}
END_TEST

static Suite *
max_min_suite (void)
{
  Suite *suite = suite_create ("max-min");
  TCase *tests = tcase_create ("max-min");

  tcase_set_timeout (tests, 60);
  tcase_add_test (tests, test_two_share_one_link);
  tcase_add_test (tests, test_line);
  tcase_add_test (tests, test_shares);
  tcase_add_test (tests, test_three_rounds);
  tcase_add_test (tests, test_tied_links_are_filled_together);
  tcase_add_test (tests, test_alone);
  tcase_add_test (tests, test_extremes);
  tcase_add_test (tests, test_random_against_naive);
  tcase_add_test (tests, test_large_random);
  tcase_add_test (tests, test_large_with_ties);
  tcase_add_test (tests, test_folded_is_unfolded);
  tcase_add_test (tests, test_permutation);
  tcase_add_test (tests, test_scales_with_capacity);
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (max_min_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
