#pragma once

#include "collective/collective.h"
#include "network/message-set.h"

/* The messages of one collective of one group, for packet mode: what each member sends, to whom, by
 * which links, and what it waits for. Steps of an algorithm are messages of the size of its shards,
 * over the links that its plan counts, so that bytes on each link agree. Stages that the plan lets
 * overlap (several axes, nodes and rails, trees) are cut into chunks that follow one another. */

/* The messages of @plan, which pod_collective_plan_query made for @query. LIMIT: an all-to-all
 * with more pairs than fit in memory. A group of one gives an empty set. Returns: (transfer full).
 * O(streams + dependencies). Bytes are those on the wire: the payload's times the plan's
 * wire_ratio. */
PodMessageSet *pod_collective_messages_query (const PodPlanQuery *query, const PodPlan *plan,
                                              GError **error);
/* The same, of a query without more than these. */
PodMessageSet *pod_collective_messages (const PodTopology *topology, PodFidelity fidelity,
                                        const PodGroup *group, PodCollectiveKind kind,
                                        uint64_t payload_bytes, const PodPlan *plan,
                                        GError **error);
