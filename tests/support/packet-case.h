#pragma once

#include "collective/messages.h"
#include "network/packet.h"

/* Runs message sets on a packet network by itself. */

typedef struct
{
  int64_t time_ps; /* when the last job ended */
  uint32_t n_done;
  PodPacketCounts counts;
  uint64_t *link_bytes; /* (owned) as the network counted them */
  uint64_t n_events;
} PacketRun;

void packet_run_clear (PacketRun *run);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PacketRun, packet_run_clear)

/* All sets start at 0; checks the network as it goes when @is_checked. Fails the test when one does
 * not end. */
void packet_run_links (PacketRun *run, const PodPacketLink *links, uint32_t n_links,
                       const PodPacketOptions *options, PodMessageSet *const *sets,
                       uint32_t n_sets);
/* On a machine, at nominal rates. */
void packet_run_machine (PacketRun *run, const PodTopology *topology,
                         const PodPacketOptions *options, PodMessageSet *const *sets,
                         uint32_t n_sets);
