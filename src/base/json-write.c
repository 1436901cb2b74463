#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"

enum
{
  ON_ONE_LINE = -1, /* in place of a depth */
};

static void append_node (GString *out, JsonNode *node, int depth);

/* Runs of plain bytes go at once: traces write millions of names through here. */
void
pod_json_append_string (GString *out, const char *text)
{
  g_return_if_fail (out != NULL && text != NULL);

  g_string_append_c (out, '"');
  while (*text != '\0')
    {
      size_t n = 0;
      while (text[n] >= 0x20 && text[n] < 0x7f && text[n] != '"' && text[n] != '\\')
        n++;
      g_string_append_len (out, text, (gssize) n);
      text += n;
      if (*text == '\0')
        break;
      gunichar c = g_utf8_get_char_validated (text, -1);
      if (c == (gunichar) -1 || c == (gunichar) -2)
        {
          g_string_append (out, "\xef\xbf\xbd"); /* U+FFFD */
          text++;
          continue;
        }
      if (c == '"' || c == '\\')
        g_string_append_printf (out, "\\%c", (char) c);
      else if (c < 0x20 || c == 0x7f)
        g_string_append_printf (out, "\\u%04x", c);
      else
        g_string_append_unichar (out, c);
      text = g_utf8_next_char (text);
    }
  g_string_append_c (out, '"');
}

static void
append_line_break (GString *out, int depth)
{
  if (depth == ON_ONE_LINE)
    return;
  g_string_append_c (out, '\n');
  for (int i = 0; i < depth; i++)
    g_string_append (out, "  ");
}

static void
append_array (GString *out, JsonArray *array, int depth)
{
  int inner_depth = depth == ON_ONE_LINE ? ON_ONE_LINE : depth + 1;
  guint n_elements = json_array_get_length (array);

  g_string_append_c (out, '[');
  for (guint i = 0; i < n_elements; i++)
    {
      if (i > 0)
        g_string_append_c (out, ',');
      append_line_break (out, inner_depth);
      append_node (out, json_array_get_element (array, i), inner_depth);
    }
  if (n_elements > 0)
    append_line_break (out, depth);
  g_string_append_c (out, ']');
}

static void
append_object (GString *out, JsonObject *object, int depth)
{
  int inner_depth = depth == ON_ONE_LINE ? ON_ONE_LINE : depth + 1;
  JsonObjectIter iterator;
  const char *key = NULL;
  JsonNode *value = NULL;
  bool is_first = true;

  g_string_append_c (out, '{');
  json_object_iter_init_ordered (&iterator, object);
  while (json_object_iter_next_ordered (&iterator, &key, &value))
    {
      if (!is_first)
        g_string_append_c (out, ',');
      is_first = false;
      append_line_break (out, inner_depth);
      pod_json_append_string (out, key);
      g_string_append (out, depth == ON_ONE_LINE ? ":" : ": ");
      append_node (out, value, inner_depth);
    }
  if (!is_first)
    append_line_break (out, depth);
  g_string_append_c (out, '}');
}

static void
append_value (GString *out, JsonNode *node)
{
  JsonValueType type = json_node_get_value_type (node);

  if (type == JSON_VALUE_INT)
    g_string_append_printf (out, "%" G_GINT64_FORMAT, json_node_get_int (node));
  else if (type == JSON_VALUE_BOOLEAN)
    g_string_append (out, json_node_get_boolean (node) ? "true" : "false");
  else if (type == JSON_VALUE_STRING)
    pod_json_append_string (out, json_node_get_string (node));
  else
    {
      g_assert (type == JSON_VALUE_DOUBLE);
      g_autofree char *digits = pod_format_double (json_node_get_double (node));
      g_string_append (out, digits);
    }
}

static void
append_node (GString *out, JsonNode *node, int depth)
{
  switch (json_node_get_node_type (node))
    {
    case JSON_NODE_OBJECT:
      append_object (out, json_node_get_object (node), depth);
      return;
    case JSON_NODE_ARRAY:
      append_array (out, json_node_get_array (node), depth);
      return;
    case JSON_NODE_VALUE:
      append_value (out, node);
      return;
    case JSON_NODE_NULL:
      g_string_append (out, "null");
      return;
    }
  g_assert_not_reached ();
}

char *
pod_json_to_text (JsonNode *root)
{
  g_return_val_if_fail (root != NULL, NULL);

  GString *out = g_string_new (NULL);
  append_node (out, root, 0);
  g_string_append_c (out, '\n');
  return g_string_free (out, FALSE);
}

char *
pod_json_to_line (JsonNode *root)
{
  g_return_val_if_fail (root != NULL, NULL);

  GString *out = g_string_new (NULL);
  append_node (out, root, ON_ONE_LINE);
  return g_string_free (out, FALSE);
}

/* The object that holds the last key of @path, made on the way when @is_made; *out_key points into
 * @path. Returns: (transfer none) (nullable) NULL when something on the way is absent or no object.
 */
static JsonObject *
walk_to_parent (JsonObject *root, const char *path, bool is_made, const char **out_key)
{
  JsonObject *object = root;
  const char *key = path;

  for (const char *dot = strchr (key, '.'); dot != NULL; dot = strchr (key, '.'))
    {
      g_autofree char *name = g_strndup (key, (size_t) (dot - key));
      JsonNode *node = json_object_get_member (object, name);

      if (node == NULL && !is_made)
        return NULL;
      if (node == NULL)
        {
          node = json_node_alloc ();
          json_node_take_object (node, json_object_new ());
          json_object_set_member (object, name, node);
        }
      if (!JSON_NODE_HOLDS_OBJECT (node))
        return NULL;
      object = json_node_get_object (node);
      key = dot + 1;
    }
  *out_key = key;
  return object;
}

static void
set_node (JsonObject *root, const char *path, JsonNode *node)
{
  const char *key = NULL;
  JsonObject *parent = walk_to_parent (root, path, true, &key);

  g_assert (parent != NULL); /* a value and an object under one name: the caller's mistake */
  json_object_set_member (parent, key, node);
}

void
pod_result_set_double (JsonObject *root, const char *path, double value)
{
  g_return_if_fail (root != NULL && path != NULL);

  set_node (root, path, json_node_init_double (json_node_alloc (), value));
}

void
pod_result_set_int (JsonObject *root, const char *path, int64_t value)
{
  g_return_if_fail (root != NULL && path != NULL);

  set_node (root, path, json_node_init_int (json_node_alloc (), value));
}

void
pod_result_set_bool (JsonObject *root, const char *path, bool value)
{
  g_return_if_fail (root != NULL && path != NULL);

  set_node (root, path, json_node_init_boolean (json_node_alloc (), value));
}

void
pod_result_set_string (JsonObject *root, const char *path, const char *value)
{
  g_return_if_fail (root != NULL && path != NULL && value != NULL);

  set_node (root, path, json_node_init_string (json_node_alloc (), value));
}

JsonArray *
pod_result_get_array (JsonObject *root, const char *path)
{
  const char *key = NULL;

  g_return_val_if_fail (root != NULL && path != NULL, NULL);

  JsonObject *parent = walk_to_parent (root, path, true, &key);
  g_assert (parent != NULL);
  if (!json_object_has_member (parent, key))
    json_object_set_array_member (parent, key, json_array_new ());
  JsonNode *node = json_object_get_member (parent, key);
  g_assert (JSON_NODE_HOLDS_ARRAY (node));
  return json_node_get_array (node);
}

bool
pod_result_get_double (JsonObject *root, const char *path, double *out)
{
  const char *key = NULL;

  g_return_val_if_fail (root != NULL && path != NULL && out != NULL, false);

  JsonObject *parent = walk_to_parent (root, path, false, &key);
  JsonNode *node = parent != NULL ? json_object_get_member (parent, key) : NULL;
  if (node == NULL || !JSON_NODE_HOLDS_VALUE (node))
    return false;
  JsonValueType type = json_node_get_value_type (node);
  if (type != JSON_VALUE_INT && type != JSON_VALUE_DOUBLE)
    return false;
  double value = json_node_get_double (node);
  if (!isfinite (value)) /* it is written as null */
    return false;
  *out = value;
  return true;
}
