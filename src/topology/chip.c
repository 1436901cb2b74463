#include "topology/chip.h"

#include <math.h>
#include <string.h>

#include "base/data-path.h"
#include "base/error.h"
#include "base/xml.h"
#include "topology/chip-private.h"

enum
{
  MAX_COUNT = 1 << 24, /* of any counted thing; above, products of counts could overflow */
};

static const char *const family_names[] = {
  [POD_FAMILY_TPU] = "tpu",
  [POD_FAMILY_SWITCH] = "switch",
  [POD_FAMILY_MESH] = "mesh",
};

const char *const pod_attention_kernel_names[POD_N_ATTENTION_KERNELS + 1] = {
  [POD_ATTENTION_KERNEL_CHIP] = "chip", [POD_ATTENTION_KERNEL_TRITON] = "triton", [POD_ATTENTION_KERNEL_FA1] = "fa1",
  [POD_ATTENTION_KERNEL_FA2] = "fa2",   [POD_ATTENTION_KERNEL_CUDNN] = "cudnn",
};

static const char *const wrap_names[] = {
  [POD_WRAP_NEVER] = "never",
  [POD_WRAP_ALWAYS] = "always",
  [POD_WRAP_FULL_EXTENT] = "full-extent",
  [POD_WRAP_CUBES] = "cubes",
};

/* Position of @text in @names; false when it is none of them. */
static bool
find_name (const char *const *names, size_t n_names, const char *text, unsigned *out)
{
  for (size_t i = 0; i < n_names; i++)
    if (strcmp (names[i], text) == 0)
      {
        *out = (unsigned) i;
        return true;
      }
  return false;
}

void
pod_chip_free (PodChip *chip)
{
  if (chip == NULL)
    return;
  g_free (chip->name);
  g_free (chip->title);
  g_free (chip->vendor);
  g_free (chip->file);
  g_free (chip->note);
  g_clear_pointer (&chip->sources, g_ptr_array_unref);
  for (unsigned i = 0; i < POD_N_SURFACES; i++)
    pod_surface_free (chip->surfaces[i]);
  g_free (chip);
}

/* -- one field from text ----------------------------------------------------------------------- */

static const PodChipRow *
find_row (const char *name)
{
  for (size_t i = 0; i < pod_chip_n_rows; i++)
    if (strcmp (pod_chip_rows[i].name, name) == 0)
      return &pod_chip_rows[i];
  return NULL;
}

static bool
invalid (GError **error, const char *what, const char *text)
{
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "%s, got '%s'", what, text);
  return false;
}

/* A quantity, checked against the row's range. */
static bool
parse_number (const PodChipRow *row, const char *text, double *out, GError **error)
{
  if (!pod_parse_quantity (text, row->unit, out, error))
    return false;
  if (row->is_positive && !(*out > 0))
    return invalid (error, "must be above 0", text);
  if (row->unit == POD_UNIT_RATIO && *out > 1)
    return invalid (error, "is a part of a peak, so it cannot be above 1", text);
  return true;
}

static bool
parse_count (const PodChipRow *row, const char *text, unsigned *out, GError **error)
{
  uint64_t value = 0;

  if (!pod_parse_whole (text, POD_UNIT_COUNT, &value, error))
    return false;
  if (value > MAX_COUNT)
    return invalid (error, "must be at most 16777216", text);
  if (row->is_positive && value == 0)
    return invalid (error, "must be above 0", text);
  *out = (unsigned) value;
  return true;
}

static bool
parse_time (const PodChipRow *row, const char *text, int64_t *out_ps, GError **error)
{
  double seconds = 0;

  if (!parse_number (row, text, &seconds, error))
    return false;
  return pod_seconds_to_ps (seconds, out_ps) || invalid (error, "is longer than the clock", text);
}

static bool
parse_bool (const char *text, bool *out, GError **error)
{
  bool is_yes = strcmp (text, "yes") == 0 || strcmp (text, "true") == 0;

  if (!is_yes && strcmp (text, "no") != 0 && strcmp (text, "false") != 0)
    return invalid (error, "must be yes or no", text);
  *out = is_yes;
  return true;
}

static bool
parse_wrap (const char *text, PodWrapRule *out, GError **error)
{
  unsigned rule = 0;

  if (!find_name (wrap_names, G_N_ELEMENTS (wrap_names), text, &rule))
    return invalid (error, "must be never, always, full-extent or cubes", text);
  *out = (PodWrapRule) rule;
  return true;
}

/* Sets the field of @row from @text; @book (nullable) is the book's value. */
static bool
set_field (PodChip *chip, const PodChipRow *row, const char *text, const char *book, GError **error)
{
  void *field = (char *) chip + row->offset;
  PodRated *rated = field;

  switch (row->kind)
    {
    case POD_FIELD_RATED:
      if (!parse_number (row, text, &rated->nominal, error))
        return false;
      rated->book = rated->nominal;
      return book == NULL || parse_number (row, book, &rated->book, error);
    case POD_FIELD_DOUBLE:
      return parse_number (row, text, field, error);
    case POD_FIELD_COUNT:
      return parse_count (row, text, field, error);
    case POD_FIELD_PS:
      return parse_time (row, text, field, error);
    case POD_FIELD_BOOL:
      return parse_bool (text, field, error);
    case POD_FIELD_EXTENT:
      return pod_extent_parse (text, field, NULL, error);
    case POD_FIELD_WRAP:
      return parse_wrap (text, field, error);
    default:
      g_assert_not_reached ();
    }
}

/* -- checks over several fields ---------------------------------------------------------------- */

static bool
check_torus (const PodChip *chip, GError **error)
{
  if (chip->torus_dims != 2 && chip->torus_dims != 3)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "torus_dims must be 2 or 3, got %u",
                 chip->torus_dims);
  else if (chip->wrap_rule == POD_WRAP_CUBES && chip->cube_extent < 2)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                 "wrap_rule cubes needs a cube_extent of 2 or more, got %u", chip->cube_extent);
  else if (chip->wrap_rule == POD_WRAP_FULL_EXTENT && chip->wrap_extent < 3)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                 "wrap_rule full-extent needs a wrap_extent of 3 or more, got %u",
                 chip->wrap_extent);
  else
    return true;
  return false;
}

static bool
check_chip (const PodChip *chip, GError **error)
{
  if (chip->devices_per_chip > 2)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_UNSUPPORTED,
                   "devices_per_chip must be 1 or 2, got %u", chip->devices_per_chip);
      return false;
    }
  if (chip->devices_per_chip == 2 && !(chip->die_bytes_per_s.nominal > 0))
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "two devices per chip need a die_bandwidth between them");
      return false;
    }
  if (chip->reserved_bytes * chip->devices_per_chip >= chip->hbm_bytes.nominal)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "reserved_memory must be below hbm_capacity");
      return false;
    }
  return chip->family != POD_FAMILY_TPU || check_torus (chip, error);
}

/* -- loading ----------------------------------------------------------------------------------- */

/* Reads the elements of the file; given[row] says which there were. */
static bool
read_elements (PodChip *chip, const PodXml *xml, bool *given, GError **error)
{
  PodXmlNode *root = pod_xml_root (xml);

  for (PodXmlNode *node = pod_xml_child (root, NULL); node != NULL; node = pod_xml_next (node, NULL))
    {
      const char *name = node->name;
      const PodChipRow *row = find_row (name);
      g_autofree char *value = pod_xml_attr (node, "value");
      g_autofree char *book = pod_xml_attr (node, "book");
      g_autofree char *source = pod_xml_attr (node, "source");
      PodChipSurface surface;

      if (source != NULL)
        g_ptr_array_add (chip->sources, g_strdup_printf ("%s: %s", name, source));
      if (pod_chip_surface_find (name, &surface))
        {
          if (!pod_chip_surface_read (chip, surface, xml, node, error))
            return false;
          continue;
        }
      if (row == NULL || value == NULL)
        return pod_xml_error (xml, node, error, "'%s' is no fact about a chip", name);
      if (given[row - pod_chip_rows])
        return pod_xml_error (xml, node, error, "%s stands twice", name);
      if (!set_field (chip, row, value, book, error))
        {
          g_prefix_error (error, "%s:%u: %s: ", xml->file, node->line, name);
          return false;
        }
      given[row - pod_chip_rows] = true;
    }
  return true;
}

/* Fills what the file leaves out; every default taken is listed. */
static bool
fill_defaults (PodChip *chip, const PodXml *xml, const bool *given, GPtrArray *assumptions,
               GError **error)
{
  bool is_tpu = chip->family == POD_FAMILY_TPU;
  const char *link = is_tpu ? "ici_bandwidth" : "scale_up_bandwidth";

  for (size_t i = 0; i < pod_chip_n_rows; i++)
    {
      const PodChipRow *row = &pod_chip_rows[i];
      const char *text = is_tpu ? row->tpu_default : row->gpu_default;

      if (given[i])
        continue;
      if (row->is_required || strcmp (row->name, link) == 0)
        return pod_xml_error (xml, pod_xml_root (xml), error,
                              "chip '%s' needs %s: peak_bf16, hbm_capacity, hbm_bandwidth and %s "
                              "have no default",
                              chip->name, row->name, link);
      if (text == NULL)
        continue;
      if (!set_field (chip, row, text, NULL, error))
        return false;
      if (assumptions != NULL)
        g_ptr_array_add (assumptions, g_strdup_printf ("chip '%s' gives no %s: %s assumed",
                                                       chip->name, row->name, text));
    }
  return true;
}

/* What a core loads goes with what it multiplies: the mean of A100, H100 and B200 as fitted, 0.0130, 0.0195 and 0.0116 bytes a FLOP. */
static void
fill_core_rate (PodChip *chip, GPtrArray *assumptions)
{
  const double bytes_per_flop = 0.0147;

  if (chip->family == POD_FAMILY_TPU || chip->mxu_dim > 0 || chip->core_bytes_per_s > 0 || !(chip->cores_per_chip > 0))
    return;
  chip->core_bytes_per_s = bytes_per_flop * chip->peak_flops_per_s[POD_DTYPE_BF16].nominal / (double) chip->cores_per_chip;
  if (assumptions != NULL)
    g_ptr_array_add (assumptions, g_strdup_printf ("chip '%s' gives no core_bandwidth: %g bytes for each FLOP of a core's bf16 peak assumed", chip->name, bytes_per_flop));
}

/* Does the file give the row of that name? */
static bool
is_given (const bool *given, const char *name)
{
  for (size_t i = 0; i < pod_chip_n_rows; i++)
    if (strcmp (pod_chip_rows[i].name, name) == 0)
      return given[i];
  return false;
}

/* A (query, key) pair costs 4 x head_dim FLOPs and an exponential, of which a core makes 16 a clock, in all generations (CUDA C++
 * Programming Guide, throughput of arithmetic instructions). So the softmax costs as much as FLOPs of a core and clock / 64 elements of
 * head_dim, 32 on A100, 64 on H100, 129 on B200: fitted 34, 20 and 46. Matrix units that do more than A100's 2,048 FLOPs a clock run
 * beside the other instructions (wgmma, tcgen05), which hides two thirds. Without the softmax the three reach 0.552, 0.562 and 0.544. */
static void
fill_attention (PodChip *chip, const bool *given, GPtrArray *assumptions)
{
  const double exponentials = 16.0, most_in_step = 3000.0, exposed_ratio = 0.334, efficiency = 0.5525;
  const double fitted_mean = 33.0; /* where no clock is given */
  const double core_flops = chip->clock_hz > 0 ? chip->peak_flops_per_s[POD_DTYPE_BF16].nominal / (double) MAX (chip->cores_per_chip, 1) / chip->clock_hz : 0.0;

  if (chip->family == POD_FAMILY_TPU || chip->mxu_dim > 0)
    return;
  if (!is_given (given, "attention_softmax_dims"))
    {
      const double dims = core_flops / exponentials / 4.0 * (core_flops > most_in_step ? exposed_ratio : 1.0);

      chip->attention_softmax_dims = core_flops > 0 ? round (dims * 10.0) / 10.0 : fitted_mean;
      if (assumptions != NULL)
        g_ptr_array_add (assumptions, g_strdup_printf ("chip '%s' gives no attention_softmax_dims: %.3g assumed, %s", chip->name, chip->attention_softmax_dims,
                                                       core_flops > 0 ? "by the FLOPs of a core and clock" : "for it gives no clock"));
    }
  if (is_given (given, "attention_efficiency"))
    return;
  chip->attention_efficiency = round (efficiency / (1.0 + chip->attention_softmax_dims / 128.0) * 1000.0) / 1000.0;
  if (assumptions != NULL)
    g_ptr_array_add (assumptions, g_strdup_printf ("chip '%s' gives no attention_efficiency: %g assumed, %g but for the softmax", chip->name, chip->attention_efficiency, efficiency));
}

static bool
read_head (PodChip *chip, const PodXml *xml, GError **error)
{
  PodXmlNode *root = pod_xml_root (xml);
  g_autofree char *family = pod_xml_attr (root, "family");
  unsigned index = 0;

  chip->name = pod_xml_attr (root, "name");
  chip->title = pod_xml_attr (root, "title");
  chip->vendor = pod_xml_attr (root, "vendor");
  chip->note = pod_xml_attr (root, "note");
  if (chip->name == NULL || *chip->name == '\0')
    return pod_xml_error (xml, root, error, "the chip needs a name");
  if (family == NULL || !find_name (family_names, G_N_ELEMENTS (family_names), family, &index))
    return pod_xml_error (xml, root, error, "family must be tpu, switch or mesh, got '%s'",
                          family != NULL ? family : "");
  chip->family = (PodFamily) index;
  if (chip->title == NULL)
    chip->title = g_strdup (chip->name);
  if (chip->vendor == NULL)
    chip->vendor = g_strdup ("unknown");
  return true;
}

/* Returns: (transfer full) (nullable) */
static PodChip *
chip_from_xml (const PodXml *xml, GPtrArray *assumptions, GError **error)
{
  g_autoptr (PodChip) chip = g_new0 (PodChip, 1);
  g_autofree bool *given = g_new0 (bool, pod_chip_n_rows);

  chip->sources = g_ptr_array_new_with_free_func (g_free);
  chip->file = g_strdup (xml->file);
  if (!read_head (chip, xml, error) || !read_elements (chip, xml, given, error)
      || !fill_defaults (chip, xml, given, assumptions, error))
    return NULL;
  if (!check_chip (chip, error))
    {
      g_prefix_error (error, "%s:%u: ", xml->file, pod_xml_root (xml)->line);
      return NULL;
    }
  fill_core_rate (chip, assumptions);
  fill_attention (chip, given, assumptions);
  if (chip->note != NULL && assumptions != NULL)
    g_ptr_array_add (assumptions, g_strdup_printf ("%s: %s", chip->name, chip->note));
  return g_steal_pointer (&chip);
}

GPtrArray *
pod_chip_names (void)
{
  return pod_data_list ("topologies/chips", ".xml");
}

static void
set_unknown_chip (const char *name, GError **error)
{
  g_autoptr (GPtrArray) names = pod_chip_names ();
  g_autoptr (GString) known = g_string_new (NULL);
  g_autofree char *lower = g_ascii_strdown (name, -1);
  const char *nearest = pod_data_nearest (names, lower);

  for (unsigned i = 0; i < names->len; i++)
    g_string_append_printf (known, "%s%s", i > 0 ? " " : "",
                            (const char *) g_ptr_array_index (names, i));
  if (nearest != NULL)
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                 "unknown chip '%s', did you mean '%s'? Known: %s", name, nearest, known->str);
  else
    g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "unknown chip '%s'. Known: %s", name,
                 known->str);
}

/* The file of a chip that is named by @name; a path is taken as it is. Returns: (transfer full)
 * (nullable) */
static char *
find_chip_file (const char *name, GError **error)
{
  if (strchr (name, '/') != NULL || g_str_has_suffix (name, ".xml"))
    {
      char *found = pod_data_find ("topologies/chips", name, ".xml");
      if (found == NULL)
        g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "no chip file '%s'", name);
      return found;
    }
  /* The suffix is given at once, so that a folder "h100" in the current directory is no chip. */
  g_autofree char *lower = g_ascii_strdown (name, -1);
  g_autofree char *exact_file = g_strconcat (name, ".xml", NULL);
  g_autofree char *lower_file = g_strconcat (lower, ".xml", NULL);
  char *found = pod_data_find ("topologies/chips", exact_file, ".xml");
  if (found == NULL)
    found = pod_data_find ("topologies/chips", lower_file, ".xml");
  if (found == NULL)
    set_unknown_chip (name, error);
  return found;
}

PodChip *
pod_chip_load (const char *name_or_file, GPtrArray *out_assumptions, GError **error)
{
  g_return_val_if_fail (name_or_file != NULL, NULL);

  g_autofree char *file = find_chip_file (name_or_file, error);
  if (file == NULL)
    return NULL;
  g_autofree char *schema = pod_data_find ("topologies/chips", "chip.xsd", ".xsd");
  if (schema == NULL)
    {
      g_set_error (error, POD_ERROR, POD_ERROR_INVALID,
                   "the schema topologies/chips/chip.xsd is missing: set PODSIM_PATH");
      return NULL;
    }
  g_autoptr (PodXml) xml = pod_xml_load (file, schema, error);
  PodChip *chip = xml != NULL ? chip_from_xml (xml, out_assumptions, error) : NULL;

  if (chip != NULL)
    chip->scale_up_file_hop_ps = chip->scale_up_hop_ps;
  return chip;
}

/* -- by name ----------------------------------------------------------------------------------- */

bool
pod_chip_field (size_t index, PodChipFieldInfo *out)
{
  if (index >= pod_chip_n_rows)
    return false;
  out->name = pod_chip_rows[index].name;
  out->summary = pod_chip_rows[index].summary;
  return true;
}

static bool
set_unknown_field (const char *path, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();

  for (size_t i = 0; i < pod_chip_n_rows; i++)
    g_ptr_array_add (names, (char *) pod_chip_rows[i].name);
  const char *nearest = pod_data_nearest (names, path);
  g_autofree char *hint = nearest != NULL
                              ? g_strdup_printf (", did you mean '%s'?", nearest)
                              : g_strdup (": fields are those of topologies/chips/*.xml, such as "
                                          "hbm_bandwidth, peak_bf16, ici_bandwidth");
  g_set_error (error, POD_ERROR, POD_ERROR_INVALID, "no field '%s' in a chip%s", path, hint);
  return false;
}

bool
pod_chip_set (PodChip *chip, const char *path, const char *value, GError **error)
{
  g_return_val_if_fail (chip != NULL && path != NULL && value != NULL, false);

  const PodChipRow *row = find_row (path);
  if (row == NULL)
    return set_unknown_field (path, error);
  PodChip changed = *chip; /* numbers only: the strings stay the chip's own */
  if (!set_field (&changed, row, value, NULL, error) || !check_chip (&changed, error))
    {
      g_prefix_error (error, "%s: ", path);
      return false;
    }
  *chip = changed;
  return true;
}

/* A number with the unit that makes it readable again. Returns: (transfer full) */
static char *
format_number (PodUnit unit, double value)
{
  static const char *const suffixes[] = {
    [POD_UNIT_BYTES] = " B",    [POD_UNIT_BYTES_PER_S] = " B/s",    [POD_UNIT_SECONDS] = " s",
    [POD_UNIT_FLOPS] = " FLOP", [POD_UNIT_FLOPS_PER_S] = " FLOP/s", [POD_UNIT_HERTZ] = " Hz",
    [POD_UNIT_WATTS] = " W",    [POD_UNIT_USD_PER_H] = " USD/h",
  };
  g_autofree char *number = pod_format_double (value);
  const char *suffix = unit < G_N_ELEMENTS (suffixes) ? suffixes[unit] : NULL;

  return g_strconcat (number, suffix != NULL ? suffix : "", NULL);
}

char *
pod_chip_get (const PodChip *chip, const char *path)
{
  g_return_val_if_fail (chip != NULL && path != NULL, NULL);

  const PodChipRow *row = find_row (path);
  if (row == NULL)
    return NULL;
  const void *field = (const char *) chip + row->offset;
  switch (row->kind)
    {
    case POD_FIELD_RATED:
      return format_number (row->unit, ((const PodRated *) field)->nominal);
    case POD_FIELD_DOUBLE:
      return format_number (row->unit, *(const double *) field);
    case POD_FIELD_COUNT:
      return g_strdup_printf ("%u", *(const unsigned *) field);
    case POD_FIELD_PS:
      return g_strdup_printf ("%" G_GINT64_FORMAT " ps", *(const int64_t *) field);
    case POD_FIELD_BOOL:
      return g_strdup (*(const bool *) field ? "yes" : "no");
    case POD_FIELD_EXTENT:
      return pod_extent_format (field, chip->torus_dims == 2 ? 2 : 3);
    case POD_FIELD_WRAP:
      return g_strdup (wrap_names[*(const PodWrapRule *) field]);
    default:
      g_assert_not_reached ();
    }
}

/* -- of one device ----------------------------------------------------------------------------- */

double
pod_chip_peak (const PodChip *chip, PodDtype dtype, bool is_book, PodDtype *out_used)
{
  /* What a matmul of that type runs as where the chip has no unit for it: the next wider type. TPUs
   * multiply fp32 in bf16 passes, at default precision in one. */
  static const PodDtype wider[POD_N_DTYPES] = {
    [POD_DTYPE_FP32] = POD_DTYPE_BF16, [POD_DTYPE_BF16] = POD_DTYPE_BF16,
    [POD_DTYPE_FP16] = POD_DTYPE_BF16, [POD_DTYPE_FP8] = POD_DTYPE_BF16,
    [POD_DTYPE_INT8] = POD_DTYPE_BF16, [POD_DTYPE_FP4] = POD_DTYPE_FP8,
    [POD_DTYPE_INT4] = POD_DTYPE_INT8,
  };
  PodDtype used = dtype;

  g_return_val_if_fail (chip != NULL && dtype < POD_N_DTYPES, 0);
  while (!(chip->peak_flops_per_s[used].nominal > 0) && wider[used] != used)
    used = wider[used];
  if (out_used != NULL)
    *out_used = used;
  const PodRated *peak = &chip->peak_flops_per_s[used];
  return (is_book ? peak->book : peak->nominal) / chip->devices_per_chip;
}

double
pod_chip_hbm_rate (const PodChip *chip, bool is_book)
{
  g_return_val_if_fail (chip != NULL, 0);

  return (is_book ? chip->hbm_bytes_per_s.book : chip->hbm_bytes_per_s.nominal)
         / chip->devices_per_chip;
}

double
pod_chip_hbm_capacity (const PodChip *chip, bool is_book)
{
  g_return_val_if_fail (chip != NULL, 0);

  return (is_book ? chip->hbm_bytes.book : chip->hbm_bytes.nominal) / chip->devices_per_chip;
}
