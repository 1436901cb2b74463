#include "collective/messages.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "collective/messages-private.h"

enum
{
  MOST_STAGE_CHUNKS = 512, /* filling and draining take one or two of them: below 1 % */
  CHAIN_CHUNKS_PER_HOP = 128, /* filling and draining is then below 1 % */
  LEAST_CHUNK_BYTES = 4096,
  MOST_MESSAGES = 1 << 23, /* that chunks may make */
};

typedef struct
{
  const char *name;
  bool (*fits) (const PodPlanRequest *request);
  PodMessageBuild build;
  unsigned kinds;
} Family;

enum
{
  EXCHANGE = 1 << POD_ALL_TO_ALL,
  ROOTED = 1 << POD_BROADCAST | 1 << POD_REDUCE,
  RINGS = 1 << POD_ALL_GATHER | 1 << POD_REDUCE_SCATTER | 1 << POD_ALL_REDUCE,
  MESSAGES = 1 << POD_SEND | 1 << POD_PERMUTE,
};

/* As the table of plans (collective-plan.c), row by row. */
static const Family families[] = {
  { "block-ring", pod_fits_block_ring, pod_message_block_ring, RINGS },
  { "bidir-ring", pod_fits_one_ring, pod_message_axis_exchange, RINGS },
  { "line", pod_fits_one_line, pod_message_axis_exchange, RINGS },
  { "torus", pod_fits_torus, pod_message_axis_exchange, RINGS },
  { "hierarchical", pod_fits_slices, pod_message_axis_exchange, RINGS },
  { "rail-ring", pod_fits_slices_only, pod_message_axis_exchange, RINGS },
  { "tree", pod_fits_factors, pod_message_axis_tree, ROOTED },
  { "ring", pod_fits_factor_route_ring, pod_message_ring_list, RINGS | ROOTED },
  { "ring", pod_fits_one_node, pod_message_node_ring, RINGS | ROOTED },
  { "direct", pod_fits_one_node, pod_message_node_direct, RINGS | ROOTED },
  { "nvls", pod_fits_nvls, pod_message_nvls, RINGS },
  { "double-tree", pod_fits_nodes, pod_message_double_tree, 1 << POD_ALL_REDUCE },
  { "nvls-tree", pod_fits_nvls_tree, pod_message_nvls_tree, 1 << POD_ALL_REDUCE },
  { "hierarchical", pod_fits_nodes, pod_message_hierarchical, RINGS },
  { "ring", pod_fits_nodes, pod_message_rail_ring, RINGS | ROOTED },
  { "ring", pod_fits_list, pod_message_ring_list, RINGS | ROOTED },
  { "bidir-ring", pod_fits_list, pod_message_bidir_list, RINGS },
  { "tree", pod_fits_list, pod_message_route_tree, ROOTED },
  { "sharp", pod_fits_sharp, pod_message_sharp, RINGS },
  { "hierarchical", pod_fits_islands, pod_message_islands, 1 << POD_ALL_REDUCE },
  { "recursive-doubling", pod_fits_any, pod_message_recursive_doubling, RINGS },
  { "halving-doubling", pod_fits_any, pod_message_halving_doubling, RINGS },
  { "step-ring", pod_fits_step_ring, pod_message_step_ring, RINGS },
  { "direct", pod_fits_any, pod_message_send, MESSAGES },
  { "pxn", pod_fits_pxn, pod_message_pxn, EXCHANGE },
  { NULL, pod_fits_any, pod_message_all_to_all, EXCHANGE }, /* of any name: pair by pair */
};

void
pod_arrivals_init (PodArrivals *arrivals, uint32_t n_members)
{
  *arrivals = (PodArrivals){ n_members, g_new0 (GArray *, n_members) };
}

void
pod_arrivals_clear (PodArrivals *arrivals)
{
  for (uint32_t i = 0; arrivals->of != NULL && i < arrivals->n_members; i++)
    g_clear_pointer (&arrivals->of[i], g_array_unref);
  g_clear_pointer (&arrivals->of, g_free);
}

void
pod_arrivals_add (PodArrivals *arrivals, uint32_t member, uint32_t stream)
{
  if (arrivals->of[member] == NULL)
    arrivals->of[member] = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_array_append_val (arrivals->of[member], stream);
}

void
pod_arrivals_take (PodArrivals *arrivals, PodArrivals *from)
{
  for (uint32_t i = 0; i < from->n_members; i++)
    {
      GArray *streams = from->of[i];

      for (guint k = 0; streams != NULL && k < streams->len; k++)
        pod_arrivals_add (arrivals, i, g_array_index (streams, uint32_t, k));
      g_clear_pointer (&from->of[i], g_array_unref);
    }
}

void
pod_message_after_arrivals (PodMessageBuilder *builder, const PodArrivals *arrivals,
                            uint32_t member)
{
  const GArray *streams = arrivals->of[member];

  for (guint k = 0; streams != NULL && k < streams->len; k++)
    pod_message_set_after (
        builder->set,
        (PodMessageDep){ .stream = g_array_index (streams, uint32_t, k), .after = POD_AFTER_ALL });
}

void
pod_message_window (PodMessageBuilder *builder, const PodArrivals *end, uint32_t member,
                    uint32_t n_chunks)
{
  const GArray *streams = end->of[member];

  for (guint k = 0; streams != NULL && k < streams->len; k++)
    pod_message_set_after (builder->set,
                           (PodMessageDep){ .stream = g_array_index (streams, uint32_t, k),
                                            .lag = n_chunks,
                                            .after = POD_AFTER_WINDOW });
}

uint64_t
pod_message_bytes (const PodMessageBuilder *builder, double share)
{
  return (uint64_t) ((double) builder->payload_bytes * share + 0.5);
}

void
pod_message_after (PodMessageBuilder *builder, uint32_t stream, uint32_t lag)
{
  pod_message_set_after (builder->set, (PodMessageDep){ .stream = stream, .lag = lag });
}

bool
pod_message_route (PodMessageBuilder *builder, uint32_t from, uint32_t to, uint32_t *out,
                   GError **error)
{
  const GArray *links = builder->request->route;

  if (!pod_route_find (builder->request, from, to, error))
    return false;
  *out = pod_message_set_route (builder->set, (const uint32_t *) links->data, links->len);
  return true;
}

uint32_t
pod_message_neighbour (const PodAxisHop *hop)
{
  const PodAxis *axis = hop->axis;
  uint32_t position = hop->index / axis->span % axis->size;
  uint32_t next = (hop->sign > 0 ? position + 1 : position + axis->size - 1) % axis->size;

  return hop->index + next * axis->span - position * axis->span;
}

bool
pod_message_append_hop (PodMessageBuilder *builder, const PodAxisHop *hop, GError **error)
{
  const PodPlanRequest *request = builder->request;
  uint32_t at = request->group->devices[hop->index], link;

  if (hop->axis->dim >= POD_DIM_DCN)
    {
      if (!pod_route_find (builder->request, at,
                           request->group->devices[pod_message_neighbour (hop)], error))
        return false;
      g_array_append_vals (builder->links, request->route->data, request->route->len);
      return true;
    }
  for (uint32_t i = 0; i < hop->axis->stride; i++)
    {
      if (!pod_topology_torus_link (request->topology, at, hop->axis->dim, hop->sign, &link, &at))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "%s: no link from device %u",
                       request->topology->name, at);
          return false;
        }
      g_array_append_val (builder->links, link);
    }
  return true;
}

bool
pod_message_hop_route (PodMessageBuilder *builder, const PodAxisHop *hop, uint32_t *out,
                       GError **error)
{
  g_array_set_size (builder->links, 0);
  if (!pod_message_append_hop (builder, hop, error))
    return false;
  *out = pod_message_set_route (builder->set, (const uint32_t *) builder->links->data,
                                builder->links->len);
  return true;
}

/* Filling and draining takes about time / n. A chunk's step takes time / (n steps), and of its two
 * halves (pod_message_parts) one hides the other's latency while that is half of it at most:
 * n = time / (2 latency of all steps). */
uint32_t
pod_message_stage_chunks (const PodMessageBuilder *builder, uint64_t n_messages)
{
  const PodPlanRequest *request = builder->request;
  double latency_s = (double) builder->plan->latency_ps * 1e-12;
  double time_s
      = pod_plan_time (request->topology, POD_FIDELITY_IDEAL, builder->plan, builder->payload_bytes)
        - latency_s;
  double n = MOST_STAGE_CHUNKS;

  if (latency_s > 0)
    n = MIN (n, MAX (time_s, 0) / latency_s / 2);
  n = MIN (n, (double) MOST_MESSAGES / (double) MAX (n_messages, 1));
  n = MIN (n, (double) builder->payload_bytes / LEAST_CHUNK_BYTES);
  return n < 1 ? 1 : (uint32_t) n;
}

uint32_t
pod_message_chain_chunks (const PodMessageBuilder *builder, uint32_t n_hops, uint64_t n_messages)
{
  uint64_t n
      = MIN (builder->payload_bytes / LEAST_CHUNK_BYTES, (uint64_t) n_hops * CHAIN_CHUNKS_PER_HOP);

  n = MIN (n, MOST_MESSAGES / MAX (n_messages, 1));
  return (uint32_t) MAX (n, 1);
}

static void
request_clear (PodPlanRequest *request)
{
  pod_member_nodes_clear (&request->nodes);
  g_clear_pointer (&request->route, g_array_unref);
}

/* What the plan waits besides its hops (launch floor, steps of a library) passes at the start. */
static bool
find_launch (PodMessageBuilder *builder, const PodPlanQuery *query, GError **error)
{
  PodPlanQuery ideal = *query;
  g_autoptr (PodPlan) bare = NULL;

  if (query->fidelity != POD_FIDELITY_CALIBRATED)
    return true;
  ideal.fidelity = POD_FIDELITY_IDEAL;
  ideal.algorithm = builder->plan->algorithm;
  ideal.library = NULL;
  bare = pod_collective_plan_query (&ideal, error);
  if (bare == NULL)
    return false;
  builder->set->launch_ps = MAX (builder->plan->latency_ps - bare->latency_ps, 0);
  return true;
}

static bool
build (PodMessageBuilder *builder, GError **error)
{
  const PodPlanRequest *request = builder->request;

  for (size_t i = 0; i < G_N_ELEMENTS (families); i++)
    {
      const Family *family = &families[i];

      if ((family->kinds >> request->kind & 1) != 0 && family->fits (request)
          && (family->name == NULL || strcmp (family->name, builder->plan->algorithm) == 0))
        return family->build (builder, error);
    }
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
               "algorithm %s of %s has no messages for packet mode", builder->plan->algorithm,
               pod_collective_name (request->kind));
  return false;
}

PodMessageSet *
pod_collective_messages_query (const PodPlanQuery *query, const PodPlan *plan, GError **error)
{
  const PodTopology *topology = query->topology;
  bool is_borrowed = strcmp (plan->algorithm, "borrow") == 0;
  const PodGroup *group = is_borrowed ? query->borrowed : query->group;
  PodPlanRequest request = { .topology = topology,
                             .fidelity = query->fidelity,
                             .group = group,
                             .kind = query->kind,
                             .traffic = query->traffic };
  g_autoptr (PodMessageSet) set = pod_message_set_new ();
  g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  /* Phases one after another hold their links for longer than their bytes take: no more bytes */
  double wire_ratio
      = plan->wire_ratio > 0 && plan->phases == POD_PHASES_PIPELINED ? plan->wire_ratio : 1;
  PodMessageBuilder builder
      = { .request = &request,
          .plan = plan,
          .payload_bytes = (uint64_t) ((double) query->payload_bytes * wire_ratio + 0.5),
          .set = set,
          .links = links };
  bool is_good = true;

  if (query->group->n_devices == 1)
    return g_steal_pointer (&set);
  if (!find_launch (&builder, query, error))
    return NULL;
  request.route = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  if (group->n_factors > 0 && topology->fabric == POD_FABRIC_TORUS)
    is_good = pod_axes_init (&request, error);
  else if (topology->fabric == POD_FABRIC_SWITCHED)
    pod_member_nodes_init (&request.nodes, topology, group);
  if (is_borrowed)
    request.n_idle = pod_n_idle_axes (query);
  is_good = is_good
            && (is_borrowed ? pod_message_borrow (&builder, error) : build (&builder, error));
  request_clear (&request);
  return is_good ? g_steal_pointer (&set) : NULL;
}

PodMessageSet *
pod_collective_messages (const PodTopology *topology, PodFidelity fidelity, const PodGroup *group,
                         PodCollectiveKind kind, uint64_t payload_bytes, const PodPlan *plan,
                         GError **error)
{
  const PodPlanQuery query = { .topology = topology,
                               .fidelity = fidelity,
                               .group = group,
                               .kind = kind,
                               .payload_bytes = payload_bytes };

  return pod_collective_messages_query (&query, plan, error);
}
