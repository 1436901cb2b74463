#include <string.h>

#include "network/network-private.h"

/* Stretches of time that are not simulated, for they are like some that were. */

static gint
compare_numbers (gconstpointer a, gconstpointer b)
{
  const PodTransfer *x = *(PodTransfer *const *) a;
  const PodTransfer *y = *(PodTransfer *const *) b;

  return x->number < y->number ? -1 : x->number > y->number;
}

static void
save_transfer (const PodTransfer *transfer, int64_t now_ps, GArray *out)
{
  int64_t state[] = {
    transfer->tag,
    transfer->phase,
    (int64_t) transfer->bytes,
    0,
    0,
    0,
    0,
    0,
    now_ps - transfer->start_ps,
    now_ps - transfer->begin_ps,
  };

  memcpy (&state[3], &transfer->analytic_s_per_byte, sizeof (double));
  if (transfer->phase == POD_PHASE_BYTES || transfer->phase == POD_PHASE_ALONE)
    {
      state[4] = now_ps - transfer->since_ps;
      state[5] = (int64_t) transfer->rate;
      state[6] = (int64_t) (uint64_t) (transfer->work_left >> 64);
      state[7] = (int64_t) (uint64_t) transfer->work_left;
    }
  g_array_append_vals (out, state, G_N_ELEMENTS (state));
}

bool
pod_network_save (const PodNetwork *network, GArray *out)
{
  const int64_t now_ps = pod_event_queue_now (network->queue);
  g_autoptr (GPtrArray) active = g_ptr_array_new ();

  if (network->flow.is_solve_pending || network->flow.n_dirty > 0)
    return false;
  for (uint32_t t = 0; t < network->n_transfers; t++)
    if (network->transfers[t].phase != POD_PHASE_FREE)
      g_ptr_array_add (active, &network->transfers[t]);
  /* In the order in which they started, which is part of it */
  g_ptr_array_sort (active, compare_numbers);
  for (guint i = 0; i < active->len; i++)
    save_transfer (g_ptr_array_index (active, i), now_ps, out);
  return true;
}

bool
pod_network_event_tag (const PodNetwork *network, const PodEvent *event, uint32_t *out)
{
  *out = network->transfers[event->index].tag;
  return network->transfers[event->index].generation == event->tag;
}

void
pod_network_skip (PodNetwork *network, int64_t ps)
{
  for (uint32_t t = 0; t < network->n_transfers; t++)
    {
      network->transfers[t].start_ps += ps;
      network->transfers[t].due_ps += ps;
      network->transfers[t].begin_ps += ps;
      network->transfers[t].since_ps += ps;
    }
  for (uint32_t b = 0; network->bundles.meters != NULL && b < network->bundles.n_bundles; b++)
    network->bundles.meters[b].since_ps += ps;
}
