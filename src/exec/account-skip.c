#include "exec/account-private.h"

#include <string.h>

/* Stretches of a rank that are not simulated, for they are like some that were. */

enum
{
  N_OF_SPAN = 7,
};

/* Room for a span behind those of its stream and of those before: rows stand by stream, the newest first. */
static int64_t *
make_row (GArray *out, guint first, uint8_t stream)
{
  guint at = out->len;

  g_array_set_size (out, out->len + N_OF_SPAN);
  for (; at > first && g_array_index (out, int64_t, at - N_OF_SPAN) > stream; at -= N_OF_SPAN)
    memcpy (&g_array_index (out, int64_t, at), &g_array_index (out, int64_t, at - N_OF_SPAN), N_OF_SPAN * sizeof (int64_t));
  return &g_array_index (out, int64_t, at);
}

void
pod_account_save (const PodAccount *account, uint32_t rank, int64_t now_ps, GArray *out)
{
  const PodAccountRank *r = &account->ranks[rank];
  const int64_t state[] = { r->has_begun, now_ps - r->compute_end_ps, now_ps - r->end_ps, r->last_stream, 0 };
  const guint first = out->len + G_N_ELEMENTS (state);

  g_array_append_vals (out, state, G_N_ELEMENTS (state));
  for (uint32_t i = r->first_span; i != 0; i = account->spans[i].next)
    {
      const PodAccountEntry *span = &account->spans[i];
      int64_t *row;

      /* What is to be given away begins behind the compute that is accounted for */
      if (span->end_ps <= r->compute_end_ps)
        continue;
      row = make_row (out, first, span->stream);
      row[0] = span->stream;
      row[1] = now_ps - span->arrive_ps;
      row[2] = now_ps - span->start_ps;
      row[3] = now_ps - span->end_ps;
      row[4] = span->released_by;
      row[5] = span->axis;
      row[6] = span->is_pipeline;
    }
  g_array_index (out, int64_t, first - 1) = (out->len - first) / N_OF_SPAN;
}

const int64_t *
pod_account_load (PodAccount *account, uint32_t rank, const int64_t *state, int64_t now_ps)
{
  PodAccountRank *r = &account->ranks[rank];
  const int64_t n = state[4];

  r->has_begun = state[0] != 0;
  r->compute_end_ps = now_ps - state[1];
  r->end_ps = now_ps - state[2];
  r->last_stream = (uint8_t) state[3];
  state += 5;
  pod_account_drop_spans (account, rank);
  /* The oldest first, for the newest is found first */
  for (const int64_t *span = state + N_OF_SPAN * n; span > state;)
    {
      span -= N_OF_SPAN;
      pod_account_add_span (account, rank,
                            &(PodAccountEntry){ .arrive_ps = now_ps - span[1],
                                                .start_ps = now_ps - span[2],
                                                .end_ps = now_ps - span[3],
                                                .stream = (uint8_t) span[0],
                                                .released_by = (uint8_t) span[4],
                                                .axis = (uint8_t) span[5],
                                                .is_pipeline = span[6] != 0 });
    }
  return state + N_OF_SPAN * n;
}

void
pod_account_sums (const PodAccount *account, uint32_t rank, GArray *out)
{
  g_array_append_vals (out, pod_account_row (account, rank), account->n_sums);
}

PodAccountMark
pod_account_mark (PodAccount *account, uint32_t rank)
{
  PodAccountRank *r = &account->ranks[rank];
  const PodAccountMark mark = { r->most_bytes, r->peak_bytes };

  r->most_bytes = pod_account_row (account, rank)[SUM_BYTES];
  return mark;
}

int64_t
pod_account_growth (const PodAccount *account, uint32_t rank, const PodAccountStretch *stretch)
{
  return pod_account_row (account, rank)[SUM_BYTES] - stretch->sums[SUM_BYTES];
}

/* The k-th time again a stretch that grows by g reaches k x g more than it did. */
uint32_t
pod_account_n_skips (const PodAccount *account, uint32_t rank, const PodAccountStretch *stretch, int64_t highest_growth, uint32_t n)
{
  const int64_t growth = pod_account_growth (account, rank, stretch);
  const int64_t highest = account->ranks[account->highest_rank].peak_bytes;

  if (growth <= 0 || (stretch->has_peaked && rank == account->highest_rank))
    return n;
  if (!stretch->has_peaked) /* its own peak stands */
    return (uint32_t) MIN (n, (account->ranks[rank].peak_bytes - stretch->most_bytes) / growth);
  if (growth <= highest_growth)
    return n;
  return (uint32_t) MIN (n, (highest - stretch->most_bytes - (rank < account->highest_rank)) / (growth - highest_growth));
}

/* Before its sums are carried on. */
static void
skip_peak (PodAccount *account, uint32_t rank, const PodAccountStretch *stretch, uint32_t n, int64_t ps)
{
  PodAccountRank *r = &account->ranks[rank];
  const int64_t *row = pod_account_row (account, rank);
  const int64_t growth = pod_account_growth (account, rank, stretch);

  r->most_bytes = stretch->most_bytes + MAX (n * growth, growth);
  if (growth <= 0 || !stretch->has_peaked)
    return;
  r->peak_bytes += n * growth;
  if (rank != account->highest_rank)
    return;
  account->highest_at_ps += ps;
  for (uint32_t m = 0; m < account->n_moving; m++)
    account->highest_by_label[account->moving_label[m]] += n * (row[account->of_moving + m] - stretch->sums[account->of_moving + m]);
}

void
pod_account_skip (PodAccount *account, uint32_t rank, const PodAccountStretch *stretch, uint32_t n, int64_t ps)
{
  PodAccountRank *r = &account->ranks[rank];
  int64_t *row = pod_account_row (account, rank);

  skip_peak (account, rank, stretch, n, ps);
  for (unsigned i = 0; i < account->n_sums; i++)
    row[i] += n * (row[i] - stretch->sums[i]);
  r->compute_end_ps += ps;
  r->end_ps += ps;
  for (uint32_t i = r->first_span; i != 0; i = account->spans[i].next)
    {
      account->spans[i].arrive_ps += ps;
      account->spans[i].start_ps += ps;
      account->spans[i].end_ps += ps;
    }
}

/* ---- stretches by what they come to ---- */

/* An outcome: the sums, by_moving's among them, then the most that was held beyond what was at the beginning, when, and by_moving's then. */

void
pod_account_watch (PodAccount *account)
{
  account->watched = g_new0 (int64_t, (size_t) account->n_ranks * (account->n_moving + 2));
}

void
pod_account_begin_stretch (PodAccount *account, uint32_t rank, int64_t now_ps, GArray *sums)
{
  const uint32_t n = account->n_moving;
  int64_t *watched = account->watched + (size_t) rank * (n + 2);

  pod_account_sums (account, rank, sums);
  watched[0] = pod_account_row (account, rank)[SUM_BYTES];
  watched[1] = now_ps;
  memcpy (watched + 2, pod_account_row (account, rank) + account->of_moving, n * sizeof (int64_t));
}

guint
pod_account_n_outcome (const PodAccount *account)
{
  return account->n_sums + 2 + account->n_moving;
}

void
pod_account_end_stretch (const PodAccount *account, uint32_t rank, const int64_t *sums, int64_t begin_ps, int64_t *out)
{
  const uint32_t n = account->n_moving;
  const int64_t *watched = account->watched + (size_t) rank * (n + 2);
  const int64_t *row = pod_account_row (account, rank);
  int64_t *most = out + account->n_sums;

  for (uint32_t i = 0; i < account->n_sums; i++)
    out[i] = row[i] - sums[i];
  most[0] = watched[0] - sums[SUM_BYTES];
  most[1] = watched[1] - begin_ps;
  for (uint32_t m = 0; m < n; m++)
    most[2 + m] = watched[2 + m] - sums[account->of_moving + m];
}

/* Peaks of the stretches; by_moving is still that of their beginning. Where memory grows the last one reaches the most. */
static void
add_peak (PodAccount *account, uint32_t rank, const int64_t *outcome, int64_t begin_ps, int64_t ps, uint32_t n)
{
  const uint32_t n_moving = account->n_moving;
  const int64_t *most = outcome + account->n_sums;
  const int64_t n_before = outcome[SUM_BYTES] > 0 ? n - 1 : 0;
  PodAccountRank *r = &account->ranks[rank];
  int64_t *row = pod_account_row (account, rank);
  int64_t *by_moving = row + account->of_moving;
  const int64_t bytes = row[SUM_BYTES] + n_before * outcome[SUM_BYTES] + most[0];

  r->most_bytes = MAX (r->most_bytes, bytes);
  if (bytes <= r->peak_bytes)
    return;
  r->peak_bytes = bytes;
  for (uint32_t m = 0; m < n_moving; m++)
    by_moving[m] += n_before * outcome[account->of_moving + m] + most[2 + m];
  pod_account_see_peak (account, rank, by_moving, begin_ps + n_before * ps + most[1]);
  for (uint32_t m = 0; m < n_moving; m++)
    by_moving[m] -= n_before * outcome[account->of_moving + m] + most[2 + m];
}

void
pod_account_add_stretches (PodAccount *account, uint32_t rank, const int64_t *outcome, int64_t begin_ps, int64_t ps, uint32_t n)
{
  int64_t *row = pod_account_row (account, rank);

  add_peak (account, rank, outcome, begin_ps, ps, n);
  for (unsigned i = 0; i < account->n_sums; i++)
    row[i] += n * outcome[i];
}

void
pod_account_join_stretch (const PodAccount *account, int64_t *outcome, const int64_t *next, int64_t begin_ps)
{
  const uint32_t n = account->n_moving;
  int64_t *most = outcome + account->n_sums;
  const int64_t *next_most = next + account->n_sums;

  if (outcome[SUM_BYTES] + next_most[0] > most[0])
    {
      most[0] = outcome[SUM_BYTES] + next_most[0];
      most[1] = begin_ps + next_most[1];
      for (uint32_t m = 0; m < n; m++)
        most[2 + m] = outcome[account->of_moving + m] + next_most[2 + m];
    }
  for (uint32_t i = 0; i < account->n_sums; i++)
    outcome[i] += next[i];
}
