#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* What a quantity measures; decides which suffixes are legal and what a bare number means. */
typedef enum
{
  POD_UNIT_COUNT,       /* "4096", "32Ki", "2.5e12", "4M": no unit; K/M/G/T/P 1000s, Ki.. 1024s */
  POD_UNIT_BYTES,       /* "4MiB", "1GB", "512" (bare = bytes) */
  POD_UNIT_BYTES_PER_S, /* "450GB/s", "400Gb/s" (bits); a bare number is an error */
  POD_UNIT_SECONDS,     /* "1us", "10 ns", "2.5ms", "3s", "1h"; bare = error */
  POD_UNIT_FLOPS,       /* "2.5e12", "1 TFLOP" */
  POD_UNIT_FLOPS_PER_S, /* "459 TFLOP/s", "4.59e14" (bare = FLOP/s), "TOP/s" too */
  POD_UNIT_HERTZ,       /* "1.75 GHz" */
  POD_UNIT_WATTS,       /* "700 W" */
  POD_UNIT_USD_PER_H,   /* "4.2", "4.2 USD/h" */
  POD_UNIT_RATIO,       /* "0.4", "40%" */
} PodUnit;

#define POD_PS_PER_S INT64_C (1000000000000)

/* Reads a whole quantity (blanks between number and unit are fine; trailing text is an error).
 * NaN, infinities and negative values are errors, and so is, but for counts, what is not 0 and not
 * between 1e-30 and 1e30. Locale-free. SI base units come out: bytes,
 * bytes/s, s, FLOPs. Error: POD_ERROR_INVALID naming the text and what would be right. O(length). */
bool pod_parse_quantity (const char *text, PodUnit unit, double *out, GError **error);

/* As above for whole numbers that must be exact (bytes, counts): "4MiB", "1.5GB" is fine when the
 * product is whole, "0.3 B" is an error, as is 2^64 and beyond. unit is COUNT or BYTES. */
bool pod_parse_whole (const char *text, PodUnit unit, uint64_t *out, GError **error);

/* Seconds to the clock: rounds to the nearest picosecond. Returns false beyond +-9.2e18 ps or NaN. */
bool pod_seconds_to_ps (double seconds, int64_t *out_ps);

/* Text for people, 3-4 significant digits: "4.55 ns", "1.23 s", "35.1 GiB" style is NOT used: bytes
 * are decimal ("95.0 GB") except where is_binary asks for GiB. Returns: (transfer full) */
char *pod_format_seconds (double seconds);
char *pod_format_bytes (double bytes, bool is_binary);
char *pod_format_bytes_per_s (double bytes_per_s);
char *pod_format_flops (double flops); /* "4.59e+14" scaled: "459 TFLOP" */
char *pod_format_count (double count); /* "70.6 B", "1.05 M" for big, plain under 10000 */

/* The shortest decimal that reads back as the same double, locale-free: "0.1", "4.59e+14", "1024".
 * NaN and infinities give "null" (JSON). Returns: (transfer full) */
char *pod_format_double (double value);
