#include "network/network.h"

#include "base/error.h"
#include "network/network-private.h"

/* A transfer waits for its latency, then has bytes on its links, then is done. Each of its events
 * carries the generation of its slot at that time: a later rate or another transfer in the slot
 * makes it stale.
 *
 * Most transfers never meet another one on a link. So one that finds its links empty when it starts
 * gets its end at once: one event takes the place of its latency's, of a solve and of its end. It
 * is on its links from then on, with no rate, and where another one comes onto one of them, it is
 * settled: put where it would be by then. Whether a transfer is alone must not be seen by when it
 * is handled among the events of one instant, for in a folded run more of them are alone: such
 * events are put in the order in which they would have been scheduled. */

enum
{
  TRANSFER_PRIORITY = 128,
  SOLVE_PRIORITY = 255, /* after all starts and ends of the instant */
};

#define MAX_PS INT64_C (9200000000000000000)

bool
pod_network_check_rates (uint32_t n_links, const double *capacity_bytes_per_s, GError **error)
{
  for (uint32_t l = 0; l < n_links; l++)
    if (!(capacity_bytes_per_s[l] > 0 && capacity_bytes_per_s[l] < POD_RATE_LIMIT_BYTES_PER_S))
      {
        g_set_error (error, POD_ERROR, POD_ERROR_LIMIT,
                     "a link of %g bytes/s: the network counts rates above 0 and below %g",
                     capacity_bytes_per_s[l], POD_RATE_LIMIT_BYTES_PER_S);
        return false;
      }
  return true;
}

PodNetwork *
pod_network_new (PodNetworkMode mode, PodEventQueue *queue, uint32_t event_kind, uint32_t n_links,
                 const double *capacity_bytes_per_s, PodTransferDone done, void *context)
{
  g_return_val_if_fail (queue != NULL && done != NULL && mode != POD_NETWORK_PACKET, NULL);
  g_return_val_if_fail (n_links == 0 || capacity_bytes_per_s != NULL, NULL);

  PodNetwork *network = g_new0 (PodNetwork, 1);
  network->mode = mode;
  network->queue = queue;
  network->event_kind = event_kind;
  pod_bundles_init (&network->bundles, n_links, capacity_bytes_per_s);
  network->done = done;
  network->context = context;
  network->first_free = POD_NO_INDEX;
  network->tied = g_array_new (FALSE, FALSE, sizeof (PodEvent));
  network->waiting = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  if (mode == POD_NETWORK_FLOW)
    pod_flow_init (&network->flow, n_links);
  return network;
}

void
pod_network_free (PodNetwork *network)
{
  if (network == NULL)
    return;
  if (network->mode == POD_NETWORK_FLOW)
    pod_flow_clear (&network->flow);
  pod_bundles_clear (&network->bundles);
  g_array_unref (network->tied);
  g_array_unref (network->waiting);
  g_free (network->transfers);
  g_free (network);
}

uint32_t
pod_network_take_slot (PodNetwork *network)
{
  uint32_t index = network->first_free;

  if (index != POD_NO_INDEX)
    {
      network->first_free = network->transfers[index].next_free;
      return index;
    }
  if (network->n_transfers == network->n_transfers_allocated)
    {
      network->n_transfers_allocated = MAX (64, 2 * network->n_transfers_allocated);
      network->transfers
          = g_renew (PodTransfer, network->transfers, network->n_transfers_allocated);
    }
  index = network->n_transfers++;
  network->transfers[index] = (PodTransfer){ .generation = 0 };
  return index;
}

/* Work over rate, rounded up: at the end nothing is left. */
static int64_t
time_for_work (PodU128 work, uint64_t rate)
{
  const PodU128 whole = work / rate;
  const PodU128 ps = whole + (whole * rate != work);

  g_assert (ps < MAX_PS);
  return (int64_t) ps;
}

/* For paths without links, and for all in analytic mode. At least 1 ps when it is not nothing. */
static int64_t
fixed_time (uint64_t bytes, double s_per_byte)
{
  int64_t ps = 0;
  double s = (double) bytes * s_per_byte;
  bool is_on_clock = pod_seconds_to_ps (s, &ps);

  g_assert (is_on_clock && s >= 0);
  return s > 0 && ps == 0 ? 1 : ps;
}

void
pod_network_schedule (PodNetwork *network, uint32_t index, int64_t delay_ps)
{
  int64_t now_ps = pod_event_queue_now (network->queue);
  PodTransfer *transfer = &network->transfers[index];

  g_assert (delay_ps >= 0 && delay_ps < MAX_PS - now_ps);
  transfer->generation++;
  transfer->due_ps = now_ps + delay_ps;
  transfer->due_order
      = pod_event_queue_push (network->queue, transfer->due_ps, TRANSFER_PRIORITY,
                              network->event_kind, index, transfer->generation);
}

void
pod_network_schedule_solve (PodNetwork *network)
{
  PodFlow *flow = &network->flow;

  if (flow->n_dirty == 0 || flow->is_solve_pending)
    return;
  flow->is_solve_pending = true;
  pod_event_queue_push (network->queue, pod_event_queue_now (network->queue), SOLVE_PRIORITY,
                        network->event_kind + 1, 0, 0);
}

static void
change_meters (PodNetwork *network, const PodTransfer *transfer, int64_t at_ps, uint64_t old_rate,
               uint64_t new_rate)
{
  PodLinkMeter *meters = network->bundles.meters;

  if (meters == NULL)
    return;
  for (uint32_t i = transfer->first_node; i != POD_NO_INDEX;)
    {
      const PodNode *node = &network->bundles.nodes[i];
      pod_link_meter_change (&meters[node->bundle], at_ps, node->share_q32, old_rate, new_rate);
      i = node->next_of_transfer;
    }
}

void
pod_network_set_rate (PodNetwork *network, uint32_t index, uint64_t rate)
{
  PodTransfer *transfer = &network->transfers[index];
  int64_t now_ps = pod_event_queue_now (network->queue);

  transfer->work_left -= (PodU128) transfer->rate * (uint64_t) (now_ps - transfer->since_ps);
  transfer->since_ps = now_ps;
  change_meters (network, transfer, now_ps, transfer->rate, rate);
  transfer->rate = rate;
  pod_network_schedule (network, index, time_for_work (transfer->work_left, rate));
}

/* The rate that fills the time that analytic mode gives, for the meters alone. */
static void
begin_analytic (PodNetwork *network, uint32_t index)
{
  PodTransfer *transfer = &network->transfers[index];
  int64_t ps = MAX (1, fixed_time (transfer->bytes, transfer->analytic_s_per_byte));
  PodU128 rate = transfer->work_left / (uint64_t) ps;

  rate = rate > UINT64_MAX ? UINT64_MAX : rate;
  change_meters (network, transfer, transfer->since_ps, transfer->rate, (uint64_t) rate);
  transfer->rate = (uint64_t) rate;
  pod_network_schedule (network, index, ps);
}

static void
begin_bytes (PodNetwork *network, uint32_t index)
{
  PodTransfer *transfer = &network->transfers[index];

  transfer->phase = POD_PHASE_BYTES;
  transfer->serial = ++network->n_entered;
  transfer->work_left = POD_WORK_PER_BYTE * transfer->bytes;
  transfer->since_ps = pod_event_queue_now (network->queue);
  transfer->rate = 0;
  pod_bundles_enter (network, index);
  if (network->mode == POD_NETWORK_ANALYTIC)
    begin_analytic (network, index);
  else
    pod_network_schedule_solve (network);
}

/* False when others are on its links. Without a latency it is soon known how many there are. */
static bool
begin_alone (PodNetwork *network, uint32_t index, int64_t latency_ps)
{
  PodTransfer *transfer = &network->transfers[index];
  int64_t ps;

  transfer->serial = ++network->n_entered;
  if (!pod_bundles_enter_alone (network, index))
    return false;
  transfer->phase = POD_PHASE_ALONE;
  transfer->work_left = POD_WORK_PER_BYTE * transfer->bytes;
  transfer->since_ps = transfer->begin_ps;
  transfer->rate = pod_flow_rate_alone (network, transfer);
  ps = time_for_work (transfer->work_left, transfer->rate);
  g_assert (ps < MAX_PS - latency_ps);
  pod_network_schedule (network, index, latency_ps + ps);
  return true;
}

void
pod_network_settle (PodNetwork *network, uint32_t index)
{
  PodTransfer *transfer = &network->transfers[index];
  int64_t now_ps = pod_event_queue_now (network->queue);

  if (transfer->phase != POD_PHASE_ALONE)
    return;
  if (transfer->since_ps > now_ps)
    {
      transfer->phase = POD_PHASE_LATENCY;
      pod_bundles_leave (network, index);
      pod_network_schedule (network, index, transfer->since_ps - now_ps);
      return;
    }
  transfer->phase = POD_PHASE_BYTES;
  transfer->serial = ++network->n_entered;
  change_meters (network, transfer, transfer->since_ps, 0, transfer->rate);
}

uint32_t
pod_network_start (PodNetwork *network, const PodPathEntry *path, uint32_t n_entries,
                   uint64_t bytes, int64_t latency_ps, double analytic_s_per_byte, uint32_t tag)
{
  g_return_val_if_fail (n_entries == 0 || path != NULL, POD_NO_INDEX);
  g_return_val_if_fail (latency_ps >= 0 && latency_ps < MAX_PS, POD_NO_INDEX);

  uint32_t index = pod_network_take_slot (network);
  PodTransfer *transfer = &network->transfers[index];
  transfer->path = path;
  transfer->n_entries = n_entries;
  transfer->tag = tag;
  transfer->bytes = bytes;
  transfer->analytic_s_per_byte = analytic_s_per_byte;
  transfer->start_ps = pod_event_queue_now (network->queue);
  transfer->begin_ps = transfer->start_ps + latency_ps;
  transfer->number = ++network->n_started;
  network->n_active++;
  if (n_entries == 0 || bytes == 0)
    {
      int64_t ps = fixed_time (bytes, n_entries == 0 ? analytic_s_per_byte : 0);
      g_assert (ps < MAX_PS - latency_ps);
      transfer->phase = POD_PHASE_FIXED;
      pod_network_schedule (network, index, latency_ps + ps);
    }
  else if (network->mode == POD_NETWORK_FLOW && latency_ps > 0 && !network->flow.is_full
           && begin_alone (network, index, latency_ps))
    return index;
  else if (latency_ps > 0)
    {
      transfer->phase = POD_PHASE_LATENCY;
      pod_network_schedule (network, index, latency_ps);
    }
  else
    begin_bytes (network, index);
  return index;
}

/* The last picosecond is mostly not used up: what was counted too much goes back, so that the
 * meters show the bytes. */
static void
leave_links (PodNetwork *network, uint32_t index)
{
  const PodTransfer *transfer = &network->transfers[index];
  int64_t now_ps = pod_event_queue_now (network->queue);
  PodI128 counted = (PodI128) transfer->rate * (now_ps - transfer->since_ps);
  PodI128 too_much = counted - (PodI128) transfer->work_left;

  if (transfer->phase == POD_PHASE_ALONE) /* so far they have not counted it */
    change_meters (network, transfer, transfer->since_ps, 0, transfer->rate);
  change_meters (network, transfer, now_ps, transfer->rate, 0);
  for (uint32_t i = transfer->first_node;
       network->bundles.meters != NULL && i != POD_NO_INDEX && too_much != 0;)
    {
      const PodNode *node = &network->bundles.nodes[i];
      pod_link_meter_correct (&network->bundles.meters[node->bundle], node->share_q32, too_much);
      i = node->next_of_transfer;
    }
  pod_bundles_leave (network, index);
  if (network->mode == POD_NETWORK_FLOW)
    pod_network_schedule_solve (network);
}

void
pod_network_free_slot (PodNetwork *network, uint32_t index)
{
  PodTransfer *transfer = &network->transfers[index];

  transfer->phase = POD_PHASE_FREE;
  transfer->generation++;
  transfer->next_free = network->first_free;
  network->first_free = index;
  network->n_active--;
}

static void
end_transfer (PodNetwork *network, uint32_t index)
{
  PodTransfer *transfer = &network->transfers[index];
  uint32_t tag = transfer->tag;

  if (transfer->phase == POD_PHASE_BYTES || transfer->phase == POD_PHASE_ALONE)
    leave_links (network, index);
  pod_network_free_slot (network, index);
  /* Last: it may start transfers, and they may move the pool */
  network->done (network->context, tag);
}

/* When the event of a transfer would have been scheduled had it not been alone: when it started, or
 * by the solve that gave it its rate, which comes last in its instant. */
static int64_t
scheduled_ps (const PodTransfer *transfer, bool *out_is_by_solve)
{
  *out_is_by_solve = transfer->phase == POD_PHASE_BYTES || transfer->phase == POD_PHASE_ALONE;
  return *out_is_by_solve ? transfer->since_ps : transfer->start_ps;
}

static gint
compare_tied (gconstpointer a, gconstpointer b, gpointer data)
{
  const PodNetwork *network = data;
  const PodTransfer *x = &network->transfers[((const PodEvent *) a)->index];
  const PodTransfer *y = &network->transfers[((const PodEvent *) b)->index];
  bool is_x_by_solve, is_y_by_solve;
  const int64_t x_ps = scheduled_ps (x, &is_x_by_solve);
  const int64_t y_ps = scheduled_ps (y, &is_y_by_solve);

  if (x_ps != y_ps)
    return x_ps < y_ps ? -1 : 1;
  if (is_x_by_solve != is_y_by_solve)
    return is_x_by_solve ? 1 : -1;
  if (is_x_by_solve && x->begin_ps != y->begin_ps)
    return x->begin_ps < y->begin_ps ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

static bool
is_live (const PodNetwork *network, const PodEvent *event)
{
  return network->transfers[event->index].generation == event->tag;
}

/* The next event, if it is for a transfer too and of the same instant. */
static const PodEvent *
next_tied (const PodNetwork *network)
{
  const PodEvent *next = pod_event_queue_next_now (network->queue);

  return next != NULL && next->kind == network->event_kind ? next : NULL;
}

static bool
are_in_order (const PodNetwork *network)
{
  const GArray *tied = network->tied;

  for (guint i = 1; i < tied->len; i++)
    if (compare_tied (&g_array_index (tied, PodEvent, i - 1), &g_array_index (tied, PodEvent, i),
                      (gpointer) network)
        > 0)
      return false;
  return true;
}

/* Puts @event and those of its instant that are next in order; all but the first go back. */
static void
sort_tied (PodNetwork *network, PodEvent *event)
{
  PodEvent next;

  g_array_set_size (network->tied, 0);
  g_array_append_val (network->tied, *event);
  while (next_tied (network) != NULL)
    {
      pod_event_queue_pop (network->queue, &next);
      if (is_live (network, &next))
        g_array_append_val (network->tied, next);
    }
  if (!are_in_order (network))
    g_array_sort_with_data (network->tied, compare_tied, network);
  *event = g_array_index (network->tied, PodEvent, 0);
  for (guint i = 1; i < network->tied->len; i++)
    pod_event_queue_put_back (network->queue, &g_array_index (network->tied, PodEvent, i));
  network->n_sorted = network->tied->len - 1;
}

void
pod_network_handle (PodNetwork *network, const PodEvent *event)
{
  PodEvent first = *event;

  if (event->kind == network->event_kind + 1)
    {
      network->flow.is_solve_pending = false;
      pod_flow_solve (network);
      return;
    }
  g_assert (event->kind == network->event_kind && event->index < network->n_transfers);
  if (network->n_sorted > 0)
    network->n_sorted--;
  else if (is_live (network, event) && next_tied (network) != NULL)
    sort_tied (network, &first);
  if (!is_live (network, &first))
    return;
  if (network->transfers[first.index].phase == POD_PHASE_LATENCY)
    begin_bytes (network, first.index);
  else
    end_transfer (network, first.index);
}

/* -- parting ----------------------------------------------------------------------------------- */

void
pod_network_list (const PodNetwork *network, GArray *out)
{
  for (uint32_t i = 0; i < network->n_transfers; i++)
    {
      const PodTransfer *transfer = &network->transfers[i];
      const PodStartedTransfer started = { .number = transfer->number, .tag = transfer->tag };

      if (transfer->phase != POD_PHASE_FREE)
        g_array_append_val (out, started);
    }
}

/* Puts a transfer with bytes under way on its links. */
static void
enter_again (PodNetwork *network, uint32_t index)
{
  PodTransfer *transfer = &network->transfers[index];

  if (transfer->phase != POD_PHASE_BYTES)
    return;
  transfer->serial = ++network->n_entered;
  pod_bundles_enter (network, index);
  change_meters (network, &network->transfers[index], pod_event_queue_now (network->queue), 0,
                 network->transfers[index].rate);
}

/* A transfer along @part that stands where that at @index does. */
static void
add_part (PodNetwork *network, uint32_t index, const PodTransferPart *part)
{
  const uint32_t added = pod_network_take_slot (network);
  PodTransfer *transfer = &network->transfers[added];
  const uint64_t generation = transfer->generation;
  const bool has_event = network->transfers[index].phase != POD_PHASE_BYTES
                         || network->mode == POD_NETWORK_ANALYTIC
                         || network->transfers[index].rate > 0;

  *transfer = network->transfers[index];
  transfer->generation = generation;
  transfer->number = ++network->n_started;
  transfer->tag = part->tag;
  transfer->path = part->path;
  transfer->n_entries = part->n_entries;
  transfer->visit = 0;
  network->n_active++;
  if (has_event)
    pod_network_schedule (network, added, transfer->due_ps - pod_event_queue_now (network->queue));
  enter_again (network, added);
}

void
pod_network_part (PodNetwork *network, uint32_t tag, const PodTransferPart *parts, uint32_t n_parts)
{
  uint32_t index = 0;
  PodTransfer *transfer;

  while (network->transfers[index].phase == POD_PHASE_FREE || network->transfers[index].tag != tag)
    index++;
  g_assert (index < network->n_transfers && n_parts > 0 && parts[0].tag == tag);
  pod_network_settle (network, index);
  transfer = &network->transfers[index];
  if (transfer->phase == POD_PHASE_BYTES)
    {
      change_meters (network, transfer, pod_event_queue_now (network->queue), transfer->rate, 0);
      pod_bundles_leave (network, index);
    }
  transfer->path = parts[0].path;
  transfer->n_entries = parts[0].n_entries;
  enter_again (network, index);
  for (uint32_t i = 1; i < n_parts; i++)
    add_part (network, index, &parts[i]);
  if (network->mode == POD_NETWORK_FLOW)
    pod_network_schedule_solve (network);
}

void
pod_network_measure (PodNetwork *network)
{
  g_return_if_fail (network->n_started == 0 && network->bundles.meters == NULL);

  network->bundles.meters = g_new0 (PodLinkMeter, network->bundles.n_links + 1);
}

/* With what is alone on the link, which is counted when it ends. */
static PodLinkMeter
meter_of (const PodNetwork *network, uint32_t link)
{
  const uint32_t index = network->bundles.bundle_of_link[link];
  const PodNode *node = pod_bundle_only_node (&network->bundles, &network->bundles.bundles[index]);
  PodLinkMeter meter = { 0 };

  if (network->bundles.meters == NULL)
    return meter;
  meter = network->bundles.meters[index];
  if (node != NULL)
    {
      const PodTransfer *transfer = &network->transfers[node->transfer];

      if (transfer->phase == POD_PHASE_ALONE
          && transfer->since_ps <= pod_event_queue_now (network->queue))
        pod_link_meter_change (&meter, transfer->since_ps, node->share_q32, 0, transfer->rate);
    }
  return meter;
}

double
pod_network_link_bytes (const PodNetwork *network, uint32_t link)
{
  g_return_val_if_fail (link < network->bundles.n_links, 0);

  const PodLinkMeter meter = meter_of (network, link);
  return pod_link_meter_bytes (&meter, pod_event_queue_now (network->queue));
}

double
pod_network_link_rate (const PodNetwork *network, uint32_t link)
{
  g_return_val_if_fail (link < network->bundles.n_links, 0);

  const PodLinkMeter meter = meter_of (network, link);
  return pod_link_meter_rate (&meter);
}

uint32_t
pod_network_n_active (const PodNetwork *network)
{
  return network->n_active;
}

void
pod_network_set_full_solve (PodNetwork *network, bool is_full)
{
  network->flow.is_full = is_full;
}

static bool
check_transfer (const PodNetwork *network, const PodTransfer *transfer)
{
  int64_t now_ps = pod_event_queue_now (network->queue);

  if (transfer->phase != POD_PHASE_BYTES)
    return true;
  if (transfer->bytes == 0 || transfer->n_entries == 0 || transfer->since_ps > now_ps)
    return false;
  if (network->mode == POD_NETWORK_ANALYTIC)
    return true;
  /* Moved less than a picosecond's worth too much */
  PodU128 moved = (PodU128) transfer->rate * (uint64_t) (now_ps - transfer->since_ps);
  return moved < transfer->work_left + transfer->rate || transfer->rate == 0;
}

bool
pod_network_check (const PodNetwork *network)
{
  uint32_t n_free = 0;

  for (uint32_t i = network->first_free; i != POD_NO_INDEX; i = network->transfers[i].next_free)
    if (++n_free > network->n_transfers || network->transfers[i].phase != POD_PHASE_FREE)
      return false;
  if (n_free + network->n_active != network->n_transfers)
    return false;
  for (uint32_t i = 0; i < network->n_transfers; i++)
    if (!check_transfer (network, &network->transfers[i]))
      return false;
  if (!pod_bundles_check (network))
    return false;
  return network->mode != POD_NETWORK_FLOW || pod_flow_check (network);
}
