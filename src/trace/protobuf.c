#include "trace/protobuf.h"

#include <string.h>

/* https://protobuf.dev/programming-guides/encoding: a field is its number and how long it is, then
 * its value. */

enum
{
  WIRE_VARINT = 0,
  WIRE_FIXED64 = 1,
  WIRE_LENGTH = 2,
};

/* Seven bits a byte, the lowest first; the top bit says that more follow. */
static void
append_varint (GByteArray *message, uint64_t value)
{
  guint8 bytes[10];
  guint n = 0;

  for (; value >= 0x80; value >>= 7)
    bytes[n++] = (guint8) (value | 0x80);
  bytes[n++] = (guint8) value;
  g_byte_array_append (message, bytes, n);
}

static void
append_key (GByteArray *message, unsigned field, unsigned wire)
{
  append_varint (message, (uint64_t) field << 3 | wire);
}

static void
append_bytes (GByteArray *message, unsigned field, const void *data, size_t n_bytes)
{
  append_key (message, field, WIRE_LENGTH);
  append_varint (message, n_bytes);
  g_byte_array_append (message, data, (guint) n_bytes);
}

void
pod_proto_uint (GByteArray *message, unsigned field, uint64_t value)
{
  append_key (message, field, WIRE_VARINT);
  append_varint (message, value);
}

void
pod_proto_fixed64 (GByteArray *message, unsigned field, uint64_t value)
{
  const uint64_t little = GUINT64_TO_LE (value);

  append_key (message, field, WIRE_FIXED64);
  g_byte_array_append (message, (const guint8 *) &little, sizeof little);
}

void
pod_proto_double (GByteArray *message, unsigned field, double value)
{
  uint64_t bits;

  memcpy (&bits, &value, sizeof bits);
  pod_proto_fixed64 (message, field, bits);
}

void
pod_proto_string (GByteArray *message, unsigned field, const char *text)
{
  append_bytes (message, field, text, strlen (text));
}

void
pod_proto_message (GByteArray *message, unsigned field, const GByteArray *inner)
{
  append_bytes (message, field, inner->data, inner->len);
}
