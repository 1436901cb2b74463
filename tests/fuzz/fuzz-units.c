#include "fuzz/fuzz-input.h"

#include <math.h>

#include "base/units.h"

/* A quantity; the first byte picks what it measures. What was read is printed and read back. */

static void
check_formats (double value)
{
  char *(*const formats[]) (double) = { pod_format_seconds, pod_format_bytes_per_s, pod_format_flops, pod_format_count };
  g_autofree char *shortest = pod_format_double (value);
  g_autofree char *bytes = pod_format_bytes (value, true);
  g_autofree char *decimal_bytes = pod_format_bytes (value, false);
  int64_t ps;

  g_assert (g_ascii_strtod (shortest, NULL) == value);
  g_assert (*bytes != '\0' && *decimal_bytes != '\0');
  for (size_t i = 0; i < G_N_ELEMENTS (formats); i++)
    {
      g_autofree char *text = formats[i](value);

      g_assert (*text != '\0');
    }
  (void) pod_seconds_to_ps (value, &ps);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) whole_error = NULL;
  double value = 0;
  uint64_t whole = 0;

  fuzz_begin ();
  if (size == 0)
    return 0;

  PodUnit unit = data[0] % (POD_UNIT_RATIO + 1);
  g_autofree char *text = fuzz_text (data + 1, size - 1);
  bool is_good = pod_parse_quantity (text, unit, &value, &error);

  fuzz_judge (is_good, &error);
  if (is_good)
    {
      g_assert (isfinite (value) && value >= 0);
      check_formats (value);
    }
  if (unit != POD_UNIT_COUNT && unit != POD_UNIT_BYTES)
    return 0;

  bool is_whole = pod_parse_whole (text, unit, &whole, &whole_error);

  fuzz_judge (is_whole, &whole_error);
  g_assert (!is_whole || is_good);
  g_assert (!is_whole || fabs ((double) whole - value) <= value * 1e-15);
  return 0;
}
