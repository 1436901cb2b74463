#pragma once

#include "base/xml.h"
#include "topology/chip.h"

/* What NCCL's files say in numbers of the hardware, turned into chips and rates. */

/* A guess at a chip of topologies/chips/. */
typedef struct
{
  const char *chip;
  unsigned n_links; /* NVLinks or xGMI links of it, which share its scale-up rate */
} PodNcclChip;

/* By what <pci> and <gpu> (nullable) say; *out_why (transfer full): which of it, and how sure that
 * is. Never fails: the last resort is a guess by the PCIe generation. */
PodNcclChip pod_nccl_chip (xmlNodePtr pci, xmlNodePtr gpu, char **out_why);

/* One direction of a PCIe link, from "32.0 GT/s PCIe" and "16"; false for what is no such text. An
 * empty or unknown speed counts as 8 GT/s and width 0 as 16, as in NCCL, and sets *out_is_default. */
bool pod_nccl_pcie_rate (const char *speed, const char *width, double *out_bytes_per_s,
                         bool *out_is_default);

/* Between two sockets of a machine, one direction. (nullable) texts: attributes of <cpu>. */
double pod_nccl_socket_rate (const char *arch, const char *vendor, unsigned family, unsigned model);
