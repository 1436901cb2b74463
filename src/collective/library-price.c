#include "collective/library.h"

#include <math.h>
#include <string.h>

/* What one collective costs by one path. The equations stand above PodLibraryPath. */

static bool
is_reduction (PodCollectiveKind kind)
{
  return kind == POD_ALL_REDUCE || kind == POD_REDUCE_SCATTER || kind == POD_REDUCE;
}

static bool
is_one_byte_integer (PodDtype dtype)
{
  return dtype == POD_DTYPE_INT8 || dtype == POD_DTYPE_INT4;
}

bool
pod_library_path_fits (const PodLibraryDevice *device, const PodLibraryPath *path,
                       const PodLibraryShape *shape, const char *algorithm)
{
  if ((path->kinds >> shape->kind & 1) == 0 || strcmp (path->algorithm, algorithm) != 0)
    return false;
  /* NCCL: NVLS needs a type that the switch adds, and enough peers */
  return !g_str_has_prefix (algorithm, "nvls")
         || ((device->switch_dtypes >> shape->dtype & 1) != 0
             && shape->n_ranks >= device->min_switch_ranks);
}

/* How much longer an all-to-all takes for the channels that its peers leave idle: C r / (n c). */
static double
idle_factor (double channels, double n_ranks)
{
  double per_peer = 1;

  while (2 * per_peer * n_ranks <= channels)
    per_peer *= 2;
  return channels * ceil (n_ranks * per_peer / channels) / (n_ranks * per_peer);
}

/* Scale-up links. */
static double
inside_s (const PodLibraryPath *path, const PodLibraryShape *shape, double bytes)
{
  double rate = path->kind_rate_ratio[shape->kind] > 0 ? path->kind_rate_ratio[shape->kind]
                                                       : path->rate_ratio;
  double slow_bytes = path->channel_bytes > 0 ? MIN (bytes, path->channel_bytes) : bytes;

  if (shape->kind == POD_ALL_TO_ALL && path->peer_channels > 0)
    bytes += slow_bytes * (idle_factor (path->peer_channels, shape->n_ranks) - 1);
  return bytes * shape->inside_s_per_byte / rate;
}

static double
bandwidth_s (const PodLibraryPath *path, const PodLibraryShape *shape, double bytes)
{
  double own = shape->kind == POD_ALL_TO_ALL ? path->all_to_all_net_rate_ratio : 0;
  double net_rate = own > 0 ? own : path->net_rate_ratio > 0 ? path->net_rate_ratio : 1;
  double s = MAX (inside_s (path, shape, bytes), bytes * shape->across_s_per_byte / net_rate);

  if (path->own_rate_ratio > 0)
    s += bytes * shape->own_s_per_byte / path->own_rate_ratio;
  if (path->narrow_rate_ratio > 0 && is_reduction (shape->kind)
      && is_one_byte_integer (shape->dtype))
    s += bytes * shape->own_s_per_byte / path->narrow_rate_ratio;
  return s;
}

/* Outside the sizes of a path no price makes the library take it. */
static bool
is_outside (const PodLibraryPath *path, const PodLibraryShape *shape, double bytes)
{
  return bytes < path->least_bytes * shape->n_ranks
         || (path->limit_bytes > 0 && bytes > path->limit_bytes * shape->n_ranks);
}

/* (a^p + b^p)^(1/p) without overflow for the large p that a maximum is. */
static double
overlapped (double a, double b, double p)
{
  double most = MAX (a, b), least = MIN (a, b);

  if (p <= 1 || !(least > 0))
    return a + b;
  return most * pow (1 + pow (least / most, p), 1 / p);
}

/* What the library believes: NCCL 2.30.7, src/graph/tuning.cc. */
static double
tuner_cost (const PodLibraryPath *path, const PodLibraryShape *shape, double bytes)
{
  double net_rate = path->tuner_net_rate_ratio > 0 ? path->tuner_net_rate_ratio : 1;

  return path->tuner_launch_s + shape->n_steps * path->tuner_step_s
         + shape->n_net_steps * path->tuner_net_step_s
         + bytes
               * MAX (shape->inside_s_per_byte / path->tuner_rate_ratio,
                      MAX (shape->across_s_per_byte, shape->channel_s_per_byte) / net_rate);
}

void
pod_library_price (const PodLibraryPath *path, const PodLibraryShape *shape, uint64_t payload_bytes,
                   PodLibraryPrice *out)
{
  double bytes = (double) payload_bytes;
  double widen
      = 1 + (path->widen_ratio > 0 ? path->widen_ratio * bytes / (bytes + path->widen_bytes) : 0);
  double pairs = shape->kind == POD_ALL_TO_ALL ? pow (shape->n_ranks - 1.0, 2) : 0;
  double launch_s = path->launch_s + shape->floor_s + path->spread_s * (1 - 1.0 / shape->n_ranks);
  double steps_s = shape->n_steps * path->step_s + shape->n_net_steps * path->net_step_s
                   + shape->net_latency_s + pairs * path->pair_step_s;

  out->bandwidth_s = bandwidth_s (path, shape, bytes);
  out->time_s = launch_s * widen + overlapped (steps_s * widen, out->bandwidth_s, path->overlap);
  out->bandwidth_s = MIN (out->bandwidth_s, out->time_s);
  out->cost_s = out->time_s;
  if (path->tuner_rate_ratio > 0)
    out->cost_s = tuner_cost (path, shape, bytes);
  if (is_outside (path, shape, bytes))
    out->cost_s = INFINITY;
}

double
pod_library_cost (const PodLibraryPath *path, const PodLibraryShape *shape, uint64_t payload_bytes)
{
  PodLibraryPrice price;

  if (is_outside (path, shape, (double) payload_bytes))
    return INFINITY;
  if (path->tuner_rate_ratio > 0)
    return tuner_cost (path, shape, (double) payload_bytes);
  pod_library_price (path, shape, payload_bytes, &price);
  return price.cost_s;
}

const PodLibraryPath *
pod_library_choose (const PodLibraryDevice *device, const GArray *cases, uint64_t payload_bytes,
                    PodLibraryPrice *out)
{
  const PodLibraryPath *best = NULL;

  for (guint c = 0; c < cases->len; c++)
    {
      const PodLibraryCase *one = &g_array_index (cases, PodLibraryCase, c);

      for (guint i = 0; i < device->paths->len; i++)
        {
          const PodLibraryPath *path = g_ptr_array_index (device->paths, i);
          PodLibraryPrice price;

          if (!pod_library_path_fits (device, path, &one->shape, one->algorithm))
            continue;
          pod_library_price (path, &one->shape, payload_bytes, &price);
          /* Equal up to rounding is equal: the first stays */
          if (best == NULL || price.cost_s < out->cost_s * (1 - 1e-9))
            {
              best = path;
              *out = price;
            }
        }
    }
  return best;
}
