#include "collective/plan-cache.h"

#include <string.h>

#include "base/mix.h"

struct PodPlanCache
{
  GHashTable *plans; /* (element-type Known Known) */
  size_t bytes;
};

typedef struct
{
  PodPlanQuery query; /* its group is the one below; a known one's algorithm is owned */
  PodGroup group;     /* a known one's devices are owned */
  guint hash;
  PodPlan *plan; /* (owned) */
} Known;

static void
known_free (void *data)
{
  Known *known = data;

  pod_plan_free (known->plan);
  g_free ((char *) known->query.algorithm);
  g_free ((uint32_t *) known->group.devices);
  g_free (known);
}

static guint
hash_query (const PodPlanQuery *query)
{
  const PodGroup *group = query->group;
  uint64_t hash = pod_mix (query->payload_bytes) ^ ((uint64_t) query->kind << 8)
                  ^ ((uint64_t) query->dtype << 16) ^ ((uint64_t) query->fidelity << 24)
                  ^ (uintptr_t) query->topology;

  hash = pod_mix (hash ^ (uintptr_t) query->library)
         ^ (query->algorithm != NULL ? g_str_hash (query->algorithm) : 0);
  hash = pod_mix (hash + group->n_devices);
  for (uint32_t i = 0; i < group->n_devices; i++) /* FNV's step: positions count */
    hash = (hash ^ group->devices[i]) * UINT64_C (0x100000001b3);
  return (guint) pod_mix (hash);
}

static guint
known_hash (gconstpointer key)
{
  return ((const Known *) key)->hash;
}

static bool
groups_are_equal (const PodGroup *a, const PodGroup *b)
{
  if (a->n_devices != b->n_devices || a->n_factors != b->n_factors
      || memcmp (a->devices, b->devices, a->n_devices * sizeof *a->devices) != 0)
    return false;
  for (unsigned f = 0; f < a->n_factors; f++)
    if (a->factors[f].dim != b->factors[f].dim || a->factors[f].stride != b->factors[f].stride
        || a->factors[f].size != b->factors[f].size)
      return false;
  return true;
}

static gboolean
known_equal (gconstpointer a, gconstpointer b)
{
  const PodPlanQuery *x = &((const Known *) a)->query;
  const PodPlanQuery *y = &((const Known *) b)->query;

  return x->topology == y->topology && x->library == y->library && x->fidelity == y->fidelity
         && x->kind == y->kind && x->dtype == y->dtype && x->payload_bytes == y->payload_bytes
         && x->phases == y->phases && x->is_folded == y->is_folded
         && g_strcmp0 (x->algorithm, y->algorithm) == 0
         && groups_are_equal (&((const Known *) a)->group, &((const Known *) b)->group);
}

PodPlanCache *
pod_plan_cache_new (void)
{
  PodPlanCache *cache = g_new0 (PodPlanCache, 1);

  cache->plans = g_hash_table_new_full (known_hash, known_equal, NULL, known_free);
  return cache;
}

void
pod_plan_cache_free (PodPlanCache *cache)
{
  if (cache == NULL)
    return;
  g_hash_table_unref (cache->plans);
  g_free (cache);
}

size_t
pod_plan_cache_bytes (const PodPlanCache *cache)
{
  return cache->bytes;
}

static const PodPlan *
keep (PodPlanCache *cache, const Known *asked, PodPlan *plan)
{
  Known *known = g_memdup2 (asked, sizeof *asked);
  const size_t devices_bytes = asked->group.n_devices * sizeof *asked->group.devices;

  known->group.devices = g_memdup2 (asked->group.devices, devices_bytes);
  known->query.algorithm = g_strdup (asked->query.algorithm);
  known->query.group = &known->group;
  known->plan = plan;
  cache->bytes
      += sizeof *known + devices_bytes + sizeof *plan + plan->n_entries * sizeof *plan->entries;
  g_hash_table_add (cache->plans, known);
  return plan;
}

const PodPlan *
pod_plan_cache_query (PodPlanCache *cache, const PodPlanQuery *query, GError **error)
{
  const Known asked = { .query = *query, .group = *query->group, .hash = hash_query (query) };
  const Known *known = g_hash_table_lookup (cache->plans, &asked);
  PodPlan *plan;

  g_assert (query->traffic == NULL && query->steps == NULL && query->borrowed == NULL);
  if (known != NULL)
    return known->plan;
  plan = pod_collective_plan_query (query, error);
  return plan != NULL ? keep (cache, &asked, plan) : NULL;
}
