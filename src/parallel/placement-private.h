#pragma once

#include "parallel/mesh.h"

/* Placement of layout axes on the physical axes of a torus, and the order of axes on switched machines. */

/* "tp=x:4 fsdp=x:4,y,z": a bare axis takes what is left of it; x, y, z, dcn (slices) and core (devices of a chip). */
bool pod_placement_parse (const PodTopology *topology, const PodLayout *layout, const char *map,
                          PodAxisPlacement out[POD_N_AXES], GError **error);
/* The legal placement with the least predicted communication. Ties: the first tried. */
bool pod_placement_choose (const PodTopology *topology, const PodLayout *layout, const PodTraffic *traffic,
                           PodAxisPlacement out[POD_N_AXES], GError **error);
char *pod_placement_to_text (const PodTopology *topology, const PodAxisPlacement placement[POD_N_AXES]);

/* Which axis is innermost in the numbering of ranks (not in the placement). */
extern const PodAxis pod_rank_numbering[POD_N_AXES];
/* The physical factors of @size ranks whose numbers are @stride apart. Returns: how many, 0 where they cut across those of the axes. */
unsigned pod_placement_factors (const PodAxisPlacement placement[POD_N_AXES], uint32_t stride, uint32_t size, PodGroupFactor out[POD_MAX_FACTORS]);

/* Innermost first; NULL = tp,cp,fsdp,dp,pp. Axes that are not named stand in before dp (fsdp) or last. */
bool pod_order_parse (const char *order, PodAxis out[POD_N_AXES], PodEpPlace *out_ep, GError **error);
/* @ep (nullable): where it is told. */
char *pod_order_to_text (const PodAxis order[POD_N_AXES], const PodEpPlace *ep);
