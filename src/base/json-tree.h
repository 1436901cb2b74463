#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* What JSON holds: values, objects whose members keep the order in which they were set, arrays. The functions are those of json-glib's
 * that we need, and mean what they mean there; it came with GObject and GIO, whose start took as long as a small step. */

typedef struct JsonNode JsonNode;
typedef struct JsonObject JsonObject;
typedef struct JsonArray JsonArray;

typedef enum
{
  JSON_NODE_OBJECT,
  JSON_NODE_ARRAY,
  JSON_NODE_VALUE,
  JSON_NODE_NULL,
} JsonNodeType;

typedef enum
{
  JSON_VALUE_NONE, /* of null, objects and arrays */
  JSON_VALUE_INT,
  JSON_VALUE_DOUBLE,
  JSON_VALUE_BOOLEAN,
  JSON_VALUE_STRING,
} JsonValueType;

/* A node is allocated, then initialised once. Returns: @node; objects and arrays are referenced, strings copied. */
JsonNode *json_node_alloc (void);
JsonNode *json_node_init_object (JsonNode *node, JsonObject *object);
JsonNode *json_node_init_array (JsonNode *node, JsonArray *array);
JsonNode *json_node_init_int (JsonNode *node, int64_t value);
JsonNode *json_node_init_double (JsonNode *node, double value);
JsonNode *json_node_init_boolean (JsonNode *node, bool value);
JsonNode *json_node_init_string (JsonNode *node, const char *value);
JsonNode *json_node_init_null (JsonNode *node);
/* @object: (transfer full) */
void json_node_take_object (JsonNode *node, JsonObject *object);
/* Objects and arrays are shared with the copy. Returns: (transfer full) */
JsonNode *json_node_copy (const JsonNode *node);
void json_node_unref (JsonNode *node);

JsonNodeType json_node_get_node_type (const JsonNode *node);
JsonValueType json_node_get_value_type (const JsonNode *node);
#define JSON_NODE_HOLDS_OBJECT(node) (json_node_get_node_type (node) == JSON_NODE_OBJECT)
#define JSON_NODE_HOLDS_ARRAY(node)  (json_node_get_node_type (node) == JSON_NODE_ARRAY)
#define JSON_NODE_HOLDS_VALUE(node)  (json_node_get_node_type (node) == JSON_NODE_VALUE)
#define JSON_NODE_HOLDS_NULL(node)   (json_node_get_node_type (node) == JSON_NODE_NULL)
/* (transfer none); NULL, 0 or false of a node of another type, but that numbers become each other */
JsonObject *json_node_get_object (const JsonNode *node);
JsonArray *json_node_get_array (const JsonNode *node);
int64_t json_node_get_int (const JsonNode *node);
double json_node_get_double (const JsonNode *node);
bool json_node_get_boolean (const JsonNode *node);
const char *json_node_get_string (const JsonNode *node);
char *json_node_dup_string (const JsonNode *node);

JsonObject *json_object_new (void);
JsonObject *json_object_ref (JsonObject *object);
void json_object_unref (JsonObject *object);
bool json_object_has_member (const JsonObject *object, const char *name);
/* (transfer none) (nullable). O(1). */
JsonNode *json_object_get_member (const JsonObject *object, const char *name);
int64_t json_object_get_int_member (const JsonObject *object, const char *name);
double json_object_get_double_member (const JsonObject *object, const char *name);
bool json_object_get_boolean_member (const JsonObject *object, const char *name);
bool json_object_get_null_member (const JsonObject *object, const char *name);
const char *json_object_get_string_member (const JsonObject *object, const char *name);
JsonObject *json_object_get_object_member (const JsonObject *object, const char *name);
JsonArray *json_object_get_array_member (const JsonObject *object, const char *name);
/* What a member is set to: (transfer full). One that is there is replaced, in its place. */
void json_object_set_member (JsonObject *object, const char *name, JsonNode *node);
void json_object_set_int_member (JsonObject *object, const char *name, int64_t value);
void json_object_set_double_member (JsonObject *object, const char *name, double value);
void json_object_set_string_member (JsonObject *object, const char *name, const char *value); /* copied; NULL: null */
void json_object_set_null_member (JsonObject *object, const char *name);
void json_object_set_object_member (JsonObject *object, const char *name, JsonObject *value);
void json_object_set_array_member (JsonObject *object, const char *name, JsonArray *value);
/* Returns: (transfer container) (element-type utf8) names in order */
GList *json_object_get_members (const JsonObject *object);

typedef struct
{
  const JsonObject *object;
  guint next;
} JsonObjectIter;

void json_object_iter_init_ordered (JsonObjectIter *iter, const JsonObject *object);
bool json_object_iter_next_ordered (JsonObjectIter *iter, const char **out_name, JsonNode **out_node);

JsonArray *json_array_new (void);
void json_array_unref (JsonArray *array);
guint json_array_get_length (const JsonArray *array);
/* (transfer none) */
JsonNode *json_array_get_element (const JsonArray *array, guint index);
int64_t json_array_get_int_element (const JsonArray *array, guint index);
const char *json_array_get_string_element (const JsonArray *array, guint index);
JsonObject *json_array_get_object_element (const JsonArray *array, guint index);
/* What is added: (transfer full) */
void json_array_add_element (JsonArray *array, JsonNode *node);
void json_array_add_int_element (JsonArray *array, int64_t value);
void json_array_add_double_element (JsonArray *array, double value);
void json_array_add_boolean_element (JsonArray *array, bool value);
void json_array_add_string_element (JsonArray *array, const char *value); /* copied */
void json_array_add_object_element (JsonArray *array, JsonObject *value);
void json_array_add_array_element (JsonArray *array, JsonArray *value);
void json_array_remove_element (JsonArray *array, guint index);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (JsonNode, json_node_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (JsonObject, json_object_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (JsonArray, json_array_unref)
