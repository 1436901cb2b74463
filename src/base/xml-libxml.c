#include <dlfcn.h>

#include <libxml/parser.h>
#include <libxml/xmlschemas.h>
#include <libxml/xmlschemastypes.h>

#include "base/error.h"
#include "base/xml-private.h"

/* Reading by libxml2. Most runs read nothing but files that podsim came with, and starting it with the libraries that it needs in turn
 * takes longer than a small step's simulation: so it is loaded when a file needs it. */

#if LIBXML_VERSION >= 21400
#define LIBRARY_FILE "libxml2.so.16"
#else
#define LIBRARY_FILE "libxml2.so.2"
#endif

#define FUNCTIONS(_) \
  _ (xmlCtxtReadMemory) _ (xmlDocGetRootElement) _ (xmlFreeDoc) _ (xmlFreeParserCtxt) _ (xmlGetLineNo) _ (xmlGetNoNsProp) _ (xmlGetNsProp) \
  _ (xmlInitParser) _ (xmlNewParserCtxt) _ (xmlNodeGetContent) _ (xmlSchemaFree) _ (xmlSchemaFreeParserCtxt) _ (xmlSchemaFreeValidCtxt) \
  _ (xmlSchemaInitTypes) _ (xmlSchemaNewDocParserCtxt) _ (xmlSchemaNewValidCtxt) _ (xmlSchemaParse) _ (xmlSchemaSetParserStructuredErrors) \
  _ (xmlSchemaSetValidStructuredErrors) _ (xmlSchemaValidateDoc)

#define DECLARE(name) __typeof__ (&name) name;
#define FIND(name) is_whole = (*(void **) &library.name = dlsym (handle, #name)) != NULL && is_whole; /* the way POSIX gives for functions */

static struct
{
  FUNCTIONS (DECLARE)
  xmlFreeFunc *xmlFree;
  bool is_there;
} library;

/* libxml2 makes tables of its own at their first use, of schemas' types without a lock. */
static bool
open_library (const char *file, GError **error)
{
  static gsize once;

  if (g_once_init_enter (&once))
    {
      void *handle = dlopen (LIBRARY_FILE, RTLD_NOW | RTLD_LOCAL);
      bool is_whole = handle != NULL;

      if (is_whole)
        {
          FUNCTIONS (FIND)
          library.xmlFree = dlsym (handle, "xmlFree");
        }
      library.is_there = is_whole && library.xmlFree != NULL;
      if (library.is_there)
        {
          library.xmlInitParser ();
          library.xmlSchemaInitTypes ();
        }
      g_once_init_leave (&once, 1);
    }
  if (!library.is_there)
    g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "%s: only %s reads XML that podsim did not come with, and it is not there", file, LIBRARY_FILE);
  return library.is_there;
}

static void
free_document (xmlDoc *document)
{
  library.xmlFreeDoc (document);
}

static void
free_parser (xmlParserCtxt *parser)
{
  library.xmlFreeParserCtxt (parser);
}

static void
free_schema (xmlSchema *schema)
{
  library.xmlSchemaFree (schema);
}

static void
free_schema_parser (xmlSchemaParserCtxt *parser)
{
  library.xmlSchemaFreeParserCtxt (parser);
}

static void
free_validator (xmlSchemaValidCtxt *validator)
{
  library.xmlSchemaFreeValidCtxt (validator);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (xmlDoc, free_document)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (xmlParserCtxt, free_parser)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (xmlSchema, free_schema)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (xmlSchemaParserCtxt, free_schema_parser)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (xmlSchemaValidCtxt, free_validator)

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

/* Returns: (transfer full) (nullable) */
static xmlDocPtr
parse (const char *file, const char *text, size_t n_bytes, GError **error)
{
  g_auto (Complaint) complaint = { 0 };
  g_autoptr (xmlParserCtxt) parser = library.xmlNewParserCtxt ();
  g_autoptr (xmlDoc) doc = NULL;

  g_assert (parser != NULL);
  parser->_private = &complaint;
  parser->sax->serror = on_parser_error;
  /* An encoding given here overrules the one that the file declares. */
  doc = library.xmlCtxtReadMemory (parser, text, (int) n_bytes, file, "UTF-8", XML_PARSE_NONET | XML_PARSE_BIG_LINES);
  if (doc == NULL || complaint.message != NULL)
    {
      set_error_at (error, file, MAX (complaint.line, 1), complaint.message != NULL ? complaint.message : "no XML document");
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
validate (const char *file, xmlDocPtr doc, xmlSchemaPtr schema, GError **error)
{
  g_auto (Complaint) complaint = { 0 };
  g_autoptr (xmlSchemaValidCtxt) validator = library.xmlSchemaNewValidCtxt (schema);

  g_assert (validator != NULL);
  library.xmlSchemaSetValidStructuredErrors (validator, on_schema_error, &complaint);
  if (library.xmlSchemaValidateDoc (validator, doc) == 0)
    return true;
  set_error_at (error, file, MAX (complaint.line, 1), complaint.message != NULL ? complaint.message : "not valid by its schema");
  return false;
}

static bool
validate_by_file (const PodXmlSource *source, xmlDocPtr doc, GError **error)
{
  g_auto (Complaint) complaint = { 0 };
  g_autoptr (xmlDoc) schema_doc = parse (source->schema, source->schema_text, source->n_schema_bytes, error); /* outlives the schema */
  g_autoptr (xmlSchemaParserCtxt) parser = NULL;
  g_autoptr (xmlSchema) schema = NULL;

  if (schema_doc == NULL)
    return false;
  parser = library.xmlSchemaNewDocParserCtxt (schema_doc);
  g_assert (parser != NULL);
  library.xmlSchemaSetParserStructuredErrors (parser, on_schema_error, &complaint);
  schema = library.xmlSchemaParse (parser);
  if (schema == NULL)
    {
      set_error_at (error, source->schema, MAX (complaint.line, 1), complaint.message != NULL ? complaint.message : "not a schema");
      return false;
    }
  return validate (source->file, doc, schema, error);
}

/* ---- the tree as ours ---- */

static const char *
keep (PodXmlTree *tree, xmlChar *text)
{
  const char *kept = g_string_chunk_insert (tree->strings, text != NULL ? (const char *) text : "");

  if (text != NULL)
    (*library.xmlFree) (text);
  return kept;
}

static void
copy_attributes (PodXmlTree *tree, xmlNodePtr from, PodXmlNode *to)
{
  to->attributes = &tree->attributes[tree->n_attributes];
  for (const xmlAttr *attribute = from->properties; attribute != NULL; attribute = attribute->next)
    {
      const bool has_prefix = attribute->ns != NULL;
      xmlChar *value = has_prefix ? library.xmlGetNsProp (from, attribute->name, attribute->ns->href) : library.xmlGetNoNsProp (from, attribute->name);

      tree->attributes[tree->n_attributes++] = (PodXmlAttribute){ .name = g_string_chunk_insert_const (tree->strings, (const char *) attribute->name),
                                                                  .value = keep (tree, value),
                                                                  .has_prefix = has_prefix };
      to->n_attributes++;
    }
}

static xmlNodePtr
find_element (xmlNodePtr node)
{
  while (node != NULL && node->type != XML_ELEMENT_NODE)
    node = node->next;
  return node;
}

static PodXmlNode *
copy_node (PodXmlTree *tree, xmlNodePtr from)
{
  PodXmlNode *to = &tree->nodes[tree->n_nodes++];

  *to = (PodXmlNode){ .name = g_string_chunk_insert_const (tree->strings, (const char *) from->name), .line = (unsigned) MAX (library.xmlGetLineNo (from), 1) };
  copy_attributes (tree, from, to);
  if (find_element (from->children) == NULL)
    to->text = keep (tree, library.xmlNodeGetContent (from));
  return to;
}

/* Documents are as deep as libxml2 lets them be: no recursion. */
static void
copy_all (PodXmlTree *tree, xmlNodePtr root)
{
  PodXmlNode *node = copy_node (tree, root);
  g_autoptr (GPtrArray) open = g_ptr_array_new (); /* (element-type PodXmlNode) whose elements are copied */

  for (xmlNodePtr from = root; from != NULL;)
    {
      xmlNodePtr next = find_element (from->children);

      if (next != NULL)
        {
          g_ptr_array_add (open, node);
          node = node->first = copy_node (tree, next);
          from = next;
          continue;
        }
      while (from != root && (next = find_element (from->next)) == NULL)
        {
          from = from->parent;
          node = g_ptr_array_steal_index (open, open->len - 1);
        }
      if (from == root)
        return;
      node = node->next = copy_node (tree, next);
      from = next;
    }
}

PodXmlTree *
pod_xml_libxml_read (const PodXmlSource *source, GError **error)
{
  g_autoptr (xmlDoc) doc = NULL;
  PodXmlTree *tree;

  if (!open_library (source->file, error))
    return NULL;
  doc = parse (source->file, source->text, source->n_bytes, error);
  if (doc == NULL || (source->schema != NULL && !validate_by_file (source, doc, error)))
    return NULL;
  tree = pod_xml_tree_new (source->text);
  copy_all (tree, library.xmlDocGetRootElement (doc));
  return tree;
}
