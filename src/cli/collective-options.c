#include "cli/collective-private.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"

/* The options of podsim collective beyond group, size and algorithm: message by message, phases,
 * matrices, idle axes, traffic of others. */

enum
{
  MAX_MATRIX_RANKS = 4096,
};

static bool invalid (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static bool
invalid (GError **error, const char *format, ...)
{
  va_list values;

  va_start (values, format);
  g_propagate_error (error, g_error_new_valist (POD_ERROR, POD_ERROR_INVALID, format, values));
  va_end (values);
  return false;
}

/* ---- --steps, --phases ---- */

/* "endpoint-delay=10ns" and so on; "none" is the law without extras. */
static bool
add_step_term (PodStepLaw *law, const char *term, GError **error)
{
  if (strcmp (term, "none") == 0)
    return true;
  if (strcmp (term, "floor") == 0)
    law->is_in_whole_ns = true;
  else if (strcmp (term, "store-and-forward") == 0)
    law->is_stored_and_forwarded = true;
  else if (g_str_has_prefix (term, "endpoint-delay="))
    return pod_parse_quantity (strchr (term, '=') + 1, POD_UNIT_SECONDS, &law->endpoint_s, error);
  else if (g_str_has_prefix (term, "local-memory="))
    {
      if (!pod_parse_quantity (strchr (term, '=') + 1, POD_UNIT_BYTES_PER_S,
                               &law->local_bytes_per_s, error))
        return false;
      return law->local_bytes_per_s > 0 || invalid (error, "%s: expected a rate above 0", term);
    }
  else
    return invalid (error,
                    "expected none, endpoint-delay=TIME, local-memory=RATE, floor or "
                    "store-and-forward, got '%s'",
                    term);
  return true;
}

static bool
read_steps (PodCollectiveJob *job, const char *text, GError **error)
{
  g_auto (GStrv) terms = g_strsplit (text, ",", -1);

  for (char **term = terms; *term != NULL; term++)
    if (!add_step_term (&job->steps, g_strstrip (*term), error))
      {
        g_prefix_error (error, "--steps: ");
        return false;
      }
  job->has_steps = true;
  if (job->algorithm == NULL || strcmp (job->algorithm, "auto") == 0)
    job->algorithm = "step-ring";
  if (strcmp (job->algorithm, "step-ring") == 0)
    return true;
  return invalid (error, "--steps is a law of --algorithm step-ring, got '%s'", job->algorithm);
}

static bool
read_phases (PodCollectiveJob *job, const char *text, GError **error)
{
  job->phases = g_strcmp0 (text, "sequential") == 0 ? POD_PHASES_SEQUENTIAL : POD_PHASES_PIPELINED;
  if (text == NULL || job->phases == POD_PHASES_SEQUENTIAL)
    return true;
  if (strcmp (text, "pipelined") != 0)
    return invalid (error, "--phases: expected pipelined or sequential, got '%s'", text);
  if (job->has_steps)
    return invalid (error, "--steps goes message by message: --phases %s does not", text);
  return true;
}

/* ---- --traffic, --ragged ---- */

static bool
check_matrix (const PodCollectiveJob *job, const char *option, GError **error)
{
  if (job->kind != POD_ALL_TO_ALL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--%s is for --kind all_to_all", option);
      return false;
    }
  if (job->group.n_devices <= MAX_MATRIX_RANKS)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
               "--%s: at most %d ranks have a matrix, the group has %u", option, MAX_MATRIX_RANKS,
               job->group.n_devices);
  return false;
}

static double *
new_matrix (PodCollectiveJob *job)
{
  size_t n = job->group.n_devices;

  job->traffic.n = job->group.n_devices;
  job->traffic.shares = g_new0 (double, n *n);
  return job->traffic.shares;
}

/* "4/8": of the destinations of a rank 4 in 8 get a full part, which ones differs from rank to
 * rank, so that every pair moves that part on average. "zipf:1.2": destination i of all ranks is as
 * popular as 1/(i+1)^1.2. */
static bool
read_ragged (PodCollectiveJob *job, const char *text, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, "/", 2);
  uint32_t n = job->group.n_devices;
  uint64_t filled = 1, of = 1;
  double power = 0, sum = 0, *shares;

  if (!check_matrix (job, "ragged", error))
    return false;
  if (g_str_has_prefix (text, "zipf:"))
    {
      if (!pod_parse_quantity (text + strlen ("zipf:"), POD_UNIT_COUNT, &power, error))
        {
          g_prefix_error (error, "--ragged: ");
          return false;
        }
    }
  else if (parts[0] == NULL || parts[1] == NULL
           || !pod_parse_whole (parts[0], POD_UNIT_COUNT, &filled, NULL)
           || !pod_parse_whole (parts[1], POD_UNIT_COUNT, &of, NULL) || filled > of || of == 0)
    return invalid (error, "--ragged: expected FILLED/DESTINATIONS or zipf:POWER, got '%s'", text);
  for (uint32_t k = 0; k < n; k++)
    sum += pow (k + 1, -power);
  shares = new_matrix (job);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++)
      shares[(size_t) i * n + k] = (double) filled / (double) of * pow (k + 1, -power) / sum;
  return true;
}

static bool
read_matrix_row (PodCollectiveJob *job, uint32_t row, char *const *cells, GError **error)
{
  uint32_t n = job->group.n_devices;

  if (row >= n || g_strv_length ((GStrv) cells) != n)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_PARSE,
                   "the group has %u ranks, so %u rows of %u sizes; row %u has %u", n, n, n,
                   row + 1, g_strv_length ((GStrv) cells));
      return false;
    }
  for (uint32_t k = 0; k < n; k++)
    {
      uint64_t bytes;

      if (!pod_parse_whole (cells[k], POD_UNIT_BYTES, &bytes, error))
        return false;
      job->traffic.shares[(size_t) row * n + k] = (double) bytes;
    }
  return true;
}

/* Each line that is no comment, cut at its tabs, to @take with its number. */
typedef bool (*TakeRow) (PodCollectiveJob *job, uint32_t row, char *const *cells, GError **error);

static bool
read_rows (PodCollectiveJob *job, const char *file, TakeRow take, uint32_t *out_n, GError **error)
{
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;
  g_autoptr (GError) reason = NULL;

  *out_n = 0;
  if (!g_file_get_contents (file, &text, NULL, &reason))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s", reason->message);
      return false;
    }
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    {
      g_auto (GStrv) cells = NULL;

      g_strstrip (lines[i]);
      if (lines[i][0] == '\0' || lines[i][0] == '#')
        continue;
      cells = g_strsplit (lines[i], "\t", -1);
      if (!take (job, (*out_n)++, cells, error))
        {
          g_prefix_error (error, "%s:%u: ", file, i + 1);
          return false;
        }
    }
  return true;
}

/* Bytes, rank by rank. The payload of the only row is the most that a rank sends, its own part
 * included. */
static bool
read_traffic (PodCollectiveJob *job, const char *file, GError **error)
{
  uint32_t n = job->group.n_devices, n_rows;
  double most = 0;
  uint64_t payload;

  if (!check_matrix (job, "traffic", error))
    return false;
  new_matrix (job);
  if (!read_rows (job, file, read_matrix_row, &n_rows, error))
    return false;
  if (n_rows != n)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s: the group has %u ranks, got %u rows",
                   file, n, n_rows);
      return false;
    }
  for (uint32_t i = 0; i < n; i++)
    {
      double sent = 0;

      for (uint32_t k = 0; k < n; k++)
        sent += job->traffic.shares[(size_t) i * n + k];
      most = MAX (most, sent);
    }
  for (size_t i = 0; i < (size_t) n * n; i++)
    job->traffic.shares[i] /= MAX (most, 1);
  payload = (uint64_t) most;
  g_array_set_size (job->sizes, 0);
  g_array_append_val (job->sizes, payload);
  return true;
}

/* ---- --background ---- */

static bool
find_device (const PodTopology *topology, const char *text, uint32_t *out, GError **error)
{
  uint64_t device;

  if (!pod_parse_whole (text, POD_UNIT_COUNT, &device, error))
    return false;
  *out = (uint32_t) device;
  if (device < topology->n_devices)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s has devices 0 to %u, got '%s'",
               topology->name, topology->n_devices - 1, text);
  return false;
}

static bool
add_background (PodCollectiveJob *job, uint32_t row, char *const *cells, GError **error)
{
  PodTopology *topology = job->topology;
  g_autoptr (GArray) route = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  uint32_t from, to;
  double rate;

  (void) row;
  if (g_strv_length ((GStrv) cells) != 3)
    return invalid (error, "expected from, to and rate with tabs between, got '%s'", cells[0]);
  if (!find_device (topology, cells[0], &from, error)
      || !find_device (topology, cells[1], &to, error)
      || !pod_parse_quantity (cells[2], POD_UNIT_BYTES_PER_S, &rate, error))
    return false;
  if (!pod_topology_route (topology, from, to, route))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "no route from device %u to device %u",
                   from, to);
      return false;
    }
  if (topology->background_bytes_per_s == NULL)
    topology->background_bytes_per_s = g_new0 (double, topology->n_links);
  for (guint i = 0; i < route->len; i++)
    {
      uint32_t link = g_array_index (route, uint32_t, i);

      topology->background_bytes_per_s[link] += rate;
      if (pod_collective_link_rate (topology, job->fidelity, link) > 0)
        continue;
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                   "the traffic from device %u to device %u leaves nothing of link %u", from, to,
                   link);
      return false;
    }
  return true;
}

/* ---- --replicated ---- */

static bool
add_replicated (PodCollectiveJob *job, const char *axes, GError **error)
{
  PodCollectiveJob wide = { .topology = job->topology, .group = job->group };

  if (job->group.n_factors == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--replicated needs a group of axes: --axes");
      return false;
    }
  if (!pod_collective_add_axes (&wide, axes, "replicated", error))
    return false;
  for (unsigned f = 0; f < wide.group.n_factors; f++)
    if (wide.group.factors[f].dim == POD_DIM_DCN)
      {
        g_free (wide.devices);
        g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                     "--replicated: links are borrowed within a slice, not over dcn");
        return false;
      }
  job->borrowed = wide.group;
  job->borrowed_devices = wide.devices;
  return true;
}

bool
pod_collective_read_extras (PodCollectiveJob *job, const PodCollectiveOptions *options,
                            GError **error)
{
  uint32_t n_rows;

  if (options->traffic != NULL && (options->ragged != NULL || options->bytes != NULL))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--traffic gives the bytes: it excludes --bytes and --ragged");
      return false;
    }
  if ((options->steps != NULL && !read_steps (job, options->steps, error))
      || !read_phases (job, options->phases, error)
      || (options->ragged != NULL && !read_ragged (job, options->ragged, error))
      || (options->replicated != NULL && !add_replicated (job, options->replicated, error)))
    return false;
  if (options->traffic != NULL && !read_traffic (job, options->traffic, error))
    {
      g_prefix_error (error, "--traffic: ");
      return false;
    }
  if (options->background != NULL
      && !read_rows (job, options->background, add_background, &n_rows, error))
    {
      g_prefix_error (error, "--background: ");
      return false;
    }
  return true;
}
