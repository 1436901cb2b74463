#pragma once

#include "topology/topology.h"

/* For tests of readers of other formats. */

typedef PodTopology *(*ImportReader) (const char *file, GError **error);

/* Links of one rate and latency, one direction each; a half-duplex link counts once. */
typedef struct
{
  unsigned n_links;
  double bytes_per_s;
  double latency_s;
  bool is_half_duplex;
} ImportLinks;

#define IMPORT_MAX_KINDS 12

/* What a file must become; @links end with n_links 0 and are all there is. */
typedef struct
{
  const char *file;
  const char *chip;
  PodFabric fabric;
  unsigned n_devices;
  unsigned n_switches;
  unsigned n_nodes;
  ImportLinks links[IMPORT_MAX_KINDS];
} ImportCase;

/* Loads a file of tests/data/import. */
PodTopology *import_load (ImportReader reader, const char *file);
void import_check (const PodTopology *topology, const ImportCase *expected);
/* Writes the machine as XML, loads that, and compares every link. */
void import_check_round_trip (const PodTopology *topology);
/* @text as a file, with @suffix, is refused by an error that is the file's name and then @message.
 */
void import_check_refusal (ImportReader reader, const char *suffix, const char *text,
                           const char *message);
/* @text as a file is taken. Returns: (transfer full) */
PodTopology *import_text (ImportReader reader, const char *suffix, const char *text);
/* Whether one of the assumptions contains @part. */
bool import_has_note (const PodTopology *topology, const char *part);
