#include "report/html-page.h"

#include <string.h>

/* Okabe and Ito, "Color universal design" (2008): told apart with any colour vision. Their black is
 * left out, for it is the colour of text. */

static const char *const colours[POD_N_COLOURS]
    = { "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7f7f7f" };

const char *
pod_report_colour (unsigned index)
{
  return colours[index % POD_N_COLOURS];
}

/* Compute in blues, what the network exposes in the warm ones, nothing in greys. */
static const struct
{
  const char *term;
  const char *colour;
} terms[] = {
  { "forward and backward", "#0072b2" },
  { "recompute", "#56b4e9" },
  { "optimizer", "#004c78" },
  { "dp", "#e69f00" },
  { "fsdp", "#d55e00" },
  { "tp", "#cc79a7" },
  { "cp", "#f0e442" },
  { "pp", "#009e73" },
  { "ep", "#8a5a00" },
  { "host", "#7a6a9a" },
  { "bubble", "#b8b8b8" },
  { "idle", "#8c8c8c" },
};

const char *
pod_report_term_colour (const char *term)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (terms); i++)
    if (strcmp (term, terms[i].term) == 0)
      return terms[i].colour;
  return "#7f7f7f";
}
