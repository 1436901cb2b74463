#include <check.h>
#include <stdlib.h>

#include "support/plan-case.h"

/* Recursive algorithms, step-ring, borrowed axes, matrices and folded plans against values worked
 * by hand. Payload 1 GB. */

static const PodGroupFactor xyz[] = { { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } };

/* Bytes that leave and reach each member over its port, per payload byte, where none is left over.
 */
START_TEST (recursive_algorithms_move_what_they_must)
{
  static const struct
  {
    const char *algorithm;
    PodCollectiveKind kind;
    uint32_t n;
    double bytes; /* of every member */
  } rows[] = {
    { "recursive-doubling", POD_ALL_REDUCE, 8, 3 },
    { "recursive-doubling", POD_ALL_GATHER, 8, 7.0 / 8 },
    { "halving-doubling", POD_ALL_REDUCE, 8, 2 * 7.0 / 8 },
    { "halving-doubling", POD_ALL_GATHER, 4, 3.0 / 4 },
    { "halving-doubling", POD_REDUCE_SCATTER, 8, 7.0 / 8 },
  };

  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_auto (PlanCase) c = { 0 };

      plan_case_start (&c, "h100:8");
      plan_case_take_list (&c, rows[i].n, NULL);
      plan_case_plan (&c, rows[i].kind, rows[i].algorithm);
      plan_case_assert_all (&c, 2 * rows[i].n, rows[i].bytes);
      ck_assert_int_eq (c.plan->phases, POD_PHASES_SEQUENTIAL);
    }
}
END_TEST

/* Any number of ranks: what arrives at each member is at least what it needs. */
START_TEST (recursive_algorithms_serve_everyone)
{
  for (uint32_t n = 2; n <= 8; n++)
    {
      g_auto (PlanCase) gather = { 0 };
      g_auto (PlanCase) reduce = { 0 };

      plan_case_start (&gather, "h100:8");
      plan_case_take_list (&gather, n, NULL);
      plan_case_plan (&gather, POD_ALL_GATHER, "halving-doubling");
      plan_case_assert_conserved (&gather, (n - 1.0) / n);
      plan_case_start (&reduce, "h100:8");
      plan_case_take_list (&reduce, n, NULL);
      plan_case_plan (&reduce, POD_ALL_REDUCE, "recursive-doubling");
      plan_case_assert_conserved (&reduce, 1);
    }
}
END_TEST

/* One direction only: V (n-1)/n on x, then 1/n of it on y, and so on. */
START_TEST (step_ring_goes_one_way)
{
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "tpu-v5p:4x4x8");
  plan_case_take_factors (&c, 3, xyz);
  plan_case_plan (&c, POD_REDUCE_SCATTER, "step-ring");
  assert_near (plan_case_ici_bytes (&c, 0, 0, +1), 3.0 / 4);
  assert_near (plan_case_ici_bytes (&c, 5, 1, +1), 3.0 / 16);
  assert_near (plan_case_ici_bytes (&c, 9, 2, +1), 7.0 / 128);
  assert_near (plan_case_ici_bytes (&c, 0, 0, -1), 0);
  ck_assert_uint_eq (c.plan->n_steps, 3 + 3 + 7);
}
END_TEST

static double
time_of (const PodPlanQuery *query)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodPlan) plan = pod_collective_plan_query (query, &error);

  ck_assert_msg (plan != NULL, "%s", error != NULL ? error->message : "");
  return pod_plan_time (query->topology, query->fidelity, plan, query->payload_bytes);
}

static PodPlanQuery
query_of (const PlanCase *c, PodCollectiveKind kind, const char *algorithm)
{
  return (PodPlanQuery){ .topology = c->topology,
                         .fidelity = POD_FIDELITY_IDEAL,
                         .group = &c->group,
                         .kind = kind,
                         .dtype = POD_DTYPE_BF16,
                         .payload_bytes = 1000000000,
                         .algorithm = algorithm };
}

/* 8 ranks of 100 GB/s and 1 us: 14 messages of 125 MB take 1251 us each, 10 ns at each end; 7 of
 * them are added, 3 passes of 125 MB at 1 TB/s: 14 x 1251.01 + 7 x 375 + 0.01 us. */
START_TEST (step_law_counts_endpoints_and_memory)
{
  const PodStepLaw law = { .endpoint_s = 10e-9, .local_bytes_per_s = 1e12 };
  g_auto (PlanCase) c = { 0 };
  PodPlanQuery query;

  plan_case_start (&c, "tpu-v5p:8,unchecked,wrap=x");
  plan_case_take_factors (&c, 1, &(PodGroupFactor){ 0, 1, 8 });
  query = query_of (&c, POD_ALL_REDUCE, "step-ring");
  query.steps = &law;
  ck_assert_double_eq_tol (time_of (&query), (14 * 1251.01 + 7 * 375 + 0.01) * 1e-6, 1e-12);
}
END_TEST

/* Pipelined phases are never slower than sequential ones; a single phase is the same in both. */
START_TEST (phases_add_up)
{
  static const char *const machines[] = { "tpu-v5p:4x4x8", "tpu-v5p:4x4x8*2", "h100:8x4" };

  for (size_t m = 0; m < G_N_ELEMENTS (machines); m++)
    for (PodCollectiveKind kind = POD_ALL_GATHER; kind <= POD_ALL_TO_ALL; kind++)
      {
        g_auto (PlanCase) c = { 0 };
        PodPlanQuery query;
        double pipelined_s;

        plan_case_start (&c, machines[m]);
        if (c.topology->fabric == POD_FABRIC_TORUS)
          plan_case_take_factors (&c, 3, xyz);
        else
          plan_case_take_list (&c, c.topology->n_devices, NULL);
        query = query_of (&c, kind, NULL);
        pipelined_s = time_of (&query);
        query.phases = POD_PHASES_SEQUENTIAL;
        ck_assert_double_ge (time_of (&query), pipelined_s * (1 - 1e-9));
      }
}
END_TEST

/* By symmetry the links of one chip stand for all. */
START_TEST (folded_plans_take_as_long)
{
  for (PodCollectiveKind kind = POD_ALL_GATHER; kind <= POD_ALL_TO_ALL; kind++)
    {
      g_auto (PlanCase) c = { 0 };
      PodPlanQuery query;
      double unfolded_s;
      g_autoptr (PodPlan) plan = NULL;

      plan_case_start (&c, "tpu-v5p:4x4x8");
      plan_case_take_factors (&c, 3, xyz);
      query = query_of (&c, kind, NULL);
      unfolded_s = time_of (&query);
      query.is_folded = true;
      plan = pod_collective_plan_query (&query, NULL);
      ck_assert_uint_eq (plan->n_entries, 6);
      ck_assert_double_eq (
          pod_plan_time (c.topology, POD_FIDELITY_IDEAL, plan, query.payload_bytes), unfolded_s);
    }
}
END_TEST

/* A matrix of equal parts is the dense all-to-all, which counts the latency of neighbours only. */
START_TEST (even_matrices_are_dense)
{
  static const char *const machines[]
      = { "h100:8", "h100:4x2,unchecked", "h100:2x4,rails=2,unit=4,tree=2" };

  for (size_t m = 0; m < G_N_ELEMENTS (machines); m++)
    {
      g_auto (PlanCase) c = { 0 };
      double shares[64];
      const PodTrafficMatrix traffic = { .n = 8, .shares = shares };
      PodPlanQuery query;
      double dense_s;

      for (size_t i = 0; i < G_N_ELEMENTS (shares); i++)
        shares[i] = 1.0 / 8;
      plan_case_start (&c, machines[m]);
      plan_case_take_list (&c, 8, NULL);
      query = query_of (&c, POD_ALL_TO_ALL, "direct");
      dense_s = time_of (&query);
      query.traffic = &traffic;
      ck_assert_double_eq_tol (time_of (&query), dense_s, 1e-4 * dense_s);
    }
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("plans: steps");
  TCase *tcase = tcase_create ("steps");
  SRunner *runner;
  int n_failed;

  tcase_add_test (tcase, recursive_algorithms_move_what_they_must);
  tcase_add_test (tcase, recursive_algorithms_serve_everyone);
  tcase_add_test (tcase, step_ring_goes_one_way);
  tcase_add_test (tcase, step_law_counts_endpoints_and_memory);
  tcase_add_test (tcase, phases_add_up);
  tcase_add_test (tcase, folded_plans_take_as_long);
  tcase_add_test (tcase, even_matrices_are_dense);
  suite_add_tcase (suite, tcase);
  runner = srunner_create (suite);
  srunner_run_all (runner, CK_ENV);
  n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
