#pragma once

#include "search/search.h"

/* Why candidates are refused, counted by reason. Threads may add at once: what comes out hangs on no order. */
typedef struct PodFamilies PodFamilies;

PodFamilies *pod_families_new (void);
void pod_families_free (PodFamilies *families);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodFamilies, pod_families_free)

/* Counts @candidate and as many more as make @n under what @message says but for its numbers: "query head count (128) is not a multiple of tp (256): ..." is of
 * the family "query head count (128) is not a multiple of tp", with the value 256. */
void pod_families_add (PodFamilies *families, uint64_t candidate, uint64_t n, const char *message);
/* Returns: (transfer full) (element-type PodSearchFamily) the largest first, then by first candidate */
GPtrArray *pod_families_list (PodFamilies *families);
