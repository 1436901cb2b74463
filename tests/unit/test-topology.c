#include "topology/topology.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <glib/gstdio.h>

#include "base/data-path.h"
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

static char *
write_text (const char *name, const char *text)
{
  char *file = NULL;
  int handle = g_file_open_tmp (name, &file, NULL);

  ck_assert_int_ge (handle, 0);
  ck_assert (g_close (handle, NULL));
  ck_assert (g_file_set_contents (file, text, -1, NULL));
  return file;
}

/* -- shapes ------------------------------------------------------------------------------------ */

static const struct
{
  const char *text;
  unsigned n_chips;
  unsigned n_devices;
  unsigned n_hosts;
  unsigned n_nodes;
} shape_cases[] = {
  { "tpu-v5p:4x4x8", 128, 128, 32, 1 },
  { "tpu-v5p:4x4x8t", 128, 128, 32, 1 },
  { "tpu-v5p:16x20x28*4", 35840, 35840, 8960, 4 },
  { "tpu-v7x:4x4x576", 9216, 18432, 2304, 1 },
  { "tpu-v7x:4x4x144", 2304, 4608, 576, 1 }, /* a slice, not the full pod that some call it */
  { "tpu-v5e:4x4", 16, 16, 2, 1 },
  { "tpu-v5e:4x4x1", 16, 16, 2, 1 },
  { "tpu-v5p:64x64x64,unchecked", 262144, 262144, 65536, 1 },
  { "tpu-v5p:1x1x1", 1, 1, 1, 1 },
  { "h100:8", 8, 8, 1, 1 },
  { "H100:8", 8, 8, 1, 1 },
  { "h100:8x128", 1024, 1024, 128, 128 },
  { "h100: 8x128 , nic = 400 Gb/s, rails=8 ,oversub=1,tree=3", 1024, 1024, 128, 128 },
  { "h100:16x2,unchecked", 32, 32, 4, 2 },
  { "gb200:72x8", 576, 576, 144, 8 },
  { "mi300x:8x16", 128, 128, 16, 16 },
  { "mi250x:4x2", 8, 16, 2, 2 },
};

START_TEST (test_shapes)
{
  g_autoptr (PodTopology) topology = load (shape_cases[_i].text);

  ck_assert_str_eq (topology->name, shape_cases[_i].text);
  ck_assert_uint_eq (topology->n_chips, shape_cases[_i].n_chips);
  ck_assert_uint_eq (topology->n_devices, shape_cases[_i].n_devices);
  ck_assert_uint_eq (topology->n_hosts, shape_cases[_i].n_hosts);
  ck_assert_uint_eq (topology->n_nodes, shape_cases[_i].n_nodes);
}
END_TEST

static const struct
{
  const char *text;
  PodErrorCode code;
  const char *message;
} refusals[] = {
  { "", POD_ERROR_INVALID, "unknown topology ''" },
  { "nonsense", POD_ERROR_INVALID, "CHIP:SHAPE such as" },
  { "dgx-h10", POD_ERROR_INVALID, "did you mean 'dgx-h100'?" },
  { "h100", POD_ERROR_INVALID, "'h100' is a chip, not a machine" },
  { ":8", POD_ERROR_INVALID, "a chip stands before the colon" },
  { "H2000:8", POD_ERROR_INVALID, "unknown chip 'H2000', did you mean 'h200'?" },
  { "h100:", POD_ERROR_INVALID, "the shape is empty" },
  { "tpu-v5p:", POD_ERROR_INVALID, "the shape is empty" },
  { "tpu-v5p:4x0x4", POD_ERROR_INVALID, "an axis of 0 is empty" },
  { "tpu-v5p:-4x4x4", POD_ERROR_INVALID, "must be a whole number above 0" },
  { "tpu-v5p:4x4x", POD_ERROR_INVALID, "must be a whole number above 0" },
  { "tpu-v5p:4x4x4x4", POD_ERROR_INVALID, "at most 3 axes" },
  { "tpu-v5p:4x4x4*0", POD_ERROR_INVALID, "an axis of 0 is empty" },
  { "tpu-v5p:4x4x4*2x2", POD_ERROR_INVALID, "the number of slices" },
  { "tpu-v5p:4x4x4*", POD_ERROR_INVALID, "must be a whole number above 0" },
  { "tpu-v5p:4x4", POD_ERROR_INFEASIBLE, "slices have 3 axes" },
  { "tpu-v5e:4x4x4", POD_ERROR_INFEASIBLE, "slices have 2 axes" },
  { "tpu-v5p:4x4x6", POD_ERROR_INFEASIBLE, "take multiples of 4" },
  { "tpu-v5e:32x8", POD_ERROR_INFEASIBLE, "does not fit a tpu-v5e pod of 16x16 (256 chips)" },
  { "tpu-v5p:64x64x64", POD_ERROR_INFEASIBLE, "8960 chips" },
  { "tpu-v5p:4x4x4t", POD_ERROR_INFEASIBLE, "cannot be twisted" },
  { "tpu-v5p:4x8x12t", POD_ERROR_INFEASIBLE, "only kxkx2k and kx2kx2k" },
  { "tpu-v5p:2x2x4t", POD_ERROR_INFEASIBLE, "cannot be twisted" },
  { "tpu-v5e:8x16t", POD_ERROR_INFEASIBLE, "tpu-v5e slices cannot be twisted" },
  { "tpu-v5p:99999999x1x1", POD_ERROR_LIMIT, "longer than 16777216" },
  { "tpu-v5p:99999999999999999999x1x1", POD_ERROR_LIMIT, "longer than 16777216" },
  { "tpu-v5p:4096x4096x4096,unchecked", POD_ERROR_LIMIT, "more than 16777216 devices" },
  { "tpu-v5p:16x20x28*16777216", POD_ERROR_LIMIT, "more than 16777216 devices" },
  { "tpu-v5e:2x4,wrap=x", POD_ERROR_INFEASIBLE, "axis x of 2 chips has no room" },
  { "tpu-v5e:4x4,wrap=xyz", POD_ERROR_INVALID, "the axes that wrap" },
  { "tpu-v5p:4x4x4*2,rails=8", POD_ERROR_INVALID, "no option 'rails'" },
  { "tpu-v5p:4x4x4,oversub=4", POD_ERROR_INFEASIBLE, "oversub=" },
  { "h100:8x4t", POD_ERROR_INVALID, "slices and twists are of TPUs" },
  { "h100:8*4", POD_ERROR_INVALID, "slices and twists are of TPUs" },
  { "h100:8x4x2", POD_ERROR_INVALID, "two numbers" },
  { "h100:16x2", POD_ERROR_INFEASIBLE, "at most 8 chips, got 16: write h100:8x4" },
  { "h100:8x4000000", POD_ERROR_LIMIT, "16777216" },
  { "h100:8x4,nic=nan", POD_ERROR_INVALID, "nic: " },
  { "h100:8x4,nic=NaN GB/s", POD_ERROR_INVALID, "nic: " },
  { "h100:8x4,nic=50", POD_ERROR_INVALID, "has no unit" },
  { "h100:8x4,nic=-50GB/s", POD_ERROR_INVALID, "nic: " },
  { "h100:8x4,nic=0GB/s", POD_ERROR_INVALID, "must be above 0" },
  { "h100:8x4,nic", POD_ERROR_INVALID, "needs a value" },
  { "h100:8x4,rails=3", POD_ERROR_INFEASIBLE, "do not divide over 3 rails" },
  { "h100:8x4,tree=4", POD_ERROR_INVALID, "must be 1 to 3" },
  { "h100:8x4,tree=0", POD_ERROR_INVALID, "must be 1 to 3" },
  { "h100:8x64,tree=1", POD_ERROR_INFEASIBLE, "one level of leaf switches takes 32 nodes, got 64" },
  { "h100:8x64,tree=1,oversub=2", POD_ERROR_INFEASIBLE, "" },
  { "h100:8x4,oversub=0", POD_ERROR_INVALID, "between 1e-6 and 1e6" },
  { "h100:8x4,oversub=2:3", POD_ERROR_INVALID, "oversub: " },
  { "h100:8x4,oversub=1/1/1/1", POD_ERROR_INVALID, "one ratio for each level" },
  { "h100:8,oversub=2", POD_ERROR_INFEASIBLE, "oversub=" },
  { "h100:8x4,unit=3,pod=7", POD_ERROR_INFEASIBLE, "whole units" },
  { "h100:8x4,nodes=8", POD_ERROR_INVALID, "stands in the shape itself" },
  { "h100:8x4,railz=8", POD_ERROR_INVALID, "did you mean 'rails'" },
  { "h100:8x4,", POD_ERROR_INVALID, "no option ''" },
  { "h100:8x4,unchecked=perhaps", POD_ERROR_INVALID, "must be yes or no" },
};

START_TEST (test_refusals)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PodTopology) topology = pod_topology_load (refusals[_i].text, &error);

  ck_assert_msg (topology == NULL, "%s was taken", refusals[_i].text);
  ck_assert_msg (error->code == (int) refusals[_i].code, "%s: [%d] %s", refusals[_i].text,
                 error->code, error->message);
  ck_assert_msg (strstr (error->message, refusals[_i].message) != NULL, "%s: %s", refusals[_i].text,
                 error->message);
  ck_assert_ptr_null (strchr (error->message, '\n'));
}
END_TEST

/* A user's chip file stands for CHIP, also with a colon in its path. */
START_TEST (test_users_chip)
{
  g_autofree char *file = write_text (
      "podsim:chip-XXXXXX.xml", "<chip name=\"mine\" family=\"switch\"><peak_bf16 value=\"1e15\"/>"
                                "<hbm_capacity value=\"100 GB\"/><hbm_bandwidth value=\"4 TB/s\"/>"
                                "<scale_up_bandwidth value=\"400 GB/s\"/></chip>");
  g_autofree char *text = g_strconcat (file, ":8x2,oversub=7:1", NULL);
  g_autoptr (PodTopology) topology = load (text);
  g_autoptr (GError) error = NULL;
  g_autofree char *xml = pod_topology_to_xml (topology);

  ck_assert_uint_eq (topology->n_chips, 16);
  ck_assert_uint_gt (topology->assumptions->len, 0);
  ck_assert (pod_topology_set (topology, "chip.nic_bandwidth", "25 GB/s", &error));
  ck_assert_ptr_nonnull (strstr (xml, file));
  g_remove (file);
}
END_TEST

/* -- named machines ---------------------------------------------------------------------------- */

static const struct
{
  const char *name;
  unsigned n_chips;
} named_cases[] = {
  { "tpu-v2-pod", 256 },
  { "tpu-v3-pod", 1024 },
  { "tpu-v4-pod", 4096 },
  { "tpu-v5e-pod", 256 },
  { "tpu-v5p-pod", 8960 },
  { "tpu-v6e-pod", 256 },
  { "tpu-v7x-superpod", 9216 },
  { "tpu-v5p-2x6144", 12288 },
  { "tpu-v5e-50k", 50944 },
  { "dgx-a100", 8 },
  { "dgx-h100", 8 },
  { "dgx-h100-superpod-su", 256 },
  { "dgx-h100-superpod-4su", 1024 },
  { "dgx-b200-superpod-4su", 1024 },
  { "gb200-nvl72", 72 },
  { "dgx-gb200-superpod-su", 576 },
  { "dgx-b300", 8 },
  { "meta-24k-roce", 24576 },
  { "meta-24k-infiniband", 24576 },
  { "xai-colossus-1", 100000 },
  { "azure-ndv4", 8 },
  { "azure-ndv5", 8 },
  { "aws-p4d", 8 },
  { "aws-p5", 8 },
  { "aws-p5en", 8 },
  { "aws-p6-b200", 8 },
  { "aws-p6-b300", 8 },
  { "aws-p6e-gb200", 72 },
  { "aws-trn2", 16 },
  { "gcp-a3-mega", 8 },
  { "oci-h100", 8 },
  { "ibm-gx3d-h100", 8 },
  { "deepseek-h800", 2048 },
  { "alibaba-hpn7", 15360 },
  { "mi300x-node", 8 },
  { "example-two-islands", 10 },
};

START_TEST (test_named_machines)
{
  g_autoptr (PodTopology) topology = load (named_cases[_i].name);

  ck_assert_str_eq (topology->name, named_cases[_i].name);
  ck_assert_uint_eq (topology->n_chips, named_cases[_i].n_chips);
  ck_assert_int_ge (route_walk (topology, 0, topology->n_devices - 1), 1);
}
END_TEST

START_TEST (test_every_file_is_named_above)
{
  g_autoptr (GPtrArray) names = pod_data_list ("topologies", ".xml");

  for (unsigned i = 0; i < names->len; i++)
    {
      bool is_named = false;
      for (unsigned j = 0; j < G_N_ELEMENTS (named_cases); j++)
        is_named = is_named || strcmp (named_cases[j].name, g_ptr_array_index (names, i)) == 0;
      ck_assert_msg (is_named, "%s", (const char *) g_ptr_array_index (names, i));
    }
}
END_TEST

/* DeepSeek's planes: traffic between two NICs of different planes crosses NVLink at the sender. */
START_TEST (test_planes)
{
  g_autoptr (PodTopology) topology = load ("deepseek-h800");

  ck_assert_uint_eq (topology->level[1].n_groups, 8);
  ck_assert_uint_eq (topology->level[1].devices_below, 256);
  ck_assert_int_eq (route_walk (topology, 0, 8), 2);
  ck_assert_int_eq (route_walk (topology, 0, 9), 4);
  ck_assert_int_eq (route_walk (topology, 0, 2048 - 8), 4);
  ck_assert_int_eq (route_walk (topology, 0, 2048 - 1), 6);
}
END_TEST

/* -- changing and writing ---------------------------------------------------------------------- */

START_TEST (test_set)
{
  g_autoptr (PodTopology) topology = load ("aws-p5");
  g_autoptr (PodTopology) torus = load ("tpu-v5e:16x16");
  g_autoptr (GError) error = NULL;

  ck_assert (pod_topology_set (topology, "topology.nodes", "64", &error));
  ck_assert_uint_eq (topology->n_chips, 512);
  ck_assert_uint_eq (topology->n_levels, 2);
  ck_assert (pod_topology_set (topology, "topology.nic", "200Gb/s", &error));
  ck_assert (pod_topology_set (topology, "topology.oversub", "2", &error));
  ck_assert_double_eq_tol (topology->level[0].up_bytes_per_s.nominal, 32 * 25e9 / 2, 1);
  ck_assert (pod_topology_set (topology, "chip.hbm_bandwidth", "1.23TB/s", &error));
  ck_assert_double_eq_tol (topology->chip->hbm_bytes_per_s.book, 1.23e12, 1);
  ck_assert_uint_eq (topology->n_chips, 512);
  ck_assert (pod_topology_set (torus, "chip.wrap_rule", "never", &error));
  ck_assert (!torus->wraps[0] && !torus->wraps[1]);
}
END_TEST

static const struct
{
  const char *path;
  const char *value;
  const char *message;
} set_refusals[] = {
  { "chip.hbm_bandwith", "1 TB/s", "did you mean 'hbm_bandwidth'" },
  { "chip.hbm_bandwidth", "1", "has no unit" },
  { "topology.rails", "3", "do not divide over 3 rails" },
  { "topology.colour", "red", "no option 'colour'" },
  { "topology.nodes", "0", "must be 1 to" },
  { "model.layers", "8", "begin with chip. or topology." },
};

START_TEST (test_set_refusals)
{
  g_autoptr (PodTopology) topology = load ("h100:8x4");
  g_autoptr (GError) error = NULL;

  ck_assert (!pod_topology_set (topology, set_refusals[_i].path, set_refusals[_i].value, &error));
  ck_assert_msg (strstr (error->message, set_refusals[_i].message) != NULL, "%s", error->message);
  ck_assert_uint_eq (topology->n_chips, 32); /* as it was */
}
END_TEST

static const char *const written[]
    = { "tpu-v5p:4x4x8t",
        "tpu-v5p:16x20x28*4,nic=10GB/s,oversub=3",
        "tpu-v5e:8x4,wrap=xy",
        "tpu-v5e:16x16,wrap=none,unchecked",
        "h100:8",
        "h100:8x300,nic=400Gb/s,rails=4,oversub=1.5/7,tree=3,radix=32,unit=8,pod=64",
        "h100:8x70,separate-rails",
        "mi250x:4x3",
        "example-two-islands" };

/* The same machine comes back: every link, and the text itself. */
START_TEST (test_round_trip)
{
  g_autoptr (PodTopology) topology = load (written[_i]);
  g_autoptr (GError) error = NULL;
  ck_assert (pod_topology_set (topology, "chip.launch", "7 us", &error));
  g_autofree char *xml = pod_topology_to_xml (topology);
  g_autofree char *file = write_text ("podsim-topology-XXXXXX.xml", xml);
  g_autoptr (PodTopology) again = load (file);
  g_autofree char *xml_again = pod_topology_to_xml (again);

  g_remove (file);
  ck_assert_str_eq (xml, xml_again);
  ck_assert_str_eq (again->name, topology->name);
  ck_assert_double_eq_tol (again->chip->launch_s, 7e-6, 1e-15);
  ck_assert_uint_eq (again->n_links, topology->n_links);
  ck_assert_uint_eq (again->n_vertices, topology->n_vertices);
  for (uint32_t id = 0; id < topology->n_links; id++)
    {
      PodLink before, after;
      pod_topology_link (topology, id, &before);
      pod_topology_link (again, id, &after);
      ck_assert_int_eq (before.kind, after.kind);
      ck_assert_uint_eq (before.from, after.from);
      ck_assert_uint_eq (before.to, after.to);
      ck_assert_int_eq (before.latency_ps, after.latency_ps);
      ck_assert_double_eq (before.bytes_per_s.nominal, after.bytes_per_s.nominal);
      ck_assert_double_eq (before.bytes_per_s.book, after.bytes_per_s.book);
    }
}
END_TEST

/* -- graphs ------------------------------------------------------------------------------------ */

#define GRAPH(body) "<topology name=\"g\" chip=\"h100\">\n<graph>\n" body "</graph>\n</topology>\n"

static PodTopology *
load_graph (const char *text)
{
  g_autofree char *file = write_text ("podsim-graph-XXXXXX.xml", text);
  PodTopology *topology = load (file);

  g_remove (file);
  return topology;
}

/* Islands of 4 and 6 with one slow link between (astra-sim#371): no product of dimensions has that
 * shape. */
START_TEST (test_unequal_islands)
{
  g_autoptr (PodTopology) topology = load ("example-two-islands");

  ck_assert_int_eq (topology->fabric, POD_FABRIC_GRAPH);
  ck_assert_uint_eq (topology->n_devices, 10);
  ck_assert_uint_eq (topology->n_nodes, 2);
  ck_assert_uint_eq (topology->chips_per_node, 6);
  for (uint32_t from = 0; from < 10; from++)
    for (uint32_t to = 0; to < 10; to++)
      {
        int expected = from == to ? 0 : (from < 4) == (to < 4) ? 2 : 3;
        ck_assert_uint_eq (pod_topology_node_of (topology, from), from < 4 ? 0 : 1);
        ck_assert_int_eq (route_walk (topology, from, to), expected);
      }
  ck_assert_uint_eq (pod_topology_diameter (topology), 3);
  /* a0 ... a3, b0 against b1 ... b5: 10 GB/s from island a and b0's 50 */
  ck_assert_double_eq_tol (pod_topology_bisection (topology, false), 60e9, 1);
}
END_TEST

/* Two ways of two hops, NVSwitch and top-of-rack switch: all bytes go over the fast one
 * (astra-sim#273). A third, direct but slow, is not taken for having one hop only. */
START_TEST (test_fast_tier_wins)
{
  g_autoptr (PodTopology) topology = load_graph (
      GRAPH ("<node name=\"a\"/><node name=\"b\"/><switch name=\"tor\"/><switch name=\"nv\"/>\n"
             "<link from=\"a\" to=\"tor\" rate=\"50 GB/s\"/><link from=\"b\" to=\"tor\" rate=\"50 "
             "GB/s\"/>\n"
             "<link from=\"a\" to=\"nv\" rate=\"450 GB/s\"/><link from=\"b\" to=\"nv\" rate=\"450 "
             "GB/s\"/>\n"
             "<link from=\"a\" to=\"b\" rate=\"25 GB/s\"/>\n"));
  g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (uint32_t));

  ck_assert (pod_topology_route (topology, 0, 1, links));
  ck_assert_uint_eq (links->len, 2);
  for (unsigned i = 0; i < 2; i++)
    {
      PodLink link;
      pod_topology_link (topology, g_array_index (links, uint32_t, i), &link);
      ck_assert_double_eq (link.bytes_per_s.nominal, 450e9);
    }
  ck_assert_double_eq_tol (pod_topology_bisection (topology, false), 525e9, 1);
}
END_TEST

/* Equal ways spread by destination: two leaves, two spines, four devices a leaf. */
START_TEST (test_equal_ways_spread)
{
  GString *body = g_string_new (NULL);
  unsigned uses[2] = { 0, 0 };

  for (unsigned i = 0; i < 8; i++)
    g_string_append_printf (
        body, "<node name=\"n%u\"/><link from=\"n%u\" to=\"leaf%u\" rate=\"1 GB/s\"/>\n", i, i,
        i / 4);
  g_string_append (body, "<switch name=\"leaf0\"/><switch name=\"leaf1\"/><switch "
                         "name=\"s0\"/><switch name=\"s1\"/>\n");
  for (unsigned i = 0; i < 4; i++)
    g_string_append_printf (body, "<link from=\"leaf%u\" to=\"s%u\" rate=\"1 GB/s\"/>\n", i / 2,
                            i % 2);
  g_autofree char *graph = g_string_free (body, FALSE);
  g_autofree char *text = g_strconcat ("<topology name=\"g\" chip=\"h100\"><graph>", graph,
                                       "</graph></topology>", NULL);
  g_autoptr (PodTopology) topology = load_graph (text);

  for (uint32_t to = 4; to < 8; to++)
    {
      g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
      PodLink link;
      ck_assert (pod_topology_route (topology, 0, to, links));
      ck_assert_uint_eq (links->len, 4);
      pod_topology_link (topology, g_array_index (links, uint32_t, 1), &link);
      uses[link.to - 10]++;
    }
  ck_assert_uint_eq (uses[0], 2);
  ck_assert_uint_eq (uses[1], 2);
}
END_TEST

START_TEST (test_parts_and_one_way_links)
{
  g_autoptr (PodTopology) topology = load_graph (
      GRAPH ("<node name=\"a\"/><node name=\"b\"/><node name=\"c\"/>\n"
             "<link from=\"a\" to=\"b\" rate=\"1 GB/s\" duplex=\"simplex\" latency=\"5 ns\"/>\n"));
  g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  PodLink link;

  ck_assert_uint_eq (topology->n_links, 1);
  ck_assert_int_eq (route_walk (topology, 0, 1), 1);
  ck_assert_int_eq (route_walk (topology, 1, 0), -1);
  ck_assert (!pod_topology_route (topology, 0, 2, links));
  ck_assert_uint_eq (links->len, 0);
  pod_topology_link (topology, 0, &link);
  ck_assert_int_eq (link.latency_ps, 5000);
}
END_TEST

/* Against a search by breadth on random graphs of equal rates, where cheapest means fewest hops. */
START_TEST (test_random_graphs)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (20260103 + (guint32) _i);
  GString *body = g_string_new ("<topology name=\"g\" chip=\"h100\"><graph>");
  int n_nodes = g_rand_int_range (random, 1, 30);

  for (int i = 0; i < n_nodes; i++)
    g_string_append_printf (body, "<node name=\"n%d\" island=\"i%d\"/>", i, i % 3);
  for (int i = 0; i < n_nodes * 3 / 2 && n_nodes > 1; i++)
    {
      int from = g_rand_int_range (random, 0, n_nodes);
      int to = (from + g_rand_int_range (random, 1, n_nodes)) % n_nodes;
      g_string_append_printf (body,
                              "<link from=\"n%d\" to=\"n%d\" rate=\"10 GB/s\" duplex=\"%s\"/>",
                              from, to, g_rand_boolean (random) ? "full" : "simplex");
    }
  g_string_append (body, "</graph></topology>");
  g_autofree char *text = g_string_free (body, FALSE);
  g_autoptr (PodTopology) topology = load_graph (text);

  for (uint32_t from = 0; from < topology->n_devices; from++)
    {
      g_autofree int *distances = route_distances (topology, from, -1);
      for (uint32_t to = 0; to < topology->n_devices; to++)
        ck_assert_int_eq (route_walk (topology, from, to), distances[to]);
    }
}
END_TEST

/* A bus a = b = c (one rate for both ways), a wire a - c, and the ways b - c and back: */
START_TEST (test_half_duplex_and_given_routes)
{
  g_autoptr (PodTopology) topology = load_graph (
      GRAPH ("<node name=\"a\"/><node name=\"b\"/><node name=\"c\"/>\n"
             "<link name=\"ab\" from=\"a\" to=\"b\" rate=\"4 GB/s\" duplex=\"half\"/>\n"
             "<link name=\"bc\" from=\"c\" to=\"b\" rate=\"8 GB/s\"/>\n"
             "<link name=\"ac\" from=\"a\" to=\"c\" rate=\"1 GB/s\"/>\n"
             "<route from=\"c\" to=\"a\"><over link=\"ac\"/></route>\n"));
  g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autofree char *xml = pod_topology_to_xml (topology);
  g_autoptr (PodTopology) again = load_graph (xml);
  g_autofree char *xml_again = pod_topology_to_xml (again);

  ck_assert_uint_eq (topology->n_links, 5); /* ab is one */
  ck_assert (topology->links[0].is_half_duplex);
  /* a to b and b to a are the same link */
  ck_assert (pod_topology_route (topology, 0, 1, links) && pod_topology_route (topology, 1, 0, links));
  ck_assert_uint_eq (links->len, 2);
  ck_assert_uint_eq (g_array_index (links, uint32_t, 0), 0);
  ck_assert_uint_eq (g_array_index (links, uint32_t, 1), 0);
  /* a to c costs 1/4 + 1/8 over b and 1 straight; c to a is given: straight, against the wire's order */
  g_array_set_size (links, 0);
  ck_assert (pod_topology_route (topology, 0, 2, links));
  ck_assert_uint_eq (links->len, 2);
  ck_assert_uint_eq (g_array_index (links, uint32_t, 0), 0);
  ck_assert_uint_eq (g_array_index (links, uint32_t, 1), 2); /* b to c, against the file's order */
  g_array_set_size (links, 0);
  ck_assert (pod_topology_route (topology, 2, 0, links));
  ck_assert_uint_eq (links->len, 1);
  ck_assert_uint_eq (g_array_index (links, uint32_t, 0), 4);
  /* cut {a} from {b, c}: the bus and one direction of the wire */
  ck_assert_double_eq (pod_topology_bisection (topology, false), 5e9);
  ck_assert_uint_eq (pod_topology_diameter (topology), 2);
  ck_assert_str_eq (xml, xml_again);
}
END_TEST

#define TWO_LINKS                                                                                  \
  "<node name=\"a\"/><node name=\"b\"/><node name=\"c\"/>\n"                                      \
  "<link name=\"ab\" from=\"a\" to=\"b\" rate=\"1 GB/s\"/>"                                      \
  "<link name=\"bc\" from=\"b\" to=\"c\" rate=\"1 GB/s\"/>\n"

static const struct
{
  const char *text;
  const char *message; /* behind the file's name */
} file_refusals[] = {
  { "<topology name=\"t\" chip=\"h100\">\n</topology>\n", ":1: " },
  { "<topology name=\"t\" chip=\"h100\">\n<torus extent=\"4x4\"/>\n</topology>\n",
    ":2: h100 chips make a switched" },
  { "<topology name=\"t\" chip=\"tpu-v5e\">\n<switched nodes=\"4\" "
    "chips-per-node=\"8\"/>\n</topology>\n",
    ":2: tpu-v5e chips make a torus" },
  { "<topology name=\"t\" chip=\"tpu-v5e\">\n<torus extent=\"4x-4\"/>\n</topology>\n",
    ":2: extent: " },
  { "<topology name=\"t\" chip=\"tpu-v5e\">\n<torus extent=\"4x4\" slices=\"0\"/>\n</topology>\n",
    ":2: slices: " },
  { "<topology name=\"t\" chip=\"h100\">\n<switched nodes=\"4\" chips-per-node=\"8\" "
    "nic=\"400\"/>\n</topology>\n",
    ":2: nic: " },
  { "<topology name=\"t\" chip=\"h100\">\n<switched nodes=\"4\" chips-per-node=\"8\" "
    "colour=\"red\"/>\n</topology>\n",
    ":2: " },
  { "<topology name=\"t\" chip=\"h100\">\n<set field=\"colour\" value=\"red\"/>\n"
    "<switched nodes=\"4\" chips-per-node=\"8\"/>\n</topology>\n",
    ": no field 'colour'" },
  { GRAPH ("<node name=\"a\"/>\n<node name=\"a\"/>\n"), ":4: the name 'a' stands twice" },
  { GRAPH ("<node name=\"alpha\"/><node name=\"b\"/>\n<link from=\"alfa\" to=\"b\" rate=\"1 "
           "GB/s\"/>\n"),
    ":4: from: no node or switch 'alfa', did you mean 'alpha'?" },
  { GRAPH ("<node name=\"a\"/><node name=\"b\"/>\n<link from=\"a\" to=\"a\" rate=\"1 GB/s\"/>\n"),
    ":4: a link from 'a' to itself" },
  { GRAPH ("<node name=\"a\"/><node name=\"b\"/>\n<link from=\"a\" to=\"b\" rate=\"0 GB/s\"/>\n"),
    ":4: a link needs a rate above 0" },
  { GRAPH ("<node name=\"a\"/><node name=\"b\"/>\n<link from=\"a\" to=\"b\" rate=\"NaN GB/s\"/>\n"),
    ":4: " },
  { GRAPH ("<node name=\"a\"/><node name=\"b\"/>\n<link from=\"a\" to=\"b\" rate=\"5\"/>\n"),
    ":4: " },
  { GRAPH ("<switch name=\"a\"/>\n"), ":2: a graph needs a node" },
  { GRAPH ("<node name=\"a\"/><node name=\"b\"/>\n<link from=\"a\" to=\"b\" rate=\"1 GB/s\" "
           "duplex=\"both\"/>\n"),
    ":4: " },
  { GRAPH (TWO_LINKS "<route from=\"a\" to=\"c\">\n<over link=\"z\"/></route>\n"),
    ":6: no link has the name 'z'" },
  { GRAPH (TWO_LINKS "<route from=\"a\" to=\"c\"><over link=\"bc\"/></route>\n"),
    ":5: the route from 'a' to 'c' is at 'a', which link 'bc' (b - c) does not leave" },
  { GRAPH (TWO_LINKS "<route from=\"a\" to=\"c\"><over link=\"ab\"/></route>\n"),
    ":5: the route from 'a' to 'c' ends at 'b'" },
  { GRAPH (TWO_LINKS "<route from=\"a\" to=\"b\"><over link=\"ab\"/></route>\n"
                     "<route from=\"a\" to=\"b\"><over link=\"ab\"/></route>\n"),
    ":2: the route from 'a' to 'b' stands twice" },
  { GRAPH (TWO_LINKS "<link name=\"ab\" from=\"a\" to=\"c\" rate=\"1 GB/s\"/>\n"),
    ":5: the link name 'ab' stands twice" },
};

START_TEST (test_file_refusals)
{
  g_autofree char *file = write_text ("podsim-topology-XXXXXX.xml", file_refusals[_i].text);
  g_autoptr (GError) error = NULL;
  g_autoptr (PodTopology) topology = pod_topology_load (file, &error);

  g_remove (file);
  ck_assert_ptr_null (topology);
  ck_assert_msg (g_str_has_prefix (error->message, file), "%s", error->message);
  ck_assert_msg (g_str_has_prefix (error->message + strlen (file), file_refusals[_i].message), "%s",
                 error->message);
}
END_TEST

/* What the links below one of a tree carry at most: all that can come up to it, or all that it can go down to. */
static double
rate_below (const PodTopology *topology, const PodLink *link)
{
  double sum = 0;

  for (uint32_t i = 0; i < topology->n_links; i++)
    {
      PodLink below;

      pod_topology_link (topology, i, &below);
      if ((below.kind == POD_LINK_NIC && link->dim == 0)
          || (below.kind == POD_LINK_TREE && below.dim + 1 == link->dim))
        sum += link->sign > 0 ? (below.to == link->from) * below.bytes_per_s.nominal
                              : (below.from == link->to) * below.bytes_per_s.nominal;
    }
  return sum;
}

/* Machines whose groups are full, by whether uplinks of a level are thinned, and by whether any are not. */
static const struct
{
  const char *text;
  bool has_slack;
  bool has_tight;
} slack_cases[] = {
  { "h100:8x64", true, false },
  { "h100:8x64,oversub=2", false, true },
  { "h100:8x64,oversub=1.5", false, true },
  { "h100:8x64,rails=1", true, false },
  { "h100:8x64,tree=3,oversub=1/2", true, true },
  { "h100:8x64,tree=3,oversub=2/1", true, true },
  { "mi250x:4x64", true, false },
  { "gb200:72x16", true, false },
  { "h100:8x4", false, false },
  { "tpu-v5p:4x4x4*4,oversub=2", false, true },
};

/* Links that are said to hold nobody up cannot be filled by those below them; the other ones of a tree can. */
START_TEST (test_slack)
{
  g_autoptr (PodTopology) topology = load (slack_cases[_i].text);
  bool has_slack = false, has_tight = false;

  for (uint32_t i = 0; i < topology->n_links; i++)
    {
      const bool is_slack = pod_topology_link_is_slack (topology, i);
      PodLink link;

      pod_topology_link (topology, i, &link);
      has_slack |= is_slack;
      if (link.kind != POD_LINK_TREE)
        {
          ck_assert (!is_slack);
          continue;
        }
      has_tight |= !is_slack;
      if (is_slack)
        ck_assert_double_le (rate_below (topology, &link), link.bytes_per_s.nominal * (1 + 1e-12));
      else
        ck_assert_double_gt (rate_below (topology, &link), link.bytes_per_s.nominal * (1 + 1e-12));
    }
  ck_assert (has_slack == slack_cases[_i].has_slack && has_tight == slack_cases[_i].has_tight);
}
END_TEST

static Suite *
topology_suite (void)
{
  Suite *suite = suite_create ("topology");
  TCase *tests = tcase_create ("topology");

  tcase_set_timeout (tests, 60);
  tcase_add_loop_test (tests, test_shapes, 0, G_N_ELEMENTS (shape_cases));
  tcase_add_loop_test (tests, test_refusals, 0, G_N_ELEMENTS (refusals));
  tcase_add_test (tests, test_users_chip);
  tcase_add_loop_test (tests, test_named_machines, 0, G_N_ELEMENTS (named_cases));
  tcase_add_test (tests, test_every_file_is_named_above);
  tcase_add_test (tests, test_planes);
  tcase_add_loop_test (tests, test_slack, 0, G_N_ELEMENTS (slack_cases));
  tcase_add_test (tests, test_set);
  tcase_add_loop_test (tests, test_set_refusals, 0, G_N_ELEMENTS (set_refusals));
  tcase_add_loop_test (tests, test_round_trip, 0, G_N_ELEMENTS (written));
  tcase_add_test (tests, test_unequal_islands);
  tcase_add_test (tests, test_fast_tier_wins);
  tcase_add_test (tests, test_equal_ways_spread);
  tcase_add_test (tests, test_parts_and_one_way_links);
  tcase_add_test (tests, test_half_duplex_and_given_routes);
  tcase_add_loop_test (tests, test_random_graphs, 0, 20);
  tcase_add_loop_test (tests, test_file_refusals, 0, G_N_ELEMENTS (file_refusals));
  suite_add_tcase (suite, tests);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (topology_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
