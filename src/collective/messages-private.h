#pragma once

#include "collective/messages.h"
#include "collective/plan-private.h"

/* What the families of algorithms share when they write down their messages. */

typedef struct
{
  PodPlanRequest *request;
  const PodPlan *plan;
  uint64_t payload_bytes;
  PodMessageSet *set; /* (transfer none) */
  GArray *links;      /* (element-type uint32_t) of the route that is being written */
  uint32_t n_chunks;  /* of an exchange over axes; 0: as many as suit it */
} PodMessageBuilder;

typedef bool (*PodMessageBuild) (PodMessageBuilder *builder, GError **error);

/* The streams that bring a member what the next stage needs. */
typedef struct
{
  uint32_t n_members;
  GArray **of; /* (nullable each) (element-type uint32_t) */
} PodArrivals;

void pod_arrivals_init (PodArrivals *arrivals, uint32_t n_members);
void pod_arrivals_clear (PodArrivals *arrivals);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodArrivals, pod_arrivals_clear)
void pod_arrivals_add (PodArrivals *arrivals, uint32_t member, uint32_t stream);
/* Adds those of @from, and empties it. */
void pod_arrivals_take (PodArrivals *arrivals, PodArrivals *from);
/* Step 0 of the stream that was added last waits for all that comes to @member. */
void pod_message_after_arrivals (PodMessageBuilder *builder, const PodArrivals *arrivals,
                                 uint32_t member);

/* The stream that was added last, of @member, runs at most @n_chunks ahead of what comes to it at the @end. */
void pod_message_window (PodMessageBuilder *builder, const PodArrivals *end, uint32_t member,
                         uint32_t n_chunks);

/* Of the payload, rounded to bytes. */
uint64_t pod_message_bytes (const PodMessageBuilder *builder, double share);
void pod_message_after (PodMessageBuilder *builder, uint32_t stream, uint32_t lag);
/* The machine's route between two devices. */
bool pod_message_route (PodMessageBuilder *builder, uint32_t from, uint32_t to, uint32_t *out,
                        GError **error);
/* The links of a hop along an axis, appended to builder->links. */
bool pod_message_append_hop (PodMessageBuilder *builder, const PodAxisHop *hop, GError **error);
bool pod_message_hop_route (PodMessageBuilder *builder, const PodAxisHop *hop, uint32_t *out,
                            GError **error);
uint32_t pod_message_neighbour (const PodAxisHop *hop);

/* Steps of a chunk go in so many parts, each after its own of the step before: while one is under
 * way the next one is sent. */
static inline uint32_t
pod_message_parts (uint32_t n_chunks)
{
  return n_chunks > 1 ? 2 : 1;
}

/* Chunks of stages that overlap: enough that filling and draining is short, few enough that the
 * latency of each is. @n_messages: of one chunk. */
uint32_t pod_message_stage_chunks (const PodMessageBuilder *builder, uint64_t n_messages);
/* Chunks of a chain of @n_hops, which stream through it. */
uint32_t pod_message_chain_chunks (const PodMessageBuilder *builder, uint32_t n_hops,
                                   uint64_t n_messages);

/* A ring over n routes, each from one member to the next, n_messages each; the message of a step is
 * the one that came in the step before. */
void pod_message_ring (PodMessageBuilder *builder, const uint32_t *routes, uint32_t n,
                       uint64_t bytes, uint32_t n_messages);

bool pod_message_ring_list (PodMessageBuilder *builder, GError **error);
bool pod_message_bidir_list (PodMessageBuilder *builder, GError **error);
bool pod_message_block_ring (PodMessageBuilder *builder, GError **error);
bool pod_message_send (PodMessageBuilder *builder, GError **error);
bool pod_message_route_tree (PodMessageBuilder *builder, GError **error);
bool pod_message_all_to_all (PodMessageBuilder *builder, GError **error);
bool pod_message_axis_exchange (PodMessageBuilder *builder, GError **error);
/* Over own and idle axes. */
bool pod_message_borrow (PodMessageBuilder *builder, GError **error);
bool pod_message_axis_tree (PodMessageBuilder *builder, GError **error);
bool pod_message_node_ring (PodMessageBuilder *builder, GError **error);
bool pod_message_node_direct (PodMessageBuilder *builder, GError **error);
/* Both ways of the switch of a node, in shares of the payload for each member. */
bool pod_message_switch (PodMessageBuilder *builder, unsigned node, double share_up,
                         double share_down, uint32_t n_chunks, GError **error);
/* In each node each member sends to its peers what a scatter, or a gather, there needs. @before: what
 * it waits for, @out: what comes of it (both nullable). */
bool pod_message_all_inside (PodMessageBuilder *builder, uint32_t n_chunks,
                             const PodArrivals *before, PodArrivals *out, GError **error);
bool pod_message_sharp (PodMessageBuilder *builder, GError **error);
bool pod_message_pxn (PodMessageBuilder *builder, GError **error);
bool pod_message_islands (PodMessageBuilder *builder, GError **error);
bool pod_message_recursive_doubling (PodMessageBuilder *builder, GError **error);
bool pod_message_halving_doubling (PodMessageBuilder *builder, GError **error);
bool pod_message_step_ring (PodMessageBuilder *builder, GError **error);
bool pod_message_nvls (PodMessageBuilder *builder, GError **error);
bool pod_message_hierarchical (PodMessageBuilder *builder, GError **error);
bool pod_message_double_tree (PodMessageBuilder *builder, GError **error);
bool pod_message_nvls_tree (PodMessageBuilder *builder, GError **error);
bool pod_message_rail_ring (PodMessageBuilder *builder, GError **error);
