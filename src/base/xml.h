#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "base/units.h"

/* Reading our XML: refuses a DOCTYPE first, then parses (NONET, no entities, no HUGE), then validates
 * against an XSD. Every error is "file:line: what is wrong, what was got" (POD_ERROR_PARSE).
 *
 * Files that were found valid when podsim was built (xml-known.h) are read by GLib's parser of
 * simple XML (xml-tree.c), which is loaded anyway; all others by libxml2 (xml-libxml.c), which is loaded then. */

typedef struct
{
  const char *name;  /* without its prefix */
  const char *value;
  bool has_prefix;
} PodXmlAttribute;

typedef struct PodXmlNode PodXmlNode;

/* An element. */
struct PodXmlNode
{
  const char *name;
  const PodXmlAttribute *attributes;
  unsigned n_attributes;
  unsigned line;     /* on which its start tag ends */
  const char *text;  /* of an element without elements, "" where it is empty; NULL with elements */
  PodXmlNode *first; /* (nullable) element in it */
  PodXmlNode *next;  /* (nullable) element after it */
};

typedef struct PodXmlTree PodXmlTree;

typedef struct
{
  char *file;
  PodXmlTree *tree; /* (owned) */
} PodXml;

/* @schema: path of the XSD, (nullable) for none. Refuses files over 64 MiB, directories, missing files,
 * FIFOs. Returns: (transfer full) (nullable) */
PodXml *pod_xml_load (const char *file, const char *schema, GError **error);
/* The same without a schema, for the formats of others: a DOCTYPE that only names a DTD is passed over
 * (nothing reads the DTD); one with declarations of its own is refused. */
PodXml *pod_xml_load_foreign (const char *file, GError **error);
void pod_xml_free (PodXml *xml);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodXml, pod_xml_free)

PodXmlNode *pod_xml_root (const PodXml *xml);
/* First / next child element, of that name when @name is not NULL. */
PodXmlNode *pod_xml_child (PodXmlNode *node, const char *name);
PodXmlNode *pod_xml_next (PodXmlNode *node, const char *name);
/* Attribute text, NULL when absent, of the document. Returns: (transfer none) (nullable) */
const char *pod_xml_value (const PodXmlNode *node, const char *name);
/* A copy of it. Returns: (transfer full) (nullable) */
char *pod_xml_attr (const PodXmlNode *node, const char *name);

/* An attribute as a quantity. Absent: leaves *out alone and returns true when !is_required, else error.
 * Errors carry file:line of the element. */
bool pod_xml_get_quantity (const PodXml *xml, const PodXmlNode *node, const char *name, PodUnit unit, bool is_required,
                           double *out, GError **error);
bool pod_xml_get_whole (const PodXml *xml, const PodXmlNode *node, const char *name, PodUnit unit, bool is_required,
                        uint64_t *out, GError **error);
bool pod_xml_get_bool (const PodXml *xml, const PodXmlNode *node, const char *name, bool *out, GError **error);
/* Sets error "file:line: message" with POD_ERROR_INVALID; returns false. */
bool pod_xml_error (const PodXml *xml, const PodXmlNode *node, GError **error, const char *format, ...) G_GNUC_PRINTF (4, 5);
