#include "topology/fidelity.h"

#include "base/error.h"

static const char *const fidelity_names[] = {
  [POD_FIDELITY_BOOK] = "book",
  [POD_FIDELITY_IDEAL] = "ideal",
  [POD_FIDELITY_CALIBRATED] = "calibrated",
};

const char *
pod_fidelity_name (PodFidelity fidelity)
{
  g_return_val_if_fail ((unsigned) fidelity < G_N_ELEMENTS (fidelity_names), "?");
  return fidelity_names[fidelity];
}

bool
pod_fidelity_parse (const char *text, PodFidelity *out, GError **error)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (fidelity_names); i++)
    if (g_strcmp0 (text, fidelity_names[i]) == 0)
      {
        *out = (PodFidelity) i;
        return true;
      }
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
               "unknown fidelity '%s', expected book, ideal or calibrated",
               text == NULL ? "" : text);
  return false;
}
