#include "collective/plan-private.h"

#include "base/error.h"

/* Where the chip file gives no hop latency the book's 1 us per ICI hop stands (chapter "sharding",
 * "about 1 us"). */
static const double book_hop_s = 1e-6;

static bool
is_ici (const PodAxis *axis)
{
  return axis->dim < POD_DIM_DCN;
}

/* A wrapped axis closes after extent hops, except the short axes of a twisted torus, whose wrap
 * links are shifted. */
static bool
is_closed (const PodTopology *topology, uint32_t device, unsigned dim, uint32_t n_hops)
{
  uint32_t at = device, link;

  for (uint32_t i = 0; i < n_hops; i++)
    if (!pod_topology_torus_link (topology, at, dim, +1, &link, &at))
      return false;
  return at == device;
}

static bool
check_factor (const PodTopology *topology, const PodGroupFactor *factor, GError **error)
{
  static const char *const names[] = { "x", "y", "z", "dcn", "core" };
  uint64_t reach = (uint64_t) (factor->size - 1) * factor->stride + 1;
  unsigned extent;

  g_assert (factor->dim < G_N_ELEMENTS (names));
  switch (factor->dim)
    {
    case POD_DIM_DCN:
      extent = topology->n_slices;
      break;
    case POD_DIM_CORE:
      extent = topology->chip->devices_per_chip;
      break;
    default:
      extent = factor->dim < topology->n_dims ? topology->extent[factor->dim] : 1;
    }
  if (reach <= extent && factor->stride > 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
               "%s: %u members at stride %u do not fit on axis %s of %u", topology->name,
               factor->size, factor->stride, names[factor->dim], extent);
  return false;
}

/* Rates and latency of the axis' first hop stand for all: the links of an axis are equal. */
static bool
describe_links (PodPlanRequest *request, PodAxis *axis, GError **error)
{
  const uint32_t *devices = request->group->devices;
  uint32_t to, link;

  axis->hop_ps = 0;
  axis->bytes_per_s = axis->book_bytes_per_s = G_MAXDOUBLE;
  g_array_set_size (request->route, 0);
  if (is_ici (axis))
    {
      if (pod_topology_torus_link (request->topology, devices[0], axis->dim, +1, &link, &to))
        g_array_append_val (request->route, link);
    }
  else if (!pod_topology_route (request->topology, devices[0], devices[axis->span], request->route))
    g_array_set_size (request->route, 0);
  if (request->route->len == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                   "%s: no link from device %u along the group", request->topology->name,
                   devices[0]);
      return false;
    }
  for (guint i = 0; i < request->route->len; i++)
    {
      PodLink description;

      link = g_array_index (request->route, uint32_t, i);
      pod_topology_link (request->topology, link, &description);
      axis->hop_ps += description.latency_ps;
      axis->bytes_per_s = MIN (
          axis->bytes_per_s, pod_collective_link_rate (request->topology, request->fidelity, link));
      axis->book_bytes_per_s = MIN (axis->book_bytes_per_s, description.bytes_per_s.book);
    }
  if (is_ici (axis))
    axis->hop_ps *= axis->stride;
  return true;
}

static bool
covers_twisted (const PodPlanRequest *request)
{
  const PodTopology *topology = request->topology;
  unsigned n_whole = 0;

  for (unsigned a = 0; a < request->n_axes; a++)
    n_whole += is_ici (&request->axes[a])
               && request->axes[a].size == topology->extent[request->axes[a].dim];
  return topology->is_twisted && n_whole == 3;
}

bool
pod_axes_init (PodPlanRequest *request, GError **error)
{
  const PodTopology *topology = request->topology;
  const PodGroup *group = request->group;

  request->n_axes = request->n_slice_axes = 0;
  request->n_in_slice = request->n_slices = 1;
  for (unsigned pass = 0; pass < 2; pass++)
    {
      uint32_t span = 1;

      for (unsigned f = 0; f < group->n_factors; f++)
        {
          const PodGroupFactor *factor = &group->factors[f];
          bool is_dcn = factor->dim == POD_DIM_DCN;
          PodAxis *axis = &request->axes[request->n_axes + request->n_slice_axes];

          if (factor->size > 1 && is_dcn == (pass == 1))
            {
              if (!check_factor (topology, factor, error))
                return false;
              *axis = (PodAxis){
                .dim = factor->dim,
                .stride = factor->stride,
                .size = factor->size,
                .span = span,
                .is_ring = is_dcn,
              };
              if (!describe_links (request, axis, error))
                return false;
              if (is_ici (axis))
                axis->is_ring = factor->stride * factor->size == topology->extent[factor->dim]
                                && topology->wraps[factor->dim]
                                && (!topology->is_twisted
                                    || is_closed (topology, group->devices[0], factor->dim,
                                                  topology->extent[factor->dim]));
              *(is_dcn ? &request->n_slice_axes : &request->n_axes) += 1;
              *(is_dcn ? &request->n_slices : &request->n_in_slice) *= factor->size;
            }
          span *= factor->size;
        }
    }
  request->is_twisted_whole = covers_twisted (request);
  return true;
}

/* Bytes per byte of volume that leave position @i of @n towards + ; those towards - are the mirror
 * image n-1-i.
 *
 *   ring, AG and RS   (n-1)/2n: half of the other n-1 shards comes each way
 *   line, AG          (i+1)/n: the shards of 0..i;  RS: (n-1-i)/n: partial sums for i+1..n-1;  AR:
 * their sum ring, all-to-all  n even: n/8, the antipodal shard goes half each way; n odd:
 * (n^2-1)/8n line, all-to-all  (i+1)(n-1-i)/n: all pairs that the link separates, 1/n each slices
 * all that is missing, (n-1)/n, through the NIC */
static double
leaving (const PodAxis *axis, PodCollectiveKind kind, uint32_t i)
{
  double n = axis->size, at = i;

  if (kind == POD_ALL_TO_ALL)
    {
      if (axis->dim == POD_DIM_DCN)
        return (n - 1) / n;
      if (axis->is_ring)
        return axis->size % 2 == 0 ? n / 8 : (n * n - 1) / (8 * n);
      return (at + 1) * (n - 1 - at) / n;
    }
  if (axis->dim == POD_DIM_DCN)
    return (kind == POD_ALL_REDUCE ? 2 : 1) * (n - 1) / n;
  if (axis->is_ring)
    return (kind == POD_ALL_REDUCE ? 2 : 1) * (n - 1) / (2 * n);
  if (i + 1 == axis->size)
    return 0;
  switch (kind)
    {
    case POD_ALL_GATHER:
      return (at + 1) / n;
    case POD_REDUCE_SCATTER:
      return (n - 1 - at) / n;
    default:
      return 1;
    }
}

void
pod_axis_shape_init (PodAxisShape *shape, const PodAxis *axis, PodCollectiveKind kind)
{
  uint32_t n = axis->size;

  shape->axis = axis;
  shape->volume = 1;
  shape->plus = g_new (double, n);
  shape->minus = g_new (double, n);
  shape->peak = 0;
  for (uint32_t i = 0; i < n; i++)
    {
      shape->plus[i] = leaving (axis, kind, i);
      shape->peak = MAX (shape->peak, shape->plus[i]);
    }
  for (uint32_t i = 0; i < n; i++)
    shape->minus[i] = axis->dim == POD_DIM_DCN ? 0 : shape->plus[n - 1 - i];
}

void
pod_axis_shape_clear (PodAxisShape *shape)
{
  g_free (shape->plus);
  g_free (shape->minus);
  *shape = (PodAxisShape){ 0 };
}

bool
pod_axis_add_hop (PodPlanRequest *request, const PodAxisHop *hop, double bytes, GError **error)
{
  const PodAxis *axis = hop->axis;
  const uint32_t *devices = request->group->devices;
  uint32_t position = hop->index / axis->span % axis->size;
  uint32_t next = (hop->sign > 0 ? position + 1 : position + axis->size - 1) % axis->size;
  uint32_t target = devices[hop->index + next * axis->span - position * axis->span];
  uint32_t at = devices[hop->index], link;

  if (!is_ici (axis))
    return pod_route_add (request, at, target, bytes, error);
  for (uint32_t i = 0; i < axis->stride; i++)
    {
      if (!pod_topology_torus_link (request->topology, at, axis->dim, hop->sign, &link, &at))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                       "%s: no link from device %u towards device %u", request->topology->name, at,
                       target);
          return false;
        }
      pod_link_loads_add (&request->loads, link, bytes);
    }
  if (at == target)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "%s: the group's factors lead from device %u to device %u, its list has %u there",
               request->topology->name, devices[hop->index], at, target);
  return false;
}

bool
pod_axis_add (PodPlanRequest *request, const PodAxisShape *shape, uint32_t n_members,
              GError **error)
{
  const PodAxis *axis = shape->axis;

  for (uint32_t index = 0; index < n_members; index++)
    {
      uint32_t position = index / axis->span % axis->size;
      double plus = shape->volume * shape->plus[position];
      double minus = shape->volume * shape->minus[position];

      if ((plus > 0 && !pod_axis_add_hop (request, &(PodAxisHop){ axis, index, +1 }, plus, error))
          || (minus > 0
              && !pod_axis_add_hop (request, &(PodAxisHop){ axis, index, -1 }, minus, error)))
        return false;
    }
  return true;
}

uint32_t
pod_axis_steps (const PodAxis *axis)
{
  return axis->is_ring && axis->dim != POD_DIM_DCN ? axis->size / 2 : axis->size - 1;
}

int64_t
pod_axis_latency_ps (const PodAxis *axis)
{
  return (int64_t) pod_axis_steps (axis) * axis->hop_ps;
}

double
pod_axis_book_latency_s (const PodPlanRequest *request, const PodAxis *axis)
{
  int64_t hop_ps = request->topology->chip->ici_hop_ps;

  if (!is_ici (axis))
    return 0;
  return (double) pod_axis_steps (axis) * axis->stride
         * (hop_ps > 0 ? (double) hop_ps * 1e-12 : book_hop_s);
}
