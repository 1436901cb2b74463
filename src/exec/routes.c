#include "base/mix.h"
#include "base/units.h"
#include "exec/exec-private.h"

#include <math.h>
#include <string.h>

/* Plans every collective of a program: the algorithm is chosen for the first group and holds for all. Of groups that a symmetry carries
 * into one another only the first is looked at, and most of those have the first group's plan at another place. */

static void
use_clear (void *data)
{
  g_free (((PodCollectiveUse *) data)->explain);
}

static void
plan_free (void *plan)
{
  if (plan != NULL)
    pod_plan_free (plan);
}

static void
route_clear (void *data)
{
  g_ptr_array_unref (((PodRoute *) data)->plans);
}

static void
planned_free (void *data)
{
  PodPlanned *planned = data;

  g_free (planned->plan_of_group);
  g_free (planned);
}

/* At fidelity book a route takes the links out of its plans, which are its own. */
static bool
are_shared (const PodExecRequest *request)
{
  return request->plans != NULL && request->fidelity != POD_FIDELITY_BOOK;
}

void
pod_routes_release (const PodExecRequest *request, PodPlan *plan)
{
  if (!are_shared (request))
    pod_plan_free (plan);
}

static PodPlan *
plan_group (const PodExecRequest *request, const PodGroup *group, const PodOp *op, const char *algorithm, GError **error)
{
  const PodPlanQuery query = { .topology = request->topology,
                               .fidelity = request->fidelity,
                               .group = group,
                               .kind = op->collective,
                               .dtype = op->dtype,
                               .payload_bytes = op->bytes,
                               .algorithm = algorithm,
                               .library = request->library };

  return are_shared (request) ? (PodPlan *) pod_plan_cache_query (request->plans, &query, error) : pod_collective_plan_query (&query, error);
}

PodPlan *
pod_routes_plan (const PodExecRequest *request, const PodOp *op, const PodGroup *group, const char *name, GError **error)
{
  PodPlan *plan;

  if (name != NULL || request->algorithm == NULL)
    return plan_group (request, group, op, name, error);
  plan = plan_group (request, group, op, request->algorithm, NULL);
  return plan != NULL ? plan : plan_group (request, group, op, NULL, error); /* a forced algorithm holds where it fits */
}

bool
pod_route_shift (const PodRoute *route, uint32_t group, PodTopologyShift *out)
{
  const PodCommunicator *comm = route->planned->comm;
  const uint32_t *of_group = route->planned->plan_of_group;

  if (group == 0 || (of_group == NULL ? !route->planned->is_shifted : of_group[group] != 0))
    return false;
  return pod_topology_shift_init (out, route->planned->topology, comm->devices, comm->devices + (size_t) group * comm->group_size, 1);
}

void
pod_route_links (const PodRoute *route, uint32_t group, uint32_t *out)
{
  const PodPlan *plan = pod_route_plan (route, group);
  PodTopologyShift shift;

  if (!pod_route_shift (route, group, &shift))
    for (uint32_t i = 0; i < plan->n_entries; i++)
      out[i] = plan->entries[i].link;
  else
    for (uint32_t i = 0; i < plan->n_entries; i++)
      out[i] = pod_topology_shift_link (&shift, plan->entries[i].link);
}

/* Number of the group's plan in each route of its communicator. O(members) the first time. */
static uint32_t
number_plan (PodPlanned *planned, uint32_t g)
{
  const PodCommunicator *comm = planned->comm;
  PodTopologyShift shift;

  if (planned->plan_of_group == NULL)
    return 0;
  if (planned->plan_of_group[g] == UINT32_MAX)
    planned->plan_of_group[g] = pod_topology_shift_init (&shift, planned->topology, comm->devices, comm->devices + (size_t) g * comm->group_size, comm->group_size)
                                    ? 0
                                    : planned->n_plans++;
  return planned->plan_of_group[g];
}

/* The plan of a group: the first one's, or made. Returns: (transfer none) (nullable) */
static const PodPlan *
find_plan (const PodExecRequest *request, PodRoutes *routes, PodRoute *route, uint32_t g, GError **error)
{
  const PodCommunicator *comm = g_ptr_array_index (request->program->communicators, route->comm);
  const uint32_t number = number_plan (g_ptr_array_index (routes->planned, route->comm), g);
  const PodPlan *first = g_ptr_array_index (route->plans, 0);

  if (number >= route->plans->len)
    g_ptr_array_set_size (route->plans, (gint) number + 1);
  if (g_ptr_array_index (route->plans, number) == NULL)
    {
      g_autofree char *name = first->protocol == NULL ? g_strdup (first->algorithm) : g_strconcat (first->algorithm, "/", first->protocol, NULL);
      const PodOp op = { .collective = route->kind, .bytes = route->bytes, .dtype = route->dtype };
      PodGroup group;

      pod_communicator_group (comm, g, &group);
      g_ptr_array_index (route->plans, number) = plan_group (request, &group, &op, name, error);
    }
  if (g_ptr_array_index (route->plans, number) == NULL)
    g_prefix_error (error, "%s group %u: ", comm->name, g);
  return g_ptr_array_index (route->plans, number);
}

/* What is known of the groups of each communicator: at first that the first one has the first plan. At fidelity book all have it. */
static GPtrArray *
planned_new (const PodExecRequest *request)
{
  GPtrArray *all = g_ptr_array_new_with_free_func (planned_free);

  for (guint k = 0; k < request->program->communicators->len; k++)
    {
      PodPlanned *planned = g_new0 (PodPlanned, 1);

      *planned = (PodPlanned){ .topology = request->topology, .comm = g_ptr_array_index (request->program->communicators, k), .n_plans = 1 };
      if (request->fidelity != POD_FIDELITY_BOOK)
        {
          planned->plan_of_group = g_new (uint32_t, planned->comm->n_groups + 1);
          memset (planned->plan_of_group, 0xff, (planned->comm->n_groups + 1) * sizeof (uint32_t));
          planned->plan_of_group[0] = 0;
        }
      g_ptr_array_add (all, planned);
    }
  return all;
}

/* Plans the first group, whose way is that of all. @first: becomes the route's */
static void
begin_route (const PodExecRequest *request, const PodRoutes *routes, PodRoute *route, PodPlan *first)
{
  route->algorithm = first->algorithm;
  route->planned = g_ptr_array_index (routes->planned, route->comm);
  route->plans = are_shared (request) ? g_ptr_array_new () : g_ptr_array_new_with_free_func (plan_free);
  g_ptr_array_add (route->plans, first);
  if (request->fidelity == POD_FIDELITY_BOOK)
    first->n_entries = 0; /* priced by V/W: no links */
}

/* Links of a plan as a turn has them. */
typedef struct
{
  uint32_t link;
  uint32_t place; /* among the blocks, UINT32_MAX where the turn carries it to itself */
  uint32_t home;  /* what it is in the first block */
} Turned;

typedef struct
{
  const PodExecRequest *request;
  PodRoutes *routes;
  GArray *turned; /* Turned, of the group's route before: most routes of a communicator go over the same links */
} Turning;

static void
turn_link (const PodTurn *turn, const PodTopology *topology, uint32_t link, Turned *out)
{
  *out = (Turned){ .link = link };
  if (!pod_turn_home_of_link (turn, topology, link, &out->place, &out->home))
    out->place = UINT32_MAX;
}

/* What a plan puts on the links of each block, as it would be on those of the first one. */
static void
add_keys (const Turning *turning, const PodRoute *route, uint32_t group, uint32_t r, const PodTurn *turn, uint64_t *keys)
{
  const PodPlan *plan = pod_route_plan (route, group);
  const uint32_t n_before = turning->turned->len;
  g_autofree uint32_t *links = g_new (uint32_t, plan->n_entries + 1);

  pod_route_links (route, group, links);
  g_array_set_size (turning->turned, MAX (n_before, plan->n_entries));
  for (uint32_t i = 0; i < plan->n_entries; i++)
    {
      Turned *turned = &g_array_index (turning->turned, Turned, i);

      if (i >= n_before || turned->link != links[i])
        turn_link (turn, route->planned->topology, links[i], turned);
      if (turned->place != UINT32_MAX)
        keys[turned->place] += pod_mix (pod_mix (((uint64_t) r << 32) + turned->home) ^ plan->entries[i].share_q32);
    }
}

static bool
group_keys (void *context, const PodTurn *turn, uint32_t comm, uint32_t group, uint64_t *keys)
{
  const Turning *turning = context;

  g_array_set_size (turning->turned, 0);
  for (guint r = 0; r < turning->routes->routes->len; r++)
    {
      PodRoute *route = &g_array_index (turning->routes->routes, PodRoute, r);

      if (route->comm != comm)
        continue;
      /* what cannot be planned is told when all are */
      if (find_plan (turning->request, turning->routes, route, group, NULL) == NULL)
        return false;
      add_keys (turning, route, group, r, turn, keys);
    }
  return true;
}

/* Once each group has been asked for: mostly all have the first one's plan. */
static void
forget_numbers (PodRoutes *routes)
{
  for (guint k = 0; k < routes->planned->len; k++)
    {
      PodPlanned *planned = g_ptr_array_index (routes->planned, k);
      uint32_t n = 0;

      while (planned->plan_of_group != NULL && n < planned->comm->n_groups && planned->plan_of_group[n] == 0)
        n++;
      planned->is_shifted = n > 0 && n == planned->comm->n_groups;
      if (planned->is_shifted)
        g_clear_pointer (&planned->plan_of_group, g_free);
    }
}

/* The symmetry of the program and its routes, and a plan for the first group of each of its orbits. */
static bool
plan_orbits (const PodExecRequest *request, PodRoutes *routes, bool is_identity, GError **error)
{
  g_autoptr (GArray) turned = g_array_new (FALSE, FALSE, sizeof (Turned));
  Turning turning = { .request = request, .routes = routes, .turned = turned };

  routes->symmetry = pod_symmetry_new (request->topology, request->program, is_identity, group_keys, &turning);
  for (guint r = 0; r < routes->routes->len; r++)
    {
      PodRoute *route = &g_array_index (routes->routes, PodRoute, r);

      for (uint32_t i = 0; i < routes->symmetry->n_group_orbits[route->comm]; i++)
        if (find_plan (request, routes, route, routes->symmetry->group_of_orbit[route->comm][i], error) == NULL)
          return false;
    }
  forget_numbers (routes);
  return true;
}

/* A library's latency depends on the bytes, and its rate on the element type: those share a route only where it does not. */
static bool
is_same_way (const PodPlan *a, const PodPlan *b)
{
  return strcmp (a->algorithm, b->algorithm) == 0 && g_strcmp0 (a->protocol, b->protocol) == 0 && a->latency_ps == b->latency_ps
         && a->wire_ratio == b->wire_ratio;
}

/* The route of (communicator, kind, way): found, or begun. @plan: of the first group, becomes the route's or is released. */
static uint32_t
find_route (const PodExecRequest *request, PodRoutes *routes, const PodOp *op, PodPlan *plan)
{
  PodRoute route = { .comm = op->comm, .kind = op->collective, .bytes = op->bytes, .dtype = op->dtype };

  for (guint r = 0; r < routes->routes->len; r++)
    {
      const PodRoute *known = &g_array_index (routes->routes, PodRoute, r);

      if (known->comm == op->comm && known->kind == op->collective && is_same_way (g_ptr_array_index (known->plans, 0), plan))
        {
          pod_routes_release (request, plan);
          return r;
        }
    }
  begin_route (request, routes, &route, plan);
  g_array_append_val (routes->routes, route);
  return routes->routes->len - 1;
}

static bool
add_use (const PodExecRequest *request, PodRoutes *routes, const PodOp *op, GError **error)
{
  const PodCommunicator *comm = g_ptr_array_index (request->program->communicators, op->comm);
  PodCollectiveUse use = { .comm = comm->name, .axis = comm->axis, .kind = op->collective, .bytes = op->bytes, .dtype = op->dtype, .group_size = comm->group_size };
  PodGroup group;
  PodPlan *plan;
  uint32_t route;
  int64_t book_ps;

  pod_communicator_group (comm, 0, &group);
  plan = pod_routes_plan (request, op, &group, NULL, error);
  if (plan == NULL)
    {
      g_prefix_error (error, "%s: ", comm->name);
      return false;
    }
  use.algorithm = plan->algorithm;
  use.protocol = plan->protocol;
  use.alone_s = pod_plan_time (request->topology, request->fidelity, plan, op->bytes);
  use.busiest_bytes = (double) op->bytes * plan->busiest_ratio;
  use.explain = g_strdup (plan->explain);
  if (!pod_seconds_to_ps (use.alone_s, &book_ps))
    book_ps = INT64_MAX / 4;
  route = find_route (request, routes, op, plan);
  g_array_append_val (routes->uses, use);
  g_array_append_val (routes->use_routes, route);
  g_array_append_val (routes->use_book_ps, book_ps);
  return true;
}

PodRoutes *
pod_routes_new (const PodExecRequest *request, bool is_identity, GError **error)
{
  const PodProgram *program = request->program;
  g_autoptr (PodRoutes) routes = g_new0 (PodRoutes, 1);

  routes->planned = planned_new (request);
  routes->routes = g_array_new (FALSE, FALSE, sizeof (PodRoute));
  g_array_set_clear_func (routes->routes, route_clear);
  routes->uses = g_array_new (FALSE, FALSE, sizeof (PodCollectiveUse));
  g_array_set_clear_func (routes->uses, use_clear);
  routes->use_routes = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  routes->use_book_ps = g_array_new (FALSE, FALSE, sizeof (int64_t));
  routes->use_of_op = g_new (uint32_t, program->ops->len + 1);
  for (guint i = 0; i < program->ops->len; i++)
    {
      const PodOp *op = &g_array_index (program->ops, PodOp, i);
      guint u = 0;

      routes->use_of_op[i] = UINT32_MAX;
      if (op->kind != POD_OP_COLLECTIVE)
        continue;
      for (u = 0; u < routes->uses->len; u++) /* few: a dozen distinct collectives in a program */
        {
          const PodRoute *route = &g_array_index (routes->routes, PodRoute, g_array_index (routes->use_routes, uint32_t, u));
          const PodCollectiveUse *use = &g_array_index (routes->uses, PodCollectiveUse, u);

          if (route->comm == op->comm && route->kind == op->collective && use->bytes == op->bytes && use->dtype == op->dtype)
            break;
        }
      if (u == routes->uses->len && !add_use (request, routes, op, error))
        return NULL;
      routes->use_of_op[i] = u;
    }
  return plan_orbits (request, routes, is_identity, error) ? g_steal_pointer (&routes) : NULL;
}

void
pod_routes_free (PodRoutes *routes)
{
  if (routes == NULL)
    return;
  g_clear_pointer (&routes->routes, g_array_unref);
  g_clear_pointer (&routes->planned, g_ptr_array_unref);
  g_clear_pointer (&routes->uses, g_array_unref);
  g_clear_pointer (&routes->use_routes, g_array_unref);
  g_clear_pointer (&routes->use_book_ps, g_array_unref);
  g_clear_pointer (&routes->symmetry, pod_symmetry_free);
  g_free (routes->use_of_op);
  g_free (routes);
}

double
pod_exec_copy_s (const PodChip *chip, const PodOp *op)
{
  return (double) op->bytes * MAX (chip->devices_per_chip, 1) / chip->host_bytes_per_s.nominal;
}

/* What each stream is busy with in @n_runs of the block. Its ops stand by stream. */
static void
add_streams (const PodExecRequest *request, const PodRoutes *routes, const PodOpBlock *block, uint32_t n_runs, const double *kernel_s, const double *use_s, double *stream_s)
{
  const PodOp *ops = &g_array_index (request->program->ops, PodOp, 0);

  for (unsigned s = 0; s < POD_N_STREAMS; s++)
    {
      double sum_s = stream_s[s];

      for (uint32_t i = block->first_of_stream[s]; i < block->first_of_stream[s] + block->n_of_stream[s]; i++)
        sum_s += n_runs * (ops[i].kind == POD_OP_COMPUTE ? kernel_s[ops[i].kernel] : ops[i].kind == POD_OP_COPY ? pod_exec_copy_s (request->topology->chip, &ops[i]) : use_s[routes->use_of_op[i]]);
      stream_s[s] = sum_s;
    }
}

/* The slowest link of a plan with @bytes on its busiest. Those of a class have one rate: the fullest of each stands for all. */
static double
slowest_s (const PodTopology *topology, PodFidelity fidelity, const PodPlan *plan, double bytes)
{
  uint64_t most[POD_N_LINK_CLASSES] = { 0 };
  double slowest = 0;

  for (uint32_t i = 0; i < plan->n_entries; i++)
    {
      const PodPathEntry *entry = &plan->entries[i];
      const unsigned class = topology->background_bytes_per_s == NULL ? pod_topology_link_class (topology, entry->link) : POD_NO_LINK_CLASS;

      if (class != POD_NO_LINK_CLASS && entry->share_q32 <= most[class])
        continue;
      if (class != POD_NO_LINK_CLASS)
        most[class] = entry->share_q32;
      slowest = MAX (slowest, bytes * (double) entry->share_q32 / 4294967296.0 / pod_collective_link_rate (topology, fidelity, entry->link));
    }
  return slowest;
}

/* A step is never shorter than one rank's kernels at the ideal, nor than the bytes of its busiest stream of collectives at
 * nominal link rates with no latency. At fidelity book both are the book's. */
int64_t
pod_exec_lower_bound (const PodExecRequest *request, const PodRoutes *routes)
{
  const PodProgram *program = request->program;
  const PodFidelity fidelity = request->fidelity == POD_FIDELITY_BOOK ? POD_FIDELITY_BOOK : POD_FIDELITY_IDEAL;
  g_autofree double *kernel_s = g_new (double, program->kernels->len + 1);
  g_autofree double *use_s = g_new (double, routes->uses->len + 1);
  double bound_s = 0;

  for (guint k = 0; k < program->kernels->len; k++)
    {
      PodKernelTime time;

      pod_kernel_time (request->topology->chip, fidelity, &g_array_index (program->kernels, PodKernel, k), &time);
      kernel_s[k] = time.time_s;
    }
  for (guint u = 0; u < routes->uses->len; u++)
    {
      const PodRoute *route = &g_array_index (routes->routes, PodRoute, g_array_index (routes->use_routes, uint32_t, u));
      const PodPlan *plan = pod_route_plan (route, 0);
      const double bytes = (double) g_array_index (routes->uses, PodCollectiveUse, u).bytes * plan->busiest_ratio;

      use_s[u] = fidelity == POD_FIDELITY_BOOK ? (double) g_array_index (routes->use_book_ps, int64_t, u) / 1e12 : slowest_s (request->topology, fidelity, plan, bytes);
    }
  for (guint c = 0; c < program->classes->len; c++)
    {
      const PodProgramClass *class = g_ptr_array_index (program->classes, c);
      g_autofree uint32_t *n_runs = g_new0 (uint32_t, program->blocks->len);
      double stream_s[POD_N_STREAMS] = { 0 };

      for (guint i = 0; i < class->steps->len; i++)
        n_runs[g_array_index (class->steps, PodOpStep, i).block]++;
      for (guint b = 0; b < program->blocks->len; b++)
        if (n_runs[b] > 0)
          add_streams (request, routes, &g_array_index (program->blocks, PodOpBlock, b), n_runs[b], kernel_s, use_s, stream_s);
      for (unsigned s = 0; s < POD_N_STREAMS; s++)
        bound_s = MAX (bound_s, stream_s[s]);
    }
  return (int64_t) floor (bound_s * 1e12);
}
