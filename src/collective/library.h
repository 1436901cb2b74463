#pragma once

#include "base/dtype.h"
#include "base/units.h"
#include "collective/collective.h"

/* A communication library (NCCL, RCCL, XLA) on a device, as a file in topologies/libraries/ gives
 * it: what one collective costs by algorithm and protocol. Used by fidelity calibrated only. */

typedef enum
{
  POD_PROTOCOL_LL,     /* 8-byte stores that carry their flag: half of the wire, no fences */
  POD_PROTOCOL_LL128,  /* 128-byte lines with one flag: 15/16 of the wire */
  POD_PROTOCOL_SIMPLE, /* plain copies with fences */
  POD_N_PROTOCOLS
} PodProtocol;

/* One cell of the cost table. steps: of the algorithm inside a node, the n-1 peers of an
 * all-to-all. For a payload of V bytes that puts w seconds a byte on the links:
 *
 *   latency   = (launch + spread (n-1)/n + steps x step + net_steps x net_step)
 *               x (1 + widen V/(V + widen_size))
 *   bandwidth = V x (w / rate + (1/n) / own_rate + (1/n) / narrow_rate)
 *   time      = launch part + (step part^overlap + bandwidth^overlap)^(1/overlap)
 *
 * overlap 1 adds the two; above 1 the pipeline hides part of the steps behind the bytes. Rates are
 * parts of the nominal link rate.
 *
 * An all-to-all gives each of its n peers c of the C peer_channels, c the largest power of 2 up to
 * C/n, at least 1, and goes round all of them in r = ceil(n c / C) turns. Of w / rate the first
 * channel_size bytes take C r / (n c) times as long, for channels idle. */
typedef struct
{
  char *algorithm; /* (owned) as in PodPlan */
  PodProtocol protocol;
  unsigned kinds; /* bit 1 << PodCollectiveKind */
  double launch_s;
  double spread_s; /* reaching many peers at once, which saturates */
  double step_s;
  double pair_step_s; /* x (n-1)^2 of an all-to-all: all pairs of ranks at once */
  double net_step_s;  /* of a step between nodes, on top of its links' latency */
  double widen_ratio;
  double widen_bytes;
  double overlap;
  double rate_ratio;                         /* of scale-up links */
  double kind_rate_ratio[POD_N_COLLECTIVES]; /* 0 = rate_ratio */
  double net_rate_ratio;                     /* of NIC and tree links; 0 = 1 */
  double all_to_all_net_rate_ratio;          /* instead of it for all-to-all; 0 = the same */
  double own_rate_ratio;                     /* copy of a rank's own shard; 0 = free */
  double narrow_rate_ratio; /* arithmetic of one-byte integers, per shard; 0 = free */
  double peer_channels;     /* of an all-to-all; 0 = as many as it needs */
  double channel_bytes;     /* 0 = without end */
  double least_bytes;       /* V/n: below it the library never takes the path; 0 = none */
  double limit_bytes;       /* V/n: above it the library never takes the path; 0 = none */
  double tuner_launch_s;    /* what the library believes when it chooses */
  double tuner_step_s;
  double tuner_net_step_s;
  double tuner_rate_ratio;     /* 0 = it knows the time */
  double tuner_net_rate_ratio; /* 0 = 1 */
  char **sources; /* (owned) by number (element-type utf8) (nullable): NULL = not given */
} PodLibraryPath;

typedef struct
{
  char **chips;              /* (owned) names; "*" for any chip that nobody fitted */
  unsigned switch_dtypes;    /* bit 1 << PodDtype: what in-switch reduction adds */
  unsigned min_switch_ranks; /* smallest group that uses it */
  unsigned n_channels;       /* communication blocks of a large collective; 0 = unknown */
  unsigned n_sms;            /* SMs that they hold; 0 = none (DMA) or unknown */
  char *channels_source;     /* (owned) (nullable) of both */
  /* What the library believes that a channel of a tree carries between two nodes, and between more;
   * 0 = no such belief. A channel is a NIC, or a part of one: pod_library_shape. */
  double tree_channel_bytes_per_s[2];
  char *tree_channel_source; /* (owned) (nullable) */
  char *source;              /* (owned) (nullable) */
  char *date;                /* (owned) (nullable) of the data */
  GPtrArray *paths;          /* (owned) (element-type PodLibraryPath) */
  GPtrArray *notes;          /* (owned) (element-type utf8): how it was fitted */
} PodLibraryDevice;

typedef struct PodLibrary
{
  char *name;
  char *title;
  char *file;
  char *based_on; /* (nullable) the library that devices come from that this one does not have */
  GPtrArray *devices; /* (element-type PodLibraryDevice) */
} PodLibrary;

/* Loads by name ("nccl-2.27", or "nccl": the last of its versions) or file, with the devices of
 * what it is based on. Errors INVALID "unknown library ...", PARSE with file:line. Returns:
 * (transfer full) */
PodLibrary *pod_library_load (const char *name_or_file, GError **error);
/* The file alone. */
PodLibrary *pod_library_load_alone (const char *name_or_file, GError **error);
void pod_library_free (PodLibrary *library);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodLibrary, pod_library_free)
void pod_library_device_free (PodLibraryDevice *device);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodLibraryDevice, pod_library_device_free)
PodLibraryDevice *pod_library_device_copy (const PodLibraryDevice *device);

/* The name of the library that a chip uses unless told otherwise: by vendor. (nullable) */
const char *pod_library_default (const PodChip *chip);

/* The entry of a chip: its own, else "*" where the chip switches (NVLink and the like). (transfer
 * none) (nullable) */
const PodLibraryDevice *pod_library_device (const PodLibrary *library, const PodChip *chip);
bool pod_library_device_is_fitted (const PodLibraryDevice *device);
/* One line for the output: which library, and whether it knows the chip. Returns: (transfer full)
 */
char *pod_library_describe (const PodLibrary *library, const PodChip *chip);

/* The file again, to the byte. Returns: (transfer full) */
char *pod_library_to_xml (const PodLibrary *library);

const char *pod_protocol_name (PodProtocol protocol); /* "ll128" */

/* The numbers of a path, by the name of their element. */
typedef struct
{
  const char *name; /* "launch" */
  PodUnit unit;
  size_t offset; /* of a double in PodLibraryPath */
  double least;  /* what a fit may give it */
  double most;
} PodLibraryNumber;

extern const PodLibraryNumber pod_library_numbers[];
extern const size_t pod_n_library_numbers;

/* What a fit may move: numbers whose source is POD_LIBRARY_FITTED. */
#define POD_LIBRARY_FITTED "fitted"
double *pod_library_number (PodLibraryPath *path, size_t number);
/* ---- pricing ---- */

/* What a plan of an algorithm is to a library. */
typedef struct
{
  PodCollectiveKind kind;
  PodDtype dtype;
  uint32_t n_ranks;
  unsigned n_steps;          /* inside a node; all-to-all: the peers */
  unsigned n_net_steps;      /* between nodes */
  double net_latency_s;      /* of those steps' links */
  double inside_s_per_byte;  /* slowest scale-up link at its nominal rate, per payload byte */
  double across_s_per_byte;  /* slowest NIC or tree link */
  double channel_s_per_byte; /* what the library believes of its channels between nodes; 0 = none */
  double own_s_per_byte;     /* 1/n of the payload at the nominal rate of a port */
  double floor_s;            /* of the chip: replaces launch where the entry is "*" */
} PodLibraryShape;

typedef struct
{
  double time_s;
  double bandwidth_s; /* the part that occupies links */
  double cost_s;      /* what the chooser compares */
} PodLibraryPrice;

/* O(1). time_s never falls with the bytes. */
void pod_library_price (const PodLibraryPath *path, const PodLibraryShape *shape,
                        uint64_t payload_bytes, PodLibraryPrice *out);
/* cost_s alone, which needs less where the library has a belief. */
double pod_library_cost (const PodLibraryPath *path, const PodLibraryShape *shape,
                         uint64_t payload_bytes);
/* May the path carry this collective of this element type over that many ranks? */
bool pod_library_path_fits (const PodLibraryDevice *device, const PodLibraryPath *path,
                            const PodLibraryShape *shape, const char *algorithm);

/* What each algorithm that fits makes of a collective, for a fit to price again and again. */
typedef struct
{
  const char *algorithm;
  PodLibraryShape shape;
} PodLibraryCase;

/* The cases of @query (its payload does not matter). Returns: (transfer full) (element-type
 * PodLibraryCase) */
GArray *pod_library_cases (const PodPlanQuery *query, GError **error);

/* The path that the chooser takes among @cases, and its price; NULL when none fits. O(cases x
 * paths). */
const PodLibraryPath *pod_library_choose (const PodLibraryDevice *device, const GArray *cases,
                                          uint64_t payload_bytes, PodLibraryPrice *out);
