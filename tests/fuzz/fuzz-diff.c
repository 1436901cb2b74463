#include "fuzz/fuzz-input.h"

#include "base/json.h"
#include "report/report.h"

/* A result of podsim run, as podsim diff takes it, against another and against itself. */

static const char other_result[]
    = "{\"schema_version\":1,\"layout\":\"fsdp=8\",\"topology\":{\"name\":\"a\",\"devices\":8},"
      "\"step\":{\"time_s\":1.5,\"compute_s\":1,\"bubble_s\":0.25,\"idle_s\":0,"
      "\"exposed_comm_s\":{\"fsdp\":0.25},\"comm_s\":{\"fsdp\":0.5},\"mfu\":0.4},"
      "\"memory\":{\"peak_bytes\":1e9,\"params_bytes\":1e8,\"fits\":true},"
      "\"assumptions\":[\"a\",\"b\"],\"warnings\":[]}";

static void
diff (JsonObject *a, JsonObject *b)
{
  g_autoptr (JsonObject) difference = pod_report_diff (a, b);
  g_autofree char *text = pod_report_diff_to_text (difference);
  g_autoptr (JsonNode) root = json_node_alloc ();

  g_assert (text != NULL && g_utf8_validate (text, -1, NULL));
  json_node_init_object (root, difference);

  g_autofree char *json = pod_json_to_text (root);
  g_autoptr (PodJson) again = pod_json_parse ("difference", json, -1, NULL);

  g_assert (again != NULL);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (PodJson) other = pod_json_parse ("other", other_result, -1, NULL);
  g_autoptr (PodJson) json = pod_json_parse ("input", (const char *) data, (gssize) size, NULL);
  double time_s;

  fuzz_begin ();
  if (json == NULL || !JSON_NODE_HOLDS_OBJECT (json->root)
      || !pod_result_get_double (json_node_get_object (json->root), "step.time_s", &time_s))
    return 0;

  JsonObject *a = json_node_get_object (json->root);
  JsonObject *b = json_node_get_object (other->root);

  diff (a, b);
  diff (b, a);
  diff (a, a);
  return 0;
}
