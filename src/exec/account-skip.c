#include "exec/account-private.h"

#include <string.h>

/* Stretches of a rank that are not simulated, for they are like some that were. */

/* Places of sums: the breakdown's, then these, then by_moving's. */
enum
{
  SUM_WAITED = sizeof (PodBreakdown) / sizeof (int64_t),
  SUM_BYTES,
  N_SUMS,
};

void
pod_account_save (const PodAccount *account, uint32_t rank, int64_t now_ps, GArray *out)
{
  const PodAccountRank *r = &account->ranks[rank];
  const int64_t state[] = { r->has_begun, now_ps - r->compute_end_ps, now_ps - r->end_ps, r->last_stream };

  g_array_append_vals (out, state, G_N_ELEMENTS (state));
  for (unsigned s = 0; s < POD_N_STREAMS && r->first_span != 0; s++)
    for (const PodAccountEntry *span = pod_account_newest (account, r->first_span, (uint8_t) s); span != NULL; span = pod_account_newest (account, span->next, (uint8_t) s))
      {
        const int64_t seen[] = { s, now_ps - span->arrive_ps, now_ps - span->start_ps, now_ps - span->end_ps, span->released_by, span->axis, span->is_pipeline };

        /* What is to be given away begins behind the compute that is accounted for */
        if (span->end_ps > r->compute_end_ps)
          g_array_append_vals (out, seen, G_N_ELEMENTS (seen));
      }
}

void
pod_account_sums (const PodAccount *account, uint32_t rank, GArray *out)
{
  const int64_t own[] = { account->ranks[rank].waited_ps, account->ranks[rank].bytes };

  G_STATIC_ASSERT (sizeof (PodBreakdown) % sizeof (int64_t) == 0 && G_N_ELEMENTS (own) == N_SUMS - SUM_WAITED);
  g_array_append_vals (out, &account->breakdowns[rank], SUM_WAITED);
  g_array_append_vals (out, own, G_N_ELEMENTS (own));
  g_array_append_vals (out, account->by_moving + (size_t) rank * account->n_moving, account->n_moving);
}

PodAccountMark
pod_account_mark (PodAccount *account, uint32_t rank)
{
  PodAccountRank *r = &account->ranks[rank];
  const PodAccountMark mark = { r->most_bytes, r->n_peaks };

  r->most_bytes = r->bytes;
  return mark;
}

int64_t
pod_account_growth (const PodAccount *account, uint32_t rank, const PodAccountStretch *stretch)
{
  return account->ranks[rank].bytes - stretch->sums[SUM_BYTES];
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

static void
skip_memory (PodAccount *account, uint32_t rank, const PodAccountStretch *stretch, uint32_t n, int64_t ps)
{
  PodAccountRank *r = &account->ranks[rank];
  int64_t *by_moving = account->by_moving + (size_t) rank * account->n_moving;
  const int64_t growth = pod_account_growth (account, rank, stretch);

  for (uint32_t m = 0; m < account->n_moving; m++)
    {
      const int64_t more = n * (by_moving[m] - stretch->sums[N_SUMS + m]);

      by_moving[m] += more;
      if (growth > 0 && stretch->has_peaked && rank == account->highest_rank)
        account->highest_by_label[account->moving_label[m]] += more;
    }
  r->bytes += n * growth;
  r->most_bytes = stretch->most_bytes + MAX (n * growth, growth);
  if (growth <= 0 || !stretch->has_peaked)
    return;
  r->n_peaks++;
  r->peak_bytes += n * growth;
  r->peak_at_ps += ps;
}

void
pod_account_skip (PodAccount *account, uint32_t rank, const PodAccountStretch *stretch, uint32_t n, int64_t ps)
{
  PodAccountRank *r = &account->ranks[rank];
  int64_t now[SUM_WAITED + 1];

  skip_memory (account, rank, stretch, n, ps);
  memcpy (now, &account->breakdowns[rank], sizeof (PodBreakdown));
  now[SUM_WAITED] = r->waited_ps;
  for (unsigned i = 0; i <= SUM_WAITED; i++)
    now[i] += n * (now[i] - stretch->sums[i]);
  memcpy (&account->breakdowns[rank], now, sizeof (PodBreakdown));
  r->waited_ps = now[SUM_WAITED];
  r->compute_end_ps += ps;
  r->end_ps += ps;
  for (uint32_t i = r->first_span; i != 0; i = account->spans[i].next)
    {
      account->spans[i].arrive_ps += ps;
      account->spans[i].start_ps += ps;
      account->spans[i].end_ps += ps;
    }
}
