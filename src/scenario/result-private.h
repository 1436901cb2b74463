#pragma once

#include "scenario/scenario.h"

/* Adds a line to a run's assumptions or warnings. */
void pod_run_assume (GPtrArray *list, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Picks a word out of a list that ends with NULL, or @fallback when the option was not given. Errors: none of the words. */
bool pod_run_choose (const char *option, const char *text, const char *const *words, int fallback, int *out, GError **error);

/* A run of which nothing is known yet. Returns: (transfer full) */
PodRun *pod_run_new (PodRunCache *cache);

/* Fills run->topology, model, job, mesh and schedule from the scenario: everything but the program and its execution. */
bool pod_run_prepare (const PodScenario *scenario, PodRun *run, GError **error);
/* The same but for the mesh: what divides, and nothing placed. */
bool pod_run_prepare_job (const PodScenario *scenario, PodRun *run, GError **error);

/* How a prepared run is executed, with its program where it has one; @dead_links keeps what @out borrows. */
bool pod_run_exec_request (const PodScenario *scenario, const PodRun *run, GArray *dead_links, PodExecRequest *out, GError **error);

/* How the scenario's framework runs kernels: its file and --set framework.FIELD=VALUE. */
bool pod_run_choose_software (const PodScenario *scenario, PodRun *run, GError **error);

/* Reads the options that only the summary needs: before a run, not after it. */
bool pod_run_check_summary (const PodScenario *scenario, GError **error);

/* Fills run->result, with is_brief (PodRunRequest) a part of it, and run->fits from what was executed. Errors: those of pod_run_check_summary. */
bool pod_run_summarise (const PodScenario *scenario, PodRun *run, bool is_brief, GError **error);

/* Reads the terms of memory beside tensors, before a run; counts those that hang on what ran. */
bool pod_run_parse_overhead (const PodScenario *scenario, PodRun *run, GError **error);
void pod_run_set_overhead (PodRun *run);

/* Sets step.time_low_s and time_high_s, and run->extrapolated: what of the run lies outside all that was measured. Calibrated only. */
bool pod_run_set_uncertainty (const PodScenario *scenario, PodRun *run, GError **error);

/* Fills memory.would_fit of a run that does not fit: single changes that would make it, each run, fastest first; else an empty list. */
void pod_run_advise (const PodScenario *scenario, PodRun *run);

/* --mesh and --shard become --layout, with --map, --order and --sequence-parallel in its words. Returns: (transfer full) a scenario without
 * a mesh; what it says is added to @assumptions. Errors as pod_mesh_shardings_parse. */
PodScenario *pod_scenario_from_mesh (const PodScenario *scenario, PodMeshShardings *shardings, GPtrArray *assumptions, GError **error);
/* An error about such a scenario's layout speaks of the mesh. */
void pod_scenario_tell_mesh (const PodScenario *scenario, const PodMeshShardings *shardings, GError **error);
