#include "exec/symmetry.h"

#include <stdlib.h>
#include <string.h>

/* What is known while turns are tried. */
typedef struct
{
  PodSymmetry *symmetry;
  PodPlanKeys plan_keys;
  void *context;
  uint32_t *device_of_rank;
  uint32_t *rank_of_device; /* of the first n_ranks devices */
  uint32_t *turned;         /* by rank: where the turn that is tried carries it */
  uint64_t *keys;           /* by place: what groups that go through all places put on the links of each */
  uint32_t **parent;        /* [comm][group]: an earlier group of the same orbit, or itself */
  uint32_t **first;         /* [comm]: those that are themselves, ascending: turns commute, so what holds for these holds for all */
  uint32_t *n_first;
} Search;

static const PodCommunicator *
comm_at (const PodProgram *program, uint32_t index)
{
  return g_ptr_array_index (program->communicators, index);
}

/* Where ranks stand, as the communicators say it. False where a rank is in none, or the ranks do not stand on the first devices. */
static bool
find_devices (Search *search)
{
  const PodProgram *program = search->symmetry->program;
  const uint32_t n = program->n_ranks;
  uint32_t n_found = 0;

  memset (search->device_of_rank, 0xff, n * sizeof (uint32_t));
  memset (search->rank_of_device, 0xff, n * sizeof (uint32_t));
  for (guint k = 0; k < program->communicators->len && n_found < n; k++)
    {
      const PodCommunicator *comm = comm_at (program, k);

      for (size_t i = 0; i < (size_t) comm->n_groups * comm->group_size; i++)
        {
          if (comm->devices[i] >= n)
            return false;
          n_found += search->device_of_rank[comm->members[i]] == UINT32_MAX;
          search->device_of_rank[comm->members[i]] = comm->devices[i];
          search->rank_of_device[comm->devices[i]] = comm->members[i];
        }
    }
  return n_found == n;
}

static gint
compare_sizes (gconstpointer a, gconstpointer b)
{
  const uint32_t x = *(const uint32_t *) a;
  const uint32_t y = *(const uint32_t *) b;

  return x < y ? -1 : x > y;
}

static void
add_border (GArray *borders, uint64_t size, uint32_t n)
{
  const uint32_t border = (uint32_t) size;

  if (size >= 1 && size <= n && n % size == 0)
    g_array_append_val (borders, border);
}

/* Sizes of blocks of devices at which something of the machine or of the layout begins anew. Returns: (transfer full) (element-type uint32_t) */
static GArray *
find_borders (const PodSymmetry *symmetry)
{
  const PodTopology *topology = symmetry->topology;
  const uint32_t n = symmetry->program->n_ranks;
  const uint32_t per_chip = topology->chip->devices_per_chip;
  GArray *borders = g_array_new (FALSE, FALSE, sizeof (uint32_t));

  add_border (borders, 1, n);
  add_border (borders, per_chip, n);
  add_border (borders, (uint64_t) topology->n_rails * per_chip, n);
  add_border (borders, (uint64_t) topology->chips_per_node * per_chip, n);
  for (unsigned level = 0; level < topology->n_levels; level++)
    add_border (borders, (uint64_t) topology->level[level].span_nodes * topology->chips_per_node * per_chip, n);
  for (guint k = 0; k < symmetry->program->communicators->len; k++)
    {
      const PodCommunicator *comm = comm_at (symmetry->program, k);
      const uint32_t stride = comm->group_size > 1 && comm->devices[1] > comm->devices[0] ? comm->devices[1] - comm->devices[0] : 0;

      add_border (borders, stride, n);
      add_border (borders, (uint64_t) stride * comm->group_size, n);
    }
  add_border (borders, n, n);
  g_array_sort (borders, compare_sizes);
  return borders;
}

/* @first: (nullable) by place, where to; NULL: to the next place. */
static void
turn_ranks (Search *search, const PodTurn *turn, const uint32_t *first)
{
  const uint32_t n = search->symmetry->program->n_ranks;
  const uint32_t block = turn->lo * turn->size;

  for (uint32_t start = 0; start < n; start += block)
    for (uint32_t place = 0; place < turn->size; place++)
      {
        const uint32_t *from = search->rank_of_device + start + place * turn->lo;
        const uint32_t *to = search->rank_of_device + start + (first != NULL ? first[place] : (place + 1) % turn->size) * turn->lo;

        for (uint32_t i = 0; i < turn->lo; i++)
          search->turned[from[i]] = to[i];
      }
}

static bool
keeps_classes (const Search *search)
{
  const PodProgram *program = search->symmetry->program;

  for (uint32_t rank = 0; rank < program->n_ranks; rank++)
    if (program->class_of_rank[search->turned[rank]] != program->class_of_rank[rank])
      return false;
  return true;
}

/* What is known of the plan of one group holds for another to which the machine shifts it by whole blocks of the turn. */
static bool
is_like (const Search *search, const PodTurn *turn, const PodCommunicator *comm, uint32_t known, uint32_t g)
{
  const uint32_t *from = comm->devices + (size_t) known * comm->group_size;
  const uint32_t *to = comm->devices + (size_t) g * comm->group_size;
  PodTopologyShift shift;

  for (uint32_t i = 0; i < comm->group_size; i++)
    if (to[i] - from[i] != to[0] - from[0])
      return false;
  return (to[0] - from[0]) % (turn->lo * turn->size) == 0 && pod_topology_shift_init (&shift, search->symmetry->topology, from, to, comm->group_size);
}

/* A turn makes another group of it, its members in the same order, or itself; then its plans are added to the keys. @known: a group of the
 * communicator whose plans are, or UINT32_MAX. */
static bool
keeps_group (Search *search, const PodTurn *turn, uint32_t k, uint32_t g, uint32_t *known)
{
  const PodCommunicator *comm = comm_at (search->symmetry->program, k);
  const uint32_t *members = comm->members + (size_t) g * comm->group_size;
  const uint32_t to = pod_communicator_group_of (comm, search->turned[members[0]]);

  if (to == UINT32_MAX)
    return false;
  for (uint32_t i = 0; i < comm->group_size; i++)
    {
      const uint32_t moved = search->turned[members[i]];

      if (to == g ? pod_communicator_group_of (comm, moved) != g : moved != comm->members[(size_t) to * comm->group_size + i])
        return false;
    }
  if (to != g || (*known != UINT32_MAX && is_like (search, turn, comm, *known, g)))
    return true;
  *known = g;
  return search->plan_keys (search->context, turn, k, g, search->keys);
}

static uint32_t
first_group (uint32_t *parent, uint32_t g)
{
  while (parent[g] != g)
    {
      parent[g] = parent[parent[g]];
      g = parent[g];
    }
  return g;
}

static bool
keeps_groups (Search *search, const PodTurn *turn)
{
  memset (search->keys, 0, turn->size * sizeof *search->keys);
  for (uint32_t k = 0; k < search->symmetry->n_comms; k++)
    {
      uint32_t known = UINT32_MAX;

      for (uint32_t i = 0; i < search->n_first[k]; i++)
        if (!keeps_group (search, turn, k, search->first[k][i], &known))
          return false;
    }
  return true;
}

static bool
are_keys_equal (const Search *search, uint32_t n)
{
  for (uint32_t place = 1; place < n; place++)
    if (search->keys[place] != search->keys[0])
      return false;
  return true;
}

/* Whether each group that a turn does not carry to itself lies in one block. */
static bool
lie_in_blocks (const Search *search, const PodTurn *turn)
{
  for (uint32_t k = 0; k < search->symmetry->n_comms; k++)
    {
      const PodCommunicator *comm = comm_at (search->symmetry->program, k);

      for (uint32_t f = 0; f < search->n_first[k]; f++)
        {
          const uint32_t g = search->first[k][f];
          const uint32_t *devices = comm->devices + (size_t) g * comm->group_size;
          const uint32_t place = devices[0] / turn->lo % turn->size;

          if (pod_communicator_group_of (comm, search->turned[comm->members[(size_t) g * comm->group_size]]) == g)
            continue;
          for (uint32_t i = 1; i < comm->group_size; i++)
            if (devices[i] / turn->lo % turn->size != place)
              return false;
        }
    }
  return true;
}

typedef struct
{
  uint64_t key;
  uint32_t place;
} PlaceKey;

static int
compare_keys (const void *a, const void *b)
{
  const PlaceKey *x = a;
  const PlaceKey *y = b;

  if (x->key != y->key)
    return x->key < y->key ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

/* Sets of places with equal keys; false where no two are. */
static bool
find_sets (const Search *search, PodTurn *turn)
{
  g_autofree PlaceKey *sorted = g_new (PlaceKey, turn->size);
  uint32_t n_sets = 0;

  turn->first = g_new (uint32_t, turn->size);
  turn->n_alike = g_new (uint32_t, turn->size);
  for (uint32_t place = 0; place < turn->size; place++)
    sorted[place] = (PlaceKey){ search->keys[place], place };
  qsort (sorted, turn->size, sizeof *sorted, compare_keys);
  for (uint32_t i = 0, end; i < turn->size; i = end, n_sets++)
    {
      for (end = i + 1; end < turn->size && sorted[end].key == sorted[i].key; end++)
        ;
      for (uint32_t j = i; j < end; j++)
        {
          turn->first[sorted[j].place] = sorted[i].place;
          turn->n_alike[sorted[j].place] = end - i;
        }
    }
  return n_sets < turn->size;
}

/* The turn where the layout is the same after it, or the sets of blocks that may change places. */
static bool
try_turn (Search *search, PodTurn *turn)
{
  const PodTopology *topology = search->symmetry->topology;

  if (!pod_turn_fits (turn, topology, search->symmetry->program->n_ranks))
    return false;
  turn_ranks (search, turn, NULL);
  if (!keeps_classes (search) || !keeps_groups (search, turn))
    return false;
  if (are_keys_equal (search, turn->size))
    return true;
  /* Links of pairs within a node have two places */
  if ((topology->is_full_mesh && turn->lo < topology->chips_per_node * topology->chip->devices_per_chip) || !lie_in_blocks (search, turn)
      || !find_sets (search, turn))
    return false;
  turn_ranks (search, turn, turn->first);
  return true;
}

static void
join_groups (Search *search)
{
  for (uint32_t k = 0; k < search->symmetry->n_comms; k++)
    {
      const PodCommunicator *comm = comm_at (search->symmetry->program, k);
      const uint32_t n = search->n_first[k];

      for (uint32_t i = 0; i < n; i++)
        {
          const uint32_t g = search->first[k][i];
          const uint32_t to = pod_communicator_group_of (comm, search->turned[comm->members[(size_t) g * comm->group_size]]);
          const uint32_t a = first_group (search->parent[k], g);
          const uint32_t b = first_group (search->parent[k], to);

          search->parent[k][MAX (a, b)] = MIN (a, b);
        }
      search->n_first[k] = 0;
      for (uint32_t i = 0; i < n; i++)
        if (search->parent[k][search->first[k][i]] == search->first[k][i])
          search->first[k][search->n_first[k]++] = search->first[k][i];
    }
}

static void
turn_clear (PodTurn *turn)
{
  g_free (turn->first);
  g_free (turn->n_alike);
}

static void
find_turns (Search *search)
{
  PodSymmetry *symmetry = search->symmetry;
  g_autoptr (GArray) borders = find_borders (symmetry);
  uint32_t lo = 1;

  for (guint i = 0; i < borders->len && symmetry->n_turns < POD_MAX_TURNS; i++)
    {
      const uint32_t hi = g_array_index (borders, uint32_t, i);
      PodTurn turn = { .lo = lo, .size = hi / lo };

      if (hi % lo != 0 || hi == lo)
        continue;
      lo = hi;
      if (!try_turn (search, &turn))
        {
          turn_clear (&turn);
          continue;
        }
      join_groups (search);
      symmetry->turns[symmetry->n_turns++] = turn;
    }
}

/* Numbers orbits of ranks by their first, which stands at the first place of its set in every turn: a rank grows with each of its
 * coordinates. */
static void
number_ranks (PodSymmetry *symmetry, const Search *search)
{
  const uint32_t n = symmetry->program->n_ranks;

  symmetry->orbit_of_rank = g_new (uint32_t, n);
  symmetry->rank_of_orbit = g_new (uint32_t, n);
  memset (symmetry->orbit_of_rank, 0xff, n * sizeof (uint32_t));
  for (uint32_t rank = 0; rank < n; rank++)
    {
      uint32_t device = symmetry->n_turns > 0 ? search->device_of_rank[rank] : rank;
      uint32_t first;

      for (unsigned t = 0; t < symmetry->n_turns; t++)
        {
          const PodTurn *turn = &symmetry->turns[t];
          const uint32_t place = device / turn->lo % turn->size;

          device -= (place - (turn->first != NULL ? turn->first[place] : 0)) * turn->lo;
        }
      first = symmetry->n_turns > 0 ? search->rank_of_device[device] : rank;
      /* Whichever rank of its orbit comes first, the orbit is numbered then */
      if (symmetry->orbit_of_rank[first] == UINT32_MAX)
        {
          symmetry->rank_of_orbit[symmetry->n_orbits] = rank;
          symmetry->orbit_of_rank[first] = symmetry->n_orbits++;
        }
      symmetry->orbit_of_rank[rank] = symmetry->orbit_of_rank[first];
    }
}

static void
number_groups (PodSymmetry *symmetry, uint32_t k, const uint32_t *parent)
{
  const uint32_t n = comm_at (symmetry->program, k)->n_groups;

  symmetry->orbit_of_group[k] = g_new (uint32_t, n + 1);
  symmetry->group_of_orbit[k] = g_new (uint32_t, n + 1);
  symmetry->group_orbit_size[k] = g_new0 (uint32_t, n + 1);
  for (uint32_t g = 0; g < n; g++)
    {
      uint32_t first = g;

      while (parent != NULL && parent[first] != first)
        first = parent[first];
      if (first == g)
        {
          symmetry->group_of_orbit[k][symmetry->n_group_orbits[k]] = g;
          symmetry->orbit_of_group[k][g] = symmetry->n_group_orbits[k]++;
        }
      symmetry->orbit_of_group[k][g] = symmetry->orbit_of_group[k][first];
      symmetry->group_orbit_size[k][symmetry->orbit_of_group[k][g]]++;
    }
}

static void
search_init (Search *search, PodSymmetry *symmetry)
{
  search->device_of_rank = g_new (uint32_t, symmetry->program->n_ranks);
  search->rank_of_device = g_new (uint32_t, symmetry->program->n_ranks);
  search->turned = g_new (uint32_t, symmetry->program->n_ranks);
  search->keys = g_new (uint64_t, symmetry->program->n_ranks);
  search->parent = g_new (uint32_t *, symmetry->n_comms + 1);
  search->first = g_new (uint32_t *, symmetry->n_comms + 1);
  search->n_first = g_new (uint32_t, symmetry->n_comms + 1);
  for (uint32_t k = 0; k < symmetry->n_comms; k++)
    {
      const uint32_t n = comm_at (symmetry->program, k)->n_groups;

      search->parent[k] = g_new (uint32_t, n + 1);
      for (uint32_t g = 0; g < n; g++)
        search->parent[k][g] = g;
      search->first[k] = g_memdup2 (search->parent[k], (n + 1) * sizeof (uint32_t));
      search->n_first[k] = n;
    }
}

static void
search_clear (Search *search)
{
  for (uint32_t k = 0; search->parent != NULL && k < search->symmetry->n_comms; k++)
    {
      g_free (search->parent[k]);
      g_free (search->first[k]);
    }
  g_free (search->parent);
  g_free (search->first);
  g_free (search->n_first);
  g_free (search->device_of_rank);
  g_free (search->rank_of_device);
  g_free (search->turned);
  g_free (search->keys);
}

PodSymmetry *
pod_symmetry_new (const PodTopology *topology, const PodProgram *program, bool is_identity, PodPlanKeys plan_keys, void *context)
{
  PodSymmetry *symmetry = g_new0 (PodSymmetry, 1);
  Search search = { .symmetry = symmetry, .plan_keys = plan_keys, .context = context };

  *symmetry = (PodSymmetry){ .topology = topology, .program = program, .n_comms = program->communicators->len };
  symmetry->n_group_orbits = g_new0 (uint32_t, symmetry->n_comms + 1);
  symmetry->orbit_of_group = g_new0 (uint32_t *, symmetry->n_comms + 1);
  symmetry->group_of_orbit = g_new0 (uint32_t *, symmetry->n_comms + 1);
  symmetry->group_orbit_size = g_new0 (uint32_t *, symmetry->n_comms + 1);
  if (!is_identity && topology->fabric == POD_FABRIC_SWITCHED)
    {
      search_init (&search, symmetry);
      if (find_devices (&search))
        find_turns (&search);
    }
  number_ranks (symmetry, &search);
  for (uint32_t k = 0; k < symmetry->n_comms; k++)
    number_groups (symmetry, k, search.parent != NULL ? search.parent[k] : NULL);
  search_clear (&search);
  return symmetry;
}

void
pod_symmetry_free (PodSymmetry *symmetry)
{
  if (symmetry == NULL)
    return;
  for (uint32_t k = 0; k < symmetry->n_comms; k++)
    {
      g_free (symmetry->orbit_of_group[k]);
      g_free (symmetry->group_of_orbit[k]);
      g_free (symmetry->group_orbit_size[k]);
    }
  for (unsigned t = 0; t < symmetry->n_turns; t++)
    turn_clear (&symmetry->turns[t]);
  g_free (symmetry->n_group_orbits);
  g_free (symmetry->orbit_of_group);
  g_free (symmetry->group_of_orbit);
  g_free (symmetry->group_orbit_size);
  g_free (symmetry->orbit_of_rank);
  g_free (symmetry->rank_of_orbit);
  g_free (symmetry);
}
