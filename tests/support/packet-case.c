#include "support/packet-case.h"

#include <check.h>

enum
{
  PACKET_KIND = 3,
};

void
packet_run_clear (PacketRun *run)
{
  g_free (run->link_bytes);
}

typedef struct
{
  PodEventQueue *queue;
  PacketRun *run;
} Watch;

static void
on_done (void *context, uint32_t tag)
{
  Watch *watch = context;

  (void) tag;
  watch->run->n_done++;
  watch->run->time_ps = pod_event_queue_now (watch->queue);
}

void
packet_run_links (PacketRun *run, const PodPacketLink *links, uint32_t n_links,
                  const PodPacketOptions *options, PodMessageSet *const *sets, uint32_t n_sets)
{
  g_autoptr (PodEventQueue) queue = pod_event_queue_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) jobs
      = g_ptr_array_new_with_free_func ((GDestroyNotify) pod_packet_job_free);
  Watch watch = { queue, run };
  g_autoptr (PodPacketNetwork) network = pod_packet_network_new (
      options, links, n_links, queue, PACKET_KIND, on_done, &watch, &error);
  PodEvent event;

  ck_assert_msg (network != NULL, "%s", error == NULL ? "?" : error->message);
  *run = (PacketRun){ 0 };
  for (uint32_t i = 0; i < n_sets; i++)
    {
      PodPacketJob *job;

      ck_assert (pod_message_set_check (sets[i]));
      job = pod_packet_job_new (network, sets[i], &error);
      ck_assert_msg (job != NULL, "%s", error == NULL ? "?" : error->message);
      g_ptr_array_add (jobs, job);
      pod_packet_network_start (network, job, i);
    }
  while (pod_event_queue_pop (queue, &event))
    {
      pod_packet_network_handle (network, &event);
      if (run->n_events++ % 4096 == 0)
        ck_assert (pod_packet_network_check (network));
    }
  if (pod_packet_network_n_active (network) > 0)
    {
      g_autofree char *why = pod_packet_network_describe_waiting (network);

      ck_abort_msg ("deadlock: %s", why);
    }
  ck_assert (pod_packet_network_check (network));
  ck_assert_uint_eq (run->n_done, n_sets);
  pod_packet_network_counts (network, &run->counts);
  run->link_bytes = g_new0 (uint64_t, n_links + 1);
  for (uint32_t i = 0; i < n_links; i++)
    run->link_bytes[i] = pod_packet_network_link_bytes (network, i);
}

void
packet_run_machine (PacketRun *run, const PodTopology *topology, const PodPacketOptions *options,
                    PodMessageSet *const *sets, uint32_t n_sets)
{
  g_autofree double *capacity = g_new (double, topology->n_links + 1);
  g_autofree PodPacketLink *links = NULL;

  for (uint32_t i = 0; i < topology->n_links; i++)
    capacity[i] = pod_collective_link_rate (topology, POD_FIDELITY_IDEAL, i);
  links = pod_packet_links (topology, capacity, options->drop_kinds);
  packet_run_links (run, links, topology->n_links, options, sets, n_sets);
}
