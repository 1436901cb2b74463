#include "scenario/run-cache.h"

/* Loaded parts of scenarios by what was said of them. */

struct PodRunCache
{
  gatomicrefcount n_refs;
  GHashTable *topologies; /* (element-type utf8 Part) */
  GHashTable *models;
  GHashTable *libraries;
  GHashTable *documents;
  PodPlanCache *plans;
};

#define MOST_PLAN_BYTES ((size_t) 64 << 20)

/* Something that was loaded, and what loading it assumed. */
typedef struct
{
  void *data;             /* (owned) */
  GDestroyNotify free;
  GPtrArray *assumptions; /* (element-type utf8) */
} Part;

static void
part_free (void *data)
{
  Part *part = data;

  part->free (part->data);
  g_ptr_array_unref (part->assumptions);
  g_free (part);
}

static GHashTable *
parts_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, part_free);
}

PodRunCache *
pod_run_cache_new (void)
{
  PodRunCache *cache = g_new0 (PodRunCache, 1);

  g_atomic_ref_count_init (&cache->n_refs);
  cache->topologies = parts_new ();
  cache->models = parts_new ();
  cache->libraries = parts_new ();
  cache->documents = parts_new ();
  cache->plans = pod_plan_cache_new ();
  return cache;
}

PodRunCache *
pod_run_cache_ref (PodRunCache *cache)
{
  g_atomic_ref_count_inc (&cache->n_refs);
  return cache;
}

void
pod_run_cache_unref (PodRunCache *cache)
{
  if (cache == NULL || !g_atomic_ref_count_dec (&cache->n_refs))
    return;
  pod_plan_cache_free (cache->plans);
  g_hash_table_unref (cache->topologies);
  g_hash_table_unref (cache->models);
  g_hash_table_unref (cache->libraries);
  g_hash_table_unref (cache->documents);
  g_free (cache);
}

/* A character that no option's value holds stands between the parts of a key. */
static void
append_text (GString *key, const char *text)
{
  g_string_append (key, text != NULL ? text : "\2");
  g_string_append_c (key, '\1');
}

static void
append_set (GString *key, const PodScenario *scenario)
{
  for (guint i = 0; i < scenario->set->len; i++)
    append_text (key, g_ptr_array_index (scenario->set, i));
}

static char *
topology_key (const PodScenario *scenario)
{
  GString *key = g_string_new (NULL);

  append_text (key, scenario->topology);
  append_text (key, scenario->topology_format);
  g_string_append_printf (key, "%" G_GUINT64_FORMAT "\1", (guint64) (uintptr_t) scenario->load_topology);
  append_set (key, scenario);
  return g_string_free (key, FALSE);
}

/* Packed documents change the windows of its layers (choose.c). */
static char *
model_key (const PodScenario *scenario)
{
  const uint64_t shape[] = { scenario->layers, scenario->hidden, scenario->heads, scenario->kv_heads, scenario->head_dim, scenario->ffn, scenario->vocab, scenario->mtp, scenario->document_len };
  GString *key = g_string_new (NULL);

  append_text (key, scenario->model);
  for (unsigned i = 0; i < G_N_ELEMENTS (shape); i++)
    g_string_append_printf (key, "%" G_GUINT64_FORMAT "\1", shape[i]);
  append_set (key, scenario);
  return g_string_free (key, FALSE);
}

/* Says again what loading assumed. */
static void *
take (const Part *part, GPtrArray *assumptions)
{
  for (guint i = 0; i < part->assumptions->len; i++)
    g_ptr_array_add (assumptions, g_strdup (g_ptr_array_index (part->assumptions, i)));
  return part->data;
}

typedef void *(*Load) (const PodScenario *scenario, GPtrArray *assumptions, GError **error);

/* Finds a part, or loads it; what cannot be loaded is not kept. */
static void *
find (GHashTable *parts, char *key, Load load, GDestroyNotify free, const PodScenario *scenario, GPtrArray *assumptions, GError **error)
{
  g_autofree char *owned_key = key;
  Part *part = g_hash_table_lookup (parts, key);

  if (part == NULL)
    {
      g_autoptr (GPtrArray) own = g_ptr_array_new_with_free_func (g_free);
      void *data = load (scenario, own, error);

      if (data == NULL)
        return NULL;
      part = g_new (Part, 1);
      *part = (Part){ .data = data, .free = free, .assumptions = g_steal_pointer (&own) };
      g_hash_table_insert (parts, g_steal_pointer (&owned_key), part);
    }
  return take (part, assumptions);
}

static void *
load_topology (const PodScenario *scenario, GPtrArray *assumptions, GError **error)
{
  return pod_scenario_topology (scenario, assumptions, error);
}

static void
free_topology (void *topology)
{
  pod_topology_free (topology);
}

static void *
load_model (const PodScenario *scenario, GPtrArray *assumptions, GError **error)
{
  return pod_scenario_model (scenario, assumptions, error);
}

static void
free_model (void *model)
{
  pod_model_free (model);
}

static void
free_library (void *library)
{
  pod_library_free (library);
}

PodTopology *
pod_run_cache_topology (PodRunCache *cache, const PodScenario *scenario, GPtrArray *assumptions, GError **error)
{
  if (cache == NULL)
    return pod_scenario_topology (scenario, assumptions, error);
  return find (cache->topologies, topology_key (scenario), load_topology, free_topology, scenario, assumptions, error);
}

PodModel *
pod_run_cache_model (PodRunCache *cache, const PodScenario *scenario, GPtrArray *assumptions, GError **error)
{
  if (cache == NULL)
    return pod_scenario_model (scenario, assumptions, error);
  return find (cache->models, model_key (scenario), load_model, free_model, scenario, assumptions, error);
}

/* Puts a part under its name. Returns: it */
static void *
keep (GHashTable *parts, const char *name, void *data, GDestroyNotify free)
{
  Part *part = g_new (Part, 1);

  *part = (Part){ .data = data, .free = free, .assumptions = g_ptr_array_new () };
  g_hash_table_insert (parts, g_strdup (name), part);
  return data;
}

PodLibrary *
pod_run_cache_library (PodRunCache *cache, const char *name, GError **error)
{
  const Part *part = cache != NULL ? g_hash_table_lookup (cache->libraries, name) : NULL;
  PodLibrary *library;

  if (part != NULL)
    return part->data;
  library = pod_library_load (name, error);
  return cache == NULL || library == NULL ? library : keep (cache->libraries, name, library, free_library);
}

PodPlanCache *
pod_run_cache_plans (PodRunCache *cache)
{
  if (cache == NULL)
    return NULL;
  if (pod_plan_cache_bytes (cache->plans) > MOST_PLAN_BYTES)
    {
      pod_plan_cache_free (cache->plans);
      cache->plans = pod_plan_cache_new ();
    }
  return cache->plans;
}

static void
free_document (void *document)
{
  pod_xml_free (document);
}

PodXml *
pod_run_cache_document (PodRunCache *cache, const char *name, PodXml *(*load) (const char *name, GError **error), GError **error)
{
  g_autofree char *key = NULL;
  const Part *part;
  PodXml *document;

  if (cache == NULL)
    return load (name, error);
  key = g_strdup_printf ("%" G_GUINT64_FORMAT "\1%s", (guint64) (uintptr_t) load, name);
  part = g_hash_table_lookup (cache->documents, key);
  if (part != NULL)
    return part->data;
  document = load (name, error);
  return document != NULL ? keep (cache->documents, key, document, free_document) : NULL;
}
