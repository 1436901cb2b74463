#include "exec/coloring-private.h"

#include <string.h>

#include "base/mix.h"

static uint64_t
bits_of (double value)
{
  uint64_t bits;

  memcpy (&bits, &value, sizeof bits);
  return bits;
}

uint32_t
pod_coloring_number (const uint64_t *signature, uint32_t n, uint32_t *color)
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
    for (like[r] = 0; like[r] < r && !is_like (symmetry, pod_coloring_route (routes, like[r]), pod_coloring_route (routes, r)); like[r]++)
      ;
  return like;
}

static uint32_t
refine_links (PodColoring *c)
{
  memset (c->sum, 0, c->n_links * sizeof *c->sum);
  for (guint r = 0; r < c->routes->len; r++)
    {
      const uint32_t comm = pod_coloring_route (c->routes, r)->comm;

      for (uint32_t g = 0; c->like[r] == r && g < c->symmetry->n_group_orbits[comm]; g++)
        {
          const uint64_t key = pod_mix (((uint64_t) r << 32) + c->group_color[c->first_group[comm] + g]);
          const PodColoringEntry *end = c->entries + c->first_entry[r][g + 1];
          uint64_t share_q32 = 0; /* that of the entry before: most are alike */
          PodSum term = (PodSum) pod_mix (key) * c->symmetry->group_orbit_size[comm][g];

          for (const PodColoringEntry *entry = c->entries + c->first_entry[r][g]; entry < end; entry++)
            {
              if (entry->share_q32 != share_q32)
                {
                  share_q32 = entry->share_q32;
                  term = (PodSum) pod_mix (key ^ share_q32) * c->symmetry->group_orbit_size[comm][g];
                }
              c->sum[entry->link] += term * entry->n;
            }
        }
    }
  for (uint32_t l = 0; l < c->n_links; l++)
    c->signature[l] = pod_mix (c->link_color[l]) + (uint64_t) (c->n_of_link[l] == 1 ? c->sum[l] : c->sum[l] / c->n_of_link[l]);
  return pod_coloring_number (c->signature, c->n_links, c->link_color);
}

static uint32_t
refine_groups (PodColoring *c)
{
  const uint32_t *orbit = c->orbit_of_member;

  for (uint32_t k = 0; k < c->n_comms; k++)
    {
      const PodCommunicator *comm = pod_coloring_comm (c->program, k);

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
      const PodRoute *route = pod_coloring_route (c->routes, r);

      for (uint32_t g = 0; g < c->symmetry->n_group_orbits[route->comm]; g++)
        {
          const PodPlan *plan = plan_at (c->symmetry, route, g);
          uint64_t sum = pod_mix (bits_of (plan->busiest_ratio) + (uint64_t) plan->latency_ps);

          if (c->like[r] == r)
            for (const PodColoringEntry *entry = c->entries + c->first_entry[r][g]; entry < c->entries + c->first_entry[r][g + 1]; entry++)
              sum += entry->n * pod_mix (pod_mix (((uint64_t) r << 32) + c->link_color[entry->link]) ^ entry->share_q32);
          c->signature[c->first_group[route->comm] + g] += sum;
        }
    }
  return pod_coloring_number (c->signature, c->n_groups, c->group_color);
}

static uint32_t
refine_ranks (PodColoring *c)
{
  for (uint32_t orbit = 0; orbit < c->n_ranks; orbit++)
    {
      uint64_t sum = pod_mix (c->rank_color[orbit]);

      for (uint32_t i = c->first_place[orbit]; i < c->first_place[orbit + 1]; i++)
        sum += pod_mix (c->place_key[i] + c->group_color[c->place_group[i]]);
      c->signature[orbit] = sum;
    }
  return pod_coloring_number (c->signature, c->n_ranks, c->rank_color);
}

static void
color_initially (PodColoring *c, const PodTopology *topology, PodFidelity fidelity)
{
  for (uint32_t orbit = 0; orbit < c->n_ranks; orbit++)
    c->rank_color[orbit] = c->is_identity ? orbit : c->program->class_of_rank[c->symmetry->rank_of_orbit[orbit]];
  for (uint32_t k = 0; k < c->n_comms; k++)
    for (uint32_t g = c->first_group[k]; g < c->first_group[k + 1]; g++)
      c->group_color[g] = c->is_identity ? g : k;
  for (uint32_t l = 0; l < c->n_links; l++)
    c->signature[l] = bits_of (pod_collective_link_rate (topology, fidelity, c->real_link[l]));
  if (!c->is_identity)
    pod_coloring_number (c->signature, c->n_links, c->link_color);
  else
    for (uint32_t l = 0; l < c->n_links; l++)
      c->link_color[l] = l;
}

/* Calls for each orbit of ranks and each orbit of groups that it has a place in, once. */
typedef void (*MeetPlace) (PodColoring *c, uint32_t orbit, uint32_t k, uint32_t group);

static void
meet_places (PodColoring *c, MeetPlace meet)
{
  g_autofree uint32_t *last = g_new (uint32_t, c->n_ranks + 1); /* the last group that each was met in */
  const uint32_t *orbit = c->orbit_of_member;

  memset (last, 0xff, (c->n_ranks + 1) * sizeof *last);
  for (uint32_t k = 0; k < c->n_comms; k++)
    for (uint32_t group = c->first_group[k]; group < c->first_group[k + 1]; group++)
      for (uint32_t i = 0; i < pod_coloring_comm (c->program, k)->group_size; i++, orbit++)
        if (last[*orbit] != group)
          {
            last[*orbit] = group;
            meet (c, *orbit, k, group);
          }
}

static void
count_place (PodColoring *c, uint32_t orbit, uint32_t k, uint32_t group)
{
  (void) k;
  (void) group;
  c->first_place[orbit + 1]++;
}

/* Places of an orbit are filled from behind its first; first_place is then where the next orbit's begin. */
static void
fill_place (PodColoring *c, uint32_t orbit, uint32_t k, uint32_t group)
{
  const uint32_t at = c->first_place[orbit]++;

  c->place_key[at] = (uint64_t) (k + 1) << 32;
  c->place_group[at] = group;
}

/* Who is in which group, in the order in which rounds ask for it. What turns carry into one another has its places in groups that they
 * carry into one another: so the first group of each orbit tells of all. O(members of these). */
static void
list_places (PodColoring *c)
{
  size_t n = 0;

  for (uint32_t k = 0; k < c->n_comms; k++)
    n += (size_t) c->symmetry->n_group_orbits[k] * pod_coloring_comm (c->program, k)->group_size;
  c->orbit_of_member = g_new (uint32_t, n + 1);
  n = 0;
  for (uint32_t k = 0; k < c->n_comms; k++)
    for (uint32_t g = 0; g < c->symmetry->n_group_orbits[k]; g++)
      {
        const PodCommunicator *comm = pod_coloring_comm (c->program, k);
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

void
pod_coloring_refine (PodColoring *c)
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
meet_link (PodColoring *c, uint32_t link, GArray *links, GArray *n_of_link)
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
make_room (PodColoring *c)
{
  size_t n = 0;
  uint32_t most = 0;

  c->first_entry = g_new0 (size_t *, c->routes->len + 1);
  for (guint r = 0; r < c->routes->len; r++)
    {
      const PodRoute *route = pod_coloring_route (c->routes, r);
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
    c->entries = g_new (PodColoringEntry, n + 1);
}

/* The entries of an orbit of groups, those of one link and share in one; returns where the next ones begin. @last: by link, the last entry
 * that has it. */
static size_t
list_entries (PodColoring *c, const PodPlan *plan, size_t first, size_t *last)
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
          c->entries[n++] = (PodColoringEntry){ .share_q32 = share_q32, .link = link, .n = 1 };
        }
    }
  return n;
}

static void
meet_links (PodColoring *c, const PodTopology *topology)
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
      const PodRoute *route = pod_coloring_route (c->routes, r);
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

void
pod_coloring_init (PodColoring *c, const PodTopology *topology, PodFidelity fidelity, const PodProgram *program, const GArray *routes, const PodSymmetry *symmetry,
                   bool is_identity)
{
  *c = (PodColoring){ .program = program, .symmetry = symmetry, .routes = routes, .n_comms = program->communicators->len, .n_ranks = symmetry->n_orbits, .is_identity = is_identity };
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
  c->sum = g_new (PodSum, c->n_links + 1);
  color_initially (c, topology, fidelity);
}

void
pod_coloring_clear (PodColoring *c)
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
