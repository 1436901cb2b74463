#include "exec/fold.h"

#include <string.h>

#include "base/mix.h"

__extension__ typedef unsigned __int128 Sum;

/* What an orbit of groups puts on an orbit of links: as much on each of so many of its links. */
typedef struct
{
  uint64_t share_q32;
  uint32_t link;
  uint32_t n;
} Entry;

/* Colours while they are refined. Items are orbits of a symmetry, whose members are alike whatever the colours: ranks, the groups of each
 * communicator, the links in use. They are numbered by their first members, so that colours get the numbers that they would get if each
 * member were looked at. What the members of an orbit do to one link is what all do to all links of an orbit over how many these are. */
typedef struct
{
  const PodProgram *program;
  const PodSymmetry *symmetry;
  const GArray *routes; /* PodRoute */
  uint32_t *like;         /* by route: the first one that loads the same links as much, group by group; mostly they differ in latency */
  uint32_t n_comms;
  uint32_t *first_group;  /* [n_comms + 1] */
  uint32_t n_ranks;
  uint32_t n_groups;
  uint32_t n_links;
  uint32_t *link_index;   /* real link -> orbit in use, UINT32_MAX none */
  uint32_t *real_link;    /* the first of each orbit */
  uint64_t *n_of_link;    /* links of each orbit */
  bool is_identity;
  size_t **first_entry;   /* by route that is not like an earlier one: where the entries of each orbit of groups begin, [orbits + 1] */
  Entry *entries;         /* route by route, group by group; none for the identity, where nothing is refined */
  uint32_t *scratch;      /* links of the largest plan */
  Sum *sum;               /* scratch, by link */
  uint32_t *orbit_of_member; /* of the groups in order, one after the other */
  uint32_t *first_place;  /* by orbit of ranks: its places in groups, [n_ranks + 1] */
  uint64_t *place_key;    /* a communicator, as a colour of its groups is told from those of others */
  uint32_t *place_group;  /* and a group */
  uint32_t *rank_color;
  uint32_t *group_color;
  uint32_t *link_color;
  uint64_t *signature;    /* scratch, as long as the longest */
} Coloring;

static uint64_t
bits_of (double value)
{
  uint64_t bits;

  memcpy (&bits, &value, sizeof bits);
  return bits;
}

static const PodCommunicator *
comm_at (const PodProgram *program, uint32_t index)
{
  return g_ptr_array_index (program->communicators, index);
}

static const PodRoute *
route_at (const GArray *routes, guint index)
{
  return &g_array_index (routes, PodRoute, index);
}

/* Renumbers signatures to colours in order of first appearance; returns how many there are. O(n). */
static uint32_t
recolor (const uint64_t *signature, uint32_t n, uint32_t *color)
{
  size_t n_slots = 16;
  g_autofree uint64_t *keys = NULL;
  g_autofree uint32_t *values = NULL;
  uint32_t n_colors = 0;

  while (n_slots < 2 * (size_t) n)
    n_slots *= 2;
  keys = g_new (uint64_t, n_slots);
  values = g_new (uint32_t, n_slots);
  memset (values, 0xff, n_slots * sizeof *values);
  for (uint32_t i = 0; i < n; i++)
    {
      size_t slot = pod_mix (signature[i]) & (n_slots - 1);

      while (values[slot] != UINT32_MAX && keys[slot] != signature[i])
        slot = (slot + 1) & (n_slots - 1);
      if (values[slot] == UINT32_MAX)
        {
          keys[slot] = signature[i];
          values[slot] = n_colors++;
        }
      color[i] = values[slot];
    }
  return n_colors;
}

/* The plan of an orbit of groups of a route. */
static const PodPlan *
plan_at (const PodSymmetry *symmetry, const PodRoute *route, uint32_t orbit)
{
  return pod_route_plan (route, symmetry->group_of_orbit[route->comm][orbit]);
}

static bool
is_like (const PodSymmetry *symmetry, const PodRoute *a, const PodRoute *b)
{
  if (a->comm != b->comm)
    return false;
  for (uint32_t g = 0; g < symmetry->n_group_orbits[a->comm]; g++)
    {
      const PodPlan *x = plan_at (symmetry, a, g);
      const PodPlan *y = plan_at (symmetry, b, g);

      if (g > 0 && x == plan_at (symmetry, a, 0)) /* all are shifted from it by as much */
        continue;
      if (x->n_entries != y->n_entries)
        return false;
      for (uint32_t i = 0; i < x->n_entries; i++)
        if (x->entries[i].link != y->entries[i].link || x->entries[i].share_q32 != y->entries[i].share_q32)
          return false;
    }
  return true;
}

static uint32_t *
find_like (const PodSymmetry *symmetry, const GArray *routes)
{
  uint32_t *like = g_new (uint32_t, routes->len + 1);

  for (uint32_t r = 0; r < routes->len; r++)
    for (like[r] = 0; like[r] < r && !is_like (symmetry, route_at (routes, like[r]), route_at (routes, r)); like[r]++)
      ;
  return like;
}

static uint32_t
refine_links (Coloring *c)
{
  memset (c->sum, 0, c->n_links * sizeof *c->sum);
  for (guint r = 0; r < c->routes->len; r++)
    {
      const uint32_t comm = route_at (c->routes, r)->comm;

      for (uint32_t g = 0; c->like[r] == r && g < c->symmetry->n_group_orbits[comm]; g++)
        {
          const uint64_t key = pod_mix (((uint64_t) r << 32) + c->group_color[c->first_group[comm] + g]);
          const Entry *end = c->entries + c->first_entry[r][g + 1];
          uint64_t share_q32 = 0; /* that of the entry before: most are alike */
          Sum term = (Sum) pod_mix (key) * c->symmetry->group_orbit_size[comm][g];

          for (const Entry *entry = c->entries + c->first_entry[r][g]; entry < end; entry++)
            {
              if (entry->share_q32 != share_q32)
                {
                  share_q32 = entry->share_q32;
                  term = (Sum) pod_mix (key ^ share_q32) * c->symmetry->group_orbit_size[comm][g];
                }
              c->sum[entry->link] += term * entry->n;
            }
        }
    }
  for (uint32_t l = 0; l < c->n_links; l++)
    c->signature[l] = pod_mix (c->link_color[l]) + (uint64_t) (c->n_of_link[l] == 1 ? c->sum[l] : c->sum[l] / c->n_of_link[l]);
  return recolor (c->signature, c->n_links, c->link_color);
}

static uint32_t
refine_groups (Coloring *c)
{
  const uint32_t *orbit = c->orbit_of_member;

  for (uint32_t k = 0; k < c->n_comms; k++)
    {
      const PodCommunicator *comm = comm_at (c->program, k);

      for (uint32_t g = 0; g < c->symmetry->n_group_orbits[k]; g++)
        {
          uint64_t sum = pod_mix (c->group_color[c->first_group[k] + g]);

          for (uint32_t i = 0; i < comm->group_size; i++)
            sum += pod_mix (UINT64_C (0x51ed2701) ^ pod_mix (c->rank_color[*orbit++]));
          c->signature[c->first_group[k] + g] = sum;
        }
    }
  for (guint r = 0; r < c->routes->len; r++)
    {
      const PodRoute *route = route_at (c->routes, r);

      for (uint32_t g = 0; g < c->symmetry->n_group_orbits[route->comm]; g++)
        {
          const PodPlan *plan = plan_at (c->symmetry, route, g);
          uint64_t sum = pod_mix (bits_of (plan->busiest_ratio) + (uint64_t) plan->latency_ps);

          if (c->like[r] == r)
            for (const Entry *entry = c->entries + c->first_entry[r][g]; entry < c->entries + c->first_entry[r][g + 1]; entry++)
              sum += entry->n * pod_mix (pod_mix (((uint64_t) r << 32) + c->link_color[entry->link]) ^ entry->share_q32);
          c->signature[c->first_group[route->comm] + g] += sum;
        }
    }
  return recolor (c->signature, c->n_groups, c->group_color);
}

static uint32_t
refine_ranks (Coloring *c)
{
  for (uint32_t orbit = 0; orbit < c->n_ranks; orbit++)
    {
      uint64_t sum = pod_mix (c->rank_color[orbit]);

      for (uint32_t i = c->first_place[orbit]; i < c->first_place[orbit + 1]; i++)
        sum += pod_mix (c->place_key[i] + c->group_color[c->place_group[i]]);
      c->signature[orbit] = sum;
    }
  return recolor (c->signature, c->n_ranks, c->rank_color);
}

static void
color_initially (Coloring *c, const PodTopology *topology, PodFidelity fidelity)
{
  for (uint32_t orbit = 0; orbit < c->n_ranks; orbit++)
    c->rank_color[orbit] = c->is_identity ? orbit : c->program->class_of_rank[c->symmetry->rank_of_orbit[orbit]];
  for (uint32_t k = 0; k < c->n_comms; k++)
    for (uint32_t g = c->first_group[k]; g < c->first_group[k + 1]; g++)
      c->group_color[g] = c->is_identity ? g : k;
  for (uint32_t l = 0; l < c->n_links; l++)
    c->signature[l] = bits_of (pod_collective_link_rate (topology, fidelity, c->real_link[l]));
  if (!c->is_identity)
    recolor (c->signature, c->n_links, c->link_color);
  else
    for (uint32_t l = 0; l < c->n_links; l++)
      c->link_color[l] = l;
}

/* Calls for each orbit of ranks and each orbit of groups that it has a place in, once. */
typedef void (*MeetPlace) (Coloring *c, uint32_t orbit, uint32_t k, uint32_t group);

static void
meet_places (Coloring *c, MeetPlace meet)
{
  g_autofree uint32_t *last = g_new (uint32_t, c->n_ranks + 1); /* the last group that each was met in */
  const uint32_t *orbit = c->orbit_of_member;

  memset (last, 0xff, (c->n_ranks + 1) * sizeof *last);
  for (uint32_t k = 0; k < c->n_comms; k++)
    for (uint32_t group = c->first_group[k]; group < c->first_group[k + 1]; group++)
      for (uint32_t i = 0; i < comm_at (c->program, k)->group_size; i++, orbit++)
        if (last[*orbit] != group)
          {
            last[*orbit] = group;
            meet (c, *orbit, k, group);
          }
}

static void
count_place (Coloring *c, uint32_t orbit, uint32_t k, uint32_t group)
{
  (void) k;
  (void) group;
  c->first_place[orbit + 1]++;
}

/* Places of an orbit are filled from behind its first; first_place is then where the next orbit's begin. */
static void
fill_place (Coloring *c, uint32_t orbit, uint32_t k, uint32_t group)
{
  const uint32_t at = c->first_place[orbit]++;

  c->place_key[at] = (uint64_t) (k + 1) << 32;
  c->place_group[at] = group;
}

/* Who is in which group, in the order in which rounds ask for it. What turns carry into one another has its places in groups that they
 * carry into one another: so the first group of each orbit tells of all. O(members of these). */
static void
list_places (Coloring *c)
{
  size_t n = 0;

  for (uint32_t k = 0; k < c->n_comms; k++)
    n += (size_t) c->symmetry->n_group_orbits[k] * comm_at (c->program, k)->group_size;
  c->orbit_of_member = g_new (uint32_t, n + 1);
  n = 0;
  for (uint32_t k = 0; k < c->n_comms; k++)
    for (uint32_t g = 0; g < c->symmetry->n_group_orbits[k]; g++)
      {
        const PodCommunicator *comm = comm_at (c->program, k);
        const uint32_t *members = comm->members + (size_t) c->symmetry->group_of_orbit[k][g] * comm->group_size;

        for (uint32_t i = 0; i < comm->group_size; i++)
          c->orbit_of_member[n++] = c->symmetry->orbit_of_rank[members[i]];
      }
  c->first_place = g_new0 (uint32_t, c->n_ranks + 2);
  meet_places (c, count_place);
  for (uint32_t orbit = 0; orbit < c->n_ranks; orbit++)
    c->first_place[orbit + 1] += c->first_place[orbit];
  c->place_key = g_new (uint64_t, c->first_place[c->n_ranks] + 1);
  c->place_group = g_new (uint32_t, c->first_place[c->n_ranks] + 1);
  meet_places (c, fill_place);
  memmove (c->first_place + 1, c->first_place, c->n_ranks * sizeof *c->first_place);
  c->first_place[0] = 0;
}

static void
refine (Coloring *c)
{
  uint32_t n_before = 0;

  list_places (c);
  for (;;)
    {
      uint32_t n = refine_links (c);

      n += refine_groups (c);
      n += refine_ranks (c);
      if (n == n_before)
        return;
      n_before = n;
    }
}

/* Numbers the orbit of a link that is met for the first time. */
static uint32_t
meet_link (Coloring *c, uint32_t link, GArray *links, GArray *n_of_link)
{
  uint64_t n_like;
  uint32_t first;

  if (c->link_index[link] != UINT32_MAX)
    return c->link_index[link];
  first = pod_turns_first_link (c->symmetry->turns, c->symmetry->n_turns, c->symmetry->topology, link, &n_like);
  if (c->link_index[first] == UINT32_MAX)
    {
      c->link_index[first] = links->len;
      g_array_append_val (links, link);
      g_array_append_val (n_of_link, n_like);
    }
  return c->link_index[link] = c->link_index[first];
}

/* Room for what groups put on links. */
static void
make_room (Coloring *c)
{
  size_t n = 0;
  uint32_t most = 0;

  c->first_entry = g_new0 (size_t *, c->routes->len + 1);
  for (guint r = 0; r < c->routes->len; r++)
    {
      const PodRoute *route = route_at (c->routes, r);
      const uint32_t n_orbits = c->symmetry->n_group_orbits[route->comm];

      if (c->like[r] != r)
        continue;
      c->first_entry[r] = g_new (size_t, n_orbits + 1);
      for (uint32_t g = 0; g < n_orbits; g++)
        {
          most = MAX (most, plan_at (c->symmetry, route, g)->n_entries);
          n += plan_at (c->symmetry, route, g)->n_entries;
        }
    }
  c->scratch = g_new (uint32_t, most + 1);
  if (!c->is_identity)
    c->entries = g_new (Entry, n + 1);
}

/* The entries of an orbit of groups, those of one link and share in one; returns where the next ones begin. @last: by link, the last entry
 * that has it. */
static size_t
list_entries (Coloring *c, const PodPlan *plan, size_t first, size_t *last)
{
  size_t n = first;

  for (uint32_t i = 0; i < plan->n_entries; i++)
    {
      const uint32_t link = c->scratch[i];
      const uint64_t share_q32 = plan->entries[i].share_q32;
      const size_t at = last[link];

      if (at >= first && at < n && c->entries[at].link == link && c->entries[at].share_q32 == share_q32)
        c->entries[at].n++;
      else
        {
          last[link] = n;
          c->entries[n++] = (Entry){ .share_q32 = share_q32, .link = link, .n = 1 };
        }
    }
  return n;
}

static void
meet_links (Coloring *c, const PodTopology *topology)
{
  GArray *links = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  GArray *n_of_link = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  g_autofree size_t *last = c->is_identity ? NULL : g_new0 (size_t, topology->n_links + 1);
  size_t n = 0;

  make_room (c);
  c->link_index = g_new (uint32_t, topology->n_links + 1);
  memset (c->link_index, 0xff, (topology->n_links + 1) * sizeof *c->link_index);
  for (guint r = 0; r < c->routes->len; r++)
    {
      const PodRoute *route = route_at (c->routes, r);
      const uint32_t n_orbits = c->symmetry->n_group_orbits[route->comm];

      for (uint32_t g = 0; c->like[r] == r && g < n_orbits; g++)
        {
          const PodPlan *plan = plan_at (c->symmetry, route, g);

          pod_route_links (route, c->symmetry->group_of_orbit[route->comm][g], c->scratch);
          for (uint32_t i = 0; i < plan->n_entries; i++)
            c->scratch[i] = meet_link (c, c->scratch[i], links, n_of_link);
          c->first_entry[r][g] = n;
          if (!c->is_identity)
            n = list_entries (c, plan, n, last);
        }
      if (c->like[r] == r)
        c->first_entry[r][n_orbits] = n;
    }
  c->n_links = links->len;
  c->real_link = (uint32_t *) g_array_free (links, FALSE);
  c->n_of_link = (uint64_t *) g_array_free (n_of_link, FALSE);
}

static void
coloring_init (Coloring *c, const PodTopology *topology, const PodProgram *program, const GArray *routes, const PodSymmetry *symmetry, bool is_identity)
{
  *c = (Coloring){ .program = program, .symmetry = symmetry, .routes = routes, .n_comms = program->communicators->len, .n_ranks = symmetry->n_orbits, .is_identity = is_identity };
  c->first_group = g_new0 (uint32_t, c->n_comms + 1);
  for (uint32_t k = 0; k < c->n_comms; k++)
    c->first_group[k + 1] = c->first_group[k] + symmetry->n_group_orbits[k];
  c->n_groups = c->first_group[c->n_comms];
  c->like = find_like (symmetry, routes);
  meet_links (c, topology);
  c->rank_color = g_new (uint32_t, c->n_ranks);
  c->group_color = g_new (uint32_t, c->n_groups + 1);
  c->link_color = g_new (uint32_t, c->n_links + 1);
  c->signature = g_new (uint64_t, MAX (MAX (c->n_ranks, c->n_groups), c->n_links) + 1);
  c->sum = g_new (Sum, c->n_links + 1);
}

static void
coloring_clear (Coloring *c)
{
  for (guint r = 0; r < c->routes->len; r++)
    g_free (c->first_entry[r]);
  g_free (c->first_entry);
  g_free (c->entries);
  g_free (c->scratch);
  g_free (c->first_group);
  g_free (c->link_index);
  g_free (c->real_link);
  g_free (c->like);
  g_free (c->n_of_link);
  g_free (c->sum);
  g_free (c->orbit_of_member);
  g_free (c->first_place);
  g_free (c->place_key);
  g_free (c->place_group);
  g_free (c->rank_color);
  g_free (c->group_color);
  g_free (c->link_color);
  g_free (c->signature);
}

/* One rank stands for each colour: the first. */
static void
represent_ranks (PodFold *fold, const Coloring *c)
{
  const uint32_t n = c->program->n_ranks;

  fold->rank = g_new (uint32_t, n);
  fold->n_like = g_new0 (uint32_t, n);
  fold->class_of = g_new (uint32_t, n);
  fold->index_of_rank = g_new (uint32_t, n);
  for (uint32_t rank = 0; rank < n; rank++)
    {
      uint32_t color = c->rank_color[c->symmetry->orbit_of_rank[rank]]; /* colours appear in order */

      if (color == fold->n_ranks)
        {
          fold->rank[color] = rank;
          fold->class_of[color] = c->program->class_of_rank[rank];
          fold->n_ranks++;
        }
      fold->n_like[color]++;
      fold->index_of_rank[rank] = color;
    }
}

static void
span_ranks (const PodFold *fold, const PodCommunicator *comm, PodFoldedRanks *out)
{
  uint32_t first = 0;
  uint32_t end = fold->n_ranks;

  while (first < end && pod_communicator_group_of (comm, fold->rank[first]) == UINT32_MAX)
    first++;
  while (end > first && pod_communicator_group_of (comm, fold->rank[end - 1]) == UINT32_MAX)
    end--;
  *out = (PodFoldedRanks){ .first = first, .n = end - first, .group = g_new (uint32_t, end - first + 1) };
}

static void
represent_groups (PodFold *fold, const Coloring *c, uint32_t **color_of_group)
{
  fold->n_comms = c->n_comms;
  fold->n_groups = g_new0 (uint32_t, c->n_comms + 1);
  fold->ranks = g_new0 (PodFoldedRanks, c->n_comms + 1);
  fold->n_expected = g_new0 (uint32_t *, c->n_comms + 1);
  for (uint32_t k = 0; k < c->n_comms; k++)
    {
      const PodCommunicator *comm = comm_at (c->program, k);
      const uint32_t n_orbits = c->symmetry->n_group_orbits[k];
      const uint32_t *orbit_of = c->symmetry->orbit_of_group[k];
      g_autofree uint64_t *wide = g_new (uint64_t, n_orbits + 1);

      for (uint32_t g = 0; g < n_orbits; g++)
        wide[g] = c->group_color[c->first_group[k] + g];
      color_of_group[k] = g_new (uint32_t, n_orbits + 1);
      fold->n_groups[k] = recolor (wide, n_orbits, color_of_group[k]);
      fold->n_expected[k] = g_new0 (uint32_t, fold->n_groups[k]);
      span_ranks (fold, comm, &fold->ranks[k]);
      for (uint32_t i = 0; i < fold->ranks[k].n; i++)
        {
          const uint32_t group = pod_communicator_group_of (comm, fold->rank[fold->ranks[k].first + i]);

          fold->ranks[k].group[i] = group == UINT32_MAX ? UINT32_MAX : color_of_group[k][orbit_of[group]];
          if (group != UINT32_MAX)
            fold->n_expected[k][color_of_group[k][orbit_of[group]]]++;
        }
    }
}

static double
load_of (const Coloring *c, const Sum *load, uint32_t link)
{
  return (double) (uint64_t) (c->n_of_link[link] == 1 ? load[link] : load[link] / c->n_of_link[link]) / 4294967296.0;
}

/* On each link of a route, of all its groups: bytes on it for each on the busiest of a group. */
static void
sum_loads (const Coloring *c, uint32_t r, Sum *load)
{
  const uint32_t comm = route_at (c->routes, r)->comm;
  const uint32_t n = c->symmetry->n_group_orbits[comm];

  for (size_t i = c->first_entry[r][0]; i < c->first_entry[r][n]; i++)
    load[c->entries[i].link] = 0;
  for (uint32_t g = 0; g < n; g++)
    for (size_t i = c->first_entry[r][g]; i < c->first_entry[r][g + 1]; i++)
      load[c->entries[i].link] += (Sum) c->entries[i].share_q32 * ((uint64_t) c->entries[i].n * c->symmetry->group_orbit_size[comm][g]);
}

/* What the groups of a colour put on the links that stand for their colours. @first: the first of its orbits; @next: of each orbit the next */
static void
fold_path (PodFold *fold, const Coloring *c, uint32_t r, uint32_t first, const uint32_t *next, const bool *is_standing, const Sum *load, uint32_t *where,
           PodFoldedPath *path)
{
  const uint32_t comm = route_at (c->routes, r)->comm;
  g_autoptr (GArray) entries = g_array_new (FALSE, FALSE, sizeof (PodPathEntry));

  path->group = c->symmetry->group_of_orbit[comm][first];
  for (size_t i = c->first_entry[r][first]; i < c->first_entry[r][first + 1]; i++)
    path->analytic_s_per_byte = MAX (path->analytic_s_per_byte, load_of (c, load, c->entries[i].link) / fold->capacity[c->link_color[c->entries[i].link]]);
  /* groups of a colour are few in a folded run: their list is walked, not all groups */
  for (uint32_t g = first; g != UINT32_MAX; g = next[g])
    for (size_t i = c->first_entry[r][g]; i < c->first_entry[r][g + 1]; i++)
      {
        const Entry *entry = &c->entries[i];
        const uint32_t to = c->link_color[entry->link];

        if (!is_standing[entry->link])
          continue;
        if (where[to] == UINT32_MAX)
          {
            const PodPathEntry new = { .link = to };

            where[to] = entries->len;
            c->sum[to] = 0;
            g_array_append_val (entries, new);
          }
        c->sum[to] += (Sum) entry->share_q32 * ((uint64_t) entry->n * c->symmetry->group_orbit_size[comm][g]);
        g_array_index (entries, PodPathEntry, where[to]).share_q32 = (uint64_t) (c->sum[to] / c->n_of_link[entry->link]);
      }
  for (guint i = 0; i < entries->len; i++)
    where[g_array_index (entries, PodPathEntry, i).link] = UINT32_MAX;
  path->n_entries = entries->len;
  path->entries = (PodPathEntry *) g_array_free (g_steal_pointer (&entries), FALSE);
}

/* Shares of a route's groups summed by (group colour, link colour), on the link that stands for its colour. @lists: list_groups' of orbits. */
static void
fold_route (PodFold *fold, const Coloring *c, uint32_t r, const uint32_t *lists, const bool *is_standing, uint32_t *where, Sum *load)
{
  const uint32_t comm = route_at (c->routes, r)->comm;
  const uint32_t n_colors = fold->n_groups[comm];
  const uint32_t n_orbits = c->symmetry->n_group_orbits[comm];

  sum_loads (c, r, load);
  for (uint32_t color = 0; color < n_colors; color++)
    if (lists[n_orbits + color] != UINT32_MAX)
      fold_path (fold, c, r, lists[n_orbits + color], lists + n_orbits + n_colors, is_standing, load, where, &fold->paths[r][color]);
}

/* A group's own path; those that are shifted from the first group's are made when they are asked for. @where: scratch by link, none */
static void
unfold_path (PodFold *fold, const Coloring *c, uint32_t r, uint32_t g, const Sum *load, uint32_t *where)
{
  const PodRoute *route = route_at (c->routes, r);
  const PodPlan *plan = pod_route_plan (route, g);
  PodFoldedPath *path = &fold->paths[r][g];
  const bool is_shifted = g > 0 && plan == pod_route_plan (route, 0) && fold->paths[r][0].n_entries == plan->n_entries;

  path->group = g;
  pod_route_links (route, g, c->scratch);
  for (uint32_t i = 0; i < plan->n_entries; i++)
    path->analytic_s_per_byte = MAX (path->analytic_s_per_byte, load_of (c, load, c->link_index[c->scratch[i]]) / fold->capacity[c->link_index[c->scratch[i]]]);
  if (is_shifted)
    path->n_entries = plan->n_entries;
  else
    path->entries = g_new (PodPathEntry, plan->n_entries);
  for (uint32_t i = 0; !is_shifted && i < plan->n_entries; i++)
    {
      const uint32_t link = c->link_index[c->scratch[i]];

      if (where[link] == UINT32_MAX)
        {
          where[link] = path->n_entries++;
          path->entries[where[link]] = (PodPathEntry){ .link = link };
        }
      path->entries[where[link]].share_q32 += plan->entries[i].share_q32;
    }
  for (uint32_t i = 0; !is_shifted && i < path->n_entries; i++)
    where[path->entries[i].link] = UINT32_MAX;
}

static void
unfold_route (PodFold *fold, const Coloring *c, uint32_t r, uint32_t *where, Sum *load)
{
  const PodRoute *route = route_at (c->routes, r);
  const uint32_t n = fold->n_groups[route->comm];

  memset (load, 0, c->n_links * sizeof *load);
  for (uint32_t g = 0; g < n; g++)
    {
      const PodPlan *plan = pod_route_plan (route, g);

      pod_route_links (route, g, c->scratch);
      for (uint32_t i = 0; i < plan->n_entries; i++)
        load[c->link_index[c->scratch[i]]] += plan->entries[i].share_q32;
    }
  for (uint32_t g = 0; g < n; g++)
    unfold_path (fold, c, r, g, load, where);
}

void
pod_fold_path (const PodFold *fold, const PodRoute *route, uint32_t r, uint32_t group, PodPathEntry *out)
{
  const PodPlan *plan = pod_route_plan (route, group);
  const PodPathEntry *first = fold->paths[r][0].entries;
  PodTopologyShift shift;

  pod_route_shift (route, group, &shift);
  for (uint32_t i = 0; i < plan->n_entries; i++)
    out[i] = (PodPathEntry){ .link = fold->color_of_link[pod_topology_shift_link (&shift, plan->entries[i].link)], .share_q32 = first[i].share_q32 };
}

/* Appends, behind the colours of n groups, the head of each colour's list of groups and the next group of each group. */
static uint32_t *
list_groups (const uint32_t *color_of_group, uint32_t n_groups, uint32_t n_colors)
{
  uint32_t *lists = g_new (uint32_t, 2 * (size_t) n_groups + n_colors);

  memcpy (lists, color_of_group, n_groups * sizeof *lists);
  memset (lists + n_groups, 0xff, ((size_t) n_groups + n_colors) * sizeof *lists);
  for (uint32_t g = n_groups; g-- > 0;)
    {
      uint32_t *head = &lists[n_groups + color_of_group[g]];

      lists[n_groups + n_colors + g] = *head;
      *head = g;
    }
  return lists;
}

static void
represent_links (PodFold *fold, const Coloring *c, const PodTopology *topology, PodFidelity fidelity, bool *is_standing)
{
  fold->capacity = g_new (double, c->n_links + 1);
  fold->link = g_new (uint32_t, c->n_links + 1);
  for (uint32_t l = 0; l < c->n_links; l++)
    if (c->link_color[l] == fold->n_links)
      {
        fold->link[fold->n_links] = c->real_link[l];
        fold->capacity[fold->n_links++] = pod_collective_link_rate (topology, fidelity, c->real_link[l]);
        is_standing[l] = true;
      }
}

/* Routes that load the same links share their paths. */
static void
represent_routes (PodFold *fold, const Coloring *c, uint32_t **color_of_group, const bool *is_standing)
{
  g_autofree uint32_t *where = g_new (uint32_t, c->n_links + 1);
  g_autofree Sum *load = g_new (Sum, c->n_links + 1);

  memset (where, 0xff, (c->n_links + 1) * sizeof *where);
  fold->n_routes = c->routes->len;
  fold->paths = g_new0 (PodFoldedPath *, fold->n_routes + 1);
  fold->comm_of_route = g_new0 (uint32_t, fold->n_routes + 1);
  for (uint32_t r = 0; r < fold->n_routes; r++)
    {
      const uint32_t comm = route_at (c->routes, r)->comm;
      g_autofree uint32_t *lists = NULL;

      fold->comm_of_route[r] = comm;
      if (c->like[r] < r)
        {
          fold->paths[r] = fold->paths[c->like[r]];
          continue;
        }
      fold->paths[r] = g_new0 (PodFoldedPath, fold->n_groups[comm] + 1);
      if (c->is_identity)
        {
          unfold_route (fold, c, r, where, load);
          continue;
        }
      lists = list_groups (color_of_group[comm], c->symmetry->n_group_orbits[comm], fold->n_groups[comm]);
      fold_route (fold, c, r, lists, is_standing, where, load);
    }
  fold->like = g_memdup2 (c->like, fold->n_routes * sizeof *fold->like);
}

PodFold *
pod_fold_new (const PodTopology *topology, PodFidelity fidelity, const PodProgram *program, const GArray *routes, const PodSymmetry *symmetry,
              bool is_identity)
{
  PodFold *fold = g_new0 (PodFold, 1);
  Coloring c;
  g_autofree bool *is_standing = NULL;
  g_autofree uint32_t **color_of_group = NULL;

  coloring_init (&c, topology, program, routes, symmetry, is_identity);
  is_standing = g_new0 (bool, c.n_links + 1);
  color_of_group = g_new0 (uint32_t *, c.n_comms + 1);
  color_initially (&c, topology, fidelity);
  if (!is_identity)
    refine (&c);
  represent_ranks (fold, &c);
  represent_groups (fold, &c, color_of_group);
  represent_links (fold, &c, topology, fidelity, is_standing);
  represent_routes (fold, &c, color_of_group, is_standing);
  if (is_identity)
    fold->color_of_link = g_steal_pointer (&c.link_index);
  for (uint32_t k = 0; k < c.n_comms; k++)
    g_free (color_of_group[k]);
  coloring_clear (&c);
  return fold;
}

void
pod_fold_free (PodFold *fold)
{
  if (fold == NULL)
    return;
  for (uint32_t k = 0; k < fold->n_comms; k++)
    {
      g_free (fold->ranks[k].group);
      g_free (fold->n_expected[k]);
    }
  for (uint32_t r = 0; r < fold->n_routes; r++)
    {
      if (fold->like[r] < r)
        continue;
      for (uint32_t color = 0; color < fold->n_groups[fold->comm_of_route[r]]; color++)
        g_free (fold->paths[r][color].entries);
      g_free (fold->paths[r]);
    }
  g_free (fold->comm_of_route);
  g_free (fold->like);
  g_free (fold->color_of_link);
  g_free (fold->rank);
  g_free (fold->n_like);
  g_free (fold->class_of);
  g_free (fold->index_of_rank);
  g_free (fold->capacity);
  g_free (fold->link);
  g_free (fold->n_groups);
  g_free (fold->ranks);
  g_free (fold->n_expected);
  g_free (fold->paths);
  g_free (fold);
}
