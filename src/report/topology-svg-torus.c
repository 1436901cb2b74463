#include "report/topology-svg-private.h"

#include "base/units.h"

/* A torus: two axes as a grid of squares, three as planes over each other, seen from above and the
 * left. */

enum
{
  FLAT_PITCH = 44,
  FLAT_CHIP = 26,
  DEEP_X = 58,   /* of a step along x */
  DEEP_Y_X = 34, /* of a step along y: to the right and up */
  DEEP_Y_Y = 17,
  DEEP_RADIUS = 7,
  DEEP_PLANES = 48, /* between planes, over the height of one */
  SLICE_WIDTH = 120,
  SLICE_HEIGHT = 64,
};

typedef struct
{
  PodCanvas *canvas;
  const PodTopology *topology;
  PodShown axis[3];
  bool is_deep; /* three axes */
  int plane_step;
} Drawing;

/* Middle of the chip at these slots, which may be the ellipsis's. */
static PodPoint
place (const Drawing *drawing, const int slot[3])
{
  if (!drawing->is_deep)
    return pod_point (slot[0] * FLAT_PITCH, slot[1] * FLAT_PITCH);
  return pod_point (slot[0] * DEEP_X + slot[1] * DEEP_Y_X,
                    -slot[1] * DEEP_Y_Y - slot[2] * drawing->plane_step);
}

/* Slots of @device of the first slice; false when it is left out. */
static bool
slots_of (const Drawing *drawing, uint32_t device, int out[3])
{
  unsigned coords[POD_MAX_DIMS];

  pod_topology_coords (drawing->topology, device, coords);
  for (unsigned axis = 0; axis < 3; axis++)
    if (!pod_shown_slot (&drawing->axis[axis], coords[axis], &out[axis]))
      return false;
  return true;
}

static uint32_t
device_at (const Drawing *drawing, unsigned i, unsigned j, unsigned k)
{
  const unsigned coords[POD_MAX_DIMS]
      = { drawing->axis[0].index[i], drawing->axis[1].index[j], drawing->axis[2].index[k], 0 };

  return pod_topology_device (drawing->topology, coords, 0);
}

/* ---- links ---- */

/* @along the axis of a link and @across it. */
static PodPoint
point_beside (unsigned dim, int along, int across)
{
  return dim == 0 ? pod_point (along, across) : pod_point (across, along);
}

/* A wrap link of a flat torus runs in the gap beside its row or column, with round ends. */
static void
draw_flat_wrap (const Drawing *drawing, unsigned dim, PodPoint from, PodPoint to)
{
  static const char *const classes[] = { "wrap0", "wrap1" };
  const int half = FLAT_PITCH / 2, edge = FLAT_CHIP / 2, out = FLAT_PITCH * 3 / 4;
  int low = dim == 0 ? to.x : to.y, high = dim == 0 ? from.x : from.y;
  int row = dim == 0 ? to.y : to.x;
  const PodPoint start[4]
      = { point_beside (dim, low - edge, row), point_beside (dim, low - out, row),
          point_beside (dim, low - out, row - half), point_beside (dim, low - half, row - half) };
  const PodPoint end[4]
      = { point_beside (dim, high + half, row - half), point_beside (dim, high + out, row - half),
          point_beside (dim, high + out, row), point_beside (dim, high + edge, row) };

  pod_canvas_curve (drawing->canvas, classes[dim], start);
  pod_canvas_line (drawing->canvas, classes[dim], start[3], end[0]);
  pod_canvas_curve (drawing->canvas, classes[dim], end);
}

/* In depth a wrap link is one arc: over its row along x, beside it along y, left of the planes
 * along z. Where all of them would hide each other, those of the first row or plane stand for the
 * rest, which are faint. */
static void
draw_deep_wrap (const Drawing *drawing, unsigned dim, const int from_slot[3], const int to_slot[3])
{
  static const char *const classes[]
      = { "wrap0", "wrap1", "wrap2", "wrap0 faint", "wrap1 faint", "wrap2 faint" };
  static const PodPoint leaving[] = { { 20, -27 }, { 34, 6 }, { -60, -16 } };
  static const PodPoint arriving[] = { { -20, -27 }, { 20, 20 }, { -60, 16 } };
  PodPoint from = place (drawing, from_slot), to = place (drawing, to_slot);
  const PodPoint points[4] = { from, pod_point (from.x + leaving[dim].x, from.y + leaving[dim].y),
                               pod_point (to.x + arriving[dim].x, to.y + arriving[dim].y), to };
  bool is_faint = dim == 2 ? from_slot[1] > 0 : drawing->topology->is_twisted && from_slot[2] > 0;

  pod_canvas_curve (drawing->canvas, classes[dim + (is_faint ? 3 : 0)], points);
}

/* Both ends of the link that leaves a chip along +@dim; false when there is none or its other end
 * is left out. */
static bool
link_slots (const Drawing *drawing, uint32_t device, unsigned dim, int from_slot[3], int to_slot[3])
{
  uint32_t link, to;

  return pod_topology_torus_link (drawing->topology, device, dim, 1, &link, &to)
         && slots_of (drawing, device, from_slot) && slots_of (drawing, to, to_slot);
}

/* The link from a chip along +@dim: a line to its neighbour, in a flat torus the way round where it
 * wraps. */
static void
draw_link (const Drawing *drawing, uint32_t device, unsigned dim)
{
  int from_slot[3], to_slot[3];

  if (!link_slots (drawing, device, dim, from_slot, to_slot))
    return;
  if (to_slot[dim] > from_slot[dim])
    pod_canvas_line (drawing->canvas, dim == 2 ? "rise" : "link", place (drawing, from_slot),
                     place (drawing, to_slot));
  else if (!drawing->is_deep)
    draw_flat_wrap (drawing, dim, place (drawing, from_slot), place (drawing, to_slot));
}

/* Dotted from a chip to the ellipsis beside it. */
static void
draw_stubs (const Drawing *drawing, uint32_t device, unsigned dim)
{
  const int gap = drawing->axis[dim].gap_slot;
  int slot[3];

  if (gap < 0 || !slots_of (drawing, device, slot)
      || (slot[dim] != gap - 1 && slot[dim] != gap + 1))
    return;

  PodPoint at = place (drawing, slot);
  slot[dim] = gap;
  pod_canvas_line (drawing->canvas, "cut", at, place (drawing, slot));
}

/* Over all planes, as those would hide what crosses them. */
static void
draw_deep_wraps (const Drawing *drawing)
{
  for (unsigned k = 0; k < drawing->axis[2].n; k++)
    for (unsigned j = drawing->axis[1].n; j-- > 0;)
      for (unsigned i = 0; i < drawing->axis[0].n; i++)
        for (unsigned dim = 0; dim < 3; dim++)
          {
            int from_slot[3], to_slot[3];

            if (link_slots (drawing, device_at (drawing, i, j, k), dim, from_slot, to_slot)
                && to_slot[dim] < from_slot[dim])
              draw_deep_wrap (drawing, dim, from_slot, to_slot);
          }
}

/* ---- chips, hosts, planes ---- */

static void
draw_chip (const Drawing *drawing, PodPoint at)
{
  bool is_pair = drawing->topology->chip->devices_per_chip == 2;

  if (drawing->is_deep)
    {
      pod_canvas_circle (drawing->canvas, "chip", at, DEEP_RADIUS);
      if (is_pair)
        pod_canvas_line (drawing->canvas, "half", pod_point (at.x, at.y - DEEP_RADIUS),
                         pod_point (at.x, at.y + DEEP_RADIUS));
      return;
    }
  pod_canvas_box (drawing->canvas, "chip",
                  (PodBox){ at.x - FLAT_CHIP / 2, at.y - FLAT_CHIP / 2, FLAT_CHIP, FLAT_CHIP });
  if (is_pair)
    pod_canvas_line (drawing->canvas, "half", pod_point (at.x, at.y - FLAT_CHIP / 2),
                     pod_point (at.x, at.y + FLAT_CHIP / 2));
}

/* Slots that a block of chips starting at @first along @axis covers; false when a part of it is
 * left out. */
static bool
block_slots (const Drawing *drawing, unsigned axis, unsigned first, int out[2])
{
  unsigned last
      = MIN (first + drawing->topology->host_extent[axis], drawing->topology->extent[axis]) - 1;

  return pod_shown_slot (&drawing->axis[axis], first, &out[0])
         && pod_shown_slot (&drawing->axis[axis], last, &out[1]);
}

/* Around the chips of one host in plane @k. */
static void
draw_host (const Drawing *drawing, unsigned i, unsigned j, unsigned k)
{
  int x[2], y[2];
  const int pad = FLAT_PITCH / 2 - 4;

  if (!block_slots (drawing, 0, drawing->axis[0].index[i], x)
      || !block_slots (drawing, 1, drawing->axis[1].index[j], y))
    return;

  const int plane = drawing->axis[2].slot[k];
  const int corner[4][3] = {
    { x[0], y[0], plane }, { x[1], y[0], plane }, { x[1], y[1], plane }, { x[0], y[1], plane }
  };
  PodPoint points[4];
  for (unsigned n = 0; n < 4; n++)
    points[n] = place (drawing, corner[n]);
  if (!drawing->is_deep)
    {
      pod_canvas_box (drawing->canvas, "host",
                      (PodBox){ points[0].x - pad, points[0].y - pad,
                                points[2].x - points[0].x + 2 * pad,
                                points[2].y - points[0].y + 2 * pad });
      return;
    }
  for (unsigned n = 0; n < 4; n++)
    {
      /* y points up in the picture, so the first two corners are the lower ones */
      points[n].x += n == 0 || n == 3 ? -11 - (n == 0 ? 5 : -4) : 11 + (n == 2 ? 5 : -4);
      points[n].y += n < 2 ? 8 : -8;
    }
  pod_canvas_polygon (drawing->canvas, "host", points, 4);
}

static void
draw_plane_ground (const Drawing *drawing, unsigned k)
{
  const int last_x = drawing->axis[0].n_slots - 1, last_y = drawing->axis[1].n_slots - 1,
            plane = drawing->axis[2].slot[k];
  const int corner[4][3]
      = { { 0, 0, plane }, { last_x, 0, plane }, { last_x, last_y, plane }, { 0, last_y, plane } };
  static const PodPoint pad[4] = { { -34, 14 }, { 18, 14 }, { 34, -14 }, { -18, -14 } };
  PodPoint points[4];

  for (unsigned n = 0; n < 4; n++)
    {
      points[n] = place (drawing, corner[n]);
      points[n].x += pad[n].x;
      points[n].y += pad[n].y;
    }
  pod_canvas_polygon (drawing->canvas, "plane", points, 4);
  pod_canvas_text (drawing->canvas, "small end", pod_point (points[0].x - 6, points[0].y), "z = %u",
                   drawing->axis[2].index[k]);
}

/* Dots where chips are left out. */
static void
draw_plane_dots (const Drawing *drawing, unsigned k)
{
  for (unsigned axis = 0; axis < 2; axis++)
    {
      const PodShown *along = &drawing->axis[1 - axis];

      for (unsigned n = 0; n < along->n && drawing->axis[axis].gap_slot >= 0; n++)
        {
          int slot[3] = { 0, 0, drawing->axis[2].slot[k] };

          slot[axis] = drawing->axis[axis].gap_slot;
          slot[1 - axis] = along->slot[n];

          PodPoint at = place (drawing, slot);
          pod_canvas_text (drawing->canvas, "dots", pod_point (at.x, at.y + 5),
                           axis == 0 ? "…" : "⋮");
        }
    }
}

static void
draw_plane (const Drawing *drawing, unsigned k)
{
  const PodShown *x = &drawing->axis[0], *y = &drawing->axis[1];
  const PodTopology *topology = drawing->topology;

  if (drawing->is_deep)
    draw_plane_ground (drawing, k);
  for (unsigned j = y->n; j-- > 0;)
    for (unsigned i = 0; i < x->n; i++)
      if (x->index[i] % topology->host_extent[0] == 0
          && y->index[j] % topology->host_extent[1] == 0)
        draw_host (drawing, i, j, k);
  for (unsigned dim = 0; dim < MIN (topology->n_dims, 2U); dim++)
    for (unsigned j = y->n; j-- > 0;)
      for (unsigned i = 0; i < x->n; i++)
        {
          draw_link (drawing, device_at (drawing, i, j, k), dim);
          draw_stubs (drawing, device_at (drawing, i, j, k), dim);
        }
  draw_plane_dots (drawing, k);
  for (unsigned j = y->n; j-- > 0;)
    for (unsigned i = 0; i < x->n; i++)
      draw_chip (drawing, place (drawing, (const int[3]){ x->slot[i], y->slot[j],
                                                          drawing->axis[2].slot[k] }));
}

/* Links to the next plane stand on this one's chips, under the next one's. */
static void
draw_between_planes (const Drawing *drawing, unsigned k)
{
  for (unsigned j = drawing->axis[1].n; j-- > 0;)
    for (unsigned i = 0; i < drawing->axis[0].n; i++)
      {
        draw_link (drawing, device_at (drawing, i, j, k), 2);
        draw_stubs (drawing, device_at (drawing, i, j, k), 2);
      }
}

/* ---- labels, other slices ---- */

static void
draw_axes (PodCanvas *canvas, const PodTopology *topology, int left, int bottom)
{
  static const char *const colours[] = { "wrap0", "wrap1", "wrap2" };
  PodPoint at = pod_point (left, bottom + 34);

  for (unsigned axis = 0; axis < MIN (topology->n_dims, G_N_ELEMENTS (colours)); axis++)
    {
      bool is_ring = topology->wraps[axis];
      const char name[] = { "xyz"[axis], '\0' };

      if (is_ring)
        pod_canvas_line (canvas, colours[axis], pod_point (at.x, at.y - 4),
                         pod_point (at.x + 22, at.y - 4));
      pod_canvas_text (canvas, "start", pod_point (at.x + (is_ring ? 28 : 0), at.y),
                       "%s: %u chips, %s", name, topology->extent[axis],
                       is_ring ? "wraps" : "a line");
      at.x += 150;
    }
  if (topology->is_twisted)
    pod_canvas_text (canvas, "start", pod_point (left + 150, at.y + 20),
                     "twisted: wraps of the short axes end half of the long one further; those of "
                     "z = 0 stand out");
  pod_canvas_box (canvas, "host", (PodBox){ left, at.y + 10, 22, 12 });
  pod_canvas_text (canvas, "start", pod_point (left + 28, at.y + 20), "host of %u chips",
                   topology->host_extent[0] * topology->host_extent[1] * topology->host_extent[2]);
}

/* The further slices as boxes to the right, all on the DCN. */
static void
draw_other_slices (PodCanvas *canvas, const PodTopology *topology)
{
  PodBox slice = canvas->bounds;
  PodBox first = { slice.x - 14, slice.y - 14, slice.width + 28, slice.height + 28 };
  g_autofree char *rate = pod_format_bytes_per_s (topology->chip->nic_bytes_per_s.nominal);
  int middle = first.y + SLICE_HEIGHT / 2;
  int left = first.x + first.width + 40;
  int dcn = first.y - 76;
  PodShown shown;

  pod_shown_init (&shown, topology->n_slices - 1, 4, 2, 1);
  pod_canvas_box (canvas, "slice", first);
  pod_canvas_text (canvas, "start", pod_point (first.x, first.y - 6), "slice 0");
  for (unsigned i = 0; i < shown.n; i++)
    {
      PodBox box = { left + shown.slot[i] * (SLICE_WIDTH + 24), middle - SLICE_HEIGHT / 2,
                     SLICE_WIDTH, SLICE_HEIGHT };
      PodPoint centre = pod_point (box.x + SLICE_WIDTH / 2, middle);

      pod_canvas_line (canvas, "up", pod_point (centre.x, dcn + 36), pod_point (centre.x, box.y));
      pod_canvas_box (canvas, "node", box);
      pod_canvas_text (canvas, "", pod_point (centre.x, centre.y - 2), "slice %u",
                       shown.index[i] + 1);
      pod_canvas_text (canvas, "small", pod_point (centre.x, centre.y + 14), "%u chips",
                       topology->chips_per_node);
    }
  if (shown.gap_slot >= 0)
    pod_canvas_text (
        canvas, "more",
        pod_point (left + shown.gap_slot * (SLICE_WIDTH + 24) + SLICE_WIDTH / 2, middle),
        "… %u more …", topology->n_slices - 1 - shown.n);
  pod_canvas_line (canvas, "up", pod_point (first.x + first.width / 2, dcn + 36),
                   pod_point (first.x + first.width / 2, first.y));
  pod_canvas_box (
      canvas, "dcn",
      (PodBox){ first.x, dcn, left - first.x + shown.n_slots * (SLICE_WIDTH + 24) - 24, 36 });
  pod_canvas_text (canvas, "", pod_point (first.x + 160, dcn + 22),
                   "data-centre network, %s a chip one way", rate);
}

void
pod_draw_torus (PodCanvas *canvas, const PodTopology *topology)
{
  Drawing drawing = { .canvas = canvas, .topology = topology, .is_deep = topology->n_dims == 3 };

  for (unsigned axis = 0; axis < 3; axis++)
    {
      bool is_plane = axis == 2;

      if (drawing.is_deep)
        pod_shown_init (&drawing.axis[axis], topology->extent[axis], 8, is_plane ? 3 : 4,
                        is_plane ? 1 : 2);
      else
        pod_shown_init (&drawing.axis[axis], topology->extent[axis], 16, 8, 4);
    }
  drawing.plane_step = (drawing.axis[1].n_slots - 1) * DEEP_Y_Y + DEEP_PLANES;
  for (unsigned k = 0; k < drawing.axis[2].n; k++)
    {
      draw_plane (&drawing, k);
      if (drawing.is_deep)
        draw_between_planes (&drawing, k);
    }
  if (drawing.is_deep)
    draw_deep_wraps (&drawing);
  if (drawing.axis[2].gap_slot >= 0)
    {
      PodPoint at = place (&drawing,
                           (const int[3]){ drawing.axis[0].n_slots / 2, drawing.axis[1].n_slots / 2,
                                           drawing.axis[2].gap_slot });

      pod_canvas_text (canvas, "more", at, "⋮ %u more planes",
                       topology->extent[2] - drawing.axis[2].n);
    }

  PodBox slice = canvas->bounds;
  if (topology->n_slices > 1)
    draw_other_slices (canvas, topology);
  draw_axes (canvas, topology, slice.x, slice.y + slice.height);
}
