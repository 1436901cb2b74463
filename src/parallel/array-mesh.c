#include "parallel/array-mesh.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"

#define N_DIMS (POD_DIM_CORE + 1)

static const char *const dim_names[N_DIMS] = { "x", "y", "z", "dcn", "core" };

/* ---- names and sizes ---- */

int
pod_array_mesh_find (const PodArrayMesh *mesh, char name)
{
  for (unsigned a = 0; a < mesh->n_axes; a++)
    if (mesh->name[a] == name)
      return (int) a;
  return -1;
}

uint32_t
pod_array_mesh_size (const PodArrayMesh *mesh, unsigned mask)
{
  uint32_t size = 1;

  for (unsigned a = 0; a < mesh->n_axes; a++)
    if (mask >> a & 1)
      size *= mesh->size[a];
  return size;
}

uint32_t
pod_array_mesh_n_devices (const PodArrayMesh *mesh)
{
  return pod_array_mesh_size (mesh, (1U << mesh->n_axes) - 1);
}

char *
pod_array_mesh_to_text (const PodArrayMesh *mesh)
{
  GString *text = g_string_new (NULL);

  for (unsigned a = 0; a < mesh->n_axes; a++)
    g_string_append_printf (text, "%s%c=%u", a > 0 ? "," : "", mesh->name[a], mesh->size[a]);
  return g_string_free (text, FALSE);
}

char *
pod_array_mesh_mask_text (const PodArrayMesh *mesh, unsigned mask)
{
  GString *text = g_string_new (NULL);

  for (unsigned a = 0; a < mesh->n_axes; a++)
    if (mask >> a & 1)
      g_string_append_c (text, mesh->name[a]);
  return g_string_free (text, FALSE);
}

static bool
add_axis (PodArrayMesh *mesh, const char *word, uint64_t *n_devices, GError **error)
{
  const char *equals = strchr (word, '=');
  uint64_t size;

  if (equals == NULL || equals != word + 1 || !g_ascii_isupper (*word))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "expected AXIS=SIZE with a capital letter as AXIS, such as X=4, got '%s'", word);
      return false;
    }
  if (pod_array_mesh_find (mesh, *word) >= 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "axis %c stands twice", *word);
      return false;
    }
  if (mesh->n_axes == POD_MAX_MESH_AXES)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "a mesh has at most %d axes",
                   POD_MAX_MESH_AXES);
      return false;
    }
  if (!pod_parse_whole (equals + 1, POD_UNIT_COUNT, &size, error))
    {
      g_prefix_error (error, "%c: ", *word);
      return false;
    }
  if (size == 0)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "axis %c must have 1 device or more, got 0",
                   *word);
      return false;
    }
  if (size > POD_MAX_MESH_SIZE || *n_devices * size > POD_MAX_MESH_SIZE)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "a mesh of more than %u devices",
                   POD_MAX_MESH_SIZE);
      return false;
    }
  *n_devices *= size;
  mesh->name[mesh->n_axes] = *word;
  mesh->size[mesh->n_axes] = (uint32_t) size;
  mesh->n_axes++;
  return true;
}

bool
pod_array_mesh_parse (const char *text, PodArrayMesh *out, GError **error)
{
  g_auto (GStrv) words = g_strsplit (text, ",", -1);
  uint64_t n_devices = 1;

  *out = (PodArrayMesh){ .n_axes = 0 };
  for (char **word = words; *word != NULL; word++)
    if (!add_axis (out, g_strstrip (*word), &n_devices, error))
      return false;
  if (out->n_axes > 0)
    return true;
  g_set_error_literal (error, POD_ERROR, POD_ERROR_INVALID,
                       "expected AXIS=SIZE,…, such as X=4,Y=2, got nothing");
  return false;
}

/* ---- on a torus ---- */

/* How long each physical axis is, and how much of it is taken (the next stride). */
typedef struct
{
  uint32_t extent[N_DIMS];
  uint32_t taken[N_DIMS];
} Space;

static void
space_init (Space *space, const PodTopology *topology)
{
  for (unsigned d = 0; d < 3; d++)
    space->extent[d] = d < topology->n_dims ? topology->extent[d] : 1;
  space->extent[POD_DIM_DCN] = MAX (topology->n_slices, 1);
  space->extent[POD_DIM_CORE] = topology->chip->devices_per_chip;
  for (unsigned d = 0; d < N_DIMS; d++)
    space->taken[d] = 1;
}

static void
take (Space *space, PodAxisPlacement *placement, unsigned dim, uint32_t size)
{
  if (size > 1)
    placement->factors[placement->n_factors++]
        = (PodGroupFactor){ .dim = (uint8_t) dim, .stride = space->taken[dim], .size = size };
  space->taken[dim] *= size;
}

/* One part of a map, "x" or "x:4". */
static bool
parse_part (Space *space, char axis, const char *part, PodAxisPlacement *placement,
            uint64_t *product, GError **error)
{
  g_auto (GStrv) pair = g_strsplit (part, ":", 2);
  const char *name = pair[0] != NULL ? pair[0] : ""; /* of "" there are no parts */
  unsigned dim = 0;
  uint64_t size;

  while (dim < N_DIMS && strcmp (name, dim_names[dim]) != 0)
    dim++;
  if (dim == N_DIMS)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--map: %c: unknown physical axis '%s'; known are x, y, z, dcn, core", axis,
                   name);
      return false;
    }
  size = space->extent[dim] / space->taken[dim];
  if (pair[0] != NULL && pair[1] != NULL
      && !pod_parse_whole (pair[1], POD_UNIT_COUNT, &size, error))
    {
      g_prefix_error (error, "--map: %c: ", axis);
      return false;
    }
  if (size == 0 || size > space->extent[dim]
      || space->extent[dim] % (space->taken[dim] * size) != 0)
    {
      g_set_error (
          error, POD_ERROR, POD_ERROR_INFEASIBLE,
          "--map: %c=%s: axis %s has %u devices, %u of them taken further in: %" G_GUINT64_FORMAT
          " more do not divide it",
          axis, part, dim_names[dim], space->extent[dim], space->taken[dim], size);
      return false;
    }
  if (placement->n_factors == POD_MAX_FACTORS)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_LIMIT, "--map: %c has more than %d parts", axis,
                   POD_MAX_FACTORS);
      return false;
    }
  take (space, placement, dim, (uint32_t) size);
  *product *= size;
  return true;
}

/* One word of a map, "X=x:2,y". */
static bool
parse_word (PodArrayMesh *mesh, Space *space, const char *word, unsigned *given, GError **error)
{
  g_auto (GStrv) parts = NULL;
  int axis = *word != '\0' && word[1] == '=' ? pod_array_mesh_find (mesh, *word) : -1;
  uint64_t product = 1;

  if (axis < 0 || *given >> axis & 1)
    {
      g_autofree char *all = pod_array_mesh_to_text (mesh);

      g_set_error (
          error, POD_ERROR, POD_ERROR_INVALID,
          "--map: '%s' is not AXIS=PHYSICAL[:SIZE],… with each axis of the mesh %s at most once",
          word, all);
      return false;
    }
  *given |= 1U << axis;
  parts = g_strsplit (word + 2, ",", -1);
  for (char **part = parts; *part != NULL; part++)
    if (!parse_part (space, *word, *part, &mesh->placement[axis], &product, error))
      return false;
  if (product == mesh->size[axis])
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
               "--map: %s covers %" G_GUINT64_FORMAT " devices, but the mesh has %c=%u", word,
               product, *word, mesh->size[axis]);
  return false;
}

static bool
place_by_map (PodArrayMesh *mesh, const char *map, GError **error)
{
  g_auto (GStrv) words = g_strsplit_set (map, " \t\n", -1);
  unsigned given = 0;
  Space space;

  space_init (&space, mesh->topology);
  for (char **word = words; *word != NULL; word++)
    if (**word != '\0' && !parse_word (mesh, &space, *word, &given, error))
      return false;
  for (unsigned a = 0; a < mesh->n_axes; a++)
    if (!(given >> a & 1) && mesh->size[a] > 1)
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--map: %c=%u has no place: add %c=…",
                     mesh->name[a], mesh->size[a], mesh->name[a]);
        return false;
      }
  return true;
}

/* Axes @from and on each take a whole physical axis of their size; the first that fits. */
static bool
place_whole (PodArrayMesh *mesh, unsigned from, Space *space)
{
  if (from == mesh->n_axes)
    return true;
  if (mesh->size[from] == 1)
    return place_whole (mesh, from + 1, space);
  for (unsigned dim = 0; dim < N_DIMS; dim++)
    if (space->taken[dim] == 1 && space->extent[dim] == mesh->size[from])
      {
        take (space, &mesh->placement[from], dim, mesh->size[from]);
        if (place_whole (mesh, from + 1, space))
          return true;
        space->taken[dim] = 1;
        mesh->placement[from].n_factors = 0;
      }
  return false;
}

static uint32_t
common_divisor (uint32_t a, uint32_t b)
{
  while (b != 0)
    {
      uint32_t rest = a % b;

      a = b;
      b = rest;
    }
  return a;
}

/* Fills physical axis after physical axis. */
static bool
place_filling (PodArrayMesh *mesh, GError **error)
{
  Space space;

  space_init (&space, mesh->topology);
  for (unsigned a = 0; a < mesh->n_axes; a++)
    {
      uint32_t left = mesh->size[a];

      mesh->placement[a].n_factors = 0;
      for (unsigned dim = 0; dim < N_DIMS && left > 1; dim++)
        {
          uint32_t size = common_divisor (left, space.extent[dim] / space.taken[dim]);

          take (&space, &mesh->placement[a], dim, size);
          left /= size;
        }
      if (left > 1)
        {
          g_autofree char *text = pod_array_mesh_to_text (mesh);

          g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE,
                       "the mesh %s does not divide the axes of %s: %u of %c=%u find no place; say "
                       "--map \"%c=x:2,y\"",
                       text, mesh->topology->name, left, mesh->name[a], mesh->size[a],
                       mesh->name[a]);
          return false;
        }
    }
  return true;
}

/* ---- on ranks that are numbered ---- */

static bool
place_by_order (PodArrayMesh *mesh, const char *order, GError **error)
{
  g_auto (GStrv) words = g_strsplit (order != NULL ? order : "", ",", -1);
  unsigned given = 0;
  uint32_t stride = 1;

  if (order != NULL && *words == NULL)
    {
      g_set_error_literal (error, POD_ERROR, POD_ERROR_INVALID,
                           "--order: expected axes of the mesh, innermost first, got nothing");
      return false;
    }
  for (char **word = words; *word != NULL; word++)
    {
      const char *name = g_strstrip (*word);
      int axis = *name != '\0' && name[1] == '\0' ? pod_array_mesh_find (mesh, *name) : -1;

      if (axis < 0 || given >> axis & 1)
        {
          g_autofree char *all = pod_array_mesh_to_text (mesh);

          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "--order: '%s' is none of the axes of the mesh %s, each at most once, "
                       "innermost first",
                       name, all);
          return false;
        }
      given |= 1U << axis;
      mesh->stride[axis] = stride;
      stride *= mesh->size[axis];
    }
  for (unsigned a = mesh->n_axes; a-- > 0;)
    if (!(given >> a & 1))
      {
        mesh->stride[a] = stride;
        stride *= mesh->size[a];
      }
  return true;
}

bool
pod_array_mesh_place (PodArrayMesh *mesh, const PodTopology *topology, const char *map,
                      const char *order, GError **error)
{
  bool is_torus = topology->fabric == POD_FABRIC_TORUS;
  Space space;

  mesh->topology = topology;
  memset (mesh->placement, 0, sizeof mesh->placement);
  if (pod_array_mesh_n_devices (mesh) > topology->n_devices)
    {
      g_autofree char *text = pod_array_mesh_to_text (mesh);

      g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "the mesh %s has %u devices, %s only %u",
                   text, pod_array_mesh_n_devices (mesh), topology->name, topology->n_devices);
      return false;
    }
  if (is_torus ? order != NULL : map != NULL)
    {
      g_set_error_literal (
          error, POD_ERROR, POD_ERROR_INVALID,
          is_torus ? "--order is for switched machines; on a torus say --map \"X=x Y=y\""
                   : "--map is for tori; on this machine say --order Y,X, innermost first");
      return false;
    }
  if (!is_torus)
    return place_by_order (mesh, order, error);
  if (map != NULL)
    return place_by_map (mesh, map, error);
  space_init (&space, topology);
  return place_whole (mesh, 0, &space) || place_filling (mesh, error);
}

/* Takes the parts of an axis, if they start where what is taken ends. */
static bool
take_factors (Space *space, const PodAxisPlacement *placement)
{
  Space after = *space;

  for (unsigned f = 0; f < placement->n_factors; f++)
    {
      const PodGroupFactor *factor = &placement->factors[f];

      if (factor->stride != after.taken[factor->dim])
        return false;
      after.taken[factor->dim] *= factor->size;
    }
  *space = after;
  return true;
}

/* Innermost axes first, so that --map reads it back. */
static void
tell_torus (const PodArrayMesh *mesh, GString *text)
{
  unsigned told = 0;
  Space space;

  space_init (&space, mesh->topology);
  for (unsigned n = 0; n < mesh->n_axes; n++)
    {
      unsigned a = 0;

      while (told >> a & 1 || !take_factors (&space, &mesh->placement[a]))
        {
          a++;
          g_assert (a < mesh->n_axes);
        }
      told |= 1U << a;
      for (unsigned f = 0; f < mesh->placement[a].n_factors; f++)
        {
          const PodGroupFactor *factor = &mesh->placement[a].factors[f];

          if (f == 0)
            g_string_append_printf (text, "%s%c=", text->len > 0 ? " " : "", mesh->name[a]);
          g_string_append_printf (text, "%s%s", f > 0 ? "," : "", dim_names[factor->dim]);
          if (factor->size != space.extent[factor->dim])
            g_string_append_printf (text, ":%u", factor->size);
        }
    }
}

/* By stride, which axes of 1 share. */
static void
tell_order (const PodArrayMesh *mesh, GString *text)
{
  unsigned told = 0;

  for (unsigned n = 0; n < mesh->n_axes; n++)
    {
      unsigned least = mesh->n_axes;

      for (unsigned a = 0; a < mesh->n_axes; a++)
        if (!(told >> a & 1) && (least == mesh->n_axes || mesh->stride[a] < mesh->stride[least]))
          least = a;
      told |= 1U << least;
      g_string_append_printf (text, "%s%c", n > 0 ? "," : "", mesh->name[least]);
    }
}

char *
pod_array_mesh_placement_text (const PodArrayMesh *mesh)
{
  GString *text = g_string_new (NULL);

  if (mesh->topology->fabric == POD_FABRIC_TORUS)
    tell_torus (mesh, text);
  else
    tell_order (mesh, text);
  return g_string_free (text, FALSE);
}
