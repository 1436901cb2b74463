#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

/* RFC 8259 to the letter, over a text in memory, without a tree: every value is a piece of the
 * text, so that a caller sees numbers as they are written. json-glib takes more than JSON. */
typedef struct
{
  const char *at;
  const char *end;
  unsigned depth;
  char *why; /* (nullable) the first error, with its byte offset */
  const char *start;
} StrictJson;

typedef struct
{
  const char *text; /* strings with their quotes */
  size_t n_bytes;
} StrictValue;

void strict_json_init (StrictJson *json, const char *text, size_t n_bytes);
void strict_json_clear (StrictJson *json);
/* Sets @why, unless it is set. Returns: false */
bool strict_json_fail (StrictJson *json, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Reads one value of any kind. */
bool strict_json_value (StrictJson *json, StrictValue *out);
/* Nothing but blanks may follow. */
bool strict_json_end (StrictJson *json);

/* Walks an object or array: _enter takes its opening byte ('{' or '['), then _next says whether
 * there is one more member, reads its key (objects), and leaves @json before the value; the caller
 * reads that. _next takes the closing byte. */
bool strict_json_enter (StrictJson *json, char opening);
bool strict_json_next (StrictJson *json, char opening, bool *is_first, StrictValue *out_key);
/* The first byte of the next value, 0 at the end of the text. */
char strict_json_peek (StrictJson *json);

/* Is it this string, when unescaped text is plain? */
bool strict_value_is (const StrictValue *value, const char *plain);
/* A string's text with escapes undone; NULL when @value is no string. (transfer full) (nullable) */
char *strict_value_text (const StrictValue *value);
