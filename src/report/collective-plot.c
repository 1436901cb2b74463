#include "report/plot.h"
#include "report/report-private.h"

#include <math.h>

#include "base/table.h"
#include "base/units.h"

/* Time and bandwidth of a collective against its size: both axes logarithmic, as such curves are
 * looked at (latency floor, half-bandwidth size, plateau). */

enum
{
  MAX_TICKS = 12, /* of the sizes */
};

/* A tick at every power of two, or at every 2nd, 4th, ... of them, so that labels do not touch. */
static char *
size_ticks (double least, double most)
{
  GString *ticks = g_string_new ("set xtics (");
  int first = (int) floor (log2 (least)), last = (int) ceil (log2 (most)), step = 1;

  while ((last - first) / step > MAX_TICKS)
    step++;
  for (int power = first; power <= last; power += step)
    {
      static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
      int unit = CLAMP (power / 10, 0, (int) G_N_ELEMENTS (names) - 1);

      g_string_append_printf (ticks, "%s'%.0f %s' %.0f", power == first ? "" : ", ",
                              ldexp (1, power - 10 * unit), names[unit], ldexp (1, power));
    }
  g_string_append (ticks, ")\n");
  return g_string_free (ticks, FALSE);
}

static void
append_row (PodTable *table, JsonObject *row)
{
  g_autofree char *bytes = pod_format_double (pod_report_number (row, "bytes"));
  g_autofree char *time = pod_format_double (pod_report_number (row, "time_s"));
  g_autofree char *algbw = pod_format_double (pod_report_number (row, "algbw_bytes_per_s"));
  g_autofree char *busbw = pod_format_double (pod_report_number (row, "busbw_bytes_per_s"));

  pod_table_add_row (table, (const char *const[]){ bytes, time, algbw, busbw,
                                                   pod_report_string (row, "algorithm") });
}

static const char script_text[] = "set border 3\n"
                                  "set grid xtics ytics back lt 1 lc rgb '#e6e6e6'\n"
                                  "set logscale x 2\n"
                                  "set lmargin 12\n"
                                  "set rmargin 4\n"
                                  "set multiplot layout 2,1\n";

static const char panels_text[]
    = "set ylabel 'time (us)'\n"
      "set logscale y\n"
      "set format y '%.6g'\n"
      "unset key\n"
      "plot 'collective.tsv' skip 1 using 1:($2*1e6) with linespoints lw 2 pt 7 ps 0.6 lc rgb "
      "'#0072b2'\n"
      "unset title\n"
      "unset logscale y\n"
      "set ylabel 'bandwidth (GB/s)'\n"
      "set yrange [0:*]\n"
      "set xlabel 'size (bytes)'\n"
      "set key top left reverse Left\n"
      "plot 'collective.tsv' skip 1 using 1:($4/1e9) title 'busbw' with linespoints lw 2 pt 7 ps "
      "0.6 lc rgb '#d55e00', \\\n"
      "     '' skip 1 using 1:($3/1e9) title 'algbw' with linespoints lw 2 pt 6 ps 0.6 lc rgb "
      "'#0072b2'\n"
      "unset multiplot\n";

static char *
make_script (JsonObject *result, double least, double most)
{
  GString *script = g_string_new (NULL);
  JsonObject *first = json_array_get_object_element (pod_report_array (result, "rows"), 0);
  g_autofree char *ticks = size_ticks (least, most);
  g_autofree char *ranks = g_strdup_printf ("%.0f ranks of ", pod_report_number (first, "ranks"));
  g_autofree char *title = g_strdup_printf ("%s over %s%s", pod_report_string (first, "kind"),
                                            ranks, pod_report_string (result, "topology"));

  g_string_append (script, script_text);
  pod_report_append_title (script, title, "fidelity ", pod_report_string (result, "fidelity"));
  g_string_append (script, ticks);
  g_string_append_printf (script, "set xrange [%.0f:%.0f]\n", least / 1.2, most * 1.2);
  g_string_append (script, panels_text);
  return g_string_free (script, FALSE);
}

bool
pod_report_collective_plot (JsonObject *result, const char *folder, GError **error)
{
  g_return_val_if_fail (result != NULL && folder != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  static const char *const columns[]
      = { "bytes", "time_s", "algbw_bytes_per_s", "busbw_bytes_per_s", "algorithm", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  JsonArray *rows = pod_report_array (result, "rows");
  double least = G_MAXDOUBLE, most = 1;
  g_autofree char *data = NULL;
  g_autofree char *script = NULL;

  for (guint i = 0; i < json_array_get_length (rows); i++)
    {
      JsonObject *row = json_array_get_object_element (rows, i);
      double bytes = pod_report_number (row, "bytes");

      append_row (table, row);
      if (bytes > 0)
        least = MIN (least, bytes);
      most = MAX (most, bytes);
    }
  data = pod_table_to_separated (table, '\t');
  script = make_script (result, MIN (least, most), most);
  return pod_report_plot (&(PodPlot){ "collective", 900, 800, data, script }, folder, error);
}
