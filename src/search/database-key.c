#include <string.h>

#include "base/data-path.h"
#include "search/database.h"

/* Which runs are the same. */

/* The contents of @file; a file that cannot be read counts as its name, for then the run says what is wrong with it. */
static void
add_file (GChecksum *sum, const char *file)
{
  g_autofree char *text = NULL;
  gsize length = 0;

  g_checksum_update (sum, (const guchar *) file, (gssize) strlen (file) + 1);
  if (g_file_get_contents (file, &text, &length, NULL))
    g_checksum_update (sum, (const guchar *) text, (gssize) length);
}

/* Every file of a data folder with @suffix, by name: what a machine or model names in turn is among them. */
static void
add_folder (GChecksum *sum, const char *folder, const char *suffix)
{
  g_autoptr (GPtrArray) names = pod_data_list (folder, suffix);

  for (guint i = 0; i < names->len; i++)
    {
      g_autofree char *file = pod_data_find (folder, g_ptr_array_index (names, i), suffix);

      if (file != NULL)
        add_file (sum, file);
    }
}

char *
pod_database_inputs (void)
{
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);

  add_file (sum, "/proc/self/exe");
  add_folder (sum, "topologies", ".xml");
  add_folder (sum, "topologies/chips", ".xml");
  add_folder (sum, "topologies/libraries", ".xml");
  add_folder (sum, "workloads/models", ".xml");
  add_folder (sum, "workloads/models", ".json");
  add_folder (sum, "workloads/schedules", ".csv");
  return g_strdup (g_checksum_get_string (sum));
}

/* The files are read for each key: sweeps vary them, and what one says may change between two runs of podsim. */
char *
pod_database_key (const char *inputs, const PodScenario *scenario)
{
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  const char *const files[] = { scenario->topology, scenario->model, scenario->library, scenario->schedule, scenario->expert_imbalance };

  for (unsigned i = 0; i < G_N_ELEMENTS (files); i++)
    if (files[i] != NULL)
      add_file (sum, files[i]);
  g_checksum_update (sum, (const guchar *) inputs, -1);
  for (const PodOption *option = pod_scenario_options; option->name != NULL; option++)
    if (pod_scenario_is_set (scenario, option))
      {
        g_autofree char *value = pod_scenario_get (scenario, option);

        g_checksum_update (sum, (const guchar *) option->name, (gssize) strlen (option->name) + 1);
        g_checksum_update (sum, (const guchar *) value, (gssize) strlen (value) + 1);
      }
  return g_strdup (g_checksum_get_string (sum));
}
