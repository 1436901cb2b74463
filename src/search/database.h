#pragma once

#include "search/row.h"

/* One SQLite file that keeps every input and every result of runs: docs/guide/database.md. Any number of searches and sweeps may have it open
 * at once (write-ahead log); rows are kept when the call that adds them returns, whatever becomes of the program later. */
typedef struct PodDatabase PodDatabase;

/* Whether the program was built with SQLite. */
bool pod_database_is_built (void);

/* Opens or makes @file. Errors: UNSUPPORTED when the program was built without SQLite; PARSE for a file that is no such database; IO. */
PodDatabase *pod_database_open (const char *file, GError **error);
void pod_database_close (PodDatabase *database);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PodDatabase, pod_database_close)

/* What makes two runs the same: SHA-256 of the program, of its machines, chips, libraries, schedules and models, of every option that is set, and
 * of the files that options name. @inputs: of pod_database_inputs. Returns: (transfer full) */
char *pod_database_key (const char *inputs, const PodScenario *scenario);
/* The digest of the program and its data, to be taken once. Returns: (transfer full) */
char *pod_database_inputs (void);

/* Fills all of @row but its candidate from what is kept under @key; false when there is nothing. */
bool pod_database_find (PodDatabase *database, const char *key, PodRow *row);
/* Keeps rows, all or none. @keys, @scenarios, @rows: @n of each; a key that is there already is replaced. */
bool pod_database_add (PodDatabase *database, char *const *keys, PodScenario *const *scenarios, const PodRow *rows, unsigned n, GError **error);

/* Cells of the runs for which the SQL expression @where (NULL: all) holds, by their options, the heading first: one order, however they came. Errors: INVALID
 * with SQLite's words about @where. Returns: (transfer full) (element-type GStrv) */
GPtrArray *pod_database_select (PodDatabase *database, const char *where, GError **error);
