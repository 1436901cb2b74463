#pragma once

#include "cli/cli.h"
#include "collective/collective.h"
#include "collective/library.h"
#include "collective/simulate.h"

/* podsim collective, over its files: options and sweep (cmd-collective.c), the group
 * (collective-group.c), output (collective-print.c). */

typedef struct
{
  char *topology;
  char *kind;
  char *axes;
  char *ranks;
  char *stride;
  char *devices;
  char *bytes;
  char *bytes_are;
  char *algorithm;
  char *library;
  char *fidelity;
  char *dtype;
  char *network;
  char *packet;
  char *json;
  char *phases;
  char *steps;
  char *traffic;
  char *ragged;
  char *replicated;
  char *background;
  char *plot;
  char **sets;
  gboolean is_explained;
} PodCollectiveOptions;

typedef struct
{
  PodTopology *topology;
  PodCollectiveKind kind;
  PodFidelity fidelity;
  PodDtype dtype;
  bool is_global; /* sizes are arrays over the whole group */
  const char *algorithm;
  PodLibrary *library; /* (owned) (nullable) at fidelity calibrated */
  PodNetworkMode network;
  PodPacketOptions packet;
  GArray *dead_links; /* (owned) (element-type uint32_t) what packet.dead_links points to */
  PodGroup group;
  uint32_t *devices; /* what group.devices points to */
  GArray *sizes;     /* (element-type uint64_t) */
  PodPhases phases;
  bool has_steps;
  PodStepLaw steps;
  PodTrafficMatrix traffic; /* shares NULL: none */
  PodGroup borrowed;        /* n_devices 0: none */
  uint32_t *borrowed_devices;
} PodCollectiveJob;

typedef struct
{
  uint64_t bytes;         /* as asked */
  uint64_t payload_bytes; /* nccl-tests' size */
  PodPlan *plan;
  PodPacketCounts packets; /* of packet mode */
  double time_s;
  double algbw_bytes_per_s;
  double busbw_bytes_per_s;
  bool is_latency_bound;
} PodCollectiveRow;

/* The plans of one size. */
void pod_collective_query (const PodCollectiveJob *job, uint64_t payload_bytes, PodPlanQuery *out);

/* A whole number from 1 to @most; errors name --@option. */
bool pod_cli_parse_count (const char *text, const char *option, uint64_t most, uint64_t *out,
                          GError **error);

/* Appends the factors of "x:4,y" to job->group and lists its devices anew; errors name --@option.
 */
bool pod_collective_add_axes (PodCollectiveJob *job, const char *axes, const char *option,
                              GError **error);
/* --steps, --phases, --traffic, --ragged, --replicated and --background, once the group is known.
 */
bool pod_collective_read_extras (PodCollectiveJob *job, const PodCollectiveOptions *options,
                                 GError **error);

/* Fills job->group from --axes, --ranks or --devices: without a choice the whole machine, or two
 * devices for p2p. */
bool pod_collective_make_group (PodCollectiveJob *job, const PodCollectiveOptions *options,
                                GError **error);

void pod_collective_print_table (const PodCollectiveJob *job, const PodCollectiveOptions *options,
                                 const GPtrArray *rows);
/* What each algorithm that fits would cost at each size, the winner marked. */
void pod_collective_print_explanation (const PodCollectiveJob *job, const GPtrArray *rows);
/* Returns: (transfer full) */
JsonObject *pod_collective_to_json (const PodCollectiveJob *job,
                                    const PodCollectiveOptions *options, const GPtrArray *rows);
