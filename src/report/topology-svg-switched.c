#include "report/topology-svg-private.h"

#include <math.h>

#include "base/units.h"

/* A switched machine: nodes in a row, each with its NICs above its chips and its scale-up switches
 * (or the mesh) below them, and over the nodes the levels of the tree, top first. */

enum
{
  CHIP_PITCH = 36,
  CHIP_SIZE = 24,
  NIC_WIDTH = 22,
  NIC_HEIGHT = 12,
  NODE_PAD = 14,
  NODE_GAP = 34,
  LEVEL_STEP = 86,
  BOX_HEIGHT = 26,
  SWITCH_DROP = 74, /* from the chips down to the scale-up switches */
  MESH_RADIUS = 84,
  MAX_SWITCHES = 6, /* scale-up switches drawn one by one */
};

typedef struct
{
  PodCanvas *canvas;
  const PodTopology *topology;
  PodShown nodes;
  PodShown chips; /* of a node */
  int node_width;
} Drawing;

static int
node_x (const Drawing *drawing, int slot)
{
  return slot * (drawing->node_width + NODE_GAP);
}

/* The NIC's middle, at y = 0 the top of the nodes. */
static PodPoint
nic_at (const Drawing *drawing, int node_slot, int chip_slot)
{
  int row = drawing->chips.n_slots * CHIP_PITCH;

  return pod_point (node_x (drawing, node_slot) + (drawing->node_width - row + CHIP_PITCH) / 2
                        + chip_slot * CHIP_PITCH,
                    30);
}

static bool
has_nics (const Drawing *drawing)
{
  return drawing->topology->n_levels > 0;
}

/* The row of chips, or the top of a mesh: under the NICs when there are any. */
static int
chip_row (const Drawing *drawing)
{
  return has_nics (drawing) ? 86 : 42;
}

/* ---- one node ---- */

static void
draw_chip_box (PodCanvas *canvas, const PodTopology *topology, PodPoint at, unsigned local)
{
  pod_canvas_box (canvas, "chip",
                  (PodBox){ at.x - CHIP_SIZE / 2, at.y - CHIP_SIZE / 2, CHIP_SIZE, CHIP_SIZE });
  if (topology->chip->devices_per_chip == 2)
    pod_canvas_line (canvas, "half", pod_point (at.x, at.y - CHIP_SIZE / 2),
                     pod_point (at.x, at.y + CHIP_SIZE / 2));
  pod_canvas_text (canvas, "on", pod_point (at.x, at.y + 3), "%u", local);
}

static void
draw_nic (const Drawing *drawing, PodPoint nic, PodPoint chip)
{
  if (!has_nics (drawing))
    return;
  pod_canvas_line (drawing->canvas, "up", nic, chip);
  pod_canvas_box (drawing->canvas, "nic",
                  (PodBox){ nic.x - NIC_WIDTH / 2, nic.y - NIC_HEIGHT / 2, NIC_WIDTH, NIC_HEIGHT });
}

/* Dashed around the chips of each host that are drawn, where a node has several. */
static void
draw_hosts (const Drawing *drawing, int node_slot)
{
  const PodShown *chips = &drawing->chips;
  unsigned per_host = drawing->topology->chip->chips_per_host;

  for (unsigned i = 0; i < chips->n;)
    {
      unsigned host = chips->index[i] / per_host;
      unsigned last = i;

      while (last + 1 < chips->n && chips->index[last + 1] / per_host == host)
        last++;

      int top = chip_row (drawing) - 20;
      int left = nic_at (drawing, node_slot, chips->slot[i]).x - CHIP_PITCH / 2 + 1;
      int right = nic_at (drawing, node_slot, chips->slot[last]).x + CHIP_PITCH / 2 - 1;
      pod_canvas_box (drawing->canvas, "host", (PodBox){ left, top, right - left, 40 });
      i = last + 1;
    }
}

/* Chips in a row over a row of switches, each chip joined to each switch. */
static void
draw_switched_node (const Drawing *drawing, int node_slot)
{
  const PodShown *chips = &drawing->chips;
  unsigned n_switches = MAX (drawing->topology->chip->scale_up_switches, 1);
  PodShown switches;
  int chip_y = chip_row (drawing), switch_y = chip_y + SWITCH_DROP;
  int inner = drawing->node_width - 2 * NODE_PAD;

  pod_shown_init (&switches, n_switches, MAX_SWITCHES, 2, 1);
  for (unsigned s = 0; s < switches.n && drawing->topology->chips_per_node > 1; s++)
    {
      int x = node_x (drawing, node_slot) + NODE_PAD
              + (2 * switches.slot[s] + 1) * inner / (2 * switches.n_slots);
      int width = MIN (inner / switches.n_slots - 6, 64);

      for (unsigned i = 0; i < chips->n; i++)
        pod_canvas_line (drawing->canvas, "mesh",
                         pod_point (nic_at (drawing, node_slot, chips->slot[i]).x, chip_y),
                         pod_point (x, switch_y));
      pod_canvas_box (drawing->canvas, "switch",
                      (PodBox){ x - width / 2, switch_y - 10, width, 20 });
      if (width >= 36)
        pod_canvas_text (drawing->canvas, "on", pod_point (x, switch_y + 3), "switch");
    }
  if (switches.gap_slot >= 0)
    pod_canvas_text (drawing->canvas, "dots",
                     pod_point (node_x (drawing, node_slot) + NODE_PAD
                                    + (2 * switches.gap_slot + 1) * inner / (2 * switches.n_slots),
                                switch_y + 4),
                     "…");
  for (unsigned i = 0; i < chips->n; i++)
    {
      PodPoint nic = nic_at (drawing, node_slot, chips->slot[i]);
      PodPoint chip = pod_point (nic.x, chip_y);

      draw_nic (drawing, nic, chip);
      draw_chip_box (drawing->canvas, drawing->topology, chip, chips->index[i]);
    }
  if (chips->gap_slot >= 0)
    pod_canvas_text (drawing->canvas, "dots",
                     pod_point (nic_at (drawing, node_slot, chips->gap_slot).x, chip_y + 5), "…");
}

/* Place @i of @n on a circle that starts at the top. */
static PodPoint
on_circle (PodPoint centre, int radius, unsigned i, unsigned n)
{
  double angle = 2 * G_PI * ((double) i + 0.5) / n - G_PI / 2;

  return pod_point (centre.x + (int) lround (radius * cos (angle)),
                    centre.y + (int) lround (radius * sin (angle)));
}

/* Chips on a circle, every pair joined. Left out ones leave their places to the others. */
static void
draw_mesh_node (const Drawing *drawing, int node_slot)
{
  const PodShown *chips = &drawing->chips;
  PodPoint centre = pod_point (node_x (drawing, node_slot) + drawing->node_width / 2,
                               chip_row (drawing) - 16 + MESH_RADIUS);

  for (unsigned i = 0; i < chips->n; i++)
    for (unsigned j = i + 1; j < chips->n; j++)
      pod_canvas_line (drawing->canvas, "mesh", on_circle (centre, MESH_RADIUS, i, chips->n),
                       on_circle (centre, MESH_RADIUS, j, chips->n));
  for (unsigned i = 0; i < chips->n; i++)
    {
      PodPoint chip = on_circle (centre, MESH_RADIUS, i, chips->n);

      /* A NIC's line would cross the mesh, so that numbers join the two */
      if (has_nics (drawing))
        {
          PodPoint nic = nic_at (drawing, node_slot, chips->slot[i]);

          pod_canvas_box (
              drawing->canvas, "nic",
              (PodBox){ nic.x - NIC_WIDTH / 2, nic.y - NIC_HEIGHT / 2, NIC_WIDTH, NIC_HEIGHT });
          pod_canvas_text (drawing->canvas, "on", pod_point (nic.x, nic.y + 3), "%u",
                           chips->index[i]);
        }
      draw_chip_box (drawing->canvas, drawing->topology, chip, chips->index[i]);
    }
  if (chips->gap_slot >= 0)
    pod_canvas_text (drawing->canvas, "small", pod_point (centre.x, centre.y), "%u more",
                     drawing->topology->chips_per_node - chips->n);
}

static int
node_height (const Drawing *drawing)
{
  return chip_row (drawing)
         + (drawing->topology->is_full_mesh ? 2 * MESH_RADIUS : SWITCH_DROP + 22);
}

static void
draw_node (const Drawing *drawing, unsigned i)
{
  int slot = drawing->nodes.slot[i];
  const PodTopology *topology = drawing->topology;
  PodBox box = { node_x (drawing, slot), 8, drawing->node_width, node_height (drawing) };

  pod_canvas_box (drawing->canvas, "node", box);
  if (topology->is_full_mesh)
    draw_mesh_node (drawing, slot);
  else
    {
      if (topology->chips_per_node > topology->chip->chips_per_host)
        draw_hosts (drawing, slot);
      draw_switched_node (drawing, slot);
    }
  pod_canvas_text (drawing->canvas, "", pod_point (box.x + box.width / 2, box.y + box.height + 16),
                   "node %u: %u %s", drawing->nodes.index[i], topology->chips_per_node,
                   topology->chip->title != NULL ? topology->chip->title : topology->chip->name);
}

/* ---- the tree ---- */

/* A group of switches as drawn: of one level, span of nodes and rail. */
typedef struct
{
  unsigned level;
  unsigned span; /* index of the group's span */
  unsigned rail; /* index of its rail */
  PodPoint at;
  int width;
} Group;

static unsigned
rails_of (const PodTopology *topology, unsigned level)
{
  return level == 0 || topology->has_separate_rails ? topology->n_rails : 1;
}

static int
level_y (unsigned level)
{
  return -LEVEL_STEP * ((int) level + 1) + 40;
}

/* Left and right end of the nodes of span @span that are drawn; false when there are none. */
static bool
span_ends (const Drawing *drawing, unsigned level, unsigned span, int *out_left, int *out_right)
{
  unsigned span_nodes = drawing->topology->level[level].span_nodes;
  bool is_found = false;

  for (unsigned i = 0; i < drawing->nodes.n; i++)
    if (drawing->nodes.index[i] / span_nodes == span)
      {
        int left = node_x (drawing, drawing->nodes.slot[i]);

        *out_left = is_found ? MIN (*out_left, left) : left;
        *out_right = left + drawing->node_width;
        is_found = true;
      }
  return is_found;
}

static void
add_span (const Drawing *drawing, unsigned level, unsigned span, GArray *groups)
{
  unsigned n_rails = rails_of (drawing->topology, level);
  PodShown rails;
  int left = 0, right = 0;

  if (!span_ends (drawing, level, span, &left, &right))
    return;
  pod_shown_init (&rails, n_rails, 8, 4, 1);
  for (unsigned i = 0; i < rails.n; i++)
    {
      int step = (right - left) / rails.n_slots;
      Group group = { .level = level,
                      .span = span,
                      .rail = rails.index[i],
                      .width = MIN (step - 6, n_rails > 1 ? 64 : 220) };

      group.at = pod_point (left + step * rails.slot[i] + step / 2, level_y (level));
      g_array_append_val (groups, group);
    }
  if (rails.gap_slot >= 0)
    pod_canvas_text (
        drawing->canvas, "dots",
        pod_point (left + (2 * rails.gap_slot + 1) * (right - left) / (2 * rails.n_slots),
                   level_y (level) + 6),
        "…");
}

/* Returns: (transfer full) (element-type Group) */
static GArray *
place_groups (const Drawing *drawing)
{
  const PodTopology *topology = drawing->topology;
  GArray *groups = g_array_new (FALSE, FALSE, sizeof (Group));

  for (unsigned level = 0; level < topology->n_levels; level++)
    {
      unsigned last_span = G_MAXUINT;

      for (unsigned i = 0; i < drawing->nodes.n; i++)
        {
          unsigned span = drawing->nodes.index[i] / topology->level[level].span_nodes;

          if (span != last_span)
            add_span (drawing, level, span, groups);
          last_span = span;
        }
    }
  return groups;
}

/* From a group to those under it, or from a leaf to its NICs. */
static void
draw_downlinks (const Drawing *drawing, const GArray *groups, const Group *group)
{
  const PodTopology *topology = drawing->topology;

  if (group->level == 0)
    {
      for (unsigned i = 0; i < drawing->nodes.n; i++)
        for (unsigned c = 0; c < drawing->chips.n; c++)
          if (drawing->nodes.index[i] / topology->level[0].span_nodes == group->span
              && drawing->chips.index[c] % topology->n_rails == group->rail)
            {
              PodPoint nic = nic_at (drawing, drawing->nodes.slot[i], drawing->chips.slot[c]);

              pod_canvas_line (drawing->canvas, "up", group->at,
                               pod_point (nic.x, nic.y - NIC_HEIGHT / 2));
            }
      return;
    }
  for (guint i = 0; i < groups->len; i++)
    {
      const Group *below = &g_array_index (groups, Group, i);
      unsigned ratio_from = below->span * topology->level[group->level - 1].span_nodes
                            / topology->level[group->level].span_nodes;

      if (below->level + 1 == group->level && ratio_from == group->span
          && (rails_of (topology, group->level) == 1 || below->rail == group->rail))
        pod_canvas_line (drawing->canvas, "link", below->at, group->at);
    }
}

static void
draw_group (const Drawing *drawing, const Group *group)
{
  static const char *const classes[] = { "leaf", "spine", "core" };
  const PodTopology *topology = drawing->topology;
  unsigned n_rails = rails_of (topology, group->level);
  unsigned n_groups = MAX (topology->level[group->level].n_groups, 1);
  unsigned n_real = MAX ((topology->level[group->level].n_switches + n_groups - 1) / n_groups, 1);
  bool is_top = group->level + 1 == topology->n_levels && group->level > 0;

  pod_canvas_box (drawing->canvas, classes[MIN (group->level, G_N_ELEMENTS (classes) - 1)],
                  (PodBox){ group->at.x - group->width / 2, group->at.y - BOX_HEIGHT / 2,
                            group->width, BOX_HEIGHT });
  if (group->level == 0 && n_rails > 1)
    pod_canvas_text (drawing->canvas, "on", pod_point (group->at.x, group->at.y + 3),
                     group->width >= 40 ? "rail %u" : "%u", group->rail);
  else if (n_rails > 1)
    pod_canvas_text (drawing->canvas, "on", pod_point (group->at.x, group->at.y + 3), "%u switch%s",
                     n_real, n_real == 1 ? "" : "es");
  else
    pod_canvas_text (drawing->canvas, "on", pod_point (group->at.x, group->at.y + 3), "%u %s%s",
                     n_real,
                     is_top              ? "top switch"
                     : group->level == 0 ? "leaf switch"
                                         : "spine switch",
                     n_real == 1 ? "" : "es");
}

/* To the right of a level: how many there are, what leaves it. */
static void
draw_level_label (const Drawing *drawing, unsigned level, int x)
{
  static const char *const names[] = { "leaves", "spines", "core" };
  const PodTopology *topology = drawing->topology;
  PodPoint at = pod_point (x, level_y (level) - 2);
  g_autofree char *uplink = pod_format_bytes_per_s (topology->level[level].up_bytes_per_s.nominal);

  pod_canvas_text (drawing->canvas, "start", at, "%s: %u switch%s%s",
                   level + 1 == topology->n_levels && level > 0 ? "top" : names[level],
                   topology->level[level].n_switches,
                   topology->level[level].n_switches == 1 ? "" : "es",
                   topology->has_separate_rails ? ", rails apart" : "");
  if (level + 1 < topology->n_levels)
    pod_canvas_text (drawing->canvas, "small start", pod_point (x, at.y + 14),
                     "%s up from each%s, %.4g:1", uplink, level == 0 ? "" : " group",
                     topology->level[level].oversubscription);
}

static void
draw_tree (const Drawing *drawing)
{
  const PodTopology *topology = drawing->topology;
  g_autoptr (GArray) groups = place_groups (drawing);
  int right = node_x (drawing, drawing->nodes.n_slots) - NODE_GAP + 18;

  for (guint i = 0; i < groups->len; i++)
    draw_downlinks (drawing, groups, &g_array_index (groups, Group, i));
  for (guint i = 0; i < groups->len; i++)
    draw_group (drawing, &g_array_index (groups, Group, i));
  for (unsigned level = 0; level < topology->n_levels; level++)
    draw_level_label (drawing, level, right);
}

/* ---- labels ---- */

static void
draw_side_labels (const Drawing *drawing)
{
  const PodTopology *topology = drawing->topology;
  int right = node_x (drawing, drawing->nodes.n_slots) - NODE_GAP + 18;
  PodLink link;
  g_autofree char *nic = NULL;
  g_autofree char *scale_up = pod_format_bytes_per_s (topology->chip->scale_up_bytes_per_s.nominal);

  if (has_nics (drawing))
    {
      pod_topology_link (topology, topology->first_nic_link, &link);
      nic = pod_format_bytes_per_s (link.bytes_per_s.nominal);
      pod_canvas_text (drawing->canvas, "start", pod_point (right, 34), "NICs: %s a chip one way",
                       nic);
    }
  if (topology->chips_per_node < 2)
    return;
  if (topology->is_full_mesh)
    {
      g_autofree char *pair = NULL;

      pod_topology_link (topology, 0, &link);
      pair = pod_format_bytes_per_s (link.bytes_per_s.nominal);
      pod_canvas_text (drawing->canvas, "start",
                       pod_point (right, chip_row (drawing) - 16 + MESH_RADIUS),
                       "mesh: %s a pair one way", pair);
      return;
    }
  pod_canvas_text (drawing->canvas, "start", pod_point (right, chip_row (drawing) + 4),
                   "chips: %s one way", scale_up);
  pod_canvas_text (drawing->canvas, "start",
                   pod_point (right, chip_row (drawing) + SWITCH_DROP + 4),
                   "scale-up: %u switch%s a node", topology->chip->scale_up_switches,
                   topology->chip->scale_up_switches == 1 ? "" : "es");
}

void
pod_draw_switched (PodCanvas *canvas, const PodTopology *topology)
{
  Drawing drawing = { .canvas = canvas, .topology = topology };

  pod_shown_init (&drawing.nodes, topology->n_nodes, 3, 2, 1);
  pod_shown_init (&drawing.chips, topology->chips_per_node, 16, 6, 2);
  drawing.node_width
      = MAX (drawing.chips.n_slots * CHIP_PITCH,
             topology->is_full_mesh ? 2 * MESH_RADIUS + 2 * CHIP_SIZE : 4 * CHIP_PITCH)
        + 2 * NODE_PAD;
  for (unsigned i = 0; i < drawing.nodes.n; i++)
    draw_node (&drawing, i);
  draw_tree (&drawing);
  if (drawing.nodes.gap_slot >= 0)
    {
      int x = node_x (&drawing, drawing.nodes.gap_slot) + drawing.node_width / 2;

      pod_canvas_text (canvas, "dots", pod_point (x, node_height (&drawing) / 2), "…");
      pod_canvas_text (canvas, "", pod_point (x, node_height (&drawing) / 2 + 20), "%u more nodes",
                       topology->n_nodes - drawing.nodes.n);
    }
  draw_side_labels (&drawing);
}
