#pragma once

#include "base/xml.h"
#include "topology/draft.h"

/* What NCCL's files say in numbers of the hardware, turned into chips and rates. */

/* A guess at a chip of topologies/chips/. */
typedef struct
{
  const char *chip;
  unsigned n_links; /* NVLinks or xGMI links of it, which share its scale-up rate */
} PodNcclChip;

/* By what <pci> and <gpu> (nullable) say; *out_why (transfer full): which of it, and how sure that
 * is. Never fails: the last resort is a guess by the PCIe generation. */
PodNcclChip pod_nccl_chip (PodXmlNode *pci, PodXmlNode *gpu, char **out_why);

/* One direction of a PCIe link, from "32.0 GT/s PCIe" and "16"; false for what is no such text. An
 * empty or unknown speed counts as 8 GT/s and width 0 as 16, as in NCCL, and sets *out_is_default.
 */
bool pod_nccl_pcie_rate (const char *speed, const char *width, double *out_bytes_per_s,
                         bool *out_is_default);

/* Between two sockets of a machine, one direction. (nullable) texts: attributes of <cpu>. */
double pod_nccl_socket_rate (const char *arch, const char *vendor, unsigned family, unsigned model);

/* -- nccl-xml.c: the reader, and what its parts share --------------------------------------------
 */

/* Half of NCCL's latency of a hop over PCIe, ring, LL (1 us; NVIDIA/nccl src/graph/tuning.cc): a
 * way between two devices leaves one and enters the other, however many bridges are between them.
 */
static const double pod_nccl_pcie_end_s = 0.5e-6;

enum
{
  POD_NCCL_MAX_COUNT = 1024,
};

typedef struct
{
  PodXmlNode *pci;
  PodXmlNode *gpu; /* (nullable) */
  char *bus;      /* with its host in front */
  unsigned host;  /* index */
  guint64 dev;    /* POD_NCCL_NO_DEV: not given */
  PodDraftVertex vertex;
  double *to_gpu;   /* links to each GPU, as this one lists them */
  double to_switch; /* and to NVSwitches */
} PodNcclGpu;

#define POD_NCCL_NO_DEV UINT64_MAX

typedef struct
{
  const PodXml *xml;
  PodTopologyDraft *draft;
  GPtrArray *hosts;     /* (element-type utf8) host_hash, in order of appearance */
  GPtrArray *gpus;      /* (element-type PodNcclGpu) */
  GHashTable *by_bus;   /* bus -> PodNcclGpu */
  GHashTable *vertices; /* bus -> PodDraftVertex + 1, of bridges */
  PodChip *chip;
  PodNcclChip guess;
  bool has_gpu_elements;
  unsigned n_default_pcie; /* links without a speed */
  unsigned n_dark_nics;    /* without <net> */
  unsigned n_default_nets; /* without speed */
  unsigned n_own_targets;  /* NVLinks to the GPU itself */
  unsigned n_left_out;     /* PCI devices that are neither bridge, GPU nor NIC */
} PodNcclReader;

/* Puts the line before what the draft complained of; returns false. */
bool pod_nccl_at (const PodNcclReader *reader, PodXmlNode *node, GError **error);
/* A whole number in an attribute; absent: *out stays. */
bool pod_nccl_count (const PodNcclReader *reader, PodXmlNode *node, const char *name, guint64 most,
                     guint64 *out, GError **error);
/* A name that no other host has. Returns: (transfer full) */
char *pod_nccl_name (const PodNcclReader *reader, unsigned host, const char *kind,
                     const char *name);
/* busid, which links name, with its host. Returns: (transfer full) (nullable) */
char *pod_nccl_bus (const PodNcclReader *reader, PodXmlNode *pci, unsigned host, GError **error);
bool pod_nccl_join (PodNcclReader *reader, PodXmlNode *node, PodDraftVertex from, PodDraftVertex to,
                    double bytes_per_s, double latency_s, GError **error);

/* -- nccl-links.c --------------------------------------------------------------------------------
 */

/* What the <gpu> below @parent list: links to the socket @cpu are made, those to GPUs and switches
 * counted. */
bool pod_nccl_add_gpu_links (PodNcclReader *reader, PodXmlNode *parent, unsigned host,
                             PodDraftVertex cpu, GError **error);
/* The links that were counted, or assumed. */
bool pod_nccl_add_scale_up (PodNcclReader *reader, GError **error);
