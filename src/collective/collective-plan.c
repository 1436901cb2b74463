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

static double
whole_link_rate (const PodTopology *topology, PodFidelity fidelity, const PodLink *link)
{
  switch (fidelity)
    {
    case POD_FIDELITY_BOOK:
      return link->bytes_per_s.book;
    case POD_FIDELITY_CALIBRATED:
      if (topology->chip != NULL && topology->chip->network_efficiency > 0)
        return link->bytes_per_s.nominal * topology->chip->network_efficiency;
      return link->bytes_per_s.nominal;
    default:
      return link->bytes_per_s.nominal;
    }
}

double
pod_collective_link_rate (const PodTopology *topology, PodFidelity fidelity, uint32_t link)
{
  PodLink description;
  double rate;

  pod_topology_link (topology, link, &description);
  rate = whole_link_rate (topology, fidelity, &description);
  return topology->background_bytes_per_s == NULL ? rate
                                                  : rate - topology->background_bytes_per_s[link];
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

PodPlan *
pod_plan_shift (const PodPlan *plan, const PodTopologyShift *shift)
{
  PodPlan *shifted = g_memdup2 (plan, sizeof *plan);

  shifted->explain = NULL;
  shifted->entries = g_new (PodPathEntry, plan->n_entries);
  for (uint32_t i = 0; i < plan->n_entries; i++)
    shifted->entries[i] = (PodPathEntry){
      .link = pod_topology_shift_link (shift, plan->entries[i].link),
      .share_q32 = plan->entries[i].share_q32,
    };
  return shifted;
}

double
pod_plan_time (const PodTopology *topology, PodFidelity fidelity, const PodPlan *plan,
               uint64_t payload_bytes)
{
  double bytes = (double) payload_bytes, slowest_s;
  PodSlowest slowest = { .topology = topology, .fidelity = fidelity };

  if (fidelity == POD_FIDELITY_BOOK)
    return MAX (bytes * plan->book_s_per_byte, plan->book_latency_s);
  for (uint32_t i = 0; i < plan->n_entries; i++)
    pod_slowest_add (&slowest, plan->entries[i].link, (double) plan->entries[i].share_q32);
  slowest_s = pod_slowest_s (&slowest);
  if (plan->wire_ratio > 0)
    slowest_s *= plan->wire_ratio;
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

/* Phases one after another hold the busiest link for the sum of their times. A plan whose phases
 * cannot overlap says so itself. */
static void
set_phases (const PodPlanRequest *request, PodPlan *plan)
{
  const uint64_t many_bytes = G_GUINT64_CONSTANT (1) << 50; /* no latency beside it */
  int64_t latency_ps = plan->latency_ps;
  double merged_s;

  if (plan->sequential_s_per_byte > 0 && request->phases == POD_PHASES_SEQUENTIAL)
    plan->phases = POD_PHASES_SEQUENTIAL;
  if (plan->phases != POD_PHASES_SEQUENTIAL)
    return;
  plan->latency_ps = 0;
  merged_s = pod_plan_time (request->topology,
                            request->fidelity == POD_FIDELITY_BOOK ? POD_FIDELITY_IDEAL
                                                                   : request->fidelity,
                            plan, many_bytes);
  plan->latency_ps = latency_ps;
  if (merged_s > 0)
    plan->wire_ratio = plan->sequential_s_per_byte * (double) many_bytes / merged_s;
  if (request->fidelity == POD_FIDELITY_BOOK)
    plan->book_s_per_byte = plan->sequential_s_per_byte;
}

static PodPlan *
build (PodPlanRequest *request, const PodAlgorithm *algorithm, GError **error)
{
  g_autoptr (PodPlan) plan = g_new0 (PodPlan, 1);

  pod_link_loads_reset (&request->loads,
                        request->is_folded
                            ? 0
                            : MAX (2 * request->n_axes, 4) * request->group->n_devices,
                        request->topology->n_links);
  plan->algorithm = algorithm->name;
  plan->hbm_bytes_ratio = hbm_ratio (request->kind, request->group->n_devices);
  if (!algorithm->build (request, plan, error))
    return NULL;
  take_loads (plan, &request->loads);
  set_phases (request, plan);
  if (!(plan->book_s_per_byte > 0))
    plan->book_s_per_byte = pod_link_loads_time (request, POD_FIDELITY_BOOK);
  if (request->fidelity == POD_FIDELITY_BOOK)
    {
      g_autofree char *how = g_steal_pointer (&plan->explain);

      plan->explain = g_strdup_printf ("book: max(bytes / %.4g B/s, %.4g s); %s",
                                       1 / plan->book_s_per_byte, plan->book_latency_s, how);
    }
  return g_steal_pointer (&plan);
}

static bool
is_candidate (const PodPlanRequest *request, const PodAlgorithm *algorithm, const char *name)
{
  if ((algorithm->kinds >> request->kind & 1) == 0
      || algorithm->takes_traffic != (request->traffic != NULL)
      || algorithm->takes_idle != (request->n_idle > 0) || !algorithm->fits (request))
    return false;
  if (name != NULL)
    return strcmp (algorithm->name, name) == 0;
  return !algorithm->is_by_name && (algorithm->may_win == NULL || algorithm->may_win (request))
         && !(algorithm->is_by_name_in_book && request->fidelity == POD_FIDELITY_BOOK);
}

/* Without a library's table: the chip's launch floor, and the network efficiency that its links
 * have. */
static void
add_launch (const PodPlanRequest *request, PodPlan *plan, uint64_t payload_bytes)
{
  const PodTopology *topology = request->topology;
  int64_t launch_ps = 0;

  if (request->fidelity == POD_FIDELITY_CALIBRATED && topology->chip != NULL
      && pod_seconds_to_ps (topology->chip->collective_launch_s, &launch_ps))
    plan->latency_ps += launch_ps;
  plan->cost_s = pod_plan_time (topology, request->fidelity, plan, payload_bytes);
}

/* Seconds that an override of the scale-up latency adds to the steps inside nodes (or takes away).
 * A library's step was measured on the chip as its file has it, so that much is in it already. */
static double
overridden_latency_s (const PodPlanRequest *request, const PodPlan *plan)
{
  const PodChip *chip = request->topology->chip;
  int64_t inside_ps = plan->latency_ps - MIN (plan->net_latency_ps, plan->latency_ps);

  if (request->topology->fabric != POD_FABRIC_SWITCHED
      || chip->scale_up_hop_ps == chip->scale_up_file_hop_ps)
    return 0;
  if (chip->scale_up_hop_ps == 0)
    return -1e-12 * (double) chip->scale_up_file_hop_ps
           * (plan->n_steps - MIN (plan->n_net_steps, plan->n_steps));
  return 1e-12 * (double) inside_ps
         * (1 - (double) chip->scale_up_file_hop_ps / (double) chip->scale_up_hop_ps);
}

/* Adds them to @plan, as far as @path has steps to take them from. What the library believes when it
 * chooses stays as it is. */
static void
add_overridden (const PodLibraryPath *path, const PodLibraryShape *shape, double overridden_s,
                PodPlan *plan)
{
  double steps_s = shape->n_steps * path->step_s + shape->n_net_steps * path->net_step_s
                   + shape->net_latency_s;
  int64_t overridden_ps;

  if (overridden_s < 0)
    plan->latency_ps -= MIN ((int64_t) (1e12 * MIN (-overridden_s, steps_s)), plan->latency_ps);
  else if (pod_seconds_to_ps (overridden_s, &overridden_ps)
           && plan->latency_ps < INT64_MAX / 4 - overridden_ps)
    plan->latency_ps += overridden_ps;
  else
    plan->latency_ps = INT64_MAX / 4;
  if (!(path->tuner_rate_ratio > 0))
    plan->cost_s += MAX (overridden_s, -steps_s);
}

/* Which rows of the tables a request asks for. */
typedef struct
{
  const char *algorithm; /* (nullable) any */
  const char *protocol;  /* (nullable) any */
  bool is_by_library;    /* only what the library has a path for */
} Wanted;

/* Adds to @plans what @algorithm makes of the request: a plan for each path of the library. */
static bool
add_plans (PodPlanRequest *request, const PodAlgorithm *algorithm, const Wanted *wanted,
           uint64_t payload_bytes, GPtrArray *plans, GError **error)
{
  g_autoptr (PodPlan) plan = build (request, algorithm, error);
  PodLibraryShape shape;
  double overridden_s;
  guint n_before = plans->len;

  if (plan == NULL)
    return false;
  if (request->device != NULL)
    pod_library_shape (request, plan, &shape);
  overridden_s = overridden_latency_s (request, plan);
  for (guint i = 0; request->device != NULL && i < request->device->paths->len; i++)
    {
      const PodLibraryPath *path = g_ptr_array_index (request->device->paths, i);
      PodPlan *priced;

      if (!pod_library_path_fits (request->device, path, &shape, algorithm->name)
          || (wanted->protocol != NULL
              && strcmp (wanted->protocol, pod_protocol_name (path->protocol)) != 0))
        continue;
      priced = pod_plan_copy (plan);
      pod_library_apply (request, path, &shape, payload_bytes, priced);
      if (overridden_s < 0 || overridden_s > 0)
        add_overridden (path, &shape, overridden_s, priced);
      g_ptr_array_add (plans, priced);
    }
  if (plans->len > n_before || wanted->protocol != NULL || wanted->is_by_library)
    return true;
  add_launch (request, plan, payload_bytes);
  g_ptr_array_add (plans, g_steal_pointer (&plan));
  return true;
}

static void
free_plan (gpointer data)
{
  pod_plan_free (data);
}

/* Every plan that the request may take, in the order of the tables. */
static GPtrArray *
list_plans (PodPlanRequest *request, const char *algorithm, const char *protocol,
            uint64_t payload_bytes, GError **error)
{
  g_autoptr (GPtrArray) plans = g_ptr_array_new_with_free_func (free_plan);
  Wanted wanted = { .algorithm = algorithm, .protocol = protocol };

  for (size_t i = 0; i < pod_n_algorithms && algorithm == NULL; i++)
    wanted.is_by_library |= is_candidate (request, &pod_algorithms[i], NULL)
                            && pod_library_has (request, pod_algorithms[i].name);
  for (size_t i = 0; i < pod_n_algorithms; i++)
    if (is_candidate (request, &pod_algorithms[i], algorithm)
        && (!wanted.is_by_library || pod_library_has (request, pod_algorithms[i].name))
        && !add_plans (request, &pod_algorithms[i], &wanted, payload_bytes, plans, error))
      return NULL;
  return g_steal_pointer (&plans);
}

static PodPlan *
cheapest (GPtrArray *plans)
{
  guint best = 0;

  if (plans->len == 0)
    return NULL;
  /* Equal up to rounding is equal: the first stays */
  for (guint i = 1; i < plans->len; i++)
    if (((const PodPlan *) g_ptr_array_index (plans, i))->cost_s
        < ((const PodPlan *) g_ptr_array_index (plans, best))->cost_s * (1 - 1e-9))
      best = i;
  return g_ptr_array_steal_index (plans, best);
}

/* Each name once, those that fit when @request is not NULL. */
static char *
list_names (const PodPlanRequest *request)
{
  GString *text = g_string_new ("auto");

  for (size_t i = 0; i < pod_n_algorithms; i++)
    {
      bool is_new
          = request == NULL || is_candidate (request, &pod_algorithms[i], pod_algorithms[i].name);

      for (size_t k = 0; k < i && is_new; k++)
        if (strcmp (pod_algorithms[k].name, pod_algorithms[i].name) == 0
            && (request == NULL
                || is_candidate (request, &pod_algorithms[k], pod_algorithms[k].name)))
          is_new = false;
      if (is_new)
        g_string_append_printf (text, ", %s", pod_algorithms[i].name);
    }
  return g_string_free (text, FALSE);
}

GPtrArray *
pod_collective_algorithms (void)
{
  GPtrArray *names = g_ptr_array_new ();

  for (size_t i = 0; i < pod_n_algorithms; i++)
    if (!g_ptr_array_find_with_equal_func (names, pod_algorithms[i].name, g_str_equal, NULL))
      g_ptr_array_add (names, (gpointer) pod_algorithms[i].name);
  return names;
}

static bool
check_name (const char *name, GError **error)
{
  g_autofree char *names = NULL;

  if (name == NULL)
    return true;
  for (size_t i = 0; i < pod_n_algorithms; i++)
    if (strcmp (pod_algorithms[i].name, name) == 0)
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

/* "ring/ll128" into its parts; "auto" is NULL. */
static bool
split_name (const char *text, char **out_algorithm, const char **out_protocol, GError **error)
{
  const char *slash = text == NULL ? NULL : strchr (text, '/');

  *out_protocol = NULL;
  if (slash != NULL)
    {
      for (unsigned p = 0; p < POD_N_PROTOCOLS; p++)
        if (g_ascii_strcasecmp (slash + 1, pod_protocol_name (p)) == 0)
          *out_protocol = pod_protocol_name (p);
      if (*out_protocol == NULL)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                       "unknown protocol '%s', expected ll, ll128 or simple", slash + 1);
          return false;
        }
    }
  *out_algorithm = slash != NULL ? g_strndup (text, (gsize) (slash - text)) : g_strdup (text);
  if (g_strcmp0 (*out_algorithm, "auto") == 0)
    g_clear_pointer (out_algorithm, g_free);
  return check_name (*out_algorithm, error);
}

bool
pod_collective_check_algorithm (const char *text, GError **error)
{
  g_autofree char *name = NULL;
  const char *protocol;

  return split_name (text, &name, &protocol, error);
}

static PodPlan *
plan_of_one (void)
{
  PodPlan *plan = g_new0 (PodPlan, 1);

  plan->algorithm = "none";
  plan->explain = g_strdup ("a group of one moves nothing");
  return plan;
}

/* Analyses the group of @query into @request. */
static bool
prepare (PodPlanRequest *request, const PodPlanQuery *query, GError **error)
{
  const PodTopology *topology = query->topology;

  if (!check_group (topology, query->group, query->kind, error))
    return false;
  *request = (PodPlanRequest){
    .topology = topology,
    .fidelity = query->fidelity,
    .group = query->group,
    .kind = query->kind,
    .dtype = query->dtype,
    .payload_bytes = query->payload_bytes,
    .phases = query->phases,
    .has_steps = query->steps != NULL,
    .traffic = query->traffic,
    .is_folded = query->is_folded,
    .route = g_array_new (FALSE, FALSE, sizeof (uint32_t)),
  };
  if (query->steps != NULL)
    request->steps = *query->steps;
  if (query->fidelity == POD_FIDELITY_CALIBRATED)
    request->device = pod_library_device (query->library, topology->chip);
  if (query->group->n_factors > 0 && topology->fabric == POD_FABRIC_TORUS)
    return pod_axes_init (request, error);
  if (topology->fabric == POD_FABRIC_SWITCHED)
    pod_member_nodes_init (&request->nodes, topology, query->group);
  return true;
}

unsigned
pod_n_idle_axes (const PodPlanQuery *query)
{
  unsigned n = 0;

  for (unsigned f = query->group->n_factors; f < query->borrowed->n_factors; f++)
    n += query->borrowed->factors[f].size > 1 ? 1 : 0;
  return n;
}

/* What idle axes make of the request, beside the plans without them. */
static bool
add_borrowed (const PodPlanQuery *query, const char *name, GPtrArray *plans, GError **error)
{
  g_auto (PodPlanRequest) request = { 0 };
  g_autoptr (GPtrArray) more = NULL;
  PodPlanQuery wide = *query;

  if (query->borrowed == NULL || query->traffic != NULL)
    return true;
  wide.group = query->borrowed;
  wide.library = NULL;
  if (!prepare (&request, &wide, error))
    return false;
  request.n_idle = pod_n_idle_axes (query);
  more
      = request.n_idle == 0 ? NULL : list_plans (&request, name, NULL, query->payload_bytes, error);
  if (more == NULL)
    return request.n_idle == 0;
  while (more->len > 0)
    g_ptr_array_add (plans, g_ptr_array_steal_index (more, 0));
  return true;
}

GPtrArray *
pod_collective_plan_table (const PodPlanQuery *query, GError **error)
{
  g_auto (PodPlanRequest) request = { 0 };
  g_autofree char *name = NULL;
  g_autofree char *names = NULL;
  g_autoptr (GPtrArray) plans = NULL;
  const char *protocol;

  g_return_val_if_fail (query->topology != NULL && query->group != NULL, NULL);
  g_return_val_if_fail (query->group->n_devices > 0, NULL);
  g_return_val_if_fail ((unsigned) query->kind < POD_N_COLLECTIVES
                            && query->group->n_factors <= POD_MAX_FACTORS,
                        NULL);

  if (!split_name (query->algorithm, &name, &protocol, error))
    return NULL;
  if (query->group->n_devices == 1)
    {
      plans = g_ptr_array_new_with_free_func (free_plan);
      g_ptr_array_add (plans, plan_of_one ());
      return g_steal_pointer (&plans);
    }
  if (!prepare (&request, query, error))
    return NULL;
  plans = list_plans (&request, name, protocol, query->payload_bytes, error);
  if (plans == NULL || !add_borrowed (query, name, plans, error))
    return NULL;
  if (plans->len == 0)
    {
      names = list_names (&request);
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                   "algorithm %s%s%s cannot do %s over this group of %u; these can: %s",
                   name == NULL ? "auto" : name, protocol == NULL ? "" : "/",
                   protocol == NULL ? "" : protocol, pod_collective_name (query->kind),
                   query->group->n_devices, names);
      return NULL;
    }
  return g_steal_pointer (&plans);
}

GArray *
pod_library_cases (const PodPlanQuery *query, GError **error)
{
  g_auto (PodPlanRequest) request = { 0 };
  g_autoptr (GArray) cases = g_array_new (FALSE, TRUE, sizeof (PodLibraryCase));

  if (!prepare (&request, query, error))
    return NULL;
  for (size_t i = 0; i < pod_n_algorithms; i++)
    {
      g_autoptr (PodPlan) plan = NULL;
      PodLibraryCase one = { .algorithm = pod_algorithms[i].name };

      if (!is_candidate (&request, &pod_algorithms[i], NULL)
          || !pod_library_has (&request, pod_algorithms[i].name))
        continue;
      plan = build (&request, &pod_algorithms[i], error);
      if (plan == NULL)
        return NULL;
      pod_library_shape (&request, plan, &one.shape);
      g_array_append_val (cases, one);
    }
  return g_steal_pointer (&cases);
}

PodPlan *
pod_collective_plan_query (const PodPlanQuery *query, GError **error)
{
  g_autoptr (GPtrArray) plans = pod_collective_plan_table (query, error);

  return plans != NULL ? cheapest (plans) : NULL;
}

PodPlan *
pod_collective_plan (const PodTopology *topology, PodFidelity fidelity, const PodGroup *group,
                     PodCollectiveKind kind, uint64_t payload_bytes, const char *algorithm,
                     GError **error)
{
  const PodPlanQuery query = {
    .topology = topology,
    .fidelity = fidelity,
    .group = group,
    .kind = kind,
    .dtype = POD_DTYPE_BF16,
    .payload_bytes = payload_bytes,
    .algorithm = algorithm,
  };

  return pod_collective_plan_query (&query, error);
}
