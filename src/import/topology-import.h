#pragma once

#include "topology/topology.h"

/* A format of others that describes a machine. */
typedef struct
{
  const char *name;    /* "nccl" */
  const char *summary; /* "NCCL and RCCL topology XML" */
  /* Whether @text, the beginning of a file, is of this format. */
  bool (*is_format) (const char *text);
  PodTopology *(*read) (const char *file, GError **error);
} PodTopologyFormat;

extern const PodTopologyFormat pod_topology_formats[]; /* ends with name NULL */

/* By the file's content; NULL for our own and for what cannot be read. (transfer none) (nullable)
 */
const PodTopologyFormat *pod_topology_format_of (const char *file);

/* The machine that @text names: a file of the format @format (nullable or "auto": by its content),
 * or whatever pod_topology_load takes. Errors: as pod_topology_load; INVALID for an unknown format
 * and for a file of a format that describes no machine. Returns: (transfer full) (nullable) */
PodTopology *pod_import_topology (const char *text, const char *format, GError **error);
