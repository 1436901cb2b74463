#include "base/json-tree.h"

#include <string.h>

struct JsonNode
{
  JsonNodeType type;
  JsonValueType value_type;
  union
  {
    JsonObject *object;
    JsonArray *array;
    int64_t integer;
    double real;
    bool boolean;
    char *string;
  };
};

typedef struct
{
  char *name;
  JsonNode *node;
} Member;

struct JsonObject
{
  gatomicrefcount n_refs;
  Member *members;
  guint n_members;
  guint n_allocated;
  GHashTable *index; /* (nullable) name -> place + 1, of objects with more than FEW members */
};

struct JsonArray
{
  gatomicrefcount n_refs;
  GPtrArray *elements; /* (element-type JsonNode) */
};

enum
{
  FEW = 16, /* so many names are compared faster than one is hashed */
};

/* ---- nodes ---- */

JsonNode *
json_node_alloc (void)
{
  JsonNode *node = g_new (JsonNode, 1);

  node->type = JSON_NODE_NULL;
  node->value_type = JSON_VALUE_NONE;
  return node;
}

static JsonNode *
set_type (JsonNode *node, JsonNodeType type, JsonValueType value_type)
{
  node->type = type;
  node->value_type = value_type;
  return node;
}

static JsonArray *
array_ref (JsonArray *array)
{
  g_atomic_ref_count_inc (&array->n_refs);
  return array;
}

JsonNode *
json_node_init_object (JsonNode *node, JsonObject *object)
{
  node->object = json_object_ref (object);
  return set_type (node, JSON_NODE_OBJECT, JSON_VALUE_NONE);
}

JsonNode *
json_node_init_array (JsonNode *node, JsonArray *array)
{
  node->array = array_ref (array);
  return set_type (node, JSON_NODE_ARRAY, JSON_VALUE_NONE);
}

JsonNode *
json_node_init_int (JsonNode *node, int64_t value)
{
  node->integer = value;
  return set_type (node, JSON_NODE_VALUE, JSON_VALUE_INT);
}

JsonNode *
json_node_init_double (JsonNode *node, double value)
{
  node->real = value;
  return set_type (node, JSON_NODE_VALUE, JSON_VALUE_DOUBLE);
}

JsonNode *
json_node_init_boolean (JsonNode *node, bool value)
{
  node->boolean = value;
  return set_type (node, JSON_NODE_VALUE, JSON_VALUE_BOOLEAN);
}

JsonNode *
json_node_init_string (JsonNode *node, const char *value)
{
  node->string = g_strdup (value);
  return set_type (node, JSON_NODE_VALUE, JSON_VALUE_STRING);
}

JsonNode *
json_node_init_null (JsonNode *node)
{
  return set_type (node, JSON_NODE_NULL, JSON_VALUE_NONE);
}

void
json_node_take_object (JsonNode *node, JsonObject *object)
{
  node->object = object;
  set_type (node, JSON_NODE_OBJECT, JSON_VALUE_NONE);
}

JsonNode *
json_node_copy (const JsonNode *node)
{
  JsonNode *copy = g_memdup2 (node, sizeof *node);

  if (node->type == JSON_NODE_OBJECT)
    json_object_ref (node->object);
  else if (node->type == JSON_NODE_ARRAY)
    array_ref (node->array);
  else if (node->value_type == JSON_VALUE_STRING)
    copy->string = g_strdup (node->string);
  return copy;
}

void
json_node_unref (JsonNode *node)
{
  if (node == NULL)
    return;
  if (node->type == JSON_NODE_OBJECT)
    json_object_unref (node->object);
  else if (node->type == JSON_NODE_ARRAY)
    json_array_unref (node->array);
  else if (node->value_type == JSON_VALUE_STRING)
    g_free (node->string);
  g_free (node);
}

JsonNodeType
json_node_get_node_type (const JsonNode *node)
{
  return node->type;
}

JsonValueType
json_node_get_value_type (const JsonNode *node)
{
  return node->value_type;
}

JsonObject *
json_node_get_object (const JsonNode *node)
{
  return node->type == JSON_NODE_OBJECT ? node->object : NULL;
}

JsonArray *
json_node_get_array (const JsonNode *node)
{
  return node->type == JSON_NODE_ARRAY ? node->array : NULL;
}

int64_t
json_node_get_int (const JsonNode *node)
{
  switch (node->value_type)
    {
    case JSON_VALUE_INT:
      return node->integer;
    case JSON_VALUE_DOUBLE:
      return (int64_t) node->real;
    case JSON_VALUE_BOOLEAN:
      return node->boolean;
    default:
      return 0;
    }
}

double
json_node_get_double (const JsonNode *node)
{
  return node->value_type == JSON_VALUE_DOUBLE ? node->real : (double) json_node_get_int (node);
}

bool
json_node_get_boolean (const JsonNode *node)
{
  return node->value_type == JSON_VALUE_BOOLEAN ? node->boolean : json_node_get_double (node) != 0;
}

const char *
json_node_get_string (const JsonNode *node)
{
  return node->value_type == JSON_VALUE_STRING ? node->string : NULL;
}

char *
json_node_dup_string (const JsonNode *node)
{
  return g_strdup (json_node_get_string (node));
}

/* ---- objects ---- */

JsonObject *
json_object_new (void)
{
  JsonObject *object = g_new0 (JsonObject, 1);

  g_atomic_ref_count_init (&object->n_refs);
  return object;
}

JsonObject *
json_object_ref (JsonObject *object)
{
  g_atomic_ref_count_inc (&object->n_refs);
  return object;
}

void
json_object_unref (JsonObject *object)
{
  if (object == NULL || !g_atomic_ref_count_dec (&object->n_refs))
    return;
  for (guint i = 0; i < object->n_members; i++)
    {
      g_free (object->members[i].name);
      json_node_unref (object->members[i].node);
    }
  g_clear_pointer (&object->index, g_hash_table_unref);
  g_free (object->members);
  g_free (object);
}

/* Returns: (nullable) */
static Member *
find (const JsonObject *object, const char *name)
{
  if (object->index != NULL)
    {
      const guint place = GPOINTER_TO_UINT (g_hash_table_lookup (object->index, name));

      return place > 0 ? &object->members[place - 1] : NULL;
    }
  for (guint i = 0; i < object->n_members; i++)
    if (strcmp (object->members[i].name, name) == 0)
      return &object->members[i];
  return NULL;
}

bool
json_object_has_member (const JsonObject *object, const char *name)
{
  return find (object, name) != NULL;
}

JsonNode *
json_object_get_member (const JsonObject *object, const char *name)
{
  const Member *member = find (object, name);

  return member != NULL ? member->node : NULL;
}

int64_t
json_object_get_int_member (const JsonObject *object, const char *name)
{
  const JsonNode *node = json_object_get_member (object, name);

  return node != NULL ? json_node_get_int (node) : 0;
}

double
json_object_get_double_member (const JsonObject *object, const char *name)
{
  const JsonNode *node = json_object_get_member (object, name);

  return node != NULL ? json_node_get_double (node) : 0;
}

bool
json_object_get_boolean_member (const JsonObject *object, const char *name)
{
  const JsonNode *node = json_object_get_member (object, name);

  return node != NULL && json_node_get_boolean (node);
}

bool
json_object_get_null_member (const JsonObject *object, const char *name)
{
  const JsonNode *node = json_object_get_member (object, name);

  return node != NULL && node->type == JSON_NODE_NULL;
}

const char *
json_object_get_string_member (const JsonObject *object, const char *name)
{
  const JsonNode *node = json_object_get_member (object, name);

  return node != NULL ? json_node_get_string (node) : NULL;
}

JsonObject *
json_object_get_object_member (const JsonObject *object, const char *name)
{
  const JsonNode *node = json_object_get_member (object, name);

  return node != NULL ? json_node_get_object (node) : NULL;
}

JsonArray *
json_object_get_array_member (const JsonObject *object, const char *name)
{
  const JsonNode *node = json_object_get_member (object, name);

  return node != NULL ? json_node_get_array (node) : NULL;
}

/* Places of all members by name. */
static void
make_index (JsonObject *object)
{
  object->index = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < object->n_members; i++)
    g_hash_table_insert (object->index, object->members[i].name, GUINT_TO_POINTER (i + 1));
}

void
json_object_set_member (JsonObject *object, const char *name, JsonNode *node)
{
  Member *member = find (object, name);

  if (member != NULL)
    {
      json_node_unref (member->node);
      member->node = node;
      return;
    }
  if (object->n_members == object->n_allocated)
    {
      object->n_allocated = MAX (2 * object->n_allocated, 4);
      object->members = g_renew (Member, object->members, object->n_allocated);
    }
  member = &object->members[object->n_members++];
  *member = (Member){ g_strdup (name), node };
  if (object->index != NULL)
    g_hash_table_insert (object->index, member->name, GUINT_TO_POINTER (object->n_members));
  else if (object->n_members > FEW)
    make_index (object);
}

void
json_object_set_int_member (JsonObject *object, const char *name, int64_t value)
{
  json_object_set_member (object, name, json_node_init_int (json_node_alloc (), value));
}

void
json_object_set_double_member (JsonObject *object, const char *name, double value)
{
  json_object_set_member (object, name, json_node_init_double (json_node_alloc (), value));
}

void
json_object_set_string_member (JsonObject *object, const char *name, const char *value)
{
  JsonNode *node = json_node_alloc ();

  json_object_set_member (object, name, value != NULL ? json_node_init_string (node, value) : node);
}

void
json_object_set_null_member (JsonObject *object, const char *name)
{
  json_object_set_member (object, name, json_node_alloc ());
}

static JsonNode *
node_of_object (JsonObject *object)
{
  JsonNode *node = json_node_alloc ();

  json_node_take_object (node, object);
  return node;
}

static JsonNode *
node_of_array (JsonArray *array)
{
  JsonNode *node = json_node_alloc ();

  node->array = array;
  return set_type (node, JSON_NODE_ARRAY, JSON_VALUE_NONE);
}

void
json_object_set_object_member (JsonObject *object, const char *name, JsonObject *value)
{
  json_object_set_member (object, name, node_of_object (value));
}

void
json_object_set_array_member (JsonObject *object, const char *name, JsonArray *value)
{
  json_object_set_member (object, name, node_of_array (value));
}

GList *
json_object_get_members (const JsonObject *object)
{
  GList *names = NULL;

  for (guint i = object->n_members; i-- > 0;)
    names = g_list_prepend (names, object->members[i].name);
  return names;
}

void
json_object_iter_init_ordered (JsonObjectIter *iter, const JsonObject *object)
{
  *iter = (JsonObjectIter){ .object = object };
}

bool
json_object_iter_next_ordered (JsonObjectIter *iter, const char **out_name, JsonNode **out_node)
{
  const Member *member;

  if (iter->next == iter->object->n_members)
    return false;
  member = &iter->object->members[iter->next++];
  if (out_name != NULL)
    *out_name = member->name;
  if (out_node != NULL)
    *out_node = member->node;
  return true;
}

/* ---- arrays ---- */

static void
free_node (gpointer node)
{
  json_node_unref (node);
}

JsonArray *
json_array_new (void)
{
  JsonArray *array = g_new (JsonArray, 1);

  g_atomic_ref_count_init (&array->n_refs);
  array->elements = g_ptr_array_new_with_free_func (free_node);
  return array;
}

void
json_array_unref (JsonArray *array)
{
  if (array == NULL || !g_atomic_ref_count_dec (&array->n_refs))
    return;
  g_ptr_array_unref (array->elements);
  g_free (array);
}

guint
json_array_get_length (const JsonArray *array)
{
  return array->elements->len;
}

JsonNode *
json_array_get_element (const JsonArray *array, guint index)
{
  g_return_val_if_fail (index < array->elements->len, NULL);

  return g_ptr_array_index (array->elements, index);
}

int64_t
json_array_get_int_element (const JsonArray *array, guint index)
{
  return json_node_get_int (json_array_get_element (array, index));
}

const char *
json_array_get_string_element (const JsonArray *array, guint index)
{
  return json_node_get_string (json_array_get_element (array, index));
}

JsonObject *
json_array_get_object_element (const JsonArray *array, guint index)
{
  return json_node_get_object (json_array_get_element (array, index));
}

void
json_array_add_element (JsonArray *array, JsonNode *node)
{
  g_ptr_array_add (array->elements, node);
}

void
json_array_add_int_element (JsonArray *array, int64_t value)
{
  json_array_add_element (array, json_node_init_int (json_node_alloc (), value));
}

void
json_array_add_double_element (JsonArray *array, double value)
{
  json_array_add_element (array, json_node_init_double (json_node_alloc (), value));
}

void
json_array_add_boolean_element (JsonArray *array, bool value)
{
  json_array_add_element (array, json_node_init_boolean (json_node_alloc (), value));
}

void
json_array_add_string_element (JsonArray *array, const char *value)
{
  json_array_add_element (array, json_node_init_string (json_node_alloc (), value));
}

void
json_array_add_object_element (JsonArray *array, JsonObject *value)
{
  json_array_add_element (array, node_of_object (value));
}

void
json_array_add_array_element (JsonArray *array, JsonArray *value)
{
  json_array_add_element (array, node_of_array (value));
}

void
json_array_remove_element (JsonArray *array, guint index)
{
  g_ptr_array_remove_index (array->elements, index);
}
