#include <string.h>

#include "base/error.h"
#include "import/nccl-private.h"

/* NVLink, xGMI and C2C: what joins GPUs beside PCIe. */

static bool
is_gpu_class (const char *code)
{
  return code != NULL && (g_str_has_prefix (code, "0x03") || g_str_has_prefix (code, "0x12"));
}

static double
link_rate (const PodNcclReader *reader)
{
  return reader->chip->scale_up_bytes_per_s.nominal / reader->guess.n_links;
}

static bool
add_nvlink (PodNcclReader *reader, PodNcclGpu *gpu, PodXmlNode *link, PodDraftVertex cpu,
            GError **error)
{
  g_autofree char *target = pod_xml_attr (link, "target");
  g_autofree char *code = pod_xml_attr (link, "tclass");
  g_autofree char *bus = g_strdup_printf ("%u/%s", gpu->host, target != NULL ? target : "");
  PodNcclGpu *peer = g_hash_table_lookup (reader->by_bus, bus);
  guint64 count = 1;

  if (target == NULL)
    return pod_xml_error (reader->xml, link, error, "<%s> lacks the attribute target",
                          link->name);
  if (!pod_nccl_count (reader, link, "count", POD_NCCL_MAX_COUNT, &count, error))
    return false;
  if (count == 0)
    return true;
  if (g_strcmp0 (code, "0x068001") == 0) /* a CPU with NVLinks: POWER 8 and 9 */
    return pod_nccl_join (reader, link, gpu->vertex, cpu, (double) count * link_rate (reader),
                          pod_nccl_pcie_end_s, error);
  if (peer == gpu)
    reader->n_own_targets += (unsigned) count;
  else if (peer != NULL)
    {
      unsigned index = 0;
      if (!g_ptr_array_find (reader->gpus, peer, &index))
        g_assert_not_reached ();
      gpu->to_gpu[index] += (double) count;
    }
  else if (is_gpu_class (code))
    return pod_xml_error (reader->xml, link, error, "<%s> target: no GPU has the busid '%s'",
                          link->name, target);
  else /* NVSwitches are not listed, and ffffffff:ff:ff.0 is one that the machine hides */
    gpu->to_switch += (double) count;
  return true;
}

/* bw in MB/s and count: NCCL multiplies and divides by 1000. */
static bool
add_c2c (PodNcclReader *reader, const PodNcclGpu *gpu, PodXmlNode *c2c, PodDraftVertex cpu,
         GError **error)
{
  guint64 bw = 0;
  guint64 count = 1;

  if (!pod_nccl_count (reader, c2c, "bw", 100000000, &bw, error)
      || !pod_nccl_count (reader, c2c, "count", POD_NCCL_MAX_COUNT, &count, error))
    return false;
  if (bw == 0 || count == 0)
    return pod_xml_error (reader->xml, c2c, error, "<c2c> needs a bw and a count above 0");
  return pod_nccl_join (reader, c2c, gpu->vertex, cpu, (double) bw * (double) count * 1e6,
                        pod_nccl_pcie_end_s, error);
}

bool
pod_nccl_add_gpu_links (PodNcclReader *reader, PodXmlNode *parent, unsigned host, PodDraftVertex cpu,
                        GError **error)
{
  for (PodXmlNode *pci = pod_xml_child (parent, "pci"); pci != NULL; pci = pod_xml_next (pci, "pci"))
    {
      PodXmlNode *element = pod_xml_child (pci, "gpu");
      if (element == NULL)
        {
          if (!pod_nccl_add_gpu_links (reader, pci, host, cpu, error))
            return false;
          continue;
        }
      g_autofree char *bus = pod_nccl_bus (reader, pci, host, error);
      if (bus == NULL)
        return false;
      PodNcclGpu *gpu = g_hash_table_lookup (reader->by_bus, bus);
      for (PodXmlNode *link = pod_xml_child (element, NULL); link != NULL;
           link = pod_xml_next (link, NULL))
        if (strcmp (link->name, "c2c") == 0
                ? !add_c2c (reader, gpu, link, cpu, error)
                : !add_nvlink (reader, gpu, link, cpu, error))
          return false;
    }
  return true;
}

/* Links of @count from @from to @to: both ways when the peer lists as many, else one. */
static bool
join_peers (PodNcclReader *reader, unsigned from, unsigned to, GError **error)
{
  const PodNcclGpu *a = g_ptr_array_index (reader->gpus, from);
  const PodNcclGpu *b = g_ptr_array_index (reader->gpus, to);
  double there = a->to_gpu[to];
  double back = b->to_gpu[from];
  bool is_full = there > 0 && there <= back && back <= there;
  PodDraftLink link = { .from = a->vertex,
                        .to = b->vertex,
                        .bytes_per_s = there * link_rate (reader),
                        .latency_s = (double) reader->chip->scale_up_hop_ps / POD_PS_PER_S,
                        .duplex = is_full ? POD_DRAFT_FULL : POD_DRAFT_SIMPLEX };

  if (!(there > 0) || (is_full && from > to))
    return true;
  return pod_draft_add_link (reader->draft, &link, NULL, error)
         || pod_nccl_at (reader, a->pci, error);
}

static bool
add_nvswitch (PodNcclReader *reader, unsigned host, bool is_assumed, GError **error)
{
  g_autofree char *name = pod_nccl_name (reader, host, "nvswitch", "");
  double least = G_MAXDOUBLE;
  double most = 0;
  PodDraftVertex hub = 0;

  for (unsigned i = 0; i < reader->gpus->len; i++)
    {
      const PodNcclGpu *gpu = g_ptr_array_index (reader->gpus, i);
      double count = is_assumed ? reader->guess.n_links : gpu->to_switch;
      if (gpu->host != host || !(count > 0))
        continue;
      if (!(most > 0) && !pod_draft_add_switch (reader->draft, name, &hub, error))
        return pod_nccl_at (reader, gpu->pci, error);
      least = MIN (least, count);
      most = MAX (most, count);
      if (!pod_nccl_join (reader, gpu->pci, gpu->vertex, hub, count * link_rate (reader),
                          (double) reader->chip->scale_up_hop_ps / 2 / POD_PS_PER_S, error))
        return false;
    }
  if (!(most > 0) || host > 0)
    return true;
  g_autofree char *counts
      = least < most ? g_strdup_printf ("%g to %g", least, most) : g_strdup_printf ("%g", most);
  pod_draft_note (reader->draft,
                  is_assumed
                      ? "the file lists no NVLinks: %s from each GPU to NVSwitches, as the "
                        "chip has them, are assumed"
                      : "%s NVLinks from each GPU to NVSwitches, which are taken as one switch",
                  counts);
  return true;
}

bool
pod_nccl_add_scale_up (PodNcclReader *reader, GError **error)
{
  bool is_assumed = !reader->has_gpu_elements && reader->chip->family == POD_FAMILY_SWITCH;

  for (unsigned from = 0; from < reader->gpus->len; from++)
    for (unsigned to = 0; to < reader->gpus->len; to++)
      if (!join_peers (reader, from, to, error))
        return false;
  for (unsigned host = 0; host < reader->hosts->len; host++)
    if (!add_nvswitch (reader, host, is_assumed, error))
      return false;
  return true;
}
