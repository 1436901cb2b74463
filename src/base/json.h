#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json-tree.h"

/* Reading JSON with errors that name file and line, and writing it reproducibly. The tree is in json-tree.h;
 * objects keep insertion order, which is the order of output. */

typedef struct
{
  char *file;      /* for messages */
  char *text;      /* whole file, to find the line of a key */
  JsonNode *root;  /* (nullable) */
} PodJson;

/* Reads file (gzip is recognised by magic, not by name). Refuses over 64 MiB, directories, NaN/Infinity
 * tokens, malformed text: POD_ERROR_PARSE "file:line: ...". Returns: (transfer full) (nullable) */
PodJson *pod_json_load (const char *file, GError **error);
/* Same from memory, @name stands for the file in messages. */
PodJson *pod_json_parse (const char *name, const char *text, gssize length, GError **error);
void pod_json_free (PodJson *json);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodJson, pod_json_free)

/* First line where "key" stands as a key (1 when absent): for errors about a value. */
unsigned pod_json_line_of (const PodJson *json, const char *key);

/* Typed getters on an object of this document. has: present and not null. int: must be a whole number
 * >= 0; error POD_ERROR_INVALID "file:line: key: what is wrong, what was got". */
bool pod_json_has (JsonObject *object, const char *key);
bool pod_json_get_uint (const PodJson *json, JsonObject *object, const char *key, uint64_t *out, GError **error);
bool pod_json_get_double (const PodJson *json, JsonObject *object, const char *key, double *out, GError **error);
bool pod_json_get_bool (const PodJson *json, JsonObject *object, const char *key, bool *out, GError **error);
/* (transfer none) */
bool pod_json_get_string (const PodJson *json, JsonObject *object, const char *key, const char **out, GError **error);

/* Serialises: two-space indents, keys in insertion order, shortest round-trip doubles, no NaN (null),
 * '\n' at the end. Returns: (transfer full) */
char *pod_json_to_text (JsonNode *root);
/* One line, no blanks. */
char *pod_json_to_line (JsonNode *root);
/* Appends text as a JSON string with quotes; control bytes as \u00XX, invalid UTF-8 becomes U+FFFD. */
void pod_json_append_string (GString *out, const char *text);

/* Builders for results: set a dotted path ("step.time_s"), making objects on the way. */
void pod_result_set_double (JsonObject *root, const char *path, double value);
void pod_result_set_int (JsonObject *root, const char *path, int64_t value);
void pod_result_set_bool (JsonObject *root, const char *path, bool value);
void pod_result_set_string (JsonObject *root, const char *path, const char *value);
/* The array at path, made when absent. (transfer none) */
JsonArray *pod_result_get_array (JsonObject *root, const char *path);
/* The value at path as a double; false when absent or no number (null included). */
bool pod_result_get_double (JsonObject *root, const char *path, double *out);
