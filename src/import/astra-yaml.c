#include "import/astra-yaml.h"

#include <string.h>

#include "base/error.h"
#include "base/yaml.h"
#include "topology/draft.h"

enum
{
  MAX_DIMS = 16,
  MAX_NPUS = 1 << 16,
  MAX_LINKS = 1 << 21,
};

typedef enum
{
  BLOCK_RING,
  BLOCK_FULLY_CONNECTED,
  BLOCK_SWITCH,
} Block;

static const char *const block_names[] = {
  [BLOCK_RING] = "Ring",
  [BLOCK_FULLY_CONNECTED] = "FullyConnected",
  [BLOCK_SWITCH] = "Switch",
};

typedef struct
{
  Block block;
  unsigned n_npus;
  double bytes_per_s; /* one link, one direction */
  double latency_s;   /* one link */
} Dim;

typedef struct
{
  const PodYaml *yaml;
  unsigned n_dims;
  Dim dims[MAX_DIMS];
  unsigned n_npus; /* of all dimensions */
} Network;

/* -- reading ----------------------------------------------------------------------------------- */

static bool
read_block (Network *network, const PodYamlNode *node, Dim *dim, GError **error)
{
  const char *text = pod_yaml_text (network->yaml, node, error);

  if (text == NULL)
    return false;
  for (unsigned i = 0; i < G_N_ELEMENTS (block_names); i++)
    if (strcmp (text, block_names[i]) == 0)
      {
        dim->block = (Block) i;
        return true;
      }
  return pod_yaml_error (network->yaml, node, error,
                         "topology: expected Ring, FullyConnected or Switch, got '%s'", text);
}

static bool
read_count (Network *network, const PodYamlNode *node, Dim *dim, GError **error)
{
  uint64_t count = 0;

  if (!pod_yaml_uint (network->yaml, node, &count, error))
    return false;
  if (count == 0 || count > MAX_NPUS)
    return pod_yaml_error (network->yaml, node, error, "npus_count: expected 1 to %d, got '%s'",
                           MAX_NPUS, node->text);
  dim->n_npus = (unsigned) count;
  return true;
}

/* GB/s are 2^30 B/s: ASTRA-sim converts so (astra-network-analytical, bw_GBps_to_Bpns). */
static bool
read_bandwidth (Network *network, const PodYamlNode *node, Dim *dim, GError **error)
{
  double value = 0;

  if (!pod_yaml_double (network->yaml, node, &value, error))
    return false;
  if (!(value > 0) || value > 1e9)
    return pod_yaml_error (network->yaml, node, error, "bandwidth: expected GB/s above 0, got '%s'",
                           node->text);
  dim->bytes_per_s = value * 1073741824.0;
  return true;
}

static bool
read_latency (Network *network, const PodYamlNode *node, Dim *dim, GError **error)
{
  double value = 0;

  if (!pod_yaml_double (network->yaml, node, &value, error))
    return false;
  if (!(value >= 0) || value > 1e12)
    return pod_yaml_error (network->yaml, node, error,
                           "latency: expected nanoseconds from 0 to 1e12, got '%s'", node->text);
  dim->latency_s = value / 1e9;
  return true;
}

static const struct
{
  const char *key;
  bool (*read) (Network *network, const PodYamlNode *node, Dim *dim, GError **error);
} lists[] = {
  { "topology", read_block },
  { "npus_count", read_count },
  { "bandwidth", read_bandwidth },
  { "latency", read_latency },
};

static bool
check_keys (const PodYaml *yaml, GError **error)
{
  if (yaml->root == NULL || yaml->root->kind != POD_YAML_MAPPING)
    return pod_yaml_error (yaml, yaml->root, error,
                           "expected topology, npus_count, bandwidth and latency");
  for (unsigned i = 0; i < yaml->root->keys->len; i++)
    {
      const PodYamlNode *key = g_ptr_array_index (yaml->root->keys, i);
      bool is_known = false;
      for (size_t k = 0; k < G_N_ELEMENTS (lists); k++)
        is_known = is_known || strcmp (key->text, lists[k].key) == 0;
      if (!is_known)
        return pod_yaml_error (
            yaml, key, error,
            "'%s' is not read: a network has topology, npus_count, bandwidth and "
            "latency",
            key->text);
    }
  return true;
}

static bool
read_list (Network *network, size_t which, GError **error)
{
  const PodYamlNode *list = pod_yaml_get (network->yaml->root, lists[which].key);
  unsigned length = pod_yaml_length (list);

  if (list == NULL)
    return pod_yaml_error (network->yaml, network->yaml->root, error, "%s is missing",
                           lists[which].key);
  if (list->kind != POD_YAML_SEQUENCE || length == 0 || length > MAX_DIMS)
    return pod_yaml_error (network->yaml, list, error, "%s: expected a list of 1 to %d entries",
                           lists[which].key, MAX_DIMS);
  if (which > 0 && length != network->n_dims)
    return pod_yaml_error (network->yaml, list, error,
                           "%s: %u entries, but topology has %u dimensions", lists[which].key,
                           length, network->n_dims);
  network->n_dims = length;
  for (unsigned i = 0; i < length; i++)
    if (!lists[which].read (network, pod_yaml_item (list, i), &network->dims[i], error))
      return false;
  return true;
}

static bool
read_network (Network *network, GError **error)
{
  uint64_t n_npus = 1;

  if (!check_keys (network->yaml, error))
    return false;
  for (size_t i = 0; i < G_N_ELEMENTS (lists); i++)
    if (!read_list (network, i, error))
      return false;
  for (unsigned i = 0; i < network->n_dims; i++)
    {
      n_npus *= network->dims[i].n_npus;
      if (n_npus > MAX_NPUS)
        return pod_yaml_error (network->yaml, pod_yaml_get (network->yaml->root, "npus_count"),
                               error, "npus_count: more than %d NPUs in all", MAX_NPUS);
    }
  network->n_npus = (unsigned) n_npus;
  return true;
}

/* -- as torus or switched machine -------------------------------------------------------------- */

static void
set_chip (PodTopologyDraft *draft, const char *field, double value, const char *unit)
{
  g_autofree char *number = pod_format_double (value);
  g_autofree char *text = g_strconcat (number, unit, NULL);

  pod_draft_set_chip (draft, field, text);
}

static bool
is_torus (const Network *network)
{
  for (unsigned i = 0; i < network->n_dims; i++)
    if (network->dims[i].block != BLOCK_RING
        || memcmp (&network->dims[i].bytes_per_s, &network->dims[0].bytes_per_s, sizeof (double))
               != 0
        || memcmp (&network->dims[i].latency_s, &network->dims[0].latency_s, sizeof (double)) != 0)
      return false;
  return network->n_dims <= 3;
}

static PodTopology *
make_torus (const Network *network, const char *name, GError **error)
{
  g_autoptr (PodTopologyDraft) draft = pod_draft_new (name, "tpu-v5p", POD_FABRIC_TORUS);
  g_autoptr (GString) extent = g_string_new (NULL);
  g_autoptr (GString) wrap = g_string_new (NULL);

  for (unsigned i = 0; i < network->n_dims; i++)
    {
      g_string_append_printf (extent, "%s%u", i > 0 ? "x" : "", network->dims[i].n_npus);
      if (network->dims[i].n_npus > 2) /* in a ring of two, both ways are one link */
        g_string_append_c (wrap, "xyz"[i]);
    }
  pod_draft_note (draft, "the file names no chip: its NPUs are taken for tpu-v5p");
  set_chip (draft, "ici_bandwidth", network->dims[0].bytes_per_s, " B/s");
  set_chip (draft, "ici_latency", network->dims[0].latency_s, " s");
  if (!pod_draft_set_option (draft, "extent", extent->str, error)
      || !pod_draft_set_option (draft, "wrap", wrap->len > 0 ? wrap->str : "none", error)
      || !pod_draft_set_option (draft, "unchecked", "yes", error))
    return NULL;
  return pod_draft_build (draft, error);
}

static PodTopology *
make_node (const Network *network, const char *name, GError **error)
{
  const Dim *dim = &network->dims[0];
  bool is_mesh = dim->block == BLOCK_FULLY_CONNECTED;
  const char *chip = is_mesh ? "mi300x" : "h100";
  g_autoptr (PodTopologyDraft) draft = pod_draft_new (name, chip, POD_FABRIC_SWITCHED);
  g_autofree char *count = g_strdup_printf ("%u", dim->n_npus);

  pod_draft_note (draft, "the file names no chip: its NPUs are taken for %s", chip);
  /* The chip's rate is that of all its links, its latency that of the whole way. */
  set_chip (draft, "scale_up_bandwidth", dim->bytes_per_s * (is_mesh ? dim->n_npus - 1 : 1),
            " B/s");
  set_chip (draft, "scale_up_latency", dim->latency_s * (is_mesh ? 1 : 2), " s");
  if (!is_mesh)
    pod_draft_set_chip (draft, "in_switch_reduction", "no");
  if (!pod_draft_set_option (draft, "nodes", "1", error)
      || !pod_draft_set_option (draft, "chips-per-node", count, error)
      || !pod_draft_set_option (draft, "unchecked", "yes", error))
    return NULL;
  return pod_draft_build (draft, error);
}

/* -- as graph ---------------------------------------------------------------------------------- */

typedef struct
{
  const Network *network;
  PodTopologyDraft *draft;
  PodDraftVertex *npus;
} Drawing;

static uint64_t
links_of_line (const Dim *dim)
{
  uint64_t n = dim->n_npus;

  if (n < 2)
    return 0;
  return dim->block == BLOCK_FULLY_CONNECTED  ? n * (n - 1) / 2
         : dim->block == BLOCK_RING && n == 2 ? 1
                                              : n;
}

static bool
join (const Drawing *drawing, const Dim *dim, PodDraftVertex from, PodDraftVertex to,
      GError **error)
{
  PodDraftLink link
      = { .from = from, .to = to, .bytes_per_s = dim->bytes_per_s, .latency_s = dim->latency_s };

  return pod_draft_add_link (drawing->draft, &link, NULL, error);
}

/* The NPUs first, first + stride, ... of one line of dimension @index. */
static bool
draw_line (const Drawing *drawing, unsigned index, unsigned first, unsigned stride, GError **error)
{
  const Dim *dim = &drawing->network->dims[index];
  const PodDraftVertex *npus = drawing->npus + first;
  unsigned n = dim->n_npus;
  PodDraftVertex hub = 0;

  if (dim->block == BLOCK_SWITCH)
    {
      g_autofree char *name = g_strdup_printf ("switch%u-%u", index, first);
      if (!pod_draft_add_switch (drawing->draft, name, &hub, error))
        return false;
    }
  for (unsigned i = 0; i < n; i++)
    {
      bool has_next = i + 1 < n || n > 2;
      if (dim->block == BLOCK_SWITCH && !join (drawing, dim, npus[i * stride], hub, error))
        return false;
      if (dim->block == BLOCK_RING && has_next
          && !join (drawing, dim, npus[i * stride], npus[(i + 1) % n * stride], error))
        return false;
      for (unsigned j = i + 1; dim->block == BLOCK_FULLY_CONNECTED && j < n; j++)
        if (!join (drawing, dim, npus[i * stride], npus[j * stride], error))
          return false;
    }
  return true;
}

static bool
draw_dims (const Drawing *drawing, GError **error)
{
  unsigned stride = 1;

  for (unsigned i = 0; i < drawing->network->n_dims; i++)
    {
      unsigned n = drawing->network->dims[i].n_npus;
      for (unsigned first = 0; first < drawing->network->n_npus; first++)
        if (first / stride % n == 0 && n > 1 && !draw_line (drawing, i, first, stride, error))
          return false;
      stride *= n;
    }
  return true;
}

/* The last dimension joins islands, all before it are inside them. */
static PodTopology *
make_graph (const Network *network, const char *name, GError **error)
{
  g_autoptr (PodTopologyDraft) draft = pod_draft_new (name, "h100", POD_FABRIC_GRAPH);
  g_autofree PodDraftVertex *npus = g_new0 (PodDraftVertex, network->n_npus);
  unsigned per_island = network->n_npus / network->dims[network->n_dims - 1].n_npus;
  Drawing drawing = { network, draft, npus };
  uint64_t n_links = 0;

  for (unsigned i = 0; i < network->n_dims; i++)
    n_links += links_of_line (&network->dims[i]) * (network->n_npus / network->dims[i].n_npus);
  if (n_links > MAX_LINKS)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                   "%s: %" G_GUINT64_FORMAT " links, more than %d", network->yaml->file, n_links,
                   MAX_LINKS);
      return NULL;
    }
  pod_draft_note (draft, "the file names no chip: its NPUs are taken for h100");
  if (network->n_dims > 1)
    pod_draft_note (draft, "islands are what the dimensions before the last one join");
  for (unsigned i = 0; i < network->n_npus; i++)
    {
      g_autofree char *npu = g_strdup_printf ("npu%u", i);
      g_autofree char *island = g_strdup_printf ("island%u", i / per_island);
      if (!pod_draft_add_node (draft, npu, network->n_dims > 1 ? island : NULL, &npus[i], error))
        return NULL;
    }
  if (!draw_dims (&drawing, error))
    return NULL;
  return pod_draft_build (draft, error);
}

PodTopology *
pod_astra_yaml_read (const char *file, GError **error)
{
  g_autoptr (PodYaml) yaml = pod_yaml_load (file, error);
  g_autofree char *base = g_path_get_basename (file);
  g_autofree char *name = g_strndup (base, strcspn (base, "."));
  Network network = { .yaml = yaml };

  if (yaml == NULL || !read_network (&network, error))
    return NULL;
  const char *title = *name != '\0' ? name : "astra";
  bool is_node = network.n_dims == 1 && network.n_npus > 1;
  PodTopology *topology = is_torus (&network) ? make_torus (&network, title, error)
                          : is_node           ? make_node (&network, title, error)
                                              : make_graph (&network, title, error);
  if (topology == NULL && error != NULL && *error != NULL
      && !g_str_has_prefix ((*error)->message, file))
    g_prefix_error (error, "%s: ", file);
  return topology;
}
