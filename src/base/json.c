#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/file-read.h"
#include "base/json-private.h"

PodJson *
pod_json_parse (const char *name, const char *text, gssize length, GError **error)
{
  g_return_val_if_fail (name != NULL && text != NULL, NULL);

  size_t n_bytes = length < 0 ? strlen (text) : (size_t) length;
  g_autoptr (PodJson) json = g_new0 (PodJson, 1);
  json->file = g_strdup (name);
  json->text = g_strndup (text, n_bytes);
  json->root = pod_json_read_text (name, json->text, n_bytes, error);
  return json->root != NULL ? g_steal_pointer (&json) : NULL;
}

PodJson *
pod_json_load (const char *file, GError **error)
{
  size_t n_bytes = 0;

  g_return_val_if_fail (file != NULL, NULL);

  g_autofree char *text = pod_file_read (file, POD_FILE_LIMIT_BYTES, &n_bytes, error);
  if (text == NULL)
    return NULL;
  if (pod_gzip_is_magic (text, n_bytes))
    {
      char *inflated
          = pod_gzip_inflate (file, text, n_bytes, POD_FILE_LIMIT_BYTES, &n_bytes, error);
      if (inflated == NULL)
        return NULL;
      g_free (text);
      text = inflated;
    }
  g_autoptr (PodJson) json = g_new0 (PodJson, 1);
  json->file = g_strdup (file);
  json->text = g_steal_pointer (&text);
  json->root = pod_json_read_text (file, json->text, n_bytes, error);
  return json->root != NULL ? g_steal_pointer (&json) : NULL;
}

void
pod_json_free (PodJson *json)
{
  if (json == NULL)
    return;
  g_clear_pointer (&json->root, json_node_unref);
  g_free (json->text);
  g_free (json->file);
  g_free (json);
}

/* Behind the string that begins at @text's quote. The text has been read, so it has an end. */
static const char *
skip_string (const char *text)
{
  for (text++; *text != '"' && *text != '\0'; text++)
    if (*text == '\\' && text[1] != '\0')
      text++;
  return *text == '"' ? text + 1 : text;
}

unsigned
pod_json_line_of (const PodJson *json, const char *key)
{
  g_return_val_if_fail (json != NULL && key != NULL, 1);

  size_t n_key_bytes = strlen (key);
  for (const char *at = strchr (json->text, '"'); at != NULL; at = strchr (at, '"'))
    {
      const char *start = at + 1;
      at = skip_string (at);
      bool is_same
          = (size_t) (at - start) == n_key_bytes + 1 && strncmp (start, key, n_key_bytes) == 0;
      const char *next = at + strspn (at, " \t\r\n");
      if (is_same && *next == ':')
        return pod_line_at (json->text, (size_t) (start - json->text));
    }
  return 1;
}

bool
pod_json_has (JsonObject *object, const char *key)
{
  g_return_val_if_fail (object != NULL && key != NULL, false);

  return json_object_has_member (object, key) && !json_object_get_null_member (object, key);
}

/* Sets "file:line: key: expected @expected, got ..."; returns false. */
static bool
refuse (const PodJson *json, JsonObject *object, const char *key, const char *expected,
        GError **error)
{
  enum
  {
    MAX_SHOWN_CHARACTERS = 60,
  };
  JsonNode *node = json_object_get_member (object, key);
  unsigned line = pod_json_line_of (json, key);

  if (node == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s:%u: %s: missing, expected %s",
                   json->file, line, key, expected);
      return false;
    }
  g_autofree char *got = pod_json_to_line (node);
  bool is_long = g_utf8_strlen (got, -1) > MAX_SHOWN_CHARACTERS;
  if (is_long)
    *g_utf8_offset_to_pointer (got, MAX_SHOWN_CHARACTERS) = '\0';
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s:%u: %s: expected %s, got %s%s", json->file,
               line, key, expected, got, is_long ? "..." : "");
  return false;
}

/* The type of a plain value; JSON_VALUE_NONE for what is absent, null, an object or an array. */
static JsonValueType
type_of (JsonObject *object, const char *key)
{
  JsonNode *node = json_object_get_member (object, key);

  return node != NULL && JSON_NODE_HOLDS_VALUE (node) ? json_node_get_value_type (node)
                                                      : JSON_VALUE_NONE;
}

bool
pod_json_get_uint (const PodJson *json, JsonObject *object, const char *key, uint64_t *out,
                   GError **error)
{
  g_return_val_if_fail (json != NULL && object != NULL && key != NULL && out != NULL, false);

  JsonValueType type = type_of (object, key);
  double value = type == JSON_VALUE_DOUBLE ? json_object_get_double_member (object, key) : 0;
  if (type == JSON_VALUE_INT && json_object_get_int_member (object, key) >= 0)
    *out = (uint64_t) json_object_get_int_member (object, key);
  /* From 2^63 on a double may be a rounded integer, so it is not taken for an exact one. */
  else if (type == JSON_VALUE_DOUBLE && value >= 0 && value < 0x1p63 && value == floor (value))
    *out = (uint64_t) value;
  else
    return refuse (json, object, key, "a whole number >= 0", error);
  return true;
}

bool
pod_json_get_double (const PodJson *json, JsonObject *object, const char *key, double *out,
                     GError **error)
{
  g_return_val_if_fail (json != NULL && object != NULL && key != NULL && out != NULL, false);

  JsonValueType type = type_of (object, key);
  if (type == JSON_VALUE_INT)
    *out = (double) json_object_get_int_member (object, key);
  else if (type == JSON_VALUE_DOUBLE)
    *out = json_object_get_double_member (object, key);
  else
    return refuse (json, object, key, "a number", error);
  return true;
}

bool
pod_json_get_bool (const PodJson *json, JsonObject *object, const char *key, bool *out,
                   GError **error)
{
  g_return_val_if_fail (json != NULL && object != NULL && key != NULL && out != NULL, false);

  if (type_of (object, key) != JSON_VALUE_BOOLEAN)
    return refuse (json, object, key, "true or false", error);
  *out = json_object_get_boolean_member (object, key);
  return true;
}

bool
pod_json_get_string (const PodJson *json, JsonObject *object, const char *key, const char **out,
                     GError **error)
{
  g_return_val_if_fail (json != NULL && object != NULL && key != NULL && out != NULL, false);

  if (type_of (object, key) != JSON_VALUE_STRING)
    return refuse (json, object, key, "a string", error);
  *out = json_object_get_string_member (object, key);
  return true;
}
