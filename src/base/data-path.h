#pragma once

#include <glib.h>

/* Finds data files: @name as a path when it has a '/' or exists as given; else in each folder of
 * PODSIM_PATH (colon-separated; both FOLDER/name and FOLDER/subfolder/name are tried), then the source
 * tree (POD_SOURCE_DIR, compiled in, when it exists), then the installed folder (POD_DATA_DIR).
 * @subfolder is "topologies", "topologies/chips", "workloads/models", ...; @suffix ".xml" is tried too.
 * Returns: (transfer full) (nullable) NULL when nowhere. */
char *pod_data_find (const char *subfolder, const char *name, const char *suffix);

/* All basenames without @suffix in that subfolder over the whole search path, sorted, unique.
 * Returns: (transfer full) (element-type utf8) */
GPtrArray *pod_data_list (const char *subfolder, const char *suffix);

/* The nearest of @names to @wrong by edit distance (<= 3), for "did you mean". (transfer none) (nullable) */
const char *pod_data_nearest (GPtrArray *names, const char *wrong);
