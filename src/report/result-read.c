#include "report/report-private.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"

/* -- by path ----------------------------------------------------------------------------------- */

JsonNode *
pod_report_node (JsonObject *result, const char *path)
{
  g_auto (GStrv) keys = g_strsplit (path, ".", -1);
  JsonNode *node = NULL;

  for (unsigned i = 0; keys[i] != NULL; i++)
    {
      if (i > 0 && (node == NULL || !JSON_NODE_HOLDS_OBJECT (node)))
        return NULL;
      node = json_object_get_member (i == 0 ? result : json_node_get_object (node), keys[i]);
    }
  return node;
}

const char *
pod_report_string (JsonObject *result, const char *path)
{
  JsonNode *node = pod_report_node (result, path);

  return node != NULL && JSON_NODE_HOLDS_VALUE (node) ? json_node_get_string (node) : NULL;
}

const char *
pod_report_string_or (JsonObject *result, const char *path, const char *otherwise)
{
  const char *text = pod_report_string (result, path);

  return text != NULL ? text : otherwise;
}

JsonObject *
pod_report_object (JsonObject *result, const char *path)
{
  JsonNode *node = pod_report_node (result, path);

  return node != NULL && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

JsonArray *
pod_report_array (JsonObject *result, const char *path)
{
  JsonNode *node = pod_report_node (result, path);

  return node != NULL && JSON_NODE_HOLDS_ARRAY (node) ? json_node_get_array (node) : NULL;
}

guint
pod_report_length (JsonArray *array)
{
  return array != NULL ? json_array_get_length (array) : 0;
}

double
pod_report_node_number (JsonNode *node)
{
  return node != NULL && JSON_NODE_HOLDS_VALUE (node) ? json_node_get_double (node) : 0;
}

double
pod_report_number (JsonObject *result, const char *path)
{
  double value;

  return pod_result_get_double (result, path, &value) ? value : 0;
}

/* -- numbers ----------------------------------------------------------------------------------- */

char *
pod_report_fixed (double value, unsigned n_decimals)
{
  char format[8];
  char buffer[512]; /* the largest double has 309 digits before the point */

  g_snprintf (format, sizeof format, "%%.%uf", MIN (n_decimals, 15));
  g_ascii_formatd (buffer, sizeof buffer, format, value);
  /* No "-0.0" */
  return g_strdup (buffer + (*buffer == '-' && strspn (buffer + 1, "0.") == strlen (buffer + 1)));
}

char *
pod_report_percent (double ratio)
{
  g_autofree char *digits = pod_report_fixed (ratio * 100, 1);

  return g_strconcat (digits, " %", NULL);
}

char *
pod_report_grouped (double count)
{
  g_autofree char *digits = NULL;
  GString *text;
  size_t n;

  if (!(fabs (count) < 1e9))
    return pod_format_count (count);
  digits = pod_report_fixed (fabs (count), 0);
  n = strlen (digits);
  text = g_string_new (count <= -0.5 ? "-" : "");
  for (size_t i = 0; i < n; i++)
    {
      if (i > 0 && (n - i) % 3 == 0)
        g_string_append_c (text, ',');
      g_string_append_c (text, digits[i]);
    }
  return g_string_free (text, FALSE);
}

/* The largest unit of which @value has ten or more; the smallest when none. */
static PodReportUnit
unit_of (double value, const PodReportUnit *units, unsigned n_units)
{
  for (unsigned i = 0; i + 1 < n_units; i++)
    if (fabs (value) >= 10 * units[i].size)
      return units[i];
  return units[n_units - 1];
}

PodReportUnit
pod_report_time_unit (double seconds)
{
  static const PodReportUnit units[]
      = { { "s", 1 }, { "ms", 1e-3 }, { "us", 1e-6 }, { "ns", 1e-9 } };

  return unit_of (seconds, units, G_N_ELEMENTS (units));
}

PodReportUnit
pod_report_bytes_unit (double bytes)
{
  static const PodReportUnit units[] = { { "GB", 1e9 }, { "MB", 1e6 }, { "kB", 1e3 }, { "B", 1 } };

  return unit_of (bytes, units, G_N_ELEMENTS (units));
}

char *
pod_report_in_unit (double value, PodReportUnit unit, unsigned n_decimals)
{
  g_autofree char *digits = pod_report_fixed (value / unit.size, n_decimals);

  return g_strconcat (digits, " ", unit.name, NULL);
}

/* -- terms ------------------------------------------------------------------------------------- */

static void
clear_term (void *data)
{
  PodReportTerm *term = data;

  g_free (term->name);
}

int64_t
pod_report_ps (double seconds)
{
  int64_t ps;

  return pod_seconds_to_ps (seconds, &ps) ? ps : 0;
}

static void
add_term (GArray *terms, JsonObject *result, const char *name, const char *path)
{
  PodReportTerm term = { .name = g_strdup (name) };

  term.time_ps = pod_report_ps (pod_report_number (result, path));
  term.total_ps = term.time_ps;
  g_array_append_val (terms, term);
}

static void
add_axes (GArray *terms, JsonObject *result)
{
  JsonObject *exposed = pod_report_object (result, "step.exposed_comm_s");
  JsonObject *total = pod_report_object (result, "step.comm_s");
  g_autoptr (GList) axes = exposed != NULL ? json_object_get_members (exposed) : NULL;

  for (GList *l = axes; l != NULL; l = l->next)
    {
      PodReportTerm term = { .name = g_strdup_printf ("exposed %s", (const char *) l->data) };
      JsonNode *node = json_object_get_member (exposed, l->data);

      term.axis = strchr (term.name, ' ') + 1;
      term.time_ps = pod_report_ps (pod_report_node_number (node));
      term.total_ps = term.time_ps;
      if (total != NULL && json_object_has_member (total, l->data))
        term.total_ps
            = pod_report_ps (pod_report_node_number (json_object_get_member (total, l->data)));
      g_array_append_val (terms, term);
    }
}

GArray *
pod_report_terms (JsonObject *result)
{
  g_return_val_if_fail (result != NULL, NULL);

  GArray *terms = g_array_new (FALSE, TRUE, sizeof (PodReportTerm));

  g_array_set_clear_func (terms, clear_term);
  add_term (terms, result, "compute", "step.compute_s");
  add_axes (terms, result);
  add_term (terms, result, "bubble", "step.bubble_s");
  add_term (terms, result, "idle", "step.idle_s");
  return terms;
}

int64_t
pod_report_time_ps (JsonObject *result)
{
  g_return_val_if_fail (result != NULL, 0);

  JsonNode *node = pod_report_node (result, "step.time_ps");

  if (node != NULL && JSON_NODE_HOLDS_VALUE (node)
      && json_node_get_value_type (node) == JSON_VALUE_INT)
    return json_node_get_int (node);
  return pod_report_ps (pod_report_number (result, "step.time_s"));
}

char *
pod_report_title (JsonObject *result)
{
  const char *model = pod_report_string (result, "model.name");
  const char *topology = pod_report_string (result, "topology.name");
  const char *layout = pod_report_string (result, "layout");

  return g_strdup_printf ("%s on %s, %s", model != NULL ? model : "?",
                          topology != NULL ? topology : "?", layout != NULL ? layout : "?");
}
