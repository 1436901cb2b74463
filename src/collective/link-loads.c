#include "collective/plan-private.h"

void
pod_link_loads_init (PodLinkLoads *loads, uint32_t n_expected)
{
  uint32_t n_slots = 32;

  while (n_slots < 2 * (uint64_t) n_expected && n_slots < UINT32_C (1) << 31)
    n_slots *= 2;
  *loads = (PodLinkLoads){
    .capacity = n_slots / 2,
    .links = g_new (uint32_t, n_slots / 2),
    .bytes = g_new (double, n_slots / 2),
    .n_slots = n_slots,
    .slots = g_new0 (uint32_t, n_slots),
  };
}

void
pod_link_loads_clear (PodLinkLoads *loads)
{
  g_free (loads->links);
  g_free (loads->bytes);
  g_free (loads->slots);
  *loads = (PodLinkLoads){ 0 };
}

/* Multiplicative hashing: link ids are dense, so neighbours must spread. */
static uint32_t
first_slot (const PodLinkLoads *loads, uint32_t link)
{
  return (uint32_t) (((uint64_t) link * UINT64_C (0x9E3779B97F4A7C15)) >> 32)
         & (loads->n_slots - 1);
}

static void
grow (PodLinkLoads *loads)
{
  loads->capacity *= 2;
  loads->n_slots *= 2;
  loads->links = g_renew (uint32_t, loads->links, loads->capacity);
  loads->bytes = g_renew (double, loads->bytes, loads->capacity);
  g_free (loads->slots);
  loads->slots = g_new0 (uint32_t, loads->n_slots);
  for (uint32_t i = 0; i < loads->n; i++)
    {
      uint32_t slot = first_slot (loads, loads->links[i]);

      while (loads->slots[slot] != 0)
        slot = (slot + 1) & (loads->n_slots - 1);
      loads->slots[slot] = i + 1;
    }
}

void
pod_link_loads_add (PodLinkLoads *loads, uint32_t link, double bytes)
{
  uint32_t slot = first_slot (loads, link);

  for (; loads->slots[slot] != 0; slot = (slot + 1) & (loads->n_slots - 1))
    if (loads->links[loads->slots[slot] - 1] == link)
      {
        loads->bytes[loads->slots[slot] - 1] += bytes;
        return;
      }
  if (loads->n == loads->capacity)
    {
      grow (loads);
      pod_link_loads_add (loads, link, bytes);
      return;
    }
  loads->links[loads->n] = link;
  loads->bytes[loads->n] = bytes;
  loads->slots[slot] = ++loads->n;
}

double
pod_link_loads_time (const PodPlanRequest *request, PodFidelity fidelity)
{
  const PodLinkLoads *loads = &request->loads;
  double slowest_s = 0;

  for (uint32_t i = 0; i < loads->n; i++)
    if (loads->bytes[i] > 0)
      slowest_s = MAX (
          slowest_s, loads->bytes[i]
                         / pod_collective_link_rate (request->topology, fidelity, loads->links[i]));
  return slowest_s;
}
