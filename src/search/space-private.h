#pragma once

#include "search/space.h"

/* Whether an option changes anything under @layout. */
bool pod_space_has_effect (const PodLayout *layout, const char *key);
/* Of a flag's value. */
bool pod_space_is_true (const char *value);
/* Finds space->least, once its options are there. */
void pod_space_set_least (PodSpace *space);
