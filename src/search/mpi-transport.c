/* Built as podsim-mpi.so where MPI is found, and part of nothing else. */
#include "search/transport.h"

#include <mpi.h>

enum
{
  TAG = 1,
};

static void
send_bytes (const void *data, size_t n_bytes, int to)
{
  MPI_Send (data, (int) n_bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
}

static bool
probe (int *out_from, size_t *out_n_bytes)
{
  MPI_Status status;
  int is_there = 0;
  int n_bytes = 0;

  MPI_Iprobe (MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &is_there, &status);
  if (!is_there)
    return false;
  MPI_Get_count (&status, MPI_BYTE, &n_bytes);
  *out_from = status.MPI_SOURCE;
  *out_n_bytes = (size_t) n_bytes;
  return true;
}

static void
receive (void *data, size_t n_bytes, int from)
{
  MPI_Recv (data, (int) n_bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void
leave (void)
{
  MPI_Finalize ();
}

const PodTransport *
pod_mpi_transport_join (void)
{
  static PodTransport transport = { .send = send_bytes, .probe = probe, .receive = receive, .leave = leave };
  int provided;

  /* Threads run candidates, the main thread alone sends and receives */
  if (MPI_Init_thread (NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
    return NULL;
  MPI_Comm_rank (MPI_COMM_WORLD, &transport.rank);
  MPI_Comm_size (MPI_COMM_WORLD, &transport.n_ranks);
  return &transport;
}
