#include "base/xml.h"

#include <string.h>

#include <libxml/parser.h>
#include <libxml/xmlschemas.h>
#include <libxml/xmlschemastypes.h>

#include "base/error.h"
#include "base/file-read.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC (xmlDoc, xmlFreeDoc)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (xmlParserCtxt, xmlFreeParserCtxt)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (xmlSchema, xmlSchemaFree)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (xmlSchemaParserCtxt, xmlSchemaFreeParserCtxt)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (xmlSchemaValidCtxt, xmlSchemaFreeValidCtxt)

#if LIBXML_VERSION >= 21200
typedef const xmlError *ErrorRecord;
#else
typedef xmlErrorPtr ErrorRecord;
#endif

/* The first complaint of one parse or validation: later ones are mostly its echo. */
typedef struct
{
  unsigned line;
  char *message; /* (nullable) */
} Complaint;

static void
complaint_clear (Complaint *complaint)
{
  g_clear_pointer (&complaint->message, g_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Complaint, complaint_clear)

static void
note_complaint (Complaint *complaint, ErrorRecord record)
{
  if (complaint->message != NULL || record->level < XML_ERR_ERROR)
    return;
  const char *message = record->message != NULL ? record->message : "malformed";
  g_autofree char *line = g_strstrip (g_utf8_make_valid (message, -1));
  if (g_str_has_suffix (line, "."))
    line[strlen (line) - 1] = '\0';
  g_strdelimit (line, "\n", ' ');
  complaint->line = record->line > 0 ? (unsigned) record->line : 1;
  complaint->message = g_steal_pointer (&line);
}

static void
on_parser_error (void *data, ErrorRecord record)
{
  xmlParserCtxtPtr parser = data; /* libxml2 passes the parser here; _private is ours */

  note_complaint (parser->_private, record);
}

static void
on_schema_error (void *data, ErrorRecord record)
{
  note_complaint (data, record);
}

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

/* libxml2 makes tables of its own at their first use, of schemas' types without a lock. */
static void
prepare_library (void)
{
  static gsize once;

  if (!g_once_init_enter (&once))
    return;
  xmlInitParser ();
  xmlSchemaInitTypes ();
  g_once_init_leave (&once, 1);
}

/* Returns: (transfer full) (nullable) */
static xmlDocPtr
read_document (const char *file, bool is_foreign, GError **error)
{
  size_t n_bytes = 0;
  g_autofree char *text = pod_file_read (file, POD_FILE_LIMIT_BYTES, &n_bytes, error);

  if (text == NULL || !check_text (file, text, n_bytes, is_foreign, error))
    return NULL;
  prepare_library ();
  g_auto (Complaint) complaint = { 0 };
  g_autoptr (xmlParserCtxt) parser = xmlNewParserCtxt ();
  g_assert (parser != NULL);
  parser->_private = &complaint;
  parser->sax->serror = on_parser_error;
  /* An encoding given here overrules the one that the file declares. */
  g_autoptr (xmlDoc) doc = xmlCtxtReadMemory (parser, text, (int) n_bytes, file, "UTF-8",
                                              XML_PARSE_NONET | XML_PARSE_BIG_LINES);
  if (doc == NULL || complaint.message != NULL)
    {
      set_error_at (error, file, MAX (complaint.line, 1),
                    complaint.message != NULL ? complaint.message : "no XML document");
      return NULL;
    }
  if (doc->intSubset != NULL)
    {
      set_error_at (error, file, 1, "a DOCTYPE is not allowed");
      return NULL;
    }
  return g_steal_pointer (&doc);
}

static bool
validate (const PodXml *xml, xmlSchemaPtr schema, GError **error)
{
  g_auto (Complaint) complaint = { 0 };
  g_autoptr (xmlSchemaValidCtxt) validator = xmlSchemaNewValidCtxt (schema);

  g_assert (validator != NULL);
  xmlSchemaSetValidStructuredErrors (validator, on_schema_error, &complaint);
  if (xmlSchemaValidateDoc (validator, xml->doc) == 0)
    return true;
  set_error_at (error, xml->file, MAX (complaint.line, 1),
                complaint.message != NULL ? complaint.message : "not valid by its schema");
  return false;
}

static bool
validate_by_file (const PodXml *xml, const char *schema_file, GError **error)
{
  g_auto (Complaint) complaint = { 0 };
  g_autoptr (xmlDoc) schema_doc = read_document (schema_file, false, error); /* outlives the schema */

  if (schema_doc == NULL)
    return false;
  g_autoptr (xmlSchemaParserCtxt) parser = xmlSchemaNewDocParserCtxt (schema_doc);
  g_assert (parser != NULL);
  xmlSchemaSetParserStructuredErrors (parser, on_schema_error, &complaint);
  g_autoptr (xmlSchema) schema = xmlSchemaParse (parser);
  if (schema == NULL)
    {
      set_error_at (error, schema_file, MAX (complaint.line, 1),
                    complaint.message != NULL ? complaint.message : "not a schema");
      return false;
    }
  return validate (xml, schema, error);
}

PodXml *
pod_xml_load (const char *file, const char *schema, GError **error)
{
  g_return_val_if_fail (file != NULL, NULL);

  g_autoptr (PodXml) xml = g_new0 (PodXml, 1);
  xml->file = g_strdup (file);
  xml->doc = read_document (file, false, error);
  if (xml->doc == NULL)
    return NULL;
  if (schema != NULL && !validate_by_file (xml, schema, error))
    return NULL;
  return g_steal_pointer (&xml);
}

PodXml *
pod_xml_load_foreign (const char *file, GError **error)
{
  g_return_val_if_fail (file != NULL, NULL);

  g_autoptr (PodXml) xml = g_new0 (PodXml, 1);
  xml->file = g_strdup (file);
  xml->doc = read_document (file, true, error);
  return xml->doc != NULL ? g_steal_pointer (&xml) : NULL;
}

void
pod_xml_free (PodXml *xml)
{
  if (xml == NULL)
    return;
  g_clear_pointer (&xml->doc, xmlFreeDoc);
  g_free (xml->file);
  g_free (xml);
}

xmlNodePtr
pod_xml_root (const PodXml *xml)
{
  g_return_val_if_fail (xml != NULL, NULL);

  return xmlDocGetRootElement (xml->doc);
}

/* @node or the first of its later siblings that is an element of that name. */
static xmlNodePtr
find_element (xmlNodePtr node, const char *name)
{
  for (; node != NULL; node = node->next)
    if (node->type == XML_ELEMENT_NODE
        && (name == NULL || g_str_equal ((const char *) node->name, name)))
      return node;
  return NULL;
}

xmlNodePtr
pod_xml_child (xmlNodePtr node, const char *name)
{
  g_return_val_if_fail (node != NULL, NULL);

  return find_element (node->children, name);
}

xmlNodePtr
pod_xml_next (xmlNodePtr node, const char *name)
{
  g_return_val_if_fail (node != NULL, NULL);

  return find_element (node->next, name);
}

char *
pod_xml_attr (xmlNodePtr node, const char *name)
{
  g_return_val_if_fail (node != NULL && name != NULL, NULL);

  xmlChar *value = xmlGetNoNsProp (node, (const xmlChar *) name);
  char *copy = g_strdup ((const char *) value);
  if (value != NULL)
    xmlFree (value);
  return copy;
}

bool
pod_xml_error (const PodXml *xml, xmlNodePtr node, GError **error, const char *format, ...)
{
  va_list arguments;

  g_return_val_if_fail (xml != NULL && node != NULL && format != NULL, false);

  va_start (arguments, format);
  g_autofree char *message = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s:%d: %s", xml->file,
               (int) MAX (xmlGetLineNo (node), 1), message);
  return false;
}

/* The text of an attribute in *out_text, NULL when it is absent and need not be there. */
static bool
get_text (const PodXml *xml, xmlNodePtr node, const char *name, bool is_required, char **out_text,
          GError **error)
{
  *out_text = pod_xml_attr (node, name);
  if (*out_text != NULL || !is_required)
    return true;
  return pod_xml_error (xml, node, error, "<%s> lacks the attribute %s", (const char *) node->name,
                        name);
}

/* Puts "file:line: <element> name: " before what base/units said. */
static bool
add_place (const PodXml *xml, xmlNodePtr node, const char *name, GError **error)
{
  g_prefix_error (error, "%s:%d: <%s> %s: ", xml->file, (int) MAX (xmlGetLineNo (node), 1),
                  (const char *) node->name, name);
  return false;
}

bool
pod_xml_get_quantity (const PodXml *xml, xmlNodePtr node, const char *name, PodUnit unit,
                      bool is_required, double *out, GError **error)
{
  g_autofree char *text = NULL;

  g_return_val_if_fail (xml != NULL && node != NULL && name != NULL && out != NULL, false);

  if (!get_text (xml, node, name, is_required, &text, error))
    return false;
  if (text == NULL || pod_parse_quantity (text, unit, out, error))
    return true;
  return add_place (xml, node, name, error);
}

bool
pod_xml_get_whole (const PodXml *xml, xmlNodePtr node, const char *name, PodUnit unit,
                   bool is_required, uint64_t *out, GError **error)
{
  g_autofree char *text = NULL;

  g_return_val_if_fail (xml != NULL && node != NULL && name != NULL && out != NULL, false);

  if (!get_text (xml, node, name, is_required, &text, error))
    return false;
  if (text == NULL || pod_parse_whole (text, unit, out, error))
    return true;
  return add_place (xml, node, name, error);
}

bool
pod_xml_get_bool (const PodXml *xml, xmlNodePtr node, const char *name, bool *out, GError **error)
{
  g_return_val_if_fail (xml != NULL && node != NULL && name != NULL && out != NULL, false);

  g_autofree char *text = pod_xml_attr (node, name);
  if (text == NULL)
    return true;
  bool is_true = g_str_equal (text, "true") || g_str_equal (text, "1");
  if (!is_true && !g_str_equal (text, "false") && !g_str_equal (text, "0"))
    return pod_xml_error (xml, node, error, "<%s> %s: expected true or false, got \"%s\"",
                          (const char *) node->name, name, text);
  *out = is_true;
  return true;
}
