#pragma once

#include "base/xml.h"

/* The elements of one document. */
struct PodXmlTree
{
  GStringChunk *strings;       /* (owned) */
  PodXmlNode *nodes;           /* (owned) the first is the root */
  PodXmlAttribute *attributes; /* (owned) */
  size_t n_nodes;
  size_t n_attributes;
};

/* With room for all elements and attributes that @text can have. Returns: (transfer full) empty */
PodXmlTree *pod_xml_tree_new (const char *text);
void pod_xml_tree_free (PodXmlTree *tree);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodXmlTree, pod_xml_tree_free)

/* Reads a document that is known to be valid, by GLib's parser of simple XML, if it has no namespaces. Returns: (transfer full) (nullable) NULL for
 * all else. O(length). */
PodXmlTree *pod_xml_tree_read (const char *text);

/* What libxml2 reads in @text of @n_bytes, valid by @schema_text (nullable). @file and @schema stand in
 * messages. Errors: PARSE "file:line: ...", UNSUPPORTED where there is no libxml2. Returns: (transfer full) (nullable) */
typedef struct
{
  const char *file;
  const char *text;
  size_t n_bytes;
  const char *schema;      /* (nullable) its file */
  const char *schema_text; /* (nullable) */
  size_t n_schema_bytes;
} PodXmlSource;

PodXmlTree *pod_xml_libxml_read (const PodXmlSource *source, GError **error);
