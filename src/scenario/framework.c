#include "scenario/result-private.h"

#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/xml.h"
#include "scenario/run-cache.h"

/* Frameworks: workloads/frameworks/NAME.xml says what each does unless told otherwise, as options of a run, and what its steps lose. */

static PodXml *
load (const char *name, GError **error)
{
  g_autofree char *file = pod_data_find ("workloads/frameworks", name, ".xml");
  g_autofree char *schema = pod_data_find ("workloads/frameworks", "framework.xsd", ".xsd");

  if (file == NULL)
    {
      g_autoptr (GPtrArray) names = pod_data_list ("workloads/frameworks", ".xml");
      g_autofree char *known = NULL;

      g_ptr_array_add (names, NULL);
      known = g_strjoinv (", ", (char **) names->pdata);
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--framework: unknown '%s'; known are %s", name, known);
      return NULL;
    }
  if (schema == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: the schema workloads/frameworks/framework.xsd is missing: set PODSIM_PATH", file);
      return NULL;
    }
  return pod_xml_load (file, schema, error);
}

/* ---- what it does unless told otherwise ---- */

static bool
is_said (const PodScenario *scenario, const char *name)
{
  if (g_str_has_prefix (name, "no-"))
    name += 3;
  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    if (strcmp (option->name, name) == 0)
      return pod_scenario_is_set (scenario, option);
  return false;
}

bool
pod_scenario_apply_framework (PodScenario *scenario, GError **error)
{
  g_autoptr (PodXml) xml = NULL;
  g_autoptr (GString) note = NULL;

  if (scenario->framework == NULL)
    return true;
  xml = load (scenario->framework, error);
  if (xml == NULL)
    return false;
  note = g_string_new ("framework ");
  g_string_append_printf (note, "%s:", scenario->framework);
  for (PodXmlNode *node = pod_xml_child (pod_xml_root (xml), "option"); node != NULL; node = pod_xml_next (node, "option"))
    {
      g_autofree char *name = pod_xml_attr (node, "name");
      g_autofree char *value = pod_xml_attr (node, "value");

      if (is_said (scenario, name))
        continue;
      if (!pod_scenario_set (scenario, name, value, error))
        {
          g_prefix_error (error, "%s:%u: ", xml->file, node->line);
          return false;
        }
      g_string_append_printf (note, " --%s%s%s", name, value != NULL ? "=" : "", value != NULL ? value : "");
    }
  g_free (scenario->framework_note);
  scenario->framework_note = g_string_free (g_steal_pointer (&note), FALSE);
  return true;
}

/* ---- what its steps lose ---- */

static bool
invalid (GError **error, const char *name, const char *what, const char *text)
{
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s: %s, got '%s'", name, what, text);
  return false;
}

static bool
set_number (const char *name, const char *text, PodUnit unit, double least, double most, double *out, GError **error)
{
  if (!pod_parse_quantity (text, unit, out, error))
    {
      g_prefix_error (error, "%s: ", name);
      return false;
    }
  if (*out >= least && *out <= most)
    return true;
  return invalid (error, name, "is out of its range", text);
}

static bool
set_loss (PodStepSoftware *software, const char *name, const char *text, GError **error)
{
  int word = 0;

  if (strcmp (name, "elementwise_passes") == 0)
    return set_number (name, text, POD_UNIT_COUNT, 1, 10, &software->elementwise_passes, error);
  if (strcmp (name, "launch") == 0)
    return set_number (name, text, POD_UNIT_SECONDS, 0, 1, &software->launch_s, error);
  if (strcmp (name, "overlap_launches") == 0)
    return set_number (name, text, POD_UNIT_COUNT, 0, 1e4, &software->overlap_launches, error);
  if (strcmp (name, "fsdp_rate") == 0)
    return set_number (name, text, POD_UNIT_RATIO, 0.001, 1, &software->fsdp_rate_ratio, error);
  if (strcmp (name, "cuda_graphs") == 0)
    {
      if (!pod_run_choose ("framework: cuda_graphs", text, pod_graphs_names, 0, &word, error))
        return false;
      software->graphs = (PodGraphs) word;
      return true;
    }
  if (strcmp (name, "attention_kernel") != 0)
    return invalid (error, "framework", "has elementwise_passes, attention_kernel, launch, overlap_launches, cuda_graphs, fsdp_rate", name);
  if (!pod_run_choose ("framework: attention_kernel", text, pod_attention_kernel_names, 0, &word, error))
    return false;
  software->attention = (PodAttentionKernel) word;
  return true;
}

static bool
read_losses (const PodXml *xml, PodStepSoftware *software, GError **error)
{
  for (PodXmlNode *node = pod_xml_child (pod_xml_root (xml), NULL); node != NULL; node = pod_xml_next (node, NULL))
    {
      g_autofree char *value = pod_xml_attr (node, "value");

      if (strcmp (node->name, "option") == 0)
        continue;
      if (!set_loss (software, node->name, value, error))
        {
          g_prefix_error (error, "%s:%u: ", xml->file, node->line);
          return false;
        }
    }
  return true;
}

/* The framework's, as its file says them. */
static bool
choose_losses (const PodScenario *scenario, PodRun *run, GError **error)
{
  PodXml *xml = pod_run_cache_document (run->cache, scenario->framework, load, error);
  const bool is_read = xml != NULL && read_losses (xml, &run->software, error);

  if (run->cache == NULL)
    pod_xml_free (xml);
  return is_read;
}

bool
pod_run_choose_software (const PodScenario *scenario, PodRun *run, GError **error)
{
  static const char prefix[] = "framework.";

  pod_step_software_init (&run->software);
  run->software.n_chips = run->topology->n_chips;
  if (scenario->framework != NULL && !choose_losses (scenario, run, error))
    return false;
  for (guint i = 0; i < scenario->set->len; i++)
    {
      const char *text = g_ptr_array_index (scenario->set, i);
      g_auto (GStrv) pair = g_strsplit (text, "=", 2);

      if (!g_str_has_prefix (text, prefix))
        continue;
      if (!set_loss (&run->software, pair[0] + strlen (prefix), pair[1], error))
        {
          g_prefix_error (error, "--set %s: ", text);
          return false;
        }
      pod_run_assume (run->assumptions, "set: %s", text);
    }
  return true;
}
