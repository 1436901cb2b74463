#pragma once

#include <stdint.h>

/* Sets that are joined: an array with each element's parent, at first itself; that of a set's least element is itself. Paths are halved as they
 * are gone (Tarjan and van Leeuwen, 1984): amortised O(log n). */

static inline uint32_t
pod_set_root (uint32_t *parent, uint32_t i)
{
  while (parent[i] != i)
    i = parent[i] = parent[parent[i]];
  return i;
}

static inline void
pod_set_join (uint32_t *parent, uint32_t a, uint32_t b)
{
  a = pod_set_root (parent, a);
  b = pod_set_root (parent, b);
  if (a < b)
    parent[b] = a;
  else
    parent[a] = b;
}
