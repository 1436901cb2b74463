#include "base/xml-known.h"

#include <string.h>

/* Eight bytes at a time; each step is one-to-one, so that one changed word always changes the sum. The multiplier is 2^64 over the
 * golden ratio (Knuth, The Art of Computer Programming 3, 6.4). */
static uint64_t
mix (uint64_t sum, const char *text, size_t n_bytes)
{
  const uint64_t multiplier = 0x9e3779b97f4a7c15;

  for (size_t i = 0; i < n_bytes; i += sizeof (uint64_t))
    {
      uint64_t word = 0;

      memcpy (&word, text + i, n_bytes - i < sizeof word ? n_bytes - i : sizeof word);
      sum = (sum ^ word) * multiplier;
      sum ^= sum >> 29;
    }
  sum = (sum ^ n_bytes) * multiplier;
  return sum ^ sum >> 32;
}

uint64_t
pod_xml_key (const char *text, size_t n_bytes, const char *schema, size_t n_schema_bytes)
{
  return mix (mix (0, schema, n_schema_bytes), text, n_bytes);
}

bool
pod_xml_is_known (uint64_t key)
{
  size_t low = 0;
  size_t high = pod_n_known_xml;

  while (low < high)
    {
      const size_t middle = low + (high - low) / 2;

      if (pod_known_xml[middle] < key)
        low = middle + 1;
      else
        high = middle;
    }
  return low < pod_n_known_xml && pod_known_xml[low] == key;
}
