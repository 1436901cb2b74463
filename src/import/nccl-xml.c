#include "import/nccl-xml.h"

#include <string.h>

#include "base/error.h"
#include "base/xml.h"
#include "import/nccl-private.h"
#include "topology/draft.h"

static void
gpu_free (void *data)
{
  PodNcclGpu *gpu = data;

  g_free (gpu->bus);
  g_free (gpu->to_gpu);
  g_free (gpu);
}

static void
reader_clear (PodNcclReader *reader)
{
  pod_draft_free (reader->draft);
  pod_chip_free (reader->chip);
  g_ptr_array_unref (reader->hosts);
  g_ptr_array_unref (reader->gpus);
  g_hash_table_unref (reader->by_bus);
  g_hash_table_unref (reader->vertices);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodNcclReader, reader_clear)

static bool
is_element (PodXmlNode *node, const char *name)
{
  return strcmp (node->name, name) == 0;
}

/* Puts the line before what the draft complained of. */
bool
pod_nccl_at (const PodNcclReader *reader, PodXmlNode *node, GError **error)
{
  g_prefix_error (error, "%s:%u: ", reader->xml->file, node->line);
  return false;
}

/* A whole number in an attribute; absent: *out stays. */
bool
pod_nccl_count (const PodNcclReader *reader, PodXmlNode *node, const char *name, guint64 most,
                guint64 *out, GError **error)
{
  g_autofree char *text = pod_xml_attr (node, name);

  if (text == NULL || g_ascii_string_to_unsigned (text, 10, 0, most, out, NULL))
    return true;
  return pod_xml_error (reader->xml, node, error,
                        "<%s> %s: expected a whole number up to %" G_GUINT64_FORMAT ", got '%s'",
                        node->name, name, most, text);
}

/* -- what elements are --------------------------------------------------------------------------
 */

static const struct
{
  const char *parent;
  const char *children; /* between blanks */
} nesting[] = {
  { "system", " cpu " },          { "cpu", " pci nic " }, { "pci", " pci gpu nic pcilink " },
  { "gpu", " nvlink xgmi c2c " }, { "nic", " net " },
};

static bool
check_children (const PodNcclReader *reader, PodXmlNode *node, GError **error)
{
  const char *allowed = " ";

  for (size_t i = 0; i < G_N_ELEMENTS (nesting); i++)
    if (is_element (node, nesting[i].parent))
      allowed = nesting[i].children;
  for (PodXmlNode *child = pod_xml_child (node, NULL); child != NULL;
       child = pod_xml_next (child, NULL))
    {
      g_autofree char *name = g_strdup_printf (" %s ", child->name);
      if (strstr (allowed, name) == NULL)
        return pod_xml_error (reader->xml, child, error, "<%s> is not expected in <%s>",
                              child->name, node->name);
      if (!check_children (reader, child, error))
        return false;
    }
  return true;
}

typedef enum
{
  PCI_BRIDGE,
  PCI_GPU,
  PCI_NIC,
  PCI_OTHER,
} PciKind;

static PciKind
kind_of (PodXmlNode *pci)
{
  g_autofree char *class_text = pod_xml_attr (pci, "class");
  const char *code = class_text != NULL ? class_text : "";

  if (pod_xml_child (pci, "gpu") != NULL)
    return PCI_GPU;
  if (pod_xml_child (pci, "nic") != NULL)
    return PCI_NIC;
  if (pod_xml_child (pci, "pci") != NULL || g_str_has_prefix (code, "0x0604"))
    return PCI_BRIDGE;
  /* 3D and VGA controllers; other displays and accelerators are AMD's GPUs */
  if (g_str_has_prefix (code, "0x0302") || g_str_has_prefix (code, "0x0300")
      || g_str_has_prefix (code, "0x0380") || g_str_has_prefix (code, "0x1200"))
    return PCI_GPU;
  return g_str_has_prefix (code, "0x02") ? PCI_NIC : PCI_OTHER;
}

static unsigned
host_of (PodNcclReader *reader, PodXmlNode *cpu)
{
  g_autofree char *hash = pod_xml_attr (cpu, "host_hash");
  const char *name = hash != NULL ? hash : "";

  for (unsigned i = 0; i < reader->hosts->len; i++)
    if (strcmp (g_ptr_array_index (reader->hosts, i), name) == 0)
      return i;
  g_ptr_array_add (reader->hosts, g_strdup (name));
  return reader->hosts->len - 1;
}

/* A name that no other host has. Returns: (transfer full) */
char *
pod_nccl_name (const PodNcclReader *reader, unsigned host, const char *kind, const char *name)
{
  return reader->hosts->len > 1 ? g_strdup_printf ("host%u/%s%s", host, kind, name)
                                : g_strconcat (kind, name, NULL);
}

/* busid, which links name, with its host. Returns: (transfer full) (nullable) */
char *
pod_nccl_bus (const PodNcclReader *reader, PodXmlNode *pci, unsigned host, GError **error)
{
  g_autofree char *bus = pod_xml_attr (pci, "busid");

  if (bus == NULL || *bus == '\0')
    {
      pod_xml_error (reader->xml, pci, error, "<pci> lacks the attribute busid");
      return NULL;
    }
  return g_strdup_printf ("%u/%s", host, bus);
}

/* -- GPUs, before anything that points at them --------------------------------------------------
 */

static bool
collect_gpu (PodNcclReader *reader, PodXmlNode *pci, unsigned host, GError **error)
{
  PodNcclGpu *gpu = g_new0 (PodNcclGpu, 1);

  g_ptr_array_add (reader->gpus, gpu);
  gpu->pci = pci;
  gpu->gpu = pod_xml_child (pci, "gpu");
  gpu->host = host;
  gpu->dev = POD_NCCL_NO_DEV;
  gpu->bus = pod_nccl_bus (reader, pci, host, error);
  if (gpu->bus == NULL)
    return false;
  if (pod_xml_child (pci, "pci") != NULL)
    return pod_xml_error (reader->xml, pci, error, "a <pci> below a GPU is not expected");
  if (gpu->gpu != NULL && pod_xml_next (gpu->gpu, "gpu") != NULL)
    return pod_xml_error (reader->xml, pci, error,
                          "two <gpu> in one <pci>: partitions of a GPU are "
                          "not modelled");
  if (!g_hash_table_insert (reader->by_bus, gpu->bus, gpu))
    return pod_xml_error (reader->xml, pci, error, "the busid of this GPU stands twice");
  reader->has_gpu_elements = reader->has_gpu_elements || gpu->gpu != NULL;
  return gpu->gpu == NULL
         || pod_nccl_count (reader, gpu->gpu, "dev", POD_NCCL_MAX_COUNT * 64, &gpu->dev, error);
}

static bool
collect_gpus (PodNcclReader *reader, PodXmlNode *parent, unsigned host, GError **error)
{
  for (PodXmlNode *pci = pod_xml_child (parent, "pci"); pci != NULL; pci = pod_xml_next (pci, "pci"))
    if (kind_of (pci) == PCI_GPU ? !collect_gpu (reader, pci, host, error)
                                 : !collect_gpus (reader, pci, host, error))
      return false;
  return true;
}

static int
compare_gpus (const void *a, const void *b)
{
  const PodNcclGpu *left = *(PodNcclGpu *const *) a;
  const PodNcclGpu *right = *(PodNcclGpu *const *) b;

  if (left->host != right->host)
    return left->host < right->host ? -1 : 1;
  return left->dev < right->dev ? -1 : left->dev > right->dev;
}

/* One kind of chip makes a machine. */
static bool
choose_chip (PodNcclReader *reader, GError **error)
{
  g_autofree char *why = NULL;

  for (unsigned i = 0; i < reader->gpus->len; i++)
    {
      const PodNcclGpu *gpu = g_ptr_array_index (reader->gpus, i);
      g_autofree char *reason = NULL;
      PodNcclChip guess = pod_nccl_chip (gpu->pci, gpu->gpu, &reason);
      if (i > 0 && strcmp (guess.chip, reader->guess.chip) != 0)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                       "%s:%u: %s beside %s: a machine of two kinds of chips is not modelled",
                       reader->xml->file, gpu->pci->line, guess.chip, reader->guess.chip);
          return false;
        }
      reader->guess = guess;
      if (why == NULL)
        why = g_steal_pointer (&reason);
    }
  reader->chip = pod_chip_load (reader->guess.chip, NULL, error);
  if (reader->chip == NULL)
    return false;
  g_autofree char *base = g_path_get_basename (reader->xml->file);
  g_autofree char *name
      = g_str_has_suffix (base, ".xml") ? g_strndup (base, strlen (base) - 4) : g_strdup (base);
  reader->draft
      = pod_draft_new (*name != '\0' ? name : "nccl", reader->guess.chip, POD_FABRIC_GRAPH);
  pod_draft_note (reader->draft, "chip: %s", why);
  return true;
}

static bool
find_gpus (PodNcclReader *reader, PodXmlNode *system, GError **error)
{
  for (PodXmlNode *cpu = pod_xml_child (system, "cpu"); cpu != NULL; cpu = pod_xml_next (cpu, "cpu"))
    if (!collect_gpus (reader, cpu, host_of (reader, cpu), error))
      return false;
  if (reader->gpus->len == 0)
    return pod_xml_error (
        reader->xml, system, error,
        "no GPU: neither a <gpu> nor a PCI device of class 0x0302. NCCL adds those "
        "that it finds when it runs; NCCL_TOPO_DUMP_FILE writes the whole there");
  g_ptr_array_sort (reader->gpus, compare_gpus);
  if (!choose_chip (reader, error))
    return false;
  for (unsigned i = 0; i < reader->gpus->len; i++)
    {
      PodNcclGpu *gpu = g_ptr_array_index (reader->gpus, i);
      g_autofree char *name = g_strdup_printf ("gpu%u", i);
      g_autofree char *island = g_strdup_printf ("host%u", gpu->host);
      gpu->to_gpu = g_new0 (double, reader->gpus->len);
      if (!pod_draft_add_node (reader->draft, name, reader->hosts->len > 1 ? island : NULL,
                               &gpu->vertex, error))
        return pod_nccl_at (reader, gpu->pci, error);
    }
  return true;
}

/* -- the PCIe tree ------------------------------------------------------------------------------
 */

bool
pod_nccl_join (PodNcclReader *reader, PodXmlNode *node, PodDraftVertex from, PodDraftVertex to,
               double bytes_per_s, double latency_s, GError **error)
{
  PodDraftLink link
      = { .from = from, .to = to, .bytes_per_s = bytes_per_s, .latency_s = latency_s };

  return pod_draft_add_link (reader->draft, &link, NULL, error)
         || pod_nccl_at (reader, node, error);
}

/* Of the link between a <pci> and what it hangs on. */
static bool
pcie_rate (PodNcclReader *reader, PodXmlNode *pci, double *out, GError **error)
{
  g_autofree char *speed = pod_xml_attr (pci, "link_speed");
  g_autofree char *width = pod_xml_attr (pci, "link_width");
  bool is_default = false;

  if (!pod_nccl_pcie_rate (speed, width, out, &is_default))
    return pod_xml_error (
        reader->xml, pci, error,
        "<pci> expected a link_speed such as '32.0 GT/s PCIe' and a link_width up "
        "to 64, got '%s' and '%s'",
        speed != NULL ? speed : "", width != NULL ? width : "");
  reader->n_default_pcie += is_default;
  return true;
}

/* Mbit/s. NCCL takes 10 Gbit/s where there is none. */
static bool
net_rate (PodNcclReader *reader, PodXmlNode *net, double *out, GError **error)
{
  g_autofree char *text = pod_xml_attr (net, "speed");
  gint64 speed = 0;

  if (text != NULL && !g_ascii_string_to_signed (text, 10, INT32_MIN, INT32_MAX, &speed, NULL))
    return pod_xml_error (reader->xml, net, error, "<net> speed: expected whole Mbit/s, got '%s'",
                          text);
  reader->n_default_nets += speed <= 0;
  *out = (double) (speed > 0 ? speed : 10000) * 1e6 / 8;
  return true;
}

static bool
add_net (PodNcclReader *reader, PodXmlNode *net, unsigned host, PodDraftVertex nic, GError **error)
{
  g_autofree char *name = pod_xml_attr (net, "name");
  g_autofree char *dev = pod_xml_attr (net, "dev");
  g_autofree char *latency = pod_xml_attr (net, "latency");
  g_autofree char *label
      = g_strdup_printf ("%s%s%s", name != NULL ? name : "", name != NULL && dev != NULL ? "-" : "",
                         dev != NULL ? dev : "");
  g_autofree char *unique = pod_nccl_name (reader, host, "net ", label);
  PodDraftVertex port = 0;
  double rate = 0;
  char *end = NULL;
  double latency_us = latency != NULL ? g_ascii_strtod (latency, &end) : 0;

  if (latency != NULL && (end == latency || *end != '\0' || !(latency_us >= 0 && latency_us < 1e9)))
    return pod_xml_error (reader->xml, net, error, "<net> latency: expected microseconds, got '%s'",
                          latency);
  if (!net_rate (reader, net, &rate, error))
    return false;
  if (!pod_draft_add_switch (reader->draft, unique, &port, error))
    return pod_nccl_at (reader, net, error);
  return pod_nccl_join (reader, net, nic, port, rate, latency_us / 1e6, error);
}

/* The ports of a <nic>, on the vertex @nic. */
static bool
add_nets (PodNcclReader *reader, PodXmlNode *nic_element, unsigned host, PodDraftVertex nic,
          GError **error)
{
  for (PodXmlNode *net = pod_xml_child (nic_element, "net"); net != NULL;
       net = pod_xml_next (net, "net"))
    if (!add_net (reader, net, host, nic, error))
      return false;
  return true;
}

static bool
add_nic (PodNcclReader *reader, PodXmlNode *pci, unsigned host, PodDraftVertex nic, GError **error)
{
  PodXmlNode *element = pod_xml_child (pci, "nic");

  if (element == NULL)
    reader->n_dark_nics++;
  for (; element != NULL; element = pod_xml_next (element, "nic"))
    if (!add_nets (reader, element, host, nic, error))
      return false;
  return true;
}

static bool add_pcis (PodNcclReader *reader, PodXmlNode *parent, unsigned host, PodDraftVertex above,
                      GError **error);

static bool
add_pci (PodNcclReader *reader, PodXmlNode *pci, unsigned host, PodDraftVertex above, GError **error)
{
  g_autofree char *bus = pod_nccl_bus (reader, pci, host, error);
  PciKind kind = kind_of (pci);
  double rate = 0;
  PodDraftVertex vertex = 0;

  if (bus == NULL || !pcie_rate (reader, pci, &rate, error))
    return false;
  if (kind == PCI_OTHER)
    {
      reader->n_left_out++;
      return true;
    }
  if (kind == PCI_GPU)
    vertex = ((const PodNcclGpu *) g_hash_table_lookup (reader->by_bus, bus))->vertex;
  else
    {
      g_autofree char *name
          = pod_nccl_name (reader, host, kind == PCI_NIC ? "nic " : "pci ", strchr (bus, '/') + 1);
      if (!pod_draft_add_switch (reader->draft, name, &vertex, error))
        return pod_nccl_at (reader, pci, error);
      g_hash_table_insert (reader->vertices, g_steal_pointer (&bus), GUINT_TO_POINTER (vertex + 1));
    }
  return pod_nccl_join (reader, pci, vertex, above, rate,
                        kind == PCI_BRIDGE ? 0 : pod_nccl_pcie_end_s, error)
         && (kind != PCI_NIC || add_nic (reader, pci, host, vertex, error))
         && (kind == PCI_GPU || add_pcis (reader, pci, host, vertex, error));
}

static bool
add_pcis (PodNcclReader *reader, PodXmlNode *parent, unsigned host, PodDraftVertex above,
          GError **error)
{
  for (PodXmlNode *pci = pod_xml_child (parent, "pci"); pci != NULL; pci = pod_xml_next (pci, "pci"))
    if (!add_pci (reader, pci, host, above, error))
      return false;
  return true;
}

/* <pcilink>: a second way between two PCIe switches, at the rate of the one that names it. */
static bool
add_pci_links (PodNcclReader *reader, PodXmlNode *parent, unsigned host, GError **error)
{
  for (PodXmlNode *pci = pod_xml_child (parent, "pci"); pci != NULL; pci = pod_xml_next (pci, "pci"))
    {
      g_autofree char *bus = pod_nccl_bus (reader, pci, host, error);
      if (bus == NULL)
        return false;
      unsigned from = GPOINTER_TO_UINT (g_hash_table_lookup (reader->vertices, bus));
      for (PodXmlNode *link = pod_xml_child (pci, "pcilink"); link != NULL;
           link = pod_xml_next (link, "pcilink"))
        {
          g_autofree char *target = pod_xml_attr (link, "target");
          g_autofree char *other = g_strdup_printf ("%u/%s", host, target != NULL ? target : "");
          unsigned to = GPOINTER_TO_UINT (g_hash_table_lookup (reader->vertices, other));
          double rate = 0;
          if (from == 0 || to == 0)
            return pod_xml_error (reader->xml, link, error, "no PCIe switch has the busid '%s'",
                                  from == 0 ? strchr (bus, '/') + 1 : strchr (other, '/') + 1);
          if (!pcie_rate (reader, pci, &rate, error))
            return false;
          /* both ends list it */
          if (from < to && !pod_nccl_join (reader, link, from - 1, to - 1, rate, 0, error))
            return false;
        }
      if (!add_pci_links (reader, pci, host, error))
        return false;
    }
  return true;
}

/* -- sockets ------------------------------------------------------------------------------------
 */

typedef struct
{
  PodXmlNode *element;
  unsigned host;
  PodDraftVertex vertex;
} Socket;

/* All sockets of a host, each with each, at what NCCL takes for their kind. */
static bool
join_sockets (PodNcclReader *reader, const GArray *sockets, GError **error)
{
  double rate = 0;

  for (unsigned i = 0; i < sockets->len; i++)
    for (unsigned j = i + 1; j < sockets->len; j++)
      {
        const Socket *a = &g_array_index (sockets, Socket, i);
        const Socket *b = &g_array_index (sockets, Socket, j);
        g_autofree char *arch = pod_xml_attr (a->element, "arch");
        g_autofree char *vendor = pod_xml_attr (a->element, "vendor");
        guint64 family = 0;
        guint64 model = 0;
        if (a->host != b->host)
          continue;
        if (!pod_nccl_count (reader, a->element, "familyid", UINT32_MAX, &family, error)
            || !pod_nccl_count (reader, a->element, "modelid", UINT32_MAX, &model, error))
          return false;
        rate = pod_nccl_socket_rate (arch, vendor, (unsigned) family, (unsigned) model);
        if (!pod_nccl_join (reader, b->element, a->vertex, b->vertex, rate, 0, error))
          return false;
      }
  if (rate > 0)
    pod_draft_note (reader->draft,
                    "%g GB/s between two CPU sockets (or NUMA nodes), as NCCL takes for their kind",
                    rate / 1e9);
  return true;
}

static bool
add_socket (PodNcclReader *reader, Socket *socket, unsigned index, GError **error)
{
  g_autofree char *numa = pod_xml_attr (socket->element, "numaid");
  g_autofree char *position = g_strdup_printf ("%u", index);
  g_autofree char *name
      = pod_nccl_name (reader, socket->host, "cpu", numa != NULL ? numa : position);

  if (!pod_draft_add_switch (reader->draft, name, &socket->vertex, error))
    return pod_nccl_at (reader, socket->element, error);
  if (!add_pcis (reader, socket->element, socket->host, socket->vertex, error)
      || !add_pci_links (reader, socket->element, socket->host, error)
      || !pod_nccl_add_gpu_links (reader, socket->element, socket->host, socket->vertex, error))
    return false;
  for (PodXmlNode *nic = pod_xml_child (socket->element, "nic"); nic != NULL;
       nic = pod_xml_next (nic, "nic")) /* not on PCIe: its ports hang on the socket */
    if (!add_nets (reader, nic, socket->host, socket->vertex, error))
      return false;
  return true;
}

static bool
add_sockets (PodNcclReader *reader, PodXmlNode *system, GError **error)
{
  g_autoptr (GArray) sockets = g_array_new (FALSE, TRUE, sizeof (Socket));

  for (PodXmlNode *cpu = pod_xml_child (system, "cpu"); cpu != NULL; cpu = pod_xml_next (cpu, "cpu"))
    {
      Socket socket = { .element = cpu, .host = host_of (reader, cpu) };
      if (!add_socket (reader, &socket, sockets->len, error))
        return false;
      g_array_append_val (sockets, socket);
    }
  return join_sockets (reader, sockets, error);
}

/* -- the whole ----------------------------------------------------------------------------------
 */

static void
note_defaults (const PodNcclReader *reader)
{
  if (reader->n_default_pcie > 0)
    pod_draft_note (
        reader->draft,
        "%u PCIe links without a speed or width count as 8 GT/s and 16 lanes, as in NCCL",
        reader->n_default_pcie);
  if (reader->n_dark_nics > 0)
    pod_draft_note (reader->draft,
                    "%u NICs without <net>: only their PCIe link is known, not their speed",
                    reader->n_dark_nics);
  if (reader->n_default_nets > 0)
    pod_draft_note (reader->draft, "%u network ports without a speed count as 10 Gb/s, as in NCCL",
                    reader->n_default_nets);
  if (reader->n_own_targets > 0)
    pod_draft_note (reader->draft, "%u NVLinks that name their own GPU as target are left out",
                    reader->n_own_targets);
  if (reader->n_left_out > 0)
    pod_draft_note (reader->draft,
                    "%u PCI devices that are neither bridge, GPU nor NIC are left out",
                    reader->n_left_out);
}

static bool
read_system (PodNcclReader *reader, GError **error)
{
  PodXmlNode *system = pod_xml_root (reader->xml);
  g_autofree char *version = pod_xml_attr (system, "version");

  if (!is_element (system, "system"))
    return pod_xml_error (reader->xml, system, error, "expected <system>, got <%s>",
                          (const char *) system->name);
  if (g_strcmp0 (version, "1") != 0 && g_strcmp0 (version, "2") != 0)
    return pod_xml_error (reader->xml, system, error,
                          "<system> version: expected 1 (NCCL) or 2 (RCCL), got '%s'",
                          version != NULL ? version : "");
  if (!check_children (reader, system, error) || !find_gpus (reader, system, error)
      || !add_sockets (reader, system, error) || !pod_nccl_add_scale_up (reader, error))
    return false;
  note_defaults (reader);
  return true;
}

PodTopology *
pod_nccl_xml_read (const char *file, GError **error)
{
  g_autoptr (PodXml) xml = pod_xml_load_foreign (file, error);

  if (xml == NULL)
    return NULL;
  g_auto (PodNcclReader) reader
      = { .xml = xml,
          .hosts = g_ptr_array_new_with_free_func (g_free),
          .gpus = g_ptr_array_new_with_free_func (gpu_free),
          .by_bus = g_hash_table_new (g_str_hash, g_str_equal),
          .vertices = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL) };
  if (!read_system (&reader, error))
    return NULL;
  PodTopology *topology = pod_draft_build (reader.draft, error);
  if (topology == NULL)
    g_prefix_error (error, "%s: ", file);
  return topology;
}
