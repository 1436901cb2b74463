#include "cli/machine-facts.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "base/units.h"

/* The numbers of a chip file: in JSON under a key with its unit, nominal in chip.KEY and as the
 * book has it in chip.book.KEY; in text under the name that --set takes. */

typedef enum
{
  FACT_COUNT, /* unsigned */
  FACT_BOOL,
  FACT_EXTENT, /* unsigned[3] */
  FACT_PS,
  FACT_SECONDS, /* double, as the next ones */
  FACT_BYTES,
  FACT_BYTES_PER_S,
  FACT_HERTZ,
  FACT_WATTS,
  FACT_USD_PER_H,
  FACT_PLAIN,
  FACT_RATED_BYTES, /* PodRated, as the next ones */
  FACT_RATED_BYTES_PER_S,
  FACT_RATED_FLOPS_PER_S,
} FactKind;

typedef struct
{
  const char *field; /* of pod_chip_field */
  const char *key;   /* in JSON */
  FactKind kind;
  size_t offset;
} Fact;

#define AT(member)  offsetof (PodChip, member)
#define PEAK(dtype) (offsetof (PodChip, peak_flops_per_s) + (dtype) * sizeof (PodRated))

static const Fact facts[] = {
  { "devices_per_chip", "devices_per_chip", FACT_COUNT, AT (devices_per_chip) },
  { "die_bandwidth", "die_bytes_per_s", FACT_RATED_BYTES_PER_S, AT (die_bytes_per_s) },
  { "die_latency", "die_latency_s", FACT_PS, AT (die_hop_ps) },
  { "cores_per_chip", "cores", FACT_COUNT, AT (cores_per_chip) },
  { "peak_fp32", "peak_flops_per_s.fp32", FACT_RATED_FLOPS_PER_S, PEAK (POD_DTYPE_FP32) },
  { "peak_bf16", "peak_flops_per_s.bf16", FACT_RATED_FLOPS_PER_S, PEAK (POD_DTYPE_BF16) },
  { "peak_fp16", "peak_flops_per_s.fp16", FACT_RATED_FLOPS_PER_S, PEAK (POD_DTYPE_FP16) },
  { "peak_fp8", "peak_flops_per_s.fp8", FACT_RATED_FLOPS_PER_S, PEAK (POD_DTYPE_FP8) },
  { "peak_int8", "peak_flops_per_s.int8", FACT_RATED_FLOPS_PER_S, PEAK (POD_DTYPE_INT8) },
  { "peak_fp4", "peak_flops_per_s.fp4", FACT_RATED_FLOPS_PER_S, PEAK (POD_DTYPE_FP4) },
  { "peak_int4", "peak_flops_per_s.int4", FACT_RATED_FLOPS_PER_S, PEAK (POD_DTYPE_INT4) },
  { "peak_vector", "vector_flops_per_s", FACT_RATED_FLOPS_PER_S, AT (vector_flops_per_s) },
  { "hbm_capacity", "hbm_bytes", FACT_RATED_BYTES, AT (hbm_bytes) },
  { "hbm_bandwidth", "hbm_bytes_per_s", FACT_RATED_BYTES_PER_S, AT (hbm_bytes_per_s) },
  { "reserved_memory", "reserved_bytes_per_device", FACT_BYTES, AT (reserved_bytes) },
  { "vmem_capacity", "vmem_bytes", FACT_RATED_BYTES, AT (vmem_bytes) },
  { "vmem_bandwidth", "vmem_bytes_per_s", FACT_RATED_BYTES_PER_S, AT (vmem_bytes_per_s) },
  { "l2_capacity", "l2_bytes", FACT_RATED_BYTES, AT (l2_bytes) },
  { "mxu_dim", "mxu_dim", FACT_COUNT, AT (mxu_dim) },
  { "mxus_per_core", "mxus_per_core", FACT_COUNT, AT (mxus_per_core) },
  { "clock", "clock_hz", FACT_HERTZ, AT (clock_hz) },
  { "tdp", "tdp_w", FACT_WATTS, AT (tdp_w) },
  { "price", "price_usd_per_h", FACT_USD_PER_H, AT (price_usd_per_h) },
  { "torus_dims", "torus_dims", FACT_COUNT, AT (torus_dims) },
  { "pod_extent", "pod_extent", FACT_EXTENT, AT (pod_extent) },
  { "wrap_extent", "wrap_extent", FACT_COUNT, AT (wrap_extent) },
  { "cube_extent", "cube_extent", FACT_COUNT, AT (cube_extent) },
  { "twistable", "twistable", FACT_BOOL, AT (has_twist) },
  { "host_extent", "host_extent", FACT_EXTENT, AT (host_extent) },
  { "ici_bandwidth", "ici_bytes_per_s", FACT_RATED_BYTES_PER_S, AT (ici_bytes_per_s) },
  { "ici_latency", "ici_latency_s", FACT_PS, AT (ici_hop_ps) },
  { "scale_up_chips", "scale_up_chips", FACT_COUNT, AT (scale_up_chips) },
  { "scale_up_switches", "scale_up_switches", FACT_COUNT, AT (scale_up_switches) },
  { "scale_up_bandwidth", "scale_up_bytes_per_s", FACT_RATED_BYTES_PER_S,
    AT (scale_up_bytes_per_s) },
  { "scale_up_latency", "scale_up_latency_s", FACT_PS, AT (scale_up_hop_ps) },
  { "in_switch_reduction", "in_switch_reduction", FACT_BOOL, AT (has_in_switch_reduction) },
  { "chips_per_host", "chips_per_host", FACT_COUNT, AT (chips_per_host) },
  { "host_bandwidth", "host_bytes_per_s", FACT_RATED_BYTES_PER_S, AT (host_bytes_per_s) },
  { "nic_bandwidth", "nic_bytes_per_s", FACT_RATED_BYTES_PER_S, AT (nic_bytes_per_s) },
  { "nic_behind_host", "nic_behind_host", FACT_BOOL, AT (is_nic_behind_host) },
  { "nic_latency", "nic_latency_s", FACT_PS, AT (nic_hop_ps) },
  { "tree_latency", "tree_latency_s", FACT_PS, AT (tree_hop_ps) },
  { "tree_levels", "tree_levels", FACT_COUNT, AT (tree_levels) },
  { "switch_radix", "switch_radix", FACT_COUNT, AT (switch_radix) },
  { "matmul_efficiency", "matmul_efficiency_ratio", FACT_PLAIN, AT (matmul_efficiency) },
  { "hbm_efficiency", "hbm_efficiency_ratio", FACT_PLAIN, AT (hbm_efficiency) },
  { "network_efficiency", "network_efficiency_ratio", FACT_PLAIN, AT (network_efficiency) },
  { "launch", "launch_s", FACT_SECONDS, AT (launch_s) },
  { "collective_launch", "collective_launch_s", FACT_SECONDS, AT (collective_launch_s) },
  { "attention_efficiency", "attention_efficiency_ratio", FACT_PLAIN, AT (attention_efficiency) },
  { "attention_softmax_dims", "attention_softmax_dims", FACT_PLAIN, AT (attention_softmax_dims) },
  { "attention_launch", "attention_launch_s", FACT_SECONDS, AT (attention_launch_s) },
  { "cast_launch", "cast_launch_s", FACT_SECONDS, AT (cast_launch_s) },
  { "attention_block", "attention_block_s", FACT_SECONDS, AT (attention_block_s) },
  { "matmul_hbm_efficiency", "matmul_hbm_efficiency_ratio", FACT_PLAIN,
    AT (matmul_hbm_efficiency) },
  { "core_bandwidth", "core_bytes_per_s", FACT_BYTES_PER_S, AT (core_bytes_per_s) },
  { "tile_overhead", "tile_s", FACT_SECONDS, AT (tile_s) },
  { "split_k_overhead", "split_k_s", FACT_SECONDS, AT (split_k_s) },
};

static const Fact *
find_fact (const char *field)
{
  for (size_t i = 0; i < G_N_ELEMENTS (facts); i++)
    if (strcmp (facts[i].field, field) == 0)
      return &facts[i];
  return NULL;
}

static bool
is_rated (const Fact *fact)
{
  return fact->kind >= FACT_RATED_BYTES;
}

/* A single number; of an extent 0. */
static double
value_of (const PodChip *chip, const Fact *fact, bool is_book)
{
  const void *at = (const char *) chip + fact->offset;

  switch (fact->kind)
    {
    case FACT_COUNT:
      return *(const unsigned *) at;
    case FACT_BOOL:
      return *(const bool *) at;
    case FACT_EXTENT:
      return 0;
    case FACT_PS:
      return (double) *(const int64_t *) at / (double) POD_PS_PER_S;
    case FACT_SECONDS:
    case FACT_BYTES:
    case FACT_BYTES_PER_S:
    case FACT_HERTZ:
    case FACT_WATTS:
    case FACT_USD_PER_H:
    case FACT_PLAIN:
      return *(const double *) at;
    case FACT_RATED_BYTES:
    case FACT_RATED_BYTES_PER_S:
    case FACT_RATED_FLOPS_PER_S:
      return is_book ? ((const PodRated *) at)->book : ((const PodRated *) at)->nominal;
    }
  g_assert_not_reached ();
}

double
pod_chip_full_size (const PodChip *chip)
{
  if (chip->family != POD_FAMILY_TPU)
    return chip->scale_up_chips;
  return (double) chip->pod_extent[0] * chip->pod_extent[1] * chip->pod_extent[2];
}

unsigned
pod_chip_default_rails (const PodChip *chip, unsigned chips_per_node)
{
  return chips_per_node % chip->chips_per_host == 0 ? chip->chips_per_host : chips_per_node;
}

/* ---- derived numbers ---- */

/* "459 TFLOP/s" */
static char *
format_flops_per_s (double value)
{
  g_autofree char *flops = pod_format_flops (value);

  return g_strconcat (flops, "/s", NULL);
}

static char *
format_plain (double value, const char *unit)
{
  g_autofree char *number = pod_format_double (value);

  return g_strconcat (number, unit, NULL);
}

static char *
format_ratio (double value)
{
  return g_strdup_printf ("%.5g", value);
}

/* What follows from the file's numbers; in @book's copy from the book's. 0: has no meaning for the
 * chip. */
typedef struct
{
  const char *key;
  const char *title;
  double (*of) (const PodChip *chip, bool is_book);
  char *(*format) (double value);
} Derived;

static double
rated (const PodRated *value, bool is_book)
{
  return is_book ? value->book : value->nominal;
}

static double
peak_of (const PodChip *chip, bool is_book)
{
  return rated (&chip->peak_flops_per_s[POD_DTYPE_BF16], is_book);
}

/* 0 where the divisor is not known */
static double
over (double dividend, double divisor)
{
  return divisor > 0 ? dividend / divisor : 0;
}

static double
ici_both_ways (const PodChip *chip, bool is_book)
{
  return 2 * rated (&chip->ici_bytes_per_s, is_book);
}

static double
ridge (const PodChip *chip, bool is_book)
{
  return over (peak_of (chip, is_book), rated (&chip->hbm_bytes_per_s, is_book));
}

static double
vmem_ridge (const PodChip *chip, bool is_book)
{
  return over (peak_of (chip, is_book), rated (&chip->vmem_bytes_per_s, is_book));
}

static double
ici_ridge (const PodChip *chip, bool is_book)
{
  return over (peak_of (chip, is_book), ici_both_ways (chip, is_book));
}

static double
scale_up_ridge (const PodChip *chip, bool is_book)
{
  return over (peak_of (chip, is_book), rated (&chip->scale_up_bytes_per_s, is_book));
}

static double
nic_ridge (const PodChip *chip, bool is_book)
{
  return over (peak_of (chip, is_book), rated (&chip->nic_bytes_per_s, is_book));
}

static double
vmem_to_hbm (const PodChip *chip, bool is_book)
{
  return over (rated (&chip->vmem_bytes_per_s, is_book), rated (&chip->hbm_bytes_per_s, is_book));
}

static double
hbm_to_ici (const PodChip *chip, bool is_book)
{
  return over (rated (&chip->hbm_bytes_per_s, is_book), rated (&chip->ici_bytes_per_s, is_book));
}

static double
matrix_to_vector (const PodChip *chip, bool is_book)
{
  return over (peak_of (chip, is_book), rated (&chip->vector_flops_per_s, is_book));
}

/* 0 where the clock is not known */
static double
vector_per_cycle (const PodChip *chip, bool is_book)
{
  return over (rated (&chip->vector_flops_per_s, is_book), chip->clock_hz * chip->cores_per_chip);
}

static double
pod_peak (const PodChip *chip, bool is_book)
{
  return pod_chip_full_size (chip) * peak_of (chip, is_book);
}

static const Derived derived[] = {
  { "ici_bidirectional_bytes_per_s", "one ICI link, both directions", ici_both_ways,
    pod_format_bytes_per_s },
  { "ridge_flops_per_byte", "bf16 FLOPs per byte of HBM", ridge, format_ratio },
  { "vmem_ridge_flops_per_byte", "bf16 FLOPs per byte of VMEM", vmem_ridge, format_ratio },
  { "ici_ridge_flops_per_byte", "bf16 FLOPs per byte of one ICI axis, both directions", ici_ridge,
    format_ratio },
  { "scale_up_ridge_flops_per_byte", "bf16 FLOPs per byte of scale-up egress", scale_up_ridge,
    format_ratio },
  { "nic_ridge_flops_per_byte", "bf16 FLOPs per byte of scale-out", nic_ridge, format_ratio },
  { "vmem_to_hbm_ratio", "VMEM rate over HBM rate", vmem_to_hbm, format_ratio },
  { "hbm_to_ici_ratio", "HBM rate over one ICI link's, one direction", hbm_to_ici, format_ratio },
  { "matrix_to_vector_ratio", "matrix units over vector units", matrix_to_vector, format_ratio },
  { "vector_flops_per_cycle_per_core", "vector FLOPs of a core in a cycle", vector_per_cycle,
    format_ratio },
  { "pod_peak_flops_per_s", "bf16 FLOP/s of a full pod or domain", pod_peak, format_flops_per_s },
};

/* ---- text ---- */

static char *
format_extent (const unsigned *extent)
{
  return g_strdup_printf ("%ux%ux%u", extent[0], extent[1], extent[2]);
}

/* Returns: (transfer full) (nullable) NULL for what the chip does not have */
static char *
format_fact (const PodChip *chip, const Fact *fact, bool is_book)
{
  double value = value_of (chip, fact, is_book);

  if (fact->kind == FACT_EXTENT)
    {
      const unsigned *extent
          = (const unsigned *) (const void *) ((const char *) chip + fact->offset);

      return extent[0] > 0 ? format_extent (extent) : NULL;
    }
  if (fact->kind == FACT_BOOL)
    return g_strdup (value > 0 ? "yes" : "no");
  if (!(value > 0))
    return NULL;
  switch (fact->kind)
    {
    case FACT_PS:
    case FACT_SECONDS:
      return pod_format_seconds (value);
    case FACT_BYTES:
    case FACT_RATED_BYTES:
      return pod_format_bytes (value, false);
    case FACT_BYTES_PER_S:
    case FACT_RATED_BYTES_PER_S:
      return pod_format_bytes_per_s (value);
    case FACT_RATED_FLOPS_PER_S:
      return format_flops_per_s (value);
    case FACT_HERTZ:
      return format_plain (value / 1e9, " GHz");
    case FACT_WATTS:
      return format_plain (value, " W");
    case FACT_USD_PER_H:
      return format_plain (value, " USD/h");
    case FACT_COUNT:
    case FACT_BOOL:
    case FACT_EXTENT:
    case FACT_PLAIN:
      break;
    }
  return format_plain (value, "");
}

/* "" when the file has none. */
static const char *
source_of (const PodChip *chip, const char *field)
{
  size_t length = strlen (field);

  for (guint i = 0; i < chip->sources->len; i++)
    {
      const char *line = g_ptr_array_index (chip->sources, i);

      if (strncmp (line, field, length) == 0 && g_str_has_prefix (line + length, ": "))
        return line + length + 2;
    }
  return "";
}

/* TPU fields say nothing of a GPU, and the other way round. */
static bool
is_of_family (const PodChip *chip, const char *field)
{
  static const char *const torus[]
      = { "torus_dims", "pod_extent",  "wrap_rule", "wrap_extent", "cube_extent",
          "twistable",  "host_extent", "mxu_dim",   NULL };
  static const char *const switched[]
      = { "in_switch_reduction", "tree_levels", "switch_radix", NULL };
  bool is_tpu = chip->family == POD_FAMILY_TPU;

  if (g_str_has_prefix (field, "scale_up_") || g_strv_contains (switched, field))
    return !is_tpu;
  if (g_str_has_prefix (field, "ici_") || g_strv_contains (torus, field))
    return is_tpu;
  return true;
}

static void
print_fields (const PodChip *chip, GString *out)
{
  static const char *const columns[] = { "--set chip.", ">value", ">book", "source", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;
  PodChipFieldInfo info;

  for (size_t i = 0; pod_chip_field (i, &info); i++)
    {
      const Fact *fact = find_fact (info.name);
      g_autofree char *value
          = fact != NULL ? format_fact (chip, fact, false) : pod_chip_get (chip, info.name);
      g_autofree char *book
          = fact != NULL && is_rated (fact) ? format_fact (chip, fact, true) : NULL;
      const char *const cells[]
          = { info.name, value, book != NULL ? book : "", source_of (chip, info.name) };

      if (value != NULL && is_of_family (chip, info.name))
        pod_table_add_row (table, cells);
    }
  text = pod_table_to_text (table);
  g_string_append (out, text);
}

static void
print_derived (const PodChip *chip, GString *out)
{
  static const char *const columns[] = { "derived", ">value", ">book", NULL };
  g_autoptr (PodTable) table = pod_table_new (columns);
  g_autofree char *text = NULL;

  for (size_t i = 0; i < G_N_ELEMENTS (derived); i++)
    {
      g_autofree char *value = derived[i].format (derived[i].of (chip, false));
      g_autofree char *book = derived[i].format (derived[i].of (chip, true));
      const char *const cells[] = { derived[i].title, value, book };

      if (derived[i].of (chip, false) > 0)
        pod_table_add_row (table, cells);
    }
  text = pod_table_to_text (table);
  g_string_append (out, text);
}

void
pod_chip_facts_print (const PodChip *chip, GString *out)
{
  bool has_vendor = chip->vendor != NULL && strcmp (chip->vendor, "unknown") != 0;

  g_string_append_printf (out, "%s: %s%s%s, %u device%s a chip\nfrom %s\n", chip->name,
                          has_vendor ? chip->vendor : "", has_vendor ? " " : "",
                          chip->title != NULL ? chip->title : chip->name, chip->devices_per_chip,
                          chip->devices_per_chip == 1 ? "" : "s", chip->file);
  print_fields (chip, out);
  g_string_append_c (out, '\n');
  print_derived (chip, out);
  if (chip->note != NULL)
    g_string_append_printf (out, "\nnote: %s\n", chip->note);
}

void
pod_chip_defaults_print (const PodChip *chip, GString *out)
{
  g_autofree char *nic = pod_format_bytes_per_s (chip->nic_bytes_per_s.nominal);

  g_string_append_printf (out, "defaults of %s:SHAPE: nic=%s a chip", chip->name, nic);
  if (chip->family == POD_FAMILY_TPU)
    {
      g_autofree char *host = format_extent (chip->host_extent);
      g_autofree char *pod = format_extent (chip->pod_extent);

      g_string_append_printf (
          out, ", hosts of %s chips, pods of %s, slices joined by a DCN without oversubscription\n",
          host, pod);
      return;
    }
  g_string_append_printf (out,
                          ", nodes of %u chips in hosts of %u, rails=%u, %u or more levels of "
                          "switches of %u ports beyond one unit, "
                          "oversub=1\n",
                          chip->scale_up_chips, chip->chips_per_host,
                          pod_chip_default_rails (chip, chip->scale_up_chips), chip->tree_levels,
                          chip->switch_radix);
}

/* ---- JSON ---- */

/* Numbers that a chip does not have are null. */
static void
set_number (JsonObject *root, const char *prefix, const char *key, double value)
{
  g_autofree char *path = g_strconcat (prefix, key, NULL);

  pod_result_set_double (root, path, value > 0 ? value : (double) NAN);
}

static void
set_fact (const PodChip *chip, const Fact *fact, JsonObject *root)
{
  g_autofree char *path = g_strconcat ("chip.", fact->key, NULL);
  double value = value_of (chip, fact, false);

  if (fact->kind == FACT_EXTENT)
    {
      const unsigned *extent
          = (const unsigned *) (const void *) ((const char *) chip + fact->offset);
      JsonArray *array = pod_result_get_array (root, path);

      for (unsigned axis = 0; chip->family == POD_FAMILY_TPU && axis < chip->torus_dims; axis++)
        json_array_add_int_element (array, extent[axis]);
    }
  else if (fact->kind == FACT_BOOL)
    pod_result_set_bool (root, path, value > 0);
  else if (fact->kind == FACT_COUNT)
    pod_result_set_int (root, path, (int64_t) value);
  else
    set_number (root, "chip.", fact->key, value);
  if (is_rated (fact))
    set_number (root, "chip.book.", fact->key, value_of (chip, fact, true));
}

/* A full pod and one host, in chips and cores; on a torus the neighbours of a chip inside it. */
static void
set_sizes (const PodChip *chip, JsonObject *root)
{
  bool is_tpu = chip->family == POD_FAMILY_TPU;
  unsigned n_neighbours = is_tpu ? 2 * chip->torus_dims : chip->scale_up_chips - 1;

  pod_result_set_int (root, "chip.pod_chips", (int64_t) pod_chip_full_size (chip));
  pod_result_set_int (root, "chip.cores_per_host",
                      (int64_t) chip->chips_per_host * chip->cores_per_chip);
  pod_result_set_int (root, "chip.neighbours", n_neighbours);
  if (is_tpu && chip->wrap_rule == POD_WRAP_CUBES && chip->cube_extent > 0)
    {
      double cube = pow (chip->cube_extent, chip->torus_dims);

      pod_result_set_double (root, "chip.pod_cubes", pod_chip_full_size (chip) / cube);
    }
}

static void
set_defaults (const PodChip *chip, JsonObject *root)
{
  bool is_tpu = chip->family == POD_FAMILY_TPU;

  pod_result_set_double (root, "defaults.nic_bytes_per_s", chip->nic_bytes_per_s.nominal);
  pod_result_set_double (root, "defaults.oversubscription_ratio", 1);
  pod_result_set_int (root, "defaults.chips_per_host", chip->chips_per_host);
  if (is_tpu)
    return;
  pod_result_set_int (root, "defaults.chips_per_node", chip->scale_up_chips);
  pod_result_set_int (root, "defaults.rails", pod_chip_default_rails (chip, chip->scale_up_chips));
  pod_result_set_int (root, "defaults.tree_levels", chip->tree_levels);
  pod_result_set_int (root, "defaults.switch_radix", chip->switch_radix);
}

void
pod_chip_facts_set (const PodChip *chip, JsonObject *root)
{
  static const char *const families[]
      = { [POD_FAMILY_TPU] = "tpu", [POD_FAMILY_SWITCH] = "switch", [POD_FAMILY_MESH] = "mesh" };
  PodChipFieldInfo info;
  JsonArray *sources;

  pod_result_set_string (root, "chip.name", chip->name);
  pod_result_set_string (root, "chip.title", chip->title != NULL ? chip->title : chip->name);
  pod_result_set_string (root, "chip.vendor", chip->vendor != NULL ? chip->vendor : "");
  pod_result_set_string (root, "chip.family", families[chip->family]);
  for (size_t i = 0; pod_chip_field (i, &info); i++)
    {
      const Fact *fact = find_fact (info.name);
      g_autofree char *text = fact == NULL ? pod_chip_get (chip, info.name) : NULL;
      g_autofree char *path = g_strconcat ("chip.", info.name, NULL);

      if (fact != NULL)
        set_fact (chip, fact, root);
      else if (text != NULL)
        pod_result_set_string (root, path, text);
    }
  set_sizes (chip, root);
  for (size_t i = 0; i < G_N_ELEMENTS (derived); i++)
    {
      set_number (root, "chip.", derived[i].key, derived[i].of (chip, false));
      set_number (root, "chip.book.", derived[i].key, derived[i].of (chip, true));
    }
  sources = pod_result_get_array (root, "chip.sources");
  for (guint i = 0; i < chip->sources->len; i++)
    json_array_add_string_element (sources, g_ptr_array_index (chip->sources, i));
  set_defaults (chip, root);
}
