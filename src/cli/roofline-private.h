#pragma once

#include <stdbool.h>

#include "chip/roofline.h"
#include "topology/topology.h"

/* What podsim roofline was asked for and what it found; shared by its reading and its printing
 * part. */

typedef struct
{
  char *topology;
  char *op;
  char *shape;
  char *dtype;
  char *weight_dtype;
  char *out_dtype;
  char *compute_dtype;
  char *place;
  char *fidelity;
  char *json;
  char **overrides;
  gboolean is_causal;
  gboolean is_explained;
} PodRooflineOptions;

typedef struct
{
  PodRooflineOptions options;
  PodTopology *topology; /* (owned) (nullable) when the machine is a bare chip */
  PodChip *own_chip;     /* (owned) (nullable) when it is not */
  const PodChip *chip;
  GPtrArray *assumptions; /* (owned) (element-type utf8) */
  PodFidelity fidelity;
  PodRooflineInput input;
  PodRoofline result;
} PodRooflineJob;

/* Writes every number to options.json. */
bool pod_roofline_write_json (const PodRooflineJob *job, GError **error);
void pod_roofline_print (const PodRooflineJob *job);
