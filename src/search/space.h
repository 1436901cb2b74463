#pragma once

#include "search/grid.h"
#include "scenario/scenario.h"

/* The space of a search: every layout of the machines, times every combination of the options that vary. A candidate is a number below
 * n_candidates: layout x combinations + combination, so that a space of millions takes the memory of its layouts. */

typedef struct
{
  guint machine;
  PodLayout layout; /* degrees, vpp, ep, etp */
} PodSpaceLayout;

typedef struct
{
  PodScenario *base;      /* (owned) what does not vary */
  GPtrArray *machines;    /* (element-type PodTopology) */
  PodModel *model;
  PodGrid *degrees;       /* what limits dp, fsdp, tp, cp, pp, vpp, ep, etp; "topology" */
  PodGrid *options;       /* what else varies */
  GArray *layouts;        /* PodSpaceLayout */
  GArray *least;          /* guint by dimension of options: the value that all others only add work or waiting to; G_MAXUINT: none is known */
  uint64_t n_combinations;
  uint64_t n_candidates;
} PodSpace;

/* The layouts of @base's machine with the options that @limits names ("tp=1,2,4,8", "recompute=none,full"; (element-type utf8)), and by default
 * with those of pod_space_defaults that @base does not say. Layouts use every device, or with --allow-idle up to all. Errors: of the
 * limits, machine and model; LIMIT beyond 2^32 layouts or 10^9 candidates. Returns: (transfer full). O(layouts) */
PodSpace *pod_space_new (const PodScenario *base, const GPtrArray *limits, GError **error);
void pod_space_free (PodSpace *space);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodSpace, pod_space_free)

/* What varies where nobody says otherwise: key and list, ends with NULL. */
typedef struct
{
  const char *key;
  const char *list;
} PodSpaceDefault;

extern const PodSpaceDefault pod_space_defaults[];

/* Whether another candidate of the space says the same: an option without effect on this layout has its first value only. */
bool pod_space_is_repeated (const PodSpace *space, uint64_t candidate);
/* Candidates that differ in options whose other values only add work or waiting to the least one: no op of theirs ends before it does in the
 * program of their head, which has the least of each, so the head's bound of time is theirs too (tests/model/test-bound.c). */
bool pod_space_is_head (const PodSpace *space, uint64_t candidate);
/* Appends (element-type uint64_t) the head and all that it stands for, those that repeat another left out. */
void pod_space_add_members (const PodSpace *space, uint64_t head, GArray *out);
uint64_t pod_space_n_members (const PodSpace *space, uint64_t head);
/* Returns: (transfer full) */
PodScenario *pod_space_scenario (const PodSpace *space, uint64_t candidate);
/* "--layout ... --micro-batch 2": what the candidate adds to the command of the base. Returns: (transfer full) */
char *pod_space_words (const PodSpace *space, uint64_t candidate);
/* The same as an object: layout and options by name. */
void pod_space_describe (const PodSpace *space, uint64_t candidate, JsonObject *out);
