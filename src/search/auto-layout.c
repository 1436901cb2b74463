#include "search/auto-layout.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"

#define DEGREES "dp", "fsdp", "tp", "cp", "pp", "vpp", "ep", "etp"

/* Degrees of @words that are auto. */
static unsigned
n_autos (char *const *words)
{
  unsigned n = 0;

  for (unsigned i = 0; words[i] != NULL; i++)
    n += g_str_has_suffix (words[i], "=auto") ? 1 : 0;
  return n;
}

bool
pod_layout_is_auto (const PodScenario *scenario)
{
  g_auto (GStrv) words = g_strsplit (scenario->layout != NULL ? scenario->layout : "", " ", -1);

  return g_strcmp0 (scenario->layout, "auto") == 0 || n_autos (words) > 1;
}

/* "tp=2,4,8": every degree above 1 that divides @n_devices; 1 where there is none. Returns: (transfer full) */
static char *
shares (const char *key, uint32_t n_devices)
{
  GString *text = g_string_new (key);

  g_string_append_c (text, '=');
  for (uint32_t d = 2; d <= n_devices; d++)
    if (n_devices % d == 0)
      g_string_append_printf (text, "%s%u", g_str_has_suffix (text->str, "=") ? "" : ",", d);
  return g_string_free (n_devices > 1 ? text : g_string_append_c (text, '1'), FALSE);
}

/* What the layout leaves open, as limits of a space: NULL is everything, for "auto"; otherwise the degrees that are auto share the devices, at
 * least 2 each, and the others are what they say, or 1. Returns: (transfer full) (element-type utf8) (nullable) */
static bool
limits_of (const PodScenario *scenario, GPtrArray **out, GError **error)
{
  static const char *const degrees[] = { DEGREES, NULL };
  g_auto (GStrv) words = g_strsplit_set (scenario->layout, " \t\n", -1);
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (PodTopology) topology = NULL;

  *out = NULL;
  if (strcmp (scenario->layout, "auto") == 0)
    return true;
  topology = pod_scenario_topology (scenario, notes, error);
  if (topology == NULL)
    return false;
  *out = g_ptr_array_new_with_free_func (g_free);
  for (unsigned i = 0; words[i] != NULL; i++)
    {
      g_autofree char *key = g_strndup (words[i], strcspn (words[i], "="));

      if (g_str_has_suffix (words[i], "=auto"))
        g_ptr_array_add (*out, shares (key, topology->n_devices));
      else if (*words[i] != '\0')
        g_ptr_array_add (*out, g_strdup (words[i]));
    }
  for (unsigned d = 0; degrees[d] != NULL; d++)
    {
      g_autofree char *prefix = g_strconcat (degrees[d], "=", NULL);
      bool is_said = false;

      for (unsigned i = 0; words[i] != NULL; i++)
        is_said = is_said || g_str_has_prefix (words[i], prefix);
      if (!is_said)
        g_ptr_array_add (*out, g_strconcat (prefix, "1", NULL));
    }
  return true;
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
  g_autoptr (GString) smallest = g_string_new (NULL);
  const PodSearchFamily *family = result->families->len > 0 ? g_ptr_array_index (result->families, 0) : NULL;

  if (result->least_bytes > 0)
    {
      g_autofree char *least = pod_format_bytes (result->least_bytes, false);
      g_autofree char *most = pod_format_bytes (result->most_bytes, false);

      g_string_append_printf (smallest, " (the smallest needs %s or more of %s)", least, most);
    }
  g_set_error (error, POD_ERROR, POD_ERROR_INFEASIBLE, "--layout: auto: none of %" G_GUINT64_FORMAT " layouts fits: %" G_GUINT64_FORMAT " are too large for the memory%s, %" G_GUINT64_FORMAT " refused%s%s",
               result->n_candidates, result->n_too_large, smallest->str, result->n_refused, family != NULL ? ", most because " : "", family != NULL ? family->reason : "");
}

PodScenario *
pod_layout_choose (const PodScenario *scenario, const PodSearchRequest *request, GError **error)
{
  PodSearchRequest one = *request;
  g_autoptr (GPtrArray) limits = NULL;
  g_autoptr (PodSpace) space = NULL;
  g_autoptr (PodSearchResult) result = NULL;
  g_autofree char *words = NULL;
  PodScenario *chosen;
  uint64_t candidate;

  if (!limits_of (scenario, &limits, error))
    return NULL;
  space = pod_space_new (scenario, limits, error);
  if (space == NULL)
    {
      if (limits != NULL)
        g_prefix_error (error, "--layout: %s: ", scenario->layout);
      return NULL;
    }
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
  add_note (chosen, g_strdup_printf ("layout %s: %s, %s of %" G_GUINT64_FORMAT " (%" G_GUINT64_FORMAT " refused)", scenario->layout, words,
                                     one.objective == POD_OBJECTIVE_TIME ? "the fastest" : "the best", result->n_candidates, result->n_refused));
  return chosen;
}
