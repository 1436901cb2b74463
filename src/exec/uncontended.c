#include "exec/uncontended.h"

#include <math.h>
#include <string.h>

#include "exec/passage-private.h"

/* The steps of all classes, a product of max-plus algebra each (passage-private.h). */

/* A class's way through a block. */
enum
{
  MAX_SENDS = 2, /* activations and gradients */
};

typedef struct
{
  const PodPassage *passage; /* classes for whom all takes the same have one in common */
  uint32_t receive_comm[MAX_SENDS];
  uint32_t send_comm[MAX_SENDS];
  double send_ps[MAX_SENDS];
} Visit;

typedef struct
{
  const PodExecRequest *request;
  const PodProgram *program;
  PodStepSoftware software;
  GArray *kernels;         /* PodKernelUse */
  double *wait_s;          /* by block */
  PodAlone *alone;
  uint32_t *rank_of_class; /* the lowest */
  PodVariables variables;
  bool is_counted[64];     /* labels that kernels alone allocate and free */
  GPtrArray **passages;    /* by the block's first op (nullable): (element-type PodPassage) (owned) */
  Visit *visits;           /* classes x blocks, without passage until needed */
} Walk;

/* Where a rank stands. */
typedef struct
{
  double time_ps[POD_MAX_VARIABLES];
  guint n_done;  /* steps */
  int64_t bytes;
  int64_t peak_bytes;
} Rank;

/* What was sent over a communicator: the k-th receive gets the k-th. */
typedef struct
{
  GArray *ends_ps; /* double */
  guint n_taken;
} Channel;

static void
set_counted (Walk *walk)
{
  const PodProgram *program = walk->program;

  for (unsigned l = 0; l < G_N_ELEMENTS (walk->is_counted); l++)
    walk->is_counted[l] = true;
  for (guint i = 0; i < program->ops->len; i++)
    {
      const PodOp *op = &g_array_index (program->ops, PodOp, i);

      for (uint32_t e = op->first_effect; op->stream != POD_STREAM_COMPUTE && e < op->first_effect + op->n_effects; e++)
        walk->is_counted[g_array_index (program->effects, PodEffect, e).label] = false;
    }
}

static bool
walk_init (Walk *walk, const PodExecRequest *request, GError **error)
{
  const PodProgram *program = request->program;

  *walk = (Walk){ .request = request, .program = program };
  pod_exec_software (request, &walk->software);
  walk->kernels = pod_exec_price_kernels (request, &walk->software, error);
  if (walk->kernels == NULL)
    return false;
  walk->wait_s = pod_exec_price_launches (program, &walk->software, walk->kernels);
  walk->alone = pod_alone_new (request, &walk->software);
  walk->passages = g_new0 (GPtrArray *, program->ops->len + 1);
  walk->visits = g_new0 (Visit, (size_t) program->classes->len * program->blocks->len + 1);
  walk->rank_of_class = g_new (uint32_t, program->classes->len);
  for (uint32_t rank = program->n_ranks; rank-- > 0;)
    walk->rank_of_class[program->class_of_rank[rank]] = rank;
  pod_variables_init (&walk->variables, program);
  set_counted (walk);
  return true;
}

static void
walk_clear (Walk *walk)
{
  for (guint i = 0; walk->passages != NULL && i < walk->program->ops->len; i++)
    g_clear_pointer (&walk->passages[i], g_ptr_array_unref);
  g_clear_pointer (&walk->kernels, g_array_unref);
  g_free (walk->wait_s);
  pod_alone_free (walk->alone);
  g_free (walk->passages);
  g_free (walk->visits);
  g_free (walk->rank_of_class);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Walk, walk_clear)

static const PodProgramClass *
class_at (const Walk *walk, guint index)
{
  return g_ptr_array_index (walk->program->classes, index);
}

/* Classes for which all takes the same go the same way. */
static const PodPassage *
find_passage (Walk *walk, uint32_t rank, uint32_t block_index, GError **error)
{
  const PodPassageInput input = { .request = walk->request,
                                  .software = &walk->software,
                                  .kernels = walk->kernels,
                                  .wait_s = walk->wait_s,
                                  .variables = &walk->variables,
                                  .is_counted = walk->is_counted,
                                  .alone = walk->alone };
  GPtrArray **passages = &walk->passages[g_array_index (walk->program->blocks, PodOpBlock, block_index).first_op];
  PodPassage *passage;

  if (*passages == NULL)
    *passages = g_ptr_array_new_with_free_func ((GDestroyNotify) pod_passage_free);
  for (guint i = 0; i < (*passages)->len; i++)
    if (pod_passage_is_of (g_ptr_array_index (*passages, i), walk->alone, rank))
      return g_ptr_array_index (*passages, i);
  passage = pod_passage_new (&input, block_index, rank, error);
  if (passage != NULL)
    g_ptr_array_add (*passages, passage);
  return passage;
}

static uint32_t
comm_of (const Walk *walk, uint32_t block, const PodOp *op)
{
  const PodOpLinks *links = walk->program->links != NULL ? &g_array_index (walk->program->links, PodOpLinks, block) : NULL;

  if (links == NULL)
    return op->comm;
  switch (op->stream)
    {
    case POD_STREAM_SEND_ACT:
    case POD_STREAM_SEND_ACT_BACK:
      return links->send_act;
    case POD_STREAM_RECV_ACT:
    case POD_STREAM_RECV_ACT_BACK:
      return links->recv_act;
    case POD_STREAM_SEND_GRAD:
    case POD_STREAM_SEND_GRAD_BACK:
      return links->send_grad;
    default:
      return links->recv_grad;
    }
}

static bool
visit_init (Walk *walk, guint class_index, uint32_t block, Visit *visit, GError **error)
{
  visit->passage = find_passage (walk, walk->rank_of_class[class_index], block, error);
  if (visit->passage == NULL)
    return false;
  g_assert (visit->passage->receives->len <= MAX_SENDS && visit->passage->sends->len <= MAX_SENDS);
  for (guint i = 0; i < visit->passage->receives->len; i++)
    visit->receive_comm[i] = comm_of (walk, block, g_array_index (visit->passage->receives, PodTransfer, i).op);
  for (guint i = 0; i < visit->passage->sends->len; i++)
    {
      const PodOp *op = g_array_index (visit->passage->sends, PodTransfer, i).op;

      visit->send_comm[i] = comm_of (walk, block, op);
      if (!pod_alone_time (walk->alone, op, visit->send_comm[i], walk->rank_of_class[class_index], &visit->send_ps[i], error))
        return false;
    }
  return true;
}

static bool
make_visits (Walk *walk, GError **error)
{
  for (guint c = 0; c < walk->program->classes->len; c++)
    for (guint i = 0; i < class_at (walk, c)->steps->len; i++)
      {
        const uint32_t block = g_array_index (class_at (walk, c)->steps, PodOpStep, i).block;
        Visit *visit = &walk->visits[(size_t) c * walk->program->blocks->len + block];

        if (visit->passage == NULL && !visit_init (walk, c, block, visit, error))
          return false;
      }
  return true;
}

/* Whether all that the step receives was sent. */
static bool
is_fed (const Channel *channels, const Visit *visit)
{
  for (guint i = 0; i < visit->passage->receives->len; i++)
    {
      const Channel *channel = &channels[visit->receive_comm[i]];

      if (channel->ends_ps == NULL || channel->n_taken >= channel->ends_ps->len)
        return false;
    }
  return true;
}

/* When the next receive on the channel ends; -INFINITY: it is not waited for. */
static double
take_received (Channel *channel)
{
  const guint index = channel->n_taken++;

  return channel->ends_ps != NULL && index < channel->ends_ps->len ? g_array_index (channel->ends_ps, double, index) : -INFINITY;
}

/* Ends of sends: behind those that the rank sent before. @channels: NULL where nobody waits for them */
static void
send_all (const Walk *walk, const Visit *visit, const double *before, Rank *rank, Channel *channels)
{
  for (guint i = 0; i < visit->passage->sends->len; i++)
    {
      const PodTransfer *send = &g_array_index (visit->passage->sends, PodTransfer, i);
      double *free_ps = &rank->time_ps[walk->variables.of_stream[send->op->stream]];
      Channel *channel = channels != NULL ? &channels[visit->send_comm[i]] : NULL;
      double ready_ps = *free_ps;

      for (uint32_t v = 0; v < walk->variables.n; v++)
        ready_ps = MAX (ready_ps, before[v] + send->ready_ps[v]);
      *free_ps = ready_ps + visit->send_ps[i];
      if (channel == NULL)
        continue;
      if (channel->ends_ps == NULL)
        channel->ends_ps = g_array_new (FALSE, FALSE, sizeof (double));
      g_array_append_vals (channel->ends_ps, free_ps, 1);
    }
}

static void
take_step (const Walk *walk, const Visit *visit, Rank *rank, Channel *channels)
{
  const PodPassage *passage = visit->passage;
  const uint32_t n = walk->variables.n;
  double before[POD_MAX_VARIABLES];

  for (guint i = 0; channels != NULL && i < passage->receives->len; i++)
    {
      const PodTransfer *receive = &g_array_index (passage->receives, PodTransfer, i);
      double *free_ps = &rank->time_ps[walk->variables.of_stream[receive->op->stream]];
      const double end_ps = take_received (&channels[visit->receive_comm[i]]);

      *free_ps = MAX (*free_ps, end_ps);
    }
  memcpy (before, rank->time_ps, n * sizeof *before);
  for (uint32_t row = 0; row < n; row++)
    {
      const double *path = passage->matrix + (size_t) row * n;
      double latest = -INFINITY;

      for (uint32_t v = 0; v < n; v++)
        latest = MAX (latest, before[v] + path[v]);
      rank->time_ps[row] = latest;
    }
  send_all (walk, visit, before, rank, channels);
  rank->peak_bytes = MAX (rank->peak_bytes, rank->bytes + passage->peak_bytes);
  rank->bytes += passage->end_bytes;
  rank->n_done++;
}

static const Visit *
next_visit (const Walk *walk, guint class_index, const Rank *rank)
{
  const GArray *steps = class_at (walk, class_index)->steps;

  return rank->n_done < steps->len ? &walk->visits[(size_t) class_index * walk->program->blocks->len + g_array_index (steps, PodOpStep, rank->n_done).block] : NULL;
}

/* As far as each rank comes by what was sent to it. Returns the first class that has steps left, or UINT_MAX. */
static guint
advance (const Walk *walk, Rank *ranks, Channel *channels, bool *out_has_moved)
{
  guint first_left = UINT_MAX;

  *out_has_moved = false;
  for (guint c = walk->program->classes->len; c-- > 0;)
    {
      const Visit *visit = next_visit (walk, c, &ranks[c]);

      for (; visit != NULL && is_fed (channels, visit); visit = next_visit (walk, c, &ranks[c]))
        {
          take_step (walk, visit, &ranks[c], channels);
          *out_has_moved = true;
        }
      if (visit != NULL)
        first_left = c;
    }
  return first_left;
}

/* All steps of all ranks. Where two blocks wait for each other's ops, which blocks as a whole cannot, one goes on without waiting. */
static void
run_steps (const Walk *walk, Rank *ranks)
{
  const guint n_channels = walk->program->communicators->len;
  g_autofree Channel *channels = g_new0 (Channel, n_channels + 1);
  bool has_moved;

  for (guint left = advance (walk, ranks, channels, &has_moved); left != UINT_MAX; left = advance (walk, ranks, channels, &has_moved))
    if (!has_moved)
      take_step (walk, next_visit (walk, left, &ranks[left]), &ranks[left], channels);
  for (guint k = 0; k < n_channels; k++)
    g_clear_pointer (&channels[k].ends_ps, g_array_unref);
}

/* Where steps overlap, a rank's step is its own from its first kernel on: from the end of what that receives, where it receives something, and
 * its other streams may have been at work before. What comes later may have been sent before. */
static void
run_alone (const Walk *walk, guint class_index, Rank *rank)
{
  const Visit *visit = next_visit (walk, class_index, rank);
  const GArray *receives = visit->passage->receives;

  for (uint32_t v = 0; receives->len > 0 && v < walk->variables.n; v++)
    rank->time_ps[v] = -INFINITY;
  for (guint i = 0; i < receives->len; i++)
    rank->time_ps[walk->variables.of_stream[g_array_index (receives, PodTransfer, i).op->stream]] = 0;
  for (; visit != NULL; visit = next_visit (walk, class_index, rank))
    take_step (walk, visit, rank, NULL);
}

static void
rank_init (const Walk *walk, guint class_index, Rank *rank)
{
  const PodProgramClass *class = class_at (walk, class_index);

  for (guint l = 0; l < walk->program->labels->len; l++)
    rank->bytes += (int64_t) class->static_bytes[l];
  rank->peak_bytes = rank->bytes;
}

bool
pod_exec_uncontended (const PodExecRequest *request, PodUncontended *out, GError **error)
{
  const guint n_classes = request->program->classes->len;
  g_autofree Rank *ranks = g_new0 (Rank, n_classes);
  g_auto (Walk) walk = { 0 };
  double time_ps = 0;

  if (!walk_init (&walk, request, error) || !make_visits (&walk, error))
    return false;
  *out = (PodUncontended){ 0 };
  for (guint c = 0; c < n_classes; c++)
    rank_init (&walk, c, &ranks[c]);
  for (guint c = 0; c < n_classes && request->program->steps_overlap; c++)
    run_alone (&walk, c, &ranks[c]);
  if (!request->program->steps_overlap)
    run_steps (&walk, ranks);
  for (guint c = 0; c < n_classes; c++)
    {
      for (uint32_t v = 0; v < walk.variables.n; v++)
        time_ps = MAX (time_ps, ranks[c].time_ps[v]);
      out->peak_bytes = MAX (out->peak_bytes, (double) ranks[c].peak_bytes);
    }
  out->time_ps = (int64_t) (time_ps * (1 - 1e-6)); /* times are rounded to picoseconds, loads to bytes */
  return true;
}
