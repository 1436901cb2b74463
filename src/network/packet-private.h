#pragma once

#include "network/packet-queue.h"
#include "network/packet.h"

/* What the files of packet mode share: packet.c (jobs under way, events, arrivals),
 * packet-stream.c (what may start, and leaves), packet-channel.c (links and buffers),
 * packet-route.c (the next hop), packet-job.c (routes made ready), packet-loss.c (go-back-N). */

#define POD_NO_PACKET UINT32_MAX
#define POD_NO_BUFFER UINT32_MAX

enum
{
  POD_PACKET_ARRIVES, /* index: packet */
  POD_PACKET_INJECTS, /* index: link */
  POD_PACKET_LAUNCH,  /* index: run */
  POD_PACKET_TIMER,   /* index: timer */
  POD_PACKET_DONE,    /* index: run */
  POD_PACKET_ROOM,    /* index: buffer */
};

enum
{
  POD_BUFFERS_BY_HOP = 8,
  POD_TORUS_ADAPTIVE = 2, /* which buffer of a torus link */
};

typedef struct
{
  int64_t at_ps;
  uint64_t bytes;
} PodCredit;

/* The room of one virtual channel at the far end of a lane. Room that comes free at a known time
 * is in credits, by time. */
typedef struct
{
  uint64_t capacity_bytes;
  uint64_t free_bytes;
  uint64_t credit_bytes; /* sum of the credits */
  PodCredit *credits;    /* ring of n_allocated (a power of two) */
  uint32_t first_credit;
  uint32_t n_credits;
  uint32_t n_allocated;
  int64_t ask_ps;         /* of the last event that looks for room */
  uint32_t first_waiting; /* packets, chained by next */
  uint32_t last_waiting;
} PodBuffer;

/* One lane of a link. */
typedef struct
{
  int64_t free_ps; /* the end of the last packet that reserved it */
  uint64_t bytes;
  uint32_t first_buffer;
} PodChannel;

typedef struct PodPacketStream PodPacketStream;

/* A link, and who waits at its near end to put own messages on it: they take turns, and have one
 * packet in the link's queue at a time. */
typedef struct
{
  PodPacketLink link;
  double ps_per_byte; /* of a lane */
  uint32_t first_channel;
  uint32_t n_buffers;
  bool is_dead;
  bool is_busy; /* a packet waits, or an event is pending */
  int64_t inject_ps;
  PodPacketStream *first;
  PodPacketStream *last;
} PodPacketPort;

typedef struct
{
  uint32_t link;
  uint8_t buffer; /* UINT8_MAX: none */
} PodHop;

typedef struct
{
  uint32_t first; /* in hops */
  uint32_t n;
  uint32_t n_lanes; /* most lanes of a link */
  bool is_lossy;
  bool is_adaptive;
  int32_t along[3]; /* adaptive: signed hops by axis */
  int64_t latency_ps;
} PodPacketRoute;

struct PodPacketJob
{
  PodPacketNetwork *network; /* (transfer none) */
  const PodMessageSet *set;  /* (transfer none) */
  GArray *hops;              /* (element-type PodHop) */
  PodPacketRoute *routes;
  uint32_t *first_dependent; /* by stream, n + 1 */
  uint32_t *dependents;
  uint32_t n_packets; /* most of a message */
};

typedef struct
{
  PodPacketJob *job; /* NULL: the slot is free */
  uint32_t tag;
  uint64_t n_left;  /* messages */
  uint32_t n_holds; /* packets, timers, streams in line, the end to come: what refers to it */
  PodPacketStream *streams;
  uint32_t n_streams;
  uint32_t n_allocated;
} PodPacketRun;

/* Go-back-N: packets of a stream are numbered; the receiver takes the expected one only. */
typedef struct
{
  uint64_t next;
  uint64_t expected;
  uint32_t generation; /* rewinds; timers of another one are stale */
  uint32_t window;
  uint32_t n_good; /* since the window last grew */
  bool is_told;    /* of the present gap */
} PodGoBack;

typedef struct
{
  uint32_t message;
  uint32_t n_packets;
} PodEarly;

struct PodPacketStream
{
  const PodMessageStream *def;
  const PodPacketRoute *route;
  PodPacketStream *next; /* in a port */
  uint32_t run;
  uint32_t n_ready;     /* messages that may start */
  uint32_t ready_chunk; /* of the next one */
  uint32_t ready_step;
  uint32_t n_sent;         /* messages that have left in full */
  uint32_t n_packets_sent; /* of the next one */
  uint32_t n_arrived;
  uint32_t n_packets_left; /* of the next one to arrive */
  uint32_t turn;           /* lane of the next packet */
  bool is_queued;
  GArray *early; /* (nullable) (element-type PodEarly) lanes overtake each other */
  PodGoBack go_back;
};

typedef struct
{
  PodPacketStream *stream;
  uint64_t bytes;
  uint64_t number; /* go-back-N */
  int64_t came_ps; /* latency of the link that it came by */
  uint64_t held_bytes;
  uint32_t held;    /* the buffer that it is in */
  uint32_t message; /* of the stream */
  uint32_t n_done;  /* hops */
  uint32_t turn;
  uint32_t injector; /* the link that it waited for at first */
  uint32_t link;     /* the next hop */
  uint32_t buffer;
  uint32_t next;    /* waiting, or free */
  uint32_t vertex;  /* adaptive */
  int32_t along[3]; /* adaptive: left to go */
} PodPacket;

typedef struct
{
  uint32_t run;
  uint32_t stream;
  uint32_t generation;
  uint32_t next_free;
  uint64_t number;
} PodTimer;

struct PodPacketNetwork
{
  PodPacketOptions options;
  PodEventQueue *queue; /* (transfer none) */
  uint32_t event_kind;
  PodTransferDone done;
  void *context;
  int64_t now_ps;
  int64_t wake_ps; /* of the pending event, INT64_MAX: none */
  PodPacketQueue *events;
  PodPacketPort *ports; /* by link */
  uint32_t n_links;
  uint32_t n_vertices;
  PodChannel *channels;
  uint32_t n_channels;
  PodBuffer *buffers;
  uint32_t n_buffers;
  uint32_t *torus_link; /* (nullable) by (vertex, axis, sign): UINT32_MAX none */
  uint32_t *out_first;  /* (nullable) links by vertex, when some are dead */
  uint32_t *out_links;
  PodPacket *packets;
  uint32_t n_packets;
  uint32_t n_packets_allocated;
  uint32_t first_free_packet;
  uint32_t n_waiting;
  GArray *runs;      /* (element-type PodPacketRun) */
  GArray *free_runs; /* (element-type uint32_t) */
  GArray *woken;     /* (element-type uint32_t) buffers that got room */
  GArray *timers;    /* (element-type PodTimer) */
  uint32_t first_free_timer;
  uint32_t n_active;
  PodPacketCounts counts;
};

/* ---- packet.c ---- */
static inline PodPacketRun *
pod_packet_run (const PodPacketNetwork *network, uint32_t run)
{
  return &g_array_index (network->runs, PodPacketRun, run);
}
/* What was asked for, or the default; at least one packet. */
uint64_t pod_packet_buffer_bytes (const PodPacketOptions *options);
/* A packet of @run from the pool, and back. */
uint32_t pod_packet_take (PodPacketNetwork *network, uint32_t run);
void pod_packet_drop (PodPacketNetwork *network, uint32_t index);
/* What referred to @run does so no more. */
void pod_packet_run_release (PodPacketNetwork *network, uint32_t run);

/* ---- packet-stream.c ---- */
uint64_t pod_stream_message_bytes (const PodMessageStream *def, uint32_t message);
uint32_t pod_stream_n_packets (const PodPacketNetwork *network, const PodPacketStream *stream,
                               uint32_t message);
/* Lets the messages start that all is there for, and puts the stream in line. */
void pod_stream_update (PodPacketNetwork *network, PodPacketStream *stream);
/* In line at its port, if it has something to send. */
void pod_stream_queue (PodPacketNetwork *network, PodPacketStream *stream);
/* The next packet of those that wait at @link. */
void pod_port_inject (PodPacketNetwork *network, uint32_t link);
/* The packet that was injected last goes at last, until @end_ps. */
void pod_port_injected (PodPacketNetwork *network, uint32_t link, int64_t end_ps);

/* ---- packet-channel.c ---- */
/* The packet asks for its next hop: goes, waits, or is dropped. */
void pod_packet_forward (PodPacketNetwork *network, uint32_t index);
/* Whether the packet has room in the buffer, perhaps later at a known time. */
bool pod_buffer_has_room (const PodPacketNetwork *network, uint32_t buffer,
                          const PodPacket *packet);
void pod_buffer_give (PodPacketNetwork *network, uint32_t buffer, uint64_t bytes, int64_t at_ps);
/* There is room that was known to come. */
void pod_buffer_ask (PodPacketNetwork *network, uint32_t buffer);
/* Packets that waited for room that is known by now. */
void pod_buffers_wake (PodPacketNetwork *network);

/* ---- packet-route.c ---- */
/* Fills link and buffer of the packet's next hop. */
void pod_packet_route_next (const PodPacketNetwork *network, PodPacket *packet);
uint32_t pod_packet_channel (const PodPacketNetwork *network, const PodPacket *packet);
/* Buffers of the hops of a stored route, and what else the route needs. */
void pod_packet_route_prepare (const PodPacketNetwork *network, PodPacketRoute *route, PodHop *hops,
                               bool is_detour);

/* ---- packet-loss.c ---- */
void pod_go_back_init (PodPacketStream *stream);
bool pod_go_back_may_send (const PodPacketStream *stream);
/* A packet reached its receiver. Returns: whether it is the expected one. */
bool pod_go_back_arrived (PodPacketNetwork *network, const PodPacket *packet);
/* After the receiver's counts have moved: a sender that went back need not send what has arrived
 * since. */
void pod_go_back_catch_up (PodPacketNetwork *network, PodPacketStream *stream);
void pod_go_back_dropped (PodPacketNetwork *network, const PodPacket *packet);
void pod_go_back_timer (PodPacketNetwork *network, uint32_t timer);
