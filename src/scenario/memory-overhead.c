#include "base/units.h"
#include "scenario/result-private.h"

/* What a device's memory holds beside the step's tensors, each term by its name. */

/* NCCL keeps for each channel of a communicator a send and a receive buffer of NCCL_BUFFSIZE, 4 MiB (its documentation); RCCL is the same. */
#define BUFFER_BYTES (4.0 * 1024 * 1024)
/* Channels where a library's tables do not say: NCCL's inside a node of H100. */
#define N_CHANNELS_UNKNOWN 16
/* What PyTorch's allocator cannot use between buffers: 2 %, the overhead at which jobs that should fit ran out of memory in public
 * (NVIDIA/Megatron-LM#525, deepspeedai/DeepSpeed#7242). XLA lays its buffers out before it runs. */
#define FRAGMENTATION_RATIO 0.02

static bool
parse (const char *option, const char *text, PodUnit unit, double fallback, double *out, GError **error)
{
  *out = fallback;
  if (text == NULL || pod_parse_quantity (text, unit, out, error))
    return true;
  g_prefix_error (error, "--%s: ", option);
  return false;
}

bool
pod_run_parse_overhead (const PodScenario *scenario, PodRun *run, GError **error)
{
  const bool is_book = run->fidelity == POD_FIDELITY_BOOK;
  const bool has_allocator = run->fidelity == POD_FIDELITY_CALIBRATED && run->topology->chip->family != POD_FAMILY_TPU;

  return parse ("memory-context", scenario->memory_context, POD_UNIT_BYTES, is_book ? 0 : run->topology->chip->reserved_bytes, &run->overhead.context_bytes, error)
         && parse ("memory-comm-buffers", scenario->memory_comm_buffers, POD_UNIT_BYTES, -1, &run->overhead.comm_buffer_bytes, error)
         && parse ("memory-fragmentation", scenario->memory_fragmentation, POD_UNIT_RATIO, has_allocator ? FRAGMENTATION_RATIO : 0, &run->overhead.fragmentation_ratio,
                   error);
}

/* Communicators that the rank of the largest peak is in, sends left out: two of them share a communicator's buffers with others. */
static unsigned
n_communicators (const PodRun *run)
{
  unsigned n = 0;

  for (guint i = 0; i < run->program->communicators->len; i++)
    {
      const PodCommunicator *comm = g_ptr_array_index (run->program->communicators, i);

      n += comm->group_size > 1 && pod_communicator_group_of (comm, run->exec->worst_rank) != UINT32_MAX;
    }
  return n;
}

void
pod_run_set_overhead (PodRun *run)
{
  const PodLibraryDevice *device = run->library != NULL ? pod_library_device (run->library, run->topology->chip) : NULL;
  const unsigned n_channels = device != NULL && device->n_channels > 0 ? device->n_channels : N_CHANNELS_UNKNOWN;

  if (run->overhead.comm_buffer_bytes < 0)
    run->overhead.comm_buffer_bytes = run->fidelity == POD_FIDELITY_CALIBRATED && run->topology->chip->family != POD_FAMILY_TPU
                                          ? n_communicators (run) * n_channels * 2 * BUFFER_BYTES
                                          : 0;
  run->overhead.fragmentation_bytes = run->exec->peak_bytes * run->overhead.fragmentation_ratio;
}
