#include "exec/coloring-private.h"

#include <string.h>

/* One rank stands for each colour: the first. */
static void
represent_ranks (PodFold *fold, const PodColoring *c)
{
  const uint32_t n = c->program->n_ranks;

  if (c->is_identity)
    {
      fold->n_ranks = n;
      fold->class_of = c->program->class_of_rank;
      return;
    }
  fold->rank = g_new (uint32_t, n);
  fold->n_like = g_new0 (uint32_t, n);
  fold->class_of = fold->own_class_of = g_new (uint32_t, n);
  fold->index_of_rank = g_new (uint32_t, n);
  for (uint32_t rank = 0; rank < n; rank++)
    {
      uint32_t color = c->rank_color[c->symmetry->orbit_of_rank[rank]]; /* colours appear in order */

      if (color == fold->n_ranks)
        {
          fold->rank[color] = rank;
          fold->own_class_of[color] = c->program->class_of_rank[rank];
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
represent_groups (PodFold *fold, const PodColoring *c, uint32_t **color_of_group)
{
  fold->n_comms = c->n_comms;
  fold->n_groups = g_new0 (uint32_t, c->n_comms + 1);
  fold->ranks = g_new0 (PodFoldedRanks, c->n_comms + 1);
  fold->n_expected = g_new0 (uint32_t *, c->n_comms + 1);
  for (uint32_t k = 0; k < c->n_comms; k++)
    {
      const PodCommunicator *comm = pod_coloring_comm (c->program, k);
      const uint32_t n_orbits = c->symmetry->n_group_orbits[k];
      const uint32_t *orbit_of = c->symmetry->orbit_of_group[k];
      g_autofree uint64_t *wide = NULL;

      if (c->is_identity)
        {
          fold->n_groups[k] = comm->n_groups;
          fold->ranks[k].comm = comm;
          continue;
        }
      wide = g_new (uint64_t, n_orbits + 1);
      for (uint32_t g = 0; g < n_orbits; g++)
        wide[g] = c->group_color[c->first_group[k] + g];
      color_of_group[k] = g_new (uint32_t, n_orbits + 1);
      fold->n_groups[k] = pod_coloring_number (wide, n_orbits, color_of_group[k]);
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
load_of (const PodColoring *c, const PodSum *load, uint32_t link)
{
  return (double) (uint64_t) (c->n_of_link[link] == 1 ? load[link] : load[link] / c->n_of_link[link]) / 4294967296.0;
}

/* On each link of a route, of all its groups: bytes on it for each on the busiest of a group. */
static void
sum_loads (const PodColoring *c, uint32_t r, PodSum *load)
{
  const uint32_t comm = pod_coloring_route (c->routes, r)->comm;
  const uint32_t n = c->symmetry->n_group_orbits[comm];

  for (size_t i = c->first_entry[r][0]; i < c->first_entry[r][n]; i++)
    load[c->entries[i].link] = 0;
  for (uint32_t g = 0; g < n; g++)
    for (size_t i = c->first_entry[r][g]; i < c->first_entry[r][g + 1]; i++)
      load[c->entries[i].link] += (PodSum) c->entries[i].share_q32 * ((uint64_t) c->entries[i].n * c->symmetry->group_orbit_size[comm][g]);
}

/* What the groups of a colour put on the links that stand for their colours. @first: the first of its orbits; @next: of each orbit the next */
static void
fold_path (PodFold *fold, const PodColoring *c, uint32_t r, uint32_t first, const uint32_t *next, const bool *is_standing, const PodSum *load, uint32_t *where,
           PodFoldedPath *path)
{
  const uint32_t comm = pod_coloring_route (c->routes, r)->comm;
  g_autoptr (GArray) entries = g_array_new (FALSE, FALSE, sizeof (PodPathEntry));

  path->group = c->symmetry->group_of_orbit[comm][first];
  for (size_t i = c->first_entry[r][first]; i < c->first_entry[r][first + 1]; i++)
    path->analytic_s_per_byte = MAX (path->analytic_s_per_byte, load_of (c, load, c->entries[i].link) / fold->capacity[c->link_color[c->entries[i].link]]);
  /* groups of a colour are few in a folded run: their list is walked, not all groups */
  for (uint32_t g = first; g != UINT32_MAX; g = next[g])
    for (size_t i = c->first_entry[r][g]; i < c->first_entry[r][g + 1]; i++)
      {
        const PodColoringEntry *entry = &c->entries[i];
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
        c->sum[to] += (PodSum) entry->share_q32 * ((uint64_t) entry->n * c->symmetry->group_orbit_size[comm][g]);
        g_array_index (entries, PodPathEntry, where[to]).share_q32 = (uint64_t) (c->sum[to] / c->n_of_link[entry->link]);
      }
  for (guint i = 0; i < entries->len; i++)
    where[g_array_index (entries, PodPathEntry, i).link] = UINT32_MAX;
  path->n_entries = entries->len;
  path->entries = (PodPathEntry *) g_array_free (g_steal_pointer (&entries), FALSE);
}

/* Shares of a route's groups summed by (group colour, link colour), on the link that stands for its colour. @lists: list_groups' of orbits. */
static void
fold_route (PodFold *fold, const PodColoring *c, uint32_t r, const uint32_t *lists, const bool *is_standing, uint32_t *where, PodSum *load)
{
  const uint32_t comm = pod_coloring_route (c->routes, r)->comm;
  const uint32_t n_colors = fold->n_groups[comm];
  const uint32_t n_orbits = c->symmetry->n_group_orbits[comm];

  sum_loads (c, r, load);
  for (uint32_t color = 0; color < n_colors; color++)
    if (lists[n_orbits + color] != UINT32_MAX)
      fold_path (fold, c, r, lists[n_orbits + color], lists + n_orbits + n_colors, is_standing, load, where, &fold->paths[r][color]);
}

/* A group's own path; those that are shifted from the first group's are made when they are asked for. @where: scratch by link, none */
static void
unfold_path (PodFold *fold, const PodColoring *c, uint32_t r, uint32_t g, const PodSum *load, uint32_t *where)
{
  const PodRoute *route = pod_coloring_route (c->routes, r);
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

/* Of groups that have the first one's path shifted the longest time for a byte says all, and it is one of few. */
static void
share_paths (PodFold *fold, uint32_t r, uint32_t n)
{
  g_autofree PodFoldedPath *of_group = g_steal_pointer (&fold->paths[r]);
  g_autofree uint64_t *key = g_new (uint64_t, n + 1);

  for (uint32_t g = 0; g < n; g++)
    {
      const double own = -1.0 - g; /* like no time */

      memcpy (&key[g], of_group[g].entries != NULL ? &own : &of_group[g].analytic_s_per_byte, sizeof *key);
    }
  fold->path_of_group[r] = g_new (uint32_t, n + 1);
  fold->n_paths[r] = pod_coloring_number (key, n, fold->path_of_group[r]);
  fold->paths[r] = g_new (PodFoldedPath, fold->n_paths[r] + 1);
  for (uint32_t g = 0; g < n; g++)
    fold->paths[r][fold->path_of_group[r][g]] = of_group[g];
}

static void
unfold_route (PodFold *fold, const PodColoring *c, uint32_t r, uint32_t *where, PodSum *load)
{
  const PodRoute *route = pod_coloring_route (c->routes, r);
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
  share_paths (fold, r, n);
}

void
pod_fold_path (const PodFold *fold, const PodRoute *route, uint32_t r, uint32_t group, PodPathEntry *out)
{
  const PodPlan *plan = pod_route_plan (route, group);
  const PodPathEntry *first = pod_fold_path_of (fold, r, 0).entries;
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
represent_links (PodFold *fold, const PodColoring *c, const PodTopology *topology, PodFidelity fidelity, bool *is_standing)
{
  fold->capacity = g_new (double, c->n_links + 1);
  fold->link = c->is_identity ? NULL : g_new (uint32_t, c->n_links + 1);
  for (uint32_t l = 0; l < c->n_links; l++)
    if (c->link_color[l] == fold->n_links)
      {
        if (fold->link != NULL)
          fold->link[fold->n_links] = c->real_link[l];
        fold->capacity[fold->n_links++] = pod_collective_link_rate (topology, fidelity, c->real_link[l]);
        is_standing[l] = true;
      }
}

/* Routes that load the same links share their paths. */
static void
represent_routes (PodFold *fold, const PodColoring *c, uint32_t **color_of_group, const bool *is_standing)
{
  g_autofree uint32_t *where = g_new (uint32_t, c->n_links + 1);
  g_autofree PodSum *load = g_new (PodSum, c->n_links + 1);

  memset (where, 0xff, (c->n_links + 1) * sizeof *where);
  fold->n_routes = c->routes->len;
  fold->paths = g_new0 (PodFoldedPath *, fold->n_routes + 1);
  fold->path_of_group = c->is_identity ? g_new0 (uint32_t *, fold->n_routes + 1) : NULL;
  fold->n_paths = g_new0 (uint32_t, fold->n_routes + 1);
  fold->comm_of_route = g_new0 (uint32_t, fold->n_routes + 1);
  for (uint32_t r = 0; r < fold->n_routes; r++)
    {
      const uint32_t comm = pod_coloring_route (c->routes, r)->comm;
      g_autofree uint32_t *lists = NULL;

      fold->comm_of_route[r] = comm;
      if (c->like[r] < r)
        {
          fold->paths[r] = fold->paths[c->like[r]];
          if (c->is_identity)
            fold->path_of_group[r] = fold->path_of_group[c->like[r]];
          continue;
        }
      fold->n_paths[r] = fold->n_groups[comm];
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
  g_auto (PodColoring) c = { 0 };
  g_autofree bool *is_standing = NULL;
  g_autofree uint32_t **color_of_group = NULL;

  pod_coloring_init (&c, topology, fidelity, program, routes, symmetry, is_identity);
  is_standing = g_new0 (bool, c.n_links + 1);
  color_of_group = g_new0 (uint32_t *, c.n_comms + 1);
  if (!is_identity)
    pod_coloring_refine (&c);
  represent_ranks (fold, &c);
  represent_groups (fold, &c, color_of_group);
  represent_links (fold, &c, topology, fidelity, is_standing);
  represent_routes (fold, &c, color_of_group, is_standing);
  if (is_identity)
    fold->color_of_link = g_steal_pointer (&c.link_index);
  for (uint32_t k = 0; k < c.n_comms; k++)
    g_free (color_of_group[k]);
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
      for (uint32_t i = 0; i < fold->n_paths[r]; i++)
        g_free (fold->paths[r][i].entries);
      g_free (fold->paths[r]);
      if (fold->path_of_group != NULL)
        g_free (fold->path_of_group[r]);
    }
  g_free (fold->comm_of_route);
  g_free (fold->like);
  g_free (fold->color_of_link);
  g_free (fold->rank);
  g_free (fold->n_like);
  g_free (fold->own_class_of);
  g_free (fold->path_of_group);
  g_free (fold->n_paths);
  g_free (fold->index_of_rank);
  g_free (fold->capacity);
  g_free (fold->link);
  g_free (fold->n_groups);
  g_free (fold->ranks);
  g_free (fold->n_expected);
  g_free (fold->paths);
  g_free (fold);
}
