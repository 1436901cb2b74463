#include "fuzz/fuzz-input.h"

#include <math.h>
#include <string.h>

#include "base/file-read.h"
#include "base/json.h"

/* JSON text, plain or gzip. What was read is written again and read back. */

static void
check_members (const PodJson *json, JsonObject *object)
{
  g_autoptr (GList) keys = json_object_get_members (object);

  for (const GList *l = keys; l != NULL; l = l->next)
    {
      const char *key = l->data;
      const char *text;
      uint64_t whole;
      double number;
      bool flag;
      GError *errors[4] = { NULL };

      g_assert (pod_json_line_of (json, key) >= 1);
      fuzz_judge (pod_json_get_uint (json, object, key, &whole, &errors[0]), &errors[0]);
      fuzz_judge (pod_json_get_double (json, object, key, &number, &errors[1]), &errors[1]);
      g_assert (errors[1] != NULL || isfinite (number));
      fuzz_judge (pod_json_get_bool (json, object, key, &flag, &errors[2]), &errors[2]);
      fuzz_judge (pod_json_get_string (json, object, key, &text, &errors[3]), &errors[3]);
      for (size_t i = 0; i < G_N_ELEMENTS (errors); i++)
        g_clear_error (&errors[i]);
    }
}

static void
check_round_trip (const PodJson *json)
{
  g_autofree char *text = pod_json_to_text (json->root);
  g_autofree char *line = pod_json_to_line (json->root);
  g_autoptr (PodJson) again = pod_json_parse ("again", text, -1, NULL);
  g_autoptr (PodJson) from_line = pod_json_parse ("line", line, -1, NULL);

  g_assert (again != NULL && from_line != NULL);

  g_autofree char *second = pod_json_to_text (again->root);
  g_autofree char *third = pod_json_to_text (from_line->root);

  g_assert_cmpstr (text, ==, second);
  g_assert_cmpstr (text, ==, third);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  enum
  {
    MAX_INFLATED_BYTES = 1 << 20,
  };
  const char *text = (const char *) data;
  g_autofree char *inflated = NULL;
  g_autoptr (GError) error = NULL;

  fuzz_begin ();
  if (pod_gzip_is_magic (text, size))
    {
      inflated = pod_gzip_inflate ("input", text, size, MAX_INFLATED_BYTES, &size, &error);
      fuzz_judge_file (inflated != NULL, &error, "input: ");
      if (inflated == NULL)
        return 0;
      text = inflated;
    }

  g_autoptr (PodJson) json = pod_json_parse ("input", text, (gssize) size, &error);

  fuzz_judge_file (json != NULL, &error, "input:");
  if (json == NULL)
    return 0;
  check_round_trip (json);
  if (JSON_NODE_HOLDS_OBJECT (json->root))
    check_members (json, json_node_get_object (json->root));
  return 0;
}
