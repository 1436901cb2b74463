#include "support/import-case.h"

#include <math.h>
#include <string.h>

#include <check.h>
#include <glib/gstdio.h>

#include "base/units.h"

PodTopology *
import_load (ImportReader reader, const char *file)
{
  g_autofree char *path = g_build_filename (POD_SOURCE_DIR, "tests/data/import", file, NULL);
  g_autoptr (GError) error = NULL;
  PodTopology *topology = reader (path, &error);

  ck_assert_msg (topology != NULL, "%s", error != NULL ? error->message : file);
  return topology;
}

static bool
is_near (double a, double b)
{
  return fabs (a - b) <= 1e-6 * fabs (b) + 1e-15;
}

static bool
is_of (const PodLink *link, const ImportLinks *kind)
{
  return is_near (link->bytes_per_s.nominal, kind->bytes_per_s)
         && is_near ((double) link->latency_ps / POD_PS_PER_S, kind->latency_s)
         && link->is_half_duplex == kind->is_half_duplex;
}

void
import_check (const PodTopology *topology, const ImportCase *expected)
{
  unsigned n_total = 0;

  ck_assert_str_eq (topology->chip->name, expected->chip);
  ck_assert_int_eq (topology->fabric, expected->fabric);
  ck_assert_uint_eq (topology->n_devices, expected->n_devices);
  ck_assert_uint_eq (topology->n_vertices - topology->n_devices, expected->n_switches);
  ck_assert_uint_eq (topology->n_nodes, expected->n_nodes);
  for (const ImportLinks *kind = expected->links; kind->n_links > 0; kind++)
    {
      unsigned n_links = 0;
      for (uint32_t id = 0; id < topology->n_links; id++)
        {
          PodLink link;
          pod_topology_link (topology, id, &link);
          n_links += is_of (&link, kind);
        }
      ck_assert_msg (n_links == kind->n_links, "%s: %u links of %g B/s and %g s, expected %u",
                     expected->file, n_links, kind->bytes_per_s, kind->latency_s, kind->n_links);
      n_total += n_links;
    }
  for (uint32_t id = 0; id < topology->n_links; id++)
    {
      PodLink link;
      pod_topology_link (topology, id, &link);
      n_total += !(link.bytes_per_s.nominal > 0); /* ids beyond the ends of a line */
    }
  ck_assert_uint_eq (n_total, topology->n_links);
}

void
import_check_round_trip (const PodTopology *topology)
{
  g_autofree char *xml = pod_topology_to_xml (topology);
  g_autofree char *file = NULL;
  g_autoptr (GError) error = NULL;
  int handle = g_file_open_tmp ("podsim-import-XXXXXX.xml", &file, NULL);

  ck_assert_int_ge (handle, 0);
  ck_assert (g_close (handle, NULL) && g_file_set_contents (file, xml, -1, NULL));
  g_autoptr (PodTopology) again = pod_topology_load (file, &error);
  g_remove (file);
  ck_assert_msg (again != NULL, "%s", error != NULL ? error->message : "");
  ck_assert_uint_eq (again->n_devices, topology->n_devices);
  ck_assert_uint_eq (again->n_vertices, topology->n_vertices);
  ck_assert_uint_eq (again->n_links, topology->n_links);
  for (uint32_t id = 0; id < topology->n_links; id++)
    {
      PodLink a;
      PodLink b;
      pod_topology_link (topology, id, &a);
      pod_topology_link (again, id, &b);
      ck_assert_uint_eq (a.from, b.from);
      ck_assert_uint_eq (a.to, b.to);
      ck_assert_double_eq (a.bytes_per_s.nominal, b.bytes_per_s.nominal);
      ck_assert_int_eq (a.latency_ps, b.latency_ps);
      ck_assert_int_eq (a.is_half_duplex, b.is_half_duplex);
    }
}

static char *
write_file (const char *suffix, const char *text)
{
  g_autofree char *pattern = g_strconcat ("podsim-import-XXXXXX", suffix, NULL);
  char *file = NULL;
  int handle = g_file_open_tmp (pattern, &file, NULL);

  ck_assert_int_ge (handle, 0);
  ck_assert (g_close (handle, NULL) && g_file_set_contents (file, text, -1, NULL));
  return file;
}

void
import_check_refusal (ImportReader reader, const char *suffix, const char *text,
                      const char *message)
{
  g_autofree char *file = write_file (suffix, text);
  g_autoptr (GError) error = NULL;
  g_autoptr (PodTopology) topology = reader (file, &error);

  g_remove (file);
  ck_assert_msg (topology == NULL, "taken: %s", text);
  ck_assert_ptr_nonnull (error);
  ck_assert_msg (g_str_has_prefix (error->message, file), "%s", error->message);
  ck_assert_msg (g_str_has_prefix (error->message + strlen (file), message), "%s, expected %s",
                 error->message, message);
}

PodTopology *
import_text (ImportReader reader, const char *suffix, const char *text)
{
  g_autofree char *file = write_file (suffix, text);
  g_autoptr (GError) error = NULL;
  PodTopology *topology = reader (file, &error);

  g_remove (file);
  ck_assert_msg (topology != NULL, "%s", error != NULL ? error->message : "");
  return topology;
}

bool
import_has_note (const PodTopology *topology, const char *part)
{
  for (unsigned i = 0; i < topology->assumptions->len; i++)
    if (strstr (g_ptr_array_index (topology->assumptions, i), part) != NULL)
      return true;
  return false;
}
