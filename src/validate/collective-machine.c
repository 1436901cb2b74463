#include "validate/collective-machine.h"

#include "base/error.h"

struct PodCollectiveMachines
{
  PodTopology *domain;
  GPtrArray *clusters; /* (element-type PodTopology) */
};

static void
free_topology (gpointer data)
{
  pod_topology_free (data);
}

static PodTopology *
load_domain (const char *chip, GError **error)
{
  g_autoptr (PodChip) loaded = pod_chip_load (chip, NULL, error);
  g_autofree char *shape = NULL;

  if (loaded == NULL)
    return NULL;
  if (loaded->scale_up_chips < 2)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                   "%s has no scale-up domain: these tables are of GPUs", chip);
      return NULL;
    }
  shape = g_strdup_printf ("%s:%u", chip, loaded->scale_up_chips);
  return pod_topology_load (shape, error);
}

PodCollectiveMachines *
pod_collective_machines_new (const char *chip, GError **error)
{
  PodTopology *domain = load_domain (chip, error);
  PodCollectiveMachines *machines;

  if (domain == NULL)
    return NULL;
  machines = g_new0 (PodCollectiveMachines, 1);
  machines->domain = domain;
  machines->clusters = g_ptr_array_new_with_free_func (free_topology);
  return machines;
}

void
pod_collective_machines_free (PodCollectiveMachines *machines)
{
  if (machines == NULL)
    return;
  pod_topology_free (machines->domain);
  g_ptr_array_unref (machines->clusters);
  g_free (machines);
}

const PodTopology *
pod_collective_machines_domain (const PodCollectiveMachines *machines)
{
  return machines->domain;
}

bool
pod_collective_machines_find (PodCollectiveMachines *machines, uint32_t n_ranks,
                              const PodTopology **out, GError **error)
{
  uint32_t n_domain = machines->domain->n_devices;
  g_autofree char *shape = NULL;
  PodTopology *cluster;

  *out = n_ranks <= n_domain ? machines->domain : NULL;
  for (guint i = 0; i < machines->clusters->len && *out == NULL; i++)
    {
      cluster = g_ptr_array_index (machines->clusters, i);
      if (cluster->n_devices == n_ranks)
        *out = cluster;
    }
  if (*out != NULL || n_ranks % n_domain != 0)
    return true;
  shape = g_strdup_printf ("%s:%ux%u", machines->domain->chip->name,
                           machines->domain->chip->scale_up_chips, n_ranks / n_domain);
  cluster = pod_topology_load (shape, error);
  if (cluster == NULL)
    return false;
  g_ptr_array_add (machines->clusters, cluster);
  *out = cluster;
  return true;
}
