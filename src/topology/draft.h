#pragma once

#include "topology/topology.h"

/* A machine that a reader of another format puts together piece by piece. */
typedef struct PodTopologyDraft PodTopologyDraft;

/* Node or switch of a draft; switches may be added before nodes. */
typedef uint32_t PodDraftVertex;

typedef enum
{
  POD_DRAFT_FULL,    /* each direction has the rate */
  POD_DRAFT_HALF,    /* both directions share it */
  POD_DRAFT_SIMPLEX, /* only from - to */
} PodDraftDuplex;

typedef struct
{
  PodDraftVertex from;
  PodDraftVertex to;
  double bytes_per_s;
  double latency_s;
  PodDraftDuplex duplex;
  const char *name; /* (nullable) unique: what routes call it */
} PodDraftLink;

/* @chip: a chip's name or file. */
PodTopologyDraft *pod_draft_new (const char *name, const char *chip, PodFabric fabric);
void pod_draft_free (PodTopologyDraft *draft);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodTopologyDraft, pod_draft_free)

/* Something taken for granted: it stands with the assumptions of the machine. */
void pod_draft_note (PodTopologyDraft *draft, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* A number of the chip, as --set chip.FIELD=VALUE; checked by pod_draft_build. */
void pod_draft_set_chip (PodTopologyDraft *draft, const char *field, const char *value);
/* Torus and switched machines: extent, wrap, chips-per-node, ... as attributes of our XML. */
bool pod_draft_set_option (PodTopologyDraft *draft, const char *name, const char *value,
                           GError **error);

/* Graphs. Names are unique over nodes and switches. Error: INVALID without a place. O(1). */
bool pod_draft_add_node (PodTopologyDraft *draft, const char *name, const char *island,
                         PodDraftVertex *out, GError **error);
bool pod_draft_add_switch (PodTopologyDraft *draft, const char *name, PodDraftVertex *out,
                           GError **error);
/* Rate above 0, different ends, a latency that the clock holds: else INVALID. */
bool pod_draft_add_link (PodTopologyDraft *draft, const PodDraftLink *link, uint32_t *out_index,
                         GError **error);
/* The way from node to node over links (indices of pod_draft_add_link) that have names, in order.
 */
bool pod_draft_add_route (PodTopologyDraft *draft, PodDraftVertex from, PodDraftVertex to,
                          const uint32_t *links, unsigned n_links, GError **error);

/* The machine; the draft may be built again, with more routes. Returns: (transfer full) (nullable)
 */
PodTopology *pod_draft_build (const PodTopologyDraft *draft, GError **error);
