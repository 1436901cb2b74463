#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "support/plan-case.h"

/* Plans on switched machines and lists against equations worked by hand. V = 1, n ranks, k of them
 * in a node. */

/* -- switched machines --------------------------------------------------------------------------
 */

static void
assert_ports (const PlanCase *c, double expected)
{
  for (uint32_t i = 0; i < c->group.n_devices; i++)
    {
      uint32_t up, down;

      ck_assert (pod_topology_port_links (c->topology, c->devices[i], &up, &down));
      assert_near (c->bytes[up], expected);
      assert_near (c->bytes[down], expected);
    }
}

static void
assert_nics (const PlanCase *c, double expected)
{
  for (uint32_t i = 0; i < c->group.n_devices; i++)
    {
      uint32_t up, down;

      ck_assert (pod_topology_nic_links (c->topology, c->devices[i], &up, &down));
      assert_near (c->bytes[up], expected);
      assert_near (c->bytes[down], expected);
    }
}

/* 8 GPUs: V*7/8 through each port each way; ring 7 steps, direct 1. */
START_TEST (one_node)
{
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "h100:8");
  plan_case_take_list (&c, 8, NULL);
  plan_case_plan (&c, POD_ALL_GATHER, "ring");
  assert_ports (&c, 7.0 / 8);
  ck_assert_int_eq (c.plan->latency_ps, 7 * c.topology->chip->scale_up_hop_ps);
  plan_case_plan (&c, POD_REDUCE_SCATTER, "direct");
  assert_ports (&c, 7.0 / 8);
  ck_assert_int_eq (c.plan->latency_ps, c.topology->chip->scale_up_hop_ps);
  plan_case_plan (&c, POD_ALL_REDUCE, "ring");
  assert_ports (&c, 14.0 / 8);
  plan_case_plan (&c, POD_ALL_TO_ALL, NULL);
  assert_ports (&c, 7.0 / 8);
  plan_case_plan (&c, POD_BROADCAST, NULL);
  assert_ports (&c, 1);
}
END_TEST

/* In-switch reduction on 8: V + V/8 each way; less than 14/8. On 2 GPUs 3/2 is more than 1: the
 * ring wins. */
START_TEST (nvls)
{
  g_auto (PlanCase) c = { 0 };
  g_auto (PlanCase) two = { 0 };

  plan_case_start (&c, "h100:8");
  plan_case_take_list (&c, 8, NULL);
  plan_case_plan (&c, POD_ALL_REDUCE, NULL);
  ck_assert_str_eq (c.plan->algorithm, "nvls");
  assert_ports (&c, 9.0 / 8);
  plan_case_start (&two, "h100:8");
  plan_case_take_list (&two, 2, NULL);
  plan_case_plan (&two, POD_ALL_REDUCE, NULL);
  ck_assert_str_ne (two.plan->algorithm, "nvls");
  assert_ports (&two, 1);
}
END_TEST

/* 2 nodes of 8: a NIC gathers V/8 * 1/2, a port V*7/8; the flat ring V/8 * 15/16 and 15/16 * 7/8.
 */
START_TEST (two_nodes)
{
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "h100:8x2");
  plan_case_take_list (&c, 16, NULL);
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  ck_assert_str_eq (c.plan->algorithm, "hierarchical");
  assert_nics (&c, 1.0 / 16);
  assert_ports (&c, 7.0 / 8);
  plan_case_plan (&c, POD_ALL_REDUCE, "hierarchical");
  assert_nics (&c, 1.0 / 8);
  assert_ports (&c, 14.0 / 8);
  plan_case_plan (&c, POD_ALL_GATHER, "ring");
  assert_nics (&c, 15.0 / 128);
  assert_ports (&c, 15.0 / 16 * 7 / 8);
  /* Each node is the root of one tree: V each way between them */
  plan_case_plan (&c, POD_ALL_REDUCE, "double-tree");
  assert_nics (&c, 1.0 / 8);
  /* All-to-all: 8 of 16 parts leave the node, 7 stay in it; one layer of leaves joins no rails, so
   * that 7 of the 8 that leave first cross to the device on the receiver's rail */
  plan_case_plan (&c, POD_ALL_TO_ALL, NULL);
  assert_nics (&c, 8.0 / 16);
  assert_ports (&c, 14.0 / 16);
  plan_case_plan (&c, POD_BROADCAST, NULL);
  assert_ports (&c, 1);
}
END_TEST

/* 4 nodes, trees 0-2, 2-1, 2-3 and 3-1, 1-2, 1-0 with V/2 each way on an edge: nodes 1 and 2 have 4
 * ends, 0 and 3 two. */
START_TEST (double_tree_of_four)
{
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "h100:8x4");
  plan_case_take_list (&c, 32, NULL);
  plan_case_plan (&c, POD_ALL_REDUCE, "double-tree");
  for (uint32_t device = 0; device < 32; device++)
    {
      uint32_t up, down;

      ck_assert (pod_topology_nic_links (c.topology, device, &up, &down));
      assert_near (c.bytes[up], device / 8 == 1 || device / 8 == 2 ? 2.0 / 8 : 1.0 / 8);
      assert_near (c.bytes[down], c.bytes[up]);
    }
}
END_TEST

/* Islands of 4 and 2 ranks, n = 6. Gather: 4/6 V crosses to the island of 2, 2/6 V to that of 4;
 * the NICs of a side share it: up of the four 1/6, down of the two 2/6, and back 1/6, 1/12. */
START_TEST (unequal_islands)
{
  static const uint32_t devices[] = { 0, 1, 2, 3, 8, 9 };
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "h100:8x2,rails=1,unit=1,tree=2");
  plan_case_take_list (&c, 6, devices);
  plan_case_plan (&c, POD_ALL_GATHER, "hierarchical");
  for (unsigned i = 0; i < 6; i++)
    {
      uint32_t up, down;

      ck_assert (pod_topology_nic_links (c.topology, devices[i], &up, &down));
      assert_near (c.bytes[up], i < 4 ? 4.0 / 6 / 4 : 2.0 / 6 / 2);
      assert_near (c.bytes[down], i < 4 ? 2.0 / 6 / 4 : 4.0 / 6 / 2);
    }
  plan_case_assert_conserved (&c, 5.0 / 6);
}
END_TEST

static const char *const trees[] = {
  "h100:8x4,rails=1,unit=1,tree=2",
  "h100:8x4,rails=8,unit=2,tree=2",
  "h100:4x8,rails=1,unit=2,pod=4,tree=3",
  "h100:4x8,rails=4,unit=2,pod=4,tree=3",
  "h100:2x4,rails=2,unit=4,tree=2",
  "h100:2x4,rails=2,separate-rails",
  "h100:2x4,rails=2,unit=2,separate-rails",
  "h100:8x4",
  "mi250x:4x2",
};

/* Counting members below each switch gives the same loads as walking all n^2 routes; also for a
 * group that leaves out devices. */
START_TEST (tree_counts_match_routes)
{
  for (unsigned step = 1; step <= 3; step++)
    {
      g_auto (PlanCase) c = { 0 };
      g_autofree double *expected = NULL;
      g_autoptr (GArray) route = g_array_new (FALSE, FALSE, sizeof (uint32_t));
      uint32_t devices[64], n = 0;

      plan_case_start (&c, trees[_i]);
      for (uint32_t device = 0; device < c.topology->n_devices; device += step)
        devices[n++] = device;
      plan_case_take_list (&c, n, devices);
      plan_case_plan (&c, POD_ALL_TO_ALL, NULL);
      expected = g_new0 (double, c.topology->n_links);
      for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
          {
            g_array_set_size (route, 0);
            ck_assert (pod_topology_route (c.topology, devices[i], devices[k], route));
            for (guint r = 0; r < route->len; r++)
              expected[g_array_index (route, uint32_t, r)] += 1.0 / n;
          }
      for (uint32_t link = 0; link < c.topology->n_links; link++)
        assert_near (c.bytes[link], expected[link]);
    }
}
END_TEST

/* -- lists --------------------------------------------------------------------------------------
 */

/* Four chips of a 2x2x1 slice without wraps. In snake order every step is one hop: 3/8 each way. In
 * row order two of the four edges are diagonals of two hops: the busiest link carries two flows of
 * 3/8. */
START_TEST (ring_order)
{
  static const uint32_t snake[] = { 0, 1, 3, 2 }, rows[] = { 0, 1, 2, 3 };
  g_auto (PlanCase) c = { 0 };
  g_auto (PlanCase) crossed = { 0 };

  plan_case_start (&c, "tpu-v5p:2x2x1");
  plan_case_take_list (&c, 4, snake);
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  ck_assert_str_eq (c.plan->algorithm, "bidir-ring");
  plan_case_assert_all (&c, 8, 3.0 / 8);
  plan_case_start (&crossed, "tpu-v5p:2x2x1");
  plan_case_take_list (&crossed, 4, rows);
  plan_case_plan (&crossed, POD_ALL_GATHER, "bidir-ring");
  assert_near (crossed.plan->busiest_ratio, 3.0 / 4);
}
END_TEST

/* Send puts the payload on each link of the route; permute one payload on each edge of the ring. */
START_TEST (messages)
{
  static const uint32_t corners[] = { 0, 3 };
  g_auto (PlanCase) c = { 0 };
  g_auto (PlanCase) ring_case = { 0 };

  plan_case_start (&c, "tpu-v5p:2x2x1");
  plan_case_take_list (&c, 2, corners);
  plan_case_plan (&c, POD_SEND, NULL);
  plan_case_assert_all (&c, 2, 1);
  ck_assert_int_eq (c.plan->latency_ps, 2 * c.topology->chip->ici_hop_ps);
  plan_case_start (&ring_case, "tpu-v5p:8x4x4");
  plan_case_take_factors (&ring_case, 1, (PodGroupFactor[]){ { 0, 1, 8 } });
  plan_case_plan (&ring_case, POD_PERMUTE, NULL);
  plan_case_assert_all (&ring_case, 8, 1);
}
END_TEST

/* -- over everything ----------------------------------------------------------------------------
 */

/* Book never knows less bandwidth than it says, ideal is never slower than calibrated, and time
 * grows with size. */
START_TEST (times_are_ordered)
{
  static const char *const machines[] = { "tpu-v5p:4x4x8", "h100:8", "h100:8x4" };

  for (unsigned m = 0; m < G_N_ELEMENTS (machines); m++)
    for (unsigned kind = 0; kind < POD_SEND; kind++)
      {
        g_auto (PlanCase) c = { 0 };
        double before_s = 0;

        plan_case_start (&c, machines[m]);
        if (c.topology->fabric == POD_FABRIC_TORUS)
          plan_case_take_factors (&c, 3,
                                  (PodGroupFactor[]){ { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } });
        else
          plan_case_take_list (&c, c.topology->n_devices, NULL);
        for (uint64_t bytes = 1; bytes < UINT64_C (1) << 36; bytes *= 8)
          {
            double time_s[3];

            for (unsigned f = POD_FIDELITY_IDEAL; f <= POD_FIDELITY_CALIBRATED; f++)
              {
                g_autoptr (PodPlan) p
                    = pod_collective_plan (c.topology, (PodFidelity) f, &c.group,
                                           (PodCollectiveKind) kind, bytes, NULL, NULL);

                time_s[f] = pod_plan_time (c.topology, (PodFidelity) f, p, bytes);
              }
            ck_assert_double_le (time_s[POD_FIDELITY_IDEAL], time_s[POD_FIDELITY_CALIBRATED]);
            ck_assert_double_ge (time_s[POD_FIDELITY_IDEAL], before_s);
            before_s = time_s[POD_FIDELITY_IDEAL];
          }
      }
}
END_TEST

/* The same request gives the same entries. */
START_TEST (plans_repeat)
{
  g_auto (PlanCase) c = { 0 };
  g_autoptr (PodPlan) first = NULL;

  plan_case_start (&c, "h100:8x4");
  plan_case_take_list (&c, 32, NULL);
  plan_case_plan (&c, POD_ALL_TO_ALL, NULL);
  first = g_steal_pointer (&c.plan);
  plan_case_plan (&c, POD_ALL_TO_ALL, NULL);
  ck_assert_uint_eq (first->n_entries, c.plan->n_entries);
  for (uint32_t i = 0; i < first->n_entries; i++)
    {
      ck_assert_uint_eq (first->entries[i].link, c.plan->entries[i].link);
      ck_assert_uint_eq (first->entries[i].share_q32, c.plan->entries[i].share_q32);
    }
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("plans-switched");
  TCase *tcase = tcase_create ("plans-switched");

  tcase_add_test (tcase, one_node);
  tcase_add_test (tcase, nvls);
  tcase_add_test (tcase, two_nodes);
  tcase_add_test (tcase, double_tree_of_four);
  tcase_add_test (tcase, unequal_islands);
  tcase_add_loop_test (tcase, tree_counts_match_routes, 0, G_N_ELEMENTS (trees));
  tcase_add_test (tcase, ring_order);
  tcase_add_test (tcase, messages);
  tcase_add_test (tcase, times_are_ordered);
  tcase_add_test (tcase, plans_repeat);
  suite_add_tcase (suite, tcase);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (make_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
