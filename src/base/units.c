#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef enum
{
  PREFIX_NONE,
  PREFIX_MULTIPLE, /* k K M G T P E, and Ki ... Ei */
  PREFIX_DECIMAL,  /* k K M G T P E */
  PREFIX_SUBUNIT,  /* f p n u m */
} PrefixKind;

typedef struct
{
  const char *text;
  PrefixKind kind;
  int exponent_10;
  int exponent_2;
} Prefix;

static const Prefix prefixes[] = {
  { .text = "k", .kind = PREFIX_DECIMAL, .exponent_10 = 3 },
  { .text = "K", .kind = PREFIX_DECIMAL, .exponent_10 = 3 },
  { .text = "M", .kind = PREFIX_DECIMAL, .exponent_10 = 6 },
  { .text = "G", .kind = PREFIX_DECIMAL, .exponent_10 = 9 },
  { .text = "T", .kind = PREFIX_DECIMAL, .exponent_10 = 12 },
  { .text = "P", .kind = PREFIX_DECIMAL, .exponent_10 = 15 },
  { .text = "E", .kind = PREFIX_DECIMAL, .exponent_10 = 18 },
  { .text = "Ki", .kind = PREFIX_MULTIPLE, .exponent_2 = 10 },
  { .text = "Mi", .kind = PREFIX_MULTIPLE, .exponent_2 = 20 },
  { .text = "Gi", .kind = PREFIX_MULTIPLE, .exponent_2 = 30 },
  { .text = "Ti", .kind = PREFIX_MULTIPLE, .exponent_2 = 40 },
  { .text = "Pi", .kind = PREFIX_MULTIPLE, .exponent_2 = 50 },
  { .text = "Ei", .kind = PREFIX_MULTIPLE, .exponent_2 = 60 },
  { .text = "f", .kind = PREFIX_SUBUNIT, .exponent_10 = -15 },
  { .text = "p", .kind = PREFIX_SUBUNIT, .exponent_10 = -12 },
  { .text = "n", .kind = PREFIX_SUBUNIT, .exponent_10 = -9 },
  { .text = "u", .kind = PREFIX_SUBUNIT, .exponent_10 = -6 },
  { .text = "\u00b5", .kind = PREFIX_SUBUNIT, .exponent_10 = -6 }, /* micro sign */
  { .text = "\u03bc", .kind = PREFIX_SUBUNIT, .exponent_10 = -6 }, /* Greek mu */
  { .text = "m", .kind = PREFIX_SUBUNIT, .exponent_10 = -3 },
};

typedef struct
{
  const char *name; /* "" is a bare number; it may still have a prefix */
  double factor;    /* 0 means 1: not a power, so it cannot be folded into an exponent */
  PodUnit unit;
  PrefixKind prefix_kind;
  int exponent_10;
  int exponent_2;
} UnitName;

static const UnitName unit_names[] = {
  { .unit = POD_UNIT_COUNT, .name = "", .prefix_kind = PREFIX_MULTIPLE },
  { .unit = POD_UNIT_BYTES, .name = "" },
  { .unit = POD_UNIT_BYTES, .name = "B", .prefix_kind = PREFIX_MULTIPLE },
  { .unit = POD_UNIT_BYTES, .name = "b", .prefix_kind = PREFIX_MULTIPLE, .exponent_2 = -3 },
  { .unit = POD_UNIT_BYTES_PER_S, .name = "B/s", .prefix_kind = PREFIX_MULTIPLE },
  { .unit = POD_UNIT_BYTES_PER_S, .name = "b/s", .prefix_kind = PREFIX_MULTIPLE, .exponent_2 = -3 },
  { .unit = POD_UNIT_SECONDS, .name = "s", .prefix_kind = PREFIX_SUBUNIT },
  { .unit = POD_UNIT_SECONDS, .name = "min", .factor = 60 },
  { .unit = POD_UNIT_SECONDS, .name = "h", .factor = 3600 },
  { .unit = POD_UNIT_SECONDS, .name = "d", .factor = 86400 },
  { .unit = POD_UNIT_FLOPS, .name = "" },
  { .unit = POD_UNIT_FLOPS, .name = "FLOP", .prefix_kind = PREFIX_DECIMAL },
  { .unit = POD_UNIT_FLOPS, .name = "OP", .prefix_kind = PREFIX_DECIMAL },
  { .unit = POD_UNIT_FLOPS_PER_S, .name = "" },
  { .unit = POD_UNIT_FLOPS_PER_S, .name = "FLOP/s", .prefix_kind = PREFIX_DECIMAL },
  { .unit = POD_UNIT_FLOPS_PER_S, .name = "FLOPS", .prefix_kind = PREFIX_DECIMAL },
  { .unit = POD_UNIT_FLOPS_PER_S, .name = "OP/s", .prefix_kind = PREFIX_DECIMAL },
  { .unit = POD_UNIT_HERTZ, .name = "Hz", .prefix_kind = PREFIX_DECIMAL },
  { .unit = POD_UNIT_WATTS, .name = "W", .prefix_kind = PREFIX_DECIMAL },
  { .unit = POD_UNIT_USD_PER_H, .name = "" },
  { .unit = POD_UNIT_USD_PER_H, .name = "USD/h" },
  { .unit = POD_UNIT_RATIO, .name = "" },
  { .unit = POD_UNIT_RATIO, .name = "%", .exponent_10 = -2 },
};

static const struct
{
  const char *noun;
  const char *example;
} unit_help[] = {
  [POD_UNIT_COUNT] = { "a count", "\"4096\", \"32Ki\" or \"2.5e12\"" },
  [POD_UNIT_BYTES] = { "a size", "\"512\", \"4MiB\" or \"1GB\"" },
  [POD_UNIT_BYTES_PER_S] = { "a bandwidth", "\"450 GB/s\" or \"400 Gb/s\" (bits)" },
  [POD_UNIT_SECONDS] = { "a time", "\"10 ns\", \"1us\" or \"2.5 s\"" },
  [POD_UNIT_FLOPS] = { "a number of FLOPs", "\"2.5e12\" or \"1 TFLOP\"" },
  [POD_UNIT_FLOPS_PER_S] = { "a FLOP rate", "\"459 TFLOP/s\" or \"4.59e14\"" },
  [POD_UNIT_HERTZ] = { "a frequency", "\"1.75 GHz\"" },
  [POD_UNIT_WATTS] = { "a power", "\"700 W\"" },
  [POD_UNIT_USD_PER_H] = { "a price", "\"4.2\" or \"4.2 USD/h\"" },
  [POD_UNIT_RATIO] = { "a ratio", "\"0.4\" or \"40%\"" },
};

/* No quantity of a machine comes near these, and products of several of them stay finite. */
static const double largest_quantity = 1e30;
static const double smallest_quantity = 1e-30;

/* A quantity taken apart: digits * 10^exponent_10 * 2^exponent_2 * factor. */
typedef struct
{
  GString *digits; /* no point, no leading zeros, no zeros at the end; "" is zero */
  int64_t exponent_10;
  int exponent_2;
  double factor;
} Parsed;

static void
parsed_clear (Parsed *parsed)
{
  g_string_free (parsed->digits, TRUE);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Parsed, parsed_clear)

/* The start of @text, fit for a message: valid UTF-8 on one line. Returns: (transfer full) */
static char *
excerpt (const char *text)
{
  enum
  {
    MAX_SHOWN_BYTES = 60,
  };
  bool is_long = strlen (text) > MAX_SHOWN_BYTES;
  g_autofree char *start = g_strndup (text, MAX_SHOWN_BYTES);
  g_autofree char *valid = g_utf8_make_valid (start, -1);

  for (char *c = valid; *c != '\0'; c++)
    if (g_ascii_iscntrl (*c))
      *c = ' ';
  return g_strconcat (valid, is_long ? "..." : NULL, NULL);
}

static bool
refuse (const char *text, PodUnit unit, GError **error, const char *what)
{
  g_autofree char *shown = excerpt (text);

  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "\"%s\": %s, expected %s such as %s", shown,
               what, unit_help[unit].noun, unit_help[unit].example);
  return false;
}

/* An exponent far beyond a double's is as good as any such: it saturates. */
static int64_t
read_exponent (const char **at)
{
  enum
  {
    FAR = 1000000000,
  };
  const char *start = *at;
  const char *c = start + 1;
  bool is_negative = *c == '-';
  int64_t exponent = 0;

  if (*c == '+' || *c == '-')
    c++;
  if (!g_ascii_isdigit (*c)) /* the 'e' or 'E' begins a unit */
    return 0;
  for (; g_ascii_isdigit (*c); c++)
    exponent = MIN (exponent * 10 + (*c - '0'), FAR);
  *at = c;
  return is_negative ? -exponent : exponent;
}

/* Reads the number that *at points to and moves *at behind it; false when there is none. */
static bool
read_number (const char **at, Parsed *parsed)
{
  const char *c = *at;
  bool has_digits = false;
  bool is_fraction = false;

  for (;; c++)
    {
      if (*c == '.' && !is_fraction)
        {
          is_fraction = true;
          continue;
        }
      if (!g_ascii_isdigit (*c))
        break;
      has_digits = true;
      if (is_fraction)
        parsed->exponent_10--;
      if (*c != '0' || parsed->digits->len > 0)
        g_string_append_c (parsed->digits, *c);
    }
  if (!has_digits)
    return false;
  if (*c == 'e' || *c == 'E')
    parsed->exponent_10 += read_exponent (&c);
  while (parsed->digits->len > 0 && parsed->digits->str[parsed->digits->len - 1] == '0')
    {
      g_string_truncate (parsed->digits, parsed->digits->len - 1);
      parsed->exponent_10++;
    }
  *at = c;
  return true;
}

static bool
is_prefix_of_kind (const Prefix *prefix, PrefixKind kind)
{
  return prefix->kind == kind || (kind == PREFIX_MULTIPLE && prefix->kind == PREFIX_DECIMAL);
}

/* Finds @suffix as [prefix]name of @unit; the table is short, so it is just searched. */
static bool
apply_suffix (const char *suffix, PodUnit unit, Parsed *parsed)
{
  for (size_t i = 0; i < G_N_ELEMENTS (unit_names); i++)
    {
      const UnitName *name = &unit_names[i];
      if (name->unit != unit || !g_str_has_suffix (suffix, name->name))
        continue;
      size_t n_prefix_bytes = strlen (suffix) - strlen (name->name);
      const Prefix *prefix = NULL;
      for (size_t j = 0; n_prefix_bytes > 0 && j < G_N_ELEMENTS (prefixes); j++)
        if (is_prefix_of_kind (&prefixes[j], name->prefix_kind)
            && strlen (prefixes[j].text) == n_prefix_bytes
            && strncmp (suffix, prefixes[j].text, n_prefix_bytes) == 0)
          prefix = &prefixes[j];
      if (n_prefix_bytes > 0 && prefix == NULL)
        continue;
      parsed->exponent_10 += name->exponent_10 + (prefix != NULL ? prefix->exponent_10 : 0);
      parsed->exponent_2 += name->exponent_2 + (prefix != NULL ? prefix->exponent_2 : 0);
      parsed->factor = name->factor > 0 ? name->factor : 1;
      return true;
    }
  return false;
}

static bool
take_apart (const char *text, PodUnit unit, Parsed *parsed, GError **error)
{
  g_autofree char *trimmed = g_strstrip (g_strdup (text));
  const char *at = trimmed;

  if (*at == '\0')
    return refuse (text, unit, error, "is empty");
  if (*at == '-' && (g_ascii_isdigit (at[1]) || at[1] == '.'))
    return refuse (text, unit, error, "is negative");
  if (!read_number (&at, parsed))
    return refuse (text, unit, error, "is not a number");
  while (g_ascii_isspace (*at))
    at++;
  if (apply_suffix (at, unit, parsed))
    return true;
  if (*at == '\0')
    return refuse (text, unit, error, "has no unit");
  g_autofree char *shown = excerpt (at);
  g_autofree char *what = g_strdup_printf ("unknown unit \"%s\"", shown);
  return refuse (text, unit, error, what);
}

/* digits * 10^exponent_10, rounded once: the prefix went into the exponent, so that "0.3 us" is 3e-7,
 * not 0.3 * 1e-6. Up to 15 digits and 10^22 are exact in a double, and so one operation on them
 * rounds as strtod does (Clinger, PLDI 1990), in a tenth of its time. */
static double
compose (const Parsed *parsed)
{
  static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
  const int64_t most = (int64_t) G_N_ELEMENTS (powers) - 1;
  double digits = 0;

  if (parsed->digits->len > 15 || parsed->exponent_10 > most || parsed->exponent_10 < -most)
    {
      g_autofree char *text
          = g_strdup_printf ("%se%" G_GINT64_FORMAT, parsed->digits->str, parsed->exponent_10);

      return g_ascii_strtod (text, NULL);
    }
  for (const char *c = parsed->digits->str; *c != '\0'; c++)
    digits = digits * 10 + (*c - '0');
  return parsed->exponent_10 < 0 ? digits / powers[-parsed->exponent_10]
                                 : digits * powers[parsed->exponent_10];
}

bool
pod_parse_quantity (const char *text, PodUnit unit, double *out, GError **error)
{
  g_return_val_if_fail (text != NULL && out != NULL && unit < G_N_ELEMENTS (unit_help), false);

  g_auto (Parsed) parsed = { .digits = g_string_new (NULL) };
  if (!take_apart (text, unit, &parsed, error))
    return false;
  if (parsed.digits->len == 0)
    {
      *out = 0;
      return true;
    }
  double value = ldexp (compose (&parsed), parsed.exponent_2) * parsed.factor;
  if (!isfinite (value) || (unit != POD_UNIT_COUNT && value > largest_quantity))
    return refuse (text, unit, error, "is too large");
  if (!(value > 0) || (unit != POD_UNIT_COUNT && value < smallest_quantity))
    return refuse (text, unit, error, "is too small");
  *out = value;
  return true;
}

/* digits * 10^e10 * 2^e2 = digits * 5^e10 * 2^(e2 + e10), in integers. 5 and 2 share no factor, so
 * it is whole exactly when each division is. Sets *out_problem when it is not or does not fit. */
static bool
compose_whole (const Parsed *parsed, uint64_t *out, const char **out_problem)
{
  uint64_t value = 0;
  int64_t shift = parsed->exponent_10 + parsed->exponent_2;

  *out_problem = parsed->exponent_10 < 0 ? "is not whole" : "is 2^64 or more";
  if (parsed->digits->len == 0)
    {
      *out = 0;
      return true;
    }
  if (!g_ascii_string_to_unsigned (parsed->digits->str, 10, 0, G_MAXUINT64, &value, NULL))
    return false;
  for (int64_t i = parsed->exponent_10; i < 0; i++, value /= 5)
    if (value % 5 != 0)
      return false;
  *out_problem = "is 2^64 or more";
  for (int64_t i = 0; i < parsed->exponent_10; i++, value *= 5)
    if (value > G_MAXUINT64 / 5)
      return false;
  for (; shift > 0; shift--, value *= 2)
    if (value > G_MAXUINT64 / 2)
      return false;
  *out_problem = "is not whole";
  for (; shift < 0; shift++, value /= 2)
    if (value % 2 != 0)
      return false;
  *out = value;
  return true;
}

bool
pod_parse_whole (const char *text, PodUnit unit, uint64_t *out, GError **error)
{
  g_return_val_if_fail (text != NULL && out != NULL, false);
  g_return_val_if_fail (unit == POD_UNIT_COUNT || unit == POD_UNIT_BYTES, false);

  g_auto (Parsed) parsed = { .digits = g_string_new (NULL) };
  const char *problem = NULL;
  if (!take_apart (text, unit, &parsed, error))
    return false;
  return compose_whole (&parsed, out, &problem) || refuse (text, unit, error, problem);
}

bool
pod_seconds_to_ps (double seconds, int64_t *out_ps)
{
  double ps = seconds * (double) POD_PS_PER_S;

  g_return_val_if_fail (out_ps != NULL, false);
  if (!(fabs (ps) < 9.2e18))
    return false;
  *out_ps = llround (ps);
  return true;
}

typedef struct
{
  double size; /* of one such unit */
  const char *name;
} Step;

static const Step second_steps[]
    = { { 1e-12, "ps" }, { 1e-9, "ns" }, { 1e-6, "us" }, { 1e-3, "ms" },
        { 1, "s" },      { 3600, "h" },  { 86400, "d" }, { 0, NULL } };
static const Step byte_steps[] = { { 1, "B" },     { 1e3, "kB" },  { 1e6, "MB" }, { 1e9, "GB" },
                                   { 1e12, "TB" }, { 1e15, "PB" }, { 0, NULL } };
static const Step binary_steps[]
    = { { 1, "B" },        { 0x1p10, "KiB" }, { 0x1p20, "MiB" }, { 0x1p30, "GiB" },
        { 0x1p40, "TiB" }, { 0x1p50, "PiB" }, { 0, NULL } };
static const Step bandwidth_steps[]
    = { { 1, "B/s" },     { 1e3, "kB/s" },  { 1e6, "MB/s" }, { 1e9, "GB/s" },
        { 1e12, "TB/s" }, { 1e15, "PB/s" }, { 0, NULL } };
static const Step flop_steps[]
    = { { 1, "FLOP" },     { 1e3, "kFLOP" },  { 1e6, "MFLOP" },  { 1e9, "GFLOP" },
        { 1e12, "TFLOP" }, { 1e15, "PFLOP" }, { 1e18, "EFLOP" }, { 0, NULL } };
static const Step count_steps[]
    = { { 1e3, "K" }, { 1e6, "M" }, { 1e9, "B" }, { 1e12, "T" }, { 0, NULL } };

/* Three digits, or four from 1000 up; a value past 99999 (over the largest step) goes with an
 * exponent. */
static char *
format_three_digits (double value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  double magnitude = fabs (value);
  const char *format = "%.2f";

  if (magnitude >= 99999.5 || magnitude < 0.00995)
    format = "%.2e";
  else if (magnitude >= 99.95)
    format = "%.0f";
  else if (magnitude >= 9.995)
    format = "%.1f";
  return g_strdup (g_ascii_formatd (buffer, sizeof buffer, format, value));
}

/* The last step at which the value is 1 or more; 0.9995 of a step, because 999.6 ns prints as 1.00
 * us. */
static char *
format_scaled (double value, const Step *steps)
{
  const Step *step = steps;

  if (!isfinite (value))
    return g_strdup (isnan (value) ? "nan" : value > 0 ? "inf" : "-inf");
  while (step[1].name != NULL && fabs (value) >= 0.9995 * step[1].size)
    step++;
  double scaled = value / step->size;
  bool is_plain_whole = step->size == 1 && scaled == floor (scaled) && fabs (scaled) < 1024;
  if (scaled == 0 || is_plain_whole)
    return g_strdup_printf ("%d %s", (int) scaled, step->name);
  g_autofree char *digits = format_three_digits (scaled);
  return g_strdup_printf ("%s %s", digits, step->name);
}

char *
pod_format_seconds (double seconds)
{
  return seconds == 0 ? g_strdup ("0 s") : format_scaled (seconds, second_steps);
}

char *
pod_format_bytes (double bytes, bool is_binary)
{
  return format_scaled (bytes, is_binary ? binary_steps : byte_steps);
}

char *
pod_format_bytes_per_s (double bytes_per_s)
{
  return format_scaled (bytes_per_s, bandwidth_steps);
}

char *
pod_format_flops (double flops)
{
  return format_scaled (flops, flop_steps);
}

char *
pod_format_count (double count)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];

  if (!(fabs (count) < 10000))
    return format_scaled (count, count_steps);
  return g_strdup (g_ascii_formatd (buffer, sizeof buffer, "%.4g", count));
}

/* Any decimal of up to 15 digits survives a trip through a double, so when 15 suffice, they are the
 * shortest with the zeros at their end taken off; else 16 or 17. Subnormals hold fewer digits. */
static void
print_shortest (double value, char *buffer, int size)
{
  for (int precision = fabs (value) < 2.2250738585072014e-308 ? 0 : 14; precision <= 16;
       precision++)
    {
      char format[8];
      g_snprintf (format, sizeof format, "%%.%de", precision);
      g_ascii_formatd (buffer, size, format, value);
      if (g_ascii_strtod (buffer, NULL) == value)
        return;
    }
}

/* d.ddd * 10^exponent without an exponent. */
static char *
spread_digits (const char *digits, bool is_negative, int exponent)
{
  g_autoptr (GString) text = g_string_new (is_negative ? "-" : "");
  int n_digits = (int) strlen (digits);

  if (exponent < 0)
    {
      g_string_append (text, "0.");
      for (int i = -1; i > exponent; i--)
        g_string_append_c (text, '0');
    }
  for (int i = 0; i < MAX (n_digits, exponent + 1); i++)
    {
      if (i > 0 && i == exponent + 1)
        g_string_append_c (text, '.');
      g_string_append_c (text, i < n_digits ? digits[i] : '0');
    }
  return g_string_free (g_steal_pointer (&text), FALSE);
}

char *
pod_format_double (double value)
{
  enum
  {
    /* Below 10^10 plain digits are easier to read, even when 1e+09 is shorter. */
    MAX_PLAIN_EXPONENT = 9,
    MIN_PLAIN_EXPONENT = -4, /* as printf's %g */
  };
  char scientific[G_ASCII_DTOSTR_BUF_SIZE];
  char digits[G_ASCII_DTOSTR_BUF_SIZE];
  size_t n_digits = 0;

  if (!isfinite (value))
    return g_strdup ("null");
  if (value == 0)
    return g_strdup (signbit (value) ? "-0" : "0");
  print_shortest (value, scientific, sizeof scientific);
  char *e = strchr (scientific, 'e');
  for (const char *c = scientific; c < e; c++)
    if (g_ascii_isdigit (*c))
      digits[n_digits++] = *c;
  while (n_digits > 1 && digits[n_digits - 1] == '0')
    n_digits--;
  digits[n_digits] = '\0';
  int exponent = (int) g_ascii_strtoll (e + 1, NULL, 10);
  const char *sign = value < 0 ? "-" : "";
  if (exponent >= MIN_PLAIN_EXPONENT && exponent <= MAX (MAX_PLAIN_EXPONENT, (int) n_digits - 1))
    return spread_digits (digits, value < 0, exponent);
  return g_strdup_printf ("%s%c%s%s%s", sign, digits[0], n_digits > 1 ? "." : "", digits + 1, e);
}
