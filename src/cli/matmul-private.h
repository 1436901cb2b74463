#pragma once

#include "chip/roofline.h"
#include "cli/cli.h"
#include "exec/matmul-price.h"

/* podsim matmul, over its files: options and run (cmd-matmul.c), JSON (matmul-json.c), tables
 * (matmul-print.c). */

typedef struct
{
  char *topology;
  char *mesh;
  char *map;
  char *order;
  char *shape;
  char *dtype;
  char *split;
  char *fidelity;
  char *json;
  char *library;
  char *algorithm;
  char **overrides;
  gboolean is_explained;
} PodMatmulOptions;

typedef struct
{
  PodMatmulOptions options;
  PodFidelity fidelity;
  PodLibrary *library;   /* (owned) (nullable) */
  const char *algorithm; /* (nullable) of collectives that it can do; in options */
  PodTopology *topology; /* (owned) (nullable) of an array alone it may be missing */
  PodArrayMesh mesh;
  PodEinsum einsum;
  PodDtype compute_dtype;          /* of a matmul: the wider of its operands' */
  PodMatmulStrategies *strategies; /* (owned) (nullable) */
  GPtrArray *prices; /* (owned) (nullable) (element-type PodPricedMatmul), best first */
  const PodPricedMatmul *by_cases; /* (nullable) */
  const PodPricedMatmul *best_overlapped;
  double capacity_bytes;  /* of one device's memory */
  double read_s;          /* of an array alone: to read its part from memory, 0 without a machine */
  GPtrArray *assumptions; /* (owned) (element-type utf8) */
} PodMatmulJob;

bool pod_matmul_write_json (const PodMatmulJob *job, GError **error);
void pod_matmul_print (const PodMatmulJob *job);

/* Bytes of one device: operands, result and workspace. */
double pod_matmul_total_bytes (const PodMatmulStrategy *strategy);
/* Of the whole matmul, done once. */
double pod_matmul_flops (const PodMatmulJob *job);
/* Times that the whole matmul is done, over all devices: 1 where nothing is done twice. */
double pod_matmul_work_copies (const PodMatmulJob *job, const PodMatmulStrategy *strategy);
/* What takes longest: "compute", "hbm", "network:XY". Returns: (transfer full) */
char *pod_matmul_bound (const PodMatmulJob *job, const PodPricedMatmul *priced);
