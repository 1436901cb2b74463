#include "search/space-private.h"

#include <string.h>

/* Heads and those that they stand for. */

/* Values that the others of their option only add to. Recomputation adds passes to a backward, but not where a host that launches kernels is
 * waited for: then longer kernels of one block make up for the wait of its others. What is not overlapped waits for more, but buckets of
 * gradients are then filled otherwise. */
static const struct
{
  const char *key;
  const char *value;
  bool needs_no_host;
  bool needs_no_buckets;
} least_values[] = {
  { "recompute", "none", true, false },
  { "overlap-dp", "true", false, true },
  { "overlap-p2p", "true", false, false },
  { "overlap-fsdp", "true", false, false },
};

static bool
has_host (const PodScenario *base)
{
  bool is_set = base->framework != NULL;

  for (guint i = 0; i < base->set->len; i++)
    is_set = is_set || g_str_has_prefix (g_ptr_array_index (base->set, i), "framework.");
  return is_set;
}

static bool
has_buckets (const PodSpace *space)
{
  return space->base->grad_bucket != NULL || space->base->lora > 0 || pod_grid_find (space->options, "grad-bucket") != NULL || pod_grid_find (space->options, "lora") != NULL;
}

bool
pod_space_is_true (const char *value)
{
  return g_strv_contains ((const char *const[]){ "true", "1", "yes", NULL }, value);
}

static guint
find_value (const PodGridDim *dim, const char *wanted)
{
  for (guint v = 0; v < dim->values->len; v++)
    {
      const char *value = g_ptr_array_index (dim->values, v);

      if (strcmp (wanted, value) == 0 || (pod_space_is_true (wanted) && pod_space_is_true (value)))
        return v;
    }
  return G_MAXUINT;
}

static guint
find_least (const PodSpace *space, const PodGridDim *dim)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (least_values); i++)
    if (strcmp (least_values[i].key, dim->key) == 0 && !(least_values[i].needs_no_host && has_host (space->base))
        && !(least_values[i].needs_no_buckets && has_buckets (space)))
      return find_value (dim, least_values[i].value);
  return G_MAXUINT;
}

void
pod_space_set_least (PodSpace *space)
{
  space->least = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint d = 0; d < space->options->dims->len; d++)
    {
      const guint least = find_least (space, g_ptr_array_index (space->options->dims, d));

      g_array_append_val (space->least, least);
    }
}

/* Which value of dimension @d a head has, and how many its members; the first layout's have themselves alone, so that each value is looked at. */
static guint
head_value (const PodSpace *space, uint64_t candidate, guint d, guint *out_n)
{
  const PodGridDim *dim = g_ptr_array_index (space->options->dims, d);
  const guint least = g_array_index (space->least, guint, d);

  *out_n = 1;
  if (least == G_MAXUINT || candidate < space->n_combinations)
    return G_MAXUINT;
  if (!pod_space_has_effect (&g_array_index (space->layouts, PodSpaceLayout, candidate / space->n_combinations).layout, dim->key))
    return 0;
  *out_n = dim->values->len;
  return least;
}

/* Combinations that one value of dimension @d has in a row. */
static uint64_t
stride_of (const PodSpace *space, guint d)
{
  uint64_t stride = 1;

  for (guint i = space->options->dims->len - 1; i > d; i--)
    stride *= ((PodGridDim *) g_ptr_array_index (space->options->dims, i))->values->len;
  return stride;
}

static guint
value_index (const PodSpace *space, uint64_t candidate, guint d)
{
  return (guint) (candidate % space->n_combinations / stride_of (space, d) % ((PodGridDim *) g_ptr_array_index (space->options->dims, d))->values->len);
}

bool
pod_space_is_head (const PodSpace *space, uint64_t candidate)
{
  for (guint d = 0; d < space->options->dims->len; d++)
    {
      guint n;
      const guint value = head_value (space, candidate, d, &n);

      if (value != G_MAXUINT && value_index (space, candidate, d) != value)
        return false;
    }
  return true;
}

uint64_t
pod_space_n_members (const PodSpace *space, uint64_t head)
{
  uint64_t n_members = 1;

  for (guint d = 0; d < space->options->dims->len; d++)
    {
      guint n;

      head_value (space, head, d, &n);
      n_members *= n;
    }
  return n_members;
}

void
pod_space_add_members (const PodSpace *space, uint64_t head, GArray *out)
{
  const guint first = out->len;

  g_array_append_val (out, head);
  for (guint d = 0; d < space->options->dims->len; d++)
    {
      const guint n_before = out->len;
      guint n;
      const guint least = head_value (space, head, d, &n);

      for (guint v = 0; v < n; v++)
        for (guint i = first; i < n_before && n > 1 && v != least; i++)
          {
            const uint64_t other = g_array_index (out, uint64_t, i) - least * stride_of (space, d) + v * stride_of (space, d);

            g_array_append_val (out, other);
          }
    }
}
