#include <string.h>

#include "base/mix.h"
#include "base/union-find.h"
#include "exec/run-private.h"

/* Represented ranks that differ by nothing but collectives of the step's end do the same until then. Where dp's reductions take a tree, the
 * ranks of a stage are of several colours, by their place in it; but forward and backward passes before the first reduction do not know
 * that. So of ranks that are twins one runs, with the loads that all put on links, until one of them comes for a late collective; then the
 * others are put where it stands, and all go on.
 *
 * Ranks are twins by components: sets of ranks that early collectives join. Two components are alike when rank by rank their classes, groups
 * and plans are the same, and the links of their transfers are of the same types: equal capacity, and equal loads by each leader's twins. By
 * induction over events they then do the same at the same time: max-min rates depend on nothing but the types of links that a transfer
 * meets. */

/* A collective is late when no class of ranks comes to it in this part of its steps. What stages send each other is not: receives are
 * there from the start. */
#define EARLY_RATIO 0.25

enum
{
  MAX_RANKS = 4096, /* represented: components are compared pair by pair */
};

struct PodTwins
{
  uint32_t n_ranks;
  uint32_t *component; /* by rank: the lowest rank of its component */
  uint32_t *beside;    /* by rank: the next rank of its component, UINT32_MAX none */
  uint32_t *leader;    /* by rank: the twin that runs */
  uint32_t *next;      /* by rank: its next twin, UINT32_MAX none */
  GArray *leaders;     /* uint32_t */
  uint32_t **lead;     /* [comm][group]: the leaders' group, UINT32_MAX for late ones */
  uint32_t n_comms;
  bool *is_late;       /* by route */
  bool *is_early_comm;
  PodFoldedPath **paths; /* [route][group]: of the leaders' groups, with all loads */
  uint32_t n_routes;
  uint32_t *n_groups_of_route;
  GArray *held;        /* PodTaskEvent: leaders that came for something late */
};

/* -- which collectives are late ---- */

static void
see_class (const PodExec *exec, const PodProgramClass *class, bool *is_seen, double *first)
{
  const PodProgram *program = exec->program;

  for (guint i = 0; i < class->steps->len; i++)
    {
      const uint32_t b = g_array_index (class->steps, PodOpStep, i).block;
      const PodOpBlock *block = &g_array_index (program->blocks, PodOpBlock, b);

      for (uint32_t k = block->first_op; !is_seen[b] && k < block->first_op + block->n_ops; k++)
        if (exec->ops[k].kind == POD_OP_COLLECTIVE)
          {
            const uint32_t r = exec->uses[exec->ops[k].use].route;

            first[r] = exec->ops[k].is_send ? 0 : MIN (first[r], (double) i / (double) class->steps->len);
          }
      is_seen[b] = true;
    }
}

static void
find_late (PodTwins *twins, const PodExec *exec)
{
  const PodProgram *program = exec->program;
  g_autofree double *first = g_new (double, twins->n_routes + 1);

  for (uint32_t r = 0; r < twins->n_routes; r++)
    first[r] = 1;
  for (guint c = 0; c < program->classes->len; c++)
    {
      g_autofree bool *is_seen = g_new0 (bool, program->blocks->len + 1);

      see_class (exec, g_ptr_array_index (program->classes, c), is_seen, first);
    }
  for (uint32_t r = 0; r < twins->n_routes; r++)
    {
      twins->is_late[r] = first[r] >= EARLY_RATIO;
      twins->is_early_comm[exec->fold->comm_of_route[r]] |= !twins->is_late[r];
    }
}

/* -- components ---- */

/* By rank: the next one of the same @key, which is the lowest rank of that key. */
static void
list_alike (const uint32_t *key, uint32_t n_ranks, uint32_t *out_next)
{
  g_autofree uint32_t *last = g_new (uint32_t, n_ranks + 1);

  for (uint32_t rank = 0; rank < n_ranks; rank++)
    {
      out_next[rank] = UINT32_MAX;
      if (key[rank] != rank)
        out_next[last[key[rank]]] = rank;
      last[key[rank]] = rank;
    }
}

static void
find_components (PodTwins *twins, const PodFold *fold)
{
  for (uint32_t rank = 0; rank < fold->n_ranks; rank++)
    twins->component[rank] = rank;
  for (uint32_t k = 0; k < fold->n_comms; k++)
    {
      g_autofree uint32_t *first = g_new (uint32_t, fold->n_groups[k] + 1);

      memset (first, 0xff, (fold->n_groups[k] + 1) * sizeof *first);
      for (uint32_t rank = 0; twins->is_early_comm[k] && rank < fold->n_ranks; rank++)
        {
          const uint32_t group = pod_fold_group_of (fold, k, rank);

          if (group == UINT32_MAX)
            continue;
          if (first[group] == UINT32_MAX)
            first[group] = rank;
          pod_set_join (twins->component, first[group], rank);
        }
    }
  for (uint32_t rank = fold->n_ranks; rank-- > 0;)
    twins->component[rank] = pod_set_root (twins->component, rank);
  list_alike (twins->component, fold->n_ranks, twins->beside);
}

/* Whether the groups' early collectives take the same on empty links. */
static bool
has_same_plans (const PodTwins *twins, const PodExec *exec, uint32_t comm, uint32_t a, uint32_t b)
{
  for (uint32_t r = 0; r < twins->n_routes; r++)
    {
      const PodRoute *route = &g_array_index (exec->routes->routes, PodRoute, r);
      const PodFoldedPath *x, *y;

      if (route->comm != comm || twins->is_late[r])
        continue;
      x = &exec->fold->paths[r][a];
      y = &exec->fold->paths[r][b];
      if (x->analytic_s_per_byte != y->analytic_s_per_byte || pod_route_plan (route, x->group)->busiest_ratio != pod_route_plan (route, y->group)->busiest_ratio
          || pod_route_plan (route, x->group)->latency_ps != pod_route_plan (route, y->group)->latency_ps || pod_route_plan (route, x->group)->wire_ratio != pod_route_plan (route, y->group)->wire_ratio)
        return false;
    }
  return true;
}

/* Whether @rank may follow @leader, in its groups: those that are led already must be led by the leader's. */
static bool
may_follow (const PodTwins *twins, const PodExec *exec, uint32_t rank, uint32_t leader)
{
  const PodFold *fold = exec->fold;

  if (fold->class_of[rank] != fold->class_of[leader])
    return false;
  for (uint32_t k = 0; k < fold->n_comms; k++)
    {
      const uint32_t own = pod_fold_group_of (fold, k, rank);
      const uint32_t its = pod_fold_group_of (fold, k, leader);

      if (!twins->is_early_comm[k])
        continue;
      if ((own == UINT32_MAX) != (its == UINT32_MAX))
        return false;
      if (own == UINT32_MAX)
        continue;
      if (fold->n_expected[k][own] != fold->n_expected[k][its] || (twins->lead[k][own] != UINT32_MAX && twins->lead[k][own] != its)
          || !has_same_plans (twins, exec, k, own, its))
        return false;
    }
  return true;
}

static void
follow (PodTwins *twins, const PodFold *fold, uint32_t rank, uint32_t leader)
{
  twins->leader[rank] = leader;
  for (uint32_t k = 0; k < fold->n_comms; k++)
    if (twins->is_early_comm[k] && pod_fold_group_of (fold, k, rank) != UINT32_MAX)
      twins->lead[k][pod_fold_group_of (fold, k, rank)] = pod_fold_group_of (fold, k, leader);
}

/* Nobody of the component leads or follows any more. */
static void
unfollow (PodTwins *twins, const PodFold *fold, uint32_t root)
{
  for (uint32_t rank = root; rank != UINT32_MAX; rank = twins->beside[rank])
    for (uint32_t k = 0; k < fold->n_comms; k++)
      if (twins->is_early_comm[k] && pod_fold_group_of (fold, k, rank) != UINT32_MAX)
        twins->lead[k][pod_fold_group_of (fold, k, rank)] = UINT32_MAX;
}

/* Lets the component of @root follow that of @leader, rank by rank. */
static bool
follow_component (PodTwins *twins, const PodExec *exec, uint32_t root, uint32_t leader)
{
  uint32_t rank = root;

  for (; rank != UINT32_MAX && leader != UINT32_MAX; rank = twins->beside[rank], leader = twins->beside[leader])
    {
      if (!may_follow (twins, exec, rank, leader))
        break;
      follow (twins, exec->fold, rank, leader);
    }
  if (rank == UINT32_MAX && leader == UINT32_MAX)
    return true;
  unfollow (twins, exec->fold, root);
  return false;
}

/* Returns: whether any component follows another. */
static bool
match_components (PodTwins *twins, const PodExec *exec)
{
  bool is_any = false;

  for (uint32_t root = 0; root < twins->n_ranks; root++)
    {
      bool is_led = false;

      if (twins->component[root] != root)
        continue;
      for (uint32_t leader = 0; leader < root && !is_led; leader++)
        if (twins->component[leader] == leader && twins->leader[leader] == leader && exec->fold->class_of[leader] == exec->fold->class_of[root])
          is_led = follow_component (twins, exec, root, leader);
      is_any |= is_led;
      if (!is_led)
        for (uint32_t rank = root; rank != UINT32_MAX; rank = twins->beside[rank])
          follow (twins, exec->fold, rank, rank);
    }
  return is_any;
}

/* -- links ---- */

static int
compare_types (const void *a, const void *b)
{
  const uint64_t x = *(const uint64_t *) a;
  const uint64_t y = *(const uint64_t *) b;

  return x < y ? -1 : x > y;
}

/* Which types of links a path meets, as one number. */
static uint64_t
types_of (const PodFoldedPath *path, const uint64_t *type)
{
  g_autofree uint64_t *types = g_new (uint64_t, path->n_entries + 1);
  uint64_t sum = 0;

  for (uint32_t i = 0; i < path->n_entries; i++)
    types[i] = type[path->entries[i].link];
  qsort (types, path->n_entries, sizeof *types, compare_types);
  for (uint32_t i = 0; i < path->n_entries; i++)
    if (i == 0 || types[i] != types[i - 1])
      sum += pod_mix (types[i]);
  return sum;
}

/* A link's type: its capacity, and the sum of shares of all twins of each group. Sums of keys times shares are equal when these are. */
static uint64_t *
find_types (const PodTwins *twins, const PodFold *fold)
{
  uint64_t *type = g_new (uint64_t, fold->n_links + 1);

  for (uint32_t l = 0; l < fold->n_links; l++)
    {
      memcpy (&type[l], &fold->capacity[l], sizeof *type);
      type[l] = pod_mix (type[l]);
    }
  for (uint32_t r = 0; r < twins->n_routes; r++)
    for (uint32_t g = 0; !twins->is_late[r] && g < fold->n_groups[fold->comm_of_route[r]]; g++)
      {
        const PodFoldedPath *path = &fold->paths[r][g];
        const uint64_t key = pod_mix (((uint64_t) (r + 1) << 32) + twins->lead[fold->comm_of_route[r]][g]);

        for (uint32_t i = 0; i < path->n_entries; i++)
          type[path->entries[i].link] += key * path->entries[i].share_q32;
      }
  return type;
}

static bool
has_same_links (const PodTwins *twins, const PodFold *fold)
{
  g_autofree uint64_t *type = find_types (twins, fold);

  for (uint32_t r = 0; r < twins->n_routes; r++)
    for (uint32_t g = 0; !twins->is_late[r] && g < fold->n_groups[fold->comm_of_route[r]]; g++)
      {
        const uint32_t lead = twins->lead[fold->comm_of_route[r]][g];

        if (lead != g && types_of (&fold->paths[r][g], type) != types_of (&fold->paths[r][lead], type))
          return false;
      }
  return true;
}

/* The path of a leaders' group with what its twins put on the links that leaders use. @share: scratch by link, 0 */
static void
sum_path (PodTwins *twins, const PodFold *fold, uint32_t r, uint32_t lead, const bool *is_used, uint64_t *share)
{
  const uint32_t comm = fold->comm_of_route[r];
  PodFoldedPath *out = &twins->paths[r][lead];
  GArray *entries = g_array_new (FALSE, FALSE, sizeof (PodPathEntry));

  for (uint32_t g = 0; g < fold->n_groups[comm]; g++)
    for (uint32_t i = 0; twins->lead[comm][g] == lead && i < fold->paths[r][g].n_entries; i++)
      {
        const PodPathEntry *entry = &fold->paths[r][g].entries[i];

        if (!is_used[entry->link])
          continue;
        if (share[entry->link] == 0)
          g_array_append_val (entries, *entry);
        share[entry->link] += entry->share_q32;
      }
  for (guint i = 0; i < entries->len; i++)
    {
      PodPathEntry *entry = &g_array_index (entries, PodPathEntry, i);

      entry->share_q32 = share[entry->link];
      share[entry->link] = 0;
    }
  *out = fold->paths[r][lead];
  out->n_entries = entries->len;
  out->entries = (PodPathEntry *) g_array_free (entries, FALSE);
}

static void
sum_paths (PodTwins *twins, const PodFold *fold)
{
  g_autofree bool *is_used = g_new0 (bool, fold->n_links + 1);
  g_autofree uint64_t *share = g_new0 (uint64_t, fold->n_links + 1);

  for (uint32_t r = 0; r < twins->n_routes; r++)
    for (uint32_t g = 0; !twins->is_late[r] && g < fold->n_groups[fold->comm_of_route[r]]; g++)
      for (uint32_t i = 0; twins->lead[fold->comm_of_route[r]][g] == g && i < fold->paths[r][g].n_entries; i++)
        is_used[fold->paths[r][g].entries[i].link] = true;
  for (uint32_t r = 0; r < twins->n_routes; r++)
    {
      const uint32_t n_groups = fold->n_groups[fold->comm_of_route[r]];

      twins->paths[r] = g_new0 (PodFoldedPath, n_groups + 1);
      for (uint32_t g = 0; !twins->is_late[r] && g < n_groups; g++)
        if (twins->lead[fold->comm_of_route[r]][g] == g)
          sum_path (twins, fold, r, g, is_used, share);
    }
}

static void
list_twins (PodTwins *twins)
{
  list_alike (twins->leader, twins->n_ranks, twins->next);
  for (uint32_t rank = 0; rank < twins->n_ranks; rank++)
    if (twins->leader[rank] == rank)
      g_array_append_val (twins->leaders, rank);
}

static PodTwins *
twins_new (const PodExec *exec)
{
  const PodFold *fold = exec->fold;
  PodTwins *twins = g_new0 (PodTwins, 1);

  twins->n_ranks = fold->n_ranks;
  twins->n_comms = fold->n_comms;
  twins->n_routes = fold->n_routes;
  twins->component = g_new (uint32_t, fold->n_ranks);
  twins->beside = g_new (uint32_t, fold->n_ranks);
  twins->leader = g_new (uint32_t, fold->n_ranks);
  twins->next = g_new (uint32_t, fold->n_ranks);
  twins->leaders = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  twins->held = g_array_new (FALSE, FALSE, sizeof (PodTaskEvent));
  twins->is_late = g_new0 (bool, fold->n_routes + 1);
  twins->is_early_comm = g_new0 (bool, fold->n_comms + 1);
  twins->paths = g_new0 (PodFoldedPath *, fold->n_routes + 1);
  twins->n_groups_of_route = g_new (uint32_t, fold->n_routes + 1);
  for (uint32_t r = 0; r < fold->n_routes; r++)
    twins->n_groups_of_route[r] = fold->n_groups[fold->comm_of_route[r]];
  twins->lead = g_new0 (uint32_t *, fold->n_comms + 1);
  for (uint32_t k = 0; k < fold->n_comms; k++)
    {
      twins->lead[k] = g_new (uint32_t, fold->n_groups[k] + 1);
      memset (twins->lead[k], 0xff, (fold->n_groups[k] + 1) * sizeof **twins->lead);
    }
  return twins;
}

void
pod_twins_free (PodTwins *twins)
{
  if (twins == NULL)
    return;
  for (uint32_t r = 0; r < twins->n_routes; r++)
    {
      for (uint32_t i = 0; twins->paths[r] != NULL && i < twins->n_groups_of_route[r]; i++)
        g_free (twins->paths[r][i].entries);
      g_free (twins->paths[r]);
    }
  for (uint32_t k = 0; k < twins->n_comms; k++)
    g_free (twins->lead[k]);
  g_free (twins->n_groups_of_route);
  g_free (twins->lead);
  g_free (twins->paths);
  g_free (twins->is_late);
  g_free (twins->is_early_comm);
  g_free (twins->component);
  g_free (twins->beside);
  g_free (twins->leader);
  g_free (twins->next);
  g_array_unref (twins->leaders);
  g_array_unref (twins->held);
  g_free (twins);
}

PodTwins *
pod_twins_new (const PodExec *exec)
{
  g_autoptr (PodTwins) twins = NULL;

  if (exec->fold->n_ranks > MAX_RANKS)
    return NULL;
  twins = twins_new (exec);
  find_late (twins, exec);
  find_components (twins, exec->fold);
  if (!match_components (twins, exec) || !has_same_links (twins, exec->fold))
    return NULL;
  for (uint32_t rank = 0; rank < twins->n_ranks; rank++)
    if (twins->leader[rank] != rank && pod_recorder_has (exec->recorder, rank))
      return NULL;
  list_twins (twins);
  sum_paths (twins, exec->fold);
  return g_steal_pointer (&twins);
}

const GArray *
pod_twins_leaders (const PodTwins *twins)
{
  return twins->leaders;
}

uint32_t
pod_twins_n_like (const PodTwins *twins, const PodFold *fold, uint32_t rank)
{
  uint32_t n = 0;

  for (; rank != UINT32_MAX; rank = twins->next[rank])
    n += fold->n_like[rank];
  return n;
}

const PodFoldedPath *
pod_twins_path (const PodTwins *twins, uint32_t route, uint32_t group)
{
  return &twins->paths[route][group];
}

PodFoldedPath *const *
pod_twins_paths (const PodTwins *twins)
{
  return twins->paths;
}

bool
pod_twins_hold (PodTwins *twins, const PodTaskEvent *event, uint32_t route)
{
  if (!twins->is_late[route])
    return false;
  g_array_append_val (twins->held, *event);
  return true;
}

bool
pod_twins_must_part (const PodTwins *twins)
{
  return twins->held->len > 0;
}

/* -- parting ---- */

/* The twin of @rank in the component that @root leads. */
static uint32_t
twin_in (const PodTwins *twins, uint32_t rank, uint32_t root)
{
  while (twins->component[rank] != root)
    rank = twins->next[rank];
  return rank;
}

/* The component of a group. */
static uint32_t
component_of_group (const PodTwins *twins, const PodFold *fold, uint32_t comm, uint32_t group)
{
  for (uint32_t rank = 0; rank < fold->n_ranks; rank++)
    if (pod_fold_group_of (fold, comm, rank) == group)
      return twins->component[rank];
  g_assert_not_reached ();
}

static void
part_ranks (const PodTwins *twins, PodExec *exec)
{
  for (uint32_t rank = 0; rank < twins->n_ranks; rank++)
    {
      if (twins->leader[rank] == rank)
        continue;
      pod_runner_copy (exec->runner, twins->leader[rank], rank);
      pod_account_copy (exec->account, twins->leader[rank], rank);
      if (exec->contention != NULL)
        pod_contention_copy (exec->contention, twins->leader[rank], rank);
    }
}

static void
part_events (const PodTwins *twins, PodExec *exec)
{
  g_autoptr (GArray) events = g_array_new (FALSE, FALSE, sizeof (PodEvent));

  pod_event_queue_list (exec->queue, events);
  for (guint i = 0; i < events->len; i++)
    {
      const PodEvent *event = &g_array_index (events, PodEvent, i);

      if (event->kind != POD_EXEC_TASK || !pod_runner_is_live (exec->runner, event))
        continue;
      for (uint32_t rank = twins->next[event->index]; rank != UINT32_MAX; rank = twins->next[rank])
        pod_event_queue_push (exec->queue, event->at_ps, (uint8_t) (event->order >> 56), POD_EXEC_TASK, rank, event->tag);
    }
}

static void
copy_meeting (const PodTwins *twins, const PodExec *exec, uint32_t comm, const PodMeeting *from, PodMeeting *to)
{
  const uint32_t root = component_of_group (twins, exec->fold, comm, to->group);

  to->n_arrived = from->n_arrived;
  to->start_ps = from->start_ps;
  for (uint32_t i = 0; i < from->n_arrived; i++)
    {
      PodArrival *arrival = &to->arrivals[i];

      *arrival = from->arrivals[i];
      arrival->event.rank = twin_in (twins, arrival->event.rank, root);
    }
}

/* A meeting's transfer was its twins' too: each goes on along its own links. */
static void
part_transfer (const PodTwins *twins, PodExec *exec, uint32_t comm, uint32_t tag)
{
  const PodMeeting *meeting = exec->meetings[tag];
  const uint32_t route = exec->uses[exec->ops[meeting->arrivals[0].event.op].use].route;
  g_autoptr (GArray) parts = g_array_new (FALSE, FALSE, sizeof (PodTransferPart));
  const PodFoldedPath *own = &exec->fold->paths[route][meeting->group];
  PodTransferPart part = { .tag = tag, .path = own->entries, .n_entries = own->n_entries };

  g_array_append_val (parts, part);
  for (uint32_t g = 0; g < exec->fold->n_groups[comm]; g++)
    {
      const PodFoldedPath *path = &exec->fold->paths[route][g];

      if (g == meeting->group || twins->lead[comm][g] != meeting->group)
        continue;
      part = (PodTransferPart){ .tag = exec->first_meeting[comm] + exec->n_channels[comm] * g + (tag - exec->first_meeting[comm]) % exec->n_channels[comm], .path = path->entries, .n_entries = path->n_entries };
      g_array_append_val (parts, part);
    }
  pod_network_part (exec->network, tag, (const PodTransferPart *) parts->data, parts->len);
}

static void
part_meetings (const PodTwins *twins, PodExec *exec)
{
  const PodFold *fold = exec->fold;

  for (uint32_t k = 0; k < fold->n_comms; k++)
    for (uint32_t i = 0; twins->is_early_comm[k] && i < exec->n_channels[k] * fold->n_groups[k]; i++)
      {
        const uint32_t m = exec->first_meeting[k] + i;
        const uint32_t lead = exec->first_meeting[k] + exec->n_channels[k] * twins->lead[k][i / exec->n_channels[k]] + i % exec->n_channels[k];

        if (lead != m && exec->meetings[lead] != NULL)
          copy_meeting (twins, exec, k, exec->meetings[lead], pod_exec_open_meeting (exec, m));
      }
}

static gint
compare_numbers (gconstpointer a, gconstpointer b)
{
  const PodStartedTransfer *x = a;
  const PodStartedTransfer *y = b;

  return x->number < y->number ? -1 : x->number > y->number;
}

static void
part_transfers (const PodTwins *twins, PodExec *exec)
{
  g_autoptr (GArray) started = g_array_new (FALSE, FALSE, sizeof (PodStartedTransfer));

  pod_network_list (exec->network, started);
  g_array_sort (started, compare_numbers);
  for (guint i = 0; i < started->len; i++)
    {
      const uint32_t tag = g_array_index (started, PodStartedTransfer, i).tag;
      uint32_t comm = 0;

      while (exec->first_meeting[comm + 1] <= tag)
        comm++;
      part_transfer (twins, exec, comm, tag);
    }
}

void
pod_twins_part (PodExec *exec)
{
  PodTwins *twins = g_steal_pointer (&exec->twins);
  const int64_t now_ps = pod_event_queue_now (exec->queue);

  part_events (twins, exec);
  part_ranks (twins, exec);
  part_transfers (twins, exec);
  part_meetings (twins, exec);
  for (guint i = 0; i < twins->held->len; i++)
    {
      PodTaskEvent event = g_array_index (twins->held, PodTaskEvent, i);

      for (; event.rank != UINT32_MAX; event.rank = twins->next[event.rank])
        pod_exec_joined (exec, &event, now_ps);
    }
  pod_twins_free (twins);
}
