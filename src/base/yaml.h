#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "base/units.h"

/* Reading YAML as a tree that knows its lines. One document; no anchors, aliases or tags (an alias
 * could blow up or loop), no key twice in a mapping, no NaN. Every error is "file:line: what is
 * wrong" (POD_ERROR_PARSE for what is no such YAML, POD_ERROR_INVALID for a value). */

typedef enum
{
  POD_YAML_SCALAR,
  POD_YAML_SEQUENCE,
  POD_YAML_MAPPING,
} PodYamlKind;

typedef struct PodYamlNode
{
  PodYamlKind kind;
  unsigned line;
  bool is_quoted;   /* a scalar in quotes or a block: never null, true or a number */
  char *text;       /* scalars */
  GPtrArray *items; /* (element-type PodYamlNode) of sequences; values of mappings */
  GPtrArray *keys;  /* (element-type PodYamlNode) scalars; of mappings, one for each item */
} PodYamlNode;

typedef struct
{
  char *file;
  PodYamlNode *root; /* (nullable) NULL when the document is empty */
} PodYaml;

/* Refuses over 64 MiB, over 64 levels, directories, missing files. Returns: (transfer full)
 * (nullable) */
PodYaml *pod_yaml_load (const char *file, GError **error);
/* The same from memory; @name stands for the file in messages. O(length). */
PodYaml *pod_yaml_parse (const char *name, const char *text, size_t length, GError **error);
void pod_yaml_free (PodYaml *yaml);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodYaml, pod_yaml_free)

/* The value of a key; NULL when it is absent or @mapping is none. (transfer none) (nullable) */
const PodYamlNode *pod_yaml_get (const PodYamlNode *mapping, const char *key);
/* True for ~, null, an empty value. */
bool pod_yaml_is_null (const PodYamlNode *node);
/* The number of items of a sequence or mapping, 0 for a scalar. */
unsigned pod_yaml_length (const PodYamlNode *node);
const PodYamlNode *pod_yaml_item (const PodYamlNode *node, unsigned index);

/* A scalar as a plain number (finite), a whole number from 0 on, or true/false. */
bool pod_yaml_double (const PodYaml *yaml, const PodYamlNode *node, double *out, GError **error);
bool pod_yaml_uint (const PodYaml *yaml, const PodYamlNode *node, uint64_t *out, GError **error);
bool pod_yaml_bool (const PodYaml *yaml, const PodYamlNode *node, bool *out, GError **error);
/* The text of a scalar; NULL with an error for anything else. (transfer none) (nullable) */
const char *pod_yaml_text (const PodYaml *yaml, const PodYamlNode *node, GError **error);

/* Sets error "file:line: message" with POD_ERROR_INVALID; returns false. @node NULL: line 1. */
bool pod_yaml_error (const PodYaml *yaml, const PodYamlNode *node, GError **error,
                     const char *format, ...) G_GNUC_PRINTF (4, 5);
