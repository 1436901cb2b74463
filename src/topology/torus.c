#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "topology/chip-private.h"
#include "topology/topology-private.h"

/* Slices of an ICI torus. Link ids: chip * 2 * n_dims + dim * 2 + (sign < 0); where a line ends the
 * id stays, with rate 0. */

/* -- rules ------------------------------------------------------------------------------------- */

static int
compare_extents (const void *a, const void *b)
{
  unsigned left = *(const unsigned *) a;
  unsigned right = *(const unsigned *) b;

  return (left > right) - (left < right);
}

/* Whether the axes fit into the pod's, in any order. */
static bool
fits_in (const unsigned extent[3], const unsigned pod[3])
{
  unsigned slice_sorted[3] = { extent[0], extent[1], extent[2] };
  unsigned pod_sorted[3] = { pod[0], pod[1], pod[2] };

  qsort (slice_sorted, 3, sizeof slice_sorted[0], compare_extents);
  qsort (pod_sorted, 3, sizeof pod_sorted[0], compare_extents);
  for (unsigned axis = 0; axis < 3; axis++)
    if (slice_sorted[axis] > pod_sorted[axis])
      return false;
  return true;
}

static bool
are_multiples (const PodTopology *topology, unsigned of)
{
  for (unsigned axis = 0; axis < topology->n_dims; axis++)
    if (topology->extent[axis] % of != 0)
      return false;
  return true;
}

/* Refuses slices that no pod has. Optical switches join cubes at will, so for them only the number
 * of chips counts: 4x4x576 is as good as 16x24x24. */
static bool
check_pod (const PodTopology *topology, GError **error)
{
  const PodChip *chip = topology->chip;
  const unsigned *pod = chip->pod_extent;
  uint64_t pod_chips = (uint64_t) pod[0] * pod[1] * pod[2];
  uint64_t slice_chips = (uint64_t) topology->extent[0] * topology->extent[1] * topology->extent[2];
  unsigned cube = chip->cube_extent;
  unsigned cubes[3] = { cube, cube, chip->torus_dims == 3 ? cube : 1 };
  g_autofree char *shape = pod_extent_format (topology->extent, topology->n_dims);
  g_autofree char *full = pod_extent_format (pod, chip->torus_dims);

  if (topology->n_dims != chip->torus_dims)
    g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                 "%s slices have %u axes, got %s: write all of them, or add ,unchecked", chip->name,
                 chip->torus_dims, shape);
  else if (chip->wrap_rule == POD_WRAP_CUBES ? slice_chips > pod_chips
                                             : !fits_in (topology->extent, pod))
    g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                 "a slice of %s (%" G_GUINT64_FORMAT
                 " chips) does not fit a %s pod of %s (%" G_GUINT64_FORMAT
                 " chips): take a smaller one, join slices with *N, or add ,unchecked",
                 shape, slice_chips, chip->name, full, pod_chips);
  else if (chip->wrap_rule == POD_WRAP_CUBES && !are_multiples (topology, cube)
           && !fits_in (topology->extent, cubes))
    g_set_error (
        error, POD_ERROR, POD_ERROR_INFEASIBLE,
        "a %s slice of %s is neither made of whole cubes of %u chips an axis nor inside one: "
        "take multiples of %u, or add ,unchecked",
        chip->name, shape, cube, cube);
  else
    return true;
  return false;
}

/* Whether axis @dim wraps by the chip's rule. An axis of 2 has no second link between the same two
 * chips. */
static bool
wraps_by_rule (const PodTopology *topology, unsigned dim)
{
  const PodChip *chip = topology->chip;
  unsigned extent = topology->extent[dim];

  if (extent < 3)
    return false;
  switch (chip->wrap_rule)
    {
    case POD_WRAP_NEVER:
      return false;
    case POD_WRAP_ALWAYS:
      return true;
    case POD_WRAP_FULL_EXTENT:
      return extent == chip->wrap_extent;
    case POD_WRAP_CUBES:
      return are_multiples (topology, chip->cube_extent);
    default:
      g_assert_not_reached ();
    }
}

static bool
set_wraps (PodTopology *topology, GError **error)
{
  int mask = topology->spec->wrap_mask;

  for (unsigned dim = 0; dim < topology->n_dims; dim++)
    {
      bool is_asked = mask != POD_WRAP_BY_RULE && (mask & (1 << dim)) != 0;

      topology->wraps[dim] = mask == POD_WRAP_BY_RULE ? wraps_by_rule (topology, dim) : is_asked;
      if (is_asked && topology->extent[dim] < 3)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                       "axis %c of %u chips has no room for a wrap link", "xyz"[dim],
                       topology -> extent[dim]);
          return false;
        }
    }
  if (mask != POD_WRAP_BY_RULE)
    g_ptr_array_add (topology->assumptions,
                     g_strdup ("wrap links set by wrap=, not by the chip's rule"));
  return true;
}

/* Twists are defined on kxkx2k and kx2kx2k; *out_long says which axes are the long ones. */
static bool
find_twist (const PodTopology *topology, bool is_long[3])
{
  unsigned shortest = topology->extent[0];
  unsigned longest = topology->extent[0];

  for (unsigned axis = 1; axis < 3; axis++)
    {
      shortest = MIN (shortest, topology->extent[axis]);
      longest = MAX (longest, topology->extent[axis]);
    }
  if (longest != 2 * shortest)
    return false;
  for (unsigned axis = 0; axis < 3; axis++)
    {
      if (topology->extent[axis] != shortest && topology->extent[axis] != longest)
        return false;
      is_long[axis] = topology->extent[axis] == longest;
    }
  return true;
}

static bool
check_twist (const PodTopology *topology, GError **error)
{
  bool is_long[3];
  g_autofree char *shape = pod_extent_format (topology->extent, topology->n_dims);

  if (!topology->chip->has_twist)
    g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "%s slices cannot be twisted",
                 topology->chip->name);
  else if (topology->n_dims != 3 || !topology->wraps[0] || !topology->wraps[1]
           || !topology->wraps[2] || !find_twist (topology, is_long))
    g_set_error (
        error, POD_ERROR, POD_ERROR_INFEASIBLE,
        "a slice of %s cannot be twisted: only kxkx2k and kx2kx2k can, k a multiple of %u, such "
        "as 4x4x8",
        shape, topology->chip->cube_extent);
  else
    return true;
  return false;
}

/* -- hosts and DCN ----------------------------------------------------------------------------- */

static unsigned
ceil_div (unsigned a, unsigned b)
{
  return a / b + (a % b != 0);
}

/* Turns the host's block so that the fewest cover a slice: a v5e host of 4x2 chips covers a 2x4
 * slice alone. */
static void
set_hosts (PodTopology *topology)
{
  static const unsigned orders[6][3]
      = { { 0, 1, 2 }, { 1, 0, 2 }, { 0, 2, 1 }, { 2, 1, 0 }, { 1, 2, 0 }, { 2, 0, 1 } };
  const unsigned *host = topology->chip->host_extent;
  unsigned best = 0;

  for (unsigned i = 0; i < 6; i++)
    {
      unsigned n_hosts = 1;
      for (unsigned axis = 0; axis < 3; axis++)
        n_hosts *= ceil_div (topology->extent[axis], host[orders[i][axis]]);
      if (best != 0 && n_hosts >= best)
        continue;
      best = n_hosts;
      for (unsigned axis = 0; axis < 3; axis++)
        topology->host_extent[axis] = host[orders[i][axis]];
    }
  topology->n_hosts = best * topology->n_slices;
}

/* One slice needs no DCN. Several meet in one core; with oversub= each slice has an uplink into it.
 */
static bool
set_dcn (PodTopology *topology, GError **error)
{
  const PodTopologySpec *spec = topology->spec;
  unsigned thinned_spans[POD_MAX_LEVELS] = { 1, topology->n_slices };
  unsigned spans[POD_MAX_LEVELS] = { topology->n_slices };
  bool is_thinned = spec->n_oversubscriptions > 0 && spec->oversubscription[0] > 1;

  topology->n_levels = topology->n_slices == 1 ? 0 : is_thinned ? 2 : 1;
  topology->n_rails = 1;
  if (!pod_tree_check_ratios (topology, error))
    return false;
  pod_tree_fill_levels (topology, is_thinned ? thinned_spans : spans);
  return true;
}

bool
pod_torus_build (PodTopology *topology, GError **error)
{
  const PodTopologySpec *spec = topology->spec;
  uint64_t n_devices = topology->chip->devices_per_chip;

  topology->n_dims = spec->n_axes;
  topology->n_slices = spec->n_slices;
  topology->is_twisted = spec->is_twisted;
  for (unsigned axis = 0; axis < 3; axis++)
    {
      topology->extent[axis] = spec->extent[axis];
      n_devices *= spec->extent[axis]; /* an axis is at most 2^24: checked before it can overflow */
      if (n_devices > POD_MAX_DEVICES || n_devices * spec->n_slices > POD_MAX_DEVICES)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "more than %d devices", POD_MAX_DEVICES);
          return false;
        }
    }
  if (!spec->is_unchecked && !check_pod (topology, error))
    return false;
  if (!set_wraps (topology, error) || (spec->is_twisted && !check_twist (topology, error)))
    return false;
  topology->n_devices = (unsigned) n_devices * spec->n_slices;
  topology->n_chips = topology->n_devices / topology->chip->devices_per_chip;
  topology->n_nodes = spec->n_slices;
  topology->chips_per_node = topology->n_chips / spec->n_slices;
  set_hosts (topology);
  return set_dcn (topology, error)
         && pod_tree_number (topology, (uint64_t) topology->n_chips * 2 * topology->n_dims,
                             topology->n_devices, error);
}

/* -- coordinates and links --------------------------------------------------------------------- */

static void
chip_coords (const PodTopology *topology, uint32_t chip, unsigned out[POD_MAX_DIMS])
{
  for (unsigned axis = 0; axis < 3; axis++)
    {
      out[axis] = chip % topology->extent[axis];
      chip /= topology->extent[axis];
    }
  out[3] = chip;
}

static uint32_t
chip_at (const PodTopology *topology, const unsigned coords[POD_MAX_DIMS])
{
  const unsigned *extent = topology->extent;

  return coords[0] + extent[0] * (coords[1] + extent[1] * (coords[2] + extent[2] * coords[3]));
}

void
pod_topology_coords (const PodTopology *topology, uint32_t device, unsigned out[POD_MAX_DIMS])
{
  g_return_if_fail (topology->fabric == POD_FABRIC_TORUS && device < topology->n_devices);

  chip_coords (topology, device / topology->chip->devices_per_chip, out);
}

uint32_t
pod_topology_device (const PodTopology *topology, const unsigned coords[POD_MAX_DIMS],
                     unsigned core)
{
  g_return_val_if_fail (topology->fabric == POD_FABRIC_TORUS, 0);
  g_return_val_if_fail (core < topology->chip->devices_per_chip, 0);

  return chip_at (topology, coords) * topology->chip->devices_per_chip + core;
}

/* Moves one step; false at the end of a line.
 *
 * A twisted torus is the same grid with other wrap links: the wrap of a short axis (k chips) also
 * moves k, half a turn, along every long axis (2k). kxkx2k becomes the face-centred and kx2kx2k the
 * body-centred cubic lattice modulo 2k, so all axes are alike again: Camara, Moreto et al.,
 * "Twisted torus topologies for enhanced interconnection networks", IEEE TPDS 2010, and arXiv
 * 1311.2019; TPU v4 uses both (arXiv 2304.01433, section 2.8). Half a turn is its own inverse, so
 * both signs move alike. */
static bool
step (const PodTopology *topology, unsigned coords[POD_MAX_DIMS], unsigned dim, int sign)
{
  unsigned extent = topology->extent[dim];
  bool is_edge = sign > 0 ? coords[dim] + 1 == extent : coords[dim] == 0;
  bool is_long[3];

  if (!is_edge)
    {
      coords[dim] = sign > 0 ? coords[dim] + 1 : coords[dim] - 1;
      return true;
    }
  if (!topology->wraps[dim])
    return false;
  coords[dim] = sign > 0 ? 0 : extent - 1;
  if (topology->is_twisted && find_twist (topology, is_long) && !is_long[dim])
    for (unsigned axis = 0; axis < 3; axis++)
      if (is_long[axis])
        coords[axis] = (coords[axis] + topology->extent[axis] / 2) % topology->extent[axis];
  return true;
}

static uint32_t
ici_link (const PodTopology *topology, uint32_t chip, unsigned dim, int sign)
{
  return chip * 2 * topology->n_dims + dim * 2 + (sign < 0);
}

bool
pod_topology_torus_link (const PodTopology *topology, uint32_t device, unsigned dim, int sign,
                         uint32_t *out_link, uint32_t *out_to)
{
  g_return_val_if_fail (device < topology->n_devices && (sign == 1 || sign == -1), false);

  unsigned coords[POD_MAX_DIMS];
  unsigned per_chip = topology->chip->devices_per_chip;

  if (topology->fabric != POD_FABRIC_TORUS || dim >= topology->n_dims)
    return false;
  chip_coords (topology, device / per_chip, coords);
  if (!step (topology, coords, dim, sign))
    return false;
  if (out_link != NULL)
    *out_link = ici_link (topology, device / per_chip, dim, sign);
  if (out_to != NULL)
    *out_to = chip_at (topology, coords) * per_chip + device % per_chip;
  return true;
}

void
pod_torus_link (const PodTopology *topology, uint32_t id, PodLink *out)
{
  if (id >= topology->first_nic_link)
    {
      pod_tree_link (topology, id, out);
      return;
    }
  unsigned per_chip = 2 * topology->n_dims;
  uint32_t device = id / per_chip * topology->chip->devices_per_chip;
  unsigned dim = id % per_chip / 2;
  int sign = id % 2 == 0 ? 1 : -1;
  uint32_t to = device;
  bool exists = pod_topology_torus_link (topology, device, dim, sign, NULL, &to);

  *out = (PodLink){ .kind = POD_LINK_ICI,
                    .bytes_per_s = exists ? topology->chip->ici_bytes_per_s : (PodRated){ 0, 0 },
                    .latency_ps = exists ? topology->chip->ici_hop_ps : 0,
                    .from = device,
                    .to = to,
                    .dim = (uint8_t) dim,
                    .sign = (int8_t) sign };
}

/* -- routes ------------------------------------------------------------------------------------ */

/* The shorter signed way of @distance (0 ... extent - 1) around an axis; a tie goes to +. */
static int
shorter_way (unsigned distance, unsigned extent)
{
  return 2 * distance <= extent ? (int) distance : (int) distance - (int) extent;
}

/* Whether @a is the better vector: shorter, then further in + along the first axis where they
 * differ. */
static bool
is_better (const int a[3], const int b[3])
{
  int length_a = abs (a[0]) + abs (a[1]) + abs (a[2]);
  int length_b = abs (b[0]) + abs (b[1]) + abs (b[2]);

  if (length_a != length_b)
    return length_a < length_b;
  for (unsigned axis = 0; axis < 3; axis++)
    if (a[axis] != b[axis])
      return a[axis] > b[axis];
  return false;
}

/* Signed hops per axis from @from to @to on a twisted torus. Each short axis is gone once without
 * and once with its wrap, and each wrap moves half a turn along the long axes: the best of the 2 or
 * 4 cases is a shortest vector, since no shortest way wraps a short axis twice (two wraps of one
 * axis are a way of 2k hops back to where it began). */
static void
twisted_vector (const PodTopology *topology, const unsigned from[3], const unsigned to[3],
                int out[3])
{
  bool is_long[3];
  bool is_first = true;

  g_assert (find_twist (topology, is_long));
  for (unsigned wrapped = 0; wrapped < 8; wrapped++)
    {
      int vector[3] = { 0, 0, 0 };
      unsigned n_wraps = 0;
      bool is_case = true;

      for (unsigned axis = 0; axis < 3; axis++)
        {
          bool is_wrapped = (wrapped & (1U << axis)) != 0;
          int distance = (int) to[axis] - (int) from[axis];
          int extent = (int) topology->extent[axis];

          if (is_long[axis] && is_wrapped)
            is_case = false;
          if (is_long[axis] || !is_wrapped)
            vector[axis] = distance;
          else /* out over the other end; distance 0 means all around, in + */
            vector[axis] = distance > 0 ? distance - extent : distance + extent;
          n_wraps += !is_long[axis] && is_wrapped;
        }
      if (!is_case)
        continue;
      for (unsigned axis = 0; axis < 3; axis++)
        if (is_long[axis])
          {
            int extent = (int) topology->extent[axis];
            int shifted = vector[axis] - (int) (n_wraps % 2) * extent / 2;
            vector[axis] = shorter_way ((unsigned) (((shifted % extent) + extent) % extent),
                                        (unsigned) extent);
          }
      if (is_first || is_better (vector, out))
        for (unsigned axis = 0; axis < 3; axis++)
          out[axis] = vector[axis];
      is_first = false;
    }
}

static void
torus_vector (const PodTopology *topology, const unsigned from[3], const unsigned to[3], int out[3])
{
  if (topology->is_twisted)
    {
      twisted_vector (topology, from, to, out);
      return;
    }
  for (unsigned axis = 0; axis < 3; axis++)
    {
      unsigned extent = topology->extent[axis];
      out[axis] = topology->wraps[axis]
                      ? shorter_way ((to[axis] + extent - from[axis]) % extent, extent)
                      : (int) to[axis] - (int) from[axis];
    }
}

bool
pod_torus_route (const PodTopology *topology, uint32_t from_chip, uint32_t to_chip, GArray *links)
{
  unsigned from[POD_MAX_DIMS];
  unsigned to[POD_MAX_DIMS];
  int vector[3];

  chip_coords (topology, from_chip, from);
  chip_coords (topology, to_chip, to);
  if (from[3] != to[3])
    return pod_tree_route (topology, from_chip, to_chip, links);
  torus_vector (topology, from, to, vector);
  for (unsigned dim = 0; dim < topology->n_dims; dim++)
    {
      int sign = vector[dim] > 0 ? 1 : -1;
      for (int hop = abs (vector[dim]); hop > 0; hop--)
        {
          pod_links_append (links, ici_link (topology, chip_at (topology, from), dim, sign));
          g_assert (step (topology, from, dim, sign));
        }
    }
  g_assert (chip_at (topology, from) == to_chip);
  return true;
}

/* -- facts ------------------------------------------------------------------------------------- */

/* Links in one direction over the cut that halves a slice across axis @dim. */
static double
axis_cut (const PodTopology *topology, unsigned dim)
{
  double chips = topology->chips_per_node;
  double cut = chips / topology->extent[dim] * (topology->wraps[dim] ? 2 : 1);
  bool is_long[3];

  if (topology->is_twisted && find_twist (topology, is_long) && is_long[dim])
    for (unsigned axis = 0; axis < 3; axis++)
      if (!is_long[axis]) /* each of its wrap links goes into the other half, those of each sign one
                             way */
        cut += chips / topology->extent[axis];
  return cut;
}

double
pod_torus_bisection (const PodTopology *topology, bool is_book)
{
  double least = INFINITY;

  for (unsigned dim = 0; dim < topology->n_dims; dim++)
    if (topology->extent[dim] > 1)
      least = fmin (least, axis_cut (topology, dim));
  least *= pod_rated (&topology->chip->ici_bytes_per_s, is_book) * topology->n_slices;
  if (topology->n_levels > 0)
    least = fmin (least, pod_tree_bisection (topology, is_book));
  return isfinite (least) ? least : 0; /* a single chip has no cut */
}

static unsigned
twisted_diameter (const PodTopology *topology)
{
  const unsigned origin[POD_MAX_DIMS] = { 0 };
  unsigned longest = 0;

  for (uint32_t chip = 0; chip < topology->chips_per_node; chip++)
    {
      unsigned coords[POD_MAX_DIMS];
      int vector[3];
      chip_coords (topology, chip, coords);
      twisted_vector (topology, origin, coords, vector);
      longest = MAX (longest, (unsigned) (abs (vector[0]) + abs (vector[1]) + abs (vector[2])));
    }
  return longest;
}

unsigned
pod_torus_diameter (const PodTopology *topology)
{
  unsigned hops = 0;

  if (topology->is_twisted)
    hops = twisted_diameter (topology);
  else
    for (unsigned dim = 0; dim < topology->n_dims; dim++)
      hops += topology->wraps[dim] ? topology->extent[dim] / 2 : topology->extent[dim] - 1;
  if (topology->n_levels > 0)
    hops = MAX (hops, 2 * topology->n_levels);
  return hops;
}

unsigned
pod_torus_count_links (const PodTopology *topology)
{
  unsigned n_links = 0;

  for (unsigned dim = 0; dim < topology->n_dims; dim++)
    {
      unsigned lines = topology->n_chips / topology->extent[dim];
      n_links += 2 * lines * (topology->extent[dim] - (topology->wraps[dim] ? 0 : 1));
    }
  return n_links;
}
