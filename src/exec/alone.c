#include "exec/alone-private.h"

#include <string.h>

typedef struct
{
  uint32_t group;
  PodPlace place;
} Known;

typedef struct
{
  PodPlace place;
  PodCollectiveKind kind;
  PodDtype dtype;
  uint64_t bytes;
  double time_ps;
} Price;

struct PodAlone
{
  const PodExecRequest *request;
  const PodStepSoftware *software;
  GArray **known; /* by communicator (nullable): Known */
  GArray *firsts; /* PodPlace: first groups of communicators, of those that are no others' */
  GArray *prices; /* Price */
};

PodAlone *
pod_alone_new (const PodExecRequest *request, const PodStepSoftware *software)
{
  PodAlone *alone = g_new (PodAlone, 1);

  alone->request = request;
  alone->software = software;
  alone->known = g_new0 (GArray *, request->program->communicators->len + 1);
  alone->firsts = g_array_new (FALSE, FALSE, sizeof (PodPlace));
  alone->prices = g_array_new (FALSE, FALSE, sizeof (Price));
  return alone;
}

void
pod_alone_free (PodAlone *alone)
{
  if (alone == NULL)
    return;
  for (guint i = 0; i < alone->request->program->communicators->len; i++)
    g_clear_pointer (&alone->known[i], g_array_unref);
  g_free (alone->known);
  g_array_unref (alone->firsts);
  g_array_unref (alone->prices);
  g_free (alone);
}

static const PodCommunicator *
communicator_at (const PodAlone *alone, uint32_t index)
{
  return g_ptr_array_index (alone->request->program->communicators, index);
}

/* Whether a shift carries the group at @from to that at @to. */
static bool
is_shifted (const PodAlone *alone, const PodPlace *from, const PodPlace *to)
{
  const PodCommunicator *a = communicator_at (alone, from->comm);
  const PodCommunicator *b = communicator_at (alone, to->comm);
  PodTopologyShift shift;
  PodGroup x, y;

  if (a->axis != b->axis || a->group_size != b->group_size || a->n_factors != b->n_factors || memcmp (a->factors, b->factors, a->n_factors * sizeof *a->factors) != 0)
    return false;
  pod_communicator_group (a, from->group, &x);
  pod_communicator_group (b, to->group, &y);
  return pod_topology_shift_init (&shift, alone->request->topology, x.devices, y.devices, a->group_size);
}

/* A communicator's first group chooses how all of them go: another is like one of the same communicator, a first one like other firsts. */
static PodPlace
find_place (PodAlone *alone, uint32_t comm, uint32_t group)
{
  const PodPlace own = { comm, group };
  const GArray *known = alone->known[comm];

  if (group == 0)
    {
      for (guint i = alone->firsts->len; i-- > 0;)
        if (is_shifted (alone, &g_array_index (alone->firsts, PodPlace, i), &own))
          return g_array_index (alone->firsts, PodPlace, i);
      g_array_append_val (alone->firsts, own);
      return own;
    }
  for (guint i = 0; i < known->len; i++)
    {
      const PodPlace other = { comm, g_array_index (known, Known, i).group };

      if (alone->request->fidelity == POD_FIDELITY_BOOK || is_shifted (alone, &other, &own))
        return g_array_index (known, Known, i).place;
    }
  return own;
}

PodPlace
pod_alone_place (PodAlone *alone, uint32_t comm, uint32_t rank)
{
  const uint32_t group = pod_communicator_group_of (communicator_at (alone, comm), rank);
  GArray **known = &alone->known[comm];
  Known entry = { .group = group };

  if (*known == NULL)
    {
      *known = g_array_new (FALSE, FALSE, sizeof (Known));
      entry = (Known){ 0, find_place (alone, comm, 0) };
      g_array_append_val (*known, entry);
    }
  for (guint i = 0; i < (*known)->len; i++)
    if (g_array_index (*known, Known, i).group == group)
      return g_array_index (*known, Known, i).place;
  entry = (Known){ group, find_place (alone, comm, group) };
  g_array_append_val (*known, entry);
  return entry.place;
}

/* The group's, which goes the way that the first group has chosen. @first: released */
static PodPlan *
plan_like (const PodExecRequest *request, const PodOp *op, const PodGroup *group, PodPlan *first, GError **error)
{
  g_autofree char *name = first->protocol == NULL ? g_strdup (first->algorithm) : g_strconcat (first->algorithm, "/", first->protocol, NULL);

  pod_routes_release (request, first);
  return pod_routes_plan (request, op, group, name, error);
}

/* As the run has it: the first group chooses the algorithm for all. */
static bool
price_place (const PodAlone *alone, const PodOp *op, const PodPlace *place, double *out_ps, GError **error)
{
  const PodExecRequest *request = alone->request;
  const PodCommunicator *comm = communicator_at (alone, place->comm);
  PodPlan *plan;
  PodGroup group;
  double latency_s;
  double time_s;

  pod_communicator_group (comm, 0, &group);
  plan = pod_routes_plan (request, op, &group, NULL, error);
  if (plan != NULL && place->group > 0 && request->fidelity != POD_FIDELITY_BOOK)
    {
      pod_communicator_group (comm, place->group, &group);
      plan = plan_like (request, op, &group, plan, error);
    }
  if (plan == NULL)
    return false;
  time_s = pod_plan_time (request->topology, request->fidelity, plan, op->bytes);
  latency_s = request->fidelity == POD_FIDELITY_BOOK ? time_s : (double) plan->latency_ps * 1e-12;
  pod_routes_release (request, plan);
  *out_ps = (latency_s + (time_s - latency_s) / pod_exec_rate_ratio (alone->software, comm->axis)) * 1e12;
  return true;
}

bool
pod_alone_time (PodAlone *alone, const PodOp *op, uint32_t comm, uint32_t rank, double *out_ps, GError **error)
{
  Price wanted = { .place = pod_alone_place (alone, comm, rank), .kind = op->collective, .dtype = op->dtype, .bytes = op->bytes };

  for (guint i = 0; i < alone->prices->len; i++)
    {
      const Price *known = &g_array_index (alone->prices, Price, i);

      if (known->place.comm != wanted.place.comm || known->place.group != wanted.place.group || known->kind != wanted.kind || known->bytes != wanted.bytes
          || known->dtype != wanted.dtype)
        continue;
      *out_ps = known->time_ps;
      return true;
    }
  if (!price_place (alone, op, &wanted.place, &wanted.time_ps, error))
    return false;
  g_array_append_val (alone->prices, wanted);
  *out_ps = wanted.time_ps;
  return true;
}
