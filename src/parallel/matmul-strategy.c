#include "parallel/matmul-strategy-private.h"

#include <string.h>

#include "base/error.h"

const char *
pod_step_name (PodStepKind kind)
{
  static const char *const names[] = {
    [POD_STEP_SLICE] = "slice",           [POD_STEP_ALL_GATHER] = "all_gather",
    [POD_STEP_ALL_TO_ALL] = "all_to_all", [POD_STEP_REDUCE_SCATTER] = "reduce_scatter",
    [POD_STEP_ALL_REDUCE] = "all_reduce", [POD_STEP_PERMUTE] = "collective_permute",
  };

  g_return_val_if_fail ((unsigned) kind < G_N_ELEMENTS (names), NULL);
  return names[kind];
}

const PodArray *
pod_matmul_operand (const PodMatmulStrategies *strategies, PodOperand operand)
{
  const PodEinsum *einsum = strategies->einsum;

  return operand == POD_OPERAND_LHS   ? &einsum->lhs
         : operand == POD_OPERAND_RHS ? &einsum->rhs
                                      : &einsum->out;
}

/* ---- one strategy ---- */

static int
find_loop (const PodMatmulStrategies *all, char letter)
{
  for (unsigned i = 0; i < all->n_loops; i++)
    if (all->loop[i] == letter)
      return (int) i;
  return -1;
}

static bool
is_in (const PodMatmulStrategies *all, PodOperand operand, unsigned loop)
{
  return pod_array_find (pod_matmul_operand (all, operand), all->loop[loop]) >= 0;
}

static bool
is_summed (const PodMatmulStrategies *all, unsigned loop)
{
  return !is_in (all, POD_OPERAND_OUT, loop);
}

/* The axes of a loop in the order in which @array has them, then the others in that of the mesh. */
static PodAxisList
order_as (const PodMatmulStrategies *all, const PodMatmulStrategy *strategy, unsigned loop,
          PodOperand operand)
{
  const PodArray *array = pod_matmul_operand (all, operand);
  int d = pod_array_find (array, all->loop[loop]);
  PodAxisList list = { .n = 0 };
  unsigned taken = 0;

  for (unsigned i = 0; d >= 0 && i < array->axes[d].n; i++)
    {
      unsigned axis = array->axes[d].axis[i];

      if (strategy->loop_of_axis[axis] == loop)
        {
          pod_axis_list_push (&list, axis);
          taken |= 1U << axis;
        }
    }
  for (unsigned axis = 0; axis < all->mesh->n_axes; axis++)
    if (strategy->loop_of_axis[axis] == loop && !(taken >> axis & 1))
      pod_axis_list_push (&list, axis);
  return list;
}

/* The order that leaves most of the arrays as they are. */
static PodAxisList
choose_order (const PodMatmulStrategies *all, const PodMatmulStrategy *strategy, unsigned loop)
{
  PodAxisList best = { .n = 0 };
  int best_score = -1;

  for (PodOperand like = POD_OPERAND_LHS; like < POD_N_OPERANDS; like++)
    {
      PodAxisList list = order_as (all, strategy, loop, like);
      int score = 0;

      for (PodOperand operand = POD_OPERAND_LHS; operand < POD_N_OPERANDS; operand++)
        {
          const PodArray *array = pod_matmul_operand (all, operand);
          int d = pod_array_find (array, all->loop[loop]);
          PodAxisList lies;

          if (d < 0)
            continue;
          lies = pod_axis_list_without_single (&array->axes[d], all->mesh);
          score += (int) pod_axis_list_common (&list, &lies);
        }
      if (score > best_score)
        {
          best = list;
          best_score = score;
        }
    }
  return best;
}

/* Cuts the loops; false when one does not divide. */
static bool
cut_loops (PodMatmulStrategies *all, PodMatmulStrategy *strategy)
{
  for (unsigned loop = 0; loop < all->n_loops; loop++)
    {
      uint64_t n_parts = 1;

      strategy->cut[loop] = choose_order (all, strategy, loop);
      for (unsigned i = 0; i < strategy->cut[loop].n; i++)
        n_parts *= all->mesh->size[strategy->cut[loop].axis[i]];
      if (all->extent[loop] % n_parts != 0)
        {
          all->n_indivisible++;
          if (all->indivisible == NULL)
            all->indivisible = g_strdup_printf ("%c=%" G_GUINT64_FORMAT
                                                " does not divide over %" G_GUINT64_FORMAT " parts",
                                                all->loop[loop], all->extent[loop], n_parts);
          return false;
        }
      strategy->local[loop] = all->extent[loop] / n_parts;
    }
  return true;
}

/* An array cut as the loops are. */
static PodLie
lie_by_loops (const PodMatmulStrategies *all, const PodMatmulStrategy *strategy,
              const PodArray *array)
{
  PodLie lie = { .partial = 0 };

  for (unsigned d = 0; d < array->n_dims; d++)
    lie.cut[d] = strategy->cut[find_loop (all, array->dim[d])];
  return lie;
}

/* Moves one operand to where the loops want it; its gathered copy is workspace. */
static void
bring (const PodMatmulStrategies *all, PodMatmulStrategy *strategy, PodOperand operand)
{
  const PodArray *array = pod_matmul_operand (all, operand);
  PodReshard work = { .mesh = all->mesh,
                      .array = array,
                      .operand = operand,
                      .now = pod_lie_of (array, all->mesh),
                      .wanted = lie_by_loops (all, strategy, array),
                      .strategy = strategy };
  unsigned n_steps = strategy->n_steps;
  bool is_moved = false;

  strategy->argument_bytes += pod_lie_bytes (array, &work.now, all->mesh);
  pod_reshard (&work);
  for (unsigned s = n_steps; s < strategy->n_steps; s++)
    is_moved |= strategy->steps[s].kind != POD_STEP_SLICE;
  if (is_moved)
    strategy->workspace_bytes += pod_lie_bytes (array, &work.now, all->mesh);
}

/* Moves the product to where the result should be; false when it cannot stay unreduced as asked. */
static bool
deliver (const PodMatmulStrategies *all, PodMatmulStrategy *strategy)
{
  const PodArray *array = pod_matmul_operand (all, POD_OPERAND_OUT);
  PodReshard work = { .mesh = all->mesh,
                      .array = array,
                      .operand = POD_OPERAND_OUT,
                      .now = lie_by_loops (all, strategy, array),
                      .wanted = pod_lie_of (array, all->mesh),
                      .strategy = strategy };
  double product_bytes = pod_lie_bytes (array, &work.now, all->mesh);

  for (unsigned axis = 0; axis < all->mesh->n_axes; axis++)
    if (strategy->loop_of_axis[axis] != POD_NO_LOOP
        && is_summed (all, strategy->loop_of_axis[axis]))
      work.now.partial |= 1U << axis;
  if (work.wanted.partial & ~work.now.partial)
    return false;
  pod_reshard (&work);
  strategy->output_bytes = pod_lie_bytes (array, &work.wanted, all->mesh);
  /* an all-reduce works in place, and so does nothing at all */
  for (unsigned s = strategy->n_before; s < strategy->n_steps; s++)
    if (strategy->steps[s].kind != POD_STEP_ALL_REDUCE)
      {
        strategy->workspace_bytes += product_bytes;
        break;
      }
  return true;
}

static void
set_product (const PodMatmulStrategies *all, PodMatmulStrategy *strategy)
{
  strategy->batch = strategy->m = strategy->n = strategy->k = 1;
  for (unsigned loop = 0; loop < all->n_loops; loop++)
    {
      bool is_lhs = is_in (all, POD_OPERAND_LHS, loop), is_rhs = is_in (all, POD_OPERAND_RHS, loop);
      uint64_t *extent = is_summed (all, loop) ? &strategy->k
                         : is_lhs && is_rhs    ? &strategy->batch
                         : is_lhs              ? &strategy->m
                                               : &strategy->n;

      *extent *= strategy->local[loop];
    }
  strategy->flops = 2.0 * (double) strategy->batch * (double) strategy->m * (double) strategy->n
                    * (double) strategy->k;
}

/* Adds the strategy of these choices, unless it is not legal. */
static void
add_strategy (PodMatmulStrategies *all, const uint8_t *loop_of_axis)
{
  PodMatmulStrategy strategy = { .n_steps = 0 };

  memcpy (strategy.loop_of_axis, loop_of_axis, sizeof strategy.loop_of_axis);
  if (!cut_loops (all, &strategy))
    return;
  bring (all, &strategy, POD_OPERAND_LHS);
  bring (all, &strategy, POD_OPERAND_RHS);
  strategy.n_before = strategy.n_steps;
  if (!deliver (all, &strategy))
    return;
  set_product (all, &strategy);
  g_array_append_val (all->strategies, strategy);
}

/* ---- all of them ---- */

static void
list_loops (PodMatmulStrategies *all)
{
  for (PodOperand operand = POD_OPERAND_LHS; operand <= POD_OPERAND_RHS; operand++)
    {
      const PodArray *array = pod_matmul_operand (all, operand);

      for (unsigned d = 0; d < array->n_dims; d++)
        if (find_loop (all, array->dim[d]) < 0)
          {
            all->loop[all->n_loops] = array->dim[d];
            all->extent[all->n_loops++] = array->size[d];
          }
    }
}

/* Where the four cases leave each axis: what pod_sharded_matmul() gathers cuts nothing, what is
 * left of the operands cuts. */
static bool
choose_by_cases (const PodMatmulStrategies *all, uint8_t loop_of_axis[POD_MAX_MESH_AXES])
{
  PodSharding lhs = pod_array_sharding (pod_matmul_operand (all, POD_OPERAND_LHS));
  PodSharding rhs = pod_array_sharding (pod_matmul_operand (all, POD_OPERAND_RHS));
  PodSharding out = pod_array_sharding (pod_matmul_operand (all, POD_OPERAND_OUT));
  PodShardedMatmul derived;

  if (!pod_sharded_matmul (&lhs, &rhs, &out, &derived, NULL))
    return false;
  memset (loop_of_axis, POD_NO_LOOP, POD_MAX_MESH_AXES);
  for (unsigned axis = 0; axis < all->mesh->n_axes; axis++)
    {
      const unsigned bit = 1U << axis;

      for (unsigned d = 0; d < rhs.n_dims; d++)
        if (rhs.axes[d] & bit && !(derived.gather_rhs & bit) && all->mesh->size[axis] > 1)
          loop_of_axis[axis] = (uint8_t) find_loop (all, rhs.dim[d]);
      for (unsigned d = 0; d < lhs.n_dims; d++)
        if (lhs.axes[d] & bit && !(derived.gather_lhs & bit) && all->mesh->size[axis] > 1)
          loop_of_axis[axis] = (uint8_t) find_loop (all, lhs.dim[d]);
    }
  return true;
}

static void
find_by_cases (PodMatmulStrategies *all)
{
  uint8_t wanted[POD_MAX_MESH_AXES];

  all->by_cases = -1;
  if (!choose_by_cases (all, wanted))
    return;
  for (guint i = 0; i < all->strategies->len; i++)
    if (memcmp (g_array_index (all->strategies, PodMatmulStrategy, i).loop_of_axis, wanted,
                sizeof wanted)
        == 0)
      all->by_cases = (int) i;
}

/* The choices of one axis: from *out_first on, *out_n of them, where 0 is none and i is loop i - 1.
 */
static void
choices_of (const PodMatmulStrategies *all, const int *pinned, unsigned axis, unsigned *out_first,
            unsigned *out_n)
{
  *out_first = 0;
  *out_n = all->mesh->size[axis] > 1 ? all->n_loops + 1 : 1;
  if (pinned == NULL || pinned[axis] < 0 || all->mesh->size[axis] == 1)
    return;
  *out_first = pinned[axis] == POD_NO_LOOP ? 0 : (unsigned) pinned[axis] + 1;
  *out_n = 1;
}

static bool
enumerate (PodMatmulStrategies *all, const int *pinned, GError **error)
{
  unsigned first[POD_MAX_MESH_AXES], n[POD_MAX_MESH_AXES];
  uint64_t n_all = 1;

  for (unsigned axis = 0; axis < all->mesh->n_axes; axis++)
    {
      choices_of (all, pinned, axis, &first[axis], &n[axis]);
      n_all *= n[axis];
    }
  if (n_all > POD_MAX_STRATEGIES)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                   "%" G_GUINT64_FORMAT
                   " strategies are more than %d: pin some axes, --split %c=%c",
                   n_all, POD_MAX_STRATEGIES, all->mesh->name[0], all->loop[0]);
      return false;
    }
  for (uint64_t index = 0; index < n_all; index++)
    {
      uint8_t loop_of_axis[POD_MAX_MESH_AXES];
      uint64_t left = index;

      memset (loop_of_axis, POD_NO_LOOP, sizeof loop_of_axis);
      for (unsigned axis = all->mesh->n_axes; axis-- > 0;)
        {
          unsigned choice = first[axis] + (unsigned) (left % n[axis]);

          left /= n[axis];
          if (choice > 0)
            loop_of_axis[axis] = (uint8_t) (choice - 1);
        }
      add_strategy (all, loop_of_axis);
    }
  if (all->strategies->len > 0)
    return true;
  if (all->n_indivisible > 0)
    g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "no strategy is legal: %s",
                 all->indivisible);
  else
    g_set_error_literal (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                         "no strategy is legal: the result stays unreduced over an axis that cuts "
                         "no summed dimension");
  return false;
}

PodMatmulStrategies *
pod_matmul_strategies_new (const PodEinsum *einsum, const PodArrayMesh *mesh, const int *pinned,
                           GError **error)
{
  g_autoptr (PodMatmulStrategies) all = g_new0 (PodMatmulStrategies, 1);

  g_return_val_if_fail (einsum->is_matmul, NULL);
  all->einsum = einsum;
  all->mesh = mesh;
  all->strategies = g_array_new (FALSE, FALSE, sizeof (PodMatmulStrategy));
  list_loops (all);
  if (!enumerate (all, pinned, error))
    return NULL;
  find_by_cases (all);
  return g_steal_pointer (&all);
}

void
pod_matmul_strategies_free (PodMatmulStrategies *strategies)
{
  if (strategies == NULL)
    return;
  g_array_unref (strategies->strategies);
  g_free (strategies->indivisible);
  g_free (strategies);
}

/* ---- words ---- */

bool
pod_matmul_parse_split (const PodEinsum *einsum, const PodArrayMesh *mesh, const char *text,
                        int pinned[POD_MAX_MESH_AXES], GError **error)
{
  PodMatmulStrategies all = { .mesh = mesh, .einsum = einsum };
  g_auto (GStrv) words = g_strsplit (text, ",", -1);

  list_loops (&all);
  for (unsigned axis = 0; axis < POD_MAX_MESH_AXES; axis++)
    pinned[axis] = -1;
  if (*words == NULL)
    {
      g_set_error_literal (error, POD_ERROR, POD_ERROR_INVALID,
                           "expected AXIS=DIMENSION,…, got nothing");
      return false;
    }
  for (char **word = words; *word != NULL; word++)
    {
      const char *entry = g_strstrip (*word);
      int axis = *entry != '\0' && entry[1] == '=' ? pod_array_mesh_find (mesh, *entry) : -1;
      bool is_none = axis >= 0 && strcmp (entry + 2, "none") == 0;
      int loop
          = axis >= 0 && entry[2] != '\0' && entry[3] == '\0' ? find_loop (&all, entry[2]) : -1;

      if (axis < 0 || pinned[axis] >= 0 || (!is_none && loop < 0))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "expected AXIS=DIMENSION,… or AXIS=none, each axis of the mesh at most "
                       "once, dimensions of %.*s; got '%s'",
                       (int) all.n_loops, all.loop, entry);
          return false;
        }
      pinned[axis] = is_none ? POD_NO_LOOP : loop;
    }
  return true;
}

static int
cut_dim (const PodArray *array, unsigned axis)
{
  for (unsigned d = 0; d < array->n_dims; d++)
    for (unsigned i = 0; i < array->axes[d].n; i++)
      if (array->axes[d].axis[i] == axis)
        return (int) d;
  return -1;
}

unsigned
pod_matmul_case (const PodMatmulStrategies *strategies, unsigned axis, char **out_why)
{
  const PodArray *lhs = pod_matmul_operand (strategies, POD_OPERAND_LHS);
  const PodArray *rhs = pod_matmul_operand (strategies, POD_OPERAND_RHS);
  const PodArray *out = pod_matmul_operand (strategies, POD_OPERAND_OUT);
  int l = cut_dim (lhs, axis), r = cut_dim (rhs, axis);
  char left = l >= 0 ? lhs->dim[l] : '\0', right = r >= 0 ? rhs->dim[r] : '\0';
  bool is_left_summed = l >= 0 && pod_array_find (out, left) < 0;
  bool is_right_summed = r >= 0 && pod_array_find (out, right) < 0;

  if (is_left_summed && is_right_summed && left == right)
    {
      *out_why = g_strdup_printf (
          "both operands cut %c, which is summed: each device has a part of every sum", left);
      return 3;
    }
  if (is_left_summed || is_right_summed)
    {
      const PodArray *cut = is_left_summed ? lhs : rhs, *other = is_left_summed ? rhs : lhs;

      *out_why = g_strdup_printf ("%s cuts %c, which is summed, and %s does not", cut->name,
                                  is_left_summed ? left : right, other->name);
      return 2;
    }
  if (l >= 0 && r >= 0 && left != right)
    {
      *out_why = g_strdup_printf (
          "%s cuts %c and %s cuts %c: the result cannot be cut on both by one axis", lhs->name,
          left, rhs->name, right);
      return 4;
    }
  if (l >= 0 || r >= 0)
    *out_why = g_strdup_printf ("%c is cut, which is not summed", l >= 0 ? left : right);
  else
    *out_why = g_strdup ("it cuts neither operand");
  return 1;
}

char *
pod_matmul_strategy_name (const PodMatmulStrategies *strategies, const PodMatmulStrategy *strategy)
{
  GString *text = g_string_new (NULL);

  for (unsigned loop = 0; loop < strategies->n_loops; loop++)
    for (unsigned i = 0; i < strategy->cut[loop].n; i++)
      {
        if (i == 0)
          g_string_append_printf (text, "%s%c_", text->len > 0 ? " " : "", strategies->loop[loop]);
        g_string_append_c (text, strategies->mesh->name[strategy->cut[loop].axis[i]]);
      }
  if (text->len == 0)
    g_string_append (text, "replicated");
  return g_string_free (text, FALSE);
}
