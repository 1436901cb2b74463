#include "support/strict-json.h"

#include <string.h>

enum
{
  MAX_DEPTH = 100,
};

void
strict_json_init (StrictJson *json, const char *text, size_t n_bytes)
{
  *json = (StrictJson){ .at = text, .end = text + n_bytes, .start = text };
}

void
strict_json_clear (StrictJson *json)
{
  g_clear_pointer (&json->why, g_free);
}

bool
strict_json_fail (StrictJson *json, const char *format, ...)
{
  va_list arguments;

  if (json->why != NULL)
    return false;
  va_start (arguments, format);
  g_autofree char *what = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  json->why = g_strdup_printf ("byte %zu: %s", (size_t) (json->at - json->start), what);
  return false;
}

static void
skip_blanks (StrictJson *json)
{
  while (json->at < json->end
         && (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
    json->at++;
}

char
strict_json_peek (StrictJson *json)
{
  skip_blanks (json);
  return json->at < json->end ? *json->at : '\0';
}

static bool
read_escape (StrictJson *json)
{
  json->at++;
  if (json->at < json->end && *json->at == 'u')
    {
      for (int i = 0; i < 4; i++)
        {
          json->at++;
          if (json->at >= json->end || !g_ascii_isxdigit (*json->at))
            return strict_json_fail (json, "\\u without four hexadecimal digits");
        }
    }
  else if (json->at >= json->end || *json->at == '\0' || strchr ("\"\\/bfnrt", *json->at) == NULL)
    return strict_json_fail (json, "unknown escape");
  json->at++;
  return true;
}

static bool
read_string (StrictJson *json)
{
  json->at++;
  while (json->at < json->end && *json->at != '"')
    {
      if ((unsigned char) *json->at < 0x20)
        return strict_json_fail (json, "raw control byte 0x%02x in a string",
                                 (unsigned) (unsigned char) *json->at);
      if (*json->at != '\\')
        json->at++;
      else if (!read_escape (json))
        return false;
    }
  if (json->at >= json->end)
    return strict_json_fail (json, "string without end");
  json->at++;
  return true;
}

static bool
read_digits (StrictJson *json)
{
  const char *start = json->at;

  while (json->at < json->end && g_ascii_isdigit (*json->at))
    json->at++;
  return json->at > start || strict_json_fail (json, "a number lacks digits");
}

static bool
read_number (StrictJson *json)
{
  if (*json->at == '-')
    json->at++;
  if (json->at < json->end && *json->at == '0')
    json->at++;
  else if (!read_digits (json))
    return false;
  if (json->at < json->end && *json->at == '.')
    {
      json->at++;
      if (!read_digits (json))
        return false;
    }
  if (json->at < json->end && (*json->at == 'e' || *json->at == 'E'))
    {
      json->at++;
      if (json->at < json->end && (*json->at == '+' || *json->at == '-'))
        json->at++;
      if (!read_digits (json))
        return false;
    }
  return true;
}

static bool
read_word (StrictJson *json)
{
  static const char *const words[] = { "true", "false", "null" };
  const char *end = json->at;

  while (end < json->end && g_ascii_isalpha (*end))
    end++;
  for (size_t i = 0; i < G_N_ELEMENTS (words); i++)
    if ((size_t) (end - json->at) == strlen (words[i])
        && strncmp (json->at, words[i], strlen (words[i])) == 0)
      {
        json->at = end;
        return true;
      }
  if (end == json->at)
    return strict_json_fail (json,
                             json->at < json->end ? "a value was expected" : "the text ends early");
  return strict_json_fail (json, "no JSON word: %.*s", (int) MIN (end - json->at, 20), json->at);
}

bool
strict_json_enter (StrictJson *json, char opening)
{
  if (strict_json_peek (json) != opening)
    return strict_json_fail (json, "expected %c", opening);
  if (++json->depth > MAX_DEPTH)
    return strict_json_fail (json, "nested deeper than %d", MAX_DEPTH);
  json->at++;
  return true;
}

bool
strict_json_next (StrictJson *json, char opening, bool *is_first, StrictValue *out_key)
{
  char closing = opening == '{' ? '}' : ']';

  if (json->why != NULL)
    return false;
  if (strict_json_peek (json) == closing)
    {
      json->at++;
      json->depth--;
      return false;
    }
  if (!*is_first)
    {
      if (strict_json_peek (json) != ',')
        return strict_json_fail (json, "expected , or %c", closing);
      json->at++;
    }
  *is_first = false;
  if (strict_json_peek (json) == closing)
    return strict_json_fail (json, "comma before %c", closing);
  if (opening == '[')
    return true;
  if (strict_json_peek (json) != '"')
    return strict_json_fail (json, "expected a key");
  out_key->text = json->at;
  if (!read_string (json))
    return false;
  out_key->n_bytes = (size_t) (json->at - out_key->text);
  if (strict_json_peek (json) != ':')
    return strict_json_fail (json, "expected :");
  json->at++;
  return true;
}

static bool
read_container (StrictJson *json, char opening)
{
  bool is_first = true;
  StrictValue key;
  StrictValue value;

  if (!strict_json_enter (json, opening))
    return false;
  while (strict_json_next (json, opening, &is_first, &key))
    if (!strict_json_value (json, &value))
      return false;
  return json->why == NULL;
}

bool
strict_json_value (StrictJson *json, StrictValue *out)
{
  char first = strict_json_peek (json);
  bool is_read;

  out->text = json->at;
  if (first == '{' || first == '[')
    is_read = read_container (json, first);
  else if (first == '"')
    is_read = read_string (json);
  else if (first == '-' && json->at + 1 < json->end && g_ascii_isalpha (json->at[1]))
    is_read = strict_json_fail (json, "no JSON word: -%.8s", json->at + 1);
  else if (first == '-' || g_ascii_isdigit (first))
    is_read = read_number (json);
  else
    is_read = read_word (json);
  out->n_bytes = (size_t) (json->at - out->text);
  return is_read;
}

bool
strict_json_end (StrictJson *json)
{
  return strict_json_peek (json) == '\0' && json->at == json->end
             ? true
             : strict_json_fail (json, "text after the end");
}

bool
strict_value_is (const StrictValue *value, const char *plain)
{
  size_t n_bytes = strlen (plain);

  return value->n_bytes == n_bytes + 2 && value->text[0] == '"'
         && memcmp (value->text + 1, plain, n_bytes) == 0;
}

static unsigned
read_hex (const char *digits)
{
  unsigned value = 0;

  for (int i = 0; i < 4; i++)
    value = value * 16 + (unsigned) g_ascii_xdigit_value (digits[i]);
  return value;
}

char *
strict_value_text (const StrictValue *value)
{
  static const char from[] = "bfnrt";
  static const char to[] = "\b\f\n\r\t";

  if (value->n_bytes < 2 || value->text[0] != '"')
    return NULL;

  GString *text = g_string_new (NULL);
  const char *end = value->text + value->n_bytes - 1;

  for (const char *at = value->text + 1; at < end; at++)
    {
      const char *known;

      if (*at != '\\')
        {
          g_string_append_c (text, *at);
          continue;
        }
      at++;
      if (*at == 'u')
        {
          g_string_append_unichar (text, read_hex (at + 1));
          at += 4;
        }
      else if ((known = strchr (from, *at)) != NULL)
        g_string_append_c (text, to[known - from]);
      else
        g_string_append_c (text, *at);
    }
  return g_string_free (text, FALSE);
}
