#include "collective/plan-private.h"

#include <string.h>

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

/* A slot each costs no more than eight times those that are expected: then neighbours lie side by
 * side. */
void
pod_link_loads_reset (PodLinkLoads *loads, uint32_t n_expected, uint32_t n_links)
{
  bool is_direct = n_links / 8 <= n_expected;

  if (loads->slots == NULL || loads->n_slots < 2 * (uint64_t) n_expected
      || (is_direct && loads->n_slots < n_links))
    {
      pod_link_loads_clear (loads);
      pod_link_loads_init (loads, is_direct ? MAX (n_expected, (n_links + 1) / 2) : n_expected);
    }
  else
    memset (loads->slots, 0, loads->n_slots * sizeof *loads->slots);
  loads->n = 0;
  loads->is_direct = is_direct;
}

/* Multiplicative hashing: link ids are dense, so neighbours must spread. */
static uint32_t
first_slot (const PodLinkLoads *loads, uint32_t link)
{
  if (loads->is_direct)
    return link;
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
pod_slowest_s (const PodSlowest *slowest)
{
  double slowest_s = slowest->slowest_s;

  for (unsigned class = 0; class < POD_N_LINK_CLASSES; class++)
    if (slowest->most[class] > 0)
      slowest_s = MAX (slowest_s, slowest->most[class]
                                      / pod_collective_link_rate (slowest->topology, slowest->fidelity,
                                                                  slowest->link[class]));
  return slowest_s;
}

double
pod_link_loads_time (const PodPlanRequest *request, PodFidelity fidelity)
{
  const PodLinkLoads *loads = &request->loads;
  PodSlowest slowest = { .topology = request->topology, .fidelity = fidelity };

  for (uint32_t i = 0; i < loads->n; i++)
    pod_slowest_add (&slowest, loads->links[i], loads->bytes[i]);
  return pod_slowest_s (&slowest);
}
