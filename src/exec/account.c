#include "exec/account.h"

#include <string.h>

/* The last stretches of each stream are kept (ops that follow each other without a gap are one): attribution follows who
 * released whom a few steps back. */
#define N_REMEMBERED 4
#define NO_LANE 0xff

typedef struct
{
  PodBreakdown breakdown;
  int64_t begin_ps;        /* where the rank's step begins: 0, or its first compute when steps overlap */
  bool has_begun;
  int64_t compute_end_ps;  /* up to here compute is accounted for: the end of the last op, or the start of the present one */
  int64_t waited_ps;       /* in collectives, for ranks that came later */
  int64_t end_ps;          /* of the last op of any kind */
  uint8_t last_stream;     /* which stream that was */
  int64_t bytes;
  int64_t peak_bytes;
  int64_t peak_at_ps;
} Rank;

typedef struct
{
  int64_t bytes;
  uint32_t label;
} Effect;

/* Of an op: at its start, then at its end. */
typedef struct
{
  uint32_t first;
  uint16_t n_at_start;
  uint16_t n_at_end;
} Effects;

struct PodAccount
{
  const PodProgram *program;
  uint32_t n_ranks;
  uint32_t n_labels;
  Effects *effects_of_op;
  Effect *effects;
  Rank *ranks;
  unsigned n_lanes;       /* streams that the program has collectives or copies on */
  uint8_t lane_of_stream[POD_N_STREAMS]; /* NO_LANE none */
  PodAccountSpan *spans;  /* [rank][lane][N_REMEMBERED], newest first */
  int64_t *by_label;      /* [rank][label] now */
  int64_t *peak_by_label; /* [rank][label] at the peak */
  int64_t highest_bytes;  /* of all peaks */
};

/* Of streams without a lane. */
static const PodAccountSpan no_spans[N_REMEMBERED];

static void
make_lanes (PodAccount *account)
{
  const GArray *ops = account->program->ops;

  memset (account->lane_of_stream, NO_LANE, sizeof account->lane_of_stream);
  for (guint i = 0; i < ops->len; i++)
    {
      const PodOp *op = &g_array_index (ops, PodOp, i);

      if (op->kind != POD_OP_COMPUTE && account->lane_of_stream[op->stream] == NO_LANE)
        account->lane_of_stream[op->stream] = (uint8_t) account->n_lanes++;
    }
  account->spans = g_new0 (PodAccountSpan, (size_t) account->n_ranks * account->n_lanes * N_REMEMBERED);
}

static uint16_t
list_effects (PodAccount *account, const PodOp *op, bool is_at_end, uint32_t *n)
{
  uint16_t n_listed = 0;

  for (uint32_t i = 0; i < op->n_effects; i++)
    {
      const PodEffect *effect = &g_array_index (account->program->effects, PodEffect, op->first_effect + i);

      if (effect->is_at_end != is_at_end)
        continue;
      account->effects[(*n)++] = (Effect){ .bytes = effect->bytes, .label = effect->label };
      n_listed++;
    }
  return n_listed;
}

static void
make_effects (PodAccount *account)
{
  const PodProgram *program = account->program;
  uint32_t n = 0;

  account->effects_of_op = g_new (Effects, program->ops->len + 1);
  account->effects = g_new (Effect, program->effects->len + 1);
  for (guint i = 0; i < program->ops->len; i++)
    {
      const PodOp *op = &g_array_index (program->ops, PodOp, i);

      g_assert (op->n_effects <= UINT16_MAX);
      account->effects_of_op[i].first = n;
      account->effects_of_op[i].n_at_start = list_effects (account, op, false, &n);
      account->effects_of_op[i].n_at_end = list_effects (account, op, true, &n);
    }
}

PodAccount *
pod_account_new (const PodProgram *program, uint32_t n_ranks, const uint32_t *class_of)
{
  PodAccount *account = g_new0 (PodAccount, 1);

  account->program = program;
  account->n_ranks = n_ranks;
  account->n_labels = program->labels->len;
  make_effects (account);
  account->ranks = g_new0 (Rank, n_ranks);
  make_lanes (account);
  account->by_label = g_new0 (int64_t, (size_t) n_ranks * account->n_labels);
  account->peak_by_label = g_new0 (int64_t, (size_t) n_ranks * account->n_labels);
  for (uint32_t rank = 0; rank < n_ranks; rank++)
    {
      const PodProgramClass *class = g_ptr_array_index (program->classes, class_of[rank]);
      int64_t *by_label = account->by_label + (size_t) rank * account->n_labels;

      for (uint32_t l = 0; l < account->n_labels; l++)
        {
          by_label[l] = (int64_t) class->static_bytes[l];
          account->ranks[rank].bytes += by_label[l];
        }
      account->ranks[rank].peak_bytes = account->ranks[rank].bytes;
      account->highest_bytes = MAX (account->highest_bytes, account->ranks[rank].bytes);
      if (account->n_labels > 0)
        memcpy (account->peak_by_label + (size_t) rank * account->n_labels, by_label, account->n_labels * sizeof *by_label);
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
  g_free (account->spans);
  g_free (account->by_label);
  g_free (account->peak_by_label);
  g_free (account);
}

static PodAccountSpan *
lane_at (const PodAccount *account, uint32_t rank, unsigned lane)
{
  return account->spans + ((size_t) rank * account->n_lanes + lane) * N_REMEMBERED;
}

static const PodAccountSpan *
spans_of (const PodAccount *account, uint32_t rank, uint8_t stream)
{
  const uint8_t lane = account->lane_of_stream[stream];

  return lane == NO_LANE ? no_spans : lane_at (account, rank, lane);
}

/* Gives [from, to) away, where an op of @stream held up what came next: its bytes moving, then its wait for a peer, then what
 * held it up itself. */
static void
attribute (const PodAccount *account, uint32_t rank, int64_t from_ps, int64_t to_ps, uint8_t stream, unsigned depth)
{
  Rank *r = &account->ranks[rank];
  PodBreakdown *out = &r->breakdown;
  const PodAccountSpan *spans;
  const PodAccountSpan *span = NULL;
  int64_t end_ps;
  int64_t edge_ps;

  if (to_ps <= from_ps)
    return;
  spans = spans_of (account, rank, stream);
  for (unsigned i = 0; i < N_REMEMBERED && span == NULL; i++)
    if (spans[i].arrive_ps < to_ps && spans[i].end_ps > from_ps)
      span = &spans[i];
  if (stream == POD_STREAM_COMPUTE || span == NULL || depth > POD_N_STREAMS * N_REMEMBERED)
    {
      out->idle_ps += to_ps - from_ps;
      return;
    }
  end_ps = MIN (span->end_ps, to_ps);
  out->idle_ps += to_ps - end_ps;
  edge_ps = MIN (MAX (from_ps, span->start_ps), end_ps);
  out->exposed_ps[span->axis] += end_ps - edge_ps;
  end_ps = edge_ps;
  edge_ps = MAX (from_ps, span->arrive_ps);
  if (edge_ps < end_ps)
    {
      if (span->is_pipeline)
        out->bubble_ps += end_ps - edge_ps;
      else
        {
          out->exposed_ps[span->axis] += end_ps - edge_ps;
          r->waited_ps += end_ps - edge_ps;
        }
      end_ps = edge_ps;
    }
  attribute (account, rank, from_ps, end_ps, span->released_by, depth + 1);
}

/* Whether @next follows @last on its stream without a gap, so that both are one stretch of bytes moving. */
static bool
continues (const PodAccountSpan *last, const PodAccountSpan *next)
{
  return next->released_by == next->stream && next->axis == last->axis && next->start_ps == next->arrive_ps && next->start_ps == last->end_ps
         && last->end_ps > 0;
}

void
pod_account_compute (PodAccount *account, uint32_t rank, uint8_t released_by, int64_t now_ps)
{
  Rank *r = &account->ranks[rank];

  if (!r->has_begun && account->program->steps_overlap && spans_of (account, rank, released_by)->is_pipeline)
    r->begin_ps = r->compute_end_ps = now_ps; /* the step before was still being run while it waited for its first activations */
  r->has_begun = true;
  attribute (account, rank, r->compute_end_ps, now_ps, released_by, 0);
  r->compute_end_ps = now_ps;
}

void
pod_account_compute_ended (PodAccount *account, uint32_t rank, PodPhase phase, int64_t now_ps)
{
  Rank *r = &account->ranks[rank];
  const int64_t took_ps = now_ps - r->compute_end_ps;

  r->breakdown.compute_ps += took_ps;
  if (phase == POD_PHASE_OPTIMIZER)
    r->breakdown.optimizer_ps += took_ps;
  if (phase == POD_PHASE_RECOMPUTE)
    r->breakdown.recompute_ps += took_ps;
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
  Rank *r = &account->ranks[rank];
  PodAccountSpan *spans = lane_at (account, rank, account->lane_of_stream[span->stream]);

  if (continues (&spans[0], span))
    spans[0].end_ps = span->end_ps;
  else
    {
      memmove (spans + 1, spans, (N_REMEMBERED - 1) * sizeof *spans);
      spans[0] = *span;
    }
  r->breakdown.comm_ps[span->axis] += span->end_ps - span->start_ps;
  if (span->end_ps > r->end_ps)
    {
      r->end_ps = span->end_ps;
      r->last_stream = span->stream;
    }
}

bool
pod_account_effects (PodAccount *account, uint32_t rank, uint32_t op, bool is_at_end, int64_t now_ps)
{
  const Effects *of_op = &account->effects_of_op[op];
  const Effect *effects = account->effects + of_op->first + (is_at_end ? of_op->n_at_start : 0);
  const unsigned n = is_at_end ? of_op->n_at_end : of_op->n_at_start;
  Rank *r = &account->ranks[rank];
  int64_t *by_label = account->by_label + (size_t) rank * account->n_labels;

  if (n == 0)
    return false;
  for (unsigned i = 0; i < n; i++)
    {
      by_label[effects[i].label] += effects[i].bytes;
      r->bytes += effects[i].bytes;
    }
  if (r->bytes > r->peak_bytes)
    {
      r->peak_bytes = r->bytes;
      account->highest_bytes = MAX (account->highest_bytes, r->bytes);
      r->peak_at_ps = now_ps;
      memcpy (account->peak_by_label + (size_t) rank * account->n_labels, by_label, account->n_labels * sizeof *by_label);
    }
  return true;
}

int64_t
pod_account_finish (PodAccount *account, int64_t end_ps)
{
  int64_t time_ps = account->program->steps_overlap ? 0 : end_ps;

  for (uint32_t rank = 0; rank < account->n_ranks; rank++)
    {
      Rank *r = &account->ranks[rank];

      attribute (account, rank, r->compute_end_ps, r->end_ps, r->last_stream, 0);
      time_ps = MAX (time_ps, MAX (r->end_ps, r->compute_end_ps) - r->begin_ps);
    }
  for (uint32_t rank = 0; rank < account->n_ranks; rank++)
    {
      Rank *r = &account->ranks[rank];

      r->breakdown.idle_ps += time_ps - (MAX (r->end_ps, r->compute_end_ps) - r->begin_ps);
    }
  return time_ps;
}

void
pod_account_breakdown (const PodAccount *account, uint32_t rank, PodBreakdown *out)
{
  *out = account->ranks[rank].breakdown;
}

int64_t
pod_account_rank_own_time (const PodAccount *account, uint32_t rank)
{
  const Rank *r = &account->ranks[rank];

  return r->end_ps - r->begin_ps - r->waited_ps;
}

double
pod_account_memory (const PodAccount *account, uint32_t rank)
{
  return (double) account->ranks[rank].bytes;
}

double
pod_account_highest (const PodAccount *account)
{
  return (double) account->highest_bytes;
}

double
pod_account_peak (const PodAccount *account, uint32_t rank, int64_t *out_at_ps, const int64_t **out_by_label)
{
  if (out_at_ps != NULL)
    *out_at_ps = account->ranks[rank].peak_at_ps;
  if (out_by_label != NULL)
    *out_by_label = account->peak_by_label + (size_t) rank * account->n_labels;
  return (double) account->ranks[rank].peak_bytes;
}

void
pod_account_copy (PodAccount *account, uint32_t from, uint32_t to)
{
  const size_t n = account->n_labels;

  account->ranks[to] = account->ranks[from];
  if (account->n_lanes > 0)
    memcpy (lane_at (account, to, 0), lane_at (account, from, 0), account->n_lanes * N_REMEMBERED * sizeof (PodAccountSpan));
  if (n == 0)
    return;
  memcpy (account->by_label + to * n, account->by_label + from * n, n * sizeof (int64_t));
  memcpy (account->peak_by_label + to * n, account->peak_by_label + from * n, n * sizeof (int64_t));
}

/* -- skipping ---------------------------------------------------------------------------------------------------------------------- */

enum
{
  N_SUMS = sizeof (PodBreakdown) / sizeof (int64_t) + 1,
};

void
pod_account_save (const PodAccount *account, uint32_t rank, int64_t now_ps, GArray *out)
{
  const Rank *r = &account->ranks[rank];
  const int64_t state[] = { r->has_begun, now_ps - r->compute_end_ps, now_ps - r->end_ps, r->last_stream, r->bytes, r->peak_bytes };

  g_array_append_vals (out, state, G_N_ELEMENTS (state));
  g_array_append_vals (out, account->by_label + (size_t) rank * account->n_labels, account->n_labels);
  for (unsigned s = 0; s < POD_N_STREAMS; s++)
    for (unsigned i = 0; i < N_REMEMBERED; i++)
      {
        const PodAccountSpan *span = &spans_of (account, rank, (uint8_t) s)[i];
        const int64_t seen[] = { s, now_ps - span->arrive_ps, now_ps - span->start_ps, now_ps - span->end_ps, span->released_by, span->axis, span->is_pipeline };

        /* What is to be given away begins behind the compute that is accounted for */
        if (span->end_ps > r->compute_end_ps)
          g_array_append_vals (out, seen, G_N_ELEMENTS (seen));
      }
}

void
pod_account_sums (const PodAccount *account, uint32_t rank, GArray *out)
{
  G_STATIC_ASSERT (sizeof (PodBreakdown) % sizeof (int64_t) == 0);
  g_array_append_vals (out, &account->ranks[rank].breakdown, N_SUMS - 1);
  g_array_append_val (out, account->ranks[rank].waited_ps);
}

void
pod_account_skip (PodAccount *account, uint32_t rank, const int64_t *sums, uint32_t n, int64_t ps)
{
  Rank *r = &account->ranks[rank];
  PodAccountSpan *spans = lane_at (account, rank, 0);
  int64_t now[N_SUMS];

  memcpy (now, &r->breakdown, sizeof (PodBreakdown));
  now[N_SUMS - 1] = r->waited_ps;
  for (unsigned i = 0; i < N_SUMS; i++)
    now[i] += n * (now[i] - sums[i]);
  memcpy (&r->breakdown, now, sizeof (PodBreakdown));
  r->waited_ps = now[N_SUMS - 1];
  r->compute_end_ps += ps;
  r->end_ps += ps;
  for (unsigned i = 0; i < account->n_lanes * N_REMEMBERED; i++)
    if (spans[i].end_ps > 0)
      {
        spans[i].arrive_ps += ps;
        spans[i].start_ps += ps;
        spans[i].end_ps += ps;
      }
}
