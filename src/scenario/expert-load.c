#include "scenario/expert-load.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/file-read.h"
#include "base/units.h"

/* The loads of all experts, their sum 1. */
typedef struct
{
  uint32_t n;
  double *share; /* (owned) */
} Loads;

static void
loads_clear (Loads *loads)
{
  g_free (loads->share);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Loads, loads_clear)

static void
loads_init (Loads *loads, const PodJob *job)
{
  loads->n = (uint32_t) job->model->n_experts;
  loads->share = g_new0 (double, loads->n);
}

/* A token goes to an expert once at most, so none gets more than 1/top_k of the copies: what is over goes to the others as
 * they are popular. O(experts^2) at worst. */
static void
cap_shares (Loads *loads, uint64_t top_k)
{
  const double most = 1.0 / (double) top_k;
  g_autofree bool *is_full = g_new0 (bool, loads->n);

  for (uint32_t n_full = 0; n_full < loads->n;)
    {
      double rest = 0;
      uint32_t n_new = 0;

      for (uint32_t i = 0; i < loads->n; i++)
        rest += is_full[i] ? 0 : loads->share[i];
      for (uint32_t i = 0; i < loads->n; i++)
        if (!is_full[i])
          {
            loads->share[i] *= rest > 0 ? (1 - n_full * most) / rest : 0;
            if (loads->share[i] > most * (1 + 1e-12))
              {
                loads->share[i] = most;
                is_full[i] = true;
                n_new++;
              }
          }
      if (n_new == 0)
        return;
      n_full += n_new;
    }
}

/* Load of the busiest rank over the mean: experts in their order on the ranks, or dealt to them one by one. */
static double
busiest_rank (const Loads *loads, uint32_t n_ranks, bool is_dealt)
{
  const uint32_t n_local = loads->n / n_ranks;
  double most = 0;

  for (uint32_t rank = 0; rank < n_ranks; rank++)
    {
      double sum = 0;

      for (uint32_t i = 0; i < n_local; i++)
        sum += loads->share[is_dealt ? i * n_ranks + rank : rank * n_local + i];
      most = MAX (most, sum);
    }
  return most * n_ranks;
}

/* Copies that do not find room when each expert takes @capacity times the mean. */
static double
dropped_ratio (const Loads *loads, double capacity)
{
  double dropped = 0;

  for (uint32_t i = 0; i < loads->n; i++)
    dropped += MAX (0, loads->share[i] - capacity / loads->n);
  return dropped;
}

static bool
read_zipf (const char *text, Loads *loads, GError **error)
{
  double exponent;

  if (!pod_parse_quantity (text + strlen ("zipf:"), POD_UNIT_RATIO, &exponent, error))
    {
      g_prefix_error (error, "--expert-imbalance: zipf: ");
      return false;
    }
  if (!(exponent >= 0 && exponent <= 10))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--expert-imbalance: zipf: the exponent must be from 0 to 10, got '%s'", text + strlen ("zipf:"));
      return false;
    }
  for (uint32_t i = 0; i < loads->n; i++)
    loads->share[i] = pow (i + 1.0, -exponent);
  return true;
}

static bool
read_file (const char *file, Loads *loads, GError **error)
{
  size_t n_bytes;
  g_autofree char *text = pod_file_read (file, POD_FILE_LIMIT_BYTES, &n_bytes, error);
  g_auto (GStrv) lines = NULL;
  uint32_t n = 0;
  double sum = 0;

  if (text == NULL)
    return false;
  if (strlen (text) != n_bytes)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s:%u: a NUL byte, expected text", file, pod_line_at (text, strlen (text)));
      return false;
    }
  lines = g_strsplit (text, "\n", -1);
  for (unsigned l = 0; lines[l] != NULL; l++)
    {
      g_auto (GStrv) words = NULL;

      if (strchr (lines[l], '#') != NULL)
        *strchr (lines[l], '#') = '\0';
      words = g_strsplit_set (lines[l], " \t\r", -1);
      for (unsigned w = 0; words[w] != NULL; w++)
        {
          double value;

          if (words[w][0] == '\0')
            continue;
          if (!pod_parse_quantity (words[w], POD_UNIT_COUNT, &value, error))
            {
              g_prefix_error (error, "%s:%u: ", file, l + 1);
              return false;
            }
          if (n < loads->n)
            loads->share[n] = value;
          sum += value;
          n++;
        }
    }
  if (n == loads->n && sum > 0 && isfinite (sum))
    return true;
  if (n != loads->n)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: %u loads, but there are %u experts", file, n, loads->n);
  else
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: the loads add up to %g", file, sum);
  return false;
}

/* The ratio itself: at most what one rank gets when every token goes to as many of its experts as it can. */
static bool
check_ratio (const PodJob *job, const char *text, double ratio, GError **error)
{
  const uint64_t n_local = job->model->n_experts / job->layout.ep;
  const double most = (double) job->layout.ep * (double) MIN (job->model->top_k, n_local) / (double) job->model->top_k;

  if (ratio >= 1 && ratio <= most * (1 + 1e-9))
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "--expert-imbalance: '%s': the busiest rank's load over the mean is from 1 to %.6g with ep=%u, %" G_GUINT64_FORMAT " experts a rank, %" G_GUINT64_FORMAT " of them a token", text, most,
               job->layout.ep, n_local, job->model->top_k);
  return false;
}

/* Leaves the busiest rank's ratio in @out_ratio and the loads, where they are known, in @loads. */
static bool
read_imbalance (const PodJob *job, const char *text, Loads *loads, double *out_ratio, GPtrArray *notes, GError **error)
{
  const bool is_zipf = g_str_has_prefix (text, "zipf:");

  if (!is_zipf && pod_parse_quantity (text, POD_UNIT_COUNT, out_ratio, NULL))
    {
      g_ptr_array_add (notes, g_strdup_printf ("experts: the busiest rank gets %.4g times the mean of the tokens, and every rank is timed as it", *out_ratio));
      return check_ratio (job, text, *out_ratio, error);
    }
  loads_init (loads, job);
  if (is_zipf ? !read_zipf (text, loads, error) : !read_file (text, loads, error))
    {
      if (!is_zipf)
        g_prefix_error (error, "--expert-imbalance: ");
      return false;
    }
  cap_shares (loads, job->model->top_k);
  *out_ratio = busiest_rank (loads, job->layout.ep, is_zipf);
  g_ptr_array_add (notes, g_strdup_printf ("experts: loads of %s, %s: the busiest rank gets %.4g times the mean of the tokens, and every rank is timed as it", text,
                                           is_zipf ? "dealt to the ranks one by one" : "in their order on the ranks", *out_ratio));
  return true;
}

static bool
read_capacity (const char *text, double *out, GError **error)
{
  *out = 0;
  if (text == NULL || strcmp (text, "dropless") == 0)
    return true;
  if (!pod_parse_quantity (text, POD_UNIT_COUNT, out, error))
    {
      g_prefix_error (error, "--capacity-factor: ");
      return false;
    }
  if (*out > 0 && *out <= 1e6)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--capacity-factor: must be above 0 and at most 1e6, or dropless, got '%s'", text);
  return false;
}

bool
pod_expert_load_read (PodJob *job, const char *capacity, const char *imbalance, GPtrArray *notes, GError **error)
{
  g_auto (Loads) loads = { 0 };
  g_autofree char *dropped = NULL;
  double factor;

  job->expert_load = 1;
  if (!read_capacity (capacity, &factor, error))
    return false;
  if (imbalance != NULL && !read_imbalance (job, imbalance, &loads, &job->expert_load, notes, error))
    return false;
  job->counts_copies = factor == 0;
  if (imbalance == NULL && factor == 0)
    g_ptr_array_add (notes, g_strdup ("experts: all get the same number of tokens, and none is dropped (--expert-imbalance, --capacity-factor)"));
  if (factor == 0)
    return true;
  job->expert_load = factor;
  dropped = loads.share != NULL ? g_strdup_printf ("; %.4g of the copies find no room", dropped_ratio (&loads, factor)) : g_strdup ("");
  g_ptr_array_add (notes, g_strdup_printf ("experts: each computes %.4g times the mean of the tokens, filled up or cut off there%s", factor, dropped));
  return true;
}
