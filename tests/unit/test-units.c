#include "base/units.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/error.h"

static const struct
{
  const char *text;
  PodUnit unit;
  double expected;
} quantities[] = {
  { "4096", POD_UNIT_COUNT, 4096 },
  { "32Ki", POD_UNIT_COUNT, 32768 },
  { "32k", POD_UNIT_COUNT, 32000 },
  { "4M", POD_UNIT_COUNT, 4e6 },
  { "2.5e12", POD_UNIT_COUNT, 2.5e12 },
  { "3E", POD_UNIT_COUNT, 3e18 },
  { "3E2", POD_UNIT_COUNT, 300 },
  { ".5", POD_UNIT_COUNT, 0.5 },
  { "0", POD_UNIT_COUNT, 0 },
  { "0.000e99999999999999999999", POD_UNIT_COUNT, 0 },
  { "00012.500", POD_UNIT_COUNT, 12.5 },
  { "1.7976931348623157e308", POD_UNIT_COUNT, 1.7976931348623157e308 },
  { "512", POD_UNIT_BYTES, 512 },
  { "4MiB", POD_UNIT_BYTES, 4194304 },
  { "1GB", POD_UNIT_BYTES, 1e9 },
  { "16 kB", POD_UNIT_BYTES, 16000 },
  { "8b", POD_UNIT_BYTES, 1 },
  { "  2 \t TiB ", POD_UNIT_BYTES, 0x1p41 },
  { "450GB/s", POD_UNIT_BYTES_PER_S, 4.5e11 },
  { "450 GB/s", POD_UNIT_BYTES_PER_S, 4.5e11 },
  { "400Gb/s", POD_UNIT_BYTES_PER_S, 5e10 },
  { "1GiB/s", POD_UNIT_BYTES_PER_S, 0x1p30 },
  { "3.35TB/s", POD_UNIT_BYTES_PER_S, 3.35e12 },
  { "1us", POD_UNIT_SECONDS, 1e-6 },
  { "0.3us", POD_UNIT_SECONDS, 3e-7 },
  { "1\u00b5s", POD_UNIT_SECONDS, 1e-6 },
  { "1\u03bcs", POD_UNIT_SECONDS, 1e-6 },
  { "10 ns", POD_UNIT_SECONDS, 1e-8 },
  { "7ps", POD_UNIT_SECONDS, 7e-12 },
  { "2.5ms", POD_UNIT_SECONDS, 2.5e-3 },
  { "3s", POD_UNIT_SECONDS, 3 },
  { "2min", POD_UNIT_SECONDS, 120 },
  { "1h", POD_UNIT_SECONDS, 3600 },
  { "1.5 d", POD_UNIT_SECONDS, 129600 },
  { "2.5e12", POD_UNIT_FLOPS, 2.5e12 },
  { "1 TFLOP", POD_UNIT_FLOPS, 1e12 },
  { "459 TFLOP/s", POD_UNIT_FLOPS_PER_S, 4.59e14 },
  { "4.59e14", POD_UNIT_FLOPS_PER_S, 4.59e14 },
  { "989TFLOPS", POD_UNIT_FLOPS_PER_S, 9.89e14 },
  { "918 TOP/s", POD_UNIT_FLOPS_PER_S, 9.18e14 },
  { "42.5 EFLOP/s", POD_UNIT_FLOPS_PER_S, 4.25e19 },
  { "1.75 GHz", POD_UNIT_HERTZ, 1.75e9 },
  { "700 W", POD_UNIT_WATTS, 700 },
  { "1.2kW", POD_UNIT_WATTS, 1200 },
  { "4.2", POD_UNIT_USD_PER_H, 4.2 },
  { "4.2 USD/h", POD_UNIT_USD_PER_H, 4.2 },
  { "0.4", POD_UNIT_RATIO, 0.4 },
  { "40%", POD_UNIT_RATIO, 0.4 },
};

START_TEST (quantity_is_read)
{
  g_autoptr (GError) error = NULL;
  double value = -1;

  bool is_good = pod_parse_quantity (quantities[_i].text, quantities[_i].unit, &value, &error);
  ck_assert_msg (is_good, "%s", is_good ? "" : error->message);
  ck_assert_msg (value == quantities[_i].expected, "\"%s\" gave %.17g", quantities[_i].text, value);
}
END_TEST

static const struct
{
  const char *text;
  PodUnit unit;
  const char *message;
} bad_quantities[] = {
  { "", POD_UNIT_COUNT,
    "\"\": is empty, expected a count such as \"4096\", \"32Ki\" or \"2.5e12\"" },
  { "  ", POD_UNIT_SECONDS,
    "\"  \": is empty, expected a time such as \"10 ns\", \"1us\" or \"2.5 s\"" },
  { "450", POD_UNIT_BYTES_PER_S,
    "\"450\": has no unit, expected a bandwidth such as \"450 GB/s\" or \"400 Gb/s\" (bits)" },
  { "1.5", POD_UNIT_SECONDS,
    "\"1.5\": has no unit, expected a time such as \"10 ns\", \"1us\" or \"2.5 s\"" },
  { "700", POD_UNIT_WATTS, "\"700\": has no unit, expected a power such as \"700 W\"" },
  { "2", POD_UNIT_HERTZ, "\"2\": has no unit, expected a frequency such as \"1.75 GHz\"" },
  { "nan", POD_UNIT_RATIO,
    "\"nan\": is not a number, expected a ratio such as \"0.4\" or \"40%\"" },
  { "inf", POD_UNIT_RATIO,
    "\"inf\": is not a number, expected a ratio such as \"0.4\" or \"40%\"" },
  { "-inf", POD_UNIT_RATIO,
    "\"-inf\": is not a number, expected a ratio such as \"0.4\" or \"40%\"" },
  { "-1", POD_UNIT_RATIO, "\"-1\": is negative, expected a ratio such as \"0.4\" or \"40%\"" },
  { "+1", POD_UNIT_RATIO, "\"+1\": is not a number, expected a ratio such as \"0.4\" or \"40%\"" },
  { ".", POD_UNIT_RATIO, "\".\": is not a number, expected a ratio such as \"0.4\" or \"40%\"" },
  { "1e400", POD_UNIT_FLOPS,
    "\"1e400\": is too large, expected a number of FLOPs such as \"2.5e12\" or \"1 TFLOP\"" },
  { "1e308GB", POD_UNIT_BYTES,
    "\"1e308GB\": is too large, expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
  { "1e-400", POD_UNIT_FLOPS,
    "\"1e-400\": is too small, expected a number of FLOPs such as \"2.5e12\" or \"1 TFLOP\"" },
  { "0x10", POD_UNIT_BYTES,
    "\"0x10\": unknown unit \"x10\", expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
  { "1,5GB", POD_UNIT_BYTES,
    "\"1,5GB\": unknown unit \",5GB\", expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
  { "1.2.3", POD_UNIT_USD_PER_H,
    "\"1.2.3\": unknown unit \".3\", expected a price such as \"4.2\" or \"4.2 USD/h\"" },
  { "1 GB 2", POD_UNIT_BYTES,
    "\"1 GB 2\": unknown unit \"GB 2\", expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
  { "1mB", POD_UNIT_BYTES,
    "\"1mB\": unknown unit \"mB\", expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
  { "5GB", POD_UNIT_SECONDS,
    "\"5GB\": unknown unit \"GB\", expected a time such as \"10 ns\", \"1us\" or \"2.5 s\"" },
  { "3 TFLOP", POD_UNIT_FLOPS_PER_S,
    "\"3 TFLOP\": unknown unit \"TFLOP\", expected a FLOP rate such as \"459 TFLOP/s\" or "
    "\"4.59e14\"" },
  { "40 Ki%", POD_UNIT_RATIO,
    "\"40 Ki%\": unknown unit \"Ki%\", expected a ratio such as \"0.4\" or \"40%\"" },
  { "1\n\xff", POD_UNIT_WATTS,
    "\"1 \xef\xbf\xbd\": unknown unit \"\xef\xbf\xbd\", expected a power such as \"700 W\"" },
  { "1e", POD_UNIT_WATTS, "\"1e\": unknown unit \"e\", expected a power such as \"700 W\"" },
};

/* Numbers of every length and size are rounded as strtod rounds them, whichever way they are read. */
START_TEST (quantity_is_rounded_once)
{
  uint64_t state = 1;

  for (int exponent = -28; exponent <= 28; exponent++)
    for (int n_digits = 1; n_digits <= 18; n_digits++)
      for (int i = 0; i < 20; i++)
        {
          g_autofree char *text = NULL;
          uint64_t most = 1;
          double value = 0;

          for (int d = 0; d < n_digits; d++)
            most *= 10;
          state = state * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407); /* Knuth's MMIX */
          text = g_strdup_printf ("%" G_GUINT64_FORMAT "e%d", state % most, exponent);
          ck_assert (pod_parse_quantity (text, POD_UNIT_COUNT, &value, NULL));
          ck_assert_msg (value == g_ascii_strtod (text, NULL), "%s: %.17g", text, value);
        }
}
END_TEST

START_TEST (bad_quantity_is_refused)
{
  g_autoptr (GError) error = NULL;
  double value = -1;

  ck_assert (
      !pod_parse_quantity (bad_quantities[_i].text, bad_quantities[_i].unit, &value, &error));
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_INVALID));
  ck_assert_str_eq (error->message, bad_quantities[_i].message);
  ck_assert (value == -1);
}
END_TEST

START_TEST (long_text_makes_a_short_message)
{
  g_autofree char *text = g_strnfill (1000000, '7');
  g_autoptr (GError) error = NULL;
  uint64_t whole = 0;
  double value = 0;

  ck_assert (!pod_parse_quantity (text, POD_UNIT_BYTES, &value, &error));
  ck_assert_uint_lt (strlen (error->message), 200);
  g_clear_error (&error);
  ck_assert (!pod_parse_whole (text, POD_UNIT_BYTES, &whole, &error));
  ck_assert_uint_lt (strlen (error->message), 200);
}
END_TEST

static const struct
{
  const char *text;
  PodUnit unit;
  uint64_t expected;
} wholes[] = {
  { "0", POD_UNIT_COUNT, 0 },
  { "0.0e-30", POD_UNIT_COUNT, 0 },
  { "4096", POD_UNIT_COUNT, 4096 },
  { "32Ki", POD_UNIT_COUNT, 32768 },
  { "9007199254740993", POD_UNIT_COUNT, UINT64_C (9007199254740993) }, /* 2^53 + 1 */
  { "18446744073709551615", POD_UNIT_COUNT, UINT64_MAX },
  { "18446744073709551615.000", POD_UNIT_BYTES, UINT64_MAX },
  { "18446744073709551.615k", POD_UNIT_COUNT, UINT64_MAX },
  { "4MiB", POD_UNIT_BYTES, 4194304 },
  { "1.5GB", POD_UNIT_BYTES, 1500000000 },
  { "0.5KiB", POD_UNIT_BYTES, 512 },
  { "1.0009765625KiB", POD_UNIT_BYTES, 1025 },
  { "16b", POD_UNIT_BYTES, 2 },
  { "1e3", POD_UNIT_COUNT, 1000 },
  { "15EiB", POD_UNIT_BYTES, UINT64_C (15) << 60 },
  { "100000000000000000000000000000e-20", POD_UNIT_COUNT, 1000000000 },
};

START_TEST (whole_is_exact)
{
  g_autoptr (GError) error = NULL;
  uint64_t value = 77;

  bool is_good = pod_parse_whole (wholes[_i].text, wholes[_i].unit, &value, &error);
  ck_assert_msg (is_good, "%s", is_good ? "" : error->message);
  ck_assert_uint_eq (value, wholes[_i].expected);
}
END_TEST

static const struct
{
  const char *text;
  const char *message;
} bad_wholes[] = {
  { "0.3 B", "\"0.3 B\": is not whole, expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
  { "4b", "\"4b\": is not whole, expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
  { "1e-9", "\"1e-9\": is not whole, expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
  { "18446744073709551616",
    "\"18446744073709551616\": is 2^64 or more, expected a size such as \"512\", \"4MiB\" or "
    "\"1GB\"" },
  { "16EiB", "\"16EiB\": is 2^64 or more, expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
  { "1e400", "\"1e400\": is 2^64 or more, expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
  { "1e99999999999999999999",
    "\"1e99999999999999999999\": is 2^64 or more, expected a size such as \"512\", \"4MiB\" or "
    "\"1GB\"" },
  { "-1", "\"-1\": is negative, expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
  { "nan", "\"nan\": is not a number, expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
  { "0x10",
    "\"0x10\": unknown unit \"x10\", expected a size such as \"512\", \"4MiB\" or \"1GB\"" },
};

START_TEST (bad_whole_is_refused)
{
  g_autoptr (GError) error = NULL;
  uint64_t value = 77;

  ck_assert (!pod_parse_whole (bad_wholes[_i].text, POD_UNIT_BYTES, &value, &error));
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_INVALID));
  ck_assert_str_eq (error->message, bad_wholes[_i].message);
  ck_assert_uint_eq (value, 77);
}
END_TEST

static const struct
{
  double seconds;
  bool is_good;
  int64_t expected_ps;
} clocks[] = {
  { 0, true, 0 },
  { 1, true, POD_PS_PER_S },
  { 4.55e-9, true, 4550 },
  { 1.4e-12, true, 1 },
  { 1.6e-12, true, 2 },
  { -1e-9, true, -1000 },
  { 9.1e6, true, INT64_C (9100000000000000000) },
  { 9.3e6, false, 0 },
  { -9.3e6, false, 0 },
  { (double) NAN, false, 0 },
  { (double) INFINITY, false, 0 },
};

START_TEST (seconds_become_ps)
{
  int64_t ps = 0;

  ck_assert_int_eq (pod_seconds_to_ps (clocks[_i].seconds, &ps), clocks[_i].is_good);
  ck_assert_int_eq (ps, clocks[_i].expected_ps);
}
END_TEST

typedef enum
{
  AS_SECONDS,
  AS_BYTES,
  AS_BINARY,
  AS_BANDWIDTH,
  AS_FLOPS,
  AS_COUNT,
} Kind;

static const struct
{
  Kind kind;
  double value;
  const char *expected;
} texts[] = {
  { AS_SECONDS, 4.55e-9, "4.55 ns" },
  { AS_SECONDS, 1.234, "1.23 s" },
  { AS_SECONDS, 0, "0 s" },
  { AS_SECONDS, 999.6e-9, "1.00 us" },
  { AS_SECONDS, 12.34e-6, "12.3 us" },
  { AS_SECONDS, 0.1234, "123 ms" },
  { AS_SECONDS, -0.0021, "-2.10 ms" },
  { AS_SECONDS, 1234, "1234 s" },
  { AS_SECONDS, 7200, "2.00 h" },
  { AS_SECONDS, 864000, "10.0 d" },
  { AS_SECONDS, 1e-15, "1.00e-03 ps" },
  { AS_SECONDS, (double) NAN, "nan" },
  { AS_SECONDS, (double) INFINITY, "inf" },
  { AS_BYTES, 0, "0 B" },
  { AS_BYTES, 512, "512 B" },
  { AS_BYTES, 95e9, "95.0 GB" },
  { AS_BYTES, 1e20, "1.00e+05 PB" },
  { AS_BINARY, 1023, "1023 B" },
  { AS_BINARY, 4096, "4.00 KiB" },
  { AS_BINARY, 35.1 * 0x1p30, "35.1 GiB" },
  { AS_BANDWIDTH, 4.5e11, "450 GB/s" },
  { AS_FLOPS, 4.59e14, "459 TFLOP" },
  { AS_COUNT, 0, "0" },
  { AS_COUNT, 9999, "9999" },
  { AS_COUNT, 0.125, "0.125" },
  { AS_COUNT, 10000, "10.0 K" },
  { AS_COUNT, 1.05e6, "1.05 M" },
  { AS_COUNT, 70.6e9, "70.6 B" },
};

START_TEST (value_is_written_for_people)
{
  double value = texts[_i].value;
  g_autofree char *text = texts[_i].kind == AS_SECONDS     ? pod_format_seconds (value)
                          : texts[_i].kind == AS_BYTES     ? pod_format_bytes (value, false)
                          : texts[_i].kind == AS_BINARY    ? pod_format_bytes (value, true)
                          : texts[_i].kind == AS_BANDWIDTH ? pod_format_bytes_per_s (value)
                          : texts[_i].kind == AS_FLOPS     ? pod_format_flops (value)
                                                           : pod_format_count (value);

  ck_assert_str_eq (text, texts[_i].expected);
}
END_TEST

static const struct
{
  double value;
  const char *expected;
} doubles[] = {
  { 0, "0" },
  { -0.0, "-0" },
  { 0.1, "0.1" },
  { 1024, "1024" },
  { 100000, "100000" },
  { 4.59e14, "4.59e+14" },
  { 4.5e11, "4.5e+11" },
  { 9999999999, "9999999999" },
  { 9007199254740993.0, "9007199254740992" },
  { 1e300, "1e+300" },
  { -2.5, "-2.5" },
  { 0.0001, "0.0001" },
  { 0.00001, "1e-05" },
  { 1.0 / 3, "0.3333333333333333" },
  { 0.1 + 0.2, "0.30000000000000004" },
  { 5e-324, "5e-324" },
  { 1.7976931348623157e308, "1.7976931348623157e+308" },
  { (double) NAN, "null" },
  { -(double) INFINITY, "null" },
};

START_TEST (double_is_written_shortest)
{
  g_autofree char *text = pod_format_double (doubles[_i].value);

  ck_assert_str_eq (text, doubles[_i].expected);
}
END_TEST

START_TEST (double_comes_back)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (7);

  for (int i = 0; i < 20000; i++)
    {
      int exponent = g_rand_int_range (random, -1070, 1000);
      double value = ldexp (g_rand_double (random) - 0.5, exponent);
      g_autofree char *text = pod_format_double (value);
      ck_assert_msg (g_ascii_strtod (text, NULL) == value, "%a came back from %s", value, text);
    }
}
END_TEST

/* The test means something only where such a locale is installed; it does no harm elsewhere. */
START_TEST (locale_changes_nothing)
{
  double value = 0;

  setlocale (LC_ALL, "de_DE.UTF-8");
  ck_assert (pod_parse_quantity ("1.5 us", POD_UNIT_SECONDS, &value, NULL));
  g_autofree char *text = pod_format_seconds (value);
  g_autofree char *digits = pod_format_double (0.5);
  setlocale (LC_ALL, "C");
  ck_assert (value == 1.5e-6);
  ck_assert_str_eq (text, "1.50 us");
  ck_assert_str_eq (digits, "0.5");
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("units");
  TCase *tcase = tcase_create ("units");

  tcase_add_loop_test (tcase, quantity_is_read, 0, G_N_ELEMENTS (quantities));
  tcase_add_test (tcase, quantity_is_rounded_once);
  tcase_add_loop_test (tcase, bad_quantity_is_refused, 0, G_N_ELEMENTS (bad_quantities));
  tcase_add_test (tcase, long_text_makes_a_short_message);
  tcase_add_loop_test (tcase, whole_is_exact, 0, G_N_ELEMENTS (wholes));
  tcase_add_loop_test (tcase, bad_whole_is_refused, 0, G_N_ELEMENTS (bad_wholes));
  tcase_add_loop_test (tcase, seconds_become_ps, 0, G_N_ELEMENTS (clocks));
  tcase_add_loop_test (tcase, value_is_written_for_people, 0, G_N_ELEMENTS (texts));
  tcase_add_loop_test (tcase, double_is_written_shortest, 0, G_N_ELEMENTS (doubles));
  tcase_add_test (tcase, double_comes_back);
  tcase_add_test (tcase, locale_changes_nothing);
  suite_add_tcase (suite, tcase);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (make_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
