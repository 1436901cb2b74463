#pragma once

#include <stdint.h>

#include <glib.h>

/* The wire format of protocol buffers, as far as writing needs it: a message is bytes, and each of
 * these appends one field to it. Fields come in any order, a repeated one several times. O(bytes).
 */

void pod_proto_uint (GByteArray *message, unsigned field, uint64_t value);
void pod_proto_fixed64 (GByteArray *message, unsigned field, uint64_t value);
void pod_proto_double (GByteArray *message, unsigned field, double value);
void pod_proto_string (GByteArray *message, unsigned field, const char *text);
/* A message inside a message. */
void pod_proto_message (GByteArray *message, unsigned field, const GByteArray *inner);
