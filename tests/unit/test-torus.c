#include "topology/topology.h"

#include <stdlib.h>

#include <check.h>

#include "base/error.h"
#include "support/route-walk.h"

static PodTopology *
load (const char *text)
{
  g_autoptr (GError) error = NULL;
  PodTopology *topology = pod_topology_load (text, &error);

  ck_assert_msg (topology != NULL, "%s: %s", text, error != NULL ? error->message : "");
  return topology;
}

/* Which axes wrap: scaling-book, tpus.md (v4, v5p: whole 4x4x4 cubes; v5e, v6e: an axis of 16),
 * Google's pages of v2 and v3 (the pod's own axis). An axis of 2 never has two links between the
 * same chips. */
static const struct
{
  const char *text;
  const char *wraps;
} wrap_cases[] = {
  { "tpu-v4:2x2x1", "" },
  { "tpu-v4:2x2x2", "" },
  { "tpu-v4:2x2x4", "" },
  { "tpu-v4:2x4x4", "" },
  { "tpu-v4:4x4x4", "xyz" },
  { "tpu-v4:4x4x8", "xyz" },
  { "tpu-v5p:16x20x28", "xyz" },
  { "tpu-v7x:4x4x576", "xyz" },
  { "tpu-v7x:2x2x1", "" },
  { "tpu-v5p:4x4x6,unchecked", "" },
  { "tpu-v5e:4x4", "" },
  { "tpu-v5e:4x8", "" },
  { "tpu-v5e:8x8", "" },
  { "tpu-v5e:8x16", "y" },
  { "tpu-v5e:16x8", "x" },
  { "tpu-v5e:16x16", "xy" },
  { "tpu-v6e:16x16", "xy" },
  { "tpu-v6e:2x4", "" },
  { "tpu-v2:16x16", "xy" },
  { "tpu-v2:8x16", "y" },
  { "tpu-v3:32x32", "xy" },
  { "tpu-v3:16x16", "" },
  { "tpu-v3:16x32", "y" },
  { "tpu-v5e:8x4,wrap=xy", "xy" },
  { "tpu-v5e:16x16,wrap=none", "" },
  { "tpu-v5e:32,unchecked,wrap=x", "x" },
};

START_TEST (test_wrap_rules)
{
  g_autoptr (PodTopology) topology = load (wrap_cases[_i].text);
  g_autoptr (GString) wraps = g_string_new (NULL);

  for (unsigned dim = 0; dim < 3; dim++)
    if (topology->wraps[dim])
      g_string_append_c (wraps, "xyz"[dim]);
  ck_assert_msg (g_strcmp0 (wraps->str, wrap_cases[_i].wraps) == 0, "%s wraps %s, not %s",
                 wrap_cases[_i].text, wraps->str, wrap_cases[_i].wraps);
}
END_TEST

static const char *const torus_texts[]
    = { "tpu-v4:4x4x8t", "tpu-v4:4x8x8t",   "tpu-v4:8x4x4t",  "tpu-v4:8x4x8t",
        "tpu-v4:4x8x4t", "tpu-v4:8x16x16t", "tpu-v5p:4x4x4",  "tpu-v5p:8x8x4",
        "tpu-v5p:2x2x1", "tpu-v5p:2x4x4",   "tpu-v5e:4x8",    "tpu-v5e:16x8",
        "tpu-v5e:16x16", "tpu-v3:8x4",      "tpu-v2:16x16",   "tpu-v7x:4x4x4",
        "tpu-v7x:2x2x2", "tpu-v5p:1x1x1",   "tpu-v5p:4x4x12", "tpu-v5p:3x5x7,unchecked,wrap=xyz",
        "tpu-v5e:1x16" };

/* Every link leads back over the link of the other sign: so each axis of the map is a bijection,
 * and twisted wraps are. */
START_TEST (test_links_pair_up)
{
  g_autoptr (PodTopology) topology = load (torus_texts[_i]);
  unsigned n_links = 0;

  for (uint32_t device = 0; device < topology->n_devices; device++)
    for (unsigned dim = 0; dim < topology->n_dims; dim++)
      for (int sign = -1; sign <= 1; sign += 2)
        {
          uint32_t there = 0, back = 0, to = 0, from = 0;
          PodLink link;
          if (!pod_topology_torus_link (topology, device, dim, sign, &there, &to))
            {
              ck_assert (!topology->wraps[dim]);
              continue;
            }
          ck_assert (pod_topology_torus_link (topology, to, dim, -sign, &back, &from));
          ck_assert_uint_eq (from, device);
          ck_assert_uint_ne (there, back);
          pod_topology_link (topology, there, &link);
          ck_assert_int_eq (link.kind, POD_LINK_ICI);
          ck_assert_int_eq (link.sign, sign);
          ck_assert_uint_eq (link.dim, dim);
          ck_assert_uint_eq (device % topology->chip->devices_per_chip,
                             to % topology->chip->devices_per_chip);
          n_links++;
        }
  ck_assert_uint_eq (n_links / topology->chip->devices_per_chip,
                     pod_topology_count_links (topology, POD_LINK_ICI));
  if (topology->is_twisted) /* all six links of every chip exist */
    ck_assert_uint_eq (n_links, 6 * topology->n_chips);
}
END_TEST

/* Routes are shortest: against a search by breadth over the links that pod_topology_link describes.
 */
START_TEST (test_routes_are_shortest)
{
  g_autoptr (PodTopology) topology = load (torus_texts[_i]);
  g_autoptr (GRand) random = g_rand_new_with_seed (20260101);
  int longest = 0;

  for (unsigned trial = 0; trial < 6; trial++)
    {
      uint32_t from = (uint32_t) g_rand_int_range (random, 0, (int) topology->n_devices);
      g_autofree int *distances = route_distances (topology, from, POD_LINK_DIE);
      for (uint32_t to = 0; to < topology->n_devices; to++)
        {
          unsigned per_chip = topology->chip->devices_per_chip;
          int die = from % per_chip != to % per_chip;
          int hops = route_walk (topology, from, to);
          ck_assert_int_eq (hops, distances[to / per_chip * per_chip] + die);
          longest = MAX (longest, hops);
        }
    }
  ck_assert_int_le (longest, (int) pod_topology_diameter (topology));
  if (topology->wraps[0]
      && topology->wraps[1]) /* every chip is alike, so any sees the whole diameter */
    ck_assert_int_eq (longest, (int) pod_topology_diameter (topology));
}
END_TEST

START_TEST (test_ties_go_up)
{
  g_autoptr (PodTopology) topology = load ("tpu-v5e:16x16");
  g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  PodLink link;

  ck_assert (pod_topology_route (topology, 0, 8, links)); /* half way around: 8 hops either way */
  ck_assert_uint_eq (links->len, 8);
  pod_topology_link (topology, g_array_index (links, uint32_t, 0), &link);
  ck_assert_int_eq (link.sign, 1);
  g_array_set_size (links, 0);
  ck_assert (pod_topology_route (topology, 5, 5, links));
  ck_assert_uint_eq (links->len, 0);
}
END_TEST

/* A line keeps the ids of the links that it has not. */
START_TEST (test_line_ends)
{
  g_autoptr (PodTopology) topology = load ("tpu-v5e:4x4");
  PodLink link;

  ck_assert_uint_eq (topology->n_links, 16 * 4);
  ck_assert_uint_eq (pod_topology_count_links (topology, POD_LINK_ICI), 2 * 2 * 4 * 3);
  ck_assert (!pod_topology_torus_link (topology, 0, 0, -1, NULL, NULL));
  pod_topology_link (topology, 1, &link); /* chip 0, x, - */
  ck_assert_double_eq (link.bytes_per_s.nominal, 0);
  ck_assert_uint_eq (link.from, link.to);
}
END_TEST

START_TEST (test_coordinates)
{
  g_autoptr (PodTopology) topology = load ("tpu-v7x:4x4x8*2");
  unsigned coords[POD_MAX_DIMS];

  ck_assert_uint_eq (topology->n_chips, 256);
  ck_assert_uint_eq (topology->n_devices, 512);
  for (uint32_t device = 0; device < topology->n_devices; device++)
    {
      pod_topology_coords (topology, device, coords);
      ck_assert_uint_eq (pod_topology_device (topology, coords, device % 2), device);
      ck_assert_uint_eq (coords[0] + 4 * (coords[1] + 4 * (coords[2] + 8 * coords[3])), device / 2);
      ck_assert_uint_eq (pod_topology_node_of (topology, device), coords[3]);
    }
}
END_TEST

/* Hosts: scaling-book, tpus.md: a v5e host has 4x2 chips, a v5p host 2x2x1; 4x4 v5e = 2 hosts, pods
 * 32 and 2240. */
static const struct
{
  const char *text;
  unsigned n_hosts;
} host_cases[] = {
  { "tpu-v5e:4x4", 2 },   { "tpu-v5e:16x16", 32 },   { "tpu-v5e:2x4", 1 },
  { "tpu-v5e:4x2", 1 },   { "tpu-v5e:1x1", 1 },      { "tpu-v5p:16x20x28", 2240 },
  { "tpu-v5p:2x2x1", 1 }, { "tpu-v5p:4x4x4*2", 32 }, { "tpu-v3:4x4", 4 },
  { "tpu-v7x:2x2x1", 1 },
};

START_TEST (test_hosts)
{
  g_autoptr (PodTopology) topology = load (host_cases[_i].text);
  g_autofree unsigned *chips = g_new0 (unsigned, topology->n_hosts);

  ck_assert_uint_eq (topology->n_hosts, host_cases[_i].n_hosts);
  for (uint32_t device = 0; device < topology->n_devices;
       device += topology->chip->devices_per_chip)
    chips[pod_topology_host_of (topology, device)]++;
  for (unsigned host = 0; host < topology->n_hosts; host++)
    {
      ck_assert_uint_ge (chips[host], 1);
      ck_assert_uint_le (chips[host], topology->chip->chips_per_host);
    }
}
END_TEST

/* Published pod figures: v5e 1.6 TB/s, v6e 3.2 TB/s (docs.cloud.google.com/tpu/docs), one direction
 * at the nominal rate; v3 6.4 TB/s at the book's. A v5p pod by hand: 16*20 lines of z, two links
 * each, 100 GB/s. Twisted 4x4x8: across z 2*16 links and the wraps of x and y (32 each) make 96,
 * across x 2*32 = 64 < 96; untwisted 32. */
static const struct
{
  const char *text;
  double nominal;
  double book;
  unsigned diameter;
} fact_cases[] = {
  { "tpu-v5e:16x16", 1.6e12, 1.44e12, 16 },
  { "tpu-v6e:16x16", 3.2e12, 2.88e12, 16 },
  { "tpu-v3:32x32", 64 * 82e9, 6.4e12, 33 },
  { "tpu-v4:16x16x16", 512 * 50e9, 512 * 45e9, 24 },
  { "tpu-v5p:16x20x28", 640 * 100e9, 640 * 90e9, 32 },
  { "tpu-v5p:4x4x8", 32 * 100e9, 32 * 90e9, 8 },
  { "tpu-v5p:4x4x8t", 64 * 100e9, 64 * 90e9, 6 },
  { "tpu-v5e:4x8", 4 * 50e9, 4 * 45e9, 10 },
  { "tpu-v5p:1x1x1", 0, 0, 0 },
  { "tpu-v5p:4x4x4*2", 64 * 6.25e9, 64 * 6.25e9, 6 },
};

START_TEST (test_facts)
{
  g_autoptr (PodTopology) topology = load (fact_cases[_i].text);

  ck_assert_double_eq_tol (pod_topology_bisection (topology, false), fact_cases[_i].nominal, 1);
  ck_assert_double_eq_tol (pod_topology_bisection (topology, true), fact_cases[_i].book, 1);
  ck_assert_uint_eq (pod_topology_diameter (topology), fact_cases[_i].diameter);
}
END_TEST

/* Slices meet in the DCN: NIC up, core, NIC down; with oversub= over the uplinks of both slices. */
START_TEST (test_dcn)
{
  g_autoptr (PodTopology) plain = load ("tpu-v5p:4x4x4*3");
  g_autoptr (PodTopology) thin = load ("tpu-v5p:4x4x4*3,oversub=4,nic=10GB/s");
  g_autoptr (PodTopology) one = load ("tpu-v5p:4x4x4");
  PodLink link;
  uint32_t up = 0, down = 0;

  ck_assert (!pod_topology_nic_links (one, 0, &up, &down));
  ck_assert_int_eq (route_walk (plain, 3, 64 + 9), 2);
  ck_assert_int_eq (route_walk (thin, 3, 64 + 9), 4);
  ck_assert (pod_topology_nic_links (plain, 70, &up, &down));
  pod_topology_link (plain, up, &link);
  ck_assert_int_eq (link.kind, POD_LINK_NIC);
  ck_assert_uint_eq (link.from, 70);
  ck_assert_double_eq (link.bytes_per_s.nominal, 6.25e9);
  ck_assert_uint_eq (thin->n_levels, 2);
  ck_assert_double_eq (thin->level[0].up_bytes_per_s.nominal, 64 * 10e9 / 4);
  ck_assert_uint_eq (thin->level[0].n_groups, 3);
}
END_TEST

/* The cores of a chip share its links and are joined by a die link. */
START_TEST (test_two_devices_per_chip)
{
  g_autoptr (PodTopology) topology = load ("tpu-v7x:2x2x1");
  uint32_t first = 0, second = 0, die = 0, to = 0;
  PodLink link;

  ck_assert_uint_eq (topology->n_devices, 8);
  ck_assert (pod_topology_torus_link (topology, 0, 0, 1, &first, &to));
  ck_assert_uint_eq (to, 2);
  ck_assert (pod_topology_torus_link (topology, 1, 0, 1, &second, &to));
  ck_assert_uint_eq (to, 3);
  ck_assert_uint_eq (first, second);
  ck_assert (pod_topology_die_link (topology, 1, &die, &to));
  ck_assert_uint_eq (to, 0);
  pod_topology_link (topology, die, &link);
  ck_assert_int_eq (link.kind, POD_LINK_DIE);
  ck_assert_uint_eq (link.from, 1);
  ck_assert_uint_eq (link.to, 0);
  ck_assert_double_eq (link.bytes_per_s.nominal, 600e9);
  ck_assert_int_eq (route_walk (topology, 0, 1), 1);
  ck_assert_int_eq (route_walk (topology, 0, 3), 2);
}
END_TEST

static Suite *
torus_suite (void)
{
  Suite *suite = suite_create ("torus");
  TCase *tests = tcase_create ("torus");

  tcase_set_timeout (tests, 60);
  tcase_add_loop_test (tests, test_wrap_rules, 0, G_N_ELEMENTS (wrap_cases));
  tcase_add_loop_test (tests, test_links_pair_up, 0, G_N_ELEMENTS (torus_texts));
  tcase_add_loop_test (tests, test_routes_are_shortest, 0, G_N_ELEMENTS (torus_texts));
  tcase_add_test (tests, test_ties_go_up);
  tcase_add_test (tests, test_line_ends);
  tcase_add_test (tests, test_coordinates);
  tcase_add_loop_test (tests, test_hosts, 0, G_N_ELEMENTS (host_cases));
  tcase_add_loop_test (tests, test_facts, 0, G_N_ELEMENTS (fact_cases));
  tcase_add_test (tests, test_dcn);
  tcase_add_test (tests, test_two_devices_per_chip);
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (torus_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
