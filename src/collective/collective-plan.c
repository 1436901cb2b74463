#include "collective/plan-private.h"

#include "base/error.h"
#include "base/units.h"

static const double q32_one = 4294967296.0;

static const char *const kind_names[POD_N_COLLECTIVES] = {
  [POD_ALL_GATHER] = "all_gather",
  [POD_REDUCE_SCATTER] = "reduce_scatter",
  [POD_ALL_REDUCE] = "all_reduce",
  [POD_ALL_TO_ALL] = "all_to_all",
  [POD_BROADCAST] = "broadcast",
  [POD_REDUCE] = "reduce",
  [POD_SEND] = "p2p",
  [POD_PERMUTE] = "collective_permute",
};

enum
{
  GATHER = 1 << POD_ALL_GATHER,
  SCATTER = 1 << POD_REDUCE_SCATTER,
  REDUCE_ALL = 1 << POD_ALL_REDUCE,
  EXCHANGE = 1 << POD_ALL_TO_ALL,
  ROOTED = 1 << POD_BROADCAST | 1 << POD_REDUCE,
  MESSAGES = 1 << POD_SEND | 1 << POD_PERMUTE,
  RINGS = GATHER | SCATTER | REDUCE_ALL,
};

/* Every algorithm. Of those that fit the cheapest is taken, ties go to the first; a name may stand
 * in several rows. */
static const PodAlgorithm algorithms[] = {
  { .name = "block-ring",
    .kinds = RINGS,
    .fits = pod_fits_block_ring,
    .build = pod_build_block_ring },
  { .name = "bidir-ring",
    .kinds = RINGS | EXCHANGE,
    .fits = pod_fits_one_ring,
    .build = pod_build_axis_exchange },
  { .name = "line",
    .kinds = RINGS | EXCHANGE,
    .fits = pod_fits_one_line,
    .build = pod_build_axis_exchange },
  { .name = "torus",
    .kinds = RINGS | EXCHANGE,
    .fits = pod_fits_torus,
    .build = pod_build_axis_exchange },
  { .name = "hierarchical",
    .kinds = RINGS | EXCHANGE,
    .fits = pod_fits_slices,
    .build = pod_build_axis_exchange },
  { .name = "rail-ring",
    .kinds = RINGS | EXCHANGE,
    .fits = pod_fits_slices_only,
    .build = pod_build_axis_exchange },
  { .name = "tree", .kinds = ROOTED, .fits = pod_fits_factors, .build = pod_build_axis_tree },
  { .name = "ring",
    .kinds = RINGS | ROOTED,
    .fits = pod_fits_factor_route_ring,
    .build = pod_build_route_ring,
    .is_by_name = true },

  { .name = "ring",
    .kinds = RINGS | ROOTED,
    .fits = pod_fits_one_node,
    .build = pod_build_node_ring },
  { .name = "direct",
    .kinds = RINGS | ROOTED,
    .fits = pod_fits_one_node,
    .build = pod_build_node_direct },
  { .name = "nvls",
    .kinds = REDUCE_ALL,
    .fits = pod_fits_nvls,
    .build = pod_build_nvls,
    .is_by_name_in_book = true },
  /* Trees before hierarchical: on two nodes they tie, and NCCL's choice is the tree */
  { .name = "double-tree",
    .kinds = REDUCE_ALL,
    .fits = pod_fits_nodes,
    .build = pod_build_double_tree },
  { .name = "nvls-tree",
    .kinds = REDUCE_ALL,
    .fits = pod_fits_nvls_tree,
    .build = pod_build_nvls_tree,
    .is_by_name_in_book = true },
  { .name = "hierarchical",
    .kinds = RINGS,
    .fits = pod_fits_nodes,
    .build = pod_build_hierarchical },
  { .name = "ring", .kinds = RINGS, .fits = pod_fits_nodes, .build = pod_build_rail_ring },
  { .name = "ring", .kinds = ROOTED, .fits = pod_fits_nodes, .build = pod_build_rail_chain },
  { .name = "direct",
    .kinds = EXCHANGE,
    .fits = pod_fits_switched,
    .build = pod_build_node_all_to_all },

  { .name = "ring", .kinds = RINGS | ROOTED, .fits = pod_fits_list, .build = pod_build_route_ring },
  { .name = "bidir-ring",
    .kinds = RINGS,
    .fits = pod_fits_list,
    .build = pod_build_route_bidir_ring },
  { .name = "tree", .kinds = ROOTED, .fits = pod_fits_list, .build = pod_build_route_tree },
  { .name = "direct",
    .kinds = EXCHANGE,
    .fits = pod_fits_list,
    .build = pod_build_route_all_to_all },
  { .name = "direct", .kinds = MESSAGES, .fits = pod_fits_any, .build = pod_build_route_send },
};

const char *
pod_collective_name (PodCollectiveKind kind)
{
  g_return_val_if_fail ((unsigned) kind < POD_N_COLLECTIVES, "?");
  return kind_names[kind];
}

bool
pod_collective_parse (const char *text, PodCollectiveKind *out, GError **error)
{
  for (unsigned i = 0; i < POD_N_COLLECTIVES; i++)
    if (g_strcmp0 (text, kind_names[i]) == 0)
      {
        *out = (PodCollectiveKind) i;
        return true;
      }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "unknown collective '%s', expected all_gather, reduce_scatter, all_reduce, "
               "all_to_all, broadcast, reduce, "
               "p2p or collective_permute",
               text == NULL ? "" : text);
  return false;
}

/* nccl-tests, doc/PERFORMANCE.md */
double
pod_collective_bus_factor (PodCollectiveKind kind, uint32_t n_ranks)
{
  double n = n_ranks;

  if (n_ranks < 2)
    return 1;
  switch (kind)
    {
    case POD_ALL_REDUCE:
      return 2 * (n - 1) / n;
    case POD_ALL_GATHER:
    case POD_REDUCE_SCATTER:
    case POD_ALL_TO_ALL:
      return (n - 1) / n;
    default:
      return 1;
    }
}

double
pod_collective_link_rate (const PodTopology *topology, PodFidelity fidelity, uint32_t link)
{
  PodLink description;

  pod_topology_link (topology, link, &description);
  switch (fidelity)
    {
    case POD_FIDELITY_BOOK:
      return description.bytes_per_s.book;
    case POD_FIDELITY_CALIBRATED:
      if (topology->chip != NULL && topology->chip->network_efficiency > 0)
        return description.bytes_per_s.nominal * topology->chip->network_efficiency;
      return description.bytes_per_s.nominal;
    default:
      return description.bytes_per_s.nominal;
    }
}

void
pod_plan_free (PodPlan *plan)
{
  if (plan == NULL)
    return;
  g_free (plan->entries);
  g_free (plan->explain);
  g_free (plan);
}

double
pod_plan_time (const PodTopology *topology, PodFidelity fidelity, const PodPlan *plan,
               uint64_t payload_bytes)
{
  double bytes = (double) payload_bytes, slowest_s = 0;

  if (fidelity == POD_FIDELITY_BOOK)
    return MAX (bytes * plan->book_s_per_byte, plan->book_latency_s);
  for (uint32_t i = 0; i < plan->n_entries; i++)
    slowest_s = MAX (slowest_s,
                     (double) plan->entries[i].share_q32
                         / pod_collective_link_rate (topology, fidelity, plan->entries[i].link));
  return (double) plan->latency_ps * 1e-12 + bytes * plan->busiest_ratio / q32_one * slowest_s;
}

/* HBM bytes per payload byte and device. A gather writes what arrives and reads what it passes on:
 * 2(n-1)/n. A reduction reads both operands and writes the sum for each shard that it takes part
 * in: 3(n-1)/n; all-reduce does both. */
static double
hbm_ratio (PodCollectiveKind kind, double n)
{
  switch (kind)
    {
    case POD_ALL_GATHER:
    case POD_ALL_TO_ALL:
      return 2 * (n - 1) / n;
    case POD_REDUCE_SCATTER:
      return 3 * (n - 1) / n;
    case POD_ALL_REDUCE:
      return 5 * (n - 1) / n;
    case POD_REDUCE:
      return 3;
    case POD_SEND:
      return 1;
    default:
      return 2;
    }
}

static void
take_loads (PodPlan *plan, const PodLinkLoads *loads)
{
  for (uint32_t i = 0; i < loads->n; i++)
    plan->busiest_ratio = MAX (plan->busiest_ratio, loads->bytes[i]);
  plan->entries = g_new (PodPathEntry, loads->n);
  for (uint32_t i = 0; i < loads->n; i++)
    if (loads->bytes[i] > 0)
      {
        double share = loads->bytes[i] / plan->busiest_ratio * q32_one;

        plan->entries[plan->n_entries++] = (PodPathEntry){
          .link = loads->links[i],
          .share_q32 = share < 1 ? 1 : (uint64_t) (share + 0.5),
        };
      }
}

static PodPlan *
build (PodPlanRequest *request, const PodAlgorithm *algorithm, GError **error)
{
  const PodTopology *topology = request->topology;
  g_autoptr (PodPlan) plan = g_new0 (PodPlan, 1);

  pod_link_loads_clear (&request->loads);
  pod_link_loads_init (&request->loads, MAX (2 * request->n_axes, 4) * request->group->n_devices);
  plan->algorithm = algorithm->name;
  plan->hbm_bytes_ratio = hbm_ratio (request->kind, request->group->n_devices);
  if (!algorithm->build (request, plan, error))
    return NULL;
  take_loads (plan, &request->loads);
  if (!(plan->book_s_per_byte > 0))
    plan->book_s_per_byte = pod_link_loads_time (request, POD_FIDELITY_BOOK);
  if (request->fidelity == POD_FIDELITY_BOOK)
    {
      g_autofree char *how = g_steal_pointer (&plan->explain);

      plan->explain = g_strdup_printf ("book: max(bytes / %.4g B/s, %.4g s); %s",
                                       1 / plan->book_s_per_byte, plan->book_latency_s, how);
    }
  if (request->fidelity == POD_FIDELITY_CALIBRATED && topology->chip != NULL)
    {
      int64_t launch_ps = 0;

      if (pod_seconds_to_ps (topology->chip->collective_launch_s, &launch_ps))
        plan->latency_ps += launch_ps;
    }
  return g_steal_pointer (&plan);
}

static bool
is_candidate (const PodPlanRequest *request, const PodAlgorithm *algorithm, const char *name)
{
  if ((algorithm->kinds >> request->kind & 1) == 0 || !algorithm->fits (request))
    return false;
  if (name != NULL)
    return strcmp (algorithm->name, name) == 0;
  return !algorithm->is_by_name
         && !(algorithm->is_by_name_in_book && request->fidelity == POD_FIDELITY_BOOK);
}

static PodPlan *
choose (PodPlanRequest *request, uint64_t payload_bytes, const char *name, GError **error)
{
  g_autoptr (PodPlan) best = NULL;
  double best_s = 0;
  unsigned n_candidates = 0;

  for (size_t i = 0; i < G_N_ELEMENTS (algorithms); i++)
    n_candidates += is_candidate (request, &algorithms[i], name);
  for (size_t i = 0; i < G_N_ELEMENTS (algorithms); i++)
    {
      g_autoptr (PodPlan) plan = NULL;
      double time_s;

      if (!is_candidate (request, &algorithms[i], name))
        continue;
      plan = build (request, &algorithms[i], error);
      if (plan == NULL)
        return NULL;
      if (name != NULL || n_candidates == 1)
        return g_steal_pointer (&plan);
      time_s = pod_plan_time (request->topology, request->fidelity, plan, payload_bytes);
      /* Equal up to rounding is equal: the first stays */
      if (best == NULL || time_s < best_s * (1 - 1e-9))
        {
          g_clear_pointer (&best, pod_plan_free);
          best = g_steal_pointer (&plan);
          best_s = time_s;
        }
    }
  return g_steal_pointer (&best);
}

/* Each name once, those that fit when @request is not NULL. */
static char *
list_names (const PodPlanRequest *request)
{
  GString *text = g_string_new ("auto");

  for (size_t i = 0; i < G_N_ELEMENTS (algorithms); i++)
    {
      bool is_new = request == NULL || is_candidate (request, &algorithms[i], algorithms[i].name);

      for (size_t k = 0; k < i && is_new; k++)
        if (strcmp (algorithms[k].name, algorithms[i].name) == 0
            && (request == NULL || is_candidate (request, &algorithms[k], algorithms[k].name)))
          is_new = false;
      if (is_new)
        g_string_append_printf (text, ", %s", algorithms[i].name);
    }
  return g_string_free (text, FALSE);
}

GPtrArray *
pod_collective_algorithms (void)
{
  GPtrArray *names = g_ptr_array_new ();

  for (size_t i = 0; i < G_N_ELEMENTS (algorithms); i++)
    if (!g_ptr_array_find_with_equal_func (names, algorithms[i].name, g_str_equal, NULL))
      g_ptr_array_add (names, (gpointer) algorithms[i].name);
  return names;
}

static bool
check_name (const char *name, GError **error)
{
  g_autofree char *names = NULL;

  if (name == NULL)
    return true;
  for (size_t i = 0; i < G_N_ELEMENTS (algorithms); i++)
    if (strcmp (algorithms[i].name, name) == 0)
      return true;
  names = list_names (NULL);
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
               "unknown algorithm '%s', expected one of %s", name, names);
  return false;
}

static void
request_clear (PodPlanRequest *request)
{
  pod_member_nodes_clear (&request->nodes);
  pod_link_loads_clear (&request->loads);
  g_clear_pointer (&request->route, g_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodPlanRequest, request_clear)

static bool
check_group (const PodTopology *topology, const PodGroup *group, PodCollectiveKind kind,
             GError **error)
{
  uint64_t product = 1;

  for (unsigned f = 0; f < group->n_factors; f++)
    product *= group->factors[f].size;
  if (group->n_factors > 0 && product != group->n_devices)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "the group has %u devices, its factors make %" G_GUINT64_FORMAT,
                   group->n_devices, product);
      return false;
    }
  if (kind == POD_SEND && group->n_devices > 2)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "p2p takes 2 devices, got %u",
                   group->n_devices);
      return false;
    }
  for (uint32_t i = 0; i < group->n_devices; i++)
    if (group->devices[i] >= topology->n_devices)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                     "%s has devices 0 to %u, the group names %u", topology->name,
                     topology->n_devices - 1, group->devices[i]);
        return false;
      }
  return true;
}

PodPlan *
pod_collective_plan (const PodTopology *topology, PodFidelity fidelity, const PodGroup *group,
                     PodCollectiveKind kind, uint64_t payload_bytes, const char *algorithm,
                     GError **error)
{
  g_auto (PodPlanRequest) request
      = { .topology = topology, .fidelity = fidelity, .group = group, .kind = kind };
  const char *name = g_strcmp0 (algorithm, "auto") == 0 ? NULL : algorithm;
  g_autofree char *names = NULL;
  PodPlan *plan;

  g_return_val_if_fail (topology != NULL && group != NULL && group->n_devices > 0, NULL);
  g_return_val_if_fail ((unsigned) kind < POD_N_COLLECTIVES && group->n_factors <= POD_MAX_FACTORS,
                        NULL);

  if (!check_name (name, error) || !check_group (topology, group, kind, error))
    return NULL;
  if (group->n_devices == 1)
    {
      plan = g_new0 (PodPlan, 1);
      plan->algorithm = "none";
      plan->explain = g_strdup ("a group of one moves nothing");
      return plan;
    }
  request.route = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  if (group->n_factors > 0 && topology->fabric == POD_FABRIC_TORUS)
    {
      if (!pod_axes_init (&request, error))
        return NULL;
    }
  else if (topology->fabric == POD_FABRIC_SWITCHED)
    pod_member_nodes_init (&request.nodes, topology, group);

  plan = choose (&request, payload_bytes, name, error);
  if (plan == NULL && (error == NULL || *error == NULL))
    {
      names = list_names (&request);
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                   "algorithm %s cannot do %s over this group of %u; these can: %s",
                   name == NULL ? "auto" : name, pod_collective_name (kind), group->n_devices,
                   names);
    }
  return plan;
}
