#include "report/report-private.h"

#include <string.h>

#include "base/units.h"

/* What gains most: the steps of a result's what_if[]. */

/* The largest gain first; equal ones stay in order. */
static gint
compare_gains (gconstpointer a, gconstpointer b)
{
  const double x = pod_report_number (*(JsonObject *const *) a, "gain_ratio");
  const double y = pod_report_number (*(JsonObject *const *) b, "gain_ratio");

  return x > y ? -1 : x < y;
}

/* "chip.ici_bandwidth=99GB/s, ..." Returns: (transfer full) */
static char *
set_text (JsonObject *change)
{
  JsonArray *set = pod_report_array (change, "set");
  GString *text = g_string_new (NULL);

  for (guint i = 0; set != NULL && i < json_array_get_length (set); i++)
    g_string_append_printf (text, "%s%s", i > 0 ? ", " : "",
                            json_array_get_string_element (set, i));
  return g_string_free (text, FALSE);
}

static void
add_change (PodTable *table, JsonObject *change, bool has_set)
{
  g_autofree char *time = pod_format_seconds (pod_report_number (change, "time_s"));
  g_autofree char *share = pod_report_percent (pod_report_number (change, "gain_ratio"));
  g_autofree char *set = set_text (change);
  const char *name = pod_report_string (change, "change");

  pod_table_add_row (
      table, (const char *const[]){ name != NULL ? name : "?", time, share, has_set ? set : "" });
}

PodTable *
pod_report_what_if (JsonArray *changes, bool has_set)
{
  const char *const titles[]
      = { "change", ">step time", ">shorter by", has_set ? "--set" : NULL, NULL };
  PodTable *table = pod_table_new (titles);
  g_autoptr (GPtrArray) order = g_ptr_array_new ();

  for (guint i = 0; i < json_array_get_length (changes); i++)
    g_ptr_array_add (order, json_array_get_object_element (changes, i));
  g_ptr_array_sort (order, compare_gains);
  for (guint i = 0; i < order->len; i++)
    add_change (table, g_ptr_array_index (order, i), has_set);
  return table;
}
