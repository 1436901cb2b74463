#include "support/plan-case.h"

#include <math.h>
#include <string.h>

#include <check.h>

void
plan_case_clear (PlanCase *c)
{
  pod_plan_free (c->plan);
  g_free (c->bytes);
  g_free (c->devices);
  pod_topology_free (c->topology);
}

void
plan_case_start (PlanCase *c, const char *machine)
{
  g_autoptr (GError) error = NULL;

  *c = (PlanCase){ .topology = pod_topology_load (machine, &error) };
  ck_assert_msg (c->topology != NULL, "%s: %s", machine, error == NULL ? "?" : error->message);
}

void
plan_case_take_factors (PlanCase *c, unsigned n_factors, const PodGroupFactor *factors)
{
  uint32_t n = 1;

  memcpy (c->group.factors, factors, n_factors * sizeof *factors);
  c->group.n_factors = n_factors;
  for (unsigned f = 0; f < n_factors; f++)
    n *= factors[f].size;
  c->devices = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    {
      unsigned coords[POD_MAX_DIMS] = { 0 }, core = 0;
      uint32_t rest = i;

      for (unsigned f = 0; f < n_factors; f++)
        {
          unsigned at = rest % factors[f].size * factors[f].stride;

          rest /= factors[f].size;
          *(factors[f].dim == POD_DIM_CORE ? &core : &coords[factors[f].dim]) += at;
        }
      c->devices[i] = pod_topology_device (c->topology, coords, core);
    }
  c->group.n_devices = n;
  c->group.devices = c->devices;
}

void
plan_case_take_list (PlanCase *c, uint32_t n, const uint32_t *devices)
{
  c->devices = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    c->devices[i] = devices == NULL ? i : devices[i];
  c->group.n_devices = n;
  c->group.devices = c->devices;
}

void
plan_case_plan (PlanCase *c, PodCollectiveKind kind, const char *algorithm)
{
  g_autoptr (GError) error = NULL;
  double busiest = 0;

  g_clear_pointer (&c->plan, pod_plan_free);
  g_free (c->bytes);
  c->bytes = g_new0 (double, c->topology->n_links);
  c->plan = pod_collective_plan (c->topology, POD_FIDELITY_IDEAL, &c->group, kind, 1000000000,
                                 algorithm, &error);
  ck_assert_msg (c->plan != NULL, "%s", error == NULL ? "?" : error->message);
  for (uint32_t i = 0; i < c->plan->n_entries; i++)
    {
      const PodPathEntry *entry = &c->plan->entries[i];

      ck_assert_uint_lt (entry->link, c->topology->n_links);
      ck_assert_double_eq (c->bytes[entry->link], 0); /* a link stands once */
      ck_assert_uint_gt (entry->share_q32, 0);
      c->bytes[entry->link] = (double) entry->share_q32 / 4294967296.0 * c->plan->busiest_ratio;
      busiest = MAX (busiest, (double) entry->share_q32);
    }
  if (c->plan->n_entries > 0)
    ck_assert_double_eq (busiest, 4294967296.0);
}

double
plan_case_ici_bytes (const PlanCase *c, uint32_t device, unsigned dim, int sign)
{
  uint32_t link, to;

  ck_assert (pod_topology_torus_link (c->topology, device, dim, sign, &link, &to));
  return c->bytes[link];
}

void
plan_case_assert_all (const PlanCase *c, uint32_t n_entries, double expected)
{
  ck_assert_uint_eq (c->plan->n_entries, n_entries);
  for (uint32_t i = 0; i < n_entries; i++)
    assert_near (c->bytes[c->plan->entries[i].link], expected);
}

void
plan_case_assert_conserved (const PlanCase *c, double need)
{
  g_autofree double *into = g_new0 (double, c->topology->n_vertices);

  for (uint32_t link = 0; link < c->topology->n_links; link++)
    if (c->bytes[link] > 0)
      {
        PodLink description;

        pod_topology_link (c->topology, link, &description);
        into[description.to] += c->bytes[link];
      }
  for (uint32_t i = 0; i < c->group.n_devices; i++)
    ck_assert_double_ge (into[c->group.devices[i]], need - 1e-7);
}
