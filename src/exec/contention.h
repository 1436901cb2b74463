#pragma once

#include "engine/runner.h"
#include "exec/exec.h"

/* Collectives that run beside compute slow it down: kernels of NCCL's kind hold streaming multiprocessors, and all of them move
 * bytes through HBM (a ring reads what it sends and writes what it gets; reductions read twice). A kernel that a collective
 * joins half-way goes on at its new speed, so its end is moved.
 *
 *   time = max(flop_s / (1 - cores taken), memory_s / (1 - HBM taken)) + overhead_s */
typedef struct PodContention PodContention;

/* @kernels: PodKernelUse of the run, borrowed. */
PodContention *pod_contention_new (PodRunner *runner, uint32_t n_ranks, const GArray *kernels);
void pod_contention_free (PodContention *contention);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodContention, pod_contention_free)

/* What a collective takes of a device while it moves, as ratios in units of 2^-20 so that sums are exact. */
typedef struct
{
  uint32_t cores;
  uint32_t hbm;
} PodShare;

#define POD_SHARE_ONE (1U << 20)

/* A compute op began on a rank; it is slowed at once by what is already running there. */
void pod_contention_compute (PodContention *contention, uint32_t rank, uint8_t stream, uint32_t kernel, int64_t now_ps, int64_t end_ps);
void pod_contention_compute_ended (PodContention *contention, uint32_t rank);
void pod_contention_take (PodContention *contention, uint32_t rank, PodShare share, int64_t now_ps);
void pod_contention_give_back (PodContention *contention, uint32_t rank, PodShare share, int64_t now_ps);

/* Puts a rank where another one stands. */
void pod_contention_copy (PodContention *contention, uint32_t from, uint32_t to);
/* Appends POD_CONTENTION_WORDS (element-type int64_t), which decide how a rank goes on, counted from @now_ps; puts it where they say, and
 * carries it over @ps. */
#define POD_CONTENTION_WORDS 9
void pod_contention_save (const PodContention *contention, uint32_t rank, int64_t now_ps, GArray *out);
void pod_contention_load (PodContention *contention, uint32_t rank, const int64_t *state, int64_t now_ps);
void pod_contention_skip (PodContention *contention, uint32_t rank, int64_t ps);
