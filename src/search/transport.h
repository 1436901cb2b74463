#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

/* Messages between the ranks of an MPI job. MPI's library is loaded only under mpirun (podsim-mpi.so, mpi-transport.c), so that the program
 * starts as fast without it, and runs where there is none. */
typedef struct
{
  int rank;
  int n_ranks;
  /* Small messages return at once; large ones when the other side takes them. */
  void (*send) (const void *data, size_t n_bytes, int to);
  /* Whether a message is there: from whom, and how large. */
  bool (*probe) (int *out_from, size_t *out_n_bytes);
  void (*receive) (void *data, size_t n_bytes, int from);
  void (*leave) (void);
} PodTransport;

/* Joins the job that started this process. *out: NULL when it is none, or one of a single rank. UNSUPPORTED when the program was built without
 * MPI. To be left by its leave (). */
bool pod_transport_join (const PodTransport **out, GError **error);

/* What podsim-mpi.so exports. */
const PodTransport *pod_mpi_transport_join (void);
