#include "report/compare-private.h"

#include <string.h>

#include "report/html-page.h"

/* The steps of a comparison, in the same terms for all machines. */

static const char *const names[POD_N_COMPARE_TERMS] = {
  "forward and backward", "recompute",  "optimizer",  "exposed dp",   "exposed fsdp", "exposed tp",
  "exposed cp",           "exposed pp", "exposed ep", "exposed host", "bubble",       "idle",
};

const char *
pod_compare_term_name (unsigned term)
{
  return names[term];
}

const char *
pod_compare_term_colour (unsigned term)
{
  static const char exposed[] = "exposed ";
  const char *name = names[term];

  return pod_report_term_colour (g_str_has_prefix (name, exposed) ? name + strlen (exposed) : name);
}

static void
add (double *seconds, const char *name, double more)
{
  for (unsigned t = 0; t < POD_N_COMPARE_TERMS; t++)
    if (strcmp (names[t], name) == 0)
      seconds[t] += more;
}

void
pod_compare_terms (JsonObject *row, double *out)
{
  g_autoptr (GArray) terms = pod_report_terms (row);
  const double optimizer_s = pod_report_number (row, "step.optimizer_s");
  const double recompute_s = pod_report_number (row, "step.recompute_s");

  memset (out, 0, POD_N_COMPARE_TERMS * sizeof *out);
  for (guint i = 0; i < terms->len; i++)
    {
      const PodReportTerm *term = &g_array_index (terms, PodReportTerm, i);

      add (out, i == 0 ? "forward and backward" : term->name, (double) term->time_ps / 1e12);
    }
  add (out, "forward and backward", -optimizer_s - recompute_s);
  add (out, "optimizer", optimizer_s);
  add (out, "recompute", recompute_s);
}

bool
pod_compare_has_step (JsonObject *row)
{
  return pod_report_object (row, "step") != NULL;
}
