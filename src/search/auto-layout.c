#include "search/auto-layout.h"

#include <string.h>

#include "base/error.h"

bool
pod_layout_is_auto (const PodScenario *scenario)
{
  return scenario->layout != NULL && strcmp (scenario->layout, "auto") == 0;
}

static void
add_note (PodScenario *scenario, char *note)
{
  char *before = scenario->framework_note;

  scenario->framework_note = before != NULL ? g_strdup_printf ("%s; %s", before, note) : g_strdup (note);
  g_free (before);
  g_free (note);
}

static void
refuse (const PodSearchResult *result, GError **error)
{
  const PodSearchFamily *family = result->families->len > 0 ? g_ptr_array_index (result->families, 0) : NULL;

  g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--layout: auto: none of %" G_GUINT64_FORMAT " layouts fits: %" G_GUINT64_FORMAT " are too large for the memory, %" G_GUINT64_FORMAT " refused%s%s",
               result->n_candidates, result->n_too_large, result->n_refused, family != NULL ? ", most because " : "", family != NULL ? family->reason : "");
}

PodScenario *
pod_layout_choose (const PodScenario *scenario, const PodSearchRequest *request, GError **error)
{
  PodSearchRequest one = *request;
  g_autoptr (PodSpace) space = pod_space_new (scenario, NULL, error);
  g_autoptr (PodSearchResult) result = NULL;
  g_autofree char *words = NULL;
  PodScenario *chosen;
  uint64_t candidate;

  if (space == NULL)
    return NULL;
  one.n_top = 1;
  result = pod_search_run (space, &one, error);
  if (result == NULL || result->is_partial)
    return NULL;
  if (result->best->len == 0)
    {
      refuse (result, error);
      return NULL;
    }
  candidate = g_array_index (result->best, PodRow, 0).candidate;
  chosen = pod_space_scenario (space, candidate);
  words = pod_space_words (space, candidate);
  add_note (chosen, g_strdup_printf ("layout auto: %s, the fastest of %" G_GUINT64_FORMAT " (%" G_GUINT64_FORMAT " refused)", words, result->n_candidates,
                                     result->n_refused));
  return chosen;
}
