#include "import/nccl-private.h"

#include <string.h>

#include "base/units.h"
#include "base/xml.h"

/* -- chips ------------------------------------------------------------------------------------- */

typedef struct
{
  const char *key;
  PodNcclChip chip;
  const char *stands_for; /* (nullable) what the key really is, when no file describes it */
} ChipRow;

/* PCI device ids, of the PCI ID repository (pci-ids.ucw.cz); links: see the chips' own files. */
static const ChipRow by_device[] = {
  { "0x20b0", { "a100-40", 12 }, NULL },
  { "0x20b2", { "a100", 12 }, NULL },
  { "0x20b5", { "a100", 12 }, "A100 PCIe 80 GB" },
  { "0x2330", { "h100", 18 }, NULL },
  { "0x2331", { "h100-pcie", 12 }, NULL },
  { "0x2324", { "h800", 8 }, NULL },
  { "0x2335", { "h200", 18 }, NULL },
  { "0x2901", { "b200", 18 }, NULL },
  { "0x2941", { "gb200", 18 }, NULL },
  { "0x738c", { "mi250x", 7 }, "MI100" },
  { "0x7408", { "mi250x", 7 }, NULL },
  { "0x740c", { "mi250x", 7 }, NULL },
  { "0x74a1", { "mi300x", 7 }, NULL },
  { "0x74a5", { "mi325x", 7 }, NULL },
};

/* RCCL writes gfx90a as 910 in older files, and the count of CUs in sm. */
static const ChipRow by_gcn[] = {
  { "908", { "mi250x", 7 }, "MI100 (gfx908)" },
  { "910", { "mi250x", 7 }, NULL },
  { "gfx90a", { "mi250x", 7 }, NULL },
  { "940", { "mi300x", 7 }, NULL },
  { "942", { "mi300x", 7 }, NULL },
  { "gfx940", { "mi300x", 7 }, NULL },
  { "gfx942", { "mi300x", 7 }, NULL },
  { "gfx950", { "mi355x", 7 }, NULL },
};

/* Compute capability x 10. */
static const ChipRow by_sm[] = {
  { "60", { "a100", 12 }, "P100" },
  { "70", { "a100", 12 }, "V100" },
  { "80", { "a100", 12 }, NULL },
  { "86", { "a100", 12 }, "A10, A40 or RTX 30" },
  { "89", { "h100-pcie", 12 }, "L4, L40 or RTX 40" },
  { "90", { "h100", 18 }, NULL },
  { "100", { "b200", 18 }, NULL },
  { "103", { "b300", 18 }, NULL },
};

static const ChipRow *
find_row (const ChipRow *rows, size_t n_rows, const char *key)
{
  for (size_t i = 0; key != NULL && i < n_rows; i++)
    if (g_ascii_strcasecmp (rows[i].key, key) == 0)
      return &rows[i];
  return NULL;
}

static PodNcclChip
take_row (const ChipRow *row, const char *what, char **out_why)
{
  if (row->stands_for != NULL)
    *out_why = g_strdup_printf ("%s %s is %s, which no chip file describes: %s stands in", what,
                                row->key, row->stands_for, row->chip.chip);
  else
    *out_why = g_strdup_printf ("%s by %s %s of its GPUs", row->chip.chip, what, row->key);
  return row->chip;
}

static PodNcclChip
guess_by_link (PodXmlNode *pci, const char *sm, const char *gcn, char **out_why)
{
  g_autofree char *speed = pod_xml_attr (pci, "link_speed");
  g_autofree char *vendor = pod_xml_attr (pci, "vendor");
  double generation = speed != NULL ? g_ascii_strtod (speed, NULL) : 0;
  bool is_amd = g_strcmp0 (vendor, "0x1002") == 0 || gcn != NULL;
  bool is_new = generation > 16 || sm != NULL;
  PodNcclChip chip = is_amd   ? (PodNcclChip){ "mi300x", 7 }
                     : is_new ? (PodNcclChip){ "h100", 18 }
                              : (PodNcclChip){ "a100", 12 };

  if (gcn != NULL || sm != NULL)
    *out_why = g_strdup_printf ("%s %s is of no chip file: %s stands in",
                                gcn != NULL ? "gcn" : "sm", gcn != NULL ? gcn : sm, chip.chip);
  else
    *out_why = g_strdup_printf ("the file does not say which GPUs: %s is a guess by their PCIe "
                                "link_speed '%s'",
                                chip.chip, speed != NULL ? speed : "");
  return chip;
}

PodNcclChip
pod_nccl_chip (PodXmlNode *pci, PodXmlNode *gpu, char **out_why)
{
  g_autofree char *device = pod_xml_attr (pci, "device");
  g_autofree char *gcn = gpu != NULL ? pod_xml_attr (gpu, "gcn") : NULL;
  g_autofree char *sm = gpu != NULL ? pod_xml_attr (gpu, "sm") : NULL;
  const ChipRow *row = find_row (by_device, G_N_ELEMENTS (by_device), device);

  if (row != NULL)
    return take_row (row, "device", out_why);
  row = find_row (by_gcn, G_N_ELEMENTS (by_gcn), gcn);
  if (row != NULL)
    return take_row (row, "gcn", out_why);
  if (gcn == NULL)
    row = find_row (by_sm, G_N_ELEMENTS (by_sm), sm);
  if (row != NULL)
    return take_row (row, "sm", out_why);
  return guess_by_link (pci, sm, gcn, out_why);
}

/* -- rates ------------------------------------------------------------------------------------- */

/* Bits that carry data: 8b/10b up to 5 GT/s, 128b/130b up to 32, FLITs of 242 in 256 bytes from 64
 * on (PCI Express base specifications 1 to 6). */
static double
payload_ratio (double gigatransfers)
{
  return gigatransfers <= 5 ? 0.8 : gigatransfers <= 32 ? 128.0 / 130.0 : 242.0 / 256.0;
}

bool
pod_nccl_pcie_rate (const char *speed, const char *width, double *out_bytes_per_s,
                    bool *out_is_default)
{
  double gigatransfers = 0;
  guint64 lanes = 0;

  *out_is_default = false;
  if (speed != NULL && g_ascii_isdigit (*speed))
    {
      char *end = NULL;
      gigatransfers = g_ascii_strtod (speed, &end);
      if (!g_str_has_prefix (g_strchug (end), "GT/s") || !(gigatransfers > 0)
          || gigatransfers > 1024)
        return false;
    }
  else if (speed != NULL && *speed != '\0' && g_ascii_strncasecmp (speed, "unknown", 7) != 0)
    return false;
  if (width != NULL && *width != '\0'
      && !g_ascii_string_to_unsigned (width, 10, 0, 64, &lanes, NULL))
    return false;
  *out_is_default = !(gigatransfers > 0) || lanes == 0;
  if (!(gigatransfers > 0))
    gigatransfers = 8;
  if (lanes == 0)
    lanes = 16;
  *out_bytes_per_s = gigatransfers * 1e9 * (double) lanes / 8 * payload_ratio (gigatransfers);
  return true;
}

/* NVIDIA/nccl src/graph/topo.h: *_QPI_BW, AMD_ZEN*_BW, ARM_BW, P9_BW. NCCL writes AMD's family as
 * base family + 16 x extended family. */
double
pod_nccl_socket_rate (const char *arch, const char *vendor, unsigned family, unsigned model)
{
  if (g_strcmp0 (arch, "arm64") == 0)
    return 6e9;
  if (g_strcmp0 (arch, "ppc64") == 0)
    return 32e9;
  if (g_strcmp0 (vendor, "AuthenticAMD") == 0)
    return family == 26 || family == 191 ? 32e9 : family == 25 || family == 175 ? 24e9 : 16e9;
  if (g_strcmp0 (vendor, "GenuineIntel") != 0)
    return 10e9;
  return model >= 207 ? 40e9 : model >= 143 ? 22e9 : model >= 85 ? 10e9 : 6e9;
}
