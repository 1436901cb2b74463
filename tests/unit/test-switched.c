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

/* The trees. DGX SuperPOD (scaling-book, gpus.md): a unit of 32 nodes under 8 leaves; 1024 GPUs: 32
 * leaves, 16 spines; 2048: 32 spines; 4096: 128 spines and 64 core switches. */
static const struct
{
  const char *text;
  unsigned n_levels;
  unsigned n_switches[3];
  unsigned n_groups[3];
  double up[2]; /* bytes/s */
} tree_cases[] = {
  { "h100:8", 0, { 0 }, { 0 }, { 0 } },
  { "h100:8x32", 1, { 8 }, { 8 }, { 0 } },
  { "h100:8x128", 2, { 32, 16 }, { 32, 1 }, { 32 * 50e9 } },
  { "h100:8x256", 2, { 64, 32 }, { 64, 1 }, { 32 * 50e9 } },
  { "h100:8x512", 3, { 128, 128, 64 }, { 128, 4, 1 }, { 32 * 50e9, 1024 * 50e9 } },
  { "h100:8x512,oversub=1/7", 3, { 128, 128, 10 }, { 128, 4, 1 }, { 32 * 50e9, 1024 * 50e9 / 7 } },
  { "h100:8x512,oversub=2/2", 3, { 128, 64, 16 }, { 128, 4, 1 }, { 32 * 25e9, 1024 * 12.5e9 } },
  { "h100:8x32,oversub=4", 2, { 8, 1 }, { 8, 1 }, { 32 * 50e9 / 4 } },
  { "h100:8x32,oversub=7:1", 2, { 8, 1 }, { 8, 1 }, { 32 * 50e9 / 7 } },
  { "h100:8x32,oversub=1:7", 2, { 8, 1 }, { 8, 1 }, { 32 * 50e9 / 7 } },
  { "h100:8x128,rails=1", 2, { 32, 16 }, { 32, 1 }, { 32 * 50e9 } },
  { "h100:8x128,rails=8,separate-rails", 2, { 32, 16 }, { 32, 8 }, { 32 * 50e9 } },
  { "h100:8x128,nic=200Gb/s", 2, { 32, 16 }, { 32, 1 }, { 32 * 25e9 } },
  { "h100:2x4,rails=2,tree=2,oversub=4", 2, { 2, 1 }, { 2, 1 }, { 4 * 50e9 / 4 } },
  { "h100:8x4,tree=3", 3, { 8, 1, 1 }, { 8, 1, 1 }, { 4 * 50e9, 32 * 50e9 } },
  { "h100:8x3,unit=2,oversub=4", 2, { 16, 1 }, { 16, 1 }, { 2 * 50e9 / 4 } },
  { "gb200:72x8", 2, { 32, 9 }, { 32, 1 }, { 18 * 50e9 } },
  { "mi300x:8x16", 1, { 8 }, { 8 }, { 0 } },
};

START_TEST (test_trees)
{
  g_autoptr (PodTopology) topology = load (tree_cases[_i].text);

  ck_assert_uint_eq (topology->n_levels, tree_cases[_i].n_levels);
  for (unsigned level = 0; level < topology->n_levels; level++)
    {
      bool is_top = level + 1 == topology->n_levels;
      ck_assert_uint_eq (topology->level[level].n_switches, tree_cases[_i].n_switches[level]);
      ck_assert_uint_eq (topology->level[level].n_groups, tree_cases[_i].n_groups[level]);
      ck_assert_double_eq_tol (topology->level[level].up_bytes_per_s.nominal,
                               is_top ? 0 : tree_cases[_i].up[level], 1);
    }
}
END_TEST

static const char *const route_texts[] = { "h100:8",
                                           "h100:8x5",
                                           "h100:8x70",
                                           "h100:8x70,rails=1",
                                           "h100:8x70,rails=4",
                                           "h100:8x70,separate-rails",
                                           "h100:8x300,tree=3",
                                           "h100:8x300,separate-rails,tree=3,unit=4,pod=20",
                                           "h100:1x5",
                                           "gb200:72x3",
                                           "mi300x:8x5",
                                           "mi250x:4x6",
                                           "mi250x:4",
                                           "gaudi3:8x40,separate-rails",
                                           "trainium2:16x3" };

/* Every link begins and ends at a vertex, the routes of random pairs hold together, and none is
 * longer than the diameter. */
START_TEST (test_routes)
{
  g_autoptr (PodTopology) topology = load (route_texts[_i]);
  g_autoptr (GRand) random = g_rand_new_with_seed (20260102);
  int longest = 0;

  for (uint32_t id = 0; id < topology->n_links; id++)
    {
      PodLink link;
      pod_topology_link (topology, id, &link);
      ck_assert_uint_lt (link.from, topology->n_vertices);
      ck_assert_uint_lt (link.to, topology->n_vertices);
      ck_assert_uint_ne (link.from, link.to);
      ck_assert (link.bytes_per_s.nominal > 0);
    }
  for (unsigned trial = 0; trial < 2000; trial++)
    {
      uint32_t from = (uint32_t) g_rand_int_range (random, 0, (int) topology->n_devices);
      uint32_t to = (uint32_t) g_rand_int_range (random, 0, (int) topology->n_devices);
      int hops = route_walk (topology, from, to);
      ck_assert_int_ge (hops, 0);
      longest = MAX (longest, hops);
    }
  ck_assert_int_eq (longest, (int) pod_topology_diameter (topology));
}
END_TEST

START_TEST (test_port_links)
{
  g_autoptr (PodTopology) topology = load ("h100:8x4");
  uint32_t up = 0, down = 0, pair = 0;
  PodLink link;

  ck_assert (pod_topology_port_links (topology, 11, &up, &down));
  ck_assert (!pod_topology_pair_link (topology, 11, 12, &pair));
  pod_topology_link (topology, up, &link);
  ck_assert_int_eq (link.kind, POD_LINK_SCALE_UP);
  ck_assert_uint_eq (link.from, 11);
  ck_assert_uint_eq (link.to, 32 + 1); /* the crossbar of node 1 */
  ck_assert_double_eq (link.bytes_per_s.nominal, 450e9);
  pod_topology_link (topology, down, &link);
  ck_assert_uint_eq (link.from, 32 + 1);
  ck_assert_uint_eq (link.to, 11);
  ck_assert_uint_eq (pod_topology_count_links (topology, POD_LINK_SCALE_UP), 64);
}
END_TEST

/* The egress of a chip is shared out over the peers of a full domain, also when fewer are there:
 * the wires are what they are. */
START_TEST (test_pair_links)
{
  g_autoptr (PodTopology) topology = load ("mi300x:8x2");
  g_autoptr (PodTopology) half = load ("mi300x:4");
  uint32_t id = 0, up = 0, down = 0;
  PodLink link;

  ck_assert (!pod_topology_port_links (topology, 0, &up, &down));
  ck_assert (!pod_topology_pair_link (topology, 7, 8, &id)); /* other node */
  for (uint32_t from = 8; from < 16; from++)
    for (uint32_t to = 8; to < 16; to++)
      {
        if (from == to)
          continue;
        ck_assert (pod_topology_pair_link (topology, from, to, &id));
        pod_topology_link (topology, id, &link);
        ck_assert_uint_eq (link.from, from);
        ck_assert_uint_eq (link.to, to);
        ck_assert_double_eq_tol (link.bytes_per_s.nominal, 64e9, 1);
      }
  pod_topology_link (half, 0, &link);
  ck_assert_double_eq_tol (link.bytes_per_s.nominal, 64e9, 1);
}
END_TEST

/* NIC i of each node hangs on leaf i of its unit; without rails a leaf takes whole nodes. */
START_TEST (test_rails)
{
  g_autoptr (PodTopology) rails = load ("h100:8x64");
  g_autoptr (PodTopology) plain = load ("h100:8x64,rails=1");

  for (uint32_t device = 0; device < rails->n_devices; device++)
    {
      uint32_t up = 0;
      PodLink link;
      ck_assert (pod_topology_nic_links (rails, device, &up, NULL));
      pod_topology_link (rails, up, &link);
      ck_assert_uint_eq (link.to, rails->first_tree_vertex[0] + device / 256 * 8 + device % 8);
      ck_assert (pod_topology_nic_links (plain, device, &up, NULL));
      pod_topology_link (plain, up, &link);
      ck_assert_uint_eq (link.to, plain->first_tree_vertex[0] + device / 32);
    }
  ck_assert_int_eq (route_walk (rails, 0, 8), 2);   /* same rail, same unit */
  ck_assert_int_eq (route_walk (rails, 0, 9), 4);   /* other rail: over a spine */
  ck_assert_int_eq (route_walk (rails, 0, 256), 4); /* other unit */
}
END_TEST

/* Rails that no switch joins are crossed on NVLink, at the sender: 2 hops there, 2 over the leaf.
 */
START_TEST (test_separate_rails)
{
  g_autoptr (PodTopology) topology = load ("h100:8x4");
  g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  uint32_t up = 0;

  ck_assert_uint_eq (topology->n_levels, 1);
  ck_assert (pod_topology_route (topology, 0, 11, links));
  ck_assert_uint_eq (links->len, 4);
  ck_assert (pod_topology_nic_links (topology, 3, &up, NULL));
  ck_assert_uint_eq (g_array_index (links, uint32_t, 2), up);
}
END_TEST

/* The slower of NIC and PCIe is the link, but not where the NIC is on the chip. */
START_TEST (test_nic_behind_pcie)
{
  static const struct
  {
    const char *text;
    double rate;
  } cases[] = { { "h100:8x2", 50e9 },
                { "h100:8x2,nic=800Gb/s", 63e9 },
                { "gaudi3:8x2", 75e9 },
                { "gb200:4x2,nic=800Gb/s", 100e9 } };

  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (PodTopology) topology = load (cases[i].text);
      uint32_t up = 0;
      PodLink link;
      ck_assert (pod_topology_nic_links (topology, 0, &up, NULL));
      pod_topology_link (topology, up, &link);
      ck_assert_double_eq_tol (link.bytes_per_s.nominal, cases[i].rate, 1);
    }
}
END_TEST

/* DGX H100: 3.6 TB/s of bisection counting both directions (NVIDIA), so 1.8 one way. MI300X: 4 x 4
 * pairs of 64 GB/s. */
static const struct
{
  const char *text;
  double bisection;
  unsigned diameter;
} fact_cases[] = {
  { "h100:8", 1.8e12, 2 },
  { "h100:8x128", 512 * 50e9, 4 },
  { "h100:8x512,oversub=1/7", 2048 * 50e9 / 7, 6 },
  { "mi300x:8", 16 * 64e9, 1 },
  { "mi300x:8x4", 16 * 50e9, 3 },
  { "h100:1", 0, 0 },
  { "mi300x:1", 0, 0 },
  { "meta-24k-roce", 12288 * 50e9 / 7, 6 },
};

START_TEST (test_facts)
{
  g_autoptr (PodTopology) topology = load (fact_cases[_i].text);

  ck_assert_double_eq_tol (pod_topology_bisection (topology, false), fact_cases[_i].bisection, 1e3);
  ck_assert_uint_eq (pod_topology_diameter (topology), fact_cases[_i].diameter);
}
END_TEST

/* Host and scale-up domain are two things: 72 GPUs in 18 trays of 4. */
START_TEST (test_hosts_and_nodes)
{
  g_autoptr (PodTopology) topology = load ("gb200:72x2");
  static const unsigned cases[][3]
      = { { 0, 0, 0 }, { 3, 0, 0 }, { 4, 1, 0 }, { 71, 17, 0 }, { 72, 18, 1 }, { 143, 35, 1 } };

  ck_assert_uint_eq (topology->n_hosts, 36);
  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      ck_assert_uint_eq (pod_topology_host_of (topology, cases[i][0]), cases[i][1]);
      ck_assert_uint_eq (pod_topology_node_of (topology, cases[i][0]), cases[i][2]);
    }
}
END_TEST

static Suite *
switched_suite (void)
{
  Suite *suite = suite_create ("switched");
  TCase *tests = tcase_create ("switched");

  tcase_set_timeout (tests, 60);
  tcase_add_loop_test (tests, test_trees, 0, G_N_ELEMENTS (tree_cases));
  tcase_add_loop_test (tests, test_routes, 0, G_N_ELEMENTS (route_texts));
  tcase_add_test (tests, test_port_links);
  tcase_add_test (tests, test_pair_links);
  tcase_add_test (tests, test_rails);
  tcase_add_test (tests, test_separate_rails);
  tcase_add_test (tests, test_nic_behind_pcie);
  tcase_add_loop_test (tests, test_facts, 0, G_N_ELEMENTS (fact_cases));
  tcase_add_test (tests, test_hosts_and_nodes);
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (switched_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
