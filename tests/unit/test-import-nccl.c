#include "import/nccl-xml.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "support/import-case.h"
#include "support/route-walk.h"

/* PCIe, one direction: GT/s x lanes / 8 x 128/130 (x 0.8 up to 5 GT/s):
 * 8 x16: 15.7538, 16 x8: the same, 16 x16: 31.5077, 32 x16: 63.0154, 5 x16: 8.0 GB/s. */
#define GEN3 (16e9 * 128 / 130)
#define GEN4 (32e9 * 128 / 130)
#define GEN5 (64e9 * 128 / 130)
#define END  0.5e-6

/* Every element counts twice, for the two directions: a bridge hangs on what is above it without
 * latency, a GPU or NIC with 0.5 us; S sockets make S(S-1)/2 links; a port of a NIC one. Switches
 * are sockets, bridges, NICs, ports and the NVSwitch. */
static const ImportCase cases[] = {
  /* 2 sockets, 4 bridges, 8 GPUs, 4 NICs without port; NVLinks assumed */
  { "nccl/aws_p4d-24xl-topo.xml",
    "a100-40",
    POD_FABRIC_GRAPH,
    8,
    2 + 4 + 4 + 1,
    1,
    { { 2 * 4, GEN3, 0, false },
      { 2 * (8 + 4), GEN3, END, false },
      { 2, 10e9, 0, false },
      { 2 * 8, 300e9, 0.3e-6, false } } },
  { "nccl/aws_p4de-24xl-topo.xml",
    "a100",
    POD_FABRIC_GRAPH,
    8,
    2 + 4 + 4 + 1,
    1,
    { { 2 * 4, GEN3, 0, false },
      { 2 * (8 + 4), GEN3, END, false },
      { 2, 10e9, 0, false },
      { 2 * 8, 300e9, 0.3e-6, false } } },
  /* 4 sockets of AMD Zen 3, 4 GPUs without speed, whose NVLinks name themselves; one port */
  { "nccl/azure_ncv4-topo.xml",
    "a100",
    POD_FABRIC_GRAPH,
    4,
    4 + 1,
    1,
    { { 2 * 4, GEN3, END, false }, { 2, 12.5e9, 0, false }, { 2 * 6, 24e9, 0, false } } },
  /* 2 sockets, 8 GPUs and a NIC on them */
  { "nccl/azure_ndv2-topo.xml",
    "a100",
    POD_FABRIC_GRAPH,
    8,
    2 + 1 + 1,
    1,
    { { 2 * 9, GEN4, END, false }, { 2, 10e9, 0, false }, { 2 * 8, 300e9, 0.3e-6, false } } },
  /* 4 sockets of Zen 2 (family 23), 4 bridges, 8 GPUs, 8 NICs */
  { "nccl/azure_ndv4-topo.xml",
    "a100",
    POD_FABRIC_GRAPH,
    8,
    4 + 4 + 8 + 1,
    1,
    { { 2 * 4, GEN4, 0, false },
      { 2 * 16, GEN4, END, false },
      { 2 * 6, 16e9, 0, false },
      { 2 * 8, 300e9, 0.3e-6, false } } },
  /* 2 sockets of Sapphire Rapids (model 143), 8 bridges, 8 GPUs, 8 NICs */
  { "nccl/azure_ndv5-topo.xml",
    "h100",
    POD_FABRIC_GRAPH,
    8,
    2 + 8 + 8 + 1,
    1,
    { { 2 * 8, GEN5, 0, false },
      { 2 * 16, GEN5, END, false },
      { 2, 22e9, 0, false },
      { 2 * 8, 450e9, 0.3e-6, false } } },
  /* 2 sockets; 8 times a bridge at 5 GT/s with two below it, a GPU and a NIC with two ports of 180
   * Gb/s; 18 NVLinks a GPU */
  { "nccl/oci_H100-topology.xml",
    "h100",
    POD_FABRIC_GRAPH,
    8,
    2 + 8 * (3 + 1 + 2) + 1,
    1,
    { { 2 * 8, 8e9, 0, false },
      { 2 * 16, GEN5, 0, false },
      { 2 * 16, GEN5, END, false },
      { 2 * 16, 22.5e9, 0, false },
      { 2, 22e9, 0, false },
      { 2 * 8, 450e9, 0.3e-6, false } } },
  { "nccl/oci_topo-flattened.xml",
    "a100",
    POD_FABRIC_GRAPH,
    8,
    4 + 4 + 8 + 1,
    1,
    { { 2 * 4, GEN4, 0, false },
      { 2 * 16, GEN4, END, false },
      { 2 * 6, 16e9, 0, false },
      { 2 * 8, 300e9, 0.3e-6, false } } },
  { "nccl/oci_topo-flattened-b4.xml",
    "a100",
    POD_FABRIC_GRAPH,
    8,
    4 + 4 + 8 + 1,
    1,
    { { 2 * 4, GEN4, 0, false },
      { 2 * 16, GEN4, END, false },
      { 2 * 6, 24e9, 0, false },
      { 2 * 8, 300e9, 0.3e-6, false } } },
  /* 4 sockets, 12 bridges of 16 lanes and 16 of 8, 16 GCDs, 8 NICs with a port each; xGMI: 8 pairs
   * of 4 links, 4 of 2, 16 of 1 (each GCD lists its side) */
  { "nccl/rccl_topo_16p1h.xml",
    "mi250x",
    POD_FABRIC_GRAPH,
    16,
    4 + 28 + 8 + 8,
    1,
    { { 2 * 12, GEN4, 0, false },
      { 2 * 16, GEN3, 0, false },
      { 2 * 16, GEN5, END, false },
      { 2 * 8, GEN4, END, false },
      { 2 * 8, 25e9, 0, false },
      { 2 * 6, 16e9, 0, false },
      { 2 * 8, 200e9, 0.6e-6, false },
      { 2 * 4, 100e9, 0.6e-6, false },
      { 2 * 16, 50e9, 0.6e-6, false } } },
  /* 3 sockets, 8 GCDs of 3 links each, one port of 1 Gb/s on a socket */
  { "nccl/rccl_topo_8p_90a_1.xml",
    "mi250x",
    POD_FABRIC_GRAPH,
    8,
    3 + 1,
    1,
    { { 2 * 8, GEN4, END, false },
      { 2, 0.125e9, 0, false },
      { 2 * 3, 24e9, 0, false },
      { 8 * 3, 50e9, 0.6e-6, false } } },
  /* 2 sockets; 8 times 3 bridges, a GPU, a NIC with a port of 400 Gb/s; a full mesh */
  { "nccl/rccl_topo_8p_940.xml",
    "mi300x",
    POD_FABRIC_GRAPH,
    8,
    2 + 8 * (3 + 1 + 1),
    1,
    { { 2 * 24, GEN5, 0, false },
      { 2 * 16, GEN5, END, false },
      { 2 * 8, 50e9, 0, false },
      { 2, 22e9, 0, false },
      { 8 * 7, 64e9, 0.6e-6, false } } },
  /* 4 sockets, 20 bridges, 8 GPUs, 4 NICs with a port of 200 Gb/s; two full meshes of 4 */
  { "nccl/rccl_topo_8p_rome_4nics.xml",
    "mi250x",
    POD_FABRIC_GRAPH,
    8,
    4 + 20 + 4 + 4,
    1,
    { { 2 * 20, GEN4, 0, false },
      { 2 * 12, GEN4, END, false },
      { 2 * 4, 25e9, 0, false },
      { 2 * 6, 16e9, 0, false },
      { 8 * 3, 50e9, 0.6e-6, false } } },
  /* Two spellings of a speed: 18 NVLinks, 400000 Mbit/s = 50 GB/s, 32 GT/s x16 = 63 GB/s */
  { "nccl/p09.xml",
    "h100",
    POD_FABRIC_GRAPH,
    1,
    1 + 1 + 1 + 1,
    1,
    { { 2 * 2, GEN5, END, false }, { 2, 50e9, 0, false }, { 2, 18 * 25e9, 0.3e-6, false } } },
};

START_TEST (test_files)
{
  g_autoptr (PodTopology) topology = import_load (pod_nccl_xml_read, cases[_i].file);

  import_check (topology, &cases[_i]);
  import_check_round_trip (topology);
}
END_TEST

START_TEST (test_notes)
{
  g_autoptr (PodTopology) small = import_load (pod_nccl_xml_read, "nccl/p09.xml");
  g_autoptr (PodTopology) cloud = import_load (pod_nccl_xml_read, "nccl/azure_ndv5-topo.xml");
  g_autoptr (PodTopology) bare = import_load (pod_nccl_xml_read, "nccl/azure_ncv4-topo.xml");
  g_autoptr (PodTopology) old = import_load (pod_nccl_xml_read, "nccl/rccl_topo_8p_rome_4nics.xml");

  ck_assert (import_has_note (small, "18 NVLinks from each GPU"));
  ck_assert (import_has_note (small, "h100 by sm 90"));
  ck_assert (import_has_note (cloud, "h100 is a guess"));
  ck_assert (import_has_note (cloud, "lists no NVLinks: 18"));
  ck_assert (import_has_note (cloud, "8 NICs without <net>"));
  ck_assert (import_has_note (bare, "48 NVLinks that name their own GPU"));
  ck_assert (import_has_note (bare, "4 PCIe links without a speed"));
  ck_assert (import_has_note (old, "MI100"));
}
END_TEST

/* The way between GPUs is over NVLink where there is one, and over PCIe and sockets where not. */
START_TEST (test_routes)
{
  g_autoptr (PodTopology) dump = import_load (pod_nccl_xml_read, "nccl/oci_H100-topology.xml");
  g_autoptr (PodTopology) mesh = import_load (pod_nccl_xml_read, "nccl/rccl_topo_8p_940.xml");
  g_autoptr (PodTopology) pcie = import_load (pod_nccl_xml_read, "nccl/azure_ncv4-topo.xml");

  ck_assert_int_eq (route_walk (dump, 0, 7), 2); /* NVSwitch */
  ck_assert_int_eq (route_walk (mesh, 0, 7), 1); /* xGMI */
  ck_assert_int_eq (route_walk (pcie, 0, 3), 3); /* socket, socket */
}
END_TEST

#define GPU(attributes, inside)                                                                    \
  "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci busid=\"0:1\" class=\"0x030200\" " attributes  \
  ">\n<gpu dev=\"0\" sm=\"90\">\n" inside "</gpu>\n</pci>\n</cpu>\n</system>\n"

static const struct
{
  const char *text;
  const char *message; /* behind the file's name */
} refusals[] = {
  { "<system version=\"1\">\n<cpu>\n</system>\n", ":3: " },
  { "<graphs version=\"1\"/>\n", ":1: expected <system>, got <graphs>" },
  { "<system/>\n", ":1: <system> version: expected 1 (NCCL) or 2 (RCCL), got ''" },
  { "<system version=\"1\">\n<cpu numaid=\"0\"/>\n</system>\n", ":1: no GPU" },
  { "<system version=\"1\">\n<gpu/>\n</system>\n", ":2: <gpu> is not expected in <system>" },
  { "<system version=\"1\">\n<cpu>\n<pci class=\"0x030200\"/>\n</cpu></system>\n",
    ":3: <pci> lacks the attribute busid" },
  { "<system version=\"1\">\n<cpu>\n<pci busid=\"1\" class=\"0x030200\"/>\n"
    "<pci busid=\"1\" class=\"0x030200\"/>\n</cpu></system>\n",
    ":4: the busid of this GPU stands twice" },
  { "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci busid=\"1\" class=\"0x030200\"/>\n</cpu>\n"
    "<cpu numaid=\"0\"/>\n</system>\n",
    ":5: the name 'cpu0' stands twice" },
  { "<system version=\"1\">\n<cpu>\n<pci busid=\"1\" class=\"0x030200\"><gpu sm=\"90\"/></pci>\n"
    "<pci busid=\"2\" class=\"0x030200\"><gpu sm=\"80\"/></pci>\n</cpu></system>\n",
    ":4: a100 beside h100: a machine of two kinds" },
  { GPU ("link_speed=\"fast\"", ""), ":3: <pci> expected a link_speed such as '32.0 GT/s PCIe'" },
  { GPU ("link_speed=\"32 GB/s\"", ""), ":3: <pci> expected a link_speed" },
  { GPU ("link_speed=\"32 GT/s\" link_width=\"-1\"", ""), ":3: <pci> expected a link_speed" },
  { GPU ("", "<nvlink count=\"4\"/>\n"), ":5: <nvlink> lacks the attribute target" },
  { GPU ("", "<nvlink target=\"0:5\" count=\"many\"/>\n"),
    ":5: <nvlink> count: expected a whole number up to 1024, got 'many'" },
  { GPU ("", "<nvlink target=\"0:5\" count=\"4\" tclass=\"0x030200\"/>\n"),
    ":5: <nvlink> target: no GPU has the busid '0:5'" },
  { GPU ("", "<c2c bw=\"0\" count=\"1\"/>\n"), ":5: <c2c> needs a bw and a count above 0" },
  { "<!DOCTYPE x [<!ENTITY a \"b\">]>\n<system/>\n", ":1: a DOCTYPE may only name its DTD" },
  { "<system version=\"1\"><cpu><pci busid=\"1\" class=\"0x030200\"/>\n<nic>\n"
    "<net name=\"a\" speed=\"fast\"/></nic></cpu></system>\n",
    ":3: <net> speed: expected whole Mbit/s, got 'fast'" },
  { "<system version=\"1\"><cpu><pci busid=\"1\" class=\"0x030200\"/>\n<nic>\n"
    "<net name=\"a\" speed=\"1\" latency=\"-3\"/></nic></cpu></system>\n",
    ":3: <net> latency: expected microseconds, got '-3'" },
};

START_TEST (test_refusals)
{
  import_check_refusal (pod_nccl_xml_read, ".xml", refusals[_i].text, refusals[_i].message);
}
END_TEST

/* Clouds ship files without GPUs, too. */
START_TEST (test_files_without_gpus)
{
  static const char *const files[] = { "aws_g5.48xl-topo.xml", "aws_p5.48xl-topo.xml" };

  for (size_t i = 0; i < G_N_ELEMENTS (files); i++)
    {
      g_autofree char *file
          = g_build_filename (POD_SOURCE_DIR, "tests/data/import/nccl", files[i], NULL);
      g_autoptr (GError) error = NULL;
      ck_assert_ptr_null (pod_nccl_xml_read (file, &error));
      ck_assert_ptr_nonnull (strstr (error->message, ": no GPU: "));
    }
}
END_TEST

/* POWER 9 with NVLinks to the CPU, Grace with C2C, two hosts in one file, links listed by one side.
 */
START_TEST (test_other_links)
{
  g_autoptr (PodTopology) topology
      = import_text (pod_nccl_xml_read, ".xml",
                     "<system version=\"1\">\n"
                     "<cpu numaid=\"0\" host_hash=\"0xa\" arch=\"ppc64\">\n"
                     "<pci busid=\"1\" class=\"0x030200\"><gpu dev=\"1\" sm=\"90\">"
                     "<nvlink target=\"9\" count=\"3\" tclass=\"0x068001\"/>"
                     "<nvlink target=\"2\" count=\"2\" tclass=\"0x030200\"/></gpu></pci>\n"
                     "<pci busid=\"2\" class=\"0x030200\"><gpu dev=\"0\" sm=\"90\"/></pci>\n"
                     "</cpu>\n"
                     "<cpu numaid=\"0\" host_hash=\"0xb\" arch=\"arm64\">\n"
                     "<pci busid=\"1\" class=\"0x030200\"><gpu dev=\"0\" sm=\"90\">"
                     "<c2c bw=\"45000\" count=\"10\"/></gpu></pci>\n"
                     "</cpu></system>\n");
  PodLink link;
  unsigned n_to_cpu = 0;
  unsigned n_one_way = 0;
  unsigned n_c2c = 0;

  ck_assert_uint_eq (topology->n_devices, 3);
  ck_assert_uint_eq (topology->n_nodes, 2);
  ck_assert_uint_eq (pod_topology_node_of (topology, 1), 0);
  ck_assert_uint_eq (pod_topology_node_of (topology, 2), 1);
  for (uint32_t id = 0; id < topology->n_links; id++)
    {
      pod_topology_link (topology, id, &link);
      n_to_cpu += link.bytes_per_s.nominal > 74e9 && link.bytes_per_s.nominal < 76e9;
      /* dev 1 of the first host is device 1, and lists device 0 */
      n_one_way += link.bytes_per_s.nominal > 49e9 && link.bytes_per_s.nominal < 51e9
                   && link.from == 1 && link.to == 0;
      n_c2c += link.bytes_per_s.nominal > 449e9 && link.bytes_per_s.nominal < 451e9;
    }
  ck_assert_uint_eq (n_to_cpu, 2);
  ck_assert_uint_eq (n_one_way, 1);
  ck_assert_uint_eq (n_c2c, 2);
  import_check_round_trip (topology);
}
END_TEST

static Suite *
nccl_suite (void)
{
  Suite *suite = suite_create ("import-nccl");
  TCase *tests = tcase_create ("import-nccl");

  tcase_set_timeout (tests, 60);
  tcase_add_loop_test (tests, test_files, 0, G_N_ELEMENTS (cases));
  tcase_add_test (tests, test_notes);
  tcase_add_test (tests, test_routes);
  tcase_add_loop_test (tests, test_refusals, 0, G_N_ELEMENTS (refusals));
  tcase_add_test (tests, test_files_without_gpus);
  tcase_add_test (tests, test_other_links);
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (nccl_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
