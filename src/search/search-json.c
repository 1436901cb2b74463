#include "search/search.h"

static void
add_rows (JsonObject *object, const char *path, const PodSpace *space, const GArray *rows)
{
  JsonArray *array = pod_result_get_array (object, path);

  for (guint i = 0; rows != NULL && i < rows->len; i++)
    {
      const PodRow *row = &g_array_index (rows, PodRow, i);
      JsonObject *entry = pod_row_to_json (row);

      pod_space_describe (space, row->candidate, entry);
      json_array_add_object_element (array, entry);
    }
}

static void
add_families (JsonObject *object, const PodSearchResult *result)
{
  JsonArray *array = pod_result_get_array (object, "rejected");

  for (guint i = 0; i < result->families->len; i++)
    {
      const PodSearchFamily *family = g_ptr_array_index (result->families, i);
      JsonObject *entry = json_object_new ();
      JsonArray *values = pod_result_get_array (entry, "values");

      pod_result_set_string (entry, "reason", family->reason);
      for (guint v = 0; v < family->values->len; v++)
        json_array_add_string_element (values, g_ptr_array_index (family->values, v));
      pod_result_set_int (entry, "candidates", (int64_t) family->n);
      pod_result_set_string (entry, "example", family->message);
      json_array_add_object_element (array, entry);
    }
}

JsonObject *
pod_search_to_json (const PodSpace *space, const PodSearchRequest *request, const PodSearchResult *result)
{
  JsonObject *object = json_object_new ();

  pod_result_set_int (object, "schema_version", 1);
  pod_result_set_string (object, "objective", pod_objective_names[request->objective]);
  pod_result_set_bool (object, "is_partial", result->is_partial);
  pod_result_set_int (object, "candidates.all", (int64_t) result->n_candidates);
  pod_result_set_int (object, "candidates.refused", (int64_t) result->n_refused);
  pod_result_set_int (object, "candidates.too_large", (int64_t) result->n_too_large);
  pod_result_set_int (object, "candidates.beyond", (int64_t) result->n_beyond);
  pod_result_set_int (object, "candidates.fitting", (int64_t) result->n_fitting);
  if (result->least_bytes > 0)
    {
      g_autofree char *words = pod_space_words (space, result->smallest);

      pod_result_set_string (object, "smallest.command", words);
      pod_result_set_double (object, "smallest.least_bytes", result->least_bytes);
      pod_result_set_double (object, "smallest.capacity_bytes", result->most_bytes);
    }
  add_rows (object, "best", space, result->best);
  if (request->has_fronts)
    {
      add_rows (object, "pareto.time_memory", space, result->time_memory);
      add_rows (object, "pareto.time_chips", space, result->time_chips);
    }
  add_families (object, result);
  return object;
}
