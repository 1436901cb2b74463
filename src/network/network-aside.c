#include "network/network-private.h"

/* Transfers that are taken off the network and put back as they were at another time, for who has them knows how they go on. */

bool
pod_network_keep (const PodNetwork *network, uint32_t index, PodKeptTransfer *out,
                  PodTransferOrder *out_order)
{
  const PodTransfer *transfer = &network->transfers[index];
  const int64_t now_ps = pod_event_queue_now (network->queue);
  const bool has_rate
      = transfer->phase == POD_PHASE_BYTES || transfer->phase == POD_PHASE_ALONE;

  if (transfer->phase == POD_PHASE_BYTES && network->flow.n_dirty > 0)
    return false;
  *out = (PodKeptTransfer){
    .path = transfer->path,
    .analytic_s_per_byte = transfer->analytic_s_per_byte,
    .bytes = transfer->bytes,
    .rate = has_rate ? transfer->rate : 0,
    .work_left_high = has_rate ? (uint64_t) (transfer->work_left >> 64) : 0,
    .work_left_low = has_rate ? (uint64_t) transfer->work_left : 0,
    .start_ps = transfer->start_ps - now_ps,
    .begin_ps = transfer->begin_ps - now_ps,
    .since_ps = has_rate ? transfer->since_ps - now_ps : 0,
    .due_ps = transfer->due_ps - now_ps,
    .n_entries = transfer->n_entries,
    .tag = transfer->tag,
    .phase = transfer->phase,
  };
  *out_order = (PodTransferOrder){ transfer->number, has_rate ? transfer->serial : 0,
                                   transfer->due_order };
  return true;
}

void
pod_network_withdraw (PodNetwork *network, uint32_t index)
{
  PodTransfer *transfer = &network->transfers[index];

  g_assert (network->bundles.meters == NULL);
  if (transfer->phase == POD_PHASE_BYTES || transfer->phase == POD_PHASE_ALONE)
    pod_bundles_leave (network, index);
  pod_network_free_slot (network, index);
  if (network->mode == POD_NETWORK_FLOW)
    pod_network_schedule_solve (network);
}

/* Somebody is on the links of one that was alone: it is settled at once. */
static void
put_settled (PodNetwork *network, uint32_t index)
{
  PodTransfer *transfer = &network->transfers[index];

  if (transfer->since_ps > pod_event_queue_now (network->queue))
    {
      transfer->phase = POD_PHASE_LATENCY;
      transfer->due_ps = transfer->begin_ps;
      return;
    }
  transfer->phase = POD_PHASE_BYTES;
  pod_bundles_enter (network, index);
  pod_network_schedule_solve (network);
}

static bool
is_on_links (const PodKeptTransfer *kept)
{
  return kept->phase == POD_PHASE_BYTES || kept->phase == POD_PHASE_ALONE;
}

static uint32_t
put_slot (PodNetwork *network, const PodKeptTransfer *kept, uint64_t number)
{
  const int64_t now_ps = pod_event_queue_now (network->queue);
  const uint32_t index = pod_network_take_slot (network);
  PodTransfer *transfer = &network->transfers[index];

  *transfer = (PodTransfer){
    .work_left = (PodU128) kept->work_left_high << 64 | kept->work_left_low,
    .since_ps = now_ps + kept->since_ps,
    .rate = kept->rate,
    .path = kept->path,
    .n_entries = kept->n_entries,
    .tag = kept->tag,
    .bytes = kept->bytes,
    .start_ps = now_ps + kept->start_ps,
    .due_ps = now_ps + kept->due_ps,
    .begin_ps = now_ps + kept->begin_ps,
    .number = number,
    .generation = transfer->generation + 1,
    .analytic_s_per_byte = kept->analytic_s_per_byte,
    .phase = (PodTransferPhase) kept->phase,
  };
  network->n_active++;
  return index;
}

static void
put_on_links (PodNetwork *network, uint32_t index)
{
  PodTransfer *transfer = &network->transfers[index];

  transfer->serial = ++network->n_entered;
  if (transfer->phase == POD_PHASE_ALONE)
    {
      if (!pod_bundles_enter_alone (network, index))
        put_settled (network, index);
      return;
    }
  pod_bundles_enter (network, index);
  if (network->mode == POD_NETWORK_FLOW)
    pod_network_schedule_solve (network);
}

void
pod_network_put (PodNetwork *network, const PodKeptTransfer *kept, uint32_t n, uint32_t *out)
{
  for (uint32_t i = 0; i < n; i++)
    out[i] = put_slot (network, &kept[i], ++network->n_started);
  for (uint32_t k = 0; k < n; k++)
    for (uint32_t i = 0; i < n; i++)
      if (is_on_links (&kept[i]) && kept[i].n_before == k)
        put_on_links (network, out[i]);
}

void
pod_network_resume (PodNetwork *network, uint32_t index)
{
  pod_network_schedule (network, index,
                        network->transfers[index].due_ps - pod_event_queue_now (network->queue));
}

void
pod_network_begin_replay (PodNetwork *network)
{
  PodFlow *flow = &network->flow;

  network->n_sorted = 0; /* what is tied is put in order anew */
  network->was_solve_pending = flow->is_solve_pending;
  flow->is_solve_pending = false;
  g_array_set_size (network->waiting, 0);
  if (flow->n_dirty > 0)
    g_array_append_vals (network->waiting, flow->dirty, flow->n_dirty);
  for (uint32_t i = 0; i < flow->n_dirty; i++)
    flow->is_dirty[flow->dirty[i]] = false;
  flow->n_dirty = 0;
}

void
pod_network_end_replay (PodNetwork *network)
{
  PodFlow *flow = &network->flow;

  network->n_sorted = 0;
  flow->is_solve_pending = flow->is_solve_pending || network->was_solve_pending;
  for (guint i = 0; i < network->waiting->len; i++)
    pod_flow_mark (flow, g_array_index (network->waiting, uint32_t, i));
}
