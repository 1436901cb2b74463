#include "report/topology-svg.h"

#include <stdarg.h>
#include <string.h>

#include "base/units.h"
#include "report/topology-svg-private.h"

enum
{
  MARGIN = 24,
};

static const char style[]
    = "text{font-family:Helvetica,Arial,'DejaVu "
      "Sans',sans-serif;font-size:11px;fill:#333;text-anchor:middle}"
      ".title{font-size:17px;font-weight:bold;fill:#111}.start{text-anchor:start}.end{text-anchor:"
      "end}"
      ".small{font-size:9px;fill:#666}.on{font-size:9px;fill:#fff}.dots{font-size:22px;fill:#666}"
      ".more{font-size:14px;fill:#444}.slice{fill:none;stroke:#8fa3b8}"
      ".chip{fill:#4878a8;stroke:#2d5580}.half{stroke:#fff;stroke-width:1}"
      ".host{fill:none;stroke:#b08030;stroke-width:1.3;stroke-dasharray:4 3}"
      ".node{fill:#f6f8fb;stroke:#8fa3b8}.plane{fill:#eef3f8;fill-opacity:.75;stroke:#cfdbe6}"
      ".link{stroke:#7d8a96;stroke-width:1.6;fill:none}.up{stroke:#a3aeb8;stroke-width:1;fill:none}"
      ".mesh{stroke:#8b9bab;stroke-width:1;fill:none}.cut{stroke:#a3aeb8;stroke-width:1.3;stroke-"
      "dasharray:2 3;fill:none}"
      ".rise{stroke:#b4bfc9;stroke-width:1.3;fill:none}"
      ".wrap0{stroke:#c2503c;stroke-width:1.2;fill:none;stroke-opacity:.75}"
      ".wrap1{stroke:#3c8f57;stroke-width:1.2;fill:none;stroke-opacity:.75}"
      ".wrap2{stroke:#8657b5;stroke-width:1.2;fill:none;stroke-opacity:.75}.faint{stroke-opacity:."
      "2}"
      ".switch{fill:#5b6672;stroke:#3d454d}.leaf{fill:#3f8f86;stroke:#2a6a62}.spine{fill:#357a8f;"
      "stroke:#23596a}"
      ".core{fill:#33638f;stroke:#224668}.nic{fill:#d9a441;stroke:#a97a1f}.dcn{fill:#e7e3f1;stroke:"
      "#9c8fc0}";

/* ---- canvas ---- */

static void
grow (PodCanvas *canvas, PodPoint at, int around)
{
  PodBox *bounds = &canvas->bounds;
  int left = at.x - around, top = at.y - around;
  int right = at.x + around, bottom = at.y + around;

  if (!canvas->is_empty)
    {
      left = MIN (left, bounds->x);
      top = MIN (top, bounds->y);
      right = MAX (right, bounds->x + bounds->width);
      bottom = MAX (bottom, bounds->y + bounds->height);
    }
  *bounds = (PodBox){ left, top, right - left, bottom - top };
  canvas->is_empty = false;
}

void
pod_canvas_line (PodCanvas *canvas, const char *class, PodPoint from, PodPoint to)
{
  grow (canvas, from, 1);
  grow (canvas, to, 1);
  g_string_append_printf (canvas->body,
                          "<line class=\"%s\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", class,
                          from.x, from.y, to.x, to.y);
}

void
pod_canvas_curve (PodCanvas *canvas, const char *class, const PodPoint points[4])
{
  for (unsigned i = 0; i < 4; i++)
    grow (canvas, points[i], 1);
  g_string_append_printf (canvas->body, "<path class=\"%s\" d=\"M%d %dC%d %d %d %d %d %d\"/>\n",
                          class, points[0].x, points[0].y, points[1].x, points[1].y, points[2].x,
                          points[2].y, points[3].x, points[3].y);
}

void
pod_canvas_box (PodCanvas *canvas, const char *class, PodBox box)
{
  grow (canvas, pod_point (box.x, box.y), 1);
  grow (canvas, pod_point (box.x + box.width, box.y + box.height), 1);
  g_string_append_printf (
      canvas->body, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\"/>\n",
      class, box.x, box.y, box.width, box.height);
}

void
pod_canvas_circle (PodCanvas *canvas, const char *class, PodPoint centre, int radius)
{
  grow (canvas, centre, radius + 1);
  g_string_append_printf (canvas->body, "<circle class=\"%s\" cx=\"%d\" cy=\"%d\" r=\"%d\"/>\n",
                          class, centre.x, centre.y, radius);
}

void
pod_canvas_polygon (PodCanvas *canvas, const char *class, const PodPoint *points, unsigned n_points)
{
  g_string_append_printf (canvas->body, "<polygon class=\"%s\" points=\"", class);
  for (unsigned i = 0; i < n_points; i++)
    {
      grow (canvas, points[i], 1);
      g_string_append_printf (canvas->body, "%s%d,%d", i > 0 ? " " : "", points[i].x, points[i].y);
    }
  g_string_append (canvas->body, "\"/>\n");
}

/* Width as of an average letter: the picture must hold the text, wherever its fonts are. */
static void
grow_by_text (PodCanvas *canvas, const char *class, PodPoint at, const char *text)
{
  int width = (int) g_utf8_strlen (text, -1) * (strstr (class, "title") != NULL ? 10 : 6);
  int left = strstr (class, "start") != NULL ? at.x
             : strstr (class, "end") != NULL ? at.x - width
                                             : at.x - width / 2;

  grow (canvas, pod_point (left, at.y - 12), 0);
  grow (canvas, pod_point (left + width, at.y + 4), 0);
}

void
pod_canvas_text (PodCanvas *canvas, const char *class, PodPoint at, const char *format, ...)
{
  g_autofree char *text = NULL;
  g_autofree char *valid = NULL;
  g_autofree char *escaped = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  valid = g_utf8_make_valid (text, -1);
  escaped = g_markup_escape_text (valid, -1);
  grow_by_text (canvas, class, at, valid);
  g_string_append_printf (canvas->body, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", class,
                          at.x, at.y, escaped);
}

/* ---- what is shown ---- */

void
pod_shown_init (PodShown *shown, unsigned extent, unsigned limit, unsigned n_first, unsigned n_last)
{
  bool is_cut = extent > MIN (limit, (unsigned) POD_MAX_SHOWN);

  *shown = (PodShown){ .gap_slot = -1 };
  g_return_if_fail (n_first + n_last <= POD_MAX_SHOWN);
  shown->n = is_cut ? n_first + n_last : extent;
  for (unsigned i = 0; i < shown->n; i++)
    {
      bool is_behind = is_cut && i >= n_first;

      shown->index[i] = is_behind ? extent - shown->n + i : i;
      shown->slot[i] = (int) i + is_behind;
    }
  if (is_cut)
    shown->gap_slot = (int) n_first;
  shown->n_slots = (int) shown->n + is_cut;
}

bool
pod_shown_slot (const PodShown *shown, unsigned index, int *out_slot)
{
  for (unsigned i = 0; i < shown->n; i++)
    if (shown->index[i] == index)
      {
        *out_slot = shown->slot[i];
        return true;
      }
  return false;
}

/* ---- the picture ---- */

static void
append_size (const PodTopology *topology, GString *out)
{
  const char *title = topology->chip->title != NULL ? topology->chip->title : topology->chip->name;

  g_string_append_printf (out, "%u %s chip%s", topology->n_chips, title,
                          topology->n_chips == 1 ? "" : "s");
  if (topology->n_devices != topology->n_chips)
    g_string_append_printf (out, " of %u devices", topology->chip->devices_per_chip);
  if (topology->fabric == POD_FABRIC_TORUS)
    {
      g_string_append (out, " in ");
      if (topology->n_slices > 1)
        g_string_append_printf (out, "%u slices of ", topology->n_slices);
      for (unsigned axis = 0; axis < topology->n_dims; axis++)
        g_string_append_printf (out, "%s%u", axis > 0 ? "×" : "", topology->extent[axis]);
      g_string_append (out, topology->is_twisted ? ", twisted" : "");
    }
  if (topology->fabric == POD_FABRIC_SWITCHED)
    g_string_append_printf (out, " in %u node%s of %u", topology->n_nodes,
                            topology->n_nodes == 1 ? "" : "s", topology->chips_per_node);
  g_string_append_printf (out, ", %u host%s", topology->n_hosts, topology->n_hosts == 1 ? "" : "s");
}

static void
draw_title (PodCanvas *canvas, const PodTopology *topology)
{
  g_autoptr (GString) size = g_string_new (NULL);
  g_autofree char *bisection = pod_format_bytes_per_s (pod_topology_bisection (topology, false));
  PodBox area = canvas->bounds;

  append_size (topology, size);
  pod_canvas_text (canvas, "title start", pod_point (area.x, area.y - 36), "%s", topology->name);
  pod_canvas_text (canvas, "start", pod_point (area.x, area.y - 18), "%s; bisection %s one way",
                   size->str, bisection);
}

char *
pod_report_topology_svg (const PodTopology *topology)
{
  PodCanvas canvas = { .is_empty = true };
  GString *out;
  PodBox area;

  g_return_val_if_fail (topology != NULL, NULL);

  canvas.body = g_string_new (NULL);
  switch (topology->fabric)
    {
    case POD_FABRIC_TORUS:
      pod_draw_torus (&canvas, topology);
      break;
    case POD_FABRIC_SWITCHED:
      pod_draw_switched (&canvas, topology);
      break;
    case POD_FABRIC_GRAPH:
      pod_draw_graph (&canvas, topology);
      break;
    }
  draw_title (&canvas, topology);
  area = canvas.bounds;
  out = g_string_new ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  g_string_append_printf (out,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                          "viewBox=\"%d %d %d %d\">\n",
                          area.width + 2 * MARGIN, area.height + 2 * MARGIN, area.x - MARGIN,
                          area.y - MARGIN, area.width + 2 * MARGIN, area.height + 2 * MARGIN);
  g_string_append_printf (
      out,
      "<style>%s</style>\n<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
      style, area.x - MARGIN, area.y - MARGIN, area.width + 2 * MARGIN, area.height + 2 * MARGIN);
  g_string_append (out, canvas.body->str);
  g_string_append (out, "</svg>\n");
  g_string_free (canvas.body, TRUE);
  return g_string_free (out, FALSE);
}
