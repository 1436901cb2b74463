#include "import/astra-yaml.h"

#include <stdlib.h>

#include <check.h>

#include "support/import-case.h"
#include "support/route-walk.h"

#define GIB 1073741824.0

/* Links: Ring N has N pairs of directions (a ring of two is one pair), FullyConnected N(N-1)
 * directions, Switch 2N. GB/s are GiB/s. */
static const ImportCase cases[] = {
  { "astra/Ring.yml", "tpu-v5p", POD_FABRIC_TORUS, 16, 0, 1, { { 32, 50 * GIB, 500e-9, false } } },
  { "astra/Ring_8npus.yml",
    "tpu-v5p",
    POD_FABRIC_TORUS,
    8,
    0,
    1,
    { { 16, 50 * GIB, 500e-9, false } } },
  { "astra/FullyConnected.yml",
    "mi300x",
    POD_FABRIC_SWITCHED,
    16,
    0,
    1,
    { { 16 * 15, 50 * GIB, 500e-9, false } } },
  { "astra/resnet50_example_network.yml",
    "mi300x",
    POD_FABRIC_SWITCHED,
    64,
    0,
    1,
    { { 64 * 63, 50 * GIB, 500e-9, false } } },
  { "astra/Switch.yml",
    "h100",
    POD_FABRIC_SWITCHED,
    16,
    1,
    1,
    { { 2 * 16, 50 * GIB, 500e-9, false } } },
  { "astra/HGX-H100-validated.yml",
    "h100",
    POD_FABRIC_SWITCHED,
    8,
    1,
    1,
    { { 2 * 8, 400 * GIB, 936.25e-9, false } } },
  /* 2 x 8 x 4 NPUs: 32 rings of two, 8 full meshes of 8, 16 switches of 4 */
  { "astra/Ring_FullyConnected_Switch.yml",
    "h100",
    POD_FABRIC_GRAPH,
    64,
    16,
    4,
    { { 32 * 2, 200 * GIB, 50e-9, false },
      { 8 * 8 * 7, 100 * GIB, 500e-9, false },
      { 16 * 4 * 2, 50 * GIB, 2e-6, false } } },
};

START_TEST (test_files)
{
  g_autoptr (PodTopology) topology = import_load (pod_astra_yaml_read, cases[_i].file);

  import_check (topology, &cases[_i]);
  import_check_round_trip (topology);
}
END_TEST

/* NPU 0 is (0,0,0), 63 is (1,7,3): a hop in the ring, one in the mesh, two over a switch; the link
 * of each kind is that of the dimension. */
START_TEST (test_dimensions)
{
  g_autoptr (PodTopology) topology
      = import_load (pod_astra_yaml_read, "astra/Ring_FullyConnected_Switch.yml");

  ck_assert_int_eq (route_walk (topology, 0, 1), 1);
  ck_assert_int_eq (route_walk (topology, 0, 2), 1);
  ck_assert_int_eq (route_walk (topology, 0, 14), 1);
  ck_assert_int_eq (route_walk (topology, 0, 16), 2);
  ck_assert_int_eq (route_walk (topology, 0, 63), 4);
  ck_assert_uint_eq (pod_topology_node_of (topology, 15), 0);
  ck_assert_uint_eq (pod_topology_node_of (topology, 16), 1);
}
END_TEST

START_TEST (test_rings)
{
  /* Equal rings are a torus, the first dimension x; one of two has no wrap. */
  g_autoptr (PodTopology) torus
      = import_text (pod_astra_yaml_read, ".yml",
                     "topology: [Ring, Ring]\nnpus_count: [4, 2]\nbandwidth: [10, 10]\n"
                     "latency: [5, 5]\n");
  /* Rings of two rates are none. */
  g_autoptr (PodTopology) graph
      = import_text (pod_astra_yaml_read, ".yml",
                     "topology: [Ring, Ring]\nnpus_count: [4, 2]\nbandwidth: [20, 10]\n"
                     "latency: [5, 5]\n");

  ck_assert_int_eq (torus->fabric, POD_FABRIC_TORUS);
  ck_assert_uint_eq (torus->extent[0], 4);
  ck_assert_uint_eq (torus->extent[1], 2);
  ck_assert (torus->wraps[0] && !torus->wraps[1]);
  ck_assert_uint_eq (pod_topology_count_links (torus, POD_LINK_ICI), 2 * (4 * 2 + 4));
  ck_assert_int_eq (graph->fabric, POD_FABRIC_GRAPH);
  ck_assert_uint_eq (graph->n_links, 2 * (4 * 2 + 4));
  ck_assert (import_has_note (graph, "names no chip"));
}
END_TEST

#define NETWORK(topology, npus, bandwidth, latency)                                                \
  "topology: " topology "\nnpus_count: " npus "\nbandwidth: " bandwidth "\nlatency: " latency "\n"

static const struct
{
  const char *text;
  const char *message; /* behind the file's name */
} refusals[] = {
  { "", ":1: expected topology, npus_count, bandwidth and latency" },
  { "[1]\n", ":1: expected topology" },
  { "topology: [Ring]\nnpus_count: [4]\nlatency: [1]\n", ":1: bandwidth is missing" },
  { "topology: [Ring]\ncolour: red\n", ":2: 'colour' is not read" },
  { NETWORK ("[Mesh]", "[4]", "[1]", "[1]"),
    ":1: topology: expected Ring, FullyConnected or Switch, got 'Mesh'" },
  { NETWORK ("Ring", "[4]", "[1]", "[1]"), ":1: topology: expected a list of 1 to 16 entries" },
  { NETWORK ("[Ring]", "[4, 4]", "[1]", "[1]"),
    ":2: npus_count: 2 entries, but topology has 1 dimensions" },
  { NETWORK ("[Ring]", "[0]", "[1]", "[1]"), ":2: npus_count: expected 1 to 65536, got '0'" },
  { NETWORK ("[Ring]", "[4.5]", "[1]", "[1]"), ":2: expected a whole number, got '4.5'" },
  { NETWORK ("[Ring, Ring]", "[1024, 1024]", "[1, 1]", "[1, 1]"),
    ":2: npus_count: more than 65536 NPUs in all" },
  { NETWORK ("[Ring]", "[4]", "[0]", "[1]"), ":3: bandwidth: expected GB/s above 0, got '0'" },
  { NETWORK ("[Ring]", "[4]", "[-5]", "[1]"), ":3: bandwidth: expected GB/s above 0, got '-5'" },
  { NETWORK ("[Ring]", "[4]", "[nan]", "[1]"), ":3: expected a number, got 'nan'" },
  { NETWORK ("[Ring]", "[4]", "[1]", "[-1]"), ":4: latency: expected nanoseconds" },
  { NETWORK ("[FullyConnected, Ring]", "[8192, 2]", "[1, 1]", "[1, 1]"), ": 67108864 links, more" },
};

START_TEST (test_refusals)
{
  import_check_refusal (pod_astra_yaml_read, ".yml", refusals[_i].text, refusals[_i].message);
}
END_TEST

static Suite *
astra_suite (void)
{
  Suite *suite = suite_create ("import-astra");
  TCase *tests = tcase_create ("import-astra");

  tcase_set_timeout (tests, 60);
  tcase_add_loop_test (tests, test_files, 0, G_N_ELEMENTS (cases));
  tcase_add_test (tests, test_dimensions);
  tcase_add_test (tests, test_rings);
  tcase_add_loop_test (tests, test_refusals, 0, G_N_ELEMENTS (refusals));
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (astra_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
