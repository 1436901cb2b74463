/* RFC 8259, into json-tree.h. json-glib 1.6.6 has a parser, but it takes comments,
 * octal and hexadecimal numbers, 'x' and unknown escapes, reads 18446744073709551615 as -1 and
 * 1e400 as infinity, drops the first of two equal keys, and overruns the stack on 200000 times "["
 * (measured). */

#include "base/json-private.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/file-read.h"

enum
{
  MAX_DEPTH = 256, /* the reader recurses, and so do those who walk the tree */
};

typedef struct
{
  const char *name;
  const char *text;
  size_t n_bytes;
  size_t at;
  unsigned depth;
  GError **error;
} Reader;

static JsonNode *read_value (Reader *reader);

static void G_GNUC_PRINTF (3, 4) refuse_at (Reader *reader, size_t offset, const char *format, ...)
{
  va_list arguments;

  va_start (arguments, format);
  g_autofree char *message = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_set_error (reader->error, POD_ERROR, POD_ERROR_PARSE, "%s:%u: %s", reader->name,
               pod_line_at (reader->text, offset), message);
}

static char
peek (const Reader *reader)
{
  return reader->text[reader->at]; /* the NUL byte at the end is no JSON and stops every loop */
}

static void
skip_blanks (Reader *reader)
{
  while (strchr (" \t\r\n", peek (reader)) != NULL && peek (reader) != '\0')
    reader->at++;
}

/* Names what stands at the reader: a word, a character or the end. Returns: (transfer full) */
static char *
describe_here (const Reader *reader)
{
  const char *here = reader->text + reader->at;
  size_t n = 0;

  if (reader->at >= reader->n_bytes)
    return g_strdup ("the end of the text");
  while (n < 20 && (g_ascii_isalnum (here[n]) || strchr ("+-._", here[n]) != NULL)
         && here[n] != '\0')
    n++;
  if (n > 0)
    return g_strdup_printf ("\"%.*s\"", (int) n, here);
  if (g_ascii_iscntrl (*here))
    return g_strdup_printf ("byte 0x%02x", (unsigned) (unsigned char) *here);
  return g_strdup_printf ("'%.*s'", (int) (g_utf8_next_char (here) - here), here);
}

static void
refuse_here (Reader *reader, const char *expected)
{
  g_autofree char *got = describe_here (reader);

  refuse_at (reader, reader->at, "expected %s, got %s", expected, got);
}

static bool
read_four_hex (Reader *reader, size_t start, unsigned *out)
{
  *out = 0;
  for (int i = 0; i < 4; i++, reader->at++)
    {
      int digit = g_ascii_xdigit_value (peek (reader));
      if (digit < 0)
        {
          refuse_at (reader, start, "\\u needs four hexadecimal digits");
          return false;
        }
      *out = *out * 16 + (unsigned) digit;
    }
  return true;
}

/* Behind "\u". Pairs of surrogates make one character. */
static bool
read_unicode_escape (Reader *reader, GString *out)
{
  size_t start = reader->at;
  unsigned code = 0;

  if (!read_four_hex (reader, start, &code))
    return false;
  if (code >= 0xd800 && code < 0xdc00)
    {
      unsigned low = 0;
      bool has_low = strncmp (reader->text + reader->at, "\\u", 2) == 0;
      reader->at += has_low ? 2 : 0;
      if (has_low && !read_four_hex (reader, start, &low))
        return false;
      if (low < 0xdc00 || low > 0xdfff)
        {
          refuse_at (reader, start, "half of a surrogate pair: \\u%04x", code);
          return false;
        }
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
  else if (code >= 0xdc00 && code < 0xe000)
    {
      refuse_at (reader, start, "half of a surrogate pair: \\u%04x", code);
      return false;
    }
  if (code == 0)
    {
      refuse_at (reader, start, "\\u0000 in a string");
      return false;
    }
  g_string_append_unichar (out, code);
  return true;
}

static bool
read_escape (Reader *reader, GString *out)
{
  static const char letters[] = "\"\\/bfnrt";
  static const char meanings[] = "\"\\/\b\f\n\r\t";
  char c = reader->text[reader->at + 1];
  const char *letter = c != '\0' ? strchr (letters, c) : NULL;

  reader->at++;
  if (letter != NULL)
    {
      g_string_append_c (out, meanings[letter - letters]);
      reader->at++;
      return true;
    }
  if (c == 'u')
    {
      reader->at++;
      return read_unicode_escape (reader, out);
    }
  refuse_here (reader, "one of \"\\/bfnrtu behind a backslash");
  return false;
}

/* Returns: (transfer full) (nullable) */
static char *
read_string (Reader *reader)
{
  size_t start = reader->at++;
  g_autoptr (GString) out = g_string_new (NULL);

  for (;;)
    {
      const char *here = reader->text + reader->at;
      size_t n = 0;
      while ((unsigned char) here[n] >= 0x20 && here[n] != '"' && here[n] != '\\')
        n++;
      g_string_append_len (out, here, (gssize) n);
      reader->at += n;
      if (peek (reader) == '"')
        {
          reader->at++;
          return g_string_free (g_steal_pointer (&out), FALSE);
        }
      if (peek (reader) == '\\')
        {
          if (!read_escape (reader, out))
            return NULL;
        }
      else
        {
          if (reader->at >= reader->n_bytes || peek (reader) == '\n')
            refuse_at (reader, start, "string without an end");
          else
            refuse_at (reader, reader->at, "control byte 0x%02x in a string",
                       (unsigned) (unsigned char) peek (reader));
          return NULL;
        }
    }
}

static size_t
skip_digits (Reader *reader)
{
  size_t start = reader->at;

  while (g_ascii_isdigit (peek (reader)))
    reader->at++;
  return reader->at - start;
}

/* The extent of a number by the grammar: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)? */
static bool
skip_number (Reader *reader, bool *out_is_integer)
{
  *out_is_integer = true;
  if (peek (reader) == '-')
    reader->at++;
  if (peek (reader) == '0')
    reader->at++;
  else if (skip_digits (reader) == 0)
    return false;
  if (peek (reader) == '.')
    {
      reader->at++;
      *out_is_integer = false;
      if (skip_digits (reader) == 0)
        return false;
    }
  if (peek (reader) == 'e' || peek (reader) == 'E')
    {
      reader->at++;
      *out_is_integer = false;
      if (peek (reader) == '+' || peek (reader) == '-')
        reader->at++;
      if (skip_digits (reader) == 0)
        return false;
    }
  return !g_ascii_isalnum (peek (reader)) && peek (reader) != '.';
}

/* Whole numbers beyond int64_t become doubles, for the tree has nothing larger, and so does -0,
 * which no integer holds. */
static JsonNode *
read_number (Reader *reader)
{
  size_t start = reader->at;
  bool is_integer = false;
  gint64 integer = 0;

  if (!skip_number (reader, &is_integer))
    {
      reader->at = start;
      refuse_here (reader, "a number");
      return NULL;
    }
  size_t n_bytes = reader->at - start;
  g_autofree char *digits = g_strndup (reader->text + start, n_bytes);
  if (is_integer && !g_str_equal (digits, "-0")
      && g_ascii_string_to_signed (digits, 10, G_MININT64, G_MAXINT64, &integer, NULL))
    return json_node_init_int (json_node_alloc (), integer);
  double value = g_ascii_strtod (digits, NULL);
  if (!isfinite (value))
    {
      refuse_at (reader, start, "number out of range: %.40s", digits);
      return NULL;
    }
  return json_node_init_double (json_node_alloc (), value);
}

/* Behind an element: true when another follows, *out_is_end when @end came. */
static bool
read_comma_or (Reader *reader, char end, bool *out_is_end)
{
  const char expected[] = { '\'', ',', '\'', ' ', 'o', 'r', ' ', '\'', end, '\'', '\0' };

  skip_blanks (reader);
  *out_is_end = peek (reader) == end;
  if (*out_is_end || peek (reader) == ',')
    {
      reader->at++;
      return true;
    }
  refuse_here (reader, expected);
  return false;
}

static JsonNode *
read_array (Reader *reader)
{
  g_autoptr (JsonArray) array = json_array_new ();
  bool is_end = false;

  reader->at++;
  skip_blanks (reader);
  if (peek (reader) == ']')
    {
      reader->at++;
      is_end = true;
    }
  while (!is_end)
    {
      JsonNode *element = read_value (reader);
      if (element == NULL)
        return NULL;
      json_array_add_element (array, element);
      if (!read_comma_or (reader, ']', &is_end))
        return NULL;
    }
  return json_node_init_array (json_node_alloc (), array);
}

static bool
read_member (Reader *reader, JsonObject *object)
{
  skip_blanks (reader);
  size_t start = reader->at;
  if (peek (reader) != '"')
    {
      refuse_here (reader, "a key in double quotes");
      return false;
    }
  g_autofree char *key = read_string (reader);
  if (key == NULL)
    return false;
  if (json_object_has_member (object, key))
    {
      refuse_at (reader, start, "key \"%s\" stands twice in one object", key);
      return false;
    }
  skip_blanks (reader);
  if (peek (reader) != ':')
    {
      refuse_here (reader, "':' behind the key");
      return false;
    }
  reader->at++;
  JsonNode *value = read_value (reader);
  if (value == NULL)
    return false;
  json_object_set_member (object, key, value);
  return true;
}

static JsonNode *
read_object (Reader *reader)
{
  g_autoptr (JsonObject) object = json_object_new ();
  bool is_end = false;

  reader->at++;
  skip_blanks (reader);
  if (peek (reader) == '}')
    {
      reader->at++;
      is_end = true;
    }
  while (!is_end)
    if (!read_member (reader, object) || !read_comma_or (reader, '}', &is_end))
      return NULL;
  return json_node_init_object (json_node_alloc (), object);
}

/* true, false, null, and a hint for those who write Python's and JavaScript's NaN and Infinity. */
static JsonNode *
read_word (Reader *reader)
{
  static const char *const words[] = { "true", "false", "null" };
  const char *here = reader->text + reader->at;
  size_t n = *here == '-' ? 1 : 0;

  while (g_ascii_isalnum (here[n]))
    n++;
  for (size_t i = 0; i < G_N_ELEMENTS (words); i++)
    if (strlen (words[i]) == n && strncmp (here, words[i], n) == 0)
      {
        reader->at += n;
        return i == 2 ? json_node_init_null (json_node_alloc ())
                      : json_node_init_boolean (json_node_alloc (), i == 0);
      }
  g_autofree char *word = g_ascii_strdown (here + (*here == '-'), (gssize) n - (*here == '-'));
  if (g_str_equal (word, "nan") || g_str_has_prefix (word, "inf"))
    refuse_at (reader, reader->at, "%.*s is no JSON number", (int) MIN (n, 20), here);
  else
    refuse_here (reader, "a value");
  return NULL;
}

static JsonNode *
read_value (Reader *reader)
{
  skip_blanks (reader);
  char c = peek (reader);
  if (c == '"')
    {
      g_autofree char *text = read_string (reader);
      return text != NULL ? json_node_init_string (json_node_alloc (), text) : NULL;
    }
  if (g_ascii_isdigit (c) || (c == '-' && !g_ascii_isalpha (reader->text[reader->at + 1])))
    return read_number (reader);
  if (c != '{' && c != '[')
    return read_word (reader);
  if (reader->depth == MAX_DEPTH)
    {
      refuse_at (reader, reader->at, "nested deeper than %d", (int) MAX_DEPTH);
      return NULL;
    }
  reader->depth++;
  JsonNode *node = c == '{' ? read_object (reader) : read_array (reader);
  reader->depth--;
  return node;
}

JsonNode *
pod_json_read_text (const char *name, const char *text, size_t n_bytes, GError **error)
{
  static const char byte_order_mark[] = "\xef\xbb\xbf"; /* Windows editors write it */
  const char *end = NULL;
  Reader reader = { .name = name, .text = text, .n_bytes = n_bytes, .error = error };

  if (!g_utf8_validate_len (text, n_bytes, &end))
    {
      size_t offset = (size_t) (end - text);
      refuse_at (&reader, offset, "byte 0x%02x is not UTF-8 text",
                 (unsigned) (unsigned char) text[offset]);
      return NULL;
    }
  if (g_str_has_prefix (text, byte_order_mark))
    reader.at = strlen (byte_order_mark);
  g_autoptr (JsonNode) root = read_value (&reader);
  if (root == NULL)
    return NULL;
  skip_blanks (&reader);
  if (reader.at < n_bytes)
    {
      refuse_here (&reader, "nothing behind the value");
      return NULL;
    }
  return g_steal_pointer (&root);
}
