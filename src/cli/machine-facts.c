#include "cli/machine-facts.h"

#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "base/units.h"

/* Facts of a machine: size, links, switches, bisection, diameter. */

static unsigned
count_all_links (const GArray *classes)
{
  unsigned n_links = 0;

  for (guint i = 0; i < classes->len; i++)
    n_links += g_array_index (classes, PodLinkClass, i).n_links;
  return n_links;
}

/* Real switches: crossbars of the nodes and those of the tree; of a graph as many as it lists. */
static unsigned
count_switches (const PodTopology *topology)
{
  unsigned n_switches = 0;

  if (topology->fabric == POD_FABRIC_GRAPH)
    return topology->n_vertices - topology->n_devices;
  if (topology->fabric == POD_FABRIC_SWITCHED && !topology->is_full_mesh
      && topology->chips_per_node > 1)
    n_switches = topology->n_nodes * topology->chip->scale_up_switches;
  for (unsigned level = 0; level < topology->n_levels && topology->fabric == POD_FABRIC_SWITCHED;
       level++)
    n_switches += topology->level[level].n_switches;
  return n_switches;
}

/* Chips of one slice or node over those of a full pod or domain. */
static double
part_of_pod (const PodTopology *topology)
{
  return topology->chips_per_node / pod_chip_full_size (topology->chip);
}

/* ---- text ---- */

/* "16 x 20 x 28". Returns: (transfer full) */
static char *
format_extent (const unsigned *extent, unsigned n_dims)
{
  GString *out = g_string_new (NULL);

  for (unsigned axis = 0; axis < n_dims; axis++)
    g_string_append_printf (out, "%s%u", axis > 0 ? " x " : "", extent[axis]);
  return g_string_free (out, FALSE);
}

static void
append_wraps (const PodTopology *topology, GString *out)
{
  unsigned n_wraps = 0;

  for (unsigned axis = 0; axis < topology->n_dims; axis++)
    if (topology->wraps[axis])
      g_string_append_printf (out, "%s%c", n_wraps++ == 0 ? "; wraps around along " : ", ",
                              "xyz"[axis]);
  if (n_wraps == 0)
    g_string_append (out, "; no axis wraps around");
  if (n_wraps > 0 && n_wraps < topology->n_dims)
    g_string_append (out, ", the other axes are lines");
}

static void
append_torus (const PodTopology *topology, GString *out)
{
  g_autofree char *extent = format_extent (topology->extent, topology->n_dims);

  if (topology->n_slices > 1)
    g_string_append_printf (out, "%u slices, joined by a data-centre network, each ",
                            topology->n_slices);
  g_string_append_printf (out, "%s%s of %s chips",
                          topology->is_twisted ? "a twisted torus" : "an ICI torus",
                          topology->wraps[0] || topology->wraps[1] || topology->wraps[2]
                              ? ""
                              : " without wrap links (a mesh)",
                          extent);
  append_wraps (topology, out);
}

static void
append_switched (const PodTopology *topology, GString *out)
{
  if (topology->n_nodes > 1)
    g_string_append_printf (out, "%u nodes, each ", topology->n_nodes);
  g_string_append_printf (out, "%u chip%s", topology->chips_per_node,
                          topology->chips_per_node == 1 ? "" : "s");
  if (topology->chips_per_node > 1)
    g_string_append (out, topology->is_full_mesh ? " in a full mesh" : " behind one switch domain");
  if (topology->n_levels > 0)
    g_string_append_printf (out, "; a fat tree of %u level%s, %u rail%s%s", topology->n_levels,
                            topology->n_levels == 1 ? "" : "s", topology->n_rails,
                            topology->n_rails == 1 ? "" : "s",
                            topology->has_separate_rails ? " that no switch joins" : "");
}

static void
append_shape (const PodTopology *topology, GString *out)
{
  switch (topology->fabric)
    {
    case POD_FABRIC_TORUS:
      append_torus (topology, out);
      break;
    case POD_FABRIC_SWITCHED:
      append_switched (topology, out);
      break;
    case POD_FABRIC_GRAPH:
      g_string_append_printf (out, "an explicit graph of %u devices in %u island%s",
                              topology->n_devices, topology->n_nodes,
                              topology->n_nodes == 1 ? "" : "s");
      break;
    }
  g_string_append_c (out, '\n');
}

static void
add_row (PodTable *table, const char *what, const char *value, const char *remark)
{
  const char *const cells[] = { what, value, remark };

  pod_table_add_row (table, cells);
}

static void
add_count (PodTable *table, const char *what, uint64_t value, const char *remark)
{
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, value);

  add_row (table, what, text, remark);
}

/* "book 4.32 TB/s" where the book's value is another. Returns: (transfer full) */
static char *
book_remark (double nominal, double book, char *(*format) (double value))
{
  g_autofree char *text = format (book);

  return nominal < book || nominal > book ? g_strconcat ("book ", text, NULL) : g_strdup ("");
}

static char *
format_flops_per_s (double value)
{
  g_autofree char *flops = pod_format_flops (value);

  return g_strconcat (flops, "/s", NULL);
}

static char *
format_decimal_bytes (double value)
{
  return pod_format_bytes (value, false);
}

static void
add_rated (PodTable *table, const char *what, double nominal, double book,
           char *(*format) (double value))
{
  g_autofree char *text = format (nominal);
  g_autofree char *remark = book_remark (nominal, book, format);

  add_row (table, what, text, remark);
}

/* Returns: (transfer full) */
static char *
size_remark (const PodTopology *topology)
{
  const PodChip *chip = topology->chip;
  double full = pod_chip_full_size (chip);
  bool is_torus = topology->fabric == POD_FABRIC_TORUS;
  const char *whole = is_torus ? "pod" : "scale-up domain";
  const char *part = is_torus ? "slice" : "node";
  double ratio = part_of_pod (topology);

  if (topology->fabric == POD_FABRIC_GRAPH)
    return g_strdup ("");
  if (ratio < 1)
    return g_strdup_printf ("a %s is %.3g %% of a full %s of %.0f", part, ratio * 100, whole, full);
  return g_strdup_printf (ratio > 1 ? "a %s is more than a full %s of %.0f"
                                    : "a %s is a full %s of %.0f",
                          part, whole, full);
}

/* Returns: (transfer full) */
static char *
host_remark (const PodTopology *topology)
{
  g_autofree char *block = NULL;

  if (topology->fabric == POD_FABRIC_GRAPH)
    return g_strdup ("one an island");
  if (topology->fabric == POD_FABRIC_SWITCHED)
    return g_strdup_printf ("of %u chips",
                            MIN (topology->chip->chips_per_host, topology->chips_per_node));
  block = format_extent (topology->host_extent, topology->n_dims);
  return g_strdup_printf ("of %s chips", block);
}

static void
print_sizes (const PodTopology *topology, unsigned n_links, GString *out)
{
  static const char *const columns[] = { "machine", ">", "", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *size = size_remark (topology);
  g_autofree char *hosts = host_remark (topology);
  g_autofree char *text = NULL;
  const PodChip *chip = topology->chip;
  const PodRated *peak = &chip->peak_flops_per_s[POD_DTYPE_BF16];
  double n_chips = topology->n_chips;

  add_count (table, "chips", topology->n_chips, size);
  add_count (table, "devices", topology->n_devices, chip->devices_per_chip > 1 ? "two a chip" : "");
  add_count (table, "cores", (uint64_t) topology->n_chips * chip->cores_per_chip, "");
  add_count (table, "hosts", topology->n_hosts, hosts);
  add_count (table, "switches", count_switches (topology),
             topology->fabric == POD_FABRIC_TORUS && topology->n_slices > 1
                 ? "those of the DCN are not described"
                 : "");
  add_count (table, "links", n_links, "each one direction");
  add_rated (table, "bisection", pod_topology_bisection (topology, false),
             pod_topology_bisection (topology, true), pod_format_bytes_per_s);
  add_count (table, "diameter", pod_topology_diameter (topology), "links of the longest route");
  add_rated (table, "bf16 peak", n_chips * peak->nominal, n_chips * peak->book, format_flops_per_s);
  add_rated (table, "HBM", n_chips * chip->hbm_bytes.nominal, n_chips * chip->hbm_bytes.book,
             format_decimal_bytes);
  add_rated (table, "HBM rate", n_chips * chip->hbm_bytes_per_s.nominal,
             n_chips * chip->hbm_bytes_per_s.book, pod_format_bytes_per_s);
  text = pod_table_to_text (table);
  g_string_append (out, text);
}

static const char *
ends_of (const PodTopology *topology, const PodLinkClass *links)
{
  switch (links->kind)
    {
    case POD_LINK_ICI:
      return "between neighbours of the torus";
    case POD_LINK_DIE:
      return "between the two devices of a chip";
    case POD_LINK_SCALE_UP:
      return topology->is_full_mesh ? "between two chips of a node"
                                    : "between a chip and its scale-up switches";
    case POD_LINK_NIC:
      return topology->fabric == POD_FABRIC_TORUS
                 ? "between a chip's share of its host's NICs and the DCN"
                 : "between a chip's NIC and its leaf switch";
    case POD_LINK_TREE:
      return links->level == 0 ? "all uplinks of one leaf" : "all uplinks of one group of switches";
    case POD_LINK_EXPLICIT:
      return "listed in the file";
    }
  g_assert_not_reached ();
}

static void
print_links (const PodTopology *topology, const GArray *classes, GString *out)
{
  static const char *const columns[]
      = { "links", ">number", ">one direction", ">book", ">latency", "", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;

  for (guint i = 0; i < classes->len; i++)
    {
      const PodLinkClass *links = &g_array_index (classes, PodLinkClass, i);
      g_autofree char *count = g_strdup_printf ("%u", links->n_links);
      g_autofree char *rate = pod_format_bytes_per_s (links->bytes_per_s.nominal);
      g_autofree char *book = pod_format_bytes_per_s (links->bytes_per_s.book);
      g_autofree char *latency
          = pod_format_seconds ((double) links->latency_ps / (double) POD_PS_PER_S);
      const char *const cells[] = { pod_link_kind_name (links->kind), count, rate, book, latency,
                                    ends_of (topology, links) };

      pod_table_add_row (table, cells);
    }
  text = pod_table_to_text (table);
  g_string_append (out, text);
}

/* The tree of a switched machine; the DCN of slices is one core without a level worth a line,
 * unless it is thinned. */
static void
print_levels (const PodTopology *topology, GString *out)
{
  static const char *const columns[] = { "level",
                                         ">switches",
                                         ">groups",
                                         ">nodes under one",
                                         ">devices under one",
                                         ">oversubscription",
                                         ">uplink of one",
                                         NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;

  for (unsigned level = 0; level < topology->n_levels; level++)
    {
      bool is_top = level + 1 == topology->n_levels;
      g_autofree char *name = g_strdup_printf ("%u %s", level,
                                               is_top && level > 0 ? "top"
                                               : level == 0        ? "leaves"
                                                                   : "spines");
      g_autofree char *switches = g_strdup_printf ("%u", topology->level[level].n_switches);
      g_autofree char *groups = g_strdup_printf ("%u", topology->level[level].n_groups);
      g_autofree char *span = g_strdup_printf ("%u", topology->level[level].span_nodes);
      g_autofree char *devices = g_strdup_printf ("%u", topology->level[level].devices_below);
      g_autofree char *ratio
          = is_top ? g_strdup ("")
                   : g_strdup_printf ("%.4g:1", topology->level[level].oversubscription);
      g_autofree char *uplink
          = is_top ? g_strdup ("")
                   : pod_format_bytes_per_s (topology->level[level].up_bytes_per_s.nominal);
      const char *const cells[] = { name, switches, groups, span, devices, ratio, uplink };

      pod_table_add_row (table, cells);
    }
  text = pod_table_to_text (table);
  g_string_append_printf (out, "\n%s", text);
}

void
pod_machine_facts_print (const PodTopology *topology, const char *title, const char *source,
                         GString *out)
{
  g_autoptr (GArray) classes = pod_machine_links (topology);

  g_string_append_printf (out, "%s%s%s\n", topology->name, title != NULL ? ": " : "",
                          title != NULL ? title : "");
  append_shape (topology, out);
  if (source != NULL)
    g_string_append_printf (out, "source: %s\n", source);
  g_string_append_c (out, '\n');
  print_sizes (topology, count_all_links (classes), out);
  g_string_append_c (out, '\n');
  print_links (topology, classes, out);
  if (topology->fabric == POD_FABRIC_SWITCHED ? topology->n_levels > 0 : topology->n_levels > 1)
    print_levels (topology, out);
}

/* ---- JSON ---- */

static void
set_link_classes (const GArray *classes, JsonObject *root)
{
  JsonArray *array = pod_result_get_array (root, "topology.link_classes");

  for (guint i = 0; i < classes->len; i++)
    {
      const PodLinkClass *links = &g_array_index (classes, PodLinkClass, i);
      JsonObject *object = json_object_new ();

      pod_result_set_string (object, "kind", pod_link_kind_name (links->kind));
      if (links->level >= 0)
        pod_result_set_int (object, "level", links->level);
      pod_result_set_int (object, "links", links->n_links);
      pod_result_set_double (object, "bytes_per_s", links->bytes_per_s.nominal);
      pod_result_set_double (object, "book_bytes_per_s", links->bytes_per_s.book);
      pod_result_set_double (object, "latency_s",
                             (double) links->latency_ps / (double) POD_PS_PER_S);
      json_array_add_object_element (array, object);
    }
}

static void
set_levels (const PodTopology *topology, JsonObject *root)
{
  JsonArray *array = pod_result_get_array (root, "topology.levels");

  for (unsigned level = 0; level < topology->n_levels; level++)
    {
      JsonObject *object = json_object_new ();

      pod_result_set_int (object, "switches", topology->level[level].n_switches);
      pod_result_set_int (object, "groups", topology->level[level].n_groups);
      pod_result_set_int (object, "span_nodes", topology->level[level].span_nodes);
      pod_result_set_int (object, "devices_below", topology->level[level].devices_below);
      pod_result_set_double (object, "oversubscription_ratio",
                             topology->level[level].oversubscription);
      pod_result_set_double (object, "up_bytes_per_s",
                             topology->level[level].up_bytes_per_s.nominal);
      pod_result_set_double (object, "book_up_bytes_per_s",
                             topology->level[level].up_bytes_per_s.book);
      pod_result_set_double (object, "hop_s",
                             (double) topology->level[level].hop_ps / (double) POD_PS_PER_S);
      json_array_add_object_element (array, object);
    }
}

static void
set_torus (const PodTopology *topology, JsonObject *root)
{
  JsonArray *extent = pod_result_get_array (root, "topology.extent");
  JsonArray *wraps = pod_result_get_array (root, "topology.wraps");
  JsonArray *host = pod_result_get_array (root, "topology.host_extent");

  for (unsigned axis = 0; axis < topology->n_dims; axis++)
    {
      json_array_add_int_element (extent, topology->extent[axis]);
      json_array_add_boolean_element (wraps, topology->wraps[axis]);
      json_array_add_int_element (host, topology->host_extent[axis]);
    }
  pod_result_set_bool (root, "topology.twisted", topology->is_twisted);
  pod_result_set_int (root, "topology.slices", topology->n_slices);
}

static void
set_switched (const PodTopology *topology, JsonObject *root)
{
  pod_result_set_int (root, "topology.rails", topology->n_rails);
  pod_result_set_bool (root, "topology.separate_rails", topology->has_separate_rails);
  pod_result_set_bool (root, "topology.rail_optimised", topology->is_rail_optimised);
  pod_result_set_bool (root, "topology.full_mesh", topology->is_full_mesh);
}

static void
set_counts (const PodTopology *topology, unsigned n_links, JsonObject *root)
{
  pod_result_set_int (root, "topology.chips", topology->n_chips);
  pod_result_set_int (root, "topology.devices", topology->n_devices);
  pod_result_set_int (root, "topology.cores",
                      (int64_t) topology->n_chips * topology->chip->cores_per_chip);
  pod_result_set_int (root, "topology.hosts", topology->n_hosts);
  pod_result_set_int (root, "topology.nodes", topology->n_nodes);
  pod_result_set_int (root, "topology.chips_per_node", topology->chips_per_node);
  pod_result_set_int (root, "topology.switches", count_switches (topology));
  pod_result_set_int (root, "topology.links", n_links);
}

/* Sums over the machine, nominal and as the book has them. */
static void
set_totals (const PodTopology *topology, bool is_book, JsonObject *root)
{
  const PodChip *chip = topology->chip;
  const char *prefix = is_book ? "topology.book." : "topology.";
  const struct
  {
    const char *key;
    const PodRated *of_chip;
  } totals[] = {
    { "peak_flops_per_s", &chip->peak_flops_per_s[POD_DTYPE_BF16] },
    { "hbm_bytes", &chip->hbm_bytes },
    { "hbm_bytes_per_s", &chip->hbm_bytes_per_s },
  };
  g_autofree char *bisection = g_strconcat (prefix, "bisection_bytes_per_s", NULL);

  for (size_t i = 0; i < G_N_ELEMENTS (totals); i++)
    {
      g_autofree char *path = g_strconcat (prefix, totals[i].key, NULL);

      pod_result_set_double (
          root, path,
          topology->n_chips * (is_book ? totals[i].of_chip->book : totals[i].of_chip->nominal));
    }
  pod_result_set_double (root, bisection, pod_topology_bisection (topology, is_book));
}

void
pod_machine_facts_set (const PodTopology *topology, const char *title, const char *source,
                       JsonObject *root)
{
  static const char *const fabrics[] = {
    [POD_FABRIC_TORUS] = "torus", [POD_FABRIC_SWITCHED] = "switched", [POD_FABRIC_GRAPH] = "graph"
  };
  g_autoptr (GArray) classes = pod_machine_links (topology);
  JsonArray *assumptions;

  pod_result_set_string (root, "topology.name", topology->name);
  if (title != NULL)
    pod_result_set_string (root, "topology.title", title);
  if (source != NULL)
    pod_result_set_string (root, "topology.source", source);
  pod_result_set_string (root, "topology.fabric", fabrics[topology->fabric]);
  set_counts (topology, count_all_links (classes), root);
  if (topology->fabric == POD_FABRIC_TORUS)
    set_torus (topology, root);
  if (topology->fabric == POD_FABRIC_SWITCHED)
    set_switched (topology, root);
  if (topology->fabric != POD_FABRIC_GRAPH)
    {
      pod_result_set_double (root, "topology.pod_ratio", part_of_pod (topology));
      pod_result_set_bool (root, "topology.full_pod", !(part_of_pod (topology) < 1));
    }
  pod_result_set_int (root, "topology.diameter_hops", pod_topology_diameter (topology));
  set_totals (topology, false, root);
  set_totals (topology, true, root);
  set_link_classes (classes, root);
  set_levels (topology, root);
  assumptions = pod_result_get_array (root, "topology.assumptions");
  for (guint i = 0; i < topology->assumptions->len; i++)
    json_array_add_string_element (assumptions, g_ptr_array_index (topology->assumptions, i));
}
