#pragma once

#include <stdbool.h>

#include <glib.h>

#include "collective/library.h"
#include "scenario/scenario.h"
#include "search/search.h"

/* The command line: a file per subcommand, one table of them. Only this folder prints and decides exit statuses. */

typedef struct
{
  const char *name;
  const char *summary;
  int (*run) (int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
} PodCommand;

extern const PodCommand pod_commands[]; /* ends with name NULL */

int pod_cmd_run (int argc, char **argv);
int pod_cmd_diff (int argc, char **argv);
int pod_cmd_compare (int argc, char **argv);
int pod_cmd_results (int argc, char **argv);
int pod_cmd_sweep (int argc, char **argv);
int pod_cmd_search (int argc, char **argv);
int pod_cmd_model (int argc, char **argv);
int pod_cmd_topology (int argc, char **argv);
int pod_cmd_collective (int argc, char **argv);
int pod_cmd_matmul (int argc, char **argv);
int pod_cmd_roofline (int argc, char **argv);
int pod_cmd_calibrate (int argc, char **argv);
int pod_cmd_validate (int argc, char **argv);

/* Prints "podsim: message" on one line of stderr; returns the exit status of the error's code (see base/error.h). */
int pod_cli_fail (const GError *error);
/* Prints "podsim: message" likewise; returns 2. */
int pod_cli_refuse (const char *format, ...) G_GNUC_PRINTF (1, 2);

/* A group of options that fill a scenario, made from its table; @names (nullable, NULL-terminated) picks some of them.
 * The scenario must outlive the group. Returns: (transfer full) */
GOptionGroup *pod_cli_scenario_group (PodScenario *scenario, const char *const *names);

/* Parses with a context whose main @entries are these, whose --help prints and whose leftover arguments are an error
 * (unless @max_rest allows some). argv ends with NULL.
 * Returns false with *out_status set when the command should end: 0 after --help, 2 on bad usage. */
bool pod_cli_parse (GOptionContext *context, const GOptionEntry *entries, int *argc, char ***argv, int max_rest, int *out_status);

/* --objective: @fallback without a text. */
bool pod_cli_parse_objective (const char *text, PodObjective fallback, PodObjective *out, GError **error);

/* --jobs: threads, @fallback without a text. */
bool pod_cli_parse_jobs (const char *text, unsigned fallback, unsigned *out, GError **error);

/* Writes result as JSON to @file ("-" is stdout). */
bool pod_cli_write_json (JsonObject *result, const char *file, GError **error);

/* The library @asked for (nullable: that of the chip's vendor; "none": NULL). Only fidelity calibrated has libraries, but a
 * name is checked at all. @out: (transfer full) (nullable) */
bool pod_cli_choose_library (const PodTopology *topology, PodFidelity fidelity, const char *asked, PodLibrary **out, GError **error);
