#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "cli/cli.h"
#include "report/report.h"

/* podsim diff: two results, what changed between them and which terms explain it. */

/* Returns: (transfer full) (nullable) */
static PodJson *
load_result (const char *file, GError **error)
{
  g_autoptr (PodJson) json = pod_json_load (file, error);
  double time_s;

  if (json == NULL)
    return NULL;
  if (json->root == NULL || !JSON_NODE_HOLDS_OBJECT (json->root)
      || !pod_result_get_double (json_node_get_object (json->root), "step.time_s", &time_s))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "%s:1: not a result of podsim run: it has no step.time_s", file);
      return NULL;
    }
  return g_steal_pointer (&json);
}

static bool
run_diff (char **files, const char *json_file, GError **error)
{
  g_autoptr (PodJson) a = load_result (files[0], error);
  g_autoptr (PodJson) b = a != NULL ? load_result (files[1], error) : NULL;
  g_autoptr (JsonObject) difference = NULL;
  g_autofree char *text = NULL;

  if (b == NULL)
    return false;
  difference = pod_report_diff (json_node_get_object (a->root), json_node_get_object (b->root));
  pod_result_set_string (difference, "a.file", files[0]);
  pod_result_set_string (difference, "b.file", files[1]);
  if (g_strcmp0 (json_file, "-") != 0)
    {
      text = pod_report_diff_to_text (difference);
      fputs (text, stdout);
    }
  return json_file == NULL || pod_cli_write_json (difference, json_file, error);
}

int
pod_cmd_diff (int argc, char **argv)
{
  g_autofree char *json_file = NULL;
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &json_file, "the differences as JSON (- is stdout)",
      "FILE" },
    { .long_name = NULL },
  };
  g_autoptr (GOptionContext) context
      = g_option_context_new ("A.json B.json - what changed between two results of podsim run");
  int status;

  if (!pod_cli_parse (context, entries, &argc, &argv, 2, &status))
    return status;
  if (argc != 3)
    {
      g_set_error (&error, POD_ERROR, POD_ERROR_INVALID,
                   "diff: two results of podsim run --json are needed, got %d", argc - 1);
      return pod_cli_fail (error);
    }
  return run_diff (argv + 1, json_file, &error) ? 0 : pod_cli_fail (error);
}
