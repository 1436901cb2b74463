#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* Pipeline schedules: in which order each rank of a pipeline runs the forward and backward of its microbatches.
 *
 * The model is cut into parts, in model order; each rank holds one part or more (its chunks). p = ranks of the pipeline, v =
 * chunks of a rank, m = microbatches, F = forward, I = gradient of the input, W = gradient of the weights, B = I and W at once.
 * Bubble: idle time of a rank when parts are equal and transfers cost nothing.
 *
 *   kind           parts, and the rank of part k          bubble
 *   gpipe          p; k                                   (p-1)(F+B)        arXiv 1811.06965
 *   1f1b           p; k                                   (p-1)(F+B)        PipeDream-flush, arXiv 2104.04473
 *   interleaved    p v; k mod p                           (p-1)(F+B)/v      arXiv 2104.04473
 *   breadth-first  p v; k mod p                           (p-1)(F+B)/v      arXiv 2211.05953
 *   zb-h1          p; k                                   (p-1)(F+I-W)      arXiv 2401.10241
 *   zb-h2          p; k                                   (p-1)(F+I-2W)     arXiv 2401.10241; steps overlap
 *   zb-v           2p; k, then back: 2p-1-k               0 if F = I = W    arXiv 2401.10241; steps overlap
 *   dualpipe       p, each held twice: k, and p-1-k       (p/2-1)(FB+B-3W)  arXiv 2412.19437, FB a forward and a backward at once
 *   dualpipe-v     2p; as zb-v                            (p-1)(FB+B-3W)    the half of dualpipe (F and B of a chunk)
 */

typedef enum
{
  POD_SCHEDULE_1F1B,
  POD_SCHEDULE_GPIPE,
  POD_SCHEDULE_INTERLEAVED,
  POD_SCHEDULE_BREADTH_FIRST,
  POD_SCHEDULE_ZB_H1,
  POD_SCHEDULE_ZB_H2,
  POD_SCHEDULE_ZB_V,
  POD_SCHEDULE_DUALPIPE,
  POD_SCHEDULE_DUALPIPE_V,
  POD_SCHEDULE_FILE,
  POD_N_SCHEDULES
} PodScheduleKind;

extern const char *const pod_schedule_names[POD_N_SCHEDULES]; /* NULL for FILE: ends the list */

typedef enum
{
  POD_SLOT_FORWARD,
  POD_SLOT_BACKWARD, /* gradients of input and weights */
  POD_SLOT_INPUT,    /* of the input alone: the rank before waits for it */
  POD_SLOT_WEIGHT,   /* of the weights, later: nobody waits for it but the optimizer */
  POD_N_SLOTS
} PodSlotKind;

typedef struct
{
  uint8_t kind;        /* PodSlotKind */
  uint8_t chunk;
  bool is_paired;      /* a forward that runs together with the backward after it: each hides the other's communication */
  uint32_t microbatch;
} PodSlot;

#define POD_MAX_CHUNKS 64

typedef struct
{
  PodScheduleKind kind;
  uint32_t n_ranks;        /* p */
  uint32_t n_chunks;       /* v */
  uint32_t n_parts;        /* of the model */
  uint32_t n_microbatches;
  bool is_v;               /* chunk 1 goes back through the ranks: the last rank's chunks are neighbours */
  bool is_two_way;         /* chunk 1 is another copy of the model, for the second half of the microbatches, from last rank to first */
  GPtrArray *slots;        /* (element-type GArray of PodSlot) by rank, in order */
} PodSchedule;

/* Makes a schedule; @n_chunks counts only for interleaved and breadth-first (at least 2) and must otherwise be what the kind has (0:
 * whatever it has). Errors INFEASIBLE name the numbers that do not fit. Returns: (transfer full). O(ranks x chunks x microbatches). */
PodSchedule *pod_schedule_new (PodScheduleKind kind, uint32_t n_ranks, uint32_t n_chunks, uint32_t n_microbatches, GError **error);
/* The same without its slots: what fits, and how many parts there are. O(1) */
PodSchedule *pod_schedule_new_empty (PodScheduleKind kind, uint32_t n_ranks, uint32_t n_chunks, uint32_t n_microbatches, GError **error);

/* Reads a schedule: a line per rank, cells separated by commas, each PART KIND MICROBATCH as in "0F0,0F1,0I0,0W0,0B1" (B: both
 * gradients), empty cells and lines beginning with # skipped. Parts go to ranks as interleaved (k mod p) or as zb-v. Errors: INVALID with
 * file and line; INFEASIBLE where a slot is missing or stands twice, or where ranks wait for each other in a cycle, which is told.
 * Returns: (transfer full) */
PodSchedule *pod_schedule_load (const char *file, uint32_t n_ranks, uint32_t n_microbatches, GError **error);

/* Each backward runs together with the forward that followed it, which may not be of its own microbatch and part: in 1F1B without stages and interleaved
 * all but the first forwards and the last backwards. A rank holds the activations of one microbatch more. Returns: the number of pairs */
uint32_t pod_schedule_pair (PodSchedule *schedule);

void pod_schedule_free (PodSchedule *schedule);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodSchedule, pod_schedule_free)

/* Part of the model that a rank holds as this chunk. */
uint32_t pod_schedule_part (const PodSchedule *schedule, uint32_t rank, uint32_t chunk);
/* Which rank and chunk get the activations of this one; false: it ends the model. The gradient comes back from there. */
bool pod_schedule_next (const PodSchedule *schedule, uint32_t rank, uint32_t chunk, uint32_t *out_rank, uint32_t *out_chunk);
/* Whether activations flow from the rank of higher number to the lower (chunk 1 of V and two-way schedules). */
bool pod_schedule_is_back (const PodSchedule *schedule, uint32_t chunk);
/* Whether chunk @chunk runs @microbatch at all (two-way schedules share them out). */
bool pod_schedule_has (const PodSchedule *schedule, uint32_t chunk, uint32_t microbatch);

/* Whether a rank begins its next step as soon as it ends this one, as zb-h2 and zb-v need: their optimizer waits for no other rank, and
 * undoes its step where the gradients turn out bad (post-validation, arXiv 2401.10241). */
bool pod_schedule_steps_overlap (const PodSchedule *schedule);

/* Every slot there once, in an order that ends: INFEASIBLE tells the missing slot or the cycle of waiting. O(slots). */
bool pod_schedule_check (const PodSchedule *schedule, GError **error);
