#pragma once

#include "support/trace-facts.h"

/* What both readers make their facts with. */

void trace_fact_free (void *data);
/* Takes @what. */
void trace_fact_add (GPtrArray *facts, char *what, int64_t dur_ns);
void trace_facts_sort (GPtrArray *facts);
/* Sorted, with commas between: (transfer full); @arguments (element-type utf8) gets a NULL at its
 * end. */
char *trace_facts_join (GPtrArray *arguments);
