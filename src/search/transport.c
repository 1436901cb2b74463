#include "search/transport.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"

/* What launchers tell each process: Open MPI, MPICH and Intel MPI (Hydra) and Slurm's PMI-2, and srun whatever its --mpi (slurm.schedmd.com/srun.html,
 * output environment variables): with PMIx it says no other size. */
static const char *const size_variables[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS" };

/* The variable that says that there are several; NULL: none. */
static const char *
job_variable (void)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (size_variables); i++)
    {
      const char *text = g_getenv (size_variables[i]);
      uint64_t size;

      if (text != NULL && pod_parse_whole (text, POD_UNIT_COUNT, &size, NULL) && size > 1)
        return size_variables[i];
    }
  return NULL;
}

/* Beside the program, or where it is installed. */
static void *
open_module (void)
{
  g_autofree char *program = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *folder = program != NULL ? g_path_get_dirname (program) : g_strdup (".");
  g_autofree char *beside = g_build_filename (folder, "podsim-mpi.so", NULL);
  g_autofree char *installed = g_build_filename (folder, "..", "lib", "podsim", "podsim-mpi.so", NULL);
  void *module = dlopen (beside, RTLD_NOW | RTLD_GLOBAL);

  return module != NULL ? module : dlopen (installed, RTLD_NOW | RTLD_GLOBAL);
}

bool
pod_transport_join (const PodTransport **out, GError **error)
{
  const PodTransport *(*join) (void) = NULL;
  const char *variable = job_variable ();
  void *module;

  *out = NULL;
  if (variable == NULL)
    return true;
  module = open_module ();
  if (module != NULL)
    *(void **) &join = dlsym (module, "pod_mpi_transport_join"); /* the way POSIX gives for functions */
  if (join == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "started as one of several MPI ranks, but there is no podsim-mpi.so: install libopenmpi-dev or libmpich-dev and build again");
      return false;
    }
  *out = join ();
  if (*out != NULL && (*out)->n_ranks > 1)
    return true;
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "started as one of several (%s=%s), but MPI knows of one alone: each would search by itself. The launcher must be that of the MPI that podsim-mpi.so was built with; under Slurm srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH)",
               variable, g_getenv (variable));
  if (*out != NULL)
    (*out)->leave ();
  *out = NULL;
  return false;
}
