#include "collective/messages-private.h"

/* Within nodes of a switched machine, and across them: node-exchange.c, rail-exchange.c and
 * double-tree.c as messages. Members are numbered as in PodMemberNodes.devices. */

static unsigned
twice (const PodMessageBuilder *builder)
{
  return builder->request->kind == POD_ALL_REDUCE ? 2 : 1;
}

static bool
member_route (PodMessageBuilder *builder, uint32_t from, uint32_t to, uint32_t *out, GError **error)
{
  const uint32_t *devices = builder->request->nodes.devices;

  return pod_message_route (builder, devices[from], devices[to], out, error);
}

/* Each member of a node sends @share of the payload to its peers, in equal parts, in n_chunks
 * chunks of n_messages. What it waits for: @before, or step by step the streams of @steps. */
typedef struct
{
  unsigned node;
  double share;
  uint32_t n_messages;
  uint32_t n_chunks;
  const PodArrivals *before; /* (nullable) */
  const PodArrivals *steps;  /* (nullable) block k waits for step k - 1 there */
  PodArrivals *out;          /* (nullable) */
} Inside;

static bool
add_inside (PodMessageBuilder *builder, const Inside *inside, GError **error)
{
  const PodMemberNodes *nodes = &builder->request->nodes;
  uint32_t first = nodes->first[inside->node], n = pod_member_nodes_count (nodes, inside->node);
  uint64_t bytes = n > 1 ? pod_message_bytes (builder, inside->share / (n - 1)) : 0;

  for (uint32_t shift = 1; shift < n; shift++)
    for (uint32_t i = 0; i < n; i++)
      {
        uint32_t from = first + i, to = first + (i + shift) % n, route, stream;

        if (!member_route (builder, from, to, &route, error))
          return false;
        stream = pod_message_set_stream (builder->set, route, bytes, inside->n_messages,
                                         inside->n_chunks);
        if (inside->before != NULL)
          pod_message_after_arrivals (builder, inside->before, from);
        for (guint k = 0; inside->steps != NULL && inside->steps->of[from] != NULL
                          && k < inside->steps->of[from]->len;
             k++)
          pod_message_after (builder, g_array_index (inside->steps->of[from], uint32_t, k),
                             pod_message_parts (inside->n_chunks));
        if (inside->out != NULL)
          pod_arrivals_add (inside->out, to, stream);
      }
  return true;
}

/* ---- one node ---- */

/* In a full mesh n - 1 rings run at once: all pair links, in as many steps as a ring has. */
static bool
add_mesh_rings (PodMessageBuilder *builder, GError **error)
{
  const PodGroup *group = builder->request->group;
  uint32_t n = group->n_devices, first = builder->set->streams->len, route;
  uint32_t n_messages = twice (builder) * (n - 1);

  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n - 1; k++)
      {
        uint32_t peer = k < i ? k : k + 1; /* whose streams to others follow one another */

        if (!member_route (builder, i, peer, &route, error))
          return false;
        pod_message_set_stream (builder->set, route,
                                pod_message_bytes (builder, twice (builder) / (double) n),
                                n_messages, 1);
        pod_message_after (builder, first + peer * (n - 1) + (i < peer ? i : i - 1), 1);
      }
  return true;
}

/* In a mesh the root scatters and all gather (a reduction is the mirror image). */
static bool
add_mesh_broadcast (PodMessageBuilder *builder, GError **error)
{
  uint32_t n = builder->request->group->n_devices, route;
  bool is_reverse = builder->request->kind == POD_REDUCE;
  uint64_t bytes = pod_message_bytes (builder, 1.0 / n);
  g_auto (PodArrivals) arrivals = { 0 };
  Inside inside = { .share = (n - 1.0) / n, .n_messages = 1, .n_chunks = 1 };

  pod_arrivals_init (&arrivals, n);
  if (is_reverse)
    {
      inside.out = &arrivals;
      if (!add_inside (builder, &inside, error))
        return false;
    }
  for (uint32_t i = 1; i < n; i++)
    {
      uint32_t stream;

      if (!member_route (builder, is_reverse ? i : 0, is_reverse ? 0 : i, &route, error))
        return false;
      stream = pod_message_set_stream (builder->set, route, bytes, 1, 1);
      if (is_reverse)
        {
          pod_message_after_arrivals (builder, &arrivals, i);
          continue;
        }
      pod_arrivals_add (&arrivals, i, stream);
      pod_arrivals_add (&arrivals, 0, stream); /* the root scatters before it gathers */
    }
  if (is_reverse)
    return true;
  inside.before = &arrivals;
  return add_inside (builder, &inside, error);
}

static bool
is_rooted (const PodMessageBuilder *builder)
{
  return builder->request->kind == POD_BROADCAST || builder->request->kind == POD_REDUCE;
}

bool
pod_message_node_ring (PodMessageBuilder *builder, GError **error)
{
  if (!builder->request->topology->is_full_mesh)
    return pod_message_ring_list (builder, error);
  return is_rooted (builder) ? add_mesh_broadcast (builder, error)
                             : add_mesh_rings (builder, error);
}

bool
pod_message_node_direct (PodMessageBuilder *builder, GError **error)
{
  uint32_t n = builder->request->group->n_devices;
  g_auto (PodArrivals) arrivals = { 0 };
  Inside inside = { .share = (n - 1.0) / n, .n_messages = 1, .n_chunks = 1 };

  if (is_rooted (builder)) /* through a switch a chain, however it is called */
    return pod_message_node_ring (builder, error);
  pod_arrivals_init (&arrivals, n);
  if (builder->request->kind == POD_ALL_REDUCE)
    {
      inside.out = &arrivals;
      if (!add_inside (builder, &inside, error))
        return false;
      inside.out = NULL;
      inside.before = &arrivals;
    }
  return add_inside (builder, &inside, error);
}

/* ---- between nodes ---- */

/* What crosses from one node to another, in strands as pod_node_add_flow has them. */
typedef struct
{
  unsigned from;
  unsigned to;
  uint32_t first; /* stream */
  uint32_t n;
} Edge;

static uint32_t
strand_from (const PodMessageBuilder *builder, const Edge *edge, uint32_t s)
{
  const PodMemberNodes *nodes = &builder->request->nodes;

  return nodes->first[edge->from]
         + (uint32_t) ((uint64_t) s * pod_member_nodes_count (nodes, edge->from) / edge->n);
}

static uint32_t
strand_to (const PodMessageBuilder *builder, const Edge *edge, uint32_t s)
{
  const PodMemberNodes *nodes = &builder->request->nodes;

  return nodes->first[edge->to]
         + (uint32_t) ((uint64_t) s * pod_member_nodes_count (nodes, edge->to) / edge->n);
}

static Edge
make_edge (const PodMessageBuilder *builder, unsigned from, unsigned to)
{
  const PodMemberNodes *nodes = &builder->request->nodes;

  return (Edge){ from, to, 0,
                 pod_node_n_strands (pod_member_nodes_count (nodes, from),
                                     pod_member_nodes_count (nodes, to)) };
}

/* The stream of strand @s; waits are for the caller to add. */
static bool
add_strand (PodMessageBuilder *builder, const Edge *edge, uint32_t s, uint64_t bytes,
            uint32_t n_messages, uint32_t n_chunks, GError **error)
{
  uint32_t route;

  if (!member_route (builder, strand_from (builder, edge, s), strand_to (builder, edge, s), &route,
                     error))
    return false;
  pod_message_set_stream (builder->set, route, bytes / edge->n + (s < bytes % edge->n), n_messages,
                          n_chunks);
  return true;
}

/* One round of the rings over nodes, on all rails: gather (from 1 - k_next/n of the payload) or
 * scatter (1 - k/n). */
typedef struct
{
  bool is_scatter;
  uint32_t n_chunks;
  const PodArrivals *before; /* (nullable) */
  PodArrivals *out;
} Across;

static bool
add_across (PodMessageBuilder *builder, const Across *across, GError **error)
{
  const PodMemberNodes *nodes = &builder->request->nodes;
  unsigned n_nodes = nodes->n_nodes;
  double n = builder->request->group->n_devices;
  g_autofree Edge *edges = g_new (Edge, n_nodes);
  uint32_t next = builder->set->streams->len, parts = pod_message_parts (across->n_chunks);

  for (unsigned j = 0; j < n_nodes; j++)
    {
      edges[j] = make_edge (builder, j, (j + 1) % n_nodes);
      edges[j].first = next;
      next += edges[j].n;
    }
  for (unsigned j = 0; j < n_nodes; j++)
    {
      const Edge *edge = &edges[j], *behind = &edges[(j + n_nodes - 1) % n_nodes];
      unsigned left_out = across->is_scatter ? j : edge->to;
      uint64_t bytes
          = pod_message_bytes (builder, 1 - pod_member_nodes_count (nodes, left_out) / n);

      for (uint32_t s = 0; s < edge->n; s++)
        {
          if (!add_strand (builder, edge, s, bytes, (n_nodes - 1) * parts, across->n_chunks, error))
            return false;
          for (uint32_t b = 0; b < behind->n; b++)
            if (strand_to (builder, behind, b) == strand_from (builder, edge, s))
              pod_message_after (builder, behind->first + b, parts);
          if (across->before != NULL)
            pod_message_after_arrivals (builder, across->before, strand_from (builder, edge, s));
          pod_arrivals_add (across->out, strand_to (builder, edge, s), edge->first + s);
        }
    }
  return true;
}

static bool
add_all_inside (PodMessageBuilder *builder, Inside inside, GError **error)
{
  const PodMemberNodes *nodes = &builder->request->nodes;

  for (unsigned j = 0; j < nodes->n_nodes; j++)
    {
      double k = pod_member_nodes_count (nodes, j);

      inside.node = j;
      inside.share = (k - 1) / k;
      if (!add_inside (builder, &inside, error))
        return false;
    }
  return true;
}

bool
pod_message_all_inside (PodMessageBuilder *builder, uint32_t n_chunks, const PodArrivals *before,
                        PodArrivals *out, GError **error)
{
  return add_all_inside (
      builder,
      (Inside){ .n_messages = 1, .n_chunks = n_chunks, .before = before, .out = out }, error);
}

/* Scatter inside, then across; gather across, then inside: block by block as they come. */
bool
pod_message_hierarchical (PodMessageBuilder *builder, GError **error)
{
  const PodMemberNodes *nodes = &builder->request->nodes;
  PodCollectiveKind kind = builder->request->kind;
  uint32_t n = builder->request->group->n_devices;
  g_auto (PodArrivals) scattered = { 0 };
  g_auto (PodArrivals) reduced = { 0 };
  g_auto (PodArrivals) gathered = { 0 };
  uint32_t n_chunks = pod_message_stage_chunks (builder, (uint64_t) twice (builder) * n
                                                             * nodes->n_nodes * nodes->n_least);
  Inside inside = { .n_messages = 1, .n_chunks = n_chunks, .out = &scattered };
  Across across
      = { .is_scatter = true, .n_chunks = n_chunks, .before = &scattered, .out = &reduced };

  pod_arrivals_init (&scattered, n);
  pod_arrivals_init (&reduced, n);
  pod_arrivals_init (&gathered, n);
  if (kind != POD_ALL_GATHER
      && (!add_all_inside (builder, inside, error) || !add_across (builder, &across, error)))
    return false;
  if (kind == POD_REDUCE_SCATTER)
    return true;
  across = (Across){ .n_chunks = n_chunks, .before = &reduced, .out = &gathered };
  inside = (Inside){ .n_messages = nodes->n_nodes * pod_message_parts (n_chunks),
                     .n_chunks = n_chunks,
                     .before = &reduced,
                     .steps = &gathered };
  return add_across (builder, &across, error) && add_all_inside (builder, inside, error);
}

/* Up to the root and down again; strands of a tree edge, with half of the payload. Sums that run
 * ahead fill the links of nodes with two children, and results those of the same nodes the other way
 * round: all links are full only when both go at one pace. So a member sends up what lies at most two
 * trips ahead of what has come down to it. */
static bool
add_tree (PodMessageBuilder *builder, unsigned tree, uint32_t n_chunks,
          const PodArrivals *scattered, PodArrivals *out, GError **error)
{
  unsigned n_nodes = builder->request->nodes.n_nodes;
  uint32_t n = builder->request->group->n_devices;
  uint64_t half = builder->payload_bytes / 2,
           bytes = tree == 0 ? builder->payload_bytes - half : half;
  g_auto (PodArrivals) up = { 0 };
  g_auto (PodArrivals) down = { 0 };
  g_autofree Edge *edges = g_new0 (Edge, n_nodes);
  uint32_t next = builder->set->streams->len;

  pod_arrivals_init (&up, n);
  pod_arrivals_init (&down, n);
  /* All numbers first: parents and children come in no order. Both directions of an edge have
   * equally many strands */
  for (unsigned rank = 1; rank < n_nodes; rank++)
    {
      unsigned parent;

      pod_double_tree_parent (n_nodes, rank, &parent);
      edges[rank] = make_edge (builder, pod_double_tree_place (n_nodes, tree, rank),
                               pod_double_tree_place (n_nodes, tree, parent));
      edges[rank].first = next;
      for (uint32_t s = 0; s < edges[rank].n; s++)
        {
          pod_arrivals_add (&up, strand_to (builder, &edges[rank], s), next + s);
          /* Down: the same strand the other way */
          pod_arrivals_add (&down, strand_from (builder, &edges[rank], s),
                            next + edges[rank].n + s);
        }
      next += 2 * edges[rank].n;
    }
  for (unsigned rank = 1; rank < n_nodes; rank++)
    {
      const Edge *edge = &edges[rank];
      Edge back = { edge->to, edge->from, edge->first + edge->n, edge->n };
      unsigned parent, above;
      bool is_below_root;

      pod_double_tree_parent (n_nodes, rank, &parent);
      is_below_root = !pod_double_tree_parent (n_nodes, parent, &above);
      for (uint32_t s = 0; s < edge->n; s++)
        {
          if (!add_strand (builder, edge, s, bytes, 1, n_chunks, error))
            return false;
          pod_message_after_arrivals (builder, &up, strand_from (builder, edge, s));
          pod_message_after_arrivals (builder, scattered, strand_from (builder, edge, s));
          pod_message_window (builder, &down, strand_from (builder, edge, s),
                              2 * builder->plan->n_steps);
        }
      for (uint32_t s = 0; s < back.n; s++)
        {
          if (!add_strand (builder, &back, s, bytes, 1, n_chunks, error))
            return false;
          pod_message_after_arrivals (builder, is_below_root ? &up : &down,
                                      strand_from (builder, &back, s));
          if (is_below_root)
            pod_message_after_arrivals (builder, scattered, strand_from (builder, &back, s));
        }
    }
  pod_arrivals_take (out, &down);
  /* The root has its result from below */
  for (uint32_t i = 0; i < n; i++)
    if (out->of[i] == NULL && up.of[i] != NULL)
      for (guint k = 0; k < up.of[i]->len; k++)
        pod_arrivals_add (out, i, g_array_index (up.of[i], uint32_t, k));
  return true;
}

static bool
add_trees (PodMessageBuilder *builder, bool is_switch_reduced, GError **error)
{
  const PodMemberNodes *nodes = &builder->request->nodes;
  uint32_t n = builder->request->group->n_devices;
  g_auto (PodArrivals) scattered = { 0 };
  g_auto (PodArrivals) reduced = { 0 };
  uint32_t n_chunks = pod_message_chain_chunks (builder, MAX (builder->plan->n_steps, 2),
                                                4 * (uint64_t) n * nodes->n_least);
  Inside inside = { .n_messages = 1, .n_chunks = n_chunks, .out = &scattered };

  pod_arrivals_init (&scattered, n);
  pod_arrivals_init (&reduced, n);
  for (unsigned j = 0; j < nodes->n_nodes && is_switch_reduced; j++)
    {
      double share = 1 + 1.0 / pod_member_nodes_count (nodes, j);

      if (pod_member_nodes_count (nodes, j) > 1
          && !pod_message_switch (builder, j, share, share, n_chunks, error))
        return false;
    }
  if (!is_switch_reduced && !add_all_inside (builder, inside, error))
    return false;
  for (unsigned tree = 0; tree < 2; tree++)
    if (!add_tree (builder, tree, n_chunks, &scattered, &reduced, error))
      return false;
  inside.before = &reduced;
  inside.out = NULL;
  return is_switch_reduced || add_all_inside (builder, inside, error);
}

bool
pod_message_double_tree (PodMessageBuilder *builder, GError **error)
{
  return add_trees (builder, false, error);
}

bool
pod_message_nvls_tree (PodMessageBuilder *builder, GError **error)
{
  return add_trees (builder, true, error);
}

/* ---- one ring per channel over all ranks ---- */

/* The rail on which channel @c enters node @j: another one than it entered the node before by, so
 * that it leaves a node by another device than it came in, and comes back to its first. */
static uint32_t
entry_of (const PodMemberNodes *nodes, unsigned j, uint32_t c, uint32_t n_channels)
{
  uint32_t k = pod_member_nodes_count (nodes, j % nodes->n_nodes);
  uint32_t shift = j % nodes->n_nodes % 2;

  if (nodes->n_nodes % 2 == 1 && j % nodes->n_nodes + 1 == nodes->n_nodes)
    shift = 2;
  return (uint32_t) (((uint64_t) c * k / n_channels + shift) % k);
}

/* Members of a node in the order of the channel: the entry first, the one that leaves last. */
static void
append_node (const PodMemberNodes *nodes, unsigned j, uint32_t c, uint32_t n_channels, GArray *out)
{
  uint32_t k = pod_member_nodes_count (nodes, j), first = nodes->first[j];
  uint32_t entry = entry_of (nodes, j, c, n_channels);
  uint32_t leaves = k == pod_member_nodes_count (nodes, (j + 1) % nodes->n_nodes)
                        ? entry_of (nodes, j + 1, c, n_channels)
                        : (entry + k - 1) % k;
  uint32_t member;

  if (leaves == entry)
    leaves = (entry + k - 1) % k;
  member = first + entry;
  g_array_append_val (out, member);
  for (uint32_t i = 1; i < k; i++)
    if ((entry + i) % k != leaves)
      {
        member = first + (entry + i) % k;
        g_array_append_val (out, member);
      }
  member = first + leaves;
  if (k > 1)
    g_array_append_val (out, member);
}

static bool
add_channel (PodMessageBuilder *builder, const GArray *members, uint64_t bytes, uint32_t n_chunks,
             GError **error)
{
  bool is_reverse = builder->request->kind == POD_REDUCE;
  uint32_t n = members->len, first = builder->set->streams->len, route;

  for (uint32_t i = 0; i < n - (is_rooted (builder) ? 1 : 0); i++)
    {
      uint32_t from = is_reverse ? n - 1 - i : i, to = is_reverse ? n - 2 - i : (i + 1) % n;

      if (!member_route (builder, g_array_index (members, uint32_t, from),
                         g_array_index (members, uint32_t, to), &route, error))
        return false;
      if (is_rooted (builder))
        {
          pod_message_set_stream (builder->set, route, bytes, 1, n_chunks);
          if (i > 0)
            pod_message_after (builder, first + i - 1, 0);
          continue;
        }
      pod_message_set_stream (builder->set, route, bytes, twice (builder) * (n - 1), 1);
      pod_message_after (builder, first + (i + n - 1) % n, 1);
    }
  return true;
}

bool
pod_message_rail_ring (PodMessageBuilder *builder, GError **error)
{
  const PodMemberNodes *nodes = &builder->request->nodes;
  uint32_t n_channels = 1, n_chunks, n = builder->request->group->n_devices;
  double share = is_rooted (builder) ? 1 : twice (builder) * (n - 1.0) / n;
  uint64_t bytes = pod_message_bytes (builder, share);

  for (unsigned j = 0; j < nodes->n_nodes; j++)
    n_channels = pod_node_n_strands (n_channels, pod_member_nodes_count (nodes, j));
  n_chunks = pod_message_chain_chunks (builder, n, (uint64_t) n * n_channels);
  for (uint32_t c = 0; c < n_channels; c++)
    {
      g_autoptr (GArray) members = g_array_new (FALSE, FALSE, sizeof (uint32_t));

      for (unsigned j = 0; j < nodes->n_nodes; j++)
        append_node (nodes, j, c, n_channels, members);
      if (!add_channel (builder, members, bytes / n_channels + (c < bytes % n_channels), n_chunks,
                        error))
        return false;
    }
  return true;
}
