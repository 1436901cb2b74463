#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "base/dtype.h"
#include "base/surface.h"
#include "topology/fidelity.h"

/* A chip as its file in topologies/chips/ gives it: the only place where its numbers stand. */

/* A number with the value that the book rounds to or uses as payload rate (equal when the file has none). */
typedef struct
{
  double nominal;
  double book;
} PodRated;

/* Where a wraparound link exists along a torus axis. */
typedef enum
{
  POD_WRAP_NEVER,
  POD_WRAP_ALWAYS,      /* every axis of 3 chips or more (no chip of ours; for users' files) */
  POD_WRAP_FULL_EXTENT, /* axis length equals wrap_extent (v5e, v6e: 16; v2: 16; v3: 32) */
  POD_WRAP_CUBES,       /* every axis a multiple of cube_extent (v4, v5p, v7x: 4): all axes wrap; else none */
} PodWrapRule;

typedef enum
{
  POD_FAMILY_TPU,    /* ICI torus of chips, DCN between slices */
  POD_FAMILY_SWITCH, /* scale-up switch domain (NVLink), scale-out fat tree of NICs */
  POD_FAMILY_MESH,   /* scale-up full mesh inside the node (xGMI, Gaudi), scale-out fat tree */
} PodFamily;

/* Where closed forms do not follow silicon: ln (measured / modelled time) over a coarse grid, fitted by
 * podsim calibrate kernels. The axes of each stand in chip-surface.c. */
typedef enum
{
  POD_SURFACE_MATMUL_BF16,
  POD_SURFACE_MATMUL_FP8,
  POD_SURFACE_CAST_FP8,
  POD_SURFACE_PREFILL,
  POD_SURFACE_DECODE,
  POD_SURFACE_GROUPED,
  POD_SURFACE_EXPERTS,
  POD_N_SURFACES
} PodChipSurface;

/* Attention kernels that a framework may run in place of those that attention_efficiency was fitted to. */
typedef enum
{
  POD_ATTENTION_KERNEL_CHIP,   /* those of attention_efficiency */
  POD_ATTENTION_KERNEL_TRITON, /* FlashAttention in Triton, 2023 */
  POD_ATTENTION_KERNEL_FA1,    /* FlashAttention 1 */
  POD_ATTENTION_KERNEL_FA2,    /* FlashAttention 2, PyTorch's SDPA */
  POD_ATTENTION_KERNEL_CUDNN,  /* cuDNN's, FlashAttention 3 */
  POD_N_ATTENTION_KERNELS
} PodAttentionKernel;

extern const char *const pod_attention_kernel_names[POD_N_ATTENTION_KERNELS + 1]; /* ends with NULL */

typedef struct
{
  char *name;  /* "tpu-v5p" */
  char *title; /* "TPU v5p" */
  char *vendor;
  char *file;
  PodFamily family;
  unsigned devices_per_chip; /* what software sees: 2 for v2, v3, v7x, MI250X; numbers below are per CHIP */
  PodRated die_bytes_per_s;  /* between the two devices of a chip, one direction; 0 with one device */
  int64_t die_hop_ps;
  unsigned cores_per_chip;   /* TensorCores, SMs, CUs, ... */

  PodRated peak_flops_per_s[POD_N_DTYPES]; /* dense, per chip; 0 = not supported */
  PodRated vector_flops_per_s;             /* element-wise unit, 0 = unknown */
  PodRated hbm_bytes;                      /* what the driver shows; book = the sheet's GB */
  PodRated hbm_bytes_per_s;
  double reserved_bytes;                   /* taken by runtime and framework before the first tensor, per device */
  PodRated vmem_bytes;                     /* TPU VMEM (per chip), GPU shared memory total */
  PodRated vmem_bytes_per_s;               /* 0 = unknown */
  PodRated l2_bytes;
  unsigned mxu_dim;                        /* systolic array edge, 0 on GPUs */
  unsigned mxus_per_core;
  double clock_hz;
  double tdp_w;                            /* 0 = not published */
  double price_usd_per_h;                  /* per chip, 0 = none */

  /* Torus (family TPU). Rates one direction. */
  unsigned torus_dims;           /* 2 or 3 */
  unsigned pod_extent[3];        /* largest slice */
  PodWrapRule wrap_rule;
  unsigned wrap_extent;
  unsigned cube_extent;
  bool has_twist;
  unsigned host_extent[3];       /* chips of one host: 2x2x1 */
  PodRated ici_bytes_per_s;      /* one link, one direction */
  int64_t ici_hop_ps;            /* latency of a hop */

  /* Scale-up inside the node or rack (families SWITCH, MESH): one direction, per chip. */
  unsigned scale_up_chips;       /* default domain: 8, 72, 16 */
  unsigned scale_up_switches;
  PodRated scale_up_bytes_per_s; /* whole egress of a chip (all links, all peers) */
  int64_t scale_up_hop_ps;
  int64_t scale_up_file_hop_ps; /* before any override: what libraries were measured with */
  bool has_in_switch_reduction;

  /* Hosts and scale-out. */
  unsigned chips_per_host;
  PodRated host_bytes_per_s;     /* PCIe or C2C of one chip, one direction */
  PodRated nic_bytes_per_s;      /* scale-out share of one chip, one direction (DCN on TPUs) */
  bool is_nic_behind_host;       /* its bytes cross the chip's PCIe; no: the NIC is on the chip (Gaudi) */
  int64_t nic_hop_ps;            /* of one link device <-> leaf switch: half the end to end latency under one leaf */
  int64_t tree_hop_ps;           /* of one link between switches */
  unsigned tree_levels;          /* switch levels of the default fat tree (2 or 3) */
  unsigned switch_radix;         /* ports of a leaf switch */

  /* Measured behaviour, for fidelity calibrated (fitted with validation data; never in book or ideal). */
  double matmul_efficiency;      /* reachable fraction of the dense peak, large shapes */
  double hbm_efficiency;         /* reachable fraction of HBM bandwidth */
  double network_efficiency;     /* reachable fraction of link payload, large messages */
  double launch_s;               /* floor of one kernel (GPUs: issue and wave start; TPUs: fused op) */
  double collective_launch_s;    /* floor of one collective */
  double attention_efficiency;   /* flash attention forward against peak, head_dim 128, long sequences */
  double attention_softmax_dims; /* the softmax of a (query, key) pair costs as much as this many elements of head_dim */
  double attention_launch_s;     /* floor of one attention op with its layout kernels; 0 = launch_s */
  double cast_launch_s;          /* floor of quantising the operand of a matmul, as inference engines do; 0 = four launches */
  double attention_block_s;      /* GPUs: start and end of one block of queries on a core */
  double matmul_hbm_efficiency;  /* reachable fraction of HBM bandwidth in a matmul; 0 = hbm_efficiency */
  double core_bytes_per_s;       /* GPUs: what one core (SM, CU) pulls in on its own; 0 = no limit */
  double tile_s;                 /* GPUs: start and end of one output tile on a core */
  double split_k_s;              /* GPUs: reduction after a matmul whose k is split over cores */
  double matmul_power_w;         /* that matmuls back to back would draw at full clock; 0 = no more than tdp_w */
  double unaligned_matmul;       /* GPUs: part of the matmul rate where rows of an operand are no multiples of 16 bytes; 0 = all of it */
  double clock_spread;           /* standard deviation over mean of the clocks that equal chips sustain */
  double attention_kernel_efficiency[POD_N_ATTENTION_KERNELS]; /* as attention_efficiency; 0 = that itself */
  PodSurface *surfaces[POD_N_SURFACES]; /* (nullable elements) owned */
  GPtrArray *sources;            /* (element-type utf8) "field: source" lines as the file has them */
  char *note;                    /* (nullable) what the model simplifies on this chip; printed with the assumptions */
} PodChip;

/* A row of the table that maps the XML elements of a chip file to fields: for --set, completion and docs. */
typedef struct
{
  const char *name;    /* "hbm_bandwidth": element of the file and PATH of pod_chip_set */
  const char *summary;
} PodChipFieldInfo;

/* Loads a chip by name ("h100") or file. Unknown: POD_ERROR_INVALID "unknown chip 'H2000', did you mean 'h200'?
 * Known: ...". A user's file may give only name, family, bf16 FLOP/s, HBM bytes and B/s and a link rate; every default
 * taken is appended to @out_assumptions (element-type utf8) (nullable). Returns: (transfer full) */
PodChip *pod_chip_load (const char *name_or_file, GPtrArray *out_assumptions, GError **error);
void pod_chip_free (PodChip *chip);
/* The names of all chips on the search path, sorted. Returns: (transfer full) (element-type utf8) */
GPtrArray *pod_chip_names (void);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodChip, pod_chip_free)

/* Overrides one number: path is a field of the XML ("hbm_bandwidth", "peak_bf16", "ici_bandwidth", ...), sets nominal and
 * book. The same table maps XML attributes to fields; unknown path: error that lists the nearest. */
bool pod_chip_set (PodChip *chip, const char *path, const char *value, GError **error);

/* Row @index of the table; false past its end. */
bool pod_chip_field (size_t index, PodChipFieldInfo *out);
/* The value of a field as pod_chip_set reads it. Returns: (transfer full) (nullable) NULL for an unknown path */
char *pod_chip_get (const PodChip *chip, const char *path);

/* "matmul_bf16_surface": the element of the file. */
const char *pod_chip_surface_name (PodChipSurface kind);
/* Name of axis @index, NULL past the last: "m". */
const char *pod_chip_surface_axis (PodChipSurface kind, unsigned index);
/* The element with its indentation and a line feed at the end. Returns: (transfer full) */
char *pod_chip_surface_to_xml (PodChipSurface kind, const PodSurface *surface, const char *source);

/* Peak of one device at that dtype (falls back: fp8 on a chip without it uses bf16's; *out_fallback says so, nullable). */
double pod_chip_peak (const PodChip *chip, PodDtype dtype, bool is_book, PodDtype *out_used);
double pod_chip_hbm_rate (const PodChip *chip, bool is_book);     /* of one device */
double pod_chip_hbm_capacity (const PodChip *chip, bool is_book); /* of one device */
