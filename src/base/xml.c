#include "base/xml.h"

#include <string.h>

#include "base/error.h"
#include "base/file-read.h"
#include "base/xml-known.h"
#include "base/xml-private.h"

static void
set_error_at (GError **error, const char *file, unsigned line, const char *message)
{
  g_set_error (error, POD_ERROR, POD_ERROR_PARSE, "%s:%u: %s", file, line, message);
}

/* Behind @end, which is looked for from @at on; NULL when it does not come. */
static const char *
skip_to (const char *at, const char *end)
{
  const char *found = strstr (at, end);

  return found != NULL ? found + strlen (end) : NULL;
}

/* The first "<!DOCTYPE" outside comments, processing instructions and CDATA; NULL when there is
 * none. */
static const char *
find_doctype (const char *text)
{
  const char *at = text;

  while (at != NULL && (at = strchr (at, '<')) != NULL)
    {
      if (g_str_has_prefix (at, "<!--"))
        at = skip_to (at + 4, "-->");
      else if (g_str_has_prefix (at, "<?"))
        at = skip_to (at + 2, "?>");
      else if (g_str_has_prefix (at, "<![CDATA["))
        at = skip_to (at, "]]>");
      else if (g_ascii_strncasecmp (at, "<!DOCTYPE", strlen ("<!DOCTYPE")) == 0)
        return at;
      else
        at++;
    }
  return NULL;
}

/* Blanks out the DOCTYPE at @at when it only names a DTD; lines stay where they are. */
static bool
blank_doctype (char *at)
{
  char quote = '\0';
  size_t length = 0;

  for (; at[length] != '\0' && (quote != '\0' || at[length] != '>'); length++)
    if (quote != '\0' ? at[length] == quote : at[length] == '"' || at[length] == '\'')
      quote = quote != '\0' ? '\0' : at[length];
    else if (quote == '\0' && at[length] == '[')
      return false;
  if (at[length] == '\0')
    return false;
  for (size_t i = 0; i <= length; i++)
    if (at[i] != '\n')
      at[i] = ' ';
  return true;
}

/* Only UTF-8 is read: in any other encoding the search for a DOCTYPE could be deceived. */
static bool
check_text (const char *file, char *text, size_t n_bytes, bool is_foreign, GError **error)
{
  const char *end = NULL;

  if (!g_utf8_validate_len (text, n_bytes, &end))
    {
      g_autofree char *message
          = g_strdup_printf ("byte 0x%02x is not UTF-8 text", (unsigned) (unsigned char) *end);
      set_error_at (error, file, pod_line_at (text, (size_t) (end - text)), message);
      return false;
    }
  const char *doctype = find_doctype (text);
  if (doctype != NULL && is_foreign && blank_doctype (text + (doctype - text)))
    doctype = find_doctype (text);
  if (doctype != NULL)
    {
      set_error_at (error, file, pod_line_at (text, (size_t) (doctype - text)),
                    is_foreign ? "a DOCTYPE may only name its DTD" : "a DOCTYPE is not allowed");
      return false;
    }
  return true;
}

/* What was valid when podsim was built is so still. */
static PodXmlTree *
read_known (const char *text)
{
  PodXmlTree *tree = pod_xml_tree_read (text);

  g_assert (tree != NULL); /* or the build would not have listed it */
  return tree;
}

static PodXmlTree *
read_tree (const char *file, const char *schema, bool is_foreign, GError **error)
{
  size_t n_bytes;
  size_t n_schema_bytes = 0;
  g_autofree char *text = pod_file_read (file, POD_FILE_LIMIT_BYTES, &n_bytes, error);
  g_autofree char *schema_text = NULL;

  if (text == NULL)
    return NULL;
  if (schema != NULL)
    {
      schema_text = pod_file_read (schema, POD_FILE_LIMIT_BYTES, &n_schema_bytes, error);
      if (schema_text == NULL)
        return NULL;
      if (pod_xml_is_known (pod_xml_key (text, n_bytes, schema_text, n_schema_bytes)))
        return read_known (text);
    }
  if (!check_text (file, text, n_bytes, is_foreign, error) || (schema != NULL && !check_text (schema, schema_text, n_schema_bytes, false, error)))
    return NULL;
  return pod_xml_libxml_read (&(PodXmlSource){ file, text, n_bytes, schema, schema_text, n_schema_bytes }, error);
}

static PodXml *
load (const char *file, const char *schema, bool is_foreign, GError **error)
{
  PodXmlTree *tree = read_tree (file, schema, is_foreign, error);
  PodXml *xml;

  if (tree == NULL)
    return NULL;
  xml = g_new (PodXml, 1);
  *xml = (PodXml){ .file = g_strdup (file), .tree = tree };
  return xml;
}

PodXml *
pod_xml_load (const char *file, const char *schema, GError **error)
{
  g_return_val_if_fail (file != NULL, NULL);

  return load (file, schema, false, error);
}

PodXml *
pod_xml_load_foreign (const char *file, GError **error)
{
  g_return_val_if_fail (file != NULL, NULL);

  return load (file, NULL, true, error);
}

void
pod_xml_free (PodXml *xml)
{
  if (xml == NULL)
    return;
  pod_xml_tree_free (xml->tree);
  g_free (xml->file);
  g_free (xml);
}

PodXmlNode *
pod_xml_root (const PodXml *xml)
{
  g_return_val_if_fail (xml != NULL, NULL);

  return &xml->tree->nodes[0];
}

/* @node or the first of its later siblings of that name. */
static PodXmlNode *
find_element (PodXmlNode *node, const char *name)
{
  for (; node != NULL; node = node->next)
    if (name == NULL || g_str_equal (node->name, name))
      return node;
  return NULL;
}

PodXmlNode *
pod_xml_child (PodXmlNode *node, const char *name)
{
  g_return_val_if_fail (node != NULL, NULL);

  return find_element (node->first, name);
}

PodXmlNode *
pod_xml_next (PodXmlNode *node, const char *name)
{
  g_return_val_if_fail (node != NULL, NULL);

  return find_element (node->next, name);
}

const char *
pod_xml_value (const PodXmlNode *node, const char *name)
{
  g_return_val_if_fail (node != NULL && name != NULL, NULL);

  for (unsigned i = 0; i < node->n_attributes; i++)
    if (!node->attributes[i].has_prefix && g_str_equal (node->attributes[i].name, name))
      return node->attributes[i].value;
  return NULL;
}

char *
pod_xml_attr (const PodXmlNode *node, const char *name)
{
  return g_strdup (pod_xml_value (node, name));
}

bool
pod_xml_error (const PodXml *xml, const PodXmlNode *node, GError **error, const char *format, ...)
{
  va_list arguments;

  g_return_val_if_fail (xml != NULL && node != NULL && format != NULL, false);

  va_start (arguments, format);
  g_autofree char *message = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s:%d: %s", xml->file,
               (int) node->line, message);
  return false;
}

/* The text of an attribute in *out_text, NULL when it is absent and need not be there. */
static bool
get_text (const PodXml *xml, const PodXmlNode *node, const char *name, bool is_required, const char **out_text, GError **error)
{
  *out_text = pod_xml_value (node, name);
  if (*out_text != NULL || !is_required)
    return true;
  return pod_xml_error (xml, node, error, "<%s> lacks the attribute %s", node->name,
                        name);
}

/* Puts "file:line: <element> name: " before what base/units said. */
static bool
add_place (const PodXml *xml, const PodXmlNode *node, const char *name, GError **error)
{
  g_prefix_error (error, "%s:%d: <%s> %s: ", xml->file, (int) node->line,
                  node->name, name);
  return false;
}

bool
pod_xml_get_quantity (const PodXml *xml, const PodXmlNode *node, const char *name, PodUnit unit,
                      bool is_required, double *out, GError **error)
{
  const char *text = NULL;

  g_return_val_if_fail (xml != NULL && node != NULL && name != NULL && out != NULL, false);

  if (!get_text (xml, node, name, is_required, &text, error))
    return false;
  if (text == NULL || pod_parse_quantity (text, unit, out, error))
    return true;
  return add_place (xml, node, name, error);
}

bool
pod_xml_get_whole (const PodXml *xml, const PodXmlNode *node, const char *name, PodUnit unit,
                   bool is_required, uint64_t *out, GError **error)
{
  const char *text = NULL;

  g_return_val_if_fail (xml != NULL && node != NULL && name != NULL && out != NULL, false);

  if (!get_text (xml, node, name, is_required, &text, error))
    return false;
  if (text == NULL || pod_parse_whole (text, unit, out, error))
    return true;
  return add_place (xml, node, name, error);
}

bool
pod_xml_get_bool (const PodXml *xml, const PodXmlNode *node, const char *name, bool *out, GError **error)
{
  g_return_val_if_fail (xml != NULL && node != NULL && name != NULL && out != NULL, false);

  const char *text = pod_xml_value (node, name);
  if (text == NULL)
    return true;
  bool is_true = g_str_equal (text, "true") || g_str_equal (text, "1");
  if (!is_true && !g_str_equal (text, "false") && !g_str_equal (text, "0"))
    return pod_xml_error (xml, node, error, "<%s> %s: expected true or false, got \"%s\"",
                          node->name, name, text);
  *out = is_true;
  return true;
}
