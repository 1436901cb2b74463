#include "search/shapes.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"

/* One machine of the chip: longest axis over shortest orders them. */
typedef struct
{
  const PodChip *chip;
  const char *options; /* ",nic=..." or "" */
  uint64_t n_chips;
  GPtrArray *shapes;
} Shapes;

/* Adds the shape when there is such a machine. */
static void
try_shape (Shapes *shapes, const char *shape)
{
  g_autofree char *text = g_strdup_printf ("%s:%s%s", shapes->chip->name, shape, shapes->options);
  g_autoptr (PodTopology) topology = pod_topology_load (text, NULL);

  if (topology != NULL)
    g_ptr_array_add (shapes->shapes, g_steal_pointer (&text));
}

/* Shortest axes last: of slices with as many chips, the most compact comes first. */
static void
add_slices (Shapes *shapes)
{
  const uint64_t n = shapes->n_chips;
  const bool is_flat = shapes->chip->torus_dims == 2;

  for (uint64_t x = n; x > 0; x--)
    {
      if (n % x != 0 || x > n / x)
        continue;
      for (uint64_t y = n / x; y >= x; y--)
        {
          const uint64_t z = n / x / y;
          g_autofree char *shape = NULL;
          g_autofree char *twisted = NULL;

          if (n / x % y != 0 || (is_flat ? z != 1 : z < y))
            continue;
          shape = is_flat ? g_strdup_printf ("%" G_GUINT64_FORMAT "x%" G_GUINT64_FORMAT, x, y)
                          : g_strdup_printf ("%" G_GUINT64_FORMAT "x%" G_GUINT64_FORMAT "x%" G_GUINT64_FORMAT, x, y, z);
          twisted = g_strconcat (shape, "t", NULL);
          try_shape (shapes, shape);
          try_shape (shapes, twisted);
        }
    }
}

/* Domains of whole hosts, at least half as large as they can be. */
static void
add_domains (Shapes *shapes)
{
  const uint64_t most = MAX (shapes->chip->scale_up_chips, 1);
  const uint64_t host = MAX (shapes->chip->chips_per_host, 1);

  for (uint64_t d = most; d > 0; d--)
    {
      g_autofree char *shape = g_strdup_printf ("%" G_GUINT64_FORMAT "x%" G_GUINT64_FORMAT, d, shapes->n_chips / d);

      if (shapes->n_chips <= most ? d == shapes->n_chips : d % MIN (host, most) == 0 && 2 * d >= most && shapes->n_chips % d == 0)
        try_shape (shapes, shape);
    }
}

GPtrArray *
pod_shapes_of (const char *text, GError **error)
{
  const char *colon = strchr (text, ':');
  g_autofree char *name = g_strndup (text, strcspn (text, ":"));
  g_autofree char *count = colon != NULL ? g_strndup (colon + 1, strcspn (colon + 1, ",")) : NULL;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func (g_free);
  Shapes shapes = { .shapes = list, .options = colon != NULL && strchr (colon, ',') != NULL ? strchr (colon, ',') : "" };
  PodChip *chip;

  if (count == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--shapes: '%s' is not CHIP:N, such as tpu-v5p:512", text);
      return NULL;
    }
  if (!pod_parse_whole (count, POD_UNIT_COUNT, &shapes.n_chips, error))
    {
      g_prefix_error (error, "--shapes: ");
      return NULL;
    }
  if (shapes.n_chips < 1 || shapes.n_chips > 1 << 20)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--shapes: the number of chips must be between 1 and %d, got %s", 1 << 20, count);
      return NULL;
    }
  chip = pod_chip_load (name, notes, error);
  if (chip == NULL)
    {
      g_prefix_error (error, "--shapes: ");
      return NULL;
    }
  shapes.chip = chip;
  if (chip->family == POD_FAMILY_TPU)
    add_slices (&shapes);
  else
    add_domains (&shapes);
  if (list->len == 0)
    g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--shapes: there is no machine of %" G_GUINT64_FORMAT " %s%s", shapes.n_chips, chip->title,
                 chip->family == POD_FAMILY_TPU ? " in one slice" : " in whole nodes");
  pod_chip_free (chip);
  return list->len > 0 ? g_steal_pointer (&list) : NULL;
}

char *
pod_shape_wraps (const PodTopology *topology)
{
  GString *text = g_string_new (NULL);

  if (topology->fabric != POD_FABRIC_TORUS)
    return g_string_free (g_string_append_c (text, '-'), FALSE);
  for (unsigned axis = 0; axis < topology->n_dims; axis++)
    if (topology->wraps[axis])
      g_string_append_c (text, "xyz"[axis]);
  if (text->len == 0)
    g_string_append (text, "none");
  if (topology->is_twisted)
    g_string_append (text, " twisted");
  return g_string_free (text, FALSE);
}
