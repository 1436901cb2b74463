#include <math.h>
#include <stdlib.h>

#include <check.h>

#include "base/error.h"
#include "collective/plan-private.h"

/* A list of the devices 0 .. n-1. */
static PodGroup
list_of (uint32_t n)
{
  static uint32_t devices[64];

  for (uint32_t i = 0; i < 64; i++)
    devices[i] = i;
  return (PodGroup){ .n_devices = n, .devices = devices };
}

static PodTopology *
load (const char *text)
{
  g_autoptr (GError) error = NULL;
  PodTopology *topology = pod_topology_load (text, &error);

  ck_assert_msg (topology != NULL, "%s: %s", text, error == NULL ? "?" : error->message);
  return topology;
}

static void
assert_refused (const PodTopology *topology, const PodGroup *group, PodCollectiveKind kind,
                const char *algorithm, PodErrorCode code, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodPlan) plan
      = pod_collective_plan (topology, POD_FIDELITY_IDEAL, group, kind, 1000, algorithm, &error);

  ck_assert_ptr_null (plan);
  ck_assert_ptr_nonnull (error);
  ck_assert_msg (g_error_matches (error, POD_ERROR, (gint) code), "code %d: %s", error->code,
                 error->message);
  ck_assert_msg (strstr (error->message, part) != NULL, "'%s' lacks '%s'", error->message, part);
}

START_TEST (names_round_trip)
{
  for (unsigned i = 0; i < POD_N_COLLECTIVES; i++)
    {
      PodCollectiveKind kind;

      ck_assert (pod_collective_parse (pod_collective_name ((PodCollectiveKind) i), &kind, NULL));
      ck_assert_uint_eq (kind, i);
    }
}
END_TEST

START_TEST (unknown_names_are_refused)
{
  g_autoptr (GError) error = NULL;
  PodCollectiveKind kind;

  ck_assert (!pod_collective_parse ("allgather", &kind, &error));
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_INVALID));
  ck_assert_ptr_nonnull (strstr (error->message, "'allgather', expected all_gather"));
  ck_assert (!pod_collective_parse (NULL, &kind, NULL));
}
END_TEST

/* nccl-tests on 8 ranks: all-reduce 2*7/8, the exchanges 7/8, the rest 1 */
START_TEST (bus_factors)
{
  static const double expected[POD_N_COLLECTIVES] = {
    [POD_ALL_GATHER] = 0.875, [POD_REDUCE_SCATTER] = 0.875,
    [POD_ALL_REDUCE] = 1.75,  [POD_ALL_TO_ALL] = 0.875,
    [POD_BROADCAST] = 1,      [POD_REDUCE] = 1,
    [POD_SEND] = 1,           [POD_PERMUTE] = 1,
  };

  for (unsigned i = 0; i < POD_N_COLLECTIVES; i++)
    {
      ck_assert_double_eq (pod_collective_bus_factor ((PodCollectiveKind) i, 8), expected[i]);
      ck_assert_double_eq (pod_collective_bus_factor ((PodCollectiveKind) i, 1), 1);
    }
  /* 4 ranks gather 100 MB in 1 ms: 75 GB/s */
  ck_assert_double_eq (100e6 / 1e-3 * pod_collective_bus_factor (POD_ALL_GATHER, 4), 75e9);
}
END_TEST

START_TEST (a_group_of_one_moves_nothing)
{
  g_autoptr (PodTopology) topology = load ("h100:8");
  PodGroup group = list_of (1);

  for (unsigned kind = 0; kind < POD_N_COLLECTIVES; kind++)
    for (unsigned fidelity = POD_FIDELITY_BOOK; fidelity <= POD_FIDELITY_CALIBRATED; fidelity++)
      {
        g_autoptr (PodPlan) plan = pod_collective_plan (topology, (PodFidelity) fidelity, &group,
                                                        (PodCollectiveKind) kind, 1000, NULL, NULL);

        ck_assert_str_eq (plan->algorithm, "none");
        ck_assert_uint_eq (plan->n_entries, 0);
        ck_assert_int_eq (plan->latency_ps, 0);
        ck_assert_double_eq (pod_plan_time (topology, (PodFidelity) fidelity, plan, 1000), 0);
      }
}
END_TEST

START_TEST (zero_bytes_take_the_latency)
{
  g_autoptr (PodTopology) topology = load ("h100:8");
  PodGroup group = list_of (8);
  g_autoptr (PodPlan) plan = pod_collective_plan (topology, POD_FIDELITY_CALIBRATED, &group,
                                                  POD_ALL_GATHER, 0, NULL, NULL);

  ck_assert_ptr_nonnull (plan);
  ck_assert_int_gt (plan->latency_ps, 0);
  ck_assert_double_eq (pod_plan_time (topology, POD_FIDELITY_CALIBRATED, plan, 0),
                       (double) plan->latency_ps * 1e-12);
}
END_TEST

START_TEST (calibrated_adds_the_launch)
{
  g_autoptr (PodTopology) topology = load ("h100:8");
  PodGroup group = list_of (8);
  g_autoptr (PodPlan) ideal
      = pod_collective_plan (topology, POD_FIDELITY_IDEAL, &group, POD_ALL_GATHER, 0, "ring", NULL);
  g_autoptr (PodPlan) calibrated = pod_collective_plan (topology, POD_FIDELITY_CALIBRATED, &group,
                                                        POD_ALL_GATHER, 0, "ring", NULL);

  ck_assert_int_eq (calibrated->latency_ps - ideal->latency_ps,
                    llround (topology->chip->collective_launch_s * 1e12));
}
END_TEST

START_TEST (bad_groups_and_algorithms_are_refused)
{
  g_autoptr (PodTopology) gpus = load ("h100:8");
  g_autoptr (PodTopology) torus = load ("tpu-v5p:4x4x4");
  PodGroup eight = list_of (8), nine = list_of (9);
  PodGroup ring
      = { .n_devices = 4, .devices = eight.devices, .n_factors = 1, .factors = { { 0, 1, 4 } } };
  PodGroup long_ring
      = { .n_devices = 5, .devices = eight.devices, .n_factors = 1, .factors = { { 0, 1, 5 } } };
  PodGroup short_ring
      = { .n_devices = 3, .devices = eight.devices, .n_factors = 1, .factors = { { 0, 1, 4 } } };
  PodGroup wrong_axis
      = { .n_devices = 4, .devices = eight.devices, .n_factors = 1, .factors = { { 1, 1, 4 } } };

  assert_refused (gpus, &eight, POD_ALL_REDUCE, "rong", POD_ERROR_UNSUPPORTED,
                  "unknown algorithm 'rong', expected");
  assert_refused (torus, &ring, POD_ALL_REDUCE, "nvls", POD_ERROR_UNSUPPORTED,
                  "these can: auto, bidir-ring");
  assert_refused (gpus, &eight, POD_ALL_GATHER, "double-tree", POD_ERROR_UNSUPPORTED,
                  "cannot do all_gather");
  assert_refused (gpus, &nine, POD_ALL_GATHER, NULL, POD_ERROR_INVALID,
                  "0 to 7, the group names 8");
  assert_refused (gpus, &eight, POD_SEND, NULL, POD_ERROR_INVALID, "p2p takes 2 devices, got 8");
  assert_refused (torus, &long_ring, POD_ALL_GATHER, NULL, POD_ERROR_INFEASIBLE, "axis x of 4");
  assert_refused (torus, &short_ring, POD_ALL_GATHER, NULL, POD_ERROR_INVALID, "factors make 4");
  /* The list says x neighbours, the factor y */
  assert_refused (torus, &wrong_axis, POD_ALL_GATHER, NULL, POD_ERROR_INVALID, "its list has");
}
END_TEST

/* The plan of "auto" is never dearer than that of a name, those apart that no library or no switch
 * does unless told so */
static bool
is_by_name (const char *algorithm)
{
  static const char *const names[]
      = { "recursive-doubling", "halving-doubling", "step-ring", "sharp", NULL };

  return g_strv_contains (names, algorithm);
}

START_TEST (auto_is_the_cheapest)
{
  static const char *const machines[] = { "h100:8", "h100:8x4" };
  static const uint64_t sizes[] = { 0, 1000, 1000000, UINT64_C (10000000000) };
  g_autoptr (GPtrArray) names = pod_collective_algorithms ();

  for (unsigned m = 0; m < G_N_ELEMENTS (machines); m++)
    for (unsigned kind = 0; kind < POD_SEND; kind++)
      for (unsigned s = 0; s < G_N_ELEMENTS (sizes); s++)
        {
          g_autoptr (PodTopology) topology = load (machines[m]);
          PodGroup group = list_of (topology->n_devices);
          g_autoptr (PodPlan) best
              = pod_collective_plan (topology, POD_FIDELITY_IDEAL, &group, (PodCollectiveKind) kind,
                                     sizes[s], "auto", NULL);
          double best_s = pod_plan_time (topology, POD_FIDELITY_IDEAL, best, sizes[s]);

          for (guint i = 0; i < names->len; i++)
            {
              if (is_by_name (g_ptr_array_index (names, i)))
                continue;
              g_autoptr (PodPlan) plan = pod_collective_plan (topology, POD_FIDELITY_IDEAL, &group,
                                                              (PodCollectiveKind) kind, sizes[s],
                                                              g_ptr_array_index (names, i), NULL);

              if (plan != NULL)
                ck_assert_double_le (best_s,
                                     pod_plan_time (topology, POD_FIDELITY_IDEAL, plan, sizes[s])
                                         * (1 + 1e-8));
            }
        }
}
END_TEST

/* The book knows in-switch reduction only where it says so */
START_TEST (the_book_takes_no_nvls_by_itself)
{
  g_autoptr (PodTopology) topology = load ("h100:8");
  PodGroup group = list_of (8);
  g_autoptr (PodPlan) by_itself = pod_collective_plan (topology, POD_FIDELITY_BOOK, &group,
                                                       POD_ALL_REDUCE, 1000000000, NULL, NULL);
  g_autoptr (PodPlan) named = pod_collective_plan (topology, POD_FIDELITY_BOOK, &group,
                                                   POD_ALL_REDUCE, 1000000000, "nvls", NULL);

  ck_assert_str_eq (by_itself->algorithm, "ring");
  ck_assert_str_eq (named->algorithm, "nvls");
  ck_assert_double_eq_tol (pod_plan_time (topology, POD_FIDELITY_BOOK, by_itself, 1000000000),
                           2e9 / 450e9, 1e-9);
  ck_assert_double_eq_tol (pod_plan_time (topology, POD_FIDELITY_BOOK, named, 1000000000),
                           1e9 / 450e9, 1e-9);
}
END_TEST

START_TEST (loads_merge_by_link)
{
  g_auto (PodLinkLoads) loads = { 0 };

  pod_link_loads_init (&loads, 1);
  for (uint32_t round = 0; round < 3; round++)
    for (uint32_t link = 0; link < 1000; link++)
      pod_link_loads_add (&loads, link * 64, link);
  ck_assert_uint_eq (loads.n, 1000);
  for (uint32_t i = 0; i < 1000; i++)
    {
      ck_assert_uint_eq (loads.links[i], (uintmax_t) i * 64);
      ck_assert_double_eq (loads.bytes[i], 3.0 * i);
    }
}
END_TEST

/* Rows 4 w0 + w1 and w0 + 2 w1 with w0 + w1 = 1: equal at w0 = 1/4, value 7/4. A dear third column
 * is left out. */
START_TEST (split_balances_rows)
{
  double cost[POD_MAX_FACTORS][POD_MAX_FACTORS] = { { 4, 1, 9 }, { 1, 2, 9 } };
  double weights[3];

  ck_assert_double_eq_tol (pod_split_minimax (2, 3, cost, weights), 1.75, 1e-12);
  ck_assert_double_eq_tol (weights[0], 0.25, 1e-12);
  ck_assert_double_eq_tol (weights[1], 0.75, 1e-12);
  ck_assert_double_eq_tol (weights[2], 0, 1e-12);
}
END_TEST

/* Rows 3 w0 + 2 w1 and w0 + w1: the balance would need a negative weight, so one order alone: w1 =
 * 1, value 2 */
START_TEST (split_falls_back_to_one_order)
{
  double cost[POD_MAX_FACTORS][POD_MAX_FACTORS] = { { 3, 2 }, { 1, 1 } };
  double weights[2];

  ck_assert_double_eq_tol (pod_split_minimax (2, 2, cost, weights), 2, 1e-12);
  ck_assert_double_eq_tol (weights[1], 1, 1e-12);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("collective");
  TCase *tcase = tcase_create ("collective");
  SRunner *runner = srunner_create (suite);
  int n_failed;

  suite_add_tcase (suite, tcase);
  tcase_add_test (tcase, names_round_trip);
  tcase_add_test (tcase, unknown_names_are_refused);
  tcase_add_test (tcase, bus_factors);
  tcase_add_test (tcase, a_group_of_one_moves_nothing);
  tcase_add_test (tcase, zero_bytes_take_the_latency);
  tcase_add_test (tcase, calibrated_adds_the_launch);
  tcase_add_test (tcase, bad_groups_and_algorithms_are_refused);
  tcase_add_test (tcase, auto_is_the_cheapest);
  tcase_add_test (tcase, the_book_takes_no_nvls_by_itself);
  tcase_add_test (tcase, loads_merge_by_link);
  tcase_add_test (tcase, split_balances_rows);
  tcase_add_test (tcase, split_falls_back_to_one_order);
  srunner_run_all (runner, CK_NORMAL);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
