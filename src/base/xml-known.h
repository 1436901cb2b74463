#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which files need no validation: those that podsim came with. The build validates each against its schema (build-aux/known-xml.c)
 * and lists what the two hold; a file that was changed since is not on the list. */

/* Of the bytes of a file and of its schema. */
uint64_t pod_xml_key (const char *text, size_t n_bytes, const char *schema, size_t n_schema_bytes);
bool pod_xml_is_known (uint64_t key);

/* Made by the build: keys in ascending order. */
extern const uint64_t pod_known_xml[];
extern const size_t pod_n_known_xml;
