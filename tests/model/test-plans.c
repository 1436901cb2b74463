#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "support/plan-case.h"

/* Plans on tori against equations worked by hand. V = 1 throughout: loads are bytes per payload
 * byte. n ranks. */

/* -- one axis ---------------------------------------------------------------------------------- */

/* Ring of n, both directions: V(n-1)/2n on each link and direction; floor(n/2) hops. n = 8: 7/16, 4
 * hops; 2n links. */
START_TEST (ring)
{
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "tpu-v5p:8x4x4");
  plan_case_take_factors (&c, 1, (PodGroupFactor[]){ { 0, 1, 8 } });
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  ck_assert_str_eq (c.plan->algorithm, "bidir-ring");
  plan_case_assert_all (&c, 16, 7.0 / 16);
  ck_assert_int_eq (c.plan->latency_ps, 4 * c.topology->chip->ici_hop_ps);
  plan_case_assert_conserved (&c, 7.0 / 8);
  plan_case_plan (&c, POD_REDUCE_SCATTER, NULL);
  plan_case_assert_all (&c, 16, 7.0 / 16);
  plan_case_plan (&c, POD_ALL_REDUCE, NULL);
  plan_case_assert_all (&c, 16, 7.0 / 8);
  ck_assert_int_eq (c.plan->latency_ps, 8 * c.topology->chip->ici_hop_ps);
  plan_case_assert_conserved (&c, 14.0 / 8);
  /* V/2W of one axis and direction, W as the book counts it */
  assert_near (c.plan->book_s_per_byte * c.topology->chip->ici_bytes_per_s.book, 1);
}
END_TEST

/* n = 5: 4/10 on each link, 2 hops. All-to-all: distances 1 and 2 each way, (1+2) shards of 1/5
 * start at each member and direction, so 3/5 = (n^2-1)/8n on each link. */
START_TEST (odd_ring)
{
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "tpu-v5p:5x1x1,wrap=x,unchecked");
  plan_case_take_factors (&c, 1, (PodGroupFactor[]){ { 0, 1, 5 } });
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  plan_case_assert_all (&c, 10, 0.4);
  ck_assert_uint_eq (c.plan->n_steps, 2);
  plan_case_plan (&c, POD_ALL_TO_ALL, NULL);
  plan_case_assert_all (&c, 10, 0.6);
}
END_TEST

/* Line of 4: between i and i+1 a gather carries (i+1)/4 rightwards and (3-i)/4 leftwards, a scatter
 * the mirror image, and all-reduce 1 each way. 3 hops. */
START_TEST (line)
{
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "tpu-v5p:8x4x4");
  plan_case_take_factors (&c, 1, (PodGroupFactor[]){ { 0, 1, 4 } }); /* half of a wrapped axis */
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  ck_assert_str_eq (c.plan->algorithm, "line");
  ck_assert_uint_eq (c.plan->n_entries, 6);
  for (unsigned i = 0; i < 3; i++)
    {
      assert_near (plan_case_ici_bytes (&c, i, 0, +1), (i + 1) / 4.0);
      assert_near (plan_case_ici_bytes (&c, i + 1, 0, -1), (3 - i) / 4.0);
    }
  ck_assert_int_eq (c.plan->latency_ps, 3 * c.topology->chip->ici_hop_ps);
  plan_case_assert_conserved (&c, 0.75);
  plan_case_plan (&c, POD_REDUCE_SCATTER, NULL);
  for (unsigned i = 0; i < 3; i++)
    {
      assert_near (plan_case_ici_bytes (&c, i, 0, +1), (3 - i) / 4.0);
      assert_near (plan_case_ici_bytes (&c, i + 1, 0, -1), (i + 1) / 4.0);
    }
  plan_case_plan (&c, POD_ALL_REDUCE, NULL);
  plan_case_assert_all (&c, 6, 1);
}
END_TEST

/* Every second chip of a wrapped axis of 8: a ring of 4 whose hops cross two links, so all 16 links
 * carry 3/8. */
START_TEST (strided_ring)
{
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "tpu-v5p:8x4x4");
  plan_case_take_factors (&c, 1, (PodGroupFactor[]){ { 0, 2, 4 } });
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  ck_assert_str_eq (c.plan->algorithm, "bidir-ring");
  plan_case_assert_all (&c, 16, 3.0 / 8);
  ck_assert_int_eq (c.plan->latency_ps, 4 * c.topology->chip->ici_hop_ps);
}
END_TEST

/* Chips 0, 2, 4 of 8 do not close: a line with hops of two links. Gather: 1/3 then 2/3 rightwards.
 */
START_TEST (strided_line)
{
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "tpu-v5p:8x4x4");
  plan_case_take_factors (&c, 1, (PodGroupFactor[]){ { 0, 2, 3 } });
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  ck_assert_str_eq (c.plan->algorithm, "line");
  ck_assert_uint_eq (c.plan->n_entries, 8);
  assert_near (plan_case_ici_bytes (&c, 1, 0, +1), 1.0 / 3);
  assert_near (plan_case_ici_bytes (&c, 2, 0, +1), 2.0 / 3);
  ck_assert_int_eq (c.plan->latency_ps, 4 * c.topology->chip->ici_hop_ps);
}
END_TEST

/* The ring of one direction, by name: V(n-1)/n on n links. */
START_TEST (one_way_ring)
{
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "tpu-v5p:8x4x4");
  plan_case_take_factors (&c, 1, (PodGroupFactor[]){ { 0, 1, 8 } });
  plan_case_plan (&c, POD_ALL_GATHER, "ring");
  plan_case_assert_all (&c, 8, 7.0 / 8);
  ck_assert_uint_eq (c.plan->n_steps, 7);
}
END_TEST

/* -- several axes ------------------------------------------------------------------------------ */

/* M rings at once: each member must receive V(N-1)/N over 2M links, and the split reaches that:
 * V(N-1)/2MN on each. 4x4: 15/64. 4x4x8: 127/768. */
START_TEST (torus)
{
  static const PodGroupFactor factors[] = { { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } };
  g_auto (PlanCase) two = { 0 };
  g_auto (PlanCase) three = { 0 };

  plan_case_start (&two, "tpu-v5p:4x4x8");
  plan_case_take_factors (&two, 2, factors);
  plan_case_plan (&two, POD_ALL_GATHER, NULL);
  ck_assert_str_eq (two.plan->algorithm, "torus");
  plan_case_assert_all (&two, 64, 15.0 / 64);
  ck_assert_int_eq (two.plan->latency_ps, 4 * two.topology->chip->ici_hop_ps);

  plan_case_start (&three, "tpu-v5p:4x4x8");
  plan_case_take_factors (&three, 3, factors);
  plan_case_plan (&three, POD_ALL_GATHER, NULL);
  plan_case_assert_all (&three, 768, 127.0 / 768);
  plan_case_assert_conserved (&three, 127.0 / 128);
  plan_case_plan (&three, POD_ALL_REDUCE, NULL);
  plan_case_assert_all (&three, 768, 127.0 / 384);
  ck_assert_int_eq (three.plan->latency_ps, INT64_C (16) * three.topology->chip->ici_hop_ps);
  /* 2V/(3W) */
  assert_near (three.plan->book_s_per_byte * 3 * 2 * three.topology->chip->ici_bytes_per_s.book, 2);
}
END_TEST

/* A ring of 8 and a line of 2. */
START_TEST (ring_and_line)
{
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "tpu-v5p:8x4x4");
  plan_case_take_factors (&c, 2, (PodGroupFactor[]){ { 0, 1, 8 }, { 1, 1, 2 } });
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  plan_case_assert_conserved (&c, 15.0 / 16);
  /* Part p ends on x: y gathers p/8, x all p. Part 1-p ends on y: x gathers (1-p)/2, y all of it.
   * x: 7/16 (p + (1-p)/2) = 7/32 (1+p);  y: 1/2 (p/8 + 1-p) = 1/2 - 7p/16.  Equal at p = 3/7: both
   * 5/16, which is what 3 links into a member cannot beat: (15/16)/3. */
  assert_near (c.plan->busiest_ratio, 5.0 / 16);
}
END_TEST

/* The 2x2 block as a ring of 4: 3/8 on each of its 8 directed links, half of the line's 3/4. A 4x3
 * block: ring of 12, 24 links, 11/24; the same along other strides. */
START_TEST (block_ring)
{
  g_auto (PlanCase) c = { 0 };
  g_auto (PlanCase) larger = { 0 };
  g_auto (PlanCase) strided = { 0 };

  plan_case_start (&c, "tpu-v5p:8x8x4");
  plan_case_take_factors (&c, 2, (PodGroupFactor[]){ { 0, 1, 2 }, { 1, 1, 2 } });
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  ck_assert_str_eq (c.plan->algorithm, "block-ring");
  plan_case_assert_all (&c, 8, 3.0 / 8);
  plan_case_assert_conserved (&c, 0.75);

  plan_case_start (&larger, "tpu-v5p:8x8x4");
  plan_case_take_factors (&larger, 2, (PodGroupFactor[]){ { 0, 1, 3 }, { 1, 1, 4 } });
  plan_case_plan (&larger, POD_ALL_GATHER, "block-ring");
  plan_case_assert_all (&larger, 24, 11.0 / 24);
  plan_case_assert_conserved (&larger, 11.0 / 12);

  plan_case_start (&strided, "tpu-v5p:8x8x4");
  plan_case_take_factors (&strided, 2, (PodGroupFactor[]){ { 0, 2, 2 }, { 1, 1, 2 } });
  plan_case_plan (&strided, POD_ALL_REDUCE, "block-ring");
  plan_case_assert_all (&strided, 12, 3.0 / 4);
}
END_TEST

/* Two slices of 64: inside V*63/(6*64) on each link, and V/64 * 1/2 through every NIC each way. */
START_TEST (slices)
{
  g_auto (PlanCase) c = { 0 };
  uint32_t up, down;

  plan_case_start (&c, "tpu-v5p:4x4x4*2");
  plan_case_take_factors (&c, 4,
                          (PodGroupFactor[]){ { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 4 }, { 3, 1, 2 } });
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  ck_assert_str_eq (c.plan->algorithm, "hierarchical");
  for (uint32_t device = 0; device < 128; device++)
    {
      ck_assert (pod_topology_nic_links (c.topology, device, &up, &down));
      assert_near (c.bytes[up], 1.0 / 128);
      assert_near (c.bytes[down], 1.0 / 128);
      assert_near (plan_case_ici_bytes (&c, device, 2, -1), 63.0 / 384);
    }
}
END_TEST

/* A whole twisted slice of 4x4x8: even links, 127/768 as untwisted. All-to-all: the sum over the
 * links is the sum over all routes, each axis is even, and the long axis carries less than the 1 of
 * the untwisted ring of 8. */
START_TEST (twisted)
{
  g_auto (PlanCase) c = { 0 };
  g_autoptr (GArray) route = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  double expected[3] = { 0 };

  plan_case_start (&c, "tpu-v5p:4x4x8t");
  plan_case_take_factors (&c, 3, (PodGroupFactor[]){ { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } });
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  plan_case_assert_all (&c, 768, 127.0 / 768);
  for (uint32_t from = 0; from < 128; from++)
    for (uint32_t to = 0; to < 128; to++)
      {
        g_array_set_size (route, 0);
        ck_assert (pod_topology_route (c.topology, from, to, route));
        for (guint i = 0; i < route->len; i++)
          {
            PodLink link;

            pod_topology_link (c.topology, g_array_index (route, uint32_t, i), &link);
            expected[link.dim] += 1.0 / 128 / 256; /* 256 links an axis */
          }
      }
  plan_case_plan (&c, POD_ALL_TO_ALL, NULL);
  for (uint32_t device = 0; device < 128; device++)
    for (unsigned dim = 0; dim < 3; dim++)
      assert_near (plan_case_ici_bytes (&c, device, dim, device % 2 == 0 ? 1 : -1), expected[dim]);
  ck_assert_double_lt (c.plan->busiest_ratio, 1);
}
END_TEST

/* Two devices a chip: both share its ICI links, which carry V*63/(6*64) as for one, and the die
 * link gathers half. */
START_TEST (cores)
{
  static const PodGroupFactor factors[]
      = { { POD_DIM_CORE, 1, 2 }, { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 4 } };
  g_auto (PlanCase) c = { 0 };
  uint32_t die;

  plan_case_start (&c, "tpu-v7x:4x4x4");
  plan_case_take_factors (&c, 4, factors);
  plan_case_plan (&c, POD_ALL_GATHER, NULL);
  ck_assert_uint_eq (c.plan->n_entries, 64 * 6 + 128);
  for (uint32_t device = 0; device < 128; device++)
    {
      assert_near (plan_case_ici_bytes (&c, device, device % 3, 1), 63.0 / 384);
      ck_assert (pod_topology_die_link (c.topology, device, &die, NULL));
      assert_near (c.bytes[die], 0.5);
    }
}
END_TEST

/* A chain from the root: on a ring half of the bytes each way round, nothing on the links back into
 * the root. */
START_TEST (broadcast_and_reduce)
{
  g_auto (PlanCase) c = { 0 };

  plan_case_start (&c, "tpu-v5p:8x4x4");
  plan_case_take_factors (&c, 2, (PodGroupFactor[]){ { 0, 1, 8 }, { 1, 1, 2 } });
  plan_case_plan (&c, POD_BROADCAST, NULL);
  for (unsigned x = 0; x < 8; x++)
    {
      assert_near (plan_case_ici_bytes (&c, x, 0, +1), x == 7 ? 0 : 0.5);
      assert_near (plan_case_ici_bytes (&c, x, 0, -1), x == 1 ? 0 : 0.5);
      assert_near (plan_case_ici_bytes (&c, x, 1, +1), 1);
    }
  plan_case_plan (&c, POD_REDUCE, NULL);
  for (unsigned x = 0; x < 8; x++)
    {
      assert_near (plan_case_ici_bytes (&c, x, 0, -1), x == 0 ? 0 : 0.5);
      assert_near (plan_case_ici_bytes (&c, x, 0, +1), x == 0 ? 0 : 0.5);
      assert_near (plan_case_ici_bytes (&c, x + 8, 1, -1), 1);
    }
}
END_TEST

/* -- all-to-all against enumeration -------------------------------------------------------------
 */

/* Adds one message from @at along one dim to coordinate @to, half each way when both ways are as
 * long. */
static void
walk (const PodTopology *topology, uint32_t at, unsigned dim, unsigned to, double bytes,
      double *loads)
{
  unsigned coords[POD_MAX_DIMS], extent = topology->extent[dim], forward;

  pod_topology_coords (topology, at, coords);
  forward = (to + extent - coords[dim]) % extent;
  if (forward == 0)
    return;
  for (int sign = -1; sign <= 1; sign += 2)
    {
      unsigned hops = sign > 0 ? forward : extent - forward;
      uint32_t here = at;
      double share = 1;

      if (topology->wraps[dim])
        share = 2 * hops < extent ? 1 : 2 * hops == extent ? 0.5 : 0;
      else if ((sign > 0) != (to > coords[dim]))
        share = 0;
      else
        hops = to > coords[dim] ? to - coords[dim] : coords[dim] - to;
      for (unsigned i = 0; i < hops && share > 0; i++)
        {
          uint32_t link;

          ck_assert (pod_topology_torus_link (topology, here, dim, sign, &link, &here));
          loads[link] += share * bytes;
        }
    }
}

/* Every pair's 1/N, x first, then y, then z. */
static void
enumerate_all_to_all (const PlanCase *c, double *loads)
{
  for (uint32_t i = 0; i < c->group.n_devices; i++)
    for (uint32_t k = 0; k < c->group.n_devices; k++)
      {
        unsigned at[POD_MAX_DIMS], to[POD_MAX_DIMS];

        pod_topology_coords (c->topology, c->devices[i], at);
        pod_topology_coords (c->topology, c->devices[k], to);
        for (unsigned dim = 0; dim < 3; dim++)
          {
            walk (c->topology, pod_topology_device (c->topology, at, 0), dim, to[dim],
                  1.0 / c->group.n_devices, loads);
            at[dim] = to[dim];
          }
      }
}

static const struct
{
  const char *machine;
  unsigned n_factors;
  PodGroupFactor factors[3];
} exchanges[] = {
  { "tpu-v5p:4x4x8", 1, { { 2, 1, 8 } } },
  { "tpu-v5p:8x4x4", 1, { { 0, 2, 4 } } },
  { "tpu-v5p:4x4x8", 2, { { 0, 1, 4 }, { 2, 1, 8 } } },
  { "tpu-v5p:4x4x8", 3, { { 0, 1, 4 }, { 1, 1, 4 }, { 2, 1, 8 } } },
  { "tpu-v5p:5x3x2,wrap=xy,unchecked", 3, { { 0, 1, 5 }, { 1, 1, 3 }, { 2, 1, 2 } } },
  { "tpu-v5p:5x4x1,wrap=none,unchecked", 2, { { 0, 1, 5 }, { 1, 1, 4 } } },
  { "tpu-v5p:6x4x1,wrap=y,unchecked", 2, { { 1, 1, 4 }, { 0, 1, 6 } } },
};

START_TEST (all_to_all_matches_enumeration)
{
  g_auto (PlanCase) c = { 0 };
  g_autofree double *expected = NULL;

  plan_case_start (&c, exchanges[_i].machine);
  plan_case_take_factors (&c, exchanges[_i].n_factors, exchanges[_i].factors);
  plan_case_plan (&c, POD_ALL_TO_ALL, NULL);
  expected = g_new0 (double, c.topology->n_links);
  enumerate_all_to_all (&c, expected);
  for (uint32_t link = 0; link < c.topology->n_links; link++)
    assert_near (c.bytes[link], expected[link]);
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("plans");
  TCase *tcase = tcase_create ("plans");

  tcase_add_test (tcase, ring);
  tcase_add_test (tcase, odd_ring);
  tcase_add_test (tcase, line);
  tcase_add_test (tcase, strided_ring);
  tcase_add_test (tcase, strided_line);
  tcase_add_test (tcase, one_way_ring);
  tcase_add_test (tcase, torus);
  tcase_add_test (tcase, ring_and_line);
  tcase_add_test (tcase, block_ring);
  tcase_add_test (tcase, slices);
  tcase_add_test (tcase, twisted);
  tcase_add_test (tcase, cores);
  tcase_add_test (tcase, broadcast_and_reduce);
  tcase_add_loop_test (tcase, all_to_all_matches_enumeration, 0, G_N_ELEMENTS (exchanges));
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
