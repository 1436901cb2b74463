#include "search/database.h"

#include "base/error.h"

/* What stands in for the database where the program is built without SQLite. */
#ifndef POD_HAS_SQLITE

bool
pod_database_is_built (void)
{
  return false;
}

PodDatabase *
pod_database_open (const char *file, GError **error)
{
  g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED, "%s: this podsim was built without SQLite: install libsqlite3-dev and build it again", file);
  return NULL;
}

void
pod_database_close (PodDatabase *database)
{
  (void) database;
}

bool
pod_database_find (PodDatabase *database, const char *key, PodRow *row)
{
  (void) database, (void) key, (void) row;
  return false;
}

bool
pod_database_add (PodDatabase *database, char *const *keys, PodScenario *const *scenarios, const PodRow *rows, unsigned n, GError **error)
{
  (void) database, (void) keys, (void) scenarios, (void) rows, (void) n, (void) error;
  return false;
}

GPtrArray *
pod_database_select (PodDatabase *database, const char *where, GError **error)
{
  (void) database, (void) where, (void) error;
  return NULL;
}

#endif
