#pragma once

#include "base/json.h"
#include "topology/topology.h"

/* What podsim topology tells of a chip and of a machine, as text and as JSON. */

/* A kind of link as it occurs in a machine; those of one kind and rate are one class. */
typedef struct
{
  PodLinkKind kind;
  int level;        /* of the tree, -1 elsewhere */
  unsigned n_links; /* one direction each */
  PodRated bytes_per_s;
  int64_t latency_ps;
} PodLinkClass;

/* In the order of PodLinkKind, tree levels from the leaves up. Returns: (transfer full)
 * (element-type PodLinkClass). O(links) on graphs, else O(levels). */
GArray *pod_machine_links (const PodTopology *topology);
const char *pod_link_kind_name (PodLinkKind kind);

/* Appends the chip's numbers with the book's values and sources. */
void pod_chip_facts_print (const PodChip *chip, GString *out);
/* The defaults of the chip's family for shape expressions. */
void pod_chip_defaults_print (const PodChip *chip, GString *out);
/* Sets chip.*, chip.book.* and defaults.* */
void pod_chip_facts_set (const PodChip *chip, JsonObject *root);
/* Chips of a full pod (TPU) or of a scale-up domain. */
double pod_chip_full_size (const PodChip *chip);
/* Rails that a node of @chips_per_node gets unless told otherwise. */
unsigned pod_chip_default_rails (const PodChip *chip, unsigned chips_per_node);

/* @title, @source: (nullable) as the machine's file has them. */
void pod_machine_facts_print (const PodTopology *topology, const char *title, const char *source,
                              GString *out);
/* Sets topology.* */
void pod_machine_facts_set (const PodTopology *topology, const char *title, const char *source,
                            JsonObject *root);
