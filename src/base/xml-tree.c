#include <string.h>

#include "base/xml-private.h"

/* What a document holds, and the reader of documents that are known to be sound. */

enum
{
  MAX_DEPTH = 32
};

typedef struct
{
  PodXmlTree *tree;
  GString *text;                 /* of the innermost element so far */
  unsigned depth;
  PodXmlNode *open[MAX_DEPTH];   /* elements that have not ended */
  PodXmlNode **place[MAX_DEPTH]; /* where the next element in each belongs */
} Reader;

static size_t
count (const char *text, char what)
{
  size_t n = 0;

  for (const char *at = strchr (text, what); at != NULL; at = strchr (at + 1, what))
    n++;
  return n;
}

PodXmlTree *
pod_xml_tree_new (const char *text)
{
  PodXmlTree *tree = g_new0 (PodXmlTree, 1);

  tree->nodes = g_new (PodXmlNode, count (text, '<') + 1);
  tree->attributes = g_new (PodXmlAttribute, count (text, '=') + 1);
  tree->strings = g_string_chunk_new (4096);
  return tree;
}

void
pod_xml_tree_free (PodXmlTree *tree)
{
  if (tree == NULL)
    return;
  g_string_chunk_free (tree->strings);
  g_free (tree->nodes);
  g_free (tree->attributes);
  g_free (tree);
}

/* Blanks in a value count as spaces (XML 1.0, 3.3.3). */
static const char *
keep_value (PodXmlTree *tree, const char *value)
{
  return g_strdelimit (g_string_chunk_insert (tree->strings, value), "\t\n\r", ' ');
}

static void
read_start (GMarkupParseContext *context, const char *name, const char **names, const char **values, void *data, GError **error)
{
  Reader *reader = data;
  PodXmlTree *tree = reader->tree;
  PodXmlNode *node = &tree->nodes[tree->n_nodes++];
  int line;
  int character;

  g_markup_parse_context_get_position (context, &line, &character);
  line -= character == 1; /* it stands behind the character that comes after the tag */
  *node = (PodXmlNode){ .name = g_string_chunk_insert_const (tree->strings, name), .attributes = &tree->attributes[tree->n_attributes], .line = (unsigned) line };
  for (unsigned i = 0; names[i] != NULL; i++)
    {
      if (strchr (names[i], ':') != NULL || strcmp (names[i], "xmlns") == 0)
        g_set_error_literal (error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT, "a namespace");
      tree->attributes[tree->n_attributes++] = (PodXmlAttribute){ .name = g_string_chunk_insert_const (tree->strings, names[i]), .value = keep_value (tree, values[i]) };
      node->n_attributes++;
    }
  *reader->place[reader->depth] = node;
  reader->place[reader->depth] = &node->next;
  reader->open[reader->depth++] = node;
  if (reader->depth == MAX_DEPTH || strchr (name, ':') != NULL)
    {
      g_clear_error (error);
      g_set_error_literal (error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT, "elements too deep, or of a namespace");
      return;
    }
  reader->place[reader->depth] = &node->first;
  g_string_set_size (reader->text, 0);
}

/* Only of a leaf: what stands between elements is blanks, for a schema has seen it. */
static void
read_end (GMarkupParseContext *context, const char *name, void *data, GError **error)
{
  Reader *reader = data;
  PodXmlNode *node = reader->open[--reader->depth];

  (void) context;
  (void) name;
  (void) error;
  if (node->first == NULL)
    node->text = g_string_chunk_insert (reader->tree->strings, reader->text->str);
}

static void
read_text (GMarkupParseContext *context, const char *text, gsize n_bytes, void *data, GError **error)
{
  Reader *reader = data;

  (void) context;
  (void) error;
  g_string_append_len (reader->text, text, (gssize) n_bytes);
}

PodXmlTree *
pod_xml_tree_read (const char *text)
{
  static const GMarkupParser parser = { .start_element = read_start, .end_element = read_end, .text = read_text };
  g_autoptr (PodXmlTree) tree = pod_xml_tree_new (text);
  g_autoptr (GString) leaf = g_string_new (NULL);
  PodXmlNode *root = NULL;
  Reader reader = { .tree = tree, .text = leaf, .place = { &root } };
  g_autoptr (GMarkupParseContext) context = g_markup_parse_context_new (&parser, 0, &reader, NULL);

  return g_markup_parse_context_parse (context, text, -1, NULL) && g_markup_parse_context_end_parse (context, NULL) ? g_steal_pointer (&tree) : NULL;
}
