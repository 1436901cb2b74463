#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* Messages and what they wait for, for packet mode. Messages that follow one another on one route
 * are a *stream*, kept as one record: a ring all-reduce of n ranks is n streams of 2(n-1) messages,
 * however many there are.
 *
 * The messages of a stream are numbered chunk by chunk: with a period of p, message m is step m % p
 * of chunk m / p. A stream without chunks is one chunk. Its bytes are cut evenly, to the byte: the
 * first (bytes % n) messages hold one more. They leave in order.
 *
 * A dependency says what a message waits for, in the same chunk c of another stream (or of its
 * own):
 *
 *   POD_AFTER_STEP  step k waits for step k - lag there (steps before the lag for nothing)
 *   POD_AFTER_ALL   step 0, and so all that follow, waits for all steps there
 *   POD_AFTER_WINDOW   step 0 of chunk c waits for all steps of chunk c - lag there (the first @lag
 *                   chunks for nothing): so far those in front of a pipeline run ahead of its end */

typedef enum
{
  POD_AFTER_STEP,
  POD_AFTER_ALL,
  POD_AFTER_WINDOW,
} PodMessageAfter;

typedef struct
{
  uint32_t stream;
  uint32_t lag;
  PodMessageAfter after;
} PodMessageDep;

typedef struct
{
  uint64_t bytes; /* of all its messages */
  uint32_t route;
  uint32_t n_messages; /* > 0, a multiple of the period */
  uint32_t period;     /* messages of a chunk */
  uint32_t first_dep;  /* in deps */
  uint32_t n_deps;
} PodMessageStream;

typedef struct
{
  uint32_t first; /* in links */
  uint32_t n;
} PodMessageRoute;

typedef struct
{
  GArray *links;        /* (element-type uint32_t) of all routes, in order of travel */
  GArray *routes;       /* (element-type PodMessageRoute) */
  GArray *streams;      /* (element-type PodMessageStream) */
  GArray *deps;         /* (element-type PodMessageDep) of each stream together */
  GHashTable *by_links; /* (owned) route by its links: to store each once. Only looked up */
  int64_t launch_ps;    /* passes before the first message may start */
  uint64_t n_messages;
} PodMessageSet;

PodMessageSet *pod_message_set_new (void);
void pod_message_set_free (PodMessageSet *set);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodMessageSet, pod_message_set_free)

/* The route over @links, each beginning where the last one ended; none: sender and receiver are
 * one. Equal ones get one number. O(n). */
uint32_t pod_message_set_route (PodMessageSet *set, const uint32_t *links, uint32_t n);
/* @n_messages x @n_chunks messages, @bytes in all. Returns: the number of the stream. */
uint32_t pod_message_set_stream (PodMessageSet *set, uint32_t route, uint64_t bytes,
                                 uint32_t n_messages, uint32_t n_chunks);
/* Of the stream that was added last. @dep->stream may come later. */
void pod_message_set_after (PodMessageSet *set, PodMessageDep dep);
/* Bytes on each of @n_links links: what the set will move, for accounting. O(route hops). */
void pod_message_set_link_bytes (const PodMessageSet *set, uint32_t n_links, uint64_t *out);
/* Indices in range, periods divide, no dependency without its chunk (POD_CHECK, tests). */
bool pod_message_set_check (const PodMessageSet *set);
