#pragma once

#include "exec/run-private.h"

/* What islands.c (when they are not simulated), island-map.c (who is on which), island-kinds.c (which are alike), island-state.c (how one goes
 * on) and island-memo.c (what is known of that) share. */

enum
{
  POD_MOST_ISLANDS = 64,      /* bits of a set */
  POD_MOST_ISLAND_RANKS = 96, /* of one: larger ones, as of many replicas that share links, are simulated whole */
};

typedef struct PodIslandState PodIslandState;
typedef struct PodIslandEdge PodIslandEdge;

/* What came between a state and the next. */
struct PodIslandEdge
{
  PodIslandEdge *other; /* (nullable) to another state, where the program goes on otherwise further ahead */
  PodIslandState *to;
  int64_t ps;
  bool has_moved;       /* any rank's step */
  uint32_t n_parts;     /* of one that joins others: through a whole step */
  PodIslandEdge **parts;
  uint32_t *n_steps;    /* of each rank */
  int64_t *outcome;     /* of each rank: pod_account_n_outcome */
};

/* How an island goes on by itself, all times counted from now: what is equal in this goes on alike. */

#define POD_ISLAND_HEAD 3 /* numbers of meetings, transfers and events */

struct PodIslandState
{
  guint hash;
  guint n_words;
  int64_t *words;
  PodIslandEdge *edges;    /* (nullable) to what was seen next */
  PodIslandEdge *strides;  /* (nullable) joined edges */
};

/* An edge of a path, taken @n times. */
typedef struct
{
  PodIslandEdge *edge;
  uint32_t n;
} PodIslandLeg;

typedef struct
{
  GArray *ranks;    /* (element-type uint32_t) those that run, ascending */
  GArray *meetings; /* (element-type uint32_t) of nobody else */
  GHashTable *states; /* (element-type PodIslandState) that islands of its kind were seen in */
  uint32_t n_touching; /* transfers under way that others take part in, or that go along its links */
  /* Seen last, while nobody has come since */
  PodIslandState *last; /* (nullable) */
  int64_t last_ps;
  uint32_t *last_step;  /* by rank */
  GArray *last_sums;    /* (element-type int64_t) */
  uint32_t n_seen;      /* tasks of the first rank that had ended */
  /* Not simulated */
  PodIslandState *from; /* (nullable) */
  GArray *path;         /* (element-type PodIslandLeg) what is known to come */
  int64_t from_ps;
  uint32_t *step;       /* by rank: where it is then */
  uint64_t n_sleeps;
  GArray *limits;       /* (element-type PodLaneLimit) scratch */
} PodIsland;

struct PodIslands
{
  PodIsland *islands;
  guint n;
  uint32_t *of_rank;  /* by represented rank: UINT32_MAX does not run */
  bool *is_outward;   /* by communicator: its groups are of several islands */
  uint32_t n_routes;
  uint64_t **touched; /* by route (nullable) (owned), by group: islands that take part, or whose links it takes */
  GPtrArray *kinds;   /* (element-type GHashTable) (owned) states */
  GArray *words;      /* (element-type int64_t) scratch */
  GPtrArray *slabs;   /* (owned) of states and edges, which stay until the end */
  size_t n_left;      /* bytes of the last one */
  bool is_checked;    /* with POD_CHECK set: that states go on in one way */
};

static inline uint32_t
pod_island_rank (const PodIsland *island, guint i)
{
  return g_array_index (island->ranks, uint32_t, i);
}

/* Which of the island's ranks it is. */
static inline uint32_t
pod_island_index (const PodIsland *island, uint32_t rank)
{
  uint32_t i = 0;

  while (pod_island_rank (island, i) != rank)
    i++;
  return i;
}

/* The links that a route's group takes now. */
static inline const PodFoldedPath *
pod_island_path (const PodExec *exec, uint32_t route, uint32_t group)
{
  return exec->twins != NULL ? pod_twins_path (exec->twins, route, group) : &exec->fold->paths[route][group];
}

/* The ranks' places in a state. */
static inline const int64_t *
pod_island_place (const PodExec *exec, const PodIslandState *state, uint32_t i)
{
  return state->words + POD_ISLAND_HEAD + (size_t) i * pod_runner_n_place (exec->runner);
}

/* Puts it into @out (element-type int64_t). False when there is no such state now. O(ranks x streams + transfers^2) */
bool pod_island_save (const PodExec *exec, const PodIsland *island, GArray *out);
/* Nothing of the island moves any more. */
void pod_island_pause (PodExec *exec, const PodIsland *island);
/* It goes on from now as @state, of an island of its kind, says, each rank at its @step. */
void pod_island_load (PodExec *exec, const PodIsland *island, const PodIslandState *state, const uint32_t *step);

/* ---- island-kinds.c ---- */
/* Gives islands that are alike, links and all, the same states. O(islands x kinds x path entries) */
void pod_islands_find_kinds (PodIslands *islands, const PodExec *exec);

/* ---- island-memo.c ---- */
/* Returns: (nullable) (transfer none) the state of @island that is in islands->words; NULL when it was never seen and there are too many */
PodIslandState *pod_islands_intern (PodIslands *islands, PodIsland *island);
GHashTable *pod_island_states_new (void);
/* What lies between the state seen last and @state, now. */
void pod_islands_learn (PodIslands *islands, const PodExec *exec, PodIsland *island, PodIslandState *state, int64_t now_ps);
/* How far a path is joined: the state in which the last step, or the path, began, and the place of the leg behind it. */
typedef struct
{
  PodIslandState *from;
  guint first;
} PodIslandWalk;

/* To be called with each leg that the island's path grows by, and at its end. What was gone through edge by edge in a step is joined, to be taken
 * at once from then on. */
void pod_islands_join_path (PodIslands *islands, const PodExec *exec, const PodIsland *island, PodIslandWalk *walk, bool is_end);
/* Whether the ranks' programs go on from these steps as in @state. */
bool pod_island_fits (const PodExec *exec, const PodIsland *island, const PodIslandState *state, const uint32_t *step);
void pod_island_add_steps (const PodIsland *island, const PodIslandEdge *edge, uint32_t n, uint32_t *step);
