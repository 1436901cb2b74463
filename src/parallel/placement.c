#include "parallel/placement-private.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"

#define N_DIMS (POD_DIM_CORE + 1)

static const char *const dim_names[N_DIMS] = { "x", "y", "z", "dcn", "core" };

const PodAxis pod_rank_numbering[POD_N_AXES] = { POD_AXIS_TP, POD_AXIS_CP, POD_AXIS_FSDP, POD_AXIS_DP, POD_AXIS_PP };

unsigned
pod_placement_factors (const PodAxisPlacement placement[POD_N_AXES], uint32_t stride, uint32_t size, PodGroupFactor out[POD_MAX_FACTORS])
{
  unsigned n = 0;

  for (unsigned k = 0; k < POD_N_AXES; k++)
    for (unsigned f = 0; f < placement[pod_rank_numbering[k]].n_factors && size > 1; f++)
      {
        PodGroupFactor factor = placement[pod_rank_numbering[k]].factors[f];
        const uint32_t skipped = MIN (stride, factor.size);

        if (stride % skipped != 0 || factor.size % skipped != 0)
          return 0;
        stride /= skipped;
        factor.size /= skipped;
        factor.stride *= skipped;
        if (factor.size == 1)
          continue;
        if (stride > 1 || MAX (size, factor.size) % MIN (size, factor.size) != 0 || n == POD_MAX_FACTORS)
          return 0;
        factor.size = MIN (size, factor.size);
        size /= factor.size;
        out[n++] = factor;
      }
  return size > 1 ? 0 : n;
}

/* How long each physical axis is, and how much of it is taken (the next stride). */
typedef struct
{
  uint32_t extent[N_DIMS];
  uint32_t taken[N_DIMS];
} Space;

static void
space_init (Space *space, const PodTopology *topology)
{
  for (unsigned d = 0; d < 3; d++)
    space->extent[d] = d < topology->n_dims ? topology->extent[d] : 1;
  space->extent[POD_DIM_DCN] = MAX (topology->n_slices, 1);
  space->extent[POD_DIM_CORE] = topology->chip->devices_per_chip;
  for (unsigned d = 0; d < N_DIMS; d++)
    space->taken[d] = 1;
}

static void
add_factor (Space *space, PodAxisPlacement *placement, unsigned dim, uint32_t size)
{
  if (size > 1)
    placement->factors[placement->n_factors++] = (PodGroupFactor){ .dim = (uint8_t) dim, .stride = space->taken[dim], .size = size };
  space->taken[dim] *= size;
}

static bool
parse_part (Space *space, const char *axis_name, const char *part, PodAxisPlacement *placement, uint64_t *product, GError **error)
{
  g_auto (GStrv) pair = g_strsplit (part, ":", 2);
  const char *name = pair[0] != NULL ? pair[0] : ""; /* of "" there are no parts */
  unsigned dim = 0;
  uint64_t size;

  while (dim < N_DIMS && strcmp (name, dim_names[dim]) != 0)
    dim++;
  if (dim == N_DIMS)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--map: %s: unknown physical axis '%s'; known are x, y, z, dcn, core", axis_name, name);
      return false;
    }
  size = space->extent[dim] / space->taken[dim];
  if (pair[1] != NULL && !pod_parse_whole (pair[1], POD_UNIT_COUNT, &size, error))
    {
      g_prefix_error (error, "--map: %s: ", axis_name);
      return false;
    }
  if (size == 0 || size > space->extent[dim] || space->extent[dim] % (space->taken[dim] * size) != 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--map: %s=%s: axis %s has %u devices, %u of them taken further in: %" G_GUINT64_FORMAT " more do not divide it",
                   axis_name, part, dim_names[dim], space->extent[dim], space->taken[dim], size);
      return false;
    }
  if (placement->n_factors == POD_MAX_FACTORS)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "--map: %s has more than %d parts", axis_name, POD_MAX_FACTORS);
      return false;
    }
  add_factor (space, placement, dim, (uint32_t) size);
  *product *= size;
  return true;
}

bool
pod_placement_parse (const PodTopology *topology, const PodLayout *layout, const char *map, PodAxisPlacement out[POD_N_AXES], GError **error)
{
  g_auto (GStrv) words = g_strsplit_set (map, " \t\n", -1);
  bool is_given[POD_N_AXES] = { false };
  Space space;

  memset (out, 0, POD_N_AXES * sizeof *out);
  space_init (&space, topology);
  for (unsigned i = 0; words[i] != NULL; i++)
    {
      g_auto (GStrv) pair = NULL;
      g_auto (GStrv) parts = NULL;
      uint64_t product = 1;
      PodAxis axis;

      if (words[i][0] == '\0')
        continue;
      pair = g_strsplit (words[i], "=", 2);
      if (pair[1] == NULL || !pod_axis_parse (pair[0], &axis) || is_given[axis])
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--map: '%s' is not AXIS=PHYSICAL[:SIZE],… with each of dp, fsdp, tp, cp, pp at most once", words[i]);
          return false;
        }
      is_given[axis] = true;
      parts = g_strsplit (pair[1], ",", -1);
      for (unsigned k = 0; parts[k] != NULL; k++)
        if (!parse_part (&space, pair[0], parts[k], &out[axis], &product, error))
          return false;
      if (product != layout->degree[axis])
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--map: %s covers %" G_GUINT64_FORMAT " devices, but the layout has %s=%u", words[i], product, pair[0], layout->degree[axis]);
          return false;
        }
    }
  for (unsigned a = 0; a < POD_N_AXES; a++)
    if (!is_given[a] && layout->degree[a] > 1)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--map: %s=%u has no place: add %s=…", pod_axis_name (a), layout->degree[a], pod_axis_name (a));
        return false;
      }
  return true;
}

/* Takes the parts of an axis, if they start where what is taken ends. */
static bool
take_factors (Space *space, const PodAxisPlacement *placement)
{
  Space after = *space;

  for (unsigned f = 0; f < placement->n_factors; f++)
    {
      const PodGroupFactor *factor = &placement->factors[f];

      if (factor->stride != after.taken[factor->dim])
        return false;
      after.taken[factor->dim] *= factor->size;
    }
  *space = after;
  return true;
}

/* Innermost axes first, so that --map reads it back. */
char *
pod_placement_to_text (const PodTopology *topology, const PodAxisPlacement placement[POD_N_AXES])
{
  GString *text = g_string_new (NULL);
  bool is_told[POD_N_AXES] = { false };
  Space space;

  space_init (&space, topology);
  for (unsigned n = 0; n < POD_N_AXES; n++)
    {
      unsigned a = 0;

      while (is_told[a] || !take_factors (&space, &placement[a]))
        {
          a++;
          g_assert (a < POD_N_AXES);
        }
      is_told[a] = true;
      for (unsigned f = 0; f < placement[a].n_factors; f++)
        {
          const PodGroupFactor *factor = &placement[a].factors[f];

          if (f == 0)
            g_string_append_printf (text, "%s%s=", text->len > 0 ? " " : "", pod_axis_name (a));
          g_string_append_printf (text, "%s%s", f > 0 ? "," : "", dim_names[factor->dim]);
          if (factor->size != space.extent[factor->dim])
            g_string_append_printf (text, ":%u", factor->size);
        }
    }
  return g_string_free (text, FALSE);
}

/* Seconds to gather a byte over an axis so placed, as the collectives do it: (N-1)/N of it comes in over all links at once,
 * two a chip where the factor closes a wrapped axis, one on a line; strided neighbours cross the links between. */
static double
gather_s_per_byte (const PodTopology *topology, const PodAxisPlacement *placement)
{
  const double link_rate = topology->chip->ici_bytes_per_s.nominal;
  double rate = 0;
  double n = 1;

  for (unsigned f = 0; f < placement->n_factors; f++)
    {
      const PodGroupFactor *factor = &placement->factors[f];
      bool is_ring = factor->dim < POD_DIM_DCN && factor->stride * factor->size == topology->extent[factor->dim] && topology->wraps[factor->dim];

      if (factor->dim == POD_DIM_DCN)
        return 1 / topology->chip->nic_bytes_per_s.nominal;
      n *= factor->size;
      rate += (is_ring ? 2 : 1) * link_rate / (factor->dim == POD_DIM_CORE ? 1 : factor->stride);
    }
  return rate > 0 ? (n - 1) / n / rate : 0;
}

/* Seconds for each byte that a rank sends by all-to-all over the ranks of ep: the axis that is cut worst. Of n places on a line n/4
 * of what one sends crosses the middle, on a ring half of that; lists without factors are as lines of all. */
static double
exchange_s_per_byte (const PodTopology *topology, const PodLayout *layout, const PodAxisPlacement placement[POD_N_AXES])
{
  const double link_rate = topology->chip->ici_bytes_per_s.nominal;
  PodGroupFactor factors[POD_MAX_FACTORS];
  const unsigned n = pod_placement_factors (placement, layout->etp, layout->ep, factors);
  double worst = n == 0 && layout->ep > 1 ? layout->ep / 4.0 / link_rate : 0;

  for (unsigned f = 0; f < n; f++)
    {
      const PodGroupFactor *factor = &factors[f];
      bool is_ring = factor->dim < POD_DIM_DCN && factor->stride * factor->size == topology->extent[factor->dim] && topology->wraps[factor->dim];

      if (factor->dim == POD_DIM_DCN)
        return 1 / topology->chip->nic_bytes_per_s.nominal;
      if (factor->dim < POD_DIM_DCN)
        worst = MAX (worst, (double) factor->size * factor->stride / (is_ring ? 8 : 4) / link_rate);
    }
  return worst;
}

/* Predicted communication that shows: tensor and pipeline parallelism stand on the critical path, gradients and weights
 * hide behind compute as far as they can (and break ties). */
static double
predicted_s (const PodTopology *topology, const PodLayout *layout, const PodTraffic *traffic, const PodAxisPlacement placement[POD_N_AXES])
{
  double shown = traffic->ep_bytes > 0 ? traffic->ep_bytes * exchange_s_per_byte (topology, layout, placement) : 0;
  double hidden = 0;

  for (unsigned a = 0; a < POD_N_AXES; a++)
    {
      double s = traffic->axis_bytes[a] * gather_s_per_byte (topology, &placement[a]);

      if (a == POD_AXIS_DP || a == POD_AXIS_FSDP)
        hidden += s;
      else
        shown += s;
    }
  return shown + MAX (0, hidden - traffic->compute_s) + 1e-3 * hidden;
}

static uint32_t
gcd (uint32_t a, uint32_t b)
{
  while (b != 0)
    {
      uint32_t rest = a % b;

      a = b;
      b = rest;
    }
  return a;
}

/* An axis of which a group of experts takes a part: that part is a block of its own, at most most[] of the first physical axes. */
typedef struct
{
  PodAxis axis;
  uint32_t degree; /* 1: none */
  uint32_t most[2];
} ExpertBlock;

/* What a group of experts takes of the axis in which it ends. */
static ExpertBlock
find_expert_block (const PodLayout *layout)
{
  uint32_t rest = layout->ep * layout->etp;

  for (unsigned k = 0; k < POD_N_AXES && rest > 1; k++)
    {
      const uint32_t degree = layout->degree[pod_rank_numbering[k]];

      if (rest % degree == 0)
        rest /= degree;
      else
        return (ExpertBlock){ .axis = pod_rank_numbering[k], .degree = degree % rest == 0 ? rest : 1 };
    }
  return (ExpertBlock){ .degree = 1 };
}

/* Takes @degree places for an axis of the physical axes in the given order, of the first two at most most[]. */
static bool
take_places (Space *space, PodAxisPlacement *placement, uint32_t degree, const unsigned dims[N_DIMS], const uint32_t most[2])
{
  for (unsigned d = 0; d < N_DIMS && degree > 1; d++)
    {
      uint32_t size = gcd (degree, space->extent[dims[d]] / space->taken[dims[d]]);

      if (d < 2 && most[d] > 0)
        size = gcd (size, most[d]);
      if (size > 1 && placement->n_factors == POD_MAX_FACTORS)
        return false;
      add_factor (space, placement, dims[d], size);
      degree /= size;
    }
  return degree == 1;
}

/* Axes from the innermost out take what they can of the physical axes in the given order; the innermost takes at most
 * @first of the first (a block rather than a line). */
static bool
fill_greedily (const PodTopology *topology, const PodLayout *layout, const PodAxis axes[], unsigned n_axes, const unsigned dims[N_DIMS],
               uint32_t first, const ExpertBlock *block, PodAxisPlacement out[POD_N_AXES])
{
  Space space;

  memset (out, 0, POD_N_AXES * sizeof *out);
  space_init (&space, topology);
  for (unsigned i = 0; i < n_axes; i++)
    {
      const uint32_t most[2] = { i == 0 ? first : 0, 0 };
      uint32_t degree = layout->degree[axes[i]];

      if (block->degree > 1 && block->axis == axes[i])
        {
          if (!take_places (&space, &out[axes[i]], block->degree, dims, block->most))
            return false;
          if (!take_places (&space, &out[axes[i]], degree / block->degree, dims, (const uint32_t[2]){ 0, 0 }))
            return false;
        }
      else if (!take_places (&space, &out[axes[i]], degree, dims, most))
        return false;
    }
  return true;
}

/* The next permutation in lexical order; false after the last. */
static bool
next_permutation (unsigned *items, unsigned n)
{
  unsigned i = n < 2 ? 0 : n - 1;
  unsigned k = n;

  while (i > 0 && items[i - 1] >= items[i])
    i--;
  if (i == 0)
    return false;
  while (items[k - 1] <= items[i - 1])
    k--;
  { unsigned t = items[i - 1]; items[i - 1] = items[k - 1]; items[k - 1] = t; }
  for (k = n; i < k - 1; i++, k--)
    { unsigned t = items[i]; items[i] = items[k - 1]; items[k - 1] = t; }
  return true;
}

/* The best so far of a search. */
typedef struct
{
  const PodTopology *topology;
  const PodLayout *layout;
  const PodTraffic *traffic;
  PodAxisPlacement *best;
  double best_s; /* < 0: none yet */
} Choice;

/* Tries one order of axes on one order of physical axes, as lines and as blocks of the innermost. */
static void
try_order (Choice *choice, const PodAxis axes[], unsigned n_axes, const unsigned dims[N_DIMS], const ExpertBlock *block)
{
  const uint32_t degree = choice->layout->degree[axes[0]];

  for (uint32_t first = degree; first >= 1; first--)
    {
      PodAxisPlacement candidate[POD_N_AXES];
      double s;

      if (degree % first != 0 || (first != degree && degree > 64) /* blocks are for the few ranks of tp */
          || !fill_greedily (choice->topology, choice->layout, axes, n_axes, dims, first, block, candidate))
        continue;
      s = predicted_s (choice->topology, choice->layout, choice->traffic, candidate);
      if (choice->best_s < 0 || s < choice->best_s * (1 - 1e-9))
        {
          choice->best_s = s;
          memcpy (choice->best, candidate, sizeof candidate);
        }
    }
}

/* Tries the same with groups of experts as blocks of all shapes within two physical axes (the rest goes to the others). */
static void
try_blocks (Choice *choice, const PodAxis axes[], unsigned n_axes, const unsigned dims[N_DIMS])
{
  ExpertBlock block = find_expert_block (choice->layout);

  if (choice->traffic->ep_bytes <= 0 || block.degree == 1)
    return;
  for (block.most[0] = block.degree; block.most[0] >= 1; block.most[0]--)
    for (block.most[1] = block.degree / block.most[0]; block.most[1] >= 1; block.most[1]--)
      if (block.degree % (block.most[0] * block.most[1]) == 0)
        try_order (choice, axes, n_axes, dims, &block);
}

bool
pod_placement_choose (const PodTopology *topology, const PodLayout *layout, const PodTraffic *traffic, PodAxisPlacement out[POD_N_AXES],
                      GError **error)
{
  static const ExpertBlock no_block = { .degree = 1 };
  Choice choice = { .topology = topology, .layout = layout, .traffic = traffic, .best = out, .best_s = -1 };
  PodAxis used[POD_N_AXES];
  unsigned n_used = 0;
  unsigned axis_order[POD_N_AXES];

  for (unsigned i = 0; i < POD_N_AXES; i++)
    if (layout->degree[pod_rank_numbering[i]] > 1)
      used[n_used++] = pod_rank_numbering[i];
  memset (out, 0, POD_N_AXES * sizeof *out);
  if (n_used == 0)
    return true;
  for (unsigned i = 0; i < n_used; i++)
    axis_order[i] = i;
  do
    {
      unsigned dims[N_DIMS] = { 0, 1, 2, 3, 4 };
      PodAxis axes[POD_N_AXES];

      for (unsigned i = 0; i < n_used; i++)
        axes[i] = used[axis_order[i]];
      do
        {
          try_order (&choice, axes, n_used, dims, &no_block);
          try_blocks (&choice, axes, n_used, dims);
        }
      while (next_permutation (dims, N_DIMS));
    }
  while (next_permutation (axis_order, n_used));
  if (choice.best_s < 0)
    {
      g_autofree char *text = pod_layout_to_text (layout);

      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--layout: %s cannot be cut out of %s: no split of its axes has these degrees as factors", text, topology->name);
      return false;
    }
  return true;
}

bool
pod_order_parse (const char *order, PodAxis out[POD_N_AXES], PodEpPlace *out_ep, GError **error)
{
  g_auto (GStrv) words = g_strsplit (order != NULL ? order : "tp,cp,fsdp,dp,pp", ",", -1);
  bool is_given[POD_N_AXES] = { false };
  unsigned n = 0;

  *out_ep = POD_EP_INSIDE;
  for (unsigned i = 0; words[i] != NULL; i++)
    {
      const char *word = g_strstrip (words[i]);
      PodAxis axis;

      if (strcmp (word, "ep") == 0)
        {
          *out_ep = is_given[POD_AXIS_DP] ? POD_EP_OUTSIDE : is_given[POD_AXIS_FSDP] ? POD_EP_BETWEEN : POD_EP_INSIDE;
          continue;
        }
      if (!pod_axis_parse (word, &axis) || is_given[axis])
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--order: '%s': name each of tp, cp, fsdp, ep, dp, pp at most once, innermost first", word);
          return false;
        }
      if (axis == POD_AXIS_DP && !is_given[POD_AXIS_FSDP] && strstr (order != NULL ? order : "", "fsdp") == NULL)
        {
          out[n++] = POD_AXIS_FSDP;
          is_given[POD_AXIS_FSDP] = true;
        }
      out[n++] = axis;
      is_given[axis] = true;
    }
  if (order != NULL && n == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--order: '%s' names no axis, expected such as tp,cp,fsdp,dp,pp", order);
      return false;
    }
  for (unsigned a = 0; a < POD_N_AXES; a++)
    if (!is_given[a])
      out[n++] = a;
  return true;
}

char *
pod_order_to_text (const PodAxis order[POD_N_AXES], const PodEpPlace *ep)
{
  GString *text = g_string_new (NULL);
  bool is_told = ep == NULL;
  unsigned n_behind = 0; /* of fsdp and dp */

  for (unsigned i = 0; i < POD_N_AXES; i++)
    {
      const bool is_data = order[i] == POD_AXIS_FSDP || order[i] == POD_AXIS_DP;

      if (!is_told && (is_data || order[i] == POD_AXIS_PP) && n_behind == *ep)
        {
          g_string_append (text, text->len > 0 ? ",ep" : "ep");
          is_told = true;
        }
      n_behind += is_data;
      g_string_append_printf (text, "%s%s", text->len > 0 ? "," : "", pod_axis_name (order[i]));
    }
  if (!is_told)
    g_string_append (text, ",ep");
  return g_string_free (text, FALSE);
}
