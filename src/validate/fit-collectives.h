#pragma once

#include "collective/library.h"
#include "validate/collective-machine.h"
#include "validate/collective-table.h"

/* Fits the numbers of a library's entry that say "fitted" to measured collectives. */

typedef struct
{
  PodCollectiveMachines *machines; /* that were measured */
  const PodCollectiveTable *table;
} PodCollectiveFitInput;

typedef struct
{
  unsigned n_numbers; /* fitted */
  unsigned n_rows;    /* judged */
  double before;      /* median error of the chip's launch floor and network efficiency alone */
  double fitted_half; /* median error on the sizes that the fit saw */
  double held_out;    /* and on the others */
} PodCollectiveFit;

/* Moves the numbers of @device, rounds them as the file will have them, drops paths that no
 * collective ever takes. Seeded: the same inputs give the same numbers. O(sweeps x numbers x rows).
 */
bool pod_fit_collectives (const PodCollectiveFitInput *inputs, unsigned n_inputs,
                          PodLibraryDevice *device, PodCollectiveFit *out, GError **error);

/* The first @n_ranks devices of @topology as a group. Returns: (transfer full) the list that
 * out->devices points to */
uint32_t *pod_collective_first_group (uint32_t n_ranks, PodGroup *out);
