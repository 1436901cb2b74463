#include "exec/matmul-price.h"

#include <math.h>

#include "base/error.h"
#include "base/units.h"

static const double q32_one = 4294967296.0;

/* A collective that several strategies share. */
typedef struct
{
  double time_s;
  double rate_s;
  double contention_ratio;
  unsigned n_steps;
  char *algorithm; /* (owned) */
  char *explain;   /* (owned) */
} Quote;

typedef struct
{
  const PodMatmulStrategies *strategies;
  const PodArrayMesh *mesh;
  PodFidelity fidelity;
  PodDtype dtype;
  const PodLibrary *library; /* (nullable) */
  const char *algorithm;     /* (nullable) */
  GHashTable *quotes; /* (element-type utf8 Quote); looked up, never iterated */
} Pricer;

static void
quote_free (void *data)
{
  Quote *quote = data;

  g_free (quote->algorithm);
  g_free (quote->explain);
  g_free (quote);
}

static void
step_free (void *data)
{
  PodPricedStep *step = data;

  g_free (step->algorithm);
  g_free (step->explain);
  g_free (step);
}

void
pod_priced_matmul_free (PodPricedMatmul *priced)
{
  if (priced == NULL)
    return;
  g_ptr_array_unref (priced->steps);
  g_free (priced);
}

static void
priced_free (void *data)
{
  pod_priced_matmul_free (data);
}

/* ---- one collective ---- */

static PodCollectiveKind
kind_of (PodStepKind kind)
{
  switch (kind)
    {
    case POD_STEP_ALL_GATHER:
      return POD_ALL_GATHER;
    case POD_STEP_REDUCE_SCATTER:
      return POD_REDUCE_SCATTER;
    case POD_STEP_ALL_REDUCE:
      return POD_ALL_REDUCE;
    case POD_STEP_PERMUTE:
      return POD_PERMUTE;
    case POD_STEP_SLICE: /* never asked */
    case POD_STEP_ALL_TO_ALL:
    default:
      return POD_ALL_TO_ALL;
    }
}

/* Neighbours along whole axes, or parts of them that lie side by side, use links of their own. */
static bool
has_own_links (const PodGroup *group)
{
  for (unsigned f = 0; f < group->n_factors; f++)
    if (group->factors[f].dim >= POD_DIM_DCN || group->factors[f].stride > 1)
      return false;
  return group->n_factors > 0;
}

/* Seconds that the fullest link needs for a byte of payload. */
static double
slowest_s (const Pricer *pricer, const PodPlan *plan, const double *loads)
{
  double slowest = 0;

  for (uint32_t i = 0; i < plan->n_entries; i++)
    {
      uint32_t link = plan->entries[i].link;
      double load = loads != NULL
                        ? loads[link]
                        : (double) plan->entries[i].share_q32 / q32_one * plan->busiest_ratio;

      slowest
          = MAX (slowest,
                 load / pod_collective_link_rate (pricer->mesh->topology, pricer->fidelity, link));
    }
  return slowest;
}

/* How much fuller the fullest link of @plan, of group 0, is when all groups do the same at once. */
static bool
contention (const Pricer *pricer, const PodPlanQuery *query, unsigned axes, const PodPlan *plan,
            double *out, GError **error)
{
  const PodArrayMesh *mesh = pricer->mesh;
  const uint32_t n_groups = pod_array_mesh_n_devices (mesh) / query->group->n_devices;
  g_autofree double *loads = NULL;
  double alone;

  *out = 1;
  if (n_groups == 1 || plan->n_entries == 0 || has_own_links (query->group))
    return true;
  loads = g_new0 (double, mesh->topology->n_links);
  for (uint32_t index = 0; index < n_groups; index++)
    {
      g_auto (PodArrayGroup) group = { .devices = NULL };
      g_autoptr (PodPlan) other = NULL;
      PodPlanQuery same = *query;

      pod_array_mesh_group (mesh, axes, index, &group);
      same.group = &group.group;
      same.algorithm = plan->algorithm;
      same.library = NULL; /* links alone */
      other = pod_collective_plan_query (&same, error);
      if (other == NULL)
        return false;
      for (uint32_t i = 0; i < other->n_entries; i++)
        loads[other->entries[i].link]
            += (double) other->entries[i].share_q32 / q32_one * other->busiest_ratio;
    }
  alone = slowest_s (pricer, plan, NULL);
  if (alone > 0)
    *out = MAX (1, slowest_s (pricer, plan, loads) / alone);
  return true;
}

/* The device of a group that has @block of a dimension which @axes cut in this order, the outermost
 * first; coordinates off them are 0. */
static uint32_t
holder_of (const PodArrayMesh *mesh, const uint8_t *axes, unsigned n, uint32_t block)
{
  g_auto (PodArrayGroup) one = { .devices = NULL };
  uint32_t coordinate[POD_MAX_MESH_AXES] = { 0 }, index = 0;

  for (unsigned i = n; i-- > 0; block /= mesh->size[axes[i]])
    coordinate[axes[i]] = block % mesh->size[axes[i]];
  for (unsigned a = mesh->n_axes; a-- > 0;)
    index = index * mesh->size[a] + coordinate[a];
  pod_array_mesh_group (mesh, 0, index, &one);
  return one.devices[0];
}

static uint32_t
position_of (const PodGroup *group, uint32_t device)
{
  uint32_t i = 0;

  while (group->devices[i] != device)
    i++;
  return i;
}

/* By the algorithm that was asked for where it can do it, else by the cheapest. */
static PodPlan *
plan_step (const Pricer *pricer, const PodPlanQuery *query, GError **error)
{
  PodPlanQuery asked = *query;
  PodPlan *plan;

  asked.algorithm = pricer->algorithm;
  plan = pricer->algorithm != NULL ? pod_collective_plan_query (&asked, NULL) : NULL;
  return plan != NULL ? plan : pod_collective_plan_query (query, error);
}

/* A permutation is an all-to-all in which each device has one receiver: whoever the part that it
 * holds belongs to afterwards. */
static double *
permutation_shares (const PodArrayMesh *mesh, const PodShardStep *step, const PodGroup *group)
{
  size_t n = group->n_devices;
  double *shares = g_new0 (double, n *n);
  uint8_t after[POD_MAX_MESH_AXES];

  for (unsigned i = 0; i < step->n_moves; i++)
    after[i] = step->moves[i].axis;
  for (uint32_t block = 0; block < group->n_devices; block++)
    {
      uint32_t from = position_of (group, holder_of (mesh, step->before, step->n_moves, block));
      uint32_t to = position_of (group, holder_of (mesh, after, step->n_moves, block));

      shares[from * n + to] = 1;
    }
  return shares;
}

static Quote *
quote_new (const Pricer *pricer, const PodShardStep *step, uint64_t payload_bytes, GError **error)
{
  const PodTopology *topology = pricer->mesh->topology;
  g_auto (PodArrayGroup) group = { .devices = NULL };
  g_autoptr (PodPlan) plan = NULL;
  PodPlanQuery query = {
    .topology = topology,
    .fidelity = pricer->fidelity,
    .kind = kind_of (step->kind),
    .dtype = pod_matmul_operand (pricer->strategies, step->operand)->dtype,
    .payload_bytes = payload_bytes,
    .library = pricer->library,
  };
  PodTrafficMatrix matrix = { .n = 0 };
  g_autofree double *shares = NULL;
  double ratio, latency_s, alone_s;
  Quote *quote;

  pod_array_mesh_group (pricer->mesh, step->axes, 0, &group);
  query.group = &group.group;
  if (step->kind == POD_STEP_PERMUTE)
    {
      shares = permutation_shares (pricer->mesh, step, &group.group);
      matrix = (PodTrafficMatrix){ group.group.n_devices, shares };
      query.kind = POD_ALL_TO_ALL;
      query.traffic = &matrix;
    }
  plan = plan_step (pricer, &query, error);
  if (plan == NULL || !contention (pricer, &query, step->axes, plan, &ratio, error))
    return NULL;
  quote = g_new0 (Quote, 1);
  quote->contention_ratio = ratio;
  quote->n_steps = plan->n_steps;
  quote->algorithm = g_strdup (plan->algorithm);
  quote->explain = g_strdup (plan->explain);
  alone_s = pod_plan_time (topology, pricer->fidelity, plan, payload_bytes);
  if (pricer->fidelity == POD_FIDELITY_BOOK)
    {
      quote->rate_s = (double) payload_bytes * plan->book_s_per_byte * ratio;
      quote->time_s = MAX (quote->rate_s, plan->book_latency_s);
      return quote;
    }
  latency_s = (double) plan->latency_ps * 1e-12;
  quote->rate_s = (alone_s - latency_s) * ratio;
  quote->time_s = latency_s + quote->rate_s;
  return quote;
}

/* What a quote depends on: of a permutation also both orders. */
static char *
quote_key (const PodShardStep *step, uint64_t payload_bytes)
{
  GString *key = g_string_new (NULL);

  g_string_printf (key, "%d %u %d %" G_GUINT64_FORMAT, (int) step->kind, step->axes,
                   (int) step->operand, payload_bytes);
  for (unsigned i = 0; i < step->n_moves && step->kind == POD_STEP_PERMUTE; i++)
    g_string_append_printf (key, " %u>%u", step->before[i], step->moves[i].axis);
  return g_string_free (key, FALSE);
}

static const Quote *
quote_of (const Pricer *pricer, const PodShardStep *step, GError **error)
{
  const uint64_t payload_bytes = (uint64_t) ceil (step->payload_bytes);
  g_autofree char *key = quote_key (step, payload_bytes);
  Quote *quote = g_hash_table_lookup (pricer->quotes, key);

  if (quote != NULL)
    return quote;
  quote = quote_new (pricer, step, payload_bytes, error);
  if (quote != NULL)
    g_hash_table_insert (pricer->quotes, g_steal_pointer (&key), quote);
  return quote;
}

/* ---- one strategy ---- */

/* In a permutation a device sends its part, or keeps it. */
static double
device_bytes (const PodShardStep *step, double n_ranks)
{
  if (step->kind == POD_STEP_PERMUTE)
    return step->payload_bytes;
  return (step->kind == POD_STEP_ALL_REDUCE ? 2 : 1) * step->payload_bytes * (n_ranks - 1) / n_ranks;
}

static PodPricedStep *
price_step (const Pricer *pricer, const PodShardStep *step, GError **error)
{
  const Quote *quote = quote_of (pricer, step, error);
  uint32_t n_ranks = pod_array_mesh_size (pricer->mesh, step->axes);
  PodPricedStep *priced;

  if (quote == NULL)
    return NULL;
  priced = g_new (PodPricedStep, 1);
  *priced = (PodPricedStep){
    .step = step,
    .kind = kind_of (step->kind),
    .n_ranks = n_ranks,
    .n_groups = pod_array_mesh_n_devices (pricer->mesh) / n_ranks,
    .payload_bytes = step->payload_bytes,
    .device_bytes = device_bytes (step, n_ranks),
    .time_s = quote->time_s,
    .rate_s = quote->rate_s,
    .contention_ratio = quote->contention_ratio,
    .n_steps = quote->n_steps,
    .algorithm = g_strdup (quote->algorithm),
    .explain = g_strdup (quote->explain),
  };
  return priced;
}

/* Arithmetic F, and of the communication a that does not grow with the loop and b that does:
 *   F s = a + b s,  so  s = a / (F - b)  times the size that the loop has. */
static double
critical_size (const Pricer *pricer, const PodPricedMatmul *priced, unsigned loop)
{
  double fixed_s = 0, growing_s = 0;

  for (guint i = 0; i < priced->steps->len; i++)
    {
      const PodPricedStep *step = g_ptr_array_index (priced->steps, i);
      const PodArray *array = pod_matmul_operand (pricer->strategies, step->step->operand);

      *(pod_array_find (array, pricer->strategies->loop[loop]) >= 0 ? &growing_s : &fixed_s)
          += step->rate_s;
    }
  if (fixed_s + growing_s == 0)
    return 0;
  if (priced->compute.flop_s <= growing_s)
    return INFINITY;
  return fixed_s / (priced->compute.flop_s - growing_s) * (double) pricer->strategies->extent[loop];
}

static void
set_overlap (const Pricer *pricer, PodPricedMatmul *priced)
{
  double compute_s = priced->compute.time_s;

  priced->n_pieces = 1;
  for (guint i = 0; i < priced->steps->len; i++)
    {
      const PodPricedStep *step = g_ptr_array_index (priced->steps, i);

      priced->n_pieces
          = priced->n_pieces == 1 ? step->n_ranks : MIN (priced->n_pieces, step->n_ranks);
    }
  if (priced->steps->len == 0)
    priced->overlapped_s = compute_s;
  else if (pricer->fidelity == POD_FIDELITY_BOOK)
    priced->overlapped_s = MAX (compute_s, priced->comm_s);
  else
    priced->overlapped_s = MAX (compute_s, priced->comm_s + compute_s / priced->n_pieces);
}

static PodPricedMatmul *
price (const Pricer *pricer, unsigned index, GError **error)
{
  const PodMatmulStrategies *all = pricer->strategies;
  const PodMatmulStrategy *strategy = &g_array_index (all->strategies, PodMatmulStrategy, index);
  g_autoptr (PodPricedMatmul) priced = g_new0 (PodPricedMatmul, 1);

  priced->strategy = strategy;
  priced->index = index;
  priced->steps = g_ptr_array_new_with_free_func (step_free);
  for (unsigned s = 0; s < strategy->n_steps; s++)
    {
      PodPricedStep *step;

      if (strategy->steps[s].kind == POD_STEP_SLICE)
        continue;
      step = price_step (pricer, &strategy->steps[s], error);
      if (step == NULL)
        return NULL;
      g_ptr_array_add (priced->steps, step);
      priced->comm_s += step->time_s;
    }
  priced->kernel = pod_kernel_matmul (strategy->batch, strategy->m, strategy->n, strategy->k,
                                      pricer->dtype, pod_dtype_bytes (all->einsum->lhs.dtype),
                                      pod_dtype_bytes (all->einsum->rhs.dtype),
                                      pod_dtype_bytes (all->einsum->out.dtype));
  pod_kernel_time (pricer->mesh->topology->chip, pricer->fidelity, &priced->kernel,
                   &priced->compute);
  priced->serial_s = priced->compute.time_s + priced->comm_s;
  set_overlap (pricer, priced);
  for (unsigned loop = 0; loop < all->n_loops; loop++)
    priced->critical[loop] = critical_size (pricer, priced, loop);
  return g_steal_pointer (&priced);
}

/* Sums in another order differ in the last digits: what is equal on the clock stays in the order of
 * the strategies. */
static int64_t
in_ps (double seconds)
{
  int64_t ps;

  return pod_seconds_to_ps (seconds, &ps) ? ps : INT64_MAX;
}

static int
compare_prices (const void *a, const void *b)
{
  const PodPricedMatmul *left = *(PodPricedMatmul *const *) a,
                        *right = *(PodPricedMatmul *const *) b;

  int64_t left_ps = in_ps (left->serial_s), right_ps = in_ps (right->serial_s);

  if (left_ps != right_ps)
    return left_ps < right_ps ? -1 : 1;
  return (left->index > right->index) - (left->index < right->index);
}

GPtrArray *
pod_matmul_price (const PodMatmulStrategies *strategies, const PodMatmulPricing *pricing,
                  GError **error)
{
  g_autoptr (GHashTable) quotes
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, quote_free);
  g_autoptr (GPtrArray) prices = g_ptr_array_new_with_free_func (priced_free);
  Pricer pricer = { .strategies = strategies,
                    .mesh = strategies->mesh,
                    .fidelity = pricing->fidelity,
                    .dtype = pricing->operand_dtype,
                    .library = pricing->library,
                    .algorithm = pricing->algorithm,
                    .quotes = quotes };

  g_return_val_if_fail (strategies->mesh->topology != NULL, NULL);
  for (guint i = 0; i < strategies->strategies->len; i++)
    {
      PodPricedMatmul *priced = price (&pricer, i, error);

      if (priced == NULL)
        return NULL;
      g_ptr_array_add (prices, priced);
    }
  g_ptr_array_sort (prices, compare_prices);
  return g_steal_pointer (&prices);
}
