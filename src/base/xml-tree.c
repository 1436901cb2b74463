#include <string.h>

#include "base/xml-private.h"

/* What a document holds, and the reader of documents that are known to be sound. It looks at no rule of XML that a sound document
 * cannot break, and gives up where there is more than it knows. */

enum
{
  MAX_DEPTH = 32
};

typedef struct
{
  PodXmlTree *tree;
  char *at;
  unsigned line;                  /* of @at */
  unsigned depth;
  PodXmlNode *open[MAX_DEPTH];    /* elements that have not ended */
  PodXmlNode **place[MAX_DEPTH];  /* where the next element in each belongs */
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
  return tree;
}

void
pod_xml_tree_free (PodXmlTree *tree)
{
  if (tree == NULL)
    return;
  if (tree->strings != NULL)
    g_string_chunk_free (tree->strings);
  g_free (tree->text);
  g_free (tree->nodes);
  g_free (tree->attributes);
  g_free (tree);
}

static bool
is_blank (char c)
{
  return c == ' ' || c == '\t' || c == '\n';
}

static void
skip_blanks (Reader *reader)
{
  for (; is_blank (*reader->at); reader->at++)
    reader->line += *reader->at == '\n';
}

/* Passes over a comment, or what stands before the root. */
static bool
skip_to (Reader *reader, const char *end)
{
  char *found = strstr (reader->at, end);

  if (found == NULL)
    return false;
  for (; reader->at < found; reader->at++)
    reader->line += *reader->at == '\n';
  reader->at += strlen (end);
  return true;
}

/* Ends before a character that no name has; that one is not written over. NULL: no name, or one with a prefix */
static char *
read_name (Reader *reader)
{
  char *name = reader->at;

  while (*reader->at != '\0' && !is_blank (*reader->at) && strchr ("=/>:<&\"'", *reader->at) == NULL)
    reader->at++;
  return reader->at > name && *reader->at != ':' ? name : NULL;
}

/* One of XML's five names for a character; *at goes behind it. Returns: 0 for any other */
static char
read_entity (char **at)
{
  static const struct
  {
    const char *name;
    char character;
  } entities[] = { { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' }, { "&apos;", '\'' } };

  for (unsigned i = 0; i < G_N_ELEMENTS (entities); i++)
    if (g_str_has_prefix (*at, entities[i].name))
      {
        *at += strlen (entities[i].name);
        return entities[i].character;
      }
  return '\0';
}

/* Blanks in a value count as spaces (XML 1.0, 3.3.3); it is written over itself. */
static char *
read_value (Reader *reader)
{
  const char quote = *reader->at;
  char *value = ++reader->at;
  char *end = value;

  if (quote != '"' && quote != '\'')
    return NULL;
  while (*reader->at != quote)
    {
      char c = *reader->at;

      if (c == '\0' || c == '<')
        return NULL;
      reader->line += c == '\n';
      if (c == '&')
        c = read_entity (&reader->at);
      else
        reader->at++;
      if (c == '\0')
        return NULL;
      *end++ = is_blank (c) ? ' ' : c;
    }
  reader->at++;
  *end = '\0';
  return value;
}

static bool
read_attribute (Reader *reader)
{
  PodXmlAttribute *attribute = &reader->tree->attributes[reader->tree->n_attributes++];
  char *name = read_name (reader);
  char *end = reader->at;

  skip_blanks (reader);
  if (name == NULL || *reader->at++ != '=')
    return false;
  skip_blanks (reader);
  *attribute = (PodXmlAttribute){ .name = name, .value = read_value (reader) };
  *end = '\0';
  return attribute->value != NULL && strcmp (name, "xmlns") != 0;
}

/* The text of a leaf, up to its end tag. */
static bool
read_text (Reader *reader, PodXmlNode *node)
{
  char *text = reader->at;

  for (; *reader->at != '<'; reader->at++)
    {
      if (*reader->at == '\0' || *reader->at == '&')
        return false;
      reader->line += *reader->at == '\n';
    }
  if (reader->at[1] != '/')
    return true; /* elements or a comment: blanks between them are no text */
  *reader->at = '\0';
  reader->at++;
  node->text = text;
  return true;
}

/* Behind '<'. */
static bool
read_start (Reader *reader)
{
  PodXmlTree *tree = reader->tree;
  PodXmlNode *node = &tree->nodes[tree->n_nodes++];
  char *name = read_name (reader);
  char *end = reader->at;
  bool is_empty;

  *node = (PodXmlNode){ .name = name, .attributes = &tree->attributes[tree->n_attributes] };
  if (name == NULL || reader->depth == MAX_DEPTH)
    return false;
  *reader->place[reader->depth] = node;
  reader->place[reader->depth] = &node->next;
  for (skip_blanks (reader); *reader->at != '>' && *reader->at != '/'; skip_blanks (reader))
    if (!read_attribute (reader))
      return false;
  node->n_attributes = (unsigned) (&tree->attributes[tree->n_attributes] - node->attributes);
  node->line = reader->line;
  is_empty = *reader->at == '/';
  if (is_empty && *++reader->at != '>')
    return false;
  *end = '\0';
  reader->at++;
  if (is_empty)
    node->text = "";
  else if (!read_text (reader, node))
    return false;
  if (is_empty)
    return true;
  if (node->text != NULL)
    return skip_to (reader, ">");
  reader->open[reader->depth++] = node;
  if (reader->depth < MAX_DEPTH)
    reader->place[reader->depth] = &node->first;
  return true;
}

/* The text of a leaf cannot have a comment in it. */
static bool
read_end (Reader *reader)
{
  return reader->depth > 0 && reader->open[--reader->depth]->first != NULL && skip_to (reader, ">");
}

static bool
read_all (Reader *reader)
{
  PodXmlNode *root = NULL;

  reader->place[0] = &root;
  if (g_str_has_prefix (reader->at, "<?xml") && !skip_to (reader, "?>"))
    return false;
  for (skip_blanks (reader); *reader->at != '\0'; skip_blanks (reader))
    {
      bool is_read;

      if (*reader->at++ != '<')
        return false;
      if (g_str_has_prefix (reader->at, "!--"))
        is_read = skip_to (reader, "-->");
      else if (*reader->at == '/')
        is_read = read_end (reader);
      else
        is_read = read_start (reader);
      if (!is_read)
        return false;
    }
  return root != NULL && root->next == NULL && reader->depth == 0;
}

PodXmlTree *
pod_xml_tree_read (char *text)
{
  g_autoptr (PodXmlTree) tree = pod_xml_tree_new (text);
  Reader reader = { .tree = tree, .at = text, .line = 1 };

  tree->text = text;
  return strchr (text, '\r') == NULL && read_all (&reader) ? g_steal_pointer (&tree) : NULL;
}
