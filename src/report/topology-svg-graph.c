#include "report/topology-svg-private.h"

#include "base/units.h"

/* An explicit graph: its islands in a row, each a box of devices, and its switches in a row above
 * them. */

enum
{
  PITCH = 44,
  RADIUS = 14,
  ISLAND_GAP = 30,
  SWITCH_WIDTH = 64,
  SWITCH_Y = -110,
  MAX_LINKS = 4000, /* lines that can still be told apart, and more */
};

typedef struct
{
  PodCanvas *canvas;
  const PodTopology *topology;
  PodPoint *at; /* of each vertex */
  bool *is_shown;
  int width;
} Drawing;

static PodPoint
device_at (int left, int columns, int slot)
{
  int row = slot / columns;

  return pod_point (left + 6 + PITCH / 2 + slot % columns * PITCH + row * PITCH / 2,
                    6 + PITCH / 2 + row * PITCH);
}

/* Devices of one island in a row, or in two where the second stands in the gaps of the first, so
 * that no link passes behind a device. Returns: the island's width */
static int
place_island (Drawing *drawing, unsigned island, int left)
{
  const PodTopology *topology = drawing->topology;
  g_autoptr (GArray) members = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  PodShown shown;
  int columns, n_rows;

  for (uint32_t device = 0; device < topology->n_devices; device++)
    if (pod_topology_node_of (topology, device) == island)
      g_array_append_val (members, device);
  pod_shown_init (&shown, members->len, 12, 5, 2);
  n_rows = shown.n_slots > 6 ? 2 : 1;
  columns = (shown.n_slots + n_rows - 1) / n_rows;
  int width = columns * PITCH + 12 + (n_rows - 1) * PITCH / 2;
  pod_canvas_box (drawing->canvas, "node", (PodBox){ left, 0, width, n_rows * PITCH + 12 });
  for (unsigned i = 0; i < shown.n; i++)
    {
      uint32_t device = g_array_index (members, uint32_t, shown.index[i]);

      drawing->is_shown[device] = true;
      drawing->at[device] = device_at (left, columns, shown.slot[i]);
    }
  if (shown.gap_slot >= 0)
    pod_canvas_text (drawing->canvas, "dots", device_at (left, columns, shown.gap_slot), "…");
  pod_canvas_text (drawing->canvas, "", pod_point (left + width / 2, n_rows * PITCH + 30),
                   "island %u: %u device%s", island, members->len, members->len == 1 ? "" : "s");
  return width;
}

static void
place_switches (Drawing *drawing)
{
  const PodTopology *topology = drawing->topology;
  unsigned n_switches = topology->n_vertices - topology->n_devices;
  PodShown shown;

  pod_shown_init (&shown, n_switches, 12, 8, 2);
  for (unsigned i = 0; i < shown.n; i++)
    {
      uint32_t vertex = topology->n_devices + shown.index[i];

      drawing->is_shown[vertex] = true;
      drawing->at[vertex]
          = pod_point ((2 * shown.slot[i] + 1) * drawing->width / (2 * shown.n_slots), SWITCH_Y);
    }
  if (shown.gap_slot >= 0)
    pod_canvas_text (
        drawing->canvas, "dots",
        pod_point ((2 * shown.gap_slot + 1) * drawing->width / (2 * shown.n_slots), SWITCH_Y), "…");
}

/* A line a pair of vertices; links between switches say their rate. */
static void
draw_links (const Drawing *drawing)
{
  const PodTopology *topology = drawing->topology;
  unsigned n_drawn = 0;

  for (unsigned i = 0; i < topology->n_links && n_drawn < MAX_LINKS; i++)
    {
      const PodLink *link = &topology->links[i];
      PodPoint from = drawing->at[link->from], to = drawing->at[link->to];
      bool is_trunk = link->from >= topology->n_devices && link->to >= topology->n_devices;
      g_autofree char *rate = pod_format_bytes_per_s (link->bytes_per_s.nominal);

      if (!drawing->is_shown[link->from] || !drawing->is_shown[link->to]
          || (link->from > link->to && link->sign < 0))
        continue;
      n_drawn++;
      pod_canvas_line (drawing->canvas, is_trunk ? "link" : "up", from, to);
      if (is_trunk && link->from < link->to)
        pod_canvas_text (drawing->canvas, "small",
                         pod_point ((from.x + to.x) / 2, (from.y + to.y) / 2 - 6), "%s", rate);
    }
}

static void
draw_vertices (const Drawing *drawing)
{
  const PodTopology *topology = drawing->topology;

  for (uint32_t vertex = 0; vertex < topology->n_vertices; vertex++)
    {
      PodPoint at = drawing->at[vertex];

      if (!drawing->is_shown[vertex])
        continue;
      if (vertex < topology->n_devices)
        {
          pod_canvas_circle (drawing->canvas, "chip", at, RADIUS);
          pod_canvas_text (drawing->canvas, "on", pod_point (at.x, at.y + 3), "%u", vertex);
          continue;
        }
      pod_canvas_box (drawing->canvas, "switch",
                      (PodBox){ at.x - SWITCH_WIDTH / 2, at.y - 12, SWITCH_WIDTH, 24 });
      pod_canvas_text (drawing->canvas, "on", pod_point (at.x, at.y + 3), "switch %u",
                       vertex - topology->n_devices);
    }
}

void
pod_draw_graph (PodCanvas *canvas, const PodTopology *topology)
{
  g_autofree PodPoint *at = g_new0 (PodPoint, topology->n_vertices);
  g_autofree bool *is_shown = g_new0 (bool, topology->n_vertices);
  Drawing drawing = { .canvas = canvas, .topology = topology, .at = at, .is_shown = is_shown };
  PodShown islands;

  pod_shown_init (&islands, topology->n_nodes, 6, 4, 1);
  for (unsigned i = 0; i < islands.n; i++)
    {
      if (islands.slot[i] == islands.gap_slot + 1 && islands.gap_slot >= 0)
        {
          pod_canvas_text (canvas, "dots", pod_point (drawing.width + 40, PITCH), "…");
          pod_canvas_text (canvas, "", pod_point (drawing.width + 40, PITCH + 20), "%u more",
                           topology->n_nodes - islands.n);
          drawing.width += 80 + ISLAND_GAP;
        }
      drawing.width += place_island (&drawing, islands.index[i], drawing.width) + ISLAND_GAP;
    }
  drawing.width -= ISLAND_GAP;
  place_switches (&drawing);
  draw_links (&drawing);
  draw_vertices (&drawing);
}
