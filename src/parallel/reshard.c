#include "parallel/matmul-strategy-private.h"

/* ---- how an array lies ---- */

static bool
is_cut_by (const PodLie *lie, unsigned n_dims, unsigned axis)
{
  for (unsigned d = 0; d < n_dims; d++)
    for (unsigned i = 0; i < lie->cut[d].n; i++)
      if (lie->cut[d].axis[i] == axis)
        return true;
  return false;
}

unsigned
pod_axis_list_common (const PodAxisList *a, const PodAxisList *b)
{
  unsigned n = 0;

  while (n < a->n && n < b->n && a->axis[n] == b->axis[n])
    n++;
  return n;
}

void
pod_axis_list_push (PodAxisList *list, unsigned axis)
{
  list->axis[list->n++] = (uint8_t) axis;
}

PodAxisList
pod_axis_list_without_single (const PodAxisList *list, const PodArrayMesh *mesh)
{
  PodAxisList out = { .n = 0 };

  for (unsigned i = 0; i < list->n; i++)
    if (mesh->size[list->axis[i]] > 1)
      pod_axis_list_push (&out, list->axis[i]);
  return out;
}

PodLie
pod_lie_of (const PodArray *array, const PodArrayMesh *mesh)
{
  PodLie lie = { .partial = 0 };

  for (unsigned d = 0; d < array->n_dims; d++)
    lie.cut[d] = pod_axis_list_without_single (&array->axes[d], mesh);
  for (unsigned a = 0; a < mesh->n_axes; a++)
    if (mesh->size[a] > 1)
      lie.partial |= array->unreduced & 1U << a;
  return lie;
}

double
pod_lie_bytes (const PodArray *array, const PodLie *lie, const PodArrayMesh *mesh)
{
  double bytes = pod_array_bytes (array);

  for (unsigned d = 0; d < array->n_dims; d++)
    for (unsigned i = 0; i < lie->cut[d].n; i++)
      bytes /= mesh->size[lie->cut[d].axis[i]];
  return bytes;
}

/* ---- from one way to lie to another ---- */

/* Adds to the last step where it is of the same kind (and moves between the same dimensions), else
 * begins one. */
static void
emit (PodReshard *reshard, PodStepKind kind, PodAxisMove move)
{
  PodMatmulStrategy *strategy = reshard->strategy;
  PodShardStep *last = strategy->n_steps > 0 ? &strategy->steps[strategy->n_steps - 1] : NULL;
  double bytes = pod_lie_bytes (reshard->array, &reshard->now, reshard->mesh);
  bool is_same = last != NULL && last->operand == reshard->operand && last->kind == kind
                 && last->n_moves < POD_MAX_MESH_AXES && !(last->axes >> move.axis & 1)
                 && (kind != POD_STEP_ALL_TO_ALL
                     || (last->moves[0].from == move.from && last->moves[0].to == move.to));

  if (!is_same)
    {
      g_assert (strategy->n_steps < POD_MAX_STEPS);
      last = &strategy->steps[strategy->n_steps++];
      *last = (PodShardStep){ .kind = kind, .operand = reshard->operand, .payload_bytes = bytes };
    }
  if (kind == POD_STEP_ALL_GATHER)
    last->payload_bytes = bytes * reshard->mesh->size[move.axis];
  last->axes |= 1U << move.axis;
  last->moves[last->n_moves++] = move;
  if (move.from >= 0)
    reshard->now.cut[move.from].n--;
  if (move.to >= 0)
    pod_axis_list_push (&reshard->now.cut[move.to], move.axis);
  reshard->now.partial &= ~(1U << move.axis);
}

/* The axis that dimension @d lacks next, or -1; it can be added only when all before it is as
 * wanted. */
static int
next_wanted (const PodReshard *reshard, unsigned d)
{
  const PodAxisList *now = &reshard->now.cut[d], *wanted = &reshard->wanted.cut[d];

  return now->n < wanted->n && pod_axis_list_common (now, wanted) == now->n ? wanted->axis[now->n]
                                                                            : -1;
}

/* Slices, then reduce-scatters: both make the array smaller. */
static bool
cut_further (PodReshard *reshard, bool is_reduction)
{
  for (unsigned d = 0; d < reshard->array->n_dims; d++)
    {
      int axis = next_wanted (reshard, d);

      if (axis < 0 || is_reduction != (reshard->now.partial >> axis & 1)
          || is_cut_by (&reshard->now, reshard->array->n_dims, (unsigned) axis))
        continue;
      emit (reshard, is_reduction ? POD_STEP_REDUCE_SCATTER : POD_STEP_SLICE,
            (PodAxisMove){ .axis = (uint8_t) axis, .from = -1, .to = (int8_t) d });
      return true;
    }
  return false;
}

/* Sums over what the array will be whole along. */
static bool
reduce (PodReshard *reshard)
{
  for (unsigned axis = 0; axis < reshard->mesh->n_axes; axis++)
    if ((reshard->now.partial & ~reshard->wanted.partial) >> axis & 1
        && !is_cut_by (&reshard->wanted, reshard->array->n_dims, axis))
      {
        emit (reshard, POD_STEP_ALL_REDUCE,
              (PodAxisMove){ .axis = (uint8_t) axis, .from = -1, .to = -1 });
        return true;
      }
  return false;
}

/* The innermost axis of dimension @d when it has no business there, or -1. */
static int
innermost_alien (const PodReshard *reshard, unsigned d)
{
  const PodAxisList *now = &reshard->now.cut[d];

  return pod_axis_list_common (now, &reshard->wanted.cut[d]) < now->n ? now->axis[now->n - 1] : -1;
}

static bool
exchange (PodReshard *reshard)
{
  for (unsigned from = 0; from < reshard->array->n_dims; from++)
    for (unsigned to = 0; to < reshard->array->n_dims; to++)
      {
        int axis = innermost_alien (reshard, from);

        if (axis < 0 || from == to || next_wanted (reshard, to) != axis)
          continue;
        emit (reshard, POD_STEP_ALL_TO_ALL,
              (PodAxisMove){ .axis = (uint8_t) axis, .from = (int8_t) from, .to = (int8_t) to });
        return true;
      }
  return false;
}

static bool
has_axis (const PodAxisList *list, unsigned axis)
{
  for (unsigned i = 0; i < list->n; i++)
    if (list->axis[i] == axis)
      return true;
  return false;
}

/* Those that dimension @d keeps, outermost as wanted, as far as they are there; then the others. */
static PodAxisList
kept_first (const PodReshard *reshard, unsigned d)
{
  const PodAxisList *now = &reshard->now.cut[d], *wanted = &reshard->wanted.cut[d];
  PodAxisList out = { .n = 0 };

  while (out.n < wanted->n && has_axis (now, wanted->axis[out.n]))
    pod_axis_list_push (&out, wanted->axis[out.n]);
  for (unsigned i = 0; i < now->n; i++)
    if (!has_axis (&out, now->axis[i]))
      pod_axis_list_push (&out, now->axis[i]);
  return out;
}

/* An axis that leaves but cuts outside one that stays, or stays in the wrong order: each device sends
 * its part to the one that has its place in the new order, and what leaves is innermost then. Where they are too many, gathers
 * do it. */
static bool
reorder (PodReshard *reshard)
{
  PodMatmulStrategy *strategy = reshard->strategy;

  for (unsigned d = 0; d < reshard->array->n_dims; d++)
    {
      PodAxisList *now = &reshard->now.cut[d], out = kept_first (reshard, d);
      unsigned n_same = pod_axis_list_common (now, &out);
      PodShardStep step = { .kind = POD_STEP_PERMUTE, .operand = reshard->operand };

      for (unsigned i = n_same; i < now->n; i++)
        step.axes |= 1U << out.axis[i];
      if (n_same == now->n || pod_array_mesh_size (reshard->mesh, step.axes) > POD_MAX_PERMUTED)
        continue;
      g_assert (strategy->n_steps < POD_MAX_STEPS);
      step.payload_bytes = pod_lie_bytes (reshard->array, &reshard->now, reshard->mesh);
      for (unsigned i = n_same; i < now->n; i++)
        {
          step.before[step.n_moves] = now->axis[i];
          step.moves[step.n_moves++]
              = (PodAxisMove){ .axis = out.axis[i], .from = (int8_t) d, .to = (int8_t) d };
        }
      strategy->steps[strategy->n_steps++] = step;
      *now = out;
      return true;
    }
  return false;
}

/* Those that leave for good first. The others stand in each other's way and come back by a slice. */
static bool
gather (PodReshard *reshard)
{
  for (unsigned pass = 0; pass < 2; pass++)
    for (unsigned d = 0; d < reshard->array->n_dims; d++)
      {
        int axis = innermost_alien (reshard, d);

        if (axis < 0
            || (pass == 0 && is_cut_by (&reshard->wanted, reshard->array->n_dims, (unsigned) axis)))
          continue;
        emit (reshard, POD_STEP_ALL_GATHER,
              (PodAxisMove){ .axis = (uint8_t) axis, .from = (int8_t) d, .to = -1 });
        return true;
      }
  return false;
}

/* Smaller first, larger last. Ends: a gather takes away what stands beyond the common outer part,
 * after which only cuts are left. */
void
pod_reshard (PodReshard *reshard)
{
  while (cut_further (reshard, false) || cut_further (reshard, true) || reduce (reshard)
         || exchange (reshard) || reorder (reshard) || gather (reshard))
    ;
}
