#include "cli/collective-private.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"

bool
pod_cli_parse_count (const char *text, const char *option, uint64_t most, uint64_t *out,
                     GError **error)
{
  if (!pod_parse_whole (text, POD_UNIT_COUNT, out, error))
    {
      g_prefix_error (error, "--%s: ", option);
      return false;
    }
  if (*out >= 1 && *out <= most)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "--%s: expected 1 to %" G_GUINT64_FORMAT ", got '%s'", option, most, text);
  return false;
}

static const char *const dim_names[] = { "x", "y", "z", "dcn", "core" };

static unsigned
dim_extent (const PodTopology *topology, unsigned dim)
{
  switch (dim)
    {
    case POD_DIM_DCN:
      return topology->n_slices;
    case POD_DIM_CORE:
      return topology->chip->devices_per_chip;
    default:
      return dim < topology->n_dims ? topology->extent[dim] : 1;
    }
}

static bool
find_dim (const PodTopology *topology, const char *name, const char *option, unsigned *out,
          GError **error)
{
  for (unsigned dim = 0; dim < G_N_ELEMENTS (dim_names); dim++)
    if (strcmp (name, dim_names[dim]) == 0 && (dim >= POD_DIM_DCN || dim < topology->n_dims))
      {
        *out = dim;
        return true;
      }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "--%s: %s has no axis '%s', expected %s, dcn or core", option, topology->name, name,
               topology->n_dims == 3   ? "x, y, z"
               : topology->n_dims == 2 ? "x, y"
                                       : "x");
  return false;
}

/* "4" or "4@2": members, and how far apart they stand. */
static bool
parse_members (const char *text, const char *option, uint64_t *out_size, uint64_t *out_stride,
               GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, "@", 2);

  return pod_cli_parse_count (parts[0] == NULL ? "" : parts[0], option, UINT32_MAX, out_size, error)
         && (parts[0] == NULL || parts[1] == NULL
             || pod_cli_parse_count (parts[1], option, UINT32_MAX, out_stride, error));
}

/* "x" takes what is left of the axis, "x:4" that many neighbours, "x:4@2" every second; an axis
 * named twice goes on where it stopped. */
static bool
add_factor (PodCollectiveJob *job, const char *text, const char *option, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", -1);
  PodGroup *group = &job->group;
  unsigned dim, extent;
  uint64_t size, stride = 1;

  if (g_strv_length (parts) > 2 || group->n_factors == POD_MAX_FACTORS)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--%s: expected up to %d of AXIS, AXIS:N or AXIS:N@STRIDE, got '%s'", option,
                   POD_MAX_FACTORS, text);
      return false;
    }
  if (!find_dim (job->topology, parts[0] == NULL ? "" : g_strstrip (parts[0]), option, &dim, error))
    return false;
  for (unsigned f = 0; f < group->n_factors; f++)
    if (group->factors[f].dim == dim)
      stride = (uint64_t) group->factors[f].size * group->factors[f].stride;
  extent = dim_extent (job->topology, dim);
  size = extent / stride;
  if (parts[0] != NULL && parts[1] != NULL
      && !parse_members (parts[1], option, &size, &stride, error))
    return false;
  if (size < 1 || size > extent || stride > extent || size * stride > extent
      || extent % (size * stride) != 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                   "--%s: %s: %" G_GUINT64_FORMAT " at stride %" G_GUINT64_FORMAT
                   " do not divide axis %s of %u",
                   option, text, size, stride, dim_names[dim], extent);
      return false;
    }
  group->factors[group->n_factors++] = (PodGroupFactor){
    .dim = (uint8_t) dim,
    .stride = (uint32_t) stride,
    .size = (uint32_t) size,
  };
  return true;
}

/* The devices of the factors' product, first factor fastest, from device 0. */
static void
list_factor_devices (PodCollectiveJob *job)
{
  PodGroup *group = &job->group;

  group->n_devices = 1;
  for (unsigned f = 0; f < group->n_factors; f++)
    group->n_devices *= group->factors[f].size;
  job->devices = g_new (uint32_t, group->n_devices);
  group->devices = job->devices;
  for (uint32_t i = 0; i < group->n_devices; i++)
    {
      unsigned coords[POD_MAX_DIMS] = { 0 }, core = 0;
      uint32_t rest = i;

      for (unsigned f = 0; f < group->n_factors; f++)
        {
          const PodGroupFactor *factor = &group->factors[f];
          unsigned at = rest % factor->size * factor->stride;

          rest /= factor->size;
          if (factor->dim == POD_DIM_CORE)
            core += at;
          else
            coords[factor->dim] += at;
        }
      job->devices[i] = pod_topology_device (job->topology, coords, core);
    }
}

bool
pod_collective_add_axes (PodCollectiveJob *job, const char *axes, const char *option,
                         GError **error)
{
  g_auto (GStrv) list = g_strsplit (axes, ",", -1);

  if (job->topology->fabric != POD_FABRIC_TORUS)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--%s: %s is no torus, take --ranks",
                   option, job->topology->name);
      return false;
    }
  if (*list == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--%s: expected AXIS or AXIS:N, got ''",
                   option);
      return false;
    }
  for (char **item = list; *item != NULL; item++)
    if (!add_factor (job, *item, option, error))
      return false;
  list_factor_devices (job);
  return true;
}

static bool
group_by_ranks (PodCollectiveJob *job, const PodCollectiveOptions *options, GError **error)
{
  uint64_t n = 0, stride = 1;

  if (options->stride != NULL
      && !pod_cli_parse_count (options->stride, "stride", job->topology->n_devices, &stride, error))
    return false;
  if (!pod_cli_parse_count (options->ranks, "ranks", UINT32_MAX, &n, error))
    return false;
  if ((n - 1) * stride >= job->topology->n_devices)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                   "--ranks: %" G_GUINT64_FORMAT " ranks at stride %" G_GUINT64_FORMAT
                   " need %" G_GUINT64_FORMAT " devices, %s has %u",
                   n, stride, (n - 1) * stride + 1, job->topology->name, job->topology->n_devices);
      return false;
    }
  job->group.n_devices = (uint32_t) n;
  job->devices = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    job->devices[i] = i * (uint32_t) stride;
  return true;
}

static bool
group_by_list (PodCollectiveJob *job, const char *text, GError **error)
{
  g_auto (GStrv) list = g_strsplit (text, ",", -1);
  guint n = g_strv_length (list);

  if (n == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--devices: expected numbers, got ''");
      return false;
    }
  job->devices = g_new (uint32_t, MAX (n, 1));
  for (guint i = 0; i < n; i++)
    {
      uint64_t device;

      if (!pod_parse_whole (list[i], POD_UNIT_COUNT, &device, error))
        {
          g_prefix_error (error, "--devices: ");
          return false;
        }
      if (device >= job->topology->n_devices)
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "--devices: %s has devices 0 to %u, got '%s'", job->topology->name,
                       job->topology->n_devices - 1, list[i]);
          return false;
        }
      for (guint k = 0; k < i; k++)
        if (job->devices[k] == device)
          {
            g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--devices: %s stands twice",
                         list[i]);
            return false;
          }
      job->devices[i] = (uint32_t) device;
    }
  job->group.n_devices = n;
  return true;
}

bool
pod_collective_make_group (PodCollectiveJob *job, const PodCollectiveOptions *options,
                           GError **error)
{
  int n_given = (options->axes != NULL) + (options->ranks != NULL) + (options->devices != NULL);
  bool is_whole, is_good;

  if (n_given > 1)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--axes, --ranks and --devices exclude each other");
      return false;
    }
  if (options->stride != NULL && options->ranks == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--stride needs --ranks");
      return false;
    }
  if (options->axes != NULL)
    is_good = pod_collective_add_axes (job, options->axes, "axes", error);
  else if (options->devices != NULL)
    is_good = group_by_list (job, options->devices, error);
  else
    {
      g_autofree char *all
          = g_strdup_printf ("%u", job->kind == POD_SEND ? 2 : job->topology->n_devices);
      PodCollectiveOptions ranks
          = { .ranks = options->ranks != NULL ? options->ranks : all, .stride = options->stride };

      is_good = group_by_ranks (job, &ranks, error);
    }
  if (!is_good)
    return false;
  is_whole = options->axes == NULL && options->devices == NULL
             && job->group.n_devices == job->topology->n_devices;
  if (is_whole && job->topology->fabric == POD_FABRIC_TORUS && job->kind != POD_SEND)
    {
      g_free (job->devices);
      for (unsigned dim = 0; dim < G_N_ELEMENTS (dim_names); dim++)
        if (dim_extent (job->topology, dim) > 1 && !add_factor (job, dim_names[dim], "axes", error))
          return false;
      list_factor_devices (job);
    }
  job->group.devices = job->devices;
  return true;
}
