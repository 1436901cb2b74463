#pragma once

#include <stdbool.h>

#include <glib.h>

/* Which of the numbers apply: the book's, the nominal ones, or the measured behaviour. */
typedef enum
{
  POD_FIDELITY_BOOK,
  POD_FIDELITY_IDEAL,
  POD_FIDELITY_CALIBRATED,
} PodFidelity;

const char *pod_fidelity_name (PodFidelity fidelity);
bool pod_fidelity_parse (const char *text, PodFidelity *out, GError **error);
