#pragma once

#include <stdint.h>

/* splitmix64's finaliser (Steele, Lea, Flood 2014): mixes 64 bits well enough that equal sums mean equal multisets. */
static inline uint64_t
pod_mix (uint64_t x)
{
  x += UINT64_C (0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C (0x94d049bb133111eb);
  return x ^ (x >> 31);
}
