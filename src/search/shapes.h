#pragma once

#include "topology/topology.h"

/* The machines of N chips that there are of a chip: slices of a torus, twisted ones too, each with the wrap links that it gets;
 * scale-up domains joined by a network. @text: "tpu-v5p:512", options of the machine may follow ("h100:1024,nic=200Gb/s"). Axes of a
 * slice are put in ascending order: the others are the same turned. Errors: INVALID, of the chip; INFEASIBLE when there is none. Returns:
 * (transfer full) (element-type utf8) shape expressions, the most compact first. O(divisors of N, squared) */
GPtrArray *pod_shapes_of (const char *text, GError **error);

/* Which axes wrap: "xyz", "xy", "none", "xyz twisted"; "-" for a machine that is no torus. Returns: (transfer full) */
char *pod_shape_wraps (const PodTopology *topology);
