#include "exec/account-private.h"

#include <string.h>

/* Of each stream the last stretches (ops that follow each other without a gap are one) are kept that ended behind the compute that is
 * accounted for: attribution follows who released whom a few steps back, and goes no further than that. */
#define N_REMEMBERED 4

/* Returns: (transfer full) by label: its place among those that ops change, UINT32_MAX when they do not */
static uint32_t *
find_moving (PodAccount *account)
{
  const PodProgram *program = account->program;
  uint32_t *moving = g_new (uint32_t, program->labels->len + 1);

  memset (moving, 0xff, (program->labels->len + 1) * sizeof *moving);
  account->moving_label = g_new (uint32_t, program->labels->len + 1);
  for (guint i = 0; i < program->effects->len; i++)
    {
      const uint32_t label = g_array_index (program->effects, PodEffect, i).label;

      if (moving[label] != UINT32_MAX)
        continue;
      account->moving_label[account->n_moving] = label;
      moving[label] = account->n_moving++;
    }
  return moving;
}

/* At an op's start or end, into @out. */
static uint16_t
list_effects (const PodProgram *program, const PodOp *op, bool is_at_end, const uint32_t *moving, PodAccountEffect *out)
{
  uint16_t n_listed = 0;

  for (uint32_t i = 0; i < op->n_effects; i++)
    {
      const PodEffect *effect = &g_array_index (program->effects, PodEffect, op->first_effect + i);

      if (effect->is_at_end == is_at_end)
        out[n_listed++] = (PodAccountEffect){ .bytes = effect->bytes, .moving = moving[effect->label] };
    }
  return n_listed;
}

/* Each op's in the place that they have in the program, those at its start first. */
static void
make_effects (PodAccount *account)
{
  const PodProgram *program = account->program;
  g_autofree uint32_t *moving = find_moving (account);

  account->effects_of_op = g_new (PodAccountEffects, program->ops->len + 1);
  account->effects = g_new (PodAccountEffect, program->effects->len + 1);
  for (guint i = 0; i < program->ops->len; i++)
    {
      const PodOp *op = &g_array_index (program->ops, PodOp, i);
      PodAccountEffects *effects = &account->effects_of_op[i];
      PodAccountEffect *out = &account->effects[op->first_effect];

      *effects = (PodAccountEffects){ .first = op->first_effect };
      if (op->n_effects == 0)
        continue;
      g_assert (op->n_effects <= UINT16_MAX);
      effects->n_at_start = list_effects (program, op, false, moving, out);
      effects->n_at_end = list_effects (program, op, true, moving, out + effects->n_at_start);
    }
}

/* Gives a sum its place, once. */
static void
place_sum (PodAccount *account, uint8_t *place)
{
  if (*place == NO_SUM)
    *place = account->n_sums++;
}

/* A rank of a job keeps what its program can come to: most have few axes. */
static void
place_sums (PodAccount *account)
{
  const PodProgram *program = account->program;

  account->n_sums = N_FIRST_SUMS;
  memset (account->of_phase, NO_SUM, sizeof account->of_phase);
  memset (account->of_exposed, NO_SUM, sizeof account->of_exposed);
  memset (account->of_comm, NO_SUM, sizeof account->of_comm);
  for (guint i = 0; i < program->ops->len; i++)
    {
      const PodOp *op = &g_array_index (program->ops, PodOp, i);

      if (op->kind == POD_OP_COMPUTE && (op->phase == POD_PHASE_OPTIMIZER || op->phase == POD_PHASE_RECOMPUTE))
        place_sum (account, &account->of_phase[op->phase]);
      if (op->kind != POD_OP_COMPUTE)
        {
          const PodAxis axis = op->kind == POD_OP_COPY ? POD_AXIS_HOST : ((const PodCommunicator *) g_ptr_array_index (program->communicators, op->comm))->axis;

          place_sum (account, &account->of_exposed[axis]);
          place_sum (account, &account->of_comm[axis]);
        }
    }
  account->of_moving = account->n_sums;
  account->n_sums = (uint8_t) (account->n_sums + account->n_moving); /* labels are fewer than 64 */
}

/* By the labels of the highest of all is asked at the end. */
void
pod_account_see_peak (PodAccount *account, uint32_t rank, const int64_t *by_moving, int64_t at_ps)
{
  const PodAccountRank *r = &account->ranks[rank];
  const int64_t highest = account->ranks[account->highest_rank].peak_bytes;
  const PodProgramClass *class = g_ptr_array_index (account->program->classes, account->class_of[rank]);

  if (r->peak_bytes < highest || (r->peak_bytes == highest && rank > account->highest_rank))
    return;
  account->highest_rank = rank;
  account->highest_at_ps = at_ps;
  for (guint l = 0; l < account->program->labels->len; l++)
    account->highest_by_label[l] = (int64_t) class->static_bytes[l];
  for (uint32_t m = 0; m < account->n_moving; m++)
    account->highest_by_label[account->moving_label[m]] = by_moving[m];
}

PodAccount *
pod_account_new (const PodProgram *program, uint32_t n_ranks, const uint32_t *class_of)
{
  PodAccount *account = g_new0 (PodAccount, 1);

  account->program = program;
  account->n_ranks = n_ranks;
  account->class_of = class_of;
  make_effects (account);
  place_sums (account);
  account->ranks = g_new0 (PodAccountRank, n_ranks);
  account->sums = g_new0 (int64_t, (size_t) n_ranks * account->n_sums);
  account->n_spans = 1;
  account->highest_by_label = g_new0 (int64_t, program->labels->len + 1);
  for (uint32_t rank = 0; rank < n_ranks; rank++)
    {
      const PodProgramClass *class = g_ptr_array_index (program->classes, class_of[rank]);
      int64_t *row = pod_account_row (account, rank);

      for (guint l = 0; l < program->labels->len; l++)
        row[SUM_BYTES] += (int64_t) class->static_bytes[l];
      for (uint32_t m = 0; m < account->n_moving; m++)
        row[account->of_moving + m] = (int64_t) class->static_bytes[account->moving_label[m]];
      account->ranks[rank].peak_bytes = row[SUM_BYTES];
      account->ranks[rank].most_bytes = row[SUM_BYTES];
      pod_account_see_peak (account, rank, row + account->of_moving, 0);
    }
  return account;
}

void
pod_account_free (PodAccount *account)
{
  if (account == NULL)
    return;
  g_free (account->effects_of_op);
  g_free (account->effects);
  g_free (account->ranks);
  g_free (account->sums);
  g_free (account->spans);
  g_free (account->moving_label);
  g_free (account->watched);
  g_free (account->highest_by_label);
  g_free (account);
}

/* -- spans ---- */

static uint32_t
take_span (PodAccount *account)
{
  const uint32_t index = account->first_free;

  if (index != 0)
    {
      account->first_free = account->spans[index].next;
      return index;
    }
  if (account->n_spans >= account->n_spans_allocated)
    {
      account->n_spans_allocated = MAX (64, account->n_spans_allocated + account->n_spans_allocated / 2);
      account->spans = g_renew (PodAccountEntry, account->spans, account->n_spans_allocated);
    }
  return account->n_spans++;
}

/* Takes the span that @link leads to out of its list. */
static void
drop_span (PodAccount *account, uint32_t *link)
{
  const uint32_t index = *link;

  *link = account->spans[index].next;
  account->spans[index].next = account->first_free;
  account->first_free = index;
}

static void
add_span (PodAccount *account, uint32_t *link, const PodAccountEntry *span)
{
  const uint32_t index = take_span (account); /* may move the pool, in which links are; so @link is one of a rank */

  account->spans[index] = *span;
  account->spans[index].next = *link;
  *link = index;
}

/* Drops what compute has passed. Before the first compute nothing is: it asks what has released it. Returns: (nullable) the newest of the
 * stream that stays; @out_n: how many of it do */
static PodAccountEntry *
forget_spans (PodAccount *account, uint32_t rank, uint8_t stream, unsigned *out_n)
{
  PodAccountRank *r = &account->ranks[rank];
  PodAccountEntry *newest = NULL;

  *out_n = 0;
  for (uint32_t *link = &r->first_span; *link != 0;)
    {
      PodAccountEntry *span = &account->spans[*link];

      if (r->has_begun && span->end_ps <= r->compute_end_ps)
        {
          drop_span (account, link);
          continue;
        }
      if (span->stream == stream && (*out_n)++ == 0)
        newest = span;
      link = &span->next;
    }
  return newest;
}

static void
drop_oldest (PodAccount *account, uint32_t rank, uint8_t stream)
{
  uint32_t *oldest = NULL;

  for (uint32_t *link = &account->ranks[rank].first_span; *link != 0; link = &account->spans[*link].next)
    if (account->spans[*link].stream == stream)
      oldest = link;
  drop_span (account, oldest);
}

/* Gives [from, to) away, where an op of @stream held up what came next: its bytes moving, then its wait for a peer, then what
 * held it up itself. */
static void
attribute (const PodAccount *account, uint32_t rank, int64_t from_ps, int64_t to_ps, uint8_t stream, unsigned depth)
{
  const PodAccountRank *r = &account->ranks[rank];
  int64_t *row = pod_account_row (account, rank);
  const PodAccountEntry *span;
  int64_t end_ps;
  int64_t edge_ps;

  if (to_ps <= from_ps)
    return;
  span = pod_account_newest (account, r->first_span, stream);
  while (span != NULL && !(span->arrive_ps < to_ps && span->end_ps > from_ps))
    span = pod_account_newest (account, span->next, stream);
  if (stream == POD_STREAM_COMPUTE || span == NULL || depth > POD_N_STREAMS * N_REMEMBERED)
    {
      row[SUM_IDLE] += to_ps - from_ps;
      return;
    }
  end_ps = MIN (span->end_ps, to_ps);
  row[SUM_IDLE] += to_ps - end_ps;
  edge_ps = MIN (MAX (from_ps, span->start_ps), end_ps);
  row[account->of_exposed[span->axis]] += end_ps - edge_ps;
  end_ps = edge_ps;
  edge_ps = MAX (from_ps, span->arrive_ps);
  if (edge_ps < end_ps)
    {
      if (span->is_pipeline)
        row[SUM_BUBBLE] += end_ps - edge_ps;
      else
        {
          row[account->of_exposed[span->axis]] += end_ps - edge_ps;
          row[SUM_WAITED] += end_ps - edge_ps;
        }
      end_ps = edge_ps;
    }
  attribute (account, rank, from_ps, end_ps, span->released_by, depth + 1);
}

/* Whether @next follows @last on its stream without a gap, so that both are one stretch of bytes moving. */
static bool
continues (const PodAccountEntry *last, const PodAccountSpan *next)
{
  return next->released_by == next->stream && next->axis == last->axis && next->start_ps == next->arrive_ps && next->start_ps == last->end_ps
         && last->end_ps > 0;
}

/* Whether the newest op of a stream was a transfer between stages. */
static bool
was_pipeline (const PodAccount *account, uint32_t rank, uint8_t stream)
{
  const PodAccountEntry *span = pod_account_newest (account, account->ranks[rank].first_span, stream);

  return span != NULL && span->is_pipeline;
}

void
pod_account_compute (PodAccount *account, uint32_t rank, uint8_t released_by, int64_t now_ps)
{
  PodAccountRank *r = &account->ranks[rank];

  if (!r->has_begun && account->program->steps_overlap && was_pipeline (account, rank, released_by))
    r->begin_ps = r->compute_end_ps = now_ps; /* the step before was still being run while it waited for its first activations */
  r->has_begun = true;
  attribute (account, rank, r->compute_end_ps, now_ps, released_by, 0);
  r->compute_end_ps = now_ps;
}

void
pod_account_compute_ended (PodAccount *account, uint32_t rank, PodPhase phase, int64_t now_ps)
{
  PodAccountRank *r = &account->ranks[rank];
  int64_t *row = pod_account_row (account, rank);
  const int64_t took_ps = now_ps - r->compute_end_ps;

  row[SUM_COMPUTE] += took_ps;
  if (account->of_phase[phase] != NO_SUM)
    row[account->of_phase[phase]] += took_ps;
  r->compute_end_ps = now_ps;
  if (now_ps >= r->end_ps)
    {
      r->end_ps = now_ps;
      r->last_stream = POD_STREAM_COMPUTE;
    }
}

void
pod_account_comm (PodAccount *account, uint32_t rank, const PodAccountSpan *span)
{
  PodAccountRank *r = &account->ranks[rank];
  unsigned n;
  PodAccountEntry *last = forget_spans (account, rank, span->stream, &n);

  if (last != NULL && continues (last, span))
    last->end_ps = span->end_ps;
  else
    {
      const PodAccountEntry new = { .arrive_ps = span->arrive_ps,
                         .start_ps = span->start_ps,
                         .end_ps = span->end_ps,
                         .stream = span->stream,
                         .released_by = span->released_by,
                         .axis = span->axis,
                         .is_pipeline = span->is_pipeline };

      if (n == N_REMEMBERED)
        drop_oldest (account, rank, span->stream);
      add_span (account, &r->first_span, &new);
    }
  g_assert (account->of_comm[span->axis] != NO_SUM);
  pod_account_row (account, rank)[account->of_comm[span->axis]] += span->end_ps - span->start_ps;
  if (span->end_ps > r->end_ps)
    {
      r->end_ps = span->end_ps;
      r->last_stream = span->stream;
    }
}

/* The first time that the rank holds the most counts. */
static void
watch (PodAccount *account, uint32_t rank, int64_t now_ps)
{
  const uint32_t n = account->n_moving;
  const int64_t *row = pod_account_row (account, rank);
  int64_t *watched = account->watched + (size_t) rank * (n + 2);

  if (row[SUM_BYTES] <= watched[0])
    return;
  watched[0] = row[SUM_BYTES];
  watched[1] = now_ps;
  memcpy (watched + 2, row + account->of_moving, n * sizeof (int64_t));
}

static G_GNUC_NO_INLINE void
add_effects (PodAccount *account, uint32_t rank, const PodAccountEffect *effects, unsigned n, int64_t now_ps)
{
  PodAccountRank *r = &account->ranks[rank];
  int64_t *row = pod_account_row (account, rank);
  int64_t *by_moving = row + account->of_moving;
  int64_t bytes = row[SUM_BYTES];

  for (unsigned i = 0; i < n; i++)
    {
      by_moving[effects[i].moving] += effects[i].bytes;
      bytes += effects[i].bytes;
    }
  row[SUM_BYTES] = bytes;
  r->most_bytes = MAX (r->most_bytes, bytes);
  if (bytes > r->peak_bytes)
    {
      r->peak_bytes = bytes;
      pod_account_see_peak (account, rank, by_moving, now_ps);
    }
  if (account->watched != NULL)
    watch (account, rank, now_ps);
}

/* Most ops have none. */
bool
pod_account_effects (PodAccount *account, uint32_t rank, uint32_t op, bool is_at_end, int64_t now_ps)
{
  const PodAccountEffects *of_op = &account->effects_of_op[op];
  const unsigned n = is_at_end ? of_op->n_at_end : of_op->n_at_start;

  if (n > 0)
    add_effects (account, rank, account->effects + of_op->first + (is_at_end ? of_op->n_at_start : 0), n, now_ps);
  return n > 0;
}

int64_t
pod_account_finish (PodAccount *account, int64_t end_ps)
{
  int64_t time_ps = account->program->steps_overlap ? 0 : end_ps;

  for (uint32_t rank = 0; rank < account->n_ranks; rank++)
    {
      PodAccountRank *r = &account->ranks[rank];

      attribute (account, rank, r->compute_end_ps, r->end_ps, r->last_stream, 0);
      time_ps = MAX (time_ps, MAX (r->end_ps, r->compute_end_ps) - r->begin_ps);
    }
  for (uint32_t rank = 0; rank < account->n_ranks; rank++)
    {
      PodAccountRank *r = &account->ranks[rank];

      pod_account_row (account, rank)[SUM_IDLE] += time_ps - (MAX (r->end_ps, r->compute_end_ps) - r->begin_ps);
    }
  return time_ps;
}

static int64_t
sum_at (const int64_t *row, uint8_t place)
{
  return place == NO_SUM ? 0 : row[place];
}

PodBreakdown *
pod_account_breakdowns (const PodAccount *account)
{
  PodBreakdown *breakdowns = g_new (PodBreakdown, account->n_ranks);

  for (uint32_t rank = 0; rank < account->n_ranks; rank++)
    {
      const int64_t *row = pod_account_row (account, rank);
      PodBreakdown *out = &breakdowns[rank];

      *out = (PodBreakdown){ .compute_ps = row[SUM_COMPUTE],
                             .optimizer_ps = sum_at (row, account->of_phase[POD_PHASE_OPTIMIZER]),
                             .recompute_ps = sum_at (row, account->of_phase[POD_PHASE_RECOMPUTE]),
                             .bubble_ps = row[SUM_BUBBLE],
                             .idle_ps = row[SUM_IDLE] };
      for (unsigned a = 0; a < POD_N_COMM_AXES; a++)
        {
          out->exposed_ps[a] = sum_at (row, account->of_exposed[a]);
          out->comm_ps[a] = sum_at (row, account->of_comm[a]);
        }
    }
  return breakdowns;
}

int64_t
pod_account_rank_own_time (const PodAccount *account, uint32_t rank)
{
  const PodAccountRank *r = &account->ranks[rank];

  return r->end_ps - r->begin_ps - pod_account_row (account, rank)[SUM_WAITED];
}

double
pod_account_memory (const PodAccount *account, uint32_t rank)
{
  return (double) pod_account_row (account, rank)[SUM_BYTES];
}

double
pod_account_peak (const PodAccount *account, uint32_t rank)
{
  return (double) account->ranks[rank].peak_bytes;
}

uint32_t
pod_account_highest (const PodAccount *account, double *out_bytes, int64_t *out_at_ps, const int64_t **out_by_label)
{
  *out_bytes = (double) account->ranks[account->highest_rank].peak_bytes;
  if (out_at_ps != NULL)
    *out_at_ps = account->highest_at_ps;
  if (out_by_label != NULL)
    *out_by_label = account->highest_by_label;
  return account->highest_rank;
}

void
pod_account_drop_spans (PodAccount *account, uint32_t rank)
{
  while (account->ranks[rank].first_span != 0)
    drop_span (account, &account->ranks[rank].first_span);
}

void
pod_account_add_span (PodAccount *account, uint32_t rank, const PodAccountEntry *span)
{
  add_span (account, &account->ranks[rank].first_span, span);
}

/* From the oldest on, so that they are in the same order. */
static void
copy_spans (PodAccount *account, uint32_t index, uint32_t to)
{
  PodAccountEntry span;

  if (index == 0)
    return;
  span = account->spans[index];
  copy_spans (account, span.next, to);
  add_span (account, &account->ranks[to].first_span, &span);
}

void
pod_account_copy (PodAccount *account, uint32_t from, uint32_t to)
{
  PodAccountRank *r = &account->ranks[to];

  g_assert (to > from); /* so that it is not the first of those with its peak */
  pod_account_drop_spans (account, to);
  *r = account->ranks[from];
  r->first_span = 0;
  copy_spans (account, account->ranks[from].first_span, to);
  memcpy (pod_account_row (account, to), pod_account_row (account, from), account->n_sums * sizeof (int64_t));
}
