#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file-read.h"
#include "base/xml-known.h"
#include "base/xml-private.h"

/* Part of the build: validates the XML files beside each schema and writes the table of base/xml-known.h, in C.
 *
 *   known-xml FOLDER/SCHEMA.xsd...
 *
 * Only files that are valid, and of which base/xml-tree.c reads the very tree that libxml2 does. */

/* This program knows none: each file is validated. */
const uint64_t pod_known_xml[] = { 0 };
const size_t pod_n_known_xml = 0;

static bool
is_same_node (const PodXmlNode *a, const PodXmlNode *b)
{
  bool is_same = strcmp (a->name, b->name) == 0 && a->line == b->line && g_strcmp0 (a->text, b->text) == 0 && a->n_attributes == b->n_attributes
                 && (a->first != NULL) == (b->first != NULL) && (a->next != NULL) == (b->next != NULL);

  for (unsigned i = 0; is_same && i < a->n_attributes; i++)
    is_same = !b->attributes[i].has_prefix && strcmp (a->attributes[i].name, b->attributes[i].name) == 0
              && strcmp (a->attributes[i].value, b->attributes[i].value) == 0;
  return is_same;
}

/* Both hold their elements in the document's order. */
static bool
is_same_tree (const PodXmlTree *a, const PodXmlTree *b)
{
  if (a->n_nodes != b->n_nodes)
    return false;
  for (size_t i = 0; i < a->n_nodes; i++)
    if (!is_same_node (&a->nodes[i], &b->nodes[i]))
      return false;
  return true;
}

static bool
find_key (const char *file, const char *schema, uint64_t *out)
{
  size_t n_bytes;
  size_t n_schema_bytes;
  g_autofree char *text = pod_file_read (file, POD_FILE_LIMIT_BYTES, &n_bytes, NULL);
  g_autofree char *schema_text = pod_file_read (schema, POD_FILE_LIMIT_BYTES, &n_schema_bytes, NULL);
  g_autoptr (PodXml) xml = pod_xml_load (file, schema, NULL);
  g_autoptr (PodXmlTree) tree = NULL;

  if (xml == NULL)
    return false;
  *out = pod_xml_key (text, n_bytes, schema_text, n_schema_bytes);
  tree = pod_xml_tree_read (text);
  return tree != NULL && is_same_tree (tree, xml->tree);
}

static gint
compare_keys (gconstpointer a, gconstpointer b)
{
  const uint64_t x = *(const uint64_t *) a;
  const uint64_t y = *(const uint64_t *) b;

  return (x > y) - (x < y);
}

static void
list_folder (const char *schema, GArray *keys)
{
  g_autofree char *folder = g_path_get_dirname (schema);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;
  uint64_t key;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *file = g_build_filename (folder, name, NULL);

      if (g_str_has_suffix (name, ".xml") && find_key (file, schema, &key))
        g_array_append_val (keys, key);
    }
}

int
main (int argc, char **argv)
{
  g_autoptr (GArray) keys = g_array_new (FALSE, FALSE, sizeof (uint64_t));

  for (int i = 1; i < argc; i++)
    list_folder (argv[i], keys);
  g_array_sort (keys, compare_keys);
  printf ("#include \"base/xml-known.h\"\n\nconst uint64_t pod_known_xml[] = {\n");
  for (guint i = 0; i < keys->len; i++)
    printf ("  0x%016" G_GINT64_MODIFIER "x,\n", g_array_index (keys, uint64_t, i));
  printf ("  0 };\nconst size_t pod_n_known_xml = %u;\n", keys->len);
  return EXIT_SUCCESS;
}
