#include "topology/chip-private.h"

#include <string.h>

#include "base/error.h"

/* What each surface is called and spans. A quantity that is below the first node counts as that
 * node. */
static const struct
{
  const char *name;
  const char *axes[POD_SURFACE_MAX_AXES];
} surfaces[] = {
  /* columns: of all matmuls of a batch side by side */
  [POD_SURFACE_MATMUL_BF16] = { "matmul_bf16_surface", { "m", "n", "k" } },
  [POD_SURFACE_MATMUL_FP8] = { "matmul_fp8_surface", { "m", "n", "k" } },
  [POD_SURFACE_CAST_FP8] = { "cast_fp8_surface", { "m", "k" } },
  /* heads: of all sequences */
  [POD_SURFACE_PREFILL] = { "prefill_surface", { "queries", "heads", "group", "head_dim" } },
  [POD_SURFACE_DECODE] = { "decode_surface", { "keys", "kv_heads", "group", "head_dim" } },
  /* rows of one expert; width: the smaller of columns and depth */
  [POD_SURFACE_GROUPED] = { "grouped_surface", { "rows", "experts", "width" } },
  /* rows: mean of one expert; experts: of the rank; ranks: that share all experts; power: of the
   * law that tokens are drawn from, 1: equal shares */
  [POD_SURFACE_EXPERTS] = { "experts_surface", { "rows", "experts", "ranks", "power" } },
};

G_STATIC_ASSERT (G_N_ELEMENTS (surfaces) == POD_N_SURFACES);

const char *
pod_chip_surface_name (PodChipSurface kind)
{
  g_return_val_if_fail ((unsigned) kind < POD_N_SURFACES, NULL);
  return surfaces[kind].name;
}

const char *
pod_chip_surface_axis (PodChipSurface kind, unsigned index)
{
  g_return_val_if_fail ((unsigned) kind < POD_N_SURFACES, NULL);
  return index < POD_SURFACE_MAX_AXES ? surfaces[kind].axes[index] : NULL;
}

bool
pod_chip_surface_find (const char *element, PodChipSurface *out_kind)
{
  for (unsigned i = 0; i < POD_N_SURFACES; i++)
    if (strcmp (surfaces[i].name, element) == 0)
      {
        *out_kind = (PodChipSurface) i;
        return true;
      }
  return false;
}

char *
pod_chip_surface_to_xml (PodChipSurface kind, const PodSurface *surface, const char *source)
{
  GString *text = g_string_new (NULL);
  g_autofree char *quoted = g_markup_escape_text (source, -1);
  g_autofree char *values = pod_surface_format_values (surface, "      ");

  g_string_append_printf (text, "  <%s\n    source=\"%s\">\n", surfaces[kind].name, quoted);
  for (unsigned i = 0; i < surface->n_axes; i++)
    {
      g_autofree char *nodes = pod_surface_format_axis (&surface->axes[i]);

      g_string_append_printf (text, "    <axis name=\"%s\" nodes=\"%s\"/>\n",
                              surfaces[kind].axes[i], nodes);
    }
  g_string_append_printf (text, "    <values>\n%s    </values>\n  </%s>\n", values,
                          surfaces[kind].name);
  return g_string_free (text, FALSE);
}

/* The nodes of every axis, which must be those of the kind, in order. */
static bool
read_axes (PodChipSurface kind, const PodXml *xml, PodXmlNode *element, char **out_nodes,
           unsigned *out_n_axes, GError **error)
{
  unsigned n = 0;

  for (PodXmlNode *node = pod_xml_child (element, "axis"); node != NULL;
       node = pod_xml_next (node, "axis"))
    {
      g_autofree char *name = pod_xml_attr (node, "name");
      const char *expected = pod_chip_surface_axis (kind, n);

      if (g_strcmp0 (name, expected) != 0)
        return pod_xml_error (xml, node, error, "axis %u of %s is '%s', got '%s'", n + 1,
                              surfaces[kind].name, expected != NULL ? expected : "none",
                              name != NULL ? name : "");
      out_nodes[n++] = pod_xml_attr (node, "nodes");
    }
  *out_n_axes = n;
  if (pod_chip_surface_axis (kind, n) == NULL)
    return true;
  return pod_xml_error (xml, element, error, "%s lacks the axis '%s'", surfaces[kind].name,
                        pod_chip_surface_axis (kind, n));
}

bool
pod_chip_surface_read (PodChip *chip, PodChipSurface kind, const PodXml *xml, PodXmlNode *node,
                       GError **error)
{
  g_auto (GStrv) nodes = g_new0 (char *, POD_SURFACE_MAX_AXES + 1);
  PodXmlNode *values = pod_xml_child (node, "values");
  const char *text = values != NULL ? values->text : NULL;
  g_autoptr (PodSurface) surface = NULL;
  unsigned n_axes = 0;
  bool is_read = false;

  if (chip->surfaces[kind] != NULL)
    pod_xml_error (xml, node, error, "%s stands twice", surfaces[kind].name);
  else if (read_axes (kind, xml, node, nodes, &n_axes, error))
    {
      surface = pod_surface_new (n_axes, (const char *const *) nodes, error);
      is_read
          = surface != NULL
            && pod_surface_parse_values (surface, text != NULL ? text : "", error);
      if (!is_read)
        g_prefix_error (error, "%s:%u: %s: ", xml->file, node->line, surfaces[kind].name);
    }
  if (is_read)
    chip->surfaces[kind] = g_steal_pointer (&surface);
  return is_read;
}
