#include "exec/contention.h"

#include <math.h>
#include <string.h>

/* Collectives never take all of a device: compute keeps at least a quarter of it. */
#define MOST_TAKEN (POD_SHARE_ONE / 4 * 3)

/* What ranks compute: a kernel and what is waited for it in its block, one of few. */
typedef struct
{
  double wait_ps; /* for the host, which nothing contends for */
  uint32_t kernel;
  uint32_t next;  /* of the same kernel, NO_KIND none */
} Kind;

#define NO_KIND UINT32_MAX

typedef struct
{
  int64_t since_ps;
  double left;     /* of the op at since_ps, 1 = all */
  double whole_ps; /* time of the whole op at the present speed */
  uint32_t cores;  /* sum of the shares that run, 2^-20: each at most 1, and no more of them than streams */
  uint32_t hbm;
  uint32_t kind;
  uint8_t stream;
  bool is_computing;
} Rank;

struct PodContention
{
  PodRunner *runner;
  const GArray *kernels;
  Rank *ranks;
  GArray *kinds;         /* (element-type Kind) */
  uint32_t *first_kind;  /* by kernel */
};

PodContention *
pod_contention_new (PodRunner *runner, uint32_t n_ranks, const GArray *kernels)
{
  PodContention *contention = g_new0 (PodContention, 1);

  contention->runner = runner;
  contention->kernels = kernels;
  contention->ranks = g_new0 (Rank, n_ranks);
  contention->kinds = g_array_new (FALSE, FALSE, sizeof (Kind));
  contention->first_kind = g_new (uint32_t, kernels->len + 1);
  memset (contention->first_kind, 0xff, (kernels->len + 1) * sizeof (uint32_t));
  return contention;
}

void
pod_contention_free (PodContention *contention)
{
  if (contention == NULL)
    return;
  g_array_unref (contention->kinds);
  g_free (contention->first_kind);
  g_free (contention->ranks);
  g_free (contention);
}

static const Kind *
kind_at (const PodContention *contention, uint32_t index)
{
  return &g_array_index (contention->kinds, Kind, index);
}

static uint32_t
find_kind (PodContention *contention, uint32_t kernel, double wait_ps)
{
  Kind new;

  for (uint32_t k = contention->first_kind[kernel]; k != NO_KIND; k = kind_at (contention, k)->next)
    if (kind_at (contention, k)->wait_ps == wait_ps)
      return k;
  new = (Kind){ wait_ps, kernel, contention->first_kind[kernel] };
  g_array_append_val (contention->kinds, new);
  return contention->first_kind[kernel] = contention->kinds->len - 1;
}

static double
rest (uint64_t taken)
{
  return 1 - (double) MIN (taken, MOST_TAKEN) / POD_SHARE_ONE;
}

static double
contended_ps (const PodContention *contention, const Rank *rank)
{
  const Kind *kind = kind_at (contention, rank->kind);
  const PodKernelTime *time = &g_array_index (contention->kernels, PodKernelUse, kind->kernel).time;

  return (MAX (time->flop_s / rest (rank->cores), time->memory_s / rest (rank->hbm)) + (time->time_s - MAX (time->flop_s, time->memory_s))) * 1e12 + kind->wait_ps;
}

/* Moves the end of what the rank computes to where its present speed brings it. */
static void
retime (PodContention *contention, uint32_t index, int64_t now_ps)
{
  Rank *rank = &contention->ranks[index];
  double whole_ps;

  if (!rank->is_computing || rank->whole_ps <= 0)
    return;
  whole_ps = contended_ps (contention, rank);
  if (whole_ps == rank->whole_ps) /* changes nothing: the other limit holds */
    return;
  rank->left = MAX (0, rank->left - (double) (now_ps - rank->since_ps) / rank->whole_ps);
  rank->since_ps = now_ps;
  rank->whole_ps = whole_ps;
  pod_runner_retime (contention->runner, index, rank->stream, now_ps + llround (rank->left * whole_ps));
}

void
pod_contention_compute (PodContention *contention, uint32_t index, uint8_t stream, uint32_t kernel, int64_t now_ps, int64_t end_ps)
{
  Rank *rank = &contention->ranks[index];
  double wait_ps;

  rank->is_computing = true;
  rank->stream = stream;
  rank->since_ps = now_ps;
  rank->left = 1;
  rank->whole_ps = (double) (end_ps - now_ps);
  wait_ps = rank->whole_ps - g_array_index (contention->kernels, PodKernelUse, kernel).time.time_s * 1e12;
  rank->kind = find_kind (contention, kernel, wait_ps < 1 ? 0 : wait_ps); /* less is rounding */
  if (rank->cores > 0 || rank->hbm > 0)
    retime (contention, index, now_ps);
}

void
pod_contention_compute_ended (PodContention *contention, uint32_t index)
{
  contention->ranks[index].is_computing = false;
}

void
pod_contention_take (PodContention *contention, uint32_t index, PodShare share, int64_t now_ps)
{
  contention->ranks[index].cores += share.cores;
  contention->ranks[index].hbm += share.hbm;
  retime (contention, index, now_ps);
}

void
pod_contention_give_back (PodContention *contention, uint32_t index, PodShare share, int64_t now_ps)
{
  contention->ranks[index].cores -= share.cores;
  contention->ranks[index].hbm -= share.hbm;
  retime (contention, index, now_ps);
}

void
pod_contention_copy (PodContention *contention, uint32_t from, uint32_t to)
{
  contention->ranks[to] = contention->ranks[from];
}

void
pod_contention_save (const PodContention *contention, uint32_t index, int64_t now_ps, GArray *out)
{
  const Rank *rank = &contention->ranks[index];
  int64_t state[POD_CONTENTION_WORDS] = { rank->cores, rank->hbm, rank->is_computing };

  if (rank->is_computing)
    {
      state[3] = rank->stream;
      state[4] = kind_at (contention, rank->kind)->kernel;
      state[5] = now_ps - rank->since_ps;
      memcpy (&state[6], &rank->left, sizeof (double));
      memcpy (&state[7], &rank->whole_ps, sizeof (double));
      memcpy (&state[8], &kind_at (contention, rank->kind)->wait_ps, sizeof (double));
    }
  g_array_append_vals (out, state, G_N_ELEMENTS (state));
}

void
pod_contention_load (PodContention *contention, uint32_t index, const int64_t *state, int64_t now_ps)
{
  Rank *rank = &contention->ranks[index];
  double wait_ps;

  *rank = (Rank){ .cores = (uint32_t) state[0], .hbm = (uint32_t) state[1], .is_computing = state[2] != 0 };
  if (!rank->is_computing)
    return;
  rank->stream = (uint8_t) state[3];
  rank->since_ps = now_ps - state[5];
  memcpy (&rank->left, &state[6], sizeof (double));
  memcpy (&rank->whole_ps, &state[7], sizeof (double));
  memcpy (&wait_ps, &state[8], sizeof (double));
  rank->kind = find_kind (contention, (uint32_t) state[4], wait_ps);
}

void
pod_contention_skip (PodContention *contention, uint32_t index, int64_t ps)
{
  contention->ranks[index].since_ps += ps;
}
