#include "exec/uncontended.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "exec/exec-private.h"

/* A block carries the times at which its rank's streams are free to those after it: each is the latest of some times before, plus the path
 * between. That is a matrix of the max-plus algebra, made once by a walk through the block's ops; a step then costs a product. */

enum
{
  MAX_TAILS = 3, /* numbers of a block's last kernels that ops of the next one do not wait for */
  MAX_VARIABLES = POD_N_STREAMS + MAX_TAILS,
  NO_VARIABLE = -1,
};

/* A transfer between stages in a block: when its sender has it ready is a row of the block's own, when it ends another's. */
typedef struct
{
  uint32_t comm;
  uint8_t stream;
  double time_ps;
  double ready_ps[MAX_VARIABLES]; /* of a send: path from each variable */
} Transfer;

typedef struct
{
  double *matrix;    /* n_variables x n_variables: path to row from column, -INFINITY none */
  GArray *receives;  /* Transfer */
  GArray *sends;
  int64_t peak_bytes; /* above what the rank held before */
  int64_t end_bytes;  /* left behind */
} Passage;

/* What a collective takes alone, in one group: and in those that a shift of the machine carries it to. */
typedef struct
{
  uint32_t comm;
  uint32_t group;
  PodCollectiveKind kind;
  PodDtype dtype;
  uint64_t bytes;
  double time_ps;
} Price;

typedef struct
{
  const PodExecRequest *request;
  const PodProgram *program;
  PodStepSoftware software;
  GArray *kernels;         /* PodKernelUse */
  double *wait_s;          /* by block */
  GArray *prices;          /* Price */
  uint32_t *rank_of_class; /* the lowest */
  uint32_t n_variables;
  int variable_of_stream[POD_N_STREAMS];
  uint32_t n_tails;
  uint32_t first_tail;      /* its variable */
  int32_t tails[MAX_TAILS];
  bool is_counted[64];      /* labels that kernels alone allocate and free */
  Passage **passages;       /* classes x blocks, NULL until needed */
} Walk;

/* Where a rank stands. */
typedef struct
{
  double time_ps[MAX_VARIABLES];
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

/* -- prices ---- */

static const PodCommunicator *
communicator_at (const Walk *walk, uint32_t index)
{
  return g_ptr_array_index (walk->program->communicators, index);
}

/* Of the group's members among themselves, as the run has it: the first group chooses the algorithm for all. */
static bool
price_group (const Walk *walk, const PodOp *op, uint32_t g, double *out_ps, GError **error)
{
  const PodExecRequest *request = walk->request;
  const PodCommunicator *comm = communicator_at (walk, op->comm);
  g_autoptr (PodPlan) plan = NULL;
  PodGroup group;
  double latency_s;
  double time_s;

  pod_communicator_group (comm, 0, &group);
  plan = pod_routes_plan (request, op, &group, NULL, error);
  if (plan != NULL && g > 0 && request->fidelity != POD_FIDELITY_BOOK)
    {
      g_autofree char *name = plan->protocol == NULL ? g_strdup (plan->algorithm) : g_strconcat (plan->algorithm, "/", plan->protocol, NULL);

      pod_plan_free (plan);
      pod_communicator_group (comm, g, &group);
      plan = pod_routes_plan (request, op, &group, name, error);
    }
  if (plan == NULL)
    return false;
  time_s = pod_plan_time (request->topology, request->fidelity, plan, op->bytes);
  latency_s = request->fidelity == POD_FIDELITY_BOOK ? time_s : (double) plan->latency_ps * 1e-12;
  *out_ps = (latency_s + (time_s - latency_s) / pod_exec_rate_ratio (&walk->software, comm->axis)) * 1e12;
  return true;
}

/* Whether the groups do the same in two places. Those of one communicator go the way that its first group chose, others' choose alike. */
static bool
is_same_price (const Walk *walk, const Price *known, const Price *wanted)
{
  const PodCommunicator *from = communicator_at (walk, known->comm);
  const PodCommunicator *to = communicator_at (walk, wanted->comm);
  PodTopologyShift shift;
  PodGroup a, b;

  if (known->kind != wanted->kind || known->bytes != wanted->bytes || known->dtype != wanted->dtype || from->axis != to->axis || from->group_size != to->group_size)
    return false;
  if (known->comm == wanted->comm && (known->group == wanted->group || walk->request->fidelity == POD_FIDELITY_BOOK))
    return true;
  if (known->comm != wanted->comm && (known->group > 0 || wanted->group > 0))
    return false;
  pod_communicator_group (from, known->group, &a);
  pod_communicator_group (to, wanted->group, &b);
  return a.n_factors == b.n_factors && memcmp (a.factors, b.factors, a.n_factors * sizeof *a.factors) == 0
         && pod_topology_shift_init (&shift, walk->request->topology, a.devices, b.devices, from->group_size);
}

static bool
price (Walk *walk, const PodOp *op, uint32_t rank, double *out_ps, GError **error)
{
  Price wanted = { .comm = op->comm, .group = communicator_at (walk, op->comm)->group_of_rank[rank], .kind = op->collective, .dtype = op->dtype, .bytes = op->bytes };
  bool is_known = false;
  bool is_own = false;

  for (guint i = walk->prices->len; i-- > 0 && !is_known;)
    {
      const Price *known = &g_array_index (walk->prices, Price, i);

      is_known = is_same_price (walk, known, &wanted);
      is_own = is_known && known->comm == wanted.comm && known->group == wanted.group;
      if (is_known)
        wanted.time_ps = known->time_ps;
    }
  if (!is_known && !price_group (walk, op, wanted.group, &wanted.time_ps, error))
    return false;
  if (!is_own)
    g_array_append_val (walk->prices, wanted);
  *out_ps = wanted.time_ps;
  return true;
}

static bool
duration (Walk *walk, const PodOp *op, uint32_t block, uint32_t rank, double *out_ps, GError **error)
{
  const PodKernelUse *use;

  if (op->kind == POD_OP_COLLECTIVE)
    return price (walk, op, rank, out_ps, error);
  if (op->kind == POD_OP_COPY)
    {
      *out_ps = pod_exec_copy_s (walk->request->topology->chip, op) * 1e12;
      return true;
    }
  use = &g_array_index (walk->kernels, PodKernelUse, op->kernel);
  *out_ps = (use->time.time_s + walk->wait_s[block] * pod_kernel_launches (&walk->software, &use->kernel)) * 1e12;
  return true;
}

/* -- a block ---- */

static bool
is_receive (const PodOp *op)
{
  return op->kind == POD_OP_COLLECTIVE && op->collective == POD_SEND && !pod_stream_is_send (op->stream);
}

static bool
is_send (const PodOp *op)
{
  return op->kind == POD_OP_COLLECTIVE && op->collective == POD_SEND && pod_stream_is_send (op->stream);
}

static void
take_latest (double *to, const double *from, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] = MAX (to[i], from[i]);
}

/* The variable that a dependency on ops before the block stands for; NO_VARIABLE: none is kept, which only waits less. */
static int
variable_before (const Walk *walk, const PodOpDep *dep)
{
  if (dep->count == 0)
    return walk->variable_of_stream[dep->stream];
  for (uint32_t t = 0; t < walk->n_tails && dep->stream == POD_STREAM_COMPUTE; t++)
    if (walk->tails[t] == -dep->count)
      return (int) (walk->first_tail + t);
  return NO_VARIABLE;
}

/* When @op can start: after the op before it on its stream and all that it waits for. @ends: paths to the ends of the block's ops.
 * Returns false while one of them has no end yet. */
static bool
find_start (const Walk *walk, const PodOpBlock *block, const uint32_t *n_ended, uint32_t index, const double *ends, double *start)
{
  const PodOp *op = &g_array_index (walk->program->ops, PodOp, block->first_op + index);
  const uint32_t n = walk->n_variables;
  const uint32_t first = block->first_of_stream[op->stream] - block->first_op;

  for (uint32_t i = 0; i < op->n_deps; i++)
    {
      const PodOpDep *dep = &g_array_index (walk->program->deps, PodOpDep, op->first_dep + i);

      if (dep->count > 0 && n_ended[dep->stream] < (uint32_t) dep->count)
        return false;
    }
  for (uint32_t v = 0; v < n; v++)
    start[v] = -INFINITY;
  if (index > first)
    memcpy (start, ends + (size_t) (index - 1) * n, n * sizeof *start);
  else
    start[walk->variable_of_stream[op->stream]] = 0;
  for (uint32_t i = 0; i < op->n_deps; i++)
    {
      const PodOpDep *dep = &g_array_index (walk->program->deps, PodOpDep, op->first_dep + i);
      const int before = dep->count <= 0 ? variable_before (walk, dep) : NO_VARIABLE;

      if (dep->count > 0)
        take_latest (start, ends + (size_t) (block->first_of_stream[dep->stream] - block->first_op + (uint32_t) dep->count - 1) * n, n);
      else if (before != NO_VARIABLE)
        start[before] = MAX (start[before], 0);
    }
  return true;
}

/* One op, once what it waits for has an end. */
static bool
walk_op (Walk *walk, uint32_t block_index, uint32_t index, uint32_t rank, const double *start, double *ends, Passage *out, GError **error)
{
  const PodOpBlock *block = &g_array_index (walk->program->blocks, PodOpBlock, block_index);
  const PodOp *op = &g_array_index (walk->program->ops, PodOp, block->first_op + index);
  const uint32_t n = walk->n_variables;
  double *end = ends + (size_t) index * n;
  Transfer transfer = { .comm = op->comm, .stream = op->stream };

  if (is_receive (op)) /* it ends as the sender's op does */
    {
      for (uint32_t v = 0; v < n; v++)
        end[v] = (int) v == walk->variable_of_stream[op->stream] ? 0 : -INFINITY;
      g_array_append_val (out->receives, transfer);
      return true;
    }
  if (!duration (walk, op, block_index, rank, &transfer.time_ps, error))
    return false;
  for (uint32_t v = 0; v < n; v++)
    end[v] = start[v] + transfer.time_ps;
  if (is_send (op))
    {
      memcpy (transfer.ready_ps, start, n * sizeof *start);
      g_array_append_val (out->sends, transfer);
    }
  return true;
}

/* The rows of the matrix: a stream is free at the end of its last op. */
static void
set_rows (const Walk *walk, const PodOpBlock *block, const double *ends, double *matrix)
{
  const uint32_t n = walk->n_variables;

  for (uint32_t i = 0; i < n * n; i++)
    matrix[i] = i % (n + 1) == 0 ? 0 : -INFINITY;
  for (unsigned s = 0; s < POD_N_STREAMS; s++)
    if (block->n_of_stream[s] > 0 && !pod_stream_is_send ((PodStream) s))
      memcpy (matrix + (size_t) walk->variable_of_stream[s] * n, ends + (size_t) (block->first_of_stream[s] - block->first_op + block->n_of_stream[s] - 1) * n, n * sizeof *matrix);
  for (uint32_t t = 0; t < walk->n_tails && block->n_of_stream[POD_STREAM_COMPUTE] > 0; t++)
    {
      const int64_t at = (int64_t) block->n_of_stream[POD_STREAM_COMPUTE] - 1 - walk->tails[t];
      double *row = matrix + (size_t) (walk->first_tail + t) * n;

      for (uint32_t v = 0; v < n; v++) /* -INFINITY: it is an op of an earlier block, which is not kept */
        row[v] = at >= 0 ? ends[(size_t) (block->first_of_stream[POD_STREAM_COMPUTE] - block->first_op + (uint32_t) at) * n + v] : -INFINITY;
    }
}

/* What kernels allocate as they start and free as they end, in their order: buffers that others allocate or free too are left out. */
static void
count_bytes (const Walk *walk, const PodOpBlock *block, Passage *out)
{
  for (uint32_t i = 0; i < block->n_of_stream[POD_STREAM_COMPUTE]; i++)
    {
      const PodOp *op = &g_array_index (walk->program->ops, PodOp, block->first_of_stream[POD_STREAM_COMPUTE] + i);

      for (unsigned is_at_end = 0; is_at_end < 2; is_at_end++)
        {
          for (uint32_t e = op->first_effect; e < op->first_effect + op->n_effects; e++)
            {
              const PodEffect *effect = &g_array_index (walk->program->effects, PodEffect, e);

              if (effect->is_at_end == (is_at_end == 1) && walk->is_counted[effect->label])
                out->end_bytes += effect->bytes;
            }
          out->peak_bytes = MAX (out->peak_bytes, out->end_bytes);
        }
    }
}

static void
passage_free (Passage *passage)
{
  if (passage == NULL)
    return;
  g_free (passage->matrix);
  g_array_unref (passage->receives);
  g_array_unref (passage->sends);
  g_free (passage);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Passage, passage_free)

/* Through the block in an order in which all that an op waits for comes before it. */
static Passage *
passage_new (Walk *walk, uint32_t block_index, uint32_t rank, GError **error)
{
  const PodOpBlock *block = &g_array_index (walk->program->blocks, PodOpBlock, block_index);
  const uint32_t n = walk->n_variables;
  g_autoptr (Passage) passage = g_new0 (Passage, 1);
  g_autofree double *ends = g_new (double, (size_t) block->n_ops * n + 1);
  uint32_t n_ended[POD_N_STREAMS] = { 0 };
  double start[MAX_VARIABLES];
  bool has_moved = true;

  passage->matrix = g_new (double, (size_t) n * n);
  passage->receives = g_array_new (FALSE, FALSE, sizeof (Transfer));
  passage->sends = g_array_new (FALSE, FALSE, sizeof (Transfer));
  while (has_moved)
    {
      has_moved = false;
      for (unsigned s = 0; s < POD_N_STREAMS; s++)
        for (; n_ended[s] < block->n_of_stream[s]; n_ended[s]++)
          {
            const uint32_t index = block->first_of_stream[s] - block->first_op + n_ended[s];

            if (!find_start (walk, block, n_ended, index, ends, start))
              break;
            if (!walk_op (walk, block_index, index, rank, start, ends, passage, error))
              return NULL;
            has_moved = true;
          }
    }
  set_rows (walk, block, ends, passage->matrix);
  count_bytes (walk, block, passage);
  return g_steal_pointer (&passage);
}

/* -- the steps of all classes ---- */

/* A variable for each stream that has ops, and for each number of kernels that is not waited for. */
static void
set_variables (Walk *walk)
{
  const PodProgram *program = walk->program;

  for (unsigned s = 0; s < POD_N_STREAMS; s++)
    walk->variable_of_stream[s] = NO_VARIABLE;
  for (guint i = 0; i < program->ops->len; i++)
    {
      const uint8_t stream = g_array_index (program->ops, PodOp, i).stream;

      if (walk->variable_of_stream[stream] == NO_VARIABLE)
        walk->variable_of_stream[stream] = (int) walk->n_variables++;
    }
  for (guint i = 0; i < program->deps->len; i++)
    {
      const PodOpDep *dep = &g_array_index (program->deps, PodOpDep, i);
      bool is_known = dep->count >= 0 || dep->stream != POD_STREAM_COMPUTE || walk->n_tails == MAX_TAILS;

      for (uint32_t t = 0; t < walk->n_tails; t++)
        is_known = is_known || walk->tails[t] == -dep->count;
      if (!is_known)
        walk->tails[walk->n_tails++] = -dep->count;
    }
  walk->first_tail = walk->n_variables;
  walk->n_variables += walk->n_tails;
}

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
  walk->prices = g_array_new (FALSE, FALSE, sizeof (Price));
  walk->passages = g_new0 (Passage *, (size_t) program->classes->len * program->blocks->len + 1);
  walk->rank_of_class = g_new (uint32_t, program->classes->len);
  for (uint32_t rank = program->n_ranks; rank-- > 0;)
    walk->rank_of_class[program->class_of_rank[rank]] = rank;
  set_variables (walk);
  set_counted (walk);
  return true;
}

static void
walk_clear (Walk *walk)
{
  for (size_t i = 0; walk->passages != NULL && i < (size_t) walk->program->classes->len * walk->program->blocks->len; i++)
    passage_free (walk->passages[i]);
  g_clear_pointer (&walk->kernels, g_array_unref);
  g_free (walk->wait_s);
  g_clear_pointer (&walk->prices, g_array_unref);
  g_free (walk->passages);
  g_free (walk->rank_of_class);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Walk, walk_clear)

static const PodProgramClass *
class_at (const Walk *walk, guint index)
{
  return g_ptr_array_index (walk->program->classes, index);
}

static bool
make_passages (Walk *walk, GError **error)
{
  const guint n_blocks = walk->program->blocks->len;

  for (guint c = 0; c < walk->program->classes->len; c++)
    for (guint i = 0; i < class_at (walk, c)->steps->len; i++)
      {
        const uint32_t block = g_array_index (class_at (walk, c)->steps, PodOpStep, i).block;
        Passage **passage = &walk->passages[(size_t) c * n_blocks + block];

        if (*passage == NULL)
          *passage = passage_new (walk, block, walk->rank_of_class[c], error);
        if (*passage == NULL)
          return false;
      }
  return true;
}

/* Whether all that the step receives was sent. */
static bool
is_fed (const Channel *channels, const Passage *passage)
{
  for (guint i = 0; i < passage->receives->len; i++)
    {
      const Channel *channel = &channels[g_array_index (passage->receives, Transfer, i).comm];

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
send_all (const Walk *walk, const Passage *passage, const double *before, Rank *rank, Channel *channels)
{
  for (guint i = 0; i < passage->sends->len; i++)
    {
      const Transfer *send = &g_array_index (passage->sends, Transfer, i);
      double *free_ps = &rank->time_ps[walk->variable_of_stream[send->stream]];
      double ready_ps = *free_ps;

      for (uint32_t v = 0; v < walk->n_variables; v++)
        ready_ps = MAX (ready_ps, before[v] + send->ready_ps[v]);
      *free_ps = ready_ps + send->time_ps;
      if (channels == NULL)
        continue;
      if (channels[send->comm].ends_ps == NULL)
        channels[send->comm].ends_ps = g_array_new (FALSE, FALSE, sizeof (double));
      g_array_append_vals (channels[send->comm].ends_ps, free_ps, 1);
    }
}

static void
take_step (const Walk *walk, const Passage *passage, Rank *rank, Channel *channels)
{
  const uint32_t n = walk->n_variables;
  double before[MAX_VARIABLES];

  for (guint i = 0; channels != NULL && i < passage->receives->len; i++)
    {
      const Transfer *receive = &g_array_index (passage->receives, Transfer, i);
      double *free_ps = &rank->time_ps[walk->variable_of_stream[receive->stream]];
      const double end_ps = take_received (&channels[receive->comm]);

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
  send_all (walk, passage, before, rank, channels);
  rank->peak_bytes = MAX (rank->peak_bytes, rank->bytes + passage->peak_bytes);
  rank->bytes += passage->end_bytes;
  rank->n_done++;
}

static const Passage *
next_passage (const Walk *walk, guint class_index, const Rank *rank)
{
  const GArray *steps = class_at (walk, class_index)->steps;

  return rank->n_done < steps->len ? walk->passages[(size_t) class_index * walk->program->blocks->len + g_array_index (steps, PodOpStep, rank->n_done).block] : NULL;
}

/* As far as each rank comes by what was sent to it. Returns the first class that has steps left, or UINT_MAX. */
static guint
advance (const Walk *walk, Rank *ranks, Channel *channels, bool *out_has_moved)
{
  guint first_left = UINT_MAX;

  *out_has_moved = false;
  for (guint c = walk->program->classes->len; c-- > 0;)
    {
      const Passage *passage = next_passage (walk, c, &ranks[c]);

      for (; passage != NULL && is_fed (channels, passage); passage = next_passage (walk, c, &ranks[c]))
        {
          take_step (walk, passage, &ranks[c], channels);
          *out_has_moved = true;
        }
      if (passage != NULL)
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
      take_step (walk, next_passage (walk, left, &ranks[left]), &ranks[left], channels);
  for (guint k = 0; k < n_channels; k++)
    g_clear_pointer (&channels[k].ends_ps, g_array_unref);
}

/* Where steps overlap, a rank's step is its own from its first kernel on, and what is sent to it may have come before. */
static void
run_alone (const Walk *walk, guint class_index, Rank *rank)
{
  for (uint32_t v = 0; v < walk->n_variables; v++)
    if ((int) v != walk->variable_of_stream[POD_STREAM_COMPUTE])
      rank->time_ps[v] = -INFINITY;
  for (const Passage *passage = next_passage (walk, class_index, rank); passage != NULL; passage = next_passage (walk, class_index, rank))
    take_step (walk, passage, rank, NULL);
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

  if (!walk_init (&walk, request, error) || !make_passages (&walk, error))
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
      for (uint32_t v = 0; v < walk.n_variables; v++)
        time_ps = MAX (time_ps, ranks[c].time_ps[v]);
      out->peak_bytes = MAX (out->peak_bytes, (double) ranks[c].peak_bytes);
    }
  out->time_ps = (int64_t) (time_ps * (1 - 1e-6)); /* times are rounded to picoseconds, loads to bytes */
  return true;
}
