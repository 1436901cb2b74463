#pragma once

#include "topology/topology.h"

/* A machine as NCCL or RCCL sees it: <system> of CPU sockets, PCIe bridges, GPUs, NICs, NVLinks and
 * xGMI links, as NCCL_TOPO_DUMP_FILE writes it and cloud images ship it. GPUs become devices (in
 * the order of their dev, else of the file), sockets, bridges, NICs and their ports switches. What
 * a shortened file leaves to NCCL to find out is taken from defaults, each of them noted with the
 * assumptions. Errors name file and line. Returns: (transfer full) (nullable). O(size). */
PodTopology *pod_nccl_xml_read (const char *file, GError **error);
