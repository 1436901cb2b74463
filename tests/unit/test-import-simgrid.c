#include "import/simgrid-xml.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/units.h"
#include "support/import-case.h"

#define MB 1e6

/* A host of a cluster has a link up and one down. A backbone is a link from entry to exit, with one
 * more from the router to the entry and from the exit to the router: three of its rate, two
 * switches beside the router. */
static const ImportCase cases[] = {
  { "simgrid/two_hosts.xml", "h100", POD_FABRIC_GRAPH, 2, 0, 1, { { 1, 125 * MB, 100e-6, true } } },
  { "simgrid/cluster_backbone.xml",
    "h100",
    POD_FABRIC_GRAPH,
    100,
    3,
    1,
    { { 200, 125 * MB, 50e-6, false },
      { 1, 2250 * MB, 500e-6, false },
      { 2, 2250 * MB, 0, false } } },
  { "simgrid/cluster_crossbar.xml",
    "h100",
    POD_FABRIC_SWITCHED,
    65536,
    1,
    1,
    { { 2 * 65536, 125 * MB, 50e-6, false } } },
  /* 3 x 2 x 2: 4 rings of 3, 6 pairs, 6 pairs */
  { "simgrid/cluster_torus.xml",
    "tpu-v5p",
    POD_FABRIC_TORUS,
    12,
    0,
    1,
    { { 2 * (12 + 6 + 6), 125 * MB, 50e-6, false } } },
  /* 16 hosts; each of 4 leaves has 2 cables to each of 2 cores */
  { "simgrid/cluster_fat_tree.xml",
    "h100",
    POD_FABRIC_GRAPH,
    16,
    6,
    1,
    { { 2 * (16 + 4 * 2 * 2), 125 * MB, 50e-6, false } } },
  /* 3 groups x 4 chassis x 5 routers x 2 hosts with a limiter each; green 12 x 10, black 3 x 5 x 6
   * of triple rate, blue 3 of fourfold rate */
  { "simgrid/cluster_dragonfly.xml",
    "h100",
    POD_FABRIC_GRAPH,
    120,
    60 + 120,
    1,
    { { 2 * (120 + 12 * 10), 125 * MB, 50e-6, false },
      { 2 * 3 * 5 * 6, 375 * MB, 50e-6, false },
      { 2 * 3, 500 * MB, 50e-6, false },
      { 120, 150 * MB, 0, true } } },
  /* 3 hosts on a bus: 2 switches, the link between them, one in and one out for each host */
  { "simgrid/energy_platform.xml",
    "h100",
    POD_FABRIC_GRAPH,
    3,
    2,
    1,
    { { 1 + 3 * 2, 100e3, 0, false } } },
  /* 32 + 28 + 32 hosts, 3 backbones without latency, a bus of 3 routers */
  { "simgrid/griffon.xml",
    "h100",
    POD_FABRIC_GRAPH,
    92,
    3 * 3 + 2,
    1,
    { { 2 * 92, 125 * MB, 24e-6, false },
      { 3 * 3 + 3 * 2, 1250 * MB, 0, false },
      { 1, 1250 * MB, 24e-6, false } } },
  /* Two zones: two hosts with a link each way, one with a shared link and so a port of its own */
  { "simgrid/routing_cluster.xml",
    "h100",
    POD_FABRIC_GRAPH,
    6,
    2 * (3 + 1),
    1,
    { { 2, 2250 * MB, 500e-6, false },
      { 4, 2250 * MB, 0, false },
      { 8, 125 * MB, 100e-6, false },
      { 2, 125 * MB, 100e-6, true },
      { 4, 125 * MB, 0, false },
      { 1, 2250 * MB, 500e-6, true } } },
  /* 40 + 50 + 30 hosts, 3 backbones, 4 routers, the place where the cabinets' links meet */
  { "simgrid/data_center.xml",
    "h100",
    POD_FABRIC_GRAPH,
    120,
    3 * 3 + 4 + 1,
    1,
    { { 2 * 120, 125 * MB, 100e-6, false },
      { 3, 1250 * MB, 100e-6, false },
      { 3 * 2, 1250 * MB, 0, false },
      { 3 + 3, 1250 * MB, 100e-6, true } } },
};

START_TEST (test_files)
{
  g_autoptr (PodTopology) topology = import_load (pod_simgrid_xml_read, cases[_i].file);

  import_check (topology, &cases[_i]);
  import_check_round_trip (topology);
}
END_TEST

/* -- routes --------------------------------------------------------------------------------------
 */

static void
measure (const PodTopology *topology, uint32_t from, uint32_t to, double *out_s, double *out_rate)
{
  g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (uint32_t));

  *out_s = 0;
  *out_rate = 1e18;
  ck_assert (pod_topology_route (topology, from, to, links));
  for (unsigned i = 0; i < links->len; i++)
    {
      PodLink link;
      pod_topology_link (topology, g_array_index (links, uint32_t, i), &link);
      *out_s += (double) link.latency_ps / POD_PS_PER_S;
      *out_rate = MIN (*out_rate, link.bytes_per_s.nominal);
    }
}

static void
check_route (const PodTopology *topology, uint32_t from, uint32_t to, double seconds, double rate)
{
  double latency_s = 0;
  double least = 0;

  measure (topology, from, to, &latency_s, &least);
  ck_assert_double_eq_tol (latency_s, seconds, 1e-10);
  ck_assert_double_eq_tol (least, rate, 1e-3);
}

/* Hosts in the file's order: Tremblay 0, Jupiter 1, Fafard 2, Ginette 3, Bourassa 4, Jacquelin 5,
 * Boivin 6. The file's routes go over links that no shortest path would take. */
START_TEST (test_small_platform)
{
  g_autoptr (PodTopology) topology
      = import_load (pod_simgrid_xml_read, "simgrid/small_platform.xml");
  double jacquelin_boivin = 410.463e-6 + 370.788e-6 + 29.5890617e-3 + 35.083019e-3 + 136.931e-6
                            + 514.433e-6 + 514.433e-6 + 136.931e-6 + 6.932556e-3 + 6.932556e-3;
  double jacquelin_tremblay
      = 410.463e-6 + 370.788e-6 + 29.5890617e-3 + 35.083019e-3 + 136.931e-6 + 514.433e-6;

  ck_assert_uint_eq (topology->n_devices, 7);
  check_route (topology, 0, 1, 1.461517e-3, 7.20975e6);
  check_route (topology, 1, 0, 1.461517e-3, 7.20975e6);
  check_route (topology, 5, 6, jacquelin_boivin, 2.583375e6);
  check_route (topology, 6, 5, jacquelin_boivin, 2.583375e6);
  check_route (topology, 5, 0, jacquelin_tremblay, 2.583375e6);
  check_route (topology, 3, 6, 6.932556e-3, 10.314625e6);
  import_check_round_trip (topology);
}
END_TEST

/* Both ways on a bus, and both ways of a shared link, are the same link. */
START_TEST (test_shared_is_one_link)
{
  g_autoptr (PodTopology) bus = import_load (pod_simgrid_xml_read, "simgrid/energy_platform.xml");
  g_autoptr (GArray) there = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autoptr (GArray) back = g_array_new (FALSE, FALSE, sizeof (uint32_t));

  ck_assert (pod_topology_route (bus, 0, 1, there) && pod_topology_route (bus, 2, 0, back));
  ck_assert_uint_eq (there->len, 3);
  ck_assert_uint_eq (g_array_index (there, uint32_t, 1), g_array_index (back, uint32_t, 1));
}
END_TEST

/* Grid'5000: 0.1 ms a link. Up, backbone, the cluster's own link; from site to site
 * link_gw_toulouse, three links of the backbone (toulouse, marseille, lyon, bordeaux) and
 * link_gw_bordeaux. */
START_TEST (test_grid5000)
{
  g_autoptr (PodTopology) topology = import_load (pod_simgrid_xml_read, "simgrid/g5k.xml");
  uint32_t bordeplage1 = 0;
  uint32_t violette1 = topology->n_devices - 52;
  uint32_t pastel1 = violette1 - 80;
  unsigned n_host_links = 0;

  ck_assert_uint_eq (topology->n_devices, 1528);
  for (uint32_t id = 0; id < topology->n_links; id++)
    {
      PodLink link;
      pod_topology_link (topology, id, &link);
      n_host_links += link.bytes_per_s.nominal < 126 * MB;
    }
  ck_assert_uint_eq (n_host_links, 2 * 1528);
  check_route (topology, violette1, pastel1, 6e-4, 125 * MB);
  check_route (topology, violette1, bordeplage1, 11e-4, 125 * MB);
  check_route (topology, bordeplage1, violette1 + 51, 11e-4, 125 * MB);
  check_route (topology, violette1, violette1 + 1, 3e-4, 125 * MB);
}
END_TEST

#define PLATFORM(body)                                                                             \
  "<platform version=\"4.1\">\n<zone id=\"z\" routing=\"Full\">\n" body "</zone>\n</platform>\n"
#define TWO                                                                                        \
  "<host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>"                                   \
  "<link id=\"l\" bandwidth=\"1GBps\"/>"                                                           \
  "<link id=\"d\" bandwidth=\"2GBps\" latency=\"3us\" sharing_policy=\"SPLITDUPLEX\"/>\n"
#define ROUTE(attributes, links) "<route src=\"a\" dst=\"b\"" attributes ">\n" links "</route>\n"

/* Units: decimal and binary prefixes, bits and bytes, times. */
static const struct
{
  const char *bandwidth;
  const char *latency;
  double bytes_per_s;
  double latency_s;
} units[] = {
  { "125MBps", "50us", 125e6, 50e-6 },
  { "1Gbps", "2ms", 125e6, 2e-3 },
  { "1GiBps", "0", 1073741824, 0 },
  { "8Kibps", "1s", 1024, 1 },
  { "1.25E9Bps", "1.0E-4s", 1.25e9, 1e-4 },
  { "5kBps", "3ns", 5e3, 3e-9 },
  { "1e6", "1m", 1e6, 60 },
  { "1TBps", "4ps", 1e12, 4e-12 },
};

START_TEST (test_units)
{
  g_autofree char *text = g_strdup_printf (
      PLATFORM ("<host id=\"a\"/><host id=\"b\"/><link id=\"x\" bandwidth=\"%s\" latency=\"%s\"/>"
                "<route src=\"a\" dst=\"b\"><link_ctn id=\"x\"/></route>"),
      units[_i].bandwidth, units[_i].latency);
  g_autoptr (PodTopology) topology = import_text (pod_simgrid_xml_read, ".xml", text);

  check_route (topology, 0, 1, units[_i].latency_s, units[_i].bytes_per_s);
}
END_TEST

/* One direction for each of a SPLITDUPLEX link's names, and routes that are not symmetrical. */
START_TEST (test_directions)
{
  g_autoptr (PodTopology) topology
      = import_text (pod_simgrid_xml_read, ".xml",
                     PLATFORM (TWO ROUTE ("", "<link_ctn id=\"d\" direction=\"UP\"/>\n")));
  g_autoptr (PodTopology) named = import_text (
      pod_simgrid_xml_read, ".xml",
      PLATFORM (TWO ROUTE (" symmetrical=\"NO\"",
                           "<link_ctn id=\"d_UP\"/>\n") "<route src=\"b\" dst=\"a\">"
                                                        "<link_ctn id=\"l\"/></route>"));
  g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (uint32_t));

  ck_assert_uint_eq (topology->n_links, 2);
  check_route (topology, 0, 1, 3e-6, 2e9);
  check_route (topology, 1, 0, 3e-6, 2e9);
  /* a to b over d, back over l, which is slower and so must be given */
  check_route (named, 0, 1, 3e-6, 2e9);
  check_route (named, 1, 0, 0, 1e9);
}
END_TEST

/* Floyd counts links: a - b - c costs 2, a - c over three links 3. A pair without a route is noted.
 */
START_TEST (test_shortest)
{
  g_autoptr (PodTopology) topology
      = import_text (pod_simgrid_xml_read, ".xml",
                     "<platform version=\"4.1\"><zone id=\"z\" routing=\"Floyd\">"
                     "<host id=\"a\"/><host id=\"b\"/><host id=\"c\"/><host id=\"lone\"/>"
                     "<link id=\"1\" bandwidth=\"1MBps\" latency=\"1s\"/><link id=\"2\" "
                     "bandwidth=\"1MBps\" latency=\"2s\"/>"
                     "<link id=\"3\" bandwidth=\"1GBps\" latency=\"3s\"/><link id=\"4\" "
                     "bandwidth=\"1GBps\" latency=\"4s\"/>"
                     "<link id=\"5\" bandwidth=\"1GBps\" latency=\"5s\"/>"
                     "<route src=\"a\" dst=\"b\"><link_ctn id=\"1\"/></route>"
                     "<route src=\"b\" dst=\"c\"><link_ctn id=\"2\"/></route>"
                     "<route src=\"a\" dst=\"c\"><link_ctn id=\"3\"/><link_ctn id=\"4\"/><link_ctn "
                     "id=\"5\"/></route>"
                     "</zone></platform>");

  check_route (topology, 0, 2, 3, 1e6);
  check_route (topology, 2, 0, 3, 1e6);
  ck_assert (import_has_note (topology, "6 pairs of hosts have no route"));
}
END_TEST

#define CLUSTER(attributes)                                                                        \
  "<platform version=\"4.1\">\n<cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-3\" "        \
  "speed=\"1f\" bw=\"1GBps\" lat=\"1us\" " attributes "/>\n</platform>\n"

static const struct
{
  const char *text;
  const char *message; /* behind the file's name */
} refusals[] = {
  { "<platform version=\"4.1\">\n", ":2: " },
  { "<system/>\n", ":1: expected <platform>, got <system>" },
  { "<platform version=\"3\">\n</platform>\n", ":1: <platform> version: expected 4 or 4.1" },
  { "<platform version=\"4.1\">\n</platform>\n", ":1: a platform without hosts" },
  { "<platform version=\"4.1\">\n<zone id=\"a\" routing=\"Full\"/>\n<zone id=\"b\" "
    "routing=\"Full\"/>\n</platform>\n",
    ":3: a platform has one outermost zone" },
  { "<platform version=\"4.1\">\n<zone id=\"a\" routing=\"Random\"/>\n</platform>\n",
    ":2: <zone> routing: expected Full, Floyd" },
  { "<platform version=\"4.1\">\n<zone id=\"a\" routing=\"Vivaldi\">\n<host id=\"a\"/><host "
    "id=\"b\"/></zone></platform>\n",
    ":2: Vivaldi zones make latencies of coordinates" },
  { PLATFORM ("<host id=\"a\"/>\n<host id=\"a\"/>\n"), ":4: the id 'a' stands twice" },
  { PLATFORM ("<include file=\"x\"/>\n"), ":3: <include> is not read" },
  { PLATFORM (TWO "<link id=\"l\" bandwidth=\"1GBps\"/>\n"), ":4: the link id 'l' stands twice" },
  { PLATFORM ("<link id=\"l\" bandwidth=\"1Bps\" state_file=\"s\"/>\n"),
    ":3: <link> state_file: links that change in time are not modelled" },
  { PLATFORM ("<link id=\"l\"/>\n"), ":3: <link> lacks the attribute bandwidth" },
  { PLATFORM ("<link id=\"l\" bandwidth=\"1GB\"/>\n"),
    ":3: <link> bandwidth: expected a rate above 0 such as 125MBps or 10Gbps, got '1GB'" },
  { PLATFORM ("<link id=\"l\" bandwidth=\"0Bps\"/>\n"), ":3: <link> bandwidth: expected a rate" },
  { PLATFORM ("<link id=\"l\" bandwidth=\"-1Bps\"/>\n"), ":3: <link> bandwidth: expected a rate" },
  { PLATFORM ("<link id=\"l\" bandwidth=\"nanBps\"/>\n"), ":3: <link> bandwidth: expected a rate" },
  { PLATFORM ("<link id=\"l\" bandwidth=\"1Bps\" latency=\"5 parsecs\"/>\n"),
    ":3: <link> latency: expected a time such as 50us or 0, got '5 parsecs'" },
  { PLATFORM ("<link id=\"l\" bandwidth=\"1Bps\" sharing_policy=\"WIFI\"/>\n"),
    ":3: <link> sharing_policy: expected SHARED, SPLITDUPLEX or FATPIPE, got 'WIFI'" },
  { PLATFORM (TWO ROUTE ("", "")), ":4: a route without links" },
  { PLATFORM (TWO ROUTE ("", "<link_ctn id=\"m\"/>\n")), ":5: <link_ctn>: no link has the id 'm'" },
  { PLATFORM (TWO ROUTE ("", "<link_ctn id=\"l_UP\"/>\n")),
    ":5: <link_ctn>: no link has the id 'l_UP'" },
  { PLATFORM (TWO ROUTE ("", "<link_ctn id=\"d\"/>\n")),
    ":5: link 'd' is SPLITDUPLEX: a direction (UP or DOWN) is needed" },
  { PLATFORM (TWO ROUTE ("", "<link_ctn id=\"l\"/>\n") ROUTE ("", "<link_ctn id=\"l\"/>\n")),
    ":7: this route stands twice" },
  { PLATFORM (TWO "<route src=\"a\" dst=\"z\"/>\n"), ":4: <route> dst: 'z' is not in zone 'z'" },
  { PLATFORM (TWO "<link id=\"f\" bandwidth=\"1Bps\" sharing_policy=\"FATPIPE\"/>\n" ROUTE (
        "", "<link_ctn id=\"f\"/>\n")),
    ":4: a FATPIPE link gives each flow its whole rate" },
  { "<platform version=\"4.1\">\n<zone id=\"z\" routing=\"Full\">\n<zone id=\"y\" "
    "routing=\"Full\"><host id=\"a\"/></zone>\n<zone id=\"x\" routing=\"Full\"><host "
    "id=\"b\"/></zone>\n<link id=\"l\" bandwidth=\"1Bps\"/>\n<zoneRoute src=\"y\" dst=\"x\" "
    "gw_src=\"b\" gw_dst=\"b\"><link_ctn id=\"l\"/></zoneRoute></zone></platform>\n",
    ":6: <zoneRoute> gw_src: 'b' is not in 'y'" },
  { "<platform version=\"4.1\">\n<zone id=\"z\" routing=\"Cluster\">\n<host "
    "id=\"a\"/></zone></platform>\n",
    ":2: host 'a' has no <host_link>" },
  { CLUSTER ("topology=\"RING\""), ":2: <cluster> topology: expected FLAT, TORUS" },
  { CLUSTER ("topology=\"TORUS\" topo_parameters=\"3,2\""),
    ":2: topo_parameters '3,2' make 6 hosts, but radical lists 4" },
  { CLUSTER ("topology=\"TORUS\" topo_parameters=\"2,0\""),
    ":2: <cluster> topo_parameters: expected dimensions" },
  { CLUSTER ("topology=\"TORUS\""), ":2: <cluster> topo_parameters: expected dimensions" },
  { CLUSTER ("topology=\"TORUS\" topo_parameters=\"2,2\" bb_bw=\"1GBps\""),
    ":2: a TORUS cluster has no backbone" },
  { CLUSTER ("topology=\"FAT_TREE\" topo_parameters=\"2;2,2;1,2\""),
    ":2: <cluster> topo_parameters: expected levels;down;up;cables" },
  { CLUSTER ("topology=\"FAT_TREE\" topo_parameters=\"2;2,2;1;1,2\""),
    ":2: <cluster> topo_parameters: expected levels;down;up;cables" },
  { CLUSTER ("topology=\"DRAGONFLY\" topo_parameters=\"4,1;1,1;1,1;1\""),
    ":2: 4 groups, but only 1 x 1 routers in each to join them" },
  { CLUSTER ("sharing_policy=\"FATPIPE\""), ":2: a FATPIPE link gives each flow" },
  { "<platform version=\"4.1\">\n<cluster id=\"c\" radical=\"9-0\" bw=\"1Bps\"/></platform>\n",
    ":2: <cluster> radical: expected ranges" },
  { PLATFORM ("<host id=\"a\"/>\n<cluster id=\"c\" radical=\"0-3\" bw=\"1Bps\" "
              "topology=\"TORUS\" topo_parameters=\"2,2\"/>\n"),
    ":4: a TORUS cluster is read when it is alone" },
};

START_TEST (test_refusals)
{
  import_check_refusal (pod_simgrid_xml_read, ".xml", refusals[_i].text, refusals[_i].message);
}
END_TEST

/* A flat cluster whose links are shared: one link up and down. */
START_TEST (test_shared_cluster)
{
  g_autoptr (PodTopology) topology
      = import_text (pod_simgrid_xml_read, ".xml", CLUSTER ("sharing_policy=\"SHARED\""));

  ck_assert_uint_eq (topology->n_devices, 4);
  ck_assert_uint_eq (topology->n_links, 4);
  ck_assert (topology->links[0].is_half_duplex);
  check_route (topology, 0, 3, 2e-6, 1e9);
}
END_TEST

static Suite *
simgrid_suite (void)
{
  Suite *suite = suite_create ("import-simgrid");
  TCase *tests = tcase_create ("import-simgrid");

  tcase_set_timeout (tests, 300);
  tcase_add_loop_test (tests, test_files, 0, G_N_ELEMENTS (cases));
  tcase_add_test (tests, test_small_platform);
  tcase_add_test (tests, test_shared_is_one_link);
  tcase_add_test (tests, test_grid5000);
  tcase_add_loop_test (tests, test_units, 0, G_N_ELEMENTS (units));
  tcase_add_test (tests, test_directions);
  tcase_add_test (tests, test_shortest);
  tcase_add_loop_test (tests, test_refusals, 0, G_N_ELEMENTS (refusals));
  tcase_add_test (tests, test_shared_cluster);
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (simgrid_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
