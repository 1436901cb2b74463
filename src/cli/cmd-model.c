#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/model-facts.h"

/* podsim model: what a model's config says in parameters, FLOPs and bytes; no hardware. */

enum
{
  DEFAULT_SEQ_LEN = 4096, /* as podsim run takes when none is given */
};

static void
facts_clear (PodModelFacts *facts)
{
  pod_model_free (facts->model);
  g_ptr_array_unref (facts->assumptions);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PodModelFacts, facts_clear)

/* The names that can be given: one a line, for people and for completion. */
static bool
list_models (const PodScenario *scenario, const char *json, GError **error)
{
  g_autoptr (GPtrArray) names = pod_model_list ();
  g_autoptr (JsonObject) root = NULL;
  JsonArray *array;

  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    if (pod_scenario_is_set (scenario, option))
      {
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                     "--%s: of which model? podsim model M --%s ...", option->name, option->name);
        return false;
      }
  if (json == NULL || strcmp (json, "-") != 0)
    for (guint i = 0; i < names->len; i++)
      puts (g_ptr_array_index (names, i));
  if (json == NULL)
    return true;
  root = json_object_new ();
  pod_result_set_int (root, "schema_version", 1);
  array = pod_result_get_array (root, "models");
  for (guint i = 0; i < names->len; i++)
    json_array_add_string_element (array, g_ptr_array_index (names, i));
  return pod_cli_write_json (root, json, error);
}

static bool
choose_seq_len (const char *text, const PodModel *model, uint64_t *out, GError **error)
{
  *out = model->max_positions > 0 ? MIN (model->max_positions, DEFAULT_SEQ_LEN) : DEFAULT_SEQ_LEN;
  if (text == NULL)
    return true;
  if (g_str_has_suffix (text, "k"))
    {
      int length = (int) strlen (text) - 1;

      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "--seq-len: '%s' may mean 1000s or 1024s: write %.*sK (1000s) or %.*sKi (1024s)",
                   text, length, text, length, text);
      return false;
    }
  if (!pod_parse_whole (text, POD_UNIT_COUNT, out, error))
    {
      g_prefix_error (error, "--seq-len: ");
      return false;
    }
  if (*out > 0)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "--seq-len: must be at least 1, got '%s'",
               text);
  return false;
}

static bool
choose_tokens (const char *text, double *out, GError **error)
{
  if (text == NULL || pod_parse_quantity (text, POD_UNIT_COUNT, out, error))
    return true;
  g_prefix_error (error, "--tokens: ");
  return false;
}

/* An override of a machine has no meaning here and would pass unseen. */
static bool
check_sets (const PodScenario *scenario, GError **error)
{
  for (guint i = 0; i < scenario->set->len; i++)
    {
      const char *text = g_ptr_array_index (scenario->set, i);

      if (!g_str_has_prefix (text, "model."))
        {
          g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                       "--set %s: a model has model.FIELD=VALUE only", text);
          return false;
        }
    }
  return true;
}

static bool
describe_model (const PodScenario *scenario, const char *json, GError **error)
{
  g_auto (PodModelFacts) facts = { .assumptions = g_ptr_array_new_with_free_func (g_free) };
  g_autoptr (JsonObject) root = NULL;

  if (!check_sets (scenario, error))
    return false;
  facts.model = pod_scenario_model (scenario, facts.assumptions, error);
  if (facts.model == NULL || !choose_seq_len (scenario->seq_len, facts.model, &facts.seq_len, error)
      || !choose_tokens (scenario->tokens, &facts.tokens, error))
    return false;
  pod_model_facts_fill (&facts);
  if (g_strcmp0 (json, "-") != 0)
    pod_model_facts_print (&facts);
  if (json == NULL)
    return true;
  root = pod_model_facts_to_json (&facts);
  return pod_cli_write_json (root, json, error);
}

int
pod_cmd_model (int argc, char **argv)
{
  static const char *const names[]
      = { "model",    "seq-len",  "tokens", "layers", "hidden", "heads",
          "kv-heads", "head-dim", "ffn",    "vocab",  "set",    NULL };
  g_autoptr (PodScenario) scenario = pod_scenario_new ();
  g_autoptr (GError) error = NULL;
  g_autofree char *json = NULL;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &json, "every number as JSON (- is stdout)", "FILE" },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };
  g_autoptr (GOptionContext) context
      = g_option_context_new ("[M] - a model's parameters, FLOPs and bytes");
  int status;

  g_option_context_set_summary (
      context, "M is a Hugging Face config.json or a name; without one, the names are listed.");
  g_option_context_add_group (context, pod_cli_scenario_group (scenario, names));
  if (!pod_cli_parse (context, entries, &argc, &argv, 1, &status))
    return status;
  if (argc > 1 && scenario->model != NULL)
    g_set_error (&error, POD_ERROR, POD_ERROR_INVALID, "--model: '%s' and '%s' are two models",
                 scenario->model, argv[1]);
  else if (argc > 1)
    pod_scenario_set (scenario, "model", argv[1], &error);
  if (error != NULL)
    return pod_cli_fail (error);
  if (scenario->model == NULL ? !list_models (scenario, json, &error)
                              : !describe_model (scenario, json, &error))
    return pod_cli_fail (error);
  return 0;
}
