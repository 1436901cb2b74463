#include "base/yaml.h"

#include <math.h>
#include <string.h>

#include <yaml.h>

#include "base/error.h"
#include "base/file-read.h"

enum
{
  MAX_DEPTH = 64,
};

static void
node_free (PodYamlNode *node)
{
  if (node == NULL)
    return;
  g_free (node->text);
  g_clear_pointer (&node->items, g_ptr_array_unref);
  g_clear_pointer (&node->keys, g_ptr_array_unref);
  g_free (node);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodYamlNode, node_free)

void
pod_yaml_free (PodYaml *yaml)
{
  if (yaml == NULL)
    return;
  node_free (yaml->root);
  g_free (yaml->file);
  g_free (yaml);
}

/* -- parsing ----------------------------------------------------------------------------------- */

typedef struct
{
  yaml_parser_t parser;
  yaml_event_t event; /* the next one, not yet taken; type NO_EVENT: none */
  const char *file;
} Reader;

static void
reader_clear (Reader *reader)
{
  yaml_event_delete (&reader->event);
  yaml_parser_delete (&reader->parser);
}

static bool
fail (const Reader *reader, size_t line, GError **error, const char *message)
{
  g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s:%zu: %s", reader->file, line + 1, message);
  return false;
}

/* Forgets the last event and fetches the next. */
static bool
advance (Reader *reader, GError **error)
{
  const yaml_parser_t *parser = &reader->parser;

  yaml_event_delete (&reader->event);
  if (yaml_parser_parse (&reader->parser, &reader->event))
    return true;
  g_autofree char *message = g_strconcat (
      parser->context != NULL ? parser->context : "", parser->context != NULL ? ": " : "",
      parser->problem != NULL ? parser->problem : "malformed YAML", NULL);
  return fail (reader, parser->problem_mark.line, error, message);
}

static size_t
line_of (const Reader *reader)
{
  return reader->event.start_mark.line;
}

static bool
check_tag (const Reader *reader, const yaml_char_t *anchor, const yaml_char_t *tag, GError **error)
{
  if (anchor != NULL)
    return fail (reader, line_of (reader), error, "anchors and aliases are not read");
  if (tag != NULL)
    return fail (reader, line_of (reader), error, "tags are not read");
  return true;
}

static PodYamlNode *
node_new (const Reader *reader, PodYamlKind kind)
{
  PodYamlNode *node = g_new0 (PodYamlNode, 1);

  node->kind = kind;
  node->line = (unsigned) MIN (line_of (reader) + 1, UINT_MAX);
  if (kind != POD_YAML_SCALAR)
    node->items = g_ptr_array_new_with_free_func ((GDestroyNotify) node_free);
  if (kind == POD_YAML_MAPPING)
    node->keys = g_ptr_array_new_with_free_func ((GDestroyNotify) node_free);
  return node;
}

static PodYamlNode *read_node (Reader *reader, unsigned depth, GError **error);

static PodYamlNode *
read_scalar (Reader *reader, GError **error)
{
  g_autoptr (PodYamlNode) node = node_new (reader, POD_YAML_SCALAR);
  const char *text = (const char *) reader->event.data.scalar.value;
  size_t length = reader->event.data.scalar.length;

  if (!check_tag (reader, reader->event.data.scalar.anchor, reader->event.data.scalar.tag, error))
    return NULL;
  if (memchr (text, '\0', length) != NULL)
    {
      fail (reader, line_of (reader), error, "a text with a zero byte");
      return NULL;
    }
  node->text = g_strndup (text, length);
  node->is_quoted = reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
  return advance (reader, error) ? g_steal_pointer (&node) : NULL;
}

static PodYamlNode *
read_sequence (Reader *reader, unsigned depth, GError **error)
{
  g_autoptr (PodYamlNode) node = node_new (reader, POD_YAML_SEQUENCE);

  if (!check_tag (reader, reader->event.data.sequence_start.anchor,
                  reader->event.data.sequence_start.tag, error)
      || !advance (reader, error))
    return NULL;
  while (reader->event.type != YAML_SEQUENCE_END_EVENT)
    {
      PodYamlNode *item = read_node (reader, depth + 1, error);
      if (item == NULL)
        return NULL;
      g_ptr_array_add (node->items, item);
    }
  return advance (reader, error) ? g_steal_pointer (&node) : NULL;
}

/* The key and its value. @seen: the texts of all keys so far. */
static bool
read_pair (Reader *reader, PodYamlNode *mapping, GHashTable *seen, unsigned depth, GError **error)
{
  size_t line = line_of (reader);
  g_autoptr (PodYamlNode) key = read_node (reader, depth + 1, error);

  if (key == NULL)
    return false;
  if (key->kind != POD_YAML_SCALAR)
    return fail (reader, line, error, "a key must be plain text");
  if (!g_hash_table_add (seen, key->text))
    {
      g_autofree char *message = g_strdup_printf ("the key '%s' stands twice", key->text);
      return fail (reader, line, error, message);
    }
  g_ptr_array_add (mapping->keys, g_steal_pointer (&key)); /* before a failure can free it */
  PodYamlNode *value = read_node (reader, depth + 1, error);
  if (value == NULL)
    return false;
  g_ptr_array_add (mapping->items, value);
  return true;
}

static PodYamlNode *
read_mapping (Reader *reader, unsigned depth, GError **error)
{
  g_autoptr (PodYamlNode) node = node_new (reader, POD_YAML_MAPPING);
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);

  if (!check_tag (reader, reader->event.data.mapping_start.anchor,
                  reader->event.data.mapping_start.tag, error)
      || !advance (reader, error))
    return NULL;
  while (reader->event.type != YAML_MAPPING_END_EVENT)
    if (!read_pair (reader, node, seen, depth, error))
      return NULL;
  return advance (reader, error) ? g_steal_pointer (&node) : NULL;
}

static PodYamlNode *
read_node (Reader *reader, unsigned depth, GError **error)
{
  if (depth > MAX_DEPTH)
    {
      fail (reader, line_of (reader), error, "more than 64 levels deep");
      return NULL;
    }
  switch (reader->event.type)
    {
    case YAML_SCALAR_EVENT:
      return read_scalar (reader, error);
    case YAML_SEQUENCE_START_EVENT:
      return read_sequence (reader, depth, error);
    case YAML_MAPPING_START_EVENT:
      return read_mapping (reader, depth, error);
    default:
      fail (reader, line_of (reader), error, "anchors and aliases are not read");
      return NULL;
    }
}

static bool
read_stream (Reader *reader, PodYaml *yaml, GError **error)
{
  if (!advance (reader, error) || !advance (reader, error)) /* of the stream, of the document */
    return false;
  if (reader->event.type == YAML_STREAM_END_EVENT)
    return true;
  if (!advance (reader, error))
    return false;
  yaml->root = read_node (reader, 0, error);
  if (yaml->root == NULL || !advance (reader, error)) /* behind the document's end */
    return false;
  return reader->event.type == YAML_STREAM_END_EVENT
         || fail (reader, line_of (reader), error, "a second document: only one is read");
}

PodYaml *
pod_yaml_parse (const char *name, const char *text, size_t length, GError **error)
{
  g_return_val_if_fail (name != NULL && text != NULL, NULL);

  g_autoptr (PodYaml) yaml = g_new0 (PodYaml, 1);
  Reader reader = { .file = name };
  yaml->file = g_strdup (name);
  bool is_made = yaml_parser_initialize (&reader.parser) != 0;
  g_assert (is_made); /* fails for want of memory only */
  yaml_parser_set_input_string (&reader.parser, (const unsigned char *) text, length);
  yaml_parser_set_encoding (&reader.parser, YAML_UTF8_ENCODING);
  bool is_read = read_stream (&reader, yaml, error);
  reader_clear (&reader);
  return is_read ? g_steal_pointer (&yaml) : NULL;
}

PodYaml *
pod_yaml_load (const char *file, GError **error)
{
  size_t n_bytes = 0;
  g_autofree char *text = pod_file_read (file, POD_FILE_LIMIT_BYTES, &n_bytes, error);

  return text != NULL ? pod_yaml_parse (file, text, n_bytes, error) : NULL;
}

/* -- use --------------------------------------------------------------------------------------- */

const PodYamlNode *
pod_yaml_get (const PodYamlNode *mapping, const char *key)
{
  if (mapping == NULL || mapping->kind != POD_YAML_MAPPING)
    return NULL;
  for (unsigned i = 0; i < mapping->keys->len; i++)
    if (strcmp (((const PodYamlNode *) g_ptr_array_index (mapping->keys, i))->text, key) == 0)
      return g_ptr_array_index (mapping->items, i);
  return NULL;
}

bool
pod_yaml_is_null (const PodYamlNode *node)
{
  if (node == NULL)
    return true;
  return node->kind == POD_YAML_SCALAR && !node->is_quoted
         && (*node->text == '\0' || strcmp (node->text, "~") == 0
             || g_ascii_strcasecmp (node->text, "null") == 0);
}

unsigned
pod_yaml_length (const PodYamlNode *node)
{
  return node != NULL && node->items != NULL ? node->items->len : 0;
}

const PodYamlNode *
pod_yaml_item (const PodYamlNode *node, unsigned index)
{
  g_return_val_if_fail (index < pod_yaml_length (node), NULL);

  return g_ptr_array_index (node->items, index);
}

bool
pod_yaml_error (const PodYaml *yaml, const PodYamlNode *node, GError **error, const char *format,
                ...)
{
  va_list arguments;

  va_start (arguments, format);
  g_autofree char *message = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s:%u: %s", yaml->file,
               node != NULL ? node->line : 1, message);
  return false;
}

const char *
pod_yaml_text (const PodYaml *yaml, const PodYamlNode *node, GError **error)
{
  if (node != NULL && node->kind == POD_YAML_SCALAR)
    return node->text;
  pod_yaml_error (yaml, node, error, "expected one value, got a %s",
                  node == NULL                      ? "gap"
                  : node->kind == POD_YAML_SEQUENCE ? "list"
                                                    : "mapping");
  return NULL;
}

bool
pod_yaml_double (const PodYaml *yaml, const PodYamlNode *node, double *out, GError **error)
{
  const char *text = pod_yaml_text (yaml, node, error);
  char *end = NULL;

  if (text == NULL)
    return false;
  double value = g_ascii_strtod (text, &end);
  if (node->is_quoted || end == text || *end != '\0' || !isfinite (value)
      || strpbrk (text, "xXpP") != NULL)
    return pod_yaml_error (yaml, node, error, "expected a number, got '%s'", text);
  *out = value;
  return true;
}

bool
pod_yaml_uint (const PodYaml *yaml, const PodYamlNode *node, uint64_t *out, GError **error)
{
  const char *text = pod_yaml_text (yaml, node, error);
  guint64 value = 0;

  if (text == NULL)
    return false;
  if (node->is_quoted || !g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT64, &value, NULL))
    return pod_yaml_error (yaml, node, error, "expected a whole number, got '%s'", text);
  *out = value;
  return true;
}

bool
pod_yaml_bool (const PodYaml *yaml, const PodYamlNode *node, bool *out, GError **error)
{
  const char *text = pod_yaml_text (yaml, node, error);

  if (text == NULL)
    return false;
  bool is_true = g_ascii_strcasecmp (text, "true") == 0;
  if (node->is_quoted || (!is_true && g_ascii_strcasecmp (text, "false") != 0))
    return pod_yaml_error (yaml, node, error, "expected true or false, got '%s'", text);
  *out = is_true;
  return true;
}
