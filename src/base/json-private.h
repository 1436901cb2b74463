#pragma once

#include <stddef.h>

#include "base/json-tree.h"

/* The strict reader behind pod_json_parse. @text is NUL-terminated. Error: POD_ERROR_PARSE
 * "name:line: ...". Returns: (transfer full) (nullable). O(n_bytes). */
JsonNode *pod_json_read_text (const char *name, const char *text, size_t n_bytes, GError **error);
